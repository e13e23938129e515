"""Times that come again: the rules that the parts of a sentence name (contract 001, 9)."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from fractions import Fraction

from memoranda.errors import AmbiguousTime, PastTime
from memoranda.note.timephrase.days import first_day, last_day, possible_days, shifted, wall_time
from memoranda.note.timephrase.hours import Hour, agrees, possible_hours
from memoranda.note.timephrase.lexer import table
from memoranda.note.timephrase.parts import END, EXCEPT, START, Part, clusters
from memoranda.note.timephrase.reading import Clock, NamedZone, Reading, Sentence
from memoranda.note.timephrase.rules import SHORTEST, Recurrence, next_time
from memoranda.note.timephrase.series_readers import days_between
from memoranda.note.timephrase.slots import clock_slots
from memoranda.note.timephrase.values import UNIT_SECONDS, Delay, Lexeme, Repetition

_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_BARE_UNITS = tuple(Repetition(unit) for unit in ("week", "fortnight", "month", "year"))
_ALL_DAYS = range(7)


@dataclass
class Bounds:
    """When a series starts and ends. `last` is its last day; `length` and `times` count from its
    first time."""

    first: date | None = None
    last: date | None = None
    length: Delay | None = None
    times: int | None = None


def read_series(sentence: Sentence, clock: Clock) -> list[Reading]:
    """The series of a sentence, one for each clock. Raises TimeRefused, ValueError, OverflowError."""
    loose = [part for part in sentence.parts if part.is_loose and part.kind == "span"]
    if sentence.of("instant", "offset") or len(sentence.of("length")) > 1:
        raise AmbiguousTime(sentence.phrase)
    repetition = _repetition(sentence)
    bounds, named = _bounds(sentence, clock)
    if loose and not (bounds.first or bounds.last):
        raise sentence.unused(*loose)
    if repetition.unit in UNIT_SECONDS:
        return [_elapsed_series(sentence, repetition, bounds, named, clock)]
    if repetition.interval.denominator != 1:
        raise AmbiguousTime(sentence.phrase)
    if named and _is_about_subject(sentence):
        raise AmbiguousTime(sentence.phrase)
    rules = _rules(repetition, named, bounds.first)
    if len(rules) != 1:
        raise AmbiguousTime(sentence.phrase)
    rule = _without_exceptions(sentence, rules[0])
    return _timed_series(sentence, rule, bounds, clock)


def _is_about_subject(sentence: Sentence) -> bool:
    """Whether an adverb apart from the day may be about the subject: "weekly report Friday"."""
    for cluster in clusters(sentence.parts):
        has_day = any(part.is_day for part in cluster)
        for part in cluster:
            is_adverb = part.kind == "repeat" and part.lexeme.value in _BARE_UNITS
            words = sentence.text.plain[part.lexeme.start : part.lexeme.end]
            if is_adverb and not has_day and words in table("english.adverbs"):
                return True
    return False


def _repetition(sentence: Sentence) -> Repetition:
    """The one repetition that the words tell; "every morning on weekdays" is that of the weekdays."""
    values: list[Repetition] = []
    for part in sentence.of("repeat"):
        if part.role != EXCEPT and part.lexeme.value not in values:
            values.append(part.lexeme.value)
    if len(values) > 1:
        values = [value for value in values if value != Repetition("day")]
    if len(values) > 1:
        # "every week on Mondays"
        values = [value for value in values if value != Repetition("week") or value.days]
    if len(values) != 1:
        raise AmbiguousTime(sentence.phrase)
    if values[0].interval == 0:
        raise ValueError("interval")
    return values[0]


def _bounds(sentence: Sentence, clock: Clock) -> tuple[Bounds, list[Lexeme]]:
    """When a series starts and ends, and the day words that say on which days it comes."""
    bounds = Bounds()
    today = clock.now.date()
    named: list[Part] = []
    starts: list[Part] = []
    ends: list[Part] = []
    for part in sentence.parts:
        if part.is_day and part.role == START:
            starts.append(part)
        elif part.is_day and part.role == END:
            ends.append(part)
        elif part.kind == "month":
            _bound_by_month(bounds, part, today)
        elif part.kind == "span" and not part.role:
            bounds.first = max(first_day(part.lexeme.value, today), today)
            bounds.last = last_day(part.lexeme.value, today)
        elif part.is_day and part.role != EXCEPT:
            named.append(part)
    if starts:
        bounds.first = _one_day(sentence, starts, today)
    if ends:
        bounds.last = _last_day(sentence, ends, bounds.first or today)
    for part in sentence.of("length"):
        bounds.length = part.lexeme.value
    for part in sentence.of("times"):
        bounds.times = part.lexeme.value
    limits = (bounds.last, bounds.length, bounds.times)
    if sum(limit is not None for limit in limits) > 1:
        raise AmbiguousTime(sentence.phrase)
    return bounds, [part.lexeme for part in named]


def _one_day(sentence: Sentence, parts: Sequence[Part], today: date) -> date:
    days = possible_days([part.lexeme for part in parts], today)
    if len(days) != 1:
        raise AmbiguousTime(sentence.phrase)
    return days[0]


def _last_day(sentence: Sentence, parts: Sequence[Part], first: date) -> date:
    """The day a series ends. A span ends with its last day: "until next month" is not clear."""
    if any(part.kind == "span" for part in parts):
        raise AmbiguousTime(sentence.phrase)
    return _one_day(sentence, parts, first)


def _bound_by_month(bounds: Bounds, part: Part, today: date) -> None:
    """Every Monday in June, from June, until June."""
    year, month = part.lexeme.value
    if year is None:
        year = today.year + (month < today.month)
    first = date(year, month, 1)
    last = date(year, month, monthrange(year, month)[1])
    if part.role != END:
        bounds.first = max(first, today)
    if part.role != START:
        bounds.last = last


def _elapsed_series(
    sentence: Sentence, repetition: Repetition, bounds: Bounds, named: list[Lexeme], clock: Clock
) -> Reading:
    """A series of hours or minutes, from now or from the clock it starts at."""
    minutes = repetition.interval * UNIT_SECONDS[repetition.unit] / 60
    if minutes.denominator != 1 or minutes * 60 < SHORTEST:
        raise ValueError(minutes)
    if minutes % 60:
        rule = Recurrence("MINUTELY", int(minutes))
    else:
        rule = Recurrence("HOURLY", int(minutes / 60))
    if named or bounds.first or sentence.of("zone") or _exceptions(sentence):
        raise AmbiguousTime(sentence.phrase)
    due = next_time(rule, clock.now, clock.zone, clock.now)
    until = _elapsed_until(bounds, due, minutes, clock)
    clocks = [part for part in sentence.parts if part.is_clock]
    if clocks:
        if len(clocks) > 1 or clocks[0].kind != "clock" or clocks[0].role != END or until:
            raise AmbiguousTime(sentence.phrase)
        until = _until_clock(sentence, clocks[0], due, clock)
    return Reading(sentence.phrase, due, False, str(replace(rule, until=until)))


def _until_clock(sentence: Sentence, end: Part, due: datetime, clock: Clock) -> datetime:
    """Today's clock as the end of a series of hours. Raises AmbiguousTime, PastTime."""
    moments = []
    for hour in possible_hours([end.lexeme.value], []):
        # Midnight is the one ahead
        on_day = hour._replace(days=1) if hour.word == "midnight" else hour
        moments.append(on_day.on(clock.now.date(), clock.zone))
    if len(moments) != 1:
        raise AmbiguousTime(sentence.phrase, moments)
    if moments[0] < due:
        raise PastTime(sentence.phrase)
    return moments[0].replace(tzinfo=None)


