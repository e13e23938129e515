"""Which days of the calendar, which times of day and which rules of repetition words may mean
(contract 001, 9).

Rules are a small part of RRULE in local time.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from memoranda.errors import InvalidInput

UNIT_SECONDS = {"second": 1, "minute": 60, "quarter": 900, "hour": 3600}
DAY_KINDS = (
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
)
_SPAN_OF = {
    "weekday": "week",
    "weekend": "week",
    "monthday": "month",
    "date": "year",
    "month_edge": "year",
}
"""The span that may stand beside a kind of day word: "Friday of next week"."""


class Lexeme(NamedTuple):
    """A time word at plain[start:end]. A `weak` one counts only beside another."""

    kind: str
    value: Any
    start: int
    end: int
    weak: bool = False


class Delay(NamedTuple):
    """A distance in time: whole `months` and `days`, and elapsed `seconds`. Negative ones lie in
    the past.
    """

    months: int
    days: int
    seconds: int


class TimeOfDay(NamedTuple):
    """A time on a clock. `form`: "bare" hours 1-12 that may be before or after noon, "colon" as
    9:30 (a part of the day may still move it), "fixed", "midnight" or "eod"."""

    hour: int
    minute: int = 0
    second: int = 0
    form: str = "fixed"


class Repetition(NamedTuple):
    """A repetition as far as one word tells it: `days` are weekdays 0-6, `monthdays` 1-31 or -1,
    the last; `nth` makes the weekday that of a month, -1 the last."""

    unit: str
    interval: Fraction = Fraction(1)
    days: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    month: int | None = None
    nth: int = 0


class NthWeekday(NamedTuple):
    """A weekday of a month: the `nth`, -1 the last; of a named `month`, else `months` on (0 this
    one).
    """

    nth: int
    day: int
    month: int | None = None
    year: int | None = None
    months: int = 0


class Unclear(ValueError):
    """A part of the day that needs an hour."""


def wall_time(day: date, clock: time, zone: tzinfo) -> datetime:
    """The moment a clock on the wall shows `clock` on `day`: the first of two, and where the clock
    jumps ahead as far after the jump as asked for. Raises OverflowError at the ends of the
    calendar."""
    return datetime.combine(day, clock).replace(tzinfo=zone).astimezone(UTC).astimezone(zone)


def shifted(day: date, months: int, days: int = 0) -> date:
    """`day` some months and days later; the end of a shorter month for a day it lacks. Raises
    OverflowError or ValueError beyond the calendar."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1])) + timedelta(
        days=days
    )


def possible_days(tokens: Sequence[Lexeme], today: date) -> list[date]:
    """The days the day words of one group may mean, in order: one when they are clear, none without
    words. Words that agree ("Thursday, May 7") give one day; those that contradict each other give
    the days of all. Raises ValueError for a day that does not exist, OverflowError beyond the
    calendar."""
    spans = {token.value[0]: token.value for token in tokens if token.kind == "span"}
    used: set[tuple[str, int]] = set()
    choices: list[tuple[Lexeme, list[date]]] = []
    for token in tokens:
        if token.kind in DAY_KINDS and token.kind != "span":
            # A span beside a word may say of which week or year it is
            value = token.value
            is_fixed = (token.kind in ("weekday", "weekend") and value[0] is not None) or (
                token.kind == "date" and value[0][0] is not None
            )
            if is_fixed:
                span = None
            else:
                span = spans.get(_SPAN_OF.get(token.kind, ""))
            used |= {span} if span else set()
            choices.append((token, _days(token, span, today)))
    for token in tokens:
        if token.kind == "span" and token.value not in used and not (token.weak and choices):
            choices.append((token, [_first_day(token.value, today)]))
    every = sorted({day for _, days in choices for day in days})

    def fits(day: date, token: Lexeme, days: list[date]) -> bool:
        # By its bare name it may be of any week
        if token.kind == "weekday" and token.value[0] is None:
            return day.weekday() == token.value[1]
        return day in days

    return [day for day in every if all(fits(day, token, days) for token, days in choices)] or every


