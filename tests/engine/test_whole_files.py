"""Files read and written as wholes, several as one change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.engine.plain_files import Files, NotADirectory
from memoranda.errors import Conflict, Exists, OutsideError
from memoranda.sources.base import File


@pytest.fixture
def files(memory: MemorySession) -> Files:
    return Files(memory, "banks", "code/a")


def place(memory: MemorySession, path: str) -> Path:
    return memory.project("banks").root / "code" / "a" / path


def test_several_files_are_one_change(memory: MemorySession, files: Files) -> None:
    change = files.put(
        lambda: {"b.md": ("b", None), "x/a.md": ("a", None), ".hidden": ("h", None)},
        "create",
        {"why": "x"},
    )
    assert change is not None
    assert (change.verb, change.path, change.details) == ("create", "code/a/b.md", {"why": "x"})
    assert memory.log(limit=0) == [change]
    assert list(files.notes()) == ["b.md", "x/a.md"]
    memory.undo()
    assert files.notes() == {}
    assert not place(memory, "").exists()


def test_a_plan_is_made_again_when_a_file_changed_meanwhile(
    memory: MemorySession, files: Files
) -> None:
    files.put(lambda: {"a.md": ("one", None)}, "create")
    plans = 0

    def plan() -> dict[str, tuple[str, File | None]]:
        nonlocal plans
        plans += 1
        old = files.read("a.md")
        if plans < 3:
            file.write_text(f"by hand {plans}")
        return {"a.md": (old.data.decode() + "!", old), "new.md": ("new", None)}

    file = place(memory, "a.md")
    files.put(plan, "edit")
    assert file.read_text() == "by hand 2!"
    assert plans == 3


def test_a_file_that_changes_again_and_again_is_a_conflict(
    memory: MemorySession, files: Files
) -> None:
    files.put(lambda: {"a.md": ("one", None)}, "create")

    def plan() -> dict[str, tuple[str, File | None]]:
        old = files.read("a.md")
        place(memory, "a.md").write_text(old.data.decode() + "x")
        return {"new.md": ("new", None), "a.md": ("mine", old)}

    with pytest.raises(Conflict):
        files.put(plan, "edit")
    text = place(memory, "a.md").read_text()
    assert text == "onexxxxx"
    assert not place(memory, "new.md").exists()


def test_a_place_that_is_taken_is_refused_and_nothing_is_written(
    memory: MemorySession, files: Files, tmp_path: Path
) -> None:
    files.put(lambda: {"a.md": ("one", None), "folder/b.md": ("b", None)}, "create")
    os.symlink("a.md", place(memory, "link.md"))
    os.symlink(tmp_path, place(memory, "away"))
    for path, error in (
        ("a.md", Exists),
        ("folder", Exists),
        ("link.md", Exists),
        ("a.md/c.md", NotADirectory),
        ("away/c.md", OutsideError),
    ):
        with pytest.raises(error):
            files.put(lambda path=path: {"other.md": ("x", None), path: ("y", None)}, "edit")

    assert list(files.notes()) == ["a.md", "folder/b.md"]
    text = place(memory, "a.md").read_text()
    assert text == "one"


def test_notes_below_a_link_are_none_of_ours(memory: MemorySession, tmp_path: Path) -> None:
    root = memory.project("banks").root / "code"
    root.mkdir(parents=True)
    os.symlink(tmp_path, root / "away")
    with pytest.raises(OutsideError):
        Files(memory, "banks", "code/away").notes()

    assert Files(memory, "banks", "code/none").notes() == {}


def test_a_built_in_project_may_lie_elsewhere_for_one_process(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with open_session(tmp_path / "home", projects={"banks": root}, watch=False) as memory:
        assert memory.project("banks").root == root
        assert memory.project("banks").built_in
        Files(memory, "banks", "code/a").put(lambda: {"a.md": ("heron", None)}, "create")
        paths = [hit.note.path for hit in memory.search("heron").hits]
        assert paths == ["code/a/a.md"]
    assert (root / "code/a/a.md").read_text() == "heron"
    with open_session(tmp_path / "home", watch=False) as memory:
        root = memory.project("banks").root
        assert root == tmp_path / "home" / "banks"
        assert memory.search("heron").total == 0