def _elapsed_until(
    bounds: Bounds, due: datetime, minutes: Fraction, clock: Clock
) -> datetime | None:
    if bounds.last:
        return datetime.combine(bounds.last, time(23, 59, 59))
    if bounds.times:
        last = due + timedelta(minutes=int(minutes * (bounds.times - 1)))
        return last.replace(tzinfo=None)
    if bounds.length:
        length = bounds.length
        day = shifted(clock.now.date(), length.months, length.days)
        end = wall_time(day, clock.now.time(), clock.zone) + timedelta(seconds=length.seconds)
        return end.replace(tzinfo=None, microsecond=0)
    return None


def _timed_series(
    sentence: Sentence, rule: Recurrence, bounds: Bounds, clock: Clock
) -> list[Reading]:
    """A reading for each clock of a series on the calendar."""
    if bounds.length and bounds.length.seconds:
        raise sentence.unused(*sentence.of("length"))
    parts = _without_clock_ends(sentence)
    slots = clock_slots(sentence, parts)
    if sentence.of("where"):
        raise AmbiguousTime(sentence.phrase)
    zone = NamedZone(sentence, clock)
    if zone.is_named and not slots:
        raise sentence.unused(*sentence.of("zone"))
    if zone.is_named and zone.name is None:
        raise AmbiguousTime(sentence.phrase)
    rule = replace(rule, zone_name=zone.name)
    if not slots:
        hours = [Hour(time(clock.day_hour))]
        return [_series_at(sentence, rule, hours, bounds, clock, True)]
    readings = []
    for slot in slots:
        hours = possible_hours(slot.clocks, slot.day_parts)
        if not all(agrees(hour, part) for hour in hours for part in slot.loose_parts):
            raise sentence.unused(*[part for part in sentence.parts if part.is_loose])
        readings.append(_series_at(sentence, rule, hours, bounds, clock, False))
    return sorted(readings, key=lambda reading: reading.due)


