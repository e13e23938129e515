"""Follow the links of many notes at once, for drawings of the graph and for counts beside names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from memoranda.engine.engine import verb
from memoranda.index.rows import NoteInfo

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs

Pairs = set[tuple[int, int, str]]
"""Relations between notes: (the row of the note with the link, the row of its target, the type)."""


@verb
def neighbourhood(
    memory: ReadVerbs, infos: Sequence[NoteInfo], *, depth: int = 1, limit: int = 200
) -> tuple[list[NoteInfo], Pairs]:
    """Return some notes together with the notes near them, and the relations among all of these.

    infos: the notes to begin with. They come first in the result.
    depth: how many relations may be between one of them and a note near them.
    limit: how many notes to return at most.

    Returns the notes, the nearest first, and the relations.
    """
    first_notes = infos[:limit]
    steps = memory.index.links.neighbours(
        first_notes, depth=depth, viewer=memory.agent, limit=max(0, limit - len(infos))
    )
    notes = [*first_notes, *(step.note for step in steps)]
    rows = {note.row for note in notes}
    return notes, memory.index.links.pairs(rows, memory.agent)


@verb
def relations(memory: ReadVerbs, rows: Collection[int] | None = None) -> Pairs:
    """Return the relations between notes that the caller may see.

    rows: the rows of notes. Both notes of a relation must be among them. None for all notes.
    """
    memory.engine.fresh()
    return memory.index.links.pairs(rows, memory.agent)


@verb
def count_incoming(memory: ReadVerbs, infos: Sequence[NoteInfo], most: int) -> dict[int, int]:
    """Count the relations that lead to each of these notes, by row of the note.

    most: the number at which counting ends.
    """
    memory.engine.fresh()
    return memory.index.links.count_incoming(infos, memory.agent, most)
