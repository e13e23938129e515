"""The time that a text names: a reading, the clock it is read against, and the parts it is read
from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from zoneinfo import ZoneInfo

from memoranda.errors import AmbiguousTime, UnusedWords
from memoranda.note.timephrase.days import shifted, wall_time
from memoranda.note.timephrase.parts import Part, clusters
from memoranda.note.timephrase.text import Text
from memoranda.note.timephrase.values import Delay

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# How many words apart a phrase holds, as one of a long text is shown to people.
_MOST_PIECES = 8
GAP = " … "
"""Between the words of a phrase that are apart in the text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One time that a text names.

    phrase: the words it was read from, with " … " for other words between them.
    due: the time, aware and in the zone asked for.
    all_day: whether it has no time of day.
    repeat: the rule (see `following`).
    others: always empty, since unused words are refused.
    is_dated: whether its words name a day, not just a weekday or an hour.
    is_explicit: whether it is a date with its month, or a day counted from now.
    """

    phrase: str
    due: datetime
    all_day: bool = False
    repeat: str | None = None
    others: tuple[str, ...] = ()
    is_dated: bool = False
    is_explicit: bool = False

    @property
    def reading(self) -> str:
        """The time for people: Thu 7 May 2026 15:00."""
        due = self.due
        return f"{_DAYS[due.weekday()]} {due.day} {_MONTHS[due.month - 1]} {due.year} {due:%H:%M}"


@dataclass(frozen=True, slots=True)
class Clock:
    """The moment a text is read at, in the reader's zone, and the hour of days without a clock."""

    now: datetime
    zone: tzinfo
    day_hour: int


class Sentence:
    """Parts of a text that say one time, or several joined by "and"."""

    def __init__(self, text: Text, parts: Sequence[Part]):
        self.text = text
        self.parts = tuple(parts)

    def of(self, *kinds: str) -> list[Part]:
        return [part for part in self.parts if part.kind in kinds]

    @cached_property
    def phrase(self) -> str:
        """The words of the parts as written."""
        return self.words(self.parts)

    def words(self, parts: Sequence[Part]) -> str:
        """The words of these parts as written."""
        pieces: list[str] = []
        for cluster in clusters(parts):
            if len(pieces) == _MOST_PIECES:
                break
            end = max(part.end for part in cluster)
            pieces.append(self.text.as_written(cluster[0].start, end))
        return GAP.join(pieces)

    def unused(self, *parts: Part) -> UnusedWords:
        """The refusal of a text in which these parts were not used."""
        return UnusedWords(self.phrase, self.words(parts))

    def without(self, *kinds: str) -> Sentence:
        return Sentence(self.text, [part for part in self.parts if part.kind not in kinds])


class NamedZone:
    """The zone that a sentence names for its clocks, the reader's without one."""

    def __init__(self, sentence: Sentence, clock: Clock):
        self._sentence = sentence
        self._clock = clock
        zone_parts = sentence.of("zone")
        names = {str(part.lexeme.value) for part in zone_parts}
        if len(names) > 1:
            raise AmbiguousTime(sentence.phrase)
        spelled, _, self._abbreviation = names.pop().partition(" ") if names else ("local", "", "")
        words = sentence.words(zone_parts).upper()
        if spelled != "local" and _is_name_of(words, clock):
            spelled = "local"
        if not spelled:
            raise sentence.unused(*zone_parts)
        self.is_named = spelled != "local"
        self.zone, self.name = _zone(spelled, clock.zone)

    def check(self, moment: datetime) -> datetime:
        """Convert a moment of this zone to the reader's zone.

        Raises AmbiguousTime if the abbreviation does not fit the day: EST in July.
        """
        local = moment.astimezone(self._clock.zone)
        if self.is_named and self._abbreviation:
            actual = moment.astimezone(self.zone)
            if actual.tzname() != self._abbreviation:
                hour = timedelta(hours=1)
                if actual.dst():
                    as_named = local + hour
                else:
                    as_named = local - hour
                raise AmbiguousTime(self._sentence.phrase, sorted([local, as_named]))
        return local


def _is_name_of(words: str, clock: Clock) -> bool:
    """Whether the reader's own zone is called so at some time of the year."""
    moments = [clock.now.replace(month=month, day=1) for month in (1, 7)]
    return words in [moment.astimezone(clock.zone).tzname() for moment in moments]


def _zone(spelled: str, reader_zone: tzinfo) -> tuple[tzinfo, str | None]:
    """A zone and its IANA name, or None if it has none. It is the reader's, a named zone, or an
    offset from UTC.

    Raises ValueError for an offset out of range.
    """
    if spelled == "local":
        return reader_zone, None
    if not spelled.startswith(("utc", "gmt")):
        return ZoneInfo(spelled), spelled
    digits = spelled[3:].replace(":", "")
    if not digits:
        return UTC, "Etc/UTC"
    hours, minutes = (digits[1:3], digits[3:] or "0")
    if int(hours) > 14 or int(minutes) > 59:
        raise ValueError(spelled)
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    # The names of Etc count the other way
    sign = "-"
    if digits[0] == "-":
        offset = -offset
        sign = "+"
    name = f"Etc/GMT{sign}{int(hours)}"
    if int(minutes):
        # Only whole hours have a name that a rule can hold
        return timezone(offset), None
    return timezone(offset), name


def later(delay: Delay, moment: datetime, zone: tzinfo) -> datetime:
    """A moment some time on: whole days go by the calendar, the rest by elapsed time."""
    start = moment.replace(microsecond=0)
    if delay.months or delay.days:
        day = shifted(start.date(), delay.months, delay.days)
        start = wall_time(day, start.time(), zone)
    return (start.astimezone(UTC) + timedelta(seconds=delay.seconds)).astimezone(zone)
