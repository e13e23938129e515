"""Readers of the shapes that name repetitions (see day_readers)."""

from __future__ import annotations

import re
from fractions import Fraction

from memoranda.note.timephrase.day_readers import (
    UNCLEAR,
    WRONG,
    Reader,
    Values,
    interval_of,
)
from memoranda.note.timephrase.numbers import read_whole_number
from memoranda.note.timephrase.values import Repetition
from memoranda.note.timephrase.words import table, units

WORKDAYS = (0, 1, 2, 3, 4)
WEEKEND_DAYS = (5, 6)
_LAST = -1


def read_yearly(match: re.Match[str], before: str) -> Values:
    return [("repeat", Repetition("year"))]


def _weekly(match: re.Match[str], days: list[int], is_range: bool) -> Values:
    if len(days) >= 2 and is_range:
        days = [*days, *days_between(days[0], days[1])]
    return [("repeat", Repetition("week", interval_of(match), tuple(sorted(set(days)))))]


def days_between(first: int, last: int) -> list[int]:
    """The weekdays from `first` to `last`, round the end of the week where need be."""
    return [(first + step) % 7 for step in range((last - first) % 7 + 1)]


def read_repeat_days(match: re.Match[str], before: str) -> Values:
    """Every Monday and Thursday; on Tuesdays."""
    gap = match.groupdict().get("gap") or ""
    if gap.strip() == "second" or gap.strip() == "2nd":
        # Every other one, or the second of the month
        return UNCLEAR
    names = table("english.weekdays")
    days = []
    words = re.findall(r"[a-z]+", match["days"])
    for word in words:
        day = names.get(word, names.get(word.removesuffix("s")))
        if day is not None:
            days.append(day)
    is_range = "-" in match["days"] or not {"to", "through"}.isdisjoint(words)
    values = _weekly(match, days, is_range)
    is_bare = "on" in match.groupdict() and match["on"] is None
    # "Mondays are hard" says no time
    if is_bare:
        return [("repeat?", value) for _, value in values]
    return values


def read_repeat_zh_week(match: re.Match[str], before: str) -> Values:
    if match["alternate"]:
        interval = Fraction(2)
    elif match["gap"] and match["count"] and match["count"] not in ("一", "1"):
        return UNCLEAR
    else:
        interval = interval_of(match)
    if match["weekend"]:
        return [("repeat", Repetition("week", interval, (5,)))]
    names = table("chinese.weekdays")
    spelled = re.sub("周|星期|礼拜", "", match["days"])
    days = [names[char] for char in spelled if char in names]
    if len(days) >= 2 and any(char in spelled for char in "至到-"):
        days = [*days, *days_between(days[0], days[1])]
    return [("repeat", Repetition("week", interval, tuple(sorted(set(days)))))]


def read_repeat_monthly(match: re.Match[str], before: str) -> Values:
    groups = match.groupdict()
    interval = interval_of(match)
    if match["last"]:
        days = [_LAST]
    elif groups.get("first"):
        days = [1]
    else:
        numbers = re.findall(r"[0-9零〇一二两三四五六七八九十]+", match["list"])
        days = sorted({read_whole_number(number) for number in numbers})
    if not all(1 <= day <= 31 or day == _LAST for day in days):
        return WRONG
    return [("repeat", Repetition("month", interval, monthdays=tuple(days)))]


def read_repeat_adverb(match: re.Match[str], before: str) -> Values:
    count, unit, part = table("english.adverbs")[match["adverb"]]
    values: Values = [("repeat", Repetition(unit, Fraction(count)))]
    if part:
        return [*values, ("part", part)]
    return values


def read_repeat_workdays(match: re.Match[str], before: str) -> Values:
    """Every weekday. The bare noun is weak: "weekdays are busy"."""
    if match.groupdict().get("gap"):
        return []
    is_bare = match[0] in ("weekdays", "workdays", "工作日")
    return [("repeat?" if is_bare else "repeat", Repetition("week", Fraction(1), WORKDAYS))]


def read_repeat_weekends(match: re.Match[str], before: str) -> Values:
    return [("repeat", Repetition("week", Fraction(1), WEEKEND_DAYS))]


def read_repeat_unit(match: re.Match[str], before: str) -> Values:
    """Every day, every 3 hours, every other week, every morning."""
    unit = match["unit"]
    interval = interval_of(match)
    part = table("english.parts").get(unit)
    if part:
        return [("repeat", Repetition("day", interval)), ("part", part)]
    if unit == "weekend":
        return [("repeat", Repetition("week", interval, (5,)))]
    if unit.startswith("half"):
        return [("repeat", Repetition("minute", 30 * interval))]
    # "second" alone is not a unit of an amount.
    name = units().get(unit, unit)
    if name == "fortnight":
        return [("repeat", Repetition("week", 2 * interval))]
    return [("repeat", Repetition(name, interval))]


def read_repeat_zh_unit(match: re.Match[str], before: str) -> Values:
    if match["year_end"]:
        return [("repeat", Repetition("year", months=(12,), monthdays=(31,)))]
    if match["alternate"] or match["daily"]:
        return [("repeat", Repetition("day", Fraction(2 if match["alternate"] else 1)))]
    unit = match["unit"]
    is_time = unit in ("小时", "钟头", "分钟", "秒钟", "秒", "刻钟")
    is_single = match["count"] in (None, "一", "1")
    if match["gap"] and is_time == is_single:
        # 每隔两天 is every second or every third day, 每隔一小时 every hour or every other one
        return UNCLEAR
    interval = interval_of(match)
    if unit == "工作日":
        if interval != 1:
            return []
        return [("repeat", Repetition("week", interval, WORKDAYS))]
    if unit in "早晚":
        if unit == "早":
            part = "morning"
        else:
            part = "night"
        return [("repeat", Repetition("day", interval)), ("part", part)]
    return [("repeat", Repetition(units()[unit], interval))]


def read_times(match: re.Match[str], before: str) -> Values:
    """How often a series comes: "5 times", 共五次. Weak, as it may be about anything."""
    return [("times?", read_whole_number(match["count"] or match["zcount"]))]


READERS: dict[str, Reader] = {
    "repeat_yearly": read_yearly,
    "repeat_days": read_repeat_days,
    "repeat_zh_week": read_repeat_zh_week,
    "repeat_monthly": read_repeat_monthly,
    "repeat_adverb": read_repeat_adverb,
    "repeat_workdays": read_repeat_workdays,
    "repeat_weekends": read_repeat_weekends,
    "repeat_unit": read_repeat_unit,
    "repeat_zh_unit": read_repeat_zh_unit,
    "times": read_times,
}
