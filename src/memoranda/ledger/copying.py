"""A consistent copy of a ledger, also of one that is in use, and what it holds."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from memoranda.errors import StorageError
from memoranda.ledger.change import FIRST_OF_MACHINE
from memoranda.ledger.reads import ReadRow, add_reads
from memoranda.sources.files import disk_state


@contextmanager
def _open(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Open the ledger at `path` in a mode of SQLite URIs, `ro` or `rw`. Raises StorageError."""
    try:
        name = f"file:{quote(str(path))}?mode={mode}"
        with closing(sqlite3.connect(name, uri=True, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise StorageError(path.name, disk_state(path.parent) or str(error)) from None


def copy_ledger(source: Path, target: Path) -> None:
    """Copy the ledger at `source`, which may be in use, to the single file `target`.

    Beside notes in PostgreSQL, a ledger also has changes of files that only this machine has. Their
    numbers begin at FIRST_OF_MACHINE. The copy leaves them out.

    Raises StorageError.
    """
    # If SQLite made the file, other users of the machine could read it
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    with _open(source, "rw") as source_database, _open(target, "rw") as target_database:
        source_database.backup(target_database)
        # The copy takes over the write-ahead log of the source, which would be a second file
        target_database.execute("pragma journal_mode = delete")
        for table, column in (("step", "change"), ("change", "number")):
            sql = f"delete from {table} where {column} >= ?"
            target_database.execute(sql, (FIRST_OF_MACHINE,))


def relocate_ledger(path: Path, old: str, new: str) -> bool:
    """Replace the folder `old` by `new` in all paths of the ledger at `path`.

    For `/home/a` and `/home/b`, the path `/home/a/notes` becomes `/home/b/notes`. Returns whether
    there was such a path. Raises StorageError.
    """
    with _open(path, "rw") as connection:
        rows_before = connection.total_changes
        for table, column in (("step", "root"), ("step", "file"), ("origin", "root")):
            connection.execute(
                f"update or replace {table} set {column} = :new || "
                f"substr({column}, length(:old) + 1) where {column} = :old "
                f"or substr({column}, 1, length(:old) + 1) = :old || '/'",
                {"new": new, "old": old},
            )
        _relocate_spaces(connection, old, new)
        is_changed = connection.total_changes > rows_before
        # These rows are about files that are not synced yet. All files of a copy are synced.
        for table in ("temp_folder", "pending_step", "unsynced"):
            connection.execute(f"delete from {table}")
        return is_changed


def _relocate_spaces(connection: sqlite3.Connection, old: str, new: str) -> None:
    """Replace the folder `old` by `new` in the access rows of spaces, which name their homes."""
    sql = "select number, value from access where section = 'spaces'"
    for number, text in connection.execute(sql).fetchall():
        space = json.loads(text)
        home = str(space.get("home", ""))
        if home == old or home.startswith(f"{old}/"):
            space["home"] = new + home.removeprefix(old)
            sql = "update access set value = ? where number = ?"
            connection.execute(sql, (json.dumps(space), number))


def put_reads(path: Path, reads: Mapping[str, ReadRow]) -> None:
    """Replace all read counts in the ledger at `path`, which no process has open.

    reads: the reads of each note, by its key.

    Raises StorageError.
    """
    with _open(path, "rw") as connection:
        connection.execute("begin")
        # `sent_read` has the reads that were being sent to a server
        for table in ("read", "sent_read"):
            connection.execute(f"delete from {table}")
        add_reads(connection, reads.items())
        connection.execute("commit")


def ledger_counts(path: Path) -> tuple[int, int]:
    """Return how many changes and how many texts the ledger at `path` holds.

    Large texts, which are files beside it, are not counted.
    """
    with _open(path, "ro") as connection:
        changes = connection.execute("select count(*) from change").fetchone()[0]
        texts = connection.execute("select count(*) from text").fetchone()[0]
        return changes, texts


def is_unfinished(path: Path) -> bool:
    """Whether some change of the ledger at `path` was set aside and is not carried out yet.

    False if there is no ledger.
    """
    if not path.exists():
        return False
    with _open(path, "ro") as connection:
        return connection.execute("select 1 from waiting").fetchone() is not None


def latest_changes(path: Path, limit: int) -> list[tuple[int, str, str, str]]:
    """Return (number, verb, project, path) of the latest changes, newest first.

    This makes no file beside the ledger.

    path: the ledger.
    limit: the greatest number of changes.
    """
    # Without a write-ahead log, no process has the ledger open. Then it can be opened as immutable,
    # for which SQLite makes no file.
    is_closed = not path.with_name(f"{path.name}-wal").exists()
    mode = "ro&immutable=1" if is_closed else "ro"
    with _open(path, mode) as connection:
        sql = "select number, verb, project, path from change order by number desc limit ?"
        return connection.execute(sql, (limit,)).fetchall()
