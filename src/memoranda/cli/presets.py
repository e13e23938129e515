"""`memory mcp --as PRESET`: which tools and projects replace another memory server.

Sources: contract 000a (anthropic), contract 000b, 10 (basic-memory), contract 002, 8
(server-memory, thoughtbox), contract 003, 1 (memory-bank), contract 004, 1 and 7 (agent-memory).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from memoranda.cli.output import Failure
from memoranda.faces import FACES, PRESETS
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.text.user_path import absolute_path

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.engine.reading import ReadVerbs
    from memoranda.faces.kv import JsonFolder
    from memoranda.faces.tool import Toolset


@dataclass(frozen=True, slots=True)
class Preset:
    """A way to serve tools as another server does.

    tools: the toolsets to serve.
    projects: name -> folder of projects that only this server has.
    default_project: the project of calls that name none.
    name: the name of the server, as clients see it.
    like: the server whose tool names and replies are used.
    json_folder: the folder of JSON files with the key-value entries. None means that the entries
        are notes of project `kv`.
    manners: name of a toolset -> a function that makes the toolset behave as in another program.
    """

    tools: tuple[str, ...]
    projects: Mapping[str, str] = field(default_factory=dict)
    default_project: str | None = None
    name: str = "memoranda"
    like: str | None = None
    json_folder: str | None = None
    manners: Mapping[str, Callable[[Toolset], Toolset]] = field(default_factory=dict)


def preset(name: str, environ: Mapping[str, str] = os.environ) -> Preset:
    """Return the preset with this name.

    environ: the environment variables. MEMORY_BANK_ROOT has the folder of memory banks,
        AGENT_MEMORY_PATH the folder of key-value entries. If the variable is not set, the files of
        an installed server of that name are used where they are. Without such files, our notes are
        used.

    Raises Failure, which names the known presets, and ConfigError for a bad file.
    """
    if name == "basic-memory":
        return _basic_memory(environ)
    if name == "memory-bank":
        return _memory_bank(environ)
    if name == "agent-memory":
        return _agent_memory(environ)
    for face in FACES.values():
        if name in face.presets:
            # The toolset `graph` imitates more than one server.
            return Preset((face.name,), like=name if face.name == "graph" else None)
    raise Failure(f'unknown preset "{name}"; presets: {", ".join(PRESETS)}')


def _memory_bank(environ: Mapping[str, str]) -> Preset:
    """Return the preset for a memory-bank server.

    If such a server is installed, its folder of banks becomes the project `banks`.
    """
    root = environ.get("MEMORY_BANK_ROOT")
    usual_root = os.path.expanduser("~/.claude-desktop/memory")
    if not root and os.path.isdir(usual_root):
        root = usual_root
    projects = {"banks": root} if root else {}
    return Preset(("bank",), projects)


def _agent_memory(environ: Mapping[str, str]) -> Preset:
    """Return a preset with the key-value entries of an installed server, or without them."""
    folder = json_folder(environ)
    usual_folder = os.path.expanduser("~/.agent-memory")
    if not folder and os.path.lexists(usual_folder):
        folder = usual_folder
    return Preset(("kv",), name="agent-memory", like="agent-memory", json_folder=folder)


def _basic_memory(environ: Mapping[str, str]) -> Preset:
    """Return a preset with the projects and options of an installed Basic Memory.

    Raises ConfigError.
    """
    from memoranda.basic_memory import in_manner
    from memoranda.basic_memory.vault import read_vault

    vault = read_vault(environ)
    return Preset(
        ("notes",),
        projects=vault.places,
        default_project=vault.start,
        manners={"notes": in_manner(vault)},
    )


class InPlace(NamedTuple):
    """How a store of another server is used in place.

    options: the options of `memory mcp` with which it is used.
    project: a name for a project with this store.
    """

    options: str
    project: str


def folders_in_place(environ: Mapping[str, str] = os.environ) -> dict[str, InPlace]:
    """Return the folders of notes that installed servers have, each with how it is used in place.

    environ: the environment variables.

    Raises ConfigError.
    """
    folders: dict[str, InPlace] = {}
    for root in _memory_bank(environ).projects.values():
        if os.path.isdir(root):
            folders[absolute_path(root)] = InPlace("--as memory-bank", "memory bank")
    for name, root in _basic_memory(environ).projects.items():
        if os.path.isdir(os.path.expanduser(root)):
            folders[absolute_path(root)] = InPlace("--as basic-memory", name)
    return folders


def json_folder(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the folder of JSON files with the key-value entries (contract 004, 7).

    None means that the entries are notes.
    """
    return environ.get("AGENT_MEMORY_PATH") or None


def json_entries(folder: str | None) -> AbstractContextManager[JsonFolder | None]:
    """Open the folder of JSON files with the key-value entries. Leaving the context closes it.

    The context yields the open folder, or None if the entries are notes.

    folder: the path of the folder. None if the entries are notes.
    """
    if folder is None:
        return nullcontext()
    from memoranda.faces.kv import JsonFolder

    return closing(JsonFolder(folder))


