"""From a matched shape to its tokens: what each spelling means, without a clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from functools import cache

from commonplace.note.timephrase.tokens import Clock, Delay, Draft, Token, place
from commonplace.note.timephrase.words import HALF, either, number, whole, words

Found = list[tuple[str, object]]
"""Kinds and values; an empty list means that the match is no time word after all."""

WRONG: Found = [("wrong", None)]
"""A time word with a value that does not exist, such as 25:00."""


def tokens_of(kind: str, match: re.Match[str], previous: int) -> list[Token]:
    """The tokens of a match; none when a closer look says it is no time. `previous` is where the token
    before it ends."""
    try:
        found = _READERS[kind](match, previous)
    except ValueError:
        return []
    start, end = place(match)
    return [Token(kind.removesuffix("?"), value, start, end, kind.endswith("?")) for kind, value in found]


def _instant(match: re.Match[str], previous: int) -> Found:
    offset = (match["offset"] or "").upper()
    try:
        return [("instant", datetime.fromisoformat(f"{match['date']}T{match['clock'] or match['local']}{offset}"))]
    except ValueError:
        return WRONG


def _vague(match: re.Match[str], previous: int) -> Found:
    return [("vague", None)]


@cache
def _unit_names() -> dict[str, str]:
    """Every spelling of a unit of both languages."""
    english, chinese = words()["english"], words()["chinese"]
    names = dict(english["short"])
    for table in (english["units"], chinese["units"]):
        names.update({name: unit for unit, spelled in table.items() for name in spelled})
    return names


_SECONDS = {"second": 1, "minute": 60, "quarter": 900, "hour": 3600, "day": 86400}


@cache
def _piece() -> re.Pattern[str]:
    """One number and unit of an amount."""
    return re.compile(
        r"(?P<half>半个?)?(?:(?P<count>[0-9]+(?:\.[0-9]+)?|[a-z]+(?:[\s-][a-z]+)??|[零〇一二两三四五六七八九十百]+))?"
        rf"(?P<plus>\s*个?半|\s+and\s+a\s+half)?[\s-]*个?(?P<unit>{either(_unit_names())})(?![a-z])(?P<more>半)?"
    )


_SEPARATOR = re.compile(r"\s*(?:,\s*)?(?:and\s+|[零又])?\s*")


def _amount(text: str) -> Delay:
    """The sum of an amount such as "an hour and a half" or 两个半小时. Raises ValueError."""
    text = text.strip()
    text, halves = re.subn(r"(?<=[a-z])\s+and\s+a\s+half$", "", text)
    text = re.sub(r"^half\s+(?:of\s+)?an?\s+", "0.5 ", text)
    text = re.sub(r"^(?:a\s+)?quarter\s+of\s+an\s+hour", "15 minutes", text)
    months, days, seconds, at = Fraction(), Fraction(), Fraction(), 0
    while at < len(text):
        piece = _piece().match(text, _SEPARATOR.match(text, at).end())  # type: ignore[union-attr]
        if not piece or piece.end() == at:
            raise ValueError(text)
        at = piece.end()
        unit = _unit_names()[piece["unit"]]
        count = HALF if piece["half"] else number(piece["count"] or "")
        count += HALF if piece["plus"] or piece["more"] else 0
        if at == len(text) and halves:
            count += HALF
        months, days, seconds = _added(months, days, seconds, count, unit)
    if months.denominator != 1 or seconds.denominator != 1:
        raise ValueError(text)
    return Delay(int(months), int(days), int(seconds))


def _added(
    months: Fraction, days: Fraction, seconds: Fraction, count: Fraction, unit: str
) -> tuple[Fraction, Fraction, Fraction]:
    """A count of a unit more. Half a month is 15 days, the rest of a day is elapsed time."""
    if unit in ("month", "year"):
        months += count * (12 if unit == "year" else 1)
        if months.denominator == 2:
            months, days = months - HALF, days + 15
    elif unit in ("day", "week"):
        days += count * (7 if unit == "week" else 1)
        seconds += (days % 1) * _SECONDS["day"]
        days -= days % 1
    else:
        seconds += count * _SECONDS[unit]
    return months, days, seconds


def _delay(match: re.Match[str], previous: int) -> Found:
    delay = _amount(match["amount"])
    if match.groupdict().get("ago"):
        delay = Delay(-delay.months, -delay.days, -delay.seconds)
    return [("delay", delay)] if any(delay) else WRONG


def _delay_zh(match: re.Match[str], previous: int) -> Found:
    if not (match["over"] or match["after"] or match["ago"]):
        return []
    return _delay(match, previous)


def _date_iso(match: re.Match[str], previous: int) -> Found:
    year, month, day = match["y"], match["m"] or match["m2"], match["d"] or match["d2"]
    return [("date", ((int(year), int(month), int(day)),))]


def _date_slash(match: re.Match[str], previous: int) -> Found:
    first, second, year = int(match["a"]), int(match["b"]), match["y"]
    if (first, second) == (24, 7) or not (0 < first < 32 and 0 < second < 32):
        return WRONG if year and year > "1900" else []
    pairs = [(first, second), (second, first)] if first != second else [(first, second)]
    months = [(month, day) for month, day in pairs if month <= 12]
    if not months:
        return WRONG
    return [("date", tuple((int(year) if year else None, month, day) for month, day in months))]


def _date_en(match: re.Match[str], previous: int) -> Found:
    month = words()["english"]["months"][match["month"]]
    return [("date", ((int(match["y"]) if match["y"] else None, month, int(match["d"])),))]


def _date_zh(match: re.Match[str], previous: int) -> Found:
    year = whole(match["y"]) if match["y"] else None
    month = whole(match["m"])
    if match["edge"]:
        last = match["edge"] != "初"
        return [("month_edge", (year, month, last))] if 1 <= month <= 12 else WRONG
    return [("date", ((year, month, whole(match["d"])),))]


def _monthday_zh(match: re.Match[str], previous: int) -> Found:
    day = whole(match["d"])
    return [("monthday", day)] if 1 <= day <= 31 else []


_SENTENCE = re.compile(
    r"\s*(?:$|[.,;:!?)\]]|(?:to|and|or|for|is|we|i|please|of|at|on|by|before|in|every|each|next|this)\b)"
)


def _monthday(match: re.Match[str], previous: int) -> Found:
    """ "the 3rd" is a day when it follows "on" or "by", or when no name follows it ("the 3rd rock")."""
    day, text, end = int(match["d"]), match.string, match.end()
    following = text[end : end + 20]
    known = _SENTENCE.match(following) or re.match(r"\s+(?:[0-9]|noon|midnight)", following) or "\n" in following[:1]
    if not (match["sure"] or known or re.match(r"\s*[^\sa-z]", following)):
        return []
    return [("monthday", day)] if 1 <= day <= 31 else WRONG


_RELATIVE = {"this": 0, "next": 1, "last": -1}


def _which(spelled: str | None) -> int | None:
    """How many calendar weeks or months on; None when nothing is said."""
    spelled = (spelled or "").strip()
    if not spelled or spelled.endswith("the") or spelled == "coming":
        return None
    if spelled in _RELATIVE:
        return _RELATIVE[spelled]
    return spelled.count("下") - spelled.count("上")


def _edge(match: re.Match[str], previous: int) -> Found:
    if match["late"]:
        return [("edge", (match["late"], 0, True))]
    last = match["edge"] in ("end",) or match["edge"].startswith("last")
    if match["month"]:
        return [("month_edge", (None, words()["english"]["months"][match["month"]], last))]
    return [("edge", (match["unit"], _which(match["which"]) or 0, last))]


_YEARS = {"今": 0, "明": 1, "后": 2, "去": -1}


def _edge_zh(match: re.Match[str], previous: int) -> Found:
    if "月" in match[0]:
        return [("edge", ("month", _which(match["which"]) or 0, not match["start"]))]
    return [("edge", ("year", _YEARS[match["year"]] if match["year"] else 0, not match["ystart"]))]


def _weekend(match: re.Match[str], previous: int) -> Found:
    return [("weekend", (_which(match["which"]), match["which"] == "next"))]


def _weekday(match: re.Match[str], previous: int) -> Found:
    day, which = words()["english"]["weekdays"][match["day"]], _which(match["which"])
    lone = match["day"] in ("sat", "sun") and which != 1
    return [("weekday?" if lone else "weekday", (which, day, which == 1))]


def _weekday_zh(match: re.Match[str], previous: int) -> Found:
    if not match["which"] and previous != match.start() and _after(match, "一二两三四五六七八九十几0123456789"):
        return []
    return [("weekday", (_which(match["which"]), words()["chinese"]["weekdays"][match["day"]], False))]


def _after(match: re.Match[str], characters: str) -> bool:
    before = match.string[match.start() - 1 : match.start()]
    return bool(before) and before in characters


def _named(match: re.Match[str], table: str) -> object:
    if match["words"]:
        return words()["english"][table][" ".join(match["words"].split())]
    return words()["chinese"][table][match["zwords"]]


def _day(match: re.Match[str], previous: int) -> Found:
    after = match["zwords"] == "后天" and previous != match.start() and _after(match, "之以今")
    return [] if after else [("day", _named(match, "days"))]


def _day_part(match: re.Match[str], previous: int) -> Found:
    days, part = _named(match, "day_parts")
    return [("day", days), ("part", part)]


def _part(match: re.Match[str], previous: int) -> Found:
    part = _named(match, "parts")
    return [("part" if part == "noon" else "part?", part)]


def _span(match: re.Match[str], previous: int) -> Found:
    offset = _RELATIVE[match["which"]]
    return [("span" if offset else "span?", (match["unit"], offset))]


def _span_zh(match: re.Match[str], previous: int) -> Found:
    if previous != match.start() and _after(match, "一"):
        return []
    if match["year"]:
        unit, offset = "year", _YEARS[match["year"]]
    else:
        unit, offset = "month" if match["unit"] == "月" else "week", _which(match["which"]) or 0
    return [("span" if offset else "span?", (unit, offset))]


_MINUTES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}


def _clock(match: re.Match[str], previous: int) -> Found:
    has = match.groupdict().get
    if has("eod"):
        return [("clock", Clock(18, form="eod"))]
    if has("word"):
        return [("clock", Clock(0, form="midnight") if has("word") == "midnight" else Clock(12))]
    hour, minute = whole(match["h"]), int(has("min") or 0)
    if has("spelled"):
        minute = whole(has("spelled"))
    if has("past"):
        minute = _MINUTES[has("past")]
    elif has("to"):
        hour, minute = (hour - 1) or 12, 60 - _MINUTES[has("to")]
    if has("half"):
        return _halved(hour, minute, has("half"), has("until"))
    soft = has("soft") not in (None, "at")
    if soft and not 1 <= hour <= 23:
        return []
    return _checked(hour, minute, int(has("s") or 0), bool(has("min")), "clock?" if soft else "clock")


def _halved(hour: int, minute: int, half: str, until: str | None) -> Found:
    """An hour with am or pm; of a range such as 11-1pm the first, which may lie in the other half."""
    if not (1 <= hour <= 12 and minute < 60):
        return WRONG
    afternoon = half == "p"
    if until and hour % 12 > int(until) % 12:
        afternoon = not afternoon
    return [("clock", Clock(hour % 12 + (12 if afternoon else 0), minute))]


def _checked(hour: int, minute: int, second: int, colon: bool, kind: str = "clock") -> Found:
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second)):
        return WRONG
    form = "fixed" if not 1 <= hour <= 12 else "colon" if colon else "bare"
    return [(kind, Clock(hour, minute, second, form))]


def _clock_zh(match: re.Match[str], previous: int) -> Found:
    has = match.groupdict().get
    if has("word"):
        return [("clock", Clock(0, form="midnight") if has("word") == "午夜" else Clock(12))]
    hour = whole(match["h"])
    spelled = not match["h"].isdigit()
    if spelled and previous != match.start() and _after(match, "".join(words()["chinese"]["little"])):
        return []
    if match[0].strip() in ("一时", "一点") and previous != match.start() and not _begins(match):
        return []
    minute = 30 if has("half") else 0
    if has("quarter"):
        minute = 15 * whole(has("quarter"))
    elif has("min") or has("bare"):
        minute = whole(has("min") or has("bare"))
    return _checked(hour, minute, 0, colon=False)


def _begins(match: re.Match[str]) -> bool:
    """一点 and 一时 are hours only at the beginning of a clause or after 在, 到, 约."""
    before = match.string[match.start() - 1 : match.start()]
    return match[0].strip() == "一点" and (not before or not "\u4e00" <= before <= "\u9fff" or before in "在到约于")


def _interval(match: re.Match[str]) -> Fraction:
    """How many units lie between two times: every other 2, every N N, 每隔一 2."""
    has = match.groupdict().get
    gap, count = (has("gap") or "").split(), has("count")
    if gap and gap[0] in ("other", "second"):
        return Fraction(2)
    if gap and gap[0] == "隔":
        value = number(count) if count else Fraction(1)
        return value + 1 if value == 1 else value
    if gap and gap[0] not in ("week", "single"):
        return number(" ".join(word for word in gap if word not in ("weeks", "week", "on")))
    return number(count) if count else Fraction(1)


def _repeat_days(match: re.Match[str], previous: int) -> Found:
    names = words()["english"]["weekdays"]
    days = re.findall(r"[a-z]+", match["days"])
    numbers = [names.get(day, names.get(day.removesuffix("s"))) for day in days]
    return [
        (
            "repeat",
            Draft("week", _interval(match), _ranged(days, numbers, ("to", "through"), "-" in match["days"])),
        )
    ]


def _ranged(days: list[str], numbers: list[int | None], between: tuple[str, ...], dashed: bool) -> tuple[int, ...]:
    """Weekdays in order, a range of two filled in."""
    known = [day for day in numbers if day is not None]
    if len(known) >= 2 and (dashed or any(word in days for word in between)):
        first, last = known[0], known[1]
        known += [(first + step) % 7 for step in range((last - first) % 7)]
    return tuple(sorted(set(known)))


def _repeat_monthly(match: re.Match[str], previous: int) -> Found:
    if match["last"]:
        days: tuple[int, ...] = (-1,)
    else:
        days = tuple(sorted({int(day) for day in re.findall("[0-9]+", match["list"])}))
    interval = _interval(match)
    return [("repeat", Draft("month", interval, monthdays=days))] if _monthly(days) else WRONG


def _monthly(days: tuple[int, ...]) -> bool:
    return all(1 <= day <= 31 or day == -1 for day in days)


def _repeat_yearly(match: re.Match[str], previous: int) -> Found:
    return [("repeat", Draft("year"))]


_WORKDAYS = (0, 1, 2, 3, 4)


def _repeat_unit(match: re.Match[str], previous: int) -> Found:
    has = match.groupdict().get
    if has("adverb"):
        return [("repeat", Draft(words()["english"]["adverbs"][match["adverb"]]))]
    unit, interval = match["unit"], _interval(match)
    if unit in words()["english"]["parts"]:
        return [("repeat", Draft("day", interval)), ("part", words()["english"]["parts"][unit])]
    if unit == "weekend":
        return [("repeat", Draft("week", interval, (5,)))]
    if unit.startswith(("weekday", "work", "business")):
        return [("repeat", Draft("week", interval, _WORKDAYS))] if interval == 1 else []
    if unit.startswith("half"):
        return [("repeat", Draft("minute", 30 * interval))]
    return [("repeat", Draft(_unit_names().get(unit, unit), interval))]  # "second" alone is no unit of an amount


def _repeat_zh_week(match: re.Match[str], previous: int) -> Found:
    if match["weekend"]:
        return [("repeat", Draft("week", _interval(match), (5,)))]
    named = words()["chinese"]["weekdays"]
    spelled = re.sub("周|星期|礼拜", "", match["days"])
    numbers = [named[c] for c in spelled if c in named]
    ranged = any(c in spelled for c in "至到-")
    return [("repeat", Draft("week", _interval(match), _ranged([], numbers, (), ranged)))]


def _repeat_zh_month(match: re.Match[str], previous: int) -> Found:
    if match["last"] or match["first"]:
        return [("repeat", Draft("month", _interval(match), monthdays=(-1 if match["last"] else 1,)))]
    parts = re.split(r"[^0-9零〇一二两三四五六七八九十]+", match["list"])
    days = tuple(sorted({whole(part) for part in parts if part}))
    return [("repeat", Draft("month", _interval(match), monthdays=days))] if _monthly(days) else WRONG


def _repeat_zh_unit(match: re.Match[str], previous: int) -> Found:
    if match["year_end"]:
        return [("repeat", Draft("year", month=12, monthdays=(31,)))]
    if match["alternate"] or match["daily"]:
        return [("repeat", Draft("day", Fraction(2 if match["alternate"] else 1)))]
    unit, interval = match["unit"], _interval(match)
    if unit == "工作日":
        return [("repeat", Draft("week", interval, _WORKDAYS))] if interval == 1 else []
    if unit in "早晚":
        return [("repeat", Draft("day", interval)), ("part", "morning" if unit == "早" else "night")]
    return [("repeat", Draft(_unit_names()[unit], interval))]


_READERS: dict[str, Callable[[re.Match[str], int], Found]] = {
    "instant": _instant,
    "vague": _vague,
    "repeat_days": _repeat_days,
    "repeat_monthly": _repeat_monthly,
    "repeat_yearly": _repeat_yearly,
    "repeat_unit": _repeat_unit,
    "repeat_zh_week": _repeat_zh_week,
    "repeat_zh_month": _repeat_zh_month,
    "repeat_zh_unit": _repeat_zh_unit,
    "delay": _delay,
    "delay_zh": _delay_zh,
    "date_iso": _date_iso,
    "date_slash": _date_slash,
    "date_en": _date_en,
    "date_zh": _date_zh,
    "monthday_zh": _monthday_zh,
    "monthday": _monthday,
    "edge": _edge,
    "edge_zh": _edge_zh,
    "weekend": _weekend,
    "weekday": _weekday,
    "weekday_zh": _weekday_zh,
    "day_part": _day_part,
    "day": _day,
    "span": _span,
    "span_zh": _span_zh,
    "clock": _clock,
    "clock_zh": _clock_zh,
    "part": _part,
    "weekend_zh": _weekend,
}
