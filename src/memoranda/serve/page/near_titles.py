"""Finds the notes whose titles are as typed, or come near to a text."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from memoranda.engine import MemorySession
from memoranda.index.rows import NoteInfo
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.query import Query

# Titles that are offered at once.
_MAX_OFFERED = 8
# Notes among which the nearest titles are looked for, by the beginning of each word.
_MAX_CANDIDATES = 60
_BEGINNING = 3
_MAX_WORDS = 5
_MIN_LIKENESS = 0.4
_BETWEEN_WORDS = re.compile(r"[\W_]+")
# An id or a number, which says nothing.
_WITHOUT_WORDS = re.compile(r"(?=.*\d)[0-9a-f ]+")


def words_of_address(path: str) -> str:
    """Return the words of the last part of an address: `notes/my-plan.md` gives `my plan`.

    "" if it is an id or a number.
    """
    last_part = path.rstrip("/").rpartition("/")[2].removesuffix(".md")
    words = _BETWEEN_WORDS.sub(" ", last_part).strip()
    return "" if _WITHOUT_WORDS.fullmatch(words) else words


def titled(memory: MemorySession, text: str) -> list[NoteInfo]:
    """Return the notes whose titles have words that begin as typed, at most _MAX_OFFERED.

    Titles that begin as typed come first, and titles of notes before first lines of memories.
    """
    query = Query(text=text, search_type="title", archived=False)
    infos = [hit.note for hit in memory.search(query, limit=_MAX_CANDIDATES)]
    beginning = text.casefold()

    def order(info: NoteInfo) -> tuple[bool, bool, bool]:
        # False sorts before True.
        title = info.title.casefold()
        is_memory = info.project in MEMORY_PROJECTS
        return title != beginning, not title.startswith(beginning), is_memory

    return sorted(infos, key=order)[:_MAX_OFFERED]


def nearest(memory: MemorySession, text: str) -> list[NoteInfo]:
    """Return the notes with the titles that are most like a text, the nearest first."""
    candidates = {info.row: info for info in titled(memory, text)}
    # The beginning of a word mostly has no typing error, and finds other endings of the word, too.
    for word in text.split()[:_MAX_WORDS]:
        query = Query(text=word[:_BEGINNING], search_type="title", archived=False)
        for hit in memory.search(query, limit=_MAX_CANDIDATES):
            candidates.setdefault(hit.note.row, hit.note)
    likeness = {
        row: SequenceMatcher(None, text.casefold(), info.title.casefold()).ratio()
        for row, info in candidates.items()
    }
    rows = sorted(candidates, key=lambda row: likeness[row], reverse=True)
    like_enough = [candidates[row] for row in rows if likeness[row] >= _MIN_LIKENESS]
    return like_enough[:_MAX_OFFERED]
