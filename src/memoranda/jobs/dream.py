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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache, partial
from itertools import chain
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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
"""The categories that a language model may choose."""
PER_REQUEST = 20
"""Number of memories in one request to the model."""
MOST_ASKED = 200
"""Number of memories that the model is asked about in one dream. The table decides on the rest."""
MOST_SHOWN = 60
"""Number of older memories in a request for links. They share most words with the new memories."""
# Number of characters of a memory that the model sees.
_TEXT_CHARACTERS = 600
# Number of characters of the model's reason that are kept.
_REASON_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Dream:
    """The result of a dream, which is one run of the upkeep jobs. A dry run has the result it would
    have.

    level: how thorough the dream was: 1, 2 or 3.
    outcomes: the outcome of each step.
    report: the report as it is stored and shown.
    """

    level: int
    outcomes: tuple[Outcome, ...]
    report: Report

    @property
    def actions(self) -> list[Action]:
        """The actions of all steps."""
        return list(chain.from_iterable(outcome.actions for outcome in self.outcomes))


def check(level: int) -> None:
    """Raise InvalidInput for a level that does not exist."""
    if level not in LEVELS:
        raise InvalidInput(f"invalid dream level {level} (must be 1-3)")


def endpoint_of(settings: Settings) -> Endpoint | None:
    """Return the language model of the configuration (`llm.*`). None if none is configured."""
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
    """Carry out the steps of a dream, and store its report. Under a dry run, change nothing.

    level: 1, 2 or 3; see above for their steps.
    dry_run: whether only to plan the actions.
    endpoint: a language model that may help at level 3 (`llm.*`). None for no model.
    stop: called before each action. If it returns True, the rest is left out.
    careful: whether to leave memories in the inbox whose category `memory review` would ask for.
        The daemon's dreams are careful.
    progress: called before each action with its number in the step, and the number of all actions
        of the step. None for nothing to call.

    If a step fails, its outcome has the error, and the other steps run. Raises InvalidInput for an
    unknown level, StorageError.
    """
    check(level)
    if level < DEEP:
        endpoint = None
    turn = Round(memory, dry_run=dry_run, stop=stop, progress=progress)

    # Each step plans with the memories as the steps before it leave them.
    classified = turn.run("classify", partial(_classify, endpoint=endpoint, careful=careful))
    outcomes = [classified]
    if level >= 2:
        outcomes.append(turn.run("similar", _plan_similar))
        outcomes.append(turn.run("wikilinks", partial(_plan_wikilinks, memory)))
    # `plan_from_text` adds the time expressions that make no reminder
    skipped: list[Skipped] = []
    if level == DEEP:
        new_ids = {action.id for action in classified.actions}
        plan_cross_links = partial(_plan_cross_links, endpoint=endpoint, new_ids=new_ids)
        outcomes.append(turn.run("cross", plan_cross_links))
        outcomes.append(turn.run("remind", partial(plan_from_text, skipped=skipped)))

    report = _report_of(turn, level, outcomes, skipped)
    if not dry_run:
        _store_report(memory, report)
    return Dream(level, tuple(outcomes), report)


def _store_report(memory: MemorySession, report: Report) -> None:
    """Store the report of a dream in the home.

    After a light dream (level 1 or 2) without an action, the report of the dream before is more
    useful. It stays, and only its `last_dream` becomes the time of this dream.
    """
    stored = report
    report_before = load_report(memory.home)
    says_nothing_new = report["level"] < DEEP and not report["actions"]
    if report_before and says_nothing_new:
        stored = report_before | {"last_dream": report["last_dream"]}
    path = Layout(memory.home).dream_report
    text = json.dumps(stored, ensure_ascii=False, indent=2) + "\n"
    with changing_shared(memory.home, path):
        put_derived(path, text.encode("utf-8", "surrogatepass"))


def _without_copies(memories: Sequence[MemoryState]) -> list[MemoryState]:
    """Leave out reminders that were made from another memory, since they repeat its text."""
    return [memory for memory in memories if not memory.header.get("reminder_of")]


