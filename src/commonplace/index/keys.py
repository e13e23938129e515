"""The folded keys under which a note can be linked to, and those of the links themselves.

Equal keys are necessary, not sufficient: resolve.py then applies the steps of contract 000b, 3.4.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from commonplace.note.links import fold, fold_title, lead
from commonplace.note.model import MEMORY_PROJECTS

KEY_LENGTH = 48
TITLE_CUT = 100
"""Titles of memories are compared up to here (contract 001, 4)."""


def key(name: str) -> str:
    """The key of one name; names without a letter or digit keep their signs, marked by `=`."""
    return fold(name)[:KEY_LENGTH] or "=" + fold_title(name)[:KEY_LENGTH]


def keys_of(project: str, path: str, permalink: str, titles: Iterable[str], first_line: str | None) -> set[str]:
    """The keys a note is kept under, without its id and without the project in front: permalink,
    path, file name, titles, and the first line of a memory."""
    stem = posixpath.splitext(path)[0]
    names = {permalink.removeprefix(f"{lead(project)}/"), stem, path, posixpath.basename(stem), *titles}
    if first_line is not None:
        names.update((first_line, first_line.lstrip("#").strip()))
    if project in MEMORY_PROJECTS:
        names.update([name[:TITLE_CUT] for name in names])
    return {key(name) for name in names}


def keys_of_links(project: str, path: str, permalink: str, id: str) -> set[str]:
    """Further keys that links to the note may have: its id, permalink and path with the project in front."""
    prefixes = {project, lead(project)}
    names = {f"{prefix}/{name}" for prefix in prefixes for name in (permalink, posixpath.splitext(path)[0])}
    return {key(name) for name in (id, permalink, *names)}


def first_line_of(project: str, content: str) -> str | None:
    """The first line with text of a memory, by which links may name it; None for other notes."""
    if project not in MEMORY_PROJECTS:
        return None
    return content.lstrip().split("\n", 1)[0].strip()[:TITLE_CUT]


def root_path(target: str, folder: str) -> str | None:
    """A target as a path from the project's root; None when `./` or `../` leads out of it."""
    if not target.startswith(("./", "../")):
        return target.lstrip("/")
    path = posixpath.normpath(posixpath.join(folder, target))
    return None if path.startswith("..") or path == "." else path


def link_key(target: str, path: str) -> str | None:
    """The key a link in the note at `path` is kept under; None for one that leads nowhere."""
    reached = root_path(target, posixpath.dirname(path)) if target.startswith(("./", "../")) else target
    return None if reached is None else key(reached)
