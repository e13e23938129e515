"""The nine tools of the graph: contract 002, 1, 2 and 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commonplace.engine.entities import Entity, EntityKey, Graph, GraphRelation
from commonplace.faces.arguments import Arguments
from commonplace.faces.graph.pages import Form, GraphReply, Paging, relation_data
from commonplace.faces.reply import Reply

WARNINGS = "commonplace/warnings"


def _create_entities(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Answers with the entities that were new, as they were stored."""
    wanted = [Entity(each["name"], each["entityType"], tuple(each["observations"])) for each in arguments["entities"]]
    created = [
        {"name": each.name, "entityType": each.type, "observations": list(each.observations)}
        for each in graph.create_entities(wanted)
    ]
    if form.indent is None and form.most and len(form.text(created)) > form.most:
        created = [{**each, "observations": []} for each in created]  # the caller knows what they say
        created = created[: form.most // max(map(form.size, created))]
    return Reply(form.text(created), {"entities": created})


def _create_relations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Answers with the relations that were new."""
    created = [relation_data(each) for each in graph.create_relations(_relations(arguments))]
    return Reply(form.text(created), {"relations": created})


def _add_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Answers with what each entity did not say before."""
    wanted = [(each["entityName"], each["contents"]) for each in arguments["observations"]]
    results = [{"entityName": name, "addedObservations": added} for name, added in graph.add_observations(wanted)]
    return Reply(form.text(results), {"results": results})


def _delete(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Delete the entities, observations or relations the arguments list."""
    if "entityNames" in arguments:
        what = "Entities"
        graph.delete_entities(arguments["entityNames"])
    elif "deletions" in arguments:
        what = "Observations"
        graph.delete_observations([(each["entityName"], each["observations"]) for each in arguments["deletions"]])
    else:
        what = "Relations"
        graph.delete_relations(_relations(arguments))
    message = f"{what} deleted successfully"
    return Reply(message, {"success": True, "message": message})


def _relations(arguments: Arguments) -> Sequence[GraphRelation]:
    return [GraphRelation(each["from"], each["to"], each["relationType"]) for each in arguments["relations"]]


def _search_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """The entities that match, and every relation that touches one of them."""
    query = arguments["query"]
    keys = graph.ranked(query) if arguments.get("ranked") else graph.matching(query)
    return _reply(graph, keys, _touching(graph, {key.name for key in keys}), arguments, form)


def _open_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """The entities of these names; with `depth` also those their relations lead to."""
    wanted, direction, types = arguments["names"], arguments.get("direction", "both"), arguments.get("relationTypes")
    if depth := arguments.get("depth", 0):
        keys, relations = _walk(graph, wanted, depth, direction, types)
        return _reply(graph, keys, relations, arguments, form)
    keys = graph.named(wanted)
    names = {key.name for key in keys}
    relations = [
        each
        for each in _touching(graph, names)
        if (types is None or each.type in types)
        and ((direction != "in" and each.source in names) or (direction != "out" and each.target in names))
    ]
    return _reply(graph, keys, relations, arguments, form)


def _walk(
    graph: Graph, names: list[str], depth: int, direction: str, types: list[str] | None
) -> tuple[list[EntityKey], list[GraphRelation]]:
    """The entities within `depth` relations, nearest first, and the relations among all names reached."""
    reached = dict.fromkeys(names, 0)
    frontier = set(reached)
    for level in range(1, depth + 1):
        found: set[str] = set()
        for each in _touching(graph, frontier):
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


def _touching(graph: Graph, names: set[str]) -> list[GraphRelation]:
    """The relations with an end among `names`."""
    return graph.relations(names) if names else []


def _reply(
    graph: Graph, keys: list[EntityKey], relations: list[GraphRelation], arguments: Arguments, form: Form
) -> Reply:
    data, text = GraphReply(graph, keys, relations, Paging.of(arguments), form).data()
    warnings = graph.warnings()
    return Reply(text, data, meta={WARNINGS: warnings} if warnings else None)


def whole_graph(graph: Graph) -> str:
    """The graph as its resources show it: all of it, indented (contract 002, 7)."""
    return graph.at_once(lambda: GraphReply(graph, graph.keys(), graph.relations(), Paging(), Form(2, 0)).data()[1])


TOOLS: dict[str, Callable[[Graph, Arguments, Form], Reply]] = {
    "create_entities": _create_entities,
    "create_relations": _create_relations,
    "add_observations": _add_observations,
    "delete_entities": _delete,
    "delete_observations": _delete,
    "delete_relations": _delete,
    "read_graph": lambda graph, arguments, form: _reply(graph, graph.keys(), graph.relations(), arguments, form),
    "search_nodes": _search_nodes,
    "open_nodes": _open_nodes,
}
