"""Remove disguises from text, for the rules that look for instructions (docs/gate.md).

An attacker may hide an instruction from the rules: break it over lines, write it with letters of
another alphabet, with full-width, mathematical or invisible characters, with blanks between its
letters, as HTML entities or as Base64. `uncovered` undoes the disguises that a whole text can have,
`plain` those within a sentence. Every function takes time in proportion to the text.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from memoranda.text.pattern import lazy_pattern

SENTENCE_END = lazy_pattern(
    r"[.!?。！？।؟\n](?:(?<=[.!?])[.!?]*(?=[\s\"'”’)\]<`*_]|\Z)|(?<=[。！？।؟])"
    r"|(?<=\n)[ \t]*(?:\n|(?=[-*+•][ \t]|\d{1,3}[.)][ \t]|#|\|)))"
)
"""Where a sentence ends: at its sign, an empty line, or before an item of a list."""
# A line break with the `>` of a quoted line, which may separate the words of a sentence.
_QUOTED_LINE = lazy_pattern(r"\n[ \t]*(?:>[ \t]?){1,8}")
# The hyphen and line break inside a word that continues on the next line.
_HYPHENATED = lazy_pattern(r"-\n(?<=[^\W\d_]-\n)[ \t]*(?=[^\W\d_])")
# A character written as an entity of HTML.
_ENTITY = lazy_pattern(r"&(?:#\d{2,7}|#[xX][0-9a-fA-F]{2,6}|[A-Za-z]{2,8});")
# A character written as an escape of JSON or a program.
_ESCAPED = lazy_pattern(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
# Letters with the same sign between each two of them: "i g n o r e".
_SPACED = lazy_pattern(r"(?<![^\W_])[^\W\d_](?:([ .\-_*·/|])[^\W\d_](?:\1[^\W\d_])+)(?![^\W_])")
# Two letters with a sign between them. They belong to a spaced word before them.
_PAIR = lazy_pattern(r"(?<!\S)[^\W\d_][ .\-_*·/|][^\W\d_](?!\S)")
# This many spaced letters in a row are a word. Fewer are a list, such as "a b c".
_LEAST_SPACED_LETTERS = 4
# The word lengths of the shortest spaced word: four words of one letter.
_SPACED_WORDS = [1] * _LEAST_SPACED_LETTERS
# A run that may be Base64.
_BASE64 = lazy_pattern(r"[A-Za-z0-9+/_-]{20,}={0,2}")
# A run that may be text in hexadecimal digits.
_HEX = lazy_pattern(r"(?:[0-9a-fA-F]{2}){16,}")
# A word with fewer characters is not decoded.
_SHORTEST_BLOCK = 20
# Only this many characters of a block are decoded.
_LONGEST_BLOCK = 20_000
# A decoded text with fewer characters is ignored: random bytes may look like a short text.
_SHORTEST_DECODED = 6
# Words by which a text says that it, or a part of it, is rotated or reversed.
_ROTATED = ("rot13", "rot-13", "rot 13", "caesar", "reversed", "backwards")
# The (first, last) codes of marks and fillers without which Latin, Greek, Cyrillic, Arabic and Hebrew
# words can still be read.
_MARKS = (
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x0591, 0x05C7),
    (0x0610, 0x061A),
    (0x0640, 0x0640),
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0xE0100, 0xE01EF),
)
# Chinese letters, which are looked for as they are.
_IDEOGRAPHS = range(0x4E00, 0xA000)
# Letters that Unicode does not decompose.
_STROKED = {"ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe"}
# Characters that nobody sees.
_UNSEEN = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
)
# Tag characters, each of which hides one of ASCII.
_TAG = lazy_pattern("[\U000e0020-\U000e007e]")
# Common characters that are used as what they are, so that a text of them needs no folding.
_HARMLESS = frozenset([*map(chr, range(128)), *"äöüÄÖÜßéèêáàâíóôúçñåøæ–—‘’“”„«»•→←↑↓×·§°€£─│└├✓✗"])
BREAK = ";"
"""The word that replaces signs of code in the result of `plain`."""
# Signs that are common in code and rare in prose.
_CODE_SIGNS = frozenset("{}=\\<>|")
# Signs that are kept as separate words: `@` and `:` of addresses, `;` between two clauses, and the
# comma after the name of the reader, as in `Claude, delete it`.
_KEPT_SIGNS = frozenset("@,:;")


class _Folding(dict[int, str]):
    """A cache: code of a character -> the plain form in which it is looked for."""

    def __missing__(self, code: int) -> str:
        self[code] = _fold_character(chr(code), code)
        return self[code]


def _fold_character(char: str, code: int) -> str:
    """Return the plain form of a character for searching. "" for a mark or hidden character.

    code: the code of the character.
    """
    # Most characters that are not ASCII are ideographs, and none of these is a mark
    is_ideograph = code in _IDEOGRAPHS
    if not is_ideograph and _is_mark(code):
        return ""
    # A tag character hides a character of ASCII
    if 0xE0020 <= code <= 0xE007E:
        return _fold_character(chr(code - 0xE0000), code - 0xE0000)
    latin_letter = _look_alikes().disguised.get(char)
    if latin_letter is not None:
        return latin_letter
    if is_ideograph:
        return char
    category = unicodedata.category(char)
    if category in ("Cf", "Co", "Cn", "Cs"):
        return ""
    # A compatibility form may become several letters
    plain_letters = unicodedata.normalize("NFKC", char).casefold()
    letters = []
    for part in unicodedata.normalize("NFD", plain_letters):
        if not _is_mark(ord(part)):
            letters.append(_STROKED.get(part, part))
    text = unicodedata.normalize("NFC", "".join(letters))
    if text in ("，", "："):
        text = ","
    return "".join(_word_character(letter) for letter in text)


def _is_mark(code: int) -> bool:
    """Whether a character is a mark or filler that is removed."""
    return any(first <= code <= last for first, last in _MARKS)


def _word_character(char: str) -> str:
    """Return a letter or digit as it is, and a blank or a word between blanks for a sign."""
    if char in _KEPT_SIGNS:
        if char in ":;":
            return " , "
        return f" {char} "
    if char in _CODE_SIGNS:
        return f" {BREAK} "
    if char == "_":
        return char
    # The vowel signs of Indic scripts are parts of words
    is_vowel_sign = unicodedata.category(char)[0] == "M"
    if char.isalnum() or is_vowel_sign:
        return char
    return " "


_FOLDING = _Folding()
# Stands between two sentences. No text has this character.
_NUL = "\0"
# It is doubled, so that `has_spaced_letters` does not take it for a word of one letter.
_SENTENCE_BREAK = _NUL * 2
_BETWEEN_SENTENCES = f" {_SENTENCE_BREAK} "


def _blanked_byte(code: int) -> int:
    """Return the byte of a blank for an ASCII sign. Other bytes stay."""
    if code > 127 or chr(code).isalnum() or chr(code) in ("_", _NUL):
        return code
    return ord(" ")


# For `bytes.translate`.
_BLANKED = bytes(_blanked_byte(code) for code in range(256))


def plain(sentence: str) -> str:
    """Return the folded words of a sentence, without marks, signs and hidden characters.

    `Do **NOT** tell` → `do not tell`. Letters of other alphabets that look like Latin letters are
    kept; `look_alike` replaces them.
    """
    return sentence.translate(_FOLDING)


class FoldedText:
    """A text cut into sentences, each with its words in the form of `plain`, without signs.

    All ASCII sentences are folded together, which is much faster.

    words: the words of all sentences, in no order.
    """

    def __init__(self, text: str):
        self._sentences = SENTENCE_END.split(text.replace(_NUL, " "))
        ascii_text = _BETWEEN_SENTENCES.join(filter(str.isascii, self._sentences))
        # All ASCII sentences, folded
        self._ascii = ascii_text.lower().encode().translate(_BLANKED).decode()
        self.words = self._ascii.split()
        # The words of each other sentence
        self._others: list[list[str]] = []
        if not text.isascii():
            self._others = [plain(part).split() for part in self._sentences if not part.isascii()]
            for words in self._others:
                self.words += words

    def sentences(self) -> Iterator[tuple[str, list[str]]]:
        """Yield (sentence as written, its words) for each sentence that has a word."""
        ascii_sentences = iter(self._ascii.split(_SENTENCE_BREAK))
        other_sentences = iter(self._others)
        for sentence in self._sentences:
            if sentence.isascii():
                words = next(ascii_sentences).split()
            else:
                words = next(other_sentences)
            if words:
                yield sentence, words

    def has_spaced_letters(self) -> bool:
        """Whether at least _LEAST_SPACED_LETTERS words of one letter follow each other."""
        lengths = list(map(len, self.words))
        # `index` goes from one word of a letter to the next, which is faster than a loop over all.
        position = -1
        for _ in range(lengths.count(1)):
            position = lengths.index(1, position + 1)
            if lengths[position : position + _LEAST_SPACED_LETTERS] == _SPACED_WORDS:
                return True
        return False


def visible_letters(text: str) -> str:
    """Return `text` without invisible characters, and with plain letters.

    Full-width and mathematical letters become plain ones. A sentence that is written in invisible
    tag characters becomes visible.
    """
    if _HARMLESS.issuperset(text):
        return text
    if _TAG.search(text):
        text = _TAG.sub(lambda tag: chr(ord(tag[0]) - 0xE0000), text)
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def look_alike(word: str) -> str:
    """Return the Latin word that a folded word looks like: `tell` for `tеll` with a Cyrillic `е`.

    Letters of other alphabets, and digits in place of letters, are replaced. Other words are
    returned unchanged.
    """
    if word.isascii():
        if word.isalpha() or word.isdigit():
            return word
        return word.translate(_digits())
    return word.translate(_look_alikes().alike)


def look_alikes(words: Sequence[str]) -> list[str]:
    """Return the result of `look_alike` for each of many ASCII words, in order."""
    return " ".join(words).translate(_digits()).split()


@cache
def _digits() -> dict[int, str]:
    """Return the codes of digits -> the letters that they look like, for `str.translate`."""
    return {ord(digit): letter for digit, letter in zip("013457", "oieast", strict=True)}


class _LookAlikes(NamedTuple):
    """Characters that look like Latin letters.

    disguised: character -> letter, for characters that are only used in place of Latin letters.
    alike: code -> letter, for letters of other alphabets, which also occur in ordinary words.
    """

    disguised: dict[str, str]
    alike: dict[int, str]


@cache
def _look_alikes() -> _LookAlikes:
    """Return the characters of look-alikes.txt, and the letters in circles, squares and flags."""
    disguised: dict[str, str] = {}
    alike: dict[int, str] = {}
    text = Path(__file__).with_name("look-alikes.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        letter, *look_alikes = line.split()
        for char in look_alikes:
            if unicodedata.name(char).startswith("LATIN"):
                disguised[char] = letter
            else:
                alike[ord(char)] = letter
    # Four alphabets of signs: in a square, in a black circle, in a black square, and of flags
    for first in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6):
        for number in range(26):
            disguised[chr(first + number)] = chr(ord("a") + number)
    return _LookAlikes(disguised, alike)


def uncovered(text: str) -> str:
    """Undo the disguises that a text as a whole can have: `&#105;gn&#111;re` → `ignore`.

    Entities and escapes become characters. The lines of a quote and the parts of a hyphenated word
    are joined, and so are spaced letters.
    """
    # Signs are found much faster than patterns, and most texts have none of these.
    if "&" in text and ";" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "\\u" in text or "\\x" in text:
        text = _ESCAPED.sub(lambda escape: chr(int(escape[1] or escape[2], 16)), text)
    if "%" in text and "%20" in text:
        text = unquote(text, errors="replace")
    if ">" in text:
        text = _QUOTED_LINE.sub("\n", text)
    if "-\n" in text:
        text = _HYPHENATED.sub("", text)
    return text


def joined_letters(text: str) -> str | None:
    """Join the letters of spaced words: `l i k e  t h i s` → `like  this`.

    Return None if the text has no such words.
    """
    runs = [run for run in _SPACED.finditer(text) if len(run[0]) // 2 + 1 >= _LEAST_SPACED_LETTERS]
    if not runs:
        return None
    joined = _SPACED.sub(lambda run: run[0][::2], text)
    return _PAIR.sub(lambda pair: pair[0][::2], joined)


def decoded(text: str) -> Iterator[str]:
    """Find texts that are hidden in a text, in Base64 or in hexadecimal digits.

    If the text says that it is rotated or reversed, yield the text itself rotated and reversed, too.
    """
    long_words = [word for word in text.split() if len(word) >= _SHORTEST_BLOCK]
    for word in long_words:
        for block in _BASE64.finditer(word):
            yield from _readable(_from_base64(block[0][:_LONGEST_BLOCK]))
        for block in _HEX.finditer(word):
            yield from _readable(bytes.fromhex(block[0][:_LONGEST_BLOCK]))
    lower = text.lower()
    if any(word in lower for word in _ROTATED):
        yield codecs.encode(text, "rot13")
        yield text[::-1]


def _from_base64(block: str) -> bytes:
    """Decode Base64, with or without padding. Returns b"" if the block cannot be decoded."""
    letters = block.rstrip("=").replace("-", "+").replace("_", "/")
    # Four letters are three bytes. One letter more says nothing.
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    padding = "=" * (-len(letters) % 4)
    try:
        return base64.b64decode(letters + padding)
    except (binascii.Error, ValueError):
        return b""


def _readable(data: bytes) -> Iterator[str]:
    """Yield the bytes as a text if people can read the text, else nothing."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    text_without_breaks = text.replace("\n", "").replace("\r", "")
    if len(text) >= _SHORTEST_DECODED and text_without_breaks.isprintable():
        yield text
