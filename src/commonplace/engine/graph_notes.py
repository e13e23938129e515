"""The graph kept as notes of project `graph` (contract 002, 2 and 5)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from commonplace.clock import microseconds
from commonplace.engine.entities import AmbiguousEntity, Entity, Key, NoEntity, Relation, T
from commonplace.engine.reading import ReadVerbs
from commonplace.engine.session import verb
from commonplace.engine.transaction import Transaction
from commonplace.engine.writing import editable, read_unlocked
from commonplace.errors import InvalidInput
from commonplace.index.entities import PROJECT, EntityRow, target_name
from commonplace.note.entity import EntityText, compose, file_stem, folded_name
from commonplace.note.model import Relation as Item
from commonplace.query import Query
from commonplace.store.base import File

_LATEST = 253_000_000_000_000_000  # in the year 9987; no time after it could be written any more
_SINGLY = 300
"""From so many names on it is quicker to look at every relation."""
_MOST_RANKED = 1000

_OWN_KEYS = frozenset(("id", "title", "type", "created_at", "placeholder", "scope", "locked"))


class NoteGraph:
    """The graph of the caller `memory` is bound to: entities of a foreign scope are not there."""

    project = PROJECT

    def __init__(self, memory: ReadVerbs):
        self.memory = memory
        self.engine = memory.engine

    # --- reading --------------------------------------------------------------------------------

    @verb
    def keys(self) -> list[Key]:
        """Every entity, in order."""
        self.engine.fresh()
        return [key_of(row) for row in self.engine.index.entities.all(self.memory.agent)]

    @verb
    def named(self, names: Iterable[str]) -> list[Key]:
        """The entities of these names, in order."""
        self.engine.fresh()
        return [key_of(row) for row in self._notes(names) if row.kind is not None]

    @verb
    def matching(self, text: str) -> list[Key]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""
        self.engine.fresh()
        return [key_of(row) for row in self.engine.index.entities.matching(text.lower(), self.memory.agent)]

    @verb
    def ranked(self, text: str) -> list[Key]:
        """The entities that hold the words of `text` in any order, best first; types count last."""
        self.engine.fresh()
        hits = self.memory.search(Query(text=text, projects=(self.project,)), limit=_MOST_RANKED)
        entities = {row.note: row for row in self.engine.index.entities.all(self.memory.agent)}
        found = {hit.note.row: entities[hit.note.row] for hit in hits if hit.note.row in entities}
        holding = [set(self.engine.index.entities.matching(word, self.memory.agent)) for word in text.lower().split()]
        if holding:
            also = set.intersection(*holding)
            found |= {row.note: row for row in entities.values() if row in also and row.note not in found}
        return [key_of(row) for row in found.values()]

    @verb
    def observations(self, keys: Sequence[Key]) -> list[list[str]]:
        """What each of these entities says, in stored order."""
        found = self.engine.index.entities.observations([key.handle for key in keys])
        return [found.get(key.handle, []) for key in keys]

    @verb
    def lacking(self, keys: Sequence[tuple[Key, dict[str, Any]]]) -> list[bool]:
        """Whether each of these entities lacks one of the unknown keys that come with it."""
        infos = self.engine.index.notes.infos([key.handle for key, _ in keys])
        return [key.handle in infos and bool(_further(more).keys() - infos[key.handle].header) for key, more in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations with at least one end among `names` (None: all), in order."""
        self.engine.fresh()
        index, viewer = self.engine.index.entities, self.memory.agent
        if names is None or len(names) > _SINGLY:
            rows = index.relations(viewer)
            if names is not None:
                rows = [row for row in rows if row.source in names or row.target in names]
        else:
            rows = index.relations_at(names, viewer)
        return [
            Relation(source, target, kind, (created, path, position))
            for created, path, position, source, kind, target in rows
        ]

    @verb
    def version(self) -> Any:
        """A value that differs once something changed."""
        self.engine.fresh()
        return self.engine.index.entities.version(self.memory.agent)

    def warnings(self) -> list[str]:
        """None: `memory doctor` tells of notes that cannot be read."""
        return []

    @verb
    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns: one look at the disk, then one state of the index."""
        self.engine.fresh()
        with self.engine.index.snapshot():
            return read()

    def _notes(self, names: Iterable[str]) -> list[EntityRow]:
        """The entities and placeholders of these names, in order."""
        return self.engine.index.entities.named(names, self.memory.agent)

    # --- creating -------------------------------------------------------------------------------

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""
        wanted: dict[str, Entity] = {}
        for each in entities:
            wanted.setdefault(each.name, Entity(each.name, each.type, tuple(dict.fromkeys(each.observations))))
        with self.memory.change("edit") as change:
            notes = self._notes(wanted)
            for row in notes:
                if row.kind is not None:
                    wanted.pop(row.name, None)
            places = {row.name: row for row in notes}
            plan = NotesEdit(self, change)
            for each in wanted.values():
                if each.name in places:
                    plan.become(places[each.name], each)
                else:
                    plan.create(each.name, each.type, each.observations)
            change.verb = "write"
            plan.add_steps()
        return list(wanted.values())

    @verb
    def create_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        """Store those that are new; their ends need not exist. Returns them."""
        wanted = list({each.triple: each for each in relations}.values())
        with self.memory.change("edit") as change:
            places = self._places(each.source for each in wanted)
            plan, new = NotesEdit(self, change), set()
            for name, group in _grouped((each.source, each) for each in wanted).items():
                place = places.get(name)
                there = self._triples(place, plan) if place else set()
                fresh = [each for each in group if each.triple not in there]
                pairs = [(each.type, each.target) for each in fresh]
                new |= {each.triple for each in fresh}
                if place is None:
                    self._place_nobody(plan, name, pairs)
                elif pairs:
                    plan.change(place, lambda text, pairs=pairs: text.add_relations(pairs))
            plan.add_steps()
        return [each for each in wanted if each.triple in new]

    @verb
    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet. Returns what was new. Raises NoEntity."""
        with self.memory.change("edit") as change:
            places = self._entity_places(name for name, _ in additions)
            for name, _ in additions:
                if name not in places:
                    raise NoEntity(name)
            plan, results, fresh = NotesEdit(self, change), [], {}
            for name, texts in additions:
                known = fresh.setdefault(name, dict.fromkeys(self._said(places[name], plan)))
                added = [text for text in dict.fromkeys(texts) if text not in known]
                known |= dict.fromkeys(added, True)
                results.append((name, added))
            for name, known in fresh.items():
                if added := [text for text, is_new in known.items() if is_new]:
                    plan.change(places[name], lambda text, added=added: text.add_observations(added))
            plan.add_steps()
        return results

    @verb
    def merge(self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[Relation]) -> None:
        """Take in another graph as one change: entities that exist get the observations they lack, twins become
        one. The keys that come with an entity go into its frontmatter, where it has none of that name."""
        wanted: dict[str, tuple[str, dict[str, None], dict[str, Any]]] = {}
        for each, more in entities:
            kind, texts, keys = wanted.setdefault(each.name, (each.type, {}, {}))
            texts |= dict.fromkeys(each.observations)
            keys |= {key: value for key, value in _further(more).items() if key not in keys}
        triples = {each.triple: each for each in relations}
        by_source = _grouped((each.source, each) for each in triples.values())
        with self.memory.change("edit") as change:
            places = self._places([*wanted, *by_source])
            plan = NotesEdit(self, change)
            for name in dict.fromkeys([*wanted, *by_source]):
                kind, texts, keys = wanted.get(name, (None, {}, {}))
                place = places.get(name)
                there = self._triples(place, plan) if place else set()
                pairs = [(each.type, each.target) for each in by_source.get(name, ()) if each.triple not in there]
                if place is None:
                    plan.create(name, kind, list(texts), pairs, keys)
                    continue
                if place.kind is None and kind is not None:
                    plan.become(place, Entity(name, kind, tuple(texts)))
                elif fresh := [text for text in texts if text not in plan.text(place).observations]:
                    plan.change(place, lambda text, fresh=fresh: text.add_observations(fresh))
                if pairs:
                    plan.change(place, lambda text, pairs=pairs: text.add_relations(pairs))
                if lacking := {key: keys[key] for key in keys.keys() - plan.text(place).keys}:
                    plan.change(place, lambda text, lacking=lacking: text.set_keys(lacking))
            change.verb = "import"
            plan.add_steps()

    # --- deleting -------------------------------------------------------------------------------

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities and every relation at either end; unknown names are no error."""
        gone = set(names)
        with self.memory.change("edit") as change:
            self._places(gone)
            plan = NotesEdit(self, change)
            own = self._notes(gone)
            for row in own:
                plan.remove(row)
            paths = {row.path for row in own}
            index, viewer = self.engine.index.entities, self.memory.agent
            touching = index.relations_at(gone, viewer)
            linking = [row for row in touching if row.target in gone and row.path not in paths]
            sources = {row.path: row for row in self._notes({row.source for row in linking})}
            for path in dict.fromkeys(row.path for row in linking):
                self._drop(plan, sources[path], lambda item: _target(item) in gone)
            change.verb = "delete"
            plan.add_steps()

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations; what is not there is no error."""
        with self.memory.change("edit") as change:
            places = self._entity_places(name for name, _ in deletions)
            plan = NotesEdit(self, change)
            for name, group in _grouped(deletions).items():
                if name in places:
                    texts = {text for each in group for text in each}
                    plan.change(places[name], lambda text, texts=texts: text.drop_observations(texts))
            plan.add_steps()

    @verb
    def delete_relations(self, relations: Sequence[Relation]) -> None:
        """Remove relations; what is not there is no error."""
        with self.memory.change("edit") as change:
            by_source = _grouped((each.source, (each.type, each.target)) for each in relations)
            self._places(by_source)
            plan = NotesEdit(self, change)
            for row in self._notes(by_source):
                pairs = set(by_source[row.name])
                self._drop(plan, row, lambda item, row=row, pairs=pairs: (item.type, self._shown(item, row)) in pairs)
            plan.add_steps()

    # --- what differs in other projects ---------------------------------------------------------

    def _shown(self, item: Item, row: EntityRow) -> str:
        """The name a relation item of the note `row` leads to."""
        return _target(item)

    def _said(self, row: EntityRow, plan: NotesEdit) -> list[str]:
        """What the entity says already."""
        return plan.text(row).observations

    def _place_nobody(self, plan: NotesEdit, name: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Relations from a name that is no entity live in a placeholder."""
        plan.create(name, None, (), pairs)

    # --- places ---------------------------------------------------------------------------------

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

    def _triples(self, row: EntityRow, plan: NotesEdit) -> set[tuple[str, str, str]]:
        return {(row.name, self._shown(item, row), item.type) for item in plan.text(row).relations}

    def _drop(self, plan: NotesEdit, row: EntityRow, is_dropped: Callable[[Item], bool]) -> None:
        """Take relations out of a note; a placeholder goes with its last one."""
        plan.change(row, lambda text: text.drop_relations(is_dropped))
        if row.kind is None and not plan.text(row).relations:
            plan.remove(row)


class NotesEdit:
    """What one call will write to the notes of a graph, gathered before the first byte."""

    def __init__(self, graph: NoteGraph, change: Transaction):
        self._graph = graph
        self._engine = graph.engine
        self._change = change
        self._texts: dict[str, tuple[EntityRow, File, str, EntityText]] = {}
        self._new: list[tuple[str, bytes]] = []
        self._removed: dict[str, tuple[EntityRow, File]] = {}
        self._stems: set[str] = set()
        self._last = 0

    def text(self, row: EntityRow) -> EntityText:
        """The note's text with what this call changed so far. Raises Locked, NotText."""
        if row.path not in self._texts:
            info = self._engine.index.notes.get(self._graph.project, row.path)
            assert info is not None
            file, text = editable(self._graph.memory, info)
            self._texts[row.path] = (row, file, text, EntityText(text))
        return self._texts[row.path][3]

    def change(self, row: EntityRow, change: Callable[[EntityText], None]) -> None:
        """Change the note's text. Raises InvalidInput when it cannot be done by lines."""
        try:
            change(self.text(row))
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
        self._stems.add(folded_name(stem))
        text = compose(str(uuid.uuid4()), name, type, self._moment(), observations, relations, more)
        self._new.append((f"{stem}.md", text.encode()))

    def become(self, row: EntityRow, entity: Entity) -> None:
        """A placeholder becomes an entity; its relations stay."""

        def change(text: EntityText) -> None:
            text.make_entity(entity.type, self._moment())
            text.ensure_observations()
            text.add_observations([each for each in entity.observations if each not in text.observations])

        self.change(row, change)

    def remove(self, row: EntityRow) -> None:
        """Remove the note. Raises Locked."""
        info = self._engine.index.notes.get(self._graph.project, row.path)
        assert info is not None
        self._removed[row.path] = (row, read_unlocked(self._graph.memory, info))

    def add_steps(self) -> None:
        """Add what differs to the change."""
        project, change = self._graph.project, self._change
        for row, file, before, text in self._texts.values():
            if text.text != before and row.path not in self._removed:
                change.put(project, row.path, text.text.encode(), old=file, scope=row.scope)
        for path, data in self._new:
            change.put(project, path, data)
        for row, file in self._removed.values():
            change.remove(project, row.path, file, scope=row.scope)

    def _moment(self) -> int:
        """The next `created_at`, later than any other in the graph (5.1)."""
        last = self._last or min(self._engine.index.entities.last_created(), _LATEST)
        self._last = max(microseconds(self._engine.clock()), last + 1)
        return self._last

    def _is_taken(self, stem: str) -> bool:
        project = self._graph.project
        return (
            folded_name(stem) in self._stems
            or os.path.lexists(os.path.join(self._engine.store(project).root, f"{stem}.md"))
            or self._engine.index.entities.holds_file(project, stem)
        )


def key_of(row: EntityRow) -> Key:
    """An entity's row as a key."""
    assert row.kind is not None
    return Key((row.created, row.path), row.name, row.kind, row.note)


def _further(more: dict[str, Any]) -> dict[str, Any]:
    """Unknown keys of an entity as keys of its header; one that means something here stands below `fields`."""
    meaning = {key: value for key, value in more.items() if key in _OWN_KEYS}
    others = {key: value for key, value in more.items() if key not in _OWN_KEYS}
    return others | {"fields": meaning} if meaning else others


def _target(item: Item) -> str:
    return target_name(item.target, item.project)


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """The second ones by the first, both in order."""
    found: dict[str, list[Any]] = {}
    for name, each in pairs:
        found.setdefault(name, []).append(each)
    return found
