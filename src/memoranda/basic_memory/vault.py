"""Reads the configuration of Basic Memory 0.24, and never writes it.

A project of Basic Memory that has the name of one of our built-in projects gets another name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.errors import STAND_IN, ConfigFileError, InvalidInput, ProjectNotFound
from memoranda.faces.arguments import Arguments
from memoranda.faces.notes.replies import project_id
from memoranda.note.links import slug
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.note.names import named_one

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.project_list import Project

_OPTIONS = (
    "kebab_filenames",
    "write_note_overwrite_default",
    "update_permalinks_on_move",
    "permalinks_include_project",
)
# The spellings of a switch in its configuration and environment.
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
# Arguments whose value may begin with the name of a project.
_ADDRESSES = ("identifier", "url", "path", "id")
_NO_WORKSPACES = (
    "Cloud workspaces are not used here; every project is a folder. Leave `workspace` out."
)


@dataclass(frozen=True, slots=True)
class Vault:
    """A configuration of Basic Memory. Basic Memory and memoranda may call the same project
    differently.

    names: Basic Memory's name of a project -> our name.
    places: our name of a project -> its folder.
    only: Basic Memory's name of a project to which every call is limited. None means any project.
    start: our name of the default project, or None.
    cloud: Basic Memory's names of projects that are not on this disk.

    The other fields are options of Basic Memory with the same names.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    only: str | None = None
    start: str | None = None
    cloud: frozenset[str] = frozenset()
    kebab_filenames: bool = False
    write_note_overwrite_default: bool = False
    update_permalinks_on_move: bool = False
    permalinks_include_project: bool = True

    def projects(self, memory: MemorySession) -> dict[str, Project]:
        """Return the projects that Basic Memory would know, by Basic Memory's names."""
        their_names = {ours: theirs for theirs, ours in self.names.items()}
        projects_by_name = {}
        for project in memory.projects:
            # Of our built-in projects, Basic Memory would have only its default one
            is_only_project = not their_names and project.name == memory.default_project
            if project.name in their_names or not project.built_in or is_only_project:
                name = their_names.get(project.name, project.name)
                projects_by_name[name] = project
        return projects_by_name

    def known_name(self, memory: MemorySession, name: str) -> str | None:
        """Return the name of the project that `name` means in Basic Memory, or None."""
        projects = self.projects(memory)
        exact = named_one(name, projects)
        if exact is not None:
            return exact
        # A project may also be named by its permalink: `example-project` for `ExampleProject`.
        for project_name in projects:
            if slug(project_name) == slug(name):
                return project_name
        return None

    def named(self, memory: MemorySession, args: Arguments) -> str:
        """Return our name of the project that the arguments name, or of the default project.

        Raises ProjectNotFound, InvalidInput.
        """
        if args.get("workspace"):
            raise InvalidInput(_NO_WORKSPACES)
        if not self.only and args.get("project_id"):
            return self._project_with_id(memory, str(args["project_id"]))

        name = self.only or args.get("project")
        if not name:
            return memory.default_project
        known_name = self.known_name(memory, str(name).strip())
        if known_name is not None:
            return self.projects(memory)[known_name].name
        if name in self.cloud:
            raise InvalidInput(
                f"Project {name} is kept in Basic Memory's cloud, which is not used here. "
                "Add its folder on this disk with create_memory_project."
            )
        raise ProjectNotFound(str(name), list(self.projects(memory)))

    def _project_with_id(self, memory: MemorySession, identity: str) -> str:
        """Return our name of the project with an id. Raises InvalidInput.

        identity: the id that Basic Memory shows for a project.
        """
        for name, project in self.projects(memory).items():
            if project_id(name) == identity.lower():
                return project.name
        raise InvalidInput(f"No project has the id {identity}. list_memory_projects shows them.")

    def detected(self, memory: MemorySession, args: Arguments) -> str | None:
        """Find the project that an address in the arguments begins with. Returns our name of it.

        None if no address does, if it is the default project, or if the call names its project.
        For `memory://work/plans` it is `work`, and the argument becomes `memory://plans`. An
        address without `memory://` is not changed.
        """
        if args.get("project") or args.get("project_id") or self.only:
            return None
        for key in _ADDRESSES:
            address = args.get(key)
            if not isinstance(address, str):
                continue
            address = address.strip()
            first, _, path_in_project = address.removeprefix("memory://").partition("/")
            # A single word is the name of a note, even if a project has the same name.
            known_name = self.known_name(memory, first) if path_in_project else None
            if known_name is None:
                continue
            our_name = self.projects(memory)[known_name].name
            if our_name == memory.default_project:
                # The tools look there anyway. A later argument may name another project.
                continue
            if address.startswith("memory://"):
                args[key] = f"memory://{path_in_project}"
            return our_name
        return None

    def shown(self, name: str) -> str:
        """Return Basic Memory's name of a project.

        name: our name of the project.
        """
        for theirs, ours in self.names.items():
            if ours == name:
                return theirs
        return name


