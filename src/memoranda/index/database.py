"""The index file: opening it, rebuilding it when it is missing, old or damaged, its transactions
and snapshots.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from memoranda.clock import waits_at_most
from memoranda.errors import Busy, StorageError
from memoranda.sources.files import closed_on_error, reason

P = ParamSpec("P")
T = TypeVar("T")

SCHEMA_VERSION = 21
"""Raised whenever the schema, or how a note and its words are read, changes: it is then rebuilt."""
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
)
_WORD_TABLES = ("note_fts", "name_fts", "passage_fts", "stem_fts")
_PROBES = (
    *(f"select * from {table} limit 1" for table in _TABLES),
    "select n.path, t.text from note n join text t on t.row = n.row order by n.row desc limit 1",
    *(f"select rowid from {table} where {table} match 'a' limit 1" for table in _WORD_TABLES),
)
# Keys bound to one statement.
_BATCH = 500
# Pages of 4 kB of a full-text table that are merged in one transaction.
_MERGED = 250
# SQLite's codes for a damaged file (SQLITE_CORRUPT, SQLITE_NOTADB).
_CORRUPT = 11
_NOT_A_DATABASE = 26
# How long SQLite waits for another process that writes the index.
_BUSY_SECONDS = 2.0
# Bytes of an index up to which it is copied into memory when it cannot be written.
_LARGEST_COPY = 256 << 20
# Bytes of an index from which on it is rewritten by way of a file.
_LARGE = 64 << 20
# Seconds after which an index that could not be written is tried again, once what replaces it
# shows the disk.
_TRY_AGAIN = 3.0
# How long the opening of the index waits for the home's lock.
_OPEN_SECONDS = 0.5
_SETTINGS = (
    "page_size = 8192",
    "journal_mode = wal",
    "synchronous = normal",
    "cache_size = -4096",
    "temp_store = memory",
)


class IndexConnection(sqlite3.Connection):
    """A connection to an index, together with this process's caches of it, which close with it."""

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self.held: dict[type, Any] = {}


def held(db: sqlite3.Connection, kind: type[T]) -> T:
    """The object of class `kind` that is cached for `db`, made by the first call."""
    if isinstance(db, IndexConnection):
        cache = db.held
    else:
        cache = {}
    if kind not in cache:
        cache[kind] = kind()
    return cache[kind]


