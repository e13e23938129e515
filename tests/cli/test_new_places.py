"""A typing mistake in `--home` or `--config`, and a project that is not there: a word on stderr."""

from __future__ import annotations

import shutil
from typing import Any

import pytest


@pytest.fixture
def notes(terminal: Any, tmp_path: Any) -> str:
    """A home called `notes`, with a note."""
    home = str(tmp_path / "notes")
    assert terminal("--home", home, "write", "tea at four").status == 0
    return home


@pytest.mark.parametrize("mistake", ["notse", "nots", "note", "Notes"])
@pytest.mark.parametrize("command", [("list",), ("write", "tea at five")])
def test_home_with_a_typing_mistake_names_the_home_beside_it(
    terminal: Any, notes: str, mistake: str, command: tuple[str, ...]
) -> None:
    mistaken_home = notes.replace("notes", mistake)
    run = terminal("--home", mistaken_home, *command)
    assert run.status == 0
    assert f"Did you mean --home {notes}?" in run.err


@pytest.mark.parametrize("name", ["notes2", "work", "archive of notes"])
def test_new_home_with_a_name_of_its_own_is_written_without_a_word(
    terminal: Any, notes: str, name: str
) -> None:
    run = terminal("--home", notes.replace("notes", name), "write", "tea at five")
    assert (run.status, run.err) == (0, "")


@pytest.mark.parametrize("command", [("list",), ("search", "tea"), ("log",)])
def test_new_home_that_is_read_is_said_to_be_empty_once(
    terminal: Any, notes: str, command: tuple[str, ...]
) -> None:
    home = notes.replace("notes", "elsewhere")
    first_run = terminal("--home", home, *command)
    assert (first_run.status, first_run.err) == (
        0,
        f"No memory was in {home} before, so this one is empty.\n",
    )
    second_run = terminal("--home", home, *command)
    assert (second_run.status, second_run.err) == (0, "")


def test_new_home_among_very_many_folders_is_compared_with_none(
    terminal: Any, notes: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoranda.cli.invocation._MOST_FOLDERS", 3)
    home = notes.replace("notes", "nots")
    for number in range(3):
        (tmp_path / f"folder-{number}").mkdir()
    run = terminal("--home", home, "list")
    assert run.err == f"No memory was in {home} before, so this one is empty.\n"


def test_file_with_nearly_the_name_of_a_new_home_is_not_compared(
    terminal: Any, notes: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoranda.cli.invocation._MOST_FOLDERS", 3)
    for number in range(9):
        (tmp_path / f"note-{number}").touch()
    run = terminal("--home", notes.replace("notes", "nots"), "list")
    assert f"Did you mean --home {notes}?" in run.err


def test_home_whose_state_is_gone_is_no_new_home(terminal: Any, notes: str) -> None:
    shutil.rmtree(f"{notes}/.memoranda")
    run = terminal("--home", notes, "list")
    assert "tea at four" in run.out
    assert run.err == ""


def test_configuration_file_that_is_missing_is_named(terminal: Any, tmp_path: Any) -> None:
    file = tmp_path / "cnofig.yaml"
    run = terminal("--config", str(file), "list")
    assert (run.status, run.err) == (
        0,
        f"warning: there is no file {file}, so the defaults hold\n",
    )


def test_configuration_file_is_made_without_a_word(terminal: Any, tmp_path: Any) -> None:
    file = tmp_path / "config of mine.yaml"
    run = terminal("--config", str(file), "config", "set", "history.days", "80")
    assert (run.status, run.err) == (0, "")
    assert terminal("--config", str(file), "list").err == ""


def test_project_whose_folder_is_missing_is_named_by_what_reads(
    terminal: Any, tmp_path: Any
) -> None:
    vault = tmp_path / "vault"
    unplugged = tmp_path / "unplugged"
    vault.mkdir()
    note = vault / "v.md"
    note.write_text("the finch sings\n")
    terminal.ok("project", "add", "vault", str(vault))
    terminal.ok("list")
    shutil.move(vault, unplugged)
    for command in (("list",), ("search", "finch"), ("status",)):
        run = terminal(*command)
        assert run.status == 0, run.err
        assert "The folder of project vault is missing" in run.err, command
    shutil.move(unplugged, vault)
    run = terminal("search", "finch")
    assert run.err == ""
