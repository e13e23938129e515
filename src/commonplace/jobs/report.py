"""The report of a dream: made, kept below `.commonplace`, shown again, and who may see what of it (contract 001, 6)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from commonplace.clock import parse_stamp, stamp
from commonplace.errors import NotFound, StorageError
from commonplace.jobs.job import LINK, MERGE, REMIND, Action
from commonplace.note.model import CATEGORIES
from commonplace.note.reminder import CATEGORY
from commonplace.store.files import put_derived, reason
from commonplace.store.layout import Layout

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from commonplace.engine import Memory
    from commonplace.jobs.job import Outcome, Round
    from commonplace.jobs.reminders import Skipped

Report = dict[str, Any]
"""`last_dream` (when any dream last was), and of the last dream that was deep or did something `level`, `processed`,
`actions`, `report`; the latter with the keys of PARTS."""

PARTS = ("classified", "merged", "similar", "links", "reminders", "skipped", "empty_categories")
_KEYS = {"last_dream", "level", "processed", "actions", "report"}
DEEP = 3
MOST_SKIPPED = 20
"""Time expressions the text names that made no reminder; the document has all."""
_SIMILAR = "similar"


def report_of(turn: Round, level: int, outcomes: Sequence[Outcome], skipped: Sequence[Skipped]) -> Report:
    """The report of the dream whose round this was."""
    actions = [action for each in outcomes for action in each.actions]
    categories = {each.id: each.digest.category for each in turn.known}
    held = turn.categories | {CATEGORY for each in actions if each.verb == REMIND}
    parts = {
        "classified": _classified((each.category or "") for each in actions if each.verb == "classify"),
        "merged": [_row(each, "id", "target") for each in actions if each.verb == MERGE],
        "similar": [_row(each, "a", "b") for each in _links(outcomes, similar=True)],
        "links": [_linked(each, categories) for each in _links(outcomes, similar=False)],
        "reminders": [_reminder(each) for each in actions if each.verb == REMIND],
        "skipped": [{"id": each.id, "phrase": each.phrase, "code": each.code} for each in skipped],
        "empty_categories": [name for name in CATEGORIES if name not in held],
    }
    documents = [each.document() for each in actions]
    return {"last_dream": stamp(turn.now), "level": level, "processed": len(actions), "actions": documents,
            "report": parts}  # fmt: skip


def _classified(categories: Iterable[str]) -> dict[str, int]:
    counts = Counter(categories)
    return {name: counts[name] for name in CATEGORIES if counts[name]}


def _links(outcomes: Sequence[Outcome], *, similar: bool) -> list[Action]:
    every = [(each.job, action) for each in outcomes for action in each.actions if action.verb == LINK]
    return [action for job, action in every if (job == _SIMILAR) is similar]


def _row(action: Action, one: str, other: str) -> dict[str, Any]:
    return {one: action.id, other: action.target, "reason": action.reason}


def _linked(action: Action, categories: dict[str, str]) -> dict[str, Any]:
    """A link with the categories of its ends."""
    ends = {"a": action.id, "b": action.target}
    named = {f"{end}_category": categories.get(identity or "", "") for end, identity in ends.items()}
    return {"a": ends["a"], "a_category": named["a_category"], "b": ends["b"], "b_category": named["b_category"],
            "reason": action.reason}  # fmt: skip


def _reminder(action: Action) -> dict[str, Any]:
    due = action.record.further["due_at"] if action.record else None
    return {"id": action.id, "source": action.target, "due_at": due, "phrase": action.phrase}


def store(memory: Memory, found: Report) -> None:
    """Keep a report. A light dream that had nothing to do leaves the older report, and only says when it was.

    Raises StorageError.
    """
    before = load(memory.home)
    if before and not found["actions"] and found["level"] < DEEP:
        found = before | {"last_dream": found["last_dream"]}
    data = json.dumps(found, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass") + b"\n"
    put_derived(Layout(memory.home).dream_report, data)


def load(home: Path) -> Report | None:
    """The report kept in this home; None when there is none that can be read. Raises StorageError."""
    found = _kept(home)
    if not found.keys() >= _KEYS or not isinstance(found["report"], dict):
        return None
    return found if found["report"].keys() >= set(PARTS) else None


def _kept(home: Path) -> dict[str, Any]:
    """What the file of the report holds, empty when it holds no report at all."""
    try:
        found = json.loads(Layout(home).dream_report.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    except OSError as error:
        raise StorageError("the dream report", reason(error)) from None
    return found if isinstance(found, dict) else {}


def last_dream(home: Path) -> datetime | None:
    """When the last dream was, whatever its level and though it did nothing; None before the first."""
    try:
        return parse_stamp(_kept(home)["last_dream"])
    except (KeyError, TypeError, ValueError, AttributeError, StorageError):
        return None


def seen_by(memory: Memory, found: Report) -> Report:
    """What of a report the caller may see: only what is about memories it sees, counts included."""
    if memory.agent is None:
        return found
    seen = _Seen(memory)
    actions = [each for each in found["actions"] if seen.all_of(each, "id", "target")]
    parts = found["report"]
    counts = memory.stats().categories
    shown = {
        "classified": _classified(each["category"] for each in actions if each["verb"] == "classify"),
        "merged": [each for each in parts["merged"] if seen.all_of(each, "id", "target")],
        "similar": [each for each in parts["similar"] if seen.all_of(each, "a", "b")],
        "links": [each for each in parts["links"] if seen.all_of(each, "a", "b")],
        "reminders": [each for each in parts["reminders"] if seen.all_of(each, "id", "source")],
        "skipped": [each for each in parts["skipped"] if seen.all_of(each, "id")],
        "empty_categories": [name for name in CATEGORIES if not any(name == of for _, of in counts)],
    }
    return found | {"processed": len(actions), "actions": actions, "report": shown}


class _Seen:
    """Which ids are those of memories the caller sees, or were merged into one."""

    def __init__(self, memory: Memory):
        self._memory = memory
        self._known: dict[str, bool] = {}

    def all_of(self, row: dict[str, Any], *keys: str) -> bool:
        return all(self._sees(str(row[key])) for key in keys if key in row)

    def _sees(self, identity: str) -> bool:
        if identity not in self._known:
            try:
                self._known[identity] = bool(self._memory.memory_id(identity))
            except NotFound:
                self._known[identity] = False
        return self._known[identity]


def lines(parts: dict[str, Any], zone: tzinfo | None) -> list[str]:
    """The report as text; `zone` is that of the times shown (None: the system's)."""
    counts = ", ".join(f"{name} {count}" for name, count in parts["classified"].items())
    found = [f"Classified: {counts or 'none'}"]
    found += _part("Merged", [f"{each['id'][:8]} {each['reason']}" for each in parts["merged"]])
    found += _part("Similar", [f"{each['a'][:8]} <-> {each['b'][:8]}: {each['reason']}" for each in parts["similar"]])
    found += _part("Links added", [_link_line(each) for each in parts["links"]])
    found += _part("Reminders made", [_reminder_line(each, zone) for each in parts["reminders"]])
    skipped = [f'{each["id"][:8]} {each["code"]}: "{each["phrase"]}"' for each in parts["skipped"]]
    found += _part("Time expressions skipped", skipped, MOST_SKIPPED)
    return [*found, f"Categories without a memory: {', '.join(parts['empty_categories']) or 'none'}"]


def _part(title: str, rows: list[str], most: int | None = None) -> list[str]:
    more = [f"  … {len(rows) - most} more"] if most is not None and len(rows) > most else []
    return [f"{title}: {len(rows)}", *(f"  {row}" for row in rows[:most]), *more]


def _link_line(each: dict[str, Any]) -> str:
    return f"{each['a'][:8]} ({each['a_category']}) <-> {each['b'][:8]} ({each['b_category']}): {each['reason']}"


def _reminder_line(each: dict[str, Any], zone: tzinfo | None) -> str:
    when = parse_stamp(each["due_at"]).astimezone(zone).strftime("%Y-%m-%d %H:%M")
    return f"{each['id'][:8]} {when} {each['phrase']}"
