"""Bytes on disk: durable writes, reads, `flock`, and what an OSError means in plain words."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commonplace.errors import CommonplaceError, NotFound, StorageError
from commonplace.store.base import File, Stamp, bounded, sha256

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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
}

NAME_REASONS = frozenset(_REASONS[each] for each in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL))
"""The reasons that blame the name, not the disk."""


def reason(error: OSError) -> str:
    """Why the disk said no, without host path or exception name."""
    return _REASONS.get(error.errno or 0, (error.strerror or "the disk refused").lower())


def refusal(path: str, error: OSError) -> CommonplaceError:
    """The error of our tree for an OSError met at the project-relative `path`."""
    if error.errno == errno.ENOENT:
        return NotFound(path)
    return StorageError(path, reason(error))


def write_file(
    name: str, data: bytes, *, mode: int = 0o600, folder: int | None = None, durable: bool = True
) -> os.stat_result:
    """Create the file `name` (in the open folder `folder`) with `data`; with `durable`, fsync it.

    The mode is set exactly, whatever the umask. On failure nothing stays. Returns the file's status. Raises
    FileExistsError, OSError.
    """
    fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            os.fchmod(fd, mode)
            if durable:
                os.fsync(fd)
            return os.fstat(fd)
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a stat result."""
    return bounded((status.st_size, status.st_mtime_ns, status.st_ino))


def stat_in(name: str, folder: int) -> os.stat_result | None:
    """The status of `name` in an open folder, a symlink not followed; None when there is nothing."""
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


def put_derived(path: Path, data: bytes) -> bool:
    """Make the file at `path`, which nobody but us writes, hold `data`; readers see the old or the new one.

    Returns False when it held it already. Raises StorageError.
    """
    try:
        if path.is_file() and path.read_bytes() == data:
            return False
        fresh = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
        write_file(str(fresh), data)
        try:
            os.replace(fresh, path)
        except OSError:
            os.unlink(fresh)
            raise
    except OSError as error:
        raise StorageError(path.name, reason(error)) from None
    return True


def read_fd(fd: int) -> bytes:
    """All bytes of an open file."""
    size = os.fstat(fd).st_size
    parts, wanted = [], size + 1
    while part := os.read(fd, wanted):
        parts.append(part)
        size -= len(part)
        wanted = max(size + 1, 65536)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def make_private(folder: Path) -> None:
    """Make `folder` and missing parents, each 0700 whatever the umask, durably. Raises OSError."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
            os.chmod(each, 0o700)
        except FileExistsError:
            continue
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make the entries of `folder` durable; one that may be passed through, not read, is left to the system."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def lock_file(path: Path | str, how: int, *, access: int = os.O_RDWR, make: bool = True) -> int:
    """Open the file at `path` and `flock` it (`how`, as fcntl takes it). Returns its descriptor, which is the lock.

    Checks afterwards that the file is still the one at `path`: another may have taken its place meanwhile. Raises
    OSError; FileNotFoundError without `make`; BlockingIOError when `how` says not to wait.
    """
    while True:
        fd = os.open(path, access | (os.O_CREAT if make else 0) | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            fcntl.flock(fd, how)
            if is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def lock_owner(path: Path | str) -> str | None:
    """What the process that holds the lock at `path` wrote into the file; None when nobody holds it. Raises OSError."""
    try:
        os.close(lock_file(path, fcntl.LOCK_SH | fcntl.LOCK_NB, access=os.O_RDONLY, make=False))
    except FileNotFoundError:
        return None
    except BlockingIOError:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(20).strip()
    return None


def is_at(fd: int, path: Path | str) -> bool:
    """Whether the open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


@contextmanager
def lock_folders(folders: Iterable[str]) -> Iterator[None]:
    """Hold these folders against all who lock them in this way: every home has a lock of its own, but several homes
    may use one folder. A missing folder, or one on a disk without locks, is passed over.
    """
    held: dict[tuple[int, int], int] = {}
    try:
        for folder in folders:
            try:
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                continue
            status = os.fstat(fd)
            if held.setdefault((status.st_dev, status.st_ino), fd) != fd:
                os.close(fd)
        for _, fd in sorted(held.items()):  # in one order for all, or two processes could wait for each other
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        for fd in held.values():
            os.close(fd)


class Lock:
    """The home's one lock: a thread lock within the process and `flock` between processes.

    Re-entrant; the system releases it when a process dies. `entered` runs each time the lock goes from free to
    held, before the caller does anything: the place for recovery.
    """

    def __init__(self, path: Path, entered: Callable[[], None]):
        self._path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._entered = entered
        self._fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> Lock:
        self._threads.acquire()
        try:
            if self._depth == 0:
                self._take()
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise
        return self

    def _take(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if not is_at(self._fd, self._path):  # removed by somebody: a lock on it excludes nobody
                fresh = lock_file(self._path, fcntl.LOCK_EX)
                os.close(self._fd)
                self._fd = fresh
            self._entered()
        except BaseException:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        """Release the lock file."""
        os.close(self._fd)
