"""A connection to a PostgreSQL server that is made again when it was lost, and what the server says
in our words.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
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
# Seconds for which a server that was away is not asked again.
_AWAY_SECONDS = 1.0
# After a failed connection none is tried for at least this long, and this many times as long as it took
# to fail: calls are not to spend their time waiting for a server that does not answer.
_AWAY_TIMES = 5.0
# Limits the server itself keeps, so that no call hangs.
_STATEMENT_SECONDS = 60
_LOCK_SECONDS = 10
# How long a statement may take, wait for a lock, and a transaction wait for us before the server
# ends it.
_IDLE_SECONDS = 300
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
"""Plans are made for the one partition; the server notices within 25 s that a machine is gone, and
frees its lock.
"""
# The addresses that were found not to share a session between callers, by this process.
_KEEPS_SESSIONS: set[str] = set()
# Without a handler, psycopg would log to stderr what our errors already say.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
# Sentences for a server's errors, by SQLSTATE or its first digits.
_REASONS = {
    "28": "it refuses this user or password",
    "3D000": "it has no database of this name; make it with createdb",
    "42501": "this user may not do that; see docs/teams.md for the rights it needs",
    "25006": "it is a read-only standby; name the primary, or all servers with target_session_attrs=read-write",
    "53100": "its disk is full",
    "53300": "all its connections are in use",
    "53": "it is out of resources",
    "54000": "the path is too long for it",
    "57014": f"a statement took longer than {_STATEMENT_SECONDS} s; see in pg_stat_activity what keeps it busy",
    "55P03": f"somebody kept a table locked for more than {_LOCK_SECONDS} s; see pg_locks for who, and end that",
    "25P03": f"this process said nothing for {_IDLE_SECONDS} s in a transaction, so it was ended",
}


class Connection:
    """A space of the database at `url`. For one thread at a time. Raises ConfigError without the
    driver.

    The connection is made when it is needed, and again after it was lost. Statements are never sent
    twice.
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
        self._away_until = 0.0
        # Why it could not be reached just now
        self._away = ""
        parts = urlsplit(url)
        self.server = f"{parts.netloc.rpartition('@')[2] or 'the local server'}{parts.path}"
        """The server and database for people: no password."""

    def close(self) -> None:
        """End the connection, and with it the locks it holds."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    @property
    def _db(self) -> psycopg.Connection[Any]:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        import psycopg

        self.close()
        if self._away and time.monotonic() < self._away_until:
            raise DatabaseAway(self.server, self._away)
        begun = time.monotonic()
        try:
            db = self._connect()
        except psycopg.Error as error:
            spent = time.monotonic() - begun
            self._away_until = begun + spent + max(_AWAY_SECONDS, _AWAY_TIMES * spent)
            self._away = reason_of(error)
            raise DatabaseAway(self.server, self._away) from None
        if db.info.server_version < OLDEST_SERVER:
            db.close()
            raise DatabaseRefused(self.server, "it must be PostgreSQL 15 or later")
        self._away = ""
        with closed_on_error(db):
            self._check_for_pooler(db)
        settings = self.settings | {"memoranda.space": self.space}
        with closed_on_error(db):
            db.execute(
                "select " + ", ".join(["set_config(%s, %s, false)"] * len(settings)),
                list(chain.from_iterable(settings.items())),
            )
        self._connection = db
        return db

    def _connect(self) -> psycopg.Connection[Any]:
        """A connection without settings of its own. Raises psycopg.Error."""
        import psycopg

        program = os.path.basename(sys.argv[0])[:16]
        return psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name=f"memoranda {socket.gethostname()} {os.getpid()} {program}",
            client_encoding="utf8",
            tcp_user_timeout=5000,
        )

    def _check_for_pooler(self, db: psycopg.Connection[Any]) -> None:
        """Raise DatabaseRefused if sessions are not kept. Checked once per process."""
        import psycopg

        if self._url in _KEEPS_SESSIONS:
            return
        try:
            is_shared = shares_processes(db, self._connect)
        except psycopg.Error as error:
            # pgbouncer by statement refuses a transaction with these words
            is_shared = "pooling mode" in str(error)
            if not is_shared:
                raise self._translated(db, error) from None
        if is_shared:
            raise DatabaseRefused(self.server, REFUSAL)
        _KEEPS_SESSIONS.add(self._url)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """The connection; inside, its errors are raised in our words."""
        import psycopg

        db = self._db
        try:
            yield db
        except psycopg.Error as error:
            raise self._translated(db, error) from None

    def _translated(self, db: psycopg.Connection[Any], error: psycopg.Error) -> DatabaseRefused:
        """The error in our words; a connection that was lost is closed."""
        if db.closed or db.broken:
            db.close()
            was_idle = error.sqlstate == "25P03"
            return DatabaseAway(
                self.server, reason_of(error) if was_idle else "the connection was lost"
            )
        return DatabaseRefused(self.server, reason_of(error))

    def _again(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Return the result of `work` on the connection, on a new one if the idle one is gone.

        Only for work that may be repeated.
        """
        had_one = self._connection is not None
        try:
            with self._connected() as db:
                return work(db)
        except DatabaseAway:
            if not had_one or self._away:
                raise
        with self._connected() as db:
            return work(db)


def reason_of(error: psycopg.Error) -> str:
    """Why the server said no, in one line."""
    state = error.sqlstate or ""
    for known_reason, words in _REASONS.items():
        if state and state.startswith(known_reason):
            return words
    text = " ".join(str(error).split())
    for sign, words in (
        ("Connection refused", "it refuses connections"),
        ("timeout", "it does not answer"),
        ("No such file", "it is not running"),
        ("too many c", _REASONS["53300"]),
        ("remaining connection slots", _REASONS["53300"]),
        ("password", _REASONS["28"]),
        ('role "', _REASONS["28"]),
        ("does not exist", _REASONS["3D000"]),
        ("not known", "its name is unknown"),
        ("read-only", _REASONS["25006"]),
    ):
        if not state and sign in text:
            return words
    message = text.rpartition(" failed: ")[2].removeprefix("FATAL: ")
    return re.split(" (?:Is the server|This probably)", message)[0][:200] or "it refused"
