"""Rules of repetition: a small part of RRULE in local time, with the end and the zone of a series.

`FREQ;INTERVAL;BYMONTH;BYMONTHDAY;BYDAY;BYHOUR;BYMINUTE;UNTIL;TZID`, in this order. UNTIL is the
last day, inclusive; for a rule of hours it is the last moment on a local clock. TZID names the zone
of the hours, if it is not the reader's. In any rule, BYMONTH limits the times to these months.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import product
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memoranda.errors import InvalidInput
from memoranda.note.timephrase.days import nth_weekday, wall_time

_DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_CLOCK_KEYS = ("BYHOUR", "BYMINUTE")
# The keys a stored rule of each frequency has, apart from those it may have.
_NEEDED_KEYS: dict[str, tuple[str, ...]] = {
    "MINUTELY": (),
    "HOURLY": (),
    "DAILY": _CLOCK_KEYS,
    "WEEKLY": ("BYDAY", *_CLOCK_KEYS),
    "MONTHLY": ("BYMONTHDAY", *_CLOCK_KEYS),
    "YEARLY": ("BYMONTH", "BYMONTHDAY", *_CLOCK_KEYS),
}
# Keys that every rule may have.
_OPTIONAL_KEYS = {"FREQ", "INTERVAL", "BYMONTH", "UNTIL", "TZID"}
_SECONDS = {"HOURLY": 3600, "MINUTELY": 60}
SHORTEST = 300
"""Seconds between two times of a rule, at least."""
# How many periods (days, weeks, months or years) are searched for the next time. If a day comes at
# all, it comes within these, even 29 February of every third year. Those in months that the rule
# leaves out are passed over, and do not count.
_PERIODS = 100


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule in its parts.

    freq: `MINUTELY`, `HOURLY`, `DAILY`, `WEEKLY`, `MONTHLY` or `YEARLY`.
    interval: how many units are from one time to the next: 2 for every other day.
    months: the only months in which it is due, 1 to 12. Empty for all of them.
    monthdays: 1 to 31, or -1 for the last day of the month.
    days: weekdays, 0 for Monday.
    hours, minutes: the hours (0 to 23) and minutes of a day at which it is due.
    nth: for a monthly rule, which of these weekdays of the month; -1 is the last.
    until: the last time, on a local clock.
    zone_name: the IANA name of the zone of the hours. None means the reader's zone.
    """

    freq: str
    interval: int = 1
    months: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    nth: int = 0
    until: datetime | None = None
    zone_name: str | None = None

    def __str__(self) -> str:
        """Return the rule as it is stored: `FREQ=DAILY;BYHOUR=9;BYMINUTE=0`."""
        # `2MO` is the second Monday.
        nth = str(self.nth) if self.nth else ""
        # The stored text has its keys in this order.
        values_by_key: dict[str, Sequence[str | int]] = {
            "FREQ": (self.freq,),
            "INTERVAL": (self.interval,) if self.interval > 1 else (),
            "BYMONTH": self.months,
            "BYMONTHDAY": self.monthdays,
            "BYDAY": [f"{nth}{_DAY_NAMES[day]}" for day in self.days],
            "BYHOUR": self.hours,
            "BYMINUTE": self.minutes,
        }
        parts = []
        for key, values in values_by_key.items():
            if values:
                parts.append(f"{key}={','.join(map(str, values))}")
        if self.until is not None:
            # A series of hours or minutes ends at a moment, any other at a day.
            form = "%Y%m%dT%H%M%S" if self.is_elapsed else "%Y%m%d"
            parts.append(f"UNTIL={self.until:{form}}")
        if self.zone_name is not None:
            parts.append(f"TZID={self.zone_name}")
        return ";".join(parts)

    @property
    def is_elapsed(self) -> bool:
        """Whether the rule counts elapsed time, and not days of the calendar."""
        return self.freq in _SECONDS

    def zone(self, reader_zone: tzinfo) -> tzinfo:
        """Return the zone whose clock the rule follows."""
        if self.zone_name:
            return ZoneInfo(self.zone_name)
        return reader_zone


