"""A clock that is months or years ahead for a while ends no history; a home that rested goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memoranda import Draft
from memoranda.engine import open_session
from movable_clock import Clock

NOW = datetime(2026, 5, 7, 10, tzinfo=UTC)


@pytest.fixture
def home(tmp_path):
    """A home with a deleted note, and with a clock that can be set: `home.time.now`."""
    time = Clock(NOW)
    with open_session(tmp_path / "home", clock=time) as memory:
        memory.time = time
        note = memory.write(Draft("the heron nests by the weir", title="Heron"))
        memory.delete(note.id)
        yield memory


@pytest.mark.parametrize("days", [91, 100, 200, 359, 365, 365 * 5, 365 * 70])
def test_a_clock_that_jumps_ahead_forgets_no_change(home, days):
    home.time.now = NOW + timedelta(days=days)
    # Upkeep writes at the wrong time, too.
    home.write(Draft("by the wrong clock", title="Later"))
    assert home.purge_history() == 0
    home.time.now = NOW + timedelta(hours=1)
    assert home.purge_history() == 0
    home.restore("notes/Heron.md")
    assert home.read("Heron").content == "the heron nests by the weir"


def test_a_clock_that_went_years_back_forgets_no_change(home):
    home.time.now = NOW - timedelta(days=365 * 5)
    home.write(Draft("by the wrong clock", title="Earlier"))
    assert home.purge_history() == 0
    home.time.now = NOW + timedelta(hours=1)
    home.purge_history()
    home.restore("notes/Heron.md")
    assert home.read("Heron").content == "the heron nests by the weir"


def test_a_change_made_while_the_clock_was_years_back_is_kept_as_long_as_others(home):
    home.time.now = NOW + timedelta(days=50)
    home.write(Draft("in use", title="Used"))
    # By mistake, the text is deleted while the clock is behind.
    home.time.now = NOW - timedelta(days=365 * 5)
    home.delete(home.find("Used").id)
    home.time.now = NOW + timedelta(days=100)
    home.write(Draft("the clock is right again", title="Right"))
    assert home.purge_history() == 2
    home.restore("notes/Used.md")
    assert home.read("Used").content == "in use"


def test_a_change_made_while_the_clock_was_years_ahead_keeps_no_other(home):
    home.time.now = NOW + timedelta(days=365 * 5)
    home.write(Draft("by the wrong clock", title="Ahead"))
    home.time.now = NOW + timedelta(days=1)
    home.write(Draft("right again", title="Right"))
    home.time.now = NOW + timedelta(days=50)
    home.write(Draft("in use", title="Used"))
    home.time.now = NOW + timedelta(days=95)
    home.write(Draft("still in use", title="Still"))
    assert home.purge_history() == 3


@pytest.mark.parametrize("days", [91, 200, 365 * 3])
def test_a_home_that_rested_forgets_a_week_after_its_next_change(home, days):
    home.time.now = NOW + timedelta(days=days)
    home.write(Draft("back again", title="Back"))
    home.time.now += timedelta(days=6)
    assert home.purge_history() == 0
    home.time.now += timedelta(days=2)
    home.write(Draft("still here", title="Still"))
    assert home.purge_history() == 2


def test_a_home_used_one_day_a_year_forgets_what_was_old_at_its_last_use(home):
    for years in (1, 2):
        assert home.purge_history() == 0
        home.time.now = NOW + timedelta(days=365 * years)
        home.write(Draft(f"use {years}", title=f"Use {years}"))
    assert home.purge_history() == 2


def test_a_home_in_use_forgets_what_is_older_than_its_setting(home):
    home.time.now = NOW + timedelta(days=60)
    home.write(Draft("in use", title="Used"))
    home.time.now = NOW + timedelta(days=100)
    assert home.purge_history() == 2


def test_a_history_of_a_day_is_forgotten_by_a_home_in_use(home):
    home.configure("history.days", 1)
    home.time.now = NOW + timedelta(hours=20)
    home.write(Draft("in use", title="Used"))
    home.time.now = NOW + timedelta(hours=35)
    assert home.purge_history() == 2
