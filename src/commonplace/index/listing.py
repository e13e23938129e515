"""Lists of notes by filter, without a text to rank by."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from commonplace.clock import microseconds
from commonplace.errors import InvalidInput
from commonplace.index.database import held, snapshot
from commonplace.index.facets import expression, passes, wanted
from commonplace.index.lookup import in_order
from commonplace.index.metadata import UNDERSTOOD, needs_header, predicate
from commonplace.index.rows import NoteInfo, header_of
from commonplace.index.substring import FoldedTexts
from commonplace.query import Query
from commonplace.text.unicode import sqlite_text

_ORDERS = {
    "changed": "n.changed desc, n.permalink, n.row",
    "created": "n.created desc, n.permalink, n.row",
    "path": "n.project, n.path",
}
_THESE = "select value from json_each(?)"
_FEW = 5_000
"""Up to so many notes are fetched by their facets and sorted; more are walked in order."""


def listing(
    db: sqlite3.Connection, query: Query, *, viewer: str | None, order: str = "changed",
    limit: int | None = 10, offset: int = 0,
) -> tuple[list[NoteInfo], int]:  # fmt: skip
    """One page of the notes that pass the filters of `query` (its text is not looked at), and their number.

    `order` is `changed` or `created` (newest first, ties by permalink) or `path`. `contains`
    compares with case folded as Python does. Raises InvalidInput for a broken metadata filter.
    """
    if order not in _ORDERS:
        raise InvalidInput(f'Parameter `order` must be one of {", ".join(_ORDERS)}; got "{order}".')
    with snapshot(db):  # else a note of a scope nobody had may come between the filters and the list
        return _listing(db, query, viewer, order, limit, offset)


def _listing(
    db: sqlite3.Connection, query: Query, viewer: str | None, order: str, limit: int | None, offset: int
) -> tuple[list[NoteInfo], int]:  # fmt: skip
    needed, unwanted = wanted(db, query, viewer)
    facets = expression(needed, unwanted)
    conditions, values = columns(query)
    if unwanted and not facets:
        conditions.append("n.scope in ('global', ?)")
        values.append(f"agent:{viewer}")
    if query.contains:
        facets = ""
        conditions.append(f"n.row in ({_THESE})")
        values.append(json.dumps(_holding(db, query.contains, needed, unwanted)))
    where = " and ".join(conditions)
    if query.metadata or query.contains or limit is None:
        return _whole(db, query, facets, where, values, order, limit, offset)
    if facets and not conditions and _up_to(db, facets, _FEW + 1) > _FEW and offset + limit <= _FEW:
        total = db.execute("select count(*) from note_fts where note_fts match ?", (facets,)).fetchone()[0]
        return in_order(db, _walk(db, facets, _ORDERS[order], offset + limit)[offset:]), total
    source, where, values = _source(facets, where, values)
    total = db.execute(f"select count(*) from {source}{where}", values).fetchone()[0]
    page = db.execute(
        f"select n.row from {source}{where} order by {_ORDERS[order]} limit ? offset ?", [*values, limit, offset]
    )
    return in_order(db, [row for (row,) in page]), total


def _source(facets: str, where: str, values: list[object]) -> tuple[str, str, list[object]]:
    """FROM and WHERE of a list: by way of the facets when there are any."""
    source = "note n"
    if facets:
        source = "note_fts f join note n on n.row = f.rowid"
        where = f"note_fts match ?{' and ' if where else ''}{where}"
        values = [facets, *values]
    return source, f" where {where}" if where else "", values


def _whole(
    db: sqlite3.Connection, query: Query, facets: str, where: str, values: list[object], order: str,
    limit: int | None, offset: int,
) -> tuple[list[NoteInfo], int]:  # fmt: skip
    """The list by looking at every note that passes the filters SQL can apply."""
    source, where, values = _source(facets, where, values)
    found = db.execute(f"select n.row from {source}{where} order by {_ORDERS[order]}", values)
    rows = passing(db, query.replace(contains=None), [row for (row,) in found])
    return in_order(db, rows[offset : None if limit is None else offset + limit]), len(rows)


def _holding(db: sqlite3.Connection, text: str, needed: Sequence[str], unwanted: Sequence[str]) -> list[int]:
    """The rows of the notes that hold `text` and pass the filters by facet."""
    rows = json.dumps(held(db, FoldedTexts).find(db, text))
    found = db.execute(f"select row, facet from text where row in ({_THESE})", (rows,))
    return [row for row, facet in found if passes(facet, needed, unwanted)]


def _walk(db: sqlite3.Connection, facets: str, by: str, needed: int) -> list[int]:
    """The first `needed` rows in order that match `facets`, which many do: looked for in portions."""
    found: list[int] = []
    size, at = max(64, needed * 2), 0
    while len(found) < needed:
        rows = [row for (row,) in db.execute(f"select n.row from note n order by {by} limit ? offset ?", (size, at))]
        if not rows:
            break
        low, high = min(rows), max(rows)
        if high - low > 8 * len(rows):
            held = f"rowid in ({', '.join(map(str, rows))})"
        else:
            held = f"rowid between {low} and {high}"
        inside = {
            row for (row,) in db.execute(f"select rowid from note_fts where note_fts match ? and {held}", (facets,))
        }
        found += [row for row in rows if row in inside]
        at, size = at + size, min(size * 2, 5_000)
    return found[:needed]


def columns(query: Query) -> tuple[list[str], list[object]]:
    """The time bounds of `query` as SQL conditions on `note n`, and their values."""
    bounds: tuple[tuple[str, datetime | None], ...] = (
        ("n.changed >= ?", query.after), ("n.changed < ?", query.before),
        ("n.created >= ?", query.created_from), ("n.created < ?", query.created_until),
    )  # fmt: skip
    given = [(condition, microseconds(moment)) for condition, moment in bounds if moment is not None]
    return [condition for condition, _ in given], [value for _, value in given]


def passing(db: sqlite3.Connection, query: Query, rows: list[int]) -> list[int]:
    """Those of `rows`, in their order, that pass the filters SQL cannot apply: metadata, contains."""
    if query.contains:
        needle = query.contains.casefold()
        found = db.execute(
            "select row, text from text where row in (select value from json_each(?))", (json.dumps(rows),)
        )
        held = {row for row, text in found if needle in text.casefold()}
        rows = [row for row in rows if row in held]
    if query.metadata:
        held = set(_with_metadata(db, query.metadata, rows))
        rows = [row for row in rows if row in held]
    return rows


def _with_metadata(db: sqlite3.Connection, filters: Mapping[str, Any], rows: list[int]) -> Iterator[int]:
    """The rows whose header passes `filters`; only headers that may have the keys are read."""
    test = predicate(filters)
    asked = needs_header(filters)
    begins = [sqlite_text(name.partition(".")[0]) for name in asked]
    conditions = "".join([" and instr(t.front || coalesce(t.header, ''), ?)"] * len(asked))
    front = "t.front, t.header" if asked else "'', null"
    for row, front_text, header, tags, *values in db.execute(
        f"select n.row, {front}, n.tags, {', '.join(f'n.{name}' for name in UNDERSTOOD if name != 'tags')}"
        " from note n join text t on t.row = n.row"
        f" where n.row in (select value from json_each(?)){conditions}",
        (json.dumps(rows), *begins),
    ):
        known = header_of(front_text, header)
        known |= {name: value for name, value in zip(UNDERSTOOD, values, strict=False) if value is not None}
        known["tags"] = json.loads(tags) if tags else []
        if test(known):
            yield row


def _up_to(db: sqlite3.Connection, facets: str, most: int) -> int:
    return db.execute(
        "select count(*) from (select 1 from note_fts where note_fts match ? limit ?)", (facets, most)
    ).fetchone()[0]
