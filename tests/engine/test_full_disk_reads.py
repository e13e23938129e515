"""Reads while the index on disk cannot follow, because the disk is full."""

from __future__ import annotations

import sqlite3
import time

from memoranda import Draft
from memoranda.engine import open_session
from memoranda.index import database, sync

LARGE_TEXT = "# Long\n\n" + "a long line about quokkas\n" * 10_000


class HurriedClock:
    """A clock that an hour passes on when the test says so."""

    def __init__(self):
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def pass_an_hour(self) -> None:
        self.ahead += 3600


def refuse_files(monkeypatch):
    """Refuse every transaction of an index that is a file, as SQLite does on a full disk."""
    transaction = sync.transaction

    def refused(db):
        (_, _, file) = db.execute("pragma database_list").fetchone()
        if file:
            raise sqlite3.OperationalError("database or disk is full")
        return transaction(db)

    monkeypatch.setattr(sync, "transaction", refused)


def home_with_a_large_file(tmp_path):
    """A home with a short memory and a note of more than 200 kB, which the index does not have yet."""
    home = tmp_path / "home"
    with open_session(home) as memory:
        memory.write(Draft("short", category="knowledge"))
    folder = home / "notes"
    folder.mkdir(exist_ok=True)
    (folder / "long.md").write_text(LARGE_TEXT)
    return home


def test_a_large_file_that_takes_long_to_read_is_listed_on_a_full_disk(tmp_path, monkeypatch):
    home = home_with_a_large_file(tmp_path)
    clock = HurriedClock()
    monkeypatch.setattr(database, "time", clock)
    refuse_files(monkeypatch)

    with open_session(home, watch=False) as memory:
        release = memory.engine.guard.released

        def slowly_released():
            clock.pass_an_hour()
            return release()

        monkeypatch.setattr(memory.engine.guard, "released", slowly_released)
        _, total = memory.list()

        assert total == 2
        assert not memory.warnings


def test_a_large_file_is_listed_though_another_index_was_opened_while_it_was_read(
    tmp_path, monkeypatch
):
    home = home_with_a_large_file(tmp_path)

    with open_session(home, watch=False) as memory:
        release = memory.engine.guard.released
        index_files = [memory.engine.index.path]

        def released_and_replaced():
            # As another process does that rebuilds the index. It does so once.
            while index_files:
                index_files.pop().unlink()
            return release()

        monkeypatch.setattr(memory.engine.guard, "released", released_and_replaced)
        _, total = memory.list()

        assert total == 2
