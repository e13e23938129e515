"""Agents: who is here, what each of them wrote, used and may do; tokens; what may be paused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from memoranda.clock import stamp
from memoranda.engine.doctor import examine
from memoranda.engine.overview import Writer, figures, writers, written_today
from memoranda.engine.pausing import paused_agents, set_paused
from memoranda.errors import InvalidInput
from memoranda.serve.page.shell import PRESENT
from memoranda.serve.page.visit import HOME, Visit

LATELY = timedelta(days=30)
_SPANS = {
    "1 hour": timedelta(hours=1),
    "1 day": timedelta(days=1),
    "1 week": timedelta(weeks=1),
}
"""How far back everything an agent did can be taken back at once."""
_WEEKS = 12


@dataclass
class AgentCard:
    """An agent with all its clients. `name` None: the owner."""

    name: str | None
    clients: list[str] = field(default_factory=list)
    verbs: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    last: str = ""
    is_present: bool = False
    is_paused: bool = False
    today: int = 0

    @property
    def changes(self) -> int:
        """All its changes in the time looked at."""
        return self.verbs.total()


def show(visit: Visit) -> Response:
    """All agents that wrote lately, or are connected, and the tokens."""
    memory = visit.memory
    state = visit.request.app.state
    now = visit.now
    return visit.html(
        "agents.html",
        agents=_cards(visit),
        tokens=[(token, token.is_valid(now)) for token in state.server.access.tokens()],
        seen=state.server.seen,
        spans=list(_SPANS),
        has_writers=bool(memory.log(limit=1)),
    )


def _cards(visit: Visit) -> list[AgentCard]:
    memory = visit.memory
    now = visit.now
    cards: dict[str | None, AgentCard] = {}
    for writer in writers(memory, now - LATELY):
        _add_writer(cards, writer)
    sessions = visit.request.app.state.sessions
    for session in sessions.connected() if sessions else ():
        card = cards.setdefault(session.agent, AgentCard(session.agent))
        card.last = max(card.last, stamp(session.last))
        card.is_present |= now - session.last < PRESENT
        if session.client not in card.clients:
            card.clients.append(session.client)
    today = written_today(memory)
    paused = paused_agents(memory)
    for name in paused:
        cards.setdefault(name, AgentCard(name))
    for card in cards.values():
        card.today = today[card.name].notes if card.name in today else 0
        card.is_paused = card.name in paused
    return sorted(cards.values(), key=lambda card: card.last, reverse=True)


def _add_writer(cards: dict[str | None, AgentCard], writer: Writer) -> None:
    card = cards.setdefault(writer.agent, AgentCard(writer.agent))
    card.verbs.update(writer.verbs)
    card.sessions += len(writer.sessions)
    card.last = max(card.last, writer.last)
    if writer.client and writer.client not in card.clients:
        card.clients.append(writer.client)


def pause(visit: Visit) -> Response:
    """Pause an agent, or let it go on."""
    name = visit.text("agent")
    if not name:
        raise InvalidInput("Say which agent.")
    set_paused(visit.memory, name, visit.text("do") == "pause")
    return visit.back(f"{HOME}/agents")


def undo_since(visit: Visit) -> Response:
    """Take back everything an agent did within a time, as one change; ask first."""
    memory = visit.memory
    name = visit.text("agent")
    span = visit.text("span")
    if span not in _SPANS:
        raise InvalidInput(f"`span` must be one of {', '.join(_SPANS)}")
    since = visit.now - _SPANS[span]
    if visit.text("sure") != "yes":
        return visit.html(
            "undo_since.html",
            agent=name,
            span=span,
            changes=[
                change
                for change in memory.log(limit=0, agent=name, since=since)
                if change.undoes is None
            ],
        )
    memory.undo_changes_of(name, since)
    return visit.back(f"{HOME}/agents")


def revoke(visit: Visit) -> Response:
    """Make a token invalid."""
    visit.request.app.state.server.access.revoke(visit.fields.get("token", ""))
    return visit.back(f"{HOME}/agents")


def health_json(visit: Visit) -> dict[str, Any]:
    """Size, growth and writers; for the owner."""
    memory = visit.memory
    if memory.agent is not None:
        raise InvalidInput("only the owner may ask how the memory is")
    size = figures(memory)
    rounds = visit.request.app.state.rounds
    sessions = visit.request.app.state.sessions
    return {
        "projects": size.counts.projects,
        "bytes": size.bytes,
        "index_bytes": size.index_bytes,
        "history_bytes": size.history_bytes,
        "weeks": {week.isoformat(): number for week, number in size.weeks},
        "writers": [_writer_row(writer) for writer in writers(memory, visit.now - LATELY)],
        "connected": [
            {
                "agent": session.agent,
                "client": session.client,
                "since": stamp(session.began),
                "last": stamp(session.last),
            }
            for session in (sessions.connected() if sessions else ())
        ],
        "findings": [
            {
                "level": finding.level,
                "code": finding.code,
                "path": finding.path,
                "text": finding.text,
                "fix": finding.fix,
            }
            for finding in examine(memory)
        ],
        "next_round": _next_round(rounds),
    }


def _next_round(rounds: Any) -> str | None:
    following: datetime | None = rounds.next if rounds else None
    return following.isoformat() if following else None


def _writer_row(writer: Writer) -> dict[str, Any]:
    return {
        "agent": writer.agent,
        "client": writer.client,
        "last": writer.last,
        "changes": dict(writer.verbs),
        "sessions": len(writer.sessions),
    }
