"""Projects: which there are, and the rules for adding a folder (contract 000b, 1)."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import config
from commonplace.engine.core import Core
from commonplace.engine.stores import FOLDER, GRAPH_FILE_SUFFIX
from commonplace.errors import Exists, InvalidInput, ProjectRefused, StorageError
from commonplace.note.model import BUILT_IN_PROJECTS
from commonplace.store.atomic import make_private, reason, sync_folder, write_file

if TYPE_CHECKING:
    from commonplace.engine.results import Project

_NAME = re.compile(r"[\w .\-]{1,64}")


def default(core: Core) -> str:
    """The default project's name; `notes` when the configured one is not there."""
    name = core.settings.default_project
    return next((each for each in core.stores if each.lower() == name.lower()), "notes")


def listed(core: Core) -> list[Project]:
    """All projects, built-in ones first, then as configured."""
    return [_project(core, name) for name in core.stores]


def named(core: Core, name: str) -> Project:
    """The project of that name. Raises ProjectNotFound."""
    return _project(core, core.store(name).name)


def _project(core: Core, name: str) -> Project:
    from commonplace.engine.results import Project

    return Project(name, Path(core.stores[name].root), name in BUILT_IN_PROJECTS, name == default(core))


def add(core: Core, name: str, folder: str, is_default: bool, make: bool) -> tuple[Project, str]:
    """Check the name and the folder or graph file, make the folder if missing and wanted, and write it down."""
    with core.home.lock:
        core.reload()  # another process may have added one meanwhile
        return _add(core, name.strip(), folder, is_default, make)


def _add(core: Core, name: str, folder: str, is_default: bool, make: bool) -> tuple[Project, str]:
    if not _NAME.fullmatch(name) or not any(map(str.isalnum, name)):
        raise InvalidInput(f"invalid project name: {name}")
    root = _root(folder)
    known = next((each for each in core.stores if each.lower() == name.lower()), None)
    if known is not None:
        if known not in BUILT_IN_PROJECTS and os.path.realpath(core.stores[known].root) == os.path.realpath(root):
            if is_default:
                set_default(core, known)
            return _project(core, known), "unchanged"
        raise _taken(known)
    if _is_graph_file(root):
        _check_graph_file(core, root, folder, is_default)
    else:
        _check_folder(core, root, folder, make)
        if not root.is_dir():
            try:
                make_private(root)
            except OSError as error:
                raise ProjectRefused(folder, reason(error)) from None
    changes: dict[str, Any] = {f"projects.{name}": str(root)}
    if is_default:
        changes["notes.default_project"] = name
    _write(core, changes)
    return _project(core, name), "created"


def _taken(name: str) -> Exists:
    error = Exists(name)
    error.args = (f"project exists: {name}",)
    return error


def remove(core: Core, name: str) -> Project:
    """Take an added project off the list."""
    core.reload()
    project = named(core, name)
    if project.built_in:
        raise InvalidInput(f"cannot remove a built-in project: {project.name}")
    if project.name not in core.settings.projects:
        file = core.settings.file.name
        raise InvalidInput(f"Project {project.name} was given to this process only; it is not in {file}.")
    changes: dict[str, Any] = {f"projects.{project.name}": None}
    if project.default:
        changes["notes.default_project"] = None
    _write(core, changes)
    return project


def set_default(core: Core, name: str) -> Project:
    """Write down the default project."""
    core.reload()
    project = named(core, name)
    core.check_writable(project.name)
    _write(core, {"notes.default_project": project.name})
    return _project(core, project.name)


def _root(folder: str) -> Path:
    if not folder.startswith(("/", "~")):
        raise ProjectRefused(folder, "it must be absolute or begin with ~")
    if "\0" in folder:
        raise ProjectRefused(folder.replace("\0", "?"), "it holds a NUL character")
    return Path(os.path.abspath(os.path.expanduser(folder)))


def _is_graph_file(root: Path) -> bool:
    """Whether what lies there is meant as a graph file (contract 002, 8)."""
    from commonplace.store.inplace.graph_file import holds_graph

    try:
        return root.is_file() and (root.suffix == GRAPH_FILE_SUFFIX or holds_graph(root))
    except OSError:
        return False


def _check_graph_file(core: Core, file: Path, shown: str, is_default: bool) -> None:
    """Raises ProjectRefused, NotRecords for a file of another shape, StorageError."""
    from commonplace.store.inplace.graph_file import GraphStore

    private = Path(os.path.realpath(core.layout.private))
    if private in Path(os.path.realpath(file)).parents:
        raise ProjectRefused(shown, "it lies in the memory home")
    if is_default:
        raise ProjectRefused(shown, "notes cannot be written to a graph file, so it cannot be the default")
    for name, store in core.stores.items():
        if os.path.realpath(store.root) == os.path.realpath(file):
            raise ProjectRefused(shown, f"it overlaps project {name}")
    GraphStore(file.stem, file).fresh()


def _check_folder(core: Core, root: Path, shown: str, make: bool) -> None:
    real, user = Path(os.path.realpath(root)), Path(os.path.realpath(Path.home()))
    home = Path(os.path.realpath(core.layout.root))
    if real == Path("/"):
        raise ProjectRefused(shown, "it is the whole file system")
    if real == user:
        raise ProjectRefused(shown, "it is your home folder")
    if real == home or home in real.parents:
        raise ProjectRefused(shown, "it lies in the memory home")
    if real in home.parents:
        raise ProjectRefused(shown, "the memory home lies in it")
    if user in real.parents and any(part.startswith(".") for part in real.relative_to(user).parts):
        raise ProjectRefused(shown, "it is hidden below your home folder")
    if real.exists() and not real.is_dir():
        raise ProjectRefused(shown, "not a folder")
    if not make and not real.exists():
        raise ProjectRefused(shown, "not a folder")
    for name, store in core.stores.items():
        other = Path(os.path.realpath(store.root))
        if store.kind == FOLDER and (other == real or other in real.parents or real in other.parents):
            raise ProjectRefused(shown, f"it overlaps project {name}")


def _write(core: Core, changes: dict[str, Any]) -> None:
    """Change these keys of config.yaml under the lock, and use the new settings at once."""
    path = core.settings.file
    with core.home.lock:
        data = config.change(path, changes).encode()
        real = Path(os.path.realpath(path))  # a link stays one
        temp = real.with_name(f".{real.name}-{os.getpid()}")
        try:
            make_private(path.parent)
            temp.unlink(missing_ok=True)
            write_file(str(temp), data, mode=path.stat().st_mode & 0o777 if path.exists() else 0o600)
            os.replace(temp, real)
            sync_folder(real.parent)
        except OSError as error:
            temp.unlink(missing_ok=True)
            raise StorageError(path.name, reason(error)) from None
    now = config.load(core.layout.root, path, {})
    core.set_projects(replace(core.settings, projects=now.projects, default_project=now.default_project))
