"""Contract 000b, 12.12: each error's text and code, that nothing changed, and that the step it names works."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.note_tools import Tools, texts

pytestmark = pytest.mark.promise("000b-12.12")

Follow = Callable[[Tools, "Refusal"], Any]


class Refusal:
    """A call that is refused: its code, its whole text, and what its text says to do next."""

    def __init__(self, code: str, text: str, follow: Follow, tool: str, **arguments: Any):
        self.code, self.text, self.follow, self.tool, self.arguments = code, text, follow, tool, arguments


def again(**changed: Any) -> Follow:
    """The same call with these arguments changed, as the text says."""
    return lambda tools, refusal: tools(refusal.tool, **refusal.arguments | changed)


def call(tool: str, **arguments: Any) -> Follow:
    return lambda tools, _: tools(tool, **arguments)


def unlocked(tools: Tools, refusal: Refusal) -> Any:
    file = tools.root() / "Locked.md"
    file.write_text(file.read_text().replace("locked: true\n", ""))
    return again()(tools, refusal)


def reread(tools: Tools, refusal: Refusal) -> Any:
    checksum = tools("read_note", identifier="notes/doc")["checksum"]
    return again(expected_checksum=checksum)(tools, refusal)


def converted(tools: Tools, refusal: Refusal) -> Any:
    file = tools.root() / "latin.md"
    file.write_bytes(file.read_bytes().decode("latin-1").encode())
    return again()(tools, refusal)


REFUSALS = {
    "missing": Refusal(
        "not_found",
        'Note not found in notes: "Heron Plam". Did you mean: notes/deep/heron-plan? '
        "Find it with search_notes or list_directory.",
        call("read_note", identifier="notes/deep/heron-plan"),
        "read_note",
        identifier="Heron Plam",
    ),
    "missing, nothing near": Refusal(
        "not_found",
        'Note not found in notes: "zzzz". Find it with search_notes or list_directory.',
        call("list_directory"),
        "delete_note",
        identifier="zzzz",
    ),
    "ambiguous": Refusal(
        "ambiguous",
        '"Twin" names 2 notes: notes/a/twin, notes/b/twin. Use one of these permalinks, or a path.',
        again(identifier="notes/b/twin"),
        "edit_note",
        identifier="Twin",
        operation="append",
        content="x",
    ),
    "exists": Refusal(
        "exists",
        "Note already exists: notes/doc. Change it with edit_note, or call write_note with overwrite=true.",
        again(overwrite=True),
        "write_note",
        title="Doc",
        content="x",
    ),
    "exists, edited": Refusal(
        "exists",
        "Note already exists: notes/doc. Change it with edit_note, or call write_note with overwrite=true.",
        call("edit_note", identifier="notes/doc", operation="append", content="x"),
        "write_note",
        title="doc",
        content="x",
    ),
    "destination": Refusal(
        "exists",
        "Destination already exists: deep/Heron plan.md. Choose another destination_path.",
        again(destination_path="deep/Heron plan 2"),
        "move_note",
        identifier="Doc",
        destination_path="deep/Heron plan.md",
    ),
    "destination folder": Refusal(
        "exists",
        "Destination already exists: b. Choose another destination_path.",
        again(destination_path="c"),
        "move_note",
        identifier="a",
        destination_path="b",
        is_directory=True,
    ),
    "conflict": Refusal(
        "conflict",
        "notes/doc changed since you read it (checksum CHECKSUM, expected 0badcafe). "
        "Read it again with read_note and repeat the edit.",
        reread,
        "edit_note",
        identifier="Doc",
        operation="append",
        content="x",
        expected_checksum="0badcafe",
    ),
    "count": Refusal(
        "count",
        "Expected 1 occurrences of find_text in notes/doc, found 2. Set expected_replacements=2 or give more context.",
        again(expected_replacements=2),
        "edit_note",
        identifier="Doc",
        operation="find_replace",
        find_text="same",
        content="x",
    ),
    "count, none": Refusal(
        "count",
        "Expected 1 occurrences of find_text in notes/doc, found 0. Check the exact text with read_note.",
        call("read_note", identifier="notes/doc"),
        "edit_note",
        identifier="Doc",
        operation="find_replace",
        find_text="nope",
        content="x",
    ),
    "section": Refusal(
        "section",
        'No section "Nope" in notes/doc. Its sections: ## One, ## Two, ## Two.',
        again(section="One"),
        "edit_note",
        identifier="Doc",
        operation="insert_after_section",
        section="Nope",
        content="x",
    ),
    "sections": Refusal(
        "section",
        'Section "Two" occurs 2 times in notes/doc (lines 3, 5). Make the headings unique, or use find_replace.',
        again(operation="find_replace", find_text="## Two\n\n", section=None),
        "edit_note",
        identifier="Doc",
        operation="replace_section",
        section="Two",
        content="x",
    ),
    "outside": Refusal(
        "outside",
        'Path must stay inside project notes: "../up". Use a relative path without "..".',
        again(directory="up"),
        "write_note",
        title="x",
        content="x",
        directory="../up",
    ),
    "locked": Refusal(
        "locked",
        'notes/locked is locked. Its owner can unlock it by removing "locked: true".',
        unlocked,
        "edit_note",
        identifier="Locked",
        operation="append",
        content="x",
    ),
    "timeframe": Refusal(
        "timeframe",
        'Time frame "a while" is not understood. Use e.g. 2h, 7d, 3 weeks, yesterday or 2026-11-01.',
        again(timeframe="3 weeks"),
        "recent_activity",
        timeframe="a while",
    ),
    "project": Refusal(
        "project_not_found",
        'No project "nobody". Projects: PROJECTS. Add one with create_memory_project.',
        again(project="Memories"),
        "search_notes",
        query="x",
        project="nobody",
    ),
    "not text": Refusal(
        "not_text",
        "latin.md is not valid UTF-8 text and was not changed. Convert it to UTF-8 first.",
        converted,
        "edit_note",
        identifier="latin.md",
        operation="append",
        content="x",
    ),
    "operation": Refusal(
        "invalid",
        "Parameter `operation` must be one of append, prepend, find_replace, replace_section, insert_before_section, "
        'insert_after_section; got "replace".',
        again(operation="append"),
        "edit_note",
        identifier="Doc",
        operation="replace",
        content="x",
    ),
}


@pytest.fixture
def desk(tools: Tools) -> Tools:
    tools.put("Doc.md", "## One\nsame\n## Two\nsame\n## Two\n\n")
    tools.put("deep/Heron plan.md", "text\n")
    tools.put("a/Twin.md", "first\n")
    tools.put("b/Twin.md", "second\n")
    tools.put("Locked.md", "---\nlocked: true\n---\ntext\n")
    tools.put("latin.md", b"caf\xe9\n")
    tools.put("x.md", "x\n", "memories")
    return tools


@pytest.mark.parametrize("name", REFUSALS)
def test_an_error_says_what_is_wrong_and_its_remedy_works(desk: Tools, name: str) -> None:
    refusal, before = REFUSALS[name], texts(desk.root())
    text = desk.refused(refusal.tool, refusal.code, **refusal.arguments)
    checksum = desk("read_note", identifier="notes/doc")["checksum"]
    projects = ", ".join(sorted(each.name for each in desk.memory.projects))
    assert text == refusal.text.replace("CHECKSUM", checksum).replace("PROJECTS", projects)
    assert texts(desk.root()) == before
    assert desk.memory.log() == []
    refusal.follow(desk, refusal)


FOLDERS = {
    "/": "the whole file system",
    "HOME": "home folder",
    "HOME/.ssh": "hidden",
    "MEMORY": "memory home",
    "MEMORY/notes": "memory home",
    "relative/path": "absolute",
    "FILE": "not a folder",
    "WORK": "project work",
    "WORK/in": "project work",
    "BASE": "",
}


@pytest.mark.parametrize(("folder", "reason"), FOLDERS.items())
def test_a_folder_that_cannot_be_a_project_is_refused_with_the_reason(
    desk: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, reason: str
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    (tmp_path / "file").write_text("x")
    desk("create_memory_project", project_name="work", project_path=str(tmp_path / "around/work"))
    places = {
        "HOME": user,
        "MEMORY": desk.memory.home,
        "FILE": tmp_path / "file",
        "WORK": tmp_path / "around/work",
        "BASE": tmp_path / "around",
    }
    given = re.sub(r"^[A-Z]+", lambda match: str(places[match[0]]), folder)
    text = desk.refused("create_memory_project", "project_refused", project_name="new", project_path=given)
    assert text.startswith(f"Cannot use {given} as a project: ")
    assert reason in text
    assert {each.name for each in desk.memory.projects} == {
        *desk.memory.settings.projects,
        "categories",
        "memories",
        "notes",
        "graph",
        "banks",
        "kv",
    }
    made = desk("create_memory_project", project_name="new", project_path=str(user / "free"))
    assert (made["action"], made["path"]) == ("created", str(user / "free"))


def test_names_of_projects_are_checked(desk: Tools, tmp_path: Path) -> None:
    for name in ("", " ", "a/b", "a:b", "..", "x" * 65, "a\nb", "a\0b", "*"):
        text = desk.refused("create_memory_project", "invalid", project_name=name, project_path=str(tmp_path / "new"))
        assert "`project_name`" in text
    for name in ("notes", "KV", "Categories"):
        desk.refused("create_memory_project", "exists", project_name=name, project_path=str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    made = desk("create_memory_project", project_name="My 笔记 v1.2_x-y", project_path=str(tmp_path / "new"))
    for _ in range(2):
        same = desk("create_memory_project", project_name="my 笔记 v1.2_x-y", project_path=str(tmp_path / "new"))
        assert same == {**made, "action": "unchanged"}


def test_built_in_projects_stay_and_files_of_removed_ones_too(desk: Tools, tmp_path: Path) -> None:
    desk("create_memory_project", project_name="work", project_path=str(tmp_path / "work"), set_default=True)
    desk("write_note", title="Kept", content="x")
    assert desk("delete_project", project_name="Work") == {
        "action": "removed",
        "name": "work",
        "path": str(tmp_path / "work"),
    }
    assert list(texts(tmp_path / "work")) == ["Kept.md"]
    assert [each.name for each in desk.memory.projects if each.default] == ["notes"]
    desk.refused("delete_project", "invalid", project_name="notes")
    desk.refused("delete_project", "project_not_found", project_name="work")
    desk.refused("delete_project", "invalid", project_name="memories", delete_notes=True)


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "disk"), (errno.EROFS, "read-only"), (errno.EACCES, "permission")]
)
@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_refuses_is_told_in_plain_words(
    desk: Tools, monkeypatch: pytest.MonkeyPatch, call: str, code: int, words: str
) -> None:
    before = texts(desk.root())

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_note", {"title": "New", "content": "x"}),
        ("edit_note", {"identifier": "Doc", "operation": "append", "content": "x"}),
        ("move_note", {"identifier": "Doc", "destination_path": "to/Doc"}),
        ("delete_note", {"identifier": "Doc"}),
    ]
    for tool, arguments in calls:
        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuse)
            reply = desk.call(tool, **arguments)
        if call == "rename" and tool == "delete_note":
            desk.memory.undo()
            continue
        assert reply.is_error, tool
        assert reply.data["code"] == "storage"
        assert words in reply.text
        assert not re.search(r"Errno|Error|Traceback|/home/", reply.text)
        assert texts(desk.root()) == before
    for tool, arguments in calls:
        desk(tool, **arguments)


def test_errors_name_no_place_of_this_machine_and_no_fault_of_ours(desk: Tools, tmp_path: Path) -> None:
    for refusal in REFUSALS.values():
        text = desk.refused(refusal.tool, refusal.code, **refusal.arguments)
        assert str(tmp_path) not in text
        assert not re.search(r"Errno|\w+Error|Traceback|sqlite|fts5", text)


def test_an_unknown_parameter_is_named_with_the_known_ones(desk: Tools) -> None:
    for tool in desk.registry.tools.values():
        if tool.name == "memory":
            continue
        required = dict.fromkeys(tool.schema.get("required", ()), "7d") | {"operation": "append"}
        required = {name: value for name, value in required.items() if name in tool.schema["properties"]}
        text = desk.refused(tool.name, "invalid", **required, surprise=1)
        assert "`surprise`" in text
        assert all(name in text for name in tool.schema["properties"])
