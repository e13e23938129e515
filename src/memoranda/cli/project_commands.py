"""The commands `project add | list | remove | default | access | check` (contract 001, 16).

A project is a folder of notes, or a graph file. The rules for projects are in contract 000b, 1.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memoranda import documents
from memoranda.cli.invocation import Invocation
from memoranda.cli.output import Failure
from memoranda.cli.syntax import (
    Number,
    Text,
    Usage,
    command,
    flag,
    group,
    option,
    values_in_home,
    wrong_count,
)
from memoranda.documents.wording import plural
from memoranda.engine.links.attachments import (
    conventions_of,
    inventory_of_project,
    unresolved_links,
    vault_of,
)
from memoranda.errors import ConfigError
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.note.project_access import ProjectAccess
from memoranda.query import split_list
from memoranda.text.unicode import one_line
from memoranda.text.user_path import absolute_path

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.links.attachments import Conventions, Inventory, LeftOut, UnresolvedLink
    from memoranda.engine.project_list import Project

_FOUND_KEYS = ("notes", "attachments", "left_out", "symlinks", "unreadable")
_CONVENTION_KEYS = (
    "programs",
    "daily_folder",
    "daily_format",
    "templates",
    "attachments",
    "new_notes",
    "has_markdown_links",
    "warnings",
)
_LINK_KEYS = ("path", "line", "target", "state", "reason")
_ACCESS_KEYS = ("read_only", "agents", "write_folder", "ignore")
# At most this many files of each kind are named.
_MOST_NAMED = 8

# The name of a project has at most this many characters.
_MAX_NAME_CHARACTERS = 64

project = group(
    "project",
    "project_commands",
    "add list remove default access check",
    "Add, list and remove projects: folders of notes, or graph files.",
)


def _added_projects(context: click.Context) -> list[str]:
    """Return the projects that are not built in, so that a shell can complete their names."""
    return [name for name in values_in_home(context, "project") if name not in BUILT_IN_PROJECTS]


@command(
    "add",
    "[NAME]",
    "[DIR]",
    keys={"project": documents.PROJECT_KEYS},
    example="memory project add work ~/work/notes",
)
@flag("--default", "Make it the default project.", "as_default")
@flag(
    "--native",
    "Add the memories of Claude Code, Codex and Gemini CLI, each folder as a project.",
)
@flag("--read-only", "Nobody can change its notes through memoranda.", "is_read_only")
@option("--agents", metavar="LIST", help="Only these agents may use it, e.g. claude,codex [all].")
@option(
    "--write-folder", metavar="FOLDER", help="Agents may write only in this folder of the project."
)
def project_add(
    call: Invocation,
    *words: str,
    as_default: bool,
    native: bool,
    is_read_only: bool,
    agents: Text,
    write_folder: Text,
) -> None:
    """Use the notes of a folder in place, or the entities of a graph file, as project NAME.

    DIR is the folder, or the JSON Lines file of the graph. Without NAME, the project gets the name of
    DIR: `memory project add .` The files stay as they are, so use this for a vault that you also use
    in other programs. `memory ingest` copies notes into the memory instead. If the folder belongs to
    another program (Obsidian, Logseq, Foam, Dendron, zk, Basic Memory), the settings of that program
    are followed, and the findings are shown. JSON then also has `access`, `found` and `conventions`.
    With --native, JSON has the list `projects`.
    """
    if native:
        if any((words, as_default, is_read_only, agents, write_folder)):
            raise Usage("--native takes no NAME, DIR or other option")
        return _add_native(call)
    name, folder = _named_folder(words)
    access = ProjectAccess(is_read_only, tuple(split_list(agents)), write_folder or "")
    with call.memory() as memory:
        has_folder = memory.settings.url is None
        # A home in a database has no folders: there, DIR is part of the project's name.
        place = folder if has_folder else words[-1]
        is_new_folder = has_folder and not os.path.lexists(folder)
        project, action = memory.add_project(
            name, place, as_default, hidden=_is_of_known_server(folder), access=access
        )
        if action == "unchanged":
            hint = f"Change what agents may do in it: memory project access {project.name}"
            raise Failure(f"project exists: {project.name}", "exists", hint)
        (row,) = documents.projects(memory, [project])
        # An agent may add only a folder that the owner has allowed.
        if action == "asked":
            text = f"Asked the owner for {project.root}: see memory review"
            return call.answer(text, project=row)
        lines = [_added_line(row)]
        if is_new_folder and call.on_terminal:
            lines.append(f"{folder} was not there, and was made.")
        detail_lines = _findings_lines(memory, project)
        detail_lines += _access_lines(memory.access_to(project.name))
        facts = _facts(memory, project) if detail_lines else {}
        call.answer("\n".join(lines + detail_lines), project=row, **facts)


def _is_of_known_server(folder: str) -> bool:
    """Whether an installed server, whose place `memory mcp --as` takes, has its notes there.

    Such a folder is often hidden. No other hidden folder can be a project.
    """
    from memoranda.cli.presets import folders_in_place

    with suppress(ConfigError):
        return folder in folders_in_place()
    return False


def _added_line(row: dict[str, Any]) -> str:
    """Return the line about a new project.

    row: the project, as JSON has it.
    """
    return f"Added project {row['name']} ({row['path']}, {row['notes']} notes)"


def _add_native(call: Invocation) -> None:
    """Add the folders of other programs' memories as projects."""
    from memoranda.clients.table import add_native

    with call.memory() as memory:
        added_projects, refused_folders = add_native(memory)
        rows = documents.projects(memory, added_projects).rows
        lines = [_added_line(row) for row in rows]
        lines += [f"Left out {folder}: {why}" for folder, why in refused_folders]
        text = "\n".join(lines) or "No memories of other programs that are not projects yet."
        call.answer(text, projects=rows)


