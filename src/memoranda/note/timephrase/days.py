"""The days of the calendar that words may mean (contract 001, 9)."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple

from memoranda.note.timephrase.values import (
    DAY_KINDS,
    CalendarDate,
    Delay,
    Easter,
    Edge,
    Lexeme,
    LunarDate,
    MonthEdge,
    NthWeekday,
    Span,
    Unclear,
    Weekday,
    Weekend,
)

# The unit of the span that may be named with a kind of day word: "Friday of next week".
_SPAN_UNIT_OF = {
    "weekday": "week",
    "weekend": "week",
    "monthday": "month",
    "date": "year",
    "month_edge": "year",
    "easter": "year",
    "lunar": "year",
}
_SATURDAY = 5
_SUNDAY = 6
LAST_LUNAR_MONTH_OF_YEAR = 10
"""The months of the Chinese calendar after it may be in the next year of ours."""


def wall_time(day: date, clock: time, zone: tzinfo) -> datetime:
    """Return the moment when clocks in a time zone show `clock` on `day`.

    Where summer time ends, a clock shows some times twice: the first one is returned. Where it
    begins, 02:30 does not exist: the moment half an hour after the jump is returned. Raises
    OverflowError at the ends of the calendar.
    """
    return datetime.combine(day, clock).replace(tzinfo=zone).astimezone(UTC).astimezone(zone)


def shifted(day: date, months: int, days: int = 0) -> date:
    """Return the day some months and days later: a month after 31 January is 28 February.

    Raises OverflowError or ValueError beyond the calendar.
    """
    year, month_index = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    month = month_index + 1
    days_in_month = monthrange(year, month)[1]
    return date(year, month, min(day.day, days_in_month)) + timedelta(days=days)


def first_day(span: Span, today: date) -> date:
    """Return the first day of a week, month or year.

    span: the unit, and how many units it is after the present one.
    today: the day at which the text is read.
    """
    if span.unit == "week":
        return today + timedelta(days=7 * span.offset - today.weekday())
    if span.unit == "month":
        return shifted(today.replace(day=1), span.offset)
    return date(today.year + span.offset, 1, 1)


def last_day(span: Span, today: date) -> date:
    """Return the last day of a week, month or year.

    span: the unit, and how many units it is after the present one.
    today: the day at which the text is read.
    """
    following_span = Span(span.unit, span.offset + 1)
    return first_day(following_span, today) - timedelta(days=1)


def possible_days(lexemes: Sequence[Lexeme], today: date) -> list[date]:
    """Return the days that the words of one time may mean, in order.

    Clear words give one day; no words give none. Words that agree ("Thursday, May 7") give one day,
    words that contradict each other ("Friday, May 7") give the days of all.

    lexemes: the time words. Words that do not name days are left out.
    today: the day at which the text is read.

    Raises ValueError for a day that does not exist, OverflowError beyond the calendar.
    """
    choices = _choices([lexeme for lexeme in lexemes if lexeme.kind in DAY_KINDS], today)
    all_days: set[date] = set()
    for choice in choices:
        all_days.update(choice.days)

    days_of_all_words = [
        day for day in sorted(all_days) if all(choice.allows(day) for choice in choices)
    ]
    if days_of_all_words:
        return days_of_all_words
    return sorted(all_days)


class _Choice(NamedTuple):
    """A day word, and the days that it may mean."""

    lexeme: Lexeme
    days: list[date]

    def allows(self, day: date) -> bool:
        """Whether the word may mean this day, if other words name it."""
        # By its bare name a weekday may be of any week
        if self.lexeme.kind == "weekday" and self.lexeme.value.weeks is None:
            return day.weekday() == self.lexeme.value.day
        return day in self.days


def _choices(lexemes: Sequence[Lexeme], today: date) -> list[_Choice]:
    """Return each day word with its possible days.

    A span (a week, month or year) beside a day word says in which one the day is: "Friday" and
    "next week". A span that no day word uses counts as its own first day.

    lexemes: the words that name days.
    today: the day at which the text is read.
    """
    span_words = [lexeme for lexeme in lexemes if lexeme.kind == "span"]
    day_words = [lexeme for lexeme in lexemes if lexeme.kind != "span"]
    spans: dict[str, Span] = {lexeme.value.unit: lexeme.value for lexeme in span_words}
    used_spans: set[Span] = set()
    choices: list[_Choice] = []
    for lexeme in day_words:
        span = None
        if not _names_its_span(lexeme):
            span = spans.get(_SPAN_UNIT_OF.get(lexeme.kind, ""))
        if span:
            used_spans.add(span)
        days_of_kind = _READERS[lexeme.kind]
        choices.append(_Choice(lexeme, days_of_kind(lexeme.value, span, today)))

    for lexeme in span_words:
        is_used = lexeme.value in used_spans
        # A weak span ("this week") adds nothing to a day that is named.
        adds_nothing = lexeme.weak and bool(choices)
        if not is_used and not adds_nothing:
            choices.append(_Choice(lexeme, [first_day(lexeme.value, today)]))
    return choices


def _names_its_span(lexeme: Lexeme) -> bool:
    """Whether the word itself names the week or year of its day: "next Friday"."""
    if lexeme.kind in ("weekday", "weekend"):
        return lexeme.value.weeks is not None
    return lexeme.kind == "date" and lexeme.value[0].year is not None


# The functions from here to `_READERS` return the days that a word of one kind may mean. Their
# arguments are the word's value, the span that the text names beside it (None without one), and the
# day at which the text is read.


def _relative_day(value: int, _: Span | None, today: date) -> list[date]:
    """Return the day that is `value` days ahead: "tomorrow"."""
    return [today + timedelta(days=value)]


def _delayed_day(value: Delay, _: Span | None, today: date) -> list[date]:
    """Return the day after a delay: "in 3 days"."""
    return [shifted(today, value.months, value.days)]


def _weekday(value: Weekday, span: Span | None, today: date) -> list[date]:
    """Return the days that a weekday may mean.

    A bare name is the next such day. If it is today's name, today and the same day of next week are
    possible. "next Friday" may be this week's as long as that is ahead.

    span: a week that the text names beside the day, "next week". None without one.
    today: the day at which the text is read.
    """
    weeks_ahead = span.offset if span else value.weeks
    if weeks_ahead is None:
        days_ahead = (value.day - today.weekday()) % 7
        if days_ahead:
            return [today + timedelta(days=days_ahead)]
        return [today, today + timedelta(days=7)]

    day = first_day(Span("week", weeks_ahead), today) + timedelta(days=value.day)
    # On a Monday, "next Friday" means this week's for some people.
    day_week_before = day - timedelta(days=7)
    may_be_week_before = value.is_english_next and not span and day_week_before > today
    if may_be_week_before:
        return [day_week_before, day]
    return [day]


def _weekend(value: Weekend, span: Span | None, today: date) -> list[date]:
    """Return the next weekend, or the weekend of a calendar week.

    On a Saturday, the next weekend begins today.

    span: a week that the text names beside it. None without one.
    """
    if span or value.weeks is not None:
        saturday = Weekday(value.weeks, _SATURDAY, value.is_english_next)
        return _weekday(saturday, span, today)
    return [today + timedelta(days=(_SATURDAY - today.weekday()) % 7)]


def _edge(value: Edge, _: Span | None, today: date) -> list[date]:
    """Return the first or last day of a week, month or year."""
    if value.is_last:
        return [last_day(value.span, today)]
    return [first_day(value.span, today)]


def _month_edge(value: MonthEdge, span: Span | None, today: date) -> list[date]:
    """Return the first or last day of a named month.

    Without a year, the next such day is returned, which may be today.

    span: a year that the text names beside it. None without one.
    """
    if value.year:
        return [_edge_of_month(value, value.year)]
    if span:
        return [_edge_of_month(value, today.year + span.offset)]
    day_this_year = _edge_of_month(value, today.year)
    if day_this_year >= today:
        return [day_this_year]
    return [_edge_of_month(value, today.year + 1)]


def _edge_of_month(value: MonthEdge, year: int) -> date:
    """Return the first or last day of a named month in a year."""
    first = date(year, value.month, 1)
    if value.is_last:
        return shifted(first, months=1, days=-1)
    return first


def _monthday(value: int, span: Span | None, today: date) -> list[date]:
    """Return the next day with this number, or the one in a month named beside it."""
    if span:
        return [first_day(span, today).replace(day=value)]
    return [next_date(today, day=value)]


def _nth_weekday(value: NthWeekday, _: Span | None, today: date) -> list[date]:
    """Return the nth weekday of a month: the second Monday of June.

    Without a year, the next such day is returned, which may be today. Raises ValueError if the
    month does not have it.
    """
    if value.years_ahead is not None and value.month:
        # "the last Friday of the year"
        days = [nth_weekday(today.year + value.years_ahead, value.month, value.nth, value.day)]
    elif value.month is None:
        # "the last Friday of next month"
        first = shifted(today.replace(day=1), value.months_ahead)
        days = [nth_weekday(first.year, first.month, value.nth, value.day)]
    elif value.year:
        days = [nth_weekday(value.year, value.month, value.nth, value.day)]
    else:
        # Some years have no fifth Monday of June, but one of nine years has it.
        years = range(today.year, today.year + 9)
        candidates = [nth_weekday(year, value.month, value.nth, value.day) for year in years]
        days = [day for day in candidates if day and day >= today]
    for day in days:
        if day:
            return [day]
    raise ValueError(value)


def _dates(value: Sequence[CalendarDate], span: Span | None, today: date) -> list[date]:
    """Return the dates that a word may mean, in order: 5/7 may be two.

    A date without a year is the next one. A date that does not exist is left out if another one
    does.

    value: the dates that the word may mean; their year may be None.
    span: a year that the text names beside it. None without one.
    today: the day at which the text is read.

    Raises ValueError or OverflowError if none exists.
    """
    days = []
    for year, month, day in value:
        if year is None and span:
            year = today.year + span.offset
        try:
            if year is None:
                days.append(next_date(today, day, month))
            else:
                days.append(date(year, month, day))
        except (ValueError, OverflowError):
            # Another of the dates may exist.
            if len(value) == 1:
                raise
    if not days:
        raise ValueError(value)
    return sorted(days)


def _workdays(value: int, _: Span | None, today: date) -> list[date]:
    """Return the day that is some working days (Monday to Friday) later. Holidays are not known.

    value: how many working days.
    today: the day from which they are counted.
    """
    day = today
    for _count in range(value):
        day += timedelta(days=1)
        while day.weekday() >= _SATURDAY:
            day += timedelta(days=1)
    return [day]


def _lunar(value: LunarDate, span: Span | None, today: date) -> list[date]:
    """Return the next date of a day of the Chinese calendar.

    span: a year that the text names beside it, 明年春节. None without one.

    Raises Unclear for a day of the last two months with a year, as the Chinese year and ours differ.
    """
    from memoranda.note.timephrase.lunar import next_lunar_date

    if span:
        if value.month > LAST_LUNAR_MONTH_OF_YEAR:
            raise Unclear
        value = value._replace(year=today.year + span.offset)
    return [next_lunar_date(value, today)]


def _easter(value: Easter, span: Span | None, today: date) -> list[date]:
    """Return the next day that is counted from Easter, or the one in a year that the text names."""
    if value.year:
        years = [value.year]
    elif span:
        years = [today.year + span.offset]
    else:
        years = [today.year, today.year + 1]
    days = [easter_sunday(year) + timedelta(days=value.days) for year in years]
    return [next((day for day in days if day >= today), days[0])]


_READERS: dict[str, Callable[[Any, Span | None, date], list[date]]] = {
    "day": _relative_day,
    "delay": _delayed_day,
    "weekday": _weekday,
    "weekend": _weekend,
    "edge": _edge,
    "month_edge": _month_edge,
    "monthday": _monthday,
    "nth_weekday": _nth_weekday,
    "date": _dates,
    "workdays": _workdays,
    "lunar": _lunar,
    "easter": _easter,
}


def next_date(today: date, day: int, month: int | None = None) -> date:
    """Return the next day with this number, today included.

    day: its number in the month.
    month: the month, 1 for January. None for any month.

    Raises ValueError if no month has it, e.g. for 31 June.
    """
    first_of_this_month = today.replace(day=1)
    # 29 February may be eight years away: 1896 to 1904
    most_months_ahead = 8 * 12 if month else 12
    for months_ahead in range(most_months_ahead + 1):
        first_of_month = shifted(first_of_this_month, months_ahead)
        if month is not None and first_of_month.month != month:
            continue
        days_in_month = monthrange(first_of_month.year, first_of_month.month)[1]
        if not 1 <= day <= days_in_month:
            continue
        candidate = first_of_month.replace(day=day)
        if candidate >= today:
            return candidate
    raise ValueError(day)


def easter_sunday(year: int) -> date:
    """Return Easter Sunday of a year, by the rule of the Gregorian calendar (Butcher's method)."""
    golden_number = year % 19
    century = year // 100
    skipped_leap_days = century - century // 4
    moon_correction = (8 * century + 13) // 25
    # The age of the moon, and from it the full moon in days after 21 March.
    epact = (19 * golden_number + skipped_leap_days - moon_correction + 15) % 30
    full_moon = epact - (epact > 28 or (epact == 28 and golden_number > 10))
    # The Sunday after it.
    day = date(year, 3, 21) + timedelta(days=full_moon)
    return day + timedelta(days=(_SUNDAY - day.weekday() - 1) % 7 + 1)


def nth_weekday(year: int, month: int, nth: int, day: int) -> date | None:
    """Return the nth weekday of a month. None if the month does not have it.

    year, month: the month. January is 1.
    nth: 1 is the first, -1 the last.
    day: 0 for Monday to 6 for Sunday.
    """
    first_weekday, days_in_month = monthrange(year, month)
    first_such_day = 1 + (day - first_weekday) % 7
    # The days of the month that are this weekday, such as 3, 10, 17, 24, 31.
    days = range(first_such_day, days_in_month + 1, 7)
    if nth < 0:
        position = nth
    else:
        position = nth - 1
    if position < len(days):
        return date(year, month, days[position])
    return None
