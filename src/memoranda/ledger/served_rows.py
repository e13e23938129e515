"""Records which notes agents received: which call gave out which notes, to whom and when.

This is not a change of the memory. Recording never delays or fails a call: if it is not possible,
only the record is lost.
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
from memoranda.text.outside import outside_text

# This number of calls is kept; older ones are deleted.
_MAX_CALLS = 20_000
# After every hundredth call, old ones are deleted.
_CALLS_BETWEEN_SWEEPS = 100
# Recording a call waits this long for another process that writes.
_PATIENCE_SECONDS = 0.05
# Longer requests are cut.
_MAX_REQUEST_CHARACTERS = 200
# This number of notes is recorded of one call.
_MAX_NOTES = 50
_CALL = "insert into served (time, agent, how, asked) values (?, ?, ?, ?)"
_NOTE = "insert or ignore into served_note (note, call, position) values (?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Served:
    """One call that gave notes to an agent.

    time: when (ISO 8601, UTC).
    how: the tool. For notes that a hook gave unasked, `prompt` or `session start`.
    asked: the request, in one line.
    notes: the ids of the notes.
    """

    time: str
    agent: str
    how: str
    asked: str
    notes: tuple[str, ...]


class ServedRows:
    """Records which notes each agent received. Thread-safe."""

    def __init__(self, database: LedgerDatabase):
        self._database = database

    def add(
        self, moment: datetime, agent: str, how: str, request: str, notes: Iterable[str]
    ) -> None:
        """Record which notes an agent received.

        moment: when.
        agent: the name of the agent.
        how: the tool. For notes that a hook gave unasked, `prompt` or `session start`.
        request: the text of the call, of which one short line is kept.
        notes: the ids of the notes.
        """
        ids = list(dict.fromkeys(notes))[:_MAX_NOTES]
        if not ids:
            return
        short_request = outside_text(request, _MAX_REQUEST_CHARACTERS)
        row = Served(stamp(moment), agent, how, short_request, tuple(ids))
        # A call must not fail because its record cannot be written.
        with (
            suppress(StorageError),
            self._database.transaction(
                durable=False, may_wait=False, patience=_PATIENCE_SECONDS
            ) as connection,
        ):
            _insert(connection, [row])

    def rows(
        self, *, agent: str | None = None, note: str | None = None, limit: int = 200
    ) -> list[Served]:
        """Return the latest calls, newest first. Raises StorageError.

        agent: only calls of this agent. None for all.
        note: only calls that gave out the note with this id. None for all.
        limit: the greatest number of calls.
        """
        # The parameters come in the order of the clauses
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
        """Return (id, time) of the notes that agents received since a moment, newest first.

        The time is when the latest call gave out the note. Raises StorageError.
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
        """Return number of a call -> ids of its notes, in their order."""
        sql = (
            "select call, note from served_note where call in (select value from json_each(?)) "
            "order by call, position"
        )
        notes: dict[int, list[str]] = {call: [] for call in calls}
        for row in self._database.rows(sql, (json.dumps(calls),)):
            notes[row["call"]].append(row["note"])
        return {call: tuple(ids) for call, ids in notes.items()}


def insert_log(connection: Connection, data: bytes) -> None:
    """Insert the calls from the log of an earlier version, which has one JSON object a line.

    Damaged lines are skipped.
    """
    _insert(connection, list(_parse(data)))


def _insert(connection: Connection, rows: Sequence[Served]) -> None:
    """Insert calls. Now and then, delete the oldest."""
    for row in rows:
        values = (row.time, row.agent, row.how, row.asked)
        number = connection.execute(_CALL, values).lastrowid
        connection.executemany(
            _NOTE, [(note, number, position) for position, note in enumerate(row.notes)]
        )
        if number and number % _CALLS_BETWEEN_SWEEPS == 0:
            connection.execute("delete from served where number <= ?", (number - _MAX_CALLS,))
            _drop_notes_of_no_call(connection)


def _drop_notes_of_no_call(connection: Connection) -> None:
    """Delete the rows of notes whose call was deleted."""
    connection.execute("delete from served_note where call not in (select number from served)")


def _parse(data: bytes) -> Iterator[Served]:
    """Yield the calls in a log of an earlier version. Damaged lines are skipped."""
    for line in data.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            yield Served(
                str(row["time"]),
                str(row["agent"]),
                str(row["how"]),
                outside_text(str(row["asked"]), _MAX_REQUEST_CHARACTERS),
                tuple(map(str, row["notes"])),
            )
