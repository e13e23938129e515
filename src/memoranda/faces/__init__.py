"""Views of the engine in other systems' words. `registry` puts toolsets together by name."""

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

    module: below memoranda.faces, with a function `toolset`.
    file: the declarations of its tools, in texts/.
    prefix: the beginning of their names there.
    project: the project it is about. None means any.
    presets: the servers it replaces.
    is_in_all: whether `all` includes it.
    """

    name: str
    module: str
    file: str
    prefix: str = ""
    project: str | None = None
    presets: tuple[str, ...] = ()
    is_in_all: bool = True

    def tool_names(self) -> list[str]:
        """The names of its tools, told without making them."""
        from memoranda.faces.tool import declarations

        return [f"{self.prefix}{row['name']}" for row in declarations(self.file)]


FACES = {
    face.name: face
    for face in (
        Face("memory", "memory_tool", "memory-tool.json", "", "memories", ("anthropic",)),
        Face("notes", "notes", "notes-tools.json", presets=("basic-memory",)),
        Face(
            "graph",
            "graph",
            "graph-tools.json",
            "memory_",
            presets=("server-memory", "thoughtbox"),
        ),
        Face("bank", "bank", "bank-tools.json", "", "banks", ("memory-bank",)),
        Face("kv", "kv", "kv-tools.json", "", "kv", ("agent-memory",)),
        # This toolset shares a tool name with `kv`, so `all` does not include it.
        Face("agent", "agent", "agent-tools.json", "", "categories", is_in_all=False),
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
    """The toolsets that have a tool of this name. They are not loaded for that."""
    return [name for name in names if tool in FACES[name].tool_names()]


def tool_names(names: Sequence[str]) -> list[str]:
    """The names of the tools of these toolsets, each once."""
    tool_names = chain.from_iterable(FACES[name].tool_names() for name in names)
    return list(dict.fromkeys(tool_names))


def expand(names: Sequence[str]) -> list[str]:
    """The toolsets these names mean (`all` = every one of ALL), each once. Raises InvalidInput
    for an unknown name."""
    unknown = {*names} - {*TOOLSETS, "all"}
    if unknown:
        raise InvalidInput(
            f'Unknown toolset "{min(unknown)}". Toolsets: {", ".join(TOOLSETS)}, all.'
        )
    toolsets: list[str] = []
    for name in names:
        toolsets += ALL if name == "all" else (name,)
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
    """Make the toolsets of these names (see `expand`). Raises InvalidInput for an unknown name.

    like: the preset whose manner they have.
    entries: gives the place of a caller's key-value entries, if they are not notes.
    graphs: gives the graph of a project, if it is not notes.
    manners: by the name of a toolset, a function that makes it another program's.
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
        "graph": {"like": like, "reply_chars": settings.graph_reply_chars, "open_graph": graphs},
        "bank": {
            "debug": settings.bank_debug,
            "llm_url": settings.llm_base_url,
            "llm_model": settings.llm_model,
            "llm_key": settings.llm_key,
        },
        "kv": {"kept_in": entries},
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
