"""A change of lines in a file used in place, as the ledger hears of it before the file has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LineChange:
    """A change that is about to reach the file at `place`.

    `numbers` are those, from 0 and in the file as it was, of the lines that change or go; `old` and
    `new` what they were and become (empty: removed), `added` the other new lines. If these are
    appended, `size` is the file's size before and `data` the bytes to come; else `size` is None.
    `inode` is that of the file, or of the one that will replace it. Where the file is overwritten
    `whole` is its old content and `data` the new one.
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
