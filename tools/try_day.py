#!/usr/bin/env python3
"""A day of traffic in minutes: agents come, write, search and go, the daemon's rounds run, and the
clock is moved on. Nothing may grow but the history.

    python tools/try_day.py [--hours 24] [--calls 6]     [calls an agent makes in a minute]

What is written is overwritten, deleted or expires, so that from the first hours on the home
holds about the same. Each hour prints a line. Ends with 1 where, from WARM hours on, the process grew
by more than MOST_MEMORY bytes, has more descriptors, threads or temporary files, the index grew by
more than MOST_INDEX of its size, or a change costs the history more than MOST_BYTES_A_CHANGE.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memoranda import faces
from memoranda.engine import MemorySession, open_session
from memoranda.engine.telling.session_start import introduction
from memoranda.faces.tool import Registry
from memoranda.jobs.lifecycle import FACE, Scheduler
from memoranda.serve.daemon import Daemon

AGENTS = ("claude", "cursor", "codex", "script")
CALLS = 6
WARM = 6
"""Hours after which the home holds what it will hold."""
NOTES = 300
"""Different titles, keys and names that are written again and again."""
IDS = 20
"""Words of each text that no other text has."""
ROUND_MINUTES = 15
SESSION_MINUTES = 30
MOST_MEMORY = 8 << 20
MOST_INDEX = 0.3
MOST_BYTES_A_CHANGE = 4_000
CONFIGURATION = "limits:\n  agent_notes_per_day: 0\n  agent_bytes_per_day: 0\n"
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron")
Call = tuple[str, dict[str, Any]]


class Clock:
    """The time of the home, which is moved on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True)
class Sample:
    """What a process and its home hold at a moment, in bytes and numbers."""

    memory: int
    descriptors: int
    threads: int
    objects: int
    index: int
    ledger: int
    temporary_files: int
    changes: int

    def row(self, hour: int) -> str:
        """One line of the table."""
        return (
            f"{hour:5} h  {self.memory / 1e6:7.1f} MB  {self.objects:8,} objects"
            f"  {self.descriptors:4} descriptors  {self.threads:3} threads"
            f"  index {self.index / 1e6:6.2f} MB  history {self.ledger / 1e6:7.2f} MB"
            f"  {self.changes:8,} changes  {self.temporary_files} left"
        )


def traffic(chance: random.Random) -> Call:
    """A call that an agent makes."""
    word = chance.choice(WORDS)
    number = chance.randrange(NOTES)
    # Texts of agents have ids that nobody sees a second time
    ids = " ".join(f"{chance.getrandbits(64):016x}" for _ in range(IDS))
    text = f"{word} {chance.choice(WORDS)} {number} [[Note {chance.randrange(NOTES)}]] {ids}\n"
    entity = f"Node {number % 60}"
    calls: list[Call] = [
        (
            "write_note",
            {"title": f"Note {number}", "directory": "day", "content": text, "overwrite": True},
        ),
        ("read_note", {"identifier": f"notes/day/note-{number}"}),
        ("search_notes", {"query": f"{word} {chance.choice(WORDS)}"}),
        ("delete_note", {"identifier": f"notes/day/note-{number}"}),
        ("recent_activity", {"timeframe": "1d"}),
        ("build_context", {"url": f"memory://notes/day/note-{number}"}),
        (
            "memory",
            {"command": "create", "path": f"/memories/{number % 40}.md", "file_text": text},
        ),
        ("memory", {"command": "view", "path": "/memories"}),
        ("memory", {"command": "delete", "path": f"/memories/{number % 40}.md"}),
        (
            "memory_create_entities",
            {"entities": [{"name": entity, "entityType": "t", "observations": [text]}]},
        ),
        ("memory_search_nodes", {"query": word}),
        ("memory_delete_entities", {"entityNames": [entity]}),
        ("memory_remember", {"key": f"k{number}", "value": text, "ttl_seconds": 600}),
        ("memory_recall", {"key": f"k{number}"}),
        ("memory_search", {"query": word}),
        (
            "update",
            {
                "bank_type": "global",
                "bank_id": "day",
                "target_file": f"{word}.md",
                "content": text,
                "operation": "replace",
            },
        ),
        ("memory_stats", {}),
    ]
    return chance.choice(calls)


