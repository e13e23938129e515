"""Reads and writes files durably, locks them (`flock`), and words an OSError for people.

"Durable" means that a power failure after the return loses nothing.
"""

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

from memoranda.clock import acquires, may_wait, wait_for
from memoranda.errors import Busy, MemorandaError, NotFound, StorageError
from memoranda.sources.base import File, Stamp, bounded, sha256

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# After the first read of a file, at least this number of bytes is asked for at a time.
_MIN_READ_BYTES = 65536
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
    errno.ENXIO: "something other than a file is there",
}

UNWRITABLE = frozenset(
    (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)
)
"""The errors of the system for a file that cannot be written or made, though it may be read."""
NAME_REASONS = frozenset(
    _REASONS[number] for number in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
)
"""The results of `reason` that blame the name of the file, not the disk."""


def reason(error: OSError) -> str:
    """Return why the disk refused, in words: `the disk is full`."""
    return _REASONS.get(error.errno or 0, (error.strerror or "the disk refused").lower())


def disk_state(path: Path) -> str:
    """Return why nothing can be written on the disk of `path`, in words. "" if something can.

    SQLite reports a full disk like missing rights if it cannot make a file beside its database.
    """
    try:
        disk = os.statvfs(path)
    except (OSError, AttributeError):
        return ""
    if disk.f_flag & os.ST_RDONLY:
        return _REASONS[errno.EROFS]
    if disk.f_blocks and not disk.f_bavail:
        return _REASONS[errno.ENOSPC]
    return ""


