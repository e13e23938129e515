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

    number: its line, from 0.
    order: sorts entities by when they came. It stays when other lines are removed, and when the
        file is read again.
    lowered: name, type and observations in lower case, for searching.
    """

    number: int
    order: int
    name: str
    type: str
    observations: tuple[str, ...]
    lowered: str


class LineEdit:
    """The edits that one call makes to the lines of a graph file.

    Several lines may have one name, twins. A name means the first of them.

    names: the names of entities that the call is about.
    verb: the kind of the change in the history.
    lines: number of a line (from 0) -> its new bytes. Empty for a line to remove.
    added: lines to add at the end.
    inserted: number of a line -> lines to insert before it.
    known: the names among `names` that are entities of the file.
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
        return list(self._source.entities[self._source.named[name][0]].observations)

    def add_observations(self, name: str, texts: Sequence[str]) -> None:
        """Add observations to an entity."""
        self._observations[name] = [*self.observations(name), *texts]

    def drop_observations(self, name: str, texts: set[str]) -> None:
        """Remove all copies of these observations of an entity."""
        self._observations[name] = [text for text in self.observations(name) if text not in texts]

    def create(self, entity: Entity, more: dict[str, Any]) -> None:
        """Add a new entity. Its JSON object has the further keys `more`, too."""
        self.added.append(graph_lines.entity_line(entity, more).encode() + b"\n")

    def add_keys(self, name: str, more: dict[str, Any]) -> None:
        """Do nothing: further keys of an existing line belong to another program.

        name, more: the entity and the keys, which a graph of notes would store.
        """

    def _lines_of(self, relation: GraphRelation) -> list[int]:
        """Return the numbers of the lines that have this relation."""
        ends = self._source.ends
        at_source = ends.get(relation.source, {})
        at_target = ends.get(relation.target, {})
        # Both have the relation, so the shorter list is searched
        candidates = min(at_source, at_target, key=len)
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
            self.lines |= dict.fromkeys(
                [*self._source.named.get(name, ()), *self._source.ends.get(name, ())], b""
            )

    def finish(self) -> None:
        """Set the new lines of the entities whose observations were edited.

        All other keys of a line stay.
        """
        for name, texts in self._observations.items():
            entity = self._source.entities[self._source.named[name][0]]
            if tuple(texts) != entity.observations:
                line = self._source.lines[entity.number]
                value = graph_lines.parse_line(line) or {}
                members: dict[str, Any] = {"observations": texts}
                # Other programs need the type, so a missing one is added
                if value.get("entityType") is None:
                    members = {"entityType": entity.type, **members}
                self.lines[entity.number] = graph_lines.with_members(line, **members)


class _PlannedEdit(NamedTuple):
    """An edit that is under way, the lines after it, and the change that writes them."""

    edit: LineEdit
    lines: list[bytes]
    change: LineChange


