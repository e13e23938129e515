"""Times that come again: the rules that the parts of a sentence name (contract 001, 9)."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from memoranda.errors import AmbiguousTime, PastTime
from memoranda.note.timephrase.bounds import Bounds, bounds_of, repeated_days
from memoranda.note.timephrase.days import shifted, wall_time
from memoranda.note.timephrase.hours import Hour, agrees, possible_hours
from memoranda.note.timephrase.lexer import table
from memoranda.note.timephrase.parts import END, EXCEPT, START, Part, clusters
from memoranda.note.timephrase.reading import Clock, NamedZone, Reading, Sentence
from memoranda.note.timephrase.rules import SHORTEST, Recurrence, next_time
from memoranda.note.timephrase.series_readers import WEEKEND_DAYS, days_between
from memoranda.note.timephrase.slots import ClockSlot, clock_slots
from memoranda.note.timephrase.values import (
    UNIT_SECONDS,
    CalendarDate,
    Delay,
    Lexeme,
    Repetition,
    Span,
)

_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
# Units that need a day word to name their days: "every week on Friday".
_UNITS_WITH_DAYS = ("week", "month", "year")
_ALL_WEEKDAYS = range(7)
_ALL_MONTHS = range(1, 13)
_SATURDAY = 5
# The last day of a month, as a day of the month.
_LAST_DAY = -1
_LEAP_YEAR = 2000
_MINUTES_OF_DAY = 24 * 60


def read_series(sentence: Sentence, clock: Clock) -> list[Reading]:
    """Return the series that a sentence names.

    "every day at 8am and 8pm" names two, one for each time of day.

    sentence: the time words, at least one of them a repetition such as "every day".
    clock: the moment at which the text is read.

    Raises TimeRefused, ValueError, OverflowError.
    """
    # A moment comes only once, and a city may be a zone or only the place of a meeting.
    if sentence.of("instant", "where"):
        raise AmbiguousTime(sentence.phrase)
    repetition = _repetition(sentence)
    _refuse_mixed_exceptions(sentence)
    bounds = bounds_of(sentence, clock.now.date())
    counts_hours = repetition.unit in UNIT_SECONDS
    if counts_hours:
        if sentence.of("offset"):
            raise AmbiguousTime(sentence.phrase)
        return [_elapsed_series(sentence, repetition, bounds, clock)]

    # "every one and a half weeks" names no day of the calendar.
    is_whole_number = repetition.interval.denominator == 1
    if not is_whole_number:
        raise AmbiguousTime(sentence.phrase)
    # "weekly report Friday" may name a single Friday.
    day_words = [part.lexeme for part in repeated_days(sentence)]
    if day_words and _may_describe_subject(sentence):
        raise AmbiguousTime(sentence.phrase)
    # Day words that contradict the repetition leave no rule. "every year on 5/7" leaves two.
    rules = _rules(repetition, day_words, bounds.first)
    if len(rules) != 1:
        raise AmbiguousTime(sentence.phrase)
    rule = _within_months(sentence, _without_exceptions(sentence, rules[0]))
    return _timed_series(sentence, rule, bounds, clock)


def _may_describe_subject(sentence: Sentence) -> bool:
    """Whether an adverb apart from the day may describe a subject: "weekly report Friday"."""
    adverbs = table("english.adverbs")
    for cluster in clusters(sentence.parts):
        # "weekly on Friday" belongs together.
        if any(part.is_day for part in cluster):
            continue
        for part in cluster:
            words = sentence.text.plain[part.lexeme.start : part.lexeme.end]
            is_adverb = part.kind == "repeat" and words in adverbs
            # "daily" needs no day word, so one beside it is refused anyway.
            if is_adverb and part.lexeme.value.unit in _UNITS_WITH_DAYS:
                return True
    return False


def _repetition(sentence: Sentence) -> Repetition:
    """Return the one repetition that the words name.

    "every morning on weekdays" repeats on weekdays: "every day" and "every week" add nothing to a
    more exact repetition.

    Raises AmbiguousTime for several repetitions, ValueError for "every 0 days".
    """
    repeats = [part.lexeme.value for part in sentence.of("repeat") if part.role != EXCEPT]
    repetitions: list[Repetition] = list(dict.fromkeys(repeats))
    for general in (Repetition("day"), Repetition("week")):
        if len(repetitions) > 1 and general in repetitions:
            repetitions.remove(general)
    if len(repetitions) != 1:
        raise AmbiguousTime(sentence.phrase)
    repetition = repetitions[0]
    if repetition.interval == 0:
        raise ValueError("interval")
    return repetition


def _elapsed_series(
    sentence: Sentence, repetition: Repetition, bounds: Bounds, clock: Clock
) -> Reading:
    """Return a series of hours or minutes that begins now: "every 3 hours".

    sentence: the words of the series.
    repetition: how often it repeats.
    bounds: when it ends. Such a series may not have a start.
    clock: the moment at which the text is read.
    """
    rule, minutes = _elapsed_rule(repetition)
    rule = _within_months(sentence, rule)
    # Such a series counts hours from now on, whatever day it is and whatever a clock shows.
    names_days = repeated_days(sentence) or _exceptions(sentence) or sentence.of("per_day")
    if names_days or bounds.first or sentence.of("zone"):
        raise AmbiguousTime(sentence.phrase)
    # The last of several times is counted without a month that is left out.
    if rule.months and bounds.times:
        raise sentence.unused(*sentence.of("times"))
    due = next_time(rule, clock.now, clock.zone, since=clock.now)
    until = _elapsed_until(bounds, due, minutes, clock)

    clocks = [part for part in sentence.parts if part.is_clock]
    if clocks:
        # A clock can only be the end, as in "every hour until 5pm".
        is_end = len(clocks) == 1 and clocks[0].kind == "clock" and clocks[0].role == END
        has_another_end = until is not None
        if has_another_end or not is_end:
            raise AmbiguousTime(sentence.phrase)
        until = _until_clock(sentence, clocks[0], due, clock)
    return Reading(sentence.phrase, due, all_day=False, repeat=str(replace(rule, until=until)))


def _elapsed_rule(repetition: Repetition) -> tuple[Recurrence, Fraction]:
    """Return the rule for "every 2 hours", and how many minutes one interval takes.

    Raises ValueError if it is not of whole minutes, or comes too often.
    """
    minutes = repetition.interval * UNIT_SECONDS[repetition.unit] / 60
    if minutes.denominator != 1 or minutes * 60 < SHORTEST:
        raise ValueError(minutes)
    if minutes % 60:
        return Recurrence("MINUTELY", int(minutes)), minutes
    return Recurrence("HOURLY", int(minutes / 60)), minutes


def _until_clock(sentence: Sentence, end: Part, due: datetime, clock: Clock) -> datetime:
    """Return today at the hour that ends a series: 17:00 for "until 5pm".

    sentence: the words of the series, which an error names.
    end: the word that names the hour.
    due: the first time of the series.
    clock: the moment at which the text is read.

    Raises AmbiguousTime if two hours are possible, and PastTime if the end is before `due`.
    """
    moments = []
    for hour in possible_hours([end.lexeme.value], []):
        # "until midnight" is until the midnight at which today ends.
        hour_on_day = hour._replace(days=1) if hour.word == "midnight" else hour
        moments.append(hour_on_day.on(clock.now.date(), clock.zone))
    if len(moments) != 1:
        raise AmbiguousTime(sentence.phrase, moments)
    if moments[0] < due:
        raise PastTime(sentence.phrase)
    return moments[0].replace(tzinfo=None)


def _elapsed_until(
    bounds: Bounds, due: datetime, minutes: Fraction, clock: Clock
) -> datetime | None:
    """Return the last time of a series of hours or minutes, on the local clock.

    Returns None if the series does not end.

    bounds: the end of the series, as a day, a number of times, or a length.
    due: the first time.
    minutes: the minutes from one time to the next.
    clock: the moment at which the text is read.
    """
    if bounds.last:
        return datetime.combine(bounds.last, time(23, 59, 59))
    # `due` is the first of the times.
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
    """Return a reading for each clock of a series on the calendar.

    sentence: the words of the series.
    rule: the days on which it repeats, without hours.
    bounds: when it starts and ends.
    clock: the moment at which the text is read.

    Raises UnusedWords for words that such a series cannot have, AmbiguousTime for a zone without a
    name.
    """
    # A series of days cannot last "for 2 hours".
    if bounds.length and bounds.length.seconds:
        raise sentence.unused(*sentence.of("length"))
    slots = clock_slots(sentence, _without_clock_ends(sentence))
    for part in sentence.of("per_day"):
        # "twice a day" needs two clocks.
        if part.lexeme.value != len(slots):
            raise sentence.unused(part)
    zone = NamedZone(sentence, clock)
    # A zone belongs to a clock, so it means nothing without one.
    if zone.is_named and not slots:
        raise sentence.unused(*sentence.of("zone"))
    # A rule stores its zone by name, and an offset such as "utc+05:30" has no name.
    if zone.is_named and zone.name is None:
        raise AmbiguousTime(sentence.phrase)
    series = _Series(sentence, replace(rule, zone_name=zone.name), bounds, clock)
    # Without a clock, nothing shows that "evening" is only a part of the subject.
    loose_parts = [part for part in sentence.of("part") if part.is_loose]
    if loose_parts and not slots:
        raise sentence.unused(*loose_parts)
    if not slots:
        if sentence.of("offset"):
            raise sentence.unused(*sentence.of("offset"))
        return [series.at([Hour(time(clock.day_hour))], is_all_day=True)]
    readings = [series.at(_moved(sentence, _hours(sentence, slot))) for slot in slots]
    return sorted(readings, key=lambda reading: reading.due)


def _hours(sentence: Sentence, slot: ClockSlot) -> list[Hour]:
    """Return the hours that a clock may mean.

    slot: the words of the clock, and the parts of the day beside it.

    Raises UnusedWords for a loose part of the day that disagrees.
    """
    hours = possible_hours(slot.clocks, slot.day_parts)
    for part in slot.loose_parts:
        if not all(agrees(hour, part) for hour in hours):
            raise sentence.unused(*[part for part in sentence.parts if part.is_loose])
    return hours


def _moved(sentence: Sentence, hours: Sequence[Hour]) -> list[Hour]:
    """Return the hours of a series, moved by the distance that it names: "an hour before".

    Raises UnusedWords if one would be on another day, as the rule names the days of the event.
    """
    offsets = sentence.of("offset")
    if not offsets:
        return list(hours)
    delay = offsets[0].lexeme.value
    counts_days = not isinstance(delay, Delay) or bool(delay.days or delay.months)
    if len(offsets) > 1 or counts_days:
        raise sentence.unused(*offsets)
    moved: list[Hour] = []
    for hour in hours:
        minutes = 60 * hour.at.hour + hour.at.minute + delay.seconds // 60
        is_same_day = 0 <= minutes < _MINUTES_OF_DAY
        if not is_same_day:
            raise sentence.unused(*offsets)
        moved.append(hour._replace(at=time(minutes // 60, minutes % 60)))
    return moved


def _without_clock_ends(sentence: Sentence) -> list[Part]:
    """Return the parts of a series, but leave out the hours that end its ranges.

    "every day from 9am to 10am" keeps the part for 9am. Days that start or end the series, and days
    after "except", are left out, too.

    Raises UnusedWords for the end of a range without its beginning: "every day until 5pm".
    """
    clock_ends = [part for part in sentence.parts if part.is_clock and part.role == END]
    parts = [part for part in sentence.parts if part not in clock_ends]
    has_clock = any(part.is_clock for part in parts)
    if clock_ends and not has_clock:
        raise sentence.unused(*clock_ends)
    return [part for part in parts if part.role not in (START, END, EXCEPT) or part.is_clock]


class _Series:
    """A repetition with its first and last day, without the hour.

    The rule may name a zone of its own. Its days and hours are in that zone (`_rule_zone`);
    its times are returned in the zone of the reader.
    """

    def __init__(self, sentence: Sentence, rule: Recurrence, bounds: Bounds, clock: Clock):
        self._sentence = sentence
        self._rule = rule
        self._bounds = bounds
        self._clock = clock
        self._rule_zone = rule.zone(clock.zone)

    def at(self, hours: Sequence[Hour], *, is_all_day: bool = False) -> Reading:
        """Return the series at one time of day.

        hours: the hours that its clock may mean.
        is_all_day: whether the text names no clock.

        Raises AmbiguousTime when its clock may mean two hours.
        """
        rules = [_at_hour(self._rule, hour) for hour in hours]
        readings = [self._reading(rule, is_all_day) for rule in rules if rule]
        if len(readings) != 1:
            repeats = {reading.due: reading.repeat for reading in readings}
            due_times = sorted(repeats)
            rules_in_order = [repeats[due] for due in due_times]
            raise AmbiguousTime(self._sentence.phrase, due_times, rules_in_order)
        return readings[0]

    def _reading(self, rule: Recurrence, is_all_day: bool) -> Reading:
        """Return the series by a rule, with its first time and its last day.

        rule: a rule that has its hour.
        is_all_day: whether the text names no clock.

        Raises PastTime if the series ends before it begins.
        """
        due = self._first_time(rule)
        first = due.astimezone(self._rule_zone).date()
        last = self._last_day(rule, due)
        if last is not None:
            if first > last:
                raise PastTime(self._sentence.phrase)
            rule = replace(rule, until=datetime.combine(last, time(23, 59, 59)))
        return Reading(self._sentence.phrase, due, all_day=is_all_day, repeat=str(rule))

    def _first_time(self, rule: Recurrence) -> datetime:
        """Return the first time of the series. Its intervals are counted from there.

        "every other Monday" begins on the next Monday: the interval counts only from then on.
        """
        after = self._clock.now
        first = self._bounds.first
        if first and first > after.date():
            # One moment earlier, since midnight of the first day is one of its times.
            after = wall_time(first, time(0), self._rule_zone) - timedelta(microseconds=1)
        without_interval = replace(rule, interval=1)
        return next_time(without_interval, after, self._clock.zone, since=after)

    def _last_day(self, rule: Recurrence, due: datetime) -> date | None:
        """Return the last day of the series. None without an end.

        rule: the rule by which its times are counted.
        due: its first time.
        """
        bounds = self._bounds
        if bounds.length:
            # "for 5 days" begins now, whether or not this month is left out.
            without_months = rule if rule.freq == "YEARLY" else replace(rule, months=())
            first = self._first_time(without_months).astimezone(self._rule_zone).date()
            return shifted(first, bounds.length.months, bounds.length.days) - timedelta(days=1)
        if bounds.times:
            moment = due
            for _count in range(bounds.times - 1):
                moment = next_time(rule, moment, self._clock.zone, since=due)
            return moment.astimezone(self._rule_zone).date()
        return bounds.last


def _at_hour(rule: Recurrence, hour: Hour) -> Recurrence | None:
    """Return a rule with its hour, or None if there is no such rule.

    An hour after midnight belongs to the next day: "every Friday night at 1" is Saturday at 1:00. A
    rule of dates, such as "every 31st", cannot be moved to the next day.
    """
    timed = replace(rule, hours=(hour.at.hour,), minutes=(hour.at.minute,))
    is_on_next_day = hour.days > 0
    if not is_on_next_day or rule.freq == "DAILY":
        return timed
    if rule.freq == "WEEKLY":
        next_days = sorted((day + 1) % 7 for day in rule.days)
        return replace(timed, days=tuple(next_days))
    return None


def _exceptions(sentence: Sentence) -> list[Part]:
    """Return the parts after "except": "Sunday" in "every day except Sunday"."""
    return [part for part in sentence.parts if part.role == EXCEPT]


def _without_exceptions(sentence: Sentence, rule: Recurrence) -> Recurrence:
    """Return a rule of days without the weekdays that "except" names.

    Raises UnusedWords if "except" names other days, if the rule cannot leave out a weekday, or if
    no day remains.
    """
    exceptions = _exceptions(sentence)
    if not exceptions:
        return rule
    excepted_days: set[int] = set()
    for part in exceptions:
        weekdays = _excepted_days(part)
        if not weekdays:
            raise sentence.unused(part)
        excepted_days.update(weekdays)

    # "every day" is a weekly rule of seven days. "every other day" or "every month" comes on any
    # weekday, so it cannot leave one out.
    is_every_week = rule.freq == "WEEKLY" and rule.interval == 1
    is_every_day = rule == Recurrence("DAILY")
    remaining = [day for day in rule.days or _ALL_WEEKDAYS if day not in excepted_days]
    can_leave_out = bool(remaining) and (is_every_week or is_every_day)
    if not can_leave_out:
        raise sentence.unused(*exceptions)
    return Recurrence("WEEKLY", days=tuple(remaining))


def _refuse_mixed_exceptions(sentence: Sentence) -> None:
    """Raise UnusedWords if "and" joins an exception to a word that may be one, too.

    In "except Sundays and August" and "except in August and on Sundays", only the first is one.
    """
    for part, next_part in pairwise(sentence.parts):
        is_exception = _is_exception(part)
        if not is_exception or next_part.is_clock or _is_exception(next_part):
            continue
        words_between = sentence.text.plain[part.end : next_part.lexeme.start].split()
        # "except Sundays and in August" has a word that joins none of the other times.
        has_joining_word = any(word in ("and", "or") for word in words_between[:1])
        if has_joining_word or next_part.link in ("and", "or"):
            raise sentence.unused(next_part)


def _is_exception(part: Part) -> bool:
    """Whether a part names days or months that a series leaves out, or the only months of it."""
    return part.role == EXCEPT or part.kind == "month_limit"


def _within_months(sentence: Sentence, rule: Recurrence) -> Recurrence:
    """Return a rule limited to the months that "only" and "except" leave.

    Raises UnusedWords if none is left, as in "every May 7 except in May".
    """
    limits = sentence.of("month_limit")
    months = set(rule.months or _ALL_MONTHS)
    for part in limits:
        months &= set(part.lexeme.value.months)
    if not months:
        raise sentence.unused(*limits)
    if months == set(_ALL_MONTHS):
        return rule
    return replace(rule, months=tuple(sorted(months)))


def _excepted_days(part: Part) -> tuple[int, ...]:
    """Return the weekdays that a part names. Empty if it names other days."""
    value = part.lexeme.value
    if part.kind == "weekday" and value.weeks is None:
        return (value.day,)
    if part.kind == "repeat" and value.unit == "week":
        return tuple(value.days)
    if part.kind == "weekend":
        return WEEKEND_DAYS
    return ()


def _rules(
    repetition: Repetition, day_words: Sequence[Lexeme], first: date | None
) -> list[Recurrence]:
    """Return the rules that a repetition and its day words may mean, without an hour.

    The words are clear if there is exactly one rule:

    | repetition | day words | rules |
    |---|---|---|
    | every day, every Friday | none, or the same day again | one |
    | every week | weekdays, or the weekend | one: these days |
    | every month | a day of the month | one: this day |
    | every year | May 7 | one: 7 May |
    | every year | 5/7 | two, because this may be 7 May or 5 July |
    | every week, month or year | none, but the first day of the series | one: the day of `first` |
    | any other | | none: a part is missing, or the parts contradict each other |

    repetition: the words "every week", read.
    day_words: the words that name days beside it.
    first: the first day of the series, if the text names it.
    """
    plain = Recurrence(
        _FREQUENCIES[repetition.unit],
        int(repetition.interval),
        months=repetition.months,
        monthdays=repetition.monthdays,
        days=repetition.days,
        nth=repetition.nth,
    )
    has_days = plain.freq == "DAILY" or plain.days or plain.monthdays
    if has_days:
        return _rules_of_complete(plain, day_words)
    if not day_words and first:
        return [_on_day(plain, first)]
    if plain.freq == "WEEKLY":
        return _rules_of_week(plain, day_words)
    if len(day_words) != 1:
        return []
    if plain.freq == "MONTHLY":
        return _rules_of_month(plain, day_words[0])
    return _rules_of_year(plain, day_words[0])


def _rules_of_complete(plain: Recurrence, day_words: Sequence[Lexeme]) -> list[Recurrence]:
    """Return a rule that has its days already.

    A day word beside it can only repeat what it says: "every Friday" and "Friday". Otherwise empty.

    plain: the rule.
    day_words: the words that name days beside it.
    """
    for lexeme in day_words:
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
    """Return a rule that repeats on the day of its start: "every week from Monday".

    plain: the rule without its day.
    """
    if plain.freq == "WEEKLY":
        return replace(plain, days=(day.weekday(),))
    if plain.freq == "MONTHLY":
        return replace(plain, monthdays=(day.day,))
    return replace(plain, months=(day.month,), monthdays=(day.day,))


def _rules_of_week(plain: Recurrence, day_words: Sequence[Lexeme]) -> list[Recurrence]:
    """Return the rule for "every week" on certain days. The weekend means Saturday.

    Empty if a word does not name a day of the week.

    plain: the rule without its days.
    day_words: the words that name days.
    """
    if [lexeme.kind for lexeme in day_words] == ["weekend"]:
        return [replace(plain, days=(_SATURDAY,))]
    for lexeme in day_words:
        # "next Monday" is a single day, on which nothing repeats.
        is_single_day = lexeme.kind == "weekday" and lexeme.value.weeks is not None
        if lexeme.kind != "weekday" or is_single_day:
            return []
    days = tuple(sorted({lexeme.value.day for lexeme in day_words}))
    if days:
        return [replace(plain, days=days)]
    return []


def _rules_of_month(plain: Recurrence, lexeme: Lexeme) -> list[Recurrence]:
    """Return the rule of "every month" with a day: "the 5th", "the end of the month".

    Empty for other day words.

    plain: the rule without its day.
    lexeme: the word that names a day.
    """
    if lexeme.kind == "edge" and lexeme.value.span == Span("month", offset=0):
        return [replace(plain, monthdays=(_LAST_DAY if lexeme.value.is_last else 1,))]
    if lexeme.kind == "monthday":
        return [replace(plain, monthdays=(lexeme.value,))]
    return []


def _rules_of_year(plain: Recurrence, lexeme: Lexeme) -> list[Recurrence]:
    """Return a rule of "every year" for each day that a word may mean: two for "5/7".

    plain: the rule without its day.
    lexeme: the word that names a day.
    """
    days = _days_of_year(lexeme)
    return [replace(plain, months=(day.month,), monthdays=(day.day,)) for day in days]


class _DayOfYear(NamedTuple):
    """A day that comes every year. `day` may be _LAST_DAY of the month."""

    month: int
    day: int


def _days_of_year(lexeme: Lexeme) -> list[_DayOfYear]:
    """Return the days that a word without a year may mean. Empty for other words.

    Raises ValueError if no year has them.
    """
    value = lexeme.value
    if lexeme.kind == "date" and value[0].year is None:
        dates = [_DayOfYear(date.month, date.day) for date in value if _exists(date)]
        if not dates:
            raise ValueError(value)
        return dates
    if lexeme.kind == "month_edge" and value.year is None:
        return [_DayOfYear(value.month, _LAST_DAY if value.is_last else 1)]
    if lexeme.kind == "edge" and value.span == Span("year", offset=0):
        return [_DayOfYear(12, 31) if value.is_last else _DayOfYear(1, 1)]
    return []


def _exists(date: CalendarDate) -> bool:
    """Whether some year has this day, 29 February included."""
    return 1 <= date.month <= 12 and 1 <= date.day <= monthrange(_LEAP_YEAR, date.month)[1]


def with_run_of_days(sentence: Sentence) -> Sentence:
    """Read "the next 5 days at 8am" as a series that lasts so long.

    Raises UnusedWords without a clock and without a repetition, since it may be one stay.
    """
    runs = sentence.of("run")
    if not runs:
        return sentence
    repeats = sentence.of("repeat")
    has_clock = any(part.is_clock for part in sentence.parts)
    if len(runs) > 1 or not (repeats or has_clock):
        raise sentence.unused(*runs)
    parts: list[Part] = []
    for part in sentence.parts:
        if part.kind != "run":
            parts.append(part)
            continue
        parts.append(replace(part, lexeme=part.lexeme._replace(kind="length")))
        if not repeats:
            daily = part.lexeme._replace(kind="repeat", value=Repetition("day"))
            parts.append(replace(part, lexeme=daily, link="beside"))
    return Sentence(sentence.text, parts)


def with_weekday_range(sentence: Sentence) -> Sentence:
    """Read "Mon-Fri at 7am" as a series.

    Raises UnusedWords without a clock, since it may mean one stay of several days. Raises
    AmbiguousTime beside "every day", since the days may be in one week only.
    """
    ranges = sentence.of("weekday_range")
    if not ranges:
        return sentence
    has_clock = any(part.is_clock for part in sentence.parts)
    repetitions = [part.lexeme.value for part in sentence.of("repeat")]
    is_weekly = all(repetition == Repetition("week") for repetition in repetitions)
    if len(ranges) > 1 or not is_weekly:
        raise AmbiguousTime(sentence.phrase)
    if not has_clock and not repetitions:
        raise sentence.unused(*ranges)

    # Put a repetition on these days in place of the range.
    weekday_range = ranges[0]
    days = days_between(*weekday_range.lexeme.value)
    repetition = Repetition("week", days=tuple(sorted(days)))
    lexeme = weekday_range.lexeme._replace(kind="repeat", value=repetition)
    repeat_part = replace(weekday_range, lexeme=lexeme, role="")
    parts = [repeat_part if part is weekday_range else part for part in sentence.parts]
    return Sentence(sentence.text, parts)
