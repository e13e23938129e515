"""The agent tools over a real memory in a temporary folder, by a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.faces.agent.session import Session, result_data
from movable_clock import Ticking


class Desk:
    """The tools as one caller has them."""

    def __init__(self, memory: MemorySession):
        self.memory = memory
        self.session = Session(memory)

    def as_agent(self, name: str) -> Desk:
        return Desk(self.memory.as_caller(name))

    def __call__(self, tool: str, **arguments: Any) -> Any:
        """The content of a call that succeeds: JSON read, other text as it is."""
        reply = self.session.call(tool, arguments)
        assert not reply.is_error, reply
        if reply.text[:1] in "[{":
            return json.loads(reply.text)
        return reply.text

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return result_data(self.session.call(tool, arguments))

    def error(self, tool: str, arguments: Any) -> str:
        reply = self.session.call(tool, arguments)
        assert reply.is_error, reply
        return reply.text

    def write(self, content: str, **more: Any) -> str:
        return self("memory_write", content=content, **more)["id"]

    def found(self, tool: str, **arguments: Any) -> list[str]:
        """The contents of the memories a tool answers with, in order."""
        answer = self(tool, **arguments)
        return [
            found_memory["content"]
            for found_memory in (answer["results"] if isinstance(answer, dict) else answer)
        ]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """The owner at an empty memory, in UTC."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("timezone: UTC\n")
    with open_session(
        home, clock=Ticking(datetime(2026, 5, 7, 10, tzinfo=UTC)), watch=False
    ) as memory:
        yield Desk(memory)