class GraphFileSource:
    """The entities of the graph file `file` (absolute) as notes of project `name`.

    Each note is at `NAME.md` (contract 002, 5.3). If several lines have one name, twins, only the
    first has the relations. A note's stamp is the size and a digest of its lines. Only for one
    thread at a time. Methods raise NotAGraphFile and StorageError.

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
        self._logs = logs
        # Holds the lock on the file while it is changed
        self._opened = ExitStack()
        self._fd: int | None = None
        self._planned: _PlannedEdit | None = None
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

    def fresh(self) -> None:
        """Read the file again if it changed.

        Raises NotAGraphFile, StorageError.
        """
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
        if lines_of_other_form is not None:
            self._refusal = None
            self._other_form = data
            self._read(lines_of_other_form)
            return

        # Only the lines that were added since the last call are read, if nothing else changed.
        known_lines = self._lines_kept_in(data)
        known_size = sum(map(len, known_lines))
        new_lines = _lines_of(data[known_size:])
        all_lines = [*known_lines, *new_lines]
        self._other_form = None
        shape = graph_lines.shape_of(data, all_lines)
        self._refusal = NotAGraphFile(self.root, shape) if shape else None
        if not shape and (new_lines or not known_lines):
            self._read(all_lines, len(known_lines))

    def _lines_kept_in(self, data: bytes) -> Sequence[bytes]:
        """Return the present lines if the bytes of the changed file begin with them. Else return ().

        Most changes only append lines. Then only the new lines have to be looked up.
        """
        if self._other_form is not None:
            return ()
        known_bytes = b"".join(self.lines)
        # If the last line is not complete, the change may have continued it.
        if known_bytes.endswith(b"\n") and data.startswith(known_bytes):
            return self.lines
        return ()

    def _read(self, lines: list[bytes], first: int = 0) -> None:
        """Look up the entities and relations of `lines`, which are the lines from now on.

        first: the number of the first new line. The lines before it are looked up already.
        """
        self.lines = lines
        # name -> the orders of its entities so far, which they keep
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
        """Look up the entity or relation in line `number`.

        orders: name -> the orders that its entities had before, the first one first. The order that
            the entity of the line gets is removed.
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
            self._take_entity(number, graph_object, orders)

    def _take_entity(self, number: int, entity: Entity, orders: dict[str, list[int]]) -> None:
        """Look up the entity of line `number`. Its order stays if it had one before.

        orders: name -> the orders that its entities had before, the first one first. The order that
            this entity gets is removed.
        """
        earlier_orders = orders.get(entity.name)
        order = earlier_orders.pop(0) if earlier_orders else self._last_order + 1
        if number not in self.entities:
            order = self._last_order = max(order, self._last_order + 1)
            self.named.setdefault(entity.name, []).append(number)
        texts = (entity.name, entity.type, *entity.observations)
        lowered = _SEPARATOR.join(texts).lower()
        self.entities[number] = EntityLine(
            number, order, entity.name, entity.type, entity.observations, lowered
        )
        self._touched.add(entity.name)

    def warnings(self) -> list[str]:
        """Return warnings about lines that stay in the file and are ignored.

        `memory.jsonl line 7: not JSON, kept and ignored`
        """
        # number of a line -> its number in the file, from 1: removed lines do not count
        numbers_in_file = {}
        count = 0
        for number, line in enumerate(self.lines if self.bad else ()):
            count += bool(line)
            numbers_in_file[number] = count
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
        """Lock the file until the end of the block, in which one edit may be planned and written.

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
                    self._take_up(self._planned)
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
        if self._fd is None:
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

    def _take_up(self, planned: _PlannedEdit) -> None:
        """Use the lines after a change that was written."""
        write = planned.change.write
        is_append = write.size is not None
        if not is_append:
            self._other_form = None
        self._follow(planned.lines, planned.edit)
        self._stamp = write.stamp or _UNKNOWN

    def inverse(self, kept_lines: KeptLines) -> LineEdit | None:
        return _inverse_edit(self, kept_lines)

    def counted(self, edit: LineEdit) -> Sequence[str]:
        # Entities count no reads
        return ()

    def _lines_after(self, edit: LineEdit) -> list[bytes]:
        """Return the lines after an edit. A removed line is empty, unless lines are inserted."""
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
        """Return the change that makes an edit.

        fd: the descriptor of the file.
        lines: the lines after it.
        """
        slots = sorted(edit.lines)
        # The file does not have the empty lines
        numbers = [slot - self.lines[:slot].count(b"") for slot in slots]
        inserted = (edit.inserted[slot] for slot in sorted(edit.inserted))
        added = [*chain.from_iterable(inserted), *edit.added]
        old = [self.lines[slot] for slot in slots]
        new = [edit.lines[slot] for slot in slots]
        write = self._file_write(fd, edit, lines)
        return LineChange(self._file.target, numbers, old, new, added, write)

    def _file_write(self, fd: int, edit: LineEdit, lines: list[bytes]) -> FileWrite:
        """Return the way to write the lines after an edit: an append if possible.

        fd: the descriptor of the file.
        lines: the lines after the edit.
        """
        data = b"".join(edit.added)
        last = _last_slot(self.lines)
        if last is not None and not self.lines[last].endswith(b"\n"):
            data = b"\n" + data
        # New lines can be appended if no other line changes.
        is_addition = not edit.lines and not edit.inserted and self._other_form is None
        if is_addition and len(data) < MAX_APPEND:
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

    def _follow(self, lines: list[bytes], edit: LineEdit) -> None:
        """Look up `lines`, which `edit` made of the lines before. Only edited ones are parsed."""
        if edit.inserted:
            # The numbers of all later lines changed
            self._read(lines)
            return
        self.lines = lines
        self.changes += 1
        for number, line in edit.lines.items():
            entity_before = self.entities.get(number)
            if entity_before is not None and not line:
                self._drop_entity(entity_before)
            self._drop_relation(number)
            if line:
                orders: dict[str, list[int]] = {}
                if entity_before is not None:
                    orders[entity_before.name] = [entity_before.order]
                self._take(number, orders)
        for number in range(len(lines) - len(edit.added), len(lines)):
            self._take(number, {})

    def path(self, name: str, twin: int = 0) -> str:
        """Return the path of the note of an entity. It stays the same while the object exists.

        twin: the number of the entity among the lines with its name, from 0. The second entity
            `Ann` is at a path such as `Ann 1b2c3d4e-2.md`.
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
            # Paths are given out when they are needed: give out all
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
        """Return the relations from an entity, in the order of the file. Only a first twin has any."""
        if self.named[entity.name][0] != entity.number:
            return []
        relations = [self.relations[number] for number in self.ends.get(entity.name, ())]
        return sorted(
            (relation for relation in relations if relation.source == entity.name),
            key=lambda relation: relation.order,
        )

    def _stamp_of(self, entity: EntityLine) -> Stamp:
        """Return a stamp made from the lines of an entity and of its relations.

        The time is left 0. The time of the file changes with every entity in it, so with that time
        all of them would seem changed.
        """
        numbers = [entity.number, *(relation.order[0] for relation in self._relations_of(entity))]
        lines = b"".join([self.lines[number] for number in numbers])
        return Stamp(size=len(lines), mtime_ns=0, inode=_digest_of(lines))

    def _note(self, path: str) -> File | None:
        """Return the note at `path` as Markdown, from the lines in memory. None if no entity has it."""
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
        """Return the paths of the notes that changed since `version`, None if that is not known.

        Only the first caller with a version gets the paths: then they are forgotten.
        """
        self.fresh()
        if self._last_version == version:
            names = self._touched
        else:
            names = None
        self._last_version = self._stamp
        self._touched = set()
        if names is None:
            return None
        changed = []
        for name in sorted(names, key=lambda name: self.named.get(name, (0,))[0]):
            # Also the paths of twins that are removed by now
            twin = 0
            while not twin or (name, twin) in self._paths or twin < len(self.named.get(name, ())):
                changed.append(self.path(name, twin))
                twin += 1
        return changed

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
        """List the notes with their stamps (`Source.list`): one note for each entity.

        Entities with the same name, twins, have a note each. The result is empty for any folder
        `below`, since all notes are in the top folder.
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
        """Add all notes to `listing` at once (`Source.parts`): one file is read in one part.

        below: the folder whose notes are wanted. "" is the top folder, which has all notes.
        """
        listing.stamps.update(self.list(below).stamps)
        yield


def _last_slot(lines: Sequence[bytes]) -> int | None:
    """Return the index of the last line that is not empty, None if all are."""
    return next((slot for slot in reversed(range(len(lines))) if lines[slot]), None)


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
    again. A slot is the index of a line in `source.lines`.
    """
    slots = _slots_by_line(source)
    edit = LineEdit(source, verb="undo")

    # Of equal lines, the last ones were added
    for line in reversed(kept_lines.added):
        line_slots = slots.get(line.rstrip(b"\r\n"))
        if not line_slots:
            return None
        edit.lines[line_slots.pop()] = b""

    # (number, line) of the removed lines
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
    """Return line without its line break -> its slots. Equal lines have several slots."""
    slots: dict[bytes, list[int]] = {}
    for slot, line in enumerate(source.lines):
        if line:
            slots.setdefault(line.rstrip(b"\r\n"), []).append(slot)
    return slots


def _is_there_again(source: GraphFileSource, edit: LineEdit, line: bytes) -> bool:
    """Whether the entity or relation of a line is in the file, in a line that `edit` does not change."""
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
    """Add to `edit` the insertion of removed lines at their former places.

    returning: (number, line), with the number that the line had when it was removed.
    """
    remaining_slots = [
        slot for slot, line in enumerate(source.lines) if line and edit.lines.get(slot) != b""
    ]
    numbers = [number for number, _ in returning]
    places = former_places(numbers, remaining_slots, len(source.lines))
    for slot, (_, line) in zip(places, returning, strict=True):
        edit.inserted.setdefault(slot, []).append(line)


def _digest_of(lines: bytes) -> int:
    """Return a digest of lines, of 63 bits. The index stores it as an integer of SQLite.

    SQLite's integers have 64 bits with a sign, so one of the 64 bits of the hash is dropped.
    """
    digest = hashlib.blake2b(lines, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
