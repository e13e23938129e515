"""Notes as the index holds them, one by one and in lists."""

from __future__ import annotations

import fnmatch
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from commonplace.index.facets import may_see
from commonplace.index.keys import lead
from commonplace.index.rows import NoteInfo
from commonplace.note.links import slug
from commonplace.text.unicode import sqlite_text

if TYPE_CHECKING:
    from commonplace.note.model import Observation
    from commonplace.store.base import Values

_EPOCH = datetime(1970, 1, 1)  # UTC; without a zone it is shown much faster
_COLUMNS = (
    "n.row, p.name, n.path, n.id, n.title, n.type, n.permalink, n.etag, n.size, n.mtime_ns, n.inode, n.created,"
    " n.changed, n.updated, n.date, n.phase, n.category, n.scope, n.source, n.expires, n.access_count, n.version,"
    " n.locked, n.tags, n.aliases, n.links, t.header, t.front, n.warnings"
)
_FROM = "note n join project p on p.id = n.project join text t on t.row = n.row"
_LAST = "\U0010ffff"


@dataclass(slots=True)
class DirectoryEntry:
    """A folder (`note` None, `notes` = how many lie in it, at any depth) or a note of a project."""

    path: str
    note: NoteInfo | None = None
    notes: int = 0


@dataclass(slots=True)
class Counts:
    """How many notes a caller sees: by project, and in `categories` by (phase, category)."""

    projects: dict[str, int]
    categories: dict[tuple[str, str], int]

    @property
    def total(self) -> int:
        """All notes of all projects."""
        return sum(self.projects.values())


def get(db: sqlite3.Connection, project: str, path: str) -> NoteInfo | None:
    """The note at `path` of `project` (exact), None when the index has none."""
    found = db.execute(f"select {_COLUMNS} from {_FROM} where p.name = ? and n.path = ?", (project, path)).fetchone()
    return None if found is None else _info(found)


def get_row(db: sqlite3.Connection, row: int) -> NoteInfo | None:
    """The note of a row number, None when there is none."""
    return infos(db, [row]).get(row)


def infos(db: sqlite3.Connection, rows: Iterable[int]) -> dict[int, NoteInfo]:
    """The notes of these rows by row; missing rows are left out."""
    found = db.execute(
        f"select {_COLUMNS} from {_FROM} where n.row in (select value from json_each(?))", (json.dumps(list(rows)),)
    )
    return {one[0]: _info(one) for one in found}


def in_order(db: sqlite3.Connection, rows: Sequence[int]) -> list[NoteInfo]:
    """The notes of these rows, in the order given."""
    known = infos(db, rows)
    return [known[row] for row in rows if row in known]


def observations(db: sqlite3.Connection, note: NoteInfo) -> list[Observation]:
    """The note's observations in the order of the file."""
    from commonplace.note.grammar import scan  # 3 ms

    front, text = text_of(db, note.row)
    return scan(front + text, len(front), graph=note.project == "graph" or is_graph(db, note.project))[0]


def is_graph(db: sqlite3.Connection, project: str) -> bool:
    """Whether the project is a graph file used in place."""
    return db.execute("select 1 from project where name = ? and size is not null", (project,)).fetchone() is not None


def text_of(db: sqlite3.Connection, row: int) -> tuple[str, str]:
    """A note's indexed text as (frontmatter, body); two empty ones when there is none."""
    return db.execute("select front, text from text where row = ?", (row,)).fetchone() or ("", "")


def stamps(db: sqlite3.Connection, project: str, folder: str = "") -> dict[str, Values]:
    """Path → stamp of every note of a project, or of one folder of it, that the index knows, expired entries
    included."""
    here = "project = (select id from project where name = ?)"
    numbers = "path, size, mtime_ns, inode"
    found: Iterable[tuple[str, int, int, int]] = ()
    if folder:
        bounds = (f"{folder}/", f"{folder}0")  # the sign after the slash
        found = db.execute(f"select {numbers} from note where {here} and path >= ? and path < ?", (project, *bounds))
    elif db.execute(f"select 1 from note where {here} limit 1", (project,)).fetchone():
        found = db.execute(f"select {numbers} from note not indexed where {here}", (project,))  # faster for many
    if project == "kv":
        expired = db.execute(f"select {numbers} from expired")
        found = chain(found, (each for each in expired if each[0].startswith(f"{folder}/" if folder else "")))
    return {path: (size, mtime_ns, inode) for path, size, mtime_ns, inode in found}


