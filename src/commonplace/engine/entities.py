"""The knowledge graph as values and as text (contract 002)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from commonplace.errors import CommonplaceError
from commonplace.store.inplace.graph_lines import (
    ENTITY_KEYS,
    BadLine,
    Entity,
    GraphRelation,
    json_value,
    parse_graph_object,
)
from commonplace.text.unicode import is_valid_unicode

__all__ = ["AmbiguousEntity", "Entity", "EntityKey", "GraphRelation", "GraphText", "NoEntity"]


class EntityKey(NamedTuple):
    """One entity without its observations. `order` tells its place in the graph and outlives other entities;
    `handle` is the graph's own; `project` is set when several are looked at together."""

    order: tuple[Any, ...]
    name: str
    type: str
    handle: Any
    project: str | None = None


class NoEntity(CommonplaceError):
    """An observation for an entity that is not there."""

    code = "not_found"

    def __init__(self, name: str):
        super().__init__(f"Entity with name {name} not found")


class AmbiguousEntity(CommonplaceError):
    """Two notes have one title, so writing to that name could mean either."""

    code = "ambiguous"

    def __init__(self, name: str, paths: Iterable[str]):
        super().__init__(f"Entity with name {name} is ambiguous: {', '.join(paths)}")


@dataclass(slots=True)
class GraphText:
    """What a text holds: entities with the keys we do not know, relations, and (line, why) of bad ones."""

    entities: list[tuple[Entity, dict[str, Any]]] = field(default_factory=list)
    relations: list[GraphRelation] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)


def parse_graph(text: str) -> GraphText:
    """The graph in `text`: JSON Lines, a JSON array of such objects, or one object of `entities` and `relations`.
    Lines, or members of the array, count from 1. Lines of another type are bad ones too."""
    text = text.removeprefix("\ufeff")
    whole = json_value(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(whole, list):
        return _collect(enumerate(whole, 1))
    if isinstance(whole, dict) and "type" not in whole:
        members = [("entity", whole.get("entities")), ("relation", whole.get("relations"))]
        listed = [(kind, each) for kind, values in members if isinstance(values, list) for each in values]
        return _collect((1, {**each, "type": kind} if isinstance(each, dict) else each) for kind, each in listed)
    lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    return _collect((number, json_value(line) if is_valid_unicode(line) else None) for number, line in lines)


_BAD = {
    "entity": "no entity: it needs a name, and observations that are texts",
    "relation": "no relation: it needs from, to and relationType",
}


def _collect(values: Iterable[tuple[int, Any]]) -> GraphText:
    found = GraphText()
    for number, value in values:
        if not isinstance(value, dict):
            found.bad.append((number, "not a JSON object"))
            continue
        try:
            one = parse_graph_object(value)
        except BadLine:
            one = None
        if isinstance(one, Entity):
            found.entities.append((one, {key: each for key, each in value.items() if key not in ENTITY_KEYS}))
        elif one is not None:
            found.relations.append(one)
        else:
            found.bad.append((number, _BAD.get(str(value.get("type")), "neither entity nor relation")))
    return found