def parse_rule(text: str) -> Recurrence:
    """Parse a stored rule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0".

    Raises InvalidInput for a rule that `read` never gives, e.g. one without an hour, of another
    frequency, or of less than 5 minutes.
    """
    try:
        return _parse_rule(text)
    except (KeyError, ValueError, ZoneInfoNotFoundError, OSError):
        raise InvalidInput(
            f'Not a rule of repetition: "{text}". Use e.g. FREQ=DAILY;BYHOUR=9;BYMINUTE=0.'
        ) from None


def _parse_rule(text: str) -> Recurrence:
    """Parse a stored rule.

    Raises KeyError, ValueError, OSError or ZoneInfoNotFoundError for a text that is not a rule.
    """
    pairs = [part.partition("=") for part in text.strip().removeprefix("RRULE:").split(";")]
    values_as_written = {key.upper(): value for key, _, value in pairs}
    values = {key: value.upper() for key, value in values_as_written.items()}
    has_key_twice = len(pairs) > len(values)
    # Not one key more or less than the frequency needs, apart from the optional ones.
    needed = set(_needed(values))
    has_needed_keys = needed <= values.keys() <= needed | _OPTIONAL_KEYS
    if has_key_twice or not has_needed_keys:
        raise ValueError(text)
    # The names of zones keep their case.
    zone_name = values_as_written.get("TZID")
    if zone_name is not None:
        # Raises an error for an unknown zone.
        ZoneInfo(zone_name)

    # In a monthly rule, a number is before the weekday: `2MO` is the second Monday.
    nth = 0
    day_names = values.get("BYDAY", "")
    if values["FREQ"] == "MONTHLY" and day_names:
        (nth,) = _numbers(day_names[:-2], least=-1, most=5)
        day_names = day_names[-2:]
    days = {_DAY_NAMES.index(name) for name in day_names.split(",") if name}
    (interval,) = _numbers(values.get("INTERVAL", "1"), least=1, most=999_999)
    rule = Recurrence(
        values["FREQ"],
        interval,
        months=_numbers(values.get("BYMONTH"), least=1, most=12),
        monthdays=_numbers(values.get("BYMONTHDAY"), least=-1, most=31),
        days=tuple(sorted(days)),
        hours=_numbers(values.get("BYHOUR"), least=0, most=23),
        minutes=_numbers(values.get("BYMINUTE"), least=0, most=59),
        nth=nth,
        until=_until(values.get("UNTIL")),
        zone_name=zone_name,
    )
    _check(rule, day_names)
    return rule


def _check(rule: Recurrence, day_names: str) -> None:
    """Raise ValueError for a rule that lacks its day, or repeats too often.

    day_names: the weekdays of the rule as they are stored. Empty without any.
    """
    is_too_often = rule.is_elapsed and rule.interval * _SECONDS[rule.freq] < SHORTEST
    lacks_weekday = rule.freq == "WEEKLY" and not rule.days
    # A monthly "BYDAY=MO" does not say which Monday of the month.
    lacks_nth = rule.freq == "MONTHLY" and bool(day_names) and not rule.nth
    # -1 is the last day of a month, 1 the first.
    has_day_zero = 0 in rule.monthdays
    if is_too_often or lacks_weekday or lacks_nth or has_day_zero:
        raise ValueError(str(rule))


def _until(text: str | None) -> datetime | None:
    """Parse the end of a rule. A day ends with its last second. None for a rule without an end."""
    if text is None:
        return None
    if len(text) == 8:
        return datetime.strptime(text, "%Y%m%d").replace(hour=23, minute=59, second=59)
    return datetime.strptime(text, "%Y%m%dT%H%M%S")


