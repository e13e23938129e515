"""The note tools over a real memory in a temporary folder, called the way every transport calls them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.engine import Memory, open_memory
from commonplace.faces.notes import toolset
from commonplace.faces.tool import Registry, Reply

TEXT_LIMIT = 20_000


class Face:
    """Calls note tools as one caller; `memory` is what they work on."""

    def __init__(self, memory: Memory, registry: Registry | None = None):
        self.memory = memory
        self.registry = registry or Registry([toolset()])

    def call(self, tool: str, **arguments: Any) -> Reply:
        """The tool's reply, whatever it is; every one is bounded and complete in text and data."""
        reply = self.registry.call(self.memory, tool, arguments)
        assert len(reply.text) <= TEXT_LIMIT
        assert reply.data is not None
        if reply.is_error:
            assert reply.data["error"] == reply.text
            assert reply.data["is_error"] is True
        return reply

    def text(self, tool: str, **arguments: Any) -> str:
        """The text of a call that succeeds."""
        reply = self.call(tool, **arguments)
        assert not reply.is_error, reply.text
        return reply.text

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call that succeeds."""
        reply = self.call(tool, **arguments)
        assert not reply.is_error, reply.text
        return reply.data

    def refused(self, tool: str, code: str, **arguments: Any) -> str:
        """The text of a call that fails with `code`."""
        reply = self.call(tool, **arguments)
        assert reply.is_error, reply.text
        assert reply.data["code"] == code, reply.text
        return reply.text

    def write(self, title: str, content: str = "text", **arguments: Any) -> dict[str, Any]:
        """A note written with write_note."""
        return self.data("write_note", title=title, content=content, **arguments)

    def file(self, path: str, project: str = "notes") -> Path:
        """Where a note of a project lies."""
        return self.memory.project(project).root / path

    def put(self, path: str, text: str | bytes, project: str = "notes") -> Path:
        """A file another program wrote into a project."""
        file = self.file(path, project)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the project `notes` with its bytes."""
        root = self.memory.project("notes").root
        return {str(each.relative_to(root)): each.read_bytes() for each in root.rglob("*") if each.is_file()}

    def as_agent(self, name: str) -> Face:
        """The same memory for another caller."""
        return Face(self.memory.as_caller(name, "mcp"), self.registry)


@pytest.fixture(scope="session")
def face_for() -> type[Face]:
    """Makes a face for a memory a test opened itself."""
    return Face


@pytest.fixture
def face(tmp_path: Path) -> Iterator[Face]:
    """The owner at an empty memory."""
    with open_memory(tmp_path / "home", watch=False) as memory:
        yield Face(memory)
