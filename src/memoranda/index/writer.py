"""Put notes into the index and take them out, at a constant cost per note.

`prepare` computes all rows of a note without the database, `put` and `put_all` insert them. A
full-text table can only delete a row if it gets exactly the words it was given. So `Indexed` holds
the fields from which these words can be computed again.

Every function expects to run inside a transaction (`database.transaction`).

A *row* is the number of a note in all tables, and higher for a note that changed later. A *facet* is
a word in the full-text tables by which filters find notes, such as one for each tag (filters.py). A
*key* is a folded name by which links find notes (resolve.py); table `note_fold` has it in column
`fold`. Table `tally` counts notes by folder. The *base* of a permalink that had to take a number is
the permalink without it: `plan` of `plan-2`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clock import microseconds
from memoranda.index import claims, entity_queries, features, filters, placing
from memoranda.index.features import STEMMED
from memoranda.index.filters import facet_text, project_ids, with_writer
from memoranda.index.listing import folds
from memoranda.index.placing import Passage, delete_passages, has_parts, insert_passages
from memoranda.index.resolve import first_line_of, key, keys_of, link_key
from memoranda.index.rows import at_note, property_text
from memoranda.index.tables import MOST_ROWS, Row, column_list, insert, take_words_out
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
from memoranda.sources.base import Stamp
from memoranda.text.pattern import lazy_pattern
from memoranda.text.remembered import remembered, remembering
from memoranda.text.tokens import fts_text, passages, tokens
from memoranda.text.unicode import is_valid_unicode, sqlite_text, sqlite_value
from memoranda.text.words import runs

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

# Characters of a text from which its passages are indexed, too.
LONG_TEXT = 16_000
PLACED = 4_000_000
"""Passages are indexed up to this character of a text. A hit further on shows the note's
beginning."""
# About how many different words of a note are searched, or pairs of letters in Chinese, Japanese
# and Korean text. SQLite holds the words of one row in memory, and each takes longer than the one
# before.
WORDS = 100_000
PAIRS = 150_000
# How many characters are looked at before the words are counted again.
_CHARACTERS_PER_COUNT = 1 << 16
# In UTF-32
_BYTES_OF_CHARACTER = 4
# Separates the names in one column. No query can contain it, so no phrase reaches from one name
# into the next. Facet tokens (filters.py) use other private characters.
_NAME_SEPARATOR = "\uf8fe"

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
    "entity": "note",
}
# Selects the columns of `_StateBefore`; for `is_known`, the row of the note at the path.
_STATE_BEFORE = (
    "select p.id, 1 + coalesce((select seq from sqlite_sequence where name = 'note'), 0), n.row,"
    " exists (select 1 from note o where o.permalink = :permalink and +o.project = p.id and o.path <> :path)"
    " from project p left join note n on n.project = p.id and n.path = :path where p.name = :project"
)
# Adds to the number of notes in a folder.
_ADD_TO_TALLY = (
    "insert into tally (project, scope, phase, category, folder, notes)"
    " values (:project, :scope, :phase, :category, :folder, :notes)"
    " on conflict do update set notes = notes + excluded.notes"
)
# The condition that selects the count of a folder to which the note in a row belongs.
_IN_TALLY_OF_NOTE = (
    "folder = ? and (project, scope, phase, category) ="
    " (select project, scope, coalesce(phase, ''), coalesce(category, '') from note where row = ?)"
)
# The table whose rows of long notes are inserted in a transaction of their own (placing.py).
_STEMS = "stem_fts"
_FORGET_EXPIRED = "delete from expired where path = ?"
# Projects whose texts are facts and values, in which `#` and `::` mean nothing.
_WITHOUT_INLINE = (GRAPH_PROJECT, KV_PROJECT)


class Indexed(NamedTuple):
    """The fields of a note that its full-text words and its keys are computed from.

    row: its row; 0 if it has none yet.
    path, title, permalink: its place and its names.
    has_own_permalink: whether the permalink is written in the frontmatter.
    base: the permalink without its number, for a note that had to take a number. Else None.
    aliases, header: JSON, or None if empty.
    headings, tags: one on a line.
    facet: the tokens by which filters find the note (filters.py).
    passages: how many passages are indexed. 0 for a short note.
    text: the part of the body that is searched.
    """

    row: int
    path: str
    title: str
    permalink: str
    has_own_permalink: int
    base: str | None
    aliases: str | None
    headings: str
    tags: str
    facet: str
    passages: int
    text: str
    header: str | None


# The column from which each field of `Indexed` is read.
_INDEXED_COLUMNS = {
    "row": "n.row",
    "path": "n.path",
    "title": "n.title",
    "permalink": "n.permalink",
    "has_own_permalink": "n.own",
    "base": "n.base",
    "aliases": "n.aliases",
    "headings": "t.headings",
    "tags": "t.tags",
    "facet": "t.facet",
    "passages": "t.passages",
    "text": "t.text",
    "header": "t.header",
}


class _StateBefore(NamedTuple):
    """The state of the index before a note is written.

    project: the id of the note's project.
    next_row: the row that a new note would get.
    is_known: whether the index has a note at the same path, which will be replaced.
    is_taken: whether a note at another path has the permalink.
    """

    project: int
    next_row: int
    is_known: bool
    is_taken: bool


class Counted(NamedTuple):
    """The properties that table `tally` counts notes by, in addition to their folders.

    project: the id of its project.
    scope: who may see it.
    phase, category: "" if the note has none.
    """

    project: int
    scope: str
    phase: str
    category: str


@dataclass(slots=True)
class Prepared:
    """All rows of a note for the index, before they are inserted.

    Another process may compute them. It does not know the number of the note's row in the database,
    nor who wrote the note, so these are added later.

    path, etag, stamp: the path, the hash and the stamp (size and times) of its file.
    permalink: its permalink. One like `plan-2` has a number at its end, because another note of the
        project has the permalink `plan`.
    has_own_permalink: whether the permalink is written in the frontmatter. If not, it is derived from the note's name.
    tables: table -> rows of the note, such as `{"note": [{"title": "Plan", …}], "link": [], …}`. The
        number of the note's row is missing; it is added to each row at insertion, in the column
        that `_ROW_OF` has for the table.
    passages: the passages of a long note. Empty for others.
    counted_as: project, scope, phase and category of the note. The table `tally` has the number of notes
        for each combination.
    facet: the words by which filters find the note, such as one for each of its tags, separated by
        blanks (index/filters.py). Words for its writer are missing; `sign` adds them.
    """

    path: str
    permalink: str
    has_own_permalink: bool
    etag: str
    stamp: Stamp
    tables: dict[str, list[Row]]
    passages: list[Passage]
    counted_as: Counted
    facet: str

    def fits(self, project: int, permalink: str, base: str | None) -> bool:
        """Whether the rows were computed for this project and this permalink.

        If not, they must be computed again: the number of a permalink is known only when the note
        is inserted, and rows that were prepared before may have the permalink without it.

        project: the id of the project.
        permalink: the permalink that the note gets, such as `plan-2`.
        base: the permalink without its number, here `plan`. None for a permalink without a number.
        """
        (note,) = self.tables["note"]
        return (note["project"], note["permalink"], note["base"]) == (project, permalink, base)

    def settle(self, stamp: Stamp, provenance: Provenance) -> None:
        """Set the columns that are known only once the note's file is written.

        stamp: the stamp of the file.
        provenance: where the text of the note comes from.
        """
        self.stamp = stamp
        (note,) = self.tables["note"]
        note.update(stamp._asdict())
        self.sign(provenance)

    def sign(self, provenance: Provenance) -> None:
        """Set the origin of the text, and the facet tokens for filters by its writer.

        Another process that prepares a note does not know its origin.
        """
        # Each of these tables has one row of the note, whose columns are set here.
        (note,) = self.tables["note"]
        note["provenance"] = _provenance_json(provenance)
        (text,) = self.tables["text"]
        old_facet = text["facet"]
        new_facet = with_writer(self.facet, provenance)
        for table in ("text", "note_fts", "name_fts"):
            (columns,) = self.tables[table]
            columns["facet"] = new_facet
        # Table `stem_fts` has a single column. The facet tokens are its last words (`stem_text`).
        (stems,) = self.tables["stem_fts"]
        stems["words"] = stems["words"].removesuffix(old_facet) + new_facet


def put(
    db: sqlite3.Connection,
    note: Note,
    stamp: Stamp,
    *,
    row: int | None = None,
    prepared: Prepared | None = None,
) -> str:
    """Index `note`, replacing any note at the same project and path. Return its permalink.

    row: the row to use; a moved file keeps its row. None takes a new one, the highest, since the
        order of rows is the order of change.
    prepared: the rows of the note, if they were computed before. None computes them here.

    A permalink that is derived from the note's name may get a number, since no two notes of a
    project have the same one: `plan-1`.
    """
    path = sqlite_text(note.path)
    # The permalink that the note gets unless another note has it.
    wanted_permalink = sqlite_text(note.permalink)
    before = _state_before(db, note)
    if before is None:
        # The note is the first of its project, which `project_id` adds.
        project_id(db, note.project)
        before = _state_before(db, note)
        assert before is not None
    project = before.project
    row = row or before.next_row
    # An expired entry at this path is not among the notes, so it is not replaced like one.
    if note.project == KV_PROJECT:
        db.execute(_FORGET_EXPIRED, (path,))

    # Take out the note that is replaced.
    old = _fields_at(db, project, path) if before.is_known else None
    if old is not None:
        _delete_note(db, note.project, old)

    # Insert the new one. If it keeps the permalink of the old one, it changes no other note's.
    if old is not None and _keeps_permalink(old, note):
        rows = _rows_for(
            prepared,
            note=note,
            stamp=stamp,
            project=project,
            permalink=old.permalink,
            base=old.base,
        )
        _insert(db, [(row, rows)])
        return old.permalink
    rows = _rows_for(prepared, note, stamp, project, wanted_permalink, base=None)
    _insert(db, [(row, rows)])

    # Give out the numbers of derived permalinks again, unless the note is at a new path and no
    # other note has its permalink.
    if old is None and not before.is_taken:
        return wanted_permalink
    permalinks = _Permalinks(db, project, note.project)
    if old is not None:
        permalinks.renumber_without(old.permalink)
    permalinks.renumber_beside(row, wanted_permalink, note.own_permalink)
    # The note itself may have got a number.
    (permalink,) = db.execute("select permalink from note where row = ?", (row,)).fetchone()
    return str(permalink)


def _state_before(db: sqlite3.Connection, note: Note) -> _StateBefore | None:
    """Return the state of the index before `note` is written. None if its project is new."""
    place = {
        "project": note.project,
        "path": sqlite_text(note.path),
        "permalink": sqlite_text(note.permalink),
    }
    row = db.execute(_STATE_BEFORE, place).fetchone()
    if row is None:
        return None
    project, next_row, known_row, is_taken = row
    return _StateBefore(project, next_row, known_row is not None, bool(is_taken))


def _rows_for(
    prepared: Prepared | None,
    note: Note,
    stamp: Stamp,
    project: int,
    permalink: str,
    base: str | None,
) -> Prepared:
    """Return the rows of a note. They are computed now if `prepared` has not these rows.

    prepared: the rows that were computed before. None if they were not.
    stamp: the size and times of its file.
    project: the id of its project.
    permalink: the permalink to store.
    base: the permalink without its number, if it has one. Else None.
    """
    if prepared is None or not prepared.fits(project, permalink, base):
        return prepare(note, stamp, project, permalink, base)
    prepared.settle(stamp, note.provenance)
    return prepared


def put_all(
    db: sqlite3.Connection,
    notes: Iterable[tuple[Note, Stamp]],
    prepared: Mapping[tuple[str, str], Prepared] = {},
) -> None:
    """Index notes of different places, as `put` does. Set the permalink of each note.

    Notes whose permalink no other note wants are written in groups, which is faster.

    prepared: the rows of notes for which they were computed before, by (project, path).
    """
    # The rows of notes that are written together later, each with the number of its row.
    waiting_notes: list[tuple[int, Prepared]] = []
    # The (project, permalink) of all notes that ever waited.
    used_permalinks: set[tuple[str, str]] = set()
    for note, stamp in notes:
        before = _state_before(db, note)
        wanted_permalink = (note.project, sqlite_text(note.permalink))
        prepared_rows = prepared.get((note.project, note.path))
        rows = None
        # Waiting notes are not in the index yet, so it does not know their permalinks.
        is_free = wanted_permalink not in used_permalinks
        # Only `put` forgets the expired entry at a path of project kv.
        if before is not None and is_free and note.project != KV_PROJECT:
            rows = _rows_if_undisputed(db, note, stamp, before, prepared_rows)

        if before is None or rows is None:
            # This note is written alone. `put` must see all notes before it.
            _insert(db, waiting_notes)
            waiting_notes = []
            note.permalink = put(db, note, stamp, prepared=prepared_rows)
            continue

        # The waiting notes get the next rows, in their order.
        row = before.next_row + len(waiting_notes)
        waiting_notes.append((row, rows))
        # A note that keeps a numbered permalink uses this, too.
        used_permalinks |= {wanted_permalink, (note.project, note.permalink)}
        if len(waiting_notes) == MOST_ROWS:
            _insert(db, waiting_notes)
            waiting_notes = []
    _insert(db, waiting_notes)


def _rows_if_undisputed(
    db: sqlite3.Connection,
    note: Note,
    stamp: Stamp,
    before: _StateBefore,
    prepared: Prepared | None,
) -> Prepared | None:
    """Return the rows of a note whose permalink changes no other note's permalink.

    An older state of the note is taken out of the index. None, without any change, if the permalink
    may need a number.

    stamp: the size and times of its file.
    before: the state of the index before the note is written.
    prepared: the rows of the note that were computed before. None if they were not.
    """
    permalink = sqlite_text(note.permalink)
    base = None
    if before.is_known:
        old = _fields_at(db, before.project, sqlite_text(note.path))
        if old is None or not _keeps_permalink(old, note):
            return None
        _delete_note(db, note.project, old)
        permalink = old.permalink
        base = old.base
    elif before.is_taken:
        return None
    rows = _rows_for(
        prepared, note=note, stamp=stamp, project=before.project, permalink=permalink, base=base
    )
    note.permalink = permalink
    return rows


def _keeps_permalink(old: Indexed, note: Note) -> bool:
    """Whether a note that replaces `old` keeps its permalink, with its number if it has one."""
    wanted_permalink = sqlite_text(note.permalink)
    is_own_as_before = bool(old.has_own_permalink) == note.own_permalink
    return is_own_as_before and (old.base or old.permalink) == wanted_permalink


class Loading:
    """Writes many new notes of one project in a thread, while the caller prepares the next ones.

    Call `add` for each note, then `end` once.
    """

    def __init__(self, db: sqlite3.Connection, project: str, threads: Executor):
        """Prepare to write notes of `project`.

        threads: an executor with a single thread.
        """
        self._db = db
        self._threads = threads
        self._project_name = project
        self.project = project_id(db, project)
        # SQLite keeps the highest row that table `note` ever had. The table is missing there as
        # long as it never had any.
        sql = "select seq from sqlite_sequence where name = 'note'"
        (highest_row,) = db.execute(sql).fetchone() or (0,)
        self._next_row = highest_row + 1
        # The notes that wait for their group to be full, with their rows.
        self._waiting: list[tuple[int, Prepared]] = []
        # The group that the thread writes, or wrote last.
        self._writing: Future[None] | None = None
        # (row, permalink, whether the frontmatter has it) of all notes.
        self._permalinks: list[tuple[int, str, bool]] = []

    def add(self, note: Prepared) -> None:
        """Index a note. The index must not have a note at its path."""
        self._waiting.append((self._next_row, note))
        self._permalinks.append((self._next_row, note.permalink, note.has_own_permalink))
        self._next_row += 1
        if len(self._waiting) == MOST_ROWS:
            self._write()

    def _write(self) -> None:
        """Let the thread write the notes that wait, after those it writes now."""
        if self._writing is not None:
            self._writing.result()
        self._writing = self._threads.submit(_insert, self._db, self._waiting)
        self._waiting = []

    def end(self) -> None:
        """Write the rest, wait for it, and number the permalinks that several notes have."""
        self._write()
        assert self._writing is not None
        self._writing.result()
        shared_permalinks = self._shared_permalinks()
        permalinks = _Permalinks(self._db, self.project, self._project_name)
        for row, permalink, own_permalink in self._permalinks:
            if permalink in shared_permalinks:
                permalinks.renumber_beside(row, permalink, own_permalink)

    def _shared_permalinks(self) -> set[str]:
        """Return the permalinks of the new notes that several notes of the project have."""
        permalinks = list({permalink for _, permalink, _ in self._permalinks})
        shared_permalinks: set[str] = set()
        # A statement of an old SQLite takes at most 999 values.
        for start in range(0, len(permalinks), 500):
            part = permalinks[start : start + 500]
            marks = ", ".join("?" * len(part))
            # The `+` makes SQLite look up permalinks rather than walk the project.
            rows = self._db.execute(
                f"select permalink from note where permalink in ({marks}) and +project = ?"
                " group by permalink having count(*) > 1",
                (*part, self.project),
            )
            shared_permalinks.update(permalink for (permalink,) in rows)
        return shared_permalinks


def holds_any(db: sqlite3.Connection, project: str, paths: Sequence[str]) -> bool:
    """Whether one of these paths may be in the index already. False means that all are new.

    Expired entries of project kv are in a table of their own. They are not looked up by path: if
    there is any, the answer is True.
    """
    project_number = project_ids(db).get(project.casefold())
    if project_number is None:
        return False
    # Only `put` forgets an expired entry. There is hardly ever one, so its path is not compared.
    if project == KV_PROJECT and db.execute("select 1 from expired limit 1").fetchone():
        return True
    marks = ", ".join("?" * len(paths))
    sql = f"select 1 from note where project = ? and path in ({marks}) limit 1"
    return db.execute(sql, (project_number, *paths)).fetchone() is not None


def remove(db: sqlite3.Connection, project: str, path: str) -> bool:
    """Take the note or expired entry at a path out of the index. False if nothing is there."""
    # 0 is the id of no project.
    project_number = project_ids(db).get(project.casefold(), 0)
    old = _fields_at(db, project_number, path)
    if old is None:
        # An expired entry is not among the notes any more.
        return project == KV_PROJECT and db.execute(_FORGET_EXPIRED, (path,)).rowcount > 0
    _delete_note(db, project, old)
    # The number of its permalink may be free now.
    _Permalinks(db, project_number, project).renumber_without(old.permalink)
    return True


def touch(db: sqlite3.Connection, project: str, path: str, stamp: Stamp) -> None:
    """Store a new stamp of a file whose content is the same."""
    db.execute(
        "update note set size = ?, mtime_ns = ?, inode = ?, ctime_ns = ?"
        " where project = (select id from project where name = ?) and path = ?",
        (*stamp, project, path),
    )


def forget_project(db: sqlite3.Connection, project: str) -> None:
    """Take all notes of a project out of the index, and the project."""
    # 0 is the id of no project.
    project_number = project_ids(db).get(project.casefold(), 0)
    paths = db.execute("select path from note where project = ?", (project_number,)).fetchall()
    for (path,) in paths:
        old = _fields_at(db, project_number, path)
        if old:
            _delete_note(db, project, old)
    db.execute("delete from project where id = ?", (project_number,))


def project_id(db: sqlite3.Connection, name: str) -> int:
    """Return the id of a project. A new project is added."""
    row = db.execute("select id from project where name = ?", (name,)).fetchone()
    if row is None:
        sql = "insert into project (name) values (?) returning id"
        row = db.execute(sql, (name,)).fetchone()
    number: int = row[0]
    return number


def prepare(
    note: Note, stamp: Stamp, project: int, permalink: str | None = None, base: str | None = None
) -> Prepared:
    """Compute the index rows of a note. The database is not needed.

    stamp: the size and times of its file.
    project: the id of its project.
    permalink: the permalink to store. None means the note's own.
    base: the permalink without its number, if it has one. Else None.

    Raises NotIndexable.
    """
    with at_note(note.path, stamp), ExitStack() as memory:
        # The words of a long text are computed once and used for several rows (`remembered`).
        if len(note.text) >= LONG_TEXT:
            memory.enter_context(remembering())
        note = _storable(note)
        # The text below the header, the part of it that is searched, and the tags and fields there.
        body = note.text[note.body_at :]
        text = searched(body)
        extra = Inline() if note.project in _WITHOUT_INLINE else inline(text)
        # Only a long text is also indexed in passages.
        passage_places = passages(text[:PLACED]) if len(text) >= LONG_TEXT else []
        facet = facet_text(note, project, extra)
        fields = _indexed_fields(note, text, extra, permalink, base)._replace(
            facet=with_writer(facet, note.provenance), passages=len(passage_places)
        )
        return Prepared(
            path=note.path,
            permalink=note.permalink,
            has_own_permalink=note.own_permalink,
            etag=note.etag,
            stamp=stamp,
            tables=_rows_by_table(
                note, stamp=stamp, project=project, indexed=fields, extra=extra, body=body
            ),
            passages=[
                Passage(place.start, place.end, fts_text(body[place.start : place.end]))
                for place in passage_places
            ],
            counted_as=Counted(project, note.scope, note.phase or "", note.category or ""),
            # Without the words for its writer, which another process does not know (`sign`).
            facet=facet,
        )


def _storable(note: Note) -> Note:
    """Return a note in a form that SQLite can store."""
    is_valid = all(map(is_valid_unicode, (note.text, note.path, note.title)))
    # In a header, an escape such as `\ud800` may mean a character that SQLite cannot store.
    has_escape = "\\u" in note.text or "\\U" in note.text
    if is_valid and not has_escape:
        return note
    return sqlite_value(note)


def _rows_by_table(
    note: Note, stamp: Stamp, project: int, indexed: Indexed, extra: Inline, body: str
) -> dict[str, list[Row]]:
    """Return the rows of a note in each table, without its passages.

    project: the id of its project.
    indexed: the fields of the note that are searched.
    extra: the tags and fields in its text.
    body: the whole text below the header. If it is very long, only a part of it is searched.
    """
    is_cut = len(indexed.text) < len(body)
    superseded_ids = dict.fromkeys(note.supersedes)
    return {
        "note": [_note_row(note, stamp, project, indexed, is_cut=is_cut)],
        "text": [_text_row(note, indexed, extra)],
        **{table: [words] for table, words in _words(note.project, indexed).items()},
        "feature": [features.row(note, indexed.text, project)],
        "note_fold": [{"fold": fold} for fold in _keys(note.project, indexed)],
        "link": _links(note),
        "merged": [{"id": identity} for identity in _merged_ids(note)],
        "superseded": [
            {"id": identity, "is_name": UUID.fullmatch(identity) is None}
            for identity in superseded_ids
        ],
        "claim": claims.rows_of(note, body),
        "entity": entity_queries.rows_of(note),
    }


def _indexed_fields(
    note: Note, text: str, extra: Inline, permalink: str | None = None, base: str | None = None
) -> Indexed:
    """Return the index fields of a note, without its facets and passages.

    text: the part of the body that is searched.
    extra: the tags and fields in that text.
    permalink: the permalink to store. None means the note's own.
    base: the permalink without its number, if it has one. Else None.
    """
    return Indexed(
        row=0,
        path=note.path,
        title=note.title,
        permalink=note.permalink if permalink is None else permalink,
        has_own_permalink=note.own_permalink,
        base=base,
        aliases=_json(note.aliases),
        headings="\n".join([heading.text for heading in note.headings]),
        tags="\n".join(dict.fromkeys(_all_tags(note, extra))),
        facet="",
        passages=0,
        text=text,
        header=_header_json(note.header),
    )


def _header_json(header: Mapping[str, Any]) -> str | None:
    """Return the header as JSON, which is read ten times as fast as YAML.

    None if it is empty or nested too deeply.
    """
    try:
        return _json(header)
    except RecursionError:
        return None


def _all_tags(note: Note, extra: Inline) -> list[str]:
    """Return the tags of a note's header, text and observations, and the observations' categories.

    extra: the tags in its text.
    """
    tags = [*note.tags, *extra.tags]
    for observation in note.observations:
        tags += observation.tags
        if observation.category:
            tags.append(observation.category)
    return tags


def _note_row(note: Note, stamp: Stamp, project: int, indexed: Indexed, *, is_cut: bool) -> Row:
    """Return the row of table `note`. Times are microseconds since 1970.

    stamp: the size and times of its file.
    project: the id of its project.
    indexed: the fields of the note that are searched.
    is_cut: whether only a part of the text is searched. Then the note gets a warning.
    """
    warnings = note.warnings
    if is_cut:
        warning = f"words after {len(indexed.text):,} characters are not searched. Split the note."
        warnings = [*warnings, with_code(PARTLY_READ, warning)]
    begins, ends, limited = filters.valid_span(note)
    return {
        "project": project,
        "path": note.path,
        "id": note.id,
        "title": note.title,
        "type": note.type,
        "permalink": indexed.permalink,
        "own": indexed.has_own_permalink,
        "base": indexed.base,
        # A SHA-256 takes half as much room in bytes as in its 64 hexadecimal digits.
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
        "aliases": indexed.aliases,
        "links": _json(note.links),
        "warnings": _json(warnings),
        "begins": begins,
        "ends": ends,
        "limited": limited,
        "suspicious": _json(note.suspicious),
        "provenance": _provenance_json(note.provenance),
    }


@remembered
def _provenance_json(provenance: Provenance) -> str | None:
    """Return the origin of a text as JSON. None for a file that another program wrote."""
    if provenance.who == "file":
        return None
    return _json(provenance.row())


def _text_row(note: Note, indexed: Indexed, extra: Inline) -> Row:
    """Return the row of table `text`: the file's text, and the fields that are searched.

    indexed: the fields of the note that are searched.
    extra: the tags and fields in its text.
    """
    body = note.text[note.body_at :]
    # None for a text of one chunk, or one that is stored as passages.
    chunks = None if indexed.passages else features.stored_chunks(body)
    return {
        "front": note.text[: note.body_at],
        "header": indexed.header,
        "fields": _json(extra.fields),
        "headings": indexed.headings,
        "tags": indexed.tags,
        "facet": indexed.facet,
        "passages": indexed.passages,
        "folds": folds(body),
        "chunks": chunks and chunks.cuts,
        "speakers": chunks and chunks.speakers,
        "text": body,
    }


def _links(note: Note) -> list[Row]:
    """Return the rows of table `link`: the relations, then the header's links not among them."""
    linked_names = {relation.target for relation in note.relations if relation.type == "links_to"}
    links_of_header = [
        Relation("links_to", link) for link in note.links if link not in linked_names
    ]
    in_graph = note.project == GRAPH_PROJECT
    rows = []
    for position, relation in enumerate([*note.relations, *links_of_header]):
        # In a graph, a relation names an entity, so `../x` is not a path.
        is_name_of_entity = relation.is_item and in_graph
        fold: str | None
        if is_name_of_entity:
            fold = key(relation.target)
        else:
            fold = link_key(relation.target, note.path)
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


