"""Shows the open questions as a list, with one of them to be answered.

Upkeep asks questions that only a person can decide: may these notes be merged, is this text an
attack? An answer is a letter. For a question about notes, the page shows their texts side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.differences import Line, sides
from memoranda.engine.review import DELETE, ReviewItem
from memoranda.engine.suspicion import KEEP
from memoranda.errors import Ambiguous, NotFound
from memoranda.jobs.dedup import has_same_content
from memoranda.note.model import CATEGORIES, INBOX, Note
from memoranda.serve.page.questions import open_questions, take_out
from memoranda.serve.page.visit import HOME, Visit
from memoranda.serve.page.wording import translated
from memoranda.serve.page.writers import writer_of
from memoranda.text.word_diff import SAME, Part

REVIEW = f"{HOME}/review"
# Questions in one answer of `/api`, unless it asks for another number.
_API_ITEMS = 20
# Characters of a note that are shown beside a question.
_MAX_PANE_CHARACTERS = 4000
# The seconds that a person needs for a question, for the estimate at the top.
_SECONDS_PER_QUESTION = 8
TITLES = {
    "project": "May an agent use this folder?",
    "suspicious": "Is this a planted instruction?",
    "reminder": "A reminder?",
    "contradiction": "Which of these holds?",
    "claim": "Is this so?",
    "burst": "Keep what was written in a hurry?",
    "lesson": "Remember what a session showed?",
    "merge": "Do these say the same?",
    "category": "Which category?",
    "archive": "Still needed?",
}
"""The question of each kind, for the list."""
_SUSPICIOUS = "suspicious"
_MERGE = "merge"
# The answer that keeps both notes.
_APART = "n"
# Kinds of questions of which no answer is recommended: it would delete a note, end a statement,
# archive a note or open a folder, and whether that is right is only a guess.
_WITHOUT_MAIN_ANSWER = frozenset((_SUSPICIOUS, "contradiction", "archive", "project"))
# Characters of the subject of a question in the list.
_MAX_SUBJECT_CHARACTERS = 100


@dataclass
class Pane:
    """A note that a question is about.

    lines: the lines of its text, with the differences from the other note marked.
    author: who wrote it.
    is_cut: whether only the beginning of the text is shown.
    """

    note: Note
    lines: list[Line]
    author: str
    is_cut: bool


@dataclass
class Choice:
    """A possible answer.

    letter: the letter to send.
    label: the words that say what it does.
    key: the key of the keyboard for it.
    is_main: whether it is recommended.
    is_dangerous: whether it deletes a note.
    """

    letter: str
    label: str
    key: str
    is_main: bool = False
    is_dangerous: bool = False


@dataclass
class Question:
    """An open question with the notes that it is about and the possible answers.

    reasons: why a suspicious note is held back.
    is_of_two_things: whether the two notes of a merge differ in a word that counts.
    """

    item: ReviewItem
    title: str
    reasons: list[str] = field(default_factory=list)
    is_of_two_things: bool = False
    panes: list[Pane] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)


def show(visit: Visit) -> Response | dict[str, Any]:
    """Show the open questions, and the question whose key is the field `at`.

    A POST answers the question `key` by the letter `choice`, and leads to the next one.
    """
    if visit.is_post:
        return _answer(visit)
    if visit.is_api:
        return _as_json(visit)
    # Finding the questions takes longer than showing a page, so a script asks for them afterwards.
    if not visit.is_part and not visit.text("list"):
        return visit.html("review.html", items=None, kinds=TITLES)
    items = _in_order(open_questions(visit))
    counts = Counter(item.kind for item in items)
    if visit.text("kind"):
        items = [item for item in items if item.kind == visit.text("kind")]
    values = _triage(visit, items) | {"counts": counts}
    return visit.part_or_page("review_part.html", "review.html", **values)


def _triage(visit: Visit, items: Sequence[ReviewItem]) -> dict[str, Any]:
    """Return the values for the template: the list of questions, and the chosen one in full."""
    if not items:
        return {"items": [], "kinds": TITLES}
    position = _position(items, visit.text("at"))
    return {
        "items": items,
        "kinds": TITLES,
        "question": _question(visit, items[position]),
        "position": position,
        "minutes": max(1, round(len(items) * _SECONDS_PER_QUESTION / 60)),
        "shorts": [_short(item) for item in items],
        "addresses": [_address(visit, item) for item in items],
        "categories": [name for name in CATEGORIES if name != INBOX],
        "following": _following(visit, items, position),
    }


def _in_order(items: Sequence[ReviewItem]) -> list[ReviewItem]:
    """Return the questions about suspicious notes, then the others in their order."""
    return sorted(items, key=lambda item: item.kind != _SUSPICIOUS)


def _position(items: Sequence[ReviewItem], key: str) -> int:
    """Return the index of the question with this key. 0 if no question has it."""
    return next((number for number, item in enumerate(items) if item.key == key), 0)


def _address(visit: Visit, item: ReviewItem) -> str:
    """Return the address of a question in the list, with the list's filter."""
    fields = {"at": item.key}
    for name in ("kind", "list"):
        if visit.text(name):
            fields[name] = visit.text(name)
    return f"{REVIEW}?{urlencode(fields, errors='replace')}"


