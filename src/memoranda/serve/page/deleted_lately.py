"""Names the notes that were deleted lately, for somebody who looks for one that is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from memoranda.engine import MemorySession
from memoranda.engine.history.deletions import standing_deletions
from memoranda.ledger.change import Change
from memoranda.serve.page.note.secret_question import have_secret
from memoranda.serve.page.words.titles import title_of_revision

# How far back deleted notes are looked for, and how many of them are named.
_LATELY = timedelta(days=30)
_MAX_NAMED = 5


@dataclass(frozen=True)
class DeletedNote:
    """A note that is gone, with the change that deleted it."""

    title: str
    change: Change


def deleted_lately(memory: MemorySession) -> list[DeletedNote]:
    """Return the notes that people and agents deleted last, the newest deletion first.

    Notes that were brought back are left out, as are those that hold a secret or seem to hold
    instructions.
    """
    since = memory.clock() - _LATELY
    deletions = standing_deletions(memory, since, _MAX_NAMED)
    return [
        DeletedNote(title_of_revision(deletion), deletion.change)
        for deletion in deletions
        if not have_secret(memory, [deletion])
    ]
