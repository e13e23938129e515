"""The rows of a space of a database: how they are read, and the SQL by which a change edits them.

A `Snapshot` reads the rows as they are at one moment.
"""

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
from memoranda.ledger.execution import mode_of
from memoranda.sources.step import NEW_MODE, StepKind

if TYPE_CHECKING:
    import psycopg

    from memoranda.ledger.change import Change
    from memoranda.ledger.reads import ReadRow
    from memoranda.sources.step import Step

ALL_FILES = -1
"""As the number that files changed after: all files, since every number is greater."""
# Rows fetched from the server at once.
_ROWS_AT_A_TIME = 200
_STEP_COLUMNS_OF_S = ", ".join(f"s.{column}" for column in f"change, {STEP_COLUMNS}".split(", "))


class SpaceState(NamedTuple):
    """The state of a space. A replica compares it with its own state to see whether it is up to
    date.

    id: identifies the space. A later space with the same name has another id.
    last: the number of its latest change.
    epoch: a number that grows when earlier changes are revised or purged.
    files: a number that grows when a shared file changes.
    reads, writes: the version of the tables (`SCHEMA`) that a program must know at least, to read
        and to write them.
    """

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
    """A file, folder or link of a project.

    project, path: its place.
    kind: `file`, `folder` or `link`.
    body, sha256: the bytes of a file and their SHA-256. None for others.
    link: the target of a link.
    mode: the mode of a file.
    changed_ns: when the file was changed last, in nanoseconds since 1970.
    """

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


class SpaceNews(NamedTuple):
    """The news of a space since a change.

    state: the state of the space now.
    changes: that change and all later ones, oldest first.
    files: the files, folders and links that changed after that change.
    """

    state: SpaceState
    changes: list[Change]
    files: list[FileRow]


class Snapshot:
    """Reads the rows of a space as they are at one moment, inside a transaction."""

    def __init__(self, db: psycopg.Connection[Any], space: str):
        self._db = db
        self._space = space

    def state(self) -> SpaceState:
        """Return the state of the space."""
        return SpaceState(*self._db.execute(STATE, [self._space]).fetchall()[0])

    def changes(self, since: int) -> Iterator[Change]:
        """Yield the changes from the number `since` on, oldest first."""
        yield from self._changes(CHANGES, STEPS, since)

    def revised(self, epoch: int) -> Iterator[Change]:
        """Yield the changes that were revised after this epoch of the space, oldest first.

        epoch: a number that the space counts up whenever earlier changes are revised or purged.
        """
        yield from self._changes(_REVISED, _STEPS_OF_REVISED, epoch)

    def _changes(self, changes: str, steps: str, since: int) -> Iterator[Change]:
        """Yield the changes of two queries, with their steps.

        changes: the SQL that returns rows of changes.
        steps: the SQL that returns rows of steps.
        since: the second parameter of both queries. The first is the space.
        """
        from psycopg.rows import dict_row

        with (
            self._db.cursor("changes", row_factory=dict_row) as change_cursor,
            self._db.cursor("steps", row_factory=dict_row) as step_cursor,
        ):
            change_cursor.itersize = _ROWS_AT_A_TIME
            step_cursor.itersize = _ROWS_AT_A_TIME
            values = [self._space, since]
            change_cursor.execute(changes, values)
            step_cursor.execute(steps, values)
            yield from with_steps(change_cursor, step_cursor)

    def extent(self) -> tuple[int, int]:
        """Return the number of the oldest change (0 without changes), and how many exist."""
        sql = (
            "select coalesce(min(number), 0), count(*) from memoranda.change "
            "where space = %s and number > 0"
        )
        oldest, count = self._db.execute(sql, [self._space]).fetchall()[0]
        return oldest, count

    def places(self, since: int) -> dict[tuple[str, str], str | None]:
        """Return (project, path) -> SHA-256 of the files that changed after a change.

        Folders and links are included. Their value is None.

        since: the number of the change, or ALL_FILES.
        """
        sql = "select project, path, sha256 from memoranda.note where space = %s and number > %s"
        return {
            (project, path): digest
            for project, path, digest in self._db.execute(sql, [self._space, since])
        }

    def rows(self, since: int) -> Iterator[FileRow]:
        """Yield the rows of the files, folders and links that changed after a change.

        since: the number of the change, or ALL_FILES.
        """
        sql = f"{FILE_ROWS} and number > %s order by project, path"
        with self._db.cursor("rows") as cursor:
            cursor.itersize = _ROWS_AT_A_TIME
            yield from map(FileRow._make, cursor.execute(sql, [self._space, since]))

    def row(self, project: str, path: str) -> FileRow | None:
        """Return the row of the file at one place, None if none exists."""
        sql = f"{FILE_ROWS} and project = %s and path = %s"
        row = self._db.execute(sql, [self._space, project, path]).fetchone()
        if row:
            return FileRow(*row)
        return None


