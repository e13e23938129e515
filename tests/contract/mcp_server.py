"""`memory mcp` as a process of its own, spoken to in JSON-RPC lines. Every wait is bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import commonplace

SECONDS = 60


def environment(**more: str) -> dict[str, str]:
    """This process's environment with our source on the path."""
    paths = [str(Path(commonplace.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


class Server:
    """A server and its one client; ends with the block."""

    def __init__(self, *arguments: str, client: str = "test", **env: str):
        program = [sys.executable, "-m", "commonplace", "mcp", *arguments]
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**env)
        )
        self._lines: Queue[bytes] = Queue()
        self._last = 0
        threading.Thread(target=self._gather, daemon=True).start()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}
        self.hello = self.ask("initialize", hello)["result"]
        self._write({"method": "notifications/initialized"})

    def _gather(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Send a request without waiting; its id."""
        self._last += 1
        self._write({"id": self._last, "method": method, "params": params})
        return self._last

    def receive(self) -> dict[str, Any]:
        """The next message."""
        line = self._lines.get(timeout=SECONDS)
        assert line, f"the server ended with status {self.process.poll()}"
        return json.loads(line)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The whole answer to one request."""
        number = self.send(method, params or {})
        answer = self.receive()
        assert answer["id"] == number
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool call that succeeds."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        return result["structuredContent"]

    def close(self) -> int:
        """End the input and wait for the server to go; its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
