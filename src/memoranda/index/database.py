"""Open the index file, rebuild it when it is damaged, and run its transactions and snapshots.

A file that is missing or of another version is rebuilt, too.

While the file cannot be written or created, a *stand-in* replaces it: the file opened only for
reading, a copy in memory, or an empty index in memory.

While a database is *pinned*, this process goes on with the file that it has opened, even if another
process replaces the file. A call pins it, so that it does not meet two indexes with other rows.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from memoranda.clock import waits_at_most
from memoranda.errors import Busy, StorageError
from memoranda.sources.files import closed_on_error, disk_state, reason

P = ParamSpec("P")
T = TypeVar("T")

SCHEMA_VERSION = 33
"""Raise it whenever the schema changes, or how a note and its words are read. An index with another
version is rebuilt."""
SCHEMA = Path(__file__).with_name("schema.sql")

_TABLES = (
    "project",
    "note",
    "tally",
    "expired",
    "text",
    "note_fold",
    "merged",
    "claim",
    "link",
    "entity",
    "passage",
    "feature",
    "embedded",
    "skipped",
    "unplaced",
)
_WORD_TABLES = ("note_fts", "name_fts", "passage_fts", "stem_fts")
# Read a little of every table, which shows most kinds of damage.
_PROBES = (
    *(f"select * from {table} limit 1" for table in _TABLES),
    "select n.path, t.text from note n join text t on t.row = n.row order by n.row desc limit 1",
    *(f"select rowid from {table} where {table} match 'a' limit 1" for table in _WORD_TABLES),
)
# How many keys one statement gets as values.
_KEYS_PER_STATEMENT = 500
# How many pages of 4 kB of a full-text table are merged in one transaction.
_PAGES_PER_MERGE = 250
# SQLite's codes for a damaged file (SQLITE_CORRUPT, SQLITE_NOTADB).
_CORRUPT = 11
_NOT_A_DATABASE = 26
# How long SQLite waits for another process that writes the index.
_BUSY_SECONDS = 2.0
# A larger index is not copied into memory when it cannot be written.
_MAX_COPY_BYTES = 256 << 20
# An index of this size or more is vacuumed by way of a temporary file instead of memory.
_VACUUM_IN_FILE_BYTES = 64 << 20
# How long a stand-in is used before the file is tried again.
_RETRY_SECONDS = 3.0
# How long opening the index waits for the home's lock.
_OPEN_WAIT_SECONDS = 0.5
_SETTINGS = (
    "page_size = 8192",
    "journal_mode = wal",
    "synchronous = normal",
    "cache_size = -4096",
    "temp_store = memory",
)


class IndexConnection(sqlite3.Connection):
    """A connection to an index, with this process's caches of it: one object per class (`held`)."""

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self.held: dict[type, Any] = {}


def held(db: sqlite3.Connection, kind: type[T]) -> T:
    """Return the object of class `kind` that is cached for `db`. The first call creates it."""
    if isinstance(db, IndexConnection):
        objects_by_class = db.held
    else:
        # A plain connection keeps nothing, so each call creates an object.
        objects_by_class = {}
    if kind not in objects_by_class:
        objects_by_class[kind] = kind()
    return objects_by_class[kind]


