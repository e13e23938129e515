"""Job `expire`: memories of the inbox whose time is over go to the history (contract 001, 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.clock import stamp
from commonplace.jobs.job import Action, Job, Known
from commonplace.note.model import INBOX

if TYPE_CHECKING:
    from commonplace.config import Settings

NAME = "expire"


def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
    """Phase inbox, `expires_at` before `now`."""
    return [Action(NAME, NAME, each.id, f"expired {stamp(end)}", each.path) for each, end in _ends(known) if end < now]


def due(known: Sequence[Known], settings: Settings) -> datetime | None:
    """The moment after which the job has something to do if nothing changes; None: never."""
    return min((end for _, end in _ends(known)), default=None)


def _ends(known: Sequence[Known]) -> Iterator[tuple[Known, datetime]]:
    """The memories of the inbox that expire, with when they do."""
    return ((each, end) for each in known if each.digest.phase == INBOX and (end := each.digest.expires) is not None)


JOB = Job(NAME, plan)
