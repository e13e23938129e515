"""Says in words what a change did to a property of a note: `due: tomorrow 09:00`.

The names of header keys are words in the tables of texts/. `zone` is the reader's time zone, and
`now` the present moment.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, tzinfo

from memoranda.clock import parse_stamp
from memoranda.serve.page.repetition import repetition
from memoranda.serve.page.wording import short_day, translated, words

# Keys whose values are times.
_TIMES = frozenset(
    ("due_at", "snoozed_until", "fired_for", "valid_from", "valid_until", "expires_at", "date")
)
_RULE = "repeat"
_WEEK = 7
_MAX_CHARACTERS = 80


def property_name(language: str, key: str) -> str:
    """Return the name of a header key in words. A key without words loses its underscores."""
    table = words(language)
    return table.get(key) or translated(language, key.replace("_", " "))


def property_value(language: str, key: str, value: str, now: datetime, zone: tzinfo | None) -> str:
    """Return the value of a header key in words: a time as `tomorrow 09:00`, a rule as `every day`."""
    if key in _TIMES:
        return point_in_time(language, value, now, zone)
    if key == _RULE:
        return repetition(language, value)
    if len(value) > _MAX_CHARACTERS:
        return f"{value[: _MAX_CHARACTERS - 1]}…"
    return translated(language, value)


def point_in_time(language: str, value: str | datetime, now: datetime, zone: tzinfo | None) -> str:
    """Return a past or future time in words, with its clock. A day alone has no clock.

    Examples are `tomorrow 09:00`, `Tuesday 09:00` for the week to come, `25 Nov 09:00`, `25 Nov 2027`.
    A text that is not a time is returned as it is.
    """
    today = now.astimezone(zone).date()
    if isinstance(value, str):
        with suppress(ValueError):
            return short_day(language, date.fromisoformat(value), today.year)
    try:
        moment = parse_stamp(value) if isinstance(value, str) else value
        return _with_clock(language, moment.astimezone(zone), today)
    except (ValueError, OverflowError):
        return str(value)


def _with_clock(language: str, local: datetime, today: date) -> str:
    """Return a time in words, as seen on the day `today`."""
    clock = f"{local:%H:%M}"
    days = (local.date() - today).days
    if days == 0:
        return translated(language, "today {clock}", clock=clock)
    if days == 1:
        return translated(language, "tomorrow {clock}", clock=clock)
    if days == -1:
        return translated(language, "yesterday {clock}", clock=clock)
    if 1 < days < _WEEK:
        weekday = translated(language, f"{local:%A}")
        return translated(language, "{weekday} {clock}", weekday=weekday, clock=clock)
    return f"{short_day(language, local, today.year)} {clock}"
