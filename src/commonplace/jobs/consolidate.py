"""Job `consolidate`: duplicates are merged; and the four jobs of `memory consolidate` in order (contract 001, 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.jobs import decay, expire, upgrade
from commonplace.jobs.digest import Merge
from commonplace.jobs.job import MERGE, Action, Job, Known, Outcome, Round
from commonplace.jobs.similar import plan_duplicates

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory

NAME = "consolidate"


def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
    """One merge for each memory all of whose lines another one has."""
    return merging(NAME, known, plan_duplicates([each.digest for each in known]))


def merging(job: str, known: Sequence[Known], merges: Sequence[Merge]) -> list[Action]:
    """The actions of planned merges."""
    paths = {each.id: each.path for each in known}
    return [Action(job, MERGE, each.id, each.reason, paths[each.id], target=each.survivor) for each in merges]


JOB = Job(NAME, plan)
JOBS = (expire.JOB, decay.JOB, upgrade.JOB, JOB)


def due(known: Sequence[Known], settings: Settings) -> datetime | None:
    """The moment after which the four jobs have something to do, if they have nothing to do now and no memory changes
    until then (`Upkeep.state` tells); None: never."""
    return min(filter(None, (expire.due(known, settings), decay.due(known, settings))), default=None)


def run(
    memory: Memory, now: datetime | None = None, dry_run: bool = False, *, stop: Callable[[], bool] = lambda: False
) -> list[Outcome]:
    """Fold the counts of reads (not under a dry run), then expire, decay, upgrade, consolidate.

    One that fails does not stop the others. For `now` and `stop` see Round.
    """
    turn = Round(memory, now, dry_run=dry_run, stop=stop)
    if not dry_run:
        turn.upkeep.fold()
    return [turn.run(job) for job in JOBS]
