"""An address in the place of a folder is refused: it would become a folder called `memory:`."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace import open_memory
from contract.note_tools import Tools, put


@pytest.fixture
def tools(tmp_path: Path):
    put(tmp_path / "home/notes/plans/A.md", "a\n")
    with open_memory(tmp_path / "home", watch=False) as memory:
        yield Tools(memory)


@pytest.mark.parametrize(
    ("tool", "name", "more"),
    [
        ("write_note", "directory", {"title": "B", "content": "b"}),
        ("move_note", "destination_path", {"identifier": "A"}),
        ("move_note", "destination_path", {"identifier": "plans", "is_directory": True}),
    ],
)
def test_it_is_refused_and_the_path_it_means_is_taken(tools: Tools, tool: str, name: str, more: dict) -> None:
    before = sorted(tools.root().rglob("*"))
    text = tools.refused(tool, "invalid", **more, **{name: "memory://notes/new"})
    assert text == (
        f'Parameter `{name}` must be a path in the project, e.g. plans/2026; got the address "memory://notes/new". '
        "Name the project in `project`."
    )
    assert sorted(tools.root().rglob("*")) == before
    tools(tool, **more, **{name: "new"}, project="notes")
    assert [each for each in tools.root().iterdir() if each.name.startswith("new")]
