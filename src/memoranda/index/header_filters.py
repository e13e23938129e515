"""Filters on the values of a header, and of `key:: value` fields in the text: `metadata_filters`
(contract 000b, 7).

Values compare by kind: numbers and dates by value, everything else as text. A list passes if one of
its elements does. Values of the same header key are kept as a column, each different value once
with the rows that have it. So a filter looks at each value once, however many notes have it.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.index.database import held
from memoranda.index.rows import header_of
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import sqlite_text

UNDERSTOOD = ("type", "title", "permalink", "scope", "source", "category", "phase", "tags")
"""Keys whose meaning the index knows, wherever it comes from."""

# Limits for the keys and values of one filter, so that its cost stays small.
KEYS = 50
VALUES = 2_000
DEPTH = 10
"""What the filters of one query may have: keys, values in all, and lists in lists."""

Scalar = tuple[type, Any]
"""A value that is no list, with its type: else the number 1 would equal true."""

# A number as JSON writes it; `007` and `1.` are texts.
_NUMBER = lazy_pattern(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
# A day, with or without a time, which compares as a date.
_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")
# The comparisons of `metadata_filters`.
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}
_OPERATORS = "$in, $gt, $gte, $lt, $lte, $between"
# Values that the columns of one connection hold: some 100 bytes each
_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list in a header: its scalars, and the lists in it."""

    scalars: frozenset[Scalar]
    lists: tuple[ListValue, ...]


class Condition:
    """A condition on a value of a header."""

    def passes(self, scalar: Scalar) -> bool:
        """Whether a value that is not a list passes."""
        return False

    def passes_list(self, value: ListValue) -> bool:
        """Whether a list passes as a whole; its elements are asked one by one."""
        return False

    @property
    def asks_lists(self) -> bool:
        """Whether a list as a whole may pass."""
        return False


@dataclass(frozen=True, slots=True)
class _In(Condition):
    scalars: frozenset[Scalar]
    others: tuple[Condition, ...] = ()

    def passes(self, scalar: Scalar) -> bool:
        if scalar in self.scalars:
            return True
        return bool(self.others) and any(condition.passes(scalar) for condition in self.others)

    def passes_list(self, value: ListValue) -> bool:
        return any(condition.passes_list(value) for condition in self.others)

    @property
    def asks_lists(self) -> bool:
        return any(condition.asks_lists for condition in self.others)


