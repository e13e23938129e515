"""Reading a table of another program's SQLite database, for moving in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, [] when it is not there. The database is opened for reading only. Raises ValueError."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            if not db.execute("select 1 from sqlite_master where type = 'table' and name = ?", (table,)).fetchone():
                return []
            return [dict(row) for row in db.execute(f"select * from {table} order by rowid")]
    except sqlite3.Error as error:
        raise ValueError(str(error)) from None
