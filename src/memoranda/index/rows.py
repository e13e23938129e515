"""The values that the index returns (notes, search hits, relations), and reading notes by row.

Two functions read a database that nobody has opened, without changing it: `indexed` an index, for
the completions of a shell, and `foreign_rows` a database of another program, for importing it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, tzinfo
from itertools import chain
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload

from memoranda.clock import local_day
from memoranda.errors import MemorandaError, internal_sentence
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
    from memoranda.sources.base import Stamp

# UTC. A time without a zone is formatted much faster.
_EPOCH = datetime(1970, 1, 1)
_FROM = "note n join project p on p.id = n.project join text t on t.row = n.row"
PACKED = Struct("qqqq")
"""The format of a stamp (size, mtime_ns, inode, ctime_ns) as bytes. It takes an eighth of the memory
of four numbers, which matters when very many stamps are compared."""
FIRST_PASSAGE = 1 << 16
"""The passages of the note in row N have the rows from N * FIRST_PASSAGE on. No note has so much
text that it needs more rows."""
# Header keys whose values are not searched as text, because they are times or have their own
# column or filter.
_NO_TEXT = frozenset(
    (*MEMORY_KEYS, *FURTHER, "type", "permalink", "alias", "tag", "created", "updated", "modified")
)
# How much of the header values is searched.
_MAX_PROPERTY_CHARACTERS = 10_000
# A title counts as at most this long, since the title of a memory may be its whole text.
_MAX_TITLE_CHARACTERS = 80
# The last passage that fits is cut to no less than this.
_MIN_PASSAGE_CHARACTERS = 20
# Tags are counted in this many notes, the last changed.
_NOTES_WITH_TAGS = 5000
_IS_SEEN = "(n.scope = 'global' or :agent is null or n.scope = 'agent:' || :agent)"
_IS_MEMORY = "n.project = (select id from project where name = 'categories')"
# The query for each kind of completion: (value, text about it).
_COMPLETIONS = {
    "id": f"select n.id, substr(t.text, 1, 200) from note n join text t on t.row = n.row"
    f" where {_IS_MEMORY} and {_IS_SEEN}"
    " and n.id >= :prefix and n.id < :prefix || 'g' order by n.created desc limit :most",
    "entity": f"select n.title, n.type from note n join project p on p.id = n.project where {_IS_SEEN}"
    " and p.name = 'graph' and n.title >= :prefix and n.title < :prefix || char(1114111)"
    " order by n.changed desc limit :most",
    "tag": f"select n.tags, '' from note n where n.tags is not null and {_IS_SEEN} order by n.changed desc limit :many",
    "scope": f"select distinct n.scope, '' from note n where {_IS_SEEN} order by 1 limit :most",
    "source": f"select n.source, count(*) || ' notes' from note n where {_IS_MEMORY} and {_IS_SEEN}"
    " and n.source is not null group by 1 order by count(*) desc limit :most",
}


class NotIndexable(MemorandaError):
    """Something inside memoranda fails at the text of a note, which is a fault of memoranda.

    The note is left out of the index, so that all others can be used.

    path: the path of the note in its project.
    stamp: the stamp of the file that was read.
    """

    def __init__(self, path: str, stamp: Stamp, error: Exception):
        super().__init__(internal_sentence(error))
        self.path = path
        self.stamp = stamp


@contextmanager
def at_note(path: str, stamp: Stamp) -> Iterator[None]:
    """Raise NotIndexable for an unexpected error of the block, which reads a note's text.

    One text that memoranda cannot read must not keep the owner from all other notes.

    path: the path of the note in its project.
    stamp: the stamp of the note's file.
    """
    try:
        yield
    except (MemorandaError, sqlite3.Error, OSError, MemoryError):
        raise
    except Exception as error:
        raise NotIndexable(path, stamp, error) from error


@dataclass(slots=True, eq=False, repr=False)
class NoteInfo(ValueObject):
    """A note as the index has it, without its text. Times are ISO 8601 in UTC, ending in `Z`.

    row: its number in the index. A rebuilt index gives it another one.
    project, path, id, title, type, permalink: its place and its names.
    etag: the SHA-256 of its file.
    size, mtime_ns, inode, ctime_ns: the stamp of the file, to notice when it changes.
    created, changed, updated, date: when it was written, when its file changed, the time of its
        last change in the header, and the day that it is about.
    phase, category: for a memory, `inbox`, `organized` or `archived`, and its category.
    scope: who may see it.
    source, expires, access_count, version, locked: the values of these header keys.
    tags, aliases, links: the lists of these header keys.
    warnings: the warnings from reading it.
    front: the frontmatter as text.
    header_json: the header as JSON. None if it is empty or nested too deeply.
    suspicious: the names of the rules that saw injected instructions in the text.
    provenance_json: the origin of the text as JSON. None for a file of another program.
    """

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
    header_json: str | None = None
    suspicious: tuple[str, ...] = ()
    provenance_json: str | None = None
    _header: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return one_line_repr("NoteInfo", f"{self.project}/{self.path}", self.title)

    def may_say(self, keys: Iterable[str]) -> bool:
        """Whether one of these keys may be in the header. It is not parsed, so True can be wrong."""
        text = self.header_json or self.front
        # A loop is faster than a generator. This is called for each note of long lists.
        for key in keys:
            if key in text:
                return True
        # A key may be written with escapes.
        return "\\" in text

    @property
    def is_broken(self) -> bool:
        """Whether its header cannot be read. Upkeep does not change such a note."""
        return warning_text(self.warnings, BAD_HEADER) is not None

    @property
    def header(self) -> dict[str, Any]:
        """The header, parsed at first use, since most notes of a list never need it."""
        if self._header is None:
            self._header = header_of(self.front, self.header_json)
        return self._header

    @property
    def provenance(self) -> Provenance:
        """The origin of the text, as recorded when it was written."""
        if self.provenance_json:
            return Provenance(**json.loads(self.provenance_json))
        return Provenance()

    @property
    def checksum(self) -> str:
        """First 8 hex digits of SHA-256 over the file's bytes."""
        return self.etag[:8]


