"""The index's knowledge about notes, as values, and how it is read by row.

Also reads databases without creating or updating them: an index, for the completions of a shell,
and other programs' databases, for moving in.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, tzinfo
from itertools import chain
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload

from memoranda.clock import local_day
from memoranda.index.tables import column_list
from memoranda.note.links import without_suffix
from memoranda.note.model import (
    BAD_HEADER,
    FURTHER,
    MEMORY_KEYS,
    Provenance,
    one_line_repr,
    warning_text,
)
from memoranda.value_object import ValueObject

if TYPE_CHECKING:
    from memoranda.note.model import Observation

# UTC; without a zone it is shown much faster
_EPOCH = datetime(1970, 1, 1)
_FROM = "note n join project p on p.id = n.project join text t on t.row = n.row"
PACKED = Struct("qqqq")
"""How a stamp is kept where there are very many: an eighth of what its numbers take by themselves.
"""
FIRST_PASSAGE = 1 << 16
"""A long note's passages begin at the row of this times its own row: no note has that many."""
# Header keys whose values are not searched as text: they have a column or a filter of their own, or
# are times.
_NO_TEXT = frozenset(
    (*MEMORY_KEYS, *FURTHER, "type", "permalink", "alias", "tag", "created", "updated", "modified")
)
# Characters of the header values that are searched.
_LONGEST_PROPERTIES = 10_000
# Characters of a title that count: the title of a memory may be its whole text.
_TITLE = 80


# Notes whose tags are counted, the latest changed.
_LOOKED_AT = 5000
_SEEN = "(n.scope = 'global' or :agent is null or n.scope = 'agent:' || :agent)"
_MEMORY = "n.project = (select id from project where name = 'categories')"
_SQL = {
    "id": f"select n.id, substr(t.text, 1, 200) from note n join text t on t.row = n.row where {_MEMORY} and {_SEEN}"
    " and n.id >= :prefix and n.id < :prefix || 'g' order by n.created desc limit :most",
    "entity": f"select n.title, n.type from note n join project p on p.id = n.project where {_SEEN}"
    " and p.name = 'graph' and n.title >= :prefix and n.title < :prefix || char(1114111)"
    " order by n.changed desc limit :most",
    "tag": f"select n.tags, '' from note n where n.tags is not null and {_SEEN} order by n.changed desc limit :many",
    "scope": f"select distinct n.scope, '' from note n where {_SEEN} order by 1 limit :most",
    "source": f"select n.source, count(*) || ' notes' from note n where {_MEMORY} and {_SEEN} and n.source is not null"
    " group by 1 order by count(*) desc limit :most",
}


@dataclass(slots=True, eq=False, repr=False)
class NoteInfo(ValueObject):
    """A note as the index holds it, without its text. Times are ISO 8601 UTC with `Z`."""

    row: int
    project: str
    path: str
    id: str
    title: str
    type: str
    permalink: str
    etag: str
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int
    created: str
    changed: str
    updated: str | None = None
    date: str | None = None
    phase: str | None = None
    category: str | None = None
    scope: str = "global"
    source: str | None = None
    expires: str | None = None
    access_count: int = 0
    version: int = 1
    locked: bool = False
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    front: str = ""
    """The frontmatter as text."""
    header_json: str | None = None
    """The header as JSON, where it was not nested too deep."""
    suspicious: tuple[str, ...] = ()
    """The rules of the write gate that saw injected instructions in the text."""
    provenance_json: str | None = None
    _header: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return one_line_repr("NoteInfo", f"{self.project}/{self.path}", self.title)

    def may_say(self, keys: Iterable[str]) -> bool:
        """False when no such key can be in the header: told without reading it."""
        text = self.header_json or self.front
        # A list is asked for each of its notes, so no generator
        for key in keys:
            if key in text:
                return True
        return "\\" in text

    @property
    def is_broken(self) -> bool:
        """Whether its header cannot be read: people see it, and upkeep leaves it alone."""
        return warning_text(self.warnings, BAD_HEADER) is not None

    @property
    def header(self) -> dict[str, Any]:
        """The header as written, parsed at first use: most listed notes never need it."""
        if self._header is None:
            self._header = header_of(self.front, self.header_json)
        return self._header

    @property
    def provenance(self) -> Provenance:
        """Where the text comes from, as the channel said it came through."""
        if self.provenance_json:
            return Provenance(**json.loads(self.provenance_json))
        return Provenance()

    @property
    def checksum(self) -> str:
        """First 8 hex digits of SHA-256 over the file's bytes."""
        return self.etag[:8]


