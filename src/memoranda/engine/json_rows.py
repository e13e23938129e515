"""The rows of JSON files used in place: how a change of them is made and taken back, and what the
history has of each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from memoranda.clock import parse_stamp
from memoranda.engine.in_place import Blocked, InPlaceChange
from memoranda.engine.session import HomeSession
from memoranda.engine.undo import PASSING
from memoranda.errors import CannotUndo, StorageError
from memoranda.ledger.change import Change, Touched
from memoranda.ledger.lines import KeptLines
from memoranda.note.entry import PROJECT as KV_PROJECT
from memoranda.sources.files import reason
from memoranda.sources.json_files import JsonFiles, OpenRows, Row, RowEdit, namespace_in
from memoranda.sources.locked_file import CannotReplace

# The fields of a row with a time to live that the history keeps.
_OF_PASSING = ("key", "namespace", "created_at", "expires_at")
# The fields of a row that recalls change.
_COUNTED = ("accessed_at", "access_count")


def row_name(files: JsonFiles, row: Row, stem: str) -> str:
    """The ledger's name of an entry. It changes when the entry is written again."""
    parts = (str(files.root), namespace_in(row, stem), row["key"], str(row.get("created_at")))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def row_change(
    session: HomeSession, files: JsonFiles, path: str, undoes: int | None = None
) -> InPlaceChange:
    """A change of a folder of JSON files, listed under a path in it."""
    return InPlaceChange(session, KV_PROJECT, path, os.path.realpath(files.root), undoes)


def write_rows(rows: OpenRows, edit: RowEdit, change: InPlaceChange) -> None:
    """Bring an edit into the file and the history. Raises OSError, ValueError for what JSON cannot
    say.
    """
    lines = rows.line_change(edit, _history_line)
    try:
        change.write(edit.verb, lines)
    except CannotReplace as error:
        # Written in place, the history would get the whole file, with texts it may not keep
        raise error.cause from None


def take_back_rows(
    session: HomeSession, change: Change, touched: Touched, kept_lines: KeptLines, blocked: Blocked
) -> Change | None:
    """Take back a change of rows. Returns the undo, or None if nothing had to change.

    Raises CannotUndo, StorageError.
    """
    files = JsonFiles(Path(touched.root))
    stem = os.path.basename(touched.file).removesuffix(".json")
    undo = row_change(session, files, change.path, undoes=change.number)
    try:
        with undo.writing(), files.changing(stem, make=True) as rows:
            edit = _RowUndo(change, rows.content.rows, stem).edit(kept_lines)
            if edit is None:
                raise blocked(change.project, change.path)
            write_rows(rows, edit, undo)
            returned = list(chain.from_iterable(edit.inserted.values()))
            changed = [*(rows.content.rows[number] for number in edit.gone), *returned]
            names = [row_name(files, row, stem) for row in changed]
            session.engine.reads.restart(*names)
    except OSError as error:
        raise StorageError(touched.file, reason(error)) from None
    except ValueError:
        raise CannotUndo(f"{touched.file} holds no entries any more", f"#{change.number}") from None
    return undo.made


class _RowUndo:
    """Takes back a change of rows in a file that has `rows` now."""

    def __init__(self, change: Change, rows: Sequence[Row], stem: str):
        self._change = change
        self._rows = rows
        self._stem = stem

    def edit(self, kept_lines: KeptLines) -> RowEdit | None:
        """The edit that takes the change back.

        None if a row has changed since, or if its place is taken. Raises CannotUndo if the history
        has no text of the row.
        """
        edit = RowEdit("undo")
        if not self._remove_added(edit, kept_lines):
            return None
        gone = [(number, json.loads(old)) for number, old, _ in kept_lines.replaced]
        returning = [(number, row) for number, row in gone if not _is_passing(row)]
        is_replaced_gone = bool(kept_lines.added) and len(returning) < len(gone)
        if is_replaced_gone or not (returning or edit.gone):
            raise CannotUndo(PASSING, f"#{self._change.number}")
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


def _history_line(row: Row) -> bytes:
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
