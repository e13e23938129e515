"""Views of the engine in other systems' words. `registry` puts toolsets together by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from commonplace.config import Settings
from commonplace.errors import InvalidInput

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.entities import Graph
    from commonplace.engine.entries import Entries
    from commonplace.faces.hooks import Hooks
    from commonplace.faces.notes.vault import Vault
    from commonplace.faces.tool import Registry

ALL = ("memory", "notes", "graph", "bank", "kv")
"""What `all` stands for: not `agent`, which shares a tool name with `kv`."""
TOOLSETS = (*ALL, "agent")
DEFAULT_TOOLSETS = ("memory", "notes")


def registry(
    names: Sequence[str],
    settings: Settings,
    hooks: Hooks | None = None,
    like: str | None = None,
    entries: Callable[[Memory], Entries] | None = None,
    graphs: Callable[[Memory, str], Graph] | None = None,
    vault: Vault | None = None,
) -> Registry:
    """The toolsets of these names (`all` = every one of ALL), in the manner of the preset `like`. `entries` gives the
    place of a caller's key-value entries, `graphs` the graph of a project, if they are not notes; `vault` what a Basic
    Memory configuration says. Raises InvalidInput for an unknown name."""
    from commonplace.faces.tool import Registry

    wanted = list(dict.fromkeys(each for name in names for each in (ALL if name == "all" else (name,))))
    options: dict[str, dict[str, Any]] = {
        "memory": {
            "create_existing": settings.create_existing,
            "instructions": settings.instructions,
            "view_max_characters": settings.view_max_characters,
            "with_notes": "notes" in wanted,
        },
        "notes": {"agents_may_add_projects": settings.agents_may_add_projects, "vault": vault},
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
        if name not in options:
            raise InvalidInput(f'Unknown toolset "{name}". Toolsets: {", ".join(TOOLSETS)}, all.')
        module = import_module(f"commonplace.faces.{'memory_tool' if name == 'memory' else name}")
        toolsets.append(module.toolset(**options[name]))
    return Registry(toolsets, hooks)
