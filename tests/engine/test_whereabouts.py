"""Where a note is by now, and which changes could be taken back now."""

from __future__ import annotations

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.engine.history.former_places import history_through_moves
from memoranda.engine.history.refusals import (
    later_changes_in_the_way,
    refused_undo_of_run,
    refused_undos,
)
from memoranda.engine.history.whereabouts import where_now
from memoranda.engine.pausing import paused_agents, set_paused
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import AgentPaused, CannotUndo, InvalidInput, UndoObstacle
from memoranda.jobs import dream
from memoranda.jobs.lifecycle import archive_named, upgrade_named
from memoranda.note.edit import Append


@pytest.fixture
def memory(tmp_path):
    with open_session(tmp_path / "home") as session:
        yield session


def stored(memory, text, category="inbox"):
    return memory.write(Draft(text, project="categories", category=category))


def test_a_sorted_then_archived_memory_is_found_at_each_of_its_places(memory):
    note = stored(memory, "Bob is a colleague of Ann")
    places = [(note.project, note.path)]
    upgrade_named(memory, [note.id], "people")
    places.append(_place(memory, note))
    archive_named(memory, [note.id])
    places.append(_place(memory, note))
    assert len(set(places)) == 3
    for place in places:
        assert where_now(memory, *place).id == note.id, place


def _place(memory, note):
    info = memory.memory_id(note.id)
    return info.project, info.path


def test_a_moved_note_and_the_notes_of_a_moved_folder_are_followed(memory):
    memory.write(Draft("x", project="notes", title="One", folder="a"))
    memory.move("notes/a/One.md", "b/Uno.md")
    memory.move("notes/b/Uno.md", "c/Eins.md")
    assert where_now(memory, "notes", "a/One.md").path == "c/Eins.md"
    memory.write(Draft("y", project="notes", title="One", folder="a"))
    assert where_now(memory, "notes", "a/One.md").path == "a/One.md", (
        "what is there now comes first"
    )


def test_a_deleted_note_is_nowhere_and_a_merged_one_is_the_other(memory):
    deleted_note = memory.write(Draft("x", project="notes", title="Gone"))
    memory.delete(deleted_note)
    assert where_now(memory, "notes", "Gone.md") is None
    assert where_now(memory, "notes", "never.md") is None
    first = stored(memory, "The staging server is called heron", "knowledge")
    second = stored(memory, "The staging server is named heron", "knowledge")
    kept_id, merged_id = memory.memory_id(first.id), memory.memory_id(second.id)
    Upkeep(memory).merge(kept_id, merged_id)
    assert where_now(memory, second.project, second.path).id == first.id
    assert where_now(memory, second.project, second.path, only_same=True) is None


def test_a_deleted_note_is_not_the_one_that_lost_its_link_to_it(memory):
    deleted_note, holder = stored(memory, "Tea is at four."), stored(memory, "Cake is at five.")
    memory.link(holder.id, deleted_note.id)
    memory.delete(deleted_note.id)
    assert where_now(memory, deleted_note.project, deleted_note.path) is None


def test_only_the_note_itself_is_followed_where_that_is_asked_for(memory):
    memory.write(Draft("x", project="notes", title="One"))
    memory.move("notes/One.md", "a/Uno.md")
    memory.move("notes/a/Uno.md", "b/Eins.md")
    moved = where_now(memory, "notes", "One.md", only_same=True)
    assert moved.path == "b/Eins.md"
    deleted_note, holder = stored(memory, "Tea is at four."), stored(memory, "Cake is at five.")
    memory.link(holder.id, deleted_note.id)
    memory.delete(deleted_note.id)
    assert where_now(memory, deleted_note.project, deleted_note.path, only_same=True) is None
    mine = memory.write(Draft("y", project="notes", title="Mine"))
    upkept = stored(memory, "Bob is a colleague of Ann")
    upgrade_named(memory, [upkept.id], "people")
    assert where_now(memory, upkept.project, upkept.path, only_same=True).id == upkept.id
    Upkeep(memory).join(moved, memory.find(mine.id), "y\n")
    assert where_now(memory, "notes", "Mine.md", only_same=True) is None


