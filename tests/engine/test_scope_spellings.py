"""A scope counts however its key is written: only the parser of headers decides (docs/trust.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda import errors, open_memory
from memoranda.engine.writing import scope_of
from memoranda.faces import registry
from memoranda.query import Query

PRIVATE = "agent:bob"
SPELLINGS = [
    "scope: agent:bob",
    r'"sc\u006fpe": agent:bob',
    r'"\x73cope": agent:bob',
    r'"s\U00000063ope": "agent:\u0062ob"',
    r'"\u0073\u0063\u006f\u0070\u0065": Agent:BOB',
    "? scope\n: agent:bob",
    "'scope': 'agent:bob'",
    "{scope: agent:bob}",
    '? "sc\\\n  ope"\n: agent:bob',
    'title: &x scope\n*x : agent:bob\n"sco\\x70e": agent:bob',
]


def note_with(header: str) -> str:
    return f"---\n{header}\n---\nThe spare key is with Nora.\n"


@pytest.fixture(params=SPELLINGS)
def text(request: pytest.FixtureRequest) -> str:
    return note_with(request.param)


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Any]:
    with open_memory(tmp_path / "home", watch=False) as memory:
        yield memory.session


@pytest.mark.promise("trust-spelled-scope")
def test_a_scope_is_read_however_its_key_is_written(text: str) -> None:
    assert scope_of(text.encode()) == PRIVATE
    assert scope_of(b"\xef\xbb\xbf" + text.encode()) == PRIVATE


@pytest.mark.parametrize(
    ("tools", "tool", "arguments"),
    [
        ("memory", "memory", {"command": "create", "path": "/memories/a.md"}),
        ("notes", "write_note", {"title": "a"}),
    ],
)
def test_an_agent_plants_nothing_among_the_notes_of_another(
    owner: Any, text: str, tools: str, tool: str, arguments: dict[str, Any]
) -> None:
    eve = owner.as_caller("eve", "mcp")
    key = "file_text" if tools == "memory" else "content"
    reply = registry([tools], owner.settings).call(eve, tool, arguments | {key: text})
    mine = owner.list(Query(scope=PRIVATE), limit=0)[0]
    assert reply.is_error or all(note.scope != PRIVATE for note in mine)


def test_a_private_file_is_shown_to_nobody_else(owner: Any, text: str) -> None:
    bob = owner.as_caller("bob", "mcp")
    eve = owner.as_caller("eve", "mcp")
    call = registry(["memory"], owner.settings).call
    created = call(
        bob, "memory", {"command": "create", "path": "/memories/keys.md", "file_text": text}
    )
    assert not created.is_error
    view = {"command": "view", "path": "/memories/keys.md"}
    assert "Nora" in call(bob, "memory", view).text
    assert "Nora" not in call(eve, "memory", view).text
    assert "keys.md" not in call(eve, "memory", {"command": "view", "path": "/memories"}).text
    with pytest.raises(errors.NotFound):
        eve.read("keys")


@pytest.mark.parametrize("key", ["id", "locked", "merged"])
def test_a_guarded_key_is_refused_however_it_is_written(owner: Any, key: str) -> None:
    eve = owner.as_caller("eve", "mcp")
    spelled = "".join(f"\\u{ord(letter):04x}" for letter in key)
    value = {"id": "abcdef123456", "locked": "true", "merged": "[abcdef123456]"}[key]
    text = note_with(f'"{spelled}": {value}')
    call = registry(["memory"], owner.settings).call
    reply = call(eve, "memory", {"command": "create", "path": "/memories/a.md", "file_text": text})
    assert reply.is_error
    assert key in reply.text
