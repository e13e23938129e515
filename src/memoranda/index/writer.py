"""Putting notes into the index and taking them out, at a constant cost per note.

Every function expects to run inside a transaction (`database.transaction`).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clock import microseconds
from memoranda.index import claims, entity_queries, features, filters
from memoranda.index.features import STEMMED
from memoranda.index.filters import facet_text, project_ids
from memoranda.index.listing import folds
from memoranda.index.resolve import first_line_of, key, keys_of, link_key
from memoranda.index.rows import FIRST_PASSAGE, property_text
from memoranda.index.tables import MOST_ROWS, Row, insert, joined, take_words_out
from memoranda.note.inline import Inline, inline
from memoranda.note.links import lead
from memoranda.note.model import (
    GLOBAL,
    GRAPH_PROJECT,
    KV_PROJECT,
    PARTLY_READ,
    Note,
    Provenance,
    Relation,
    with_code,
)
from memoranda.note.names import UUID
from memoranda.sources.base import NO_STAMP, Stamp
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered
from memoranda.text.tokens import fts_text, passages, tokens
from memoranda.text.unicode import is_valid_unicode, sqlite_text, sqlite_value
from memoranda.text.words import runs

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

# Characters of a text from which its passages are indexed, too.
LONG_TEXT = 16_000
PLACED = 4_000_000
"""Characters from which on a note's passages are indexed by themselves, and up to which: a hit
further on shows the note's beginning."""
# Different words of a note that are searched, and different pairs of a run.
WORDS = 100_000
PAIRS = 150_000
# About how many different words or CJK pairs of a note are searched. SQLite holds those of one row
# in memory, and each takes longer than the one before.
_STEP = 1 << 16
# Stands between names of one column. No query can hold it, so no phrase reaches from one name into
# the next. Facet tokens (filters.py) use other private characters.
_APART = "\uf8fe"

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
# A permalink that was numbered because another note had its name.
_NUMBERED = lazy_pattern(r"(.+)-([1-9]\d*)")

# Every table that has rows of a note, in the order they are written, with the column that names the
# note.
_ROW_OF = {
    "note": "row",
    "text": "row",
    "note_fts": "rowid",
    "name_fts": "rowid",
    "stem_fts": "rowid",
    "feature": "row",
    "note_fold": "note",
    "link": "note",
    "merged": "note",
    "superseded": "note",
    "claim": "note",
}
# The id of a project, the row of the next new note, that of the note at a path, and whether another
# note has a permalink.
_AROUND = (
    "select p.id, 1 + coalesce((select seq from sqlite_sequence where name = 'note'), 0), n.row,"
    " exists (select 1 from note o where o.permalink = :permalink and +o.project = p.id and o.path <> :path)"
    " from project p left join note n on n.project = p.id and n.path = :path where p.name = :project"
)
_COUNTING = (
    "insert into tally (project, scope, phase, category, folder, notes)"
    " values (:project, :scope, :phase, :category, :folder, :notes)"
    " on conflict do update set notes = notes + excluded.notes"
)
_TALLIED = (
    "folder = ? and (project, scope, phase, category) ="
    " (select project, scope, coalesce(phase, ''), coalesce(category, '') from note where row = ?)"
)
_FORGET_EXPIRED = "delete from expired where path = ?"
# Projects whose texts are facts and values, in which `#` and `::` mean nothing.
_WITHOUT_INLINE = (GRAPH_PROJECT, KV_PROJECT)


class _Indexed(NamedTuple):
    """The part of a note in the index that is needed to take its words out again.

    The fields are named as in `_INDEXED_COLUMNS`.
    """

    row: int
    path: str
    title: str
    permalink: str
    own: int
    base: str | None
    aliases: str | None
    headings: str
    tags: str
    facet: str
    passages: int
    text: str
    header: str | None


# Of each field of `_Indexed`, the column it is read from.
_INDEXED_COLUMNS = {
    "row": "n.row",
    "path": "n.path",
    "title": "n.title",
    "permalink": "n.permalink",
    "own": "n.own",
    "base": "n.base",
    "aliases": "n.aliases",
    "headings": "t.headings",
    "tags": "t.tags",
    "facet": "t.facet",
    "passages": "t.passages",
    "text": "t.text",
    "header": "t.header",
}


