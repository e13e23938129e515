"""`project add | list | remove | default` (contract 001, 16; rules: contract 000b, 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Group, command

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.projects import Project

PROJECT_KEYS = ("name", "path", "notes", "default", "built_in")
ROW = "{:<12} {:>6} {}"

project = Group(
    "project",
    {name: f"projects:{name}" for name in ("add", "list", "remove", "default")} | {"list": "projects:list_projects"},
    help="Add folders of notes or graph files as projects, list them, take them off the list.",
)


def names(context: click.Context, beginning: str, given: Sequence[str], *, built_in: bool = True) -> list[str]:
    """Project names for the shell to offer; reads the configuration, opens nothing."""
    from commonplace.errors import ConfigError
    from commonplace.note.model import BUILT_IN_PROJECTS

    invocation = context.find_object(Invocation) or Invocation()
    try:
        added = list(invocation.settings().projects)
    except ConfigError:
        added = []
    return [] if given else [*(BUILT_IN_PROJECTS if built_in else ()), *added]


def _added_names(context: click.Context, beginning: str, given: Sequence[str]) -> list[str]:
    return names(context, beginning, given, built_in=False)


def _rows(memory: Memory, *projects: Project) -> list[dict[str, Any]]:
    counts = memory.stats().projects
    return [_row(each, counts.get(each.name, 0)) for each in projects]


def _row(each: Project, notes: int) -> dict[str, Any]:
    return {
        "name": each.name,
        "path": str(each.root),
        "notes": notes,
        "default": each.default,
        "built_in": each.built_in,
    }


@command("add", "NAME", "DIR", keys={"project": PROJECT_KEYS})
@click.option("--default", "as_default", is_flag=True, help="Make it the default project.")
def add(call: Invocation, name: str, folder: str, *, as_default: bool) -> None:
    """Use the notes of a folder in place, or the entities of a graph file, as project NAME.

    DIR is the folder or the JSON Lines file, absolute or beginning with ~.
    """
    with call.memory() as memory:
        added, action = memory.add_project(name, folder, as_default)
        if action == "unchanged":
            raise Failure(f"project exists: {added.name}", "exists")
        (row,) = _rows(memory, added)
        call.answer(f"Added project {added.name} ({added.root}, {row['notes']} notes)", project=row)


@command("list", keys={"projects": PROJECT_KEYS})
def list_projects(call: Invocation) -> None:
    """List the projects with their notes and folders."""
    with call.memory() as memory:
        rows = _rows(memory, *memory.projects)
        lines = [ROW.format("Name", "Notes", "Folder")]
        lines += [ROW.format(r["name"], r["notes"], r["path"] + (" (default)" if r["default"] else "")) for r in rows]
        call.answer("\n".join(lines), projects=rows)


@command("remove", "NAME", keys={"project": PROJECT_KEYS}, complete=_added_names)
def remove(call: Invocation, name: str) -> None:
    """Take a project off the list. Its files stay."""
    with call.memory() as memory:
        (row,) = _rows(memory, memory.project(name))
        gone = memory.remove_project(name)
        call.answer(f"Removed project {gone.name}", project=row)


@command("default", "NAME", keys={"project": PROJECT_KEYS}, complete=names)
def default(call: Invocation, name: str) -> None:
    """Make NAME the default project: where new notes go."""
    with call.memory() as memory:
        chosen = memory.set_default(name)
        call.answer(f"Default project: {chosen.name}", project=_rows(memory, chosen)[0])
