"""project add, list, remove, default (contract 001, 16; contract 000b, 1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.pseudo_terminal import shown


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "one.md").write_text("one\n")
    (folder / "two.md").write_text("two\n")
    return folder


def test_a_project_in_json_names_all_there_is(terminal: Any, vault: Path) -> None:
    added = terminal("project", "add", "work", str(vault), "--default", "--json").json
    row = {"name": "work", "path": str(vault), "notes": 2, "default": True, "built_in": False}

    assert added == {"schema": "project/1", "project": row}
    document = terminal("project", "list", "--json").json
    assert row in document["projects"]
    document = terminal("project", "default", "notes", "--json").json
    assert document["project"]["name"] == "notes"
    document = terminal("project", "remove", "WORK", "--json").json
    assert document["project"]["default"] is False


def test_only_its_own_keys_of_the_configuration_change(terminal: Any, vault: Path) -> None:
    terminal.ok("list")
    config = terminal.home / "config.yaml"
    config.write_text("# mine\ntimezone: UTC  # here\nhistory:\n  days: 7\n")
    terminal.ok("project", "add", "work", str(vault))
    terminal.ok("project", "remove", "work")
    text = config.read_text()
    assert text.startswith("# mine\ntimezone: UTC  # here\nhistory:\n  days: 7\n")
    assert str(vault) not in text


def test_what_cannot_be_a_project_is_said_in_one_line(terminal: Any, vault: Path) -> None:
    terminal.ok("project", "add", "work", str(vault))
    inside = str(vault / "inside")
    file = vault / "one.md"
    for argv, message in [
        (["add", "work", str(vault)], "project exists: work"),
        (["add", "Work", "/elsewhere"], "project exists: work"),
        (["add", "kv", "/elsewhere"], "project exists: kv"),
        (["add", "a/b", str(vault)], "invalid project name: a/b"),
        (["add", "file", str(file)], f"not a folder: {file}"),
        (["add", "inside", inside], f"{inside} overlaps project work"),
        (["remove", "nope"], "no such project: nope"),
        (["remove", "kv"], "cannot remove a built-in project: kv"),
        (["default", "nope"], "no such project: nope"),
    ]:
        ran = terminal("project", *argv)
        assert ran.status == 1
        assert ran.out == ""
        assert ran.error == message
        assert ran.err.count("Error:") == 1
    ran = terminal("project", "add", "root", "/", "--json")

    assert ran.status == 1
    assert ran.json["error"]["code"] == "project_refused"
    assert ran.err.count("Error: ") == 1


@pytest.mark.parametrize("name", ["हिन्दी", "ไทยนี้", "தமிழ்", "עִבְרִית"])
def test_a_project_has_a_name_of_a_script_with_vowel_signs(
    terminal: Any, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    terminal.ok("project", "add", name, str(folder))
    ran = terminal("project", "list", "--json")
    rows = ran.json["projects"]
    last_row = rows[-1]
    assert last_row["name"] == name


def test_a_project_name_is_the_same_in_both_unicode_forms(terminal: Any, tmp_path: Path) -> None:
    first_folder = tmp_path / "one"
    first_folder.mkdir()
    other_folder = tmp_path / "two"
    other_folder.mkdir()
    decomposed = "cafe\u0301"
    composed = "caf\u00e9"
    terminal.ok("project", "add", decomposed, str(first_folder))
    ran = terminal("project", "add", composed, str(other_folder))
    assert ran.status == 1
    assert ran.error == f"project exists: {composed}"


def test_a_folder_that_is_not_there_is_named(terminal: Any) -> None:
    ran = terminal("project", "add", "./Notez")
    assert (ran.status, ran.error) == (1, "no such folder: ./Notez")
    assert "memory project add NAME DIR" in ran.err


def test_a_project_in_a_folder_that_is_not_there_says_that_it_was_made(
    terminal: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "vualt"
    lines = shown("project", "add", "work", str(folder)).splitlines()
    assert lines == [
        f"Added project work ({folder}, 0 notes)",
        f"{folder} was not there, and was made.",
    ]
    assert folder.is_dir()
    (tmp_path / "vault").mkdir()
    assert len(shown("project", "add", "more", str(tmp_path / "vault")).splitlines()) == 1
