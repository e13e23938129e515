"""The face `graph`: nine tools over entities and relations, and the graph as a resource (contract
002).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from memoranda.errors import MemorandaError
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Resource, Tool, Toolset, flags_of, function_of
from memoranda.note.model import GRAPH_PROJECT

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.graph import Graph

# The engine is imported by the first call, not by the handshake.

PREFIX = "memory_"
DESCRIPTION = "Current state of the knowledge graph memory"
THOUGHTBOX = "thoughtbox://memory/graph"
SERVER_MEMORY = "memory://knowledge-graph"


def toolset(
    like: str | None = None,
    reply_chars: int = 80_000,
    open_graph: Callable[[MemorySession, str], Graph] | None = None,
) -> Toolset:
    """The tools and resources of the graph.

    like: a preset (`thoughtbox`, `server-memory`): contract 002, 1, 7 and 8.
    reply_chars: the longest text of a reply, in characters. 0 means no limit.
    open_graph: (memory, project) -> the graph. By default it is kept in notes.
    """

    def graph_of(memory: MemorySession, project: str = GRAPH_PROJECT) -> Graph:
        from memoranda.engine import graphs

        return (open_graph or graphs.open_graph)(memory, project)

    def read(memory: MemorySession) -> str:
        from memoranda.faces.graph.entity_tools import whole_graph

        return whole_graph(graph_of(memory))

    def run(name: str, reads: bool, memory: MemorySession, arguments: Arguments) -> Reply:
        from memoranda.faces.graph import entity_tools

        form = entity_tools.Form(None if like is None else 2, reply_chars)
        answer = function_of(name, entity_tools)
        try:
            graph = graph_of(memory, arguments.get("project", GRAPH_PROJECT))
            if not reads:
                reply: Reply = answer(graph, arguments, form)
                return reply
            # Never half of another's call
            return graph.at_once(lambda: answer(graph, arguments, form))
        except MemorandaError as error:
            return _refuse(error)

    data = json.loads(text_file("graph-tools.json"))
    tools = []
    for tool_or_memory in data["tools"]:
        name, (reads, destroys, repeats) = tool_or_memory["name"], tool_or_memory["hints"]
        properties = tool_or_memory["properties"] | (
            data["paging"] if tool_or_memory.get("paged") else {}
        )
        if like != "server-memory":
            properties |= {"project": data["project"]}
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if "required" in tool_or_memory:
            schema["required"] = tool_or_memory["required"]
        hints = {
            "readOnlyHint": reads,
            "destructiveHint": destroys,
            "idempotentHint": repeats,
            "openWorldHint": False,
        }
        tool_name = (
            name if like == "server-memory" else PREFIX + name,
            tool_or_memory["description"],
            schema,
        )
        title = name.replace("_", " ").title()
        output = data["outputs"][tool_or_memory["output"]]
        tools.append(
            Tool(
                *tool_name,
                partial(run, name, reads),
                title,
                hints,
                output,
                contract="graph",
                refuse=_refuse,
                **flags_of(tool_or_memory),
            )
        )
    shown_at = [(THOUGHTBOX, "Knowledge Graph"), (SERVER_MEMORY, "knowledge-graph")]
    resources = [
        Resource(
            uri,
            name,
            "Knowledge Graph",
            DESCRIPTION,
            "application/json",
            read,
            lambda tool_or_memory: graph_of(tool_or_memory).version(),
        )
        for uri, name in (shown_at[1:] if like == "server-memory" else shown_at)
    ]
    return Toolset("graph", tools, "" if like else text_file("recalled.md"), resources=resources)


def _refuse(error: MemorandaError) -> Reply:
    """Errors are text alone (contract 002, 3)."""
    return Reply(str(error), is_error=True)
