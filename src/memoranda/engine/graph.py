"""A knowledge graph: entities with observations, and relations between entities.

`Graph` has the verbs of a graph, for graphs in notes and for graphs in a file. `FileGraph` is the
graph in a JSON Lines file (contract 002, 2 and 6).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from memoranda.engine.engine import Engine, verb
from memoranda.engine.in_place import InPlaceChange
from memoranda.engine.places import PlaceVerbs
from memoranda.errors import MemorandaError
from memoranda.index.index import Index
from memoranda.ledger.change import Touched
from memoranda.note.entity import Entity, EntityKey, GraphRelation
from memoranda.query import Query
from memoranda.sources.graph_file import EntityLine, GraphFileSource, LineEdit
from memoranda.sources.graph_lines import GraphText as GraphText
from memoranda.sources.graph_lines import entity_line, relation_line
from memoranda.sources.graph_lines import parse_graph as parse_graph

T = TypeVar("T")
# How many entities a search of the graph puts in order.
MAX_RANKED = 1000


class NoEntity(MemorandaError):
    """Raised when an observation is added to an entity that does not exist."""

    code = "not_found"

    def __init__(self, name: str):
        super().__init__(f"Entity with name {name} not found")


class AmbiguousEntity(MemorandaError):
    """Raised when a change names an entity, and two notes have this name as their title."""

    code = "ambiguous"

    def __init__(self, name: str, paths: Iterable[str]):
        super().__init__(f"Entity with name {name} is ambiguous: {', '.join(paths)}")


@dataclass(slots=True)
class _MergedEntity:
    """The entities of another graph that have the same name.

    type: the type of the first of them.
    observations: the texts of all of them, each once. They are the keys, which keep their order.
    keys: their further header keys. Of several values of a key, the first counts.
    """

    type: str
    observations: dict[str, None] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)

    def add(self, observations: Iterable[str], keys: Mapping[str, Any]) -> None:
        """Add the observations and keys of another entity of the same name."""
        self.observations |= dict.fromkeys(observations)
        for key, value in keys.items():
            self.keys.setdefault(key, value)


class GraphEdits(Protocol):
    """The edits that one call collects before they are made.

    `NoteEdits` collects edits of notes, and `LineEdit` edits of the lines of a graph file.

    present_names: the names that entities have, among the names that the call is about.
    """

    present_names: set[str]

    def observations(self, name: str) -> list[str]:
        """Return the observations of an entity, with the edits of this call so far."""

    def has(self, relation: GraphRelation) -> bool:
        """Whether the graph has a relation."""

    def create(self, entity: Entity, more: dict[str, Any]) -> None:
        """Create an entity. `more` are further keys, which belong to other programs."""

    def add_observations(self, name: str, texts: Sequence[str]) -> None:
        """Add observations to an entity. It must not have any of them yet."""

    def drop_observations(self, name: str, texts: set[str]) -> None:
        """Remove all copies of these observations from an entity."""

    def add_keys(self, name: str, more: dict[str, Any]) -> None:
        """Add further keys to an entity. Keys that it has already keep their values."""

    def add_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Add relations that the graph does not have yet."""

    def drop_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove all copies of these relations."""

    def remove_entities(self, names: Sequence[str]) -> None:
        """Remove all entities with these names, and every relation from or to them."""


class Graph(Protocol):
    """Entities and relations, with the verbs that read and change them.

    A change is made as a whole or not at all, and it is on disk when the call returns. Names must
    be equal code point by code point. A reading verb sees the changes that any program has made
    before. errors.py has the errors that are raised.

    session: the caller.
    engine: the open home, which all callers share.
    project: the project whose notes are the entities.
    """

    project: str
    session: PlaceVerbs
    engine: Engine
    _index: Index

    def __init__(self, session: PlaceVerbs):
        self.session = session
        self.engine = session.engine
        self._index = session.engine.index

    def keys(self) -> list[EntityKey]:
        """Return all entities in stored order."""

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        """Return the entities with one of these names, in stored order."""

    def matching(self, text: str) -> list[EntityKey]:
        """Return the entities that have `text` in their name, their type or an observation.

        They are in stored order. Case does not matter.
        """

    def ranked(self, text: str) -> list[EntityKey]:
        """Return the entities that have the words of `text` in any order, the best first.

        An entity that has the words only in its type comes last.
        """

    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """Return the observations of each of these entities, in stored order."""

    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """Return the keys that other programs gave to each entity. They are kept as they are."""

    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """Return the relations from or to one of `names`, in stored order.

        names: None means all relations.
        """

    def version(self) -> Any:
        """Return a value that differs after every change of the graph.

        It also differs if the graph can no longer be read.
        """

    def warnings(self) -> list[str]:
        """Return warnings about lines of a graph file that are not shown. Most graphs have none."""
        return []

    def at_once(self, read: Callable[[], T]) -> T:
        """Call `read`, a function that only reads, and return its result.

        During the call, the graph does not change.
        """

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        """Call `plan`, which collects edits, and make these edits as one change.

        verb: the verb of the change in the history.
        names: the names of the entities that the change is about.
        plan: gets the edits to collect into. It may be called several times, if the graph changes
            in between.

        Returns the result of `plan`.
        """

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store the entities whose names are new, and return these entities.

        If two entities have the same name, only the first is stored. Equal observations of an
        entity are stored once.
        """
        entities_by_name: dict[str, Entity] = {}
        for entity in entities:
            unique_observations = tuple(dict.fromkeys(entity.observations))
            unique_entity = Entity(entity.name, entity.type, unique_observations)
            entities_by_name.setdefault(entity.name, unique_entity)

        def plan(edits: GraphEdits) -> list[Entity]:
            """Add the entities that the graph does not have, and return them."""
            new_entities = [
                unique_entity
                for name, unique_entity in entities_by_name.items()
                if name not in edits.present_names
            ]
            for new_entity in new_entities:
                edits.create(new_entity, {})
            return new_entities

        return self._change("write", entities_by_name, plan)

    @verb
    def create_relations(self, relations: Sequence[GraphRelation]) -> list[GraphRelation]:
        """Store the relations that the graph does not have, and return these relations.

        The entities at the ends of a relation need not exist.
        """
        unique_relations = {relation.triple: relation for relation in relations}.values()
        sources = {relation.source for relation in relations}

        def plan(edits: GraphEdits) -> list[GraphRelation]:
            """Add the relations that the graph does not have, and return them."""
            new_relations = [relation for relation in unique_relations if not edits.has(relation)]
            edits.add_relations(new_relations)
            return new_relations

        return self._change("edit", sources, plan)

    @verb
    def add_observations(
        self, additions: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[str, list[str]]]:
        """Add observations to entities, except observations that the entities have already.

        additions: pairs of an entity's name and texts, such as `[("Anna", ["likes tea"])]`.

        Returns pairs of a name and the added texts, in the order of `additions`. Raises NoEntity.
        """

        def plan(edits: GraphEdits) -> list[tuple[str, list[str]]]:
            """Add the new texts to each entity. Returns them in the order of `additions`."""
            missing = [name for name, _ in additions if name not in edits.present_names]
            if missing:
                raise NoEntity(missing[0])
            # Each note is read and written once, even with several additions.
            new_by_name: dict[str, list[str]] = {name: [] for name, _ in additions}
            present = {name: set(edits.observations(name)) for name in new_by_name}
            results: list[tuple[str, list[str]]] = []
            for name, texts in additions:
                added = [text for text in dict.fromkeys(texts) if text not in present[name]]
                present[name].update(added)
                new_by_name[name] += added
                results.append((name, added))
            for name, new in new_by_name.items():
                if new:
                    edits.add_observations(name, new)
            return results

        return self._change("edit", {name for name, _ in additions}, plan)

    @verb
    def merge(
        self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[GraphRelation]
    ) -> None:
        """Merge another graph into this graph, as one change.

        If this graph has an entity with the same name, the entity gets the observations and keys
        that it lacks. Entities of the other graph with the same name become one entity.

        entities: pairs of an entity and its further header keys.
        """
        merged: dict[str, _MergedEntity] = {}
        for entity, further_keys in entities:
            merged_entity = merged.setdefault(entity.name, _MergedEntity(entity.type))
            merged_entity.add(entity.observations, further_keys)
        unique_relations = {relation.triple: relation for relation in relations}.values()

        def plan(edits: GraphEdits) -> None:
            """Add the merged entities and relations that the graph does not have yet."""
            for name, entity in merged.items():
                if name not in edits.present_names:
                    edits.create(Entity(name, entity.type, tuple(entity.observations)), entity.keys)
                    continue
                present = set(edits.observations(name))
                lacking = [text for text in entity.observations if text not in present]
                if lacking:
                    edits.add_observations(name, lacking)
                edits.add_keys(name, entity.keys)
            new_relations = [relation for relation in unique_relations if not edits.has(relation)]
            edits.add_relations(new_relations)

        names = {*merged, *(relation.source for relation in unique_relations)}
        self._change("import", names, plan)

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove all entities with these names, and every relation from or to them.

        Unknown names are ignored.
        """
        self._change("delete", names, lambda edits: edits.remove_entities(names))

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove observations from entities. Observations that do not exist are ignored.

        deletions: pairs of an entity's name and the texts to remove. All copies of a text are
            removed.
        """
        texts_by_name: dict[str, set[str]] = {}
        for name, texts in deletions:
            texts_by_name.setdefault(name, set()).update(texts)

        def plan(edits: GraphEdits) -> None:
            """Remove the observations of the entities that exist."""
            for name, texts in texts_by_name.items():
                if name in edits.present_names:
                    edits.drop_observations(name, texts)

        self._change("edit", texts_by_name, plan)

    @verb
    def delete_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove all copies of these relations. Relations that do not exist are ignored."""
        names = {relation.source for relation in relations}
        self._change("edit", names, lambda edits: edits.drop_relations(relations))


def graph_lines(graph: Graph) -> list[str]:
    """Return the whole graph as lines of JSON: first the entities, then the relations.

    A line is, for example, `{"type": "entity", "name": "Anna", …}`.
    """

    def read() -> list[str]:
        """Read the graph, which does not change meanwhile."""
        keys = graph.keys()
        rows = zip(keys, graph.observations(keys), graph.further(keys), strict=True)
        entities = [
            entity_line(Entity(key.name, key.type, tuple(texts)), other_keys)
            for key, texts, other_keys in rows
        ]
        relations = [relation_line(relation) for relation in graph.relations()]
        return [*entities, *relations]

    return graph.at_once(read)


class FileGraph(Graph):
    """The graph in a JSON Lines file.

    A graph file has no scopes, so every caller sees the whole file. The history records the caller
    of a change.
    """

    def __init__(self, session: PlaceVerbs, source: GraphFileSource):
        super().__init__(session)
        self.source = source
        self.project = source.name
        self._is_current = False

    @verb
    def keys(self) -> list[EntityKey]:
        self._fresh()
        return [_key(entity) for entity in self.source.entities.values()]

    @verb
    def named(self, names: Iterable[str]) -> list[EntityKey]:
        self._fresh()
        lines: list[int] = []
        for name in set(names):
            lines += self.source.named.get(name, ())
        return [_key(self.source.entities[line]) for line in sorted(lines)]

    @verb
    def matching(self, text: str) -> list[EntityKey]:
        self._fresh()
        lowered = text.lower()
        return [
            _key(entity) for entity in self.source.entities.values() if lowered in entity.lowered
        ]

    @verb
    def ranked(self, text: str) -> list[EntityKey]:
        """Return the entities that have all words of `text`, the best first.

        If the file is a project of this process, the index decides the order, and entities that the
        index does not find come last. For any other file, the names and types of the entities
        decide.
        """
        self._fresh()
        words = text.lower().split()
        holding = list(self.source.entities.values()) if words else []
        for word in words:
            holding = [entity for entity in holding if word in entity.lowered]

        is_indexed = self.engine.sources.get(self.source.name) is self.source
        if is_indexed:
            ranked = [*self._ranked_by_index(text), *holding]
        else:
            ranked = sorted(holding, key=lambda entity: (-_weight(entity, words), entity.number))
        # Each entity counts at its first place.
        ranked_by_line: dict[int, EntityLine] = {}
        for entity in ranked:
            ranked_by_line.setdefault(entity.number, entity)
        return [_key(entity) for entity in ranked_by_line.values()]

    def _ranked_by_index(self, text: str) -> list[EntityLine]:
        """Return the entities that a search in the index finds, the best first."""
        query = Query(text=text, projects=(self.source.name,))
        hits = self.session.search(query, limit=MAX_RANKED)
        entities = [self.source.entity(hit.note.path) for hit in hits]
        # The file may have changed since the index read it.
        return [entity for entity in entities if entity is not None]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        return [list(key.handle.observations) for key in keys]

    @verb
    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        return [json.loads(self.source.lines[key.handle.number]) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        self._fresh()
        if names is None:
            return list(self.source.relations.values())
        lines: set[int] = set()
        for name in names:
            lines.update(self.source.ends.get(name, ()))
        return [self.source.relations[line] for line in sorted(lines)]

    @verb
    def version(self) -> Any:
        """Return a value that differs after each change of the file.

        It is the number of changes, or the error message if the file cannot be read.
        """
        try:
            self._fresh()
        except MemorandaError as error:
            return str(error)
        return self.source.changes

    @verb
    def warnings(self) -> list[str]:
        return self.source.warnings()

    @verb
    def at_once(self, read: Callable[[], T]) -> T:
        """Call `read` and return its result. The file is checked for changes only once, before the
        call.
        """
        self._fresh()
        self._is_current = True
        try:
            return read()
        finally:
            self._is_current = False

    def _fresh(self) -> None:
        """Read the graph file again if it has changed."""
        if self._is_current:
            return
        self.source.fresh()
        # A writer may have died during a change of the file. The change is finished first.
        if self.engine.ledger.has_line_change():
            self.engine.ledger.try_to_recover()
            self.source.fresh()

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        """Make the edits of `plan` in the file, if the new lines contain no secrets.

        verb: the verb of the change in the history.
        names: the names of the entities that the change is about.
        plan: gets the edits to collect into. It is called again if the file changes in between.

        Returns the result of the last call of `plan`.
        """
        # The result of each call of `plan`. Only the edit of the last call is carried out.
        results: list[T] = []

        def planned_edit() -> LineEdit:
            """Return the edit of the file's lines that `plan` makes. Raises SecretRefused."""
            edit = LineEdit(self.source, names, verb)
            results.append(plan(edit))
            edit.finish()
            self._check_secrets(edit)
            return edit

        change = InPlaceChange(self.session, os.path.basename(self.source.root))
        change.carry_out(self.source, planned_edit)
        return results[-1]

    def _check_secrets(self, edit: LineEdit) -> None:
        """Raise SecretRefused if the new lines of an edit have a secret that the old ones have not."""
        new_lines = [*edit.lines.values(), *edit.added]
        text = b"".join(new_lines).decode("utf-8", "replace")
        replaced_lines = [self.source.lines[number] for number in edit.lines]
        self.session.admitted(text, self.source.name, replaced_lines, whole=True)


