"""Vectors on disk, keyed by the hash of a text, and the passages of the index they belong to."""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from memoranda.errors import StorageError
from memoranda.index.filters import may_see
from memoranda.index.vectors.runtimes import np
from memoranda.sources.files import lock_file, make_private, reason
from memoranda.text.tokens import passages
from memoranda.text.unicode import sqlite_text

# Bytes at the beginning of a file that say what it holds.
_HEADER = 256
# Bytes of the file's header, and of the key in front of each vector.
_KEY = 8
# Raised when the file changes its form.
_FORMAT = 1
# A passage that is a heading alone.
_HEADING = re.compile(r"#{1,6}[ \t].*")
# A word of at least two letters.
_WORD = re.compile(r"[^\W\d_]{2,}")
_SPAN = np.dtype([("start", "<u4"), ("stop", "<u4"), ("key", "<u8")])
# Characters of a note from which on it is cut into passages on its own, so that a transaction stays
# short.
_LONGEST = 200_000
# Characters of the title that each passage has in front.
_TITLE = 200
EMBEDDED = 1_000_000
"""Characters of a note that are embedded."""
UNCUT = (
    "from note n where n.row > ? and not exists (select 1 from embedded e where e.note = n.row)"
    " and (n.expires is null or n.project is not (select id from project where name = 'kv'))"
)
"""The notes behind a row that are not cut into passages yet. An entry with a time to live (contract
004) leaves no trace of its text."""


