"""Dreams: upkeep of memories while nobody asks for anything (contract 001, 6).

Level 1 classifies the inbox. Level 2 also merges and links similar memories, and turns wikilinks
into links. Level 3 also links across categories, and makes reminders of times in texts. Such
reminders are neither compared nor counted: otherwise every dream would find work in the results of
the last one.

At level 3 a language model may propose categories and links. Every answer is checked, and none is
needed.

The report of a dream is stored below `.memoranda`, and shown to those who may see it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache, partial
from itertools import chain
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

from memoranda.clock import parse_stamp, stamp
from memoranda.errors import InvalidInput, NotFound
from memoranda.jobs.classify import Classifier, organize
from memoranda.jobs.dedup import lower_form, plan_similar, terms
from memoranda.jobs.job import (
    DREAM,
    LINK,
    MERGE,
    REMIND,
    Action,
    MemoryState,
    Outcome,
    Round,
    linked_pairs,
    stored_report,
)
from memoranda.jobs.linking import MOST_LINKS, MOST_LINKS_PER_RUN, plan_links
from memoranda.jobs.text_reminders import Skipped, plan_from_text
from memoranda.llm import Endpoint, NoAnswer
from memoranda.note.model import ARCHIVED, CATEGORIES, INBOX, ORGANIZED, REMINDERS
from memoranda.sources.files import put_derived
from memoranda.sources.layout import Layout, changing_shared

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.engine import MemorySession

T = TypeVar("T")

LEVELS = (1, 2, 3)
CHOICES = tuple(name for name in CATEGORIES if name not in (INBOX, REMINDERS))
"""The categories a language model may choose."""
# Memories that a language model is asked about at once.
PER_REQUEST = 20
MOST_ASKED = 200
"""Memories a request to the model holds, and how many it is asked about in a dream; the table
decides on the rest.
"""
MOST_SHOWN = 60
"""Older memories a request for links holds: those that share most words with the fresh ones."""
# Characters shown of a memory, and of a reason kept
_TEXT_CHARACTERS = 600
# Characters of a model's reason that are kept.
_REASON_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Dream:
    """The result of a dream, or under a dry run of one that was not carried out: the outcome of
    each step, and the document of its report."""

    level: int
    outcomes: tuple[Outcome, ...]
    report: Report

    @property
    def actions(self) -> list[Action]:
        """Those of all steps."""
        return list(chain.from_iterable(outcome.actions for outcome in self.outcomes))


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
    memory: MemorySession,
    level: int,
    *,
    dry_run: bool = False,
    endpoint: Endpoint | None = None,
    stop: Callable[[], bool] = lambda: False,
    careful: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Dream:
    """Dream, and keep the report, except under a dry run.

    endpoint: a language model that may help at level 3 (`llm.*`).
    careful: whether to leave memories in the inbox whose category `memory review` would ask. The
        daemon's dreams are careful.
    stop, progress: see Round.

    A step that fails does not stop the others: its outcome has the error. Raises InvalidInput for
    an unknown level, StorageError.
    """
    check(level)

    def wikilinks(memories: Sequence[MemoryState], *_: Any) -> list[Action]:
        """Plan a link from each memory to the memories that wikilinks in its text lead to."""
        by_id: dict[str, MemoryState] = {}
        for state in _without_copies(memories):
            by_id |= dict.fromkeys((*state.merged, state.id), state)
        report: dict[frozenset[str], Action] = {}
        has_any = any(memory_state.targets for memory_state in memories)
        for action in memory.resolve_links(dry_run=True).actions if has_any else ():
            a = by_id.get(action.source)
            b = by_id.get(action.target)
            if (
                a is not None
                and b is not None
                and a is not b
                and not (a.id in b.links and b.id in a.links)
            ):
                report.setdefault(
                    frozenset((a.id, b.id)),
                    Action(DREAM, LINK, a.id, action.reason, a.path, target=b.id),
                )
        return list(report.values())

    def cross(memories: Sequence[MemoryState], _: Settings, now: datetime) -> list[Action]:
        """Link memories of different categories.

        The language model may add links for memories that this dream took out of the inbox. A
        second dream therefore asks it for nothing.
        """
        compared = _without_copies(memories)
        links = plan_links(compared, now)
        return links + proposed_links(
            endpoint, compared, {action.id for action in outcomes[0].actions}, links
        )

    turn = Round(memory, dry_run=dry_run, stop=stop, progress=progress)
    outcomes = [
        turn.run(
            "classify",
            partial(_classify, endpoint=endpoint if level == 3 else None, careful=careful),
        )
    ]
    if level >= 2:
        outcomes.append(
            turn.run("similar", lambda memories, *_: plan_similar(_without_copies(memories)))
        )
        outcomes.append(turn.run("wikilinks", wikilinks))
    skipped: list[Skipped] = []
    if level == 3:
        outcomes.append(turn.run("cross", cross))
        outcomes.append(turn.run("remind", partial(plan_from_text, skipped=skipped)))
    report = _report_of(turn, level, outcomes, skipped)
    if not dry_run:
        stored = report
        before = load_report(memory.home)
        # The older report stays, and only says when this one was
        if before and not report["actions"] and level < DEEP:
            stored = before | {"last_dream": report["last_dream"]}
        path = Layout(memory.home).dream_report
        with changing_shared(memory.home, path):
            put_derived(
                path,
                json.dumps(stored, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")
                + b"\n",
            )
    return Dream(level, tuple(outcomes), report)


def _without_copies(memories: Sequence[MemoryState]) -> list[MemoryState]:
    """The memories except reminders made of another memory's text: what that says is there
    already.
    """
    return [memory for memory in memories if not memory.header.get("reminder_of")]


def _classify(
    memories: Sequence[MemoryState],
    settings: Settings,
    now: datetime,
    endpoint: Endpoint | None,
    careful: bool,
) -> list[Action]:
    """Level 1: give every memory of the inbox a category. A careful dream does so only if it is
    sure.

    endpoint: a language model that may decide where the table cannot.
    """
    inbox = [memory for memory in memories if memory.phase == INBOX]
    classifier = Classifier(settings, memories if inbox else ())
    actions_by_id = {
        memory_state.id: organize(DREAM, "classify", memory_state, classifier, careful=careful)
        for memory_state in inbox
    }
    planned = {id: action for id, action in actions_by_id.items() if action is not None}
    by_words = {id for id, action in planned.items() if action.words}
    unsure = [
        memory_state
        for memory_state in inbox
        if memory_state.category == INBOX and memory_state.id not in by_words
    ]
    return list((planned | proposed_categories(endpoint, unsure)).values())


def proposed_categories(
    endpoint: Endpoint | None, unsure: Sequence[MemoryState]
) -> dict[str, Action]:
    """Actions, by id, that put memories the table says nothing of into a category the model chose."""

    def checked(answer: Any) -> dict[str, str]:
        if isinstance(answer, dict):
            rows = answer.get("categories")
        else:
            rows = None
        if not isinstance(rows, dict):
            raise ValueError("it has no categories")
        if not rows.keys() <= part.keys():
            raise ValueError("it names a memory that was not asked about")
        if not all(category in CHOICES for category in rows.values()):
            raise ValueError("it names a category there is not")
        return rows

    if endpoint is None:
        return {}
    proposals: dict[str, Action] = {}
    for start in range(0, min(len(unsure), MOST_ASKED), PER_REQUEST):
        part = {
            memory.id: memory for memory in unsure[start : min(start + PER_REQUEST, MOST_ASKED)]
        }
        for id, category in (
            _ask(endpoint, "dream-categories.md", part.values(), checked) or {}
        ).items():
            reason = f"{category} (the language model's choice)"
            proposals[id] = Action(DREAM, "classify", id, reason, part[id].path, category)
    return proposals


class _LinkLimits:
    """The limits for links of one run.

    Memories that are linked or were unlinked get no link, and neither one memory nor the run may
    get too many.
    """

    def __init__(self, memories: Sequence[MemoryState], made_links: Sequence[Action]):
        pairs = linked_pairs(memories) | linked_pairs(memories, "unlinked")
        self._closed = {frozenset((memories[a].id, memories[b].id)) for a, b in pairs}
        self._counts = Counter[str]()
        self._number = 0
        for action in made_links:
            self._count(action.id, action.target or "")

    def take(self, a: str, b: str) -> bool:
        """Count a link between two memories. False, and not counted, if it may not be made."""
        if self._number >= MOST_LINKS_PER_RUN or frozenset((a, b)) in self._closed:
            return False
        if max(self._counts[a], self._counts[b]) >= MOST_LINKS:
            return False
        self._count(a, b)
        return True

    def _count(self, a: str, b: str) -> None:
        self._closed.add(frozenset((a, b)))
        self._counts.update((a, b))
        self._number += 1


def proposed_links(
    endpoint: Endpoint | None,
    memories: Sequence[MemoryState],
    fresh_ids: set[str],
    made_links: Sequence[Action],
) -> list[Action]:
    """Ask the model for further links between memories of one scope, one of them in `fresh_ids`.

    Links that were removed are left out. The limits of `plan_links` hold for these and `made_links`
    together.
    """
    if endpoint is None:
        return []
    states = {memory.id: memory for memory in memories}
    limits = _LinkLimits(memories, made_links)
    proposals: list[Action] = []
    for of_scope in _scopes_with_fresh(memories, fresh_ids):
        shown_memories = _shown_to_model(of_scope, fresh_ids)
        shown_ids = {memory.id for memory in shown_memories}
        check = partial(_checked_links, shown_ids=shown_ids, fresh_ids=fresh_ids)
        for a, b, why in _ask(endpoint, "dream-links.md", shown_memories, check) or ():
            if limits.take(a, b):
                proposals.append(Action(DREAM, LINK, a, why, states[a].path, target=b))
    return proposals


def _scopes_with_fresh(
    memories: Sequence[MemoryState], fresh_ids: set[str]
) -> Iterator[list[MemoryState]]:
    """The memories that may be linked, scope by scope.

    A scope without a memory in `fresh_ids` is left out.
    """
    by_scope: dict[str, list[MemoryState]] = {}
    for memory in memories:
        if memory.phase == ORGANIZED and memory.category != REMINDERS:
            by_scope.setdefault(memory.scope, []).append(memory)
    for _, of_scope in sorted(by_scope.items()):
        if any(memory.id in fresh_ids for memory in of_scope):
            yield of_scope


def _shown_to_model(memories: Sequence[MemoryState], fresh_ids: set[str]) -> list[MemoryState]:
    """The new memories of a scope, and the older ones that share most terms with them."""
    new = [memory for memory in memories if memory.id in fresh_ids][:PER_REQUEST]
    new_terms: set[str] = set()
    for memory in new:
        new_terms |= terms(lower_form(memory.content))
    shared: list[tuple[int, MemoryState]] = []
    for memory in memories:
        if memory.id not in fresh_ids:
            count = len(new_terms & terms(lower_form(memory.content)))
            if count:
                shared.append((count, memory))
    shared.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [*new, *(memory for _, memory in shared[:MOST_SHOWN])]


def _checked_links(
    answer: Any, *, shown_ids: set[str], fresh_ids: set[str]
) -> list[tuple[str, str, str]]:
    """(smaller id, other, reason) of each link in the model's answer. Raises ValueError for an
    answer that must not be followed.
    """
    if not isinstance(answer, dict) or not isinstance(answer.get("links"), list):
        raise ValueError("it has no links")
    return [_checked_link(row, shown_ids, fresh_ids) for row in answer["links"]]


def _checked_link(row: Any, shown_ids: set[str], fresh_ids: set[str]) -> tuple[str, str, str]:
    """(smaller id, other, reason) of one link in the model's answer. Raises ValueError."""
    ends: list[Any] = []
    if isinstance(row, dict):
        ends = [row.get("a"), row.get("b")]
    ids = [end for end in ends if isinstance(end, str) and end in shown_ids]
    if len(ids) != 2 or ids[0] == ids[1]:
        raise ValueError("it links a memory that was not shown")
    if not fresh_ids.intersection(ids):
        raise ValueError("it links two memories that are not new")
    why = " ".join(str(row.get("reason") or "").split())[:_REASON_CHARACTERS]
    if not why or not why.isprintable():
        raise ValueError("it gives no reason")
    return min(ids), max(ids), f"{why} (the language model's)"


