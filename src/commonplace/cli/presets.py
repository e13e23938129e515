"""`memory mcp --as PRESET`: which tools and projects stand in for another memory server.

Sources: contract 000a (anthropic), contract 000b, 10 (basic-memory), contract 002, 8 (server-memory, thoughtbox),
contract 003, 1 (memory-bank), contract 004, 1 and 7 (agent-memory).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from commonplace.cli.output import Failure
from commonplace.errors import ConfigError
from commonplace.note.model import BUILT_IN_PROJECTS


@dataclass(frozen=True, slots=True)
class Preset:
    """The toolsets to serve; projects (name -> folder) and a default project for this server only; its name.

    `like`: the server whose tool names and replies are used. `json_folder`: the folder of the key-value entries,
    None for the notes of project `kv`.
    """

    tools: tuple[str, ...]
    projects: Mapping[str, str] = field(default_factory=dict)
    default_project: str | None = None
    name: str = "commonplace"
    like: str | None = None
    json_folder: str | None = None


def preset(name: str, environ: Mapping[str, str] = os.environ) -> Preset:
    """The preset of that name. Raises Failure naming the known ones, ConfigError for a bad file."""
    if name not in PRESETS:
        raise Failure(f'unknown preset "{name}"; presets: {", ".join(PRESETS)}')
    return PRESETS[name](environ)


def _basic_memory(environ: Mapping[str, str]) -> Preset:
    """The projects of an installed Basic Memory; its configuration is read, never written."""
    folder = environ.get("BASIC_MEMORY_CONFIG_DIR") or "~/.basic-memory"
    file = Path(os.path.expanduser(folder)) / "config.json"
    try:
        rows = json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return Preset(("notes",))
    except (OSError, ValueError) as error:
        raise ConfigError(f"load config: {file}: {getattr(error, 'strerror', error)}") from None
    listed = rows.get("projects") if isinstance(rows, dict) else None
    if not isinstance(listed, dict):
        raise ConfigError(f"load config: {file}: it names no projects")
    default = rows.get("default_project")
    # A project is a path, or since Basic Memory 0.18 an object that has one.
    paths = {name: entry.get("path") if isinstance(entry, dict) else entry for name, entry in listed.items()}
    projects = {_unique(name): path for name, path in paths.items() if isinstance(path, str) and path}
    return Preset(("notes",), projects, _unique(default) if isinstance(default, str) else None)


def _unique(name: str) -> str:
    """`name`, with a suffix when one of the built-in projects has it, so that nobody writes to the wrong one."""
    return f"{name} basic-memory" if name.lower() in BUILT_IN_PROJECTS else name


def _memory_bank(environ: Mapping[str, str]) -> Preset:
    """The banks of MEMORY_BANK_ROOT, else those of an installed memory-bank server, used in place; else our own."""
    known = os.path.expanduser("~/.claude-desktop/memory")
    root = environ.get("MEMORY_BANK_ROOT") or (known if os.path.isdir(known) else None)
    return Preset(("bank",), {"banks": root} if root else {})


def _agent_memory(environ: Mapping[str, str]) -> Preset:
    """The files of AGENT_MEMORY_PATH, else those of an installed agent-memory server, used in place; else notes."""
    known = os.path.expanduser("~/.agent-memory")
    folder = json_folder(environ) or (known if os.path.lexists(known) else None)
    return Preset(("kv",), name="agent-memory", json_folder=folder)


def json_folder(environ: Mapping[str, str] = os.environ) -> str | None:
    """The folder of JSON files for key-value entries whatever tools are served (contract 004, 7); None: notes."""
    return environ.get("AGENT_MEMORY_PATH") or None


_NOT_IN_NAMES = re.compile(r"[^\w .\-]+")
_NAME_LENGTH = 40
_GRAPH_VARIABLES = ("THOUGHTBOX_MEMORY_PATH", "MEMORY_FILE_PATH")
_THOUGHTBOX_FILE = ".thoughtbox/memory.jsonl"


def graph_file(
    option: str | None, like: str | None, configured: str | None, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """The graph file to serve (contract 002, 8); None: the notes of project `graph`.

    The first of the option, the two variables, the configuration; then thoughtbox's file in the working folder,
    which must exist unless that server is stood in for.
    """
    names = reversed(_GRAPH_VARIABLES) if like == "server-memory" else _GRAPH_VARIABLES
    for place in (option, *(environ.get(name) for name in names), configured):
        if place:
            return Path(os.path.abspath(os.path.expanduser(place)))
    own = Path(os.path.abspath(_THOUGHTBOX_FILE))
    return own if like == "thoughtbox" or (like is None and own.exists()) else None


def graph_project(file: Path | None, taken: Mapping[str, object]) -> dict[str, os.PathLike[str]]:
    """A graph file in use as a project of its own, named by the file's stem; nothing when it is one already.

    `taken`: the projects there are besides the built-in ones (name -> folder or file).
    """
    if file is None or str(file) in (str(Path(os.path.expanduser(str(place)))) for place in taken.values()):
        return {}
    from commonplace.engine.graph import graph_project as opened

    known = {*BUILT_IN_PROJECTS, *map(str.lower, taken)}
    stem = _NOT_IN_NAMES.sub("-", file.stem)[:_NAME_LENGTH].strip() or "graph file"
    names = (stem, f"{stem} file", *(f"{stem} file {number}" for number in range(2, len(known) + 3)))
    name = next(each for each in names if each.lower() not in known)
    return {name: opened(name, file)}


PRESETS: dict[str, Callable[[Mapping[str, str]], Preset]] = {
    "anthropic": lambda _: Preset(("memory",)),
    "basic-memory": _basic_memory,
    "server-memory": lambda _: Preset(("graph",), like="server-memory"),
    "thoughtbox": lambda _: Preset(("graph",), like="thoughtbox"),
    "memory-bank": _memory_bank,
    "agent-memory": _agent_memory,
}
