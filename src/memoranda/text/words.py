"""Find the words of a folded text in every script, and bring them into the form of the index.

Most scripts put blanks between words. Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are
treated as written without blanks, in runs. A run is searched by pairs of its units. A unit is a
letter with its marks, which a reader takes for one character.

`c++`, `c#`, `.net`, `€` and each emoji are words, too. SQLite's tokenizer would drop their signs. So
in the form of the index, each sign is replaced by a private character, which counts as a letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import NamedTuple

from memoranda.text.folding import beyond_ascii, fold
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import is_remembering

_CJK = (
    "\u3005-\u3007\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
# The syllabic scripts Thai, Lao, Burmese and Khmer: letters with marks above, below or around them.
_SYLLABIC = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ec6\u0ec8-\u0ece\u0edc-\u0edf"
    "\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd\ua9e0-\ua9fe\uaa60-\uaa7f"
)
_SYLLABLE_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    "\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    "\u17b4-\u17d3\u17dd"
)
# Vowel signs and other marks of scripts with blanks between words. Python does not count them as
# letters.
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
# A word with signs behind its letters, such as `c++`, or `c#12` with a version.
_SIGNED = r"(?:[a-z][a-z0-9]*(?:\+\+(?![a-z+])|[+#](?![\w+#=]))|[a-z]#(?=\d))"
# A word with a dot before it, such as `.net`.
_DOTTED = r"(?:(?<=[\s(\"'`])|^)\.[a-z][a-z0-9]*"

# The private character of the sign with code 0, and the bits of a sign's code that are added.
_FIRST_SIGN = 0xF0000
_PLANE = 0xFFFF
JOINER = "\uf8f0"
"""A private character that follows each unit of a syllabic script, except the last of a pair.

