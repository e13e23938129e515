"""The time words of a text as tokens: what each spelling means, without a clock."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from commonplace.note.timephrase.vocabulary import HALF, compiled, number, shapes, starts, table, units, whole

UNIT_SECONDS = {"second": 1, "minute": 60, "quarter": 900, "hour": 3600}
_LONG_BLANKS = re.compile(r"\s{3,}")


class Token(NamedTuple):
    """A time word at plain[start:end]. A `weak` one counts only beside another."""

    kind: str
    value: Any
    start: int
    end: int
    weak: bool = False


class Delay(NamedTuple):
    """A distance in time: whole `months` and `days`, and elapsed `seconds`. Negative ones lie in the past."""

    months: int
    days: int
    seconds: int


class TimeOfDay(NamedTuple):
    """A time on a clock. `form`: "bare" hours 1-12 that may be before or after noon, "colon" as 9:30 (a part of
    the day may still move it), "fixed", "midnight" or "eod"."""

    hour: int
    minute: int = 0
    second: int = 0
    form: str = "fixed"


class Repetition(NamedTuple):
    """A repetition as far as one word tells it: `days` are weekdays 0-6, `monthdays` 1-31 or -1, the last."""

    unit: str
    interval: Fraction = Fraction(1)
    days: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    month: int | None = None


class Text:
    """`plain` is `written` in compatibility form (NFKC) and lower case, character by character, with runs of three
    and more blanks made short: a run with an empty line in it is two line ends."""

    def __init__(self, written: str):
        self.written, self.plain, self._origin = written, written.lower(), None
        if not written.isascii():
            parts = [_plain(char) for char in written]
            self._set([(part, [at] * len(part)) for at, part in enumerate(parts)])
        if _LONG_BLANKS.search(self.plain):
            self._shorten()

    _origin: list[int] | None
    """The place in `written` of each character of `plain`; None when they are the same."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where plain[start:end] stands in `written`; one character at least."""
        if self._origin is None:
            return start, end
        return self._origin[start], self._origin[end - 1] + 1

    def _set(self, parts: list[tuple[str, list[int]]]) -> None:
        self.plain = "".join(part for part, _ in parts)
        self._origin = [at for _, places in parts for at in places]

    def _shorten(self) -> None:
        origin, at = self._origin or list(range(len(self.plain))), 0
        parts: list[tuple[str, list[int]]] = []
        for blank in _LONG_BLANKS.finditer(self.plain):
            start, end = blank.span()
            short = "\n\n" if blank[0].count("\n") > 1 else "\n" if "\n" in blank[0] else " "
            parts += [(self.plain[at:start], origin[at:start]), (short, [origin[start]] * len(short))]
            at = end
        self._set([*parts, (self.plain[at:], origin[at:])])


def _plain(char: str) -> str:
    return "'" if char in "’‘" else unicodedata.normalize("NFKC", char).lower()


def scan(plain: str) -> list[Token]:
    """The time words of `plain` (see Text) in order, not overlapping. Words such as "tonight" give two tokens
    with one place."""
    by_lead, found, at = shapes(), [], 0
    for start in starts().finditer(plain):
        if start.start() < at:
            continue
        lead = start[0]
        for shape in by_lead.get("0" if lead.isdigit() else lead, ()):
            match = shape.match(plain, start.start())
            if match and match.end() > match.start() and (tokens := _tokens(shape.kind, match, at)):
                found += tokens
                at = match.end()
                break
    return found


_Values = list[tuple[str, Any]]
"""Kinds and values of the tokens of a match; empty when a closer look says it is no time. A kind with `?` is weak."""
_Reader = Callable[[re.Match[str], str], _Values]
_WRONG: _Values = [("wrong", None)]
"""A time word with a value that does not exist, such as 25:00."""
_READERS: dict[str, _Reader] = {}


