"""One ledger file, open several times in one process, while other processes come and go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.ledger.database import LedgerDatabase
from memoranda.sources import beside_sqlite
from memoranda.sources.layout import Layout

OTHER_PROCESS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("insert into written values ('other')")
print(database.execute("select count(*) from written").fetchone()[0])
database.close()
"""


def write_in_another_process(path: Path) -> int:
    """Write one row by plain SQLite, close, and return how many rows that process saw."""
    run = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, str(path)], capture_output=True, text=True, check=True
    )
    return int(run.stdout)


def read_in_another_process(path: Path) -> None:
    """Open, read and close: the last connection to a database deletes its write-ahead log."""
    code = (
        "import sqlite3, sys; database = sqlite3.connect(sys.argv[1]);"
        "database.execute('select count(*) from sqlite_schema').fetchone(); database.close()"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


def test_a_second_connection_of_a_process_leaves_the_locks_of_the_first(tmp_path):
    path = tmp_path / "home" / "ledger.db"
    first = LedgerDatabase(path)
    with first.transaction() as connection:
        connection.execute("create table written (who text)")
    second = LedgerDatabase(path)
    for number in range(1, 4):
        # The close of the last connection deletes the log; these two are still open
        assert write_in_another_process(path) == 2 * number - 1
        assert path.with_name("ledger.db-wal").exists()
        with first.transaction() as connection:
            connection.execute("insert into written values ('first')")
        assert len(second.rows("select who from written")) == 2 * number
    first.close()
    second.close()


def test_a_look_into_the_files_leaves_the_locks(tmp_path):
    home = tmp_path / "home"
    with open_session(home) as memory:
        note = memory.write(Draft("the walrus sleeps on the quay", project="notes", title="Walrus"))
        private = Layout(home).private
        memory.erase(note, dry_run=True)
        for name in ("ledger.db", "index.db"):
            assert (private / f"{name}-wal").exists()
            read_in_another_process(private / name)
            assert (private / f"{name}-wal").exists(), "this process has it open"


def test_a_file_is_read_in_pieces_that_overlap(tmp_path, monkeypatch):
    monkeypatch.setattr(beside_sqlite, "_PIECE_BYTES", 10)
    path = tmp_path / "some.db"
    data = bytes(range(95))
    path.write_bytes(data)
    for overlap in (0, 3, 10, 40):
        read = list(beside_sqlite.pieces(str(path), overlap))
        assert read[0] == data[:10]
        joined = read[0] + b"".join(
            piece[min(overlap, 10 * number) :] for number, piece in enumerate(read) if number
        )
        assert joined == data


def test_a_new_ledger_is_private(tmp_path):
    path = tmp_path / "home" / "ledger.db"
    database = LedgerDatabase(path)
    with database.transaction() as connection:
        connection.execute("create table written (who text)")
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
    database.close()
