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
        """Return the moment at which a clock in this zone shows the hour of `day`."""
        return wall_time(day + timedelta(days=self.days), self.at, zone)


def possible_hours(clocks: list[TimeOfDay], parts: list[str]) -> list[Hour]:
    """Return all times of day that clocks and parts of the day may mean. Empty without words.

    An ambiguous clock gives several: "at 3" may be 3:00 or 15:00. The night goes on after midnight:
    its hours 12 to 4 are on the next day, also in "tomorrow night at 1am".

    Raises ValueError for a clock that its part of the day does not have, Unclear if a part of the day
    has no clock and needs one.
    """
    if not clocks:
        if any(part not in _HOUR_OF for part in parts):
            raise Unclear
        return [Hour(time(_HOUR_OF[part])) for part in dict.fromkeys(parts)]
    hours: list[Hour] = []
    # "" is for a clock without a part of the day.
    for clock, part in product(clocks, dict.fromkeys(parts or [""])):
        word = clock.form if clock.form in ("midnight", "eod") else ""
        for hour in _hours_of(clock, part):
            at = time(hour % 24, clock.minute, clock.second)
            hours.append(Hour(at, hour // 24, word))
    return list(dict.fromkeys(hours))


def _hours_of(clock: TimeOfDay, part: str) -> list[int]:
    """Return the hours of a clock in a part of the day. Hours after midnight are 24 and more.

    part: the part of the day. "" if the text has none.
    """
    hour = clock.hour
    if part and clock.form == "eod":
        return [_END_OF_WORK]
    # 12 in the morning may be noon or midnight, which is not decided here.
    is_undecided = not part or (part == "morning" and hour == 12)
    if is_undecided and clock.form == "bare":
        return [hour % 12, hour % 12 + 12]
    if is_undecided:
        return [hour]
    # "3" and "3:30" may be in either half of the day, so the part decides.
    if clock.form in ("bare", "colon"):
        return [_hour_in_part(hour, part)]

    # Any other clock says its hour itself. It must be in the part.
    is_midnight = hour in (0, 24) or clock.form == "midnight"
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
    is_before_noon = part == "noon" and hour >= 10
    if part == "morning" or is_before_noon:
        return hour
    if part == "small hours":
        return hour % 12
    if part in ("night", "evening") and hour == 12:
        return 24
    if part == "night" and hour < _END_OF_NIGHT:
        return hour + 24
    return hour % 12 + 12


def agrees(hour: Hour, part: str) -> bool:
    """Whether a part of the day, named elsewhere in the text, fits this hour."""
    return hour.at.hour in _LOOSE_SPANS[part]