def read_vault(environ: Mapping[str, str] = os.environ) -> Vault:
    """Read the configuration of an installed Basic Memory.

    Without a configuration, the vault has the default folder of Basic Memory, if it exists.
    Raises ConfigError.

    environ: the environment variables.
    """
    settings = _settings(environ)
    forced_project = environ.get("BASIC_MEMORY_MCP_PROJECT") or None
    names: dict[str, str] = {}
    places: dict[str, str] = {}
    cloud: set[str] = set()
    for name, entry in settings["projects"].items():
        path = _local_path(entry)
        if path is None:
            cloud.add(name)
            continue
        names[name] = _our_name(name, names.values())
        places[names[name]] = path
    start = _start_project(names, forced_project, settings.get("default_project"))
    options = _options(settings, environ)
    return Vault(names, places, forced_project, start, frozenset(cloud), **options)


def _settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the contents of `config.json`, or the default ones. Raises ConfigFileError."""
    config_home = environ.get("XDG_CONFIG_HOME")
    default_folder = f"{config_home}/basic-memory" if config_home else "~/.basic-memory"
    folder = environ.get("BASIC_MEMORY_CONFIG_DIR") or default_folder
    file = Path(os.path.expanduser(folder)) / "config.json"
    try:
        settings = json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return _default_settings(environ)
    except (OSError, ValueError, RecursionError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        raise ConfigFileError(file, reason) from None
    if not isinstance(settings, dict) or not isinstance(settings.get("projects"), dict):
        raise ConfigFileError(file, "it names no projects")
    return settings


def _default_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what Basic Memory assumes without a configuration: one folder, if it is there."""
    root = os.path.expanduser(environ.get("BASIC_MEMORY_HOME") or "~/basic-memory")
    projects = {"main": root} if os.path.isdir(root) else {}
    return {"projects": projects, "default_project": "main"}


def _local_path(entry: Any) -> str | None:
    """Return the folder of a project in the configuration. None if it is not on this disk.

    entry: a path or, since release 0.18, an object with `path` and `mode`.
    """
    if not isinstance(entry, dict):
        entry = {"path": entry}
    path = entry.get("path")
    if entry.get("mode") == "cloud" or not isinstance(path, str):
        return None
    if path.startswith(("/", "~")):
        return path
    return None


def _our_name(name: str, names: Any) -> str:
    """Return our name of a project, which is Basic Memory's name in most cases.

    A project `notes` replaces our built-in one. For the name of any other built-in project, whose
    notes have another form, we add `STAND_IN`, which replies do not show (`project_title`).

    names: our names of other projects, which must not be used again.
    """
    if name.lower() == "notes":
        return "notes"
    used_names = {*BUILT_IN_PROJECTS, *map(str.lower, names)} - {"notes"}
    if name.lower() in used_names:
        return f"{name}{STAND_IN}"
    return name


def _start_project(
    names: Mapping[str, str], forced_project: str | None, default: Any
) -> str | None:
    """Return our name of the default project of a server. None if there are no projects.

    It is the forced project, else Basic Memory's default, else the first project.

    names: Basic Memory's name of a project -> our name.
    forced_project: Basic Memory's name of the one project that every call is about. None without
        one.
    default: the default project in the configuration, of any type because a person wrote it.
    """
    for name in (forced_project, default):
        start_name = named_one(name, names) if isinstance(name, str) else None
        if start_name is not None:
            return names[start_name]
    our_names = list(names.values())
    return our_names[0] if our_names else None


def _options(settings: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, bool]:
    """Return the options in the configuration. Environment variables override them.

    settings: the configuration.
    environ: the environment variables.
    """
    options = {key: settings[key] for key in _OPTIONS if isinstance(settings.get(key), bool)}
    for key in _OPTIONS:
        text = environ.get(f"BASIC_MEMORY_{key.upper()}", "").lower()
        if text in _BOOLEANS:
            options[key] = _BOOLEANS[text]
    return options
