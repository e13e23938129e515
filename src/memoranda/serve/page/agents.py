"""Shows the page of agents: a card for each, with its changes, its clients and whether it is here.

From there an agent can be paused, its changes undone, and a token revoked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo
from itertools import chain
from math import ceil
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from memoranda.clock import parse_stamp, stamp
from memoranda.documents.listed import Document, Listed
from memoranda.engine import MemorySession
from memoranda.engine.doctor import examine
from memoranda.engine.history.refusals import undoable_together
from memoranda.engine.overview import Writer, figures, writers, written_today
from memoranda.engine.pausing import paused_agents, set_paused
from memoranda.errors import CannotUndo, InvalidInput
from memoranda.ledger.change import Change
from memoranda.serve.page import undoing
from memoranda.serve.page.shell import PRESENT, known_counts, presence
from memoranda.serve.page.today.change_rows import RowWriter, is_machinery
from memoranda.serve.page.today.day_summary import DifferentNotes
from memoranda.serve.page.visit import HOME, Visit
from memoranda.serve.page.words.writers import is_upkeep

# Days of which a card shows the changes.
_DAYS = 30
LATELY = timedelta(days=_DAYS)
# The periods of which all changes of an agent can be undone at once.
_SPANS = {
    "1 hour": timedelta(hours=1),
    "1 day": timedelta(days=1),
    "1 week": timedelta(weeks=1),
}
_FIRST_SPAN = "1 hour"
# Which changes of an agent a form undoes: those that can be undone, or, after all of them were tried
# in vain, none.
_POSSIBLE = "possible"
_TRIED = "tried"
# Changes of an agent that its card describes.
_CHANGES_ON_CARD = 2
# Changes of a session on one page.
_CHANGES_PER_PAGE = 100
# Changes that are listed before they are undone.
_MAX_LISTED_UNDOS = 60
# Height of the largest bar of a card, in units of its picture.
_BAR_HEIGHT = 24


@dataclass
class AgentCard:
    """An agent with all its clients.

    name: the agent's name. None means the owner.
    clients: the names of its clients.
    notes: the notes that its changes learned, changed or forgot.
    sessions: the ids of its sessions.
    days: the number of its changes on each of the last days, the oldest first.
    latest: its latest changes, each of another note.
    last: the stamp of its last change or call. "" if there was none lately.
    today: how many notes it wrote today.
    """

    name: str | None
    clients: list[str] = field(default_factory=list)
    notes: DifferentNotes = field(default_factory=DifferentNotes)
    sessions: set[str] = field(default_factory=set)
    days: list[int] = field(default_factory=lambda: [0] * _DAYS)
    latest: list[Document] = field(default_factory=list)
    last: str = ""
    is_present: bool = False
    is_paused: bool = False
    today: int = 0

    def bars(self, today: date, most: int) -> list[Bar]:
        """Return a bar for each of the last days, the oldest first.

        most: the number of changes with the highest bar. All agents share it, so bars can be compared.
        """
        most_changes = most or 1
        bars = []
        for number, changes in enumerate(self.days):
            # The last of the days is today.
            day = today - timedelta(days=_DAYS - 1 - number)
            # Rounded up, so that a day with any change has a bar.
            bars.append(Bar(day, changes, ceil(_BAR_HEIGHT * changes / most_changes)))
        return bars


class Bar(NamedTuple):
    """The changes of an agent on one day, as a bar of its card.

    height: in units of the card's picture. 0 for a day without changes.
    """

    day: date
    changes: int
    height: int


def show(visit: Visit) -> Response:
    """Show the agents that wrote lately, are connected or are paused, and the tokens."""
    state = visit.request.app.state
    now = visit.now
    cards = _cards(visit)
    # The rail beside the cards tells the same times.
    counts = known_counts(visit.request)
    if counts is not None:
        counts.agents = presence(visit)
    return visit.html(
        "agents.html",
        agents=cards,
        most_a_day=max((max(card.days) for card in cards), default=0),
        tokens=[(token, token.is_valid(now)) for token in state.server.access.tokens()],
        seen=state.server.last_uses,
    )


def _cards(visit: Visit) -> list[AgentCard]:
    """Return the cards of all agents to show, the last active one first."""
    memory = visit.memory
    now = visit.now
    cards: dict[str | None, AgentCard] = {}
    _add_changes(memory, cards, now)
    for session in visit.connected():
        card = cards.setdefault(session.agent, AgentCard(session.agent))
        card.last = max(card.last, stamp(session.last))
        card.is_present |= now - session.last < PRESENT
        _add_client(card, session.client)
    today = written_today(memory)
    paused = paused_agents(memory)
    # A paused agent has a card even if it did nothing lately, so that it can be let in again.
    for name in paused:
        cards.setdefault(name, AgentCard(name))
    for card in cards.values():
        card.today = today[card.name].notes if card.name in today else 0
        card.is_paused = card.name in paused
    return sorted(cards.values(), key=lambda card: card.last, reverse=True)


def _add_changes(memory: MemorySession, cards: dict[str | None, AgentCard], now: datetime) -> None:
    """Add the changes of the last days to the cards of their agents, without upkeep."""
    latest: dict[str | None, list[Change]] = {}
    for change in memory.log(limit=0, since=now - LATELY):
        if is_machinery([change]) or is_upkeep([change]):
            continue
        card = cards.setdefault(change.agent, AgentCard(change.agent))
        _add_change(card, change, now, memory.settings.reading_zone)
        # The log begins with the latest change, so a note that is here already was changed later.
        own_changes = latest.setdefault(change.agent, [])
        places = [(own_change.project, own_change.path) for own_change in own_changes]
        is_of_new_note = (change.project, change.path) not in places
        if len(own_changes) < _CHANGES_ON_CARD and is_of_new_note:
            own_changes.append(change)
    _add_latest(memory, cards, latest)


def _add_change(card: AgentCard, change: Change, now: datetime, zone: tzinfo) -> None:
    """Count a change on the card of its agent.

    zone: the time zone in which days begin.
    """
    author = change.by or {}
    card.last = max(card.last, change.time)
    if change.undoes is None:
        card.notes.add(change)
    if author.get("session"):
        card.sessions.add(author["session"])
    _add_client(card, author.get("client") or change.face or "")
    changed = parse_stamp(change.time).astimezone(zone).date()
    age_days = (now.astimezone(zone).date() - changed).days
    if 0 <= age_days < _DAYS:
        card.days[_DAYS - 1 - age_days] += 1


def _add_client(card: AgentCard, client: str) -> None:
    """Add the name of a client to a card, if it is new there."""
    if client and client not in card.clients:
        card.clients.append(client)


def _add_latest(
    memory: MemorySession,
    cards: dict[str | None, AgentCard],
    latest: dict[str | None, list[Change]],
) -> None:
    """Add rows of the latest changes to the cards of their agents."""
    all_changes = list(chain.from_iterable(latest.values()))
    writer = RowWriter(memory, all_changes)
    for name, changes in latest.items():
        cards[name].latest = [writer.row(change) for change in changes]


def pause(visit: Visit) -> Response:
    """Pause an agent if the field `do` is "pause", otherwise let it go on."""
    name = visit.text("agent")
    if not name:
        raise InvalidInput("Say which agent.")
    set_paused(visit.memory, name, visit.text("do") == "pause")
    return visit.back(f"{HOME}/agents")


def undo_since(visit: Visit) -> Response:
    """Show everything that an agent did since a moment. A POST undoes it as one change.

    The field `since` has the moment by the reader's clock. Without it, the field `span` says how
    long ago the moment is (a key of _SPANS). The field `which` is "possible" to undo only what can
    be undone. Without it, all or nothing is undone. If that is refused, the page is shown again,
    with what is in the way (`which` is "tried").
    """
    memory = visit.memory
    name = visit.text("agent")
    if not name:
        raise InvalidInput("Say which agent.")
    if visit.is_post:
        return _carry_out_undo(visit, name)
    since = _moment_since(visit)
    changes = _changes_since(memory, name, since)
    possible: list[int] = []
    barred: list[Change] = []
    if visit.text("which") == _TRIED:
        possible, refusals = undoable_together(memory, [change.number for change in changes])
        barred = [change for change in changes if change.number in refusals]
    # What is in the way comes first, since only the first changes are listed.
    other_changes = [change for change in changes if change not in barred]
    listed = [*barred, *other_changes][:_MAX_LISTED_UNDOS]
    writer = RowWriter(memory, listed)
    # A moment that was typed is none of the spans.
    span = ""
    if not visit.text("since"):
        span = visit.text("span") or _FIRST_SPAN
    return visit.html(
        "undo_since.html",
        agent=name,
        spans=list(_SPANS),
        span=span,
        since=since.astimezone(memory.settings.reading_zone),
        rows=[writer.row(change) for change in listed],
        total=len(changes),
        possible=len(possible),
        barred={change.number for change in barred},
    )


def _carry_out_undo(visit: Visit, name: str) -> Response:
    """Undo what an agent did since a moment, as the form of `undo_since` says.

    If the changes cannot all be undone, the page is shown again, with what is in the way.
    """
    memory = visit.memory
    since = _moment_since(visit)
    try:
        if visit.text("which") == _POSSIBLE:
            changes = _changes_since(memory, name, since)
            possible, _ = undoable_together(memory, [change.number for change in changes])
            memory.undo_together(possible)
        else:
            memory.undo_changes_of(name, since)
    except CannotUndo as refusal:
        if visit.is_api or refusal.number is None:
            raise
        fields = {"agent": name, "since": since.isoformat(), "which": _TRIED}
        return RedirectResponse(f"{HOME}/agents/undo?{urlencode(fields)}", 303)
    return visit.back(f"{HOME}/agents")


def _changes_since(memory: MemorySession, name: str, since: datetime) -> list[Change]:
    """Return the changes of an agent since a moment, without undos, the latest first."""
    changes = memory.log(limit=0, agent=name, since=since)
    return [change for change in changes if change.undoes is None]


def _moment_since(visit: Visit) -> datetime:
    """Return the moment since which changes are undone. Raises InvalidInput."""
    text = visit.text("since")
    if not text:
        span = visit.text("span") or _FIRST_SPAN
        if span not in _SPANS:
            raise InvalidInput(f"`span` must be one of {', '.join(_SPANS)}")
        return visit.now - _SPANS[span]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        # Its year is refused below.
        moment = datetime.min
    # In the first and the last year of the calendar, a time may not exist in another zone.
    if moment.year in (MINYEAR, MAXYEAR):
        raise InvalidInput(f'"{text[:50]}" is no time such as 2026-11-28T09:30')
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=visit.memory.settings.reading_zone)
    return moment.astimezone(UTC)


def session(visit: Visit) -> Response:
    """Show the changes of one session of an agent. A POST undoes all of them as one change."""
    memory = visit.memory
    name = visit.text("agent")
    key = visit.text("session")
    if not name or not key:
        raise InvalidInput("Say which agent, and which session of it.")
    if visit.is_post:
        # Either all are undone or none: half of a session is a state that nobody wrote.
        try:
            memory.undo_changes_of(name, session=key)
        except CannotUndo as refusal:
            return undoing.lead_to_refusal(visit, refusal, is_of_many=True)
        return visit.back()
    changes = [
        change
        for change in memory.log(limit=0, agent=name)
        if (change.by or {}).get("session") == key
    ]
    writer = RowWriter(memory, changes, _undos_since(memory, changes))
    offset = visit.number("offset", 0)
    rows = [writer.row(change) for change in changes[offset : offset + _CHANGES_PER_PAGE]]
    return visit.html(
        "session.html",
        agent=name,
        session=key,
        changes=changes,
        listed=Listed.part(rows, len(changes), offset),
        may_undo=any(row["refusal"] is None and row["undone_by"] is None for row in rows),
        address=visit.here,
    )


def _undos_since(memory: MemorySession, changes: Sequence[Change]) -> list[Change]:
    """Return the undos since the first of these changes."""
    if not changes:
        return []
    later_changes = memory.log(limit=0, since=parse_stamp(changes[-1].time))
    return [change for change in later_changes if change.undoes is not None]


def revoke(visit: Visit) -> Response:
    """Make a token invalid."""
    visit.request.app.state.server.access.revoke(visit.fields.get("token", ""))
    return visit.back(f"{HOME}/agents")


def health_json(visit: Visit) -> dict[str, Any]:
    """Return the size and growth of the memory, its writers and clients, and findings, as JSON.

    Only the owner may ask. Raises InvalidInput.
    """
    memory = visit.memory
    if memory.agent is not None:
        raise InvalidInput("only the owner may ask how the memory is")
    size = figures(memory)
    rounds = visit.request.app.state.rounds
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
            for session in visit.connected()
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
    """Return when the next round of upkeep begins. None if none is planned."""
    begin: datetime | None = rounds.next if rounds else None
    return begin.isoformat() if begin else None


def _writer_row(writer: Writer) -> dict[str, Any]:
    return {
        "agent": writer.agent,
        "client": writer.client,
        "last": writer.last,
        "changes": dict(writer.verbs),
        "sessions": len(writer.sessions),
    }
