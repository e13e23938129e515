"""Of notes that are worth the same, those of the day of a better note come first."""

from __future__ import annotations

import pytest

from index.conftest import Desk
from memoranda.index import search
from memoranda.index.rows import Hit
from memoranda.query import Query

ASKED = "What did the pottery course in Delft cost with clay?"
BEST = "The pottery course in Delft cost 90 euros with clay."
# Two texts of the same length, with the same words of the question.
EQUAL_TEXTS = ("The pottery was red.", "The pottery was blue")


def dated(day: str, text: str) -> str:
    return f"---\ndate: {day}\n---\n{text}"


def hits_of(desk: Desk, text: str) -> list[Hit]:
    return list(search.search(desk.db, Query(text), viewer=None, explain=True))


@pytest.fixture
def days(desk: Desk) -> Desk:
    """Three notes, each newer than the one before. The first two are of one day."""
    desk.put("first.md", dated("2026-03-01", BEST))
    desk.put("second.md", dated("2026-03-01", EQUAL_TEXTS[0]))
    desk.put("third.md", dated("2026-03-02", EQUAL_TEXTS[1]))
    return desk


def test_note_of_the_day_of_the_best_note_comes_before_an_equal_newer_one(days: Desk) -> None:
    paths = [hit.note.path for hit in hits_of(days, ASKED)]
    assert paths == ["first.md", "second.md", "third.md"]


def test_equal_notes_of_two_days_come_newest_first_where_no_other_is_better(desk: Desk) -> None:
    desk.put("second.md", dated("2026-03-01", EQUAL_TEXTS[0]))
    desk.put("third.md", dated("2026-03-02", EQUAL_TEXTS[1]))
    paths = [hit.note.path for hit in hits_of(desk, ASKED)]
    assert paths == ["third.md", "second.md"]


def test_loss_of_a_note_of_another_day_is_shown_as_other_day(days: Desk) -> None:
    losses = {hit.note.path: hit.shares.get("other_day", 0.0) for hit in hits_of(days, ASKED)}
    assert losses.pop("third.md") < 0
    assert losses == {"first.md": 0.0, "second.md": 0.0}


def test_turns_of_talks_lose_nothing_to_another_day(desk: Desk) -> None:
    desk.put("may/1.md", dated("2026-05-01", f"Anna: {BEST}"))
    desk.put("june/1.md", dated("2026-06-01", f"Ben: {EQUAL_TEXTS[0]}"))
    hits = hits_of(desk, ASKED)
    assert len(hits) == 2
    assert not any("other_day" in hit.shares for hit in hits)


def test_search_for_all_words_shows_the_newest_of_equal_notes_whatever_the_day(
    days: Desk,
) -> None:
    paths = [hit.note.path for hit in hits_of(days, "pottery")]
    assert paths.index("third.md") < paths.index("second.md")
