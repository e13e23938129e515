"""The knowledge graph as values and as text, and what a graph can do whatever it is kept in (contract 002)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from commonplace.errors import CommonplaceError
from commonplace.store.inplace.graph_lines import BadLine, Entity, GraphRelation, dump_line, parse_graph_object
from commonplace.text.unicode import is_valid_unicode

__all__ = [
    "AmbiguousEntity",
    "Entity",
    "EntityKey",
    "Graph",
    "GraphRelation",
    "GraphText",
    "NoEntity",
    "graph_lines",
    "parse_graph",
]

T = TypeVar("T")
Merged = dict[str, tuple[str, dict[str, None], dict[str, Any]]]
_ENTITY_KEYS = ("type", "name", "entityType", "observations")


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


class Graph(Protocol):
    """Entities and relations. A call is all or nothing, durable on return, and applied in turn with others.

    Names compare by code point. Reading sees what any program wrote before. Raises from errors.py.
    """

    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""

    def create_relations(self, relations: Sequence[GraphRelation]) -> list[GraphRelation]:
        """Store those that are new; their ends need not exist. Returns them."""

    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet. Returns what was new. Raises NoEntity."""

    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities and every relation at either end; unknown names are no error."""

    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations; what is not there is no error."""

    def delete_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove relations; what is not there is no error."""

    def keys(self) -> list[EntityKey]:
        """Every entity, in order."""

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        """The entities of these names, in order."""

    def matching(self, text: str) -> list[EntityKey]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""

    def ranked(self, text: str) -> list[EntityKey]:
        """The entities that hold the words of `text` in any order, best first."""

    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """What each of these entities says, in stored order."""

    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """The keys each of these entities has that are not of a graph: another program's."""

    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """The relations with at least one end among `names` (None: all), in order."""

    def version(self) -> Any:
        """A value that differs once something changed."""

    def warnings(self) -> list[str]:
        """What was met and is not shown, in few words; none for most graphs."""

    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns, which only reads: all its looks see the graph as it is at one moment."""


def unique_entities(entities: Iterable[Entity]) -> dict[str, Entity]:
    """Entities by name: of twins the first, equal observations once."""
    found: dict[str, Entity] = {}
    for each in entities:
        found.setdefault(each.name, Entity(each.name, each.type, tuple(dict.fromkeys(each.observations))))
    return found


def merge_entities(entities: Iterable[tuple[Entity, dict[str, Any]]]) -> Merged:
    """(type, observations, further keys) by name: twins become one."""
    found: Merged = {}
    for each, more in entities:
        _, texts, keys = found.setdefault(each.name, (each.type, {}, {}))
        texts |= dict.fromkeys(each.observations)
        keys |= {key: value for key, value in more.items() if key not in keys}
    return found


@dataclass(slots=True)
class GraphText:
    """What a text holds: entities with the keys we do not know, relations, and (line, why) of bad ones."""

    entities: list[tuple[Entity, dict[str, Any]]] = field(default_factory=list)
    relations: list[GraphRelation] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)


def parse_graph(text: str) -> GraphText:
    """The graph in `text`: JSON Lines, a JSON array of such objects, or one object of `entities` and `relations`.

    Lines, or members of the array, count from 1. Lines of another type are bad ones too.
    """
    text = text.removeprefix("\ufeff")
    whole = _json(text) if text.lstrip()[:1] in ("[", "{") else None
    if isinstance(whole, list):
        return _collect(enumerate(whole, 1))
    if isinstance(whole, dict) and "type" not in whole:
        members = [("entity", whole.get("entities")), ("relation", whole.get("relations"))]
        listed = [(kind, each) for kind, values in members if isinstance(values, list) for each in values]
        return _collect((1, {**each, "type": kind} if isinstance(each, dict) else each) for kind, each in listed)
    lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    return _collect((number, _json(line) if is_valid_unicode(line) else None) for number, line in lines)


def _collect(values: Iterable[tuple[int, Any]]) -> GraphText:
    found = GraphText()
    for number, value in values:
        kind = value.get("type") if isinstance(value, dict) else None
        try:
            one = parse_graph_object(value) if isinstance(value, dict) else None
        except BadLine:
            one = None
        if isinstance(one, Entity):
            found.entities.append((one, {key: each for key, each in value.items() if key not in _ENTITY_KEYS}))
        elif one is not None:
            found.relations.append(one)
        elif not isinstance(value, dict):
            found.bad.append((number, "not a JSON object"))
        elif kind == "entity":
            found.bad.append((number, "no entity: it needs a name, and observations that are texts"))
        elif kind == "relation":
            found.bad.append((number, "no relation: it needs from, to and relationType"))
        else:
            found.bad.append((number, "neither entity nor relation"))
    return found


def _json(text: str) -> Any:
    """The JSON value, None when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def graph_lines(graph: Graph) -> list[str]:
    """The graph as JSON Lines as it is at one moment, entities first."""
    return graph.at_once(lambda: [*_lines(graph)])


def _lines(graph: Graph) -> Iterator[str]:
    keys = graph.keys()
    for key, texts, more in zip(keys, graph.observations(keys), graph.further(keys), strict=True):
        yield entity_line(Entity(key.name, key.type, tuple(texts)), more)
    yield from map(relation_line, graph.relations())


def entity_line(entity: Entity, more: dict[str, Any] | None = None) -> str:
    """An entity as one line of JSON, with the further keys `more`."""
    value = {"type": "entity", "name": entity.name, "entityType": entity.type, "observations": entity.observations}
    return dump_line(value | {key: each for key, each in (more or {}).items() if key not in _ENTITY_KEYS})


def relation_line(relation: GraphRelation) -> str:
    """A relation as one line of JSON."""
    ends = {"from": relation.source, "to": relation.target, "relationType": relation.type}
    return dump_line({"type": "relation", **ends})
