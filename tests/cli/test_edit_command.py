"""`memory edit`: a note in the person's editor, and nothing lost when two write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a shell script the editor; `$1` is the file it is given."""

    def chosen(script: str) -> None:
        file = tmp_path / "editor"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(file))

    monkeypatch.delenv("VISUAL", raising=False)
    return chosen


def drafts(terminal: Any) -> list[Path]:
    return [path for path in (terminal.home / ".memoranda").rglob("edits/*/*") if path.is_file()]


@pytest.mark.promise("shell-1")
def test_a_memory_is_edited_with_its_keys_following(terminal: Any, editor: Any) -> None:
    ref = terminal.write("prefers a dark theme")
    editor("sed -i 's/dark/light/' \"$1\"")
    output = terminal.ok("edit", ref[:8])
    assert output.startswith("Edited categories/inbox/prefers-a-dark-theme-")
    row = terminal("read", ref, "--json").json["memory"]
    assert row["content"] == "prefers a light theme"
    assert row["version"] == 2
    assert row["access_count"] == 1
    assert drafts(terminal) == []
    assert "Undid #2: edit" in terminal.ok("undo")


def test_any_reference_of_any_project_names_the_note(terminal: Any, editor: Any) -> None:
    terminal.ok("call", "write_note", '{"title": "Plan", "folder": "", "content": "one"}')
    editor('echo two >> "$1"')
    for ref in ("notes/Plan.md", "notes/plan", "memory://notes/plan", "Plan", "notes: notes/plan"):
        assert terminal.ok("edit", ref) == "Edited notes/Plan.md\n"

    output = terminal.ok("read", "Plan")
    assert output.endswith("one\n" + "two\n" * 5)


@pytest.mark.promise("shell-1")
def test_what_was_left_as_it_was_is_not_written(terminal: Any, editor: Any) -> None:
    ref = terminal.write("as it is")
    editor('touch "$1"')

    assert terminal.ok("edit", ref) == "Nothing changed.\n"
    output = terminal.ok("log")
    assert len(output.splitlines()) == 1
    document = terminal("edit", ref, "--json").json
    assert document["changed"] is False


@pytest.mark.promise("shell-1")
def test_a_change_by_another_program_meanwhile_keeps_both_texts(terminal: Any, editor: Any) -> None:
    terminal.ok("call", "write_note", '{"title": "Plan", "folder": "", "content": "one"}')
    note = terminal.home / "notes" / "Plan.md"
    editor(f'echo theirs >> {note}; echo mine >> "$1"')
    ran = terminal("edit", "Plan")
    (draft,) = drafts(terminal)
    assert (ran.status, ran.out) == (1, "")
    assert ran.error == (
        f"notes/Plan.md changed while you edited it; nothing was written. Your text is in {draft}"
    )
    assert draft.read_text().endswith("one\nmine\n")
    assert note.read_text().endswith("one\ntheirs\n")
    assert draft.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (': > "$1"', "the text is empty; nothing was written"),
        ("printf '\\377\\376' >> \"$1\"", "the text is not valid UTF-8; nothing was written"),
        ('echo more >> "$1"; exit 3', "editor ended with status 3; nothing was written"),
    ],
)
def test_a_text_that_cannot_be_written_is_kept(
    terminal: Any, editor: Any, script: str, message: str
) -> None:
    ref = terminal.write("one")
    editor(script)
    ran = terminal("edit", ref)

    assert ran.status == 1
    assert message in ran.error
    assert str(drafts(terminal)[0]) in ran.error
    output = terminal.ok("read", ref)
    assert output.endswith("\n\none\n")


def test_without_an_editor_that_runs_nothing_happens(
    terminal: Any, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = terminal.write("one")
    editor("exit 1")
    assert terminal("edit", ref).error.endswith("ended with status 1; nothing was changed")
    monkeypatch.setenv("EDITOR", "/no/such/editor")
    assert terminal("edit", ref).error.startswith("cannot run /no/such/editor: No such file")
    monkeypatch.setenv("EDITOR", "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert terminal("edit", ref).error == "no editor found: set EDITOR, e.g. to nano"
    assert drafts(terminal) == []


def test_a_locked_note_is_not_opened(terminal: Any, editor: Any) -> None:
    folder = terminal.home / "notes"
    folder.mkdir(parents=True)
    file = terminal.home / "notes" / "Key.md"
    file.write_text("---\nlocked: true\n---\nx\n")
    editor('echo y >> "$1"')

    assert terminal("edit", "Key").error.startswith("notes/key is locked.")
    assert terminal("edit", "nobody").error == "memory not found: nobody"