def _classify(
    memories: Sequence[MemoryState],
    settings: Settings,
    now: datetime,
    endpoint: Endpoint | None,
    careful: bool,
) -> list[Action]:
    """Plan level 1: give every memory of the inbox a category.

    The classifier chooses for each memory. It is sure if a word of its table is in the memory. For
    the other memories, the answer of a language model replaces its choice.

    endpoint: the language model. None for no model.
    careful: whether to leave out memories if neither the classifier nor the model is sure.
    """
    inbox = [memory for memory in memories if memory.phase == INBOX]
    classifier = Classifier(settings, memories if inbox else ())
    actions_by_id: dict[str, Action] = {}
    for memory in inbox:
        action = organize(DREAM, "classify", memory, classifier, careful=careful)
        if action is not None:
            actions_by_id[memory.id] = action

    # `words` are the words of the table that decided.
    ids_by_table = {id for id, action in actions_by_id.items() if action.words}
    # A memory of the inbox may have a category already, which it keeps.
    unsure = [
        memory for memory in inbox if memory.category == INBOX and memory.id not in ids_by_table
    ]
    actions_by_id |= proposed_categories(endpoint, unsure)
    return list(actions_by_id.values())


def _plan_similar(memories: Sequence[MemoryState], *_: Any) -> list[Action]:
    """Plan the merges and links of similar memories (level 2)."""
    return plan_similar(_without_copies(memories))


def _plan_wikilinks(
    session: MemorySession, memories: Sequence[MemoryState], *_: Any
) -> list[Action]:
    """Plan a link for each wikilink in the text of a memory that leads to another memory (level 2).

    session: resolves the wikilinks.
    """
    if not any(memory.targets for memory in memories):
        return []
    # A memory is also found by the ids of memories that were merged into it.
    memories_by_id: dict[str, MemoryState] = {}
    for memory in _without_copies(memories):
        for id in (*memory.merged, memory.id):
            memories_by_id[id] = memory

    # One link for each pair of ids, even if both memories have a wikilink to the other.
    actions_by_pair: dict[frozenset[str], Action] = {}
    for link in session.resolve_links(dry_run=True).actions:
        a = memories_by_id.get(link.source)
        b = memories_by_id.get(link.target)
        if a is None or b is None or a is b:
            continue
        are_linked = a.id in b.links and b.id in a.links
        if not are_linked:
            action = Action(
                job=DREAM, verb=LINK, id=a.id, reason=link.reason, path=a.path, target=b.id
            )
            actions_by_pair.setdefault(frozenset((a.id, b.id)), action)
    return list(actions_by_pair.values())


def _plan_cross_links(
    memories: Sequence[MemoryState],
    _: Settings,
    now: datetime,
    *,
    endpoint: Endpoint | None,
    new_ids: set[str],
) -> list[Action]:
    """Plan links between memories of different categories (level 3).

    endpoint: a language model that may propose further links. None for no model.
    new_ids: the memories that this dream took out of the inbox. The model proposes links only for
        these, so a second dream does not use it again.
    """
    compared = _without_copies(memories)
    links = plan_links(compared, now)
    return links + proposed_links(endpoint, compared, new_ids, links)


def proposed_categories(
    endpoint: Endpoint | None, unsure: Sequence[MemoryState]
) -> dict[str, Action]:
    """Ask the model for the categories of memories. Returns an action for each answer, by id.

    endpoint: the language model. None asks nothing, and returns nothing.
    unsure: the memories.
    """
    if endpoint is None:
        return {}
    proposals: dict[str, Action] = {}
    memories = unsure[:MOST_ASKED]
    for start in range(0, len(memories), PER_REQUEST):
        request = memories[start : start + PER_REQUEST]
        memories_by_id = {memory.id: memory for memory in request}
        check = partial(_checked_categories, asked_ids=memories_by_id.keys())
        categories = _ask(endpoint, "dream-categories.md", memories_by_id.values(), check) or {}
        for id, category in categories.items():
            reason = f"{category} (the language model's choice)"
            path = memories_by_id[id].path
            proposals[id] = Action(
                job=DREAM, verb="classify", id=id, reason=reason, path=path, category=category
            )
    return proposals


def _checked_categories(answer: Any, *, asked_ids: Set[str]) -> dict[str, str]:
    """Return the category of each id in the model's answer `{"categories": {id: category}}`.

    asked_ids: the ids of the memories that the model was asked about.

    Raises ValueError for an answer that must not be followed.
    """
    categories = answer.get("categories") if isinstance(answer, dict) else None
    if not isinstance(categories, dict):
        raise ValueError("it has no categories")
    if not categories.keys() <= asked_ids:
        raise ValueError("it names a memory that was not asked about")
    if not all(category in CHOICES for category in categories.values()):
        raise ValueError("it names a category there is not")
    return categories


