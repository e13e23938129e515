"""The graph that a caller means, and how a call changes a graph of notes (contract 002).

It is the graph of project `graph`, of another project, of a file, or of all projects together.
"""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from memoranda.clock import microseconds, parse_stamp
from memoranda.engine.engine import verb
from memoranda.engine.graph import (
    MAX_RANKED,
    AmbiguousEntity,
    FileGraph,
    Graph,
    GraphEdits,
    NoEntity,
    T,
    source_of,
)
from memoranda.engine.places import PlaceVerbs
from memoranda.engine.transaction import Transaction
from memoranda.engine.writing import editable, read_unlocked
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.index.entity_queries import EntityRow, target_name
from memoranda.index.rows import Edge, NoteInfo
from memoranda.note.entity import (
    Entity,
    EntityKey,
    EntityText,
    GraphRelation,
    compose,
    file_stem,
    folded_name,
)
from memoranda.note.frontmatter import parse_typed, split
from memoranda.note.grammar import scan
from memoranda.note.model import GRAPH_PROJECT
from memoranda.note.model import Relation as Item
from memoranda.query import Query
from memoranda.sources.base import File
from memoranda.sources.graph_file import GraphFileSource

EVERY = "*"
# In the year 9987; no time after it could be written any more
_LATEST = 253_000_000_000_000_000
# Keys with a meaning here; an entity's further keys go below `fields`.
_OWN_KEYS = frozenset(("id", "title", "type", "created_at", "placeholder", "scope", "locked"))


class NoteGraph(Graph):
    """The notes of project `graph`, for one caller: entities of a foreign scope are not there."""

    project = GRAPH_PROJECT
    makes_sources = True
    """Whether a name with relations that is no entity gets a placeholder, where they live."""

    @verb
    def keys(self) -> list[EntityKey]:
        self.engine.fresh()
        return self._index.entities.all(self.session.agent)

    @verb
    def named(self, names: Iterable[str]) -> list[EntityKey]:
        self.engine.fresh()
        return [row.key for row in self.notes(names) if row.kind is not None]

    @verb
    def matching(self, text: str) -> list[EntityKey]:
        self.engine.fresh()
        return self._index.entities.matching(text.lower(), self.session.agent)

    @verb
    def ranked(self, text: str) -> list[EntityKey]:
        self.engine.fresh()
        hits = self.session.search(Query(text=text, projects=(self.project,)), limit=MAX_RANKED)
        entities = self._index.entities
        viewer = self.session.agent
        keys = {key.handle: key for key in entities.all(viewer)}
        ranked_keys = {hit.note.row: keys[hit.note.row] for hit in hits if hit.note.row in keys}
        words = text.lower().split()
        if words:
            holding = set.intersection(*(set(entities.matching(word, viewer)) for word in words))
            ranked_keys |= {
                key.handle: key
                for key in keys.values()
                if key in holding and key.handle not in ranked_keys
            }
        return list(ranked_keys.values())

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        observations_by_row = self._index.entities.observations([key.handle for key in keys])
        return [observations_by_row.get(key.handle, []) for key in keys]

    @verb
    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        # Keys below `fields` get their own names; numbers stay numbers.
        infos = self._index.notes.infos([key.handle for key in keys])
        all_fields = list[dict[str, Any]]()
        for key in keys:
            info = infos.get(key.handle)
            if info is not None:
                unknown_fields = _unknown_keys(info.header)
            else:
                unknown_fields = {}
            if info is not None and unknown_fields:
                # The index knows all plain values but true, false and null as texts.
                with suppress(ValueError, MemorandaError):
                    unknown_fields = _unknown_keys(
                        parse_typed(split(self.session.file(info).data.decode()).yaml or "")
                    )
            all_fields.append(unknown_fields)
        return all_fields

    @verb
    def lacking(self, keys: Sequence[tuple[EntityKey, dict[str, Any]]]) -> list[bool]:
        """Whether each of these entities lacks one of its unknown keys in the present header."""
        infos = self._index.notes.infos([key.handle for key, _ in keys])
        return [
            key.handle in infos
            and not _header_keys(other_keys).keys() <= infos[key.handle].header.keys()
            for key, other_keys in keys
        ]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        self.engine.fresh()
        entities = self._index.entities
        viewer = self.session.agent
        if names is None:
            return entities.relations(viewer)
        return entities.relations_at(names, viewer)

    @verb
    def version(self) -> Any:
        self.engine.fresh()
        return self._index.entities.version(self.session.agent)

    @verb
    def at_once(self, read: Callable[[], T]) -> T:
        self.engine.fresh()
        with self._index.snapshot():
            return read()

    def notes(self, names: Iterable[str]) -> list[EntityRow]:
        """The entities and placeholders of these names, in order."""
        return self._index.entities.named(names, self.session.agent)

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        with self.session.change(verb) as change:
            edits = NoteEdits(self, change, names)
            result = plan(edits)
            edits.add_steps()
        return result

    def target_of(self, item: Item, row: EntityRow) -> str:
        """The name a relation item of the note `row` leads to."""
        return target_name(item.target, item.project)

    def observed(self, text: EntityText) -> list[str]:
        """Read the text of an entity."""
        return text.observations