def header_of(front: str, header: str | None) -> dict[str, Any]:
    """Read a header from its JSON or, without that, from the frontmatter. {} if it is not YAML.

    front: the frontmatter as text.
    header: the header as JSON, or None.
    """
    if header:
        return json.loads(header)
    # Even an empty frontmatter has `---`.
    if len(front) < 4:
        return {}
    # Importing it takes 4 ms, and most commands look at no header.
    from memoranda.note import frontmatter

    try:
        return frontmatter.parse(frontmatter.split(front)[0] or "")
    except ValueError:
        return {}


def property_text(header: str | None) -> str:
    """Return the values of a header as text to be searched, one on a line.

    `{"status": "draft", "team": ["A", "B"], "type": "note"}` → `draft`, `A`, `B`. Keys that describe
    the note and not its contents are left out.

    header: the header as JSON, or None.
    """
    if not header:
        return ""
    texts: list[str] = []
    for key, value in json.loads(header).items():
        if key not in _NO_TEXT:
            texts += _texts(value)
    return "\n".join(texts)[:_MAX_PROPERTY_CHARACTERS]


def _texts(value: Any) -> list[str]:
    """Return the texts and numbers in a header value, of lists and objects all inner ones."""
    # An object counts as the list of its values. Its keys are not searched.
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return list(chain.from_iterable(map(_texts, value)))
    # Nobody searches for `true`.
    if value is None or isinstance(value, bool):
        return []
    # On one line.
    return [" ".join(str(value).split("\n"))]


