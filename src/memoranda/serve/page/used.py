"""The record of what agents got: who read or found a note, what an agent read, and what one would be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.served import Served, log_of
from memoranda.index.rows import NoteInfo
from memoranda.query import Query
from memoranda.serve.page.paging import part
from memoranda.serve.page.search import writers
from memoranda.serve.page.visit import Visit

# Rows of what was got, and the notes named in each.
_SHOWN = 100
_NOTES = 8
# The words for the ways to get notes, by parts of the names of tools.
_WAYS = {
    "told": ("session start", "prompt"),
    "found": ("search", "recall", "context", "find", "query", "list", "recent"),
    "read": ("read", "view", "get", "open", "fetch", "memory", "graph"),
}
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
    """Return the page of what the agent `agent` got."""
    agent = visit.text("agent")
    return _listed(visit, {"agent": agent}, agent=agent)


def of_note(visit: Visit, info: NoteInfo) -> Response:
    """Who got a note."""
    return _listed(visit, {"part": "used"}, info=info)


def _listed(
    visit: Visit, fields: Mapping[str, str], *, agent: str = "", info: NoteInfo | None = None
) -> Response:
    """Return the page of what the agent got, or of who got the note; `fields`: the fields of this
    list's address."""
    offset = visit.number("offset", 0)
    end = offset + _SHOWN + 1
    if info is None:
        rows = log_of(visit.memory).rows(agent=agent, limit=end)
    else:
        rows = log_of(visit.memory).rows(note=info.id, limit=end)
    listed = part(_shown(visit.memory, rows[offset:]), offset, _SHOWN)
    path = visit.request.url.path
    return visit.html("used.html", info=info, agent=agent, listed=listed, path=path, fields=fields)


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
            UsedRow(
                row.time, row.agent, _way(row.how), _asked(row, infos), notes[:_NOTES], max(0, more)
            )
        )
    return rows_shown


def _way(tool: str) -> str:
    """The way an agent got notes, in a word for people, by the tool it called."""
    for word, names in _WAYS.items():
        if any(name in tool for name in names):
            return word
    return tool


def _asked(row: Served, infos: Mapping[str, NoteInfo]) -> str:
    """The words an agent asked with. A note that it named by its id is named by its title."""
    info = infos.get(row.asked)
    return row.asked if info is None else info.title


def ask(visit: Visit) -> Response:
    """Return the page of what an agent would be told for a prompt, and when a session starts."""
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
