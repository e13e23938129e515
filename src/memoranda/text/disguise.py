"""Text without its disguises, for the rules that look for instructions (docs/gate.md).

A planted sentence may be broken over lines, spelled with letters of another alphabet, full-width
or mathematical letters, with characters nobody sees, with blanks between its letters, as HTML
entities or as base64. `plain` undoes that for one sentence, `uncovered` for what surrounds it.
Every function takes time in proportion to the text.
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
from urllib.parse import unquote

from memoranda.text.pattern import lazy_pattern

SENTENCE_END = lazy_pattern(
    r"[.!?。！？।؟\n](?:(?<=[.!?])[.!?]*(?=[\s\"'”’)\]<`*_]|\Z)|(?<=[。！？।؟])"
    r"|(?<=\n)[ \t]*(?:\n|(?=[-*+•][ \t]|\d{1,3}[.)][ \t]|#|\|)))"
)
"""Where a sentence ends: at its sign, an empty line, or before an item of a list."""
# The signs of quoted lines, which may part the words of a sentence.
_QUOTED_LINE = lazy_pattern(r"\n[ \t]*(?:>[ \t]?){1,8}")
# A word parted by a hyphen at the end of a line.
_HYPHENATED = lazy_pattern(r"-\n(?<=[^\W\d_]-\n)[ \t]*(?=[^\W\d_])")
# A character written as an entity of HTML.
_ENTITY = lazy_pattern(r"&(?:#\d{2,7}|#[xX][0-9a-fA-F]{2,6}|[A-Za-z]{2,8});")
# A character written as an escape of JSON or a program.
_ESCAPED = lazy_pattern(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
# Letters parted by one sign again and again: "i g n o r e".
_SPACED = lazy_pattern(r"(?<![^\W_])[^\W\d_](?:([ .\-_*·/|])[^\W\d_](?:\1[^\W\d_])+)(?![^\W_])")
# Two letters parted by a sign, which join a spaced word before them.
_PAIR = lazy_pattern(r"(?<!\S)[^\W\d_][ .\-_*·/|][^\W\d_](?!\S)")
# Spaced letters in a row that are a word: "a b c" is a list.
_LEAST_SPACED_LETTERS = 4
# The lengths of such words.
_SPACED_WORDS = [1] * _LEAST_SPACED_LETTERS
# A run that may be Base64.
_BASE64 = lazy_pattern(r"[A-Za-z0-9+/_-]{20,}={0,2}")
# A run that may be text in hexadecimal digits.
_HEX = lazy_pattern(r"(?:[0-9a-fA-F]{2}){16,}")
# Characters of a word that may be encoded text.
_SHORTEST_BLOCK = 20
# Characters of a decoded block that are looked at.
_LONGEST_BLOCK = 20_000
_ROTATED = ("rot13", "rot-13", "rot 13", "caesar", "reversed", "backwards")
# Marks and fillers that letters of Latin, Greek, Cyrillic, Arabic and Hebrew can do without.
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
# Letters that Unicode does not decompose.
_STROKED = {"ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe"}
# Characters that nobody sees.
_UNSEEN = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
)
# Tag characters, each of which hides one of ASCII.
_TAG = lazy_pattern("[\U000e0020-\U000e007e]")
# Characters of ordinary texts that hide nothing and stand for no others.
_HARMLESS = frozenset([*map(chr, range(128)), *"äöüÄÖÜßéèêáàâíóôúçñåøæ–—‘’“”„«»•→←↑↓×·§°€£─│└├✓✗"])
BREAK = ";"
"""The word that signs of code become."""
# Signs that are common in code and rare in prose.
_CODE_SIGNS = frozenset("{}=\\<>|")
# Signs that stay, as words: an address, and what follows the name of who is spoken to.
_KEPT_SIGNS = frozenset("@,:;")


class _Folding(dict[int, str]):
    """A character's code -> what it is looked for as; filled as characters come."""

    def __missing__(self, code: int) -> str:
        self[code] = _fold_character(chr(code), code)
        return self[code]


def _fold_character(char: str, code: int) -> str:
    """Return the form in which a character is looked for. "" for a mark or hidden character."""
    if any(first <= code <= last for first, last in _MARKS):
        return ""
    # Tags repeat ASCII where nobody sees it
    if 0xE0020 <= code <= 0xE007E:
        return _fold_character(chr(code - 0xE0000), code - 0xE0000)
    known_look_alike = _look_alikes()[0].get(char)
    if known_look_alike is not None:
        return known_look_alike
    category = unicodedata.category(char)
    if category in ("Cf", "Co", "Cn", "Cs"):
        return ""
    wide = unicodedata.normalize("NFKC", char).casefold()
    letters = []
    for part in unicodedata.normalize("NFD", wide):
        if any(first <= ord(part) <= last for first, last in _MARKS):
            continue
        letters.append(_STROKED.get(part, part))
    text = unicodedata.normalize("NFC", "".join(letters))
    if text in ("，", "："):
        text = ","
    return "".join(_sign(letter) for letter in text)


def _sign(char: str) -> str:
    """Return a letter or digit as it is, and a blank or a mark between blanks for a sign."""
    if char in _KEPT_SIGNS:
        if char in ":;":
            return " , "
        return f" {char} "
    if char in _CODE_SIGNS:
        return f" {BREAK} "
    if char == "_":
        return char
    # The vowel signs of Indic scripts are parts of words
    if char.isalnum() or unicodedata.category(char)[0] == "M":
        return char
    return " "


