"""A commit is there as a whole or not at all, whatever dies in the middle of it, and the answer
about it is true.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memoranda import Conflict, Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.history.erase import Erasure
from memoranda.errors import DatabaseAway, OutcomeUnknown, StorageError
from memoranda.ledger import execution
from memoranda.ledger.postgres.space_rows import SpaceState
from memoranda.note.edit import Append
from postgres.conftest import Replica, die_at, in_child
from postgres.test_replicas import are_alike, files

DRAFTS = [Draft("first half", title="One"), Draft("second half", title="Two")]
Execute = Callable[..., Any]


def intercept(
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[str], object] = str,
    after: Callable[[str], object] = str,
) -> None:
    """Call these around every statement this process says to a server."""
    execute: Execute = psycopg.Connection.execute

    def wrapped(self: psycopg.Connection[Any], query: Any, *more: Any, **options: Any) -> Any:
        before(str(query))
        result = execute(self, query, *more, **options)
        after(str(query))
        return result

    monkeypatch.setattr(psycopg.Connection, "execute", wrapped)


def cut_after_commit(monkeypatch: pytest.MonkeyPatch, database: str, memory: MemorySession) -> None:
    """Have the connection lost once the server has committed, before this process hears of it."""

    def after(query: str) -> None:
        if query == "commit":
            cut(database, memory)
            raise psycopg.OperationalError("the connection is lost")

    intercept(monkeypatch, after=after)
    monkeypatch.setattr(psycopg.Connection, "broken", property(lambda self: True))


def lose_server_in_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server gone once it has committed, before this process hears of it."""

    def refuse(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("Connection refused")

    def after(query: str) -> None:
        if query == "commit":
            monkeypatch.setattr(psycopg, "connect", refuse)
            raise psycopg.OperationalError("the connection is lost")

    intercept(monkeypatch, after=after)
    monkeypatch.setattr(psycopg.Connection, "broken", property(lambda self: True))


def killed_at(space: str, cache: Path, number: int) -> bool:
    """Write two notes in a process that is killed before its statement of this number. Returns
    whether it came to the end before."""

    def work() -> None:
        memory = open_session(space)
        intercept(pytest.MonkeyPatch(), die_at(number))
        memory.write_many(DRAFTS)

    return in_child(cache, work) == 0


@pytest.mark.slow
def test_killed_before_any_statement_a_change_is_whole_or_not_there(
    space: str, replica: Replica, tmp_path: Path
):
    b = replica("b")
    acknowledged = False
    number = 0
    while not acknowledged:
        number += 1
        assert number < 60
        before = b.list()[1]
        acknowledged = killed_at(space, tmp_path / "cache" / "killed", number)
        notes_there = b.list()[1] - before
        assert notes_there in ((2,) if acknowledged else (0, 2)), number
        # Nobody is kept out
        b.write(Draft(f"after {number}", title=f"After {number}"))
        a = replica("killed")
        assert are_alike(a, b)
        a.close()
        for note in b.list(limit=0)[0]:
            if note.title in ("One", "Two"):
                b.delete(note.id)
    assert number > 10


def cut(database: str, memory: MemorySession) -> None:
    """End the connections of `memory`, as a server that is restarted does."""
    with psycopg.connect(database, autocommit=True) as db:
        db.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name like 'memoranda%%' and pid <> pg_backend_pid()"
        )


def test_a_connection_cut_before_the_commit_changes_nothing_and_says_so(
    replica: Replica, database: str, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    a.write(Draft("x", title="Zero"))
    before = files(a.home)
    with monkeypatch.context() as patch:
        intercept(patch, lambda query: cut(database, a) if query == "commit" else None)
        with pytest.raises(DatabaseAway, match="Nothing was changed"):
            a.write_many(DRAFTS)
    assert files(a.home) == before
    assert a.list()[1] == 1
    a.write_many(DRAFTS)
    assert a.list()[1] == 3
    paths = list(a.home.rglob(".tmp-*"))
    assert not paths


def test_a_connection_cut_after_the_commit_is_no_error_and_nothing_is_done_twice(
    replica: Replica, database: str, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    b = replica("b")

    with monkeypatch.context() as patch:
        cut_after_commit(patch, database, a)
        written = a.write_many(DRAFTS)
    titles = [note.title for note in written]
    assert titles == ["One", "Two"]
    assert b.list()[1] == 2
    assert len(b.log()) == 1
    assert files(a.home) == files(b.home)


def test_a_commit_whose_answer_is_lost_counts_as_made_when_its_change_was_revised_since(
    replica: Replica, database: str, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    b = replica("b")
    space = a.engine.ledger._database
    take_lock = space.take_lock
    is_lost = iter((False, True))

    def erase_first() -> SpaceState:
        if next(is_lost):
            note = b.read("notes/Two")
            Erasure(b).erase(
                [note.id], agent=None, project=None, source=None, observation=None, dry_run=False
            )
        return take_lock()

    with monkeypatch.context() as patch:
        patch.setattr(space, "take_lock", erase_first)
        cut_after_commit(patch, database, a)
        a.write_many(DRAFTS)
    assert next(is_lost, None) is None
    assert a.list()[1] == b.list()[1] == 1


def test_when_nobody_can_be_asked_the_outcome_is_unknown_and_the_next_call_sees_it(
    replica: Replica, database: str, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    with monkeypatch.context() as patch:
        lose_server_in_commit(patch)
        with pytest.raises(OutcomeUnknown, match="memory log"):
            a.write_many(DRAFTS)
    b = replica("b")
    assert b.list()[1] == 2
    assert replica("a").list()[1] == 2
    # The second in which reads do not try again is over
    a.engine.ledger._database._away_reason = ""
    assert a.list()[1] == 2
    assert files(a.home) == files(b.home)


def test_an_interrupted_commit_is_no_part_of_the_next_one(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    b = replica("b")

    def before(query: str) -> None:
        if query == "commit":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        intercept(patch, before)
        with pytest.raises(KeyboardInterrupt):
            a.write_many(DRAFTS)
    b.write(Draft("between", title="Between"))
    a.write(Draft("next", title="Next"))
    numbers = [change.number for change in b.log()]
    assert numbers == [2, 1]
    assert b.list()[1] == 2
    assert a.list()[1] == 2
    paths = list(a.home.rglob(".tmp-*"))
    assert not paths


def test_an_idle_connection_that_was_cut_is_made_again_unseen(replica: Replica, database: str):
    a = replica("a")
    a.write(Draft("x", title="One"))
    cut(database, a)
    total = a.search("x").total
    assert total == 1
    cut(database, a)
    a.write(Draft("y", title="Two"))
    assert len(a.log()) == 2


def test_of_two_writers_who_read_the_same_text_one_gets_a_conflict(replica: Replica):
    a = replica("a")
    b = replica("b")
    note = a.write(Draft("start", title="N"))
    read = b.read(note.id)
    a.tag(note.id, add=["first"])
    with pytest.raises(Conflict):
        b.edit(note.id, Append("more"), checksum=read.checksum)

    tags = a.read(note.id).tags
    assert tags == ("first",)


def test_text_that_a_full_disk_of_copies_cannot_take_is_not_committed(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    b = replica("b")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(execution, "write_file", full)
        with pytest.raises(StorageError, match="disk is full"):
            a.write(Draft("x", title="One"))
    assert b.list()[1] == 0
    a.write(Draft("x", title="One"))
    assert b.list()[1] == 1