class _Around(NamedTuple):
    """The state of the index at the place of a note that is to be written.

    project: the id of its project.
    next_row: the row of the next new note.
    is_known: whether the index has a note at its path.
    is_taken: whether another note has its permalink.
    """

    project: int
    next_row: int
    is_known: bool
    is_taken: bool


class Passage(NamedTuple):
    """A passage of a long note: where it begins and ends in the text, and its words."""

    start: int
    end: int
    words: str


class Counted(NamedTuple):
    """The properties by which `tally` counts a note, in addition to its folders."""

    project: int
    scope: str
    phase: str
    category: str


@dataclass(slots=True)
class Prepared:
    """The rows to store for a note, by table, without the column that names the note.

    passages: the passages of a long note.
    entity: the note, if it is an entity of the graph.
    """

    path: str
    permalink: str
    own: bool
    etag: str
    stamp: Stamp
    tables: dict[str, list[Row]]
    passages: list[Passage]
    place: Counted
    entity: Note | None

    def sign(self, provenance: Provenance) -> None:
        """Set the origin of the text, for a note that was prepared without it."""
        (note,) = self.tables["note"]
        note["provenance"] = _provenance_json(provenance)


def put(db: sqlite3.Connection, note: Note, stamp: Stamp, *, row: int | None = None) -> str:
    """Indexes `note`, in place of what was at its (project, path). Returns its permalink.

    The row is new and the highest, unless `row` is given (a moved file keeps its place in the
    order of change). A derived permalink may get a number: `_claimed`.
    """
    path = sqlite_text(note.path)
    wanted_permalink = sqlite_text(note.permalink)
    own_permalink = note.own_permalink
    around = _around(db, note)
    if around is None:
        # Adds it
        project_id(db, note.project)
        around = _around(db, note)
        assert around is not None
    project = around.project
    if note.project == "kv":
        db.execute(_FORGET_EXPIRED, (path,))
    if around.is_known:
        old = _read(db, project, path)
    else:
        old = None
    if old is not None:
        _take_out(db, note.project, old)
    stays = (
        old is not None
        and bool(old.own) == own_permalink
        and (old.base or old.permalink) == wanted_permalink
    )
    permalink, base = (
        (old.permalink, old.base) if old is not None and stays else (wanted_permalink, None)
    )
    row = row or around.next_row
    _insert(db, [(row, prepare(note, stamp, project, permalink, base))])
    if old is not None and not stays:
        _released(db, project, note.project, old.permalink)
    if around.is_taken if old is None else not stays:
        _claimed(db, project, note.project, row, wanted_permalink, own_permalink)
        permalink = db.execute("select permalink from note where row = ?", (row,)).fetchone()[0]
    return permalink


def _around(db: sqlite3.Connection, note: Note) -> _Around | None:
    """Return the state of the index at the place of a note. None if it does not have its project."""
    place = {
        "project": note.project,
        "path": sqlite_text(note.path),
        "permalink": sqlite_text(note.permalink),
    }
    row = db.execute(_AROUND, place).fetchone()
    if row is None:
        return None
    project, next_row, known_row, is_taken = row
    return _Around(project, next_row, known_row is not None, bool(is_taken))


def put_all(db: sqlite3.Connection, notes: Iterable[tuple[Note, Stamp]]) -> None:
    """Index notes of different places, each in place of what was there; they get their permalinks.

    New notes are written together, some at a time.
    """
    together: list[tuple[int, Prepared]] = []
    permalinks: set[tuple[str, str]] = set()
    for note, stamp in notes:
        wanted_permalink = sqlite_text(note.permalink)
        around = _around(db, note)
        if (
            around is None
            or around.is_known
            or around.is_taken
            or (note.project, wanted_permalink) in permalinks
            or note.project == KV_PROJECT
        ):
            _insert(db, together)
            together = []
            note.permalink = put(db, note, stamp)
            continue
        row = around.next_row + len(together)
        note.permalink = wanted_permalink
        together.append((row, prepare(note, stamp, around.project, wanted_permalink)))
        permalinks.add((note.project, wanted_permalink))
        if len(together) == MOST_ROWS:
            _insert(db, together)
            together = []
    _insert(db, together)


