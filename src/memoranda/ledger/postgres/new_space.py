"""Fill a new space of a database from a home that is moved there.

The rows are written to separate tables (`moving_note_...`), which nobody else uses. If the move is
interrupted, the next try continues with these tables. The last transaction makes the tables
partitions of the space.
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
from memoranda.ledger.postgres.server_connection import SETTINGS, single_value
from memoranda.ledger.postgres.space_database import _PARTITIONED, SpaceDatabase
from memoranda.ledger.postgres.space_rows import FileRow, marks_of
from memoranda.sources.base import sha256

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

Key = tuple[str, str]
"""(project, path) of a file."""


class NewSpace(SpaceDatabase):
    """A new space that is filled from a home. All methods raise DatabaseAway, DatabaseRefused.

    source: the name of the home.
    """

    # A person has started the move and waits for it. Checking it reads all rows, so no statement
    # has a time limit.
    settings = SETTINGS | {"statement_timeout": "0"}

    def __init__(self, url: str, space: str, source: str):
        super().__init__(url, space)
        # The comment on the table of notes names the home, so that another home does not continue
        # this move.
        self._move_mark = json.dumps({"moved from": source})
        self.source = source

    def check_free(self) -> None:
        """Raise InvalidInput if the space has notes, or if another home is being moved there."""
        self._with_retry(self._check_free)

    def _check_free(self, db: psycopg.Connection[Any]) -> None:
        """Do `check_free` on a connection."""
        if self._has_contents(db):
            raise InvalidInput(
                f"The space {self.space} of {self.server} is not empty; name another: ?space=NAME"
            )
        # The comment on the move's table of notes, which names its home. None without a move.
        mark = single_value(
            db,
            "select obj_description(to_regclass(%s), 'pg_class')",
            [f"memoranda.moving_note_{self._suffix}"],
        )
        if mark is not None and mark != self._move_mark:
            raise InvalidInput(
                f"Another home is being moved to the space {self.space} of {self.server} ({mark}). End that move, or "
                "name another space: ?space=NAME"
            )

    def _has_contents(self, db: psycopg.Connection[Any]) -> bool:
        """Whether the space exists, and has changes or shared files."""
        has_tables = self._last_migration(db) > 0
        if not has_tables:
            return False
        state = self._read_state(db)
        if state is None:
            return False
        count_files = "select count(*) from memoranda.shared_file where space = %s"
        return state.last > 0 or single_value(db, count_files, [self.space]) > 0

    def begin(self) -> None:
        """Make the tables for the move, unless an interrupted one has made them."""
        self._with_retry(self._migrate)
        from psycopg import sql

        with self._connected() as db, db.transaction():
            # This lock lets only one of two homes begin.
            db.execute("select pg_advisory_xact_lock(hashtext('memoranda migrations'))")
            self._check_free(db)
            for table in _PARTITIONED:
                parent = sql.Identifier("memoranda", table)
                db.execute(
                    sql.SQL("create table if not exists {} (like {} including all)").format(
                        self._table(table), parent
                    )
                )
            note = sql.SQL("comment on table {} is {}")
            db.execute(note.format(self._table("note"), sql.Literal(self._move_mark)))

    def _table(self, name: str) -> sql.Identifier:
        """Return the full name of a table of the move.

        name: the table that all spaces share, such as `note`.
        """
        from psycopg import sql

        return sql.Identifier("memoranda", f"moving_{name}_{self._suffix}")

    def _partition(self, name: str) -> sql.Identifier:
        """Return the full name of the partition that a table of the move becomes.

        name: the table that all spaces share, such as `note`.
        """
        from psycopg import sql

        return sql.Identifier("memoranda", f"{name}_{self._suffix}")

    def _query(self, text: str, table: str = "note") -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        text: the SQL, with `{}` for the name of the table.
        table: the table of the move to read.
        """
        from psycopg import sql

        statement = sql.SQL(text).format(self._table(table))
        with self._connected() as db:
            return db.execute(statement).fetchall()

    def _execute_many(self, table: str, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement once for each row.

        text: the SQL, with `{}` for the name of the table, and placeholders for the values of a row.
        """
        from psycopg import sql

        statement = sql.SQL(text).format(self._table(table))
        with self._connected() as db, db.transaction():
            db.cursor().executemany(statement, rows)

    def files(self) -> dict[Key, tuple[str, str | None, int | None]]:
        """Return (project, path) -> (kind, SHA-256 or target of the link, mode) of all files."""
        rows = self._query("select project, path, kind, coalesce(sha256, link), mode from {}")
        return {(project, path): (kind, digest, mode) for project, path, kind, digest, mode in rows}

    def put_files(self, rows: Iterable[FileRow]) -> None:
        """Write rows of files, replacing existing ones."""
        self._execute_many(
            "note",
            "insert into {} (space, project, path, kind, body, sha256, link, mode, changed_ns, number) "
            "values (%s, %s, %s, %s, %s, %s, %s, %s, %s, 0) on conflict (space, project, path) do update set "
            "kind = excluded.kind, body = excluded.body, sha256 = excluded.sha256, link = excluded.link, "
            "mode = excluded.mode, changed_ns = excluded.changed_ns",
            ([self.space, *row] for row in rows),
        )

    def remove_files(self, keys: Iterable[Key]) -> None:
        """Delete the rows of files."""
        self._execute_many("note", "delete from {} where project = %s and path = %s", keys)

    def read_again(self) -> dict[Key, str]:
        """Return (project, path) -> SHA-256 of every file, which the server computes from its bytes."""
        rows = self._query(
            "select project, path, encode(sha256(body), 'hex') from {} where kind = 'file'"
        )
        return {(project, path): digest for project, path, digest in rows}

    def texts(self) -> set[str]:
        """Return the SHA-256 of the history's texts, which the server computes from their bytes."""
        rows = self._query("select encode(sha256(data), 'hex') from {}", table="text")
        return {digest for (digest,) in rows}

    def put_texts(self, texts: Iterable[tuple[str, bytes]]) -> None:
        """Write texts of the history."""
        sql = "insert into {} (space, sha256, data) values (%s, %s, %s) on conflict do nothing"
        self._execute_many("text", sql, ([self.space, digest, data] for digest, data in texts))

    def remove_texts(self, digests: Iterable[str]) -> None:
        """Delete texts of the history."""
        self._execute_many(
            "text", "delete from {} where sha256 = %s", ([digest] for digest in digests)
        )

    def digests_of_changes(self) -> dict[int, str]:
        """Return number of a stored change -> SHA-256 of its `Change.dump`."""
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
        """Write changes, replacing any with the same numbers."""
        self.remove_changes([change.number for change in changes])
        columns = f"space, id, {CHANGE_COLUMNS}"
        self._execute_many(
            "change",
            f"insert into {{}} ({columns}) values ({marks_of(columns)})",
            ([self.space, uuid4(), *change_values(change)] for change in changes),
        )
        columns = f"space, change, position, {STEP_COLUMNS}"
        self._execute_many(
            "step",
            f"insert into {{}} ({columns}) values ({marks_of(columns)})",
            (
                [self.space, change.number, position, *step_values(touched)]
                for change in changes
                for position, touched in enumerate(change.files)
            ),
        )

    def remove_changes(self, numbers: Sequence[int]) -> None:
        """Delete the changes with these numbers."""
        for table, column in (("step", "change"), ("change", "number")):
            statement = f"delete from {{}} where {column} = %s"
            self._execute_many(table, statement, ([number] for number in numbers))

    def finish(
        self,
        last: int,
        counts: Mapping[str, int],
        used: Mapping[str, int],
        shared: Mapping[str, bytes],
    ) -> None:
        """Turn the tables of the move into the space.

        last: the number of the latest change.
        counts: how often notes were read, by the key of the note.
        used: when notes were last used (seconds since 1970), by the key of the note.
        shared: name -> bytes of the files that all replicas share.

        Raises InvalidInput if somebody wrote to the space in between.
        """
        reads = [
            [self.space, note_id, counts.get(note_id, 0), used.get(note_id, 0)]
            for note_id in sorted({*counts, *used})
        ]
        self._execute_many(
            "access",
            "insert into {} (space, id, count, used) values (%s, %s, %s, %s) "
            "on conflict (space, id) do update set count = excluded.count, used = excluded.used",
            reads,
        )
        from psycopg import sql

        with self._connected() as db, db.transaction():
            # No other process may make a space or write to this one meanwhile.
            db.execute("select pg_advisory_xact_lock(hashtext('memoranda migrations'))")
            db.execute("select pg_advisory_xact_lock(%s)", [self._writers_lock_key])
            self._check_free(db)
            # Another process may have opened the space in between, which made empty partitions.
            has_partitions = self._read_state(db) is not None
            for table in _PARTITIONED:
                self._make_partition(db, table, has_partitions)
            db.execute(sql.SQL("comment on table {} is null").format(self._partition("note")))
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

    def _make_partition(self, db: psycopg.Connection[Any], table: str, has_partition: bool) -> None:
        """Turn a table of the move into the space's partition.

        table: the table that all spaces share, such as `note`.
        has_partition: whether the space has an empty partition, which is dropped.
        """
        from psycopg import sql

        parent = sql.Identifier("memoranda", table)
        partition = self._partition(table)
        if has_partition:
            db.execute(sql.SQL("alter table {} detach partition {}").format(parent, partition))
            db.execute(sql.SQL("drop table {}").format(partition))
        final_name = sql.Identifier(f"{table}_{self._suffix}")
        db.execute(sql.SQL("alter table {} rename to {}").format(self._table(table), final_name))
        self._attach(db, parent, partition)
