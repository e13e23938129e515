"""The graphs of notes: that of project `graph`, any other project's notes, and all projects together (contract 002)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from commonplace.clock import microseconds
from commonplace.engine.engine import verb
from commonplace.engine.entities import (
    AmbiguousEntity,
    Entity,
    EntityKey,
    GraphRelation,
    NoEntity,
    T,
    merge_entities,
    unique_entities,
)
from commonplace.engine.reading import ReadVerbs
from commonplace.engine.transaction import Transaction
from commonplace.engine.writing import editable, read_unlocked
from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.index.entity_queries import PROJECT, EntityRow, target_name
from commonplace.index.rows import NoteInfo
from commonplace.note.entity import EntityText, compose, file_stem, folded_name
from commonplace.note.frontmatter import parse_typed, split
from commonplace.note.model import Relation as Item
from commonplace.query import Query
from commonplace.store.base import File

EVERY = "*"
_LATEST = 253_000_000_000_000_000  # in the year 9987; no time after it could be written any more
_MAX_LOOKUPS = 300
"""From so many names on it is quicker to look at every relation."""
_MAX_RANKED = 1000

_OWN_KEYS = frozenset(("id", "title", "type", "created_at", "placeholder", "scope", "locked"))


class NoteGraph:
    """The notes of project `graph`, for one caller: entities of a foreign scope are not there."""

    project = PROJECT

    def __init__(self, session: ReadVerbs):
        self.session = session
        self.engine = session.engine
        self._index = session.engine.index

    @verb
    def keys(self) -> list[EntityKey]:
        """Every entity, in order."""
        self.engine.fresh()
        return [key_of(row) for row in self._index.entities.all(self.session.agent)]

    @verb
    def named(self, names: Iterable[str]) -> list[EntityKey]:
        """The entities of these names, in order."""
        self.engine.fresh()
        return [key_of(row) for row in self._notes(names) if row.kind is not None]

    @verb
    def matching(self, text: str) -> list[EntityKey]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""
        self.engine.fresh()
        return [key_of(row) for row in self._index.entities.matching(text.lower(), self.session.agent)]

    @verb
    def ranked(self, text: str) -> list[EntityKey]:
        """The entities that hold the words of `text` in any order, best first; types count last."""
        self.engine.fresh()
        hits = self.session.search(Query(text=text, projects=(self.project,)), limit=_MAX_RANKED)
        entities = {row.note: row for row in self._index.entities.all(self.session.agent)}
        found = {hit.note.row: entities[hit.note.row] for hit in hits if hit.note.row in entities}
        holding = [set(self._index.entities.matching(word, self.session.agent)) for word in text.lower().split()]
        if holding:
            also = set.intersection(*holding)
            found |= {row.note: row for row in entities.values() if row in also and row.note not in found}
        return [key_of(row) for row in found.values()]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """What each of these entities says, in stored order."""
        found = self._index.entities.observations([key.handle for key in keys])
        return [found.get(key.handle, []) for key in keys]

    @verb
    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """The further keys of each of these entities' frontmatter, those below `fields` by their own names; numbers
        are numbers."""
        infos = self._index.notes.infos([key.handle for key in keys])
        return [self._further(infos[key.handle]) if key.handle in infos else {} for key in keys]

    def _further(self, info: NoteInfo) -> dict[str, Any]:
        found = _unknown_keys(info.header)
        if not found:
            return found
        try:  # the index knows all plain values but true, false and null as texts
            return _unknown_keys(parse_typed(split(self.session.file(info).data.decode()).yaml or ""))
        except (ValueError, CommonplaceError):
            return found

    @verb
    def lacking(self, keys: Sequence[tuple[EntityKey, dict[str, Any]]]) -> list[bool]:
        """Whether each of these entities lacks one of the unknown keys that come with it."""
        infos = self._index.notes.infos([key.handle for key, _ in keys])
        return [
            key.handle in infos and bool(_header_keys(more).keys() - infos[key.handle].header) for key, more in keys
        ]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """The relations with at least one end among `names` (None: all), in order."""
        self.engine.fresh()
        entities, viewer = self._index.entities, self.session.agent
        if names is None or len(names) > _MAX_LOOKUPS:
            rows = entities.relations(viewer)
            if names is not None:
                rows = [row for row in rows if row.source in names or row.target in names]
        else:
            rows = entities.relations_at(names, viewer)
        return [
            GraphRelation(source, target, kind, (created, path, position))
            for created, path, position, source, kind, target in rows
        ]

    @verb
    def version(self) -> Any:
        """A value that differs once something changed."""
        self.engine.fresh()
        return self._index.entities.version(self.session.agent)

    def warnings(self) -> list[str]:
        """None: `memory doctor` tells of notes that cannot be read."""
        return []

    @verb
    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns: one look at the disk, then one state of the index."""
        self.engine.fresh()
        with self._index.snapshot():
            return read()

    def _notes(self, names: Iterable[str]) -> list[EntityRow]:
        """The entities and placeholders of these names, in order."""
        return self._index.entities.named(names, self.session.agent)

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""
        wanted = unique_entities(entities)
        with self._editing("write") as edits:
            notes = self._notes(wanted)
            for row in notes:
                if row.kind is not None:
                    wanted.pop(row.name, None)
            places = {row.name: row for row in notes}
            for each in wanted.values():
                if each.name in places:
                    edits.become(places[each.name], each)
                else:
                    edits.create(each.name, each.type, each.observations)
        return list(wanted.values())

    @verb
    def create_relations(self, relations: Sequence[GraphRelation]) -> list[GraphRelation]:
        """Store those that are new; their ends need not exist. Returns them."""
        wanted = list({each.triple: each for each in relations}.values())
        new: set[tuple[str, str, str]] = set()
        with self._editing("edit") as edits:
            places = self._places(each.source for each in wanted)
            for name, group in _grouped((each.source, each) for each in wanted).items():
                place = places.get(name)
                there = self._triples(place, edits) if place else set()
                fresh = [each for each in group if each.triple not in there]
                new |= {each.triple for each in fresh}
                pairs = [(each.type, each.target) for each in fresh]
                if place is None:
                    self._create_source(edits, name, pairs)
                elif pairs:
                    with edits.changing(place) as text:
                        text.add_relations(pairs)
        return [each for each in wanted if each.triple in new]

    @verb
    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet. Returns what was new. Raises NoEntity."""
        results: list[tuple[str, list[str]]] = []
        with self._editing("edit") as edits:
            places = self._entity_places(name for name, _ in additions)
            for name, _ in additions:
                if name not in places:
                    raise NoEntity(name)
            known: dict[str, dict[str, bool]] = {}
            for name, texts in additions:
                there = known.setdefault(name, dict.fromkeys(self._observations_of(edits.text(places[name])), False))
                added = [text for text in dict.fromkeys(texts) if text not in there]
                there |= dict.fromkeys(added, True)
                results.append((name, added))
            for name, there in known.items():
                if added := [text for text, is_new in there.items() if is_new]:
                    with edits.changing(places[name]) as text:
                        text.add_observations(added)
        return results

    @verb
    def merge(self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[GraphRelation]) -> None:
        """Take in another graph as one change: entities that exist get the observations they lack, twins become
        one. The keys that come with an entity go into its frontmatter, where it has none of that name."""
        wanted = merge_entities((each, _header_keys(more)) for each, more in entities)
        by_source = _grouped((each.source, each) for each in {each.triple: each for each in relations}.values())
        with self._editing("import") as edits:
            places = self._places([*wanted, *by_source])
            for name in dict.fromkeys([*wanted, *by_source]):
                kind, texts, keys = wanted.get(name, (None, {}, {}))
                place = places.get(name)
                there = self._triples(place, edits) if place else set()
                pairs = [(each.type, each.target) for each in by_source.get(name, ()) if each.triple not in there]
                if place is None:
                    edits.create(name, kind, list(texts), pairs, keys)
                    continue
                if place.kind is None and kind is not None:
                    edits.become(place, Entity(name, kind, tuple(texts)))
                with edits.changing(place) as text:
                    if fresh := [each for each in texts if each not in text.observations]:
                        text.add_observations(fresh)
                    if pairs:
                        text.add_relations(pairs)
                    if lacking := {key: keys[key] for key in keys.keys() - text.keys}:
                        text.set_keys(lacking)

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities and every relation at either end; unknown names are no error."""
        gone = set(names)
        with self._editing("delete") as edits:
            self._places(gone)
            own = self._notes(gone)
            for row in own:
                edits.remove(row)
            paths = {row.path for row in own}
            touching = self._index.entities.relations_at(gone, self.session.agent)
            linking = [row for row in touching if row.target in gone and row.path not in paths]
            sources = {row.path: row for row in self._notes({row.source for row in linking})}
            for path in dict.fromkeys(row.path for row in linking):
                edits.drop_relations(sources[path], lambda item: target_name(item.target, item.project) in gone)

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations; what is not there is no error."""
        with self._editing("edit") as edits:
            places = self._entity_places(name for name, _ in deletions)
            for name, group in _grouped(deletions).items():
                if name in places:
                    with edits.changing(places[name]) as text:
                        text.drop_observations({each for texts in group for each in texts})

    @verb
    def delete_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove relations; what is not there is no error."""
        with self._editing("edit") as edits:
            by_source = _grouped((each.source, (each.type, each.target)) for each in relations)
            self._places(by_source)
            for row in self._notes(by_source):
                edits.drop_relations(row, partial(self._is_among, row, set(by_source[row.name])))

    def _is_among(self, row: EntityRow, pairs: set[tuple[str, str]], item: Item) -> bool:
        return (item.type, self._target_of(item, row)) in pairs

    @contextmanager
    def _editing(self, verb: str) -> Iterator[GraphEdits]:
        """What one call will write: one change, all or nothing."""
        with self.session.change(verb) as change:
            edits = GraphEdits(self, change)
            yield edits
            edits.add_steps()

    def _target_of(self, item: Item, row: EntityRow) -> str:
        """The name a relation item of the note `row` leads to."""
        return target_name(item.target, item.project)

    def _observations_of(self, text: EntityText) -> list[str]:
        return text.observations

    def _create_source(self, edits: GraphEdits, name: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Make a placeholder, where relations from a name that is no entity live."""
        edits.create(name, None, (), pairs)

    def _places(self, names: Iterable[str]) -> dict[str, EntityRow]:
        """The one note of each name that has one, entities before placeholders. Raises AmbiguousEntity."""
        found: dict[str, EntityRow] = {}
        for name, rows in _grouped((row.name, row) for row in self._notes(names)).items():
            entities = [row for row in rows if row.kind is not None]
            if len(entities) > 1:
                raise AmbiguousEntity(name, sorted(row.path for row in entities))
            found[name] = (entities or rows)[0]
        return found

    def _entity_places(self, names: Iterable[str]) -> dict[str, EntityRow]:
        return {name: row for name, row in self._places(names).items() if row.kind is not None}

    def _triples(self, row: EntityRow, edits: GraphEdits) -> set[tuple[str, str, str]]:
        return {(row.name, self._target_of(item, row), item.type) for item in edits.text(row).relations}


class GraphEdits:
    """Collects what one call will write; the home's lock is held."""

    def __init__(self, graph: NoteGraph, change: Transaction):
        self._graph = graph
        self._session = graph.session
        self._index = graph.session.index
        self._change = change
        self._texts: dict[str, tuple[EntityRow, File, str, EntityText]] = {}
        self._new: dict[str, str] = {}
        self._stems: set[str] = set()
        self._removed: dict[str, tuple[EntityRow, File]] = {}
        self._last_created = 0

    def text(self, row: EntityRow) -> EntityText:
        """The note's text with what this call changed so far. Raises Locked, NotText."""
        if row.path not in self._texts:
            file, text = editable(self._session, self._info(row))
            self._texts[row.path] = (row, file, text, EntityText(text))
        return self._texts[row.path][3]

    def _info(self, row: EntityRow) -> NoteInfo:
        info = self._index.notes.get(self._graph.project, row.path)
        assert info is not None
        return info

    @contextmanager
    def changing(self, row: EntityRow) -> Iterator[EntityText]:
        """The note's text, to be changed inside. Raises InvalidInput when that cannot be done by lines."""
        try:
            yield self.text(row)
        except ValueError as error:
            raise InvalidInput(
                f"The note {row.path} was not changed: {error}. Mend it in an editor or with edit_note."
            ) from None

    def create(
        self, name: str, type: str | None, observations: Sequence[str],
        relations: Sequence[tuple[str, str]] = (), more: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """A new note; a placeholder when `type` is None. `more` are further keys of its frontmatter."""
        stem = file_stem(name, self._is_taken)
        text = compose(str(uuid.uuid4()), name, type, self._created_at(), observations, relations, more)
        self._new[f"{stem}.md"] = text
        self._stems.add(folded_name(stem))

    def become(self, row: EntityRow, entity: Entity) -> None:
        """A placeholder becomes an entity; its relations stay."""
        with self.changing(row) as text:
            text.make_entity(entity.type, self._created_at())
            text.ensure_observations()
            text.add_observations([each for each in entity.observations if each not in text.observations])

    def drop_relations(self, row: EntityRow, is_dropped: Callable[[Item], bool]) -> None:
        """Take relations out of a note; a placeholder goes with its last one."""
        with self.changing(row) as text:
            text.drop_relations(is_dropped)
        if row.kind is None and not text.relations:
            self.remove(row)

    def remove(self, row: EntityRow) -> None:
        """Remove the note. Raises Locked."""
        self._removed[row.path] = (row, read_unlocked(self._session, self._info(row)))

    def add_steps(self) -> None:
        """Add the steps to the change: texts that differ, new notes, removals."""
        project, change = self._graph.project, self._change
        for row, file, before, text in self._texts.values():
            if text.text != before and row.path not in self._removed:
                change.put(project, row.path, text.text.encode(), old=file, scope=row.scope)
        for path, new in self._new.items():
            change.put(project, path, new.encode())
        for row, file in self._removed.values():
            change.remove(project, row.path, file, scope=row.scope)

    def _created_at(self) -> int:
        """The next `created_at`, later than any other in the graph (5.1)."""
        last = self._last_created or min(self._index.entities.last_created(), _LATEST)
        self._last_created = max(microseconds(self._session.clock()), last + 1)
        return self._last_created

    def _is_taken(self, stem: str) -> bool:
        project = self._graph.project
        return (
            folded_name(stem) in self._stems
            or os.path.lexists(os.path.join(self._session.engine.store(project).root, f"{stem}.md"))
            or self._index.entities.holds_file(project, stem)
        )


def key_of(row: EntityRow) -> EntityKey:
    """An entity's row as a key."""
    assert row.kind is not None
    return EntityKey((row.created, row.path), row.name, row.kind, row.note)


def _header_keys(more: dict[str, Any]) -> dict[str, Any]:
    """Unknown keys of an entity as keys of its header; one that means something here stands below `fields`."""
    meaning = {key: value for key, value in more.items() if key in _OWN_KEYS}
    others = {key: value for key, value in more.items() if key not in _OWN_KEYS}
    return others | {"fields": meaning} if meaning else others


def _unknown_keys(header: dict[str, Any]) -> dict[str, Any]:
    """What `_header_keys` made keys of a header, back again."""
    below = header.get("fields")
    others = {key: value for key, value in header.items() if key not in _OWN_KEYS and key != "fields"}
    return others | (below if isinstance(below, dict) else {})


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """The second ones by the first, both in order."""
    found: dict[str, list[Any]] = {}
    for name, each in pairs:
        found.setdefault(name, []).append(each)
    return found
