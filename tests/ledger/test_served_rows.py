"""What agents got, as rows: the latest first, by agent and by note, a bounded number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from memoranda import clock
from memoranda.errors import StorageError
from memoranda.ledger import served_rows
from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.served_rows import ServedRows

NOW = clock.now()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LedgerDatabase]:
    with closing(LedgerDatabase(tmp_path / "ledger.db")) as opened:
        yield opened


def test_calls_are_listed_by_agent_and_by_note_the_latest_first(database: LedgerDatabase) -> None:
    rows = ServedRows(database)
    rows.add(NOW, "claude", "search", "tea\n and  more", ["b", "a", "b"])
    rows.add(NOW, "codex", "read", "", ["a"])
    rows.add(NOW, "claude", "prompt", "x" * 500, ["c"])
    rows.add(NOW, "claude", "search", "found nothing", [])
    by_claude = rows.rows(agent="Claude")

    assert [(row.how, row.notes) for row in by_claude] == [
        ("prompt", ("c",)),
        ("search", ("b", "a")),
    ]
    assert [len(row.asked) for row in by_claude] == [200, len("tea and more")]
    agents = [row.agent for row in rows.rows(note="a")]
    assert agents == ["codex", "claude"]
    agents = [row.agent for row in rows.rows(note="a", agent="claude")]
    assert agents == ["claude"]
    assert len(rows.rows(limit=2)) == 2


def test_the_latest_notes_are_each_named_once_with_their_last_time(
    database: LedgerDatabase,
) -> None:
    rows = ServedRows(database)
    for hours, notes in ((30, ["old"]), (3, ["a", "b"]), (1, ["a"])):
        rows.add(NOW - timedelta(hours=hours), "claude", "read", "", notes)
    latest = rows.latest_notes(NOW - timedelta(days=1), 10)

    notes = [note for note, _ in latest]
    assert notes == ["a", "b"]
    assert latest[0][1] > latest[1][1]
    assert rows.latest_notes(NOW - timedelta(days=1), 1) == latest[:1]


def test_a_call_about_an_erased_note_is_left_out_whole(database: LedgerDatabase) -> None:
    rows = ServedRows(database)
    rows.add(NOW, "claude", "search", "the secret", ["a", "b"])
    rows.add(NOW, "claude", "read", "", ["b"])
    rows.forget({"a"})

    assert [row.notes for row in rows.rows()] == [("b",)]
    assert database.row("select count(*) as n from served_note")["n"] == 1


def test_the_oldest_calls_go_when_there_are_too_many(
    database: LedgerDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_rows, "_MAX_CALLS", 30)
    monkeypatch.setattr(served_rows, "_CALLS_BETWEEN_SWEEPS", 10)
    rows = ServedRows(database)
    for number in range(100):
        rows.add(NOW, "claude", "read", "", [f"n{number}"])
    remaining = rows.rows()

    assert [row.notes for row in remaining] == [(f"n{number}",) for number in range(99, 69, -1)]
    assert database.row("select count(*) as n from served_note")["n"] == 30


def test_a_call_that_cannot_be_noted_costs_its_row_only(tmp_path: Path) -> None:
    with (
        closing(LedgerDatabase(tmp_path / "ledger.db")) as database,
        closing(LedgerDatabase(tmp_path / "ledger.db")) as mine,
    ):
        rows = ServedRows(mine)
        with database.transaction():
            rows.add(NOW, "claude", "read", "", ["a"])
            with pytest.raises(StorageError), mine.transaction(may_wait=False):
                pass
        rows.add(NOW, "claude", "read", "", ["b"])
        (row,) = rows.rows()
        assert row.notes == ("b",)
