"""A connection to a PostgreSQL server that is made again after it was lost.

Errors of the server become DatabaseAway or DatabaseRefused with a reason in plain words.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from memoranda.errors import ConfigError, DatabaseAway, DatabaseRefused
from memoranda.extras import install_command
from memoranda.ledger.postgres.pooler import REFUSAL, shares_processes
from memoranda.sources.files import closed_on_error

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
# PostgreSQL 15, as the server counts versions.
OLDEST_SERVER = 150000
# A server that does not answer by then is away.
_CONNECT_SECONDS = 3
# After a failed connection, none is tried for this time.
_AWAY_SECONDS = 1.0
# If the failure took long, none is tried for this many times its duration. So calls spend at most a
# sixth of their time waiting for a server that does not answer.
_AWAY_FACTOR = 5.0
# Limits that the server enforces, so that no call hangs: for a statement, for waiting for a lock, and
# for a transaction in which we send nothing.
_STATEMENT_SECONDS = 60
_LOCK_SECONDS = 10
_IDLE_SECONDS = 300
# Sent bytes that the server's machine does not confirm by then end the connection.
_UNANSWERED_MILLISECONDS = 5_000
_MAX_PROGRAM_CHARACTERS = 16
_MAX_REASON_CHARACTERS = 200
SETTINGS = {
    "statement_timeout": f"{_STATEMENT_SECONDS}s",
    "lock_timeout": f"{_LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
    "default_transaction_isolation": "read committed",
    "plan_cache_mode": "force_custom_plan",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""Settings of every connection. With this plan cache mode, a query is planned for the partition of
its space. With these keepalives, the server notices within 25 s that a machine is gone, and frees
its lock."""
# Addresses at which this process found no pooler that shares sessions.
_KEEPS_SESSIONS: set[str] = set()
# Without a handler, psycopg would log to stderr what our errors already say.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
_OUT_OF_CONNECTIONS = "all its connections are in use"
_WRONG_PASSWORD = "it refuses this user or password"
_NO_DATABASE = "it has no database of this name; make it with createdb"
_READ_ONLY = (
    "it is a read-only standby; name the primary, or all servers with "
    "target_session_attrs=read-write"
)
# SQLSTATE of an error, or its first digits -> the reason in words.
_REASONS = {
    "28": _WRONG_PASSWORD,
    "3D000": _NO_DATABASE,
    "42501": "this user may not do that; see docs/teams.md for the rights it needs",
    "25006": _READ_ONLY,
    "53100": "its disk is full",
    "53300": _OUT_OF_CONNECTIONS,
    "53": "it is out of resources",
    "54000": "the path is too long for it",
    "57014": f"a statement took longer than {_STATEMENT_SECONDS} s; see in pg_stat_activity what keeps it busy",
    "55P03": f"somebody kept a table locked for more than {_LOCK_SECONDS} s; see pg_locks for who, and end that",
    "25P03": f"this process said nothing for {_IDLE_SECONDS} s in a transaction, so it was ended",
}
# A failed connection has no SQLSTATE. Words in the text of its error -> the reason in words.
_REASONS_BY_WORDS = {
    "Connection refused": "it refuses connections",
    "timeout": "it does not answer",
    "No such file": "it is not running",
    "too many c": _OUT_OF_CONNECTIONS,
    "remaining connection slots": _OUT_OF_CONNECTIONS,
    "password": _WRONG_PASSWORD,
    'role "': _WRONG_PASSWORD,
    "does not exist": _NO_DATABASE,
    "not known": "its name is unknown",
    "read-only": _READ_ONLY,
}


