"""Chinese in its two ways of writing: simplified and traditional characters (han-forms.txt).

A search in one of them finds texts in the other. Nothing else may use these forms: a name that
reads alike in the other writing may belong to another note.
"""

from __future__ import annotations

from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from memoranda.text.pattern import lazy_pattern

_HAN = lazy_pattern("[\u4e00-\u9fff]")
# A simplified character may stand for several traditional ones: 发 for 發 and 髮. Only this many
# combinations of a text are tried, the most usual ones first.
_MAX_FORMS = 12


class _Characters(NamedTuple):
    """The table of characters.

    simplified: the simplified form of each traditional character.
    traditional: the traditional characters that a simplified one stands for, the usual one first.
    """

    simplified: dict[int, str]
    traditional: dict[str, str]


@cache
def _characters() -> _Characters:
    """Read the table: each line has a simplified character and the traditional ones behind it."""
    lines = Path(__file__).with_name("han-forms.txt").read_text(encoding="utf-8").splitlines()
    simplified: dict[int, str] = {}
    traditional: dict[str, str] = {}
    for line in lines:
        if line.startswith("#"):
            continue
        traditional[line[0]] = line[1:]
        for character in line[1:]:
            if character != line[0]:
                simplified[ord(character)] = line[0]
    return _Characters(simplified, traditional)


def other_forms(text: str) -> list[str]:
    """Return `text` in the other ways of writing Chinese: `計費` → `计费`, `头发` → `頭發`, `頭髮`.

    The list is empty if all characters are the same in both. A long text may have more traditional
    forms than are returned.
    """
    if text.isascii() or not _HAN.search(text):
        return []
    table = _characters()
    simplified_form = text.translate(table.simplified)
    # For each character, all that it may be in traditional writing
    choices = [table.traditional.get(character, character) for character in text]
    traditional_forms = map("".join, islice(product(*choices), _MAX_FORMS))
    forms = dict.fromkeys([simplified_form, *traditional_forms])
    forms.pop(text, None)
    return list(forms)
