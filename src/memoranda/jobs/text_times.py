"""Find the times that a memory names, and say which of them surely ask for a reminder.

"Dentist on 10 March at 9" does. "We never meet on Monday" does not: it is a negation. A time that
does not for sure has a *doubt*, the reason in words. Source: contract 001, 6 and 18.7.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from memoranda.errors import PastTime, TimeRefused
from memoranda.jobs.past import is_past

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.jobs.job import MemoryState
    from memoranda.note.timephrase import Reading

# A blank line. The text after it does not refer to the text before it.
BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
VAGUE_DAY = "no explicit date"
"""The doubt about a day such as "Friday". The owner may be asked about these."""
# Words between the two ends of a range.
_TO = re.compile(r"\s*(?:to|until|till|through|-|–|—|~|至|到)\s*", re.I)
# Where a sentence ends.
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？；;\n]")
# Phrases with a word of negation that negate nothing: "do not forget".
_NO_NEGATION = re.compile(
    r"(?:do not|don't|don’t|never) forget|(?:no|not) later than|别忘|不要忘|勿忘|不晚于|不迟于|不超过",
    re.I,
)
# Words that say that something does not take place. Nobody must be reminded of it.
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
# The number of characters around a day in which words say whether it is a birthday.
_CHARACTERS_AROUND_DAY = 80
# A clock for reading a day of the calendar with a year of any century, as none is over then.
_LONG_AGO = datetime(1000, 1, 1, tzinfo=UTC)
# The number of times behind a day that may be its hour.
_HOURS_LOOKED_AT = 3
# Places in a text, in order: (start, end).
_Marks = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TextTime:
    """A time that a memory names.

    paragraph: the paragraph with the time.
    phrase: the words of the time.
    outcome: the time as it was read, or the error for words that cannot be read.
    doubt: the reason why it may ask for no reminder. "" for a sure one, and for an error.
    """

    paragraph: str
    phrase: str
    outcome: Reading | TimeRefused
    doubt: str


@dataclass(frozen=True, slots=True)
class _Place:
    """The surroundings of a time in its text.

    paragraph: the paragraph with the time.
    start, end: the sentence with the time is text[start:end].
    is_birthday, is_deadline: whether the words around the time make it one.
    """

    paragraph: str
    start: int
    end: int
    is_birthday: bool
    is_deadline: bool


def times_of(memory: MemoryState, settings: Settings) -> Iterator[TextTime]:
    """Yield the times that a memory names. "Tomorrow" means the day after the memory was written.

    If a paragraph names one time in several ways, the first counts. For a range, its start counts.
    An hour later in the sentence belongs to the day before it: "Flight on 10 March, BA 117, at 7
    am".
    """
    time_groups = _TimeGroups(memory, settings)
    yielded_keys: set[object] = set()
    # The groups that are an hour of an earlier day.
    hour_indexes: set[int] = set()
    for index, group in enumerate(time_groups.groups):
        if index in hour_indexes or time_groups.ends_range(index):
            continue
        outcome = group.outcome
        place = time_groups.place(group)
        if place.is_birthday:
            outcome = time_groups.yearly(outcome) or outcome
        elif not isinstance(outcome, TimeRefused) and outcome.is_explicit and outcome.all_day:
            hours = time_groups.hours_of(index, outcome, place)
            hour_indexes.update(hours)
            outcome = time_groups.with_hour(outcome, hours, place)
        # Two readings of one time in one paragraph are the same, and the first counts. An error is
        # told apart by its position, so that all errors are yielded.
        key: object = group.start
        if not isinstance(outcome, TimeRefused):
            key = (place.paragraph, outcome.due, outcome.repeat)
        if key in yielded_keys:
            continue
        yielded_keys.add(key)
        doubt = time_groups.doubt(outcome, place)
        yield TextTime(place.paragraph, outcome.phrase, outcome, doubt)


class _Group(NamedTuple):
    """Words of a text that name one time.

    start, end: the words are text[start:end].
    outcome: the time as it was read, or the error for words that cannot be read.
    """

    start: int
    end: int
    outcome: Reading | TimeRefused


class _TimeGroups:
    """The text of a memory, and its groups of time words.

    groups: each group, in the order of the text.
    """

    def __init__(self, memory: MemoryState, settings: Settings):
        from memoranda.note import timephrase

        self._text = memory.content
        self._created = memory.created
        self._settings = settings
        self._zone = settings.reading_zone
        readings = timephrase.read_all(self._text, memory.created, self._zone, settings.day_hour)
        self.groups = [_Group(start, end, outcome) for (start, end), outcome in readings]
        self._gaps = [mark.span() for mark in BLANK_LINE.finditer(self._text)]
        self._sentence_ends = [mark.span() for mark in _SENTENCE_END.finditer(self._text)]

    def ends_range(self, index: int) -> bool:
        """Whether a group is the end of a range: `11` in "from 9 to 11"."""
        if index == 0:
            return False
        end_of_earlier = self.groups[index - 1].end
        start = self.groups[index].start
        return _TO.fullmatch(self._text, end_of_earlier, start) is not None

    def place(self, group: _Group) -> _Place:
        """Describe the surroundings of a group of time words."""
        start = group.start
        end = group.end
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
        """Return the hours that the sentence names after a day, as moments, by the index of a group.

        In "Flight on 10 March, BA 117, at 7 am", the day has the hour `7 am`. Groups are the times
        in the order of the text.

        index: the group of the day.
        """
        from memoranda.note import timephrase

        hours: dict[int, datetime] = {}
        next_groups = self.groups[index + 1 : index + 1 + _HOURS_LOOKED_AT]
        for later_index, group in enumerate(next_groups, index + 1):
            is_in_sentence = group.start < place.end
            # An hour after another day belongs to that day.
            is_day = not isinstance(group.outcome, TimeRefused) and group.outcome.is_dated
            if not is_in_sentence or is_day:
                break
            if self.ends_range(later_index):
                # The end of a range may be after midnight.
                continue
            words = f"{day.phrase} {group.outcome.phrase}"
            with suppress(TimeRefused):
                reading = timephrase.read(words, self._created, self._zone, self._settings.day_hour)
                is_hour = not (reading.all_day or reading.repeat)
                if is_hour and reading.due.date() == day.due.date():
                    hours[later_index] = reading.due
        return hours

    def with_hour(self, day: Reading, hours: dict[int, datetime], place: _Place) -> Reading:
        """Move a day to the first of its hours, if its reminder would come too late for that hour.

        A deadline stays a day.
        """
        earliest = min(hours.values(), default=day.due)
        is_early_enough = earliest - self._settings.notify_before >= day.due
        if place.is_deadline or is_early_enough:
            return day
        return replace(day, due=earliest, all_day=not hours)

    def yearly(self, outcome: Reading | TimeRefused) -> Reading | None:
        """Turn the time of a birthday into a reminder of every year.

        None for words that do not name a day of the calendar, such as "next Friday".
        """
        from memoranda.note import timephrase

        settings = self._settings
        # Read as if it were the year 1000, so that the day of a birth in 1961 is not over
        try:
            reading = timephrase.read(outcome.phrase, _LONG_AGO, self._zone, settings.day_hour)
        except TimeRefused:
            return None
        # The day of a birth is over. For any other time, the next such day is known.
        if isinstance(outcome, PastTime):
            due = reading.due
        elif isinstance(outcome, TimeRefused):
            return None
        else:
            due = outcome.due
        is_single_day = reading.all_day and not reading.repeat
        if not is_single_day:
            return None
        # Words such as "next Friday" name another day of the year if they are read at another time
        is_same_day = (due.month, due.day) == (reading.due.month, reading.due.day)
        if not is_same_day:
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
        """Return the reason why a time may ask for no reminder.

        "" if it surely asks for one, and for an error.

        outcome: the time as it was read, or the error for words that cannot be read.
        place: its surroundings in the text.
        """
        if isinstance(outcome, TimeRefused):
            return ""
        day_of_writing = self._created.astimezone(self._zone).date()
        is_day_of_writing = outcome.all_day and outcome.due.date() == day_of_writing
        # Such a day says when something was written or happened.
        if is_day_of_writing and not place.is_birthday and not place.is_deadline:
            return "its own day"
        return _doubt(self._text[place.start : place.end], outcome, place)


def _around(marks: _Marks, start: int, end: int, text: str) -> tuple[int, int]:
    """Return the start and end of the piece of text that contains text[start:end].

    marks: (start, end) of each separator between pieces, such as a blank line, in order.
    """
    mark_count_before = bisect_right(marks, start, key=itemgetter(1))
    next_mark = bisect_left(marks, end, key=itemgetter(0))
    piece_start = marks[mark_count_before - 1][1] if mark_count_before else 0
    piece_end = marks[next_mark][0] if next_mark < len(marks) else len(text)
    return piece_start, piece_end


def _doubt(sentence: str, reading: Reading, place: _Place) -> str:
    """Return the reason why a time in a sentence may ask for no reminder (contract 001, 18.7).

    "" for an explicit date or a named deadline that nothing in its sentence negates.
    """
    is_birthday = place.is_birthday and "FREQ=YEARLY" in (reading.repeat or "")
    is_habit = reading.repeat or _HABIT.search(sentence)
    if is_habit and not is_birthday:
        return "a repeat"
    # "Cancel the subscription by 3 May" is a task, not a negation.
    if place.is_deadline:
        sentence = _TO_CANCEL.sub(" ", sentence)
    if _NEGATION.search(_NO_NEGATION.sub(" ", sentence)):
        return "a negation"
    # "By Friday" is sure. "By the 3rd" may be of any month.
    is_sure_deadline = place.is_deadline and not _MONTHDAY.search(reading.phrase)
    if is_birthday or reading.is_explicit or is_sure_deadline:
        return ""
    if is_past(sentence, reading.phrase):
        return "the past"
    return VAGUE_DAY
