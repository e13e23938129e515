"""`status`, `doctor`, `reindex` (contract 001, 16)."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli import output
from commonplace.cli.invocation import Invocation
from commonplace.cli.memories import minute
from commonplace.cli.syntax import Usage, command
from commonplace.note.model import CATEGORIES, PHASES

if TYPE_CHECKING:
    from commonplace.engine import Memory


FINDING_KEYS = ("level", "code", "path", "text", "fixed")
STATUS_KEYS = (
    "home",
    "memories",
    "projects",
    "index",
    "daemon",
    "last_dream",
    "pending_reminders",
    "unreadable_files",
)


@command("status", keys=STATUS_KEYS)
def status(call: Invocation) -> None:
    """Show what the memory holds and whether all is well."""
    with call.memory() as memory:
        row = _status(memory)
        call.answer("\n".join(_lines(row, memory.settings.zone)), **row)


def _status(memory: Memory) -> dict[str, Any]:
    found = memory.sync()
    changed = found.added + found.modified + found.moved + found.removed
    counts = memory.stats()
    return {
        "home": str(memory.home),
        "memories": _memories(counts.categories),
        "projects": {each.name: counts.projects.get(each.name, 0) for each in memory.projects},
        "index": "stale" if changed else "fresh",
        "daemon": _daemon(memory.home),
        "last_dream": _last_dream(memory.home),
        "pending_reminders": _pending_reminders(memory),
        "unreadable_files": len(memory.unreadable),
    }


def _memories(counts: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """How many memories there are in all, in each phase and in each category that has some."""
    phases = {name: sum(n for (phase, _), n in counts.items() if phase == name) for name in PHASES}
    kinds = {name: sum(n for (_, category), n in counts.items() if category == name) for name in CATEGORIES}
    some = {name: number for name, number in kinds.items() if number}
    return {"total": sum(counts.values()), "phases": phases, "categories": some}


def _lines(row: Mapping[str, Any], zone: tzinfo | None) -> list[str]:
    """`status` as text, one `name: value` line each."""
    memories, daemon, dream = row["memories"], row["daemon"], row["last_dream"]
    shown = dict(row) | {
        "memories": f"{memories['total']} ({_counts(memories['phases'])}; {_counts(memories['categories'])})",
        "projects": _counts(row["projects"]),
        "daemon": f"running {daemon['pid']}" if daemon["running"] else "not running",
        "last_dream": minute(dream, zone) if dream else "never",
    }
    return [f"{key.replace('_', ' ')}: {value}" for key, value in shown.items()]


def _counts(row: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in row.items()) or "none"


def _daemon(home: Path) -> dict[str, Any]:
    """Whether a daemon holds its lock, and which process it is (contract 001, 13)."""
    try:
        with open(home / ".daemon.lock", encoding="utf-8", errors="replace") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = lock.read().strip()
                return {"running": True, "pid": int(pid) if pid.isdecimal() else None}
    except OSError:
        pass
    return {"running": False, "pid": None}


def _last_dream(home: Path) -> str | None:
    """When the last dream was, as its report says."""
    from commonplace.clock import stamp
    from commonplace.jobs.report import last_dream

    when = last_dream(home)
    return None if when is None else stamp(when)


def _pending_reminders(memory: Memory) -> int:
    """Reminders that have a time and are still to fire."""
    from commonplace.note.reminder import Reminder
    from commonplace.query import Query

    infos, _ = memory.list(Query(projects=("categories",), category="reminders"), limit=0)
    return sum(Reminder.of(each.header).is_waiting for each in infos)


@command("doctor", keys={"findings": FINDING_KEYS, "problems": ()})
@click.option("--fix", is_flag=True, help="Repair what loses nothing.")
@click.option("--dry-run", is_flag=True, help="With --fix: only say what would be repaired.")
def doctor(call: Invocation, *, fix: bool, dry_run: bool) -> int:
    """Examine the memory: files, links, configuration, index, permissions."""
    if dry_run and not fix:
        raise Usage("--dry-run needs --fix", click.get_current_context())
    with call.memory() as memory:
        from commonplace.engine import doctor as examination

        findings = examination.examine(memory)
        if fix and not dry_run:
            examination.repair(memory, findings)
    rows, lines = [], []
    for each in findings:
        rows.append({key: getattr(each, key) for key in FINDING_KEYS})
        note = " (fixed)" if each.fixed else f" (would {each.fix})" if dry_run and each.fix else ""
        lines.append(f"{each.level} {each.code} {each.path}: {each.text}{note}")
    left = [row for row in rows if not row["fixed"]]
    problems = sum(1 for row in left if row["level"] != "info")
    call.answer("\n".join([*lines, f"{problems} problems"]), findings=rows, problems=problems)
    return 1 if any(row["level"] == "error" for row in left) else 0


@command("reindex", keys=("notes", "projects", "seconds"))
def reindex(call: Invocation) -> None:
    """Throw the index away and make it anew from the notes."""
    start = time.perf_counter()
    with call.memory() as memory:
        with output.progress("Indexing") as progress:
            notes, projects = memory.reindex(progress)
        seconds = round(time.perf_counter() - start, 3)
        call.answer(f"Indexed {notes} notes in {projects} projects", notes=notes, projects=projects, seconds=seconds)
