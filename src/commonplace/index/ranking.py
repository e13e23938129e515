"""Choosing and ordering the notes that match one FTS5 expression.

However common a term is, the cost stays bounded: of many matches only the newest and those that
carry the words in their names are ranked. bm25 inside SQLite picks the best of them, `scoring`
reads those and has the last word.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from commonplace.index import expression as ex
from commonplace.index import weights
from commonplace.index.facets import expression, wanted
from commonplace.index.kept import kept_of
from commonplace.index.keys import key
from commonplace.index.listing import columns, passing
from commonplace.index.scoring import Judge, Text, Verdict, rarity
from commonplace.index.standings import Standings
from commonplace.query import Query

RANKED = 1_000
"""Of more matches only so many, the newest, are ranked by bm25."""

JUDGED = 20
"""So many of the best candidates by bm25 are read and scored exactly."""

_NAMED, _NAMED_JUDGED = 500, 10
_WEIGHED = 300
_FETCHED = 4_000
_FEW = 200
_RARE_ENOUGH = 5_000


@dataclass(slots=True)
class Order:
    """Matches in order, best first, and the verdicts on those that were read."""

    rows: list[int] = field(default_factory=list)
    verdicts: dict[int, tuple[Verdict, Text]] = field(default_factory=dict)


class Asked:
    """One query against the index: its filters as expressions, and what was found out about its terms. `settled`: all
    that the index shows is committed."""

    def __init__(self, db: sqlite3.Connection, query: Query, viewer: str | None, *, settled: bool = False):
        self.db = db
        self.kept = kept_of(db, settled=settled)
        self.standings = Standings(db, self.kept)
        self.query = query
        self.viewer = viewer
        self.own = None if viewer is None else f"agent:{viewer}"
        """The scope the viewer sees besides `global`; None: every one."""
        self.needed, self.unwanted = wanted(db, query, viewer)
        self.conditions, self.values = columns(query)
        title = query.search_type == "title"
        self.table = "name_fts" if title else "note_fts"
        self.matcher = ex.Matcher(db, self.table, "title" if title else "", self.kept.counts)
        self.filtered = bool(self.conditions or query.metadata or query.contains)

    def full(self, text: str) -> str:
        """A text expression together with all filters FTS5 can apply."""
        return expression(self.needed, self.unwanted, text)

    def judge(self, terms: Sequence[ex.Term], *, prefixes: bool = True) -> Judge:
        """A judge for these terms; rare ones weigh more."""

        def weight(one: ex.Term) -> float:
            return rarity(self.matcher.spread(one)) if len(terms) > 1 else 1.0  # one alone need not be counted

        return Judge(terms, weight, self.query.text, prefixes=prefixes)


def matches(asked: Asked, full: str, limit: int = RANKED) -> tuple[list[int], int]:
    """The newest rows that match, `limit` at most, and how many match in all."""
    table = asked.table
    if asked.filtered:
        where = " and ".join([f"{table} match ?", *asked.conditions])
        found = asked.db.execute(
            f"select f.rowid from {table} f join note n on n.row = f.rowid where {where} order by f.rowid desc",
            [full, *asked.values],
        )
        rows = passing(asked.db, asked.query, [row for (row,) in found])
        return rows[:limit], len(rows)
    # Beginnings of words are dear to look up: better to fetch more than to ask twice.
    most = max(limit, _FETCHED if '"*' in full else 0) + 1
    newest = f"select rowid from {table} where {table} match ? order by rowid desc limit ?"
    found = asked.db.execute(f"select group_concat(rowid) from ({newest})", (full, most)).fetchone()[0]
    rows = json.loads(f"[{found or ''}]")  # one text is read faster than many rows
    if len(rows) < most:
        return rows[:limit], len(rows)
    total = asked.db.execute(f"select count(*) from {table} where {table} match ?", (full,)).fetchone()[0]
    return rows[:limit], total


def order(
    asked: Asked, full: str, terms: Sequence[ex.Term], rows: list[int], total: int, *,
    most: int = 0, judged: int = JUDGED, whole: bool = False, any_term: bool = False,
) -> Order:  # fmt: skip
    """`rows`, the newest of `total` matches of `full`, best first.

    When there are very many, those that carry the terms in title, headings or tags take part
    whatever their age; of a single term's very many matches the others stay newest first. At least
    the first `most` are in order, `judged` of them are read. `any_term`: the expression asks for any
    of the terms, not all.
    """
    ranked = rows
    if judged < len(rows) <= _WEIGHED or (len(rows) > _WEIGHED and len(terms) > 1):
        ranked = _by_bm25(asked, terms, full, rows, max(most, judged), whole, any_term)
    best = ranked[:judged]
    more = _named(asked, full)[:_NAMED_JUDGED] if total > min(len(rows), _WEIGHED) else []
    same = _same_title(asked, full) if total > judged else []
    extra = [row for row in dict.fromkeys([*same, *more]) if row not in best]
    if extra and asked.filtered:
        allowed = set(passing(asked.db, asked.query, extra)) if not asked.conditions else set(rows)
        extra = [row for row in extra if row in allowed]
    judge = asked.judge(terms, prefixes=not whole)
    verdicts = {text.row: (judge.judge(text), text) for text in texts(asked.db, best + extra, terms)}
    rest = [row for row in ranked if row not in verdicts]
    best = best_first(asked.db, {row: verdict.score for row, (verdict, _) in verdicts.items()})
    return Order(best + rest, verdicts)


def texts(db: sqlite3.Connection, rows: Sequence[int], terms: Sequence[ex.Term]) -> list[Text]:
    """These notes as `scoring` reads them; of long texts only the passages that hold a term."""
    found: list[Text] = []
    if not rows:
        return found
    for row, project, title, aliases, tags, source, path, headings, front, text, first, count in db.execute(
        "select n.row, p.name, n.title, n.aliases, n.tags, n.source, n.path, t.headings,"
        " t.front, t.text, t.first, t.passages"
        " from note n join project p on p.id = n.project join text t on t.row = n.row"
        " where n.row in (select value from json_each(?))", (json.dumps(list(rows)),),
    ):  # fmt: skip
        names = [title, *(json.loads(aliases) if aliases else ())]
        spans = None if first is None else _spans(db, first, count, terms)
        found.append(Text(row, project, names, headings, json.loads(tags) if tags else [], source,
                          f"{project}/{path}", front, text, spans))  # fmt: skip
    return found


def _spans(db: sqlite3.Connection, first: int, count: int, terms: Sequence[ex.Term]) -> list[tuple[int, int]]:
    """The passages of a long note to read: those with all terms, else with any, else the first."""
    phrases = [one.prefix if one.open else one.whole for one in terms]
    rows: list[int] = []
    for joint in (" AND ", " OR "):
        rows = rows or [row for (row,) in db.execute(
            "select rowid from passage_fts where passage_fts match ? and rowid between ? and ? limit 100",
            (joint.join(phrases), first, first + count - 1),
        )]  # fmt: skip
    found = db.execute(
        "select start, stop from passage where row in (select value from json_each(?)) order by row",
        (json.dumps(rows or [first]),),
    )
    return found.fetchall()


def _picked(table: str) -> str:
    """The weights of the columns of `note_fts` or `name_fts` as bm25 takes them; facets count nothing."""
    title, headings, body, tags, address = weights.EXACT.picked
    some = (title, headings, body, tags, address) if table == "note_fts" else (title, headings, tags)
    return ", ".join(f"{one:g}" for one in (*some, 0))


def _by_bm25(
    asked: Asked, terms: Sequence[ex.Term], full: str, rows: list[int], most: int, whole: bool, any_term: bool
) -> list[int]:
    """The best `most` of `rows` by bm25 over the terms that are not too common to tell notes apart
    (bm25 looks at every note that holds a term), equals newest first, then the others."""
    matcher, table = asked.matcher, asked.table
    rare = [one for one in terms if matcher.is_rare(one, _RARE_ENOUGH)]
    if not rare:
        return rows
    joint = " OR " if any_term else " AND "
    text = joint.join(matcher.strict(one) if whole else matcher.loose(one) for one in rare)
    source, condition, values = table, f"{table} match ? and {table}.rowid >= ?", [text, rows[-1]]
    if len(rows) <= _FEW or full != f"(({text}))" or asked.filtered:  # else they are the newest
        condition += f" and +{table}.rowid in (select value from json_each(?))"
        values.append(json.dumps(rows))
    by = f"{table}.rowid desc"
    if len(rows) <= _FEW:
        source, by = f"{table} join note n on n.row = {table}.rowid", "n.changed desc, n.permalink"
    found = asked.db.execute(
        f"select {table}.rowid from {source} where {condition} order by bm25({table}, {_picked(table)}), {by} limit ?",
        [*values, most],
    )
    best = [row for (row,) in found]
    inside = set(best)
    return best + [row for row in rows if row not in inside]


def _named(asked: Asked, full: str) -> list[int]:
    """The newest matches that carry the terms in title, headings or tags, best first."""
    rows = [row for (row,) in asked.db.execute(
        "select rowid from name_fts where name_fts match ? order by rowid desc limit ?", (full, _NAMED)
    )]  # fmt: skip
    if len(rows) <= _NAMED_JUDGED or len(rows) == _NAMED:
        return rows
    return [row for (row,) in asked.db.execute(
        f"select rowid from name_fts where name_fts match ? order by bm25(name_fts, {_picked('name_fts')}),"
        " rowid desc", (full,),
    )]  # fmt: skip


def _same_title(asked: Asked, full: str) -> list[int]:
    """Matching notes whose very name is what was asked."""
    rows = [row for (row,) in asked.db.execute(
        "select note from note_fold where fold = ? order by note desc limit 20", (key(asked.query.text),)
    )]  # fmt: skip
    if not rows:
        return []
    found = asked.db.execute(
        f"select rowid from {asked.table} where {asked.table} match ? and rowid in ({', '.join('?' * len(rows))})",
        (full, *rows),
    )
    return [row for (row,) in found]


def best_first(db: sqlite3.Connection, scores: Mapping[int, float]) -> list[int]:
    """Rows by their scores; of equal score those changed last come first, then by permalink."""
    often = Counter(scores.values())
    equal = [row for row, score in scores.items() if often[score] > 1]
    if not equal:
        return sorted(scores, key=scores.__getitem__, reverse=True)
    found = db.execute(
        "select row, changed, permalink from note where row in (select value from json_each(?))", (json.dumps(equal),)
    )
    known = {row: (-changed, permalink) for row, changed, permalink in found}
    return sorted(scores, key=lambda row: (-scores[row], *known.get(row, ()), row))
