"""The face `kv`: seven tools that keep short texts under a key in a namespace (contract 004)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from memoranda.errors import InvalidInput
from memoranda.faces.arguments import Arguments
from memoranda.faces.reply import Reply
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Toolset, declared_tools

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.entries import Entries
    from memoranda.engine.json_entries import JsonEntryFolder

# The engine is imported by the first call, not by the handshake.


class JsonFolder:
    """Returns a caller's entries from the JSON files of an agent-memory folder.

    It may be passed to `toolset` as `open_entries`. Call `close` after the last call.
    """

    def __init__(self, folder: str):
        self._folder = folder
        # The first call opens it.
        self._opened_folder: JsonEntryFolder | None = None

    def __call__(self, memory: MemorySession) -> Entries:
        from memoranda.engine.json_entries import JsonEntryFolder

        if self._opened_folder is None:
            self._opened_folder = JsonEntryFolder(self._folder)
        return self._opened_folder.entries(memory)

    def close(self) -> None:
        """Write into the files how often entries were read."""
        if self._opened_folder is not None:
            self._opened_folder.fold()


def toolset(
    open_entries: Callable[[MemorySession], Entries] | None = None, *, tells_others: bool = True
) -> Toolset:
    """Make the toolset `kv`.

    open_entries: returns a caller's entries. None means that entries are notes.
    tells_others: whether replies have fields about the notes of other projects. The server of
        contract 004 has no such fields.
    """
    tools = declared_tools(
        "kv-tools.json",
        lambda name: partial(_run, name, open_entries, tells_others),
        contract="kv",
        refuse=_refuse,
    )
    return Toolset("kv", tools, instructions=text_file("kv-instructions.md").strip())


def _run(
    name: str,
    open_entries: Callable[[MemorySession], Entries] | None,
    tells_others: bool,
    memory: MemorySession,
    arguments: Arguments,
) -> Reply:
    """Run the tool `name` on the caller's entries.

    open_entries: returns a caller's entries. None means that entries are notes.
    tells_others: whether replies have fields about the notes of other projects.
    """
    from memoranda.engine.entries import NoteEntries
    from memoranda.faces.kv.entry_tools import Store, answer

    entries = NoteEntries(memory) if open_entries is None else open_entries(memory)
    other_notes = memory if tells_others else None
    return answer(name, Store(entries, other_notes), arguments)


def _refuse(error: InvalidInput) -> Reply:
    """Return the reply for arguments that do not fit."""
    from memoranda.faces.kv.entry_tools import LIMIT

    return Reply(str(error)[:LIMIT], is_error=True)
