"""What a context adds to its hits stays within the projects that were asked for, and is told with
its dates. A broken assert means that a private or outdated text is told as current.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.upkeep import Upkeep

QUESTION = "When does the zebrafish deployment run?"


@pytest.fixture
def memory(tmp_path: Path):
    with open_session(tmp_path / "home", watch=False) as opened:
        yield opened


def superseded(memory: MemorySession, project: str = "notes", **metadata: str) -> None:
    """Write a note, and one in `project` that supersedes it."""
    old = memory.write(
        Draft("The zebrafish deployment runs at night.", project="notes", title="Zebrafish")
    )
    memory.write(
        Draft(
            "Moved to 9999.",
            project=project,
            title="Later",
            supersedes=(old.id,),
            metadata=metadata,
        )
    )


def test_a_newer_note_of_another_project_is_not_told_for_one_project(memory: MemorySession) -> None:
    memory.add_project("diary", str(memory.home.parent / "diary"))
    superseded(memory, project="diary")

    context = memory.context_for(QUESTION, projects=("notes",))

    assert "zebrafish" in str(context)
    assert "9999" not in str(context)


def test_a_newer_note_that_is_not_valid_any_more_is_told_with_its_end(
    memory: MemorySession,
) -> None:
    superseded(memory, valid_until="2020-01-01")

    context = str(memory.context_for(QUESTION))

    assert "[valid until 2020-01-01] Moved to 9999." in context


def test_a_session_that_looks_once_sees_the_notes_of_an_index_that_was_replaced(
    memory: MemorySession,
) -> None:
    memory.write(Draft("amber", project="notes", title="Amber"))
    with open_session(memory.home, watch=False) as other:
        other.look_once()
        before, _ = other.list()
        memory.engine.rebuild_index()
        after, _ = other.list()

    assert len(before) == 1
    assert len(after) == 1


def test_of_two_newer_notes_the_one_that_is_not_archived_is_told(memory: MemorySession) -> None:
    old = memory.write(Draft("The zebrafish server runs on port 8080.", category="knowledge"))
    memory.write(Draft("Moved to 9999.", category="knowledge", supersedes=(old.id,)))
    other = memory.write(Draft("Moved to 7777.", category="knowledge"))
    file = memory.home / "categories" / other.path
    header = f"---\nsupersedes: {old.id}\n"
    file.write_text(file.read_text().replace("---\n", header, 1))
    Upkeep(memory).archive(memory.memory_id(other.id), "archive", "user")

    context = str(memory.context_for(QUESTION))

    assert "9999" in context
    assert "7777" not in context
