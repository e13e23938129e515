"""Agents that the owner paused: they cannot read or write until the owner resumes them."""

from __future__ import annotations

from typing import Any, Protocol

from memoranda.errors import AgentPaused, InvalidInput


class Caller(Protocol):
    """The caller of a verb.

    agent: the agent's name. None is the owner.
    """

    engine: Any
    agent: str | None


def paused_agents(caller: Caller) -> list[str]:
    """The names of the agents that are paused. Raises StorageError."""
    names: list[str] = caller.engine.ledger.paused_rows.names()
    return names


def set_paused(caller: Caller, agent: str, is_paused: bool) -> None:
    """Pause an agent, or let it go on. Raises StorageError.

    Raises InvalidInput for any caller but the owner.
    """
    if caller.agent is not None:
        raise InvalidInput("only the owner pauses agents")
    caller.engine.ledger.paused_rows.set_paused(agent.lower(), is_paused)


def check_not_paused(caller: Caller) -> None:
    """Raise AgentPaused if the caller is a paused agent."""
    if caller.agent is not None and caller.engine.ledger.paused_rows.has(caller.agent):
        raise AgentPaused(caller.agent)
