"""The resource template memory://{project}/{+path} (contract 000b, 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput, OutsideError
from commonplace.faces.tool import Template

if TYPE_CHECKING:
    from commonplace.engine import Memory

_VALUES = 100


def template() -> Template:
    """The template, its reading and its completion."""
    return Template(
        "memory://{project}/{+path}", "note", "A note by project and path or permalink, percent-encoded.",
        "text/markdown", read, complete,
    )  # fmt: skip


def read(memory: Memory, variables: dict[str, str]) -> str:
    """The note's whole text; `path` is a path or permalink in `project`, both decoded. Raises as read_note."""
    return memory.read(variables["path"], project=variables["project"]).text


def complete(memory: Memory, variable: str, beginning: str, others: dict[str, str]) -> list[str]:
    """Projects by the beginning of their names; permalinks, without the project given, by theirs."""
    if variable == "project":
        names = [each.name for each in memory.projects]
        return [name for name in names if name.casefold().startswith(beginning.casefold())][:_VALUES]
    if variable != "path":
        return []
    project = others.get("project") or ""
    if not any(each.name.casefold() == project.casefold() for each in memory.projects):
        return [] if project else memory.complete(beginning, _VALUES)
    name = memory.project(project).name
    try:
        found, _ = memory.matching(f"{beginning}*", project=name, limit=_VALUES)
    except (InvalidInput, OutsideError):  # what cannot be an address has no completion
        return []
    return [each.permalink.removeprefix(f"{name}/") for each in found]
