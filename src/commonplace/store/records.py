"""A file of one JSON object a line, used where it lies (contract 002, 6).

Every line is kept as bytes. What a call does not touch is written back as it was, and nothing else lies
beside the file. The lock is `flock` on the file itself, so that two homes and any path to it see one lock.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commonplace.errors import InvalidInput, StorageError
from commonplace.store.atomic import make_private, read_fd, reason, sync_folder, write_file
from commonplace.store.layout import TEMP_PREFIX

MOST_APPENDED = 65536
"""Bytes: more than that is written beside the file and renamed over it."""
_BOM = b"\xef\xbb\xbf"
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


class BadLine(ValueError):
    """A line that is no JSON object; the text says why."""


@dataclass(slots=True)
class Edit:
    """What a call changes: line number (from 0) -> its new bytes, empty for a line that goes; lines to add.

    `verb` names the change in the history.
    """

    lines: dict[int, bytes] = field(default_factory=dict)
    added: list[bytes] = field(default_factory=list)
    verb: str = "edit"


Keep = Callable[[str, bytes], None]
"""(verb, the lines that go): make them durable elsewhere, before they leave the file. Raises OSError."""


class Records:
    """The lines of the file at `path`. Not for several threads at once: the caller sees to that.

    `lines` are its bytes, each with its end; a line removed since the last load is empty. `loads` counts
    how often the file was read.
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
        """Carry out what `plan` says as one change, durable on return; the lines that go are given to `keep`.

        `plan` runs under the file's lock, `lines` being what is on disk, and again when the file had to be made
        first. Returns the edit. Raises NotRecords, StorageError; then the file is as it was.
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
                    if fd is not None or not (edit.lines or edit.added):
                        self._write(fd, edit, keep)
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
        data = b"" if fd is None else _all_of(fd)
        if fd is not None and _stamp_of(os.fstat(fd)) != stamp:
            stamp = None  # somebody without our lock is writing: look again at the next call
        lines = data.split(b"\n")
        self.lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
        self.loads += 1
        shape = shape_of(data, self.lines)
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

    def _write(self, fd: int | None, edit: Edit, keep: Keep) -> None:
        """Bring `edit` to disk and into `lines`."""
        if fd is None or not (edit.lines or edit.added):
            return
        lines = [*self.lines]
        old = b"".join(lines[at] for at in sorted(edit.lines))
        for at, line in edit.lines.items():
            lines[at] = line
        start = b""
        last = next((at for at in range(len(lines) - 1, -1, -1) if lines[at]), None)
        if edit.added and last is not None and not lines[last].endswith(b"\n"):
            lines[last] += b"\n"
            start = b"\n"
        lines += edit.added
        self._stamp, stamp = None, None  # unknown until all went well
        if not edit.lines and sum(map(len, edit.added)) < MOST_APPENDED:
            stamp = _appended(fd, start + b"".join(edit.added))
        else:
            stamp = self._rewrite(fd, b"".join(lines), old, lambda gone: keep(edit.verb, gone))
        self.lines, self._stamp = lines, stamp

    def _rewrite(self, fd: int, data: bytes, old: bytes, keep: Callable[[bytes], None]) -> _Stamp | None:
        """The file's new content; the stamp it then has, None when it is not known."""
        place, temp, status = self._place, self._temp, os.fstat(fd)
        try:
            write_file(temp, data, mode=stat.S_IMODE(status.st_mode))
        except OSError as error:
            if error.errno not in _NO_TEMP:
                raise
            return self._in_place(fd, data, keep)
        try:
            _give_to(temp, status)
            if old:
                keep(old)
            stamp = _stamp_of(os.stat(temp))
            os.rename(temp, place)
        except BaseException as error:
            os.unlink(temp)
            if not isinstance(error, OSError) or error.errno not in _NO_RENAME:
                raise
            return self._in_place(fd, data, keep)
        sync_folder(Path(place).parent)
        return stamp

    def _in_place(self, fd: int, data: bytes, keep: Callable[[bytes], None]) -> _Stamp | None:
        """Overwrite the file itself, as nothing can be renamed over it; the whole old content is kept first."""
        old = _all_of(fd)
        if old:
            keep(old)
        _log.warning("%s cannot be replaced by a rename; it was written in place", self.name)
        try:
            _overwrite(fd, data)
        except OSError:
            _overwrite(fd, old)
            raise
        return _expected(fd, len(data))

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


def value_of(line: bytes) -> dict[str, Any] | None:
    """The object in a line, None for a blank one. Raises BadLine."""
    line = line.removeprefix(_BOM)
    if not line.strip():
        return None
    try:
        value = json.loads(line.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadLine("not JSON") from None
    if not isinstance(value, dict):
        raise BadLine("no JSON object")
    return value


def replaced(line: bytes, key: str, value: Any) -> bytes:
    """`line`, an object, with another value at `key`; all its other bytes stay. A missing key is put last."""
    bom = _BOM if line.startswith(_BOM) else b""
    text = line.removeprefix(_BOM).decode()
    fresh = dumped(value)
    spans = [(start, end) for name, start, end in _members(text) if name == key]
    if spans:
        start, end = spans[-1]
        text = text[:start] + fresh + text[end:]
    else:
        brace = text.rindex("}")
        comma = "" if text[:brace].rstrip().endswith("{") else ","
        text = f"{text[:brace].rstrip()}{comma}{json.dumps(key)}:{fresh}{text[brace:]}"
    return bom + text.encode() + (b"" if text.endswith("\n") else b"\n")


def dumped(value: Any) -> str:
    """`value` as JSON without blanks, other alphabets raw."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shape_of(data: bytes, lines: Sequence[bytes]) -> str:
    """What the file is when it is not lines of JSON objects; empty when it is."""
    data = data.removeprefix(_BOM).strip()
    full = [line.removeprefix(_BOM).strip() for line in lines if line.removeprefix(_BOM).strip()]
    if not full:
        return ""
    first = _quietly(full[0])
    if isinstance(first, dict) and (len(full) > 1 or "type" in first):
        return ""
    whole = _quietly(data)
    if isinstance(whole, list):
        return "a JSON array"
    if whole is not None and len(full) > 1:
        return "one JSON value over several lines"
    if isinstance(whole, dict):
        return "one JSON object without a type"
    if not any(line.startswith(b"{") for line in full):
        return "a file of another kind"
    is_torn = full[0] == b"{" or full[0].startswith(b"[")
    if is_torn and not any(isinstance(_quietly(line), dict) for line in full):
        return "one JSON value over several lines, cut off"
    return ""


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """(key, start and end of its value) of the object in `text`, which is known to be one."""
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        at = _past_blanks(text, at)
        if text[at] == "}":
            return
        key, at = decoder.raw_decode(text, at)
        start = _past_blanks(text, _past_blanks(text, at) + 1)
        _, end = decoder.raw_decode(text, start)
        yield key, start, end
        at = _past_blanks(text, end)
        at += text[at] == ","


def _past_blanks(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _quietly(data: bytes) -> Any:
    """The JSON value, None when it is none."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


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