Without this mark, a search for `ปู` would also find `ปู่`.
"""

# How many texts without blanks are cached with their further forms, and their greatest length. An
# attached image, for example, is a very long text without blanks.
_MOST_REMEMBERED_WORDS = 30_000
_MOST_REMEMBERED_CHARACTERS = 64
# If a text has more different signs, they are replaced by a pattern and not one by one.
_MANY_SIGNS = 64
# The parts of a word with one change from letters to digits, or back.
_TWO_PARTS = 2
# How many parts splitting may add to a word. A word that would split into more is a code and stays.
_MOST_JOINED_PARTS = 6
# The longest word that is also found without its signs: "wi-fi" by "wifi".
_MOST_JOINED_CHARACTERS = 40


@cache
def runs() -> re.Pattern[str]:
    """Return a pattern for runs of letters in scripts without blanks, such as Chinese.

    As compiling takes long, all patterns here are compiled when they are first needed.
    """
    # `re` finds the beginning of a run twice as fast this way as with `+`
    return re.compile(f"[{_CJK}{_SYLLABIC}][{_CJK}{_SYLLABIC}]*")


@cache
def one_word() -> re.Pattern[str]:
    """Return the pattern of a word of any kind in folded text."""
    return re.compile(rf"[{_CJK}{_SYLLABIC}]+|(?<!{_LETTER}){_SIGNED}|{_DOTTED}|{_WORD}|[{_SIGNS}]")


@cache
def _one_ascii_word() -> re.Pattern[str]:
    """Return the pattern that matches in ASCII text the words that `one_word` matches.

    Without the other scripts, it is compiled in a tenth of the time, which counts in a process that
    answers one question.
    """
    return re.compile(rf"(?<![^\W_]){_SIGNED}|{_DOTTED}|[^\W_]+|\$")


def words_of(folded: str) -> re.Pattern[str]:
    """Return the pattern to find the words of this folded text."""
    if folded.isascii():
        return _one_ascii_word()
    return one_word()


def words_in(folded: str) -> list[str]:
    """Return the words of folded text in order. A run is one word: `use c++ 重跑` has three."""
    return words_of(folded).findall(folded)


@cache
def _goes_on() -> re.Pattern[str]:
    """Return the pattern of a character that continues a word."""
    return re.compile(rf"{_LETTER}|[{_WORD_MARKS}]")


@cache
def _syllabic() -> re.Pattern[str]:
    """Return the pattern of a letter of a syllabic script."""
    return re.compile(f"[{_SYLLABIC}]")


@cache
def _unit() -> re.Pattern[str]:
    """Return the pattern of a unit: a letter of a run with all its marks."""
    return re.compile(
        f"[^{_SYLLABLE_MARKS}](?:[\u1039\u17d2].|[{_SYLLABLE_MARKS}])*|[{_SYLLABLE_MARKS}]+", re.S
    )


@cache
def _signed() -> re.Pattern[str]:
    """Return the pattern of a word with signs behind its letters, such as `c++`."""
    return re.compile(rf"(?<!{_LETTER}){_SIGNED}")


@cache
def _signs() -> re.Pattern[str]:
    """Return the pattern of a sign that is a word, such as `€` or an emoji."""
    return re.compile(f"[{_SIGNS}]")


@cache
def _index_word() -> re.Pattern[str]:
    """Return the pattern of a word in the form of the index."""
    return re.compile(
        rf"(?:[^\W_]+|[{_WORD_MARKS}{_SYLLABLE_MARKS}{JOINER}\U000f0000-\U000fffff]+)+"
    )


@cache
def _compound() -> re.Pattern[str]:
    """Return the pattern of a word whose parts signs may join: `e-mail`, `O'Brien`, `v1.10.2`."""
    return re.compile(rf"{_LETTER}+(?:(?:['’‘ʼ׳״\"‐‑-]|\.(?=\d)){_LETTER}+)*")


# The pattern of `_compound` for ASCII text, which is compiled and matched faster.
_ASCII_COMPOUND = lazy_pattern(r"[a-zA-Z0-9]+(?:(?:['\"-]|\.(?=[0-9]))[a-zA-Z0-9]+)*")


@cache
def hump() -> re.Pattern[str]:
    """Return the pattern of the place between the parts of `camelCase` and `HTTPServer`."""
    return re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])|(?<=[A-ZÀ-Þ])(?=[A-ZÀ-Þ][a-zà-ÿ])")


@cache
def _number() -> re.Pattern[str]:
    """Return the pattern of the place between a letter and a digit."""
    return re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


# A word of letters and a number, such as `note7`, `Note7` or `7z`. Its parts are its further words.
_CASED = "(?:[A-Z]?[a-z]+|[A-Z]+)"
_NUMBERED = lazy_pattern(rf"({_CASED})(\d+)|(\d+)({_CASED})", re.A)
# For `bytes.translate`: makes an `a` of each ASCII letter and digit.
_LETTERS_ALIKE = bytes(97 if chr(code).isalnum() and code < 128 else code for code in range(256))
# Private characters that stand for signs, such as the `#` of `C#`.
_SIGN = lazy_pattern("[\U000f0000-\U000fffff]")
# A file's extension, which is also found with its dot.
_EXTENSION = lazy_pattern(r"\.([a-z][a-z0-9]{0,15})(?![a-z0-9])", re.I)
# Signs that join the parts of a name.
_JOINTS = lazy_pattern(r"[\W_]+")
# Signs around a word that are not part of a word.
_AROUND = "\"'()[]{}<>,;:!?*`|~…“”‘’«»"


class Compound(NamedTuple):
    """Further forms that a search may use for a compound. `Wi-Fi` has the joined form `wifi`.

    joined: its parts as one word, as `wifi`. "" if its parts are not joined.
    parts: the words into which it splits, with blanks between them, as `get user` for `getUser`. ""
        if it does not split further than at its signs.
    """

    joined: str = ""
    parts: str = ""


def is_run(word: str) -> bool:
    """Whether `word` begins with a character of a script written without blanks."""
    return not word.isascii() and runs().match(word) is not None


class _InWord(dict[str, bool]):
    """A cache that maps a character of folded text to whether it continues a word.

    Letters of runs do not continue a word: each of them may begin one.
    """

    def __missing__(self, character: str) -> bool:
        if character.isascii():
            self[character] = character.isalnum()
        else:
            self[character] = _goes_on().match(character) is not None
        return self[character]


IN_WORD = _InWord()
"""Maps a character of folded text to whether it continues a word."""


def units(run: str) -> list[str]:
    """Split a run into what a reader takes for its characters: `ปู่ปู` into `ปู่` and `ปู`."""
    if _syllabic().search(run):
        return _unit().findall(run)
    return list(run)


def compound(word: str) -> Compound:
    """Return the further forms of a word: `wifi` for `Wi-Fi`, `get user` for `getUser`.

    word: the word as written, before folding.
    """
    parts_at_signs = [word] if word.isalnum() else _JOINTS.split(word)
    joined = ""
    has_signs = len(parts_at_signs) > 1
    # A date or a version is not joined: `2026-05-01`, `v1.10`.
    is_name = parts_at_signs[0].isalpha() and "." not in word
    if has_signs and is_name and len(word) <= _MOST_JOINED_CHARACTERS:
        joined = fold("".join(parts_at_signs))

    all_parts: list[str] = []
    for part in parts_at_signs:
        all_parts += _parts(part)
    parts = ""
    # The parts at signs are words of the index anyway, so parts are named only if there are more.
    added_parts = len(all_parts) - len(parts_at_signs)
    if 0 < added_parts <= _MOST_JOINED_PARTS:
        parts = fold(" ".join(all_parts))
    return Compound(joined, parts)


def _parts(word: str) -> list[str]:
    """Split `getUser` into `get` and `User`, and `python3` into `python` and `3`.

    A word with more changes between letters and digits, such as `a1b2`, is a code and stays.
    """
    # Most words are in one case and without digits, so they cannot be split
    is_in_one_case = word.isalpha() and (word.islower() or word.isupper())
    if is_in_one_case or word.isdecimal():
        return [word]
    pieces: list[str] = []
    for part in hump().split(word):
        letters_and_digits = _number().split(part)
        if len(letters_and_digits) == _TWO_PARTS:
            pieces += letters_and_digits
        else:
            pieces.append(part)
    return pieces


def compounds(text: str) -> list[Compound]:
    """Return the further forms of the words in a text. Words without any are left out."""
    return _forms_of(_compound_words(text))


def _compound_words(text: str) -> list[str]:
    """Return the words in a text. Signs may join the parts of a word."""
    pattern = _ASCII_COMPOUND if text.isascii() else _compound()
    return pattern.findall(text)


def _forms_of(words: Iterable[str]) -> list[Compound]:
    """Return the further forms of words. Words without any are left out."""
    result: list[Compound] = []
    for word in words:
        if word.isdigit() or _is_one_part(word):
            continue
        forms = compound(word)
        if forms.joined or forms.parts:
            result.append(forms)
    return result


def _is_one_part(word: str) -> bool:
    """Whether a word is only letters without a capital inside, so that it has no further forms."""
    return word.isalpha() and (word[1:].islower() or len(word) == 1)


class _Extras(dict[str, tuple[str, ...]]):
    """A cache: a text without blanks -> further words that find it."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        piece_extras = _extras_of(piece)
        if len(piece) <= _MOST_REMEMBERED_CHARACTERS:
            self._remember(piece, piece_extras)
        return piece_extras

    def _remember(self, piece: str, piece_extras: tuple[str, ...]) -> None:
        """Keep the further words of a text without blanks. A full cache is emptied before.

        A long text may have more words than the cache, and needs them twice: for itself and for its
        passages. So inside of `remembering` the cache is not emptied.
        """
        is_full = len(self) + len(_WITHOUT_EXTRAS) >= _MOST_REMEMBERED_WORDS
        if is_full and not is_remembering():
            self.clear()
            _WITHOUT_EXTRAS.clear()
        if piece_extras:
            self[piece] = piece_extras
        else:
            _WITHOUT_EXTRAS.add(piece)