@dataclass(frozen=True, slots=True)
class _Contains(Condition):
    """A list that has all of these."""

    scalars: frozenset[Scalar]
    others: tuple[Condition, ...]

    def passes_list(self, value: ListValue) -> bool:
        return self.scalars <= value.scalars and all(
            _holds(value, condition) for condition in self.others
        )

    @property
    def asks_lists(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class _All(Condition):
    """One value that passes all of these."""

    conditions: tuple[Condition, ...]

    def passes(self, scalar: Scalar) -> bool:
        return all(condition.passes(scalar) for condition in self.conditions)

    def passes_list(self, value: ListValue) -> bool:
        return all(condition.passes_list(value) for condition in self.conditions)

    @property
    def asks_lists(self) -> bool:
        return all(condition.asks_lists for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class _Ordered(Condition):
    bound: Scalar
    compare: Callable[[Any, Any], bool]

    def passes(self, scalar: Scalar) -> bool:
        kind, value = scalar
        bound_kind, bound = self.bound
        return kind is bound_kind and kind is not bool and self.compare(value, bound)


def _holds(value: ListValue, condition: Condition) -> bool:
    """Whether one element of a list passes."""
    return any(map(condition.passes, value.scalars)) or any(map(condition.passes_list, value.lists))


def conditions(filters: Mapping[str, Any]) -> dict[str, Condition]:
    """The condition for each key. Raises InvalidInput for a filter nobody can read."""
    if not isinstance(filters, Mapping):
        raise _broken(f"must be an object, got {type(filters).__name__}")
    if len(filters) > KEYS:
        raise _broken(f"may have {KEYS} keys, got {len(filters):,}")
    number = _number_of_values(filters)
    if number > VALUES:
        raise _broken(f"may have {VALUES:,} values, got more")
    return {str(name): _condition(str(name), value) for name, value in filters.items()}


def _number_of_values(filters: Any) -> int:
    """How many values the lists and objects contain.

    Raises InvalidInput if they are nested too deep.
    """
    number = 0
    level = [filters]
    for _ in range(DEPTH):
        number += len(level)
        inner: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                inner += value.values()
            elif isinstance(value, list | tuple):
                inner += value
        if not inner or number > VALUES:
            return number
        level = inner
    raise _broken(f"may be nested {DEPTH} deep, got deeper")


def _condition(name: str, value: Any) -> Condition:
    if isinstance(value, Mapping):
        if not value:
            raise _broken(f'has an empty condition for "{_short(name)}"')
        parts = [_operation(name, str(operator), limit) for operator, limit in value.items()]
        if len(parts) == 1:
            return parts[0]
        return _All(tuple(parts))
    if isinstance(value, list | tuple):
        return _Contains(*_parts(name, value))
    return _In(frozenset([scalar_of(value)]))


def _parts(name: str, values: Iterable[Any]) -> tuple[frozenset[Scalar], tuple[Condition, ...]]:
    """The scalars among `values`, and the conditions that the others are."""
    scalars = []
    others_conditions = []
    for value in values:
        if isinstance(value, list | tuple | Mapping):
            others_conditions.append(_condition(name, value))
        else:
            scalars.append(scalar_of(value))
    return frozenset(scalars), tuple(others_conditions)


def _operation(name: str, operator: str, limit: Any) -> Condition:
    if operator == "$in":
        if not isinstance(limit, list | tuple):
            raise _broken(f'takes a list for $in of "{_short(name)}"')
        return _In(*_parts(name, limit))
    if operator == "$between":
        if not isinstance(limit, list | tuple) or len(limit) != 2:
            raise _broken(f'takes a list of two values for $between of "{_short(name)}"')
        low = _Ordered(_bound(name, operator, limit[0]), _COMPARE["$gte"])
        high = _Ordered(_bound(name, operator, limit[1]), _COMPARE["$lte"])
        return _All((low, high))
    if operator not in _COMPARE:
        raise _broken(f'knows no "{_short(operator)}" (for "{_short(name)}")')
    return _Ordered(_bound(name, operator, limit), _COMPARE[operator])


def _bound(name: str, operator: str, limit: Any) -> Scalar:
    if limit is None or isinstance(limit, bool | list | tuple | Mapping):
        raise _broken(f'takes a number, a date or a text for {operator} of "{_short(name)}"')
    return scalar_of(limit)


def scalar_of(value: Any) -> Scalar:
    """The value as it is compared: as a number, a moment, true, false, null, or else as text."""
    typed = _typed(value)
    return type(typed), typed


def _typed(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        is_huge = isinstance(value, int) and abs(value) > sys.float_info.max
        if is_huge:
            return math.copysign(math.inf, value)
        return float(value)
    text = str(value).strip()
    # Nearly all are words; patterns take longer
    if text[:1] in "-0123456789":
        if _NUMBER.fullmatch(text):
            return float(text)
        if _DATE.fullmatch(text):
            return _moment(text)
    return {"true": True, "false": False}.get(text, text)


def _moment(text: str) -> datetime | str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def _short(text: str) -> str:
    """A text of a caller, shortened for an error."""
    if len(text) <= 80:
        return text
    return text[:77] + "..."


def _broken(noun: str) -> InvalidInput:
    examples = '{"status": "draft"} or {"priority": {"$gte": 2}}'
    return InvalidInput(
        f"Parameter `metadata_filters` {noun}. Use e.g. {examples}; operators: {_OPERATORS}."
    )


@dataclass(slots=True)
class Column:
    """The values of one key: each scalar with the rows that have it, alone or in a list; the lists
    as a whole by row."""

    scalars: dict[Scalar, list[int]] = field(default_factory=dict)
    lists: list[tuple[int, ListValue]] = field(default_factory=list)
    cells: int = 0

    def add(self, row: int, value: Any) -> None:
        """Add what a note has: a scalar, or a list with its elements. Objects match no filter."""
        if isinstance(value, list):
            list_value = _list_value(value)
            scalars = list_value.scalars
            self.lists += [(row, part) for part in (list_value, *list_value.lists)]
        elif isinstance(value, Mapping):
            return
        else:
            scalars = frozenset([scalar_of(value)])
        for scalar in scalars:
            self.scalars.setdefault(scalar, []).append(row)
        self.cells += 1 + len(scalars)

    def passing(self, condition: Condition) -> set[int]:
        """The rows of which a value passes."""
        rows: set[int] = set()
        for scalar, having in self.scalars.items():
            if condition.passes(scalar):
                rows.update(having)
        if condition.asks_lists:
            rows.update(row for row, value in self.lists if condition.passes_list(value))
        return rows


def _list_value(values: Sequence[Any]) -> ListValue:
    scalars = []
    lists = []
    for value in values:
        if isinstance(value, list):
            lists.append(_list_value(value))
        elif not isinstance(value, Mapping):
            scalars.append(scalar_of(value))
    return ListValue(frozenset(scalars), tuple(lists))


class HeaderColumns:
    """A cache of columns of an index, one per connection (`database.held`).

    The second filter on a key takes some milliseconds at 10,000 notes instead of 200. Nothing
    is ever invalidated: the header of a row does not change, new rows have the highest numbers, and
    callers ask about rows that are there.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self._last_rows: dict[str, int] = {}

    def columns(self, db: sqlite3.Connection, names: Iterable[str]) -> dict[str, Column]:
        """The columns of these keys, brought up to date."""
        wanted_names = list(names)
        by_last_row: dict[int, list[str]] = {}
        for name in wanted_names:
            # Moved to the end: the columns asked for last are dropped last
            if name in self._columns:
                column = self._columns.pop(name)
            else:
                column = Column()
            self._columns[name] = column
            by_last_row.setdefault(self._last_rows.get(name, 0), []).append(name)
        for last_row, key_rows in by_last_row.items():
            self._add_new(db, key_rows, last_row)
        columns = {name: self._columns[name] for name in wanted_names}
        self._drop_oldest()
        return columns

    def _add_new(self, db: sqlite3.Connection, names: Sequence[str], last_row: int) -> None:
        begins = [sqlite_text(name.partition(".")[0]) for name in names]
        holds = " or ".join(
            ["instr(front || coalesce(header, '') || coalesce(fields, ''), ?)"] * len(begins)
        )
        # Read this before the rows: rows added in between are read by the next call.
        newest = db.execute("select coalesce(max(row), 0) from text").fetchone()[0]
        rows = db.execute(
            f"select row, front, header, fields from text where row > ? and row <= ? and ({holds})",
            (last_row, newest, *begins),
        )
        for row, front, header, fields in rows:
            values = (json.loads(fields) if fields else {}) | header_of(front, header)
            for name in names:
                for value in _values(values, name):
                    self._columns[name].add(row, value)
        self._last_rows |= dict.fromkeys(names, newest)

    def _drop_oldest(self) -> None:
        cells = sum(column.cells for column in self._columns.values())
        while cells > _CELLS and self._columns:
            name = next(iter(self._columns))
            cells -= self._columns.pop(name).cells
            del self._last_rows[name]


def _values(header: Mapping[str, Any], name: str) -> list[Any]:
    """The values of a header under a key, or along a path with dots."""
    if name in header:
        return [header[name]]
    return _dotted(header, name.split("."))


def _dotted(value: Any, names: list[str]) -> list[Any]:
    if not names:
        return [value]
    if isinstance(value, list):
        return list(chain.from_iterable(_dotted(element, names) for element in value))
    if isinstance(value, Mapping) and names[0] in value:
        return _dotted(value[names[0]], names[1:])
    return []


def rows_with(db: sqlite3.Connection, filters: Mapping[str, Any]) -> set[int]:
    """The rows of all notes whose header passes, removed notes included. Raises InvalidInput."""
    return _rows_with(db, conditions(filters), None)


def passing_rows(
    db: sqlite3.Connection, filters: Mapping[str, Any], rows: Sequence[int]
) -> list[int]:
    """Those of `rows`, in their order, whose header passes. Raises InvalidInput."""
    passed = _rows_with(db, conditions(filters), rows)
    return [row for row in rows if row in passed]


def _rows_with(
    db: sqlite3.Connection, asked_conditions: Mapping[str, Condition], rows: Sequence[int] | None
) -> set[int]:
    """The rows that pass, among `rows` where the index understands the key (None: all)."""
    written = [name for name in asked_conditions if name not in UNDERSTOOD]
    if written:
        columns = held(db, HeaderColumns).columns(db, written)
    else:
        columns = {}
    passed: set[int] | None = None
    for name, condition in asked_conditions.items():
        column = columns.get(name) or _understood(db, name, rows)
        found_passing_rows = column.passing(condition)
        if passed is None:
            passed = found_passing_rows
        else:
            passed = passed & found_passing_rows
    return passed or set()


def _understood(db: sqlite3.Connection, name: str, rows: Sequence[int] | None) -> Column:
    """The column of a key that the index derives itself, so that it may change while the text does
    not.
    """
    column = Column()
    if rows is None:
        among = ""
    else:
        among = " and row in (select value from json_each(?))"
    type_rows = db.execute(
        f"select row, {name} from note where {name} is not null{among}",
        () if rows is None else (json.dumps(list(rows)),),
    )
    for row, value in type_rows:
        column.add(row, json.loads(value) if name == "tags" else value)
    return column
