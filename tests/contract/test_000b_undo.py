"""Contract 000b, 12.15: a folder deleted or moved by a tool comes back whole with `memory undo`."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from contract.home_kinds import with_projects
from contract.note_tools import Tools, put, seen, texts
from memoranda import CannotUndo
from memoranda.engine import open_session

pytestmark = pytest.mark.promise("000b-12.15")

SAMPLES = Path(__file__).parents[2] / "samples" / "vault"
EXTRA = {
    "team/picture.png": b"\x89PNG\x00",
    "team/crlf.md": b"---\r\ntitle: x\r\n---\r\ntext\r\n",
    "team/latin1.md": b"caf\xe9\n",
    "team/sub/deep/er/note.md": b"deep [[../../../picture]]\n",
    "team/sub/.hidden": b"hidden\n",
    "team/empty.md": b"",
}


@pytest.fixture
def vault(tmp_path: Path):
    root = tmp_path / "vault"
    shutil.copytree(SAMPLES, root)
    for name, data in EXTRA.items():
        put(root / name, data)
    (root / "team/crlf.md").chmod(0o640)
    (root / "team/hollow/er").mkdir(parents=True)
    with open_session(tmp_path / "home", **with_projects(tmp_path / "home", vault=root)) as memory:
        yield Tools(memory)


def answers(tools: Tools) -> list[object]:
    """What the tools say of the vault, times of change left out."""
    listed = tools("list_directory", project="vault", depth=10, page_size=200)["entries"]
    (context,) = tools("build_context", url="vault/team/weekly-rhythm", depth=2)["results"]
    return [
        [(entry["path"], entry.get("permalink"), entry.get("notes")) for entry in listed],
        sorted(tools.found("review", project="vault")),
        sorted(
            (relation["direction"], relation["type"], relation["target"], relation["permalink"])
            for relation in context["relations"]
        ),
    ]


def file_modes(root: Path) -> dict[str, int]:
    return {
        name: mode for name, (mode, _, content) in seen(root).items() if isinstance(content, bytes)
    }


def test_a_deleted_folder_comes_back_with_every_byte_and_mode(vault: Tools) -> None:
    root, before = vault.root("vault"), texts(vault.root("vault"))
    modes = file_modes(root)
    answers_before = answers(vault)
    deleted = vault("delete_note", identifier="team", is_directory=True, project="vault")
    assert (
        deleted["notes"] == len(deleted["paths"]) == len(list((SAMPLES / "team").rglob("*.md"))) + 4
    )
    remaining = {"team/picture.png", "team/sub/.hidden"}
    names = {name for name in texts(root) if name.startswith("team/")}
    assert names == remaining
    assert vault.found("review", project="vault").isdisjoint(deleted["paths"])
    entries = vault("list_directory", project="vault", page_size=200)["entries"]
    assert entries != answers_before[0]
    vault.memory.undo()
    assert texts(root) == before
    assert file_modes(root) == modes
    assert answers(vault) == answers_before


def test_a_moved_folder_comes_back_as_it_was(vault: Tools) -> None:
    root, before, answers_before = vault.root("vault"), seen(vault.root("vault")), answers(vault)
    moved = vault(
        "move_note",
        identifier="team",
        destination_path="archive/2026/people",
        is_directory=True,
        project="vault",
        # Else other notes are written, and their times are other ones afterwards
        update_links=False,
    )
    assert moved["notes"] == len(list((SAMPLES / "team").rglob("*.md"))) + 4
    now = texts(root)
    assert not any(name.startswith("team/") for name in now)
    assert {
        name.removeprefix("archive/2026/people/"): data
        for name, data in now.items()
        if name.startswith("archive/")
    } == {
        name.removeprefix("team/"): file_state[2]
        for name, file_state in before.items()
        if name.startswith("team/") and isinstance(file_state[2], bytes)
    }
    assert (
        vault("read_note", identifier="vault/archive/2026/people/weekly-rhythm")["title"]
        == "Weekly rhythm"
    )
    vault.memory.undo()
    after = seen(root)
    for folder in (".", "archive", "archive/2026"):
        before.pop(folder, None), after.pop(folder, None)
    assert after == before
    assert answers(vault) == answers_before


def test_several_changes_are_undone_one_after_the_other(vault: Tools) -> None:
    root, before = vault.root("vault"), texts(vault.root("vault"))
    vault(
        "move_note",
        identifier="life",
        destination_path="guides",
        is_directory=True,
        project="vault",
    )
    vault(
        "edit_note",
        identifier="vault/guides/rye-sourdough",
        operation="append",
        content="onemoreword\n",
    )
    vault("delete_note", identifier="guides", is_directory=True, project="vault")
    vault("write_note", title="Rye sourdough", content="new", directory="guides", project="vault")
    vault(
        "move_note",
        identifier="vault/team/weekly-rhythm",
        destination_path="guides/",
        project="vault",
    )
    for _ in range(5):
        vault.memory.undo()
    assert texts(root) == before
    assert vault.found("onemoreword", project="vault") == set()


def test_an_undo_is_refused_when_something_else_lies_there_now(vault: Tools) -> None:
    root = vault.root("vault")
    vault("delete_note", identifier="team", is_directory=True, project="vault")
    number = vault.memory.log()[0].number
    put(root / "team/Weekly rhythm.md", "by another program\n")
    before = texts(root)
    with pytest.raises(CannotUndo, match=r"vault/team/Weekly rhythm\.md changed later"):
        vault.memory.undo(number)
    assert texts(root) == before
    os.unlink(root / "team/Weekly rhythm.md")
    vault.memory.undo(number)
    assert (root / "team/Weekly rhythm.md").exists()


def test_the_command_the_reply_names_brings_it_back(terminal: Any) -> None:
    with open_session(terminal.home) as memory:
        tools = Tools(memory)
        for number in range(5):
            tools.put(f"box/{number}.md", f"text {number}\n")
        before = texts(tools.root())
        text = tools.text("delete_note", identifier="box", is_directory=True)
        tools("write_note", title="After", content="later\n")
        command = text[text.index("`memory ") + 1 : text.rindex("`")]
        assert re.match(r"Undid #\d: delete notes/box", terminal.ok(*command.split()[1:]))
        assert {
            name: data for name, data in texts(tools.root()).items() if name != "After.md"
        } == before
        assert tools.found("text") == set(before)
