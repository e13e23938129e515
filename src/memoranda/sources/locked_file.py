"""A file used in place, locked on itself, so that two homes, other programs and any path to it see
one lock. The order of locks is always the home's, then the file's.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoranda.clock import waits_at_most
from memoranda.errors import Busy, MemorandaError, StorageError
from memoranda.sources import files
from memoranda.sources.base import Stamp, sha256
from memoranda.sources.layout import TEMP_PREFIX

# A single file mounted into a container cannot be renamed over.
_NO_RENAME = {errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS}
# Seconds a reader waits for a writer
_READ_WAITS = 1.0

Announce = Callable[[int, bytes | None], None]
"""Called right before a replacement: with the new file's inode and None, or with the file's own
inode and its old bytes when it will be overwritten. Raises OSError to prevent the change."""


class Unconfirmed(MemorandaError):
    """The change is in the file, but the disk would neither confirm it nor take the old content
    back.
    """

    code = StorageError.code

    def __init__(self, file: str, why: str):
        super().__init__(
            f"{file} is changed, but {why}: the change may not outlive a power failure."
        )


class LockedFile:
    """The file at `path`; symlinks are written through. Methods raise OSError."""

    def __init__(self, path: Path):
        self.path = path
        self.name = path.name

    @property
    def target(self) -> str:
        """Where the file really is, symlinks resolved."""
        return os.path.realpath(self.path)

    @property
    def _temp(self) -> str:
        """The one temporary file, of a name the next process knows too."""
        folder, name = os.path.split(self.target)
        return os.path.join(folder, f"{TEMP_PREFIX}{sha256(os.fsencode(name))[:16]}")

    def stamp(self) -> Stamp | None:
        """The file's stamp now, or None."""
        try:
            return files.stamp_of(os.stat(self.path))
        except FileNotFoundError:
            return None

    @contextmanager
    def locked(self, *, write: bool, make: bool = False) -> Iterator[int | None]:
        """The file open and locked, shared with readers unless `write`, or None.
        With `make` a missing file is made first, empty and private, with its folders; it is removed
        again if the caller fails before it has content. A reader whom a writer keeps waiting reads
        without the lock."""
        was_made = False
        fd = -1
        while fd < 0:
            try:
                if write:
                    fd = files.lock_file(self.path, fcntl.LOCK_EX, make=False)
                else:
                    try:
                        with waits_at_most(_READ_WAITS):
                            fd = files.lock_file(
                                self.path, fcntl.LOCK_SH, access=os.O_RDONLY, make=False
                            )
                    except Busy:
                        fd = files.open_own(self.path, os.O_RDONLY)
            except FileNotFoundError:
                if not make:
                    yield None
                    return
                folder = Path(self.target).parent
                files.make_private(folder)
                # Another process was faster
                with suppress(FileExistsError):
                    files.write_file(self.target, b"")
                    was_made = True
                    files.sync_folder(folder)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise OSError(
                    errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "no regular file"
                )
            yield fd
        except BaseException:
            if was_made and os.fstat(fd).st_size == 0 and files.is_at(fd, self.path):
                with suppress(OSError):
                    os.unlink(self.target)
            raise
        finally:
            os.close(fd)

    def read(self, fd: int) -> bytes:
        """All bytes of the open file."""
        os.lseek(fd, 0, os.SEEK_SET)
        return files.read_fd(fd)

    def append(self, fd: int, data: bytes) -> Stamp | None:
        """Add `data` at the end in one write, durable on return, all of it or nothing. Returns the
        file's new stamp, None when somebody without the lock wrote too."""
        size = os.lseek(fd, 0, os.SEEK_END)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, size)
            raise
        stamp = files.stamp_of(os.fstat(fd))
        if stamp.size == size + len(data):
            return stamp
        return None

    def replace(
        self,
        fd: int,
        data: bytes,
        announce: Announce | None = None,
        *,
        may_overwrite: bool = True,
    ) -> Stamp | None:
        """Put `data` in place of the content, durable on return; mode and owner stay. A new file is
        renamed over the old one. Where that cannot be, the file is overwritten if that may be and
        there is `announce` to keep the old content. Returns the new stamp, None when it is not
        known. Raises Unconfirmed."""
        try:
            stamp = self._rename_over(fd, data, announce)
        except OSError as error:
            if announce is None or not may_overwrite or error.errno not in _NO_RENAME:
                raise
            old = self.read(fd)
            announce(files.stamp_of(os.fstat(fd)).inode, old)
            # A third of what every command would import of this module
            import logging

            warning = "%s cannot be replaced by a rename; it was written in place"
            logging.getLogger("memoranda.sources").warning(warning, self.name)
            try:
                _overwrite(fd, data)
            except OSError:
                _overwrite(fd, old)
                raise
            stamp = files.stamp_of(os.fstat(fd))
            if stamp.size == len(data):
                return stamp
            return None
        try:
            files.sync_folder(Path(self.target).parent)
        # A power failure may bring either file: show the old one again
        except OSError as error:
            try:
                self._rename_over(fd, self.read(fd))
            except OSError:
                raise Unconfirmed(self.name, files.reason(error)) from None
            raise
        return stamp

    def _rename_over(self, fd: int, data: bytes, announce: Announce | None = None) -> Stamp:
        """Rename a new file with `data` over this one. Returns its stamp."""
        status = os.fstat(fd)
        temp = self._temp
        with suppress(FileNotFoundError):
            os.unlink(temp)
        files.write_file(temp, data, mode=stat.S_IMODE(status.st_mode))
        try:
            if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.chown(temp, status.st_uid, status.st_gid)
            stamp = files.stamp_of(os.stat(temp))
            if announce is not None:
                announce(stamp.inode, None)
            os.rename(temp, self.target)
        except BaseException:
            os.unlink(temp)
            raise
        with suppress(OSError):
            renamed = files.stamp_of(os.stat(self.target))
            if renamed.is_same_file(stamp):
                stamp = renamed
        return stamp

    def remove_leftover(self) -> None:
        """Remove the temporary file of a process that died in `replace`."""
        if os.path.lexists(self._temp) and os.access(self.target, os.W_OK):
            with suppress(OSError, Busy), waits_at_most(0.1), self.locked(write=True):
                os.unlink(self._temp)

    def complete_append(self, size: int, data: bytes, inode: int) -> bool:
        """Finish an append that ended in its middle: `data` was to follow the first `size` bytes of
        file `inode`. What others added behind a part of it stays. Returns False where nothing of it
        had come, or the file is another one."""
        with self.locked(write=True) as fd:
            if fd is None or files.stamp_of(os.fstat(fd)).inode != inode:
                return False
            now = self.read(fd)
            tail = now[size:]
            written = _common(tail, data)
            if written == len(tail) < len(data) and written:
                self.append(fd, data[written:])
            elif written < len(data):
                rest = tail[written:]
                # Others closed a torn line before theirs
                if rest[:1] == b"\n" != data[written - 1 : written]:
                    rest = rest[1:]
                else:
                    written = data.rfind(b"\n", 0, written) + 1
                    rest = tail[written:]
                if written:
                    self.replace(fd, now[:size] + data + rest, lambda *_: None)
            return written > 0

    def complete_overwrite(self, old: bytes, new: bytes, inode: int) -> bool:
        """Finish writing `new` over `old` in file `inode`, which ended in its middle. A file that
        is neither, nor the one in front and the other behind, is left alone. Returns False when the
        file is another one."""
        with self.locked(write=True) as fd:
            if fd is None or files.stamp_of(os.fstat(fd)).inode != inode:
                return False
            now = self.read(fd)
            if now != new and now[(written := _common(now, new)) :] == old[written:]:
                _overwrite(fd, new)
            return True


def _common(first: bytes, second: bytes) -> int:
    """How many bytes two texts begin with in common."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )


def _overwrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.ftruncate(fd, len(data))
    os.fsync(fd)
