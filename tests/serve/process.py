"""A server process, forked or started (forked.py), driven by hand-written lines. Every wait is
bounded.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from queue import Queue

from serve.forked import Forked, run

SECONDS = 60
MINI = [sys.executable, str(Path(__file__).with_name("mini_server.py"))]
SOURCE = str(Path(__file__).parents[2] / "src")


def environment(user: Path | None = None) -> dict[str, str]:
    """This process's environment, our source first on the path; with `user` that of a person at
    home there.
    """
    paths = [SOURCE, os.environ.get("PYTHONPATH", "")]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # Or each server compiles all it imports
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    if user is not None:
        variables |= {"HOME": str(user), "TZ": "UTC"}
        for name in ("MEMORY_HOME", "MEMORY_AGENT", "BASIC_MEMORY_CONFIG_DIR"):
            variables.pop(name, None)
    return variables


def memory_mcp(home: Path, *arguments: str) -> list[str]:
    """The command line of `memory mcp` on `home`."""
    return [sys.executable, "-m", "memoranda", "mcp", "--home", str(home), *arguments]


def run_memory(home: Path, *words: str) -> str:
    """Return what `memory`, run on `home` as a separate process, prints; it must end well and warn of
    nothing.
    """
    command = [sys.executable, "-m", "memoranda", *words, "--home", str(home)]
    process = run(command, env=environment(home.parent), timeout=SECONDS)
    assert (process.returncode, process.stderr) == (0, b""), process
    return process.stdout.decode()


def connected(
    home: Path, *arguments: str, user: Path | None = None, client: str = "test", **more
) -> ServerProcess:
    """`memory mcp` on `home`, started by a person at home in `user` [the folder above], after its
    handshake.
    """
    server = ServerProcess(command=memory_mcp(home, *arguments), user=user or home.parent, **more)
    server.hello = server.handshake(client=client)
    return server


class ServerProcess:
    """A server's stdin and stdout. Use as a context manager: it ends with the block."""

    def __init__(
        self,
        *arguments: str,
        command: list[str] | None = None,
        user: Path | None = None,
        umask: int = -1,
    ):
        self.process = Forked(
            [*(command or MINI), *arguments], env=environment(user), cwd=user, umask=umask
        )
        self._lines: Queue[bytes] = Queue()
        self._errors: Queue[bytes] = Queue()
        self._last = 0
        for stream, queue in (
            (self.process.stdout, self._lines),
            (self.process.stderr, self._errors),
        ):
            threading.Thread(target=self._gather, args=(stream, queue), daemon=True).start()

    @staticmethod
    def _gather(stream, queue: Queue[bytes]) -> None:
        for line in stream:
            queue.put(line)
        queue.put(b"")

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: object = None, **more: object) -> int:
        """Send a request and return its id; do not wait."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, **more}
        if params is not None:
            message["params"] = params
        line = json.dumps(message) + "\n"
        self.write(line.encode())
        return self._last

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method} | (
            {} if params is None else {"params": params}
        )
        self.write(json.dumps(message).encode() + b"\n")

    def line(self) -> bytes:
        """The next line from the server, as it came."""
        line = self._lines.get(timeout=SECONDS)
        assert line, f"the server ended: {self.errors()}"
        return line

    def receive(self) -> dict:
        """The next message from the server."""
        message = json.loads(self.line())
        assert message["jsonrpc"] == "2.0"
        return message

    def ask(self, method: str, params: object = None) -> dict:
        """The answer to a request; nothing else may come first."""
        id = self.send(method, params)
        answer = self.receive()
        assert answer["id"] == id, answer
        return answer

    def call(self, tool: str, arguments: object = None) -> dict:
        """The result of a tool call."""
        return self.ask(
            "tools/call", {"name": tool, "arguments": {} if arguments is None else arguments}
        )["result"]

    def text(self, tool: str, arguments: object = None) -> str:
        """The text of a tool call that is no error."""
        result = self.call(tool, arguments)
        assert not result["isError"], result
        return result["content"][0]["text"]

    def handshake(self, version: str = "2025-06-18", client: str = "test") -> dict:
        """`initialize` and its notification; the server's answer."""
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": client, "version": "0"},
        }
        answer = self.ask("initialize", params)["result"]
        self.notify("notifications/initialized")
        return answer

    def modern(self, method: str, client: str | None = "test", **params: object) -> dict:
        """The answer to a request of the revision without a handshake, where each says who asks."""
        return self.ask(method, {**params, "_meta": self.envelope(client)})

    @staticmethod
    def envelope(client: str | None) -> dict[str, object]:
        """What a request of revision 2026-07-28 carries; `client` None does not say who asks."""
        key = "io.modelcontextprotocol/"
        meta: dict[str, object] = {
            key + "protocolVersion": "2026-07-28",
            key + "clientCapabilities": {},
        }
        if client is None:
            return meta
        return meta | {key + "clientInfo": {"name": client, "version": "1"}}

    def error_line(self) -> str:
        """The next line on stderr."""
        return self._errors.get(timeout=SECONDS).decode()

    def until_error_line(self, words: str) -> str:
        """The first line on stderr that holds `words`."""
        while words not in (line := self.error_line()):
            assert line, f"stderr ended without {words!r}"
        return line

    def close(self) -> int:
        """Close stdin and return the exit status."""
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def rest(self) -> list[dict]:
        """All messages up to the end of the server's output."""
        messages = []
        while line := self._lines.get(timeout=SECONDS):
            messages.append(json.loads(line))
        return messages

    def errors(self) -> str:
        """All of stderr up to its end; the server has stopped, or is about to."""
        return b"".join(iter(lambda: self._errors.get(timeout=SECONDS), b"")).decode()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
