"""One connection to the database of a space: migrations, the lock of its writers, and all SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID, uuid4

from memoranda import former_name
from memoranda.clock import block_for
from memoranda.errors import Busy, DatabaseAway, DatabaseRefused, MemorandaError, OutcomeUnknown
from memoranda.ledger.change_rows import with_steps
from memoranda.ledger.postgres.server_connection import Connection, reason_of, single_value
from memoranda.ledger.postgres.space_rows import (
    CHANGES,
    FILE_ROWS,
    STATE,
    STEPS,
    FileRow,
    Snapshot,
    SpaceNews,
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


class _KeepingSetting(NamedTuple):
    """A server setting that may make the server keep table contents at another place.

    name: the name of the setting.
    off_values: the values that turn this off.
    text: tells what the server does at all other values.
    """

    name: str
    off_values: tuple[str, ...]
    text: str


_KEEPING_SETTINGS = (
    _KeepingSetting("log_statement", ("none", "ddl"), "the server writes statements into its log"),
    _KeepingSetting(
        "log_min_duration_statement", ("-1",), "the server writes slow statements into its log"
    ),
    _KeepingSetting("archive_mode", ("off",), "the write-ahead log is archived"),
)


class SpaceDatabase(Connection):
    """A space of the database at `url`. For one thread at a time."""

    def __init__(self, url: str, space: str):
        super().__init__(url, space)
        # The connection that took the lock of the writers. It may be closed by now.
        self._lock_connection: psycopg.Connection[Any] | None = None
        # The end of the names of the space's partitions: a table is `note_0a1b2c3d4e5f`. A name of
        # a space may be longer than PostgreSQL allows, so it is 12 digits of a hash.
        self._suffix = sha256(space.encode())[:12]
        # The state of the space when the lock was taken
        self._state: SpaceState | None = None
        self._has_jobs = False
        # The keys of the two advisory locks: of the writers, and of the replica that does the
        # upkeep. A key is a number of 8 bytes.
        digest = bytes.fromhex(sha256(f"memoranda\0{space}".encode()))
        self._writers_lock_key = int.from_bytes(digest[:8], signed=True)
        self._jobs_lock_key = int.from_bytes(digest[8:16], signed=True)

    def close(self) -> None:
        """End the connection, and with it the locks it holds."""
        db = self._connection
        if self._has_jobs and db is not None and not db.closed:
            # So another replica can do the upkeep before the server notices the end
            with suppress(DatabaseRefused), self._connected() as db:
                db.execute("select pg_advisory_unlock_all()")
        self._has_jobs = False
        super().close()

    @property
    def _open_lock_connection(self) -> psycopg.Connection[Any]:
        """The connection that took the lock.

        Raises DatabaseAway if it was lost, and the lock with it.
        """
        self._check_lock_is_held()
        assert self._lock_connection is not None
        return self._lock_connection

    def _check_lock_is_held(self) -> None:
        """Raise DatabaseAway if the connection that took the lock was lost, and the lock with it."""
        if self._lock_connection is None or self._lock_connection.closed:
            raise DatabaseAway(self.server, "the connection was lost")

    # --- spaces and migrations

    def prepare(self) -> SpaceState:
        """Bring the schema up to date, and make the space if it is missing. Returns its state.

        A space is a partition of each table, and a row of the table `space`. Raises
        DatabaseRefused, DatabaseAway.
        """
        from psycopg import sql

        self._with_retry(self._migrate)
        # Nearly always the space is there, which is known without a lock.
        state = self._read_state(self._db)
        if state is not None:
            return state
        with self._connected() as db, db.transaction():
            # Migrations and new spaces both change the tables that all spaces share.
            db.execute("select pg_advisory_xact_lock(hashtext('memoranda migrations'))")
            # Another process may have made the space before this one got the lock
            state = self._read_state(db)
            if state is not None:
                return state
            # Each table is made first and attached then: `create table … partition of` would lock
            # the parent, and stop the readers of all other spaces.
            for table in _PARTITIONED:
                parent = sql.Identifier("memoranda", table)
                table_name = sql.Identifier("memoranda", f"{table}_{self._suffix}")
                db.execute(
                    sql.SQL("create table {} (like {} including all)").format(table_name, parent)
                )
                self._attach(db, parent, table_name)
            db.execute("insert into memoranda.space (name) values (%s)", [self.space])
            state = self._read_state(db)
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
        if self._last_migration(db) >= SCHEMA:
            return
        with db.transaction():
            db.execute("select pg_advisory_xact_lock(hashtext('memoranda migrations'))")
            if single_value(db, former_name.HAS_FORMER_SCHEMA):
                db.execute(former_name.RENAME_SCHEMA)
            db.execute("create schema if not exists memoranda")
            db.execute(
                "create table if not exists memoranda.version (number integer primary key, "
                "reads integer not null, writes integer not null, at timestamptz not null default now())"
            )
            # A long history may take longer than a call is allowed to
            db.execute("set local statement_timeout = 0")
            scripts = files("memoranda.ledger.postgres").joinpath("migrations")
            for number in range(self._last_migration(db) + 1, SCHEMA + 1):
                script = scripts.joinpath(f"{number:03}.sql").read_text("utf-8")
                db.execute(script)
                # Its first two lines have the `reads` and `writes` of SpaceState
                first_lines = script.splitlines()[:2]
                reads, writes = (int(line.partition(": ")[2]) for line in first_lines)
                db.execute(
                    "insert into memoranda.version (number, reads, writes) values (%s, %s, %s)",
                    [number, reads, writes],
                )

    def _last_migration(self, db: psycopg.Connection[Any]) -> int:
        """Return the number of the last migration that the database has, 0 for none."""
        if single_value(db, "select to_regclass('memoranda.version')") is None:
            return 0
        return int(single_value(db, "select coalesce(max(number), 0) from memoranda.version"))

    # --- what there is

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that only reads."""
        return self._with_retry(lambda db: db.execute(sql, values).fetchall())

    def newest(self) -> SpaceState:
        """Return the present state of the space. It takes one round trip.

        Raises DatabaseAway, DatabaseRefused.
        """
        state = self._with_retry(self._read_state)
        if state is None:
            raise DatabaseRefused(self.server, f"there is no space {self.space} any more")
        return state

    def _read_state(self, db: psycopg.Connection[Any]) -> SpaceState | None:
        """Return the present state of the space. None if the space does not exist."""
        row = db.execute(STATE, [self.space]).fetchone()
        if row is None:
            return None
        state = SpaceState(*row)
        self._check_readable(state)
        return state

    def _check_readable(self, state: SpaceState) -> None:
        """Raise DatabaseRefused if the tables are of a later version."""
        if state.reads > SCHEMA:
            raise DatabaseRefused(
                self.server, "its notes are of a later version; upgrade memoranda"
            )

    def has_more_than(self, notes: int) -> bool:
        """Whether the space has more notes than this."""
        sql = "select count(*) from (select from memoranda.note where space = %s limit %s) as found"
        # One note more is enough to know, so the server counts no further
        ((count,),) = self._rows(sql, self.space, notes + 1)
        return bool(count > notes)

    def news(self, since: int, most: int) -> SpaceNews | None:
        """Fetch everything in the space that is newer than a change, in one round trip.

        since: the number of the change.
        most: the highest number of changes, of steps and of files to fetch.

        Returns None if there are more. Raises DatabaseAway, DatabaseRefused.
        """
        return self._with_retry(lambda db: self._read_news(db, since, most))

    def _read_news(self, db: psycopg.Connection[Any], since: int, most: int) -> SpaceNews | None:
        """Do `news` on a connection. None if there are more than `most`."""
        from psycopg.rows import dict_row

        # One row more than `most` is enough to see that there are too many
        values = [self.space, since, most + 1]
        # All statements are sent before the first answer is read
        with self._pipeline(db):
            db.execute("begin isolation level repeatable read, read only")
            state_cursor = db.execute(STATE, [self.space])
            change_cursor = db.cursor(row_factory=dict_row).execute(f"{CHANGES} limit %s", values)
            step_cursor = db.cursor(row_factory=dict_row).execute(f"{STEPS} limit %s", values)
            file_cursor = db.execute(f"{FILE_ROWS} and number > %s limit %s", values)
            db.execute("commit")

        state = SpaceState(*state_cursor.fetchall()[0])
        changes = change_cursor.fetchall()
        steps = step_cursor.fetchall()
        files = file_cursor.fetchall()
        if max(len(changes), len(steps), len(files)) > most:
            return None
        return SpaceNews(state, [*with_steps(changes, steps)], [FileRow(*row) for row in files])

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
            # This closes a lost connection
            error_for_caller = self._error_of(db, error)
            if not db.closed:
                db.rollback()
            raise error_for_caller from None

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Yield the space as it is now, to be read from. Raises DatabaseAway, DatabaseRefused."""
        isolation = "set transaction isolation level repeatable read, read only"
        with self._transaction_after(isolation) as db:
            yield Snapshot(db, self.space)

    @contextmanager
    def _transaction_after(self, first: str, *values: str) -> Iterator[psycopg.Connection[Any]]:
        """Run the block in a transaction. Raises DatabaseAway, DatabaseRefused.

        first: the first statement of the transaction, with placeholders for `values`.
        """
        # This makes a lost connection again, which is not possible inside a transaction
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
        counts: how often notes were read, by id.
        used: when notes were last used (seconds since 1970), by id.
        """
        rows = [
            [self.space, note_id, counts.get(note_id, 0), used.get(note_id, 0)]
            for note_id in sorted({*counts, *used})
        ]
        with self._connected() as db, db.transaction():
            # This fails if the mark was counted
            db.execute(
                "insert into memoranda.counted (space, mark) values (%s, %s)", [self.space, mark]
            )
            if restarted:
                sql = "delete from memoranda.access where space = %s and id = any(%s)"
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
        """Rewrite the tables of the space without the rows that were deleted (dead rows).

        Returns phrases about the dead rows that could not be removed, such as rows of tables that
        the role does not own. Raises DatabaseAway, DatabaseRefused.
        """
        from psycopg import sql

        names = {
            "shared": [*_SHARED],
            "partitioned": [*_PARTITIONED],
            "suffix": self._suffix,
        }
        remaining: list[str] = []
        with self._connected() as db:
            tables = [row[0] for row in db.execute(_OWN_TABLES, names).fetchall()]
            missing = len(_SHARED) + len(_PARTITIONED) - len(tables)
            if missing > 0:
                remaining.append(f"dead rows of {missing} tables that the role does not own")
            # Rewriting needs a table for itself. It does not wait long for other sessions.
            db.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(_VACUUM_WAITS)))
            try:
                for table in tables:
                    is_rewritten = self._rewrite_table(db, table)
                    if not is_rewritten:
                        remaining.append(f"dead rows of {table}, which another session is using")
                sessions = single_value(db, _OTHER_SNAPSHOTS)
            finally:
                db.execute("reset lock_timeout")
        if sessions:
            remaining.append(
                f"dead rows that {sessions} other sessions with an open transaction may still see"
            )
        return remaining

    def _rewrite_table(self, db: psycopg.Connection[Any], table: str) -> bool:
        """Rewrite a table without its dead rows. Returns False if another session is using it.

        Then the space of the dead rows is only marked as free.

        table: the name of the table with its schema.
        """
        from psycopg import errors, sql

        name = sql.Identifier(*table.split("."))
        try:
            db.execute(sql.SQL("vacuum (full) {}").format(name))
        except errors.LockNotAvailable:
            db.execute(sql.SQL("vacuum {}").format(name))
            return False
        return True

    def keeps_elsewhere(self) -> list[str]:
        """Return phrases about other places where the server keeps former contents of its tables.

        There may be more places, which the server does not know.
        """
        sql = "select name, setting from pg_settings where name = any(%s)"
        value_of_setting = dict(self._rows(sql, [setting.name for setting in _KEEPING_SETTINGS]))
        places = ["the server's write-ahead log, until it is recycled", "backups of the server"]
        for setting in _KEEPING_SETTINGS:
            value = value_of_setting.get(setting.name, "")
            if value and value not in setting.off_values:
                places.append(f"{setting.text} ({setting.name} = {value})")
        ((connected_standbys,),) = self._rows("select count(*) from pg_stat_replication")
        # A slot keeps the log for a standby server that is not connected now
        ((slots,),) = self._rows("select count(*) from pg_replication_slots")
        if connected_standbys or slots:
            places.append("standby servers, until they have replayed it")
        return places

    def shared_files(self) -> dict[str, bytes]:
        """Return the files that are the same on all replicas: name -> bytes."""
        sql = "select name, data from memoranda.shared_file where space = %s"
        return {name: bytes(data) for name, data in self._rows(sql, self.space)}

    # --- locks

    def take_lock(self) -> SpaceState:
        """Take the lock that keeps all other writers of the space out.

        It is held until `release_lock`, or until the connection ends.

        Returns the state of the space. Raises Busy, DatabaseAway, DatabaseRefused.
        """
        try:
            was_free = self._with_retry(self._try_lock)
            if not was_free:
                block_for(self._wait_for_lock, LOCK_WAITS)
            self._lock_connection = self._connection
            # The state came with the lock, in one round trip. It is None only without a space:
            # then `newest` raises the error that says so.
            state = self._state or self.newest()
            self._check_readable(state)
            if state.writes > SCHEMA:
                raise DatabaseRefused(
                    self.server, "its notes are of a later version; upgrade memoranda to write"
                )
            return state
        except (Busy, DatabaseRefused):
            self.release_lock()
            raise
        except BaseException:
            # By an interrupt, it is unknown whether the lock was taken. The end of the connection
            # releases it.
            self.close()
            raise

    def _try_lock(self, db: psycopg.Connection[Any]) -> bool:
        """Take the lock if it is free, and read the space's state in the same round trip.

        Returns whether the lock was taken.
        """
        with db.pipeline():
            lock_cursor = db.execute("select pg_try_advisory_lock(%s)", [self._writers_lock_key])
            state_cursor = db.execute(STATE, [self.space])
        self._keep_state(state_cursor)
        return bool(lock_cursor.fetchall()[0][0])

    def _keep_state(self, cursor: psycopg.Cursor[Any]) -> None:
        """Keep the state of the space from the result of the query `STATE`."""
        row = cursor.fetchone()
        self._state = SpaceState(*row) if row is not None else None

    def _wait_for_lock(self, seconds: float) -> None:
        """Wait for a lock that another process holds, and read the space's state.

        seconds: how long to wait at most.

        Raises Busy, DatabaseAway, DatabaseRefused.
        """
        if seconds <= 0:
            raise Busy(self.holder())
        import psycopg

        with self._connected() as db:
            try:
                # The time limit ends with the transaction. The lock stays until the session ends.
                with db.pipeline(), db.transaction():
                    milliseconds = max(1, int(seconds * 1000))
                    db.execute("select set_config('lock_timeout', %s, true)", [f"{milliseconds}ms"])
                    db.execute("select pg_advisory_lock(%s)", [self._writers_lock_key])
                    state_cursor = db.execute(STATE, [self.space])
            except psycopg.errors.LockNotAvailable:
                raise Busy(self.holder()) from None
            self._keep_state(state_cursor)

    def holder(self) -> str:
        """Return the program that holds the writers' lock, as the server names it."""
        import psycopg

        sql = (
            "select application_name from pg_locks join pg_stat_activity using (pid) where locktype = 'advisory' "
            "and granted and classid = %s and objid = %s and pid <> pg_backend_pid()"
        )
        with suppress(psycopg.Error):
            row = self._db.execute(sql, _halves(self._writers_lock_key)).fetchone()
            if row:
                return str(row[0]).removeprefix("memoranda ") or "another program"
        return "another program"

    def release_lock(self) -> None:
        """Release the writers' lock. A lost connection has released it already."""
        import psycopg

        db = self._lock_connection
        self._lock_connection = None
        if db is not None and not db.closed:
            with suppress(psycopg.Error):
                db.execute("select pg_advisory_unlock(%s)", [self._writers_lock_key])

    def role_without_policies(self) -> str:
        """Return the role of the connection if row-level security does not apply to it, else ""."""
        sql = "select rolname from pg_roles where rolname = current_user and (rolsuper or rolbypassrls)"
        rows = self._rows(sql)
        if rows:
            return str(rows[0][0])
        return ""

    def runs_jobs(self) -> bool:
        """Whether this replica does the upkeep of the space, so that only one replica does.

        The first replica that calls this takes it over, until its connection ends.
        """
        sql = (
            "select case when exists (select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() "
            "and classid = %s and objid = %s) then true else pg_try_advisory_lock(%s) end"
        )
        rows = self._rows(sql, *_halves(self._jobs_lock_key), self._jobs_lock_key)
        self._has_jobs = bool(rows[0][0])
        return self._has_jobs

    # --- changes

    def commit(
        self,
        changes: Sequence[tuple[Change, Sequence[Step]]],
        folded: Mapping[str, ReadRow] | None = None,
    ) -> None:
        """Commit changes with their steps, all or none. The lock must be held.

        On return the changes are durable.

        changes: each change with the steps that it consists of.
        folded: the reads that the changes add to headers of notes, by the key of the note. They are
            subtracted from the counts of the space. None for no reads.

        Raises Conflict when a file is not as it was read, Exists when a destination is taken,
        DatabaseRefused or DatabaseAway: then nothing changed. Raises OutcomeUnknown when the
        connection was lost and the server cannot be asked.
        """
        statements: list[SqlStatement] = []
        for change, steps in changes:
            for step in steps:
                statements += of_step(self.server, self.space, change.number, step)
        if folded:
            statements += of_fold(self.space, folded)
        self._write(statements, [change for change, _ in changes])

    def append(self, change: Change, texts: Mapping[str, bytes]) -> None:
        """Commit a change that changes no note.

        texts: the texts that the change refers to, by SHA-256. The history of the space keeps them.
        """
        sql = "insert into memoranda.text (space, sha256, data) values (%s, %s, %s) on conflict do nothing"
        statements = [
            SqlStatement(sql, [self.space, digest, data]) for digest, data in texts.items()
        ]
        self._write(statements, [change])

    def _write(self, statements: Sequence[SqlStatement], changes: Sequence[Change]) -> None:
        """Commit changes together with other statements, in one round trip. The lock must be held.

        statements: the statements. Each says how many rows it must touch.

        Raises the error of the first statement that touches another number of rows. Then nothing
        changed.
        """
        ids = [uuid4() for _ in changes]
        transaction = [*statements]
        for change, change_id in zip(changes, ids, strict=True):
            transaction += of_change(self.space, change, change_id)
        # The number of the last change shows whether another writer came between.
        transaction.append(
            SqlStatement(
                "update memoranda.space set last = %s where name = %s and last = %s",
                [changes[-1].number, self.space, changes[0].number - 1],
                rows=1,
                refused=lambda: DatabaseRefused(
                    self.server, "somebody wrote there without the lock"
                ),
            )
        )

        db = self._open_lock_connection
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
            self._commit_transaction(ids[-1])
        except MemorandaError:
            raise
        except BaseException:
            # After an interrupt, the statements that were sent must not become part of the next
            # transaction
            self.close()
            raise

    def _commit_transaction(self, last_id: UUID) -> None:
        """Commit the open transaction. If the connection is lost, find out whether that succeeded.

        last_id: the id of its last change.

        Raises DatabaseRefused, DatabaseAway, and OutcomeUnknown if the server cannot be asked.
        """
        import psycopg

        db = self._open_lock_connection
        try:
            db.execute("commit")
            return
        except psycopg.Error as error:
            is_lost = db.closed or db.broken
            if not is_lost:
                raise DatabaseRefused(self.server, reason_of(error)) from None
        self.close()
        try:
            # The lock is free only after the lost session ended. So nothing can be committed later.
            self.take_lock()
            sql = "select 1 from memoranda.change where space = %s and id = %s"
            with self._connected() as db:
                is_committed = bool(db.execute(sql, [self.space, last_id]).fetchall())
        except (Busy, DatabaseRefused):
            raise OutcomeUnknown(self.server) from None
        if not is_committed:
            raise DatabaseAway(self.server, "the connection was lost")

    def revise(self, revised: Iterable[Change], removed: Collection[int] = ()) -> None:
        """Replace changes by revised ones with the same numbers. The lock must be held.

        The space begins a new epoch, which the revised changes get. So every replica sees which
        changes to fetch again.

        revised: the revised changes. Each replaces the change that has its number.
        removed: the numbers of changes to delete.

        Raises DatabaseAway, DatabaseRefused.
        """
        self._check_lock_is_held()
        with self._connected() as db, db.transaction():
            sql = "update memoranda.space set epoch = epoch + 1 where name = %s returning epoch"
            epoch = single_value(db, sql, [self.space])
            changes = list(revised)
            numbers = [*removed, *(change.number for change in changes)]
            ids = self._remove_changes(db, numbers)
            for change in changes:
                # The id stays, since a writer that lost its connection may still look for it
                change_id = ids.get(change.number) or uuid4()
                for statement in of_change(self.space, change, change_id, epoch):
                    db.execute(statement.sql, statement.values)

    def _remove_changes(
        self, db: psycopg.Connection[Any], numbers: Collection[int]
    ) -> dict[int, UUID]:
        """Delete the changes with these numbers. Returns their ids by number."""
        values = [self.space, [*numbers]]
        db.execute("delete from memoranda.step where space = %s and change = any(%s)", values)
        sql = "delete from memoranda.change where space = %s and number = any(%s) returning number, id"
        return dict(db.execute(sql, values).fetchall())

    def sweep(self, wanted_digests: set[str]) -> int:
        """Remove the texts of the history except some. The lock must be held.

        wanted_digests: the SHA-256 of the texts that stay.

        Returns how many were removed.
        """
        sql = "delete from memoranda.text where space = %s and sha256 <> all(%s)"
        with self._connected() as db:
            return db.execute(sql, [self.space, [*wanted_digests]]).rowcount

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Run the block in a transaction. Meanwhile nobody else can change shared files."""
        lock = "select pg_advisory_xact_lock(hashtext('memoranda files'), hashtext(%s))"
        with self._transaction_after(lock, self.space):
            yield

    def put_shared(self, name: str, data: bytes | None) -> None:
        """Write a shared file, inside of `sharing`.

        name: the name of the file.
        data: its bytes. None removes the file.
        """
        with self._connected() as db:
            db.execute(
                "delete from memoranda.shared_file where space = %s and name = %s",
                [self.space, name],
            )
            if data is not None:
                sql = "insert into memoranda.shared_file (space, name, data) values (%s, %s, %s)"
                db.execute(sql, [self.space, name, data])
            db.execute("update memoranda.space set files = files + 1 where name = %s", [self.space])


def _halves(lock_key: int) -> tuple[int, int]:
    """Return the upper and the lower 32 bits of the key of a lock, as `pg_locks` shows them."""
    # A key may be negative, but `pg_locks` shows its bits as two numbers without a sign
    bits = lock_key & 0xFFFFFFFFFFFFFFFF
    upper_half = bits >> 32
    lower_half = bits & 0xFFFFFFFF
    return upper_half, lower_half