_EXTRAS = _Extras()
# The texts without further words, as most have none. One difference of sets sorts them out.
_WITHOUT_EXTRAS: set[str] = set()


def extras(text: str) -> str:
    """Return further words that find a text, in the form of the index.

    `Call getUser by e-mail` gives `get user email`, with blanks between the words.
    """
    pieces = dict.fromkeys(text.split())
    pieces_with_extras = pieces.keys() - _WITHOUT_EXTRAS
    if not pieces_with_extras:
        return ""
    pieces_in_order = [piece for piece in pieces if piece in pieces_with_extras]
    all_extras = chain.from_iterable(map(_EXTRAS.__getitem__, pieces_in_order))
    return " ".join(dict.fromkeys(all_extras))


def _extras_of(piece: str) -> tuple[str, ...]:
    """Return the further words of a text without blanks. `_Extras` caches them.

    `note7` has `note 7`, `(getUser)` has `get user`, `Wi-Fi` has `wifi`, and `plan.md` has the
    extension `.md`. Most texts have none.
    """
    # Signs around a word do not give it further forms.
    word = piece.strip(_AROUND).rstrip(".")
    if not word or _is_one_part(word):
        return ()
    # A shortcut for words such as `note7`, which are frequent: `compounds` takes longer.
    numbered = _NUMBERED.fullmatch(word.lstrip("#"))
    if numbered:
        parts = filter(None, numbered.groups())
        return (" ".join(parts).lower(),)
    # A long text without blanks may be one word again and again, such as an escaped sign.
    different_words = dict.fromkeys(_compound_words(piece))
    forms = chain.from_iterable(_forms_of(different_words))
    extra_words = [words_to_index(form) for form in forms if form]
    if "." in piece:
        extra_words += [_sign_word(f".{name}") for name in _EXTENSION.findall(piece)]
    return tuple(extra_words)


