"""A note that is not archived is not brought back: it would be moved out of its project."""

from __future__ import annotations

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession
from memoranda.errors import InvalidInput


@pytest.mark.parametrize(
    "draft", [Draft("tea", project="notes", title="Plan"), Draft("likes tea", category="skills")]
)
def test_a_note_that_is_not_archived_is_refused(memory: MemorySession, draft: Draft) -> None:
    note = memory.write(draft)
    with pytest.raises(InvalidInput, match="is not archived"):
        memory.bring_back((note.project, note.path))
    assert memory.find((note.project, note.path)).id == note.id
