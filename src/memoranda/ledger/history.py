"""The history: changes, the texts they replaced, and where every text comes from, as queries and
transactions on the ledger.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection, Row
from typing import Any

from memoranda.clock import parse_stamp, stamp
from memoranda.errors import NotFound, StorageError
from memoranda.ledger.change import (
    FOLD,
    ORIGINS,
    Change,
    Touched,
    undone_numbers,
)
from memoranda.ledger.change_rows import (
    CHANGE_COLUMNS,
    STEP_COLUMNS,
    change_of,
    change_values,
    insertion,
    loaded,
    step_values,
    stored,
    touched_of,
)
from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.review_rows import ReviewRows
from memoranda.note.model import GLOBAL, Provenance
from memoranda.sources.base import File, sha256
from memoranda.sources.files import (
    make_private,
    open_own,
    read_fd,
    reason,
    sync_folder,
    write_file,
)
from memoranda.sources.layout import PRIVATE, Layout
from memoranda.sources.step import StepKind
from memoranda.value_object import FrozenValueObject

# Then a text is copied where a link would do.
CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}
LARGE = 1 << 20
"""Bytes from which on a text is kept as a file beside the ledger."""
# Rows of the first read: most callers need a few, so the next parts grow.
_FIRST_PART = 16
# Changes read at a time, first and at most: often only the latest is wanted.
_PART = 512
_CHANGE = insertion("change", CHANGE_COLUMNS)
_STEP = insertion("step", f"change, position, {STEP_COLUMNS}")
_ORIGIN = (
    "insert or replace into origin (project, path, root, new, scope, made_by) "
    "values (?, ?, ?, ?, ?, ?)"
)
_NAMED_BY_ID = "substr(s.path, -11, 8) = ? and s.project in ('categories', 'archive')"
# The steps of some changes that wrote a text which no later change wrote at the same place.
_LAST_WRITERS = (
    "select s.*, c.time as at, c.verb, c.agent, c.face, c.made_by as by_caller "
    "from step s join change c on c.number = s.change "
    "where s.change between ? and ? and s.do = 'put' and s.new is not null and not exists ("
    "select 1 from step t where t.new = s.new and t.do = 'put' and t.path = s.path "
    "and t.project = s.project and t.root = s.root and t.change > s.change)"
)
# The texts that a change keeps: what it replaced, and what lines became.
_TEXTS_OF_CHANGE = (
    "select old as digest from step where change = :change and old is not null "
    f"union select new from step where change = :change and do = '{StepKind.LINES}' and new is not null"
)
_REFERENCE = (
    "select 1 from step where old = :digest "
    f"union all select 1 from step where new = :digest and do = '{StepKind.LINES}' limit 1"
)
# Texts read together, each of at most a megabyte.
_TEXTS_AT_A_TIME = 50
# Changes looked at together when they are purged.
_PURGED_AT_A_TIME = 10_000
# Characters of a time that tell day and second.
_TO_THE_SECOND = len("2026-05-07T10:00:00")
# The undos that may have taken a change back: by its number, its run, or a list of numbers.
_UNDOS_OF = (
    "select number, undoes, run, details from change where undoes = :number "
    "and number > :number and run is null and details is null "
    "union all select number, undoes, run, details from change where run = :run "
    "and number > :number and undoes is not null "
    "union all select number, undoes, run, details from change where undoes is not null "
    "and details is not null and number > :number and run is null"
)
_ALL_WRITERS = (
    "select s.*, c.time as at, c.verb, c.agent, c.face, c.made_by as by_caller "
    "from step s join change c on c.number = s.change "
    "where s.new = ? and s.do = 'put' order by s.change desc"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedStep(FrozenValueObject):
    """A step with its place in the history: change `number`, by `verb`, at `position` in it."""

    number: int
    position: int
    verb: str
    touched: Touched


class History:
    """The changes of one home. Writing is for the holder of the home's lock.

    All methods raise StorageError where the ledger cannot be read or written.
    """

    def __init__(self, layout: Layout, database: LedgerDatabase):
        self._layout = layout
        self.database = database
        self.review_rows = ReviewRows(database, str(layout.private))
        self._last: int | None = None
        self._version = -1

    # --- reading

    @property
    def last(self) -> int:
        """The number of the latest change, or 0."""
        version = self.database.version()
        if self._last is None or version != self._version:
            row = self.database.row("select max(number) as last from change")
            if row is not None:
                self._last = row["last"] or 0
            else:
                self._last = 0
            self._version = version
        return self._last

    def changes(self, *, origins: bool = False, before: int | None = None) -> Iterator[Change]:
        """All changes, newest first, or those numbered `before` this; with `origins` the one that
        keeps where the texts of purged ones come from.
        """
        yield from self._read_back("select * from change where number < ?", (), before)
        if origins:
            yield from self._origins()

    def changes_by(self, agent: str, *, before: int | None = None) -> Iterator[Change]:
        """The changes an agent made, newest first, or those numbered `before` this."""
        sql = "select * from change where number < ? and agent = ?"
        yield from self._read_back(sql, (agent,), before)

    def changes_besides(self, face: str) -> Iterator[Change]:
        """The changes that came through anything except this interface, newest first."""
        sql = "select * from change where number < ? and face is not ?"
        yield from self._read_back(sql, (face,))

    def changes_at(
        self, project: str, path: str, *, after: int = 0, before: int | None = None
    ) -> Iterator[Change]:
        """The changes numbered `after` this, and `before` that, that may be about the file at a
        place, newest first.

        Moves of folders of the project are among them, whatever folder it is.
        """
        sql = (
            "select * from change where number < ? and number > ? and (number in ("
            "select change from step where project = ? and path = ? "
            "union select change from step where project = ? and dest = ? and dest <> '' "
            "union select change from step where project = ? and do = 'move' and old is null "
            "union select number from change where project = ? and path = ?))"
        )
        place = (project, path)
        yield from self._read_back(sql, (after, *place, *place, project, *place), before)

    def steps_at(self, path: str, absolute: str) -> Iterator[PlacedStep]:
        """The steps at this path of any project, newest first, then those whose file is `absolute`
        in a folder elsewhere.
        """
        for where in ("s.path = :path", "s.dest = :path and s.dest <> ''"):
            yield from self._placed(f"{where} order by s.change desc", {"path": path})
        for root in self._roots_above(absolute):
            below = {"root": root, "path": os.path.relpath(absolute, os.fsdecode(root))}
            for column in ("path", "dest"):
                where = f"s.{column} = :path and s.root = :root and s.{column} <> ''"
                yield from self._placed(f"{where} order by s.change desc", below)

    def _roots_above(self, absolute: str) -> list[Any]:
        """The folders elsewhere, as they are stored, that a path is in."""
        # Each folder is looked up in the index after the one before, since few occur among many
        # steps.
        sql = (
            "with recursive known (root) as (select min(root) from step where root <> '' union all "
            "select (select min(root) from step where root <> '' and root > known.root) "
            "from known where known.root is not null) select root from known where root is not null"
        )
        roots = [row["root"] for row in self.database.rows(sql)]
        return [root for root in roots if absolute.startswith(f"{os.fsdecode(root)}/")]

    def steps_with_id(self, project: str, id_begin: str) -> Iterator[PlacedStep]:
        """The steps on memories of a project whose files are named by an id that begins with these
        8 digits, newest first.
        """
        where = f"{_NAMED_BY_ID} and s.project = ? order by s.change desc"
        for step in self._placed(where, (id_begin, project)):
            if step.touched.path.endswith(f"-{id_begin}.md"):
                yield step

    def with_name_id(self, id_begin: str, before: int) -> list[int]:
        """The numbers, below `before`, of changes with a step on a file named by this id."""
        sql = f"select distinct s.change from step s where {_NAMED_BY_ID} and s.change < ?"
        return [row["change"] for row in self.database.rows(sql, (id_begin, before))]

    def numbers_at(self, project: str, path: str, before: int) -> list[int]:
        """The numbers, below `before`, of changes with a step from or to a place."""
        sql = (
            "select change from step where path = :path and project = :project and change < :before "
            "union select change from step where dest = :path and dest <> '' "
            "and project = :project and change < :before"
        )
        values = {"project": project, "path": path, "before": before}
        return [row["change"] for row in self.database.rows(sql, values)]

    def numbers_of_folder_moves(self, project: str, before: int) -> list[int]:
        """The numbers, below `before`, of changes that moved a folder of a project."""
        sql = (
            "select distinct change from step "
            "where project = ? and do = 'move' and old is null and change < ?"
        )
        return [row["change"] for row in self.database.rows(sql, (project, before))]

    def files_made_by(self, agent: str) -> Iterator[PlacedStep]:
        """The steps by which an agent wrote a file where none was, oldest first."""
        where = (
            "s.change in (select number from change where agent = ?) "
            "and s.do = 'put' and s.old is null order by s.change, s.position"
        )
        yield from self._placed(where, (agent,))

    def next_departure(self, project: str, path: str, after: int) -> int | None:
        """The number of the first change `after` this that moved, removed or made a file there."""
        sql = (
            "select min(change) as number from step where path = ? and project = ? and change > ? "
            "and (do in ('move', 'remove') or (do = 'put' and old is null))"
        )
        row = self.database.row(sql, (path, project, after))
        if row is None:
            return None
        return row["number"]

    def was_made(self, project: str, path: str, before: int) -> bool:
        """Whether a change `before` this made the file at a place, or moved one there."""
        sql = (
            "select 1 from step where path = :path and project = :project and change < :before "
            "and do = 'put' and old is null "
            "union all select 1 from step where dest = :path and dest <> '' "
            "and project = :project and change < :before limit 1"
        )
        values = {"project": project, "path": path, "before": before}
        return self.database.row(sql, values) is not None

    def numbers_about(self, verb: str, project: str, path: str) -> list[int]:
        """The numbers of changes by a verb that are listed under a place."""
        sql = "select number from change where project = ? and path = ? and verb = ?"
        return [row["number"] for row in self.database.rows(sql, (project, path, verb))]

    def numbers_private(self) -> list[int]:
        """The numbers of changes of the ledger's own rows: answers and requests."""
        sql = f"select distinct change from step where project = '{PRIVATE}'"
        return [row["change"] for row in self.database.rows(sql)]

    def numbers_in_place(self, is_meant: Callable[[str], bool]) -> list[int]:
        """The numbers of changes of those files used in place, by absolute path, that are meant."""
        rows = self.database.rows("select distinct file from step where file <> ''")
        sql = "select distinct change from step where file = ? and file <> ''"
        numbers: list[int] = []
        for row in rows:
            if is_meant(os.fsdecode(row["file"])):
                found_rows = self.database.rows(sql, (row["file"],))
                numbers += [found_row["change"] for found_row in found_rows]
        return numbers

    def places_of(self, project: str) -> list[tuple[str, str]]:
        """(path, root) of every file of a project the history has a text of."""
        where = "from step where project = :project and do in ('put', 'remove', 'move')"
        sql = (
            f"select path, root {where} union select dest, root {where} and dest <> '' "
            "order by path, root"
        )
        rows = self.database.rows(sql, {"project": project})
        return [(row["path"], os.fsdecode(row["root"])) for row in rows]

    def has_steps_below(self, project: str, path: str) -> bool:
        """Whether a change was about something in a folder."""
        # "0" follows "/"
        sql = "select 1 from step where path > ? and path < ? and project = ? limit 1"
        return self.database.row(sql, (f"{path}/", f"{path}0", project)) is not None

    def has_made_folder(self, project: str, path: str) -> bool:
        """Whether a change made the folder at a place, or moved one there."""
        sql = (
            "select 1 from step where path = :path and project = :project and do = 'mkdir' "
            "union all select 1 from step where dest = :path and dest <> '' "
            "and project = :project and do = 'move' limit 1"
        )
        return bool(self.database.rows(sql, {"project": project, "path": path}))

    def folded_into(self, digest: str, after: int) -> str | None:
        """The text that a text became when read counts were written into it, by a change after
        `after`.

        None if that did not happen.
        """
        sql = (
            "select s.new from step s join change c on c.number = s.change where s.old = ? "
            "and s.new is not null and s.change > ? and c.verb = ? order by s.change limit 1"
        )
        row = self.database.row(sql, (digest, after, FOLD))
        if row is None:
            return None
        return row["new"]

    def undone_by(self, change: Change) -> int | None:
        """The number of the undo that took a change back, None while the change counts.

        An undo that was itself taken back leaves its change as it was.
        """
        taken_by = self._undos_around(change)
        undone: dict[int, int] = {}
        for undo in sorted(taken_by, reverse=True):
            if undo not in undone:
                for number in taken_by[undo]:
                    undone.setdefault(number, undo)
        return undone.get(change.number)

    def _undos_around(self, change: Change) -> dict[int, list[int]]:
        """The undos of a change, the undos of those and so on: number -> what they took back."""
        taken_by: dict[int, list[int]] = {}
        waiting = [(change.number, change.run)]
        visited = {change.number}
        while waiting:
            number, run = waiting.pop()
            for row in self.database.rows(_UNDOS_OF, {"number": number, "run": run}):
                if not _takes_back(row, number):
                    continue
                taken_by.setdefault(row["number"], []).append(number)
                if row["number"] not in visited:
                    visited.add(row["number"])
                    waiting.append((row["number"], row["run"]))
        return taken_by

    def placed_steps(self, project: str, path: str) -> list[PlacedStep]:
        """The steps that wrote, removed or moved the file at a place, or moved a folder above it to
        or from there, oldest first.
        """
        is_above = "(substr(:path, 1, length(s.{0}) + 1) = s.{0} || '/')"
        conditions = (
            "s.project = :project and s.path = :path and s.do in ('put', 'remove', 'move')",
            "s.project = :project and s.dest = :path and s.dest <> ''",
            "s.project = :project and s.do = 'move' and s.old is null "
            f"and ({is_above.format('path')} or {is_above.format('dest')})",
        )
        values = {"project": project, "path": path}
        steps: dict[tuple[int, int], PlacedStep] = {}
        for condition in conditions:
            for step in self._placed(condition, values):
                steps[step.number, step.position] = step
        return [steps[key] for key in sorted(steps)]

    def steps_of(self, number: int) -> list[PlacedStep]:
        """The steps of one change, in their order."""
        return [*self._placed("s.change = ? order by s.position", (number,))]

    def has_private_steps(self) -> bool:
        """Whether any step was on a file that not everybody might see."""
        sql = f"select 1 from step where scope <> '{GLOBAL}' limit 1"
        return self.database.row(sql) is not None

    def _placed(
        self, where: str, values: Sequence[Any] | Mapping[str, Any]
    ) -> Iterator[PlacedStep]:
        sql = f"select s.*, c.verb from step s join change c on c.number = s.change where {where}"
        for row in self.database.rows(sql, values):
            yield PlacedStep(row["change"], row["position"], row["verb"], touched_of(row))

    def changes_of_run(self, run: int) -> list[Change]:
        """The changes of one run of a job, newest first."""
        return [*self._read_back("select * from change where number < ? and run = ?", (run,))]

    def change(self, number: int) -> Change | None:
        """The change with this number. None if none exists."""
        rows = self.database.rows("select * from change where number = ?", (number,))
        return next(iter(self._with_steps(rows)), None)

    def last_before(self, time: str) -> int:
        """The number of the last change before a time (ISO 8601, UTC); 0 for none."""
        row = self.database.row("select max(number) as last from change where time < ?", (time,))
        if row is not None:
            return row["last"] or 0
        return 0

    def _read_back(
        self, sql: str, values: tuple[Any, ...], before: int | None = None
    ) -> Iterator[Change]:
        """Yield the changes of a query, newest first.

        They are read in parts, since others may write in between.
        """
        if before is None:
            number = 1 << 62
        else:
            number = before
        part = _FIRST_PART
        while True:
            rows = self.database.rows(
                f"{sql} order by number desc limit ?", (number, *values, part)
            )
            yield from self._with_steps(rows)
            if len(rows) < part:
                return
            number = rows[-1]["number"]
            part = min(2 * part, _PART)

    def _with_steps(self, rows: Sequence[Row]) -> list[Change]:
        changes = [change_of(row) for row in rows]
        by_number = {change.number: change for change in changes}
        if not changes:
            return []
        if len(changes) == 1 + changes[0].number - changes[-1].number:
            where = f"change between {changes[-1].number} and {changes[0].number}"
        else:
            where = f"change in ({','.join(map(str, by_number))})"
        sql = f"select * from step where {where} order by change, position"
        for row in self.database.rows(sql):
            by_number[row["change"]].files.append(touched_of(row))
        return changes

    def _origins(self) -> Iterator[Change]:
        rows = self.database.rows("select * from origin order by project, path")
        if rows:
            files = [_origin_of(row) for row in rows]
            moments = [(touched.by or {}).get("time", "") for touched in files]
            project = files[0].project
            yield Change(0, min(moments), ORIGINS, project, "", None, None, files)

    # --- where texts come from

    def writer_at(self, project: str, path: str, etag: str) -> Provenance | None:
        """The origin of the text with this SHA-256: the latest change that wrote it at this place.

        If none did, the latest that wrote it anywhere. None if no change wrote it.
        """
        anywhere: Provenance | None = None
        for row in self.database.rows(_ALL_WRITERS, (etag,)):
            provenance = _writer_of(row).provenance(touched_of(row))
            if (row["project"], row["path"]) == (project, path):
                return provenance
            anywhere = anywhere or provenance
        if anywhere is not None:
            return anywhere
        sql = "select * from origin where new = ? order by project = ? and path = ? desc"
        origin = self.database.row(sql, (etag, project, path))
        if origin is not None:
            return Provenance(**json.loads(origin["made_by"]))
        return None

    def writer_of(self, etag: str) -> Provenance | None:
        """Where this text comes from, by the latest change that wrote it anywhere."""
        return self.writer_at("", "", etag)

    # --- recording

    def record(self, connection: Connection, changes: Iterable[Change]) -> None:
        """Insert changes, inside a transaction of the database."""
        self._last = None
        for change in changes:
            if change.verb == ORIGINS:
                self._insert_origins(connection, change.files)
                continue
            connection.execute(_CHANGE, change_values(change))
            connection.executemany(
                _STEP,
                [
                    (change.number, position, *step_values(touched))
                    for position, touched in enumerate(change.files)
                ],
            )

    def _insert_origins(self, connection: Connection, files: Iterable[Touched]) -> None:
        rows = [
            (
                touched.project,
                touched.path,
                stored(touched.root),
                touched.new,
                touched.scope,
                json.dumps(touched.by or {}),
            )
            for touched in files
        ]
        connection.executemany(_ORIGIN, rows)

    def append(self, change: Change, *, durable: bool = True) -> None:
        """Record a change that changes no file; durable on return, unless told otherwise."""
        with self.database.transaction(durable=durable) as connection:
            self.record(connection, [change])

    def append_all(self, changes: Sequence[Change]) -> None:
        """Record changes that are safe elsewhere."""
        with self.database.transaction(durable=False) as connection:
            self.record(connection, changes)

    def retract(self, numbers: Iterable[int]) -> None:
        """Remove changes that were not made after all, with the texts that only they kept."""
        self._last = None
        unreferenced = list[str]()
        with self.database.transaction() as connection:
            for number in numbers:
                self._put_rows_back(connection, number)
                digests = connection.execute(_TEXTS_OF_CHANGE, {"change": number}).fetchall()
                for table in ("step", "pending_step", "unsynced", "line_change", "waiting"):
                    connection.execute(f"delete from {table} where change = ?", (number,))
                connection.execute("delete from change where number = ?", (number,))
                unreferenced += [
                    row["digest"]
                    for row in digests
                    if not _is_referenced(connection, row["digest"])
                ]
            rows = [(digest,) for digest in unreferenced]
            connection.executemany("delete from text where sha256 = ?", rows)
        self._remove_large(unreferenced)

    def _put_rows_back(self, connection: Connection, number: int) -> None:
        """Make the rows of the ledger what they were before a change."""
        sql = "select * from step where change = ? and do = ? order by position"
        rows = connection.execute(sql, (number, StepKind.SET)).fetchall()
        self.review_rows.take_back(connection, [touched_of(row) for row in rows])

    def replace_all(self, changes: Iterable[Change]) -> None:
        """Put these changes, in the order of their numbers, in place of all."""
        with self.database.transaction(durable=False) as connection:
            for table in ("change", "step", "origin"):
                connection.execute(f"delete from {table}")
            self.record(connection, changes)

    def revise(self, revised: Mapping[int, Change], lost: Collection[tuple[str, str, str]]) -> None:
        """Replace changes by those with the same numbers, and forget the origins of texts.

        revised: the new changes by number.
        lost: the places of these texts, (project, path, root).
        """
        with self.database.transaction() as connection:
            for number, change in revised.items():
                connection.execute("delete from step where change = ?", (number,))
                connection.execute("delete from change where number = ?", (number,))
                self.record(connection, [change])
            connection.executemany(
                "delete from origin where project = ? and path = ? and root = ?",
                [(project, path, stored(root)) for project, path, root in lost],
            )

    # --- texts

    def object_path(self, digest: str) -> str:
        """Where the text with this SHA-256 is, if it is a large one."""
        return os.path.join(self._layout.texts, digest)

    def keep_large(self, old: File, name: str, folder: int) -> None:
        """Keep the text of file `name` in the open `folder` beside the ledger, durable on return.
        Raises OSError.
        """
        place = self.object_path(old.etag)
        make_private(self._layout.texts)
        try:
            os.link(name, place, src_dir_fd=folder, follow_symlinks=False)
            self._sync_text(place)
        except FileExistsError:
            if not self._is_sound(old.etag):
                # A program that kept that file open may have written into it, so it may differ.
                os.unlink(place)
                write_file(place, old.data)
        except OSError as error:
            if error.errno not in CANNOT_LINK:
                raise
            write_file(place, old.data)
        sync_folder(self._layout.texts)

    def _sync_text(self, place: str) -> None:
        fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def keep_text(self, connection: Connection, data: bytes) -> str:
        """Keep a text, inside a transaction of the database. Returns its SHA-256. Raises OSError."""
        digest = sha256(data)
        if len(data) >= LARGE and not self._is_sound(digest):
            make_private(self._layout.texts)
            with suppress(FileNotFoundError):
                os.unlink(self.object_path(digest))
            write_file(self.object_path(digest), data)
            sync_folder(self._layout.texts)
        if len(data) < LARGE:
            connection.execute(
                "insert or ignore into text (sha256, data) values (?, ?)", (digest, data)
            )
        return digest

    def keep_bytes(self, data: bytes, *, durable: bool = True) -> str:
        """Keep a text, durable on return unless told otherwise. Returns its SHA-256."""
        with self.database.transaction(durable=durable) as connection:
            return self.keep_text(connection, data)

    def _is_sound(self, digest: str) -> bool:
        try:
            self._large_text(digest, digest)
        except (NotFound, StorageError):
            return False
        return True

    def has_text(self, digest: str) -> bool:
        """Whether the text with this SHA-256 is kept."""
        row = self.database.row("select 1 from text where sha256 = ?", (digest,))
        return row is not None or os.path.exists(self.object_path(digest))

    def text(self, digest: str, path: str) -> bytes:
        """The kept text with this SHA-256. Raises NotFound, StorageError when it is damaged."""
        row = self.database.row("select data from text where sha256 = ?", (digest,))
        if row is None:
            return self._large_text(digest, path)
        data = row["data"]
        if isinstance(data, bytes) and sha256(data) == digest:
            return data
        raise StorageError(path, "its kept text is damaged")

    def _large_text(self, digest: str, path: str) -> bytes:
        try:
            fd = open_own(self.object_path(digest), os.O_RDONLY)
        except FileNotFoundError:
            raise NotFound(path) from None
        except OSError as error:
            raise StorageError(path, reason(error)) from None
        try:
            data = read_fd(fd)
        finally:
            os.close(fd)
        if sha256(data) != digest:
            raise StorageError(path, "its kept text is damaged")
        return data

    def forget_text(self, digest: str) -> None:
        """Drop a kept text, which is damaged."""
        with self.database.transaction(durable=False) as connection:
            connection.execute("delete from text where sha256 = ?", (digest,))
        with suppress(FileNotFoundError):
            os.unlink(self.object_path(digest))

    def texts(self) -> Iterator[str]:
        """The texts that are kept, by SHA-256."""
        sql = "select sha256 from text where sha256 > ? order by sha256 limit ?"
        yield from (row["sha256"] for row in self._in_parts(sql, _PART))
        with suppress(FileNotFoundError):
            yield from sorted(os.listdir(self._layout.texts))

    def texts_with_data(self) -> Iterator[tuple[str, bytes]]:
        """The texts that are kept in the ledger, by SHA-256. A damaged one is there as it is.

        Large ones are files beside the ledger.
        """
        sql = "select sha256, data from text where sha256 > ? order by sha256 limit ?"
        for row in self._in_parts(sql, _TEXTS_AT_A_TIME):
            yield row["sha256"], bytes(row["data"])

    def _in_parts(self, sql: str, size: int) -> Iterator[Row]:
        """The rows of a query that begins after a text, `size` at a time: a home may have millions."""
        digest = ""
        while rows := self.database.rows(sql, (digest, size)):
            yield from rows
            digest = rows[-1]["sha256"]

    # --- forgetting

    def purge(self, before: datetime, living: Callable[[], Collection[str]] = frozenset) -> int:
        """Forget changes older than `before`, and texts that nothing refers to any more.

        living: gives the SHA-256 of the texts whose origin is kept. The origins of texts in folders
            elsewhere are kept, too.

        Returns how many changes were forgotten. The latest change always stays, so that numbers go
        on.
        """
        last = self.last
        old = [
            row["number"]
            for row in self.database.rows(
                "select number, time from change where number < ? and time <= ? "
                "and number not in (select change from unsynced)",
                (last, f"{stamp(before)[:_TO_THE_SECOND]}~"),
            )
            if parse_stamp(row["time"]) < before
        ]
        if not old:
            self.sweep()
            return 0
        self._forget(set(old), self._origins_of(set(old), living()))
        self.sweep()
        return len(old)

    def _forget(self, numbers: Collection[int], origins: Sequence[Touched]) -> None:
        """Take changes out, and keep where texts come from of which only they told."""
        rows = [(number,) for number in numbers]
        with self.database.transaction() as connection:
            self._insert_origins(connection, origins)
            connection.executemany("delete from step where change = ?", rows)
            connection.executemany("delete from change where number = ?", rows)

    def _origins_of(self, purged: Collection[int], living: Collection[str]) -> list[Touched]:
        """Where the texts come from of which only purged changes tell."""
        origins = list[Touched]()
        for first in range(min(purged), max(purged) + 1, _PURGED_AT_A_TIME):
            values = (first, first + _PURGED_AT_A_TIME - 1)
            for row in self.database.rows(_LAST_WRITERS, values):
                touched = touched_of(row)
                is_needed = bool(touched.root) or touched.new in living
                if row["change"] in purged and is_needed:
                    by = _writer_of(row).provenance(touched).row()
                    origin = Touched(
                        ORIGINS,
                        touched.project,
                        touched.path,
                        new=touched.new,
                        scope=touched.scope,
                        root=touched.root,
                        by=by,
                    )
                    origins.append(origin)
        return origins

    def sweep(self) -> int:
        """Remove the texts of `unreferenced`. Returns how many."""
        unreferenced = self.unreferenced()
        if unreferenced:
            with self.database.transaction() as connection:
                rows = [(digest,) for digest in unreferenced]
                connection.executemany("delete from text where sha256 = ?", rows)
        self._remove_large(unreferenced)
        return len(unreferenced)

    def _remove_large(self, digests: Iterable[str]) -> None:
        for digest in digests:
            with suppress(FileNotFoundError):
                os.unlink(self.object_path(digest))

    def unreferenced(self) -> list[str]:
        """The kept texts no change refers to, by SHA-256."""
        rows = self.database.rows(
            "select sha256 from text t where not exists (select 1 from step where old = t.sha256) "
            f"and not exists (select 1 from step where new = t.sha256 and do = '{StepKind.LINES}')"
        )
        digests = [row["sha256"] for row in rows]
        large: list[str] = []
        with suppress(FileNotFoundError):
            large = sorted(os.listdir(self._layout.texts))
        return digests + [digest for digest in large if not self._is_needed(digest)]

    def _is_needed(self, digest: str) -> bool:
        """Whether a change refers to a kept text."""
        return self.database.row(_REFERENCE, {"digest": digest}) is not None

    def referenced(self) -> set[str]:
        """The texts that changes refer to, by SHA-256."""
        rows = self.database.rows(
            "select old as digest from step where old is not null "
            f"union select new from step where do = '{StepKind.LINES}' and new is not null"
        )
        return {row["digest"] for row in rows}


def _is_referenced(connection: Connection, digest: str) -> bool:
    """Whether a change refers to a kept text."""
    return connection.execute(_REFERENCE, {"digest": digest}).fetchone() is not None


def _takes_back(undo: Row, number: int) -> bool:
    """Whether an undo took a change back; the run of both is known to be the same, if it has one."""
    if undo["run"] is not None:
        return True
    return number in undone_numbers(undo["undoes"], loaded(undo["details"]))


def _writer_of(row: Row) -> Change:
    """The change of a step, without its files."""
    by = loaded(row["by_caller"])
    return Change(row["change"], row["at"], row["verb"], "", "", row["agent"], row["face"], by=by)


def _origin_of(row: Row) -> Touched:
    return Touched(
        ORIGINS,
        row["project"],
        row["path"],
        new=row["new"],
        scope=row["scope"],
        root=os.fsdecode(row["root"]),
        by=loaded(row["made_by"]),
    )
