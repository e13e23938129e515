"""What holds for every text, clock, zone and rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import InvalidInput, TimeRefused, VagueTime
from memoranda.note.timephrase import GAP, Reading, next_time_after, read, read_all
from memoranda.note.timephrase.rules import parse_rule

ZONES = [
    ZoneInfo(name)
    for name in ("Asia/Shanghai", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")
]
NEW_YORK = ZONES[2]
LINES = (
    "tomorrow today tonight Friday next this every other Monday week month 3 15 31 at in on the of by 3pm",
    "9:30 2.5 and a half hour minutes days years ago May 7 29 Feb 2026-05-07 5/7 noon midnight morning eod",
    "soon 1st last end 明天 后天 下 周 五 末 每 两 个 月 底 号 日 3 点 半",
    "一刻 分钟 后 前 下午 晚上 凌晨 年 过几天 隔 工作日 十 , : 、 的",
)
PIECES = list(chain.from_iterable(line.split() for line in LINES))
MONTHS = st.sets(st.integers(1, 12), min_size=1).map(sorted)
texts = st.one_of(
    st.text(max_size=30),
    st.lists(st.sampled_from(PIECES), max_size=7).flatmap(
        lambda words: st.sampled_from(["".join(words), " ".join(words)])
    ),
)
moments = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
rules = st.one_of(
    st.builds("FREQ=HOURLY;INTERVAL={}".format, st.integers(1, 50)),
    st.builds(
        "FREQ=DAILY;INTERVAL={};BYHOUR={};BYMINUTE=59".format, st.integers(1, 9), st.integers(0, 23)
    ),
    st.builds(
        "FREQ=WEEKLY;INTERVAL={};BYDAY={};BYHOUR={};BYMINUTE=30".format,
        st.integers(1, 4),
        st.sampled_from(["MO", "TU,TH", "SU", "MO,WE,SA"]),
        st.integers(0, 23),
    ),
    st.builds(
        "FREQ=MONTHLY;INTERVAL={};BYMONTHDAY={};BYHOUR=2;BYMINUTE=30".format,
        st.integers(1, 14),
        st.sampled_from(["1", "31", "-1", "15,30"]),
    ),
    st.builds(
        "FREQ=YEARLY;INTERVAL={};BYMONTH=2;BYMONTHDAY={};BYHOUR=9;BYMINUTE=0".format,
        st.integers(1, 3),
        st.sampled_from(["1", "29", "-1"]),
    ),
)


def outcome(text, now, zone, day_hour):
    try:
        return read(text, now, zone, day_hour)
    except TimeRefused as refused:
        return refused


@given(texts, moments, st.sampled_from(ZONES), st.integers(0, 23))
def test_any_text_gives_a_time_ahead_or_one_of_its_own_refusals(text, now, zone, day_hour):
    reading = outcome(text, now, zone, day_hour)
    assert all(words in text for words in reading.phrase.split(GAP))
    if isinstance(reading, TimeRefused):
        assert reading.code in (
            "ambiguous_time",
            "past_time",
            "no_time",
            "invalid_time",
            "vague_time",
        )
        return
    assert reading.due > now
    assert reading.due.tzinfo is zone
    if reading.repeat:
        assert next_time_after(reading.repeat, reading.due, zone) > reading.due


@given(texts, moments)
def test_the_places_of_all_groups_are_in_the_text_and_in_order(text, now):
    end = 0
    for (first, last), outcome in read_all(text, now, ZONES[0]):
        assert end <= first < last
        assert outcome.phrase == text[first:last]
        end = last


@given(rules, moments, st.sampled_from(ZONES))
def test_the_times_of_a_rule_go_on_and_none_is_left_out(rule, after, zone):
    first = next_time_after(rule, after, zone)
    second = next_time_after(rule, first, zone)
    assert after < first < second
    between = first + (second - first) / 2
    assert next_time_after(rule, between, zone, since=first) == second
    assert next_time_after(rule, second - timedelta(seconds=1), zone, since=first) == second


@given(
    st.sampled_from(
        [
            "FREQ=HOURLY;INTERVAL={};BYMONTH={}",
            "FREQ=MINUTELY;INTERVAL=9{};BYMONTH={}",
            "FREQ=DAILY;INTERVAL={};BYMONTH={};BYHOUR=9;BYMINUTE=0",
            "FREQ=WEEKLY;INTERVAL={};BYMONTH={};BYDAY=MO,SU;BYHOUR=0;BYMINUTE=30",
            "FREQ=MONTHLY;BYMONTH={1};BYDAY=2TU;BYHOUR=23;BYMINUTE=0",
            "FREQ=MONTHLY;BYMONTH={1};BYMONTHDAY=1,15,-1;BYHOUR=9;BYMINUTE=0",
        ]
    ),
    st.integers(1, 9),
    MONTHS,
    moments,
    st.sampled_from(ZONES),
)
def test_a_rule_of_months_has_the_times_of_the_whole_rule_in_these_months(
    template, interval, months, now, zone
):
    names = ",".join(map(str, months))
    rule = template.format(interval, names)
    whole_rule = rule.replace(f"BYMONTH={names};", "").replace(f";BYMONTH={names}", "")
    first = next_time_after(whole_rule, now, zone)
    expected = first
    # At most 300 times are left out one by one. There are rules of minutes that need more.
    for _ in range(300):
        expected = next_time_after(whole_rule, expected, zone, since=first)
        if expected.month in months:
            assert next_time_after(rule, first, zone, since=first) == expected
            return
    assert next_time_after(rule, first, zone, since=first) > expected


@pytest.mark.parametrize("months", ["", "0", "13", "8,", "August"])
def test_a_rule_of_months_that_do_not_exist_is_refused(months):
    with pytest.raises(InvalidInput):
        parse_rule(f"FREQ=WEEKLY;BYMONTH={months};BYDAY=TU;BYHOUR=9;BYMINUTE=0")


def test_a_rule_of_months_passes_over_years_without_a_time():
    # Every 365 days, the day is in May, and only after decades in April.
    rule = "FREQ=DAILY;INTERVAL=365;BYMONTH=4;BYHOUR=9;BYMINUTE=0"
    first = datetime(2026, 5, 6, 9, tzinfo=ZONES[0])
    assert f"{next_time_after(rule, first, ZONES[0], since=first):%Y-%m-%d}" == "2048-04-30"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "daily",
        "FREQ=DAILY",
        "FREQ=SECONDLY",
        "FREQ=MINUTELY;INTERVAL=4",
        "FREQ=HOURLY;BYHOUR=3",
        "FREQ=DAILY;BYHOUR=25;BYMINUTE=0",
        "FREQ=DAILY;BYHOUR=9;BYMINUTE=x",
        "FREQ=WEEKLY;BYDAY=XX;BYHOUR=9;BYMINUTE=0",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;BYHOUR=9;BYMINUTE=0",
        "FREQ=DAILY;FREQ=DAILY;BYHOUR=9;BYMINUTE=0",
        "FREQ=MONTHLY;BYMONTHDAY=0;BYHOUR=9;BYMINUTE=0",
        "FREQ=DAILY;INTERVAL=0;BYHOUR=9;BYMINUTE=0",
        "FREQ=YEARLY;BYMONTHDAY=7;BYHOUR=9;BYMINUTE=0",
    ],
)
def test_a_text_that_is_no_rule_is_refused_as_bad_input(text):
    with pytest.raises(InvalidInput):
        next_time_after(text, datetime(2026, 5, 6, tzinfo=UTC), ZONES[0])


def test_a_month_without_the_day_is_skipped():
    rule = "FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=0"
    moment = datetime(2026, 5, 31, 9, tzinfo=ZONES[0])
    assert f"{next_time_after(rule, moment, ZONES[0]):%m-%d}" == "07-31"


@pytest.mark.parametrize(
    ("text", "now", "due"),
    [
        ("tomorrow at 2:30", "2026-03-07T12:00:00-05:00", "2026-03-08T03:30:00-04:00"),
        ("tomorrow at 1:30", "2026-10-31T12:00:00-04:00", "2026-11-01T01:30:00-04:00"),
        ("in 24 hours", "2026-10-31T12:00:00-04:00", "2026-11-01T11:00:00-05:00"),
        ("in 1 day", "2026-10-31T12:00:00-04:00", "2026-11-01T09:00:00-05:00"),
        ("every day at 2:30", "2026-03-07T12:00:00-05:00", "2026-03-08T03:30:00-04:00"),
    ],
)
def test_wall_times_follow_the_daylight_saving_of_the_zone(text, now, due):
    assert read(text, datetime.fromisoformat(now), NEW_YORK).due.isoformat() == due


def test_a_vague_word_refuses_the_times_of_its_paragraph_only():
    now = datetime(2026, 5, 6, 2, tzinfo=UTC)
    outcomes = read_all("maybe soon, or tomorrow at 3pm\n\nFriday: pay rent", now, ZONES[0])
    assert [type(outcome) for _, outcome in outcomes] == [VagueTime, VagueTime, Reading]
