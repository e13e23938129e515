"""Finds the notes that a title means while somebody types it: for a link, or for a merge."""

from __future__ import annotations

from difflib import SequenceMatcher

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.index.rows import NoteInfo
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.query import Query
from memoranda.serve.page.visit import Visit

# Titles that are offered at once.
_MAX_OFFERED = 8
# Notes among which the nearest titles are looked for, by the beginning of each word.
_MAX_CANDIDATES = 60
_BEGINNING = 3
_MAX_WORDS = 5
_MIN_LIKENESS = 0.4


def suggest(visit: Visit) -> Response:
    """Show the titles that the field `q` may be the beginning of.

    The field `not` names a note that is left out, by its id.
    """
    text = visit.text("q")
    infos = titled(visit.memory, text) if text else []
    offered = [info for info in infos if info.id != visit.text("not")]
    return visit.html("titles.html", infos=offered)


def titled(memory: MemorySession, text: str) -> list[NoteInfo]:
    """Return the notes whose titles have words that begin as typed, at most _MAX_OFFERED.

    Titles that begin as typed come first, and titles of notes before first lines of memories.
    """
    query = Query(text=text, search_type="title", archived=False)
    infos = [hit.note for hit in memory.search(query, limit=_MAX_CANDIDATES)]
    beginning = text.casefold()

    def order(info: NoteInfo) -> tuple[bool, bool, bool]:
        title = info.title.casefold()
        is_memory = info.project in MEMORY_PROJECTS
        return title != beginning, not title.startswith(beginning), is_memory

    return sorted(infos, key=order)[:_MAX_OFFERED]


def nearest(memory: MemorySession, text: str) -> list[NoteInfo]:
    """Return the notes with the titles that are most like a text, the nearest first."""
    candidates = {info.row: info for info in titled(memory, text)}
    for word in text.split()[:_MAX_WORDS]:
        query = Query(text=word[:_BEGINNING], search_type="title", archived=False)
        for hit in memory.search(query, limit=_MAX_CANDIDATES):
            candidates.setdefault(hit.note.row, hit.note)
    likeness = {
        row: SequenceMatcher(None, text.casefold(), info.title.casefold()).ratio()
        for row, info in candidates.items()
    }
    rows = sorted(candidates, key=lambda row: likeness[row], reverse=True)
    return [candidates[row] for row in rows if likeness[row] >= _MIN_LIKENESS][:_MAX_OFFERED]