def graph_file_of(session: PlaceVerbs, touched: Touched) -> GraphFileSource:
    """Return the graph file that a change of lines was about. It is opened if no project has it.

    touched: the step that changed the lines.
    """
    known_source = session.engine.sources.get(touched.project)
    if isinstance(known_source, GraphFileSource):
        return known_source
    return source_of(session, touched.file) or GraphFileSource(touched.project, touched.file)


def source_of(session: PlaceVerbs, file: str) -> GraphFileSource | None:
    """Return the source of the project that is the graph file at this absolute path.

    None means that no project is this file.
    """
    for source in session.engine.sources.values():
        if isinstance(source, GraphFileSource) and source.root == file:
            return source
    return None


def _weight(entity: EntityLine, words: Sequence[str]) -> int:
    """Return how well an entity fits the words of a search.

    Each word in the name counts 4, and each word in the type 2. A word that is the whole name
    counts 1 more.

    words: the words in lower case.
    """
    name = entity.name.lower()
    kind = entity.type.lower()
    weight = 0
    for word in words:
        if word in name:
            weight += 4
        if word in kind:
            weight += 2
        if word == name:
            weight += 1
    return weight


def _key(entity: EntityLine) -> EntityKey:
    """Return the `EntityKey` of an entity of the file. The verbs of the graph take it as an
    argument.
    """
    return EntityKey((entity.order,), entity.name, entity.type, entity)
