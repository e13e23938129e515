"""The rows of JSON files with key-value entries (contract 004, 7): whose namespace each is, what the
history keeps of it, and how a change of rows is taken back.
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
from memoranda.sources.line_change import KeptLines
from memoranda.sources.source import NotKept

Row = dict[str, Any]

META = "_meta.json"
PASSING = "the text of an entry with a time to live is not kept"
_META_NAMESPACE = "_meta_"
# Signs that agent-memory replaces in the names of its files.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
EXTENSION = ".json"
# Characters of a file's name without its extension; with it, what file systems take
_LONGEST = 250
# The fields of a row with a time to live that the history keeps.
_OF_PASSING = ("key", "namespace", "created_at", "expires_at")
# The fields of a row that recalls change.
_COUNTED = ("accessed_at", "access_count")


def stem_of(namespace: str) -> str:
    """The name, without `.json`, of the file for a namespace; several namespaces can come to the
    same.
    """
    stem = _UNSAFE.sub("_", namespace)[:_LONGEST]
    if stem + EXTENSION == META:
        return _META_NAMESPACE
    return stem


def namespace_in(row: Row, stem: str) -> str:
    """The namespace of a row in the file `stem`; a field of that name that means another file is
    not ours.
    """
    namespace = row.get("namespace")
    if isinstance(namespace, str) and namespace and stem_of(namespace) == stem:
        return namespace
    return stem


@dataclass(slots=True)
class RowEdit:
    """The changes to the rows of a file, by their numbers from 0.

    `gone`: the rows that go. `inserted`: rows that come before the row of a number. `added`: rows
    that come at the end.
    """

    verb: str
    gone: set[int] = field(default_factory=set)
    inserted: dict[int, list[Row]] = field(default_factory=dict)
    added: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.gone or self.inserted or self.added)

    @property
    def coming(self) -> list[Row]:
        """The rows that come, in their order."""
        inserted = (self.inserted[number] for number in sorted(self.inserted))
        return [*chain.from_iterable(inserted), *self.added]

    def applied(self, rows: Sequence[Row]) -> list[Row]:
        """The rows after it."""
        after: list[Row] = []
        for number, row in enumerate(rows):
            after += self.inserted.get(number, ())
            if number not in self.gone:
                after.append(row)
        after += self.inserted.get(len(rows), ())
        return after + self.added


class RowUndo:
    """Takes back a change of rows in a file that has `rows` now."""

    def __init__(self, rows: Sequence[Row], stem: str):
        self._rows = rows
        self._stem = stem

    def edit(self, kept_lines: KeptLines) -> RowEdit | None:
        """The edit that takes the change back.

        None if a row has changed since, or if its place is taken. Raises NotKept if the history has
        no text of the row.
        """
        edit = RowEdit("undo")
        if not self._remove_added(edit, kept_lines):
            return None
        gone = [(number, json.loads(old)) for number, old, _ in kept_lines.replaced]
        returning = [(number, row) for number, row in gone if not _is_passing(row)]
        is_replaced_gone = bool(kept_lines.added) and len(returning) < len(gone)
        if is_replaced_gone or not (returning or edit.gone):
            raise NotKept(PASSING)
        if any(self._is_taken(row, edit.gone) for _, row in returning):
            return None
        self._insert(edit, returning)
        return edit

    def _remove_added(self, edit: RowEdit, kept_lines: KeptLines) -> bool:
        """Have the rows go that the change added. Returns False where one is not there any more."""
        for line in reversed(kept_lines.added):
            number = self._number_of(json.loads(line), edit.gone)
            if number is None:
                return False
            edit.gone.add(number)
        return True

    def _insert(self, edit: RowEdit, returning: Sequence[tuple[int, Row]]) -> None:
        """Have rows come back where they were, each given with the number it had then."""
        staying = [number for number in range(len(self._rows)) if number not in edit.gone]
        for before, (number, row) in enumerate(returning):
            # Those returned before this one are not in the file yet
            slot_index = number - before
            place = staying[slot_index] if slot_index < len(staying) else len(self._rows)
            edit.inserted.setdefault(place, []).append(row)

    def _number_of(self, kept_row: Row, taken: Collection[int]) -> int | None:
        """Where a row is that a change left; the last of equal ones."""
        for number in reversed(range(len(self._rows))):
            if number not in taken and _is_same(kept_row, self._rows[number]):
                return number
        return None

    def _is_taken(self, row: Row, leaving: Collection[int]) -> bool:
        """Whether the file has another entry under the key of a row that comes back."""
        namespace = namespace_in(row, self._stem)
        return any(
            number not in leaving and is_entry(other, self._stem, namespace, row["key"])
            for number, other in enumerate(self._rows)
        )


def _is_passing(row: Row) -> bool:
    """Whether a row had a time to live. The history has no value of such a row."""
    return moment_of(row.get("expires_at")) is not None


def history_line(row: Row) -> bytes:
    """A row as the history keeps it."""
    if _is_passing(row):
        row = {name: row[name] for name in _OF_PASSING if name in row}
    return json.dumps(row).encode() + b"\n"


def _is_same(kept_row: Row, row: Row) -> bool:
    """Whether a row is equal to one in the history, apart from its recalls."""
    if _is_passing(kept_row):
        return all(row.get(name) == value for name, value in kept_row.items())
    kept_fields = {name: value for name, value in kept_row.items() if name not in _COUNTED}
    return kept_fields == {name: value for name, value in row.items() if name not in _COUNTED}


def is_entry(row: Row, stem: str, namespace: str, key: str) -> bool:
    """Whether a row of the file `stem` is the entry of a key in a namespace."""
    return row["key"] == key and namespace_in(row, stem) == namespace


def moment_of(value: Any) -> datetime | None:
    """Read a time in either form, seconds since 1970 or ISO 8601. None for anything else."""
    try:
        if isinstance(value, str):
            return parse_stamp(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        # A time beyond all years
        pass
    return None
