"""Bringing the index in step with a graph file: what differs is indexed, by a digest of each entity's lines.

A file that has the stamp the index showed is not read at all.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from commonplace.engine.graph_store import GraphStore
from commonplace.errors import CommonplaceError
from commonplace.index import sync
from commonplace.note.model import Note
from commonplace.store.base import Stamp

if TYPE_CHECKING:
    from commonplace.engine.core import Core


def sweep(core: Core, store: GraphStore, result: sync.Result, progress: sync.Progress | None) -> str:
    """Make the index show the file. Returns what stands in the way, "" for nothing; the notes are then as last seen."""
    now, seen = store.on_disk(), core.index.seen(store.name)
    if now is not None and now == seen:
        return ""
    if now is None:
        known = store.name in core.settings.projects or core.index.notes.stamps(store.name)
        return f"The file of project {store.name} is missing; its notes are as last seen." if known else ""
    try:
        store.fresh(core.home)
    except CommonplaceError as error:
        return str(error)
    held = store.held
    stamp, touched = held.records.stamp, held.touched
    is_known = touched is not None and store.shown is not None and store.shown == seen
    changes = _some(core, store, touched or set()) if is_known else _all(core, store)
    held.touched = None  # should it fail, all is looked at again
    core.index.apply(store.name, changes, partial(_load, core, store), core.home.lock, result, progress)
    with core.home.lock, core.index.transaction():
        core.index.see(store.name, stamp)
    store.shown, held.touched = stamp, set()
    return ""


def _all(core: Core, store: GraphStore) -> list[sync.Change]:
    """What has to change so that the index shows every entity: removals, then new ones in the file's order."""
    known = {path: Stamp._make(stamp) for path, stamp in core.index.notes.stamps(store.name).items()}
    changes: list[sync.Change] = []
    for name, lines in store.held.named.items():
        for twin, line in enumerate(lines):
            path = store.path(name, twin)
            changes += _change(store, path, known.pop(path, None), store.digest(store.held.entities[line], twin))
    return [*map(sync.Removed, known), *changes]


def _some(core: Core, store: GraphStore, names: set[str]) -> list[sync.Change]:
    """The same for the entities of some names."""
    gone: list[sync.Change] = []
    changes: list[tuple[int, list[sync.Change]]] = []
    for path in [path for name in names for path in store.paths(name)]:
        known, found = core.index.notes.stamp(store.name, path), store.entity(path)
        if found is not None:
            changes.append((found[0].line, _change(store, path, known, store.digest(*found))))
        elif known is not None:
            gone.append(sync.Removed(path))
    return [*gone, *(each for _, some in sorted(changes, key=lambda pair: pair[0]) for each in some)]


def _change(store: GraphStore, path: str, known: Stamp | None, digest: int) -> list[sync.Change]:
    stamp = Stamp(0, store.held.records.changed, digest)
    if known is None:
        return [sync.Added(path, stamp)]
    return [] if known.inode == digest else [sync.Modified(path, stamp)]


def _load(core: Core, store: GraphStore, path: str) -> tuple[Note, Stamp] | None:
    file = store.rendered(path)
    note = None if file is None else core.note_of(store.name, path, file)
    return None if file is None or note is None else (note, file.stamp)
