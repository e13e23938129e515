"""The two series of changes of a replica, put in one order and told by pages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from memoranda.ledger.change import FIRST_OF_MACHINE, Change
from memoranda.ledger.database import LedgerDatabase
from memoranda.ledger.postgres.replica import ReplicaHistory
from memoranda.sources.layout import Layout


class Pages:
    """A history without a server, whose changes have the seconds of `shared` and `of_machine`."""

    def __init__(self, folder: Path, shared: list[int], of_machine: list[int]):
        layout = Layout(folder)
        layout.private.mkdir(parents=True)
        self.database = LedgerDatabase(layout.ledger)
        # Reading asks no server
        self.history = ReplicaHistory(layout, self.database, None, lambda: None)
        for first, seconds in ((1, shared), (FIRST_OF_MACHINE, of_machine)):
            self.history.append_all(
                [changed(number, second) for number, second in enumerate(seconds, first)]
            )

    def whole(self) -> list[int]:
        """The numbers of all changes, newest first."""
        return [change.number for change in self.history.changes()]

    def paged(self, size: int) -> list[int]:
        """The same, told in pages of this size."""
        numbers: list[int] = []
        while True:
            before = numbers[-1] if numbers else None
            page = [change.number for change in islice(self.history.changes(before=before), size)]
            numbers += page
            if len(page) < size or len(numbers) > 100:
                return numbers


def changed(number: int, second: int) -> Change:
    time = f"2026-11-29T12:00:{second:02}.000000Z"
    return Change(number, time, "write", "notes", "a.md", None, None)


@pytest.fixture
def pages(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pages]:
    new_pages = Pages(tmp_path / "home", *request.param)
    yield new_pages
    new_pages.database.close()


TIMES = {
    "equal times": ([5, 5, 5], [5, 5]),
    "equal times at one page": ([1, 5, 9], [1, 5, 9]),
    "the clock of another machine is late": ([5, 20, 5], [7]),
    "the clock of another machine is early": ([30, 2, 31, 3], [10, 11, 40]),
}


@pytest.mark.parametrize("pages", TIMES.values(), ids=TIMES.keys(), indirect=True)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_pages_tell_every_change_once_and_in_order(pages: Pages, size: int) -> None:
    assert sorted(pages.whole()) == sorted(set(pages.whole()))
    assert pages.paged(size) == pages.whole()


@pytest.mark.parametrize("seed", range(20))
def test_pages_tell_every_change_once_whatever_the_clocks(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    shared = [chance.randrange(12) for _ in range(12)]
    # The clock of one machine goes on
    of_machine = sorted(chance.randrange(12) for _ in range(6))
    pages = Pages(tmp_path / "home", shared, of_machine)
    for size in (1, 2, 5):
        assert pages.paged(size) == pages.whole()
    pages.database.close()
