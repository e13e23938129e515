"""Looks words up in the full-text tables of a database that another part of memoranda keeps.

The bytes of such a table do not show every word: of words that begin alike, SQLite writes the
common beginning once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

# Phrases of one query. SQLite refuses an expression of many thousands.
_PHRASES_AT_ONCE = 100


def has_any_of(path: Path, phrases: Collection[str]) -> bool:
    """Whether a full-text table of the database at `path` has one of the phrases.

    The words of a phrase are compared as the table compares them, such as without case. False if
    there is no database, or if it cannot be read.
    """
    if not path.exists():
        return False
    address = f"{path.as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            return any(
                _has_any_in(database, table, phrases) for table in _full_text_tables(database)
            )
    except sqlite3.Error:
        return False


def _full_text_tables(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the names of the full-text tables."""
    rows = database.execute(
        "select name from sqlite_master where sql like 'create virtual table%using fts5%'"
    )
    for (name,) in rows.fetchall():
        yield name


def _has_any_in(database: sqlite3.Connection, table: str, phrases: Collection[str]) -> bool:
    """Whether one full-text table has one of the phrases."""
    ordered = sorted(phrases)
    for start in range(0, len(ordered), _PHRASES_AT_ONCE):
        batch = ordered[start : start + _PHRASES_AT_ONCE]
        expression = " OR ".join(_quoted(phrase) for phrase in batch)
        row = database.execute(
            f"select 1 from {table} where {table} match ? limit 1", (expression,)
        ).fetchone()
        if row is not None:
            return True
    return False


def _quoted(phrase: str) -> str:
    """Return a phrase as an expression of a full-text search. A sign of another meaning is text."""
    text = phrase.replace("\0", " ").replace('"', '""')
    return f'"{text}"'
