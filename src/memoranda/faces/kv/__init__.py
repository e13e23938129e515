"""The face `kv`: seven tools that keep short texts under a key in a namespace (contract 004)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from memoranda.errors import InvalidInput
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Toolset, declared

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.entries import Entries
    from memoranda.engine.json_entries import JsonEntryFolder

# The engine is imported by the first call, not by the handshake.


class JsonFolder:
    """Returns a caller's entries from the JSON files of an agent-memory folder.

    It may be passed to `toolset` as `kept_in`. Call `close` after the last call.
    """

    def __init__(self, folder: str):
        self._folder = folder
        # Opened by the first call.
        self._place: JsonEntryFolder | None = None

    def __call__(self, memory: MemorySession) -> Entries:
        from memoranda.engine.json_entries import (
            JsonEntryFolder,
        )

        self._place = self._place or JsonEntryFolder(self._folder)
        return self._place.entries(memory)

    def close(self) -> None:
        """Write into the files how often entries were read."""
        if self._place is not None:
            self._place.fold()


def toolset(kept_in: Callable[[MemorySession], Entries] | None = None) -> Toolset:
    """Make the toolset `kv`.

    kept_in: returns a caller's entries. None means that entries are notes.
    """
    tools = declared(
        "kv-tools.json", lambda name: partial(_run, name, kept_in), contract="kv", refuse=_refuse
    )
    return Toolset("kv", tools, instructions=text_file("kv-instructions.md").strip())


def _run(
    name: str,
    kept_in: Callable[[MemorySession], Entries] | None,
    memory: MemorySession,
    arguments: Arguments,
) -> Reply:
    """Run the tool `name` on the caller's entries.

    kept_in: returns a caller's entries. None means that entries are notes.
    """
    from memoranda.engine.entries import NoteEntries
    from memoranda.faces.kv.entry_tools import answer

    return answer(name, kept_in(memory) if kept_in else NoteEntries(memory), arguments)


def _refuse(error: InvalidInput) -> Reply:
    """Return the reply for arguments that do not fit."""
    from memoranda.faces.kv.entry_tools import LIMIT

    return Reply(str(error)[:LIMIT], is_error=True)
