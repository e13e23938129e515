"""A graph file, one JSON object a line, used in place as the source of a project: each entity is a
note (contract 002).

Every line is kept as bytes. What a change does not touch is written back as it was, and nothing
else is beside the file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import (
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
from memoranda.sources.line_change import KeptLines, LineChange
from memoranda.sources.locked_file import Append, FileWrite, LockedFile, Replacement
from memoranda.sources.step import LINES, Step
from memoranda.text.user_path import absolute_path

MAX_APPEND = 65536
"""Bytes: more than that is written beside the file and renamed over it."""
# Between lowered texts: no text of a graph holds a lone surrogate.
_SEPARATOR = "\udfff"
# Warnings of one file before "and N more".
_MAX_WARNINGS = 5
_SUFFIX = ".md"
_UNKNOWN = Stamp(-1, -1, -1)
_log = logging.getLogger("memoranda.graph")


class NotAGraphFile(InvalidInput):
    """The file holds something else than lines; `shape` says what."""

    def __init__(self, file: str, shape: str):
        super().__init__(
            f"{os.path.basename(file)} is {shape}, not one JSON object a line; nothing was changed."
            f" Take it into the notes with: memory graph import {file}"
        )


class EntityLine(NamedTuple):
    """An entity in line `number`. `order` outlives other lines, also when the file is read again;
    `lowered` is all its text in lower case."""

    number: int
    order: int
    name: str
    type: str
    observations: tuple[str, ...]
    lowered: str


class LineEdit:
    """The edits to the lines of `store` by one call.

    names: the entities that the call is about.
    verb: the name of the change in the history.
    lines: line number (from 0) to its new bytes. Empty for a line to remove.
    added: lines to add at the end.
    inserted: lines to put back before a line.
    known: the names that are entities. The first of several twins is meant.
    """

    def __init__(self, source: GraphFileSource, names: Iterable[str] = (), verb: str = "edit"):
        self.lines: dict[int, bytes] = {}
        self.added: list[bytes] = []
        self.inserted: dict[int, list[bytes]] = {}
        self.verb = verb
        self.known = {name for name in names if name in source.named}
        self._source = source
        self._said: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.lines or self.added or self.inserted)

    def observations(self, name: str) -> list[str]:
        """The observations of an entity, with the edits made so far."""
        if name in self._said:
            return self._said[name]
        return list(self._source.entities[self._source.named[name][0]].observations)

    def add_observations(self, name: str, texts: Sequence[str]) -> None:
        """Have an entity say more."""
        self._said[name] = [*self.observations(name), *texts]

    def drop_observations(self, name: str, texts: set[str]) -> None:
        """Remove all copies of these observations of an entity."""
        self._said[name] = [text for text in self.observations(name) if text not in texts]

    def create(self, entity: Entity, more: dict[str, Any]) -> None:
        """Add a new entity, with the further keys `more`."""
        self.added.append(graph_lines.entity_line(entity, more).encode() + b"\n")

    def add_keys(self, name: str, more: dict[str, Any]) -> None:
        """Do nothing: the other keys of a line belong to another program."""

    def _lines_of(self, relation: GraphRelation) -> list[int]:
        """Where a relation stands: at the end with fewer of them."""
        lines = min(
            (self._source.ends.get(name, {}) for name in (relation.source, relation.target)),
            key=len,
        )
        return [line for line in lines if self._source.relations[line].triple == relation.triple]

    def has(self, relation: GraphRelation) -> bool:
        """Whether the relation was there before."""
        return bool(self._lines_of(relation))

    def add_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Add relations that are not there."""
        self.added += [
            graph_lines.relation_line(relation).encode() + b"\n" for relation in relations
        ]

    def drop_relations(self, relations: Sequence[GraphRelation]) -> None:
        """Remove all copies of relations."""
        self.verb = "delete"
        lines_of_relations = chain.from_iterable(map(self._lines_of, relations))
        self.lines |= dict.fromkeys(lines_of_relations, b"")

    def remove_entities(self, names: Sequence[str]) -> None:
        """Remove all entities of these names, and every relation at them."""
        for name in names:
            self.lines |= dict.fromkeys(
                [*self._source.named.get(name, ()), *self._source.ends.get(name, ())], b""
            )

    def finish(self) -> None:
        """Write the present observations of entities into their lines.

        Everything else in them stays.
        """
        for name, texts in self._said.items():
            entity = self._source.entities[self._source.named[name][0]]
            if tuple(texts) != entity.observations:
                line = self._source.lines[entity.number]
                value = graph_lines.parse_line(line) or {}
                if value.get("entityType") is not None:
                    kind = {}
                else:
                    kind = {"entityType": entity.type}
                self.lines[entity.number] = graph_lines.with_members(
                    line, **kind, observations=texts
                )


