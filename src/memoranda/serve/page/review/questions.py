"""Caches the open questions, because finding them takes longer than showing a page.

They are cached with the stamp that the ledger had when they were found. An answer given on the page
removes its question from the cache. Any other change of the ledger causes a new search.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
# The key of the cache for the questions of all kinds. The other keys are kinds of questions.
_ALL_KINDS = ""


@dataclass(frozen=True)
class FoundQuestions:
    """The questions that were open when the ledger had a stamp.

    moment: when they were searched for.
    """

    items: tuple[ReviewItem, ...]
    stamp: str
    moment: datetime


def open_questions(visit: Visit, kind: str = _ALL_KINDS) -> Sequence[ReviewItem]:
    """Return the open questions, at most MOST. Simultaneous requests share one search.

    kind: only questions of this kind, each for itself. _ALL_KINDS ("") means all kinds. Then
        questions of some kinds are combined into one.
    """
    with _SEARCHING:
        stamp = visit.memory.journal_stamp()
        cache = _cache_of(visit)
        cached = cache.get(kind)
        if cached is not None and cached.stamp == stamp:
            is_fresh = visit.now - cached.moment < _CACHE_LASTS
            if is_fresh:
                return cached.items
        items = tuple(visit.memory.review(limit=MOST, kind=kind or None))
        cache[kind] = FoundQuestions(items, stamp, visit.now)
        return items


def take_out(visit: Visit, keys: Collection[str], before: str) -> None:
    """Remove questions that were just answered from the cache, so that no new search is needed.

    An answer may close other questions, too. They stay in the cache until the next search.

    keys: the keys of the questions.
    before: the stamp of the ledger before the answer.
    """
    with _SEARCHING:
        cache = _cache_of(visit)
        cached = cache.get(_ALL_KINDS)
        cache.clear()
        # The cached questions were already out of date when the answer was given.
        if cached is None or cached.stamp != before:
            return
        cached_keys = {item.key for item in cached.items}
        # A key is missing if its question is combined with others into one. That one now asks about
        # fewer notes, so it must be searched again.
        if not cached_keys.issuperset(keys):
            return
        items = tuple(item for item in cached.items if item.key not in keys)
        cache[_ALL_KINDS] = FoundQuestions(items, visit.memory.journal_stamp(), cached.moment)


def look_again(visit: Visit) -> Sequence[ReviewItem]:
    """Search for the open questions again, whatever the cache has."""
    # The lock waits for a search that is under way. Its result would be cached after this.
    with _SEARCHING:
        _cache_of(visit).clear()
    return open_questions(visit)


def _cache_of(visit: Visit) -> dict[str, FoundQuestions]:
    """Return the cached questions by their kind. The key "" has all kinds together."""
    state = visit.request.app.state
    if not hasattr(state, "questions"):
        state.questions = {}
    cache: dict[str, FoundQuestions] = state.questions
    return cache
