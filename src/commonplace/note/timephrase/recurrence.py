"""Rules of repetition: a small part of RRULE in local time (contract 001, 9), and the rules that words mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from commonplace.errors import InvalidInput
from commonplace.note.timephrase.candidates import (
    DAY_KINDS,
    Hour,
    month_length,
    nth_weekday,
    possible_hours,
    wall_time,
)
from commonplace.note.timephrase.lexer import UNIT_SECONDS, Lexeme, Repetition

_DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_KEYS = ("FREQ", "INTERVAL", "BYMONTH", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE")
_NEEDED_KEYS = {
    "MINUTELY": (), "HOURLY": (), "DAILY": _KEYS[5:], "WEEKLY": _KEYS[4:], "MONTHLY": ("BYMONTHDAY", *_KEYS[5:]),
    "YEARLY": ("BYMONTH", "BYMONTHDAY", *_KEYS[5:]),
}  # fmt: skip
"""The keys a stored rule of each frequency has, besides INTERVAL."""
_SECONDS = {"HOURLY": 3600, "MINUTELY": 60}
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_SHORTEST = 300
_PERIODS = 100
"""A day that comes at all comes within so many periods, 29 February too."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule taken apart. `monthdays` may hold -1, the last day of the month; `nth`, of a monthly rule, which of the
    month's weekdays `days` it is, -1 the last."""

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
        values = ((self.freq,), interval, self.months, self.monthdays, names, self.hours, self.minutes)
        pairs = zip(_KEYS, values, strict=True)
        return ";".join(f"{key}={','.join(map(str, each))}" for key, each in pairs if each)

    @property
    def is_elapsed(self) -> bool:
        """Whether it counts elapsed time, not days of the calendar."""
        return self.freq in _SECONDS

    @property
    def is_too_often(self) -> bool:
        """Whether it comes more than once in five minutes."""
        return self.is_elapsed and self.interval * _SECONDS[self.freq] < _SHORTEST


def parse_rule(text: str) -> Recurrence:
    """A stored rule taken apart. Raises InvalidInput for anything `read` does not give, e.g. a rule without
    an hour, of another frequency, or of less than 5 minutes."""
    parts = [part.partition("=") for part in text.strip().upper().removeprefix("RRULE:").split(";")]
    values = {key: value for key, _, value in parts}
    try:
        needed = _needed(values)
        if len(parts) > len(values) or values.keys() - {"FREQ", "INTERVAL"} != set(needed):
            raise ValueError(text)
        (interval,) = _numbers(values.get("INTERVAL", "1"), 1, 999_999)
        names, nth = values.get("BYDAY", ""), 0
        if values["FREQ"] == "MONTHLY" and names:
            (nth,), names = _numbers(names[:-2], -1, 5), names[-2:]
        days = tuple(sorted({_DAY_NAMES.index(name) for name in names.split(",") if name}))
        months, monthdays = _numbers(values.get("BYMONTH"), 1, 12), _numbers(values.get("BYMONTHDAY"), -1, 31)
        hours, minutes = _numbers(values.get("BYHOUR"), 0, 23), _numbers(values.get("BYMINUTE"), 0, 59)
        rule = Recurrence(values["FREQ"], interval, months, monthdays, days, hours, minutes, nth)
        lacks_day = (rule.freq == "WEEKLY" and not rule.days) or (rule.freq == "MONTHLY" and names and not nth)
        if rule.is_too_often or 0 in rule.monthdays or lacks_day:
            raise ValueError(text)
    except (KeyError, ValueError):
        raise InvalidInput(f'Not a rule of repetition: "{text}". Use e.g. FREQ=DAILY;BYHOUR=9;BYMINUTE=0.') from None
    return rule


def _needed(given: Mapping[str, str]) -> tuple[str, ...]:
    """The keys a rule has besides FREQ and INTERVAL. Raises KeyError for a frequency there is not."""
    if given.get("FREQ") == "MONTHLY" and "BYDAY" in given:
        return _KEYS[4:]
    return _NEEDED_KEYS[given.get("FREQ", "")]


