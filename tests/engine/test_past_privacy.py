"""A note that became private is private in its past: another agent is shown no older text of it, no
path, no number, whatever made it private and whatever is asked (docs/trust.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.engine.history.refusals import refused_undos
from memoranda.errors import CannotUndo, MemorandaError
from memoranda.note.model import Draft

SECRET = "wombat"
PRIVATE = "---\nscope: agent:bob\n---\nnow private\n"
PLACE = "notes/plans/trip.md"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[MemorySession]:
    with open_session(tmp_path / "home", watch=False) as opened:
        opened.write(Draft(f"{SECRET} first\n", project="notes", folder="plans", title="trip"))
        tool(opened, "carol", "edit_note", identifier=PLACE, operation="append", content="more\n")
        opened.write(Draft("beside it\n", project="notes", folder="plans", title="other"))
        yield opened


def tool(memory: MemorySession, agent: str, name: str, **arguments: Any) -> Any:
    """A call of a tool by an agent; it must succeed."""
    from memoranda import faces

    caller = memory.as_caller(agent, "mcp", client="test 1")
    reply = faces.registry(["all"], memory.settings).call(caller, name, arguments)
    assert not reply.is_error, reply.text
    return reply


def file_of(memory: MemorySession, place: str) -> Path:
    return memory.engine.layout.root / place


def by_tool(memory: MemorySession) -> str:
    tool(
        memory,
        "bob",
        "write_note",
        title="trip",
        content=PRIVATE,
        directory="plans",
        overwrite=True,
    )
    return PLACE


def by_hand(memory: MemorySession) -> str:
    file_of(memory, PLACE).write_text(PRIVATE)
    return PLACE


def then_deleted(memory: MemorySession) -> str:
    by_tool(memory)
    tool(memory, "bob", "delete_note", identifier=PLACE)
    return PLACE


def by_hand_then_deleted(memory: MemorySession) -> str:
    by_hand(memory)
    memory.delete(PLACE)
    return PLACE


def after_a_move(memory: MemorySession) -> str:
    memory.move(PLACE, "archive/journey.md")
    file_of(memory, "notes/archive/journey.md").write_text(PRIVATE)
    return "notes/archive/journey.md"


def after_a_move_of_its_folder(memory: MemorySession) -> str:
    memory.move_folder("notes", "plans", "done")
    file_of(memory, "notes/done/trip.md").write_text(PRIVATE)
    return "notes/done/trip.md"


def after_deletion_and_undo(memory: MemorySession) -> str:
    memory.delete(PLACE)
    memory.undo()
    return by_hand(memory)


def after_deletion_and_restore(memory: MemorySession) -> str:
    memory.delete(PLACE)
    memory.restore(PLACE)
    return by_hand(memory)


def and_public_again(memory: MemorySession) -> str:
    by_tool(memory)
    tool(
        memory,
        "bob",
        "write_note",
        title="trip",
        content="open\n",
        directory="plans",
        overwrite=True,
    )
    return PLACE


def renamed_outside(memory: MemorySession) -> str:
    """Rename the note as another program does, and let the index see it."""
    file_of(memory, PLACE).rename(file_of(memory, "notes/journey.md"))
    memory.sync()
    return "notes/journey.md"


def make_private_by_hand(file: Path) -> None:
    """Add a scope to the header of a note, whose permalink is still the one of its former path."""
    text = file.read_text()
    file.write_text(text.replace("type: note\n", "type: note\nscope: agent:bob\n"))


def after_a_rename_outside(memory: MemorySession) -> str:
    place = renamed_outside(memory)
    make_private_by_hand(file_of(memory, place))
    return place


def after_a_rename_outside_by_tool(memory: MemorySession) -> str:
    place = renamed_outside(memory)
    tool(
        memory, "bob", "write_note", title="journey", content=PRIVATE, directory="", overwrite=True
    )
    return place


def after_a_rename_outside_and_a_move(memory: MemorySession) -> str:
    memory.move(renamed_outside(memory), "far/away.md")
    file_of(memory, "notes/far/away.md").write_text(PRIVATE)
    return "notes/far/away.md"


def after_a_rename_outside_then_deleted(memory: MemorySession) -> str:
    place = after_a_rename_outside_by_tool(memory)
    tool(memory, "bob", "delete_note", identifier=place)
    return place


def after_a_rename_of_its_folder_outside(memory: MemorySession) -> str:
    file_of(memory, "notes/plans").rename(file_of(memory, "notes/done"))
    file_of(memory, "notes/plans").mkdir()
    file_of(memory, "notes/done/other.md").rename(file_of(memory, "notes/plans/other.md"))
    make_private_by_hand(file_of(memory, "notes/done/trip.md"))
    return "notes/done/trip.md"


def after_a_rename_outside_and_a_move_of_its_folder(memory: MemorySession) -> str:
    place = renamed_outside(memory)
    make_private_by_hand(file_of(memory, place))
    memory.move_folder("notes", "plans", "done")
    return place


WAYS = [
    by_tool,
    by_hand,
    then_deleted,
    by_hand_then_deleted,
    after_a_move,
    after_a_move_of_its_folder,
    after_deletion_and_undo,
    after_deletion_and_restore,
    after_a_rename_outside,
    after_a_rename_outside_by_tool,
    after_a_rename_outside_and_a_move,
    after_a_rename_outside_then_deleted,
    after_a_rename_of_its_folder_outside,
    after_a_rename_outside_and_a_move_of_its_folder,
]


def everything(memory: MemorySession) -> str:
    """All that a caller is told of the past."""
    answers: list[Any] = []
    changes = memory.log(limit=0)
    answers += [(change.number, change.project, change.path, change.files) for change in changes]
    answers += memory.log_by_run(limit=0)
    for number in range(1, 12):
        for ask in (memory.revisions, memory.undo):
            try:
                answers.append(ask(number))
            except MemorandaError as error:
                answers.append(str(error).replace(f"#{number}", ""))
    return repr(answers)


@pytest.mark.parametrize("way", WAYS)
def test_another_agent_sees_nothing_of_the_past_of_a_note_that_became_private(
    home: MemorySession, way: Callable[[MemorySession], str]
) -> None:
    place = way(home)
    alice = home.as_caller("alice", "mcp")
    answers = everything(alice)
    assert SECRET not in answers
    assert "trip" not in answers
    assert "journey" not in answers
    # The note beside it is as it was
    assert "other" in answers
    for name in (place, PLACE):
        # A name that never was is answered alike
        never = f"{name.rpartition('/')[0]}/never.md"
        for ask in (alice.restore, alice.log):
            assert answer(ask, name) == answer(ask, never)


def answer(ask: Callable[[str], Any], name: str) -> str:
    try:
        text = repr(ask(name))
    except MemorandaError as error:
        text = str(error)
    return text.replace(name, "NAME")


@pytest.mark.parametrize("way", WAYS)
def test_its_agent_and_the_owner_see_all_of_it(
    home: MemorySession, way: Callable[[MemorySession], str]
) -> None:
    way(home)
    for caller in (home, home.as_caller("bob", "mcp")):
        texts = []
        for change in caller.log(limit=0):
            for revision in caller.revisions(change.number):
                texts.extend((revision.before, revision.after))
        assert any(SECRET in (text or "") for text in texts)


def test_what_a_note_said_while_it_was_public_again_is_shown(home: MemorySession) -> None:
    and_public_again(home)
    file_of(home, PLACE).write_text("later\n")
    alice = home.as_caller("alice", "mcp")
    text = repr([alice.revisions(change.number) for change in alice.log(limit=0)])
    assert SECRET not in text
    assert "now private" not in text


def test_another_note_of_the_same_path_is_another_note(home: MemorySession) -> None:
    """What Alice wrote and deleted stays hers, whoever uses the path later."""
    tool(home, "alice", "delete_note", identifier=PLACE)
    tool(home, "bob", "write_note", title="trip", content=PRIVATE, directory="plans")
    alice = home.as_caller("alice", "mcp")
    assert PLACE in repr([(change.project + "/" + change.path) for change in alice.log(limit=0)])
    with pytest.raises(CannotUndo) as refusal:
        alice.undo()
    assert str(refusal.value) == "cannot undo #4: the path notes/plans/trip.md cannot be used"


def test_a_memory_renamed_and_edited_outside_is_found_by_its_id(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", watch=False) as memory:
        note = memory.write(Draft(f"{SECRET} first", project="categories", category="people"))
        path = file_of(memory, f"categories/{note.path}")
        text = path.read_text().replace("scope: global", "scope: agent:bob").replace("first", "two")
        path.unlink()
        path.with_name("renamed.md").write_text(text)
        # The history knows where all other private notes come from.
        assert SECRET not in everything(memory.as_caller("alice", "mcp"))


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_private_note_that_names_the_permalink_of_a_public_one_hides_nothing_of_it(
    home: MemorySession, is_moved: bool
) -> None:
    """Otherwise the answers to Alice would tell that Bob has such a note."""
    if is_moved:
        home.move_folder("notes", "plans", "done")
    claim = "---\nscope: agent:bob\npermalink: notes/plans/trip\n---\nmine\n"
    file_of(home, "notes/claim.md").write_text(claim)
    home.sync()
    assert SECRET in everything(home.as_caller("alice", "mcp"))


def test_a_public_note_renamed_outside_keeps_its_public_past(home: MemorySession) -> None:
    renamed_outside(home)
    tool(home, "bob", "write_note", title="diary", content=PRIVATE, directory="")
    assert SECRET in everything(home.as_caller("alice", "mcp"))


def test_a_note_removed_outside_keeps_its_past_where_no_private_note_can_be_it(
    home: MemorySession,
) -> None:
    file_of(home, PLACE).unlink()
    tool(home, "bob", "write_note", title="diary", content=PRIVATE, directory="")
    assert SECRET in everything(home.as_caller("alice", "mcp"))


def test_undoing_the_move_of_a_folder_leaves_what_is_anothers(home: MemorySession) -> None:
    home.move_folder("notes", "plans", "done")
    number = home.engine.ledger.history.last
    tool(home, "bob", "write_note", title="own", content=PRIVATE, directory="done")
    home.as_caller("alice", "mcp").undo(number)
    assert file_of(home, "notes/done/own.md").exists()
    assert file_of(home, "notes/plans/trip.md").exists()
    assert not file_of(home, "notes/done/trip.md").exists()


def test_the_time_of_a_change_to_a_private_note_is_not_told(home: MemorySession) -> None:
    alice = home.as_caller("alice", "mcp")
    before = alice.last_change("daemon")
    tool(home, "bob", "write_note", title="own", content=PRIVATE, directory="mine")
    assert alice.last_change("daemon") == before
    assert home.last_change("daemon") != before


@pytest.fixture
def undone_together(home: MemorySession) -> tuple[int, int, int]:
    """The numbers of a private change of alice's, a change of bob's, and their common undo, which
    bob does not see.
    """
    alice = home.as_caller("alice", "mcp")
    bob = home.as_caller("bob", "mcp")
    alice.write(Draft("mine alone", title="Of alice", scope="agent:alice"))
    bob.write(Draft("for all", title="Of bob"))
    undo = home.undo_together([alice.changed, bob.changed]).number
    assert bob.change_numbered(undo) is None
    return alice.changed, bob.changed, undo


def test_an_agent_is_not_told_the_number_of_an_undo_that_it_does_not_see(
    home: MemorySession, undone_together: tuple[int, int, int]
) -> None:
    _, change_of_bob, undo = undone_together
    with pytest.raises(CannotUndo, match="undone already") as bob_error:
        home.as_caller("bob", "mcp").undo(change_of_bob)
    assert bob_error.value.later is None
    assert f"#{undo}" not in str(bob_error.value)
    with pytest.raises(CannotUndo) as owner_error:
        home.undo(change_of_bob)
    assert owner_error.value.later == undo


def test_refusals_say_nothing_of_changes_that_the_caller_does_not_see(
    home: MemorySession, undone_together: tuple[int, int, int]
) -> None:
    change_of_alice, change_of_bob, _ = undone_together
    bob = home.as_caller("bob", "mcp")
    assert refused_undos(bob, undone_together).keys() == {change_of_bob}
    assert change_of_alice in refused_undos(home, undone_together)
