"""`project add | list | remove | default` (contract 001, 16; rules: contract 000b, 1)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure
from commonplace.cli.syntax import Group, Usage, command, flag

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.projects import Project

_KEYS = ("name", "path", "notes", "default", "built_in")
_NOT_IN_NAMES = re.compile(r"[^\w .\-]+")

project = Group(
    "project",
    dict.fromkeys(("add", "list", "remove", "default"), "project_commands"),
    help="Add folders of notes or graph files as projects, list them, take them off the list.",
)


def _names(context: click.Context, given: Sequence[str], *, built_in: bool = True) -> list[str]:
    """Project names for the shell to offer; reads the configuration, opens nothing."""
    from commonplace.errors import ConfigError
    from commonplace.note.model import BUILT_IN_PROJECTS

    try:
        added = list((context.find_object(Invocation) or Invocation()).settings().projects)
    except ConfigError:
        added = []
    return [] if given else [*(BUILT_IN_PROJECTS if built_in else ()), *added]


def _rows(memory: Memory, *projects: Project) -> list[dict[str, Any]]:
    counts = memory.stats().projects
    cells = ((each.name, str(each.root), counts.get(each.name, 0), each.default, each.built_in) for each in projects)
    return [dict(zip(_KEYS, row, strict=True)) for row in cells]


@command("add", "[NAME]", "[DIR]", keys={"project": _KEYS}, example="memory project add work ~/work/notes")
@flag("--default", "Make it the default project.", "as_default")
@flag("--native", "Add what Claude Code, Codex and Gemini CLI remember by themselves, a project for each folder.")
def project_add(call: Invocation, *words: str, as_default: bool, native: bool) -> None:
    """Use the notes of a folder in place, or the entities of a graph file, as project NAME.

    DIR is the folder or the JSON Lines file; without NAME its own name is taken: `memory project add .`
    With --native JSON has a list, `projects`.
    """
    if native:
        if words or as_default:
            raise Usage("--native takes no NAME, DIR or --default")
        return _add_native(call)
    if not words:
        raise Usage("accepts between 1 and 2 arg(s), received 0")
    folder = os.path.abspath(os.path.expanduser(words[-1])) if words[-1] else ""
    if len(words) == 1 and not os.path.exists(folder):
        raise Usage("accepts 2 arg(s), received 1")
    name = words[0] if len(words) > 1 else _NOT_IN_NAMES.sub("-", Path(folder).stem).strip(" .-")[:64]
    with call.memory() as memory:
        added, action = memory.add_project(name, folder, as_default)
        if action == "unchanged":
            raise Failure(f"project exists: {added.name}", "exists")
        (row,) = _rows(memory, added)
        if action == "asked":
            return call.answer(f"Asked the owner for {added.root}: see memory review", project=row)
        call.answer(f"Added project {added.name} ({added.root}, {row['notes']} notes)", project=row)


def _add_native(call: Invocation) -> None:
    from commonplace.clients.native import add_native

    with call.memory() as memory:
        added, refused = add_native(memory)
        rows = _rows(memory, *added)
        lines = [f"Added project {row['name']} ({row['path']}, {row['notes']} notes)" for row in rows]
        lines += [f"Left out {folder}: {why}" for folder, why in refused]
        call.answer("\n".join(lines) or "No memories of other programs that are not projects yet.", projects=rows)


@command("list", keys={"projects": _KEYS}, example="memory project list")
def project_list(call: Invocation) -> None:
    """List the projects with their notes and folders."""
    with call.memory() as memory:
        rows, head = _rows(memory, *memory.projects), ("Name", "Notes", "Folder")
        if call.json:
            return call.document(projects=rows)
        cells = [(r["name"], str(r["notes"]), r["path"] + (" (default)" if r["default"] else "")) for r in rows]
        call.table(head, cells if call.on_terminal else [head, *cells], form="{:<12} {:>6} {}")


@command(
    "remove",
    "NAME",
    keys={"project": _KEYS},
    complete=partial(_names, built_in=False),
    example="memory project remove work",
)
def project_remove(call: Invocation, name: str) -> None:
    """Take a project off the list. Its files stay."""
    with call.memory() as memory:
        (row,) = _rows(memory, memory.project(name))
        call.answer(f"Removed project {memory.remove_project(name).name}", project=row)


@command("default", "NAME", keys={"project": _KEYS}, complete=_names, example="memory project default work")
def project_default(call: Invocation, name: str) -> None:
    """Make NAME the default project: where new notes go."""
    with call.memory() as memory:
        chosen = memory.set_default(name)
        call.answer(f"Default project: {chosen.name}", project=_rows(memory, chosen)[0])
