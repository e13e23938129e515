"""Fill a new space of a database from a home that is moved there.

The rows go into tables of their own, which nobody else sees and which a move that was cut off finds
again; the last transaction makes them the partitions of the space.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memoranda.errors import InvalidInput
from memoranda.ledger.change import Change
from memoranda.ledger.change_rows import (
    CHANGE_COLUMNS,
    STEP_COLUMNS,
    change_values,
    step_values,
    with_steps,
)
from memoranda.ledger.postgres.server_connection import SETTINGS
from memoranda.ledger.postgres.space_database import _PARTITIONED, SpaceDatabase
from memoranda.ledger.postgres.space_rows import FileRow, marks_of
from memoranda.sources.base import sha256

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

Key = tuple[str, str]


class NewSpace(SpaceDatabase):
    """A space to be filled from `source`, the name of a home. Raises DatabaseAway, DatabaseRefused."""

    # A proof reads everything, at the wish of a person
    settings = SETTINGS | {"statement_timeout": "0"}

    def __init__(self, url: str, space: str, source: str):
        super().__init__(url, space)
        self._suffix = sha256(space.encode())[:12]
        self._note = json.dumps({"moved from": source})
        self.source = source

    def check_free(self) -> bool:
        """Whether a move from this source began. Raises InvalidInput when the space has notes, or
        another home is being moved there."""
        return self._again(self._check_free)

    def _check_free(self, db: psycopg.Connection[Any]) -> bool:
        if self._known(db) and (state := self._newest(db)) is not None:
            counted = "select count(*) from memoranda.shared_file where space = %s"
            if state.last or db.execute(counted, [self.space]).fetchall()[0][0]:
                raise InvalidInput(
                    f"The space {self.space} of {self.server} is not empty; name another: ?space=NAME"
                )
        name = f"memoranda.moving_note_{self._suffix}"
        row = db.execute("select obj_description(to_regclass(%s), 'pg_class')", [name]).fetchall()[
            0
        ][0]
        if row is not None and row != self._note:
            raise InvalidInput(
                f"Another home is being moved to the space {self.space} of {self.server} ({row}). End that move, or "
                "name another space: ?space=NAME"
            )
        return row is not None

    def begin(self) -> None:
        """Make the tables that a move from this source did not make yet."""
        self._again(self._migrate)
        self.check_free()
        from psycopg import sql

        with self._connected() as db, db.transaction():
            for table in _PARTITIONED:
                parent = sql.Identifier("memoranda", table)
                db.execute(
                    sql.SQL("create table if not exists {} (like {} including all)").format(
                        self._table(table), parent
                    )
                )
            note = sql.SQL("comment on table {} is {}")
            db.execute(note.format(self._table("note"), sql.Literal(self._note)))

    def _table(self, name: str, prefix: str = "moving_") -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier("memoranda", f"{prefix}{name}_{self._suffix}")

    def _said(self, text: str, table: str = "note") -> list[tuple[Any, ...]]:
        from psycopg import sql

        statement = sql.SQL(text).format(self._table(table))
        with self._connected() as db:
            return db.execute(statement).fetchall()

    def _said_of_each(self, table: str, text: str, rows: Iterable[Sequence[Any]]) -> None:
        from psycopg import sql

        statement = sql.SQL(text).format(self._table(table))
        with self._connected() as db, db.transaction():
            db.cursor().executemany(statement, rows)

    def files(self) -> dict[Key, tuple[str, str | None, int | None]]:
        """Kind, SHA-256 (or link) and mode of the files in the space, by (project, path)."""
        rows = self._said("select project, path, kind, coalesce(sha256, link), mode from {}")
        return {(project, path): (kind, digest, mode) for project, path, kind, digest, mode in rows}

    def put_files(self, rows: Iterable[FileRow]) -> None:
        """Write rows of files, replacing existing ones."""
        self._said_of_each(
            "note",
            "insert into {} (space, project, path, kind, body, sha256, link, mode, changed_ns, number) "
            "values (%s, %s, %s, %s, %s, %s, %s, %s, %s, 0) on conflict (space, project, path) do update set "
            "kind = excluded.kind, body = excluded.body, sha256 = excluded.sha256, link = excluded.link, "
            "mode = excluded.mode, changed_ns = excluded.changed_ns",
            ([self.space, *row] for row in rows),
        )

    def remove_files(self, keys: Iterable[Key]) -> None:
        """Take rows out."""
        self._said_of_each("note", "delete from {} where project = %s and path = %s", keys)

    def read_again(self) -> dict[Key, str]:
        """The SHA-256 of every file, which the server makes again from its bytes."""
        rows = self._said(
            "select project, path, encode(sha256(body), 'hex') from {} where kind = 'file'"
        )
        return {(project, path): digest for project, path, digest in rows}

    def texts(self) -> set[str]:
        """The SHA-256 of the texts of the history that are there, rebuilt from their bytes."""
        return {
            digest
            for (digest,) in self._said("select encode(sha256(data), 'hex') from {}", table="text")
        }

    def put_texts(self, texts: Iterable[tuple[str, bytes]]) -> None:
        """Write texts of the history."""
        sql = "insert into {} (space, sha256, data) values (%s, %s, %s) on conflict do nothing"
        self._said_of_each("text", sql, ([self.space, digest, data] for digest, data in texts))

    def remove_texts(self, digests: Iterable[str]) -> None:
        """Take texts of the history out."""
        self._said_of_each(
            "text", "delete from {} where sha256 = %s", ([digest] for digest in digests)
        )

    def digests_of_changes(self) -> dict[int, str]:
        """The SHA-256 of the changes that are there, as `Change.dump` says them, by number."""
        from psycopg import sql
        from psycopg.rows import dict_row

        changes = f"select {CHANGE_COLUMNS} from {{}} order by number"
        steps = f"select change, {STEP_COLUMNS} from {{}} order by change, position"
        with (
            self._connected() as db,
            db.transaction(),
            db.cursor("changes", row_factory=dict_row) as change_rows,
            db.cursor("steps", row_factory=dict_row) as step_rows,
        ):
            change_rows.execute(sql.SQL(changes).format(self._table("change")))
            step_rows.execute(sql.SQL(steps).format(self._table("step")))
            rows = with_steps(change_rows, step_rows)
            return {change.number: sha256(change.dump()) for change in rows}

    def put_changes(self, changes: Sequence[Change]) -> None:
        """Write changes in place of those with their numbers."""
        self.remove_changes([change.number for change in changes])
        names = f"space, id, {CHANGE_COLUMNS}"
        self._said_of_each(
            "change",
            f"insert into {{}} ({names}) values ({marks_of(names)})",
            ([self.space, uuid4(), *change_values(change)] for change in changes),
        )
        names = f"space, change, position, {STEP_COLUMNS}"
        self._said_of_each(
            "step",
            f"insert into {{}} ({names}) values ({marks_of(names)})",
            (
                [self.space, change.number, position, *step_values(touched)]
                for change in changes
                for position, touched in enumerate(change.files)
            ),
        )

    def remove_changes(self, numbers: Sequence[int]) -> None:
        """Take changes out."""
        for table, column in (("step", "change"), ("change", "number")):
            statement = f"delete from {{}} where {column} = %s"
            self._said_of_each(table, statement, ([number] for number in numbers))

    def finish(
        self,
        last: int,
        counts: Mapping[str, int],
        used: Mapping[str, int],
        shared: Mapping[str, bytes],
    ) -> None:
        """Complete the space, whose latest change is `last`.

        Raises InvalidInput if somebody wrote to it in between.
        """
        reads = [
            [self.space, note_id, counts.get(note_id, 0), used.get(note_id, 0)]
            for note_id in sorted({*counts, *used})
        ]
        parts = (
            "insert into {} (space, id, count, used) values (%s, %s, %s, %s) on conflict (space, id) do update "
            "set count = excluded.count, used = excluded.used"
        )
        self._said_of_each("access", parts, reads)
        from psycopg import sql

        with self._connected() as db, db.transaction():
            db.execute("select pg_advisory_xact_lock(hashtext('memoranda migrations'))")
            db.execute("select pg_advisory_xact_lock(%s)", [self._writers])
            self._check_free(db)
            is_there = self._newest(db) is not None
            for table in _PARTITIONED:
                parent = sql.Identifier("memoranda", table)
                table_name = self._table(table, "")
                # Somebody opened it, and wrote nothing
                if is_there:
                    db.execute(
                        sql.SQL("alter table {} detach partition {}").format(parent, table_name)
                    )
                    db.execute(sql.SQL("drop table {}").format(table_name))
                final = sql.Identifier(f"{table}_{self._suffix}")
                db.execute(sql.SQL("alter table {} rename to {}").format(self._table(table), final))
                self._attach(db, parent, table_name)
            db.execute(sql.SQL("comment on table {} is null").format(self._table("note", "")))
            db.execute(
                "insert into memoranda.space (name, last, files) values (%s, %s, 1) on conflict (name) do "
                "update set id = gen_random_uuid(), last = excluded.last, epoch = space.epoch + 1, "
                "files = space.files + 1",
                [self.space, last],
            )
            for name, data in shared.items():
                db.execute(
                    "insert into memoranda.shared_file (space, name, data) values (%s, %s, %s)",
                    [self.space, name, data],
                )
