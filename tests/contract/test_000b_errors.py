"""Contract 000b, 12.12: each error's text and code, that nothing changed, and that the step it
names works.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest

from contract.home_kinds import DISK, VAULT, place_for
from contract.note_tools import Tools, texts
from contract.tables import tables
from editing import replace_in
from memoranda.ledger import execution
from memoranda.ledger.database import LedgerDatabase, LedgerRefused
from memoranda.sources.files import reason

TABLES = tables("note_errors")

pytestmark = pytest.mark.promise("000b-12.12")

REFUSALS = TABLES["refusals"]
"""Calls that are refused: code and whole text, and what the text says to do next."""


def follow(tools: Tools, case: dict[str, Any]) -> None:
    """Do what the text of a refusal says."""
    kind, *words = case["then"]
    changed: dict[str, Any] = {}
    if kind == "call":
        tools(words[0], **words[1])
        return
    if kind == "again":
        changed = words[0]
    elif kind == "unlocked":
        file = tools.root() / "Locked.md"
        replace_in(file, "locked: true\n", "")
    elif kind == "reread":
        changed = {"expected_checksum": tools("read_note", identifier="notes/doc")["checksum"]}
    else:
        assert kind == "converted"
        file = tools.root() / "latin.md"
        file.write_bytes(file.read_bytes().decode("latin-1").encode())
    tools(case["tool"], **case["arguments"] | changed)


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
    refusal = REFUSALS[name]
    before = texts(desk.root())
    changes = len(desk.memory.log())
    text = desk.refused(refusal["tool"], refusal["code"], **refusal["arguments"])
    checksum = desk("read_note", identifier="notes/doc")["checksum"]
    projects = ", ".join(sorted(project.name for project in desk.memory.projects))
    assert text == refusal["text"].replace("CHECKSUM", checksum).replace("PROJECTS", projects)
    assert texts(desk.root()) == before
    assert len(desk.memory.log()) == changes
    follow(desk, refusal)


FOLDERS = TABLES["folders"]


@pytest.mark.folder_home(VAULT)
@pytest.mark.parametrize(("folder", "reason"), FOLDERS.items())
def test_a_folder_that_cannot_be_a_project_is_refused_with_the_reason(
    desk, tmp_path, monkeypatch, folder, reason
):
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
    folder_given = re.sub(r"^[A-Z]+", lambda match: str(places[match[0]]), folder)
    text = desk.refused(
        "create_memory_project", "project_refused", project_name="new", project_path=folder_given
    )
    assert text.startswith(f"Cannot use {folder_given} as a project: ")
    assert reason in text
    assert {project.name for project in desk.memory.projects} == {
        *desk.memory.settings.projects,
        "categories",
        "memories",
        "notes",
        "graph",
        "banks",
        "kv",
    }
    created = desk("create_memory_project", project_name="new", project_path=str(user / "free"))
    assert (created["action"], created["path"]) == ("created", str(user / "free"))


def test_names_of_projects_are_checked(desk: Tools, tmp_path: Path) -> None:
    for name in ("", " ", "a/b", "a:b", "..", "x" * 65, "a\nb", "a\0b", "*"):
        text = desk.refused(
            "create_memory_project",
            "invalid",
            project_name=name,
            project_path=str(tmp_path / "new"),
        )
        assert "`project_name`" in text
    for name in ("notes", "KV", "Categories"):
        place = str(place_for(desk.memory, name, tmp_path / "new"))
        desk.refused("create_memory_project", "exists", project_name=name, project_path=place)
    assert not (tmp_path / "new").exists()
    place = str(place_for(desk.memory, "My 笔记 v1.2_x-y", tmp_path / "new"))
    created = desk("create_memory_project", project_name="My 笔记 v1.2_x-y", project_path=place)
    for _ in range(2):
        same = desk("create_memory_project", project_name="my 笔记 v1.2_x-y", project_path=place)
        assert same == {**created, "action": "unchanged"}


def test_built_in_projects_stay_and_files_of_removed_ones_too(desk: Tools, tmp_path: Path) -> None:
    place = place_for(desk.memory, "work", tmp_path / "work")
    desk("create_memory_project", project_name="work", project_path=str(place), set_default=True)
    desk("write_note", title="Kept", content="x")
    assert desk("delete_project", project_name="Work") == {
        "action": "removed",
        "name": "work",
        "path": str(place),
    }
    assert list(texts(place)) == ["Kept.md"]
    assert [project.name for project in desk.memory.projects if project.default] == ["notes"]
    desk.refused("delete_project", "invalid", project_name="notes")
    desk.refused("delete_project", "project_not_found", project_name="work")
    desk.refused("delete_project", "invalid", project_name="memories", delete_notes=True)


@pytest.mark.folder_home(DISK)
@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "disk"), (errno.EROFS, "read-only"), (errno.EACCES, "permission")],
)
@pytest.mark.parametrize("place", ["file", "ledger"])
def test_a_disk_that_refuses_is_told_in_plain_words(desk, monkeypatch, place, code, words):
    before = texts(desk.root())
    error = OSError(code, os.strerror(code))

    def refuse(*_: Any, **__: Any) -> None:
        raise error

    def refuse_ledger(*_: Any, **__: Any) -> None:
        raise LedgerRefused(reason(error))

    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_note", {"title": "New", "content": "x"}),
        ("edit_note", {"identifier": "Doc", "operation": "append", "content": "x"}),
        ("move_note", {"identifier": "Doc", "destination_path": "to/Doc"}),
        ("delete_note", {"identifier": "Doc"}),
    ]
    for tool, arguments in calls:
        with monkeypatch.context() as patch:
            if place == "ledger":
                patch.setattr(LedgerDatabase, "transaction", refuse_ledger)
            else:
                patch.setattr(os, "link", refuse)
                patch.setattr(os, "rename", refuse)
                patch.setattr(execution, "exchange", refuse)
            reply = desk.call(tool, **arguments)
        assert reply.is_error, tool
        assert reply.data["code"] == "storage"
        assert words in reply.text
        assert not re.search(r"Errno|Error|Traceback|/home/", reply.text)
        assert texts(desk.root()) == before
    for tool, arguments in calls:
        desk(tool, **arguments)


def test_an_unknown_parameter_is_named_with_the_known_ones(desk: Tools) -> None:
    for tool in desk.registry.tools.values():
        if tool.name == "memory":
            continue
        required = dict.fromkeys(tool.schema.get("required", ()), "7d") | {"operation": "append"}
        required = {
            name: value for name, value in required.items() if name in tool.schema["properties"]
        }
        text = desk.refused(tool.name, "invalid", **required, surprise=1)
        assert "`surprise`" in text
        for name in tool.schema["properties"]:
            assert name in text
