"""The notes that agents received: who read or found a note, what an agent read, and what it would
be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.served import Served, log_of
from memoranda.index.rows import NoteInfo
from memoranda.query import Query
from memoranda.serve.page.search import writers
from memoranda.serve.page.visit import Visit

# Rows of what was got, and the notes named in each.
_SHOWN = 200
_NOTES = 8
_DEFAULT_AGENT = "claude"
_NO_AGENTS = ("owner", "import", "web", "file")


@dataclass
class UsedRow:
    """One call that gave notes to an agent.

    more: how many of its notes are not listed.
    """

    time: str
    agent: str
    how: str
    asked: str
    notes: list[NoteInfo]
    more: int


def show(visit: Visit) -> Response:
    """Show what the agent `agent` received."""
    agent = visit.text("agent")
    rows = log_of(visit.memory).rows(agent=agent, limit=_SHOWN)
    return visit.html("used.html", info=None, agent=agent, rows=_shown(visit.memory, rows))


def of_note(visit: Visit, info: NoteInfo) -> Response:
    """Who got a note."""
    rows = log_of(visit.memory).rows(note=info.id, limit=_SHOWN)
    return visit.html("used.html", info=info, agent="", rows=_shown(visit.memory, rows))


def _shown(memory: MemorySession, rows: list[Served]) -> list[UsedRow]:
    """The rows with the notes that are still there."""
    ids = set(chain.from_iterable(row.notes for row in rows))
    listed, _ = memory.list(Query(ids=tuple(ids)), limit=0)
    infos = {info.id: info for info in listed}
    rows_shown = []
    for row in rows:
        notes = [infos[identity] for identity in row.notes if identity in infos]
        more = len(notes) - _NOTES
        rows_shown.append(
            UsedRow(row.time, row.agent, row.how, row.asked, notes[:_NOTES], max(0, more))
        )
    return rows_shown


def ask(visit: Visit) -> Response:
    """Show what an agent would be told for a prompt, and at the start of a session."""
    agents = [name for name in writers(visit.memory) if name not in _NO_AGENTS]
    agent = visit.text("agent") or next(iter(agents), _DEFAULT_AGENT)
    prompt = visit.fields.get("prompt", "")
    # Tests and embedders serve the page without the clients that know how a prompt is answered
    preview = getattr(visit.request.app.state, "preview", None)
    at_start = for_prompt = ""
    if preview is not None:
        at_start, for_prompt = preview(visit.memory, agent, prompt)
    return visit.html(
        "ask.html",
        agents=agents or [_DEFAULT_AGENT],
        agent=agent,
        prompt=prompt,
        at_start=at_start,
        for_prompt=for_prompt,
    )