def header_of(front: str, header: str | None) -> dict[str, Any]:
    """A header, read again from the frontmatter, or from the JSON of it; {} when it is no YAML."""
    if header:
        return json.loads(header)
    if len(front) < 4:
        return {}
    # 4 ms, and most commands look at no header
    from memoranda.note import frontmatter

    try:
        return frontmatter.parse(frontmatter.split(front)[0] or "")
    except ValueError:
        return {}


def property_text(header: str | None) -> str:
    """The searched text of a header given as JSON: its values, one a line.

    Keys that describe the note itself and not its contents are left out.
    """
    if header:
        values = json.loads(header)
    else:
        values = {}
    texts = [text for key, value in values.items() if key not in _NO_TEXT for text in _texts(value)]
    return "\n".join(texts)[:_LONGEST_PROPERTIES]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return list(chain.from_iterable(map(_texts, value)))
    if value is None or isinstance(value, bool):
        return []
    return [" ".join(str(value).split("\n"))]


@dataclass(slots=True, eq=False, repr=False)
class Hit(ValueObject):
    """A note found by a search.

    note: the note.
    passage: a snippet of its text, at most 200 characters.
    score: higher is better.
    why: short reasons.
    line: the line where the passage starts, from 1.
    shares: the part that each feature adds to the score, if an explanation was asked for.
    """

    note: NoteInfo
    passage: str
    score: float
    why: list[str] = field(default_factory=list)
    line: int = 0
    shares: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        place = f"{self.note.project}/{self.note.path}"
        return one_line_repr(f"Hit {self.score:.3g}", place, self.passage)


class NotesListed(NamedTuple):
    """A page of a list of notes; it unpacks as `notes, total`.

    notes: the notes of this page.
    total: how many notes the whole list has.
    """

    notes: list[NoteInfo]
    total: int


@dataclass(slots=True, eq=False, repr=False)
class ScoredMemory(ValueObject):
    """One memory found: `score` of two decimals, `matched` the tokens its text contains."""

    note: NoteInfo
    score: float
    matched: list[str]


@dataclass(slots=True, eq=False, repr=False)
class SmartResult(ValueObject):
    """The best memories for a query; `total` is how many have a score above 0."""

    tokens: list[str]
    best: list[ScoredMemory]
    total: int


@dataclass(slots=True, eq=False, repr=False)
class Hits(ValueObject):
    """One page of a search: `total` notes match in all, or more where it `is_lower_bound`: beyond
    10,000, and beyond the page, they are not counted. `relaxed` when AND found nothing."""

    hits: list[Hit]
    total: int
    relaxed: bool = False
    is_lower_bound: bool = False

    @property
    def bound(self) -> dict[str, bool]:
        """The mark that replies show beside a total that is a lower bound. Otherwise empty."""
        if self.is_lower_bound:
            return {"total_is_lower_bound": True}
        return {}

    def __repr__(self) -> str:
        if self.is_lower_bound:
            suffix = " or more"
        else:
            suffix = ""
        return f"<Hits {len(self.hits)} of {self.total}{suffix}>"

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...

    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        return self.hits[index]

    def cut(self, characters: int) -> None:
        """Leave the first hits whose titles and passages fit, at least one, the last one shortened
        if need be.

        What an earlier passage said is not said twice: such a hit keeps its place without it.
        """
        fitting_hits: list[Hit] = []
        flat_text = ""
        room = characters
        for hit in self.hits:
            flat = f" {' '.join(hit.passage.split()).casefold()} "
            if flat in flat_text and hit.passage:
                hit.passage = ""
                hit.why.append("says the same as one above")
            flat_text += f"{flat}\0"
            room -= min(len(hit.note.title), _TITLE)
            if fitting_hits and room < len(hit.passage):
                break
            hit.passage = hit.passage[: max(room, 20)]
            room -= len(hit.passage)
            fitting_hits.append(hit)
        self.hits = fitting_hits


