"""One connection to the database of a space: migrations, the lock of its writers, and all SQL."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

from commonplace.clock import block_for, parse_stamp
from commonplace.errors import Busy, ConfigError, Conflict, DatabaseAway, DatabaseRefused, Exists, OutcomeUnknown
from commonplace.store.base import sha256
from commonplace.store.files import LOCK_WAITS

if TYPE_CHECKING:
    import psycopg

    from commonplace.store.change import Step
    from commonplace.store.journal import Change

T = TypeVar("T")
SCHEMA = 1
"""The number of the last migration."""
OLDEST_SERVER = 150000
_PARTITIONED = ("note", "journal", "blob", "access")
_CONNECT_SECONDS = 3
_AWAY_SECONDS = 1.0
"""For so long after a failed connection reads do not try again."""
_ROWS = 200
"""Rows of notes fetched at once."""
_SETTINGS = {
    "default_transaction_isolation": "read committed", "plan_cache_mode": "force_custom_plan",
    "tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
}  # fmt: skip
"""Plans are made for the one partition; the server notices within 25 s that a machine is gone, and frees its lock."""
_REASONS = {
    "28": "it refuses this user or password", "3D000": "it has no database of this name",
    "42501": "this user may not do that; see docs/teams.md for the rights it needs",
    "25006": "it is a read-only standby; name the primary, or all servers with target_session_attrs=read-write",
    "53100": "its disk is full", "53300": "all its connections are in use", "53": "it is out of resources",
    "54000": "the path is too long for it", "57014": "it took too long",
}  # fmt: skip
"""What a server says, by SQLSTATE or the first digits of it."""


class State(NamedTuple):
    """Where a space is: `last` is the number of its latest change; `epoch` and `files` as in the table. `reads` and
    `writes`: the oldest SCHEMA that may."""

    id: str
    last: int
    epoch: int
    files: int
    reads: int
    writes: int


_STATE = (
    "select id::text, last, epoch, files, (select max(reads) from commonplace.version), "
    "(select max(writes) from commonplace.version) from commonplace.space where name = %s"
)


class Row(NamedTuple):
    """A file, folder or link of a project."""

    project: str
    path: str
    kind: str
    body: bytes | None
    sha256: str | None
    link: str | None
    mode: int | None
    changed_ns: int | None


@dataclass(slots=True)
class _Statement:
    """One statement of a commit: how many rows it must touch (None: any), and what it is if it does not."""

    sql: str
    values: Sequence[Any]
    rows: int | None = None
    refused: Callable[[], Exception] | None = None


class Database:
    """A space of the database at `url`. For one thread at a time. The connection is made when it is needed, and made
    again when it was lost; what was said before is then never said twice."""

    def __init__(self, url: str, space: str):
        self._url, self.space = url, space
        self._connection: psycopg.Connection[Any] | None = None
        self._locked: psycopg.Connection[Any] | None = None
        self._state: State | None = None
        self._has_jobs = False
        self._away_until = 0.0
        self._away: DatabaseAway | None = None
        key = sha256(f"commonplace\0{space}".encode())
        self._writers, self._jobs = (int.from_bytes(bytes.fromhex(key[at : at + 16]), signed=True) for at in (0, 16))
        self.server = _server(url)

    def close(self) -> None:
        """End the connection, and with it the locks it holds."""
        if self._connection is not None:
            if self._has_jobs and not self._connection.closed:  # the next one need not wait until the server notices
                with suppress(DatabaseRefused):
                    self._run(lambda db: db.execute("select pg_advisory_unlock_all()"))
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    @property
    def _db(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        return self._connection

    @property
    def _locked_connection(self) -> psycopg.Connection[Any]:
        """The connection that took the lock. Raises DatabaseAway when it was lost: another one does not have it."""
        if self._locked is None or self._locked.closed:
            raise DatabaseAway(self.server, "the connection was lost")
        return self._locked

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            import psycopg
        except ImportError:
            raise ConfigError("notes in PostgreSQL need the extra: pip install 'commonplace[postgres]'") from None
        self.close()
        if self._away is not None and time.monotonic() < self._away_until:
            raise self._away
        name = f"commonplace {socket.gethostname()} {os.getpid()} {os.path.basename(sys.argv[0])[:16]}"
        try:
            db = psycopg.connect(
                self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS, application_name=name,
                client_encoding="utf8", tcp_user_timeout=5000,
            )  # fmt: skip
        except psycopg.Error as error:
            self._away_until = time.monotonic() + _AWAY_SECONDS
            self._away = DatabaseAway(self.server, _reason(error))
            raise self._away from None
        if db.info.server_version < OLDEST_SERVER:
            db.close()
            raise DatabaseRefused(self.server, "it must be PostgreSQL 15 or later")
        self._away = None
        settings = _SETTINGS | {"commonplace.space": self.space}
        db.execute(
            "select " + ", ".join(["set_config(%s, %s, false)"] * len(settings)),
            [each for pair in settings.items() for each in pair],
        )
        return db

    def _run(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """What `work` does with the connection; its errors in our words."""
        import psycopg

        db = self._db
        try:
            return work(db)
        except psycopg.errors.LockNotAvailable:
            raise Busy(self._holder()) from None
        except psycopg.Error as error:
            raise self._translated(db, error) from None

    def _translated(self, db: psycopg.Connection[Any], error: psycopg.Error) -> DatabaseRefused:
        """The error in our words; a connection that was lost is closed."""
        if db.closed or db.broken:
            db.close()
            return DatabaseAway(self.server, "the connection was lost")
        return DatabaseRefused(self.server, _reason(error))

    def _again(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """As `_run`, on a new connection if the one that was idle is gone; for what may be done twice."""
        had_one = self._connection is not None
        try:
            return self._run(work)
        except DatabaseAway:
            if not had_one or self._away is not None:
                raise
            return self._run(work)

    # --- spaces and migrations

    def prepare(self) -> State:
        """Bring the schema up to date, make the space if there is none. Raises DatabaseRefused, DatabaseAway."""
        self._again(self._migrate)
        state = self._newest(self._db)
        return state if state is not None else self._run(self._make_space)

    def _migrate(self, db: psycopg.Connection[Any]) -> None:
        if self._known(db) >= SCHEMA:
            return
        with db.transaction():
            db.execute("select pg_advisory_xact_lock(hashtext('commonplace migrations'))")
            db.execute("create schema if not exists commonplace")
            db.execute("create table if not exists commonplace.version (number integer primary key, "
                       "reads integer not null, writes integer not null, at timestamptz not null default now())"
                       )  # fmt: skip
            scripts = files("commonplace.store.postgres").joinpath("migrations")
            for number in range(self._known(db) + 1, SCHEMA + 1):
                text = scripts.joinpath(f"{number:03}.sql").read_text("utf-8")
                db.execute(text)
                oldest = [int(line.partition(": ")[2]) for line in text.splitlines()[:2]]
                db.execute("insert into commonplace.version (number, reads, writes) values (%s, %s, %s)",
                           [number, *oldest])  # fmt: skip

    def _known(self, db: psycopg.Connection[Any]) -> int:
        """The number of the last migration that was made, 0 for none."""
        if db.execute("select to_regclass('commonplace.version')").fetchall()[0][0] is None:
            return 0
        return int(db.execute("select coalesce(max(number), 0) from commonplace.version").fetchall()[0][0])

    def _make_space(self, db: psycopg.Connection[Any]) -> State:
        """A partition of each table, and the row that says that there is the space."""
        from psycopg import sql

        suffix = sha256(self.space.encode())[:12]
        with db.transaction():
            db.execute("select pg_advisory_xact_lock(hashtext('commonplace migrations'))")
            if (state := self._newest(db)) is not None:
                return state
            for table in _PARTITIONED:
                parent, own = sql.Identifier("commonplace", table), sql.Identifier("commonplace", f"{table}_{suffix}")
                db.execute(sql.SQL("create table {} (like {} including all)").format(own, parent))
                db.execute(sql.SQL("alter table {} attach partition {} for values in ({})").format(
                    parent, own, sql.Literal(self.space)))  # fmt: skip
            db.execute("insert into commonplace.space (name) values (%s)", [self.space])
            state = self._newest(db)
        assert state is not None
        return state

    # --- what there is

    def newest(self) -> State:
        """Where the space is now: one round trip. Raises DatabaseAway, DatabaseRefused."""
        state = self._again(self._newest)
        if state is None:
            raise DatabaseRefused(self.server, f"there is no space {self.space} any more")
        return state

    def _newest(self, db: psycopg.Connection[Any]) -> State | None:
        row = db.execute(_STATE, [self.space]).fetchone()
        return self._readable(State(*row)) if row else None

    def _readable(self, state: State) -> State:
        """The state. Raises DatabaseRefused when a later version has made the tables others than we can read."""
        if state.reads > SCHEMA:
            raise DatabaseRefused(self.server, "its notes are of a later version; upgrade commonplace")
        return state

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """One state of the space, to be read from. Raises DatabaseAway, DatabaseRefused."""
        import psycopg

        self.newest()  # a connection that was lost is made again
        db = self._db
        try:
            with db.transaction():
                db.execute("set transaction isolation level repeatable read, read only")
                yield Snapshot(db, self.space)
        except psycopg.Error as error:
            raise self._translated(db, error) from None

    def text(self, digest: str) -> bytes | None:
        """A text of the history by its SHA-256."""
        sql = "select body from commonplace.blob where space = %s and sha256 = %s"
        row = self._again(lambda db: db.execute(sql, [self.space, digest]).fetchone())
        return bytes(row[0]) if row else None

    def reads(self) -> list[tuple[str, int, int]]:
        """(id, reads, last use in seconds since 1970) of the notes whose reads are in no frontmatter yet."""
        sql = "select id, count, used from commonplace.access where space = %s order by id"
        return self._again(lambda db: db.execute(sql, [self.space]).fetchall())

    def add_reads(self, restarted: Sequence[str], counts: Mapping[str, int], used: Mapping[str, int]) -> None:
        """Add reads; those of `restarted` notes begin anew."""
        rows = [[self.space, id, counts.get(id, 0), used.get(id, 0)] for id in sorted({*counts, *used})]

        def work(db: psycopg.Connection[Any]) -> None:
            with db.transaction():
                sql = "delete from commonplace.access where space = %s and id = any(%s)"
                if restarted:
                    db.execute(sql, [self.space, [*restarted]])
                sql = ("insert into commonplace.access (space, id, count, used) values (%s, %s, %s, %s) on conflict "
                       "(space, id) do update set count = access.count + excluded.count, "
                       "used = greatest(access.used, excluded.used)")  # fmt: skip
                db.cursor().executemany(sql, rows)

        self._run(work)

    def _of_log(
        self, before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
    ) -> Iterator[_Statement]:
        """What was counted `before` (reads, last use) and is not any more goes; what came since stays."""
        for id, (count, used) in before.items():
            left, still = after.get(id, (0, 0))
            if (count, used) != (left, still):
                sql = ("update commonplace.access set count = greatest(0, count - %s), "
                       "used = case when used > %s then used else %s end where space = %s and id = %s")  # fmt: skip
                yield _Statement(sql, [count - left, used, still, self.space, id])
        sql = "delete from commonplace.access where space = %s and count = 0 and used = 0"
        yield _Statement(sql, [self.space])

    def shared_files(self) -> dict[str, bytes]:
        """The files that are the same on all replicas, by name."""
        sql = "select name, data from commonplace.shared_file where space = %s"
        return {name: bytes(data) for name, data in self._again(lambda db: db.execute(sql, [self.space]).fetchall())}

    # --- locks

    def take_lock(self) -> State:
        """Keep all other writers of the space out, on any machine, until `release_lock` or the end of the connection.
        Returns where the space is. Raises Busy, DatabaseAway, DatabaseRefused."""
        if not self._again(self._try_lock):
            block_for(lambda seconds: self._run(lambda db: self._wait_for_lock(db, seconds)), LOCK_WAITS)
            self._state = None
        self._locked = self._connection
        try:
            state = self._readable(self._state or self.newest())
            if state.writes > SCHEMA:
                raise DatabaseRefused(self.server, "its notes are of a later version; upgrade commonplace to write")
            return state
        except BaseException:
            self.release_lock()
            raise

    def _try_lock(self, db: psycopg.Connection[Any]) -> bool:
        """Take the lock if it is free, and see in the same round trip where the space is then."""
        with db.pipeline():
            got = db.execute("select pg_try_advisory_lock(%s)", [self._writers])
            found = db.execute(_STATE, [self.space])
        row = found.fetchone()
        self._state = State(*row) if row else None
        return bool(got.fetchall()[0][0])

    def _wait_for_lock(self, db: psycopg.Connection[Any], seconds: float) -> None:
        if seconds <= 0:
            raise Busy(self._holder())
        db.execute("select set_config('lock_timeout', %s, false)", [f"{max(1, int(seconds * 1000))}ms"])
        db.execute("select pg_advisory_lock(%s)", [self._writers])

    def _holder(self) -> str:
        """Who holds the lock of the writers, as far as the server tells."""
        import psycopg

        sql = ("select application_name from pg_locks join pg_stat_activity using (pid) where locktype = 'advisory' "
               "and granted and classid = %s and objid = %s and pid <> pg_backend_pid()")  # fmt: skip
        key = self._writers & 0xFFFFFFFFFFFFFFFF
        with suppress(psycopg.Error):
            if row := self._db.execute(sql, [key >> 32, key & 0xFFFFFFFF]).fetchone():
                return str(row[0]).removeprefix("commonplace ") or "another program"
        return "another program"

    def release_lock(self) -> None:
        """Let other writers in. A connection that was lost has done so."""
        import psycopg

        db, self._locked = self._locked, None
        if db is not None and not db.closed:
            with suppress(psycopg.Error):
                db.execute("select pg_advisory_unlock(%s)", [self._writers])

    def runs_jobs(self) -> bool:
        """Whether this replica does the upkeep of the space: the first that asks, until its connection ends."""
        sql = ("select case when exists (select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() "
               "and classid = %s and objid = %s) then true else pg_try_advisory_lock(%s) end")  # fmt: skip
        key = self._jobs & 0xFFFFFFFFFFFFFFFF
        values = [key >> 32, key & 0xFFFFFFFF, self._jobs]
        self._has_jobs = bool(self._again(lambda db: db.execute(sql, values).fetchall())[0][0])
        return self._has_jobs

    # --- changes

    def commit(self, change: Change, steps: Sequence[Step], logs: Sequence[Step] = ()) -> None:
        """Commit `change` with these steps; the lock must be held. On return it is durable. `logs`: steps that leave
        less in the access log.

        Raises Conflict when a file is not as read, Exists when a destination is taken, DatabaseRefused, DatabaseAway:
        then nothing changed. Raises OutcomeUnknown when the connection was lost and nobody can be asked.
        """
        statements = [each for step in steps for each in self._of_step(change.number, step)]
        for step in logs:
            assert step.old is not None
            statements += self._of_log(counted(step.old.data), counted(step.data or b""))
        self._write(statements, change, change.number - 1)

    def append(self, change: Change, texts: Mapping[str, bytes]) -> None:
        """Commit a line of the journal that changes no note, with texts it keeps."""
        sql = "insert into commonplace.blob (space, sha256, body) values (%s, %s, %s) on conflict do nothing"
        statements = [_Statement(sql, [self.space, digest, data]) for digest, data in texts.items()]
        self._write(statements, change, change.number - 1)

    def _write(self, statements: Sequence[_Statement], change: Change, last: int) -> None:
        id, space = uuid4(), self.space
        line = [space, change.number, id, parse_stamp(change.time), change.dump()]
        moved: list[_Statement] = [
            *statements,
            _Statement("insert into commonplace.journal (space, number, id, at, line) values (%s, %s, %s, %s, %s)",
                       line),
            _Statement("update commonplace.space set last = %s where name = %s and last = %s",
                       [change.number, space, last], 1,
                       lambda: DatabaseRefused(self.server, "somebody wrote there without the lock")),
            _Statement("select pg_notify('commonplace', %s)", [f"{space} {change.number}"]),
        ]  # fmt: skip
        self._transaction(moved)
        self._acknowledge(id)

    def _transaction(self, statements: Sequence[_Statement]) -> None:
        """Begin a transaction and say these statements in it; roll it back when one of them is refused."""
        import psycopg

        db = self._locked_connection
        try:
            with db.pipeline():
                db.execute("begin")
                done = [(each, db.execute(each.sql, each.values)) for each in statements]
        except psycopg.Error as error:
            refused = self._translated(db, error)
            if not db.closed:
                db.rollback()
            raise refused from None
        for each, cursor in done:
            if each.rows is not None and cursor.rowcount != each.rows:
                db.rollback()
                assert each.refused is not None
                raise each.refused()

    def _acknowledge(self, id: UUID) -> None:
        """Commit the transaction; the change is there by this id. When the connection is lost meanwhile, ask."""
        import psycopg

        db = self._locked_connection
        try:
            db.execute("commit")
            return
        except psycopg.Error as error:
            if not (db.closed or db.broken):
                raise DatabaseRefused(self.server, _reason(error)) from None
        self.close()
        try:
            self.take_lock()  # whoever has it, the lost session has ended, so the answer stands
            sql = "select 1 from commonplace.journal where space = %s and id = %s"
            is_there = bool(self._run(lambda db: db.execute(sql, [self.space, id]).fetchall()))
        except (Busy, DatabaseRefused):
            raise OutcomeUnknown(self.server) from None
        if not is_there:
            raise DatabaseAway(self.server, "the connection was lost")

    def _of_step(self, number: int, step: Step) -> Iterator[_Statement]:
        """What one step does to the rows."""
        where = [self.space, step.project, step.path]
        at = "where space = %s and project = %s and path = %s"
        below = "where space = %s and project = %s and path >= %s::text || '/' and path < %s::text || '0'"

        def conflict() -> Exception:
            return Conflict(step.path, "another text", step.old.etag[:8] if step.old else "none")

        if step.do in ("put", "remove") and step.old is not None and step.kept:
            yield _Statement("insert into commonplace.blob (space, sha256, body) select space, sha256, body "
                             f"from commonplace.note {at} and sha256 = %s on conflict do nothing",
                             [*where, step.old.etag])  # fmt: skip
        if step.do == "put":
            stamp, mode = step.stamp, step.mode if step.mode is not None else step.old.mode if step.old else 0o600
            assert stamp is not None
            values = [step.data, step.etag, mode, stamp.mtime_ns, number]
            if step.old is None:
                yield _Statement("insert into commonplace.note (space, project, path, kind, body, sha256, mode, "
                                 "changed_ns, number) values (%s, %s, %s, 'file', %s, %s, %s, %s, %s) "
                                 "on conflict do nothing", [*where, *values], 1, lambda: Exists(step.path))  # fmt: skip
            else:
                yield _Statement("update commonplace.note set body = %s, sha256 = %s, mode = %s, changed_ns = %s, "
                                 f"number = %s {at} and kind = 'file' and sha256 = %s",
                                 [*values, *where, step.old.etag], 1, conflict)  # fmt: skip
        elif step.do == "remove":
            assert step.old is not None
            yield _Statement(f"delete from commonplace.note {at} and kind = 'file' and sha256 = %s",
                             [*where, step.old.etag], 1, conflict)  # fmt: skip
        elif step.do == "move":
            inside = [self.space, step.project, step.path, step.path]
            yield _Statement(f"select 1 from commonplace.note {at}", [self.space, step.project, step.to], 0,
                             lambda: Exists(step.to))  # fmt: skip
            yield _Statement("update commonplace.note set path = %s::text || substr(path, length(%s::text) + 1), "
                             f"number = %s {below}", [step.to, step.path, number, *inside])  # fmt: skip
            same, etag = (" and sha256 = %s", [step.old.etag]) if step.old else ("", [])
            yield _Statement(f"update commonplace.note set path = %s, number = %s {at}{same}",
                             [step.to, number, *where, *etag], 1, conflict)  # fmt: skip
        elif step.do in ("mkdir", "symlink"):
            kind, link = ("folder", None) if step.do == "mkdir" else ("link", step.link)
            yield _Statement("insert into commonplace.note (space, project, path, kind, link, mode, number) "
                             "values (%s, %s, %s, %s, %s, %s, %s) on conflict (space, project, path) do update "
                             "set number = excluded.number where note.kind = excluded.kind and note.kind = 'folder'",
                             [*where, kind, link, 0o700, number], 1, lambda: Exists(step.path))  # fmt: skip
        elif step.do == "unlink":
            yield _Statement(f"delete from commonplace.note {at} and kind = 'link'", where, 1, conflict)
        elif step.do == "rmdir":
            yield _Statement(f"select 1 from commonplace.note {below} limit 1",
                             [self.space, step.project, step.path, step.path], 0,
                             lambda: DatabaseRefused(self.server, f"the folder {step.path} is not empty"))  # fmt: skip
            yield _Statement(f"delete from commonplace.note {at} and kind = 'folder'", where)

    def rewrite(self, changes: Iterable[Change]) -> None:
        """Put these changes in place of the whole journal. The lock must be held."""
        space = self.space

        def work(db: psycopg.Connection[Any]) -> None:
            with db.transaction():
                sql = "select number, id from commonplace.journal where space = %s"
                ids = dict(db.execute(sql, [space]).fetchall())
                db.execute("delete from commonplace.journal where space = %s", [space])
                rows = ([space, each.number, ids.get(each.number) or uuid4(), parse_stamp(each.time), each.dump()]
                        for each in changes)  # fmt: skip
                sql = "insert into commonplace.journal (space, number, id, at, line) values (%s, %s, %s, %s, %s)"
                db.cursor().executemany(sql, rows)
                db.execute("update commonplace.space set epoch = epoch + 1 where name = %s", [space])

        self._locked_connection  # noqa: B018
        self._run(work)

    def sweep(self, wanted: set[str]) -> int:
        """Remove the texts of the history but for these. The lock must be held. Returns how many."""
        space = self.space

        def work(db: psycopg.Connection[Any]) -> int:
            every = db.execute("select sha256 from commonplace.blob where space = %s", [space]).fetchall()
            gone = [digest for (digest,) in every if digest not in wanted]
            if gone:
                db.execute("delete from commonplace.blob where space = %s and sha256 = any(%s)", [space, gone])
            return len(gone)

        return self._run(work)

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Inside, nobody else changes a shared file; what is changed is committed at the end."""
        import psycopg

        self.newest()  # a connection that was lost is made again
        db = self._db
        try:
            with db.transaction():
                db.execute("select pg_advisory_xact_lock(hashtext('commonplace files'), hashtext(%s))", [self.space])
                yield
        except psycopg.Error as error:
            raise self._translated(db, error) from None

    def put_shared(self, name: str, data: bytes | None) -> None:
        """Write a shared file, or remove it; inside `sharing`."""
        sql = "delete from commonplace.shared_file where space = %s and name = %s"
        self._run(lambda db: db.execute(sql, [self.space, name]))
        if data is not None:
            sql = "insert into commonplace.shared_file (space, name, data) values (%s, %s, %s)"
            self._run(lambda db: db.execute(sql, [self.space, name, data]))
        sql = "update commonplace.space set files = files + 1 where name = %s"
        self._run(lambda db: db.execute(sql, [self.space]))


