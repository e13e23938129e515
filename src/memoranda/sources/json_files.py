"""A folder of JSON files with key-value entries, used in place (contract 004, 7)."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.sources import files
from memoranda.sources.base import Stamp
from memoranda.sources.line_change import LineChange
from memoranda.sources.locked_file import LockedFile, Replacement

Row = dict[str, Any]

META = "_meta.json"
_META_NAMESPACE = "_meta_"
# Signs that agent-memory replaces in the names of its files.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
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


class OpenRows:
    """The rows of a file that is locked, so that only we change it."""

    def __init__(self, file: LockedFile, fd: int | None, content: Content):
        self.content = content
        self._file = file
        self._fd = fd

    def line_change(self, edit: RowEdit, line_of: Callable[[Row], bytes]) -> LineChange:
        """An edit as the step that makes it, each row as `line_of` has it for the history. Raises
        ValueError for what JSON cannot say.
        """
        rows = self.content.rows
        numbers = sorted(edit.gone)
        old = [line_of(rows[number]) for number in numbers]
        rows_by_place = (edit.inserted[number] for number in sorted(edit.inserted))
        coming = list(chain.from_iterable(rows_by_place))
        added = [line_of(row) for row in [*coming, *edit.added]]
        new = [b""] * len(old)
        write = Replacement(self._file, self._open_fd, self._text_of(edit.applied(rows)))
        return LineChange(self._file.target, numbers, old, new, added, write)

    def replace(self, rows: list[Row]) -> None:
        """Replace the rows of the file, durable on return. The history does not record it.
        Raises OSError, ValueError.
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

    @contextmanager
    def changing(self, stem: str, make: bool = False) -> Iterator[OpenRows]:
        """The rows of a file, which only we change inside. With `make` a missing file begins empty."""
        file = LockedFile(self.root / f"{stem}{_EXTENSION}")
        with file.locked(write=True, make=make) as fd:
            yield OpenRows(file, fd, self._load(stem, file, fd))

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


def refuse_constant(constant: str) -> Any:
    """For json.loads: raises ValueError for NaN and the infinities."""
    raise ValueError(f"{constant} is no JSON")
