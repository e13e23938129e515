"""Rows of the index's tables, written and read by the names of their columns.

A row is a dict: the names in it are the columns that are written, so that nothing depends on the
order in which `schema.sql` lists them. A column is added in three steps: `schema.sql`; the function
of `writer.py` that makes the row of its table; and, if notes are shown with it, `NOTE_COLUMNS` of
`rows.py` with the field of `NoteInfo` that it fills.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

Row = dict[str, Any]
MOST_ROWS = 32
"""One statement inserts at most this many rows. Other threads can run while SQLite executes it."""


def insert(db: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Insert rows that all have the same columns.

    db: a connection in a transaction.
    table: the table's name.
    rows: values by column.
    """
    if not rows:
        return
    columns = tuple(rows[0])
    values_of_rows = [_values(columns, row) for row in rows]
    # Insert the rows in groups, each by one statement.
    begin = 0
    while begin < len(rows):
        remaining_count = len(rows) - begin
        # The largest power of two that fits (5 → 4), so that few different statements are prepared.
        group_size = min(MOST_ROWS, 1 << (remaining_count.bit_length() - 1))
        group = values_of_rows[begin : begin + group_size]
        db.execute(_insertion(table, columns, group_size), [*chain.from_iterable(group)])
        begin += group_size


def _values(columns: tuple[str, ...], row: Row) -> tuple[Any, ...]:
    """Return the values of a row in the order of `columns`."""
    # `itemgetter` of a single name would not return a tuple.
    if len(columns) == 1:
        return (row[columns[0]],)
    values: tuple[Any, ...] = itemgetter(*columns)(row)
    return values


@lru_cache(maxsize=256)
def _insertion(table: str, columns: tuple[str, ...], rows: int) -> str:
    """Return the statement that inserts this number of rows."""
    marks_of_row = f"({', '.join('?' * len(columns))})"
    marks = ", ".join([marks_of_row] * rows)
    return f"insert into {table} ({', '.join(columns)}) values {marks}"


def take_words_out(db: sqlite3.Connection, table: str, row: int, words: Row) -> None:
    """Delete a row of a full-text table that does not store its texts.

    words: exactly the words that were inserted for the row, by column.
    """
    columns = ", ".join(words)
    marks = ", ".join("?" * (len(words) + 1))
    db.execute(
        f"insert into {table} ({table}, rowid, {columns}) values ('delete', {marks})",
        (row, *words.values()),
    )


def column_list(columns: Iterable[str]) -> str:
    """Return the names of columns as a `select` lists them: `row, title`."""
    return ", ".join(columns)