def _tokens(kind: str, match: re.Match[str], previous: int) -> list[Token]:
    """The tokens of a match; `previous` is where the token before it ends."""
    before = match.string[match.start() - 1 : match.start()] if match.start() != previous else ""
    try:
        found = _READERS[kind](match, before)
    except ValueError:
        return []
    text = match[0]
    start, end = match.start() + len(text) - len(text.lstrip()), match.end() - (len(text) - len(text.rstrip()))
    return [Token(kind.removesuffix("?"), value, start, end, kind.endswith("?")) for kind, value in found]


def _reads(*kinds: str) -> Callable[[_Reader], _Reader]:
    """Makes a function the reader of these shapes. It takes the match and the character before it ("" after a
    token), and may raise ValueError for no time."""
    return lambda reader: _READERS.update(dict.fromkeys(kinds, reader)) or reader


def _named(match: re.Match[str], name: str) -> Any:
    """The value of the matched `words` or `zwords` in the table `name` of their language."""
    if match["words"]:
        return table(f"english.{name}")[" ".join(match["words"].split())]
    return table(f"chinese.{name}")[match["zwords"]]


@_reads("vague")
def _vague(match: re.Match[str], before: str) -> _Values:
    return [("vague", None)]


@_reads("instant")
def _instant(match: re.Match[str], before: str) -> _Values:
    offset = (match["offset"] or "").upper()
    try:
        return [("instant", datetime.fromisoformat(f"{match['date']}T{match['clock'] or match['local']}{offset}"))]
    except ValueError:
        return _WRONG


@_reads("delay", "delay_zh")
def _delay(match: re.Match[str], before: str) -> _Values:
    said = match.groupdict()
    if "over" in said and not (said["over"] or said["after"] or said["ago"]):
        return []
    amount = _amount(match["amount"])
    if said.get("ago"):
        amount = Delay(*(-each for each in amount))
    return [("delay", amount)] if any(amount) else _WRONG


_SEPARATOR = re.compile(r"\s*(?:,\s*)?(?:and\s+|[零又])?\s*")


def _amount(text: str) -> Delay:
    """The sum of an amount such as "an hour and a half" or 两个半小时. Raises ValueError."""
    text, halves = re.subn(r"(?<=[a-z])\s+and\s+a\s+half$", "", text.strip())
    text = re.sub(r"^half\s+(?:of\s+)?an?\s+", "0.5 ", text)
    text = re.sub(r"^(?:a\s+)?quarter\s+of\s+an\s+hour", "15 minutes", text)
    months, days, seconds, at = Fraction(), Fraction(), Fraction(), 0
    while at < len(text):
        between = _SEPARATOR.match(text, at)
        piece = compiled("<piece>").match(text, between.end() if between else at)
        if not piece or piece.end() == at:
            raise ValueError(text)
        at = piece.end()
        count = HALF if piece["half"] else number(piece["count"] or "")
        count += HALF * (bool(piece["plus"] or piece["more"]) + bool(at == len(text) and halves))
        unit = units()[piece["unit"]]
        if unit in UNIT_SECONDS:
            seconds += count * UNIT_SECONDS[unit]
        elif unit in ("day", "week"):  # the rest of a day is elapsed time
            days += count * (7 if unit == "week" else 1)
            seconds, days = seconds + days % 1 * 86400, days - days % 1
        else:  # half a month is 15 days
            months += count * (12 if unit == "year" else 1)
            if months.denominator == 2:
                months, days = months - HALF, days + 15
    if months.denominator != 1 or seconds.denominator != 1:
        raise ValueError(text)
    return Delay(int(months), int(days), int(seconds))


@_reads("date_iso")
def _date_iso(match: re.Match[str], before: str) -> _Values:
    return [("date", ((int(match["y"]), int(match["m"] or match["m2"]), int(match["d"] or match["d2"])),))]


