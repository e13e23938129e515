"""Readers of the shapes that name times of day, such as "half past three".

A reader gets the match of a shape and the character before it, and returns what the words mean.
`day_readers` has those that name days.
"""

from __future__ import annotations

import re

from memoranda.note.timephrase.day_readers import UNCLEAR, WRONG, Meanings, Reader, named_value
from memoranda.note.timephrase.numbers import read_whole_number
from memoranda.note.timephrase.values import Meaning, TimeOfDay
from memoranda.note.timephrase.words import table

# Minutes of "half past" and the like.
_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}


def read_part(match: re.Match[str], before: str) -> Meanings:
    """Read a part of the day: "in the morning", 下午.

    All but noon are weak, as they name no hour.
    """
    short_parts = table("chinese.short_parts")
    if match["zwords"] in short_parts:
        part = short_parts[match["zwords"]]
    else:
        part = named_value(match, "parts")
    return [Meaning("part", part, is_weak=part != "noon")]


def read_clock_word(match: re.Match[str], before: str) -> Meanings:
    """Read "noon", "midnight", and "end of day", which is the end of the working day."""
    if match["eod"]:
        return [Meaning("clock", TimeOfDay(18, form="eod"))]
    if match["word"] in ("midnight", "午夜"):
        return [Meaning("clock", TimeOfDay(0, form="midnight"))]
    return [Meaning("clock", TimeOfDay(12))]


def read_clock(match: re.Match[str], before: str) -> Meanings:
    """Read a clock in digits or words: 15:30, 3pm, "at three thirty".

    After a word such as "by" a bare hour is weak: "by 5" may be about five things.

    match: the match of the shape. It has only the groups of the wording that matched.
    before: the character before the match. It does not matter here.
    """
    groups = match.groupdict()
    hour = read_whole_number(match["h"] or groups["hh"])
    if groups.get("day_end"):
        # "from 9 to 5" are the hours of work.
        return [Meaning("clock", TimeOfDay(hour), is_weak=True)]
    minute = read_whole_number(groups.get("min") or groups.get("spelled") or "0")
    has_am_or_pm = bool(groups.get("half"))
    if has_am_or_pm:
        return _by_half(match, hour, minute)
    # Behind "at" a number is an hour. Behind "by" or "from" it may be anything: "from 40 people".
    is_soft = groups.get("soft") not in (None, "at") or bool(groups.get("range"))
    if is_soft and not 1 <= hour <= 23:
        return []
    form = "colon" if groups.get("min") else "bare"
    return _clock(hour, minute, form, second=int(groups.get("s") or 0), is_weak=is_soft)


def read_clock_past(match: re.Match[str], before: str) -> Meanings:
    """Read a clock that counts from an hour: "half past three", "ten to nine"."""
    hour = read_whole_number(match["h"])
    if match["past"]:
        minute = _MINUTES[re.sub(r"\s+", "-", match["past"])]
    else:
        minute = 60 - _MINUTES[re.sub(r"\s+", "-", match["to"])]
        hour = (hour - 1) or 12
    if match["half"]:
        return _by_half(match, hour, minute)
    return _clock(hour, minute, "bare")


def read_clock_zh(match: re.Match[str], before: str) -> Meanings:
    """Read a Chinese time of day, an hour with 点 or 时: 三点半 is 3:30, 差五分三点 is 2:55.

    match: the match of the words. Its groups:
        h: the hour.
        lack: the time that is missing to the hour, such as 五分 (five minutes) or 一刻 (a quarter).
        thirty: 半, half an hour after the hour.
        quarters: the number of quarters after the hour.
        min: the minutes after the hour, with the word 分.
        bare: the minutes after the hour, without a word.
        At most one of the last four has a value.
    before: the character before the words.

    Returns an empty list if the words do not mean an hour.
    """
    if not _is_hour(match, before):
        return []
    hour = read_whole_number(match["h"])
    if match["lack"]:
        # 差五分三点 is five minutes to three.
        hour_before = (hour - 1) or 12
        return _clock(hour_before, 60 - _lacking_minutes(match["lack"]), "bare")
    if match["thirty"]:
        minute = 30
    elif match["quarters"]:
        minute = 15 * read_whole_number(match["quarters"])
    else:
        minute = read_whole_number(match["min"] or match["bare"] or "0")
    return _clock(hour, minute, "bare")


