"""Every time word of a text is used, or the text is refused (AMENDMENTS 7).

The phrases are data: `phrases.json` was written before the grammar, `blind_odd.json` and `blind_even.json` by somebody
who had not seen it, `further.json` are kinds found while it was tried, `asked.json` is what people ask an agent,
`everyday.json` are kinds that were refused too often, and `changing_words.json` are the words beside a time that change
it.
"""

from __future__ import annotations

import json
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import InvalidInput, NoTime, TimeRefused
from memoranda.note.timephrase import Reading, next_time_after, read_times

pytestmark = pytest.mark.promise("001.9-whole-text")

DATA = Path(__file__).parent / "data"
PHRASES = json.loads((DATA / "phrases.json").read_text(encoding="utf-8"))
BLIND = json.loads((DATA / "blind_odd.json").read_text(encoding="utf-8"))
UNSEEN = json.loads((DATA / "blind_even.json").read_text(encoding="utf-8"))
FURTHER = json.loads((DATA / "further.json").read_text(encoding="utf-8"))
ASKED = json.loads((DATA / "asked.json").read_text(encoding="utf-8"))
EVERYDAY = json.loads((DATA / "everyday.json").read_text(encoding="utf-8"))
MONTHS = json.loads((DATA / "months.json").read_text(encoding="utf-8"))
CHANGING_WORDS = json.loads((DATA / "changing_words.json").read_text(encoding="utf-8"))
SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 5, 6, 10, tzinfo=SHANGHAI)
BERLIN = ZoneInfo(BLIND["zone"])
BLIND_NOW = datetime.fromisoformat(BLIND["now"]).replace(tzinfo=BERLIN)
ASKED_NOW = datetime.fromisoformat(ASKED["now"]).replace(tzinfo=BERLIN)
MONTHS_NOW = datetime.fromisoformat(MONTHS["now"]).replace(tzinfo=BERLIN)
BLIND_GROUPS: dict[str, list[dict[str, Any]]] = {}
for blind_case in [*BLIND["cases"], *UNSEEN["cases"]]:
    BLIND_GROUPS.setdefault(blind_case["group"], []).append(blind_case)


def outcome(text: str, now: datetime, zone: ZoneInfo) -> list[Reading] | TimeRefused:
    try:
        return read_times(text, now, zone)
    except TimeRefused as refusal:
        return refusal


def minutes(readings: list[Reading] | TimeRefused) -> list[str] | str:
    """The local times of readings, or `refused`."""
    if isinstance(readings, TimeRefused):
        return "refused"
    return [f"{reading.due:%Y-%m-%d %H:%M}" for reading in readings]


def last_time(reading: Reading, zone: ZoneInfo) -> str | None:
    """The last time of a series, None for one without an end."""
    moment = reading.due
    for _ in range(400):
        try:
            moment = next_time_after(str(reading.repeat), moment, zone, since=reading.due)
        except InvalidInput:
            return f"{moment:%Y-%m-%d %H:%M}"
    return None


@pytest.mark.parametrize("group", PHRASES["groups"])
def test_phrases_written_before_the_grammar_are_read_as_meant(group: str) -> None:
    read_wrong = {}
    for text, expected in PHRASES["groups"][group]:
        readings = outcome(text, NOW, SHANGHAI)
        if not is_as_written(readings, expected):
            read_wrong[text] = readings
    assert read_wrong == {}


def is_as_written(readings: list[Reading] | TimeRefused, expected: Any) -> bool:
    """Whether readings are those that `phrases.json` expects.

    expected: a time, `refused`, a list of times, or the first and the last time of a series.
    """
    if isinstance(expected, dict):
        if minutes(readings) != [expected["due"]] or isinstance(readings, TimeRefused):
            return False
        return last_time(readings[0], SHANGHAI) == expected["last"]
    if expected[:2] == "20":
        return minutes(readings) == [expected]
    return minutes(readings) == expected


@pytest.mark.parametrize("group", BLIND_GROUPS)
def test_phrases_of_the_blind_set_are_never_read_wrong(group: str) -> None:
    read_wrong = {}
    for case in BLIND_GROUPS[group]:
        readings = outcome(case["text"], BLIND_NOW, BERLIN)
        if not is_allowed(readings, case):
            read_wrong[case["id"], case["text"]] = readings
    assert read_wrong == {}


