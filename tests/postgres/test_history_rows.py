"""The history as rows of the server: taken over from lines of a version before, and revised row by
row.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib.resources import files as package_files
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.engine.history.erase import Erasure
from memoranda.ledger.postgres.replica_ledger import ReplicaLedger
from memoranda.sources.base import sha256
from postgres.conftest import Replica
from postgres.server import admin_of
from postgres.test_replicas import are_alike, journal

OLD = b"# Tea\n\ngreen\n"
NEW = b"# Tea\n\nblack\n"
TABLES = ("note", "journal", "blob", "access")


def line_of(number: int, verb: str, *steps: dict, **more: object) -> bytes:
    """A change as versions before wrote it into `journal`."""
    row: dict[str, object] = {
        "change": number,
        "time": f"2026-11-0{number + 1}T00:00:00Z",
        "verb": verb,
        "project": "notes",
        "path": "Tea.md",
        "agent": "claude",
        "face": "mcp",
        **more,
        "files": list(steps),
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def make_older_database(url: str, space: str) -> None:
    """Make what the version before left: a note that was written and edited."""
    wrote = {"do": "put", "project": "notes", "path": "Tea.md", "new": sha256(OLD), "size": 13}
    edited = wrote | {"old": sha256(OLD), "new": sha256(NEW), "mode": 384}
    origin = {"do": "origins", "project": "notes", "path": "é.md", "new": "0" * 64}
    origin["by"] = {"who": "owner", "trust": "owner", "time": "2026-01-01T00:00:00Z"}
    lines = [
        line_of(0, "origins", origin, agent=None, face=None),
        line_of(1, "write", wrote, by={"tool": "write_note"}),
        line_of(2, "edit", edited, details={"why": "\0\0 ripe \0 é", "how": "\\u0000 \\\0"}),
    ]
    scripts = package_files("memoranda.ledger.postgres").joinpath("migrations")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("create schema memoranda")
        db.execute(
            "create table memoranda.version (number integer primary key, reads integer not null, "
            "writes integer not null, at timestamptz not null default now())"
        )
        for number in range(1, 5):
            db.execute(scripts.joinpath(f"{number:03}.sql").read_text("utf-8"))
            db.execute("insert into memoranda.version values (%s, 1, 1)", [number])
        db.execute("select set_config('memoranda.space', %s, false)", [space])
        suffix = sha256(space.encode())[:12]
        for table in TABLES:
            db.execute(
                f"create table memoranda.{table}_{suffix} partition of memoranda.{table} "
                f"for values in ('{space}')"
            )
            db.execute(f"alter table memoranda.{table}_{suffix} enable row level security")
            db.execute(f"alter table memoranda.{table}_{suffix} force row level security")
            db.execute(
                f"create policy one_space on memoranda.{table}_{suffix} "
                "using (space = current_setting('memoranda.space', true))"
            )
        db.execute("insert into memoranda.space (name, last) values (%s, 2)", [space])
        for number, line in enumerate(lines):
            row = [space, number, uuid4(), line]
            db.execute("insert into memoranda.journal values (%s, %s, %s, now(), %s)", row)
        row = [space, sha256(OLD), OLD]
        db.execute("insert into memoranda.blob values (%s, %s, %s)", row)
        db.execute(
            "insert into memoranda.note values "
            "(%s, 'notes', 'Tea.md', 'file', %s, %s, null, 384, 0, 2)",
            [space, NEW, sha256(NEW)],
        )


def own_database(database: str, name: str) -> str:
    """Make an empty database on the same server. Returns its address."""
    name = f"{name}{os.getpid()}"
    with psycopg.connect(admin_of(database), autocommit=True) as db:
        role = database.partition("//")[2].partition("@")[0]
        db.execute(f"create database {name} owner {role}")
    return database.replace("/team?", f"/{name}?")


@pytest.mark.skipif("MEMORY_TEST_PG_URL" in os.environ, reason="makes a database of its own")
def test_lines_of_a_version_before_become_rows_and_can_be_taken_back(
    space: str, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    address = own_database(database, "older")
    for space_name in ("one", "two"):
        if space_name == "one":
            make_older_database(address, space_name)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / space_name))
        with open_session(f"{address}&space=one") as memory:
            changes = list(memory.engine.ledger.history.changes(origins=True))
            numbers = [change.number for change in changes]
            assert numbers[-3:] == [2, 1, 0]
            edit, write, origins = changes[-3:]
            assert edit.details == {"why": "␀␀ ripe ␀ é", "how": "\\u0000 \\␀"}
            assert write.by == {"tool": "write_note"}
            assert write.files[0].kept
            assert origins.files[0].path == "é.md"
            if space_name == "one":
                memory.undo()
            assert "green" in memory.read("notes/Tea").text
    with psycopg.connect(address) as db:
        row = db.execute("select to_regclass('memoranda.journal')").fetchone()
        assert row == (None,)
        policies = db.execute("select count(*) from pg_policies where tablename ~ '^(change|step)'")
        assert policies.fetchone() == (4,)


@pytest.mark.skipif("MEMORY_TEST_PG_URL" in os.environ, reason="makes a database of its own")
def test_what_the_version_before_erased_reaches_a_replica_that_was_away(
    space: str, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    address = own_database(database, "erased")
    make_older_database(address, "one")
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("select set_config('memoranda.space', 'one', false)")
        db.execute("update memoranda.space set epoch = 1")
        suffix = sha256(b"two")[:12]
        db.execute(f"create table memoranda.moving_journal_{suffix} (line bytea)")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "away"))
    with open_session(f"{address}&space=one") as memory:
        ledger = memory.engine.ledger
        assert isinstance(ledger, ReplicaLedger)
        # As if the replica had been there before the erasure, and not since
        with ledger.database.transaction() as connection:
            connection.execute("update change set path = 'Secret.md' where number = 1")
        state = ledger._folder.state()
        assert state is not None
        assert state.epoch == 1
        ledger._folder.set_state(replace(state, epoch=0))
    with open_session(f"{address}&space=one") as memory:
        paths = {change.path for change in memory.engine.ledger.history.changes()}
        assert "Secret.md" not in paths
    with psycopg.connect(address) as db:
        forced = "select relforcerowsecurity from pg_class where oid = 'memoranda.space'::regclass"
        assert db.execute(forced).fetchone() == (True,)
        tables_left = db.execute(
            "select relname from pg_class where relname ~ '^moving_'"
        ).fetchall()
        assert not tables_left


def test_what_is_erased_or_purged_reaches_a_replica_without_the_rest_of_the_history(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    b = replica("b")
    for number in range(5):
        a.write(Draft("x", title=f"Note {number}"))
    secret = a.write(Draft("the word is xyzzy", title="Secret"))
    a.write(Draft("x", title="Last"))
    assert b.log()

    def refuse(*_: object) -> None:
        raise AssertionError("the whole history was fetched")

    erased = Erasure(a).erase(
        [secret.id], agent=None, project=None, source=None, observation=None, dry_run=False
    )
    assert not erased.remains
    monkeypatch.setattr(ReplicaLedger, "_fetch_history", refuse)
    assert b.search("xyzzy").total == 0
    assert are_alike(a, b)
    assert b"Secret" not in journal(b.home)
