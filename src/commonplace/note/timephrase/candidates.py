"""Which days of the calendar and which times of day words may mean."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from commonplace.note.timephrase.lexer import Lexeme, NthWeekday, TimeOfDay
from commonplace.note.timephrase.vocabulary import table

DAY_KINDS = ("day", "delay", "weekday", "weekend", "span", "edge", "month_edge", "date", "monthday", "nth_weekday")
_SPAN_OF = {"weekday": "week", "weekend": "week", "monthday": "month", "date": "year", "month_edge": "year"}
"""The span that may stand beside a kind of day word: "Friday of next week"."""


class Unclear(ValueError):
    """A part of the day that needs an hour."""


def wall_time(day: date, clock: time, zone: tzinfo) -> datetime:
    """The moment a clock on the wall shows `clock` on `day`: the first of two, and where the clock jumps
    ahead as far after the jump as asked for. Raises OverflowError at the ends of the calendar."""
    return datetime.combine(day, clock).replace(tzinfo=zone).astimezone(UTC).astimezone(zone)


def shifted(day: date, months: int, days: int = 0) -> date:
    """`day` some months and days later; the end of a shorter month for a day it lacks. Raises OverflowError or
    ValueError beyond the calendar."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    return date(year, month + 1, min(day.day, month_length(year, month + 1))) + timedelta(days=days)


def month_length(year: int, month: int) -> int:
    """How many days a month has."""
    return calendar.monthrange(year, month)[1]


def possible_days(tokens: Sequence[Lexeme], today: date) -> list[date]:
    """The days the day words of one group may mean, in order: one when they are clear, none without words.

    Words that agree ("Thursday, May 7") give one day; those that contradict each other give the days of all.
    Raises ValueError for a day that does not exist, OverflowError beyond the calendar.
    """
    spans = {token.value[0]: token.value for token in tokens if token.kind == "span"}
    used: set[tuple[str, int]] = set()
    choices: list[tuple[Lexeme, list[date]]] = []
    for token in tokens:
        if token.kind in DAY_KINDS and token.kind != "span":
            span = spans.get(_SPAN_OF.get(token.kind, "")) if _takes_span(token) else None
            used |= {span} if span else set()
            choices.append((token, _days(token, span, today)))
    for token in tokens:
        if token.kind == "span" and token.value not in used and not (token.weak and choices):
            choices.append((token, [_first_day(token.value, today)]))
    every = sorted({day for _, days in choices for day in days})

    def fits(day: date, token: Lexeme, days: list[date]) -> bool:
        if token.kind == "weekday" and token.value[0] is None:  # by its bare name it may be of any week
            return day.weekday() == token.value[1]
        return day in days

    return [day for day in every if all(fits(day, token, days) for token, days in choices)] or every


def _takes_span(token: Lexeme) -> bool:
    """Whether a span beside the word may say of which week or year it is."""
    if token.kind in ("weekday", "weekend"):
        return token.value[0] is None
    if token.kind == "nth_weekday":
        return False
    return token.kind != "date" or token.value[0][0] is None


def _days(token: Lexeme, span: tuple[str, int] | None, today: date) -> list[date]:
    """The days one word may mean, within the span beside it."""
    kind, value = token.kind, token.value
    if kind == "day":
        return [today + timedelta(days=value)]
    if kind == "delay":
        return [shifted(today, value.months, value.days)]
    if kind == "weekday":
        return _weekday((span[1], value[1], False) if span else value, today)
    if kind == "weekend":
        weeks, english_next = (span[1], False) if span else value
        if weeks is None:  # the next one, a Saturday counting as its own
            return [today + timedelta(days=(5 - today.weekday()) % 7)]
        return _weekday((weeks, 5, english_next), today)
    if kind == "edge":
        unit, offset, last = value
        first = _first_day((unit, offset), today)
        return [shifted(first, 1 if unit == "month" else 12, -1) if last else first]
    if kind == "monthday":
        return [_first_day(span, today).replace(day=value) if span else _next_date(today, day=value)]
    if kind == "nth_weekday":
        return [_nth_weekday(value, today)]
    year = today.year + span[1] if span else None
    if kind == "month_edge":
        return [_month_edge(value[0] or year, value[1], value[2], today)]
    return _dates(value, year, today)


def _weekday(value: tuple[int | None, int, bool], today: date) -> list[date]:
    """Bare: the next one ahead, today's name being ambiguous. Else of a calendar week; "next X" said while
    this week's is ahead may be either."""
    weeks, weekday, english_next = value
    if weeks is None:
        ahead = (weekday - today.weekday()) % 7
        return [today + timedelta(days=ahead)] if ahead else [today, today + timedelta(days=7)]
    day = _first_day(("week", weeks), today) + timedelta(days=weekday)
    this = day - timedelta(days=7)
    return [this, day] if english_next and this > today else [day]


def _first_day(span: tuple[str, int], today: date) -> date:
    unit, offset = span
    if unit == "week":
        return today - timedelta(days=today.weekday()) + timedelta(days=7 * offset)
    if unit == "month":
        return shifted(today.replace(day=1), offset)
    return date(today.year + offset, 1, 1)


