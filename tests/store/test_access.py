"""The access log: counts that several processes add to and one folds (docs/format.md)."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime

import pytest

from memoranda.store.access import AccessLog

ONE, OTHER = (f"{number}50e8400-e29b-41d4-a716-446655440000" for number in (1, 2))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "access.log"


def folded(place, text=b""):
    """Another process folds: a new file stands in the log's place."""
    fresh = place.with_name("fresh")
    fresh.write_bytes(text)
    os.replace(fresh, place)


def test_reads_of_all_processes_are_counted_and_a_restart_forgets_them(place):
    here = AccessLog(place)
    elsewhere = AccessLog(place)
    here.count_read(ONE)
    elsewhere.count_read(ONE)
    elsewhere.count_read(OTHER)
    assert here.counts() == elsewhere.counts() == {ONE: 2, OTHER: 1}
    elsewhere.restart(ONE)
    assert here.counts() == {OTHER: 1}
    here.close()
    elsewhere.close()


def test_a_folded_log_is_counted_anew_even_if_the_system_gives_it_the_number_of_the_old_one(place):
    here = AccessLog(place)
    elsewhere = AccessLog(place)
    for _ in range(3):
        here.count_read(ONE)
    assert here.counts() == {ONE: 3}
    before = place.stat().st_ino
    # Some file systems take a free number again at once
    for _ in range(20):
        folded(place)
        for _ in range(4):
            elsewhere.count_read(OTHER)
        if place.stat().st_ino == before:
            break
    assert here.counts() == {OTHER: 4}
    here.close()
    elsewhere.close()


@pytest.mark.parametrize("call", ["open", "write"])
def test_a_log_that_cannot_be_written_costs_the_count_alone(place, monkeypatch, call):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "full")

    log = AccessLog(place)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        log.count_read(ONE)
    log.count_read(ONE)
    assert log.counts() == {ONE: 1}
    log.close()


def test_a_log_that_is_gone_counts_nothing(place):
    log = AccessLog(place)
    log.count_read(ONE)
    assert log.counts() == {ONE: 1}
    place.unlink()
    assert log.counts() == {}
    log.close()


def test_an_id_with_a_line_break_counts_for_no_other(place):
    log = AccessLog(place)
    log.count_read(f"x\n500 {ONE}")
    log.note_use([f"x\n@4102444800 {ONE}"], datetime(2025, 1, 1, tzinfo=UTC))
    assert (log.counts(), log.used()) == ({}, {})
    log.count_read(odd := f"{OTHER}\u2028{ONE}")
    assert log.counts() == {odd: 1}
    log.close()