def test_what_undo_refuses_is_foretold_and_nothing_else(memory):
    note = memory.write(Draft("one\n", project="notes", title="Plan"))
    memory.edit(note, Append("two\n"))
    memory.tag(note, ["x"])
    memory.write(Draft("of itself", project="notes", title="Other"))
    memory.undo(4)
    memory.write(Draft("more", project="notes", title="More"))
    (memory.home / "notes" / "More.md").write_text("by hand")
    stored(memory, "a secret")
    memory.erase(memory.list("", limit=1)[0][0].id)
    numbers = [change.number for change in memory.log(limit=0)]
    refused = refused_undos(memory, numbers)
    for number in sorted(numbers, reverse=True):
        before = memory.engine.ledger.history.last
        try:
            memory.undo(number)
        except CannotUndo:
            assert number in refused, number
        else:
            assert number not in refused, number
            memory.undo(before + 1)


def test_a_refusal_says_which_kind_it_is_and_which_later_change_is_in_the_way(memory):
    note = memory.write(Draft("one\n", project="notes", title="Plan"))
    memory.edit(note, Append("two\n"))
    memory.tag(note, ["x"])
    memory.write(Draft("more", project="notes", title="More"))
    file = memory.home / "notes" / "More.md"
    file.write_text("by hand")
    memory.write(Draft("y", project="notes", title="Other"))
    memory.undo(5)
    refused = refused_undos(memory, range(1, 7))
    found = {number: (error.obstacle, error.later) for number, error in refused.items()}
    assert found == {
        1: (UndoObstacle.LATER, 3),
        2: (UndoObstacle.LATER, 3),
        4: (UndoObstacle.OUTSIDE, None),
        5: (UndoObstacle.UNDONE, 6),
    }
    assert [change.number for change in later_changes_in_the_way(memory, 1)] == [3, 2]
    assert [change.number for change in later_changes_in_the_way(memory, 2)] == [3]
    assert later_changes_in_the_way(memory, 3) == []
    assert later_changes_in_the_way(memory, 4) == []


def test_changes_are_undone_together_or_not_at_all(memory):
    note = memory.write(Draft("one\n", project="notes", title="Plan"))
    memory.edit(note, Append("two\n"))
    memory.tag(note, ["x"])
    memory.edit(note, Append("three\n"))
    before = memory.read(note).text
    with pytest.raises(CannotUndo) as refusal:
        memory.undo_together([2, 3])
    assert (refusal.value.number, refusal.value.later) == (3, 4)
    assert memory.read(note).text == before
    change = memory.undo_together([2, 4, 3])
    assert memory.read(note).content.strip() == "one"
    assert memory.read(note).tags == ()
    memory.undo(change.number)
    assert memory.read(note).text == before
    with pytest.raises(CannotUndo):
        memory.as_caller("claude", "mcp").undo_together([99])


def test_a_run_is_undone_as_long_as_its_notes_are_as_it_left_them(memory):
    for text in ("Bob is a colleague of Ann", "We decided to use Postgres"):
        stored(memory, text)
    dream.run(memory, 1)
    run = memory.log_by_run(limit=1)[0]
    assert len(run) > 1
    assert refused_undo_of_run(memory, run) is None
    memory.edit(memory.list("", limit=1)[0][0], Append("later\n"))
    refusal = refused_undo_of_run(memory, run)
    assert refusal is not None
    assert refusal.obstacle == UndoObstacle.LATER
    assert refusal.number in {change.number for change in run}


def test_a_paused_agent_writes_nothing_until_it_may_go_on(memory):
    claude = memory.as_caller("claude", "mcp")
    set_paused(memory, "Claude", True)
    assert paused_agents(memory) == ["claude"]
    with pytest.raises(AgentPaused):
        claude.write(Draft("x", project="notes", title="X"))
    set_paused(memory, "claude", False)
    claude.write(Draft("x", project="notes", title="X"))
    assert paused_agents(memory) == []


