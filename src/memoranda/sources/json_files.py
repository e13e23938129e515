"""A folder of JSON files with key-value entries, used in place (contract 004, 7)."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
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
    history_line,
    namespace_in,
    stem_of,
)
from memoranda.sources.line_change import KeptLines, LineChange
from memoranda.sources.locked_file import LockedFile, Replacement
from memoranda.sources.step import LINES, Step
from memoranda.text.checksum import sha256

# Nanoseconds in which a second change may leave a file's size and time as they are
_TICK = 50_000_000
# Nothing can be written: the disk, or the share of it, is full.
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Content(NamedTuple):
    """The rows of a file, in their order, not to be changed; bytes, and seconds since 1970 of its
    last change."""

    rows: tuple[Row, ...] = ()
    size: int = 0
    changed: float = 0.0
    ending: str = ""


class JsonFiles:
    """The files of a folder, by their stems.

    Reading raises OSError, and ValueError for a file that is not an array of entries.
    """

    def __init__(self, root: Path):
        self.root = root
        self._known: dict[str, tuple[Stamp, Content]] = {}

    def stems(self) -> list[str]:
        """The stems of all files that can hold a namespace, sorted. Empty if there is no folder."""
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
        """The rows of a file now; a missing file has none."""
        file = self.file(stem)
        known_content = self._known.get(stem)
        if known_content and known_content[0] == file.stamp():
            return known_content[1]
        if known_content is None:
            file.remove_leftover()
        with file.locked(write=False) as fd:
            return self.load(stem, file, fd)

    @contextmanager
    def shared(self, stem: str) -> Iterator[None]:
        """Inside, nobody of ours replaces the file."""
        with self.file(stem).locked(write=False):
            yield

    def file(self, stem: str) -> LockedFile:
        """The file of this stem."""
        return LockedFile(self.root / f"{stem}{EXTENSION}")

    def name_of(self, row: Row, stem: str) -> str:
        """The name under which recalls of an entry are counted. It changes when the entry is
        written again.
        """
        parts = (str(self.root), namespace_in(row, stem), row["key"], str(row.get("created_at")))
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass"))[:32]

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

    def load(self, stem: str, file: LockedFile, fd: int | None) -> Content:
        """The contents of the open file.

        Raises ValueError if it is not a JSON array of objects with texts as keys.
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


class CannotOpen(StorageError):
    """The file cannot be opened or read."""


class JsonFile:
    """One file of a folder as a source of entries: see `InPlaceSource` in edit.py.

    about: the path that its steps name.
    make: whether a missing file is made, empty.
    content: what is in the file, inside `changing`.
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
        """As in `EditableSource`. Raises CannotOpen, StorageError, and ValueError for a file that is
        not an array of entries.
        """
        is_open = False
        try:
            with self._file.locked(write=True, make=self._make) as fd:
                self.content = self._folder.load(self._stem, self._file, fd)
                is_open = True
                self._fd = fd
                yield
        except OSError as error:
            kind = StorageError if is_open or error.errno in _FULL else CannotOpen
            raise kind(self._file.name, files.reason(error)) from None
        finally:
            self._fd = None

    def steps(self, edit: RowEdit) -> Sequence[Step]:
        if not edit:
            return []
        rows = self.content.rows
        numbers = sorted(edit.gone)
        old = [history_line(rows[number]) for number in numbers]
        added = [history_line(row) for row in edit.coming]
        text = self._text_of(edit.applied(rows))
        write = Replacement(self._file, self._open_fd, text)
        lines = LineChange(self._file.target, numbers, old, [b""] * len(old), added, write)
        root = os.path.realpath(self._folder.root)
        return [Step(LINES, self.name, root, self._about, lines=lines)]

    def inverse(self, kept_lines: KeptLines) -> RowEdit | None:
        return RowUndo(self.content.rows, self._stem).edit(kept_lines)

    def counted(self, edit: RowEdit) -> Sequence[str]:
        changed = [*(self.content.rows[number] for number in sorted(edit.gone)), *edit.coming]
        return [self._folder.name_of(row, self._stem) for row in changed]

    def replace(self, rows: list[Row]) -> None:
        """Replace the rows of the file, durable on return. The history does not record it: nobody
        sees counts of recalls as a change. Raises OSError, ValueError.
        """
        self._file.replace(self._open_fd, self._text_of(rows))

    @property
    def _open_fd(self) -> int:
        assert self._fd is not None, "a missing file holds nothing to replace"
        return self._fd

    def _text_of(self, rows: list[Row]) -> bytes:
        try:
            return (json.dumps(rows, indent=2, allow_nan=False) + self.content.ending).encode()
        except RecursionError:
            raise ValueError("nested too deeply") from None


def refuse_constant(constant: str) -> Any:
    """For json.loads: raises ValueError for NaN and the infinities."""
    raise ValueError(f"{constant} is no JSON")
