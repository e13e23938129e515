"""The graphs of notes: that of project `graph`, any other project's notes, and all projects together (contract 002)."""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from commonplace.clock import microseconds, parse_stamp
from commonplace.engine.changing import editable
from commonplace.engine.entities import (
    AmbiguousEntity,
    Entity,
    Graph,
    Key,
    NoEntity,
    Relation,
    T,
    merge_entities,
    unique_entities,
)
from commonplace.engine.graph_file import FileGraph, store_of
from commonplace.engine.verb import verb
from commonplace.errors import InvalidInput, Locked
from commonplace.index import entities as index
from commonplace.index import graph as links
from commonplace.index import lookup, resolve
from commonplace.index.database import snapshot
from commonplace.index.entities import EntityRow, Lowered, target_name
from commonplace.index.rows import Edge, NoteInfo
from commonplace.note.entity import EntityText, compose, file_stem, folded_name
from commonplace.note.grammar import scan
from commonplace.note.model import Relation as Item
from commonplace.query import Query
from commonplace.store.home import Step
from commonplace.store.inplace.graph_file import GraphStore

if TYPE_CHECKING:
    from commonplace.engine.core import Core
    from commonplace.engine.memory import Memory

EVERY = "*"
_LATEST = 253_000_000_000_000_000  # in the year 9987; no time after it could be written any more
_MAX_LOOKUPS = 300
"""From so many names on it is quicker to look at every relation."""
_MAX_RANKED = 1000

_OWN_KEYS = frozenset(("id", "title", "type", "created_at", "placeholder", "scope", "locked"))

_lowered: WeakKeyDictionary[Core, Lowered] = WeakKeyDictionary()


