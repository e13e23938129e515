"""Find the files of memory banks that nobody has filled yet (note/bank_files.py).

Lists, searches and contexts put them behind the notes that somebody wrote, or leave them out.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from memoranda.index.filters import counted, project_ids
from memoranda.note.model import BANK_PROJECT


def unfilled_rows(db: sqlite3.Connection, rows: Iterable[int] | None = None) -> set[int]:
    """Return the rows of unfilled notes.

    rows: the notes to look at. None means all notes.
    """
    banks_id = project_ids(db).get(BANK_PROJECT)
    if banks_id is None or not counted(db, [banks_id]):
        return set()
    # Imported here, since few homes have banks.
    from memoranda.note.bank_files import MAX_UNFILLED_BYTES, is_unfilled

    # Texts that people wrote may be long, and are not read.
    sql = (
        "select n.row, n.path, t.text from note n join text t on t.row = n.row"
        " where n.project = ? and n.size <= ?"
    )
    values: list[object] = [banks_id, MAX_UNFILLED_BYTES]
    if rows is not None:
        sql += " and n.row in (select value from json_each(?))"
        values.append(json.dumps(list(rows)))
    return {row for row, path, text in db.execute(sql, values) if is_unfilled(path, text)}
