"""Inbox: what upkeep asks the owner, a card a question: approve, correct the category, merge side by side, dismiss."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from commonplace.engine.review import ReviewItem
from commonplace.errors import Ambiguous, NotFound
from commonplace.note.model import CATEGORIES, INBOX, Note
from commonplace.serve.page.render import diff
from commonplace.serve.page.visit import HOME, Visit

SHOWN = 20
_PREVIEW = 4000


@dataclass(frozen=True, slots=True)
class Card:
    """A question with the notes it is about, and of two how they differ."""

    item: ReviewItem
    notes: list[Note]
    rows: list[tuple[str, str]]


def show(visit: Visit) -> Response:
    """The open questions, or after a POST the answer to one."""
    if visit.is_post:
        visit.memory.decide(visit.given.get("key", ""), visit.given.get("choice", ""))
        return visit.back(f"{HOME}/inbox")
    if not visit.given.get("cards"):  # to find the questions takes longer than to show a page
        return visit.html("inbox.html", cards=None)
    kind = visit.given.get("kind") or None
    items = visit.memory.review(limit=SHOWN + 1, kind=kind)
    cards = []
    for item in items[:SHOWN]:
        notes = []
        for ref in item.refs:
            with suppress(NotFound, Ambiguous):
                notes.append(visit.memory.read(ref, count=False))
        cards.append(Card(item, notes, diff(notes[0].content, notes[1].content) if len(notes) == 2 else []))
    template = "cards.html" if visit.is_live else "inbox.html"
    return visit.html(template, cards=cards, more=len(items) > SHOWN, categories=CATEGORIES, inbox=INBOX,
                      preview=_PREVIEW)  # fmt: skip


def json(visit: Visit) -> dict[str, Any]:
    """The open questions; after a POST of `key` and `choice` the one that was answered, and the change it made."""
    if visit.is_post:
        item = visit.memory.decide(visit.given.get("key", ""), visit.given.get("choice", ""))
        return {"change": visit.memory.changed or None, "item": _row(item)}
    items = visit.memory.review(limit=visit.number("limit", SHOWN), kind=visit.given.get("kind") or None)
    return {"items": [_row(each) for each in items]}


def _row(item: ReviewItem) -> dict[str, Any]:
    choices = [{"letter": letter, "label": label} for letter, label in item.choices]
    return {"key": item.key, "kind": item.kind, "text": item.text, "refs": item.refs, "lines": item.lines,
            "choices": choices}  # fmt: skip
