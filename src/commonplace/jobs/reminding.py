"""Reminders a person asks for: reading the time, storing, listing, acknowledging (contract 001, 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.clock import stamp
from commonplace.engine.overview import Pending
from commonplace.engine.upkeep import PROJECT, Upkeep
from commonplace.errors import InvalidInput
from commonplace.note import timephrase
from commonplace.note.model import GLOBAL, Draft, Note
from commonplace.note.reminder import CATEGORY, Reminder, keys_of

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo
    from commonplace.note.timephrase import Reading

DONE = "done"


def read(memory: Memory, text: str) -> Reading:
    """The time `text` names, by the memory's clock and zone. Raises TimeRefused."""
    settings = memory.settings
    return timephrase.read(text, memory.clock(), settings.reading_zone, settings.day_hour)


def store(memory: Memory, text: str, reading: Reading, *, tags: Sequence[str] = (), scope: str = GLOBAL,
          source: str | None = None) -> Note:  # fmt: skip
    """Store a reminder of `text` at the time read. Raises as `Memory.write`."""
    keys = keys_of(reading)
    return memory.write(
        Draft(text, PROJECT, category=CATEGORY, tags=tuple(tags), scope=scope, source=source, metadata=keys)
    )


def listed(memory: Memory, *, fired: bool = False) -> list[tuple[NoteInfo, Reminder]]:
    """The reminders the caller sees that are still to fire, the next one first, then those that cannot, as they
    have no time anybody can read; with `fired` all there are."""
    found = [(info, Reminder.of(info.header)) for info in Pending(memory).reminders() if memory.sees(info.scope)]
    shown = [each for each in found if fired or each[1].is_waiting or each[1].is_undated]
    dated = sorted((each for each in shown if each[1].due), key=lambda each: (each[1].due, each[0].id))
    return [*dated, *(each for each in shown if not each[1].due)]


def done(memory: Memory, ref: str) -> NoteInfo:
    """Acknowledge a reminder: it leaves the pending lists. One that has not fired yet never will, unless it repeats.

    Raises NotFound, Ambiguous, Locked; InvalidInput for another memory.
    """
    upkeep = Upkeep(memory)

    def acknowledged(info: NoteInfo) -> NoteInfo:
        if info.category != CATEGORY:
            raise InvalidInput(f"not a reminder: {info.id}")
        if Reminder.of(info.header).is_done:
            return info
        return upkeep.change(info, {"acked_at": stamp(memory.clock())}, DONE, touch=False)

    return upkeep.retried(ref, acknowledged)