class NotePlace(NamedTuple):
    """Where a note is: much less than what a `NoteInfo` says, for all notes of a home."""

    row: int
    id: str
    project: str
    path: str
    category: str | None
    phase: str | None
    title: str


@dataclass(slots=True, eq=False, repr=False)
class Edge(ValueObject):
    """A relation seen from one of its notes.

    direction: `out` or `in`.
    target: the text in the source for `out`; the title of the other note for `in`.
    note: the note at the other end, if it exists.
    """

    type: str
    direction: str
    target: str
    state: str
    note: NoteInfo | None = None
    context: str | None = None
    line: int = 0


@dataclass(slots=True, eq=False, repr=False)
class Reached(ValueObject):
    """A note found on a walk: `depth` steps away, through the relation type `via`."""

    note: NoteInfo
    depth: int
    via: str


def day_of(note: NoteInfo, zone: tzinfo | None) -> str:
    """The day a note is about or, without one, the day it was written in the reader's time zone."""
    if note.date:
        return note.date[:10]
    return local_day(note.created, zone)


def get(db: sqlite3.Connection, project: str, path: str) -> NoteInfo | None:
    """The note at `path` of `project` (exact), None when the index has none."""
    row = db.execute(
        f"select {_SELECTED} from {_FROM} where p.name = ? and n.path = ?", (project, path)
    ).fetchone()
    if row is None:
        return None
    return _info(row)


def infos(db: sqlite3.Connection, rows: Iterable[int]) -> dict[int, NoteInfo]:
    """The notes of these rows by row; missing rows are left out."""
    note_rows = db.execute(
        f"select {_SELECTED} from {_FROM} where n.row in (select value from json_each(?))",
        (json.dumps(list(rows)),),
    )
    notes = map(_info, note_rows)
    return {note.row: note for note in notes}


def in_order(db: sqlite3.Connection, rows: Sequence[int]) -> list[NoteInfo]:
    """The notes of these rows, in the order given."""
    if rows:
        infos_by_row = infos(db, rows)
    else:
        infos_by_row = {}
    return [infos_by_row[row] for row in rows if row in infos_by_row]


def observations(db: sqlite3.Connection, note: NoteInfo) -> list[Observation]:
    """The note's observations in the order of the file."""
    # 3 ms
    from memoranda.note.grammar import scan

    front, text = text_of(db, note.row)
    in_place = "select 1 from project where name = ? and size is not null"
    is_graph = (
        note.project == "graph" or db.execute(in_place, (note.project,)).fetchone() is not None
    )
    return scan(front + text, len(front), graph=is_graph)[0]


def text_of(db: sqlite3.Connection, row: int) -> tuple[str, str]:
    """A note's indexed text as (frontmatter, body), or two empty ones."""
    return db.execute("select front, text from text where row = ?", (row,)).fetchone() or ("", "")


def iso(microseconds: int | None) -> Any:
    """A stored time as ISO 8601 UTC with `Z`. None for null."""
    if microseconds is None:
        return None
    return f"{(_EPOCH + timedelta(microseconds=microseconds)).isoformat()}Z"


def _texts_of(values: str | None) -> tuple[str, ...]:
    if values:
        return tuple(json.loads(values))
    return ()


def _hex(etag: bytes | str) -> str:
    if isinstance(etag, bytes):
        return etag.hex()
    return etag


class _Column(NamedTuple):
    """Where a field of `NoteInfo` comes from: SQL, and what makes the field of the stored value."""

    sql: str
    read: Callable[[Any], Any] | None = None


