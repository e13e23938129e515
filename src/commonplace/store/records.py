"""A file of one JSON object a line, used where it lies (contract 002, 6).

Every line is kept as bytes. What a call does not touch is written back as it was, and nothing else lies
beside the file. The lock is `flock` on the file itself, so that two homes and any path to it see one lock.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from commonplace.errors import CommonplaceError, InvalidInput, StorageError
from commonplace.store.base import Stamp
from commonplace.store.files import make_private, read_fd, reason, sync_folder, write_file
from commonplace.store.json_lines import shape_of
from commonplace.store.layout import TEMP_PREFIX

MOST_APPENDED = 65536
"""Bytes: more than that is written beside the file and renamed over it."""
_NO_RENAME = {errno.EBUSY, errno.EXDEV}
_NO_TEMP = {errno.EACCES, errno.EPERM, errno.EROFS}
_log = logging.getLogger("commonplace.records")
_Stamp = tuple[int, int, int, int]
_ABSENT: _Stamp = (0, 0, 0, 0)


class NotRecords(InvalidInput):
    """The file holds something else than lines; `shape` says what."""

    def __init__(self, file: str, shape: str):
        super().__init__(
            f"{os.path.basename(file)} is {shape}, not one JSON object a line; nothing was changed."
            f" Take it into the notes with: memory graph import {file}"
        )


class Unconfirmed(CommonplaceError):
    """The change is in the file, but the disk would neither confirm it nor take the old content back."""

    code = StorageError.code

    def __init__(self, file: str, why: str):
        super().__init__(f"{file} is changed, but {why}: the change may not outlive a power failure.")


@dataclass(slots=True)
class Edit:
    """What a call changes: line number (from 0) -> its new bytes, empty for a line that goes; lines to add at the
    end; lines to put back before a line. `verb` names the change in the history.
    """

    lines: dict[int, bytes] = field(default_factory=dict)
    added: list[bytes] = field(default_factory=list)
    inserted: dict[int, list[bytes]] = field(default_factory=dict)
    verb: str = "edit"

    def __bool__(self) -> bool:
        return bool(self.lines or self.added or self.inserted)


@dataclass(slots=True)
class Coming:
    """A change that is about to reach the file at `place`.

    `at` are the numbers, from 0 and in the file as it was, of the lines that change or go; `old` and `new` what
    they were and become (empty: nothing), `added` what else comes. Where that goes to the end, `size` is the
    file's size before and `data` the very bytes; else `size` is None. `inode` is that of the file, or of the one
    that takes its place. Where nothing can take its place `whole` is the old content and `data` the new one.
    """

    place: str
    verb: str
    at: list[int]
    old: list[bytes]
    new: list[bytes]
    added: list[bytes]
    inode: int
    size: int | None = None
    data: bytes = b""
    whole: bytes | None = None


Keep = Callable[[Coming], None]
"""Hears of a change right before it, to make durable what goes. Raises OSError; then the change is not made."""


class Records:
    """The lines of the file at `path`. Not for several threads at once: the caller sees to that.

    `lines` are its bytes, each with its end; a line removed since the last load is empty. `loads` counts
    how often the file was read, but for additions at its end.
    """

    def __init__(self, path: Path):
        self.path = path
        self.lines: list[bytes] = []
        self.loads = 0
        self._stamp: _Stamp | None = None
        self._refusal: NotRecords | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    def fresh(self) -> None:
        """Make `lines` what is on disk.

        Raises NotRecords for a file of another shape, StorageError when it cannot be read.
        """
        try:
            if self._stamp is not None and self._stamp_at(self.path) == self._stamp:
                return self._check()
            if self._leftover():
                with self._locked(write=True):
                    self._remove_leftover()
            with self._locked(write=False) as fd:
                self._load(fd)
        except OSError as error:
            raise StorageError(self.name, reason(error)) from None

    def change(self, plan: Callable[[], Edit], keep: Keep) -> Edit:
        """Carry out what `plan` says as one change, durable on return; `keep` hears of it before.

        `plan` runs under the file's lock, `lines` being what is on disk, and again when the file had to be made
        first. Returns the edit. After one that put lines back `loads` grows, as numbers changed. Raises
        NotRecords, StorageError, then the file is as it was; Unconfirmed.
        """
        while True:
            try:
                with self._locked(write=True) as fd:
                    if fd is not None:
                        self._remove_leftover()
                    if self._is_stale(fd):
                        self._load(fd)
                    self._check()
                    edit = plan()
                    if fd is not None and edit:
                        self._write(fd, edit, keep)
                    if fd is not None or not edit:
                        return edit
                self._make()
            except OSError as error:
                self._stamp = None
                raise StorageError(self.name, reason(error)) from None

    # --- reading --------------------------------------------------------------------------------

    def _is_stale(self, fd: int | None) -> bool:
        return self._stamp is None or self._stamp != (_ABSENT if fd is None else _stamp_of(os.fstat(fd)))

    def _check(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _load(self, fd: int | None) -> None:
        self._stamp, self._refusal = None, None
        stamp = _ABSENT if fd is None else _stamp_of(os.fstat(fd))
        data = whole = b"" if fd is None else _all_of(fd)
        if fd is not None and _stamp_of(os.fstat(fd)) != stamp:
            stamp = None  # somebody without our lock is writing: look again at the next call
        known = b"".join(self.lines)
        is_longer = known.endswith(b"\n") and data.startswith(known) and self.loads > 0
        if is_longer:
            data = data[len(known) :]  # nothing else changed
        lines = data.split(b"\n")
        fresh = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
        self.lines = [*self.lines, *fresh] if is_longer else fresh
        self.loads += not is_longer
        shape = shape_of(whole, self.lines)
        self._refusal = NotRecords(str(self.path), shape) if shape else None
        self._stamp = stamp
        self._check()

    @staticmethod
    def _stamp_at(path: Path) -> _Stamp:
        try:
            return _stamp_of(os.stat(path))
        except FileNotFoundError:
            return _ABSENT

    # --- the lock -------------------------------------------------------------------------------

    @contextmanager
    def _locked(self, *, write: bool) -> Iterator[int | None]:
        """The file open and locked, for others too; None when there is none."""
        while True:
            try:
                fd = os.open(self._place, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC)
            except FileNotFoundError:
                yield None
                return
            try:
                fcntl.flock(fd, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
                here, there = _stamp_of(os.fstat(fd)), self._stamp_at(self.path)
                if here[:2] == there[:2]:
                    yield fd
                    return
            finally:
                os.close(fd)

    @property
    def _place(self) -> str:
        """Where the file really is: symlinks are written through."""
        return os.path.realpath(self.path)

    def _make(self) -> None:
        """Make the file, empty and private, with its folders; another process may be faster."""
        make_private(Path(self._place).parent)
        try:
            write_file(self._place, b"")
        except FileExistsError:
            return
        sync_folder(Path(self._place).parent)

    # --- writing --------------------------------------------------------------------------------

    def _write(self, fd: int, edit: Edit, keep: Keep) -> None:
        """Bring `edit` to disk and into `lines`."""
        lines = [*self.lines]
        coming = self._coming(fd, edit)
        for at, line in edit.lines.items():
            lines[at] = line
        start = b""
        last = next((at for at in range(len(lines) - 1, -1, -1) if lines[at]), None)
        if (edit.added or edit.inserted) and last is not None and not lines[last].endswith(b"\n"):
            lines[last] += b"\n"
            start = b"\n"
        if edit.inserted:
            lines = _with(lines, edit.inserted)
        lines += edit.added
        self._stamp, stamp = None, None  # unknown until all went well
        data = start + b"".join(edit.added)
        if not edit.lines and not edit.inserted and len(data) < MOST_APPENDED:
            coming.size, coming.data = os.fstat(fd).st_size, data
            keep(coming)
            stamp = _appended(fd, data)
        else:
            stamp = self._rewrite(fd, b"".join(lines), coming, keep)
        self.lines, self._stamp = lines, stamp
        self.loads += bool(edit.inserted)

    def _coming(self, fd: int, edit: Edit) -> Coming:
        slots = sorted(edit.lines)
        at = [slot - self.lines[:slot].count(b"") for slot in slots]
        added = [line for slot in sorted(edit.inserted) for line in edit.inserted[slot]]
        return Coming(self._place, edit.verb, at, [self.lines[slot] for slot in slots],
                      [edit.lines[slot] for slot in slots], [*added, *edit.added], os.fstat(fd).st_ino)  # fmt: skip

    def _rewrite(self, fd: int, data: bytes, coming: Coming, keep: Keep) -> _Stamp | None:
        """The file's new content; the stamp it then has, None when it is not known."""
        place, temp, status = self._place, self._temp, os.fstat(fd)
        try:
            write_file(temp, data, mode=stat.S_IMODE(status.st_mode))
        except OSError as error:
            if error.errno not in _NO_TEMP:
                raise
            return self._in_place(fd, data, coming, keep)
        try:
            _give_to(temp, status)
            stamp = _stamp_of(os.stat(temp))
            coming.inode = stamp[1]
            keep(coming)
            os.rename(temp, place)
        except BaseException as error:
            os.unlink(temp)
            if not isinstance(error, OSError) or error.errno not in _NO_RENAME:
                raise
            return self._in_place(fd, data, coming, keep)
        try:
            sync_folder(Path(place).parent)
        except OSError as error:
            self._take_back(fd, status, error)
            raise
        return stamp

    def _take_back(self, fd: int, status: os.stat_result, error: OSError) -> None:
        """The folder would not sync, so that a power failure may bring either file: show the old one again."""
        temp = self._temp
        try:
            write_file(temp, _all_of(fd), mode=stat.S_IMODE(status.st_mode))
            try:
                _give_to(temp, status)
                os.rename(temp, self._place)
            except OSError:
                os.unlink(temp)
                raise
        except OSError:
            raise Unconfirmed(self.name, reason(error)) from None

    def _in_place(self, fd: int, data: bytes, coming: Coming, keep: Keep) -> _Stamp | None:
        """Overwrite the file itself, as nothing can be renamed over it; the whole old content is kept first."""
        old = _all_of(fd)
        coming.whole, coming.data, coming.inode = old, data, os.fstat(fd).st_ino
        keep(coming)
        _log.warning("%s cannot be replaced by a rename; it was written in place", self.name)
        try:
            _overwrite(fd, data)
        except OSError:
            _overwrite(fd, old)
            raise
        return _expected(fd, len(data))

    def complete(self, size: int, data: bytes, inode: int) -> bool:
        """Finish an append that ended in its middle: `data` was to follow the first `size` bytes of file `inode`.

        Whether the file may hold it now: False where nothing of it had come, or the file is another one. What
        others added behind a part of it stays. Raises OSError.
        """
        with self._locked(write=True) as fd:
            if fd is None or os.fstat(fd).st_ino != inode:
                return False
            now = _all_of(fd)
            tail = now[size:]
            done = _shared(tail, data)
            self._stamp = None
            if done == len(tail) < len(data) and done:
                _appended(fd, data[done:])
            elif done < len(data):
                rest = tail[done:]
                if rest[:1] == b"\n" != data[done - 1 : done]:  # others closed a torn line before theirs
                    rest = rest[1:]
                else:
                    done = data.rfind(b"\n", 0, done) + 1
                    rest = tail[done:]
                if done:
                    self._rewrite(fd, now[:size] + data + rest, self._coming(fd, Edit()), lambda _: None)
            return done > 0

    def complete_in_place(self, old: bytes, new: bytes, inode: int) -> bool:
        """Finish writing `new` over `old` in file `inode`, which ended in its middle; whether it may hold `new` now.

        A file that is neither, nor the one in front and the other behind, is left alone. Raises OSError.
        """
        with self._locked(write=True) as fd:
            if fd is None or os.fstat(fd).st_ino != inode:
                return False
            now = _all_of(fd)
            done = _shared(now, new)
            if now != new and now[done:] == old[done:]:
                self._stamp = None
                _overwrite(fd, new)
            return True

    @property
    def inode(self) -> int | None:
        """What tells the file from another one in its place; None when there is none. Raises OSError."""
        return self._stamp_at(self.path)[1] or None

    @property
    def changed(self) -> int:
        """When the file was last written, in ns since 1970; 0 when that is not known."""
        return self._stamp[3] if self._stamp else 0

    @property
    def stamp(self) -> Stamp | None:
        """The stamp of the file whose lines are held, None when that is not known or there is none."""
        return Stamp(self._stamp[2], self._stamp[3], self._stamp[1]) if self._stamp and self._stamp != _ABSENT else None

    # --- what a dead process left ---------------------------------------------------------------

    @property
    def _temp(self) -> str:
        """The one temporary file, of a name the next process knows too."""
        folder, name = os.path.split(self._place)
        return os.path.join(folder, f"{TEMP_PREFIX}{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}")

    def _leftover(self) -> bool:
        return self._stamp is None and os.path.lexists(self._temp) and os.access(self._place, os.W_OK)

    def _remove_leftover(self) -> None:
        """Remove the temporary file of a process that died; the lock is held."""
        try:
            os.unlink(self._temp)
        except OSError:
            return


def _with(lines: list[bytes], inserted: Mapping[int, list[bytes]]) -> list[bytes]:
    """The lines that are some, and those to be put before them."""
    found = []
    for slot in range(len(lines) + 1):
        found += inserted.get(slot, ())
        found += [line for line in lines[slot : slot + 1] if line]
    return found


def _stamp_of(status: os.stat_result) -> _Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _all_of(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    return read_fd(fd)


def _appended(fd: int, data: bytes) -> _Stamp | None:
    """Add `data` at the end in one write, all of it or nothing; the file's stamp, None when others wrote too."""
    size = os.lseek(fd, 0, os.SEEK_END)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
    try:
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise
    return _expected(fd, size + len(data))


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _overwrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _expected(fd: int, size: int) -> _Stamp | None:
    stamp = _stamp_of(os.fstat(fd))
    return stamp if stamp[2] == size else None


def _give_to(temp: str, status: os.stat_result) -> None:
    """The owner of the file replaced, where that is allowed."""
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.chown(temp, status.st_uid, status.st_gid)
        except PermissionError:
            return
