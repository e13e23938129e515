"""`memory mcp` as a separate process, after its handshake."""

from __future__ import annotations

import os
import sys
from typing import Any
from unittest.mock import patch

from serve import process
from serve.process import SECONDS, ServerProcess

__all__ = ["SECONDS", "Server", "environment"]


def environment(**more: str) -> dict[str, str]:
    """This process's environment with our source on the path."""
    return {**process.environment(), **more}


class Server(ServerProcess):
    """A server and its one client; `env` goes on top of this process's environment."""

    def __init__(self, *arguments: str, client: str = "test", **env: str):
        with patch.dict(os.environ, env):
            super().__init__(command=[sys.executable, "-m", "memoranda", "mcp", *arguments])
        self.hello = self.handshake(client=client)

    def begin(self, tool: str, **arguments: Any) -> int:
        """Send a tool call without waiting; its id."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, arguments: object = None, **named_arguments: Any) -> dict[str, Any]:
        """The result of a tool call."""
        return super().call(tool, named_arguments or arguments)

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool call that succeeds."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        return result["structuredContent"]
