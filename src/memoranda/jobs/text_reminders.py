"""Plan reminders for the times that memories name, and find reminders that are out of date.

A memory "Dentist on 10 March at 9" gets a reminder in a deep dream. If somebody changes the memory
to "11 March", the reminder is out of date (`outdated`). Source: contract 001, 6 and 18.7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
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
"""The source of a reminder made from a text."""
TAG = "auto-reminder"
"""A tag of a reminder made from a text."""


class Skipped(NamedTuple):
    """A time expression that makes no reminder.

    id: the memory.
    phrase: the words of the time.
    code: `ambiguous_time` or `past_time`.
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
    """Plan a reminder for each coming date or deadline that a memory surely asks for.

    "Tomorrow" means the day after the memory was written. A birthday gets a reminder of every year.
    Each reminder is made once: its id follows from the memory and the words of the time, and stays
    in the memory's header under `reminded` even if the reminder is deleted. If a reminder, or another
    memory of the scope, names the same time for the same thing, no reminder is made.

    skipped: a list to which times are added that are ambiguous, that leave a time word unused, or
        that are over at `now`. Vague words such as "soon" and habits are not added.
    doubt: the doubt that the times must have. "" plans the sure reminders. VAGUE_DAY plans only
        those for days such as "Friday", which the owner must confirm.
    """
    plan = _ReminderPlan(
        memories=memories, settings=settings, now=now, skipped=skipped, doubt=doubt
    )
    actions = []
    for memory in memories:
        # A reminder has its time in the header, and its text may name the time again.
        if memory.category == REMINDERS:
            continue
        for time in times_of(memory, settings):
            action = plan.action(memory, time)
            if action is not None:
                actions.append(action)
    return actions


class _ReminderPlan:
    """Decide for one time after the other whether it gets a reminder. See `plan_from_text`."""

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
        # The ids of reminders that exist or existed.
        self._made_ids = {memory.id for memory in memories}
        # The subjects of the events that are known, by scope and time.
        self._subjects = defaultdict[object, list[frozenset[str]]](list)
        for memory in memories:
            self._made_ids.update(id_list(memory.header.get(REMINDED)))
            due = Reminder.of(memory.header).regular
            if memory.category == REMINDERS and due:
                subject = _subject(memory.content, str(memory.header.get("due_text") or ""))
                self._subjects[memory.scope, due].append(subject)

    def action(self, memory: MemoryState, time: TextTime) -> Action | None:
        """Plan a reminder for a time that a memory names. Returns None if none is needed.

        If the time is ambiguous or past, it is recorded as skipped, unless it got a reminder earlier.
        """
        is_to_plan = time.doubt == self._doubt
        # A plan of doubtful times looks at the sure ones, too: a doubtful time for the same thing
        # gets no second reminder.
        is_sure = time.doubt == ""
        if not (is_to_plan or is_sure):
            return None
        # A reminder of a merged memory is a reminder of the survivor.
        ids = [reminder_id(source, time.phrase) for source in (memory.id, *memory.merged)]
        is_made = not self._made_ids.isdisjoint(ids)
        outcome = self._ahead(time.outcome)
        if isinstance(outcome, TimeRefused):
            if not is_made and isinstance(outcome, (AmbiguousTime, PastTime)):
                self._skipped.append(Skipped(memory.id, time.phrase, outcome.code))
            return None

        # This also counts if the text gets no reminder, because it has one already: a later text
        # about the same thing must not get one either.
        is_new_event = self._add_event(memory.scope, time, outcome)
        if is_made or not is_new_event or not is_to_plan:
            return None
        self._made_ids.add(ids[0])
        return self._reminder(ids[0], memory, time.paragraph, outcome)

    def _add_event(self, scope: str, time: TextTime, reading: Reading) -> bool:
        """Count the event that a text names as known. Returns whether it was not known before.

        Two texts of one scope about the same thing at the same time name one event.

        reading: the time of the event, or its next time.
        """
        subject = _subject(time.paragraph, reading.phrase)
        subjects_then = self._subjects[scope, reading.due]
        is_known = any(_is_same(subject, other_subject) for other_subject in subjects_then)
        subjects_then.append(subject)
        return not is_known

    def _ahead(self, outcome: Reading | TimeRefused) -> Reading | TimeRefused:
        """Return a reading with its next time. PastTime if it is over and does not repeat.

        An error is returned as it is.
        """
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
        """Return the action that stores a reminder with the text of a paragraph."""
        now = self._now.astimezone(UTC)
        record = Record(
            id=id,
            content=paragraph,
            category=REMINDERS,
            created=now,
            updated=now,
            scope=memory.scope,
            phase=ORGANIZED,
            tags=tuple(dict.fromkeys((*memory.tags, TAG))),
            source=SOURCE,
            further=keys_of(reading) | {"reminder_of": memory.id},
        )
        return Action(
            job=DREAM,
            verb=REMIND,
            id=id,
            reason=f'"{reading.phrase}": {reading.reading}',
            path=memory.path,
            target=memory.id,
            phrase=reading.phrase,
            record=record,
        )


