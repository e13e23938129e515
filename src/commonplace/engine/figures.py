"""How large a memory is, how it grew, and who wrote what: numbers for people."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

from commonplace.clock import EPOCH
from commonplace.engine.engine import verb
from commonplace.engine.history import HistoryVerbs
from commonplace.index.note_queries import HomeCounts

WEEKS = 12


@dataclass(slots=True)
class Figures:
    """`bytes` of the notes the caller sees, `index_bytes` and `history_bytes` on disk; `weeks`: (its Monday, new notes)
    of the last WEEKS weeks, the oldest first."""

    counts: HomeCounts
    bytes: int
    index_bytes: int
    history_bytes: int
    weeks: list[tuple[date, int]]


@dataclass(slots=True)
class Writer:
    """Who wrote (`agent`; None: the owner), through which client: its changes by verb, its sessions, the last time."""

    agent: str | None
    client: str
    last: str
    verbs: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)


@verb
def figures(memory: HistoryVerbs) -> Figures:
    """The size and growth of the home, as the caller of `memory` sees it."""
    layout, zone = memory.engine.layout, memory.settings.zone
    today = memory.clock().astimezone(zone).date()
    monday = today - timedelta(days=today.weekday())
    written, total = {monday - timedelta(weeks=each): 0 for each in reversed(range(WEEKS))}, 0
    counts = memory.stats()
    for created, size in memory.index.notes.written(memory.agent):
        total += size
        day = (EPOCH + timedelta(microseconds=created)).astimezone(zone).date()
        if (week := day - timedelta(days=day.weekday())) in written:
            written[week] += 1
    index = _size([layout.index, layout.index.with_name(f"{layout.index.name}-wal")])
    return Figures(counts, total, index, _size([layout.journal, *layout.objects.rglob("*")]), [*written.items()])


def writers(memory: HistoryVerbs, since: datetime) -> list[Writer]:
    """Who changed something since a moment, those who did so last first."""
    found: dict[tuple[str | None, str], Writer] = {}
    for change in memory.log(limit=0, since=since):
        by = change.by or {}
        client = by.get("client") or change.face or ""
        writer = found.setdefault((change.agent, client), Writer(change.agent, client, change.time))
        writer.verbs[change.verb] += 1
        writer.sessions.update(filter(None, [by.get("session")]))
    return list(found.values())


def _size(places: Iterable[Path]) -> int:
    total = 0
    for place in places:
        with suppress(OSError):
            total += os.stat(place).st_size
    return total