class Database:
    """The index file at `path`, opened when first used. For one thread at a time.

    lock: held while the file is opened, created or deleted.
    openings: how many times a file was opened.
    identity: (st_dev, st_ino, openings). If it changes, this is another index, and every project
        must be compared with the disk.
    projects: the names of all projects, also of those without notes. `[[A::B]]` may name one.
    is_copy: whether the index in use is in memory, because the file cannot be written or created.
    """

    def __init__(self, path: Path, lock: AbstractContextManager[object] | None = None):
        self.path = path
        self.openings = 0
        self.identity: tuple[int, ...] = ()
        self.projects: frozenset[str] = frozenset()
        self.is_copy = False
        self._lock = nullcontext() if lock is None else lock
        self._connection: sqlite3.Connection | None = None
        # Whether to use the open file even if another process replaces it.
        self._is_pinned = False
        # The `time.monotonic` from which on the file is tried again. None unless a stand-in is used.
        self._retry_time: float | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection.

        A file that is missing, damaged or of another version is created again. A file that another
        process replaced is opened again. If the file cannot be written or created, a stand-in is
        opened.

        Raises StorageError if the whole home is missing.
        """
        # Keep an open connection, unless another process has replaced its file.
        if self._connection is not None:
            is_stand_in = self._retry_time is not None
            # A call must not meet two indexes (`pin`).
            is_in_use = self._is_pinned or self._connection.in_transaction
            # `identity` begins with the two values of `_inode`.
            is_same_file = _inode(self.path) == self.identity[:2]
            # A stand-in serves until `pin` tries the file again.
            if is_stand_in or is_in_use or is_same_file:
                return self._connection
            self.close()

        # Open one. Both methods set `_connection`.
        try:
            self._open_or_make()
        except (OSError, sqlite3.OperationalError, StorageError) as error:
            # The index is in the folder `.memoranda` of the home.
            is_home_missing = not self.path.parent.parent.is_dir()
            if is_home_missing:
                raise StorageError("the index", _reason_of(error)) from None
            self._use_stand_in()
        return self._connection  # type: ignore[return-value]  # `_use` sets it

    def _open_or_make(self) -> None:
        """Open the file, and set `_connection` to it.

        A file that is missing, damaged or of another version is made again.
        """
        # The lock keeps two processes from creating the index at once.
        with waits_at_most(_OPEN_WAIT_SECONDS), self._lock:
            # None for a damaged file, or one of another version.
            existing = _open_existing(self.path) if self.path.exists() else None
            self._use(existing or _make(self.path))
            self._retry_time = None

    def _use_stand_in(self) -> None:
        """Open a stand-in, and set `_connection` to it.

        It is the file for reading only or, if that fails too, an empty index in memory.
        """
        read_only = _open_to_read(self.path)
        self._use(read_only or _make(None))
        self.is_copy = read_only is None
        self._retry_time = time.monotonic() + _RETRY_SECONDS

    def _use(self, connection: sqlite3.Connection) -> None:
        """Take a new connection, which gives the index a new identity."""
        self._connection = connection
        self.openings += 1
        self.identity = (*_inode(self.path), self.openings)

    @property
    def write_lock(self) -> AbstractContextManager[object]:
        """The lock to hold while the index is brought up to date.

        This is the home's lock. A private copy needs no lock, so the result does nothing then.
        """
        if self.is_copy:
            return nullcontext()
        return self._lock

    def copy_to_memory(self) -> bool:
        """Continue with a copy in memory, because the file cannot be written now.

        False, without any change, if the index is in memory already, or too large.
        """
        if self.is_copy:
            return False
        size_in_bytes = sum(path.stat().st_size for path in _files(self.path) if path.exists())
        if size_in_bytes > _MAX_COPY_BYTES:
            return False

        # Make the copy.
        original = self.connection
        copy = _connect(None)
        with closed_on_error(copy):
            original.backup(copy)

        # Put it in place of the file. `close` resets `_is_pinned` and `is_copy`.
        was_pinned = self._is_pinned
        self.close()
        self._use(copy)
        self._is_pinned = was_pinned
        self.is_copy = True
        self._retry_time = time.monotonic() + _RETRY_SECONDS
        return True

    def close_stand_in(self) -> bool:
        """Close a stand-in, so that the file is used again. Return whether one was closed.

        A copy in memory stays if the file cannot be opened yet: it was made from all notes, and
        making it again takes as long.
        """
        if self._retry_time is None:
            return False
        if self.is_copy and self.path.parent.parent.is_dir():
            return self._replace_copy()
        self.close()
        self._retry_time = None
        return True

    def _replace_copy(self) -> bool:
        """Use the file in place of the copy in memory. Return False if that is not possible yet."""
        copy = self._connection
        try:
            # This sets `_connection` to the file.
            self._open_or_make()
        except (OSError, sqlite3.OperationalError, StorageError):
            # The copy stays, and the file is tried again later.
            self._connection = copy
            self._retry_time = time.monotonic() + _RETRY_SECONDS
            return False
        self.is_copy = False
        self._is_pinned = False
        if copy is not None:
            copy.close()
        return True

    def pin(self) -> None:
        """Open the index and use this file until `unpin`, even if another process replaces it.

        If a stand-in was used long enough, the file is tried again. This must happen before a call
        has read anything, because notes have other rows in the file.
        """
        is_in_transaction = self._connection is not None and self._connection.in_transaction
        is_busy = self._is_pinned or is_in_transaction
        is_time_to_retry = self._retry_time is not None and time.monotonic() >= self._retry_time
        if is_time_to_retry and not is_busy:
            self.close_stand_in()
        # Reading `connection` opens the index. It is never None, so this sets True.
        self._is_pinned = self.connection is not None

    def try_later(self) -> None:
        """If a stand-in is in use, keep it for some more seconds."""
        if self._retry_time is not None:
            self._retry_time = time.monotonic() + _RETRY_SECONDS

    def unpin(self) -> None:
        """End the effect of `pin`: a file that another process replaces is opened again."""
        self._is_pinned = False

    def close(self) -> None:
        """Close the file, which also ends `pin`. The next use opens it again."""
        self._is_pinned = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.is_copy = False

    def rebuild(self) -> None:
        """Delete the index file. The next use creates an empty one."""
        with self._lock:
            self.close()
            for file in _files(self.path):
                file.unlink(missing_ok=True)

    def scrub(self) -> None:
        """Erase all bytes of notes that were taken out.

        They remain in full-text segments, free pages and the write-ahead log until then.
        """
        db = self.connection
        db.execute("pragma secure_delete = on")
        for table in _WORD_TABLES:
            db.execute(f"insert into {table} ({table}) values ('optimize')")
        if self.is_copy or not self._has_rewritten_by_file():
            db.execute("vacuum")
        db.execute("pragma wal_checkpoint(truncate)")

    def _has_rewritten_by_file(self) -> bool:
        """Rewrite a large index without its free pages, by way of a file beside it.

        A plain `vacuum` would hold the whole index in memory, or in a folder of the system, which
        may be small and of other people. Returns whether the index was rewritten.
        """
        compact_file = self.path.with_name(f".{self.path.name}-{os.getpid()}")
        with suppress(OSError, sqlite3.Error):
            if os.stat(self.path).st_size < _VACUUM_IN_FILE_BYTES:
                return False
            try:
                # Made here, so that only the user can read it.
                os.close(os.open(compact_file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                with (
                    closing(_connect(self.path)) as db,
                    closing(sqlite3.connect(compact_file)) as compact_db,
                ):
                    db.execute("pragma secure_delete = on")
                    # Write the index into the file without its free pages, and copy it back.
                    db.execute("vacuum into ?", (str(compact_file),))
                    compact_db.backup(db)
                return True
            finally:
                compact_file.unlink(missing_ok=True)
        return False

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block in one write transaction. An exception rolls it back."""
        return transaction(self.connection)

    def snapshot(self) -> AbstractContextManager[None]:
        """Make every query in the block see one state of the index, even while others write."""
        return snapshot(self.connection)

    def version(self) -> tuple[int, int]:
        """Return a value that differs after any change, by this process or another."""
        return version(self.connection)

    def is_sound(self) -> bool:
        """Whether SQLite finds no damage in the index and its full-text tables."""
        try:
            for table in _WORD_TABLES:
                try:
                    self.connection.execute(
                        f"insert into {table}({table}) values ('integrity-check')"
                    )
                except sqlite3.OperationalError as error:
                    # Perhaps the index cannot be written now.
                    if is_corrupt(error):
                        return False
            return self.connection.execute("pragma quick_check(1)").fetchone()[0] == "ok"
        except sqlite3.DatabaseError:
            return False


