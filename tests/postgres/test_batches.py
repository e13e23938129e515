"""Writers of one replica that wait for the database together: one transaction, and for each the
answer is true.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import psycopg
import pytest

from crash.batches import at_once
from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.faces.reply import Reply
from postgres.conftest import Replica, die_at, in_child
from postgres.test_commits import cut, cut_after_commit, intercept, lose_server_in_commit
from postgres.test_replicas import are_alike

CALLS = {
    f"n{letter}": (
        "write_note",
        {"title": f"N {letter}", "content": f"text {letter}", "directory": ""},
    )
    for letter in "abcdef"
}


@pytest.fixture(autouse=True)
def one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine."""
    monkeypatch.setattr("memoranda.ledger.planned_change.MOST_SECONDS", 60.0)


def failed(replies: dict[str, Reply | None]) -> dict[str, str]:
    assert None not in replies.values()
    return {
        name: reply.text for name, reply in replies.items() if reply is not None and reply.is_error
    }


def agree(first: MemorySession, second: MemorySession, changes: int) -> None:
    """Both copies are the same, and `changes` changes were made, each once."""
    assert [change.number for change in second.log(limit=0)] == list(range(changes, 0, -1))
    first.list()
    assert are_alike(first, second)
    assert not list(first.home.rglob(".tmp-*"))


def test_writers_that_wait_share_one_transaction_and_every_replica_sees_each_change(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    b = replica("b")
    statements: list[str] = []
    with monkeypatch.context() as patch:
        intercept(patch, statements.append)
        with at_once(a, CALLS) as replies:
            pass
    assert not failed(replies)
    assert statements.count("commit") == 1
    assert sum("try_advisory_lock" in statement for statement in statements) == 1
    assert b.search("text").total == 6
    agree(a, b, 6)


def test_a_change_that_meets_another_text_fails_alone(replica: Replica, database: str):
    a = replica("a")
    b = replica("b")
    a.write(Draft("before", title="Taken"))
    a.delete("taken")
    # A row that came past us: only the commit meets it
    with psycopg.connect(database, autocommit=True) as db:
        db.execute("select set_config('memoranda.space', %s, false)", [a.settings.space])
        db.execute(
            "insert into memoranda.note (space, project, path, kind, body, sha256, mode, number) "
            "values (%s, 'notes', 'Taken.md', 'file', 'x', 'x', 384, 2)",
            [a.settings.space],
        )
    call_of_taken = ("write_note", {"title": "Taken", "content": "text", "directory": ""})
    with at_once(a, CALLS | {"taken": call_of_taken}) as replies:
        pass
    assert [*failed(replies)] == ["taken"]
    assert "exists" in failed(replies)["taken"]
    assert len(b.log(limit=0)) == 8


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_cut_before_or_after_the_commit_of_a_batch_is_no_error_and_makes_every_change_once(
    replica: Replica, database: str, monkeypatch: pytest.MonkeyPatch, when: str
):
    a = replica("a")
    b = replica("b")
    cuts_left = [1] if when == "before" else []

    def before(query: str) -> None:
        if query == "commit" and cuts_left:
            cuts_left.clear()
            cut(database, a)

    with monkeypatch.context() as patch:
        if cuts_left:
            intercept(patch, before)
        else:
            cut_after_commit(patch, database, a)
        with at_once(a, CALLS) as replies:
            pass
    assert not cuts_left
    assert not failed(replies)
    agree(a, b, 6)


def test_when_nobody_can_be_asked_each_of_a_batch_is_told_that_the_outcome_is_unknown_and_none_is_repeated(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
):
    a = replica("a")
    with monkeypatch.context() as patch:
        lose_server_in_commit(patch)
        with at_once(a, CALLS) as replies:
            pass
    assert [*failed(replies)] == [*CALLS]
    for reply in failed(replies).values():
        assert "memory log" in reply
    # The second in which reads do not try again is over
    a.engine.ledger._database._away_reason = ""
    agree(a, replica("b"), 6)


@pytest.mark.slow
def test_a_batch_killed_before_any_statement_is_there_as_a_whole_or_not_at_all(
    space: str, replica: Replica, tmp_path: Path
):
    b = replica("b")
    counts_found = set()
    number = 0
    while 6 not in counts_found:
        number += 1
        assert number < 60
        in_child(tmp_path / "cache" / "killed", partial(die_in_batch, space, number))
        notes = b.list(limit=0)[0]
        counts_found.add(len(notes))
        for note in notes:
            b.delete(note.id)
        a = replica("killed")
        agree(a, b, len(b.log(limit=0)))
        a.close()
    assert counts_found == {0, 6}


def die_in_batch(space: str, number: int) -> None:
    memory = open_session(space)
    intercept(pytest.MonkeyPatch(), die_at(number))
    with at_once(memory, CALLS):
        pass
