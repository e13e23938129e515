"""Graphs of entities whose entities are notes (contract 002), and the choice of a graph.

`open_graph` returns the graph of a project. There are four kinds: the notes of project `graph`
(`NoteGraph`), a graph file (`FileGraph` of graph.py), the notes of any other project
(`ProjectGraph`), and all graphs together (`EveryGraph`). `NoteEdits` collects the edits that one
call makes in the notes of a graph.
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
from typing import Any, NamedTuple

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
from memoranda.errors import Advice, InvalidInput, MemorandaError
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
"""The name that means the graphs of all projects together."""
# Microseconds since 1970, in the year 9987. A time after the year 9999 could not be written.
_LATEST = 253_000_000_000_000_000
# Header keys that memoranda uses itself. If a graph file has another key with such a name, the
# header of the note has this key below `fields`.
_OWN_KEYS = frozenset(("id", "title", "type", "created_at", "placeholder", "scope", "locked"))
# The ends of errors about notes that the graph cannot change.
_FIX = Advice(" Fix it in an editor or with edit_note.", ("edit_note",), " Fix it in an editor.")
_DELETE_NOTES = Advice("; use delete_note", ("delete_note",), " and are not deleted here")


class NoteGraph(Graph):
    """The graph of project `graph`, as one caller sees it. Other entities do not exist for the
    caller.

    A placeholder is a note for a name that has relations but is not an entity.
    """

    project = GRAPH_PROJECT
    makes_sources = True
    """Whether a relation from an unknown name creates a placeholder note with the relation."""

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
        """Return the entities that a search finds, the best first.

        Then follow the entities in which every word of `text` occurs, if only as a part of a word.
        """
        self.engine.fresh()
        all_keys = self._index.entities.all(self.session.agent)
        keys_by_row = {key.handle: key for key in all_keys}
        hits = self.session.search(Query(text=text, projects=(self.project,)), limit=MAX_RANKED)
        # The entities in their order, by row.
        ranked_keys: dict[int, EntityKey] = {}
        for hit in hits:
            key = keys_by_row.get(hit.note.row)
            # The note of a placeholder is not an entity.
            if key is not None:
                ranked_keys[key.handle] = key
        # The search finds only whole words.
        for key in self._with_all_words(all_keys, text.lower().split()):
            ranked_keys.setdefault(key.handle, key)
        return list(ranked_keys.values())

    def _with_all_words(
        self, keys: Iterable[EntityKey], words: Sequence[str]
    ) -> Iterator[EntityKey]:
        """Yield the entities that contain every word. A part of a longer word is enough.

        Without words, nothing is yielded.
        """
        if not words:
            return
        entities = self._index.entities
        matches_by_word = [set(entities.matching(word, self.session.agent)) for word in words]
        for key in keys:
            if all(key in matches for matches in matches_by_word):
                yield key

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        observations_by_row = self._index.entities.observations([key.handle for key in keys])
        return [observations_by_row.get(key.handle, []) for key in keys]

    @verb
    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """Return the header keys of each entity that memoranda does not use itself, with their
        values.
        """
        infos = self._index.notes.infos([key.handle for key in keys])
        return [self._unknown_keys_of(infos.get(key.handle)) for key in keys]

    def _unknown_keys_of(self, info: NoteInfo | None) -> dict[str, Any]:
        """Return the header keys of one note that memoranda does not use itself, with their values.

        Values have their types, so that 3 is a number. The result is empty for None, which means
        that the note is gone.
        """
        if info is None:
            return {}
        unknown_keys = _unknown_keys(info.header)
        if unknown_keys:
            # The index has the number 3 as the text "3". The types are only in the file. If it
            # cannot be read, the values of the index are better than nothing.
            with suppress(ValueError, MemorandaError):
                header_text = split(self.session.file(info).data.decode()).yaml or ""
                return _unknown_keys(parse_typed(header_text))
        return unknown_keys

    @verb
    def lacking(self, keys: Sequence[tuple[EntityKey, dict[str, Any]]]) -> list[bool]:
        """Say for each entity whether its header lacks any of the given keys.

        keys: pairs of an entity and its keys that memoranda does not use itself. For an entity that
            is gone, the answer is False.
        """
        infos = self._index.notes.infos([key.handle for key, _ in keys])
        answers: list[bool] = []
        for key, other_keys in keys:
            info = infos.get(key.handle)
            if info is None:
                answers.append(False)
            else:
                missing_keys = _header_keys(other_keys).keys() - info.header.keys()
                answers.append(bool(missing_keys))
        return answers

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
        """Return the notes with these names in order. They are entities or placeholders."""
        return self._index.entities.named(names, self.session.agent)

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        """Carry out `plan` as one change, and return the result of `plan`.

        verb: the verb in the ledger.
        names: the names of all entities that `plan` may touch.
        plan: makes its edits with the `GraphEdits` that it is called with.
        """
        with self.session.change(verb) as transaction:
            edits = NoteEdits(self, transaction, names)
            result = plan(edits)
            edits.add_steps()
        return result

    def target_of(self, item: Item, row: EntityRow) -> str:
        """Return the name of the entity that a relation in the note `row` leads to."""
        return target_name(item.target, item.project)

    def observed(self, text: EntityText) -> list[str]:
        """Return the observations in the text of an entity."""
        return text.observations


class _EditedNote(NamedTuple):
    """A note that one call edits.

    row: the note in the index.
    file: the file before the edits.
    old_text: the text before the edits.
    text: the text with the edits so far.
    """

    row: EntityRow
    file: File
    old_text: str
    text: EntityText


class NoteEdits:
    """The edits that one call makes in the notes of a graph.

    The edits are only collected here. `add_steps` adds them to the change, which then writes them.
    `LineEdit` of sources/graph_file.py does the same for the lines of a graph file. The caller must
    hold the home's lock.

    graph: the graph whose notes are edited.
    transaction: the change that `add_steps` adds the edits to.
    names: the names of the entities that the call is about. Their notes are looked up at once.
    present_names: the names among `names` that an entity has. The other names have only a
        placeholder (a name that relations lead to), or no note.
    """

    def __init__(self, graph: NoteGraph, transaction: Transaction, names: Iterable[str]):
        self._graph = graph
        self._session = graph.session
        self._transaction = transaction
        self._index = graph.session.index
        self.present_names: set[str] = set()
        # The notes of each name. They are several if two files have the same title.
        self._rows: dict[str, list[EntityRow]] = {}
        for row in graph.notes(names):
            self._rows.setdefault(row.name, []).append(row)
            if row.kind is not None:
                self.present_names.add(row.name)
        # The edited notes, by path.
        self._edited: dict[str, _EditedNote] = {}
        # The (source, target, type) of the relations in each note, by the path of the note.
        self._triples: dict[str, set[tuple[str, str, str]]] = {}
        # The arguments of `compose` for each new note, by the name of the entity.
        self._new: dict[str, dict[str, Any]] = {}
        # The notes to remove, by path.
        self._removed: dict[str, tuple[EntityRow, File]] = {}
        # The `created_at` of the latest new note in microseconds; 0 if no note was created yet.
        self._last_created = 0

    def _row(self, name: str) -> EntityRow | None:
        """Return the note with a name. None if no note has the name.

        If an entity and a placeholder have the name, the entity is returned. Raises AmbiguousEntity
        if two entities have the name.
        """
        rows = self._rows.get(name, [])
        entities = [row for row in rows if row.kind is not None]
        if len(entities) > 1:
            raise AmbiguousEntity(name, sorted(row.path for row in entities))
        if entities:
            return entities[0]
        return rows[0] if rows else None

    def _info(self, row: EntityRow) -> NoteInfo:
        """Return the `NoteInfo` of a note from the index."""
        info = self._index.notes.get(self._graph.project, row.path)
        assert info is not None
        return info

    def _text(self, row: EntityRow) -> EntityText:
        """Return the text of a note with the edits of this call so far. Raises Locked, NotText."""
        if row.path not in self._edited:
            file, text = editable(self._session, self._info(row))
            self._edited[row.path] = _EditedNote(row, file, text, EntityText(text))
        return self._edited[row.path].text

    @contextmanager
    def _changing(self, name: str, row: EntityRow | None = None) -> Iterator[EntityText]:
        """Edit the text of an entity's note in a `with` block.

        row: the note. It is only needed if several notes may have the name.

        Raises InvalidInput if the text cannot be edited line by line.
        """
        row = row or self._row(name)
        assert row is not None
        try:
            yield self._text(row)
        except ValueError as error:
            why = f"The note {row.path} was not changed: {error}."
            raise InvalidInput(why, advice=_FIX) from None

    def observations(self, name: str) -> list[str]:
        """Return the observations of an entity, with the edits of this call so far."""
        with self._changing(name) as text:
            return self._graph.observed(text)

    def has(self, relation: GraphRelation) -> bool:
        """Whether the note of the relation's source contains the relation."""
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
        """Create the note of an entity. If a placeholder has the name, the placeholder becomes the
        entity.

        other_keys: keys of the entity that memoranda does not use itself, for the header.
        """
        if entity.name not in self._rows:
            self._add(
                entity.name,
                type=entity.type,
                observations=entity.observations,
                other_keys=_header_keys(other_keys),
            )
            return
        # The placeholder keeps its relations when it becomes an entity.
        with self._changing(entity.name) as text:
            text.make_entity(entity.type, self._created_at())
            present = set(text.observations)
            new_observations = [item for item in entity.observations if item not in present]
            text.add_observations(new_observations)
        self.add_keys(entity.name, other_keys)

    def _add(self, name: str, **parts: Any) -> None:
        """Add a new note with this name.

        parts: any of `type`, `observations`, `relations` (pairs of a type and a target) and
            `other_keys` (further header keys). A note without a type is a placeholder.
        """
        default_parts: dict[str, Any] = {
            "type": None,
            "observations": (),
            "relations": [],
            "other_keys": {},
        }
        self._new[name] = {"name": name, "created": self._created_at(), **default_parts, **parts}

    def add_observations(self, name: str, texts: Sequence[str]) -> None:
        with self._changing(name) as text:
            text.add_observations(texts)

    def drop_observations(self, name: str, texts: set[str]) -> None:
        with self._changing(name) as text:
            text.drop_observations(texts)

    def add_keys(self, name: str, other_keys: dict[str, Any]) -> None:
        """Add keys to an entity that memoranda does not use itself.

        Keys that the entity has already keep their values.

        name: the name of the entity.
        other_keys: the keys with their values.
        """
        keys = _header_keys(other_keys)
        with self._changing(name) as text:
            missing_keys = {key: keys[key] for key in keys.keys() - text.keys}
            if missing_keys:
                text.set_keys(missing_keys)

    def add_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Add relations to the notes of their sources.

        If a source has no note, it gets a placeholder. Raises NoEntity if this graph makes no
        placeholders.
        """
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
        """Remove relations from the notes that this call may change.

        Raises AmbiguousEntity if two entities have the name of such a note.
        """
        dropped_triples = {relation.triple for relation in relations}

        def is_dropped(triple: tuple[str, str, str]) -> bool:
            """Whether a relation (source, target, type) is one of those to remove."""
            return triple in dropped_triples

        for name, rows in self._rows.items():
            self._check_one_entity(name)
            for row in rows:
                self._drop(row, is_dropped)

    def _check_one_entity(self, name: str) -> None:
        """Raise AmbiguousEntity if two entities have this name."""
        # Only the error of `_row` matters here, not its result.
        self._row(name)

    def _drop(self, row: EntityRow, is_dropped: Callable[[tuple[str, str, str]], bool]) -> None:
        """Remove relations from a note. If a placeholder then has no relations, the placeholder is
        removed.

        is_dropped: says whether to remove the relation (source, target, type).
        """

        def is_dropped_item(item: Item) -> bool:
            """Whether to remove the relation in a line of the note."""
            target = self._graph.target_of(item, row)
            return is_dropped((row.name, target, item.type))

        with self._changing(row.name, row) as text:
            text.drop_relations(is_dropped_item)
        if row.kind is None and not text.relations:
            self._removed[row.path] = (row, read_unlocked(self._session, self._info(row)))

    def remove_entities(self, names: Sequence[str]) -> None:
        """Remove entities, and the relations to them in the notes of other entities.

        Raises AmbiguousEntity, Locked.
        """
        removed_names = set(names)
        removed_paths: set[str] = set()
        for name, rows in self._rows.items():
            self._check_one_entity(name)
            for row in rows:
                self._removed[row.path] = (row, read_unlocked(self._session, self._info(row)))
                removed_paths.add(row.path)

        # Now the relations to the removed entities, which are in the notes of other entities. By the
        # path of each such note, the name of its entity.
        linking_notes: dict[str, str] = {}
        for relation in self._index.entities.relations_at(removed_names, self._session.agent):
            # The order of a relation is (time of creation, path, line) of its note.
            _, path, _ = relation.order
            if relation.target in removed_names and path not in removed_paths:
                linking_notes.setdefault(path, relation.source)

        def leads_to_removed(triple: tuple[str, str, str]) -> bool:
            """Whether a relation (source, target, type) leads to a removed entity."""
            _, target, _ = triple
            return target in removed_names

        rows_by_path = {row.path: row for row in self._graph.notes({*linking_notes.values()})}
        for path in linking_notes:
            self._drop(rows_by_path[path], leads_to_removed)

    def add_steps(self) -> None:
        """Add a step to the change for each changed text, each new note and each removed note."""
        project = self._graph.project
        transaction = self._transaction
        for note in self._edited.values():
            new_text = note.text.text
            if new_text != note.old_text and note.row.path not in self._removed:
                data = new_text.encode()
                transaction.put(project, note.row.path, data, old=note.file, scope=note.row.scope)
        self._add_new_notes()
        for row, file in self._removed.values():
            transaction.remove(project, row.path, file, scope=row.scope)

    def _add_new_notes(self) -> None:
        """Add a step for each new note. The name of its file is made from the name of the entity."""
        project = self._graph.project
        # The file names that this call has used, in lower case and without `.md`.
        used_stems: set[str] = set()
        root = self._session.engine.source(project).root
        holds_file = self._index.entities.holds_file

        def is_taken(stem: str) -> bool:
            """Whether another note has the file `{stem}.md`, on disk, in the index or in this call."""
            return (
                folded_name(stem) in used_stems
                or os.path.lexists(os.path.join(root, f"{stem}.md"))
                or holds_file(project, stem)
            )

        for name, parts in self._new.items():
            stem = file_stem(name, is_taken)
            used_stems.add(folded_name(stem))
            text = compose(str(uuid.uuid4()), **parts)
            self._transaction.put(project, f"{stem}.md", text.encode())

    def _created_at(self) -> int:
        """Return a time for `created_at` in microseconds that is later than any other in the graph
        (5.1).

        Entities are listed in the order of these times, so two must not be equal.
        """
        last_created = self._last_created
        # For the first new note of this call, the latest note of the graph counts.
        if not last_created:
            last_created = min(self._index.entities.last_created(), _LATEST)
        self._last_created = max(microseconds(self._session.clock()), last_created + 1)
        return self._last_created


def _header_keys(other_keys: dict[str, Any]) -> dict[str, Any]:
    """Turn keys that memoranda does not use itself into keys of a header.

    A key with the name of a key that memoranda uses goes below `fields`: `{"url": 1, "title": 2}`
    becomes `{"url": 1, "fields": {"title": 2}}`.
    """
    nested_fields = {key: value for key, value in other_keys.items() if key in _OWN_KEYS}
    header_keys = {key: value for key, value in other_keys.items() if key not in nested_fields}
    if nested_fields:
        header_keys["fields"] = nested_fields
    return header_keys


def _unknown_keys(header: dict[str, Any]) -> dict[str, Any]:
    """Return the keys in a header that memoranda does not use itself.

    This reverses `_header_keys`: `{"url": 1, "fields": {"title": 2}}` becomes `{"url": 1, "title":
    2}`.
    """
    other_keys = {
        key: value for key, value in header.items() if key not in _OWN_KEYS and key != "fields"
    }
    nested_fields = header.get("fields")
    if isinstance(nested_fields, dict):
        return other_keys | nested_fields
    return other_keys


class ProjectGraph(NoteGraph):
    """A project of ordinary notes as a graph: each note is an entity with its title and type.

    Lines such as `- [idea] text` are observations, and lines such as `- uses [[Other]]` are
    relations. Entities are sorted by the time of their creation.
    """

    # A relation must not create a note in a project of ordinary notes.
    makes_sources = False

    def __init__(self, session: PlaceVerbs, project: str):
        super().__init__(session)
        self.project = project

    @verb
    def keys(self) -> list[EntityKey]:
        infos, _ = self.session.list(Query(projects=(self.project,), order="path"), limit=0)
        keys = [_entity_row(info).key for info in infos]
        return sorted(keys, key=lambda key: key.order)

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
        return [_entity_row(hit.note).key for hit in hits]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        observations: list[list[str]] = []
        for key in keys:
            text = "".join(self._index.notes.text_of(key.handle))
            observations.append(self.observed(EntityText(text)))
        return observations

    def observed(self, text: EntityText) -> list[str]:
        """Return the observations of a note in the order of its text.

        They are the lines that the note grammar reads as observations, and all list items under the
        heading `Observations`.
        """
        observations, *_ = scan(text.text, text.body_at)
        texts_by_line = {observation.line: observation.text for observation in observations}
        texts_by_line |= text.observed_lines()
        return [texts_by_line[line] for line in sorted(texts_by_line)]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """Return the relations from or to the notes with these names; None means all relations.

        The result is sorted by the order in which the relations were stored.
        """
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
            # Notes may link to a name that no note has. Such a name has only these relations.
            rows = self._index.entities.linking(self.project, names, self.session.agent)
            for info in notes.in_order(rows):
                relations.update(
                    relation for relation in self._leaving(info) if relation.target in names
                )
        return sorted(relations, key=lambda relation: (relation.order, relation.triple))

    def _arriving(self, info: NoteInfo) -> list[GraphRelation]:
        """Return the relations that lead to this note from other notes of the project."""
        edges = self._index.links.incoming(info, self.session.agent)
        return [
            _relation(edge.note, edge, info.title)
            for edge in edges
            if edge.note is not None and edge.note.project == self.project
        ]

    def _leaving(self, info: NoteInfo) -> list[GraphRelation]:
        """Return the relations that are written in this note."""
        edges = self._index.links.outgoing(info, self.session.agent)
        return [_relation(info, edge, self._name_of(edge.note, edge.target)) for edge in edges]

    def _name_of(self, note: NoteInfo | None, target: str) -> str:
        """Return the name of the entity that a link leads to.

        note: the note that the link leads to, or None if there is no such note.
        target: the text of the link. It is the name if the note is missing or in another project.
        """
        if note is not None and note.project == self.project:
            return note.title
        return target

    def notes(self, names: Iterable[str]) -> list[EntityRow]:
        rows = self._index.entities.titled(self.project, names, self.session.agent)
        entity_rows = [_entity_row(info) for info in self._index.notes.in_order(rows)]
        return sorted(entity_rows, key=lambda row: (row.created, row.path))

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        raise InvalidInput(f'Entities of project "{self.project}" are notes', advice=_DELETE_NOTES)

    @verb
    def version(self) -> Any:
        self.engine.fresh()
        return self._index.version()

    def target_of(self, item: Item, row: EntityRow) -> str:
        """Return the name of the entity that a relation leads to.

        item: the line of the note that has the relation.
        row: the note with this line.
        """
        note = self._index.links.resolve(
            item.target,
            project=self.project,
            folder=posixpath.dirname(row.path),
            viewer=self.session.agent,
            target_project=item.project,
        )
        return self._name_of(note, item.target)


class EveryGraph(Graph):
    """All graphs that the caller may see, joined to one graph for reading only.

    The key of an entity has the name of its project.
    """

    project = EVERY

    def __init__(self, session: PlaceVerbs, graphs: dict[str, Graph]):
        super().__init__(session)
        self._graphs = graphs

    def keys(self) -> list[EntityKey]:
        return self._keys_of_all(lambda graph: graph.keys())

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        # `names` may be an iterator, which only the first graph could read.
        all_names = list(names)
        return self._keys_of_all(lambda graph: graph.named(all_names))

    def matching(self, text: str) -> list[EntityKey]:
        return self._keys_of_all(lambda graph: graph.matching(text))

    def ranked(self, text: str) -> list[EntityKey]:
        """Return the best entity of each project, then the second of each project, and so on."""
        rankings: list[list[EntityKey]] = []
        for name, graph in self._graphs.items():
            rankings.append([_with_project(key, name) for key in graph.ranked(text)])
        interleaved_keys = chain.from_iterable(zip_longest(*rankings))
        return [key for key in interleaved_keys if key is not None]

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
        warnings: list[str] = []
        for graph in self._graphs.values():
            warnings += graph.warnings()
        return warnings

    def at_once(self, read: Callable[[], T]) -> T:
        # Wrap `read` in the `at_once` of each graph, so that none changes while it runs.
        for graph in self._graphs.values():
            read = partial(graph.at_once, read)
        return read()

    def _keys_of_all(self, read: Callable[[Graph], list[EntityKey]]) -> list[EntityKey]:
        """Return the keys of all graphs in order.

        read: returns the keys of one graph.
        """
        entity_keys: list[EntityKey] = []
        for name, graph in self._graphs.items():
            entity_keys += [_with_project(key, name) for key in read(graph)]
        return sorted(entity_keys, key=lambda key: key.order)

    def _change(self, *_: Any) -> Any:
        raise InvalidInput("Name one project to write to")


def _with_project(key: EntityKey, project: str) -> EntityKey:
    """Add the name of its project to the key of an entity, and to the end of the key's order."""
    return key._replace(project=project, order=(*key.order, project))