def _merged_ids(note: Note) -> Iterable[str]:
    """Return the ids of the notes that were merged into this one: `merged: a, b` → `a`, `b`."""
    merged = note.header.get("merged")
    if not merged:
        return ()
    if isinstance(merged, list):
        identities = merged
    else:
        identities = str(merged).split(",")
    return dict.fromkeys(str(identity).strip() for identity in identities)


def _insert(db: sqlite3.Connection, notes: Sequence[tuple[int, Prepared]]) -> None:
    """Insert new notes into all tables, table by table.

    notes: (row, note) of each.
    """
    for table, row_column in _ROW_OF.items():
        rows_of_table: list[Row] = []
        for row, note in notes:
            # The stems of a long note follow later, in parts (placing.py).
            if table == _STEMS and has_parts(len(note.passages)):
                continue
            for columns in note.tables[table]:
                # Prepared rows lack the number of the note's row.
                columns[row_column] = row
                rows_of_table.append(columns)
        insert(db, table, rows_of_table)
    insert_passages(db, [(row, note.passages) for row, note in notes])

    # Count the notes in table `tally`, each in all folders above it.
    note_counts = Counter(
        (note.counted_as, folder) for _, note in notes for folder in _folders(note.path)
    )
    tallies = [
        {**counted_as._asdict(), "folder": folder, "notes": count}
        for (counted_as, folder), count in note_counts.items()
    ]
    db.executemany(_ADD_TO_TALLY, tallies)