@dataclass(slots=True)
class SqlStatement:
    """One SQL statement of a commit.

    sql: the statement, with placeholders.
    values: the values of its placeholders.
    rows: how many rows it must touch. None means that any number is right.
    refused: returns the error to raise if it touches another number of rows.
    """

    sql: str
    values: Sequence[Any]
    rows: int | None = None
    refused: Callable[[], Exception] | None = None


def marks_of(columns: str) -> str:
    """Return placeholders for the values of these columns: `%s, %s` for `number, time`."""
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
    """Yield the SQL that inserts a change and its steps into the history.

    space: the name of the space.
    change_id: the id by which a writer that lost its connection finds out whether the change was
        committed.
    epoch: the epoch that began when the change was revised. 0 for a new change. A space begins a
        new epoch whenever earlier changes are revised, so that replicas fetch them again.
    """
    values = [space, change_id, epoch, *change_values(change)]
    yield SqlStatement(_INSERT_CHANGE, values)
    for position, touched in enumerate(change.files):
        row = [space, change.number, position, *step_values(touched)]
        yield SqlStatement(_INSERT_STEP, row)


# The row of a place: parameters space, project, path.
_AT = "where space = %s and project = %s and path = %s"
# The rows below a folder: parameters space, project, path, path. "0" is the character after "/".
_BELOW = "where space = %s and project = %s and path >= %s::text || '/' and path < %s::text || '0'"
_FOLDER_MODE = 0o700


def of_step(server: str, space: str, number: int, step: Step) -> Iterator[SqlStatement]:
    """Yield the SQL that applies one step to the table of notes.

    server: the name of the server, for errors.
    space: the name of the space.
    number: the number of the change, which each touched row records.
    """
    match step.do:
        case StepKind.SET:
            yield from _of_set(space, number, step)
        case StepKind.PUT:
            yield from _of_put(space, number, step)
        case StepKind.REMOVE:
            yield from _of_remove(space, step)
        case StepKind.MOVE:
            yield from _of_move(space, number, step)
        case StepKind.MKDIR:
            yield _new_entry(space, number, step, "folder", link=None)
        case StepKind.SYMLINK:
            yield _new_entry(space, number, step, "link", step.link)
        case StepKind.UNLINK:
            yield SqlStatement(
                f"delete from memoranda.note {_AT} and kind = 'link'",
                [space, step.project, step.path],
                rows=1,
                refused=lambda: _conflict(step),
            )
        case StepKind.RMDIR:
            yield SqlStatement(
                f"select 1 from memoranda.note {_BELOW} limit 1",
                [space, step.project, step.path, step.path],
                rows=0,
                refused=lambda: DatabaseRefused(server, f"the folder {step.path} is not empty"),
            )
            yield SqlStatement(
                f"delete from memoranda.note {_AT} and kind = 'folder'",
                [space, step.project, step.path],
            )


def _new_entry(space: str, number: int, step: Step, kind: str, link: str | None) -> SqlStatement:
    """Return the SQL that makes a folder or a link. A folder may exist already, a link may not.

    space: the name of the space.
    number: the number of the change, which the row records.
    kind: `folder` or `link`.
    link: the target of a link. None for a folder.
    """
    return SqlStatement(
        "insert into memoranda.note (space, project, path, kind, link, mode, number) "
        "values (%s, %s, %s, %s, %s, %s, %s) on conflict (space, project, path) do update "
        "set number = excluded.number where note.kind = excluded.kind and note.kind = 'folder'",
        [space, step.project, step.path, kind, link, _FOLDER_MODE, number],
        rows=1,
        refused=lambda: Exists(step.path),
    )


def _conflict(step: Step) -> Conflict:
    """Return the error for a step whose file is not as it was read."""
    return Conflict(step.path, "unknown", step.old.etag[:8] if step.old else "none")


def _keep_old_text(space: str, step: Step) -> Iterator[SqlStatement]:
    """Yield the SQL that copies the text that a step replaces into the history.

    Yields nothing if the step replaces no text or its text is not kept.

    space: the name of the space.
    """
    if step.old is not None and step.kept:
        yield SqlStatement(
            "insert into memoranda.text (space, sha256, data) select space, sha256, body "
            f"from memoranda.note {_AT} and sha256 = %s on conflict do nothing",
            [space, step.project, step.path, step.old.etag],
        )


