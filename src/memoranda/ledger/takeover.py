"""Moves the contents of files of an earlier version into the ledger.

One transaction inserts the rows of a file and records in `taken_over` that they are there. Then the
file is removed. If a crash prevents that, the record tells the next process to remove only the file.
A file that cannot be parsed stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from memoranda.errors import StorageError
from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.paused_rows import insert_names
from memoranda.ledger.reads import add_reads, parse_log
from memoranda.ledger.review_rows import ANSWER, REQUEST
from memoranda.ledger.served_rows import insert_log
from memoranda.ledger.sessions import NOTE, TEXT
from memoranda.sources.base import File
from memoranda.sources.files import read_file
from memoranda.sources.layout import PRIVATE, Layout

Insert = Callable[[Connection, bytes], None]


class Damaged(StorageError):
    """A file of an earlier version cannot be parsed.

    name: the file.
    contents: its contents in words.
    """

    def __init__(self, name: str, contents: str):
        super().__init__(contents, f"{PRIVATE}/{name} is damaged; move it away")


def take_over_file(database: LedgerDatabase, path: Path, insert: Insert) -> bool:
    """Insert the contents of the file at `path` into the ledger, and remove the file.

    database: the ledger.
    insert: inserts rows from the bytes of the file. It raises ValueError if it cannot parse them;
        then the file stays.

    Returns whether there was a file. Raises ValueError, StorageError, OSError.
    """
    try:
        file = read_file(str(path))
    except FileNotFoundError:
        return False
    with database.transaction() as connection:
        # The log of reads may have grown since a crash, so only its end is new
        data = file.data[_bytes_taken(connection, path.name, file) :]
        if data:
            insert(connection, data)
        sql = "insert or replace into taken_over (name, inode, size) values (?, ?, ?)"
        connection.execute(sql, (path.name, file.stamp.inode, file.stamp.size))
    os.unlink(path)
    with database.transaction(durable=False) as connection:
        connection.execute("delete from taken_over where name = ?", (path.name,))
    return True


def _bytes_taken(connection: Connection, name: str, file: File) -> int:
    """Return how much of an earlier version's file is in the ledger already, in bytes.

    name: the name of the file.
    """
    sql = "select size from taken_over where name = ? and inode = ?"
    row = connection.execute(sql, (name, file.stamp.inode)).fetchone()
    if row is None:
        return 0
    return int(row["size"])


def take_over(layout: Layout, database: LedgerDatabase) -> None:
    """Move the files about reads, sessions, paused agents and received notes into the ledger.

    The home's lock must be held. Raises StorageError, OSError. A session that cannot be read is left
    where it is.

    database: the ledger.
    """
    names = set(os.listdir(layout.private))
    if layout.access_log.name in names:
        take_over_file(database, layout.access_log, _insert_reads)
    if layout.served.name in names:
        take_over_file(database, layout.served, insert_log)
    if layout.paused.name in names:
        take_over_file(database, layout.paused, insert_names)
    if layout.sessions.name in names:
        for path in sorted(layout.sessions.iterdir()):
            with suppress(OSError):
                take_over_file(database, path, _insert_session(path.name))
        with suppress(OSError):
            layout.sessions.rmdir()
    if layout.access_lock.name in names:
        layout.access_lock.unlink(missing_ok=True)


def take_over_review(layout: Layout, database: LedgerDatabase, kind: str) -> None:
    """Move the file of the owner's answers, or of the agents' requests, into the ledger.

    database: the ledger.
    kind: ANSWER or REQUEST.

    Raises Damaged.
    """
    path, contents = review_files(layout)[kind]
    try:
        take_over_file(database, path, _insert_rows_of(kind))
    except ValueError:
        raise Damaged(path.name, contents) from None


def review_files(layout: Layout) -> dict[str, tuple[Path, str]]:
    """Return kind of rows -> the file that had them, and its contents in words."""
    return {
        ANSWER: (layout.review, "the answers of review"),
        REQUEST: (layout.requests, "the requests of agents"),
    }


def review_values(data: bytes) -> dict[str, dict[str, Any]]:
    """Parse a file of answers or requests, a JSON object by key. Raises ValueError."""
    values = json.loads(data)
    if not isinstance(values, dict) or not all(isinstance(row, dict) for row in values.values()):
        raise ValueError("not an object of objects")
    return values


def _insert_rows_of(kind: str) -> Insert:
    """Return a function that inserts the content of an old file into the table `review`.

    kind: the kind of its rows, such as answers or requests.
    """

    def insert(connection: Connection, data: bytes) -> None:
        rows = [(kind, key, json.dumps(value)) for key, value in review_values(data).items()]
        sql = "insert or ignore into review (kind, key, value) values (?, ?, ?)"
        connection.executemany(sql, rows)

    return insert


def _insert_reads(connection: Connection, data: bytes) -> None:
    """Insert the reads of an access log."""
    add_reads(connection, parse_log(data))
    connection.execute("update read set restarted = 0")
    connection.execute("delete from read where count = 0 and used_at = 0")


def _insert_session(name: str) -> Insert:
    """Return the function that inserts the record of a session.

    name: the name of the file, `CLIENT-HASH`, with the hash of the session.
    """
    client, _, session = name.rpartition("-")

    def insert(connection: Connection, data: bytes) -> None:
        """Insert the record from the bytes of its file."""
        # Lines such as `note 1a2b3c4d`, `text HASH` or `saw TIME`
        lines = [line.partition(" ") for line in data.decode("ascii", "replace").splitlines()]
        times = [value for word, _, value in lines if word == "saw"]
        saw = max(times, default=None)
        sql = "insert or ignore into session (client, session, changed, saw) values (?, ?, ?, ?)"
        connection.execute(sql, (client, session, saw or "", saw))
        connection.executemany(
            "insert or ignore into session_item (client, session, kind, value) values (?, ?, ?, ?)",
            [(client, session, word, value) for word, _, value in lines if word in (NOTE, TEXT)],
        )

    return insert
