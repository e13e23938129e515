"""The one clock, durations such as `1h30m`, time frames such as `7d` or `yesterday`, and how long a
call may wait.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeVar

from memoranda.errors import InvalidInput, TimeframeError
from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import ValueObject

T = TypeVar("T")
Clock = Callable[[], datetime]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Units of time in English and Chinese by their seconds; a month has 30 days, a year 365.
_SPELLED = {
    60: "m min mins minute minutes 分钟",
    3600: "h hour hours 小时 个小时",
    86400: "d day days 天",
    7 * 86400: "w week weeks 周 星期 个星期",
    30 * 86400: "mo month months 个月",
    365 * 86400: "y year years 年",
}
_UNITS: dict[str, int] = {}
for _seconds, _names in _SPELLED.items():
    _UNITS |= dict.fromkeys(_names.split(), _seconds)
# Words that only say that a frame is in the past: "in the last 3 days".
_PHRASE = lazy_pattern(
    r"^(?:(?:in )?(?:the )?(?:last|past) (?=[0-9]|an? |one )|(?:the )?past (?=[a-z]))(.*)"
)
# A frame that means one of its unit: "an hour", "week".
_ONE = lazy_pattern(r"^(?:an?|one) |^(?=(?:hour|day|week|month|year)$)")
# "an hour" is a frame; "hour" alone is too little to be one.
_ARTICLE = lazy_pattern(r"(?:an?|one) ")
_CHINESE_NUMBERS = "〇一二三四五六七八九十两"
# A longer text is no time.
_LONGEST = 4000
_TIME_OF_DAY = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
# A date, or a date and a time of day, with or without an offset.
_WRITTEN = lazy_pattern(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[t ]({_TIME_OF_DAY})(.*))?")


def now() -> datetime:
    """The present moment, aware, UTC. `Memory` takes another clock as an argument."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """`moment` as ISO 8601 UTC with `Z`; the fraction only when there is one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(moment: datetime) -> str:
    """`2026-05-07T10:00:00Z`, cut to the second."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def milliseconds(moment: datetime) -> str:
    """`2026-05-07T10:00:00.000Z`, cut to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def microseconds(moment: datetime) -> int:
    """An aware time as whole microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def parse_stamp(text: str) -> datetime:
    """An RFC 3339 time (any offset; none means UTC) as an aware UTC datetime. Raises ValueError."""
    return to_utc(datetime.fromisoformat(text.strip()), UTC)


def local_day(time: str, zone: tzinfo | None) -> str:
    """The day of a stamp in a time zone, as YYYY-MM-DD. The zone None means the system's.

    A text that is not a stamp gives its first ten characters.
    """
    try:
        return parse_stamp(time).astimezone(zone).date().isoformat()
    except (ValueError, OverflowError):
        return time[:10]


def to_utc(moment: datetime, zone: tzinfo | None) -> datetime:
    """`moment` in UTC.

    A moment without an offset is read as wall time in `zone` (None: the system's zone).
    """
    if moment.tzinfo is None:
        if zone:
            moment = moment.replace(tzinfo=zone)
        else:
            moment = moment.astimezone()
    return moment.astimezone(UTC)


def as_of(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The moment that a text asks about, aware and in `zone`. A day, month or year means its last
    moment.

    text: a time frame as `since` reads it, a month (`2025-03`) or a year.

    Raises TimeframeError.
    """
    if isinstance(text, str) and (month := re.fullmatch("([0-9]{4})(-[0-9]{2})?", text.strip())):
        first = since(f"{month[1]}{month[2] or '-12'}-01", now, zone).astimezone(zone)
        return (first + timedelta(days=31)).replace(day=1) - timedelta(microseconds=1)
    begins = since(text, now, zone).astimezone(zone)
    is_day = (begins.hour, begins.minute, begins.second, begins.microsecond) == (0, 0, 0, 0)
    if is_day:
        return begins + timedelta(days=1, microseconds=-1)
    return begins


CALL_WAITS = 5.0
"""Seconds one call waits at most, for all locks together."""
COMMAND_WAITS = 20.0
"""The same for a call of a command, which has nobody wait behind it: as long as the lock goes from
one to the next.
"""


class _Waits(threading.local):
    """How long this thread may still wait.

    left: seconds, or None outside a call.
    stop: an event that ends its waits early.
    """

    left: float | None = None
    stop: threading.Event | None = None


_waits = _Waits()


@dataclass(slots=True, eq=False, repr=False)
class Waited(ValueObject):
    """How often, and for how many seconds together, threads of this process waited for a lock."""

    count: int = 0
    seconds: float = 0.0


waited = Waited()


@contextmanager
def waits_at_most(seconds: float) -> Iterator[None]:
    """Inside, all that this thread waits for takes at most so long together; a block around it may
    allow less.
    """
    outer = _waits.left
    _waits.left = start = seconds if outer is None else min(seconds, outer)
    try:
        yield
    finally:
        if outer is None:
            _waits.left = None
        else:
            _waits.left = outer - (start - (_waits.left or 0.0))


@contextmanager
def waits_until(stop: threading.Event) -> Iterator[None]:
    """Inside, this thread stops waiting for locks as soon as `stop` is set."""
    before = _waits.stop
    _waits.stop = stop
    try:
        yield
    finally:
        _waits.stop = before


def wait_for(is_done: Callable[[], bool], seconds: float = CALL_WAITS) -> bool:
    """Ask `is_done` again and again, for at most `seconds` and what the call may still wait.
    Returns its answer.
    """

    def ask_again(seconds: float) -> bool:
        end = time.monotonic() + seconds
        pause = 0.0005
        stop = _waits.stop or threading.Event()
        while time.monotonic() < end and not stop.wait(pause):
            if is_done():
                return True
            pause = min(pause * 1.5, 0.01)
        return False

    return is_done() or block_for(ask_again, seconds)


def block_for(wait: Callable[[float], T], seconds: float = CALL_WAITS) -> T:
    """Call `wait` with the seconds it may wait, and return its result.

    The limit is `seconds`, or less if the current call has less time left.
    """
    if _waits.left is None:
        seconds_left = CALL_WAITS
    else:
        seconds_left = _waits.left
    begun = time.monotonic()
    try:
        return wait(min(seconds, seconds_left))
    finally:
        took = time.monotonic() - begun
        waited.count += 1
        waited.seconds += took
        if _waits.left is not None:
            _waits.left = max(0.0, seconds_left - took)


def may_wait() -> bool:
    """Whether the call of this thread may wait any longer."""
    return _waits.left != 0.0 and not (_waits.stop is not None and _waits.stop.is_set())


class _System(tzinfo):
    """The system's time zone as the C library knows it, summer time included."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: datetime) -> datetime:
        local = moment.replace(tzinfo=UTC).astimezone()
        first = local.replace(tzinfo=self, fold=0)
        if first.utcoffset() == local.utcoffset():
            return first
        return first.replace(fold=1)


SYSTEM_ZONE: tzinfo = _System()
"""The system's time zone, for what needs a zone as a value."""


def duration(text: str) -> timedelta:
    """A duration of contract 001, 15: `30s`, `5m`, `168h`, `30d` and sums such as `1h30m`.

    Raises InvalidInput naming the text.
    """
    value = str(text).strip()
    if not re.fullmatch(r"(?:\d+[smhd])+", value):
        raise InvalidInput(f'Not a duration: "{text}". Use e.g. 30s, 5m, 168h, 30d or 1h30m.')
    try:
        parts = re.findall(r"(\d+)(.)", value)
        return timedelta(seconds=sum(int(count) * _UNITS.get(unit, 1) for count, unit in parts))
    except OverflowError:
        raise InvalidInput(f'Duration too long: "{text}". Use at most 999999999d.') from None


def since(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The moment the time frame `text` (`2h`, `3 days ago`, `yesterday`, `2026-11-01`, `3天`;
    contract 000b, 5) begins, aware UTC, exact to the second.

    Amounts count back from `now` (aware); days and weeks begin at midnight of `zone`, by default
    the system's. An amount longer than the calendar gives its first moment. Raises TimeframeError
    for anything not listed in the contract, zero and negative amounts included.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise TimeframeError(str(text)[:100])
    written = " ".join(text.lower().split())
    frame = _without_opening(written)
    amount = re.fullmatch(r"([0-9]+)([a-z]+|[\u4e00-\u9fff]+)", frame)
    if amount:
        seconds = int(amount[1]) * _UNITS.get(amount[2].removesuffix("ago"), 0)
        if not seconds:
            raise TimeframeError(text)
        try:
            return (now - timedelta(seconds=seconds)).astimezone(UTC)
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    begin = _BEGINS.get(frame)
    if begin:
        local = now.astimezone(zone)
        return to_utc(begin(datetime(local.year, local.month, local.day)), zone)
    moment = _written_time(written)
    if moment is None:
        raise TimeframeError(text)
    try:
        return to_utc(moment, zone)
    except (ValueError, OverflowError):
        raise TimeframeError(text) from None


def _without_opening(written: str) -> str:
    """A time frame without `in the last`, an article and blanks, its number in digits."""
    frame = _PHRASE.sub(r"\1", written).removeprefix("最近").removeprefix("过去")
    if frame != written or _ARTICLE.match(written):
        frame = _ONE.sub("1 ", frame)
    frame = frame.replace(" ", "")
    if frame:
        digit = _CHINESE_NUMBERS.find(frame[0])
    else:
        digit = 0
    # 两 is another way to write two.
    if digit == 11:
        digit = 2
    if digit > 0:
        return f"{digit}{frame[1:]}"
    return frame


def _written_time(written: str) -> datetime | None:
    """A written date, with or without a time and an offset, or None."""
    match = _WRITTEN.fullmatch(written)
    if match is None:
        return None
    offset = (match[3] or "").replace(" ", "").upper()
    if not re.fullmatch("(?:Z|[+-][0-9]{2}:?[0-9]{2})?", offset):
        return None
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}{offset}")
    except ValueError:
        return None


# Frames that begin with a calendar day.
_FRAMES: dict[str, Callable[[datetime], datetime]] = {
    "today 今天": lambda day: day,
    "yesterday 昨天": lambda day: day - timedelta(days=1),
    "thisweek 本周": lambda day: day - timedelta(days=day.weekday()),
    "lastweek 上周": lambda day: day - timedelta(days=day.weekday() + 7),
    "thismonth 本月 这个月": lambda day: day.replace(day=1),
    "lastmonth 上月 上个月": lambda day: (day.replace(day=1) - timedelta(days=1)).replace(day=1),
    "thisyear 今年": lambda day: day.replace(month=1, day=1),
    "lastyear 去年": lambda day: day.replace(year=day.year - 1, month=1, day=1),
}
# Name of a time frame → its first day, from midnight of the present day.
_BEGINS: dict[str, Callable[[datetime], datetime]] = {}
for _names, _begin in _FRAMES.items():
    _BEGINS |= dict.fromkeys(_names.split(), _begin)
