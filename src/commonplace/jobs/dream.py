"""Dreams: what is done to memories while nobody asks for anything (contract 001, 6).

Level 1 classifies the inbox; 2 also merges and links what is similar and turns wikilinks into links; 3 also links
across categories and makes reminders of what the texts say about time. Those reminders are copies: they are neither
compared nor counted, or every dream would find work in what the last one made.

At level 3 a language model may propose categories and links. Every answer is checked, and none is needed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.errors import InvalidInput
from commonplace.jobs import reminders, report
from commonplace.jobs.classify import Classifier
from commonplace.jobs.dedup import plain, plan_similar, terms
from commonplace.jobs.job import DREAM, LINK, Action, MemoryState, Outcome, Round, linked_pairs
from commonplace.jobs.lifecycle import organize
from commonplace.jobs.linking import MOST_LINKS, MOST_LINKS_PER_RUN, plan_links
from commonplace.llm import Endpoint, NoAnswer
from commonplace.note.model import CATEGORIES, INBOX, ORGANIZED
from commonplace.note.reminder import CATEGORY as REMINDERS

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory

T = TypeVar("T")

LEVELS = (1, 2, 3)
CHOICES = tuple(name for name in CATEGORIES if name not in (INBOX, REMINDERS))
"""The categories a language model may choose."""
PER_REQUEST, MOST_ASKED = 20, 200
"""Memories a request to the model holds, and how many it is asked about in a dream; the table decides on the rest."""
MOST_SHOWN = 60
"""Older memories a request for links holds: those that share most words with the fresh ones."""
_TEXT, _REASON = 600, 120  # characters shown of a memory, and of a reason kept


@dataclass(frozen=True, slots=True)
class Dream:
    """What a dream did, or under a dry run would do: the outcome of each step, and the document of its report."""

    level: int
    outcomes: tuple[Outcome, ...]
    report: report.Report

    @property
    def actions(self) -> list[Action]:
        """Those of all steps."""
        return [action for each in self.outcomes for action in each.actions]


def check(level: int) -> None:
    """Raises InvalidInput for a level there is not."""
    if level not in LEVELS:
        raise InvalidInput(f"invalid dream level {level} (must be 1-3)")


def endpoint_of(settings: Settings) -> Endpoint | None:
    """The language model of the configuration (`llm.*`), if there is one."""
    if not (settings.llm_base_url and settings.llm_model):
        return None
    return Endpoint(settings.llm_base_url, settings.llm_model, settings.llm_key)


def run(
    memory: Memory, level: int, *, dry_run: bool = False, endpoint: Endpoint | None = None,
    stop: Callable[[], bool] = lambda: False, careful: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Dream:  # fmt: skip
    """Dream, and keep the report (not under a dry run). `endpoint` may help at level 3 (`llm.*`). A `careful` dream,
    the daemon's, leaves in the inbox what `memory review` would ask the category of. A step that fails does not stop
    the others: its outcome tells. For `stop` and `progress` see Round. Raises InvalidInput for a level there is not."""
    check(level)

    def wikilinks(memories: Sequence[MemoryState], *_: Any) -> list[Action]:
        """What a wikilink in the text of a memory leads to is linked with it."""
        by_id = {id: each for each in _without_copies(memories) for id in (*each.merged, each.id)}
        found: dict[frozenset[str], Action] = {}
        for one in memory.resolve_links(dry_run=True).actions:
            a, b = by_id.get(one.source), by_id.get(one.target)
            if a is not None and b is not None and a is not b and not (a.id in b.links and b.id in a.links):
                found.setdefault(frozenset((a.id, b.id)), Action(DREAM, LINK, a.id, one.reason, a.path, target=b.id))
        return list(found.values())

    def cross(memories: Sequence[MemoryState], _: Settings, now: datetime) -> list[Action]:
        """Links across categories; an endpoint may add some for what this dream took out of the inbox, so that a second
        dream asks for nothing."""
        compared = _without_copies(memories)
        links = plan_links(compared, now)
        return links + proposed_links(endpoint, compared, {each.id for each in outcomes[0].actions}, links)

    turn = Round(memory, dry_run=dry_run, stop=stop, progress=progress)
    outcomes = [turn.run("classify", partial(_classify, endpoint=endpoint if level == 3 else None, careful=careful))]
    if level >= 2:
        outcomes.append(turn.run("similar", lambda memories, *_: plan_similar(_without_copies(memories))))
        outcomes.append(turn.run("wikilinks", wikilinks))
    skipped: list[reminders.Skipped] = []
    if level == 3:
        outcomes.append(turn.run("cross", cross))
        outcomes.append(turn.run("remind", partial(reminders.plan_from_text, skipped=skipped)))
    found = report.report_of(turn, level, outcomes, skipped)
    if not dry_run:
        report.store(memory, found)
    return Dream(level, tuple(outcomes), found)


def _without_copies(memories: Sequence[MemoryState]) -> list[MemoryState]:
    """The memories but for reminders made of another memory's text: what that says stands there already."""
    return [each for each in memories if not each.header.get("reminder_of")]


