"""`--json` of every command has the keys the contract gives, in their order (contract 001, 1, 3, 16)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click
import pytest

from commonplace.cli import COMMANDS, command_group
from commonplace.cli.syntax import Command

pytestmark = pytest.mark.promise("001-17.1")

PROJECT = ["name", "path", "notes", "default", "built_in"]
ENTRY = ["change", "time", "verb", "project", "path", "old_hash", "new_hash", "agent", "face"]
STATUS = [
    "home", "memories", "projects", "index", "daemon", "last_dream", "pending_reminders", "unreadable_files",
    "semantic", "written_today",
]  # fmt: skip
REMIND = ["stored", "text", "phrase", "due_at", "due_local", "reading", "all_day", "repeat", "others", "memory"]
TOKEN = [
    "id", "name", "begins", "scope", "projects", "agent", "member", "expires", "rate", "quota", "used", "state",
]  # fmt: skip
SPACE = ["name", "home", "members"]
SETTING = ["key", "value", "default", "set", "meaning"]
RUNS: list[tuple[list[str], list[str]]] = [
    (["write", "x"], ["memory"]),
    (["read", "ID"], ["memory", "provenance"]),
    (["list"], ["memories", "shown", "total"]),
    (["search", "x"], ["query", "memories", "total"]),
    (["search", "x", "--ranked"], ["query", "memories", "total"]),
    (["search", "x", "--archived"], ["query", "memories", "total"]),
    (["list", "--archived"], ["memories", "shown", "total"]),
    (["context", "x"], ["question", "context"]),
    (["supersede", "ID", "OTHER"], ["old", "new"]),
    (["supersede", "ID", "one, otherwise"], ["old", "new"]),
    (["tag", "ID", "--add", "t"], ["id", "tags"]),
    (["delete", "ID", "--dry-run"], ["id", "path"]),
    (["delete", "ID"], ["id", "path"]),
    (["link", "ID", "OTHER"], ["source", "target", "changed"]),
    (["unlink", "ID", "OTHER"], ["source", "target", "changed"]),
    (["backlinks", "ID"], ["id", "memories"]),
    (["resolve-links"], ["resolved", "links_added", "unresolved"]),
    (["resolve-links", "--dry-run"], ["resolved", "links_added", "unresolved"]),
    (["ingest"], ["sources", "total"]),
    (["ingest", "--dry-run"], ["sources", "total"]),
    (["upgrade", "ID"], ["memory", "changed"]),
    (["decay", "--now", "2027-01-01"], ["actions", "decayed"]),
    (["archive", "ID"], ["memories"]),
    (["archive", "ID", "--dry-run"], ["memories"]),
    (["pin", "ID", "OTHER"], ["memories"]),
    (["unpin", "ID"], ["memories"]),
    (["consolidate"], ["jobs"]),
    (["dream", "--report"], ["level", "processed", "actions", "report"]),
    (["remind", "tea", "tomorrow"], REMIND),
    (["review"], ["items", "more"]),
    (["notify"], ["notified", "pending"]),
    (["notify", "--dry-run"], ["notified", "pending"]),
    (["status"], STATUS),
    (["doctor"], ["findings", "problems"]),
    (["reindex"], ["notes", "projects", "seconds"]),
    (["log"], ["entries"]),
    (["undo"], ["undone", "change"]),
    (["restore", "GONE"], ["path", "change"]),
    (["erase", "GONE", "--yes"], ["notes", "changes", "texts", "files", "bytes", "remains", "mentions"]),
    (["project", "add", "extra", "DIR"], ["project"]),
    (["project", "list"], ["projects"]),
    (["project", "remove", "work"], ["project"]),
    (["project", "default", "work"], ["project"]),
    (["token", "add", "laptop"], ["token", "secret"]),
    (["token", "list"], ["tokens"]),
    (["space", "add", "team"], ["space"]),
    (["space", "list"], ["spaces"]),
    (["graph", "export"], ["file", "count", "lines"]),
    (["graph", "import", "-"], ["entities", "relations", "skipped"]),
    (["export", "--output", "FILE"], ["exported", "file"]),
    (["import"], ["imported", "updated", "unchanged", "skipped"]),
    (["mirror", "DIR"], ["files", "copied", "removed", "restored", "commits", "change", "left", "notices"]),
    (["move-home", "HOME", "DIR"], ["files", "bytes", "changes", "texts", "checksum", "rewritten", "outside", "left"]),
    (["graph", "show", "Anna"], ["entity", "relations"]),
    (["edit", "ID"], ["id", "path", "changed"]),
    (["config", "get", "timezone"], SETTING),
    (["config", "set", "timezone", "UTC"], SETTING),
    (["config", "unset", "timezone"], SETTING),
    (["config", "list"], ["file", "settings"]),
    (["kv", "set", "key", "value"], ["namespace", "key", "expires_at"]),
    (["kv", "get", "editor"], ["namespace", "key", "value"]),
    (["kv", "list"], ["namespace", "entries"]),
    (["kv", "del", "editor"], ["namespace", "key"]),
    (["man"], ["page"]),
    (["install"], ["clients", "server"]),
    (["uninstall", "zed"], ["clients"]),
    (["call", "list_memory_projects"], ["tool", "is_error", "text", "structured"]),
    (["completion", "bash"], ["shell", "script"]),
    (["help", "write"], ["command", "text"]),
]
INNER = {
    "old": ["id", "project", "path"],
    "new": ["id", "project", "path"],
    "settings": SETTING,
    "project": PROJECT,
    "projects": PROJECT,
    "entries": ENTRY,
    "token": TOKEN,
    "tokens": TOKEN,
    "space": SPACE,
    "spaces": SPACE,
    "items": ["key", "kind", "text", "refs", "lines", "choices"],
    "actions": ["job", "verb", "id", "reason", "path"],
    "unresolved": ["id", "target"],
    "findings": ["level", "code", "path", "text", "fixed"],
}


def command_of(argv: list[str]) -> Command:
    """The command a line names."""
    found: click.Command | None = command_group()
    context = click.Context(click.Command("memory"))
    for word in argv:
        if not isinstance(found, click.Group):
            break
        found = found.get_command(context, word)
    assert isinstance(found, Command)
    return found


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the home of the first test is kept as the other ones find it."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def words(terminal: Any, kept: Path) -> dict[str, str]:
    """A home that holds something of each kind; what the words of RUNS stand for."""
    ids = kept / "ids"
    if not ids.exists():
        terminal.ok("kv", "set", "editor", "vim")
        anna = '{"type":"entity","name":"Anna","entityType":"person","observations":[]}'
        terminal.ok("graph", "import", "-", stdin=anna)
        terminal.ok("project", "add", "work", str(kept / "work"))
        written = [terminal.write(text) for text in ("one [[nobody]]", "two", "three")]
        terminal.ok("delete", written[2])
        shutil.copytree(terminal.home, kept / "home")
        ids.write_text(" ".join(written))
    else:
        shutil.copytree(kept / "home", terminal.home)
    places = {"DIR": str(terminal.folder / "dir"), "HOME": str(terminal.home), "FILE": str(terminal.folder / "file")}
    return places | dict(zip(("ID", "OTHER", "GONE"), ids.read_text().split(), strict=True))


@pytest.mark.parametrize(("argv", "keys"), RUNS, ids=lambda each: " ".join(each))
def test_the_document_of_a_command_has_its_keys_in_order(
    terminal: Any, words: dict[str, str], monkeypatch: pytest.MonkeyPatch, argv: list[str], keys: list[str]
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    ran = terminal(*(words.get(word, word) for word in argv), "--json")
    assert ran.status == 0, ran
    assert list(ran.json) == ["schema", *keys]
    assert ran.json["schema"] == f"{argv[0]}/1"
    assert ran.out.startswith('{\n  "schema"')
    assert ran.out.endswith("\n}\n")
    declared = command_of(argv).keys
    assert list(declared) == keys
    for key in (each for each in keys if declared[each]):
        assert list(declared[key]) == INNER[key]
        rows = ran.json[key] if isinstance(ran.json[key], list) else [ran.json[key]]
        assert all(list(row) == INNER[key] for row in rows)


def test_every_command_is_among_these_but_those_with_an_output_of_their_own() -> None:
    assert {argv[0] for argv, _ in RUNS} == set(COMMANDS) - {"mcp", "agent", "serve", "page", "embed", "hook"}
