"""A file used in place, locked on itself, so that two homes, other programs and any path to it see
one lock (docs/concurrency.md).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoranda.clock import waits_at_most
from memoranda.errors import Busy, MemorandaError, StorageError
from memoranda.sources import files
from memoranda.sources.base import Stamp, Unconfirmed, sha256
from memoranda.sources.layout import TEMP_PREFIX

# A single file mounted into a container cannot be renamed over.
_NO_RENAME = {errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS}
# Seconds a reader waits for a writer
_READ_WAITS = 1.0


class CannotReplace(MemorandaError):
    """Nothing can be renamed over the file; it may be overwritten instead (`Overwriting`)."""

    code = StorageError.code

    def __init__(self, file: str, cause: OSError):
        super().__init__(f"{file} cannot be replaced: {files.reason(cause)}.")
        self.cause = cause


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
    def temp(self) -> str:
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

    def replace(self, fd: int, data: bytes) -> None:
        """Put `data` in place of the content, durable on return: see `Replacement`. Raises OSError,
        Unconfirmed.
        """
        replacement = Replacement(self, fd, data)
        try:
            replacement.prepare()
            replacement.run()
        except CannotReplace as error:
            raise error.cause from None

    def _put(self, fd: int, data: bytes) -> None:
        """Put `data` in place of the content, in whatever way can be."""
        try:
            self.replace(fd, data)
        except OSError as error:
            if error.errno not in _NO_RENAME:
                raise
            _overwrite(fd, data)

    def remove_leftover(self) -> None:
        """Remove the temporary file of a process that died in `replace`."""
        if os.path.lexists(self.temp) and os.access(self.target, os.W_OK):
            with suppress(OSError, Busy), waits_at_most(0.1), self.locked(write=True):
                os.unlink(self.temp)

    def complete_append(self, size: int, data: bytes, inode: int) -> bool:
        """Finish an append that was interrupted. Text that others added after a part of it stays.

        size: the size of the file before.
        data: the bytes to append.
        inode: the inode of the file.

        Returns False if none of it was written, or if the file has been replaced.
        """
        with self.locked(write=True) as fd:
            if fd is None or files.stamp_of(os.fstat(fd)).inode != inode:
                return False
            now = self.read(fd)
            tail = now[size:]
            written = _common(tail, data)
            if written == len(tail) < len(data) and written:
                Append(self, fd, data[written:]).run()
            elif written < len(data):
                rest = tail[written:]
                # Others closed a torn line before theirs
                if rest[:1] == b"\n" != data[written - 1 : written]:
                    rest = rest[1:]
                else:
                    written = data.rfind(b"\n", 0, written) + 1
                    rest = tail[written:]
                if written:
                    self._put(fd, now[:size] + data + rest)
            return written > 0

    def complete_overwrite(self, old: bytes, new: bytes, inode: int) -> bool:
        """Finish an interrupted overwriting of `old` by `new` in file `inode`.

        Contents other than these two, or `new` in front and `old` behind, are left alone. Returns
        False if the file has been replaced.
        """
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


class FileWrite:
    """A way to write new bytes into a file that is open as `fd` and locked.

    `prepare` is called before the change is recorded, and `run` after it. Both raise OSError, and
    then the file is unchanged. The record lets the next process finish the work of one that died.

    inode: the inode of the file that will have the bytes.
    size: the size before an append. Otherwise None.
    data: the bytes to append, or the new content of a file that is overwritten.
    whole: the content before, if the file is overwritten.
    stamp: the stamp of the file after `run`. None if it is not known.
    """

    inode = 0
    size: int | None = None
    data = b""
    whole: bytes | None = None
    stamp: Stamp | None = None

    def __init__(self, file: LockedFile, fd: int):
        self.file = file
        self._fd = fd

    def prepare(self) -> None:
        """Do what can be done before the change is recorded."""
        self.inode = os.fstat(self._fd).st_ino

    def run(self) -> None:
        """Write, durable on return."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Take back what `prepare` did: the change will not be made."""

    def instead(self) -> FileWrite | None:
        """The way to write where this one cannot be (CannotReplace), None for none."""
        return None

    def _note_stamp(self, size: int) -> None:
        """Have the file's stamp, unless somebody without the lock wrote too."""
        stamp = files.stamp_of(os.fstat(self._fd))
        if stamp.size == size:
            self.stamp = stamp