def is_allowed(readings: list[Reading] | TimeRefused, case: dict[str, Any]) -> bool:
    """Whether readings are among those that a case of the blind set allows."""
    if isinstance(readings, TimeRefused):
        return case["expect"] == "refused" or bool(case.get("or_refused"))
    allowed = case.get("alternatives", [])
    if case["expect"] != "refused":
        allowed = [case["expect"], *allowed]
    times_allowed = [sorted(row["at"] for row in rows) for rows in allowed]
    times = sorted(f"{reading.due:%Y-%m-%dT%H:%M}" for reading in readings)
    if times not in times_allowed:
        return False
    if any(bool(reading.repeat) != ("series" in case) for reading in readings):
        return False
    if "last" not in case:
        return True
    last_times = {str(last_time(reading, BERLIN)) for reading in readings}
    return last_times == {moment.replace("T", " ") for moment in case["last"]}


@pytest.mark.parametrize("group", FURTHER["groups"])
def test_phrases_of_a_kind_found_on_the_way_are_read_as_meant(group: str) -> None:
    read_wrong = {}
    for text, expected in FURTHER["groups"][group]:
        times = times_and_rules(outcome(text, BLIND_NOW, BERLIN))
        if times != expected:
            read_wrong[text] = times
    assert read_wrong == {}


@pytest.mark.parametrize("group", EVERYDAY["groups"])
def test_everyday_phrases_are_read_as_meant(group: str) -> None:
    read_wrong = {}
    for text, expected in EVERYDAY["groups"][group]:
        times = times_and_rules(outcome(text, BLIND_NOW, BERLIN))
        if times != expected:
            read_wrong[text] = times
    assert read_wrong == {}


@pytest.mark.parametrize("group", MONTHS["groups"])
def test_series_of_certain_months_are_read_as_meant_or_refused(group: str) -> None:
    read_wrong = {}
    for text, expected in MONTHS["groups"][group]:
        times = times_and_rules(outcome(text, MONTHS_NOW, BERLIN))
        if times != expected:
            read_wrong[text] = times
    assert read_wrong == {}


def times_and_rules(readings: list[Reading] | TimeRefused) -> list[str] | str:
    """The local times of readings and then the rules of those that repeat, or `refused`."""
    if isinstance(readings, TimeRefused):
        return "refused"
    times = [f"{reading.due:%Y-%m-%d %H:%M}" for reading in readings]
    rules = [reading.repeat for reading in readings if reading.repeat]
    return [*times, *rules]


@pytest.mark.parametrize("group", ASKED["groups"])
def test_what_people_ask_an_agent_is_read_as_meant_or_refused(group: str) -> None:
    read_wrong = {}
    for text, expected in ASKED["groups"][group]:
        readings = outcome(text, ASKED_NOW, BERLIN)
        times = "no time" if isinstance(readings, NoTime) else times_and_rules(readings)
        if times != expected:
            read_wrong[text] = times
    assert read_wrong == {}


@pytest.mark.parametrize(
    ("group", "phrase"),
    [
        ("before a day", "call Bob {} 20 May"),
        ("before a day", "call Bob {} Friday at 3pm"),
        ("before the name of a weekday", "call Bob {} Friday at 3pm"),
        ("after a day", "call Bob on Friday {}"),
        ("after a day", "call Bob at 3pm on Friday {}"),
        ("before a Chinese day", "{}周五下午三点打电话"),
        ("before a Chinese day", "{}5月20日打电话"),
        ("before the name of a Chinese weekday", "{}周五打电话"),
        ("after a Chinese day", "周五{}打电话"),
        ("after a Chinese day", "5月20日{}打电话"),
        ("before the name of a weekday", "call Bob {} Good Friday at 3pm"),
        ("before the name of a weekday", "call Bob {} Friday before Christmas"),
        ("after a day", "call Bob on Christmas Eve {}"),
        ("before a Chinese day", "{}圣诞节下午三点打电话"),
        ("before a Chinese day", "{}正月初五打电话"),
        ("after a day", "an hour before my 3pm meeting on Friday {}"),
    ],
)
def test_a_word_that_changes_the_time_beside_it_is_never_read_over(group: str, phrase: str) -> None:
    read_over = {}
    for word in CHANGING_WORDS[group]:
        text = phrase.format(word)
        readings = outcome(text, NOW, SHANGHAI)
        if not isinstance(readings, TimeRefused):
            read_over[text] = minutes(readings)
    assert read_over == {}


