"""The index file: made when missing, made anew when damaged or old, never in anybody's way."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from index.conftest import WORD_TABLES, Desk
from memoranda.index.index import Index


def filled(path: Path) -> Desk:
    desk = Desk(path)
    desk.put_all({f"{number}.md": f"words of note {number} " * 20 for number in range(300)})
    return desk


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


def test_where_no_file_can_be_made_the_index_is_one_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    index = Index(tmp_path / "file" / "index.db")
    index.pin()
    assert index.notes.projects() == []
    assert index.identity == (1,)
    index.close()


def test_a_file_that_was_replaced_is_opened_anew_unless_it_is_pinned(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    one = filled(path)
    before = one.index.connection
    identity = one.index.identity
    one.index.pin()
    path.rename(tmp_path / "away.db")
    two = Desk(path)
    two.put("a.md", "words")
    assert one.index.connection is before
    one.index.unpin()
    assert one.index.connection is not before
    assert one.index.identity != identity
    assert one.found("words") == ["a.md"]
    for desk in (one, two):
        desk.index.close()


def test_a_merge_of_words_reads_no_table_whole_in_the_process_that_made_the_index(
    desk: Desk,
) -> None:
    for table in WORD_TABLES:
        plan = desk.db.execute(
            f"explain query plan delete from {table}_data where id >= 1 and id <= 2"
        ).fetchall()
        assert not [step for *_, step in plan if step.startswith("SCAN")], table
