"""Values for a shell to offer, from an index file read as it is: never made, never brought up to date."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

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
        db = sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True, timeout=0.2)
        try:
            rows = db.execute(_SQL[kind], values).fetchall()
        finally:
            db.close()
    except sqlite3.Error:
        return []
    if kind == "tag":
        counts = Counter(tag for tags, _ in rows for tag in json.loads(tags))
        rows = [(tag, "1 note" if number == 1 else f"{number} notes") for tag, number in counts.most_common()]
    return [(value, text) for value, text in rows if value.startswith(prefix)][:most]