def projects(db: sqlite3.Connection) -> list[str]:
    """The names of all projects that were ever indexed and not forgotten."""
    return [name for (name,) in db.execute("select name from project order by name")]


def counts(db: sqlite3.Connection, viewer: str | None) -> Counts:
    """How many notes `viewer` sees."""
    result = Counts({}, {})
    for name, phase, category, scope, number in db.execute(
        "select p.name, n.phase, n.category, n.scope, count(*) from note n join project p on p.id = n.project"
        " group by 1, 2, 3, 4"
    ):
        if may_see(scope, viewer):
            result.projects[name] = result.projects.get(name, 0) + number
            if name == "categories":
                of = (phase or "", category or "")
                result.categories[of] = result.categories.get(of, 0) + number
    return result


def directory(
    db: sqlite3.Connection, project: str, folder: str = "", *, depth: int = 1, viewer: str | None = None,
    glob: str | None = None, limit: int | None = 50, offset: int = 0,
) -> tuple[list[DirectoryEntry], int]:  # fmt: skip
    """A page of what lies in a folder (contract 000b, list_directory) and how many entries there are.

    Folders first, then notes, each by code point; down to `depth` levels. `glob` keeps the entries
    whose last name matches. Folders without a note the caller sees are not known here.
    """
    prefix = folder.strip("/") + "/" if folder.strip("/") else ""
    folders: dict[str, int] = {}
    notes: list[tuple[str, int]] = []
    for path, row, scope in db.execute(
        "select path, row, scope from note where project = (select id from project where name = ?)"
        " and path >= ? and path < ? order by path",
        (project, prefix, prefix + _LAST),
    ):
        if not may_see(scope, viewer):
            continue
        parts = path[len(prefix) :].split("/")
        for level in range(1, min(depth, len(parts) - 1) + 1):
            inner = prefix + "/".join(parts[:level])
            folders[inner] = folders.get(inner, 0) + 1
        if len(parts) <= depth:
            notes.append((path, row))
    entries: list[tuple[str, int | None]] = [(path, None) for path in sorted(folders)]
    entries += notes
    if glob:
        entries = [one for one in entries if fnmatch.fnmatchcase(one[0].rpartition("/")[2], glob)]
    page = entries[offset : None if limit is None else offset + limit]
    known = infos(db, [row for _, row in page if row is not None])
    return [
        DirectoryEntry(path, notes=folders[path]) if row is None else DirectoryEntry(path, known[row])
        for path, row in page
    ], len(entries)


def below(db: sqlite3.Connection, project: str, folder: str) -> list[NoteInfo]:
    """All notes of a folder of a project at any depth, whatever their scope, by path."""
    prefix = folder.strip("/") + "/" if folder.strip("/") else ""
    rows = db.execute(
        "select row from note where project = (select id from project where name = ?)"
        " and path >= ? and path < ? order by path",
        (project, prefix, prefix + _LAST),
    )
    return in_order(db, [row for (row,) in rows])


def complete(
    db: sqlite3.Connection, prefix: str, viewer: str | None, limit: int = 100, project: str | None = None
) -> list[str]:
    """Permalinks that begin with `prefix`, by code point, at most `limit`."""
    prefix = sqlite_text(prefix)
    found = db.execute(
        "select distinct permalink from note where permalink >= ?1 and permalink < ?2"
        " and (?3 is null or project = (select id from project where name = ?3))"
        " and (?4 is null or scope in ('global', 'agent:' || ?4)) order by permalink limit ?5",
        (prefix, prefix + _LAST, project, viewer, limit),
    )
    return [permalink for (permalink,) in found]


