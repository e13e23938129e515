"""Shows the rail: the navigation at the side of every page, with counts and names.

Counting the open questions takes longer than showing a page. So a page shows the last known counts,
and its script asks for the present ones. What the owner pinned, put off or did counts at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import wraps
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.index.rows import NoteInfo
from memoranda.note.model import TRACE_PROJECT
from memoranda.query import Query
from memoranda.serve.page.calendar import reminder_rows
from memoranda.serve.page.people.people_page import count_people
from memoranda.serve.page.review.questions import look_again
from memoranda.serve.page.today.change_rows import is_machinery
from memoranda.serve.page.visit import View, Visit

PRESENT = timedelta(minutes=10)
"""How long after its last call an agent counts as present."""
LATELY = timedelta(days=30)
# Pinned notes and agents that the rail names.
_MAX_PINNED = 6
_MAX_AGENTS = 6
# Held while the counts are determined, so that several requests share them.
_COUNTING = Lock()


@dataclass
class Presence:
    """An agent, the time when it was last seen, and whether it works now."""

    agent: str
    last: datetime
    is_present: bool


@dataclass
class RailCounts:
    """The numbers and names in the rail.

    stamp: the stamp of the ledger when they were counted.
    kinds: how many open questions there are of each kind.
    due: how many reminders are due or overdue.
    notices: how many files cannot be read or have warnings.
    """

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
        """How many questions are open."""
        return self.kinds.total()


def known_counts(request: Request) -> RailCounts | None:
    """Return the last known counts. None if they were never determined."""
    counts = getattr(request.app.state, "rail", None)
    if isinstance(counts, RailCounts):
        return counts
    return None


def rail(visit: Visit) -> Response:
    """Show the rail with the present counts."""
    _current_counts(visit).agents = presence(visit)
    return visit.html("rail.html", path=visit.text("at") or "/page")


def needs(visit: Visit) -> Response:
    """Show how many questions of each kind wait for the owner."""
    _current_counts(visit)
    return visit.html("needs.html")


def _current_counts(visit: Visit) -> RailCounts:
    """Return the present counts. They are counted again only if the ledger has changed."""
    with _COUNTING:
        # Read before counting, so that a change made meanwhile makes the counts outdated.
        stamp = visit.memory.journal_stamp()
        counts = known_counts(visit.request)
        if counts is None or counts.stamp != stamp:
            counts = count_all(visit, stamp)
            visit.request.app.state.rail = counts
        return counts


def menu(visit: Visit) -> Response:
    """Show the part of the rail (the side menu) that a phone has no room for, as a page."""
    return visit.html("menu.html")


def count_all(visit: Visit, stamp: str) -> RailCounts:
    """Determine the counts and the pinned notes. The agents are left out.

    stamp: the stamp of the ledger now.
    """
    counts = _quick_counts(visit.memory, stamp)
    # The questions and the people, which take longer.
    return replace(
        counts,
        kinds=Counter(item.kind for item in look_again(visit)),
        people=count_people(visit.memory),
    )


def _quick_counts(memory: MemorySession, stamp: str) -> RailCounts:
    """Return the counts that take no longer than showing a page: without questions and people."""
    totals = memory.stats()
    rows = reminder_rows(memory)
    pinned, _ = memory.list(Query(archived=False, pinned=True), limit=_MAX_PINNED)
    return RailCounts(
        stamp,
        due=sum(row.state in ("overdue", "due") for row in rows),
        notes=totals.total - totals.projects.get(TRACE_PROJECT, 0),
        notices=len(memory.unreadable) + len(memory.warnings),
        pinned=pinned,
    )


def with_own_act(view: View) -> View:
    """Wrap a view, so that the rail (the side menu) shows a change by the owner at once."""

    @wraps(view)
    def view_and_count(visit: Visit) -> Response | dict[str, Any]:
        answer = view(visit)
        counts = known_counts(visit.request)
        if visit.memory.changed and counts is not None:
            # The stamp stays, so that the other counts are determined when they are asked for.
            visit.request.app.state.rail = replace(
                _quick_counts(visit.memory, counts.stamp),
                kinds=counts.kinds,
                people=counts.people,
                agents=counts.agents,
            )
        return answer

    return view_and_count


def presence(visit: Visit) -> list[Presence]:
    """Return the agents that wrote or were connected lately, the last seen first."""
    now = visit.now
    last_seen: dict[str, datetime] = {}
    # The latest changes name all active agents, however long the log is.
    for change in visit.memory.log(limit=500, since=now - LATELY):
        if change.agent and not is_machinery([change]):
            moment = datetime.fromisoformat(change.time)
            last_seen[change.agent] = max(moment, last_seen.get(change.agent, moment))
    for session in visit.connected():
        if session.agent:
            previous_time = last_seen.get(session.agent, session.last)
            last_seen[session.agent] = max(previous_time, session.last)
    agents = [Presence(agent, last, now - last < PRESENT) for agent, last in last_seen.items()]
    return sorted(agents, key=lambda agent: agent.last, reverse=True)[:_MAX_AGENTS]