# Characters that the name of a project cannot have.
_NOT_IN_NAMES = re.compile(r"[^\w .\-]+")
# The name of a graph file is cut to this before it becomes the name of a project.
_MAX_NAME_CHARACTERS = 40
# The environment variables with the file of the graph, in the order in which thoughtbox reads them.
_GRAPH_VARIABLES = ("THOUGHTBOX_MEMORY_PATH", "MEMORY_FILE_PATH")
_THOUGHTBOX_FILE = ".thoughtbox/memory.jsonl"


def graph_file(
    configured: str | None, option: str | None = None, like: str | None = None
) -> Path | None:
    """Return the file of the knowledge graph to serve (contract 002, 8).

    None if the graph is not in a file: then the notes of the project `graph` are served.

    The first path that is named counts: `option`, an environment variable (`_GRAPH_VARIABLES`), or
    `configured`. If none is named, it depends on the server that the tools imitate:

    - Thoughtbox has its file in the working folder, and makes it if it is missing.
    - Other servers of graphs do not know that file, so the graph is in no file.
    - Tools of our own serve the file of thoughtbox if it exists.

    configured: the path in the configuration. None if the configuration has no such path.
    option: the path on the command line. None if the caller named no path.
    like: the server that the tools imitate, such as "thoughtbox". None if they imitate no server.
    """
    variables = _GRAPH_VARIABLES
    if like == "server-memory":
        # That server reads only the last of these variables, so its value comes first.
        variables = variables[::-1]
    places_in_environment = [os.environ.get(variable) for variable in variables]
    for place in (option, *places_in_environment, configured):
        if place:
            return Path(absolute_path(place))

    # No path is named.
    thoughtbox_file = Path(os.path.abspath(_THOUGHTBOX_FILE))
    if like == "thoughtbox":
        return thoughtbox_file
    imitates_other_server = like in FACES["graph"].presets
    if not imitates_other_server and thoughtbox_file.exists():
        return thoughtbox_file
    return None


def graph_in_place(settings: Settings) -> dict[str, InPlace]:
    """Return the file of the graph if it is there and not a project, with how it is used in place."""
    file = graph_file(settings.graph_file)
    if file is None or not file.is_file():
        return {}
    return {
        str(file): InPlace("--tools graph", name) for name in graph_project(file, settings.projects)
    }


class UnseenStore(NamedTuple):
    """A store of another server that only one kind of `memory mcp` sees.

    place: its folder or file.
    options: the options of `memory mcp` with which it is used.
    command: the command after which every interface finds what is in it.
    """

    place: str
    options: str
    command: str


def unseen_stores(memory: ReadVerbs) -> list[UnseenStore]:
    """Return the stores of other servers that are used in place, and that no project has.

    A folder of key-value entries is left out while the notes have all its entries. Only the owner
    is told: another caller does not know which projects have them. Raises ConfigError.
    """
    if memory.agent is not None:
        return []
    roots = [project.root.resolve() for project in memory.projects]
    stores: list[UnseenStore] = []
    in_place = graph_in_place(memory.settings) | folders_in_place()
    for place, use in in_place.items():
        real = Path(place).resolve()
        if not any(real.is_relative_to(root) for root in roots):
            command = shlex.join(["memory", "project", "add", use.project, place])
            stores.append(UnseenStore(place, use.options, command))
    entries = _agent_memory(os.environ).json_folder
    if entries and not _is_imported(memory, Path(entries)):
        command = shlex.join(["memory", "import", "--from", "agent-memory", entries])
        stores.append(UnseenStore(entries, "--as agent-memory", command))
    return stores


def _is_imported(memory: ReadVerbs, folder: Path) -> bool:
    """Whether the notes have all entries that a folder of JSON files has.

    Entries whose time to live is over do not count. False if a file cannot be read.
    """
    from memoranda.transfer.moving import IMPORT, UPDATE, WrongStore, plan_agent_memory

    # The plan is not carried out, so a session that only reads is enough.
    reader = cast("MemorySession", memory)
    try:
        plan = plan_agent_memory(reader, folder)
    except WrongStore:
        return False
    return plan.count(IMPORT) == 0 and plan.count(UPDATE) == 0


def graph_project(file: Path | None, projects: Mapping[str, object]) -> dict[str, os.PathLike[str]]:
    """Return the project that serves a graph file, as {name: file}.

    The project is named after the file without its ending: `team.jsonl` becomes `team`. The result
    is empty if there is no graph file, or if a project for this file exists already.

    file: the graph file. None means that the graph is kept in notes.
    projects: the other projects, except the built-in ones: name -> folder or file.
    """
    if file is None:
        return {}
    known_places = {str(Path(os.path.expanduser(str(place)))) for place in projects.values()}
    if str(file) in known_places:
        return {}
    from memoranda.engine.graphs import graph_project as project_of_file

    stem = _NOT_IN_NAMES.sub("-", file.stem)[:_MAX_NAME_CHARACTERS].strip() or "graph file"
    used_names = {*BUILT_IN_PROJECTS, *(name.lower() for name in projects)}
    name = _unused_name(stem, used_names)
    return {name: project_of_file(name, file)}


def _unused_name(stem: str, used_names: Collection[str]) -> str:
    """Return the first of `stem`, `stem file`, `stem file 2`, … that no project has.

    used_names: the names of all projects in lowercase.
    """
    name = stem
    number = 1
    while name.lower() in used_names:
        name = f"{stem} file" if number == 1 else f"{stem} file {number}"
        number += 1
    return name
