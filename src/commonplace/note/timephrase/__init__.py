"""Reminder phrases in English and Chinese, read against a given clock (contract 001, 9).

Nothing is guessed: a text that may mean two times, or none, is refused with a reason (`TimeRefused`).
"""

from __future__ import annotations

from bisect import bisect
from datetime import datetime, tzinfo

from commonplace.errors import (
    AmbiguousTime,
    InvalidTime,
    NoTime,
    PastTime,
    TimeRefused,
    VagueTime,
)
from commonplace.note.timephrase.groups import PARAGRAPH, Group, groups
from commonplace.note.timephrase.reading import Here, Reading, meaning
from commonplace.note.timephrase.recurrence import following
from commonplace.note.timephrase.text import Text

__all__ = [
    "AmbiguousTime",
    "InvalidTime",
    "NoTime",
    "PastTime",
    "Reading",
    "TimeRefused",
    "VagueTime",
    "following",
    "read",
    "read_all",
]


def read(text: str, now: datetime, zone: tzinfo, day_hour: int = 9) -> Reading:
    """The time `text` speaks of, by its first group of time words.

    `now` is aware; days and clocks are those of `zone`; a day without a clock fires at `day_hour` (0-23).
    `due` lies after `now`. Raises AmbiguousTime, PastTime, NoTime, InvalidTime or VagueTime (all TimeRefused,
    with the code and sentence of contract 001, 8). A vague word refuses wherever it stands.
    """
    written = Text(text)
    found = groups(written)
    for group in found:
        for token in group.of("vague"):
            raise VagueTime(written.phrase(token.start, token.end))
    if not found:
        raise NoTime(text)
    taken = meaning(found[0], Here.at(now, zone, day_hour))
    others = tuple(group.phrase for group in found[1:])
    return Reading(taken.phrase, taken.due, taken.all_day, taken.repeat, others)


def read_all(
    text: str, now: datetime, zone: tzinfo, day_hour: int = 9
) -> list[tuple[tuple[int, int], Reading | TimeRefused]]:
    """Every group of time words with its place in `text` (start, end) and its reading or why it has none.

    Arguments as for `read`. A vague word refuses all times of its paragraph (contract 001, 6 and 9).
    """
    written, here = Text(text), Here.at(now, zone, day_hour)
    found = groups(written)
    ends = [blank.end() for blank in PARAGRAPH.finditer(text)]
    at = [bisect(ends, group.span[0]) for group in found]
    vague = {place for place, group in zip(at, found, strict=True) if group.of("vague")}
    return [(group.span, _outcome(group, here, place in vague)) for place, group in zip(at, found, strict=True)]


def _outcome(group: Group, here: Here, vague: bool) -> Reading | TimeRefused:
    try:
        return VagueTime(group.phrase) if vague else meaning(group, here)
    except TimeRefused as refusal:
        return refusal
