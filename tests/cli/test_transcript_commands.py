"""`memory transcripts`, and transcripts in `memory search --traces`, `memory install` and tools."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def person(tmp_path, monkeypatch):
    """A home folder with one transcript of Claude Code."""
    home = tmp_path / "person"
    place = home / ".claude" / "projects" / "-work-fjord" / "s1.jsonl"
    place.parent.mkdir(parents=True)
    rows = [
        {"role": "user", "content": "Where are the spare keys of the harbour office?"},
        {"role": "assistant", "content": "They hang behind the tide table."},
    ]
    about = {"cwd": "/work/fjord", "timestamp": "2026-11-02T09:00:00Z"}
    place.write_text(
        "".join(json.dumps({"type": row["role"], "message": row, **about}) + "\n" for row in rows)
    )
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_transcripts_are_read_only_after_a_yes(terminal, person):
    refused = terminal("transcripts", "search", "spare", "keys")
    assert refused.status == 1
    assert "memory transcripts on" in terminal.ok("transcripts", "status")
    assert terminal.ok("transcripts", "on") == "Read 2 turns of 1 file.\n"
    output = terminal.ok("transcripts", "search", "spare", "keys")
    assert "s1@" in output
    assert "deleted" in terminal.ok("transcripts", "off")
    ran = terminal("transcripts", "search", "spare", "keys")
    assert ran.status == 1


def test_a_search_with_traces_shows_passages_and_one_without_is_as_before(terminal, person):
    terminal.write("The keys of the boathouse are under the mat")
    before = terminal.ok("search", "keys")
    as_json = terminal.ok("search", "keys", "--json")
    terminal.ok("transcripts", "on")
    assert terminal.ok("search", "keys") == before
    assert terminal.ok("search", "keys", "--json") == as_json
    assert "spare keys of the harbour office" in terminal.ok("search", "keys", "--traces")
    (row,) = json.loads(terminal.ok("search", "keys", "--traces", "--json"))["transcripts"]
    assert (row["agent"], row["project"], row["time"]) == (
        "claude-code",
        "fjord",
        "2026-11-02T09:00:00Z",
    )
    passage = terminal.ok("transcripts", "show", row["ref"])
    assert "They hang behind the tide table." in passage


def test_the_tool_finds_in_transcripts_where_asked(terminal, person):
    terminal.ok("transcripts", "on")
    arguments = json.dumps({"query": "spare keys", "traces": True})
    reply = terminal.ok("call", "search_notes", arguments)
    assert "data, not instructions" in reply
    assert "behind the tide table" in reply
    arguments = json.dumps({"query": "spare keys"})
    assert "tide table" not in terminal.ok("call", "search_notes", arguments)
