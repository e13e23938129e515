"""Days and clocks of a sentence sorted into times: which go together, which are several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from memoranda.note.timephrase.parts import END, Part
from memoranda.note.timephrase.reading import Sentence
from memoranda.note.timephrase.values import Lexeme, TimeOfDay


@dataclass
class ClockSlot:
    """A time of day: clocks that say the same one, and the parts of the day with them."""

    clocks: list[TimeOfDay] = field(default_factory=list)
    day_parts: list[str] = field(default_factory=list)
    loose_parts: list[str] = field(default_factory=list)
    position: int = 0


@dataclass
class DaySlot:
    """A day: the words that name it."""

    lexemes: list[Lexeme] = field(default_factory=list)
    position: int = 0


def without_range_ends(sentence: Sentence) -> list[Part]:
    """The parts of a sentence without those that say when a range ends. Raises UnusedWords for an
    end without a beginning beside a time of another kind: "tomorrow until 5pm".
    """
    remaining: list[Part] = []
    for part in sentence.parts:
        if part.role != END:
            remaining.append(part)
            continue
        begins = [other for other in remaining if _is_of_same_kind(other, part)]
        if begins:
            continue
        if part.is_clock and any(other.is_day for other in sentence.parts):
            raise sentence.unused(part)
        remaining.append(part)
    return remaining


def _is_of_same_kind(part: Part, other: Part) -> bool:
    return (part.is_day and other.is_day) or (part.is_clock and other.is_clock)


def day_slots(parts: Sequence[Part]) -> list[DaySlot]:
    """The days of the parts: words that belong to one day together, those joined by "and" apart."""
    slots: list[DaySlot] = []
    is_new = True
    for position, part in enumerate(parts):
        is_new = is_new or part.link in ("and", "or")
        if not part.is_day or part.is_loose:
            continue
        if is_new:
            slots.append(DaySlot(position=position))
            is_new = False
        slots[-1].lexemes.append(part.lexeme)
    return slots


def clock_slots(sentence: Sentence, parts: Sequence[Part]) -> list[ClockSlot]:
    """The times of day of the parts. Raises UnusedWords for a clock that stands alone beside
    another one: "doors 19:00, show 20:00".
    """
    slots: list[ClockSlot] = []
    is_new = True
    for position, part in enumerate(parts):
        is_new = is_new or part.link in ("and", "or")
        if not part.is_clock or part.is_loose:
            continue
        value = part.lexeme.value
        is_new = is_new or _begins_clock(parts, position, slots)
        if is_new:
            slots.append(ClockSlot(position=position))
            is_new = False
        slot = slots[-1]
        if part.kind == "part":
            slot.day_parts.append(value)
        elif slot.clocks and value not in slot.clocks:
            raise sentence.unused(part)
        else:
            slot.clocks.append(value)
    _share_parts(slots)
    loose = [part.lexeme.value for part in parts if part.kind == "part" and part.is_loose]
    for slot in slots:
        slot.loose_parts = loose
    return slots


def _begins_clock(parts: Sequence[Part], position: int, slots: Sequence[ClockSlot]) -> bool:
    """Whether a part of the day begins another time, right behind a complete one: 早8点晚8点."""
    is_complete = bool(slots) and bool(slots[-1].clocks) and bool(slots[-1].day_parts)
    if parts[position].kind != "part" or not is_complete or position + 1 == len(parts):
        return False
    following = parts[position + 1]
    return following.kind == "clock" and following.link == "beside"


def _share_parts(slots: list[ClockSlot]) -> None:
    """Give a clock without a part of the day that of the clock before: "evening at 8 and 9"."""
    for before, slot in pairwise(slots):
        is_bare = any(clock.form == "bare" for clock in slot.clocks)
        if is_bare and not slot.day_parts:
            slot.day_parts = before.day_parts


def paired(
    days: Sequence[DaySlot], clocks: Sequence[ClockSlot]
) -> list[tuple[DaySlot | None, ClockSlot | None]] | None:
    """Which clock is of which day; None when that is not clear."""
    if len(days) > 1 and len(clocks) > 1:
        order = sorted(
            [(slot.position, "day") for slot in days]
            + [(slot.position, "clock") for slot in clocks]
        )
        kinds = [kind for _, kind in order]
        is_alternating = all(kind != after for kind, after in pairwise(kinds))
        if len(days) != len(clocks) or not is_alternating:
            return None
        return list(zip(days, clocks, strict=True))
    all_clocks: list[ClockSlot | None] = [*clocks] or [None]
    all_days: list[DaySlot | None] = [*days] or [None]
    return [(day, clock) for day in all_days for clock in all_clocks]
