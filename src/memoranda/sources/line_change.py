"""A change of lines in a file used in place: the effect of a step, and what the ledger keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from memoranda.sources.locked_file import FileWrite


@dataclass(slots=True)
class LineChange:
    """The effect of a step `lines` on the file at `place`.

    numbers: the lines that change or are removed, from 0, in the file before.
    old, new: these lines before and after. Empty if removed.
    added: the other new lines.
    write: brings the lines into the file, whose lock is held until then.
    """

    place: str
    numbers: list[int]
    old: list[bytes]
    new: list[bytes]
    added: list[bytes]
    write: FileWrite

    @property
    def written(self) -> bytes:
        """All lines that come."""
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
        """Every line that went or came."""
        for _, old, new in self.replaced:
            yield old
            yield new
        yield from self.added

    def without(self, is_meant: Callable[[bytes], bool]) -> KeptLines:
        """The same without the lines that are meant, and those they took the place of."""
        replaced = [row for row in self.replaced if not (is_meant(row[1]) or is_meant(row[2]))]
        return KeptLines(replaced, [line for line in self.added if not is_meant(line)])
