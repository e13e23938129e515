"""The four jobs of `memory consolidate`: expire, decay, upgrade, consolidate. Source: contract 001, 5."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from commonplace.clock import stamp
from commonplace.engine.upkeep import Upkeep
from commonplace.jobs.classify import Classifier
from commonplace.jobs.dedup import plan_duplicates
from commonplace.jobs.job import OWNER, SET_BY, Action, MemoryState, Outcome, Plan, Round, organize_all, states_of
from commonplace.note.model import ARCHIVED, INBOX, ORGANIZED
from commonplace.note.reminder import CATEGORY as REMINDERS
from commonplace.note.reminder import Reminder

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo


def plan_expire(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Memories of the inbox whose `expires_at` is before `now` go to the archive, into the category they belong to.
    `careful`: but for what the daemon leaves alone."""
    return [
        Action("expire", "expire", each.id, f"expired {stamp(at)}", each.path, category)
        for each, at, category in expiring(memories, settings, now, careful=careful)
    ]


def expiring(
    memories: Sequence[MemoryState], settings: Settings, now: datetime | None = None, *, careful: bool = True
) -> list[tuple[MemoryState, datetime, str]]:
    """The memories of the inbox that go to the archive, before `now` if given, when, and the category they belong to.
    `careful`: not what the daemon leaves alone, nor what belongs to a category of `daemon.keep`."""
    found = [(each, at) for each, at in _ends(memories, settings, careful) if now is None or at < now]
    classifier = Classifier(settings, memories if found else ())
    rows = [(each, at, _category(each, classifier)) for each, at in found]
    # Of what was made from a file that is gone nothing is kept.
    return [row for row in rows if not careful or row[2] not in settings.keep or "source_ref" in row[0].header]


def _ends(memories: Sequence[MemoryState], settings: Settings, careful: bool) -> Iterator[tuple[MemoryState, datetime]]:
    """The memories of the inbox that nobody keeps, and when they expire."""
    kept = kept_for_reminders(memories, settings) if careful else {}
    for each in memories:
        is_kept = each.is_pinned or each.is_kept_from("expire")
        if each.phase == INBOX and each.expires and not (is_kept or (careful and _is_left_alone(each, settings))):
            yield each, max(each.expires, kept.get(each.id, each.expires))


