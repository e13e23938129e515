"""Readers of the shapes that name repetitions, such as "every Monday".

A reader gets the match of a shape and the character before it, and returns what the words mean.
`day_readers` has those that name days.
"""

from __future__ import annotations

import re
from fractions import Fraction

from memoranda.note.timephrase.day_readers import (
    UNCLEAR,
    WRONG,
    Meanings,
    Reader,
    interval_of,
)
from memoranda.note.timephrase.numbers import number, read_whole_number
from memoranda.note.timephrase.values import Meaning, MonthLimit, PossibleRepetition, Repetition
from memoranda.note.timephrase.words import table, units

WORKDAYS = (0, 1, 2, 3, 4)
WEEKEND_DAYS = (5, 6)
_SATURDAY = 5
_PARTS_OF_DAY = {"早": "morning", "晚": "night"}
# The last day of a month, as a day of the month.
_LAST_DAY = -1


def read_yearly(match: re.Match[str], before: str) -> Meanings:
    """Read "every" before a date, as in "every May 7". The date is read as a separate time word."""
    return [Meaning("repeat", Repetition("year"))]


def _weekly(interval: Fraction, weekdays: list[int], *, is_range: bool) -> Repetition:
    """Make a repetition on some weekdays.

    interval: 2 for every other week.
    weekdays: 0 for Monday.
    is_range: whether the first two are the ends of a range: Monday to Friday.
    """
    if is_range and len(weekdays) >= 2:
        weekdays = [*weekdays, *days_between(weekdays[0], weekdays[1])]
    return Repetition("week", interval, tuple(sorted(set(weekdays))))


def days_between(first: int, last: int) -> list[int]:
    """Return the weekdays from `first` to `last`: [5, 6, 0] for Saturday to Monday."""
    return [(first + step) % 7 for step in range((last - first) % 7 + 1)]


def read_repeat_days(match: re.Match[str], before: str) -> Meanings:
    """Read a repetition on weekdays: "every Monday and Thursday", "on Tuesdays".

    A bare "Mondays" is weak: "Mondays are hard" says no time.

    match: the match of the shape. It has only the groups of the wording that matched.
    before: the character before the match. It does not matter here.
    """
    groups = match.groupdict()
    gap = (groups.get("gap") or "").strip()
    names = table("english.weekdays")
    words = re.findall(r"[a-z]+", match["days"])
    weekdays: list[int] = []
    for word in words:
        # "Mondays" is the plural of "Monday".
        weekday = names.get(word, names.get(word.removesuffix("s")))
        if weekday is not None:
            weekdays.append(weekday)
    is_range = "-" in match["days"] or "to" in words or "through" in words
    if gap in ("second", "2nd"):
        return _every_second_weekday(match["days"], weekdays)
    repetition = _weekly(interval_of(match), weekdays, is_range=is_range)
    # Only the wording with a plural ("on Mondays") has the group `on`.
    is_bare_plural = "on" in groups and groups["on"] is None
    return [Meaning("repeat", repetition, is_weak=is_bare_plural)]


def _every_second_weekday(words: str, weekdays: list[int]) -> Meanings:
    """Read "every second Tuesday": every other one, or the second one of each month.

    words: the words of the weekdays.
    weekdays: 0 for Monday.
    """
    # No rule has the second Tuesday and the second Friday of a month.
    if len(weekdays) != 1:
        return UNCLEAR
    days = tuple(weekdays)
    name = words.strip().capitalize()
    fortnightly = Repetition("week", Fraction(2), days)
    monthly = Repetition("month", days=days, nth=2)
    possible = (
        PossibleRepetition(f"every other {name}", fortnightly),
        PossibleRepetition(f"every second {name} of the month", monthly),
    )
    return [Meaning("unclear", possible)]


def read_repeat_zh_week(match: re.Match[str], before: str) -> Meanings:
    """Read a repetition on weekdays in Chinese: 每周一三五, 隔周周五, 每周末."""
    has_several = match["count"] and match["count"] not in ("一", "1")
    if match["alternate"]:
        # 隔周, every other week.
        interval = Fraction(2)
    elif match["gap"] and has_several:
        weekly = Repetition("week", days=_weekdays_zh(match))
        return _with_gap(weekly, number(match["count"]), "周")
    else:
        interval = interval_of(match)
    return [Meaning("repeat", Repetition("week", interval, _weekdays_zh(match)))]


def _weekdays_zh(match: re.Match[str]) -> tuple[int, ...]:
    """Return the weekdays that a Chinese repetition names: (0, 2) for 周一三, (5,) for 周末."""
    if match["weekend"]:
        return (_SATURDAY,)
    names = table("chinese.weekdays")
    spelled = re.sub("周|星期|礼拜", "", match["days"])
    weekdays = [names[char] for char in spelled if char in names]
    is_range = any(sign in spelled for sign in "至到-")
    return _weekly(Fraction(1), weekdays, is_range=is_range).days


