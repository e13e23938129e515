"""The notes of any project seen as a graph, and all projects together (contract 002, 10)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from commonplace.clock import microseconds, parse_stamp
from commonplace.engine.entities import Entity, Graph, Key, NoEntity, Relation, T
from commonplace.engine.graph_file import FileGraph
from commonplace.engine.graph_notes import NoteGraph, NotesEdit, key_of
from commonplace.engine.graph_store import GraphStore
from commonplace.engine.projects import ProjectVerbs
from commonplace.engine.session import verb
from commonplace.errors import InvalidInput
from commonplace.index.entities import EntityRow
from commonplace.index.rows import Edge, NoteInfo
from commonplace.note.entity import EntityText
from commonplace.note.grammar import scan
from commonplace.note.model import Relation as Item
from commonplace.query import Query

EVERY = "*"


def open_graph(memory: ProjectVerbs, project: str) -> Graph:
    """The graph of `project`: its own of project `graph`, of a graph file, the notes of any other, of all with `*`.

    Raises ProjectNotFound.
    """
    if project == EVERY:
        return every(memory)
    store = memory.engine.store(project)
    if store.holds_entities:
        return FileGraph(memory, store)
    return NoteGraph(memory) if store.name == NoteGraph.project else ProjectGraph(memory, store.name)


def graph_store_at(memory: ProjectVerbs, root: str) -> GraphStore | None:
    """The project that is the graph file at this absolute path, None when none is."""
    stores = memory.engine.stores.values()
    return next((each for each in stores if each.holds_entities and each.root == root), None)


def opener(file: Path) -> Callable[[ProjectVerbs, str], Graph]:
    """(memory, project) -> its graph, where that of project `graph` is kept in `file`."""
    alone = GraphStore(file.stem, file)

    def open_here(memory: ProjectVerbs, project: str) -> Graph:
        kept = FileGraph(memory, graph_store_at(memory, alone.root) or alone)
        if project.lower() == NoteGraph.project:
            return kept
        return every(memory, kept) if project == EVERY else open_graph(memory, project)

    return open_here


def every(memory: ProjectVerbs, own: FileGraph | None = None) -> Graph:
    """All projects together; `own` where a file is kept in place of the notes of project `graph`, which then show in
    no graph."""
    graphs = {each.name: open_graph(memory, each.name) for each in memory.projects}
    if own is not None:
        del graphs[NoteGraph.project]
        if own.store not in (memory.engine.stores.get(name) for name in graphs):
            graphs = {NoteGraph.project: own, **graphs}
    return EveryGraph(graphs)


class ProjectGraph(NoteGraph):
    """The notes of a project as entities: title, type, and what the note grammar finds in them."""

    def __init__(self, memory: ProjectVerbs, project: str):
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
        return [_observations("".join(self.engine.index.notes.text_of(key.handle))) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations of the note grammar with at least one end among `names` (None: all), in order."""
        self.engine.fresh()
        index, viewer = self.engine.index, self.memory.agent
        rows = [key.handle for key in self.keys()] if names is None else [row.note for row in self._notes(names)]
        found: set[Relation] = set()
        for info in index.notes.in_order(rows):
            found.update(self._leaving(info))
            if names is not None:
                for edge in index.links.incoming(info, viewer):
                    if edge.note is not None and edge.note.project == self.project:
                        found.add(_relation(edge.note, edge, info.title))
        for info in index.notes.in_order(index.entities.linking(self.project, names or (), viewer)):
            found.update(each for each in self._leaving(info) if names and each.target in names)
        return sorted(found, key=lambda each: (each.order, each.triple))

    def _leaving(self, info: NoteInfo) -> list[Relation]:
        edges = self.engine.index.links.outgoing(info, self.memory.agent)
        return [_relation(info, edge, self._target(edge)) for edge in edges]

    def _target(self, edge: Edge) -> str:
        return edge.note.title if edge.note is not None and edge.note.project == self.project else edge.target

    def _notes(self, names: Iterable[str]) -> list[EntityRow]:
        rows = self.engine.index.entities.titled(self.project, names, self.memory.agent)
        return sorted((_row(info) for info in self.engine.index.notes.in_order(rows)), key=lambda row: row[1:3])

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Refused."""
        raise InvalidInput(f'Entities of project "{self.project}" are notes; use delete_note')

    @verb
    def version(self) -> Any:
        """A value that differs once something changed."""
        self.engine.fresh()
        return self.engine.index.version()

    def _shown(self, item: Item, row: EntityRow) -> str:
        folder = posixpath.dirname(row.path)
        found = self.engine.index.links.resolve(item.target, project=self.project, folder=folder,
                                viewer=self.memory.agent, target_project=item.project)  # fmt: skip
        return found.note.title if found.note and found.note.project == self.project else item.target

    def _said(self, row: EntityRow, plan: NotesEdit) -> list[str]:
        return _observations(plan.text(row).text)

    def _place_nobody(self, plan: NotesEdit, name: str, pairs: Sequence[tuple[str, str]]) -> None:
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

    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Refused, as is every change."""
        raise _refusal()

    def create_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        raise _refusal()

    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        raise _refusal()

    def delete_entities(self, names: Sequence[str]) -> None:
        raise _refusal()

    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        raise _refusal()

    def delete_relations(self, relations: Sequence[Relation]) -> None:
        raise _refusal()


def _refusal() -> InvalidInput:
    return InvalidInput("Name one project to write to")


def _of(project: str, key: Key) -> Key:
    return key._replace(project=project, order=(*key.order, project))


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