def _of_put(space: str, number: int, step: Step) -> Iterator[SqlStatement]:
    """Yield the SQL that writes a file.

    If the step replaces a file, its row must still have the text that was read. Otherwise the place
    must be free.

    space: the name of the space.
    number: the number of the change, which the row records.
    """
    yield from _keep_old_text(space, step)
    assert step.stamp is not None
    where = [space, step.project, step.path]
    values = [step.data, step.etag, mode_of(step), step.stamp.mtime_ns, number]
    if step.old is None:
        yield SqlStatement(
            "insert into memoranda.note (space, project, path, kind, body, sha256, mode, "
            "changed_ns, number) values (%s, %s, %s, 'file', %s, %s, %s, %s, %s) "
            "on conflict do nothing",
            [*where, *values],
            rows=1,
            refused=lambda: Exists(step.path),
        )
    else:
        yield SqlStatement(
            "update memoranda.note set body = %s, sha256 = %s, mode = %s, changed_ns = %s, "
            f"number = %s {_AT} and kind = 'file' and sha256 = %s",
            [*values, *where, step.old.etag],
            rows=1,
            refused=lambda: _conflict(step),
        )


def _of_remove(space: str, step: Step) -> Iterator[SqlStatement]:
    """Yield the SQL that removes a file, which must have the text that was read.

    space: the name of the space.
    """
    yield from _keep_old_text(space, step)
    assert step.old is not None
    yield SqlStatement(
        f"delete from memoranda.note {_AT} and kind = 'file' and sha256 = %s",
        [space, step.project, step.path, step.old.etag],
        rows=1,
        refused=lambda: _conflict(step),
    )


def _of_move(space: str, number: int, step: Step) -> Iterator[SqlStatement]:
    """Yield the SQL that moves a file, or a folder with everything below it, to a free place.

    space: the name of the space.
    number: the number of the change, which each moved row records.
    """
    # The new place must be free
    yield SqlStatement(
        f"select 1 from memoranda.note {_AT}",
        [space, step.project, step.to],
        rows=0,
        refused=lambda: Exists(step.to),
    )
    # Everything below a folder moves with it
    yield SqlStatement(
        "update memoranda.note set path = %s::text || substr(path, length(%s::text) + 1), "
        f"number = %s {_BELOW}",
        [step.to, step.path, number, space, step.project, step.path, step.path],
    )
    # The file or folder itself. A file must have the text that was read.
    condition = _AT
    values: list[Any] = [step.to, number, space, step.project, step.path]
    if step.old is not None:
        condition += " and sha256 = %s"
        values.append(step.old.etag)
    yield SqlStatement(
        f"update memoranda.note set path = %s, number = %s {condition}",
        values,
        rows=1,
        refused=lambda: _conflict(step),
    )


def _of_set(space: str, number: int, step: Step) -> Iterator[SqlStatement]:
    """Yield the SQL of a SET step, which sets or removes one row of the ledger.

    A space stores such a row in its table of notes, like a file.

    space: the name of the space.
    number: the number of the change, which the row records.
    """
    where = [space, step.project, step.path]
    yield from _keep_old_text(space, step)
    if step.old is not None:
        yield SqlStatement(
            f"delete from memoranda.note {_AT} and sha256 = %s",
            [*where, step.old.etag],
            rows=1,
            refused=lambda: _conflict(step),
        )
    if step.data is not None:
        yield SqlStatement(
            "insert into memoranda.note (space, project, path, kind, body, sha256, mode, number) "
            "values (%s, %s, %s, 'file', %s, %s, %s, %s) on conflict do nothing",
            [*where, step.data, step.etag, NEW_MODE, number],
            rows=1,
            refused=lambda: _conflict(step),
        )


def of_fold(space: str, folded: Mapping[str, ReadRow]) -> Iterator[SqlStatement]:
    """Yield the SQL that subtracts reads, because headers of notes count them now.

    space: the name of the space.
    folded: the reads to subtract, by the id of their note. Reads that came later are kept.
    """
    for key, row in folded.items():
        sql = (
            "update memoranda.access set count = greatest(0, count - %s), "
            "used = case when used > %s then used else 0 end where space = %s and id = %s"
        )
        yield SqlStatement(sql, [row.times, row.used_at, space, key])
    sql = "delete from memoranda.access where space = %s and count = 0 and used = 0"
    yield SqlStatement(sql, [space])
