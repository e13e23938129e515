"""The graph kept in a JSON Lines file, used in place (contract 002, 2 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.engine.entities import Entity, Key, NoEntity, Relation, T
from commonplace.engine.graph_store import GraphStore, Said
from commonplace.engine.session import verb
from commonplace.errors import CommonplaceError
from commonplace.query import Query
from commonplace.store.journal import Change
from commonplace.store.json_lines import dumped, replaced, value_of
from commonplace.store.records import Coming, Edit

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory

_MOST_RANKED = 1000
_OWN_KEYS = frozenset(("type", "name", "entityType", "observations"))


class FileGraph:
    """The graph in a file; who asks matters for the history alone, as a graph file knows no scopes."""

    def __init__(self, memory: Memory, store: GraphStore):
        self.memory = memory
        self.store = store
        self._core = memory._core
        self._held = store.held
        self._is_still = False

    # --- reading --------------------------------------------------------------------------------

    @verb
    def keys(self) -> list[Key]:
        """Every entity, in order."""
        self._fresh()
        return [_key(each) for each in self._held.entities.values()]

    @verb
    def named(self, names: Iterable[str]) -> list[Key]:
        """The entities of these names, in order."""
        self._fresh()
        lines = sorted(line for name in set(names) for line in self._held.named.get(name, ()))
        return [_key(self._held.entities[line]) for line in lines]

    @verb
    def matching(self, text: str) -> list[Key]:
        """The entities whose name, type or any one observation holds `text`, in lower case; in order."""
        self._fresh()
        wanted = text.lower()
        return [_key(each) for each in self._held.entities.values() if wanted in each.lowered]

    @verb
    def ranked(self, text: str) -> list[Key]:
        """The entities that hold the words of `text` in any order, best first; types count last."""
        self._fresh()
        words = text.lower().split()
        holding = [each for each in self._held.entities.values() if all(word in each.lowered for word in words)]
        found: dict[int, Said] = {}
        if self._core.stores.get(self.store.name) is self.store:
            hits = self.memory.search(Query(text=text, projects=(self.store.name,)), limit=_MOST_RANKED)
            entities = [self.store.entity(hit.note.path) for hit in hits]
            found = {each[0].line: each[0] for each in entities if each is not None}
        else:  # no project of this process: nothing of the file is in the index
            holding.sort(key=lambda each: (-_weight(each, words), each.line))
        found |= {each.line: each for each in holding if words and each.line not in found}
        return [_key(each) for each in found.values()]

    @verb
    def observations(self, keys: Sequence[Key]) -> list[list[str]]:
        """What each of these entities says, in stored order."""
        return [list(key.handle.observations) for key in keys]

    @verb
    def relations(self, names: set[str] | None = None) -> list[Relation]:
        """The relations with at least one end among `names` (None: all), in order."""
        self._fresh()
        if names is None:
            return list(self._held.relations.values())
        lines = {line for name in names for line in self._held.ends.get(name, ())}
        return [self._held.relations[line] for line in sorted(lines)]

    @verb
    def version(self) -> Any:
        """A value that differs once something changed, also when the file cannot be served."""
        try:
            self._fresh()
        except CommonplaceError as error:
            return str(error)
        return self._held.changes

    @verb
    def warnings(self) -> list[str]:
        """What the file holds that is kept and ignored, as it was at the last look."""
        return self._held.warnings()

    @verb
    def at_once(self, read: Callable[[], T]) -> T:
        """What `read` returns: the file is looked at once, before."""
        self._fresh()
        self._is_still = True
        try:
            return read()
        finally:
            self._is_still = False

    def _fresh(self) -> None:
        if not self._is_still:
            self.store.fresh(self._core.home)

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
            return Edit(added=[_entity_line(each) for each in created], verb="write")

        self.change(plan)
        return created

    @verb
    def create_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        """Store those that are new; their ends need not exist. Returns them."""
        wanted = list({each.triple: each for each in relations}.values())
        created: list[Relation] = []

        def plan() -> Edit:
            created[:] = [each for each in wanted if not self._lines_of(each)]
            return Edit(added=[_relation_line(each) for each in created])

        self.change(plan)
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

        self.change(plan)
        return results

    @verb
    def merge(self, entities: Sequence[tuple[Entity, dict[str, Any]]], relations: Sequence[Relation]) -> None:
        """Take in another graph as one change: entities that exist get the observations they lack, twins become
        one. The keys that come with a new entity go into its line."""
        wanted: dict[str, tuple[str, dict[str, None], dict[str, Any]]] = {}
        for each, more in entities:
            _, texts, keys = wanted.setdefault(each.name, (each.type, {}, {}))
            texts |= dict.fromkeys(each.observations)
            keys |= {key: value for key, value in more.items() if key not in keys}

        def plan() -> Edit:
            there = {name: self._first(name).observations for name in wanted if name in self._held.named}
            said = {name: [*dict.fromkeys([*known, *wanted[name][1]])] for name, known in there.items()
                    if not wanted[name][1].keys() <= set(known)}  # fmt: skip
            edit = self._saying(said)
            edit.verb = "import"
            edit.added = [
                _entity_line(Entity(name, kind, tuple(texts)), keys)
                for name, (kind, texts, keys) in wanted.items()
                if name not in there
            ]
            unique = {each.triple: each for each in relations}.values()
            edit.added += [_relation_line(each) for each in unique if not self._lines_of(each)]
            return edit

        self.change(plan)

    # --- deleting -------------------------------------------------------------------------------

    @verb
    def delete_entities(self, names: Sequence[str]) -> None:
        """Remove entities, all of one name, and every relation at either end; unknown names are no error."""

        def plan() -> Edit:
            lines = {line for name in names for line in self._held.named.get(name, ())}
            lines |= {line for name in names for line in self._held.ends.get(name, ())}
            return Edit(dict.fromkeys(sorted(lines), b""), verb="delete")

        self.change(plan)

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

        self.change(plan)

    @verb
    def delete_relations(self, relations: Sequence[Relation]) -> None:
        """Remove relations, all copies; what is not there is no error."""

        def plan() -> Edit:
            lines = sorted({line for each in relations for line in self._lines_of(each)})
            return Edit(dict.fromkeys(lines, b""), verb="delete")

        self.change(plan)

    # --- changing -------------------------------------------------------------------------------

    def change(self, plan: Callable[[], Edit], undoes: int | None = None) -> Change | None:
        """Carry out what `plan` says, logged as an undo of change `undoes` if that is given. Returns the change,
        None when nothing was to be done. Raises NotRecords, StorageError."""
        core, lines, made = self._core, self._core.home.lines, list[Change]()

        def keep(coming: Coming) -> None:
            number = core.home.history.last + 1
            name, file = self.store.name, self._held.records.name
            made[:] = [Change(number, stamp(core.clock()), coming.verb, name, file, self.memory.agent, self.memory.face,
                              undoes=undoes)]  # fmt: skip
            lines.begin(made[0], coming)

        with core.writing(), lines.changing():
            self._held.change(plan, keep)
            core.commits += bool(made)
        return made[0] if made else None

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


def _key(said: Said) -> Key:
    return Key((said.order,), said.name, said.type, said)


def _weight(said: Said, words: Sequence[str]) -> int:
    name, kind = said.name.lower(), said.type.lower()
    return sum(4 * (word in name) + 2 * (word in kind) + (name == word) for word in words)


def _entity_line(entity: Entity, more: dict[str, Any] | None = None) -> bytes:
    value = {"type": "entity", "name": entity.name, "entityType": entity.type, "observations": entity.observations}
    value |= {key: each for key, each in (more or {}).items() if key not in _OWN_KEYS}
    return dumped(value).encode() + b"\n"


def _relation_line(relation: Relation) -> bytes:
    value = {"type": "relation", "from": relation.source, "to": relation.target, "relationType": relation.type}
    return dumped(value).encode() + b"\n"
