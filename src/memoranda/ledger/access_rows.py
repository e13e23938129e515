"""Who may use the HTTP server, and how often they did today, as rows of the ledger.

`serve/auth.py` reads and edits all of it as one JSON document, such as
`{"tokens": [{"id": "t1", ...}], "visitors": {"codes": {"c1": {...}}}}`. In the ledger each element
is a row (section, key, value): `("tokens", "t1", ...)`, `("visitors.codes", "c1", ...)`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from sqlite3 import Connection
from typing import Any

from memoranda.ledger.database import LedgerDatabase

# Sections that are lists. An element's `id` is the key of its row.
_LISTS = ("tokens", "grants")
# Sections that contain sections.
_NESTED = ("visitors", "oauth")
# The database never has this version, so the document is read the next time.
_NOT_READ = (0, 0)

Document = dict[str, Any]
"""The whole document: section -> its elements, a list or a mapping by key."""


class AccessRows:
    """Reads and writes the access rows of one home. Thread-safe."""

    def __init__(self, database: LedgerDatabase):
        self.database = database
        self._guard = threading.RLock()
        # The document that was read last, and the version of the database that it was read from
        self._document: Document = {}
        self._version = _NOT_READ

    def all(self) -> Document:
        """Return the whole document, as it is in the ledger now. Raises StorageError.

        Callers must not change it.
        """
        with self._guard:
            version = self.database.version()
            if version != self._version:
                self._document = _document_of(self._stored_rows())
                self._version = version
            return self._document

    def _stored_rows(self) -> dict[tuple[str, str], str]:
        """Return (section, key) -> JSON of all rows, in their order."""
        rows = self.database.rows("select section, key, value from access order by number")
        return {(row["section"], row["key"]): row["value"] for row in rows}

    @contextmanager
    def changing(self) -> Iterator[Document]:
        """Yield the whole document for editing, and write it when the block ends.

        No other process changes it in between. Raises StorageError, and nothing is changed then.
        """
        with self._guard, self.database.transaction() as connection:
            before = self._stored_rows()
            document = _document_of(before)
            yield document
            self._write(connection, before, _rows_of(document))

    def _write(
        self,
        connection: Connection,
        before: Mapping[tuple[str, str], str],
        after: Mapping[tuple[str, str], str],
    ) -> None:
        """Delete and write only the rows that differ, so that the others keep their order.

        connection: in a transaction.
        before: the rows of the ledger, as JSON by (section, key).
        after: the rows to put in their place.
        """
        removed_places = [place for place in before if place not in after]
        changed = [(*place, value) for place, value in after.items() if before.get(place) != value]
        connection.executemany("delete from access where section = ? and key = ?", removed_places)
        connection.executemany(
            "insert into access (section, key, value) values (?, ?, ?) "
            "on conflict (section, key) do update set value = excluded.value",
            changed,
        )
        # The version of a database tells only the writes of other connections
        self._version = _NOT_READ

    def dump(self) -> bytes | None:
        """Return the whole document as JSON, None if it is empty."""
        document = self.all()
        if not document:
            return None
        return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"

    def load(self, data: bytes | None) -> None:
        """Replace all rows by the contents of a JSON document. None removes them.

        Raises StorageError, ValueError.
        """
        if data is not None:
            rows = _rows_of(parse_access(data))
        else:
            rows = {}
        with self._guard, self.database.transaction() as connection:
            self._write(connection, self._stored_rows(), rows)

    def take_over(self, connection: Connection, data: bytes) -> None:
        """Add the rows that a file of an earlier version holds. Rows that exist already stay.

        Raises ValueError for a file of another form.
        """
        sql = "insert or ignore into access (section, key, value) values (?, ?, ?)"
        rows = _rows_of(parse_access(data))
        connection.executemany(sql, [(*place, value) for place, value in rows.items()])
        self._version = _NOT_READ

    # --- calls of a day

    def calls_of(self, who: str, day: str) -> int:
        """Return how many calls were counted on a day (`2026-05-07`).

        who: a key that the server gives every caller.
        """
        row = self.database.row("select calls from day_calls where who = ? and day = ?", (who, day))
        if row is None:
            return 0
        return int(row["calls"])

    def count_call(self, who: str, day: str) -> None:
        """Count a call of somebody on a day.

        who: a key that the server gives every caller.
        day: the day, as `2026-05-07`.

        Raises StorageError.
        """
        # A caller has one row. The first call of another day counts from 1.
        sql = (
            "insert into day_calls (who, day, calls) values (:who, :day, 1) on conflict (who) do "
            "update set calls = case when day = :day then calls + 1 else 1 end, day = :day"
        )
        with self.database.transaction(durable=False) as connection:
            connection.execute(sql, {"who": who, "day": day})


def parse_access(data: bytes) -> Document:
    """Parse the JSON file with the access tokens.

    Raises ValueError, with the reason, if it is not a JSON object.
    """
    try:
        document = json.loads(data)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(document, dict):
        raise ValueError("it holds no object")
    return document


def _document_of(rows: Mapping[tuple[str, str], str]) -> Document:
    """Return the document that consists of these rows. This reverses `_rows_of`.

    The rows of the section `tokens` become the list `tokens`. The rows of `visitors.codes` become
    the mapping `codes` in the mapping `visitors`.

    rows: the JSON of each row, by (section, key).
    """
    document: Document = {}
    for (section, key), text in rows.items():
        value = json.loads(text)
        if section in _LISTS:
            document.setdefault(section, []).append(value)
            continue
        mapping = document
        for part in section.split("."):
            mapping = mapping.setdefault(part, {})
        mapping[key] = value
    return document


def _rows_of(document: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the rows of a document, as JSON by (section, key). This reverses `_document_of`."""
    rows: dict[tuple[str, str], str] = {}
    for section, elements in document.items():
        if section in _LISTS:
            rows |= {(section, str(element["id"])): json.dumps(element) for element in elements}
        elif section in _NESTED:
            for name, subsection in elements.items():
                rows |= _rows_of({f"{section}.{name}": subsection})
        else:
            rows |= {(section, key): json.dumps(element) for key, element in elements.items()}
    return rows
