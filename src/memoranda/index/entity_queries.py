"""Queries for the notes of project `graph` as entities and relations (contract 002).

Entities have exact names and an order: by the time of creation, then by path. A *placeholder* is an
entity that only occurs in relations. It has no kind.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple, TypeVar

from memoranda.clock import microseconds
from memoranda.index.database import Queries, held, snapshot, version
from memoranda.index.filters import may_see, seen_by
from memoranda.index.resolve import key
from memoranda.index.tables import Row
from memoranda.note.entity import EntityKey, GraphRelation, folded_name
from memoranda.note.links import without_suffix
from memoranda.note.model import GLOBAL, GRAPH_PROJECT, Note

_ENTITY = "e.note, e.created, e.path, e.scope, e.name, e.kind"
# The SQL for `target_name`.
_TARGET = f"iif(l.project is null or lower(l.project) = '{GRAPH_PROJECT}', l.target, l.project || '::' || l.target)"
# Separates texts. No text in an index contains a lone surrogate.
_SEPARATOR = "\udfff"
# Looking up one name in the index takes as long as searching the cached relations of this many
# entities.
_ENTITIES_PER_LOOKUP = 100


class EntityRow(NamedTuple):
    """One entity or placeholder.

    A placeholder is a note for a name that has relations although nobody wrote an entity of it.

    note: the row of its note.
    created: in microseconds since 1970.
    path, scope: where its note is, and who may see it.
    name: the title of the note.
    kind: the type of the entity. None for a placeholder.
    """

    note: int
    created: int
    path: str
    scope: str
    name: str
    kind: str | None

    @property
    def key(self) -> EntityKey:
        """The key that the graph uses for the entity. Its `handle` is the row of the note."""
        return EntityKey((self.created, self.path), self.name, self.kind or "", self.note)


def rows_of(note: Note) -> list[Row]:
    """Return the row of table `entity` for a note, without the column that names the note.

    The result is empty for a note that is not in project `graph`.
    """
    if note.project != GRAPH_PROJECT:
        return []
    is_placeholder = note.header.get("placeholder") is True
    observations = [observation.text for observation in note.observations]
    return [
        {
            "created": microseconds(note.created),
            "path": note.path,
            "scope": note.scope,
            "name": note.title,
            "kind": None if is_placeholder else note.type,
            "observations": json.dumps(observations, ensure_ascii=False),
        }
    ]


class _Known(NamedTuple):
    """A cached entity.

    key: the entity, as the graph names it.
    scope: who may see it.
    text: its name, type and observations in lower case. None for a placeholder.
    relations: the relations that come from it.
    """

    key: EntityKey
    scope: str
    text: str | None
    relations: list[GraphRelation]


Ordered = TypeVar("Ordered", EntityKey, GraphRelation)


class EntityMemory:
    """Caches all entities of an index in their order. Relations are added when they are first
    needed.

    version: the version of the index that is cached. None at first.
    entities: all entities without placeholders, in order.
    """

    def __init__(self) -> None:
        self.version: tuple[int, int] | None = None
        # All entities and placeholders by their number in the index, and in order.
        self._by_seq: dict[int, _Known] = {}
        self._ordered: list[_Known] = []
        # The last entity whose relations were read.
        self._last_related = 0
        # All relations in order. None until they are needed.
        self._relations: list[GraphRelation] | None = None
        # The positions in `_relations` of the relations at each name.
        self._places_by_end: dict[str, list[int]] = {}
        self.entities: list[EntityKey] = []
        # Name, type and observations of each entity, in one text with separators.
        self._texts = ""
        # Where the text of each entity begins in it. The last one is the end of the text.
        self._begins = [0]
        # The path and the scope of each entity that not everybody may see.
        self._scoped: list[tuple[str, str]] = []

    def follow(self, db: sqlite3.Connection) -> None:
        """Bring the cache up to date with the index. Expects to run inside a snapshot."""
        present_version = version(db)
        if self.version == present_version:
            return
        # An entity has a number, `seq`. A changed one gets a new number, and the old one is gone.
        new_entities = self._new_entities(db)
        by_seq = self._by_seq | new_entities
        (entity_count,) = db.execute("select count(*) from entity").fetchone()
        has_entities_gone = entity_count != len(by_seq)
        if has_entities_gone:
            present_seqs = {seq for (seq,) in db.execute("select seq from entity")}
            by_seq = {seq: entity for seq, entity in by_seq.items() if seq in present_seqs}
        # Most changes of the index concern no entity.
        if new_entities or len(by_seq) < len(self._by_seq):
            self._sort(by_seq.values())
        self._by_seq = by_seq
        self.version = present_version

    def _new_entities(self, db: sqlite3.Connection) -> dict[int, _Known]:
        """Read the entities that were written since the last call, by their number (`seq`).

        A changed entity has a new number.
        """
        sql = f"select e.seq, e.observations, {_ENTITY} from entity e where e.seq > ?"
        last_seq = max(self._by_seq, default=0)
        rows = db.execute(sql, (last_seq,))
        new_entities: dict[int, _Known] = {}
        for seq, observations, note, created, path, scope, name, kind in rows:
            # The text that is searched. A placeholder, a name that only relations mention, has none.
            text = None
            is_placeholder = kind is None
            if not is_placeholder:
                text = "\n".join((name, kind, *json.loads(observations))).lower()
            entity_key = EntityKey((created, path), name, kind or "", note)
            # Relations are read when they are first needed.
            new_entities[seq] = _Known(entity_key, scope, text, relations=[])
        return new_entities

    def _sort(self, entities: Iterable[_Known]) -> None:
        """Set everything that depends on the order of the entities."""
        self._ordered = sorted(entities, key=lambda entity: entity.key.order)
        # They are put together again when they are next needed.
        self._relations = None
        # A placeholder has no text, and is left out here.
        self.entities = [entity.key for entity in self._ordered if entity.text is not None]
        texts = [entity.text for entity in self._ordered if entity.text is not None]
        self._texts = _SEPARATOR.join(texts)
        # Each text begins behind the one before and its separator.
        self._begins = [0, *accumulate(len(text) + 1 for text in texts)]
        # `order` is (time of creation, path).
        self._scoped = [
            (entity.key.order[1], entity.scope)
            for entity in self._ordered
            if entity.scope != GLOBAL
        ]

    def holding(self, text: str) -> list[EntityKey]:
        """Return the entities whose texts contain `text`, in order. `text` is in lower case."""
        # No entity's text has the separator.
        if not self.entities or _SEPARATOR in text:
            return []
        matches = []
        # `_texts` has the texts of all entities. That of `entities[n]` begins at `_begins[n]`.
        offset = self._texts.find(text)
        while offset >= 0:
            number = bisect_right(self._begins, offset) - 1
            matches.append(self.entities[number])
            # One match in each text is enough, so go on at the next one.
            offset = self._texts.find(text, self._begins[number + 1])
        return matches

    def relations(self, db: sqlite3.Connection) -> list[GraphRelation]:
        """Return all relations in order."""
        with snapshot(db):
            # This sets `_relations` to None if the entities have changed.
            self.follow(db)
            if self._relations is None:
                self._read_new_relations(db)
                self._relations = []
                for entity in self._ordered:
                    self._relations += entity.relations
                # Find them by the name at either end.
                self._places_by_end = {}
                for place, relation in enumerate(self._relations):
                    self._places_by_end.setdefault(relation.source, []).append(place)
                    self._places_by_end.setdefault(relation.target, []).append(place)
        return self._relations

    def _read_new_relations(self, db: sqlite3.Connection) -> None:
        """Add the relations of the entities that were written since the last call."""
        sql = (
            f"select e.seq, {_TARGET}, l.type, l.position from entity e cross join link l on l.note = e.note"
            " where l.item = 1 and e.seq > ? order by e.seq, l.position"
        )
        links = db.execute(sql, (self._last_related,)).fetchall()
        for seq, target, kind, position in links:
            source = self._by_seq[seq]
            order = (*source.key.order, position)
            source.relations.append(GraphRelation(source.key.name, target, kind, order))
        self._last_related = max(self._by_seq, default=0)

    def relations_at(self, db: sqlite3.Connection, names: set[str]) -> list[GraphRelation]:
        """Return the relations with at least one end among `names`, in order."""
        relations = self.relations(db)
        places: set[int] = set()
        for name in names:
            places.update(self._places_by_end.get(name, ()))
        return [relations[place] for place in sorted(places)]

    def visible(self, entities: list[Ordered], viewer: str | None) -> list[Ordered]:
        """Return the entities or relations that are in notes which the viewer sees.

        viewer: the agent that asks; None for the owner.
        """
        hidden_paths = {path for path, scope in self._scoped if not may_see(scope, viewer)}
        if not hidden_paths:
            return entities[:]
        # An order is the time of creation, then the path.
        return [entity for entity in entities if entity.order[1] not in hidden_paths]


class EntityQueries(Queries):
    """Reads the entities of one index. `viewer` is the agent that asks, None the owner.

    Once a process has read all entities, or all relations, they are cached and kept up to date.
    """

    def _memory(self) -> EntityMemory:
        """Return the cache of all entities, up to date."""
        memory = held(self._db, EntityMemory)
        with snapshot(self._db):
            memory.follow(self._db)
        return memory

    def all(self, viewer: str | None) -> list[EntityKey]:
        """Return all entities in order. The `handle` of each is the row of its note.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        memory = self._memory()
        return memory.visible(memory.entities, viewer)

    def matching(self, text: str, viewer: str | None) -> list[EntityKey]:
        """Return the entities whose name, type or a single observation contains `text`, in order.

        text: in lower case. It is compared with everything in lower case.
        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        memory = self._memory()
        candidates = memory.holding(text)
        # The cache separates observations by line breaks, so two of them may match together.
        if "\n" in text:
            observations = self.observations([entity.handle for entity in candidates])
            entities: list[EntityKey] = []
            for entity in candidates:
                texts = [entity.name, entity.type, *observations[entity.handle]]
                if any(text in single_text.lower() for single_text in texts):
                    entities.append(entity)
            candidates = entities
        return memory.visible(candidates, viewer)

    def named(self, names: Iterable[str], viewer: str | None) -> list[EntityRow]:
        """Return the entities and placeholders with exactly these names, in order.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        exact_names = set(names)
        sql = f"select {_ENTITY} from note_fold f join entity e on e.note = f.note where f.fold in ({{marks}})"
        # A note may have several of the keys.
        entities: dict[int, EntityRow] = {}
        for columns in self._among(sql, {key(name) for name in exact_names}):
            entity = EntityRow(*columns)
            if entity.name in exact_names and may_see(entity.scope, viewer):
                entities[entity.note] = entity
        return sorted(entities.values(), key=lambda entity: (entity.created, entity.path))

    def observations(self, notes: Sequence[int]) -> dict[int, list[str]]:
        """Return the observations of the entities in these notes, by the row of the note."""
        # One result row, parsed once, is faster than many.
        sql = (
            "select '[' || group_concat(note) || ']', '[' || group_concat(observations) || ']'"
            " from entity where note in (select value from json_each(?))"
        )
        rows, texts = self._db.execute(sql, (json.dumps(notes),)).fetchone()
        return dict(zip(json.loads(rows or "[]"), json.loads(texts or "[]"), strict=True))

    def relations(self, viewer: str | None) -> list[GraphRelation]:
        """Return all relations in order.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        memory = held(self._db, EntityMemory)
        return memory.visible(memory.relations(self._db), viewer)

    def relations_at(self, names: set[str], viewer: str | None) -> list[GraphRelation]:
        """Return the relations with at least one end among `names`, in order.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        # From the cache, if it is up to date and faster than the index.
        memory = held(self._db, EntityMemory)
        is_memory_faster = len(memory.entities) < _ENTITIES_PER_LOOKUP * len(names)
        if is_memory_faster and memory.version == version(self._db):
            return memory.visible(memory.relations_at(self._db, names), viewer)

        # The index finds relations by the key of a name, and several names may have one key: `Tea`
        # and `TEA`. So relations of other names are found, too, and left out here.
        keys = {key(name) for name in names}
        found_by_source = self._relations_from(keys, viewer)
        relations = {relation for relation in found_by_source if relation.source in names}
        # A link to `project::name` may be written without the project.
        keys_without_project: set[str] = set()
        for name in names:
            _, separator, name_in_project = name.partition("::")
            if separator:
                keys_without_project.add(key(name_in_project or name))
        found_by_target = self._relations_to(keys | keys_without_project, viewer)
        relations.update(relation for relation in found_by_target if relation.target in names)
        return sorted(relations, key=attrgetter("order"))

    def _relations_from(self, keys: Collection[str], viewer: str | None) -> list[GraphRelation]:
        """Return the relations of the entities whose names have these keys."""
        return self._linked(
            "entity e cross join link l on l.note = e.note",
            "e.note in (select note from note_fold where fold in ({marks}))",
            keys,
            viewer,
        )

    def _relations_to(self, keys: Collection[str], viewer: str | None) -> list[GraphRelation]:
        """Return the relations whose links have these keys."""
        return self._linked(
            "link l cross join entity e on e.note = l.note",
            "l.fold in ({marks})",
            keys,
            viewer,
        )

    def _linked(
        self, origin: str, condition: str, keys: Collection[str], viewer: str | None
    ) -> list[GraphRelation]:
        """Return the relations that a condition selects and that the viewer sees.

        origin: the SQL after `from`, which joins the tables `entity e` and `link l`.
        condition: SQL with `{marks}` where `keys` are listed.
        """
        sql = (
            f"select e.created, e.path, l.position, e.name, {_TARGET}, l.type from {origin}"
            f" where l.item = 1 and {seen_by('e.scope', '?')} and {condition}"
        )
        # `seen_by` has the viewer three times.
        rows = self._among(sql, keys, viewer, viewer, viewer)
        return [
            GraphRelation(source, target, kind, (created, path, position))
            for created, path, position, source, target, kind in rows
        ]

    def holds_file(self, project: str, stem: str) -> bool:
        """Whether a note in the top folder of a project has this file name.

        Case and Unicode form do not count.

        stem: the file name without extension.
        """
        folded = folded_name(stem)
        rows = self._db.execute(
            "select n.path from note_fold f join note n on n.row = f.note join project p on p.id = n.project"
            " where f.fold = ? and p.name = ?",
            (key(stem), project),
        )
        return any(
            "/" not in path and folded_name(without_suffix(path)) == folded for (path,) in rows
        )

    def titled(self, project: str, names: Iterable[str], viewer: str | None) -> list[int]:
        """Return the rows of a project's notes with exactly one of these titles.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        return self._notes_with("n.title", "note_fold", project, names, viewer)

    def linking(self, project: str, names: Iterable[str], viewer: str | None) -> list[int]:
        """Find the notes of a project that have a link to one of these names. Returns their rows.

        Only links count that are written exactly as the name.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        return self._notes_with("f.target", "link", project, names, viewer)

    def _notes_with(
        self, column: str, table: str, project: str, names: Iterable[str], viewer: str | None
    ) -> list[int]:
        """Return the rows of notes in a project that have exactly one of `names` in a column.

        column: the column of the joined tables, such as `n.title`. It must be equal to a name,
            letter by letter.
        table: the table that finds the notes quickly, by the key of a name: `note_fold` for their
            titles, or `link` for the targets of their links.
        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        exact_names = set(names)
        # Names that differ only in case or signs have the same key. So the rows of the keys are
        # compared with the names themselves afterwards.
        sql = (
            f"select n.row, {column}, n.scope from {table} f join note n on n.row = f.note"
            " join project p on p.id = n.project where p.name = ? and f.fold in ({marks})"
        )
        # A note may have several of the keys.
        rows: dict[int, None] = {}
        for row, name, scope in self._among(sql, {key(name) for name in exact_names}, project):
            if name in exact_names and may_see(scope, viewer):
                rows[row] = None
        return list(rows)

    def last_created(self) -> int:
        """Return when the newest entity or placeholder was created, in microseconds since 1970.

        0 if there are no entities.
        """
        return self._db.execute("select max(created) from entity").fetchone()[0] or 0

    def version(self, viewer: str | None) -> tuple[int, int]:
        """Return a value that changes if the part of the graph changes that `viewer` sees."""
        visibility = seen_by("scope", ":viewer")
        sql = f"select count(*), coalesce(max(seq), 0) from entity where {visibility}"
        return self._db.execute(sql, {"viewer": viewer}).fetchone()


def target_name(target: str, project: str | None) -> str:
    """Return the name of a link's target in the graph: `Anna`, or `work::Anna` in project `work`.

    project: the project that the link names. None if it names none.
    """
    if project is None or project.casefold() == GRAPH_PROJECT:
        return target
    return f"{project}::{target}"
