"""Full-text search (contract 000b, 6) over the index; lists without a text come from `listing`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from commonplace.index import expression as ex
from commonplace.index.database import snapshot
from commonplace.index.facets import may_see
from commonplace.index.listing import listing
from commonplace.index.lookup import in_order, infos, matching, observations, text_of
from commonplace.index.metadata import predicate
from commonplace.index.ranking import RANKED, Asked, Order, matches, order, texts
from commonplace.index.rows import Hit, Hits, NoteInfo
from commonplace.index.scoring import snippet
from commonplace.index.text import sound
from commonplace.query import Query


def search(
    db: sqlite3.Connection, query: Query, *, viewer: str | None, limit: int = 10, offset: int = 0,
    explain: bool = False,
) -> Hits:  # fmt: skip
    """One page of the notes that match the text and the filters of `query`, best first.

    `viewer` is the agent that asks (None = the owner). Without text: the newest notes that pass
    the filters. `explain` adds numbers to each hit's `why`. Raises InvalidInput for a broken
    metadata filter; no text raises.
    """
    predicate(query.metadata)
    query = query.but(text=sound(query.text))
    if not query.text.strip():
        notes, total = listing(db, query, viewer=viewer, limit=limit, offset=offset)
        return Hits(_plain_hits(db, notes, query), total)
    if query.search_type == "permalink":
        return _by_permalink(db, query, viewer, limit, offset)
    text = ex.parse(query.text)
    if not text.clauses:
        return Hits([], 0)
    with snapshot(db):
        asked = Asked(db, query, viewer)
        found = _strict(asked, text, limit, offset, explain)
        if found.total == 0 and ex.relaxable(text):
            return _relaxed(asked, text, limit, offset, explain)
        return found


def telling(asked: Asked, text: str) -> list[ex.Term]:
    """The informative words of `text` that some note holds, at most 32 of them, the rarest kept."""
    matcher = asked.matcher
    terms = ex.informative(text)[: ex.MOST_TERMS * 8]
    known = [(held, at) for at, one in enumerate(terms) if (held := matcher.spread(one))]
    kept = sorted(at for _, at in sorted(known)[: ex.MOST_TERMS])
    return [terms[at] for at in kept]


def candidates(asked: Asked, terms: Sequence[ex.Term]) -> list[int]:
    """The most promising of the notes that hold any of `terms`, newest first: all that hold a rare
    one, and those that hold two of the common ones."""
    matcher = asked.matcher
    by_rarity = sorted(terms, key=matcher.spread)
    core: list[ex.Term] = []
    size = 0
    for one in by_rarity:
        size += matcher.spread(one)
        if core and size > RANKED:
            break
        core.append(one)
    rows, _ = matches(asked, asked.full(" OR ".join(map(matcher.loose, core))))
    others = by_rarity[len(core) : len(core) + 4]
    for at, one in enumerate(others):
        for other in [*core[:1], *others[at + 1 :]]:
            pair = f"{matcher.loose(one)} AND {matcher.loose(other)}"
            rows += matches(asked, asked.full(pair), RANKED // 4)[0]
    return sorted(set(rows), reverse=True)


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


def _relaxed(asked: Asked, text: ex.Wanted, limit: int, offset: int, explain: bool) -> Hits:
    """Any of the informative words may be there."""
    terms = telling(asked, " ".join(one.text for one in text.terms))
    if not terms:
        return Hits([], 0, relaxed=True)
    full = asked.full(" OR ".join(map(asked.matcher.loose, terms)))
    _, total = matches(asked, full, 0)
    found = Order()
    if total:
        found = order(asked, full, terms, candidates(asked, terms), total, most=offset + limit, any_term=True)
    hits = _page(asked, terms, found, full, limit, offset, explain)
    for hit in hits:
        hit.why.append("relaxed")
    return Hits(hits, total, relaxed=True)


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
        passage, line = snippet(text.text, verdict.passage, verdict.places, judge.weights)
        numbers = [f"{name} {value:.3f}" for name, value in verdict.parts.items()] if explain else []
        score = min(verdict.score, hits[-1].score) if hits else verdict.score
        hits.append(Hit(notes[row], passage, score, [*verdict.why, *numbers], line + text.front.count("\n")))
    _show_observations(asked.db, hits, asked.query, terms)
    return hits


def _plain_hits(db: sqlite3.Connection, notes: Sequence[NoteInfo], query: Query) -> list[Hit]:
    hits = []
    for note in notes:
        front, text = text_of(db, note.row)
        passage, line = snippet(text, (0, len(text)), (), ())
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
    filters = query.but(text="", search_type="text", projects=None)
    if filters != Query():
        passed, _ = listing(db, filters, viewer=viewer, limit=None)
        rows = {note.row for note in passed}
        notes = [note for note in notes if note.row in rows]
    page = [note for note in notes[offset : offset + limit] if may_see(note.scope, viewer)]
    return Hits(_plain_hits(db, in_order(db, [note.row for note in page]), query), len(notes))
