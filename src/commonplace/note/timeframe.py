"""Time frames such as `2h`, `3 days ago`, `yesterday`, `2026-11-01`, `3天` (contract 000b, 5)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from commonplace.errors import TimeframeError

_MINUTE, _HOUR, _DAY, _WEEK, _MONTH, _YEAR = 60, 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400
_UNITS = {
    "m": _MINUTE, "min": _MINUTE, "mins": _MINUTE, "minute": _MINUTE, "minutes": _MINUTE,
    "h": _HOUR, "hour": _HOUR, "hours": _HOUR, "小时": _HOUR,
    "d": _DAY, "day": _DAY, "days": _DAY, "天": _DAY,
    "w": _WEEK, "week": _WEEK, "weeks": _WEEK, "周": _WEEK,
    "mo": _MONTH, "month": _MONTH, "months": _MONTH,
    "y": _YEAR, "year": _YEAR, "years": _YEAR,
}  # fmt: skip
_NAMED = {
    "today": "today", "今天": "today",
    "yesterday": "yesterday", "昨天": "yesterday",
    "thisweek": "this week", "本周": "this week",
    "lastweek": "last week", "上周": "last week",
    "lastmonth": "last month",
}  # fmt: skip
_LONGEST = 4000
_AMOUNT = re.compile(r"([0-9]+)([a-z]+|小时|天|周)")
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[t ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)(.*))?")
_OFFSET = re.compile(r"(?:z|[+-][0-9]{2}:?[0-9]{2})?")
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def since(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The moment the time frame `text` begins, aware UTC, exact to the second.

    Amounts count back from `now` (aware); days and weeks begin at midnight of `zone`, by default
    the system's. An amount longer than the calendar gives its first moment. Raises TimeframeError
    for anything not listed in the contract, zero and negative amounts included.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise TimeframeError(str(text)[:100])
    written = " ".join(text.lower().split())
    squeezed = written.replace(" ", "")
    if amount := _AMOUNT.fullmatch(squeezed):
        return _back(amount, now, text)
    if squeezed in _NAMED:
        return _named(_NAMED[squeezed], now.astimezone(zone), zone)
    if date := _DATE.fullmatch(written):
        return _written(date, zone, text)
    raise TimeframeError(text)


def _back(amount: re.Match[str], now: datetime, text: str) -> datetime:
    unit = amount[2].removesuffix("ago") if amount[2] != "ago" else ""
    count = int(amount[1])
    if not count or unit not in _UNITS:
        raise TimeframeError(text)
    try:
        return (now - timedelta(seconds=count * _UNITS[unit])).astimezone(UTC)
    except OverflowError:
        return _EARLIEST


def _named(name: str, local: datetime, zone: tzinfo | None) -> datetime:
    day = datetime(local.year, local.month, local.day)
    if name == "yesterday":
        day -= timedelta(days=1)
    elif name == "this week":
        day -= timedelta(days=day.weekday())
    elif name == "last week":
        day -= timedelta(days=day.weekday() + 7)
    elif name == "last month":
        day = (day.replace(day=1) - timedelta(days=1)).replace(day=1)
    return _utc(day, zone)


def _written(date: re.Match[str], zone: tzinfo | None, text: str) -> datetime:
    offset = (date[3] or "").replace(" ", "")
    if not _OFFSET.fullmatch(offset):
        raise TimeframeError(text)
    try:
        return _utc(datetime.fromisoformat(f"{date[1]}T{date[2] or '00:00'}{offset.upper()}"), zone)
    except (ValueError, OverflowError):
        raise TimeframeError(text) from None


def _utc(moment: datetime, zone: tzinfo | None) -> datetime:
    """`moment`, a wall time of `zone` (None: of the system) unless it names its offset, in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone) if zone else moment.astimezone()
    return moment.astimezone(UTC)
