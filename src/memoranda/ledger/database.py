"""The SQLite file `ledger.db` of a home: opening it, its queries, its transactions.

A damaged file is renamed to `ledger.db.damaged-1` and a new one begun. SQLite keeps recent changes
in a second file, the write-ahead log `ledger.db-wal`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memoranda.errors import StorageError
from memoranda.sources.files import check_own, closed_on_error, disk_state, make_private

SCHEMA = Path(__file__).with_name("schema.sql")
# Raised with every change of schema.sql.
VERSION = 5
# Seconds to wait for another process that writes.
_BUSY_SECONDS = 3.0
_PRIVATE = 0o600
# A write-ahead log of at most this size is left to the next process.
_SMALL_LOG_BYTES = 256 << 10
_NOT_A_LEDGER = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "permission denied",
    sqlite3.SQLITE_CANTOPEN: "permission denied",
    sqlite3.SQLITE_IOERR: "the disk reported an input/output error",
    sqlite3.SQLITE_BUSY: "another process is writing it",
}
# Of these codes, the state of the disk says the reason better. An error without a code of its own is
# that of a table that could not be made.
_DISK_CODES = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_ERROR,
)
DAMAGED = "ledger.db.damaged"
"""The beginning of the name of a damaged file that was set aside."""
CHECK = "pragma quick_check(100)"
"""The query by which SQLite checks the file. It lists at most 100 complaints."""
# The names of the files of an SQLite database: the file, its write-ahead log, its shared memory.
_SUFFIXES = ("", "-wal", "-shm")


class LedgerRefused(StorageError):
    """The ledger could not be read or written."""

    def __init__(self, reason: str):
        super().__init__("the history", reason)


class LedgerDatabase:
    """The ledger of one home at `path`. Thread-safe; every failure is a StorageError.

    A damaged file is set aside and a new one begun: the notes are whole, and `trouble` says that
    their history is gone. On a disk that may not be written, the file is read as it is.

    mutex: held during every use of the connection.
    is_writable: whether the ledger can be written.
    """

    def __init__(self, path: Path):
        self.path = path
        self.mutex = threading.RLock()
        self.is_writable = False
        self._inode = 0
        # How often a file was opened
        self._openings = 0
        self._connection = self._open()

    @property
    def trouble(self) -> str:
        """A sentence that says that a damaged ledger was set aside, "" if none was."""
        damaged_files = self._damaged_files()
        if damaged_files:
            return (
                f"{damaged_files[-1].name}: the ledger was damaged and set aside; the notes are "
                "whole, and their history begins again"
            )
        return ""

    def _damaged_files(self) -> list[Path]:
        """Return the damaged files that were set aside, by name."""
        return sorted(self.path.parent.glob(f"{DAMAGED}*"))

    def refresh(self) -> bool:
        """Open the file again if the one at `path` was removed or replaced. Raises StorageError.

        Returns whether the file is another one now. Then it has none of the rows that were written
        before.
        """
        try:
            inode = os.stat(self.path).st_ino
        except FileNotFoundError:
            inode = 0
        is_gone = inode == 0
        is_other_file = is_gone or inode != self._inode
        # A ledger that could only be read may have become writable
        may_be_writable_now = not self.is_writable
        if is_other_file or may_be_writable_now:
            with self.mutex:
                connection = self._open()
                self._connection.close()
                self._connection = connection
        return is_other_file

    def _open(self) -> sqlite3.Connection:
        """Open the file for writing if possible, or else for reading.

        A damaged file is replaced by a new one. Raises LedgerRefused.
        """
        self._openings += 1
        # Only for its error, so that no device or pipe is opened
        for suffix in _SUFFIXES:
            check_own(f"{self.path}{suffix}")
        try:
            return self._open_writable()
        except sqlite3.OperationalError:
            # The disk is full or may not be written, or another process holds the file
            return self._open_read_only()
        except sqlite3.DatabaseError as error:
            if code_of(error) in _NOT_A_LEDGER:
                self.set_damaged_aside()
                return self._open_writable()
            raise self.refusal(error) from None
        except OSError:
            return self._open_read_only()

    def _open_writable(self) -> sqlite3.Connection:
        """Open the file, or make it. Raises sqlite3.Error or OSError if it cannot be written."""
        make_private(self.path.parent)
        # SQLite makes the file, never this module: closing any descriptor of it would end the locks
        # of all connections of this process (POSIX), and another process would then delete the
        # write-ahead log below them
        is_new = not self.path.exists()
        connection = _connect(str(self.path))
        with closed_on_error(connection):
            if is_new:
                os.chmod(self.path, _PRIVATE)
            connection.execute("pragma secure_delete = on")
            version = connection.execute("pragma user_version").fetchone()[0]
            if version > VERSION:
                raise LedgerRefused("it is of a later version; upgrade memoranda")
            connection.execute("pragma synchronous = full")
            if version < VERSION:
                connection.execute("pragma journal_mode = wal")
                script = SCHEMA.read_text("utf-8")
                connection.executescript(
                    f"begin immediate; {script}; pragma user_version = {VERSION}; commit;"
                )
            # Only a transaction shows whether the file may be written
            connection.execute("begin immediate")
            connection.execute("rollback")
        self.is_writable = True
        self._inode = os.stat(self.path).st_ino
        return connection

    def _open_read_only(self) -> sqlite3.Connection:
        """Open the file on a disk that may not be written.

        If there is no file, open an empty ledger.
        """
        self.is_writable = False
        self._inode = 0
        # Even a reader makes a file beside a ledger with a write-ahead log. Where that fails, the
        # ledger is opened as immutable, which needs no further file.
        for option in ("mode=ro", "immutable=1"):
            with suppress(sqlite3.Error):
                connection = _connect(f"file:{quote(str(self.path))}?{option}", uri=True)
                with closed_on_error(connection):
                    # Only a query shows whether the file can be read
                    connection.execute("select number from change limit 1").fetchone()
                return connection
        connection = _connect(":memory:")
        connection.executescript(SCHEMA.read_text("utf-8"))
        connection.execute("pragma query_only = on")
        return connection

    def set_damaged_aside(self) -> None:
        """Set a damaged file aside, so that the next `_open` makes a new one. Raises OSError."""
        number = len(self._damaged_files()) + 1
        os.replace(self.path, self.path.with_name(f"{DAMAGED}-{number}"))
        # A new file must not meet the write-ahead log of the old one
        for suffix in _SUFFIXES[1:]:
            with suppress(FileNotFoundError):
                os.unlink(f"{self.path}{suffix}")

    def refusal(self, error: sqlite3.Error) -> LedgerRefused:
        """Return the LedgerRefused for an SQLite error.

        If the error says that the file is damaged, a new file is begun first. So the caller can
        repeat the call.
        """
        code = code_of(error)
        if code not in _NOT_A_LEDGER:
            why = _REASONS.get(code, str(error))
            if code in _DISK_CODES:
                why = disk_state(self.path.parent) or why
            return LedgerRefused(why)
        self._reopen_damaged()
        return LedgerRefused("it was damaged and begins again; repeat the call")

    def _reopen_damaged(self) -> None:
        """Open the file again after SQLite found it damaged. If it is, a new one is begun."""
        with self.mutex, suppress(OSError, sqlite3.Error):
            self._connection.close()
            # Another process may have begun a new file in between
            if is_damaged(self.path):
                self.set_damaged_aside()
            self._connection = self._open()

    def rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[sqlite3.Row]:
        """Return all rows of a query. Raises StorageError."""
        try:
            with self.mutex:
                return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self.refusal(error) from None

    def row(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Row | None:
        """Return the first row of a query, None if it has no rows. Raises StorageError."""
        return next(iter(self.rows(sql, values)), None)

    @contextmanager
    def transaction(
        self, *, durable: bool = True, may_wait: bool = True, patience: float = 0.0
    ) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction. Yields the connection.

        durable: whether the transaction is safe on the disk when the block ends.
        may_wait: whether to wait some seconds for another process that writes. If not, only for
            `patience` seconds.

        Raises StorageError; then nothing of the transaction is in the file.
        """
        with self.mutex:
            connection = self._connection
            try:
                if not durable:
                    # With `normal`, a commit does not wait for the disk. With `full`, it does.
                    connection.execute("pragma synchronous = normal")
                if not may_wait:
                    connection.execute(f"pragma busy_timeout = {int(patience * 1000)}")
                connection.execute("begin immediate")
                yield connection
                connection.execute("commit")
            except sqlite3.Error as error:
                self._roll_back(connection)
                raise self.refusal(error) from None
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                with suppress(sqlite3.Error):
                    if not durable:
                        connection.execute("pragma synchronous = full")
                    if not may_wait:
                        connection.execute(f"pragma busy_timeout = {int(_BUSY_SECONDS * 1000)}")

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("rollback")

    def scrub(self) -> None:
        """Leave nothing of deleted rows in the write-ahead log. Raises StorageError."""
        row = self.row("pragma wal_checkpoint(truncate)")
        if row is not None and row["busy"]:
            raise LedgerRefused("another process is reading it")

    def rewrite(self) -> None:
        """Rewrite all pages, so that none keeps data that was moved to another page.

        SQLite overwrites deleted data, but not always data it moved between pages while rebuilding
        them. This takes time and disk space for the whole file, so only an erasure whose proof
        found something uses it. Raises StorageError.
        """
        with self.mutex:
            try:
                self._connection.execute("vacuum")
            except sqlite3.Error as error:
                raise self.refusal(error) from None
        self.scrub()

    def version(self) -> tuple[int, int]:
        """Return a value that changes if another connection writes, or if the file is opened again.

        It does not change if this object writes. Each connection counts the writes of others from
        1, so the number of openings is a part of the value.
        """
        row = self.row("pragma data_version")
        assert row is not None
        return self._openings, row["data_version"]

    def close(self) -> None:
        """Release the file.

        When its last connection closes, SQLite moves the write-ahead log into the file and waits
        for the disk twice. To save that time with a short log, a reader that cannot write is
        opened before, and closed last.
        """
        with self.mutex:
            if self.is_writable:
                reader = self._reader_of_short_log()
            else:
                reader = None
            self._connection.close()
            if reader is not None:
                reader.close()

    def _reader_of_short_log(self) -> sqlite3.Connection | None:
        """Open a connection that only reads, if there is a short write-ahead log; else None."""
        with suppress(OSError, sqlite3.Error):
            log_size = os.stat(f"{self.path}-wal").st_size
            has_short_log = 0 < log_size <= _SMALL_LOG_BYTES
            if has_short_log:
                reader = _connect(f"file:{quote(str(self.path))}?mode=ro", uri=True)
                # SQLite opens the file only when it is first read
                reader.execute("select 1 from change limit 1").fetchone()
                return reader
        return None


def _connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a connection whose rows have named columns, and that begins no transaction itself.

    uri: whether `name` is a URI with options of SQLite.
    """
    connection = sqlite3.connect(
        name, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS, uri=uri
    )
    connection.row_factory = sqlite3.Row
    return connection


def code_of(error: sqlite3.Error) -> int:
    """Return the primary result code of an SQLite error, such as SQLITE_FULL. 0 if it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damaged(path: Path) -> bool:
    """Whether SQLite finds the file damaged."""
    connection = _connect(str(path))
    try:
        return bool(complaints(connection.execute(CHECK).fetchall()))
    except sqlite3.DatabaseError as error:
        return code_of(error) in _NOT_A_LEDGER
    finally:
        connection.close()


def complaints(rows: Sequence[sqlite3.Row]) -> list[str]:
    """Return the complaints among the rows of `CHECK`, whose only row is `ok` for a sound file.

    SQLite 3.40 wrongly reports NULL values for a table without rowid whose key columns are in
    another order than in the table. These reports are left out.
    """
    lines = [" ".join(str(row[0]).split()) for row in rows]
    return [line for line in lines if line != "ok" and not line.startswith("NULL value in ")]