@contextmanager
def storing(path: str, hint: str = "") -> Iterator[None]:
    """Turn an OSError in the block into a StorageError about `path`.

    hint: a line for a person that says what to do.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(path, reason(error), hint) from None


def refusal(path: str, error: OSError) -> MemorandaError:
    """Return the NotFound or StorageError for an OSError at the project-relative `path`."""
    if error.errno == errno.ENOENT:
        return NotFound(path)
    return StorageError(path, reason(error))


def write_file(
    name: str,
    data: bytes,
    *,
    mode: int = 0o600,
    folder: int | None = None,
    durable: bool = True,
    written_ns: int | None = None,
) -> os.stat_result:
    """Create the file `name` with `data`. On failure no file is left.

    mode: set exactly, whatever the umask.
    folder: the descriptor of the folder that `name` is in. None if `name` is a path.
    durable: whether to wait until the bytes are on the disk.
    written_ns: when the file says it was written, in nanoseconds since 1970. None for now.

    Returns the file's status. Raises FileExistsError, OSError.
    """
    fd = os.open(
        name,
        os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW,
        0o600,
        dir_fd=folder,
    )
    try:
        try:
            # The system may take only a part of the bytes at once.
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if written_ns is not None:
                os.utime(fd, ns=(written_ns, written_ns))
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
    """Return the stamp of a file with this status."""
    return bounded((status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns))


def stat_in(name: str, folder: int) -> os.stat_result | None:
    """Return the status of `name` in an open folder, None if it does not exist.

    A symlink is not followed.
    """
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_file(name: str, folder: int | None = None) -> File:
    """Read the regular file `name`. Raises OSError, also for a symlink and for a folder.

    folder: the descriptor of the folder that `name` is in. None if `name` is a path.
    """
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
    """Return the SHA-256 of a file, as 64 hex digits. Raises OSError.

    The file is read in pieces, so it may be larger than the machine's memory.
    """
    # The import takes 3 ms, and few calls need it
    from hashlib import file_digest

    with open(os.open(path, _READ), "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def put_derived(path: Path, data: bytes) -> bool:
    """Replace the file at `path`, which no other program writes, by `data`.

    Readers see the whole old file or the whole new one. Returns False if the file had these bytes
    already. Raises StorageError.
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
    """Remove the temporary files in `folder` whose writer died.

    names: matches the whole name of a temporary file, which begins with a dot. Its first group is
        the number of the process that wrote the file.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            # Most names have no dot, and need no look at the pattern
            if not name.startswith("."):
                continue
            match = names.fullmatch(name)
            if match is not None and not is_alive(int(match[1])):
                os.unlink(os.path.join(folder, name))


def is_alive(pid: int) -> bool:
    """Whether a process with this number is running.

    The number may come from a file, so it may be any number. A process that has ended is not
    running, even if its parent has not asked for its status yet (a zombie).
    """
    # 0 would mean this process's own group
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _has_ended(pid)


def _has_ended(pid: int) -> bool:
    """Whether a process that still has its number has ended. False where the system has no /proc."""
    try:
        return _state_and_times(pid)[0] == b"Z"
    except (OSError, IndexError):
        return False


def _state_and_times(pid: int) -> list[bytes]:
    """Return the fields that Linux lists behind the name of a process: its state, and so on.

    Raises OSError.
    """
    # `4711 (name) Z ...`, where the name may contain any character
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def read_fd(fd: int) -> bytes:
    """Return all bytes of an open file, from its present position on."""
    remaining_size = os.fstat(fd).st_size
    parts = []
    # One byte more than the size, so that mostly one call reads all and a second finds the end. A
    # file that grows meanwhile is read on.
    read_size = remaining_size + 1
    while part := os.read(fd, read_size):
        parts.append(part)
        remaining_size -= len(part)
        read_size = max(remaining_size + 1, _MIN_READ_BYTES)
    if len(parts) == 1:
        return parts[0]
    return b"".join(parts)


def make_private(folder: Path) -> None:
    """Make `folder` and missing parents, each 0700 whatever the umask, durably. Raises OSError."""
    missing_folders = []
    while not folder.exists():
        missing_folders.append(folder)
        folder = folder.parent
    # The outermost first
    for missing_folder in reversed(missing_folders):
        try:
            os.mkdir(missing_folder, 0o700)
            os.chmod(missing_folder, 0o700)
        except FileExistsError:
            continue
        sync_folder(missing_folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the entries of `folder` durable: new, renamed and removed files.

    If we may not read the folder, the system syncs it some time later.
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
"""Seconds for which one holder may keep a lock before callers that wait are refused (Busy)."""
HOLDER = "lock"
"""The file in a locked folder that names the holder of the lock (`signature`)."""
SIGNATURE = 80
"""The size of a signature in bytes."""
_MIN_LOCK_WAIT_SECONDS = 0.005
_MAX_COMMAND_CHARACTERS = 50
# The place of the time at which a process began, in ticks since the system did, behind its name.
_BEGAN = 19
# The clocks of the system and of the signature may differ by so much.
_CLOCK_SECONDS = 1.0
# A waiting thread looks this often whether the call may go on waiting.
_TURN_SECONDS = 0.25
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz-")
# A signature: process, and perhaps Unix time and command. `4711 1767225600.000 memory serve`
_SIGNED = re.compile(rb"(\d+)(?: (\d{9,}\.\d{3}) ([^\n]*?) *)?\n")


class Owner(NamedTuple):
    """The process that holds a lock.

    pid: its number, "" if unknown.
    since: the Unix time since when it holds the lock, 0.0 if unknown.
    command: the program and its first argument, such as `memory serve`. "" if unknown.
    """

    pid: str
    since: float = 0.0
    command: str = ""

    def __str__(self) -> str:
        """Return the holder in words, for an error.

        `process 4711 (memory serve) since 2026-05-07T10:00:00Z, for 9 seconds`
        """
        name = f"process {self.pid}" if self.pid else "another program"
        if self.command:
            name = f"{name} ({self.command})"
        if not self.since:
            return name
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.since))
        seconds = max(0, round(time.time() - self.since))
        return f"{name} since {since}, for {seconds} seconds"


class Closable(Protocol):
    """Anything with a `close` method, such as a connection to a database."""

    def close(self) -> None: ...


@contextmanager
def closed_on_error(connection: Closable) -> Iterator[None]:
    """Close `connection` if the block raises, since the caller never receives it then.

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

    access: the flags of `os.open`.
    """
    check_own(path)
    fd = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    # A folder is opened without an error if it is opened for reading.
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    # Something else may have been put there since the check
    raise _not_a_file_error(path)


def check_own(path: Path | str) -> None:
    """Raise OSError if one of our files is something odd, such as a device or a pipe.

    A folder is let through: opening it raises a better error.
    """
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _not_a_file_error(path)


def _not_a_file_error(path: Path | str) -> OSError:
    """Return the error for something at `path` that is not a regular file."""
    return OSError(errno.ENODEV, f"{os.path.basename(path)} is no regular file; remove it")


def lock_file(path: Path | str, how: int, *, access: int = os.O_RDWR, make: bool = True) -> int:
    """Open the file at `path` and `flock` it. Returns its descriptor; closing it ends the lock.

    how: LOCK_EX or LOCK_SH of fcntl. With LOCK_NB, BlockingIOError is raised instead of waiting.
    access: the flags of `os.open`.
    make: whether to create a missing file. If not, FileNotFoundError is raised.

    Raises Busy, OSError.
    """
    while True:
        fd = open_own(path, access | (os.O_CREAT if make else 0))
        try:
            if how & fcntl.LOCK_NB:
                fcntl.flock(fd, how)
            else:
                take_lock(fd, how)
            # Another file may have taken its place while we waited: then lock that one
            if is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _seconds_left_of(owner: Owner) -> float:
    """Return for how many seconds the holder of a lock may still keep it."""
    held_seconds = time.time() - owner.since if owner.since else 0.0
    return max(_MIN_LOCK_WAIT_SECONDS, LOCK_WAITS - held_seconds)


def take_lock(fd: int, how: int) -> None:
    """`flock` the open file, and wait if need be.

    fd: the descriptor of the file.
    how: LOCK_EX or LOCK_SH of fcntl. With LOCK_NB, BlockingIOError is raised instead of waiting.

    Raises Busy when one holder has kept the lock for LOCK_WAITS seconds, or when the call has waited
    as long as a call may.
    """
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        owner = _owner(fd)

    def has_taken() -> bool:
        """Try to take the lock. Returns whether it is ours now."""
        with suppress(BlockingIOError):
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            return True
        return False

    while not wait_for(has_taken, _seconds_left_of(owner)):
        former_owner = owner
        owner = _owner(fd)
        # With many callers the lock goes from holder to holder. Only a holder that keeps it too
        # long is an error.
        is_same_holder = (owner.pid, owner.since) == (former_owner.pid, former_owner.since)
        if is_same_holder or not may_wait():
            raise Busy(str(owner))


@cache
def _command(*arguments: str) -> str:
    """Return the program and its first argument, if that is a plain word: `memory serve`.

    Further arguments may be private, so they are left out.

    arguments: the command line, as in `sys.argv`.
    """
    if not arguments:
        return ""
    program = arguments[0]
    # For `python -c` and `python -m`, Python puts the option there
    if program.startswith("-"):
        program = sys.executable
    command = os.path.basename(program)
    first_argument = arguments[1] if len(arguments) > 1 else ""
    if first_argument and _WORD.issuperset(first_argument):
        command = f"{command} {first_argument}"
    return command[:_MAX_COMMAND_CHARACTERS]


def _signature(fd: int) -> bytes:
    """Read the signature of the holder of the lock on an open file or folder. b"" if impossible.

    It is in the locked file itself, or in the file `lock` in the locked folder.
    """
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
    """Return the line that this process writes into a lock, filled with blanks to SIGNATURE bytes.

    `4711 1767225600.000 memory serve`: process, Unix time, command.
    """
    text = f"{os.getpid()} {time.time():.3f} {_command(*sys.argv)}"
    return text.encode().ljust(SIGNATURE)[: SIGNATURE - 1] + b"\n"


def _owner(fd: int) -> Owner:
    """Return the holder of the lock on an open file: by its signature, or on Linux by the system."""
    signed = _SIGNED.match(_signature(fd))
    if signed:
        pid = int(signed[1])
        since = float(signed[2] or 0)
        # If the process of the signature has ended, another one holds the lock
        if is_alive(pid) and not _is_younger(pid, since):
            command = (signed[3] or b"").decode("utf-8", "replace")
            return Owner(pid=str(pid), since=since, command=command)
    try:
        return _owner_in_proc(fd)
    except (OSError, ValueError):
        return Owner(pid="")


def _is_younger(pid: int, since: float) -> bool:
    """Whether a process began after it would have signed, so that it only has the number of the
    process that did. False where the system does not say when a process began.

    since: the Unix time of the signature. 0 if it is unknown.
    """
    try:
        ticks = int(_state_and_times(pid)[_BEGAN])
        up_seconds = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, ValueError, IndexError, AttributeError):
        return False
    age_seconds = up_seconds - ticks / os.sysconf("SC_CLK_TCK")
    return since > 0 and time.time() - since > age_seconds + _CLOCK_SECONDS


def _owner_in_proc(fd: int) -> Owner:
    """Return the holder of the lock on an open file, as /proc of Linux has it.

    Raises OSError, ValueError.
    """
    status = os.fstat(fd)
    file_id = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in Path("/proc/locks").read_text().splitlines():
        # `1: FLOCK ADVISORY WRITE 4711 08:02:1234 0 EOF`
        fields = line.split()
        pid = fields[4]
        if fields[1] == "FLOCK" and fields[5] == file_id and is_alive(int(pid)):
            arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            return Owner(pid, command=_command(*arguments))
    return Owner(pid="")


def lock_owner(path: Path | str) -> Owner | None:
    """Return the holder of the lock on the file or folder at `path`.

    None if the lock is free. Raises OSError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    # The only way to ask is to try. If that succeeds, closing the file ends our lock.
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(fd)
    finally:
        os.close(fd)
    return None


