"""`Listed` is the one form of every list: its parts, put together, are the whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoranda.documents.cutting import compact
from memoranda.documents.listed import Listed

ROWS = st.lists(st.text(max_size=40).map(lambda text: {"text": text}), max_size=30)


@given(ROWS, st.integers(1, 12), st.integers(1, 200))
def test_parts_followed_by_next_are_all_rows_once(
    rows: list[dict[str, str]], size: int, room: int
) -> None:
    rows_seen: list[dict[str, str]] = []
    offset: int | None = 0
    while offset is not None and rows:
        part = Listed.part(rows[offset : offset + size], len(rows), offset)
        lengths = [len(compact(row)) for row in part]
        fitted = part.fit(lengths, room, offset)
        assert fitted.total == len(rows)
        # One row is shown however long it is: the next part would never pass it
        assert len(fitted) == 1 or sum(lengths[: len(fitted)]) <= room
        rows_seen += fitted.rows
        offset = fitted.next
    assert rows_seen == rows


@given(ROWS, st.integers(0, 5))
def test_part_that_ends_the_list_has_no_next(rows: list[dict[str, str]], offset: int) -> None:
    assert Listed.part(rows, offset + len(rows), offset).next is None
    assert Listed.part(rows).total == len(rows)


def test_part_of_a_list_nobody_counted_to_its_end_goes_on() -> None:
    row = {"text": "x"}
    part = Listed.part([row, row], 10_000, 9_998, is_lower_bound=True)
    assert (part.next, part.is_lower_bound) == (10_000, True)
    assert Listed.part([], 10_000, 20_000, is_lower_bound=True).next is None


def test_first_rows_know_where_the_rest_begins() -> None:
    part = Listed.part([{"n": n} for n in range(4)], 10, 4)
    assert part.first(4, 4) is part
    shorter = part.first(2, 4)
    assert (list(shorter), shorter.next, shorter.total) == ([{"n": 0}, {"n": 1}], 6, 10)
