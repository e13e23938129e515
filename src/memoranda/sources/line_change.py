"""A change of lines in a file used in place: what the ledger keeps of it, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