def is_at(fd: int, path: Path | str) -> bool:
    """Whether an open file is the one at `path`, and was not replaced.

    fd: the descriptor of the open file.
    """
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
    # By device and inode
    descriptors: dict[tuple[int, int], int] = {}
    try:
        for folder in folders:
            try:
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                continue
            status = os.fstat(fd)
            folder_id = (status.st_dev, status.st_ino)
            if folder_id in descriptors:
                # The same folder under another path
                os.close(fd)
            else:
                descriptors[folder_id] = fd
        # All processes take them in the same order, or two could wait for each other
        for _, fd in sorted(descriptors.items()):
            with suppress(OSError):
                take_lock(fd, fcntl.LOCK_EX)
        yield
    finally:
        for fd in descriptors.values():
            os.close(fd)


class ThreadLock:
    """A re-entrant lock for the threads of this process, which get it in the order they came.

    Entering raises Busy if it takes longer than a call may wait.
    """

    def __init__(self) -> None:
        # Held while the other attributes are read or written
        self._counting = threading.Lock()
        # The threads that wait: (thread, a lock that is released when its turn comes)
        self._queue: deque[tuple[int, threading.Lock]] = deque()
        # The thread that holds the lock, 0 for none
        self._owner = 0
        # How often that thread has entered
        self._depth = 0
        self.turns = 0
        """How many times a thread has left the lock."""

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return self._owner == threading.get_ident()

    def __enter__(self) -> None:
        """Wait for the lock, after the threads that came before, and enter. Raises Busy."""
        if not self.is_mine:
            turn = self._take_or_queue()
            if turn is not None:
                self._wait_for(turn)
        self._depth += 1

    def _take_or_queue(self) -> threading.Lock | None:
        """Take the lock if no thread holds it. Otherwise put this thread into the queue.

        Returns None, or the lock that is released when the turn of this thread comes.
        """
        this_thread = threading.get_ident()
        with self._counting:
            is_free = self._owner == 0
            if is_free:
                self._owner = this_thread
                return None
            turn = threading.Lock()
            turn.acquire()
            self._queue.append((this_thread, turn))
            return turn

    def _wait_for(self, turn: threading.Lock) -> None:
        """Wait until the thread that holds the lock passes it on to this thread. Raises Busy.

        turn: the lock that is released then.
        """
        place_in_queue = (threading.get_ident(), turn)
        try:
            if not acquires(turn, _TURN_SECONDS):
                raise Busy(f"another call of this process ({os.getpid()})")
        except BaseException:
            # An interrupt may come here as well
            with self._counting:
                if place_in_queue in self._queue:
                    self._queue.remove(place_in_queue)
                else:
                    # The lock was passed on to this thread at the last moment
                    self._pass_on()
            raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            with self._counting:
                self._pass_on()

    def _pass_on(self) -> None:
        """Give the lock to the thread that has waited longest. `_counting` must be held."""
        self.turns += 1
        self._owner = 0
        if self._queue:
            self._owner, turn = self._queue.popleft()
            turn.release()

    def take_if_free(self) -> bool:
        """Enter if no thread holds the lock, without waiting. Returns whether it entered."""
        with self._counting:
            if self._owner:
                return False
            self._owner = threading.get_ident()
            self._depth = 1
            return True
