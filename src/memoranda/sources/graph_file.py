"""A graph file of another program as the source of a project: each entity is a note (contract 002).

The file has one JSON object a line: an entity with its observations, or a relation between two
entities. It is read and changed in place. A change writes only the lines it is about; all other bytes
stay, and no other file is kept beside it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import (
    CannotRead,
    Conflict,
    InvalidInput,
    MemorandaError,
    NotFound,
    ReadOnlyProject,
    StorageError,
)
from memoranda.note import frontmatter
from memoranda.note.entity import Entity, GraphRelation, file_stem, sections
from memoranda.note.model import VALIDITY_KEYS
from memoranda.sources import graph_lines
from memoranda.sources.base import File, Listing, PathInfo, Stamp, sha256
from memoranda.sources.files import reason, stamp_of
from memoranda.sources.line_change import KeptLines, LineChange, former_places
from memoranda.sources.locked_file import Append, FileWrite, LockedFile, Replacement
from memoranda.sources.step import Step, StepKind
from memoranda.text.user_path import absolute_path

MAX_APPEND = 65536
"""Up to this number of bytes are appended. For more, a new file is renamed over the old one."""
# Separates texts in `EntityLine.lowered`: no text of a graph contains a lone surrogate.
_SEPARATOR = "\udfff"
# After this number of warnings comes "and N more".
_MAX_WARNINGS = 5
_SUFFIX = ".md"
# Longer names of entities are cut in the path of a twin's note.
_MAX_STEM_CHARACTERS = 80
# A stamp that no file has: the file must be read again.
_UNKNOWN = Stamp(-1, -1, -1)
_log = logging.getLogger("memoranda.graph")


class NotAGraphFile(InvalidInput):
    """The file does not have one JSON object a line.

    shape: what it is instead, in words such as `a JSON array`.
    """

    def __init__(self, file: str, shape: str):
        super().__init__(
            f"{os.path.basename(file)} is {shape}, not one JSON object a line; nothing was changed."
            f" Take it into the notes with: memory graph import {file}"
        )


class EntityLine(NamedTuple):
    """An entity of the file.

    number: the number of its line, from 0.
    order: sorts entities by when they were added. Unlike `number`, it stays when other lines are
        removed.
    lowered: name, type and observations in lower case, for searching.
    """

    number: int
    order: int
    name: str
    type: str
    observations: tuple[str, ...]
    lowered: str


class _FormerOrders:
    """The `order` of entities that are parsed again, so that each gets back the one it had."""

    def __init__(self, entities: Iterable[EntityLine] = ()):
        # name -> the orders of its entities, the first one first
        self._by_name: dict[str, list[int]] = {}
        for entity in entities:
            self._by_name.setdefault(entity.name, []).append(entity.order)

    def take(self, name: str) -> int | None:
        """Return the order of an entity, each one once. Of twins, the first gets the first order.

        None for an entity that is new.
        """
        orders = self._by_name.get(name)
        return orders.pop(0) if orders else None


class LineEdit:
    """The edits that one call makes to the lines of a graph file.

    Several entities may have the same name (twins). Then a name means the first of them.

    names: the names of entities that the call is about.
    verb: the kind of the change in the history.
    lines: number of a line (from 0) -> its new bytes. Empty for a line to remove.
    added: lines to add at the end.
    inserted: number of a line -> lines to insert before it.
    present_names: the names among `names` that are entities of the file.
    """

    def __init__(self, source: GraphFileSource, names: Iterable[str] = (), verb: str = "edit"):
        self.lines: dict[int, bytes] = {}
        self.added: list[bytes] = []
        self.inserted: dict[int, list[bytes]] = {}
        self.verb = verb
        self.present_names = {name for name in names if name in source.named}
        self._source = source
        # name of an entity -> all its observations after this edit
        self._observations: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.lines or self.added or self.inserted)

    def observations(self, name: str) -> list[str]:
        """Return the observations of an entity, with the edits made so far."""
        if name in self._observations:
            return self._observations[name]
        return list(self._source.first_entity(name).observations)

    def add_observations(self, name: str, texts: Sequence[str]) -> None:
        """Add observations to an entity."""
        self._observations[name] = [*self.observations(name), *texts]

    def drop_observations(self, name: str, texts: set[str]) -> None:
        """Remove all copies of these observations of an entity."""
        self._observations[name] = [text for text in self.observations(name) if text not in texts]

    def create(self, entity: Entity, more: dict[str, Any]) -> None:
        """Add a new entity.

        more: further keys of its JSON object.
        """
        self.added.append(graph_lines.entity_line(entity, more).encode() + b"\n")

    def add_keys(self, name: str, more: dict[str, Any]) -> None:
        """Do nothing: further keys of an existing line belong to another program.

        name, more: the entity and the keys, which a graph of notes would store.
        """

    def _lines_of(self, relation: GraphRelation) -> list[int]:
        """Return the numbers of the lines that have this relation."""
        ends = self._source.ends
        lines_at_source = ends.get(relation.source, {})
        lines_at_target = ends.get(relation.target, {})
        # Both have the relation, so only the shorter one is searched
        candidates = min(lines_at_source, lines_at_target, key=len)
        return [
            line for line in candidates if self._source.relations[line].triple == relation.triple
        ]

    def has(self, relation: GraphRelation) -> bool:
        """Whether the file has the relation, without regard to this edit."""
        return bool(self._lines_of(relation))

    def add_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Add relations, which the file must not have yet."""
        self.added += [
            graph_lines.relation_line(relation).encode() + b"\n" for relation in relations
        ]

    def drop_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove all lines of these relations."""
        self.verb = "delete"
        lines_of_relations = chain.from_iterable(map(self._lines_of, relations))
        self.lines |= dict.fromkeys(lines_of_relations, b"")

    def remove_entities(self, names: Sequence[str]) -> None:
        """Remove all entities with these names, and every relation from or to them."""
        for name in names:
            lines_of_entities = self._source.named.get(name, ())
            lines_of_relations = self._source.ends.get(name, ())
            self.lines |= dict.fromkeys([*lines_of_entities, *lines_of_relations], b"")

    def finish(self) -> None:
        """Set the new lines of the entities whose observations were edited.

        All other keys of a line stay.
        """
        for name, texts in self._observations.items():
            entity = self._source.first_entity(name)
            if tuple(texts) == entity.observations:
                continue
            line = self._source.lines[entity.number]
            value = graph_lines.parse_line(line) or {}
            members: dict[str, Any] = {"observations": texts}
            # Other programs need the type, so a missing one is added
            if value.get("entityType") is None:
                members = {"entityType": entity.type, **members}
            self.lines[entity.number] = graph_lines.with_members(line, **members)


class _PlannedEdit(NamedTuple):
    """An edit that is being made.

    lines: the lines of the file after it.
    change: writes these lines into the file.
    """

    edit: LineEdit
    lines: list[bytes]
    change: LineChange


class GraphFileSource:
    """The entities of the graph file `file` (absolute) as notes of project `name`.

    Each note is at `NAME.md` (contract 002, 5.3). If several entities have the same name (twins),
    only the first has the relations. A note's stamp is the size and a digest of its lines. Only for
    one thread at a time. Methods raise NotAGraphFile and StorageError.

    optional: whether the file may be missing.
    logs: whether lines that are ignored are logged each time the file is read.
    lines: the bytes of the file by line, each with its line break. A line removed since the file
        was read is empty, so that the others keep their numbers (from 0).
    entities, relations: by number of their line.
    named: name -> the numbers of the lines of its entities.
    ends: name -> the numbers of the lines of relations from or to it, as keys.
    bad: number of a line -> why the line is ignored.
    changes: a number that grows with each change of the file.
    """

    holds_entities = True
    away = False

    def __init__(
        self, name: str, file: str | os.PathLike[str], *, optional: bool = False, logs: bool = True
    ):
        self.name = name
        self.optional = optional
        self.root = absolute_path(file)
        self.lines: list[bytes] = []
        self.changes = 0
        self._file = LockedFile(Path(self.root))
        # The stamp of the file when it was read, None if it was missing
        self._stamp: Stamp | None = _UNKNOWN
        # The error to raise, if the file is not a graph
        self._refusal: NotAGraphFile | None = None
        # The bytes of a file in another form, such as a JSON array. The next change turns it into
        # `lines`.
        self._other_form: bytes | None = None
        # Whether lines that are ignored are also logged
        self._logs = logs
        # Holds the lock on the file while it is changed
        self._opened = ExitStack()
        self._fd: int | None = None
        # The edit that the present change makes
        self._planned: _PlannedEdit | None = None
        # The highest `order` of an entity so far. Later entities get higher ones
        self._last_order = 0
        # path of a note -> name and number of the twin (from 0), and the other way round
        self._places: dict[str, tuple[str, int]] = {}
        self._paths: dict[tuple[str, int], str] = {}
        self._forget()

    def _forget(self) -> None:
        """Empty all that was read from the lines."""
        self.entities: dict[int, EntityLine] = {}
        self.relations: dict[int, GraphRelation] = {}
        self.named: dict[str, list[int]] = {}
        self.ends: dict[str, dict[int, None]] = {}
        self.bad: dict[int, str] = {}
        # The version after the last `changed_since`, and the names whose entities or outgoing
        # relations changed after it
        self._last_version: Stamp | None = _UNKNOWN
        self._touched: set[str] = set()

    def __fspath__(self) -> str:
        return self.root

    def first_entity(self, name: str) -> EntityLine:
        """Return the first entity with this name, which must exist."""
        return self.entities[self.named[name][0]]

    def fresh(self) -> None:
        """Read the file again if it changed.

        Raises NotAGraphFile, StorageError.
        """
        try:
            if self._file.stamp() != self._stamp:
                # It is read for the first time, or after a change that failed
                if self._stamp == _UNKNOWN:
                    self._file.remove_leftover()
                with self._file.locked(write=False) as fd:
                    self._load(fd)
        except IsADirectoryError as error:
            remedy = "Name the file of the graph in it, or a new one."
            raise CannotRead(self._file.name, reason(error), remedy) from None
        except OSError as error:
            raise CannotRead(self._file.name, reason(error)) from None
        if self._refusal is not None:
            raise self._refusal

    def _load(self, fd: int | None) -> None:
        """Read the open file if it changed. None is a missing file, which is read as an empty one.

        If the file is not a graph, only `_refusal` is set.
        """
        stamp = None if fd is None else stamp_of(os.fstat(fd))
        if stamp == self._stamp:
            return
        data = b"" if fd is None else self._file.read(fd)
        # Other programs write without the lock, even while the file is read. Then the next call
        # reads it again.
        is_stable = fd is None or stamp_of(os.fstat(fd)) == stamp
        self._stamp = stamp if is_stable else _UNKNOWN

        # The graph may be one JSON document instead of lines.
        lines_of_other_form = graph_lines.as_lines(data)
        if lines_of_other_form is None:
            self._load_lines(data)
            return
        self._refusal = None
        self._other_form = data
        self._read(lines_of_other_form)

    def _load_lines(self, data: bytes) -> None:
        """Read a file that has one object a line, or set `_refusal` if it is not a graph.

        If the file only grew, the lines that were read before are not parsed again.

        data: the bytes of the file.
        """
        old_lines = self._unchanged_lines(data)
        old_size = sum(map(len, old_lines))
        new_lines = _lines_of(data[old_size:])
        all_lines = [*old_lines, *new_lines]
        self._other_form = None
        shape = graph_lines.shape_of(data, all_lines)
        self._refusal = NotAGraphFile(self.root, shape) if shape else None
        has_nothing_new = bool(old_lines) and not new_lines
        if not shape and not has_nothing_new:
            self._read(all_lines, first=len(old_lines))

    def _unchanged_lines(self, data: bytes) -> Sequence[bytes]:
        """Return the present lines if the file only grew after them. Else return ().

        Most changes only append lines. Then only the new lines have to be parsed.

        data: the bytes of the changed file.
        """
        if self._other_form is not None:
            return ()
        old_data = b"".join(self.lines)
        # If the last line is not complete, the change may have continued it.
        if old_data.endswith(b"\n") and data.startswith(old_data):
            return self.lines
        return ()

    def _read(self, lines: list[bytes], first: int = 0) -> None:
        """Parse `lines`, which are the lines of the file from now on.

        first: the number of the first new line. The lines before it were parsed already. With 0,
            the whole file is parsed, and entities that are still there keep their `order`.
        """
        self.lines = lines
        former_orders = _FormerOrders()
        highest_order = self._last_order
        is_whole_file = first == 0
        if is_whole_file:
            former_orders = _FormerOrders(self.entities.values())
            self._forget()
            self._last_order = 0
        for number in range(first, len(lines)):
            self._parse(number, former_orders)
        # An entity that comes later must not get the order of one that is gone
        self._last_order = max(highest_order, self._last_order)
        self.changes += 1
        if self._logs:
            for text in self.warnings():
                _log.warning("%s", text)

    def _parse(self, number: int, former_orders: _FormerOrders) -> None:
        """Parse line `number`: add its entity or relation, or the reason why the line is ignored.

        former_orders: the orders that entities keep.
        """
        self.bad.pop(number, None)
        try:
            value = graph_lines.parse_line(self.lines[number])
            if value is None:
                # A blank line
                return
            graph_object = graph_lines.parse_graph_object(value)
        except graph_lines.BadLine as error:
            self.bad[number] = str(error)
            return
        if isinstance(graph_object, GraphRelation):
            self.relations[number] = graph_object._replace(order=(number,))
            for name in (graph_object.source, graph_object.target):
                self.ends.setdefault(name, {})[number] = None
            self._touched.add(graph_object.source)
        elif graph_object is not None:
            self._add_entity(number, graph_object, former_orders)

    def _add_entity(self, number: int, entity: Entity, former_orders: _FormerOrders) -> None:
        """Add the entity of line `number`, or replace it. Its order stays if it had one before.

        former_orders: the orders that entities keep.
        """
        next_order = self._last_order + 1
        former_order = former_orders.take(entity.name)
        order = next_order if former_order is None else former_order
        is_new_line = number not in self.entities
        if is_new_line:
            # Entities of later lines have greater orders, even if the lines changed places
            order = max(order, next_order)
            self._last_order = order
            self.named.setdefault(entity.name, []).append(number)
        texts = (entity.name, entity.type, *entity.observations)
        self.entities[number] = EntityLine(
            number=number,
            order=order,
            name=entity.name,
            type=entity.type,
            observations=entity.observations,
            lowered=_SEPARATOR.join(texts).lower(),
        )
        self._touched.add(entity.name)

    def warnings(self) -> list[str]:
        """Return warnings about lines that stay in the file and are ignored.

        `memory.jsonl line 7: not JSON, kept and ignored`
        """
        if not self.bad:
            return []
        # For each line, its number in the file, from 1: removed lines do not count
        numbers_in_file = list(accumulate(1 if line else 0 for line in self.lines))
        texts = [
            f"{self._file.name} line {numbers_in_file[number]}: {why}, kept and ignored"
            for number, why in self.bad.items()
        ]
        hidden_count = len(texts) - _MAX_WARNINGS
        if hidden_count > 0:
            return [*texts[:_MAX_WARNINGS], f"and {hidden_count} more"]
        return texts

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Lock the file until the end of the block. The block may plan and write one edit.

        At the end, `lines` are the lines after the edit. A missing file is made as soon as there is
        something to write. Raises NotAGraphFile, StorageError.
        """
        self._planned = None
        try:
            with ExitStack() as opened:
                self._opened = opened
                self._open(make=False)
                yield
                if self._planned is not None:
                    self._follow_change(self._planned)
        except OSError as error:
            raise StorageError(self._file.name, reason(error)) from None
        finally:
            self._fd = None

    def _open(self, *, make: bool) -> None:
        """Lock the file until the end of `changing`, and read it if it changed.

        make: whether to make a missing file.
        """
        self._fd = self._opened.enter_context(self._file.locked(write=True, make=make))
        self._load(self._fd)
        if self._refusal is not None:
            raise self._refusal

    def steps(self, edit: LineEdit) -> Sequence[Step]:
        """Return the step that makes an edit, and lock the file for it. Empty if nothing changes.

        Raises Conflict if the file was missing, and another program has just made it.
        """
        if not edit:
            return []
        is_missing = self._fd is None
        if is_missing:
            self._open(make=True)
            if self.lines:
                raise Conflict(self._file.name, "of another program", "none")
        assert self._fd is not None
        # If the change fails now, the file is read again
        self._stamp = _UNKNOWN
        lines = self._lines_after(edit)
        change = self._line_change(self._fd, edit, lines)
        self._planned = _PlannedEdit(edit, lines, change)
        return [Step(StepKind.LINES, self.name, "", self._file.name, lines=change)]

    def _follow_change(self, planned: _PlannedEdit) -> None:
        """Use the lines after an edit that was written to the file."""
        write = planned.change.write
        # Only an append has a size. Any other write makes lines of a file in another form.
        if write.size is None:
            self._other_form = None
        self._follow_edit(planned.lines, planned.edit)
        self._stamp = write.stamp or _UNKNOWN

    def inverse(self, kept_lines: KeptLines) -> LineEdit | None:
        return _inverse_edit(self, kept_lines)

    def counted(self, edit: LineEdit) -> Sequence[str]:
        # Entities count no reads
        return ()

    def _lines_after(self, edit: LineEdit) -> list[bytes]:
        """Return the lines after an edit.

        A removed line stays as an empty one, so that the others keep their numbers. If lines are
        inserted, the numbers change anyway, and there are no empty lines.
        """
        lines = [*self.lines]
        for number, line in edit.lines.items():
            lines[number] = line
        has_new_lines = bool(edit.added or edit.inserted)
        if has_new_lines:
            # The last line of a file may lack its line break
            last = _last_line(lines)
            if last is not None and not lines[last].endswith(b"\n"):
                lines[last] += b"\n"
        if edit.inserted:
            lines = _with_insertions(lines, edit.inserted)
        return lines + edit.added

    def _line_change(self, fd: int, edit: LineEdit, lines: list[bytes]) -> LineChange:
        """Return the change that makes an edit, as the ledger records and writes it.

        fd: the descriptor of the file.
        lines: the lines after the edit.
        """
        numbers = sorted(edit.lines)
        inserted = chain.from_iterable(edit.inserted[number] for number in sorted(edit.inserted))
        # The file does not have the lines that were removed since it was read. Here they are empty.
        numbers_in_file = [number - self.lines[:number].count(b"") for number in numbers]
        return LineChange(
            place=self._file.target,
            numbers=numbers_in_file,
            old=[self.lines[number] for number in numbers],
            new=[edit.lines[number] for number in numbers],
            added=[*inserted, *edit.added],
            write=self._file_write(fd, edit, lines),
        )

    def _file_write(self, fd: int, edit: LineEdit, lines: list[bytes]) -> FileWrite:
        """Return the way to write the lines after an edit: an append if possible.

        fd: the descriptor of the file.
        lines: the lines after the edit.
        """
        data = b"".join(edit.added)
        last = _last_line(self.lines)
        if last is not None and not self.lines[last].endswith(b"\n"):
            data = b"\n" + data
        # New lines can be appended if no other line changes, and if the file has lines at all.
        changes_other_lines = bool(edit.lines or edit.inserted)
        can_append = not changes_other_lines and self._other_form is None
        if can_append and len(data) < MAX_APPEND:
            return Append(self._file, fd, data)
        content = b"".join(lines)
        return Replacement(self._file, fd, content, self._other_form, may_overwrite=True)

    def _drop_entity(self, entity: EntityLine) -> None:
        """Forget an entity whose line was emptied."""
        del self.entities[entity.number]
        self._touched.add(entity.name)
        self.named[entity.name].remove(entity.number)
        if not self.named[entity.name]:
            del self.named[entity.name]

    def _drop_relation(self, number: int) -> None:
        """Forget the relation of line `number`, if the line has one."""
        relation = self.relations.pop(number, None)
        if relation is None:
            return
        self._touched.add(relation.source)
        for name in {relation.source, relation.target}:
            self.ends[name].pop(number, None)
            if not self.ends[name]:
                del self.ends[name]

    def _follow_edit(self, lines: list[bytes], edit: LineEdit) -> None:
        """Use `lines` from now on. If possible, only the lines that `edit` changed are parsed."""
        if edit.inserted:
            # The numbers of all later lines changed
            self._read(lines)
            return
        self.lines = lines
        self.changes += 1
        for number, line in edit.lines.items():
            self._follow_line(number, line)
        first_added = len(lines) - len(edit.added)
        for number in range(first_added, len(lines)):
            # A new entity has no earlier order to keep
            self._parse(number, _FormerOrders())

    def _follow_line(self, number: int, line: bytes) -> None:
        """Take up the new text of a line. An empty text removes the line's entity or relation."""
        entity_before = self.entities.get(number)
        is_removed = line == b""
        if is_removed and entity_before is not None:
            self._drop_entity(entity_before)
        self._drop_relation(number)
        if is_removed:
            return
        # An entity that is only edited keeps its order
        edited_entities = [entity_before] if entity_before is not None else []
        self._parse(number, _FormerOrders(edited_entities))

    def path(self, name: str, twin: int = 0) -> str:
        """Return a path for an entity as if it were a note. It stays the same while the object
        exists.

        twin: the number of the entity among the entities with the same name, from 0. The second
            entity `Ann` is at a path such as `Ann 1b2c3d4e-2.md`.
        """
        key = (name, twin)
        if key not in self._paths:
            unique_name = name
            if twin:
                digest = hashlib.sha256(name.encode()).hexdigest()[:8]
                unique_name = f"{name[:_MAX_STEM_CHARACTERS]} {digest}-{twin + 1}"
            stem = file_stem(unique_name, lambda stem: f"{stem}{_SUFFIX}" in self._places)
            self._paths[key] = f"{stem}{_SUFFIX}"
            self._places[self._paths[key]] = key
        return self._paths[key]

    def entity(self, path: str) -> EntityLine | None:
        """Return the entity whose note is at `path`, None if it does not exist."""
        if path not in self._places:
            # `path` chooses a path when it is first called, so call it for all entities
            for name, numbers in self.named.items():
                for twin in range(len(numbers)):
                    self.path(name, twin)
        if path not in self._places:
            return None
        name, twin = self._places[path]
        numbers = self.named.get(name, [])
        if twin >= len(numbers):
            return None
        return self.entities[numbers[twin]]

    def _relations_of(self, entity: EntityLine) -> list[GraphRelation]:
        """Return the relations from an entity, in the order of the file. Only a first twin has any."""
        is_first_twin = self.named[entity.name][0] == entity.number
        if not is_first_twin:
            return []
        relations = [self.relations[number] for number in self.ends.get(entity.name, ())]
        outgoing = [relation for relation in relations if relation.source == entity.name]
        outgoing.sort(key=lambda relation: relation.order)
        return outgoing

    def _stamp_of(self, entity: EntityLine) -> Stamp:
        """Return a stamp made from the lines of an entity and of its relations.

        Its times are 0. With the time of the file, all entities would seem changed after a change
        of one.
        """
        numbers = [entity.number, *(relation.order[0] for relation in self._relations_of(entity))]
        lines = b"".join([self.lines[number] for number in numbers])
        return Stamp(size=len(lines), mtime_ns=0, inode=_digest_of(lines))

    def _note(self, path: str) -> File | None:
        """Return the note at `path` as Markdown, from the lines in memory. None if no entity has it."""
        entity = self.entity(path)
        if entity is None:
            return None
        fields = {"title": entity.name, "type": entity.type, **self._validity_of(entity)}
        relations = [(relation.type, relation.target) for relation in self._relations_of(entity)]
        body = sections(entity.observations, relations)
        data = f"---\n{frontmatter.dump(fields)}---\n{body}".encode()
        changed_ns = self._stamp.mtime_ns if self._stamp is not None else 0
        return File(data, self._stamp_of(entity), sha256(data), changed_ns=changed_ns)

    def _validity_of(self, entity: EntityLine) -> dict[str, Any]:
        """Return the keys of an entity's line that say from when until when it holds."""
        line = self.lines[entity.number]
        # Most lines have none, and need not be parsed again
        if not any(key.encode() in line for key in VALIDITY_KEYS):
            return {}
        value = json.loads(line)
        return {key: value[key] for key in VALIDITY_KEYS if value.get(key)}

    def changed_since(self, version: Stamp | None) -> list[str] | None:
        """Return the paths of the notes that changed since `version`, None if that is not known.

        Only the first caller with a version gets the paths: then they are forgotten.
        """
        self.fresh()
        is_known = self._last_version == version
        names = self._touched
        self._last_version = self._stamp
        self._touched = set()
        if not is_known:
            return None
        changed_paths = []
        # In the order of their first lines
        for name in sorted(names, key=lambda name: self.named.get(name, (0,))[0]):
            changed_paths += self._paths_of(name)
        return changed_paths

    def _paths_of(self, name: str) -> list[str]:
        """Return the paths of all entities with this name, including entities removed by now.

        The path of the first one is always returned.
        """
        twin_count = max(1, len(self.named.get(name, ())))
        while (name, twin_count) in self._paths:
            twin_count += 1
        return [self.path(name, twin) for twin in range(twin_count)]

    def folders(self) -> Iterator[str]:
        # No folder need be watched: `version` is compared before each call
        return iter(())

    def is_note(self, path: str) -> bool:
        return path.endswith(_SUFFIX) and "/" not in path

    def stamp(self, path: str) -> Stamp | None:
        self.fresh()
        entity = self.entity(path)
        if entity is None:
            return None
        return self._stamp_of(entity)

    def read(self, path: str) -> File:
        self.fresh()
        file = self._note(path)
        if file is None:
            raise NotFound(path, self.name)
        return file

    def place(self, path: str) -> PathInfo:
        if not path:
            return PathInfo("folder", "")
        file = self._note(path)
        if file is None:
            return PathInfo("missing", path)
        return PathInfo("file", path, len(file.data))

    def version(self) -> Stamp | None:
        try:
            return self._file.stamp()
        except OSError as error:
            raise StorageError(self._file.name, reason(error)) from None

    def trouble(self) -> str:
        try:
            self.fresh()
        except MemorandaError as error:
            return str(error)
        if self._stamp is None:
            return f"The file of project {self.name} is missing; its notes are as last seen."
        return ""

    def check_writable(self) -> None:
        raise ReadOnlyProject(self.name, self._file.name)

    def list(self, below: str = "") -> Listing:
        """Return the notes with their stamps: one note for each entity, also for each twin.

        below: the folder whose notes are wanted. All notes are in the top folder, which is "". Any
            other folder is empty.
        """
        self.fresh()
        listing = Listing()
        if below:
            return listing
        for name, line_numbers in self.named.items():
            for twin, line_number in enumerate(line_numbers):
                entity = self.entities[line_number]
                listing.stamps[self.path(name, twin)] = self._stamp_of(entity)
        return listing

    def parts(self, below: str, listing: Listing) -> Iterator[None]:
        """Add all notes to `listing`, then yield once: one file is read as a whole.

        below: the folder whose notes are wanted. "" is the top folder, which has all notes.
        """
        listing.stamps.update(self.list(below).stamps)
        yield