def words_to_index(folded: str) -> str:
    """Convert folded text to the form of the index: runs as pairs, signs as private characters.

    A run becomes its pairs and its last character: `重跑qx7z后` becomes `重跑 跑 qx7z 后`.
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
        text = _with_words_for(text, set(_signs().findall(signs)))
    if runs().search(signs):
        text = runs().sub(_pairs, text)
    return text


def _with_words_for(text: str, signs: set[str]) -> str:
    """Return a text with a word of the index for each sign, such as an emoji.

    signs: the different signs in the text.
    """
    if len(signs) > _MANY_SIGNS:
        return _signs().sub(_sign_match, text)
    # If a sign repeats, this is ten times as fast as a pattern
    for sign in signs:
        text = text.replace(sign, f" {_sign_word(sign)} ")
    return text


def _has_sign_behind_letter(folded: str) -> bool:
    """Whether `+` or `#` follows a letter or digit of ASCII. Faster than a pattern."""
    letters_alike = folded.encode("utf-8", "surrogatepass").translate(_LETTERS_ALIKE)
    return b"a+" in letters_alike or b"a#" in letters_alike


def index_words(text: str) -> list[str]:
    """Return the words of a text in the form of the index."""
    return _index_word().findall(text)


def without_signs(word: str) -> str:
    """Remove the signs from a word in the form of the index: `disney` for `disney+`."""
    return _SIGN.sub("", word)


def phrase_of(folded: str) -> tuple[str, bool]:
    """Return folded text as a phrase of the index, and whether its last word is a prefix.

    `use 重跑后` becomes `("use 重跑 跑后", False)`. `use 重` becomes `("use 重", True)`: a single
    character has to be looked for as the first of a pair. Text without words becomes `("", False)`.
    """
    words = words_in(folded)
    if not words:
        return "", False
    # `.net` alone is an extra word of the index. In a phrase, the words are in the index without
    # the dot.
    if len(words) == 1 and words[0].startswith("."):
        return _sign_word(words[0]), False

    phrase = " ".join(words_to_index(word.removeprefix(".")) for word in words)
    index_words = phrase.split()
    last_word = words[-1]
    if not is_run(last_word):
        return " ".join(index_words), False
    # A run becomes its pairs and its last character. After pairs, that character is not needed.
    has_pairs = len(units(last_word)) > 1
    if has_pairs:
        return " ".join(index_words[:-1]), False
    return " ".join(index_words), True


def _sign_match(match: re.Match[str]) -> str:
    """Return a match of `_signed` or `_signs` in the form of the index, as a separate word."""
    word = match[0]
    is_sign_alone = not word[0].isalpha()
    if is_sign_alone:
        return f" {_sign_word(word)} "
    next_character = match.string[match.end() : match.end() + 1]
    if next_character.isalnum():
        return f"{_sign_word(word)} "
    return _sign_word(word)


def _sign_word(word: str) -> str:
    """Replace each sign in a word by its private character, as SQLite does not index signs."""
    return "".join(
        letter if letter.isalnum() else chr(_FIRST_SIGN + (ord(letter) & _PLANE))
        for letter in word.lower()
    )


class _Twice(dict[int, str]):
    """For `str.translate`: maps a character's code to the character, a blank, and it once more.

    So `abc` becomes `a ab bc c`, whose first two characters `_pairs` removes.
    """

    def __missing__(self, code: int) -> str:
        self[code] = f"{chr(code)} {chr(code)}"
        return self[code]


_TWICE = _Twice()


# From this number of characters on, it is faster to copy all characters than to replace each.
_LONG_RUN = 30


def _pairs_of_long_run(run: str) -> str:
    """Return a run as `_pairs` does, up to ten times as fast.

    All first characters of the pairs are copied at once, and then all second characters.
    """
    characters = memoryview(run.encode("utf-32-le", "surrogatepass")).cast("I")
    # A blank and two characters for each pair
    pairs = bytearray("   ".encode("utf-32-le") * len(run))
    places = memoryview(pairs).cast("I")
    places[1::3] = characters
    places[2:-1:3] = characters[1:]
    return pairs.decode("utf-32-le", "surrogatepass")


def _pairs(match: re.Match[str]) -> str:
    """Return a run as its pairs and its last unit: `記憶術` as ` 記憶 憶術 術 `."""
    run = match[0]
    if not _syllabic().search(run):
        if len(run) >= _LONG_RUN:
            return _pairs_of_long_run(run)
        # Without "a " at its beginning, `a ab bc c` is the pairs and the last character.
        return f" {run.translate(_TWICE)[2:]} "
    # Each unit of a syllabic script is followed by JOINER, but not at the end of a pair
    run_units = units(run)
    first_units = [f"{unit}{JOINER}" if _syllabic().match(unit) else unit for unit in run_units]
    second_units = run_units[1:]
    pairs = [f"{first}{second}" for first, second in zip(first_units, second_units, strict=False)]
    return f" {' '.join([*pairs, first_units[-1]])} "
