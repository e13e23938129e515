"""Walking the links of many notes at once: for drawings of the graph and counts beside names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from memoranda.engine.engine import verb
from memoranda.index.rows import NoteInfo

if TYPE_CHECKING:
    from memoranda.engine.reading import ReadVerbs

Pairs = set[tuple[int, int, str]]
"""Relations between notes: the row of one, the row it leads to, and the type."""


@verb
def neighbourhood(
    memory: ReadVerbs, infos: Sequence[NoteInfo], *, depth: int = 1, limit: int = 200
) -> tuple[list[NoteInfo], Pairs]:
    """The notes `infos` and the notes within `depth` relations of them, nearest first.

    limit: how many notes at most.

    Returns also the relations among these notes.
    """
    reached = memory.index.links.neighbours(
        infos[:limit], depth=depth, viewer=memory.agent, limit=max(0, limit - len(infos))
    )
    notes = [*infos[:limit], *(step.note for step in reached)]
    return notes, memory.index.links.pairs({note.row for note in notes}, memory.agent)


@verb
def relations(memory: ReadVerbs, rows: Collection[int] | None = None) -> Pairs:
    """All relations between notes that the caller sees.

    rows: only relations between notes with these rows. None for all notes.
    """
    memory.engine.fresh()
    return memory.index.links.pairs(rows, memory.agent)


@verb
def count_incoming(memory: ReadVerbs, infos: Sequence[NoteInfo], most: int) -> dict[int, int]:
    """How many relations lead to each of these notes, by the note's row.

    most: the number at which counting ends.
    """
    memory.engine.fresh()
    return memory.index.links.count_incoming(infos, memory.agent, most)