@_reads("date_slash")
def _date_slash(match: re.Match[str], before: str) -> _Values:
    first, second, year = int(match["a"]), int(match["b"]), match["y"]
    if (first, second) == (24, 7) or not (0 < first < 32 and 0 < second < 32):
        return _WRONG if year and year > "1900" else []
    pairs = dict.fromkeys([(first, second), (second, first)])
    dates = tuple((int(year) if year else None, month, day) for month, day in pairs if month <= 12)
    return [("date", dates)] if dates else _WRONG


@_reads("date_en")
def _date_en(match: re.Match[str], before: str) -> _Values:
    month = table("english.months")[match["month"]]
    return [("date", ((int(match["y"]) if match["y"] else None, month, int(match["d"])),))]


@_reads("date_zh")
def _date_zh(match: re.Match[str], before: str) -> _Values:
    year, month = whole(match["y"]) if match["y"] else None, whole(match["m"])
    if match["edge"]:
        return [("month_edge", (year, month, match["edge"] != "初"))] if 1 <= month <= 12 else _WRONG
    return [("date", ((year, month, whole(match["d"])),))]


@_reads("monthday_zh")
def _monthday_zh(match: re.Match[str], before: str) -> _Values:
    day = whole(match["d"])
    return [("monthday", day)] if 1 <= day <= 31 else []


_AFTER_MONTHDAY = re.compile(
    r"\n|\s+(?:[0-9]|noon|midnight)|\s*[^\sa-z]|\s*(?:$|[.,;:!?)\]]"
    r"|(?:to|and|or|for|is|we|i|please|of|at|on|by|before|in|every|each|next|this)\b)"
)


@_reads("monthday")
def _monthday(match: re.Match[str], before: str) -> _Values:
    """ "the 3rd" is a day when it follows "on" or "by", or when no name follows it ("the 3rd rock")."""
    if not (match["sure"] or _AFTER_MONTHDAY.match(match.string[match.end() : match.end() + 20])):
        return []
    return [("monthday", int(match["d"]))] if 1 <= int(match["d"]) <= 31 else _WRONG


_RELATIVE = {"this": 0, "next": 1, "last": -1}
_YEARS = {None: 0, "今": 0, "明": 1, "后": 2, "去": -1}


def _which(spelled: str | None) -> int | None:
    """How many calendar weeks or months on; None when nothing is said."""
    spelled = (spelled or "").strip()
    if not spelled or spelled.endswith("the") or spelled == "coming":
        return None
    return _RELATIVE.get(spelled, spelled.count("下") - spelled.count("上"))


@_reads("edge")
def _edge(match: re.Match[str], before: str) -> _Values:
    if match["late"]:
        return [("edge", (match["late"], 0, True))]
    last = match["edge"].startswith(("end", "last"))
    if match["month"]:
        return [("month_edge", (None, table("english.months")[match["month"]], last))]
    return [("edge", (match["unit"], _which(match["which"]) or 0, last))]


@_reads("edge_zh")
def _edge_zh(match: re.Match[str], before: str) -> _Values:
    if "月" in match[0]:
        return [("edge", ("month", _which(match["which"]) or 0, not match["start"]))]
    return [("edge", ("year", _YEARS[match["year"]], not match["ystart"]))]


@_reads("weekend", "weekend_zh")
def _weekend(match: re.Match[str], before: str) -> _Values:
    return [("weekend", (_which(match["which"]), match["which"] == "next"))]


@_reads("weekday")
def _weekday(match: re.Match[str], before: str) -> _Values:
    which = _which(match["which"])
    kind = "weekday?" if match["day"] in ("sat", "sun") and which != 1 else "weekday"
    return [(kind, (which, table("english.weekdays")[match["day"]], which == 1))]


@_reads("weekday_zh")
def _weekday_zh(match: re.Match[str], before: str) -> _Values:
    if not match["which"] and before and before in "一二两三四五六七八九十几0123456789":
        return []
    return [("weekday", (_which(match["which"]), table("chinese.weekdays")[match["day"]], False))]