def _folders(path: str) -> list[str]:
    """Return the folders above a note, from the project: `a/b/c.md` → ``, `a`, `a/b`."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _fields_at(db: sqlite3.Connection, project: int, path: str) -> Indexed | None:
    """Return the indexed fields of the note at a path, from which its words were computed.

    Their `text` is therefore only the part that is searched. None if the index has no note there.
    """
    old = indexed(db, project, path)
    if old is None:
        return None
    return old._replace(text=searched(old.text))


def indexed(db: sqlite3.Connection, project: int, path: str) -> Indexed | None:
    """Return the indexed fields of the note at a path, with its whole text.

    None if the index has no note there.
    """
    columns = column_list(_INDEXED_COLUMNS.values())
    row = db.execute(
        f"select {columns} from note n join text t on t.row = n.row"
        " where n.project = ? and n.path = ?",
        (project, path),
    ).fetchone()
    if row is None:
        return None
    return Indexed(**dict(zip(_INDEXED_COLUMNS, row, strict=True)))


@remembered
def searched(text: str) -> str:
    """Return the part of a text that is searched.

    This is the whole text, or its beginning with about `WORDS` different words. In Chinese,
    Japanese and Korean, which have no spaces, pairs of letters are counted instead of words.
    """
    # A text with fewer characters cannot have too many words or pairs.
    if len(text) <= PAIRS:
        return text
    # All words so far. Pairs of letters are among them as numbers.
    different_words: set[str | int] = set()
    for start in range(0, len(text), _CHARACTERS_PER_COUNT):
        counted = _counted(text[start : start + _CHARACTERS_PER_COUNT])
        different_words |= counted.words
        if len(different_words) > counted.most:
            return text[: start + _CHARACTERS_PER_COUNT]
    return text


class _Counted(NamedTuple):
    """The different words of a part of a text.

    words: words, or pairs of letters as numbers.
    most: how many different words or pairs a text may have that is searched as a whole.
    """

    words: set[str] | set[int]
    most: int


# When a long note is edited, its old and its new text have the same parts up to the edit.
@remembered
def _counted(part: str) -> _Counted:
    """Return the different words of a part of a text, or its pairs of letters."""
    lower = part.lower()
    # `runs` finds text without spaces. If it is more than half of the part, pairs are counted.
    is_cjk = not lower.isascii() and sum(map(len, runs().findall(lower))) * 2 > len(lower)
    if is_cjk:
        return _Counted(_pairs_in(lower), PAIRS)
    characters = set(lower)
    if not any(map(str.isalnum, characters)):
        # Each sign is a word, such as an emoji, or none.
        return _Counted(characters, WORDS)
    # Most words of a large text repeat, and finding words takes longer than splitting.
    return _Counted(set(tokens(" ".join(set(lower.split())))), WORDS)


def _pairs_in(text: str) -> set[int]:
    """Return the pairs of neighboring characters in a text, each as a number.

    Numbers are found to be equal five times as fast as texts.
    """
    data = text.encode("utf-32-le", "surrogatepass")
    pairs: set[int] = set()
    # The pairs that begin at the characters 0, 2, 4 …, and then those that begin at 1, 3, 5 …
    for begin in (0, _BYTES_OF_CHARACTER):
        whole_pairs = (len(data) - begin) // (2 * _BYTES_OF_CHARACTER)
        end = begin + whole_pairs * 2 * _BYTES_OF_CHARACTER
        pairs.update(memoryview(data[begin:end]).cast("Q"))
    return pairs


def _delete_note(db: sqlite3.Connection, project: str, old: Indexed) -> None:
    """Delete all rows of a note.

    A full-text table has to get exactly the words that it was given, so they are computed again.

    old: the fields that were indexed.
    """
    # Its words in the full-text tables. A long note may not have all of them yet (placing.py).
    row = old.row
    lacks_stems = placing.lacks_stems(db, row)
    for table, words in _words(project, old).items():
        is_missing = table == _STEMS and lacks_stems
        if not is_missing:
            take_words_out(db, table, row, words)
    if old.passages:
        delete_passages(db, row, old.text, old.passages)

    # The keys by which links find it.
    db.executemany(
        "delete from note_fold where fold = ? and note = ?",
        [(link_fold, row) for link_fold in _keys(project, old)],
    )

    # Its count in each folder above it. The counts are found by its row in table `note`, which is
    # therefore deleted last.
    for folder in _folders(old.path):
        values = (folder, row)
        db.execute(f"update tally set notes = notes - 1 where {_IN_TALLY_OF_NOTE}", values)
        db.execute(f"delete from tally where {_IN_TALLY_OF_NOTE} and notes = 0", values)

    # Its rows in all other tables.
    if project == GRAPH_PROJECT:
        db.execute("delete from entity where note = ?", (row,))
    for table in ("link", "merged", "superseded", "claim"):
        db.execute(f"delete from {table} where note = ?", (row,))
    for table in ("feature", "text", "note"):
        db.execute(f"delete from {table} where row = ?", (row,))


def place(db: sqlite3.Connection, row: int) -> bool:
    """Insert some words that a long note still lacks. Return False if it lacks none.

    The words of a long note are inserted in parts, so that no transaction takes long: first its
    stems, then some passages in each call (placing.py).

    row: the row of the note.
    """
    if not placing.lacks_stems(db, row):
        return placing.place(db, row)
    # Insert the stems.
    sql = (
        "select p.id, p.name, n.path from note n join project p on p.id = n.project where n.row = ?"
    )
    place_of_note = db.execute(sql, (row,)).fetchone()
    if place_of_note is None:
        return False
    project_number, project_name, path = place_of_note
    fields = _fields_at(db, project_number, path)
    assert fields is not None
    insert(db, _STEMS, [{"rowid": row, **_words(project_name, fields)[_STEMS]}])
    placing.record_stems(db, row, are_there=True)
    return True


def withdraw(db: sqlite3.Connection, project: str, path: str) -> bool:
    """Take some words of a long note out: some of its passages, or at last its stems.

    False if none of them is left, or the note is not long.

    project: the name of the note's project.
    """
    old = _fields_at(db, project_ids(db).get(project.casefold(), 0), path)
    if old is None or not has_parts(old.passages):
        return False
    if placing.withdraw(db, old.row, old.text, old.passages):
        return True
    if placing.lacks_stems(db, old.row):
        return False
    take_words_out(db, _STEMS, old.row, _words(project, old)[_STEMS])
    placing.record_stems(db, old.row, are_there=False)
    return True


def foresee_removal(project: str, old: Indexed) -> None:
    """Compute in advance the words and keys that are deleted with a note, so that removing it takes
    less time later. `remembered` functions keep the results.

    project: the name of the note's project.
    old: its fields, as `indexed` returns them.
    """
    old = old._replace(text=searched(old.text))
    if old.passages:
        for passage in passages(old.text[:PLACED]):
            fts_text(old.text[passage.start : passage.end])
    _words(project, old)
    _keys(project, old)


def _words(project: str, fields: Indexed) -> dict[str, Row]:
    """Return the row of a note in each full-text table, by table.

    fields: the fields of the note.
    """
    facet = fields.facet
    # `_words_without_facet` is remembered by its arguments. `foresee_removal` calls it before the
    # note has these fields, so they are left out.
    words = _words_without_facet(project, fields._replace(row=0, facet="", passages=0))
    return {
        "note_fts": {**words.names, "body": words.body, "address": words.address, "facet": facet},
        "name_fts": {**words.names, "facet": facet},
        "stem_fts": {"words": features.stem_text(words.stemmed, facet)},
    }


class _Words(NamedTuple):
    """The words that find a note, without its facets.

    names: columns `title`, `headings` and `tags`.
    address: path, permalink and header values.
    body: the text.
    stemmed: the texts whose words are also found by their stems.
    """

    names: dict[str, str]
    address: str
    body: str
    stemmed: tuple[str, ...]


@remembered
def _words_without_facet(project: str, fields: Indexed) -> _Words:
    """Compute the words that find a note in a search.

    project: the name of its project.
    fields: its fields. `facet`, `row` and `passages` are left empty, so that equal notes give one
        result, which is remembered.
    """
    titles = "\n".join([fields.title, *_texts_of(fields.aliases)])
    names = {
        "title": _names_apart(titles),
        "headings": _names_apart(fields.headings),
        "tags": _names_apart(fields.tags),
    }
    address = _names_apart(_address_of(project, fields))
    body = fts_text(fields.text)
    # Stems are found in the names, and in the beginning of the text.
    beginning = body if len(fields.text) <= STEMMED else fts_text(fields.text[:STEMMED])
    name_texts = [column.replace(_NAME_SEPARATOR, "\n") for column in (*names.values(), address)]
    return _Words(names, address, body, (*name_texts, beginning))


def _address_of(project: str, fields: Indexed) -> str:
    """Return the path, the permalink and the header values of a note, one on a line.

    fields: the fields of the note.
    """
    lines = [fields.path]
    permalink = (fields.base or fields.permalink).removeprefix(f"{lead(project)}/")
    # A permalink that has only words of the path adds nothing.
    if not set(tokens(fields.path.casefold())).issuperset(tokens(permalink)):
        lines.append(permalink)
    return "\n".join([*lines, property_text(fields.header)])


def _names_apart(names: str) -> str:
    """Turn names, one on a line, into a full-text column. No phrase matches across two names."""
    return fts_text(names).replace("\n", f" {_NAME_SEPARATOR} ")


def _keys(project: str, fields: Indexed) -> set[str]:
    """Return the keys that links find a note by (table `note_fold`).

    fields: the fields of the note.
    """
    return _keys_of(
        project, fields.path, fields.permalink, fields.title, fields.aliases, fields.text
    )


@remembered
def _keys_of(
    project: str, path: str, permalink: str, title: str, aliases: str | None, text: str
) -> set[str]:
    """Return the keys of a note with these fields of `Indexed`.

    It is asked for with these fields alone, so that a note and its foreseen state, which differ in
    other fields, give one remembered result.
    """
    names = (title, *_texts_of(aliases))
    return keys_of(project, path, permalink, names, first_line_of(project, text))


def _texts_of(values: str | None) -> list[str]:
    """Return the texts of a list in JSON. None, which `_json` makes of an empty list, gives []."""
    if values is None:
        return []
    texts: list[str] = json.loads(values)
    return texts


def _json(value: Any) -> str | None:
    """Return a value as JSON. None if it is empty, which takes no room in the index."""
    if value:
        return _ENCODER.encode(value)
    return None


class _NoteOfBase(NamedTuple):
    """A note whose path gives the same permalink as the paths of other notes.

    permalink: its present permalink, which may have a number.
    """

    row: int
    path: str
    permalink: str
    scope: str


class _Permalinks:
    """Numbers the permalinks of a project that several notes would share.

    If several notes have one derived permalink (contract 000b, 4.1), the first path in code-point
    order keeps it. The others get `plan-1`, `plan-2` and so on. A number is skipped if the result
    is the path or frontmatter permalink of another note. The outcome does not depend on the order
    in which notes are indexed. A permalink written in the frontmatter is never changed.

    project: the id of the project.
    name: its name.
    """

    def __init__(self, db: sqlite3.Connection, project: int, name: str):
        self._db = db
        self._project = project
        self._name = name

    def renumber_beside(self, row: int, permalink: str, own_permalink: bool) -> None:
        """Give numbers to the permalinks of a new note and of those that would share its permalink.

        row: the row of the new note.
        permalink: the permalink that the new note would have without other notes.
        own_permalink: whether `permalink` is written in the frontmatter of the new note.
        """
        other_notes = self._db.execute(
            "select own, base from note where permalink = ? and project = ? and row <> ?",
            (permalink, self._project, row),
        ).fetchall()
        # Permalinks are numbered by their base, the permalink without its number. A note without a
        # number stores no base, so its permalink is the base. A permalink in a frontmatter (`own`)
        # never gets a number.
        bases = {base or permalink for is_own, base in other_notes if not is_own}
        if other_notes and not own_permalink:
            bases.add(permalink)
        for base in sorted(bases):
            self._renumber(base)

    def renumber_without(self, permalink: str) -> None:
        """Renumber notes after the note with `permalink` is gone. Later numbers may move up.

        Without `plan-1`, `plan-2` becomes `plan-1`. Without `plan`, `plan-1` becomes `plan`.
        """
        # `plan-1` may be the number 1 of `plan`, or itself a permalink that others share.
        bases = [permalink]
        numbered = _NUMBERED.fullmatch(permalink)
        if numbered:
            bases.append(numbered[1])
        sql = "select 1 from note where base = ? and project = ? limit 1"
        for base in bases:
            has_numbered_notes = self._db.execute(sql, (base, self._project)).fetchone()
            if has_numbered_notes:
                self._renumber(base)

    def _renumber(self, base: str) -> None:
        """Number the notes whose paths give the same permalink: `plan`, `plan-1`, `plan-2`.

        base: the permalink without a number.
        """
        # The next number to try, by scope. The number 0 gives the permalink without a number.
        next_numbers: dict[str, int] = {}
        for note in self._notes_of_base(base):
            # A note gives way only to notes for all agents and to notes of the same scope. Else its
            # number would show that an agent has a note which others must not see.
            number = max(next_numbers.get(note.scope, 0), next_numbers.get(GLOBAL, 0))
            while self._is_taken(base, number, note.scope):
                number += 1
            next_numbers[note.scope] = number + 1

            new_permalink = _numbered(base, number)
            # This is the usual case.
            if new_permalink == note.permalink:
                continue
            self._change_link_keys(note, new_permalink)
            # A permalink without a number stores no base.
            new_base = base if number else None
            self._db.execute(
                "update note set permalink = ?, base = ? where row = ?",
                (new_permalink, new_base, note.row),
            )

    def _notes_of_base(self, base: str) -> list[_NoteOfBase]:
        """Return the notes whose paths give a permalink, with those that have a number already.

        Notes for all agents come first, then all others, each in the order of their paths.

        base: the permalink without a number.
        """
        rows = self._db.execute(
            # `+`: else SQLite walks all notes of the project in the order of their paths
            "select row, path, permalink, scope from note where permalink = :base"
            " and +project = :project and own = 0 and base is null"
            " union select row, path, permalink, scope from note where base = :base"
            " and +project = :project"
            " order by path",
            {"base": base, "project": self._project},
        )
        return sorted(map(_NoteOfBase._make, rows), key=lambda note: note.scope != GLOBAL)

    def _is_taken(self, base: str, number: int, scope: str) -> bool:
        """Whether another note has the permalink with this number from its frontmatter or its path.

        scope: the scope of the note to number. Only notes of this scope, or for all agents, count.
        """
        # The number 0 means `base` itself. The paths of all notes that are numbered here give this
        # permalink, so they do not take it from each other. Only a frontmatter (`own`) does.
        counts_paths = number > 0
        # `base is null`: a note that was numbered itself does not count, since it gives way.
        note_with_permalink = self._db.execute(
            "select 1 from note where permalink = ? and project = ? and base is null"
            f" and (own = 1 or ?) and scope in ('{GLOBAL}', ?) limit 1",
            (_numbered(base, number), self._project, counts_paths, scope),
        ).fetchone()
        return note_with_permalink is not None

    def _change_link_keys(self, note: _NoteOfBase, permalink: str) -> None:
        """Replace the keys that links find a note by, because its permalink changes.

        permalink: the new permalink of the note.
        """
        old = _fields_at(self._db, self._project, note.path)
        assert old is not None
        self._db.executemany(
            "delete from note_fold where fold = ? and note = ?",
            [(fold, note.row) for fold in _keys(self._name, old)],
        )
        folds = _keys(self._name, old._replace(permalink=permalink))
        insert(self._db, "note_fold", [{"fold": fold, "note": note.row} for fold in folds])


def _numbered(base: str, number: int) -> str:
    """Return a permalink with its number: `plan-2`. The number 0 is not written: `plan`."""
    return f"{base}-{number}" if number else base
