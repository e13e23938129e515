"""Many callers of one home at once: what a call takes, and whether anything is lost.

    python bench/callers.py [--callers 100] [--seconds 60] [--notes 2000] [--ways socket,http]
    python bench/callers.py --pause 0 --every 1 --ways raw:1,socket:1,socket:100,processes:16
    (make bench-crowd)

`socket` and `http` are callers of one daemon, `processes` each have an MCP server of their own,
`mixed` is as many MCP clients, which the daemon then serves too, beside callers of the socket;
`raw` are threads that write a file with two syncs each, and nothing else. A number behind a colon
is how many. `cpu ms` is the processor time of the daemon for each call, where the system tells it.
Each caller writes a new note in one call of `--every` and searches in the others, with a
pause after each. Then every note that was acknowledged is looked for. All in a temporary folder;
two cores serve and call.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "src"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import plain  # noqa: E402
from memoranda import Draft  # noqa: E402
from memoranda.engine import open_session  # noqa: E402
from memoranda.serve.auth import Access  # noqa: E402
from vault import rare_word  # noqa: E402

MEMORY = [sys.executable, "-m", "memoranda"]
_ENVIRONMENT = os.environ | {"PYTHONPATH": str(HERE.parent / "src")}
Ask = Callable[[str, dict[str, object]], Awaitable[str]]
Connect = Callable[[], AbstractAsyncContextManager[Ask]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--callers", type=int, default=100, help="callers at once [100]")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long [60]")
    parser.add_argument(
        "--pause", type=float, default=1.0, help="seconds each takes between two calls [1]; 0: none"
    )
    parser.add_argument("--notes", type=int, default=2000, help="notes in the home before [2000]")
    parser.add_argument("--every", type=int, default=5, help="one call in N writes [5]")
    parser.add_argument(
        "--ways",
        default="socket,http",
        help="of raw, processes, socket, http, mixed, each also with"
        " a number of callers: socket:20 [socket,http]",
    )
    parser.add_argument("--processes", type=int, default=16, help="MCP servers at once [16]")
    options = parser.parse_args(arguments)
    titles = (
        "calls",
        "a second",
        "median ms",
        "p95",
        "p99",
        "cpu ms",
        "written",
        "refused",
        "lost",
    )
    print(" " * 14 + "".join(f"{title:>11}" for title in titles))
    lost = 0
    for way in options.ways.split(","):
        name, _, number = way.partition(":")
        if number:
            options.callers = options.processes = int(number)
        with tempfile.TemporaryDirectory(prefix="memoranda-bench-") as folder:
            lost += (
                _raw(way, Path(folder), options)
                if name == "raw"
                else _measured(way, Path(folder) / "home", options)
            )
    return int(lost > 0)


def _measured(way: str, home: Path, options: argparse.Namespace) -> int:
    with open_session(home) as memory:
        memory.write_many(
            [
                Draft(f"the {rare_word(at)} of {at}", title=f"Old {at}")
                for at in range(options.notes)
            ]
        )
    secret = Access(home).add("bench", rate=0)[1]
    command = [*MEMORY, "serve", "--home", str(home), "--interval", "1h", "--http", "127.0.0.1:0"]
    daemon = None
    kind = way.partition(":")[0]
    cpu = 0.0
    try:
        processes = [_process(home)] * options.processes
        if kind == "processes":
            connects = processes
        else:
            daemon = subprocess.Popen(
                command,
                env=_ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert daemon.stdout is not None
            address = re.search(r"http://[^,]*", daemon.stdout.readline())
            assert address is not None
            served = [
                _http(address[0], secret) if kind == "http" else connect_socket(home)
            ] * options.callers
            connects = served + (processes if kind == "mixed" else [])
        before = _processor_seconds(daemon)
        times, acknowledged, refused = asyncio.run(crowd(connects, options))
        cpu = 1e3 * (_processor_seconds(daemon) - before) / len(times)
    finally:
        if daemon is not None:
            daemon.terminate()
            daemon.communicate(timeout=60)
    with open_session(home) as memory:
        lost = sum(
            f"# New {title}" not in memory.read(f"new-{title}").text for title in acknowledged
        )
    _show(way, times, options.seconds, len(acknowledged), refused, lost, cpu)
    return lost


def _processor_seconds(process: subprocess.Popen[str] | None) -> float:
    """What the process has used so far, 0 where only its end would tell."""
    try:
        fields = (
            Path(f"/proc/{process.pid if process else 0}/stat")
            .read_text()
            .rpartition(")")[2]
            .split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _show(
    way: str,
    times: Sequence[float],
    seconds: float,
    acknowledged: int,
    refused: int = 0,
    lost: int = 0,
    cpu: float = 0.0,
) -> None:
    ordered = sorted(times)
    last = len(ordered) - 1
    times_of = [ordered[int(share * last)] for share in (0.5, 0.95, 0.99)]
    rate = len(times) / seconds
    row = f"{way:14}"
    for cell in (len(times), rate, *times_of, cpu, acknowledged, refused, lost):
        decimals = 0 if isinstance(cell, int) else 1
        row += f"{cell:11,.{decimals}f}"
    print(row)


def _raw(way: str, folder: Path, options: argparse.Namespace) -> int:
    """Nothing but durable files, by as many threads."""
    end = time.perf_counter() + options.seconds

    def writer(number: int) -> list[float]:
        times = []
        while (begin := time.perf_counter()) < end:
            plain.write(folder, f"{number}-{len(times)}.md", b"# New\n\nof a thread\n")
            times.append((time.perf_counter() - begin) * 1e3)
        return times

    with ThreadPoolExecutor(options.processes) as threads:
        times = []
        for some in threads.map(writer, range(options.processes)):
            times.extend(some)
    _show(way, times, options.seconds, len(times))
    return 0


async def crowd(
    connects: Sequence[Connect], options: argparse.Namespace
) -> tuple[list[float], list[str], int]:
    """The milliseconds of all calls, the titles whose writing was acknowledged, and how many calls
    were refused.
    """
    times: list[float] = []
    acknowledged: list[str] = []
    refused = 0
    end = 0.0
    ready = asyncio.Barrier(len(connects))

    async def caller(number: int, connect: Connect) -> None:
        nonlocal refused, end
        chance = Random(number)
        turn = 0
        async with connect() as ask:
            await ready.wait()
            end = end or time.perf_counter() + options.seconds
            while time.perf_counter() < end:
                turn += 1
                title = f"{number}x{turn}"
                begin = time.perf_counter()
                if turn % options.every == 0:
                    text = f"# New {title}\n\nof caller {number}"
                    reply = await ask(
                        "write_note", {"title": f"New {title}", "content": text, "directory": ""}
                    )
                    if "# Created" in reply:
                        acknowledged.append(title)
                    else:
                        refused += 1
                else:
                    reply = await ask("search_notes", {"query": rare_word(chance.randrange(2000))})
                    refused += "# " not in reply
                times.append((time.perf_counter() - begin) * 1e3)
                await asyncio.sleep(options.pause * 2 * chance.random())

    await asyncio.gather(*(caller(number, connect) for number, connect in enumerate(connects)))
    return times, acknowledged, refused


def _http(url: str, secret: str):
    """Connections of HTTP by hand, kept open: a client library would take as long as the server."""
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")

    @asynccontextmanager
    async def connect():
        reader, writer = await asyncio.open_connection(host, int(port))

        async def ask(tool: str, arguments: dict[str, object]) -> str:
            params = {"name": tool, "arguments": arguments}
            body = json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            ).encode()
            head = (
                f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {secret}\r\n"
                "Accept: application/json\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
            if " 200 " in answer[:20]:
                return (await reader.readexactly(length)).decode()
            return "refused"

        yield ask
        writer.close()

    return connect


def connect_socket(home: Path):
    @asynccontextmanager
    async def connect():
        reader, writer = await asyncio.open_unix_connection(
            str(home / "memory.sock"), limit=1 << 22
        )

        async def ask(tool: str, arguments: dict[str, object]) -> str:
            request = {
                "id": 1,
                "method": "tools/call",
                "params": {"name": tool, "params": arguments},
                "agent": "bench",
            }
            writer.write(json.dumps(request).encode() + b"\n")
            return (await reader.readline()).decode()

        yield ask
        writer.close()

    return connect


def _process(home: Path):
    """Start an MCP server for this caller alone, on its stdin and stdout."""

    @asynccontextmanager
    async def connect():
        process = await asyncio.create_subprocess_exec(
            *MEMORY,
            "mcp",
            "--home",
            str(home),
            env=_ENVIRONMENT,
            limit=1 << 22,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

        async def say(method: str, params: dict[str, object], **more: object) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            line = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more})
            process.stdin.write(line.encode() + b"\n")
            if more:
                return (await process.stdout.readline()).decode()
            return ""

        async def ask(tool: str, arguments: dict[str, object]) -> str:
            return await say("tools/call", {"name": tool, "arguments": arguments}, id=2)

        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        await say("initialize", client, id=1)
        await say("notifications/initialized", {})
        await ask("search_notes", {"query": "first"})
        yield ask
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()

    return connect


if __name__ == "__main__":
    sys.exit(main())