@_reads("day")
def _day(match: re.Match[str], before: str) -> _Values:
    is_part_of_word = match["zwords"] == "后天" and before and before in "之以今"
    return [] if is_part_of_word else [("day", _named(match, "days"))]


@_reads("day_part")
def _day_part(match: re.Match[str], before: str) -> _Values:
    days, part = _named(match, "day_parts")
    return [("day", days), ("part", part)]


@_reads("part")
def _part(match: re.Match[str], before: str) -> _Values:
    part = _named(match, "parts")
    return [("part" if part == "noon" else "part?", part)]


@_reads("span")
def _span(match: re.Match[str], before: str) -> _Values:
    offset = _RELATIVE[match["which"]]
    return [("span" if offset else "span?", (match["unit"], offset))]


@_reads("span_zh")
def _span_zh(match: re.Match[str], before: str) -> _Values:
    if before == "一":
        return []
    if match["year"]:
        unit, offset = "year", _YEARS[match["year"]]
    else:
        unit, offset = "month" if match["unit"] == "月" else "week", _which(match["which"]) or 0
    return [("span" if offset else "span?", (unit, offset))]


_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}


@_reads("clock")
def _clock(match: re.Match[str], before: str) -> _Values:
    has = match.groupdict().get
    if has("eod"):
        return [("clock", TimeOfDay(18, form="eod"))]
    if has("word"):
        return [("clock", TimeOfDay(0, form="midnight") if has("word") == "midnight" else TimeOfDay(12))]
    hour, minute = whole(match["h"]), int(has("min") or 0)
    if has("spelled"):
        minute = whole(match["spelled"])
    if has("past"):
        minute = _MINUTES[match["past"]]
    elif has("to"):
        hour, minute = (hour - 1) or 12, 60 - _MINUTES[match["to"]]
    if has("half"):
        return _halved(hour, minute, match["half"], has("until"))
    soft = has("soft") not in (None, "at")
    if soft and not 1 <= hour <= 23:
        return []
    return _checked(hour, minute, int(has("s") or 0), bool(has("min")), "clock?" if soft else "clock")


def _halved(hour: int, minute: int, half: str, until: str | None) -> _Values:
    """An hour with am or pm; of a range such as 11-1pm the first, which may lie in the other half."""
    if not (1 <= hour <= 12 and minute < 60):
        return _WRONG
    is_afternoon = (half == "p") != (until is not None and hour % 12 > int(until) % 12)
    return [("clock", TimeOfDay(hour % 12 + (12 if is_afternoon else 0), minute))]


def _checked(hour: int, minute: int, second: int, colon: bool, kind: str = "clock") -> _Values:
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second)):
        return _WRONG
    form = "fixed" if not 1 <= hour <= 12 else "colon" if colon else "bare"
    return [(kind, TimeOfDay(hour, minute, second, form))]


@_reads("clock_zh")
def _clock_zh(match: re.Match[str], before: str) -> _Values:
    has = match.groupdict().get
    if has("word"):
        return [("clock", TimeOfDay(0, form="midnight") if has("word") == "午夜" else TimeOfDay(12))]
    if before and not match["h"].isdigit() and before in table("chinese.little"):
        return []
    said = match[0].strip()  # 一点 is an hour only at the beginning of a clause and after 在, 到, 约; 一时 is none
    if before and (said == "一时" or (said == "一点" and "\u4e00" <= before <= "\u9fff" and before not in "在到约于")):
        return []
    hour, minute = whole(match["h"]), 30 if has("half") else 0
    if has("quarter"):
        minute = 15 * whole(match["quarter"])
    elif has("min") or has("bare"):
        minute = whole(has("min") or match["bare"])
    return _checked(hour, minute, 0, colon=False)


_WORKDAYS = (0, 1, 2, 3, 4)


