"""Find notes by addresses that they had before upkeep moved them (docs/format.md, "Names").

Sorting, archiving and merging move a memory, but never edit links: the texts belong to people. How
the memory is found by its old address:
- After sorting, its file has the same name in another category, so all categories are searched.
- After merging, the id in its name leads to the memory into which it was merged.
- An archived note of another project has its old address in its header.

These addresses are tried last, so they never hide the name of an existing note.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Protocol

from memoranda.index.filters import may_see
from memoranda.note.links import lead, without_suffix
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORIES, CATEGORY_PROJECT, MEMORY_PROJECTS
from memoranda.note.names import without_case
from memoranda.text.pattern import lazy_pattern

# The digits of an id at the end of a memory's address.
_ID_IN_NAME = lazy_pattern(r"-([0-9a-f]{8})$")
# The projects of memories, as they are and as permalinks begin with them.
_FRONTS = tuple({*MEMORY_PROJECTS, *map(lead, MEMORY_PROJECTS)})


class Addressed(Protocol):
    """A note, with the values to compare with an address."""

    @property
    def row(self) -> int: ...
    @property
    def project(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def permalink(self) -> str: ...


def former_rows(
    db: sqlite3.Connection,
    target: str,
    project: str,
    candidates: Iterable[Addressed],
    viewer: str | None,
) -> list[int]:
    """Return the rows of the notes that once had the address `target`.

    target: an address or the end of one, as written in a link: `decisions/use-tea`.
    project: the project of the note with the link.
    candidates: the notes that a link to the last part of `target` may mean.
    viewer: the agent that asks. None is the owner.
    """
    notes = list(candidates)
    name = _name_of_memory(target)
    if name:
        # A memory keeps its name in every category. Without a note of that name, the memory may
        # have been merged into another one.
        rows = [note.row for note in notes if _is_called(note, name)]
        return rows or _merged_rows(db, name, viewer)
    # Any other note has a former address only if upkeep archived it.
    archived = [note.row for note in notes if note.project == ARCHIVE_PROJECT]
    return _archived_rows(db, archived, target, project)


def former_names(project: str, path: str, archived_from: str) -> list[str]:
    """Return the names that links may still use for a note that upkeep has moved.

    `work/team/plan.md` → `work/team/plan`, `team/plan`, `plan`. A memory may have been in any
    category, so its name comes with each of them. Empty if upkeep does not move notes of `project`.

    project: the present project of the note.
    path: its present path in the project.
    archived_from: the project and path from which the note was archived. "" if it was not archived.
    """
    # An archived note: its old address, and every end of it.
    if archived_from:
        origin = without_suffix(archived_from)
        parts = origin.split("/")
        return ["/".join(parts[start:]) for start in range(len(parts))]
    if project not in MEMORY_PROJECTS:
        return []
    # A memory: its name in every category, alone and after each project of memories.
    name = without_suffix(posixpath.basename(path))
    names = [f"{category}/{name}" for category in CATEGORIES]
    for front in _FRONTS:
        names += [f"{front}/{category}/{name}" for category in CATEGORIES]
    return names


def _name_of_memory(target: str) -> str:
    """Return the file name of the memory that a target names, without case and extension.

    "" if the target is not an address in a category.
    """
    # `categories/decisions/use-tea` → the project `categories`, the category `decisions`, the name
    # `use-tea`. The project may be missing.
    folder, _, name = without_suffix(target.strip("/")).rpartition("/")
    project, slash, category = folder.rpartition("/")
    is_of_memories = not slash or without_case(project) in _FRONTS
    if is_of_memories and without_case(category) in CATEGORIES:
        return without_case(name)
    return ""


def _is_called(note: Addressed, name: str) -> bool:
    """Whether a note is a memory with this file name, or with it as the last part of its permalink.

    name: without case and extension.
    """
    if note.project not in MEMORY_PROJECTS:
        return False
    file_name = without_suffix(posixpath.basename(note.path))
    return name in (without_case(file_name), posixpath.basename(note.permalink))


def _merged_rows(db: sqlite3.Connection, name: str, viewer: str | None) -> list[int]:
    """Return the rows of the memories into which another memory was merged.

    name: the file name of the merged memory. It ends in 8 digits of an id: `plan-0a1b2c3d`.
    viewer: the agent that asks. None is the owner. Memories hidden from the viewer are left out.
    """
    match = _ID_IN_NAME.search(name)
    if match is None:
        return []
    rows = db.execute(
        "select distinct n.row, n.scope from merged m join note n on n.row = m.note"
        " join project p on p.id = n.project"
        " where m.id >= :begin and m.id < :begin || char(0x10ffff) and p.name = :project",
        {"begin": match[1], "project": CATEGORY_PROJECT},
    )
    return [row for row, scope in rows if may_see(scope, viewer)]


def _archived_rows(
    db: sqlite3.Connection, rows: Sequence[int], target: str, project: str
) -> list[int]:
    """Return the archived notes of `rows` that were at `target` before they were archived.

    target: a path or the end of one in `project`, or a whole path after the name of its project.
    """
    if not rows:
        return []
    origins = db.execute(
        "select row, header ->> 'archived_from' from text"
        " where row in (select value from json_each(?))",
        (json.dumps(list(rows)),),
    )
    address = without_case(without_suffix(target.strip("/")))
    matches = []
    for row, origin in origins:
        # `work/team/plan.md` → the project `work`, the path `team/plan`
        former_address = without_case(without_suffix(origin or ""))
        former_project, _, former_path = former_address.partition("/")
        is_former_path = former_path == address or former_path.endswith(f"/{address}")
        is_same_project = former_project == without_case(project)
        if former_address == address or (is_former_path and is_same_project):
            matches.append(row)
    return matches
