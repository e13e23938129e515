"""Memories of the `categories` project: their header keeps its order, their links and hashes keep
up.
"""

from __future__ import annotations

import re

import pytest

from memoranda import Draft, errors
from memoranda.ledger.history import History
from memoranda.note.edit import Append
from memoranda.note.model import MEMORY_KEYS


def keys(note) -> list[str]:
    return re.findall(r"^(\w+):", note.text[: note.body_at], re.M)


def write(memory, text, **more):
    return memory.write(Draft(text, project="categories", category="knowledge", **more))


def test_tags_and_links_added_later_stand_where_a_new_memory_has_them(memory):
    first = write(memory, "one")
    second = write(memory, "two")
    memory.tag(first, add=["home", "Home", "work"])
    memory.link(first, second)
    note = memory.read(first.id, count=False)

    assert keys(note) == list(MEMORY_KEYS)
    assert note.tags == ("home", "work")
    assert note.links == (second.id,)


def test_a_batch_is_written_as_a_whole_or_not_at_all(memory):
    drafts = [Draft("a", title="A"), Draft("b", title="B"), Draft("c", title="C", scope="bad")]
    with pytest.raises(errors.InvalidInput):
        memory.write_many(drafts)
    assert memory.list()[1] == 0
    assert len(memory.write_many(drafts[:2])) == 2
    changes = memory.log(limit=0)
    assert len(changes) == 1
    memory.undo()
    assert memory.list()[1] == 0


def test_two_notes_of_one_batch_cannot_take_one_place(memory):
    with pytest.raises(errors.Exists):
        memory.write_many([Draft("a", title="A"), Draft("b", title="a")])
    assert memory.list()[1] == 0


def test_undo_steps_back_and_an_undo_can_be_undone(memory):
    note = memory.write(Draft("one", title="N"))
    memory.edit("N", Append("two"))
    memory.edit("N", Append("three"))
    assert memory.undo().undoes == 3
    assert memory.undo().undoes == 2
    assert memory.read("N").body == "one\n"
    assert memory.undo(5).undoes == 5
    assert memory.read("N").body == "one\ntwo\n"
    with pytest.raises(errors.CannotUndo, match=r"changed later \(#6\)"):
        memory.undo(1)
    assert memory.undo().undoes == 2
    assert memory.undo().undoes == 1
    with pytest.raises(errors.NotFound):
        memory.read(note.id)
    with pytest.raises(errors.CannotUndo):
        memory.undo()


def test_what_is_undone_again_after_a_redo_was_undone_already(memory):
    memory.write(Draft("one", title="N"))
    assert [memory.undo(number).undoes for number in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(errors.CannotUndo, match=r"cannot undo #1: it was undone already \(#2\)"):
        memory.undo(1)
    memory.undo(4)
    assert memory.read("N").body == "one\n"


def test_what_was_edited_outside_is_not_undone_over(memory):
    note = memory.write(Draft("one", title="N"))
    memory.edit("N", Append("two"))
    (memory.home / "notes" / note.path).write_text("by hand\n")
    with pytest.raises(errors.CannotUndo, match="outside memoranda"):
        memory.undo()

    assert memory.read("N").text == "by hand\n"


def test_a_relation_between_notes_is_a_line_under_relations(memory):
    memory.write(Draft("text", title="A"))
    memory.write(Draft("text", title="B"))
    assert memory.link("A", "B", "depends_on") is True
    assert memory.link("A", "B", "depends_on") is False
    memory.link("A", "B", "is like")
    assert (
        memory.read("A").body == 'text\n\n## Relations\n\n- depends_on [[B]]\n- "is like" [[B]]\n'
    )
    assert [(edge.type, edge.note.title) for edge in memory.outgoing("A")] == [
        ("depends_on", "B"),
        ("is like", "B"),
    ]


def test_the_journal_is_read_a_few_times_for_an_undo_however_many_files_it_brings_back(
    memory, monkeypatch
):
    memory.write_many(
        [Draft(f"text {number}", title=f"N{number}", folder="f") for number in range(30)]
    )
    memory.delete_folder("notes", "f")
    read = History.changes
    reads = []
    monkeypatch.setattr(
        History, "changes", lambda self, **how: reads.append(1) or read(self, **how)
    )
    memory.undo()
    assert memory.list()[1] == 30
    assert len(reads) < 10


def test_a_restored_note_goes_only_where_it_is_one(memory):
    memory.write(Draft("one", title="N"))
    memory.delete("N")
    for to in ("notes/", "notes/.hidden/old.md"):
        with pytest.raises(errors.InvalidInput, match=r"Name it with \.md"):
            memory.restore("notes/N.md", to=to)

    assert memory.restore("notes/N.md", to="notes/old")[0] == "notes/old.md"
    assert memory.read("old").body == "one\n"
    changes = memory.log(limit=-1)
    assert len(changes) == 3
