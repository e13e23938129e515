"""The knowledge graph beside the reference server, both over MCP stdio on the same graph (contract
002, 12).

    python bench/graph.py [--entities 1000,10000,50000]

Ours is measured twice, with the graph as notes and with a graph file in place. Entities have 3
observations and 2 relations on average. The reference server (npm) is installed into a temporary
folder; without node and npm nothing is measured. A figure over its budget says `over`; nothing
fails. About five minutes; without 50,000 two.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
for place in (HERE, SOURCE):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from table import Budget, Row, table  # noqa: E402

PACKAGE = "@modelcontextprotocol/server-memory@2026.8.31"
ROUNDS = 15
Call = tuple[str, dict[str, Any]]


class Client:
    """One server on a pipe; `call` waits for its answer."""

    def __init__(self, program: Sequence[str], **env: str):
        self.process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | env,
        )
        self._last = 0
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._ask("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        assert self.process.stdout is not None
        answer: dict[str, Any] = {}
        while answer.get("id") != self._last:
            answer = json.loads(self.process.stdout.readline())
        return answer

    def milliseconds(self, call: Call) -> float:
        """How long one tool call takes."""
        begin = time.perf_counter()
        answer = self._ask("tools/call", {"name": call[0], "arguments": call[1]})
        elapsed = (time.perf_counter() - begin) * 1000
        assert not answer["result"].get("isError"), answer
        return elapsed

    def close(self) -> None:
        """End the server."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def graph_lines(entities: int) -> str:
    """The graph as JSON Lines; 100 entities contain `mark N`, one contains `only N`."""
    lines = []
    for number in range(entities):
        texts = [
            f"only {number}x",
            f"mark {number % (entities // 100)}x",
            f"fact {number * 31 % 997} about things",
        ]
        lines.append(
            {
                "type": "entity",
                "name": f"Entity {number}",
                "entityType": "thing",
                "observations": texts,
            }
        )
    for number in range(entities):
        for step in (1, 7):
            target = f"Entity {(number * step + step) % entities}"
            lines.append(
                {
                    "type": "relation",
                    "from": f"Entity {number}",
                    "to": target,
                    "relationType": f"r{step}",
                }
            )
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


CALLS: dict[str, tuple[Callable[[int], Call], float, float]] = {
    "open 1": (lambda n: ("open_nodes", {"names": [f"Entity {n}"]}), 1 / 5, 1 / 5),
    "open 10": (
        lambda n: ("open_nodes", {"names": [f"Entity {n + i}" for i in range(10)]}),
        1 / 5,
        1 / 5,
    ),
    "search, none": (lambda n: ("search_nodes", {"query": f"nothing {n}"}), 1 / 5, 0.333),
    "search, 1 hit": (lambda n: ("search_nodes", {"query": f"ONLY {n}x"}), 1 / 5, 0.333),
    "search, 100 hits": (lambda n: ("search_nodes", {"query": f"mark {n % 9}x"}), 0.333, 0.333),
    "create 1": (
        lambda n: (
            "create_entities",
            {
                "entities": [
                    {"name": f"New {n}", "entityType": "thing", "observations": ["a", "b", "c"]}
                ]
            },
        ),
        1 / 5,
        1 / 5,
    ),
    "change 1": (
        lambda n: (
            "add_observations",
            {"observations": [{"entityName": f"Entity {n}", "contents": [f"added {n}"]}]},
        ),
        1 / 5,
        1 / 2,
    ),
    "delete 1": (
        lambda n: ("delete_entities", {"entityNames": [f"Entity {n + 50}"]}),
        1 / 5,
        1 / 2,
    ),
}
"""What is measured, and the share of the reference server's time it may take from MEDIUM entities
on: as notes, as a file in place. Below that it may never be slower."""
MEDIUM = 10_000
LARGE = 50_000
LARGE_CALLS = ("open 1", "open 10", "create 1")
LARGE_SHARE = 1 / 20
LARGE_ROUNDS = 7
AT_ONCE = 5_000
AT_ONCE_SECONDS = (10.0, 1.0)
"""So many entities in one call, and the seconds they may take: as notes, as a file in place."""
STORES = ("notes", "file")
MEMORY = [sys.executable, "-m", "memoranda"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both servers and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--entities", default="1000,10000,50000", help="sizes of the graph [1000,10000,50000]"
    )
    sizes = [int(size) for size in parser.parse_args(arguments).entities.split(",")]
    if not (shutil.which("node") and shutil.which("npm")):
        print("bench-graph: skipped, the reference server needs node and npm")
        return 0
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="memoranda-graph-") as folder:
        program = _reference(Path(folder))
        if program is None:
            print(f"bench-graph: skipped, npm could not install {PACKAGE}")
            return 0
        rows = []
        for size in sizes:
            rows.extend(_measured(Path(folder), program, size))
        rows += _at_once(Path(folder), program)
    print(table(rows))
    over = [row.label for row in rows if row.verdict == "over"]
    print(
        f"\n{len(rows)} figures, {len(over)} over budget{': ' + ', '.join(over) if over else ''}."
    )
    busiest = max(load, os.getloadavg()[0])
    cores = os.cpu_count() or 1
    if busiest > cores + 0.5:
        print(
            f"Other programs were at work too (load {busiest:.1f}, {cores} cores): look at the ratios."
        )
    return 0