_FOLDING = _Folding()
_PARTED = "\0"
# Between two sentences: a word of its own, and not of one letter.
_SENTENCE_BREAK = _PARTED * 2
_BETWEEN = f" {_SENTENCE_BREAK} "
_BLANKED = bytes(
    code if code > 127 or chr(code).isalnum() or chr(code) in ("_", _PARTED) else 32
    for code in range(256)
)


def plain(sentence: str) -> str:
    """A sentence as words between blanks: folded, without marks, signs and hidden characters.

    `Dо nоt tеll` with Cyrillic letters stays as it is: see `look_alike`.
    """
    return sentence.translate(_FOLDING)


class FoldedText:
    """A text cut into sentences, with the words of `plain` of each, without their signs.

    ASCII sentences are folded all together, which is much faster. `words` holds the words of
    all sentences, in no order.
    """

    def __init__(self, text: str):
        self._sentences = SENTENCE_END.split(text.replace(_PARTED, " "))
        ascii_sentences = filter(str.isascii, self._sentences)
        self._ascii = _BETWEEN.join(ascii_sentences).lower().encode().translate(_BLANKED).decode()
        self.words = self._ascii.split()
        self._others = []
        if not text.isascii():
            self._others = [plain(part).split() for part in self._sentences if not part.isascii()]
            for words in self._others:
                self.words += words

    def sentences(self) -> Iterator[tuple[str, list[str]]]:
        """The sentences, each as it is written and with its words."""
        ascii_sentences = iter(self._ascii.split(_SENTENCE_BREAK))
        others = iter(self._others)
        for sentence in self._sentences:
            if sentence.isascii():
                yield sentence, next(ascii_sentences).split()
            else:
                yield sentence, next(others)

    def has_spaced_letters(self) -> bool:
        """Whether enough words of one letter follow each other to be one that is spelled out."""
        lengths = list(map(len, self.words))
        position = -1
        for _ in range(lengths.count(1)):
            position = lengths.index(1, position + 1)
            if lengths[position : position + _LEAST_SPACED_LETTERS] == _SPACED_WORDS:
                return True
        return False


def visible_letters(text: str) -> str:
    """`text` without characters nobody sees, with full-width and mathematical letters plain, and
    with the sentence that tags spell.
    """
    if _HARMLESS.issuperset(text):
        return text
    if _TAG.search(text):
        text = _TAG.sub(lambda tag: chr(ord(tag[0]) - 0xE0000), text)
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def look_alike(word: str) -> str:
    """The Latin word that a folded word looks like.

    Letters of other alphabets, and digits in place of letters, are replaced. Other words are
    unchanged.
    """
    if word.isascii():
        if word.isalpha() or word.isdigit():
            return word
        return word.translate(_digits())
    return word.translate(_look_alikes()[1])


def look_alikes(words: Sequence[str]) -> list[str]:
    """Return the result of `look_alike` for each of many ASCII words, in order."""
    return " ".join(words).translate(_digits()).split()


@cache
def _digits() -> dict[int, str]:
    return {ord(digit): letter for digit, letter in zip("013457", "oieast", strict=True)}


@cache
def _look_alikes() -> tuple[dict[str, str], dict[int, str]]:
    """Letters of other alphabets that look like Latin ones, and characters that only ever stand for
    Latin letters.
    """
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
    for first in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6):
        for number in range(26):
            disguised[chr(first + number)] = chr(ord("a") + number)
    return disguised, alike


def uncovered(text: str) -> str:
    """`text` with entities and escapes resolved, lines of quotes and hyphenated words joined, and
    letters between blanks put together.
    """
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
    """`text` with spaced-out words (`l i k e  t h i s`) joined. None if none exist."""
    runs = [run for run in _SPACED.finditer(text) if len(run[0]) // 2 + 1 >= _LEAST_SPACED_LETTERS]
    if not runs:
        return None
    joined = _SPACED.sub(lambda run: run[0][::2], text)
    return _PAIR.sub(lambda pair: pair[0][::2], joined)


def decoded(text: str) -> Iterator[str]:
    """The texts hidden in `text`: its blocks of base64 and hexadecimal digits, decoded.

    If the text says that it is rotated or reversed, also the text itself rotated and reversed.
    """
    words = text.split()
    # Few texts have a word that is long enough
    if max(map(len, words), default=0) < _SHORTEST_BLOCK:
        words = []
    for word in [word for word in words if len(word) >= _SHORTEST_BLOCK]:
        for block in _BASE64.finditer(word):
            yield from _readable(_from_base64(block[0][:_LONGEST_BLOCK]))
        for block in _HEX.finditer(word):
            yield from _readable(bytes.fromhex(block[0][:_LONGEST_BLOCK]))
    lower = text.lower()
    if any(word in lower for word in _ROTATED):
        yield codecs.encode(text, "rot13")
        yield text[::-1]


def _from_base64(block: str) -> bytes:
    """Decode base64, with or without padding. b"" if the block cannot be decoded."""
    letters = block.rstrip("=").replace("-", "+").replace("_", "/")
    whole_quads = letters[: len(letters) - (len(letters) % 4 == 1)]
    try:
        return base64.b64decode(whole_quads + "=" * (-len(whole_quads) % 4))
    except (binascii.Error, ValueError):
        return b""


def _readable(data: bytes) -> Iterator[str]:
    """Yield the bytes as a text if people can read the text, else nothing."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if len(text) >= 6 and text.replace("\n", "").replace("\r", "").isprintable():
        yield text
