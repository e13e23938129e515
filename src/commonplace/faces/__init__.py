"""Views of the engine in other systems' words. `registry` puts toolsets together by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from commonplace.config import Settings
from commonplace.errors import InvalidInput

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.entities import Graph
    from commonplace.engine.entries import Entries
    from commonplace.faces.hooks import Hooks
    from commonplace.faces.tool import Registry, Toolset

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
) -> Registry:
    """The toolsets of these names (`all` = every one of ALL), in the manner of the preset `like`.

    `entries` gives the place of a caller's key-value entries, `graphs` the graph of a project, if they are
    not notes.
    Raises InvalidInput for an unknown name.
    """
    from commonplace.faces.tool import Registry

    wanted: list[str] = []
    for name in names:
        wanted += [each for each in (ALL if name == "all" else (name,)) if each not in wanted]
    return Registry([_toolset(name, wanted, settings, like, entries, graphs) for name in wanted], hooks)


def _toolset(
    name: str,
    wanted: Sequence[str],
    settings: Settings,
    like: str | None,
    entries: Callable[[Memory], Entries] | None,
    graphs: Callable[[Memory, str], Graph] | None,
) -> Toolset:
    if name == "memory":
        from commonplace.faces import memory_tool

        return memory_tool.toolset(
            create_existing=settings.create_existing,
            instructions=settings.instructions,
            view_max_characters=settings.view_max_characters,
            with_notes="notes" in wanted,
        )
    if name == "notes":
        from commonplace.faces import notes

        return notes.toolset(agents_may_add_projects=settings.agents_may_add_projects)
    if name == "graph":
        from commonplace.faces import graph

        return graph.toolset(like, settings.graph_reply_chars, graphs)
    if name == "bank":
        from commonplace.faces import bank

        return bank.toolset(
            debug=settings.bank_debug,
            llm_url=settings.llm_base_url,
            llm_model=settings.llm_model,
            llm_key=settings.llm_key,
        )
    if name == "kv":
        from commonplace.faces import kv

        return kv.toolset(entries)
    if name == "agent":
        from commonplace.faces import agent

        return agent.toolset()
    raise InvalidInput(f'Unknown toolset "{name}". Toolsets: {", ".join(TOOLSETS)}, all.')
