"""`restore` follows a note through moves and renames, and gives no note the text of another one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.clock import parse_stamp
from memoranda.engine import MemorySession, open_session
from memoranda.errors import CannotUndo, NotInHistory
from memoranda.jobs.lifecycle import upgrade_named
from memoranda.note.edit import Append


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as opened:
        yield opened


@pytest.fixture
def tea(memory: MemorySession) -> MemorySession:
    """A memory with the note `notes/hot/Tea.md`, written by #1 and edited by #2."""
    memory.write(Draft("at four\n", project="notes", folder="hot", title="Tea"))
    memory.edit("notes/hot/Tea.md", Append("with milk\n"))
    return memory


def text_at(memory: MemorySession, place: str) -> str:
    return (memory.engine.layout.root / place).read_text()


def move(memory: MemorySession) -> None:
    memory.move("notes/hot/Tea.md", "cold/Tea.md")


def move_folder(memory: MemorySession) -> None:
    memory.move_folder("notes", "hot", "cold")


def rename_outside(memory: MemorySession) -> None:
    root = memory.engine.layout.root
    (root / "notes/hot").rename(root / "notes/cold")


WAYS = pytest.mark.parametrize("leave", [move, move_folder, rename_outside])
"""How the note gets from `hot/Tea.md` to `cold/Tea.md`."""


@WAYS
def test_a_note_that_moved_gets_its_text_from_before_its_last_edit(tea, leave):
    leave(tea)
    place, _ = tea.restore("notes/cold/Tea.md")
    assert place == "notes/cold/Tea.md"
    assert "milk" not in text_at(tea, place)


@WAYS
def test_a_change_from_before_the_move_is_restored_by_its_number(tea, leave):
    leave(tea)
    tea.edit("notes/cold/Tea.md", Append("and sugar\n"))
    tea.restore("notes/cold/Tea.md", change=2)
    assert text_at(tea, "notes/cold/Tea.md").endswith("at four\n")


def test_the_text_at_a_time_before_the_move_is_restored(tea):
    written = parse_stamp(tea.log(limit=0)[-1].time)
    move(tea)
    tea.edit("notes/cold/Tea.md", Append("and sugar\n"))
    tea.restore("notes/cold/Tea.md", at=written + timedelta(microseconds=1))
    assert text_at(tea, "notes/cold/Tea.md").endswith("at four\n")


def test_a_memory_that_was_sorted_gets_its_text_from_before_its_last_edit(memory):
    note = memory.write(Draft("Tea at four.", project="categories", category="inbox"))
    memory.edit(note.id, Append(" With milk."))
    upgrade_named(memory, [note.id], "skills")
    place, _ = memory.restore(note.id)
    assert place.startswith("categories/skills/")
    assert "milk" not in text_at(memory, place)


def test_what_was_restored_after_a_move_is_not_restored_again(tea):
    move(tea)
    tea.restore("notes/cold/Tea.md")
    with pytest.raises(CannotUndo):
        tea.restore("notes/cold/Tea.md")


@WAYS
def test_a_note_gets_no_text_of_one_that_left_its_place(tea, leave):
    leave(tea)
    tea.write(Draft("another note\n", project="notes", folder="hot", title="Tea"))
    with pytest.raises(NotInHistory):
        tea.restore("notes/hot/Tea.md")


def test_a_note_gets_no_text_of_one_that_left_its_place_by_a_time_either(tea):
    written = parse_stamp(tea.log(limit=0)[-1].time)
    move(tea)
    tea.write(Draft("another note\n", project="notes", folder="hot", title="Tea"))
    with pytest.raises(NotInHistory):
        tea.restore("notes/hot/Tea.md", at=written)


def test_a_text_that_a_note_left_at_its_old_place_is_restored_by_the_number_of_its_change(tea):
    move(tea)
    tea.write(Draft("another note\n", project="notes", folder="hot", title="Tea"))
    tea.restore("notes/hot/Tea.md", change=2)
    assert text_at(tea, "notes/hot/Tea.md").endswith("at four\n")


def test_a_moved_note_gets_no_text_of_a_note_that_was_at_its_old_place_before(tea):
    tea.delete("notes/hot/Tea.md")
    tea.write(Draft("another note\n", project="notes", folder="hot", title="Tea"))
    move(tea)
    with pytest.raises(NotInHistory):
        tea.restore("notes/cold/Tea.md")


def test_a_note_whose_deletion_was_undone_before_its_move_keeps_its_older_texts(tea):
    tea.delete("notes/hot/Tea.md")
    tea.undo()
    move(tea)
    tea.restore("notes/cold/Tea.md")
    assert text_at(tea, "notes/cold/Tea.md").endswith("at four\n")


def test_a_note_that_came_back_to_its_place_gets_its_older_text(tea):
    move(tea)
    tea.move("notes/cold/Tea.md", "hot/Tea.md")
    tea.restore("notes/hot/Tea.md")
    assert text_at(tea, "notes/hot/Tea.md").endswith("at four\n")


def test_a_note_that_another_program_deleted_gets_its_text_from_before_its_last_change(tea):
    (tea.engine.layout.root / "notes/hot/Tea.md").unlink()
    tea.restore("notes/hot/Tea.md")
    assert text_at(tea, "notes/hot/Tea.md").endswith("at four\n")


def test_the_last_text_of_a_note_that_another_program_deleted_is_said_to_be_lost(tmp_path):
    home = tmp_path / "home"
    with open_session(home, watch=False) as memory:
        memory.write(Draft("at four\n", project="notes", title="Tea"))
    (home / "notes" / "Tea.md").unlink()
    with open_session(home, watch=False) as memory:
        (written,) = memory.revisions(1)
        assert written.is_text_lost