class GraphFileSource:
    """The entities of the graph file `file` (absolute) as notes of project `name` (see
    sources/base.py).

    Each note is at `<name>.md`, named as in contract 002, 5.3. If several lines have one name, the
    first has the relations. A stamp is the size and a digest of the entity's lines, at any time of
    writing. Not for several threads at once. Methods raise NotAGraphFile and StorageError.

    lines: the file's bytes by line, each with its end. A line removed since the last load is empty.
    entities, relations: by line number.
    named: the lines of the entities of a name.
    ends: the lines of the relations that touch a name.
    bad: the reason why a line is ignored.
    changes: grows with each change seen.
    logs: log ignored lines at each load.
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
        self._stamp: Stamp | None = _UNKNOWN
        self._refusal: NotAGraphFile | None = None
        self._other_form: bytes | None = None
        """The file's bytes where they are not `lines` yet: the next change makes them so."""
        self._logs = logs
        self._opened = ExitStack()
        self._fd: int | None = None
        """The file while it is changed."""
        self._planned: tuple[LineEdit, list[bytes], LineChange] | None = None
        """The edit that is under way, the lines after it, and the change."""
        self._last_order = 0
        self._places: dict[str, tuple[str, int]] = {}
        self._paths: dict[tuple[str, int], str] = {}
        self._forget()

    def _forget(self) -> None:
        self.entities: dict[int, EntityLine] = {}
        self.relations: dict[int, GraphRelation] = {}
        self.named: dict[str, list[int]] = {}
        self.ends: dict[str, dict[int, None]] = {}
        self.bad: dict[int, str] = {}
        self._told: Stamp | None = _UNKNOWN
        self._touched: set[str] = set()
        """The names whose entities or outgoing relations changed since version `_told`; all since
        another one.
        """

    def __fspath__(self) -> str:
        return self.root

    def fresh(self) -> None:
        """Show what is on disk."""
        try:
            if self._file.stamp() != self._stamp:
                if self._stamp == _UNKNOWN:
                    self._file.remove_leftover()
                with self._file.locked(write=False) as fd:
                    self._load(fd)
        except OSError as error:
            raise StorageError(self._file.name, reason(error)) from None
        if self._refusal is not None:
            raise self._refusal

    def _load(self, fd: int | None) -> None:
        stamp = None if fd is None else stamp_of(os.fstat(fd))
        if stamp == self._stamp:
            return
        data = b"" if fd is None else self._file.read(fd)
        known_bytes = b"".join(self.lines)
        other_form = graph_lines.as_lines(data)
        # Other programs write without the lock, also while the file is read
        is_stable = fd is None or stamp_of(os.fstat(fd)) == stamp
        self._stamp = stamp if is_stable else _UNKNOWN
        is_same_form = other_form is None and self._other_form is None
        is_longer = is_same_form and known_bytes.endswith(b"\n") and data.startswith(known_bytes)
        new = _lines_of(data[len(known_bytes) :] if is_longer else data)
        if other_form is None:
            all_lines = [*self.lines, *new] if is_longer else new
            shape = graph_lines.shape_of(data, all_lines)
            self._other_form = None
        else:
            all_lines = other_form
            shape = ""
            self._other_form = data
        self._refusal = NotAGraphFile(self.root, shape) if shape else None
        if not shape and (new or not is_longer):
            self._read(all_lines, len(self.lines) if is_longer else 0)

    def _read(self, lines: list[bytes], first: int = 0) -> None:
        """Use `lines` from now on; those before number `first` are the ones known."""
        self.lines = lines
        orders: dict[str, list[int]] = {}
        highest = self._last_order
        if not first:
            for entity in self.entities.values():
                orders.setdefault(entity.name, []).append(entity.order)
            self._forget()
            self._last_order = 0
        for number in range(first, len(lines)):
            self._take(number, orders)
        self._last_order = max(highest, self._last_order)
        self.changes += 1
        for text in self.warnings() if self._logs else ():
            _log.warning("%s", text)

    def _take(self, number: int, orders: dict[str, list[int]]) -> None:
        """Look line `number` up from now on; `orders` are those that entities of a name had, first
        ones first.
        """
        self.bad.pop(number, None)
        try:
            value = graph_lines.parse_line(self.lines[number])
            if value is None:
                graph_object = None
            else:
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
            known_order = orders.get(graph_object.name)
            if known_order:
                order = known_order.pop(0)
            else:
                order = self._last_order + 1
            if number not in self.entities:
                order = self._last_order = max(order, self._last_order + 1)
                self.named.setdefault(graph_object.name, []).append(number)
            lowered = _SEPARATOR.join(
                (graph_object.name, graph_object.type, *graph_object.observations)
            ).lower()
            self.entities[number] = EntityLine(
                number,
                order,
                graph_object.name,
                graph_object.type,
                graph_object.observations,
                lowered,
            )
            self._touched.add(graph_object.name)

    def warnings(self) -> list[str]:
        """Warnings about lines that stay in the file and are ignored."""
        numbers = {}
        count = 0
        for number, line in enumerate(self.lines if self.bad else ()):
            count += bool(line)
            numbers[number] = count
        texts = [
            f"{self._file.name} line {numbers[n]}: {why}, kept and ignored"
            for n, why in self.bad.items()
        ]
        more = len(texts) - _MAX_WARNINGS
        if more > 0:
            return [*texts[:_MAX_WARNINGS], f"and {more} more"]
        return texts

    @contextmanager
    def changing(self) -> Iterator[None]:
        """As in `EditableSource`. At the end `lines` are what the steps made of them.

        A missing file is made as soon as there is something to write. Raises NotAGraphFile,
        StorageError.
        """
        self._planned = None
        try:
            with ExitStack() as opened:
                self._opened = opened
                self._open(make=False)
                yield
                if self._planned is not None:
                    self._take_up(self._planned)
        except OSError as error:
            raise StorageError(self._file.name, reason(error)) from None
        finally:
            self._fd = None

    def _open(self, *, make: bool) -> None:
        """Lock the file until the end of `changing`, and show what is in it."""
        self._fd = self._opened.enter_context(self._file.locked(write=True, make=make))
        self._load(self._fd)
        if self._refusal is not None:
            raise self._refusal

    def steps(self, edit: LineEdit) -> Sequence[Step]:
        if not edit:
            return []
        if self._fd is None:
            self._open(make=True)
            if self.lines:
                raise Conflict(self._file.name, "of another program", "none")
        assert self._fd is not None
        # Until all went well
        self._stamp = _UNKNOWN
        lines = self._lines_after(edit)
        change = self._line_change(self._fd, edit, lines)
        self._planned = (edit, lines, change)
        return [Step(LINES, self.name, "", self._file.name, lines=change)]

    def _take_up(self, planned: tuple[LineEdit, list[bytes], LineChange]) -> None:
        """Show the lines after a change that was made."""
        edit, lines, change = planned
        if change.write.size is None:
            self._other_form = None
        self._follow(lines, edit)
        self._stamp = change.write.stamp or _UNKNOWN

    def inverse(self, kept_lines: KeptLines) -> LineEdit | None:
        return _inverse_edit(self, kept_lines)

    def counted(self, edit: LineEdit) -> Sequence[str]:
        # Entities count no reads
        return ()

    def _lines_after(self, edit: LineEdit) -> list[bytes]:
        """The lines that an edit leaves."""
        lines = [*self.lines]
        for slot, line in edit.lines.items():
            lines[slot] = line
        last = _last_slot(lines)
        if last is not None and (edit.added or edit.inserted) and not lines[last].endswith(b"\n"):
            lines[last] += b"\n"
        if edit.inserted:
            merged: list[bytes] = []
            for slot in range(len(lines) + 1):
                merged += [*edit.inserted.get(slot, ()), *lines[slot : slot + 1]]
            lines = list(filter(None, merged))
        return lines + edit.added

    def _line_change(self, fd: int, edit: LineEdit, lines: list[bytes]) -> LineChange:
        """An edit as the step that makes it; `lines` are those after it."""
        slots = sorted(edit.lines)
        numbers = [slot - self.lines[:slot].count(b"") for slot in slots]
        inserted = (edit.inserted[slot] for slot in sorted(edit.inserted))
        added = [*chain.from_iterable(inserted), *edit.added]
        old = [self.lines[slot] for slot in slots]
        new = [edit.lines[slot] for slot in slots]
        write = self._file_write(fd, edit, lines)
        return LineChange(self._file.target, numbers, old, new, added, write)

    def _file_write(self, fd: int, edit: LineEdit, lines: list[bytes]) -> FileWrite:
        """How the lines after an edit get into the file."""
        data = b"".join(edit.added)
        last = _last_slot(self.lines)
        if last is not None and not self.lines[last].endswith(b"\n"):
            data = b"\n" + data
        is_addition = not edit.lines and not edit.inserted and self._other_form is None
        if is_addition and len(data) < MAX_APPEND:
            return Append(self._file, fd, data)
        content = b"".join(lines)
        return Replacement(self._file, fd, content, self._other_form, may_overwrite=True)

    def _follow(self, lines: list[bytes], edit: LineEdit) -> None:
        """Show `lines`, which `edit` made of the ones before."""
        if edit.inserted:
            # All numbers changed
            self._read(lines)
            return
        self.lines = lines
        self.changes += 1
        for number, line in edit.lines.items():
            before = self.entities.get(number)
            if before is not None and not line:
                del self.entities[number]
                self._touched.add(before.name)
                self.named[before.name].remove(number)
                if not self.named[before.name]:
                    del self.named[before.name]
            relation = self.relations.pop(number, None)
            if relation is not None:
                self._touched.add(relation.source)
                for name in {relation.source, relation.target}:
                    self.ends[name].pop(number, None)
                    if not self.ends[name]:
                        del self.ends[name]
            if line:
                self._take(number, {before.name: [before.order]} if before else {})
        for number in range(len(lines) - len(edit.added), len(lines)):
            self._take(number, {})

    def path(self, name: str, twin: int = 0) -> str:
        """The path of the note of an entity. `twin` counts the lines with its name, from 0."""
        key = (name, twin)
        if key not in self._paths:
            if twin:
                digest = f" {hashlib.sha256(name.encode()).hexdigest()[:8]}-{twin + 1}"
            else:
                digest = ""
            stem = file_stem(
                f"{name[:80]}{digest}" if twin else name,
                lambda stem: f"{stem}{_SUFFIX}" in self._places,
            )
            self._paths[key] = f"{stem}{_SUFFIX}"
            self._places[self._paths[key]] = key
        return self._paths[key]

    def entity(self, path: str) -> EntityLine | None:
        """The entity whose note is at `path`, or None."""
        if path not in self._places:
            for name, numbers in self.named.items():
                for twin in range(len(numbers)):
                    self.path(name, twin)
        name, twin = self._places.get(path, ("", 0))
        if path in self._places:
            numbers = self.named.get(name, [])
        else:
            numbers = []
        if twin < len(numbers):
            return self.entities[numbers[twin]]
        return None

    def _relations_of(self, entity: EntityLine) -> list[GraphRelation]:
        """The relations that leave an entity, in order; of twins the first has them."""
        if self.named[entity.name][0] != entity.number:
            return []
        relations = [self.relations[number] for number in self.ends.get(entity.name, ())]
        return sorted(
            (relation for relation in relations if relation.source == entity.name),
            key=lambda relation: relation.order,
        )

    def _stamp_of(self, entity: EntityLine) -> Stamp:
        numbers = [entity.number, *(relation.order[0] for relation in self._relations_of(entity))]
        lines = b"".join([self.lines[number] for number in numbers])
        return Stamp(
            len(lines),
            0,
            int.from_bytes(hashlib.blake2b(lines, digest_size=8).digest(), "big") >> 1,
        )

    def _note(self, path: str) -> File | None:
        """The note at `path`, made from the lines in memory. None if it has no lines."""
        entity = self.entity(path)
        if entity is None:
            return None
        relations = [(relation.type, relation.target) for relation in self._relations_of(entity)]
        line = self.lines[entity.number]
        if any(key.encode() in line for key in VALIDITY_KEYS):
            value = json.loads(line)
        else:
            value = {}
        validity = {key: value[key] for key in VALIDITY_KEYS if value.get(key)}
        header = frontmatter.dump({"title": entity.name, "type": entity.type} | validity)
        data = f"---\n{header}---\n{sections(entity.observations, relations)}".encode()
        if self._stamp is not None:
            changed = self._stamp.mtime_ns
        else:
            changed = 0
        return File(data, self._stamp_of(entity), sha256(data), changed_ns=changed)

    def changed_since(self, version: Stamp | None) -> list[str] | None:
        """The notes that may differ from those at `version`, None when only `list` tells; to be
        asked once.
        """
        self.fresh()
        if self._told == version:
            names = self._touched
        else:
            names = None
        self._told, self._touched = self._stamp, set()
        if names is None:
            return None
        changed = []
        for name in sorted(names, key=lambda name: self.named.get(name, (0,))[0]):
            # All places the entities of a name ever had
            twin = 0
            while not twin or (name, twin) in self._paths or twin < len(self.named.get(name, ())):
                changed.append(self.path(name, twin))
                twin += 1
        return changed

    def folders(self) -> Iterator[str]:
        # `version` is looked at before each call
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
        self.fresh()
        listing = Listing()
        for name, numbers in self.named.items() if not below else ():
            for twin, number in enumerate(numbers):
                listing.stamps[self.path(name, twin)] = self._stamp_of(self.entities[number])
        return listing

    def parts(self, below: str, listing: Listing) -> Iterator[None]:
        listing.stamps.update(self.list(below).stamps)
        yield


