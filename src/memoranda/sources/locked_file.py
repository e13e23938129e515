"""Locks and changes a file of another program (docs/concurrency.md).

The lock is on the file itself. So two homes, other programs, and different paths to the file all
see one lock. The file is changed by an append, by a new file that is renamed over it, or by
overwriting it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path

from memoranda.clock import waits_at_most
from memoranda.errors import Busy, MemorandaError, StorageError
from memoranda.sources import files
from memoranda.sources.base import Stamp, Unconfirmed, sha256
from memoranda.sources.layout import TEMP_PREFIX

# Errors of a file that no other can be renamed over, such as a file mounted into a container.
_NO_RENAME = {errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS}
# A reader waits this long for a writer, then reads without the lock.
_READ_WAIT_SECONDS = 1.0
_LEFTOVER_WAIT_SECONDS = 0.1


class CannotReplace(MemorandaError):
    """The system does not allow renaming another file over this one.

    The file may still be overwritten in place (`Overwriting`).

    cause: the system's error.
    """

    code = StorageError.code

    def __init__(self, file: str, cause: OSError):
        super().__init__(f"{file} cannot be replaced: {files.reason(cause)}.")
        self.cause = cause


class LockedFile:
    """The file at `path`, or the file that a symlink there leads to. Methods raise OSError."""

    def __init__(self, path: Path):
        self.path = path
        self.name = path.name

    @property
    def target(self) -> str:
        """The real path of the file, with symlinks resolved."""
        return os.path.realpath(self.path)

    @property
    def temp(self) -> str:
        """The path of the temporary file. Every process gives it the same name, so it can clean up."""
        folder, name = os.path.split(self.target)
        return os.path.join(folder, f"{TEMP_PREFIX}{sha256(os.fsencode(name))[:16]}")

    def stamp(self) -> Stamp | None:
        """Return the file's present stamp, None if it does not exist."""
        try:
            return files.stamp_of(os.stat(self.path))
        except FileNotFoundError:
            return None

    def _locked_fd_or_none(self, write: bool) -> int | None:
        """Open and lock the file (`_locked_fd`). None if it does not exist."""
        try:
            return self._locked_fd(write)
        except FileNotFoundError:
            return None

    def _make(self) -> bool:
        """Make the missing file, empty and private, with its folders.

        Returns False if another process was faster. Then that file is locked.
        """
        folder = Path(self.target).parent
        files.make_private(folder)
        try:
            files.write_file(self.target, b"")
        except FileExistsError:
            return False
        files.sync_folder(folder)
        return True

    @contextmanager
    def locked(self, *, write: bool, make: bool = False) -> Iterator[int | None]:
        """Open and lock the file until the end of the block. Yields its descriptor.

        write: whether to keep readers out, too. If not, several readers share the lock. A reader
            that waits too long for a writer reads without the lock.
        make: whether to make a missing file, empty and private, with its folders. If the block
            fails before the file has content, it is removed. Without `make`, None is yielded for a
            missing file.
        """
        was_made = False
        fd = self._locked_fd_or_none(write)
        # Another process may delete the new file before it is locked here, so this is a loop.
        while fd is None:
            if not make:
                yield None
                return
            was_made = self._make() or was_made
            fd = self._locked_fd_or_none(write)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
                raise OSError(number, "no regular file")
            yield fd
        except BaseException:
            if was_made and os.fstat(fd).st_size == 0 and files.is_at(fd, self.path):
                with suppress(OSError):
                    os.unlink(self.target)
            raise
        finally:
            os.close(fd)

    def _locked_fd(self, write: bool) -> int:
        """Open and lock the file, and return its descriptor.

        write: whether to keep readers out, too. A reader that waits too long gets the file without
            a lock.

        Raises FileNotFoundError, Busy, OSError.
        """
        if write:
            return files.lock_file(self.path, fcntl.LOCK_EX, make=False)
        try:
            with waits_at_most(_READ_WAIT_SECONDS):
                return files.lock_file(self.path, fcntl.LOCK_SH, access=os.O_RDONLY, make=False)
        except Busy:
            return files.open_own(self.path, os.O_RDONLY)

    def read(self, fd: int) -> bytes:
        """Return all bytes of the open file."""
        os.lseek(fd, 0, os.SEEK_SET)
        return files.read_fd(fd)

    def replace(self, fd: int, data: bytes) -> None:
        """Rename a new file with `data` over the file, durable on return.

        fd: the descriptor of the open file.

        Raises OSError, Unconfirmed.
        """
        replacement = Replacement(self, fd, data)
        try:
            replacement.prepare()
            replacement.run()
        except CannotReplace as error:
            raise error.cause from None

    def _put(self, fd: int, data: bytes) -> None:
        """Replace the content of the file by `data`: by a rename, or else by overwriting it.

        fd: the descriptor of the open file.
        """
        try:
            self.replace(fd, data)
        except OSError as error:
            if error.errno not in _NO_RENAME:
                raise
            _overwrite(fd, data)

    def remove_leftover(self) -> None:
        """Remove the temporary file of a process that died in `replace`."""
        if os.path.lexists(self.temp) and os.access(self.target, os.W_OK):
            with (
                suppress(OSError, Busy),
                waits_at_most(_LEFTOVER_WAIT_SECONDS),
                self.locked(write=True),
            ):
                os.unlink(self.temp)

    def complete_append(self, size: int, data: bytes, inode: int) -> bool:
        """Finish an append that was interrupted. Text that others appended since stays.

        size: the size of the file before the append.
        data: the bytes to append.
        inode: the number of the file.

        Returns False if no part of it was written, or if the file has been replaced.
        """
        with self.locked(write=True) as fd:
            if fd is None or files.stamp_of(os.fstat(fd)).inode != inode:
                return False
            content = self.read(fd)
            before = content[:size]
            # The bytes behind the old end of the file. The first `written` of them are of `data`.
            tail = content[size:]
            written = _common_length(tail, data)
            is_torn = len(tail) <= len(data) and _is_unwritten(tail[written:])
            if is_torn:
                # A power failure left the file longer, but some of its bytes did not reach the
                # disk.
                self._put(fd, before + data)
                return True
            if written == 0:
                return False
            if written == len(data):
                # All of `data` was written. Other processes may have appended text after it.
                return True
            if written == len(tail):
                # The file ends with a part of `data`, so the rest is still to be appended.
                Append(self, fd, data[written:]).run()
                return True

            # A part of `data` was written, and other processes appended text after it. If none of
            # that part is surely ours, nothing is done.
            text_of_others = _text_of_others(tail, data, written)
            has_written = text_of_others != tail
            if has_written:
                self._put(fd, before + data + text_of_others)
            return has_written

    def complete_overwrite(self, old: bytes, new: bytes, inode: int) -> bool:
        """Finish an interrupted overwriting of `old` by `new`, in the file with this inode.

        After a power failure, each byte may be of the old text, of the new one, or unwritten. A file
        with any other content stays as it is. Returns False if the file has been replaced.
        """
        with self.locked(write=True) as fd:
            if fd is None or files.stamp_of(os.fstat(fd)).inode != inode:
                return False
            content = self.read(fd)
            if content != new and _is_mixture(content, old, new):
                _overwrite(fd, new)
            return True


