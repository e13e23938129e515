"""The rows of a space: what they hold at one moment, read in one transaction, and what the steps of
a change do to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from memoranda.errors import Conflict, DatabaseRefused, Exists
from memoranda.ledger.change_rows import (
    CHANGE_COLUMNS,
    STEP_COLUMNS,
    change_values,
    step_values,
    with_steps,
)
from memoranda.sources.step import SET

if TYPE_CHECKING:
    import psycopg

    from memoranda.ledger.change import Change
    from memoranda.ledger.reads import ReadRow
    from memoranda.sources.step import Step

# Rows of notes fetched at once.
_ROWS = 200
_STEP_COLUMNS_OF_S = ", ".join(f"s.{column}" for column in f"change, {STEP_COLUMNS}".split(", "))


class SpaceState(NamedTuple):
    """Where a space is: `last` is the number of its latest change; `epoch` and `files` as in the
    table. `reads` and
    `writes`: the oldest SCHEMA that may."""

    id: str
    last: int
    epoch: int
    files: int
    reads: int
    writes: int


STATE = (
    "select id::text, last, epoch, files, (select max(reads) from memoranda.version), "
    "(select max(writes) from memoranda.version) from memoranda.space where name = %s"
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


FILE_ROWS = "select project, path, kind, body, sha256, link, mode, changed_ns from memoranda.note where space = %s"
CHANGES = (
    f"select {CHANGE_COLUMNS} from memoranda.change where space = %s and number >= %s "
    "order by number"
)
STEPS = (
    f"select change, {STEP_COLUMNS} from memoranda.step where space = %s and change >= %s "
    "order by change, position"
)
# Changes that were revised after an epoch.
_REVISED = (
    f"select {CHANGE_COLUMNS} from memoranda.change where space = %s and epoch > %s order by number"
)
_STEPS_OF_REVISED = (
    f"select {_STEP_COLUMNS_OF_S} from memoranda.step s join memoranda.change c "
    "on c.space = s.space and c.number = s.change where s.space = %s and c.epoch > %s "
    "order by s.change, s.position"
)


class Snapshot:
    """One state of a space, inside a transaction."""

    def __init__(self, db: psycopg.Connection[Any], space: str):
        self._db = db
        self._space = space

    def state(self) -> SpaceState:
        """Where the space is."""
        return SpaceState(*self._db.execute(STATE, [self._space]).fetchall()[0])

    def changes(self, since: int) -> Iterator[Change]:
        """The changes from this number on, the oldest first."""
        yield from self._changes(CHANGES, STEPS, since)

    def revised(self, epoch: int) -> Iterator[Change]:
        """The changes that were revised after this epoch of the space, the oldest first."""
        yield from self._changes(_REVISED, _STEPS_OF_REVISED, epoch)

    def _changes(self, changes: str, steps: str, since: int) -> Iterator[Change]:
        from psycopg.rows import dict_row

        with (
            self._db.cursor("changes", row_factory=dict_row) as change_cursor,
            self._db.cursor("steps", row_factory=dict_row) as step_cursor,
        ):
            change_cursor.itersize = _ROWS
            step_cursor.itersize = _ROWS
            values = [self._space, since]
            change_cursor.execute(changes, values)
            step_cursor.execute(steps, values)
            yield from with_steps(change_cursor, step_cursor)

    def extent(self) -> tuple[int, int]:
        """The number of the oldest change there is, and how many there are."""
        sql = (
            "select coalesce(min(number), 0), count(*) from memoranda.change "
            "where space = %s and number > 0"
        )
        oldest, count = self._db.execute(sql, [self._space]).fetchall()[0]
        return oldest, count

    def places(self, since: int) -> dict[tuple[str, str], str | None]:
        """(project, path) of the files that changed after this number, with SHA-256 or None. -1
        means all.
        """
        sql = "select project, path, sha256 from memoranda.note where space = %s and number > %s"
        return {
            (project, path): digest
            for project, path, digest in self._db.execute(sql, [self._space, since])
        }

    def rows(self, since: int) -> Iterator[FileRow]:
        """The rows of the files that changed after this number. -1 means all."""
        sql = f"{FILE_ROWS} and number > %s order by project, path"
        with self._db.cursor("rows") as cursor:
            cursor.itersize = _ROWS
            yield from map(FileRow._make, cursor.execute(sql, [self._space, since]))

    def row(self, project: str, path: str) -> FileRow | None:
        """The row of the file at one place. None if none exists."""
        sql = f"{FILE_ROWS} and project = %s and path = %s"
        row = self._db.execute(sql, [self._space, project, path]).fetchone()
        if row:
            return FileRow(*row)
        return None


@dataclass(slots=True)
class SqlStatement:
    """One statement of a commit: how many rows it must touch (None: any), and what it is if it does
    not.
    """

    sql: str
    values: Sequence[Any]
    rows: int | None = None
    refused: Callable[[], Exception] | None = None


def marks_of(columns: str) -> str:
    """The marks that the values of these columns take in a statement."""
    return ", ".join(["%s"] * len(columns.split(",")))


_INSERT_CHANGE = (
    f"insert into memoranda.change (space, id, epoch, {CHANGE_COLUMNS}) "
    f"values (%s, %s, %s, {marks_of(CHANGE_COLUMNS)})"
)
_INSERT_STEP = (
    f"insert into memoranda.step (space, change, position, {STEP_COLUMNS}) "
    f"values (%s, %s, %s, {marks_of(STEP_COLUMNS)})"
)


def of_change(
    space: str, change: Change, change_id: UUID, epoch: int = 0
) -> Iterator[SqlStatement]:
    """The SQL that puts a change and its steps into the history.

    epoch: the epoch of the space, if the change takes the place of one with its number.
    """
    values = [space, change_id, epoch, *change_values(change)]
    yield SqlStatement(_INSERT_CHANGE, values)
    for position, touched in enumerate(change.files):
        row = [space, change.number, position, *step_values(touched)]
        yield SqlStatement(_INSERT_STEP, row)


def of_step(server: str, space: str, number: int, step: Step) -> Iterator[SqlStatement]:
    """The SQL that applies one step to the rows."""
    if step.do == SET:
        yield from of_row(space, number, step)
        return
    where = [space, step.project, step.path]
    at = "where space = %s and project = %s and path = %s"
    below = (
        "where space = %s and project = %s and path >= %s::text || '/' and path < %s::text || '0'"
    )

    def conflict() -> Exception:
        return Conflict(step.path, "unknown", step.old.etag[:8] if step.old else "none")

    if step.do in ("put", "remove") and step.old is not None and step.kept:
        yield SqlStatement(
            "insert into memoranda.text (space, sha256, data) select space, sha256, body "
            f"from memoranda.note {at} and sha256 = %s on conflict do nothing",
            [*where, step.old.etag],
        )
    if step.do == "put":
        stamp = step.stamp
        if step.mode is not None:
            mode = step.mode
        elif step.old:
            mode = step.old.mode
        else:
            mode = 0o600
        assert stamp is not None
        values = [step.data, step.etag, mode, stamp.mtime_ns, number]
        if step.old is None:
            yield SqlStatement(
                "insert into memoranda.note (space, project, path, kind, body, sha256, mode, "
                "changed_ns, number) values (%s, %s, %s, 'file', %s, %s, %s, %s, %s) "
                "on conflict do nothing",
                [*where, *values],
                1,
                lambda: Exists(step.path),
            )
        else:
            yield SqlStatement(
                "update memoranda.note set body = %s, sha256 = %s, mode = %s, changed_ns = %s, "
                f"number = %s {at} and kind = 'file' and sha256 = %s",
                [*values, *where, step.old.etag],
                1,
                conflict,
            )
    elif step.do == "remove":
        assert step.old is not None
        yield SqlStatement(
            f"delete from memoranda.note {at} and kind = 'file' and sha256 = %s",
            [*where, step.old.etag],
            1,
            conflict,
        )
    elif step.do == "move":
        inside = [space, step.project, step.path, step.path]
        yield SqlStatement(
            f"select 1 from memoranda.note {at}",
            [space, step.project, step.to],
            0,
            lambda: Exists(step.to),
        )
        yield SqlStatement(
            "update memoranda.note set path = %s::text || substr(path, length(%s::text) + 1), "
            f"number = %s {below}",
            [step.to, step.path, number, *inside],
        )
        same, etag = (" and sha256 = %s", [step.old.etag]) if step.old else ("", [])
        yield SqlStatement(
            f"update memoranda.note set path = %s, number = %s {at}{same}",
            [step.to, number, *where, *etag],
            1,
            conflict,
        )
    elif step.do in ("mkdir", "symlink"):
        kind, link = ("folder", None) if step.do == "mkdir" else ("link", step.link)
        yield SqlStatement(
            "insert into memoranda.note (space, project, path, kind, link, mode, number) "
            "values (%s, %s, %s, %s, %s, %s, %s) on conflict (space, project, path) do update "
            "set number = excluded.number where note.kind = excluded.kind and note.kind = 'folder'",
            [*where, kind, link, 0o700, number],
            1,
            lambda: Exists(step.path),
        )
    elif step.do == "unlink":
        yield SqlStatement(f"delete from memoranda.note {at} and kind = 'link'", where, 1, conflict)
    elif step.do == "rmdir":
        yield SqlStatement(
            f"select 1 from memoranda.note {below} limit 1",
            [space, step.project, step.path, step.path],
            0,
            lambda: DatabaseRefused(server, f"the folder {step.path} is not empty"),
        )
        yield SqlStatement(f"delete from memoranda.note {at} and kind = 'folder'", where)


def of_row(space: str, number: int, step: Step) -> Iterator[SqlStatement]:
    """The SQL of a step that sets a row of the ledger, which is a file without a place on disk."""
    where = [space, step.project, step.path]
    at = "where space = %s and project = %s and path = %s"
    if step.old is not None:
        old = step.old.etag
    else:
        old = None

    def conflict() -> Exception:
        return Conflict(step.path, "unknown", old[:8] if old else "none")

    if old is not None and step.kept:
        yield SqlStatement(
            "insert into memoranda.text (space, sha256, data) select space, sha256, body "
            f"from memoranda.note {at} and sha256 = %s on conflict do nothing",
            [*where, old],
        )
    if old is not None:
        yield SqlStatement(
            f"delete from memoranda.note {at} and sha256 = %s", [*where, old], 1, conflict
        )
    if step.data is not None:
        yield SqlStatement(
            "insert into memoranda.note (space, project, path, kind, body, sha256, mode, number) "
            "values (%s, %s, %s, 'file', %s, %s, %s, %s) on conflict do nothing",
            [*where, step.data, step.etag, 0o600, number],
            1,
            conflict,
        )


def of_fold(space: str, folded: Mapping[str, ReadRow]) -> Iterator[SqlStatement]:
    """The SQL that subtracts reads that are counted in headers now. Later reads stay."""
    for key, row in folded.items():
        sql = (
            "update memoranda.access set count = greatest(0, count - %s), "
            "used = case when used > %s then used else 0 end where space = %s and id = %s"
        )
        yield SqlStatement(sql, [row.times, row.used_at, space, key])
    sql = "delete from memoranda.access where space = %s and count = 0 and used = 0"
    yield SqlStatement(sql, [space])