class NoteEdits:
    """The edits of one call in notes, as `LineEdit` of sources/graph_file.py does in lines; the home's lock
    is held.
    """

    def __init__(self, graph: NoteGraph, change: Transaction, names: Iterable[str]):
        self._graph = graph
        self._session = graph.session
        self._change = change
        self._index = graph.session.index
        self.known, self._rows = set[str](), dict[str, list[EntityRow]]()
        for row in graph.notes(names):
            self._rows.setdefault(row.name, []).append(row)
            if row.kind is not None:
                self.known.add(row.name)
        self._texts: dict[str, tuple[EntityRow, File, str, EntityText]] = {}
        self._triples: dict[str, set[tuple[str, str, str]]] = {}
        self._new: dict[str, dict[str, Any]] = {}
        self._removed: dict[str, tuple[EntityRow, File]] = {}
        self._last_created = 0

    def _row(self, name: str) -> EntityRow | None:
        """The one note of a name, an entity before a placeholder. None if no note has the name.

        Raises AmbiguousEntity.
        """
        rows = self._rows.get(name, [])
        entities = [row for row in rows if row.kind is not None]
        if len(entities) > 1:
            raise AmbiguousEntity(name, sorted(row.path for row in entities))
        return next(iter(entities or rows), None)

    def _info(self, row: EntityRow) -> NoteInfo:
        info = self._index.notes.get(self._graph.project, row.path)
        assert info is not None
        return info

    def _text(self, row: EntityRow) -> EntityText:
        """The note's text with what this call changed so far. Raises Locked, NotText."""
        if row.path not in self._texts:
            file, text = editable(self._session, self._info(row))
            self._texts[row.path] = (row, file, text, EntityText(text))
        return self._texts[row.path][3]

    @contextmanager
    def _changing(self, name: str, row: EntityRow | None = None) -> Iterator[EntityText]:
        """The text of the note of a name, or of `row`, to be changed inside. Raises InvalidInput
        when that cannot be done by lines."""
        row = row or self._row(name)
        assert row is not None
        try:
            yield self._text(row)
        except ValueError as error:
            why = f"The note {row.path} was not changed: {error}. Mend it in an editor or with edit_note."
            raise InvalidInput(why) from None

    def observations(self, name: str) -> list[str]:
        with self._changing(name) as text:
            return self._graph.observed(text)

    def has(self, relation: GraphRelation) -> bool:
        row = self._row(relation.source)
        if row is None:
            return False
        if row.path not in self._triples:
            items = self._text(row).relations
            self._triples[row.path] = {
                (row.name, self._graph.target_of(item, row), item.type) for item in items
            }
        return relation.triple in self._triples[row.path]

    def create(self, entity: Entity, other_keys: dict[str, Any]) -> None:
        if entity.name not in self._rows:
            self._add(
                entity.name,
                type=entity.type,
                observations=entity.observations,
                other_keys=other_keys and _header_keys(other_keys),
            )
            return
        # A placeholder becomes an entity; its relations stay
        with self._changing(entity.name) as text:
            text.make_entity(entity.type, self._created_at())
            present = set(text.observations)
            text.add_observations(
                [observation for observation in entity.observations if observation not in present]
            )
        self.add_keys(entity.name, other_keys)

    def _add(self, name: str, **parts: Any) -> None:
        """Add a new note made of these parts (see `compose`).

        Without a type it is a placeholder.
        """
        empty: dict[str, Any] = {
            "type": None,
            "observations": (),
            "relations": [],
            "other_keys": {},
        }
        self._new[name] = {"name": name, "created": self._created_at(), **empty, **parts}

    def add_observations(self, name: str, texts: Sequence[str]) -> None:
        with self._changing(name) as text:
            text.add_observations(texts)

    def drop_observations(self, name: str, texts: set[str]) -> None:
        with self._changing(name) as text:
            text.drop_observations(texts)

    def add_keys(self, name: str, other_keys: dict[str, Any]) -> None:
        keys = _header_keys(other_keys)
        with self._changing(name) as text:
            if keys and (lacking := {key: keys[key] for key in keys.keys() - text.keys}):
                text.set_keys(lacking)

    def add_relations(self, relations: Sequence[GraphRelation]) -> None:
        pairs: dict[str, list[tuple[str, str]]] = {}
        for relation in relations:
            pairs.setdefault(relation.source, []).append((relation.type, relation.target))
        for name, type_target_pairs in pairs.items():
            if name in self._new:
                self._new[name]["relations"] += type_target_pairs
            elif self._row(name) is not None:
                with self._changing(name) as text:
                    text.add_relations(type_target_pairs)
            elif self._graph.makes_sources:
                self._add(name, relations=type_target_pairs)
            else:
                raise NoEntity(name)

    def drop_relations(self, relations: Sequence[GraphRelation]) -> None:
        triples = {relation.triple for relation in relations}
        for name, rows in self._rows.items():
            self._row(name)
            for row in rows:
                self._drop(row, triples.__contains__)

    def _drop(self, row: EntityRow, is_dropped: Callable[[tuple[str, str, str]], bool]) -> None:
        """Take relations out of a note; a placeholder goes with its last one."""
        with self._changing(row.name, row) as text:
            text.drop_relations(
                lambda item: is_dropped((row.name, self._graph.target_of(item, row), item.type))
            )
        if row.kind is None and not text.relations:
            self._removed[row.path] = (row, read_unlocked(self._session, self._info(row)))

    def remove_entities(self, names: Sequence[str]) -> None:
        removed_names = set(names)
        paths = set()
        for name, rows in self._rows.items():
            self._row(name)
            for row in rows:
                self._removed[row.path] = (row, read_unlocked(self._session, self._info(row)))
                paths.add(row.path)
        touching = self._index.entities.relations_at(removed_names, self._session.agent)
        linking = [
            relation
            for relation in touching
            if relation.target in removed_names and relation.order[1] not in paths
        ]
        source_names = {relation.source for relation in linking}
        sources = {row.path: row for row in self._graph.notes(source_names)}
        for path in dict.fromkeys(relation.order[1] for relation in linking):
            self._drop(sources[path], lambda triple: triple[1] in removed_names)

    def add_steps(self) -> None:
        """Add the steps to the change: texts that differ, new notes, removals."""
        project = self._graph.project
        change = self._change
        stems = set[str]()
        for row, file, before, text in self._texts.values():
            if text.text != before and row.path not in self._removed:
                change.put(project, row.path, text.text.encode(), old=file, scope=row.scope)
        root = self._session.engine.source(project).root
        holds_file = self._index.entities.holds_file

        def is_taken(stem: str) -> bool:
            is_new = folded_name(stem) in stems
            return (
                is_new
                or os.path.lexists(os.path.join(root, f"{stem}.md"))
                or holds_file(project, stem)
            )

        for name, new in self._new.items():
            stem = file_stem(name, is_taken)
            stems.add(folded_name(stem))
            change.put(project, f"{stem}.md", compose(str(uuid.uuid4()), **new).encode())
        for row, file in self._removed.values():
            change.remove(project, row.path, file, scope=row.scope)

    def _created_at(self) -> int:
        """The next `created_at`, later than any other in the graph (5.1)."""
        last = self._last_created or min(self._index.entities.last_created(), _LATEST)
        self._last_created = max(microseconds(self._session.clock()), last + 1)
        return self._last_created


