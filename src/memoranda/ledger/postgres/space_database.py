"""One connection to the database of a space: migrations, the lock of its writers, and all SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from memoranda import former_name
from memoranda.clock import block_for
from memoranda.errors import Busy, DatabaseAway, DatabaseRefused, MemorandaError, OutcomeUnknown
from memoranda.ledger.change_rows import with_steps
from memoranda.ledger.postgres.server_connection import Connection, reason_of
from memoranda.ledger.postgres.space_rows import (
    CHANGES,
    FILE_ROWS,
    STATE,
    STEPS,
    FileRow,
    Snapshot,
    SpaceState,
    SqlStatement,
    of_change,
    of_fold,
    of_step,
)
from memoranda.sources.base import sha256
from memoranda.sources.files import LOCK_WAITS

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Identifier

    from memoranda.ledger.change import Change
    from memoranda.ledger.reads import ReadRow
    from memoranda.sources.step import Step

SCHEMA = 5
"""The number of the last migration."""
_PARTITIONED = ("note", "change", "step", "text", "access")
_SHARED = ("shared_file", "counted", "space")
_POLICY = (
    "alter table {} enable row level security",
    "alter table {} force row level security",
    "create policy one_space on {} using (space = current_setting('memoranda.space', true))",
)
# How long rewriting a table waits for others that use it.
_VACUUM_WAITS = "10s"
_OWN_TABLES = """
select c.oid::regclass::text from pg_class c
left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
where pg_has_role(c.relowner, 'usage') and c.relkind = 'r'
and c.relnamespace = 'memoranda'::regnamespace
and (c.relname = any(%(shared)s)
    or p.relname = any(%(partitioned)s) and right(c.relname, 12) = %(suffix)s)
