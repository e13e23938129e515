"""What one agent did is taken back as one change, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from contract.note_tools import put, texts
from memoranda.engine import MemorySession, open_session
from memoranda.errors import CannotUndo
from memoranda.note import edit as edits
from memoranda.note.model import Draft
from movable_clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    put(root / "One.md", "one [[Two]]\r\n")
    put(root / "Two.md", "\ufefftwo")
    return root


@pytest.fixture
def memory(tmp_path: Path, root: Path, clock: Clock) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", projects={"vault": root}, clock=clock) as memory:
        yield memory


def work(agent: MemorySession) -> None:
    """Some changes of every kind."""
    agent.edit("One", edits.Append("more\n"))
    agent.write(Draft("new", project="vault", title="Three"))
    agent.move("Two", "sub/Zwei.md")
    agent.edit("Three", edits.Append("again\n"))
    agent.delete("One")


def test_all_changes_of_an_agent_go_back_byte_for_byte(memory: MemorySession, root: Path) -> None:
    before = texts(root)
    work(memory.as_caller("claude", "mcp"))
    assert texts(root) != before
    change, undone = memory.undo_changes_of("claude")
    assert len(undone) == 5
    assert texts(root) == before
    with pytest.raises(CannotUndo):
        memory.undo_changes_of("claude")
    # The undo is a change as well, and what it took back is not undone once more
    memory.undo(change.number)
    assert (root / "sub/Zwei.md").exists()


def test_changes_of_others_stay(memory: MemorySession, root: Path) -> None:
    memory.as_caller("codex", "mcp").write(Draft("x", project="vault", title="Theirs"))
    memory.as_caller("claude", "mcp").write(Draft("x", project="vault", title="Mine"))
    memory.undo_changes_of("claude")
    assert (root / "Theirs.md").exists()
    assert not (root / "Mine.md").exists()
    memory.undo()
    assert not (root / "Theirs.md").exists()


def test_where_another_changed_the_same_note_nothing_is_undone(
    memory: MemorySession, root: Path
) -> None:
    claude = memory.as_caller("claude", "mcp")
    claude.write(Draft("x", project="vault", title="First"))
    claude.edit("One", edits.Append("by claude\n"))
    file = root / "One.md"
    file.write_text("by its owner\n")
    before = texts(root)
    with pytest.raises(CannotUndo):
        memory.undo_changes_of("claude")

    assert texts(root) == before


def test_only_changes_since_then_and_of_a_project_are_undone(
    memory: MemorySession, root: Path, clock: Clock
) -> None:
    claude = memory.as_caller("claude", "mcp")
    claude.write(Draft("x", project="vault", title="Old"))
    clock.later(hours=3)
    claude.write(Draft("x", project="vault", title="Young"))
    claude.write(Draft("x", project="notes", title="Elsewhere"))
    _, undone = memory.undo_changes_of("claude", clock() - timedelta(hours=1), "vault")

    paths = [change.path for change in undone]
    assert paths == ["Young.md"]
    assert (root / "Old.md").exists()
