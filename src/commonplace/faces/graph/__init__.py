"""The face `graph`: nine tools over entities and relations, and the graph as a resource (contract 002)."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any

from commonplace.engine.entities import Graph
from commonplace.errors import CommonplaceError
from commonplace.faces.graph import changing, reading
from commonplace.faces.graph.arguments import checked
from commonplace.faces.graph.page import Form
from commonplace.faces.reply import Reply
from commonplace.faces.tool import Resource, Tool, Toolset

if TYPE_CHECKING:
    from commonplace.engine import Memory

Open = Callable[["Memory", str], Graph]
Run = Callable[[Graph, dict[str, Any], Form], Reply]

PREFIX = "memory_"
DEFAULT_PROJECT = "graph"
DESCRIPTION = "Current state of the knowledge graph memory"
THOUGHTBOX, SERVER_MEMORY = "thoughtbox://memory/graph", "memory://knowledge-graph"

_DELETES = {
    "delete_entities": changing.delete_entities,
    "delete_observations": changing.delete_observations,
    "delete_relations": changing.delete_relations,
}
_RUNS: dict[str, Run] = {
    "create_entities": changing.create_entities,
    "create_relations": changing.create_relations,
    "add_observations": changing.add_observations,
    "read_graph": reading.at_once(reading.read_graph),
    "search_nodes": reading.at_once(reading.search_nodes),
    "open_nodes": reading.at_once(reading.open_nodes),
}


def toolset(like: str | None = None, reply_chars: int = 80_000, open_graph: Open | None = None) -> Toolset:
    """The tools and resources; `like` a preset (`thoughtbox`, `server-memory`): contract 002, 1, 7 and 8.

    `reply_chars` bounds the text of a reply, 0 does not. `open_graph` (memory, project) -> where the graph is
    kept; by default in notes.
    """
    if open_graph is None:
        from commonplace.engine.graph import open_graph

    text = resources.files(__package__).joinpath("tools.json").read_text("utf-8")
    defined = _filled(json.loads(text), json.loads(text)["shapes"])
    form = Form(None if like is None else 2, reply_chars)
    tools = [_tool(each, defined, like, form, open_graph) for each in defined["tools"]]
    return Toolset("graph", tools, resources=_resources(like, open_graph))


def _filled(value: Any, shapes: dict[str, Any]) -> Any:
    """`value` with the shapes it names put in."""
    if isinstance(value, dict):
        if "$shape" in value:
            return _filled(shapes[value["$shape"]], shapes)
        return {name: _filled(each, shapes) for name, each in value.items()}
    return [_filled(each, shapes) for each in value] if isinstance(value, list) else value


def _tool(each: dict[str, Any], defined: dict[str, Any], like: str | None, form: Form, open_graph: Open) -> Tool:
    name = each["name"]
    properties = each["properties"] | (defined["paging"] if each.get("paged") else {})
    if like != "server-memory":
        properties = properties | {"project": defined["project"]}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in each:
        schema["required"] = each["required"]
    run = _RUNS[name] if name in _RUNS else changing.deleting(each["message"], _DELETES[name])
    reads, destroys, repeats = each["hints"]
    return Tool(
        name if like == "server-memory" else PREFIX + name,
        each["description"],
        schema,
        _answering(run, schema, form, open_graph),
        title=name.replace("_", " ").title(),
        annotations={
            "readOnlyHint": reads,
            "destructiveHint": destroys,
            "idempotentHint": repeats,
            "openWorldHint": False,
        },
        output_schema=each["output"],
        unknown="own",
    )


def _answering(run: Run, schema: dict[str, Any], form: Form, open_graph: Open) -> Callable[[Memory, Any], Reply]:
    """`run` for a caller: arguments checked our way, errors as text alone (contract 002, 3)."""

    def answer(memory: Memory, arguments: Any) -> Reply:
        try:
            given = checked(arguments, schema)
            return run(open_graph(memory, given.get("project", DEFAULT_PROJECT)), given, form)
        except CommonplaceError as error:
            return Reply(str(error), is_error=True)

    return answer


def _resources(like: str | None, open_graph: Open) -> list[Resource]:
    def read(memory: Memory) -> str:
        return reading.whole(open_graph(memory, DEFAULT_PROJECT))

    def version(memory: Memory) -> Any:
        return open_graph(memory, DEFAULT_PROJECT).version()

    names = {THOUGHTBOX: "Knowledge Graph", SERVER_MEMORY: "knowledge-graph"}
    return [
        Resource(uri, name, "Knowledge Graph", DESCRIPTION, "application/json", read, version)
        for uri, name in names.items()
        if like != "server-memory" or uri == SERVER_MEMORY
    ]
