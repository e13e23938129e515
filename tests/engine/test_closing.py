"""A memory that is closed keeps no database open, whatever refuses meanwhile (our own design)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from memoranda.engine import open_session
from memoranda.errors import StorageError
from memoranda.ledger.reads import Reads


def refuse(*_: object) -> None:
    raise StorageError("the disk", "it is full")


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("select 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_work_before_closing_that_fails_leaves_no_database_open(tmp_path: Path) -> None:
    memory = open_session(tmp_path, watch=False)
    index = memory.engine.index.connection
    ledger = memory.engine.ledger.database._connection
    memory.engine.before_close.append(refuse)
    with pytest.raises(StorageError, match="it is full"):
        memory.close()
    assert not is_open(index)
    assert not is_open(ledger)
    memory.close()


def test_reads_that_cannot_be_written_leave_no_database_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_session(tmp_path, watch=False)
    ledger = memory.engine.ledger.database._connection
    monkeypatch.setattr(Reads, "flush", refuse)
    with pytest.raises(StorageError, match="it is full"):
        memory.close()
    assert not is_open(ledger)