def _subject(text: str, phrase: str = "") -> frozenset[str]:
    """Return the subject of a text as words, without the words of a time.

    `Call the dentist on 10 March` with the phrase `10 March` has the subject `call`, `dentist`. A
    CJK character is a word.

    phrase: the words of the time, with ` … ` between its pieces. "" if there is no time to leave
        out.
    """
    if phrase:
        for piece in phrase.split(" … "):
            text = text.replace(piece, " ")
    words = set(tokens(lower_form(text))) - (stop_words() - _PERSONS) - _NO_SUBJECT
    subject: set[str] = set()
    for word in words:
        if is_cjk(word):
            # Each character of a run counts as a word.
            subject.update(word)
        else:
            subject.add(word)
    return frozenset(subject - _NO_SUBJECT)


def _is_same(subject: frozenset[str], other_subject: frozenset[str]) -> bool:
    """Whether two texts are about the same subject: one has all words of the other.

    subject, other_subject: the words of each subject. An empty one is only equal to an empty one.
    """
    if subject and other_subject:
        return subject <= other_subject or other_subject <= subject
    # An empty subject would be part of every subject.
    return subject == other_subject


# Stop words that make a difference: "call her", "call him".
_PERSONS = frozenset(
    ("he", "him", "his", "she", "her", "they", "them", "their", "we", "us", "our", "you", "your")
)
# Words that are not about the thing to be reminded of.
_NO_SUBJECT = frozenset(("due", "deadline", "user", "用户", "截止", *"和与跟同在了的我有要"))