def plan_decay(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Organized memories that were never read, and not used within `daemon.decay_threshold`, go to the archive, but for
    exempt categories, pinned ones and reminders still to fire or pending. `careful`: but for what the daemon leaves
    alone."""
    kept = kept_for_reminders(memories, settings, sources=careful)
    return [
        Action("decay", "decay", each.id, f"never read since {stamp(each.created)}", each.path)
        for each in _unread(memories, settings)
        if _decays_after(each, settings, kept) < now and not (careful and _is_left_alone(each, settings))
    ]


def kept_for_reminders(
    memories: Sequence[MemoryState], settings: Settings, *, sources: bool = True
) -> dict[str, datetime]:
    """By ids, until when a reminder keeps memories from the archive: until it fires, and then as long as it is in the
    pending list. It keeps itself and, with `sources`, the memory of whose text it was made."""
    ends: dict[str, datetime] = {}
    for each in memories:
        reminder = Reminder.of(each.header) if each.category == REMINDERS else Reminder()
        at = reminder.due if reminder.is_waiting else None if reminder.is_done else reminder.fired
        if at is not None:
            with suppress(OverflowError):
                at += timedelta(days=settings.pending_days)
            source = each.header.get("reminder_of")
            for id in (each.id, source) if sources and isinstance(source, str) else (each.id,):
                ends[id] = max(at, ends.get(id, at))
    return ends


def _is_left_alone(memory: MemoryState, settings: Settings) -> bool:
    """Whether the daemon lets it be, however old: its category is one of `daemon.keep`, a person wrote it by hand, it
    was made from another program's file that is still there, as far as one can see (contract 001, 18.4), or it was read
    so often that it would have left the inbox, were its category sure."""
    info, ref, root = memory.info, memory.header.get("source_ref"), memory.header.get("source_root")
    is_by_hand = info is not None and info.source in ("manual", "file") and not info.provenance.who.startswith("agent:")
    if memory.category in settings.keep or is_by_hand or _is_wanted(memory, settings):
        return True
    if not (isinstance(ref, str) and isinstance(root, str) and os.path.isdir(root)):
        return isinstance(ref, str)  # the folder may be away for a while
    path = ref.partition(":")[2]
    return any(os.path.lexists(os.path.join(root, each)) for each in (path, unicodedata.normalize("NFD", path)))


def _is_wanted(memory: MemoryState, settings: Settings) -> bool:
    return memory.phase == INBOX and memory.access_count >= settings.upgrade_access_threshold


def _decays_after(memory: MemoryState, settings: Settings, kept: Mapping[str, datetime]) -> datetime:
    """When an unread memory is old: `daemon.decay_threshold` after it was written or shown by a search."""
    used = max(memory.created, memory.used or memory.created)
    try:
        return max(used + settings.decay_threshold, kept.get(memory.id, used))
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _unread(memories: Sequence[MemoryState], settings: Settings) -> Iterator[MemoryState]:
    for each in memories:
        is_exempt = each.category in settings.decay_exempt or each.is_pinned or each.is_kept_from("decay")
        if each.phase == ORGANIZED and each.access_count == 0 and not is_exempt:
            reminder = Reminder.of(each.header)
            # A reminder whose time nobody can read stays, too: somebody who mends it still wants it.
            if each.category != REMINDERS or not (reminder.is_waiting or reminder.unreadable is not None):
                yield each


def plan_upgrade(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, *, careful: bool = False
) -> list[Action]:
    """Memories of the inbox read `daemon.upgrade_access_threshold` times or more are organized. `careful`: but for
    those `memory review` asks the category of."""
    chosen = [each for each in memories if _is_wanted(each, settings)]
    classifier = Classifier(settings, memories if chosen else ())
    actions = []
    for each in chosen:
        if not careful or each.category != INBOX or classifier.choose(each).is_sure:
            why = "read once" if each.access_count == 1 else f"read {each.access_count} times"
            actions.append(organize("upgrade", "upgrade", each, classifier, why))
    return actions


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


def upgrade_named(
    memory: Memory, refs: Iterable[str], category: str | None = None, *, dry_run: bool = False
) -> tuple[list[NoteInfo], list[Action | None], set[str]]:
    """Organize the memories `refs` name into `category` [by their words], for good, as one change. Returns them as they
    are then, what was done with each, and the ids of those that came back from the archive."""
    upkeep = Upkeep(memory)
    classifier = _classifier(memory)
    by = OWNER if memory.agent is None else None

    def organized(infos: list[NoteInfo]) -> tuple[list[NoteInfo], list[Action | None], set[str]]:
        back = {each.id for each in infos if each.phase == ARCHIVED and not dry_run}
        infos = [memory.find_ref(memory.bring_back(each, category)) if each.id in back else each for each in infos]
        actions = [plan_upgrade_of(each, classifier, category, by) for each in states_of(memory, infos)]
        return (infos if dry_run else organize_all(upkeep, infos, actions)), actions, back

    return upkeep.retried(refs, organized)


def archive_named(memory: Memory, refs: Iterable[str], *, dry_run: bool = False) -> list[NoteInfo]:
    """Archive the memories `refs` name, each once, as one change. Returns them as they are then."""
    infos = list({info.id: info for info in map(memory.memory_id, refs)}.values())
    classifier = _classifier(memory)
    categories = {each.id: _category(each, classifier) for each in states_of(memory, infos)}
    return infos if dry_run else Upkeep(memory).archive_all(infos, categories)


def _classifier(memory: Memory) -> Classifier:
    """What knows the owner's corrections."""
    corrected = [each for each in Upkeep(memory).every() if each.may_say((SET_BY,))]
    return Classifier(memory.settings, states_of(memory, corrected))


def organize(job: str, verb: str, memory: MemoryState, classifier: Classifier, why: str = "") -> Action:
    """The action that takes a memory out of the inbox: into the category it has, else where the classifier says."""
    category, reason = memory.category, memory.category
    words: tuple[str, ...] = ()
    if category == INBOX:
        choice = classifier.choose(memory)
        category, reason, words = choice.category, choice.reason, choice.words
    return Action(job, verb, memory.id, f"{why}: {reason}" if why else reason, memory.path, category, words)


def _category(memory: MemoryState, classifier: Classifier) -> str:
    return classifier.choose(memory).category if memory.category == INBOX else memory.category


_SORTING = {"expire": plan_expire, "decay": plan_decay, "upgrade": plan_upgrade}
JOBS: dict[str, Plan] = {**_SORTING, "consolidate": lambda memories, settings, now: plan_duplicates(memories)}
"""The four jobs in their order."""
ROUND = JOBS | {name: partial(plan, careful=True) for name, plan in _SORTING.items()}
"""The same as the daemon does them (contract 001, 18.4)."""


def decay(memory: Memory, *, dry_run: bool = False) -> list[Action]:
    """Let organized memories decay that are old and were never used. Returns the actions; raises what ended it."""
    outcome = Round(memory, dry_run=dry_run).run("decay", plan_decay)
    if outcome.error is not None:
        raise outcome.error
    return list(outcome.actions)


def next_due(memories: Sequence[MemoryState], settings: Settings, now: datetime) -> datetime | None:
    """The moment after which the daemon's jobs have something to do, if they have nothing to do `now` and no memory
    changes until then (`Upkeep.state` tells); None: never."""
    kept = kept_for_reminders(memories, settings)
    moments = [at for _, at in _ends(memories, settings, careful=True) if at >= now]
    unread = [each for each in _unread(memories, settings) if not _is_left_alone(each, settings)]
    moments += [_decays_after(each, settings, kept) for each in unread]
    return min(moments, default=None)


def consolidate(memory: Memory, *, dry_run: bool = False) -> list[Outcome]:
    """Fold the counts of reads (not under a dry run), then expire, decay, upgrade, consolidate. One that fails does not
    stop the others."""
    turn = Round(memory, dry_run=dry_run)
    if not dry_run:
        turn.upkeep.fold()
    return [turn.run(name, plan) for name, plan in JOBS.items()]
