"""Contract 000b, 12.11: no parameter leads out of a project, into a hidden folder, or through a
symlink.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from contract.home_kinds import VAULT
from contract.note_tools import Tools, put, seen
from contract.tables import tables
from memoranda.text.unicode import flat

TABLES = tables("note_paths")

pytestmark = pytest.mark.promise("000b-12.11")

OUT = TABLES["out"]
HIDDEN = [
    ".memoranda/lock",
    ".memoranda",
    "../.memoranda/index.db",
    ".hidden/x.md",
    "a/.git/config",
    ".x.md",
]
LINKED = [
    "away/x.md",
    "away/new/x.md",
    "loop/x.md",
    "file link.md",
    "file link.md/x.md",
    "memories link/secret.md",
]
PLACES = TABLES["places"]
WRITES = {"directory", "destination_path"}
REFUSALS = ("outside", "not_found", "project_not_found", "invalid", "exists", "storage")


@pytest.fixture(scope="module")
def vault(shared: Tools) -> Tools:
    """A home with files beside the project, and links that lead to them. Nothing in it ever
    changes.
    """
    tools = shared
    around = shared.memory.home.parent
    put(around / "outside/x.md", "the outside\n")
    put(tools.memory.home / "memories/secret.md", "of another project\n")
    put(tools.memory.home / "config.yaml", "timezone: UTC\n")
    tools.put("Note.md", "text x\n")
    tools.put("folder/inner.md", "inner\n")
    tools.put(".hidden/x.md", "hidden\n")
    tools.put(".x.md", "hidden\n")
    tools.put("a/.git/config", "hidden\n")
    os.symlink(around / "outside", tools.root() / "away")
    os.symlink("loop", tools.root() / "loop")
    os.symlink(around / "outside/x.md", tools.root() / "file link.md")
    os.symlink(tools.memory.home / "memories", tools.root() / "memories link")
    tools.memory.sync()
    return tools


def everything(tools: Tools) -> dict[str, Any]:
    """All files and folders but our own database; what a folder holds, not when that last changed."""
    return {
        name: (mode, content if isinstance(content, list) else (changed, content))
        for name, (mode, changed, content) in seen(tools.memory.home.parent).items()
        if not name.startswith("home/.memoranda") and name != "home"
    }


def ways(path: str, name: str) -> list[str]:
    """A path as it may be given for a parameter."""
    if name in WRITES:
        return [path]
    return [path, f"memory://{path}", *([f"memory://notes/{path}"] if path[0] != "/" else [])]


@pytest.mark.parametrize("path", [*OUT, *HIDDEN, *LINKED])
def test_no_parameter_takes_a_path_that_leads_out_or_through_a_link(
    vault: Tools, path: str
) -> None:
    before = everything(vault)
    for tool, name, other_arguments in PLACES:
        for way in ways(path, name):
            reply = vault.call(tool, **other_arguments | {name: way})
            assert reply.is_error, (tool, way, reply.text)
            assert reply.data["code"] in REFUSALS, reply.text
            for words in (
                "the outside",
                "of another project",
                "hidden\n",
                str(vault.memory.home.parent),
            ):
                assert words not in reply.text.replace(path, "")
    assert everything(vault) == before


@pytest.mark.parametrize("path", [way_out for way_out in OUT if way_out[0] not in "%~"])
def test_a_path_that_climbs_or_is_absolute_is_refused_as_outside(vault: Tools, path: str) -> None:
    for tool, name, other_arguments in PLACES[:2]:
        text = vault.refused(tool, "outside", **other_arguments, **{name: path})
        assert (
            text
            == f'Path must stay inside project notes: "{flat(path)}". Use a relative path without "..".'
        )


@pytest.mark.folder_home(VAULT)
def test_a_project_folder_that_is_a_link_itself_is_used(tools: Tools, tmp_path: Path) -> None:
    put(tmp_path / "real/a.md", "linked root\n")
    os.symlink(tmp_path / "real", tmp_path / "alias")
    tools("create_memory_project", project_name="alias", project_path=str(tmp_path / "alias"))
    assert tools.found("linked root") == {"a.md"}
    tools("write_note", title="b", content="x", directory="sub", project="alias")
    assert (tmp_path / "real/sub/b.md").exists()
