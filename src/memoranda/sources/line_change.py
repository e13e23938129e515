"""A change of lines in a file used in place, as the ledger hears of it before the file has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LineChange:
    """A change that is about to reach the file at `place`.

    place: the file.
    verb: the name of the change in the history.
    numbers: the lines that change or are removed, from 0, in the file before.
    old, new: these lines before and after. Empty if removed.
    added: the other new lines.
    inode: the inode of the file, or of the file that will replace it.
    size: the file's size before, if the new lines are appended. Otherwise None.
    data: the bytes to append, or the new contents if the file is overwritten.
    whole: the old contents, if the file is overwritten.
    """

    place: str
    verb: str
    numbers: list[int]
    old: list[bytes]
    new: list[bytes]
    added: list[bytes]
    inode: int = 0
    size: int | None = None
    data: bytes = b""
    whole: bytes | None = None
