"""What the daemon does not archive because of a time: what a reminder is still to come of, and what
has just fired.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.homes import MOMENT, Home
from memoranda.engine.contents import contents
from memoranda.jobs import reminders
from memoranda.jobs.lifecycle import Round, next_due
from memoranda.note.model import Draft
from memoranda.query import memory_query

TEXT = "Release 2.3 goes out on 15 July 2026"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home in which an agent noted a day ten weeks ahead, of which a dream made a reminder."""
    home = Home(tmp_path / "home", "timezone: UTC\nnotification:\n  method: file\n")
    with home.memory:
        home.memory.as_caller("claude", "mcp").write(
            Draft(TEXT, project="categories", category="project")
        )
        home.later(hours=3)
        home.round()
        assert shown(home) == {("project", TEXT), ("reminders", TEXT)}
        yield home


def shown(home: Home) -> set[tuple[str | None, str]]:
    """Category and text of what lists show."""
    infos, _ = home.memory.list(memory_query(), limit=0)
    texts = contents(home.memory, infos)
    return {(info.category, text) for info, text in zip(infos, texts, strict=True)}


def live(home: Home, until: str, *without: str) -> None:
    """A round at ten in the morning once a week, and each of the last days up to and including this
    day of 2026.
    """
    while f"{home.now:%m-%d}" < until:
        in_a_week = home.now + timedelta(days=7)
        home.now = home.now.replace(hour=10) + timedelta(
            days=7 if f"{in_a_week:%m-%d}" < until else 1
        )
        home.round(*without)


def test_a_memory_and_its_reminder_stay_until_that_leaves_the_pending_list(home: Home) -> None:
    live(home, "07-22")
    assert shown(home) == {("project", TEXT), ("reminders", TEXT)}
    # Though it was made long ago
    text = (home.memory.home / "pending.md").read_text(encoding="utf-8")
    assert TEXT in text
    live(home, "07-23")
    assert shown(home) == set()
    text = (home.memory.home / "pending.md").read_text(encoding="utf-8")
    assert TEXT not in text


def test_a_reminder_that_was_acknowledged_is_archived_at_once_when_it_is_old(home: Home) -> None:
    live(home, "07-15")
    (info,) = [
        candidate
        for candidate in home.memory.list(memory_query(), limit=0)[0]
        if candidate.category == "reminders"
    ]
    reminders.acknowledge(home.memory, info.id)
    live(home, "07-16")
    assert shown(home) == set()


def test_a_threshold_of_all_time_ends_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", "daemon:\n  decay_threshold: 9999999d\n")
    with home.memory:
        home.memory.as_caller("claude", "mcp").write(
            Draft("kept", project="categories", category="knowledge")
        )
        home.later(days=9000)
        actions = home.job("decay").actions
        assert actions == ()
        year = next_due(Round(home.memory).memories, home.memory.settings, home.now).year
        assert year == 9999


def test_a_note_of_the_inbox_with_a_reminder_ahead_does_not_expire_before_it(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "home", "timezone: UTC\n")
    with home.memory:
        text = "Ramen with Kenji, 15 June 2026, 18:30"
        claude = home.memory.as_caller("claude", "mcp")
        ref = claude.write(Draft(text, project="categories")).id
        reminder = {"due_at": "2026-06-15T18:30:00Z", "reminder_of": ref}
        home.put("11111111-1111-4111-8111-111111111111", text, "reminders", further=reminder)
        turn = Round(home.memory)
        week_after_it = MOMENT.replace(month=6, day=22, hour=18, minute=30)
        assert next_due(turn.memories, home.memory.settings, turn.now) == week_after_it
        # It fires
        live(home, "06-16", "dream")
        live(home, "06-22", "dream")
        assert home.info(ref).phase == "inbox"
        live(home, "06-24", "dream")
        assert home.info(ref).phase == "archived"


def test_nobody_is_asked_whether_to_archive_what_has_a_reminder_ahead(home: Home) -> None:
    home.write("The boiler is serviced on 15 July 2026")
    home.later(hours=3)
    home.round()
    live(home, "07-14")
    assert [question.text for question in home.memory.review(kind="archive")] == []
    live(home, "08-20")
    assert home.memory.review(kind="archive") == []
    home.later(days=365)
    (question_text,) = [
        question.text
        for question in home.memory.review(kind="archive")
        if "(date)" in question.text
    ]
    assert (
        question_text
        == 'Archive "The boiler is serviced on 15 July 2026" (date)? It was never read since 2026-05-06'
    )