def _common_length(first: bytes, second: bytes) -> int:
    """Return how many bytes at the beginning of two texts are equal: 2 for `abc` and `abd`.

    first, second: the texts.
    """
    for position, (byte, other_byte) in enumerate(zip(first, second, strict=False)):
        if byte != other_byte:
            return position
    return min(len(first), len(second))


def _text_of_others(tail: bytes, data: bytes, written: int) -> bytes:
    """Return the part of `tail` that others appended after an append that was interrupted.

    All of `tail` if none of it is surely ours.

    tail: the bytes from the beginning of the append on.
    data: the bytes of the append.
    written: how many bytes at the beginning of both are equal. At least 1.
    """
    text_after = tail[written:]
    ends_with_break = data[written - 1 : written] == b"\n"
    has_ended_our_line = text_after.startswith(b"\n") and not ends_with_break
    if has_ended_our_line:
        # They ended our torn line before they appended their own text
        return text_after[1:]
    # Only whole lines are surely ours: their text may begin like our next line
    size_of_our_lines = data.rfind(b"\n", 0, written) + 1
    return tail[size_of_our_lines:]


def _is_unwritten(data: bytes) -> bool:
    """Whether these are only zero bytes, which a power failure may leave in a file that grew."""
    return bool(data) and not data.strip(b"\0")