def open_graph(session: PlaceVerbs, project: str) -> Graph:
    """Return the graph of a project, which may be a graph file.

    project: the name of the project; `*` means all projects together.

    Raises ProjectNotFound.
    """
    if project == EVERY:
        return _every(session)
    source = session.engine.source(project)
    if isinstance(source, GraphFileSource):
        return FileGraph(session, source)
    if source.name == GRAPH_PROJECT:
        return NoteGraph(session)
    return ProjectGraph(session, source.name)


def graph_project(name: str, file: Path) -> os.PathLike[str]:
    """Describe a graph file as a project for `open_memory`.

    name: the name of the project. It does not depend on the name of the file.
    file: the graph file. It need not exist yet.
    """
    return GraphFileSource(name, file, optional=True)


def opener(file: Path) -> Callable[[PlaceVerbs, str], Graph]:
    """Return a function like `open_graph` for a home whose project `graph` is a graph file.

    file: the graph file that takes the place of the notes of project `graph`.
    """
    source_of_file = GraphFileSource(file.stem, file)

    def open_here(session: PlaceVerbs, project: str) -> Graph:
        """Return the graph of a project, as `open_graph` does. For project `graph`, it is the graph
        file.
        """
        own_graph = FileGraph(session, source_of(session, source_of_file.root) or source_of_file)
        if project.lower() == GRAPH_PROJECT:
            return own_graph
        if project == EVERY:
            return _every(session, own_graph)
        return open_graph(session, project)

    return open_here


