"""Bytes on disk: durable writes, reads, `flock`, and what an OSError means in plain words."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from memoranda.clock import may_wait, wait_for
from memoranda.errors import Busy, MemorandaError, NotFound, StorageError
from memoranda.sources.base import File, Stamp, bounded, sha256

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Errors of the system in words.
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this system allows",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EISDIR: "it is a folder",
    errno.EIO: "the disk reported an input/output error",
    errno.EMFILE: "too many files are open",
    errno.ELOOP: "too many symbolic links",
    errno.EILSEQ: "the file system refuses this name",
    errno.EINVAL: "the file system refuses this name",
    errno.ENXIO: "something else than a file is there",
}

UNWRITABLE = frozenset(
    (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)
)
"""The errors of the system for a file that cannot be written or made, though it may be read."""
NAME_REASONS = frozenset(
    _REASONS[each] for each in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
)
"""The reasons that blame the name, not the disk."""


def reason(error: OSError) -> str:
    """Why the disk said no, without host path or exception name."""
    return _REASONS.get(error.errno or 0, (error.strerror or "the disk refused").lower())


@contextmanager
def storing(path: str) -> Iterator[None]:
    """Raise an OSError met inside as the StorageError of `path`."""
    try:
        yield
    except OSError as error:
        raise StorageError(path, reason(error)) from None


def refusal(path: str, error: OSError) -> MemorandaError:
    """The error of our tree for an OSError met at the project-relative `path`."""
    if error.errno == errno.ENOENT:
        return NotFound(path)
    return StorageError(path, reason(error))


def write_file(
    name: str, data: bytes, *, mode: int = 0o600, folder: int | None = None, durable: bool = True
) -> os.stat_result:
    """Create the file `name` (in the open folder `folder`) with `data`; with `durable`, fsync it.

    The mode is set exactly, whatever the umask. On failure nothing stays. Returns the file's
    status. Raises FileExistsError, OSError.
    """
    fd = os.open(
        name,
        os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW,
        0o600,
        dir_fd=folder,
    )
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            status = os.fstat(fd)
            if stat.S_IMODE(status.st_mode) != mode:
                os.fchmod(fd, mode)
            if durable:
                os.fsync(fd)
            return status
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a stat result."""
    return bounded((status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns))


def stat_in(name: str, folder: int) -> os.stat_result | None:
    """The status of `name` in an open folder, without following a symlink.

    None if it does not exist.
    """
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_file(name: str, folder: int | None = None) -> File:
    """The regular file `name`, of an open folder if given; a symlink is refused. Raises OSError."""
    fd = os.open(name, _READ, dir_fd=folder)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "not a regular file")
        data = read_fd(fd)
        born = getattr(status, "st_birthtime", None)
        return File(data, stamp_of(status), sha256(data), stat.S_IMODE(status.st_mode), born)
    finally:
        os.close(fd)


