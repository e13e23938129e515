"""Faces: sets of tools over the engine, each in the words of one existing memory server.

`FACES` lists them all. `registry` makes the tools of some of them, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from memoranda.config import Settings
from memoranda.errors import InvalidInput

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.entries import Entries
    from memoranda.engine.graph import Graph
    from memoranda.faces.tool import Hooks, Registry, Toolset


@dataclass(frozen=True, slots=True)
class Face:
    """A toolset that can be served.

    name: the name, such as `notes`.
    module: the module below memoranda.faces whose function `toolset` makes it.
    file: the file in texts/ that declares its tools.
    prefix: put before the names in `file`. The tool `store` with `memory_` is `memory_store`.
    project: the project that its tools work on. None means that the caller chooses.
    presets: the names of other memory servers that it can replace.
    is_in_all: whether the name `all` includes it.
    """

    name: str
    module: str
    file: str
    prefix: str = ""
    project: str | None = None
    presets: tuple[str, ...] = ()
    is_in_all: bool = True

    def tool_names(self) -> list[str]:
        """Return the names of its tools. They are read from `file`, so that no tool is made."""
        from memoranda.faces.tool import declarations

        return [f"{self.prefix}{row['name']}" for row in declarations(self.file)]


FACES = {
    face.name: face
    for face in (
        Face(
            name="memory",
            module="memory_tool",
            file="memory-tool.json",
            project="memories",
            presets=("anthropic",),
        ),
        Face(
            name="notes",
            module="notes",
            file="notes-tools.json",
            presets=("basic-memory",),
        ),
        Face(
            name="graph",
            module="graph",
            file="graph-tools.json",
            prefix="memory_",
            presets=("server-memory", "thoughtbox"),
        ),
        Face(
            name="bank",
            module="bank",
            file="bank-tools.json",
            project="banks",
            presets=("memory-bank",),
        ),
        Face(
            name="kv",
            module="kv",
            file="kv-tools.json",
            project="kv",
            presets=("agent-memory",),
        ),
        # This toolset shares a tool name with `kv`, so `all` does not include it.
        Face(
            name="agent",
            module="agent",
            file="agent-tools.json",
            project="categories",
            is_in_all=False,
        ),
    )
}
"""All toolsets by name. Every other list of toolsets and presets is made of this one."""
TOOLSETS = tuple(FACES)
ALL = tuple(face.name for face in FACES.values() if face.is_in_all)
"""The toolsets that `all` means."""
PRESETS = tuple(preset for face in FACES.values() for preset in face.presets)
"""The servers that can be stood in for."""
DEFAULT_TOOLSETS = ("memory", "notes")


def toolsets_having(tool: str, names: Sequence[str]) -> list[str]:
    """Return which of the toolsets `names` have a tool of this name. No tool is made."""
    return [name for name in names if tool in FACES[name].tool_names()]


def tool_names(names: Sequence[str]) -> list[str]:
    """Return the names of the tools of these toolsets, without duplicates."""
    all_names = chain.from_iterable(FACES[name].tool_names() for name in names)
    return list(dict.fromkeys(all_names))


def expand(names: Sequence[str]) -> list[str]:
    """Return toolsets without duplicates, with `all` replaced by the names in ALL.

    Raises InvalidInput for an unknown name.
    """
    unknown = {*names} - {*TOOLSETS, "all"}
    if unknown:
        raise InvalidInput(
            f'Unknown toolset "{min(unknown)}". Toolsets: {", ".join(TOOLSETS)}, all.'
        )
    toolsets: list[str] = []
    for name in names:
        if name == "all":
            toolsets += ALL
        else:
            toolsets.append(name)
    return list(dict.fromkeys(toolsets))


def registry(
    names: Sequence[str],
    settings: Settings,
    hooks: Hooks | None = None,
    like: str | None = None,
    entries: Callable[[MemorySession], Entries] | None = None,
    graphs: Callable[[MemorySession, str], Graph] | None = None,
    manners: Mapping[str, Callable[[Toolset], Toolset]] | None = None,
) -> Registry:
    """Make the toolsets of these names. `all` means all of them except `agent`.

    Raises InvalidInput for an unknown name.

    settings: the settings of the home, some of which are about toolsets.
    hooks: the hooks around each call. None means no hooks.
    like: the preset that makes a toolset behave like another server. None for no preset.
    entries: returns a caller's key-value entries. None means that entries are notes.
    graphs: returns the graph of a project. None means that entities are notes.
    manners: name of a toolset -> a function that adapts the toolset to another program. None for
        none.
    """
    from memoranda.faces.tool import Registry

    toolset_names = expand(names)
    options: dict[str, dict[str, Any]] = {
        "memory": {
            "create_existing": settings.create_existing,
            "instructions": settings.instructions,
            "view_max_characters": settings.view_max_characters,
            "with_notes": "notes" in toolset_names,
        },
        "notes": {"agents_may_add_projects": settings.agents_may_add_projects},
        "graph": {
            # The preset may be about another toolset. Then the graph tools are those of memoranda.
            "like": like if like in FACES["graph"].presets else None,
            "reply_chars": settings.graph_reply_chars,
            "open_graph": graphs,
        },
        "bank": {
            "debug": settings.bank_debug,
            "llm_url": settings.llm_base_url,
            "llm_model": settings.llm_model,
            "llm_key": settings.llm_key,
        },
        "kv": {"open_entries": entries, "tells_others": like not in FACES["kv"].presets},
        "agent": {},
    }
    toolsets = []
    for name in toolset_names:
        module = import_module(f"memoranda.faces.{FACES[name].module}")
        toolset = module.toolset(**options[name])
        if manners and name in manners:
            toolset = manners[name](toolset)
        toolsets.append(toolset)
    return Registry(toolsets, hooks)