NOTE_COLUMNS = {
    "row": _Column("n.row"),
    "project": _Column("p.name"),
    "path": _Column("n.path"),
    "id": _Column("n.id"),
    "title": _Column("n.title"),
    "type": _Column("n.type"),
    "permalink": _Column("n.permalink"),
    "etag": _Column("n.etag", _hex),
    "size": _Column("n.size"),
    "mtime_ns": _Column("n.mtime_ns"),
    "inode": _Column("n.inode"),
    "ctime_ns": _Column("n.ctime_ns"),
    "created": _Column("n.created", iso),
    "changed": _Column("n.changed", iso),
    "updated": _Column("n.updated", iso),
    "date": _Column("n.date"),
    "phase": _Column("n.phase"),
    "category": _Column("n.category"),
    "scope": _Column("n.scope"),
    "source": _Column("n.source"),
    "expires": _Column("n.expires", iso),
    "access_count": _Column("n.access_count"),
    "version": _Column("n.version"),
    "locked": _Column("n.locked", bool),
    "tags": _Column("n.tags", _texts_of),
    "aliases": _Column("n.aliases", _texts_of),
    "links": _Column("n.links", _texts_of),
    "warnings": _Column("n.warnings", _texts_of),
    "front": _Column("t.front"),
    "header_json": _Column("t.header"),
    "suspicious": _Column("n.suspicious", _texts_of),
    "provenance_json": _Column("n.provenance"),
}
"""Of each field of `NoteInfo`, where it is read from."""
_FIELDS = [field.name for field in fields(NoteInfo) if field.init]
_SELECTED = column_list(NOTE_COLUMNS[name].sql for name in _FIELDS)
_READERS = [
    (position, read)
    for position, name in enumerate(_FIELDS)
    if (read := NOTE_COLUMNS[name].read) is not None
]


def _info(row: tuple[Any, ...]) -> NoteInfo:
    """The note of a row of `_SELECTED`, whose columns are in the order of the fields."""
    values = list(row)
    for position, read in _READERS:
        values[position] = read(values[position])
    return NoteInfo(*values)


def indexed(
    file: Path, kind: str, prefix: str, agent: str | None, limit: int
) -> list[tuple[str, str]]:
    """At most `limit` values of a kind of `_SQL` that begin with `prefix`, each with a text.

    Only notes that `agent` sees count. Empty if the index is missing or cannot be read.
    """
    values = {"prefix": prefix, "agent": agent, "most": limit, "many": _LOOKED_AT}
    try:
        # Then SQLite need not make files to read it
        at_rest = not file.with_name(f"{file.name}-wal").exists()
        if at_rest:
            how = "mode=ro&immutable=1"
        else:
            how = "mode=ro"
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True, timeout=0.2)
        ) as db:
            rows = db.execute(_SQL[kind], values).fetchall()
    except sqlite3.Error:
        return []
    if kind == "tag":
        counts = Counter(chain.from_iterable(json.loads(tags) for tags, _ in rows))
        rows = [
            (tag, "1 note" if number == 1 else f"{number} notes")
            for tag, number in counts.most_common()
        ]
    return [(value, text) for value, text in rows if value.startswith(prefix)][:limit]


def foreign_rows(path: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, [] when it is not there. The database is opened for reading only. Raises
    ValueError.
    """
    # 3 ms, which a shell would wait
    from urllib.parse import quote

    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
        ) as db:
            db.row_factory = sqlite3.Row
            if not db.execute(
                "select 1 from sqlite_master where type = 'table' and name = ?", (table,)
            ).fetchone():
                return []
            return [dict(row) for row in db.execute(f"select * from {table} order by rowid")]
    except sqlite3.Error as error:
        raise ValueError(str(error)) from None


class Placed(Protocol):
    """A note with an id and a place."""

    @property
    def id(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def path(self) -> str: ...


N = TypeVar("N", bound=Placed)


def original_of(notes: Sequence[N]) -> N | None:
    """The one of several notes of which all others are copies, or None."""
    for note in notes:
        if all(other_note is note or _is_copy(other_note, note) for other_note in notes):
            return note
    return None


def _is_copy(note: Placed, original: Placed) -> bool:
    """Whether the file of `note` is a copy of `original` that a program for syncing folders made.

    Such a copy is in the same folder, has the same id, and its name begins with the original's
    name.
    """
    folder, _, name = note.path.rpartition("/")
    original_folder, _, original_name = original.path.rpartition("/")
    own_identity = (note.id, note.project, folder)
    if own_identity != (original.id, original.project, original_folder):
        return False
    stem = without_suffix(original_name)
    return without_suffix(name) != stem and name.startswith(stem)
