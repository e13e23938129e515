"""Readers of the shapes that name times of day (see day_readers)."""

from __future__ import annotations

import re

from memoranda.note.timephrase.day_readers import UNCLEAR, WRONG, Reader, Values, named_value
from memoranda.note.timephrase.numbers import read_whole_number
from memoranda.note.timephrase.values import TimeOfDay
from memoranda.note.timephrase.words import table

# Minutes of "half past" and the like.
_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}


def read_part(match: re.Match[str], before: str) -> Values:
    short_parts = table("chinese.short_parts")
    if match["zwords"] in short_parts:
        part = short_parts[match["zwords"]]
    else:
        part = named_value(match, "parts")
    # "noon" is a time alone, "morning" is not
    if part == "noon":
        return [("part", part)]
    return [("part?", part)]


def read_clock_word(match: re.Match[str], before: str) -> Values:
    """Noon, midnight, the end of the working day."""
    if match["eod"]:
        return [("clock", TimeOfDay(18, form="eod"))]
    if match["word"] in ("midnight", "午夜"):
        return [("clock", TimeOfDay(0, form="midnight"))]
    return [("clock", TimeOfDay(12))]


def read_clock(match: re.Match[str], before: str) -> Values:
    """Digits or a word with minutes: 15:30, 3pm, at three thirty."""
    groups = match.groupdict()
    hour = read_whole_number(match["h"] or groups["hh"])
    minute = read_whole_number(groups.get("min") or groups.get("spelled") or "0")
    if groups.get("half"):
        return _by_half(match, hour, minute)
    is_soft = groups.get("soft") not in (None, "at")
    if is_soft and not 1 <= hour <= 23:
        return []
    if groups.get("min"):
        form = "colon"
    else:
        form = "bare"
    return _clock(hour, minute, form, second=int(groups.get("s") or 0), is_weak=is_soft)


def read_clock_past(match: re.Match[str], before: str) -> Values:
    """Half past three, ten to nine."""
    hour = read_whole_number(match["h"])
    if match["past"]:
        minute = _MINUTES[re.sub(r"\s+", "-", match["past"])]
    else:
        minute = 60 - _MINUTES[re.sub(r"\s+", "-", match["to"])]
        hour = (hour - 1) or 12
    if match["half"]:
        return _by_half(match, hour, minute)
    return _clock(hour, minute, "bare")


def read_clock_zh(match: re.Match[str], before: str) -> Values:
    """A number and 点: 三点半, 差五分三点."""
    if not _is_hour(match, before):
        return []
    hour = read_whole_number(match["h"])
    minute = read_whole_number(match["min"] or match["bare"] or "0")
    if match["thirty"]:
        minute = 30
    elif match["quarters"]:
        minute = 15 * read_whole_number(match["quarters"])
    if match["lack"]:
        minute = 60 - _lacking_minutes(match["lack"])
        hour = (hour - 1) or 12
    return _clock(hour, minute, "bare")


def _lacking_minutes(spelled: str) -> int:
    """The minutes before an hour: 差一刻, 差五分."""
    if spelled.endswith("刻"):
        return 15 * read_whole_number(spelled[0])
    return read_whole_number(spelled.rstrip("分"))


def _is_hour(match: re.Match[str], before: str) -> bool:
    """Whether Chinese words mean an hour.

    一点 does only at the beginning of a clause and after 在, 到, 约; 一时 never does.
    """
    spelled = match[0].strip()
    if spelled == "一时":
        return False
    if spelled == "一点" and before:
        return not "\u4e00" <= before <= "\u9fff" or before in "在到约于"
    # Not after 第 and 早
    return not before or match["h"].isdigit() or before not in table("chinese.little")


def read_clock_unclear(match: re.Match[str], before: str) -> Values:
    return UNCLEAR


def _by_half(match: re.Match[str], hour: int, minute: int) -> Values:
    """Read a clock with am or pm.

    In a range such as 11-1pm, the first hour may be in the other half of the day. So may a quarter
    to 12.
    """
    if not (1 <= hour <= 12 and minute < 60):
        return WRONG
    groups = match.groupdict()
    until = groups.get("until")
    is_other_half = (groups.get("to") and hour == 11) or (until and hour % 12 > int(until) % 12)
    is_afternoon = (match["half"] == "p") != bool(is_other_half)
    return [("clock", TimeOfDay(hour % 12 + (12 if is_afternoon else 0), minute))]


def _clock(hour: int, minute: int, form: str, *, second: int = 0, is_weak: bool = False) -> Values:
    is_past_midnight = hour == 24 and (minute or second)
    if hour > 24 or minute > 59 or second > 59 or is_past_midnight:
        return WRONG
    if not 1 <= hour <= 12:
        form = "fixed"
    clock = TimeOfDay(hour, minute, second, form)
    if is_weak:
        return [("clock?", clock)]
    return [("clock", clock)]


READERS: dict[str, Reader] = {
    "part": read_part,
    "clock": read_clock,
    "clock_word": read_clock_word,
    "clock_past": read_clock_past,
    "clock_zh": read_clock_zh,
    "clock_unclear": read_clock_unclear,
}