class NoteGraph:
    """The graph of the caller `memory` is bound to: entities of a foreign scope are not there."""

    project = index.PROJECT

    def __init__(self, memory: Memory):
        self.memory = memory
        self._core = memory._core

    @verb
    def keys(self) -> list[Key]:
        """Every entity, in order."""
        self._core.fresh()
        return [key_of(row) for row in self._all.entities(self._core.db, self.memory.agent)]

    @verb
    def named(self, names: Iterable[str]) -> list[Key]:
        """The entities of these names, in order."""
        self._core.fresh()
        return [key_of(row) for row in self._notes(names) if row.kind is not None]

    @verb
    def matching(self, text: str) -> list[Key]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""
        self._core.fresh()
        return [key_of(row) for row in self._all.matching(self._core.db, text.lower(), self.memory.agent)]

    @verb
    def ranked(self, text: str) -> list[Key]:
        """The entities that hold the words of `text` in any order, best first; types count last."""
        self._core.fresh()
        hits = self.memory.search(Query(text=text, projects=(self.project,)), limit=_MAX_RANKED)
        entities = {row.note: row for row in self._all.entities(self._core.db, self.memory.agent)}
        found = {hit.note.row: entities[hit.note.row] for hit in hits if hit.note.row in entities}
        holding = [set(self._all.matching(self._core.db, word, self.memory.agent)) for word in text.lower().split()]
        if holding:
            also = set.intersection(*holding)
            found |= {row.note: row for row in entities.values() if row in also and row.note not in found}
        return [key_of(row) for row in found.values()]

    @verb
    def observations(self, keys: Sequence[Key]) -> list[list[str]]:
        """What each of these entities says, in stored order."""
        found = index.observations(self._core.db, [key.handle for key in keys])
        return [found.get(key.handle, []) for key in keys]

    @verb
    def lacking(self, keys: Sequence[tuple[Key, dict[str, Any]]]) -> list[bool]:
        """Whether each of these entities lacks one of the unknown keys that come with it."""
        infos = lookup.infos(self._core.db, [key.handle for key, _ in keys])
        return [
            key.handle in infos and bool(_header_keys(more).keys() - infos[key.handle].header) for key, more in keys
        ]

    @verb
    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations with at least one end among `names` (None: all), in order."""
        self._core.fresh()
        db, viewer = self._core.db, self.memory.agent
        if names is None or len(names) > _MAX_LOOKUPS:
            rows = index.relations(db, viewer)
            if names is not None:
                rows = [row for row in rows if row.source in names or row.target in names]
        else:
            rows = index.relations_at(db, names, viewer)
        return [
            Relation(source, target, kind, (created, path, position))
            for created, path, position, source, kind, target in rows
        ]

    @verb
    def version(self) -> Any:
        """A value that differs once something changed."""
        self._core.fresh()
        return index.version(self._core.db, self.memory.agent)

    def warnings(self) -> list[str]:
        """None: `memory doctor` tells of notes that cannot be read."""
        return []

    @verb
    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns: one look at the disk, then one state of the index."""
        self._core.fresh()
        with snapshot(self._core.db):
            return read()

    @property
    def _all(self) -> Lowered:
        return _lowered.setdefault(self._core, Lowered())

    def _notes(self, names: Iterable[str]) -> list[EntityRow]:
        """The entities and placeholders of these names, in order."""
        return index.named(self._core.db, names, self.memory.agent)

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""
        wanted = unique_entities(entities)
        with self._core.writing():
            self._core.fresh()
            notes = self._notes(wanted)
            for row in notes:
                if row.kind is not None:
                    wanted.pop(row.name, None)
            places = {row.name: row for row in notes}
            plan = _Edits(self)
            for each in wanted.values():
                if each.name in places:
                    plan.become(places[each.name], each)
                else:
                    plan.create(each.name, each.type, each.observations)
            plan.commit("write")
        return list(wanted.values())

    @verb
    def create_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        """Store those that are new; their ends need not exist. Returns them."""
        wanted = list({each.triple: each for each in relations}.values())
        with self._core.writing():
            self._core.fresh()
            places = self._places(each.source for each in wanted)
            plan, new = _Edits(self), set()
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
            plan.commit("edit")
        return [each for each in wanted if each.triple in new]

    @verb
    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet. Returns what was new. Raises NoEntity."""
        with self._core.writing():
            self._core.fresh()
            places = self._entity_places(name for name, _ in additions)
            for name, _ in additions:
                if name not in places:
                    raise NoEntity(name)
            plan, results, fresh = _Edits(self), [], {}
            for name, texts in additions:
                known = fresh.setdefault(name, dict.fromkeys(self._said(places[name], plan)))
                added = [text for text in dict.fromkeys(texts) if text not in known]
                known |= dict.fromkeys(added, True)
                results.append((name, added))
            for name, known in fresh.items():
                if added := [text for text, is_new in known.items() if is_new]:
                    plan.change(places[name], lambda text, added=added: text.add_observations(added))
            plan.commit("edit")
        return results

    @verb
    def merge(self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[Relation]) -> None:
        """Take in another graph as one change: entities that exist get the observations they lack, twins become
        one. The keys that come with an entity go into its frontmatter, where it has none of that name."""
        wanted = merge_entities((each, _header_keys(more)) for each, more in entities)
        triples = {each.triple: each for each in relations}
        by_source = _grouped((each.source, each) for each in triples.values())
        with self._core.writing():
            self._core.fresh()
            places = self._places([*wanted, *by_source])
            plan = _Edits(self)
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
            plan.commit("import")

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities and every relation at either end; unknown names are no error."""
        gone = set(names)
        with self._core.writing():
            self._core.fresh()
            self._places(gone)
            plan = _Edits(self)
            own = self._notes(gone)
            for row in own:
                plan.remove(row)
            paths = {row.path for row in own}
            db, viewer = self._core.db, self.memory.agent
            touching = index.relations_at(db, gone, viewer)
            linking = [row for row in touching if row.target in gone and row.path not in paths]
            sources = {row.path: row for row in self._notes({row.source for row in linking})}
            for path in dict.fromkeys(row.path for row in linking):
                self._drop(plan, sources[path], lambda item: _target(item) in gone)
            plan.commit("delete")

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations; what is not there is no error."""
        with self._core.writing():
            self._core.fresh()
            places = self._entity_places(name for name, _ in deletions)
            plan = _Edits(self)
            for name, group in _grouped(deletions).items():
                if name in places:
                    texts = {text for each in group for text in each}
                    plan.change(places[name], lambda text, texts=texts: text.drop_observations(texts))
            plan.commit("edit")

    @verb
    def delete_relations(self, relations: Sequence[Relation]) -> None:
        """Remove relations; what is not there is no error."""
        with self._core.writing():
            self._core.fresh()
            by_source = _grouped((each.source, (each.type, each.target)) for each in relations)
            self._places(by_source)
            plan = _Edits(self)
            for row in self._notes(by_source):
                pairs = set(by_source[row.name])
                self._drop(plan, row, lambda item, row=row, pairs=pairs: (item.type, self._shown(item, row)) in pairs)
            plan.commit("edit")

    def _shown(self, item: Item, row: EntityRow) -> str:
        """The name a relation item of the note `row` leads to."""
        return _target(item)

    def _said(self, row: EntityRow, plan: _Edits) -> list[str]:
        """What the entity says already."""
        return plan.text(row).observations

    def _place_nobody(self, plan: _Edits, name: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Relations from a name that is no entity live in a placeholder."""
        plan.create(name, None, (), pairs)

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

    def _triples(self, row: EntityRow, plan: _Edits) -> set[tuple[str, str, str]]:
        return {(row.name, self._shown(item, row), item.type) for item in plan.text(row).relations}

    def _drop(self, plan: _Edits, row: EntityRow, is_dropped: Callable[[Item], bool]) -> None:
        """Take relations out of a note; a placeholder goes with its last one."""
        plan.change(row, lambda text: text.drop_relations(is_dropped))
        if row.kind is None and not plan.text(row).relations:
            plan.remove(row)


