"""Showing a change in the index right after it was made."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commonplace.engine import elsewhere
from commonplace.note.model import Note
from commonplace.store.base import Stamp
from commonplace.store.history import Change
from commonplace.store.layout import PRIVATE

if TYPE_CHECKING:
    from commonplace.engine.core import Core


def show(core: Core, change: Change) -> None:
    """Index what `change` wrote, removed or moved."""
    removed: list[tuple[str, str]] = []
    written: dict[tuple[str, str], None] = {}
    for each in change.files:
        if each.project == PRIVATE or not elsewhere.is_here(core, each.project, each.root):
            continue
        if each.do == "remove":
            removed.append((each.project, each.path))
        elif each.do == "put":
            written[each.project, each.path] = None
        elif each.do == "move":
            for path in _moved_paths(core, each.project, each.path):
                removed.append((each.project, path))
                written[each.project, each.to + path[len(each.path) :]] = None
            if each.old is not None or not os.path.isdir(os.path.join(core.store(each.project).root, each.to)):
                written[each.project, each.to] = None
    loaded = [_loaded(core, *key) for key in written]
    core.shown = {key: found[0] for key, found in zip(written, loaded, strict=True) if found is not None}
    with core.index.transaction():
        for key in removed:
            core.index.remove(*key)
        for key, found in zip(written, loaded, strict=True):
            if found is None:
                core.index.remove(*key)
            else:
                core.index.put(*found)


def _loaded(core: Core, project: str, path: str) -> tuple[Note, Stamp] | None:
    store = core.store(project)
    is_note = store.is_note(path) and store.stamp(path) is not None  # a moved link or folder is none
    return core.load(store, path) if is_note else None


def _moved_paths(core: Core, project: str, path: str) -> list[str]:
    """The indexed paths a move of `path`, a file or a folder, concerns."""
    below = [info.path for info in core.index.notes.below(project, path)]
    return below if below else [path]
