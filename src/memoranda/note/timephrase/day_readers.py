"""Readers of the shapes that name days, distances in time and zones.

A shape of shapes.toml has matched a piece of text. Its reader turns the match into meanings:
"next Friday" becomes `[Meaning("weekday", Weekday(weeks=1, day=4, is_english_next=True))]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any
from zoneinfo import available_timezones

from memoranda.note.timephrase.days import LAST_LUNAR_MONTH_OF_YEAR
from memoranda.note.timephrase.numbers import HALF, number, read_whole_number, whole_or_none
from memoranda.note.timephrase.values import (
    UNIT_SECONDS,
    CalendarDate,
    Delay,
    Easter,
    Edge,
    LunarDate,
    Meaning,
    Month,
    MonthEdge,
    NthWeekday,
    Repetition,
    Span,
    Weekday,
    WeekdayFrom,
    Weekend,
)
from memoranda.note.timephrase.words import compiled, table, units

Meanings = list[Meaning]
"""The meanings of one match. Empty if a closer look shows that it names no time.

Two meanings share one place: "tonight" is a day and a part of the day.
"""
Reader = Callable[[re.Match[str], str], Meanings]
"""A function of the match and of the character before it.

That character is "" if the time word before ends right there. A reader raises ValueError if the
match names no time.
"""
WRONG: Meanings = [Meaning("wrong", value=None)]
"""A time word with a value that does not exist, such as 25:00."""
UNCLEAR: Meanings = [Meaning("unclear", value=None)]
"""A time word with two meanings, such as "every second Tuesday"."""


def named_value(match: re.Match[str], name: str) -> Any:
    """Look up the matched words in a table of words.toml.

    name: the table, e.g. `days`, or `holidays` of holidays.toml. It is looked up in the language of
        the words: the group `words` holds English ones, `zwords` Chinese ones.
    """
    language = "english" if match["words"] else "chinese"
    words = " ".join((match["words"] or match["zwords"]).split())
    if name == "holidays":
        return table(f"holidays.{language}")[words]
    return table(f"{language}.{name}")[words]


_RELATIVE = {"this": 0, "next": 1, "last": -1}


def periods_ahead(spelled: str | None) -> int | None:
    """Return how many calendar weeks or months ahead the words point, e.g. "next" and 下个 1.

    None if the words do not say, as in "the Friday" or "the coming Friday".
    """
    spelled = (spelled or "").strip()
    if not spelled or spelled.endswith("the") or spelled == "coming":
        return None
    # Each 下 is one week on, each 上 one back: 下下周 is the week after next
    chinese_offset = spelled.count("下") - spelled.count("上")
    return _RELATIVE.get(spelled, chinese_offset)


def read_vague(match: re.Match[str], before: str) -> Meanings:
    """Read words without a definite time: "soon", "in a few days"."""
    return [Meaning("vague", value=None)]


def read_day_part(match: re.Match[str], before: str) -> Meanings:
    """Read a word for a day and a part of it: "tonight" is today, in the night."""
    days_ahead, part = named_value(match, "day_parts")
    return [Meaning("day", days_ahead), Meaning("part", part)]


def read_weekend(match: re.Match[str], before: str) -> Meanings:
    """Read a weekend: "next weekend", 这周末."""
    weekend = Weekend(periods_ahead(match["which"]), is_english_next=match["which"] == "next")
    return [Meaning("weekend", weekend)]


def read_instant(match: re.Match[str], before: str) -> Meanings:
    """Read a moment as ISO 8601 writes it: 2026-05-07T10:00Z."""
    offset = (match["offset"] or "").upper()
    clock = match["clock"] or match["local"]
    try:
        return [Meaning("instant", datetime.fromisoformat(f"{match['date']}T{clock}{offset}"))]
    except ValueError:
        return WRONG


_DAYS_OF = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS_OF = {"month": 1, "year": 12}
# How long each unit is, to compare them. A month is taken as 30 days.
_SECONDS_OF = {
    **UNIT_SECONDS,
    **{unit: days * 86_400 for unit, days in _DAYS_OF.items()},
    **{unit: months * 30 * 86_400 for unit, months in _MONTHS_OF.items()},
}
# Between two amounts: "1 hour and 30 minutes".
_SEPARATOR = re.compile(r"\s*(?:,\s*)?(?:and\s+|[零又])?\s*")
# "two hours and a half".
_FINAL_FRACTION = r"(?<=[a-z])\s+and\s+(?P<fraction><english.fractions>)\Z"
_WORDED_AMOUNTS = (
    (re.compile(r"^half\s+(?:of\s+)?an?\s+"), "0.5 "),
    (re.compile(r"^(?:a\s+)?quarter(?:\s+of\s+an|-)?\s*hour"), "15 minutes"),
    (re.compile(r"^three\s+quarters\s+of\s+an\s+hour"), "45 minutes"),
    (re.compile(r"^(?:a\s+)?half[\s-]hour"), "30 minutes"),
    (re.compile(r"^(?:the\s+)?day$"), "1 day"),
)


def read_distance(match: re.Match[str], before: str) -> Meanings:
    """Read a delay from now ("in 2 hours", 3天后) or a distance from a named time ("a week from").

    match: the match of the shape. It has only the groups of the wording that matched.
    before: the character before the match. It does not matter here.
    """
    groups = match.groupdict()
    # Only the Chinese wording has the group `over`.
    is_chinese = "over" in groups
    if is_chinese:
        # 3天 is a distance only with 过 before it, or with 后 or 前 behind it.
        has_direction = groups["over"] or groups["after"] or groups["ago"]
        if not has_direction:
            return []
    amount = read_amount(match["amount"])
    is_backwards = groups.get("ago") or groups.get("way") not in (None, "from", "after")
    if is_backwards:
        amount = _backwards(amount)

    # "a week from" needs the time that comes next. "in 0 days" is not a delay.
    if "way" in groups:
        return [Meaning("offset", amount)]
    if any(amount):
        return [Meaning("delay", amount)]
    return WRONG


def _backwards(amount: Delay) -> Delay:
    """Return the same distance into the past."""
    return Delay(-amount.months, -amount.days, -amount.seconds)


def read_weekday_from(match: re.Match[str], before: str) -> Meanings:
    """Read a weekday counted from a day that follows: "the Friday before" Christmas."""
    weekday = table("english.weekdays")[match["day"]]
    return [Meaning("offset", WeekdayFrom(weekday, is_before=match["way"] == "before"))]


def read_offset_zh(match: re.Match[str], before: str) -> Meanings:
    """Read a distance from a time in Chinese: 圣诞节前十天, 提前半小时提醒我, 会议前一小时提醒我.

    Right behind a day, it must be a holiday, or a reminder that is asked for: 周五前两天 alone may also
    be the first two days. An event must have its time right before it, or be named again with it.

    match: the match of the shape. It has only the groups of the wording that matched.
    before: the character before the match. "" right behind another time word.
    """
    text_before = match.string[: match.start("way")]
    asks_to_be_reminded = match.groupdict().get("reminds") is not None
    is_behind_time = asks_to_be_reminded and match.start() > 0 and not before
    is_behind_holiday = text_before.endswith(tuple(table("holidays.chinese")))
    is_early_reminder = match[0].startswith("提")
    has_event = asks_to_be_reminded and _has_event_with_time(match.string, text_before)
    if not (is_early_reminder or is_behind_time or is_behind_holiday or has_event):
        return []
    amount = read_amount(match["amount"])
    if match["way"] == "前":
        amount = _backwards(amount)
    return [Meaning("offset", amount)]


# A clock, and the event at this time: 下午三点的会议.
_EVENT_BEHIND_CLOCK = re.compile(r"[点半刻分0-9]的[\u4e00-\u9fff]{1,4}\Z")


def _has_event_with_time(text: str, text_before: str) -> bool:
    """Whether a text ends with an event whose time the whole text names.

    In 会议前一小时提醒我，会议明天下午三点, it is named again; in 三点的会议前, it has its time before it.

    text_before: the part of `text` that ends with the event.
    """
    if _EVENT_BEHIND_CLOCK.search(text_before):
        return True
    event = text_before[-2:]
    if event[-1:] in ("会", "课"):
        # 会前 is before 开会.
        event = event[-1]
    return bool(event) and text.count(event) > 1


def read_run(match: re.Match[str], before: str) -> Meanings:
    """Read some days in a row: "the next 5 days", 连续七天."""
    return [Meaning("run", Delay(0, read_whole_number(match["count"] or match["zcount"]), 0))]


def read_length(match: re.Match[str], before: str) -> Meanings:
    """Read how long something lasts: "for 5 days", 连续三天."""
    amount = read_amount(match["amount"] or match["zamount"])
    if any(amount):
        return [Meaning("length", amount)]
    return WRONG


def read_amount(amount: str) -> Delay:
    """Read an amount of time: "an hour and a half" is `Delay(0, 0, 5400)`.

    The amount may be a sum: "1 day and 2 hours", 两个半小时. Raises ValueError for any other text, such
    as "2 hours a day".
    """
    # "an hour and a half" is read as "an hour", and the half is added to the last count.
    text = amount.strip()
    final_fraction = compiled(_FINAL_FRACTION).search(text)
    if final_fraction:
        text = text[: final_fraction.start()]
    for pattern, spelling in _WORDED_AMOUNTS:
        text = pattern.sub(spelling, text)
    months = Fraction()
    days = Fraction()
    seconds = Fraction()
    pieces = _pieces(text)
    # In a sum, each unit is smaller than the one before.
    lengths = [_SECONDS_OF[units()[piece["unit"]]] for piece in pieces]
    if any(length <= following for length, following in pairwise(lengths)):
        raise ValueError(text)
    for piece in pieces:
        count = _count(piece)
        if final_fraction and piece is pieces[-1]:
            count += _fraction(final_fraction)
        unit = units()[piece["unit"]]
        if unit in UNIT_SECONDS:
            seconds += count * UNIT_SECONDS[unit]
        elif unit in _DAYS_OF:
            days += count * _DAYS_OF[unit]
            # Half a week is no number of days. "a day and a half" is 36 hours.
            if unit != "day" and days.denominator != 1:
                raise ValueError(text)
        else:
            months += count * _MONTHS_OF[unit]
    return _delay(months, days, seconds, text)


def _pieces(amount: str) -> list[re.Match[str]]:
    """Cut an amount into its pieces, each a number and a unit: "1 day" and "2 hours".

    Raises ValueError for a text that is not such a sum.
    """
    pieces: list[re.Match[str]] = []
    position = 0
    while position < len(amount):
        separator = _SEPARATOR.match(amount, position)
        piece_start = separator.end() if separator else position
        piece = compiled("<piece>").match(amount, piece_start)
        if not piece or piece.end() == position:
            raise ValueError(amount)
        pieces.append(piece)
        position = piece.end()
    return pieces


def _count(piece: re.Match[str]) -> Fraction:
    """Return the number of one piece of an amount: 5/2 for "two and a half" and for 两个半."""
    if piece["half"]:
        count = HALF
    else:
        count = number(piece["count"] or "")
    if piece["plus"]:
        # The 半 of 两个半
        count += HALF
    if piece["fraction"]:
        count += _fraction(piece)
    if piece["more"]:
        # The 半 of 两个半小时
        count += HALF
    return count


def _fraction(match: re.Match[str]) -> Fraction:
    """Return the value of "a half" or "three quarters" at the end of a number."""
    return Fraction(*table("english.fractions")[" ".join(match["fraction"].split())])


def _delay(months: Fraction, days: Fraction, seconds: Fraction, text: str) -> Delay:
    """Make a delay of whole months, days and seconds.

    Half a month becomes 15 days, a fraction of a day becomes seconds. Raises ValueError for other
    fractions, such as a third of a month.
    """
    if months.denominator == 2:
        months -= HALF
        days += 15
    fraction_of_day = days % 1
    seconds += fraction_of_day * 86400
    days -= fraction_of_day
    if months.denominator != 1 or seconds.denominator != 1:
        raise ValueError(text)
    return Delay(int(months), int(days), int(seconds))


def read_workdays(match: re.Match[str], before: str) -> Meanings:
    """Read a delay in working days: "in 3 working days"."""
    return [Meaning("workdays", read_whole_number(match["count"] or "1"))]


# Which one of a month; -1 counts from its end.
_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}


def read_nth_weekday(match: re.Match[str], before: str) -> Meanings:
    """Read a weekday of a month: "the last Friday of June", "every second Tuesday of the month".

    The shape has four alternatives, whose groups are numbered from the second on: `nth`, `nth2`,
    `nth3`, `nth4`. One of them matched.
    """
    # The groups of the alternative that matched, without its number.
    groups = {name.rstrip("234"): text for name, text in match.groupdict().items() if text}
    spelled = groups["nth"]
    if spelled in _NTH:
        nth = _NTH[spelled]
    else:
        # "1st" to "5th"
        nth = int(spelled[0])
    weekday = table("english.weekdays")[groups["day"]]
    if groups.get("every"):
        return [Meaning("repeat", Repetition("month", interval_of(match), (weekday,), nth=nth))]
    periods = periods_ahead(groups.get("which")) or 0
    if groups.get("period") == "year":
        return [Meaning("nth_weekday", _nth_weekday_of_year(nth, weekday, periods))]
    day = NthWeekday(
        nth,
        weekday,
        month=table("english.months").get(groups.get("month")),
        year=whole_or_none(groups.get("y")),
        months_ahead=periods,
    )
    return [Meaning("nth_weekday", day)]


def _nth_weekday_of_year(nth: int, weekday: int, years_ahead: int) -> NthWeekday:
    """Return a weekday that is counted in a year: "the last Friday of the year".

    Raises ValueError for the fifth one, which January may not have.
    """
    if nth > 4:
        raise ValueError(nth)
    month = 12 if nth < 0 else 1
    return NthWeekday(nth, weekday, month, years_ahead=years_ahead)


def read_nth_weekday_zh(match: re.Match[str], before: str) -> Meanings:
    """Read a weekday of a month in Chinese: 下个月第二个周五, 每月最后一个周一."""
    if match["last"]:
        nth = -1
    else:
        nth = read_whole_number(match["nth"])
    weekday = table("chinese.weekdays")[match["day"]]
    if match["every"]:
        return [Meaning("repeat", Repetition("month", interval_of(match), (weekday,), nth=nth))]
    if match["year"]:
        return [Meaning("nth_weekday", _nth_weekday_of_year(nth, weekday, _YEARS[match["year"]]))]
    month = whole_or_none(match["m"])
    if month is not None and not 1 <= month <= 12:
        return WRONG
    day = NthWeekday(nth, weekday, month, months_ahead=periods_ahead(match["which"]) or 0)
    return [Meaning("nth_weekday", day)]


def interval_of(match: re.Match[str]) -> Fraction:
    """Return the interval of a repetition in its units.

    "every week" is 1, "every other week" 2, "every 3 weeks" 3, 每隔一周 2.

    match: the match of a shape. Its group `gap` has the words between "every" and the unit or the
        weekday, such as "other" or "3 weeks on". Its group `count` has the number before a unit.
    """
    groups = match.groupdict()
    gap_words = (groups.get("gap") or "").split()
    count = number(groups.get("count") or "1")
    if not gap_words or gap_words[0] == "week":
        return count
    if gap_words[0] == "隔":
        # 隔一周 leaves one week out; 隔两周 is said for every second one
        return Fraction(2) if count == 1 else count
    if gap_words[0] in ("other", "second"):
        return Fraction(2)
    number_words = [word for word in gap_words if word not in ("weeks", "week", "on")]
    return number(" ".join(number_words))


# How the edge of a month ends that is its beginning: 三月初, 三月的第一天. All other edges are its end.
_MONTH_BEGINNINGS = ("初", "第一天")


def read_date(match: re.Match[str], before: str) -> Meanings:
    """Read a day with its month ("May 7", 2026年5月7日), or the edge of a named month (三月底)."""
    groups = match.groupdict()
    year = whole_or_none(groups["y"])
    if "m" in groups:
        month = read_whole_number(groups["m"])
    else:
        month = table("english.months")[groups["month"]]
    edge = groups.get("edge")
    if not edge:
        if groups.get("d2"):
            day = table("english.ordinals")[groups["d2"]]
        else:
            day = read_whole_number(groups["d"])
        return [Meaning("date", (CalendarDate(year, month, day),))]
    if not 1 <= month <= 12:
        return WRONG
    return [
        Meaning("month_edge", MonthEdge(year, month, is_last=not edge.endswith(_MONTH_BEGINNINGS)))
    ]


def read_date_list(match: re.Match[str], before: str) -> Meanings:
    """Read several days of one month: "3 and 5 December", "March 22 and 29".

    Each is a meaning of its own, and so a reminder of its own.
    """
    month = table("english.months")[match["month"]]
    year = whole_or_none(match["y"])
    days = [int(digits) for digits in re.findall(r"\d+", match["list"])]
    return [Meaning("date", (CalendarDate(year, month, day),)) for day in days]


def read_monthday_list(match: re.Match[str], before: str) -> Meanings:
    """Read several days of a month without its name: "the 29th and 30th"."""
    days = [int(digits) for digits in re.findall(r"\d+", match["list"])]
    if not all(1 <= day <= 31 for day in days):
        return WRONG
    return [Meaning("monthday", day) for day in days]


def read_date_slash(match: re.Match[str], before: str) -> Meanings:
    """Read a date with slashes: 5/7 is 7 May or 5 July, so it has two values.

    WRONG for a date that does not exist, as 13/14. Empty for other pairs of numbers, as 24/7.
    """
    first = int(match["a"])
    second = int(match["b"])
    year = match["y"]
    is_round_the_clock = (first, second) == (24, 7)
    may_be_date = 0 < first < 32 and 0 < second < 32
    if is_round_the_clock or not may_be_date:
        # With a year it is a date that does not exist. Without one it is a fraction: 50/60.
        if year and year > "1900":
            return WRONG
        return []
    # As a set of two, since 5/5 is only one date. A dict keeps their order.
    month_day_pairs = dict.fromkeys([(first, second), (second, first)])
    dates: list[CalendarDate] = []
    for month, day in month_day_pairs:
        if month <= 12:
            dates.append(CalendarDate(whole_or_none(year), month, day))
    if not dates:
        return WRONG
    return [Meaning("date", tuple(dates))]


# Text after a number that shows that it is a day of the month.
_AFTER_MONTHDAY = re.compile(
    r"\n|\s+(?:[0-9]|noon|midnight)|\s*[^\sa-z]|\s*(?:$|[.,;:!?)\]]"
    r"|(?:to|until|till|and|or|for|is|we|i|please|of|at|on|by|before|in|every|each|next|this)\b)"
)


def read_monthday(match: re.Match[str], before: str) -> Meanings:
    """Read a day of a month without its name: "on the 3rd", 15号.

    "the 3rd" alone is a day if no noun follows: "the 3rd rock" is not a day.
    """
    day = read_whole_number(match["d"])
    exists = 1 <= day <= 31
    # Only the English wording has the group `sure`, for a preposition before the number.
    is_chinese = "sure" not in match.groupdict()
    if is_chinese:
        # 40号 may be the number of a house.
        return [Meaning("monthday", day)] if exists else []

    following_text = match.string[match.end() : match.end() + _LOOKAHEAD_CHARACTERS]
    text_before = match.string[: match.start()]
    has_preposition = bool(match["sure"]) or text_before.endswith(_BEFORE_MONTHDAY)
    if not has_preposition and not _AFTER_MONTHDAY.match(following_text):
        return []
    return [Meaning("monthday", day)] if exists else WRONG


# Words before a number that make it a day, but are not a part of it: "the evening of the 5th".
_BEFORE_MONTHDAY = ("until ", "till ", "morning of ", "afternoon of ", "evening of ", "night of ")
# More of the text than any alternative of _AFTER_MONTHDAY needs.
_LOOKAHEAD_CHARACTERS = 20
# How many years from now the Chinese word means.
_YEARS = {None: 0, "今": 0, "明": 1, "后": 2, "去": -1}


def read_edge(match: re.Match[str], before: str) -> Meanings:
    """Read an edge of a period: "the end of the month", "the first day of next year", "late June"."""
    late_unit = match["late"]
    is_last = bool(late_unit) or (match["edge"] or "").startswith(("end", "last"))
    if match["month"]:
        month = table("english.months")[match["month"]]
        return [Meaning("month_edge", MonthEdge(year=None, month=month, is_last=is_last))]
    if match["edge"] == "first" and not match["which"]:
        # "the first of the month" is the next one.
        return [Meaning("monthday", 1)]
    span = Span(late_unit or match["unit"], periods_ahead(match["which"]) or 0)
    return [Meaning("edge", Edge(span, is_last))]


def read_edge_zh(match: re.Match[str], before: str) -> Meanings:
    """Read an edge of a period in Chinese: 下个月初, 下个月最后一天, 年底, 明年第一天."""
    is_last = not (match["start"] or match["ystart"] or match["first"])
    if "月" in match[0]:
        span = Span("month", periods_ahead(match["which"]) or 0)
    else:
        span = Span("year", _YEARS[match["year"] or match["named_year"]])
    return [Meaning("edge", Edge(span, is_last))]


def read_month(match: re.Match[str], before: str) -> Meanings:
    """Read a month by its bare name. It is weak: the words around it decide whether it says when."""
    if match["month"]:
        month = table("english.months")[match["month"]]
    else:
        month = read_whole_number(match["m"])
    if not 1 <= month <= 12:
        return []
    return [Meaning("month", Month(whole_or_none(match["y"]), month), is_weak=True)]


def read_weekday(match: re.Match[str], before: str) -> Meanings:
    """Read a weekday: "Friday", "next Friday", 下周五. 三周日 counts weeks and names no Sunday."""
    name = match["day"]
    weeks = periods_ahead(match["which"])
    chinese_weekdays = table("chinese.weekdays")
    if name in chinese_weekdays:
        is_count = not match["which"] and before and before in "一二两三四五六七八九十几0123456789"
        if is_count:
            return []
        return [Meaning("weekday", Weekday(weeks, chinese_weekdays[name]))]
    is_next = weeks == 1
    # "sat" and "sun" are also other words
    is_weak = name in ("sat", "sun") and not is_next
    weekday = Weekday(weeks, table("english.weekdays")[name], is_next)
    return [Meaning("weekday", weekday, is_weak)]


def read_weekday_range(match: re.Match[str], before: str) -> Meanings:
    """Read a range of weekdays: Mon-Fri, 周一到周五.

    The value is the pair (first weekday, last weekday), where 0 is Monday.
    """
    names = table("english.weekdays") | table("chinese.weekdays")
    return [Meaning("weekday_range", (names[match["first"]], names[match["last"]]))]


def read_day(match: re.Match[str], before: str) -> Meanings:
    """Read "today", "tomorrow", 后天. The value is the number of days ahead."""
    # 今后天天 is "from now on, daily"
    is_part_of_word = match["zwords"] == "后天" and before and before in "之以今"
    if is_part_of_word:
        return []
    return [Meaning("day", named_value(match, "days"))]


def read_span(match: re.Match[str], before: str) -> Meanings:
    """Read a week, month or year: "next week", 明年. The present one is weak: "this week" alone."""
    groups = match.groupdict()
    # 一年 is a length
    if "year" in groups and before == "一":
        return []
    if groups.get("after_next"):
        return [Meaning("span", Span("week", 2))]
    if groups.get("year"):
        offset = _YEARS[groups["year"]]
    else:
        offset = periods_ahead(groups["which"]) or 0
    unit = units().get(groups["unit"] or "", "year")
    return [Meaning("span", Span(unit, offset), is_weak=offset == 0)]


# Months of the lunar calendar that have names.
_LUNAR_MONTHS = {"正": 1, "冬": 11, "腊": 12}


def read_lunar(match: re.Match[str], before: str) -> Meanings:
    """Read a day of the Chinese calendar: 农历八月十五, 腊月初八, 大年初二.

    A yearly one is unclear, as no rule of ours follows that calendar.
    """
    if match["every"]:
        return UNCLEAR
    # 大年 is the first month.
    spelled_month = match["month"] or match["named"] or "正"
    if spelled_month in _LUNAR_MONTHS:
        month = _LUNAR_MONTHS[spelled_month]
    else:
        month = read_whole_number(spelled_month)
    # Days are spelled in their own way: 初五 is the 5th, 廿五 the 25th.
    spelled_day = match["day"].replace("廿", "二十").replace("初", "")
    day = read_whole_number(spelled_day)
    # A month of that calendar has at most 30 days.
    if not (1 <= month <= 12 and 1 <= day <= 30):
        return WRONG
    year = whole_or_none(match["y"])
    return [Meaning("lunar", LunarDate(month, day, year, bool(match["leap"])))]


def read_holiday(match: re.Match[str], before: str) -> Meanings:
    """Read a day that has a name: "Christmas Eve", 中秋节, "Easter Monday 2027".

    It is weak, since it is often a part of a subject: "buy Christmas cards".
    """
    year = whole_or_none(match["y"] or match["zy"])
    value: Any
    match named_value(match, "holidays"):
        case ["date", month, day]:
            value = (CalendarDate(year, month, day),)
        case ["easter", days]:
            value = Easter(days, year)
        case ["lunar", month, day]:
            # In these months, the year may be the Chinese one or ours.
            if year and month > LAST_LUNAR_MONTH_OF_YEAR:
                return UNCLEAR
            value = LunarDate(month, day, year)
        case [_, month, nth, weekday]:
            value = NthWeekday(nth, weekday, month, year)
    return [Meaning(named_value(match, "holidays")[0], value, is_weak=True)]


def read_where(match: re.Match[str], before: str) -> Meanings:
    """Read a city. It names a zone only right behind a clock: "9am London"."""
    return [Meaning("where", table("zones.where")[" ".join(match["place"].split())], is_weak=True)]


def read_zone(match: re.Match[str], before: str) -> Meanings:
    """Read a zone: "Europe/Berlin", "UTC+8", "Tokyo time", 北京时间, "CET".

    The value is an IANA name or an offset. It is "" if the words name several zones. An
    abbreviation is weak.
    """
    groups = match.groupdict()
    if groups.get("iana"):
        # The text is in lower case, the names of zones are not.
        names = {name.lower(): name for name in available_timezones()}
        return [Meaning("zone", names.get(match["iana"], ""))]
    if groups.get("offset"):
        return [Meaning("zone", match["offset"].replace(" ", ""))]
    for group, table_name in _ZONE_TABLES.items():
        if groups.get(group):
            spelled = " ".join(match[group].split())
            zone = table(f"zones.{table_name}")[spelled]
            return [Meaning("zone", zone)]
    if groups.get("short"):
        return [Meaning("zone", _zone_of_abbreviation(match), is_weak=True)]
    return []


def _zone_of_abbreviation(match: re.Match[str]) -> str:
    """Return the zone of an abbreviation such as "CET". "" if it may not be meant as a zone.

    "ET" and some others are often something else, unless they end the clause: "3pm ET, room 5".
    """
    spelled = " ".join(match["short"].split())
    zone: str = table("zones.short")[spelled]
    is_often_another_word = spelled in table("zones.lone")
    if is_often_another_word and not _CLAUSE_END.match(match.string, match.end()):
        return ""
    return zone


# The end of a clause, or a word that shows that the abbreviation before it names a zone.
_CLAUSE_END = re.compile(r"\s*(?:$|[,.;:!?)\n-]|(?:on|today|tomorrow|every|daily)\b)|\s+time\b")
# Groups of the shape, each with the table of zones.toml that its words are in.
_ZONE_TABLES = {"place": "places", "zplace": "chinese"}


READERS: dict[str, Reader] = {
    "vague": read_vague,
    "day_part": read_day_part,
    "weekend": read_weekend,
    "instant": read_instant,
    "delay": read_distance,
    "offset": read_distance,
    "offset_zh": read_offset_zh,
    "weekday_from": read_weekday_from,
    "length": read_length,
    "run": read_run,
    "workdays": read_workdays,
    "nth_weekday": read_nth_weekday,
    "nth_weekday_zh": read_nth_weekday_zh,
    "date": read_date,
    "date_list": read_date_list,
    "monthday_list": read_monthday_list,
    "date_slash": read_date_slash,
    "monthday": read_monthday,
    "edge": read_edge,
    "edge_zh": read_edge_zh,
    "month": read_month,
    "weekday": read_weekday,
    "weekday_range": read_weekday_range,
    "day": read_day,
    "span": read_span,
    "lunar": read_lunar,
    "holiday": read_holiday,
    "zone": read_zone,
    "where": read_where,
}