def sample(home: Path, changes: int) -> Sample:
    """What this process and its home hold now."""
    gc.collect()
    fields = Path("/proc/self/statm").read_text().split()
    pages = int(fields[1])
    state = home / ".memoranda"

    def size_of(beginning: str) -> int:
        """The bytes of the files of the home's state whose names begin so."""
        files = [file for file in state.glob(f"{beginning}*") if file.is_file()]
        return sum(file.stat().st_size for file in files)

    temporary_files = list(home.rglob(".tmp-*"))
    return Sample(
        memory=pages * os.sysconf("SC_PAGE_SIZE"),
        descriptors=len(os.listdir("/proc/self/fd")),
        threads=threading.active_count(),
        objects=len(gc.get_objects()),
        index=size_of("index"),
        ledger=size_of("ledger"),
        temporary_files=len(temporary_files),
        changes=changes,
    )


def live_a_minute(
    memory: MemorySession, registry: Registry, chance: random.Random, minute: int, calls: int
) -> None:
    """Have each agent make its calls. Sessions are new every half hour."""
    for agent in AGENTS:
        session = minute // SESSION_MINUTES
        client = f"{agent} {session}"
        caller = memory.as_caller(agent, "mcp", client=client)
        if minute % SESSION_MINUTES == 0:
            introduction(caller)
        for _ in range(calls):
            tool, arguments = traffic(chance)
            registry.call(caller, tool, arguments)


def live(home: Path, hours: int, calls: int) -> list[Sample]:
    """Simulate `hours` hours with `calls` calls of an agent a minute. Return a sample of each hour."""
    clock = Clock()
    chance = random.Random(7)
    samples: list[Sample] = []
    with open_session(home, watch=True, clock=clock) as memory:
        registry = faces.registry(["all"], memory.settings)
        daemon = Daemon(Scheduler(memory.as_caller(None, FACE)), timedelta(hours=1))
        for minute in range(hours * 60):
            clock.now += timedelta(minutes=1)
            live_a_minute(memory, registry, chance, minute, calls)
            if minute % ROUND_MINUTES == 0 and not daemon.round():
                raise SystemExit(f"a round failed: {daemon.state()['failed']}")
            if minute % 60 == 59:
                samples.append(sample(home, memory.engine.ledger.history.last))
                print(samples[-1].row(minute // 60 + 1), flush=True)
    return samples


def faults(samples: list[Sample]) -> list[str]:
    """What grew, by the limits at the head of this file."""
    early = samples[:WARM]
    warm = early[-1]
    last = samples[-1]
    changes = max(1, last.changes - warm.changes)
    a_change = (last.ledger - warm.ledger) / changes
    grown = {
        f"memory by {last.memory - warm.memory:,} bytes": last.memory - warm.memory > MOST_MEMORY,
        "descriptors": last.descriptors > max(sample.descriptors for sample in early),
        "threads": last.threads > max(sample.threads for sample in early),
        "temporary files": last.temporary_files > 0,
        "the index": last.index > warm.index * (1 + MOST_INDEX),
        f"the history by {a_change:,.0f} bytes a change": a_change > MOST_BYTES_A_CHANGE,
    }
    print(
        f"from hour {min(WARM, len(samples))}: {last.memory - warm.memory:,} bytes of memory,"
        f" {changes:,} changes, {a_change:,.0f} bytes of history a change"
    )
    return [figure for figure, is_fault in grown.items() if is_fault]


def main() -> int:
    """Live through a day. Returns the status of the process."""
    parser = argparse.ArgumentParser(description="A day of traffic without growth.")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--calls", type=int, default=CALLS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text(CONFIGURATION, "utf-8")
        grown = faults(live(home, options.hours, options.calls))
    for fault in grown:
        print(f"grew: {fault}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
