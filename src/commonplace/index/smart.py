"""Smart search: memories by how often they hold the words of a query (contract 001, 14).

Every memory that passes the filters is looked at. A word counts inside longer words too, which no
full-text table could answer, and ten thousand texts are read in some tens of milliseconds.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass
from itertools import groupby

from commonplace.errors import InvalidInput
from commonplace.index.database import snapshot
from commonplace.index.facets import expression, wanted
from commonplace.index.listing import columns
from commonplace.index.rows import NoteInfo, in_order
from commonplace.index.text import sound
from commonplace.query import Query

_HAN = re.compile(
    "[\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]"
)
_WEIGHTS = (0.0, 1.0, 1.5, 2.0, 2.0, 3.0)
"""What a token adds that occurs so many times; five or more times count as five."""
_TAG = 1.0
"""What is added when a tag is the token."""


@dataclass(slots=True)
class Scored:
    """One memory found: `score` of two decimals, `matched` the tokens its text holds."""

    note: NoteInfo
    score: float
    matched: list[str]


@dataclass(slots=True)
class Ranking:
    """The best memories for a query; `total` is how many have a score above 0."""

    tokens: list[str]
    best: list[Scored]
    total: int


def tokens(text: str) -> list[str]:
    """Each Han character and each run of other letters and digits of `text`, lower case, in order, each once."""
    found: dict[str, None] = {}
    for kind, run in groupby(text, _kind):
        if kind == "han":
            found.update(dict.fromkeys(run))
        elif kind == "word":
            found["".join(run).lower()] = None
    return list(found)


def _kind(character: str) -> str:
    if _HAN.match(character):
        return "han"
    return "word" if character.isalpha() or character.isdecimal() else ""


def search(db: sqlite3.Connection, text: str, query: Query, *, viewer: str | None, top: int = 10) -> Ranking:
    """The `top` best notes (0 = all) among those that pass the filters of `query`, which must name projects.

    Best first, then newest, then by id. Raises InvalidInput when `text` holds no letter or digit.
    """
    sought = tokens(sound(text))
    if not sought:
        raise InvalidInput("no valid tokens in query")
    with snapshot(db):
        return _ranked(db, sought, query, viewer, top)


def _ranked(db: sqlite3.Connection, sought: list[str], query: Query, viewer: str | None, top: int) -> Ranking:
    facets = expression(*wanted(db, query, viewer))
    conditions, values = columns(query)
    found: list[tuple[float, int, str, int, list[str]]] = []
    tagged: dict[str | None, frozenset[str]] = {None: frozenset()}
    for row, created, identity, tags, body in db.execute(
        "select n.row, n.created, n.id, n.tags, t.text from note_fts f join note n on n.row = f.rowid"
        f" join text t on t.row = n.row where {' and '.join(['note_fts match ?', *conditions])}",
        (facets, *values),
    ):
        low = body.lower()
        score, matched = 0.0, []
        for token in sought:
            pieces = low.split(token, 5)  # up to the fifth place: the rest of a long text need not be read
            if len(pieces) == 1:
                continue
            score += _WEIGHTS[len(pieces) - 1]
            matched.append(token)
            if tags not in tagged:
                tagged[tags] = frozenset(each.lower() for each in json.loads(tags))
            if token in tagged[tags]:
                score += _TAG
        if matched:
            found.append((-score, -created, identity, row, matched))
    found.sort()
    best = found[: top or None]
    notes = in_order(db, [row for *_, row, _ in best])
    scored = [Scored(note, round(-one[0], 2), one[4]) for note, one in zip(notes, best, strict=True)]
    return Ranking(sought, scored, len(found))
