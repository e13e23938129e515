"""The meaning of clocks and parts of the day: which wall times they may stand for."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from commonplace.note.timephrase.recurrence import wall
from commonplace.note.timephrase.tokens import Clock, Token
from commonplace.note.timephrase.words import words


class Hour(NamedTuple):
    """A wall time `days` after the day it is said of (1: after its midnight). `word` is "midnight" or "eod"
    for these two."""

    at: time
    days: int = 0
    word: str = ""

    def on(self, day: date, zone: tzinfo) -> datetime:
        return wall(day + timedelta(days=self.days), self.at, zone)


class Unclear(ValueError):
    """A part of the day that needs an hour."""


def hours(clocks: list[Token], parts: list[Token]) -> list[Hour]:
    """All times the words may mean, several when they are ambiguous, none without words. Raises ValueError
    for a clock its part of the day does not have, Unclear when the hour is missing."""
    named = list(dict.fromkeys(token.value for token in parts))
    if not clocks:
        table = words()["hours"]
        if any(part not in table for part in named):
            raise Unclear
        return [Hour(time(table[part])) for part in named]
    found = [hour for token in clocks for part in (named or [None]) for hour in _meanings(token.value, part)]
    return list(dict.fromkeys(found))


def _meanings(clock: Clock, part: str | None) -> list[Hour]:
    if part is None:
        return _unaided(clock)
    if clock.form == "eod":
        return [_hour(clock, 18)]
    if part == "morning" and clock.hour == 12:
        return _unaided(clock)
    if clock.form in ("bare", "colon"):
        return [_in_part(clock, part)]
    if part == "night" and (clock.hour in (0, 24) or clock.form == "midnight"):
        return [_hour(clock, 0, 1)]
    if clock.hour not in _SPANS[part]:
        raise ValueError(part)
    return _unaided(clock)


def _unaided(clock: Clock) -> list[Hour]:
    if clock.form == "bare":
        return [_hour(clock, clock.hour % 12), _hour(clock, clock.hour % 12 + 12)]
    return [_hour(clock, 0, 1) if clock.hour == 24 else _hour(clock, clock.hour)]


# The hours of the day a part may be said of when the clock is of 24 hours.
_SPANS = {
    "morning": range(0, 13), "small hours": range(0, 12), "noon": range(10, 16), "afternoon": range(12, 20),
    "evening": range(16, 24), "night": range(0, 24),
}  # fmt: skip


def _in_part(clock: Clock, part: str) -> Hour:
    """An hour from 1 to 12 in a part of the day 12 in the morning is
    not decided here. The night goes on after midnight: 12 to 4 are of the next day."""
    hour = clock.hour
    if part == "morning":
        return _hour(clock, hour)
    if part == "small hours":
        return _hour(clock, hour % 12)
    if part == "noon":
        return _hour(clock, hour if hour >= 10 else hour + 12)
    if part == "night" and (hour == 12 or hour < 5):
        return _hour(clock, hour % 12, 1)
    if part == "evening" and hour == 12:
        return _hour(clock, 0, 1)
    return _hour(clock, hour % 12 + 12)


def _hour(clock: Clock, hour: int, days: int = 0) -> Hour:
    word = clock.form if clock.form in ("midnight", "eod") else ""
    return Hour(time(hour, clock.minute, clock.second), days, word)
