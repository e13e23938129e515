"""Keep vectors on disk by the hash of their texts, and find the passages with these texts."""

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
from typing import Any, NamedTuple

from memoranda.errors import StorageError
from memoranda.index.filters import may_see
from memoranda.index.vectors.runtimes import np
from memoranda.sources.files import lock_file, make_private, reason
from memoranda.text.tokens import passages
from memoranda.text.unicode import sqlite_text

# A file of vectors begins with a header of this many bytes: JSON, filled up with NUL.
_HEADER = 256
# Each vector comes after a key of this many bytes.
_KEY = 8
# A key takes the place of this many numbers of a vector (float32).
_KEY_COLUMNS = _KEY // 4
# The version of the file format. Raise it whenever the format changes.
_FORMAT = 1
# A passage that is a heading alone.
_HEADING = re.compile(r"#{1,6}[ \t].*")
# A word of at least two letters.
_WORD = re.compile(r"[^\W\d_]{2,}")
_SPAN = np.dtype([("start", "<u4"), ("stop", "<u4"), ("key", "<u8")])
# One transaction cuts notes of this many characters into passages, or a single longer note.
_LONGEST = 200_000
# This many characters of the title are put in front of each passage.
_TITLE = 200
# A passage repeats a title or heading if it has it among this many characters at its beginning.
_PASSAGE_BEGINNING = 400
EMBEDDED = 1_000_000
"""This many characters at the beginning of a note are embedded."""
UNCUT = (
    "from note n where n.row > ? and not exists (select 1 from embedded e where e.note = n.row)"
    " and (n.expires is null or n.project is not (select id from project where name = 'kv'))"
)
"""SQL that selects the notes after a row that are not cut into passages yet.

An entry with a time to live (contract 004) is left out, since no trace of its text may remain."""


class _SeenFile(NamedTuple):
    """A file as it was seen.

    device, inode: together they tell files apart.
    size: in bytes.
    """

    device: int
    inode: int
    size: int

    def is_same_file(self, other: _SeenFile) -> bool:
        """Whether both are one file, perhaps with another size."""
        return (self.device, self.inode) == (other.device, other.inode)


