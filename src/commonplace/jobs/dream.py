"""Dreams: what is done to memories while nobody asks for anything (contract 001, 6).

Level 1 classifies the inbox; 2 also merges and links what is similar and turns wikilinks into links; 3 also links
across categories and makes reminders of what the texts say about time. Those reminders are copies: they are neither
compared nor counted, or every dream would find work in what the last one made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from commonplace.errors import InvalidInput
from commonplace.jobs import asking, reminders, report
from commonplace.jobs.consolidate import merging
from commonplace.jobs.cross import plan_links
from commonplace.jobs.digest import Link
from commonplace.jobs.job import LINK, Action, Job, Known, Outcome, Plan, Round
from commonplace.jobs.similar import plan_similar
from commonplace.jobs.upgrade import organizing
from commonplace.note.model import INBOX

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory
    from commonplace.llm import Endpoint

NAME = "dream"
LEVELS = (1, 2, 3)
CLASSIFY, SIMILAR, WIKILINKS, CROSS, REMIND = "classify", "similar", "wikilinks", "cross", "remind"


@dataclass(frozen=True, slots=True)
class Dream:
    """What a dream did, or under a dry run would do: the outcome of each step, and the document of its report."""

    level: int
    outcomes: tuple[Outcome, ...]
    report: report.Report

    @property
    def actions(self) -> list[Action]:
        return [action for each in self.outcomes for action in each.actions]


def check(level: int) -> None:
    """Raises InvalidInput for a level there is not."""
    if level not in LEVELS:
        raise InvalidInput(f"invalid dream level {level} (must be 1-3)")


def run(
    memory: Memory, level: int, now: datetime | None = None, dry_run: bool = False, *,
    endpoint: Endpoint | None = None, stop: Callable[[], bool] = lambda: False,
) -> Dream:  # fmt: skip
    """Dream, and keep the report (not under a dry run). `endpoint` may help at level 3 (`llm.*`).

    A step that fails does not stop the others: its outcome tells. For `now` and `stop` see Round.
    Raises InvalidInput for a level there is not.
    """
    check(level)
    turn = Round(memory, now, dry_run=dry_run, stop=stop)
    outcomes = [turn.run(_classifying(endpoint if level == 3 else None))]
    unsure = {each.id for each in outcomes[0].actions}
    if level >= 2:
        outcomes += [turn.run(Job(SIMILAR, _similar)), turn.run(Job(WIKILINKS, _wikilinks(memory)))]
    skipped: list[reminders.Skipped] = []
    if level == 3:
        outcomes += [turn.run(_crossing(endpoint, unsure)), turn.run(_reminding(skipped))]
    found = report.report_of(turn, level, outcomes, skipped)
    if not dry_run:
        report.store(memory, found)
    return Dream(level, tuple(outcomes), found)


def _inbox(known: Sequence[Known]) -> list[Known]:
    return [each for each in known if each.digest.phase == INBOX]


def _classifying(endpoint: Endpoint | None) -> Job:
    """Level 1: every memory of the inbox gets its category; with an endpoint it may say those the table cannot."""

    def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
        planned = {each.id: organizing(NAME, CLASSIFY, each) for each in _inbox(known)}
        unsure = [each for each in _inbox(known) if each.digest.category == INBOX and not planned[each.id].words]
        return list((planned | asking.categories(endpoint, NAME, unsure)).values())

    return Job(CLASSIFY, plan)


def _similar(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
    """Level 2: same texts are merged, similar ones linked."""
    found = plan_similar([each.digest for each in known if not each.is_copy])
    return [*merging(NAME, known, found.merges), *linking(known, found.links)]


def linking(known: Sequence[Known], links: Sequence[Link]) -> list[Action]:
    """The actions of planned links."""
    paths = {each.id: each.path for each in known}
    return [Action(NAME, LINK, each.a, each.reason, paths[each.a], target=each.b) for each in links]


def _wikilinks(memory: Memory) -> Plan:
    """Level 2: what a wikilink in the text of a memory leads to is linked with it."""

    def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
        now_in = {old: each for each in known if not each.is_copy for old in (*each.digest.merged, each.id)}
        found: dict[frozenset[str], Action] = {}
        for one in memory.resolve_links(dry_run=True).actions:
            source, target = now_in.get(one.source), now_in.get(one.target)
            if source is None or target is None or source is target or _are_linked(source, target):
                continue
            action = Action(NAME, LINK, source.id, one.reason, source.path, target=target.id)
            found.setdefault(frozenset((source.id, target.id)), action)
        return list(found.values())

    return plan


def _are_linked(a: Known, b: Known) -> bool:
    return a.id in b.digest.links and b.id in a.digest.links


def _crossing(endpoint: Endpoint | None, fresh: set[str]) -> Job:
    """Level 3: links across categories; an endpoint may add some for what this dream took out of the inbox, so that
    a second dream asks for nothing."""

    def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
        digests = [each.digest for each in known if not each.is_copy]
        links = plan_links(digests, now)
        more = asking.links(endpoint, digests, fresh, links)
        return linking(known, [*links, *more])

    return Job(CROSS, plan)


def _reminding(skipped: list[reminders.Skipped]) -> Job:
    """Level 3: reminders from the texts; what is no reminder goes to `skipped`."""

    def plan(known: Sequence[Known], settings: Settings, now: datetime) -> list[Action]:
        found = reminders.plan_from_text(known, settings, now)
        skipped.extend(found.skipped)
        return list(found.actions)

    return Job(REMIND, plan)