def _days(token: Lexeme, span: tuple[str, int] | None, today: date) -> list[date]:
    kind = token.kind
    value = token.value
    if kind == "day":
        return [today + timedelta(days=value)]
    if kind == "delay":
        return [shifted(today, value.months, value.days)]
    if kind == "weekday":
        return _weekday((span[1], value[1], False) if span else value, today)
    if kind == "weekend":
        weeks, english_next = (span[1], False) if span else value
        # The next one, a Saturday counting as its own
        if weeks is None:
            return [today + timedelta(days=(5 - today.weekday()) % 7)]
        return _weekday((weeks, 5, english_next), today)
    if kind == "edge":
        unit, offset, last = value
        first = _first_day((unit, offset), today)
        return [shifted(first, 1 if unit == "month" else 12, -1) if last else first]
    if kind == "monthday":
        return [
            _first_day(span, today).replace(day=value) if span else _next_date(today, day=value)
        ]
    # Of a month without a year the next one, today included
    if kind == "nth_weekday":
        if value.month is None:
            first = shifted(today.replace(day=1), value.months)
            found = nth_weekday(first.year, first.month, value.nth, value.day)
        else:
            years = (value.year,) if value.year else range(today.year, today.year + 9)
            days = (nth_weekday(year, value.month, value.nth, value.day) for year in years)
            found = next((each for each in days if each and (value.year or each >= today)), None)
        if found is None:
            raise ValueError(value)
        return [found]
    year = today.year + span[1] if span else None
    if kind == "date":
        return _dates(value, year, today)
    year = value[0] or year
    month = value[1]
    last = value[2]
    firsts = [date(each, month, 1) for each in ([year] if year else [today.year, today.year + 1])]
    ends = [shifted(first, 1, -1) if last else first for first in firsts]
    return [next((day for day in ends if day >= today), ends[-1])]


def _weekday(value: tuple[int | None, int, bool], today: date) -> list[date]:
    """Bare: the next one ahead, today's name being ambiguous. Else of a calendar week; "next X"
    said while this week's is ahead may be either."""
    weeks, weekday, english_next = value
    if weeks is None:
        ahead = (weekday - today.weekday()) % 7
        if ahead:
            return [today + timedelta(days=ahead)]
        return [today, today + timedelta(days=7)]
    day = _first_day(("week", weeks), today) + timedelta(days=weekday)
    this = day - timedelta(days=7)
    if english_next and this > today:
        return [this, day]
    return [day]


def _first_day(span: tuple[str, int], today: date) -> date:
    unit, offset = span
    if unit == "week":
        return today + timedelta(days=7 * offset - today.weekday())
    if unit == "month":
        return shifted(today.replace(day=1), offset)
    return date(today.year + offset, 1, 1)


def _next_date(today: date, day: int, month: int | None = None) -> date:
    """The next such day of a month (of every month by default), today included. Raises ValueError
    for none.
    """
    first = today.replace(day=1)
    # 29 February may be eight years away
    for months in range(97 if month else 13):
        found = shifted(first, months)
        is_there = (
            month in (None, found.month) and 1 <= day <= monthrange(found.year, found.month)[1]
        )
        if is_there and found.replace(day=day) >= today:
            return found.replace(day=day)
    raise ValueError(day)


def nth_weekday(year: int, month: int, nth: int, day: int) -> date | None:
    """The nth such weekday of a month, -1 the last; None when it has none."""
    first = date(year, month, 1)
    length = monthrange(year, month)[1]
    days = range(1 + (day - first.weekday()) % 7, length + 1, 7)
    at = nth if nth < 0 else nth - 1
    if at < len(days):
        return date(year, month, days[at])
    return None


def _dates(
    dates: Sequence[tuple[int | None, int, int]], of_year: int | None, today: date
) -> list[date]:
    """The dates (year, month, day), one without a year being the next one. 5/7 may be two; one of
    several that does not exist is left out."""
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
    """A wall time `days` after the day it is said of (1: after its midnight). `word` is "midnight"
    or "eod" for these two."""

    at: time
    days: int = 0
    word: str = ""

    def on(self, day: date, zone: tzinfo) -> datetime:
        """The moment of this hour of `day`."""
        return wall_time(day + timedelta(days=self.days), self.at, zone)


# The hour a part of the day stands for when no clock is given; the small hours have none.
_HOUR_OF = {"morning": 9, "noon": 12, "afternoon": 15, "evening": 19, "night": 20}
# The hours of the day a part may be said of when the clock is of 24 hours.
_SPANS = {
    "morning": range(0, 13),
    "small hours": range(0, 12),
    "noon": range(10, 16),
    "afternoon": range(12, 20),
    "evening": range(16, 24),
    "night": range(0, 24),
}


