"""Views of the engine in other systems' words. `registry` puts toolsets together by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memoranda.config import Settings
from memoranda.errors import InvalidInput

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.entries import Entries
    from memoranda.engine.graph import Graph
    from memoranda.faces.tool import Hooks, Registry, Toolset

TOOLS = {
    "memory": "memory",
    "notes": "write_note read_note edit_note move_note delete_note list_directory search_notes build_context"
    " recent_activity list_memory_projects create_memory_project delete_project",
    "graph": "memory_create_entities memory_create_relations memory_add_observations memory_delete_entities"
    " memory_delete_observations memory_delete_relations memory_read_graph memory_search_nodes memory_open_nodes",
    "bank": "activate list update",
    "kv": "memory_remember memory_recall memory_forget memory_search memory_list_namespaces memory_clear_namespace"
    " memory_stats",
    "agent": "memory_write memory_read memory_delete memory_list memory_search memory_tag memory_smart_search",
}
"""The names of each toolset's tools: who looks for one of them makes no others."""
TOOLSETS = tuple(TOOLS)
ALL = TOOLSETS[:-1]
"""What `all` stands for: not `agent`, which shares a tool name with `kv`."""
DEFAULT_TOOLSETS = ("memory", "notes")


def expand(names: Sequence[str]) -> list[str]:
    """The toolsets these names stand for (`all` = every one of ALL), each once. Raises InvalidInput
    for an unknown name."""
    unknown = {*names} - {*TOOLSETS, "all"}
    if unknown:
        raise InvalidInput(
            f'Unknown toolset "{min(unknown)}". Toolsets: {", ".join(TOOLSETS)}, all.'
        )
    return list(
        dict.fromkeys(each for name in names for each in (ALL if name == "all" else (name,)))
    )


def registry(
    names: Sequence[str],
    settings: Settings,
    hooks: Hooks | None = None,
    like: str | None = None,
    entries: Callable[[MemorySession], Entries] | None = None,
    graphs: Callable[[MemorySession, str], Graph] | None = None,
    manners: Mapping[str, Callable[[Toolset], Toolset]] | None = None,
) -> Registry:
    """The toolsets of these names (see `expand`), in the manner of the preset `like`. `entries`
    gives the place of a caller's key-value entries, `graphs` the graph of a project, if they are
    not notes. `manners`: by the name of a toolset, what makes it another program's. Raises
    InvalidInput for an unknown name."""
    from memoranda.faces.tool import Registry

    wanted = expand(names)
    options: dict[str, dict[str, Any]] = {
        "memory": {
            "create_existing": settings.create_existing,
            "instructions": settings.instructions,
            "view_max_characters": settings.view_max_characters,
            "with_notes": "notes" in wanted,
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
    for name in wanted:
        module = import_module(f"memoranda.faces.{'memory_tool' if name == 'memory' else name}")
        toolset = module.toolset(**options[name])
        if manners and name in manners:
            toolset = manners[name](toolset)
        toolsets.append(toolset)
    return Registry(toolsets, hooks)
