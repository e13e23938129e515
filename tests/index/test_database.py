"""The index file: made when missing, made again when damaged or old, never in anybody's way."""

from __future__ import annotations

import gc
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from index.conftest import WORD_TABLES, Desk
from memoranda.index import database
from memoranda.index.index import Index
from memoranda.ledger.database import LedgerDatabase


def filled(path: Path) -> Desk:
    desk = Desk(path)
    desk.put_all({f"{number}.md": f"words of note {number} " * 20 for number in range(300)})
    return desk


def open_files_below(folder: Path) -> list[str]:
    """The files of `folder` that this process has open; none where the system does not say."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        return []
    targets = [os.readlink(link) for link in descriptors.iterdir() if link.is_symlink()]
    return sorted(target for target in targets if target.startswith(str(folder)))


def test_a_missing_index_is_made_for_the_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        desk = filled(tmp_path / "index.db")
    finally:
        os.umask(old)
    for name in os.listdir(tmp_path):
        assert stat.S_IMODE(os.stat(tmp_path / name).st_mode) == 0o600, name
    desk.index.close()


@pytest.mark.parametrize(
    "damage",
    [
        "empty",
        "garbage",
        "truncated",
        "head",
        "schema",
        "version",
        "no table",
        "folder of the past",
    ],
)
def test_a_damaged_or_foreign_index_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "index.db"
    desk = filled(path)
    desk.db.execute("pragma wal_checkpoint(truncate)")
    if damage == "version":
        desk.db.execute("pragma user_version = 99")
    elif damage == "no table":
        desk.db.execute("drop table link")
    desk.index.close()
    data = path.read_bytes()
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "garbage":
        path.write_bytes(b"this is no database at all " * 500)
    elif damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "head":
        path.write_bytes(b"\xff" * 100 + data[100:])
    elif damage == "schema":
        path.write_bytes(data[:100] + b"\xff" * 4000 + data[4100:])
    elif damage == "folder of the past":
        Path(f"{path}-wal").write_bytes(b"left behind" * 1000)
        path.unlink()
    again = Desk(path)
    again.holds_nothing()
    again.put("a.md", "works")
    assert again.found("works") == ["a.md"]
    again.index.close()
    assert open_files_below(tmp_path) == []


def test_an_index_that_is_made_after_another_was_filled_holds_nothing(tmp_path: Path) -> None:
    first = filled(tmp_path / "first.db")
    second = Desk(tmp_path / "second.db")
    second.holds_nothing()
    in_memory = Desk(tmp_path / "no folder" / "index.db")
    in_memory.holds_nothing()
    for desk in (first, second, in_memory):
        desk.index.close()


@pytest.mark.parametrize(
    "damage",
    [
        b"no database " * 999,
        b"",
        b"SQLite format 3\0" + bytes(5000),
        b"SQLite format 3\0" + b"\xff" * 5000,
    ],
)
def test_a_damaged_file_of_either_database_is_not_kept_open(tmp_path: Path, damage: bytes) -> None:
    for name in ("index.db", "ledger.db"):
        (tmp_path / name).write_bytes(damage)
    gc.disable()
    try:
        Index(tmp_path / "index.db").close()
        desk = Desk(tmp_path / "index.db")
        desk.index.close()
        LedgerDatabase(tmp_path / "ledger.db").close()
        assert open_files_below(tmp_path) == []
    finally:
        gc.enable()


def test_where_no_file_can_be_made_the_index_is_one_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    index = Index(tmp_path / "file" / "index.db")
    index.pin()
    assert index.notes.projects() == []
    assert index.identity == (1,)
    index.close()


def test_an_index_that_another_program_locks_as_it_is_made_is_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = database._connect
    others: list[sqlite3.Connection] = []

    def connect_and_lock(path: Path | None, option: str = "") -> sqlite3.Connection:
        connection = connect(path, option)
        if path is not None:
            connection.execute("pragma busy_timeout = 1")
            others.append(sqlite3.connect(path, isolation_level=None))
            others[-1].execute("begin exclusive")
        return connection

    monkeypatch.setattr(database, "_connect", connect_and_lock)
    folder = tmp_path / "state"
    folder.mkdir()
    index = Index(folder / "index.db")
    index.pin()
    assert index.notes.projects() == []
    assert index.is_copy
    index.close()
    for other in others:
        other.close()


def test_a_file_that_was_replaced_is_opened_anew_unless_it_is_pinned(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    first = filled(path)
    before = first.index.connection
    identity = first.index.identity
    first.index.pin()
    path.rename(tmp_path / "away.db")
    second = Desk(path)
    second.put("a.md", "words")
    assert first.index.connection is before
    first.index.unpin()
    assert first.index.connection is not before
    assert first.index.identity != identity
    assert first.found("words") == ["a.md"]
    for desk in (first, second):
        desk.index.close()


def test_a_merge_of_words_reads_no_table_whole_in_the_process_that_made_the_index(
    desk: Desk,
) -> None:
    for table in WORD_TABLES:
        plan = desk.db.execute(
            f"explain query plan delete from {table}_data where id >= 1 and id <= 2"
        ).fetchall()
        assert not [step for *_, step in plan if step.startswith("SCAN")], table