class Append(FileWrite):
    """Adds `data` at the end in one write, all of it or nothing."""

    def __init__(self, file: LockedFile, fd: int, data: bytes):
        super().__init__(file, fd)
        self.data = data

    def prepare(self) -> None:
        super().prepare()
        self.size = os.fstat(self._fd).st_size

    def run(self) -> None:
        fd = self._fd
        size = os.lseek(fd, 0, os.SEEK_END)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
        try:
            if os.write(fd, self.data) != len(self.data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, size)
            raise
        self._note_stamp(size + len(self.data))


class Replacement(FileWrite):
    """Renames a new file with `content` over the old one; mode and owner stay.

    before: kept in the history as the file's whole old text.
    may_overwrite: whether the file may be overwritten where nothing can be renamed over it. Then the
        history gets its whole old text.

    Raises CannotReplace where no file can be renamed over this one, Unconfirmed.
    """

    def __init__(
        self,
        file: LockedFile,
        fd: int,
        content: bytes,
        before: bytes | None = None,
        *,
        may_overwrite: bool = False,
    ):
        super().__init__(file, fd)
        self._content = content
        self._may_overwrite = may_overwrite
        self.whole = before

    def instead(self) -> FileWrite | None:
        if self._may_overwrite:
            return Overwriting(self.file, self._fd, self._content)
        return None

    def prepare(self) -> None:
        with self._saying_why():
            self.inode = self._write_temp(self._content).inode

    def run(self) -> None:
        with self._saying_why():
            self.stamp = self._rename()
        try:
            files.sync_folder(Path(self.file.target).parent)
        except OSError as error:
            # A power failure may bring either file: show the old one again
            try:
                self._write_temp(self.file.read(self._fd))
                self._rename()
            except OSError:
                raise Unconfirmed(self.file.name, files.reason(error)) from None
            raise

    def cancel(self) -> None:
        with suppress(OSError):
            os.unlink(self.file.temp)

    @contextmanager
    def _saying_why(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _NO_RENAME:
                raise
            raise CannotReplace(self.file.name, error) from None

    def _write_temp(self, content: bytes) -> Stamp:
        """Write the new file beside the old one. Returns its stamp."""
        status = os.fstat(self._fd)
        temp = self.file.temp
        with suppress(FileNotFoundError):
            os.unlink(temp)
        files.write_file(temp, content, mode=stat.S_IMODE(status.st_mode))
        try:
            if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.chown(temp, status.st_uid, status.st_gid)
            return files.stamp_of(os.stat(temp))
        except BaseException:
            os.unlink(temp)
            raise

    def _rename(self) -> Stamp:
        """Rename the new file over the old one. Returns its stamp."""
        temp = self.file.temp
        try:
            stamp = files.stamp_of(os.stat(temp))
            os.rename(temp, self.file.target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temp)
            raise
        with suppress(OSError):
            renamed = files.stamp_of(os.stat(self.file.target))
            if renamed.is_same_file(stamp):
                stamp = renamed
        return stamp


class Overwriting(FileWrite):
    """Writes `content` over the old one, which the history keeps whole: a file mounted by itself
    cannot be renamed over.
    """

    def __init__(self, file: LockedFile, fd: int, content: bytes):
        super().__init__(file, fd)
        self.data = content
        self.whole = file.read(fd)

    def run(self) -> None:
        # A third of what every command would import of this module
        import logging

        warning = "%s cannot be replaced by a rename; it was written in place"
        logging.getLogger("memoranda.sources").warning(warning, self.file.name)
        try:
            _overwrite(self._fd, self.data)
        except OSError:
            _overwrite(self._fd, self.whole or b"")
            raise
        self._note_stamp(len(self.data))
