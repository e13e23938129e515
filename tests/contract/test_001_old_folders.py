"""Contract 001, 2: `short-term` and `long-term`, the folders that the reference program had first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.promise("001-17.3")

SHORT = "0f0e1111-2222-4333-8444-555566660001"
LONG = "0f0e1111-2222-4333-8444-555566660002"
TEXTS = {
    f"short-term/{SHORT}.md": f"---\nid: {SHORT}\ntype: short\nscope: global\n---\nbuy milk\n",
    f"long-term/{LONG}.md": f"---\ncontent_hash: x\nid: {LONG}\ntype: long\n---\nlikes tea\n",
}


@pytest.fixture
def home(terminal: Any) -> Path:
    """A home in which the reference program kept two memories."""
    for path, text in TEXTS.items():
        file = terminal.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return terminal.home


def test_memories_in_the_old_folders_are_listed_with_their_phase(home: Path, terminal: Any) -> None:
    rows = terminal("list", "--json").json["memories"]
    phases = {row["id"]: (row["phase"], row["content"]) for row in rows}
    assert phases == {SHORT: ("inbox", "buy milk"), LONG: ("organized", "likes tea")}


def test_a_home_with_only_the_old_folders_is_not_called_empty(home: Path, terminal: Any) -> None:
    assert terminal("--home", str(home), "list").err == ""


def test_a_memory_in_an_old_folder_keeps_its_bytes_until_it_is_written(
    home: Path, terminal: Any
) -> None:
    terminal.ok("list")
    texts = {file.read_text(encoding="utf-8") for file in home.rglob(f"{SHORT}.md")}
    assert texts == {TEXTS[f"short-term/{SHORT}.md"]}


def test_a_memory_in_an_old_folder_goes_to_its_category_when_it_is_written(
    home: Path, terminal: Any
) -> None:
    terminal.ok("upgrade", SHORT, "--category", "habits")
    assert terminal("read", SHORT, "--json").json["memory"]["path"].startswith("categories/habits/")


def test_an_empty_old_folder_is_removed(home: Path, terminal: Any) -> None:
    terminal.ok("list")
    assert not (home / "short-term").exists()


def test_a_file_that_is_no_memory_stays_in_a_folder_of_that_name(home: Path, terminal: Any) -> None:
    note = home / "long-term/plan.md"
    note.write_text("# My plan\n\nid: none\n", encoding="utf-8")
    terminal.ok("list")
    assert note.exists()


def test_a_link_with_the_name_of_an_old_folder_is_not_followed(
    terminal: Any, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = elsewhere / f"{SHORT}.md"
    file.write_text(TEXTS[f"short-term/{SHORT}.md"], encoding="utf-8")
    terminal.home.mkdir(exist_ok=True)
    os.symlink(elsewhere, terminal.home / "short-term")
    terminal.ok("list")
    assert file.exists()


def test_a_memory_with_a_name_that_is_taken_gets_another_name(home: Path, terminal: Any) -> None:
    taken = home / "categories/short-term" / f"{SHORT}.md"
    taken.parent.mkdir(parents=True)
    taken.write_text(f"---\nid: {LONG[:-1]}3\n---\nanother\n", encoding="utf-8")
    rows = terminal("list", "--json").json["memories"]
    assert {row["content"] for row in rows} == {"another", "buy milk", "likes tea"}
