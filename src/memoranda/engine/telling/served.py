"""Recording what agents received, after each call of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memoranda.ledger.served_rows import Served, ServedRows

if TYPE_CHECKING:
    from memoranda.engine.session import HomeSession

__all__ = ["Served", "log_of", "notes_given", "record_call"]

# The arguments of a tool that say what was asked for, the most telling first.
_TELLING_ARGUMENTS = (
    "query",
    "text",
    "identifier",
    "ref",
    "path",
    "name",
    "key",
    "topic",
    "url",
    "command",
)


def log_of(session: HomeSession) -> ServedRows:
    """Return the records of the notes that agents of this home were given."""
    return session.engine.ledger.served_rows


def record_call(session: HomeSession, tool: str, arguments: Mapping[str, Any]) -> None:
    """Record that a tool gave notes to an agent, and what the agent asked for.

    The owner can see these records. Nothing is recorded for calls of the owner, or if no note was
    given.

    tool: the name of the tool.
    arguments: the arguments of the call.
    """
    if session.agent is None or not session.served:
        return
    asked_for = ""
    for name in _TELLING_ARGUMENTS:
        argument = arguments.get(name)
        # Some tools take a list or an object under such a name.
        if isinstance(argument, str):
            asked_for = argument
            break
    log_of(session).add(session.engine.clock(), session.agent, tool, asked_for, session.served)
    # The notes are recorded once, and not again after the next call of this session.
    session.served = []


def notes_given(memory: HomeSession) -> tuple[int, set[str]]:
    """Return how many sessions of clients with hooks received notes, and the ids of these notes."""
    from memoranda.ledger.sessions import given_notes

    return given_notes(memory.engine.ledger.database)