def _last_line(lines: Sequence[bytes]) -> int | None:
    """Return the number of the last line that is not empty, None if all are."""
    for number in reversed(range(len(lines))):
        if lines[number]:
            return number
    return None


def _with_insertions(lines: Sequence[bytes], inserted: dict[int, list[bytes]]) -> list[bytes]:
    """Return lines with further ones inserted, and without empty ones.

    inserted: number of a line -> lines to insert before it. The number after the last line is for
        lines at the end.
    """
    result: list[bytes] = []
    for number, line in enumerate(lines):
        result += inserted.get(number, ())
        result.append(line)
    result += inserted.get(len(lines), ())
    return list(filter(None, result))


def _lines_of(data: bytes) -> list[bytes]:
    """Return the lines of a file, each with its line break, which the last one may lack."""
    *ended_lines, last = data.split(b"\n")
    lines = [line + b"\n" for line in ended_lines]
    if last:
        lines.append(last)
    return lines


def _inverse_edit(source: GraphFileSource, kept_lines: KeptLines) -> LineEdit | None:
    """Return the edit that takes a change of these lines back.

    kept_lines: the lines of the change, from the history.

    None if one of its lines has changed since, or if an entity or relation that it removed exists
    again.
    """
    numbers_by_line = _numbers_by_line(source)
    edit = LineEdit(source, verb="undo")

    # Remove the added lines. Of equal lines, the last ones were added.
    for line in reversed(kept_lines.added):
        numbers = numbers_by_line.get(line.rstrip(b"\r\n"))
        if not numbers:
            return None
        edit.lines[numbers.pop()] = b""

    # Put the old text of the changed lines back. A line that has no new text was removed.
    removed_lines: list[tuple[int, bytes]] = []
    for former_number, old, new in kept_lines.replaced:
        if not new:
            removed_lines.append((former_number, old))
            continue
        numbers = numbers_by_line.get(new.rstrip(b"\r\n"))
        if not numbers:
            return None
        edit.lines[numbers.pop(0)] = old

    # Insert the removed lines, unless another line has their entity or relation by now.
    for _, line in removed_lines:
        if _is_there_again(source, edit, line):
            return None
    _insert(source, edit, removed_lines)
    return edit


