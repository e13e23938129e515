"""The command over the whole memory, whoever wrote it and through whatever face (AMENDMENTS 1)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import tree
from cli.pseudo_terminal import shown

WRITTEN = {
    "memory": {
        "command": "create",
        "path": "/memories/shop.md",
        "file_text": "# Shop deploy process\nrun make deploy\n",
    },
    "write_note": {"title": "Auth", "folder": "shop", "content": "- [decision] JWT #auth"},
    "memory_create_entities": {
        "entities": [
            {"name": "Torvald", "entityType": "person", "observations": ["keeps the deploy key"]}
        ]
    },
    "memory_remember": {"key": "region", "value": "eu-north"},
}


@pytest.fixture
def home(terminal: Any) -> Any:
    """A home in which four faces and the command wrote."""
    for tool, arguments in WRITTEN.items():
        terminal.ok("call", tool, json.dumps(arguments), "--agent", "claude")
    terminal.write("prefers dark mode", "--category", "preferences")
    return terminal


def ids(text: str) -> list[str]:
    return [line[:8] for line in text.splitlines() if re.match(r"[0-9a-f]{8} ", line)]


def test_all_views_agree_on_what_is_there(home: Any) -> None:
    assert home.ok("list").endswith("Showing 5 of 5 notes\n")
    document = home("status", "--json").json
    assert document["notes"] == {"total": 5, "archived": 0, "traces": 0}
    document = home("status", "--json").json
    assert document["agents"] == {"claude": 4, "owner": 1}
    assert len(home.ok("export").splitlines()) == 5
    assert len(ids(home.ok("recent"))) == 5
    assert len(ids(home.ok("search", ""))) == 5
    assert home.ok("search", "deploy").count("\n") == 4


def test_each_id_in_a_list_names_that_note_to_every_command(home: Any) -> None:
    for ref in ids(home.ok("list")):
        home.ok("read", ref)
        home.ok("tag", ref, "--add", "seen")
        home.ok("pin", ref)
        home.ok("backlinks", ref)
        home.ok("archive", ref)
    ran = home("list")
    assert ran.out == "No memories found.\n"
    assert ran.err == "Not shown: 5 archived (--archived)\n"
    archived = ids(home.ok("list", "--archived"))
    assert len(archived) == 5
    for ref in archived:
        home.ok("restore", ref)
    assert len(ids(home.ok("list", "--tags", "seen"))) == 5
    assert home.ok("kv", "get", "region") == "eu-north\n"
    for ref in ids(home.ok("list")):
        home.ok("delete", ref)
    assert home.ok("list") == "No memories found.\n"


def test_a_project_narrows_and_several_add_up(home: Any) -> None:
    assert len(ids(home.ok("list", "--project", "kv"))) == 1
    assert len(ids(home.ok("list", "--project", "kv", "--project", "notes"))) == 2
    assert len(ids(home.ok("list", "--project", "kv", "--project", "notes", "-n", "1"))) == 1
    assert home.ok("search", "deploy", "--project", "categories").startswith("No matching")
    ran = home("list", "--project", "nope")
    assert ran.error.startswith("no such project: nope")


def test_traces_are_counted_and_shown_when_asked_for(home: Any) -> None:
    trace = home.home / "session-traces" / "codex" / "Session.md"
    trace.parent.mkdir(parents=True)
    trace.write_text("---\ntype: trace\n---\nAsked: deploy the shop\n")
    for words in (["list"], ["search", "deploy"], ["recent"]):
        ran = home(*words)
        assert "Asked" not in ran.out, words
        assert ran.err == "Not shown: 1 traces (--traces)\n", words
        assert "deploy the shop" in home.ok(*words, "--traces"), words

    document = home("status", "--json").json
    assert document["notes"]["traces"] == 1
    document = home("status", "--json").json
    assert "session-traces" not in document["projects"]
    assert "Asked" not in home.ok("export")


def test_what_is_exported_comes_back_byte_for_byte(home: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "notes.jsonl")
    exported = home.ok("export")
    home.ok("export", "--output", file)
    before = {Path(path).relative_to(home.home): text for path, text in tree(home).items()}
    assert home.ok("--home", str(tmp_path / "new"), "import", file) == "Imported 5 notes\n"
    for path, text in before.items():
        if path.parts[0] not in ("memory.md",):
            content = (tmp_path / "new" / path).read_bytes()
            assert content == text
    assert home.ok("--home", str(tmp_path / "new"), "export") == exported
    again = home("--home", str(tmp_path / "new"), "import", file)
    assert again.out == "Imported 0 notes\n"
    assert home.ok("export", "--project", "categories").count("\n") == 1


def test_a_list_gives_half_of_a_narrow_terminal_to_the_text(home: Any) -> None:
    home.write("the staging server is called heron " * 10, "--category", "preferences")
    for words in (["list"], ["recent"], ["search", "heron"]):
        lines = re.sub(r"\x1b\[[0-9;]*m", "", shown(*words, columns=80)).split("\n")
        row = next(line for line in lines if "heron" in line)
        assert len(row) <= 80
        assert len(row) - row.index("the staging") >= 40


def test_a_superseded_note_is_marked_on_a_terminal_too(terminal: Any) -> None:
    old = terminal.write("the staging server is called heron", "--category", "knowledge")
    terminal.ok("supersede", old, "the staging server is called egret")
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown("search", "staging"))
    assert re.search(r"\(superseded by [0-9a-f]{8}\) the staging server is", text)