@dataclass(slots=True, eq=False, repr=False)
class Hit(ValueObject):
    """A note found by a search.

    note: all that the index knows of the note.
    passage: a snippet of its text, at most 200 characters.
    score: higher is better.
    why: short reasons why it was found.
    line: the line where the passage starts, from 1. 0 if unknown.
    shares: how much each feature adds to the score, if an explanation was requested.
    words: the words of the query in its title or text.
    spelled: words it has instead of misspelled ones.
    word_reasons: the reasons in `why` that name words, such as `words: plan, budget`.
    is_cut: whether the text of the note goes on behind the passage. Only hits of a search know it.
    relevance: how much of a question the passage may answer, whatever other notes say. 0 is nothing,
        and a short passage with one rare word and all of the question has about 1. Only the passages
        for a context have it.
    """

    note: NoteInfo
    passage: str
    score: float
    why: list[str] = field(default_factory=list)
    line: int = 0
    shares: dict[str, float] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    spelled: tuple[str, ...] = ()
    word_reasons: tuple[str, ...] = ()
    is_cut: bool = False
    relevance: float = 0.0

    def share_reasons(self) -> list[str]:
        """Return the shares as `why` has them, such as `links 0.120`."""
        return [f"{name} {value:.3f}" for name, value in self.shares.items()]

    def __repr__(self) -> str:
        place = f"{self.note.project}/{self.note.path}"
        return one_line_repr(f"Hit {self.score:.3g}", place, self.passage)


class NotesListed(NamedTuple):
    """One page of a list of notes. It can be unpacked: `notes, total = listed`.

    notes: the notes on this page.
    total: the number of notes on all pages.
    """

    notes: list[NoteInfo]
    total: int


class FilledNotes(NamedTuple):
    """One page of a list without the unfilled files of memory banks.

    notes: the notes on this page.
    total: the number of notes on all pages.
    unfilled: the number of unfilled files that are on no page.
    """

    notes: list[NoteInfo]
    total: int
    unfilled: int


@dataclass(slots=True, eq=False, repr=False)
class ScoredMemory(ValueObject):
    """A memory found by a smart search.

    note: the memory.
    score: rounded to two decimals; higher is better.
    matched: the words of the query that its text contains.
    """

    note: NoteInfo
    score: float
    matched: list[str]


@dataclass(slots=True, eq=False, repr=False)
class SmartResult(ValueObject):
    """The result of a smart search.

    tokens: the words of the query.
    best: the best memories, the best first.
    total: how many memories have a score above 0.
    """

    tokens: list[str]
    best: list[ScoredMemory]
    total: int


@dataclass(slots=True, eq=False, repr=False)
class Hits(ValueObject):
    """One page of a search.

    hits: the hits of the page, the best first.
    total: how many notes match in all.
    relaxed: whether the hits have only some words of the query, because no note has all of them.
    is_lower_bound: whether more than `total` notes may match, because they were not all counted.
    """

    hits: list[Hit]
    total: int
    relaxed: bool = False
    is_lower_bound: bool = False

    @property
    def bound(self) -> dict[str, bool]:
        """The field that tells whether a total is a lower bound. Empty for an exact total."""
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
        """Keep the first hits whose titles and passages fit into this many characters, at least one.

        The last passage may be shortened. A passage that an earlier one contains is removed, but
        its hit stays.
        """
        fitting_hits: list[Hit] = []
        # All passages so far, each on one line and in small letters.
        passages_so_far = ""
        characters_left = characters
        for hit in self.hits:
            # Remove a passage that an earlier one contains. The blanks at both ends make it match
            # whole words only.
            flat_passage = f" {' '.join(hit.passage.split()).casefold()} "
            if hit.passage and flat_passage in passages_so_far:
                hit.passage = ""
                hit.why.append("says the same as one above")
            # A NUL, so that no passage matches across two.
            passages_so_far += f"{flat_passage}\0"

            # Keep the hit if it fits. The first one is shortened if it does not.
            characters_left -= min(len(hit.note.title), _MAX_TITLE_CHARACTERS)
            is_first = not fitting_hits
            if characters_left < len(hit.passage) and not is_first:
                break
            hit.passage = hit.passage[: max(characters_left, _MIN_PASSAGE_CHARACTERS)]
            characters_left -= len(hit.passage)
            fitting_hits.append(hit)
        self.hits = fitting_hits


