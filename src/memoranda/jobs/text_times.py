"""The times that the text of a memory names, and which of them ask for a reminder for sure
(contract 001, 6 and 18.7).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from memoranda.errors import PastTime, TimeRefused

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.jobs.job import MemoryState
    from memoranda.note.timephrase import Reading

# A blank line: nothing said before it is context of the text after it.
BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
VAGUE_DAY = "no explicit date"
# Words between the two ends of a range.
_TO = re.compile(r"\s*(?:to|until|till|through|-|–|—|~|至|到)\s*", re.I)
# Where a sentence ends.
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？；;\n]")
# Phrases with a word of negation that say "do it".
_NO_NEGATION = re.compile(
    r"(?:do not|don't|don’t|never) forget|(?:no|not) later than|别忘|不要忘|勿忘|不晚于|不迟于|不超过",
    re.I,
)
# Words after which a date is nothing to be reminded of.
_NEGATION = re.compile(
    r"\b(?:not|no|never|cancel\w*|called off|off the table|without|might|maybe|perhaps|cannot)\b|n['’]t\b"
    r"|不|没|别|取消|无需|勿|未必|也许|或许|可能|作废",
    re.I,
)
# A task with a deadline, where cancelling anything else says that it does not take place.
_TO_CANCEL = re.compile(
    r"(?:\A[\s*•>-]*(?:\[.?\]\s*)?|\b(?:please|remember to|need to|must|have to|should)\s+)cancel\b"
    r"|(?:\A[\s*•>-]*|[要得去请])取消(?![了的])",
    re.I,
)
# Words of a habit, which is not an appointment.
_HABIT = re.compile(
    r"\b(?:every|each|usually|always|often|weekly|monthly|yearly)\b|每|通常|总是|经常|平时", re.I
)
# Words before a date that make it a deadline.
_DUE_BEFORE = re.compile(
    r"(?:\b(?:by|due(?: on| by)?|deadline(?: is| on)?:?|until|no later than|before)"
    r"|截止(?:日期|时间)?[是为到：:]?|最晚|最迟)\s*(?:the\s|on\s)?\s*\Z",
    re.I,
)
# Words after a date that make it a deadline.
_DUE_AFTER = re.compile(r"\s*(?:之前|以前|前(?![天面后])|截止|到期|is the deadline)", re.I)
# A day of the month, which a deadline may name without its month.
_MONTHDAY = re.compile(r"\d(?:st|nd|rd|th)\b|[号日]")
# Words before a date that make it a birthday: it returns each year.
_BIRTHDAY = re.compile(
    r"(?:\b(?:birthday|anniversary)\b(?:\s|[:,(–—-]|\b(?:is|are|on|falls on|the)\b)*"
    r"|(?:生日|纪念日)(?:\s|[：:，,（(]|是|在|为)*)\Z",
    re.I,
)
# The same words after the date: "9 June is Anna's birthday".
_OF_BIRTHDAY = re.compile(
    r"\s*(?:is|are)\s+(?:[\w'’]+\s+){0,4}(?:birthday|anniversary)\s*(?:[.!?,;)\n]|\Z)"
    r"|\s*[是为][^，。！？；\n]{0,12}?(?:生日|纪念日)\s*(?:[，。！？；\n]|\Z)",
    re.I,
)
# Characters around a day in which words say what it is.
_CHARACTERS_AROUND_DAY = 80
_LONG_AGO = datetime(1000, 1, 1, tzinfo=UTC)
# The number of times behind a day that may be its hour.
_HOURS_LOOKED_AT = 3
# Places in a text, in order: (start, end).
_Marks = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TextTime:
    """A time that a memory names.

    paragraph: its paragraph.
    phrase: its words.
    outcome: its reading, or the refusal.
    doubt: the reason why it is not a sure reminder. Empty for a sure one.
    """

    paragraph: str
    phrase: str
    outcome: Reading | TimeRefused
    doubt: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a time is in its text: its paragraph, its sentence at text[start:end], and whether
    that makes it a birthday or a deadline.
    """

    paragraph: str
    start: int
    end: int
    is_birthday: bool
    is_deadline: bool


def times_of(memory: MemoryState, settings: Settings) -> Iterator[TextTime]:
    """The times that a memory names, read with its own time of writing as the clock.

    If a paragraph names one time in several ways, the first counts; for a range, its start. Hours
    later in the sentence belong to its day, and the first of them counts if it is early: "Flight on
    10 March, BA 117, at 7 am".
    """
    text = _MemoryText(memory, settings)
    yielded: set[object] = set()
    used_hours: set[int] = set()
    for index, ((start, end), outcome) in enumerate(text.groups):
        if index in used_hours or text.ends_range(index):
            continue
        place = text.place(start, end)
        if place.is_birthday:
            outcome = text.yearly(outcome) or outcome
        elif not isinstance(outcome, TimeRefused) and outcome.is_explicit and outcome.all_day:
            hours = text.hours_of(index, outcome, place)
            used_hours.update(hours)
            outcome = text.with_hour(outcome, hours, place)
        key: object = start
        if not isinstance(outcome, TimeRefused):
            key = (place.paragraph, outcome.due, outcome.repeat)
        if key in yielded:
            continue
        yielded.add(key)
        doubt = text.doubt(outcome, place)
        yield TextTime(place.paragraph, outcome.phrase, outcome, doubt)


