"""Editing a note's text: the form, and conflicts with a change that somebody made in between."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import Response

from memoranda.documents import differences
from memoranda.engine.telling import author
from memoranda.errors import InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.note.model import Note
from memoranda.serve.page.merging import Merge, has_marks, merge
from memoranda.serve.page.visit import Visit

EDITABLE = 1 << 20
"""The largest note, in characters, that is edited in the page."""
# Characters that a browser's form does not return unchanged.
_LOST = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def form(
    visit: Visit, note: Note, text: str, base: str, status: int = 200, **values: Any
) -> Response:
    """The form with `text`, which began as `base`. Raises InvalidInput for a note that a form would
    change.
    """
    plain = note.text.replace("\r\n", "\n")
    # Browsers send CR LF for every line end, so a note with both kinds would change
    is_mixed = plain.replace("\n", "\r\n") != note.text != plain
    if len(note.text) > EDITABLE or _LOST.search(plain) or is_mixed:
        raise InvalidInput(
            "A form would change more of this note than you do: it is too long, has control characters, "
            "or line ends of two kinds. Edit its file."
        )
    conflict_values = {"merged": None, "author": "", "difference": None} | values
    return visit.html("edit.html", status, note=note, text=text, base=base, **conflict_values)


def conflict(visit: Visit, info: NoteInfo) -> Response:
    """Show the form again, with the typed text and the text that somebody else wrote in between."""
    note = visit.memory.read(info, count=False)
    theirs = note.text.replace("\r\n", "\n")
    mine = visit.fields.get("text", "").replace("\r\n", "\n")
    base = visit.fields.get("base", "").replace("\r\n", "\n")
    merged = merge(base, mine, theirs) if base else _all_mine(mine, theirs)
    return form(
        visit,
        note,
        merged.text,
        note.text,
        409,
        merged=merged,
        author=author(info.provenance),
        difference=differences.between(base or theirs, theirs),
    )


def _all_mine(mine: str, theirs: str) -> Merge:
    """Without the text both began with, the whole of both."""
    return merge("", mine, theirs)


def check_decided(text: str) -> None:
    """Raises InvalidInput for a text in which a place is still marked that both had changed."""
    if has_marks(text):
        raise InvalidInput(
            "The text still has both versions of a place, between <<<<<<< and >>>>>>>. "
            "Keep what is right, take the marks out, and save again."
        )


def as_in_file(text: str, file: str) -> str:
    """The text of a form, whose lines end in CR LF, with the line ends of the file."""
    text = text.replace("\r\n", "\n")
    if "\r\n" in file:
        return text.replace("\n", "\r\n")
    return text
