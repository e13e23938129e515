"""A folder of JSON files as the agent-memory server keeps it: one array of entries a file (contract 004, 7).

Every file is locked on itself, as that server does, and replaced whole; one that is no array of entries is
never written.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from commonplace.store.files import make_private, read_fd, write_file

Row = dict[str, Any]

META = "_meta.json"
_META_NAMESPACE = "_meta_"
_OTHERS = re.compile(r"[^A-Za-z0-9_.-]")
_EXTENSION = ".json"
_LONGEST = 250
"""Characters of a file's name without its extension; with it, what file systems take."""
_TICK = 50_000_000
"""Nanoseconds in which a second change may leave a file's size and time as they are."""


def stem_of(namespace: str) -> str:
    """The name, without `.json`, of the file for a namespace; several namespaces can come to the same."""
    stem = _OTHERS.sub("_", namespace)[:_LONGEST]
    return _META_NAMESPACE if stem + _EXTENSION == META else stem


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, in its order, not to be changed; bytes, and seconds since 1970 of its last change."""

    rows: tuple[Row, ...] = ()
    size: int = 0
    changed: float = 0.0
    ending: str = ""


_NOTHING = Content()


class JsonFiles:
    """A folder's files by their stems. Reading raises OSError, and ValueError for what is no array of entries."""

    def __init__(self, root: Path):
        self.root = root
        self._known: dict[str, tuple[tuple[int, int, int], Content]] = {}

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
        path = self._path(stem)
        try:
            before = os.stat(path)
        except FileNotFoundError:
            return _NOTHING
        known = self._known.get(stem)
        if known and known[0] == _stamp(before):
            return known[1]
        with self._locked(path, fcntl.LOCK_SH) as fd:
            return _NOTHING if fd is None else self._load(stem, fd)

    @contextmanager
    def shared(self, stem: str) -> Iterator[None]:
        """Inside, nobody of ours replaces the file."""
        with self._locked(self._path(stem), fcntl.LOCK_SH):
            yield

    @contextmanager
    def changing(self, stem: str, make: bool = False) -> Iterator[Content]:
        """Inside, only we change the file: what it holds. With `make` a missing one begins empty."""
        if make:
            make_private(self.root)
        with self._locked(self._path(stem), fcntl.LOCK_EX, make) as fd:
            yield _NOTHING if fd is None else self._load(stem, fd)

    def replace(self, stem: str, rows: list[Row], before: Content) -> None:
        """Put `rows` in place of what `changing` gave, durable on return. Raises OSError and, for
        what JSON cannot say, ValueError; then nothing changed."""
        try:
            text = json.dumps(rows, indent=2, allow_nan=False) + before.ending
        except RecursionError:
            raise ValueError("nested too deeply") from None
        self._put(self._path(stem), text.encode())

    def count(self, entries: int, namespaces: int) -> None:
        """Bring `_meta.json` up to date; one that is no JSON object stays. Raises OSError, ValueError."""
        path = self.root / META
        with self._locked(path, fcntl.LOCK_EX, make=True) as fd:
            if fd is None:
                return
            data = read_fd(fd)
            meta = json.loads(data) if data.strip() else {}
            if not isinstance(meta, dict):
                return
            now = {**meta, "total_entries": entries, "namespace_count": namespaces}
            if now != meta:
                self._put(path, json.dumps(now, indent=2).encode())

    # --- one file -------------------------------------------------------------------------------

    def _path(self, stem: str) -> Path:
        return self.root / f"{stem}{_EXTENSION}"

    @contextmanager
    def _locked(self, path: Path, how: int, make: bool = False) -> Iterator[int | None]:
        """The file opened and locked, and still the one of that name; None when there is none."""
        while True:
            try:
                fd = _open(path, how, make)
            except FileNotFoundError:
                yield None
                return
            try:
                fcntl.flock(fd, how)
                if _is_at(fd, path):
                    break
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
        try:
            yield fd
        except BaseException:
            if make and os.fstat(fd).st_size == 0 and _is_at(fd, path):
                with suppress(OSError):
                    os.unlink(path)  # it was made, or as good as, for a change that did not happen
            raise
        finally:
            os.close(fd)

    def _load(self, stem: str, fd: int) -> Content:
        status = os.fstat(fd)
        data = read_fd(fd)
        text = data.decode("utf-8-sig")
        content = Content(_rows(text), len(data), status.st_mtime, "\n" if text.endswith("\n") else "")
        if time.time_ns() - status.st_mtime_ns > _TICK:
            self._known[stem] = _stamp(status), content
        return content

    def _put(self, path: Path, data: bytes) -> None:
        """Replace the file at `path`, through a symlink, keeping its mode. Its lock is held."""
        target = Path(os.path.realpath(path))
        mode = stat.S_IMODE(os.stat(target).st_mode)
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # One name for each file, under its lock: what a killed process left is found and replaced.
        temporary = f".{sha256(target.name.encode()).hexdigest()[:16]}.tmp"
        try:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            write_file(temporary, data, mode=mode, folder=folder)
            try:
                os.rename(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)
        finally:
            os.close(folder)


def _open(path: Path, how: int, make: bool) -> int:
    access = os.O_RDWR if how == fcntl.LOCK_EX else os.O_RDONLY
    fd = os.open(path, access | (os.O_CREAT if make else 0) | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "no regular file")
    return fd


def _is_at(fd: int, path: Path) -> bool:
    """Whether the open file is the one at `path`, which another process may have replaced meanwhile."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), there)


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


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
