"""Shows which notes agents got: by agent, by note, and as a preview for a prompt.

An agent gets notes when it reads or finds them, or when a hook gives them to it ("told").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.served import Served, log_of
from memoranda.engine.session_start import reminders_told_no_more
from memoranda.index.rows import NoteInfo
from memoranda.index.told_notes import ToldNote, ToldText
from memoranda.query import Query
from memoranda.serve.page.paging import part
from memoranda.serve.page.search import readable_passage, writers
from memoranda.serve.page.visit import Visit
from memoranda.text.unicode import flat

# Calls on one page, and the notes that are named for each.
_ROWS_PER_PAGE = 100
_MAX_NOTES = 8
# The way of notes that a hook gave before anything was asked.
_SESSION_START = "session start"
# The words for the ways to get notes, by parts of the names of tools.
_WAYS = {
    "told": (_SESSION_START, "prompt"),
    "found": ("search", "recall", "context", "find", "query", "list", "recent"),
    "read": ("read", "view", "get", "open", "fetch", "memory", "graph"),
}
_DEFAULT_AGENT = "claude"
_NO_AGENTS = ("owner", "import", "web", "file")


@dataclass
class UsedRow:
    """A call that gave notes to an agent.

    how: the way in a word: "told", "found" or "read", or else the name of the tool.
    asked: the words that the agent asked with.
    more: how many of its notes are not listed.
    """

    time: str
    agent: str
    how: str
    asked: str
    notes: list[NoteInfo]
    more: int


def show(visit: Visit) -> Response:
    """Show which notes the agent in the field `agent` got."""
    agent = visit.text("agent")
    return _listed(visit, {"agent": agent}, agent=agent)


def of_note(visit: Visit, info: NoteInfo) -> Response:
    """Show which agents got a note."""
    return _listed(visit, {"part": "used"}, info=info)


def _listed(
    visit: Visit, fields: Mapping[str, str], *, agent: str = "", info: NoteInfo | None = None
) -> Response:
    """Return the page with the calls of an agent, or with the calls that gave a note.

    fields: the fields of the page's address, for the links to its other parts.
    """
    offset = visit.number("offset", 0)
    # One more than is shown, to know whether there are more.
    end = offset + _ROWS_PER_PAGE + 1
    if info is None:
        rows = log_of(visit.memory).rows(agent=agent, limit=end)
    else:
        rows = log_of(visit.memory).rows(note=info.id, limit=end)
    listed = part(_shown(visit.memory, rows[offset:]), offset, _ROWS_PER_PAGE)
    path = visit.request.url.path
    return visit.html("used.html", info=info, agent=agent, listed=listed, path=path, fields=fields)


def _shown(memory: MemorySession, rows: list[Served]) -> list[UsedRow]:
    """Return the rows to show. Notes that are gone are left out."""
    ids = set(chain.from_iterable(row.notes for row in rows))
    listed, _ = memory.list(Query(ids=tuple(ids)), limit=0)
    infos = {info.id: info for info in listed}
    rows_shown = []
    for row in rows:
        notes = [infos[note_id] for note_id in row.notes if note_id in infos]
        used_row = UsedRow(
            time=row.time,
            agent=row.agent,
            how=_way(row.how),
            asked=_asked(row, infos),
            notes=notes[:_MAX_NOTES],
            more=max(0, len(notes) - _MAX_NOTES),
        )
        rows_shown.append(used_row)
    return rows_shown


def _way(tool: str) -> str:
    """Return the way in which a tool gives notes, in a word: `search_notes` gives "found"."""
    for word, names in _WAYS.items():
        if any(name in tool for name in names):
            return word
    return tool


def _asked(row: Served, infos: Mapping[str, NoteInfo]) -> str:
    """Return the words that an agent asked with. If they are a note's id, return its title.

    A call without words gives the name of its tool. At the start of a session, nothing asks: "".
    """
    if not row.asked and row.how != _SESSION_START:
        return row.how
    info = infos.get(row.asked)
    return row.asked if info is None else info.title


def ask(visit: Visit) -> Response:
    """Show what hooks would tell an agent for a prompt, and at the start of a session."""
    agents = [name for name in writers(visit.memory) if name not in _NO_AGENTS]
    agent = visit.text("agent") or next(iter(agents), _DEFAULT_AGENT)
    prompt = visit.fields.get("prompt", "")
    # The function is missing if the page is served without our clients, as by tests.
    preview = getattr(visit.request.app.state, "preview", None)
    at_start = for_prompt = ToldText()
    if preview is not None:
        at_start, for_prompt = preview(visit.memory, agent, prompt)
    return visit.html(
        "ask.html",
        agents=agents or [_DEFAULT_AGENT],
        agent=agent,
        prompt=prompt,
        tellings={"prompt": for_prompt, "start": at_start},
        readable=_readable,
        told_no_more=_told_no_more(visit, agent),
    )


def _told_no_more(visit: Visit, agent: str) -> list[NoteInfo]:
    """Return the overdue reminders that an agent may see, but is not told of any more."""
    caller = visit.memory.as_caller(agent, "preview")
    overdue = reminders_told_no_more(caller, visit.now)
    return [info for info in overdue if not visit.memory.is_held_back(info)]


def _readable(told: ToldNote) -> str:
    """Return what an agent is told of a note as one line, without the marks of Markdown."""
    title = " ".join(flat(told.note.title).split())
    first, *others = told.passages
    # A note is told with its title before its first line, which may be an item of a list.
    words = first.removeprefix(f"{title}: ")
    lines = [title, words, *others] if words.startswith("- ") and words != first else told.passages
    return readable_passage("\n".join(lines), "")
