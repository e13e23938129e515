"""Reads and changes a folder of JSON files with key-value entries, used in place (contract 004, 7).

A file has a JSON array of rows, such as `[{"key": "city", "value": "Bonn", ...}]`, and is named by
its namespace: `work.json`. The name without `.json` is its stem.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.note.model import KV_PROJECT
from memoranda.sources import files
from memoranda.sources.base import Stamp
from memoranda.sources.json_rows import (
    EXTENSION,
    META,
    Row,
    RowEdit,
    RowUndo,
    check_expiry,
    history_line,
    namespace_in,
    stem_of,
)
from memoranda.sources.line_change import KeptLines, LineChange
from memoranda.sources.locked_file import LockedFile, Replacement
from memoranda.sources.step import Step, StepKind
from memoranda.text.checksum import sha256

# Two changes within this time may leave a file with the same size and time. So a file that was
# changed more recently is not cached.
_TICK_NANOSECONDS = 50_000_000
# The errors of a full disk or a used-up quota.
_FULL_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT)


class Content(NamedTuple):
    """The contents of a file.

    rows: in their order. Callers must not change them.
    size: in bytes.
    changed: when the file was changed last, in seconds since 1970.
    ending: the line break at its end, or "".
    """

    rows: tuple[Row, ...] = ()
    size: int = 0
    changed: float = 0.0
    ending: str = ""


class EntryCount(NamedTuple):
    """How many entries and namespaces a folder has."""

    entries: int
    namespaces: int


class JsonFiles:
    """The files of the folder `root`, by their stems.

    Reading raises OSError, and ValueError for a file that is not an array of entries.
    """

    def __init__(self, root: Path):
        self.root = root
        # A cache: stem -> the contents of the file, and its stamp then
        self._cache: dict[str, tuple[Stamp, Content]] = {}

    def stems(self) -> list[str]:
        """Return the stems of all files that can have a namespace, sorted.

        Empty if the folder does not exist.
        """
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return []
        stems = [
            name.removesuffix(EXTENSION)
            for name in names
            if name.endswith(EXTENSION) and name != META
        ]
        return sorted(stem for stem in stems if stem and stem_of(stem) == stem)

    def read(self, stem: str) -> Content:
        """Return the present contents of a file. A missing file has no rows."""
        file = self.file(stem)
        if stem in self._cache:
            stamp, content = self._cache[stem]
            if stamp == file.stamp():
                return content
        else:
            file.remove_leftover()
        with file.locked(write=False) as fd:
            return self.load(stem, file, fd)

    @contextmanager
    def shared(self, stem: str) -> Iterator[None]:
        """Keep other processes of memoranda from replacing the file, until the end of the block."""
        with self.file(stem).locked(write=False):
            yield

    def file(self, stem: str) -> LockedFile:
        """Return the file of this stem, which may not exist."""
        return LockedFile(self.root / f"{stem}{EXTENSION}")

    def name_of(self, row: Row, stem: str) -> str:
        """Return the key that reads of an entry are counted by.

        It depends on the time at which the entry was written. So the count of an entry that is
        written again begins at zero.

        row: the entry.
        stem: the name of the file without `.json`.
        """
        parts = (str(self.root), namespace_in(row, stem), row["key"], str(row.get("created_at")))
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass"))[:32]

    def write_count(self, count: Callable[[], EntryCount]) -> None:
        """Write into `_meta.json` how many entries there are, unless it holds no JSON object.

        count: counts them. It is called while `_meta.json` is locked. So of two processes, the one
            that counts later also writes later.

        Raises OSError, ValueError.
        """
        file = LockedFile(self.root / META)
        with file.locked(write=True, make=True) as fd:
            assert fd is not None
            entry_count = count()
            data = file.read(fd)
            meta = json.loads(data) if data.strip() else {}
            if not isinstance(meta, dict):
                return
            new_meta = meta | {
                "total_entries": entry_count.entries,
                "namespace_count": entry_count.namespaces,
            }
            if new_meta != meta:
                file.replace(fd, json.dumps(new_meta, indent=2).encode())

    def load(self, stem: str, file: LockedFile, fd: int | None) -> Content:
        """Read the contents of an open file.

        stem: the name of the file without `.json`.
        file: reads the bytes.
        fd: its descriptor. None is a missing file, without rows.

        Raises ValueError if it is not a JSON array of objects whose `key` is a text, or if the
        time at which one of them expires cannot be read.
        """
        if fd is None:
            return Content()
        status = os.fstat(fd)
        data = file.read(fd)
        text = data.decode("utf-8-sig")
        ending = "\n" if text.endswith("\n") else ""
        content = Content(_rows_in(text), len(data), status.st_mtime, ending)
        # A file that changed within the last tick of the clock may change again under the same
        # time.
        if time.time_ns() - status.st_mtime_ns > _TICK_NANOSECONDS:
            self._cache[stem] = files.stamp_of(status), content
        return content


class CannotOpen(StorageError):
    """The file cannot be opened or read."""


class JsonFile:
    """One file of a folder as a source of entries (`InPlaceSource` in source.py).

    about: the path that its steps name. "" for the name of the file.
    make: whether to make a missing file.
    content: the contents of the file, inside `changing`.
    """

    name = KV_PROJECT

    def __init__(self, folder: JsonFiles, stem: str, about: str = "", *, make: bool = False):
        self._folder = folder
        self._stem = stem
        self._about = about or f"{stem}{EXTENSION}"
        self._make = make
        self._file = folder.file(stem)
        self._fd: int | None = None
        self.content = Content()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Read the file and lock it until the end of the block. The block may plan and make one
        edit.

        Raises CannotOpen, StorageError, and ValueError for a file that is not an array of entries.
        """
        is_open = False
        try:
            with self._file.locked(write=True, make=self._make) as fd:
                self.content = self._folder.load(self._stem, self._file, fd)
                is_open = True
                self._fd = fd
                yield
        except OSError as error:
            # `make` may write while it opens the file. A full disk is no trouble of this file.
            is_about_opening = not is_open and error.errno not in _FULL_DISK_ERRORS
            error_class = CannotOpen if is_about_opening else StorageError
            raise error_class(self._file.name, files.reason(error)) from None
        finally:
            self._fd = None

    def steps(self, edit: RowEdit) -> Sequence[Step]:
        """Return the step that makes an edit. Empty if nothing changes."""
        if not edit:
            return []
        rows = self.content.rows
        numbers = sorted(edit.removed)
        text = self._text_of(edit.applied(rows))
        lines = LineChange(
            place=self._file.target,
            numbers=numbers,
            old=[history_line(rows[number]) for number in numbers],
            # A removed row has no new line
            new=[b""] * len(numbers),
            added=[history_line(row) for row in edit.new_rows],
            write=Replacement(self._file, self._open_fd, text),
        )
        root = os.path.realpath(self._folder.root)
        return [Step(StepKind.LINES, self.name, root, self._about, lines=lines)]

    def inverse(self, kept_lines: KeptLines) -> RowEdit | None:
        return RowUndo(self.content.rows, self._stem).edit(kept_lines)

    def counted(self, edit: RowEdit) -> Sequence[str]:
        removed_rows = [self.content.rows[number] for number in sorted(edit.removed)]
        return [self._folder.name_of(row, self._stem) for row in [*removed_rows, *edit.new_rows]]

    @property
    def _open_fd(self) -> int:
        """The descriptor of the file, inside `changing`."""
        assert self._fd is not None, "a missing file holds nothing to replace"
        return self._fd

    def _text_of(self, rows: list[Row]) -> bytes:
        """Return the file's bytes with these rows. Raises ValueError if JSON cannot express them."""
        try:
            return (json.dumps(rows, indent=2, allow_nan=False) + self.content.ending).encode()
        except RecursionError:
            raise ValueError("nested too deeply") from None


def refuse_constant(constant: str) -> Any:
    """Raise ValueError for NaN and the infinities: the `parse_constant` of json.loads."""
    raise ValueError(f"{constant} is no JSON")


def _rows_in(text: str) -> tuple[dict[str, Any], ...]:
    """Return the rows of a JSON text. A text without characters, or only blanks, has no rows.

    Raises ValueError if it is not an array of objects whose `key` is a text, or if the time at
    which one of them expires cannot be read.
    """
    if not text.strip():
        return ()
    try:
        rows = json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise ValueError("no array of objects with a text as `key`")
    for row in rows:
        check_expiry(row)
    return tuple(rows)


def _is_row(value: Any) -> bool:
    """Whether a JSON value is an object whose `key` is a text."""
    return isinstance(value, dict) and isinstance(value.get("key"), str)
