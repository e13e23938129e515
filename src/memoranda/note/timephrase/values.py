"""The values that time words have, such as `Weekday(1, 4)` for "next Friday".

The lexer finds time words by patterns, which are called shapes (`shapes.toml`). For each shape, a
function (in `day_readers.py`, for example) turns the words into one of these values. `moments.py`
and `series.py` combine the values of a text into one time.
"""

from __future__ import annotations

from datetime import date
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
        "easter",
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
    """A time word found at `plain[start:end]` of a text.

    kind: the kind of time word, which decides the type of `value`.
    value: what the word means, such as a day of the week.
    weak: whether the word counts only beside another time word, as "June" does.
    """

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


class WeekdayFrom(NamedTuple):
    """A weekday counted from another day: `WeekdayFrom(4, is_before=True)` for "the Friday before".

    day: 0 for Monday to 6 for Sunday.
    """

    day: int
    is_before: bool

    def distance(self, day: date) -> Delay:
        """Return how far it is from this day. It is never the day itself."""
        if self.is_before:
            days = -((day.weekday() - self.day) % 7 or 7)
        else:
            days = (self.day - day.weekday()) % 7 or 7
        return Delay(0, days, 0)


class TimeOfDay(NamedTuple):
    """A time on a clock: `TimeOfDay(15, 30)` for "15:30", `TimeOfDay(3, form="bare")` for "at 3".

    hour: 0 to 24.
    minute, second: 0 to 59.
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
    """A repetition that a single word names: `Repetition("week", days=(0,))` for "Mondays".

    unit: the unit that is repeated, such as `week`.
    interval: how many units pass from one time to the next.
    days: weekdays, 0 for Monday to 6 for Sunday.
    monthdays: days of the month, 1-31, or -1 for the last.
    months: months of the year, 1-12.
    nth: which of these weekdays in a month; -1 is the last, 0 means that the word does not say.
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
    """A weekend: `Weekend(1, True)` for English "next weekend".

    weeks: how many weeks ahead. None if the words do not say.
    is_english_next: whether the words are English "next weekend", which may mean this week's.
    """

    weeks: int | None
    is_english_next: bool


class Edge(NamedTuple):
    """The first or last day of a week, month or year: "the end of next month".

    span: the week, month or year.
    is_last: whether its last day is meant, not its first.
    """

    span: Span
    is_last: bool


class MonthEdge(NamedTuple):
    """The first or last day of a named month: "the end of June".

    year: None for the next month of this name.
    month: 1 for January.
    is_last: whether its last day is meant, not its first.
    """

    year: int | None
    month: int
    is_last: bool


class CalendarDate(NamedTuple):
    """A day of a month as written: `CalendarDate(None, 5, 7)` for "May 7".

    The day may not exist, as 30 February; that is checked later.

    year: None if the words do not name it.
    """

    year: int | None
    month: int
    day: int


class Easter(NamedTuple):
    """A day counted from Easter Sunday: `Easter(1)` for "Easter Monday".

    days: how many days after it. Negative ones are before it.
    year: None for the next such day.
    """

    days: int
    year: int | None = None


class Month(NamedTuple):
    """A named month, 1-12: `Month(None, 6)` for "June". `year` is None if the words do not name it."""

    year: int | None
    month: int


class PossibleRepetition(NamedTuple):
    """One of the repetitions that unclear words may mean: "every other Tuesday" for "every second
    Tuesday".

    words: words that mean this one alone.
    """

    words: str
    repetition: Repetition


class MonthLimit(NamedTuple):
    """The months to which a series is limited: 12 for "only in December", all but 8 for "except in
    August".

    months: 1 to 12, in order.
    """

    months: tuple[int, ...]


class NthWeekday(NamedTuple):
    """A weekday counted within a month: `NthWeekday(2, 0, month=6)` for "second Monday of June".

    nth: which of these weekdays, -1 for the last.
    day: the weekday, 0 for Monday to 6 for Sunday.
    month, year: the month and the year. None if the words do not name them.
    months_ahead: if no month is named, how many months ahead; 0 is the present month.
    years_ahead: how many years ahead, if the weekday is counted in a year. None if it is not.
    """

    nth: int
    day: int
    month: int | None = None
    year: int | None = None
    months_ahead: int = 0
    years_ahead: int | None = None


class LunarDate(NamedTuple):
    """A day of the Chinese calendar.

    day: the day of the month; 0 means the last.
    year: None for the next such day.
    is_leap: whether the month is a leap month.
    """

    month: int
    day: int
    year: int | None = None
    is_leap: bool = False


class Weekday(NamedTuple):
    """A weekday: `Weekday(1, 4)` for "Friday next week", `Weekday(None, 4)` for "Friday".

    weeks: how many weeks ahead. None if the words give only the name.
    day: 0 for Monday to 6 for Sunday.
    is_english_next: whether the words are English "next Friday", which may mean this week's.
    """

    weeks: int | None
    day: int
    is_english_next: bool = False


class Unclear(ValueError):
    """Raised when a part of the day needs an hour to name a time, and the text has no hour."""
