"""Differences of changes of which the history has lost a text: nothing is shown as deleted."""

from __future__ import annotations

from memoranda import Draft
from memoranda.documents import differences
from memoranda.note.edit import FindReplace


def test_a_text_that_an_editor_replaced_is_not_shown_as_deleted(memory) -> None:
    note = memory.write(Draft("Meet at 7:30.", project="notes", title="Meeting"))
    memory.edit(note, FindReplace("7:30", "7:40"))
    edited = memory.log(limit=1)[0].number
    file = memory.home / "notes" / "Meeting.md"
    file.write_text(file.read_text().replace("7:40", "7:50"))
    memory.edit(note, FindReplace("7:50", "8:00"))
    (revision,) = memory.revisions(edited)
    difference = differences.of_revision(revision)
    assert revision.is_text_lost
    assert difference.is_text_lost
    assert not difference.lines


def test_a_deleted_note_has_lost_no_text(memory) -> None:
    note = memory.write(Draft("Meet at 7:30.", project="notes", title="Meeting"))
    memory.delete(note)
    (revision,) = memory.revisions(memory.log(limit=1)[0].number)
    difference = differences.of_revision(revision)
    assert not difference.is_text_lost
    assert [part.text for line in difference.lines for part in line] == ["Meet at 7:30."]


def test_a_move_has_lost_no_text_when_an_editor_saves_the_note_after_it(memory) -> None:
    note = memory.write(Draft("Meet at 7:30.", project="notes", title="Meeting"))
    memory.move(note, "sub/Meeting.md")
    file = memory.home / "notes" / "sub" / "Meeting.md"
    file.write_text(file.read_text().replace("7:30", "7:50"))
    (revision,) = memory.revisions(memory.log(limit=1)[0].number)
    assert not revision.is_text_lost
