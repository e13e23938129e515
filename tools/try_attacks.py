#!/usr/bin/env python3
"""Attacks of strangers on `memory serve --http`, while somebody with a token goes on calling.

    python tools/try_attacks.py [NUMBER]     [600: connections, requests and registrations of each attack]

A server is started on this machine for a home made for it. Each attack prints a line: what strangers
got, how many calls of the good caller were answered meanwhile, and the longest of them. At the end the
server must have the descriptors it began with. Ends with 1 where a good call failed or took more than
SECONDS, a stranger got in, or something was left open.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

NUMBER = 600
SECONDS = 5.0
"""The longest a good call may take: strangers share the machine with it."""
PUBLIC = "https://memory.example"
FEW_DESCRIPTORS = 10
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "list_directory", "arguments": {}},
}
ACCEPT = "application/json, text/event-stream"
IN = (200, 201)
"""What a stranger must not be answered; registering is open to all, and opens nothing."""
_HELD_CALLS = 50


@dataclass
class Server:
    """A running server: its process, its port, and a token of it."""

    process: subprocess.Popen[str]
    port: int
    token: str

    def request(
        self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
    ) -> int:
        """The status of an answer; 0 where the connection was closed without one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body.encode(), headers or {})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def good_call(self) -> int:
        """A call of somebody with a token."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": ACCEPT,
        }
        return self.request("POST", "/mcp", json.dumps(CALL), headers)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass
class GoodCaller:
    """Calls again and again while an attack goes on."""

    server: Server
    calls: int = 0
    failed: Counter[int] = field(default_factory=Counter)
    longest: float = 0.0

    @contextmanager
    def calling(self) -> Iterator[None]:
        ends = threading.Event()
        thread = threading.Thread(target=self._call, args=(ends,))
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()

    def _call(self, ends: threading.Event) -> None:
        while not ends.is_set():
            begin = time.monotonic()
            status = self.server.good_call()
            seconds = time.monotonic() - begin
            self.longest = max(self.longest, seconds)
            self.calls += 1
            if status != 200:
                self.failed[status] += 1


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    """A server of a home, reachable under a public address too, so that it offers OAuth."""
    command = [sys.executable, "-m", "memoranda", "--home", str(home)]
    environment = os.environ | {"HOME": str(home.parent), "MEMORY_HOME": str(home)}
    added = subprocess.run(
        [*command, "token", "add", "good", "--rate", "0", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    serve = [*command, "serve", "--http", "127.0.0.1:0", "--public-url", PUBLIC]
    process = subprocess.Popen(
        [*serve, "--log", os.devnull], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://127.0.0.1" in line)
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)", line)[0])
        yield Server(process, port, json.loads(added.stdout)["secret"])
    finally:
        process.terminate()
        process.communicate()


def half_open(server: Server, number: int) -> Counter[int]:
    """Connections that send nothing, half a header, or half a body, and stay."""
    beginnings = (b"", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", _body_begun())
    with ExitStack() as open_sockets:
        for at in range(number):
            with suppress(OSError):
                stranger = socket.create_connection(("127.0.0.1", server.port), timeout=5)
                open_sockets.enter_context(stranger)
                stranger.sendall(beginnings[at % len(beginnings)])
        _hold(server)
    return Counter()


def slow_headers(server: Server, number: int) -> Counter[int]:
    """Connections that send a header byte by byte (slowloris)."""
    with ExitStack() as open_sockets:
        strangers = []
        for _ in range(number):
            with suppress(OSError):
                stranger = socket.create_connection(("127.0.0.1", server.port), timeout=5)
                strangers.append(open_sockets.enter_context(stranger))
        for byte in b"POST /mcp HTTP/1.1\r\nX":
            for stranger in strangers:
                with suppress(OSError):
                    stranger.sendall(bytes([byte]))
        _hold(server)
    return Counter()


def _hold(server: Server) -> None:
    """Keep what was opened for some good calls of a second caller."""
    for _ in range(_HELD_CALLS):
        server.good_call()


def _body_begun() -> bytes:
    return b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"


def large_headers(server: Server, number: int) -> Counter[int]:
    """Headers of a megabyte, and thousands of short ones."""
    statuses = Counter[int]()
    many = {f"X-{at}": "y" for at in range(90)}
    for at in range(number // 10):
        headers = many if at % 2 else {"X": "y" * (1 << 20)}
        statuses[server.request("POST", "/mcp", "{}", headers)] += 1
    return statuses


def registrations(server: Server, number: int) -> Counter[int]:
    """More clients than a server keeps: registering is open to all, and opens nothing."""
    client = {"redirect_uris": ["https://claude.ai/api/mcp/auth_callback"], "client_name": "x"}
    statuses = Counter[int]()
    for _ in range(number):
        status = server.request(
            "POST", "/register", json.dumps(client), {"Content-Type": "application/json"}
        )
        statuses[status] += 1
    return statuses


def guessed_tokens(server: Server, number: int) -> Counter[int]:
    """Tokens, codes and refresh tokens that nobody was given."""
    statuses = Counter[int]()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for at in range(number):
        bearer = {"Authorization": f"Bearer cpl_{at:040d}", "Accept": ACCEPT}
        statuses[server.request("POST", "/mcp", json.dumps(CALL), bearer)] += 1
        body = f"grant_type=refresh_token&refresh_token=r{at}&client_id=c"
        statuses[server.request("POST", "/token", body, form)] += 1
        statuses[server.request("GET", f"/authorize?client_id=c{at}&response_type=code")] += 1
    return statuses


STRANGE_HOSTS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b")
STRANGE_ORIGINS = ("https://evil.example", "null", "https://claude.ai.evil.example")


def other_hosts(server: Server, number: int) -> Counter[int]:
    """Pages of other sites, and names that lead to this machine (DNS rebinding)."""
    statuses = Counter[int]()
    token = {"Authorization": f"Bearer {server.token}", "Accept": ACCEPT}
    body = json.dumps(CALL)
    strange_headers = [{"Host": name} for name in STRANGE_HOSTS]
    strange_headers += [{"Origin": origin} for origin in STRANGE_ORIGINS]
    for headers in strange_headers:
        status = server.request("POST", "/mcp", body, token | headers)
        statuses[status] += 1
    return statuses


def forged_forms(server: Server, number: int) -> Counter[int]:
    """Forms of another site sent to the page and to `/api`, without the person's cookie."""
    statuses = Counter[int]()
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": "https://evil.example",
        "Cookie": "memory=guessed; session=guessed",
    }
    for path in ("/", "/note", "/review", "/api/note", "/api/notes", "/settings", "/undo"):
        for method in ("POST", "PUT", "DELETE"):
            statuses[server.request(method, path, "delete=1&path=notes/a.md", headers)] += 1
    for path in ("/api/notes", "/api/graph", "/api/changes", "/metrics", "/api/../config.yaml"):
        statuses[server.request("GET", path)] += 1
    return statuses


