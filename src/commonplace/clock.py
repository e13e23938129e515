"""The one clock, and durations such as "7d" or "1h30m"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from commonplace.errors import InvalidInput

Clock = Callable[[], datetime]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"(\d+)([smhd])")


def now() -> datetime:
    """The present moment, aware, UTC. `Memory` takes another clock as an argument."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """`moment` as ISO 8601 UTC with `Z`; the fraction only when there is one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def microseconds(moment: datetime) -> int:
    """An aware time as whole microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def parse_stamp(text: str) -> datetime:
    """An RFC 3339 time (any offset; none means UTC) as an aware UTC datetime. Raises ValueError."""
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


class _System(tzinfo):
    """The system's time zone as the C library knows it, summer time included."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: datetime) -> datetime:
        local = moment.replace(tzinfo=UTC).astimezone()
        first = local.replace(tzinfo=self, fold=0)
        return first if first.utcoffset() == local.utcoffset() else first.replace(fold=1)


SYSTEM_ZONE: tzinfo = _System()
"""The system's time zone, for what needs a zone as a value."""


def duration(text: str) -> timedelta:
    """A duration of contract 001, 15: `30s`, `5m`, `168h`, `30d` and sums such as `1h30m`.

    Raises InvalidInput naming the text.
    """
    value = str(text).strip()
    parts = _PART.findall(value)
    if not parts or "".join(n + u for n, u in parts) != value:
        raise InvalidInput(f'Not a duration: "{text}". Use e.g. 30s, 5m, 168h, 30d or 1h30m.')
    try:
        return timedelta(seconds=sum(int(n) * _UNITS[u] for n, u in parts))
    except OverflowError:
        raise InvalidInput(f'Duration too long: "{text}". Use at most 999999999d.') from None
