"""Makes the rows of Today for edits that were made outside of memoranda, such as in an editor.

The ledger has no change for such an edit. It shows in one of two ways: a change found another text
in the file than the change before it wrote, or the file now has another text than its last change
wrote (engine/history/outside_edits.py). So only edits of notes that the history knows are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoranda.clock import parse_stamp
from memoranda.documents import differences
from memoranda.documents.listed import Document
from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import history_through_moves
from memoranda.engine.history.outside_edits import OutsideEdit, notes_edited_outside, outside_edits
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.today.change_rows import CHANGED, snippet
from memoranda.serve.page.words.writers import is_upkeep

# Notes whose files changed last that are looked at.
_MAX_FILES = 30
# Changes of one note that are looked at.
_MAX_CHANGES = 6


def outside_rows(
    memory: MemorySession, changes: Sequence[Change], begin: datetime, end: datetime | None
) -> list[Document]:
    """Return the rows of the edits outside of memoranda between two moments, the latest first.

    changes: the changes that a page shows.
    end: None if the time has no end.

    A note whose history begins with the edit has no row: nothing is known of its earlier text.
    """
    rows = []
    # A day may have hundreds of changes of upkeep. Looking at all of them takes long.
    asked_for = [change for change in changes if not is_upkeep([change])]
    for info in notes_edited_outside(memory, asked_for, limit=_MAX_FILES):
        for edit in _edits_of(memory, info):
            moment = parse_stamp(edit.time)
            if begin <= moment and (end is None or moment < end):
                rows.append(_row(info, edit))
    rows.sort(key=lambda row: parse_stamp(row["time"]), reverse=True)
    return rows


def _edits_of(memory: MemorySession, info: NoteInfo) -> list[OutsideEdit]:
    """Return the latest edits of a note outside of memoranda."""
    steps = history_through_moves(memory, info.project, info.path, limit=_MAX_CHANGES)
    revisions = memory.revisions_of([step.change for step in steps])
    return list(outside_edits(memory, steps, revisions, newer=None).values())


def _row(info: NoteInfo, edit: OutsideEdit) -> Document:
    """Return the row of an edit, with the values that templates/outside_row.html shows."""
    lines = []
    if edit.text_before is not None and edit.text_after is not None:
        lines = snippet(differences.between(edit.text_before, edit.text_after))
    return {
        "word": CHANGED,
        "title": info.title,
        "url": note_url(info.project, info.path),
        "time": edit.time,
        "since": edit.since,
        "after": edit.after,
        "lines": lines,
        "may_restore": edit.is_latest and bool(lines),
    }
