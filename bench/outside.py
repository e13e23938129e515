"""Figures of whole processes: the command line and the MCP server, each beside a bare program of
its kind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import memoranda
from ground import Ground
from memoranda.engine import open_session
from memoranda.note.model import Draft
from table import Budget, Row, interleaved, seconds

HERE = Path(__file__).parent
# As the program `memory` starts
MEMORY = [sys.executable, "-c", "from memoranda.cli import run; run()"]
BARE_CLICK = [sys.executable, str(HERE / "bare_click.py"), "word"]
BARE_SERVER = [sys.executable, str(HERE / "bare_server.py")]
HEAVY = ("mcp", "numpy", "pydantic", "asyncio")
SECONDS = 300
"""After so long a child that says nothing is ended."""

CLIENTS = 16
CLIENT_MS = 100.0
CLIENTS_MB = 5.0
CLI_TIMES = 2.0
START_MS = 50.0
SERVER_MB = 30.0
TOOLS_CHARACTERS = 12_000
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def environment() -> dict[str, str]:
    """What children see: our source on the path, bytecode caches in use, no settings of the user's."""
    hidden = ("PYTHONDONTWRITEBYTECODE", "MEMORY_HOME", "MEMORY_AGENT")
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    paths = [str(Path(memoranda.__file__).parents[1])]
    if inherited.get("PYTHONPATH"):
        paths.append(inherited["PYTHONPATH"])
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths)}


def run(command: list[str]) -> str:
    """What a command prints. Raises RuntimeError with its last words when it fails."""
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[3:5])} failed: {process.stderr.strip()}")
    return process.stdout


