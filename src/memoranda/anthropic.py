"""Adapters for the Anthropic SDK's memory-tool classes (contract 000a, 10; extra
`memoranda[anthropic]`).

`client.beta.messages.tool_runner(tools=[MemoryTool()], ...)` gives Claude this memory through the
tool it knows. The API adds the memory protocol to the system prompt on its own.
"""

from __future__ import annotations

import os
from typing import Any

from memoranda.extras import install_command

try:
    from anthropic.lib.tools import ToolError
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
except ImportError as error:
    raise ImportError(
        f"memoranda.anthropic needs the Anthropic SDK 0.84 or newer: {install_command('anthropic')}"
    ) from error

from anyio import to_thread

from memoranda.engine import MemorySession, open_session
from memoranda.errors import InvalidInput
from memoranda.faces.memory_tool import MemoryCommands
from memoranda.sources.path_guard import clean

_FIELDS = "path view_range file_text old_str new_str insert_line insert_text old_path new_path"
_METHODS = ("view", "create", "str_replace", "insert", "delete", "rename", "clear_all_memory")


class _Commands:
    """The part that both tools share: a memory, and the six commands on one folder of it."""

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
            raise InvalidInput(
                f'create_existing must be "overwrite" or "error", got {create_existing!r}'
            )

        # Open the memory first: its settings are the defaults of the commands.
        place = clean(folder, "memories")
        self._memory: MemorySession = open_session(home, agent, face="anthropic")
        settings = self._memory.settings
        self._commands = MemoryCommands(
            create_existing=create_existing or settings.create_existing,
            view_max_characters=settings.view_max_characters,
            folder=place,
        )

    def close(self) -> None:
        """Release the memory's files."""
        self._memory.close()

    def _run(self, name: str, command: Any = None) -> str:
        """Run a command, and return the text of the reply. Raises ToolError.

        command: the SDK's command object. Its fields may be missing, or of a wrong type.
        """
        if name == "clear_all_memory":
            reply = self._commands.clear(self._memory)
        else:
            arguments = {field: getattr(command, field, None) for field in _FIELDS.split()}
            reply = self._commands.run(self._memory, {"command": name, **arguments})
        if reply.is_error:
            raise ToolError(reply.text)
        return reply.text


def _method(name: str) -> Any:
    """Return a method of the SDK's class that runs one command. It takes the command object, if any."""
    return lambda self, *command: self._run(name, *command)


def _async_method(name: str) -> Any:
    """Return the same method as a coroutine that runs in a worker thread."""

    async def run(self: _Commands, *command: Any) -> str:
        return await to_thread.run_sync(self._run, name, *command)

    return run


class MemoryTool(_Commands, BetaAbstractMemoryTool):
    """The memory tool for synchronous clients. It may be called from several threads.

    Close it when it is no longer used (`close`).

    home: the folder of the memory, or the address of a space in a database. None means the usual
        home (`open_memory`).
    agent: the name of the agent that uses the memory. None means the owner.
    folder: a folder in `memories` that the tool shows as `/memories`, such as one for each end
        user. "" means the whole of `memories`.
    create_existing: what `create` does if the file exists: `overwrite` or `error`. None means what
        the configuration says.
    cache_control: passed on to the SDK.

    Raises InvalidInput and OutsideError for arguments that cannot be used. The six commands, and
    `clear_all_memory`, which moves every file to the history, raise only the SDK's ToolError.
    """

    view, create, str_replace, insert, delete, rename, clear_all_memory = map(_method, _METHODS)


class AsyncMemoryTool(_Commands, BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for asynchronous clients: the same code in a worker thread."""

    view, create, str_replace, insert, delete, rename, clear_all_memory = map(
        _async_method, _METHODS
    )
