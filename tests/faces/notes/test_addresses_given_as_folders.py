"""An address in the place of a folder is refused: it would become a folder called `memory:`."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.note_tools import Tools, put
from memoranda.engine import open_session


@pytest.fixture
def tools(tmp_path: Path):
    put(tmp_path / "home/notes/plans/A.md", "a\n")
    with open_session(tmp_path / "home", watch=False) as memory:
        yield Tools(memory)


@pytest.mark.parametrize(
    ("tool", "name", "more"),
    [
        ("write_note", "directory", {"title": "B", "content": "b"}),
        ("move_note", "destination_path", {"identifier": "A"}),
        ("move_note", "destination_path", {"identifier": "plans", "is_directory": True}),
    ],
)
def test_it_is_refused_and_the_path_it_means_is_taken(
    tools: Tools, tool: str, name: str, more: dict
) -> None:
    before = sorted(tools.root().rglob("*"))
    text = tools.refused(tool, "invalid", **more, **{name: "memory://notes/new"})
    assert text == (
        f'Parameter `{name}` must be a path in the project, e.g. plans/2026; got the address "memory://notes/new". '
        "Name the project in `project`."
    )
    after = sorted(tools.root().rglob("*"))
    assert after == before
    tools(tool, **more, **{name: "new"}, project="notes")
    new_paths = list(tools.root().glob("new*"))
    assert new_paths


@pytest.mark.parametrize(
    ("tool", "more", "expected_path"),
    [
        ("write_note", {"title": "B", "content": "b", "directory": "notes/new"}, "new/B.md"),
        ("write_note", {"title": "B", "content": "b", "directory": "Notes"}, "B.md"),
        ("move_note", {"identifier": "A", "destination_path": "notes/new/"}, "new/A.md"),
        (
            "move_note",
            {"identifier": "plans", "is_directory": True, "destination_path": "notes/old"},
            "old",
        ),
    ],
)
def test_a_path_that_repeats_the_project_is_taken_with_a_warning(
    tools: Tools, tool: str, more: dict, expected_path: str
):
    reply = tools.call(tool, **more)
    [warning] = reply.data["warnings"]
    assert warning.startswith("Paths begin inside project notes, so this is in a folder ")
    assert reply.text.endswith(f"\nWarning: {warning}")
    assert f'destination_path="{expected_path}"' in warning
    path_written = reply.data.get("new_path") or reply.data["file_path"]
    if more.get("is_directory"):
        identifier = path_written
    else:
        identifier = reply.data.get("permalink", "A")
    moved = tools(
        "move_note",
        identifier=identifier,
        destination_path=expected_path,
        is_directory="is_directory" in more,
    )
    assert (moved["new_path"], moved.get("warnings")) == (expected_path, None)


def test_a_folder_of_the_projects_name_that_has_notes_is_like_any_other(tools: Tools):
    put(tools.root() / "notes/Own.md", "mine\n")
    assert "warnings" not in tools("write_note", title="B", content="b", directory="notes")
