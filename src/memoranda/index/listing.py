"""List notes by filter, without ranking them, and find the notes that contain a piece of text.

A text is compared *folded*: in lower case and in one Unicode form (text/folding.py). *Facets* are
the properties of a note that are words of the full-text table (filters.py). A *row* is the number
of a note in the index. A *needle* is the text that is looked for.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
from memoranda.index.unfilled import unfilled_rows
from memoranda.note.links import check_length, lead, slug
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORY_PROJECT, TRACE_PROJECT
from memoranda.query import Query
from memoranda.text.folding import fold, is_changed
from memoranda.text.han import other_forms
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
# The date of the note begins with a day, YYYY-MM-DD.
SAYS_DAY = "n.date glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
IS_OF_DAYS = (
    f"case when {SAYS_DAY} then n.date >= ? and n.date < ?"
    " else n.created >= ? and n.created < ? end"
)
"""A condition on `note n`: the day it is about is within two days. A note without a day counts by
the time it was written. Values: two days as text, then two times in microseconds."""
# Selects the titles that may contain a text: by LIKE, and all with characters beyond ASCII, which
# Python folds and compares. The title of a memory is the first line of its text, which is searched
# anyway. Values: the projects of memories, the pattern.
_TITLES = (
    "select n.row, n.title from note n join project p on p.id = n.project"
    " where p.name not in (?, ?) and (n.title glob '*[^ -~]*' or n.title like ? escape '\\')"
)
# Up to this many notes are found by their facets and then sorted. More are read in order until the
# page is full.
_MAX_SORTED = 5_000
# Projects with at most a quarter of all notes are searched without the cache of all texts.
_SMALL_SHARE = 4

MAX_BYTES = 16_000_000
"""Larger indexes (some 40,000 memories of 50 words) are scanned by SQLite instead of cached."""

_SEPARATOR = "\0"
# SQLite refuses longer patterns.
_MAX_LIKE_CHARACTERS = 10_000
# Letters of Chinese, Japanese and Korean, which have no case. Only a text for which `folds` is true
# may write them another way. Compiled at first use, since that takes long.
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
    """Return one page of the notes that pass `query`, and how many pass on all pages.

    The query's text is ignored. Notes with the same time are sorted by permalink. `contains`
    ignores case, also beyond ASCII.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    limit: the size of the page. None means all notes.
    offset: how many notes come before the page.

    Raises InvalidInput for a broken metadata filter.
    """
    rows, total = _rows_and_total(db, query, viewer=viewer, limit=limit, offset=offset)
    return in_order(db, rows), total


@in_snapshot
def rows_passing(db: sqlite3.Connection, query: Query, *, viewer: str | None) -> list[int]:
    """Return the rows of all notes that pass `query`, in its order.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.

    Raises InvalidInput for a broken metadata filter.
    """
    return _rows_and_total(db, query, viewer=viewer, limit=None)[0]


def _rows_and_total(
    db: sqlite3.Connection,
    query: Query,
    *,
    viewer: str | None,
    limit: int | None = 10,
    offset: int = 0,
) -> tuple[list[int], int]:
    """Return the rows of one page of notes that pass the filters, and how many pass on all pages.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    limit: the size of the page. None means all notes.
    offset: how many notes come before the page.

    Raises InvalidInput for a broken metadata filter or an unknown order.
    """
    if query.order not in _ORDERS:
        orders = ", ".join(_ORDERS)
        raise InvalidInput(f'Parameter `order` must be one of {orders}; got "{query.order}".')
    order = _ORDERS[query.order]
    selection = _Selection(db, query, viewer)
    # All rows are read: for `contains`, they are known already. So they need not be counted.
    if query.contains or limit is None:
        rows = selection.rows(order)
        page_end = None if limit is None else offset + limit
        return rows[offset:page_end], len(rows)

    # Only the page is read, in the faster of two ways.
    page_end = offset + limit
    if selection.is_of_many_facets(page_end):
        rows = selection.rows_by_walking(order, page_end)[offset:]
    else:
        rows = selection.rows(order, limit, offset)
    return rows, selection.total()


class _Selection:
    """The notes that pass the filters of a query, as one SQL statement.

    facets: the FTS5 expression that finds them. "" if the other conditions are enough.
    """

    def __init__(self, db: sqlite3.Connection, query: Query, viewer: str | None):
        """Translate the filters of `query` into conditions and their values.

        viewer: the agent that asks; None for the owner. Hidden notes are left out.
        """
        self._db = db
        self._query = query
        self._viewer = viewer
        # The facets that a note must have and must not have.
        query_of_facets = query.replace(archived=query.lists_archived)
        self._needed, self._unwanted = wanted(db, query_of_facets, viewer)
        self.facets = expression(self._needed, self._unwanted)
        # The projects whose notes all pass the facets. None if other facets count, too.
        self._projects = projects_of(self._needed, self._unwanted, project_ids(db).values())
        # How many notes these projects have, by the counts in the index.
        self._number_in_projects = 0
        if self._projects is not None:
            self._number_in_projects = counted(db, self._projects, viewer)

        # The conditions that stand for the facets, if SQL applies them better than FTS5.
        self._places = Conditions()
        self._narrow_to_projects()
        # The conditions of all other filters.
        self._filters = conditions_of(db, query, viewer)
        self._leave_out_invalid()
        self._narrow_to_text()
        self._narrow_to_header_values()

    def _narrow_to_projects(self) -> None:
        """Select by projects and scopes instead of facets that would find nearly all notes."""
        # An FTS5 expression cannot only exclude, so `expression` returned "". Some scopes, the
        # archive or the traces are then left out by the ids of the other projects.
        only_excludes = bool(self._unwanted) and not self.facets
        # Many notes are read in order, which is faster than to sort what FTS5 finds.
        has_many_notes = self._number_in_projects > _MAX_SORTED
        if not only_excludes and not has_many_notes:
            return
        self.facets = ""
        # `+` keeps SQLite from using the index of paths. It would sort whole projects, instead of
        # reading the notes in order.
        plus = "" if self._query.order == "path" else "+"
        ids = ", ".join(map(str, self._projects or ()))
        self._places.add(f"{plus}n.project in ({ids})")
        if self._viewer is not None:
            # The condition names the viewer three times.
            self._places.add(filters.seen_by("n.scope", "?"), *[self._viewer] * 3)

    def _leave_out_invalid(self) -> None:
        """Leave out the notes that are not valid at the time of the query, if it has one."""
        moment = self._query.as_of or self._query.valid_at
        if not moment:
            return
        invalid_rows = filters.invalid_at(
            superseding.valid_spans(self._db), moment, self._query.upheld
        )
        if invalid_rows:
            self._filters.add(filters.excluded(invalid_rows, "n.row"))

    def _narrow_to_text(self) -> None:
        """Keep only the notes that contain the text of the filter `contains`."""
        if self._query.contains:
            # The rows below passed the facets already.
            self.facets = ""
            rows = self._rows_holding(self._query.contains)
            self._filters.add(f"n.row in ({_THESE})", json.dumps(rows))

    def _rows_holding(self, text: str) -> list[int]:
        """Return the rows of the notes whose text or title contains `text` and whose facets pass.

        A Chinese text that no note has as it is typed is looked for in the other characters.
        """
        projects = self._projects
        # The facets leave no project over.
        if projects is not None and len(projects) == 0:
            return []
        # The notes of small projects are read one by one. "" searches the whole index.
        source = ""
        if projects is not None and self._are_small(self._db, projects):
            ids = ", ".join(map(str, projects))
            source = f"note n join text t on t.row = n.row where n.project in ({ids})"
        rows = _rows_with(self._db, text, source)
        if not rows:
            for needle in other_forms(text):
                rows += _rows_with(self._db, needle, source)
        text_rows = self._db.execute(
            f"select row, facet from text where row in ({_THESE})", (json.dumps(rows),)
        )
        return [row for row, facet in text_rows if passes(facet, self._needed, self._unwanted)]

    @staticmethod
    def _are_small(db: sqlite3.Connection, projects: Sequence[int]) -> bool:
        """Whether these projects have so few of all notes that searching only them is faster."""
        number = counted(db, projects)
        if number >= _MAX_SORTED:
            return False
        return _SMALL_SHARE * number <= counted(db, project_ids(db).values())

    def _narrow_to_header_values(self) -> None:
        """Keep only the notes whose header passes the metadata filters."""
        if self._query.metadata:
            # Imported here, since few lists have such filters
            from memoranda.index.header_filters import rows_with

            rows = sorted(rows_with(self._db, self._query.metadata))
            self._filters.add(f"n.row in ({_THESE})", json.dumps(rows))

    @property
    def _where(self) -> str:
        """All conditions in SQL. "" without any."""
        facets = ["note_fts match ?"] if self.facets else []
        return " and ".join([*facets, *self._places.sql, *self._filters.sql])

    @property
    def _source(self) -> str:
        """The tables and conditions, to be put after `from`."""
        source = "note_fts f join note n on n.row = f.rowid" if self.facets else "note n"
        return f"{source} where {self._where}" if self._where else source

    @property
    def _parameters(self) -> list[Any]:
        """The values of `_source`."""
        facets = [self.facets] if self.facets else []
        return [*facets, *self._places.values, *self._filters.values]

    def rows(self, order: str, limit: int | None = None, offset: int = 0) -> list[int]:
        """Return the rows of the notes: all of them, or a page.

        order: an SQL expression to sort by.
        """
        statement = f"select n.row from {self._source} order by {order}"
        parameters = self._parameters
        if limit is not None:
            statement += " limit ? offset ?"
            parameters = [*parameters, limit, offset]
        return [row for (row,) in self._db.execute(statement, parameters)]

    def rows_by_walking(self, order: str, number: int) -> list[int]:
        """Return the first `number` rows in an order whose facets pass, if no other filter counts.

        Notes are read in order, some at a time, and checked. Unlike `rows`, this does not sort all
        that match, so it is faster if many do (`is_of_many_facets`).

        order: an SQL expression to sort by.
        """
        matching_rows: list[int] = []
        # How many notes are read at a time: more each time, if few of them match.
        group_size = max(64, number * 2)
        start = 0
        group = f"select n.row from note n order by {order} limit ? offset ?"
        while len(matching_rows) < number:
            rows = [row for (row,) in self._db.execute(group, (group_size, start))]
            # All notes were read.
            if not rows:
                break
            rows_with_facets = _rows_with_facets(self._db, self.facets, rows)
            matching_rows += [row for row in rows if row in rows_with_facets]
            start += group_size
            group_size = min(group_size * 2, 5_000)
        return matching_rows[:number]

    def is_of_many_facets(self, end: int) -> bool:
        """Whether only facets select notes, and too many notes to sort them all.

        end: how many notes the caller needs. Very many are not worth reading in order.
        """
        if not self.facets or self._filters.sql or end > _MAX_SORTED:
            return False
        count_up_to = "select count(*) from (select 1 from note_fts where note_fts match ? limit ?)"
        return self._number(count_up_to, [self.facets, _MAX_SORTED + 1]) > _MAX_SORTED

    def total(self) -> int:
        """Return how many notes are selected, from the counts in the index if possible."""
        if self._projects is not None and not self._filters.sql:
            # All notes of the projects.
            return self._number_in_projects
        # The only filter is that a note changed since a time.
        is_only_since = self._query.after is not None and len(self._filters.sql) == 1
        if is_only_since and not self.facets:
            number_since = self._number_since()
            if number_since is not None:
                return number_since
        return self._number(f"select count(*) from {self._source}", self._parameters)

    def _number_since(self) -> int | None:
        """Return how many notes changed since the time of the query.

        The notes since then are counted or, if these are many, the notes before. None if both are
        many, or if the projects are small enough to count all.
        """
        if self._number_in_projects <= _MAX_SORTED:
            return None
        # Counting stops at _MAX_SORTED.
        count_up_to = "select count(*) from (select 1 from note n where {} limit ?)"
        parameters = [*self._parameters, _MAX_SORTED]
        number_since = self._number(count_up_to.format(self._where), parameters)
        if number_since < _MAX_SORTED:
            return number_since
        # The same conditions, with the time turned round: all other notes of the projects.
        where_before = self._where.replace("n.changed >= ?", "n.changed < ?")
        number_before = self._number(count_up_to.format(where_before), parameters)
        if number_before < _MAX_SORTED:
            return self._number_in_projects - number_before
        return None

    def _number(self, statement: str, parameters: Sequence[Any]) -> int:
        """Return the one number that a statement selects.

        parameters: the values of the statement.
        """
        number: int = self._db.execute(statement, parameters).fetchone()[0]
        return number


def _rows_with(db: sqlite3.Connection, needle: str, source: str) -> list[int]:
    """Return the rows of the notes whose text or title contains `needle` as it is.

    source: the only notes whose texts to read, as SQL. "" means all notes.
    """
    if source:
        rows = _rows_containing(db.execute(f"select t.row, t.text from {source}"), needle)
    else:
        rows = held(db, FoldedTexts).find(db, needle)
    # SQLite ends a pattern at a NUL, which no title contains. Null matches no title.
    pattern = None if "\0" in needle else like_pattern(fold(needle))
    titles = db.execute(_TITLES, (CATEGORY_PROJECT, ARCHIVE_PROJECT, pattern))
    return [*rows, *_rows_containing(titles, needle)]


def like_pattern(text: str) -> str:
    """Return the LIKE pattern for texts that contain `text`, with `\\` as its escape character.

    `50%` → `%50\\%%`.
    """
    escaped = re.sub(r"[%_\\]", r"\\\g<0>", sqlite_text(text))
    return f"%{escaped[:_MAX_LIKE_CHARACTERS]}%"


def _rows_with_facets(db: sqlite3.Connection, facets: str, rows: Sequence[int]) -> set[int]:
    """Return which of these rows match `facets`. Other rows may be among them."""
    lowest = min(rows)
    highest = max(rows)
    # A range is read faster than a list, unless most of its rows are other notes.
    is_sparse = highest - lowest > 8 * len(rows)
    if is_sparse:
        is_among_rows = f"rowid in ({', '.join(map(str, rows))})"
    else:
        is_among_rows = f"rowid between {lowest} and {highest}"
    sql = f"select rowid from note_fts where note_fts match ? and {is_among_rows}"
    return {row for (row,) in db.execute(sql, (facets,))}


@dataclass(slots=True)
class Conditions:
    """SQL conditions on `note n`, which a note must all meet.

    sql: the conditions.
    values: the values of their parameters, in the order of the conditions.
    """

    sql: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, condition: str, *values: Any) -> None:
        """Add a condition, and a value for each `?` in it."""
        self.sql.append(condition)
        self.values += values


def conditions_of(db: sqlite3.Connection, query: Query, viewer: str | None) -> Conditions:
    """Return the conditions for the places, ids and times of `query`.

    Facets, text and header values are not among them.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    """
    moments = {
        "n.changed >= ?": query.after,
        "n.changed < ?": query.before,
        "n.created >= ?": query.created_from,
        "n.created < ?": query.created_until,
    }
    conditions = Conditions()
    for condition, moment in moments.items():
        if moment is not None:
            conditions.add(condition, microseconds(moment))
    if query.as_of is not None:
        # Here only the beginning counts. `invalid_at` leaves out what is over.
        conditions.add(filters.HAS_BEGUN, *filters.moment_values(query.as_of))
    if query.day_from is not None and query.day_until is not None:
        # A note is compared by its day as text or, if it names none, by its time.
        bounds = (query.day_from, query.day_until)
        days = [moment.date().isoformat() for moment in bounds]
        conditions.add(IS_OF_DAYS, *days, *map(microseconds, bounds))
    if query.folder:
        # `0` is the character behind `/`, so these are all paths that begin with the folder.
        conditions.add("n.path >= ? and n.path < ?", f"{query.folder}/", f"{query.folder}0")
    if query.ids is not None:
        conditions.add(f"n.id in ({_THESE})", json.dumps(query.ids))
    if query.address is not None:
        rows = at_address(db, query.address, viewer, query.projects)
        conditions.add(f"n.row in ({_THESE})", json.dumps(rows))
    if query.filled:
        unfilled = sorted(unfilled_rows(db))
        if unfilled:
            conditions.add(filters.excluded(unfilled, "n.row"))
    return conditions


def passing(db: sqlite3.Connection, query: Query, rows: list[int]) -> list[int]:
    """Return the rows that pass the filters which SQL cannot apply: `metadata` and `contains`.

    The rows keep their order.
    """
    if query.contains:
        sql = f"select row, text from text where row in ({_THESE})"
        rows_with_text: set[int] = set()
        for needle in (query.contains, *other_forms(query.contains)):
            # Read again for each, so that the texts are never in memory together.
            texts = db.execute(sql, (json.dumps(rows),))
            rows_with_text.update(_rows_containing(texts, needle))
        rows = [row for row in rows if row in rows_with_text]
    if not query.metadata:
        return rows
    from memoranda.index.header_filters import passing_rows

    return passing_rows(db, query.metadata, rows)


def at_address(
    db: sqlite3.Connection, address: str, viewer: str | None, projects: Sequence[str] | None = None
) -> list[int]:
    """Return the rows of the notes whose permalink matches a pattern such as `work/plans/*`.

    `*` means any characters. The project may be in front or missing. If the pattern as written
    matches nothing, it is tried in the form of permalinks, `my-plans/*` for `My Plans/*` (contract
    000b, 4.2). The rows are sorted by permalink, then by project and path.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    projects: the projects to look in. None means all but the archive and traces.
    """
    address = sqlite_text(address)
    rows = _matching_rows(db, address, viewer, projects)
    if rows:
        return rows
    # The pieces between the stars, each as permalinks would have it.
    pieces = [_slugged(piece) for piece in re.split(r"\*+", address)]
    return _matching_rows(db, "*".join(pieces), viewer, projects)


def _slugged(piece: str) -> str:
    """Return the slug of a piece of an address, but keep the slashes at its ends: `/my-plans/`."""
    inner = piece.strip("/")
    if not inner:
        return piece
    leading, trailing = piece.split(inner, 1)
    return leading + slug(inner) + trailing


def _matching_rows(
    db: sqlite3.Connection, address: str, viewer: str | None, names: Sequence[str] | None
) -> list[int]:
    """Return the rows of the visible notes whose permalink matches a pattern, sorted.

    viewer: the agent that asks; None for the owner. Hidden notes are left out.
    names: the projects to look in. None means all but the archive and traces.
    """
    check_length(address, "A permalink")
    # Only `*` is special: GLOB must take `[` and `?` literally.
    pattern = re.sub(r"[\[?]", lambda sign: f"[{sign.group()}]", address)
    folded_names = {name.casefold() for name in names or ()}
    sql = (
        "select permalink, :name, path, row from note where project = :project"
        " and (permalink glob :pattern or permalink glob :lead || :pattern"
        " or :lead || permalink glob :pattern)"
        f" and {filters.seen_by('scope', ':viewer')}"
    )
    # (permalink, project, path, row) of each note
    matches: list[tuple[str, str, str, int]] = []
    for project_id, name in db.execute("select id, name from project").fetchall():
        if names is None:
            is_searched = name not in (ARCHIVE_PROJECT, TRACE_PROJECT)
        else:
            is_searched = name.casefold() in folded_names
        if is_searched:
            values = {
                "name": name,
                "project": project_id,
                "pattern": pattern,
                "lead": f"{lead(name)}/",
                "viewer": viewer,
            }
            matches += db.execute(sql, values).fetchall()
    return [row for *_, row in sorted(matches)]


class FoldedTexts:
    """A cache of all folded texts of an index, one per connection (`database.held`).

    The second search fills it, since a single search is faster without it. A search then takes
    about 1 ms at 10,000 notes instead of 15. Nothing in it becomes outdated: the text of a row never
    changes, and new rows have higher numbers. Callers leave out rows of deleted notes.
    """

    def __init__(self) -> None:
        self._is_used = False
        self._is_too_large = False
        # The last row whose text is in the cache.
        self._last_row = 0
        # About how many bytes the texts take.
        self._bytes = 0
        # ASCII texts (True), and all others (False).
        self._blocks: dict[bool, _Block] = {}

    def find(self, db: sqlite3.Connection, needle: str) -> list[int]:
        """Return the rows whose folded text contains the folded `needle`, in no order.

        Rows of deleted notes may be among them.
        """
        # Without the cache: a single search reads all texts once in any case.
        folded_needle = fold(needle)
        is_first_use = not self._is_used
        self._is_used = True
        # The texts of the cache are joined, so such a needle would be found across two of them.
        may_span_texts = _SEPARATOR in folded_needle
        if is_first_use or not folded_needle or may_span_texts or self._is_too_large:
            return _scan(db, needle)

        # Bring the cache up to date.
        if not self._add_new(db):
            # Texts of deleted notes may have filled the cache, so it is emptied and filled again.
            self._last_row = 0
            self._bytes = 0
            self._blocks = {}
            if not self._add_new(db):
                self._is_too_large = True
                return _scan(db, needle)

        rows: list[int] = []
        for block in self._blocks.values():
            rows += block.rows_with(folded_needle)
        return rows

    def _add_new(self, db: sqlite3.Connection) -> bool:
        """Add the texts of new rows. False, without any change, if all texts take too many bytes."""
        # The new rows with their folded texts, by whether the texts are ASCII.
        new_texts: dict[bool, list[tuple[int, str]]] = {True: [], False: []}
        last_row = self._last_row
        size_in_bytes = self._bytes
        rows_and_texts = db.execute(
            "select row, text from text where row > ? order by row", (last_row,)
        )
        for row, text in rows_and_texts:
            folded_text = fold(text)
            is_ascii = folded_text.isascii()
            new_texts[is_ascii].append((row, folded_text))
            last_row = row
            # About 80 bytes for its row and start. Python keeps a text that is not ASCII with up to
            # 4 bytes for each character.
            size_in_bytes += 80 + len(folded_text) * (1 if is_ascii else 4)
            if size_in_bytes > MAX_BYTES:
                return False
        for is_ascii, texts in new_texts.items():
            if texts:
                self._blocks.setdefault(is_ascii, _Block()).add(texts)
        self._last_row = last_row
        self._bytes = size_in_bytes
        return True


@dataclass(slots=True, eq=False, repr=False)
class _Block(ValueObject):
    """Texts joined into one string: the text of `rows[n]` begins at `starts[n]`.

    One wide character makes all of a string wide, so ASCII texts have a separate block.
    """

    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    text: str = ""

    def rows_with(self, needle: str) -> list[int]:
        """Return the rows whose text contains `needle`, which is not empty."""
        rows: list[int] = []
        # Each text ends where the next one begins.
        ends = [*self.starts[1:], len(self.text)]
        offset = self.text.find(needle)
        while offset >= 0:
            # The match is in the last text that does not begin behind it.
            text_number = bisect_right(self.starts, offset) - 1
            rows.append(self.rows[text_number])
            # One match in each text is enough.
            offset = self.text.find(needle, ends[text_number])
        return rows

    def add(self, texts: Sequence[tuple[int, str]]) -> None:
        """Add rows with their texts. There must be one at least."""
        new_rows = [row for row, _ in texts]
        separated_texts = [text + _SEPARATOR for _, text in texts]
        # Each text begins where the one before ends, the first at the end of the block.
        lengths = [len(text) for text in separated_texts]
        new_starts = accumulate(lengths[:-1], initial=len(self.text))
        rows = [*self.rows, *new_rows]
        starts = [*self.starts, *new_starts]
        joined_text = "".join([self.text, *separated_texts])
        # Set when all three are made, so that an interruption leaves the block whole.
        self.rows = rows
        self.starts = starts
        self.text = joined_text


@remembered
def folds(text: str) -> bool:
    """Whether LIKE may miss matches in a text that comparing folded texts would find.

    LIKE ignores case only for ASCII letters. It also ends a text at a NUL.
    """
    return "\0" in text or is_changed(text)


def _rows_containing(texts: Iterable[tuple[int, str]], needle: str) -> list[int]:
    """Return the rows of the texts that contain `needle`, both folded.

    texts: (row, text) of each. A needle that folds to nothing is looked for as it is.
    """
    folded = fold(needle)
    if not folded:
        return [row for row, text in texts if needle in text]
    if folded.isascii():
        return [row for row, text in texts if folded in fold(text)]
    # An ASCII text folds to ASCII, so it cannot contain this needle.
    return [row for row, text in texts if not text.isascii() and folded in fold(text)]


def _scan(db: sqlite3.Connection, needle: str) -> list[int]:
    """Return the rows whose folded text contains the folded `needle`, by reading all texts.

    SQLite skips texts that cannot match, since it is faster at that than Python.
    """
    folded_needle = fold(needle)
    # SQLite passes on texts that may match. The column `folds` is true for texts that folding
    # changes more than LIKE can know, so these are always passed on.
    condition = ""
    values: tuple[str, ...] = ()
    can_be_pattern = "\0" not in folded_needle and len(folded_needle) < _MAX_LIKE_CHARACTERS
    if folded_needle and folded_needle.isascii() and can_be_pattern:
        condition = " where folds or text like ? escape '\\'"
        values = (like_pattern(folded_needle),)
    else:
        # LIKE knows no case beyond ASCII. Chinese, Japanese and Korean letters have none.
        caseless_runs = re.findall(_CASELESS, folded_needle)
        if caseless_runs:
            condition = " where folds or instr(text, ?)"
            # The longest run of such letters is in the fewest texts.
            values = (max(caseless_runs, key=len),)
    texts = db.execute(f"select row, text from text{condition}", values)
    return _rows_containing(texts, needle)
