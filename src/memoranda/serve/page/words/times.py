"""Writes times and days, all by one rule, as people say them.

- A moment near the present is told by its distance or its day: `3 min ago`, `today 09:05`,
  `yesterday 09:05`, `tomorrow 09:05`.
- Within a week it has the weekday: `Thu 08:34`.
- Any other moment has the date: `Nov 3`, or `Nov 3, 2025` if that is not this year. If it lies
  ahead, it keeps its clock, because something happens then: `Dec 8, 09:00`.

A day without a clock follows the same rule: `today`, `Thu`, `Nov 3`. The page shows each of them as a
`<time>` element, whose title has the full date, the clock and the time zone.

The parameter `language` is a key of LANGUAGES, `zone` is the reader's time zone, and `now` is the
present moment, in every function.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime, timedelta, tzinfo
from typing import NamedTuple

from markupsafe import Markup

from memoranda.clock import parse_stamp
from memoranda.serve.page.words.wording import counted, translated
from memoranda.text.unicode import visible

# `2026-11-28`, as it is written in a header or a log.
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
# `2026-11-28 09:05`, as agents are told a time, in the reader's time zone.
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
_WEEK = 7
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY_LENGTH = timedelta(days=1)

Time = str | date | datetime | None
"""A stamp, a day as `2026-11-28`, a day, or a moment. Any other text is not a time, nor is None."""


class Clock(NamedTuple):
    """The language and the clock of a reader."""

    language: str
    now: datetime
    zone: tzinfo | None

    @property
    def today(self) -> date:
        """The present day in the reader's time zone."""
        return self.now.astimezone(self.zone).date()

    def local(self, at: Time) -> datetime | None:
        """Return a moment in the reader's time zone. None for a day, and a text that is not a stamp."""
        # A value from the header of a note may be anything, such as a list.
        if not isinstance(at, (str, datetime)):
            return None
        try:
            if isinstance(at, str) and _LOCAL.fullmatch(at):
                return datetime.fromisoformat(at).replace(tzinfo=self.zone)
            moment = at if isinstance(at, datetime) else parse_stamp(at)
            return moment.astimezone(self.zone)
        except (ValueError, OverflowError):
            return None


def day_in(at: Time) -> date | None:
    """Return the day of a date or of a text such as `2026-11-28`. None if `at` has a clock time."""
    if isinstance(at, date) and not isinstance(at, datetime):
        return at
    if isinstance(at, str) and _DAY.fullmatch(at):
        with suppress(ValueError):
            return date.fromisoformat(at)
    return None


