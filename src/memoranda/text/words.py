"""The words of folded text, in every script and with the signs that belong to them.

Words of most scripts stand between blanks. Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese
are written in runs, which are searched by pairs of what a reader takes for one character. `c++`,
`c#`, `.net`, `€` and each emoji are words too.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import NamedTuple

from memoranda.text.folding import beyond_ascii, fold
from memoranda.text.pattern import lazy_pattern

_CJK = (
    "\u3005-\u3007\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
# Thai, Lao, Burmese and Khmer: letters with marks above, below and around them.
_SYLLABIC = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ec6\u0ec8-\u0ece\u0edc-\u0edf"
    "\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd\ua9e0-\ua9fe\uaa60-\uaa7f"
)
_SYLLABLE_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    "\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    "\u17b4-\u17d3\u17dd"
)
# Vowel signs and other marks of scripts that stand between blanks; Python counts none as a letter.
_WORD_MARKS = (
    "\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0900-\u0963\u0971-\u0df3\u0f18-\u0f19"
    "\u0f71-\u0f84\u0f86-\u0f87\u0f8d-\u0fbc\u135d-\u135f\u1712-\u1734\u180b-\u180d\u18a9"
    "\u1920-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1b00-\u1b44\u1b80-\u1bad\u1be6-\u1bf3\u1c24-\u1c37"
    "\u3099-\u309a\ua880-\ua881\ua8b4-\ua8c5\ua926-\ua92d\ua947-\ua953\ua980-\ua9c0"
    "\uaa29-\uaa36\uaa43-\uaa4d\uaab0-\uaac1\uaaeb-\uaaf6\uabe3-\uabed\U00011000-\U00011a99"
    "\U0001e8d0-\U0001e8d6\U0001e944-\U0001e94a"
)
_CURRENCY = "$\xa2-\xa5\u058f\u060b\u09f2\u09f3\u0af1\u0e3f\u20a0-\u20cf"
_PICTURES = "\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001fbff"
_SIGNS = _CURRENCY + _PICTURES

_LETTER = rf"[^\W_{_CJK}{_SYLLABIC}]"
_WORD = rf"{_LETTER}(?:{_LETTER}+|[{_WORD_MARKS}]+)*"
# Also with a version behind: `c++20`, `c#12`.
_SIGNED = r"(?:[a-z][a-z0-9]*(?:\+\+(?![a-z+])|[+#](?![\w+#=]))|[a-z]#(?=\d))"
_DOTTED = r"(?:(?<=[\s(\"'`])|^)\.[a-z][a-z0-9]*"

# Signs inside a word are kept as private characters, which the tokenizer takes as letters.
_FIRST_SIGN = 0xF0000
_PLANE = 0xFFFF
JOINER = "\uf8f0"
"""Behind each character of a syllabic script but the last of a pair, so that `ปู` is not `ปู่`."""

# Words remembered with their parts.
_MOST_REMEMBERED_WORDS = 100_000
# The parts of a word with one change from letters to digits, or back.
_TWO_PARTS = 2
# Parts of a name that are also joined to one word: "wi-fi" and "wifi".
_MOST_JOINED_PARTS = 6
_MOST_JOINED_CHARACTERS = 40


@cache
def runs() -> re.Pattern[str]:
    """Matches runs of scripts without blanks. Compiled when first needed, as are the others."""
    # `re` finds the beginning of a run twice as fast this way as with `+`.
    return re.compile(f"[{_CJK}{_SYLLABIC}][{_CJK}{_SYLLABIC}]*")


@cache
def one_word() -> re.Pattern[str]:
    """Matches a word of any kind in folded text."""
    return re.compile(rf"[{_CJK}{_SYLLABIC}]+|(?<!{_LETTER}){_SIGNED}|{_DOTTED}|{_WORD}|[{_SIGNS}]")


@cache
def _one_ascii_word() -> re.Pattern[str]:
    """Matches the same words as `one_word` in text that is ASCII.

    Without the scripts that such text cannot have it is compiled in a tenth of the time, which
    counts in a process that answers one question.
    """
    return re.compile(rf"(?<![^\W_]){_SIGNED}|{_DOTTED}|[^\W_]+|\$")


def words_of(folded: str) -> re.Pattern[str]:
    """Matches the words of this folded text."""
    if folded.isascii():
        return _one_ascii_word()
    return one_word()


def words_in(folded: str) -> list[str]:
    """The words of folded text in order, of any kind; runs whole."""
    return words_of(folded).findall(folded)


@cache
def _goes_on() -> re.Pattern[str]:
    return re.compile(rf"{_LETTER}|[{_WORD_MARKS}]")


@cache
def _syllabic() -> re.Pattern[str]:
    return re.compile(f"[{_SYLLABIC}]")


@cache
def _unit() -> re.Pattern[str]:
    """Matches what a reader takes for one character of a run: a letter with all its marks."""
    return re.compile(
        f"[^{_SYLLABLE_MARKS}](?:[\u1039\u17d2].|[{_SYLLABLE_MARKS}])*|[{_SYLLABLE_MARKS}]+", re.S
    )


@cache
def _signed() -> re.Pattern[str]:
    """Matches words with signs behind their letters."""
    return re.compile(rf"(?<!{_LETTER}){_SIGNED}")


@cache
def _signs() -> re.Pattern[str]:
    """Matches signs that are words themselves."""
    return re.compile(f"[{_SIGNS}]")


@cache
def _index_word() -> re.Pattern[str]:
    return re.compile(
        rf"(?:[^\W_]+|[{_WORD_MARKS}{_SYLLABLE_MARKS}{JOINER}\U000f0000-\U000fffff]+)+"
    )


@cache
def _compound() -> re.Pattern[str]:
    """Matches words that signs join: `e-mail`, `O'Brien`, `v1.10.2`; and words without signs."""
    return re.compile(rf"{_LETTER}+(?:(?:['’‘ʼ׳״\"‐‑-]|\.(?=\d)){_LETTER}+)*")


# The same in ASCII, compiled and matched faster.
_ASCII_COMPOUND = lazy_pattern(r"[a-zA-Z0-9]+(?:(?:['\"-]|\.(?=[0-9]))[a-zA-Z0-9]+)*")


@cache
def _hump() -> re.Pattern[str]:
    """Matches between the parts of `camelCase` and `HTTPServer`."""
    return re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])|(?<=[A-ZÀ-Þ])(?=[A-ZÀ-Þ][a-zà-ÿ])")


@cache
def _number() -> re.Pattern[str]:
    """Matches between letters and digits."""
    return re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


_LETTERS_ALIKE = bytes(97 if chr(code).isalnum() and code < 128 else code for code in range(256))
# Private characters that stand for signs, such as the `#` of `C#`.
_SIGN = lazy_pattern("[\U000f0000-\U000fffff]")
# A file's extension, which is also found with its dot.
_EXTENSION = lazy_pattern(r"\.([a-z][a-z0-9]{0,15})(?![a-z0-9])", re.I)
# Signs that join the parts of a name.
_JOINTS = lazy_pattern(r"[\W_]+")
# Signs around a word that are no part of any.
_AROUND = "\"'()[]{}<>,;:!?*`|~…“”‘’«»"


class Compound(NamedTuple):
    """How a compound is found, other than as it is written: in one word, and by its parts."""

    joined: str = ""
    parts: str = ""


def is_run(word: str) -> bool:
    """Whether `word` begins with a character of a script written without blanks."""
    return not word.isascii() and runs().match(word) is not None


class _InWord(dict[str, bool]):
    """Maps a character of folded text to whether it continues a word.

    Characters of runs begin words.
    """

    def __missing__(self, character: str) -> bool:
        if character.isascii():
            self[character] = character.isalnum()
        else:
            self[character] = _goes_on().match(character) is not None
        return self[character]


IN_WORD = _InWord()


def units(run: str) -> list[str]:
    """The characters of a run as a reader counts them."""
    if _syllabic().search(run):
        return _unit().findall(run)
    return list(run)


def compound(word: str) -> Compound:
    """The other forms of one compound, as written, such as `Wi-Fi`, `getUser`, `v1.10.2`."""
    written = [word] if word.isalnum() else _JOINTS.split(word)
    joined = ""
    may_join = len(written) > 1 and written[0].isalpha() and "." not in word
    if may_join and len(word) <= _MOST_JOINED_CHARACTERS:
        joined = fold("".join(written))

    pieces: list[str] = []
    for part in written:
        pieces += _parts(part)
    parts = ""
    if len(written) < len(pieces) <= _MOST_JOINED_PARTS + len(written):
        parts = fold(" ".join(pieces))
    return Compound(joined, parts)


def _parts(word: str) -> list[str]:
    """`getUser` and `python3` in two; what mixes letters and digits more than that is a code."""
    # Most words: they have neither a boundary between cases nor one before a digit
    if word.isdecimal() or (word.isalpha() and (word.islower() or word.isupper())):
        return [word]
    pieces: list[str] = []
    for hump in _hump().split(word):
        letters_and_digits = _number().split(hump)
        if len(letters_and_digits) == _TWO_PARTS:
            pieces += letters_and_digits
        else:
            pieces.append(hump)
    return pieces


def compounds(text: str) -> list[Compound]:
    """The compounds in a piece of text that have other forms."""
    pattern = _ASCII_COMPOUND if text.isascii() else _compound()
    words = pattern.findall(text)
    compound_words = [
        compound(word) for word in words if not (word.isdigit() or _is_one_part(word))
    ]
    return [form for form in compound_words if form.joined or form.parts]


def _is_one_part(word: str) -> bool:
    """Whether a word of letters has no inner capital, so that it has no other form to look for."""
    return word.isalpha() and (word[1:].islower() or len(word) == 1)


class _Extras(dict[str, tuple[str, ...]]):
    """Maps a piece of text between blanks to the further words it is found by."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        if len(self) >= _MOST_REMEMBERED_WORDS:
            self.clear()
        # No sign around a word makes a compound of it
        word = piece.strip(_AROUND).rstrip(".")
        piece_extras: tuple[str, ...] = ()
        if word and not _is_one_part(word):
            piece_extras = _extras_of(piece)
        if piece_extras or len(_WITHOUT_EXTRAS) >= _MOST_REMEMBERED_WORDS:
            self[piece] = piece_extras
        else:
            _WITHOUT_EXTRAS.add(piece)
        return piece_extras


