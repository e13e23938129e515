"""The contents of notes as the index has them, and where notes are in the home."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoranda.engine.contested import holding_now
from memoranda.engine.engine import verb
from memoranda.index.rows import NoteInfo

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs
    from memoranda.index.rows import NotePlace
    from memoranda.note.model import Note
    from memoranda.query import Query


def content_of(memory: ReadVerbs, info: NoteInfo) -> str:
    """The content of a memory the index knows: its text without frontmatter and final newline."""
    return contents(memory, [info])[0]


@verb
def contents(memory: ReadVerbs, infos: Sequence[NoteInfo]) -> list[str]:
    """The contents of several memories, in their order."""
    bodies = memory.index.notes.bodies([info.row for info in infos])
    return [bodies.get(info.row, "").removesuffix("\n") for info in infos]


def home_path(note: Note | NoteInfo) -> str:
    """Where a memory is, relative to the home."""
    return f"{note.project.removeprefix('.')}/{note.path}"


@verb
def folders_named(memory: ReadVerbs, names: Sequence[str]) -> list[tuple[str, str]]:
    """The project and the name of each folder with notes, at the top of its project, that has
    one of these names.
    """
    memory.engine.fresh()
    return memory.index.notes.folders_named(names)


@verb
def notes_repeating(memory: ReadVerbs, query: Query, pattern: re.Pattern[str]) -> list[NoteInfo]:
    """The notes that pass a query's filters and have `pattern` at least twice in their text, in
    the query's order. Raises as `list`.
    """
    memory.engine.fresh()
    repeating = memory.index.notes.rows_repeating(pattern)
    passing = memory.index.notes.rows_passing(memory.query_of(query), viewer=memory.agent)
    return memory.index.notes.in_order([row for row in passing if row in repeating])


@verb
def rows_passing(memory: ReadVerbs, query: Query) -> list[int]:
    """The rows of all notes that pass a query's filters, in its order. Raises as `list`.

    For callers that need more than the row of only a few of them.
    """
    memory.engine.fresh()
    return memory.index.notes.rows_passing(memory.query_of(query), viewer=memory.agent)


@verb
def places_passing(memory: ReadVerbs, query: Query) -> list[NotePlace]:
    """Where all notes are that pass a query's filters, in any order. Raises as `list`."""
    return memory.index.notes.places(rows_passing(memory, query))


@verb
def notes_holding(memory: ReadVerbs, texts: Sequence[str], limit: int) -> list[NoteInfo]:
    """The notes that hold one of these texts, that hold now and may be told unasked: for
    hooks, which cannot wait for a search.
    """
    memory.engine.fresh()
    rows = memory.index.notes.rows_with(texts, 4 * limit)
    infos = holding_now(memory, rows)
    infos_shown = [infos[row] for row in rows if row in infos]
    return [info for info in infos_shown if not memory.is_held_back(info)][:limit]
