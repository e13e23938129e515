"""The time that a text names (`Reading`), and the objects from which it is computed.

`Clock` is the moment at which the text is read; `Sentence` is the list of time words in it.
"""

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
    due: the moment, with the time zone that the caller asked for.
    all_day: whether the words give no time of day.
    repeat: the rule by which the time repeats. None if it comes once.
    others: always empty, since unused words are refused.
    is_dated: whether the words name a day, and not only a weekday or an hour.
    is_explicit: whether the words are a date with its month, or a day counted from now.
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
        """The time as people read it: `Thu 7 May 2026 15:00`."""
        due = self.due
        return f"{_DAYS[due.weekday()]} {due.day} {_MONTHS[due.month - 1]} {due.year} {due:%H:%M}"


@dataclass(frozen=True, slots=True)
class Clock:
    """The moment when a text is read.

    now: this moment, in `zone`.
    zone: the time zone of the reader.
    day_hour: the hour that a day without a time of day gets.
    """

    now: datetime
    zone: tzinfo
    day_hour: int


class Sentence:
    """The time words of a text that belong together, as parts.

    They are about one thing, so they say one time ("tomorrow at 3"), or several times that "and"
    joins ("Monday and Tuesday at 3"). They need not be a whole sentence of the text.
    """

    def __init__(self, text: Text, parts: Sequence[Part]):
        self.text = text
        self.parts = tuple(parts)

    def of(self, *kinds: str) -> list[Part]:
        """Return the parts of these kinds, such as `"weekday"`."""
        return [part for part in self.parts if part.kind in kinds]

    @cached_property
    def phrase(self) -> str:
        """The words of all parts as they are written in the text."""
        return self.words(self.parts)

    def words(self, parts: Sequence[Part]) -> str:
        """Return the words of these parts as written: `"tomorrow … at 3"`.

        Groups of words that are apart are joined by " … ". At most 8 groups are returned.
        """
        pieces: list[str] = []
        for cluster in clusters(parts):
            if len(pieces) == _MOST_PIECES:
                break
            end = max(part.end for part in cluster)
            pieces.append(self.text.as_written(cluster[0].start, end))
        return GAP.join(pieces)

    def unused(self, *parts: Part) -> UnusedWords:
        """Return the error that refuses the text because these parts were not used."""
        return UnusedWords(self.phrase, self.words(parts))

    def without(self, *kinds: str) -> Sentence:
        """Return a sentence without the parts of these kinds."""
        return Sentence(self.text, [part for part in self.parts if part.kind not in kinds])


class NamedZone:
    """The time zone that a sentence names for its clocks. Without one, the zone of the reader.

    is_named: whether the sentence names a zone other than the reader's.
    zone, name: the zone, and its IANA name. `name` is None for a zone without one.
    """

    def __init__(self, sentence: Sentence, clock: Clock):
        """Find the zone among the time words. Without one it is the zone of the reader.

        Raises AmbiguousTime for two zones, UnusedWords for words that name a zone which is not
        known.
        """
        self._sentence = sentence
        self._clock = clock
        zone_parts = sentence.of("zone")
        values = {str(part.lexeme.value) for part in zone_parts}
        if len(values) > 1:
            raise AmbiguousTime(sentence.phrase)
        # The value of a zone may end in an abbreviation: `America/New_York EST`.
        value = values.pop() if values else "local"
        spelled, _, self._abbreviation = value.partition(" ")
        # "CET" means the reader's zone, if that is called so.
        words = sentence.words(zone_parts).upper()
        if spelled != "local" and _is_name_of(words, clock):
            spelled = "local"
        # A name that several zones have was read as "".
        if not spelled:
            raise sentence.unused(*zone_parts)
        self.is_named = spelled != "local"
        self.zone, self.name = _zone(spelled, clock.zone)

    def check(self, moment: datetime) -> datetime:
        """Convert a moment of this zone to the reader's zone.

        Raises AmbiguousTime if the abbreviation does not fit the day: EST in July.
        """
        local = moment.astimezone(self._clock.zone)
        if not self.is_named or not self._abbreviation:
            return local
        actual = moment.astimezone(self.zone)
        if actual.tzname() == self._abbreviation:
            return local
        # The words name winter time in summer, or the reverse: an hour away from `local`.
        hour = timedelta(hours=1)
        as_named = local + hour if actual.dst() else local - hour
        raise AmbiguousTime(self._sentence.phrase, sorted([local, as_named]))


def _is_name_of(words: str, clock: Clock) -> bool:
    """Whether the reader's own zone is called `words` in January or July, as "CET" or "CEST"."""
    moments = [clock.now.replace(month=month, day=1) for month in (1, 7)]
    return words in [moment.astimezone(clock.zone).tzname() for moment in moments]


def _zone(spelled: str, reader_zone: tzinfo) -> tuple[tzinfo, str | None]:
    """Return a time zone and its IANA name, None if it has none.

    spelled: "local" for the reader's zone, an IANA name, or an offset from UTC such as "utc+05:30".

    `"utc+2"` gives an offset of two hours with the name `Etc/GMT-2`. Raises ValueError for an
    offset that is out of range.
    """
    if spelled == "local":
        return reader_zone, None
    if not spelled.startswith(("utc", "gmt")):
        return ZoneInfo(spelled), spelled
    digits = spelled[3:].replace(":", "")
    if not digits:
        return UTC, "Etc/UTC"
    # `+0530`: a sign, two digits of hours, and perhaps two of minutes.
    is_west = digits[0] == "-"
    hours = int(digits[1:3])
    minutes = int(digits[3:] or "0")
    if hours > 14 or minutes > 59:
        raise ValueError(spelled)
    offset = timedelta(hours=hours, minutes=minutes)
    if is_west:
        offset = -offset
    if minutes:
        # Only whole hours have a name that a rule can hold
        return timezone(offset), None
    # The names of Etc count the other way
    sign = "+" if is_west else "-"
    return timezone(offset), f"Etc/GMT{sign}{hours}"


def later(delay: Delay, moment: datetime, zone: tzinfo) -> datetime:
    """Return the moment that is `delay` after `moment`.

    Months and days are counted by the calendar of `zone`, seconds as elapsed time.
    """
    start = moment.replace(microsecond=0)
    if delay.months or delay.days:
        day = shifted(start.date(), delay.months, delay.days)
        start = wall_time(day, start.time(), zone)
    return (start.astimezone(UTC) + timedelta(seconds=delay.seconds)).astimezone(zone)
