"""Plan the four jobs of `memory consolidate`, and run all upkeep of the daemon.

- *expire* archives memories whose time in the inbox is over,
- *decay* archives organized memories that nobody reads,
- *upgrade* takes memories out of the inbox that are read often,
- *consolidate* merges duplicates (contract 001, 5).

People may also upgrade and archive single memories here. `Scheduler` has the steps that the daemon
runs on its interval (contract 001, 13).
"""

from __future__ import annotations

import logging
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from memoranda.clock import stamp
from memoranda.engine.embedding import Embedding
from memoranda.engine.entries import NoteEntries
from memoranda.engine.overview import Overview
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import MemorandaError
from memoranda.jobs.classify import Classifier, category_of, learn, organize
from memoranda.jobs.dedup import plan_duplicates
from memoranda.jobs.job import (
    OWNER,
    SET_BY,
    Action,
    MemoryState,
    Outcome,
    Plan,
    Round,
    organize_all,
    states_of,
)
from memoranda.note.model import ARCHIVED, INBOX, MEMORY_PROJECTS, ORGANIZED, REMINDERS
from memoranda.note.reminder import Reminder
from memoranda.query import Query

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo
    from memoranda.llm import Endpoint


def plan_expire(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Plan to archive expired memories of the inbox, in the category they belong to.

    careful: whether to keep memories of a category in `daemon.keep`, memories written by hand, and
        memories that were read often, as the daemon does.
    """
    expired = [(memory, end) for memory, end in _expiring(memories, settings, careful) if end < now]
    # Learning from all memories takes time, so it is only done if it is needed
    classifier = Classifier(settings, memories if expired else ())
    actions = []
    for memory, end in expired:
        category = category_of(memory, classifier)
        # If a memory comes from a file of another program, the file is gone by now (`_expiring`). Such
        # a memory does not stay.
        is_from_file = "source_ref" in memory.header
        is_kept = careful and category in settings.keep and not is_from_file
        if not is_kept:
            reason = f"expired {stamp(end)}"
            actions.append(
                Action(
                    job="expire",
                    verb="expire",
                    id=memory.id,
                    reason=reason,
                    path=memory.path,
                    category=category,
                )
            )
    return actions


def _expiring(
    memories: Sequence[MemoryState], settings: Settings, careful: bool
) -> Iterator[tuple[MemoryState, datetime]]:
    """Yield the memories of the inbox that will expire, each with the time.

    Pinned memories, and those whose expiring a person undid, do not expire.

    careful: whether to leave out memories written by hand, which the daemon leaves alone, and to
        keep a memory until its reminder is over.
    """
    kept_until = kept_for_reminders(memories, settings) if careful else {}
    for memory in memories:
        if memory.phase != INBOX or not memory.expires:
            continue
        if memory.is_pinned or memory.is_kept_from("expire"):
            continue
        if careful and _is_left_alone(memory, settings):
            continue
        end = memory.expires
        if memory.id in kept_until:
            end = max(end, kept_until[memory.id])
        yield memory, end


def ends_in_inbox(memory: MemorySession, infos: Iterable[NoteInfo]) -> dict[int, datetime]:
    """Return when the daemon will archive memories of the inbox, by their rows in the index.

    Memories that it leaves alone are missing.
    """
    ending = [info for info in infos if info.phase == INBOX and info.expires]
    if not ending:
        return {}
    # A reminder that was made from a memory keeps it longer.
    reminders, _ = memory.list(Query(category=REMINDERS, projects=MEMORY_PROJECTS), limit=0)
    states = states_of(memory, [*ending, *reminders])
    ends = _expiring(states, memory.settings, careful=True)
    return {state.info.row: end for state, end in ends if state.info is not None}


def plan_decay(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Plan to archive organized memories that were never read, and not used for a long time.

    The time is `daemon.decay_threshold`. Exempt categories, pinned memories, and reminders that will
    fire or are pending stay.

    careful: whether to keep memories of a category in `daemon.keep`, and memories written by hand,
        as the daemon does.
    """
    kept_until = kept_for_reminders(memories, settings, sources=careful)
    actions = []
    for memory in _decaying(memories, settings):
        if _decays_after(memory, settings, kept_until) >= now:
            continue
        if careful and _is_left_alone(memory, settings):
            continue
        reason = f"never read since {stamp(memory.created)}"
        actions.append(
            Action(job="decay", verb="decay", id=memory.id, reason=reason, path=memory.path)
        )
    return actions


def kept_for_reminders(
    memories: Sequence[MemoryState], settings: Settings, *, sources: bool = True
) -> dict[str, datetime]:
    """Return until when a reminder keeps memories out of the archive, by the ids of the memories.

    A reminder stays until it fires, and for `Settings.pending_days` after that. A reminder that
    somebody acknowledged, or that never fires, keeps nothing.

    sources: whether the memory from whose text a reminder was made stays as long.
    """
    ends: dict[str, datetime] = {}
    for memory in memories:
        if memory.category != REMINDERS:
            continue
        end = _time_of_firing(Reminder.of(memory.header))
        if end is None:
            continue
        # A time in the year 9999 cannot become later.
        with suppress(OverflowError):
            end += timedelta(days=settings.pending_days)
        kept_ids = [memory.id]
        source = memory.header.get("reminder_of")
        if sources and isinstance(source, str):
            kept_ids.append(source)
        for id in kept_ids:
            # The reminder that ends last counts.
            ends[id] = max(end, ends.get(id, end))
    return ends


def _time_of_firing(reminder: Reminder) -> datetime | None:
    """Return when a reminder will fire, or has fired. None if it is done or never does."""
    if reminder.is_waiting:
        return reminder.due
    if reminder.is_done:
        return None
    return reminder.fired


def _is_left_alone(memory: MemoryState, settings: Settings) -> bool:
    """Whether the daemon keeps a memory, however old the memory is (contract 001, 18.4).

    It keeps memories of a category in `daemon.keep`, memories that a person wrote by hand, and
    memories that were read often enough to leave the inbox. A memory of another program's file is
    kept as long as the file exists.
    """
    info = memory.info
    is_by_hand = (
        info is not None and info.source in ("manual", "file") and info.provenance.agent is None
    )
    is_read_often = (
        memory.phase == INBOX and memory.access_count >= settings.upgrade_access_threshold
    )
    if memory.category in settings.keep or is_by_hand or is_read_often:
        return True
    return _may_have_source_file(memory)


def _may_have_source_file(memory: MemoryState) -> bool:
    """Whether a memory comes from a file of another program that may still exist."""
    ref = memory.header.get("source_ref")
    root = memory.header.get("source_root")
    if not isinstance(ref, str):
        return False
    if not (isinstance(root, str) and os.path.isdir(root)):
        # A missing folder may be on a disk that comes back, so its memories are kept.
        return True
    # macOS may have stored the name with its accents as separate characters (NFD).
    path = ref.partition(":")[2]
    spellings = (path, unicodedata.normalize("NFD", path))
    return any(os.path.lexists(os.path.join(root, spelling)) for spelling in spellings)


def _decays_after(
    memory: MemoryState, settings: Settings, kept_until: Mapping[str, datetime]
) -> datetime:
    """Return when an unread memory goes to the archive.

    This is `daemon.decay_threshold` after it was written or last shown by a search.

    kept_until: until when a reminder keeps a memory out of the archive, by the memory's id.
    """
    last_use = max(memory.created, memory.used or memory.created)
    try:
        return max(last_use + settings.decay_threshold, kept_until.get(memory.id, last_use))
    except OverflowError:
        # The threshold is so long that the memory never decays.
        return datetime.max.replace(tzinfo=UTC)


def _decaying(memories: Sequence[MemoryState], settings: Settings) -> Iterator[MemoryState]:
    """Yield the organized memories that were never read and that nothing keeps from decaying.

    The daemon also spares those that `_is_left_alone` names.
    """
    for memory in memories:
        is_unread = memory.phase == ORGANIZED and memory.access_count == 0
        if not is_unread:
            continue
        is_exempt = memory.category in settings.decay_exempt or memory.is_pinned
        if is_exempt or memory.is_kept_from("decay"):
            continue
        if memory.category == REMINDERS:
            reminder = Reminder.of(memory.header)
            # A reminder with an unreadable time stays, so that somebody can correct it.
            if reminder.is_waiting or reminder.unreadable is not None:
                continue
        yield memory


def plan_upgrade(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Plan to organize memories of the inbox that were read often enough to be of use.

    They were read `daemon.upgrade_access_threshold` times or more.

    careful: whether to leave out memories whose category is not sure. `memory review` asks for it.
    """
    least_reads = settings.upgrade_access_threshold
    often_read = [
        memory
        for memory in memories
        if memory.phase == INBOX and memory.access_count >= least_reads
    ]
    # Learning from all memories takes time, so it is only done if it is needed.
    classifier = Classifier(settings, memories if often_read else ())
    actions = []
    for memory in often_read:
        why = "read once" if memory.access_count == 1 else f"read {memory.access_count} times"
        actions.append(organize("upgrade", "upgrade", memory, classifier, why, careful=careful))
    return [action for action in actions if action is not None]


def plan_upgrade_of(
    memory: MemoryState,
    classifier: Classifier,
    category: str | None = None,
    set_by: str | None = None,
) -> Action | None:
    """Plan `memory upgrade ID`. None if the memory is organized in this category already.

    category: the category to use. None lets the classifier choose for a memory in the
        inbox, and changes nothing for others.
    set_by: who chose the category by hand, as the header will say. None if the classifier chose it.
    """
    if category is None:
        if memory.phase == INBOX:
            return organize("upgrade", "upgrade", memory, classifier, "asked for")
        return None
    if memory.phase != INBOX and memory.category == category:
        return None
    reason = f"asked for: {category}"
    return Action(
        job="upgrade",
        verb="upgrade",
        id=memory.id,
        reason=reason,
        path=memory.path,
        category=category,
        set_by=set_by,
    )


class Upgraded(NamedTuple):
    """The memories that a call organized.

    infos: their index entries afterwards.
    actions: the action for each of them. None if nothing was to do.
    restored_ids: the ids of those that were in the archive.
    """

    infos: list[NoteInfo]
    actions: list[Action | None]
    restored_ids: set[str]


def upgrade_named(
    memory: MemorySession,
    refs: Iterable[str],
    category: str | None = None,
    *,
    dry_run: bool = False,
) -> Upgraded:
    """Organize the memories that `refs` name, as one change. Archived memories are restored first.

    category: the category to use. None lets the classifier choose.
    dry_run: whether to change nothing, and only plan the actions.
    """
    upkeep = Upkeep(memory)
    classifier = _classifier(memory)
    # The classifier learns from the categories that the owner chooses, but not from those of agents.
    set_by = OWNER if memory.agent is None else None

    def out_of_archive(info: NoteInfo) -> NoteInfo:
        """Restore a memory if it is archived. Returns its index entry afterwards."""
        if info.phase != ARCHIVED or dry_run:
            return info
        return memory.find(memory.bring_back(info, category))

    def organized(infos: list[NoteInfo]) -> Upgraded:
        """Organize the memories as they are now.

        `retried` calls this again if somebody changes one of them meanwhile.
        """
        restored_ids = {info.id for info in infos if info.phase == ARCHIVED and not dry_run}
        present_infos = list(map(out_of_archive, infos))
        states = states_of(memory, present_infos)
        actions = [plan_upgrade_of(state, classifier, category, set_by) for state in states]
        if not dry_run:
            present_infos = organize_all(upkeep, present_infos, actions)
        return Upgraded(present_infos, actions, restored_ids)

    return upkeep.retried(refs, organized)


def archive_named(
    memory: MemorySession, refs: Iterable[str | NoteInfo], *, dry_run: bool = False
) -> list[NoteInfo]:
    """Archive memories and notes as one change, and return their new index entries.

    refs: ids of memories, or index entries of notes of any project. Repetitions do not matter.
    dry_run: whether to change nothing.
    """
    named_infos = [memory.memory_id(ref) if isinstance(ref, str) else ref for ref in refs]
    infos = list({info.row: info for info in named_infos}.values())
    memories = [info for info in infos if info.project in MEMORY_PROJECTS]
    classifier = _classifier(memory)
    categories = {state.id: category_of(state, classifier) for state in states_of(memory, memories)}
    if dry_run:
        return infos
    return Upkeep(memory).archive_all(infos, categories)


def _classifier(memory: MemorySession) -> Classifier:
    """Return a classifier that knows the owner's corrections."""
    corrected = [
        memory_state for memory_state in Upkeep(memory).every() if memory_state.may_say((SET_BY,))
    ]
    return Classifier(memory.settings, states_of(memory, corrected))


_SORTING = {"expire": plan_expire, "decay": plan_decay, "upgrade": plan_upgrade}
JOBS: dict[str, Plan] = {
    **_SORTING,
    "consolidate": lambda memories, settings, now: plan_duplicates(memories),
}
"""The four jobs in their order."""
ROUND = JOBS | {name: partial(plan, careful=True) for name, plan in _SORTING.items()}
"""The four jobs as the daemon does them: careful, see above (contract 001, 18.4)."""


def decay(memory: MemorySession, *, dry_run: bool = False) -> list[Action]:
    """Archive organized memories that are old and were never used. Returns the actions.

    dry_run: whether to change nothing, and only plan the actions.

    Raises the error that ended the job.
    """
    outcome = Round(memory, dry_run=dry_run).run("decay", plan_decay)
    if outcome.error is not None:
        raise outcome.error
    return list(outcome.actions)


def next_due(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> datetime | None:
    """Return when the daemon's jobs next have something to do. None means never.

    The answer is right only if the jobs have nothing to do at `now`, and only until a memory
    changes or is read.
    """
    kept_until = kept_for_reminders(memories, settings)
    moments = [end for _, end in _expiring(memories, settings, careful=True) if end >= now]
    decaying = [
        memory for memory in _decaying(memories, settings) if not _is_left_alone(memory, settings)
    ]
    moments += [_decays_after(memory, settings, kept_until) for memory in decaying]
    return min(moments, default=None)


def consolidate(memory: MemorySession, *, dry_run: bool = False) -> list[Outcome]:
    """Run the four jobs, after storing the counts of reads in the memories.

    A job that fails does not stop the others. Under a dry run nothing is changed.

    dry_run: whether to change nothing, and only plan the actions.
    """
    turn = Round(memory, dry_run=dry_run)
    if not dry_run:
        turn.upkeep.fold()
    return [turn.run(name, plan) for name, plan in JOBS.items()]


def tidy(
    memory: MemorySession,
    *,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Do all upkeep once, as the daemon does in a night.

    Actions that `memory review` asks about are left out. A job that fails does not stop the others.

    dry_run: whether to change nothing, and only plan the actions.
    progress: called with the number of an action, and the number of all actions of its job. None
        calls nothing.

    Returns the outcome of each job.
    """
    from memoranda.jobs import dream

    turn = Round(memory, dry_run=dry_run)
    if not dry_run:
        turn.upkeep.fold()
    outcomes = [turn.run(name, plan) for name, plan in ROUND.items()]
    endpoint = dream.endpoint_of(memory.settings)
    dream_outcome = dream.run(
        memory,
        dream.DEEP,
        dry_run=dry_run,
        endpoint=endpoint,
        careful=True,
        progress=progress,
    )
    return [*outcomes, *dream_outcome.outcomes]


FACE = "daemon"
"""The face whose changes do not count as activity: they do not reset the idle time."""
IDLE = ((3, timedelta(hours=2)), (2, timedelta(minutes=30)), (1, timedelta(minutes=5)))
"""Each dream level, and how long nobody but the daemon must have changed anything before it."""
EMBED_SECONDS = 10.0
"""Seconds that embedding may take in one round. A longer time would delay reminders."""
EMBED_BETWEEN = 3.0
"""Seconds that embedding may take each time between two rounds."""
# A number of entries that is never reached.
_ALL = 1 << 30
_PURGED_EVERY = timedelta(hours=1)
_log = logging.getLogger("memoranda.daemon")

Step = tuple[str, Callable[[], int]]
"""The name of a step of a round, and the function that does it and returns how many items changed."""


# The first and the last of the four jobs in a round.
_FIRST_JOB = next(iter(ROUND))
_LAST_JOB = next(reversed(ROUND))


class _Idle(NamedTuple):
    """A time when the four jobs have nothing to do, and are skipped.

    state: it ends when `Upkeep.state` is no longer this state.
    until: it also ends then, because a memory is due; None for never.
    """

    state: tuple[int, ...]
    until: datetime | None

    def is_over(self, state: tuple[int, ...], now: datetime) -> bool:
        """Whether the jobs must look again.

        state: `Upkeep.state` now.
        """
        is_due = self.until is not None and now >= self.until
        return is_due or state != self.state


@dataclass(slots=True)
class _FindingCount:
    """How many actions the four jobs of a round found, and how many of the jobs failed."""

    number: int = 0


class Scheduler:
    """Runs rounds of upkeep over the owner's `memory`, whose face is `daemon`.

    endpoint: a language model that may help deep dreams.
    stop: is called between actions; if it returns True, the round ends early.
    """

    def __init__(self, memory: MemorySession, endpoint: Endpoint | None = None):
        self.memory = memory
        self.endpoint = endpoint
        self.stop: Callable[[], bool] = lambda: False
        # When a round last found files that somebody changed by hand.
        self._edited: datetime | None = None
        # `Upkeep.state` at the beginning of the present round.
        self._state: tuple[int, ...] = ()
        # Set while the jobs have nothing to do.
        self._idle: _Idle | None = None
        # When the history was last purged.
        self._purged: datetime | None = None
        # The time of the last change before the last dream, and the dream's level.
        self._dreamt: tuple[datetime | None, int] | None = None
        # Whether passages may wait for their vectors.
        self._may_embed_more = False
        # The last error of the model, so that it is logged once.
        self._trouble = ""

    def steps(self) -> list[Step]:
        """Return the steps of a round in their order."""
        # The steps that each machine does for its own copy.
        own_steps: list[Step] = [
            ("embed", partial(self._embed, EMBED_SECONDS)),
            ("memory.md", lambda: int(Overview(self.memory).refresh())),
        ]
        if not Upkeep(self.memory).runs_jobs():
            # Another machine does the rest for all.
            return [("sync", self._sync), *own_steps]
        turn = Round(self.memory, stop=self.stop)
        # All jobs of the round share it.
        findings = _FindingCount()
        jobs = [
            (name, partial(self._job, turn, name, plan, findings)) for name, plan in ROUND.items()
        ]
        return [
            ("sync", self._sync),
            ("fold", Upkeep(self.memory).fold),
            *jobs,
            ("notify", self._notify),
            ("purge", partial(NoteEntries(self.memory).purge, _ALL)),
            ("history", self._purge_history),
            ("dream", self._dream),
            *own_steps,
        ]

    def _sync(self) -> int:
        """Bring the index up to date with the files, and record when somebody changed them."""
        total = self.memory.sync().total
        if total:
            self._edited = self.memory.clock()
        return total

    def _notify(self) -> int:
        """Fire the due reminders. Returns their number."""
        # Imported late, since only the daemon needs it. The same is true of `dream` below.
        from memoranda.jobs import reminders

        notified = reminders.notify(self.memory)
        if notified.failure:
            _log.warning("%s", notified.failure)
        return len(notified.notified)

    def _purge_history(self) -> int:
        """Remove old history. This is done once an hour, because it reads the whole history."""
        now = self.memory.clock()
        if self._purged is not None and now - self._purged < _PURGED_EVERY:
            return 0
        self._purged = now
        return self.memory.purge_history()

    def _dream(self) -> int:
        """Carry out the dream that is due, if any. Returns the number of its actions."""
        from memoranda.jobs import dream

        level = self.level()
        if level == 0:
            return 0
        changed = self._last_change()
        endpoint = self.endpoint if level == dream.DEEP else None
        result = dream.run(self.memory, level, endpoint=endpoint, stop=self.stop, careful=True)
        self._dreamt = (changed, level)
        for outcome in result.outcomes:
            if outcome.error is not None:
                raise outcome.error
        return len(result.actions)

    def keep_up(self) -> None:
        """Do the work between two rounds: update `memory.md`, and go on embedding.

        Raises StorageError.
        """
        Overview(self.memory).keep_up()
        if self._may_embed_more:
            self._embed(EMBED_BETWEEN)

    def _embed(self, seconds: float) -> int:
        """Compute missing vectors of texts. Returns their number.

        The passages of the notes come first, then the examples by which notes are classified.

        If the model fails, the result is 0. The reason is logged once and not raised, since
        searching by words still works.

        seconds: about how long to work on the passages.
        """
        embedded_count = 0
        trouble = ""
        try:
            embedded_count = Embedding(self.memory).embed_some(seconds, stop=self.stop)
            if not embedded_count and not self.stop():
                embedded_count = learn(self.memory.settings)
        except MemorandaError as error:
            trouble = str(error)
        # The same trouble may return with every round, so only a new one is logged.
        if trouble and trouble != self._trouble:
            _log.warning("[embed] %s", trouble)
        self._may_embed_more = embedded_count > 0
        self._trouble = trouble
        return embedded_count

    def _job(self, turn: Round, name: str, plan: Plan, findings: _FindingCount) -> int:
        """Run one of the four jobs, unless there is nothing to do. Returns the number of actions.

        There is nothing to do if the jobs found nothing in an earlier round, no memory has changed
        since, and no memory is due yet.

        findings: what the earlier jobs of the round found. The job adds its actions. If nothing was
            found after the last job, the jobs are skipped in the next rounds.

        Raises the error that ended the job.
        """
        if name == _FIRST_JOB:
            self._end_idleness(turn)
        if self._idle is not None:
            return 0
        outcome = turn.run(name, plan)
        if outcome.error is not None:
            # A failed job must be tried again in the next round.
            findings.number += 1
            raise outcome.error
        findings.number += len(outcome.actions) + outcome.skipped
        has_found_nothing = name == _LAST_JOB and findings.number == 0
        # A stopped round has not looked at everything
        if has_found_nothing and not self.stop():
            due = next_due(turn.memories, self.memory.settings, turn.now)
            self._idle = _Idle(self._state, due)
        return len(outcome.actions)

    def _end_idleness(self, turn: Round) -> None:
        """Let the jobs run again if a memory has changed since they found nothing, or is due."""
        # Read before the jobs look, so that a text written in the meantime counts as a change.
        self._state = Upkeep(self.memory).state()
        if self._idle is not None and self._idle.is_over(self._state, turn.now):
            self._idle = None

    def level(self) -> int:
        """Return the level of the dream that is due now. 0 means none.

        While nothing changes, each level comes once: 1 after five minutes, 2 after half an hour, 3
        after two hours (`IDLE`). After a change, they come again.
        """
        if not self.memory.settings.dream:
            return 0
        changed = self._last_change()
        # The level of the last dream, if nothing has changed since
        last_level = 0
        if self._dreamt is not None and self._dreamt[0] == changed:
            last_level = self._dreamt[1]
        if changed is None:
            # Nobody has ever changed anything, so one light dream is enough.
            return 0 if last_level else 1
        idle_time = self.memory.clock() - changed
        due_levels = [level for level, least_time in IDLE if idle_time >= least_time]
        due_level = max(due_levels, default=0)
        return due_level if due_level > last_level else 0

    def _last_change(self) -> datetime | None:
        """Return when anybody but the daemon last changed something, even by hand. None if never."""
        moments = (self.memory.last_change(FACE), self._edited)
        return max((moment for moment in moments if moment is not None), default=None)
