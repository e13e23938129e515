"""The face `kv`: seven tools that keep short texts under a key in a namespace (contract 004)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.faces.kv import schema
from commonplace.faces.kv.replies import LIMIT
from commonplace.faces.reply import Reply
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Tool, Toolset

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.entries import Entries
    from commonplace.engine.json_entries import JsonEntryFolder


def note_entries(memory: Memory) -> Entries:
    """The caller's entries, kept as notes of the project `kv`."""
    from commonplace.engine.entries import NoteEntries

    return NoteEntries(memory)


class JsonFolder:
    """The callers' entries, kept in the JSON files of an agent-memory folder. Close it when the last call is done."""

    def __init__(self, folder: str):
        self._folder = folder
        self._place: JsonEntryFolder | None = None

    def __call__(self, memory: Memory) -> Entries:
        from commonplace.engine.json_entries import JsonEntryFolder  # needs the engine, which the handshake does not

        self._place = self._place or JsonEntryFolder(self._folder)
        return self._place.entries(memory)

    def close(self) -> None:
        """Add the recalls counted to the files."""
        if self._place is not None:
            self._place.fold()


def toolset(kept_in: Callable[[Memory], Entries] | None = None) -> Toolset:
    """The toolset `kv`; `kept_in` gives the place where a caller's entries are, else they are notes."""
    tools = [
        Tool(
            each["name"],
            each["description"],
            each["inputSchema"],
            partial(_run, each["name"], each["inputSchema"], kept_in or note_entries),
            annotations=each["annotations"],
            unknown="own",
        )
        for each in json.loads(text_file("kv-tools.json"))
    ]
    return Toolset("kv", tools, instructions=text_file("kv-instructions.md").strip())


def _run(name: str, shape: dict[str, Any], kept_in: Callable[[Memory], Entries], memory: Memory, given: Any) -> Reply:
    """Check the arguments, then let the tool answer; no reply is longer than the limit."""
    if wrong := schema.problem(shape, given):
        return Reply(f"Input validation error: {wrong}"[:LIMIT], is_error=True)
    from commonplace.faces.kv.tools import answer  # needs the engine, which the handshake does not

    return answer(name, kept_in(memory), {key: value for key, value in given.items() if value is not None})
