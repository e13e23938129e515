"""From the words of a repetition to its rule and first time."""

from __future__ import annotations

import calendar
from dataclasses import replace
from datetime import datetime, time, tzinfo

from commonplace.note.timephrase.clocks import Hour, hours
from commonplace.note.timephrase.days import DAY_KINDS
from commonplace.note.timephrase.groups import Group
from commonplace.note.timephrase.recurrence import Rule, next_time
from commonplace.note.timephrase.tokens import Draft, Token

_SECONDS = {"second": 1, "minute": 60, "quarter": 900, "hour": 3600}
_FREQ = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}


def first_times(group: Group, now: datetime, zone: tzinfo, day_hour: int) -> list[tuple[datetime, Rule]]:
    """The rules a group may mean, each with its first time after `now`; none when a part is missing or two
    contradict each other. Raises ValueError for a rule that cannot be: too often, 30 February, 25:00."""
    draft = _draft(group.of("repeat"))
    if draft is None:
        return []
    if draft.interval == 0:
        raise ValueError("interval")
    named = [token for token in group.tokens if token.kind in DAY_KINDS]
    clocks = hours(group.of("clock"), group.of("part")) or [Hour(time(day_hour))]
    if draft.unit in _SECONDS:
        rule = _elapsed(draft)
        beside = named or group.of("clock", "part", "instant")
        return [] if beside else [(next_time(rule, now, zone, now), rule)]
    if draft.interval.denominator != 1 or group.of("instant"):
        return []
    rules = [_at(rule, hour) for rule in _rules(draft, named) for hour in clocks]
    known = [rule for rule in rules if rule]
    # The first time starts the count of the interval, so it does not wait for one.
    times = [(next_time(replace(rule, interval=1), now, zone, now), rule) for rule in known]
    return sorted(times, key=lambda pair: pair[0])


def _draft(tokens: list[Token]) -> Draft | None:
    """The one repetition of a group: "every morning on weekdays" is that of the weekdays."""
    drafts: list[Draft] = list(dict.fromkeys(token.value for token in tokens))
    if len(drafts) > 1:
        drafts = [draft for draft in drafts if draft != Draft("day")]
    return drafts[0] if len(drafts) == 1 else None


def _elapsed(draft: Draft) -> Rule:
    seconds = draft.interval * _SECONDS[draft.unit]
    if seconds % 60:
        raise ValueError("not whole minutes")
    hourly = seconds % 3600 == 0
    rule = Rule("HOURLY" if hourly else "MINUTELY", int(seconds / (3600 if hourly else 60)))
    if rule.too_often:
        raise ValueError("too often")
    return rule


def _rules(draft: Draft, named: list[Token]) -> list[Rule]:
    """The rules, without an hour, of a draft and the day words beside it."""
    plain = Rule(_FREQ[draft.unit], int(draft.interval), monthdays=draft.monthdays, days=draft.days)
    if draft.unit == "day":
        return [] if named else [plain]
    if draft.unit == "week":
        return _weekly(plain, named)
    if draft.unit == "month":
        return _monthly(plain, named)
    return _yearly(replace(plain, months=(draft.month,)) if draft.month else plain, named)


def _weekly(plain: Rule, named: list[Token]) -> list[Rule]:
    if plain.days:
        return [] if named else [plain]
    days = sorted({t.value[1] for t in named if t.kind == "weekday" and t.value[0] is None})
    if len(named) == 1 and named[0].kind == "weekend":
        days = [5]
    known = days and (len(days) == len(named) or days == [5])
    return [replace(plain, days=tuple(days))] if known else []


def _monthly(plain: Rule, named: list[Token]) -> list[Rule]:
    if plain.monthdays:
        return [] if named else [plain]
    if len(named) != 1:
        return []
    token = named[0]
    if token.kind == "monthday":
        return [replace(plain, monthdays=(token.value,))]
    if token.kind == "edge" and token.value[:2] == ("month", 0):
        return [replace(plain, monthdays=(-1 if token.value[2] else 1,))]
    return []


def _yearly(plain: Rule, named: list[Token]) -> list[Rule]:
    if plain.months:
        return [] if named else [plain]
    if len(named) != 1:
        return []
    token = named[0]
    if token.kind == "date" and token.value[0][0] is None:
        known = [(month, day) for _, month, day in token.value if _exists(month, day)]
        if not known:
            raise ValueError(token.value)
        return [replace(plain, months=(month,), monthdays=(day,)) for month, day in known]
    if token.kind == "month_edge" and token.value[0] is None:
        return [replace(plain, months=(token.value[1],), monthdays=(-1 if token.value[2] else 1,))]
    if token.kind == "edge" and token.value[:2] == ("year", 0):
        last = token.value[2]
        return [replace(plain, months=(12 if last else 1,), monthdays=(31 if last else 1,))]
    return []


def _exists(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(2000, month)[1]


def _at(rule: Rule, hour: Hour) -> Rule | None:
    """`rule` at an hour; an hour after the day's midnight moves its weekdays, dates cannot be moved."""
    timed = replace(rule, hours=(hour.at.hour,), minutes=(hour.at.minute,))
    if not hour.days or rule.freq == "DAILY":
        return timed
    if rule.freq == "WEEKLY":
        return replace(timed, days=tuple(sorted((day + 1) % 7 for day in rule.days)))
    return None
