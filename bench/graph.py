"""The knowledge graph beside the reference server, both over MCP stdio on the same graph (contract 002, 12).

    python bench/graph.py [--entities 1000,10000]

Entities have 3 observations and 2 relations on average. The reference server (npm) is installed into a temporary
folder; without node and npm nothing is measured. A figure over its budget says `over`; nothing fails.
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
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | env
        )
        self._last = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
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
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self._last:
            pass
        return answer

    def milliseconds(self, call: Call) -> float:
        """How long one tool call takes."""
        begin = time.perf_counter()
        answer = self._ask("tools/call", {"name": call[0], "arguments": call[1]})
        taken = (time.perf_counter() - begin) * 1000
        assert not answer["result"].get("isError"), answer
        return taken

    def close(self) -> None:
        """End the server."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def graph_lines(entities: int) -> str:
    """The graph as JSON Lines; `mark N` stands in 100 entities, `only N` in one."""
    lines = []
    for number in range(entities):
        texts = [f"only {number}x", f"mark {number % (entities // 100)}x", f"fact {number * 31 % 997} about things"]
        lines.append({"type": "entity", "name": f"Entity {number}", "entityType": "thing", "observations": texts})
    for number in range(entities):
        for step in (1, 7):
            target = f"Entity {(number * step + step) % entities}"
            lines.append({"type": "relation", "from": f"Entity {number}", "to": target, "relationType": f"r{step}"})
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


CALLS: dict[str, tuple[Callable[[int], Call], float]] = {
    "open 1": (lambda n: ("open_nodes", {"names": [f"Entity {n}"]}), 0.2),
    "open 10": (lambda n: ("open_nodes", {"names": [f"Entity {n + i}" for i in range(10)]}), 0.2),
    "search, none": (lambda n: ("search_nodes", {"query": f"nothing {n}"}), 0.2),
    "search, 1 hit": (lambda n: ("search_nodes", {"query": f"ONLY {n}x"}), 0.2),
    "search, 100 hits": (lambda n: ("search_nodes", {"query": f"mark {n % 9}x"}), 0.33),
    "create 1": (lambda n: ("create_entities", {"entities": [
        {"name": f"New {n}", "entityType": "thing", "observations": ["a", "b", "c"]}]}), 0.2),
    "change 1": (lambda n: ("add_observations", {"observations": [
        {"entityName": f"Entity {n}", "contents": [f"added {n}"]}]}), 0.2),
    "delete 1": (lambda n: ("delete_entities", {"entityNames": [f"Entity {n + 50}"]}), 0.2),
}  # fmt: skip
"""What is measured, and the share of the reference server's time it may take from 10,000 entities on."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both servers and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--entities", default="1000,10000", help="sizes of the graph [1000,10000]")
    sizes = [int(size) for size in parser.parse_args(arguments).entities.split(",")]
    if not (shutil.which("node") and shutil.which("npm")):
        print("bench-graph: skipped, the reference server needs node and npm")
        return 0
    with tempfile.TemporaryDirectory(prefix="commonplace-graph-") as folder:
        program = _reference(Path(folder))
        if program is None:
            print(f"bench-graph: skipped, npm could not install {PACKAGE}")
            return 0
        rows = [row for size in sizes for row in _measured(Path(folder), program, size)]
    print(table(rows))
    return 0


def _reference(folder: Path) -> str | None:
    """The installed server's script."""
    ran = subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE],
        capture_output=True, timeout=300,
    )  # fmt: skip
    script = folder / "node_modules" / PACKAGE.rpartition("@")[0] / "dist" / "index.js"
    return str(script) if ran.returncode == 0 and script.exists() else None


def _measured(folder: Path, program: str, size: int) -> list[Row]:
    home, file = folder / f"home-{size}", folder / f"memory-{size}.jsonl"
    file.write_text(graph_lines(size))
    ours = {"MEMORY_HOME": str(home), "PYTHONPATH": str(SOURCE)}
    memory = [sys.executable, "-m", "commonplace"]
    begin = time.perf_counter()
    subprocess.run([*memory, "graph", "import", str(file)], env=os.environ | ours, check=True, capture_output=True)
    rows = [Row(f"{size:,}: taken in", "s", [time.perf_counter() - begin])]
    clients = (
        Client([*memory, "mcp", "--as", "server-memory"], **ours),
        Client(["node", program], MEMORY_FILE_PATH=str(file)),
    )
    for name, (make, share) in CALLS.items():
        for client in clients:
            client.milliseconds(make(40))
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(ROUNDS):  # in turn, so that both meet the same load
            for client, each in zip(clients, taken, strict=True):
                each.append(client.milliseconds(make(number)))
        rows.append(Row(f"{size:,}: {name}", "ms", *taken, "reference", Budget(times=share if size >= 10_000 else 1)))
    for client in clients:
        client.close()
    return rows


if __name__ == "__main__":
    sys.exit(main())