def _ask(
    endpoint: Endpoint, prompt: str, memories: Iterable[MemoryState], read: Callable[[Any], T]
) -> T | None:
    """Ask the model about these memories, and have `read` check its answer.

    None if the answer cannot be used, or if there are no memories to ask about.
    """
    system = Template(Path(__file__).with_name(prompt).read_text("utf-8"))
    rows = [
        {"id": memory.id, "category": memory.category, "text": memory.content[:_TEXT_CHARACTERS]}
        for memory in memories
        if not memory.is_foreign
    ]
    if not rows:
        return None
    request_text = json.dumps(rows, ensure_ascii=False)
    try:
        return endpoint.ask(system.substitute(categories=", ".join(CHOICES)), request_text, read)
    except NoAnswer:
        return None


Report = dict[str, Any]
"""`last_dream` (when any dream last was), and of the last dream that was deep or did something
`level`, `processed`, `actions`, `report`; the latter with the keys of PARTS."""

# The parts that are lists of rows, and the keys in a row that hold the ids of memories.
_IDS = {
    "merged": ("id", "target"),
    "similar": ("a", "b"),
    "links": ("a", "b"),
    "reminders": ("id", "source"),
    "skipped": ("id",),
}
# How the rows of these parts are shown to people.
_LINES = {
    "merged": ("Merged", "{id} {reason}"),
    "similar": ("Similar", "{a} <-> {b}: {reason}"),
    "links": ("Links added", "{a} ({a_category}) <-> {b} ({b_category}): {reason}"),
    "reminders": ("Reminders made", "{id} {due_at:%Y-%m-%d %H:%M} {phrase}"),
    "skipped": ("Time expressions skipped", '{id} {code}: "{phrase}"'),
}
PARTS = ("classified", *_IDS, "empty_categories")
_KEYS = {"last_dream", "level", "processed", "actions", "report"}
# The level that also links across categories.
DEEP = 3
MOST_SKIPPED = 20
"""Time expressions the text names that made no reminder; the document has all."""