class VectorFile:
    """The file with the vectors of one model.

    Vectors take long to make, so they are kept when the index is deleted. A record of the file is
    the key of a text (8 bytes) and its vector (float32). A vector of zeros means that the model
    cannot read the text. Any process of the home may append records. The file is mapped into
    memory, not read. An object may be used by one thread at a time.

    path: the file. It need not exist yet.
    name: the name of the model.
    keys: the keys of the records that the last `refresh` saw (uint64).
    vectors: the vectors of these records, as a matrix with one row for each record.
    """

    def __init__(self, path: Path, name: str):
        self.path = path
        self._name = name
        self._forget()

    def _forget(self) -> None:
        """Forget all records, as if there were no file."""
        self.keys = np.empty(0, np.uint64)
        self.vectors = np.empty((0, 0), np.float32)
        # The file as the last `refresh` saw it. None if there was none.
        self._seen: _SeenFile | None = None

    def refresh(self) -> bool:
        """Set `keys` and `vectors` to the present records of the file. Return whether it has changed.

        Raises StorageError.
        """
        try:
            status = os.stat(self.path)
            seen = _SeenFile(status.st_dev, status.st_ino, status.st_size)
            if seen == self._seen:
                return False
            records = self._mapped_records(seen.size)
        except FileNotFoundError:
            has_changed = self._seen is not None
            self._forget()
            return has_changed
        except OSError as error:
            raise StorageError(self.path.name, reason(error)) from None

        # Records are only appended, so those that the same file had before are not read again.
        known_count = 0
        if self._seen is not None and seen.is_same_file(self._seen):
            known_count = len(self.keys)
        # The first columns of a record are its key, as two numbers of 4 bytes. `view` takes the same
        # bytes as one number of 8.
        key_columns = records[known_count:, :_KEY_COLUMNS]
        new_keys = np.ascontiguousarray(key_columns).view(np.uint64).ravel()
        self.keys = np.concatenate([self.keys[:known_count], new_keys])
        # The other columns are the vector. They stay in the file, which is mapped into memory.
        self.vectors = np.asarray(records[:, _KEY_COLUMNS:])
        self._seen = seen
        return True

    def _mapped_records(self, file_size: int) -> Any:
        """Return the records of the file as a matrix of float32, with one row for each.

        The first _KEY_COLUMNS columns of a row are the key, the others the vector.

        file_size: the size of the file in bytes. A record that is written in part is left out.

        Raises OSError.
        """
        vector_size = _vector_size(self.path)
        column_count = _KEY_COLUMNS + vector_size
        # Each column is a float32 of 4 bytes.
        record_count = max(0, file_size - _HEADER) // (4 * column_count)
        if not vector_size or not record_count:
            # An empty file cannot be mapped.
            return np.empty((0, column_count), np.float32)
        return np.memmap(
            self.path,
            dtype=np.float32,
            mode="r",
            offset=_HEADER,
            shape=(record_count, column_count),
        )

    def places(self, keys: np.ndarray) -> np.ndarray:
        """Return the place of each key's vector in the file. -1 for a key without a vector.

        The first vector has the place 0.
        """
        if not len(self.keys):
            return np.full(len(keys), -1)
        # Find the rank of each key among the sorted keys of the file. A key that the file lacks gets
        # the rank of the next higher one, and one above all others the highest rank.
        places_by_rank = np.argsort(self.keys, kind="stable")
        ranks = np.searchsorted(self.keys, keys, sorter=places_by_rank)
        ranks = np.minimum(ranks, len(self.keys) - 1)
        # The record with that rank has the key, unless the file lacks it.
        places = places_by_rank[ranks]
        is_in_file = self.keys[places] == keys
        return np.where(is_in_file, places, -1)

    def append(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Add vectors and wait until they are on the disk. After an error, no vector is added.

        keys: the key of each vector.
        vectors: the vectors. If the file has vectors of another length, they are all replaced.

        Raises StorageError.
        """
        records = _records(keys, vectors)
        try:
            make_private(self.path.parent)
            with locked(self.path.with_suffix(".lock")):
                size_in_file = _vector_size(self.path)
                size = vectors.shape[1]
                if size_in_file == size:
                    # A vector has numbers of 4 bytes.
                    self._append_to_file(records.tobytes(), record_bytes=_KEY + 4 * size)
                else:
                    # The file is missing, or its vectors have another length. Write a new file.
                    self._replace(size, records)
        except OSError as error:
            raise StorageError(self.path.name, reason(error)) from None

    def _append_to_file(self, new_records: bytes, record_bytes: int) -> None:
        """Add records at the end of the file and wait until they are on the disk.

        After an OSError, the file is as it was.

        record_bytes: the size of one record.
        """
        with open(self.path, "r+b", buffering=0) as file:
            file_bytes = file.seek(0, os.SEEK_END)
            record_count = max(0, file_bytes - _HEADER) // record_bytes
            # Cut off a partial record that a killed process left.
            end = _HEADER + record_count * record_bytes
            file.truncate(end)
            file.seek(end)
            try:
                _write_all(file.fileno(), new_records)
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise

    def keep(self, wanted_keys: np.ndarray) -> int:
        """Drop vectors whose keys are not among `wanted_keys`, and repeated ones. Return how many.

        The caller must hold the lock (`locked`) from before it reads the wanted keys until after
        this call. Raises StorageError.
        """
        self.refresh()
        # Only the first of several records with the same key stays. `unique` returns its position.
        _, first_positions = np.unique(self.keys, return_index=True)
        is_wanted = np.isin(self.keys[first_positions], wanted_keys)
        # In the order of the file.
        positions_to_keep = np.sort(first_positions[is_wanted])
        removed_count = len(self.keys) - len(positions_to_keep)
        if not removed_count:
            return 0
        try:
            if len(positions_to_keep):
                records = _records(self.keys[positions_to_keep], self.vectors[positions_to_keep])
                self._replace(self.vectors.shape[1], records)
            else:
                self.path.unlink()
        except OSError as error:
            raise StorageError(self.path.name, reason(error)) from None
        self.refresh()
        return removed_count

    def _replace(self, size: int, records: np.ndarray) -> None:
        """Write the file anew, with these records. After an error, the former file stays.

        size: how many numbers a vector has.
        records: the keys with their vectors.
        """
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
    """Hold the lock file at `path`, which other processes and threads respect. Yield True.

    wait: whether to wait while the lock is taken. If False, a taken lock yields False at once.
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
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        return 0
    size = header.get("size")
    return max(0, size) if isinstance(size, int) else 0


def _records(keys: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return records as a matrix of float32: in each row the bytes of a key, then its vector."""
    key_columns = np.ascontiguousarray(keys, np.uint64).view(np.float32).reshape(len(keys), -1)
    return np.concatenate([key_columns, np.asarray(vectors, np.float32)], axis=1)


def _write_all(fd: int, data: bytes) -> None:
    """Write all bytes to an open file. One `write` may write only some of them."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class EmbeddedPassage(NamedTuple):
    """A passage of a note as it is embedded.

    start, stop: the place of the passage in the body of the note, in characters.
    key: the key of `text` (`key_of`).
    text: the passage after the title and heading, which tell the model what it is about.
    """

    start: int
    stop: int
    key: int
    text: str


def passages_of(title: str, body: str) -> list[EmbeddedPassage]:
    """Return the passages of a note, each with the note's title and its heading in front.

    A title or heading that the passage repeats is left out. A heading alone is not a passage. Only
    the beginning of a very long text is cut into passages (docs/semantic.md).

    In the note `Tram`, the passage `Two euros.` under the heading `Fares` gets the text `Tram`,
    `Fares`, `Two euros.`, on three lines.
    """
    embedded_passages = []
    title = title[:_TITLE]
    body = body[:EMBEDDED]
    parts = passages(body)
    for part in parts:
        passage = body[part.start : part.end].strip()
        # The passage below this heading gets the heading in front.
        if len(parts) > 1 and _HEADING.fullmatch(passage):
            continue
        # The title and the heading, unless the passage begins with them.
        beginning = passage[:_PASSAGE_BEGINNING].casefold()
        lines_in_front: list[str] = []
        for name in dict.fromkeys((title, part.heading)):
            is_repeated = name.strip().casefold() in beginning
            if _says_something(name) and not is_repeated:
                lines_in_front.append(name.strip())
        text = sqlite_text("\n".join([*lines_in_front, passage]))
        embedded_passages.append(EmbeddedPassage(part.start, part.end, key_of(text), text))
    return embedded_passages


def _says_something(name: str) -> bool:
    """Whether a title or heading tells something about the text below it.

    It needs a word, and beside digits two words: "Turn 003" and "2026-05-07" say nothing.
    """
    has_digit = any(map(str.isdigit, name))
    words_needed = 2 if has_digit else 1
    return len(_WORD.findall(name)) >= words_needed


def key_of(text: str) -> int:
    """Return the key of a text's vector: 64 bits of a hash of the text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def add_passages(db: sqlite3.Connection, limit: int, after: int = 0) -> tuple[int, int]:
    """Cut notes into passages. Return (number of notes that were cut, last row that was cut).

    limit: the most notes to cut.
    after: only notes with a higher row are cut.

    Must run inside a transaction. The text of a row never changes, and new notes get higher rows.
    So rows are only added to the end of table `embedded`.
    """
    cut_count = 0
    last_row = after
    characters = 0
    rows = db.execute(f"select n.row {UNCUT} order by n.row limit ?", (after, limit)).fetchall()
    for (row,) in rows:
        title, body = _text(db, row) or ("", "")
        # Stop at _LONGEST characters, so that others may write. At least one note is cut.
        characters += len(body)
        if cut_count and characters > _LONGEST:
            break
        spans = [(passage.start, passage.stop, passage.key) for passage in passages_of(title, body)]
        packed_spans = np.array(spans, _SPAN).tobytes()
        db.execute("insert into embedded (note, spans) values (?, ?)", (row, packed_spans))
        cut_count += 1
        last_row = row
    return cut_count, last_row


def _text(db: sqlite3.Connection, row: int) -> tuple[str, str] | None:
    """Return the title and the body of a note. None if the row has no note."""
    sql = "select n.title, t.text from note n join text t on t.row = n.row where n.row = ?"
    return db.execute(sql, (row,)).fetchone()


def texts(db: sqlite3.Connection, notes: Iterable[int], keys: set[int]) -> dict[int, str]:
    """Return the passages of these notes that have one of these keys: key -> text."""
    texts_by_key: dict[int, str] = {}
    for row in dict.fromkeys(notes):
        title_and_body = _text(db, row)
        if title_and_body is None:
            continue
        for passage in passages_of(*title_and_body):
            if passage.key in keys:
                texts_by_key[passage.key] = passage.text
    return texts_by_key


def visible(db: sqlite3.Connection, notes: Collection[int], viewer: str | None) -> set[int]:
    """Return the rows among `notes` that the index still has and that `viewer` may see."""
    rows_json = json.dumps(list(notes))
    visible_rows = db.execute(
        "select row, scope from note where row in (select value from json_each(?))", (rows_json,)
    )
    return {row for row, scope in visible_rows if may_see(scope, viewer)}


def keys_of(path: Path) -> np.ndarray:
    """Return the keys of all passages of an index file. Empty if the file cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5)) as db:
            blobs = [blob for (blob,) in db.execute("select spans from embedded")]
    except sqlite3.Error:
        return np.empty(0, np.uint64)
    return np.frombuffer(b"".join(blobs), _SPAN)["key"].astype(np.uint64)


