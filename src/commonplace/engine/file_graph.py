"""The graph kept in a JSON Lines file, used in place (contract 002, 2 and 6)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from commonplace.clock import stamp
from commonplace.engine import limits
from commonplace.engine.engine import verb
from commonplace.engine.entities import (
    Entity,
    EntityKey,
    GraphRelation,
    NoEntity,
    T,
    entity_line,
    merge_entities,
    relation_line,
    unique_entities,
)
from commonplace.engine.reading import ReadVerbs
from commonplace.engine.writing import as_file
from commonplace.errors import CannotUndo, CommonplaceError, NotFound, StorageError
from commonplace.query import Query
from commonplace.store.change import Step
from commonplace.store.inplace import KeptLines, LineChange
from commonplace.store.inplace.graph_lines import BadLine, parse_graph_object, parse_line, with_members
from commonplace.store.inplace.graph_store import EntityLine, GraphStore, LineEdit
from commonplace.store.journal import LINES, Change

_MAX_RANKED = 1000


class FileGraph:
    """The graph in a file. The caller is only recorded in the history: graph files have no scopes."""

    def __init__(self, session: ReadVerbs, store: GraphStore):
        self.session = session
        self.engine = session.engine
        self.store = store
        self._is_current = False

    @verb
    def keys(self) -> list[EntityKey]:
        """Every entity, in order."""
        self._fresh()
        return [_key(each) for each in self.store.entities.values()]

    @verb
    def named(self, names: Iterable[str]) -> list[EntityKey]:
        """The entities of these names, in order."""
        self._fresh()
        lines = sorted(line for name in set(names) for line in self.store.named.get(name, ()))
        return [_key(self.store.entities[line]) for line in lines]

    @verb
    def matching(self, text: str) -> list[EntityKey]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""
        self._fresh()
        wanted = text.lower()
        return [_key(each) for each in self.store.entities.values() if wanted in each.lowered]

    @verb
    def ranked(self, text: str) -> list[EntityKey]:
        """The entities that hold the words of `text` in any order, best first; types count last."""
        self._fresh()
        words = text.lower().split()
        holding = [each for each in self.store.entities.values() if all(word in each.lowered for word in words)]
        found: dict[int, EntityLine] = {}
        if self.engine.stores.get(self.store.name) is self.store:
            hits = self.session.search(Query(text=text, projects=(self.store.name,)), limit=_MAX_RANKED)
            entities = [self.store.entity(hit.note.path) for hit in hits]
            found = {each.number: each for each in entities if each is not None}
        else:  # no project of this process: nothing of the file is in the index
            holding.sort(key=lambda each: (-_weight(each, words), each.number))
        found |= {each.number: each for each in holding if words and each.number not in found}
        return [_key(each) for each in found.values()]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        """What each of these entities says, in stored order."""
        return [list(key.handle.observations) for key in keys]

    @verb
    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        """The further keys of each of these entities' lines."""
        return [json.loads(self.store.lines[key.handle.number]) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        """The relations with at least one end among `names` (None: all), in order."""
        self._fresh()
        if names is None:
            return list(self.store.relations.values())
        lines = {line for name in names for line in self.store.ends.get(name, ())}
        return [self.store.relations[line] for line in sorted(lines)]

    @verb
    def version(self) -> Any:
        """A value that differs once something changed, also when the file cannot be served."""
        try:
            self._fresh()
        except CommonplaceError as error:
            return str(error)
        return self.store.changes

    @verb
    def warnings(self) -> list[str]:
        """What the file holds that is kept and ignored, as it was at the last look."""
        return self.store.warnings()

    @verb
    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns: the file is looked at once, before."""
        self._fresh()
        self._is_current = True
        try:
            return read()
        finally:
            self._is_current = False

    def _fresh(self) -> None:
        """Show what is on disk, after completing what a writer of this home that died left."""
        if self._is_current:
            return
        self.store.fresh()
        if self.engine.home.lines.waits():
            self.engine.home.try_to_recover()
            self.store.fresh()

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""
        wanted = unique_entities(entities)
        created: list[Entity] = []

        def plan() -> LineEdit:
            created[:] = [each for name, each in wanted.items() if name not in self.store.named]
            return LineEdit(added=[_line(entity_line(each)) for each in created], verb="write")

        self.change(plan)
        return created

    @verb
    def create_relations(self, relations: Sequence[GraphRelation]) -> list[GraphRelation]:
        """Store those that are new; their ends need not exist. Returns them."""
        wanted = list({each.triple: each for each in relations}.values())
        created: list[GraphRelation] = []

        def plan() -> LineEdit:
            created[:] = [each for each in wanted if not self._lines_of(each)]
            return LineEdit(added=[_line(relation_line(each)) for each in created])

        self.change(plan)
        return created

    @verb
    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet, to the first of twins. Returns what was new.

        Raises NoEntity.
        """
        results: list[tuple[str, list[str]]] = []

        def plan() -> LineEdit:
            results.clear()
            said: dict[str, list[str]] = {}
            fresh: set[str] = set()
            for name, texts in additions:
                if name not in self.store.named:
                    raise NoEntity(name)
                known = said.setdefault(name, list(self._first(name).observations))
                there = set(known)
                added = [text for text in dict.fromkeys(texts) if text not in there]
                known += added
                fresh |= {name} if added else set()
                results.append((name, added))
            return self._saying({name: said[name] for name in fresh})

        self.change(plan)
        return results

    @verb
    def merge(self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[GraphRelation]) -> None:
        """Take in another graph as one change: entities that exist get the observations they lack, twins become
        one. The keys that come with a new entity go into its line."""
        wanted = merge_entities(entities)

        def plan() -> LineEdit:
            there = {name: self._first(name).observations for name in wanted if name in self.store.named}
            said = {name: [*dict.fromkeys([*known, *wanted[name][1]])] for name, known in there.items()
                    if not wanted[name][1].keys() <= set(known)}  # fmt: skip
            edit = self._saying(said)
            edit.verb = "import"
            edit.added = [
                _line(entity_line(Entity(name, kind, tuple(texts)), keys))
                for name, (kind, texts, keys) in wanted.items()
                if name not in there
            ]
            unique = {each.triple: each for each in relations}.values()
            edit.added += [_line(relation_line(each)) for each in unique if not self._lines_of(each)]
            return edit

        self.change(plan)

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities, all of one name, and every relation at either end; unknown names are no error."""

        def plan() -> LineEdit:
            lines = {line for name in names for line in self.store.named.get(name, ())}
            lines |= {line for name in names for line in self.store.ends.get(name, ())}
            return LineEdit(dict.fromkeys(sorted(lines), b""), verb="delete")

        self.change(plan)

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations, of the first of twins; what is not there is no error."""

        def plan() -> LineEdit:
            said: dict[str, list[str]] = {}
            for name, texts in deletions:
                if name in self.store.named:
                    gone = set(texts)
                    now = said[name] if name in said else self._first(name).observations
                    said[name] = [text for text in now if text not in gone]
            return self._saying(said)

        self.change(plan)

    @verb
    def delete_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove relations, all copies; what is not there is no error."""

        def plan() -> LineEdit:
            lines = sorted({line for each in relations for line in self._lines_of(each)})
            return LineEdit(dict.fromkeys(lines, b""), verb="delete")

        self.change(plan)

    def change(self, plan: Callable[[], LineEdit], undoes: int | None = None) -> Change | None:
        """Carry out what `plan` says, logged as an undo of change `undoes` if that is given. Returns the change,
        None when nothing was to be done. Raises NotAGraphFile, StorageError."""
        engine, made = self.engine, list[Change]()

        def announce(lines: LineChange) -> None:
            number = engine.home.history.last + 1
            name, file = self.store.name, os.path.basename(self.store.root)
            agent, face, by = self.session.agent, self.session.face, self.session.by or None
            written = Step("put", name, "", file, data=b"".join([*lines.new, *lines.added]), old=as_file(b""))
            limits.check([written], engine.settings, agent, engine.day_use, engine.clock())
            made[:] = [Change(number, stamp(engine.clock()), lines.verb, name, file, agent, face, undoes=undoes, by=by)]
            engine.home.lines.begin(made[0], lines)

        def admitted() -> LineEdit:
            edit = plan()
            if undoes is None:
                text = b"".join([*edit.lines.values(), *edit.added]).decode("utf-8", "replace")
                self.session.admitted(text, self.store.name, [self.store.lines[n] for n in edit.lines], whole=True)
            return edit

        with engine.writing(), engine.home.lines.changing():
            engine.guard.keep()
            self.store.change(admitted, announce)
            engine.commits += bool(made)
        return made[0] if made else None

    def _first(self, name: str) -> EntityLine:
        return self.store.entities[self.store.named[name][0]]

    def _lines_of(self, relation: GraphRelation) -> list[int]:
        """Where it stands: at the end with fewer relations."""
        ends = [self.store.ends.get(name, {}) for name in (relation.source, relation.target)]
        lines = min(ends, key=len)
        return [line for line in lines if self.store.relations[line].triple == relation.triple]

    def _saying(self, said: dict[str, list[str]]) -> LineEdit:
        """The edit after which these entities say just that; all else in their lines stays."""
        edit = LineEdit()
        for name, texts in said.items():
            entity = self._first(name)
            if tuple(texts) == entity.observations:
                continue
            line = self.store.lines[entity.number]
            kind = {} if (parse_line(line) or {}).get("entityType") is not None else {"entityType": entity.type}
            edit.lines[entity.number] = with_members(line, **kind, observations=texts)
        return edit


def undo_lines(session: ReadVerbs, change: Change, blocked: Callable[[str, str], CannotUndo]) -> Change:
    """Take back `change`, which is one to lines; the home's lock is held. `blocked` words that a place changed since.

    Raises CannotUndo, NotAGraphFile, StorageError.
    """
    engine = session.engine
    touched = next(each for each in change.files if each.do == LINES and each.new is not None)
    try:
        kept = engine.home.lines.kept(touched)
    except (NotFound, StorageError):
        raise CannotUndo(f"cannot undo #{change.number}: its lines are no longer kept") from None
    known = engine.stores.get(touched.project)
    store = known if isinstance(known, GraphStore) else store_of(session, touched.file)
    graph = FileGraph(session, store or GraphStore(touched.project, touched.file))

    def plan() -> LineEdit:
        edit = _inverse(graph.store, kept)
        if edit is None:
            raise blocked(change.project, change.path)
        return edit

    made = graph.change(plan, undoes=change.number)
    if made is None:
        raise CannotUndo(f"cannot undo #{change.number}: nothing of it is left")
    return made


def store_of(session: ReadVerbs, file: str) -> GraphStore | None:
    """The project that is the graph file at this absolute path, None when none is."""
    stores = session.engine.stores.values()
    return next((each for each in stores if isinstance(each, GraphStore) and each.root == file), None)


def _inverse(store: GraphStore, kept: KeptLines) -> LineEdit | None:
    """The edit that takes it back; None when a line of it is not there as it was left, or what went is there again."""
    slots: dict[bytes, list[int]] = {}
    for slot, line in enumerate(store.lines):
        if line:
            slots.setdefault(line.rstrip(b"\r\n"), []).append(slot)
    edit = LineEdit(verb="undo")
    for line in reversed(kept.added):
        if not (found := slots.get(line.rstrip(b"\r\n"))):
            return None
        edit.lines[found.pop()] = b""
    returning: list[tuple[int, bytes]] = []
    for number, old, new in kept.replaced:
        if not new:
            returning.append((number, old))
        elif found := slots.get(new.rstrip(b"\r\n")):
            edit.lines[found.pop(0)] = old
        else:
            return None
    if any(_is_there(store, edit, old) for _, old in returning):
        return None
    left = [slot for slot, line in enumerate(store.lines) if line and edit.lines.get(slot) != b""]
    for before, (number, old) in enumerate(returning):
        at = number - before
        edit.inserted.setdefault(left[at] if at < len(left) else len(store.lines), []).append(old)
    return edit


def _is_there(store: GraphStore, edit: LineEdit, line: bytes) -> bool:
    """Whether the entity or relation of a line stands in the file, but for what the edit removes."""
    try:
        found = parse_graph_object(parse_line(line) or {})
    except BadLine:
        return False
    if isinstance(found, GraphRelation):
        slots = [slot for slot in store.ends.get(found.source, ()) if store.relations[slot].triple == found.triple]
    else:
        slots = store.named.get(found.name, []) if found is not None else []
    return any(slot not in edit.lines for slot in slots)


def _key(entity: EntityLine) -> EntityKey:
    return EntityKey((entity.order,), entity.name, entity.type, entity)


def _weight(entity: EntityLine, words: Sequence[str]) -> int:
    name, kind = entity.name.lower(), entity.type.lower()
    return sum(4 * (word in name) + 2 * (word in kind) + (name == word) for word in words)


def _line(text: str) -> bytes:
    return text.encode() + b"\n"
