"""The vectors of one model on disk: records that are only ever appended, shared by all processes of a home.

Unlike the index they are dear to make again, so they outlive it. A record is the key of a text (8 bytes) and its
vector; a vector of zeros says that the model cannot read the text. The file is mapped, not read: its pages are
shared between processes, and what one appends the others see at their next look.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commonplace.errors import StorageError
from commonplace.index.vectors.arrays import np
from commonplace.store.files import make_private, reason

_HEADER = 256
_FORMAT = 1
_KEY = 8


class VectorFile:
    """The file at `path`, which need not exist yet, of the model called `name`.

    `keys` (uint64) and `rows` (float32, a vector each) are what the last `refresh` saw. Not thread-safe.
    """

    def __init__(self, path: Path, name: str):
        self.path, self._name = path, name
        self.keys = np.empty(0, np.uint64)
        self.rows = np.empty((0, 0), np.float32)
        self._seen: tuple[int, int, int] | None = None

    def refresh(self) -> bool:
        """Take up what was appended or dropped since the last time, by any process. Returns whether it was.

        Afterwards old rows keep their numbers unless `generation` changed. Raises StorageError.
        """
        try:
            status = os.stat(self.path)
            seen = (status.st_dev, status.st_ino, status.st_size)
            if seen == self._seen:
                return False
            size = _size(self.path)
            shape = (self._count(seen[2], size), _KEY // 4 + size)
            is_bare = not size or not shape[0]
            raw = np.empty((0, shape[1]), np.float32)
            if not is_bare:
                raw = np.memmap(self.path, np.float32, "r", _HEADER, shape)
        except FileNotFoundError:
            changed, self._seen = self._seen is not None, None
            self.keys, self.rows = np.empty(0, np.uint64), np.empty((0, 0), np.float32)
            return changed
        except OSError as error:
            raise StorageError(self.path.name, reason(error)) from None
        known = len(self.keys) if self._seen is not None and seen[:2] == self._seen[:2] else 0
        fresh = np.ascontiguousarray(raw[known:, : _KEY // 4]).view(np.uint64).ravel()
        self.keys = np.concatenate([self.keys[:known], fresh])
        self.rows, self._seen = np.asarray(raw[:, _KEY // 4 :]), seen
        return True

    @property
    def generation(self) -> tuple[int, int] | None:
        """Changes when vectors were dropped, so that rows have other numbers."""
        return None if self._seen is None else self._seen[:2]

    def append(self, keys: np.ndarray, rows: np.ndarray) -> None:
        """Add vectors, durably: all of them or, when the disk refuses, none. Raises StorageError."""
        records = _records(keys, rows)
        try:
            make_private(self.path.parent)
            with locked(self.path.with_suffix(".lock")):
                size = _size(self.path)
                if size != rows.shape[1]:
                    self._write([_header(self._name, rows.shape[1]), records])  # another length: begin anew
                    return
                with open(self.path, "r+b", buffering=0) as file:
                    end = file.seek(0, os.SEEK_END)
                    whole = _HEADER + self._count(end, size) * records.itemsize * records.shape[1]
                    file.truncate(whole)  # what a killed process left of a record
                    file.seek(whole)
                    try:
                        _write_all(file.fileno(), records.tobytes())
                        os.fsync(file.fileno())
                    except OSError:
                        file.truncate(whole)
                        raise
        except OSError as error:
            raise StorageError(self.path.name, reason(error)) from None

    def keep(self, wanted: np.ndarray) -> int:
        """Drop the vectors whose keys are not `wanted`, and doubles. Returns how many went.

        Expects `locked` around the look at what is wanted and this call. Raises StorageError.
        """
        self.refresh()
        _, first = np.unique(self.keys, return_index=True)
        kept = np.sort(first[np.isin(self.keys[first], wanted)])
        gone = len(self.keys) - len(kept)
        if gone:
            try:
                if len(kept):
                    header = _header(self._name, self.rows.shape[1])
                    self._write([header, _records(self.keys[kept], self.rows[kept])])
                else:
                    self.path.unlink()
            except OSError as error:
                raise StorageError(self.path.name, reason(error)) from None
            self.refresh()
        return gone

    def _write(self, parts: list) -> None:
        """Put a whole new file in the place of the old one."""
        fresh = self.path.with_name(f".{self.path.name}-{os.getpid()}")
        fd = os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            try:
                for part in parts:
                    _write_all(fd, part if isinstance(part, bytes) else part.tobytes())
                os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(fresh, self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    @staticmethod
    def _count(end: int, size: int) -> int:
        """How many whole records a file of `end` bytes holds."""
        return max(0, end - _HEADER) // (_KEY + 4 * size)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """The lock at `path`, between processes and threads; False, at once, when it is taken and we do not `wait`."""
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(fd)


def _size(path: Path) -> int:
    """How many numbers the vectors of the file have; 0 when it is missing or of another format."""
    try:
        with open(path, "rb") as file:
            header = json.loads(file.read(_HEADER).rstrip(b"\0") or b"null")
    except (FileNotFoundError, ValueError):
        return 0
    known = isinstance(header, dict) and header.get("format") == _FORMAT and isinstance(header.get("size"), int)
    return max(0, header["size"]) if known else 0


def _header(name: str, size: int) -> bytes:
    return json.dumps({"format": _FORMAT, "size": size, "model": name[:100]}).encode()[:_HEADER].ljust(_HEADER, b"\0")


def _records(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    names = np.ascontiguousarray(keys, np.uint64).view(np.float32).reshape(len(keys), -1)
    return np.concatenate([names, np.asarray(rows, np.float32)], axis=1)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
