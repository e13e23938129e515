"""The times of day that words may mean (contract 001, 9)."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, tzinfo
from itertools import product
from typing import NamedTuple

from memoranda.note.timephrase.days import wall_time
from memoranda.note.timephrase.values import TimeOfDay, Unclear

# The hour of a part of the day when no clock is named; the small hours have none.
_HOUR_OF = {"morning": 9, "noon": 12, "afternoon": 15, "evening": 19, "night": 20}
# The hours that a part of the day may include on a 24-hour clock.
_SPANS = {
    "morning": range(0, 13),
    "small hours": range(0, 12),
    "noon": range(10, 16),
    "afternoon": range(12, 20),
    "evening": range(16, 24),
    "night": range(0, 24),
}
# The hour at which a night ends that began the day before.
_END_OF_NIGHT = 5
# The hours that agree with a part of the day said elsewhere in the text: "night shift".
_LOOSE_SPANS = {
    "morning": range(4, 13),
    "small hours": range(0, 6),
    "noon": range(11, 15),
    "afternoon": range(12, 19),
    "evening": range(16, 24),
    "night": (*range(0, 6), *range(17, 24)),
}
_END_OF_WORK = 18


class Hour(NamedTuple):
    """A wall time.

    at: the time.
    days: how many days after the named day (1: after its midnight).
    word: "midnight" or "eod" for these two.
    """

    at: time
    days: int = 0
    word: str = ""

    def on(self, day: date, zone: tzinfo) -> datetime:
        """Return the moment when a clock in this zone shows the hour on `day`."""
        return wall_time(day + timedelta(days=self.days), self.at, zone)


def possible_hours(clocks: list[TimeOfDay], parts: list[str]) -> list[Hour]:
    """Return all times of day that clocks and parts of the day may mean. Empty without words.

    An ambiguous clock gives several: "at 3" may be 3:00 or 15:00. The night goes on after midnight:
    its hours 12 to 4 are on the next day, also in "tomorrow night at 1am".

    clocks: the clocks, such as "3pm". Several are two ways to say one time: "3pm (15:00)".
    parts: the parts of the day beside them, such as "evening".

    Raises ValueError for a clock that is not in its part of the day, Unclear for a part of the day
    that means no hour without a clock: "in the small hours".
    """
    if not clocks:
        if any(part not in _HOUR_OF for part in parts):
            raise Unclear
        return [Hour(time(_HOUR_OF[part])) for part in dict.fromkeys(parts)]
    hours: list[Hour] = []
    # "" stands for the part of a clock that has none.
    distinct_parts = dict.fromkeys(parts or [""])
    for clock, part in product(clocks, distinct_parts):
        word = clock.form if clock.form in ("midnight", "eod") else ""
        for hour in _hours_of(clock, part):
            at = time(hour % 24, clock.minute, clock.second)
            hours.append(Hour(at, hour // 24, word))
    return list(dict.fromkeys(hours))


def _hours_of(clock: TimeOfDay, part: str) -> list[int]:
    """Return the hours of a clock in a part of the day. Hours after midnight are 24 and more.

    "at 3" is [3, 15], "3 in the afternoon" is [15], and "1 at night" is [25].

    part: the part of the day. "" if the text has none.

    Raises ValueError for a clock that is not in the part: "15:00 in the morning".
    """
    hour = clock.hour
    if clock.form == "eod":
        return [_END_OF_WORK]
    # "12 in the morning" is noon for some people and midnight for others.
    is_twelve_in_morning = part == "morning" and hour == 12
    if not part or is_twelve_in_morning:
        if clock.form == "bare":
            return [hour % 12, hour % 12 + 12]
        return [hour]
    # "3" and "3:30" may be in either half of the day, so the part decides.
    if clock.form in ("bare", "colon"):
        return [_hour_in_part(hour, part)]

    # Any other clock, such as "3pm" or "15:00", says its hour itself. It must be in the part.
    is_midnight = hour in (0, 24)
    if part == "night" and is_midnight:
        return [24]
    if part == "night" and hour < _END_OF_NIGHT:
        return [hour + 24]
    if hour not in _SPANS[part]:
        raise ValueError(part)
    return [hour]


def _hour_in_part(hour: int, part: str) -> int:
    """Return the hour of a clock that shows 1 to 12 in a part of the day.

    3 in the afternoon is 15. Hours after midnight are 24 and more: 1 at night is 25.
    """
    if part == "morning":
        return hour
    if part == "small hours":
        # 12 in the small hours is the midnight at which the day begins.
        return hour % 12
    # "11:30 at noon" is before noon, "1 at noon" is after it.
    if part == "noon" and hour >= 10:
        return hour
    # 12 in the evening or at night is the midnight at which the day ends.
    if part in ("night", "evening") and hour == 12:
        return 24
    # 1 to 4 at night come after that midnight, 5 to 11 before it.
    if part == "night" and hour < _END_OF_NIGHT:
        return hour + 24
    return hour % 12 + 12


def agrees(hour: Hour, part: str) -> bool:
    """Whether a part of the day, named elsewhere in the text, fits this hour."""
    return hour.at.hour in _LOOSE_SPANS[part]
