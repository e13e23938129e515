"""Readers of the shapes that name days, distances in time and zones: a match -> kinds and values."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any
from zoneinfo import available_timezones

from memoranda.note.timephrase.numbers import HALF, number, read_whole_number, whole_or_none
from memoranda.note.timephrase.values import (
    UNIT_SECONDS,
    Delay,
    LunarDate,
    NthWeekday,
    Repetition,
    Weekday,
)
from memoranda.note.timephrase.words import compiled, table, units

Values = list[tuple[str, Any]]
"""Kinds and values of the lexemes of a match; empty when a closer look says it is no time. A kind
with `?` is weak.
"""
Reader = Callable[[re.Match[str], str], Values]
"""Takes the match and the character before it ("" after a lexeme); may raise ValueError for no
time.
"""
WRONG: Values = [("wrong", None)]
"""A time word with a value that does not exist, such as 25:00."""
UNCLEAR: Values = [("unclear", None)]
"""A time word with two meanings, such as "every second Tuesday"."""


def named_value(match: re.Match[str], name: str) -> Any:
    """The value of the matched `words` or `zwords` in the table `name` of their language."""
    if match["words"]:
        return table(f"english.{name}")[" ".join(match["words"].split())]
    return table(f"chinese.{name}")[match["zwords"]]


_RELATIVE = {"this": 0, "next": 1, "last": -1}


def which(spelled: str | None) -> int | None:
    """How many calendar weeks or months ahead. None if the words do not say."""
    spelled = (spelled or "").strip()
    if not spelled or spelled.endswith("the") or spelled == "coming":
        return None
    return _RELATIVE.get(spelled, spelled.count("下") - spelled.count("上"))


def read_vague(match: re.Match[str], before: str) -> Values:
    return [("vague", None)]


def read_day_part(match: re.Match[str], before: str) -> Values:
    day, part = named_value(match, "day_parts")
    return [("day", day), ("part", part)]


def read_weekend(match: re.Match[str], before: str) -> Values:
    return [("weekend", (which(match["which"]), match["which"] == "next"))]


def read_instant(match: re.Match[str], before: str) -> Values:
    offset = (match["offset"] or "").upper()
    clock = match["clock"] or match["local"]
    try:
        return [("instant", datetime.fromisoformat(f"{match['date']}T{clock}{offset}"))]
    except ValueError:
        return WRONG


_DAYS_OF = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS_OF = {"month": 1, "year": 12}
# Between two amounts: "1 hour and 30 minutes".
_SEPARATOR = re.compile(r"\s*(?:,\s*)?(?:and\s+|[零又])?\s*")
# "two and a half".
_FINAL_HALF = re.compile(r"(?<=[a-z])\s+and\s+a\s+half$")
_WORDED_AMOUNTS = (
    (re.compile(r"^half\s+(?:of\s+)?an?\s+"), "0.5 "),
    (re.compile(r"^(?:a\s+)?quarter\s+of\s+an\s+hour"), "15 minutes"),
    (re.compile(r"^(?:a\s+)?half[\s-]hour"), "30 minutes"),
)


def read_distance(match: re.Match[str], before: str) -> Values:
    """A delay from now ("in 2 hours", 3天后) or a distance from a named time ("a week from")."""
    groups = match.groupdict()
    if "over" in groups and not (groups["over"] or groups["after"] or groups["ago"]):
        return []
    amount = read_amount(match["amount"])
    if groups.get("ago") or groups.get("way") == "before":
        amount = Delay(-amount.months, -amount.days, -amount.seconds)
    if "way" in groups:
        return [("offset", amount)]
    if any(amount):
        return [("delay", amount)]
    return WRONG


def read_length(match: re.Match[str], before: str) -> Values:
    """How long something lasts: "for 5 days", 连续三天."""
    amount = read_amount(match["amount"] or match["zamount"])
    if any(amount):
        return [("length", amount)]
    return WRONG


def read_amount(amount: str) -> Delay:
    """The value of a sum such as "an hour and a half" or 两个半小时. Raises ValueError."""
    text, halves = _FINAL_HALF.subn("", amount.strip())
    for pattern, spelling in _WORDED_AMOUNTS:
        text = pattern.sub(spelling, text)
    months = Fraction()
    days = Fraction()
    seconds = Fraction()
    position = 0
    while position < len(text):
        separator = _SEPARATOR.match(text, position)
        piece = compiled("<piece>").match(text, separator.end() if separator else position)
        if not piece or piece.end() == position:
            raise ValueError(text)
        position = piece.end()
        has_final_half = bool(halves) and position == len(text)
        count = _count(piece) + HALF * (bool(piece["more"]) + has_final_half)
        unit = units()[piece["unit"]]
        if unit in UNIT_SECONDS:
            seconds += count * UNIT_SECONDS[unit]
        elif unit in _DAYS_OF:
            days += count * _DAYS_OF[unit]
        else:
            months += count * _MONTHS_OF[unit]
    return _delay(months, days, seconds, text)


def _count(piece: re.Match[str]) -> Fraction:
    if piece["half"]:
        count = HALF
    else:
        count = number(piece["count"] or "")
    return count + HALF * bool(piece["plus"])


def _delay(months: Fraction, days: Fraction, seconds: Fraction, text: str) -> Delay:
    """Half a month is 15 days; the rest of a day is elapsed time."""
    if months.denominator == 2:
        months -= HALF
        days += 15
    seconds += days % 1 * 86400
    days -= days % 1
    if months.denominator != 1 or seconds.denominator != 1:
        raise ValueError(text)
    return Delay(int(months), int(days), int(seconds))


def read_workdays(match: re.Match[str], before: str) -> Values:
    return [("workdays", read_whole_number(match["count"] or "1"))]


# Which one of a month; -1 counts from its end.
_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}


def read_nth_weekday(match: re.Match[str], before: str) -> Values:
    groups = {key.rstrip("234"): value for key, value in match.groupdict().items() if value}
    spelled = groups["nth"]
    if spelled in _NTH:
        nth = _NTH[spelled]
    else:
        nth = int(spelled[0])
    day = table("english.weekdays")[groups["day"]]
    if groups.get("every"):
        return [("repeat", Repetition("month", interval_of(match), (day,), nth=nth))]
    month = table("english.months").get(groups.get("month"))
    year = groups.get("y")
    months = which(groups.get("which")) or 0
    return [("nth_weekday", NthWeekday(nth, day, month, whole_or_none(year), months))]


def read_nth_weekday_zh(match: re.Match[str], before: str) -> Values:
    if match["last"]:
        nth = -1
    else:
        nth = read_whole_number(match["nth"])
    day = table("chinese.weekdays")[match["day"]]
    if match["every"]:
        return [("repeat", Repetition("month", interval_of(match), (day,), nth=nth))]
    month = whole_or_none(match["m"])
    if month is not None and not 1 <= month <= 12:
        return WRONG
    return [("nth_weekday", NthWeekday(nth, day, month, None, which(match["which"]) or 0))]


def interval_of(match: re.Match[str]) -> Fraction:
    """How many units are between two times: every other 2, every N N, 每隔一 2."""
    groups = match.groupdict()
    gap = (groups.get("gap") or "").split()
    count = number(groups.get("count") or "1")
    if not gap or gap[0] == "week":
        return count
    if gap[0] == "隔":
        return count + (count == 1)
    if gap[0] in ("other", "second"):
        return Fraction(2)
    return number(" ".join(word for word in gap if word not in ("weeks", "week", "on")))


def read_date(match: re.Match[str], before: str) -> Values:
    groups = match.groupdict()
    year = whole_or_none(groups["y"])
    if "m" in groups:
        month = read_whole_number(groups["m"])
    else:
        month = table("english.months")[groups["month"]]
    edge = groups.get("edge")
    if edge and not 1 <= month <= 12:
        return WRONG
    if edge:
        return [("month_edge", (year, month, edge != "初"))]
    return [("date", ((year, month, read_whole_number(groups["d"])),))]


def read_date_slash(match: re.Match[str], before: str) -> Values:
    first = int(match["a"])
    second = int(match["b"])
    year = match["y"]
    is_round_the_clock = (first, second) == (24, 7)
    if is_round_the_clock or not (0 < first < 32 and 0 < second < 32):
        if year and year > "1900":
            return WRONG
        return []
    pairs = dict.fromkeys([(first, second), (second, first)])
    dates = tuple((whole_or_none(year), month, day) for month, day in pairs if month <= 12)
    if dates:
        return [("date", dates)]
    return WRONG


# Text after a number that shows that it is a day of the month.
_AFTER_MONTHDAY = re.compile(
    r"\n|\s+(?:[0-9]|noon|midnight)|\s*[^\sa-z]|\s*(?:$|[.,;:!?)\]]"
    r"|(?:to|and|or|for|is|we|i|please|of|at|on|by|before|in|every|each|next|this)\b)"
)


def read_monthday(match: re.Match[str], before: str) -> Values:
    """Read a day of the month, such as "on the 3rd".

    "the 3rd" is a day after "on" or "by", or if no name follows it: "the 3rd rock" is not a day.
    """
    day = read_whole_number(match["d"])
    if "sure" not in match.groupdict():
        if 1 <= day <= 31:
            return [("monthday", day)]
        return []
    following_text = match.string[match.end() : match.end() + 20]
    if not (match["sure"] or _AFTER_MONTHDAY.match(following_text)):
        return []
    if 1 <= day <= 31:
        return [("monthday", day)]
    return WRONG


# How many years from now the Chinese word means.
_YEARS = {None: 0, "今": 0, "明": 1, "后": 2, "去": -1}


def read_edge(match: re.Match[str], before: str) -> Values:
    """The first or last day of a month or year."""
    late = match["late"]
    is_last = bool(late) or (match["edge"] or "").startswith(("end", "last"))
    if match["month"]:
        return [("month_edge", (None, table("english.months")[match["month"]], is_last))]
    return [("edge", (late or match["unit"], which(match["which"]) or 0, is_last))]


def read_edge_zh(match: re.Match[str], before: str) -> Values:
    is_last = not (match["start"] or match["ystart"])
    if "月" in match[0]:
        return [("edge", ("month", which(match["which"]) or 0, is_last))]
    return [("edge", ("year", _YEARS[match["year"]], is_last))]


def read_month(match: re.Match[str], before: str) -> Values:
    """A month by its bare name; whether it says when, the words before it tell."""
    if match["month"]:
        month = table("english.months")[match["month"]]
    else:
        month = read_whole_number(match["m"])
    if not 1 <= month <= 12:
        return []
    return [("month?", (whole_or_none(match["y"]), month))]


def read_weekday(match: re.Match[str], before: str) -> Values:
    day = match["day"]
    weeks = which(match["which"])
    chinese = table("chinese.weekdays")
    if day in chinese:
        is_count = not match["which"] and before and before in "一二两三四五六七八九十几0123456789"
        if is_count:
            return []
        return [("weekday", Weekday(weeks, chinese[day]))]
    is_next = weeks == 1
    if day in ("sat", "sun") and not is_next:
        kind = "weekday?"
    else:
        kind = "weekday"
    return [(kind, Weekday(weeks, table("english.weekdays")[day], is_next))]


def read_weekday_range(match: re.Match[str], before: str) -> Values:
    """Mon-Fri, 周一到周五: the first weekday and the last."""
    names = table("english.weekdays") | table("chinese.weekdays")
    return [("weekday_range", (names[match["first"]], names[match["last"]]))]


def read_day(match: re.Match[str], before: str) -> Values:
    is_part_of_word = match["zwords"] == "后天" and before and before in "之以今"
    if is_part_of_word:
        return []
    return [("day", named_value(match, "days"))]


def read_span(match: re.Match[str], before: str) -> Values:
    groups = match.groupdict()
    if "year" in groups and before == "一":
        return []
    if groups.get("after_next"):
        return [("span", ("week", 2))]
    if groups.get("year"):
        offset = _YEARS[groups["year"]]
    else:
        offset = which(groups["which"]) or 0
    unit = units().get(groups["unit"] or "", "year")
    return [("span" if offset else "span?", (unit, offset))]


# Months of the lunar calendar that have names.
_LUNAR_MONTHS = {"正": 1, "冬": 11, "腊": 12}


def read_lunar(match: re.Match[str], before: str) -> Values:
    """农历八月十五, 腊月初八, 除夕."""
    if match["eve"]:
        return [("lunar?", LunarDate(12, 0))]
    spelled = match["month"]
    if spelled in _LUNAR_MONTHS:
        month = _LUNAR_MONTHS[spelled]
    else:
        month = read_whole_number(spelled)
    day = read_whole_number(match["day"].replace("廿", "二十").replace("初", ""))
    if not (1 <= month <= 12 and 1 <= day <= 30):
        return WRONG
    year = whole_or_none(match["y"])
    date = LunarDate(month, day, year, bool(match["leap"]))
    if match["every"]:
        return UNCLEAR
    return [("lunar", date)]


def read_where(match: re.Match[str], before: str) -> Values:
    """A city; only right behind a clock it may be its zone."""
    return [("where?", table("zones.where")[" ".join(match["place"].split())])]


def read_zone(match: re.Match[str], before: str) -> Values:
    """A zone named in words, "" for a name of several zones. Abbreviations are weak."""
    groups = match.groupdict()
    if groups.get("iana"):
        names = {name.lower(): name for name in available_timezones()}
        return [("zone", names.get(match["iana"], ""))]
    if groups.get("offset"):
        return [("zone", match["offset"].replace(" ", ""))]
    for group, kind in (("place", "zone"), ("zplace", "zone"), ("short", "zone?")):
        if groups.get(group):
            name = " ".join(match[group].split())
            is_lone = kind == "zone?" and name in table("zones.lone")
            if is_lone and not _CLAUSE_END.match(match.string, match.end()):
                return [(kind, "")]
            return [(kind, table(f"zones.{_ZONE_TABLES[group]}")[name])]
    return []


# The end of a clause, which a phrase without context needs after it.
_CLAUSE_END = re.compile(r"\s*(?:$|[,.;:!?)\n-]|(?:on|today|tomorrow|every|daily)\b)|\s+time\b")
_ZONE_TABLES = {"place": "places", "zplace": "chinese", "short": "short"}


READERS: dict[str, Reader] = {
    "vague": read_vague,
    "day_part": read_day_part,
    "weekend": read_weekend,
    "instant": read_instant,
    "delay": read_distance,
    "offset": read_distance,
    "length": read_length,
    "workdays": read_workdays,
    "nth_weekday": read_nth_weekday,
    "nth_weekday_zh": read_nth_weekday_zh,
    "date": read_date,
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
    "zone": read_zone,
    "where": read_where,
}
