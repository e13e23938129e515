"""`memory mcp --as PRESET`: which tools and projects replace another memory server.

Sources: contract 000a (anthropic), contract 000b, 10 (basic-memory), contract 002, 8
(server-memory, thoughtbox), contract 003, 1 (memory-bank), contract 004, 1 and 7 (agent-memory).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.cli.output import Failure
from memoranda.faces import FACES, PRESETS
from memoranda.note.model import BUILT_IN_PROJECTS
from memoranda.text.user_path import absolute_path

if TYPE_CHECKING:
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
        usual_folder = os.path.expanduser("~/.claude-desktop/memory")
        root = environ.get("MEMORY_BANK_ROOT") or (
            usual_folder if os.path.isdir(usual_folder) else None
        )
        return Preset(("bank",), {"banks": root} if root else {})
    if name == "agent-memory":
        usual_folder = os.path.expanduser("~/.agent-memory")
        folder = json_folder(environ) or (usual_folder if os.path.lexists(usual_folder) else None)
        return Preset(("kv",), name="agent-memory", json_folder=folder)
    for face in FACES.values():
        if name in face.presets:
            return Preset((face.name,), like=name if face.name == "graph" else None)
    raise Failure(f'unknown preset "{name}"; presets: {", ".join(PRESETS)}')


def _basic_memory(environ: Mapping[str, str]) -> Preset:
    """Return a preset with the projects and options of an installed Basic Memory.

    Raises ConfigError.
    """
    from memoranda.basic_memory import in_manner
    from memoranda.basic_memory.vault import read_vault

    vault = read_vault(environ)
    manners = {"notes": in_manner(vault)}
    return Preset(("notes",), vault.places, vault.start, manners=manners)


def json_folder(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the folder of JSON files with the key-value entries (contract 004, 7).

    None means that the entries are notes.
    """
    return environ.get("AGENT_MEMORY_PATH") or None


def json_entries(folder: str | None) -> AbstractContextManager[JsonFolder | None]:
    """Open the folder of JSON files with the key-value entries. Leaving the context closes it.

    folder: the path of the folder. None means that the entries are notes, and yields None.
    """
    if folder is None:
        return nullcontext()
    from memoranda.faces.kv import JsonFolder

    return closing(JsonFolder(folder))


# Characters that the name of a project cannot have.
_NOT_IN_NAMES = re.compile(r"[^\w .\-]+")
_NAME_LENGTH = 40
_GRAPH_VARIABLES = ("THOUGHTBOX_MEMORY_PATH", "MEMORY_FILE_PATH")
_THOUGHTBOX_FILE = ".thoughtbox/memory.jsonl"


def graph_file(
    configured: str | None, option: str | None = None, like: str | None = None
) -> Path | None:
    """Return the file of the knowledge graph to serve (contract 002, 8).

    configured: the path in the configuration. None if the configuration has no such path.
    option: the path on the command line. None if the caller named no path.
    like: the server that the tools imitate, such as "thoughtbox". None if they imitate no server.

    The first of these paths is returned: `option`, the environment variables `_GRAPH_VARIABLES`,
    `configured`, and the file of the server thoughtbox in the working folder. The file of
    thoughtbox must exist, unless `like` is "thoughtbox". None is returned without any of them: then
    the notes of the project `graph` are served.
    """
    names = reversed(_GRAPH_VARIABLES) if like == "server-memory" else _GRAPH_VARIABLES
    for place in (option, *map(os.environ.get, names), configured):
        if place:
            return Path(absolute_path(place))
    usual_file = Path(os.path.abspath(_THOUGHTBOX_FILE))
    if like == "thoughtbox" or (like is None and usual_file.exists()):
        return usual_file
    return None


def graph_project(file: Path | None, projects: Mapping[str, object]) -> dict[str, os.PathLike[str]]:
    """Return {name: file}: a project for the graph file, named after the file without its ending.

    Return {} without a file, or if one of the projects is this file already.

    projects: the other projects, except the built-in ones: name -> folder or file.
    """
    if file is None or str(file) in (
        str(Path(os.path.expanduser(str(place)))) for place in projects.values()
    ):
        return {}
    from memoranda.engine.graphs import graph_project as opened

    used_names = {*BUILT_IN_PROJECTS, *map(str.lower, projects)}
    stem = _NOT_IN_NAMES.sub("-", file.stem)[:_NAME_LENGTH].strip() or "graph file"
    names = (
        stem,
        f"{stem} file",
        *(f"{stem} file {number}" for number in range(2, len(used_names) + 3)),
    )
    name = next(candidate for candidate in names if candidate.lower() not in used_names)
    return {name: opened(name, file)}
