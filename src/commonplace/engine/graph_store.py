"""A graph file as the store of a project: each entity a note, made of its lines and never written (contract 002, 8)."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.engine.entities import Entity, Relation
from commonplace.errors import NotFound
from commonplace.note import frontmatter
from commonplace.note.entity import file_stem, sections
from commonplace.store.base import File, Listing, Stamp
from commonplace.store.files import stamp_of
from commonplace.store.folder import Place
from commonplace.store.home import Home
from commonplace.store.json_lines import BadLine, value_of
from commonplace.store.records import Coming, Edit, Records

KIND = "graph-jsonl"
_BETWEEN = "\udfff"
"""Between lowered texts: no text of a graph holds a lone surrogate."""
_MOST_WARNINGS = 5
_SUFFIX = ".md"
_LOOKED_AT, _LONGEST = 100, 1 << 20
"""Lines, and bytes of each, that show what a file is."""
_log = logging.getLogger("commonplace.graph")


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
    """What the lines of a graph file say, looked up by names. For one thread at a time.

    `touched` are the names whose entities or outgoing relations changed since it was last emptied, None: all.
    """

    def __init__(self, file: Path, *, tells: bool = True):
        """`tells`: whether what is kept and ignored is logged at each load."""
        self.records = Records(file)
        self._tells = tells
        self.changes = 0
        self.touched: set[str] | None = None
        self._loads = 0
        self._last = 0
        self._clear()

    def _clear(self) -> None:
        self._taken = 0
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
        if self._loads == self.records.loads and self._taken == len(self.records.lines):
            return
        known: dict[str, list[int]] = {}
        if self._loads != self.records.loads:
            for each in self.entities.values():
                known.setdefault(each.name, []).append(each.order)
            self._clear()
            self.touched = None
        highest = self._last
        self._last = 0 if not self._taken else highest
        for number, line in enumerate(self.records.lines[self._taken :], self._taken):
            self._take(number, line, known)
        self._last = max(highest, self._last)
        self._loads, self._taken = self.records.loads, len(self.records.lines)
        self.changes += 1
        for text in self.warnings() if self._tells else ():
            _log.warning("%s", text)

    def change(self, plan: Callable[[], Edit], keep: Callable[[Coming], None]) -> None:
        """Carry out what `plan` says, when it runs with everything on disk shown; see Records.change."""

        def planned() -> Edit:
            self.take_up()
            return plan()

        edit = self.records.change(planned, keep)
        if edit.inserted:
            self.take_up()
            return
        self.changes += bool(edit)
        for number, line in edit.lines.items():
            before = self.entities.get(number)
            if before is None or not line:
                self._drop(number)
            if line:
                self._take(number, line, {before.name: [before.order]} if before else {})
        first = len(self.records.lines) - len(edit.added)
        for number, line in enumerate(edit.added, first):
            self._take(number, line, {})
        self._taken = len(self.records.lines)

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

    def from_name(self, name: str) -> list[Relation]:
        """The relations that leave a name, in order."""
        found = [self.relations[line] for line in self.ends.get(name, ())]
        return sorted((each for each in found if each.source == name), key=lambda each: each.order)

    def _take(self, number: int, line: bytes, known: dict[str, list[int]]) -> None:
        """Look the line up from now on; `known` are the orders entities of a name had, first ones first."""
        self.bad.pop(number, None)
        try:
            found = read_line(line)
        except BadLine as error:
            self.bad[number] = str(error)
            return
        if isinstance(found, Relation):
            self.relations[number] = Relation(*found.triple, (number,))
            for name in (found.source, found.target):
                self.ends.setdefault(name, {})[number] = None
            self._touch(found.source)
        elif found is not None:
            orders = known.get(found.name)
            order = orders.pop(0) if orders else self._last + 1
            if number not in self.entities:
                order = max(order, self._last + 1)
                self._last = order
                self.named.setdefault(found.name, []).append(number)
            lowered = _BETWEEN.join((found.name, found.type, *found.observations)).lower()
            self.entities[number] = Said(number, order, found.name, found.type, found.observations, lowered)
            self._touch(found.name)

    def _drop(self, number: int) -> None:
        """Forget the line."""
        if (entity := self.entities.pop(number, None)) is not None:
            self._touch(entity.name)
            self.named[entity.name].remove(number)
            if not self.named[entity.name]:
                del self.named[entity.name]
        if (relation := self.relations.pop(number, None)) is not None:
            self._touch(relation.source)
            for name in {relation.source, relation.target}:
                self.ends[name].pop(number, None)
                if not self.ends[name]:
                    del self.ends[name]

    def _touch(self, name: str) -> None:
        if self.touched is not None:
            self.touched.add(name)


class GraphStore:
    """The entities of the graph file `file` (absolute) as notes of project `name`; see store/base.py.

    Each lies at `<name>.md`, named as in contract 002, 5.3; of several lines of one name the first has the
    relations. A stamp's `inode` is a digest of the lines, its `mtime_ns` the file's. `shown` is the file's stamp
    when this process last brought the index in step.
    """

    kind = KIND

    def __init__(self, name: str, file: str | os.PathLike[str]):
        self.name = name
        self.root = os.path.abspath(os.path.expanduser(file))
        self.held = Held(Path(self.root))
        self.shown: Stamp | None = None
        self._places: dict[str, tuple[str, int]] = {}
        self._paths: dict[tuple[str, int], str] = {}

    def __fspath__(self) -> str:
        return self.root

    def fresh(self, home: Home) -> None:
        """Show what is on disk, with what a writer of this home that died left seen to. Raises as `Held.fresh`."""
        self.held.fresh()
        if home.lines.waits():
            with home.lock:
                pass
            self.held.fresh()

    def on_disk(self) -> Stamp | None:
        """The file's stamp now; None when there is no file. Raises OSError."""
        try:
            status = os.stat(self.root)
        except FileNotFoundError:
            return None
        return stamp_of(status)

    # --- notes ----------------------------------------------------------------------------------

    def path(self, name: str, twin: int = 0) -> str:
        """Where the note of an entity lies: of the `twin`-th line of its name, from 0."""
        key = (name, twin)
        if key not in self._paths:
            digest = f" {hashlib.sha256(name.encode()).hexdigest()[:8]}-{twin + 1}" if twin else ""
            stem = file_stem(f"{name[:80]}{digest}" if twin else name, lambda stem: f"{stem}{_SUFFIX}" in self._places)
            self._paths[key] = f"{stem}{_SUFFIX}"
            self._places[self._paths[key]] = key
        return self._paths[key]

    def paths(self, name: str) -> list[str]:
        """All places the entities of a name ever had."""
        found, twin = [self.path(name)], 1
        while (name, twin) in self._paths or twin < len(self.held.named.get(name, ())):
            found.append(self.path(name, twin))
            twin += 1
        return found

    def entity(self, path: str) -> tuple[Said, int] | None:
        """The entity whose note lies at `path`, and which of its name it is; None when there is none."""
        if path not in self._places:
            for name, lines in self.held.named.items():
                for twin in range(len(lines)):
                    self.path(name, twin)
        name, twin = self._places.get(path, ("", 0))
        lines = self.held.named.get(name, ()) if path in self._places else ()
        return (self.held.entities[lines[twin]], twin) if twin < len(lines) else None

    def digest(self, said: Said, twin: int) -> int:
        """What tells one state of an entity's lines from another: 63 bits."""
        lines = self.held.records.lines
        found = hashlib.blake2b(lines[said.line], digest_size=8)
        for each in self.held.from_name(said.name) if not twin else ():
            found.update(lines[each.order[0]])
        return int.from_bytes(found.digest(), "big") >> 1

    def rendered(self, path: str) -> File | None:
        """The note at `path` as the lines now held say; None when there is none."""
        found = self.entity(path)
        if found is None:
            return None
        said, twin = found
        relations = [] if twin else [(each.type, each.target) for each in self.held.from_name(said.name)]
        header = frontmatter.dump({"title": said.name, "type": said.type})
        data = f"---\n{header}---\n{sections(said.observations, relations)}".encode()
        stamp = Stamp(len(data), self.held.records.changed, self.digest(said, twin))
        return File(data, stamp, hashlib.sha256(data).hexdigest())

    # --- what every store offers ----------------------------------------------------------------

    def list(self, below: str = "") -> Listing:
        """Every entity; there are no folders. Raises NotRecords, StorageError."""
        self.held.fresh()
        found = Listing()
        for name in self.held.named if not below else ():
            for path in self.paths(name):
                if (file := self.rendered(path)) is not None:
                    found.stamps[path] = file.stamp
        return found

    def folders(self) -> Iterator[str]:
        """None to watch: the file's own stamp is looked at before each call."""
        return iter(())

    def is_note(self, path: str) -> bool:
        """Whether an entity may lie at `path`."""
        return path.endswith(_SUFFIX) and "/" not in path

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of the entity at `path`, None when there is none."""
        self.held.fresh()
        file = self.rendered(path)
        return None if file is None else file.stamp

    def read(self, path: str) -> File:
        """The note of the entity at `path`. Raises NotFound, NotRecords, StorageError."""
        self.held.fresh()
        file = self.rendered(path)
        if file is None:
            raise NotFound(path, self.name)
        return file

    def place(self, path: str) -> Place:
        """What lies at `path`: the project itself, an entity's note or nothing."""
        if not path:
            return Place("folder", "")
        file = self.rendered(path)
        return Place("missing", path) if file is None else Place("file", path, len(file.data))


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


def holds_graph(file: Path) -> bool:
    """Whether one of the file's first lines is an entity or a relation. Raises OSError."""
    with file.open("rb") as lines:
        return any(_is_graph(lines.readline(_LONGEST)) for _ in range(_LOOKED_AT))


def _is_graph(line: bytes) -> bool:
    try:
        return read_line(line) is not None
    except BadLine:
        return False
