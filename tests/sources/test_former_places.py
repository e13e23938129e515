"""Where lines that were removed return to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from memoranda.sources.line_change import former_places


@given(some.lists(some.booleans(), max_size=12))
def test_removed_lines_return_to_their_places(are_removed: list[bool]) -> None:
    removed = [number for number, is_removed in enumerate(are_removed) if is_removed]
    lines = [number for number, is_removed in enumerate(are_removed) if not is_removed]
    places = former_places(removed, range(len(lines)), len(lines))
    before: dict[int, list[int]] = {}
    for place, number in zip(places, removed, strict=True):
        before.setdefault(place, []).append(number)
    after: list[int] = []
    for position, line in enumerate(lines):
        after += [*before.get(position, ()), line]
    assert after + before.get(len(lines), []) == [*range(len(are_removed))]
