"""The face `agent`: the memory command as seven tools, and sessions that run a batch of calls
(contract 001, 14).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from memoranda.faces.arguments import Arguments
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Toolset, declared_tools

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.faces.reply import Reply


def toolset() -> Toolset:
    """Make the toolset `agent`.

    Its tools take more arguments than their schema has: see "Facts that change" in docs/format.md.
    """
    tools = declared_tools("agent-tools.json", lambda name: partial(_run, name), contract="agent")
    return Toolset("agent", tools, instructions=text_file("agent-instructions.md").strip())


def _run(name: str, memory: MemorySession, arguments: Arguments) -> Reply:
    """Run the tool `name`, and return its reply."""
    # The first call imports the engine: a server must answer the handshake quickly.
    from memoranda.faces.agent.session import (
        answer,
    )

    return answer(name, memory, arguments)
