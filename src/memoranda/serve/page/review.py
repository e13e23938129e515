"""Review: the open questions as a list, one of them to be answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.differences import Line, sides
from memoranda.engine.review import ReviewItem
from memoranda.engine.suspicion import KEEP
from memoranda.engine.telling import author
from memoranda.errors import Ambiguous, NotFound
from memoranda.note.model import CATEGORIES, INBOX, Note
from memoranda.serve.page.questions import open_questions, take_out
from memoranda.serve.page.visit import HOME, Visit
from memoranda.text.word_diff import SAME, Part

REVIEW = f"{HOME}/review"
_API_ITEMS = 20
# Characters of a note in a pane.
_PREVIEW = 4000
# How long people take for one question, for the estimate at the top.
_SECONDS_EACH = 8
TITLES = {
    "project": "May an agent use this folder?",
    "suspicious": "Is this a planted instruction?",
    "reminder": "A reminder?",
    "contradiction": "Which of these holds?",
    "claim": "Is this so?",
    "burst": "Keep what was written in a hurry?",
    "merge": "Do these say the same?",
    "category": "Which category?",
    "archive": "Still needed?",
}
"""The question of each kind, for the list."""
_SUSPICIOUS = "suspicious"
# A text quoted in a question.
_QUOTED = re.compile(r'"(.+?)"(?=[\s?,.)]|$)')
_SHORT = 100


@dataclass
class Pane:
    """A note a question is about, its text with what differs from the other marked, and who wrote
    it.
    """

    note: Note
    lines: list[Line]
    author: str
    is_cut: bool


@dataclass
class Choice:
    """An answer: the letter to send, what it does, the key that presses it."""

    letter: str
    label: str
    key: str
    is_dangerous: bool = False


@dataclass
class Question:
    """An open question with all that is needed to answer it."""

    item: ReviewItem
    title: str
    panes: list[Pane] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)


def show(visit: Visit) -> Response | dict[str, Any]:
    """The open questions and the one at `at`; after a POST of `key` and `choice`, the next one."""
    if visit.is_post:
        return _answer(visit)
    if visit.is_api:
        return _as_json(visit)
    # To find the questions takes longer than to show a page
    if not visit.is_part and not visit.text("list"):
        return visit.html("review.html", items=None, kinds=TITLES)
    items = _in_order(open_questions(visit))
    if visit.text("kind"):
        items = [item for item in items if item.kind == visit.text("kind")]
    values = _triage(visit, items)
    return visit.part_or_page("review_part.html", "review.html", **values)


def _triage(visit: Visit, items: Sequence[ReviewItem]) -> dict[str, Any]:
    """The list of questions, and all that is needed to answer the one chosen."""
    if not items:
        return {"items": [], "kinds": TITLES}
    position = _position(items, visit.text("at"))
    return {
        "items": items,
        "kinds": TITLES,
        "question": _question(visit, items[position]),
        "position": position,
        "minutes": max(1, round(len(items) * _SECONDS_EACH / 60)),
        "shorts": [_short(item) for item in items],
        "addresses": [_address(visit, item) for item in items],
        "categories": [name for name in CATEGORIES if name != INBOX],
        "following": _following(visit, items, position),
    }


def _in_order(items: Sequence[ReviewItem]) -> list[ReviewItem]:
    """The questions about suspicious notes, then the rest in the order of upkeep."""
    return sorted(items, key=lambda item: item.kind != _SUSPICIOUS)


def _position(items: Sequence[ReviewItem], key: str) -> int:
    return next((number for number, item in enumerate(items) if item.key == key), 0)


def _address(visit: Visit, item: ReviewItem) -> str:
    """The address of one question, with the list, filtered as it is."""
    fields = {"at": item.key}
    for name in ("kind", "list"):
        if visit.text(name):
            fields[name] = visit.text(name)
    return f"{REVIEW}?{urlencode(fields, errors='replace')}"


def _short(item: ReviewItem) -> str:
    """The subject of a question, for the list: the text it quotes."""
    quoted = _QUOTED.search(item.text)
    return quoted[1] if quoted else item.text[:_SHORT]


def _following(visit: Visit, items: Sequence[ReviewItem], position: int) -> str:
    """The address to go to after the question at `position` is answered: the next question."""
    if len(items) < 2:
        return REVIEW
    # The last question is followed by the one before it: the list gets shorter at its end
    following = position + 1 if position + 1 < len(items) else position - 1
    return _address(visit, items[following])


def _question(visit: Visit, item: ReviewItem) -> Question:
    # A question that lists its lines says all; others show the notes they are about
    notes: list[Note] = []
    if len(item.lines) < 2:
        for ref in item.refs[:2]:
            with suppress(NotFound, Ambiguous):
                notes.append(visit.memory.read(ref.partition(":")[0], count=False))
    return Question(item, TITLES[item.kind], _panes(notes), _choices(item))


def _panes(notes: Sequence[Note]) -> list[Pane]:
    texts = [note.content.strip("\n")[:_PREVIEW] for note in notes]
    if len(notes) == 2 and notes[0].id != notes[1].id:
        marked = list(sides(*texts))
    else:
        notes = notes[:1]
        marked = [[Part(SAME, text)] for text in texts[:1]]
    return [
        Pane(note, _by_lines(parts), author(note.provenance), len(note.content) > _PREVIEW)
        for note, parts in zip(notes, marked, strict=True)
    ]


def _by_lines(parts: Line) -> list[Line]:
    """Parts of a text, cut at the ends of its lines."""
    lines: list[Line] = [[]]
    for part in parts:
        pieces = part.text.split("\n")
        lines[-1].append(Part(part.kind, pieces[0]))
        lines += [[Part(part.kind, piece)] for piece in pieces[1:]]
    return [_without_empty(line) for line in lines]


def _without_empty(line: Line) -> Line:
    return [part for part in line if part.text]


def _choices(item: ReviewItem) -> list[Choice]:
    """The answers, the expected one first. For a suspicious note, that is to delete it."""
    choices = [
        # `j` and `k` walk from question to question
        Choice(letter, label, letter.upper() if letter in "jk" else letter)
        for letter, label in item.choices
    ]
    if item.kind == _SUSPICIOUS:
        choices.sort(key=lambda choice: choice.letter == KEEP)
        choices[0].is_dangerous = True
    return choices


def _answer(visit: Visit) -> Response | dict[str, Any]:
    before = visit.memory.journal_stamp()
    item = visit.memory.decide(visit.fields.get("key", ""), visit.fields.get("choice", ""))
    take_out(visit, item.key, before)
    if visit.is_api:
        return {"change": visit.memory.changed or None, "item": documents.question(item)}
    return visit.back(visit.text("next") or REVIEW)


def _as_json(visit: Visit) -> dict[str, Any]:
    items = visit.memory.review(
        limit=visit.number("limit", _API_ITEMS), kind=visit.text("kind") or None
    )
    return {"items": [documents.question(item) for item in items]}