def time_words(clock: Clock, at: Time) -> str:
    """Return a time or a day in words, as the head of this module says: "just now", "5 min ago".

    A text that is not a time is returned unchanged.
    """
    day = day_in(at)
    if day is not None:
        return day_words(clock, day)
    local = clock.local(at)
    if local is None:
        return str(at or "")
    age = clock.now - local
    if timedelta(0) <= age < _MINUTE:
        return translated(clock.language, "just now")
    if timedelta(0) <= age < _HOUR:
        return translated(clock.language, "{n} min ago", n=age // _MINUTE)
    return _with_clock(clock, local)


def _with_clock(clock: Clock, local: datetime) -> str:
    """Return a local time in words with its clock: `today 09:05`, `Thu 09:05`, `Nov 3, 09:05`.

    A day more than a week ago has no clock: `Nov 3`.
    """
    near_days = {
        0: "today {clock}",
        -1: "yesterday {clock}",
        1: "tomorrow {clock}",
    }
    hour = f"{local:%H:%M}"
    days = (local.date() - clock.today).days
    if days in near_days:
        return translated(clock.language, near_days[days], clock=hour)
    if abs(days) < _WEEK:
        weekday = translated(clock.language, f"{local:%a}")
        return translated(clock.language, "{weekday} {clock}", weekday=weekday, clock=hour)
    day = short_day(clock, local.date())
    if days < 0:
        return day
    return translated(clock.language, "{day}, {clock}", day=day, clock=hour)


def day_words(clock: Clock, day: date) -> str:
    """Return a day without a clock in words: `today`, `Thu`, `Nov 3`, `Nov 3, 2025`."""
    days = (day - clock.today).days
    near_days = {0: "today", -1: "yesterday", 1: "tomorrow"}
    if days in near_days:
        return translated(clock.language, near_days[days])
    if abs(days) < _WEEK:
        return translated(clock.language, f"{day:%a}")
    return short_day(clock, day)


def brief_words(clock: Clock, moment: datetime) -> str:
    """Return a past moment in words for a narrow place: `now`, `3 min`, `09:05`, `Thu`, `Nov 3`."""
    local = moment.astimezone(clock.zone)
    age = clock.now - moment
    if timedelta(0) <= age < _MINUTE:
        return translated(clock.language, "now")
    if timedelta(0) <= age < _HOUR:
        return translated(clock.language, "{n} min", n=age // _MINUTE)
    if local.date() == clock.today:
        return f"{local:%H:%M}"
    return day_words(clock, local.date())


def late_words(clock: Clock, at: datetime) -> str:
    """Return how late something is, as `9 days late` or `3 h late`, or else when it is due."""
    late = clock.now - at
    if late >= _DAY_LENGTH:
        return counted(clock.language, "one day late", "{n} days late", late.days)
    if late >= _HOUR:
        return translated(clock.language, "{n} h late", n=late // _HOUR)
    return _with_clock(clock, at.astimezone(clock.zone))


def short_day(clock: Clock, day: date) -> str:
    """Return a day as `Nov 25`, with the year if it is not this year: `Nov 25, 2025`."""
    is_this_year = day.year == clock.today.year
    if clock.language == "zh":
        year = "" if is_this_year else f"{day.year}年"
        return f"{year}{day.month}月{day.day}日"
    year = "" if is_this_year else f", {day.year}"
    return f"{day:%b} {day.day}{year}"


def long_day(clock: Clock, day: date) -> str:
    """Return a day as `Saturday, November 28`, with the year if it is not this year."""
    return _long_day(clock.language, day, has_year=day.year != clock.today.year)


def moment_words(clock: Clock, at: datetime) -> str:
    """Return a moment with its day and its clock in full: `Saturday, November 28, 09:05`."""
    local = at.astimezone(clock.zone)
    day = long_day(clock, local.date())
    return translated(clock.language, "{day}, {clock}", day=day, clock=f"{local:%H:%M}")


def _long_day(language: str, day: date, *, has_year: bool) -> str:
    weekday = translated(language, f"{day:%A}")
    if language == "zh":
        year = f"{day.year}年" if has_year else ""
        return f"{year}{day.month}月{day.day}日，{weekday}"
    year = f", {day.year}" if has_year else ""
    return f"{weekday}, {day:%B} {day.day}{year}"


def month_words(language: str, day: date) -> str:
    """Return the month of a day as `November 2026`."""
    if language == "zh":
        return f"{day.year}年{day.month}月"
    return f"{day:%B} {day.year}"


def heading_of_day(clock: Clock, at: Time) -> str:
    """Return a heading for the day of a moment: `Today`, `Yesterday`, `Thursday`, `Nov 25`.

    A text that is neither a day nor a stamp is returned unchanged.
    """
    day = day_in(at)
    if day is None:
        local = clock.local(at)
        if local is None:
            return str(at or "")
        day = local.date()
    days = (clock.today - day).days
    if days == 0:
        return translated(clock.language, "Today")
    if days == 1:
        return translated(clock.language, "Yesterday")
    if 1 < days < _WEEK:
        return translated(clock.language, f"{day:%A}")
    return short_day(clock, day)


def full_time(clock: Clock, at: Time) -> str:
    """Return a time in full: with its day, year and zone. Or a day with its year.

    An example is `Saturday, November 28, 2026, 09:05 UTC+01:00`.
    """
    day = day_in(at)
    if day is not None:
        return _long_day(clock.language, day, has_year=True)
    local = clock.local(at)
    if local is None:
        return str(at or "")
    words = _long_day(clock.language, local.date(), has_year=True)
    # `+01:00`. The names of zones are not known everywhere.
    offset = local.isoformat()[-6:] if local.utcoffset() else ""
    hour = f"{local:%H:%M} UTC{offset}"
    return translated(clock.language, "{day}, {clock}", day=words, clock=hour)


def time_element(clock: Clock, at: Time, words: str = "") -> Markup | str:
    """Return a time as an HTML element whose tooltip has the full time.

    A text that is not a time is returned as it is.

    words: the words to show. "" means the words that `time_words` returns.
    """
    shown = words or time_words(clock, at)
    day = day_in(at)
    local = clock.local(at)
    if day is not None:
        machine_time = day.isoformat()
    elif local is not None:
        machine_time = local.isoformat(timespec="seconds")
    else:
        return shown
    element = Markup('<time datetime="{}" title="{}">{}</time>')
    return element.format(machine_time, full_time(clock, at), visible(shown))
