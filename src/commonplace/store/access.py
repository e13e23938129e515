"""The access log: a read appends one line, so it never rewrites a note (DESIGN.md, 4).

A line is `<count> <key>`; the count 0 means that what was counted before is over. Counts shown are
frontmatter + log.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


class AccessLog:
    """Reads counted so far, by key (a note's id)."""

    def __init__(self, path: Path):
        self._path = path
        self._size = 0
        self._inode = 0
        self._counts: Counter[str] = Counter()

    def note(self, key: str) -> None:
        """Count one read of `key`. A log that cannot be written costs the count, not the read."""
        self._append(f"1 {key}\n")

    def restart(self, key: str) -> None:
        """Forget the reads of `key` so far: another note begins in its place."""
        self._append(f"0 {key}\n")

    def _append(self, line: str) -> None:
        try:
            fd = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.write(fd, line.encode())
        except OSError:
            return
        finally:
            os.close(fd)

    def counts(self) -> Counter[str]:
        """Reads per key in the log, including those of other processes up to now."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return Counter()
        try:
            status = os.fstat(fd)
            if status.st_ino != self._inode or status.st_size < self._size:
                self._counts, self._size, self._inode = Counter(), 0, status.st_ino
            while self._size < status.st_size:
                block = os.pread(fd, min(1 << 20, status.st_size - self._size), self._size)
                whole = block.rfind(b"\n") + 1
                if not whole:
                    break
                self._add(block[:whole])
                self._size += whole
        finally:
            os.close(fd)
        return self._counts

    def _add(self, block: bytes) -> None:
        for line in block.decode("utf-8", "replace").splitlines():
            count, _, key = line.partition(" ")
            if count == "0":
                self._counts.pop(key, None)
            elif count.isdigit() and key:
                self._counts[key] += int(count)