def _without_clock_ends(sentence: Sentence) -> list[Part]:
    """The parts without the ends of ranges of hours: "every day from 9am to 10am"."""
    parts = [part for part in sentence.parts if not (part.is_clock and part.role == END)]
    if len(parts) < len(sentence.parts) and not any(part.is_clock for part in parts):
        raise sentence.unused(*[part for part in sentence.parts if part not in parts])
    return [part for part in parts if part.role not in (START, END, EXCEPT) or part.is_clock]


def _series_at(
    sentence: Sentence,
    rule: Recurrence,
    hours: Sequence[Hour],
    bounds: Bounds,
    clock: Clock,
    is_all_day: bool,
) -> Reading:
    """The series at one time of day. Raises AmbiguousTime when its clock may mean two."""
    readings = []
    for hour in hours:
        timed = _at_hour(rule, hour)
        if timed is None:
            continue
        due = _first_time(timed, bounds, clock)
        until = _until(timed, bounds, due, clock)
        if until is not None and due.astimezone(timed.zone(clock.zone)).date() > until.date():
            raise PastTime(sentence.phrase)
        readings.append(Reading(sentence.phrase, due, is_all_day, str(replace(timed, until=until))))
    if len(readings) != 1:
        raise AmbiguousTime(sentence.phrase, sorted({reading.due for reading in readings}))
    return readings[0]


def _at_hour(rule: Recurrence, hour: Hour) -> Recurrence | None:
    """A rule with its hour; an hour after midnight is of the next day. None for dates, which cannot
    be moved.
    """
    timed = replace(rule, hours=(hour.at.hour,), minutes=(hour.at.minute,))
    if not hour.days or rule.freq == "DAILY":
        return timed
    if rule.freq == "WEEKLY":
        return replace(timed, days=tuple(sorted((day + 1) % 7 for day in rule.days)))
    return None


def _first_time(rule: Recurrence, bounds: Bounds, clock: Clock) -> datetime:
    """The first time starts the count of the interval, so it does not wait for one."""
    after = clock.now
    if bounds.first and bounds.first > clock.now.date():
        midnight = wall_time(bounds.first, time(0), rule.zone(clock.zone))
        after = midnight - timedelta(microseconds=1)
    simple = replace(rule, interval=1)
    return next_time(simple, after, clock.zone, after)


def _until(rule: Recurrence, bounds: Bounds, due: datetime, clock: Clock) -> datetime | None:
    """The last day of a series, as its end."""
    first = due.astimezone(rule.zone(clock.zone)).date()
    last = bounds.last
    if bounds.length:
        length = bounds.length
        last = shifted(first, length.months, length.days) - timedelta(days=1)
    if bounds.times:
        moment = due
        for _count in range(bounds.times - 1):
            moment = next_time(rule, moment, clock.zone, due)
        last = moment.astimezone(rule.zone(clock.zone)).date()
    return datetime.combine(last, time(23, 59, 59)) if last else None


def _exceptions(sentence: Sentence) -> list[Part]:
    return [part for part in sentence.parts if part.role == EXCEPT]


def _without_exceptions(sentence: Sentence, rule: Recurrence) -> Recurrence:
    """A rule of days without the weekdays that "except" names."""
    exceptions = _exceptions(sentence)
    if not exceptions:
        return rule
    days: set[int] = set()
    for part in exceptions:
        value = part.lexeme.value
        if part.kind == "weekday" and value.weeks is None:
            days.add(value.day)
        elif part.kind == "repeat" and value.unit == "week" and value.days:
            days.update(value.days)
        elif part.kind == "weekend":
            days.update((5, 6))
        else:
            raise sentence.unused(part)
    is_of_days = rule.freq == "WEEKLY" or rule == Recurrence("DAILY")
    remaining = [day for day in rule.days or _ALL_DAYS if day not in days]
    if not is_of_days or rule.interval != 1 or not remaining:
        raise sentence.unused(*exceptions)
    return Recurrence("WEEKLY", days=tuple(remaining))


