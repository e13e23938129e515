"""Counts how often notes are read, and when they were last used, in the table `read`.

A read does not rewrite the note. Users are shown the sum of the count in the note's header and the
count here. Upkeep folds the counts: it adds them to the headers, and subtracts them here in the same
transaction.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from sqlite3 import Connection, Row
from typing import NamedTuple

from memoranda.clock import Clock
from memoranda.errors import StorageError
from memoranda.ledger.database import LedgerDatabase

# Up to this number of keys, a query reads only their rows. For more keys, all rows are read.
_MAX_KEYS_IN_QUERY = 500
# Adds the row `excluded`, as SQLite calls the new row, to the row that has its key already.
_ADD = (
    "insert into read (key, count, read_at, used_at, restarted) values (?, ?, ?, ?, ?) "
    "on conflict (key) do update set "
    "count = case when excluded.restarted then excluded.count else count + excluded.count end, "
    "read_at = case when excluded.restarted then excluded.read_at "
    "else max(read_at, excluded.read_at) end, "
    "used_at = case when excluded.restarted then excluded.used_at "
    "else max(used_at, excluded.used_at) end, "
    "restarted = max(restarted, excluded.restarted)"
)
_SUBTRACT = (
    "update read set count = max(0, count - :count), "
    "used_at = case when used_at > :used_at then used_at else 0 end where key = :key"
)
# Deletes the rows that say nothing any more.
_CLEAR = "delete from read where count = 0 and used_at = 0 and restarted = 0"


# A read waits this long for another process that writes, so that others see the count at once.
_PATIENCE_SECONDS = 0.1
# After a wait in vain, no read waits again for this time: the other process may be stopped.
_IMPATIENT_SECONDS = 5.0


class ReadRow(NamedTuple):
    """The reads of one note. Moments are seconds since 1970, 0 for never.

    times: how often it was read.
    read_at: when it was last read.
    used_at: when it was last used.
    restarted: 1 if counting began again with this row: earlier counts must be forgotten.
    """

    times: int = 0
    read_at: int = 0
    used_at: int = 0
    restarted: int = 0


class Reads:
    """Counts and returns the reads of one home. Thread-safe.

    Each note has a key, a text that its caller chooses. Counting never fails and hardly waits.
    While another process writes the ledger, a count stays in memory, and is written with the next
    one or by `close`.
    """

    def __init__(self, database: LedgerDatabase, clock: Clock):
        self._database = database
        self._clock = clock
        self._guard = threading.Lock()
        # (key, reads) that are not in the ledger yet
        self._waiting: list[tuple[str, ReadRow]] = []
        self._has_written = False
        # After a wait in vain: until this time of `time.monotonic`, no read waits again
        self._impatient_until = 0.0

    # --- counting

    def count_read(self, key: str, times: int = 1) -> None:
        """Count reads of the note with this key.

        times: how many reads.
        """
        self._add([(key, ReadRow(times, int(self._clock().timestamp())))])

    def record_use(self, keys: Iterable[str], moment: datetime) -> None:
        """Record that the notes with these keys were used at `moment`."""
        second = int(moment.timestamp())
        self._add([(key, ReadRow(used_at=second)) for key in keys])

    def restart(self, *keys: str) -> None:
        """Forget the reads of these keys, since new notes have taken the place of the old ones."""
        rows = self.rows(keys)
        keys_with_reads = [key for key in dict.fromkeys(keys) if key in rows]
        self._add([(key, ReadRow(restarted=1)) for key in keys_with_reads])

    def _add(self, rows: Iterable[tuple[str, ReadRow]]) -> None:
        """Count these reads, and write them if the ledger is free."""
        with self._guard:
            self._waiting += rows
        self._write(may_wait=False)

    def _write(self, *, may_wait: bool) -> None:
        """Write the waiting reads to the ledger, if possible. Otherwise they go on waiting.

        may_wait: whether to wait for another thread or process that writes. If not, only for a
            tenth of a second, and not at all soon after a wait in vain.
        """
        if not self._waiting:
            return
        is_impatient = time.monotonic() < self._impatient_until
        patience = 0.0 if is_impatient else _PATIENCE_SECONDS
        # For `acquire`, -1 means without a limit
        timeout = -1 if may_wait else patience
        has_mutex = self._database.mutex.acquire(timeout=timeout)
        if not has_mutex:
            return
        try:
            with self._guard:
                rows = self._waiting
                self._waiting = []
            is_stored = self._store(rows, may_wait, patience)
            if is_stored:
                return
            self._impatient_until = time.monotonic() + _IMPATIENT_SECONDS
            # Other threads may have added reads meanwhile, which are newer
            with self._guard:
                self._waiting = [*rows, *self._waiting]
        finally:
            self._database.mutex.release()

    def _store(self, rows: Iterable[tuple[str, ReadRow]], may_wait: bool, patience: float) -> bool:
        """Store reads in one transaction. Returns whether that succeeded.

        rows: (key, reads) of the notes.
        may_wait: whether to wait some seconds for another process that writes.
        patience: how many seconds to wait if not.
        """
        if not self._database.is_writable:
            return False
        try:
            with self._database.transaction(
                durable=False, may_wait=may_wait, patience=patience
            ) as connection:
                connection.executemany(_ADD, [(_storable_key(key), *row) for key, row in rows])
                self._forget_restarted(connection)
        except StorageError:
            return False
        self._has_written = True
        return True

    def _forget_restarted(self, connection: Connection) -> None:
        """Clear the marks `restarted`, since the rows in the ledger are the only counts.

        A home with a server overrides this: the server must learn of the marks.
        """
        connection.execute("update read set restarted = 0 where restarted = 1")
        connection.execute(_CLEAR)

    # --- reading

    def rows(self, keys: Collection[str] | None = None) -> dict[str, ReadRow]:
        """Return the reads of notes, by key. Reads that other processes counted are among them.

        keys: return only the reads of these keys. None means all keys.
        """
        rows = self._written_rows(keys)
        # A copy, since other threads may add reads meanwhile
        waiting = [*self._waiting]
        for key, row in waiting:
            is_asked_for = keys is None or key in keys
            if is_asked_for:
                rows[key] = sum_of(rows.get(key, ReadRow()), row)
        return rows

    def _written_rows(self, keys: Collection[str] | None) -> dict[str, ReadRow]:
        """Return the reads by key that are in the ledger, without the waiting ones."""
        return {
            row["key"]: ReadRow(row["count"], row["read_at"], row["used_at"], row["restarted"])
            for row in self._stored_rows(keys)
        }

    def _stored_rows(self, keys: Collection[str] | None) -> Iterable[Row]:
        """Return the rows of the table `read` with these keys. For many keys, return all rows."""
        if keys is None or len(keys) > _MAX_KEYS_IN_QUERY:
            return self._database.rows("select * from read")
        marks = ",".join("?" * len(keys))
        return self._database.rows(
            f"select * from read where key in ({marks})", [*map(_storable_key, keys)]
        )

    def counts(self, keys: Collection[str] | None = None) -> Counter[str]:
        """Return how often notes were read, by key. Keys that were never read are left out.

        keys: return only the counts of these keys. None means all keys.
        """
        return Counter({key: row.times for key, row in self.rows(keys).items() if row.times})

    def used(self, keys: Collection[str] | None = None) -> dict[str, int]:
        """Return when notes were last used, by key, in seconds since 1970.

        Keys that were never used are left out.

        keys: return only the times of these keys. None means all keys.
        """
        return {key: row.used_at for key, row in self.rows(keys).items() if row.used_at}

    def rows_to_fold(self) -> dict[str, ReadRow]:
        """Return all reads by key, so that they can be added to the headers of notes.

        In a home with a server, they are the reads on all machines.
        """
        self.flush()
        return self._written_rows(keys=None)

    def stamp(self) -> tuple[int, int]:
        """Return the sum of all counts, and the last moment of a read or use.

        Whenever a read is counted or folded, at least one of the two numbers changes.
        """
        row = self._database.row(
            "select total(count) as reads, max(max(read_at), max(used_at)) as latest from read"
        )
        if row is None:
            return (0, 0)
        # The waiting reads are not in the table yet. Each changes the sum by one at least.
        count = int(row["reads"]) + len(self._waiting)
        return (count, row["latest"] or 0)

    # --- taking away

    def subtract(self, connection: Connection, folded: Mapping[str, ReadRow]) -> None:
        """Take reads out of the log of reads, because they are now counted in the headers of notes.

        A read that was logged since stays in the log.

        connection: the transaction that also writes the headers.
        folded: how many reads of each key to take out.
        """
        if not folded:
            return
        rows = [
            {"key": _storable_key(key), "count": row.times, "used_at": row.used_at}
            for key, row in folded.items()
        ]
        connection.executemany(_SUBTRACT, rows)
        connection.execute(_CLEAR)

    def add_back(self, folded: Mapping[str, ReadRow]) -> None:
        """Count reads again that were subtracted for a change of headers which was not made.

        folded: the reads, as they were subtracted.
        """
        self._add(folded.items())

    def forget(self, keys: Iterable[str]) -> None:
        """Delete everything about these keys. Raises StorageError."""
        self.flush()
        forgotten = {*keys}
        with self._guard:
            self._waiting = [(key, row) for key, row in self._waiting if key not in forgotten]
        with self._database.transaction(durable=False) as connection:
            for table in ("read", "sent_read"):
                sql = f"delete from {table} where key = ?"
                connection.executemany(sql, [(_storable_key(key),) for key in forgotten])

    def flush(self) -> None:
        """Write the waiting reads to the ledger as soon as that is possible."""
        self._write(may_wait=True)

    def close(self) -> None:
        """Write the waiting reads."""
        self.flush()


def parse_log(data: bytes) -> Iterator[tuple[str, ReadRow]]:
    """Yield (key, reads) from the lines of an access log, which earlier versions wrote.

    `3 KEY` means three reads, `@1767225600 KEY` a use at that second, `0 KEY` a restart.
    """
    for line in data.decode("utf-8", "replace").split("\n"):
        value, _, key = line.partition(" ")
        if not key:
            continue
        if value == "0":
            yield key, ReadRow(restarted=1)
        elif value.isdigit():
            yield key, ReadRow(int(value))
        elif value[:1] == "@" and value[1:].isdigit():
            yield key, ReadRow(used_at=int(value[1:]))


def add_reads(connection: Connection, rows: Iterable[tuple[str, ReadRow]]) -> None:
    """Count reads, inside a transaction of the database."""
    connection.executemany(_ADD, [(_storable_key(key), *row) for key, row in rows])


def sum_of(earlier: ReadRow, later: ReadRow) -> ReadRow:
    """Combine two rows of one key: the counts are added, and the later of two moments is taken.

    earlier: the reads that were counted first.
    later: the reads that were counted next. If counting began again with it, `earlier` is
        forgotten.
    """
    if later.restarted:
        return later
    return ReadRow(
        times=earlier.times + later.times,
        read_at=max(earlier.read_at, later.read_at),
        used_at=max(earlier.used_at, later.used_at),
        restarted=earlier.restarted,
    )


def _storable_key(key: str) -> str:
    """Return a key as SQLite accepts it: `?` in place of half a surrogate pair."""
    return key.encode("utf-8", "replace").decode()
