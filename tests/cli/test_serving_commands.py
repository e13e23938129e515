"""mcp and call (contract 001, 16), presets (contract 000b, 10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memoranda
from cli.conftest import PROGRAM, run_process
from contract.mcp_server import Server
from memoranda.cli.presets import preset
from memoranda.errors import MemorandaError
from memoranda.faces import PRESETS


def test_a_call_of_a_tool_says_or_gives_as_json_what_it_did(terminal: Any) -> None:
    written = terminal.ok("call", "write_note", '{"title": "Tea", "content": "green"}')
    assert written.startswith("# Created note\n")
    reply = terminal("call", "read_note", "-", "--json", stdin='{"identifier": "tea"}').json
    assert reply["tool"] == "read_note"
    assert reply["is_error"] is False
    assert reply["text"].endswith("green\n")
    assert reply["structured"]["permalink"] == "notes/tea"


def test_a_tool_is_called_by_name_and_toolset(terminal: Any) -> None:
    terminal.ok("call", "write_note", '{"title": "Tea", "content": "green"}')
    output = terminal.ok("call", "recent_activity", "--tools", "notes")
    assert "Tea" in output


def test_the_memory_tool_is_called_as_any_other(terminal: Any) -> None:
    terminal.ok(
        "call", "memory", '{"command": "create", "path": "/memories/a.md", "file_text": "x"}'
    )
    text = (terminal.home / "memories" / "a.md").read_text()
    assert text == "x"


def test_a_tool_error_is_an_error_of_the_command(terminal: Any) -> None:
    ran = terminal("call", "read_note", '{"identifier": "nobody"}')
    assert ran.status == 1
    assert ran.out == ""
    assert ran.err.startswith("Error: Note not found in ")
    ran = terminal("call", "read_note", '{"identifier": "nobody"}', "--json")
    assert ran.status == 1
    assert ran.json["is_error"] is True
    assert ran.json["structured"]["code"] == "not_found"
    ran = terminal("call", "memory", '{"command": "view", "path": "/memories/none"}')
    assert ran.status == 1
    assert ran.err.count("Error") == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nope"], "tool not found: nope"),
        (["read_note", "--tools", "memory"], "tool not found: read_note"),
        (["read_note", "{"], "parse arguments: Expecting property name enclosed in double quotes"),
        (["read_note", "--tools", "nope"], 'Unknown toolset "nope".'),
        (["read_note", "[]"], "The arguments of read_note must be an object."),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(
    terminal: Any, argv: list[str], message: str
) -> None:
    ran = terminal("call", *argv)
    assert (ran.status, ran.out) == (1, "")
    assert ran.error.startswith(message)


def test_mcp_serves_the_default_toolsets_to_a_client_that_asks_and_goes(terminal: Any) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {
            "id": 3,
            "method": "tools/call",
            "params": {"name": "list_memory_projects", "arguments": {}},
        },
    ]
    requests = "".join(json.dumps({"jsonrpc": "2.0"} | line) + "\n" for line in lines).encode()
    # A real start
    process = run_process(*PROGRAM, "mcp", input=requests)
    assert (process.returncode, process.stderr) == (0, b"")
    answers = {
        answer["id"]: answer["result"] for answer in map(json.loads, process.stdout.splitlines())
    }
    assert answers[1]["serverInfo"]["version"] == memoranda.__version__
    assert {"memory", "write_note", "search_notes"} <= {
        tool["name"] for tool in answers[2]["tools"]
    }
    assert "kv" in str(answers[3])


@pytest.mark.parametrize("argv", [("--tools", "memory"), ("--as", "anthropic")])
def test_mcp_serves_the_toolsets_asked_for(terminal: Any, argv: tuple[str, ...]) -> None:
    with Server(*argv) as server:
        assert [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]] == ["memory"]


@pytest.mark.promise("000b-12.18")
@pytest.mark.parametrize("entry", ["path", {"path": "path"}])
def test_the_basic_memory_preset_serves_its_projects_and_leaves_them_alone(
    terminal: Any, tmp_path: Path, entry: Any
) -> None:
    vault = tmp_path / "vault"
    folder = tmp_path / "basic"
    vault.mkdir()
    folder.mkdir()
    (vault / "a.md").write_text("a\n")
    if isinstance(entry, dict):
        path = {"path": str(vault)}
    else:
        path = str(vault)
    config = folder / "config.json"
    config.write_text(
        json.dumps({"env": "dev", "projects": {"main": path}, "default_project": "main"})
    )
    before = {
        file: (file.read_bytes(), file.stat().st_mtime_ns) for file in (config, vault / "a.md")
    }
    with Server("--as", "basic-memory", BASIC_MEMORY_CONFIG_DIR=str(folder)) as server:
        tools = {tool["name"] for tool in server.ask("tools/list")["result"]["tools"]}
        text = server.data("list_memory_projects")["result"]
        assert server.close() == 0

    assert "memory" not in tools
    assert "write_note" in tools
    assert next(line for line in text.splitlines() if line.startswith("- ")).startswith(
        "- main (local) ["
    )
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in before} == before
    names = [path_in_folder.name for path_in_folder in folder.iterdir()]
    assert names == ["config.json"]
    names = [path_in_vault.name for path_in_vault in vault.iterdir()]
    assert names == ["a.md"]
    assert "main" not in terminal.ok("project", "list")


def test_a_basic_memory_that_was_never_configured_adds_nothing(tmp_path: Path) -> None:
    chosen = preset("basic-memory", {"BASIC_MEMORY_CONFIG_DIR": str(tmp_path)})
    assert (chosen.tools, dict(chosen.projects), chosen.default_project) == (("notes",), {}, None)


def test_a_project_of_basic_memory_takes_the_name_notes_and_no_other_of_ours(
    tmp_path: Path,
) -> None:
    config = {"projects": {"notes": "/n", "kv": "/k", "x": ""}, "default_project": "notes"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    chosen = preset("basic-memory", {"BASIC_MEMORY_CONFIG_DIR": str(tmp_path)})

    assert dict(chosen.projects) == {"notes": "/n", "kv@basic-memory": "/k"}
    assert chosen.default_project == "notes"


@pytest.mark.parametrize("text", ["{", "[]", '{"projects": []}'])
def test_a_basic_memory_configuration_nobody_can_read_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(MemorandaError, match=r"^load config: .*config\.json: "):
        preset("basic-memory", {"BASIC_MEMORY_CONFIG_DIR": str(tmp_path)})


def test_an_unknown_preset_lists_the_known_ones(terminal: Any) -> None:
    ran = terminal("mcp", "--as", "nope")
    assert (ran.status, ran.err) == (
        1,
        f'Error: unknown preset "nope"; presets: {", ".join(PRESETS)}\n',
    )
