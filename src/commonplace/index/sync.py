"""Bringing the index in step with the disk: first plan what changed, then apply it in batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.database import many_changes, merge_words, transaction
from commonplace.index.rows import get
from commonplace.note.model import Note, Provenance
from commonplace.store.base import File, Listing, Stamp, Values, bounded
from commonplace.store.folder import FolderStore

if TYPE_CHECKING:
    from commonplace.index.writer import Prepared

BATCH, BATCH_BYTES = 200, 4 << 20
"""Notes, and bytes of them, that are indexed before the lock is given back; at least one note."""

MANY_NEW = 4_000
"""From so many new files on, processes of their own pay, each of which takes a third of a second to start."""
_MANY_CHANGES = 2_000
_MANY = 50
"""From so many new notes in a batch on, a second thread pays."""

Load = Callable[[str], tuple[Note, Stamp] | None]
Progress = Callable[[int, int], None]


class Difference(NamedTuple):
    """A file the index knows at `old` (None: not at all), which has this stamp at `path` now (None: it is gone)."""

    path: str
    stamp: Stamp | None
    old: str | None = None


@dataclass(frozen=True, slots=True)
class BulkSource:
    """The files of a folder, and what becomes of them: `suspicious` names the gate's rules that match a text, `accept`
    says where a file comes from that is indexed."""

    store: FolderStore
    suspicious: Callable[[str], tuple[str, ...]]
    accept: Callable[[str, File], Provenance]


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


def plan(known: dict[str, Values], listing: Listing) -> list[Difference]:
    """What has to change so that the index, which has these stamps by path, shows `listing`: removals first, then new
    notes, oldest first. Nothing below a folder that could not be read counts as removed. `known` is used up."""
    if not listing.unreadable and listing.stamps == known:
        return []  # the usual case, compared in C
    fresh: dict[str, Stamp] = {}
    changes: list[Difference] = []
    for path, values in listing.stamps.items():
        before = known.pop(path, None)
        if before is None:
            fresh[path] = bounded(values)
        elif before != values and before != (stamp := bounded(values)):
            changes.append(Difference(path, stamp, path))
    if listing.unreadable and known:
        folders = tuple(f"{folder}/" if folder else "" for folder in listing.unreadable)
        known = {path: stamp for path, stamp in known.items() if not path.startswith(folders)}
    return _with_moves(known, fresh) + sorted(changes, key=_age)


def plan_file(known: Stamp | None, path: str, stamp: Stamp | None) -> list[Difference]:
    """The same for the single note at `path`: `stamp` is that of the file, if it is there."""
    return [] if known == stamp else [Difference(path, stamp, None if known is None else path)]


def _with_moves(gone: dict[str, Values], fresh: dict[str, Stamp]) -> list[Difference]:
    """Pair a file that is gone with a new one of equal stamp; the rest is removed or added."""
    by_stamp = {values: path for path, values in gone.items()} if fresh else {}
    found = [Difference(path, stamp, by_stamp.pop(stamp, None)) for path, stamp in fresh.items()]
    moved = [each for each in found if each.old is not None]
    for each in moved:
        del gone[each.old]  # type: ignore[arg-type]
    added = [each for each in found if each.old is None]
    return [*(Difference(path, None, path) for path in gone), *moved, *sorted(added, key=_age)]


def _age(change: Difference) -> tuple[int, str]:
    return (change.stamp.mtime_ns if change.stamp else 0, change.path)


def apply(
    db: sqlite3.Connection, project: str, changes: Sequence[Difference], load: Load,
    lock: AbstractContextManager[object], result: Result, progress: Progress | None = None,
    files: BulkSource | None = None,
) -> None:  # fmt: skip
    """Carry out `changes`, a batch a transaction, each under the home's lock so that no writer gets between
    a file's bytes and its rows. `load` gives a note and the stamp it was read with, None when the path is none
    (any more); very many of `files` are read by other processes. What came of it is added to `result`; `progress`
    hears (done, total)."""
    batches = list(_batches(changes))
    with many_changes(db) if len(changes) > _MANY_CHANGES else nullcontext():
        done = 0
        with _read_ahead(db, project, batches, lock, files) as prepared:
            for batch in batches:
                known = next(prepared, {})
                with lock, transaction(db):
                    _apply_batch(db, project, batch, load, result, known, files)
                done += len(batch)
                if progress is not None:
                    progress(done, len(changes))
        if done > _MANY_CHANGES and done * 4 > db.execute("select count(*) from note").fetchone()[0]:
            merge_words(db, lock)


def _batches(changes: Sequence[Difference]) -> Iterator[Sequence[Difference]]:
    done = 0
    while done < len(changes):
        end, size = done, 0
        while end < len(changes) and end - done < BATCH and (end == done or size <= BATCH_BYTES):
            stamp = changes[end].stamp
            size += stamp.size if stamp else 0
            end += 1
        yield changes[done:end]
        done = end


@contextmanager
def _read_ahead(
    db: sqlite3.Connection, project: str, batches: Sequence[Sequence[Difference]], lock: AbstractContextManager[object],
    files: BulkSource | None,
) -> Iterator[Iterator[dict[str, Prepared]]]:  # fmt: skip
    """What other processes read of the new files of each batch, by path; nothing where they are few."""
    added = [[each.path for each in batch if each.old is None] for batch in batches]
    if files is None or sum(map(len, added)) < MANY_NEW:
        yield iter(())
        return
    from commonplace.index import readers, writer

    with lock, transaction(db):
        number = writer.project_id(db, project)
    with readers.Readers(files.store, files.suspicious, number) as reading:
        yield reading.ahead(added)


def _apply_batch(
    db: sqlite3.Connection, project: str, changes: Sequence[Difference], load: Load, result: Result,
    prepared: dict[str, Prepared], files: BulkSource | None,
) -> None:  # fmt: skip
    """Carry out some changes; of many new notes, some are written by a second thread while the next are read, unless
    they are `prepared` and their files are the same still."""
    from commonplace.index import writer  # 8 ms, and most calls find nothing new

    added = [each.path for each in changes if each.old is None]
    if len(added) < max(_MANY, len(changes)) or writer.holds_any(db, project, added):
        for change in changes:
            _apply(db, project, change, load, result)
        return
    with ThreadPoolExecutor(1) as threads:
        loading = writer.Loading(db, project, threads)
        for path in added:
            known = prepared.get(path)
            if known is not None and files is not None and known.is_of(loading.project, files.store.stamp(path)):
                known.sign(files.accept(path, File(b"", known.stamp, known.etag)))
                loading.add(known)
                result.added += 1
            elif (loaded := load(path)) is not None:
                loading.add(writer.prepare(*loaded, loading.project))
                result.added += 1
        loading.end()


def _apply(db: sqlite3.Connection, project: str, change: Difference, load: Load, result: Result) -> None:
    from commonplace.index import writer

    path, _, old = change
    loaded = load(path)
    row = None
    if old is not None and old != path:
        before = get(db, project, old)
        if before is not None and loaded is not None and before.etag == loaded[0].etag:
            row = before.row  # a row's text never changes
            loaded[0].provenance = before.provenance
        writer.remove(db, project, old)
    if loaded is None:
        result.removed += writer.remove(db, project, path) and change.stamp is None
        return
    if change.stamp is None:
        return
    note, stamp = loaded
    if old == path and (known := get(db, project, path)) is not None and known.etag == note.etag:
        if known.mtime_ns == stamp.mtime_ns:
            writer.touch(db, project, path, stamp)
            return
        note.provenance = known.provenance
    writer.put(db, note, stamp, row=row)
    if old is None:
        result.added += 1
    elif old == path:
        result.modified += 1
    else:
        result.moved += 1
