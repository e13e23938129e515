"""A change of lines in a file used in place: what the ledger keeps of it, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass

from memoranda.sources.locked_file import FileWrite


@dataclass(slots=True)
class LineChange:
    """What a step `lines` does to the file at `place`.

    `numbers` are those, from 0 and in the file as it was, of the lines that change or go; `old` and
    `new` what they were and become (empty: removed), `added` the other new lines. `write` brings
    them into the file, whose lock is held until then.
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
