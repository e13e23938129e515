"""A folder of JSON files as the agent-memory server keeps it: one array of entries a file (contract 004, 7).

Every file is locked on itself, as that server does, and replaced whole; one that is no array of entries is
never written.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.store.base import Stamp
from commonplace.store.files import stamp_of
from commonplace.store.inplace.locked_file import LockedFile

Row = dict[str, Any]

META = "_meta.json"
_META_NAMESPACE = "_meta_"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_EXTENSION = ".json"
_LONGEST = 250
"""Characters of a file's name without its extension; with it, what file systems take."""
_TICK = 50_000_000
"""Nanoseconds in which a second change may leave a file's size and time as they are."""


def stem_of(namespace: str) -> str:
    """The name, without `.json`, of the file for a namespace; several namespaces can come to the same."""
    stem = _UNSAFE.sub("_", namespace)[:_LONGEST]
    return _META_NAMESPACE if stem + _EXTENSION == META else stem


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, in its order, not to be changed; bytes, and seconds since 1970 of its last change."""

    rows: tuple[Row, ...] = ()
    size: int = 0
    changed: float = 0.0
    ending: str = ""


_NOTHING = Content()


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file locked for a change, with what it holds."""

    content: Content
    _file: LockedFile
    _fd: int | None

    def replace(self, rows: list[Row]) -> None:
        """Put `rows` in place of the content, durable on return. Raises OSError and, for what JSON cannot say,
        ValueError; then nothing changed."""
        try:
            text = json.dumps(rows, indent=2, allow_nan=False) + self.content.ending
        except RecursionError:
            raise ValueError("nested too deeply") from None
        assert self._fd is not None, "a missing file holds nothing to replace"
        self._file.replace(self._fd, text.encode())


class JsonFiles:
    """A folder's files by their stems. Reading raises OSError, and ValueError for what is no array of entries."""

    def __init__(self, root: Path):
        self.root = root
        self._known: dict[str, tuple[Stamp, Content]] = {}

    def stems(self) -> list[str]:
        """The stems of all files that can hold a namespace, sorted; none when there is no folder."""
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return []
        stems = [name.removesuffix(_EXTENSION) for name in names if name.endswith(_EXTENSION) and name != META]
        return sorted(stem for stem in stems if stem and stem_of(stem) == stem)

    def read(self, stem: str) -> Content:
        """What a file holds now; a missing one holds nothing."""
        file = self._file(stem)
        known = self._known.get(stem)
        if known and known[0] == file.stamp():
            return known[1]
        if known is None:
            file.remove_leftover()
        with file.locked(write=False) as fd:
            return self._load(stem, file, fd)

    @contextmanager
    def shared(self, stem: str) -> Iterator[None]:
        """Inside, nobody of ours replaces the file."""
        with self._file(stem).locked(write=False):
            yield

    @contextmanager
    def changing(self, stem: str, make: bool = False) -> Iterator[OpenFile]:
        """The file, which only we change inside. With `make` a missing one begins empty."""
        file = self._file(stem)
        with file.locked(write=True, make=make) as fd:
            yield OpenFile(self._load(stem, file, fd), file, fd)

    def count(self, entries: int, namespaces: int) -> None:
        """Bring `_meta.json` up to date; one that is no JSON object stays. Raises OSError, ValueError."""
        file = LockedFile(self.root / META)
        with file.locked(write=True, make=True) as fd:
            assert fd is not None
            data = file.read(fd)
            meta = json.loads(data) if data.strip() else {}
            if not isinstance(meta, dict):
                return
            now = {**meta, "total_entries": entries, "namespace_count": namespaces}
            if now != meta:
                file.replace(fd, json.dumps(now, indent=2).encode())

    def _file(self, stem: str) -> LockedFile:
        return LockedFile(self.root / f"{stem}{_EXTENSION}")

    def _load(self, stem: str, file: LockedFile, fd: int | None) -> Content:
        if fd is None:
            return _NOTHING
        status = os.fstat(fd)
        data = file.read(fd)
        text = data.decode("utf-8-sig")
        content = Content(_rows(text), len(data), status.st_mtime, "\n" if text.endswith("\n") else "")
        if time.time_ns() - status.st_mtime_ns > _TICK:
            self._known[stem] = stamp_of(status), content
        return content


def _rows(text: str) -> tuple[Row, ...]:
    """The entries in a file's text. Raises ValueError when it is no JSON array of objects with texts as keys."""
    if not text.strip():
        return ()
    try:
        rows = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(rows, list):
        raise ValueError("no array")
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("key"), str):
            raise ValueError("an entry without a key")
    return tuple(rows)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