def _named_folder(words: tuple[str, ...]) -> tuple[str, str]:
    """Return (name of the project to add, absolute path of its folder).

    words: NAME and DIR, or only DIR. Then the name of the folder is the name of the project.

    Raises Usage, and Failure if only the folder is named and it does not exist.
    """
    if not words:
        raise wrong_count("accepts between 1 and 2 arg(s), received 0")
    folder = absolute_path(words[-1]) if words[-1] else ""
    if len(words) > 1:
        return words[0], folder
    if not os.path.exists(folder):
        # A word that does not look like a path is probably the name of a project.
        if words[0].startswith(("~", ".", "/")):
            raise Failure(
                f"no such folder: {words[0]}",
                "not_found",
                "To make it: memory project add NAME DIR",
            )
        raise wrong_count("accepts 2 arg(s), received 1")
    name = re.sub(r"[^\w .\-]+", "-", Path(folder).stem).strip(" .-")
    return name[:_MAX_NAME_CHARACTERS], folder


def _facts(memory: MemorySession, project: Project) -> dict[str, Any]:
    """Return JSON keys of a project: the rights of agents and, for a folder, its other contents.

    These are the files that are not notes, and the settings of other programs.
    """
    access = memory.access_to(project.name)
    facts: dict[str, Any] = {
        "access": {
            "read_only": access.is_read_only,
            "agents": list(access.agents),
            "write_folder": access.write_folder,
            "ignore": list(access.ignore),
        }
    }
    if vault_of(memory, project.name) is None:
        return facts
    inventory = inventory_of_project(memory, project.name)
    conventions = conventions_of(memory, project.name)
    facts["found"] = {
        "notes": inventory.notes,
        "attachments": [row._asdict() for row in inventory.attachments],
        "left_out": [row._asdict() for row in inventory.left_out],
        "symlinks": [row._asdict() for row in inventory.symlinks],
        "unreadable": inventory.unreadable,
    }
    facts["conventions"] = {key: getattr(conventions, key) for key in _CONVENTION_KEYS}
    return facts


def _findings_lines(memory: MemorySession, project: Project) -> list[str]:
    """Return lines about a project's files that are not notes, and the settings of other programs.

    [] if there is nothing to say. Otherwise, the last line says that nothing was changed, and how to
    see the links that lead nowhere.
    """
    if vault_of(memory, project.name) is None:
        return []
    inventory = inventory_of_project(memory, project.name)
    conventions = conventions_of(memory, project.name)
    lines = []
    if conventions.programs:
        lines.append(f"Known to {conventions.program}. {_places(conventions)}".rstrip())
    lines += _inventory_lines(inventory)
    lines += conventions.warnings
    if lines:
        lines.append(
            "Nothing in the folder was changed."
            f" Links that lead nowhere: memory project check {_quote(project.name)}"
        )
    return lines