order by c.relname
"""
_OTHER_SNAPSHOTS = """
select count(*) from pg_stat_activity
where backend_xmin is not null and pid <> pg_backend_pid() and datname = current_database()
"""
# Settings of a server, the values at which it keeps what was written [all but -1], and how.
_KEEPING = (
    ("log_statement", ("all", "mod"), "the server writes statements into its log"),
    ("log_min_duration_statement", None, "the server writes slow statements into its log"),
    ("archive_mode", ("on", "always"), "the write-ahead log is archived"),
)


class SpaceDatabase(Connection):
    """A space of the database at `url`. For one thread at a time."""

    def __init__(self, url: str, space: str):
        super().__init__(url, space)
        self._locked: psycopg.Connection[Any] | None = None
        self._state: SpaceState | None = None
        self._has_jobs = False
        key = sha256(f"memoranda\0{space}".encode())
        self._writers, self._jobs = (
            int.from_bytes(bytes.fromhex(key[at : at + 16]), signed=True) for at in (0, 16)
        )

    def close(self) -> None:
        """End the connection, and with it the locks it holds."""
        db = self._connection
        # The next one need not wait until the server notices
        if self._has_jobs and db is not None and not db.closed:
            with suppress(DatabaseRefused), self._connected() as db:
                db.execute("select pg_advisory_unlock_all()")
        self._has_jobs = False
        super().close()

    @property
    def _locked_connection(self) -> psycopg.Connection[Any]:
        """The connection that took the lock.

        Raises DatabaseAway if it was lost, and the lock with it.
        """
        if self._locked is None or self._locked.closed:
            raise DatabaseAway(self.server, "the connection was lost")
        return self._locked

    # --- spaces and migrations

    def prepare(self) -> SpaceState:
        """Bring the schema up to date, and make the space if it is missing. Returns its state.

        A space is a partition of each table, and a row of the table `space`. Raises
        DatabaseRefused, DatabaseAway.
        """
        from psycopg import sql

        self._again(self._migrate)
        state = self._newest(self._db)
        if state is not None:
            return state
        suffix = sha256(self.space.encode())[:12]
        with self._connected() as db, db.transaction():
            db.execute("select pg_advisory_xact_lock(hashtext('memoranda migrations'))")
            state = self._newest(db)
            if state is not None:
                return state
            for table in _PARTITIONED:
                parent = sql.Identifier("memoranda", table)
                table_name = sql.Identifier("memoranda", f"{table}_{suffix}")
                db.execute(
                    sql.SQL("create table {} (like {} including all)").format(table_name, parent)
                )
                self._attach(db, parent, table_name)
            db.execute("insert into memoranda.space (name) values (%s)", [self.space])
            state = self._newest(db)
        assert state is not None
        return state

    def _attach(self, db: psycopg.Connection[Any], parent: Identifier, own: Identifier) -> None:
        """Make a table the partition of the space, with the policy of its parent.

        The parent's policy does not apply to a role that names the partition itself.

        parent: the name of the table that all spaces share.
        own: the name of the table.
        """
        from psycopg import sql

        db.execute(
            sql.SQL("alter table {} attach partition {} for values in ({})").format(
                parent, own, sql.Literal(self.space)
            )
        )
        for statement in _POLICY:
            db.execute(sql.SQL(statement).format(own))

    def _migrate(self, db: psycopg.Connection[Any]) -> None:
        """Bring the tables of the database up to date."""
        if self._known(db) >= SCHEMA:
            return
        with db.transaction():
            db.execute("select pg_advisory_xact_lock(hashtext('memoranda migrations'))")
            if db.execute(former_name.HAS_FORMER_SCHEMA).fetchall()[0][0]:
                db.execute(former_name.RENAME_SCHEMA)
            db.execute("create schema if not exists memoranda")
            db.execute(
                "create table if not exists memoranda.version (number integer primary key, "
                "reads integer not null, writes integer not null, at timestamptz not null default now())"
            )
            # A long history may take longer than a call is allowed to
            db.execute("set local statement_timeout = 0")
            scripts = files("memoranda.ledger.postgres").joinpath("migrations")
            for number in range(self._known(db) + 1, SCHEMA + 1):
                text = scripts.joinpath(f"{number:03}.sql").read_text("utf-8")
                db.execute(text)
                oldest = [int(line.partition(": ")[2]) for line in text.splitlines()[:2]]
                db.execute(
                    "insert into memoranda.version (number, reads, writes) values (%s, %s, %s)",
                    [number, *oldest],
                )

    def _known(self, db: psycopg.Connection[Any]) -> int:
        """Return the number of the last migration that the database has, 0 for none."""
        if db.execute("select to_regclass('memoranda.version')").fetchall()[0][0] is None:
            return 0
        return int(
            db.execute("select coalesce(max(number), 0) from memoranda.version").fetchall()[0][0]
        )

    # --- what there is

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that only reads."""
        return self._again(lambda db: db.execute(sql, values).fetchall())

    def newest(self) -> SpaceState:
        """Return the present state of the space. It takes one round trip.

        Raises DatabaseAway, DatabaseRefused.
        """
        state = self._again(self._newest)
        if state is None:
            raise DatabaseRefused(self.server, f"there is no space {self.space} any more")
        return state

    def _newest(self, db: psycopg.Connection[Any]) -> SpaceState | None:
        """Return the present state of the space. None if the space does not exist."""
        row = db.execute(STATE, [self.space]).fetchone()
        if row:
            return self._readable(SpaceState(*row))
        return None

    def _readable(self, state: SpaceState) -> SpaceState:
        """Return the state. Raises DatabaseRefused if the tables are of a later version."""
        if state.reads > SCHEMA:
            raise DatabaseRefused(
                self.server, "its notes are of a later version; upgrade memoranda"
            )
        return state

    def has_more_than(self, notes: int) -> bool:
        """Whether the space has more notes than this."""
        sql = "select count(*) from (select from memoranda.note where space = %s limit %s) as found"
        return bool(self._rows(sql, self.space, notes + 1)[0][0] > notes)

    def news(self, since: int, most: int) -> tuple[SpaceState, list[Change], list[FileRow]] | None:
        """Fetch the news of the space, in one round trip. None if there are more than `most`.

        Returns the state of the space, the changes from the number `since` on, and the files that
        changed after `since`. Raises DatabaseAway, DatabaseRefused.
        """
        from psycopg.rows import dict_row

        def read_all(db: psycopg.Connection[Any]) -> list[list[Any]]:
            """Read the rows of the state, the changes, their steps and the files.

            One row more than `most` is enough to see that there are too many.
            """
            values = [self.space, since, most + 1]
            # All statements are sent before the first answer is read.
            with self._pipeline(db):
                db.execute("begin isolation level repeatable read, read only")
                cursors = [
                    db.execute(STATE, [self.space]),
                    db.cursor(row_factory=dict_row).execute(f"{CHANGES} limit %s", values),
                    db.cursor(row_factory=dict_row).execute(f"{STEPS} limit %s", values),
                    db.execute(f"{FILE_ROWS} and number > %s limit %s", values),
                ]
                db.execute("commit")
            return [cursor.fetchall() for cursor in cursors]

        states, changes, steps, files = self._again(read_all)
        if max(len(changes), len(steps), len(files)) > most:
            return None
        state = SpaceState(*states[0])
        return state, [*with_steps(changes, steps)], [FileRow(*row) for row in files]

    @contextmanager
    def _pipeline(self, db: psycopg.Connection[Any]) -> Iterator[None]:
        """Send the statements of the block without waiting for each answer.

        If one is refused, the transaction is rolled back. Raises DatabaseAway, DatabaseRefused.
        """
        import psycopg

        try:
            with db.pipeline():
                yield
        except psycopg.Error as error:
            refused = self._translated(db, error)
            if not db.closed:
                db.rollback()
            raise refused from None

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Yield one state of the space, to be read from. Raises DatabaseAway, DatabaseRefused."""
        with self._transaction_begun(
            "set transaction isolation level repeatable read, read only"
        ) as db:
            yield Snapshot(db, self.space)

    @contextmanager
    def _transaction_begun(self, first: str, *values: str) -> Iterator[psycopg.Connection[Any]]:
        """A transaction with this statement done. Raises DatabaseAway, DatabaseRefused."""
        # A connection that was lost is made again
        self.newest()
        with self._connected() as db, db.transaction():
            db.execute(first, values)
            yield db

    def text(self, digest: str) -> bytes | None:
        """Return a text of the history by its SHA-256. None if the space does not have it."""
        sql = "select data from memoranda.text where space = %s and sha256 = %s"
        rows = self._rows(sql, self.space, digest)
        if rows:
            return bytes(rows[0][0])
        return None

    def reads(self) -> list[tuple[str, int, int]]:
        """Return (id, reads, last use) of the notes whose reads are not in their headers yet.

        The last use is in seconds since 1970.
        """
        sql = "select id, count, used from memoranda.access where space = %s order by id"
        return self._rows(sql, self.space)

    def add_reads(
        self,
        mark: UUID,
        restarted: Sequence[str],
        counts: Mapping[str, int],
        used: Mapping[str, int],
    ) -> None:
        """Add reads to the counts of the space.

        mark: a random number under which they are sent. Under the same mark they are not counted
            again.
        restarted: the ids of notes whose counts begin again from 0.
        counts, used: how often notes were read, and when they were last used (seconds since 1970),
            by id.
        """
        rows = [
            [self.space, id, counts.get(id, 0), used.get(id, 0)] for id in sorted({*counts, *used})
        ]
        with self._connected() as db, db.transaction():
            db.execute(
                "insert into memoranda.counted (space, mark) values (%s, %s)", [self.space, mark]
            )
            sql = "delete from memoranda.access where space = %s and id = any(%s)"
            if restarted:
                db.execute(sql, [self.space, [*restarted]])
            sql = (
                "insert into memoranda.access (space, id, count, used) values (%s, %s, %s, %s) on conflict "
                "(space, id) do update set count = access.count + excluded.count, "
                "used = greatest(access.used, excluded.used)"
            )
            db.cursor().executemany(sql, rows)

    def has_counted(self, mark: UUID) -> bool:
        """Whether reads were added under this mark."""
        sql = "select 1 from memoranda.counted where space = %s and mark = %s"
        return bool(self._rows(sql, self.space, mark))

    def forget_reads(self, ids: Sequence[str]) -> None:
        """Delete all reads of these notes."""
        sql = "delete from memoranda.access where space = %s and id = any(%s)"
        with self._connected() as db:
            db.execute(sql, [self.space, [*ids]])

    def forget_mark(self, mark: UUID) -> None:
        """Delete a mark: no replica can send its reads again."""
        sql = "delete from memoranda.counted where space = %s and mark = %s"
        with self._connected() as db:
            db.execute(sql, [self.space, mark])

    def rewrite_tables(self) -> list[str]:
        """Write the tables of the space again without their dead rows, so far as the role owns them.

        Returns sentences that say what could not be. Raises DatabaseAway, DatabaseRefused.
        """
        from psycopg import errors, sql

        names = {
            "shared": [*_SHARED],
            "partitioned": [*_PARTITIONED],
            "suffix": sha256(self.space.encode())[:12],
        }
        left: list[str] = []
        with self._connected() as db:
            tables = [row[0] for row in db.execute(_OWN_TABLES, names).fetchall()]
            missing = len(_SHARED) + len(_PARTITIONED) - len(tables)
            if missing > 0:
                left.append(f"dead rows of {missing} tables that the role does not own")
            # Rewriting needs a table for itself. It does not wait long for other sessions.
            db.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(_VACUUM_WAITS)))
            try:
                for table in tables:
                    name = sql.Identifier(*table.split("."))
                    try:
                        db.execute(sql.SQL("vacuum (full) {}").format(name))
                    except errors.LockNotAvailable:
                        # This needs no table for itself, and frees the rows without moving others.
                        db.execute(sql.SQL("vacuum {}").format(name))
                        left.append(f"dead rows of {table}, which another session is using")
                sessions = db.execute(_OTHER_SNAPSHOTS).fetchall()[0][0]
            finally:
                db.execute("reset lock_timeout")
        if sessions:
            left.append(
                f"dead rows that {sessions} other sessions with an open transaction may still see"
            )
        return left

    def keeps_elsewhere(self) -> list[str]:
        """Return sentences about other places where the server keeps former contents of its tables, as far
        as known.
        """
        sql = "select name, setting from pg_settings where name = any(%s)"
        settings = dict(self._rows(sql, [name for name, _, _ in _KEEPING]))
        found = ["the server's write-ahead log, until it is recycled", "backups of the server"]
        for name, values, text in _KEEPING:
            value = settings.get(name, "")
            if values is not None:
                is_on = value in values
            else:
                is_on = value not in ("", "-1")
            if is_on:
                found.append(f"{text} ({name} = {value})")
        replicas = self._rows("select count(*) from pg_stat_replication")[0][0]
        slots = self._rows("select count(*) from pg_replication_slots")[0][0]
        if replicas or slots:
            found.append("standby servers, until they have replayed it")
        return found

    def shared_files(self) -> dict[str, bytes]:
        """Return the files that are the same on all replicas: name -> bytes."""
        sql = "select name, data from memoranda.shared_file where space = %s"
        return {name: bytes(data) for name, data in self._rows(sql, self.space)}

    # --- locks

    def take_lock(self) -> SpaceState:
        """Keep all other writers of the space out, until `release_lock` or the end of the
        connection.

        Returns the state of the space. Raises Busy, DatabaseAway, DatabaseRefused.
        """
        try:
            if not self._again(self._try_lock):
                block_for(self._wait_for_lock, LOCK_WAITS)
            self._locked = self._connection
            state = self._readable(self._state or self.newest())
            if state.writes > SCHEMA:
                raise DatabaseRefused(
                    self.server, "its notes are of a later version; upgrade memoranda to write"
                )
            return state
        except (Busy, DatabaseRefused):
            self.release_lock()
            raise
        except BaseException:
            # Interrupted: it is unknown whether the lock was taken.
            self.close()
            raise

    def _try_lock(self, db: psycopg.Connection[Any]) -> bool:
        """Take the lock if it is free, and read the space's state in the same round trip.

        Returns whether the lock was taken.
        """
        with db.pipeline():
            got = db.execute("select pg_try_advisory_lock(%s)", [self._writers])
            found_row = db.execute(STATE, [self.space])
        row = found_row.fetchone()
        if row:
            self._state = SpaceState(*row)
        else:
            self._state = None
        return bool(got.fetchall()[0][0])

    def _wait_for_lock(self, seconds: float) -> None:
        """Wait for a lock that another process holds, and read the space's state. Raises Busy."""
        if seconds <= 0:
            raise Busy(self.holder())
        import psycopg

        with self._connected() as db:
            try:
                # The time is for this transaction, the lock for the session
                with (
                    db.pipeline(),
                    db.transaction(),
                ):
                    db.execute(
                        "select set_config('lock_timeout', %s, true)",
                        [f"{max(1, int(seconds * 1000))}ms"],
                    )
                    db.execute("select pg_advisory_lock(%s)", [self._writers])
                    found_row = db.execute(STATE, [self.space])
            except psycopg.errors.LockNotAvailable:
                raise Busy(self.holder()) from None
            row = found_row.fetchone()
        if row:
            self._state = SpaceState(*row)
        else:
            self._state = None

    def holder(self) -> str:
        """Return the program that holds the writers' lock, as the server names it."""
        import psycopg

        sql = (
            "select application_name from pg_locks join pg_stat_activity using (pid) where locktype = 'advisory' "
            "and granted and classid = %s and objid = %s and pid <> pg_backend_pid()"
        )
        key = self._writers & 0xFFFFFFFFFFFFFFFF
        with suppress(psycopg.Error):
            row = self._db.execute(sql, [key >> 32, key & 0xFFFFFFFF]).fetchone()
            if row:
                return str(row[0]).removeprefix("memoranda ") or "another program"
        return "another program"

    def release_lock(self) -> None:
        """Release the writers' lock. A lost connection has released it already."""
        import psycopg

        db = self._locked
        self._locked = None
        if db is not None and not db.closed:
            with suppress(psycopg.Error):
                db.execute("select pg_advisory_unlock(%s)", [self._writers])

    def passes_by_policies(self) -> str:
        """Return the role of the connection if row-level security does not apply to it, else ""."""
        sql = "select rolname from pg_roles where rolname = current_user and (rolsuper or rolbypassrls)"
        rows = self._rows(sql)
        if rows:
            return str(rows[0][0])
        return ""

    def runs_jobs(self) -> bool:
        """Whether this replica does the upkeep of the space.

        The first replica that asks does, until its connection ends.
        """
        sql = (
            "select case when exists (select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() "
            "and classid = %s and objid = %s) then true else pg_try_advisory_lock(%s) end"
        )
        key = self._jobs & 0xFFFFFFFFFFFFFFFF
        self._has_jobs = bool(self._rows(sql, key >> 32, key & 0xFFFFFFFF, self._jobs)[0][0])
        return self._has_jobs

    # --- changes

    def commit(
        self,
        changes: Sequence[tuple[Change, Sequence[Step]]],
        folded: Mapping[str, ReadRow] | None = None,
    ) -> None:
        """Commit changes with their steps, all or none. The lock must be held.

        On return the changes are durable.

        folded: the reads that the new texts count in their headers, by key. None for none.

        Raises Conflict when a file is not as it was read, Exists when a destination is taken,
        DatabaseRefused or DatabaseAway: then nothing changed. Raises OutcomeUnknown when the
        connection was lost and the server cannot be asked.
        """
        statements = [
            statement
            for change, steps in changes
            for step in steps
            for statement in of_step(self.server, self.space, change.number, step)
        ]
        if folded:
            statements += of_fold(self.space, folded)
        self._write(statements, [change for change, _ in changes])

    def append(self, change: Change, texts: Mapping[str, bytes]) -> None:
        """Commit a change that changes no note, with texts it keeps."""
        sql = "insert into memoranda.text (space, sha256, data) values (%s, %s, %s) on conflict do nothing"
        statements = [
            SqlStatement(sql, [self.space, digest, data]) for digest, data in texts.items()
        ]
        self._write(statements, [change])

    def _write(self, statements: Sequence[SqlStatement], changes: Sequence[Change]) -> None:
        """Commit changes together with other statements, in one round trip. The lock must be held.

        statements: the statements. Each says how many rows it must touch, and the error if it does
            not.

        Raises the error of the first statement that did not do what it should; then nothing
        changed.
        """
        ids = [uuid4() for _ in changes]
        numbers = [change.number for change in changes]
        statements_of_changes = chain.from_iterable(
            of_change(self.space, change, change_id)
            for change, change_id in zip(changes, ids, strict=True)
        )
        # The number of the last change shows whether another writer came between.
        update_of_number = SqlStatement(
            "update memoranda.space set last = %s where name = %s and last = %s",
            [numbers[-1], self.space, numbers[0] - 1],
            1,
            lambda: DatabaseRefused(self.server, "somebody wrote there without the lock"),
        )
        transaction = [*statements, *statements_of_changes, update_of_number]

        db = self._locked_connection
        try:
            # All statements are sent before the first answer is read.
            with self._pipeline(db):
                db.execute("begin")
                cursors = [db.execute(statement.sql, statement.values) for statement in transaction]
            for statement, cursor in zip(transaction, cursors, strict=True):
                if statement.rows is not None and cursor.rowcount != statement.rows:
                    db.rollback()
                    assert statement.refused is not None
                    raise statement.refused()
            self._acknowledge(ids[-1])
        except MemorandaError:
            raise
        except BaseException:
            # Interrupted: sent statements must not become part of the next transaction.
            self.close()
            raise

    def _acknowledge(self, id: UUID) -> None:
        """Commit the transaction, whose last change has this id. If the connection is lost, ask the
        server.

        Raises DatabaseRefused, DatabaseAway, and OutcomeUnknown if the server cannot be asked.
        """
        import psycopg

        db = self._locked_connection
        try:
            db.execute("commit")
            return
        except psycopg.Error as error:
            if not (db.closed or db.broken):
                raise DatabaseRefused(self.server, reason_of(error)) from None
        self.close()
        try:
            # Whoever has it, the lost session has ended, so the answer stands
            self.take_lock()
            sql = "select 1 from memoranda.change where space = %s and id = %s"
            with self._connected() as db:
                is_there = bool(db.execute(sql, [self.space, id]).fetchall())
        except (Busy, DatabaseRefused):
            raise OutcomeUnknown(self.server) from None
        if not is_there:
            raise DatabaseAway(self.server, "the connection was lost")

    def revise(self, revised: Iterable[Change], removed: Collection[int] = ()) -> None:
        """Replace changes by revised ones with the same numbers. The lock must be held.

        The space begins a new epoch, which the revised changes get. So every replica sees which
        changes to fetch again.

        removed: the numbers of changes to delete.
        """
        self._locked_connection  # noqa: B018
        with self._connected() as db, db.transaction():
            sql = "update memoranda.space set epoch = epoch + 1 where name = %s returning epoch"
            epoch = db.execute(sql, [self.space]).fetchall()[0][0]
            changes = list(revised)
            numbers = [*removed, *(change.number for change in changes)]
            ids = self._remove_changes(db, numbers)
            for change in changes:
                # A writer that lost its connection may still ask for the id
                change_id = ids.get(change.number) or uuid4()
                for statement in of_change(self.space, change, change_id, epoch):
                    db.execute(statement.sql, statement.values)

    def _remove_changes(
        self, db: psycopg.Connection[Any], numbers: Collection[int]
    ) -> dict[int, UUID]:
        """Delete changes. Returns their ids by number.

        numbers: the numbers of the changes.
        """
        values = [self.space, [*numbers]]
        db.execute("delete from memoranda.step where space = %s and change = any(%s)", values)
        sql = "delete from memoranda.change where space = %s and number = any(%s) returning number, id"
        return dict(db.execute(sql, values).fetchall())

    def sweep(self, wanted_digests: set[str]) -> int:
        """Remove the texts of the history except these, and return their number. The lock must be held."""
        sql = "delete from memoranda.text where space = %s and sha256 <> all(%s)"
        with self._connected() as db:
            return db.execute(sql, [self.space, [*wanted_digests]]).rowcount

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Keep others from changing shared files until the end of the block, which commits."""
        lock = "select pg_advisory_xact_lock(hashtext('memoranda files'), hashtext(%s))"
        with self._transaction_begun(lock, self.space):
            yield

    def put_shared(self, name: str, data: bytes | None) -> None:
        """Write a shared file, or remove it; inside `sharing`."""
        with self._connected() as db:
            db.execute(
                "delete from memoranda.shared_file where space = %s and name = %s",
                [self.space, name],
            )
            if data is not None:
                sql = "insert into memoranda.shared_file (space, name, data) values (%s, %s, %s)"
                db.execute(sql, [self.space, name, data])
            db.execute("update memoranda.space set files = files + 1 where name = %s", [self.space])
