"""A `memory serve` process, and a client of its socket. Every wait is bounded."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from serve.forked import Forked
from serve.process import SECONDS, environment


class DaemonProcess:
    """`memory serve` on a home. Use as a context manager: it is killed with the block."""

    def __init__(self, home: Path, *arguments: str):
        self.home = home
        command = [sys.executable, "-m", "memoranda", "serve", "--home", str(home), *arguments]
        self.process = Forked(
            command, env=environment(home.parent), cwd=home.parent, stdin=DEVNULL, text=True
        )

    def __enter__(self) -> DaemonProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=SECONDS)

    def ready(self) -> str:
        """The line it says when it runs."""
        return self.process.stdout.readline().rstrip("\n")

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal and wait: (exit status, rest of stdout, stderr)."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err


_MOVING = threading.Lock()
"""The working directory is that of all threads."""


class Client:
    """One connection to a home's socket."""

    def __init__(self, home: Path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SECONDS)
        with _MOVING:
            folder_before = os.getcwd()
            # The path of a test's home may be too long for a socket
            os.chdir(home)
            try:
                self._socket.connect("memory.sock")
            finally:
                os.chdir(folder_before)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def ask(self, method: str, **more: Any) -> dict[str, Any]:
        """Send a request and read its reply."""
        self.send(json.dumps({"id": 1, "method": method, **more}).encode() + b"\n")
        return self.reply()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def reply(self) -> dict[str, Any]:
        return json.loads(self._file.readline())

    def rest(self) -> list[dict[str, Any]]:
        """The replies up to the end of the connection."""
        return [json.loads(line) for line in self._file]

    def call(self, tool: str, **params: Any) -> Any:
        """The content of a tool's result, read as JSON."""
        reply = self.ask(tool, params=params)
        assert "result" in reply, reply
        return json.loads(reply["result"]["content"])