def completed(repeat: str, due: datetime) -> str:
    """A rule written by hand, with what calendars leave to the first time filled in from the local time `due`."""
    given = dict(part.partition("=")[::2] for part in repeat.strip().upper().removeprefix("RRULE:").split(";"))
    said = dict(zip(_KEYS[2:], (due.month, due.day, _DAY_NAMES[due.weekday()], due.hour, due.minute), strict=True))
    needed = _needed(given) if given.get("FREQ") in _NEEDED_KEYS else ()
    missing = [key for key in needed if key not in given]
    return ";".join([repeat.strip().rstrip(";"), *(f"{key}={said[key]}" for key in missing)])


def _numbers(text: str | None, least: int, most: int) -> tuple[int, ...]:
    parts = [] if text is None else text.split(",")
    if not all(len(p) <= 6 and p.isascii() and least <= int(p) <= most for p in parts):
        raise ValueError(text)
    return tuple(sorted({int(part) for part in parts}))


def following(repeat: str, after: datetime, zone: tzinfo, since: datetime | None = None) -> datetime:
    """The first time of the rule `repeat` strictly after the moment `after`, aware, in `zone`.

    `since` is a time of the rule; with an INTERVAL the periods count from it, without it from `after` when that is a
    time of the rule, else from the time found. Hours and minutes are elapsed time, the rest is wall time; a month
    without the day is skipped. Raises InvalidInput for a text that is no rule, or a rule with no time left.
    """
    rule = parse_rule(repeat)
    if since is None and not rule.is_elapsed:
        every = replace(rule, interval=1)
        if _next_time(every, after - timedelta(microseconds=1), zone, after) != after:
            rule = every
    return _next_time(rule, after, zone, since or after)


