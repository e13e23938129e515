"""A record of what sessions of clients were given, so that they are told nothing twice.

The rows may be deleted at any time. A hook has less than a second, so writing never waits. Texts
that could not be recorded are told once more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from memoranda.clock import parse_stamp, stamp
from memoranda.errors import StorageError
from memoranda.ledger.database import LedgerDatabase

NOTE = "note"
TEXT = "text"
# Sessions kept, and those looked at for the newest of a client.
_SESSIONS_KEPT = 200
_KEPT_FOR = timedelta(days=30)
# Characters of what a session was given; one that reaches it is given nothing more.
_FULL = 64_000
_LOOKED_AT = 20
# Shorter lines are said too often to show that a session heard them.
_SHORTEST_LINE = 12
_ITEMS = "select kind, value from session_item where client = ? and session = ?"


class SessionRows:
    """The record of a session of a client.

    notes: the ids it was given.
    texts: the hashes of the lines it was given.
    saw: the moment up to which it was told what others added, or None.
    is_known: whether it has begun before.
    is_full: whether it was given as much as a session may get.
    """

    def __init__(self, database: LedgerDatabase, client: str, session: str):
        self._database = database
        self._place = (client, session_hash(session))
        row = database.row("select * from session where client = ? and session = ?", self._place)
        items = [(row["kind"], row["value"]) for row in database.rows(_ITEMS, self._place)]
        self.is_known = row is not None
        self.notes = {value for kind, value in items if kind == NOTE}
        self.texts = {value for kind, value in items if kind == TEXT}
        if row is not None:
            self.saw = _moment(row["saw"])
        else:
            self.saw = None
        self.is_full = sum(len(kind) + len(value) + 2 for kind, value in items) >= _FULL

    def last_seen(self) -> datetime | None:
        """The moment up to which this client has been told, in any session, what others added.

        None if never.
        """
        sql = "select saw from session where client = ? order by changed desc limit ?"
        rows = self._database.rows(sql, (self._place[0], _LOOKED_AT))
        moments = [_moment(row["saw"]) for row in rows]
        return max((moment for moment in moments if moment is not None), default=None)

    def add(
        self,
        now: datetime,
        *,
        saw: datetime | None = None,
        notes: Iterable[str] = (),
        text: str = "",
    ) -> None:
        """Note what the session is given now."""
        note_list = [*notes]
        self.notes.update(note_list)
        items = [(NOTE, note) for note in note_list]
        items += [(TEXT, digest) for digest in map(line_hash, text.splitlines()) if digest]
        sql = (
            "insert into session (client, session, changed, saw) values (?, ?, ?, ?) "
            "on conflict (client, session) do update "
            "set changed = excluded.changed, saw = coalesce(excluded.saw, saw)"
        )
        values = (*self._place, stamp(now), stamp(saw) if saw is not None else None)
        with (
            suppress(StorageError),
            self._database.transaction(durable=False, may_wait=False) as connection,
        ):
            connection.execute(sql, values)
            connection.executemany(
                "insert or ignore into session_item (client, session, kind, value) "
                "values (?, ?, ?, ?)",
                [(*self._place, *item) for item in items],
            )

    def without_given(self, text: str) -> str:
        """`text` without the lines that came from here."""
        return without_lines(text, self.texts)

    def sweep(self, now: datetime) -> None:
        """Forget old sessions."""
        sql = (
            "delete from session where changed < ? or (client, session) in "
            "(select client, session from session order by changed desc limit -1 offset ?)"
        )
        with (
            suppress(StorageError),
            self._database.transaction(durable=False, may_wait=False) as connection,
        ):
            connection.execute(sql, (stamp(now - _KEPT_FOR), _SESSIONS_KEPT))
            connection.execute(
                "delete from session_item where (client, session) not in "
                "(select client, session from session)"
            )


def given_notes(database: LedgerDatabase) -> tuple[int, set[str]]:
    """How many of the sessions still known were told something, and the ids of the notes."""
    rows = database.rows("select client, session, value from session_item where kind = ?", (NOTE,))
    sessions = {(row["client"], row["session"]) for row in rows}
    return len(sessions), {row["value"] for row in rows}


def forget_sessions(database: LedgerDatabase) -> None:
    """Forget what all sessions were given. Raises StorageError."""
    with database.transaction(durable=False) as connection:
        for table in ("session", "session_item"):
            connection.execute(f"delete from {table}")


def texts_given(path: Path, client: str, session: str) -> set[str]:
    """The hashes of the lines that a session was given, read from the ledger at `path` without a
    lock.

    Empty if that is not possible without waiting.
    """
    with suppress(sqlite3.Error):
        name = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(name, uri=True, timeout=0.05)) as connection:
            rows = connection.execute(_ITEMS, (client, session_hash(session))).fetchall()
            return {value for kind, value in rows if kind == TEXT}
    return set()


def without_lines(text: str, hashes: set[str]) -> str:
    """`text` without the lines that have one of these hashes."""
    return "\n".join(line for line in text.splitlines() if line_hash(line) not in hashes)


def session_hash(session: str) -> str:
    """The hash by which the ledger knows a client's name of a session."""
    return sha256(session.encode("utf-8", "replace")).hexdigest()[:20]


def line_hash(line: str) -> str:
    """The hash of a line that is long enough to recognize. Otherwise empty.

    List marks and blanks around it do not count.
    """
    line = line.strip().lstrip("-*> ")
    if len(line) < _SHORTEST_LINE:
        return ""
    return sha256(line.encode("utf-8", "replace")).hexdigest()[:12]


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    with suppress(ValueError):
        return parse_stamp(text)
    return None