def _last_slot(lines: Sequence[bytes]) -> int | None:
    """The slot of the last line that is there."""
    return next((slot for slot in reversed(range(len(lines))) if lines[slot]), None)


def _lines_of(data: bytes) -> list[bytes]:
    """The lines of a file, each with its end; the last one may have none."""
    *ended_lines, last = data.split(b"\n")
    lines = [line + b"\n" for line in ended_lines]
    if last:
        lines.append(last)
    return lines


def _inverse_edit(source: GraphFileSource, kept_lines: KeptLines) -> LineEdit | None:
    """The edit that takes a change of these lines back.

    None if one of its lines has changed since, or if a removed line exists again.
    """
    slots = _slots_by_line(source)
    edit = LineEdit(source, verb="undo")
    for line in reversed(kept_lines.added):
        line_slots = slots.get(line.rstrip(b"\r\n"))
        if not line_slots:
            return None
        edit.lines[line_slots.pop()] = b""
    returning: list[tuple[int, bytes]] = []
    for number, old, new in kept_lines.replaced:
        if not new:
            returning.append((number, old))
            continue
        line_slots = slots.get(new.rstrip(b"\r\n"))
        if not line_slots:
            return None
        edit.lines[line_slots.pop(0)] = old
    for _, old in returning:
        if _is_there_again(source, edit, old):
            return None
    _insert(source, edit, returning)
    return edit


