"""The four jobs of `memory consolidate`: expire, decay, upgrade, consolidate. Source: contract 001, 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.clock import stamp
from commonplace.jobs.classify import Classifier
from commonplace.jobs.dedup import plan_duplicates
from commonplace.jobs.job import Action, MemoryState, Outcome, Plan, Round
from commonplace.note.model import INBOX, ORGANIZED
from commonplace.note.reminder import CATEGORY as REMINDERS
from commonplace.note.reminder import Reminder

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory


def plan_expire(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> list[Action]:
    """Memories of the inbox whose `expires_at` is before `now` go to the history."""
    return [
        Action("expire", "expire", each.id, f"expired {stamp(each.expires)}", each.path)
        for each in memories
        if each.phase == INBOX and each.expires is not None and each.expires < now
    ]


def plan_decay(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> list[Action]:
    """Organized memories older than `daemon.decay_threshold` that were never read go to the history, but for exempt
    categories and reminders still to fire."""
    return [
        Action("decay", "decay", each.id, f"never read since {stamp(each.created)}", each.path)
        for each in _unread(memories, settings)
        if now - each.created > settings.decay_threshold
    ]


def _unread(memories: Sequence[MemoryState], settings: Settings) -> Iterator[MemoryState]:
    """The memories that decay one day unless somebody reads them."""
    for each in memories:
        if each.phase == ORGANIZED and each.access_count == 0 and each.category not in settings.decay_exempt:
            reminder = Reminder.of(each.header)
            # A reminder whose time nobody can read stays, too: somebody who mends it still wants it.
            if each.category != REMINDERS or not (reminder.is_waiting or reminder.unreadable is not None):
                yield each


def plan_upgrade(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> list[Action]:
    """Memories of the inbox read `daemon.upgrade_access_threshold` times or more are organized."""
    chosen = [
        each for each in memories if each.phase == INBOX and each.access_count >= settings.upgrade_access_threshold
    ]
    classifier = Classifier(settings, memories if chosen else ())
    return [
        organize(
            "upgrade", "upgrade", each, classifier,
            "read once" if each.access_count == 1 else f"read {each.access_count} times",
        )
        for each in chosen
    ]  # fmt: skip


def plan_upgrade_of(
    memory: MemoryState, classifier: Classifier, category: str | None = None, set_by: str | None = None
) -> Action | None:
    """What `memory upgrade ID` does: into `category`, which `set_by` asked for, else where the classifier says; None
    when it is there already."""
    if category is None:
        return organize("upgrade", "upgrade", memory, classifier, "asked for") if memory.phase == INBOX else None
    if memory.phase != INBOX and memory.category == category:
        return None
    reason = f"asked for: {category}"
    return Action("upgrade", "upgrade", memory.id, reason, memory.path, category=category, set_by=set_by)


def organize(job: str, verb: str, memory: MemoryState, classifier: Classifier, why: str = "") -> Action:
    """The action that takes a memory out of the inbox: into the category it has, else where the classifier says."""
    category, reason = memory.category, memory.category
    words: tuple[str, ...] = ()
    if category == INBOX:
        choice = classifier.choose(memory)
        category, reason, words = choice.category, choice.reason, choice.words
    return Action(job, verb, memory.id, f"{why}: {reason}" if why else reason, memory.path, category, words)


JOBS: dict[str, Plan] = {
    "expire": plan_expire,
    "decay": plan_decay,
    "upgrade": plan_upgrade,
    "consolidate": lambda memories, settings, now: plan_duplicates(memories),
}
"""The four jobs in their order."""


def next_due(memories: Sequence[MemoryState], settings: Settings) -> datetime | None:
    """The moment after which the four jobs have something to do, if they have nothing to do now and no memory changes
    until then (`Upkeep.state` tells); None: never."""
    moments = [each.expires for each in memories if each.phase == INBOX and each.expires is not None]
    oldest = min((each.created for each in _unread(memories, settings)), default=None)
    try:
        moments += [oldest + settings.decay_threshold] if oldest is not None else []
    except OverflowError:
        pass
    return min(moments, default=None)


def consolidate(memory: Memory, *, dry_run: bool = False) -> list[Outcome]:
    """Fold the counts of reads (not under a dry run), then expire, decay, upgrade, consolidate.

    One that fails does not stop the others.
    """
    turn = Round(memory, dry_run=dry_run)
    if not dry_run:
        turn.upkeep.fold()
    return [turn.run(name, plan) for name, plan in JOBS.items()]
