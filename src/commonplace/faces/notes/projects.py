"""The project tools: list_memory_projects, create_memory_project, delete_project (contract 000b, 1 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.errors import Exists, InvalidInput, ProjectRefused
from commonplace.faces.notes.words import lines, plural, short
from commonplace.faces.tool import Arguments, Reply
from commonplace.query import Query

if TYPE_CHECKING:
    from commonplace.engine import Memory

_OWNERS = "adding projects is left to the owner. Ask them to run: memory project add NAME FOLDER"


def list_memory_projects(memory: Memory, args: Arguments) -> Reply:
    """Every project with its folder and how many notes the caller sees in it."""
    entries = [
        {
            "name": each.name, "path": str(each.root), "notes": notes_in(memory, each.name),
            "default": each.default, "built_in": each.built_in,
        }
        for each in memory.projects
    ]  # fmt: skip
    rows = [
        f"{each['name']}: {plural(each['notes'], 'note')}, {each['path']}" + (" (default)" if each["default"] else "")
        for each in entries
    ]
    return Reply(lines("# Projects", *rows), {"projects": entries})


def notes_in(memory: Memory, project: str) -> int:
    """How many notes of a project the caller sees."""
    return memory.list(Query(projects=(project,)), limit=1)[1]


def create_memory_project(memory: Memory, args: Arguments, *, allowed: bool = True) -> Reply:
    """Add a folder as a project; refused when the owner keeps that to themselves."""
    name, folder = args["project_name"], args["project_path"]
    if not allowed:
        raise ProjectRefused(short(folder), _OWNERS)
    try:
        project, action = memory.add_project(name, folder, args["set_default"])
    except Exists:
        text = (
            f'A project "{short(name)}" exists already, with another folder. '
            "Choose another project_name; list_memory_projects shows those in use."
        )
        return Reply(text, {"error": text, "is_error": True, "code": Exists.code}, is_error=True)
    except InvalidInput:
        raise InvalidInput(
            "Parameter `project_name` must be 1 to 64 letters, digits, blanks, `.`, `_` or `-`; "
            f'got "{short(name, 80)}".'
        ) from None
    count = notes_in(memory, project.name)
    data = {"action": action, "name": project.name, "path": str(project.root), "notes": count}
    head = "# Created project" if action == "created" else "# Project unchanged"
    default = "default: yes" if project.default else ""
    return Reply(lines(head, f"name: {project.name}", f"path: {project.root}", f"notes: {count}", default), data)


def delete_project(memory: Memory, args: Arguments) -> Reply:
    """Take a project off the list; its files stay."""
    project = memory.project(args["project_name"])
    if project.built_in:
        raise InvalidInput(
            f"Project {project.name} is built in and cannot be removed. Projects added with create_memory_project can."
        )
    memory.remove_project(project.name)
    text = lines(
        "# Removed project",
        f"name: {project.name}",
        f"path: {project.root}",
        "Its files stay. Add it again with create_memory_project.",
    )
    return Reply(text, {"action": "removed", "name": project.name, "path": str(project.root)})