class _Edits:
    """What one call will write, gathered before the first byte; the home's lock is held."""

    def __init__(self, graph: NoteGraph):
        self._graph, self._core, self._memory = graph, graph._core, graph.memory
        self._texts: dict[str, tuple[EntityRow, Any, str, EntityText]] = {}
        self._new: list[Step] = []
        self._removed: dict[str, Step] = {}
        self._stems: set[str] = set()
        self._last = 0

    def text(self, row: EntityRow) -> EntityText:
        """The note's text with what this call changed so far. Raises Locked, NotText."""
        if row.path not in self._texts:
            info = lookup.get(self._core.db, self._graph.project, row.path)
            assert info is not None
            file, text = editable(self._memory, info)
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
        self._new.append(self._core.step("put", self._graph.project, f"{stem}.md", data=text.encode()))

    def become(self, row: EntityRow, entity: Entity) -> None:
        """A placeholder becomes an entity; its relations stay."""

        def change(text: EntityText) -> None:
            text.make_entity(entity.type, self._moment())
            text.ensure_observations()
            text.add_observations([each for each in entity.observations if each not in text.observations])

        self.change(row, change)

    def remove(self, row: EntityRow) -> None:
        """Remove the note. Raises Locked."""
        project = self._graph.project
        file = self._core.store(project).read(row.path)
        note = self._core.note_of(project, row.path, file)
        if note is not None and note.locked:
            raise Locked(note.permalink)
        self._removed[row.path] = self._core.step("remove", project, row.path, old=file, scope=row.scope)

    def commit(self, verb: str) -> None:
        """Carry the plan out as one change; nothing is written when nothing differs."""
        steps = [
            self._core.step("put", self._graph.project, row.path, data=text.text.encode(), old=file, scope=row.scope)
            for row, file, before, text in self._texts.values()
            if text.text != before and row.path not in self._removed
        ]
        steps = [*steps, *self._new, *self._removed.values()]
        if steps:
            about = (self._graph.project, steps[0].path)
            self._core.commit(verb, steps, about, self._memory.agent, self._memory.face)

    def _moment(self) -> int:
        """The next `created_at`, later than any other in the graph (5.1)."""
        last = self._last or min(index.last_created(self._core.db), _LATEST)
        self._last = max(microseconds(self._memory.clock()), last + 1)
        return self._last

    def _is_taken(self, stem: str) -> bool:
        project = self._graph.project
        return (
            folded_name(stem) in self._stems
            or os.path.lexists(os.path.join(self._core.store(project).root, f"{stem}.md"))
            or index.holds_file(self._core.db, project, stem)
        )


