"""A record of what agents received: which notes were read, found or told, to whom, when, and the
request.

It records reads and is not a change of the memory. Writing it never delays a caller: if a call
cannot be recorded, only its row is lost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection

from memoranda.clock import stamp
from memoranda.errors import StorageError
from memoranda.ledger.database import LedgerDatabase

# Calls kept; the oldest go.
_MOST_CALLS = 20_000
# Calls between two looks at how many there are.
_LOOK_EVERY = 100
# Seconds a row waits for another process that writes.
_PATIENCE = 0.05
# Characters of what was asked for.
_LONGEST = 200
# Notes noted of one call.
_MOST_NOTES = 50
_CALL = "insert into served (time, agent, how, asked) values (?, ?, ?, ?)"
_NOTE = "insert or ignore into served_note (note, call, position) values (?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Served:
    """One call that gave notes to an agent. `how`: the tool, or `prompt` or `session start` for what
    was told unasked. `notes` are ids.
    """

    time: str
    agent: str
    how: str
    asked: str
    notes: tuple[str, ...]


class ServedRows:
    """The records of what agents received in one home. Thread-safe."""

    def __init__(self, database: LedgerDatabase):
        self._database = database

    def add(
        self, moment: datetime, agent: str, how: str, asked_for: str, notes: Iterable[str]
    ) -> None:
        """Note what an agent got."""
        ids = list(dict.fromkeys(notes))[:_MOST_NOTES]
        if not ids:
            return
        row = Served(stamp(moment), agent, how, _flat(asked_for), tuple(ids))
        # A call must not fail because its record cannot be written.
        with (
            suppress(StorageError),
            self._database.transaction(
                durable=False, may_wait=False, patience=_PATIENCE
            ) as connection,
        ):
            _insert(connection, [row])

    def rows(
        self, *, agent: str | None = None, note: str | None = None, limit: int = 200
    ) -> list[Served]:
        """The calls of an agent, or those that gave out a note, the latest first.

        Raises StorageError.
        """
        sql = "select * from served"
        values: list[str | int] = []
        if note is not None:
            sql += " join served_note on served_note.call = served.number and note = ?"
            values.append(note)
        if agent is not None:
            sql += " where agent = ?"
            values.append(agent.lower())
        sql += " order by number desc limit ?"
        calls = self._database.rows(sql, (*values, limit))
        notes = self._notes([call["number"] for call in calls])
        return [
            Served(call["time"], call["agent"], call["how"], call["asked"], notes[call["number"]])
            for call in calls
        ]

    def latest_notes(self, since: datetime, limit: int) -> list[tuple[str, str]]:
        """The ids of the notes agents got since a moment, each with the time of the last, the latest
        first. Raises StorageError.
        """
        sql = (
            "select note, max(time) as last from served join served_note on call = number "
            "where time >= ? group by note order by last desc limit ?"
        )
        rows = self._database.rows(sql, (stamp(since), limit))
        return [(row["note"], row["last"]) for row in rows]

    def forget(self, ids: Collection[str]) -> None:
        """Remove every call about these notes, which were erased. Raises StorageError."""
        names = json.dumps(sorted(ids))
        calls = "select call from served_note where note in (select value from json_each(?))"
        with self._database.transaction() as connection:
            connection.execute(f"delete from served where number in ({calls})", (names,))
            _drop_notes_of_no_call(connection)

    def _notes(self, calls: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """By call, the ids of what it gave."""
        sql = (
            "select call, note from served_note where call in (select value from json_each(?)) "
            "order by call, position"
        )
        notes: dict[int, list[str]] = {call: [] for call in calls}
        for row in self._database.rows(sql, (json.dumps(calls),)):
            notes[row["call"]].append(row["note"])
        return {call: tuple(ids) for call, ids in notes.items()}


def insert_log(connection: Connection, data: bytes) -> None:
    """Take over the lines of JSON of the version before; a line that was cut off says nothing."""
    _insert(connection, list(_parse(data)))


def _insert(connection: Connection, rows: Sequence[Served]) -> None:
    for row in rows:
        call = connection.execute(_CALL, (row.time, row.agent, row.how, row.asked)).lastrowid
        connection.executemany(
            _NOTE, [(note, call, position) for position, note in enumerate(row.notes)]
        )
        if call and call % _LOOK_EVERY == 0:
            connection.execute("delete from served where number <= ?", (call - _MOST_CALLS,))
            _drop_notes_of_no_call(connection)


def _drop_notes_of_no_call(connection: Connection) -> None:
    connection.execute("delete from served_note where call not in (select number from served)")


def _parse(data: bytes) -> Iterator[Served]:
    for line in data.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            yield Served(
                str(row["time"]),
                str(row["agent"]),
                str(row["how"]),
                _flat(str(row["asked"])),
                tuple(map(str, row["notes"])),
            )


def _flat(asked_for: str) -> str:
    """The request in one line, without characters that databases refuse."""
    return " ".join(asked_for.split())[:_LONGEST].encode("utf-8", "replace").decode()
