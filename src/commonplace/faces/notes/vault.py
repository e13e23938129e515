"""What a configuration of Basic Memory says of its projects and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput, ProjectNotFound
from commonplace.faces.arguments import Arguments
from commonplace.faces.notes.replies import project_id
from commonplace.note.links import slug

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.projects import Project


@dataclass(frozen=True, slots=True)
class Vault:
    """What a Basic Memory configuration says. `names`: its project names -> ours; `only`: the one project every call
    is about; `cloud`: projects that are not on this disk; the rest are its options of these names."""

    names: Mapping[str, str] = field(default_factory=dict)
    only: str | None = None
    cloud: frozenset[str] = frozenset()
    kebab_filenames: bool = False
    write_note_overwrite_default: bool = False
    update_permalinks_on_move: bool = False
    permalinks_include_project: bool = True
    enable_posix_tools: bool = True

    def projects(self, memory: Memory) -> list[tuple[str, Project]]:
        """(that program's name, project) of every project it would know."""
        theirs = {ours: name for name, ours in self.names.items()}
        return [
            (theirs.get(each.name, each.name), each)
            for each in memory.projects
            if each.name in theirs or not each.built_in or (not theirs and each.name == memory.default_project)
        ]

    def known(self, memory: Memory, name: str) -> tuple[str, Project] | None:
        """The project that program would take `name` for, with its name for it."""
        return next((pair for pair in self.projects(memory) if slug(pair[0]) == slug(name)), None)

    def named(self, memory: Memory, args: Arguments) -> str:
        """Our name of the project a call is about. Raises ProjectNotFound, InvalidInput."""
        projects = self.projects(memory)
        if args.get("workspace"):
            raise InvalidInput("Cloud workspaces are not used here; every project is a folder. Leave `workspace` out.")
        given = self.only or args.get("project")
        if not self.only and (identity := args.get("project_id")):
            found = [each.name for name, each in projects if project_id(name) == str(identity).lower()]
            if not found:
                raise InvalidInput(f"No project has the id {identity}. list_memory_projects shows them.")
            return found[0]
        if not given:
            return memory.default_project
        if known := self.known(memory, str(given).strip()):
            return known[1].name
        if given in self.cloud:
            raise InvalidInput(
                f"Project {given} is kept in Basic Memory's cloud, which is not used here. "
                "Add its folder on this disk with create_memory_project."
            )
        raise ProjectNotFound(str(given), [name for name, _ in projects])

    def detected(self, memory: Memory, args: Arguments) -> str | None:
        """The project an address begins with when none is named; it is cut off."""
        if args.get("project") or args.get("project_id") or self.only:
            return None
        for key in ("identifier", "url", "path", "id"):
            given = args.get(key)
            address = given.strip() if isinstance(given, str) else ""
            first, _, rest = address.removeprefix("memory://").partition("/")
            known = self.known(memory, first) if rest else None
            if known and known[1].name != memory.default_project:
                args[key] = f"memory://{rest}" if address.startswith("memory://") else given
                return known[1].name
        return None

    def shown(self, name: str) -> str:
        """That program's name of our project."""
        return next((theirs for theirs, ours in self.names.items() if ours == name), name)