def _lacking_minutes(spelled: str) -> int:
    """Return how many minutes are missing to an hour: 15 for 一刻, 5 for 五分."""
    if spelled.endswith("刻"):
        return 15 * read_whole_number(spelled[0])
    return read_whole_number(spelled.rstrip("分"))


def _is_hour(match: re.Match[str], before: str) -> bool:
    """Whether Chinese words mean an hour.

    一点 is also "a little", so it is an hour only at the beginning of a clause and after 在, 到, 约
    (at, until, about). 一时 is "for a while" and never an hour.

    match: the match of the words.
    before: the character before them. "" at the beginning of the text, or right behind another time
        word.
    """
    spelled = match[0].strip()
    if spelled == "一时":
        return False
    if before == "":
        return True
    if spelled == "一点":
        is_chinese = "\u4e00" <= before <= "\u9fff"
        return not is_chinese or before in "在到约于"
    # In words, but not in digits, the hour may be another word: 第三点 is "the third point".
    is_in_digits = match["h"].isdigit()
    # 多三点 is "three points more", but 差不多三点 is "about three o'clock".
    is_about = match.string[: match.start()].endswith(("差不多", "最晚", "最早"))
    return is_in_digits or is_about or before not in table("chinese.little")


def read_clock_unclear(match: re.Match[str], before: str) -> Meanings:
    """Refuse a clock that can be read in two ways, such as "half nine"."""
    return UNCLEAR


def _by_half(match: re.Match[str], hour: int, minute: int) -> Meanings:
    """Read a clock with am or pm: `3pm` is TimeOfDay(15).

    In two cases the hour is in the other half of the day than the words say: the first hour of a
    range (11 in 11-1pm is in the morning), and "a quarter to 12pm", which is before noon.

    match: the match of the words. Its group `half` is `a` or `p`.
    hour, minute: the clock that they show. "a quarter to 12" is 11:45.
    """
    if not (1 <= hour <= 12 and minute < 60):
        return WRONG
    groups = match.groupdict()
    range_end = groups.get("until")
    # In 11-1pm, the clock begins again at 12 between the two hours.
    is_over_twelve = bool(range_end) and hour % 12 > int(range_end or 0) % 12
    is_quarter_to_twelve = bool(groups.get("to")) and hour == 11
    is_other_half = is_over_twelve or is_quarter_to_twelve
    says_afternoon = match["half"] == "p"
    is_afternoon = says_afternoon != is_other_half
    hour_of_day = hour % 12
    if is_afternoon:
        hour_of_day += 12
    return [Meaning("clock", TimeOfDay(hour_of_day, minute))]


def _clock(
    hour: int, minute: int, form: str, *, second: int = 0, is_weak: bool = False
) -> Meanings:
    """Make the meaning of a clock. WRONG if no clock shows it; 24:00 is shown.

    hour, minute, second: the clock that the words show.
    form: how sure an hour from 1 to 12 is, as `TimeOfDay.form`. Other hours are fixed.
    is_weak: whether the words count as a time only beside other time words.
    """
    is_past_midnight = hour == 24 and (minute or second)
    if hour > 24 or minute > 59 or second > 59 or is_past_midnight:
        return WRONG
    if not 1 <= hour <= 12:
        form = "fixed"
    clock = TimeOfDay(hour, minute, second, form)
    return [Meaning("clock", clock, is_weak)]


READERS: dict[str, Reader] = {
    "part": read_part,
    "clock": read_clock,
    "clock_word": read_clock_word,
    "clock_past": read_clock_past,
    "clock_zh": read_clock_zh,
    "clock_unclear": read_clock_unclear,
}
