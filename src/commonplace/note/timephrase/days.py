"""The meaning of day words: which days of the calendar they may stand for."""

from __future__ import annotations

import calendar
from datetime import date, timedelta

from commonplace.note.timephrase.tokens import Delay, Token

DAY_KINDS = ("day", "delay", "weekday", "weekend", "span", "edge", "month_edge", "date", "monthday")


def shifted(day: date, months: int, days: int = 0) -> date:
    """`day` some months and days on; the end of a shorter month for a day it lacks. Raises OverflowError or
    ValueError beyond the calendar."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    length = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, length)) + timedelta(days=days)


def meant(tokens: list[Token], today: date) -> list[date]:
    """The days the day words of one group may mean, in order: one when they are clear, none without words.

    Words that agree ("Thursday, May 7") give one day; those that contradict each other give the days of all.
    Raises ValueError for a day that does not exist, OverflowError beyond the calendar.
    """
    spans = [token.value for token in tokens if token.kind == "span"]
    used: set[tuple[str, int]] = set()
    choices: list[tuple[Token, list[date]]] = []
    for token in tokens:
        if token.kind in DAY_KINDS and token.kind != "span":
            choices.append((token, _choices(token, spans, used, today)))
    for token in tokens:
        if token.kind == "span" and token.value not in used and not (token.weak and choices):
            choices.append((token, [_span(token.value, today)]))
    return _agreed(choices)


def _agreed(choices: list[tuple[Token, list[date]]]) -> list[date]:
    every = sorted({day for _, days in choices for day in days})
    fixed = [day for day in every if all(_fits(day, token, days) for token, days in choices)]
    return fixed or every


def _fits(day: date, token: Token, days: list[date]) -> bool:
    """Whether `day` may be meant. A weekday by its bare name may be of any week."""
    if token.kind == "weekday" and token.value[0] is None:
        return day.weekday() == token.value[1]
    return day in days


def _choices(token: Token, spans: list[tuple[str, int]], used: set[tuple[str, int]], today: date) -> list[date]:
    """The days of one word. A span beside it says of which week, month or year it is, and is `used` then."""
    kind, value = token.kind, token.value
    within = {unit: (unit, offset) for unit, offset in spans}
    needed = {
        "weekday": "week",
        "weekend": "week",
        "monthday": "month",
        "date": "year",
        "month_edge": "year",
    }.get(kind)
    takes = needed in within and not (kind in ("weekday", "weekend") and value[0] is not None)
    takes = takes and not (kind == "date" and value[0][0] is not None)
    span = within[needed] if takes and needed else None
    if span:
        used.add(span)
    if kind == "day":
        return [today + timedelta(days=value)]
    if kind == "delay":
        return [_delayed(value, today)]
    if kind == "weekday":
        return _weekday((span[1], value[1], False) if span else value, today)
    if kind == "weekend":
        return _weekend((span[1], False) if span else value, today)
    if kind == "edge":
        return [_edge(value, today)]
    if kind == "monthday":
        return [_monthday(value, span, today)]
    return _dates(token, span, today)


def _delayed(delay: Delay, today: date) -> date:
    return shifted(today, delay.months, delay.days)


def _monday(today: date) -> date:
    return today - timedelta(days=today.weekday())


def _weekday(value: tuple[int | None, int, bool], today: date) -> list[date]:
    """Bare: the next one ahead, today's name being ambiguous. Else of a calendar week; "next X" said while
    this week's is ahead may be either."""
    weeks, weekday, english_next = value
    if weeks is None:
        ahead = (weekday - today.weekday()) % 7
        return [today + timedelta(days=ahead)] if ahead else [today, today + timedelta(days=7)]
    day = _monday(today) + timedelta(days=7 * weeks + weekday)
    this = day - timedelta(days=7)
    return [this, day] if english_next and this > today else [day]


def _weekend(value: tuple[int | None, bool], today: date) -> list[date]:
    """Saturday; the bare weekend is the next one, a Saturday counting as its own."""
    if value[0] is None:
        return [today + timedelta(days=(5 - today.weekday()) % 7)]
    return _weekday((value[0], 5, value[1]), today)


def _span(value: tuple[str, int], today: date) -> date:
    """The first day of a week, month or year."""
    unit, offset = value
    if unit == "week":
        return _monday(today) + timedelta(days=7 * offset)
    if unit == "month":
        return shifted(today.replace(day=1), offset)
    return date(today.year + offset, 1, 1)


def _edge(value: tuple[str, int, bool], today: date) -> date:
    unit, offset, last = value
    first = _span((unit, offset), today)
    return shifted(first, 1 if unit == "month" else 12, -1) if last else first


def _monthday(day: int, span: tuple[str, int] | None, today: date) -> date:
    """That day of the span's month, else the next such day, today included."""
    if span:
        return _span(span, today).replace(day=day)
    for month in range(13):
        first = shifted(today.replace(day=1), month)
        if day <= calendar.monthrange(first.year, first.month)[1] and first.replace(day=day) >= today:
            return first.replace(day=day)
    raise ValueError(day)


def _dates(token: Token, span: tuple[str, int] | None, today: date) -> list[date]:
    """A date without a year is the next one, today included. 5/7 may be two; one that does not exist
    is left out."""
    year_of_span = today.year + span[1] if span else None
    if token.kind == "month_edge":
        return [_month_edge(token.value, year_of_span, today)]
    days = []
    for year, month, day in token.value:
        try:
            days.append(_dated(year or year_of_span, month, day, today))
        except ValueError:
            if len(token.value) == 1:
                raise
    if not days:
        raise ValueError(token.value)
    return sorted(days)


def _month_edge(value: tuple[int | None, int, bool], year_of_span: int | None, today: date) -> date:
    """The first or last day of a named month, without a year the next one, today included."""
    year, month, last = value
    for candidate in (year or year_of_span or today.year, today.year + 1):
        first = date(candidate, month, 1)
        day = shifted(first, 1, -1) if last else first
        if day >= today or year or year_of_span:
            break
    return day


def _dated(year: int | None, month: int, day: int, today: date) -> date:
    if year is not None:
        return date(year, month, day)
    # 29 February may be eight years away.
    for candidate in range(today.year, today.year + 9):
        if 1 <= month <= 12 and 1 <= day <= calendar.monthrange(candidate, month)[1]:
            found = date(candidate, month, day)
            if found >= today:
                return found
    raise ValueError(day)