def _header_keys(other_keys: dict[str, Any]) -> dict[str, Any]:
    """Unknown keys of an entity as keys of its header; one that means something here stands below
    `fields`.
    """
    meaning = {key: value for key, value in other_keys.items() if key in _OWN_KEYS}
    return {key: value for key, value in other_keys.items() if key not in meaning} | (
        {"fields": meaning} if meaning else {}
    )


def _unknown_keys(header: dict[str, Any]) -> dict[str, Any]:
    """The reverse of `_header_keys`: the unknown keys of an entity, read from its header."""
    nested_fields = header.get("fields")
    other_keys = {
        key: value for key, value in header.items() if key not in _OWN_KEYS and key != "fields"
    }
    return other_keys | (nested_fields if isinstance(nested_fields, dict) else {})


class ProjectGraph(NoteGraph):
    """The notes of a project as entities: title, type, and what the note grammar finds in them,
    ordered by when they were written."""

    makes_sources = False

    def __init__(self, session: PlaceVerbs, project: str):
        super().__init__(session)
        self.project = project

    @verb
    def keys(self) -> list[EntityKey]:
        infos, _ = self.session.list(Query(projects=(self.project,), order="path"), limit=0)
        return sorted((_row(info).key for info in infos), key=lambda key: key.order)

    @verb
    def matching(self, text: str) -> list[EntityKey]:
        lowered = text.lower()
        keys = self.keys()
        matching: list[EntityKey] = []
        for key, texts in zip(keys, self.observations(keys), strict=True):
            if any(lowered in part.lower() for part in (key.name, key.type, *texts)):
                matching.append(key)
        return matching

    @verb
    def ranked(self, text: str) -> list[EntityKey]:
        hits = self.session.search(Query(text=text, projects=(self.project,)), limit=MAX_RANKED)
        return [_row(hit.note).key for hit in hits]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        return [
            self.observed(EntityText("".join(self._index.notes.text_of(key.handle))))
            for key in keys
        ]

    def observed(self, text: EntityText) -> list[str]:
        """Observations of the note grammar, and items under `Observations`, each once, in the order
        of the text.
        """
        observed_lines = {
            observation.line: observation.text for observation in scan(text.text, text.body_at)[0]
        } | text.observed_lines()
        return [observed_lines[line] for line in sorted(observed_lines)]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        self.engine.fresh()
        notes = self._index.notes
        relations: set[GraphRelation] = set()
        if names is None:
            for info in notes.in_order([key.handle for key in self.keys()]):
                relations.update(self._leaving(info))
        else:
            for info in notes.in_order([row.note for row in self.notes(names)]):
                relations.update(self._leaving(info))
                relations.update(self._arriving(info))
            # Notes that link to one of the names, whether a note has it or not.
            rows = self._index.entities.linking(self.project, names, self.session.agent)
            for info in notes.in_order(rows):
                relations.update(
                    relation for relation in self._leaving(info) if relation.target in names
                )
        return sorted(relations, key=lambda relation: (relation.order, relation.triple))

    def _arriving(self, info: NoteInfo) -> list[GraphRelation]:
        edges = self._index.links.incoming(info, self.session.agent)
        return [
            _relation(edge.note, edge, info.title)
            for edge in edges
            if edge.note is not None and edge.note.project == self.project
        ]

    def _leaving(self, info: NoteInfo) -> list[GraphRelation]:
        edges = self._index.links.outgoing(info, self.session.agent)
        return [_relation(info, edge, self._name_of(edge.note, edge.target)) for edge in edges]

    def _name_of(self, note: NoteInfo | None, target: str) -> str:
        if note is not None and note.project == self.project:
            return note.title
        return target

    def notes(self, names: Iterable[str]) -> list[EntityRow]:
        rows = self._index.entities.titled(self.project, names, self.session.agent)
        return sorted(
            (_row(info) for info in self._index.notes.in_order(rows)), key=lambda row: row[1:3]
        )

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        raise InvalidInput(f'Entities of project "{self.project}" are notes; use delete_note')

    @verb
    def version(self) -> Any:
        self.engine.fresh()
        return self._index.version()

    def target_of(self, item: Item, row: EntityRow) -> str:
        note = self._index.links.resolve(
            item.target,
            project=self.project,
            folder=posixpath.dirname(row.path),
            viewer=self.session.agent,
            target_project=item.project,
        )
        return self._name_of(note, item.target)