_EXTRAS = _Extras()
# Pieces of text that are found by their words alone, as most are: they are taken out all at once.
_WITHOUT_EXTRAS: set[str] = set()


def extras(text: str) -> str:
    """Further forms, in index form, by which the words of `text` are found."""
    pieces = text.split()
    remaining = set(pieces) - _WITHOUT_EXTRAS
    if not remaining:
        return ""
    in_order = [piece for piece in dict.fromkeys(pieces) if piece in remaining]
    all_extras = chain.from_iterable(map(_EXTRAS.__getitem__, in_order))
    return " ".join(dict.fromkeys(all_extras))


def _extras_of(piece: str) -> tuple[str, ...]:
    forms = chain.from_iterable(compounds(piece))
    extra_words = [words_to_index(form) for form in forms if form]
    if "." in piece:
        extra_words += [_sign_word(f".{name}") for name in _EXTENSION.findall(piece)]
    return tuple(extra_words)


def words_to_index(folded: str) -> str:
    """Folded text as the full-text tables hold it: runs as pairs, signs as characters of words.

    `重跑qx7z后` becomes `重跑 跑 qx7z 后`: pairs, then the run's last character on its own.
    """
    text = folded
    if ("+" in text or "#" in text) and _has_sign_behind_letter(text):
        text = _signed().sub(_sign_match, text)
    if "$" in text:
        text = text.replace("$", f" {_sign_word('$')} ")
    if text.isascii():
        return text
    signs = beyond_ascii(text)
    if _signs().search(signs):
        text = _signs().sub(_sign_match, text)
    if runs().search(signs):
        text = runs().sub(_pairs, text)
    return text