class _MemoryText:
    """The text of a memory with its groups of time words."""

    def __init__(self, memory: MemoryState, settings: Settings):
        from memoranda.note import timephrase

        self._text = memory.content
        self._created = memory.created
        self._settings = settings
        self._zone = settings.reading_zone
        self.groups = timephrase.read_all(self._text, memory.created, self._zone, settings.day_hour)
        self._gaps = [mark.span() for mark in BLANK_LINE.finditer(self._text)]
        self._sentence_ends = [mark.span() for mark in _SENTENCE_END.finditer(self._text)]

    def ends_range(self, index: int) -> bool:
        """Whether a group says when the time before it ends."""
        if index == 0:
            return False
        (_, end), _ = self.groups[index - 1]
        (start, _), _ = self.groups[index]
        return _TO.fullmatch(self._text, end, start) is not None

    def place(self, start: int, end: int) -> _Place:
        first, last = _around(self._gaps, start, end, self._text)
        sentence_start, sentence_end = _around(self._sentence_ends, start, end, self._text)
        before = self._text[max(0, start - _CHARACTERS_AROUND_DAY) : start]
        after = self._text[end : end + _CHARACTERS_AROUND_DAY]
        is_deadline = bool(
            _DUE_BEFORE.search(self._text[sentence_start:start])
            or _DUE_AFTER.match(self._text, end)
        )
        return _Place(
            self._text[first:last].strip(),
            sentence_start,
            sentence_end,
            is_birthday=bool(_BIRTHDAY.search(before) or _OF_BIRTHDAY.match(after)),
            is_deadline=is_deadline,
        )

    def hours_of(self, index: int, day: Reading, place: _Place) -> dict[int, datetime]:
        """The moments of the hours that the sentence names behind a day, by their group."""
        from memoranda.note import timephrase

        hours: dict[int, datetime] = {}
        next_groups = self.groups[index + 1 : index + 1 + _HOURS_LOOKED_AT]
        for later_index, ((start, _), outcome) in enumerate(next_groups, index + 1):
            if start >= place.end or getattr(outcome, "is_dated", False):
                break
            if self.ends_range(later_index):
                # The end of a range may be after midnight.
                continue
            words = f"{day.phrase} {outcome.phrase}"
            with suppress(TimeRefused):
                reading = timephrase.read(words, self._created, self._zone, self._settings.day_hour)
                is_hour = not (reading.all_day or reading.repeat)
                if is_hour and reading.due.date() == day.due.date():
                    hours[later_index] = reading.due
        return hours

    def with_hour(self, day: Reading, hours: dict[int, datetime], place: _Place) -> Reading:
        """Move a day to its first hour, if that is earlier than the usual hour of days."""
        earliest = min(hours.values(), default=day.due)
        if place.is_deadline or earliest - self._settings.notify_before >= day.due:
            return day
        return replace(day, due=earliest, all_day=not hours)

    def yearly(self, outcome: Reading | TimeRefused) -> Reading | None:
        """Read a birthday, its next or its first, as a time of every year.

        None for words that do not name a day of the calendar: long ago they would mean a different
        day.
        """
        from memoranda.note import timephrase

        settings = self._settings
        try:
            reading = timephrase.read(outcome.phrase, _LONG_AGO, self._zone, settings.day_hour)
        except TimeRefused:
            return None
        due = reading.due if isinstance(outcome, PastTime) else getattr(outcome, "due", None)
        if due is None or reading.repeat or not reading.all_day:
            return None
        if f"{due:%m%d}" != f"{reading.due:%m%d}":
            return None
        is_leap_day = (due.month, due.day) == (2, 29)
        rule = timephrase.Recurrence(
            "YEARLY",
            months=(due.month,),
            monthdays=(-1 if is_leap_day else due.day,),
            hours=(due.hour,),
            minutes=(0,),
        )
        if is_leap_day and due > self._created:
            # Without a year it is the next 29 February, which may be years ahead
            due = timephrase.next_time_after(str(rule), self._created, self._zone)
        return replace(reading, due=due, repeat=str(rule))

    def doubt(self, outcome: Reading | TimeRefused, place: _Place) -> str:
        """Why a time asks for no reminder, or may not."""
        if isinstance(outcome, TimeRefused):
            return ""
        today = self._created.astimezone(self._zone).date()
        is_special = place.is_birthday or place.is_deadline
        if outcome.all_day and outcome.due.date() == today and not is_special:
            return "its own day"
        return _doubt(self._text[place.start : place.end], outcome, place)


def _around(marks: _Marks, start: int, end: int, text: str) -> tuple[int, int]:
    """The start and end of the piece around text[start:end], between two of these marks."""
    before = bisect_right(marks, start, key=itemgetter(1))
    after = bisect_left(marks, end, key=itemgetter(0))
    if before:
        first = marks[before - 1][1]
    else:
        first = 0
    if after < len(marks):
        last = marks[after][0]
    else:
        last = len(text)
    return first, last


def _doubt(sentence: str, reading: Reading, place: _Place) -> str:
    """Why a time in this sentence asks for no reminder, or may not; "" for an explicit date ahead
    or a named deadline, that nothing in its sentence negates (contract 001, 18.7)."""
    is_yearly = place.is_birthday and "FREQ=YEARLY" in (reading.repeat or "")
    if not is_yearly and (reading.repeat or _HABIT.search(sentence)):
        return "a repeat"
    if place.is_deadline:
        sentence = _TO_CANCEL.sub(" ", sentence)
    if _NEGATION.search(_NO_NEGATION.sub(" ", sentence)):
        return "a negation"
    is_deadline_day = place.is_deadline and not _MONTHDAY.search(reading.phrase)
    if is_yearly or reading.is_explicit or is_deadline_day:
        return ""
    return VAGUE_DAY
