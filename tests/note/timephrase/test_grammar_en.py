"""English time phrases beyond the table: combinations, groups, and words that are no time."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from commonplace.errors import AmbiguousTime, TimeRefused
from commonplace.note.timephrase import read

ZONE = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 5, 6, 10, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("today at midnight", "2026-05-07 00:00"),
        ("midnight tonight", "2026-05-07 00:00"),
        ("tonight at 1", "2026-05-07 01:00"),
        ("Thursday, May 7 at 3pm", "2026-05-07 15:00"),
        ("next Friday May 15", "2026-05-15 09:00"),
        ("Friday of next week", "2026-05-15 09:00"),
        ("next week on Tuesday at 9:30", "2026-05-12 09:30"),
        ("the 3rd of next month", "2026-06-03 09:00"),
        ("on the 31st", "2026-05-31 09:00"),
        ("end of next month", "2026-06-30 09:00"),
        ("end of May", "2026-05-31 09:00"),
        ("eod Friday", "2026-05-08 18:00"),
        ("in 1 day and 2 hours", "2026-05-07 12:00"),
        ("in 1.5 hours", "2026-05-06 11:30"),
        ("in twenty-five minutes", "2026-05-06 10:25"),
        ("ninety minutes from now", "2026-05-06 11:30"),
        ("half an hour from now", "2026-05-06 10:30"),
        ("Sat 3pm", "2026-05-09 15:00"),
        ("tomorrow at half past three in the afternoon", "2026-05-07 15:30"),
        ("tomorrow at eight thirty pm", "2026-05-07 20:30"),
        ("3-5pm tomorrow", "2026-05-07 15:00"),
        ("no later than Friday 5 p.m.", "2026-05-08 17:00"),
        ("2026-05-07T10:00", "2026-05-07 10:00"),
        ("this afternoon", "2026-05-06 15:00"),
    ],
)
def test_a_phrase_is_read_in_full(text, due):
    assert f"{read(text, NOW, ZONE).due:%Y-%m-%d %H:%M}" == due


@pytest.mark.parametrize(
    ("text", "rule", "due"),
    [
        (
            "every other Monday at 8am",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=8;BYMINUTE=0",
            "2026-05-11 08:00",
        ),
        (
            "every month on the 1st and 15th",
            "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=9;BYMINUTE=0",
            "2026-05-15 09:00",
        ),
        ("the last day of every month", "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0", "2026-05-31 09:00"),
        ("9am every weekday", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0", "2026-05-07 09:00"),
        ("every morning at 7", "FREQ=DAILY;BYHOUR=7;BYMINUTE=0", "2026-05-07 07:00"),
        ("every Friday night at 12", "FREQ=WEEKLY;BYDAY=SA;BYHOUR=0;BYMINUTE=0", "2026-05-09 00:00"),
        ("every 90 minutes", "FREQ=MINUTELY;INTERVAL=90", "2026-05-06 11:30"),
        ("every hour", "FREQ=HOURLY", "2026-05-06 11:00"),
        (
            "every Feb 29 at noon",
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=12;BYMINUTE=0",
            "2028-02-29 12:00",
        ),
        ("daily at 6:30pm", "FREQ=DAILY;BYHOUR=18;BYMINUTE=30", "2026-05-06 18:30"),
    ],
)
def test_a_repetition_gives_its_rule_and_first_time(text, rule, due):
    reading = read(text, NOW, ZONE)
    assert (reading.repeat, f"{reading.due:%Y-%m-%d %H:%M}") == (rule, due)


@pytest.mark.parametrize(
    "text",
    [
        "the morning sun",
        "may I",
        "the sun and the moon",
        "the cat sat on it",
        "march on",
        "wait a second",
        "version 1.2.3",
        "10.0.0.1 and 192.168.1.10:8080",
        "the 15th floor",
        "the 3rd attempt",
        "support 24/7",
        "at 5 percent",
        "may 10 people come",
        "am I late",
        "for 2 hours",
        "within 3 days",
        "05-07",
        "daily-report.txt",
        "",
        "   ",
        "at",
        "in the",
        "every",
        "every monkey",
        "on the",
        "1/2/3/4",
    ],
)
def test_these_words_are_no_time(text):
    with pytest.raises(TimeRefused) as refused:
        read(text, NOW, ZONE)
    assert (refused.value.code, str(refused.value)) == ("no_time", f'no time found in "{text}"')


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("13pm", "invalid_time"),
        ("31/2", "invalid_time"),
        ("2026-13-01", "invalid_time"),
        ("every 4 minutes", "invalid_time"),
        ("every second counts", "invalid_time"),
        ("every other second", "invalid_time"),
        ("every year on Feb 30", "invalid_time"),
        ("in 0 minutes", "invalid_time"),
        ("in 999999 years", "invalid_time"),
        ("every month on the 32nd", "invalid_time"),
        ("8am in the evening", "invalid_time"),
        ("weekly", "ambiguous_time"),
        ("every 2 weeks", "ambiguous_time"),
        ("in 2 hours tomorrow", "ambiguous_time"),
        ("every day on Monday", "ambiguous_time"),
        ("an hour ago", "past_time"),
        ("this morning", "past_time"),
        ("last Friday", "past_time"),
        ("see you later, tomorrow at 3pm", "vague_time"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_code(text, code):
    with pytest.raises(TimeRefused) as refused:
        read(text, NOW, ZONE)
    assert refused.value.code == code


def test_further_groups_are_named_and_not_used():
    reading = read("Friday at 5pm or Saturday at noon", NOW, ZONE)
    assert (reading.phrase, reading.others) == ("Friday at 5pm", ("Saturday at noon",))


def test_words_that_contradict_each_other_are_ambiguous():
    with pytest.raises(AmbiguousTime) as refused:
        read("Friday, May 7", NOW, ZONE)
    assert str(refused.value) == 'ambiguous time "Friday, May 7": 2026-05-07 09:00 or 2026-05-08 09:00; say which'


def test_the_reading_is_said_in_plain_words_with_the_users_own_phrase():
    reading = read("call Bob Tomorrow at 3PM", NOW, ZONE)
    assert (reading.reading, reading.phrase) == ("Thu 7 May 2026 15:00", "Tomorrow at 3PM")


@pytest.mark.parametrize(("day_hour", "hour"), [(8, 18), (11, 11), (20, 20)])
def test_today_fires_at_the_hour_of_days_or_when_it_has_passed_at_18(day_hour, hour):
    assert read("today", NOW, ZONE, day_hour).due.hour == hour
