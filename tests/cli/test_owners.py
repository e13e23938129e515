"""A home of another user, and a user without a home folder (issue 33, 11)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

OTHER = 3_999_999


@pytest.fixture
def other_user(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A home with a memory, seen by somebody else than the user it belongs to."""
    terminal.write("a note")
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    return terminal


def test_doctor_names_the_owner_of_a_home_and_the_remedy(other_user: Any) -> None:
    ran = other_user("doctor")

    assert ran.out.startswith("error owner .: it belongs to ")
    assert f"sudo chown -R {OTHER} {other_user.home}" in ran.out
    assert ran.out.endswith("\n1 problems\n")
    with_fix = other_user("doctor", "--fix")
    assert with_fix.out == ran.out


def test_doctor_offers_no_change_of_mode_to_who_may_not_change_it(other_user: Any) -> None:
    other_user.home.chmod(0o755)

    assert "others can read the home (mode 755)" in other_user("doctor", "--fix").out
    assert other_user.home.stat().st_mode & 0o777 == 0o755


def test_doctor_names_single_files_of_another_user(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.write("a note")
    if os.geteuid():
        pytest.skip("only root may give files away")
    os.chown(terminal.home, OTHER, OTHER)
    os.chown(terminal.home / "categories", OTHER, OTHER)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)

    output = terminal("doctor").out

    assert "error owner .memoranda: it belongs to " in output
    assert "error owner categories: " not in output


@pytest.mark.parametrize("name", ["", ".memoranda"])
def test_home_that_may_not_be_read_is_said_to_be_so(
    other_user: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    closed = other_user.home / name
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != closed)

    ran = other_user("doctor")

    assert ran.status == 1
    assert f"{closed} belongs to " in ran.err
    assert "sudo chown -R" in ran.err


def test_user_without_a_home_folder_is_told_what_to_set(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("MEMORY_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: OTHER)
    monkeypatch.chdir(terminal.folder)

    ran = terminal("write", "x")

    assert "Set HOME or MEMORY_HOME" in ran.err
    assert not (terminal.folder / "~").exists()


def test_home_that_is_a_file_is_said_to_be_one(terminal: Any) -> None:
    file = terminal.folder / "notes.txt"
    file.write_text("a text")

    ran = terminal("--home", str(file), "list")

    assert ran.status == 1
    assert f"{file} is a file" in ran.err
    assert "chown" not in ran.err
    assert file.read_text() == "a text"
