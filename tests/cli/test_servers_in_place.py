"""Stores of other servers that `memory mcp --as` uses in place, beside the other interfaces."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from contract.mcp_server import Server


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a person who used three other servers, with what each keeps."""
    person = tmp_path / "person"
    _lay(person / ".claude-desktop/memory/global/default/preferences.md", "# Old\n\nLikes cranes\n")
    _lay(person / "basic-memory/Heron.md", "---\ntitle: Heron\n---\nNests in trees\n")
    _lay(person / ".agent-memory/default.json", '[{"key": "bird", "value": "stork"}]')
    monkeypatch.setenv("HOME", str(person))
    for name in ("XDG_CONFIG_HOME", "BASIC_MEMORY_CONFIG_DIR", "BASIC_MEMORY_HOME"):
        monkeypatch.delenv(name, raising=False)
    return person


def _lay(file: Path, text: str) -> None:
    """Write a file, and make its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _commands_of_doctor(terminal: Any) -> dict[str, str]:
    """The commands that `memory doctor` names for stores in place, by the folder of the store."""
    commands: dict[str, str] = {}
    for line in terminal("doctor").out.splitlines():
        if line.startswith("info in_place "):
            folder = line.removeprefix("info in_place ").split(": ")[0]
            commands[folder] = line.rpartition(": memory ")[2]
    return commands


def test_doctor_names_a_command_for_each_store_that_one_preset_alone_sees(
    terminal: Any, person: Path
) -> None:
    banks = person / ".claude-desktop/memory"
    commands = _commands_of_doctor(terminal)
    assert commands == {
        f"{banks}": f"project add 'memory bank' {banks}",
        f"{person}/basic-memory": f"project add main {person}/basic-memory",
        f"{person}/.agent-memory": f"import --from agent-memory {person}/.agent-memory",
    }
    assert "0 problems" in terminal("doctor").out


def test_what_doctor_names_makes_every_store_found_by_the_search_command(
    terminal: Any, person: Path
) -> None:
    for command in _commands_of_doctor(terminal).values():
        terminal.ok(*shlex.split(command))
    for word in ("cranes", "trees", "stork"):
        assert "Found: 1 notes" in terminal.ok("search", word)
    assert _commands_of_doctor(terminal) == {}


def _search_without_hits(terminal: Any) -> str:
    """The notice of a search that finds nothing."""
    return terminal("search", "walrus").err


def test_a_folder_of_entries_is_named_until_the_notes_have_its_content(
    terminal: Any, person: Path
) -> None:
    folder = f"{person}/.agent-memory"
    assert folder in _search_without_hits(terminal)
    terminal.ok("import", "--from", "agent-memory", folder)
    assert folder not in _search_without_hits(terminal)


@pytest.mark.parametrize(
    "rows",
    [
        '[{"key": "bird", "value": "stork"}, {"key": "fish", "value": "carp"}]',
        '[{"key": "bird", "value": "heron", "created_at": "2100-01-01T00:00:00Z"}]',
        "[{",
    ],
)
def test_a_folder_of_entries_with_more_than_was_imported_is_named_again(
    terminal: Any, person: Path, rows: str
) -> None:
    folder = f"{person}/.agent-memory"
    terminal.ok("import", "--from", "agent-memory", folder)
    _lay(person / ".agent-memory/default.json", rows)
    assert folder in _search_without_hits(terminal)


def test_a_folder_of_entries_that_were_deleted_here_is_named_again(
    terminal: Any, person: Path
) -> None:
    folder = f"{person}/.agent-memory"
    terminal.ok("import", "--from", "agent-memory", folder)
    terminal.ok("delete", "kv/default/bird")
    assert folder in _search_without_hits(terminal)


def test_a_bank_in_a_project_stays_the_bank_of_its_server_and_all_find_what_it_writes(
    terminal: Any, person: Path
) -> None:
    banks = person / ".claude-desktop/memory"
    terminal.ok("project", "add", "old banks", str(banks))
    with Server("--as", "memory-bank", HOME=str(person), MEMORY_HOME=str(terminal.home)) as server:
        ids = [bank["id"] for bank in server.data("list")["global"]]
        assert ids == ["default"]
        server.data(
            "update",
            bank_type="global",
            bank_id="default",
            target_file="preferences.md",
            operation="append",
            content="Likes pelicans",
        )
    found = json.loads(terminal.ok("search", "pelicans", "--json"))
    paths = [memory["project"] for memory in found["memories"]]
    assert paths == ["old banks"]


def test_a_search_that_finds_nothing_says_which_stores_it_left_out(
    terminal: Any, person: Path
) -> None:
    ran = terminal("search", "cranes")
    assert ran.out == "No matching memories found.\n"
    left_out = f"{person}/.claude-desktop/memory, {person}/basic-memory, {person}/.agent-memory"
    assert ran.err == f"Not searched: {left_out}. memory doctor says how to have it searched.\n"


def test_a_search_that_finds_something_names_no_store_in_place(terminal: Any, person: Path) -> None:
    terminal.write("Cranes fly")
    assert terminal("search", "cranes").err == ""


def test_an_agent_is_not_told_which_stores_there_are(terminal: Any, person: Path) -> None:
    assert terminal("--agent", "claude", "search", "cranes").err == ""


@pytest.mark.parametrize("way", ["configuration", "variable", "working folder"])
def test_a_graph_file_that_the_search_command_does_not_see_is_named(
    terminal: Any, person: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    file = person / "work/.thoughtbox/memory.jsonl"
    _lay(file, '{"type":"entity","name":"Ada","entityType":"p","observations":["Likes owls"]}')
    if way == "configuration":
        terminal.ok("config", "set", "graph.file", str(file))
    elif way == "variable":
        monkeypatch.setenv("MEMORY_FILE_PATH", str(file))
    else:
        monkeypatch.chdir(person / "work")
    command = _commands_of_doctor(terminal)[str(file)]
    terminal.ok(*shlex.split(command))
    assert "Found: 1 notes" in terminal.ok("search", "owls")
    assert str(file) not in _commands_of_doctor(terminal)


def test_no_other_hidden_folder_becomes_a_project(terminal: Any, person: Path) -> None:
    _lay(person / ".config/secret/Note.md", "x")
    for folder in (person / ".config/secret", person / ".claude-desktop", person / ".agent-memory"):
        ran = terminal("project", "add", "hidden", str(folder))
        assert ran.status == 1
        assert "it is hidden below your home folder" in ran.error


def test_an_agent_cannot_add_a_hidden_bank(terminal: Any, person: Path) -> None:
    banks = str(person / ".claude-desktop/memory")
    terminal("--agent", "claude", "project", "add", "banks here", banks)
    assert "banks here" not in terminal.ok("project", "list")
