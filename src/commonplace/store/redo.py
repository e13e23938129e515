"""The redo record: what the change under way is about to do, in a file that keeps its blocks.

Two lines, each JSON and a checksum that goes on from the line before: the temp files to come, then the steps. What
counts begins with `{` and ends with the first NUL; behind that an older, longer record may show through. A record is
dropped by a mark over its first byte: to cut the file would cost more than all the syncs of a small change.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from zlib import crc32

_WAITS, _DROPPED, _END = b"{", b"-", b"\0"
_LARGE = 1 << 16
"""Bytes from which on a dropped record is cut off after all."""


class Redo:
    """The record at `path`, for the holder of the home's lock; `waits` may be asked by anybody. Raises OSError."""

    def __init__(self, path: Path):
        self._path = path
        self._fd = self._open()
        self._end = 0
        self._sum = 0

    def _open(self) -> int:
        return os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        os.close(self._fd)

    def waits(self) -> bool:
        """Whether there is a record: its writer is at work, or died."""
        return os.pread(self._fd, 1, 0) == _WAITS

    def read(self) -> bytes:
        """The file's bytes, for `lines_of`."""
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def begin(self, row: dict[str, Any]) -> None:
        """The first line of a new record."""
        self._end = self._sum = 0
        self.add(row)

    def add(self, row: dict[str, Any]) -> None:
        """One more line. It counts from the moment all of it is there."""
        text = json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode()
        self._sum = crc32(text, self._sum)
        line = b"%s %08x\n" % (text, self._sum)
        self._put(line[1:] + _END, self._end + 1)
        self._put(line[:1], self._end)
        self._end += len(line)

    def _put(self, data: bytes, at: int) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self._fd, data[done:], at + done)

    def sync(self) -> None:
        """Make it durable as it is now."""
        os.fdatasync(self._fd)

    def drop(self) -> None:
        """No step of it may be carried out again."""
        if not self.waits():
            return
        try:
            if os.fstat(self._fd).st_size > _LARGE:
                os.ftruncate(self._fd, 0)
            else:
                os.pwrite(self._fd, _DROPPED, 0)
        except OSError:  # what cannot be cut can be marked, and the other way round
            os.pwrite(self._fd, _DROPPED, 0)
            os.ftruncate(self._fd, 0)

    def refresh(self) -> None:
        """Another process may have set the record aside: then a new one is in use."""
        try:
            if os.stat(self._path).st_ino == os.fstat(self._fd).st_ino:
                return
        except FileNotFoundError:
            pass
        os.close(self._fd)
        self._fd = self._open()

    def set_aside(self, name: str) -> None:
        """Rename it to `name` and use a new one."""
        os.rename(self._path, name)
        self.refresh()


def lines_of(data: bytes) -> list[Any]:
    """The lines of a record that are there as a whole, none for one that was dropped. Raises ValueError for damage."""
    if not data.startswith(_WAITS):
        return []
    rows, total = [], 0
    for line in data.partition(_END)[0].split(b"\n")[:-1]:
        text, _, known = line.rpartition(b" ")
        if line.endswith(b"}"):  # as written before there were checksums
            text, known = line, b""
        total = crc32(text, total)
        if known and known != b"%08x" % total:
            raise ValueError("its checksum does not fit")
        rows.append(json.loads(text))
    return rows
