"""Rules of repetition: a small part of RRULE in local time (contract 001, 9)."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from commonplace.errors import InvalidInput

DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_ELAPSED = {"HOURLY": 3600, "MINUTELY": 60}
_SHORTEST = 300
_KEYS = ("FREQ", "INTERVAL", "BYMONTH", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE")
# What each frequency needs and may have, besides INTERVAL.
_PARTS = {
    "MINUTELY": frozenset(),
    "HOURLY": frozenset(),
    "DAILY": frozenset({"BYHOUR", "BYMINUTE"}),
    "WEEKLY": frozenset({"BYDAY", "BYHOUR", "BYMINUTE"}),
    "MONTHLY": frozenset({"BYMONTHDAY", "BYHOUR", "BYMINUTE"}),
    "YEARLY": frozenset({"BYMONTH", "BYMONTHDAY", "BYHOUR", "BYMINUTE"}),
}
# A day that comes at all comes within so many periods, 29 February too.
_PERIODS = 100


def wall(day: date, clock: time, zone: tzinfo) -> datetime:
    """The moment a clock on the wall shows `clock` on `day`: the first of two, and where the clock jumps
    ahead as far after the jump as asked for. Raises OverflowError at the ends of the calendar."""
    shown = datetime.combine(day, clock).replace(tzinfo=zone)
    return shown.astimezone(UTC).astimezone(zone)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule taken apart. `monthdays` may hold -1, the last day of the month."""

    freq: str
    interval: int = 1
    months: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()

    def __str__(self) -> str:
        """The rule as it is stored, its parts in the contract's order."""
        parts = [f"FREQ={self.freq}"]
        if self.interval > 1:
            parts.append(f"INTERVAL={self.interval}")
        names = [DAY_NAMES[day] for day in self.days]
        values = (self.months, self.monthdays, names, self.hours, self.minutes)
        for key, each in zip(_KEYS[2:], values, strict=True):
            if each:
                parts.append(f"{key}={','.join(map(str, each))}")
        return ";".join(parts)

    @property
    def too_often(self) -> bool:
        """Whether it comes more than once in five minutes."""
        return self.freq in _ELAPSED and self.interval * _ELAPSED[self.freq] < _SHORTEST


def rule(text: str) -> Rule:
    """A stored rule taken apart. Raises InvalidInput for anything `read` does not give, e.g. a rule without
    an hour, of another frequency, or of less than 5 minutes."""
    values: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").split(";"):
        key, _, value = part.partition("=")
        if key not in _KEYS or key in values:
            raise _unknown(text)
        values[key] = value
    freq = values.get("FREQ", "")
    if freq not in _PARTS or values.keys() - {"FREQ", "INTERVAL"} != _PARTS[freq]:
        raise _unknown(text)
    try:
        taken = Rule(
            freq,
            _number(values.get("INTERVAL", "1"), 1, 999_999),
            _numbers(values.get("BYMONTH"), 1, 12),
            _numbers(values.get("BYMONTHDAY"), -1, 31),
            tuple(sorted({DAY_NAMES.index(name) for name in values.get("BYDAY", "").split(",") if name})),
            _numbers(values.get("BYHOUR"), 0, 23),
            _numbers(values.get("BYMINUTE"), 0, 59),
        )
    except ValueError:
        raise _unknown(text) from None
    if taken.too_often or 0 in taken.monthdays or (taken.freq == "WEEKLY" and not taken.days):
        raise _unknown(text)
    return taken


def _unknown(text: str) -> InvalidInput:
    return InvalidInput(f'Not a rule of repetition: "{text}". Use e.g. FREQ=DAILY;BYHOUR=9;BYMINUTE=0.')


def _number(text: str, least: int, most: int) -> int:
    if not text.isascii() or len(text) > 6 or not least <= int(text) <= most:
        raise ValueError(text)
    return int(text)


def _numbers(text: str | None, least: int, most: int) -> tuple[int, ...]:
    return tuple(sorted({_number(part, least, most) for part in text.split(",")})) if text is not None else ()


def following(repeat: str, after: datetime, zone: tzinfo, since: datetime | None = None) -> datetime:
    """The first time of the rule `repeat` strictly after the moment `after`, aware, in `zone`.

    `since` is a time of the rule (the reminder's present due time); with an INTERVAL the periods count from
    it. Without it they count from `after` when that is a time of the rule, else from the time found. Hours
    and minutes are elapsed time, the rest is wall time; a month without the day is skipped. Raises
    InvalidInput for a text that is no rule, or a rule with no time left.
    """
    taken = rule(repeat)
    if since is None and taken.freq not in _ELAPSED:
        every = replace(taken, interval=1)
        if next_time(every, after - timedelta(microseconds=1), zone, after) != after:
            taken = every
    return next_time(taken, after, zone, since or after)


def next_time(rule: Rule, after: datetime, zone: tzinfo, since: datetime) -> datetime:
    """As `following`, of a rule already taken apart."""
    try:
        if rule.freq in _ELAPSED:
            return _next_elapsed(rule, after, since).astimezone(zone)
        for day in _days(rule, since.astimezone(zone).date(), after.astimezone(zone).date()):
            for moment in _times(rule, day, zone):
                if moment > after:
                    return moment
    except (OverflowError, ValueError):
        pass
    raise InvalidInput(f'No time of the rule "{rule}" is left. Change the rule.')


def _next_elapsed(rule: Rule, after: datetime, since: datetime) -> datetime:
    step = timedelta(seconds=rule.interval * _ELAPSED[rule.freq])
    start = since.astimezone(UTC)
    return start + ((after.astimezone(UTC) - start) // step + 1) * step


def _times(rule: Rule, day: date, zone: tzinfo) -> list[datetime]:
    return sorted(wall(day, time(hour, minute), zone) for hour in rule.hours for minute in rule.minutes)


def _days(rule: Rule, since: date, after: date) -> Iterator[date]:
    """The days of the rule in order, from a little before `after` on."""
    if rule.freq == "DAILY":
        passed = (after - since).days // rule.interval - 1
        start = since + timedelta(days=passed * rule.interval)
        yield from (start + timedelta(days=step * rule.interval) for step in range(_PERIODS))
    elif rule.freq == "WEEKLY":
        monday = since - timedelta(days=since.weekday())
        start = monday + timedelta(weeks=((after - monday).days // (7 * rule.interval) - 1) * rule.interval)
        for step in range(_PERIODS):
            yield from (start + timedelta(days=7 * step * rule.interval + day) for day in rule.days)
    else:
        yield from _month_days(rule, since, after)


def _month_days(rule: Rule, since: date, after: date) -> Iterator[date]:
    """The days of monthly and yearly rules; months without the day are skipped."""
    if rule.freq == "MONTHLY":
        first = since.year * 12 + since.month - 1
        passed = (after.year * 12 + after.month - 1 - first) // rule.interval - 1
        months = (first + (passed + step) * rule.interval for step in range(_PERIODS * 12))
    else:
        passed = (after.year - since.year) // rule.interval - 1
        years = (since.year + (passed + step) * rule.interval for step in range(_PERIODS))
        months = (year * 12 + month - 1 for year in years for month in rule.months)
    for each in months:
        year, month = divmod(each, 12)
        if year < 1:
            continue
        length = calendar.monthrange(year, month + 1)[1]
        yield from sorted(date(year, month + 1, length if d < 0 else d) for d in set(rule.monthdays) if d <= length)
