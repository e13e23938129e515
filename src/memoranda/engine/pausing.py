"""Pause agents. A paused agent can neither read nor write until the owner resumes it."""

from __future__ import annotations

from typing import Any, Protocol

from memoranda.errors import AgentPaused, InvalidInput


class Caller(Protocol):
    """The caller of a verb.

    engine: the open home.
    agent: the name of the agent; None for the owner.
    """

    engine: Any
    agent: str | None


def paused_agents(caller: Caller) -> list[str]:
    """Return the names of the paused agents. Raises StorageError."""
    names: list[str] = caller.engine.ledger.paused_rows.names()
    return names


def set_paused(caller: Caller, agent: str, is_paused: bool) -> None:
    """Pause or resume an agent.

    agent: the name of the agent. Case does not matter.
    is_paused: True pauses the agent, False resumes it.

    Raises InvalidInput if the caller is not the owner, and StorageError.
    """
    if caller.agent is not None:
        raise InvalidInput("only the owner pauses agents")
    caller.engine.ledger.paused_rows.set_paused(agent.lower(), is_paused)


def check_not_paused(caller: Caller) -> None:
    """Raise AgentPaused if the caller is a paused agent."""
    if caller.agent is not None and caller.engine.ledger.paused_rows.has(caller.agent):
        raise AgentPaused(caller.agent)