class Connection:
    """A connection for one space of the database at `url`. Only for one thread at a time.

    It is made when it is needed, and again after it was lost. Except by `_with_retry`, no statement
    is sent twice. Raises ConfigError if the driver is not installed.

    settings: settings of the server for this connection.
    """

    settings = SETTINGS

    def __init__(self, url: str, space: str):
        try:
            import psycopg  # noqa: F401
        except ImportError:
            need = "notes in PostgreSQL need psycopg and libpq"
            raise ConfigError(f"{need}: {install_command('postgres', 'psycopg[binary]')}") from None
        self._url = url
        self.space = space
        self._connection: psycopg.Connection[Any] | None = None
        # Until this time of `time.monotonic`, the server is not asked again
        self._away_until = 0.0
        # Why the last connection failed, "" if it did not
        self._away_reason = ""
        parts = urlsplit(url)
        self.server = f"{parts.netloc.rpartition('@')[2] or 'the local server'}{parts.path}"
        """Server and database for people, without the password: `db.example.org/memory`."""

    def close(self) -> None:
        """End the connection, and with it the locks it holds."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    @property
    def _db(self) -> psycopg.Connection[Any]:
        """The open connection. If need be, it is made. Raises DatabaseAway, DatabaseRefused."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        self.close()
        db = self._connect_or_pause()
        with closed_on_error(db):
            if db.info.server_version < OLDEST_SERVER:
                raise DatabaseRefused(self.server, "it must be PostgreSQL 15 or later")
            self._away_reason = ""
            self._check_for_pooler(db)
            # All settings are made in one round trip
            settings = self.settings | {"memoranda.space": self.space}
            calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
            names_and_values = list(chain.from_iterable(settings.items()))
            db.execute(f"select {calls}", names_and_values)
        self._connection = db
        return db

    def _connect_or_pause(self) -> psycopg.Connection[Any]:
        """Open a new connection. Raises DatabaseAway.

        After a failure, the server is not asked again for a while, so that calls do not wait for it
        each time. The pause is longer if the server took long to fail.
        """
        import psycopg

        if self._away_reason and time.monotonic() < self._away_until:
            raise DatabaseAway(self.server, self._away_reason)
        begun_at = time.monotonic()
        try:
            return self._connect()
        except psycopg.Error as error:
            failed_at = time.monotonic()
            pause = max(_AWAY_SECONDS, _AWAY_FACTOR * (failed_at - begun_at))
            self._away_until = failed_at + pause
            self._away_reason = reason_of(error)
            raise DatabaseAway(self.server, self._away_reason) from None

    def _connect(self) -> psycopg.Connection[Any]:
        """Open a new connection, without `settings`. Raises psycopg.Error."""
        import psycopg

        # The server cuts `application_name` to 63 bytes
        program = os.path.basename(sys.argv[0])[:_MAX_PROGRAM_CHARACTERS]
        return psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name=f"memoranda {socket.gethostname()} {os.getpid()} {program}",
            client_encoding="utf8",
            tcp_user_timeout=_UNANSWERED_MILLISECONDS,
        )

    def _check_for_pooler(self, db: psycopg.Connection[Any]) -> None:
        """Raise DatabaseRefused if a pooler shares sessions. Checked once per process."""
        import psycopg

        if self._url in _KEEPS_SESSIONS:
            return
        try:
            is_shared = shares_processes(db, self._connect)
        except psycopg.Error as error:
            # pgbouncer with `pool_mode = statement` refuses a transaction with these words
            is_shared = "pooling mode" in str(error)
            if not is_shared:
                raise self._error_of(db, error) from None
        if is_shared:
            raise DatabaseRefused(self.server, REFUSAL)
        _KEEPS_SESSIONS.add(self._url)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield the connection. Its errors in the block become DatabaseAway or DatabaseRefused."""
        import psycopg

        db = self._db
        try:
            yield db
        except psycopg.Error as error:
            raise self._error_of(db, error) from None

    def _error_of(self, db: psycopg.Connection[Any], error: psycopg.Error) -> DatabaseRefused:
        """Return the error for callers: DatabaseAway for a lost connection, else DatabaseRefused.

        A lost connection is closed.
        """
        is_lost = db.closed or db.broken
        if not is_lost:
            return DatabaseRefused(self.server, reason_of(error))
        db.close()
        why = "the connection was lost"
        was_idle_too_long = error.sqlstate == "25P03"
        if was_idle_too_long:
            why = reason_of(error)
        return DatabaseAway(self.server, why)

    def _with_retry(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Return the result of `work`. If the connection was lost, repeat the work on a new one.

        work: called with the connection. It must do no harm if it is done twice.
        """
        had_connection = self._connection is not None
        try:
            with self._connected() as db:
                return work(db)
        except DatabaseAway:
            # An old connection may have been lost long ago. But if a new one was lost, or could not
            # be made (`_connect_or_pause`), another would fail, too.
            has_failed_to_connect = self._away_reason != ""
            if not had_connection or has_failed_to_connect:
                raise
        with self._connected() as db:
            return work(db)


def reason_of(error: psycopg.Error) -> str:
    """Return why the server refused, in one line: `it refuses this user or password`."""
    text = " ".join(str(error).split())
    if error.sqlstate:
        for first_digits, reason in _REASONS.items():
            if error.sqlstate.startswith(first_digits):
                return reason
    else:
        for words, reason in _REASONS_BY_WORDS.items():
            if words in text:
                return reason
    # The error's own words, without the address before them and the advice after them
    message = text.rpartition(" failed: ")[2].removeprefix("FATAL: ")
    first_sentence = re.split(" (?:Is the server|This probably)", message)[0]
    return first_sentence[:_MAX_REASON_CHARACTERS] or "it refused"


def single_value(
    db: psycopg.Connection[Any], sql: str, values: Sequence[Any] | Mapping[str, Any] = ()
) -> Any:
    """Return the value of a query that returns one row with one column. Raises psycopg.Error."""
    ((value,),) = db.execute(sql, values).fetchall()
    return value
