"""Contract 001, 17.8: strings that climb, as category, id or scope, are refused; no file is
outside the home.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from contract.note_tools import put, seen
from contract.tables import tables
from memoranda.text.unicode import flat

TABLES = tables("traversal")

pytestmark = pytest.mark.promise("001-17.8")

STRINGS = TABLES["strings"]


def outside(folder: Path) -> dict[str, Any]:
    """Everything in the user's folder but the home's private part."""
    return {
        name: (mode, content)
        for name, (mode, _, content) in seen(folder).items()
        if ".memoranda" not in name
    }


def test_a_category_or_scope_there_is_not_is_refused(terminal: Any) -> None:
    put(terminal.folder / "user/x.md", "outside\n")
    ref = terminal.write("kept")
    before = outside(terminal.folder)
    lines = [["write", "text", name] for name in ("category", "scope")]
    options = ("category", "scope", "phase")
    lines += [[*argv, option] for argv, option in product((["list"], ["search", "x"]), options)]
    for string, (*argv, name) in product(STRINGS, lines):
        ran = terminal(*argv, f"--{name}={string}")
        assert ran.status == 1, (argv, name, string)
        assert ran.err.startswith(f'Error: invalid {name} "{flat(string)}"\n'), (argv, name, string)
        assert ran.err.count("Error:") == 1

    assert outside(terminal.folder) == before
    assert terminal("read", ref).status == 0


def test_an_id_that_is_none_is_not_found(terminal: Any) -> None:
    put(terminal.folder / "user/x.md", "---\nid: ../x\n---\noutside\n")
    ref = terminal.write("kept")
    before = outside(terminal.folder)
    for string in STRINGS:
        missing = f"memory not found: {flat(string)}"
        for argv in (["read"], ["delete"], ["tag", "--add", "t"], ["backlinks"]):
            ran = terminal(*argv, "--", string)
            assert ran.status == 1, argv
            assert ran.error == missing, argv
        for verb in ("link", "unlink"):
            for pair, word in (([string, ref], "source"), ([ref, string], "target")):
                ran = terminal(verb, "--", *pair)
                assert ran.status == 1, verb
                assert ran.error == f"{word} not found: {missing}", verb

    assert outside(terminal.folder) == before


@pytest.mark.parametrize(
    "string",
    [
        "../../x.md",
        "notes/../../x.md",
        "/tmp/x.md",
        "categories/../../x",
        "notes/%2e%2e/%2e%2e/x.md",
        "nobody/x",
    ],
)
def test_a_restored_text_stays_in_its_project(terminal: Any, string: str) -> None:
    ref = terminal.write("kept")
    terminal.ok("delete", ref)
    before = outside(terminal.folder)
    ran = terminal("restore", ref, "--to", string)
    if string == "nobody/x":
        assert ran.status == 0
        return
    assert ran.status == 1, ran
    assert outside(terminal.folder) == before
    for verb in (["restore", string], ["log", string]):
        assert terminal(*verb).status == 1
    assert outside(terminal.folder) == before
