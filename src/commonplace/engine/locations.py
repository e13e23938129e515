"""Where the files of a change lie, also in a project that only the process that made the change knew.

Such a project (a preset's vault, a bank root of the environment) is in no configuration, so the journal names its
folder in each step. A step that names none lies where this home keeps the project.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from commonplace.errors import CommonplaceError
from commonplace.store.base import File
from commonplace.store.folder import FolderStore
from commonplace.store.layout import PRIVATE

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine

Location = tuple[str, str, str]
"""(project, path, root): `root` as in the journal, empty for a project where this home keeps it."""


class LocationGone(CommonplaceError):
    """The folder of a change is unknown or no longer usable."""

    code = "storage"


def own_root(engine: Engine, project: str) -> str | None:
    """The folder this home keeps the project in, whatever this process was told; None when it has no such project."""
    if project == PRIVATE:  # the answers of review, which undo takes back
        return str(engine.layout.private)
    place = engine.layout.built_in().get(project) or engine.settings.projects.get(project)
    return None if place is None else os.path.abspath(os.path.expanduser(place))


def root_of(engine: Engine, project: str) -> str:
    """What the journal says of where this process has the project: `Location`."""
    root = engine.store(project).root
    return os.path.realpath(root) if own_root(engine, project) != root else ""


def is_here(engine: Engine, project: str, root: str) -> bool:
    """Whether this process has the project there."""
    if not root and not engine.extra and not engine.only:
        return True
    store = engine.stores.get(project)
    if store is None:
        return False
    return os.path.realpath(store.root) == root if root else own_root(engine, project) == store.root


def store_at(engine: Engine, project: str, root: str) -> FolderStore:
    """The store of the project there. Raises LocationGone. A folder the journal names must still be that very folder:
    one that was moved away, or is reached through a symlink by now, may be anything."""
    if project in engine.stores and is_here(engine, project, root):
        return cast(FolderStore, engine.stores[project])  # a graph file is refused once something would be written
    folder = root or own_root(engine, project)
    if folder is None:
        raise LocationGone(f"there is no project {project} here")
    if root and not os.path.isdir(root):
        raise LocationGone(f"{root}, the folder of project {project}, is gone")
    if root and os.path.realpath(root) != root:
        raise LocationGone(f"{root}, the folder of project {project}, is reached through a symlink now")
    is_text = project == "memories"
    return FolderStore(project, Path(folder), every_text=is_text, links=is_text)


def read_or_none(store: FolderStore, path: str) -> File | None:
    """The file, None where it cannot be read."""
    try:
        return store.read(path)
    except CommonplaceError:
        return None