class _LinkLimits:
    """Decide whether a further link may be made in one run.

    Memories that are linked, or whose link somebody removed, get no link. One memory gets up to
    MOST_LINKS links, and one run makes up to MOST_LINKS_PER_RUN.

    made_links: the links of this run so far.
    """

    def __init__(self, memories: Sequence[MemoryState], made_links: Sequence[Action]):
        pairs = linked_pairs(memories) | linked_pairs(memories, "unlinked")
        self._excluded_pairs = {frozenset((memories[a].id, memories[b].id)) for a, b in pairs}
        self._counts_by_id = Counter[str]()
        self._link_count = 0
        for action in made_links:
            self._count(action.id, action.target or "")

    def take(self, a: str, b: str) -> bool:
        """Count a link between two memories. Returns False if the link may not be made.

        a, b: the ids of the memories.
        """
        has_all_links_of_run = self._link_count >= MOST_LINKS_PER_RUN
        is_excluded = frozenset((a, b)) in self._excluded_pairs
        if has_all_links_of_run or is_excluded:
            return False
        has_all_links_of_memory = max(self._counts_by_id[a], self._counts_by_id[b]) >= MOST_LINKS
        if has_all_links_of_memory:
            return False
        self._count(a, b)
        return True

    def _count(self, a: str, b: str) -> None:
        """Count a link between two memories."""
        self._excluded_pairs.add(frozenset((a, b)))
        self._counts_by_id.update((a, b))
        self._link_count += 1


def proposed_links(
    endpoint: Endpoint | None,
    memories: Sequence[MemoryState],
    new_ids: set[str],
    made_links: Sequence[Action],
) -> list[Action]:
    """Ask the model which other memories to link new memories with. Only the same scope counts.

    Links that exist, or that somebody removed, are left out (see `_LinkLimits.take`). The limits of
    `plan_links` hold for these links and `made_links` together.

    endpoint: the language model. None asks nothing, and returns nothing.
    new_ids: the ids of the new memories. Each link has one of them at least.
    made_links: the links of this run so far.
    """
    if endpoint is None:
        return []
    states = {memory.id: memory for memory in memories}
    limits = _LinkLimits(memories, made_links)
    proposals: list[Action] = []
    for memories_of_scope in _scopes_with_new(memories, new_ids):
        shown_memories = _shown_to_model(memories_of_scope, new_ids)
        shown_ids = {memory.id for memory in shown_memories}
        check = partial(_checked_links, shown_ids=shown_ids, new_ids=new_ids)
        links = _ask(endpoint, "dream-links.md", shown_memories, check) or []
        for link in links:
            if limits.take(link.a, link.b):
                path = states[link.a].path
                proposals.append(
                    Action(
                        job=DREAM,
                        verb=LINK,
                        id=link.a,
                        reason=link.reason,
                        path=path,
                        target=link.b,
                    )
                )
    return proposals


class _ProposedLink(NamedTuple):
    """A link that the model proposes.

    a, b: the ids of both memories, the smaller first.
    reason: why, in words.
    """

    a: str
    b: str
    reason: str


def _scopes_with_new(
    memories: Sequence[MemoryState], new_ids: set[str]
) -> Iterator[list[MemoryState]]:
    """Yield the memories that may be linked, scope by scope.

    A scope without a memory in `new_ids` is left out.
    """
    by_scope: dict[str, list[MemoryState]] = {}
    for memory in memories:
        if memory.phase == ORGANIZED and memory.category != REMINDERS:
            by_scope.setdefault(memory.scope, []).append(memory)
    for _, of_scope in sorted(by_scope.items()):
        if any(memory.id in new_ids for memory in of_scope):
            yield of_scope


def _shown_to_model(memories: Sequence[MemoryState], new_ids: set[str]) -> list[MemoryState]:
    """Choose the new memories of a scope, and the older ones that share most terms with them.

    memories: all memories of the scope.
    new_ids: the ids of the new ones.
    """
    new_memories = [memory for memory in memories if memory.id in new_ids][:PER_REQUEST]
    new_terms: set[str] = set()
    for memory in new_memories:
        new_terms |= terms(lower_form(memory.content))

    # Older memories that share no term are not shown.
    older_memories: list[MemoryState] = []
    shared_counts: dict[str, int] = {}
    for memory in memories:
        if memory.id in new_ids:
            continue
        shared_counts[memory.id] = len(new_terms & terms(lower_form(memory.content)))
        if shared_counts[memory.id]:
            older_memories.append(memory)
    older_memories.sort(key=lambda memory: (-shared_counts[memory.id], memory.id))
    return [*new_memories, *older_memories[:MOST_SHOWN]]


