"""The best evidence for a question: passages, not whole notes, until the space is used up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import date

from commonplace.index import expression as ex
from commonplace.index.asking import Nearness, answers
from commonplace.index.database import snapshot
from commonplace.index.lookup import infos
from commonplace.index.ranking import Asked, texts
from commonplace.index.rows import Hit
from commonplace.index.scoring import Judge, Text
from commonplace.index.standing import parts
from commonplace.index.text import sound
from commonplace.query import Query

_MOST_NOTES = 60
_PER_NOTE = 6
_NEIGHBOUR, _WHOLE_NOTE = 0.1, 1.0


def evidence(
    db: sqlite3.Connection, question: str, *, viewer: str | None, max_chars: int = 8_000,
    projects: Sequence[str] | None = None, today: date | None = None, near: Nearness | None = None,
) -> list[Hit]:  # fmt: skip
    """The passages that best answer `question`, best first, at most `max_chars` characters in all.

    A hit is one turn or one passage of about 200 words, cut from the note's text; a note may give several.
    `today` is what "last week" in the question counts from; `near` as for `answers`.
    """
    with snapshot(db):
        query = Query(sound(question), projects=None if projects is None else tuple(projects))
        return list(_filled(Asked(db, query, viewer), max_chars, today, near))


def _filled(asked: Asked, space: int, today: date | None, near: Nearness | None) -> Iterator[Hit]:
    found = answers(asked, asked.query.text, today, near)
    rows = found.page(asked.db, 0, _MOST_NOTES)
    terms = [one for one in map(ex.term, found.roots()) if one is not None]
    judge = asked.judge(terms)
    notes = infos(asked.db, rows)
    read = {text.row: text for text in texts(asked.db, rows, terms)}
    scored: list[tuple[float, int, int, int]] = []
    for at, row in enumerate(rows):
        base = _WHOLE_NOTE * found.scores.get(row, 0.0)
        scored += [(base + worth, -at, start, stop) for start, stop, worth in _passages(judge, read[row])]
    scored.sort(key=lambda one: (-one[0], -one[1], one[2]))
    given: dict[int, int] = {}
    for score, at, start, stop in scored:
        row = rows[-at]
        if given.get(row, 0) >= _PER_NOTE:
            continue
        passage = read[row].text[start:stop].strip()
        if len(passage) > space:
            if given:
                continue
            passage = passage[:space].rstrip()
        if passage:
            space -= len(passage)
            given[row] = given.get(row, 0) + 1
            line = read[row].front.count("\n") + read[row].text.count("\n", 0, start) + 1
            yield Hit(notes[row], passage, round(score, 6), [], line)


def _passages(judge: Judge, text: Text) -> list[tuple[int, int, float]]:
    """The note's passages with their worth; a passage gains from what stands next to it. Of several those that hold
    nothing stay out."""
    spans = text.spans if text.spans is not None else parts(text.text)
    if len(spans) == 1:
        return [(*spans[0], 0.0)]
    places = judge.places(text)
    worths = [judge.worth([place for place in places if start <= place.at < stop]) for start, stop in spans]
    best = max(worths, default=0.0)
    result = []
    for at, (start, stop) in enumerate(spans):
        beside = max(worths[at - 1] if at else 0.0, worths[at + 1] if at + 1 < len(worths) else 0.0)
        if worths[at] or not best:
            result.append((start, stop, worths[at] + _NEIGHBOUR * beside - best))
    return result
