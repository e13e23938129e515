"""A copy that a program which syncs folders made of a memory blocks no command (issue 33, 9)."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Pair(NamedTuple):
    """A memory, its file, and the copy beside it."""

    terminal: Any
    ref: str
    file: Path
    copy: Path


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


ENDINGS = [
    ".sync-conflict-20261101-101010-ABCDEFG",
    ".sync-conflict-20261101-101010-ABCDEFG.sync-conflict-20261102-101010-HIJKLMN",
    " (Ann's conflicted copy 2026-11-01)",
    " (conflicted copy 2026-11-01 101010)",
    "-LAPTOP",
    " 2",
    " (1)",
    ".Conflict",
    "_conf(2026-11-01-10-10-10)",
    " (冲突副本 2026-11-01)",
    "~2026-11-01",
    " copy",
]


@pytest.fixture(params=ENDINGS)
def pair(terminal: Any, request: pytest.FixtureRequest) -> Pair:
    ref = terminal.write("user likes tea", "--category", "skills")
    (file,) = (terminal.home / "categories/skills").iterdir()
    copy = file.with_name(f"{file.stem}{request.param}.md")
    text = file.read_text().replace(digest("user likes tea"), digest("user likes coffee"))
    copy.write_text(text.replace("likes tea", "likes coffee"))
    return Pair(terminal, ref, file, copy)


def test_commands_by_id_mean_the_original(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = pair.terminal
    before = pair.copy.read_text()
    monkeypatch.setenv("EDITOR", "sed -i s/tea/milk/")

    output = terminal.ok("read", pair.ref)
    assert output.endswith("\nuser likes tea\n")
    output = terminal.ok("read", pair.ref[:8])
    assert output.endswith("\nuser likes tea\n")
    terminal.ok("tag", pair.ref, "--add", "drinks")
    terminal.ok("edit", pair.ref)
    terminal.ok("pin", pair.ref)

    assert "user likes milk" in pair.file.read_text()
    assert "drinks" in pair.file.read_text()
    assert pair.copy.read_text() == before
    terminal.ok("delete", pair.ref)
    assert not pair.file.exists()
    assert pair.copy.read_text() == before


def test_doctor_names_the_copy_and_gives_it_an_id_of_its_own(pair: Pair) -> None:
    terminal = pair.terminal
    output = terminal("doctor").out
    assert f"conflict_copy categories/skills/{pair.copy.name}: a copy of " in output

    terminal.ok("doctor", "--fix")

    assert terminal.ok("doctor") == "0 problems\n"
    rows = terminal("list", "--json").json["memories"]
    ids = {row["id"] for row in rows}
    assert len(ids) == 2
    contents = {row["content"] for row in rows}
    assert contents == {"user likes tea", "user likes coffee"}
    output = terminal.ok("read", pair.ref)
    assert output.endswith("\nuser likes tea\n")


def test_doctor_removes_a_copy_that_says_the_same_and_undo_brings_it_back(pair: Pair) -> None:
    terminal = pair.terminal
    pair.copy.write_bytes(pair.file.read_bytes())

    terminal.ok("doctor", "--fix")

    assert pair.file.exists()
    assert not pair.copy.exists()
    terminal.ok("undo")
    content = pair.copy.read_bytes()
    assert content == pair.file.read_bytes()


def test_files_of_one_id_of_which_none_is_the_original_stay_ambiguous(terminal: Any) -> None:
    ref = terminal.write("twice", "--category", "skills")
    (file,) = (terminal.home / "categories/skills").iterdir()
    file.with_name("other.md").write_bytes(file.read_bytes())

    assert "duplicate_id" in terminal("doctor", "--fix").out
    assert terminal("delete", ref).status == 1
    paths = list((terminal.home / "categories/skills").iterdir())
    assert len(paths) == 2


@pytest.mark.parametrize("ending", ENDINGS)
def test_doctor_names_the_copy_of_a_note_with_a_permalink(terminal: Any, ending: str) -> None:
    terminal.ok("call", "write_note", '{"title": "Plan", "content": "tea", "directory": "p"}')
    file = terminal.home / "notes/p/Plan.md"
    copy = file.with_name(f"Plan{ending}.md")
    text = file.read_text()
    copy.write_text(text)
    output = terminal("doctor", "--fix").out
    expected = f"conflict_copy notes/p/{copy.name}: a copy of p/Plan.md made by"
    assert expected in output
    assert copy.exists()


def test_doctor_names_no_notes_of_one_permalink_that_are_no_copies(terminal: Any) -> None:
    folder = terminal.home / "notes"
    folder.mkdir(parents=True)
    text = "---\npermalink: tea\n---\nA note.\n"
    (folder / "one.md").write_text(text)
    (folder / "two.md").write_text(text)
    output = terminal("doctor").out
    assert "conflict_copy" not in output
