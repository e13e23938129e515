"""Fold text: bring it into one form for the index, for queries and for substring search.

Folding removes differences of case, compatibility forms (`ﬁ`, `ＰＤＦ`, `H₂O`), the marks of Latin,
Greek, Cyrillic, Arabic and Hebrew letters, and invisible characters. It keeps vowel signs, which
distinguish words in Indic scripts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

from memoranda.text.pattern import lazy_pattern

# Kana, ideographs and syllables that no folding changes: most of a Chinese or Japanese text.
_STABLE = (
    "\u3001-\u3003\u3005-\u3007\u3008-\u3011\u3041-\u3096\u30a1-\u30fe\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\U00020000-\U0002a6df"
)
# Marks that people leave out: accents, points, tatweel, Devanagari's nukta, variants, skin tones.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    "\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7-\u06e8\u06ea-\u06ed\u08d3-\u08ff"
    "\u093c\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
    "\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef"
)
# Signs after a name become blanks. NFKC would turn two of them into letters.
_BLANKS = "™®©℠"
# Letters in place of which Hindi also writes a dot: `हिन्दी` is `हिंदी`.
_NASALS = lazy_pattern("ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ])")
# A Thai or Lao nikhahit typed before its tone mark.
_SARA_AM = lazy_pattern("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb])")
# The cache of folded forms has at most this many entries, and each has at most this many characters.
_MOST_REMEMBERED_WORDS = 20_000
_MOST_REMEMBERED_CHARACTERS = 64
# In a text with at most this many different characters beyond ASCII, each of them is replaced in
# the whole text, which is faster than folding each run.
_FEW_FOREIGN_CHARACTERS = 120
# How many characters of a text are looked at first.
_BEGINNING = 1_000
# The Unicode categories of characters that folding removes: invisible and private ones.
_REMOVED_CATEGORIES = ("Cf", "Co")
_ASCII = bytes(range(128))
# Characters whose folded form does not depend on their neighbors: most letters of Europe and East
# Asia. Characters that can be part of a sequence are not among them.
_ALONE = f"[\u00a0-\u02af\u0386-\u0482\u048a-\u0556\u2010-\u2027\u2030-\u205e]|[{_STABLE}]"


@cache
def _pattern_of_changes() -> re.Pattern[str]:
    """Return a pattern that matches runs of characters that folding may change."""
    return re.compile(f"[^\\x00-\\x7f{_STABLE}]+")


@cache
def _mark() -> re.Pattern[str]:
    """Return the pattern of a mark that folding removes."""
    return re.compile(f"[{_MARKS}]")


@cache
def _table() -> tuple[dict[str, str], re.Pattern[str]]:
    """Return (character -> its folded form, pattern of sequences that are folded as a whole)."""
    text = Path(__file__).with_name("letters.txt").read_text(encoding="utf-8")
    pairs = [line.split() for line in text.splitlines() if not line.startswith("#")]
    table = {
        unicodedata.normalize("NFC", before): unicodedata.normalize("NFC", after)
        for before, after in pairs
    }
    sequences = [before for before in table if len(before) > 1]
    return table, re.compile("|".join(map(re.escape, sequences)))


class _Characters(dict[str, str]):
    """A cache that maps a character, after NFKC and folding of case, to its folded form."""

    def __missing__(self, character: str) -> str:
        self[character] = folded = _folded_character(character)
        return folded


class _Alone(dict[str, str | None]):
    """A cache that maps a character to its folded form. None if this form depends on neighbors."""

    def __missing__(self, character: str) -> str | None:
        _, sequences = _table()
        is_alone = re.match(_ALONE, character) and character not in sequences.pattern
        self[character] = folded = _folded_run(character) if is_alone else None
        return folded


class _Runs(dict[str, str]):
    """A cache that maps a run of characters beyond ASCII to its folded form.

    It is emptied when it has _MOST_REMEMBERED_WORDS entries.
    """

    def __missing__(self, run: str) -> str:
        folded = _folded_run(run)
        if len(self) >= _MOST_REMEMBERED_WORDS:
            self.clear()
        if len(run) <= _MOST_REMEMBERED_CHARACTERS:
            self[run] = folded
        return folded


_CHARACTERS = _Characters()
_ALONE_FOLDED = _Alone()
_RUNS = _Runs()


def fold(text: str) -> str:
    """Return `text` in a form for comparing, so that different ways to type it are equal.

    `Straße` and `STRASSE` become `strasse`, `Ærø` `aero`, `ёлка` `елка`, `مُدَرِّس` `مدرس`.
    """
    if text.isascii():
        return text.lower()
    lower = unicodedata.normalize("NFC", text.lower())
    folded_characters = _few_folded(beyond_ascii(lower))
    # There are too many different characters, or one that depends on its neighbors.
    if folded_characters is None:
        return _pattern_of_changes().sub(lambda run: _RUNS[run[0]], lower)
    return _with_folded(lower, folded_characters)


def _with_folded(lower: str, folded_characters: dict[str, str]) -> str:
    """Return a text in lower case with the folded form of each character beyond ASCII.

    folded_characters: these characters with their folded forms.
    """
    # Replacing each character in the whole text is much faster than folding each run.
    for character, folded in folded_characters.items():
        if folded != character:
            lower = lower.replace(character, folded)
    return lower


def _few_folded(foreign_text: str) -> dict[str, str] | None:
    """Return the folded form of each different character of a text beyond ASCII.

    None if the characters are too many, or if the form of one depends on its neighbors.
    """
    # The beginning tells of most texts that they have too many, which is much faster.
    characters = set(foreign_text[:_BEGINNING])
    if len(characters) <= _FEW_FOREIGN_CHARACTERS:
        characters = set(foreign_text)
    if len(characters) > _FEW_FOREIGN_CHARACTERS:
        return None
    folded_characters: dict[str, str] = {}
    for character in characters:
        folded = _ALONE_FOLDED[character]
        if folded is None:
            return None
        folded_characters[character] = folded
    return folded_characters


def beyond_ascii(text: str) -> str:
    """Return the characters of `text` beyond ASCII: `Öl für Ø` → `ÖüØ`. Faster than a pattern."""
    data = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return data.decode("utf-8", "surrogatepass")


def fold_places(text: str) -> tuple[str, list[int] | None]:
    """Return the folded text, and where in `text` each of its characters comes from.

    `ﬁx` → (`fix`, [0, 0, 1]). In place of the positions, None says that each character is at its
    own place, as in ASCII text.
    """
    if text.isascii():
        return text.lower(), None
    lower = text.lower()
    folded_characters = None
    # Both keep the number of characters of most texts.
    if len(lower) == len(text) and unicodedata.is_normalized("NFC", lower):
        folded_characters = _few_folded(beyond_ascii(lower))
    # Each character is folded to one, whatever its neighbors are.
    if folded_characters is not None and set(map(len, folded_characters.values())) == {1}:
        return _with_folded(lower, folded_characters), None

    folded = fold(text)
    pieces: list[str] = []
    places: list[int] = []
    position = 0
    for run in _pattern_of_changes().finditer(text):
        pieces.append(text[position : run.start()].lower())
        places.extend(range(position, run.start()))
        piece = fold(run[0])
        pieces.append(piece)
        # A run that gets longer, as `ß` does, ends in several characters of the same place.
        last_offset = len(run[0]) - 1
        places.extend(run.start() + min(offset, last_offset) for offset in range(len(piece)))
        position = run.end()
    pieces.append(text[position:].lower())
    places.extend(range(position, len(text)))

    if "".join(pieces) != folded:
        # NFKC has joined marks with their letters, so exact places are unknown. They are estimated
        # from the lengths of both texts, and may be some characters off.
        ratio = len(text) / max(1, len(folded))
        places = [int(offset * ratio) for offset in range(len(folded))]
    return folded, places


def is_changed(text: str) -> bool:
    """Whether folding changes more of `text` than the case of ASCII letters."""
    if text.isascii():
        return False
    lower = text.lower()
    if lower.isascii() or not unicodedata.is_normalized("NFC", lower):
        return True
    return any(_RUNS[run[0]] != run[0] for run in _pattern_of_changes().finditer(lower))


def _folded_run(run: str) -> str:
    """Fold a run of characters: `Straße` → `strasse`."""
    for sign in _BLANKS:
        run = run.replace(sign, " ")
    normalized_run = unicodedata.normalize("NFKC", run).casefold()
    folded = "".join(map(_CHARACTERS.__getitem__, normalized_run))
    folded = _SARA_AM.sub(r"\2\1", _NASALS.sub("ं", folded))
    table, sequences = _table()
    folded = sequences.sub(lambda match: table[match[0]], folded)
    return unicodedata.normalize("NFC", folded)


def _folded_character(character: str) -> str:
    """Fold one character: to its base letter in lower case, a digit, or nothing."""
    table, _ = _table()
    if character in table:
        return table[character]
    if unicodedata.category(character) in _REMOVED_CATEGORIES or _mark().match(character):
        return ""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    base = _mark().sub("", unicodedata.normalize("NFD", character))
    if base == character or not base:
        return base
    return unicodedata.normalize("NFC", "".join(table.get(letter, letter) for letter in base))
