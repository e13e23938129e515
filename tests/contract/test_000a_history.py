"""Contract 000a, 12.6: what the memory tool replaced or deleted comes back with `memory undo`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anthropic.lib.tools import ToolError

from contract.home_kinds import prepared
from contract.memory_tool import shape
from contract.tables import tables
from memoranda.anthropic import MemoryTool
from serve.process import connected, run_memory

TABLES = tables("memory_history")

FILES = {
    "a.md": "\ufeff---\ntitle: [broken\n---\none\r\ntwo\rthree\u2028\n\n".encode(),
    "bytes.bin": b"caf\xe9\0\xff",
    "empty.md": b"",
    "folder/b.md": b"- [fact] zebra #t\n- knows [[a]]\n",
    "folder/.hidden": b"hidden\n",
    "folder/deep/er/c.md": b"no final newline",
    "folder/node_modules/d.js": b"d\n",
    "folder/bytes.bin": b"\xfe\xff",
}
CHANGES = TABLES["changes"]


def filled(home: Path) -> Path:
    """The memories folder with files of every kind."""
    root = home / "memories"
    for name, data in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "folder" / "void").mkdir()
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
        # A folder that comes back has the mode of a new one
        folder.chmod(0o700)
    (root / "a.md").chmod(0o644)
    (root / "folder" / "b.md").chmod(0o640)
    os.symlink("folder/b.md", root / "link")
    os.symlink("../nothing", root / "folder" / "link")
    return root


@pytest.fixture
def tool(terminal) -> Iterator[MemoryTool]:
    """The tool on the terminal's home, filled."""
    filled(terminal.home)
    tool = MemoryTool(terminal.home, agent="a")
    yield tool
    tool.close()


@pytest.mark.promise("000a-12.6")
@pytest.mark.parametrize("change", CHANGES)
def test_undo_brings_back_every_byte_mode_and_name(terminal, tool, change):
    root = terminal.home / "memories"
    before = shape(root)
    tool.call(CHANGES[change])
    after = shape(root)
    assert after != before
    undone = terminal.ok("undo")
    assert undone.startswith("Undid #1: ")
    assert shape(root) == before
    terminal.ok("undo", "2")
    assert shape(root) == after
    assert len(terminal("log", "--json").json["entries"]) == 3


@pytest.mark.promise("000a-12.6")
def test_changes_are_taken_back_one_by_one_newest_first(terminal, tool):
    root = terminal.home / "memories"
    states = [shape(root)]
    for change in (
        "create over text",
        "insert at the end",
        "create over an empty file",
        "rename a folder",
        "delete a link",
    ):
        tool.call(CHANGES[change])
        states.append(shape(root))
    for state in reversed(states[:-1]):
        terminal.ok("undo")
        assert shape(root) == state
    assert terminal("undo").status == 1
    assert shape(root) == states[0]


@pytest.mark.promise("000a-12.6")
def test_the_log_names_command_file_and_agent_and_a_deleted_folder_is_one_entry(terminal, tool):
    tool.call(CHANGES["delete a folder"])
    tool.call(CHANGES["create over text"])
    entries = terminal("log", "--json").json["entries"]
    assert [
        (entry["verb"], entry["project"], entry["path"], entry["agent"], entry["face"])
        for entry in entries
    ] == [
        ("create", "memories", "a.md", "a", "anthropic"),
        ("delete", "memories", "folder/", "a", "anthropic"),
    ]


@pytest.mark.promise("000a-12.6")
def test_a_failed_command_leaves_no_entry(terminal, tool):
    root = terminal.home / "memories"
    before = shape(root)
    for failing in TABLES["failing"]:
        with pytest.raises(ToolError):
            tool.call(failing)
    assert shape(root) == before
    assert terminal("log", "--json").json["entries"] == []


@pytest.mark.promise("000a-12.6")
def test_clearing_everything_is_one_change_that_undo_takes_back(terminal, tool):
    root = terminal.home / "memories"
    before = shape(root)
    assert tool.clear_all_memory() == "All memory cleared"
    assert shape(root) == {}
    terminal.ok("undo")
    assert shape(root) == before


@pytest.mark.promise("000a-12.6")
def test_undo_by_another_process_is_seen_by_a_running_server_at_once(tmp_path):
    root = filled(prepared(tmp_path / "home"))
    before = shape(root)
    view = {"command": "view", "path": "/memories/folder/b.md"}
    with connected(tmp_path / "home") as server:
        viewed = server.text("memory", view)
        server.text("memory", CHANGES["delete a folder"])
        assert server.call("memory", view)["isError"]
        assert (
            server.call("search_notes", {"query": "zebra", "project": "memories"})[
                "structuredContent"
            ]["total"]
            == 0
        )
        run_memory(tmp_path / "home", "undo")
        assert server.text("memory", view) == viewed
        results = server.call("search_notes", {"query": "zebra", "project": "memories"})[
            "structuredContent"
        ]["results"]
        assert [hit["file_path"] for hit in results] == ["folder/b.md"]
    assert shape(root) == before
