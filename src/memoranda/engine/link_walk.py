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
    """The notes `infos` and those within `depth` relations of them, `limit` in all, nearest
    first; and the relations among them, as (row, row it leads to, type)."""
    reached = memory.index.links.neighbours(
        infos[:limit], depth=depth, viewer=memory.agent, limit=max(0, limit - len(infos))
    )
    notes = [*infos[:limit], *(step.note for step in reached)]
    return notes, memory.index.links.pairs({note.row for note in notes}, memory.agent)


@verb
def relations(memory: ReadVerbs, rows: Collection[int] | None = None) -> Pairs:
    """All relations between notes the caller sees, or between these alone, as (row, row it
    leads to, type).
    """
    memory.engine.fresh()
    return memory.index.links.pairs(rows, memory.agent)


@verb
def count_incoming(memory: ReadVerbs, infos: Sequence[NoteInfo], most: int) -> dict[int, int]:
    """By row, how many relations lead to each of these notes, counted up to `most`."""
    memory.engine.fresh()
    return memory.index.links.count_incoming(infos, memory.agent, most)
