"""The server's side: spaces kept apart, migrations, a server that is away."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memoranda import Draft, former_name
from memoranda.clock import wait_for
from memoranda.engine import open_session
from memoranda.engine.doctor import examine
from memoranda.errors import ConfigError, DatabaseAway, DatabaseRefused
from memoranda.ledger.change import Change
from memoranda.ledger.postgres.server_connection import SETTINGS, Connection
from memoranda.ledger.postgres.space_database import SCHEMA, SpaceDatabase
from memoranda.ledger.postgres.space_rows import SqlStatement
from postgres.conftest import Replica
from postgres.server import admin_of
from postgres.test_commits import cut


def connected(database: str, space: str = "") -> psycopg.Connection[tuple[object, ...]]:
    db = psycopg.connect(database, autocommit=True)
    db.execute("select set_config('memoranda.space', %s, false)", [space])
    return db


def test_spaces_of_one_database_know_nothing_of_each_other(space: str):
    with open_session(space) as first, open_session(f"{space}-other") as second:
        note = first.write(Draft("only here", title="N"))
        assert second.search("here").total == 0
        second.write(Draft("and there", title="N"))
        text = first.read(note.id).text
        assert text.count("only here") == 1
        numbers = [change.number for change in second.log()]
        assert numbers == [1]
        assert first.home != second.home


def test_row_level_security_hides_and_refuses_the_rows_of_other_spaces(space: str, database: str):
    with open_session(space) as memory:
        memory.write(Draft("x", title="N"))
        name = memory.engine.settings.space
    with connected(database, "somebody-else") as db:
        passes = "select rolsuper or rolbypassrls from pg_roles where rolname = current_user"
        if db.execute(passes).fetchone() != (False,):
            pytest.skip("this role passes by row-level security")
        partitions = db.execute(
            "select inhrelid::regclass::text from pg_inherits where inhparent::regclass::text "
            "like 'memoranda.%' and not exists (select 1 from pg_index where indexrelid = inhrelid)"
        ).fetchall()
        assert len(partitions) >= 5
        for (partition,) in partitions:
            assert db.execute(f"select count(*) from {partition}").fetchone() == (0,)
        for table in ("note", "change", "step", "text", "access", "shared_file", "space"):
            assert db.execute(f"select count(*) from memoranda.{table}").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(
                "insert into memoranda.note (space, project, path, kind, number) "
                "values (%s, 'notes', 'evil.md', 'file', 1)",
                [name],
            )
    with connected(database, name) as db:
        assert db.execute("select count(*) from memoranda.note").fetchone() == (1,)


def test_a_space_is_a_partition_of_each_large_table(space: str, database: str):
    with open_session(space) as memory:
        name = memory.engine.settings.space
        memory.write(Draft("x", title="N"))
    with connected(database, name) as db:
        plan = str(
            db.execute("explain select * from memoranda.note where space = %s", [name]).fetchall()
        )
        assert len(set(re.findall("note_[0-9a-f]{12}", plan))) == 1


def test_many_who_open_a_new_space_at_once_make_it_once(space: str):
    url, _, rest = space.partition("&space=")
    databases = [SpaceDatabase(url, rest) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        states = set(pool.map(lambda database: database.prepare(), databases))
    for database in databases:
        database.close()

    assert len(states) == 1


def test_tables_of_a_later_version_are_read_if_they_say_so_and_never_written(
    space: str, database: str
):
    with open_session(space) as memory:
        note = memory.write(Draft("x", title="N"))
        sql = "insert into memoranda.version (number, reads, writes) values (%s, %s, %s)"
        with connected(database) as db:
            try:
                db.execute(sql, [SCHEMA + 1, SCHEMA, SCHEMA + 1])
                title = memory.read(note.id).title
                assert title == "N"
                with pytest.raises(DatabaseRefused, match="upgrade"):
                    memory.write(Draft("y", title="M"))
                db.execute(sql, [SCHEMA + 2, SCHEMA + 1, SCHEMA + 1])
                with pytest.raises(DatabaseRefused, match="upgrade"):
                    open_session(space)
            finally:
                db.execute("delete from memoranda.version where number > %s", [SCHEMA])


@pytest.fixture
def door(space: str, tmp_path: Path) -> tuple[str, Path]:
    """The same space through a link to the folder of the server's socket, which can be taken away."""
    folder = space.partition("?host=")[2].partition("&")[0]
    if not folder.startswith("/"):
        pytest.skip("the server listens on no socket")
    link = Path(f"/tmp/cpl-{os.getpid()}-{tmp_path.name[-20:]}")
    link.symlink_to(folder)
    return space.replace(folder, str(link)), link


def test_while_the_server_is_away_reads_are_answered_with_a_warning_and_writes_are_refused(
    door: tuple[str, Path], database: str
):
    url, link = door
    folder = os.readlink(link)
    try:
        with open_session(url) as memory:
            memory.write(Draft("still here", title="N"))
            link.unlink()
            cut(database, memory)
            assert memory.search("still").total == 1
            assert any("may be missing here" in warning for warning in memory.warnings)
            with pytest.raises(DatabaseAway, match="Nothing was changed"):
                memory.write(Draft("y", title="M"))
            with open_session(url) as later:
                assert later.search("still").total == 1
            link.symlink_to(folder)
            memory.engine.ledger._database._away_reason = (
                # The second in which reads do not try again is over
                ""
            )
            memory.write(Draft("y", title="M"))
            assert memory.search("still").total == 1
            assert memory.warnings == []
    finally:
        link.unlink(missing_ok=True)


