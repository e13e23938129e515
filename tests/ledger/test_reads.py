"""Reads in the ledger: counts that several processes add to and one folds (docs/format.md)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.reads import ReadRow, Reads, parse_log

ONE, OTHER = (f"{number}50e8400-e29b-41d4-a716-446655440000" for number in (1, 2))
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = int(NOW.timestamp())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


_OPEN: list[LedgerDatabase] = []


@pytest.fixture(autouse=True)
def closed_at_the_end() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def opened(place: Path) -> Reads:
    _OPEN.append(LedgerDatabase(place))
    return Reads(_OPEN[-1], lambda: NOW)


@pytest.fixture
def reads(place: Path) -> Reads:
    return opened(place)


def test_reads_of_all_processes_are_counted_and_a_restart_forgets_them(place: Path) -> None:
    reads = opened(place)
    elsewhere = opened(place)
    reads.count_read(ONE)
    elsewhere.count_read(ONE)
    elsewhere.count_read(OTHER)
    assert reads.counts() == {ONE: 2, OTHER: 1}
    assert elsewhere.counts() == {ONE: 2, OTHER: 1}
    assert reads.counts([OTHER]) == {OTHER: 1}
    elsewhere.restart(ONE)
    assert reads.counts() == {OTHER: 1}


def test_a_read_is_not_held_up_by_a_writer_and_counts_once_it_is_done(
    place: Path, reads: Reads
) -> None:
    writer = sqlite3.connect(place, isolation_level=None)
    writer.execute("begin immediate")
    reads.count_read(ONE)
    assert reads.counts() == {ONE: 1}
    assert opened(place).counts() == {}
    writer.execute("rollback")
    writer.close()
    reads.count_read(ONE)
    assert opened(place).counts() == {ONE: 2}


def test_what_waits_is_written_at_the_end(place: Path) -> None:
    reads = opened(place)
    writer = sqlite3.connect(place, isolation_level=None)
    writer.execute("begin immediate")
    reads.count_read(ONE)
    writer.execute("rollback")
    writer.close()
    reads.close()
    assert opened(place).counts() == {ONE: 1}


def test_a_ledger_that_cannot_be_written_costs_no_read(
    reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reads._database, "is_writable", False)
        reads.count_read(ONE)
    reads.count_read(ONE)
    assert reads.counts() == {ONE: 2}


def test_an_id_of_any_characters_counts_for_no_other(reads: Reads) -> None:
    odd = f"x\n500 {ONE}"
    reads.count_read(odd)
    reads.record_use([odd], NOW)
    reads.count_read("\ud800")

    assert reads.counts()[odd] == 1
    assert reads.counts([ONE]) == {}
    assert reads.used([odd]) == {odd: SECOND}


def test_folded_reads_go_and_those_counted_meanwhile_stay(reads: Reads) -> None:
    for _ in range(3):
        reads.count_read(ONE)
    reads.record_use([OTHER], NOW)
    rows = reads.rows()
    assert rows == {ONE: ReadRow(3, SECOND), OTHER: ReadRow(used_at=SECOND)}
    reads.count_read(ONE)
    with reads._database.transaction() as connection:
        reads.subtract(connection, rows)
    assert reads.rows() == {ONE: ReadRow(1, SECOND)}
    reads.add_back(rows)
    assert reads.counts() == {ONE: 4}


def test_many_keys_are_asked_for_at_once(reads: Reads) -> None:
    keys = [f"{number:08}" for number in range(1200)]
    for key in keys:
        reads.count_read(key)

    assert reads.counts(keys).total() == 1200
    assert reads.counts(keys[:700]).keys() >= {*keys[:700]}


def test_each_read_and_each_fold_gives_another_stamp(reads: Reads) -> None:
    stamps = [reads.stamp()]
    reads.count_read(ONE)
    stamps.append(reads.stamp())
    reads.count_read(ONE)
    stamps.append(reads.stamp())
    assert len(set(stamps)) == 3


def test_the_lines_of_the_log_of_a_version_before_are_understood() -> None:
    log = f"2 {ONE}\n@77 {ONE}\n0 {OTHER}\n# a mark\n1 {OTHER}\nnonsense\n"
    rows = list(parse_log(log.encode()))
    assert rows == [
        (ONE, ReadRow(2)),
        (ONE, ReadRow(used_at=77)),
        (OTHER, ReadRow(restarted=1)),
        (OTHER, ReadRow(1)),
    ]


def test_a_read_that_waits_is_not_folded_before_it_is_written(place: Path, reads: Reads) -> None:
    reads.count_read(ONE)
    writer = sqlite3.connect(place, isolation_level=None)
    writer.execute("begin immediate")
    reads.count_read(ONE)
    reader = reads._database._connection
    reader.execute("pragma busy_timeout = 1")
    assert reads.rows_to_fold() == {ONE: ReadRow(1, SECOND)}
    writer.execute("rollback")
    writer.close()
    assert reads.rows_to_fold() == {ONE: ReadRow(2, SECOND)}
