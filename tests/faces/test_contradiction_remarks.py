"""Whoever writes what an older note contradicts is told so at once, through each interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.faces.agent.session import Session
from memoranda.faces.memory_tool import MemoryCommands
from memoranda.note.model import Draft

REMARK = 'An older note says otherwise: "The port of staging: 8080"'


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemorySession]:
    """A memory, opened by an agent, in which the owner wrote a port."""
    with open_session(tmp_path / "home") as owner:
        owner.write(Draft("The port of staging is 8080", category="knowledge"))
    with open_session(tmp_path / "home", "bot") as opened:
        yield opened


def test_memory_write_tells_which_older_note_says_otherwise(memory: MemorySession) -> None:
    (call,) = Session(memory).run(
        [{"name": "memory_write", "params": {"content": "Staging's port is now 9090"}}]
    )
    assert call["result"]["metadata"]["hint"].startswith(REMARK)


def test_memory_write_says_nothing_where_nothing_contradicts(memory: MemorySession) -> None:
    (call,) = Session(memory).run(
        [{"name": "memory_write", "params": {"content": "The port of production is 9090"}}]
    )
    assert "hint" not in call["result"]["metadata"]


@pytest.mark.parametrize(
    "command",
    [
        {"command": "create", "file_text": "Staging's port is now 9090\n"},
        {"command": "insert", "insert_line": 0, "insert_text": "Staging's port is now 9090\n"},
        {"command": "str_replace", "old_str": "soon", "new_str": "now 9090"},
    ],
    ids=lambda command: command["command"],
)
def test_the_memory_tool_tells_which_older_note_says_otherwise(
    memory: MemorySession, command: dict[str, object]
) -> None:
    commands = MemoryCommands()
    path = "/memories/deploy.md"
    first_text = "Staging's port is soon\n"
    commands.run(memory, {"command": "create", "path": path, "file_text": first_text})
    reply = commands.run(memory, {"path": path, **command})
    assert not reply.is_error
    assert reply.hint.startswith(REMARK)
    assert "otherwise" not in reply.text


def test_a_user_with_one_folder_is_told_nothing_of_other_notes(memory: MemorySession) -> None:
    commands = MemoryCommands(folder="customer-7")
    text = "Staging's port is now 9090\n"
    reply = commands.run(
        memory, {"command": "create", "path": "/memories/deploy.md", "file_text": text}
    )
    assert not reply.is_error
    assert reply.hint == ""


def test_a_private_note_of_another_agent_is_not_told(tmp_path: Path) -> None:
    with open_session(tmp_path / "home", "ann") as ann:
        ann.write(Draft("The port of staging is 8080", category="knowledge", scope="agent:ann"))
    with open_session(tmp_path / "home", "bot") as bot:
        (call,) = Session(bot).run(
            [{"name": "memory_write", "params": {"content": "Staging's port is now 9090"}}]
        )
    assert "hint" not in call["result"]["metadata"]