class VectorFile:
    """The vectors of one model, called `name`, in the file at `path`, which need not exist yet.

    Unlike the index they are expensive to make again, so they outlive it. A record is the key of a
    text (8 bytes) and its vector (float32); a vector of zeros says that the model cannot read the
    text. Records are only appended, by any process of the home, and the file is mapped, not read.
    `keys` (uint64) and `rows` are what the last `refresh` saw. Not thread-safe.
    """

    def __init__(self, path: Path, name: str):
        self.path = path
        self._name = name
        self._forget()

    def _forget(self) -> None:
        self.keys, self.rows = np.empty(0, np.uint64), np.empty((0, 0), np.float32)
        self._seen: tuple[int, int, int] | None = None

    def refresh(self) -> bool:
        """Take up what any process appended or dropped since the last time. Returns whether there
        was anything. Raises StorageError."""
        try:
            status = os.stat(self.path)
            file_identity = (status.st_dev, status.st_ino, status.st_size)
            if file_identity == self._seen:
                return False
            size = _vector_size(self.path)
            count = max(0, file_identity[2] - _HEADER) // (_KEY + 4 * size)
            raw = np.empty((0, _KEY // 4 + size), np.float32)
            if size and count:
                raw = np.memmap(self.path, np.float32, "r", _HEADER, (count, _KEY // 4 + size))
        except FileNotFoundError:
            changed = self._seen is not None
            self._forget()
            return changed
        except OSError as error:
            raise StorageError(self.path.name, reason(error)) from None
        if self._seen is not None and file_identity[:2] == self._seen[:2]:
            known_count = len(self.keys)
        else:
            known_count = 0
        new_keys = np.ascontiguousarray(raw[known_count:, : _KEY // 4]).view(np.uint64).ravel()
        self.keys = np.concatenate([self.keys[:known_count], new_keys])
        self.rows = np.asarray(raw[:, _KEY // 4 :])
        self._seen = file_identity
        return True

    def places(self, keys: np.ndarray) -> np.ndarray:
        """Return the row of the vector for each key. -1 for a key without a vector."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        order = np.argsort(self.keys, kind="stable")
        positions = order[
            np.minimum(np.searchsorted(self.keys, keys, sorter=order), len(self.keys) - 1)
        ]
        return np.where(self.keys[positions] == keys, positions, -1)

    def append(self, keys: np.ndarray, rows: np.ndarray) -> None:
        """Add vectors, durably: all of them or, when the disk refuses, none. Raises StorageError."""
        records = _records(keys, rows)
        try:
            make_private(self.path.parent)
            with locked(self.path.with_suffix(".lock")):
                size = _vector_size(self.path)
                if size != rows.shape[1]:
                    # Another length: start again
                    self._replace(rows.shape[1], records)
                    return
                with open(self.path, "r+b", buffering=0) as file:
                    record = _KEY + 4 * size
                    end = _HEADER + max(0, file.seek(0, os.SEEK_END) - _HEADER) // record * record
                    # Cut off a partial record that a killed process left.
                    file.truncate(end)
                    file.seek(end)
                    try:
                        _write_all(file.fileno(), records.tobytes())
                        os.fsync(file.fileno())
                    except OSError:
                        file.truncate(end)
                        raise
        except OSError as error:
            raise StorageError(self.path.name, reason(error)) from None

    def keep(self, wanted_keys: np.ndarray) -> int:
        """Drop the vectors whose keys are not among `wanted_keys`, and doubles. Returns how many were dropped.

        Expects `locked` around the look at what is wanted and this call. Raises StorageError.
        """
        self.refresh()
        _, first = np.unique(self.keys, return_index=True)
        kept_positions = np.sort(first[np.isin(self.keys[first], wanted_keys)])
        removed_count = len(self.keys) - len(kept_positions)
        if removed_count:
            try:
                if len(kept_positions):
                    self._replace(
                        self.rows.shape[1],
                        _records(self.keys[kept_positions], self.rows[kept_positions]),
                    )
                else:
                    self.path.unlink()
            except OSError as error:
                raise StorageError(self.path.name, reason(error)) from None
            self.refresh()
        return removed_count

    def _replace(self, size: int, records: np.ndarray) -> None:
        header = json.dumps({"format": _FORMAT, "size": size, "model": self._name[:100]}).encode()
        temporary_file = self.path.with_name(f".{self.path.name}-{os.getpid()}")
        fd = os.open(temporary_file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            try:
                _write_all(fd, header[:_HEADER].ljust(_HEADER, b"\0") + records.tobytes())
                os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(temporary_file, self.path)
        except BaseException:
            temporary_file.unlink(missing_ok=True)
            raise


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock at `path` between processes and threads.

    Yields False without waiting if it is taken and `wait` is False.
    """
    try:
        fd = lock_file(path, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        os.close(fd)


def _vector_size(path: Path) -> int:
    """Return the length of the vectors in a file. 0 if it is missing or has another format."""
    try:
        with open(path, "rb") as file:
            header = json.loads(file.read(_HEADER).rstrip(b"\0") or b"null")
    except (FileNotFoundError, ValueError):
        return 0
    size_row = (
        isinstance(header, dict)
        and header.get("format") == _FORMAT
        and isinstance(header.get("size"), int)
    )
    if size_row:
        return max(0, header["size"])
    return 0


def _records(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    names = np.ascontiguousarray(keys, np.uint64).view(np.float32).reshape(len(keys), -1)
    return np.concatenate([names, np.asarray(rows, np.float32)], axis=1)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class EmbeddedPassage(NamedTuple):
    """A passage of a note as it is embedded; `start` and `stop` are places in the note's body."""

    start: int
    stop: int
    key: int
    text: str


def passages_of(title: str, body: str) -> list[EmbeddedPassage]:
    """The passages of a note, each preceded by the note's title and its heading unless it repeats
    them.

    A heading alone is not a passage. Only the beginning of a very long text is cut into passages
    (docs/semantic.md).
    """
    found_passages = []
    title = title[:_TITLE]
    body = body[:EMBEDDED]
    parts = passages(body)
    for part in parts:
        text = body[part.start : part.end].strip()
        if len(parts) > 1 and _HEADING.fullmatch(text):
            # The passage below it has it in front
            continue
        beginning = text[:400].casefold()
        # "Turn 003" and "2026-05-07" say nothing
        names = [
            heading.strip()
            for heading in dict.fromkeys((title, part.heading))
            if len(_WORD.findall(heading)) > any(map(str.isdigit, heading))
        ]
        text = sqlite_text(
            "\n".join([*(name for name in names if name.casefold() not in beginning), text])
        )
        found_passages.append(EmbeddedPassage(part.start, part.end, key_of(text), text))
    return found_passages


def key_of(text: str) -> int:
    """Return the key under which the vector of a text is kept: 64 bits of a hash of the text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def add_passages(db: sqlite3.Connection, limit: int, after: int = 0) -> tuple[int, int]:
    """Cut `limit` notes behind row `after` into passages. Returns how many, and the last row looked
    at.

    Expects to run inside a transaction. What a row holds never changes, and rows only grow: so the
    table `embedded` only grows at its end, too.
    """
    added = 0
    last = after
    characters = 0
    for (row,) in db.execute(
        f"select n.row {UNCUT} order by n.row limit ?", (after, limit)
    ).fetchall():
        title, body = _text(db, row) or ("", "")
        characters += len(body)
        if added and characters > _LONGEST:
            break
        spans = np.array([passage[:3] for passage in passages_of(title, body)], _SPAN)
        db.execute("insert into embedded (note, spans) values (?, ?)", (row, spans.tobytes()))
        added = added + 1
        last = row
    return added, last


def _text(db: sqlite3.Connection, row: int) -> tuple[str, str] | None:
    sql = "select n.title, t.text from note n join text t on t.row = n.row where n.row = ?"
    return db.execute(sql, (row,)).fetchone()


def texts(db: sqlite3.Connection, notes: Iterable[int], keys: set[int]) -> dict[int, str]:
    """Return the texts of the passages of `notes` whose key is among `keys`, by key."""
    note_texts = (note for row in dict.fromkeys(notes) if (note := _text(db, row)) is not None)
    return {
        passage.key: passage.text
        for note in note_texts
        for passage in passages_of(*note)
        if passage.key in keys
    }


def visible(db: sqlite3.Connection, notes: Collection[int], viewer: str | None) -> set[int]:
    """Return the rows among `notes` that the index still has and that `viewer` may see."""
    rows_json = json.dumps(list(notes))
    visible_rows = db.execute(
        "select row, scope from note where row in (select value from json_each(?))", (rows_json,)
    )
    return {row for row, scope in visible_rows if may_see(scope, viewer)}


def keys_of(path: Path) -> np.ndarray:
    """The keys of all passages of the index file at `path`; none when it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5)) as db:
            blobs = [blob for (blob,) in db.execute("select spans from embedded")]
    except sqlite3.Error:
        return np.empty(0, np.uint64)
    return np.frombuffer(b"".join(blobs), _SPAN)["key"].astype(np.uint64)


class Passages:
    """The passages of an index in memory: `notes` and `keys` of all, ordered by note."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._clear()

    def _clear(self) -> None:
        self.notes, self.keys = np.empty(0, np.int64), np.empty(0, np.uint64)
        self._last = self._count = 0

    def of(self, notes: Collection[int]) -> np.ndarray:
        """Return the positions in `keys` of the passages of these notes, in order."""
        wanted_rows = np.unique(np.fromiter(notes, np.int64, len(notes)))
        first = np.searchsorted(self.notes, wanted_rows)
        counts = np.searchsorted(self.notes, wanted_rows, "right") - first
        return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())

    def refresh(self, db: sqlite3.Connection) -> bool:
        """Read the passages that were added since the last call. Return whether there were any."""
        if self._db is not db:
            self._db = db
            self._clear()
        last = db.execute("select max(note) from embedded").fetchone()[0] or 0
        if last == self._last:
            return False
        stored_count = db.execute("select count(*) from embedded").fetchone()[0]
        # Many are gone
        if self._count > 100 + 1.25 * stored_count:
            self._clear()
        new_rows = db.execute(
            "select note, spans from embedded where note > ? order by note", (self._last,)
        ).fetchall()
        keys = np.frombuffer(b"".join(blob for _, blob in new_rows), _SPAN)["key"]
        rows, counts = (
            np.array([(row, len(blob) // _SPAN.itemsize) for row, blob in new_rows], np.int64)
            .reshape(-1, 2)
            .T
        )
        notes = np.repeat(rows, counts)
        self.notes, self.keys = (
            np.concatenate([self.notes, notes]),
            np.concatenate([self.keys, keys]),
        )
        self._last, self._count = last, self._count + len(new_rows)
        return True
