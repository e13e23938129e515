"""Copies that are not what they should be: after a crash, a power failure, a restored database, an
old journal.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.ledger.execution import Execution
from memoranda.ledger.postgres.replica import ReplicaFolder, ReplicaHistory
from memoranda.note.edit import Append
from postgres.conftest import Replica, die_at, in_child
from postgres.test_commits import DRAFTS
from postgres.test_replicas import are_alike, files, journal
from postgres.test_server import connected


def die_in(cache: Path, owner: type, method: str, call: int, work: Callable[[], object]) -> None:
    """Do this in a process that is killed at this call of a method."""
    step = die_at(call)
    before = getattr(owner, method)

    def dying(*args: object, **more: object) -> object:
        step()
        return before(*args, **more)

    def dies() -> None:
        setattr(owner, method, dying)
        work()

    assert in_child(cache, dies) == signal.SIGKILL


def go_back(database: str, space: str) -> None:
    """Take the second change of a space away, as a database does that is restored from a backup."""
    with connected(database, space) as db, db.transaction():
        for table in ("note", "change"):
            db.execute(f"delete from memoranda.{table} where space = %s and number = 2", [space])
        db.execute("delete from memoranda.step where space = %s and change = 2", [space])
        db.execute("update memoranda.space set last = 1 where name = %s", [space])


@pytest.mark.parametrize(
    ("owner", "method", "call"),
    [(Execution, "run", 1), (Execution, "run", 2), (ReplicaHistory, "append_all", 1)],
    ids=["before the first file", "between two files", "before the ledger has it"],
)
def test_a_process_that_dies_after_its_commit_leaves_nothing_to_repair(
    space: str, replica: Replica, tmp_path: Path, owner: type, method: str, call: int
):
    b = replica("b")
    b.write(Draft("zero", title="Zero"))
    die_in(
        tmp_path / "cache" / "dead",
        owner,
        method,
        call,
        lambda: open_session(space).write_many(DRAFTS),
    )
    assert b.search("half").total == 2
    again = replica("dead")
    assert again.search("half").total == 2
    assert are_alike(again, b)
    assert not list(again.home.rglob(".tmp-*"))


@pytest.mark.parametrize("call", [1, 2])
def test_a_process_that_dies_while_it_brings_changes_is_continued(
    space: str, replica: Replica, tmp_path: Path, call: int
):
    a = replica("a")
    replica("dead").close()
    a.write_many(DRAFTS)
    die_in(tmp_path / "cache" / "dead", ReplicaFolder, "put", call, lambda: open_session(space))
    b = replica("dead")

    assert b.search("half").total == 2
    assert journal(a.home) == journal(b.home)


def test_after_the_machine_was_started_again_every_copy_is_compared(replica: Replica):
    a = replica("a")
    whole, lost, damaged = a.write_many([Draft(f"text {n}", title=f"N{n}") for n in range(3)])
    before = files(a.home)
    a.close()
    state = a.home / ".memoranda/replica.json"
    (a.home / "notes" / lost.path).unlink()
    (a.home / "notes" / damaged.path).write_bytes(b"\0" * 20)
    (a.home / "notes" / "stranger.md").write_text("by hand")
    state.write_text(json.dumps(json.loads(state.read_text()) | {"boot": "another"}))
    a = replica("a")

    assert files(a.home) == before
    assert a.search("text").total == 3
    assert a.search("hand").total == 0
    assert whole.title == "N0"


def test_a_database_that_was_restored_from_a_backup_is_what_counts(replica: Replica, database: str):
    a = replica("a")
    a.write(Draft("in the backup", title="One"))
    before = files(a.home)
    lines = journal(a.home)
    a.write(Draft("made after it", title="Two"))
    go_back(database, a.settings.space)
    assert a.search("after").total == 0
    assert files(a.home) == before
    assert journal(a.home) == lines
    a.write(Draft("made anew", title="Three"))
    numbers = [change.number for change in replica("b").log()]
    assert numbers == [2, 1]


def test_a_database_that_went_back_and_on_again_is_noticed(replica: Replica, database: str):
    a = replica("a")
    b = replica("b")
    a.write(Draft("in the backup", title="One"))
    a.write(Draft("lost", title="Two"))
    b.list()
    b.close()
    go_back(database, a.settings.space)
    a.write(Draft("instead", title="Three"))
    a.write(Draft("and more", title="Four"))
    b = replica("b")
    assert are_alike(a, b)
    assert b.search("lost").total == 0


def test_a_purged_journal_is_the_same_on_every_replica(replica: Replica, database: str):
    now = datetime.now(UTC)
    a = replica("a")
    b = replica("b")
    note = a.write(Draft("old words", title="N"))
    a.delete(note.id)
    in_use = replica("d", clock=lambda: now + timedelta(days=50))
    in_use.write(Draft("other", title="M"))
    assert b.list()[1] == 1
    c = replica("c", clock=lambda: now + timedelta(days=100))
    assert c.purge_history() == 2
    change_numbers = [change.number for change in b.log()]
    assert change_numbers == [3]
    change_numbers = [change.number for change in a.log()]
    assert change_numbers == [3]
    assert journal(a.home) == journal(b.home) == journal(c.home)
    with connected(database, a.settings.space) as db:
        row = db.execute("select count(*) from memoranda.text").fetchone()
        assert row == (0,)
    assert list(b.engine.ledger.history.texts()) == []
    b.write(Draft("more", title="L"))
    numbers = [change.number for change in a.log()]
    assert numbers == [4, 3]


@pytest.mark.slow
def test_writers_on_two_machines_lose_nothing_and_number_every_change_once(
    space: str, replica: Replica, tmp_path: Path
):
    a = replica("a")
    note = a.write(Draft("begin", title="Shared"))
    memories = [a, replica("a"), replica("b"), replica("b")]

    def work(number: int) -> None:
        for turn in range(10):
            memories[number].edit(note.id, Append(f"line {number}.{turn}"))
            memories[number].write(Draft(f"own {number} {turn}", title=f"Own {number} {turn}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    text = replica("c").read(note.id).text
    assert all(
        text.count(f"line {number}.{turn}\n") + text.endswith(f"line {number}.{turn}") == 1
        for number in range(4)
        for turn in range(10)
    )
    numbers = [change.number for change in a.log(limit=0)]
    assert numbers == list(range(81, 0, -1))
    memories[2].list()
    a.list()
    assert are_alike(a, memories[2])


def test_a_lock_that_another_machine_keeps_is_an_error_that_names_it(
    replica: Replica, database: str
):
    from memoranda.clock import waits_at_most
    from memoranda.errors import Busy

    a = replica("a")
    b = replica("b")
    draft = Draft("x", title="N")
    with a.exclusive(), waits_at_most(0.05), pytest.raises(Busy, match=str(os.getpid())):
        b.write(draft)
    b.write(draft)
