"""Search: the ranked search, with the shares of each score; a graph shows the same hits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from commonplace.engine import Memory
from commonplace.engine.completion import offers
from commonplace.index.rows import Hit, Hits
from commonplace.note.model import CATEGORIES
from commonplace.query import Query, day, parse
from commonplace.serve.page.visit import Visit

SHOWN, MOST = 20, 200
_WORDS = re.compile(r"^(?:title|words|spelled): (.*)$")


def query_of(memory: Memory, given: Mapping[str, str]) -> Query:
    """The query a form asks: its text, which may hold filters itself, and its fields."""
    zone, now = memory.settings.zone, memory.clock()
    query = parse(given.get("q", ""), now=now, zone=zone)
    fields: dict[str, tuple[str, Callable[[str], Any]]] = {
        "project": ("projects", lambda text: (text,)), "category": ("any_category", lambda text: (text,)),
        "tag": ("tags", lambda text: (*query.tags, text.removeprefix("#"))), "agent": ("by", str),
        "from": ("created_from", lambda text: day(text, "from", zone, now=now)),
        "until": ("created_until", lambda text: day(text, "until", zone, 1, now)),
    }  # fmt: skip
    more = {name: read(given[field]) for field, (name, read) in fields.items() if given.get(field)}
    return query.replace(**more, archived=None if given.get("archive") else False)


def find(memory: Memory, given: Mapping[str, str], limit: int, offset: int) -> Hits:
    """The hits of a form, explained."""
    return memory.search(query_of(memory, given), limit=limit, offset=offset, explain=True)


def show(visit: Visit) -> Response:
    memory, given = visit.memory, dict(visit.given)
    offset = visit.number("offset", 0)
    hits = find(memory, given, SHOWN, offset)
    values: dict[str, Any] = {
        "hits": hits, "rows": [_row(hit) for hit in hits], "given": given,
        "offset": offset, "next": offset + SHOWN if hits.is_lower_bound or offset + len(hits) < hits.total else 0,
        "plain": not given.get("q", "").strip(),
    }  # fmt: skip
    if visit.is_live:
        return visit.html("hits.html", **values)
    lately = {change.agent for change in memory.log(limit=500) if change.agent}
    return visit.html(
        "search.html", projects=[each.name for each in memory.projects], categories=CATEGORIES,
        tags=[each.partition("\t")[0] for each in offers(memory.settings, "tag")],
        agents=["owner", *sorted(lately), "import", "web", "file"], **values,
    )  # fmt: skip


def json(visit: Visit) -> dict[str, Any]:
    limit = min(visit.number("limit", SHOWN), MOST)
    hits = find(visit.memory, visit.given, limit, visit.number("offset", 0))
    keys = ("id", "title", "project", "path", "source", "category")
    rows = [
        {key: getattr(hit.note, key) for key in keys}
        | {"passage": hit.passage, "line": hit.line, "date": hit.note.date or hit.note.created,
           "tags": list(hit.note.tags), "score": round(hit.score, 4), "shares": hit.shares, "why": hit.why}
        for hit in hits
    ]  # fmt: skip
    return {"total": hits.total, "relaxed": hits.relaxed, "hits": rows, **hits.bound}


def _row(hit: Hit) -> tuple[Any, ...]:
    """What the page shows of a hit: the hit; its passage in pieces (whether it is a word of the query, text); the
    shares of its score (name, share, where its bar begins, its width), of which those that add something are side by
    side, 100 in all; why it was found, without the numbers."""
    found = {word for why in hit.why if (match := _WORDS.match(why)) for word in match[1].split(", ") if word}
    pieces = [(False, hit.passage)]
    if found:
        words = "|".join(re.escape(each) for each in sorted(found, key=len, reverse=True))
        parts = re.split(rf"(?i)({words})", hit.passage)
        pieces = [(bool(number % 2), part) for number, part in enumerate(parts) if part]

    added = sum(each for each in hit.shares.values() if each > 0) or 1.0
    bars, at = [], 0.0
    for name, share in sorted(hit.shares.items(), key=lambda each: -each[1]):
        width = 100 * max(0.0, share) / added
        if share:
            bars.append((name.replace("_", " "), share, round(at, 1), round(width, 1)))
        at += width

    numbers = tuple(f"{name} " for name in hit.shares)
    return hit, pieces, bars, [each for each in hit.why if not (numbers and each.startswith(numbers))]
