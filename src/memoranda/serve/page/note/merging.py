"""Merges two edits of one text.

Where both changed the same lines, a person decides which lines are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memoranda.text.compare import changes

MINE = "mine"
THEIRS = "theirs"
BOTH = "both"
"""The decisions about a place that both edits changed."""


class Block(NamedTuple):
    """One place of a text: its lines after each of two edits, and before both.

    mine, theirs: the lines after the one edit, and after the other.
    base: the lines before both edits.
    """

    mine: Sequence[str]
    theirs: Sequence[str]
    base: Sequence[str]

    @property
    def is_conflict(self) -> bool:
        """Whether both edits changed these lines, in different ways."""
        return self.mine != self.theirs and self.base not in (self.mine, self.theirs)

    def lines(self, decision: str = BOTH) -> list[str]:
        """Return the lines of this place in the merged text.

        A line that only one edit changed is taken from that edit.

        decision: MINE, THEIRS or BOTH, for a place that both edits changed.
        """
        if not self.is_conflict:
            # If both edits are the same, either will do.
            is_changed_by_them = self.theirs != self.base
            return list(self.theirs if is_changed_by_them else self.mine)
        if decision == MINE:
            return list(self.mine)
        if decision == THEIRS:
            return list(self.theirs)
        return [*_with_line_ends(self.mine), *self.theirs]


@dataclass
class Merge:
    """Two edits of a text, cut into places."""

    blocks: list[Block]

    @property
    def conflicts(self) -> list[Block]:
        """The places that both edits changed."""
        return [block for block in self.blocks if block.is_conflict]

    def text(self, decisions: Sequence[str] = ()) -> str:
        """Return the merged text.

        decisions: MINE, THEIRS or BOTH for each of the conflicts. A missing one is BOTH.
        """
        lines: list[str] = []
        remaining_decisions = list(decisions)
        for block in self.blocks:
            decision = BOTH
            if block.is_conflict and remaining_decisions:
                decision = remaining_decisions.pop(0)
            lines += block.lines(decision)
        return "".join(lines)


def merge(base: str, mine: str, theirs: str) -> Merge:
    """Merge two edits of the text `base` line by line."""
    return Merge(
        list(
            _blocks(
                base.splitlines(keepends=True),
                mine.splitlines(keepends=True),
                theirs.splitlines(keepends=True),
            )
        )
    )


def _with_line_ends(lines: Sequence[str]) -> list[str]:
    """Return the lines with a line break after the last one, which may lack it."""
    complete_lines = list(lines)
    if complete_lines and not complete_lines[-1].endswith("\n"):
        complete_lines[-1] += "\n"
    return complete_lines


def _blocks(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Block]:
    """Cut the three texts at the lines that are in all of them.

    Yields, by turns, the lines before such a line (perhaps none), and the line.
    """
    positions_in_mine = _unchanged_lines(base, mine)
    positions_in_theirs = _unchanged_lines(base, theirs)
    # How many lines of each text are in the blocks so far.
    base_end = 0
    my_end = 0
    their_end = 0
    for position, line in enumerate(base):
        if position not in positions_in_mine or position not in positions_in_theirs:
            continue
        my_position = positions_in_mine[position]
        their_position = positions_in_theirs[position]
        yield Block(
            mine[my_end:my_position], theirs[their_end:their_position], base[base_end:position]
        )
        yield Block([line], [line], [line])
        base_end = position + 1
        my_end = my_position + 1
        their_end = their_position + 1
    yield Block(mine[my_end:], theirs[their_end:], base[base_end:])


def _unchanged_lines(base: Sequence[str], edited: Sequence[str]) -> dict[int, int]:
    """Return where the lines of `base` that an edit left unchanged are in the edited text.

    `["a", "b"]` and `["new", "b"]` give `{1: 1}`.
    """
    positions: dict[int, int] = {}
    for tag, base_start, base_end, edited_start, _ in changes(base, edited):
        if tag == "equal":
            for offset in range(base_end - base_start):
                positions[base_start + offset] = edited_start + offset
    return positions
