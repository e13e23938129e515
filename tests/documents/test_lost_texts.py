"""Differences of changes of which the history has lost a text: nothing is shown as deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from editing import replace_in
from memoranda import Draft
from memoranda.documents import differences
from memoranda.engine import open_session
from memoranda.engine.entries import NoteEntries
from memoranda.engine.freshness import Freshness
from memoranda.ledger.execution import Execution
from memoranda.note.edit import FindReplace
from memoranda.query import Query


def _edited_between(memory, *, is_index_lost: bool = False) -> int:
    """Have an editor replace the text of a change. Returns the number of that change."""
    note = memory.write(Draft("Meet at five.", project="notes", title="Meeting"))
    memory.edit(note, FindReplace("five", "six"))
    edited: int = memory.log(limit=1)[0].number
    file = memory.home / "notes" / "Meeting.md"
    replace_in(file, "six", "seven")
    if is_index_lost:
        memory.engine.rebuild_index()
    memory.edit(note, FindReplace("seven", "eight"))
    return edited


def test_a_text_that_an_editor_replaced_is_kept(memory) -> None:
    (revision,) = memory.revisions(_edited_between(memory))
    assert not revision.is_text_lost
    assert revision.after is not None
    assert "Meet at six." in revision.after


def test_a_text_that_neither_index_nor_file_has_is_not_shown_as_deleted(memory) -> None:
    (revision,) = memory.revisions(_edited_between(memory, is_index_lost=True))
    difference = differences.of_revision(revision)
    assert revision.is_text_lost
    assert difference.is_text_lost
    assert not difference.lines


def test_a_text_that_an_editor_replaced_is_gone_from_the_ledger_with_its_erased_note(
    memory,
) -> None:
    _edited_between(memory)
    texts = [data for _, data in memory.engine.ledger.history.texts_with_data()]
    assert any(b"six" in data for data in texts)
    erased = memory.erase("notes/Meeting.md")
    assert not erased.remains
    assert not [*memory.engine.ledger.history.texts_with_data()]


def test_a_text_that_the_history_cannot_keep_does_not_stop_a_read(memory) -> None:
    memory.write(Draft("tea " * 300_000, project="notes", title="Tea"))
    # Large texts are files in this folder.
    Path(memory.engine.layout.texts).write_text("in the way")
    file = memory.home / "notes" / "Tea.md"
    file.write_text("coffee")

    assert memory.read("notes/Tea.md").text == "coffee"


def test_a_text_that_an_editor_replaced_is_swept_with_its_change_and_not_before(memory) -> None:
    _edited_between(memory)
    history = memory.engine.ledger.history
    texts = [*history.texts()]
    history.sweep()
    texts_after = [*history.texts()]
    assert len(texts_after) == len(texts)
    with history.database.transaction() as connection:
        connection.execute("delete from step")
    history.sweep()
    assert not [*history.texts()]


def test_the_text_of_an_entry_with_a_time_to_live_is_not_kept_when_an_editor_replaces_it(
    memory,
) -> None:
    NoteEntries(memory).put("default", "pin", "1234", ttl=600)
    (info,), _ = memory.list(Query(projects=("kv",)))
    file = memory.home / "kv" / info.path
    replace_in(file, "1234", "5678")

    text = memory.read(info).text
    assert "5678" in text
    assert not [*memory.engine.ledger.history.texts_with_data()]


def test_a_deleted_note_has_lost_no_text(memory) -> None:
    note = memory.write(Draft("Meet at five.", project="notes", title="Meeting"))
    memory.delete(note)
    (revision,) = memory.revisions(memory.log(limit=1)[0].number)
    difference = differences.of_revision(revision)

    assert not difference.is_text_lost
    texts = []
    for line in difference.lines:
        texts += [part.text for part in line]
    assert texts == ["Meet at five."]


def test_a_move_has_lost_no_text_when_an_editor_saves_the_note_after_it(memory) -> None:
    note = memory.write(Draft("Meet at five.", project="notes", title="Meeting"))
    memory.move(note, "sub/Meeting.md")
    file = memory.home / "notes" / "sub" / "Meeting.md"
    replace_in(file, "five", "seven")
    (revision,) = memory.revisions(memory.log(limit=1)[0].number)

    assert not revision.is_text_lost


def test_a_text_is_kept_if_another_process_wrote_it_after_the_files_were_compared(
    memory, monkeypatch
) -> None:
    (memory.home / "notes").mkdir(exist_ok=True)
    file = memory.home / "notes" / "Meeting.md"
    file.write_text("Meet at five.")
    apply = Freshness._apply

    def apply_later(freshness: Freshness, source: Any, changes: Any, *args: Any) -> None:
        if not changes:
            return apply(freshness, source, changes, *args)
        monkeypatch.setattr(Freshness, "_apply", apply)
        with open_session(memory.home, watch=False) as second_session:
            second_session.edit("notes/Meeting.md", FindReplace("five", "six"))
        replace_in(file, "six", "seven")
        return apply(freshness, source, changes, *args)

    monkeypatch.setattr(Freshness, "_apply", apply_later)
    assert "seven" in memory.read("notes/Meeting.md").text
    texts = [data for _, data in memory.engine.ledger.history.texts_with_data()]
    assert any(b"six" in data for data in texts)


def test_a_text_that_an_editor_replaced_before_anybody_read_it_is_kept(memory, monkeypatch) -> None:
    note = memory.write(Draft("Meet at five.", project="notes", title="Meeting"))
    file = memory.home / "notes" / "Meeting.md"
    finish = Execution.finish

    def save_after(execution: Execution) -> None:
        finish(execution)
        if "six" in file.read_text():
            replace_in(file, "Meet at six.", "Meet at seven.")

    monkeypatch.setattr(Execution, "finish", save_after)
    memory.edit(note, FindReplace("five", "six"))
    memory.engine.ledger.file_sync.sync()

    (revision,) = memory.revisions(memory.log(limit=1)[0].number)
    assert not revision.is_text_lost
    assert revision.after is not None
    assert "Meet at six." in revision.after
    assert "Meet at seven." in file.read_text()


def test_a_text_that_is_in_its_file_or_was_replaced_by_a_change_is_not_kept_twice(memory) -> None:
    note = memory.write(Draft("Meet at five.", project="notes", title="Meeting"))
    memory.edit(note, FindReplace("five", "six"))
    memory.edit(note, FindReplace("six", "seven"))
    memory.engine.ledger.file_sync.sync()
    texts = [data for _, data in memory.engine.ledger.history.texts_with_data()]
    assert sum(b"five" in data for data in texts) == 1
    assert sum(b"six" in data for data in texts) == 1
    assert not any(b"seven" in data for data in texts)
