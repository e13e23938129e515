"""Files used in place: one file, locked on itself, so that two homes, other programs and any path
to it see one lock; what a change does to its lines; and files of JSON. How a change of lines gets
into the history: ledger/lines.py. The order of locks is always the home's, then the file's.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from memoranda.clock import waits_at_most
from memoranda.errors import Busy, MemorandaError, StorageError
from memoranda.store import files
from memoranda.store.base import Stamp, sha256
from memoranda.store.layout import TEMP_PREFIX
from memoranda.text.pattern import lazy_pattern

# A single file mounted into a container cannot be renamed over.
_NO_RENAME = {errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS}
_BYTES = "utf-8", "surrogateescape"
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
            logging.getLogger("memoranda.inplace").warning(warning, self.name)
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


@dataclass(slots=True)
class LineChange:
    """A change that is about to reach the file at `place`.

    `numbers` are those, from 0 and in the file as it was, of the lines that change or go; `old` and
    `new` what they were and become (empty: removed), `added` the other new lines. If these are
    appended, `size` is the file's size before and `data` the bytes to come; else `size` is None.
    `inode` is that of the file, or of the one that will replace it. Where the file is overwritten
    `whole` is its old content and `data` the new one.
    """

    place: str
    verb: str
    numbers: list[int]
    old: list[bytes]
    new: list[bytes]
    added: list[bytes]
    inode: int = 0
    size: int | None = None
    data: bytes = b""
    whole: bytes | None = None


Row = dict[str, Any]

META = "_meta.json"
_META_NAMESPACE = "_meta_"
# Signs that agent-memory replaces in the names of its files.
_UNSAFE = lazy_pattern(r"[^A-Za-z0-9_.-]")
_EXTENSION = ".json"
# Characters of a file's name without its extension; with it, what file systems take
_LONGEST = 250
_TICK = (
    # Nanoseconds in which a second change may leave a file's size and time as they are
    50_000_000
)


def stem_of(namespace: str) -> str:
    """The name, without `.json`, of the file for a namespace; several namespaces can come to the
    same.
    """
    stem = _UNSAFE.sub("_", namespace)[:_LONGEST]
    if stem + _EXTENSION == META:
        return _META_NAMESPACE
    return stem


def namespace_in(row: Row, stem: str) -> str:
    """The namespace of a row in the file `stem`; a field of that name that means another file is
    not ours.
    """
    namespace = row.get("namespace")
    if isinstance(namespace, str) and namespace and stem_of(namespace) == stem:
        return namespace
    return stem


class Content(NamedTuple):
    """The rows of a file, in their order, not to be changed; bytes, and seconds since 1970 of its
    last change."""

    rows: tuple[Row, ...] = ()
    size: int = 0
    changed: float = 0.0
    ending: str = ""


@dataclass(slots=True)
class RowEdit:
    """The changes to the rows of a file, by their numbers from 0.

    `gone`: the rows that go. `inserted`: rows that come before the row of a number. `added`: rows
    that come at the end.
    """

    verb: str
    gone: set[int] = field(default_factory=set)
    inserted: dict[int, list[Row]] = field(default_factory=dict)
    added: list[Row] = field(default_factory=list)

    def applied(self, rows: Sequence[Row]) -> list[Row]:
        """The rows after it."""
        after: list[Row] = []
        for number, row in enumerate(rows):
            after += self.inserted.get(number, ())
            if number not in self.gone:
                after.append(row)
        after += self.inserted.get(len(rows), ())
        return after + self.added

    def change(
        self, place: str, rows: Sequence[Row], line_of: Callable[[Row], bytes]
    ) -> LineChange:
        """The edit as lines for the history, each row as `line_of` has it."""
        numbers = sorted(self.gone)
        old = [line_of(rows[number]) for number in numbers]
        rows_by_place = (self.inserted[number] for number in sorted(self.inserted))
        coming = list(chain.from_iterable(rows_by_place))
        added = [line_of(row) for row in [*coming, *self.added]]
        return LineChange(place, self.verb, numbers, old, [b""] * len(old), added)


class Write(Protocol):
    """Puts rows in place of those of a file; `announce` hears of the `change` right before."""

    def __call__(
        self,
        rows: list[Row],
        change: LineChange | None = None,
        announce: Callable[[LineChange], None] | None = None,
    ) -> None: ...


class JsonFiles:
    """A folder's files by their stems. Reading raises OSError, and ValueError for what is no array
    of entries.
    """

    def __init__(self, root: Path):
        self.root = root
        self._known: dict[str, tuple[Stamp, Content]] = {}

    def stems(self) -> list[str]:
        """The stems of all files that can hold a namespace, sorted; none when there is no folder."""
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return []
        stems = [
            name.removesuffix(_EXTENSION)
            for name in names
            if name.endswith(_EXTENSION) and name != META
        ]
        return sorted(stem for stem in stems if stem and stem_of(stem) == stem)

    def read(self, stem: str) -> Content:
        """The rows of a file now; a missing file has none."""
        file = LockedFile(self.root / f"{stem}{_EXTENSION}")
        known_content = self._known.get(stem)
        if known_content and known_content[0] == file.stamp():
            return known_content[1]
        if known_content is None:
            file.remove_leftover()
        with file.locked(write=False) as fd:
            return self._load(stem, file, fd)

    @contextmanager
    def shared(self, stem: str) -> Iterator[None]:
        """Inside, nobody of ours replaces the file."""
        with LockedFile(self.root / f"{stem}{_EXTENSION}").locked(write=False):
            yield

    def place(self, stem: str) -> str:
        """Where a file really is."""
        return LockedFile(self.root / f"{stem}{_EXTENSION}").target

    @contextmanager
    def changing(self, stem: str, make: bool = False) -> Iterator[tuple[Content, Write]]:
        """What the file holds, which only we change inside, and what puts other rows in its place,
        durable on return: it raises OSError and, for what JSON cannot say, ValueError. With `make`
        a missing file begins empty."""
        file = LockedFile(self.root / f"{stem}{_EXTENSION}")
        with file.locked(write=True, make=make) as fd:
            content = self._load(stem, file, fd)

            def write(
                rows: list[Row],
                change: LineChange | None = None,
                announce: Callable[[LineChange], None] | None = None,
            ) -> None:
                try:
                    text = json.dumps(rows, indent=2, allow_nan=False) + content.ending
                except RecursionError:
                    raise ValueError("nested too deeply") from None
                assert fd is not None, "a missing file holds nothing to replace"

                def announced(inode: int, _: bytes | None) -> None:
                    if change is not None and announce is not None:
                        change.inode = inode
                        announce(change)

                # The history would get the whole file, with texts it may not keep
                file.replace(fd, text.encode(), announced, may_overwrite=False)

            yield content, write

    def count(self, entries: int, namespaces: int) -> None:
        """Bring `_meta.json` up to date; one that is no JSON object stays. Raises OSError,
        ValueError.
        """
        file = LockedFile(self.root / META)
        with file.locked(write=True, make=True) as fd:
            assert fd is not None
            data = file.read(fd)
            if data.strip():
                meta = json.loads(data)
            else:
                meta = {}
            counts = {"total_entries": entries, "namespace_count": namespaces}
            if isinstance(meta, dict) and (now := meta | counts) != meta:
                file.replace(fd, json.dumps(now, indent=2).encode())

    def _load(self, stem: str, file: LockedFile, fd: int | None) -> Content:
        """What the open file holds. Raises ValueError when that is no JSON array of objects with
        texts as keys.
        """
        if fd is None:
            return Content()
        status = os.fstat(fd)
        data = file.read(fd)
        text = data.decode("utf-8-sig")
        try:
            if text.strip():
                rows = json.loads(text, parse_constant=refuse_constant)
            else:
                rows = []
        except RecursionError:
            raise ValueError("nested too deeply") from None
        sound = isinstance(rows, list) and all(
            isinstance(row, dict) and isinstance(row.get("key"), str) for row in rows
        )
        if not sound:
            raise ValueError("no array of entries with keys")
        content = Content(
            tuple(rows), len(data), status.st_mtime, "\n" if text.endswith("\n") else ""
        )
        if time.time_ns() - status.st_mtime_ns > _TICK:
            self._known[stem] = files.stamp_of(status), content
        return content


def refuse_constant(constant: str) -> Any:
    """For json.loads: raises ValueError for NaN and the infinities."""
    raise ValueError(f"{constant} is no JSON")