class Loading:
    """Many new notes of one project: while `threads`, one thread, writes some, the next ones are
    prepared.
    """

    def __init__(self, db: sqlite3.Connection, project: str, threads: Executor):
        self._db = db
        self._threads = threads
        self._name, self.project = project, project_id(db, project)
        self._row = (
            1 + next(db.execute("select seq from sqlite_sequence where name = 'note'"), (0,))[0]
        )
        self._ready: list[tuple[int, Prepared]] = []
        self._writing: Future[None] | None = None
        self._permalinks: list[tuple[int, str, bool]] = []

    def add(self, note: Prepared) -> None:
        """Index a note; nothing may be at its path yet."""
        self._ready.append((self._row, note))
        self._permalinks.append((self._row, note.permalink, note.own))
        self._row += 1
        if len(self._ready) == MOST_ROWS:
            self._write()

    def _write(self) -> None:
        if self._writing is not None:
            self._writing.result()
        self._writing = self._threads.submit(_insert, self._db, self._ready)
        self._ready = []

    def end(self) -> None:
        """Wait until all are written, and number the permalinks that several notes have."""
        self._write()
        assert self._writing is not None
        self._writing.result()
        sql = "select permalink from note where permalink in ({}) and +project = ? group by 1 having count(*) > 1"
        permalinks = list({permalink for _, permalink, _ in self._permalinks})
        shared = set[str]()
        for at in range(0, len(permalinks), 500):
            part = permalinks[at : at + 500]
            claimed_rows = self._db.execute(
                sql.format(", ".join("?" * len(part))), (*part, self.project)
            )
            shared.update(permalink for (permalink,) in claimed_rows)
        for row, permalink, own_permalink in self._permalinks:
            if permalink in shared:
                _claimed(self._db, self.project, self._name, row, permalink, own_permalink)


def holds_any(db: sqlite3.Connection, project: str, paths: Sequence[str]) -> bool:
    """Whether the index has a note or an expired entry at one of these paths."""
    number = project_ids(db).get(project.casefold())
    if number is None:
        return False
    if project == "kv" and db.execute("select 1 from expired limit 1").fetchone():
        return True
    marks = ", ".join("?" * len(paths))
    sql = f"select 1 from note where project = ? and path in ({marks}) limit 1"
    return db.execute(sql, (number, *paths)).fetchone() is not None


def remove(db: sqlite3.Connection, project: str, path: str) -> bool:
    """Takes the note or expired entry out; False when the index has none there."""
    number = project_ids(db).get(project.casefold(), 0)
    old = _read(db, number, path)
    if old is None:
        return project == "kv" and db.execute(_FORGET_EXPIRED, (path,)).rowcount > 0
    _take_out(db, project, old)
    _released(db, number, project, old.permalink)
    return True


def touch(db: sqlite3.Connection, project: str, path: str, stamp: Stamp) -> None:
    """Notes a new stamp for a note whose bytes and time are the same."""
    db.execute(
        "update note set size = ?, mtime_ns = ?, inode = ?, ctime_ns = ?"
        " where project = (select id from project where name = ?) and path = ?",
        (*stamp, project, path),
    )


def forget_project(db: sqlite3.Connection, project: str) -> None:
    """Takes all notes of a project out, and the project itself."""
    number = project_ids(db).get(project.casefold(), 0)
    paths = db.execute("select path from note where project = ?", (number,)).fetchall()
    for (path,) in paths:
        old = _read(db, number, path)
        if old:
            _take_out(db, project, old)
    db.execute("delete from project where id = ?", (number,))


def project_id(db: sqlite3.Connection, name: str) -> int:
    """The id of a project, which is added when it is new."""
    row = db.execute("select id from project where name = ?", (name,)).fetchone()
    return (
        row or db.execute("insert into project (name) values (?) returning id", (name,)).fetchone()
    )[0]