class NotePlace(NamedTuple):
    """The place of a note. It is much smaller than a `NoteInfo`, for reading all notes of a home.

    row: the row of the note in the index.
    category, phase: None for a note that is not a memory.
    """

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

    type: the type of the relation, such as `part_of`.
    direction: `out` if the note has the relation, `in` if it is the relation's target.
    target: the target as written for `out`; the title of the other note for `in`.
    state: `resolved`, `unwritten` (no note has the name of the target) or `ambiguous`.
    note: the note at the other end. None unless `resolved`.
    context: the text in parentheses after the relation, or None.
    line: the line of the relation in its file.
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
    """A note found on a walk along relations.

    depth: how many relations away it is.
    via: the type of the last of these relations.
    """

    note: NoteInfo
    depth: int
    via: str


def day_of(note: NoteInfo, zone: tzinfo | None) -> str:
    """Return the day that a note is about, as YYYY-MM-DD.

    If it names no day, this is the day it was written, in time zone `zone`.
    """
    if note.date:
        return note.date[:10]
    return local_day(note.created, zone)


def get(db: sqlite3.Connection, project: str, path: str) -> NoteInfo | None:
    """Return the note at exactly this path. None if the index has none."""
    row = db.execute(
        f"select {_SELECTED} from {_FROM} where p.name = ? and n.path = ?", (project, path)
    ).fetchone()
    if row is None:
        return None
    return _info(row)


def infos(db: sqlite3.Connection, rows: Iterable[int]) -> dict[int, NoteInfo]:
    """Return the notes in these rows, by row. Rows without a note are missing."""
    note_rows = db.execute(
        f"select {_SELECTED} from {_FROM} where n.row in (select value from json_each(?))",
        (json.dumps(list(rows)),),
    )
    notes = map(_info, note_rows)
    return {note.row: note for note in notes}


def in_order(db: sqlite3.Connection, rows: Sequence[int]) -> list[NoteInfo]:
    """Return the notes in these rows, in the same order. Rows without a note are left out."""
    if not rows:
        return []
    infos_by_row = infos(db, rows)
    return [infos_by_row[row] for row in rows if row in infos_by_row]


def observations(db: sqlite3.Connection, note: NoteInfo) -> list[Observation]:
    """Return the note's observations in the order of the file."""
    # Importing it takes 3 ms.
    from memoranda.note.grammar import scan

    front, body = text_of(db, note.row)
    # Only a project that is a single graph file has a size.
    graph_file = db.execute(
        "select 1 from project where name = ? and size is not null", (note.project,)
    ).fetchone()
    is_graph = note.project == "graph" or graph_file is not None
    return scan(front + body, len(front), graph=is_graph).observations


def text_of(db: sqlite3.Connection, row: int) -> tuple[str, str]:
    """Return the text of a note as (frontmatter, body). Both are "" if the row has no note."""
    text_row = db.execute("select front, text from text where row = ?", (row,)).fetchone()
    if text_row is None:
        return "", ""
    front, body = text_row
    return front, body


def iso(microseconds: int | None) -> Any:
    """Turn a stored time into ISO 8601 in UTC, ending in `Z`. None stays None."""
    if microseconds is None:
        return None
    return f"{(_EPOCH + timedelta(microseconds=microseconds)).isoformat()}Z"


def _texts_of(values: str | None) -> tuple[str, ...]:
    """Read a list of texts from JSON. None has no texts."""
    if values:
        return tuple(json.loads(values))
    return ()


def _hex(etag: bytes | str) -> str:
    """Return an etag as text. A SHA-256 is stored as bytes, another etag as it is."""
    if isinstance(etag, bytes):
        return etag.hex()
    return etag


class _Column(NamedTuple):
    """Where a field of `NoteInfo` is read from.

    sql: the column of the table.
    read: converts the stored value to the field. None if it needs no conversion.
    """

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
"""The source of each field of `NoteInfo`."""
_FIELDS = [field.name for field in fields(NoteInfo) if field.init]
_SELECTED = column_list(NOTE_COLUMNS[name].sql for name in _FIELDS)
# The functions that read the stored values of some fields, by the position of the field.
_READERS: dict[int, Callable[[Any], Any]] = {}
for _position, _name in enumerate(_FIELDS):
    _read = NOTE_COLUMNS[_name].read
    if _read is not None:
        _READERS[_position] = _read