def test_without_a_server_and_without_copies_the_error_names_the_server(door: tuple[str, Path]):
    url, link = door
    link.unlink()
    with pytest.raises(DatabaseAway, match=r"team\) cannot be reached"):
        open_session(url)


def test_doctor_names_a_role_that_row_level_security_does_not_hold_and_the_remedy(space: str):
    if os.environ.get("MEMORY_TEST_PG_URL"):
        pytest.skip("the superuser of that server is not ours")
    with open_session(space) as memory:
        codes = {finding.code for finding in examine(memory)}
        assert "weak_role" not in codes
    with open_session(admin_of(space)) as memory:
        (finding,) = [finding for finding in examine(memory) if finding.code == "weak_role"]

    assert finding.level == "warning"
    assert "the role postgres" in finding.text
    assert "CREATE ROLE" in finding.text
    assert "NOBYPASSRLS" in finding.text


def test_a_statement_that_takes_too_long_changes_nothing_and_says_what_to_look_at(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Connection, "settings", SETTINGS | {"statement_timeout": "500ms"})
    a = replica("a")
    write = SpaceDatabase._write

    def slow(
        self: SpaceDatabase, statements: Sequence[SqlStatement], changes: Sequence[Change]
    ) -> None:
        write(self, [*statements, SqlStatement("select pg_sleep(5)", [])], changes)

    with monkeypatch.context() as patch:
        patch.setattr(SpaceDatabase, "_write", slow)
        with pytest.raises(DatabaseRefused, match=r"pg_stat_activity.* Nothing was changed"):
            a.write(Draft("x", title="N"))
    a.write(Draft("x", title="N"))
    numbers = [change.number for change in a.log()]
    assert numbers == [1]


def test_a_table_that_somebody_keeps_locked_is_an_error_that_says_how_to_find_them(
    replica: Replica, database: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Connection, "settings", SETTINGS | {"lock_timeout": "50ms"})
    a = replica("a")
    with connected(database, a.settings.space) as db:
        with db.transaction():
            db.execute("lock table memoranda.change")
            with pytest.raises(DatabaseRefused, match="pg_locks"):
                a.write(Draft("x", title="N"))
        assert a.list()[1] == 0
        a.write(Draft("x", title="N"))


def test_a_transaction_left_idle_is_ended_by_the_server_and_the_next_question_is_answered(
    replica: Replica, database: str, monkeypatch: pytest.MonkeyPatch
):
    # Longer than this process waits for a processor between two statements
    settings = SETTINGS | {"idle_in_transaction_session_timeout": "1s"}
    monkeypatch.setattr(Connection, "settings", settings)
    a = replica("a")
    space_database = SpaceDatabase(a.settings.url or "", a.settings.space)

    with connected(database) as observer, pytest.raises(DatabaseAway, match=IDLE):
        ask_after_idling(space_database, observer)
    assert space_database.newest().last == 0
    space_database.close()


IDLE = "in a transaction, so it was ended"
IDLE_SESSIONS = (
    "select count(*) from pg_stat_activity "
    "where datname = current_database() and state = 'idle in transaction'"
)


def ask_after_idling(database: SpaceDatabase, observer: psycopg.Connection[Any]) -> None:
    """Begin a transaction, and ask in it once the server has ended its session."""

    def is_ended() -> bool:
        row = observer.execute(IDLE_SESSIONS).fetchone()
        return row == (0,)

    with database.snapshot() as snapshot:
        assert wait_for(is_ended, 30)
        snapshot.state()


@pytest.mark.parametrize("address", ["postgresql://h/db?space=No%20Space", "postgresql://[h/db"])
def test_an_address_that_is_none_is_refused_before_anything_is_made(address: str, tmp_path: Path):
    with pytest.raises(ConfigError):
        open_session(address)


def test_a_database_of_an_earlier_checkout_gets_its_schema_and_keeps_its_notes(
    space: str, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(space) as memory:
        note = memory.write(Draft("kept", title="Kept"))
        name = memory.engine.settings.space
    back = former_name.RENAME_SCHEMA.replace(former_name.NAME, "\0")
    back = back.replace("memoranda", former_name.NAME).replace("\0", "memoranda")
    with psycopg.connect(database, autocommit=True) as db:
        db.execute(back)
        policies = db.execute("select qual from pg_policies").fetchall()
        for (qual,) in policies:
            assert f"{former_name.NAME}.space" in str(qual)
    for folder in ("first", "second"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / folder))
        with open_session(space) as memory:
            content = memory.read(note.id).content
            assert content == "kept"
            memory.write(Draft("more", title=folder))
    with connected(database, name) as db:
        policies = db.execute("select qual from pg_policies").fetchall()
        assert policies
        for (qual,) in policies:
            assert "memoranda.space" in str(qual)
        row = db.execute("select count(*) from memoranda.space").fetchone()
        assert row == (1,)
