"""Lists of notes by filter, without a text to rank by.

`metadata_filters` (contract 000b, 7) compare values of the header by kind: numbers and dates by value, everything else
as text; of a list one element is enough.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace.clock import microseconds
from commonplace.errors import InvalidInput
from commonplace.index.database import held, snapshot
from commonplace.index.facets import expression, passes, wanted
from commonplace.index.keys import lead
from commonplace.index.rows import NoteInfo, header_of, in_order
from commonplace.index.substring import FoldedTexts
from commonplace.note.links import slug
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

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda have, limit: have > limit,
    "$gte": lambda have, limit: have >= limit,
    "$lt": lambda have, limit: have < limit,
    "$lte": lambda have, limit: have <= limit,
}
_OPERATORS = "$in, $gt, $gte, $lt, $lte, $between"

UNDERSTOOD = ("type", "title", "permalink", "scope", "source", "category", "phase", "tags")
"""Keys whose meaning the index knows, wherever it comes from."""

Test = Callable[[Any], bool]


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


def matching(
    db: sqlite3.Connection, address: str, *, viewer: str | None, projects: Sequence[str] | None = None,
    limit: int | None = 10, offset: int = 0,
) -> tuple[list[NoteInfo], int]:  # fmt: skip
    """Notes whose permalink fits `address`, where `*` stands for any run of characters.

    The address counts with and without the project in front; verbatim first, slugged when that
    finds nothing (contract 000b, 4.2). By permalink, then project and path; and how many there are.
    """
    address = sqlite_text(address)
    rows = _matching_rows(db, address, viewer, projects)
    if not rows:
        pieces = [re.match(r"(/*)(.*?)(/*)\Z", piece, re.S) for piece in re.split(r"\*+", address)]
        slugged = "*".join([each[1] + slug(each[2]) + each[3] for each in pieces if each])
        rows = _matching_rows(db, slugged, viewer, projects)
    return in_order(db, rows[offset : None if limit is None else offset + limit]), len(rows)


def _matching_rows(db: sqlite3.Connection, address: str, viewer: str | None, names: Sequence[str] | None) -> list[int]:
    pattern = re.sub(r"[\[?]", lambda sign: f"[{sign.group()}]", address)
    wanted = None if names is None else {name.casefold() for name in names}
    found: list[tuple[str, str, str, int]] = []
    for number, name in db.execute("select id, name from project").fetchall():
        if wanted is None or name.casefold() in wanted:
            found += db.execute(
                "select permalink, ?1, path, row from note where project = ?2 and (permalink glob ?3"
                " or permalink glob ?4 || ?3 or ?4 || permalink glob ?3)"
                " and (?5 is null or scope in ('global', 'agent:' || ?5))",
                (name, number, pattern, f"{lead(name)}/", viewer),
            ).fetchall()
    return [row for *_, row in sorted(found)]


def predicate(filters: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    """A test for the values of a note: its header, with the UNDERSTOOD keys as they are understood.

    Raises InvalidInput for a filter nobody can read.
    """
    if not isinstance(filters, Mapping):
        raise _broken(f"must be an object, got {type(filters).__name__}")
    tests = [(str(name), _test(str(name), wanted)) for name, wanted in filters.items()]
    return lambda values: all(any(map(test, _named(values, name))) for name, test in tests)


def needs_header(filters: Mapping[str, Any]) -> list[str]:
    """The names of `filters` that only the header can answer."""
    return [name for name in map(str, filters) if name not in UNDERSTOOD]


def _named(values: Mapping[str, Any], name: str) -> list[Any]:
    """What stands under a dotted name: each value, and each element of a list."""
    found = [values[name]] if name in values else _dotted(values, name.split("."))
    return [element for value in found for element in ((value, *value) if isinstance(value, list) else (value,))]


def _dotted(value: Any, names: list[str]) -> list[Any]:
    if not names:
        return [value]
    if isinstance(value, list):
        return [found for element in value for found in _dotted(element, names)]
    if isinstance(value, Mapping) and names[0] in value:
        return _dotted(value[names[0]], names[1:])
    return []


def _test(name: str, wanted: Any) -> Test:
    if isinstance(wanted, Mapping):
        if not wanted:
            raise _broken(f'has an empty condition for "{name}"')
        tests = [_operator(name, str(operator), limit) for operator, limit in wanted.items()]
        return lambda have: all(test(have) for test in tests)
    if isinstance(wanted, list | tuple):
        every = [_test(name, one) for one in wanted]
        return lambda have: isinstance(have, list) and all(any(map(test, have)) for test in every)
    typed = _typed(wanted)
    return lambda have: not isinstance(have, list) and _equal(_typed(have), typed)


def _operator(name: str, operator: str, limit: Any) -> Test:
    if operator == "$in":
        if not isinstance(limit, list | tuple):
            raise _broken(f'takes a list for $in of "{name}"')
        tests = [_test(name, one) for one in limit]
        return lambda have: any(test(have) for test in tests)
    if operator == "$between":
        if not isinstance(limit, list | tuple) or len(limit) != 2:
            raise _broken(f'takes a list of two values for $between of "{name}"')
        low, high = _bound(name, operator, limit[0]), _bound(name, operator, limit[1])
        return lambda have: _ordered(have, low, _COMPARE["$gte"]) and _ordered(have, high, _COMPARE["$lte"])
    if operator not in _COMPARE:
        raise _broken(f'knows no "{operator}" (for "{name}")')
    bound, compare = _bound(name, operator, limit), _COMPARE[operator]
    return lambda have: _ordered(have, bound, compare)


def _bound(name: str, operator: str, limit: Any) -> Any:
    if limit is None or isinstance(limit, bool | list | tuple | Mapping):
        raise _broken(f'takes a number, a date or a text for {operator} of "{name}"')
    return _typed(limit)


def _typed(value: Any) -> Any:
    """A number or a moment where the value is one, true, false and null as they are, else text."""
    if value is None or isinstance(value, bool | list | Mapping):
        return value
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if _DATE.fullmatch(text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return text
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return {"true": True, "false": False}.get(text, text)


def _equal(have: Any, wanted: Any) -> bool:
    return type(have) is type(wanted) and have == wanted


def _ordered(have: Any, bound: Any, compare: Callable[[Any, Any], bool]) -> bool:
    typed = _typed(have)
    if type(typed) is not type(bound) or isinstance(typed, bool | list | Mapping):
        return False
    return compare(typed, bound)


def _broken(what: str) -> InvalidInput:
    return InvalidInput(
        f'Parameter `metadata_filters` {what}. Use e.g. {{"status": "draft"}} or '
        f'{{"priority": {{"$gte": 2}}}}; operators: {_OPERATORS}.'
    )
