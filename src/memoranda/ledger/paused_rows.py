"""The agents that the owner paused, as rows of the ledger. A paused agent may change nothing."""

from __future__ import annotations

import json
from contextlib import suppress
from sqlite3 import Connection

from memoranda.errors import StorageError
from memoranda.ledger.database import LedgerDatabase

_PAUSE = "insert or ignore into paused (agent) values (?)"


class PausedRows:
    """Reads and sets which agents of one home are paused.

    Thread-safe. All methods raise StorageError.
    """

    def __init__(self, database: LedgerDatabase):
        self._database = database

    def names(self) -> list[str]:
        """Return the names of the paused agents, sorted."""
        rows = self._database.rows("select agent from paused order by agent")
        return [row["agent"] for row in rows]

    def has(self, agent: str) -> bool:
        """Whether an agent is paused."""
        try:
            row = self._database.row("select 1 from paused where agent = ?", (agent,))
        except StorageError:
            # A ledger of an earlier version on a disk that may not be written has no such table
            if self._database.is_writable:
                raise
            return False
        return row is not None

    def set_paused(self, agent: str, is_paused: bool) -> None:
        """Pause an agent, or let it go on.

        is_paused: True pauses it.
        """
        sql = _PAUSE if is_paused else "delete from paused where agent = ?"
        with self._database.transaction() as connection:
            connection.execute(sql, (agent,))


def insert_names(connection: Connection, data: bytes) -> None:
    """Import the previous version's file of paused agents.

    A damaged file is ignored: the owner can pause the agents again.
    """
    with suppress(ValueError, KeyError, TypeError):
        names = json.loads(data)["agents"]
        connection.executemany(_PAUSE, [(name,) for name in names if isinstance(name, str)])
