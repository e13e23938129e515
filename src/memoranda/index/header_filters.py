"""Filter notes by the values of their header, and of `key:: value` fields in their text.

These are the `metadata_filters` of contract 000b, 7. For example, `{"priority": {"$gte": 2}}`
becomes a `Condition` on the key `priority`. Numbers and dates compare by value, everything else as
text. A list passes if one of its elements does. The values of one key are cached as a `Column`:
each different value once, with the rows that have it. So a filter looks at each value once, however
many notes have it.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.index.database import held
from memoranda.index.rows import header_of
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import sqlite_text

UNDERSTOOD = ("type", "title", "permalink", "scope", "source", "category", "phase", "tags")
"""Keys that are compared with the columns of table `note` and not with the header. The index may
have derived their values in another way."""

# The filters of one query may have this many keys, values in all, and lists inside lists, so that
# they stay fast.
KEYS = 50
VALUES = 2_000
DEPTH = 10

Scalar = tuple[type, Any]
"""A value that is not a list, after its type: `(float, 1.0)`. Without the type, 1 would equal
true."""

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
# How many values the cache of one connection keeps. Each takes about 100 bytes.
_MAX_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list in a header.

    scalars: its elements that are not lists.
    lists: its elements that are lists.
    """

    scalars: frozenset[Scalar]
    lists: tuple[ListValue, ...]


class Condition:
    """A condition on a value of a header. By default nothing passes."""

    def passes(self, scalar: Scalar) -> bool:
        """Whether a value that is not a list passes."""
        return False

    def passes_list(self, value: ListValue) -> bool:
        """Whether a list passes as a whole. Its elements are also checked one by one."""
        return False

    @property
    def asks_lists(self) -> bool:
        """Whether a list as a whole may pass."""
        return False


