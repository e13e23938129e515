"""Databases read as they are, never made or brought up to date: an index, for what a shell offers, and those of other
programs, for moving in."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

_LOOKED_AT = 5000
"""Notes whose tags are counted, the latest changed."""
_SEEN = "(n.scope = 'global' or :agent is null or n.scope = 'agent:' || :agent)"
_MEMORY = "n.project = (select id from project where name = 'categories')"
_SQL = {
    "id": f"select n.id, substr(t.text, 1, 200) from note n join text t on t.row = n.row where {_MEMORY} and {_SEEN}"
          " and n.id >= :prefix and n.id < :prefix || 'g' order by n.created desc limit :most",
    "entity": f"select n.title, n.type from note n join project p on p.id = n.project where {_SEEN}"
              " and p.name = 'graph' and n.title >= :prefix and n.title < :prefix || char(1114111)"
              " order by n.changed desc limit :most",
    "tag": f"select n.tags, '' from note n where n.tags is not null and {_SEEN} order by n.changed desc limit :many",
    "scope": f"select distinct n.scope, '' from note n where {_SEEN} order by 1 limit :most",
    "source": f"select n.source, count(*) || ' notes' from note n where {_MEMORY} and {_SEEN} and n.source is not null"
              " group by 1 order by count(*) desc limit :most",
}  # fmt: skip


def indexed(file: Path, kind: str, prefix: str, agent: str | None, most: int) -> list[tuple[str, str]]:
    """At most `most` values of a kind of `_SQL` that begin with `prefix`, of notes `agent` sees, each with a text.

    None of them when there is no index, or it cannot be read.
    """
    values = {"prefix": prefix, "agent": agent, "most": most, "many": _LOOKED_AT}
    try:
        at_rest = not file.with_name(f"{file.name}-wal").exists()  # then SQLite need not make files to read it
        how = "mode=ro&immutable=1" if at_rest else "mode=ro"
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True, timeout=0.2)) as db:
            rows = db.execute(_SQL[kind], values).fetchall()
    except sqlite3.Error:
        return []
    if kind == "tag":
        counts = Counter(tag for tags, _ in rows for tag in json.loads(tags))
        rows = [(tag, "1 note" if number == 1 else f"{number} notes") for tag, number in counts.most_common()]
    return [(value, text) for value, text in rows if value.startswith(prefix)][:most]


def foreign_rows(path: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, [] when it is not there. The database is opened for reading only. Raises ValueError."""
    from urllib.parse import quote  # 3 ms, which a shell would wait

    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            if not db.execute("select 1 from sqlite_master where type = 'table' and name = ?", (table,)).fetchone():
                return []
            return [dict(row) for row in db.execute(f"select * from {table} order by rowid")]
    except sqlite3.Error as error:
        raise ValueError(str(error)) from None
