"""Find the questions of `memory review`, and carry out the owner's answers.

The daemon does only what is sure, and leaves the rest to these questions.

Each kind of question is a `ReviewSource` (engine/review.py): one function that finds the questions,
and one that carries out an answer. The kinds are merging two memories, the category of a memory,
archiving memories that nobody reads, and reminders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from memoranda.engine.contents import contents
from memoranda.engine.review import ReviewBatch, ReviewItem, ReviewSource, SharedAnswer
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import NotFound
from memoranda.jobs.classify import FALLBACK, Classifier, one_line_of
from memoranda.jobs.dedup import pairs_to_ask
from memoranda.jobs.job import (
    MERGE,
    OWNER,
    Action,
    MemoryState,
    Round,
    apply,
    organize_all,
    states_of,
)
from memoranda.jobs.lifecycle import (
    archive_named,
    kept_for_reminders,
    plan_decay,
    plan_expire,
    plan_upgrade_of,
)
from memoranda.jobs.reminders import listed
from memoranda.jobs.text_reminders import outdated, plan_from_text
from memoranda.jobs.text_times import VAGUE_DAY
from memoranda.note.model import CATEGORY_PROJECT, INBOX
from memoranda.note.reminder import Reminder
from memoranda.sources.base import sha256

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession

_NO = ("n", "no")
# A time by which every memory that can expire has expired.
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def _mark(*memories: MemoryState) -> str:
    """Return a digest of texts for a question's key. If a text changes, the question is asked
    again.
    """
    joined_texts = "\0".join(memory.content for memory in memories)
    return sha256(joined_texts.encode("utf-8", "surrogatepass"))[:8]


def _carry_out(memory: MemorySession, action: Action) -> bool:
    """Carry out an action. Always returns True, because something was changed.

    Raises Conflict, Locked, and NotFound if the memory is gone.
    """
    infos = {memory_state.id: memory_state.info for memory_state in Round(memory).memories}
    if action.id not in infos and action.record is None:
        raise NotFound(action.id, CATEGORY_PROJECT)
    apply(Upkeep(memory), action, infos.get(action.id), infos.get(action.target or ""))
    return True


def _merges(memory: MemorySession) -> Iterator[ReviewItem]:
    """Yield questions about pairs of memories that seem to make the same statement."""
    memories = Round(memory).memories
    # A reminder repeats the text of the memory that it was made from, so it is not compared.
    memories_by_id = {
        memory_state.id: memory_state
        for memory_state in memories
        if not memory_state.header.get("reminder_of")
    }
    # The memories in open questions so far. A memory is in only one open question, since another
    # answer about it may depend on the first.
    ids_in_questions: set[str] = set()
    for pair in pairs_to_ask(list(memories_by_id.values())):
        first_memory = memories_by_id[pair.a]
        second_memory = memories_by_id[pair.b]
        key = f"merge:{pair.a}:{pair.b}:{_mark(first_memory, second_memory)}"
        is_open = memory.decision(key) is None
        # A question that was answered is yielded, too, but does not hold back other questions.
        if is_open:
            if pair.a in ids_in_questions or pair.b in ids_in_questions:
                continue
            ids_in_questions |= {pair.a, pair.b}
        first_text = one_line_of(first_memory.content)
        second_text = one_line_of(second_memory.content)
        text = f'Do these say the same? "{first_text}" and "{second_text}"'
        choices = (
            ("1", "keep the first, merge the second into it"),
            ("2", "keep the second, merge the first into it"),
            ("n", "keep both"),
        )
        refs = (pair.a, pair.b)
        yield ReviewItem(
            key=key, kind="merge", text=text, refs=refs, choices=choices, subject=first_text
        )


def _categories(memory: MemorySession) -> Iterator[ReviewItem]:
    """Yield questions about the category of memories in the inbox whose category is not sure.

    Memories that will expire need no category.
    """
    turn = Round(memory)
    expiries = plan_expire(turn.memories, memory.settings, _END_OF_TIME, careful=True)
    expiring_ids = {action.id for action in expiries}
    inbox = [
        state
        for state in turn.memories
        if state.phase == INBOX and state.category == INBOX and state.id not in expiring_ids
    ]
    # Learning from all memories takes time, so it is only done if it is needed
    classifier = Classifier(memory.settings, turn.memories if inbox else ())
    for state in inbox:
        choice = classifier.choose(state)
        if choice.is_sure:
            continue
        # The likely categories, as numbered answers.
        names = list(filter(None, dict.fromkeys((choice.category, choice.second, FALLBACK))))
        numbered_names = [(str(number), name) for number, name in enumerate(names, 1)]
        subject = one_line_of(state.content)
        yield ReviewItem(
            key=f"category:{state.id}:{_mark(state)}",
            kind="category",
            text=f'Which category has "{subject}"?',
            refs=(state.id,),
            choices=(*numbered_names, _NO_CATEGORY),
            lines=(f'"{subject}" -> {names[0]}',),
            subject=subject,
        )


_NO_CATEGORY = ("n", "leave it in the inbox")


def _categorize(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """Put a memory into the category that the owner chose. Returns whether one was chosen.

    item: the question.
    choice: the letter of the answer. `n` leaves the memory in the inbox.
    """
    if choice == "n":
        return False
    (state,) = states_of(memory, [memory.memory_id(item.refs[0])])
    action = plan_upgrade_of(state, Classifier(memory.settings), dict(item.choices)[choice], OWNER)
    if action is not None:
        apply(Upkeep(memory), action, state.info, None)
    return True


def _sort_all(memory: MemorySession, items: Sequence[ReviewItem]) -> None:
    """Put each memory into the first category that was proposed for it."""
    infos = [memory.memory_id(item.refs[0]) for item in items]
    states = states_of(memory, infos)
    classifier = Classifier(memory.settings)
    actions = []
    for state, item in zip(states, items, strict=True):
        _, first_category = item.choices[0]
        actions.append(plan_upgrade_of(state, classifier, first_category))
    organize_all(Upkeep(memory), infos, actions)


# How long nobody must have read or used a memory before the owner is asked. An unread memory does no
# harm, so this is long.
_LEAST_UNREAD_TIME = timedelta(days=365)


def _unused_notes(memory: MemorySession) -> Iterator[ReviewItem]:
    """Yield questions about archiving memories that nobody read for a year.

    The daemon archives sure cases unasked, and leaves memories with a coming reminder alone. Both
    are left out.
    """
    turn = Round(memory)
    settings = memory.settings
    memories_by_id = {memory_state.id: memory_state for memory_state in turn.memories}
    sure_actions = plan_decay(turn.memories, settings, turn.now, careful=True)
    sure_ids = {action.id for action in sure_actions}
    kept_until = kept_for_reminders(turn.memories, settings)
    # Ask only about memories that are unread for longer than the daemon waits
    threshold = max(_LEAST_UNREAD_TIME, settings.decay_threshold)
    patient_settings = replace(settings, decay_threshold=threshold)
    for action in plan_decay(turn.memories, patient_settings, turn.now):
        memory_state = memories_by_id[action.id]
        has_coming_reminder = kept_until.get(memory_state.id, turn.now) > turn.now
        is_kept = memory_state.category in settings.keep or has_coming_reminder
        if memory_state.id not in sure_ids and not is_kept:
            yield _question_of_archiving(memory_state, settings)


def _question_of_archiving(memory_state: MemoryState, settings: Settings) -> ReviewItem:
    """Return the question whether to archive a memory that nobody read."""
    since = f"{memory_state.created.astimezone(settings.reading_zone):%Y-%m-%d}"
    subject = one_line_of(memory_state.content)
    shown_memory = f'"{subject}" ({memory_state.category})'
    return ReviewItem(
        key=f"archive:{memory_state.id}:{_mark(memory_state)}",
        kind="archive",
        text=f"Archive {shown_memory}? It was never read since {since}",
        refs=(memory_state.id,),
        choices=(("y", "archive it"), ("n", "keep it")),
        lines=(f"{shown_memory}, {since}",),
        subject=subject,
    )


def _doubtful(memory: MemorySession) -> Iterable[tuple[ReviewItem, Action]]:
    """Yield questions about reminders for days such as "Friday", with the action for "yes"."""
    turn = Round(memory)
    for action in plan_from_text(turn.memories, memory.settings, turn.now, [], VAGUE_DAY):
        assert action.record is not None
        subject = one_line_of(action.record.content)
        text = f'Remind you of "{subject}"? {action.reason}'
        refs = (action.target or "",)
        choices = (("y", "remind me then"), _NO)
        key = f"reminder:{action.id}"
        due = Reminder.of(action.record.further).due
        item = ReviewItem(
            key=key,
            kind="reminder",
            text=text,
            refs=refs,
            choices=choices,
            subject=subject,
            due=due,
            phrase=action.phrase or "",
        )
        yield item, action


# How the key of a question about an outdated reminder begins.
_OUTDATED_PREFIX = "reminder:outdated:"


def _outdated(memory: MemorySession) -> Iterator[ReviewItem]:
    """Yield questions about reminders whose memory no longer asks for them.

    Without an answer such a reminder fires with a remark.
    """
    reminders_by_id = {info.id: (info, reminder) for info, reminder in listed(memory)}
    infos = [info for info, _ in reminders_by_id.values()]
    # The present text of the memory is None if the memory is gone.
    for id, present_text in outdated(memory, infos).items():
        info, reminder = reminders_by_id[id]
        when = ""
        if reminder.due:
            due = reminder.due.astimezone(memory.settings.reading_zone)
            when = f" on {due:%Y-%m-%d at %H:%M}"
        why = "is gone"
        if present_text is not None:
            why = f'says now "{one_line_of(present_text)}"'
        subject = one_line_of(contents(memory, [info])[0])
        text = f'Keep the reminder "{subject}"{when}? Its memory {why}'
        mark = sha256((present_text or "").encode("utf-8", "surrogatepass"))[:8]
        yield ReviewItem(
            key=f"{_OUTDATED_PREFIX}{id}:{mark}",
            kind="reminder",
            text=text,
            refs=(id,),
            choices=(("y", "keep it"), ("n", "delete it")),
            subject=subject,
            due=reminder.due,
        )


def _remind(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """Carry out an answer to a question about a reminder. Returns whether something was changed.

    item: the question.
    choice: the letter of the answer.

    Raises NotFound if the question is no longer open.
    """
    if item.key.startswith(_OUTDATED_PREFIX):
        return _settle_outdated(memory, item, choice)
    actions_by_key = {other_item.key: action for other_item, action in _doubtful(memory)}
    if item.key not in actions_by_key:
        raise NotFound(item.key, "the open questions")
    is_wanted = choice == "y"
    return is_wanted and _carry_out(memory, actions_by_key[item.key])


def _settle_outdated(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """Keep or delete a reminder whose memory no longer asks for it. Returns whether it was deleted.

    item: the question.
    choice: `y` keeps the reminder, `n` deletes it.

    Raises NotFound if the question is no longer open.
    """
    open_keys = {other_item.key for other_item in _outdated(memory)}
    if item.key not in open_keys:
        raise NotFound(item.key, "the open questions")
    is_unwanted = choice == "n"
    if is_unwanted:
        memory.delete(memory.memory_id(item.refs[0]))
    return is_unwanted


def _merge(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """Merge two memories as the owner chose. Returns whether they were merged.

    item: the question.
    choice: `1` keeps the first memory, `n` keeps both, another letter keeps the second.
    """
    if choice == "n":
        return False
    first, second = item.refs
    survivor, duplicate = (first, second) if choice == "1" else (second, first)
    action = Action(
        job="review", verb=MERGE, id=duplicate, reason="asked for", path="", target=survivor
    )
    return _carry_out(memory, action)


def _archive(memory: MemorySession, item: ReviewItem, choice: str) -> bool:
    """Archive a memory if the owner said so. Returns whether it was archived.

    item: the question.
    choice: `y` archives the memory.
    """
    if choice != "y":
        return False
    return _carry_out(memory, Action("review", "decay", item.refs[0], "asked for", path=""))


def _archive_all(memory: MemorySession, items: Sequence[ReviewItem]) -> None:
    """Archive the memory of each question."""
    archive_named(memory, [item.refs[0] for item in items])


def _reminder_questions(memory: MemorySession) -> Iterator[ReviewItem]:
    """Yield all questions about reminders."""
    yield from _outdated(memory)
    for item, _ in _doubtful(memory):
        yield item


MERGES = ReviewSource(_merges, _merge, shared=(SharedAnswer("n", "keep both of each"),))
CATEGORIES = ReviewSource(
    _categories,
    _categorize,
    ReviewBatch(
        "Sort these {} memories of the inbox as shown?",
        "sort them so",
        "leave them in the inbox",
        _sort_all,
    ),
)
ARCHIVES = ReviewSource(
    _unused_notes,
    _archive,
    ReviewBatch(
        "Archive these {} notes nobody read for a year?",
        "archive them",
        "keep them",
        _archive_all,
    ),
)
REMINDERS = ReviewSource(_reminder_questions, _remind)