def prepare(
    note: Note, stamp: Stamp, project: int, permalink: str | None = None, base: str | None = None
) -> Prepared:
    """Compute the index rows of a note.

    project: the id of its project.
    permalink: another permalink than its own, if needed.

    Everything else depends only on the note.
    """
    is_valid = all(map(is_valid_unicode, (note.text, note.path, note.title)))
    # An escape may make what SQLite cannot hold
    if not is_valid or "\\u" in note.text or "\\U" in note.text:
        note = sqlite_value(note)
    body = note.text[note.body_at :]
    text = searched(body)
    if note.project not in _WITHOUT_INLINE:
        extra = inline(text)
    else:
        extra = Inline()
    if len(text) >= LONG_TEXT:
        places = passages(text[:PLACED])
    else:
        places = []
    indexed = _indexed(note, text, extra, permalink, base)._replace(
        facet=facet_text(note, project, extra), passages=len(places)
    )
    tables = {
        "note": [_note_row(note, stamp, project, indexed, is_cut=len(text) < len(body))],
        "text": [_text_row(note, indexed, extra)],
        **{table: [words] for table, words in _words(note.project, indexed).items()},
        "feature": [features.row(note, text, project)],
        "note_fold": [{"fold": fold} for fold in _keys(note.project, indexed)],
        "link": _links(note),
        "merged": [{"id": identity} for identity in _merged_ids(note)],
        "superseded": [
            {"id": identity, "is_name": UUID.fullmatch(identity) is None}
            for identity in dict.fromkeys(note.supersedes)
        ],
        "claim": claims.rows_of(note, body),
    }
    return Prepared(
        note.path,
        note.permalink,
        note.own_permalink,
        note.etag,
        stamp,
        tables,
        [
            Passage(place.start, place.end, fts_text(body[place.start : place.end]))
            for place in places
        ],
        Counted(project, note.scope, note.phase or "", note.category or ""),
        note if note.project == GRAPH_PROJECT else None,
    )


def _indexed(
    note: Note, text: str, extra: Inline, permalink: str | None = None, base: str | None = None
) -> _Indexed:
    """The index fields of a note, without its facets and passages.

    `text` is the part that is searched.
    """
    return _Indexed(
        row=0,
        path=note.path,
        title=note.title,
        permalink=note.permalink if permalink is None else permalink,
        own=note.own_permalink,
        base=base,
        aliases=_json(note.aliases),
        headings="\n".join([heading.text for heading in note.headings]),
        tags="\n".join(dict.fromkeys(_all_tags(note, extra))),
        facet="",
        passages=0,
        text=text,
        header=_header_json(note.header),
    )


def _all_tags(note: Note, extra: Inline) -> list[str]:
    """The note's tags, those in its text, and the tags and categories of its observations."""
    tags = [*note.tags, *extra.tags]
    for observation in note.observations:
        tags += observation.tags
        if observation.category:
            tags.append(observation.category)
    return tags


def _note_row(note: Note, stamp: Stamp, project: int, known: _Indexed, *, is_cut: bool) -> Row:
    """The row of table `note`. `is_cut`: not all of the text is searched."""
    warnings = note.warnings
    if is_cut:
        cut = f"words after {len(known.text):,} characters are not searched. Split the note."
        warnings = [*warnings, with_code(PARTLY_READ, cut)]
    begins, ends, limited = filters.valid_span(note)
    return {
        "project": project,
        "path": note.path,
        "id": note.id,
        "title": note.title,
        "type": note.type,
        "permalink": known.permalink,
        "own": known.own,
        "base": known.base,
        "etag": bytes.fromhex(note.etag) if len(note.etag) == 64 else note.etag,
        **stamp._asdict(),
        "created": microseconds(note.created),
        "changed": microseconds(note.changed),
        "updated": note.updated and microseconds(note.updated),
        "date": note.date,
        "phase": note.phase,
        "category": note.category,
        "scope": note.scope,
        "source": note.source,
        "expires": note.expires and microseconds(note.expires),
        "access_count": note.access_count,
        "version": note.version,
        "locked": note.locked,
        "tags": _json(note.tags),
        "aliases": known.aliases,
        "links": _json(note.links),
        "warnings": _json(warnings),
        "begins": begins,
        "ends": ends,
        "limited": limited,
        "suspicious": _json(note.suspicious),
        "provenance": _provenance_json(note.provenance),
    }


