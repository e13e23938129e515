"""What a command says to somebody who has not read its help: the option a word belongs to, the name we have for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.pseudo_terminal import shown


@pytest.mark.parametrize(
    ("argv", "guess"),
    [
        (["import", "notes.jsonl"], "Did you mean --input notes.jsonl?"),
        (["export", "notes.jsonl"], "Did you mean --output notes.jsonl?"),
        (["ingest", "~/vault"], "Did you mean --path ~/vault?"),
        (["find", "tea"], "Did you mean search?"),
        (["remember", "tea"], "Did you mean write?"),
        (["project", "list", "x"], "Run 'memory project list --help' for usage."),
        (["import", "a", "b"], "Run 'memory import --help' for usage."),
        (["project", "find"], "Run 'memory project --help' for usage."),
    ],
)
def test_a_word_out_of_place_is_answered_with_what_may_have_been_meant(
    terminal: Any, argv: list[str], guess: str
) -> None:
    ran = terminal(*argv)
    assert ran.status == 2
    assert ran.err.splitlines()[-1] == guess


def test_tags_without_their_option_are_answered_with_it(terminal: Any) -> None:
    ref = terminal.write("tea")
    ran = terminal("tag", ref, "drinks", "hot")
    assert (ran.status, ran.err) == (1, "Error: memory not found: drinks\nDid you mean --add drinks,hot?\n")
    assert terminal("tag", "drinks", ref).err == "Error: memory not found: drinks\n"
    assert terminal("tag", ref, "drinks", "--add", "x").err == "Error: memory not found: drinks\n"


def test_a_folder_read_by_every_source_is_warned_of(terminal: Any, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").write_text("tea", encoding="utf-8")
    said = terminal("ingest", "--path", str(tmp_path / "vault"), "--dry-run").err
    assert said.splitlines()[-1] == "Name the one whose notes these are, e.g. --source obsidian."
    assert said.startswith("warning: claude, car-agent, fingersaver, logseq, obsidian each read this folder")
    assert terminal("ingest", "--path", str(tmp_path / "vault"), "--source", "obsidian", "--dry-run").err == ""
    assert terminal("ingest", "--path", str(tmp_path / "vault"), "--source", "claude,obsidian", "--dry-run").err == ""


def test_a_date_that_is_none_is_answered_with_those_that_are(terminal: Any) -> None:
    said = terminal("list", "--as-of", "soonish").err
    assert said == 'Error: invalid --as-of date: "soonish"\nUse e.g. 2025-03-01, 2025-03 or yesterday.\n'


def test_a_project_in_a_folder_that_is_not_there_says_that_it_was_made(terminal: Any, tmp_path: Path) -> None:
    folder = tmp_path / "vualt"
    said = shown("project", "add", "work", str(folder)).splitlines()
    assert said == [f"Added project work ({folder}, 0 notes)", f"{folder} was not there, and was made."]
    assert folder.is_dir()
    (tmp_path / "vault").mkdir()
    assert len(shown("project", "add", "more", str(tmp_path / "vault")).splitlines()) == 1
