"""The graph kept in a JSON Lines file, used in place (contract 002, 2 and 6)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from commonplace.clock import stamp
from commonplace.engine.engine import verb
from commonplace.engine.entities import EntityKey, GraphRelation
from commonplace.engine.graph_verbs import MAX_RANKED, Graph, GraphEdits, T
from commonplace.engine.reading import ReadVerbs
from commonplace.engine.write_gate import check_limits
from commonplace.engine.writing import as_file
from commonplace.errors import CannotUndo, CommonplaceError, NotFound, StorageError
from commonplace.query import Query
from commonplace.store.change import Step
from commonplace.store.inplace import KeptLines, LineChange
from commonplace.store.inplace.graph_lines import said_by
from commonplace.store.inplace.graph_store import EntityLine, GraphStore, LineEdit
from commonplace.store.journal import LINES, Change


class FileGraph(Graph):
    """The graph in a file. The caller is only recorded in the history: graph files have no scopes."""

    def __init__(self, session: ReadVerbs, store: GraphStore):
        super().__init__(session)
        self.store = store
        self._is_current = False

    @verb
    def keys(self) -> list[EntityKey]:
        self._fresh()
        return [_key(each) for each in self.store.entities.values()]

    @verb
    def named(self, names: Iterable[str]) -> list[EntityKey]:
        self._fresh()
        lines = sorted(line for name in set(names) for line in self.store.named.get(name, ()))
        return [_key(self.store.entities[line]) for line in lines]

    @verb
    def matching(self, text: str) -> list[EntityKey]:
        self._fresh()
        wanted = text.lower()
        return [_key(each) for each in self.store.entities.values() if wanted in each.lowered]

    @verb
    def ranked(self, text: str) -> list[EntityKey]:
        self._fresh()
        words = text.lower().split()

        def weight(entity: EntityLine) -> int:
            name, kind = entity.name.lower(), entity.type.lower()
            return sum(4 * (word in name) + 2 * (word in kind) + (name == word) for word in words)

        holding = [each for each in self.store.entities.values() if all(word in each.lowered for word in words)]
        found: dict[int, EntityLine] = {}
        if self.engine.stores.get(self.store.name) is self.store:
            hits = self.session.search(Query(text=text, projects=(self.store.name,)), limit=MAX_RANKED)
            entities = [self.store.entity(hit.note.path) for hit in hits]
            found = {each.number: each for each in entities if each is not None}
        else:  # no project of this process: nothing of the file is in the index
            holding.sort(key=lambda each: (-weight(each), each.number))
        found |= {each.number: each for each in holding if words and each.number not in found}
        return [_key(each) for each in found.values()]

    @verb
    def observations(self, keys: Sequence[EntityKey]) -> list[list[str]]:
        return [list(key.handle.observations) for key in keys]

    @verb
    def further(self, keys: Sequence[EntityKey]) -> list[dict[str, Any]]:
        return [json.loads(self.store.lines[key.handle.number]) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[GraphRelation]:
        self._fresh()
        if names is None:
            return list(self.store.relations.values())
        lines = {line for name in names for line in self.store.ends.get(name, ())}
        return [self.store.relations[line] for line in sorted(lines)]

    @verb
    def version(self) -> Any:
        try:
            self._fresh()
        except CommonplaceError as error:
            return str(error)
        return self.store.changes

    @verb
    def warnings(self) -> list[str]:
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

    def _change(self, verb: str, names: Iterable[str], plan: Callable[[GraphEdits], T]) -> T:
        results = list[T]()

        def edited() -> LineEdit:
            edit = LineEdit(self.store, names, verb)
            results.append(plan(edit))
            edit.finish()
            return edit

        self.change(edited)
        return results[-1]

    def change(self, plan: Callable[[], LineEdit], undoes: int | None = None) -> Change | None:
        """Carry out what `plan` says, logged as an undo of change `undoes` if that is given. Returns the change,
        None when nothing was to be done. Raises NotAGraphFile, StorageError."""
        engine, made = self.engine, list[Change]()

        def announce(lines: LineChange) -> None:
            number = engine.home.history.last + 1
            name, file = self.store.name, os.path.basename(self.store.root)
            agent, face, by = self.session.agent, self.session.face, self.session.by or None
            written = Step("put", name, "", file, data=b"".join([*lines.new, *lines.added]), old=as_file(b""))
            check_limits([written], engine.settings, agent, engine.day_use, engine.clock())
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


def undo_lines(session: ReadVerbs, change: Change, blocked: Callable[[str, str], CannotUndo]) -> Change:
    """Take back `change`, which is one to lines; the home's lock is held. `blocked` words that a place changed since.
    Raises CannotUndo, NotAGraphFile, StorageError."""
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
    edit = LineEdit(store, verb="undo")
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
    found = said_by(line)
    if isinstance(found, GraphRelation):
        slots = [slot for slot in store.ends.get(found.source, ()) if store.relations[slot].triple == found.triple]
    else:
        slots = store.named.get(found.name, []) if found is not None else []
    return any(slot not in edit.lines for slot in slots)


def _key(entity: EntityLine) -> EntityKey:
    return EntityKey((entity.order,), entity.name, entity.type, entity)
