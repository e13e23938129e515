"""Job `decay`: organized memories that are old and were never read go to the history (contract 001, 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.clock import stamp
from commonplace.jobs.digest import REMINDERS
from commonplace.jobs.job import Action, Job, Known
from commonplace.note.model import ORGANIZED
from commonplace.note.reminder import Reminder

if TYPE_CHECKING:
    from commonplace.config import Settings

NAME = "decay"


def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
    """Older than `daemon.decay_threshold`, never read, no exempt category, no reminder still to fire."""
    return [
        Action(NAME, NAME, each.id, f"never read since {stamp(each.digest.created)}", each.path)
        for each in _unread(known, settings)
        if now - each.digest.created > settings.decay_threshold
    ]


def due(known: Sequence[Known], settings: Settings) -> datetime | None:
    """The moment after which the job has something to do if nothing changes; None: never."""
    oldest = min((each.digest.created for each in _unread(known, settings)), default=None)
    try:
        return None if oldest is None else oldest + settings.decay_threshold
    except OverflowError:
        return None


def _unread(known: Sequence[Known], settings: Settings) -> Iterator[Known]:
    """The memories that decay one day unless somebody reads them."""
    return (
        each
        for each in known
        if each.digest.phase == ORGANIZED
        and each.digest.access_count == 0
        and each.digest.category not in settings.decay_exempt
        and not _is_to_fire(each)
    )


def _is_to_fire(each: Known) -> bool:
    """Also one whose time nobody can read: somebody who mends it still wants it."""
    reminder = Reminder.of(each.info.header)
    return each.digest.category == REMINDERS and (reminder.is_waiting or reminder.unreadable is not None)


JOB = Job(NAME, plan)
