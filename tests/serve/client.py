"""The official SDK's client, driven from synchronous tests."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import Implementation

from serve.forked import Forked
from serve.process import SECONDS, environment

RELAY = "exec 3<&0; cat <&3 >/proc/$0/fd/$1 & exec 3<&-; exec cat </proc/$0/fd/$2"
"""Passes its input on to a pipe of a process, and what comes out of another one back."""


@asynccontextmanager
async def forked_stdio(command: list[str], user: Path | None = None) -> AsyncIterator[Any]:
    """The official transport over stdin and stdout to a forked server: what it starts is a relay to
    it.
    """
    server = Forked(command, env=environment(user), cwd=user, stderr=sys.__stderr__)
    pipes = [str(number) for number in (os.getpid(), server.stdin.fileno(), server.stdout.fileno())]
    async with stdio_client(
        StdioServerParameters(command="sh", args=["-c", RELAY, *pipes])
    ) as streams:
        try:
            yield streams
        # The relay holds them now, and its end is the server's
        finally:
            server.stdin.close()
            server.stdout.close()
    assert server.wait(SECONDS) == 0


class OfficialClient:
    """A connection to one server process. Use as a context manager: the server ends with the block."""

    def __init__(self, command: list[str], user: Path, name: str = "test", mode: str = "legacy"):
        self._client = Client(
            forked_stdio(command, user),
            mode=mode,
            client_info=Implementation(name=name, version="1"),
            read_timeout_seconds=SECONDS,
        )
        self._ends = ExitStack()

    def __enter__(self) -> OfficialClient:
        with self._ends as ends:
            self._portal = ends.enter_context(start_blocking_portal())
            client = self._portal.wrap_async_context_manager(self._client)
            ends.enter_context(client)
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ends.close()

    @property
    def instructions(self) -> str:
        """What the server told the model."""
        return self._client.instructions or ""

    def tools(self) -> list[dict[str, Any]]:
        """The tools as they came over the wire."""
        listed = self._portal.call(self._client.list_tools).tools
        return [tool.model_dump(by_alias=True, exclude_unset=True, mode="json") for tool in listed]

    def prompts(self) -> list[dict[str, Any]]:
        """The prompts as they came over the wire."""
        listed = self._portal.call(self._client.list_prompts).prompts
        return [
            prompt.model_dump(by_alias=True, exclude_unset=True, mode="json") for prompt in listed
        ]

    def prompt(self, name: str) -> list[Any]:
        """The messages of a prompt without arguments."""
        return self._portal.call(self._client.get_prompt, name).messages

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of a tool call: `text`, `is_error`, `structured`."""
        result = self._portal.call(self._client.call_tool, tool, arguments)
        block, *_ = result.content
        assert block.type == "text"
        return {
            "text": block.text,
            "is_error": result.is_error,
            "structured": result.structured_content,
        }
