"""Reminder phrases in English and Chinese, read against a given clock (contract 001, 9).

Every time word of a text is used, or the text is refused with the words that were left. Nothing is
guessed: a text that may mean two times, or none, is refused with a reason (`TimeRefused`).

A text goes through these steps: `lexer` finds the time words, `parts` gives them their roles and
joins them, `moments` and `series` read what they say together, `leftovers` looks for what no step
used.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from operator import itemgetter
from typing import NamedTuple

from memoranda.errors import (
    AmbiguousTime,
    InvalidInput,
    InvalidTime,
    NoTime,
    PastTime,
    TimeRefused,
    UnusedWords,
    VagueTime,
)
from memoranda.note.timephrase import leftovers
from memoranda.note.timephrase.moments import read_once
from memoranda.note.timephrase.parts import (
    BETWEEN,
    END,
    PARAGRAPH,
    Part,
    clusters,
    parts_of,
    parts_that_count,
    with_separate_clauses,
    with_series_ends,
    with_shared_months,
)
from memoranda.note.timephrase.reading import GAP, Clock, Reading, Sentence
from memoranda.note.timephrase.rules import Recurrence, next_time_after
from memoranda.note.timephrase.series import (
    read_series,
    with_run_of_days,
    with_weekday_range,
)
from memoranda.note.timephrase.text import Text
from memoranda.note.timephrase.values import Unclear

# Words longer than the longest adverb are not one: "every fortnight".
_LONGEST_ADVERB = len("fortnightly")
# "in May" or "for 3 days" alone names no time.
_NEED_ANOTHER_PART = (
    "zone",
    "where",
    "length",
    "run",
    "times",
    "month",
    "offset",
    "per_day",
    "month_limit",
)
__all__ = ["GAP", "Reading", "Recurrence", "next_time_after", "read", "read_all", "read_times"]


def read(text: str, now: datetime, zone: tzinfo, day_hour: int = 9) -> Reading:
    """Read the one time that a text names: "call Bob tomorrow at 3pm".

    text: the words of a person, with exactly one time.
    now: the present, aware.
    zone: the zone of days and clocks, unless the text names another.
    day_hour: the hour (0-23) assumed for a day without a time.

    Raises AmbiguousTime for several times, and all errors of `read_times`.
    """
    readings = read_times(text, now, zone, day_hour)
    if len(readings) > 1:
        raise AmbiguousTime(readings[0].phrase, sorted({reading.due for reading in readings}))
    return readings[0]


def read_times(text: str, now: datetime, zone: tzinfo, day_hour: int = 9) -> list[Reading]:
    """Read the times after `now` that a text names, in order: two for "8am and 8pm".

    text: the words of a person.
    now: the present, aware.
    zone: the zone of days and clocks, unless the text names another.
    day_hour: the hour (0-23) assumed for a day without a time.

    Raises AmbiguousTime, PastTime, NoTime, InvalidTime or VagueTime (contract 001, 8), and
    UnusedWords if a time word of the text was not used.
    """
    # Find the words that are about times.
    forms = Text(text)
    parts = parts_that_count(parts_of(forms), forms.plain)
    _refuse_vague(forms, parts)
    sentence = Sentence(forms, [part for part in parts if not _describes_subject(part, parts)])
    if not any(_says_when(part) for part in sentence.parts):
        raise _without_time(forms, text)

    clock = Clock(now.astimezone(zone), zone, day_hour)
    try:
        readings = _meaning(sentence, clock)
    except UnusedWords:
        # Caught first, since it is a kind of AmbiguousTime. It names the unused words already.
        raise
    except AmbiguousTime:
        # A user is helped more by the words that were not used than by a list of possible times.
        unused = _first_unused_words(sentence, parts)
        if not unused:
            raise
        raise UnusedWords(sentence.phrase, unused) from None
    unused = _first_unused_words(sentence, parts)
    if unused:
        raise UnusedWords(sentence.phrase, unused)
    return readings


def _refuse_vague(forms: Text, parts: Sequence[Part]) -> None:
    """Raise VagueTime if one of the parts is a word such as "soon"."""
    for part in parts:
        if part.kind == "vague":
            raise VagueTime(forms.as_written(part.lexeme.start, part.lexeme.end))


class GroupReading(NamedTuple):
    """The reading of one group of joined time words in a long text.

    span: the start and the end of the group in the text.
    outcome: the time that the group names, or the reason why it cannot be read.
    """

    span: tuple[int, int]
    outcome: Reading | TimeRefused


def read_all(text: str, now: datetime, zone: tzinfo, day_hour: int = 9) -> list[GroupReading]:
    """Read every group of joined time words in a long text.

    A vague word such as "soon" refuses all times of its paragraph (contract 001, 6 and 9).

    text: a text of any length, such as a note.
    now: the present, aware.
    zone: the zone of days and clocks, unless a group names another.
    day_hour: the hour (0-23) assumed for a day without a time.
    """
    forms = Text(text)
    clock = Clock(now.astimezone(zone), zone, day_hour)
    groups = _groups(forms)
    spans = [_span(group) for group in groups]

    # Number the paragraphs, and find those with a vague word. The blank lines are found in the
    # plain text, and their ends are counted in the text as it was written.
    paragraph_ends = [
        forms.span(0, blank_line.end())[1] for blank_line in PARAGRAPH.finditer(forms.plain)
    ]
    paragraphs = [bisect(paragraph_ends, start) for start, _ in spans]
    vague_paragraphs: set[int] = set()
    for paragraph, group in zip(paragraphs, groups, strict=True):
        if group.of("vague"):
            vague_paragraphs.add(paragraph)

    readings: list[GroupReading] = []
    for paragraph, span, group in zip(paragraphs, spans, groups, strict=True):
        if paragraph in vague_paragraphs:
            readings.append(GroupReading(span, VagueTime(group.phrase)))
        else:
            readings.append(GroupReading(span, _outcome(group, clock)))
    return readings


def _groups(text: Text) -> list[Sentence]:
    """Return the groups of joined time words in a text that say when.

    "tomorrow at 3" is a group, and so is "soon", which cannot be read. "for 3 days" alone is not.
    """
    groups = []
    for cluster in clusters(parts_of(text)):
        # In a long text, a word that may be about something else ("the night shift") is not read.
        parts = [part for part in parts_that_count(cluster, text.plain) if not part.is_loose]
        if _are_time_of_note(parts):
            groups.append(Sentence(text, parts))
    return groups


def _are_time_of_note(parts: Sequence[Part]) -> bool:
    """Whether the joined parts say when in a long text.

    There, a holiday or "twice a day" alone is a habit: "On Christmas we visit Anna".
    """
    has_clock = any(part.is_clock for part in parts)
    if not has_clock and any(part.kind == "per_day" for part in parts):
        return False
    return any(_says_when(part) and not part.is_holiday for part in parts)


def _span(group: Sentence) -> tuple[int, int]:
    """Return the start and the end of a group in the text as it was written."""
    end = max(part.end for part in group.parts)
    return group.text.span(group.parts[0].lexeme.start, end)


def _outcome(group: Sentence, clock: Clock) -> Reading | TimeRefused:
    """Return the time that a group of joined words names, or the reason why it cannot be read."""
    try:
        unused = leftovers.beside(group.text, group.parts)
        if unused:
            return UnusedWords(group.phrase, unused)
        readings = _meaning(group, clock)
    except TimeRefused as refusal:
        return refusal
    if group.of("lunar"):
        # Mostly a birthday, of which a single reminder is not enough
        return AmbiguousTime(group.phrase)
    if len(readings) > 1 and not readings[0].repeat:
        return AmbiguousTime(group.phrase, sorted({reading.due for reading in readings}))
    return readings[0]


def _says_when(part: Part) -> bool:
    """Whether a part alone names a time. "in May" or "for 3 days" needs another part beside it."""
    return not part.is_loose and part.kind not in _NEED_ANOTHER_PART


def _describes_subject(part: Part, parts: Sequence[Part]) -> bool:
    """Whether an adverb only describes the subject: "send the weekly report every Friday".

    So it is if another repetition of the same unit names its days.

    parts: all parts of the sentence.
    """
    if part.kind != "repeat" or part.link != "apart":
        return False
    repetition = part.lexeme.value
    length = part.lexeme.end - part.lexeme.start
    may_be_adverb = length <= _LONGEST_ADVERB and not repetition.days
    if not may_be_adverb:
        return False
    repetitions = [other.lexeme.value for other in parts if other.kind == "repeat"]
    return any(other.unit == repetition.unit and other.days for other in repetitions)


def _without_time(forms: Text, text: str) -> TimeRefused:
    """Return the error for a text that names no time.

    It names the words that may say one but are not read, such as "twice a week" and "morgen".
    """
    words = leftovers.unused_words(forms, ())
    if words:
        return UnusedWords(text, words)
    return NoTime(text)


def _meaning(sentence: Sentence, clock: Clock) -> list[Reading]:
    """Return the times that the parts of a sentence name. Raises TimeRefused."""
    phrase = sentence.phrase
    if sentence.of("wrong"):
        raise InvalidTime(phrase)
    unclear = sentence.of("unclear")
    try:
        if unclear:
            raise _ambiguity(sentence, unclear[0], clock)
        return list(dict.fromkeys(_readings(sentence, clock)))
    except Unclear:
        raise AmbiguousTime(phrase) from None
    except TimeRefused:
        raise
    except (ValueError, OverflowError, InvalidInput):
        raise InvalidTime(phrase) from None


def _ambiguity(sentence: Sentence, unclear: Part, clock: Clock) -> AmbiguousTime:
    """Return the error for words with two meanings, with the times of both if they can be told.

    "every second Tuesday" is every other Tuesday, or the second one of each month.

    sentence: the time words.
    unclear: the first of them that has two meanings.
    clock: the moment at which the text is read.

    Raises UnusedWords for words that neither meaning uses.
    """
    # Each further word with two meanings would double the times.
    if len(sentence.of("unclear")) > 1:
        return AmbiguousTime(sentence.phrase)
    times: list[tuple[datetime, str, str]] = []
    for possible in unclear.lexeme.value or ():
        lexeme = unclear.lexeme._replace(kind="repeat", value=possible.repetition)
        repeat = replace(unclear, lexeme=lexeme)
        parts = [repeat if part is unclear else part for part in sentence.parts]
        try:
            readings = _meaning(Sentence(sentence.text, parts), clock)
        except UnusedWords:
            raise
        except (InvalidTime, PastTime):
            # "every second Tuesday until Friday" has only one meaning with a time left.
            continue
        except AmbiguousTime as ambiguity:
            # The clock has two meanings as well: "every second Tuesday at 9".
            rules = zip(ambiguity.candidates, ambiguity.repeats, strict=False)
            times += [(due, repeat or "", possible.words) for due, repeat in rules]
        else:
            times += [(reading.due, reading.repeat or "", possible.words) for reading in readings]
    # In the order of their times. Of the same time, the first meaning comes first.
    times.sort(key=itemgetter(0))
    return AmbiguousTime(
        sentence.phrase,
        [due for due, _, _ in times],
        [repeat for _, repeat, _ in times],
        [words for _, _, words in times],
    )


def _readings(sentence: Sentence, clock: Clock) -> list[Reading]:
    """Read the parts as a series if they name a repetition, and else as times that come once."""
    plain = sentence.text.plain
    parts = with_shared_months(sentence.parts, plain)
    parts = with_series_ends(parts, plain)
    parts = with_separate_clauses(parts, plain)
    sentence = with_run_of_days(with_weekday_range(Sentence(sentence.text, parts)))
    _refuse_half_of_range(sentence)
    if sentence.of("repeat"):
        return read_series(sentence, clock)
    # "tomorrow at 9am except in August"
    if sentence.of("month_limit"):
        raise sentence.unused(*sentence.of("month_limit"))
    readings = read_once(sentence, clock)
    alternatives = [part for part in sentence.parts if part.link == "or"]
    if alternatives:
        raise AmbiguousTime(sentence.phrase, [reading.due for reading in readings])
    return readings


def _refuse_half_of_range(sentence: Sentence) -> None:
    """Raise UnusedWords for "between" with a beginning and no end: "between Friday at 3pm"."""
    beginnings = [part for part in sentence.parts if part.role == BETWEEN]
    has_end = any(part.role == END for part in sentence.parts)
    if beginnings and not has_end:
        raise sentence.unused(*beginnings)


def _first_unused_words(sentence: Sentence, parts: Sequence[Part]) -> str:
    """Return the first words that name a time but were not used, as written. "" if all were used.

    parts: the parts of the sentence, and adverbs that are about its subject.
    """
    text = sentence.text
    has_day = any(part.is_day or part.kind in ("repeat", "instant") for part in sentence.parts)
    has_hour = any(part.kind in ("clock", "instant", "delay") for part in sentence.parts)
    has_clock = has_hour or any(part.is_clock for part in sentence.parts)

    # Words right beside the time words, which change them.
    for cluster in clusters(sentence.parts):
        words = leftovers.beside(text, cluster)
        if words:
            return words
        if not has_hour:
            # A bare number may be the hour: "Friday 5", "7 Sunday morning".
            number = leftovers.number_beside(text, cluster)
            if number:
                return number

    # Words anywhere else.
    words = leftovers.unused_words(text, parts)
    if words:
        return words
    if not has_day or not has_clock:
        # The day or the hour may be in a language that is not read
        return leftovers.unread_script(text)
    return ""