def _is_mixture(content: bytes, old: bytes, new: bytes) -> bool:
    """Whether each byte of `content` is from the old text, from the new text, or zero."""
    # A file that is shorter or longer than both texts was changed by somebody
    shortest, longest = sorted((len(old), len(new)))
    if not shortest <= len(content) <= longest:
        return False
    bytes_side_by_side = zip_longest(content, old[: len(content)], new[: len(content)])
    return all(byte in (0, before, after) for byte, before, after in bytes_side_by_side)


def _overwrite(fd: int, data: bytes) -> None:
    """Write `data` over the content of an open file, durable on return.

    fd: the descriptor of the file.
    """
    os.lseek(fd, 0, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.ftruncate(fd, len(data))
    os.fsync(fd)


class FileWrite:
    """A way to write new bytes into a file that is open as `fd` and locked.

    `prepare` is called before the change is recorded in the ledger, and `run` after it. Both raise
    OSError, and then the file is unchanged. If the process dies, the record lets the next one finish
    its work.

    inode: the number of the file that will have the bytes.
    size: for an append, the size of the file before. Otherwise None.
    data: the bytes to append, or the new content of a file that is overwritten.
    whole: the old content, which the history keeps. None if it keeps only the changed lines.
    stamp: the stamp of the file after `run`. None if others may have written, too.
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
        """Make ready, before the change is recorded. Sets `inode` and `size`."""
        self.inode = os.fstat(self._fd).st_ino

    def run(self) -> None:
        """Write the bytes, durable on return."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Undo the effect of `prepare`, because the change will not be made."""

    def instead(self) -> FileWrite | None:
        """Return another way to write the same bytes, after CannotReplace. None if none exists."""
        return None

    def _set_stamp(self, size: int) -> None:
        """Set `stamp` after the bytes were written.

        size: the expected size of the file. If it differs, others have written without the lock,
            and `stamp` stays None.
        """
        stamp = files.stamp_of(os.fstat(self._fd))
        if stamp.size == size:
            self.stamp = stamp


class Append(FileWrite):
    """Appends `data` in one write, all of it or nothing."""

    def __init__(self, file: LockedFile, fd: int, data: bytes):
        super().__init__(file, fd)
        self.data = data

    def prepare(self) -> None:
        super().prepare()
        self.size = os.fstat(self._fd).st_size

    def run(self) -> None:
        """Append the bytes in one write, and wait for the disk.

        After an error, the file is as it was.
        """
        fd = self._fd
        size = os.lseek(fd, 0, os.SEEK_END)
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_APPEND)
        try:
            written_bytes = os.write(fd, self.data)
            if written_bytes != len(self.data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, size)
            raise
        self._set_stamp(size + len(self.data))


class Replacement(FileWrite):
    """Writes a new file and renames it over the old one. The file's mode and owner stay.

    before: the old content, if the history keeps whole files. None if it keeps changed lines only.
    may_overwrite: whether to overwrite the file in place if it cannot be replaced. The history must
        then keep its old content.

    Raises CannotReplace if the system does not allow the renaming, and Unconfirmed.
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
        """Rename the new file over the old one, and wait for the disk."""
        with self._saying_why():
            self.stamp = self._rename()
        try:
            files.sync_folder(Path(self.file.target).parent)
        except OSError as error:
            # After a power failure, either file may be there. So go back to the old content.
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
        """Turn an OSError in the block into CannotReplace, if a rename is not possible here."""
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
            has_other_owner = (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid())
            if has_other_owner:
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
        # The rename changed the change time, which is a part of the stamp
        with suppress(OSError):
            stamp_after = files.stamp_of(os.stat(self.file.target))
            if stamp_after.is_same_file(stamp):
                return stamp_after
        return stamp


class Overwriting(FileWrite):
    """Writes `content` over the old content, which the history keeps.

    It is for a file that cannot be replaced, such as a single file mounted into a container.
    """

    def __init__(self, file: LockedFile, fd: int, content: bytes):
        super().__init__(file, fd)
        self.data = content
        self.whole = file.read(fd)

    def run(self) -> None:
        """Write the new content over the old one. After an error, write the old one again."""
        # Without this import, the module loads in two thirds of the time
        import logging

        warning = "%s cannot be replaced by a rename; it was written in place"
        logging.getLogger("memoranda.sources").warning(warning, self.file.name)
        try:
            _overwrite(self._fd, self.data)
        except OSError:
            _overwrite(self._fd, self.whole or b"")
            raise
        self._set_stamp(len(self.data))