def _next_time(rule: Recurrence, after: datetime, zone: tzinfo, since: datetime) -> datetime:
    """As `following`, of a rule already taken apart."""
    try:
        if rule.is_elapsed:
            step = timedelta(seconds=rule.interval * _SECONDS[rule.freq])
            start = since.astimezone(UTC)
            return (start + ((after.astimezone(UTC) - start) // step + 1) * step).astimezone(zone)
        for day in _days(rule, since.astimezone(zone).date(), after.astimezone(zone).date()):
            for moment in sorted(wall_time(day, time(h, m), zone) for h in rule.hours for m in rule.minutes):
                if moment > after:
                    return moment
    except (OverflowError, ValueError):
        pass
    raise InvalidInput(f'No time of the rule "{rule}" is left. Change the rule.')


def _days(rule: Recurrence, since: date, after: date) -> Iterator[date]:
    """The days of the rule in order, from a period before `after` on; months without the day are skipped."""
    step = rule.interval
    if rule.freq in ("DAILY", "WEEKLY"):
        length = step * (7 if rule.freq == "WEEKLY" else 1)
        first = since - timedelta(days=since.weekday()) if rule.freq == "WEEKLY" else since
        first += timedelta(days=((after - first).days // length - 1) * length)
        for period in range(_PERIODS):
            yield from (first + timedelta(days=period * length + day) for day in rule.days or (0,))
        return
    start, now = since.year * 12 + since.month - 1, after.year * 12 + after.month - 1
    if rule.freq == "MONTHLY":
        start += ((now - start) // step - 1) * step
        months = (start + period * step for period in range(_PERIODS * 12))
    else:
        first_year = since.year + ((after.year - since.year) // step - 1) * step
        months = ((first_year + period * step) * 12 + month - 1 for period in range(_PERIODS) for month in rule.months)
    for each in months:
        year, month = each // 12, each % 12 + 1
        if year >= 1:
            length = month_length(year, month)
            if rule.nth:
                yield from filter(None, (nth_weekday(year, month, rule.nth, day) for day in rule.days))
                continue
            yield from sorted(date(year, month, length if d < 0 else d) for d in set(rule.monthdays) if d <= length)


def first_times(
    tokens: tuple[Lexeme, ...], now: datetime, zone: tzinfo, day_hour: int
) -> list[tuple[datetime, Recurrence]]:
    """The rules the words of a group may mean, each with its first time after `now`; none when a part is missing or
    two contradict each other. Raises ValueError for a rule that cannot be: too often, 30 February, 25:00."""
    meant: list[Repetition] = list(dict.fromkeys(token.value for token in tokens if token.kind == "repeat"))
    if len(meant) > 1:  # "every morning on weekdays" is that of the weekdays
        meant = [each for each in meant if each != Repetition("day")]
    if len(meant) != 1:
        return []
    repetition, kinds = meant[0], {token.kind for token in tokens}
    if repetition.interval == 0:
        raise ValueError("interval")
    named = [token for token in tokens if token.kind in DAY_KINDS]
    hours = possible_hours(tokens) or [Hour(time(day_hour))]
    if repetition.unit in UNIT_SECONDS:
        minutes = repetition.interval * UNIT_SECONDS[repetition.unit] / 60
        rule = Recurrence("MINUTELY", int(minutes)) if minutes % 60 else Recurrence("HOURLY", int(minutes / 60))
        if minutes.denominator != 1 or rule.is_too_often:
            raise ValueError(minutes)
        return [] if named or kinds & {"clock", "part", "instant"} else [(_next_time(rule, now, zone, now), rule)]
    if repetition.interval.denominator != 1 or "instant" in kinds:
        return []
    rules = []
    for rule in _rules(repetition, named):
        for hour in hours:
            timed = replace(rule, hours=(hour.at.hour,), minutes=(hour.at.minute,))
            if hour.days and rule.freq == "WEEKLY":  # an hour after the day's midnight
                timed = replace(timed, days=tuple(sorted((day + 1) % 7 for day in rule.days)))
            if not hour.days or rule.freq in ("DAILY", "WEEKLY"):  # dates cannot be moved
                rules.append(timed)
    # The first time starts the count of the interval, so it does not wait for one.
    times = [(_next_time(replace(rule, interval=1), now, zone, now), rule) for rule in rules]
    return sorted(times, key=lambda pair: pair[0])


def _rules(repetition: Repetition, named: list[Lexeme]) -> list[Recurrence]:
    """The rules, without an hour, of a repetition and the day words beside it."""
    unit, _, days, monthdays, month, nth = repetition
    plain = Recurrence(
        _FREQUENCIES[unit], int(repetition.interval), (month,) if month else (), monthdays, days, nth=nth
    )
    if unit == "day" or days or monthdays:
        return [] if named else [plain]
    kinds, values = [token.kind for token in named], [token.value for token in named]
    if unit == "week":
        if kinds == ["weekend"]:
            return [replace(plain, days=(5,))]
        known = kinds and all(kind == "weekday" and value[0] is None for kind, value in zip(kinds, values, strict=True))
        return [replace(plain, days=tuple(sorted({value[1] for value in values})))] if known else []
    if len(named) != 1:
        return []
    kind, value = kinds[0], values[0]
    if kind == "monthday" and unit == "month":
        return [replace(plain, monthdays=(value,))]
    if kind == "edge" and value[:2] == ("month", 0) and unit == "month":
        return [replace(plain, monthdays=(-1 if value[2] else 1,))]
    if unit != "year":
        return []
    if kind == "date" and value[0][0] is None:
        dates = [(m, d) for _, m, d in value if 1 <= m <= 12 and 1 <= d <= month_length(2000, m)]
        if not dates:
            raise ValueError(value)
        return [replace(plain, months=(month,), monthdays=(day,)) for month, day in dates]
    if kind == "month_edge" and value[0] is None:
        return [replace(plain, months=(value[1],), monthdays=(-1 if value[2] else 1,))]
    if kind == "edge" and value[:2] == ("year", 0):
        return [replace(plain, months=(12 if value[2] else 1,), monthdays=(31 if value[2] else 1,))]
    return []
