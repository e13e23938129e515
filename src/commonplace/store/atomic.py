"""Durable bytes: temp files, fsync, the home's lock, and what an OSError means in plain words."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commonplace.errors import CommonplaceError, NotFound, StorageError

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


def write_file(name: str, data: bytes, *, mode: int = 0o600, folder: int | None = None, durable: bool = True) -> None:
    """Create `name` (in the open folder `folder`) with `data` and, if it is to be `durable`, fsync it. It must not
    exist.

    The mode is set exactly, whatever the umask. On failure nothing stays. Raises OSError.
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
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


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


@contextmanager
def folders_held(folders: Iterable[str]) -> Iterator[None]:
    """Inside, nobody else holds one of these folders in this way: every home has a lock of its own, but several may
    use one folder. What is missing, or on a disk that knows no locks, is passed over.
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
        for _, fd in sorted(held.items()):  # in one order for all, or two could wait for each other
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        for fd in held.values():
            os.close(fd)


class Lock:
    """The home's one lock: a thread lock within the process and `flock` between processes.

    Re-entrant; the system releases it when a process dies. `entered` runs each time the lock
    goes from free to held, before the caller does anything: the place for recovery.
    """

    def __init__(self, path: Path, entered: Callable[[], None]):
        self._threads = threading.RLock()
        self._depth = 0
        self._entered = entered
        self._fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> Lock:
        self._threads.acquire()
        try:
            if self._depth == 0:
                fcntl.flock(self._fd, fcntl.LOCK_EX)
                try:
                    self._entered()
                except BaseException:
                    fcntl.flock(self._fd, fcntl.LOCK_UN)
                    raise
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    @property
    def held(self) -> bool:
        """Whether some thread of this process holds it."""
        return self._depth > 0

    def close(self) -> None:
        os.close(self._fd)
