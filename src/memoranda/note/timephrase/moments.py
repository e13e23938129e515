"""Times that come once: the moments that the parts of a sentence name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import product

from memoranda.errors import AmbiguousTime, PastTime, UnusedWords
from memoranda.note.timephrase.days import possible_days, wall_time
from memoranda.note.timephrase.hours import Hour, agrees, possible_hours
from memoranda.note.timephrase.parts import EXCEPT, Part
from memoranda.note.timephrase.reading import Clock, NamedZone, Reading, Sentence, later
from memoranda.note.timephrase.slots import (
    ClockSlot,
    DaySlot,
    clock_slots,
    day_slots,
    pair_slots,
    without_range_ends,
)
from memoranda.note.timephrase.values import Delay, WeekdayFrom

# When a reminder for a day without a clock comes if the usual hour of today has passed.
_LATE = time(18)


def read_once(sentence: Sentence, clock: Clock) -> list[Reading]:
    """Return the times of a sentence without a repetition, in order.

    Raises TimeRefused, or ValueError and OverflowError for a day that does not exist.
    """
    _refuse_unusable(sentence)
    sentence = sentence.without("length", "times")
    offsets = sentence.of("offset")
    if offsets:
        return _read_offset(sentence, offsets, clock)
    exact_parts = [part for part in sentence.parts if _is_exact(part)]
    if not exact_parts:
        return _read_days_and_clocks(sentence, clock)

    # An exact time needs no other words. If there are some, they must mean the same moment.
    moments = {_exact_moment(part, sentence, clock) for part in exact_parts}
    other_parts = [
        part for part in sentence.parts if part not in exact_parts and part.kind != "zone"
    ]
    is_only_today = all(part.kind == "day" and part.lexeme.value == 0 for part in other_parts)
    if not is_only_today:
        moments |= _moments_beside(sentence, other_parts, clock)
    due = _the_one_moment(sentence, moments, clock)
    return [Reading(sentence.phrase, due, is_dated=True, is_explicit=True)]


def _refuse_unusable(sentence: Sentence) -> None:
    """Raise UnusedWords for parts that only a series can use.

    They are days after "except", a length of days ("for 5 days"), and a month ("in June").
    """
    for part in sentence.parts:
        if part.role == EXCEPT:
            # Name the word "except", or the day if the word is behind it as in Chinese.
            words = sentence.text.as_written(part.start, part.lexeme.start)
            raise UnusedWords(sentence.phrase, words or sentence.words([part]))
    lengths = [part for part in sentence.of("length") if _is_in_days(part)]
    months = sentence.of("month")
    if lengths or months:
        raise sentence.unused(*lengths, *months)


def _is_in_days(length: Part) -> bool:
    """Whether a length can be the length of a series: "for 5 days", not "for 2 hours"."""
    return bool(length.lexeme.value.days or length.lexeme.value.months)


def _is_exact(part: Part) -> bool:
    """Whether a word names a moment alone: "in 2 hours", 2026-05-07T10:00Z."""
    return part.kind == "instant" or (part.kind == "delay" and bool(part.lexeme.value.seconds))


def _exact_moment(part: Part, sentence: Sentence, clock: Clock) -> datetime:
    """Return the moment of a word that names it alone: "in 2 hours", or a date and clock as a
    computer writes them.

    part: the word.
    sentence: the time words that it belongs to. They may name a zone.
    clock: the moment at which the text is read.

    Raises UnusedWords for a zone beside a moment that has its own.
    """
    if part.kind == "delay":
        return later(part.lexeme.value, clock.now, clock.zone)
    instant: datetime = part.lexeme.value
    if instant.tzinfo:
        if sentence.of("zone"):
            raise sentence.unused(*sentence.of("zone"))
        return instant.astimezone(clock.zone)
    zone = NamedZone(sentence, clock)
    return zone.check(wall_time(instant.date(), instant.time(), zone.zone))


def _moments_beside(sentence: Sentence, other_parts: Sequence[Part], clock: Clock) -> set[datetime]:
    """Return the moments that the parts beside an exact one name.

    Two ways to say one time give the same moment: "in 2 hours, at 5pm".

    sentence: all time words.
    other_parts: the parts that are not the exact one.
    clock: the moment at which the text is read.
    """
    if not other_parts:
        return set()
    loose = [part for part in other_parts if part.is_loose]
    if loose:
        raise sentence.unused(*loose)
    readings = _read_days_and_clocks(Sentence(sentence.text, other_parts), clock)
    return {reading.due for reading in readings}


def _the_one_moment(sentence: Sentence, moments: set[datetime], clock: Clock) -> datetime:
    """Return the one moment that remains.

    sentence: the time words, which an error names.
    moments: all moments that the words may mean.
    clock: the moment at which the text is read.

    Raises PastTime when all have passed, AmbiguousTime for several.
    """
    if not moments:
        raise AmbiguousTime(sentence.phrase)
    if all(moment <= clock.now for moment in moments):
        raise PastTime(sentence.phrase)
    if len(moments) > 1:
        raise AmbiguousTime(sentence.phrase, sorted(moments))
    return min(moments)


def _read_offset(sentence: Sentence, offsets: Sequence[Part], clock: Clock) -> list[Reading]:
    """Read a time that is some days or hours from another time.

    Examples are "a week from Friday" and "two hours before midnight".

    sentence: the time words.
    offsets: the words of the distance, "a week from". Several raise AmbiguousTime.
    clock: the moment at which the text is read.
    """
    offset = offsets[0]
    base = sentence.without("offset")
    if len(offsets) != 1 or not base.parts:
        raise AmbiguousTime(sentence.phrase)

    # If the other time may mean two moments, so may this one: the error names both, each shifted.
    distance = offset.lexeme.value
    try:
        base_readings = _read_days_and_clocks(base, clock)
    except UnusedWords:
        raise
    except AmbiguousTime as error:
        candidates = [_moved(moment, distance, clock) for moment in error.candidates]
        raise AmbiguousTime(sentence.phrase, candidates) from None

    readings = []
    for reading in base_readings:
        # Nobody knows the hour of "an hour before Friday".
        counts_hours = isinstance(distance, Delay) and distance.seconds
        if reading.all_day and counts_hours:
            raise sentence.unused(offset)
        due = _moved(reading.due, distance, clock)
        if due <= clock.now:
            raise PastTime(sentence.phrase)
        readings.append(
            replace(reading, phrase=sentence.phrase, due=due, is_dated=True, is_explicit=True)
        )
    return readings


def _moved(moment: datetime, distance: Delay | WeekdayFrom, clock: Clock) -> datetime:
    """Return the moment that is some distance from another one.

    distance: an amount of time, or a weekday counted from the day of the moment.
    clock: the moment at which the text is read.
    """
    if isinstance(distance, WeekdayFrom):
        distance = distance.distance(moment.date())
    return later(distance, moment, clock.zone)


def _read_days_and_clocks(sentence: Sentence, clock: Clock) -> list[Reading]:
    """Read the times that days and clocks name together: "Monday at 3pm and Friday at 5pm" are two.

    sentence: the time words.
    clock: the moment at which the text is read.

    Raises UnusedWords for words that fit no time, AmbiguousTime if it is unclear which clock
    belongs to which day.
    """
    parts = without_range_ends(sentence)
    days = day_slots(parts)
    clocks = clock_slots(sentence, parts)
    _refuse_loose(sentence, clocks)
    # In "9am London", the city may be a zone, or only the place of a meeting.
    if sentence.of("where"):
        raise AmbiguousTime(sentence.phrase)
    # A zone belongs to a clock, so it means nothing without one.
    zone = NamedZone(sentence, clock)
    if zone.is_named and not clocks:
        raise sentence.unused(*sentence.of("zone"))

    # Find out which clock belongs to which day.
    pairs = pair_slots(days, clocks)
    if pairs is None:
        raise AmbiguousTime(sentence.phrase)
    is_explicit = _is_explicit(sentence)
    is_dated = is_explicit or bool(sentence.of("monthday", "span", "edge"))
    readings = []
    for day_slot, clock_slot in pairs:
        moments = _moments(day_slot, clock_slot, zone, clock)
        readings.append(
            Reading(
                sentence.phrase,
                _the_one_moment(sentence, moments, clock),
                all_day=clock_slot is None,
                is_dated=is_dated,
                is_explicit=is_explicit,
            )
        )
    return sorted(readings, key=lambda reading: reading.due)


def _refuse_loose(sentence: Sentence, clocks: Sequence[ClockSlot]) -> None:
    """Raise UnusedWords for a loose part that may be meant as a time.

    A loose part names no time here, as "evening" in "evening class". It is harmless beside clocks
    that agree with it: "evening class tomorrow at 7pm". Refused are "evening class tomorrow", "at
    7am" beside it, and a loose "this week".

    sentence: the time words.
    clocks: the clocks that they name.
    """
    for part in sentence.parts:
        if not part.is_loose:
            continue
        if part.kind == "span" or not clocks:
            raise sentence.unused(part)
        for slot in clocks:
            hours = possible_hours(slot.clocks, slot.day_parts)
            if not all(agrees(hour, part.lexeme.value) for hour in hours):
                raise sentence.unused(part)


def _is_explicit(sentence: Sentence) -> bool:
    """Whether a date with its month is named, or a day counted from now."""
    if sentence.of("date", "instant", "month_edge", "delay", "nth_weekday", "lunar", "workdays"):
        return True
    # "Friday next week", but not "Friday".
    if any(part.lexeme.value.weeks is not None for part in sentence.of("weekday")):
        return True
    # "tomorrow", but not "today".
    if any(part.lexeme.value > 0 for part in sentence.of("day")):
        return True
    # "the 3rd of next month", but not "the 3rd".
    return bool(sentence.of("monthday") and sentence.of("span"))


def _moments(
    day_slot: DaySlot | None, clock_slot: ClockSlot | None, zone: NamedZone, clock: Clock
) -> set[datetime]:
    """Return all moments that a day and a clock may mean.

    day_slot: the words of the day. None for the next time that the clock shows it.
    clock_slot: the words of the clock. None for a day without a clock.
    zone: the zone of the clock.
    clock: the moment at which the text is read.
    """
    lexemes = day_slot.lexemes if day_slot else []
    days = possible_days(lexemes, clock.now.date())
    if clock_slot is None:
        is_only = len(days) == 1
        return {_without_clock(day, is_only, clock) for day in days}
    hours = possible_hours(clock_slot.clocks, clock_slot.day_parts)
    if not days:
        return {zone.check(_next_showing(hour, zone.zone, clock)) for hour in hours}
    moments = set()
    for day, hour in product(days, hours):
        midnight_after = hour._replace(days=1)
        # "midnight today" is the midnight at which today ends.
        is_end_of_today = hour.word == "midnight" and day == clock.now.date()
        hour_on_day = midnight_after if is_end_of_today else hour
        moments.add(zone.check(hour_on_day.on(day, zone.zone)))
        # "midnight on New Year's Eve" may be either one.
        if hour.word == "midnight" and day_slot and day_slot.is_holiday:
            moments.add(zone.check(midnight_after.on(day, zone.zone)))
    return moments


def _without_clock(day: date, is_only: bool, clock: Clock) -> datetime:
    """Return the moment of a day without a clock: the usual hour, or the late one if that is over.

    day: the day that the words mean.
    is_only: whether the words may mean only this day. If "Friday" is said on a Friday whose usual
        hour has passed, next week's is meant, so this one does not get the late hour.
    clock: when the text is read.
    """
    usual = wall_time(day, time(clock.day_hour), clock.zone)
    late = wall_time(day, _LATE, clock.zone)
    if is_only and usual <= clock.now < late:
        return late
    return usual


def _next_showing(hour: Hour, zone: tzinfo, clock: Clock) -> datetime:
    """Return the next time a clock shows an hour. The end of the working day is always today's."""
    today = clock.now.astimezone(zone).date()
    if hour.word == "eod":
        return hour.on(today, zone)
    # "1 at night" is an hour of the day before, so that of yesterday may still be ahead.
    days = [today + timedelta(days=step) for step in (-1, 0, 1)]
    moments = [hour.on(day, zone) for day in days]
    for moment in moments:
        # In UTC, since moments of one zone are compared by their clocks.
        if moment.astimezone(UTC) > clock.now.astimezone(UTC):
            return moment
    return moments[-1]
