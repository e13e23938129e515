"""The graph a caller means: of project `graph`, of a file, of any project's notes, of all projects together."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from commonplace.clock import microseconds, parse_stamp
from commonplace.engine.engine import verb
from commonplace.engine.entities import EntityKey, Graph, GraphRelation, NoEntity, T
from commonplace.engine.file_graph import FileGraph, store_of
from commonplace.engine.graph import GraphEdits, NoteGraph, key_of
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
    """The notes of a project as entities: title, type, and what the note grammar finds in them."""

    def __init__(self, session: ReadVerbs, project: str):
        super().__init__(session)
        self.project = project

    @verb
    def keys(self) -> list[EntityKey]:
        """Every note the caller sees, in the order of their written times."""
        infos, _ = self.session.list(Query(projects=(self.project,)), limit=0, order="path")
        return sorted((key_of(_row(info)) for info in infos), key=lambda key: key.order)

    @verb
    def matching(self, text: str) -> list[EntityKey]:
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
    def ranked(self, text: str) -> list[EntityKey]:
        """The notes the engine's search finds, best first."""
        hits = self.session.search(Query(text=text, projects=(self.project,)), limit=1000)
        return [key_of(_row(hit.note)) for hit in hits]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """What each of these notes says: observations of the note grammar, and items under `Observations`."""
        return [_observations("".join(self._index.notes.text_of(key.handle))) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """The relations of the note grammar with at least one end among `names` (None: all), in order."""
        self.engine.fresh()
        index, viewer = self._index, self.session.agent
        rows = [key.handle for key in self.keys()] if names is None else [row.note for row in self._notes(names)]
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
        found = []
        for edge in self._index.links.outgoing(info, self.session.agent):
            is_here = edge.note is not None and edge.note.project == self.project
            found.append(_relation(info, edge, edge.note.title if edge.note and is_here else edge.target))
        return found

    def _notes(self, names: Iterable[str]) -> list[EntityRow]:
        rows = self._index.entities.titled(self.project, names, self.session.agent)
        return sorted((_row(info) for info in self._index.notes.in_order(rows)), key=lambda row: row[1:3])

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Refused."""
        raise InvalidInput(f'Entities of project "{self.project}" are notes; use delete_note')

    @verb
    def version(self) -> Any:
        """A value that differs once something changed."""
        self.engine.fresh()
        return self._index.version()

    def _target_of(self, item: Item, row: EntityRow) -> str:
        found = self._index.links.resolve(
            item.target, project=self.project, folder=posixpath.dirname(row.path), viewer=self.session.agent,
            target_project=item.project,
        )  # fmt: skip
        return found.note.title if found.note and found.note.project == self.project else item.target

    def _observations_of(self, text: EntityText) -> list[str]:
        return _observations(text.text)

    def _create_source(self, edits: GraphEdits, name: str, pairs: Sequence[tuple[str, str]]) -> None:
        raise NoEntity(name)


class EveryGraph:
    """All projects the caller may see; each entity tells its project. Read-only."""

    def __init__(self, graphs: dict[str, Graph]):
        self._graphs = graphs

    def keys(self) -> list[EntityKey]:
        """Every entity, in order."""
        return self._each(lambda graph: graph.keys())

    def named(self, names: Iterable[str]) -> list[EntityKey]:
        """The entities of these names, in order."""
        wanted = list(names)
        return self._each(lambda graph: graph.named(wanted))

    def matching(self, text: str) -> list[EntityKey]:
        """The entities that hold `text`, in order."""
        return self._each(lambda graph: graph.matching(text))

    def ranked(self, text: str) -> list[EntityKey]:
        """The best of each project in turn."""
        found = {name: [_of(name, key) for key in graph.ranked(text)] for name, graph in self._graphs.items()}
        longest = max(map(len, found.values()), default=0)
        return [keys[at] for at in range(longest) for keys in found.values() if at < len(keys)]

    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """What each of these entities says."""
        return [self._graphs[key.project or ""].observations([key])[0] for key in keys]

    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """The further keys of each of these entities."""
        return [self._graphs[key.project or ""].further([key])[0] for key in keys]

    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
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

    def _each(self, read: Any) -> list[EntityKey]:
        found = [_of(name, key) for name, graph in self._graphs.items() for key in read(graph)]
        return sorted(found, key=lambda key: key.order)

    def _refuse(self, _: Any) -> NoReturn:
        raise InvalidInput("Name one project to write to")

    create_entities = create_relations = add_observations = _refuse
    delete_entities = delete_observations = delete_relations = _refuse


def _of(project: str, key: EntityKey) -> EntityKey:
    return key._replace(project=project, order=(*key.order, project))


def open_graph(session: ReadVerbs, project: str) -> Graph:
    """The graph of `project`: its own of project `graph`, of a graph file, the notes of any other, of all with `*`.

    Raises ProjectNotFound.
    """
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
    return EveryGraph(graphs)


def _row(info: NoteInfo) -> EntityRow:
    created = microseconds(parse_stamp(info.created))
    return EntityRow(info.row, created, info.path, info.scope, info.title, info.type)


def _relation(source: NoteInfo, edge: Edge, target: str) -> GraphRelation:
    order = (microseconds(parse_stamp(source.created)), source.path, edge.line)
    return GraphRelation(source.title, target, edge.type, order)


def _observations(text: str) -> list[str]:
    """Items that are observations by either rule, each once, in the order of the text."""
    items = EntityText(text)
    found = {each.line: each.text for each in scan(text, items.body_at)[0]}
    found |= items.observed_lines()
    return [found[line] for line in sorted(found)]
