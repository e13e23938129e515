"""Caches the open questions, because finding them takes longer than showing a page.

They are cached with the stamp that the ledger had when they were found. An answer given on the page
removes its question from the cache. Any other change of the ledger causes a new search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from memoranda.engine.review import ReviewItem
from memoranda.serve.page.visit import Visit

MOST = 200
"""How many questions are found at most."""
# Some questions depend on the time, such as questions about reminders. So the cache expires.
_CACHE_LASTS = timedelta(minutes=5)
# Held while questions are searched for or the cache is changed.
_SEARCHING = Lock()


@dataclass(frozen=True)
class FoundQuestions:
    """The questions that were open when the ledger had a stamp.

    moment: when they were searched for.
    """

    items: tuple[ReviewItem, ...]
    stamp: str
    moment: datetime


def open_questions(visit: Visit) -> Sequence[ReviewItem]:
    """Return the open questions, at most MOST. Simultaneous requests share one search."""
    with _SEARCHING:
        stamp = visit.memory.journal_stamp()
        cached = _cached_questions(visit)
        if cached is not None and cached.stamp == stamp:
            is_fresh = visit.now - cached.moment < _CACHE_LASTS
            if is_fresh:
                return cached.items
        items = tuple(visit.memory.review(limit=MOST))
        _cache(visit, FoundQuestions(items, stamp, visit.now))
        return items


def take_out(visit: Visit, key: str, before: str) -> None:
    """Remove a question that was just answered from the cache.

    An answer may close other questions, too. They leave the cache when the rail counts again.

    key: the key of the question.
    before: the stamp of the ledger before the answer.
    """
    with _SEARCHING:
        cached = _cached_questions(visit)
        if cached is None or cached.stamp != before:
            return
        items = tuple(item for item in cached.items if item.key != key)
        _cache(visit, FoundQuestions(items, visit.memory.journal_stamp(), cached.moment))


def look_again(visit: Visit) -> Sequence[ReviewItem]:
    """Search for the open questions again, whatever the cache has."""
    # The lock waits for a search that is under way. Its result would be cached after this.
    with _SEARCHING:
        visit.request.app.state.questions = None
    return open_questions(visit)


def _cached_questions(visit: Visit) -> FoundQuestions | None:
    """Return the cached questions. None if no questions are cached."""
    cached = getattr(visit.request.app.state, "questions", None)
    return cached if isinstance(cached, FoundQuestions) else None


def _cache(visit: Visit, questions: FoundQuestions) -> None:
    """Put questions into the cache."""
    visit.request.app.state.questions = questions
