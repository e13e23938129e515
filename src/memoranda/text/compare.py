"""Compare two texts line by line, within a limit of work.

`difflib` looks at each pair of equal lines again and again. For two texts of 2,900 equal lines, it
takes minutes. Here a comparison with too many steps ends, and the texts become one changed block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

Change = tuple[str, int, int, int, int]
"""An opcode of difflib: (tag, first and end line in the old text, first and end line in the new).

The tag is `equal`, `replace`, `delete` or `insert`. An end line is not included."""

STEPS = 300_000
"""A comparison looks at this many pairs of lines, which takes about a tenth of a second."""


class _TooManySteps(Exception):
    """Raised when a comparison has looked at more than STEPS pairs of lines."""


class _Bounded(SequenceMatcher[str]):
    """A comparison that counts its steps and ends at STEPS."""

    def __init__(self, old: Sequence[str], new: Sequence[str]):
        super().__init__(None, old, new, autojunk=False)
        self._old_lines = len(old)
        # For each line of `old`, how many steps all lines before it take: one for each line, and
        # one for each equal line of `new`.
        counts_in_new = Counter(new)
        self._steps_before = [0, *accumulate(1 + counts_in_new[line] for line in old)]
        self._remaining_steps = STEPS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """Return the result of difflib's method, after counting its steps. Raises _TooManySteps."""
        end = self._old_lines if ahi is None else ahi
        self._remaining_steps -= self._steps_before[end] - self._steps_before[alo]
        if self._remaining_steps < 0:
            raise _TooManySteps
        return super().find_longest_match(alo, ahi, blo, bhi)


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return how `old` becomes `new`, as opcodes of difflib.

    `["a", "b"]`, `["a", "c"]` → `[("equal", 0, 1, 0, 1), ("replace", 1, 2, 1, 2)]`.

    If comparing takes too long, all lines between the common beginning and the common end are one
    changed block.
    """
    try:
        return list(_Bounded(old, new).get_opcodes())
    except _TooManySteps:
        return _as_one_block(old, new)


def _as_one_block(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the common beginning, one changed block, and the common end, without empty parts.

    `["a", "b", "z"]`, `["a", "c", "d", "z"]` → `[("equal", 0, 1, 0, 1), ("replace", 1, 2, 1, 3),
    ("equal", 2, 3, 3, 4)]`.
    """
    start = count_of_equal(old, new)
    # Only behind the beginning, so that no line is in both.
    end_count = count_of_equal(old[start:][::-1], new[start:][::-1])
    old_end = len(old) - end_count
    new_end = len(new) - end_count
    blocks: list[Change] = []
    if start:
        blocks.append(("equal", 0, start, 0, start))
    has_removed = start < old_end
    has_added = start < new_end
    if has_removed and has_added:
        blocks.append(("replace", start, old_end, start, new_end))
    elif has_removed:
        blocks.append(("delete", start, old_end, start, new_end))
    elif has_added:
        blocks.append(("insert", start, old_end, start, new_end))
    if end_count:
        blocks.append(("equal", old_end, len(old), new_end, len(new)))
    return blocks


def count_of_equal(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines, or characters of two texts, are the same from the beginning on."""
    count = 0
    for old_line, new_line in zip(old, new, strict=False):
        if old_line != new_line:
            break
        count += 1
    return count


def grouped_changes(old: Sequence[str], new: Sequence[str], context: int) -> list[list[Change]]:
    """Return the changes in groups, each with up to `context` equal lines before and after.

    If comparing takes too long, the whole texts are one changed block.
    """
    try:
        return [list(group) for group in _Bounded(old, new).get_grouped_opcodes(context)]
    except _TooManySteps:
        return [[("replace", 0, len(old), 0, len(new))]]