def digest_of(path: str | Path) -> str:
    """The SHA-256 of a file, as 64 hex digits. It is read in pieces, since it may exceed the
    memory.

    Raises OSError.
    """
    # 3 ms; most calls need none
    from hashlib import file_digest

    with open(os.open(path, _READ), "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def put_derived(path: Path, data: bytes) -> bool:
    """Make the file at `path`, which nobody but us writes, hold `data`; readers see the old or the
    new one.

    Returns False when it held it already. Raises StorageError.
    """
    with storing(path.name):
        if path.is_file() and path.read_bytes() == data:
            return False
        temporary_file = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
        write_file(str(temporary_file), data)
        try:
            os.replace(temporary_file, path)
        except OSError:
            os.unlink(temporary_file)
            raise
    return True


def remove_left(folder: Path | str, names: re.Pattern[str]) -> None:
    """Remove the temp files in `folder` whose writer died: names that match whole, the process in
    the first group.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            if name[0] == "." and (match := names.fullmatch(name)) and not is_alive(int(match[1])):
                os.unlink(os.path.join(folder, name))


def is_alive(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def read_fd(fd: int) -> bytes:
    """All bytes of an open file."""
    size = os.fstat(fd).st_size
    parts = []
    wanted_size = size + 1
    while part := os.read(fd, wanted_size):
        parts.append(part)
        size -= len(part)
        wanted_size = max(size + 1, 65536)
    if len(parts) == 1:
        return parts[0]
    return b"".join(parts)


def make_private(folder: Path) -> None:
    """Make `folder` and missing parents, each 0700 whatever the umask, durably. Raises OSError."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for this_folder in reversed(missing):
        try:
            os.mkdir(this_folder, 0o700)
            os.chmod(this_folder, 0o700)
        except FileExistsError:
            continue
        sync_folder(this_folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the entries of `folder` durable; one that may be passed through, not read, is left to
    the system.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


LOCK_WAITS = 3.0
"""Seconds a holder may have a lock before those who wait for it are refused."""
HOLDER = "lock"
"""The file in a locked folder that says who holds the lock."""
SIGNATURE = 80
"""Bytes of what it says."""
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz-")
# The line of a lock's holder: its process, and perhaps its time and command.
_SIGNED = re.compile(rb"(\d+)(?: (\d{9,}\.\d{3}) ([^\n]*?) *)?\n")


class Owner(NamedTuple):
    """Who holds a lock: process, since when (Unix time, 0.0 = unknown), and its command in at most
    two words.
    """

    pid: str
    since: float = 0.0
    command: str = ""

    def __str__(self) -> str:
        if self.pid:
            name = f"process {self.pid}"
        else:
            name = "another program"
        if self.command:
            command = f" ({self.command})"
        else:
            command = ""
        if not self.since:
            return name + command
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.since))
        return (
            f"{name}{command} since {since}, for {max(0, round(time.time() - self.since))} seconds"
        )


class Closable(Protocol):
    """A connection of any database."""

    def close(self) -> None: ...


@contextmanager
def closed_on_error(connection: Closable) -> Iterator[None]:
    """Close `connection` when the block raises, as nobody else gets hold of it then.

    A connection that is left to the garbage collector keeps its file open, and warns.
    """
    try:
        yield
    except BaseException:
        connection.close()
        raise