def _info(row: tuple[Any, ...]) -> NoteInfo:
    """Turn a row with the columns `_SELECTED` into a note."""
    values = list(row)
    for position, read in _READERS.items():
        values[position] = read(values[position])
    return NoteInfo(*values)


def indexed(
    file: Path, kind: str, prefix: str, agent: str | None, limit: int
) -> list[tuple[str, str]]:
    """Return up to `limit` completions of `prefix`: (value, text about it).

    file: an index, which need not exist. The result is empty if it cannot be read.
    kind: `id`, `entity`, `tag`, `scope` or `source`.
    agent: count only notes that this agent sees. None counts all.
    """
    # The values of all statements in _COMPLETIONS. Each uses some of them.
    values = {"prefix": prefix, "agent": agent, "most": limit, "many": _NOTES_WITH_TAGS}
    # Without a write-ahead log, nobody is writing. `immutable` keeps SQLite from creating files.
    has_log = file.with_name(f"{file.name}-wal").exists()
    options = "mode=ro" if has_log else "mode=ro&immutable=1"
    address = f"{file.absolute().as_uri()}?{options}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=0.2)) as db:
            rows = db.execute(_COMPLETIONS[kind], values).fetchall()
    except sqlite3.Error:
        return []
    # For tags, each row has the tags of one note. The others are completions already.
    if kind == "tag":
        rows = _counted_tags([tags for tags, _ in rows])
    return [(value, text) for value, text in rows if value.startswith(prefix)][:limit]


def _counted_tags(tags_of_notes: Iterable[str]) -> list[tuple[str, str]]:
    """Return (tag, number of notes in words) of each tag, the most frequent first.

    tags_of_notes: the tags of each note, as JSON.
    """
    counts = Counter[str]()
    for tags in tags_of_notes:
        counts.update(json.loads(tags))
    return [
        (tag, "1 note" if number == 1 else f"{number} notes")
        for tag, number in counts.most_common()
    ]


def foreign_rows(path: Path, table: str) -> list[dict[str, Any]]:
    """Return all rows of a table in a database of another program. [] if it has no such table.

    The database is opened for reading only. Raises ValueError if it cannot be read.
    """
    # Importing it takes 3 ms, for which the completions of a shell would wait.
    from urllib.parse import quote

    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    is_table = "select 1 from sqlite_master where type = 'table' and name = ?"
    try:
        with closing(sqlite3.connect(address, uri=True)) as db:
            db.row_factory = sqlite3.Row
            if db.execute(is_table, (table,)).fetchone() is None:
                return []
            return [dict(row) for row in db.execute(f"select * from {table} order by rowid")]
    except sqlite3.Error as error:
        raise ValueError(str(error)) from None


class Placed(Protocol):
    """Any object with the id and the place of a note."""

    @property
    def id(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def path(self) -> str: ...


N = TypeVar("N", bound=Placed)


def original_of(notes: Sequence[N]) -> N | None:
    """Return the note that all others are copies of. None if there is no such note."""
    for note in notes:
        if all(other_note is note or _is_copy(other_note, note) for other_note in notes):
            return note
    return None


def _is_copy(note: Placed, original: Placed) -> bool:
    """Whether `note` is a copy of `original`, with the same id, that a program for syncing folders
    made.
    """
    return note.id == original.id and is_named_as_copy(note, original)


def is_named_as_copy(note: Placed, original: Placed) -> bool:
    """Whether the file of `note` is called as programs for syncing folders call copies.

    Such a copy is in the same folder. Its name begins with the original's name, as in
    `plan (conflict).md` and `plan.md`.
    """
    folder, _, name = note.path.rpartition("/")
    original_folder, _, original_name = original.path.rpartition("/")
    if (note.project, folder) != (original.project, original_folder):
        return False
    original_stem = without_suffix(original_name)
    has_same_stem = without_suffix(name) == original_stem
    return name.startswith(original_stem) and not has_same_stem
