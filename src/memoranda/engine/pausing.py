"""Agents the owner paused: they read and write nothing until they may go on."""

from __future__ import annotations

import json
from typing import Any, Protocol

from memoranda.errors import AgentPaused, InvalidInput
from memoranda.store.files import put_derived


class Caller(Protocol):
    """Who calls: `agent` None is the owner."""

    engine: Any
    agent: str | None


def paused_agents(caller: Caller) -> list[str]:
    """The names of the agents that are paused."""
    return _read(caller.engine)


def set_paused(caller: Caller, agent: str, is_paused: bool) -> None:
    """Pause an agent, or let it go on. Raises InvalidInput for another caller than the owner."""
    if caller.agent is not None:
        raise InvalidInput("only the owner pauses agents")
    names = set(_read(caller.engine))
    if is_paused:
        names.add(agent.lower())
    else:
        names.discard(agent.lower())
    data = json.dumps({"agents": sorted(names)}).encode()
    put_derived(caller.engine.layout.paused, data)


def check_not_paused(caller: Caller) -> None:
    """Raises AgentPaused for a caller that is a paused agent."""
    if caller.agent is not None and caller.agent in _read(caller.engine):
        raise AgentPaused(caller.agent)


def _read(engine: Any) -> list[str]:
    try:
        names = json.loads(engine.layout.paused.read_bytes())["agents"]
    except FileNotFoundError:
        return []
    # A damaged file pauses nobody: it holds nothing that cannot be said again
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str)]
