"""A change of lines in a file of another program: as a step makes it, and as the ledger keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from memoranda.sources.locked_file import FileWrite


@dataclass(slots=True)
class LineChange:
    """The effect of a step LINES on a file.

    place: the absolute path of the file.
    numbers: the numbers of the lines that change or are removed. They count from 0, in the file before.
    old, new: these lines before and after, in the same order. A removed line is empty after.
    added: further new lines.
    write: writes the lines into the file, whose lock is held until then.
    """

    place: str
    numbers: list[int]
    old: list[bytes]
    new: list[bytes]
    added: list[bytes]
    write: FileWrite

    @property
    def written(self) -> bytes:
        """All new and changed lines."""
        return b"".join([*self.new, *self.added])


class KeptLines(NamedTuple):
    """The lines of one change, as the history keeps them.

    replaced: (number, line before, line after). Numbers count from 0, in the file before. The line
        after is empty if the line was removed.
    added: lines at the end.
    """

    replaced: list[tuple[int, bytes, bytes]]
    added: list[bytes]

    def all(self) -> Iterator[bytes]:
        """Yield every line, those that were removed and those that were added."""
        for _, old, new in self.replaced:
            yield old
            yield new
        yield from self.added

    def without(self, is_meant: Callable[[bytes], bool]) -> KeptLines:
        """Return a copy without some lines, their former texts and their later texts.

        is_meant: says for a line whether to leave it out.
        """
        replaced = [
            (number, old, new)
            for number, old, new in self.replaced
            if not (is_meant(old) or is_meant(new))
        ]
        return KeptLines(replaced, [line for line in self.added if not is_meant(line)])


def former_places(numbers: Sequence[int], remaining: Sequence[int], end: int) -> list[int]:
    """Find where to insert removed lines again. Returns one line number for each removed line.

    The line goes back in front of the present line with this number. If the first of three lines
    was removed, `former_places([0], [0, 1], 2)` is `[0]`.

    numbers: the numbers that the lines had when they were removed, in ascending order.
    remaining: the present numbers of the lines that were not removed, in ascending order.
    end: the number to return for a line that belongs at the end.
    """
    places: list[int] = []
    for inserted_before, number in enumerate(numbers):
        # The lines inserted before this one are not in the file yet
        position = number - inserted_before
        if position < len(remaining):
            places.append(remaining[position])
        else:
            places.append(end)
    return places
