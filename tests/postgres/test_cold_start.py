"""A new replica of a large space answers while it is filled, and says how far it is."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from memoranda import Draft
from memoranda.clock import wait_for, waits_at_most
from memoranda.errors import StorageError
from memoranda.ledger.postgres import replica_ledger as module
from memoranda.ledger.postgres.replica import ColdStart
from memoranda.transfer.whole_home import Mirror
from postgres.conftest import Replica
from postgres.test_replicas import are_alike


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Everything over ten notes is brought in batches of ten; after twenty the thread waits for
    this.
    """
    go = threading.Event()
    tell_progress = ColdStart._tell

    def tell(self: Any, fd: int, count: int, total: int) -> bool:
        result = tell_progress(self, fd, count, total)
        if count >= 20:
            go.wait(20)
        return result

    monkeypatch.setattr(ColdStart, "_tell", tell)
    monkeypatch.setattr(module, "_LARGE", 10)
    monkeypatch.setattr(module, "_BATCH", 10)
    return go


def test_a_replica_answers_while_it_is_filled_and_says_how_far_it_is(
    replica: Replica, slow: threading.Event
):
    a = replica("a")
    a.write_many([Draft(f"note number {n}", title=f"N{n:03}") for n in range(60)])
    b = replica("b", serving=True)
    try:
        assert wait_for(lambda: bool(b.list()) and "20 of 60" in str(b.warnings))
        assert b.search("number").total == 20
        assert "20 of 60 are here" in b.warnings[0]
        with waits_at_most(0.05), pytest.raises(StorageError, match="20 of 60"):
            b.write(Draft("too early", title="Early"))
        c = replica("b", serving=True)
        c.list()
        assert "20 of 60 are here" in c.warnings[0]
    finally:
        slow.set()
    assert wait_for(lambda: bool(b.list()) and b.warnings == [])
    b.write(Draft("note number 60", title="N060"))
    assert b.search("number").total == 61
    assert a.search("number").total == 61
    assert are_alike(a, b)


def test_a_mirror_waits_for_a_copy_that_is_being_filled(
    replica: Replica, slow: threading.Event, tmp_path
):
    a = replica("a")
    a.write_many([Draft(f"note number {n}", title=f"N{n:03}") for n in range(60)])
    copy = tmp_path / "copy"
    Mirror(a, copy).run(git=True)
    b = replica("b", serving=True)
    assert wait_for(lambda: bool(b.list()) and "20 of 60" in str(b.warnings))
    assert b.lag()
    threading.Timer(0.2, slow.set).start()
    mirrored = Mirror(b, copy).run()
    assert mirrored.files == 60
    assert mirrored.removed == 0
    assert mirrored.commits == 0
    assert b.lag() == 0
