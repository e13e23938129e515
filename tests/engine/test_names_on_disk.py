"""File names match in any Unicode form, and as a listing prints them (AMENDMENTS 4.4, 2.3)."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.faces import registry
from memoranda.faces.reply import Reply
from memoranda.sources.path_guard import as_on_disk


class Caller:
    """Calls tools of one memory, whose folders are in `home`."""

    def __init__(self, memory: MemorySession, home: Path):
        self.memory = memory
        self.home = home
        self.tools = registry(("memory", "notes"), memory.settings)

    def __call__(self, tool: str, **arguments: object) -> Reply:
        return self.tools.call(self.memory, tool, arguments)

    def put(self, path: str, text: str = "text\n") -> None:
        """A file another program made."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    home = tmp_path / "home"
    with open_session(home, watch=False) as memory:
        yield Caller(memory, home)


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


NAMES = [
    "Café",
    "Ångström",
    "Übung",
    "한국어",
    "がぎぐ",
    "Việt",
    "naïve note",
    "ёж",
    "ñandú",
    "ὕδωρ",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_folder", [False, True])
def test_file_in_another_unicode_form_is_the_one_named(
    caller: Caller, name: str, is_folder: bool
) -> None:
    path = f"{name}/a.md" if is_folder else f"{name}.md"
    caller.put(f"memories/{decomposed(path)}", "first\n")

    text = caller("memory", command="view", path=f"/memories/{path}").text
    assert "first" in text
    edited = caller(
        "memory",
        command="str_replace",
        path=f"/memories/{path}",
        old_str="first",
        new_str="second",
    )
    assert not edited.is_error
    text = (caller.home / "memories" / decomposed(path)).read_text()
    assert text == "second\n"
    caller("memory", command="create", path=f"/memories/{path}", file_text="third\n")
    text = (caller.home / "memories" / decomposed(path)).read_text()
    assert text == "third\n"
    names = os.listdir(caller.home / "memories")
    assert names == [decomposed(path).partition("/")[0]]
    reply = caller("memory", command="delete", path=f"/memories/{path}")
    assert not reply.is_error


@pytest.mark.parametrize("name", NAMES)
def test_note_written_into_a_folder_of_another_form_makes_no_twin(
    caller: Caller, name: str
) -> None:
    caller.put(f"notes/{decomposed(name)}/old.md")

    caller("write_note", title="New", directory=name, content="x")

    assert os.listdir(caller.home / "notes") == [decomposed(name)]
    assert not caller("read_note", identifier=f"{name}/New.md").is_error


@pytest.mark.parametrize("name", NAMES)
def test_note_of_another_form_is_written_read_and_moved_as_one(caller: Caller, name: str) -> None:
    caller.put(f"notes/{decomposed(name)}.md", "first\n")

    assert caller("write_note", title=name, directory="", content="x").is_error
    assert "first" in caller("read_note", identifier=f"{name}.md").text
    assert len(os.listdir(caller.home / "notes")) == 1


@pytest.mark.parametrize("name", ["a\tb.md", "\tx.md", "a \t b.txt", "dir\tone/x.md", "é\tü.md"])
def test_name_with_a_tab_is_usable_as_it_is_listed(caller: Caller, name: str) -> None:
    caller.put(f"memories/{name}", "first\n")
    listing = caller("memory", command="view", path="/memories").text
    printed_path = listing.rstrip("\n").rpartition("\n")[2].split("\t", 1)[1]

    text = caller("memory", command="view", path=printed_path).text
    assert "first" in text
    caller("memory", command="create", path=printed_path, file_text="second\n")
    text = (caller.home / "memories" / name).read_text()
    assert text == "second\n"
    reply = caller("memory", command="delete", path=printed_path)
    assert not reply.is_error


def test_exact_name_wins_over_another_form(tmp_path: Path) -> None:
    (tmp_path / decomposed("é")).touch()
    (tmp_path / "é").touch()

    assert as_on_disk(str(tmp_path), "é") == "é"
    assert as_on_disk(str(tmp_path), decomposed("é")) == decomposed("é")


def test_name_that_several_files_match_stays_as_given(tmp_path: Path) -> None:
    (tmp_path / "a\t b").touch()
    (tmp_path / "a \tb").touch()

    assert as_on_disk(str(tmp_path), "a  b") == "a  b"


@pytest.mark.parametrize("name", NAMES)
def test_folder_of_another_form_is_listed_and_moved_into(caller: Caller, name: str) -> None:
    caller.put(f"notes/{decomposed(name)}/old.md")
    caller.put("notes/loose.md")

    text = caller("list_directory", directory=name).text
    assert "old" in text
    moved = caller("move_note", identifier="loose.md", destination_path=f"{name}/loose.md")

    assert not moved.is_error
    names = os.listdir(caller.home / "notes")
    assert names == [decomposed(name)]
