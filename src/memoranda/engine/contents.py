"""Read from the index what notes contain, and which notes pass filters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoranda.engine.engine import verb
from memoranda.engine.telling.contested import valid_notes
from memoranda.errors import MemorandaError
from memoranda.index.glance import CANDIDATES_PER_NOTE
from memoranda.index.rows import NoteInfo
from memoranda.note.project_access import is_in_force

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.index.rows import NotePlace
    from memoranda.note.model import Note
    from memoranda.query import Query


def content_of(memory: ReadVerbs, info: NoteInfo) -> str:
    """Return the content of a memory: its text without the header and the last line break."""
    return contents(memory, [info])[0]


@verb
def contents(memory: ReadVerbs, infos: Sequence[NoteInfo]) -> list[str]:
    """Return the contents of several memories, in the order of `infos`.

    The content is the text without the header and the last line break. It is "" for a memory that
    the index does not have.
    """
    bodies = memory.index.notes.bodies([info.row for info in infos])
    return [bodies.get(info.row, "").removesuffix("\n") for info in infos]


@verb
def is_as_indexed(memory: ReadVerbs, info: NoteInfo) -> bool:
    """Whether the file of a note and the rights to it are as the index has them.

    It serves callers that opened the memory with `follows=False`.
    """
    engine = memory.engine
    if engine.follows_disk:
        return True
    scope = engine.freshness.scopes.get(info.project, "")
    if not is_in_force(memory.index.notes.scopes(info.project), scope):
        return False
    try:
        source = engine.source(info.project)
        return source.is_note(info.path) and engine.file_of(info).etag == info.etag
    except MemorandaError:
        return False


def home_path(note: Note | NoteInfo) -> str:
    """Return the path of a memory relative to the folder of the home: `preferences/tea-0a1b2c3d.md`."""
    return f"{note.project.removeprefix('.')}/{note.path}"


@verb
def folders_named(memory: ReadVerbs, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the folders with notes, directly in the folder of a project, that have these names.

    Returns (project, name of the folder) for each.
    """
    memory.engine.fresh()
    return memory.index.notes.folders_named(names)


@verb
def notes_repeating(memory: ReadVerbs, query: Query, pattern: re.Pattern[str]) -> list[NoteInfo]:
    """Return the notes that pass the filters of a query and match `pattern` at least twice.

    They are in the order of the query. Raises the errors of `list`.

    query: the filters.
    pattern: is searched for in the text of each note.
    """
    memory.engine.fresh()
    repeating = memory.index.notes.rows_repeating(pattern)
    passing = memory.index.notes.rows_passing(memory.query_of(query), viewer=memory.agent)
    return memory.index.notes.in_order([row for row in passing if row in repeating])


@verb
def rows_passing(memory: ReadVerbs, query: Query) -> list[int]:
    """Return the index rows of all notes that pass a query, in the query's order.

    It is faster than `list`, for callers that need the rest of only a few notes. Raises the errors
    of `list`.
    """
    memory.engine.fresh()
    return memory.index.notes.rows_passing(memory.query_of(query), viewer=memory.agent)


@verb
def places_passing(memory: ReadVerbs, *queries: Query) -> list[NotePlace]:
    """Return the places of all notes that pass at least one of these queries.

    Each note comes once. The order is not defined. Raises the errors of `list`.
    """
    rows: set[int] = set()
    for query in queries:
        rows.update(rows_passing(memory, query))
    return memory.index.notes.places(list(rows))


@verb
def notes_holding(memory: ReadVerbs, texts: Sequence[str], limit: int) -> list[NoteInfo]:
    """Return notes that contain at least one of these texts, for an agent that did not ask.

    It is for hooks, which cannot wait for a search. Notes that are no longer valid or that are held
    back (`is_held_back`) are left out.

    texts: the texts to look for.
    limit: how many notes to return at most.
    """
    memory.engine.fresh()
    # More notes are read than are needed, because some may be left out below.
    rows = memory.index.notes.rows_with(texts, CANDIDATES_PER_NOTE * limit)
    infos_by_row = valid_notes(memory, rows)
    infos = [infos_by_row[row] for row in rows if row in infos_by_row]
    return [info for info in infos if not memory.is_held_back(info)][:limit]
