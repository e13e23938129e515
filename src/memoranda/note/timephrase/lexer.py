"""The time words of a text as tokens: what each spelling means, without a clock.

The words stand in words.toml, the patterns to match in shapes.toml.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from memoranda.note.timephrase.dates import (
    UNIT_SECONDS,
    Delay,
    Lexeme,
    NthWeekday,
    Repetition,
    TimeOfDay,
)

HALF = Fraction(1, 2)
_LONG_BLANKS = re.compile(r"\s{3,}")
_FRAGMENT = re.compile(r"(?<!\(\?P)<([a-zBCE_.]+)>")


@cache
def _file(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


@cache
def table(path: str) -> Any:
    """A table or list of words.toml, e.g. `english.months`."""
    return reduce(getitem, path.split("."), _file("words.toml"))


@cache
def units() -> dict[str, str]:
    """Every spelling of a unit of time -> its name."""
    tables = [table(path) for path in ("english.units", "chinese.units", "chinese.ge_units")]
    spelled = {name: unit for each in tables for unit, names in each.items() for name in names}
    return table("english.short") | spelled


@cache
def _fragment(name: str) -> str:
    """What <name> stands for in a pattern: a fragment of shapes.toml, or any word of a table of
    words.toml.
    """
    fragments = _file("shapes.toml")["fragments"]
    if name in fragments:
        return _filled(fragments[name])
    words = table(name)
    # Of patterns
    if isinstance(words, list):
        return _filled("|".join(words)).replace(" ", r"\s+")
    if name.endswith("units"):
        words = [spelling for spellings in words.values() for spelling in spellings]
    escaped = (re.escape(word) for word in sorted(words, key=len, reverse=True))
    return "|".join(escaped).replace(r"\ ", r"\s+")


def _filled(pattern: str) -> str:
    return _FRAGMENT.sub(lambda found: _fragment(found[1]), pattern)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of shapes.toml. Compiled when first needed: all of them together take long."""
    return re.compile(_filled(pattern), re.ASCII | re.VERBOSE)


@cache
def shapes() -> tuple[dict[str, list[tuple[str, str]]], re.Pattern[str]]:
    """The shapes (kind, pattern) by what they begin with: an English word, a Chinese character, or
    "0" for digits; and what finds the next word, run of digits or Chinese character that may begin
    one."""
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in _file("shapes.toml")["shape"]:
        names = (
            name
            for lead in entry["leads"].split()
            for name in (table(lead[1:]) if lead[0] == "@" else [lead])
        )
        for word in dict.fromkeys(name.split()[0] if name.isascii() else name[0] for name in names):
            found.setdefault(word, []).append((entry["kind"], entry["pattern"]))
    return found, re.compile(
        f"[a-z]+|[0-9]+|[{''.join(word for word in found if not word.isascii())}]"
    )


def number(text: str) -> Fraction:
    """The value of digits or of an English or Chinese number: 二十, 一百零五, or digit by digit. Raises
    ValueError when it is none."""
    text = text.strip()
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
        return Fraction(text)
    if text == "半":
        return HALF
    english = table("english.numbers")
    parts = re.split(r"[\s-]+", text)
    if all(part in english for part in parts):
        tens, *ones = (english[part] for part in parts)
        if len(ones) > 1 or (ones and not (tens >= 20 and ones[0] < 10)):
            raise ValueError(text)
        return Fraction(tens + sum(ones))
    digits = table("chinese.digits")
    if text and all(c in digits for c in text):
        if len(text) > 1 and text[0] not in "零〇" and len(text) != 4:
            raise ValueError(text)
        return Fraction("".join(str(digits[c]) for c in text))
    match = re.fullmatch(r"(?:(.)百)?[零〇]?(?:(.?)(十))?(.?)", text)
    if not text or not match or not all(c in digits for c in match.group(1, 2, 4) if c):
        raise ValueError(text)
    hundred, ten, has_ten, one = match.groups()
    return Fraction(
        100 * digits.get(hundred, 0)
        + (10 * digits.get(ten, 1) if has_ten else 0)
        + digits.get(one, 0)
    )


def whole(text: str) -> int:
    """As `number`, for a value that has no fraction. Raises ValueError."""
    value = number(text)
    if value.denominator != 1:
        raise ValueError(text)
    return int(value)