def _provenance_json(provenance: Provenance) -> str | None:
    """The origin of a text as stored. None for a file of another program."""
    if provenance.who == "file":
        return None
    return _json(provenance.row())


def _text_row(note: Note, known: _Indexed, extra: Inline) -> Row:
    """The row of table `text`."""
    body = note.text[note.body_at :]
    return {
        "front": note.text[: note.body_at],
        "header": known.header,
        "fields": _json(extra.fields),
        "headings": known.headings,
        "tags": known.tags,
        "facet": known.facet,
        "passages": known.passages,
        "folds": folds(body),
        "text": body,
    }


def _merged_ids(note: Note) -> Iterable[str]:
    """The ids of the notes that were merged into this one."""
    merged = note.header.get("merged")
    if not merged:
        return ()
    if isinstance(merged, list):
        identities = merged
    else:
        identities = str(merged).split(",")
    return dict.fromkeys(str(identity).strip() for identity in identities)


def _insert(db: sqlite3.Connection, notes: Sequence[tuple[int, Prepared]]) -> None:
    """Put new notes into the tables, each in its row."""
    for table, name in _ROW_OF.items():
        rows: list[dict[str, Any]] = []
        for row, note in notes:
            rows += [{name: row, **columns} for columns in note.tables[table]]
        insert(db, table, rows)
    _insert_passages(db, notes)
    counted = Counter((note.place, folder) for _, note in notes for folder in _folders(note.path))
    tallies = [
        {**place._asdict(), "folder": folder, "notes": number}
        for (place, folder), number in counted.items()
    ]
    db.executemany(_COUNTING, tallies)
    for row, note in notes:
        if note.entity is not None:
            entity_queries.put(db, note.entity, row, microseconds(note.entity.created))


def _insert_passages(db: sqlite3.Connection, notes: Sequence[tuple[int, Prepared]]) -> None:
    placed = [
        (row * FIRST_PASSAGE + at, passage)
        for row, note in notes
        for at, passage in enumerate(note.passages)
    ]
    spans = [{"row": at, "start": each.start, "stop": each.end} for at, each in placed]
    insert(db, "passage", spans)
    insert(db, "passage_fts", [{"rowid": at, "body": each.words} for at, each in placed])