def possible_hours(tokens: Sequence[Lexeme]) -> list[Hour]:
    """All times of day the words may mean, several when they are ambiguous, none without words. The
    night goes on after midnight: 12 to 4 are of the next day. Raises ValueError for a clock its
    part of the day does not have, Unclear when the hour is missing."""
    parts = list(dict.fromkeys(token.value for token in tokens if token.kind == "part"))
    clocks: list[TimeOfDay] = [token.value for token in tokens if token.kind == "clock"]
    if not clocks:
        if any(part not in _HOUR_OF for part in parts):
            raise Unclear
        return [Hour(time(_HOUR_OF[part])) for part in parts]
    found: list[Hour] = []
    for clock, part in product(clocks, parts or [None]):
        hour = clock.hour
        form = clock.form
        hours = [hour]
        if part is not None and form == "eod":
            hours = [18]
        # 12 in the morning is not decided here
        elif part is None or (part == "morning" and hour == 12):
            if form == "bare":
                hours = [hour % 12, hour % 12 + 12]
            else:
                hours = hours
        elif form in ("bare", "colon"):
            if part != "morning" and not (part == "noon" and hour >= 10):
                is_next_day = (part == "night" and (hour == 12 or hour < 5)) or (
                    part == "evening" and hour == 12
                )
                hours = [hour % 12 + (0 if part == "small hours" else 24 if is_next_day else 12)]
        elif part == "night" and (hour in (0, 24) or form == "midnight"):
            hours = [24]
        elif hour not in _SPANS[part]:
            raise ValueError(part)
        word = form if form in ("midnight", "eod") else ""
        found += [
            Hour(time(each % 24, clock.minute, clock.second), each // 24, word) for each in hours
        ]
    return list(dict.fromkeys(found))


_DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_KEYS = ("FREQ", "INTERVAL", "BYMONTH", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE")
_NEEDED_KEYS = {
    "MINUTELY": (),
    "HOURLY": (),
    "DAILY": _KEYS[5:],
    "WEEKLY": _KEYS[4:],
    "MONTHLY": ("BYMONTHDAY", *_KEYS[5:]),
    "YEARLY": ("BYMONTH", "BYMONTHDAY", *_KEYS[5:]),
}
"""The keys a stored rule of each frequency has, besides INTERVAL."""
_SECONDS = {"HOURLY": 3600, "MINUTELY": 60}
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
# Seconds between two times of a rule
_SHORTEST = 300
# A day that comes at all comes within so many periods, 29 February too
_PERIODS = 100


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule taken apart. `monthdays` may hold -1, the last day of the month; `nth`, of a monthly
    rule, which of the month's weekdays `days` it is, -1 the last."""

    freq: str
    interval: int = 1
    months: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    nth: int = 0

    def __str__(self) -> str:
        """The rule as it is stored, its parts in the contract's order."""
        interval = (self.interval,) if self.interval > 1 else ()
        names = [f"{self.nth or ''}{_DAY_NAMES[day]}" for day in self.days]
        values = (
            (self.freq,),
            interval,
            self.months,
            self.monthdays,
            names,
            self.hours,
            self.minutes,
        )
        pairs = zip(_KEYS, values, strict=True)
        return ";".join(f"{key}={','.join(map(str, each))}" for key, each in pairs if each)

    @property
    def is_elapsed(self) -> bool:
        """Whether it counts elapsed time, not days of the calendar."""
        return self.freq in _SECONDS


def parse_rule(text: str) -> Recurrence:
    """A stored rule taken apart. Raises InvalidInput for anything `read` does not give, e.g. a rule
    without an hour, of another frequency, or of less than 5 minutes."""
    parts = [part.partition("=") for part in text.strip().upper().removeprefix("RRULE:").split(";")]
    values = {key: value for key, _, value in parts}
    try:
        needed = _needed(values)
        if len(parts) > len(values) or values.keys() - {"FREQ", "INTERVAL"} != set(needed):
            raise ValueError(text)
        (interval,) = _numbers(values.get("INTERVAL", "1"), 1, 999_999)
        names = values.get("BYDAY", "")
        nth = 0
        if values["FREQ"] == "MONTHLY" and names:
            (nth,), names = _numbers(names[:-2], -1, 5), names[-2:]
        days = tuple(sorted({_DAY_NAMES.index(name) for name in names.split(",") if name}))
        months = _numbers(values.get("BYMONTH"), 1, 12)
        monthdays = _numbers(values.get("BYMONTHDAY"), -1, 31)
        hours = _numbers(values.get("BYHOUR"), 0, 23)
        minutes = _numbers(values.get("BYMINUTE"), 0, 59)
        rule = Recurrence(values["FREQ"], interval, months, monthdays, days, hours, minutes, nth)
        lacks_day = (rule.freq == "WEEKLY" and not rule.days) or (
            rule.freq == "MONTHLY" and names and not nth
        )
        is_too_often = rule.is_elapsed and rule.interval * _SECONDS[rule.freq] < _SHORTEST
        if is_too_often or 0 in rule.monthdays or lacks_day:
            raise ValueError(text)
    except (KeyError, ValueError):
        raise InvalidInput(
            f'Not a rule of repetition: "{text}". Use e.g. FREQ=DAILY;BYHOUR=9;BYMINUTE=0.'
        ) from None
    return rule


def _needed(given: Mapping[str, str]) -> tuple[str, ...]:
    """The keys a rule has besides FREQ and INTERVAL. Raises KeyError for a frequency there is not."""
    if given.get("FREQ") == "MONTHLY" and "BYDAY" in given:
        return _KEYS[4:]
    return _NEEDED_KEYS[given.get("FREQ", "")]


def completed(repeat: str, due: datetime) -> str:
    """A rule written by hand, with what calendars leave to the first time filled in from the local
    time `due`.
    """
    given = dict(
        part.partition("=")[::2]
        for part in repeat.strip().upper().removeprefix("RRULE:").split(";")
    )
    said = dict(
        zip(
            _KEYS[2:],
            (due.month, due.day, _DAY_NAMES[due.weekday()], due.hour, due.minute),
            strict=True,
        )
    )
    if given.get("FREQ") in _NEEDED_KEYS:
        needed = _needed(given)
    else:
        needed = ()
    return ";".join(
        [repeat.strip().rstrip(";"), *(f"{key}={said[key]}" for key in needed if key not in given)]
    )


def _numbers(text: str | None, least: int, most: int) -> tuple[int, ...]:
    parts = [] if text is None else text.split(",")
    if not all(len(p) <= 6 and p.isascii() and least <= int(p) <= most for p in parts):
        raise ValueError(text)
    return tuple(sorted({int(part) for part in parts}))


def following(
    repeat: str, after: datetime, zone: tzinfo, since: datetime | None = None
) -> datetime:
    """The first time of the rule `repeat` strictly after the moment `after`, aware, in `zone`.

    `since` is a time of the rule; with an INTERVAL the periods count from it, without it from
    `after` when that is a time of the rule, else from the time found. Hours and minutes are elapsed
    time, the rest is wall time; a month without the day is skipped. Raises InvalidInput for a text
    that is no rule, or a rule with no time left.
    """
    rule = parse_rule(repeat)
    if since is None and not rule.is_elapsed:
        every = replace(rule, interval=1)
        if _next_time(every, after - timedelta(microseconds=1), zone, after) != after:
            rule = every
    return _next_time(rule, after, zone, since or after)


def _next_time(rule: Recurrence, after: datetime, zone: tzinfo, since: datetime) -> datetime:
    try:
        if rule.is_elapsed:
            step = timedelta(seconds=rule.interval * _SECONDS[rule.freq])
            start = since.astimezone(UTC)
            return (start + ((after.astimezone(UTC) - start) // step + 1) * step).astimezone(zone)
        for day in _rule_days(rule, since.astimezone(zone).date(), after.astimezone(zone).date()):
            for moment in sorted(
                wall_time(day, time(h, m), zone) for h in rule.hours for m in rule.minutes
            ):
                if moment > after:
                    return moment
    except (OverflowError, ValueError):
        pass
    raise InvalidInput(f'No time of the rule "{rule}" is left. Change the rule.')


def _rule_days(rule: Recurrence, since: date, after: date) -> Iterator[date]:
    """The days of the rule in order, from a period before `after` on; months without the day are
    skipped.
    """
    step = rule.interval
    if rule.freq in ("DAILY", "WEEKLY"):
        length = step * (7 if rule.freq == "WEEKLY" else 1)
        if rule.freq == "WEEKLY":
            first = since - timedelta(days=since.weekday())
        else:
            first = since
        first += timedelta(days=((after - first).days // length - 1) * length)
        for period in range(_PERIODS):
            yield from (first + timedelta(days=period * length + day) for day in rule.days or (0,))
        return
    start = since.year * 12 + since.month - 1
    now = after.year * 12 + after.month - 1
    if rule.freq == "MONTHLY":
        start += ((now - start) // step - 1) * step
        months = (start + period * step for period in range(_PERIODS * 12))
    else:
        first_year = since.year + ((after.year - since.year) // step - 1) * step
        months = (
            (first_year + period * step) * 12 + month - 1
            for period in range(_PERIODS)
            for month in rule.months
        )
    for year, month in (divmod(each, 12) for each in months if each >= 12):
        if rule.nth:
            yield from filter(
                None, (nth_weekday(year, month + 1, rule.nth, day) for day in rule.days)
            )
        else:
            length = monthrange(year, month + 1)[1]
            days = {length if day < 0 else day for day in rule.monthdays if day <= length}
            yield from (date(year, month + 1, day) for day in sorted(days))


def first_times(
    tokens: tuple[Lexeme, ...], now: datetime, zone: tzinfo, day_hour: int
) -> list[tuple[datetime, Recurrence]]:
    """The rules the words of a group may mean, each with its first time after `now`; none when a
    part is missing or two contradict each other. Raises ValueError for a rule that cannot be: too
    often, 30 February, 25:00."""
    meant: list[Repetition] = list(
        dict.fromkeys(token.value for token in tokens if token.kind == "repeat")
    )
    # "every morning on weekdays" is that of the weekdays
    if len(meant) > 1:
        meant = [each for each in meant if each != Repetition("day")]
    if len(meant) != 1:
        return []
    repetition = meant[0]
    kinds = {token.kind for token in tokens}
    if repetition.interval == 0:
        raise ValueError("interval")
    named = [token for token in tokens if token.kind in DAY_KINDS]
    hours = possible_hours(tokens) or [Hour(time(day_hour))]
    if repetition.unit in UNIT_SECONDS:
        minutes = repetition.interval * UNIT_SECONDS[repetition.unit] / 60
        if minutes % 60:
            rule = Recurrence("MINUTELY", int(minutes))
        else:
            rule = Recurrence("HOURLY", int(minutes / 60))
        if minutes.denominator != 1 or minutes * 60 < _SHORTEST:
            raise ValueError(minutes)
        if named or kinds & {"clock", "part", "instant"}:
            return []
        return [(_next_time(rule, now, zone, now), rule)]
    if repetition.interval.denominator != 1 or "instant" in kinds:
        return []
    rules = []
    for rule in _rules(repetition, named):
        for hour in hours:
            timed = replace(rule, hours=(hour.at.hour,), minutes=(hour.at.minute,))
            # An hour after the day's midnight
            if hour.days and rule.freq == "WEEKLY":
                timed = replace(timed, days=tuple(sorted((day + 1) % 7 for day in rule.days)))
            # Dates cannot be moved
            if not hour.days or rule.freq in ("DAILY", "WEEKLY"):
                rules.append(timed)
    # The first time starts the count of the interval, so it does not wait for one.
    times = [(_next_time(replace(rule, interval=1), now, zone, now), rule) for rule in rules]
    return sorted(times, key=lambda pair: pair[0])


def _rules(repetition: Repetition, named: list[Lexeme]) -> list[Recurrence]:
    """The rules, without an hour, of a repetition and the day words beside it."""
    unit, interval, days, monthdays, month, nth = repetition
    plain = Recurrence(
        _FREQUENCIES[unit], int(interval), (month,) if month else (), monthdays, days, nth=nth
    )
    if unit == "day" or days or monthdays:
        if named:
            return []
        return [plain]
    kinds = [token.kind for token in named]
    values = [token.value for token in named]
    if unit == "week":
        if kinds == ["weekend"]:
            return [replace(plain, days=(5,))]
        known = kinds and all(
            kind == "weekday" and value[0] is None
            for kind, value in zip(kinds, values, strict=True)
        )
        if known:
            return [replace(plain, days=tuple(sorted({value[1] for value in values})))]
        return []
    if len(named) != 1:
        return []
    kind = kinds[0]
    value = values[0]
    if unit == "month":
        if kind == "edge" and value[:2] == ("month", 0):
            kind = "monthday"
            value = -1 if value[2] else 1
        if kind == "monthday":
            return [replace(plain, monthdays=(value,))]
        return []
    if unit != "year":
        return []
    dates: list[tuple[int, int]] = []
    if kind == "date" and value[0][0] is None:
        dates = [(m, d) for _, m, d in value if 1 <= m <= 12 and 1 <= d <= monthrange(2000, m)[1]]
        if not dates:
            raise ValueError(value)
    elif kind == "month_edge" and value[0] is None:
        dates = [(value[1], -1 if value[2] else 1)]
    elif kind == "edge" and value[:2] == ("year", 0):
        dates = [(12, 31) if value[2] else (1, 1)]
    return [replace(plain, months=(month,), monthdays=(day,)) for month, day in dates]
