"""The graph kept in a JSON Lines file, used in place (contract 002, 2 and 6)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.engine.entities import Entity, Graph, Key, NoEntity, Relation
from commonplace.engine.memory import verb
from commonplace.errors import CommonplaceError
from commonplace.store.history import LINES, Change, Touched
from commonplace.store.records import BadLine, Edit, Records, dumped, replaced, value_of

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory

_BETWEEN = "\udfff"
"""Between lowered texts: no text of a graph holds a lone surrogate."""
_MOST_WARNINGS = 5
_log = logging.getLogger("commonplace.graph")


def opener(file: Path) -> Callable[[Memory, str], Graph]:
    """(memory, project) -> its graph, where that of project `graph` is kept in `file`."""
    held = Held(file)

    def open_graph(memory: Memory, project: str) -> Graph:
        from commonplace.engine.graph_notes import NoteGraph
        from commonplace.engine.graph_projects import open_graph as open_notes

        if project.lower() == NoteGraph.project:
            return FileGraph(memory, held)
        return open_notes(memory, project)

    return open_graph


@dataclass(frozen=True, slots=True)
class Said:
    """An entity line. `order` outlives other lines, also when the file is read again."""

    line: int
    order: int
    name: str
    type: str
    observations: tuple[str, ...]
    lowered: str


class Held:
    """What the lines of a graph file say, looked up by names. For one thread at a time."""

    def __init__(self, file: Path, *, tells: bool = True):
        """`tells`: whether what is kept and ignored is logged at each load."""
        self.records = Records(file)
        self._tells = tells
        self.changes = 0
        self._loads = 0
        self._last = 0
        self._clear()

    def _clear(self) -> None:
        self.entities: dict[int, Said] = {}
        self.relations: dict[int, Relation] = {}
        self.named: dict[str, list[int]] = {}
        self.ends: dict[str, dict[int, None]] = {}
        self.bad: dict[int, str] = {}

    def fresh(self) -> None:
        """Show what is on disk. Raises NotRecords, StorageError."""
        self.records.fresh()
        self.take_up()

    def take_up(self) -> None:
        """Show the lines of the records, if they were read again."""
        if self._loads == self.records.loads:
            return
        known: dict[str, list[int]] = {}
        for each in self.entities.values():
            known.setdefault(each.name, []).append(each.order)
        self._clear()
        highest, self._last = self._last, 0
        for number, line in enumerate(self.records.lines):
            self._take(number, line, known)
        self._last = max(highest, self._last)
        self._loads = self.records.loads
        self.changes += 1
        for text in self.warnings() if self._tells else ():
            _log.warning("%s", text)

    def change(self, plan: Callable[[], Edit], keep: Callable[[str, bytes], None]) -> None:
        """Carry out what `plan` says, when it runs with everything on disk shown; see Records.change."""

        def planned() -> Edit:
            self.take_up()
            return plan()

        edit = self.records.change(planned, keep)
        self.changes += bool(edit.lines or edit.added)
        for number, line in edit.lines.items():
            before = self.entities.get(number)
            if before is None or not line:
                self._drop(number)
            if line:
                self._take(number, line, {before.name: [before.order]} if before else {})
        first = len(self.records.lines) - len(edit.added)
        for number, line in enumerate(edit.added, first):
            self._take(number, line, {})

    def warnings(self) -> list[str]:
        """What the file holds that is kept and ignored, in few words."""
        numbers, seen = {}, 0
        for number, line in enumerate(self.records.lines if self.bad else ()):
            seen += bool(line)
            numbers[number] = seen
        name = self.records.name
        texts = [f"{name} line {numbers[number]}: {why}, kept and ignored" for number, why in self.bad.items()]
        more = len(texts) - _MOST_WARNINGS
        return [*texts[:_MOST_WARNINGS], f"and {more} more"] if more > 0 else texts

    def _take(self, number: int, line: bytes, known: dict[str, list[int]]) -> None:
        """Look the line up from now on; `known` are the orders entities of a name had, first ones first."""
        try:
            found = read_line(line)
        except BadLine as error:
            self.bad[number] = str(error)
            return
        if isinstance(found, Relation):
            self.relations[number] = Relation(*found.triple, (number,))
            for name in (found.source, found.target):
                self.ends.setdefault(name, {})[number] = None
        elif found is not None:
            orders = known.get(found.name)
            order = orders.pop(0) if orders else self._last + 1
            if number not in self.entities:
                order = max(order, self._last + 1)
                self._last = order
                self.named.setdefault(found.name, []).append(number)
            lowered = _BETWEEN.join((found.name, found.type, *found.observations)).lower()
            self.entities[number] = Said(number, order, found.name, found.type, found.observations, lowered)

    def _drop(self, number: int) -> None:
        """Forget the line."""
        if (entity := self.entities.pop(number, None)) is not None:
            self.named[entity.name].remove(number)
            if not self.named[entity.name]:
                del self.named[entity.name]
        if (relation := self.relations.pop(number, None)) is not None:
            for name in {relation.source, relation.target}:
                self.ends[name].pop(number, None)
                if not self.ends[name]:
                    del self.ends[name]


class FileGraph:
    """The graph in a file; who asks matters for the history alone, as a graph file knows no scopes."""

    def __init__(self, memory: Memory, held: Held):
        self.memory = memory
        self._core = memory._core
        self._held = held

    # --- reading --------------------------------------------------------------------------------

    @verb
    def keys(self) -> list[Key]:
        """Every entity, in order."""
        self._held.fresh()
        return [_key(each) for each in self._held.entities.values()]

    @verb
    def named(self, names: Iterable[str]) -> list[Key]:
        """The entities of these names, in order."""
        self._held.fresh()
        lines = sorted(line for name in set(names) for line in self._held.named.get(name, ()))
        return [_key(self._held.entities[line]) for line in lines]

    @verb
    def matching(self, text: str) -> list[Key]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""
        self._held.fresh()
        wanted = text.lower()
        return [_key(each) for each in self._held.entities.values() if wanted in each.lowered]

    @verb
    def ranked(self, text: str) -> list[Key]:
        """The entities that hold the words of `text` in any order; words of the name count most, then of the type."""
        self._held.fresh()
        words = text.lower().split()
        found = [each for each in self._held.entities.values() if all(word in each.lowered for word in words)]
        found.sort(key=lambda each: (-_weight(each, words), each.line))
        return [_key(each) for each in found]

    @verb
    def observations(self, keys: Sequence[Key]) -> list[list[str]]:
        """What each of these entities says, in stored order."""
        return [list(key.handle.observations) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations with at least one end among `names` (None: all), in order."""
        self._held.fresh()
        if names is None:
            return list(self._held.relations.values())
        lines = {line for name in names for line in self._held.ends.get(name, ())}
        return [self._held.relations[line] for line in sorted(lines)]

    @verb
    def version(self) -> Any:
        """A value that differs once something changed, also when the file cannot be served."""
        try:
            self._held.fresh()
        except CommonplaceError as error:
            return str(error)
        return self._held.changes

    @verb
    def warnings(self) -> list[str]:
        """What the file holds that is kept and ignored, as it was at the last look."""
        return self._held.warnings()

    # --- creating -------------------------------------------------------------------------------

    @verb
    def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Store those whose name is new, equal observations once; of twins the first counts. Returns them."""
        wanted: dict[str, Entity] = {}
        for each in entities:
            wanted.setdefault(each.name, Entity(each.name, each.type, tuple(dict.fromkeys(each.observations))))
        created: list[Entity] = []

        def plan() -> Edit:
            created[:] = [each for name, each in wanted.items() if name not in self._held.named]
            return Edit(added=[_entity_line(each) for each in created])

        self._change(plan)
        return created

    @verb
    def create_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        """Store those that are new; their ends need not exist. Returns them."""
        wanted = list({each.triple: each for each in relations}.values())
        created: list[Relation] = []

        def plan() -> Edit:
            created[:] = [each for each in wanted if not self._lines_of(each)]
            return Edit(added=[_relation_line(each) for each in created])

        self._change(plan)
        return created

    @verb
    def add_observations(self, additions: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
        """Add to each named entity what it does not say yet, to the first of twins. Returns what was new.

        Raises NoEntity.
        """
        results: list[tuple[str, list[str]]] = []

        def plan() -> Edit:
            results.clear()
            said: dict[str, list[str]] = {}
            fresh: set[str] = set()
            for name, texts in additions:
                if name not in self._held.named:
                    raise NoEntity(name)
                known = said.setdefault(name, list(self._first(name).observations))
                there = set(known)
                added = [text for text in dict.fromkeys(texts) if text not in there]
                known += added
                fresh |= {name} if added else set()
                results.append((name, added))
            return self._saying({name: said[name] for name in fresh})

        self._change(plan)
        return results

    # --- deleting -------------------------------------------------------------------------------

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities, all of one name, and every relation at either end; unknown names are no error."""

        def plan() -> Edit:
            lines = {line for name in names for line in self._held.named.get(name, ())}
            lines |= {line for name in names for line in self._held.ends.get(name, ())}
            return Edit(dict.fromkeys(sorted(lines), b""), verb="delete")

        self._change(plan)

    @verb
    def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Remove all copies of observations, of the first of twins; what is not there is no error."""

        def plan() -> Edit:
            said: dict[str, list[str]] = {}
            for name, texts in deletions:
                if name in self._held.named:
                    gone = set(texts)
                    now = said[name] if name in said else self._first(name).observations
                    said[name] = [text for text in now if text not in gone]
            return self._saying(said)

        self._change(plan)

    @verb
    def delete_relations(self, relations: Sequence[Relation]) -> None:
        """Remove relations, all copies; what is not there is no error."""

        def plan() -> Edit:
            lines = sorted({line for each in relations for line in self._lines_of(each)})
            return Edit(dict.fromkeys(lines, b""), verb="delete")

        self._change(plan)

    # --- changing -------------------------------------------------------------------------------

    def _change(self, plan: Callable[[], Edit]) -> None:
        self._held.change(plan, self._keep)
        self._core.commits += 1

    def _first(self, name: str) -> Said:
        return self._held.entities[self._held.named[name][0]]

    def _lines_of(self, relation: Relation) -> list[int]:
        """Where it stands: at the end with fewer relations."""
        ends = [self._held.ends.get(name, {}) for name in (relation.source, relation.target)]
        lines = min(ends, key=len)
        return [line for line in lines if self._held.relations[line].triple == relation.triple]

    def _saying(self, said: dict[str, list[str]]) -> Edit:
        """The edit after which these entities say just that; all else in their lines stays."""
        edit = Edit()
        for name, texts in said.items():
            entity = self._first(name)
            if tuple(texts) == entity.observations:
                continue
            line = self._held.records.lines[entity.line]
            if (value_of(line) or {}).get("entityType") is None:
                line = replaced(line, "entityType", entity.type)
            edit.lines[entity.line] = replaced(line, "observations", texts)
        return edit

    def _keep(self, verb: str, old: bytes) -> None:
        """Keep lines that go in the history of the home."""
        core, file = self._core, self._held.records.path
        with core.home.lock:
            history = core.home.history
            touched = Touched(LINES, file.stem, file.name, old=history.keep_bytes(old))
            history.append(Change(history.last + 1, stamp(core.clock()), verb, file.stem, file.name,
                                  self.memory.agent, self.memory.face, [touched]))  # fmt: skip


def read_line(line: bytes) -> Entity | Relation | None:
    """What a line says; None for a blank one and one of another type. Raises BadLine."""
    value = value_of(line)
    if value is None:
        return None
    kind = value.get("type")
    if kind == "entity":
        name, type_, texts = value.get("name"), value.get("entityType"), value.get("observations")
        if not isinstance(name, str):
            raise BadLine("an entity without a name")
        if not isinstance(type_, str | None) or not (texts is None or _are_texts(texts)):
            raise BadLine("an entity whose type or observations are no texts")
        return Entity(_sound(name), _sound(type_ or ""), tuple(map(_sound, texts or ())))
    if kind == "relation":
        ends = [value.get(key) for key in ("from", "to", "relationType")]
        if not _are_texts(ends):
            raise BadLine("a relation without from, to or relationType")
        return Relation(*map(_sound, ends))
    if not isinstance(kind, str):
        raise BadLine("an object without a type")
    return None


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(each, str) for each in values)


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _key(said: Said) -> Key:
    return Key((said.order,), said.name, said.type, said)


def _weight(said: Said, words: Sequence[str]) -> int:
    name, kind = said.name.lower(), said.type.lower()
    return sum(4 * (word in name) + 2 * (word in kind) + (name == word) for word in words)


def _entity_line(entity: Entity) -> bytes:
    value = {"type": "entity", "name": entity.name, "entityType": entity.type, "observations": entity.observations}
    return dumped(value).encode() + b"\n"


def _relation_line(relation: Relation) -> bytes:
    value = {"type": "relation", "from": relation.source, "to": relation.target, "relationType": relation.type}
    return dumped(value).encode() + b"\n"