def _folders(path: str) -> list[str]:
    """The folders above a note, "" (the project) among them."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _links(note: Note) -> list[Row]:
    """The rows of table `link`: relations, then links that are not of them."""
    linked_names = {relation.target for relation in note.relations if relation.type == "links_to"}
    further = [Relation("links_to", link) for link in note.links if link not in linked_names]
    in_graph = note.project == GRAPH_PROJECT
    rows = []
    for position, relation in enumerate([*note.relations, *further]):
        # In a graph a name is not a path.
        is_name = relation.is_item and in_graph
        fold = key(relation.target) if is_name else link_key(relation.target, note.path)
        rows.append(
            {
                "position": position,
                "type": relation.type,
                "target": relation.target,
                "project": relation.project,
                "context": relation.context,
                "line": relation.line,
                "fold": fold,
                "item": relation.is_item,
                "rest": relation.rest,
            }
        )
    return rows


def _read(db: sqlite3.Connection, project: int, path: str) -> _Indexed | None:
    columns = joined(_INDEXED_COLUMNS.values())
    row = db.execute(
        f"select {columns} from note n join text t on t.row = n.row"
        " where n.project = ? and n.path = ?",
        (project, path),
    ).fetchone()
    if row is None:
        return None
    old = _Indexed(**dict(zip(_INDEXED_COLUMNS, row, strict=True)))
    return old._replace(text=searched(old.text))


@remembered
def searched(text: str) -> str:
    """The part of a note's text that is searched: all of it, or the beginning with about `WORDS`
    words.

    Only different words count.
    """
    seen_texts: set[str] = set()
    for at in range(0, len(text) if len(text) > PAIRS else 0, _STEP):
        part = text[at : at + _STEP].lower()
        is_cjk = not part.isascii() and sum(map(len, runs().findall(part))) * 2 > len(part)
        seen_texts.update(map(add, part, part[1:]) if is_cjk else tokens(part))
        if len(seen_texts) > (PAIRS if is_cjk else WORDS):
            return text[: at + _STEP]
    return text


def _take_out(db: sqlite3.Connection, project: str, old: _Indexed) -> None:
    """Deletes all rows of a note; the full-text tables have to be told the very words they were
    given.
    """
    row = old.row
    for table, words in _words(project, old).items():
        take_words_out(db, table, row, words)
    if old.passages:
        span = (row * FIRST_PASSAGE, row * FIRST_PASSAGE + old.passages - 1)
        parts = db.execute(
            "select row, start, stop from passage where row between ? and ?", span
        ).fetchall()
        db.executemany(
            "insert into passage_fts (passage_fts, rowid, body) values ('delete', ?, ?)",
            ((at, fts_text(old.text[start:stop])) for at, start, stop in parts),
        )
        db.execute("delete from passage where row between ? and ?", span)
    db.executemany(
        "delete from note_fold where fold = ? and note = ?",
        [(this_key, row) for this_key in _keys(project, old)],
    )
    for folder in _folders(old.path):
        db.execute(f"update tally set notes = notes - 1 where {_TALLIED}", (folder, row))
        db.execute(f"delete from tally where {_TALLIED} and notes = 0", (folder, row))
    tables = (
        "link where note",
        "entity where note",
        "merged where note",
        "superseded where note",
        "claim where note",
        "feature where row",
        "text where row",
        "note where row",
    )
    for place in tables:
        if place[:6] != "entity" or project == GRAPH_PROJECT:
            db.execute(f"delete from {place} = ?", (row,))


def foresee(note: Note, project: int) -> None:
    """Compute the index rows of a note ahead, so that `remembered` functions know them when it is
    written.

    project: the id that its project has or will get.
    """
    prepare(note, NO_STAMP, project, sqlite_text(note.permalink))


def foresee_removal(note: Note) -> None:
    """Work out the words that are taken out of the index with a note, for `remembered` functions
    to know them."""
    text = searched(note.text[note.body_at :])
    if len(text) >= LONG_TEXT:
        for place in passages(text[:PLACED]):
            fts_text(text[place.start : place.end])
    extra = Inline() if note.project in _WITHOUT_INLINE else inline(text)
    _words(note.project, _indexed(note, text, extra))


def _words(project: str, old: _Indexed) -> dict[str, Row]:
    """The rows of a note in the full-text tables: of notes, of their names and of stems."""
    facet = old.facet
    words = _words_without_facet(project, old._replace(facet=""))
    return {
        "note_fts": {**words.names, "body": words.body, "address": words.address, "facet": facet},
        "name_fts": {**words.names, "facet": facet},
        "stem_fts": {"words": features.stem_text(words.stemmed, facet)},
    }


class _Words(NamedTuple):
    """The words by which a note is found, but for its facets, which tell who wrote it."""

    names: dict[str, str]
    address: str
    body: str
    stemmed: tuple[str, ...]
    """The texts whose stems count."""


@remembered
def _words_without_facet(project: str, old: _Indexed) -> _Words:
    titles = _names_apart("\n".join([old.title, *json.loads(old.aliases or "[]")]))
    headings = _names_apart(old.headings)
    tags = _names_apart(old.tags)
    address = old.path
    tail = (old.base or old.permalink).removeprefix(f"{lead(project)}/")
    # The permalink says more than the path.
    if not set(tokens(address.casefold())).issuperset(tokens(tail)):
        address = f"{address}\n{tail}"
    address = _names_apart(f"{address}\n{property_text(old.header)}")
    body = fts_text(old.text)
    if len(old.text) <= STEMMED:
        begin = body
    else:
        begin = fts_text(old.text[:STEMMED])
    named = [column.replace(_APART, "\n") for column in (titles, headings, tags, address)]
    names = {"title": titles, "headings": headings, "tags": tags}
    return _Words(names, address, body, (*named, begin))


def _names_apart(names: str) -> str:
    """Names, one on a line, as a full-text column that no phrase is found in across two of them."""
    return fts_text(names).replace("\n", f" {_APART} ")


def _keys(project: str, old: _Indexed) -> set[str]:
    return _keys_of(project, old.path, old.permalink, old.title, old.aliases, old.text)


@remembered
def _keys_of(
    project: str, path: str, permalink: str, title: str, aliases: str | None, text: str
) -> set[str]:
    names = (title, *json.loads(aliases or "[]"))
    return keys_of(project, path, permalink, names, first_line_of(project, text))


def _header_json(header: Mapping[str, Any]) -> str | None:
    """The header as JSON, which is read ten times as fast as YAML.

    None if it is nested too deep.
    """
    try:
        return _json(header)
    except RecursionError:
        return None


def _json(value: Any) -> str | None:
    if value:
        return _ENCODER.encode(value)
    return None


def _claimed(
    db: sqlite3.Connection, project: int, name: str, row: int, permalink: str, own_permalink: bool
) -> None:
    """Give `permalink` to the note `row`, and renumber the groups that this touches.

    If several notes have one derived permalink (contract 000b, 4.1), the first path in code-point
    order keeps it. The others get `-1`, `-2` ..., without the numbers that are the path or
    frontmatter permalink of another note. The outcome does not depend on the order in which notes
    came. A note with its own permalink never gives way.
    """
    other_rows = db.execute(
        "select own, base from note where permalink = ? and project = ? and row <> ?",
        (permalink, project, row),
    ).fetchall()
    groups = {base or permalink for own_one, base in other_rows if not own_one}
    if other_rows and not own_permalink:
        groups.add(permalink)
    for base in sorted(groups):
        _renumber(db, project, name, base)


def _released(db: sqlite3.Connection, project: int, name: str, permalink: str) -> None:
    """Free `permalink`, whose note is gone. Notes that had to give way may move up."""
    numbered = _NUMBERED.fullmatch(permalink)
    for base in (permalink, numbered[1]) if numbered else (permalink,):
        if db.execute(
            "select 1 from note where base = ? and project = ? limit 1", (base, project)
        ).fetchone():
            _renumber(db, project, name, base)


def _renumber(db: sqlite3.Connection, project: int, name: str, base: str) -> None:
    """Gives the notes of one derived permalink their numbers, and the link keys that follow from
    them.
    """
    members = db.execute(
        # `+`: else SQLite walks all notes of the project in the order of their paths
        "select row, path, permalink, scope from note where permalink = :base"
        " and +project = :project and own = 0 and base is null"
        " union select row, path, permalink, scope from note where base = :base"
        " and +project = :project"
        " order by path",
        {"base": base, "project": project},
    ).fetchall()
    members.sort(key=lambda member: member[3] != GLOBAL)
    next_of: dict[str, int] = {}
    # By another note's own or path-derived permalink
    is_taken = (
        "select 1 from note where permalink = ? and project = ? and base is null and (own = 1 or ?)"
        f" and scope in ('{GLOBAL}', ?) limit 1"
    )
    for row, path, current, scope in members:
        # A note gives way to those in its own scope and of all agents: others are not to be told
        # from its number.
        start = max(next_of.get(scope, 0), next_of.get(GLOBAL, 0))
        for number in count(start):
            if number:
                permalink = f"{base}-{number}"
            else:
                permalink = base
            if db.execute(is_taken, (permalink, project, number > 0, scope)).fetchone() is None:
                break
        next_of[scope] = number + 1
        if permalink == current:
            continue
        old = _read(db, project, path)
        assert old is not None
        db.executemany(
            "delete from note_fold where fold = ? and note = ?",
            [(this_key, row) for this_key in _keys(name, old)],
        )
        keys = _keys(name, old._replace(permalink=permalink))
        insert(db, "note_fold", [{"fold": fold, "note": row} for fold in keys])
        db.execute(
            "update note set permalink = ?, base = ? where row = ?",
            (permalink, base if number else None, row),
        )
