"""The nine tools of the graph: contract 002, 1, 2 and 4.

In our own toolset (no `Form.indent`) a call that did less than it was asked says so in a second text; the first is
the contract's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.engine.entities import Entity, EntityKey, GraphRelation, NoEntity
from commonplace.errors import near
from commonplace.faces.arguments import Arguments
from commonplace.faces.graph.pages import Form, GraphReply, Paging, relations_data
from commonplace.faces.reply import Reply
from commonplace.text.unicode import flat

if TYPE_CHECKING:
    from commonplace.engine.graph_verbs import Graph

WARNINGS = "commonplace/warnings"
_SHOWN, _GUESSED, _SEARCHED = 10, 3, 5000
"""Names a hint lists; misspelled names it looks for; entities among which it looks."""


def _create_entities(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Answers with the entities that were new, as they were stored."""
    wanted = [Entity(each["name"], each["entityType"], tuple(each["observations"])) for each in arguments["entities"]]
    created = [
        {"name": each.name, "entityType": each.type, "observations": list(each.observations)}
        for each in graph.create_entities(wanted)
    ]
    new = {each["name"] for each in created}
    there = [each.name for each in wanted if each.name not in new]
    if form.indent is None and form.most and len(form.text(created)) > form.most:
        created = [{**each, "observations": []} for each in created]  # the caller knows what they say
        created = created[: form.most // max(map(form.size, created))]
    hint = f"Already there, nothing was changed: {_listed(there)}. Use memory_add_observations to add to an entity."
    return Reply(form.text(created), {"entities": created}, hint=hint if there and form.teaches else "")


def _create_relations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    created = relations_data(graph.create_relations(_relations(arguments)))
    return Reply(form.text(created), {"relations": created})


def _add_observations(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    """Answers with what each entity did not say before."""
    wanted = [(each["entityName"], each["contents"]) for each in arguments["observations"]]
    try:
        added = graph.add_observations(wanted)
    except NoEntity as error:
        hint = _misspelled(graph, [name for name, _ in wanted]) if form.teaches else ""
        return Reply(str(error), is_error=True, hint=hint)
    results = [{"entityName": name, "addedObservations": texts} for name, texts in added]
    return Reply(form.text(results), {"results": results})


def _delete(graph: Graph, arguments: Arguments, form: Form) -> Reply:
    hint = _undone(graph, arguments) if form.teaches else ""
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
    return Reply(message, {"success": True, "message": message}, hint=hint)


def _undone(graph: Graph, arguments: Arguments) -> str:
    """How many of the things to delete are there, when not all of them are."""
    asked: set[Any]
    if "relations" in arguments:
        kind, names = "relation", [each["from"] for each in arguments["relations"]]
        asked = {each.triple for each in _relations(arguments)}
        there = asked & {each.triple for each in graph.relations(set(names))}
    elif "entityNames" in arguments:
        kind, asked, names = "entity", set(arguments["entityNames"]), arguments["entityNames"]
        there = {key.name for key in graph.named(names)}
    else:
        kind, names = "observation", [each["entityName"] for each in arguments["deletions"]]
        asked = {(each["entityName"], text) for each in arguments["deletions"] for text in each["observations"]}
        keys = graph.named(names)
        said = zip(keys, graph.observations(keys), strict=True)
        there = asked & {(key.name, text) for key, texts in said for text in texts}
    if len(there) == len(asked):
        return ""
    why = f"{len(there)} of {len(asked)} deleted: no such {kind}."
    return f"{why} {_misspelled(graph, names)}".strip()


def _misspelled(graph: Graph, names: Iterable[str]) -> str:
    """Which of `names` are no entities but nearly are; "" for none."""
    wanted = list(dict.fromkeys(names))
    known = {key.name for key in graph.named(wanted)}
    missing = [name for name in wanted if name not in known][:_GUESSED]
    if not missing or len(keys := graph.keys()) > _SEARCHED:
        return ""
    guesses = [f"{_listed(found)}, not {_listed([name])}?" for name in missing
               if (found := near(name, (key.name for key in keys), 1))]  # fmt: skip
    return f"Did you mean {' '.join(guesses)}" if guesses else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f'"{flat(name[:80])}"' for name in names[:_SHOWN]) + more


def _relations(arguments: Arguments) -> Sequence[GraphRelation]:
    return [GraphRelation(each["from"], each["to"], each["relationType"]) for each in arguments["relations"]]


def _search_nodes(graph: Graph, arguments: Arguments, form: Form) -> Reply:
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
    hint = _misspelled(graph, wanted) if form.teaches else ""
    relations = [each for each in _touching(graph, names) if _reached(each, names, direction, types)]
    return _reply(graph, keys, relations, arguments, form, hint)


def _reached(relation: GraphRelation, names: set[str], direction: str, types: list[str] | None) -> list[str]:
    """The ends a relation of these types leads to from `names` in a direction."""
    if types is not None and relation.type not in types:
        return []
    ends = [relation.target] if direction != "in" and relation.source in names else []
    return ends + ([relation.source] if direction != "out" and relation.target in names else [])


def _walk(
    graph: Graph, names: list[str], depth: int, direction: str, types: list[str] | None
) -> tuple[list[EntityKey], list[GraphRelation]]:
    """The entities within `depth` relations, nearest first, and the relations among all names reached."""
    reached = dict.fromkeys(names, 0)
    frontier = set(reached)
    for level in range(1, depth + 1):
        found = {end for each in _touching(graph, frontier) for end in _reached(each, frontier, direction, types)}
        frontier = found - reached.keys()
        reached |= dict.fromkeys(frontier, level)
    keys = [key._replace(order=(reached[key.name], *key.order)) for key in graph.named(reached)]
    keys.sort(key=lambda key: key.order)
    among = [each for each in graph.relations(set(reached)) if each.source in reached and each.target in reached]
    return keys, among


def _touching(graph: Graph, names: set[str]) -> list[GraphRelation]:
    return graph.relations(names) if names else []


def _reply(graph: Graph, keys: list[EntityKey], relations: list[GraphRelation], arguments: Arguments, form: Form,
           hint: str = "") -> Reply:  # fmt: skip
    data, text = GraphReply(graph, keys, relations, Paging.of(arguments), form).data()
    warnings = graph.warnings()
    return Reply(text, data, meta={WARNINGS: warnings} if warnings else None, hint=hint)


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