def _next_date(today: date, day: int, month: int | None = None) -> date:
    """The next such day of a month (of every month by default), today included. Raises ValueError for none."""
    first = today.replace(day=1)
    for months in range(97 if month else 13):  # 29 February may be eight years away
        found = shifted(first, months)
        is_there = month in (None, found.month) and 1 <= day <= month_length(found.year, found.month)
        if is_there and found.replace(day=day) >= today:
            return found.replace(day=day)
    raise ValueError(day)


def _month_edge(year: int | None, month: int, last: bool, today: date) -> date:
    """The first or last day of a named month, without a year the next one, today included."""
    for candidate in (year or today.year, today.year + 1):
        first = date(candidate, month, 1)
        day = shifted(first, 1, -1) if last else first
        if day >= today or year:
            break
    return day


def nth_weekday(year: int, month: int, nth: int, day: int) -> date | None:
    """The nth such weekday of a month, -1 the last; None when it has none."""
    first, length = date(year, month, 1), month_length(year, month)
    days = range(1 + (day - first.weekday()) % 7, length + 1, 7)
    at = nth if nth < 0 else nth - 1
    return date(year, month, days[at]) if at < len(days) else None


def _nth_weekday(value: NthWeekday, today: date) -> date:
    """Of a month without a year the next one, today included. Raises ValueError for a day the month lacks."""
    if value.month is None:
        first = shifted(today.replace(day=1), value.months)
        found = nth_weekday(first.year, first.month, value.nth, value.day)
    else:
        years = (value.year,) if value.year else range(today.year, today.year + 9)
        days = (nth_weekday(year, value.month, value.nth, value.day) for year in years)
        found = next((each for each in days if each and (value.year or each >= today)), None)
    if found is None:
        raise ValueError(value)
    return found


def _dates(dates: Sequence[tuple[int | None, int, int]], of_year: int | None, today: date) -> list[date]:
    """The dates (year, month, day), one without a year being the next one. 5/7 may be two; one of several that
    does not exist is left out."""
    days = []
    for year, month, day in dates:
        try:
            fixed = year or of_year
            days.append(_next_date(today, day, month) if fixed is None else date(fixed, month, day))
        except (ValueError, OverflowError):
            if len(dates) == 1:
                raise
    if not days:
        raise ValueError(dates)
    return sorted(days)


class Hour(NamedTuple):
    """A wall time `days` after the day it is said of (1: after its midnight). `word` is "midnight" or "eod"
    for these two."""

    at: time
    days: int = 0
    word: str = ""

    def on(self, day: date, zone: tzinfo) -> datetime:
        """The moment of this hour of `day`."""
        return wall_time(day + timedelta(days=self.days), self.at, zone)


def possible_hours(tokens: Sequence[Lexeme]) -> list[Hour]:
    """All times of day the words may mean, several when they are ambiguous, none without words. Raises
    ValueError for a clock its part of the day does not have, Unclear when the hour is missing."""
    parts = list(dict.fromkeys(token.value for token in tokens if token.kind == "part"))
    clocks = [token.value for token in tokens if token.kind == "clock"]
    if clocks:
        return list(dict.fromkeys(hour for each in clocks for part in parts or [None] for hour in _hours(each, part)))
    if any(part not in table("hours") for part in parts):
        raise Unclear
    return [Hour(time(table("hours")[part])) for part in parts]


# The hours of the day a part may be said of when the clock is of 24 hours.
_SPANS = {
    "morning": range(0, 13), "small hours": range(0, 12), "noon": range(10, 16), "afternoon": range(12, 20),
    "evening": range(16, 24), "night": range(0, 24),
}  # fmt: skip


def _hours(clock: TimeOfDay, part: str | None) -> list[Hour]:
    """What a clock beside a part of the day may show. The night goes on after midnight: 12 to 4 are of the next
    day; 12 in the morning is not decided here."""
    hour = clock.hour
    if part is not None and clock.form == "eod":
        return [_hour(clock, 18)]
    if part is None or (part == "morning" and hour == 12):
        if clock.form == "bare":
            return [_hour(clock, hour % 12), _hour(clock, hour % 12 + 12)]
        return [_hour(clock, 24) if hour == 24 else _hour(clock, hour)]
    if clock.form in ("bare", "colon"):
        if part == "morning" or (part == "noon" and hour >= 10):
            return [_hour(clock, hour)]
        is_next_day = (part == "night" and (hour == 12 or hour < 5)) or (part == "evening" and hour == 12)
        return [_hour(clock, hour % 12 + (0 if part == "small hours" else 24 if is_next_day else 12))]
    if part == "night" and (hour in (0, 24) or clock.form == "midnight"):
        return [_hour(clock, 24)]
    if hour not in _SPANS[part]:
        raise ValueError(part)
    return [_hour(clock, hour)]


def _hour(clock: TimeOfDay, hour: int) -> Hour:
    """`clock` with another hour; from 24 on it is of the next day."""
    word = clock.form if clock.form in ("midnight", "eod") else ""
    return Hour(time(hour - 24 if hour >= 24 else hour, clock.minute, clock.second), hour // 24, word)
