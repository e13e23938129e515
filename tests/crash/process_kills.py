"""kill -9 of real processes at random moments, `memory` commands and `memory mcp` on stdio: nothing
acknowledged is lost, and nothing is left behind.

Usage: process_kills.py FOLDER KILLS [SEED]. Each process sets a cell, a note or an entry, to a new
value, or adds a note. A command is killed at a moment of its life, a server while its client sends
call after call. Then the home is opened again, and each cell must hold the last acknowledged value
or the one that was under way.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash.test_kill import next_process

KILLS_A_HOME = 25
CELLS = 4
WORDS = 200
ROUNDS_OF_MCP = 3
"""Every so many kills, the process is a server and not a command."""


KINDS = {"notes": "note", "memories": "file", "kv": "key"}
"""The kind of cell that the notes of each project are."""


@dataclass
class Cells:
    """What was sent and acknowledged: values by the name of a cell, and the notes that were added."""

    least: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    acknowledged: int = 0

    def next_call(self, chance: random.Random) -> tuple[str, int, str, dict[str, Any]]:
        """Return a cell, its new value, and the tool and arguments that set it."""
        number = chance.randrange(CELLS)
        kind = chance.choice(("note", "file", "key", "new"))
        name = f"{kind} {number}"
        value = self.sent.get(name, 0) + 1
        self.sent[name] = value
        text = text_of(value)
        if kind == "key":
            return name, value, "memory_remember", {"key": f"cell-{number}", "value": text}
        if kind == "file":
            path = f"/memories/cell-{number}.md"
            return name, value, "memory", {"command": "create", "path": path, "file_text": text}
        title = f"cell {number}" if kind == "note" else f"new {number}x{value}"
        arguments = {"title": title, "content": text, "overwrite": True}
        return name, value, "write_note", arguments

    def acknowledge(self, name: str, value: int) -> None:
        self.least[name] = value
        self.acknowledged += 1
        if name.startswith("new"):
            self.added.add(f"{name}x{value}")


def text_of(value: int) -> str:
    return f"v{value} " * WORDS


def value_of(text: str) -> int:
    """What a text holds, which must be one value throughout."""
    words = [word for word in text.split() if word.startswith("v") and word[1:].isdecimal()]
    assert len(words) == WORDS, text[:200]
    assert len(set(words)) == 1, text[:200]
    return int(words[0].removeprefix("v"))


def start(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a real process of the command."""
    environment = os.environ | {"HOME": str(home.parent), "MEMORY_HOME": str(home)}
    return subprocess.Popen(
        [sys.executable, "-m", "memoranda", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def kill_command(home: Path, cells: Cells, chance: random.Random, usual: float) -> float:
    """Run a command and kill it at a moment of its life. Returns how long it ran.

    usual: how long a command runs, in seconds.
    """
    name, value, tool, arguments = cells.next_call(chance)
    began = time.monotonic()
    process = start(home, "call", tool, "-")
    killing = threading.Timer(usual * chance.uniform(0.3, 1.2), process.kill)
    killing.start()
    output, _ = process.communicate(json.dumps(arguments).encode())
    killing.cancel()
    # A command that printed its answer has acknowledged, also if it was killed after that.
    if process.returncode == 0 or output.endswith(b"\n"):
        cells.acknowledge(name, value)
    return time.monotonic() - began


def kill_server(home: Path, cells: Cells, chance: random.Random) -> None:
    """Let a client call a server on stdio again and again, and kill the server at some moment."""
    process = start(home, "mcp", "--no-daemon", "--tools", "memory,notes,kv")
    assert process.stdin is not None
    assert process.stdout is not None
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "kills", "version": "1"},
    }
    killing: threading.Timer | None = None
    try:
        ask(process, {"id": 0, "method": "initialize", "params": hello})
        tell(process, {"method": "notifications/initialized"})
        while True:
            name, value, tool, arguments = cells.next_call(chance)
            params = {"name": tool, "arguments": arguments}
            answer = ask(process, {"id": 1, "method": "tools/call", "params": params})
            assert not answer["result"].get("isError"), answer
            cells.acknowledge(name, value)
            if killing is None:
                killing = threading.Timer(chance.uniform(0, 0.3), process.kill)
                killing.start()
    except (BrokenPipeError, EOFError):
        pass
    finally:
        process.kill()
        process.wait()


def tell(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def ask(process: subprocess.Popen[bytes], message: dict[str, Any]) -> dict[str, Any]:
    """Send a request and return its answer. Raises EOFError if the server is gone."""
    assert process.stdout is not None
    tell(process, message)
    while True:
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        answer: dict[str, Any] = json.loads(line)
        if answer.get("id") == message["id"]:
            return answer


def check(home: Path, cells: Cells) -> None:
    """Every acknowledged value is there, each note is whole and indexed, and nothing is left over."""
    values: dict[str, int] = {}
    added: set[str] = set()
    with next_process(home) as memory:
        infos, _ = memory.list(limit=0)
        for info in infos:
            value = value_of(memory.read(info.id).text)
            kind = KINDS[info.project]
            stem = Path(info.path).stem
            if stem.startswith("new "):
                assert stem.endswith(f"x{value}"), stem
                added.add(stem)
            else:
                values[f"{kind} {stem[-1]}"] = value
    assert cells.added <= added, cells.added - added
    for name, sent in cells.sent.items():
        if not name.startswith("new"):
            least = cells.least.get(name, 0)
            value = values.get(name, 0)
            assert least <= value <= sent, (name, least, value, sent)
            cells.least[name] = value


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged = 0
    usual = 1.0
    cells = Cells()
    home = folder
    for number in range(kills):
        if number % KILLS_A_HOME == 0:
            acknowledged += cells.acknowledged
            cells = Cells()
            home = folder / f"p{number // KILLS_A_HOME}" / "home"
            home.mkdir(parents=True, mode=0o700)
        if number % ROUNDS_OF_MCP == 0:
            kill_server(home, cells, chance)
        else:
            seconds = kill_command(home, cells, chance, usual)
            usual = max(0.2, 0.8 * usual + 0.2 * seconds)
        check(home, cells)
    acknowledged += cells.acknowledged
    print(
        f"done: {kills} kills of processes, {acknowledged} acknowledged calls, "
        "nothing lost, nothing left behind"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 7)
