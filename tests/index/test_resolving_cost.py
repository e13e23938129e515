"""What resolving one name costs does not depend on how many notes there are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from index.conftest import Desk

STEPS = 100
"""SQLite counts its steps in hundreds."""


def steps(desk: Desk, work: Callable[[], object]) -> int:
    """How many hundreds of steps SQLite takes for `work`."""
    count = 0

    def counted() -> int:
        nonlocal count
        count += 1
        return 0

    desk.db.set_progress_handler(counted, STEPS)
    try:
        work()
    finally:
        desk.db.set_progress_handler(None, 0)
    return count


@pytest.mark.slow
def test_resolving_a_name_costs_the_same_among_ten_thousand_notes(desk: Desk) -> None:
    folder = "a long name of a folder of meetings of the whole year/minutes of the weekly meetings"
    targets = ("C++", f"{folder}/minutes 7", "minutes 7", "MINUTES 7", "notes/c-1", "nobody")

    def work() -> None:
        for target in targets:
            desk.leads(target)

    costs = []
    first = 0
    for last in (100, 10_000):
        notes = {f"{folder}/minutes {number}.md": "x" for number in range(first, last)}
        notes |= {"C.md": "", "C++.md": "", "C#.md": ""} if not first else {}
        desk.put_together(notes)
        first = last
        costs.append(steps(desk, work))
    few, many = costs
    assert many <= few * 2 + 5, costs
    assert desk.leads(f"{folder}/minutes 7") == f"{folder}/minutes 7.md"
