"""`archive`, `pin`, `unpin`, and how the other commands show the archive (contract 001, 18)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoranda.cli import output
from memoranda.cli.lifecycle_commands import archive


@pytest.mark.promise("001-18.2")
def test_archive_takes_several_ids_and_none_when_one_is_unknown(terminal: Any) -> None:
    first = terminal.write("water boils at 100 degrees")
    second = terminal.write("we decided to use SQLite")
    ran = terminal("archive", first, "ffffffff")
    assert ran.status == 1
    assert terminal.ok("list", "--archived") == "No memories found.\n"
    assert terminal.ok("archive", first, second, "--dry-run") == "Would archive 2 memories\n"
    assert terminal.ok("list", "--archived") == "No memories found.\n"
    assert terminal.ok("archive", first[:8], second, first) == "Archived 2 memories\n"
    rows = terminal("list", "--archived", "--json").json["memories"]
    assert {(archived["category"], archived["archived_by"]) for archived in rows} == {
        ("knowledge", "user"),
        ("decisions", "user"),
    }
    for archived in rows:
        assert archived["path"].startswith(f"archive/{archived['category']}/")
    assert terminal.ok("search", "", "--archived").endswith("Found: 2 memories\n")
    assert terminal.ok("search", "tea") == "No matching memories found.\n"
    row = terminal("upgrade", first, "--category", "soul", "--json").json
    assert row["changed"] is True
    assert row["memory"]["category"] == "soul"
    assert row["memory"]["expires_at"] is None
    assert terminal.ok("delete", second) == f"Deleted memory: {second}\n"
    assert terminal.ok("undo").startswith("Undid #")
    assert terminal.ok("read", second).splitlines()[1:3] == [
        "Phase:   organized",
        "Category: decisions",
    ]
    assert archive.keys == {"memories": ()}


@pytest.mark.promise("001-18.2")
def test_pinned_memories_stand_first_in_the_overview(terminal: Any) -> None:
    first = terminal.write("older", "--category", "people")
    terminal.write("newer", "--category", "people")
    assert terminal.ok("pin", first) == "Pinned 1 memories\n"
    overview = (terminal.home / "memory.md").read_text()
    assert overview.index("older") < overview.index("newer")


@pytest.mark.promise("001-18.2")
def test_pinned_is_a_key_of_a_memory_only_while_it_is_pinned(terminal: Any) -> None:
    first, second = (terminal.write(text, "--category", "people") for text in ("older", "newer"))
    terminal.ok("pin", first)
    document = terminal("read", first, "--json").json
    assert document["memory"]["pinned"] is True
    assert terminal.ok("unpin", first, second) == "Unpinned 2 memories\n"
    document = terminal("read", first, "--json").json
    assert "pinned" not in document["memory"]


@pytest.mark.promise("001-18.2")
def test_a_terminal_is_told_when_an_inbox_memory_will_be_archived(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "memory consolidate archives it after 2026-05-08 unless it is sorted or pinned; memory serve never."
    now = ("--now", "2026-05-01T12:00:00Z")
    assert len(terminal.ok("write", "x", *now).splitlines()) == 1
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    assert terminal.ok("write", "x", *now).splitlines()[1:] == [line]
    line = "Archived after 2026-05-08 unless it is read 3 times, sorted or pinned before."
    assert terminal.ok("--agent", "claude", "write", "x", *now).splitlines()[1:] == [line]
    assert terminal.ok("write", "x", "--source", "mail", *now).splitlines()[1:] == [line]
    assert len(terminal.ok("write", "x", "--category", "people", *now).splitlines()) == 1
    memory = json.loads(terminal.ok("write", "x", "--json", *now))["memory"]
    assert "expires_at" in memory


@pytest.mark.promise("001-18.1")
def test_one_that_cannot_be_brought_back_is_read_all_the_same(terminal: Any) -> None:
    archived = terminal.write("tea is ready", "--category", "people")
    terminal.ok("archive", archived)
    (terminal.home / "categories" / "people").rmdir()
    (terminal.home / "categories" / "people").write_text("in the way")
    assert terminal.ok("read", archived).splitlines()[1] == "Phase:   archived"
    assert terminal("status", "--json").json["memories"] == {
        "total": 1,
        "phases": {"inbox": 0, "organized": 0, "archived": 1},
        "categories": {},
    }


@pytest.mark.promise("001-18.5")
def test_a_run_is_named_by_the_number_of_its_first_change(terminal: Any) -> None:
    for n in range(3):
        terminal.write(f"number {n}", "--category", "knowledge", "--now", f"2026-05-01T12:0{n}:00Z")
    terminal.ok("decay", "--now", "2026-07-01T12:00:00Z")
    assert terminal.ok("log").splitlines()[0] == "#4-6 2026-07-01 12:00 decay (3 memories)"
    entries = terminal("log", "--run", "4", "--json").json["entries"]
    assert [(entry["change"], entry["run"]) for entry in entries] == [(6, 4), (5, 4), (4, 4)]
    ran = terminal("undo", "4", "--run", "4")
    assert ran.status == 2
    assert terminal("undo", "--run", "5").error == "There is no run #5."
    assert terminal("undo", "--run", "4", "--json").json == {
        "schema": "undo/1",
        "undone": 4,
        "change": 7,
    }
    assert ' (+2 more)  "number 0"' in terminal.ok("log", "--limit", "1")
    assert terminal("undo", "--run", "4").err == "Error: cannot undo run #4: it was undone\n"


def test_an_undo_of_one_change_of_a_run_says_how_to_undo_the_others(terminal: Any) -> None:
    for n in range(3):
        terminal.write(f"number {n}", "--category", "knowledge", "--now", f"2026-05-01T12:0{n}:00Z")
    terminal.ok("decay", "--now", "2026-07-01T12:00:00Z")
    assert terminal("undo").err == "2 other changes of the same run: memory undo --run 4\n"
    assert terminal.ok("undo", "--run", "4") == "Undid #4-5: decay (2 memories)\n"


def test_an_undo_of_the_last_change_of_a_run_names_no_others(terminal: Any) -> None:
    terminal.write("number 0", "--category", "knowledge", "--now", "2026-05-01T12:00:00Z")
    terminal.ok("decay", "--now", "2026-07-01T12:00:00Z")
    assert terminal("undo").err == ""


def test_a_new_text_supersedes_an_archived_memory_and_is_none_itself(terminal: Any) -> None:
    old = terminal.write("the server is called heron", "--category", "project")
    terminal.ok("archive", old)
    new = terminal("supersede", old, "the server is called egret", "--json").json["new"]

    assert new["path"].startswith("project/")
    ids = [memory["id"] for memory in terminal("list", "--json").json["memories"]]
    assert ids == [new["id"]]
