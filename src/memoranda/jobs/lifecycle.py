"""The four jobs of `memory consolidate`, expire, decay, upgrade, consolidate (contract 001, 5);
upgrading and archiving the memories somebody names; and the rounds of all upkeep that the daemon
does on its interval (13).
"""

from __future__ import annotations

import logging
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession
    from memoranda.index.rows import NoteInfo
    from memoranda.llm import Endpoint


def plan_expire(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Memories of the inbox whose `expires_at` is before `now` go to the archive, into the category
    they belong to.
    `careful`: except what the daemon leaves alone, and what belongs to a category of
    `daemon.keep`."""
    expired = [(memory, end) for memory, end in _ends(memories, settings, careful) if end < now]
    classifier = Classifier(settings, memories if expired else ())
    actions = []
    for memory, end in expired:
        category = category_of(memory, classifier)
        # Nothing is kept of a memory whose file is gone.
        if not careful or category not in settings.keep or "source_ref" in memory.header:
            actions.append(
                Action(
                    "expire", "expire", memory.id, f"expired {stamp(end)}", memory.path, category
                )
            )
    return actions


def _ends(
    memories: Sequence[MemoryState], settings: Settings, careful: bool
) -> Iterator[tuple[MemoryState, datetime]]:
    """The memories of the inbox that nobody keeps, and when they expire."""
    if careful:
        kept_until = kept_for_reminders(memories, settings)
    else:
        kept_until = {}
    for memory in memories:
        is_kept = memory.is_pinned or memory.is_kept_from("expire")
        if (
            memory.phase == INBOX
            and memory.expires
            and not (is_kept or (careful and _is_left_alone(memory, settings)))
        ):
            yield memory, max(memory.expires, kept_until.get(memory.id, memory.expires))


def plan_decay(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Plan to archive organized memories that were never read, and not used within
    `daemon.decay_threshold`.

    Exempt categories, pinned memories, and reminders that will fire or are pending stay.

    careful: whether memories also stay that the daemon leaves alone.
    """
    kept_until = kept_for_reminders(memories, settings, sources=careful)
    return [
        Action(
            "decay", "decay", memory.id, f"never read since {stamp(memory.created)}", memory.path
        )
        for memory in _unread(memories, settings)
        if _decays_after(memory, settings, kept_until) < now
        and not (careful and _is_left_alone(memory, settings))
    ]


def kept_for_reminders(
    memories: Sequence[MemoryState], settings: Settings, *, sources: bool = True
) -> dict[str, datetime]:
    """By ids, until when a reminder keeps memories from the archive: until it fires, and then as
    long as it is in the pending list. It keeps itself and, with `sources`, the memory of whose text
    it was made."""
    ends: dict[str, datetime] = {}
    for memory in memories:
        if memory.category == REMINDERS:
            reminder = Reminder.of(memory.header)
        else:
            reminder = Reminder()
        if reminder.is_waiting:
            due = reminder.due
        elif reminder.is_done:
            due = None
        else:
            due = reminder.fired
        if due is not None:
            with suppress(OverflowError):
                due += timedelta(days=settings.pending_days)
            source = memory.header.get("reminder_of")
            for id in (memory.id, source) if sources and isinstance(source, str) else (memory.id,):
                ends[id] = max(due, ends.get(id, due))
    return ends


def _is_left_alone(memory: MemoryState, settings: Settings) -> bool:
    """Whether the daemon keeps a memory however old it is (contract 001, 18.4).

    It does if the memory's category is one of `daemon.keep`, or if a person wrote it by hand. It
    also keeps a memory of another program's file as long as that file exists, and one that was read
    often enough to leave the inbox.
    """
    info = memory.info
    ref = memory.header.get("source_ref")
    root = memory.header.get("source_root")
    is_by_hand = (
        info is not None
        and info.source in ("manual", "file")
        and not info.provenance.who.startswith("agent:")
    )
    is_wanted = memory.phase == INBOX and memory.access_count >= settings.upgrade_access_threshold
    if memory.category in settings.keep or is_by_hand or is_wanted:
        return True
    if not (isinstance(ref, str) and isinstance(root, str) and os.path.isdir(root)):
        # The folder may be away for a while
        return isinstance(ref, str)
    path = ref.partition(":")[2]
    return any(
        os.path.lexists(os.path.join(root, spelling))
        for spelling in (path, unicodedata.normalize("NFD", path))
    )


def _decays_after(
    memory: MemoryState, settings: Settings, kept_until: Mapping[str, datetime]
) -> datetime:
    """When an unread memory is old: `daemon.decay_threshold` after it was written or shown by a
    search.
    """
    used = max(memory.created, memory.used or memory.created)
    try:
        return max(used + settings.decay_threshold, kept_until.get(memory.id, used))
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _unread(memories: Sequence[MemoryState], settings: Settings) -> Iterator[MemoryState]:
    for memory in memories:
        is_exempt = (
            memory.category in settings.decay_exempt
            or memory.is_pinned
            or memory.is_kept_from("decay")
        )
        if memory.phase == ORGANIZED and memory.access_count == 0 and not is_exempt:
            reminder = Reminder.of(memory.header)
            # A reminder whose time nobody can read stays, too: somebody who corrects it still wants
            # it.
            if memory.category != REMINDERS or not (
                reminder.is_waiting or reminder.unreadable is not None
            ):
                yield memory


def plan_upgrade(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Memories of the inbox read `daemon.upgrade_access_threshold` times or more are organized.
    `careful`: except those `memory review` asks the category of."""
    least = settings.upgrade_access_threshold
    chosen = [
        memory for memory in memories if memory.phase == INBOX and memory.access_count >= least
    ]
    classifier = Classifier(settings, memories if chosen else ())
    actions = []
    for chosen_memory in chosen:
        if chosen_memory.access_count == 1:
            why = "read once"
        else:
            why = f"read {chosen_memory.access_count} times"
        actions.append(
            organize("upgrade", "upgrade", chosen_memory, classifier, why, careful=careful)
        )
    return [action for action in actions if action is not None]


def plan_upgrade_of(
    memory: MemoryState,
    classifier: Classifier,
    category: str | None = None,
    set_by: str | None = None,
) -> Action | None:
    """The action of `memory upgrade ID`. None if the memory is already in place.

    category: the category to use; by default the classifier chooses.
    set_by: who asked for it.
    """
    if category is None:
        if memory.phase == INBOX:
            return organize("upgrade", "upgrade", memory, classifier, "asked for")
        return None
    if memory.phase != INBOX and memory.category == category:
        return None
    reason = f"asked for: {category}"
    return Action(
        "upgrade", "upgrade", memory.id, reason, memory.path, category=category, set_by=set_by
    )


def upgrade_named(
    memory: MemorySession,
    refs: Iterable[str],
    category: str | None = None,
    *,
    dry_run: bool = False,
) -> tuple[list[NoteInfo], list[Action | None], set[str]]:
    """Organize the memories that `refs` name for good, as one change.

    category: the category; by default the classifier chooses one by their words.

    Returns the memories afterwards, the action for each (None if nothing was to do), and the ids of
    those taken out of the archive.
    """
    upkeep = Upkeep(memory)
    classifier = _classifier(memory)
    if memory.agent is None:
        by = OWNER
    else:
        by = None

    def organized(infos: list[NoteInfo]) -> tuple[list[NoteInfo], list[Action | None], set[str]]:
        restored_ids = {info.id for info in infos if info.phase == ARCHIVED and not dry_run}
        infos = [
            memory.find(memory.bring_back(info, category)) if info.id in restored_ids else info
            for info in infos
        ]
        actions = [
            plan_upgrade_of(state, classifier, category, by) for state in states_of(memory, infos)
        ]
        return (infos if dry_run else organize_all(upkeep, infos, actions)), actions, restored_ids

    return upkeep.retried(refs, organized)


def archive_named(
    memory: MemorySession, refs: Iterable[str | NoteInfo], *, dry_run: bool = False
) -> list[NoteInfo]:
    """Archive memories, given by id, and notes of any project, each once, as one change. Returns
    them as they are then.
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
    """A classifier that knows the owner's corrections."""
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
"""The same as the daemon does them (contract 001, 18.4)."""


def decay(memory: MemorySession, *, dry_run: bool = False) -> list[Action]:
    """Let organized memories decay that are old and were never used. Returns the actions; raises
    what ended it.
    """
    outcome = Round(memory, dry_run=dry_run).run("decay", plan_decay)
    if outcome.error is not None:
        raise outcome.error
    return list(outcome.actions)


def next_due(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> datetime | None:
    """The moment when the daemon's jobs next have something to do. None means never.

    It is true if they have nothing to do `now`, and until a memory changes (see `Upkeep.state`).
    """
    kept_until = kept_for_reminders(memories, settings)
    moments = [end for _, end in _ends(memories, settings, careful=True) if end >= now]
    unread = [
        memory for memory in _unread(memories, settings) if not _is_left_alone(memory, settings)
    ]
    moments += [_decays_after(memory, settings, kept_until) for memory in unread]
    return min(moments, default=None)


def consolidate(memory: MemorySession, *, dry_run: bool = False) -> list[Outcome]:
    """Fold the counts of reads (not under a dry run), then expire, decay, upgrade, consolidate. One
    that fails does not stop the others."""
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
    """Do all upkeep once, as a night of the daemon does: what is sure, and nothing that `review`
    asks about. One job that fails does not stop the others.
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
"""Dream level, and for how long nothing but the daemon must have changed anything."""
# Seconds of one round for embedding, so that reminders are not late.
EMBED_SECONDS = 10.0
EMBED_BETWEEN = 3.0
"""How long embedding may take in a round, and each time between two rounds."""
_ALL = 1 << 30
_PURGED_EVERY = timedelta(hours=1)
_log = logging.getLogger("memoranda.daemon")

Step = tuple[str, Callable[[], int]]


class Scheduler:
    """The rounds over `memory`, which is the owner's and has face `daemon`. `endpoint` may help
    deep dreams. `stop` is asked between actions: when it says True, a round ends early."""

    def __init__(self, memory: MemorySession, endpoint: Endpoint | None = None):
        self.memory = memory
        self.endpoint = endpoint
        self.stop: Callable[[], bool] = lambda: False
        self._edited: datetime | None = None
        self._state: tuple[int, ...] = ()
        # Upkeep.state, and until when nothing is due.
        self._idle: tuple[tuple[int, ...], datetime | None] | None = None
        self._purged: datetime | None = None
        # The last change before the last dream, and its level.
        self._dreamt: tuple[datetime | None, int] | None = None
        # Whether passages may wait for their vectors.
        self._embeds = False
        self._trouble = ""

    def steps(self) -> list[Step]:
        """The steps of a round in their order: the name, and what to call for the number of items
        it processed.
        """
        # The steps that each machine does for itself.
        own_steps: list[Step] = [
            ("embed", partial(self._embed, EMBED_SECONDS)),
            ("memory.md", lambda: int(Overview(self.memory).refresh())),
        ]
        if not Upkeep(self.memory).runs_jobs():
            # Another machine does the rest for all.
            return [("sync", self._sync), *own_steps]
        turn = Round(self.memory, stop=self.stop)
        counts = [0]
        jobs = [
            (name, partial(self._job, turn, name, plan, counts)) for name, plan in ROUND.items()
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
        total = self.memory.sync().total
        if total:
            self._edited = self.memory.clock()
        return total

    def _notify(self) -> int:
        # For the daemon only, as is `dream` below.
        from memoranda.jobs import reminders

        notified = reminders.notify(self.memory)
        if notified.failure:
            _log.warning("%s", notified.failure)
        return len(notified.notified)

    def _purge_history(self) -> int:
        """Once an hour, because it reads the whole history."""
        now = self.memory.clock()
        if self._purged is not None and now - self._purged < _PURGED_EVERY:
            return 0
        self._purged = now
        return self.memory.purge_history()

    def _dream(self) -> int:
        from memoranda.jobs import dream

        level = self.level()
        if level == 0:
            return 0
        changed = self._last_change()
        endpoint = self.endpoint if level == dream.DEEP else None
        total = dream.run(self.memory, level, endpoint=endpoint, stop=self.stop, careful=True)
        self._dreamt = (changed, level)
        for outcome in total.outcomes:
            if outcome.error is not None:
                raise outcome.error
        return len(total.actions)

    def keep_up(self) -> None:
        """Between two rounds: `memory.md` shows what this process changed; embedding goes on.
        Raises StorageError.
        """
        Overview(self.memory).keep_up()
        if self._embeds:
            self._embed(EMBED_BETWEEN)

    def _embed(self, seconds: float) -> int:
        """A model that fails is reported once, and searching by words goes on."""
        embedded = 0
        trouble = ""
        try:
            embedded = Embedding(self.memory).some(seconds, stop=self.stop)
            if not embedded and not self.stop():
                embedded = learn(self.memory.settings)
        except MemorandaError as error:
            embedded = 0
            trouble = str(error)
        if trouble and trouble != self._trouble:
            _log.warning("[embed] %s", trouble)
        self._embeds = embedded > 0
        self._trouble = trouble
        return embedded

    def _job(self, turn: Round, name: str, plan: Plan, counts: list[int]) -> int:
        """Run one of the four jobs, and add its actions to `counts`.

        It is skipped if nothing has changed since the jobs had nothing to do, and no moment has
        come. The state is read before the first job looks, so texts written in the meantime count
        as changed.
        """
        if name == "expire":
            self._state = Upkeep(self.memory).state()
            state, until = self._idle or (self._state, None)
            if state != self._state or (until is not None and turn.now >= until):
                self._idle = None
        if self._idle is not None:
            return 0
        outcome = turn.run(name, plan)
        if outcome.error is not None:
            counts[0] += 1
            raise outcome.error
        counts[0] += len(outcome.actions) + outcome.skipped
        if name == "consolidate" and not counts[0] and not self.stop():
            self._idle = self._state, next_due(turn.memories, self.memory.settings, turn.now)
        return len(outcome.actions)

    def level(self) -> int:
        """The dream that is due now, 0 for none: each level comes once while nothing changes."""
        if not self.memory.settings.dream:
            return 0
        changed = self._last_change()
        if self._dreamt is not None and self._dreamt[0] == changed:
            last_dream = self._dreamt[1]
        else:
            last_dream = 0
        if changed is None:
            if last_dream:
                return 0
            return 1
        idle = self.memory.clock() - changed
        due = next((level for level, least in IDLE if idle >= least), 0)
        if due > last_dream:
            return due
        return 0

    def _last_change(self) -> datetime | None:
        """When anything but the daemon last changed something, even by hand. None if never."""
        return max(filter(None, (self.memory.last_change(FACE), self._edited)), default=None)
