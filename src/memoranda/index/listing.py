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
from memoranda.index.header_filters import passing_rows, rows_with
from memoranda.index.rows import NoteInfo, in_order
from memoranda.note.links import check_length, lead, slug
from memoranda.note.model import ARCHIVE_PROJECT, CATEGORY_PROJECT, TRACE_PROJECT
from memoranda.query import Query
from memoranda.text.folding import fold, is_changed
from memoranda.text.remembered import remembered
from memoranda.text.unicode import sqlite_text

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


# Else a note of a scope nobody had may come between the filters and the list
@in_snapshot
def listing(
    db: sqlite3.Connection,
    query: Query,
    *,
    viewer: str | None,
    limit: int | None = 10,
    offset: int = 0,
) -> tuple[list[NoteInfo], int]:
    """One page of the notes that pass the filters of `query` (its text is not looked at), and their
    number.

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
    order = query.order
    if order not in _ORDERS:
        raise InvalidInput(f'Parameter `order` must be one of {", ".join(_ORDERS)}; got "{order}".')
    needed, unwanted = wanted(db, query.replace(archived=query.lists_archived), viewer)
    facets = expression(needed, unwanted)
    conditions, values = columns(db, query, viewer)
    is_since = query.after is not None and len(conditions) == 1
    projects = projects_of(needed, unwanted, project_ids(db).values())
    if projects is None:
        held_there = 0
    else:
        held_there = counted(db, projects, viewer)
    if projects is None or conditions:
        rows_held = None
    else:
        rows_held = held_there
    # Some scopes, the archive, or the traces
    if (unwanted and not facets) or held_there > _FEW:
        facets = ""
        # `+`: else SQLite sorts whole projects, instead of walking the notes in order
        if order == "path":
            by_path = ""
        else:
            by_path = "+"
        conditions.append(f"{by_path}n.project in ({', '.join(map(str, projects or ()))})")
        if viewer is not None:
            conditions.append(filters.seen_by("n.scope", "?"))
            values += [viewer] * 3
    moment = query.as_of or query.valid_at
    if moment:
        over = filters.invalid_at(superseding.valid_spans(db), moment)
        conditions += filter(None, [filters.excluded(over, "n.row")])
        rows_held, is_since = (None, False) if over else (rows_held, is_since)
    if query.contains:
        facets = ""
        conditions.append(f"n.row in ({_THESE})")
        values.append(json.dumps(_holding(db, query.contains, needed, unwanted, projects)))
    if query.metadata:
        rows_held = None
        is_since = False
        conditions.append(f"n.row in ({_THESE})")
        values.append(json.dumps(sorted(rows_with(db, query.metadata))))
    source = "note n"
    where = " and ".join(conditions)
    parameters = values
    by = _ORDERS[order]
    # By way of them
    if facets:
        source = "note_fts f join note n on n.row = f.rowid"
        parameters = [facets, *values]
        where = " and ".join(["note_fts match ?", *conditions])
    source += f" where {where}" if where else ""
    if query.contains or limit is None:
        row_cursor = db.execute(f"select n.row from {source} order by {by}", parameters)
        rows = [row for (row,) in row_cursor]
        return rows[offset : None if limit is None else offset + limit], len(rows)
    if facets and not conditions and offset + limit <= _FEW:
        up_to = "select count(*) from (select 1 from note_fts where note_fts match ? limit ?)"
        if db.execute(up_to, (facets, _FEW + 1)).fetchone()[0] > _FEW:
            total = db.execute(
                "select count(*) from note_fts where note_fts match ?", (facets,)
            ).fetchone()[0]
            return _walk(db, facets, by, offset + limit)[offset:], total
    if rows_held is None and is_since and not facets and held_there > _FEW:
        sql = "select count(*) from (select 1 from note n where {} limit ?)"
        number = db.execute(sql.format(where), [*parameters, _FEW]).fetchone()[0]
        if number < _FEW:
            rows_held = number
        else:
            rows_held = None
        # Of a long time, those before it may be the fewer
        if rows_held is None:
            before = where.replace("n.changed >= ?", "n.changed < ?")
            number = db.execute(sql.format(before), [*parameters, _FEW]).fetchone()[0]
            if number < _FEW:
                rows_held = held_there - number
            else:
                rows_held = None
    if rows_held is not None:
        total = rows_held
    else:
        total = db.execute(f"select count(*) from {source}", parameters).fetchone()[0]
    page = db.execute(
        f"select n.row from {source} order by {by} limit ? offset ?", [*parameters, limit, offset]
    )
    return [row for (row,) in page], total


def _holding(
    db: sqlite3.Connection,
    text: str,
    needed: Sequence[str],
    unwanted: Sequence[str],
    projects: Sequence[int] | None,
) -> list[int]:
    """The rows of the notes that hold `text` and pass the filters by facet; looked for in
    `projects` alone, where they have few of all notes."""
    if projects is None:
        number = _FEW
    else:
        number = counted(db, projects)
    if projects is None or number >= _FEW or 4 * number > counted(db, project_ids(db).values()):
        rows = held(db, FoldedTexts).find(db, text)
    else:
        source = f"note n join text t on t.row = n.row where n.project in ({', '.join(map(str, projects))})"
        texts = db.execute(f"select t.row, t.text from {source}")
        rows = _containing(texts, text)
    # SQLite ends a pattern at NUL, which no title holds
    if "\0" in text:
        pattern = None
    else:
        pattern = like_pattern(fold(text))
    titles = db.execute(_TITLES, (CATEGORY_PROJECT, ARCHIVE_PROJECT, pattern))
    rows += _containing(titles, text)
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
    at = 0
    page = f"select n.row from note n order by {by} limit ? offset ?"
    while len(found_rows) < needed and (rows := [row for (row,) in db.execute(page, (size, at))]):
        low = min(rows)
        high = max(rows)
        is_sparse = high - low > 8 * len(rows)
        if is_sparse:
            row_range = f"rowid in ({', '.join(map(str, rows))})"
        else:
            row_range = f"rowid between {low} and {high}"
        sql = f"select rowid from note_fts where note_fts match ? and {row_range}"
        inside = {row for (row,) in db.execute(sql, (facets,))}
        found_rows += [row for row in rows if row in inside]
        at = at + size
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
        held = set(_containing(row_cursor, query.contains))
        rows = [row for row in rows if row in held]
    if not query.metadata:
        return rows
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
            at = block.text.find(needle)
            while 0 <= at < len(block.text):
                place = bisect_right(block.starts, at)
                rows.append(block.rows[place - 1])
                at = block.text.find(needle, starts[place])
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


@dataclass(slots=True)
class _Block:
    """Texts joined into one string: that of `rows[n]` begins at `starts[n]`. One wide character
    makes all of a string wide, so ASCII has a separate block."""

    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    text: str = ""


@remembered
def folds(text: str) -> bool:
    """Whether LIKE, which folds ASCII letters only, may miss what is found in `text` folded."""
    return "\0" in text or is_changed(text)


def _containing(texts: Iterable[tuple[int, str]], needle: str) -> list[int]:
    """The rows of the texts that contain `needle`, both folded; what folds to nothing is looked for
    as it is."""
    folded = fold(needle)
    if not folded:
        return [row for row, text in texts if needle in text]
    if folded.isascii():
        return [row for row, text in texts if folded in fold(text)]
    return [row for row, text in texts if not text.isascii() and folded in fold(text)]


def _scan(db: sqlite3.Connection, needle: str) -> list[int]:
    """The same by reading texts; SQLite skips those that cannot match, as it is faster at that than
    Python.
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
    return _containing(text_rows, needle)
