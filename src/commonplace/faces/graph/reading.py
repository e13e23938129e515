"""The tools that read the graph: contract 002, 1, 2 and 4."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from commonplace.engine.entities import Graph, Key, Relation
from commonplace.faces.graph.page import Answer, Asked, Form
from commonplace.faces.reply import Reply

Given = dict[str, Any]
WARNINGS = "commonplace/warnings"


def at_once(read: Callable[[Graph, Given, Form], Reply]) -> Callable[[Graph, Given, Form], Reply]:
    """`read`, to which no call of another process is half done (contract 002, 9)."""
    return lambda graph, given, form: graph.at_once(lambda: read(graph, given, form))


def read_graph(graph: Graph, given: Given, form: Form) -> Reply:
    """Everything."""
    return _reply(graph, graph.keys(), graph.relations(), given, form)


def search_nodes(graph: Graph, given: Given, form: Form) -> Reply:
    """The entities that match, and every relation that touches one of them."""
    query = given["query"]
    keys = graph.ranked(query) if given.get("ranked") else graph.matching(query)
    return _reply(graph, keys, _touching(graph, keys), given, form)


def open_nodes(graph: Graph, given: Given, form: Form) -> Reply:
    """The entities of these names; with `depth` also those their relations lead to."""
    direction, types = given.get("direction", "both"), given.get("relationTypes")
    if depth := given.get("depth", 0):
        keys, relations = _walk(graph, given["names"], depth, direction, types)
    else:
        keys = graph.named(given["names"])
        names = {key.name for key in keys}
        relations = [
            each
            for each in _touching(graph, keys)
            if (types is None or each.type in types) and _goes(each, names, direction)
        ]
    return _reply(graph, keys, relations, given, form)


def whole(graph: Graph) -> str:
    """The graph as its resources show it: all of it, indented (contract 002, 7)."""
    return graph.at_once(lambda: Answer(graph, graph.keys(), graph.relations(), Asked(), Form(2, 0)).data()[1])


def _reply(graph: Graph, keys: list[Key], relations: list[Relation], given: Given, form: Form) -> Reply:
    data, text = Answer(graph, keys, relations, Asked.of(given), form).data()
    warnings = graph.warnings()
    return Reply(text, data, meta={WARNINGS: warnings} if warnings else None)


def _touching(graph: Graph, keys: Iterable[Key]) -> list[Relation]:
    names = {key.name for key in keys}
    return graph.relations(names) if names else []


def _goes(relation: Relation, names: set[str], direction: str) -> bool:
    """Whether the relation leaves (`out`) or reaches (`in`) one of `names`."""
    is_out, is_in = relation.source in names, relation.target in names
    return is_out if direction == "out" else is_in if direction == "in" else is_out or is_in


def _walk(
    graph: Graph, names: list[str], depth: int, direction: str, types: list[str] | None
) -> tuple[list[Key], list[Relation]]:
    """The entities within `depth` relations, nearest first, and the relations among all names reached."""
    reached = dict.fromkeys(names, 0)
    frontier = set(reached)
    for level in range(1, depth + 1):
        found: set[str] = set()
        for each in graph.relations(frontier) if frontier else ():
            if types is not None and each.type not in types:
                continue
            if direction != "in" and each.source in frontier:
                found.add(each.target)
            if direction != "out" and each.target in frontier:
                found.add(each.source)
        frontier = found - reached.keys()
        reached |= dict.fromkeys(frontier, level)
    keys = [key._replace(order=(reached[key.name], *key.order)) for key in graph.named(reached)]
    keys.sort(key=lambda key: key.order)
    among = [each for each in graph.relations(set(reached)) if each.source in reached and each.target in reached]
    return keys, among