@dataclass(frozen=True, slots=True)
class _In(Condition):
    """Passes a value that is one of `scalars`, or that passes one of `conditions`."""

    scalars: frozenset[Scalar]
    conditions: tuple[Condition, ...] = ()

    def passes(self, scalar: Scalar) -> bool:
        if scalar in self.scalars:
            return True
        # Mostly there are none. Asking that first is faster than a generator.
        if not self.conditions:
            return False
        return any(condition.passes(scalar) for condition in self.conditions)

    def passes_list(self, value: ListValue) -> bool:
        return any(condition.passes_list(value) for condition in self.conditions)

    @property
    def asks_lists(self) -> bool:
        return any(condition.asks_lists for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class _Contains(Condition):
    """Passes a list that has certain elements.

    scalars: values of which the list must have all.
    conditions: for each condition, an element of the list must pass it.
    """

    scalars: frozenset[Scalar]
    conditions: tuple[Condition, ...]

    def passes_list(self, value: ListValue) -> bool:
        has_all_scalars = self.scalars <= value.scalars
        return has_all_scalars and all(
            _has_passing_element(value, condition) for condition in self.conditions
        )

    @property
    def asks_lists(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class _All(Condition):
    """Passed by a value that passes all `conditions`."""

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
    """Passes a value if `compare(value, bound)` is true and both have the same type."""

    bound: Scalar
    compare: Callable[[Any, Any], bool]

    def passes(self, scalar: Scalar) -> bool:
        kind, value = scalar
        bound_kind, bound = self.bound
        # true and false have no order.
        return kind is bound_kind and kind is not bool and self.compare(value, bound)


def _has_passing_element(value: ListValue, condition: Condition) -> bool:
    """Whether one element of a list passes a condition."""
    has_scalar = any(condition.passes(scalar) for scalar in value.scalars)
    return has_scalar or any(condition.passes_list(inner_list) for inner_list in value.lists)


def conditions(filters: Mapping[str, Any]) -> dict[str, Condition]:
    """Translate `metadata_filters` into one condition per key.

    `{"status": "draft"}` → `{"status": _In({(str, "draft")})}`.

    Raises InvalidInput if the filters are malformed or too large.
    """
    if not isinstance(filters, Mapping):
        raise _broken(f"must be an object, got {type(filters).__name__}")
    if len(filters) > KEYS:
        raise _broken(f"may have {KEYS} keys, got {len(filters):,}")
    number = _number_of_values(filters)
    if number > VALUES:
        raise _broken(f"may have {VALUES:,} values, got more")
    return {str(name): _condition(str(name), value) for name, value in filters.items()}


def _number_of_values(filters: Any) -> int:
    """Return how many values the lists and objects contain. More than VALUES are not all counted.

    Raises InvalidInput if they are nested too deeply.
    """
    # Level by level: first the filters themselves, then all values in them, and so on.
    number = 0
    values_of_level = [filters]
    for _ in range(DEPTH):
        number += len(values_of_level)
        inner_values: list[Any] = []
        for value in values_of_level:
            if isinstance(value, Mapping):
                inner_values += value.values()
            elif isinstance(value, list | tuple):
                inner_values += value
        if not inner_values or number > VALUES:
            return number
        values_of_level = inner_values
    raise _broken(f"may be nested {DEPTH} deep, got deeper")


def _condition(name: str, value: Any) -> Condition:
    """Return the condition for a filter value.

    An object has operators, `{"$gte": 2, "$lt": 5}`. A list means that a note's list must contain
    all its elements. Any other value must be equal.

    name: the key of the filter, for errors.
    """
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
    """Split values into scalars, and conditions made of the lists and objects."""
    scalars = []
    inner_conditions = []
    for value in values:
        if isinstance(value, list | tuple | Mapping):
            inner_conditions.append(_condition(name, value))
        else:
            scalars.append(scalar_of(value))
    return frozenset(scalars), tuple(inner_conditions)


def _operation(name: str, operator: str, limit: Any) -> Condition:
    """Return the condition for an operator with its value, such as `$gte` with 2."""
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
    """Return the value to compare with, in the form of `scalar_of`.

    name, operator: the key of the filter and its operator, for the error.
    limit: the value as the caller wrote it.

    Raises InvalidInput if the value has no order.
    """
    if limit is None or isinstance(limit, bool | list | tuple | Mapping):
        raise _broken(f'takes a number, a date or a text for {operator} of "{_short(name)}"')
    return scalar_of(limit)


def scalar_of(value: Any) -> Scalar:
    """Return a value as it is compared, after its type.

    `"12"` → `(float, 12.0)`, `"2026-05-01"` → `(datetime, …)`, `"draft"` → `(str, "draft")`.
    """
    typed = _typed(value)
    return type(typed), typed


def _typed(value: Any) -> Any:
    """Return a value as a float, a datetime, a bool, None or a str, so that values can be compared.

    A text that spells one of these types becomes it: `3` and "3" become 3.0, "true" becomes True,
    and "2026-01-31" a datetime.
    """
    # First, since Python counts a flag as a number, too.
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        # Python cannot convert an int beyond the largest float.
        is_too_large = isinstance(value, int) and abs(value) > sys.float_info.max
        if is_too_large:
            return math.inf if value > 0 else -math.inf
        return float(value)
    text = str(value).strip()
    # Nearly all texts are words, for which the patterns would take too long.
    if text[:1] in "-0123456789":
        if _NUMBER.fullmatch(text):
            return float(text)
        if _DATE.fullmatch(text):
            return _moment(text)
    return {"true": True, "false": False}.get(text, text)


def _moment(text: str) -> datetime | str:
    """Return a date or time in UTC. The text stays if it only looks like a date: `2026-99-99`."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        # In UTC, an hour of the first or last day may be outside the calendar.
        return text


def _short(text: str) -> str:
    """Return a text from the caller, cut to 80 characters, for an error."""
    if len(text) <= 80:
        return text
    return text[:77] + "..."


def _broken(problem: str) -> InvalidInput:
    """Return the error for malformed filters. `problem` continues the name of the parameter."""
    examples = '{"status": "draft"} or {"priority": {"$gte": 2}}'
    return InvalidInput(
        f"Parameter `metadata_filters` {problem}. Use e.g. {examples}; operators: {_OPERATORS}."
    )


@dataclass(slots=True)
class Column:
    """The values of one key in all notes.

    scalars: the rows that have each value, alone or in a list.
    lists: (row, list) of each list, and of each list inside it.
    cells: how many values were added, as a measure of memory.
    """

    scalars: dict[Scalar, list[int]] = field(default_factory=dict)
    lists: list[tuple[int, ListValue]] = field(default_factory=list)
    cells: int = 0

    def add(self, row: int, value: Any) -> None:
        """Add the value that a note has. Objects are ignored, since no filter matches them."""
        if isinstance(value, Mapping):
            return
        if isinstance(value, list):
            list_value = _list_value(value)
            scalars = list_value.scalars
            self.lists.append((row, list_value))
            self.lists += [(row, inner_list) for inner_list in list_value.lists]
        else:
            scalars = frozenset([scalar_of(value)])
        for scalar in scalars:
            self.scalars.setdefault(scalar, []).append(row)
        self.cells += 1 + len(scalars)

    def passing(self, condition: Condition) -> set[int]:
        """Return the rows with a value that passes."""
        rows: set[int] = set()
        for scalar, rows_with_scalar in self.scalars.items():
            if condition.passes(scalar):
                rows.update(rows_with_scalar)
        if condition.asks_lists:
            rows.update(row for row, value in self.lists if condition.passes_list(value))
        return rows


def _list_value(values: Sequence[Any]) -> ListValue:
    """Return the elements of a list, with the scalars apart from the inner lists.

    `["tea", 3, ["green"]]` gives the scalars `tea` and `3`, and one inner list with the scalar
    `green`. Objects are left out, since no filter matches them.
    """
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

    With it, the second filter on a key takes some milliseconds at 10,000 notes instead of 200.
    Nothing in it becomes outdated: the header of a row never changes, and new rows have higher
    numbers. Callers ignore rows of deleted notes.
    """

    def __init__(self) -> None:
        # The columns by key. The last used are at the end.
        self._columns: dict[str, Column] = {}
        # The last row that was read, by key.
        self._last_rows: dict[str, int] = {}

    def columns(self, db: sqlite3.Connection, names: Iterable[str]) -> dict[str, Column]:
        """Return the columns of these keys, with all notes that the index has now."""
        selected_names = list(names)
        # Keys that were read up to the same row are read together.
        names_by_last_row: dict[int, list[str]] = {}
        for name in selected_names:
            # Taken out and put in again, a column comes to the end, so that it is dropped last.
            column = self._columns.pop(name, None) or Column()
            self._columns[name] = column
            last_row_read = self._last_rows.get(name, 0)
            names_by_last_row.setdefault(last_row_read, []).append(name)
        # Add the notes that were indexed since then.
        for last_row, names_to_read in names_by_last_row.items():
            self._add_new(db, names_to_read, last_row)
        columns = {name: self._columns[name] for name in selected_names}
        self._drop_oldest()
        return columns

    def _add_new(self, db: sqlite3.Connection, names: Sequence[str], last_row: int) -> None:
        """Add the notes after `last_row` to the columns of these keys."""
        # Only headers that contain the first part of a key `a.b` are parsed.
        first_parts = [sqlite_text(name.partition(".")[0]) for name in names]
        has_key = "instr(front || coalesce(header, '') || coalesce(fields, ''), ?)"
        has_any_key = " or ".join([has_key] * len(first_parts))
        # This is read before the rows: rows added in between are read by the next call.
        (newest_row,) = db.execute("select coalesce(max(row), 0) from text").fetchone()
        rows = db.execute(
            "select row, front, header, fields from text"
            f" where row > ? and row <= ? and ({has_any_key})",
            (last_row, newest_row, *first_parts),
        )
        for row, front, header, fields in rows:
            # The header counts more than a field in the text.
            values = (json.loads(fields) if fields else {}) | header_of(front, header)
            for name in names:
                for value in _values(values, name):
                    self._columns[name].add(row, value)
        self._last_rows |= dict.fromkeys(names, newest_row)

    def _drop_oldest(self) -> None:
        """Drop the columns that were not used for the longest time, if all take too much memory."""
        cells = sum(column.cells for column in self._columns.values())
        while cells > _MAX_CELLS and self._columns:
            name = next(iter(self._columns))
            cells -= self._columns.pop(name).cells
            del self._last_rows[name]


def _values(header: Mapping[str, Any], name: str) -> list[Any]:
    """Return the values of a header under a key, which may be a path with dots.

    `a.b` in `{"a": [{"b": 1}, {"b": 2}]}` → `[1, 2]`.
    """
    if name in header:
        return [header[name]]
    return _dotted(header, name.split("."))


def _dotted(value: Any, names: list[str]) -> list[Any]:
    """Return the values at the end of a path of keys.

    `["a", "b"]` in `{"a": {"b": 1}}` gives `[1]`. If a value on the way is a list, each of its
    elements is followed.

    names: the remaining keys of the path.
    """
    if not names:
        return [value]
    if isinstance(value, list):
        values: list[Any] = []
        for element in value:
            values += _dotted(element, names)
        return values
    if isinstance(value, Mapping) and names[0] in value:
        return _dotted(value[names[0]], names[1:])
    return []


def rows_with(db: sqlite3.Connection, filters: Mapping[str, Any]) -> set[int]:
    """Return the rows of all notes whose header passes. Rows of deleted notes may be among them.

    Raises InvalidInput for malformed filters.
    """
    return _rows_with(db, conditions(filters), rows=None)


def passing_rows(
    db: sqlite3.Connection, filters: Mapping[str, Any], rows: Sequence[int]
) -> list[int]:
    """Return the rows whose header passes, in their order.

    Raises InvalidInput for malformed filters.
    """
    all_passing_rows = _rows_with(db, conditions(filters), rows)
    return [row for row in rows if row in all_passing_rows]


def _rows_with(
    db: sqlite3.Connection,
    conditions_by_name: Mapping[str, Condition],
    rows: Sequence[int] | None,
) -> set[int]:
    """Return the rows that pass all conditions. Other rows than `rows` may be among them.

    conditions_by_name: the condition on each key.
    rows: the rows to read for keys that are not cached. None means all.
    """
    # Keys such as `status` come from the header, others such as `title` from table `note`.
    header_names = [name for name in conditions_by_name if name not in UNDERSTOOD]
    columns: dict[str, Column] = {}
    if header_names:
        columns = held(db, HeaderColumns).columns(db, header_names)
    # The rows that pass each of the conditions.
    rows_by_condition: list[set[int]] = []
    for name, condition in conditions_by_name.items():
        column = columns.get(name) or _note_column(db, name, rows)
        rows_by_condition.append(column.passing(condition))
    if not rows_by_condition:
        return set()
    return set.intersection(*rows_by_condition)


def _note_column(db: sqlite3.Connection, name: str, rows: Sequence[int] | None) -> Column:
    """Read the values of one of the UNDERSTOOD keys from table `note`.

    They may change while the text does not, so they are not cached.

    rows: the rows to read. None means all.
    """
    sql = f"select row, {name} from note where {name} is not null"
    if rows is None:
        note_rows = db.execute(sql)
    else:
        is_among_rows = "row in (select value from json_each(?))"
        note_rows = db.execute(f"{sql} and {is_among_rows}", (json.dumps(list(rows)),))
    column = Column()
    for row, value in note_rows:
        column.add(row, json.loads(value) if name == "tags" else value)
    return column
