"""Records which notes and lines each session of a client received, so that it gets nothing twice.

A client is an agent program such as `claude-code`; a session is one conversation in it. A hook has
less than a second, so recording never waits. If a text could not be recorded, or its row was
deleted, the session receives it once more.
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
# Older sessions, and those beyond this number, are forgotten.
_MAX_SESSIONS = 200
_MAX_SESSION_AGE = timedelta(days=30)
# A session whose records have this number of characters receives nothing more.
_FULL_CHARACTERS = 64_000
# `last_seen` looks at this number of the latest sessions of a client.
_LATEST_SESSIONS = 20
# A hook that only reads waits this long for a writer, and then goes without the records.
_READ_SECONDS = 0.05
# Shorter lines occur too often to show that a session received them.
_MIN_LINE_CHARACTERS = 12
_ITEMS = "select kind, value from session_item where client = ? and session = ?"


class SessionRows:
    """The record of what one session of a client was told, as it was when this object was made.

    notes: the ids of the notes that the session received.
    texts: the hashes of the lines that the session received (`line_hash`).
    saw: until when the session knows the notes of other agents. None if it knows none.
    is_known: whether the session had a record already.
    is_full: whether the session has received as much as one session may get.
    """

    def __init__(self, database: LedgerDatabase, client: str, session: str):
        self._database = database
        # The key of the row in `session`
        self._key = (client, session_hash(session))
        row = database.row("select * from session where client = ? and session = ?", self._key)
        items = [(item["kind"], item["value"]) for item in database.rows(_ITEMS, self._key)]
        self.is_known = row is not None
        self.notes = {value for kind, value in items if kind == NOTE}
        self.texts = {value for kind, value in items if kind == TEXT}
        self.saw = _moment(row["saw"]) if row is not None else None
        # The record is measured as a text with one line per item, such as `note 1a2b3c4d`
        size = sum(len(f"{kind} {value}\n") for kind, value in items)
        self.is_full = size >= _FULL_CHARACTERS

    def last_seen(self) -> datetime | None:
        """Return until when the client knows the notes of other agents.

        It is the latest `saw` of the client's latest sessions. None if no session knows such a
        note.
        """
        client, _ = self._key
        sql = "select saw from session where client = ? order by changed desc limit ?"
        rows = self._database.rows(sql, (client, _LATEST_SESSIONS))
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
        """Record the notes and lines that the session receives now.

        saw: the moment up to which the session knows the notes of other agents now. None leaves it
            as it was.
        notes: the ids of the notes.
        text: the lines; only their hashes are recorded.
        """
        note_ids = [*notes]
        self.notes.update(note_ids)
        line_hashes = [line_hash(line) for line in text.splitlines()]
        items = [(NOTE, note_id) for note_id in note_ids]
        # A short line has no hash
        items += [(TEXT, digest) for digest in line_hashes if digest]
        sql = (
            "insert into session (client, session, changed, saw) values (?, ?, ?, ?) "
            "on conflict (client, session) do update "
            "set changed = excluded.changed, saw = coalesce(excluded.saw, saw)"
        )
        values = (*self._key, stamp(now), stamp(saw) if saw is not None else None)
        with (
            suppress(StorageError),
            self._database.transaction(durable=False, may_wait=False) as connection,
        ):
            connection.execute(sql, values)
            connection.executemany(
                "insert or ignore into session_item (client, session, kind, value) "
                "values (?, ?, ?, ?)",
                [(*self._key, *item) for item in items],
            )

    def without_given(self, text: str) -> str:
        """Return `text` without the lines that the session already received."""
        return without_lines(text, self.texts)

    def sweep(self, now: datetime) -> None:
        """Forget the sessions of all clients that are too old, or beyond the highest number.

        now: the present moment.
        """
        sql = (
            "delete from session where changed < ? or (client, session) in "
            "(select client, session from session order by changed desc limit -1 offset ?)"
        )
        with (
            suppress(StorageError),
            self._database.transaction(durable=False, may_wait=False) as connection,
        ):
            connection.execute(sql, (stamp(now - _MAX_SESSION_AGE), _MAX_SESSIONS))
            connection.execute(
                "delete from session_item where (client, session) not in "
                "(select client, session from session)"
            )


def given_notes(database: LedgerDatabase) -> tuple[int, set[str]]:
    """Return how many recorded sessions received notes, and the ids of these notes."""
    rows = database.rows("select client, session, value from session_item where kind = ?", (NOTE,))
    sessions = {(row["client"], row["session"]) for row in rows}
    return len(sessions), {row["value"] for row in rows}


def forget_sessions(database: LedgerDatabase) -> None:
    """Delete the records of all sessions. Raises StorageError."""
    with database.transaction(durable=False) as connection:
        for table in ("session", "session_item"):
            connection.execute(f"delete from {table}")


def texts_given(path: Path, client: str, session: str) -> set[str]:
    """Return the hashes of the lines that a session received.

    The home need not be open. Returns an empty set if the ledger cannot be read without waiting.

    path: the file of the ledger.
    client: the agent program, such as `claude-code`.
    session: the client's own name of the session.
    """
    with suppress(sqlite3.Error):
        name = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(name, uri=True, timeout=_READ_SECONDS)) as connection:
            rows = connection.execute(_ITEMS, (client, session_hash(session))).fetchall()
            return {value for kind, value in rows if kind == TEXT}
    return set()


def without_lines(text: str, hashes: set[str]) -> str:
    """Return `text` without the lines that have one of these hashes."""
    return "\n".join(line for line in text.splitlines() if line_hash(line) not in hashes)


def session_hash(session: str) -> str:
    """Return the hash that names a session in the ledger.

    session: the client's own name of the session.
    """
    return sha256(session.encode("utf-8", "replace")).hexdigest()[:20]


def line_hash(line: str) -> str:
    """Return the hash of a line without list marks and blanks around it. "" for a short line.

    `- Use UTC for all times` has the hash of `Use UTC for all times`.
    """
    line = line.strip().lstrip("-*> ")
    if len(line) < _MIN_LINE_CHARACTERS:
        return ""
    return sha256(line.encode("utf-8", "replace")).hexdigest()[:12]


def _moment(text: str | None) -> datetime | None:
    """Parse a time of the ledger. Returns None for None and for a damaged text."""
    if text is None:
        return None
    with suppress(ValueError):
        return parse_stamp(text)
    return None
