"""Where Basic Memory puts a note: in the folder there is, whatever its case, under a permalink nobody has."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from commonplace.errors import CommonplaceError, NotFound
from commonplace.index.rows import NoteInfo

if TYPE_CHECKING:
    from commonplace.engine import Memory

_FOLDERS = 1000


def as_there(memory: Memory, project: str, path: str) -> str:
    """`path` with the names of the folders that are there in another case only, as on a disk that ignores it."""
    folders, there = path.split("/"), ""
    for number, name in enumerate(folders):
        try:
            entries = memory.directory(project, there, limit=_FOLDERS).entries
        except CommonplaceError:  # nothing below is there; what is wrong with the path, the caller says
            break
        known = {each.path.rpartition("/")[2] for each in entries if each.kind == "folder"}
        if name not in known:
            name = next((each for each in sorted(known) if each.casefold() == name.casefold()), name)
        folders[number] = name
        there = f"{there}/{name}".lstrip("/")
    return "/".join(folders)


def at(memory: Memory, project: str, path: str) -> NoteInfo | None:
    """The note at a path."""
    try:
        return memory.find_ref((project, path))
    except NotFound:
        return None


def holder(memory: Memory, project: str, permalink: str) -> NoteInfo | None:
    """The note that has a permalink."""
    found, _ = memory.matching(permalink, project=project, limit=1)
    return found[0] if found else None


def free_permalink(memory: Memory, project: str, permalink: str) -> str:
    """The permalink with the first number nobody has."""
    numbered = (f"{permalink}-{number}" for number in count(1))
    return next(each for each in numbered if holder(memory, project, each) is None)