class EveryGraph(Graph):
    """All projects the caller may see; each entity tells its project. Read-only."""

    def __init__(self, session: PlaceVerbs, graphs: dict[str, Graph]):
        super().__init__(session)
        self._graphs = graphs

    def keys(self) -> list[EntityKey]:
        return self._each(lambda graph: graph.keys())

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        wanted_names = list(names)
        return self._each(lambda graph: graph.named(wanted_names))

    def matching(self, text: str) -> list[EntityKey]:
        return self._each(lambda graph: graph.matching(text))

    def ranked(self, text: str) -> list[EntityKey]:
        """The best of each project in turn."""
        ranked_keys: list[list[EntityKey]] = []
        for name, graph in self._graphs.items():
            ranked_keys.append([_of(name, key) for key in graph.ranked(text)])
        in_turn = chain.from_iterable(zip_longest(*ranked_keys))
        return [key for key in in_turn if key is not None]

    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        return [self._graphs[key.project or ""].observations([key])[0] for key in keys]

    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        return [self._graphs[key.project or ""].further([key])[0] for key in keys]

    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        relations: list[GraphRelation] = []
        for graph in self._graphs.values():
            relations += graph.relations(names)
        return sorted(relations, key=lambda relation: relation.order)

    def version(self) -> Any:
        return [graph.version() for graph in self._graphs.values()]

    def warnings(self) -> list[str]:
        return list(chain.from_iterable(graph.warnings() for graph in self._graphs.values()))

    def at_once(self, read: Callable[[], T]) -> T:
        for graph in self._graphs.values():
            read = partial(graph.at_once, read)
        return read()

    def _each(self, read: Callable[[Graph], list[EntityKey]]) -> list[EntityKey]:
        entity_keys: list[EntityKey] = []
        for name, graph in self._graphs.items():
            entity_keys += [_of(name, key) for key in read(graph)]
        return sorted(entity_keys, key=lambda key: key.order)

    def _change(self, *_: Any) -> Any:
        raise InvalidInput("Name one project to write to")


