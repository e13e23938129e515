"""Says what was changed in a note since the owner confirmed or pinned it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memoranda.clock import parse_stamp
from memoranda.documents import differences
from memoranda.documents.differences import Difference
from memoranda.engine import MemorySession
from memoranda.engine.history.former_places import PlacedChange, history_through_moves
from memoranda.engine.suspicion import CLAIM, KEEP
from memoranda.index.rows import NoteInfo
from memoranda.serve.page.note.history import is_about
from memoranda.serve.page.words.writers import is_upkeep, writer_of_change

# Changes of the note that are looked at.
_MAX_CHANGES = 30
_PIN = "pin"


@dataclass(frozen=True)
class SinceConfirmed:
    """The change of a note since the owner confirmed or pinned it.

    is_pin: whether the owner pinned it last. Otherwise, the owner confirmed it.
    time: when.
    writers: who changed it since, the latest first.
    difference: what they changed.
    """

    is_pin: bool
    time: datetime
    writers: Sequence[str]
    difference: Difference


def since_confirmed(memory: MemorySession, info: NoteInfo) -> SinceConfirmed | None:
    """Return the changes of a note since the owner confirmed or pinned it.

    None if the owner did neither, if nothing was changed since, or if the history lacks the text.
    """
    steps = history_through_moves(memory, info.project, info.path, limit=_MAX_CHANGES)
    pinned = _last_pin(steps)
    confirmed = _last_confirmation(memory, info)
    moments = [moment for moment in (pinned, confirmed) if moment is not None]
    if not moments:
        return None
    moment = max(moments)
    later_steps = [step for step in steps if parse_stamp(step.change.time) > moment]
    text_before = _text_before(memory, later_steps)
    if text_before is None:
        return None
    difference = differences.between(text_before, memory.read(info, count=False).text)
    writers = [
        writer_of_change(step.change) for step in later_steps if not is_upkeep([step.change])
    ]
    if not difference.lines or not writers:
        return None
    return SinceConfirmed(moment == pinned, moment, list(dict.fromkeys(writers)), difference)


def _last_pin(steps: Sequence[PlacedChange]) -> datetime | None:
    """Return when the owner pinned a note last. None if its history has no pin of the owner."""
    for step in steps:
        if step.change.verb == _PIN and step.change.agent is None:
            return parse_stamp(step.change.time)
    return None


def _last_confirmation(memory: MemorySession, info: NoteInfo) -> datetime | None:
    """Return when the owner confirmed any text of a note last. None if never."""
    beginning = f"{CLAIM}:{info.id}:"
    moments = [
        parse_stamp(answer["time"])
        for key, answer in memory.decisions().items()
        if key.startswith(beginning) and answer.get("choice") == KEEP and answer.get("time")
    ]
    return max(moments, default=None)


def _text_before(memory: MemorySession, steps: Sequence[PlacedChange]) -> str | None:
    """Return the text of a note before the first of these changes. None if it is not known.

    steps: the changes, the latest first.
    """
    if not steps:
        return None
    first = steps[-1]
    for revision in memory.revisions_of([first.change])[first.change.number]:
        if is_about(revision, first.place):
            return revision.before
    return None
