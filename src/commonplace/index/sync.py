"""Bringing the index in step with the disk: first plan what changed, then apply it in batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from commonplace.index.database import many_changes, merge_words, transaction
from commonplace.index.rows import get
from commonplace.note.model import Note
from commonplace.store.base import Listing, Stamp, Values, bounded

BATCH, BATCH_BYTES = 200, 4 << 20
"""Notes, and bytes of them, that are indexed before the lock is given back; at least one note."""

_MANY_CHANGES = 2_000
_MANY = 50
"""From so many new notes in a batch on, a second thread pays."""

Load = Callable[[str], tuple[Note, Stamp] | None]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file the index does not know."""

    path: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class ModifiedFile:
    """A known file with another stamp."""

    path: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A known file (same inode, size and time) under another path."""

    path: str
    old_path: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A known file that is gone."""

    path: str


Change = AddedFile | ModifiedFile | MovedFile | RemovedFile


@dataclass(slots=True)
class Result:
    """How many notes a sync added, changed, moved and removed."""

    added: int = 0
    modified: int = 0
    moved: int = 0
    removed: int = 0

    @property
    def total(self) -> int:
        return self.added + self.modified + self.moved + self.removed


def plan(known: dict[str, Values], listing: Listing) -> list[Change]:
    """What has to change so that the index, which has these stamps by path, shows `listing`: removals first, then new
    notes, oldest first. Nothing below a folder that could not be read counts as removed. `known` is used up."""
    if not listing.unreadable and listing.stamps == known:
        return []  # the usual case, compared in C
    fresh: dict[str, Stamp] = {}
    changes: list[Change] = []
    for path, values in listing.stamps.items():
        before = known.pop(path, None)
        if before is None:
            fresh[path] = bounded(values)
        elif before != values and before != (stamp := bounded(values)):
            changes.append(ModifiedFile(path, stamp))
    if listing.unreadable and known:
        folders = tuple(f"{folder}/" if folder else "" for folder in listing.unreadable)
        known = {path: stamp for path, stamp in known.items() if not path.startswith(folders)}
    return _with_moves(known, fresh) + sorted(changes, key=_age)


def plan_file(known: Stamp | None, path: str, stamp: Stamp | None) -> list[Change]:
    """The same for the single note at `path`: `stamp` is that of the file, if it is there."""
    if stamp is None:
        return [] if known is None else [RemovedFile(path)]
    if known is None:
        return [AddedFile(path, stamp)]
    return [] if known == stamp else [ModifiedFile(path, stamp)]


def _with_moves(gone: dict[str, Values], fresh: dict[str, Stamp]) -> list[Change]:
    """Pair a file that is gone with a new one of equal stamp; the rest is removed or added."""
    by_stamp = {values: path for path, values in gone.items()} if fresh else {}
    moved: list[Change] = []
    added: list[Change] = []
    for path, stamp in fresh.items():
        old = by_stamp.pop(stamp, None)
        if old is None:
            added.append(AddedFile(path, stamp))
        else:
            del gone[old]
            moved.append(MovedFile(path, old, stamp))
    return [*map(RemovedFile, gone), *moved, *sorted(added, key=_age)]


def _age(change: Change) -> tuple[int, str]:
    return (0 if isinstance(change, RemovedFile) else change.stamp.mtime_ns, change.path)


def apply(
    db: sqlite3.Connection, project: str, changes: Sequence[Change], load: Load, lock: AbstractContextManager[object],
    result: Result, progress: Progress | None = None,
) -> None:  # fmt: skip
    """Carry out `changes`, a batch a transaction, each under the home's lock so that no writer gets between
    a file's bytes and its rows. `load` gives a note and the stamp it was read with, None when the path is none
    (any more). What came of it is added to `result`; `progress` hears (done, total)."""
    if len(changes) <= _MANY_CHANGES:
        _apply_all(db, project, changes, load, lock, result, progress)
        return
    with many_changes(db):
        _apply_all(db, project, changes, load, lock, result, progress)
        if len(changes) * 4 > db.execute("select count(*) from note").fetchone()[0]:
            merge_words(db, lock)


def _apply_all(
    db: sqlite3.Connection, project: str, changes: Sequence[Change], load: Load, lock: AbstractContextManager[object],
    result: Result, progress: Progress | None,
) -> None:  # fmt: skip
    done = 0
    while done < len(changes):
        end, size = done, 0
        while end < len(changes) and end - done < BATCH and (end == done or size <= BATCH_BYTES):
            change = changes[end]
            size += 0 if isinstance(change, RemovedFile) else change.stamp.size
            end += 1
        with lock, transaction(db):
            _apply_batch(db, project, changes[done:end], load, result)
        done = end
        if progress is not None:
            progress(done, len(changes))


def _apply_batch(db: sqlite3.Connection, project: str, changes: Sequence[Change], load: Load, result: Result) -> None:
    """Carry out some changes; of many new notes, some are written by a second thread while the next are read."""
    from commonplace.index import writer  # 8 ms, and most calls find nothing new

    added = [each.path for each in changes if isinstance(each, AddedFile)]
    if len(added) < max(_MANY, len(changes)) or writer.holds_any(db, project, added):
        for change in changes:
            _apply(db, project, change, load, result)
        return
    with ThreadPoolExecutor(1) as threads:
        loading = writer.Loading(db, project, threads)
        for path in added:
            if (loaded := load(path)) is not None:
                loading.add(writer.prepare(*loaded, loading.project))
                result.added += 1
        loading.end()


def _apply(db: sqlite3.Connection, project: str, change: Change, load: Load, result: Result) -> None:
    from commonplace.index import writer

    if isinstance(change, RemovedFile):
        if load(change.path) is None and writer.remove(db, project, change.path):
            result.removed += 1
        return
    loaded = load(change.path)
    row = None
    if isinstance(change, MovedFile):
        old = get(db, project, change.old_path)
        if old is not None and loaded is not None and old.etag == loaded[0].etag:
            row = old.row  # a row's text never changes
            loaded[0].provenance = old.provenance
        writer.remove(db, project, change.old_path)
    if loaded is None:
        writer.remove(db, project, change.path)
        return
    note, stamp = loaded
    if isinstance(change, ModifiedFile):
        known = get(db, project, change.path)
        if known is not None and known.etag == note.etag and known.mtime_ns == stamp.mtime_ns:
            writer.touch(db, project, change.path, stamp)
            return
        if known is not None and known.etag == note.etag:
            note.provenance = known.provenance
    writer.put(db, note, stamp, row=row)
    if isinstance(change, AddedFile):
        result.added += 1
    elif isinstance(change, MovedFile):
        result.moved += 1
    else:
        result.modified += 1
