"""`memory kv`: key-value entries as bare values; `memory graph show`; errors of tools as plain
text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(params=["notes", "json"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the entries are: notes, or the files of another program."""
    if request.param == "json":
        monkeypatch.setenv("AGENT_MEMORY_PATH", str(tmp_path / "agent-memory"))
    return request.param


def test_a_value_comes_back_bare(terminal: Any, place: str) -> None:
    terminal.ok("kv", "set", "editor", "vim")
    terminal.ok("kv", "set", "poem", "-", stdin="a\nb")
    assert terminal.ok("kv", "get", "editor") == "vim\n"
    assert terminal.ok("kv", "get", "poem") == "a\nb\n"
    assert terminal.ok("kv", "list") == "editor\npoem\n"
    assert terminal.ok("kv", "list", "VIM") == "editor\n"
    assert '"value": "vim"' in terminal.ok(
        "call", "memory_recall", '{"key": "editor", "format": "json"}'
    )


def test_entry_of_one_namespace_is_not_that_of_another(terminal: Any, place: str) -> None:
    terminal.ok("kv", "set", "a", "1", "--namespace", "work")
    terminal.ok("kv", "set", "a", "2", "--ttl", "3600")

    output = terminal.ok("kv", "get", "a", "--namespace", "work")
    assert output == "1\n"
    assert terminal.ok("kv", "list", "--all") == "default/a\nwork/a\n"
    document = terminal("kv", "set", "b", "3", "--ttl", "60", "--json").json
    assert document["expires_at"] is not None


def test_of_several_none_is_deleted_when_one_is_missing(terminal: Any, place: str) -> None:
    terminal.ok("kv", "set", "a", "1")
    terminal.ok("kv", "set", "b", "2")
    assert (
        terminal("kv", "del", "a", "nobody").error
        == "Key 'nobody' not found in namespace 'default'"
    )
    assert terminal.ok("kv", "list") == "a\nb\n"
    assert terminal.ok("kv", "rm", "a", "b") == "Deleted a\nDeleted b\n"
    assert terminal("kv", "list").out == ""


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("", "x", "Key must not be empty"),
        ("a", "", "Value must not be empty"),
        ("a" * 5000, "x", "Key is too long"),
    ],
    ids=["no key", "no value", "a long key"],
)
def test_an_entry_that_cannot_be_kept_is_refused_with_the_reason(
    terminal: Any, key: str, value: str, error: str
) -> None:
    ran = terminal("kv", "set", key, value)
    assert ran.error.startswith(error)


def test_a_key_that_is_missing_is_answered_with_a_similar_one(terminal: Any) -> None:
    terminal.ok("kv", "set", "editor", "vim")
    ran = terminal("kv", "get", "edtor")
    assert ran.err.endswith("Did you mean editor?\n")


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_an_error_of_a_tool_is_plain_text(terminal: Any, form: str) -> None:
    ran = terminal("call", "memory_recall", f'{{"key": "x", "format": "{form}"}}')
    assert (ran.status, ran.err) == (1, "Error: Key 'x' not found in namespace 'default'\n")


def test_an_entity_is_shown_with_its_relations(terminal: Any) -> None:
    lines = (
        '{"type":"entity","name":"Anna Lee","entityType":"person","observations":["likes tea"]}\n'
        '{"type":"relation","from":"Anna Lee","to":"Acme","relationType":"works_at"}\n'
        '{"type":"relation","from":"Bob","to":"Anna Lee","relationType":"knows"}\n'
        '{"type":"entity","name":"Bob","entityType":"person","observations":[]}\n'
    )
    terminal.ok("graph", "import", "-", stdin=lines)
    output = terminal.ok("graph", "show", "anna", "lee")
    assert output.startswith("Anna Lee (person)\n- likes tea\n")
    assert "Anna Lee -> works_at -> Acme\n" in output
    assert "Bob -> knows -> Anna Lee\n" in output
    assert (
        terminal("graph", "show", "Anna Le").err
        == "Error: no such entity: Anna Le\nDid you mean Anna Lee?\n"
    )
