"""The face `graph`: nine tools over entities and relations, and the graph as a resource (contract 002)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError
from commonplace.faces.arguments import Arguments
from commonplace.faces.graph.pages import Form
from commonplace.faces.graph.tools import TOOLS, whole_graph
from commonplace.faces.reply import Reply
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Resource, Tool, Toolset

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.graph_verbs import Graph

Open = Callable[["Memory", str], "Graph"]

PREFIX = "memory_"
DEFAULT_PROJECT = "graph"
DESCRIPTION = "Current state of the knowledge graph memory"
THOUGHTBOX, SERVER_MEMORY = "thoughtbox://memory/graph", "memory://knowledge-graph"


def toolset(like: str | None = None, reply_chars: int = 80_000, open_graph: Open | None = None) -> Toolset:
    """The tools and resources; `like` a preset (`thoughtbox`, `server-memory`): contract 002, 1, 7 and 8. `reply_chars`
    bounds the text of a reply, 0 does not. `open_graph` (memory, project) -> where the graph is kept; by default in
    notes."""
    if open_graph is None:
        from commonplace.engine import graphs  # at the first use, not by the handshake

        open_graph = graphs.open_graph

    def read(memory: Memory) -> str:
        return whole_graph(open_graph(memory, DEFAULT_PROJECT))

    def version(memory: Memory) -> Any:
        return open_graph(memory, DEFAULT_PROJECT).version()

    data = json.loads(text_file("graph-tools.json"))
    form = Form(None if like is None else 2, reply_chars)
    tools = [_tool(each, data, like, form, open_graph) for each in data["tools"]]
    resources = [
        Resource(uri, name, "Knowledge Graph", DESCRIPTION, "application/json", read, version)
        for uri, name in ((THOUGHTBOX, "Knowledge Graph"), (SERVER_MEMORY, "knowledge-graph"))
        if like != "server-memory" or uri == SERVER_MEMORY
    ]
    told = "" if like else text_file("recalled.md")
    return Toolset("graph", tools, told, resources=resources)


def _tool(definition: dict[str, Any], data: dict[str, Any], like: str | None, form: Form, open_graph: Open) -> Tool:
    name = definition["name"]
    properties = definition["properties"] | (data["paging"] if definition.get("paged") else {})
    if like != "server-memory":
        properties = properties | {"project": data["project"]}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in definition:
        schema["required"] = definition["required"]
    reads, destroys, repeats = definition["hints"]

    def run(memory: Memory, arguments: Arguments) -> Reply:
        try:
            graph = open_graph(memory, arguments.get("project", DEFAULT_PROJECT))
            if not reads:
                return TOOLS[name](graph, arguments, form)
            return graph.at_once(lambda: TOOLS[name](graph, arguments, form))  # never half of another's call
        except CommonplaceError as error:
            return _refuse(error)

    hints = {"readOnlyHint": reads, "destructiveHint": destroys, "idempotentHint": repeats, "openWorldHint": False}
    shown = name if like == "server-memory" else PREFIX + name, definition["description"], schema
    title, output = name.replace("_", " ").title(), data["outputs"][definition["output"]]
    return Tool(*shown, run, title, hints, output, contract="graph", refuse=_refuse)


def _refuse(error: CommonplaceError) -> Reply:
    """Errors are text alone (contract 002, 3)."""
    return Reply(str(error), is_error=True)
