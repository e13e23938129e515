"""`memory doctor` says when changes are not in the history any more, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.doctor import examine
from memoranda.note.edit import Append
from memoranda.transfer.whole_home import back_up, move
from movable_clock import Clock

LEDGER = ".memoranda/ledger.db"
SECONDS = 60
NOW = datetime(2026, 5, 7, 10, tzinfo=UTC)
KILLED_AFTER_WRITING = """
import os, sys
from memoranda import Draft
from memoranda.engine import open_session

memory = open_session(sys.argv[1], watch=False)
memory.write(Draft("written before the kill", title="Late"))
os._exit(9)
"""


def losses(home: Path) -> list[str]:
    """Return what `memory doctor` says about lost changes."""
    with open_session(home, watch=False) as memory:
        return losses_in(memory)


def losses_in(memory: MemorySession) -> list[str]:
    return [finding.text for finding in examine(memory) if finding.code == "history_lost"]


def copy_ledger(home: Path, folder: Path) -> None:
    folder.mkdir()
    for path in (home / ".memoranda").glob("ledger.db*"):
        shutil.copy(path, folder)


def remove_ledger(home: Path) -> None:
    for path in (home / ".memoranda").glob("ledger.db*"):
        path.unlink()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a note that was written and a note that was edited."""
    place = tmp_path / "home"
    with open_session(place, watch=False) as memory:
        memory.write(Draft("first", title="One"))
        memory.write(Draft("second", title="Two"))
        memory.edit("notes/Two", Append("more"))
    return place


# --- changes that were lost


def test_an_older_ledger_put_back_is_named_with_the_number_of_notes(
    home: Path, tmp_path: Path
) -> None:
    copy_ledger(home, tmp_path / "older")
    with open_session(home, watch=False) as memory:
        memory.write(Draft("third", title="Three"))
        memory.edit("notes/One", Append("more"))
    remove_ledger(home)
    shutil.copytree(tmp_path / "older", home / ".memoranda", dirs_exist_ok=True)

    (text,) = losses(home)
    assert "the changes that wrote 2 notes" in text
    assert "The notes are whole" in text


def test_a_removed_ledger_is_named_while_the_next_history_grows(home: Path) -> None:
    remove_ledger(home)
    assert len(losses(home)) == 1
    with open_session(home, watch=False) as memory:
        for number in range(9):
            memory.write(Draft("since then", title=f"Later {number}"))
        (text,) = losses_in(memory)
    assert "the changes that wrote 2 notes" in text


def test_a_removed_journal_of_a_killed_process_is_named(home: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", KILLED_AFTER_WRITING, str(home)], timeout=SECONDS, env=os.environ
    )
    assert process.returncode == 9
    journal = home / f"{LEDGER}-wal"
    assert journal.stat().st_size > 0
    journal.unlink()
    (text,) = losses(home)
    assert "the changes that wrote 1 note," in text


def test_a_home_that_lost_changes_goes_on_and_the_finding_ends_with_the_last_such_note(
    home: Path,
) -> None:
    remove_ledger(home)
    with open_session(home, watch=False) as memory:
        memory.edit("notes/One", Append("x"))
        memory.undo()
        memory.edit("notes/One", Append("y"))
        memory.edit("notes/Two", Append("y"))
        assert losses_in(memory) == []


def test_an_agent_is_not_told_of_lost_changes(home: Path) -> None:
    remove_ledger(home)
    with open_session(home, watch=False) as memory:
        assert losses_in(memory.as_caller("claude", "mcp")) == []


# --- nothing was lost


def write_and_erase_a_note(memory: MemorySession) -> None:
    memory.write(Draft("secret", title="Secret"))
    memory.edit("notes/Secret", Append("more"))
    memory.erase("notes/Secret")


def copy_a_note_by_hand_and_erase_the_original(memory: MemorySession) -> None:
    memory.write(Draft("kept twice", title="Secret"))
    shutil.copy(memory.home / "notes/Secret.md", memory.home / "notes/Copy.md")
    memory.list()
    memory.erase("notes/Secret")


def move_and_restore(memory: MemorySession) -> None:
    memory.move("notes/One", "elsewhere/")
    memory.delete("notes/Two")
    memory.undo()
    memory.edit("notes/Two", Append("x"))
    memory.undo()


def write_by_hand(memory: MemorySession) -> None:
    (memory.home / "notes/hand.md").write_text("by hand\n")
    (memory.home / "notes/One.md").write_text("by hand, too\n")


def write_as_others(memory: MemorySession) -> None:
    claude = memory.as_caller("claude", "mcp")
    claude.write(Draft("of an agent", title="Agent"))
    claude.write(Draft("private", project="categories", scope="agent:claude"))
    claude.read("notes/One")


def remove_the_index(memory: MemorySession) -> None:
    memory.reindex()


HARMLESS: list[Callable[[MemorySession], None]] = [
    write_and_erase_a_note,
    copy_a_note_by_hand_and_erase_the_original,
    move_and_restore,
    write_by_hand,
    write_as_others,
    remove_the_index,
]


@pytest.mark.parametrize("act", HARMLESS)
def test_an_act_that_loses_nothing_gives_no_finding(
    home: Path, act: Callable[[MemorySession], None]
) -> None:
    with open_session(home, watch=False) as memory:
        act(memory)
        assert losses_in(memory) == []
    assert losses(home) == []


@pytest.fixture
def aging(tmp_path: Path) -> Iterator[tuple[MemorySession, Clock]]:
    """A home and its clock, which can be set."""
    clock = Clock(NOW)
    with open_session(tmp_path / "aging", clock=clock, watch=False) as memory:
        yield memory, clock


def test_a_purge_of_old_changes_gives_no_finding(aging: tuple[MemorySession, Clock]) -> None:
    memory, clock = aging
    copy_a_note_by_hand_and_erase_the_original(memory)
    memory.write(Draft("old", title="Old"))
    clock.now = NOW + timedelta(days=200)
    memory.write(Draft("new", title="New"))
    # A clock that has just jumped ahead is not believed.
    clock.now += timedelta(days=10)
    assert memory.purge_history() >= 2
    assert losses_in(memory) == []


def test_a_backup_and_a_moved_home_give_no_finding(home: Path, tmp_path: Path) -> None:
    with open_session(home, watch=False) as memory:
        back_up(memory, tmp_path / "backup")
    move(str(home), str(tmp_path / "moved"))
    shutil.copytree(home, tmp_path / "copy")
    findings = [losses(tmp_path / name) for name in ("backup", "moved", "copy")]
    assert findings == [[], [], []]


def test_a_home_whose_private_folder_was_removed_gives_no_finding(home: Path) -> None:
    shutil.rmtree(home / ".memoranda")
    assert losses(home) == []


def test_changes_of_another_process_are_not_taken_for_lost(home: Path) -> None:
    with open_session(home, watch=False) as memory:
        memory.list()
        with open_session(home, watch=False) as other_memory:
            other_memory.write(Draft("of the other", title="Other"))
            assert losses_in(memory) == []
            memory.edit("notes/Other", Append("x"))
            assert losses_in(other_memory) == []