def _rows_by_part(turn: Round, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """A row for every action of a dream, below the part of the report it belongs in."""
    categories = {memory.id: memory.category for memory in turn.memories}
    parts: dict[str, Any] = {name: [] for name in PARTS}
    for outcome in outcomes:
        for action in outcome.actions:
            part, row = _row_of(action, outcome.job, categories)
            if part:
                parts[part].append(row)
    return parts


def _report_of(
    turn: Round, level: int, outcomes: Sequence[Outcome], skipped: Sequence[Skipped]
) -> Report:
    """The report of the dream whose round this was."""
    actions = [action for outcome in outcomes for action in outcome.actions]
    parts = _rows_by_part(turn, outcomes)
    used = {*turn.categories}
    if parts["reminders"]:
        used.add(REMINDERS)
    classified = [action.category or "" for action in actions if action.verb == "classify"]
    parts["classified"] = _counts(classified)
    parts["skipped"] = [expression._asdict() for expression in skipped]
    parts["empty_categories"] = [name for name in CATEGORIES if name not in used]
    return {
        "last_dream": stamp(turn.now),
        "level": level,
        "processed": len(actions),
        "actions": [action.document() for action in actions],
        "report": parts,
    }


def _row_of(action: Action, job: str, categories: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The part of a report that an action belongs to, and its row there. The part is empty if there
    is none.
    """
    target = action.target or ""
    if action.verb == MERGE:
        return "merged", {"id": action.id, "target": target, "reason": action.reason}
    if action.verb == LINK and job == "similar":
        return "similar", {"a": action.id, "b": target, "reason": action.reason}
    if action.verb == LINK:
        return "links", {
            "a": action.id,
            "a_category": categories.get(action.id, ""),
            "b": target,
            "b_category": categories.get(target, ""),
            "reason": action.reason,
        }
    if action.verb == REMIND and action.record is not None:
        return "reminders", {
            "id": action.id,
            "source": action.target,
            "due_at": action.record.further["due_at"],
            "phrase": action.phrase,
        }
    return "", {}


def _counts(categories: Iterable[str]) -> dict[str, int]:
    counts = Counter(categories)
    return {name: counts[name] for name in CATEGORIES if counts[name]}


def load_report(home: Path) -> Report | None:
    """The report kept in this home; or None if it cannot be read. Raises StorageError."""
    report = stored_report(home)
    parts = report.get("report")
    is_whole = report.keys() >= _KEYS and isinstance(parts, dict) and parts.keys() >= set(PARTS)
    if is_whole:
        return report
    return None


def report_seen_by(memory: MemorySession, report: Report) -> Report:
    """The part of a report that the caller may see: rows about memories it sees, or that were
    merged into one; counts included."""
    if memory.agent is None:
        return report

    @cache
    def sees(id: str) -> bool:
        try:
            return bool(memory.memory_id(id))
        except NotFound:
            return False

    def visible(rows: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
        visible_rows = list(rows)
        for key in keys:
            visible_rows = [row for row in visible_rows if key not in row or sees(str(row[key]))]
        return visible_rows

    parts = report["report"]
    actions = visible(report["actions"], "id", "target")
    used = {name for phase, name in memory.stats().categories if phase != ARCHIVED}
    visible_report = {
        "classified": _counts(
            action["category"] for action in actions if action["verb"] == "classify"
        ),
        **{part: visible(parts[part], *keys) for part, keys in _IDS.items()},
        "empty_categories": [name for name in CATEGORIES if name not in used],
    }
    return report | {"processed": len(actions), "actions": actions, "report": visible_report}


def report_lines(parts: dict[str, Any], zone: tzinfo | None) -> list[str]:
    """The report as text. Times are shown in `zone`; None means the system's."""
    counts = ", ".join(f"{name} {count}" for name, count in parts["classified"].items())
    lines = [f"Classified: {counts or 'none'}"]
    for part, (title, form) in _LINES.items():
        rows = parts[part]
        if part == "skipped":
            limit = MOST_SKIPPED
        else:
            limit = len(parts[part])
        lines.append(f"{title}: {len(rows)}")
        for row in rows[:limit]:
            local_row = {
                key: value[:8] if key in _IDS[part] else value for key, value in row.items()
            }
            if part == "reminders":
                local_row["due_at"] = parse_stamp(row["due_at"]).astimezone(zone)
            lines.append("  " + form.format_map(local_row))
        lines += [f"  … {len(rows) - limit} more"] if len(rows) > limit else []
    return [
        *lines,
        f"Categories without a memory: {', '.join(parts['empty_categories']) or 'none'}",
    ]
