"""Shows the page of notes: the hits of a search, or all notes, the last changed first.

A hit shows its passage with the words of the query marked, and the shares of its score: how much
each feature, such as the title or the links, added to it.
"""

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
"""Hits on one page."""
MOST_HITS = 200
"""Hits that `/api` gives out at most."""
FILTERS = ("project", "category", "tag", "agent", "from", "until", "archive")
# The marks before a heading, or before an item of a list with the category of a fact.
_ITEM = re.compile(r"\n\s*(?:[-*+]|#{1,6})\s+(?:\[[^\[\]\n]{2,60}\]\s+)?")
_DOT = " · "
# A link to a note, with the words shown for it.
_LINK = re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")
# Notes that the palette suggests.
_MAX_SUGGESTIONS = 8
_MAX_TITLE_CHARACTERS = 160
# Hits in transcripts that are shown.
_MAX_PASSAGES = 10


@dataclass
class Share:
    """The part that one feature added to a score.

    start, width: where its bar begins and how wide it is, in percent of the whole bar.
    """

    name: str
    value: float
    start: float
    width: float


@dataclass
class ShownHit:
    """A hit with everything that the page shows of it.

    title: the title in pieces: whether a piece is a word of the query, and its text.
    pieces: the passage in such pieces. Empty if the passage only repeats the title.
    shares: the shares of its score.
    reasons: why it was found, without the reasons that the shares show as numbers.
    """

    hit: Hit
    title: list[tuple[bool, str]]
    pieces: list[tuple[bool, str]]
    shares: list[Share] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def query_of(memory: MemorySession, fields: Mapping[str, str]) -> Query:
    """Return the query of a search form. Raises InvalidInput.

    fields: the fields of the form. `q` is the text, which may contain filters (`tag:work`). The
        other fields are filters, too.
    """
    zone = memory.settings.zone
    now = memory.clock()
    query = parse(fields.get("q", ""), now=now, zone=zone)
    # For each field of the form: the key of the query, and the function that makes its value.
    readers: dict[str, tuple[str, Callable[[str], Any]]] = {
        "project": ("projects", lambda text: (text,)),
        "category": ("any_category", lambda text: (text,)),
        "tag": ("tags", lambda text: (*query.tags, text.removeprefix("#"))),
        "agent": ("by", str),
        "from": ("created_from", lambda text: day(text, "from", zone, now=now)),
        "until": ("created_until", lambda text: day(text, "until", zone, 1, now)),
    }
    filters = {
        query_key: read(fields[field_name])
        for field_name, (query_key, read) in readers.items()
        if fields.get(field_name)
    }
    # None: archived notes and others.
    archived = None if fields.get("archive") else False
    return query.replace(**filters, archived=archived)


def show(visit: Visit) -> Response:
    """Show the page with the hits of a search, or only the hits while somebody types."""
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
    """Show the tags in use, to choose from.

    Counting them takes longer than a search, so a script asks for them after the page is shown.
    """
    tag_offers = offers(visit.memory.settings, "tag")
    # An offer is a tag, a tab and a description.
    return visit.html("tags.html", tags=[offer.partition("\t")[0] for offer in tag_offers])


def _in_transcripts(visit: Visit) -> list[TraceHit]:
    """Return the hits in agents' transcripts. Empty unless the form asks for them."""
    if not visit.text("traces") or not visit.text("q"):
        return []
    return find_traces(visit.memory, visit.text("q"), limit=_MAX_PASSAGES)


def writers(memory: MemorySession) -> list[str]:
    """Return the values that the filter `by:` may have: the writers of notes."""
    lately = {change.agent for change in memory.log(limit=500) if change.agent}
    return ["owner", *sorted(lately), "import", "web", "file"]


def suggest(visit: Visit) -> Response:
    """Show the notes that the words typed into the palette may mean."""
    text = visit.text("q")
    hits = visit.memory.search(query_of(visit.memory, {"q": text}), limit=_MAX_SUGGESTIONS)
    return visit.html("suggestions.html", hits=hits, text=text)


def as_json(visit: Visit) -> dict[str, Any]:
    """Return the hits of a search as JSON."""
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
    """Return a hit with everything that the page shows of it."""
    shares = hit.share_reasons()
    reasons = [reason for reason in hit.why if reason not in shares]
    passage = readable_passage(hit.passage, hit.note.title)
    return ShownHit(
        hit,
        _pieces(hit, hit.note.title[:_MAX_TITLE_CHARACTERS]),
        _pieces(hit, passage),
        _shares(hit.shares),
        reasons,
    )


def readable_passage(passage: str, title: str) -> str:
    """Return a passage of Markdown as one line, without the title at its beginning.

    Headings and items of lists are separated by dots, and links become their words: `- [[Bo]]` and
    `- tea` give `Bo · tea`. "" if the passage says nothing but the title.
    """
    separated = _ITEM.sub(_DOT, f"\n{passage.strip()}")
    # A link may be cut at the end of the passage, so a `[[` can be left.
    without_links = _LINK.sub(r"\1", separated).replace("[[", "")
    line = " ".join(without_links.split()).removeprefix(_DOT.lstrip())
    after_title = line.removeprefix(title.strip())
    if after_title.strip(" .…") == "":
        return ""
    if after_title.startswith(_DOT):
        return after_title.removeprefix(_DOT)
    return line


def _pieces(hit: Hit, text: str) -> list[tuple[bool, str]]:
    """Split a text at the words of the query: (whether a piece is such a word, the piece).

    For the word "plan", `The plan holds` gives `The `, `plan` (True) and ` holds`.
    """
    query_words = {*hit.words, *hit.spelled} - {""}
    if not query_words:
        return [(False, text)] if text else []
    longest_first = sorted(query_words, key=len, reverse=True)
    pattern = "|".join(re.escape(word) for word in longest_first)
    parts = re.split(f"(?i)({pattern})", text)
    # `re.split` puts what the group matched at every second place.
    return [(bool(number % 2), part) for number, part in enumerate(parts) if part]


def _shares(shares: Mapping[str, float]) -> list[Share]:
    """Return the shares of a score as parts of one bar, the largest first.

    The positive shares fill the bar. A negative one has no width.
    """
    positive_sum = sum(value for value in shares.values() if value > 0) or 1.0
    bars = []
    start = 0.0
    for name, value in sorted(shares.items(), key=lambda item: -item[1]):
        width = 100 * max(0.0, value) / positive_sum
        if value:
            bars.append(Share(name.replace("_", " "), value, round(start, 1), round(width, 1)))
        start += width
    return bars
