"""The text of a note as a change left it, or as it stood at a time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from memoranda.cli.output import Failure
from memoranda.cli.syntax import Usage
from memoranda.clock import parse_stamp

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.history import Revision
    from memoranda.ledger.change import Change


def number_of(text: str) -> int:
    """The number of a change, with or without `#`. Raises Usage."""
    digits = text.removeprefix("#")
    if not digits.isdecimal():
        raise Usage(f'invalid value "{text}" for CHANGE: not a number')
    return int(digits)


def is_number(text: str) -> bool:
    """Whether a text is the number of a change, and no time."""
    return text.removeprefix("#").isdecimal() and len(text) < 9


def text_changed(memory: MemorySession, place: str, change: Change) -> Revision:
    """The text of the note at `place` (`project/path`) before and after a change.

    If the change touched no such note, its first text is returned. Raises Failure if it has none.
    """
    revisions = memory.revisions(change.number)
    for revision in revisions:
        touched = revision.touched
        if place in (f"{touched.project}/{touched.path}", f"{touched.project}/{touched.to}"):
            return revision
    if not revisions:
        raise Failure(f"no text of #{change.number} is kept", "not_found")
    return revisions[0]


def text_at(memory: MemorySession, place: str, time_text: str, moment: datetime | None) -> str:
    """The text of the note at `place` after the change numbered `time_text`, or at `moment`.
    Raises Failure.
    """
    for change in memory.log(place, limit=0):
        if moment is None:
            is_early_enough = change.number <= number_of(time_text)
        else:
            is_early_enough = parse_stamp(change.time) <= moment
        if is_early_enough:
            after = text_changed(memory, place, change).after
            if after is None:
                raise Failure(f"the text of {place} at {time_text} is no longer kept", "not_found")
            return after
    hint = f"memory log {place} lists its changes."
    raise Failure(f"there was no text of {place} at {time_text}", "not_found", hint)
