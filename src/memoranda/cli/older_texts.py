"""Read the text that a note had after a change, or at a time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from memoranda.cli.output import Failure
from memoranda.cli.syntax import Usage
from memoranda.clock import parse_stamp
from memoranda.text.numbers import LARGEST

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.history.verbs import Revision
    from memoranda.ledger.change import Change


# Digits of the largest number of a change.
_MOST_DIGITS = 10
# Digits of the largest number that is looked up.
_MOST_DIGITS_READ = len(str(LARGEST)) - 1


def number_of(text: str, parameter: str = "CHANGE") -> int:
    """Read the number of a change: `12` or `#12` → 12.

    parameter: the name of the parameter, as the help of the command shows it.

    Raises Usage for a text that is not a number, and for a number that no change can have.
    """
    digits = text.removeprefix("#")
    if not digits.isdecimal():
        raise Usage(f'invalid value "{text}" for {parameter}: not a number')
    # A number of thousands of digits takes long to read.
    if len(digits) > _MOST_DIGITS_READ:
        raise Usage(f'invalid value "{text[:50]}" for {parameter}: must be at most {LARGEST}')
    return int(digits)


def is_number(text: str) -> bool:
    """Whether a text is the number of a change, and not a time.

    Files used in place have numbers of ten digits.
    """
    digits = text.removeprefix("#")
    return digits.isdecimal() and len(digits) <= _MOST_DIGITS


def text_changed(memory: MemorySession, place: str, change: Change) -> Revision:
    """Return the text of the note at `place` (`project/path`) before and after a change.

    If the change touched no such note, the first text of the change is returned. Raises Failure if
    the change has no text.
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
    """Return the text that the note at `place` had after a change, or at a time. Raises Failure.

    The note may have been at another place then.

    place: `project/path` of the note, or the id of a note that is gone.
    time_text: the text that the person typed: the number of a change, or a time.
    moment: the time that `time_text` means. None if it is the number of a change.
    """
    from memoranda.engine.history.former_places import history_of_note

    for placed in history_of_note(memory, place):
        change = placed.change
        if moment is None:
            is_early_enough = change.number <= number_of(time_text)
        else:
            is_early_enough = parse_stamp(change.time) <= moment
        if is_early_enough:
            # After this change, the note was gone.
            if change.empties(*placed.place):
                break
            after = text_changed(memory, "/".join(placed.place), change).after
            if after is None:
                raise Failure(f"the text of {place} at {time_text} is no longer kept", "not_found")
            return after
    hint = f"memory log {place} lists its changes."
    raise Failure(f"there was no text of {place} at {time_text}", "not_found", hint)