def _needed(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys that a rule needs. Raises KeyError for an unknown frequency."""
    if values.get("FREQ") == "MONTHLY" and "BYDAY" in values:
        return ("BYDAY", *_CLOCK_KEYS)
    return _NEEDED_KEYS[values.get("FREQ", "")]


def _numbers(text: str | None, least: int, most: int) -> tuple[int, ...]:
    """Parse numbers separated by commas: `"1,15"` is (1, 15). None has no numbers.

    Raises ValueError for a number that is not from `least` to `most`.
    """
    if text is None:
        return ()
    numbers: set[int] = set()
    for part in text.split(","):
        is_number = len(part) <= 6 and part.isascii() and least <= int(part) <= most
        if not is_number:
            raise ValueError(text)
        numbers.add(int(part))
    return tuple(sorted(numbers))


def complete_rule(repeat: str, due: datetime) -> str:
    """Complete a rule that a person or a calendar wrote.

    Calendars leave to the first time what they can: "FREQ=WEEKLY" means the weekday and the hour of
    `due`, a local time. These are added.

    repeat: the rule as it was written.
    """
    pairs = [part.partition("=") for part in repeat.strip().removeprefix("RRULE:").split(";")]
    values = {key.upper(): value.upper() for key, _, value in pairs}
    if values.get("FREQ") not in _NEEDED_KEYS:
        return repeat.strip().rstrip(";")
    of_due = {
        "BYMONTH": due.month,
        "BYMONTHDAY": due.day,
        "BYDAY": _DAY_NAMES[due.weekday()],
        "BYHOUR": due.hour,
        "BYMINUTE": due.minute,
    }
    missing = [f"{key}={of_due[key]}" for key in _needed(values) if key not in values]
    return ";".join([repeat.strip().rstrip(";"), *missing])


def next_time_after(
    repeat: str, after: datetime, zone: tzinfo, since: datetime | None = None
) -> datetime:
    """Return the first time of a rule strictly after a moment.

    A rule with an interval ("every other Monday") needs a time of its own to count from. That is
    `since`. Without it, the intervals are counted from `after` if that is a time of the rule, and
    always for a rule of hours or minutes. Else the interval is ignored: the result is the next
    Monday.

    repeat: the rule.
    after: the moment, with its time zone.
    zone: the zone of the rule and of the result.
    since: a time of the rule. None if it is not known.

    Hours and minutes are elapsed time, larger units are wall time. A month without the day is
    skipped. Raises InvalidInput for an invalid rule, and for a rule with no time left.
    """
    rule = parse_rule(repeat)
    if since is not None:
        return next_time(rule, after, zone, since)
    can_count_from_after = rule.is_elapsed or _is_time_of(rule, after, zone)
    if not can_count_from_after:
        rule = replace(rule, interval=1)
    return next_time(rule, after, zone, since=after)


def _is_time_of(rule: Recurrence, moment: datetime, zone: tzinfo) -> bool:
    """Whether a moment has the right day and hour for a rule, if its interval is ignored.

    "every other Monday at 9" has any Monday at 9.
    """
    without_interval = replace(rule, interval=1)
    just_before = moment - timedelta(microseconds=1)
    try:
        return next_time(without_interval, just_before, zone, since=moment) == moment
    except InvalidInput:
        # The rule has ended.
        return False


def next_time(rule: Recurrence, after: datetime, zone: tzinfo, since: datetime) -> datetime:
    """Return the first time of a rule after a moment, in `zone`.

    since: a time of the rule, from which its intervals are counted.

    Raises InvalidInput if no time is left.
    """
    rule_zone = rule.zone(zone)
    moment: datetime | None
    try:
        if rule.is_elapsed:
            moment = _next_elapsed(rule, after, since, rule_zone)
        else:
            moment = _next_on_calendar(rule, after, since, rule_zone)
    except (OverflowError, ValueError):
        # It would be beyond the calendar.
        moment = None
    if moment is None or _is_over(rule, moment.astimezone(rule_zone)):
        raise InvalidInput(f'No time of the rule "{rule}" is left. Change the rule.')
    return moment.astimezone(zone)


def _is_over(rule: Recurrence, moment: datetime) -> bool:
    """Whether a rule has ended before a moment, which is in the zone of the rule."""
    return rule.until is not None and moment.replace(tzinfo=None) > rule.until


def _next_elapsed(
    rule: Recurrence, after: datetime, since: datetime, zone: tzinfo
) -> datetime | None:
    """Return the first time after `after` of a rule that counts hours or minutes.

    Returns None if none is in the months of the rule.

    since: the first time of the series.
    zone: the zone of the months.
    """
    step = timedelta(seconds=rule.interval * _SECONDS[rule.freq])
    start = since.astimezone(UTC)
    step_count = (after.astimezone(UTC) - start) // step + 1
    for _attempt in range(_PERIODS):
        moment = start + step_count * step
        day = moment.astimezone(zone).date()
        if _is_in_months(rule, day):
            return moment
        # Go on with the first step of the next month at once.
        midnight = wall_time(_first_of_months(rule, day), time(0), zone).astimezone(UTC)
        step_count = -((start - midnight) // step)
    return None


def _is_in_months(rule: Recurrence, day: date) -> bool:
    """Whether a day is in one of the months to which a rule is limited."""
    return not rule.months or day.month in rule.months


def _first_of_months(rule: Recurrence, day: date) -> date:
    """Return the first day of the next month to which a rule is limited.

    day: a day in a month that the rule leaves out.
    """
    for month in rule.months:
        if month > day.month:
            return date(day.year, month, 1)
    return date(day.year + 1, rule.months[0], 1)


def _next_on_calendar(
    rule: Recurrence, after: datetime, since: datetime, zone: tzinfo
) -> datetime | None:
    """Return the first time after `after` of a rule that counts days. None if no time is left.

    since: the first time of the series.
    zone: the zone of the hours of the rule.
    """
    first = since.astimezone(zone).date()
    for day in _rule_days(rule, first, after.astimezone(zone).date()):
        moments = [
            wall_time(day, time(hour, minute), zone)
            for hour, minute in product(rule.hours, rule.minutes)
        ]
        for moment in sorted(moments):
            if moment > after:
                return moment
    return None


def _rule_days(rule: Recurrence, since: date, after: date) -> Iterator[date]:
    """Yield the days of a rule in order, beginning a period before `after`.

    A month without the day is skipped: the 31st of June.

    since: the first day of the series.
    after: the day from which the caller looks.
    """
    if rule.freq in ("DAILY", "WEEKLY"):
        yield from _days_by_length(rule, since, after)
        return
    for months_since_year_0 in _months(rule, since, after):
        year, month_index = divmod(months_since_year_0, 12)
        # There is no year 0
        if year >= 1:
            yield from _days_of_month(rule, year, month_index + 1)


def _days_by_length(rule: Recurrence, since: date, after: date) -> Iterator[date]:
    """Yield the days of a daily or weekly rule in order.

    since: the first day of the series.
    after: the day from which the caller looks.
    """
    # A period is a number of days, or of weeks that begin on Monday.
    if rule.freq == "WEEKLY":
        period_days = 7 * rule.interval
        first_period = since - timedelta(days=since.weekday())
    else:
        period_days = rule.interval
        first_period = since
    # A daily rule has no weekdays: its day is the first one of each period.
    days_in_period = rule.days or (0,)

    # Go to the period before that of `after` at once, instead of through years of days.
    period = (after - first_period).days // period_days - 1
    for _attempt in range(_PERIODS):
        day_of_period = first_period + timedelta(days=period * period_days)
        days = [day_of_period + timedelta(days=day) for day in days_in_period]
        for day in days:
            if _is_in_months(rule, day):
                yield day
        period += 1
        # Go on with the period of the next month at once, instead of through those left out.
        if not _is_in_months(rule, days[-1]):
            next_month = _first_of_months(rule, days[-1])
            period = max(period, (next_month - first_period).days // period_days)


def _months(rule: Recurrence, since: date, after: date) -> Iterator[int]:
    """Yield the months of a monthly or yearly rule, each as the number of months since the year 0.

    since: the first day of the series.
    after: the day from which the caller looks.
    """
    # Go to the period before that of `after` at once, instead of through years of months.
    if rule.freq == "MONTHLY":
        month_of_since = since.year * 12 + since.month - 1
        month_of_after = after.year * 12 + after.month - 1
        period_of_after = (month_of_after - month_of_since) // rule.interval
        for period in range(period_of_after - 1, period_of_after - 1 + _PERIODS * 12):
            month = month_of_since + period * rule.interval
            if not rule.months or month % 12 + 1 in rule.months:
                yield month
        return
    period_of_after = (after.year - since.year) // rule.interval
    for period in range(period_of_after - 1, period_of_after - 1 + _PERIODS):
        year = since.year + period * rule.interval
        for month in rule.months:
            yield year * 12 + month - 1


def _days_of_month(rule: Recurrence, year: int, month: int) -> Iterator[date]:
    """Yield the days of a rule in one month.

    year, month: the month. January is 1.
    """
    if rule.nth:
        for weekday in rule.days:
            day = nth_weekday(year, month, rule.nth, weekday)
            if day:
                yield day
        return
    length = monthrange(year, month)[1]
    # -1 is the last day.
    day_numbers = {length if day < 0 else day for day in rule.monthdays if day <= length}
    for day_number in sorted(day_numbers):
        yield date(year, month, day_number)
