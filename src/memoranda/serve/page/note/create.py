"""Makes new notes and reminders from forms of the page, and exports notes as files.

The text of a reminder contains its time in words: "call Ann tomorrow at 9".
"""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from itertools import zip_longest
from typing import Any

from starlette.responses import Response

from memoranda.errors import AmbiguousTime, InvalidInput, MemorandaError, SecretRefused, TimeRefused
from memoranda.jobs import reminders
from memoranda.note.model import CATEGORIES, CATEGORY_PROJECT, INBOX, REMINDERS, Draft
from memoranda.note.timephrase.reading import Reading
from memoranda.query import split_list
from memoranda.serve.page.note.drafts import draft_of
from memoranda.serve.page.note.secret_question import FIELD, MASK
from memoranda.serve.page.search import query_of
from memoranda.serve.page.visit import HOME, Visit
from memoranda.serve.page.words.sentences import error_words

# Notes of one download. The command `memory export` has no limit.
_MAX_EXPORTED = 5_000
# Projects whose notes are entries and entities, which only their tools make.
_PROJECTS_OF_TOOLS = frozenset(("kv", "graph"))


def show(visit: Visit) -> Response:
    """Show the form for a new note. A POST makes the note."""
    if visit.fields.get("preview"):
        return visit.html("new.html", **choices(visit) | {"draft": draft_of(visit)}, warning="")
    if visit.is_post:
        return _create_or_ask(visit)
    return visit.html("new.html", **choices(visit), warning="")


def choices(visit: Visit) -> dict[str, Any]:
    """Return the values of the form: its fields, and the categories and projects to choose from."""
    memory = visit.memory
    return {
        "fields": dict(visit.fields),
        "draft": None,
        "categories": [name for name in CATEGORIES if name not in (INBOX, REMINDERS)],
        "projects": [
            project.name
            for project in memory.projects
            if project.name not in _PROJECTS_OF_TOOLS
            and project.name != CATEGORY_PROJECT
            and not memory.holds_entities(project.name)
        ],
    }


def _create_or_ask(visit: Visit) -> Response:
    """Make a note. If it has a secret, show the form again with the question about it."""
    try:
        return _create(visit)
    except SecretRefused as refused:
        # Without a title, the text is all there is, and its first line is the title.
        visit.ask_about(refused, is_maskable=None if visit.text("title") else True)
        return visit.html("new.html", 400, **choices(visit), warning="")


def _create(visit: Visit) -> Response:
    """Make a memory, if the form has a category, or else a note. Then show it."""
    text = visit.fields.get("text", "").replace("\r\n", "\n").strip()
    title = visit.text("title")
    if not title and visit.fields.get(FIELD) == MASK:
        # The title and the name of the file are made from the text.
        text = visit.memory.gate_rules().redacted(text)
    if not text and not title:
        raise InvalidInput("Write something first.")
    category = visit.text("category")
    tags = tuple(split_list(visit.text("tags")))
    until = visit.text("until") or None
    if category:
        if title and text:
            text = f"{title}\n\n{text}"
        draft = Draft(
            text or title,
            project=CATEGORY_PROJECT,
            category=category,
            tags=tags,
            valid_until=until,
        )
    else:
        draft = Draft(
            f"{text}\n",
            project=visit.text("project") or "notes",
            title=title or None,
            folder=visit.text("folder"),
            tags=tags,
            valid_until=until,
        )
    note = visit.memory.write(draft)
    return visit.back(visit.note_address(note))


def remind(visit: Visit) -> Response:
    """Show the form for a reminder with the times that its text names. A POST sets the reminder.

    A text with several times makes several reminders. If it can mean one of several times, each is a
    button, and the field `due` is the chosen one: its time and, after a blank, its rule.
    """
    text = visit.text("text")
    readings = []
    candidates: list[Reading] = []
    refusal = None
    if text:
        try:
            readings = reminders.read_times(visit.memory, text)
        except TimeRefused as error:
            candidates = _possible_readings(error)
            readings = [reading for reading in candidates if _choice(reading) == visit.text("due")]
            refusal = error_words(visit.reader_clock, error)
    if visit.is_post and readings:
        try:
            reminders.store_all(visit.memory, text, readings)
            return visit.back(f"{HOME}/calendar")
        except SecretRefused as refused:
            visit.ask_about(refused)
    # A POST comes here only if its text has no time, or a secret.
    status = 400 if visit.is_post else 200
    # While somebody types, the script asks for the times only.
    template = "understood.html" if visit.is_part and not visit.is_post else "remind.html"
    return visit.html(
        template,
        status,
        text=text,
        readings=readings,
        candidates=candidates,
        choice=_choice,
        refusal=refusal,
    )


def _choice(reading: Reading) -> str:
    """Return what the form sends for one of several times: the ISO time, a blank, and its rule.

    "every second Tuesday" has two rules that may begin at the same time.
    """
    return f"{reading.due.isoformat()} {reading.repeat or ''}".strip()


def _possible_readings(refused: TimeRefused) -> list[Reading]:
    """Return the times that a text may mean. [] without any."""
    # An ambiguous time has a rule of repetition, or "", for each of its candidates.
    repeats = refused.repeats if isinstance(refused, AmbiguousTime) else ()
    return [
        Reading(refused.phrase, candidate, repeat=repeat or None)
        for candidate, repeat in zip_longest(refused.candidates, repeats)
    ]


def export(visit: Visit) -> Response:
    """Return the chosen notes, or else the hits of a search, as files in a ZIP archive."""
    memory = visit.memory
    refs = [ref for ref in visit.fields.get("ref", "").split("\n") if ref]
    if refs:
        infos = [memory.find(tuple(ref.split("/", 1))) for ref in refs]  # type: ignore[arg-type]
    elif visit.text("q"):
        hits = memory.search(query_of(memory, visit.fields), limit=_MAX_EXPORTED)
        infos = [hit.note for hit in hits]
    else:
        infos, _ = memory.list(query_of(memory, visit.fields), limit=_MAX_EXPORTED)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for info in infos:
            # A note that was deleted meanwhile is left out.
            with suppress(MemorandaError):
                name = f"{info.project.lstrip('.')}/{info.path}"
                archive.writestr(name, memory.file(info).data)
    headers = {
        "Content-Disposition": 'attachment; filename="memoranda.zip"',
        "Content-Security-Policy": "sandbox",
    }
    return Response(buffer.getvalue(), media_type="application/zip", headers=headers)