class Queries:
    """Reads one index. Base class of the classes with the queries."""

    def __init__(self, database: Database):
        self._database = database

    @property
    def _db(self) -> sqlite3.Connection:
        """The open connection to the index."""
        return self._database.connection

    def _among(
        self, sql: str, keys: Collection[str | int], *values: object
    ) -> Iterator[tuple[Any, ...]]:
        """Run a statement for any number of keys, some at a time, and yield all result rows.

        sql: a statement with `{marks}` where the keys are listed, as in `where id in ({marks})`.
        values: the values of the other `?`, which all come before `{marks}`.

        The keys are not passed as JSON, because SQLite ends its texts at a NUL.
        """
        all_keys = list(keys)
        for start in range(0, len(all_keys), _KEYS_PER_STATEMENT):
            part = all_keys[start : start + _KEYS_PER_STATEMENT]
            statement = sql.format(marks=", ".join("?" * len(part)))
            yield from self._db.execute(statement, (*values, *part))


def reads(
    function: Callable[Concatenate[sqlite3.Connection, P], T],
) -> Callable[Concatenate[Any, P], T]:
    """Turn a function of a connection into a method of `Queries`."""

    @wraps(function)
    def method(self: Queries, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(self._database.connection, *args, **kwargs)

    return method


def in_snapshot(
    function: Callable[Concatenate[sqlite3.Connection, P], T],
) -> Callable[Concatenate[sqlite3.Connection, P], T]:
    """Decorate a function of a connection so that it runs inside a `snapshot`."""

    @wraps(function)
    def inside(db: sqlite3.Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        with snapshot(db):
            return function(db, *args, **kwargs)

    return inside


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one write transaction. An exception rolls it back."""
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
        # Some errors of SQLite end the transaction by themselves.
        if db.in_transaction:
            db.execute("rollback")
        if isinstance(db, IndexConnection):
            # The caches may be about rows that were rolled back.
            db.held.clear()
        raise
    db.execute("commit")


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Make every query in the block see one state of the index, even while other processes write."""
    # A transaction of the caller has one state already, and must not be ended here.
    is_inside_transaction = db.in_transaction
    if not is_inside_transaction:
        db.execute("begin")
    try:
        yield
    finally:
        # Nothing was written, so there is nothing to lose.
        if not is_inside_transaction and db.in_transaction:
            db.execute("rollback")


def version(db: sqlite3.Connection) -> tuple[int, int]:
    """Return a value that differs after any change of the index, by this process or another."""
    return db.execute("pragma data_version").fetchone()[0], db.total_changes


@contextmanager
def many_changes(db: sqlite3.Connection) -> Iterator[None]:
    """Make writing very many notes in the block faster.

    Indexing changes the same pages again and again. With a write-ahead log of up to 64 MB and a
    larger cache, each page is written less often.
    """
    db.execute("pragma wal_autocheckpoint = 8000")
    db.execute("pragma cache_size = -32768")
    try:
        yield
    finally:
        for setting in (
            "wal_autocheckpoint = 1000",
            "cache_size = -4096",
            "wal_checkpoint(truncate)",
        ):
            db.execute(f"pragma {setting}")


def merge_words(db: sqlite3.Connection, lock: AbstractContextManager[object]) -> None:
    """Merge the segments of each full-text table into one, since every search reads each segment.

    One transaction merges about a megabyte. If the lock or the disk is busy, the rest is left, and
    searches are slower.
    """
    with suppress(Busy, sqlite3.OperationalError):
        for table in _WORD_TABLES:
            # A negative number begins to merge all segments, a positive one continues.
            pages = -_PAGES_PER_MERGE
            # FTS5 makes at least two changes as long as it has something to merge. The first value
            # lets the loop begin.
            changes_before = -2
            while db.total_changes - changes_before >= 2:
                changes_before = db.total_changes
                with lock, transaction(db):
                    # FTS5 takes commands as rows to insert.
                    db.execute(f"insert into {table} ({table}, rank) values ('merge', ?)", (pages,))
                pages = _PAGES_PER_MERGE


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether `error` means that the index file is damaged and has to be rebuilt."""
    code = getattr(error, "sqlite_errorcode", None)
    # The lowest byte is the kind of the error.
    if code is not None and code & 0xFF in (_CORRUPT, _NOT_A_DATABASE):
        return True
    return str(error).startswith(("no such table", "no such column", "vtable constructor failed"))


def explain(error: sqlite3.Error, folder: Path) -> str:
    """Return the reason for an SQLite error in words for people.

    folder: the folder of the index.
    """
    text = str(error)
    if "locked" not in text:
        # SQLite calls a database read-only if it cannot make a file beside it. So the disk is asked
        # first: it may be full, or gone.
        state = disk_state(folder)
        if state:
            return state
    if "full" in text:
        return "the disk is full"
    if "readonly" in text or "read-only" in text:
        return "it is read-only"
    if "locked" in text:
        return "it is in use by another program; try again later"
    return "SQLite could not use it; run memory doctor"


def _reason_of(error: OSError | sqlite3.OperationalError | StorageError) -> str:
    """Return why the index could not be opened."""
    if isinstance(error, StorageError):
        return error.reason
    if isinstance(error, OSError):
        return reason(error)
    return str(error)


def _inode(path: Path) -> tuple[int, ...]:
    """Return a key that changes if another file takes this place. () if there is no file."""
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino
    except OSError:
        return ()


def _open_existing(path: Path, option: str = "") -> sqlite3.Connection | None:
    """Open the index at `path` and read a little of every table.

    option: a parameter of the file's URI, such as `mode=ro`; "" for none.

    None if the index has another version or is damaged.
    """
    # SQLite would wait forever for a pipe.
    if not all(file.is_file() for file in _files(path) if os.path.lexists(file)):
        return None
    try:
        db = _connect(path, option)
        with closed_on_error(db):
            (file_version,) = db.execute("pragma user_version").fetchone()
            if file_version == SCHEMA_VERSION:
                # A damaged table raises an error.
                for statement in _PROBES:
                    db.execute(statement).fetchone()
                return db
        db.close()
    except sqlite3.DatabaseError as error:
        # An index that is only locked, for example, must not be made again.
        if not is_corrupt(error):
            raise
    return None


def _open_to_read(path: Path) -> sqlite3.Connection | None:
    """Open the index at `path` for reading only. No file is created or changed.

    None if it cannot be read.
    """
    _, write_ahead_log, *_ = _files(path)
    has_log = write_ahead_log.exists() and write_ahead_log.stat().st_size > 0
    # With `mode=ro`, SQLite still needs files beside the index. With `immutable`, it needs none, but
    # it ignores changes in the log. So this is tried last, and only without a log.
    options = ["mode=ro"]
    if not has_log:
        options.append("immutable=1")
    for option in options:
        if path.is_file():
            with suppress(sqlite3.Error, OSError):
                connection = _open_existing(path, option)
                if connection is not None:
                    return connection
    return None


def _make(path: Path | None) -> sqlite3.Connection:
    """Create an empty index at `path`, which only the user can read. It replaces any file there.

    path: None creates the index in memory.
    """
    if path is not None:
        for file in _files(path):
            file.unlink(missing_ok=True)
        # SQLite would create a file that others can read. The umask may take modes away.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        os.chmod(path, 0o600)
    db = _connect(path)
    with closed_on_error(db):
        _empty_index().backup(db, progress=_refuse_if_locked)
    return db


def _refuse_if_locked(status: int, _remaining: int, _total: int) -> None:
    """End the copying into a file that another program has locked.

    Without this, `backup` tries again for as long as the lock is held.

    status: the result code of the last step.

    Raises sqlite3.OperationalError.
    """
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise sqlite3.OperationalError("database is locked")


@cache
def _empty_index() -> sqlite3.Connection:
    """Return an empty index in memory, of which every new index of this process is a copy.

    To copy its pages takes a third of the time of making them.
    """
    db = _connect(None)
    atexit.register(db.close)
    script = SCHEMA.read_text(encoding="utf-8")
    db.executescript(
        f"begin immediate;\n{script}\npragma user_version = {SCHEMA_VERSION};\ncommit;"
    )
    return db


def _connect(path: Path | None, option: str = "") -> sqlite3.Connection:
    """Open an SQLite file with our settings. It may be empty.

    path: None opens a database in memory.
    option: a parameter of the file's URI, such as `mode=ro`.
    """
    address = ":memory:" if path is None else f"{path.as_uri()}?{option}"
    db = sqlite3.connect(
        address,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
        factory=IndexConnection,
    )
    with closed_on_error(db):
        for setting in _SETTINGS:
            db.execute(f"pragma {setting}")
        # Lists the places of a word. It is temporary, so an index of an earlier version has it, too.
        db.execute("create virtual table temp.words using fts5vocab(main, note_fts, instance)")
    return db


def _files(path: Path) -> list[Path]:
    """Return the index file and the files that SQLite creates next to it."""
    return [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm", "-journal")]
