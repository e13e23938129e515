"""The face `graph`: nine tools over entities and relations, and the graph as a resource (contract
002).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
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
# The servers that we can replace indent their JSON by this number of blanks.
_INDENT_OF_PRESETS = 2


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

    face = _GraphFace(like, reply_chars, open_graph)
    data = json.loads(text_file("graph-tools.json"))
    return Toolset(
        "graph",
        [face.tool(row, data) for row in data["tools"]],
        "" if like else text_file("recalled.md"),
        resources=face.resources(),
    )


@dataclass(frozen=True, slots=True)
class _GraphFace:
    """Makes the tools and resources of one server, and runs their calls.

    The fields are the arguments of `toolset`.
    """

    like: str | None
    reply_chars: int
    open_graph: Callable[[MemorySession, str], Graph] | None

    def tool(self, row: dict[str, Any], data: dict[str, Any]) -> Tool:
        """Return the tool that a row of the declarations describes.

        row: such as `{"name": "read_graph", "description": …, "hints": [true, false, true], …}`.
            The hints are whether the tool only reads, whether it may destroy something, and whether
            repeating a call changes nothing more.
        data: the whole file of declarations.
        """
        name = row["name"]
        only_reads, destroys, is_repeatable = row["hints"]
        hints = {
            "readOnlyHint": only_reads,
            "destructiveHint": destroys,
            "idempotentHint": is_repeatable,
            "openWorldHint": False,
        }
        # Only that server has names without a prefix.
        served_name = name if self.like == "server-memory" else PREFIX + name
        return Tool(
            name=served_name,
            description=row["description"],
            schema=_schema(row, data, self.like),
            run=partial(self._answer, name, only_reads),
            title=name.replace("_", " ").title(),
            annotations=hints,
            output_schema=data["outputs"][row["output"]],
            contract="graph",
            refuse=_refuse,
            **flags_of(row),
        )

    def resources(self) -> list[Resource]:
        """Return the resource with the whole graph, once for each address that a client may use.

        These are the addresses of the servers that we can replace. If the tools replace
        `server-memory`, only its address is offered.
        """
        addresses = [(SERVER_MEMORY, "knowledge-graph")]
        if self.like != "server-memory":
            addresses.insert(0, (THOUGHTBOX, "Knowledge Graph"))
        return [
            Resource(
                uri=uri,
                name=name,
                title="Knowledge Graph",
                description=DESCRIPTION,
                mime="application/json",
                read=self._whole_graph,
                version=self._version,
            )
            for uri, name in addresses
        ]

    def _answer(
        self, name: str, only_reads: bool, memory: MemorySession, arguments: Arguments
    ) -> Reply:
        """Answer a call of a tool.

        name: the name of the tool in the file of declarations.
        only_reads: whether the tool changes nothing.
        """
        from memoranda.faces.graph import entity_tools, other_notes

        indent = None if self.like is None else _INDENT_OF_PRESETS
        form = entity_tools.Form(indent, self.reply_chars)
        run_tool: Callable[..., Reply] = function_of(name, entity_tools)
        try:
            graph = self._graph(memory, arguments.get("project", GRAPH_PROJECT))
            if not only_reads:
                return run_tool(graph, arguments, form)

            def read() -> Reply:
                """Return the reply with its hint."""
                reply = run_tool(graph, arguments, form)
                if form.may_have_hint:
                    other_notes.add_hint(name, memory, graph, arguments, reply)
                return reply

            # `at_once` reads one state of the home, and not half of another caller's change.
            return graph.at_once(read)
        except MemorandaError as error:
            return _refuse(error)

    def _whole_graph(self, memory: MemorySession) -> str:
        """Return the text of the resource."""
        from memoranda.faces.graph.entity_tools import whole_graph

        return whole_graph(self._graph(memory, GRAPH_PROJECT))

    def _version(self, memory: MemorySession) -> Any:
        """Return the version of the graph, which tells whether the resource has changed."""
        return self._graph(memory, GRAPH_PROJECT).version()

    def _graph(self, memory: MemorySession, project: str) -> Graph:
        """Return the graph of a project."""
        from memoranda.engine import graphs

        open_graph = self.open_graph or graphs.open_graph
        return open_graph(memory, project)


def _schema(row: dict[str, Any], data: dict[str, Any], like: str | None) -> dict[str, Any]:
    """Return the JSON schema for the arguments of a graph tool.

    row: the declaration of the tool.
    data: the whole file of declarations, with properties that several tools share.
    like: the preset that the tools imitate, such as `server-memory`. None means our own tools.
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
    return Reply(error.message_with_hint(), is_error=True, advice=error.advice)
