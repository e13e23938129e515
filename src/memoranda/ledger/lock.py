"""The one lock of all writers of a home.

It is a `flock` on the home's private folder: a lock file could be deleted, and a second one beside
it would let a second writer in. The file `lock` inside only says who holds it. A holder that ends
clears its line, so a line that is found when the lock is taken is of a writer that died.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memoranda.sources.files import (
    HOLDER,
    SIGNATURE,
    ThreadLock,
    is_alive,
    is_at,
    open_own,
    signature,
    take_lock,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# The number of the process that holds the lock, at the beginning of its file.
_PID = re.compile(rb"(\d+) ")
# The file keeps its size, so that no other process sees half a line.
_NOBODY = b" " * (SIGNATURE - 1) + b"\n"


class HomeLock:
    """A thread lock within the process and `flock` on `folder` between processes. Re-entrant.

    `entered` runs each time the lock goes from free to held, before the caller does anything; its
    argument says whether the writer before may have died at work. Raises Busy, OSError.
    """

    def __init__(self, folder: Path, entered: Callable[[bool], None]):
        self._folder = folder
        self._holder = folder / HOLDER
        self._threads = ThreadLock()
        self._depth = 0
        self._entered = entered
        self._fd: int | None = None
        self._note: int | None = None
        self._is_torn = False

    def __enter__(self) -> HomeLock:
        self._threads.__enter__()
        try:
            if self._depth == 0:
                self._take()
            self._depth += 1
        except BaseException:
            self._threads.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0 and self._fd is not None:
                self._release()
        finally:
            self._threads.__exit__()

    def _take(self) -> None:
        while True:
            if self._fd is None:
                self._fd = os.open(self._folder, _FOLDER)
            take_lock(self._fd, fcntl.LOCK_EX)
            if is_at(self._fd, self._folder):
                break
            # The folder was exchanged: a lock on the old one excludes nobody
            self.close()
        try:
            self._entered(self._sign())
        except BaseException:
            self._release()
            raise

    def _sign(self) -> bool:
        """Say who holds the lock. Returns whether the writer before may have died at work."""
        try:
            if self._note is None or not is_at(self._note, self._holder):
                self._close_note()
                is_new = not self._holder.exists()
                self._note = open_own(self._holder)
                # Somebody deleted what a dead writer would have left
                has_died = is_new
            else:
                has_died = False
            has_died |= os.pread(self._note, SIGNATURE, 0).strip() != b""
            os.pwrite(self._note, signature(), 0)
        except OSError as error:
            if error.errno == errno.ENODEV:
                # Something else than a file has its name
                raise
            # Nothing may be written here: nobody is told who holds the lock
            return False
        return has_died

    def _release(self) -> None:
        assert self._fd is not None
        if self._note is not None and not self._is_torn:
            with suppress(OSError):
                os.pwrite(self._note, _NOBODY, 0)
        self._is_torn = False
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def leave_torn(self) -> None:
        """Record that the work was interrupted, so that the next holder of the lock checks it."""
        self._is_torn = True

    def died(self) -> bool:
        """Whether a writer died at work and nobody has taken the lock since; may be asked by
        anybody.
        """
        try:
            if self._note is None:
                self._note = open_own(self._holder, os.O_RDONLY)
                written = os.pread(self._note, SIGNATURE, 0)
                self._close_note()
            else:
                written = os.pread(self._note, SIGNATURE, 0)
        except OSError:
            return False
        match = _PID.match(written)
        if match is None:
            return False
        is_ours = int(match[1]) == os.getpid()
        return not is_alive(int(match[1])) or (is_ours and self._depth == 0)

    def keep(self) -> None:
        """Hold it on when the holder leaves, until some holder calls `let_go`."""
        self._depth += 1

    def let_go(self) -> None:
        """Take `keep` back. The lock is free as soon as the holder leaves."""
        self._depth -= 1

    def _close_note(self) -> None:
        if self._note is not None:
            os.close(self._note)
            self._note = None

    def close(self) -> None:
        """Release the folder."""
        self._close_note()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