def _checked_links(answer: Any, *, shown_ids: set[str], new_ids: set[str]) -> list[_ProposedLink]:
    """Return the links in the model's answer `{"links": [{"a": id, "b": id, "reason": …}]}`.

    shown_ids: the ids of the memories that the model was shown.
    new_ids: the ids of the new memories among them. Each link must have one.

    Raises ValueError for an answer that must not be followed.
    """
    if not isinstance(answer, dict) or not isinstance(answer.get("links"), list):
        raise ValueError("it has no links")
    return [_checked_link(row, shown_ids, new_ids) for row in answer["links"]]


def _checked_link(row: Any, shown_ids: set[str], new_ids: set[str]) -> _ProposedLink:
    """Return one link of the model's answer.

    row: the link as the model wrote it.
    shown_ids: the ids of the memories that the model was shown.
    new_ids: the ids of the new memories among them. The link must have one.

    Raises ValueError if it must not be followed.
    """
    if not isinstance(row, dict):
        raise ValueError("it links a memory that was not shown")
    a = row.get("a")
    b = row.get("b")
    # Anything else may be unhashable, and cannot be looked up in the sets
    are_ids = isinstance(a, str) and isinstance(b, str)
    if not are_ids or a not in shown_ids or b not in shown_ids or a == b:
        raise ValueError("it links a memory that was not shown")
    if a not in new_ids and b not in new_ids:
        raise ValueError("it links two memories that are not new")

    # A person reads the reason, so it must be a plain text.
    reason = " ".join(str(row.get("reason") or "").split())[:_REASON_CHARACTERS]
    if not reason or not reason.isprintable():
        raise ValueError("it gives no reason")
    return _ProposedLink(min(a, b), max(a, b), f"{reason} (the language model's)")


def _ask(
    endpoint: Endpoint, prompt: str, memories: Iterable[MemoryState], read: Callable[[Any], T]
) -> T | None:
    """Ask the model about memories, and return its answer. None if the answer cannot be used.

    Memories of unknown writers are not sent, as their texts could give the model orders. None is
    also returned if no memory remains.

    endpoint: the language model.
    prompt: the name of the file with the instructions.
    memories: the memories to ask about.
    read: checks the answer and turns it into the result. It raises ValueError for a bad one.
    """
    instructions = Template(Path(__file__).with_name(prompt).read_text("utf-8"))
    rows = [
        {"id": memory.id, "category": memory.category, "text": memory.content[:_TEXT_CHARACTERS]}
        for memory in memories
        if not memory.is_foreign
    ]
    if not rows:
        return None
    request_text = json.dumps(rows, ensure_ascii=False)
    try:
        system_prompt = instructions.substitute(categories=", ".join(CHOICES))
        return endpoint.ask(system_prompt, request_text, read)
    except NoAnswer:
        return None


Report = dict[str, Any]
"""The stored report of a dream.

`last_dream` is the time of the last dream. The other keys (`level`, `processed`, `actions`,
`report`) describe the last dream that was deep or changed something. `report` has the keys of
PARTS.
"""

# The parts of a report that are lists of rows, and the keys of a row with the ids of memories.
_IDS = {
    "merged": ("id", "target"),
    "similar": ("a", "b"),
    "links": ("a", "b"),
    "reminders": ("id", "source"),
    "skipped": ("id",),
}
# The title of each part, and the form of its rows, as people see them.
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
"""Number of time expressions without a reminder that the text shows. The document has all."""


