"""Bringing the index in step with a graph file. A file that has the stamp the index showed is not read at all."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING

from commonplace.index import lookup, places, sync
from commonplace.index.database import transaction
from commonplace.store.inplace.graph_file import GraphStore

if TYPE_CHECKING:
    from commonplace.engine.core import Core


def sweep(
    core: Core, db: sqlite3.Connection, store: GraphStore, result: sync.Result, progress: sync.Progress | None
) -> str:
    """Make the index show the file. Returns what stands in the way, "" for nothing; the notes are then as last seen."""
    version, seen = store.version(), places.seen(db, store.name)
    if version is not None and version == seen:
        return ""
    if core.home.lines.waits():
        with core.home.lock:
            version = store.version()
    if version is None and store.name not in core.settings.projects and not lookup.stamps(db, store.name):
        return ""
    if trouble := store.trouble():
        return trouble
    paths = store.changed_since(seen)
    if paths is None:
        changes = sync.plan(db, store.name, store.list())
    else:
        changes = [each for path in paths for each in sync.plan_one(db, store.name, path, store.stamp(path))]
    if changes:
        sync.apply(db, store.name, changes, partial(core.load, store), core.home.lock, result, progress)
    with core.home.lock, transaction(db):
        places.see(db, store.name, version)
    return ""