def matching(
    db: sqlite3.Connection, address: str, *, viewer: str | None, projects: Sequence[str] | None = None,
    limit: int | None = 10, offset: int = 0,
) -> tuple[list[NoteInfo], int]:  # fmt: skip
    """Notes whose permalink fits `address`, where `*` stands for any run of characters.

    The address counts with and without the project in front; verbatim first, slugged when that
    finds nothing (contract 000b, 4.2). By permalink, then project and path; and how many there are.
    """
    address = sqlite_text(address)
    rows = _matching_rows(db, address, viewer, projects)
    if not rows:
        slugged = "*".join(map(_slugged, re.split(r"\*+", address)))
        rows = _matching_rows(db, slugged, viewer, projects)
    return in_order(db, rows[offset : None if limit is None else offset + limit]), len(rows)


def duplicates(db: sqlite3.Connection) -> dict[str, list[NoteInfo]]:
    """Ids that several notes claim."""
    found: dict[str, list[NoteInfo]] = {}
    twice = "select id from note group by id having count(*) > 1"
    rows = [row for (row,) in db.execute(f"select row from note where id in ({twice}) order by id, path")]
    for note in in_order(db, rows):
        found.setdefault(note.id, []).append(note)
    return found


def warnings(db: sqlite3.Connection) -> list[tuple[str, str, tuple[str, ...]]]:
    """What was odd about notes when they were read: (project, path, texts)."""
    found = db.execute(
        "select p.name, n.path, n.warnings from note n join project p on p.id = n.project"
        " where n.warnings is not null order by 1, 2"
    )
    return [(project, path, tuple(json.loads(texts))) for project, path, texts in found]


def iso_time(microseconds: int | None) -> str | None:
    """A stored time as ISO 8601 UTC with `Z`."""
    return None if microseconds is None else _iso(microseconds)


def _slugged(piece: str) -> str:
    """A piece between stars as permalinks have it, with the slashes at its edges."""
    core = piece.strip("/")
    if not core:
        return piece
    start = piece.index(core)
    return piece[:start] + slug(core) + piece[start + len(core) :]


def _matching_rows(db: sqlite3.Connection, address: str, viewer: str | None, names: Sequence[str] | None) -> list[int]:
    pattern = re.sub(r"[\[?]", lambda sign: f"[{sign.group()}]", address)
    wanted = None if names is None else {name.casefold() for name in names}
    found: list[tuple[str, str, str, int]] = []
    for number, name in db.execute("select id, name from project").fetchall():
        if wanted is None or name.casefold() in wanted:
            found += db.execute(
                "select permalink, ?1, path, row from note where project = ?2 and (permalink glob ?3"
                " or permalink glob ?4 || ?3 or ?4 || permalink glob ?3)"
                " and (?5 is null or scope in ('global', 'agent:' || ?5))",
                (name, number, pattern, f"{lead(name)}/", viewer),
            ).fetchall()
    return [row for *_, row in sorted(found)]


def _info(found: tuple[Any, ...]) -> NoteInfo:
    (row, project, path, note_id, title, kind, permalink, etag, size, mtime_ns, inode, created, changed, updated,
     date, phase, category, scope, source, expires, access_count, version, locked, tags, aliases, links, header,
     front, warned) = found  # fmt: skip
    return NoteInfo(
        row, project, path, note_id, title, kind, permalink, etag.hex() if isinstance(etag, bytes) else etag,
        size, mtime_ns, inode, _iso(created), _iso(changed), iso_time(updated), date, phase, category, scope,
        source, iso_time(expires), access_count, version, bool(locked), _tuple(tags), _tuple(aliases),
        _tuple(links), _tuple(warned), (front, header),
    )  # fmt: skip


def _iso(microseconds: int) -> str:
    return f"{(_EPOCH + timedelta(microseconds=microseconds)).isoformat()}Z"


def _tuple(values: str | None) -> tuple[str, ...]:
    return tuple(json.loads(values)) if values else ()
