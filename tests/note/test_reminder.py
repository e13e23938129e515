"""What a reminder's header says (contract 001, 2 and 8)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.clock import SYSTEM_ZONE, stamp
from memoranda.note.frontmatter import REMOVE
from memoranda.note.reminder import Reminder

NOW = datetime(2026, 5, 6, 10, 0, tzinfo=UTC)
RULES = [
    "FREQ=DAILY",
    "FREQ=WEEKLY;INTERVAL=2",
    "FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=0",
    "FREQ=HOURLY;INTERVAL=7",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;BYHOUR=9;BYMINUTE=0",
    "FREQ=",
    "every day",
    ";=;=",
    "RRULE:FREQ=DAILY",
    "FREQ=DAILY;",
]
TIMES = [
    stamp(NOW),
    "2026-05-06T09:59:59.999999Z",
    "2026-05-06",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "soon",
    "",
    "1970-01-01",
    "2026-05-06T12:00:00+05:30",
]
VALUES = st.none() | st.booleans() | st.sampled_from(TIMES) | st.text(max_size=5) | st.just(["x"])


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "due_at": VALUES,
            "fired_at": VALUES,
            "acked_at": VALUES,
            "fired_for": VALUES,
            "repeat": VALUES | st.sampled_from(RULES),
        },
    )
)
def test_whatever_stands_there_a_reminder_that_fired_is_not_due_any_more(header):
    reminder = Reminder.of(header)
    reminder.complaints(NOW, UTC)
    assert not (reminder.is_waiting and reminder.is_undated)
    if reminder.is_due(NOW):
        after = {
            key: value
            for key, value in (header | reminder.once_fired(NOW, UTC)).items()
            if value is not REMOVE
        }
        again = Reminder.of(after)
        assert not again.is_due(NOW)
        assert again.is_pending(NOW, 0)
        assert again.shown_due == reminder.due


@pytest.mark.parametrize(
    ("rule", "due", "expected"),
    [
        ("FREQ=DAILY", "2026-05-05T09:30:00Z", "2026-05-07T09:30:00Z"),
        ("FREQ=WEEKLY", "2026-05-05T09:30:00Z", "2026-05-12T09:30:00Z"),
        ("freq=weekly;byday=mo,we", "2026-05-04T09:30:00Z", "2026-05-11T09:30:00Z"),
        ("FREQ=MONTHLY", "2026-03-31T09:30:00Z", "2026-05-31T09:30:00Z"),
        ("FREQ=YEARLY", "2024-02-29T09:30:00Z", "2028-02-29T09:30:00Z"),
        ("RRULE:FREQ=DAILY;INTERVAL=3", "2026-05-01T09:30:00Z", "2026-05-07T09:30:00Z"),
        ("FREQ=HOURLY;INTERVAL=2", "2026-05-05T09:30:00Z", "2026-05-06T11:30:00Z"),
    ],
)
def test_a_rule_written_by_hand_takes_what_it_leaves_out_from_the_first_time(rule, due, expected):
    assert Reminder.of({"due_at": due, "repeat": rule}).once_fired(NOW, UTC)["due_at"] == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=WEEKLY;BYMONTH=5,7", "2026-07-07T09:30:00Z"),
        ("FREQ=HOURLY;INTERVAL=2;BYMONTH=5,7", "2026-07-01T01:30:00Z"),
        ("FREQ=MONTHLY;BYDAY=1TU;BYMONTH=5,7", "2026-07-07T09:30:00Z"),
    ],
)
def test_a_rule_of_months_goes_on_in_its_next_month(rule, expected):
    header = {"due_at": "2026-05-26T09:30:00Z", "repeat": rule}
    now = datetime(2026, 5, 31, 23, 45, tzinfo=UTC)
    assert Reminder.of(header).once_fired(now, UTC)["due_at"] == expected
    assert Reminder.of(header).complaints(now, UTC) == []


def test_a_rule_of_months_that_is_put_off_into_a_month_left_out_goes_on_behind_it():
    header = {"due_at": "2026-05-26T09:30:00Z", "repeat": "FREQ=WEEKLY;BYMONTH=5,7"}
    now = datetime(2026, 5, 26, 8, tzinfo=UTC)
    to = datetime(2026, 6, 3, 9, tzinfo=UTC)
    keys = Reminder.of(header).put_off(to, now, UTC)
    assert keys["due_at"] == "2026-07-07T09:30:00Z"
    assert keys["snoozed_until"] == "2026-06-03T09:00:00Z"


def test_the_hour_of_such_a_rule_is_local():
    reminder = Reminder.of({"due_at": "2026-03-28T08:00:00Z", "repeat": "FREQ=DAILY"})
    keys = reminder.once_fired(datetime(2026, 3, 28, 12, tzinfo=UTC), ZoneInfo("Europe/Berlin"))
    assert keys["due_at"] == "2026-03-29T07:00:00Z"


def test_a_repeating_reminder_whose_clock_once_was_wrong_goes_on():
    header = {
        "due_at": "2026-05-07T09:00:00Z",
        "fired_at": "2030-01-01T00:00:00Z",
        "repeat": "FREQ=DAILY",
    }
    assert Reminder.of(header).is_waiting


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata"])
def test_the_zone_of_the_system_is_the_one_of_that_name(zone, monkeypatch):
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for month in range(1, 13):
            for day, hour in ((1, 0), (25, 0), (25, 1), (29, 1), (29, 4)):
                moment = datetime(2026, month, min(day, 28), hour, 30, tzinfo=UTC)
                ours = moment.astimezone(SYSTEM_ZONE)
                theirs = moment.astimezone(ZoneInfo(zone))
                assert ours.isoformat() == theirs.isoformat()
                assert ours.astimezone(UTC) == moment
                assert ours.fold == theirs.fold
        twice = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
        assert [
            time_of_two.astimezone(SYSTEM_ZONE).astimezone(UTC) for time_of_two in twice
        ] == list(twice)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_series_with_an_end_fires_its_last_time_and_nobody_complains():
    header = {
        "due_at": "2026-05-07T09:00:00Z",
        "repeat": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;UNTIL=20260508",
    }
    fired = []
    for day in range(7, 12):
        now = datetime(2026, 5, day, 9, 30, tzinfo=UTC)
        reminder = Reminder.of(header)
        if reminder.is_due(now):
            fired.append(day)
            header |= reminder.once_fired(now, UTC)
        assert Reminder.of(header).complaints(now, UTC) == []
    assert fired == [7, 8]
    assert not Reminder.of(header).is_waiting


def test_a_series_of_another_zone_follows_its_daylight_saving():
    header = {
        "due_at": "2026-10-26T13:00:00Z",
        "repeat": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0;TZID=America/New_York",
    }
    berlin = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 10, 26, 13, 30, tzinfo=UTC)
    assert Reminder.of(header).once_fired(now, berlin)["due_at"] == "2026-11-02T14:00:00Z"
