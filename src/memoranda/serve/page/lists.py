"""Lists: what happened, newest first, each change with its diff and Undo; what upkeep asks the
owner, a card a question: approve, correct the category, merge side by side, dismiss; and the ranked
search, with the shares of a score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from starlette.responses import Response

from memoranda import documents
from memoranda.engine import MemorySession
from memoranda.engine.completion import offers
from memoranda.errors import Ambiguous, CannotUndo, MemorandaError, NotFound
from memoranda.index.rows import Hit
from memoranda.ledger.change import Change
from memoranda.note.model import CATEGORIES, INBOX, Note
from memoranda.query import Query, day, parse
from memoranda.serve.page.visit import HOME, Visit, diff

CHANGES = 50
CARDS = 20
HITS = 20
MOST_HITS = 200
"""So many of each are shown at once, and hits given out at most."""
_TITLES = 200
_TITLE = 80
_DIFFS = 50
_PREVIEW = 4000
_WORDS = re.compile(r"^(?:title|words|spelled): (.*)$")


def today(visit: Visit) -> Response:
    """The newest changes, or those before a number; runs of jobs are one line each."""
    # Before the look: what comes meanwhile is told to the page
    since = visit.memory.journal_stamp()
    runs = _runs(visit)
    undone = undone_in(each for run in runs for each in run)
    more = 0
    titles = {}
    # Before which the next page begins; a run with others between is rather shown twice
    if len(runs) == CHANGES:
        first = runs[-1][0].number
        last = runs[-1][-1].number
        more = last if first - last == len(runs[-1]) - 1 else first
    for each in islice(
        (each for run in runs for each in run if each.path and not each.root), _TITLES
    ):
        # It is no longer there
        with suppress(MemorandaError):
            titles[each.project, each.path] = visit.memory.find_ref(
                (each.project, each.path)
            ).title[:_TITLE]
    return visit.html(
        "changes.html" if visit.is_live else "today.html",
        runs=runs,
        undone=undone,
        more=more,
        before=visit.number("before", 0),
        titles=titles,
        since=since,
    )


def _runs(visit: Visit, limit: int = CHANGES) -> list[list[Change]]:
    given = visit.given
    return visit.memory.log_by_run(
        given.get("ref") or None,
        limit=limit,
        agent=given.get("agent") or None,
        before=visit.number("before", 0),
    )


def undone_in(changes: Iterable[Change]) -> Mapping[int, int]:
    """By number, the change that took a change, or the run that begins with it, back and stands
    itself.
    """
    undos = {each.undoes: each.number for each in changes if each.undoes is not None}
    return {number: undo for number, undo in undos.items() if undo not in undos}


def change(visit: Visit) -> Response:
    """One change with its diffs: a page, or for a script the diffs alone."""
    revisions = visit.memory.revisions(visit.number("change", 0), limit=_DIFFS + 1)
    shown = [
        (revision, diff(revision.before or "", revision.after or ""))
        for revision in revisions[:_DIFFS]
    ]
    return visit.html(
        "diffs.html" if visit.is_live else "change.html",
        revisions=shown,
        has_more=len(revisions) > _DIFFS,
        number=visit.number("change", 0),
    )


def undo(visit: Visit) -> Response | dict[str, Any]:
    """Take a change, or a run, back; then the page the button stood on. Who comes with a token
    takes back what they changed themselves. Raises CannotUndo."""
    memory, number, run = visit.memory, visit.number("change", 0), visit.number("run", 0)
    if memory.agent is not None and number not in {
        each.number for each in memory.log(limit=0, agent=memory.agent)
    }:
        raise CannotUndo(f"cannot undo #{number}: it is no change of {memory.agent}")
    if run and memory.agent is None:
        done = memory.undo_run(run)[0]
    else:
        done = memory.undo(number or None)
    if visit.is_api:
        return {"change": done.number, "undone": done.undoes}
    return visit.back()


def changes_json(visit: Visit) -> dict[str, Any]:
    runs = _runs(visit, min(visit.number("limit", CHANGES), 1000) or CHANGES)
    return {"runs": [[documents.change(each) for each in run] for run in runs]}


def change_json(visit: Visit) -> dict[str, Any]:
    revisions = visit.memory.revisions(visit.number("change", 0), limit=visit.number("limit", 100))
    files = [
        {
            "do": revision.touched.do,
            "project": revision.touched.project,
            "path": revision.touched.path,
            "to": revision.touched.to,
            "before": revision.before,
            "after": revision.after,
        }
        for revision in revisions
    ]
    return {"files": files} | (documents.change(revisions[0].change) if revisions else {})


def inbox(visit: Visit) -> Response | dict[str, Any]:
    """The open questions, each with the notes it is about, and of two how they differ; after a POST
    of `key` and `choice` the one that was answered, and the change it made."""
    memory, given, kind = visit.memory, visit.given, visit.given.get("kind") or None
    if visit.is_post:
        item = memory.decide(given.get("key", ""), given.get("choice", ""))
        answer = {"change": memory.changed or None, "item": documents.question(item)}
        if visit.is_api:
            return answer
        return visit.back(f"{HOME}/inbox")
    if visit.is_api:
        return {
            "items": [
                documents.question(each)
                for each in memory.review(limit=visit.number("limit", CARDS), kind=kind)
            ]
        }
    # To find the questions takes longer than to show a page
    if not given.get("cards"):
        return visit.html("inbox.html", cards=None)
    items = memory.review(limit=CARDS + 1, kind=kind)
    cards = []
    for item in items[:CARDS]:
        notes: list[Note] = []
        for ref in item.refs:
            with suppress(NotFound, Ambiguous):
                notes.append(memory.read(ref, count=False))
        cards.append(
            (item, notes, diff(notes[0].content, notes[1].content) if len(notes) == 2 else [])
        )
    template = "cards.html" if visit.is_live else "inbox.html"
    return visit.html(
        template,
        cards=cards,
        more=len(items) > CARDS,
        categories=CATEGORIES,
        inbox=INBOX,
        preview=_PREVIEW,
    )


def query_of(memory: MemorySession, given: Mapping[str, str]) -> Query:
    """The query a form asks: its text, which may hold filters itself, and its fields."""
    zone = memory.settings.zone
    now = memory.clock()
    query = parse(given.get("q", ""), now=now, zone=zone)
    fields: dict[str, tuple[str, Callable[[str], Any]]] = {
        "project": ("projects", lambda text: (text,)),
        "category": ("any_category", lambda text: (text,)),
        "tag": ("tags", lambda text: (*query.tags, text.removeprefix("#"))),
        "agent": ("by", str),
        "from": ("created_from", lambda text: day(text, "from", zone, now=now)),
        "until": ("created_until", lambda text: day(text, "until", zone, 1, now)),
    }
    more = {name: read(given[field]) for field, (name, read) in fields.items() if given.get(field)}
    return query.replace(**more, archived=None if given.get("archive") else False)


def search(visit: Visit) -> Response:
    memory = visit.memory
    given = dict(visit.given)
    offset = visit.number("offset", 0)
    hits = memory.search(query_of(memory, given), limit=HITS, offset=offset, explain=True)
    values: dict[str, Any] = {
        "hits": hits,
        "rows": [_shown(hit) for hit in hits],
        "given": given,
        "offset": offset,
        "next": offset + HITS if hits.is_lower_bound or offset + len(hits) < hits.total else 0,
        "plain": not given.get("q", "").strip(),
    }
    if visit.is_live:
        return visit.html("hits.html", **values)
    lately = {change.agent for change in memory.log(limit=500) if change.agent}
    return visit.html(
        "search.html",
        projects=[project.name for project in memory.projects],
        categories=CATEGORIES,
        tags=[offer.partition("\t")[0] for offer in offers(memory.settings, "tag")],
        agents=["owner", *sorted(lately), "import", "web", "file"],
        **values,
    )


def search_json(visit: Visit) -> dict[str, Any]:
    limit = min(visit.number("limit", HITS), MOST_HITS)
    offset = visit.number("offset", 0)
    hits = visit.memory.search(
        query_of(visit.memory, visit.given), limit=limit, offset=offset, explain=True
    )
    rows = [
        {
            "id": hit.note.id,
            "path": hit.note.path,
            "category": hit.note.category,
            **documents.reference(hit.note),
            **documents.hit(hit),
        }
        for hit in hits
    ]
    return {"total": hits.total, "relaxed": hits.relaxed, "hits": rows, **hits.bound}


def _shown(hit: Hit) -> tuple[Any, ...]:
    """What the page shows of a hit: the hit; its passage in pieces (whether it is a word of the
    query, text); the shares of its score (name, share, where its bar begins, its width), of which
    those that add something are side by side, 100 in all; why it was found, without the numbers."""
    found = {
        word
        for why in hit.why
        if (match := _WORDS.match(why))
        for word in match[1].split(", ")
        if word
    }
    pieces = [(False, hit.passage)]
    if found:
        words = "|".join(re.escape(each) for each in sorted(found, key=len, reverse=True))
        parts = re.split(rf"(?i)({words})", hit.passage)
        pieces = [(bool(number % 2), part) for number, part in enumerate(parts) if part]

    added = sum(each for each in hit.shares.values() if each > 0) or 1.0
    bars = []
    at = 0.0
    for name, share in sorted(hit.shares.items(), key=lambda each: -each[1]):
        width = 100 * max(0.0, share) / added
        if share:
            bars.append((name.replace("_", " "), share, round(at, 1), round(width, 1)))
        at += width

    numbers = tuple(f"{name} " for name in hit.shares)
    return (
        hit,
        pieces,
        bars,
        [each for each in hit.why if not (numbers and each.startswith(numbers))],
    )
