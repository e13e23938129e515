"""Small questions the engine asks before it writes: what is at a path, a permalink, a link."""

from __future__ import annotations

import json
import posixpath
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence

from commonplace.index.keys import key
from commonplace.index.lookup import in_order
from commonplace.index.rows import NoteInfo
from commonplace.store.base import Stamp

_PROJECT = "(select id from project where name = ?)"


def stamp(db: sqlite3.Connection, project: str, path: str) -> Stamp | None:
    """The stamp the index knows of a note or an expired entry, None when it knows none."""
    found = db.execute(
        f"select size, mtime_ns, inode from note where project = {_PROJECT} and path = ?2"
        " union all select size, mtime_ns, inode from expired where ?1 = 'kv' and path = ?2",
        (project, path),
    ).fetchone()
    return None if found is None else Stamp(*found)


def seen(db: sqlite3.Connection, project: str) -> Stamp | None:
    """The stamp of a project's graph file when the index showed it, None when it never did."""
    found = db.execute("select size, mtime_ns, inode from project where name = ?", (project,)).fetchone()
    return None if found is None or found[0] is None else Stamp(*found)


def see(db: sqlite3.Connection, project: str, file: Stamp | None) -> None:
    """The index shows the project's graph file as it has this stamp. Expects a transaction."""
    db.execute(
        "insert into project (name, size, mtime_ns, inode) values (?, ?, ?, ?) on conflict (name) do update"
        " set size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode",
        (project, *(file or (0, 0, 0))),
    )


def permalink(db: sqlite3.Connection, project: str, path: str) -> str | None:
    """The final permalink of a note, None when the index has none there."""
    where = f"project = {_PROJECT} and path = ?"
    found = db.execute(f"select permalink from note where {where}", (project, path)).fetchone()
    return None if found is None else found[0]


def over(db: sqlite3.Connection, now: int, limit: int = -1) -> list[str]:
    """The paths of key-value entries whose time is over at `now` (microseconds since 1970), as far as the index
    still shows them; at most `limit` of them."""
    found = db.execute(f"select path from note where project = {_PROJECT} and expires < ? limit ?", ("kv", now, limit))
    return [path for (path,) in found]


def in_other_case(db: sqlite3.Connection, project: str, path: str) -> NoteInfo | None:
    """A note of the same folder and name but for case."""
    rows = [
        row
        for row, other in db.execute(
            "select n.row, n.path from note_fold f cross join note n on n.row = f.note"
            f" where f.fold = ? and n.project = {_PROJECT}",
            (key(posixpath.splitext(path)[0]), project),
        )
        if other.casefold() == path.casefold()
    ]
    return next(iter(in_order(db, rows)), None)


def by_permalink(db: sqlite3.Connection, project: str, address: str) -> NoteInfo | None:
    """The first note of a project with exactly this permalink."""
    rows = [
        row
        for (row,) in db.execute(
            # `+`: else SQLite walks all notes of the project in the order of their paths
            f"select row from note where permalink = ? and +project = {_PROJECT} order by +path limit 1",
            (address, project),
        )
    ]
    return next(iter(in_order(db, rows)), None)


def holding_link(db: sqlite3.Connection, identity: str) -> list[NoteInfo]:
    """The memories whose `links` hold an id."""
    rows = [row for (row,) in db.execute("select distinct note from link where fold = ?", (key(identity),))]
    return [info for info in in_order(db, rows) if identity in info.links]


def with_ids(db: sqlite3.Connection, ids: Iterable[str], projects: Sequence[str]) -> list[NoteInfo]:
    """The notes of these projects that have one of these ids; of two with one id, neither is left out."""
    rows = [
        row
        for (row,) in db.execute(
            "select n.row from note n join project p on p.id = n.project"
            " where n.id in (select value from json_each(?)) and p.name in (select value from json_each(?))",
            (json.dumps(list(ids)), json.dumps(projects)),
        )
    ]
    return in_order(db, rows)


def survivors(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, NoteInfo]:
    """The notes that ids were merged into, by id."""
    found = db.execute(
        "select id, note from merged where id in (select value from json_each(?))", (json.dumps(list(ids)),)
    ).fetchall()
    notes = {info.row: info for info in in_order(db, [row for _, row in found])}
    return {identity: notes[row] for identity, row in found if row in notes}


def in_time(
    db: sqlite3.Connection, project: str, viewer: str | None, category: str | None, scope: str | None
) -> array[int]:
    """The rows of a project's notes `viewer` sees, of one category and scope if given: oldest first, then by id."""
    found = db.execute(
        f"select row from note where project = {_PROJECT}"
        " and (?2 is null or scope in ('global', 'agent:' || ?2))"
        " and (?3 is null or category = ?3) and (?4 is null or scope = ?4) order by created, id, row",
        (project, viewer, category, scope),
    )
    return array("q", (row for (row,) in found))


def bodies(db: sqlite3.Connection, rows: Sequence[int]) -> dict[int, str]:
    """The texts after the frontmatter of these rows."""
    return dict(db.execute(
        "select row, text from text where row in (select value from json_each(?))", (json.dumps(list(rows)),)
    ))  # fmt: skip


def scoped_bodies(db: sqlite3.Connection, project: str) -> Iterator[tuple[str, str]]:
    """(scope, text after the frontmatter) of every note of a project, one at a time."""
    return iter(db.execute(
        f"select n.scope, t.text from note n join text t on t.row = n.row where n.project = {_PROJECT}", (project,)
    ))  # fmt: skip