def _slots_by_line(source: GraphFileSource) -> dict[bytes, list[int]]:
    """The slots of each line of a file, without its line break."""
    slots: dict[bytes, list[int]] = {}
    for slot, line in enumerate(source.lines):
        if line:
            slots.setdefault(line.rstrip(b"\r\n"), []).append(slot)
    return slots


def _is_there_again(source: GraphFileSource, edit: LineEdit, line: bytes) -> bool:
    """Whether the entity or relation of a line is in the file, in lines that `edit` leaves."""
    entity_or_relation = graph_lines.said_by(line)
    slots: list[int] = []
    if isinstance(entity_or_relation, GraphRelation):
        slots = [
            slot
            for slot in source.ends.get(entity_or_relation.source, ())
            if source.relations[slot].triple == entity_or_relation.triple
        ]
    elif entity_or_relation is not None:
        slots = source.named.get(entity_or_relation.name, [])
    return any(slot not in edit.lines for slot in slots)


def _insert(
    source: GraphFileSource, edit: LineEdit, returning: Sequence[tuple[int, bytes]]
) -> None:
    """Insert lines at their former places. Each is given with the line number it had."""
    remaining_slots = [
        slot for slot, line in enumerate(source.lines) if line and edit.lines.get(slot) != b""
    ]
    for before, (number, line) in enumerate(returning):
        # The lines returned before this one are not in the file yet.
        at = number - before
        slot = remaining_slots[at] if at < len(remaining_slots) else len(source.lines)
        edit.inserted.setdefault(slot, []).append(line)
