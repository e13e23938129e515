"""Bad days of the engine: undo and restore next to foreign hands, private notes, odd files, a lost
index.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import time
from pathlib import Path

import pytest

from memoranda import Draft, errors
from memoranda.engine import doctor, open_session
from memoranda.faces.memory_tool import MemoryCommands
from memoranda.index.index import Index
from memoranda.note.edit import Append
from memoranda.query import Query

LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs inotify or Linux file names"
)


@pytest.fixture
def watching(tmp_path: Path):
    with open_session(tmp_path / "home") as opened:
        yield opened


def note(memory, name: str, text: str, folder: str = "", **more):
    return memory.write(Draft(text, project="notes", folder=folder, title=name, **more))


def paths(memory, project: str = "notes") -> list[str]:
    return sorted(info.path for info in memory.list(Query(projects=(project,)), limit=0)[0])


def damage_once(monkeypatch, owner: type, name: str) -> None:
    """Let the next call of a method of the index find it damaged."""
    as_ever = getattr(owner, name)

    def damaged(*args, **more):
        monkeypatch.setattr(owner, name, as_ever)
        raise sqlite3.DatabaseError("no such table: note")

    monkeypatch.setattr(owner, name, damaged)


def test_undo_leaves_folders_that_hold_something_newer_further_down(memory):
    note(memory, "x", "first", "a/b")
    note(memory, "y", "second", "a/b")
    memory.undo(1)
    assert paths(memory) == ["a/b/y.md"]


def test_undoing_the_return_of_a_link_spares_a_file_put_in_its_place(memory):
    commands = MemoryCommands()
    commands.run(memory, {"command": "create", "path": "/memories/a.md", "file_text": "a"})
    link = memory.home / "memories" / "link.md"
    os.symlink("a.md", link)
    commands.run(memory, {"command": "delete", "path": "/memories/link.md"})
    back = memory.undo()
    link.unlink()
    link.write_text("precious")
    with pytest.raises(errors.MemorandaError):
        memory.undo(back.number)
    assert link.read_text() == "precious"


def test_restore_does_not_touch_a_note_that_became_private(memory):
    note(memory, "plan", "old")
    memory.edit("plan", Append("newer"))
    file = memory.home / "notes" / "plan.md"
    file.write_text("---\nscope: agent:y\n---\nsecret of y\n")
    other_agent = memory.as_caller("x")
    with pytest.raises(errors.MemorandaError):
        other_agent.restore("notes/plan.md")
    assert "secret of y" in file.read_text()
    for change in other_agent.log(limit=0):
        for text in change.texts():
            assert text.old is None or b"secret" not in memory.engine.ledger.history.text(
                text.old, ""
            )


def test_undo_does_not_move_a_folder_that_holds_private_notes_of_others(memory):
    note(memory, "mine", "of y", "old", scope="agent:y")
    memory.move_folder("notes", "old", "new")
    with pytest.raises(errors.MemorandaError):
        memory.as_caller("x").undo()

    assert paths(memory) == ["new/mine.md"]


def test_restoring_an_entity_the_history_has_no_text_of_finds_nothing(tmp_path: Path):
    (tmp_path / "g.jsonl").write_text("")
    projects = {"people": tmp_path / "g.jsonl"}
    with (
        open_session(tmp_path / "home", projects=projects) as memory,
        pytest.raises(errors.NotFound),
    ):
        memory.restore("people/Ada")


def test_the_error_of_a_restore_names_no_note_of_another_agent(memory):
    private_note = memory.write(Draft("Salary negotiations", project="categories", scope="agent:y"))
    memory.delete(private_note)
    with pytest.raises(errors.MemorandaError) as caught:
        memory.as_caller("x").restore(private_note.id[:8])

    assert "salary" not in str(caught.value)


def test_a_permalink_of_a_foreign_note_is_free(memory):
    theirs = note(
        memory, "salary talks", "x", metadata={"permalink": "notes/taken"}, scope="agent:y"
    )
    mine = note(memory.as_caller("x"), "other", "x", metadata={"permalink": "notes/taken"})
    assert mine.permalink == "notes/taken"
    assert theirs.permalink == "notes/taken"
    path = memory.as_caller("x").find("notes/taken").path
    assert path == mine.path
    # Who sees both is asked for the path
    with pytest.raises(errors.Ambiguous):
        memory.as_caller("y").find("notes/taken")


def test_a_note_beside_a_foreign_one_meets_no_other_by_a_permalink_it_does_not_take(memory):
    note(memory, "plan", "x", scope="agent:y")
    note(memory, "other", "x", metadata={"permalink": "notes/plan-2"})
    mine = note(memory.as_caller("x"), "plan", "x", metadata={"permalink": "notes/mine"})
    assert (mine.path, mine.permalink) == ("plan 2.md", "notes/mine")


def test_a_scope_is_seen_in_a_header_of_any_length(memory):
    folder = memory.home / "memories"
    folder.mkdir()
    filler = "".join(f"k{n}: {'v' * 60}\n" for n in range(1200))
    (folder / "early.md").write_text(f"---\nscope: agent:y\n{filler}---\nsecret\n")
    (folder / "late.md").write_text(f"---\n{filler}scope: agent:y\n---\nsecret\n")
    for name in ("early.md", "late.md"):
        reply = MemoryCommands().run(
            memory.as_caller("x"), {"command": "view", "path": f"/memories/{name}"}
        )
        assert reply.is_error
        assert "secret" not in reply.text
    reply = MemoryCommands().run(memory.as_caller("x"), {"command": "view", "path": "/memories"})

    assert not {"early.md", "late.md"} & set(reply.text.split("/"))


@LINUX
@pytest.mark.parametrize("watch", [False, True])
def test_names_that_are_no_unicode_disturb_nobody(tmp_path, watch):
    with open_session(tmp_path / "home", watch=watch) as memory:
        note(memory, "good", "text")
        root = os.fsencode(tmp_path / "home" / "notes")
        memory.sync()
        os.mkdir(root + b"/bad\xff")
        memory.sync()
        for name in (b"/bad\xff/x.md", b"/odd\xff.md"):
            with open(root + name, "w") as file:
                file.write("text")
        assert paths(memory) == ["good.md"]
        total = memory.search("text").total
        assert total == 1


@LINUX
def test_a_date_of_change_beyond_the_calendar_disturbs_nobody(memory):
    note(memory, "good", "text")
    file = memory.home / "notes" / "far.md"
    file.write_text("text")
    try:
        os.utime(file, (253402300800 + 86400, 253402300800 + 86400))
    except OSError:
        pytest.skip("this file system has no such times")
    assert paths(memory) == ["far.md", "good.md"]


@pytest.mark.parametrize("project", ["notes", "categories", "memories"])
def test_a_hand_made_header_disturbs_neither_calls_nor_the_doctor(memory, project):
    note(memory, "good", "text")
    folder = memory.home / project / "inbox"
    folder.mkdir(parents=True, exist_ok=True)
    for number, header in enumerate(
        [
            "a: " + "[" * 5000,
            "a: " + "9" * 5000,
            "date: 2024-13-45",
            "created_at: 99999-01-01",
            "a: &a [*a]",
            "? [1, 2]\n: x",
            "a: !!python/object:os.system x",
            "a: 1e999",
            "tags: {a: {b: c}}",
            "links: 5",
            "merged: 5",
            "scope: [1]",
            "a: !!binary x",
        ]
    ):
        id = f"0b0e0e0e-0000-4000-8000-{number:012}"
        (folder / f"odd {number}.md").write_text(f"---\nid: {id}\n{header}\n---\nodd text\n")
    assert memory.search("text").total >= 1
    assert "good.md" in paths(memory)
    doctor.examine(memory)


@LINUX
def test_a_project_whose_parent_folder_was_exchanged_is_looked_at_anew(tmp_path, watching):
    first = tmp_path / "first" / "vault"
    second = tmp_path / "second" / "vault"
    for folder, text in ((first, "apple"), (second, "banana")):
        folder.mkdir(parents=True)
        (folder / "note.md").write_text(text)
    watching.add_project("vault", str(first))
    assert watching.search("apple").total == 1
    os.rename(tmp_path / "first", tmp_path / "away")
    os.rename(tmp_path / "second", tmp_path / "first")
    assert watching.search("apple").total == 0
    assert watching.search("banana").total == 1
    (first / "more.md").write_text("cherry")
    assert watching.search("cherry").total == 1


def test_an_index_found_damaged_in_the_middle_of_a_call_is_filled_before_the_answer(
    memory, monkeypatch
):
    note(memory, "good", "text")
    memory.sync()
    damage_once(monkeypatch, Index, "search")
    assert memory.search("text").total == 1


def test_what_stands_in_for_an_index_is_exchanged_at_a_look_at_the_disk_only(tmp_path, monkeypatch):
    home = tmp_path / "home"
    ahead = [0.0]
    real = time.monotonic
    with open_session(home, watch=False) as memory:
        note(memory, "Tea", "green tea")
    for path in (home / ".memoranda").glob("index.db*"):
        path.unlink()
    # So none can be made but in memory
    (home / ".memoranda" / "index.db" / "in the way").mkdir(parents=True)
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])
    with open_session(home, watch=False) as memory:
        (info,) = memory.list(Query(projects=("notes",)), limit=0)[0]
        ahead[0] += 60
        assert "green tea" in memory.text_of(info)
        (home / ".memoranda" / "index.db" / "in the way").rmdir()
        (home / ".memoranda" / "index.db").rmdir()
        assert paths(memory) == ["Tea.md"]
    # Tried again
    assert (home / ".memoranda" / "index.db").is_file()


def test_a_write_is_not_repeated_because_the_index_failed_after_it(memory, monkeypatch):
    note(memory, "log", "start")
    memory.sync()
    damage_once(monkeypatch, Index, "put")
    memory.edit("log", Append("once"))

    file = memory.home / "notes" / "log.md"
    text = file.read_text()
    assert text.count("once") == 1
    assert memory.search("once").total == 1


def test_settings_of_this_process_outlive_a_change_of_the_projects(tmp_path):
    from dataclasses import replace

    from memoranda import config

    settings = replace(
        config.load(tmp_path / "home", None, {}), graph_file="/elsewhere.jsonl", llm_model="m"
    )
    with open_session(tmp_path / "home", config=settings) as memory:
        memory.add_project("vault", str(tmp_path / "vault"))
        assert (memory.settings.graph_file, memory.settings.llm_model) == ("/elsewhere.jsonl", "m")
        assert "vault" in memory.settings.projects


@LINUX
def test_opening_and_closing_leaves_no_open_files(tmp_path):
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    with open_session(tmp_path / "home") as memory:
        note(memory, "a", "x", "f")
    before = opened()
    for _ in range(5):
        with open_session(tmp_path / "home") as memory:
            memory.reindex()
            memory.search("x")
            with pytest.raises(errors.MemorandaError):
                note(memory, "a", "x", "f")
    assert opened() <= before


def test_what_bars_an_undo_is_named_when_a_folder_above_was_moved(memory):
    note(memory, "a", "text", "f")
    memory.edit("a", Append("later"))
    moved = memory.move_folder("notes", "f", "g")
    assert moved.new_path == "g"
    with pytest.raises(errors.CannotUndo, match=r"changed later \(#3\)"):
        memory.undo(2)
    changes = memory.log("notes/g/a.md")
    assert changes[0].number == 3


def test_after_closing_every_call_says_so_and_closing_again_is_harmless(tmp_path):
    memory = open_session(tmp_path / "home")
    memory.sync()
    memory.close()
    with open(tmp_path / "file", "w") as file:
        memory.close()
        file.write("still open")
    for call in (memory.sync, lambda: memory.search("x"), lambda: memory.write(Draft("x"))):
        with pytest.raises(errors.StorageError, match="closed"):
            call()
    reply = MemoryCommands().run(
        memory, {"command": "create", "path": "/memories/a.md", "file_text": "x"}
    )
    assert reply.is_error
    assert not (memory.home / "memories").exists()


def test_the_index_made_anew_by_another_process_is_seen_by_the_next_call(tmp_path):
    with open_session(tmp_path / "home") as first, open_session(tmp_path / "home") as second:
        note(first, "a", "text")
        assert second.search("text").total == 1
        first.reindex()
        note(first, "b", "text")
        assert second.search("text").total == 2
        note(second, "c", "text")
        assert first.search("text").total == 3


def test_a_home_that_is_away_is_told_of_in_plain_words(memory, tmp_path: Path):
    os.rename(memory.home, tmp_path / "away")
    with pytest.raises(
        errors.StorageError, match="Could not write the index: no such file or directory"
    ):
        memory.search("x")
    os.rename(tmp_path / "away", memory.home)
    assert memory.search("x").total == 0


def test_the_doctor_names_notes_in_a_folder_nobody_may_look_into(memory, monkeypatch):
    note = memory.write(Draft("likes coffee", project="categories", category="preferences"))
    memory.write(Draft("likes tea", project="categories", category="preferences"))
    as_ever = os.open

    def refusing(path, *args, **more):
        if str(path).endswith("categories/preferences"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return as_ever(path, *args, **more)

    monkeypatch.setattr(os, "open", refusing)
    findings = [(finding.level, finding.code, finding.text) for finding in doctor.examine(memory)]
    assert findings == [("error", "unreadable", "permission denied; it is shown as it was")] * 2
    with pytest.raises(
        errors.CannotRead, match=rf"Could not read {note.path}: permission denied\.$"
    ):
        memory.read(note.id)


def test_the_first_of_many_notes_is_named_when_the_folder_of_their_project_is_missing(
    memory, tmp_path: Path
):
    folder = tmp_path / "work"
    memory.add_project("work", str(folder))
    os.rmdir(folder)
    drafts = [Draft("x", project="work", title=title) for title in ("one", "two")]
    refusal = r"Could not write one\.md: the folder of project work is missing"
    with pytest.raises(errors.StorageError, match=refusal):
        memory.write_many(drafts)