def _reference(folder: Path) -> str | None:
    """The installed server's script; None when npm cannot get it."""
    try:
        ran = subprocess.run(
            [
                "npm",
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--prefix",
                str(folder),
                PACKAGE,
            ],
            capture_output=True,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        return None
    script = folder / "node_modules" / PACKAGE.rpartition("@")[0] / "dist" / "index.js"
    if ran.returncode == 0 and script.exists():
        return str(script)
    return None


def _clients(home: Path, file: Path, program: str) -> dict[str, Client]:
    """Our server on the notes of `home`, ours on a copy of `file`, and the reference server on
    `file`.
    """
    copy = file.with_name(f"copy-{file.name}")
    if file.exists():
        shutil.copy(file, copy)
    ours = {"MEMORY_HOME": str(home), "PYTHONPATH": str(SOURCE)}
    file_variables = ours | {"MEMORY_HOME": f"{home}-file"}
    server = [*MEMORY, "mcp", "--as", "server-memory"]
    return {
        "notes": Client(server, **ours),
        "file": Client([*server, "--graph-file", str(copy)], **file_variables),
        "reference": Client(["node", program], MEMORY_FILE_PATH=str(file)),
    }


def _measured(folder: Path, program: str, size: int) -> list[Row]:
    home = folder / f"home-{size}"
    file = folder / f"memory-{size}.jsonl"
    file.write_text(graph_lines(size))
    ours = os.environ | {"MEMORY_HOME": str(home), "PYTHONPATH": str(SOURCE)}
    begin = time.perf_counter()
    subprocess.run(
        [*MEMORY, "graph", "import", str(file)], env=ours, check=True, capture_output=True
    )
    rows = [Row(f"{size:,}: taken into the notes", "s", [time.perf_counter() - begin])]
    clients = _clients(home, file, program)
    is_large = size >= LARGE
    for name in LARGE_CALLS if is_large else CALLS:
        make, *shares = CALLS[name]
        times = _times(clients, make, LARGE_ROUNDS if is_large else ROUNDS)
        for store, share in zip(STORES, shares, strict=True):
            label = f"{size:,} {store}: {name}"
            budget = Budget(times=_most_times(size, share))
            rows.append(Row(label, "ms", times[store], times["reference"], "reference", budget))
    for client in clients.values():
        client.close()
    return rows


def _times(
    clients: dict[str, Client], make: Callable[..., Any], rounds: int
) -> dict[str, list[float]]:
    """The milliseconds of a kind of call at each client."""
    for client in clients.values():
        client.milliseconds(make(40))
    times: dict[str, list[float]] = {store: [] for store in clients}
    # In turn, so that all meet the same load
    for number in range(rounds):
        for store, client in clients.items():
            times[store].append(client.milliseconds(make(number)))
    return times


def _most_times(size: int, share: float) -> float:
    """How many times the time of the reference server a call may take in a graph of this size."""
    if size >= LARGE:
        return LARGE_SHARE
    if size >= MEDIUM:
        return share
    return 1


def _at_once(folder: Path, program: str) -> list[Row]:
    """Many entities in one call, into an empty graph."""
    texts = ["likes tea in the morning", "works at the harbour", "came late"]
    entities = [
        {"name": f"Entity {n}", "entityType": "thing", "observations": texts}
        for n in range(AT_ONCE)
    ]
    clients = _clients(folder / "home-new", folder / "memory-new.jsonl", program)
    call = ("create_entities", {"entities": entities})
    seconds = {name: client.milliseconds(call) / 1e3 for name, client in clients.items()}
    for client in clients.values():
        client.close()
    return [
        Row(
            f"{AT_ONCE:,} in one call, {store}",
            "s",
            [seconds[store]],
            [seconds["reference"]],
            "reference",
            Budget(most),
        )
        for store, most in zip(STORES, AT_ONCE_SECONDS, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
