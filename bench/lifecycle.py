"""The lifecycle jobs, `search` and `read` as whole processes, and the daemon's socket (contract
001, 17.16).

    python bench/lifecycle.py [--memories 10000] [--inbox 2500] [--rounds 3]

A home of organized memories and one with a full inbox are made in a temporary folder. A figure over
its budget says `over`; nothing fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import BufferedRWPair
from pathlib import Path
from uuid import UUID

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
for place in (HERE, SOURCE):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from memoranda.note.markdown import Record  # noqa: E402
from table import Budget, Row, table  # noqa: E402

RARE = "heron"
START = datetime(2026, 5, 1, tzinfo=UTC)
NOW = "2026-05-02T00:00:00Z"
MEMORY = [sys.executable, "-m", "memoranda"]
CATEGORIES = (
    "people",
    "project",
    "knowledge",
    "preferences",
    "decisions",
    "lessons",
    "habits",
    "skills",
)
OPENINGS = (
    "We learned that",
    "The team decided on",
    "She prefers",
    "Make sure to check",
    "The repo needs",
    "用户偏好",
    "Usually we look at",
    "Nobody remembers",
    "The deadline moved because of",
    "会议记录",
)


def make_home(home: Path, memories: int, *, inbox: bool) -> None:
    """Files of `memories` memories, about 40 words each, of 4,000 words in all; some share tags. A
    word of OPENINGS is in every tenth, `a17or` in every hundredth, RARE in three."""
    chance = random.Random(memories)
    words = [
        f"{chance.choice('bdfgklmnprst')}{chance.choice('aeiou')}{number:x}or"
        for number in range(4000)
    ]
    for number in range(memories):
        identity = str(UUID(int=chance.getrandbits(128), version=4))
        category = "inbox" if inbox else chance.choice(CATEGORIES)
        text = (
            f"{chance.choice(OPENINGS)} {' '.join(chance.choices(words, k=chance.randint(10, 70)))}"
        )
        if number in (memories // 4, memories // 2, memories - 1):
            text += f" {RARE}"
        created = START + timedelta(seconds=number)
        folder = home / "categories" / category
        folder.mkdir(parents=True, exist_ok=True)
        tag = f"topic-{chance.randrange(memories)}"
        expires = created + timedelta(days=7) if inbox else None
        file = Record(
            identity, text, category, created, created, tags=(tag,), expires=expires
        ).text()
        (folder / f"memory-{identity[:8]}.md").write_text(file, encoding="utf-8")


def seconds(home: Path, *argv: str) -> float:
    """How long one run of the command takes."""
    environment = os.environ | {"MEMORY_HOME": str(home), "PYTHONPATH": str(SOURCE)}
    begin = time.perf_counter()
    subprocess.run([*MEMORY, *argv], env=environment, check=True, capture_output=True)
    return time.perf_counter() - begin


def measured(folder: Path, memories: int, inbox: int, rounds: int, settle: float) -> list[Row]:
    """All figures."""
    full = folder / "inbox"
    organized = folder / "organized"
    make_home(full, inbox, inbox=True)
    make_home(organized, memories, inbox=False)
    for home in (full, organized):
        # The index is made here
        seconds(home, "status")
    now = ("--now", NOW)
    rows = [
        Row(
            f"dream 1, {inbox:,} in the inbox",
            "s",
            [seconds(full, "dream", *now)],
            budget=Budget(most=20),
        ),
        Row(
            f"dream 1, {inbox:,} memories, nothing to do",
            "s",
            [seconds(full, "dream", *now) for _ in range(rounds)],
        ),
        Row(
            f"consolidate, {memories:,} memories, nothing to do",
            "s",
            [seconds(organized, "consolidate", *now) for _ in range(rounds)],
            budget=Budget(most=3),
        ),
        Row(
            f"decay, {memories:,} memories, nothing to do",
            "s",
            [seconds(organized, "decay", *now) for _ in range(rounds)],
        ),
    ]
    rows += commands(organized, memories, rounds) + socket_rows(organized, memories, settle)
    for level in ("2", "3"):
        for run_name in ("the first", "the second"):
            elapsed = seconds(organized, "dream", "--level", level, *now)
            rows.append(Row(f"dream {level}, {memories:,} memories, {run_name}", "s", [elapsed]))
    return rows


def commands(home: Path, memories: int, rounds: int) -> list[Row]:
    """`search` and `read` as a person calls them."""
    some = (
        next((home / "categories" / "people").glob("*.md"))
        .read_text("utf-8")
        .split("\n")[1]
        .removeprefix("id: ")
    )
    runs = {
        f"memory search, of a rare word, {memories:,} memories": (
            ("search", RARE),
            Budget(most=150),
        ),
        f"memory search, in every hundredth, {memories:,} memories": (
            ("search", "a17or"),
            Budget(most=150),
        ),
        f"memory search, in every tenth, {memories:,} memories": (("search", "prefers"), None),
        f"memory search --ranked, {memories:,} memories": (
            ("search", "--ranked", "She prefers"),
            None,
        ),
        f"memory read, {memories:,} memories": (("read", some), Budget(most=100)),
    }
    rows = []
    for label, (argv, budget) in runs.items():
        times = [seconds(home, *argv) * 1e3 for _ in range(rounds * 3)]
        rows.append(Row(label, "ms", times, budget=budget))
    return rows


def socket_rows(home: Path, memories: int, settle: float) -> list[Row]:
    """One client of the daemon, which has no upkeep to do: a request on its way, and back."""
    (home / "config.yaml").write_text(
        "daemon:\n  decay_threshold: 9999d\n  dream: false\n", encoding="utf-8"
    )
    environment = os.environ | {"MEMORY_HOME": str(home), "PYTHONPATH": str(SOURCE)}
    daemon = subprocess.Popen(
        [*MEMORY, "serve", "--interval", "1h"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        daemon.stdout.readline()
        folder_before = os.getcwd()
        # A socket's path may not be long
        os.chdir(home)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("memory.sock")
            os.chdir(folder_before)
            with client.makefile("rwb") as wire:
                # The first round of upkeep is over then
                time.sleep(settle)
                calls = {
                    "search of a rare word": ("memory_search", {"query": RARE}, Budget(most=5)),
                    "search, in every hundredth": ("memory_search", {"query": "a17or"}, None),
                    "search, in every tenth": ("memory_search", {"query": "prefers"}, None),
                    "smart search": ("memory_smart_search", {"query": "a17or"}, None),
                    "list": ("memory_list", {"limit": 10}, None),
                }
                rows = []
                for name, (tool, params, budget) in calls.items():
                    label = f"socket, {name}, {memories:,} memories"
                    times = [_asked(wire, tool, **params) * 1e3 for _ in range(15)]
                    rows.append(Row(label, "ms", times, budget=budget))
                return rows
    finally:
        daemon.terminate()
        daemon.communicate(timeout=60)
        (home / "config.yaml").unlink()


def _asked(wire: BufferedRWPair, tool: str, **params: object) -> float:
    begin = time.perf_counter()
    wire.write(json.dumps({"id": 1, "method": tool, "params": params}).encode() + b"\n")
    wire.flush()
    assert b'"result"' in wire.readline()
    return time.perf_counter() - begin


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--memories", type=int, default=10_000, help="organized memories [10000]")
    parser.add_argument("--inbox", type=int, default=2_500, help="memories in the inbox [2500]")
    parser.add_argument(
        "--rounds", type=int, default=3, help="runs of what finds nothing to do [3]"
    )
    parser.add_argument(
        "--settle", type=float, default=5.0, help="seconds the daemon's first round may take [5]"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="memoranda-lifecycle-") as folder:
        print(
            table(
                measured(
                    Path(folder), options.memories, options.inbox, options.rounds, options.settle
                )
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
