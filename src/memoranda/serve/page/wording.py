"""Translates the texts of the page, and writes times as people say them ("3 min ago").

Templates and views have English texts. The tables in `texts/` have the texts of other languages.
The parameter `language` is a key of LANGUAGES, `zone` is the reader's time zone, and `now` is the
present moment, in every function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import cache
from typing import Any

from starlette.requests import Request

from memoranda.clock import parse_stamp
from memoranda.serve.page.package_files import TEXTS, text_in

LANGUAGES = {"en": "English", "zh": "中文"}
COLON = {"en": ": ", "zh": "："}
"""The sign between a name and its value."""
LANGUAGE_COOKIE = "memoranda-language"
_WEEK = 7
_SATURDAY = 5
_SUNDAY = 6
# The regions whose weeks do not begin on Monday (CLDR, supplemental data).
_REGIONS_BY_FIRST_DAY = {
    _SATURDAY: "AF BH DJ DZ EG IQ IR JO KW LY OM QA SD SY",
    _SUNDAY: "AG AS BD BR BS BT BW BZ CA CO DM DO ET GT GU HK HN ID IL IN JM JP KE KH KR LA MH MM "
    "MO MT MX MZ NI NP PA PE PH PK PR PT PY SA SG SV TH TT TW UM US VE VI WS YE ZA ZW",
}


def language_of(request: Request) -> str:
    """Return the language to answer in, a key of LANGUAGES.

    The choice in the cookie goes first, then the languages of the browser (`zh-CN,en;q=0.8`), then
    English.
    """
    preferences = [
        request.cookies.get(LANGUAGE_COOKIE, ""),
        *request.headers.get("accept-language", "").split(","),
    ]
    for entry in preferences:
        # `zh-CN;q=0.9` gives `zh`.
        name = entry.strip().partition(";")[0].partition("-")[0].lower()
        if name in LANGUAGES:
            return name
    return "en"


def first_weekday_of(request: Request) -> int:
    """Return the day on which weeks begin for the reader: 0 for Monday, 6 for Sunday.

    The region of the browser's first language decides: 6 for `en-US`. Without a region it is 0.
    """
    language = request.headers.get("accept-language", "").partition(",")[0].partition(";")[0]
    # "ca" alone is Catalan, not Canada.
    _, hyphen, region = language.strip().upper().rpartition("-")
    if not hyphen:
        return 0
    for weekday, regions in _REGIONS_BY_FIRST_DAY.items():
        if region in regions.split():
            return weekday
    return 0


@cache
def words(language: str) -> Mapping[str, str]:
    """Return the texts of a language by the English text that templates have.

    The table of English has texts for words of the ledger that the page calls differently.
    """
    table: dict[str, str] = json.loads(text_in(TEXTS, f"{language}.json"))
    return table


def translated(language: str, english: str, /, **values: Any) -> str:
    """Return an English text in a language. The value `name=…` replaces `{name}` in it."""
    sentence = words(language).get(english, english)
    if values:
        return sentence.format(**values)
    return sentence


def done(language: str, verb: str) -> str:
    """Return a verb of the log in a form that follows a name: `write` gives `wrote it`."""
    sentence = f"did: {verb}"
    table = words(language)
    return table.get(sentence) or translated(language, verb)


def joined_names(language: str, names: Sequence[str], max_names: int = 3) -> str:
    """Return names as a sentence lists them: `a`, `a and b`, `a, b and c`, `a, b and 2 others`."""
    items = list(names[:max_names])
    hidden_count = len(names) - max_names
    if hidden_count > 0:
        # The words "2 others" take the place of the last name.
        items[-1] = translated(language, "{n} others", n=hidden_count + 1)
    if len(items) < 2:
        return "".join(items)
    beginning = translated(language, ", ").join(items[:-1])
    return translated(language, " and ").join((beginning, items[-1]))


def counted(language: str, singular: str, plural: str, number: int, **values: Any) -> str:
    """Return the text for a number of things in a language.

    `singular` is for one thing. In `plural`, `{n}` is replaced by the number: "{n} days late". The
    value `name=…` replaces `{name}` in both.
    """
    if number == 1:
        return translated(language, singular, **values)
    return translated(language, plural, n=f"{number:,}", **values)


def moment_of(at: str | datetime | None) -> datetime | None:
    """Return the moment of a stamp, or the moment itself. None for a text that is not a stamp."""
    if isinstance(at, datetime):
        return at
    try:
        return parse_stamp(at or "")
    except ValueError:
        return None


def local_time(at: str | datetime | None, zone: tzinfo | None) -> str:
    """Return a stamp or moment as `2026-11-23 09:05`. A text that is not a stamp is returned as is."""
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
    """Return how long ago a moment was, in words.

    Examples are `3 min ago`, `yesterday 09:05`, `Thu 08:34`, `25 Nov`, `25 Nov 2024`.
    """
    moment = moment_of(at)
    if moment is None:
        return str(at or "")
    try:
        local = moment.astimezone(zone)
    except (ValueError, OverflowError):
        return str(at)
    age = now - moment
    # A negative age comes from another machine's clock. The steps below show it as a day and time.
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
    """Return when a moment was, as briefly as possible.

    Examples are `now`, `3 min`, `09:05`, `yesterday`, `Thu`, `25 Nov`.
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
    """Return a day as `25 Nov`, with the year if it is not this year."""
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
    """Return the day of a moment as `Saturday, 28 November`."""
    return date_words(language, moment.astimezone(zone).date())


def date_words(language: str, day: date) -> str:
    """Return a day as `Saturday, 28 November`."""
    if language == "zh":
        return f"{day.month}月{day.day}日，{translated(language, f'{day:%A}')}"
    return f"{day:%A}, {day.day} {day:%B}"


def month_words(language: str, day: date) -> str:
    """Return the month of a day as `November 2026`."""
    if language == "zh":
        return f"{day.year}年{day.month}月"
    return f"{day:%B} {day.year}"


def heading_of_day(
    language: str, at: str | datetime | None, now: datetime, zone: tzinfo | None
) -> str:
    """Return a heading for the day of a moment: `Today`, `Yesterday`, `Thursday`, `25 Nov`."""
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
    """Return how late something is, or when it is due.

    Examples are `9 days late`, `3 h late`, and `09:49`, `Mon 09:00`, `25 Nov 09:00`.

    at: when it is or was due.
    """
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