class Text:
    """`plain` is `written` in compatibility form (NFKC) and lower case, character by character,
    with runs of three and more blanks made short: a run with an empty line in it is two line
    ends."""

    def __init__(self, written: str):
        self.written = written
        forms = (
            ("'" if char in "’‘" else unicodedata.normalize("NFKC", char).lower())
            for char in written
        )
        parts = list(written.lower() if written.isascii() else forms)
        plain = "".join(parts)
        at = 0
        origin = [place for place, part in enumerate(parts) for _ in part]
        self.plain = ""
        # The place in `written` of each character of `plain`
        self._origin: list[int] = []
        for blank in _LONG_BLANKS.finditer(plain):
            if blank[0].count("\n") > 1:
                short = "\n\n"
            elif "\n" in blank[0]:
                short = "\n"
            else:
                short = " "
            self.plain += plain[at : blank.start()] + short
            self._origin += origin[at : blank.start() + len(short)]
            at = blank.end()
        self.plain += plain[at:]
        self._origin += origin[at:]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where plain[start:end] stands in `written`; one character at least."""
        return self._origin[start], self._origin[end - 1] + 1


def scan(plain: str) -> list[Lexeme]:
    """The time words of `plain` (see Text) in order, not overlapping. Words such as "tonight" give
    two tokens with one place."""
    (by_lead, starts), found, at = shapes(), [], 0
    for start in starts.finditer(plain):
        if start.start() < at:
            continue
        lead = start[0]
        for kind, pattern in by_lead.get("0" if lead.isdigit() else lead, ()):
            match = compiled(pattern).match(plain, start.start())
            if not match or not match[0]:
                continue
            first, last = match.span()
            try:
                values = _READERS[kind](match, plain[first - 1 : first] if first > at else "")
            except ValueError:
                continue
            if values:
                at = last
                last, first = first + len(match[0].rstrip()), last - len(match[0].lstrip())
                found += [
                    Lexeme(name.removesuffix("?"), each, first, last, name[-1] == "?")
                    for name, each in values
                ]
                break
    return found


_Values = list[tuple[str, Any]]
"""Kinds and values of the tokens of a match; empty when a closer look says it is no time. A kind
with `?` is weak.
"""
_Reader = Callable[[re.Match[str], str], _Values]
# A time word with a value that does not exist, such as 25:00
_WRONG: _Values = [("wrong", None)]
_READERS: dict[str, _Reader] = {
    "vague": lambda match, before: [("vague", None)],
    "repeat_yearly": lambda match, before: [("repeat", Repetition("year"))],
    "day_part": lambda match, before: [
        *zip(("day", "part"), _named(match, "day_parts"), strict=True)
    ],
    "weekend": lambda match, before: [
        ("weekend", (_which(match["which"]), match["which"] == "next"))
    ],
}


def _reads(*kinds: str) -> Callable[[_Reader], _Reader]:
    """Makes a function the reader of these shapes. It takes the match and the character before it
    ("" after a token), and may raise ValueError for no time."""
    return lambda reader: _READERS.update(dict.fromkeys(kinds, reader)) or reader


def _named(match: re.Match[str], name: str) -> Any:
    """The value of the matched `words` or `zwords` in the table `name` of their language."""
    if match["words"]:
        return table(f"english.{name}")[" ".join(match["words"].split())]
    return table(f"chinese.{name}")[match["zwords"]]


@_reads("instant")
def _instant(match: re.Match[str], before: str) -> _Values:
    offset = (match["offset"] or "").upper()
    try:
        return [
            (
                "instant",
                datetime.fromisoformat(
                    f"{match['date']}T{match['clock'] or match['local']}{offset}"
                ),
            )
        ]
    except ValueError:
        return _WRONG


_DAYS_OF = {"day": 1, "week": 7, "fortnight": 14}
_SEPARATOR = re.compile(r"\s*(?:,\s*)?(?:and\s+|[零又])?\s*")


@_reads("delay", "offset")
def _distance(match: re.Match[str], before: str) -> _Values:
    """Its amount is a sum such as "an hour and a half" or 两个半小时."""
    said = match.groupdict()
    if "over" in said and not (said["over"] or said["after"] or said["ago"]):
        return []
    text, halves = re.subn(r"(?<=[a-z])\s+and\s+a\s+half$", "", match["amount"].strip())
    text = re.sub(r"^half\s+(?:of\s+)?an?\s+", "0.5 ", text)
    text = re.sub(r"^(?:a\s+)?quarter\s+of\s+an\s+hour", "15 minutes", text)
    months = Fraction()
    days = Fraction()
    seconds = Fraction()
    at = 0
    while at < len(text):
        between = _SEPARATOR.match(text, at)
        piece = compiled("<piece>").match(text, between.end() if between else at)
        if not piece or piece.end() == at:
            raise ValueError(text)
        at = piece.end()
        if piece["half"]:
            count = HALF
        else:
            count = number(piece["count"] or "")
        count += HALF * (bool(piece["plus"] or piece["more"]) + bool(at == len(text) and halves))
        unit = units()[piece["unit"]]
        if unit in UNIT_SECONDS:
            seconds += count * UNIT_SECONDS[unit]
        # The rest of a day is elapsed time
        elif unit in _DAYS_OF:
            days += count * _DAYS_OF[unit]
            seconds = seconds + days % 1 * 86400
            days = days - days % 1
        # Half a month is 15 days
        else:
            months += count * (12 if unit == "year" else 1)
            if months.denominator == 2:
                months = months - HALF
                days = days + 15
    if months.denominator != 1 or seconds.denominator != 1:
        raise ValueError(text)
    if said.get("ago") or said.get("way") == "before":
        sign = -1
    else:
        sign = 1
    amount = Delay(*(sign * int(each) for each in (months, days, seconds)))
    if "way" in said:
        return [("offset", amount)]
    if any(amount):
        return [("delay", amount)]
    return _WRONG


_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}


@_reads("nth_weekday")
def _nth_weekday(match: re.Match[str], before: str) -> _Values:
    said = {key.rstrip("234"): value for key, value in match.groupdict().items() if value}
    if said["nth"] in _NTH:
        nth = _NTH[said["nth"]]
    else:
        nth = int(said["nth"][0])
    day = table("english.weekdays")[said["day"]]
    if said.get("every"):
        return [("repeat", Repetition("month", _interval(match), (day,), nth=nth))]
    month = table("english.months").get(said.get("month"))
    year = said.get("y")
    months = _which(said.get("which")) or 0
    return [("nth_weekday", NthWeekday(nth, day, month, int(year) if year else None, months))]


@_reads("nth_weekday_zh")
def _nth_weekday_zh(match: re.Match[str], before: str) -> _Values:
    nth = -1 if match["last"] else whole(match["nth"])
    day = table("chinese.weekdays")[match["day"]]
    if match["every"]:
        return [("repeat", Repetition("month", _interval(match), (day,), nth=nth))]
    month = None if match["m"] is None else whole(match["m"])
    is_wrong = month is not None and not 1 <= month <= 12
    if is_wrong:
        return _WRONG
    return [("nth_weekday", NthWeekday(nth, day, month, None, _which(match["which"]) or 0))]


@_reads("date")
def _date(match: re.Match[str], before: str) -> _Values:
    said = match.groupdict()
    year = whole(said["y"]) if said["y"] else None
    if "m" in said:
        month = whole(said["m"])
    else:
        month = table("english.months")[said["month"]]
    edge = said.get("edge")
    if edge:
        if 1 <= month <= 12:
            return [("month_edge", (year, month, edge != "初"))]
        return _WRONG
    return [("date", ((year, month, whole(said["d"])),))]


@_reads("date_slash")
def _date_slash(match: re.Match[str], before: str) -> _Values:
    first = int(match["a"])
    second = int(match["b"])
    year = match["y"]
    if (first, second) == (24, 7) or not (0 < first < 32 and 0 < second < 32):
        if year and year > "1900":
            return _WRONG
        return []
    pairs = dict.fromkeys([(first, second), (second, first)])
    dates = tuple((int(year) if year else None, month, day) for month, day in pairs if month <= 12)
    if dates:
        return [("date", dates)]
    return _WRONG


_AFTER_MONTHDAY = re.compile(
    r"\n|\s+(?:[0-9]|noon|midnight)|\s*[^\sa-z]|\s*(?:$|[.,;:!?)\]]"
    r"|(?:to|and|or|for|is|we|i|please|of|at|on|by|before|in|every|each|next|this)\b)"
)


@_reads("monthday")
def _monthday(match: re.Match[str], before: str) -> _Values:
    """ "the 3rd" is a day when it follows "on" or "by", or when no name follows it ("the 3rd
    rock").
    """
    day = whole(match["d"])
    is_english = "sure" in match.groupdict()
    if is_english and not (
        match["sure"] or _AFTER_MONTHDAY.match(match.string[match.end() : match.end() + 20])
    ):
        return []
    if 1 <= day <= 31:
        return [("monthday", day)]
    if is_english:
        return _WRONG
    return []


_RELATIVE = {"this": 0, "next": 1, "last": -1}
_YEARS = {None: 0, "今": 0, "明": 1, "后": 2, "去": -1}


def _which(spelled: str | None) -> int | None:
    """How many calendar weeks or months on; None when nothing is said."""
    spelled = (spelled or "").strip()
    if not spelled or spelled.endswith("the") or spelled == "coming":
        return None
    return _RELATIVE.get(spelled, spelled.count("下") - spelled.count("上"))


@_reads("edge", "edge_zh")
def _edge(match: re.Match[str], before: str) -> _Values:
    said = match.groupdict()
    is_last = bool(said.get("late")) or (said.get("edge") or "").startswith(("end", "last"))
    month = said.get("month")
    if month:
        return [("month_edge", (None, table("english.months")[month], is_last))]
    if "edge" in said:
        return [("edge", (match["late"] or match["unit"], _which(match["which"]) or 0, is_last))]
    unit = "month" if "月" in match[0] else "year"
    is_last = not (match["start"] or match["ystart"])
    if unit == "month":
        offset = _which(match["which"])
    else:
        offset = _YEARS[match["year"]]
    return [("edge", (unit, offset or 0, is_last))]


@_reads("weekday")
def _weekday(match: re.Match[str], before: str) -> _Values:
    day = match["day"]
    which = _which(match["which"])
    chinese = table("chinese.weekdays")
    if day in chinese:
        is_count = not match["which"] and before and before in "一二两三四五六七八九十几0123456789"
        if is_count:
            return []
        return [("weekday", (which, chinese[day], False))]
    if day in ("sat", "sun") and which != 1:
        kind = "weekday?"
    else:
        kind = "weekday"
    return [(kind, (which, table("english.weekdays")[day], which == 1))]


@_reads("day")
def _day(match: re.Match[str], before: str) -> _Values:
    is_part_of_word = match["zwords"] == "后天" and before and before in "之以今"
    if is_part_of_word:
        return []
    return [("day", _named(match, "days"))]


@_reads("part")
def _part(match: re.Match[str], before: str) -> _Values:
    part = _named(match, "parts")
    return [("part" if part == "noon" else "part?", part)]


@_reads("span")
def _span(match: re.Match[str], before: str) -> _Values:
    said = match.groupdict()
    if "year" in said and before == "一":
        return []
    if said.get("year"):
        offset = _YEARS[said["year"]]
    else:
        offset = _which(said["which"]) or 0
    return [("span" if offset else "span?", (units().get(said["unit"], "year"), offset))]


_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}


@_reads("clock")
def _clock(match: re.Match[str], before: str) -> _Values:
    has = match.groupdict().get
    if has("eod"):
        return [("clock", TimeOfDay(18, form="eod"))]
    word = has("word")
    if word:
        return [
            (
                "clock",
                TimeOfDay(0, form="midnight") if word in ("midnight", "午夜") else TimeOfDay(12),
            )
        ]
    # A number and 点 after another character
    if "quarters" in match.groupdict() and before:
        # 一点: only at the beginning of a clause and after 在, 到, 约; 一时 never
        said = match[0].strip()
        # Not after 第 and 早
        is_hour = match["h"].isdigit() or before not in table("chinese.little")
        if said == "一点":
            is_hour = not "\u4e00" <= before <= "\u9fff" or before in "在到约于"
        if said == "一时" or not is_hour:
            return []
    hour = whole(match["h"])
    minute = whole(has("min") or has("bare") or has("spelled") or "0")
    if has("past"):
        minute = _MINUTES[match["past"]]
    elif has("to"):
        hour = (hour - 1) or 12
        minute = 60 - _MINUTES[match["to"]]
    elif has("thirty") or has("quarters"):
        minute = 15 * whole(has("quarters") or "2")
    half = has("half")
    if half:
        if not (1 <= hour <= 12 and minute < 60):
            return _WRONG
        # Of a range such as 11-1pm the first hour may lie in the other half, and so does a quarter
        # to 12.
        is_before = has("to") and hour == 11
        is_afternoon = (half == "p") != bool(
            is_before or (has("until") and hour % 12 > int(match["until"]) % 12)
        )
        return [("clock", TimeOfDay(hour % 12 + (12 if is_afternoon else 0), minute))]
    soft = has("soft") not in (None, "at")
    second = int(has("s") or 0)
    if soft and not 1 <= hour <= 23:
        return []
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second)):
        return _WRONG
    if not 1 <= hour <= 12:
        form = "fixed"
    elif has("min") and "quarters" not in match.groupdict():
        form = "colon"
    else:
        form = "bare"
    return [("clock?" if soft else "clock", TimeOfDay(hour, minute, second, form))]


_WORKDAYS = (0, 1, 2, 3, 4)


def _interval(match: re.Match[str]) -> Fraction:
    """How many units lie between two times: every other 2, every N N, 每隔一 2."""
    said = match.groupdict()
    gap = (said.get("gap") or "").split()
    every = number(said.get("count") or "1")
    if not gap or gap[0] == "week":
        return every
    if gap[0] == "隔":
        return every + (every == 1)
    if gap[0] in ("other", "second"):
        return Fraction(2)
    return number(" ".join(word for word in gap if word not in ("weeks", "week", "on")))


def _weekly(match: re.Match[str], days: list[int], is_range: bool) -> _Values:
    if len(days) >= 2 and is_range:
        days = [*days, *((days[0] + step) % 7 for step in range((days[1] - days[0]) % 7))]
    return [("repeat", Repetition("week", _interval(match), tuple(sorted(set(days)))))]


@_reads("repeat_days")
def _repeat_days(match: re.Match[str], before: str) -> _Values:
    names = table("english.weekdays")
    words = re.findall(r"[a-z]+", match["days"])
    known = (names.get(word, names.get(word.removesuffix("s"))) for word in words)
    is_range = "-" in match["days"] or not {"to", "through"}.isdisjoint(words)
    return _weekly(match, [day for day in known if day is not None], is_range)


@_reads("repeat_zh_week")
def _repeat_zh_week(match: re.Match[str], before: str) -> _Values:
    if match["weekend"]:
        return _weekly(match, [5], False)
    names = table("chinese.weekdays")
    spelled = re.sub("周|星期|礼拜", "", match["days"])
    return _weekly(
        match, [names[c] for c in spelled if c in names], any(c in spelled for c in "至到-")
    )


@_reads("repeat_monthly")
def _repeat_monthly(match: re.Match[str], before: str) -> _Values:
    if match["last"] or match.groupdict().get("first"):
        days = [-1 if match["last"] else 1]
    else:
        days = sorted(
            {whole(each) for each in re.findall(r"[0-9零〇一二两三四五六七八九十]+", match["list"])}
        )
    known = all(1 <= day <= 31 or day == -1 for day in days)
    is_chinese = "first" in match.groupdict()
    # An English interval that is no number makes it no time
    if not known and (is_chinese or _interval(match) >= 0):
        return _WRONG
    return [("repeat", Repetition("month", _interval(match), monthdays=tuple(days)))]


@_reads("repeat_unit")
def _repeat_unit(match: re.Match[str], before: str) -> _Values:
    adverb = match.groupdict().get("adverb")
    if adverb:
        return [("repeat", Repetition(table("english.adverbs")[adverb]))]
    unit = match["unit"]
    interval = _interval(match)
    parts = table("english.parts")
    if unit in parts:
        return [("repeat", Repetition("day", interval)), ("part", parts[unit])]
    if unit.startswith(("weekday", "work", "business")):
        if interval == 1:
            return [("repeat", Repetition("week", interval, _WORKDAYS))]
        return []
    if unit == "weekend":
        repetition = Repetition("week", interval, (5,))
    elif unit.startswith("half"):
        repetition = Repetition("minute", 30 * interval)
    elif units().get(unit) == "fortnight":
        repetition = Repetition("week", 2 * interval)
    else:
        # "second" alone is no unit of an amount
        repetition = Repetition(units().get(unit, unit), interval)
    return [("repeat", repetition)]


@_reads("repeat_zh_unit")
def _repeat_zh_unit(match: re.Match[str], before: str) -> _Values:
    if match["year_end"]:
        return [("repeat", Repetition("year", month=12, monthdays=(31,)))]
    if match["alternate"] or match["daily"]:
        return [("repeat", Repetition("day", Fraction(2 if match["alternate"] else 1)))]
    unit = match["unit"]
    interval = _interval(match)
    if unit == "工作日":
        if interval == 1:
            return [("repeat", Repetition("week", interval, _WORKDAYS))]
        return []
    if unit in "早晚":
        return [
            ("repeat", Repetition("day", interval)),
            ("part", "morning" if unit == "早" else "night"),
        ]
    return [("repeat", Repetition(units()[unit], interval))]
