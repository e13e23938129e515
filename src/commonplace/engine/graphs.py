"""The graph a caller means: of project `graph`, of a file, of any project's notes, of all projects together."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from commonplace.clock import microseconds, parse_stamp
from commonplace.engine.engine import verb
from commonplace.engine.entities import EntityKey, GraphRelation
from commonplace.engine.file_graph import FileGraph, store_of
from commonplace.engine.graph import NoteGraph, key_of
from commonplace.engine.graph_verbs import MAX_RANKED, Graph, T
from commonplace.engine.reading import ReadVerbs
from commonplace.errors import InvalidInput
from commonplace.index.entity_queries import PROJECT, EntityRow
from commonplace.index.rows import Edge, NoteInfo
from commonplace.note.entity import EntityText
from commonplace.note.grammar import scan
from commonplace.note.model import Relation as Item
from commonplace.query import Query
from commonplace.store.inplace.graph_store import GraphStore

EVERY = "*"


class ProjectGraph(NoteGraph):
    """The notes of a project as entities: title, type, and what the note grammar finds in them, ordered by when they
    were written."""

    makes_sources = False

    def __init__(self, session: ReadVerbs, project: str):
        super().__init__(session)
        self.project = project

    @verb
    def keys(self) -> list[EntityKey]:
        infos, _ = self.session.list(Query(projects=(self.project,)), limit=0, order="path")
        return sorted((key_of(_row(info)) for info in infos), key=lambda key: key.order)

    @verb
    def matching(self, text: str) -> list[EntityKey]:
        wanted, keys = text.lower(), self.keys()
        return [
            key
            for key, texts in zip(keys, self.observations(keys), strict=True)
            if any(wanted in each.lower() for each in (key.name, key.type, *texts))
        ]

    @verb
    def ranked(self, text: str) -> list[EntityKey]:
        hits = self.session.search(Query(text=text, projects=(self.project,)), limit=MAX_RANKED)
        return [key_of(_row(hit.note)) for hit in hits]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        return [self.observed(EntityText("".join(self._index.notes.text_of(key.handle)))) for key in keys]

    def observed(self, text: EntityText) -> list[str]:
        """Observations of the note grammar, and items under `Observations`, each once, in the order of the text."""
        found = {each.line: each.text for each in scan(text.text, text.body_at)[0]} | text.observed_lines()
        return [found[line] for line in sorted(found)]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        self.engine.fresh()
        index, viewer = self._index, self.session.agent
        rows = [key.handle for key in self.keys()] if names is None else [row.note for row in self.notes(names)]
        found: set[GraphRelation] = set()
        for info in index.notes.in_order(rows):
            found.update(self._leaving(info))
            if names is not None:
                for edge in index.links.incoming(info, viewer):
                    if edge.note is not None and edge.note.project == self.project:
                        found.add(_relation(edge.note, edge, info.title))
        for info in index.notes.in_order(index.entities.linking(self.project, names or (), viewer)):
            found.update(each for each in self._leaving(info) if names and each.target in names)
        return sorted(found, key=lambda each: (each.order, each.triple))

    def _leaving(self, info: NoteInfo) -> list[GraphRelation]:
        edges = self._index.links.outgoing(info, self.session.agent)
        return [_relation(info, edge, self._name_of(edge.note, edge.target)) for edge in edges]

    def _name_of(self, note: NoteInfo | None, target: str) -> str:
        return note.title if note is not None and note.project == self.project else target

    def notes(self, names: Iterable[str]) -> list[EntityRow]:
        rows = self._index.entities.titled(self.project, names, self.session.agent)
        return sorted((_row(info) for info in self._index.notes.in_order(rows)), key=lambda row: row[1:3])

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        raise InvalidInput(f'Entities of project "{self.project}" are notes; use delete_note')

    @verb
    def version(self) -> Any:
        self.engine.fresh()
        return self._index.version()

    def target_of(self, item: Item, row: EntityRow) -> str:
        note = self._index.links.resolve(
            item.target, project=self.project, folder=posixpath.dirname(row.path), viewer=self.session.agent,
            target_project=item.project,
        )  # fmt: skip
        return self._name_of(note, item.target)


class EveryGraph(Graph):
    """All projects the caller may see; each entity tells its project. Read-only."""

    def __init__(self, session: ReadVerbs, graphs: dict[str, Graph]):
        super().__init__(session)
        self._graphs = graphs

    def keys(self) -> list[EntityKey]:
        return self._each(lambda graph: graph.keys())

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        wanted = list(names)
        return self._each(lambda graph: graph.named(wanted))

    def matching(self, text: str) -> list[EntityKey]:
        return self._each(lambda graph: graph.matching(text))

    def ranked(self, text: str) -> list[EntityKey]:
        """The best of each project in turn."""
        found = [[_of(name, key) for key in graph.ranked(text)] for name, graph in self._graphs.items()]
        return [key for keys in zip_longest(*found) for key in keys if key is not None]

    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        return [self._graphs[key.project or ""].observations([key])[0] for key in keys]

    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        return [self._graphs[key.project or ""].further([key])[0] for key in keys]

    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        found = [each for graph in self._graphs.values() for each in graph.relations(names)]
        return sorted(found, key=lambda each: each.order)

    def version(self) -> Any:
        return [graph.version() for graph in self._graphs.values()]

    def warnings(self) -> list[str]:
        return [text for graph in self._graphs.values() for text in graph.warnings()]

    def at_once(self, read: Callable[[], T]) -> T:
        for graph in self._graphs.values():
            read = partial(graph.at_once, read)
        return read()

    def _each(self, read: Callable[[Graph], list[EntityKey]]) -> list[EntityKey]:
        found = [_of(name, key) for name, graph in self._graphs.items() for key in read(graph)]
        return sorted(found, key=lambda key: key.order)

    def _change(self, *_: Any) -> Any:
        raise InvalidInput("Name one project to write to")


def _of(project: str, key: EntityKey) -> EntityKey:
    return key._replace(project=project, order=(*key.order, project))


def open_graph(session: ReadVerbs, project: str) -> Graph:
    """The graph of `project`: its own of project `graph`, of a graph file, the notes of any other, of all with `*`.
    Raises ProjectNotFound."""
    if project == EVERY:
        return _every(session)
    store = session.engine.store(project)
    if isinstance(store, GraphStore):
        return FileGraph(session, store)
    return NoteGraph(session) if store.name == PROJECT else ProjectGraph(session, store.name)


def graph_project(name: str, file: Path) -> os.PathLike[str]:
    """The graph file as a project `name` for `open_memory`, whatever the file is called and whether it is there."""
    return GraphStore(name, file, optional=True)


def opener(file: Path) -> Callable[[ReadVerbs, str], Graph]:
    """(session, project) -> its graph, where that of project `graph` is kept in `file`."""
    alone = GraphStore(file.stem, file)

    def open_here(session: ReadVerbs, project: str) -> Graph:
        own = FileGraph(session, store_of(session, alone.root) or alone)
        if project.lower() == PROJECT:
            return own
        return _every(session, own) if project == EVERY else open_graph(session, project)

    return open_here


def graph_in(session: ReadVerbs, file: Path | None) -> NoteGraph | FileGraph:
    """The graph kept in `file`, or, without one, in the notes of project `graph`."""
    return NoteGraph(session) if file is None else FileGraph(session, GraphStore(file.stem, file))


def _every(session: ReadVerbs, own: FileGraph | None = None) -> Graph:
    """All projects together; `own` where a file is kept in place of the notes of project `graph`, which then show in
    no graph."""
    graphs = {name: open_graph(session, name) for name in session.engine.stores}
    if own is not None:
        del graphs[PROJECT]
        if own.store not in session.engine.stores.values():
            graphs = {PROJECT: own, **graphs}
    return EveryGraph(session, graphs)


def _row(info: NoteInfo) -> EntityRow:
    created = microseconds(parse_stamp(info.created))
    return EntityRow(info.row, created, info.path, info.scope, info.title, info.type)


def _relation(source: NoteInfo, edge: Edge, target: str) -> GraphRelation:
    order = (microseconds(parse_stamp(source.created)), source.path, edge.line)
    return GraphRelation(source.title, target, edge.type, order)
