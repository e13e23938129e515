"""The contents of notes as the index has them, and the places of notes in the home."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from memoranda.engine.contested import holding_now
from memoranda.engine.engine import verb
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
    """The content of one memory: its text without header and final newline."""
    return contents(memory, [info])[0]


@verb
def contents(memory: ReadVerbs, infos: Sequence[NoteInfo]) -> list[str]:
    """The contents of several memories, in the order of `infos`. "" for one the index lacks."""
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
    """The path of a memory, relative to the home's folder."""
    return f"{note.project.removeprefix('.')}/{note.path}"


@verb
def folders_named(memory: ReadVerbs, names: Sequence[str]) -> list[tuple[str, str]]:
    """The folders at the top of a project that hold notes and have one of these names.

    Each is a pair of the project and the folder's name.
    """
    memory.engine.fresh()
    return memory.index.notes.folders_named(names)


@verb
def notes_repeating(memory: ReadVerbs, query: Query, pattern: re.Pattern[str]) -> list[NoteInfo]:
    """The notes that pass a query's filters and have `pattern` at least twice in their text.

    They are in the query's order. Raises the errors of `list`.
    """
    memory.engine.fresh()
    repeating = memory.index.notes.rows_repeating(pattern)
    passing = memory.index.notes.rows_passing(memory.query_of(query), viewer=memory.agent)
    return memory.index.notes.in_order([row for row in passing if row in repeating])


@verb
def rows_passing(memory: ReadVerbs, query: Query) -> list[int]:
    """The rows of all notes that pass a query's filters, in the query's order.

    A row is a note's number in the index. It serves callers that need more only of a few notes.
    Raises the errors of `list`.
    """
    memory.engine.fresh()
    return memory.index.notes.rows_passing(memory.query_of(query), viewer=memory.agent)


@verb
def places_passing(memory: ReadVerbs, *queries: Query) -> list[NotePlace]:
    """The places of all notes that pass the filters of any of the queries, in any order.

    Each note is there once. Raises the errors of `list`.
    """
    rows = set(chain.from_iterable(rows_passing(memory, query) for query in queries))
    return memory.index.notes.places(list(rows))


@verb
def notes_holding(memory: ReadVerbs, texts: Sequence[str], limit: int) -> list[NoteInfo]:
    """The notes that hold one of these texts and may be told unasked.

    Notes that no longer hold are left out. It serves hooks, which cannot wait for a search.
    """
    memory.engine.fresh()
    rows = memory.index.notes.rows_with(texts, CANDIDATES_PER_NOTE * limit)
    infos = holding_now(memory, rows)
    infos_shown = [infos[row] for row in rows if row in infos]
    return [info for info in infos_shown if not memory.is_held_back(info)][:limit]