def _rules(repetition: Repetition, named: Sequence[Lexeme], first: date | None) -> list[Recurrence]:
    """The rules, without an hour, of a repetition and the day words beside it; none when a part is
    missing or two contradict each other."""
    plain = Recurrence(
        _FREQUENCIES[repetition.unit] if repetition.unit != "fortnight" else "WEEKLY",
        int(repetition.interval) * (2 if repetition.unit == "fortnight" else 1),
        months=(repetition.month,) if repetition.month else (),
        monthdays=repetition.monthdays,
        days=repetition.days,
        nth=repetition.nth,
    )
    if plain.freq == "DAILY" or plain.days or plain.monthdays:
        return _rules_of_complete(plain, named)
    if not named and first:
        return [_on_day(plain, first)]
    if plain.freq == "WEEKLY":
        return _rules_of_week(plain, named)
    if len(named) != 1:
        return []
    if plain.freq == "MONTHLY":
        return _rules_of_month(plain, named[0])
    return _rules_of_year(plain, named[0])


def _rules_of_complete(plain: Recurrence, named: Sequence[Lexeme]) -> list[Recurrence]:
    """A rule that says its days; beside it a day can only say the same again."""
    for lexeme in named:
        is_same = (
            lexeme.kind == "weekday"
            and lexeme.value.weeks is None
            and plain.freq == "WEEKLY"
            and plain.days == (lexeme.value.day,)
        )
        if not is_same:
            return []
    return [plain]


def _on_day(plain: Recurrence, day: date) -> Recurrence:
    """A rule whose day is that of its start: "every week from Monday"."""
    if plain.freq == "WEEKLY":
        return replace(plain, days=(day.weekday(),))
    if plain.freq == "MONTHLY":
        return replace(plain, monthdays=(day.day,))
    return replace(plain, months=(day.month,), monthdays=(day.day,))


def _rules_of_week(plain: Recurrence, named: Sequence[Lexeme]) -> list[Recurrence]:
    if [lexeme.kind for lexeme in named] == ["weekend"]:
        return [replace(plain, days=(5,))]
    for lexeme in named:
        if lexeme.kind != "weekday" or lexeme.value.weeks is not None:
            return []
    days = tuple(sorted({lexeme.value.day for lexeme in named}))
    return [replace(plain, days=days)] if days else []


def _rules_of_month(plain: Recurrence, lexeme: Lexeme) -> list[Recurrence]:
    if lexeme.kind == "edge" and lexeme.value[:2] == ("month", 0):
        return [replace(plain, monthdays=(-1 if lexeme.value[2] else 1,))]
    if lexeme.kind == "monthday":
        return [replace(plain, monthdays=(lexeme.value,))]
    return []


def _rules_of_year(plain: Recurrence, lexeme: Lexeme) -> list[Recurrence]:
    value = lexeme.value
    dates: list[tuple[int, int]] = []
    if lexeme.kind == "date" and value[0][0] is None:
        dates = [(month, day) for _, month, day in value if _is_date(month, day)]
        if not dates:
            raise ValueError(value)
    elif lexeme.kind == "month_edge" and value[0] is None:
        dates = [(value[1], -1 if value[2] else 1)]
    elif lexeme.kind == "edge" and value[:2] == ("year", 0):
        dates = [(12, 31) if value[2] else (1, 1)]
    return [replace(plain, months=(month,), monthdays=(day,)) for month, day in dates]


def _is_date(month: int, day: int) -> bool:
    """Whether some year has this day."""
    return 1 <= month <= 12 and 1 <= day <= monthrange(2000, month)[1]


def with_weekday_range(sentence: Sentence) -> Sentence:
    """ "Mon-Fri at 7am" as a series. Raises UnusedWords without a clock, as it may be one stay of
    several days, and AmbiguousTime beside "every day", as it may be those of one week.
    """
    ranges = sentence.of("weekday_range")
    if not ranges:
        return sentence
    has_clock = any(part.is_clock for part in sentence.parts)
    series = [part.lexeme.value for part in sentence.of("repeat")]
    is_weekly = all(value == Repetition("week") for value in series)
    if len(ranges) > 1 or not is_weekly:
        raise AmbiguousTime(sentence.phrase)
    if not has_clock and not series:
        raise sentence.unused(*ranges)
    days = days_between(*ranges[0].lexeme.value)
    lexeme = ranges[0].lexeme._replace(
        kind="repeat", value=Repetition("week", days=tuple(sorted(days)))
    )
    whole_week = replace(ranges[0], lexeme=lexeme, role="")
    parts = [whole_week if part is ranges[0] else part for part in sentence.parts]
    return Sentence(sentence.text, parts)
