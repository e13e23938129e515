"""Memories as plans see them, for tests of what a job plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from memoranda.jobs.job import MemoryState

NOW = datetime(2026, 5, 7, 10, tzinfo=UTC)


def memory(id: str, content: str = "", category: str = "project", **more: Any) -> MemoryState:
    """A memory of scope `global`, unless `more` says otherwise."""
    fields = {"id": id, "scope": "global", "content": content, "category": category, "created": NOW}
    return MemoryState(**(fields | more))


@st.composite
def collections(draw: Any, memories: st.SearchStrategy[MemoryState]) -> list[MemoryState]:
    """Some memories, of which some are linked, or were."""
    states_drawn = [
        replace(drawn_state, id=f"{n:02}")
        for n, drawn_state in enumerate(draw(st.lists(memories, max_size=14)))
    ]
    if states_drawn:
        some = st.lists(
            st.sampled_from([drawn_state.id for drawn_state in states_drawn]), max_size=2
        ).map(tuple)
    else:
        some = st.just(())
    return [
        replace(drawn_state, links=draw(some), unlinked=draw(some)) for drawn_state in states_drawn
    ]