class Passages:
    """The passages of an index in memory, sorted by note.

    notes: the row of the note of each passage.
    keys: the key of the text of each passage (`key_of`).
    """

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._clear()

    def _clear(self) -> None:
        """Forget all passages."""
        self.notes = np.empty(0, np.int64)
        self.keys = np.empty(0, np.uint64)
        # The last row that was read, and how many notes were read.
        self._last_row = 0
        self._notes_read = 0

    def of(self, notes: Collection[int]) -> np.ndarray:
        """Return the positions in `keys` of the passages of these notes, in order.

        Suppose that one note has 3 passages from position 10 on, and another has 2 from position 20
        on. Then the result is 10, 11, 12, 20, 21. The comments show this example.
        """
        # Sorted, each once.
        note_rows = np.unique(np.fromiter(notes, np.int64, len(notes)))
        # The passages of a note follow each other, since all are sorted by note: [10, 20] and [13, 22].
        first_positions = np.searchsorted(self.notes, note_rows)
        stop_positions = np.searchsorted(self.notes, note_rows, side="right")
        # [3, 2]
        counts = stop_positions - first_positions
        # [10, 10, 10, 20, 20]
        first_position_of_note = np.repeat(first_positions, counts)
        # [0, 1, 2, 3, 4] - [0, 0, 0, 3, 3] = [0, 1, 2, 0, 1]
        passages_in_notes_before = np.repeat(np.cumsum(counts) - counts, counts)
        number_in_note = np.arange(counts.sum()) - passages_in_notes_before
        return first_position_of_note + number_in_note

    def refresh(self, db: sqlite3.Connection) -> bool:
        """Read the passages that were added since the last call. Return whether there were any."""
        # Another connection may be to another index, with other rows.
        if self._db is not db:
            self._db = db
            self._clear()
        (last_row,) = db.execute("select coalesce(max(note), 0) from embedded").fetchone()
        if last_row == self._last_row:
            return False
        (stored_count,) = db.execute("select count(*) from embedded").fetchone()
        # Passages of deleted notes remain in memory. If they are many, all passages are read again.
        if self._notes_read > 100 + 1.25 * stored_count:
            self._clear()

        # Read the new notes. `spans` has the passages of a note as bytes, each as long as _SPAN.
        new_notes = db.execute(
            "select note, spans from embedded where note > ? order by note", (self._last_row,)
        ).fetchall()
        spans_of_notes = [spans for _, spans in new_notes]
        keys = np.frombuffer(b"".join(spans_of_notes), _SPAN)["key"]
        # Repeat the row of each note for each of its passages.
        rows = np.array([row for row, _ in new_notes], np.int64)
        counts = np.array([len(spans) // _SPAN.itemsize for spans in spans_of_notes], np.int64)
        self.notes = np.concatenate([self.notes, np.repeat(rows, counts)])
        self.keys = np.concatenate([self.keys, keys])
        self._last_row = last_row
        self._notes_read += len(new_notes)
        return True