def outdated(memory: MemorySession, infos: Iterable[NoteInfo]) -> dict[str, str | None]:
    """Find the reminders that are out of date: no memory names their time any longer.

    A dream made a reminder for 10 March from the memory "Dentist on 10 March". The reminder is out
    of date after somebody changes the memory to "11 March" or deletes it, unless another memory
    names the same time for the same thing. Only reminders that a dream made are checked.

    An outdated reminder still fires, with a remark, because only the owner knows whether it is
    wanted.

    infos: the reminders to check.

    Returns the present text of the memory that the reminder was made from, by the id of the
    reminder. The text is None if the memory is gone.
    """
    texts: dict[str, str | None] = {}
    # Read only if they are needed, as this takes long.
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
    """Return the memory that a reminder was made from. The list is empty if the memory is gone.

    None means that the reminder is not checked: a dream did not make it, the owner put it off, or
    several memories may be meant.
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
    """Read a reminder that a dream made."""
    (text,) = contents(memory, [info])
    subject = _subject(text, str(info.header.get("due_text") or ""))
    reminder = Reminder.of(info.header)
    return _MadeReminder(
        id=info.id,
        source=info.header.get("reminder_of"),
        text=text.strip(),
        subject=subject,
        reminder=reminder,
    )


def _other_texts(memory: MemorySession) -> list[_MemoryText]:
    """Read all memories except reminders."""
    infos = [info for info in Upkeep(memory).every() if info.category != REMINDERS]
    return [_MemoryText(state, memory.settings) for state in states_of(memory, infos)]


# The most words that a time has, where a CJK character counts as a word.
_MOST_TIME_WORDS = 16


class _MadeReminder(NamedTuple):
    """A reminder that a dream made.

    id: the id of the reminder.
    source: the id of the memory that it was made from.
    text: the text that the reminder shows.
    subject: the words that say what it is about (`_subject`).
    reminder: when it is due, and whether it repeats.
    """

    id: str
    source: object
    text: str
    subject: frozenset[str]
    reminder: Reminder


class _MemoryText:
    """A memory with its paragraphs and times, which are read once for all reminders."""

    def __init__(self, memory: MemoryState, settings: Settings):
        self.memory = memory
        self._settings = settings

    @cached_property
    def _paragraphs(self) -> list[tuple[str, frozenset[str]]]:
        """The paragraphs, each with the words of its subject."""
        paragraphs = BLANK_LINE.split(self.memory.content)
        return [(paragraph.strip(), _subject(paragraph)) for paragraph in paragraphs]

    @cached_property
    def _times(self) -> list[TextTime]:
        """The times that the memory names. Reading them takes a millisecond."""
        return list(times_of(self.memory, self._settings))

    def asks_for(self, reminder: _MadeReminder) -> bool:
        """Whether the memory names the time of a reminder, and is about the same thing."""
        was_made_from_memory = reminder.source == self.memory.id
        was_made_from_merged = reminder.source in self.memory.merged
        if was_made_from_memory or was_made_from_merged:
            return self._still_asks_for(reminder)
        # A cheap check that spares reading the times of most memories.
        if not any(_may_be_same(reminder.subject, words) for _, words in self._paragraphs):
            return False
        for time in self._times_that_ask():
            subject = _subject(time.paragraph, time.phrase)
            if self._is_then(time, reminder) and _is_same(reminder.subject, subject):
                return True
        return False

    def _still_asks_for(self, reminder: _MadeReminder) -> bool:
        """Whether this memory still names the time of the reminder that was made from it."""
        if any(reminder.text == paragraph for paragraph, _ in self._paragraphs):
            return True
        sources = (self.memory.id, *self.memory.merged)
        for time in self._times_that_ask():
            ids = [reminder_id(source, time.phrase) for source in sources]
            if reminder.id in ids or self._is_then(time, reminder):
                return True
        return False

    def _times_that_ask(self) -> Iterator[TextTime]:
        """Yield the times that a dream or the owner may have made a reminder for."""
        for time in self._times:
            if time.doubt in ("", VAGUE_DAY):
                yield time

    def _is_then(self, time: TextTime, reminder: _MadeReminder) -> bool:
        """Whether a time is the time of a reminder, or repeats by the same rule."""
        if isinstance(time.outcome, TimeRefused):
            return False
        if time.outcome.repeat and time.outcome.repeat == reminder.reminder.repeat:
            return True
        return time.outcome.due == reminder.reminder.regular


def _may_be_same(subject: frozenset[str], words: frozenset[str]) -> bool:
    """Whether a paragraph may be about a subject, once the words of its time are left out.

    This is decided without reading the time. A yes may be wrong, a no is not.

    words: the words of the paragraph, its time included. A time has at most 16 words.
    """
    if subject:
        has_all_words = subject <= words
        if has_all_words:
            return True
        has_none = subject.isdisjoint(words)
        if has_none:
            return False
    # All words that the subject lacks may belong to the time
    return len(words - subject) <= _MOST_TIME_WORDS


def reminder_id(source: str, phrase: str) -> str:
    """Return the id of the reminder for a time. It depends on nothing but the two arguments.

    source: the id of the memory that names the time.
    phrase: the words of the time.
    """
    from uuid import NAMESPACE_URL, UUID, uuid5

    try:
        namespace = UUID(source)
    except ValueError:
        namespace = uuid5(NAMESPACE_URL, f"memory://categories/{source}")
    return str(uuid5(namespace, phrase))
