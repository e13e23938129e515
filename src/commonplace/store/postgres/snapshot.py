"""What a space holds at one moment, read in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import psycopg

_ROWS = 200
"""Rows of notes fetched at once."""


class SpaceState(NamedTuple):
    """Where a space is: `last` is the number of its latest change; `epoch` and `files` as in the table. `reads` and
    `writes`: the oldest SCHEMA that may."""

    id: str
    last: int
    epoch: int
    files: int
    reads: int
    writes: int


STATE = (
    "select id::text, last, epoch, files, (select max(reads) from commonplace.version), "
    "(select max(writes) from commonplace.version) from commonplace.space where name = %s"
)


class FileRow(NamedTuple):
    """A file, folder or link of a project."""

    project: str
    path: str
    kind: str
    body: bytes | None
    sha256: str | None
    link: str | None
    mode: int | None
    changed_ns: int | None


FILE_ROWS = "select project, path, kind, body, sha256, link, mode, changed_ns from commonplace.note where space = %s"
LINES = "select number, line from commonplace.journal where space = %s and number >= %s order by number"


class Snapshot:
    """One state of a space, inside a transaction."""

    def __init__(self, db: psycopg.Connection[Any], space: str):
        self._db, self._space = db, space

    def state(self) -> SpaceState:
        """Where the space is."""
        return SpaceState(*self._db.execute(STATE, [self._space]).fetchall()[0])

    def lines(self, since: int) -> Iterator[tuple[int, bytes]]:
        """The lines of the journal from this number on, the oldest first."""
        with self._db.cursor("lines") as cursor:
            cursor.itersize = _ROWS
            yield from ((number, bytes(line)) for number, line in cursor.execute(LINES, [self._space, since]))

    def places(self, since: int) -> dict[tuple[str, str], str | None]:
        """(project, path) of what changed after this number, all for -1, with the SHA-256 of files."""
        sql = "select project, path, sha256 from commonplace.note where space = %s and number > %s"
        return {(project, path): digest for project, path, digest in self._db.execute(sql, [self._space, since])}

    def rows(self, since: int) -> Iterator[FileRow]:
        """What changed after this number, all for -1."""
        sql = f"{FILE_ROWS} and number > %s order by project, path"
        with self._db.cursor("rows") as cursor:
            cursor.itersize = _ROWS
            yield from map(FileRow._make, cursor.execute(sql, [self._space, since]))

    def row(self, project: str, path: str) -> FileRow | None:
        """What is at one place."""
        sql = f"{FILE_ROWS} and project = %s and path = %s"
        found = self._db.execute(sql, [self._space, project, path]).fetchone()
        return FileRow(*found) if found else None
