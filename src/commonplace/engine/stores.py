"""Which store keeps each project: a folder of notes, or a graph file used in place (contract 002, 8)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.store.folder import FolderStore
from commonplace.store.layout import Layout

if TYPE_CHECKING:
    from commonplace.store.inplace.graph_file import GraphStore

FOLDER = FolderStore.kind
GRAPH_FILE_SUFFIX = ".jsonl"


def opened(
    layout: Layout, added: Mapping[str, str], extra: Mapping[str, str], before: Mapping[str, FolderStore | GraphStore]
) -> dict[str, FolderStore | GraphStore]:
    """The store of every project: the built-in ones, those `added` by the configuration, those of this process alone.

    `extra` may put a built-in one elsewhere. A graph file known `before` keeps its store.
    """
    found: dict[str, FolderStore | GraphStore] = {
        name: FolderStore(
            name, absolute(extra.get(name, root)), every_text=name == "memories", links=name == "memories"
        )
        for name, root in layout.built_in().items()
    }
    for name, place in {**added, **extra}.items():
        if name not in found:
            found[name] = _opened(name, absolute(place), before.get(name))
    return found


def _opened(name: str, place: Path, before: FolderStore | GraphStore | None) -> FolderStore | GraphStore:
    if before is not None and before.kind != FOLDER and before.root == str(place):
        return before
    if place.is_file() or (place.suffix == GRAPH_FILE_SUFFIX and not place.is_dir()):
        from commonplace.store.inplace.graph_file import GraphStore

        return GraphStore(name, place)
    return FolderStore(name, place)


def shared(layout: Layout, known: Iterable[FolderStore | GraphStore]) -> list[str]:
    """The folders of projects that lie outside the home, so that other homes may use them too."""
    inside = f"{layout.root}/"
    return [each.root for each in known if each.kind == FOLDER and not each.root.startswith(inside)]


def absolute(place: str | os.PathLike[str]) -> Path:
    """The place as an absolute path, `~` expanded."""
    return Path(os.path.abspath(os.path.expanduser(place)))
