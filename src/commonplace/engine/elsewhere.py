"""Where the files of a change lie, also when that is a project only the process that made it knew.

Such a project (a preset's vault, a bank root of the environment) is in no configuration, so the journal names its
folder in each step. A step that names none lies where this home keeps the project.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import Ambiguous, CommonplaceError
from commonplace.note.model import BUILT_IN_PROJECTS
from commonplace.store import path_guard
from commonplace.store.folder import FolderStore

if TYPE_CHECKING:
    from commonplace.engine.core import Core
    from commonplace.engine.memory import Memory

Place = tuple[str, str, str]
"""(project, path, root): `root` as in the journal, empty for a project where this home keeps it."""


class Elsewhere(CommonplaceError):
    """The folder a change was made in cannot be told or used any more."""

    code = "storage"


def own_root(core: Core, project: str) -> str | None:
    """The folder this home keeps the project in, whatever this process was told; None when it has no such project."""
    is_built_in = project in BUILT_IN_PROJECTS
    place = core.layout.project(project) if is_built_in else core.settings.projects.get(project)
    return None if place is None else os.path.abspath(os.path.expanduser(place))


def root_of(core: Core, project: str) -> str:
    """What the journal says of where this process has the project: `Place`."""
    root = core.store(project).root
    return os.path.realpath(root) if own_root(core, project) != root else ""


def is_here(core: Core, project: str, root: str) -> bool:
    """Whether this process has the project there."""
    if not root and not core.extra:
        return True
    store = core.stores.get(project)
    if store is None:
        return False
    return os.path.realpath(store.root) == root if root else own_root(core, project) == store.root


def store_at(core: Core, project: str, root: str) -> FolderStore:
    """The store of the project there. Raises Elsewhere.

    A folder the journal names must still be that very folder: one that was moved away, or is reached through a
    symlink by now, may be anything.
    """
    if project in core.stores and is_here(core, project, root):
        return core.store(project)  # type: ignore[return-value]
    folder = root or own_root(core, project)
    if folder is None:
        raise Elsewhere(f"there is no project {project} here")
    if root and not os.path.isdir(root):
        raise Elsewhere(f"{root}, the folder of project {project}, is gone")
    if root and os.path.realpath(root) != root:
        raise Elsewhere(f"{root}, the folder of project {project}, is reached through a symlink now")
    is_text = project == "memories"
    return FolderStore(project, Path(folder), every_text=is_text, links=is_text)


def named(memory: Memory, ref: str) -> Place | None:
    """The place of `project/path`, or of the absolute path of a file the history knows; None for anything else.

    One this home has is taken first, then the one the history has in a folder elsewhere. Raises Ambiguous when it
    has several, OutsideError.
    """
    core = memory._core
    project, _, path = ref.partition("/")
    name = next((each for each in core.stores if each.lower() == project.lower()), None) if path else None
    if name is None and not path:
        return None
    wanted = path_guard.clean(path, name or project, hidden=True) if not ref.startswith("/") else ref
    own = (name, wanted, root_of(core, name)) if name else None
    if own is not None and os.path.lexists(os.path.join(core.store(own[0]).root, wanted)):
        return own
    found: dict[Place, None] = {}
    for each in (each for change in core.home.history.changes() for each in change.files if memory.sees(each.scope)):
        for at in filter(None, (each.path, each.to)):
            if own == (each.project, at, each.root):
                return own
            is_it = (each.project.lower(), at) == (project.lower(), wanted)
            if each.root and (is_it or os.path.join(each.root, at) == ref):
                found[each.project, at, each.root] = None
    if len(found) > 1:
        raise Ambiguous(ref, [os.path.join(root, at) for _, at, root in found])
    return next(iter(found), own)
