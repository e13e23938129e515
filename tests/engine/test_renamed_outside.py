"""The history of a note after another program renamed its file.

The ledger has no change for such a rename. The note is recognized by its text or its id, and only
where no other note could be meant (`former_places`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda import Draft, faces
from memoranda.engine import MemorySession, open_session
from memoranda.engine.history import erase
from memoranda.engine.history.former_places import history_through_moves
from memoranda.engine.history.whereabouts import where_now
from memoranda.jobs.lifecycle import upgrade_named
from memoranda.note.edit import Append, Rewrite, StrReplace


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as opened:
        yield opened


@pytest.fixture
def tea(memory: MemorySession) -> MemorySession:
    """A memory with the note `notes/Tea.md`, written by #1 and edited by #2."""
    memory.write(Draft("at four\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Append("with milk\n"))
    return memory


def rename(memory: MemorySession, old: str, new: str) -> None:
    """Rename a file as another program does. The paths begin with a project."""
    root = memory.engine.layout.root
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    (root / old).rename(root / new)


def verbs(memory: MemorySession, ref: str) -> list[str]:
    return [change.verb for change in memory.log(ref, limit=0)]


def test_the_log_of_a_renamed_note_has_its_changes_before_the_rename(tea: MemorySession) -> None:
    rename(tea, "notes/Tea.md", "notes/hot/Drink.md")
    assert verbs(tea, "notes/hot/Drink.md") == ["edit", "write"]


def test_an_edit_after_the_rename_is_followed_back_past_it(tea: MemorySession) -> None:
    rename(tea, "notes/Tea.md", "notes/Drink.md")
    tea.edit("notes/Drink.md", Append("and sugar\n"))
    assert verbs(tea, "notes/Drink.md") == ["edit", "edit", "write"]


def test_two_renames_with_an_edit_between_are_followed(tea: MemorySession) -> None:
    rename(tea, "notes/Tea.md", "notes/Drink.md")
    tea.edit("notes/Drink.md", Append("and sugar\n"))
    rename(tea, "notes/Drink.md", "notes/Cup.md")
    assert verbs(tea, "notes/Cup.md") == ["edit", "edit", "write"]


def test_a_rename_after_a_move_of_ours_is_followed_through_both(tea: MemorySession) -> None:
    tea.move("notes/Tea.md", "hot/Tea.md")
    rename(tea, "notes/hot/Tea.md", "notes/Drink.md")
    assert verbs(tea, "notes/Drink.md") == ["move", "edit", "write"]


def test_a_rename_after_a_move_of_the_folder_is_followed_through_both(
    memory: MemorySession,
) -> None:
    memory.write(Draft("at four\n", project="notes", folder="hot", title="Tea"))
    memory.move_folder("notes", "hot", "warm")
    rename(memory, "notes/warm/Tea.md", "notes/Drink.md")
    assert verbs(memory, "notes/Drink.md") == ["move", "write"]


def test_a_memory_renamed_and_edited_at_once_is_followed_by_its_id(memory: MemorySession) -> None:
    note = memory.write(Draft("Bob is a colleague", project="categories", category="people"))
    rename(memory, f"categories/{note.path}", "categories/people/bob.md")
    file = memory.engine.layout.root / "categories/people/bob.md"
    file.write_text(file.read_text() + "of Ann\n")
    assert verbs(memory, note.id) == ["write"]


def test_a_memory_sorted_and_then_renamed_has_its_whole_log(memory: MemorySession) -> None:
    note = memory.write(Draft("Bob is a colleague", project="categories"))
    upgrade_named(memory, [note.id], "people")
    rename(memory, f"categories/{memory.memory_id(note.id).path}", "categories/people/bob.md")
    assert verbs(memory, note.id) == ["upgrade", "write"]


def test_a_copy_does_not_take_the_history_of_a_note_that_is_still_there(tea: MemorySession) -> None:
    root = tea.engine.layout.root
    (root / "notes/Copy.md").write_bytes((root / "notes/Tea.md").read_bytes())
    assert verbs(tea, "notes/Copy.md") == []


def test_a_copy_of_a_deleted_note_does_not_take_its_history(tea: MemorySession) -> None:
    notes = tea.engine.layout.root / "notes"
    text = (notes / "Tea.md").read_bytes()
    tea.delete("notes/Tea.md")
    copy = notes / "Copy.md"
    copy.write_bytes(text)
    assert verbs(tea, "notes/Copy.md") == []


def test_a_rename_is_not_guessed_where_two_notes_with_its_text_are_gone(
    memory: MemorySession,
) -> None:
    registry = faces.registry(["all"], memory.settings)
    for name in ("one", "two"):
        arguments = {"command": "create", "path": f"/memories/{name}.md", "file_text": "same\n"}
        registry.call(memory.as_caller("alice", "mcp"), "memory", arguments)
    folder = memory.engine.layout.root / "memories"
    (folder / "one.md").unlink()
    (folder / "two.md").rename(folder / "kept.md")
    assert verbs(memory, "memories/kept.md") == []


def test_a_new_note_at_the_old_path_does_not_get_the_history_of_the_renamed_one(
    tea: MemorySession,
) -> None:
    rename(tea, "notes/Tea.md", "notes/Drink.md")
    tea.write(Draft("another\n", project="notes", title="Tea"))
    steps = history_through_moves(tea, "notes", "Drink.md")
    numbers = [step.change.number for step in steps]
    assert numbers == [2, 1]


def test_the_log_of_a_path_has_the_changes_of_every_note_that_was_there(tea: MemorySession) -> None:
    tea.delete("notes/Tea.md")
    tea.write(Draft("coffee\n", project="notes", title="Coffee"))
    tea.move("notes/Coffee.md", "Tea.md")
    assert verbs(tea, "notes/Tea.md") == ["move", "write", "delete", "edit", "write"]


def test_a_renamed_note_is_found_from_its_old_place(tea: MemorySession) -> None:
    rename(tea, "notes/Tea.md", "notes/hot/Drink.md")
    tea.sync()
    info = where_now(tea, "notes", "Tea.md")
    assert info is not None
    assert info.path == "hot/Drink.md"


def test_a_note_removed_by_another_program_is_nowhere_although_a_copy_was_made_before(
    tea: MemorySession,
) -> None:
    tea.write(Draft("at four\nwith milk\n", project="notes", title="Other"))
    (tea.engine.layout.root / "notes/Tea.md").unlink()
    tea.sync()
    assert where_now(tea, "notes", "Tea.md") is None


def test_another_agent_is_not_told_the_private_past_of_a_renamed_note(tea: MemorySession) -> None:
    root = tea.engine.layout.root
    (root / "notes/Tea.md").write_text("---\nscope: agent:bob\n---\nwombat\n")
    tea.as_caller("bob", "mcp").edit("notes/Tea.md", Append("more\n"))
    (root / "notes/Tea.md").rename(root / "notes/Drink.md")
    text = (root / "notes/Drink.md").read_text()
    (root / "notes/Drink.md").write_text(text.replace("scope: agent:bob\n", "title: Open\n"))
    alice = tea.as_caller("alice", "mcp")
    assert alice.log("notes/Drink.md", limit=0) == []


def test_a_rename_to_a_place_where_a_note_was_deleted_is_followed(tea: MemorySession) -> None:
    tea.write(Draft("cold\n", project="notes", title="Drink"))
    tea.delete("notes/Drink.md")
    rename(tea, "notes/Tea.md", "notes/Drink.md")
    tea.edit("notes/Drink.md", Append("and sugar\n"))
    steps = history_through_moves(tea, "notes", "Drink.md")
    assert [step.change.number for step in steps] == [5, 2, 1]


def history_files(memory: MemorySession) -> bytes:
    """All bytes that memoranda keeps of the past."""
    private = memory.engine.layout.private
    return b"".join(path.read_bytes() for path in private.rglob("*") if path.is_file())


def test_erasing_a_renamed_note_erases_its_texts_before_the_rename(memory: MemorySession) -> None:
    memory.write(Draft("wombat-4471\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Rewrite("dull\n"))
    memory.sync()
    rename(memory, "notes/Tea.md", "notes/Drink.md")
    assert b"wombat-4471" in history_files(memory)
    memory.erase("notes/Drink.md")
    assert b"wombat-4471" not in history_files(memory)


def test_erasing_a_note_renamed_twice_erases_all_its_texts(memory: MemorySession) -> None:
    memory.write(Draft("wombat-4471\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Rewrite("wombat-4472\n"))
    rename(memory, "notes/Tea.md", "notes/Drink.md")
    memory.edit("notes/Drink.md", Rewrite("wombat-4473\n"))
    memory.move("notes/Drink.md", "hot/Drink.md")
    memory.edit("notes/hot/Drink.md", Rewrite("dull\n"))
    rename(memory, "notes/hot/Drink.md", "notes/Cup.md")
    memory.erase("notes/Cup.md")
    assert b"wombat" not in history_files(memory)


def test_erasing_a_renamed_note_leaves_the_past_of_a_later_note_at_its_old_place(
    memory: MemorySession,
) -> None:
    memory.write(Draft("wombat-4471\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Rewrite("dull\n"))
    rename(memory, "notes/Tea.md", "notes/Drink.md")
    memory.write(Draft("quokka-1\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Rewrite("quokka-2\n"))
    memory.erase("notes/Drink.md")
    assert verbs(memory, "notes/Tea.md") == ["edit", "write"]
    data = history_files(memory)
    assert b"quokka-1" in data
    assert b"wombat-4471" not in data


def test_erasing_a_later_note_leaves_the_past_of_the_note_renamed_from_its_place(
    memory: MemorySession,
) -> None:
    memory.write(Draft("quokka-1\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Rewrite("quokka-2\n"))
    rename(memory, "notes/Tea.md", "notes/Drink.md")
    memory.write(Draft("wombat-4471\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Rewrite("dull\n"))
    memory.erase("notes/Tea.md")
    assert verbs(memory, "notes/Drink.md") == ["edit", "write"]
    data = history_files(memory)
    assert b"quokka-1" in data
    assert b"wombat-4471" not in data


def numbers(memory: MemorySession, path: str) -> list[int]:
    """The numbers of the changes of a note, the newest first."""
    steps = history_through_moves(memory, "notes", path)
    return [step.change.number for step in steps]


def test_a_note_renamed_moved_and_renamed_again_with_one_text_is_followed(
    memory: MemorySession,
) -> None:
    memory.write(Draft("at four\n", project="notes", title="Tea"))
    rename(memory, "notes/Tea.md", "notes/Drink.md")
    memory.move("notes/Drink.md", "hot/Drink.md")
    rename(memory, "notes/hot/Drink.md", "notes/Cup.md")
    assert numbers(memory, "Cup.md") == [2, 1]


def test_a_note_renamed_back_to_its_first_place_is_followed(tea: MemorySession) -> None:
    rename(tea, "notes/Tea.md", "notes/Drink.md")
    tea.edit("notes/Drink.md", Append("and sugar\n"))
    rename(tea, "notes/Drink.md", "notes/Tea.md")
    assert numbers(tea, "Tea.md") == [3, 2, 1]


def test_a_note_renamed_to_the_place_of_one_renamed_away_has_its_own_history(
    tea: MemorySession,
) -> None:
    tea.write(Draft("cold\n", project="notes", title="Milk"))
    rename(tea, "notes/Tea.md", "notes/Drink.md")
    rename(tea, "notes/Milk.md", "notes/Tea.md")
    assert numbers(tea, "Tea.md") == [3]
    assert numbers(tea, "Drink.md") == [2, 1]


def test_many_renames_between_moves_take_no_time_that_grows_without_bound(
    memory: MemorySession,
) -> None:
    """A chain of 30 would take a billion looks if each were followed for all that come after it."""
    memory.write(Draft("at four\n", project="notes", title="n0"))
    for number in range(30):
        rename(memory, f"notes/n{number}.md", f"notes/r{number}.md")
        memory.move(f"notes/r{number}.md", f"n{number + 1}.md")
    assert memory.log("notes/n30.md", limit=0)[0].verb == "move"


def swap(memory: MemorySession, one: str, other: str) -> None:
    """Swap the names of two files, as another program does."""
    rename(memory, one, "notes/Between.md")
    rename(memory, other, one)
    rename(memory, "notes/Between.md", other)


@pytest.fixture
def pair(memory: MemorySession) -> MemorySession:
    """A memory with `notes/Tea.md` (#1 and #2) and `notes/Cup.md` (#3 and #4)."""
    for title, word in (("Tea", "wombat"), ("Cup", "quokka")):
        memory.write(Draft(f"{word}-1\n", project="notes", title=title))
        memory.edit(f"notes/{title}.md", Rewrite(f"{word}-2\n"))
    memory.sync()
    return memory


def test_a_rename_over_another_file_takes_the_history_along(pair: MemorySession) -> None:
    rename(pair, "notes/Tea.md", "notes/Cup.md")
    pair.edit("notes/Cup.md", Append("dull\n"))
    assert numbers(pair, "Cup.md") == [5, 2, 1]


def test_a_copy_over_another_file_takes_no_history_along(pair: MemorySession) -> None:
    root = pair.engine.layout.root
    (root / "notes/Cup.md").write_bytes((root / "notes/Tea.md").read_bytes())
    assert numbers(pair, "Cup.md") == [4, 3]
    assert numbers(pair, "Tea.md") == [2, 1]


def test_swapped_names_swap_the_histories(pair: MemorySession) -> None:
    swap(pair, "notes/Tea.md", "notes/Cup.md")
    pair.edit("notes/Tea.md", Append("dull\n"))
    assert numbers(pair, "Tea.md") == [5, 4, 3]
    assert numbers(pair, "Cup.md") == [2, 1]


def test_an_earlier_text_brought_back_by_hand_keeps_the_history(pair: MemorySession) -> None:
    file = pair.engine.layout.root / "notes/Tea.md"
    text = file.read_text()
    pair.edit("notes/Tea.md", Rewrite("wombat-3\n"))
    file.write_text(text)
    assert numbers(pair, "Tea.md") == [5, 2, 1]


def test_erasing_a_note_renamed_over_another_file_erases_its_texts(pair: MemorySession) -> None:
    rename(pair, "notes/Tea.md", "notes/Cup.md")
    pair.erase("notes/Cup.md")
    assert b"wombat" not in history_files(pair)


def test_erasing_a_note_with_a_swapped_name_leaves_the_past_of_the_other(
    pair: MemorySession,
) -> None:
    swap(pair, "notes/Tea.md", "notes/Cup.md")
    pair.erase("notes/Cup.md")
    data = history_files(pair)
    assert b"wombat" not in data
    assert b"quokka-1" in data


def test_erasing_a_note_renamed_there_and_back_erases_all_its_texts(memory: MemorySession) -> None:
    memory.write(Draft("wombat-1\n", project="notes", title="Tea"))
    memory.edit("notes/Tea.md", Rewrite("wombat-2\n"))
    rename(memory, "notes/Tea.md", "notes/Cup.md")
    memory.edit("notes/Cup.md", Rewrite("wombat-3\n"))
    rename(memory, "notes/Cup.md", "notes/Tea.md")
    memory.edit("notes/Tea.md", Rewrite("dull\n"))
    memory.erase("notes/Tea.md")
    assert b"wombat" not in history_files(memory)


@pytest.mark.parametrize("is_swapped", [True, False])
def test_the_past_of_a_note_made_private_under_the_name_of_another_is_hidden(
    pair: MemorySession, is_swapped: bool
) -> None:
    if is_swapped:
        swap(pair, "notes/Tea.md", "notes/Cup.md")
    else:
        rename(pair, "notes/Tea.md", "notes/Cup.md")
    file = pair.engine.layout.root / "notes/Cup.md"
    file.write_text("---\nscope: agent:bob\npermalink: notes/tea\n---\nnow private\n")
    pair.sync()
    alice = pair.as_caller("alice", "mcp")
    seen = [change.number for change in alice.log(limit=0)]
    assert not {1, 2}.intersection(seen)


def test_a_note_that_came_back_after_another_was_at_its_place_has_its_own_history(
    pair: MemorySession,
) -> None:
    rename(pair, "notes/Tea.md", "notes/Spare.md")
    pair.write(Draft("emu-1\n", project="notes", title="Tea"))
    rename(pair, "notes/Tea.md", "notes/Emu.md")
    rename(pair, "notes/Spare.md", "notes/Tea.md")
    assert numbers(pair, "Tea.md") == [2, 1]
    pair.erase("notes/Emu.md")
    assert numbers(pair, "Tea.md") == [2, 1]


def test_a_copy_of_a_note_whose_folder_was_moved_does_not_take_its_history(
    memory: MemorySession,
) -> None:
    memory.write(Draft("at four\n", project="notes", folder="hot", title="Tea"))
    memory.move_folder("notes", "hot", "warm")
    notes = memory.engine.layout.root / "notes"
    copy = notes / "Copy.md"
    copy.write_bytes((notes / "warm/Tea.md").read_bytes())
    assert numbers(memory, "Copy.md") == []
    assert numbers(memory, "warm/Tea.md") == [2, 1]


def test_a_memory_renamed_to_a_name_without_its_id_is_erased_with_its_older_texts(
    memory: MemorySession,
) -> None:
    note = memory.write(Draft("wombat-4471", project="categories", category="people"))
    memory.edit(note.id, StrReplace("wombat-4471", "dull"))
    rename(memory, f"categories/{note.path}", "categories/people/bob.md")
    memory.erase(note.id)
    assert b"wombat-4471" not in history_files(memory)


def test_notes_with_an_unbroken_history_are_erased_without_following_each(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To follow a note reads whole changes, and all notes of an erasure are in one change."""
    for number in range(3):
        memory.write(Draft("text\n", project="notes", title=f"n{number}"))
        memory.edit(f"notes/n{number}.md", Append("more\n"))
    followed = []
    monkeypatch.setattr(erase, "renames_by_others", lambda *place: followed.append(place) or [])
    memory.erase("notes/n0.md", "notes/n1.md", "notes/n2.md")
    assert followed == []
