"""The note tools over a real memory in a temporary folder, called the way every transport calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory
from contract.note_tools import Tools, texts


class Face(Tools):
    """The tools of one caller, with short ways to write and to look at files."""

    data = Tools.__call__

    def write(self, title: str, content: str = "text", **arguments: Any) -> dict[str, Any]:
        """A note written with write_note."""
        return self("write_note", title=title, content=content, **arguments)

    def file(self, path: str, project: str = "notes") -> Path:
        """Where a note of a project lies."""
        return self.root(project) / path

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the project `notes` with its bytes."""
        return texts(self.root())

    def as_agent(self, name: str) -> Face:
        """The same memory for another caller."""
        return Face(self.memory.as_caller(name, "mcp"), self.registry)


@pytest.fixture(scope="session")
def face_for() -> type[Face]:
    """Makes a face for a memory a test opened itself."""
    return Face


@pytest.fixture
def face(memory: Memory) -> Face:
    """The owner at an empty memory."""
    return Face(memory)
