"""What a person sees on a terminal, and nobody in a pipe: tables, colours, the pager, nearest
notes, progress.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.pseudo_terminal import shown
from memoranda.cli.output import fit, width

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_a_table_is_as_wide_as_the_terminal_also_with_chinese(terminal: Any) -> None:
    terminal.write("用户喜欢深色模式，" * 20, "--category", "preferences")
    terminal.write("the staging server is called heron " * 10)
    lines = COLOUR.sub("", shown("list", columns=90)).split("\n")

    for line in lines[1:3]:
        assert 89 <= width(line) <= 90
    for line in lines[1:3]:
        assert line.endswith("…")
    assert lines[-2] == "Showing 2 of 2 memories"


@pytest.mark.promise("shell-2")
def test_colours_are_left_out_when_asked_and_in_a_pipe(terminal: Any) -> None:
    terminal.write("heron")
    assert COLOUR.search(shown("list"))
    assert not COLOUR.search(shown("list", NO_COLOR="1"))
    assert not COLOUR.search(shown("list", TERM="dumb"))
    assert terminal.ok("list").startswith(
        "ID       Phase      Category   Source     Created              Preview\n---"
    )


def test_what_is_longer_than_the_screen_goes_through_the_pager(
    terminal: Any, tmp_path: Path
) -> None:
    for number in range(9):
        terminal.write(f"note {number}")
    pager = tmp_path / "pager.py"
    pager.write_text("import sys; print('PAGED', len(sys.stdin.readlines()))")
    screen: dict[str, Any] = {"rows": 8, "PAGER": f"{sys.executable} {pager}"}
    assert shown("list", **screen) == "PAGED 12\n"
    for more in (["--no-pager"], ["--limit", "1"], ["--json"]):
        out = shown("list", *more, **screen)
        assert "note 8" in out
        assert "PAGED" not in out


@pytest.mark.promise("shell-2")
def test_the_nearest_by_words_are_shown_when_no_text_holds_the_words(terminal: Any) -> None:
    terminal.write("prefers a dark theme")
    terminal.write("用户喜欢深色模式")
    terminal.ok(
        "call", "write_note", '{"title": "Plan", "folder": "", "content": "dark mode everywhere"}'
    )
    out = COLOUR.sub("", shown("search", "dark", "mode", "--project", "categories"))
    assert out.startswith('Nothing holds "dark mode". Nearest by words:\n')
    assert "prefers a dark theme" in out
    assert "用户喜欢深色模式" in shown("search", "深色界面")
    assert COLOUR.sub("", shown("search", "dark")).endswith("Found: 2 notes\n")
    ran = terminal("search", "mode dark")
    assert ran.err.startswith('Nothing holds "mode dark". Nearest by words:\n')
    assert "Plan" in ran.out
    assert ran.out.endswith("\n\nFound: 1 notes\n")
    ran = terminal("search", "dark zebra", "--ranked")
    assert ran.err.startswith('No note holds all of "dark zebra".')
    assert "Plan" in ran.out
    assert terminal.ok("search", "zebra quagga") == "No matching memories found.\n"
    for more in ([], ["--ranked"]):
        assert "Plan" in terminal.ok("search", "dark", "project:notes", *more)
        assert "theme" not in terminal.ok("search", "dark", "project:notes", *more)
    assert terminal.ok("search", "dark").endswith("\n\nFound: 2 notes\n")


def test_long_work_shows_a_bar(terminal: Any, tmp_path: Path) -> None:
    terminal.write("deploy the repo on branch main")
    file = str(tmp_path / "file")
    for label, words in (
        ("Dreaming", ["dream", "--level", "3"]),
        ("Exporting", ["export", "--output", file]),
        ("importing", ["import", "--input", file]),
    ):
        out = shown(*words)
        assert label in out
        assert "100%" in out


def test_an_error_is_red_on_a_terminal_alone(terminal: Any) -> None:
    assert shown("read", "nobody").startswith("\x1b[31;1mError:\x1b[0m memory not found: nobody")
    assert terminal("read", "nobody").error == "memory not found: nobody"


def test_a_cut_text_keeps_whole_characters() -> None:
    assert [fit("深色模式", columns) for columns in (8, 7, 6, 2)] == [
        "深色模式",
        "深色模…",
        "深色…",
        "…",
    ]
    assert width("e\u0301") == 1
