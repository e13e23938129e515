"""A server follows at once what another process adds to the list of projects, and takes off it
(contract 000b, 1).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contract.note_tools import put
from memoranda import config
from memoranda.engine import MemorySession, open_session
from memoranda.faces import registry
from memoranda.faces.reply import Reply
from memoranda.query import Query

CALLS = {
    "list_directory": {},
    "search_notes": {"query": "heron"},
    "recent_activity": {},
    "read_note": {"identifier": "a"},
    "build_context": {"url": "a"},
    "write_note": {"title": "New", "content": "x"},
    "move_note": {"identifier": "a", "destination_path": "b"},
    "delete_note": {"identifier": "a"},
    "memory_read_graph": {},
    "memory_create_entities": {"entities": [{"name": "E", "entityType": "x", "observations": []}]},
}


class Server:
    """A memory that is open all the time, with the tools of an agent."""

    def __init__(self, memory: MemorySession, folder: Path):
        self.memory = memory
        self.folder = folder
        self.registry = registry(["notes", "graph"], memory.settings)

    def call(self, tool: str, **arguments: object) -> Reply:
        return self.registry.call(self.memory.as_caller("bob", "mcp"), tool, arguments)

    def names(self) -> list[str]:
        reply = self.call("list_memory_projects")
        assert reply.data is not None
        assert not reply.is_error, reply.text
        return [project["name"] for project in reply.data["projects"]]

    def add(self, name: str) -> None:
        """As `memory project add` does, run beside the server."""
        put(self.folder / name / "a.md", "heron\n")
        with open_session(self.memory.home, watch=False) as other_memory:
            other_memory.add_project(name, str(self.folder / name))

    def remove(self, name: str) -> None:
        with open_session(self.memory.home, watch=False) as other_memory:
            other_memory.remove_project(name)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with open_session(tmp_path / "home", watch=False) as memory:
        server = Server(memory, tmp_path / "given")
        assert not server.call("search_notes", query="heron").is_error
        yield server


@pytest.mark.parametrize("tool", CALLS)
def test_the_first_call_about_a_project_just_added_finds_it(server: Server, tool: str) -> None:
    server.add("work")
    reply = server.call(tool, project="Work", **CALLS[tool])
    assert not reply.is_error, reply.text


def test_a_project_taken_off_the_list_is_not_listed_as_an_empty_one(server: Server) -> None:
    server.add("work")
    assert "work" in server.names()
    assert not server.call("list_directory", project="work").is_error
    server.remove("work")
    assert "work" not in server.names()
    reply = server.call("list_directory", project="work")
    assert reply.is_error is True
    assert reply.data is not None
    assert reply.data["code"] == "project_not_found"


def test_the_default_project_of_another_process_is_that_of_the_next_call(server: Server) -> None:
    server.add("work")
    with open_session(server.memory.home, watch=False) as other_memory:
        other_memory.set_default("work")
    server.call("write_note", title="New", content="x", directory="")

    assert (server.folder / "work/New.md").exists()


def test_the_default_project_of_one_process_alone_stays(tmp_path: Path) -> None:
    for name in ("work", "play"):
        put(tmp_path / name / "a.md", "heron\n")
    with open_session(tmp_path / "home", watch=False) as other_memory:
        for name in ("work", "play"):
            folder = tmp_path / name
            other_memory.add_project(name, str(folder))
        settings = replace(other_memory.settings, default_project="play")
        with open_session(config=settings, watch=False) as memory:
            other_memory.set_default("work")
            assert memory.default_project == "play"
            memory.set_default("work")
            assert memory.default_project == "work"


def test_a_limit_set_elsewhere_holds_from_the_next_call_on(server: Server) -> None:
    with open_session(server.memory.home, watch=False) as other_memory:
        other_memory.configure("limits.note_bytes", 100)
    reply = server.call("write_note", title="Long", content="x" * 200, directory="")

    assert reply.is_error
    assert "a note may have 100" in reply.text


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [("daemon: [\n", "line {}"), ("x: 2024-13-45\n", "month must be in 1..12")],
)
def test_a_configuration_that_cannot_be_read_any_more_is_named_until_it_is_as_it_was(
    server: Server, fault: str, complaint: str
) -> None:
    server.add("work")
    assert not server.call("search_notes", query="heron", project="work").is_error
    file = server.memory.home / "config.yaml"
    good = file.read_text()
    status = file.stat()
    file.write_text(good + fault)
    reply = server.call("search_notes", query="heron", project="work")
    assert not reply.is_error, reply.text
    assert "Warning: config.yaml is not in force as it is now, but as it was before: " in reply.text
    assert complaint.format(len(good.splitlines()) + 2) in reply.text
    file.write_text(good)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    reply = server.call("search_notes", query="heron", project="work")
    assert "config.yaml" not in reply.text


def test_the_key_of_an_endpoint_goes_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_A", "secret of a")
    monkeypatch.setenv("OF_B", "secret of b")
    file = tmp_path / "config.yaml"
    file.write_text("llm:\n  base_url: http://a.example/\n  model: m\n  api_key_env: OF_A\n")
    with open_session(tmp_path, watch=False) as memory:
        file.write_text("llm:\n  base_url: http://b.example/\n  model: m\n  api_key_env: OF_B\n")
        memory.stats()
        assert (memory.settings.llm_base_url, memory.settings.llm_key) == (
            "http://b.example/",
            "secret of b",
        )


def test_what_changed_between_the_reading_of_the_configuration_and_the_opening_holds(
    tmp_path: Path,
) -> None:
    settings = config.load(tmp_path)
    (tmp_path / "config.yaml").write_text("notification:\n  day_hour: 7\n")
    with open_session(config=settings, watch=False) as memory:
        memory.stats()
        assert memory.settings.day_hour == 7


def test_a_change_under_way_keeps_the_project_it_writes_to(server: Server) -> None:
    server.add("work")
    memory = server.memory
    _, total = memory.list(Query(projects=("work",)))
    assert total == 1
    with memory.change("write") as change:
        change.put("work", "b.md", b"osprey\n")
        server.memory.settings.file.write_text("")
        assert memory.default_project == "notes"
    content = (server.folder / "work/b.md").read_bytes()
    assert content == b"osprey\n"
