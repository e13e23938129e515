"""Reminders made from texts: which times a memory names, and what for, so that a deep dream makes a
reminder of it (contract 001, 6 and 18.7); and which of those made so their texts ask for no more.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from memoranda.engine.overview import contents
from memoranda.engine.upkeep import Upkeep
from memoranda.engine.writing import id_list
from memoranda.errors import Ambiguous, AmbiguousTime, InvalidInput, NotFound, PastTime, TimeRefused
from memoranda.jobs.dedup import plain
from memoranda.jobs.job import DREAM, REMIND, REMINDED, Action, MemoryState, states_of
from memoranda.note.markdown import Record
from memoranda.note.model import ORGANIZED, REMINDERS
from memoranda.note.reminder import SNOOZED, Reminder, keys_of
from memoranda.text.tokens import is_cjk, stop_words, tokens

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo
    from memoranda.note.timephrase import Reading

SOURCE = "dream-engine"
TAG = "auto-reminder"
"""What a reminder made from a text has as its source, and as one of its tags."""
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")


class Skipped(NamedTuple):
    """A time expression of the memory `id` that makes no reminder; `code` is `ambiguous_time` or
    `past_time`.
    """

    id: str
    phrase: str
    code: str


def plan_from_text(
    memories: Sequence[MemoryState],
    settings: Settings,
    now: datetime,
    skipped: list[Skipped],
    doubt: str = "",
) -> list[Action]:
    """A reminder for each date ahead, or deadline, that a memory which is no reminder names for
    sure (see `_doubt`), read with its own `created_at` as the clock. With `doubt` VAGUE_DAY those
    left out since the text names no explicit date, which the owner may want.

    Each is made once: its id says from which memory and words, and stays in that memory's header
    under `reminded` though the reminder be deleted. What another memory of its scope, or a
    reminder, says of the same time in no other words makes none; a birthday makes one for every
    year. Times that are ambiguous or over at `now` go to `skipped`; a text may say "soon", or what
    is done on Mondays, as often as it likes.
    """
    from memoranda.note.timephrase import following

    made = {each.id for each in memories}.union(
        *(id_list(each.header.get(REMINDED)) for each in memories)
    )
    # What is to happen, by scope and time
    said = defaultdict[object, list[frozenset[str]]](list)
    for memory in memories:
        if memory.category == REMINDERS and (due := Reminder.of(memory.header).regular):
            said[memory.scope, due].append(
                _subject(memory.content, str(memory.header.get("due_text") or ""))
            )
    actions: list[Action] = []
    for memory in memories:
        for paragraph, phrase, outcome, found in (
            _times(memory, settings) if memory.category != REMINDERS else ()
        ):
            ids = [reminder_id(source, phrase) for source in (memory.id, *memory.merged)]
            is_made = not made.isdisjoint(ids)
            if found not in ("", doubt):
                continue
            # Of a rule the next time
            if not isinstance(outcome, TimeRefused) and outcome.due <= now:
                try:
                    due = following(
                        outcome.repeat or "", now, settings.reading_zone, since=outcome.due
                    )
                    outcome = replace(outcome, due=due)
                except InvalidInput:
                    outcome = PastTime(outcome.phrase)
            if isinstance(outcome, TimeRefused):
                if not is_made and isinstance(outcome, (AmbiguousTime, PastTime)):
                    skipped.append(Skipped(memory.id, phrase, outcome.code))
                continue
            subject = _subject(paragraph, outcome.phrase)
            others = said[memory.scope, outcome.due]
            is_known = any(_is_same(subject, other) for other in others)
            others.append(subject)
            if is_made or is_known or found != doubt:
                continue
            made.add(ids[0])
            moment = now.astimezone(UTC)
            tags = tuple(dict.fromkeys((*memory.tags, TAG)))
            keys = keys_of(outcome) | {"reminder_of": memory.id}
            record = Record(
                ids[0],
                paragraph,
                REMINDERS,
                moment,
                moment,
                memory.scope,
                ORGANIZED,
                tags,
                SOURCE,
                further=keys,
            )
            words = outcome.phrase
            why = f'"{words}": {outcome.reading}'
            actions.append(
                Action(
                    DREAM,
                    REMIND,
                    ids[0],
                    why,
                    memory.path,
                    target=memory.id,
                    phrase=words,
                    record=record,
                )
            )
    return actions


def _subject(text: str, phrase: str = "") -> frozenset[str]:
    """What a text is about besides the time it names with this phrase: its words, numbers and CJK
    characters.
    """
    said = text.replace(phrase, " ") if phrase else text
    words = frozenset(tokens(plain(said))) - (stop_words() - _WHO) - _NO_SUBJECT
    return (
        frozenset(chain.from_iterable(word if is_cjk(word) else (word,) for word in words))
        - _NO_SUBJECT
    )


def _is_same(subject: frozenset[str], other: frozenset[str]) -> bool:
    """Whether all that one of two texts is about the other is about, too."""
    if subject and other:
        return subject <= other or other <= subject
    return subject == other


_WHO = frozenset(
    ("he", "him", "his", "she", "her", "they", "them", "their", "we", "us", "our", "you", "your")
)
_NO_SUBJECT = frozenset(("due", "deadline", "user", "用户", "截止", *"和与跟同在了的我有要"))


def outdated(memory: MemorySession, infos: Iterable[NoteInfo]) -> dict[str, str | None]:
    """By id, of these reminders those a dream made from a text that asks for them no more, nor does
    another memory: what theirs says now, None when it is gone. Whether they are still wanted only
    the owner knows: they fire, and say so."""
    found: dict[str, str | None] = {}
    others: list[_MemoryText] | None = None
    for info in infos:
        source = info.header.get("reminder_of")
        is_made = info.source == SOURCE and TAG in info.tags and isinstance(source, str)
        # What the owner put off is the owner's
        if not is_made or SNOOZED in info.header:
            continue
        try:
            now = states_of(memory, [memory.memory_id(str(source))])
        except Ambiguous:
            continue
        except NotFound:
            if memory.agent is not None:
                # It may be what another agent keeps to itself
                continue
            now = []
        text = contents(memory, [info])[0]
        subject = _subject(text, str(info.header.get("due_text") or ""))
        asked = _MadeReminder(info.id, source, text.strip(), subject, Reminder.of(info.header))
        if any(_MemoryText(each, memory.settings).asks_for(asked) for each in now):
            continue
        if others is None:
            every = states_of(
                memory, [each for each in Upkeep(memory).every() if each.category != REMINDERS]
            )
            others = [_MemoryText(each, memory.settings) for each in every]
        if not any(each.asks_for(asked) for each in others if each.memory.scope == info.scope):
            found[info.id] = now[0].content if now else None
    return found


_LONGEST_TIME = 16
"""Words a time may have, a CJK character being one."""


class _MadeReminder(NamedTuple):
    """A reminder made from the memory `source`: its id, text, what it is about, and when."""

    id: str
    source: object
    text: str
    subject: frozenset[str]
    reminder: Reminder


class _MemoryText:
    """What a memory says, and when: each read once, however many reminders are compared with it."""

    def __init__(self, memory: MemoryState, settings: Settings):
        self.memory = memory
        self._settings = settings

    @cached_property
    def _paragraphs(self) -> list[tuple[str, frozenset[str]]]:
        """Each with its words."""
        return [(each.strip(), _subject(each)) for each in _BLANK_LINE.split(self.memory.content)]

    @cached_property
    def _times(self) -> list[tuple[str, str, Reading | TimeRefused, str]]:
        # Takes a millisecond
        return list(_times(self.memory, self._settings))

    def asks_for(self, asked: _MadeReminder) -> bool:
        """Whether the memory names the time of a reminder: for it, or for the same thing."""
        ids = (self.memory.id, *self.memory.merged)
        is_source = asked.source in ids
        if is_source and any(asked.text == each for each, _ in self._paragraphs):
            return True
        if not is_source and not any(
            _may_be_same(asked.subject, words) for _, words in self._paragraphs
        ):
            return False
        for paragraph, phrase, outcome, doubt in self._times:
            if doubt in ("", VAGUE_DAY):
                if is_source and any(asked.id == reminder_id(each, phrase) for each in ids):
                    return True
                if isinstance(outcome, TimeRefused):
                    continue
                due = asked.reminder.regular
                repeat = asked.reminder.repeat
                is_then = outcome.due == due or (outcome.repeat and outcome.repeat == repeat)
                if is_then and (is_source or _is_same(asked.subject, _subject(paragraph, phrase))):
                    return True
        return False


def _may_be_same(subject: frozenset[str], words: frozenset[str]) -> bool:
    """Whether `_is_same` may hold for a paragraph with these words once those of its time are left
    out.
    """
    if subject and (subject <= words or subject.isdisjoint(words)):
        return subject <= words
    return len(words - subject) <= _LONGEST_TIME


def reminder_id(source: str, phrase: str) -> str:
    """The id of the reminder made of `phrase` in the memory `source`."""
    from uuid import NAMESPACE_URL, UUID, uuid5

    try:
        namespace = UUID(source)
    except ValueError:
        namespace = uuid5(NAMESPACE_URL, f"memory://categories/{source}")
    return str(uuid5(namespace, phrase))


def _times(
    memory: MemoryState, settings: Settings
) -> Iterator[tuple[str, str, Reading | TimeRefused, str]]:
    """(paragraph, words, reading or refusal, why it is no sure reminder) of each time a memory
    names; of several ways to say one time in a paragraph the first, of a range its start. Hours
    named later in the sentence of a day are of that day, and the first one counts where it is
    early: "Flight on 10 March, BA 117, at 7 am"."""
    from memoranda.note import timephrase

    text = memory.content
    zone = settings.reading_zone
    hour = settings.day_hour
    gaps, ends = (
        [each.span() for each in mark.finditer(text)] for mark in (_BLANK_LINE, _SENTENCE_END)
    )
    found = timephrase.read_all(text, memory.created, zone, hour)
    seen = set[object]()
    taken = set[int]()
    for at, ((start, end), outcome) in enumerate(found):
        if at in taken or (at > 0 and _TO.fullmatch(text, found[at - 1][0][1], start)):
            continue
        (first, last), (begin, stop) = (
            _around(gaps, start, end, text),
            _around(ends, start, end, text),
        )
        paragraph = text[first:last].strip()
        before = text[max(0, start - _AROUND_DAY) : start]
        is_birthday = bool(
            _BIRTHDAY.search(before) or _OF_BIRTHDAY.match(text[end : end + _AROUND_DAY])
        )
        is_deadline = bool(_DUE_BEFORE.search(text[begin:start]) or _DUE_AFTER.match(text, end))
        if is_birthday:
            outcome = _yearly(outcome, memory.created, zone, hour) or outcome
        elif isinstance(outcome, timephrase.Reading) and outcome.is_explicit and outcome.all_day:
            hours = dict[int, datetime]()
            for later, ((place, _), other) in enumerate(found[at + 1 : at + 4], at + 1):
                if place >= stop or getattr(other, "is_dated", False):
                    break
                if _TO.fullmatch(text, found[later - 1][0][1], place):
                    # When it ends, maybe after midnight
                    continue
                with suppress(TimeRefused):
                    both = timephrase.read(
                        f"{outcome.phrase} {other.phrase}", memory.created, zone, hour
                    )
                    if not (both.all_day or both.repeat) and both.due.date() == outcome.due.date():
                        hours[later] = both.due
            taken.update(hours)
            early = min(hours.values(), default=outcome.due)
            if not is_deadline and early - settings.notify_before < outcome.due:
                outcome = replace(outcome, due=early, all_day=not hours)
        time: object = (
            start if isinstance(outcome, TimeRefused) else (paragraph, outcome.due, outcome.repeat)
        )
        if time in seen:
            continue
        seen.add(time)
        doubt = ""
        if not isinstance(outcome, TimeRefused):
            today = memory.created.astimezone(zone).date()
            is_of_its_day = (
                outcome.all_day and outcome.due.date() == today and not (is_birthday or is_deadline)
            )
            if is_of_its_day:
                doubt = "its own day"
            else:
                doubt = _doubt(text[begin:stop], outcome, is_birthday, is_deadline)
        yield paragraph, outcome.phrase, outcome, doubt


def _around(marks: Sequence[tuple[int, int]], start: int, end: int, text: str) -> tuple[int, int]:
    """Where the piece of a text begins and ends that holds text[start:end], between two of these
    marks.
    """
    before = bisect_right(marks, start, key=itemgetter(1))
    after = bisect_left(marks, end, key=itemgetter(0))
    return marks[before - 1][1] if before else 0, marks[after][0] if after < len(marks) else len(
        text
    )


_BIRTHDAY = re.compile(
    r"(?:\b(?:birthday|anniversary)\b(?:\s|[:,(–—-]|\b(?:is|are|on|falls on|the)\b)*"
    r"|(?:生日|纪念日)(?:\s|[：:，,（(]|是|在|为)*)\Z",
    re.I,
)
_OF_BIRTHDAY = re.compile(
    r"\s*(?:is|are)\s+(?:[\w'’]+\s+){0,4}(?:birthday|anniversary)\s*(?:[.!?,;)\n]|\Z)"
    r"|\s*[是为][^，。！？；\n]{0,12}?(?:生日|纪念日)\s*(?:[，。！？；\n]|\Z)",
    re.I,
)
_AROUND_DAY = 80
_LONG_AGO = datetime(1000, 1, 1, tzinfo=UTC)


def _yearly(
    outcome: Reading | TimeRefused, created: datetime, zone: tzinfo, day_hour: int
) -> Reading | None:
    """The reading of a birthday, its next one or its first, as one for every year; None for words
    that name no day of the calendar: those would mean another one if they had been said long
    ago."""
    from memoranda.note import timephrase

    try:
        reading = timephrase.read(outcome.phrase, _LONG_AGO, zone, day_hour)
    except TimeRefused:
        return None
    due = reading.due if isinstance(outcome, PastTime) else getattr(outcome, "due", None)
    if (
        due is None
        or reading.repeat
        or not reading.all_day
        or f"{due:%m%d}" != f"{reading.due:%m%d}"
    ):
        return None
    day = -1 if (due.month, due.day) == (2, 29) else due.day
    rule = str(
        timephrase.Recurrence(
            "YEARLY", months=(due.month,), monthdays=(day,), hours=(due.hour,), minutes=(0,)
        )
    )
    # Without a year the next 29 February, which may be years ahead
    if day < 0 and due > created:
        due = timephrase.following(rule, created, zone)
    return replace(reading, due=due, repeat=rule)


VAGUE_DAY = "no explicit date"
_TO = re.compile(r"\s*(?:to|until|till|through|-|–|—|~|至|到)\s*", re.I)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？；;\n]")
_NO_NEGATION = re.compile(
    r"(?:do not|don't|don’t|never) forget|(?:no|not) later than|别忘|不要忘|勿忘|不晚于|不迟于|不超过",
    re.I,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|cancel\w*|called off|off the table|without|might|maybe|perhaps|cannot)\b|n['’]t\b"
    r"|不|没|别|取消|无需|勿|未必|也许|或许|可能|作废",
    re.I,
)
_TO_CANCEL = re.compile(
    r"(?:\A[\s*•>-]*(?:\[.?\]\s*)?|\b(?:please|remember to|need to|must|have to|should)\s+)cancel\b"
    r"|(?:\A[\s*•>-]*|[要得去请])取消(?![了的])",
    re.I,
)
"""What is to be done by a deadline, where cancelling anything else says that it does not take
place.
"""
_HABIT = re.compile(
    r"\b(?:every|each|usually|always|often|weekly|monthly|yearly)\b|每|通常|总是|经常|平时", re.I
)
_DUE_BEFORE = re.compile(
    r"(?:\b(?:by|due(?: on| by)?|deadline(?: is| on)?:?|until|no later than|before)"
    r"|截止(?:日期|时间)?[是为到：:]?|最晚|最迟)\s*(?:the\s|on\s)?\s*\Z",
    re.I,
)
_DUE_AFTER = re.compile(r"\s*(?:之前|以前|前(?![天面后])|截止|到期|is the deadline)", re.I)
_MONTHDAY = re.compile(r"\d(?:st|nd|rd|th)\b|[号日]")


def _doubt(sentence: str, reading: Reading, is_birthday: bool, is_deadline: bool) -> str:
    """Why a time in this sentence asks for no reminder, or may not; "" for an explicit date ahead
    or a named deadline, that nothing in its sentence negates (contract 001, 18.7)."""
    is_yearly = is_birthday and "FREQ=YEARLY" in (reading.repeat or "")
    if not is_yearly and (reading.repeat or _HABIT.search(sentence)):
        return "a repeat"
    if is_deadline:
        said = _TO_CANCEL.sub(" ", sentence)
    else:
        said = sentence
    if _NEGATION.search(_NO_NEGATION.sub(" ", said)):
        return "a negation"
    is_sure = (
        is_yearly or reading.is_explicit or (is_deadline and not _MONTHDAY.search(reading.phrase))
    )
    if is_sure:
        return ""
    return VAGUE_DAY