def _places(conventions: Conventions) -> str:
    """Return in one line where other programs keep their notes and files: `New notes in Inbox.`"""
    daily_parts = (conventions.daily_folder, conventions.daily_format)
    places = {
        "notes of days": "/".join(part for part in daily_parts if part),
        "new notes": conventions.new_notes,
        "templates": conventions.templates,
        "attachments": conventions.attachments,
    }
    sentence = ", ".join(f"{name} in {place}" for name, place in places.items() if place)
    if not sentence:
        return ""
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _inventory_lines(inventory: Inventory) -> list[str]:
    """Return lines about the files of a project that are not notes.

    These are attachments, symlinks, and files that are left out or cannot be read.
    """
    lines = []
    if inventory.attachments:
        kinds = Counter(attachment.kind for attachment in inventory.attachments)
        counts_text = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        lines.append(f"Attachments, listed and not searched: {counts_text}")
    if inventory.left_out:
        rows = [_left_out_line(row) for row in inventory.left_out]
        lines.append(f"Left out: {_first_names(rows)}")
    if inventory.symlinks:
        rows = [f"{row.path} to {row.target}" for row in inventory.symlinks]
        lines.append(f"Symlinks, not followed: {_first_names(rows)}")
        if any(not row.is_inside for row in inventory.symlinks):
            lines.append("To have what lies elsewhere, add that folder as a project of its own.")
    if inventory.unreadable:
        lines.append(f"Cannot be read: {_first_names(inventory.unreadable)}")
    return lines


def _left_out_line(row: LeftOut) -> str:
    """Return a folder or file that is left out: `Templates (3 notes; templates of Obsidian)`."""
    return f"{row.path} ({plural(row.notes, 'note')}; {row.reason})"


def _first_names(rows: Sequence[str]) -> str:
    """Return the first names, and the number of the others: `a, b and 3 more`."""
    names = ", ".join(one_line(row) for row in rows[:_MOST_NAMED])
    hidden_count = len(rows) - _MOST_NAMED
    if hidden_count > 0:
        return f"{names} and {hidden_count} more"
    return names


def _access_lines(access: ProjectAccess) -> list[str]:
    """Return lines about the rights of agents in a project, if they may not do everything."""
    lines = []
    if access.is_read_only:
        lines.append("It is read-only: no note of it is changed through memoranda.")
    if access.agents:
        lines.append(f"Only {', '.join(access.agents)} may use it, and you.")
    if access.write_folder:
        lines.append(f"Agents write in {access.write_folder}/ alone.")
    if access.ignore:
        lines.append(f"Left out by the configuration: {_first_names(access.ignore)}")
    return lines


def _quote(name: str) -> str:
    """Return the name of a project as a shell takes it: `'my notes'`."""
    if re.fullmatch(r"[\w.\-]+", name):
        return name
    return f"'{name}'"


@command(
    "access",
    "NAME",
    keys={"access": _ACCESS_KEYS},
    complete=_added_projects,
    example="memory project access vault --write-folder Inbox",
)
@flag("--read-only", "Nobody can change its notes through memoranda.", "is_read_only")
@flag("--read-write", "Its notes may be changed.", "is_writable")
@option("--agents", metavar="LIST", help="Only these agents may use it; `all` for all.")
@option(
    "--write-folder",
    metavar="FOLDER",
    help="Agents may write only in this folder; `/` for everywhere.",
)
@option(
    "--ignore",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Also leave this out, in the form of gitignore; may be repeated. `none` leaves nothing out.",
)
def project_access(
    call: Invocation,
    name: str,
    is_read_only: bool,
    is_writable: bool,
    agents: Text,
    write_folder: Text,
    patterns: tuple[str, ...],
) -> None:
    """Show or change what agents may do in project NAME. It does not limit what you may do."""
    if is_read_only and is_writable:
        raise Usage("--read-only and --read-write exclude each other")
    with call.memory() as memory:
        present_access = memory.access_to(name)
        access = present_access
        if is_read_only or is_writable:
            access = replace(access, is_read_only=is_read_only)
        access = _with_options(access, agents, write_folder, patterns)
        if access != present_access:
            access = memory.set_access(name, access)
        project = memory.project(name)
        lines = _access_lines(access) or ["All agents may read and write all of it."]
        call.answer("\n".join(lines), access=_facts(memory, project)["access"])


