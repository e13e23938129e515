"""The frame of every page: the rail with its counts, which are determined beside the page.

Counting the questions takes longer than showing a page. So a page shows the last known counts, and
a script asks for the present ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from starlette.requests import Request
from starlette.responses import Response

from memoranda.index.rows import NoteInfo
from memoranda.note.model import TRACE_PROJECT
from memoranda.query import Query
from memoranda.serve.page.calendar import reminder_rows
from memoranda.serve.page.people import count_people
from memoranda.serve.page.questions import look_again
from memoranda.serve.page.visit import Visit

PRESENT = timedelta(minutes=10)
"""How long after its last call an agent counts as present."""
LATELY = timedelta(days=30)
# Notes and agents named in the rail.
_PINNED = 6
_AGENTS = 6
_COUNTING = Lock()


@dataclass
class Presence:
    """An agent, the time when it was last seen, and whether it works now."""

    agent: str
    last: datetime
    is_present: bool


@dataclass
class RailCounts:
    """The numbers and names in the rail. `kinds`: how many open questions of each kind."""

    stamp: str
    kinds: Counter[str] = field(default_factory=Counter)
    due: int = 0
    notes: int = 0
    people: int = 0
    notices: int = 0
    pinned: list[NoteInfo] = field(default_factory=list)
    agents: list[Presence] = field(default_factory=list)

    @property
    def questions(self) -> int:
        """All open questions."""
        return self.kinds.total()


def known_counts(request: Request) -> RailCounts | None:
    """The last known counts. None if they were never determined."""
    counts = getattr(request.app.state, "rail", None)
    if isinstance(counts, RailCounts):
        return counts
    return None


def rail(visit: Visit) -> Response:
    """The rail with the counts of now."""
    _current_counts(visit).agents = presence(visit)
    return visit.html("rail.html", path=visit.text("at") or "/page")


def needs(visit: Visit) -> Response:
    """How many questions of each kind wait for the owner."""
    _current_counts(visit)
    return visit.html("needs.html")


def _current_counts(visit: Visit) -> RailCounts:
    """The present counts. Simultaneous requests share one count."""
    with _COUNTING:
        # The stamp is read first: what is written while we count makes the counts old
        stamp = visit.memory.journal_stamp()
        counts = known_counts(visit.request)
        if counts is None or counts.stamp != stamp:
            counts = count(visit, stamp)
            visit.request.app.state.rail = counts
        return counts


def menu(visit: Visit) -> Response:
    """Return the page with the part of the rail a phone has no room for."""
    return visit.html("menu.html")


def count(visit: Visit, stamp: str) -> RailCounts:
    """Everything the rail says but who is present."""
    memory = visit.memory
    totals = memory.stats()
    rows = reminder_rows(memory)
    pinned, _ = memory.list(Query(archived=False, pinned=True), limit=_PINNED)
    return RailCounts(
        stamp,
        Counter(item.kind for item in look_again(visit)),
        sum(row.state in ("overdue", "due") for row in rows),
        totals.total - totals.projects.get(TRACE_PROJECT, 0),
        count_people(memory),
        len(memory.unreadable) + len(memory.warnings),
        pinned,
    )


def presence(visit: Visit) -> list[Presence]:
    """The agents that were here lately, those at work first."""
    now = visit.now
    last_seen: dict[str, datetime] = {}
    # The latest changes name all active agents, however long the log is.
    for change in visit.memory.log(limit=500, since=now - LATELY):
        if change.agent:
            last_seen.setdefault(change.agent, datetime.fromisoformat(change.time))
    for session in visit.connected():
        if session.agent:
            previous_time = last_seen.get(session.agent, session.last)
            last_seen[session.agent] = max(previous_time, session.last)
    agents = [Presence(agent, last, now - last < PRESENT) for agent, last in last_seen.items()]
    return sorted(agents, key=lambda agent: agent.last, reverse=True)[:_AGENTS]
