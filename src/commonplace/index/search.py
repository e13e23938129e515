"""Full-text search (contract 000b, 6) over the index; lists without a text come from `listing`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import date
from itertools import product

from commonplace.index import expression as ex
from commonplace.index.asking import Nearness, answers
from commonplace.index.database import snapshot
from commonplace.index.facets import may_see
from commonplace.index.listing import listing, matching, predicate
from commonplace.index.passages import MORE, MOST, Passage, Reading, chosen
from commonplace.index.question import is_outright, is_question, is_short_question
from commonplace.index.ranking import RANKED, Asked, Order, matches, order, texts
from commonplace.index.rows import Hit, Hits, NoteInfo, in_order, infos, observations, text_of
from commonplace.index.scoring import SNIPPET, Judge, Text, shortened
from commonplace.index.text import sound
from commonplace.index.wording import is_held, spellings
from commonplace.query import Query

_SPELLINGS = 3
"""So many spellings of a mistyped word are looked for."""


def search(
    db: sqlite3.Connection, query: Query, *, viewer: str | None, limit: int = 10, offset: int = 0,
    explain: bool = False, today: date | None = None, near: Nearness | None = None,
) -> Hits:  # fmt: skip
    """One page of the notes that match the text and the filters of `query`, best first.

    `viewer` is the agent that asks (None = the owner). Without text: the newest notes that pass
    the filters. `explain` adds numbers to each hit's `why`; `today` is what "last week" in a
    question counts from, `near` tells what means the same as a question in other words. Raises
    InvalidInput for a broken metadata filter; no text raises.
    """
    predicate(query.metadata)
    query = query.replace(text=sound(query.text))
    if not query.text.strip():
        notes, total = listing(db, query, viewer=viewer, limit=limit, offset=offset)
        return Hits(_plain_hits(db, notes, query), total)
    if query.search_type == "permalink":
        return _by_permalink(db, query, viewer, limit, offset)
    settled = not db.in_transaction
    with snapshot(db):
        asked = Asked(db, query, viewer, settled=settled)
        asking, relaxed = is_question(query.text), Hits([], 0)
        if asking and ex.is_plain(query.text):
            relaxed = _relaxed(asked, limit, offset, explain, today, near)
            if relaxed.total:
                return relaxed
        text = ex.parse(query.text)
        if not text.clauses:
            return Hits([], 0)
        relaxable = ex.relaxable(text, quotes=asking)
        short = not relaxable and is_short_question(query.text) and ex.relaxable(text, quotes=True, least=1)
        if not relaxed.relaxed and text.bare and ((relaxable and asking) or (short and is_outright(query.text))):
            relaxed = _relaxed(asked, limit, offset, explain, today, near)
        relaxable = relaxable or short
        found = relaxed if relaxed.total else _strict(asked, text, limit, offset, explain)
        if found.total == 0 and relaxable:
            return relaxed if relaxed.relaxed else _relaxed(asked, limit, offset, explain, today, near)
        return found if found.total else _respelled(asked, text, limit, offset, explain)


def _respelled(asked: Asked, text: ex.Wanted, limit: int, offset: int, explain: bool) -> Hits:
    """One or two bare words that found nothing, with those no note holds mended within one edit."""
    if not text.bare or len(text.clauses) != 1:
        return Hits([], 0)
    spelled: list[str] = []
    choices: list[list[ex.Term]] = []
    for one in text.terms:
        if is_held(asked, one):
            choices.append([one])
            continue
        mended = spellings(asked, one.words[0])[:_SPELLINGS] if len(one.words) == 1 else []
        if not mended:
            return Hits([], 0)
        spelled += mended
        choices.append([found for word in mended if (found := ex.term(word))])
    if not spelled:
        return Hits([], 0)
    mended_text = ex.Wanted(tuple(ex.Clause(terms) for terms in product(*choices)), bare=True)
    found = _strict(asked, mended_text, limit, offset, explain)
    for hit in found:
        held = [word for word in spelled if any(word in reason for reason in hit.why)]
        hit.why.append(f"spelled: {', '.join(held or spelled)}")
    found.relaxed = bool(found.hits)
    return found


def _strict(asked: Asked, text: ex.Wanted, limit: int, offset: int, explain: bool) -> Hits:
    """All words must be there; notes that hold them as whole words come first."""
    terms, several = text.terms, len(text.clauses) > 1
    whole = asked.full(ex.match(text, asked.matcher, whole=True))
    loose = asked.full(ex.match(text, asked.matcher))
    rows, total = matches(asked, loose)
    if not total:
        return Hits([], 0)
    if whole == loose:
        found = order(asked, loose, terms, rows, total, most=offset + limit, any_term=several)
        return Hits(_page(asked, terms, found, loose, limit, offset, explain), total)
    whole_rows, whole_total = matches(asked, whole)
    most = offset + limit
    found = order(asked, whole, terms, whole_rows, whole_total, most=most, whole=True, any_term=several)
    if whole_total <= RANKED and most > whole_total:
        known = set(whole_rows)
        rest = [row for row in rows if row not in known]
        second = order(asked, loose, terms, rest, len(rest), most=most, any_term=several)
        found = Order(found.rows + [row for row in second.rows if row not in known], second.verdicts | found.verdicts)
    return Hits(_page(asked, terms, found, loose, limit, offset, explain), total)


def _relaxed(
    asked: Asked, limit: int, offset: int, explain: bool, today: date | None, near: Nearness | None
) -> Hits:  # fmt: skip
    """Any of the informative words may be there."""
    found = answers(asked, asked.query.text, today, near)
    reading = Reading(asked, found, chosen(found, found.page(asked.db, 0, MOST)))
    rows = reading.order[offset : offset + limit]
    if len(rows) < limit:
        skip, stop = max(0, offset - len(reading.order)), offset + limit - len(reading.order)
        rest = found.page(asked.db, MOST, stop + MORE)
        rows += [row for row in rest if row not in reading.read][skip:stop]
    judge = Judge(reading.terms, reading.weights.__getitem__, asked.query.text)
    notes = infos(asked.db, rows)
    read = {one.row: one for one in texts(asked.db, [row for row in rows if row not in reading.texts], reading.terms)}
    hits: list[Hit] = []
    for row in rows:
        text = reading.texts.get(row) or read[row]
        passage, line = _shown(judge, text, reading.best(row))
        numbers = [f"{name} {value:.3f}" for name, value in reading.shares(row).items()] if explain else []
        score = round(reading.score(row), 6)
        score = min(score, hits[-1].score) if hits else score
        hits.append(Hit(notes[row], passage, score, [*reading.why(row), *numbers, "relaxed"], line))
    _show_observations(asked.db, hits, asked.query, reading.terms)
    return Hits(hits, found.total, relaxed=True)


def _shown(judge: Judge, text: Text, best: Passage | None) -> tuple[str, int]:
    """The snippet of a note and its line in the file."""
    if best is not None:
        passage, line = judge.snippet(text.text, (best.start, best.stop), judge.places(text))
    elif len(text.text) <= SNIPPET:
        passage, line = shortened(text.text, 0, len(text.text))
    else:
        passage, line = judge.snippet(text.text, *judge.best(text))
    return passage, line + text.front.count("\n")


def _page(
    asked: Asked, terms: Sequence[ex.Term], found: Order, full: str, limit: int, offset: int, explain: bool
) -> list[Hit]:
    """One page: the ordered matches, then all others of `full`, newest first."""
    rows = found.rows[offset : offset + limit]
    if len(rows) < limit:
        skip = max(0, offset - len(found.rows))
        known = set(found.rows)
        others, _ = matches(asked, full, len(found.rows) + skip + limit - len(rows))
        rows += [row for row in others if row not in known][skip : skip + limit - len(rows)]
    judge = asked.judge(terms)
    verdicts = dict(found.verdicts)
    for text in texts(asked.db, [row for row in rows if row not in verdicts], terms):
        verdicts[text.row] = (judge.judge(text), text)
    notes = infos(asked.db, rows)
    hits: list[Hit] = []
    for row in rows:
        verdict, text = verdicts[row]
        passage, line = judge.snippet(text.text, verdict.passage, verdict.places)
        numbers = [f"{name} {value:.3f}" for name, value in verdict.parts.items()] if explain else []
        score = min(verdict.score, hits[-1].score) if hits else verdict.score
        hits.append(Hit(notes[row], passage, score, [*verdict.why, *numbers], line + text.front.count("\n")))
    _show_observations(asked.db, hits, asked.query, terms)
    return hits


def _plain_hits(db: sqlite3.Connection, notes: Sequence[NoteInfo], query: Query) -> list[Hit]:
    hits = []
    for note in notes:
        front, text = text_of(db, note.row)
        passage, line = shortened(text, 0, len(text))
        hits.append(Hit(note, passage, 0.0, [], line + front.count("\n")))
    _show_observations(db, hits, query, ())
    return hits


def _show_observations(db: sqlite3.Connection, hits: list[Hit], query: Query, terms: Sequence[ex.Term]) -> None:
    """With a filter for observation categories the snippet is such an observation."""
    asked = {name.strip().casefold() for name in (*query.categories, *query.any_category)}
    if not asked:
        return
    words = [word for one in terms for word in one.words]
    for hit in hits:
        seen = [one for one in observations(db, hit.note) if (one.category or "").strip().casefold() in asked]
        if seen:
            best = max(seen, key=lambda one: sum(word in one.content.lower() for word in words))
            hit.passage, hit.line = best.content[:200], best.line


def _by_permalink(db: sqlite3.Connection, query: Query, viewer: str | None, limit: int, offset: int) -> Hits:
    """Notes whose permalink fits the address in the text, and that pass the filters, by permalink."""
    notes, _ = matching(db, query.text.strip(), viewer=viewer, projects=query.projects, limit=None)
    filters = query.replace(text="", search_type="text", projects=None)
    if filters != Query():
        passed, _ = listing(db, filters, viewer=viewer, limit=None)
        rows = {note.row for note in passed}
        notes = [note for note in notes if note.row in rows]
    page = [note for note in notes[offset : offset + limit] if may_see(note.scope, viewer)]
    return Hits(_plain_hits(db, in_order(db, [note.row for note in page]), query), len(notes))
