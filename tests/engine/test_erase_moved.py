"""What `erase` removes of a note that moved, and of one whose place another note has now.

A move that changes links, and the archive, write a new file: their changes have no step `move`.
"""

from __future__ import annotations

import pytest

from memoranda.engine import MemorySession
from memoranda.engine.history.authorship import made_by
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import NotInHistory
from memoranda.jobs.lifecycle import archive_named
from memoranda.note.edit import StrReplace
from memoranda.note.model import Draft

OLDER_WORD = "zq07919vault"
PLACE = "notes/deep/Plan.md"
# The link leads elsewhere from another folder, so a move writes a new file.
TEXT = f"The word is {OLDER_WORD}. [Other](Other.md)\n"


def write(memory: MemorySession, place: str, text: str) -> None:
    folder, _, name = place.removeprefix("notes/").rpartition("/")
    title = name.removesuffix(".md")
    memory.write(Draft(text, project="notes", title=title, folder=folder))


def make_plan(memory: MemorySession) -> None:
    """Write a note, and take the word out of it again. Only the history has the word now."""
    write(memory, "notes/deep/Other.md", "other\n")
    write(memory, PLACE, TEXT)
    memory.edit(PLACE, StrReplace(OLDER_WORD, "no more"))


def leave_by_move(memory: MemorySession) -> str:
    memory.move(PLACE, "top/Planned.md")
    return "notes/top/Planned.md"


def leave_for_archive(memory: MemorySession) -> str:
    (archived,) = archive_named(memory, [memory.find(PLACE)])
    return f"{archived.project}/{archived.path}"


LEAVING = {"move": leave_by_move, "archive": leave_for_archive}


def holds_word(memory: MemorySession) -> bool:
    """Whether the history has a text with the word."""
    texts = memory.engine.ledger.history.texts_with_data()
    return any(OLDER_WORD.encode() in data for _, data in texts)


@pytest.mark.parametrize("way", LEAVING)
def test_a_note_that_left_its_place_is_erased_with_its_texts_from_there(
    memory: MemorySession, way: str
) -> None:
    make_plan(memory)
    new_place = LEAVING[way](memory)
    assert holds_word(memory)
    erased = memory.erase(new_place)

    assert erased.remains == ()
    assert not holds_word(memory)
    # Of the other note, nothing is lost.
    changes = memory.log(limit=0)
    verbs = [change.verb for change in changes]
    assert verbs == ["erase", "write"]


@pytest.mark.parametrize("way", LEAVING)
def test_a_note_at_a_place_that_another_one_left_is_erased_without_the_past_of_that_one(
    memory: MemorySession, way: str
) -> None:
    make_plan(memory)
    new_place = LEAVING[way](memory)
    (leaving,) = memory.log(limit=1)
    write(memory, PLACE, "Another plan.\n")
    memory.erase(PLACE)

    assert holds_word(memory)
    assert memory.find(tuple(new_place.split("/", 1))).title in ("Plan", "Planned")
    # What the first note went through can still be undone.
    memory.undo(leaving.number)
    assert memory.read(PLACE).content.startswith("The word is no more.")


def test_a_note_that_was_deleted_at_the_same_place_is_erased_too(memory: MemorySession) -> None:
    make_plan(memory)
    memory.delete(PLACE)
    write(memory, PLACE, "Another plan.\n")
    memory.erase(PLACE)

    assert not holds_word(memory)
    with pytest.raises(NotInHistory):
        memory.restore(PLACE)


def test_an_agents_note_that_was_renamed_with_its_links_is_still_its_note(
    memory: MemorySession,
) -> None:
    make_plan(memory.as_caller("ann", "mcp"))
    leave_by_move(memory)
    places = [place.path for place in made_by(memory.engine, "ann")]

    assert places == ["deep/Other.md", "top/Planned.md"]


def test_a_merged_memory_is_not_taken_for_one_that_moved(memory: MemorySession) -> None:
    first = memory.write(Draft("The bell rings at six.", category="skills"))
    second = memory.write(Draft("The gate opens at five.", category="habits"))
    Upkeep(memory).merge(memory.memory_id(first.id), memory.memory_id(second.id))
    (change,) = [change for change in memory.log(limit=0) if change.verb == "merge"]

    assert change.moves_by_rewriting() == {}
