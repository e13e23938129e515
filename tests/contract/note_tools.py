"""The tools called the way every transport calls them, and folders seen from outside."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any

from memoranda import faces
from memoranda.engine import MemorySession
from memoranda.faces.tool import Registry, Reply

TEXT_LIMIT = 20_000


class Tools:
    """The tools of `memory,notes` for one caller of `memory`."""

    def __init__(self, memory: MemorySession, registry: Registry | None = None):
        self.memory = memory
        self.registry = registry or faces.registry(["memory", "notes"], memory.settings)

    def call(self, tool: str, **arguments: Any) -> Reply:
        """The reply, whatever it is. A note tool's text is bounded, its data there, an error's both
        equal.
        """
        reply = self.registry.call(self.memory, tool, arguments)
        if tool != "memory":
            assert len(reply.text) <= TEXT_LIMIT
            assert reply.data is not None
        if reply.is_error:
            assert reply.data["error"] == reply.text
            assert reply.data["is_error"] is True
        return reply

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call that succeeds."""
        reply = self.call(tool, **arguments)
        assert not reply.is_error, reply.text
        return reply.data

    def text(self, tool: str, **arguments: Any) -> str:
        """The text of a call that succeeds."""
        reply = self.call(tool, **arguments)
        assert not reply.is_error, reply.text
        return reply.text

    def refused(self, tool: str, code: str, **arguments: Any) -> str:
        """The text of a call that fails with `code`."""
        reply = self.call(tool, **arguments)
        assert reply.is_error, reply.text
        assert reply.data["code"] == code, reply.text
        return reply.text

    def as_agent(self, name: str) -> Tools:
        """The same memory for another caller."""
        return Tools(self.memory.as_caller(name, "mcp"), self.registry)

    def root(self, project: str = "notes") -> Path:
        """The folder of a project."""
        return self.memory.project(project).root

    def put(self, path: str, text: str | bytes = "text\n", project: str = "notes") -> Path:
        """A file as another program writes it."""
        return put(self.file(path, project), text)

    def write(self, title: str, content: str = "text", **arguments: Any) -> dict[str, Any]:
        """A note written with write_note."""
        return self("write_note", title=title, content=content, **arguments)

    def file(self, path: str, project: str = "notes") -> Path:
        """Return the path of a note of a project."""
        return self.root(project) / path

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the project `notes` with its bytes."""
        return texts(self.root())

    def found(self, query: str, **arguments: Any) -> set[str]:
        """The paths of all hits, page by page."""
        return set(self.paged("search_notes", "results", "file_path", query=query, **arguments))

    def paged(self, tool: str, key: str, name: str, **arguments: Any) -> list[Any]:
        """One field of all entries of a list, page by page; each page follows from the one before."""
        rows_seen: list[Any] = []
        data = self(tool, page_size=100, **arguments)
        while True:
            rows_seen += [row[name] for row in data[key]]
            if not data["more"]:
                assert len(rows_seen) == data["total"]
                return rows_seen
            data = self(tool, page=data["page"] + 1, page_size=data["page_size"], **arguments)


def put(file: Path, text: str | bytes) -> Path:
    """Write a file in place, with the folders it needs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def seen(root: Path, but: Collection[str] = ()) -> dict[str, tuple[Any, ...]]:
    """Everything below a folder, itself included, but these folders: kind, mode, mtime, and bytes,
    link target or names held."""
    shapes: dict[str, tuple[Any, ...]] = {}
    for place, folders, files in os.walk(root):
        folders[:] = [
            name for name in folders if os.path.relpath(os.path.join(place, name), root) not in but
        ]
        for name in [".", *folders, *files]:
            path = os.path.normpath(os.path.join(place, name))
            status = os.lstat(path)
            shapes[os.path.relpath(path, root)] = (
                status.st_mode,
                status.st_mtime_ns,
                _held(path, status.st_mode),
            )
    return shapes


def _held(path: str, mode: int) -> Any:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if stat.S_ISDIR(mode):
        return sorted(os.listdir(path))
    if stat.S_ISREG(mode):
        return Path(path).read_bytes()
    return None


def texts(root: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
