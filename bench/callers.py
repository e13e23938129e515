"""Many callers of one daemon at once, over HTTP and over its socket: what a call takes, and whether anything is lost.

    python bench/callers.py [--callers 100] [--seconds 60] [--notes 2000]

Each caller writes a note of its own in one call of five and searches in the others, with a pause after each. Then every
note that was acknowledged is looked for. All in a temporary folder; two cores serve and call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from commonplace import Draft, open_memory  # noqa: E402
from commonplace.serve.auth import Access  # noqa: E402
from vault import rare_word  # noqa: E402

MEMORY = [sys.executable, "-m", "commonplace"]
Ask = Callable[[str, dict[str, object]], Awaitable[str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--callers", type=int, default=100, help="callers at once [100]")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long [60]")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds each takes between two calls [1]; 0: none")
    parser.add_argument("--notes", type=int, default=2000, help="notes in the home before [2000]")
    given = parser.parse_args(arguments)
    titles = ("calls", "a second", "median ms", "p95", "p99", "written", "refused", "lost")
    print(" " * 8 + "".join(f"{title:>11}" for title in titles))
    lost = 0
    for way in ("socket", "http"):
        with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
            lost += _measured(way, Path(folder) / "home", given.callers, given.seconds, given.pause, given.notes)
    return int(lost > 0)


def _measured(way: str, home: Path, callers: int, seconds: float, pause: float, notes: int) -> int:
    with open_memory(home) as memory:
        memory.write_many([Draft(f"the {rare_word(at)} of {at}", title=f"Old {at}") for at in range(notes)])
    secret = Access(home).add("bench", rate=0)[1]
    environment = os.environ | {"PYTHONPATH": str(HERE.parent / "src")}
    command = [*MEMORY, "serve", "--home", str(home), "--interval", "1h", "--http", "127.0.0.1:0"]
    daemon = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert daemon.stdout is not None
        found = re.search(r"http://[^,]*", daemon.stdout.readline())
        assert found is not None
        connect = _http(found[0], secret) if way == "http" else _socket(home)
        times, kept, refused = asyncio.run(_crowd(connect, callers, seconds, pause))
    finally:
        daemon.terminate()
        daemon.communicate(timeout=60)
    with open_memory(home) as memory:
        lost = sum(f"# New {title}" not in memory.read(f"new-{title}").text for title in kept)
    ordered = sorted(times)
    times_of = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95, 0.99))
    cells = (len(times), len(times) / seconds, *times_of, len(kept), refused, lost)
    print(f"{way:8}" + "".join(f"{cell:11,.0f}" if isinstance(cell, int) else f"{cell:11,.1f}" for cell in cells))
    return lost


async def _crowd(connect, callers: int, seconds: float, pause: float) -> tuple[list[float], list[str], int]:
    """The milliseconds of all calls, the titles whose writing was acknowledged, and how many calls were refused."""
    times: list[float] = []
    kept: list[str] = []
    refused = 0
    end = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        nonlocal refused
        chance, turn = Random(number), 0
        async with connect() as ask:
            while time.perf_counter() < end:
                turn += 1
                title = f"{number}x{turn}"
                begin = time.perf_counter()
                if turn % 5 == 0:
                    text = f"# New {title}\n\nof caller {number}"
                    said = await ask("write_note", {"title": f"New {title}", "content": text, "directory": ""})
                    if "# Created" in said:
                        kept.append(title)
                    else:
                        refused += 1
                else:
                    said = await ask("search_notes", {"query": rare_word(chance.randrange(2000))})
                    refused += "# " not in said
                times.append((time.perf_counter() - begin) * 1e3)
                await asyncio.sleep(pause * 2 * chance.random())

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return times, kept, refused


def _http(url: str, secret: str):
    """Connections of HTTP by hand, kept open: a client library would take as long as the server."""
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")

    @asynccontextmanager
    async def connect():
        reader, writer = await asyncio.open_connection(host, int(port))

        async def ask(tool: str, arguments: dict[str, object]) -> str:
            params = {"name": tool, "arguments": arguments}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
            head = (
                f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {secret}\r\n"
                "Accept: application/json\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
            return (await reader.readexactly(length)).decode() if " 200 " in answer[:20] else "refused"

        yield ask
        writer.close()

    return connect


def _socket(home: Path):
    @asynccontextmanager
    async def connect():
        reader, writer = await asyncio.open_unix_connection(str(home / "memory.sock"), limit=1 << 22)

        async def ask(tool: str, arguments: dict[str, object]) -> str:
            request = {"id": 1, "method": "tools/call", "params": {"name": tool, "params": arguments}, "agent": "bench"}
            writer.write(json.dumps(request).encode() + b"\n")
            return (await reader.readline()).decode()

        yield ask
        writer.close()

    return connect


if __name__ == "__main__":
    sys.exit(main())
