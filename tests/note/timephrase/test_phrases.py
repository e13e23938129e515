"""Phrases in English and Chinese: the shared table of contract 001, 9, and what goes beyond it."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from memoranda.errors import AmbiguousTime, InvalidInput, TimeRefused
from memoranda.note.timephrase import next_time_after, read
from memoranda.note.timephrase.rules import parse_rule

ZONE = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 5, 6, 10, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("today at midnight", "2026-05-07 00:00"),
        # As the zone of the reader is called
        ("tomorrow at 6pm CST", "2026-05-07 18:00"),
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
        ("by 1 June", "2026-06-01 09:00"),
        ("before 12 June at 3pm", "2026-06-12 15:00"),
        ("on the 3rd of June", "2026-06-03 09:00"),
        ("until the 1st of July 2027", "2027-07-01 09:00"),
        ("eod Friday", "2026-05-08 18:00"),
        ("in 1 day and 2 hours", "2026-05-07 12:00"),
        ("in 1.5 hours", "2026-05-06 11:30"),
        ("in twenty-five minutes", "2026-05-06 10:25"),
        ("ninety minutes from now", "2026-05-06 11:30"),
        ("half an hour from now", "2026-05-06 10:30"),
        ("Sat 3pm", "2026-05-09 15:00"),
        ("tomorrow at half past three in the afternoon", "2026-05-07 15:30"),
        ("tomorrow at eight thirty pm", "2026-05-07 20:30"),
        ("tomorrow at half past 5 pm", "2026-05-07 17:30"),
        ("tomorrow, quarter to six p.m.", "2026-05-07 17:45"),
        ("tomorrow quarter to 12 pm", "2026-05-07 11:45"),
        ("3-5pm tomorrow", "2026-05-07 15:00"),
        ("no later than Friday 5 p.m.", "2026-05-08 17:00"),
        ("2026-05-07T10:00", "2026-05-07 10:00"),
        ("this afternoon", "2026-05-06 15:00"),
        ("晚上12点", "2026-05-07 00:00"),
        ("今晚1点", "2026-05-07 01:00"),
        ("中午1点", "2026-05-06 13:00"),
        ("明天24点", "2026-05-08 00:00"),
        ("零点", "2026-05-07 00:00"),
        ("中午", "2026-05-06 12:00"),
        ("明天傍晚", "2026-05-07 19:00"),
        ("明天上午9点30分", "2026-05-07 09:30"),
        ("今晚八点半", "2026-05-06 20:30"),
        ("二十五号下午三点", "2026-05-25 15:00"),
        ("十二月二十五号", "2026-12-25 09:00"),
        ("5月底", "2026-05-31 09:00"),
        ("下个月的15号", "2026-06-15 09:00"),
        ("明年5月7日", "2027-05-07 09:00"),
        ("二〇二六年五月二十日", "2026-05-20 09:00"),
        ("下周末", "2026-05-16 09:00"),
        ("下周三下午三点", "2026-05-13 15:00"),
        ("这周五", "2026-05-08 09:00"),
        ("半个月后", "2026-05-21 09:00"),
        ("一年半后", "2027-11-06 09:00"),
        ("两个半小时后", "2026-05-06 12:30"),
        ("1小时30分钟后", "2026-05-06 11:30"),
        ("三刻钟后", "2026-05-06 10:45"),
        ("过3天", "2026-05-09 09:00"),
        ("后天的下午3点", "2026-05-08 15:00"),
        ("周五前提交", "2026-05-08 09:00"),
        ("５月２０日 下午３点", "2026-05-20 15:00"),
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
        (
            "the last day of every month",
            "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0",
            "2026-05-31 09:00",
        ),
        (
            "9am every weekday",
            "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0",
            "2026-05-07 09:00",
        ),
        ("every morning at 7", "FREQ=DAILY;BYHOUR=7;BYMINUTE=0", "2026-05-07 07:00"),
        (
            "every Friday night at 12",
            "FREQ=WEEKLY;BYDAY=SA;BYHOUR=0;BYMINUTE=0",
            "2026-05-09 00:00",
        ),
        ("every 90 minutes", "FREQ=MINUTELY;INTERVAL=90", "2026-05-06 11:30"),
        ("every hour", "FREQ=HOURLY", "2026-05-06 11:00"),
        (
            "every Feb 29 at noon",
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=12;BYMINUTE=0",
            "2028-02-29 12:00",
        ),
        ("daily at 6:30pm", "FREQ=DAILY;BYHOUR=18;BYMINUTE=30", "2026-05-06 18:30"),
        ("每周一三五早上7点", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYHOUR=7;BYMINUTE=0", "2026-05-08 07:00"),
        (
            "每周一到周五上午9点",
            "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0",
            "2026-05-07 09:00",
        ),
        ("每两周周一", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0", "2026-05-11 09:00"),
        ("每隔一天", "FREQ=DAILY;INTERVAL=2;BYHOUR=9;BYMINUTE=0", "2026-05-07 09:00"),
        ("每月1号和15号", "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=9;BYMINUTE=0", "2026-05-15 09:00"),
        ("每月底", "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0", "2026-05-31 09:00"),
        ("每年底", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=0", "2026-12-31 09:00"),
        ("每2小时", "FREQ=HOURLY;INTERVAL=2", "2026-05-06 12:00"),
        ("每晚十点", "FREQ=DAILY;BYHOUR=22;BYMINUTE=0", "2026-05-06 22:00"),
        ("每天凌晨2点", "FREQ=DAILY;BYHOUR=2;BYMINUTE=0", "2026-05-07 02:00"),
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
        "1/2/3/4",
        "10.0.0.1 and 192.168.1.10:8080",
        "the 15th floor",
        "the 3rd attempt",
        "support 24/7",
        "at 5 percent",
        "may 10 people come",
        "am I late",
        "for 2 hours",
        "05-07",
        "daily-report.txt",
        "",
        "   ",
        "at",
        "in the",
        "every",
        "every monkey",
        "on the",
    ],
)
def test_these_words_are_no_time(text):
    with pytest.raises(TimeRefused) as refused:
        read(text, NOW, ZONE)
    assert (refused.value.code, str(refused.value)) == ("no_time", f'no time found in "{text}"')


REFUSED = {
    "no_time": [
        "一号线",
        "15号楼",
        "早一点",
        "有一点累",
        "下午",
        "第三点",
    ],
    "ambiguous_time": [
        "within 3 days",
        "3天内",
        "一周一次",
        "weekly",
        "every 2 weeks",
        "in 2 hours tomorrow",
        "every day on Monday",
        "三点半",
        "明天凌晨",
        "每周一次",
        "每月",
    ],
    "past_time": [
        "an hour ago",
        "this morning",
        "last Friday",
        "上周五",
        "3小时前",
    ],
    "invalid_time": [
        "13pm",
        "31/2",
        "2026-13-01",
        "every 4 minutes",
        "every second counts",
        "every other second",
        "every year on Feb 30",
        "in 0 minutes",
        "in 999999 years",
        "every month on the 32nd",
        "8am in the evening",
        "每3分钟",
        "每年2月30日",
        "早上15点",
    ],
    "vague_time": [
        "see you later, tomorrow at 3pm",
        "改天再说",
        "几天后",
        "明天下午3点,过会儿再说",
    ],
}


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for code, texts in REFUSED.items() for text in texts]
)
def test_what_cannot_be_read_is_refused_by_its_code(code, text):
    with pytest.raises(TimeRefused) as refused:
        read(text, NOW, ZONE)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("text", "due", "repeat"),
    [
        (
            "first Monday of every month",
            "2026-06-01 09:00",
            "FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9;BYMINUTE=0",
        ),
        (
            "on the last Friday of each month at 5pm",
            "2026-05-29 17:00",
            "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0",
        ),
        ("every third Tuesday", "2026-05-19 09:00", "FREQ=MONTHLY;BYDAY=3TU;BYHOUR=9;BYMINUTE=0"),
        (
            "every second Tuesday of the month",
            "2026-05-12 09:00",
            "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9;BYMINUTE=0",
        ),
        (
            "every other Tuesday",
            "2026-05-12 09:00",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;BYHOUR=9;BYMINUTE=0",
        ),
        (
            "fifth Friday of every month",
            "2026-05-29 09:00",
            "FREQ=MONTHLY;BYDAY=5FR;BYHOUR=9;BYMINUTE=0",
        ),
        ("每月第一个星期一", "2026-06-01 09:00", "FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9;BYMINUTE=0"),
        (
            "每个月最后一个周五下午5点",
            "2026-05-29 17:00",
            "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0",
        ),
        ("the second Tuesday in May", "2026-05-12 09:00", None),
        ("last Friday of the month", "2026-05-29 09:00", None),
        ("下个月第二个周三", "2026-06-10 09:00", None),
        ("a week from Friday", "2026-05-15 09:00", None),
        ("two hours before midnight", "2026-05-06 22:00", None),
        ("3 days before May 20", "2026-05-17 09:00", None),
        ("in a fortnight", "2026-05-20 09:00", None),
        ("8 to 11 September", "2026-09-08 09:00", None),
        ("October 4-6", "2026-10-04 09:00", None),
        ("10月4日到6日", "2026-10-04 09:00", None),
    ],
)
def test_weekdays_of_a_month_ranges_and_times_before_or_after_another(text, due, repeat):
    reading = read(text, NOW, ZONE)
    assert f"{reading.due:%Y-%m-%d %H:%M}" == due
    assert reading.repeat == repeat
    if repeat:
        assert next_time_after(repeat, reading.due, ZONE) > reading.due
        assert str(parse_rule(repeat)) == repeat


@pytest.mark.promise("001.18.7-reminders")
@pytest.mark.parametrize(
    ("text", "unused"),
    [
        ("call Bob tomorrow at 6pm IST", "IST"),
        ("tomorrow at noon US time", "US time"),
        ("Friday at 5pm ask about the cake Saturday at noon", "at noon"),
        ("not tomorrow but the day after", "not"),
        ("明天不行，后天", "不行"),
        ("Friday week", "week"),
        ("不要明天", "不要"),
        ("the week of May 7", "the week of"),
        ("周五前两天", "前两天"),
        ("anytime except Friday", "except"),
    ],
)
def test_words_beside_a_time_that_were_not_used_refuse_it(text, unused):
    with pytest.raises(AmbiguousTime) as refused:
        read(text, NOW, ZONE)
    assert f'"{unused}" was not used; say it in other words' in str(refused.value)
    assert refused.value.candidates == ()


def test_of_two_times_after_or_both_readings_are_said():
    with pytest.raises(AmbiguousTime) as refused:
        read("Friday at 5pm or Saturday at noon", NOW, ZONE)
    assert str(refused.value) == (
        'ambiguous time "Friday at 5pm or Saturday at noon": 2026-05-08 17:00 or 2026-05-09 12:00; say which'
    )


@pytest.mark.promise("001.18.7-reminders")
@pytest.mark.parametrize(
    ("text", "times"),
    [
        (
            "every second Tuesday at 9am",
            "2026-05-12 09:00 (every other Tuesday) "
            "or 2026-05-12 09:00 (every second Tuesday of the month)",
        ),
        (
            "every second Tuesday at 9 except in August",
            "2026-05-12 09:00 (every other Tuesday) "
            "or 2026-05-12 09:00 (every second Tuesday of the month) "
            "or 2026-05-12 21:00 (every other Tuesday) "
            "or 2026-05-12 21:00 (every second Tuesday of the month)",
        ),
        ("每隔两天早上八点", "2026-05-07 08:00 (每2天) or 2026-05-07 08:00 (每3天)"),
        ("每隔两周周五下午三点", "2026-05-08 15:00 (每2周) or 2026-05-08 15:00 (每3周)"),
        ("每隔一小时", "2026-05-06 11:00 (每1小时) or 2026-05-06 12:00 (每2小时)"),
    ],
)
def test_an_unclear_repetition_is_refused_with_both_of_its_meanings(text, times):
    with pytest.raises(AmbiguousTime) as refused:
        read(text, NOW, ZONE)
    assert str(refused.value) == f'ambiguous time "{text}": {times}; say which'
    assert len(refused.value.repeats) == len(refused.value.candidates)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("每隔两天早上八点", "每2天早上八点"),
        ("每隔一小时", "每1小时"),
        ("every second Tuesday at 9am", "every other Tuesday at 9am"),
        ("every second Tuesday at 9am", "every second Tuesday of the month at 9am"),
    ],
)
def test_the_words_of_a_meaning_are_read_as_this_meaning(text, words):
    with pytest.raises(AmbiguousTime) as refused:
        read(text, NOW, ZONE)
    reading = read(words, NOW, ZONE)
    meanings = zip(refused.value.candidates, refused.value.repeats, strict=True)
    assert (reading.due, reading.repeat) in meanings


def test_many_unclear_repetitions_are_refused_at_once():
    with pytest.raises(AmbiguousTime) as refused:
        read("every second Tuesday, " * 40, NOW, ZONE)
    assert refused.value.candidates == ()


def test_a_name_before_a_series_is_no_month_of_it():
    reading = read("call June every Friday at 5pm", NOW, ZONE)
    assert reading.repeat == "FREQ=WEEKLY;BYDAY=FR;BYHOUR=17;BYMINUTE=0"


@pytest.mark.parametrize("days", ["MO", "6MO", "0MO", "1XX", "1MO,2TU", "1"])
def test_a_monthly_rule_needs_to_say_which_weekday(days):
    with pytest.raises(InvalidInput):
        parse_rule(f"FREQ=MONTHLY;BYDAY={days};BYHOUR=9;BYMINUTE=0")


def test_words_that_contradict_each_other_are_ambiguous():
    with pytest.raises(AmbiguousTime) as refused:
        read("Friday, May 7", NOW, ZONE)
    assert (
        str(refused.value)
        == 'ambiguous time "Friday, May 7": 2026-05-07 09:00 or 2026-05-08 09:00; say which'
    )


def test_the_reading_is_said_in_plain_words_with_the_users_own_phrase():
    reading = read("call Bob Tomorrow at 3PM", NOW, ZONE)
    assert (reading.reading, reading.phrase) == ("Thu 7 May 2026 15:00", "Tomorrow at 3PM")


@pytest.mark.parametrize(("day_hour", "hour"), [(8, 18), (11, 11), (20, 20)])
def test_today_fires_at_the_hour_of_days_or_when_it_has_passed_at_18(day_hour, hour):
    assert read("today", NOW, ZONE, day_hour).due.hour == hour


def test_the_phrase_is_the_users_own_text():
    reading = read("提醒我明天下午３点到５点开会", NOW, ZONE)
    assert reading.phrase == "明天下午３点到５点"
