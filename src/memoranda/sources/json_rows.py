"""The rows of JSON files with key-value entries (contract 004, 7).

A row is a JSON object, such as `{"key": "city", "namespace": "work", "value": "Bonn"}`. This module
tells a row's namespace and what the history keeps of it, edits rows, and undoes edits. A row with a
time to live is "passing": the history keeps no value of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from memoranda.clock import parse_stamp
from memoranda.sources.line_change import KeptLines, former_places
from memoranda.sources.source import NotKept

Row = dict[str, Any]

META = "_meta.json"
PASSING = "the text of an entry with a time to live is not kept"
_META_NAMESPACE = "_meta_"
# Characters that agent-memory replaces in the names of its files.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
EXTENSION = ".json"
# With the extension, a name of this length is the longest that file systems accept.
_MAX_STEM_CHARACTERS = 250
# The fields that the history keeps of a row with a time to live.
_PASSING_FIELDS = ("key", "namespace", "created_at", "expires_at")
# A number in a text: `1767225600`, `-1.5`. Eight digits are a day in ISO 8601: `20260507`.
_NUMBER = re.compile(r"(?!\d{8}$)-?[0-9]+(\.[0-9]+)?")
# The last second that Python knows, in the year 9999, counted from 1970.
_LAST_SECOND = 253_402_300_799
# An error shows at most so much of a value.
_MAX_SHOWN_CHARACTERS = 60
# The fields of a row that change when it is recalled.
_COUNT_FIELDS = ("accessed_at", "access_count")


def stem_of(namespace: str) -> str:
    """Return the name, without `.json`, of the file for a namespace: `my work` is in `my_work`.

    Several namespaces may share a file.
    """
    stem = _UNSAFE.sub("_", namespace)[:_MAX_STEM_CHARACTERS]
    if stem + EXTENSION == META:
        return _META_NAMESPACE
    return stem


def namespace_in(row: Row, stem: str) -> str:
    """Return the namespace of a row in the file `stem`.

    It is the row's field `namespace`, if that belongs into this file, or else the stem.
    """
    namespace = row.get("namespace")
    if isinstance(namespace, str) and namespace:
        # A row that names the namespace of another file is read as one of its own file
        is_of_file = stem_of(namespace) == stem
        if is_of_file:
            return namespace
    return stem


@dataclass(slots=True)
class RowEdit:
    """The changes to the rows of a file, which are numbered from 0.

    verb: the kind of the change in the history.
    removed: the numbers of the rows that are removed.
    inserted: number of a row -> rows to insert before it.
    added: rows to add at the end.
    """

    verb: str
    removed: set[int] = field(default_factory=set)
    inserted: dict[int, list[Row]] = field(default_factory=dict)
    added: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.removed or self.inserted or self.added)

    @property
    def new_rows(self) -> list[Row]:
        """All new rows, in their order."""
        inserted = chain.from_iterable(self.inserted[number] for number in sorted(self.inserted))
        return [*inserted, *self.added]

    def applied(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of a file after this edit."""
        after: list[Row] = []
        for number, row in enumerate(rows):
            after += self.inserted.get(number, ())
            if number not in self.removed:
                after.append(row)
        after += self.inserted.get(len(rows), ())
        return after + self.added


