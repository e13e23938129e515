"""Memory banks from the shell, and in place of another server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from contract.mcp_server import Server
from memoranda.cli.presets import preset


def update(content: str, **more: Any) -> str:
    arguments = {
        "bank_type": "project",
        "bank_id": "p",
        "target_file": "readme.md",
        "content": content,
    }
    return json.dumps({**arguments, **more})


def test_the_log_tells_what_was_said_of_an_update(terminal: Any) -> None:
    terminal.ok(
        "call", "update", update("x", trigger_type="commit", conversation_id="a\nb", update_count=3)
    )
    terminal.ok("call", "update", update("y"))
    plain, remark = terminal.ok("log").splitlines()
    assert plain.endswith(" append     owner    banks/projects/p/readme.md")
    assert remark.endswith(
        " banks/projects/p/readme.md (+8 more) (trigger: commit, conversation: a b, update: 3)"
    )
    entries = json.loads(terminal.ok("log", "--json"))["entries"]
    assert "details" not in entries[0]
    assert entries[1]["details"] == {"trigger": "commit", "conversation": "a\nb", "update": "3"}


def test_the_preset_takes_the_root_named_then_the_known_one_then_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    ours = preset("memory-bank", {})
    assert ours.projects == {}
    assert ours.tools == ("bank",)
    known_root = tmp_path / ".claude-desktop" / "memory"
    known_root.mkdir(parents=True)
    known_one = preset("memory-bank", {})
    assert known_one.projects == {"banks": str(known_root)}
    named_one = preset("memory-bank", {"MEMORY_BANK_ROOT": "/banks"})
    assert named_one.projects == {"banks": "/banks"}


def test_an_existing_root_is_used_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    user = tmp_path / "user"
    user.mkdir()
    theirs = {
        "projects/old_one/readme.md": "# Old\r\n",
        "projects/old_one/cache.json": "{}",
        "global/default/context.md": "c",
    }
    for path, text in theirs.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    monkeypatch.delenv("MEMORY_AGENT", raising=False)
    with Server("--as", "memory-bank", HOME=str(user), MEMORY_BANK_ROOT=str(root)) as server:
        tools = server.ask("tools/list")["result"]["tools"]
        names = [tool["name"] for tool in tools]
        assert names == ["activate", "list", "update"]
        listed = server.data("list")
        ids = [project["id"] for project in listed["projects"]]
        assert ids == ["old_one"]
        assert listed["projects"][0]["description"] == "Project Old One"
        data = server.data("activate", bank_type="project", bank_id="old_one")
        assert data["content"] == {"readme.md": "# Old\r\n"}
        assert server.close() == 0
    contents = {
        str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()
    }

    assert contents == {path: text.encode() for path, text in theirs.items()}


@pytest.mark.parametrize("root", [None, "new/root"])
def test_a_root_that_is_not_there_is_made_by_the_first_bank(
    tmp_path: Path, root: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMORY_AGENT", "MEMORY_HOME", "MEMORY_BANK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    if root:
        root_variable = {"MEMORY_BANK_ROOT": str(tmp_path / root)}
    else:
        root_variable = {}
    with Server("--as", "memory-bank", HOME=str(tmp_path), **root_variable) as server:
        server.data("list")
        place = tmp_path / (root or ".memory/banks")
        assert not place.exists()
        server.data("activate", bank_type="global", bank_id="auto")
        assert sorted(os.listdir(place / "global/default")) == [
            ".bank.json",
            "context.md",
            "preferences.md",
            "references.md",
        ]
