"""What `memory.md` shows of each category: how many memories it has, and the first of them (contract 001, 10)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from commonplace.index.lookup import in_order
from commonplace.index.rows import NoteInfo

_SHOWN = "p.name = 'categories' and n.scope = 'global'"


@dataclass(slots=True)
class Section:
    """A category: all its memories of scope `global` as a number, and those to show, the first one first."""

    category: str
    total: int
    inbox: int
    first: list[NoteInfo] = field(default_factory=list)


def sections(db: sqlite3.Connection, most: int, reads: Mapping[str, int]) -> list[Section]:
    """Every category that has memories; of each the `most` (0 = none) often read ones, then the newest.

    `reads` are counted besides those in the frontmatter, by id. Reminders are left to `reminders`.
    """
    counted = db.execute(
        "select n.category, count(*), sum(n.phase = 'inbox') from note n join project p on p.id = n.project"
        f" where {_SHOWN} group by 1"
    )
    found = {name: Section(name, total, inbox) for name, total, inbox in counted}
    ranked = db.execute(
        "select category, row from (select n.category, n.row, row_number() over (partition by n.category order by"
        " n.access_count + coalesce(r.value, 0) desc, n.created desc, n.id) as place"
        " from note n join project p on p.id = n.project left join json_each(?) r on r.key = n.id"
        f" where {_SHOWN} and n.category <> 'reminders') where place <= ? order by category, place",
        (json.dumps(reads), most),
    )
    for name, row in ranked:
        found[name].first += in_order(db, [row])
    return list(found.values())


def reminders(db: sqlite3.Connection) -> list[NoteInfo]:
    """All memories of category `reminders` and scope `global`."""
    rows = db.execute(
        "select n.row from note n join project p on p.id = n.project"
        f" where {_SHOWN} and n.category = 'reminders' order by n.created, n.id"
    )
    return in_order(db, [row for (row,) in rows])