class RowUndo:
    """Plans how to undo a change of rows in a JSON file.

    rows: the present rows of the file.
    stem: the name of the file without `.json`.
    """

    def __init__(self, rows: Sequence[Row], stem: str):
        self._rows = rows
        self._stem = stem

    def edit(self, kept_lines: KeptLines) -> RowEdit | None:
        """Return the edit that takes a change back.

        None if a row has changed since, or if its key is in use again. Raises NotKept if the history
        has no value of the row.
        """
        edit = RowEdit("undo")
        has_all_added = self._remove_added(edit, kept_lines)
        if not has_all_added:
            return None
        removed_rows = [(number, json.loads(old)) for number, old, _ in kept_lines.replaced]
        # The history has no value of a row that had a time to live, so such a row cannot return.
        rows_to_insert = [(number, row) for number, row in removed_rows if not _is_passing(row)]
        lacks_values = len(rows_to_insert) < len(removed_rows)
        has_added = bool(kept_lines.added)
        if lacks_values and has_added:
            # The new row would go without the old one in its place.
            raise NotKept(PASSING)
        if not rows_to_insert and not edit.removed:
            # Nothing of the change can be taken back.
            raise NotKept(PASSING)
        if any(self._is_taken(row, edit.removed) for _, row in rows_to_insert):
            return None
        self._insert(edit, rows_to_insert)
        return edit

    def _remove_added(self, edit: RowEdit, kept_lines: KeptLines) -> bool:
        """Add to `edit` the removal of the rows that the change added.

        kept_lines: the lines of the change, from the history.

        Returns False if the file no longer has one of them.
        """
        for line in reversed(kept_lines.added):
            number = self._number_of(json.loads(line), edit.removed)
            if number is None:
                return False
            edit.removed.add(number)
        return True

    def _insert(self, edit: RowEdit, removed_rows: Sequence[tuple[int, Row]]) -> None:
        """Add to `edit` the insertion of removed rows at their former places.

        removed_rows: (number, row), with the number that the row had when it was removed.
        """
        remaining_numbers = [
            number for number in range(len(self._rows)) if number not in edit.removed
        ]
        former_numbers = [number for number, _ in removed_rows]
        places = former_places(former_numbers, remaining_numbers, len(self._rows))
        for place, (_, row) in zip(places, removed_rows, strict=True):
            edit.inserted.setdefault(place, []).append(row)

    def _number_of(self, kept_row: Row, excluded: Collection[int]) -> int | None:
        """Return the number that a row of the history has in the file, the last of equal rows.

        kept_row: the row as the history has it.
        excluded: numbers that do not count.

        None if the file does not have it.
        """
        for number in reversed(range(len(self._rows))):
            if number not in excluded and _is_same(kept_row, self._rows[number]):
                return number
        return None

    def _is_taken(self, row: Row, removed_numbers: Collection[int]) -> bool:
        """Whether the file has another entry with the key of a row to insert.

        removed_numbers: the numbers of the rows that the edit removes.
        """
        namespace = namespace_in(row, self._stem)
        for number, file_row in enumerate(self._rows):
            is_removed = number in removed_numbers
            if not is_removed and is_entry(file_row, self._stem, namespace, row["key"]):
                return True
        return False


def _is_passing(row: Row) -> bool:
    """Whether a row had a time to live. The history has no value of such a row."""
    return moment_of(row.get("expires_at")) is not None


def history_line(row: Row) -> bytes:
    """Return a row as the history keeps it: a line of JSON, without the value if it is passing."""
    if _is_passing(row):
        row = {name: row[name] for name in _PASSING_FIELDS if name in row}
    return json.dumps(row).encode() + b"\n"


def _is_same(kept_row: Row, row: Row) -> bool:
    """Whether a row is equal to a row in the history, apart from its counts of recalls.

    kept_row: the row as the history has it.
    """
    if _is_passing(kept_row):
        # The history has only some of its fields
        return all(row.get(name) == value for name, value in kept_row.items())
    return _without_counts(kept_row) == _without_counts(row)


def _without_counts(row: Row) -> Row:
    """Return a row without the fields that change when it is recalled."""
    return {name: value for name, value in row.items() if name not in _COUNT_FIELDS}


def is_entry(row: Row, stem: str, namespace: str, key: str) -> bool:
    """Whether a row of the file `stem` is the entry of a key in a namespace."""
    return row["key"] == key and namespace_in(row, stem) == namespace


def moment_of(value: Any) -> datetime | None:
    """Parse a time: seconds or milliseconds since 1970, or ISO 8601. None for anything else.

    A number may be written as a text: `"1767225600"`.
    """
    try:
        if isinstance(value, str):
            if _NUMBER.fullmatch(value.strip()):
                return _counted_moment(float(value))
            return parse_stamp(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _counted_moment(value)
    except (ValueError, OverflowError, OSError):
        # Not a time, or beyond the years that Python knows
        pass
    return None


def _counted_moment(number: float) -> datetime:
    """Return the time that a number counts from 1970. Raises ValueError, OverflowError, OSError."""
    # As seconds, such a number is after the year 9999, so it counts milliseconds.
    if number > _LAST_SECOND:
        number /= 1000
    return datetime.fromtimestamp(number, UTC)


def check_expiry(row: Row) -> None:
    """Raise ValueError if a row has an `expires_at` that is not a time.

    Without a time, the entry would count as one that never expires.
    """
    value = row.get("expires_at")
    if value is None or moment_of(value) is not None:
        return
    value_as_json = json.dumps(value)[:_MAX_SHOWN_CHARACTERS]
    raise ValueError(
        f'expires_at of entry "{row["key"]}" is no time: {value_as_json}; '
        "write seconds since 1970, a time such as 2026-05-07T10:00:00Z, or null for never"
    )
