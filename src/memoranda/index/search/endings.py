"""Other forms of a Russian or Ukrainian word: `встреча` has the forms `встречи` and `встречу`.

English words are found by their stems, which the index has. These words have many more endings, so
their forms are made when somebody asks. The index then says which of them notes contain.

The endings are in endings.txt.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from memoranda.text.pattern import lazy_pattern

# What remains of a word without its ending has at least this many letters.
_LEAST_STEM_LETTERS = 3
# A folded Russian or Ukrainian word. A longer one is no word.
_WORD = lazy_pattern(r"[а-яєі]{3,30}")
# The ends of a verb about itself: `встречаться`.
_REFLEXIVE = ("ся", "сь")
# Words that end in one of these have an ending of their own, so nothing is added behind it.
_ENDS = frozenset("аеиоуыэюяєійь")


def other_endings(word: str) -> set[str]:
    """Return other forms that a folded word may have: `врача` → `врач`, `врачу`, `врачом`, …

    Not all of the results need be words, so the caller must check that notes contain them. The
    result is empty for a word of another script.
    """
    if word.isascii() or not _WORD.fullmatch(word):
        return set()
    forms: set[str] = set()
    if word.endswith(_REFLEXIVE):
        for form in _forms_of(word[:-2]):
            forms.update([form + end for end in _REFLEXIVE])
    else:
        forms = _forms_of(word)
    forms.discard(word)
    return forms


def _forms_of(word: str) -> set[str]:
    """Return a word with each ending that its own ending may be replaced by."""
    forms: set[str] = set()
    # A word that ends in a vowel has an ending already, so at least its last letter is replaced.
    longest_stem = len(word)
    if word[-1] in _ENDS:
        longest_stem -= 1
    # Cut the word at every place: `врач` and `а`, `вра` and `ча`.
    for length in range(_LEAST_STEM_LETTERS, longest_stem + 1):
        stem = word[:length]
        ending_of_word = word[length:]
        for endings in _endings_beside().get(ending_of_word, ()):
            forms.update([stem + ending for ending in endings])
    return forms


@cache
def _endings_beside() -> dict[str, list[list[str]]]:
    """Return the rows of endings.txt that have an ending, by the ending."""
    lines = Path(__file__).with_name("endings.txt").read_text(encoding="utf-8").splitlines()
    rows_by_ending: dict[str, list[list[str]]] = {}
    for line in lines:
        if line.startswith("#"):
            continue
        endings = [ending.removeprefix("-") for ending in line.split()]
        for ending in dict.fromkeys(endings):
            rows_by_ending.setdefault(ending, []).append(endings)
    return rows_by_ending
