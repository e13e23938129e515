"""The best evidence for a question: passages, not whole notes, until the space is used up."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from commonplace.index.database import snapshot
from commonplace.index.lookup import infos
from commonplace.index.ranking import Asked, order
from commonplace.index.rows import Hit, NoteInfo
from commonplace.index.scoring import Judge, Place, Text
from commonplace.index.search import candidates, telling
from commonplace.index.text import passages, sound
from commonplace.query import Query

_MOST_NOTES = 60
_PER_NOTE = 6
_NEIGHBOUR, _WHOLE_NOTE, _DATED = 0.1, 0.5, 0.2
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:\s*(?:-|年)\s*(\d{1,2}))?")
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\b", re.I)


def evidence(
    db: sqlite3.Connection, question: str, *, viewer: str | None, max_chars: int = 8_000,
    projects: Sequence[str] | None = None,
) -> list[Hit]:  # fmt: skip
    """The passages that best answer `question`, best first, at most `max_chars` characters in all.

    A hit is one passage of about 200 words, cut from the note's text; a note may give several.
    A year or month in the question favours notes of that time.
    """
    with snapshot(db):
        return _evidence(db, question, viewer, max_chars, projects)


def _evidence(
    db: sqlite3.Connection, question: str, viewer: str | None, max_chars: int, projects: Sequence[str] | None
) -> list[Hit]:
    asked = Asked(db, Query(sound(question), projects=None if projects is None else tuple(projects)), viewer)
    terms = telling(asked, question)
    if not terms:
        return []
    full = asked.full(" OR ".join(map(asked.matcher.loose, terms)))
    rows = candidates(asked, terms)
    found = order(asked, full, terms, rows, len(rows), judged=_MOST_NOTES, any_term=True)
    judge = asked.judge(terms)
    notes = infos(db, list(found.verdicts)[:_MOST_NOTES])
    scored: list[tuple[float, str, int, int, int]] = []
    for row, note in notes.items():
        verdict, text = found.verdicts[row]
        bonus = _WHOLE_NOTE * verdict.score + _dated(question, note)
        for start, stop, worth in _passages(judge, text, verdict.places):
            scored.append((worth + bonus, note.changed, row, start, stop))
    scored.sort(key=lambda one: (one[0], one[1], -one[3]), reverse=True)
    return _filled(scored, notes, {row: text for row, (_, text) in found.verdicts.items()}, max_chars)


def _filled(
    scored: list[tuple[float, str, int, int, int]], notes: dict[int, NoteInfo], texts: dict[int, Text], space: int
) -> list[Hit]:
    hits: list[Hit] = []
    given: dict[int, int] = {}
    for score, _, row, start, stop in scored:
        if given.get(row, 0) >= _PER_NOTE:
            continue
        passage = texts[row].text[start:stop].strip()
        if len(passage) > space:
            if hits:
                continue
            passage = passage[:space].rstrip()
        if passage:
            space -= len(passage)
            given[row] = given.get(row, 0) + 1
            line = texts[row].front.count("\n") + texts[row].text.count("\n", 0, start) + 1
            hits.append(Hit(notes[row], passage, round(score, 6), [], line))
    return hits


def _passages(judge: Judge, text: Text, places: Sequence[Place]) -> list[tuple[int, int, float]]:
    """The note's passages with their worth; a passage gains from what stands next to it."""
    spans = text.spans if text.spans is not None else [(one.start, one.end) for one in passages(text.text)]
    worths = [judge.worth([place for place in places if start <= place.at < stop]) for start, stop in spans]
    result = []
    for at, (start, stop) in enumerate(spans):
        beside = max(worths[at - 1] if at else 0.0, worths[at + 1] if at + 1 < len(worths) else 0.0)
        if worths[at]:
            result.append((start, stop, worths[at] + _NEIGHBOUR * beside))
    return result


def _dated(question: str, note: NoteInfo) -> float:
    """A bonus when the question names the year or month of the note's event (or writing)."""
    moment = note.date or note.created
    try:
        when = datetime.fromisoformat(moment.strip()[:10])
    except ValueError:
        return 0.0
    bonus = 0.0
    for year, month in _YEAR.findall(question):
        if int(year) == when.year:
            bonus += _DATED / 2 + (_DATED / 2 if month and int(month) == when.month else 0.0)
    if any(_MONTHS.index(name.lower()) + 1 == when.month for name in _MONTH.findall(question)):
        bonus += _DATED
    return bonus
