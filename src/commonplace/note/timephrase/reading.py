"""The time a group of words means at a given moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from commonplace.errors import AmbiguousTime, InvalidTime, PastTime, VagueTime
from commonplace.note.timephrase.clocks import Hour, Unclear, hours
from commonplace.note.timephrase.days import DAY_KINDS, meant, shifted
from commonplace.note.timephrase.groups import Group
from commonplace.note.timephrase.recurrence import wall
from commonplace.note.timephrase.repeats import first_times
from commonplace.note.timephrase.tokens import Delay

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LATE = 18
"""The hour a day without a clock fires at when the usual one has passed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says: `due` is aware and in the zone asked for, `phrase` the words it was read from,
    `repeat` a rule (see `following`), `others` further time phrases that were not used."""

    phrase: str
    due: datetime
    all_day: bool = False
    repeat: str | None = None
    others: tuple[str, ...] = ()

    @property
    def reading(self) -> str:
        """The time for people: Thu 7 May 2026 15:00."""
        due = self.due
        return f"{_DAYS[due.weekday()]} {due.day} {_MONTHS[due.month - 1]} {due.year} {due:%H:%M}"


@dataclass(frozen=True, slots=True)
class Here:
    """The clock a text is read with: `now` in its zone, and the hour of days without one."""

    now: datetime
    zone: tzinfo
    day_hour: int

    @classmethod
    def at(cls, now: datetime, zone: tzinfo, day_hour: int) -> Here:
        return cls(now.astimezone(zone), zone, day_hour)


def meaning(group: Group, here: Here) -> Reading:
    """The reading of a group. Raises a TimeRefused."""
    phrase = group.phrase
    if group.of("vague"):
        raise VagueTime(phrase)
    if group.of("wrong"):
        raise InvalidTime(phrase)
    try:
        if group.of("repeat"):
            return _repeated(group, here)
        moments, all_day = _moments(group, here)
    except Unclear:
        raise AmbiguousTime(phrase) from None
    except (ValueError, OverflowError):
        raise InvalidTime(phrase) from None
    if not moments:
        raise AmbiguousTime(phrase)
    if all(moment <= here.now for moment in moments):
        raise PastTime(phrase)
    if len(moments) > 1:
        raise AmbiguousTime(phrase, moments)
    return Reading(phrase, moments[0], all_day)


def _repeated(group: Group, here: Here) -> Reading:
    times = first_times(group, here.now, here.zone, here.day_hour)
    if not times:
        raise AmbiguousTime(group.phrase)
    if len(times) > 1:
        raise AmbiguousTime(group.phrase, sorted({due for due, _ in times}))
    due, rule = times[0]
    unaided = not group.of("clock", "part") and rule.freq not in ("HOURLY", "MINUTELY")
    return Reading(group.phrase, due, unaided, str(rule))


def _moments(group: Group, here: Here) -> tuple[list[datetime], bool]:
    """All times a group may mean, in order, and whether it names days only. Words that name a moment by
    themselves ("in 2 hours") must agree with those beside them."""
    moments: set[datetime] = set()
    for token in group.of("instant"):
        moments.add(_instant(token.value, here.zone))
    exact = [token for token in group.of("delay") if token.value.exact]
    for token in exact:
        moments.add(_later(token.value, here))
    rest = [t for t in group.tokens if t.kind != "instant" and t not in exact]
    if moments and all(token.kind == "day" and token.value == 0 for token in rest):
        return sorted(moments), False
    days = meant(rest, here.now.date())
    clocks = hours(*([t for t in rest if t.kind == kind] for kind in ("clock", "part")))
    if not days and any(token.kind in DAY_KINDS for token in rest):
        return sorted(moments), False
    if days and not clocks:
        moments |= {_all_day(day, len(days) == 1, here) for day in days}
        return sorted(moments), True
    if days:
        moments |= {_on(day, hour, here) for day in days for hour in clocks}
    else:
        moments |= {_next(hour, here) for hour in clocks}
    return sorted(moments), False


def _instant(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone) if moment.tzinfo else wall(moment.date(), moment.time(), zone)


def _later(delay: Delay, here: Here) -> datetime:
    """Whole days go by the calendar, the rest by elapsed time."""
    now = here.now.replace(microsecond=0)
    if delay.months or delay.days:
        now = wall(shifted(now.date(), delay.months, delay.days), now.time(), here.zone)
    return _elapsed(now, delay.seconds)


def _elapsed(moment: datetime, seconds: int) -> datetime:
    return (moment.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(moment.tzinfo)


def _all_day(day: date, alone: bool, here: Here) -> datetime:
    """The usual hour of a day; when it has passed today, the late one."""
    usual = wall(day, time(here.day_hour), here.zone)
    late = wall(day, time(_LATE), here.zone)
    return late if alone and usual <= here.now < late else usual


def _on(day: date, hour: Hour, here: Here) -> datetime:
    """`hour` of a day. Midnight of today is the one ahead."""
    if hour.word == "midnight" and day == here.now.date():
        hour = hour._replace(days=1)
    return hour.on(day, here.zone)


def _next(hour: Hour, here: Here) -> datetime:
    """The next time a clock shows `hour`; the end of the working day is today's."""
    today = here.now.date()
    if hour.word == "eod":
        return hour.on(today, here.zone)
    for days in (-1, 0, 1):
        moment = hour.on(today + timedelta(days=days), here.zone)
        if moment > here.now:
            break
    return moment
