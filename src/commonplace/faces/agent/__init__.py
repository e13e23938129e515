"""The face `agent`: the memory command as seven tools, and sessions that run a batch of calls (contract 001, 14)."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from commonplace.faces.arguments import Arguments
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Tool, Toolset

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.faces.reply import Reply


def toolset() -> Toolset:
    """The toolset `agent`."""
    tools = []
    for each in json.loads(text_file("agent-tools.json")):
        shown, run = (each["name"], each["description"], each["inputSchema"]), partial(_run, each["name"])
        tools.append(Tool(*shown, run, annotations=each["annotations"], contract="agent"))
    return Toolset("agent", tools, instructions=text_file("agent-instructions.md").strip())


def _run(name: str, memory: Memory, arguments: Arguments) -> Reply:
    from commonplace.faces.agent.tools import answer  # needs the engine, which the handshake does not

    return answer(name, memory, arguments)
