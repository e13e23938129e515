"""The face `agent`: the memory command as seven tools, and sessions that run a batch of calls (contract 001, 14)."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.faces.arguments import Arguments
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Tool, Toolset

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.reply import Reply

_TEXT = {"type": "string"}
_ALSO: dict[str, dict[str, Any]] = {
    "memory_write": {"supersedes": {"type": "list"}, "valid_from": _TEXT, "valid_until": _TEXT},
    **{name: {"as_of": _TEXT} for name in ("memory_read", "memory_list", "memory_search", "memory_smart_search")},
}
"""Arguments that are taken besides those of the schema (docs/format.md, Facts that change)."""


def toolset() -> Toolset:
    """The toolset `agent`."""
    tools = []
    for each in json.loads(text_file("agent-tools.json")):
        shown, run = (each["name"], each["description"], each["inputSchema"]), partial(_run, each["name"])
        also = _ALSO.get(each["name"], {})
        tools.append(Tool(*shown, run, annotations=each["annotations"], contract="agent", also=also))
    return Toolset("agent", tools, instructions=text_file("agent-instructions.md").strip())


def _run(name: str, memory: Memory, arguments: Arguments) -> Reply:
    from commonplace.faces.agent.tools import answer  # needs the engine, which the handshake does not

    return answer(name, memory, arguments)
