"""A project that only some agents may use is not there for the others (docs/obsidian.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

HIDDEN = "Quokka"
# No project has this name.
UNKNOWN = "Zuokka"
COMMANDS = (
    ("list", "--project", "NAME"),
    ("list", "--project", "NAME-"),
    ("search", "words", "--project", "NAME"),
    ("export", "--project", "NAME"),
    ("read", "NAME/Plan.md"),
    ("read", "NAME: Plan"),
    ("log", "NAME/Plan.md"),
    ("diff", "NAME/Plan.md"),
    ("restore", "NAME/Plan.md"),
    ("delete", "NAME/Plan.md"),
    ("archive", "NAME/Plan.md"),
    ("project", "remove", "NAME"),
    ("undo", "--by", "bob", "--project", "NAME"),
)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read_note", {"identifier": "Plan", "project": "NAME"}),
    ("read_note", {"identifier": "memory://NAME/plan"}),
    ("edit_note", {"identifier": "Plan", "project": "NAME", "operation": "append", "content": "x"}),
    ("write_note", {"title": "T", "content": "x", "project": "NAME"}),
    ("delete_note", {"identifier": "Plan", "project": "NAME"}),
    ("delete_note", {"identifier": "NAME", "is_directory": True, "project": "NAME"}),
    ("move_note", {"identifier": "Nothing", "destination_path": "NAME/x.md", "project": "NAME"}),
    ("list_directory", {"dir_name": "/", "project": "NAME"}),
    ("search_notes", {"query": "words", "project": "NAME"}),
    ("recent_activity", {"project": "NAME"}),
    ("build_context", {"url": "memory://NAME/plan"}),
    ("delete_project", {"project_name": "NAME"}),
)


@pytest.fixture
def hidden(terminal: Any, tmp_path: Path) -> Any:
    """The command, in a home with a project that only Bob may use."""
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Plan.md").write_text("words\n")
    terminal.ok("project", "add", HIDDEN, str(folder), "--agents", "bob")
    (terminal.home / "notes").mkdir()
    (terminal.home / "notes" / "Open.md").write_text("words\n")
    return terminal


def answer(terminal: Any, name: str, argv: tuple[str, ...]) -> tuple[int, str, str]:
    """What an agent that may not use the project is told of a name, with NAME in its place."""
    ran = terminal("--agent", "alice", *[word.replace("NAME", name) for word in argv])
    return ran.status, ran.out.replace(name, "NAME"), ran.err.replace(name, "NAME")


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_a_hidden_project_is_answered_as_one_that_is_not_there(
    hidden: Any, argv: tuple[str, ...]
) -> None:
    assert answer(hidden, HIDDEN, argv) == answer(hidden, UNKNOWN, argv)


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_tool_answers_a_hidden_project_as_one_that_is_not_there(
    hidden: Any, tool: str, arguments: dict[str, Any]
) -> None:
    argv = ("call", tool, json.dumps(arguments))
    assert answer(hidden, HIDDEN, argv) == answer(hidden, UNKNOWN, argv)


def test_a_refusal_names_no_hidden_project_to_others_and_names_it_to_those_who_may_use_it(
    hidden: Any,
) -> None:
    argv = ("list", "--project", "Nothing")
    assert HIDDEN not in hidden("--agent", "alice", *argv).err
    assert HIDDEN in hidden("--agent", "bob", *argv).err
    assert HIDDEN in hidden(*argv).err


def test_a_move_into_a_folder_called_like_a_hidden_project_is_a_move(hidden: Any) -> None:
    arguments = {"identifier": "Open", "destination_path": f"{HIDDEN}/Open.md"}
    ran = hidden("--agent", "alice", "call", "move_note", json.dumps(arguments))

    assert ran.status == 0
    assert (hidden.home / "notes" / HIDDEN / "Open.md").exists()


def test_a_shell_completes_projects_that_the_agent_may_use(
    hidden: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_MEMORY_COMPLETE", "bash_complete")

    def completed(agent: str) -> str:
        monkeypatch.setenv("COMP_WORDS", f"memory --agent {agent} list --project Q")
        monkeypatch.setenv("COMP_CWORD", "5")
        return hidden().out

    assert HIDDEN not in completed("alice")
    assert HIDDEN in completed("bob")


LINKS = ("[[NAME::Plan]]", "[[NAME::Plan#Next]]", "[[NAME::Gone|shown]]")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("argv", [("doctor",), ("project", "check", "notes")], ids=" ".join)
def test_a_link_into_a_hidden_project_is_listed_as_one_into_a_project_that_is_not_there(
    hidden: Any, link: str, argv: tuple[str, ...]
) -> None:
    note = hidden.home / "notes" / "Link.md"
    note.write_text(f"see {link.replace('NAME', HIDDEN)}\n")
    answer_for_hidden = answer(hidden, HIDDEN, argv)
    note.write_text(f"see {link.replace('NAME', UNKNOWN)}\n")
    assert answer_for_hidden == answer(hidden, UNKNOWN, argv)
    assert "[[NAME::" in answer_for_hidden[1]


@pytest.mark.parametrize("link", LINKS)
def test_a_relation_into_a_hidden_project_is_told_as_one_into_a_project_that_is_not_there(
    hidden: Any, link: str
) -> None:
    note = hidden.home / "notes" / "Link.md"
    arguments = json.dumps({"url": "memory://notes/link", "output_format": "json"})
    relations = []
    for name in (HIDDEN, UNKNOWN):
        note.write_text(f"see {link.replace('NAME', name)}\n")
        _, out, _ = answer(hidden, name, ("call", "build_context", arguments))
        relations.append(json.loads(out)["results"][0]["relations"])
    assert relations[0] == relations[1]
    assert relations[0][0]["target"].startswith("NAME::")
