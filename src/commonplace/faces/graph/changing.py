"""The tools that change the graph: contract 002, 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from commonplace.engine.entities import Entity, Graph, Relation
from commonplace.faces.graph.page import Form, relation_data
from commonplace.faces.reply import Reply

Given = dict[str, Any]


def create_entities(graph: Graph, given: Given, form: Form) -> Reply:
    """Answers with the entities that were new, as they were stored."""
    wanted = [Entity(each["name"], each["entityType"], tuple(each["observations"])) for each in given["entities"]]
    created = [
        {"name": each.name, "entityType": each.type, "observations": list(each.observations)}
        for each in graph.create_entities(wanted)
    ]
    return Reply(form.text(created), {"entities": created})


def create_relations(graph: Graph, given: Given, form: Form) -> Reply:
    """Answers with the relations that were new."""
    created = [relation_data(each) for each in graph.create_relations(_relations(given))]
    return Reply(form.text(created), {"relations": created})


def add_observations(graph: Graph, given: Given, form: Form) -> Reply:
    """Answers with what each entity did not say before."""
    wanted = [(each["entityName"], each["contents"]) for each in given["observations"]]
    results = [{"entityName": name, "addedObservations": added} for name, added in graph.add_observations(wanted)]
    return Reply(form.text(results), {"results": results})


def deleting(message: str, delete: Callable[[Graph, Given], None]) -> Callable[[Graph, Given, Form], Reply]:
    """A tool that deletes and says so."""

    def run(graph: Graph, given: Given, form: Form) -> Reply:
        delete(graph, given)
        return Reply(message, {"success": True, "message": message})

    return run


def delete_entities(graph: Graph, given: Given) -> None:
    graph.delete_entities(given["entityNames"])


def delete_observations(graph: Graph, given: Given) -> None:
    graph.delete_observations([(each["entityName"], each["observations"]) for each in given["deletions"]])


def delete_relations(graph: Graph, given: Given) -> None:
    graph.delete_relations(_relations(given))


def _relations(given: Given) -> Sequence[Relation]:
    return [Relation(each["from"], each["to"], each["relationType"]) for each in given["relations"]]