ATTACKS: tuple[Callable[[Server, int], Counter[int]], ...] = (
    half_open,
    slow_headers,
    large_headers,
    registrations,
    guessed_tokens,
    other_hosts,
    forged_forms,
)


def attack(server: Server, strike: Callable[[Server, int], Counter[int]], number: int) -> list[str]:
    """Run one attack and print what came of it. Returns what was wrong."""
    caller = GoodCaller(server)
    with caller.calling():
        statuses = strike(server, number)
        # Once more when it is over
    caller.calls += 1
    if server.good_call() != 200:
        caller.failed[-1] += 1
    name = strike.__name__
    answers = [f"{count} × {status}" for status, count in sorted(statuses.items())]
    good_calls = f"{caller.calls:5} good calls, longest {caller.longest:.2f} s"
    print(f"{name:16} {good_calls}; strangers: {', '.join(answers) or 'no answer'}")
    wrong = []
    if caller.failed:
        wrong.append(f"{name}: good calls failed: {dict(caller.failed)}")
    if caller.longest > SECONDS:
        wrong.append(f"{name}: a good call took {caller.longest:.1f} s")
    is_let_in = any(statuses[status] for status in IN)
    if is_let_in and strike is not registrations:
        wrong.append(f"{name}: a stranger was let in")
    return wrong


def run(number: int) -> list[str]:
    """All attacks on one server. Returns what was wrong."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir(mode=0o700)
        with serving(home) as server:
            server.good_call()
            descriptors = server.descriptors()
            megabytes = server.megabytes()
            for strike in ATTACKS:
                wrong += attack(server, strike, number)
            ends = time.monotonic() + 60
            while server.descriptors() > descriptors + FEW_DESCRIPTORS and time.monotonic() < ends:
                server.good_call()
            more = server.descriptors() - descriptors
            print(f"{more} descriptors and {server.megabytes() - megabytes:.0f} MB more")
            if more > FEW_DESCRIPTORS:
                wrong.append(f"{more} descriptors were left open")
            if server.process.poll() is not None:
                wrong.append("the server ended")
    return wrong


if __name__ == "__main__":
    problems = run(int(sys.argv[1]) if len(sys.argv) > 1 else NUMBER)
    print("\n".join(problems) or "nothing was wrong")
    sys.exit(1 if problems else 0)
