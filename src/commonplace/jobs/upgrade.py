"""Job `upgrade`: memories of the inbox that are read often are organized (contract 001, 5 and 7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.jobs.classify import Classified, classify
from commonplace.jobs.job import Action, Job, Known
from commonplace.note.model import INBOX

if TYPE_CHECKING:
    from commonplace.config import Settings

NAME = "upgrade"


def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
    """Phase inbox, read `daemon.upgrade_access_threshold` times or more."""
    return [
        organizing(NAME, NAME, each, f"read {_times(each.digest.access_count)}")
        for each in known
        if each.digest.phase == INBOX and each.digest.access_count >= settings.upgrade_access_threshold
    ]


def plan_one(each: Known, category: str | None = None) -> Action | None:
    """What `memory upgrade ID` does: into `category`, else where the table says; None when it is there already."""
    if category is None:
        return organizing(NAME, NAME, each, "asked for") if each.digest.phase == INBOX else None
    if each.digest.phase != INBOX and each.digest.category == category:
        return None
    return Action(NAME, NAME, each.id, f"asked for: {category}", each.path, category=category)


def organizing(job: str, verb: str, each: Known, why: str = "") -> Action:
    """The action that takes a memory out of the inbox: into the category it has, else where the table says."""
    found = Classified(each.digest.category) if each.digest.category != INBOX else classify(each.digest.content)
    words = ", ".join(found.words) if found.words else "no word of the table"
    reason = found.category if each.digest.category != INBOX else f"{found.category} ({words})"
    return Action(job, verb, each.id, f"{why}: {reason}" if why else reason, each.path, found.category, found.words)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


JOB = Job(NAME, plan)