def counted(log: bytes) -> dict[str, tuple[int, int]]:
    """(reads, last use) by id of the lines of an access log with one line of a kind for each."""
    found: dict[str, tuple[int, int]] = {}
    for line in log.decode("utf-8", "replace").splitlines():
        said, _, id = line.partition(" ")
        count, used = found.get(id, (0, 0))
        found[id] = (count, int(said[1:])) if said[:1] == "@" else (int(said), used)
    return found


class Snapshot:
    """One state of a space, inside a transaction."""

    def __init__(self, db: psycopg.Connection[Any], space: str):
        self._db, self._space = db, space

    def state(self) -> State:
        """Where the space is."""
        return State(*self._db.execute(_STATE, [self._space]).fetchall()[0])

    def lines(self, since: int) -> Iterator[tuple[int, bytes]]:
        """The lines of the journal from this number on, the oldest first."""
        sql = "select number, line from commonplace.journal where space = %s and number >= %s order by number"
        with self._db.cursor("lines") as cursor:
            cursor.itersize = _ROWS
            yield from ((number, bytes(line)) for number, line in cursor.execute(sql, [self._space, since]))

    def places(self, since: int) -> dict[tuple[str, str], str | None]:
        """(project, path) of what changed after this number, all for -1, with the SHA-256 of files."""
        sql = "select project, path, sha256 from commonplace.note where space = %s and number > %s"
        return {(project, path): digest for project, path, digest in self._db.execute(sql, [self._space, since])}

    def rows(self, since: int) -> Iterator[Row]:
        """What changed after this number, all for -1."""
        sql = ("select project, path, kind, body, sha256, link, mode, changed_ns from commonplace.note "
               "where space = %s and number > %s order by project, path")  # fmt: skip
        with self._db.cursor("rows") as cursor:
            cursor.itersize = _ROWS
            yield from map(Row._make, cursor.execute(sql, [self._space, since]))

    def row(self, project: str, path: str) -> Row | None:
        """What is at one place."""
        sql = ("select project, path, kind, body, sha256, link, mode, changed_ns from commonplace.note "
               "where space = %s and project = %s and path = %s")  # fmt: skip
        found = self._db.execute(sql, [self._space, project, path]).fetchone()
        return Row(*found) if found else None


def _server(url: str) -> str:
    """The server and database of an address, for people: no password."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] or "the local server"
    return f"{host}{parts.path}"


def _reason(error: psycopg.Error) -> str:
    """Why the server said no, in one line."""
    state = error.sqlstate or ""
    for known, words in _REASONS.items():
        if state and state.startswith(known):
            return words
    text = " ".join(str(error).split())
    for sign, words in (("Connection refused", "it refuses connections"), ("timeout", "it does not answer"),
                        ("too many clients", _REASONS["53300"]), ("password", _REASONS["28"]),
                        ("does not exist", _REASONS["3D000"]), ("not known", "its name is unknown"),
                        ("read-only", _REASONS["25006"])):  # fmt: skip
        if not state and sign in text:
            return words
    return text[:200] or "it refused"
