"""Comparing two texts line by line, within a budget of work.

`difflib` looks at each pair of equal lines again and again: two texts of 2,900 like lines take it
minutes. Here a comparison that takes too many steps ends, and the texts count as one changed block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

Change = tuple[str, int, int, int, int]
"""As difflib has it: `equal`, `replace`, `delete` or `insert`, and the lines of both texts."""

STEPS = 300_000
"""Pairs of lines looked at, about a tenth of a second."""


class _TooManySteps(Exception):
    """The budget of a comparison is used up."""


class _Bounded(SequenceMatcher[str]):
    """A comparison that counts its steps."""

    def __init__(self, old: Sequence[str], new: Sequence[str]):
        super().__init__(None, old, new, autojunk=False)
        in_new = Counter(new)
        pairs = (1 + in_new[line] for line in old)
        self._old_lines = len(old)
        self._pairs_before = [0, *accumulate(pairs)]
        self._left = STEPS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """Do as difflib does. Raises _TooManySteps."""
        if ahi is None:
            end = self._old_lines
        else:
            end = ahi
        self._left -= self._pairs_before[end] - self._pairs_before[alo]
        if self._left < 0:
            raise _TooManySteps
        return super().find_longest_match(alo, ahi, blo, bhi)


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return how `old` becomes `new`.

    If comparing takes too long, what lies between the common beginning and the common end is one
    block.
    """
    try:
        return list(_Bounded(old, new).get_opcodes())
    except _TooManySteps:
        return _as_one_block(old, new)


def _as_one_block(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return one changed block, with the lines before and after it that both texts have."""
    start = _count_of_equal(old, new)
    end = _count_of_equal(old[start:][::-1], new[start:][::-1])
    old_end = len(old) - end
    new_end = len(new) - end
    tag = "replace"
    if start == old_end:
        tag = "insert"
    elif start == new_end:
        tag = "delete"
    blocks: list[Change] = [
        ("equal", 0, start, 0, start),
        (tag, start, old_end, start, new_end),
        ("equal", old_end, len(old), new_end, len(new)),
    ]
    return [block for block in blocks if block[1] < block[2] or block[3] < block[4]]


def _count_of_equal(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines at the beginning are the same."""
    count = 0
    for old_line, new_line in zip(old, new, strict=False):
        if old_line != new_line:
            break
        count += 1
    return count


def grouped_changes(old: Sequence[str], new: Sequence[str], context: int) -> list[list[Change]]:
    """The changes, in groups with `context` equal lines around; one block where telling more takes
    too long."""
    try:
        return [list(group) for group in _Bounded(old, new).get_grouped_opcodes(context)]
    except _TooManySteps:
        return [[("replace", 0, len(old), 0, len(new))]]