def _with_gap(repetition: Repetition, count: Fraction, unit: str) -> Meanings:
    """Read an unclear repetition with 隔: 每隔两周 is every second or every third week.

    repetition: the repetition with any interval.
    count: the number that is named with 隔.
    unit: the unit as it is spelled, such as 周.
    """
    # 每隔一小时 is every hour or every second one, 每隔两天 every second or every third day.
    possible = [
        PossibleRepetition(f"每{interval}{unit}", repetition._replace(interval=interval))
        for interval in (count, count + 1)
    ]
    return [Meaning("unclear", tuple(possible))]


def read_repeat_monthly(match: re.Match[str], before: str) -> Meanings:
    """Read days of every month: "every month on the 1st and 15th", 每月5号."""
    groups = match.groupdict()
    interval = interval_of(match)
    if match["last"]:
        days = [_LAST_DAY]
    elif groups.get("first"):
        days = [1]
    else:
        numbers = re.findall(r"[0-9零〇一二两三四五六七八九十]+", match["list"])
        days = sorted({read_whole_number(number) for number in numbers})
    if not all(1 <= day <= 31 or day == _LAST_DAY for day in days):
        return WRONG
    return [Meaning("repeat", Repetition("month", interval, monthdays=tuple(days)))]


def read_repeat_adverb(match: re.Match[str], before: str) -> Meanings:
    """Read "weekly", "fortnightly", "nightly". The last one also names a part of the day."""
    count, unit, day_part = table("english.adverbs")[match["adverb"]]
    repetition = Meaning("repeat", Repetition(unit, Fraction(count)))
    if day_part:
        return [repetition, Meaning("part", day_part)]
    return [repetition]


def read_repeat_workdays(match: re.Match[str], before: str) -> Meanings:
    """Read "every weekday", 工作日. The bare noun is weak: "weekdays are busy"."""
    # No rule of ours says "every other weekday"
    if match.groupdict().get("gap"):
        return []
    is_bare = match[0] in ("weekdays", "workdays", "工作日")
    return [Meaning("repeat", Repetition("week", days=WORKDAYS), is_weak=is_bare)]


# The days of "weekday mornings".
_GROUPS_OF_DAYS = {"weekday": WORKDAYS, "weekend": WEEKEND_DAYS}


def read_repeat_parts(match: re.Match[str], before: str) -> Meanings:
    """Read parts of certain days: "weekday mornings", "Tuesday and Thursday evenings".

    They are weak, as "I hate Monday mornings" says no time.
    """
    names = table("english.weekdays")
    words = re.findall(r"[a-z]+", match["days"])
    days = _GROUPS_OF_DAYS.get(words[0]) or sorted({names[word] for word in words if word in names})
    repetition = Repetition("week", days=tuple(days))
    part = table("english.parts")[match["part"]]
    return [Meaning("repeat", repetition, is_weak=True), Meaning("part", part, is_weak=True)]


_COUNTS = {"once": 1, "twice": 2, "thrice": 3}


def read_per_day(match: re.Match[str], before: str) -> Meanings:
    """Read how often a day something comes: "twice a day", 每天两次. The text must name as many clocks."""
    spelled = match["count"] or match["zcount"]
    count = _COUNTS.get(match["word"]) or read_whole_number(spelled)
    return [Meaning("repeat", Repetition("day")), Meaning("per_day", count)]


def read_repeat_weekends(match: re.Match[str], before: str) -> Meanings:
    """Read "on weekends", which means both days. "every weekend" means one time in a weekend."""
    return [Meaning("repeat", Repetition("week", days=WEEKEND_DAYS))]


def read_repeat_unit(match: re.Match[str], before: str) -> Meanings:
    """Read a repetition with a unit: "every day", "every 3 hours", "every morning"."""
    unit = match["unit"]
    interval = interval_of(match)
    part = table("english.parts").get(unit)
    if part:
        return [Meaning("repeat", Repetition("day", interval)), Meaning("part", part)]
    if unit == "weekend":
        return [Meaning("repeat", Repetition("week", interval, (_SATURDAY,)))]
    if unit.startswith("half"):
        return [Meaning("repeat", Repetition("minute", 30 * interval))]
    # "second" alone is not a unit of an amount.
    name = units().get(unit, unit)
    if name == "fortnight":
        return [Meaning("repeat", Repetition("week", 2 * interval))]
    return [Meaning("repeat", Repetition(name, interval))]


