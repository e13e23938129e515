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
    """Make the tools and resources of the graph.

    like: the preset whose names and replies to use: `thoughtbox` or `server-memory` (contract 002,
        1, 7 and 8). None means our own.
    reply_chars: the largest number of characters of a reply. 0 means no limit.
    open_graph: returns the graph of a project. None means that the graph is kept in notes.
    """

    def graph_of(memory: MemorySession, project: str = GRAPH_PROJECT) -> Graph:
        """Return the graph of a project."""
        from memoranda.engine import graphs

        return (open_graph or graphs.open_graph)(memory, project)

    def read(memory: MemorySession) -> str:
        """Return the text of the resource."""
        from memoranda.faces.graph.entity_tools import whole_graph

        return whole_graph(graph_of(memory))

    def run(name: str, reads: bool, memory: MemorySession, arguments: Arguments) -> Reply:
        """Run the tool `name`. `reads` says that it changes nothing."""
        from memoranda.faces.graph import entity_tools

        form = entity_tools.Form(None if like is None else 2, reply_chars)
        answer = function_of(name, entity_tools)
        try:
            graph = graph_of(memory, arguments.get("project", GRAPH_PROJECT))
            if not reads:
                reply: Reply = answer(graph, arguments, form)
                return reply
            # Read one state of the graph, not a half of another caller's change.
            return graph.at_once(lambda: answer(graph, arguments, form))
        except MemorandaError as error:
            return _refuse(error)

    # Each row of the file declares one tool.
    data = json.loads(text_file("graph-tools.json"))
    tools = []
    for row in data["tools"]:
        name = row["name"]
        reads, destroys, repeats = row["hints"]
        hints = {
            "readOnlyHint": reads,
            "destructiveHint": destroys,
            "idempotentHint": repeats,
            "openWorldHint": False,
        }
        tools.append(
            Tool(
                name if like == "server-memory" else PREFIX + name,
                row["description"],
                _schema(row, data, like),
                partial(run, name, reads),
                title=name.replace("_", " ").title(),
                annotations=hints,
                output_schema=data["outputs"][row["output"]],
                contract="graph",
                refuse=_refuse,
                **flags_of(row),
            )
        )
    # The same resource under the addresses of the servers that we can replace.
    addresses = [(THOUGHTBOX, "Knowledge Graph"), (SERVER_MEMORY, "knowledge-graph")]
    if like == "server-memory":
        addresses = addresses[1:]
    resources = [
        Resource(
            uri,
            name,
            "Knowledge Graph",
            DESCRIPTION,
            "application/json",
            read,
            lambda memory: graph_of(memory).version(),
        )
        for uri, name in addresses
    ]
    return Toolset("graph", tools, "" if like else text_file("recalled.md"), resources=resources)


def _schema(row: dict[str, Any], data: dict[str, Any], like: str | None) -> dict[str, Any]:
    """Return the schema of the arguments of a tool.

    row: the declaration of the tool.
    data: the whole file of declarations, with the properties that several tools share.
    like: see `toolset`.
    """
    properties = dict(row["properties"])
    if row.get("paged"):
        properties |= data["paging"]
    if like != "server-memory":
        properties |= {"project": data["project"]}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in row:
        schema["required"] = row["required"]
    return schema


def _refuse(error: MemorandaError) -> Reply:
    """Return the reply for an error, which is only text (contract 002, 3)."""
    return Reply(str(error), is_error=True, advice=error.advice)
