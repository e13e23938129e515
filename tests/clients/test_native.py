"""`memory project add --native`: what clients remember by themselves, in place."""

from __future__ import annotations

import pytest

from memoranda import errors
from memoranda.clients.table import add_native
from memoranda.engine import open_session


@pytest.fixture
def user(terminal, monkeypatch):
    folder = terminal.home.parent
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.promise("issue-native")
def test_the_folders_of_claude_codex_and_gemini_become_projects_and_are_found(terminal, user):
    encoded = str(user / "work" / "fjord").replace("/", "-").replace(".", "-").replace("_", "-")
    files = [
        put(
            user / ".claude" / "projects" / encoded / "memory" / "MEMORY.md",
            "- the kiln needs cone 6\n",
        ),
        put(user / ".codex" / "memories" / "notes.md", "the owl flies at night\n"),
        put(user / ".gemini" / "tmp" / "1a2b" / "memory" / "MEMORY.md", "ferns want water\n"),
    ]
    (user / ".claude" / "projects" / "-empty" / "memory").mkdir(parents=True)
    before = [path.read_bytes() for path in files]
    out = terminal.ok("project", "add", "--native")
    assert out.count("Added project") == 3
    assert "1 notes" in out
    names = [
        row["name"]
        for row in terminal("--json", "project", "list").json["projects"]
        if not row["built_in"]
    ]
    assert names == ["claude work-fjord", "codex", "gemini 1a2b"]
    assert "cone 6" in terminal.ok("context", "what does the kiln need?")
    assert [path.read_bytes() for path in files] == before
    assert (
        terminal.ok("project", "add", "--native")
        == "No memories of other programs that are not projects yet.\n"
    )


def test_two_of_one_name_get_numbers_and_variables_say_where_clients_keep_them(
    terminal, user, monkeypatch
):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user / "c"))
    put(user / "c" / "projects" / "-a" / "memory" / "x.md", "one")
    put(user / "c" / "projects" / "--a" / "memory" / "x.md", "two")
    rows = terminal("--json", "project", "add", "--native").json["projects"]

    names = [row["name"] for row in rows]
    assert names == ["claude a", "claude a 2"]


def test_wrong_use_is_said_and_an_agent_may_not(terminal, user):
    assert terminal("project", "add", "--native", "x").status == 2
    assert terminal("project", "add").error == "accepts between 1 and 2 arg(s), received 0"
    put(user / ".codex" / "memories" / "notes.md", "x")
    assert terminal("--agent", "codex", "project", "add", "--native").status == 1
    with (
        open_session(terminal.home, agent="codex") as memory,
        pytest.raises(errors.InvalidInput, match="owner"),
    ):
        add_native(memory)
