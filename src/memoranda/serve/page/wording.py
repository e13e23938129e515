"""The words of the page in each language, and times as people say them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.requests import Request

from memoranda.clock import parse_stamp

LANGUAGES = {"en": "English", "zh": "中文"}
COLON = {"en": ": ", "zh": "："}
"""The sign between a name and its value."""
LANGUAGE_COOKIE = "memoranda-language"
_WEEK = 7


def language_of(request: Request) -> str:
    """The language chosen by cookie, or the browser's first language that we have, or English."""
    asked_for = [
        request.cookies.get(LANGUAGE_COOKIE, ""),
        *request.headers.get("accept-language", "").split(","),
    ]
    for entry in asked_for:
        name = entry.strip().partition(";")[0].partition("-")[0].lower()
        if name in LANGUAGES:
            return name
    return "en"


@cache
def words(language: str) -> Mapping[str, str]:
    """The words of a language by the English ones, as the templates have them.

    In English itself: what is called by another name than the ledger's.
    """
    text = files(__package__).joinpath("texts", f"{language}.json").read_text("utf-8")
    table: dict[str, str] = json.loads(text)
    return table


def translated(language: str, english: str, /, **values: Any) -> str:
    """An English sentence in a language; values replace `{name}` in it."""
    sentence = words(language).get(english, english)
    if values:
        return sentence.format(**values)
    return sentence


def done(language: str, verb: str) -> str:
    """A verb of the log as a sentence has it after a name: `wrote it`, `pinned it`."""
    sentence = f"did: {verb}"
    table = words(language)
    return table.get(sentence) or translated(language, verb)


def joined_names(language: str, names: Sequence[str], most: int = 3) -> str:
    """Names as a sentence lists them: `a`, `a and b`, `a, b and c`, `a, b and 2 others`."""
    shown = list(names[:most])
    others = len(names) - most
    if others > 0:
        shown = [*shown[:-1], translated(language, "{n} others", n=others + 1)]
    if len(shown) < 2:
        return "".join(shown)
    beginning = translated(language, ", ").join(shown[:-1])
    return translated(language, " and ").join((beginning, shown[-1]))


def counted(language: str, one: str, many: str, number: int) -> str:
    """A text in a language: `one` for a single thing, otherwise `many` with the number for `{n}`."""
    if number == 1:
        return translated(language, one)
    return translated(language, many, n=f"{number:,}")


def moment_of(at: str | datetime | None) -> datetime | None:
    """The time of a stamp. None if it is not a time."""
    if isinstance(at, datetime):
        return at
    try:
        return parse_stamp(at or "")
    except ValueError:
        return None


def local_time(at: str | datetime | None, zone: tzinfo | None) -> str:
    """A stamp in a zone as `2026-11-23 09:05`. A text that is not a time stays."""
    moment = moment_of(at)
    try:
        if moment is not None:
            return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        pass
    return str(at or "")


def relative_time(
    language: str, at: str | datetime | None, now: datetime, zone: tzinfo | None
) -> str:
    """How long ago: `3 min ago`, `yesterday 09:05`, `Thu 08:34`, `25 Nov`, `25 Nov 2024`."""
    moment = moment_of(at)
    if moment is None:
        return str(at or "")
    try:
        local = moment.astimezone(zone)
    except (ValueError, OverflowError):
        return str(at)
    age = now - moment
    # A stamp of the future, from another machine's clock, is told as a time
    if timedelta(0) <= age < timedelta(minutes=1):
        return translated(language, "just now")
    if timedelta(0) <= age < timedelta(hours=1):
        return translated(language, "{n} min ago", n=int(age.total_seconds() // 60))
    today = now.astimezone(zone).date()
    days = (today - local.date()).days
    clock = f"{local:%H:%M}"
    if days == 0:
        return translated(language, "today {clock}", clock=clock)
    if days == 1:
        return translated(language, "yesterday {clock}", clock=clock)
    if 1 < days < _WEEK:
        weekday = translated(language, f"{local:%a}")
        return translated(language, "{weekday} {clock}", weekday=weekday, clock=clock)
    return short_day(language, local, today.year)


def brief_time(language: str, moment: datetime, now: datetime, zone: tzinfo | None) -> str:
    """When it was, in one word where there is little room: `3 min`, `09:05`, `yesterday`, `Thu`,
    `25 Nov`.
    """
    local = moment.astimezone(zone)
    today = now.astimezone(zone).date()
    days = (today - local.date()).days
    if timedelta(0) <= now - moment < timedelta(hours=1):
        minutes = int((now - moment).total_seconds() // 60)
        if minutes == 0:
            return translated(language, "now")
        return translated(language, "{n} min", n=minutes)
    if days == 0:
        return f"{local:%H:%M}"
    if days == 1:
        return translated(language, "yesterday")
    if 1 < days < _WEEK:
        return translated(language, f"{local:%a}")
    return short_day(language, local, today.year)


def short_day(language: str, local: date, this_year: int) -> str:
    """A day as `25 Nov`, with the year if it is not this year."""
    if language == "zh":
        day = f"{local.month}月{local.day}日"
        if local.year != this_year:
            day = f"{local.year}年{day}"
        return day
    day = f"{local.day} {local:%b}"
    if local.year != this_year:
        day = f"{day} {local.year}"
    return day


def long_day(language: str, moment: datetime, zone: tzinfo | None) -> str:
    """`Saturday, 28 November`."""
    return date_words(language, moment.astimezone(zone).date())


def date_words(language: str, day: date) -> str:
    """`Saturday, 28 November` of a day."""
    if language == "zh":
        return f"{day.month}月{day.day}日，{translated(language, f'{day:%A}')}"
    return f"{day:%A}, {day.day} {day:%B}"


def month_words(language: str, day: date) -> str:
    """`November 2026` of a day in it."""
    if language == "zh":
        return f"{day.year}年{day.month}月"
    return f"{day:%B} {day.year}"


def heading_of_day(
    language: str, at: str | datetime | None, now: datetime, zone: tzinfo | None
) -> str:
    """`Today`, `Yesterday`, `Thursday`, `25 November`."""
    moment = moment_of(at)
    if moment is None:
        return str(at or "")
    local = moment.astimezone(zone)
    days = (now.astimezone(zone).date() - local.date()).days
    if days == 0:
        return translated(language, "Today")
    if days == 1:
        return translated(language, "Yesterday")
    if 1 < days < _WEEK:
        return translated(language, f"{local:%A}")
    return short_day(language, local, now.astimezone(zone).year)


def lateness(language: str, at: datetime, now: datetime, zone: tzinfo | None) -> str:
    """`9 days late`, `3 h late`, or when it is due: `09:49`, `Mon 09:00`, `25 Nov 09:00`."""
    local = at.astimezone(zone)
    today = now.astimezone(zone)
    late = now - at
    if late >= timedelta(days=1):
        return counted(language, "one day late", "{n} days late", late.days)
    if late >= timedelta(hours=1):
        return translated(language, "{n} h late", n=int(late.total_seconds() // 3600))
    if local.date() == today.date():
        return f"{local:%H:%M}"
    if local.date() - today.date() == timedelta(days=1):
        return translated(language, "tomorrow {clock}", clock=f"{local:%H:%M}")
    if local.date() - today.date() < timedelta(days=_WEEK):
        weekday = translated(language, f"{local:%a}")
        return translated(language, "{weekday} {clock}", weekday=weekday, clock=f"{local:%H:%M}")
    return f"{short_day(language, local, today.year)} {local:%H:%M}"
