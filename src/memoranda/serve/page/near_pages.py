"""Finds the pages whose addresses come near to one that leads nowhere: `/page/revew`."""

from __future__ import annotations

from difflib import get_close_matches

PAGES = {
    "today": ("/page", "Today"),
    "review": ("/page/review", "Review"),
    "calendar": ("/page/calendar", "Calendar"),
    "notes": ("/page/search", "Notes"),
    "search": ("/page/search", "Notes"),
    "people": ("/page/people", "People"),
    "graph": ("/page/graph", "Graph"),
    "agents": ("/page/agents", "Agents"),
    "me": ("/page/me", "What agents know about me"),
    "new": ("/page/new", "New note"),
    "remind": ("/page/remind", "New reminder"),
    "reminders": ("/page/calendar", "Calendar"),
    "export": ("/page/export", "Export all notes"),
    "health": ("/page/health", "Health"),
    "help": ("/page/help", "How it fits together"),
}
"""The address and the English name of each page, by the words that somebody may type for it."""
_MAX_OFFERED = 3
_MIN_LIKENESS = 0.7


def near_pages(name: str) -> list[tuple[str, str]]:
    """Return the addresses and names of the pages that a word comes near to, the nearest first."""
    words = get_close_matches(name.casefold(), PAGES, _MAX_OFFERED, _MIN_LIKENESS)
    return list(dict.fromkeys(PAGES[word] for word in words))