def _has_sign_behind_letter(folded: str) -> bool:
    letters_alike = folded.encode("utf-8", "surrogatepass").translate(_LETTERS_ALIKE)
    return b"a+" in letters_alike or b"a#" in letters_alike


def index_words(text: str) -> list[str]:
    """The words of a text in index form."""
    return _index_word().findall(text)


def without_signs(word: str) -> str:
    """A word in index form without its signs: `disney+` is found by `disney` too."""
    return _SIGN.sub("", word)


def phrase_of(folded: str) -> tuple[str, bool]:
    """Folded text as a phrase to look for, empty when it holds no word; and whether its last word
    should be a prefix: the one character of a run, which begins a pair in the note."""
    words = words_in(folded)
    if not words:
        return "", False
    # Behind other words `.net` is in the index without its sign.
    if len(words) == 1 and words[0].startswith("."):
        return _sign_word(words[0]), False

    pieces = " ".join(words_to_index(word.removeprefix(".")) for word in words).split()
    if not is_run(words[-1]):
        return " ".join(pieces), False
    if len(units(words[-1])) > 1:
        return " ".join(pieces[:-1]), False
    return " ".join(pieces), True


def _sign_match(match: re.Match[str]) -> str:
    word = match[0]
    if not word[0].isalpha():
        return f" {_sign_word(word)} "
    is_followed = match.string[match.end() : match.end() + 1].isalnum()
    if is_followed:
        return f"{_sign_word(word)} "
    return _sign_word(word)


def _sign_word(word: str) -> str:
    """A word with a private-use character for each of its signs: SQLite takes no sign for a word."""
    return "".join(
        letter if letter.isalnum() else chr(_FIRST_SIGN + (ord(letter) & _PLANE))
        for letter in word.lower()
    )


class _Twice(dict[int, str]):
    """A character -> itself, a blank, itself again: what a run becomes pairs by."""

    def __missing__(self, code: int) -> str:
        self[code] = f"{chr(code)} {chr(code)}"
        return self[code]


_TWICE = _Twice()


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    if not _syllabic().search(run):
        return f" {run.translate(_TWICE)[2:]} "
    marked = [f"{unit}{JOINER}" if _syllabic().match(unit) else unit for unit in units(run)]
    ends = [unit.removesuffix(JOINER) for unit in marked[1:]]
    pairs = [f"{unit}{after}" for unit, after in zip(marked, ends, strict=False)]
    return f" {' '.join([*pairs, marked[-1]])} "
