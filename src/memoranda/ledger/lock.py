"""The one lock of all writers of a home.

It is a `flock` on the home's private folder. A lock file could be deleted, and a new one in its
place would let a second writer in. The file `lock` in the folder has one line that names the
holder. A holder that ends clears the line. So a line that is found when the lock is taken is of a
writer that died.
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
# The beginning of the holder's line, with the number of its process.
_PID = re.compile(rb"(\d+) ")
# The file keeps its size, so that no other process sees half a line.
_NOBODY = b" " * (SIGNATURE - 1) + b"\n"


class HomeLock:
    """A thread lock within the process, and a `flock` on `folder` between processes. Re-entrant.

    on_taken: called each time the lock goes from free to held, before the caller does anything. Its
        argument says whether the previous writer may have died at work.

    Entering raises Busy, OSError, and the errors of `on_taken`.
    """

    def __init__(self, folder: Path, on_taken: Callable[[bool], None]):
        self._folder = folder
        self._holder_file = folder / HOLDER
        self._thread_lock = ThreadLock()
        # How often the lock is entered and not left yet, by this thread
        self._depth = 0
        self._on_taken = on_taken
        # Descriptors of the folder and of the holder's file, None while they are not open
        self._fd: int | None = None
        self._holder_fd: int | None = None
        # Whether the holder's line stays at the end, as if the process had died
        self._is_torn = False

    def __enter__(self) -> HomeLock:
        """Take the lock, first among the threads of this process, then among processes.

        If this thread holds the lock already, it must be left once more.
        """
        self._thread_lock.__enter__()
        try:
            if self._depth == 0:
                self._take()
            self._depth += 1
        except BaseException:
            self._thread_lock.__exit__()
            raise
        return self

    @property
    def is_held(self) -> bool:
        """Whether a thread of this process holds the lock."""
        return self._depth > 0

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0 and self._fd is not None:
                self._release()
        finally:
            self._thread_lock.__exit__()

    def _take(self) -> None:
        """Take the `flock` and call `on_taken`. Raises Busy, OSError."""
        while True:
            if self._fd is None:
                self._fd = os.open(self._folder, _FOLDER)
            take_lock(self._fd, fcntl.LOCK_EX)
            if is_at(self._fd, self._folder):
                break
            # The folder was exchanged: a lock on the old one excludes nobody
            self.close()
        try:
            self._on_taken(self._sign())
        except BaseException:
            self._release()
            raise

    def _sign(self) -> bool:
        """Write the holder's line. Returns whether the previous writer may have died at work."""
        try:
            holder_fd, is_new_file = self._open_holder_file()
            # A writer that ends its work clears its line
            has_old_line = os.pread(holder_fd, SIGNATURE, 0).strip() != b""
            os.pwrite(holder_fd, signature(), 0)
        except OSError as error:
            is_not_a_file = error.errno == errno.ENODEV
            if is_not_a_file:
                raise
            # Nothing may be written here, so there is no line, and no writer that could have died
            return False
        # If somebody deleted the file, the line of a dead writer may be lost with it
        return has_old_line or is_new_file

    def _open_holder_file(self) -> tuple[int, bool]:
        """Return the descriptor of the holder's file, and whether the file was just made.

        Raises OSError.
        """
        if self._holder_fd is not None and is_at(self._holder_fd, self._holder_file):
            return self._holder_fd, False
        self._close_holder_file()
        is_new = not self._holder_file.exists()
        self._holder_fd = open_own(self._holder_file)
        return self._holder_fd, is_new

    def _release(self) -> None:
        """Clear the holder's line and give the `flock` up."""
        assert self._fd is not None
        if self._holder_fd is not None and not self._is_torn:
            with suppress(OSError):
                os.pwrite(self._holder_fd, _NOBODY, 0)
        self._is_torn = False
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def leave_torn(self) -> None:
        """Let the next holder of the lock complete the work, as if this process had died.

        `_release` then leaves the line with the process id of this holder, as a crash would.
        """
        self._is_torn = True

    def died(self) -> bool:
        """Whether a writer died at work and nobody has taken the lock since.

        The lock need not be held.
        """
        try:
            line = self._holders_line()
        except OSError:
            return False
        match = _PID.match(line)
        if match is None:
            return False
        process = int(match[1])
        if process == os.getpid() and self._depth == 0:
            # This process does not hold the lock: a dead process had the same number
            return True
        return not is_alive(process)

    def keep(self) -> None:
        """Keep other processes out after the holder leaves the lock, until `let_go` is called.

        Other threads of this process can enter the lock meanwhile.
        """
        self._depth += 1

    def let_go(self) -> None:
        """End `keep`. The caller holds the lock, which becomes free when the caller leaves it."""
        self._depth -= 1

    def _holders_line(self) -> bytes:
        """Return the line of the last holder of the lock. Raises OSError."""
        if self._holder_fd is not None:
            return os.pread(self._holder_fd, SIGNATURE, 0)
        # Opened only for reading, so the descriptor cannot be kept for a later line of our own
        holder_fd = open_own(self._holder_file, os.O_RDONLY)
        try:
            return os.pread(holder_fd, SIGNATURE, 0)
        finally:
            os.close(holder_fd)

    def _close_holder_file(self) -> None:
        """Close the file with the holder's line, if it is open."""
        if self._holder_fd is not None:
            os.close(self._holder_fd)
            self._holder_fd = None

    def close(self) -> None:
        """Close the files. This frees the lock, if it is held."""
        self._close_holder_file()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