def _rows_by_part(turn: Round, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the rows of a dream's report: part of the report -> a row for each action.

    turn: the round of upkeep in which the dream ran.
    outcomes: the outcome of each step.
    """
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
    """Write the report of a dream.

    turn: the round in which the dream ran.
    level: the level of the dream.
    outcomes: the outcome of each step.
    skipped: the time expressions that made no reminder.
    """
    actions = list(chain.from_iterable(outcome.actions for outcome in outcomes))
    parts = _rows_by_part(turn, outcomes)
    used_categories = {*turn.categories}
    if parts["reminders"]:
        used_categories.add(REMINDERS)
    new_categories = [action.category or "" for action in actions if action.verb == "classify"]
    parts["classified"] = _counts(new_categories)
    parts["skipped"] = [expression._asdict() for expression in skipped]
    parts["empty_categories"] = [name for name in CATEGORIES if name not in used_categories]
    return {
        "last_dream": stamp(turn.now),
        "level": level,
        "processed": len(actions),
        "actions": [action.document() for action in actions],
        "report": parts,
    }


def _row_of(action: Action, job: str, categories: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the part of a report that an action belongs to, and its row there.

    The part is "" for an action that no part shows.

    job: the step that carried out the action.
    categories: the category of each memory, by id.
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
    """Count each category, in the fixed order of the categories."""
    counts = Counter(categories)
    return {name: counts[name] for name in CATEGORIES if counts[name]}


def load_report(home: Path) -> Report | None:
    """Return the stored report of a home. None without a complete one. Raises StorageError."""
    report = stored_report(home)
    parts = report.get("report")
    is_whole = report.keys() >= _KEYS and isinstance(parts, dict) and parts.keys() >= set(PARTS)
    if is_whole:
        return report
    return None


def report_seen_by(memory: MemorySession, report: Report) -> Report:
    """Leave out of a report the rows about memories that the caller may not see.

    A memory that was merged into a visible one is visible. Only visible rows are
    counted.
    """
    # The owner sees everything.
    if memory.agent is None:
        return report

    sees = cache(partial(_sees, memory))
    actions = _visible_rows(report["actions"], ("id", "target"), sees)
    categories = [action["category"] for action in actions if action["verb"] == "classify"]
    parts: dict[str, Any] = {"classified": _counts(categories)}
    for part, id_keys in _IDS.items():
        parts[part] = _visible_rows(report["report"][part], id_keys, sees)
    used_categories = {name for phase, name in memory.stats().categories if phase != ARCHIVED}
    parts["empty_categories"] = [name for name in CATEGORIES if name not in used_categories]
    return report | {"processed": len(actions), "actions": actions, "report": parts}


def _sees(session: MemorySession, id: str) -> bool:
    """Whether the caller of a session may see the memory with an id."""
    try:
        return bool(session.memory_id(id))
    except NotFound:
        return False


def _visible_rows(
    rows: Iterable[dict[str, Any]], id_keys: Iterable[str], sees: Callable[[str], bool]
) -> list[dict[str, Any]]:
    """Return the rows of a report that name only memories the caller may see.

    id_keys: the keys of a row with the ids of memories. A row need not have all.
    sees: whether the caller may see the memory with an id.
    """
    visible = list(rows)
    for key in id_keys:
        visible = [row for row in visible if key not in row or sees(str(row[key]))]
    return visible


def report_lines(parts: dict[str, Any], zone: tzinfo | None) -> list[str]:
    """Return the lines of a report for people.

    parts: the `report` of a stored report.
    zone: the time zone of the times shown. None means the system's.
    """
    counts = ", ".join(f"{name} {count}" for name, count in parts["classified"].items())
    lines = [f"Classified: {counts or 'none'}"]

    # A heading with the number of rows, then the rows.
    for part, (title, form) in _LINES.items():
        rows = parts[part]
        limit = MOST_SKIPPED if part == "skipped" else len(rows)
        lines.append(f"{title}: {len(rows)}")
        for row in rows[:limit]:
            shown_row = _row_for_people(part, row, zone)
            lines.append("  " + form.format_map(shown_row))
        if len(rows) > limit:
            lines.append(f"  … {len(rows) - limit} more")
    return [
        *lines,
        f"Categories without a memory: {', '.join(parts['empty_categories']) or 'none'}",
    ]


def _row_for_people(part: str, row: Mapping[str, Any], zone: tzinfo | None) -> dict[str, Any]:
    """Return a row of a report with short ids, and with its time in a time zone.

    part: the part of the report that has the row.
    """
    shown_row = dict(row)
    for key in _IDS[part]:
        if key in row:
            shown_row[key] = row[key][:8]
    if part == "reminders":
        shown_row["due_at"] = parse_stamp(row["due_at"]).astimezone(zone)
    return shown_row
