"""The access log: a read appends one line, so it never rewrites a note (docs/format.md).

A line is `<count> <key>`; the count 0 means that what was counted before is over. `@<seconds>
<key>` says when a memory was last used: shown with its text by a search (contract 001, 18.3).
Counts shown are frontmatter + log. Who appends holds the file's lock shared, who folds the log
holds it alone and puts a new file in its place.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memoranda.clock import waits_at_most
from memoranda.errors import Busy
from memoranda.store.base import File
from memoranda.store.files import lock_file, open_own, read_file

_APPEND = os.O_WRONLY | os.O_APPEND
_PATIENCE = 0.25
"""Seconds a read waits for the log, before it is not counted."""


@dataclass(frozen=True, slots=True)
class LockedLog:
    """The access log under an exclusive lock: its `name` and `file`, the reads by key, when the
    last one was, and the last use by key in seconds since 1970."""

    name: str
    file: File
    counts: Counter[str]
    changed: datetime
    used: Mapping[str, int]

    @property
    def is_short(self) -> bool:
        """Whether it holds one line a key and nothing else."""
        return self.file.data == self.lines(self.counts, self.used)

    def lines(self, counts: Mapping[str, int], used: Mapping[str, int]) -> bytes:
        """The bytes of a log with just these counts and uses."""
        rows = [*counts.items(), *((key, f"@{second}") for key, second in used.items())]
        return "".join(f"{said} {key}\n" for key, said in rows).encode()


class AccessLog:
    """Reads counted so far, by key (a note's id)."""

    def __init__(self, path: Path):
        self._path = path
        self._reading = threading.Lock()
        # Kept open: while it is, no other file gets its inode's number
        self._fd: int | None = None
        self._size = 0
        self._counts: Counter[str] = Counter()
        self._used: dict[str, int] = {}

    def count_read(self, key: str, times: int = 1) -> None:
        """Count reads of `key`. A log that cannot be written costs the count, not the read."""
        self._append([f"{times} {key}\n"])

    def note_use(self, keys: Iterable[str], moment: datetime) -> None:
        """Note that these were used at `moment`. A log that cannot be written costs the note, not
        the use.
        """
        self._append([f"@{int(moment.timestamp())} {key}\n" for key in keys])

    def restart(self, *keys: str) -> None:
        """Forget the reads of these so far: other notes begin in their place."""
        self._append([f"0 {key}\n" for key in dict.fromkeys(keys) if self.counts().get(key)])

    def _append(self, lines: Iterable[str]) -> None:
        # Else a key would say more than itself
        data = "".join(line for line in lines if line.count("\n") == 1).encode()
        if not data:
            return
        try:
            with waits_at_most(_PATIENCE):
                fd = lock_file(self._path, fcntl.LOCK_SH, access=_APPEND)
        except (OSError, Busy):
            return
        try:
            os.write(fd, data)
        except OSError:
            return
        finally:
            os.close(fd)

    @contextmanager
    def locked(self) -> Iterator[LockedLog]:
        """The whole log; inside, no read is counted. Raises OSError."""
        fd = lock_file(self._path, fcntl.LOCK_EX, access=_APPEND)
        try:
            file = read_file(str(self._path))
            changed = datetime.fromtimestamp(file.stamp.mtime_ns // 1_000_000_000, UTC)
            # Of this file alone, whatever a subclass adds
            own = (
                AccessLog.counts(self),
                AccessLog.used(self),
            )
            yield LockedLog(self._path.name, file, Counter(own[0]), changed, dict(own[1]))
        finally:
            os.close(fd)

    def stamp(self) -> tuple[int, int]:
        """(size, inode) of the log, zeros while it is empty: another one after each read counted or
        folded.
        """
        try:
            status = os.stat(self._path)
        except OSError:
            return 0, 0
        return status.st_size, status.st_ino if status.st_size else 0

    def counts(self) -> Counter[str]:
        """Reads per key in the log, including those of other processes up to now."""
        with self._reading:
            try:
                status = os.stat(self._path)
                # Another is read anew
                if self._fd is None or not os.path.samestat(status, os.fstat(self._fd)):
                    self._let_go()
                    self._fd = open_own(self._path, os.O_RDONLY)
            except OSError:
                self._let_go()
            if self._fd is None:
                return Counter()
            size = os.fstat(self._fd).st_size
            while self._size < size:
                block = os.pread(self._fd, min(1 << 20, size - self._size), self._size)
                whole = block.rfind(b"\n") + 1
                if not whole:
                    break
                self._size += whole
                for line in block[:whole].decode("utf-8", "replace").split("\n"):
                    count, _, key = line.partition(" ")
                    if count == "0":
                        self._counts.pop(key, None)
                        self._used.pop(key, None)
                    elif count.isdigit() and key:
                        self._counts[key] += int(count)
                    elif count[:1] == "@" and count[1:].isdigit() and key:
                        self._used[key] = max(self._used.get(key, 0), int(count[1:]))
            return self._counts

    def used(self) -> Mapping[str, int]:
        """When each key was last used, in seconds since 1970, as far as the log says."""
        self.counts()
        return self._used

    def _let_go(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._size, self._counts, self._used = None, 0, Counter(), {}

    def close(self) -> None:
        """Release the file."""
        with self._reading:
            self._let_go()
