"""The verbs of a graph, whatever it is kept in (contract 002)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from commonplace.engine.engine import Engine, verb
from commonplace.engine.entities import Entity, EntityKey, GraphRelation, NoEntity
from commonplace.engine.reading import ReadVerbs
from commonplace.index.index import Index
from commonplace.store.inplace.graph_lines import entity_line, relation_line

T = TypeVar("T")
MAX_RANKED = 1000


class GraphEdits(Protocol):
    """What one call changes: `NoteEdits` in notes, `LineEdit` of store/inplace, which says what each does, in lines."""

    known: set[str]

    def observations(self, name: str) -> list[str]: ...
    def has(self, relation: GraphRelation) -> bool: ...
    def create(self, entity: Entity, more: dict[str, Any]) -> None: ...
    def add_observations(self, name: str, texts: Sequence[str]) -> None: ...
    def drop_observations(self, name: str, texts: set[str]) -> None: ...
    def add_keys(self, name: str, more: dict[str, Any]) -> None: ...
    def add_relations(self, relations: Sequence[GraphRelation]) -> None: ...
    def drop_relations(self, relations: Sequence[GraphRelation]) -> None: ...
    def remove_entities(self, names: Sequence[str]) -> None: ...


class Graph(Protocol):
    """Entities and relations. A call is all or nothing, durable on return, and applied in turn with others. Names
    compare by code point. Reading sees what any program wrote before. Raises from errors.py."""

    session: ReadVerbs
    engine: Engine
    _index: Index

    def __init__(self, session: ReadVerbs):
        self.session = session
        self.engine = session.engine
        self._index = session.engine.index

    def keys(self) -> list[EntityKey]:
        """Every entity, in order."""

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        """The entities of these names, in order."""

    def matching(self, text: str) -> list[EntityKey]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""

    def ranked(self, text: str) -> list[EntityKey]:
        """The entities that hold the words of `text` in any order, best first; types count last."""

    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """What each of these entities says, in stored order."""

    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """The keys each of these entities has that are not of a graph: another program's."""

    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """The relations with at least one end among `names` (None: all), in order."""

    def version(self) -> Any:
        """A value that differs once something changed, also when the graph cannot be served."""

    def warnings(self) -> list[str]:
        """What was met and is not shown, in few words; none for most graphs."""
        return []

    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns, which only reads: all its looks see the graph as it is at one moment."""

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        """Carry out what `plan` does to the edits as one change, which is about `names`; it may be called again."""

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""
        wanted: dict[str, Entity] = {}
        for each in entities:
            wanted.setdefault(each.name, Entity(each.name, each.type, tuple(dict.fromkeys(each.observations))))

        def plan(edits: GraphEdits) -> list[Entity]:
            new = [each for each in wanted.values() if each.name not in edits.known]
            for each in new:
                edits.create(each, {})
            return new

        return self._change("write", wanted, plan)

    @verb
    def create_relations(self, relations: Sequence[GraphRelation]) -> list[GraphRelation]:
        """Store those that are new; their ends need not exist. Returns them."""
        wanted = {each.triple: each for each in relations}.values()

        def plan(edits: GraphEdits) -> list[GraphRelation]:
            new = [each for each in wanted if not edits.has(each)]
            edits.add_relations(new)
            return new

        return self._change("edit", {each.source for each in wanted}, plan)

    @verb
    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet. Returns what was new. Raises NoEntity."""

        def plan(edits: GraphEdits) -> list[tuple[str, list[str]]]:
            if missing := [name for name, _ in additions if name not in edits.known]:
                raise NoEntity(missing[0])
            names = dict.fromkeys(name for name, _ in additions)
            known = {name: dict.fromkeys(edits.observations(name), False) for name in names}
            results = []
            for name, texts in additions:
                added = [text for text in dict.fromkeys(texts) if text not in known[name]]
                known[name] |= dict.fromkeys(added, True)
                results.append((name, added))
            for name, there in known.items():  # each note is read and written once
                if new := [text for text, is_new in there.items() if is_new]:
                    edits.add_observations(name, new)
            return results

        return self._change("edit", {name for name, _ in additions}, plan)

    @verb
    def merge(self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[GraphRelation]) -> None:
        """Take in another graph as one change: entities that exist get the observations they lack, twins become
        one. The keys that come with an entity go with it, where it has none of that name."""
        wanted: dict[str, tuple[str, dict[str, None], dict[str, Any]]] = {}
        for each, more in entities:
            _, texts, keys = wanted.setdefault(each.name, (each.type, {}, {}))
            texts |= dict.fromkeys(each.observations)
            keys |= {key: value for key, value in more.items() if key not in keys}
        new = {each.triple: each for each in relations}.values()

        def plan(edits: GraphEdits) -> None:
            for name, (kind, texts, keys) in wanted.items():
                if name in edits.known:
                    there = set(edits.observations(name))
                    if lacking := [text for text in texts if text not in there]:
                        edits.add_observations(name, lacking)
                    edits.add_keys(name, keys)
                else:
                    edits.create(Entity(name, kind, tuple(texts)), keys)
            edits.add_relations([each for each in new if not edits.has(each)])

        self._change("import", {*wanted, *(each.source for each in new)}, plan)

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities, all of one name, and every relation at either end; unknown names are no error."""
        self._change("delete", names, lambda edits: edits.remove_entities(names))

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations; what is not there is no error."""
        gone: dict[str, set[str]] = {}
        for name, texts in deletions:
            gone.setdefault(name, set()).update(texts)

        def plan(edits: GraphEdits) -> None:
            for name, texts in gone.items():
                if name in edits.known:
                    edits.drop_observations(name, texts)

        self._change("edit", gone, plan)

    @verb
    def delete_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove relations, all copies; what is not there is no error."""
        names = {each.source for each in relations}
        self._change("edit", names, lambda edits: edits.drop_relations(relations))


def graph_lines(graph: Graph) -> list[str]:
    """The graph as JSON Lines as it is at one moment, entities first."""

    def read() -> list[str]:
        keys = graph.keys()
        found = zip(keys, graph.observations(keys), graph.further(keys), strict=True)
        entities = [entity_line(Entity(key.name, key.type, tuple(texts)), more) for key, texts, more in found]
        return [*entities, *map(relation_line, graph.relations())]

    return graph.at_once(read)
