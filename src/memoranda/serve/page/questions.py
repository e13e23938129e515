"""The open questions, cached, because finding them takes longer than showing a page.

They are stored with the stamp of the ledger they were found at. An answer given here removes its
question. Any other change of the ledger causes a new search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from memoranda.engine.review import ReviewItem
from memoranda.serve.page.visit import Visit

MOST = 200
# How long questions count that depend on the time, such as those about reminders.
_LASTS = timedelta(minutes=5)
_LOOKING = Lock()


@dataclass(frozen=True)
class FoundQuestions:
    """The questions that were open when the ledger had this stamp."""

    items: tuple[ReviewItem, ...]
    stamp: str
    moment: datetime


def open_questions(visit: Visit) -> Sequence[ReviewItem]:
    """All open questions, up to MOST. Simultaneous requests share one search."""
    with _LOOKING:
        stamp = visit.memory.journal_stamp()
        found_before = _known_questions(visit)
        if (
            found_before is not None
            and found_before.stamp == stamp
            and visit.now - found_before.moment < _LASTS
        ):
            return found_before.items
        items = tuple(visit.memory.review(limit=MOST))
        _keep(visit, FoundQuestions(items, stamp, visit.now))
        return items


def take_out(visit: Visit, key: str, before: str) -> None:
    """Remove the question that was just answered from the cache.

    before: the stamp of the ledger until then.

    Further effects of the answer are found when the rail counts again.
    """
    with _LOOKING:
        found_before = _known_questions(visit)
        if found_before is None or found_before.stamp != before:
            return
        items = tuple(item for item in found_before.items if item.key != key)
        _keep(visit, FoundQuestions(items, visit.memory.journal_stamp(), found_before.moment))


def look_again(visit: Visit) -> Sequence[ReviewItem]:
    """The questions of now, after an answer was given."""
    # The lock keeps an older look, which is still under way, from coming back afterwards
    with _LOOKING:
        visit.request.app.state.questions = None
    return open_questions(visit)


def _known_questions(visit: Visit) -> FoundQuestions | None:
    kept_questions = getattr(visit.request.app.state, "questions", None)
    return kept_questions if isinstance(kept_questions, FoundQuestions) else None


def _keep(visit: Visit, questions: FoundQuestions) -> None:
    visit.request.app.state.questions = questions
