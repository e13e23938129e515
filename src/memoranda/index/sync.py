"""Update the index from the disk: first find what differs, then apply it in batches.

`Comparison` finds the `Differences` between a project's files and the index. `apply` reads the files
that differ and writes them, each batch in one transaction.

A *stamp* is the size, the times and the inode of a file. A file with the stamp that the index has
is taken to be unchanged, and is not read. An *etag* is the hash of a file's bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import starmap
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, NamedTuple, overload

from memoranda.index.database import many_changes, merge_words, transaction
from memoranda.index.rows import PACKED, get
from memoranda.note.model import Note, Provenance
from memoranda.sources.base import File, Stamp, Values, bounded
from memoranda.sources.folder import FolderSource

if TYPE_CHECKING:
    from memoranda.index.writer import Prepared

# A batch has at most this many notes, so that others get the lock soon.
BATCH = 200
BATCH_BYTES = 4 << 20
"""A batch has at most this many bytes of notes, but at least one note."""

MANY_NEW = 4_000
"""With this many new files, it is worth reading them in other processes. Each takes a third of a
second to start."""
# After more changes than these, the segments of the full-text tables are merged.
_MANY_CHANGES = 2_000
# With this many new notes in a batch, it is worth writing them in a second thread.
_MANY = 50

# A time in nanoseconds as bytes that sort like the time. _OLDEST is added, so that it is positive.
_AGE = Struct(">Q")
_OLDEST = 1 << 63
# The part of `PACKED` that stays the same if a file is renamed.
_MOVED = Struct("qqq")
# Whether the index has a note at a path with exactly this stamp.
_IS_KNOWN = (
    "select 1 from note where project = (select id from project where name = ?) and path = ?"
    " and size = ? and mtime_ns = ? and inode = ? and ctime_ns = ?"
)

Load = Callable[[str], tuple[Note, Stamp] | None]
"""Reads the note at a path, and returns it with its stamp. None if it is not a note."""
Progress = Callable[[int, int], None]
"""Gets the number of changes that are applied, and the number of all."""


class Difference(NamedTuple):
    """A file that differs from the index.

    path: its path on disk.
    stamp: its present stamp. None if the file was removed.
    old: its path in the index. None for a new file. It differs from `path` if the file moved.
    """

    path: str
    stamp: Stamp | None
    old: str | None = None


@dataclass(frozen=True, slots=True)
class BulkSource:
    """A folder of files that helper processes may read.

    source: the folder.
    suspicious: returns the names of the gate's rules that match a note.
    accept: returns the origin of a file that is indexed.
    """

    source: FolderSource
    suspicious: Callable[[Note], tuple[str, ...]]
    accept: Callable[[str, File], Provenance]


@dataclass(slots=True)
class Result:
    """How many notes a sync added, changed, moved and removed.

    modified: how many had another text than before.
    """

    added: int = 0
    modified: int = 0
    moved: int = 0
    removed: int = 0

    def add(self, other: Result) -> None:
        """Add the numbers of another sync."""
        self.added += other.added
        self.modified += other.modified
        self.moved += other.moved
        self.removed += other.removed

    @property
    def total(self) -> int:
        """The number of all changes."""
        return self.added + self.modified + self.moved + self.removed


class Differences(Sequence[Difference]):
    """Differences in the order of their application: removed, moved, new and changed files.

    New and changed files are sorted by age, the oldest first. Each is kept as bytes (its age, path
    and stamp), so that a million of them take only some 100 MB.
    """

    def __init__(
        self,
        removed: Iterable[str],
        moved: Iterable[tuple[bytes, str]],
        added: list[bytes],
        changed: list[bytes],
    ):
        """Put the differences in order.

        removed: the paths of the files that were removed.
        moved: the file at its new place, as bytes, and its old path.
        added, changed: the files, as bytes.
        """
        added.sort()
        changed.sort()
        self._all: list[str | tuple[bytes, str] | bytes] = [*removed, *moved, *added, *changed]
        self._first_changed = len(self._all) - len(changed)

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, at: int) -> Difference: ...
    @overload
    def __getitem__(self, at: slice) -> list[Difference]: ...
    def __getitem__(self, at: int | slice) -> Difference | list[Difference]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        item = self._all[at]
        # A removed file is its path.
        if isinstance(item, str):
            return Difference(path=item, stamp=None, old=item)
        # A moved file is a pair.
        if isinstance(item, tuple):
            moved_file, old_path = item
            path, stamp = _unpacked(moved_file)
            return Difference(path, stamp, old_path)
        # New and changed files are bytes. The changed ones come last.
        path, stamp = _unpacked(item)
        is_changed = at >= self._first_changed
        return Difference(path, stamp, old=path if is_changed else None)


def _packed(path: str, stamp: Stamp, packed_stamp: bytes) -> bytes:
    """Pack a file into bytes that sort by its age: its time, its path, a NUL and its stamp."""
    age = _AGE.pack(stamp.mtime_ns + _OLDEST)
    return b"%b%b\0%b" % (age, path.encode(), packed_stamp)


def _unpacked(file: bytes) -> tuple[str, Stamp]:
    """Return the path and the stamp of a file that `_packed` has packed."""
    path = file[_AGE.size : -1 - PACKED.size].decode()
    return path, Stamp(*PACKED.unpack(file[-PACKED.size :]))


class Comparison:
    """Finds the differences between the disk and the index: `look` for each part, then `end`."""

    def __init__(self) -> None:
        # The new and the changed files so far, as `_packed` returns them.
        self._added: list[bytes] = []
        self._changed: list[bytes] = []

    def look(self, known_stamps: dict[str, bytes], stamps: dict[str, Values]) -> None:
        """Compare some files on disk with the index.

        known_stamps: the stamps in the index by path. The compared files are removed from it, so
            that only files remain that are no longer on disk.
        stamps: the stamps on disk by path.
        """
        # The stamps in the index, in the order of `stamps`. None for a new file.
        old_stamps = [known_stamps.pop(path, None) for path in stamps]
        # Usually nothing has changed. Comparing whole lists is much faster than file by file.
        if old_stamps == _all_packed(stamps.values()):
            return
        for (path, values), old_stamp in zip(stamps.items(), old_stamps, strict=True):
            stamp = bounded(values)
            packed_stamp = PACKED.pack(*stamp)
            if packed_stamp == old_stamp:
                continue
            file = _packed(path, stamp, packed_stamp)
            if old_stamp is None:
                self._added.append(file)
            else:
                self._changed.append(file)

    def end(self, removed: dict[str, bytes], unreadable: Sequence[str]) -> Differences:
        """Return all differences.

        If a file was removed and a new one has the same size, time and inode, the file has moved.

        removed: the stamps of the files that the index knows but no part had, by path.
        unreadable: folders that could not be read. Files below them do not count as removed.
        """
        if unreadable and removed:
            # Every path begins with "", which stands for the folder of the project.
            prefixes = tuple(f"{folder}/" if folder else "" for folder in unreadable)
            removed = {
                path: stamp for path, stamp in removed.items() if not path.startswith(prefixes)
            }
        # A moved file is neither new nor removed.
        moved = self._moved_files(removed)
        if moved:
            moved_files = {file for file, _ in moved}
            self._added = [file for file in self._added if file not in moved_files]
            for _, old_path in moved:
                del removed[old_path]
        return Differences(removed, moved, self._added, self._changed)

    def _moved_files(self, removed: Mapping[str, bytes]) -> list[tuple[bytes, str]]:
        """Return (file at its new place, old path) of each file that was moved."""
        if not self._added or not removed:
            return []
        # The beginning of a packed stamp (size, time and inode) stays the same when a file moves.
        path_by_beginning = {stamp[: _MOVED.size]: path for path, stamp in removed.items()}
        moved: list[tuple[bytes, str]] = []
        for file in self._added:
            # A packed file ends in its stamp.
            stamp = file[-PACKED.size :]
            # `pop`, since each removed file can have moved to one place only.
            old_path = path_by_beginning.pop(stamp[: _MOVED.size], None)
            if old_path is not None:
                moved.append((file, old_path))
        return moved


def _all_packed(values: Iterable[Values]) -> list[bytes] | None:
    """Return some stamps in the format PACKED. None if one has a number of more than 64 bits.

    Such a number cannot be packed. `bounded` limits it, but takes longer.
    """
    try:
        return list(starmap(PACKED.pack, values))
    except StructError:
        return None


def apply(
    db: sqlite3.Connection,
    project: str,
    changes: Sequence[Difference],
    load: Load,
    lock: AbstractContextManager[object],
    result: Result,
    progress: Progress | None = None,
    files: BulkSource | None = None,
    ahead: Mapping[str, Prepared] = {},
) -> None:
    """Apply changes to the index in batches, each in one transaction.

    load: reads the note at a path, and returns it with its stamp. None if it is not a note.
    lock: the home's lock. It is held for each batch, so that no file changes between reading it and
        writing its rows.
    result: gets the numbers of notes added, changed, moved and removed.
    progress: is called with (changes applied, all changes) after each batch. None calls nothing.
    files: a folder from which other processes may read very many new files. None if they may not.
    ahead: the rows of notes for which they were computed before, by path.
    """
    has_many_changes = len(changes) > _MANY_CHANGES
    with many_changes(db) if has_many_changes else nullcontext():
        applied = 0
        with _read_ahead(db, project, changes, lock, files) as prepared:
            for batch in _batches(changes):
                prepared_batch = next(prepared, {})
                writer = _BatchWriter(db, project, load, files, ahead)
                with lock, transaction(db):
                    writer.apply(batch, prepared_batch)
                # Only now, since a transaction that fails has changed nothing.
                result.add(writer.result)
                applied += len(batch)
                if progress is not None:
                    progress(applied, len(changes))
        # If a fourth of all notes has changed, merging the tables of words makes searches faster.
        if applied > _MANY_CHANGES:
            (note_count,) = db.execute("select count(*) from note").fetchone()
            if applied * 4 > note_count:
                merge_words(db, lock)


def _new_paths(batch: Sequence[Difference]) -> list[str]:
    """Return the paths of the new files."""
    return [change.path for change in batch if change.old is None]


def _batches(changes: Iterable[Difference]) -> Iterator[list[Difference]]:
    """Split changes into batches of at most BATCH files and about BATCH_BYTES."""
    batch: list[Difference] = []
    size = 0
    for change in changes:
        if len(batch) == BATCH or (batch and size > BATCH_BYTES):
            yield batch
            batch = []
            size = 0
        batch.append(change)
        # Of a removed file, nothing is read.
        if change.stamp is not None:
            size += change.stamp.size
    if batch:
        yield batch


@contextmanager
def _read_ahead(
    db: sqlite3.Connection,
    project: str,
    changes: Sequence[Difference],
    lock: AbstractContextManager[object],
    files: BulkSource | None,
) -> Iterator[Iterator[dict[str, Prepared]]]:
    """Let other processes read the new files while the context is open.

    The context is an iterator. Its first item belongs to the first batch, and so on: the notes that
    were read for the batch, by path. With fewer than MANY_NEW new files, it has no items.

    changes: the differences.
    files: a folder that other processes may read. None reads nothing ahead.
    """
    # Counting the new files takes time, and is useless with fewer changes of any kind.
    may_have_many = files is not None and len(changes) >= MANY_NEW
    if files is None or not may_have_many or len(_new_paths(changes)) < MANY_NEW:
        yield iter(())
        return
    from memoranda.index import readers, writer

    with lock, transaction(db):
        number = writer.project_id(db, project)
    with readers.Readers(files.source, files.suspicious, number) as reading:
        yield reading.ahead(map(_new_paths, _batches(changes)))


@dataclass(slots=True)
class _BatchWriter:
    """Writes one batch of differences to the index, in a transaction of the caller.

    load: reads the note at a path, and returns it with its stamp. None if it is not a note.
    files: a folder that other processes may read. None if they may not.
    ahead: the rows of notes for which they were computed before, by path.
    result: counts the notes.
    """

    db: sqlite3.Connection
    project: str
    load: Load
    files: BulkSource | None
    ahead: Mapping[str, Prepared]
    result: Result = field(default_factory=Result)

    def apply(self, changes: Sequence[Difference], prepared: Mapping[str, Prepared]) -> None:
        """Apply the differences.

        prepared: notes that other processes have read already, by path. They are used if their
            files have not changed since.
        """
        # Importing it takes 8 ms, and most calls find nothing new.
        from memoranda.index import writer

        added = _new_paths(changes)
        # A file renamed while its folder was listed may come twice, so the paths are counted once.
        are_all_new = len(set(added)) == len(changes)
        is_bulk = are_all_new and len(added) >= _MANY
        if is_bulk and not writer.holds_any(self.db, self.project, added):
            self._add_all(added, prepared)
            return
        for change in changes:
            self._apply_one(change)

    def _add_all(self, paths: Sequence[str], prepared: Mapping[str, Prepared]) -> None:
        """Add many new notes. A second thread writes some while the next are read."""
        # Imported here: it takes long, and a short process never needs it.
        from concurrent.futures import ThreadPoolExecutor

        from memoranda.index import writer

        with ThreadPoolExecutor(1) as threads:
            loading = writer.Loading(self.db, self.project, threads)
            for path in paths:
                note = self._usable_note(prepared.get(path), path, loading.project)
                if note is None:
                    loaded = self.load(path)
                    if loaded is None:
                        continue
                    note = writer.prepare(*loaded, loading.project)
                loading.add(note)
                self.result.added += 1
            loading.end()

    def _usable_note(self, note: Prepared | None, path: str, project: int) -> Prepared | None:
        """Return a note that another process has read, with the origin of its file.

        None if there is no such note, or if the file has changed since.

        note: the note; None if no other process has read the file.
        project: the id of the project that the note must be in.
        """
        if note is None or self.files is None or note.counted_as.project != project:
            return None
        has_changed_since = note.stamp != self.files.source.stamp(path)
        if has_changed_since:
            return None
        # The other process does not know who wrote the file.
        note.sign(self.files.accept(path, File(b"", note.stamp, note.etag)))
        return note

    def _apply_one(self, change: Difference) -> None:
        """Make the index follow one difference: write, move or remove a note."""
        from memoranda.index import writer

        # A moved note is taken out at its old path, and put in at the new one with the same row.
        loaded = self.load(change.path)
        row = None
        has_moved = change.old is not None and change.old != change.path
        if change.old is not None and has_moved:
            row = _row_to_keep(self.db, self.project, change.old, loaded)
            writer.remove(self.db, self.project, change.old)

        # Take out what is no longer a note.
        if loaded is None:
            was_removed = writer.remove(self.db, self.project, change.path)
            # A file that still exists, and is no longer a note, is not counted.
            if was_removed and change.stamp is None:
                self.result.removed += 1
            return
        if change.stamp is None:
            # Somebody made the file again after the disk was listed. The next sync indexes it.
            return

        # Put in the note.
        note, stamp = loaded
        is_settled = self._settle_without_writing(change, note, stamp)
        if is_settled:
            return
        # Rows that were computed before are of no use if somebody saved the file since.
        prepared = self.ahead.get(change.path)
        if prepared is not None and (prepared.etag, prepared.stamp) != (note.etag, stamp):
            prepared = None
        writer.put(self.db, note, stamp, row=row, prepared=prepared)
        _count(change, self.result)

    def _settle_without_writing(self, change: Difference, note: Note, stamp: Stamp) -> bool:
        """Bring the index up to date with a note, if no row of it must be written.

        If only the stamp differs, it is set. A note that has the same text as before, but another
        time, gets its origin from the index here, and must be written.

        Returns whether the index is up to date now.
        """
        is_changed_file = change.old == change.path
        if not is_changed_file:
            # Another process may have indexed it since the disk was listed.
            known_row = self.db.execute(_IS_KNOWN, (self.project, change.path, *stamp)).fetchone()
            return known_row is not None
        indexed = get(self.db, self.project, change.path)
        # The etag is the hash of the text.
        if indexed is None or indexed.etag != note.etag:
            return False
        # The time of the file is the time of the note's change, so the note is written again.
        if indexed.mtime_ns != stamp.mtime_ns:
            note.provenance = indexed.provenance
            return False
        from memoranda.index import writer

        # Only the inode or the time of the inode differs.
        writer.touch(self.db, self.project, change.path, stamp)
        return True


def _count(change: Difference, result: Result) -> None:
    """Count a note that was written to the index as added, modified or moved."""
    if change.old is None:
        result.added += 1
    elif change.old == change.path:
        result.modified += 1
    else:
        result.moved += 1


def _row_to_keep(
    db: sqlite3.Connection, project: str, old_path: str, loaded: tuple[Note, Stamp] | None
) -> int | None:
    """Return the row that a moved note keeps, because its text is the same. None if it is not.

    A note that keeps its row also gets the origin that the index has.

    old_path: the path at which the index has the note.
    loaded: the note at its new path. None if it is not a note.
    """
    indexed = get(db, project, old_path)
    if indexed is None or loaded is None:
        return None
    note, _ = loaded
    if indexed.etag != note.etag:
        return None
    note.provenance = indexed.provenance
    return indexed.row