class Database:
    """The index file at `path`, opened when first used. For one thread at a time.

    lock: held while the file is opened, created or thrown away.
    identity: (st_dev, st_ino, how often a file was opened). If it changes, the index is a new one,
        and every project must be compared with the disk.
    """

    def __init__(self, path: Path, lock: AbstractContextManager[object] | None = None):
        self.path = path
        self.openings = 0
        self.identity: tuple[int, ...] = ()
        self.projects: frozenset[str] = frozenset()
        """The names of all projects, those without notes among them: `[[A::B]]` may name one."""
        self._lock = nullcontext() if lock is None else lock
        self._connection: sqlite3.Connection | None = None
        self._is_pinned = False
        self._try_again: float | None = None
        self.is_copy = False
        """Whether the index in use is in memory, because the file cannot be written or made."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection. A file that is missing, foreign, damaged or was replaced is opened,
        or made again; while that cannot be, it is read as it is, or an index is made in memory.
        Raises StorageError."""
        if self._connection is not None:
            is_kept = (
                self._is_pinned or self._connection.in_transaction or self._try_again is not None
            )
            if is_kept or _inode(self.path) == self.identity[:2]:
                return self._connection
            self.close()
        try:
            # The lock keeps two processes from making the index together.
            with waits_at_most(_OPEN_SECONDS), self._lock:
                self._use(
                    (_open_existing(self.path) if self.path.exists() else None) or _make(self.path)
                )
                self._try_again = None
        except (OSError, sqlite3.OperationalError, StorageError) as error:
            # The home is away, with all its notes
            if not self.path.parent.parent.is_dir():
                if isinstance(error, StorageError):
                    why = error.reason
                else:
                    why = str(error)
                raise StorageError(
                    "the index", reason(error) if isinstance(error, OSError) else why
                ) from None
            read_only = _open_to_read(self.path)
            self._use(read_only or _make(None))
            self.is_copy = read_only is None
            self._try_again = time.monotonic() + _TRY_AGAIN
        return self._connection  # type: ignore[return-value]  # `_use` sets it

    def _use(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.openings += 1
        self.identity = (*_inode(self.path), self.openings)

    @property
    def write_lock(self) -> AbstractContextManager[object]:
        """The lock to hold while the index is brought up to date: the home's.

        None is needed for a private copy.
        """
        if self.is_copy:
            return nullcontext()
        return self._lock

    def copy_to_memory(self) -> bool:
        """Go on with a copy in memory, because the file cannot be written now; False when it is too
        large, or a copy already."""
        if (
            self.is_copy
            or sum(path.stat().st_size for path in _files(self.path) if path.exists())
            > _LARGEST_COPY
        ):
            return False
        pinned = self._is_pinned
        before = self.connection
        copy = _connect(None)
        with closed_on_error(copy):
            before.backup(copy)
        self.close()
        self._use(copy)
        self._is_pinned, self.is_copy, self._try_again = pinned, True, time.monotonic() + _TRY_AGAIN
        return True

    def close_stand_in(self) -> bool:
        """Have the file itself opened at the next use, if what is in use replaces it; whether
        it did.
        """
        if self._try_again is None:
            return False
        self.close()
        self._try_again = None
        return True

    def pin(self) -> None:
        """Open the index, and until `unpin` use this file even if another process puts a new one in
        its place. Only here the file is tried again that could not be written: its rows have other
        numbers."""
        is_busy = self._is_pinned or (
            self._connection is not None and self._connection.in_transaction
        )
        if self._try_again is not None and time.monotonic() >= self._try_again and not is_busy:
            self.close_stand_in()
        self._is_pinned = self.connection is not None

    def try_later(self) -> None:
        """Go on for some seconds with what replaces the file, if anything does."""
        if self._try_again is not None:
            self._try_again = time.monotonic() + _TRY_AGAIN

    def unpin(self) -> None:
        """Notice again when the file was replaced."""
        self._is_pinned = False

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._is_pinned = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.is_copy = False

    def rebuild(self) -> None:
        """Throw the file away; the next use rebuilds it."""
        with self._lock:
            self.close()
            for file in _files(self.path):
                file.unlink(missing_ok=True)

    def scrub(self) -> None:
        """Leave no byte of what was taken out: in the full-text segments, the free pages, the
        write-ahead log.
        """
        db = self.connection
        db.execute("pragma secure_delete = on")
        for table in _WORD_TABLES:
            db.execute(f"insert into {table} ({table}) values ('optimize')")
        if self.is_copy or not self._has_vacuumed_in_file():
            db.execute("vacuum")
        db.execute("pragma wal_checkpoint(truncate)")

    def _has_vacuumed_in_file(self) -> bool:
        """Rewrite a large index without its free pages, by way of a temporary file: our connection
        would have all of it in memory.

        Returns whether that was done.
        """
        with suppress(OSError, sqlite3.Error):
            if os.stat(self.path).st_size >= _LARGE:
                with closing(_connect(self.path)) as db:
                    db.execute("pragma secure_delete = on")
                    db.execute("pragma temp_store = file")
                    db.execute("vacuum")
                return True
        return False

    def transaction(self) -> AbstractContextManager[None]:
        """One write transaction: committed at the end, rolled back when an exception passes."""
        return transaction(self.connection)

    def snapshot(self) -> AbstractContextManager[None]:
        """Make every query in the block see one state of the index, even while other processes
        write.
        """
        return snapshot(self.connection)

    def version(self) -> tuple[int, int]:
        """A value that differs after any change, by this process or another."""
        return version(self.connection)

    def is_sound(self) -> bool:
        """Whether SQLite and its full-text tables find nothing wrong with the index."""
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
    """Reads one index: the base of the classes that hold the SQL."""

    def __init__(self, database: Database):
        self._database = database

    @property
    def _db(self) -> sqlite3.Connection:
        return self._database.connection

    def _among(
        self, sql: str, keys: Collection[str | int], *values: object
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a query in which `{marks}` means `keys`, the last of its values; in
        batches.

        The keys are bound, not passed as JSON, whose texts SQLite ends at a NUL.
        """
        listed = list(keys)
        for at in range(0, len(listed), _BATCH):
            part = listed[at : at + _BATCH]
            yield from self._db.execute(
                sql.format(marks=", ".join("?" * len(part))), (*values, *part)
            )


def reads(
    function: Callable[Concatenate[sqlite3.Connection, P], T],
) -> Callable[Concatenate[Any, P], T]:
    """A function of a connection as a method of `Queries`."""

    @wraps(function)
    def method(self: Queries, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(self._database.connection, *args, **kwargs)

    return method


def in_snapshot(
    function: Callable[Concatenate[sqlite3.Connection, P], T],
) -> Callable[Concatenate[sqlite3.Connection, P], T]:
    """The function of a connection, called inside a `snapshot` of it."""

    @wraps(function)
    def inside(db: sqlite3.Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        with snapshot(db):
            return function(db, *args, **kwargs)

    return inside


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: committed at the end, rolled back when an exception passes."""
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
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
    is_inside = db.in_transaction
    if not is_inside:
        db.execute("begin")
    try:
        yield
    finally:
        if not is_inside and db.in_transaction:
            db.execute("rollback")


def version(db: sqlite3.Connection) -> tuple[int, int]:
    """A value that differs after any change of the index, by this process or another."""
    return db.execute("pragma data_version").fetchone()[0], db.total_changes


@contextmanager
def many_changes(db: sqlite3.Connection) -> Iterator[None]:
    """Inside, the write-ahead log grows to 64 MB before it is copied, and more of what changes
    stays in memory: the same pages change again and again, and are written so much less often."""
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
    """Make the segments of each full-text table one, as every search asks each of them: some
    megabytes a transaction.

    Where the lock or the disk cannot be had it ends, and searches are slower.
    """
    with suppress(Busy, sqlite3.OperationalError):
        for table in _WORD_TABLES:
            pages = -_MERGED
            before = -2
            # fewer: nothing was left
            while db.total_changes - before >= 2:
                before = db.total_changes
                with lock, transaction(db):
                    db.execute(f"insert into {table} ({table}, rank) values ('merge', ?)", (pages,))
                pages = _MERGED


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether `error` means that the index file is damaged and has to be rebuilt."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in (_CORRUPT, _NOT_A_DATABASE):
        return True
    return str(error).startswith(("no such table", "no such column", "vtable constructor failed"))


def explain(error: sqlite3.Error) -> str:
    """The reason for an SQLite error, in words for people."""
    text = str(error)
    if "full" in text:
        return "the disk is full"
    if "readonly" in text or "read-only" in text:
        return "it is read-only"
    if "locked" in text:
        return "it is in use by another program; try again later"
    return "SQLite could not use it; run memory doctor"


def _inode(path: Path) -> tuple[int, ...]:
    """A key that changes if another file takes this place. Empty if there is no file."""
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino
    except OSError:
        return ()


def _open_existing(path: Path, option: str = "") -> sqlite3.Connection | None:
    """Open the index at `path` and read a little of every table.

    None if the index has another version or is damaged.
    """
    if not all(file.is_file() for file in _files(path) if os.path.lexists(file)):
        # SQLite would wait for a pipe
        return None
    try:
        db = _connect(path, option)
        with closed_on_error(db):
            if db.execute("pragma user_version").fetchone()[0] == SCHEMA_VERSION:
                for read in _PROBES:
                    db.execute(read).fetchone()
                return db
        db.close()
    except sqlite3.DatabaseError as error:
        if not is_corrupt(error):
            raise
    return None


def _open_to_read(path: Path) -> sqlite3.Connection | None:
    """The index at `path`, only to be read; or None if it cannot be. No file is made or
    changed.
    """
    changes_wait = any(file.exists() and file.stat().st_size for file in _files(path)[1:2])
    for option in ("mode=ro", "immutable=1"):
        if path.is_file() and not (changes_wait and option == "immutable=1"):
            with suppress(sqlite3.Error, OSError):
                opened = _open_existing(path, option)
                if opened:
                    return opened
    return None


def _make(path: Path | None) -> sqlite3.Connection:
    """Create an empty index of mode 0600 at `path`, in place of any file there.

    None means in memory.
    """
    if path is not None:
        for file in _files(path):
            file.unlink(missing_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        os.chmod(path, 0o600)
    db = _connect(path)
    script = SCHEMA.read_text(encoding="utf-8")
    with closed_on_error(db):
        db.executescript(
            f"begin immediate;\n{script}\npragma user_version = {SCHEMA_VERSION};\ncommit;"
        )
    return db


def _connect(path: Path | None, option: str = "") -> sqlite3.Connection:
    if path is None:
        place = ":memory:"
    else:
        place = f"{path.as_uri()}?{option}"
    db = sqlite3.connect(
        place,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
        factory=IndexConnection,
    )
    with closed_on_error(db):
        for setting in _SETTINGS:
            db.execute(f"pragma {setting}")
        # Asked by word alone. In no file, so that an index made by an earlier version has it too.
        db.execute("create virtual table temp.words using fts5vocab(main, note_fts, instance)")
    return db


def _files(path: Path) -> list[Path]:
    """The index file and those SQLite keeps beside it."""
    return [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm", "-journal")]
