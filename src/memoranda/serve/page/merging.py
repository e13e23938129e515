"""Merges two edits of one text.

Where both changed the same lines (a conflict), the merged text has both versions between marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memoranda.text.compare import changes

MINE = "<<<<<<< yours"
BETWEEN = "======="
THEIRS = ">>>>>>> theirs"


@dataclass
class Merge:
    """The text with both edits, and the number of conflicts: places that both changed."""

    text: str
    conflicts: int


def has_marks(text: str) -> bool:
    """Whether a text still has the marks of a conflict."""
    lines = text.splitlines()
    return MINE in lines and THEIRS in lines


def merge(base: str, mine: str, theirs: str) -> Merge:
    """Merge two edits of the text `base` line by line.

    A line that only one edit changed is taken from that edit.
    """
    base_lines = base.splitlines(keepends=True)
    my_lines = mine.splitlines(keepends=True)
    their_lines = theirs.splitlines(keepends=True)
    merged_lines: list[str] = []
    conflicts = 0
    for block in _blocks(base_lines, my_lines, their_lines):
        if block.mine == block.theirs or block.theirs == block.base:
            merged_lines += block.mine
        elif block.mine == block.base:
            merged_lines += block.theirs
        else:
            conflicts += 1
            merged_lines += [f"{MINE}\n", *_with_line_ends(block.mine), f"{BETWEEN}\n"]
            merged_lines += [*_with_line_ends(block.theirs), f"{THEIRS}\n"]
    return Merge("".join(merged_lines), conflicts)


def _with_line_ends(lines: Sequence[str]) -> list[str]:
    """Return the lines with a line break after the last one, which may lack it."""
    complete_lines = list(lines)
    if complete_lines and not complete_lines[-1].endswith("\n"):
        complete_lines[-1] += "\n"
    return complete_lines


class _Block(NamedTuple):
    """The lines that the two edits, and the text before them, have at one place."""

    mine: Sequence[str]
    theirs: Sequence[str]
    base: Sequence[str]


def _blocks(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[_Block]:
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
        yield _Block(
            mine[my_end:my_position], theirs[their_end:their_position], base[base_end:position]
        )
        yield _Block([line], [line], [line])
        base_end = position + 1
        my_end = my_position + 1
        their_end = their_position + 1
    yield _Block(mine[my_end:], theirs[their_end:], base[base_end:])


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
