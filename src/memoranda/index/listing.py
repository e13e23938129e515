"""Lists of notes by filter, without a text to rank by; and which notes contain a piece of text,
folded.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any

from memoranda.clock import microseconds
from memoranda.errors import InvalidInput
from memoranda.index import filters, superseding
from memoranda.index.database import held, in_snapshot
from memoranda.index.filters import (
    counted,
    expression,
    passes,
    project_ids,
    projects_of,
    wanted,
)
from memoranda.index.rows import NoteInfo, in_order
from memoranda.note.links import check_length, lead, slug
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORY_PROJECT, TRACE_PROJECT
from memoranda.query import Query
from memoranda.text.folding import fold, is_changed
from memoranda.text.remembered import remembered
from memoranda.text.unicode import sqlite_text
from memoranda.value_object import ValueObject

# The orders of a list. Each ends in a key that no two notes share.
_ORDERS = {
    "changed": "n.changed desc, n.permalink, n.row",
    "created": "n.created desc, n.permalink, n.row",
    "path": "n.project, n.path",
    "address": "n.permalink, (select name from project where id = n.project), n.path",
}
_THESE = "select value from json_each(?)"
SAYS_DAY = "n.date glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
IS_OF_DAYS = (
    f"case when {SAYS_DAY} then n.date >= ? and n.date < ?"
    " else n.created >= ? and n.created < ? end"
)
"""A condition on `note n`: the day it is about, else its written time, is within two bounds."""
# The title of a memory is the first line of its text, which is looked at anyway
# The titles that may hold a text: those beyond ASCII are folded and compared in Python.
_TITLES = (
    "select n.row, n.title from note n join project p on p.id = n.project"
    " where p.name not in (?, ?) and (n.title glob '*[^ -~]*' or n.title like ? escape '\\')"
)
# Up to this many notes are fetched by their facets and sorted; more are walked in order.
_FEW = 5_000

MAX_BYTES = 16_000_000
"""Larger indexes (some 40,000 memories of 50 words) are scanned by SQLite instead of cached."""

_SEPARATOR = "\0"
# Characters of a pattern; SQLite refuses longer ones.
_LONGEST_LIKE = 10_000
# Letters without case, which only a text that `folds` may write in another way. Compiled when first
# needed: that takes `re` long.
_CASELESS = "[\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+"


# In a snapshot, since a note of a new scope could come between the filters and the list.
@in_snapshot
def listing(
    db: sqlite3.Connection,
    query: Query,
    *,
    viewer: str | None,
    limit: int | None = 10,
    offset: int = 0,
) -> tuple[list[NoteInfo], int]:
    """One page of the notes that pass the filters of `query`, and their number. The query's text is
    ignored.

    Notes of one time are sorted by permalink. `contains` compares with case folded as Python does.
    Raises InvalidInput for a broken metadata filter.
    """
    rows, total = _rows_and_total(db, query, viewer=viewer, limit=limit, offset=offset)
    return in_order(db, rows), total


@in_snapshot
def rows_passing(db: sqlite3.Connection, query: Query, *, viewer: str | None) -> list[int]:
    """The rows of all notes that pass the filters of `query`, in its order. Raises as `listing`."""
    return _rows_and_total(db, query, viewer=viewer, limit=None)[0]


def _rows_and_total(
    db: sqlite3.Connection,
    query: Query,
    *,
    viewer: str | None,
    limit: int | None = 10,
    offset: int = 0,
) -> tuple[list[int], int]:
    """The rows of one page of the notes, and their number, as `listing`."""
    if query.order not in _ORDERS:
        orders = ", ".join(_ORDERS)
        raise InvalidInput(f'Parameter `order` must be one of {orders}; got "{query.order}".')
    order = _ORDERS[query.order]
    selection = _Selection(db, query, viewer)
    if query.contains or limit is None:
        rows = selection.rows(order)
        end = None if limit is None else offset + limit
        return rows[offset:end], len(rows)
    if selection.is_of_many_facets(offset + limit):
        walked = _walk(db, selection.facets, order, offset + limit)
        return walked[offset:], selection.total()
    return selection.rows(order, limit, offset), selection.total()


class _Selection:
    """The notes that pass the filters of a query, as one SQL statement.

    facets: the FTS5 expression that finds them. Empty if all notes are walked in order.
    """

    def __init__(self, db: sqlite3.Connection, query: Query, viewer: str | None):
        self._db = db
        self._query = query
        self._viewer = viewer
        self._needed, self._unwanted = wanted(
            db, query.replace(archived=query.lists_archived), viewer
        )
        self.facets = expression(self._needed, self._unwanted)
        self._conditions, self._values = columns(db, query, viewer)
        self._is_only_since = query.after is not None and len(self._conditions) == 1
        self._projects = projects_of(self._needed, self._unwanted, project_ids(db).values())
        self._held_there = 0
        if self._projects is not None:
            self._held_there = counted(db, self._projects, viewer)
        # The index counts the notes of each project, so that many lists need no counting.
        self._known_total: int | None = None
        if self._projects is not None and not self._conditions:
            self._known_total = self._held_there
        self._narrow_to_projects()
        self._leave_out_invalid()
        self._narrow_to_text()
        self._narrow_to_header_values()

    def _narrow_to_projects(self) -> None:
        """Select by projects and scopes where facets would find nearly all notes."""
        # Some scopes, the archive, or the traces
        is_of_few_filters = bool(self._unwanted) and not self.facets
        if not is_of_few_filters and self._held_there <= _FEW:
            return
        self.facets = ""
        # `+`: else SQLite sorts whole projects, instead of walking the notes in order
        by_path = "" if self._query.order == "path" else "+"
        ids = ", ".join(map(str, self._projects or ()))
        self._conditions.append(f"{by_path}n.project in ({ids})")
        if self._viewer is not None:
            self._conditions.append(filters.seen_by("n.scope", "?"))
            self._values += [self._viewer] * 3

    def _leave_out_invalid(self) -> None:
        moment = self._query.as_of or self._query.valid_at
        if not moment:
            return
        over = filters.invalid_at(superseding.valid_spans(self._db), moment)
        if over:
            self._conditions += filter(None, [filters.excluded(over, "n.row")])
            self._must_be_counted()

    def _narrow_to_text(self) -> None:
        if self._query.contains:
            self.facets = ""
            rows = _rows_holding(
                self._db, self._query.contains, self._needed, self._unwanted, self._projects
            )
            self._conditions.append(f"n.row in ({_THESE})")
            self._values.append(json.dumps(rows))

    def _narrow_to_header_values(self) -> None:
        if self._query.metadata:
            # Few lists are narrowed so
            from memoranda.index.header_filters import rows_with

            rows = sorted(rows_with(self._db, self._query.metadata))
            self._conditions.append(f"n.row in ({_THESE})")
            self._values.append(json.dumps(rows))
            self._must_be_counted()

    def _must_be_counted(self) -> None:
        """Record that the counts in the index do not fit this selection, so its notes must be
        counted.
        """
        self._known_total = None
        self._is_only_since = False

    @property
    def _where(self) -> str:
        conditions = ["note_fts match ?"] if self.facets else []
        return " and ".join([*conditions, *self._conditions])

    @property
    def _source(self) -> str:
        source = "note_fts f join note n on n.row = f.rowid" if self.facets else "note n"
        return f"{source} where {self._where}" if self._where else source

    @property
    def _parameters(self) -> list[Any]:
        return [self.facets, *self._values] if self.facets else self._values

    def rows(self, order: str, limit: int | None = None, offset: int = 0) -> list[int]:
        """The rows of the notes in an order: all of them, or a page."""
        statement = f"select n.row from {self._source} order by {order}"
        parameters = self._parameters
        if limit is not None:
            statement += " limit ? offset ?"
            parameters = [*parameters, limit, offset]
        return [row for (row,) in self._db.execute(statement, parameters)]

    def is_of_many_facets(self, end: int) -> bool:
        """Whether facets alone select, and so many notes that the first `end` are looked for in
        order rather than sorted."""
        if not self.facets or self._conditions or end > _FEW:
            return False
        up_to = "select count(*) from (select 1 from note_fts where note_fts match ? limit ?)"
        return self._number(up_to, [self.facets, _FEW + 1]) > _FEW

    def total(self) -> int:
        """How many notes are selected."""
        if self._known_total is None and self._is_only_since and not self.facets:
            self._known_total = self._number_since()
        if self._known_total is not None:
            return self._known_total
        return self._number(f"select count(*) from {self._source}", self._parameters)

    def _number_since(self) -> int | None:
        """The number of notes that changed since a time. It is counted from whichever side has few
        notes.
        """
        if self._held_there <= _FEW:
            return None
        statement = "select count(*) from (select 1 from note n where {} limit ?)"
        parameters = [*self._parameters, _FEW]
        number = self._number(statement.format(self._where), parameters)
        if number < _FEW:
            return number
        # For a long time, the notes before it may be fewer.
        before = self._where.replace("n.changed >= ?", "n.changed < ?")
        number = self._number(statement.format(before), parameters)
        return self._held_there - number if number < _FEW else None

    def _number(self, statement: str, parameters: Sequence[Any]) -> int:
        number: int = self._db.execute(statement, parameters).fetchone()[0]
        return number


def _rows_holding(
    db: sqlite3.Connection,
    text: str,
    needed: Sequence[str],
    unwanted: Sequence[str],
    projects: Sequence[int] | None,
) -> list[int]:
    """The rows of the notes that hold `text` and pass the filters by facet.

    If `projects` have few of all notes, only these are searched.
    """
    if projects is None:
        number = _FEW
    else:
        number = counted(db, projects)
    if projects is None or number >= _FEW or 4 * number > counted(db, project_ids(db).values()):
        rows = held(db, FoldedTexts).find(db, text)
    else:
        source = f"note n join text t on t.row = n.row where n.project in ({', '.join(map(str, projects))})"
        texts = db.execute(f"select t.row, t.text from {source}")
        rows = _rows_containing(texts, text)
    # SQLite ends a pattern at NUL, which no title holds
    if "\0" in text:
        pattern = None
    else:
        pattern = like_pattern(fold(text))
    titles = db.execute(_TITLES, (CATEGORY_PROJECT, ARCHIVE_PROJECT, pattern))
    rows += _rows_containing(titles, text)
    text_rows = db.execute(
        f"select row, facet from text where row in ({_THESE})", (json.dumps(rows),)
    )
    return [row for row, facet in text_rows if passes(facet, needed, unwanted)]


def like_pattern(text: str) -> str:
    """The pattern of LIKE for a text that contains `text`; `\\` is its escape character."""
    escaped = re.sub(r"[%_\\]", r"\\\g<0>", sqlite_text(text))
    return f"%{escaped[:_LONGEST_LIKE]}%"


def _walk(db: sqlite3.Connection, facets: str, by: str, needed: int) -> list[int]:
    """The first `needed` rows in order that match `facets`, which many do: looked for in portions."""
    found_rows: list[int] = []
    size = max(64, needed * 2)
    start = 0
    page = f"select n.row from note n order by {by} limit ? offset ?"
    while len(found_rows) < needed and (
        rows := [row for (row,) in db.execute(page, (size, start))]
    ):
        low = min(rows)
        high = max(rows)
        is_sparse = high - low > 8 * len(rows)
        if is_sparse:
            row_range = f"rowid in ({', '.join(map(str, rows))})"
        else:
            row_range = f"rowid between {low} and {high}"
        sql = f"select rowid from note_fts where note_fts match ? and {row_range}"
        facet_rows = {row for (row,) in db.execute(sql, (facets,))}
        found_rows += [row for row in rows if row in facet_rows]
        start = start + size
        size = min(size * 2, 5_000)
    return found_rows[:needed]


def columns(
    db: sqlite3.Connection, query: Query, viewer: str | None
) -> tuple[list[str], list[object]]:
    """The place and the time bounds of `query` as SQL conditions on `note n`, and their values."""
    bounds: tuple[tuple[str, datetime | None], ...] = (
        ("n.changed >= ?", query.after),
        ("n.changed < ?", query.before),
        ("n.created >= ?", query.created_from),
        ("n.created < ?", query.created_until),
    )
    column_values = [
        (condition, microseconds(moment)) for condition, moment in bounds if moment is not None
    ]
    conditions: list[str] = [condition for condition, _ in column_values]
    values: list[object] = [value for _, value in column_values]
    if query.as_of is not None:
        conditions.append(filters.HAS_BEGUN)
        values += filters.moment_values(query.as_of)
    if query.day_from is not None and query.day_until is not None:
        bounds_of_days = (query.day_from, query.day_until)
        conditions.append(IS_OF_DAYS)
        values += [moment.date().isoformat() for moment in bounds_of_days]
        values += map(microseconds, bounds_of_days)
    if query.folder:
        conditions.append("n.path >= ? and n.path < ?")
        values += [f"{query.folder}/", f"{query.folder}0"]
    if query.ids is not None:
        conditions.append(f"n.id in ({_THESE})")
        values.append(json.dumps(query.ids))
    if query.address is not None:
        conditions.append(f"n.row in ({_THESE})")
        values.append(json.dumps(at_address(db, query.address, viewer, query.projects)))
    return conditions, values


def passing(db: sqlite3.Connection, query: Query, rows: list[int]) -> list[int]:
    """Those of `rows`, in their order, that pass the filters SQL cannot apply: metadata, contains."""
    if query.contains:
        row_cursor = db.execute(
            f"select row, text from text where row in ({_THESE})", (json.dumps(rows),)
        )
        held = set(_rows_containing(row_cursor, query.contains))
        rows = [row for row in rows if row in held]
    if not query.metadata:
        return rows
    from memoranda.index.header_filters import passing_rows

    return passing_rows(db, query.metadata, rows)


def at_address(
    db: sqlite3.Connection, address: str, viewer: str | None, projects: Sequence[str] | None = None
) -> list[int]:
    """The rows of the notes whose permalink fits `address`, where `*` means any run of characters.

    The address counts with and without the project in front; verbatim first, slugged when that
    finds nothing (contract 000b, 4.2). By permalink, then project and path.
    """
    address = sqlite_text(address)
    rows = _matching_rows(db, address, viewer, projects)
    if not rows:
        pieces = [re.match(r"(/*)(.*?)(/*)\Z", piece, re.S) for piece in re.split(r"\*+", address)]
        slugged = "*".join([piece[1] + slug(piece[2]) + piece[3] for piece in pieces if piece])
        rows = _matching_rows(db, slugged, viewer, projects)
    return rows


def _matching_rows(
    db: sqlite3.Connection, address: str, viewer: str | None, names: Sequence[str] | None
) -> list[int]:
    check_length(address, "A permalink")
    pattern = re.sub(r"[\[?]", lambda sign: f"[{sign.group()}]", address)
    if names is None:
        wanted = None
    else:
        wanted = {name.casefold() for name in names}
    matches: list[tuple[str, str, str, int]] = []
    for number, name in db.execute("select id, name from project").fetchall():
        if (
            name not in (ARCHIVE_PROJECT, TRACE_PROJECT)
            if wanted is None
            else name.casefold() in wanted
        ):
            matches += db.execute(
                "select permalink, :name, path, row from note where project = :project"
                " and (permalink glob :pattern or permalink glob :lead || :pattern"
                " or :lead || permalink glob :pattern)"
                f" and {filters.seen_by('scope', ':viewer')}",
                {
                    "name": name,
                    "project": number,
                    "pattern": pattern,
                    "lead": f"{lead(name)}/",
                    "viewer": viewer,
                },
            ).fetchall()
    return [row for *_, row in sorted(matches)]


class FoldedTexts:
    """A cache of all folded texts of an index, one per connection (`database.held`), filled by the
    second search.

    An answer then takes about 1 ms at 10,000 notes instead of 15. Nothing is ever invalidated: the
    text of a row does not change, new rows have the highest numbers, and callers filter out rows
    that are gone.
    """

    def __init__(self) -> None:
        self._is_used = self._is_too_large = False
        self._last_row = self._bytes = 0
        self._blocks: dict[bool, _Block] = {}

    def find(self, db: sqlite3.Connection, needle: str) -> list[int]:
        """The rows whose text contains `needle`, in no order; rows of deleted notes may be among
        them.
        """
        written = needle
        needle = fold(written)
        is_repeated = self._is_used
        self._is_used = True
        if not is_repeated or not needle or _SEPARATOR in needle or self._is_too_large:
            return _scan(db, written)
        if not self._add_new(db):
            # The texts of deleted notes may have filled it
            self._last_row = 0
            self._bytes = 0
            self._blocks = {}
            if not self._add_new(db):
                self._is_too_large = True
                return _scan(db, written)
        rows: list[int] = []
        for block in self._blocks.values():
            starts = [*block.starts, len(block.text)]
            position = block.text.find(needle)
            while 0 <= position < len(block.text):
                place = bisect_right(block.starts, position)
                rows.append(block.rows[place - 1])
                position = block.text.find(needle, starts[place])
        return rows

    def _add_new(self, db: sqlite3.Connection) -> bool:
        """Add the rows that are new. Returns False when all texts take too many bytes."""
        new: dict[bool, list[tuple[int, str]]] = {True: [], False: []}
        last = self._last_row
        size = self._bytes
        for row, text in db.execute(
            "select row, text from text where row > ? order by row", (last,)
        ):
            folded = fold(text)
            new[folded.isascii()].append((row, folded))
            last = row
            size = size + 80 + len(folded) * (1 if folded.isascii() else 4)
            if size > MAX_BYTES:
                return False
        for is_ascii, texts in new.items():
            if texts:
                block = self._blocks.setdefault(is_ascii, _Block())
                lengths = (len(text_added) + len(_SEPARATOR) for _, text_added in texts[:-1])
                starts = [*block.starts, *accumulate(lengths, initial=len(block.text))]
                rows = [*block.rows, *(row for row, _ in texts)]
                text = "".join(
                    [block.text, *(f"{text_added}{_SEPARATOR}" for _, text_added in texts)]
                )
                # At once: who is interrupted keeps the old
                block.starts = starts
                block.rows = rows
                block.text = text
        self._last_row = last
        self._bytes = size
        return True


@dataclass(slots=True, eq=False, repr=False)
class _Block(ValueObject):
    """Texts joined into one string: the text of `rows[n]` begins at `starts[n]`.

    One wide character makes all of a string wide, so ASCII texts have a separate block.
    """

    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    text: str = ""


@remembered
def folds(text: str) -> bool:
    """Whether LIKE, which ignores case for ASCII letters only, may miss matches in the folded text."""
    return "\0" in text or is_changed(text)


def _rows_containing(texts: Iterable[tuple[int, str]], needle: str) -> list[int]:
    """The rows of the texts that contain `needle`, both folded; what folds to nothing is looked for
    as it is."""
    folded = fold(needle)
    if not folded:
        return [row for row, text in texts if needle in text]
    if folded.isascii():
        return [row for row, text in texts if folded in fold(text)]
    return [row for row, text in texts if not text.isascii() and folded in fold(text)]


def _scan(db: sqlite3.Connection, needle: str) -> list[int]:
    """Find rows by reading texts.

    SQLite skips texts that cannot match, since it is faster at that than Python.
    """
    folded = fold(needle)
    condition = ""
    value = ""
    if folded.isascii() and folded and "\0" not in folded and len(folded) < _LONGEST_LIKE:
        condition = " where folds or text like ? escape '\\'"
        value = like_pattern(folded)
    elif caseless := re.findall(_CASELESS, folded):
        condition = " where folds or instr(text, ?)"
        value = max(caseless, key=len)
    text_rows = db.execute(f"select row, text from text{condition}", (value,) if condition else ())
    return _rows_containing(text_rows, needle)