def test_a_paused_agent_does_not_end_its_pause(memory):
    set_paused(memory, "claude", True)
    with pytest.raises(InvalidInput):
        set_paused(memory.as_caller("claude", "mcp"), "claude", False)


def test_other_agents_write_while_one_is_paused(memory):
    set_paused(memory, "claude", True)
    note = memory.as_caller("cursor", "mcp").write(Draft("y", project="notes", title="Y"))
    assert memory.read(note).body.strip() == "y"


def test_the_history_goes_back_through_a_category_the_archive_and_moves(memory):
    note = stored(memory, "Bob is a colleague of Ann")
    memory.edit(note, Append("Since May.\n"))
    upgrade_named(memory, [note.id], "people")
    archive_named(memory, [note.id])
    steps = history_through_moves(memory, *_place(memory, note))
    step_verbs = [step.change.verb for step in steps]
    assert step_verbs == ["archive", "upgrade", "edit", "write"]
    assert steps[0].place_before == ("categories", steps[1].place[1])
    assert steps[1].place_before == (note.project, note.path)
    assert steps[2].place == (note.project, note.path)
    place_befores = [step.place_before for step in steps[2:]]
    assert place_befores == [None, None]
    step_verbs = [
        step.change.verb for step in history_through_moves(memory, *_place(memory, note), limit=2)
    ]
    assert step_verbs == ["archive", "upgrade"]

    memory.write(Draft("x", project="notes", title="One", folder="a"))
    memory.move("notes/a/One.md", "b/Uno.md")
    memory.write(Draft("another", project="notes", title="One", folder="a"))
    archive_named(memory, [memory.find("notes/b/Uno.md")])
    archived = memory.find("Uno", project=".archive")
    verbs = [step.change.verb for step in history_through_moves(memory, ".archive", archived.path)]
    assert verbs == ["archive", "move", "write"]


def test_the_history_of_a_note_is_not_that_of_one_merged_into_it_or_replaced_by_it(memory):
    first = stored(memory, "The staging server is called heron", "knowledge")
    second = stored(memory, "The staging server is named heron", "knowledge")
    Upkeep(memory).merge(memory.memory_id(first.id), memory.memory_id(second.id))

    steps = history_through_moves(memory, *_place(memory, first))
    verbs = [step.change.verb for step in steps]
    assert verbs == [
        "merge",
        "write",
    ]


def test_a_note_that_moved_with_its_links_is_followed_both_ways(memory):
    """Its links changed, so it was written at its new place, and so was the note that links to
    it.
    """
    for title, text in (("Other", "See [plan](Plan.md).\n"), ("Plan", "Of [other](Other.md).\n")):
        memory.write(Draft(text, project="notes", title=title))
    memory.edit("notes/Plan.md", Append("More.\n"))
    memory.move("notes/Plan.md", "top/Planned.md")

    assert where_now(memory, "notes", "Plan.md", only_same=True).path == "top/Planned.md"
    changes = history_through_moves(memory, "notes", "top/Planned.md")
    assert [placed.change.verb for placed in changes] == ["move", "edit", "write"]


def test_the_log_of_a_memory_deleted_from_the_archive_tells_the_deletion(memory):
    note = stored(memory, "Bob is a colleague of Ann")
    archive_named(memory, [note.id])
    memory.delete(note.id)
    assert memory.log(note.id)[0].verb == "delete"


def test_a_memory_deleted_from_the_archive_is_restored_as_it_was_there(memory):
    note = stored(memory, "Bob is a colleague of Ann")
    archive_named(memory, [note.id])
    memory.edit(note.id, Append(" since May"))
    memory.delete(note.id)
    memory.restore(note.id)
    assert "since May" in memory.read(note.id).text
