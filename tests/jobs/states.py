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
    found = [
        replace(each, id=f"{n:02}") for n, each in enumerate(draw(st.lists(memories, max_size=14)))
    ]
    if found:
        some = st.lists(st.sampled_from([each.id for each in found]), max_size=2).map(tuple)
    else:
        some = st.just(())
    return [replace(each, links=draw(some), unlinked=draw(some)) for each in found]
