"""Opening the index file, and making it anew when it is missing, old or damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from commonplace.errors import StorageError

T = TypeVar("T")

SCHEMA_VERSION = 10
"""Raised whenever the schema, or the way text becomes words, changes: the index is then rebuilt."""

_TABLES = ("project", "note", "expired", "text", "note_fold", "merged", "link", "entity", "passage", "feature")
_WORD_TABLES = ("note_fts", "name_fts", "passage_fts", "stem_fts")
_SIDE_FILES = ("-wal", "-shm", "-journal")
_CORRUPT, _NOT_A_DATABASE = 11, 26


def open_index(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Opens the index at `path`: (connection, True when it was made anew and is empty).

    A missing, damaged or older file is replaced. The caller holds the home's lock, so no two
    processes replace it at once, and serialises the calls on the connection. The file's mode is
    0600. Raises StorageError when it can neither be read nor made.
    """
    try:
        if path.exists():
            db = _open_existing(path)
            if db is not None:
                return db, False
        _delete(path)
        return _make(path), True
    except (OSError, sqlite3.OperationalError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StorageError(path.name, reason or "the system refused") from error


class Index(sqlite3.Connection):
    """The connection to an index, with what this process holds of it in memory: that goes with it."""

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self.held: dict[type, Any] = {}


def held(db: sqlite3.Connection, kind: type[T]) -> T:
    """What is held of `db`, one value of each kind, made by the first call."""
    kept = db.held if isinstance(db, Index) else {}
    if kind not in kept:
        kept[kind] = kind()
    return kept[kind]


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether `error` means that the index file is damaged and has to be made anew."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in (_CORRUPT, _NOT_A_DATABASE):
        return True
    return str(error).startswith(("no such table", "no such column", "vtable constructor failed"))


def identity(path: Path) -> tuple[int, int] | None:
    """What tells this index file from another that took its place; None when there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: committed at the end, rolled back when an exception passes."""
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise
    db.execute("commit")


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Inside, every query sees one state of the index, whatever another process writes meanwhile."""
    if db.in_transaction:
        yield
        return
    db.execute("begin")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("rollback")


def _open_existing(path: Path) -> sqlite3.Connection | None:
    db = None
    try:
        db = _connect(path)
        if db.execute("pragma user_version").fetchone()[0] == SCHEMA_VERSION:
            _probe(db)
            return db
    except sqlite3.DatabaseError as error:
        if not is_corrupt(error):
            if db is not None:
                db.close()
            raise
    if db is not None:
        db.close()
    return None


def _probe(db: sqlite3.Connection) -> None:
    """Reads a little of every table; raises sqlite3.DatabaseError when the file is damaged."""
    for table in _TABLES:
        db.execute(f"select * from {table} limit 1").fetchone()
    db.execute("select n.path, t.text from note n join text t on t.row = n.row order by n.row desc limit 1").fetchone()
    for table in _WORD_TABLES:
        db.execute(f"select rowid from {table} where {table} match 'a' limit 1").fetchone()


def _make(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    os.chmod(path, 0o600)
    db = _connect(path)
    script = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    db.executescript(f"begin immediate;\n{script}\npragma user_version = {SCHEMA_VERSION};\ncommit;")
    return db


def plain(error: sqlite3.Error) -> str:
    """What SQLite complains of, in words for people."""
    text = str(error)
    if "full" in text:
        return "the disk is full"
    if "readonly" in text or "read-only" in text:
        return "it is read-only"
    return "it is in use by another program" if "locked" in text else "SQLite could not use it; run memory doctor"


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False, factory=Index)
    db.execute("pragma page_size = 8192")
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = normal")
    db.execute("pragma cache_size = -4096")
    db.execute("pragma temp_store = memory")
    return db


def _delete(path: Path) -> None:
    path.unlink(missing_ok=True)
    for ending in _SIDE_FILES:
        Path(f"{path}{ending}").unlink(missing_ok=True)
