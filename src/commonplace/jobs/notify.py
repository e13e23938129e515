"""Firing reminders: the pending lists, the memories, the desktop, in this order (contract 001, 8).

A process that dies between two of these steps loses no reminder and fires none twice: the lists are derived from
the memories, so the next round makes them anew, and what has fired says so itself. Only its push may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.engine.overview import Firing, Pending
from commonplace.engine.upkeep import PROJECT, Upkeep
from commonplace.errors import Conflict, Locked, NotFound, NotText
from commonplace.jobs import desktop
from commonplace.jobs.job import Action
from commonplace.note.reminder import Reminder

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo

NAME, FIRE = "notify", "fire"


@dataclass(frozen=True, slots=True)
class Notified:
    """`notified`: the reminders that fired (under a dry run: would fire), oldest due first; `pending`: how many of
    those the caller sees wait for an acknowledgement now. `failure`: why the desktop showed none."""

    notified: tuple[NoteInfo, ...]
    pending: int
    actions: tuple[Action, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class _Due:
    info: NoteInfo
    due: datetime
    keys: dict[str, Any]


def run(memory: Memory, now: datetime | None = None, dry_run: bool = False) -> Notified:
    """Fire what is due at `now` (default: the memory's clock) of what the caller sees, each time once.

    A reminder its owner locked cannot be marked as fired, so it does not fire. Raises StorageError; a desktop that
    cannot be reached is no error.
    """
    now = now or memory.clock()
    pending = Pending(memory)
    if dry_run:
        due = _due(memory, _seen(memory, pending), now)
        return _outcome(memory, pending, due, now, firing=_keys(due))
    upkeep, fired = Upkeep(memory), {}
    with memory.alone():
        due = _due(memory, _seen(memory, pending), now)
        pending.refresh(now, _keys(due))
        for each in due:
            try:
                fired[each.info.path] = upkeep.change(each.info, each.keys, FIRE, touch=False)
            except (Conflict, Locked, NotFound, NotText):  # somebody edits it at this moment: next time
                continue
        if len(fired) < len(due):
            pending.refresh(now)
    # Not under the lock: a desktop that hangs must not keep others from writing.
    failure = desktop.push(memory.settings, [upkeep.content(info) for info in fired.values()]) if fired else None
    done = [replace(each, info=fired[each.info.path]) for each in due if each.info.path in fired]
    return _outcome(memory, pending, done, now, failure=failure)


def _seen(memory: Memory, pending: Pending) -> list[NoteInfo]:
    return [info for info in pending.reminders() if memory.sees(info.scope)]


def _due(memory: Memory, infos: list[NoteInfo], now: datetime) -> list[_Due]:
    """What is to fire, oldest due first, with the header keys each gets."""
    zone, found = memory.settings.reading_zone, []
    for info in infos:
        reminder = Reminder.of(info.header)
        if reminder.due is not None and reminder.is_due(now) and not info.locked:
            found.append(_Due(info, reminder.due, reminder.once_fired(now, zone)))
    return sorted(found, key=lambda each: (each.due, each.info.id))


def _keys(due: list[_Due]) -> Firing:
    return {each.info.row: each.keys for each in due}


def _outcome(
    memory: Memory, pending: Pending, due: list[_Due], now: datetime, *, firing: Firing | None = None,
    failure: str | None = None,
) -> Notified:  # fmt: skip
    zone = memory.settings.reading_zone
    actions = []
    for each in due:
        reason = f"due {each.due.astimezone(zone):%Y-%m-%d %H:%M}"
        actions.append(Action(NAME, FIRE, each.info.id, reason, f"{PROJECT}/{each.info.path}"))
    waiting = pending.listed(now, _seen(memory, pending), firing)
    return Notified(tuple(each.info for each in due), len(waiting), tuple(actions), failure)