class ProjectGraph(NoteGraph):
    """The notes of a project as entities: title, type, and what the note grammar finds in them."""

    def __init__(self, memory: Memory, project: str):
        super().__init__(memory)
        self.project = project

    @verb
    def keys(self) -> list[Key]:
        """Every note the caller sees, in the order of their written times."""
        infos, _ = self.memory.list(Query(projects=(self.project,)), limit=0, order="path")
        return sorted((key_of(_row(info)) for info in infos), key=lambda key: key.order)

    @verb
    def matching(self, text: str) -> list[Key]:
        """The notes whose title, type or any one observation holds `text`, in lower case; in order."""
        wanted = text.lower()
        keys = self.keys()
        said = self.observations(keys)
        return [
            key
            for key, texts in zip(keys, said, strict=True)
            if any(wanted in each.lower() for each in (key.name, key.type, *texts))
        ]

    @verb
    def ranked(self, text: str) -> list[Key]:
        """The notes the engine's search finds, best first."""
        hits = self.memory.search(Query(text=text, projects=(self.project,)), limit=1000)
        return [key_of(_row(hit.note)) for hit in hits]

    @verb
    def observations(self, keys: Sequence[Key]) -> list[list[str]]:
        """What each of these notes says: observations of the note grammar, and items under `Observations`."""
        return [_observations("".join(lookup.text_of(self._core.db, key.handle))) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations of the note grammar with at least one end among `names` (None: all), in order."""
        self._core.fresh()
        db, viewer = self._core.db, self.memory.agent
        rows = [key.handle for key in self.keys()] if names is None else [row.note for row in self._notes(names)]
        found: set[Relation] = set()
        for info in lookup.in_order(db, rows):
            found.update(self._leaving(info))
            if names is not None:
                for edge in links.incoming(db, info, viewer):
                    if edge.note is not None and edge.note.project == self.project:
                        found.add(_relation(edge.note, edge, info.title))
        for info in lookup.in_order(db, index.linking(db, self.project, names or (), viewer)):
            found.update(each for each in self._leaving(info) if names and each.target in names)
        return sorted(found, key=lambda each: (each.order, each.triple))

    def _leaving(self, info: NoteInfo) -> list[Relation]:
        edges = links.outgoing(self._core.db, info, self.memory.agent)
        return [_relation(info, edge, self._target(edge)) for edge in edges]

    def _target(self, edge: Edge) -> str:
        return edge.note.title if edge.note is not None and edge.note.project == self.project else edge.target

    def _notes(self, names: Iterable[str]) -> list[EntityRow]:
        rows = index.titled(self._core.db, self.project, names, self.memory.agent)
        return sorted((_row(info) for info in lookup.in_order(self._core.db, rows)), key=lambda row: row[1:3])

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Refused."""
        raise InvalidInput(f'Entities of project "{self.project}" are notes; use delete_note')

    @verb
    def version(self) -> Any:
        """A value that differs once something changed."""
        self._core.fresh()
        return self._core.db.total_changes, self._core.db.execute("pragma data_version").fetchone()[0]

    def _shown(self, item: Item, row: EntityRow) -> str:
        folder = posixpath.dirname(row.path)
        found = resolve.resolve(self._core.db, item.target, project=self.project, folder=folder,
                                viewer=self.memory.agent, target_project=item.project)  # fmt: skip
        return found.note.title if found.note and found.note.project == self.project else item.target

    def _said(self, row: EntityRow, plan: _Edits) -> list[str]:
        return _observations(plan.text(row).text)

    def _place_nobody(self, plan: _Edits, name: str, pairs: Sequence[tuple[str, str]]) -> None:
        raise NoEntity(name)


class EveryGraph:
    """All projects the caller may see; each entity tells its project. Read-only."""

    def __init__(self, graphs: dict[str, Graph]):
        self._graphs = graphs

    def keys(self) -> list[Key]:
        """Every entity, in order."""
        return self._each(lambda graph: graph.keys())

    def named(self, names: Iterable[str]) -> list[Key]:
        """The entities of these names, in order."""
        wanted = list(names)
        return self._each(lambda graph: graph.named(wanted))

    def matching(self, text: str) -> list[Key]:
        """The entities that hold `text`, in order."""
        return self._each(lambda graph: graph.matching(text))

    def ranked(self, text: str) -> list[Key]:
        """The best of each project in turn."""
        found = {name: [_of(name, key) for key in graph.ranked(text)] for name, graph in self._graphs.items()}
        longest = max(map(len, found.values()), default=0)
        return [keys[at] for at in range(longest) for keys in found.values() if at < len(keys)]

    def observations(self, keys: Sequence[Key]) -> list[list[str]]:
        """What each of these entities says."""
        return [self._graphs[key.project or ""].observations([key])[0] for key in keys]

    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations of all projects."""
        found = [each for graph in self._graphs.values() for each in graph.relations(names)]
        return sorted(found, key=lambda each: each.order)

    def version(self) -> Any:
        """A value that differs once something changed."""
        return [graph.version() for graph in self._graphs.values()]

    def warnings(self) -> list[str]:
        """What the graph files hold that is kept and ignored."""
        return [text for graph in self._graphs.values() for text in graph.warnings()]

    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns, every project as it is at one moment."""
        for graph in self._graphs.values():
            read = partial(graph.at_once, read)
        return read()

    def _each(self, read: Any) -> list[Key]:
        found = [_of(name, key) for name, graph in self._graphs.items() for key in read(graph)]
        return sorted(found, key=lambda key: key.order)

    def _refuse(self, _: Any) -> NoReturn:
        raise InvalidInput("Name one project to write to")

    create_entities = create_relations = add_observations = _refuse
    delete_entities = delete_observations = delete_relations = _refuse


def _of(project: str, key: Key) -> Key:
    return key._replace(project=project, order=(*key.order, project))


def key_of(row: EntityRow) -> Key:
    """An entity's row as a key."""
    assert row.kind is not None
    return Key((row.created, row.path), row.name, row.kind, row.note)


def _header_keys(more: dict[str, Any]) -> dict[str, Any]:
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


def _row(info: NoteInfo) -> EntityRow:
    created = microseconds(parse_stamp(info.created))
    return EntityRow(info.row, created, info.path, info.scope, info.title, info.type)


def _relation(source: NoteInfo, edge: Edge, target: str) -> Relation:
    order = (microseconds(parse_stamp(source.created)), source.path, edge.line)
    return Relation(source.title, target, edge.type, order)


def _observations(text: str) -> list[str]:
    """Items that are observations by either rule, each once, in the order of the text."""
    items = EntityText(text)
    found = {each.line: each.text for each in scan(text, items.body_at)[0]}
    found |= items.observed_lines()
    return [found[line] for line in sorted(found)]


def open_graph(memory: Memory, project: str) -> Graph:
    """The graph of `project`: its own of project `graph`, of a graph file, the notes of any other, of all with `*`.

    Raises ProjectNotFound.
    """
    if project == EVERY:
        return every(memory)
    store = memory._core.store(project)
    if isinstance(store, GraphStore):
        return FileGraph(memory, store)
    return NoteGraph(memory) if store.name == NoteGraph.project else ProjectGraph(memory, store.name)


def opener(file: Path) -> Callable[[Memory, str], Graph]:
    """(memory, project) -> its graph, where that of project `graph` is kept in `file`."""
    alone = GraphStore(file.stem, file)

    def open_here(memory: Memory, project: str) -> Graph:
        kept = FileGraph(memory, store_of(memory, alone.root) or alone)
        if project.lower() == NoteGraph.project:
            return kept
        return every(memory, kept) if project == EVERY else open_graph(memory, project)

    return open_here


def every(memory: Memory, own: FileGraph | None = None) -> Graph:
    """All projects together; `own` where a file is kept in place of the notes of project `graph`, which then show in
    no graph."""
    graphs = {each.name: open_graph(memory, each.name) for each in memory.projects}
    if own is not None:
        del graphs[NoteGraph.project]
        if own.store not in (memory._core.stores.get(name) for name in graphs):
            graphs = {NoteGraph.project: own, **graphs}
    return EveryGraph(graphs)