def _of(project: str, key: EntityKey) -> EntityKey:
    return key._replace(project=project, order=(*key.order, project))


def open_graph(session: PlaceVerbs, project: str) -> Graph:
    """The graph of `project`: its own of project `graph`, of a graph file, the notes of any other,
    of all with `*`. Raises ProjectNotFound."""
    if project == EVERY:
        return _every(session)
    source = session.engine.source(project)
    if isinstance(source, GraphFileSource):
        return FileGraph(session, source)
    if source.name == GRAPH_PROJECT:
        return NoteGraph(session)
    return ProjectGraph(session, source.name)


def graph_project(name: str, file: Path) -> os.PathLike[str]:
    """The graph file as a project `name` for `open_memory`, whatever the file is called and whether
    it is there.
    """
    return GraphFileSource(name, file, optional=True)


def opener(file: Path) -> Callable[[PlaceVerbs, str], Graph]:
    """A function (session, project) -> graph, for a home whose project `graph` is kept in `file`."""
    source_of_file = GraphFileSource(file.stem, file)

    def open_here(session: PlaceVerbs, project: str) -> Graph:
        own_graph = FileGraph(session, source_of(session, source_of_file.root) or source_of_file)
        if project.lower() == GRAPH_PROJECT:
            return own_graph
        if project == EVERY:
            return _every(session, own_graph)
        return open_graph(session, project)

    return open_here


def graph_in(session: PlaceVerbs, file: Path | None) -> NoteGraph | FileGraph:
    """The graph kept in `file`, or, without one, in the notes of project `graph`."""
    if file is None:
        return NoteGraph(session)
    return FileGraph(session, GraphFileSource(file.stem, file))


def _every(session: PlaceVerbs, own_graph: FileGraph | None = None) -> Graph:
    """All projects together as one graph.

    own_graph: the file kept in place of the notes of project `graph`. These notes are not shown
        then.
    """
    graphs = {name: open_graph(session, name) for name in session.engine.sources}
    if own_graph is not None:
        del graphs[GRAPH_PROJECT]
        if own_graph.source not in session.engine.sources.values():
            graphs = {GRAPH_PROJECT: own_graph, **graphs}
    return EveryGraph(session, graphs)


def _row(info: NoteInfo) -> EntityRow:
    created = microseconds(parse_stamp(info.created))
    return EntityRow(info.row, created, info.path, info.scope, info.title, info.type)


def _relation(source: NoteInfo, edge: Edge, target: str) -> GraphRelation:
    order = (microseconds(parse_stamp(source.created)), source.path, edge.line)
    return GraphRelation(source.title, target, edge.type, order)