def graph_in(session: PlaceVerbs, file: Path | None) -> NoteGraph | FileGraph:
    """Return the graph in a graph file.

    file: the graph file; None means the notes of project `graph`.
    """
    if file is None:
        return NoteGraph(session)
    return FileGraph(session, GraphFileSource(file.stem, file))


def _every(session: PlaceVerbs, own_graph: FileGraph | None = None) -> Graph:
    """Return the graph of all projects together.

    own_graph: the graph file that is used in place of the notes of project `graph`. These notes are
        then left out. None if the notes are used.
    """
    graphs = {name: open_graph(session, name) for name in session.engine.sources}
    if own_graph is not None:
        del graphs[GRAPH_PROJECT]
        if own_graph.source not in session.engine.sources.values():
            graphs = {GRAPH_PROJECT: own_graph, **graphs}
    return EveryGraph(session, graphs)


def _entity_row(info: NoteInfo) -> EntityRow:
    """Convert a note to an `EntityRow`, which is how the index lists entities."""
    created = microseconds(parse_stamp(info.created))
    return EntityRow(
        note=info.row,
        created=created,
        path=info.path,
        scope=info.scope,
        name=info.title,
        kind=info.type,
    )


def _relation(source: NoteInfo, edge: Edge, target: str) -> GraphRelation:
    """Return a link as a relation of a graph.

    source: the note with the link.
    edge: the link.
    target: the name of the entity to which the link leads.
    """
    order = (microseconds(parse_stamp(source.created)), source.path, edge.line)
    return GraphRelation(source.title, target, edge.type, order)