def _classify(
    memories: Sequence[MemoryState], settings: Settings, now: datetime, endpoint: Endpoint | None, careful: bool
) -> list[Action]:
    """Level 1: every memory of the inbox gets its category, under a careful dream if it is sure; with an endpoint it
    may say those the table cannot."""
    inbox = [each for each in memories if each.phase == INBOX]
    classifier = Classifier(settings, memories if inbox else ())
    planned = {each.id: organize(DREAM, "classify", each, classifier) for each in inbox}
    unsure = [each for each in inbox if each.category == INBOX and not planned[each.id].words]
    proposed = proposed_categories(endpoint, unsure)
    if careful:
        planned = {
            each.id: planned[each.id] for each in inbox
            if each.category != INBOX or classifier.choose(each).is_sure
        }  # fmt: skip
    return list((planned | proposed).values())


def proposed_categories(endpoint: Endpoint | None, unsure: Sequence[MemoryState]) -> dict[str, Action]:
    """Actions, by id, that put memories the table says nothing of into a category the model chose."""

    def checked(answer: Any) -> dict[str, str]:
        rows = answer.get("categories") if isinstance(answer, dict) else None
        if not isinstance(rows, dict):
            raise ValueError("it has no categories")
        if not rows.keys() <= part.keys():
            raise ValueError("it names a memory that was not asked about")
        if not all(category in CHOICES for category in rows.values()):
            raise ValueError("it names a category there is not")
        return rows

    if endpoint is None:
        return {}
    found: dict[str, Action] = {}
    for at in range(0, min(len(unsure), MOST_ASKED), PER_REQUEST):
        part = {each.id: each for each in unsure[at : min(at + PER_REQUEST, MOST_ASKED)]}
        for id, category in (_ask(endpoint, "dream-categories.md", part.values(), checked) or {}).items():
            reason = f"{category} (the language model's choice)"
            found[id] = Action(DREAM, "classify", id, reason, part[id].path, category)
    return found


def proposed_links(
    endpoint: Endpoint | None, memories: Sequence[MemoryState], fresh: set[str], made: Sequence[Action]
) -> list[Action]:
    """Links the model sees between memories of one scope, one of them `fresh`, besides those `made` already. None that
    was unlinked; the limits of `plan_links` hold for both together."""

    def checked(answer: Any) -> list[tuple[str, str, str]]:
        """(smaller id, other, reason) of each link. Raises ValueError for an answer that must not be followed."""
        rows = answer.get("links") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise ValueError("it has no links")
        ids, read = {each.id for each in shown}, []
        for row in rows:
            ends: list[Any] = [row.get("a"), row.get("b")] if isinstance(row, dict) else []
            if len(ends) != 2 or not all(isinstance(end, str) and end in ids for end in ends) or ends[0] == ends[1]:
                raise ValueError("it links a memory that was not shown")
            if not fresh.intersection(ends):
                raise ValueError("it links two memories that are not new")
            reason = " ".join(str(row.get("reason") or "").split())[:_REASON]
            if not reason or not reason.isprintable():
                raise ValueError("it gives no reason")
            read.append((min(ends), max(ends), f"{reason} (the language model's)"))
        return read

    if endpoint is None:
        return []
    may = [each for each in memories if each.phase == ORGANIZED and each.category != REMINDERS]
    states = {each.id: each for each in memories}
    pairs = linked_pairs(memories) | linked_pairs(memories, "unlinked")
    closed = {frozenset((memories[a].id, memories[b].id)) for a, b in pairs}
    closed |= {frozenset((each.id, each.target or "")) for each in made}
    counts = Counter(end for each in made for end in (each.id, each.target))
    found: list[Action] = []
    for scope in sorted({each.scope for each in may if each.id in fresh}):
        new = [each for each in may if each.scope == scope and each.id in fresh][:PER_REQUEST]
        words = set[str]().union(*(terms(plain(each.content)) for each in new))
        old = [each for each in may if each.scope == scope and each.id not in fresh]
        shared = {each.id: len(words & terms(plain(each.content))) for each in old}
        old = sorted((each for each in old if shared[each.id]), key=lambda each: (-shared[each.id], each.id))
        shown = [*new, *old[:MOST_SHOWN]]
        for a, b, reason in _ask(endpoint, "dream-links.md", shown, checked) or ():
            is_full = max(counts[a], counts[b]) >= MOST_LINKS or len(made) + len(found) >= MOST_LINKS_PER_RUN
            if frozenset((a, b)) not in closed and not is_full:
                closed.add(frozenset((a, b)))
                counts.update((a, b))
                found.append(Action(DREAM, LINK, a, reason, states[a].path, target=b))
    return found


def _ask(endpoint: Endpoint, prompt: str, memories: Iterable[MemoryState], read: Callable[[Any], T]) -> T | None:
    """What `read` makes of the model's answer about these memories; None when there is none that can be used."""
    system = Template(Path(__file__).with_name(prompt).read_text("utf-8"))
    rows = [{"id": each.id, "category": each.category, "text": each.content[:_TEXT]} for each in memories]
    asked = json.dumps(rows, ensure_ascii=False)
    try:
        return endpoint.ask(system.substitute(categories=", ".join(CHOICES)), asked, read)
    except NoAnswer:
        return None