def _with_options(
    access: ProjectAccess, agents: Text, write_folder: Text, patterns: tuple[str, ...]
) -> ProjectAccess:
    """Return the access with the values of the options that are given.

    agents: the option `--agents`, such as `claude,codex` or `all`.
    write_folder: the option `--write-folder`.
    patterns: the options `--ignore`; `("none",)` leaves nothing out.
    """
    if agents is not None:
        agent_names = tuple(split_list(agents.lower()))
        # In the settings, an empty list means all agents.
        if agent_names == ("all",):
            agent_names = ()
        access = replace(access, agents=agent_names)
    if write_folder is not None:
        access = replace(access, write_folder=write_folder)
    if patterns:
        ignored_patterns = () if patterns == ("none",) else patterns
        access = replace(access, ignore=ignored_patterns)
    return access


@command(
    "check",
    "NAME",
    keys={
        "found": _FOUND_KEYS,
        "conventions": _CONVENTION_KEYS,
        "links": _LINK_KEYS,
        "total": (),
    },
    complete=_added_projects,
    example="memory project check vault",
)
@option("--limit", "-n", type=Number(), default=50, help="How many links at most; 0 = all.")
def project_check(call: Invocation, name: str, limit: int) -> None:
    """Show what the folder of project NAME contains, and why links in it lead nowhere.

    Nothing is changed.
    """
    with call.memory() as memory:
        project = memory.project(name)
        links = unresolved_links(memory, name)
        facts = _facts(memory, project)
        facts.pop("access")
        # 0 means no limit.
        shown_links = links[: limit or None]
        rows = []
        for link in shown_links:
            rows.append({key: getattr(link, key) for key in _LINK_KEYS})

        # The last line says to run this command, so it is left out.
        lines = _findings_lines(memory, project)[:-1]
        lines += _links_lines(shown_links, len(links))
        call.answer("\n".join(lines), **facts, links=rows, total=len(links))


def _links_lines(shown_links: Sequence[UnresolvedLink], count: int) -> list[str]:
    """Return lines about the links of a project that lead nowhere.

    shown_links: the links that are listed.
    count: the number of all such links.
    """
    lines = ["One link leads nowhere." if count == 1 else f"{count:,} links lead nowhere."]
    for link in shown_links:
        text = f"{link.path}, line {link.line}: [[{link.target}]]: {link.reason}"
        lines.append(one_line(text))
    if count > len(shown_links):
        lines.append(f"… and {count - len(shown_links):,} more: --limit 0")
    return lines


@command("list", keys={"projects": documents.PROJECT_KEYS}, example="memory project list")
def project_list(call: Invocation) -> None:
    """List the projects with their notes and folders."""
    with call.memory() as memory:
        rows = documents.projects(memory, memory.projects).rows
        if call.json:
            return call.document(projects=rows)
        head = ("Name", "Notes", "Folder")
        cells = []
        for row in rows:
            mark = " (default)" if row["default"] else ""
            cells.append((row["name"], str(row["notes"]), row["path"] + mark))
        if not call.on_terminal:
            # A terminal gets the head from `table` itself.
            cells.insert(0, head)
        call.table(head, cells, form="{:<12} {:>6} {}")


@command(
    "remove",
    "NAME",
    keys={"project": documents.PROJECT_KEYS},
    complete=_added_projects,
    example="memory project remove work",
)
def project_remove(call: Invocation, name: str) -> None:
    """Remove a project from the list. Its files stay."""
    with call.memory() as memory:
        # The row is made first, because it counts the notes of the project.
        (row,) = documents.projects(memory, [memory.project(name)])
        removed_project = memory.remove_project(name)
        call.answer(f"Removed project {removed_project.name}", project=row)


@command(
    "default",
    "NAME",
    keys={"project": documents.PROJECT_KEYS},
    complete="project",
    example="memory project default work",
)
def project_default(call: Invocation, name: str) -> None:
    """Make NAME the default project, in which new notes are written."""
    with call.memory() as memory:
        default_project = memory.set_default(name)
        (row,) = documents.projects(memory, [default_project])
        call.answer(f"Default project: {default_project.name}", project=row)
