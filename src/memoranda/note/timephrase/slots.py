"""Sorts the days and clocks of a sentence into times.

A day and a clock that go together are one time; several days or several clocks are several times.
A slot holds the words of one day (`DaySlot`) or of one time of day (`ClockSlot`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from memoranda.note.timephrase.parts import END, Part
from memoranda.note.timephrase.reading import Sentence
from memoranda.note.timephrase.values import Lexeme, TimeOfDay


@dataclass
class ClockSlot:
    """A time of day: its clocks, and the parts of the day beside them.

    clocks: several only if they agree: "3pm (15:00)".
    day_parts: "evening" in "8 in the evening".
    loose_parts: parts of the day elsewhere in the sentence, which must not disagree.
    position: the index of its first part in the sentence.
    """

    clocks: list[TimeOfDay] = field(default_factory=list)
    day_parts: list[str] = field(default_factory=list)
    loose_parts: list[str] = field(default_factory=list)
    position: int = 0

    def add(self, part: Part) -> bool:
        """Add a clock or a part of the day. Returns False for a second, different clock."""
        value = part.lexeme.value
        if part.kind == "part":
            self.day_parts.append(value)
            return True
        if self.clocks and value not in self.clocks:
            return False
        self.clocks.append(value)
        return True


@dataclass
class DaySlot:
    """A day: the words that name it, such as "Thursday, May 7".

    lexemes: the words, with their kinds and values.
    position: the index of its first part in the sentence.
    is_holiday: whether one of them is the name of a day, such as "Christmas".
    """

    lexemes: list[Lexeme] = field(default_factory=list)
    position: int = 0
    is_holiday: bool = False


def without_range_ends(sentence: Sentence) -> list[Part]:
    """Return the parts of a sentence, except those that say when a range ends.

    A reminder comes at the beginning of a range: "from 2 to 3pm" keeps only the part for 2. An end
    without a beginning is itself the time: "until Friday" keeps it.

    Raises UnusedWords for the end of hours on a day without their beginning ("tomorrow until 5pm"),
    and for the end of days after an hour ("5pm until Sunday").
    """
    beginnings: list[Part] = []
    remaining: list[Part] = []
    for part in sentence.parts:
        if part.role != END:
            beginnings.append(part)
            remaining.append(part)
            continue
        has_beginning = any(_is_of_same_kind(beginning, part) for beginning in beginnings)
        if has_beginning:
            continue
        # "until tonight" is an end of both kinds.
        has_other_day = any(day.is_day and day.role != END for day in sentence.parts)
        if part.is_clock and has_other_day:
            raise sentence.unused(part)
        if part.is_day and any(beginning.is_clock for beginning in beginnings):
            raise sentence.unused(part)
        # "until Christmas, on Friday": a holiday is no other name of the Friday.
        if part.is_holiday and has_other_day:
            raise sentence.unused(part)
        remaining.append(part)
    return remaining


def _is_of_same_kind(first: Part, last: Part) -> bool:
    """Whether both parts are days, or both are clocks."""
    return (first.is_day and last.is_day) or (first.is_clock and last.is_clock)


def day_slots(parts: Sequence[Part]) -> list[DaySlot]:
    """Return the days that the parts name.

    Words that belong to one day share a slot; days joined by "and" or "or" get a slot each.
    """
    slots: list[DaySlot] = []
    # "and" and "or" announce a further day, even if a clock follows them: "and at 3 on Friday".
    begins_slot = True
    for position, part in enumerate(parts):
        begins_slot = begins_slot or part.link in ("and", "or")
        if not part.is_day or part.is_loose:
            continue
        if begins_slot:
            slots.append(DaySlot(position=position))
            begins_slot = False
        slots[-1].lexemes.append(part.lexeme)
        slots[-1].is_holiday = slots[-1].is_holiday or part.is_holiday
    return slots


def clock_slots(sentence: Sentence, parts: Sequence[Part]) -> list[ClockSlot]:
    """Return the times of day that the parts name.

    Raises UnusedWords for two clocks side by side without a link: "doors 19:00, show 20:00".
    """
    slots: list[ClockSlot] = []
    # "and" and "or" announce a further time of day, even if a day follows them.
    begins_slot = True
    for position, part in enumerate(parts):
        begins_slot = begins_slot or part.link in ("and", "or")
        if not part.is_clock or part.is_loose:
            continue
        if begins_slot or _begins_clock(parts, position, slots):
            slots.append(ClockSlot(position=position))
            begins_slot = False
        is_taken = slots[-1].add(part)
        if not is_taken:
            raise sentence.unused(part)
    _share_parts(slots)

    # A part of the day without a place of its own is about all of them.
    loose_parts = [part.lexeme.value for part in parts if part.kind == "part" and part.is_loose]
    for slot in slots:
        slot.loose_parts = loose_parts
    return slots


def _begins_clock(parts: Sequence[Part], position: int, slots: Sequence[ClockSlot]) -> bool:
    """Whether a part of the day begins another time, right behind a complete one: 早8点晚8点.

    parts: all time words.
    position: the index of the part of the day.
    slots: the times before it. A complete one has a part of the day and a clock.
    """
    if not slots or parts[position].kind != "part":
        return False
    is_complete = bool(slots[-1].clocks) and bool(slots[-1].day_parts)
    has_following = position + 1 < len(parts)
    if not is_complete or not has_following:
        return False
    following = parts[position + 1]
    return following.kind == "clock" and following.link == "beside"


def _share_parts(slots: list[ClockSlot]) -> None:
    """Give a clock without a part of the day the part of the clock before it.

    In "evening at 8 and 9", the 9 is in the evening too.
    """
    for before, slot in pairwise(slots):
        is_bare = any(clock.form == "bare" for clock in slot.clocks)
        if is_bare and not slot.day_parts:
            slot.day_parts = before.day_parts


def pair_slots(
    days: Sequence[DaySlot], clocks: Sequence[ClockSlot]
) -> list[tuple[DaySlot | None, ClockSlot | None]] | None:
    """Return (day, clock) pairs, one for each time that the days and clocks name.

    "Monday and Tuesday at 3" gives two, of both days with the one clock. "Monday at 3 and Tuesday
    at 5" gives two as well. "Monday and Tuesday at 3 and 5" gives None, as nobody can tell which of
    several belong together unless days and clocks alternate.

    A pair has None in place of a day or clock that the text does not name.
    """
    if len(days) > 1 and len(clocks) > 1:
        if len(days) != len(clocks) or not _are_alternating(days, clocks):
            return None
        return list(zip(days, clocks, strict=True))
    all_clocks: list[ClockSlot | None] = [*clocks] or [None]
    all_days: list[DaySlot | None] = [*days] or [None]
    return list(product(all_days, all_clocks))


def _are_alternating(days: Sequence[DaySlot], clocks: Sequence[ClockSlot]) -> bool:
    """Whether each day has its clock beside it: day, clock, day, clock.

    days, clocks: the days and clocks of a sentence, each with its place.
    """
    day_places = [(slot.position, "day") for slot in days]
    clock_places = [(slot.position, "clock") for slot in clocks]
    kinds = [kind for _, kind in sorted(day_places + clock_places)]
    return all(kind != following for kind, following in pairwise(kinds))