@contextmanager
def _ended_in_time(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends a process that is still at work after SECONDS."""
    watchdog = threading.Timer(SECONDS, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


class Server:
    """A server process, driven by lines. Ends with the block: its input is closed, and it is waited
    for.
    """

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        self._watched = _ended_in_time(self.process)
        self._asked = 0

    def __enter__(self) -> Server:
        self._watched.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self._watched.__exit__(None, None, None)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of a request. Raises RuntimeError if the server sent none."""
        self._asked += 1
        self._send({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params or {}})
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._asked and "method" not in message:
                if "result" not in message:
                    raise RuntimeError(f"{method} was refused: {message['error']['message']}")
                return message["result"]
        raise RuntimeError(f"the server ended before it answered {method}")

    def start(self) -> Server:
        """Shake hands."""
        self.ask("initialize", _INITIALIZE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def _send(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def listed(self) -> Server:
        """Shake hands, and ask for the tools."""
        self.start().ask("tools/list")
        return self

    def processor_ms(self) -> float:
        """Processor time of the process until now; Linux only."""
        return (
            sum(
                int(path.read_text().split()[0])
                for path in Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
            )
            / 1e6
        )

    def memory(self) -> dict[str, float]:
        """MB resident now, by `Rss`, `Pss` and `Private`; Linux only."""
        lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        sizes = {
            line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6
            for line in lines
            if line.endswith(" kB")
        }
        sizes["Private"] = sizes["Private_Clean"] + sizes["Private_Dirty"]
        return {name: sizes[name] for name in ("Rss", "Pss", "Private")}


def command_line(ground: Ground) -> list[Row]:
    """Whole processes: `memory read ID` and `memory search`, beside a click program that prints a
    word.
    """
    home = ground.home(ground.notes)
    with open_session(home, watch=False) as memory:
        identity = memory.write(
            Draft("The heron stands in the reeds.", project="categories", category="knowledge")
        ).id
    read = [*MEMORY, "read", identity, "--home", str(home)]
    search = [*MEMORY, "search", "heron", "--home", str(home)]
    for command in (read, search, BARE_CLICK):
        run(command)
    times = interleaved(
        20, *(partial(_process_ms, command) for command in (read, BARE_CLICK, search, BARE_CLICK))
    )
    imports = run([sys.executable, "-c", _IMPORTED, "read", identity, "--home", str(home)])
    heavy = [name for name in HEAVY if name in imports.splitlines()[-1].split()]
    return [
        Row(
            "`memory read ID`, the process",
            "ms",
            times[0],
            times[1],
            "bare click",
            Budget(times=CLI_TIMES),
        ),
        Row(
            f"`memory search`, the process, {ground.notes:,} notes",
            "ms",
            times[2],
            times[3],
            "bare click",
        ),
        Row(f"of {', '.join(HEAVY)}: imported by read", "", [len(heavy)], budget=Budget(most=0)),
    ]


_IMPORTED = "import sys; from memoranda.cli import main; main(); print(*sys.modules)"


def _process_ms(command: list[str]) -> float:
    """How long a process takes from its start to its end; its output goes nowhere."""
    pipes = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=environment(), **pipes)
    with _ended_in_time(process):
        # Without its timeout, which would look only every 50 ms
        status = process.wait()
        took = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(command[3:5])} failed")
    return took * 1e3


def start(ground: Ground) -> list[Row]:
    """From the start of the process until `initialize` is answered."""
    served = [*MEMORY, "mcp", "--home", str(ground.home(ground.notes))]
    for command in (served, BARE_SERVER):
        _start_ms(command)
    times = interleaved(9, partial(_start_ms, served), partial(_start_ms, BARE_SERVER))
    return [
        Row(
            "`memory mcp` until initialize is answered",
            "ms",
            *times,
            "bare SDK server",
            Budget(above=START_MS),
        )
    ]


def _start_ms(command: list[str]) -> float:
    begin = time.perf_counter()
    server = Server(command)
    with server:
        server.ask("initialize", _INITIALIZE)
        return (time.perf_counter() - begin) * 1e3


def daemon(ground: Ground) -> list[Row]:
    """Clients of a daemon: what each costs, and what a call takes, beside a server in each client's
    process.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        return []
    home = ground.home(ground.notes)
    command = [*MEMORY, "mcp", "--home", str(home)]
    call = {"name": "read_note", "arguments": {"identifier": "nothing of that name"}}
    with ExitStack() as ends:
        own_servers = [ends.enter_context(Server(command)) for _ in range(2)]
        own_ms = [server.listed().processor_ms() for server in own_servers]
        ends.enter_context(_daemon(home))
        clients = [ends.enter_context(Server(command)) for _ in range(CLIENTS)]
        client_ms = [client.listed().processor_ms() for client in clients]
        plain = [
            ends.enter_context(Server([sys.executable, "-I", "-S", "-c", _PLAIN]))
            for _ in range(CLIENTS)
        ]
        for bare in plain:
            bare.process.stdout.readline()
        private = []
        for servers in (clients, plain):
            private.append(sum(server.memory()["Private"] for server in servers))
        calls = interleaved(
            200, *(partial(_call_ms, server, call) for server in (clients[0], own_servers[0]))
        )
    return [
        Row(
            "`memory mcp` with a daemon, processor time until tools/list",
            "ms",
            client_ms,
            own_ms,
            "without",
            Budget(most=CLIENT_MS),
        ),
        Row(
            f"{CLIENTS} clients of a daemon, private memory",
            "MB",
            private[:1],
            private[1:],
            "as many bare Pythons",
            Budget(above=CLIENTS_MB),
        ),
        Row("a call through the daemon, wall", "ms", *calls, "without"),
    ]


_PLAIN = "print(flush=True); input()"


@contextmanager
def _daemon(home: Path) -> Iterator[None]:
    """A daemon of the home, which has served a client."""
    daemon = subprocess.Popen(
        [*MEMORY, "serve", "--home", str(home), "--interval", "1h"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    with daemon, _ended_in_time(daemon):
        try:
            daemon.stdout.readline()
            with Server([*MEMORY, "mcp", "--home", str(home)]) as first:
                first.listed()
            yield
        finally:
            daemon.terminate()


def _call_ms(server: Server, call: dict[str, Any]) -> float:
    begin = time.perf_counter()
    server.ask("tools/call", call)
    return (time.perf_counter() - begin) * 1e3


def resident(ground: Ground) -> list[Row]:
    """Memory of a server that has answered and waits, with the index as found, and after making it
    itself.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        return []
    home = ground.home(ground.notes)
    unindexed = ground.new_home(ground.notes)
    rows = []
    waiting = [(_idle(home), _bare()) for _ in range(2)]
    indexing = [(_idle(unindexed), _bare())]
    for name, pairs in (("waiting", waiting), ("after indexing by itself", indexing)):
        for kind in ("Rss", "Pss"):
            ours = [our_memory[kind] for our_memory, _ in pairs]
            bare = [bare_memory[kind] for _, bare_memory in pairs]
            label = f"server {name}, {ground.notes:,} notes, {kind.upper()}"
            rows.append(Row(label, "MB", ours, bare, "bare SDK server", Budget(above=SERVER_MB)))
    return rows


def _idle(home: Path) -> dict[str, float]:
    with Server([*MEMORY, "mcp", "--home", str(home)]) as server:
        server.start().ask("tools/list")
        for question in ("river garden", "heron", "苍鹭"):
            server.ask("tools/call", {"name": "search_notes", "arguments": {"query": question}})
        return server.memory()


def _bare() -> dict[str, float]:
    with Server(BARE_SERVER) as server:
        server.start().ask("tools/list")
        server.ask("tools/call", {"name": "echo", "arguments": {"text": "word"}})
        return server.memory()


def tools(ground: Ground) -> list[Row]:
    """Characters of the reply to tools/list, as every conversation carries it."""
    counts = []
    home = ground.folder / "home-empty"
    for command in ([*MEMORY, "mcp", "--home", str(home)], BARE_SERVER):
        with Server(command) as server:
            result = server.start().ask("tools/list")
        counts.append(float(len(json.dumps(result, ensure_ascii=False, separators=(",", ":")))))
    ours, bare = counts
    return [
        Row(
            "tools/list, default toolsets",
            "characters",
            [ours],
            [bare],
            "one echo tool",
            Budget(most=TOOLS_CHARACTERS),
        )
    ]


def disk_sync_ms(folder: Path) -> float:
    """One fsync of a small file here."""
    place = folder / "sync"
    fd = os.open(place, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        times = []
        for _ in range(21):
            os.write(fd, b"x" * 2000)
            times.append(seconds(lambda: os.fsync(fd)))
    finally:
        os.close(fd)
        place.unlink()
    return sorted(times)[10] * 1e3
