"""Adapters for the Anthropic SDK's memory-tool classes (contract 000a, 10; extra `commonplace[anthropic]`).

`client.beta.messages.tool_runner(tools=[MemoryTool()], ...)` gives Claude this memory through the tool it
knows. The API adds the memory protocol to the system prompt by itself.
"""

from __future__ import annotations

import os
from typing import Any

try:
    from anthropic.lib.tools import ToolError
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
except ImportError as error:
    raise ImportError(
        "commonplace.anthropic needs the Anthropic SDK 0.84 or newer: pip install 'commonplace[anthropic]'"
    ) from error

from anyio import to_thread

from commonplace.engine import Memory, open_memory
from commonplace.errors import InvalidInput
from commonplace.faces.memory_tool import MemoryCommands
from commonplace.faces.reply import Reply
from commonplace.store.path_guard import clean

_FIELDS = "path view_range file_text old_str new_str insert_line insert_text old_path new_path"


class _Commands:
    """A memory and the six commands on one folder of it: what both tools share."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        folder: str = "",
        create_existing: str | None = None,
        cache_control: Any = None,
    ):
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]  # the SDK's class comes next
        if create_existing not in (None, "overwrite", "error"):
            raise InvalidInput(f'create_existing must be "overwrite" or "error", got {create_existing!r}')
        place = clean(folder, "memories")
        self._memory: Memory = open_memory(home, agent, face="anthropic")
        settings = self._memory.settings
        self._commands = MemoryCommands(
            create_existing=create_existing or settings.create_existing,
            view_max_characters=settings.view_max_characters,
            folder=place,
        )

    def close(self) -> None:
        """Release the memory's files."""
        self._memory.close()

    def _run(self, name: str, command: Any) -> str:
        """The text for the SDK's command object, whose fields may be missing or of a wrong type. Raises ToolError."""
        arguments = {field: getattr(command, field, None) for field in _FIELDS.split()}
        return _text(self._commands.run(self._memory, {"command": name, **arguments}))

    def _clear(self) -> str:
        return _text(self._commands.clear(self._memory))


def _text(reply: Reply) -> str:
    if reply.is_error:
        raise ToolError(reply.text)
    return reply.text


class MemoryTool(_Commands, BetaAbstractMemoryTool):
    """The memory tool for synchronous clients. Safe to call from several threads.

    `home`: as for `open_memory`. `agent`: the caller's identity. `folder` (relative) makes `/memories` the
    folder `<home>/memories/<folder>`, e.g. one per end user. `create_existing` (`overwrite` or `error`)
    overrides the configuration; `cache_control` goes to the SDK. Raises InvalidInput, OutsideError for
    arguments it cannot use; the six methods raise nothing but the SDK's ToolError.
    """

    def view(self, command: Any) -> str:
        """List a directory or show a file."""
        return self._run("view", command)

    def create(self, command: Any) -> str:
        """Write a whole file."""
        return self._run("create", command)

    def str_replace(self, command: Any) -> str:
        """Replace text that occurs once."""
        return self._run("str_replace", command)

    def insert(self, command: Any) -> str:
        """Insert text after a line."""
        return self._run("insert", command)

    def delete(self, command: Any) -> str:
        """Delete a file or directory."""
        return self._run("delete", command)

    def rename(self, command: Any) -> str:
        """Move a file or directory."""
        return self._run("rename", command)

    def clear_all_memory(self) -> str:
        """Move every file to the history."""
        return self._clear()


class AsyncMemoryTool(_Commands, BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for asynchronous clients: the same code in a worker thread."""

    async def view(self, command: Any) -> str:
        """List a directory or show a file."""
        return await to_thread.run_sync(self._run, "view", command)

    async def create(self, command: Any) -> str:
        """Write a whole file."""
        return await to_thread.run_sync(self._run, "create", command)

    async def str_replace(self, command: Any) -> str:
        """Replace text that occurs once."""
        return await to_thread.run_sync(self._run, "str_replace", command)

    async def insert(self, command: Any) -> str:
        """Insert text after a line."""
        return await to_thread.run_sync(self._run, "insert", command)

    async def delete(self, command: Any) -> str:
        """Delete a file or directory."""
        return await to_thread.run_sync(self._run, "delete", command)

    async def rename(self, command: Any) -> str:
        """Move a file or directory."""
        return await to_thread.run_sync(self._run, "rename", command)

    async def clear_all_memory(self) -> str:
        """Move every file to the history."""
        return await to_thread.run_sync(self._clear)
