"""Two machines on one space: each sees at once what the other has committed."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest

from memoranda import Draft, NotFound
from memoranda.engine import MemorySession
from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.history import History
from memoranda.note.edit import FindReplace
from memoranda.sources.layout import Layout
from postgres.conftest import Replica
from postgres.server import admin_of


def files(home: Path) -> dict[str, bytes]:
    """All notes in a folder of copies."""
    files_of_home = {}
    for name in ("notes", "memories", "categories", "archive", "graph", "banks", "kv"):
        for path in sorted((home / name).rglob("*")):
            if path.is_file():
                place = str(path.relative_to(home))
                files_of_home[place] = path.read_bytes()
    return files_of_home


def journal(home: Path) -> bytes:
    """The changes of a home as lines, the oldest first."""
    layout = Layout(home)
    history = History(layout, LedgerDatabase(layout.ledger))
    try:
        changes = [*history.changes(origins=True)]
        return b"".join(change.dump() for change in reversed(changes))
    finally:
        history.database.close()


def are_alike(first: MemorySession, second: MemorySession) -> bool:
    """Whether notes and journals are the same, byte for byte."""
    return files(first.home) == files(second.home) and journal(first.home) == journal(second.home)


def test_what_one_replica_wrote_another_reads_finds_and_lists_at_once(replica: Replica):
    a = replica("a")
    b = replica("b")
    note = a.write(Draft("likes dark mode", title="Taste"))
    text = b.read(note.id).text
    assert text == a.read(note.id).text
    titles = [hit.note.title for hit in b.search("dark")]
    assert titles == ["Taste"]
    b.write(Draft("likes 深色 windows", title="Windows"))
    titles = [hit.note.title for hit in a.search("深色")]
    assert titles == ["Windows"]
    assert are_alike(a, b)


def test_a_text_that_another_machine_replaced_is_not_kept_here_too(replica: Replica):
    a = replica("a")
    b = replica("b")
    note = a.write(Draft("likes dark mode", title="Taste"))
    text = b.read(note.id).text
    assert "dark" in text
    a.edit(note.id, FindReplace("dark", "light"))
    text = b.read(note.id).text
    assert "light" in text
    assert not [*b.engine.ledger.history.texts()]


def test_moving_linking_and_deleting_reach_the_other_replica(replica: Replica):
    a = replica("a")
    b = replica("b")
    first, second = (
        a.write(Draft(f"text {n}", title=n, folder="old/deep")) for n in ("One", "Two")
    )
    a.link(first, second)
    titles = [backlink.title for backlink in b.backlinks(second.id)]
    assert titles == ["One"]
    a.move(first.id, "new/One.md")
    title = b.read(("notes", "new/One.md")).title
    assert title == "One"
    b.delete(second.id)
    with pytest.raises(NotFound):
        a.read(second.id)
    assert files(a.home) == files(b.home)


def test_undo_and_restore_on_a_replica_that_never_saw_the_old_text(replica: Replica):
    a = replica("a")
    note = a.write(Draft("first", title="N"))
    before = files(a.home)
    a.delete(note.id)
    b = replica("b")
    b.undo()
    assert files(a.home) == {}
    a.read(note.id)
    assert files(a.home) == before
    assert files(b.home) == before


def test_erased_text_is_nowhere_on_any_replica_nor_in_the_database(replica: Replica, database: str):
    a = replica("a")
    b = replica("b")
    note = a.write(Draft("the unspeakable zyqquop", title="N"))
    b.write(Draft("something else", title="Other"))
    ids = [hit.note.id for hit in b.search("zyqquop")]
    assert ids == [note.id]
    erasure = a.erase(note.id)
    assert erasure.remains == ()
    assert any("write-ahead log" in place for place in erasure.out_of_reach), erasure.out_of_reach
    for place in erasure.out_of_reach:
        assert "dead rows" not in place, erasure.out_of_reach
    assert b.search("zyqquop").total == 0
    b.close()
    places = [
        path for path in b.home.rglob("*") if path.is_file() and b"zyqquop" in path.read_bytes()
    ]
    assert places == []
    with psycopg.connect(database) as db:
        db.execute("select set_config('memoranda.space', %s, false)", [b.engine.settings.space])
        for table in ("note", "text", "change", "step"):
            rows = db.execute(f"select row_to_json(t)::text from memoranda.{table} t").fetchall()
            for (row,) in rows:
                assert "zyqquop" not in row
        for table, column in (("note", "body"), ("text", "data")):
            rows = db.execute(f"select {column} from memoranda.{table}").fetchall()
            for (data,) in rows:
                assert b"zyqquop" not in bytes(data or b"")
    assert tables_with(database, b"zyqquop") == []


def tables_with(database: str, text: bytes) -> list[str]:
    """The files of tables, on the server's disk, that hold a text, dead rows included."""
    if os.environ.get("MEMORY_TEST_PG_URL"):
        return []
    with psycopg.connect(admin_of(database), autocommit=True) as db:
        db.execute("checkpoint")
        (folder,) = db.execute("select current_setting('data_directory')").fetchone() or ("",)
    files = [path for path in Path(folder, "base").rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if text in bytes_of(path)]


def bytes_of(path: Path) -> bytes:
    """The bytes of a file of the server; none of one that the server removed meanwhile."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_an_erasure_says_what_another_session_keeps(replica: Replica, database: str):
    a = replica("a")
    note = a.write(Draft("the unspeakable xyzzy", title="N"))
    with psycopg.connect(database) as other_session:
        other_session.execute("set transaction isolation level repeatable read")
        other_session.execute(
            "select set_config('memoranda.space', %s, false)", [a.engine.settings.space]
        )
        other_session.execute("select count(*) from memoranda.note")
        erasure = a.erase(note.id)
    assert any("dead rows" in place for place in erasure.out_of_reach), erasure.out_of_reach


def test_a_note_edited_by_hand_in_the_folder_of_copies_is_put_back(replica: Replica):
    a = replica("a")
    note = a.write(Draft("as it is", title="N"))
    place = a.home / "notes" / note.path
    before = place.read_bytes()
    place.write_bytes(before + b"by hand\n")
    a.tag(note.id, add=["x"])

    assert b"by hand" not in place.read_bytes()
    tags = a.read(note.id).tags
    assert tags == ("x",)
