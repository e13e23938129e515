"""A knowledge graph: entities with observations, and relations between entities.

`Graph` has the verbs, whether the graph is kept in notes or in a file. `FileGraph` is the graph of
a JSON Lines file (contract 002, 2 and 6).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
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
# Entities that a search of the graph ranks.
MAX_RANKED = 1000


class NoEntity(MemorandaError):
    """An observation was given for an entity that does not exist."""

    code = "not_found"

    def __init__(self, name: str):
        super().__init__(f"Entity with name {name} not found")


class AmbiguousEntity(MemorandaError):
    """Two notes have the same title, so writing to an entity of that name could mean either."""

    code = "ambiguous"

    def __init__(self, name: str, paths: Iterable[str]):
        super().__init__(f"Entity with name {name} is ambiguous: {', '.join(paths)}")


class GraphEdits(Protocol):
    """The edits that one call collects before they are made.

    `NoteEdits` collects them for notes, `LineEdit` for lines of a graph file. `LineEdit` in
    sources/graph_file.py says what each method does.

    known: the names of the call that belong to entities of the graph.
    """

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
    """Entities and relations, with the verbs that read and change them.

    A call is all or nothing, durable on return, and applied in turn with other calls. Names compare
    by code point. Reading sees the changes that any program wrote before. The errors raised are in
    errors.py.
    """

    session: PlaceVerbs
    engine: Engine
    _index: Index

    def __init__(self, session: PlaceVerbs):
        self.session = session
        self.engine = session.engine
        self._index = session.engine.index

    def keys(self) -> list[EntityKey]:
        """Every entity, in stored order."""

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        """The entities with one of these names, in stored order."""

    def matching(self, text: str) -> list[EntityKey]:
        """The entities that hold `text` in their name, type or any one observation, in stored
        order.

        The texts are compared in lower case.
        """

    def ranked(self, text: str) -> list[EntityKey]:
        """The entities that hold the words of `text` in any order, best first.

        An entity found only by its type comes last.
        """

    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """The observations of each of these entities, in stored order."""

    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """The header keys of each of these entities that belong to another program, not to the
        graph.
        """

    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """The relations with at least one end among `names`, in stored order.

        names: None for all relations.
        """

    def version(self) -> Any:
        """A value that changes with the graph, even while the graph cannot be read."""

    def warnings(self) -> list[str]:
        """Warnings about lines that are not shown; none for most graphs."""
        return []

    def at_once(self, read: Callable[[], T]) -> T:
        """Return the result of `read`, a function that only reads.

        It sees the graph at one moment.
        """

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        """Call `plan` with the edits to fill, and make these edits as one change. Returns the
        result of `plan`.

        verb: how the history names the change.
        names: the entities that the change is about.
        plan: may be called several times, if the graph changes meanwhile.
        """

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store the entities whose name is new. Returns these.

        If two entities have one name, the first is stored. Equal observations are stored once.
        """
        entities_by_name: dict[str, Entity] = {}
        for entity in entities:
            entities_by_name.setdefault(
                entity.name,
                Entity(entity.name, entity.type, tuple(dict.fromkeys(entity.observations))),
            )

        def plan(edits: GraphEdits) -> list[Entity]:
            """Add the entities that the graph does not have, and return them."""
            new = [
                this_entity
                for this_entity in entities_by_name.values()
                if this_entity.name not in edits.known
            ]
            for this_entity in new:
                edits.create(this_entity, {})
            return new

        return self._change("write", entities_by_name, plan)

    @verb
    def create_relations(self, relations: Sequence[GraphRelation]) -> list[GraphRelation]:
        """Store the relations that are new. Returns these.

        The entities at their ends need not exist.
        """
        unique_relations = {relation.triple: relation for relation in relations}.values()

        def plan(edits: GraphEdits) -> list[GraphRelation]:
            new = [new_relation for new_relation in unique_relations if not edits.has(new_relation)]
            edits.add_relations(new)
            return new

        return self._change(
            "edit", {new_relation.source for new_relation in unique_relations}, plan
        )

    @verb
    def add_observations(
        self, additions: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[str, list[str]]]:
        """Add to each named entity the observations that it lacks. Returns the added ones by
        entity.

        additions: pairs of an entity's name and texts: `[("Anna", ["likes tea"])]`.

        Raises NoEntity.
        """

        def plan(edits: GraphEdits) -> list[tuple[str, list[str]]]:
            """Add the texts that are new to each entity, and return them in the order of
            `additions`.
            """
            missing = [name for name, _ in additions if name not in edits.known]
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
        """Merge another graph into this one, as one change.

        Existing entities get the observations they lack. Entities of one name become one entity.

        entities: pairs of an entity and its further header keys. A key is added if the entity lacks
            it.
        """
        merged: dict[str, tuple[str, dict[str, None], dict[str, Any]]] = {}
        for item, new_keys in entities:
            _, texts, keys = merged.setdefault(item.name, (item.type, {}, {}))
            texts |= dict.fromkeys(item.observations)
            keys |= {key: value for key, value in new_keys.items() if key not in keys}
        new = {relation.triple: relation for relation in relations}.values()

        def plan(edits: GraphEdits) -> None:
            """Add to the graph what it lacks of the merged entities and relations."""
            for name, (kind, texts, keys) in merged.items():
                if name in edits.known:
                    present = set(edits.observations(name))
                    lacking = [text for text in texts if text not in present]
                    if lacking:
                        edits.add_observations(name, lacking)
                    edits.add_keys(name, keys)
                else:
                    edits.create(Entity(name, kind, tuple(texts)), keys)
            edits.add_relations([item for item in new if not edits.has(item)])

        self._change("import", {*merged, *(item.source for item in new)}, plan)

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove all entities with these names, and every relation at either end.

        Unknown names are ignored.
        """
        self._change("delete", names, lambda edits: edits.remove_entities(names))

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of these observations. Unknown ones are ignored.

        deletions: pairs of an entity's name and the texts to remove.
        """
        gone_deletions: dict[str, set[str]] = {}
        for name, texts in deletions:
            gone_deletions.setdefault(name, set()).update(texts)

        def plan(edits: GraphEdits) -> None:
            for name, texts in gone_deletions.items():
                if name in edits.known:
                    edits.drop_observations(name, texts)

        self._change("edit", gone_deletions, plan)

    @verb
    def delete_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove all copies of these relations. Unknown ones are ignored."""
        names = {relation.source for relation in relations}
        self._change("edit", names, lambda edits: edits.drop_relations(relations))


def graph_lines(graph: Graph) -> list[str]:
    """The graph at one moment as lines of JSON, entities first.

    A line: `{"type": "entity", "name": "Anna", …}`.
    """

    def read() -> list[str]:
        keys = graph.keys()
        rows = zip(keys, graph.observations(keys), graph.further(keys), strict=True)
        entities = [
            entity_line(Entity(key.name, key.type, tuple(texts)), other_keys)
            for key, texts, other_keys in rows
        ]
        return [*entities, *map(relation_line, graph.relations())]

    return graph.at_once(read)


class FileGraph(Graph):
    """The graph in a JSON Lines file.

    Every caller sees the whole file: graph files have no scopes. The caller is only recorded in the
    history.
    """

    def __init__(self, session: PlaceVerbs, source: GraphFileSource):
        super().__init__(session)
        self.source = source
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
        """The entities that hold all words of `text`, best first.

        The index ranks them if the file is a project of this process; entities that it does not
        find follow. Else the name and type of each entity decide.
        """
        self._fresh()
        words = text.lower().split()

        def weight(entity: EntityLine) -> int:
            """Return how well an entity fits: a word in the name counts 4, in the type 2, the whole
            name 1.
            """
            name = entity.name.lower()
            kind = entity.type.lower()
            return sum(4 * (word in name) + 2 * (word in kind) + (name == word) for word in words)

        holding = list(self.source.entities.values())
        for word in words:
            holding = [entity for entity in holding if word in entity.lowered]
        ranked_lines: dict[int, EntityLine] = {}
        if self.engine.sources.get(self.source.name) is self.source:
            hits = self.session.search(
                Query(text=text, projects=(self.source.name,)), limit=MAX_RANKED
            )
            entities = [self.source.entity(hit.note.path) for hit in hits]
            ranked_lines = {
                entity_line.number: entity_line
                for entity_line in entities
                if entity_line is not None
            }
        else:
            # The file is not a project of this process, so the index has nothing of it.
            holding.sort(key=lambda entity_line: (-weight(entity_line), entity_line.number))
        ranked_lines |= {
            entity_line.number: entity_line
            for entity_line in holding
            if words and entity_line.number not in ranked_lines
        }
        return [_key(entity_line) for entity_line in ranked_lines.values()]

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
        """The number of changes of the file; the error's message while it cannot be read."""
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
        """Return the result of `read`. The file is checked for changes once, before the call."""
        self._fresh()
        self._is_current = True
        try:
            return read()
        finally:
            self._is_current = False

    def _fresh(self) -> None:
        """Read the graph file again if it changed, and finish a change whose writer died."""
        if self._is_current:
            return
        self.source.fresh()
        if self.engine.ledger.has_line_change():
            self.engine.ledger.try_to_recover()
            self.source.fresh()

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        """Make the edits of `plan` in the file, after checking the new lines for secrets."""
        source = self.source
        results = list[T]()

        def edited() -> LineEdit:
            """Return the edit of the file's lines that `plan` makes. Raises SecretRefused."""
            edit = LineEdit(source, names, verb)
            results.append(plan(edit))
            edit.finish()
            text = b"".join([*edit.lines.values(), *edit.added]).decode("utf-8", "replace")
            replaced = [source.lines[number] for number in edit.lines]
            self.session.admitted(text, source.name, replaced, whole=True)
            return edit

        InPlaceChange(self.session, os.path.basename(source.root)).carry_out(source, edited)
        return results[-1]


def graph_file_of(session: PlaceVerbs, touched: Touched) -> GraphFileSource:
    """The graph file that a change of lines was about, opened if no project has it."""
    known_source = session.engine.sources.get(touched.project)
    if isinstance(known_source, GraphFileSource):
        return known_source
    return source_of(session, touched.file) or GraphFileSource(touched.project, touched.file)


def source_of(session: PlaceVerbs, file: str) -> GraphFileSource | None:
    """The source of the project that is the graph file at this absolute path.

    None if no project is this file.
    """
    sources = session.engine.sources.values()
    return next(
        (
            source
            for source in sources
            if isinstance(source, GraphFileSource) and source.root == file
        ),
        None,
    )


def _key(entity: EntityLine) -> EntityKey:
    """The key by which the verbs name an entity of the file."""
    return EntityKey((entity.order,), entity.name, entity.type, entity)