def _numbers_by_line(source: GraphFileSource) -> dict[bytes, list[int]]:
    """Return line without its line break -> its numbers. Equal lines have several numbers."""
    numbers_by_line: dict[bytes, list[int]] = {}
    for number, line in enumerate(source.lines):
        if line:
            numbers_by_line.setdefault(line.rstrip(b"\r\n"), []).append(number)
    return numbers_by_line


def _is_there_again(source: GraphFileSource, edit: LineEdit, line: bytes) -> bool:
    """Whether the entity or relation of a line is in the file, in a line that `edit` does not change.

    line: a line that was removed.
    """
    entity_or_relation = graph_lines.graph_object_in(line)
    numbers: list[int] = []
    if isinstance(entity_or_relation, GraphRelation):
        numbers = [
            number
            for number in source.ends.get(entity_or_relation.source, ())
            if source.relations[number].triple == entity_or_relation.triple
        ]
    elif entity_or_relation is not None:
        numbers = source.named.get(entity_or_relation.name, [])
    return any(number not in edit.lines for number in numbers)


def _insert(
    source: GraphFileSource, edit: LineEdit, removed_lines: Sequence[tuple[int, bytes]]
) -> None:
    """Add to `edit` the insertion of removed lines at their former places.

    removed_lines: (number, line), with the number that the line had when it was removed.
    """
    remaining_numbers = [
        number for number, line in enumerate(source.lines) if line and edit.lines.get(number) != b""
    ]
    former_numbers = [number for number, _ in removed_lines]
    places = former_places(former_numbers, remaining_numbers, len(source.lines))
    for place, (_, line) in zip(places, removed_lines, strict=True):
        edit.inserted.setdefault(place, []).append(line)


def _digest_of(lines: bytes) -> int:
    """Return a digest of lines, of 63 bits. The index stores it as an integer of SQLite.

    SQLite's integers have 64 bits with a sign, so one of the 64 bits of the hash is dropped.
    """
    digest = hashlib.blake2b(lines, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
