"""The values of time words: what the readers of shapes make and the grammar combines."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

DAY_KINDS = frozenset(
    (
        "day",
        "delay",
        "weekday",
        "weekend",
        "span",
        "edge",
        "month_edge",
        "date",
        "monthday",
        "nth_weekday",
        "workdays",
        "lunar",
    )
)
UNIT_SECONDS = {"second": 1, "minute": 60, "quarter": 900, "hour": 3600}


class Meaning(NamedTuple):
    """The value of a time word: `Meaning("weekday", Weekday(1, 4))` for "next Friday".

    kind: the kind of time word, which decides the type of `value`.
    is_weak: whether it counts only beside another time word, as "June" or "sat" do.
    """

    kind: str
    value: Any
    is_weak: bool = False


class Lexeme(NamedTuple):
    """A time word at plain[start:end]. A `weak` one counts only beside another."""

    kind: str
    value: Any
    start: int
    end: int
    weak: bool = False


class Delay(NamedTuple):
    """A distance in time: whole `months` and `days`, and elapsed `seconds`. Negative ones are in
    the past.
    """

    months: int
    days: int
    seconds: int


class TimeOfDay(NamedTuple):
    """A time on a clock.

    form: how sure the hour is.
        "bare": an hour from 1 to 12 that may be before or after noon, as in "at 3".
        "colon": written as 9:30, which a part of the day may still move to the evening.
        "fixed": sure, as 15:30 or 3pm.
        "midnight", "eod": these two words. "eod" is the end of the working day.
    """

    hour: int
    minute: int = 0
    second: int = 0
    form: str = "fixed"


class Repetition(NamedTuple):
    """A repetition, as told by a single word.

    days: weekdays 0-6.
    monthdays: 1-31, or -1 for the last.
    nth: which of these weekdays in a month, -1 for the last.
    """

    unit: str
    interval: Fraction = Fraction(1)
    days: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    nth: int = 0


class Span(NamedTuple):
    """A week, month or year of the calendar, counted from the present one.

    unit: `week`, `month` or `year`.
    offset: 0 is the present one, 1 the next, -1 the last.
    """

    unit: str
    offset: int


class Weekend(NamedTuple):
    """A weekend.

    weeks: how many weeks ahead. None if the words do not say.
    is_english_next: English "next weekend", which may mean this week's.
    """

    weeks: int | None
    is_english_next: bool


class Edge(NamedTuple):
    """The first or last day of a week, month or year: "the end of next month"."""

    span: Span
    is_last: bool


class MonthEdge(NamedTuple):
    """The first or last day of a named month: "the end of June". Without `year`, the next one."""

    year: int | None
    month: int
    is_last: bool


class CalendarDate(NamedTuple):
    """A day of a month as written. Nobody has checked yet that it exists."""

    year: int | None
    month: int
    day: int


class Month(NamedTuple):
    """A named month."""

    year: int | None
    month: int


class NthWeekday(NamedTuple):
    """A weekday of a month.

    nth: which of these weekdays, -1 for the last.
    day: the weekday, 0-6.
    month, year: the month and the year, if named.
    months: how many months ahead otherwise; 0 is this month.
    """

    nth: int
    day: int
    month: int | None = None
    year: int | None = None
    months: int = 0


class LunarDate(NamedTuple):
    """A day of the Chinese calendar; `day` 0 is the last of its month. Without `year` the next."""

    month: int
    day: int
    year: int | None = None
    is_leap: bool = False


class Weekday(NamedTuple):
    """A weekday.

    weeks: how many weeks ahead. None for the bare name.
    day: 0-6.
    is_english_next: English "next Friday", which may mean this week's.
    """

    weeks: int | None
    day: int
    is_english_next: bool = False


class Unclear(ValueError):
    """A part of the day that needs an hour."""