def _short(item: ReviewItem) -> str:
    """Return the subject of a question: the text that it quotes, or else its beginning."""
    return item.subject or item.text[:_MAX_SUBJECT_CHARACTERS]


def _following(visit: Visit, items: Sequence[ReviewItem], position: int) -> str:
    """Return the address of the question that follows the one at `position`."""
    if len(items) < 2:
        return REVIEW
    is_last = position + 1 == len(items)
    # The last question leads to the one before, which is the last one after the answer.
    following = position - 1 if is_last else position + 1
    return _address(visit, items[following])


def _question(visit: Visit, item: ReviewItem) -> Question:
    """Return a question with its notes and answers."""
    # A question of several lines quotes its notes itself.
    notes: list[Note] = []
    if len(item.lines) < 2:
        for ref in item.refs[:2]:
            with suppress(NotFound, Ambiguous):
                notes.append(visit.memory.read(ref.partition(":")[0], count=False))
    is_of_two_things = item.kind == _MERGE and not say_the_same(notes)
    return Question(
        item,
        TITLES[item.kind],
        _reasons(visit, item, notes),
        is_of_two_things,
        panes_of(notes),
        _choices(item, is_of_two_things),
    )


def say_the_same(notes: Sequence[Note]) -> bool:
    """Whether two notes belong to the same project and differ in no word that counts."""
    if len(notes) < 2:
        return False
    note, other_note = notes
    is_same_place = (note.project, note.scope) == (other_note.project, other_note.scope)
    return is_same_place and has_same_content(note.content, other_note.content)


def _reasons(visit: Visit, item: ReviewItem, notes: Sequence[Note]) -> list[str]:
    """Return why a suspicious note is held back, in the reader's words. Empty for other questions."""
    if item.kind != _SUSPICIOUS or not notes:
        return []
    ids = notes[0].suspicious
    rules = visit.memory.rules_for_reading()
    return [translated(visit.language, rule.why) for rule in rules if rule.id in ids]


def panes_of(notes: Sequence[Note]) -> list[Pane]:
    """Return a pane for each note: one, or two with their differences marked."""
    texts = [note.content.strip("\n")[:_MAX_PANE_CHARACTERS] for note in notes]
    if len(notes) == 2 and notes[0].id != notes[1].id:
        marked = list(sides(*texts))
    else:
        notes = notes[:1]
        marked = [[Part(SAME, text)] for text in texts[:1]]
    return [
        Pane(
            note,
            _by_lines(parts),
            writer_of(note),
            len(note.content) > _MAX_PANE_CHARACTERS,
        )
        for note, parts in zip(notes, marked, strict=True)
    ]


def _by_lines(parts: Line) -> list[Line]:
    """Cut the parts of a text at its line breaks. Returns the parts of each line."""
    lines: list[Line] = [[]]
    for part in parts:
        pieces = part.text.split("\n")
        lines[-1].append(Part(part.kind, pieces[0]))
        lines += [[Part(part.kind, piece)] for piece in pieces[1:]]
    return [_without_empty(line) for line in lines]


def _without_empty(line: Line) -> Line:
    return [part for part in line if part.text]


def _choices(item: ReviewItem, is_of_two_things: bool) -> list[Choice]:
    """Return the possible answers, with the safe one recommended.

    For a suspicious note, deleting it comes first. For two notes that differ, keeping both does.
    """
    # KEEP is `k`, but the keys `j` and `k` move between the questions.
    keys = {KEEP: "y"}
    choices = [Choice(letter, label, keys.get(letter, letter)) for letter, label in item.choices]
    if item.kind == _SUSPICIOUS:
        choices.sort(key=lambda choice: choice.letter == KEEP)
    if is_of_two_things:
        choices.sort(key=lambda choice: choice.letter != _APART)
    for choice in choices:
        choice.is_dangerous = choice.letter == DELETE
    choices[0].is_main = item.kind not in _WITHOUT_MAIN_ANSWER
    return choices


def _answer(visit: Visit) -> Response | dict[str, Any]:
    """Answer a question as the form says."""
    before = visit.memory.journal_stamp()
    item = visit.memory.decide(visit.fields.get("key", ""), visit.fields.get("choice", ""))
    take_out(visit, item.key, before)
    if visit.is_api:
        return {"change": visit.memory.changed or None, "item": documents.question(item)}
    return visit.back(visit.text("next") or REVIEW)


def _as_json(visit: Visit) -> dict[str, Any]:
    """Return the open questions as JSON."""
    items = visit.memory.review(
        limit=visit.number("limit", _API_ITEMS), kind=visit.text("kind") or None
    )
    return {"items": [documents.question(item) for item in items]}