def read_repeat_zh_unit(match: re.Match[str], before: str) -> Meanings:
    """Read a repetition with a Chinese unit: 每天, 每3小时, 隔天, 每晚, 每年年底."""
    if match["year_end"]:
        return [Meaning("repeat", Repetition("year", months=(12,), monthdays=(31,)))]
    if match["alternate"]:
        # 隔天, every other day.
        return [Meaning("repeat", Repetition("day", Fraction(2)))]
    if match["daily"]:
        return [Meaning("repeat", Repetition("day"))]
    if match["gap"] and _is_gap_unclear(match):
        repetition = Repetition(units()[match["unit"]])
        return _with_gap(repetition, number(match["count"] or "一"), match["unit"])

    unit = match["unit"]
    interval = interval_of(match)
    if unit == "工作日":
        # No rule of ours says "every third working day".
        if interval != 1:
            return []
        return [Meaning("repeat", Repetition("week", interval, WORKDAYS))]
    part = _PARTS_OF_DAY.get(unit)
    if part:
        return [Meaning("repeat", Repetition("day", interval)), Meaning("part", part)]
    return [Meaning("repeat", Repetition(units()[unit], interval))]


def _is_gap_unclear(match: re.Match[str]) -> bool:
    """Whether a repetition with 隔, which leaves some units out, may mean two intervals.

    每隔两天 is every second or every third day, but 每隔一天 is every second one. With hours it is the
    reverse: 每隔一小时 is every hour or every other one, but 每隔两小时 is every two hours.
    """
    counts_hours = match["unit"] in ("小时", "钟头", "分钟", "秒钟", "秒", "刻钟")
    is_single = match["count"] in (None, "一", "1")
    return is_single if counts_hours else not is_single


_ALL_MONTHS = range(1, 13)
_WORDS_OF_RANGE = ("to", "through", "thru", "until", "till", "-", "–", "—", "~", "到", "至")


def read_only_months(match: re.Match[str], before: str) -> Meanings:
    """Read the only months of a series: "only in June and July", 每年九月到次年六月.

    They are weak, as a text without a repetition may say anything of a month.
    """
    return [Meaning("month_limit", MonthLimit(_months(match)), is_weak=True)]


def read_except_months(match: re.Match[str], before: str) -> Meanings:
    """Read the months that a series leaves out: "except in August", 七八月除外.

    They are weak, as a text without a repetition may say anything of a month.
    """
    excepted = _months(match)
    months = tuple(month for month in _ALL_MONTHS if month not in excepted)
    return [Meaning("month_limit", MonthLimit(months), is_weak=True)]


def _months(match: re.Match[str]) -> tuple[int, ...]:
    """Return the months of a list or range in order. June to August is (6, 7, 8).

    Raises ValueError for a month that does not exist.

    match: the match of a shape, with the list in one of its groups.
    """
    groups = match.groupdict()
    spelled = groups["zlist"]
    if spelled:
        words = re.findall(r"\d+|[零〇一二两三四五六七八九十]+|[-–—~到至]", spelled)
    else:
        names = ("list", "list2", "list3", "list4")
        spelled = next(groups[name] for name in names if groups.get(name))
        words = re.findall(r"[a-z]+|[-–—~]", spelled)
    # "between June and August" is a range.
    is_between = words[0] == "between"
    months: list[int] = []
    is_range = False
    for word in words:
        if word in _WORDS_OF_RANGE or (is_between and word == "and"):
            is_range = True
            continue
        named_months = _months_named(word)
        if is_range and named_months:
            months += _months_between(months[-1], named_months[0])
        months += named_months
        is_range = is_range and not named_months
    if not months or not all(month in _ALL_MONTHS for month in months):
        raise ValueError(spelled)
    return tuple(sorted(set(months)))


def _months_named(word: str) -> list[int]:
    """Return the months that one word names: 8 for "August", 7 and 8 for 七八. Empty for others."""
    names = table("english.months")
    if word in names:
        return [names[word]]
    if word.isascii() and not word.isdigit():
        return []
    # 七八 is July and August, 十一二 November and December.
    if len(word) > 1 and not word.isascii() and "十" not in word:
        return [read_whole_number(digit) for digit in word]
    if len(word) == len("十一二") and word[0] == "十":
        return [read_whole_number(f"十{digit}") for digit in word[1:]]
    return [read_whole_number(word)]


def _months_between(first: int, last: int) -> list[int]:
    """Return the months from `first` to `last`: [11, 12, 1] for November to January."""
    return [(first - 1 + step) % 12 + 1 for step in range((last - first) % 12 + 1)]


def read_times(match: re.Match[str], before: str) -> Meanings:
    """Read how often a series comes: "5 times", 共五次. It is weak, as it may be about anything."""
    return [Meaning("times", read_whole_number(match["count"] or match["zcount"]), is_weak=True)]


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
    "repeat_parts": read_repeat_parts,
    "per_day": read_per_day,
    "times": read_times,
    "only_months": read_only_months,
    "except_months": read_except_months,
}