DAYS = {
    "tomorrow": "2026-05-07",
    "on Friday": "2026-05-08",
    "on 20 May": "2026-05-20",
    "on the 15th": "2026-05-15",
    "next Tuesday": "2026-05-12",
    "on 2026-06-01": "2026-06-01",
}
CLOCKS = {
    "at 3pm": "15:00",
    "at 9:30 am": "09:30",
    "at noon": "12:00",
    "at quarter past 4 pm": "16:15",
    "at 18:45": "18:45",
}
SUBJECTS = ["call Bob", "buy milk and bread", "send Lena the slides", "water the plants"]
CHINESE_DAYS = {"明天": "2026-05-07", "周五": "2026-05-08", "5月20日": "2026-05-20"}
CHINESE_CLOCKS = {"下午3点": "15:00", "早上9点半": "09:30", "18:45": "18:45"}
CHINESE_SUBJECTS = ["给妈妈打电话", "买牛奶", "交报告"]


@given(st.sampled_from([*DAYS]), st.sampled_from([*CLOCKS]), st.sampled_from(SUBJECTS), st.data())
def test_day_clock_and_subject_say_the_same_in_any_order(day, clock, subject, data):
    pieces = data.draw(st.permutations([day, clock, subject]))
    comma = data.draw(st.sampled_from([" ", ", "]))
    assert minutes(outcome(comma.join(pieces), NOW, SHANGHAI)) == [f"{DAYS[day]} {CLOCKS[clock]}"]


@given(
    st.sampled_from([*CHINESE_DAYS]),
    st.sampled_from([*CHINESE_CLOCKS]),
    st.sampled_from(CHINESE_SUBJECTS),
    st.data(),
)
def test_day_clock_and_subject_say_the_same_in_any_order_in_chinese(day, clock, subject, data):
    pieces = data.draw(st.permutations([day, clock, subject]))
    expected = f"{CHINESE_DAYS[day]} {CHINESE_CLOCKS[clock]}"
    assert minutes(outcome("，".join(pieces), NOW, SHANGHAI)) == [expected]


TIMES = [f"{day} {subject} {clock}" for day, clock, subject in product(DAYS, CLOCKS, SUBJECTS[:2])]
UNKNOWN = (
    "morgen",
    "demain",
    "mañana",
    "завтра",
    "Freitag",
    "fortnightly",
    "biweekly",
    "tommorow",
    "wendesday",
    "until Christmas",
    "every quarter",
    "yesterday",
    "3 days later",
    "half seven",
    "7pm-ish",
    "twice a week",
    "不是周一",
    "农历",
    "每隔三天",
    "下旬",
)


@given(st.sampled_from(TIMES), st.sampled_from(UNKNOWN), st.booleans())
def test_one_more_time_word_never_changes_a_reading_silently(text, word, is_first):
    whole = f"{word}, {text}" if is_first else f"{text}, {word}"
    assert minutes(outcome(whole, NOW, SHANGHAI)) in (
        "refused",
        minutes(outcome(text, NOW, SHANGHAI)),
    )


@given(st.sampled_from([*CLOCKS]), st.sampled_from(["morgen", "demain", "tommorow", "来週"]))
def test_a_day_nobody_can_read_never_becomes_today(clock, day):
    assert minutes(outcome(f"{day} {clock}", NOW, SHANGHAI)) == "refused"


def test_the_words_that_were_left_are_named():
    refusal = outcome("Call with Jens morgen 3pm", NOW, SHANGHAI)
    assert '"morgen" was not used; say it in other words' in str(refusal)


def test_a_text_without_any_time_word_is_refused_as_such():
    assert isinstance(outcome("buy milk", NOW, SHANGHAI), NoTime)