def _interval(match: re.Match[str]) -> Fraction:
    """How many units lie between two times: every other 2, every N N, 每隔一 2."""
    said = match.groupdict()
    gap, every = (said.get("gap") or "").split(), number(said.get("count") or "1")
    if not gap or gap[0] == "week":
        return every
    if gap[0] == "隔":
        return every + 1 if every == 1 else every
    if gap[0] in ("other", "second"):
        return Fraction(2)
    return number(" ".join(word for word in gap if word not in ("weeks", "week", "on")))


def _weekly(match: re.Match[str], days: list[int], is_range: bool) -> _Values:
    """A repetition on weekdays, a range of two filled in."""
    if len(days) >= 2 and is_range:
        days = [*days, *((days[0] + step) % 7 for step in range((days[1] - days[0]) % 7))]
    return [("repeat", Repetition("week", _interval(match), tuple(sorted(set(days)))))]


@_reads("repeat_days")
def _repeat_days(match: re.Match[str], before: str) -> _Values:
    names, words = table("english.weekdays"), re.findall(r"[a-z]+", match["days"])
    known = (names.get(word, names.get(word.removesuffix("s"))) for word in words)
    days = [day for day in known if day is not None]
    return _weekly(match, days, "-" in match["days"] or "to" in words or "through" in words)


@_reads("repeat_zh_week")
def _repeat_zh_week(match: re.Match[str], before: str) -> _Values:
    if match["weekend"]:
        return _weekly(match, [5], False)
    names, spelled = table("chinese.weekdays"), re.sub("周|星期|礼拜", "", match["days"])
    return _weekly(match, [names[c] for c in spelled if c in names], any(c in spelled for c in "至到-"))


@_reads("repeat_monthly", "repeat_zh_month")
def _repeat_monthly(match: re.Match[str], before: str) -> _Values:
    if match["last"] or match.groupdict().get("first"):
        days = [-1 if match["last"] else 1]
    else:
        days = sorted({whole(each) for each in re.findall(r"[0-9零〇一二两三四五六七八九十]+", match["list"])})
    known = all(1 <= day <= 31 or day == -1 for day in days)
    repetition = Repetition("month", _interval(match), monthdays=tuple(days))
    return [("repeat", repetition)] if known else _WRONG


@_reads("repeat_yearly")
def _repeat_yearly(match: re.Match[str], before: str) -> _Values:
    return [("repeat", Repetition("year"))]


@_reads("repeat_unit")
def _repeat_unit(match: re.Match[str], before: str) -> _Values:
    said = match.groupdict()
    if said.get("adverb"):
        return [("repeat", Repetition(table("english.adverbs")[match["adverb"]]))]
    unit, interval, parts = match["unit"], _interval(match), table("english.parts")
    if unit in parts:
        return [("repeat", Repetition("day", interval)), ("part", parts[unit])]
    if unit == "weekend":
        return [("repeat", Repetition("week", interval, (5,)))]
    if unit.startswith(("weekday", "work", "business")):
        return [("repeat", Repetition("week", interval, _WORKDAYS))] if interval == 1 else []
    if unit.startswith("half"):
        return [("repeat", Repetition("minute", 30 * interval))]
    return [("repeat", Repetition(units().get(unit, unit), interval))]  # "second" alone is no unit of an amount


@_reads("repeat_zh_unit")
def _repeat_zh_unit(match: re.Match[str], before: str) -> _Values:
    if match["year_end"]:
        return [("repeat", Repetition("year", month=12, monthdays=(31,)))]
    if match["alternate"] or match["daily"]:
        return [("repeat", Repetition("day", Fraction(2 if match["alternate"] else 1)))]
    unit, interval = match["unit"], _interval(match)
    if unit == "工作日":
        return [("repeat", Repetition("week", interval, _WORKDAYS))] if interval == 1 else []
    if unit in "早晚":
        return [("repeat", Repetition("day", interval)), ("part", "morning" if unit == "早" else "night")]
    return [("repeat", Repetition(units()[unit], interval))]