def open_own(path: Path | str, access: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open one of the home's own files, or create it as private.

    Anything but a regular file is refused, without opening it or waiting for it. Raises OSError.
    """
    check_own(path)
    fd = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    # Something else was put there in between.
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _odd(path)
    return fd


def check_own(path: Path | str) -> None:
    """Raise OSError when something else than a file has the name of one of the home's own files."""
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _odd(path)


def _odd(path: Path | str) -> OSError:
    return OSError(errno.ENODEV, f"{os.path.basename(path)} is no regular file; remove it")


def lock_file(path: Path | str, how: int, *, access: int = os.O_RDWR, make: bool = True) -> int:
    """Open the file at `path` and `flock` it. Returns its descriptor, which is the lock.

    how: the operation, as fcntl takes it.
    access: the mode to open it with.
    make: create a missing file.

    Afterwards it is checked that the file is still the one at `path`, since another may have taken
    its place. Raises OSError; FileNotFoundError without `make`; Busy, or BlockingIOError if `how`
    says not to wait.
    """
    while True:
        fd = open_own(path, access | (os.O_CREAT if make else 0))
        try:
            if how & fcntl.LOCK_NB:
                fcntl.flock(fd, how)
            else:
                take_lock(fd, how)
            if is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def take_lock(fd: int, how: int) -> None:
    """`flock` the open file. Raises Busy when somebody keeps it for LOCK_WAITS, or the call waited
    long enough.
    """

    try:
        return fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(fd)

    def is_taken() -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            return True
        return False

    while not wait_for(
        is_taken, max(0.005, LOCK_WAITS - (time.time() - owner.since if owner.since else 0.0))
    ):
        before = owner
        owner = _owner(fd)
        if owner[:2] == before[:2] or not may_wait():
            raise Busy(str(owner))


@cache
def _command(*arguments: str) -> str:
    """The program and its first word, if it is one: further arguments may be private."""
    words = [
        os.path.basename(sys.executable if argument.startswith("-") else argument)
        for argument in arguments[:1]
    ]
    words += [argument for argument in arguments[1:2] if argument and _WORD.issuperset(argument)]
    return " ".join(words)[:50]


def _signature(fd: int) -> bytes:
    """The text that the holder of the lock wrote: into the locked file, or into `lock` in the
    folder."""
    with suppress(OSError):
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            return os.pread(fd, SIGNATURE, 0)
        holder_file = os.open(HOLDER, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=fd)
        try:
            return os.pread(holder_file, SIGNATURE, 0)
        finally:
            os.close(holder_file)
    return b""


def signature() -> bytes:
    """The signature of a process that takes a lock: SIGNATURE bytes."""
    text = f"{os.getpid()} {time.time():.3f} {_command(*sys.argv)}"
    return text.encode().ljust(SIGNATURE)[: SIGNATURE - 1] + b"\n"


def _owner(fd: int) -> Owner:
    """The holder of the lock on the open file, by the name it signed with, or by the system on
    Linux.
    """
    signed = _SIGNED.match(_signature(fd))
    # A process that has ended signed it, and another holds the lock.
    if signed and is_alive(int(signed[1])):
        return Owner(
            signed[1].decode(), float(signed[2] or 0), (signed[3] or b"").decode("utf-8", "replace")
        )
    try:
        status = os.fstat(fd)
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        pids = [row[4] for row in rows if row[1] == "FLOCK" and row[5] == place]
        pid = next((pid_text for pid_text in pids if is_alive(int(pid_text))), "")
        return Owner(
            pid, 0.0, _command(*Path(f"/proc/{pid}/cmdline").read_text().split("\0")) if pid else ""
        )
    except (OSError, ValueError):
        return Owner("")


def lock_owner(path: Path | str) -> Owner | None:
    """The holder of the lock on the file or folder at `path`.

    None if it is free. Raises OSError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(fd)
    finally:
        os.close(fd)
    return None


def is_at(fd: int, path: Path | str) -> bool:
    """Whether the open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


@contextmanager
def lock_folders(folders: Iterable[str]) -> Iterator[None]:
    """Lock these folders against other homes that use them too.

    Every home has a lock of its own, but several homes may share a folder. A folder that is
    missing, or on a disk without locks, is skipped.
    """
    held_locks: dict[tuple[int, int], int] = {}
    try:
        for folder in folders:
            try:
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                continue
            status = os.fstat(fd)
            if held_locks.setdefault((status.st_dev, status.st_ino), fd) != fd:
                os.close(fd)
        # In one order for all, or two processes could wait for each other
        for _, fd in sorted(held_locks.items()):
            with suppress(OSError):
                take_lock(fd, fcntl.LOCK_EX)
        yield
    finally:
        for fd in held_locks.values():
            os.close(fd)


class ThreadLock:
    """A re-entrant lock for the threads of this process. They get it in the order in which they
    came.

    No thread waits for it without end. Raises Busy.
    """

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._queue: deque[tuple[int, threading.Lock]] = deque()
        self._owner = 0
        self._depth = 0

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return self._owner == threading.get_ident()

    def __enter__(self) -> None:
        me = threading.get_ident()
        turn = None
        if self._owner != me:
            with self._counting:
                if self._owner:
                    turn = threading.Lock()
                    turn.acquire()
                    self._queue.append((me, turn))
                else:
                    self._owner = me
        # Released by the one inside, who passes the lock on to this thread
        if turn is not None:
            try:
                if not wait_for(lambda: turn.acquire(timeout=0.25)):
                    raise Busy(f"another call of this process ({os.getpid()})")
            except BaseException:
                with self._counting:
                    is_waiting = (me, turn) in self._queue
                    if is_waiting:
                        self._queue.remove((me, turn))
                # Its turn came at the last moment
                if not is_waiting:
                    self._depth = 1
                    self.__exit__()
                raise
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            with self._counting:
                self._owner = 0
                if self._queue:
                    self._owner, turn = self._queue.popleft()
                    turn.release()

    def take_if_free(self) -> bool:
        """Enter without waiting, if nobody is inside."""
        with self._counting:
            if self._owner:
                return False
            self._owner = threading.get_ident()
            self._depth = 1
            return True
