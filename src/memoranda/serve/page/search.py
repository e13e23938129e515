"""Notes: the ranked search with the shares of each score, or all notes, the latest change first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.listed import Listed
from memoranda.engine import MemorySession
from memoranda.engine.completion import offers
from memoranda.index.rows import Hit
from memoranda.note.model import CATEGORIES, INBOX
from memoranda.query import Query, day, parse
from memoranda.serve.page.visit import Visit
from memoranda.transcripts.search import TraceHit
from memoranda.transcripts.tier import find_traces

HITS = 20
MOST_HITS = 200
"""So many are shown at once, and given out at most."""
FILTERS = ("project", "category", "tag", "agent", "from", "until", "archive")
# The words that a reason of a hit names.
_WORDS = re.compile(r"^(?:title|words|spelled): (.*)$")
# What opens a heading, or an item of a list with the category of a fact.
_ITEM = re.compile(r"\n\s*(?:[-*+]|#{1,6})\s+(?:\[[^\[\]\n]{2,60}\]\s+)?")
_DOT = " · "
# A link to a note, with the words shown for it.
_LINK = re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")
_SUGGESTED = 8
# Characters of a title.
_TITLE = 160
_PASSAGES = 10


@dataclass
class Share:
    """The part that one feature added to a score.

    start, width: of its bar, in percent.
    """

    name: str
    value: float
    start: float
    width: float


@dataclass
class ShownHit:
    """A hit with its title and its passage in pieces (whether it is a word of the query, text), the
    shares of its score, and why it was found, without the numbers. A passage that only says the
    title again has no pieces.
    """

    hit: Hit
    title: list[tuple[bool, str]]
    pieces: list[tuple[bool, str]]
    shares: list[Share] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def query_of(memory: MemorySession, fields: Mapping[str, str]) -> Query:
    """The query a form asks: its text, which may hold filters itself, and its fields."""
    zone = memory.settings.zone
    now = memory.clock()
    query = parse(fields.get("q", ""), now=now, zone=zone)
    readers: dict[str, tuple[str, Callable[[str], Any]]] = {
        "project": ("projects", lambda text: (text,)),
        "category": ("any_category", lambda text: (text,)),
        "tag": ("tags", lambda text: (*query.tags, text.removeprefix("#"))),
        "agent": ("by", str),
        "from": ("created_from", lambda text: day(text, "from", zone, now=now)),
        "until": ("created_until", lambda text: day(text, "until", zone, 1, now)),
    }
    more = {
        name: read(fields[field_name])
        for field_name, (name, read) in readers.items()
        if fields.get(field_name)
    }
    return query.replace(**more, archived=None if fields.get("archive") else False)


def show(visit: Visit) -> Response:
    """The hits of a search while somebody types, or the page with them."""
    memory = visit.memory
    fields = dict(visit.fields)
    offset = visit.number("offset", 0)
    hits = memory.search(query_of(memory, fields), limit=HITS, offset=offset, explain=True)
    rows: list[Any] = [shown(hit) for hit in hits]
    values: dict[str, Any] = {
        "hits": hits,
        "fields": fields,
        "offset": offset,
        "listed": Listed.part(rows, hits.total, offset, is_lower_bound=hits.is_lower_bound),
        "passages": _in_transcripts(visit),
        "is_plain": not fields.get("q", "").strip(),
        "is_filtered": any(fields.get(name) for name in FILTERS),
        "categories": CATEGORIES,
        "inbox": INBOX,
    }
    if visit.is_part:
        return visit.html("hits.html", **values)
    return visit.html(
        "search.html",
        projects=[project.name for project in memory.projects],
        agents=writers(memory),
        **values,
    )


def tags(visit: Visit) -> Response:
    """The tags in use, to choose from. Counting them takes longer than a search: they come later."""
    used = offers(visit.memory.settings, "tag")
    return visit.html("tags.html", tags=[offer.partition("\t")[0] for offer in used])


def _in_transcripts(visit: Visit) -> list[TraceHit]:
    """The hits in agents' transcripts, if they are asked for and allowed."""
    if not visit.text("traces") or not visit.text("q"):
        return []
    return find_traces(visit.memory, visit.text("q"), limit=_PASSAGES)


def writers(memory: MemorySession) -> list[str]:
    """Who may have written a note, as `by:` takes it."""
    lately = {change.agent for change in memory.log(limit=500) if change.agent}
    return ["owner", *sorted(lately), "import", "web", "file"]


def suggest(visit: Visit) -> Response:
    """The notes that words typed into the palette may mean."""
    text = visit.text("q")
    hits = visit.memory.search(query_of(visit.memory, {"q": text}), limit=_SUGGESTED)
    return visit.html("suggestions.html", hits=hits, text=text)


def as_json(visit: Visit) -> dict[str, Any]:
    """The hits of a search, for a program."""
    memory = visit.memory
    limit = min(visit.number("limit", HITS), MOST_HITS)
    offset = visit.number("offset", 0)
    query = query_of(memory, visit.fields)
    hits = memory.search(query, limit=limit, offset=offset, explain=True)
    notes = [hit.note for hit in hits]
    listed = documents.found_notes(memory, notes, hits, offset, is_named=True)
    return {
        "total": listed.total,
        **hits.bound,
        "relaxed": hits.relaxed,
        "hits": listed.rows,
        "next": listed.next,
    }


def shown(hit: Hit) -> ShownHit:
    """A hit with everything that the page shows of it."""
    numbers = tuple(f"{name} " for name in hit.shares)
    reasons = [reason for reason in hit.why if not (numbers and reason.startswith(numbers))]
    passage = readable_passage(hit.passage, hit.note.title)
    return ShownHit(
        hit,
        _pieces(hit, hit.note.title[:_TITLE]),
        _pieces(hit, passage),
        _shares(hit.shares),
        reasons,
    )


def readable_passage(passage: str, title: str) -> str:
    """A passage of Markdown as one line: headings and items of lists apart by dots, links as their
    words. Empty if it says nothing but the title.
    """
    items = _ITEM.sub(_DOT, f"\n{passage.strip()}")
    line = " ".join(_LINK.sub(r"\1", items).replace("[[", "").split()).removeprefix(_DOT.lstrip())
    said_after = line.removeprefix(title.strip())
    if said_after.strip(" .…") == "":
        return ""
    if said_after.startswith(_DOT):
        return said_after.removeprefix(_DOT)
    return line


def _pieces(hit: Hit, text: str) -> list[tuple[bool, str]]:
    """A text in pieces, with the words of the query apart."""
    matched: set[str] = set()
    for reason in hit.why:
        match = _WORDS.match(reason)
        if match:
            matched.update(word for word in match[1].split(", ") if word)
    if not matched:
        return [(False, text)] if text else []
    longest_first = sorted(matched, key=len, reverse=True)
    pattern = "|".join(re.escape(word) for word in longest_first)
    parts = re.split(f"(?i)({pattern})", text)
    # Every second part was in brackets
    return [(bool(number % 2), part) for number, part in enumerate(parts) if part]


def _shares(shares: Mapping[str, float]) -> list[Share]:
    """The features side by side, the largest first. The positive ones make 100 together."""
    added = sum(value for value in shares.values() if value > 0) or 1.0
    bars = []
    start = 0.0
    for name, value in sorted(shares.items(), key=lambda item: -item[1]):
        width = 100 * max(0.0, value) / added
        if value:
            bars.append(Share(name.replace("_", " "), value, round(start, 1), round(width, 1)))
        start += width
    return bars
