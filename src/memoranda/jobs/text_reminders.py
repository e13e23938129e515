"""Reminders made from texts: which times a memory names, and what for, so that a deep dream makes a
reminder of it (contract 001, 6 and 18.7); and which of those made so their texts do not ask for
any longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from memoranda.engine.contents import contents
from memoranda.engine.upkeep import Upkeep
from memoranda.engine.writing import id_list
from memoranda.errors import Ambiguous, AmbiguousTime, InvalidInput, NotFound, PastTime, TimeRefused
from memoranda.jobs.dedup import lower_form
from memoranda.jobs.job import DREAM, REMIND, REMINDED, Action, MemoryState, states_of
from memoranda.jobs.text_times import BLANK_LINE, VAGUE_DAY, TextTime, times_of
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
"""The source, and one of the tags, of a reminder made from a text."""


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
    """Plan a reminder for each coming date or deadline that a memory names for sure
    (`TextTime.doubt`).

    The time of writing is the clock. Reminders themselves are not read. Each reminder is made once:
    its id is derived from the memory and the words, and stays in the memory's header under
    `reminded` even if the reminder is deleted. If another memory of its scope, or a reminder,
    already names the same time in the same words, none is made. A birthday gets one for every year.

    skipped: gets the times that are ambiguous, that leave a time word unused, or that are over at
        `now`. Vague words such as "soon" and habits are not listed.
    doubt: with VAGUE_DAY, plan instead those left out for want of an explicit date, for the owner.
    """
    plan = _Plan(memories, settings, now, skipped, doubt)
    actions = []
    for memory in memories:
        if memory.category == REMINDERS:
            continue
        for time in times_of(memory, settings):
            action = plan.action(memory, time)
            if action is not None:
                actions.append(action)
    return actions


class _Plan:
    """The state while reminders are planned: the ids that were made, and what happens when."""

    def __init__(
        self,
        memories: Sequence[MemoryState],
        settings: Settings,
        now: datetime,
        skipped: list[Skipped],
        doubt: str,
    ):
        self._settings = settings
        self._now = now
        self._skipped = skipped
        self._doubt = doubt
        self._made_ids = {memory.id for memory in memories}
        # The coming events, by scope and time.
        self._subjects = defaultdict[object, list[frozenset[str]]](list)
        for memory in memories:
            self._made_ids.update(id_list(memory.header.get(REMINDED)))
            due = Reminder.of(memory.header).regular
            if memory.category == REMINDERS and due:
                subject = _subject(memory.content, str(memory.header.get("due_text") or ""))
                self._subjects[memory.scope, due].append(subject)

    def action(self, memory: MemoryState, time: TextTime) -> Action | None:
        """The reminder that a time of a memory asks for, None when it asks for none."""
        if time.doubt not in ("", self._doubt):
            return None
        ids = [reminder_id(source, time.phrase) for source in (memory.id, *memory.merged)]
        is_made = not self._made_ids.isdisjoint(ids)
        outcome = self._ahead(time.outcome)
        if isinstance(outcome, TimeRefused):
            if not is_made and isinstance(outcome, (AmbiguousTime, PastTime)):
                self._skipped.append(Skipped(memory.id, time.phrase, outcome.code))
            return None
        subject = _subject(time.paragraph, outcome.phrase)
        same_time = self._subjects[memory.scope, outcome.due]
        is_known = any(_is_same(subject, known_subject) for known_subject in same_time)
        same_time.append(subject)
        if is_made or is_known or time.doubt != self._doubt:
            return None
        self._made_ids.add(ids[0])
        return self._reminder(ids[0], memory, time.paragraph, outcome)

    def _ahead(self, outcome: Reading | TimeRefused) -> Reading | TimeRefused:
        """A reading at its time ahead, of a rule the next one; PastTime when it is over."""
        from memoranda.note.timephrase import next_time_after

        if isinstance(outcome, TimeRefused) or outcome.due > self._now:
            return outcome
        try:
            zone = self._settings.reading_zone
            due = next_time_after(outcome.repeat or "", self._now, zone, since=outcome.due)
        except InvalidInput:
            return PastTime(outcome.phrase)
        return replace(outcome, due=due)

    def _reminder(self, id: str, memory: MemoryState, paragraph: str, reading: Reading) -> Action:
        moment = self._now.astimezone(UTC)
        record = Record(
            id,
            paragraph,
            REMINDERS,
            moment,
            moment,
            memory.scope,
            ORGANIZED,
            tuple(dict.fromkeys((*memory.tags, TAG))),
            SOURCE,
            further=keys_of(reading) | {"reminder_of": memory.id},
        )
        return Action(
            DREAM,
            REMIND,
            id,
            f'"{reading.phrase}": {reading.reading}',
            memory.path,
            target=memory.id,
            phrase=reading.phrase,
            record=record,
        )


def _subject(text: str, phrase: str = "") -> frozenset[str]:
    """The subject of a text, apart from the time it names with this phrase: its words, numbers and
    CJK characters."""
    for piece in phrase.split(" … ") if phrase else ():
        text = text.replace(piece, " ")
    words = frozenset(tokens(lower_form(text))) - (stop_words() - _WHO) - _NO_SUBJECT
    return (
        frozenset(chain.from_iterable(word if is_cjk(word) else (word,) for word in words))
        - _NO_SUBJECT
    )


def _is_same(subject: frozenset[str], second: frozenset[str]) -> bool:
    """Whether all that one of two texts is about the second is about, too, or the reverse."""
    if subject and second:
        return subject <= second or second <= subject
    return subject == second


_WHO = frozenset(
    ("he", "him", "his", "she", "her", "they", "them", "their", "we", "us", "our", "you", "your")
)
_NO_SUBJECT = frozenset(("due", "deadline", "user", "用户", "截止", *"和与跟同在了的我有要"))


def outdated(memory: MemorySession, infos: Iterable[NoteInfo]) -> dict[str, str | None]:
    """The reminders made by a dream from a text that no longer asks for them, by id.

    The value is the present text of the memory, or None if it is gone. Reminders that another
    memory asks for are left out. Only the owner knows whether they are still wanted, so they fire
    with a remark.
    """
    texts: dict[str, str | None] = {}
    further_texts: list[_MemoryText] | None = None
    for info in infos:
        states = _source_states(memory, info)
        if states is None:
            continue
        reminder = _made_reminder(memory, info)
        settings = memory.settings
        if any(_MemoryText(state, settings).asks_for(reminder) for state in states):
            continue
        if further_texts is None:
            further_texts = _other_texts(memory)
        same_scope = [text for text in further_texts if text.memory.scope == info.scope]
        if not any(text.asks_for(reminder) for text in same_scope):
            texts[info.id] = states[0].content if states else None
    return texts


def _source_states(memory: MemorySession, info: NoteInfo) -> list[MemoryState] | None:
    """The memory that a reminder was made from; an empty list if it is gone.

    None for a reminder that a dream did not make, or that the owner put off, and if the memory
    cannot be identified.
    """
    source = info.header.get("reminder_of")
    is_made = info.source == SOURCE and TAG in info.tags and isinstance(source, str)
    if not is_made or SNOOZED in info.header:
        return None
    try:
        return states_of(memory, [memory.memory_id(str(source))])
    except Ambiguous:
        return None
    except NotFound:
        # For an agent, the memory may be private to another agent.
        if memory.agent is None:
            return []
        return None


def _made_reminder(memory: MemorySession, info: NoteInfo) -> _MadeReminder:
    (text,) = contents(memory, [info])
    subject = _subject(text, str(info.header.get("due_text") or ""))
    reminder = Reminder.of(info.header)
    return _MadeReminder(info.id, info.header.get("reminder_of"), text.strip(), subject, reminder)


def _other_texts(memory: MemorySession) -> list[_MemoryText]:
    infos = [info for info in Upkeep(memory).every() if info.category != REMINDERS]
    return [_MemoryText(state, memory.settings) for state in states_of(memory, infos)]


# Words a time may have, a CJK character being one.
_MOST_TIME_WORDS = 16


class _MadeReminder(NamedTuple):
    """A reminder made from the memory `source`: its id, text, what it is about, and when."""

    id: str
    source: object
    text: str
    subject: frozenset[str]
    reminder: Reminder


class _MemoryText:
    """The texts and times of memories: each read once, however many reminders are compared with it."""

    def __init__(self, memory: MemoryState, settings: Settings):
        self.memory = memory
        self._settings = settings

    @cached_property
    def _paragraphs(self) -> list[tuple[str, frozenset[str]]]:
        """Each with its words."""
        paragraphs = BLANK_LINE.split(self.memory.content)
        return [(paragraph.strip(), _subject(paragraph)) for paragraph in paragraphs]

    @cached_property
    def _times(self) -> list[TextTime]:
        # Takes a millisecond
        return list(times_of(self.memory, self._settings))

    def asks_for(self, reminder: _MadeReminder) -> bool:
        """Whether the memory names the time of a reminder: for it, or for the same thing."""
        if reminder.source in (self.memory.id, *self.memory.merged):
            return self._still_asks_for(reminder)
        if not any(_may_be_same(reminder.subject, words) for _, words in self._paragraphs):
            return False
        for time in self._times_that_ask():
            subject = _subject(time.paragraph, time.phrase)
            if self._is_then(time, reminder) and _is_same(reminder.subject, subject):
                return True
        return False

    def _still_asks_for(self, reminder: _MadeReminder) -> bool:
        """Whether the memory that a reminder was made from names its time."""
        if any(reminder.text == paragraph for paragraph, _ in self._paragraphs):
            return True
        sources = (self.memory.id, *self.memory.merged)
        for time in self._times_that_ask():
            ids = [reminder_id(source, time.phrase) for source in sources]
            if reminder.id in ids or self._is_then(time, reminder):
                return True
        return False

    def _times_that_ask(self) -> Iterator[TextTime]:
        return (time for time in self._times if time.doubt in ("", VAGUE_DAY))

    def _is_then(self, time: TextTime, reminder: _MadeReminder) -> bool:
        """Whether a time is the time of a reminder, or has its rule."""
        if isinstance(time.outcome, TimeRefused):
            return False
        is_same_rule = bool(time.outcome.repeat) and (
            time.outcome.repeat == reminder.reminder.repeat
        )
        return is_same_rule or time.outcome.due == reminder.reminder.regular


def _may_be_same(subject: frozenset[str], words: frozenset[str]) -> bool:
    """Whether `_is_same` may be true for a paragraph with these words, without the words of its
    time.
    """
    if subject and (subject <= words or subject.isdisjoint(words)):
        return subject <= words
    return len(words - subject) <= _MOST_TIME_WORDS


def reminder_id(source: str, phrase: str) -> str:
    """The id of the reminder made of `phrase` in the memory `source`."""
    from uuid import NAMESPACE_URL, UUID, uuid5

    try:
        namespace = UUID(source)
    except ValueError:
        namespace = uuid5(NAMESPACE_URL, f"memory://categories/{source}")
    return str(uuid5(namespace, phrase))
