"""Moving in a knowledge graph from JSON Lines (contract 002, 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from commonplace.engine.entities import Entity, Graph, GraphText, Key, Relation
from commonplace.engine.graph import NoteGraph
from commonplace.transfer.moving import IMPORT, UPDATE, Item, Plan


class Merging(Graph, Protocol):
    """A graph that takes another one in."""

    def merge(self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[Relation]) -> None:
        """As `NoteGraph.merge`."""
        ...


@dataclass(slots=True)
class _Group:
    """An entity with its twins, its unknown keys and its relations; `entity` None: only relations begin there."""

    entity: tuple[Entity, dict[str, Any]] | None = None
    relations: list[Relation] = field(default_factory=list)


def plan(graph: Merging, found: GraphText) -> Plan:
    """The plan for merging what a text holds into `graph`: an item for each new entity, each that gains
    observations or unknown keys, and each new relation. Bad lines are skipped."""
    groups = _groups(found)
    there = graph.named(groups)
    said: dict[str, set[str]] = {}
    for key, texts in zip(there, graph.observations(there), strict=True):
        said.setdefault(key.name, set()).update(texts)
    lacking = _lacking(graph, there, groups)
    known = {each.triple for each in graph.relations({name for name, each in groups.items() if each.relations})}
    made = Plan(lambda items: _merge(graph, items))
    made.skipped = [(f"line {number}", why) for number, why in found.bad]
    for name, group in groups.items():
        if group.entity is not None:
            entity, _ = group.entity
            if name in said and said[name].issuperset(entity.observations) and name not in lacking:
                made.unchanged += 1
            else:
                verb = UPDATE if name in said else IMPORT
                made.items.append(Item(verb, f"entity {name}", sum(map(len, entity.observations)), group.entity))
        for each in group.relations:
            if each.triple in known:
                made.unchanged += 1
            else:
                made.items.append(Item(IMPORT, f"relation {each.source} {each.type} {each.target}", 0, each))
    return made


def _groups(found: GraphText) -> dict[str, _Group]:
    """Everything by the name it begins with: entities first, so that no relation needs a placeholder for one."""
    groups: dict[str, _Group] = {}
    for entity, more in found.entities:
        group = groups.setdefault(entity.name, _Group())
        if group.entity is None:
            group.entity = (entity, more)
        else:
            first, keys = group.entity
            texts = dict.fromkeys([*first.observations, *entity.observations])
            group.entity = (Entity(first.name, first.type, tuple(texts)), {**more, **keys})
    seen: set[tuple[str, str, str]] = set()
    for each in found.relations:
        if each.triple not in seen:
            seen.add(each.triple)
            groups.setdefault(each.source, _Group()).relations.append(each)
    return groups


def _merge(graph: Merging, items: Sequence[Item]) -> None:
    entities = [each.what for each in items if not isinstance(each.what, Relation)]
    graph.merge(entities, [each.what for each in items if isinstance(each.what, Relation)])


def _lacking(graph: Merging, there: Sequence[Key], groups: dict[str, _Group]) -> set[str]:
    """The names of entities that would gain unknown keys; a graph file keeps those of its own lines."""
    if not isinstance(graph, NoteGraph):
        return set()
    pairs = [(key, group.entity[1]) for key in there if (group := groups[key.name]).entity and group.entity[1]]
    return {key.name for (key, _), lacks in zip(pairs, graph.lacking(pairs), strict=True) if lacks}
