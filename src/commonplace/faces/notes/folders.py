"""Folders as callers name them: relative, with a project in front, or as a memory:// address."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from commonplace.errors import NotFound, OutsideError

if TYPE_CHECKING:
    from commonplace.engine import Memory

_SCHEME = "memory://"


def relative(path: str, project: str) -> str:
    """`path` without a final `/`; `/` alone is the root. Raises OutsideError for other absolute paths."""
    if path.startswith(("/", "\\")) and path.strip("/\\"):
        raise OutsideError(path, project)
    return path.strip("/\\")


def folder_named(memory: Memory, text: str, project: str | None) -> tuple[str, str]:
    """(project, folder) for a folder's name, "" = the project's root.

    Without `project`: the default project, else the project its first segment names. A leading `/` stands
    for the project's root when such a folder is there. Raises ProjectNotFound, OutsideError, NotFound.
    """
    name = memory.project(project).name if project is not None else memory.default_project
    path = unquote(text[len(_SCHEME) :]) if text.startswith(_SCHEME) else text
    path = path.strip()
    if path.startswith("/") and path.strip("/"):
        if not _is_folder(memory, name, path.strip("/")):
            raise OutsideError(text, name)
        return name, path.strip("/")
    path = relative(path, name).rstrip("/")
    if path in ("", ".") or _is_folder(memory, name, path):
        return name, "" if path == "." else path
    first, _, rest = path.partition("/")
    for each in memory.projects if project is None else [memory.project(name)]:
        if each.name.lower() == first.lower() and (not rest or _is_folder(memory, each.name, rest)):
            return each.name, rest
    raise NotFound(text, name)


def _is_folder(memory: Memory, project: str, folder: str) -> bool:
    try:
        memory.directory(project, folder, limit=1)
    except NotFound:
        return False
    return True
