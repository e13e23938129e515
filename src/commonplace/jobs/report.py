"""The report of a dream: made, kept below `.commonplace`, shown again, and who may see what of it (contract 001, 6)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any

from commonplace.clock import parse_stamp, stamp
from commonplace.errors import NotFound, StorageError
from commonplace.jobs.job import LINK, MERGE, REMIND
from commonplace.note.model import ARCHIVED, CATEGORIES
from commonplace.note.reminder import CATEGORY as REMINDERS
from commonplace.store.files import put_derived, read_file, reason
from commonplace.store.layout import Layout, changing_shared

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from commonplace.engine import Memory
    from commonplace.jobs.job import Outcome, Round
    from commonplace.jobs.reminders import Skipped

Report = dict[str, Any]
"""`last_dream` (when any dream last was), and of the last dream that was deep or did something `level`, `processed`,
`actions`, `report`; the latter with the keys of PARTS."""

_IDS = {
    "merged": ("id", "target"), "similar": ("a", "b"), "links": ("a", "b"), "reminders": ("id", "source"),
    "skipped": ("id",),
}  # fmt: skip
"""The parts that are lists of rows, and the keys in a row that hold the ids of memories."""
_LINES = {
    "merged": ("Merged", "{id} {reason}"),
    "similar": ("Similar", "{a} <-> {b}: {reason}"),
    "links": ("Links added", "{a} ({a_category}) <-> {b} ({b_category}): {reason}"),
    "reminders": ("Reminders made", "{id} {due_at:%Y-%m-%d %H:%M} {phrase}"),
    "skipped": ("Time expressions skipped", '{id} {code}: "{phrase}"'),
}
"""How the rows of these parts are shown to people."""
PARTS = ("classified", *_IDS, "empty_categories")
_KEYS = {"last_dream", "level", "processed", "actions", "report"}
DEEP = 3
MOST_SKIPPED = 20
"""Time expressions the text names that made no reminder; the document has all."""


def report_of(turn: Round, level: int, outcomes: Sequence[Outcome], skipped: Sequence[Skipped]) -> Report:
    """The report of the dream whose round this was."""
    actions = [action for each in outcomes for action in each.actions]
    categories = {each.id: each.category for each in turn.memories}
    parts: dict[str, Any] = {name: [] for name in PARTS}
    for outcome in outcomes:
        for each in outcome.actions:
            a, b, reason = each.id, each.target or "", {"reason": each.reason}
            if each.verb == MERGE:
                parts["merged"].append({"id": a, "target": b} | reason)
            elif each.verb == LINK and outcome.job == "similar":
                parts["similar"].append({"a": a, "b": b} | reason)
            elif each.verb == LINK:
                ends = {"a": a, "a_category": categories.get(a, ""), "b": b, "b_category": categories.get(b, "")}
                parts["links"].append(ends | reason)
            elif each.verb == REMIND and each.record is not None:
                due = each.record.further["due_at"]
                parts["reminders"].append({"id": a, "source": each.target, "due_at": due, "phrase": each.phrase})
    used = turn.categories | ({REMINDERS} if parts["reminders"] else set())
    parts |= {
        "classified": _counts((each.category or "") for each in actions if each.verb == "classify"),
        "skipped": [each._asdict() for each in skipped],
        "empty_categories": [name for name in CATEGORIES if name not in used],
    }
    found = {"last_dream": stamp(turn.now), "level": level, "processed": len(actions)}
    return found | {"actions": [each.document() for each in actions], "report": parts}


def _counts(categories: Iterable[str]) -> dict[str, int]:
    counts = Counter(categories)
    return {name: counts[name] for name in CATEGORIES if counts[name]}


def store(memory: Memory, found: Report) -> None:
    """Keep a report. A light dream that had nothing to do leaves the older report, and only says when it was. Raises
    StorageError."""
    before = load(memory.home)
    if before and not found["actions"] and found["level"] < DEEP:
        found = before | {"last_dream": found["last_dream"]}
    data = json.dumps(found, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass") + b"\n"
    path = Layout(memory.home).dream_report
    with changing_shared(memory.home, path):
        put_derived(path, data)


def load(home: Path) -> Report | None:
    """The report kept in this home; None when there is none that can be read. Raises StorageError."""
    found = _stored(home)
    parts = found.get("report")
    is_whole = found.keys() >= _KEYS and isinstance(parts, dict) and parts.keys() >= set(PARTS)
    return found if is_whole else None


def _stored(home: Path) -> dict[str, Any]:
    """What the file of the report holds, empty when it holds no report at all."""
    try:
        found = json.loads(read_file(str(Layout(home).dream_report)).data)
    except (FileNotFoundError, ValueError):
        return {}
    except OSError as error:
        raise StorageError("the dream report", reason(error)) from None
    return found if isinstance(found, dict) else {}


def last_dream(home: Path) -> datetime | None:
    """When the last dream was, whatever its level and though it did nothing; None before the first."""
    try:
        return parse_stamp(_stored(home)["last_dream"])
    except (KeyError, TypeError, ValueError, AttributeError, StorageError):
        return None


def seen_by(memory: Memory, found: Report) -> Report:
    """What of a report the caller may see: only what is about memories it sees, or that were merged into one; counts
    included."""
    if memory.agent is None:
        return found

    @cache
    def sees(id: str) -> bool:
        try:
            return bool(memory.memory_id(id))
        except NotFound:
            return False

    def visible(rows: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
        return [row for row in rows if all(sees(str(row[key])) for key in keys if key in row)]

    parts, actions = found["report"], visible(found["actions"], "id", "target")
    used = {name for phase, name in memory.stats().categories if phase != ARCHIVED}
    shown = {
        "classified": _counts(each["category"] for each in actions if each["verb"] == "classify"),
        **{part: visible(parts[part], *keys) for part, keys in _IDS.items()},
        "empty_categories": [name for name in CATEGORIES if name not in used],
    }
    return found | {"processed": len(actions), "actions": actions, "report": shown}


def lines(parts: dict[str, Any], zone: tzinfo | None) -> list[str]:
    """The report as text; `zone` is that of the times shown (None: the system's)."""
    counts = ", ".join(f"{name} {count}" for name, count in parts["classified"].items())
    found = [f"Classified: {counts or 'none'}"]
    for part, (title, form) in _LINES.items():
        rows, most = parts[part], MOST_SKIPPED if part == "skipped" else len(parts[part])
        found.append(f"{title}: {len(rows)}")
        for row in rows[:most]:
            shown = {key: value[:8] if key in _IDS[part] else value for key, value in row.items()}
            if part == "reminders":
                shown["due_at"] = parse_stamp(row["due_at"]).astimezone(zone)
            found.append("  " + form.format_map(shown))
        found += [f"  … {len(rows) - most} more"] if len(rows) > most else []
    return [*found, f"Categories without a memory: {', '.join(parts['empty_categories']) or 'none'}"]
