"""Read and write times, and limit how long a call waits.

There are stamps (`2026-05-07T10:00:00Z`), durations (`1h30m`) and time frames (`7d`, `yesterday`).
The waits of a thread for locks share one limit, so that a call ends in time.
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
# A number and a unit of a duration: `30s`.
_DURATION_PART = r"(\d+(?:\.\d+)?)(ms|[smhd])"
# Words that only say that a frame is in the past: "in the last 3 days".
_PHRASE = lazy_pattern(
    r"^(?:(?:in )?(?:the )?(?:last|past) (?=[0-9]|an? |one )|(?:the )?past (?=[a-z]))(.*)"
)
# A frame that means one of its unit: "an hour", "week".
_ONE = lazy_pattern(r"^(?:an?|one) |^(?=(?:hour|day|week|month|year)$)")
# "an hour" is a frame; "hour" alone is too little to be one.
_ARTICLE = lazy_pattern(r"(?:an?|one) ")
# The Chinese numbers that an amount of time may begin with.
_CHINESE_DIGITS = {number: digit for digit, number in enumerate("一二三四五六七八九十", start=1)}
# 两 is another way to write two.
_CHINESE_DIGITS["两"] = 2
# A longer text is not a time.
_LONGEST = 4000
_TIME_OF_DAY = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
# A date, or a date and a time of day, with or without an offset.
_WRITTEN = lazy_pattern(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[t ]({_TIME_OF_DAY})(.*))?")


def now() -> datetime:
    """Return the present moment, aware, in UTC. `Memory` takes another clock as an argument."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Write a moment as a stamp: `2026-05-07T10:00:00Z`, with the fraction if it has one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def seconds(moment: datetime) -> str:
    """Write a moment as a stamp that is cut to the second: `2026-05-07T10:00:00Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def milliseconds(moment: datetime) -> str:
    """Write a moment as a stamp that is cut to the millisecond: `2026-05-07T10:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def microseconds(moment: datetime) -> int:
    """Return an aware time as whole microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def parse_stamp(text: str) -> datetime:
    """Read an RFC 3339 time as an aware datetime in UTC. Raises ValueError.

    It may have any offset. Without an offset it is in UTC.
    """
    iso_text = text.strip()
    # Python 3.11 reads only a capital Z as UTC.
    if iso_text.endswith("z"):
        iso_text = iso_text.upper()
    return to_utc(datetime.fromisoformat(iso_text), UTC)


def local_day(time: str, zone: tzinfo | None) -> str:
    """Return the day of a stamp in a time zone, as YYYY-MM-DD.

    zone: None means the system's zone.

    For a text that is not a stamp, its first ten characters are returned.
    """
    try:
        return parse_stamp(time).astimezone(zone).date().isoformat()
    except (ValueError, OverflowError):
        return time[:10]


def to_utc(moment: datetime, zone: tzinfo | None) -> datetime:
    """Return a moment in UTC.

    zone: the zone of a moment without an offset. None means the system's zone.
    """
    if moment.tzinfo is None:
        if zone:
            moment = moment.replace(tzinfo=zone)
        else:
            moment = moment.astimezone()
    return moment.astimezone(UTC)


def as_of(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the moment that a text asks about, aware and in `zone`.

    A day, month or year means its last moment: `2025-03` is 2025-03-31 at 23:59:59.999999.

    text: a time frame as `since` reads it, a month (`2025-03`) or a year (`2025`).
    now: the present moment.
    zone: the zone of the days. None means the system's zone.

    Raises TimeframeError.
    """
    month = None
    if isinstance(text, str):
        month = re.fullmatch("([0-9]{4})(-[0-9]{2})?", text.strip())
    if month is not None:
        # The last month of a year ends with the year.
        month_in_year = month[2] or "-12"
        first_day = since(f"{month[1]}{month_in_year}-01", now, zone).astimezone(zone)
        first_day_of_next_month = (first_day + timedelta(days=31)).replace(day=1)
        return first_day_of_next_month - timedelta(microseconds=1)
    begins = since(text, now, zone).astimezone(zone)
    is_day = (begins.hour, begins.minute, begins.second, begins.microsecond) == (0, 0, 0, 0)
    if is_day:
        return begins + timedelta(days=1, microseconds=-1)
    return begins


CALL_WAITS = 5.0
"""Seconds that one call waits at most, for all locks together."""
COMMAND_WAITS = 20.0
"""Seconds that a command of the command line waits at most. Nobody else waits for its process."""


class _Waits(threading.local):
    """The limits for the waits of this thread.

    seconds_left: seconds that it may still wait. None outside a call, where nothing is limited.
    stop: an event that ends the waits early. None if nothing does.
    """

    seconds_left: float | None = None
    stop: threading.Event | None = None


_waits = _Waits()


@dataclass(slots=True, eq=False, repr=False)
class Waited(ValueObject):
    """How threads of this process waited for a lock.

    count: how often.
    seconds: how long in all.
    """

    count: int = 0
    seconds: float = 0.0


waited = Waited()


@contextmanager
def waits_at_most(seconds: float) -> Iterator[None]:
    """Limit the seconds that this thread waits inside the block, for all locks together.

    If the block is inside another one with less time left, that time is the limit. A block of 2
    seconds that has waited for 1.5 leaves 3.5 of 5 seconds to the block around it.
    """
    outer_seconds = _waits.seconds_left
    limit = seconds if outer_seconds is None else min(seconds, outer_seconds)
    _waits.seconds_left = limit
    try:
        yield
    finally:
        if outer_seconds is None:
            _waits.seconds_left = None
        else:
            # The time that the block waited counts for the outer block, too.
            seconds_waited = limit - (_waits.seconds_left or 0.0)
            _waits.seconds_left = outer_seconds - seconds_waited


@contextmanager
def waits_until(stop: threading.Event) -> Iterator[None]:
    """Make this thread stop waiting for locks inside the block as soon as `stop` is set."""
    before = _waits.stop
    _waits.stop = stop
    try:
        yield
    finally:
        _waits.stop = before


def wait_for(is_done: Callable[[], bool], seconds: float = CALL_WAITS) -> bool:
    """Wait until `is_done` returns True. Returns whether it did in time.

    The limit is `seconds`, or less if the current call has less time left.
    """

    def ask_again(seconds: float) -> bool:
        """Call `is_done` with growing pauses, from half a millisecond to ten."""
        end = time.monotonic() + seconds
        pause = 0.0005
        # Outside of a call, nothing stops the wait: an event that nobody sets only makes the pauses.
        stop = _waits.stop or threading.Event()
        while time.monotonic() < end and not stop.wait(pause):
            if is_done():
                return True
            pause = min(pause * 1.5, 0.01)
        return False

    return is_done() or block_for(ask_again, seconds)


def acquires(lock: threading.Lock, seconds: float) -> bool:
    """Acquire a lock of this process. Returns whether it was acquired in time.

    The thread waits for CALL_WAITS seconds in all, or less if its call has less time left. It waits
    in several short parts, and looks between them whether it is told to stop (`waits_until`).

    seconds: how long each part is.
    """

    def acquire_again(limit: float) -> bool:
        """Wait for the lock until `limit` seconds are over."""
        end = time.monotonic() + limit
        while may_wait() and time.monotonic() < end:
            if lock.acquire(timeout=seconds):
                return True
        return False

    return lock.acquire(timeout=seconds) or block_for(acquire_again)


def block_for(wait: Callable[[float], T], seconds: float = CALL_WAITS) -> T:
    """Call `wait` with the seconds it may wait, and return its result.

    The limit is `seconds`, or less if the current call has less time left.
    """
    seconds_left = CALL_WAITS if _waits.seconds_left is None else _waits.seconds_left
    begun_at = time.monotonic()
    try:
        return wait(min(seconds, seconds_left))
    finally:
        seconds_waited = time.monotonic() - begun_at
        waited.count += 1
        waited.seconds += seconds_waited
        if _waits.seconds_left is not None:
            _waits.seconds_left = max(0.0, seconds_left - seconds_waited)


def may_wait() -> bool:
    """Whether the call of this thread has time left to wait, and is not told to stop."""
    is_stopped = _waits.stop is not None and _waits.stop.is_set()
    return _waits.seconds_left != 0.0 and not is_stopped


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
        # When summer time ends, an hour comes twice: `fold` says which one is meant.
        first = local.replace(tzinfo=self, fold=0)
        if first.utcoffset() == local.utcoffset():
            return first
        return first.replace(fold=1)


SYSTEM_ZONE: tzinfo = _System()
"""The system's time zone, for functions that need a zone as a value."""


def duration(text: str) -> timedelta:
    """Read a duration: `30s`, `5m`, `168h`, `30d`, or a sum such as `1h30m` (contract 001, 15).

    The configuration of the reference program may also have `1.5h` and `500ms`.

    Raises InvalidInput for another text.
    """
    value = str(text).strip()
    if not re.fullmatch(rf"(?:{_DURATION_PART})+", value):
        raise InvalidInput(f'Not a duration: "{text}". Use e.g. 30s, 5m, 168h, 30d or 1h30m.')
    try:
        parts = re.findall(_DURATION_PART, value)
        return sum((_part_of_duration(count, unit) for count, unit in parts), timedelta())
    except OverflowError:
        raise InvalidInput(f'Duration too long: "{text}". Use at most 999999999d.') from None


def _part_of_duration(count: str, unit: str) -> timedelta:
    """Return one part of a duration: `("1.5", "h")` is an hour and a half."""
    # Large numbers must stay exact, so only a part with a point is a fraction.
    number = float(count) if "." in count else int(count)
    if unit == "ms":
        return timedelta(milliseconds=number)
    return timedelta(seconds=number * _UNITS.get(unit, 1))


def _seconds_before(now: datetime, seconds: int) -> datetime:
    """Return the moment `seconds` before `now`, but not before the calendar begins."""
    try:
        return (now - timedelta(seconds=seconds)).astimezone(UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def since(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the beginning of a time frame such as `yesterday`, in UTC.

    text: an amount of time before `now` (`2h`, `3 days ago`, `3天`), the name of a frame
        (`yesterday`, `last week`), or a date (`2026-11-01`). See contract 000b, 5.
    now: the present moment, aware.
    zone: days and weeks begin at midnight in this zone. None means the system's zone.

    An amount that reaches back before the year 1 gives the first moment of the calendar. Raises
    TimeframeError for another text, also for an amount of zero.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise TimeframeError(str(text)[:100])
    words = " ".join(text.lower().split())
    # An amount or a name is looked up without blanks, and without words such as "in the last".
    frame = _without_opening(words)

    # An amount of time: a number and a unit, such as `2h`, `3daysago` or `3天`.
    amount = re.fullmatch(r"([0-9]+)([a-z]+|[\u4e00-\u9fff]+)", frame)
    if amount:
        seconds = int(amount[1]) * _UNITS.get(amount[2].removesuffix("ago"), 0)
        # The unit is unknown, or the amount is zero.
        if not seconds:
            raise TimeframeError(text)
        return _seconds_before(now, seconds)

    # The name of a frame: its function returns the beginning, given the midnight of today.
    begin_of = _BEGINS.get(frame)
    if begin_of:
        local = now.astimezone(zone)
        midnight = datetime(local.year, local.month, local.day)
        return to_utc(begin_of(midnight), zone)

    # A date has its time after a blank, so it is read from the words as they are.
    moment = _written_time(words)
    if moment is None:
        raise TimeframeError(text)
    try:
        return to_utc(moment, zone)
    except (ValueError, OverflowError):
        raise TimeframeError(text) from None


def _without_opening(written: str) -> str:
    """Bring a time frame into its shortest form, with digits and without blanks.

    `in the last 3 days` becomes `3days`, `an hour ago` becomes `1hourago`, `三天` becomes `3天`.
    """
    frame = _PHRASE.sub(r"\1", written).removeprefix("最近").removeprefix("过去")
    if frame != written or _ARTICLE.match(written):
        frame = _ONE.sub("1 ", frame)
    frame = frame.replace(" ", "")
    digit = _CHINESE_DIGITS.get(frame[:1])
    if digit is None:
        return frame
    return f"{digit}{frame[1:]}"


def _written_time(written: str) -> datetime | None:
    """Read a date with or without a time and an offset: `2026-11-01 10:00 +02:00`. None for others.

    The result has an offset only if the text has one.
    """
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
