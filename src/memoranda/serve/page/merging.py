"""Two edits of one text, joined: where both changed the same lines, both versions are kept, marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoranda.text.compare import changes

MINE = "<<<<<<< yours"
BETWEEN = "======="
THEIRS = ">>>>>>> theirs"


@dataclass
class Merge:
    """`text` with both edits, and how many places both changed."""

    text: str
    conflicts: int


def has_marks(text: str) -> bool:
    """Whether a text still has a place that nobody decided."""
    lines = text.splitlines()
    return MINE in lines and THEIRS in lines


def merge(base: str, mine: str, theirs: str) -> Merge:
    """Merge line by line what `mine` and `theirs` changed in `base`."""
    base_lines = base.splitlines(keepends=True)
    mine_lines = mine.splitlines(keepends=True)
    their_lines = theirs.splitlines(keepends=True)
    pieces: list[str] = []
    conflicts = 0
    for ours, others, was in _blocks(base_lines, mine_lines, their_lines):
        if ours == others or others == was:
            pieces += ours
        elif ours == was:
            pieces += others
        else:
            conflicts += 1
            pieces += [f"{MINE}\n", *_with_line_ends(ours), f"{BETWEEN}\n"]
            pieces += [*_with_line_ends(others), f"{THEIRS}\n"]
    return Merge("".join(pieces), conflicts)


def _with_line_ends(lines: Sequence[str]) -> list[str]:
    """Lines whose last one ends as the others do."""
    ended = list(lines)
    if ended and not ended[-1].endswith("\n"):
        ended[-1] += "\n"
    return ended


Block = tuple[Sequence[str], Sequence[str], Sequence[str]]


def _blocks(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Block]:
    """The three texts cut at the lines all have: (mine, theirs, base) of each piece."""
    to_mine = _kept_lines(base, mine)
    to_theirs = _kept_lines(base, theirs)
    base_at = mine_at = their_at = 0
    for line in range(len(base)):
        if line not in to_mine or line not in to_theirs:
            continue
        yield (
            mine[mine_at : to_mine[line]],
            theirs[their_at : to_theirs[line]],
            base[base_at:line],
        )
        yield base[line : line + 1], base[line : line + 1], base[line : line + 1]
        base_at = line + 1
        mine_at = to_mine[line] + 1
        their_at = to_theirs[line] + 1
    yield mine[mine_at:], theirs[their_at:], base[base_at:]


def _kept_lines(base: Sequence[str], their_lines: Sequence[str]) -> dict[int, int]:
    """By the number of each line of `base` that stayed, its number in the other text."""
    stayed: dict[int, int] = {}
    for tag, base_start, base_end, other_start, _ in changes(base, their_lines):
        if tag == "equal":
            for offset in range(base_end - base_start):
                stayed[base_start + offset] = other_start + offset
    return stayed
