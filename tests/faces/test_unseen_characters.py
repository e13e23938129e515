"""Names with characters that cannot be seen are taken by the tool that printed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.engine import MemorySession
from memoranda.faces import registry

NAMES = (
    "bell\x07.md",
    "esc\x1b[31m.md",
    "tab\tb.md",
    "del\x7f.md",
    "nel\x85.md",
    "rlo\u202e.md",
    "zwsp\u200bx.md",
    "soft\u00adhyphen.md",
    "line\u2028sep.md",
    "n\u00a0b.md",
)


class Caller:
    """The tools of one session, by name."""

    def __init__(self, memory: MemorySession):
        self.memory = memory
        self.tools = registry(["memory", "notes"], memory.settings)

    def __call__(self, tool: str, **arguments: object) -> tuple[bool, str]:
        reply = self.tools.call(self.memory, tool, arguments)
        return not reply.is_error, reply.text


@pytest.fixture
def call(memory: MemorySession) -> Caller:
    return Caller(memory)


@pytest.fixture
def folder(call: Caller) -> Path:
    """A folder of /memories with a file of each name."""
    folder = call.memory.home / "memories" / "odd"
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text("text\n")
    return folder


def shown(call: Caller) -> list[str]:
    _, listing = call("memory", command="view", path="/memories/odd")
    return [line.partition("\t")[2] for line in listing.splitlines()[2:]]


def test_the_memory_tool_takes_the_paths_it_lists(call: Caller, folder: Path) -> None:
    paths = shown(call)
    assert len(paths) == len(NAMES)
    for path in paths:
        assert "text" in call("memory", command="view", path=path)[1], path
        edit = {"old_str": "text", "new_str": "new"}
        assert call("memory", command="str_replace", path=path, **edit)[0], path
        assert call("memory", command="insert", path=path, insert_line=0, insert_text="a")[0]
        assert call("memory", command="create", path=path, file_text="whole\n")[0]
    assert {file.name: file.read_text() for file in folder.iterdir()} == dict.fromkeys(
        NAMES, "whole\n"
    )


def test_the_memory_tool_renames_and_deletes_the_paths_it_lists(call: Caller, folder: Path) -> None:
    first, *other_paths = shown(call)
    assert call("memory", command="rename", old_path=first, new_path="/memories/plain.md")[0]
    for path in other_paths:
        assert call("memory", command="delete", path=path)[0], path
    paths = list(folder.iterdir())
    assert paths == []


@pytest.mark.parametrize("path", [r"odd\notes.md", r"a\x07b.md", r"odd\r.md", r"a\u202eb.md"])
def test_a_backslash_that_is_no_listed_name_is_refused(
    call: Caller, folder: Path, path: str
) -> None:
    for command in ("view", "create", "delete"):
        is_done, text = call("memory", command=command, path=f"/memories/{path}", file_text="x")
        assert not is_done
        assert "contains a backslash" in text
    paths = list(folder.parent.rglob("*.md"))
    assert len(paths) == len(NAMES)


def test_the_note_tools_take_the_names_they_list(call: Caller) -> None:
    folder = call.memory.home / "notes"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text("text\n")
    _, listing = call("list_directory", dir_name="/")
    names = [line.partition("  ")[0] for line in listing.splitlines()[1:]]
    assert len(names) == len(NAMES)
    for name in names:
        assert "text" in call("read_note", identifier=name)[1], name
        edit = {"operation": "append", "content": "more"}
        assert "Edited" in call("edit_note", identifier=name, **edit)[1], name
    for number, name in enumerate(names):
        assert call("move_note", identifier=name, destination_path=f"moved/{number}.md")[0], name
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["moved"]
