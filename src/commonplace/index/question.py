"""A question as it is asked of the index: its informative words, the days it names, whether it asks when."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, partial

from commonplace.text.tokens import is_cjk, stop_words, tokens, words

MOST_WORDS = 32
"""More words than this are reduced to the rarest."""

_LONG, _LONG_QUESTION = 40, 30
_MARK = re.compile(r"[?？]\W*$")
_PARTICLE = re.compile(r"(?:[吗呢嗎]|(?:です|ます|した|せん|だろう|でしょう)か)\W*$")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_ASKING = (
    "what", "when", "where", "who", "whom", "whose", "which", "why", "how", "did", "does", "do", "is", "are", "was",
    "were", "has", "have", "had", "can", "could", "will", "would", "should",
)  # fmt: skip
_START = re.compile(rf"\b(?:{'|'.join(word.title() for word in _ASKING)})\b")
_ASIAN = re.compile(
    "什么|怎么|怎样|如何|为什么|哪|多少|几[个点号月岁次时位]|多[大久长远]|谁|啥|咋|何时|何处|是否|有没有"
    "|什麼|怎麼|為什麼|誰|なに|何|いつ|どこ|だれ|なぜ|どう|どの|どれ|どちら|いくつ|いくら|누구|언제|어디|무엇|어떻게"
)
_WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow long\b"
    "|什么时候|何时|哪天|哪年|哪一|几[点号月]|多久|いつ|何時|언제",
    re.I,
)
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_NAME = "|".join([*_MONTHS, *(name[:3] for name in _MONTHS if name != "may"), "sept"])
_YEAR = re.compile(r"(?<![\da-z-])((?:19|20)\d\d)(?![\da-z])")
_BEFORE_MAY = re.compile(r"\b(?:in|of|since|during|until|last|this)\s+$")


@dataclass(frozen=True, slots=True)
class Period:
    """Days a question names. `first` to `last` (YYYY-MM-DD, inclusive); without a year `first` and `last` are
    MM-DD. `weight`: the narrower, the more it tells."""

    first: str
    last: str
    weight: float

    def share(self, day: str) -> float:
        """What a piece of that day gets: the weight, or nothing."""
        return self.weight if self.first <= day[-len(self.first) :] <= self.last else 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `words`: lower case, each once, CJK runs as pairs. `when`: a time is asked for. `only_days`:
    nothing but days is named."""

    words: tuple[str, ...]
    periods: tuple[Period, ...]
    when: bool
    only_days: bool = False


def read(text: str, today: date | None = None) -> Question:
    """The question in `text`; of a long one, what is asked at its end counts. `today` is what "last week" counts
    from; without it only written dates are understood."""
    asked = focus(text)
    named = periods(asked, today)
    found: dict[str, None] = {}
    for word in words(asked):
        if is_cjk(word) and len(word) > 2:
            found.update(dict.fromkeys(word[at : at + 2] for at in range(len(word) - 1)))
        else:
            found[word] = None
    only = bool(named) and stop_words().issuperset(words(_RELATIVE.sub(" ", asked.lower())))
    return Question(tuple(found), tuple(named), _WHEN.search(asked) is not None, only)


def is_question(text: str) -> bool:
    """Whether `text` is a question in plain language, by its end or its first word."""
    stripped = text.strip()
    if _MARK.search(stripped[-8:]) or _is_asian(stripped):
        return True
    first = tokens(stripped[:40])[:1]
    return bool(first) and first[0].lower() in _ASKING


def is_short_question(text: str) -> bool:
    """Whether `text` is a question however few words it has: by a question mark or a word that asks in Chinese,
    Japanese or Korean. An English word in front does not tell: `will smith` are two words."""
    return _MARK.search(text.rstrip()[-8:]) is not None or _is_asian(text.strip())


def is_outright(text: str) -> bool:
    """Whether `text` is certainly a question in Chinese, Japanese or Korean: it has both the word that asks and the
    end of a question. Without the end it may be the part of a sentence somebody looks for."""
    end = text.strip()
    return _PARTICLE.search(end[-8:]) is not None or bool(_MARK.search(end[-8:]) and _ASIAN.search(end[-40:]))


def _is_asian(stripped: str) -> bool:
    return bool(_PARTICLE.search(stripped[-8:]) or _ASIAN.search(stripped[-40:]))


def focus(text: str) -> str:
    """Of a long text the question at its end, with the sentence before when it says little; else all of it."""
    if len(text) < 200 and len(tokens(text)) <= _LONG:
        return text
    sentences = [match.group() for match in _SENTENCE.finditer(text) if match.group().strip()]
    asking = [at for at, one in enumerate(sentences) if one.rstrip().endswith(("?", "？"))]
    if not asking:
        return text
    at = asking[-1]
    found = sentences[at]
    if len(tokens(found)) > _LONG_QUESTION:
        starts = [match.start() for match in _START.finditer(found)]
        found = found[starts[-1] :] if starts and len(words(found[starts[-1] :])) > 1 else found
    while at and len(words(found)) < 2:
        at -= 1
        found = sentences[at] + found
    return found


def periods(text: str, today: date | None = None) -> list[Period]:
    """The days `text` names: dates, months, years, and days relative to `today`."""
    low = text.lower()
    found = [one for match in _dates().finditer(low) for one in _written(match)]
    for year in _YEAR.findall(low):
        found.append(Period(f"{year}-01-01", f"{year}-12-31", 0.3))
    if today is not None:
        found += [Period(first.isoformat(), last.isoformat(), 1.3) for first, last in _relative(low, today)]
    return found


@cache
def _dates() -> re.Pattern[str]:
    return re.compile(
        r"(?<!\d)(?P<y1>(?:19|20)\d\d)\s*[-/年]\s*(?P<m1>\d{1,2})(?:\s*[-/月]\s*(?P<d1>\d{1,2}))?(?!\d)"
        r"|(?<!\d)(?P<m2>\d{1,2})月(?:(?P<d2>\d{1,2})[日号])?"
        rf"|(?:\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<name>{_NAME})\b\.?"
        r"(?:\s+(?P<d4>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<y3>(?:19|20)\d\d))?"
    )


def _written(match: re.Match[str]) -> list[Period]:
    """A month, and the day in it. "may" alone is a verb more often than a month, unless a word before tells."""
    name, year = match["name"], match["y1"] or match["y3"]
    day = match["d1"] or match["d2"] or match["d3"] or match["d4"]
    if name == "may" and not (day or year or _BEFORE_MAY.search(match.string, 0, match.start())):
        return []
    month = int(match["m1"] or match["m2"]) if not name else _month(name)
    if not 1 <= month <= 12:
        return []
    lead = f"{year}-{month:02}" if year else f"{month:02}"
    found = [Period(f"{lead}-01", f"{lead}-31", 1.0)]
    if day and 1 <= int(day) <= 31:
        found.append(Period(f"{lead}-{int(day):02}", f"{lead}-{int(day):02}", 1.0))
    return found


def _month(name: str) -> int:
    return next(at for at, one in enumerate(_MONTHS, 1) if one.startswith(name[:3]))


def _relative(low: str, today: date) -> list[tuple[date, date]]:
    found = []
    ago = "ago" in low or "前" in low  # asking for the names alone is much faster
    for match in (_RELATIVE if ago else _NAMES).finditer(low):
        if ago and match["count"]:
            count = int(match["count"]) if match["count"].isdecimal() else _NUMBERS[match["count"]]
            days = count * _UNITS[match["unit"]]
            if days > 40_000:
                continue
            slack = timedelta(days=_UNITS[match["unit"]] // 2)
            middle = today - timedelta(days=days)
            found.append((middle - slack, middle + slack))
        else:
            found.append(_NAMED[next(key for key in _NAMED if match["named"] in key)](today))
    return found


def _week(today: date, back: int) -> tuple[date, date]:
    first = today - timedelta(days=today.weekday() + 7 * back)
    return first, first + timedelta(days=6)


def _whole_month(today: date, back: int) -> tuple[date, date]:
    first = today.replace(day=1)
    for _ in range(back):
        first = (first - timedelta(days=1)).replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _whole_year(today: date, back: int) -> tuple[date, date]:
    return date(today.year - back, 1, 1), date(today.year - back, 12, 31)


def _one_day(today: date, back: int) -> tuple[date, date]:
    return (today - timedelta(days=back),) * 2


_NAMED: dict[tuple[str, ...], Callable[[date], tuple[date, date]]] = {
    ("today", "tonight", "this morning", "今天", "今日"): partial(_one_day, back=0),
    ("yesterday", "last night", "昨天", "昨晚", "昨日"): partial(_one_day, back=1),
    ("the day before yesterday", "前天"): partial(_one_day, back=2),
    ("this week", "本周", "这周", "这个星期", "今週"): partial(_week, back=0),
    ("last week", "上周", "上个星期", "上星期", "先週"): partial(_week, back=1),
    ("this month", "本月", "这个月", "今月"): partial(_whole_month, back=0),
    ("last month", "上个月", "上月", "先月"): partial(_whole_month, back=1),
    ("this year", "今年"): partial(_whole_year, back=0),
    ("last year", "去年", "昨年"): partial(_whole_year, back=1),
    ("前年",): partial(_whole_year, back=2),
}
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365, "天": 1, "日": 1, "周": 7, "个星期": 7, "个月": 30, "年": 365}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "一": 1, "两": 2, "二": 2,
            "三": 3, "四": 4, "五": 5, "六": 6}  # fmt: skip


def _one_of(some: Iterable[str]) -> str:
    return "|".join(sorted(some, key=len, reverse=True))


_NAMES = re.compile(rf"(?P<named>{_one_of(name for key in _NAMED for name in key)})")
_RELATIVE = re.compile(
    rf"{_NAMES.pattern}|(?:\b|(?<![\d一两二三四五六]))(?P<count>\d{{1,4}}|{_one_of(_NUMBERS)})\s*"
    rf"(?P<unit>{_one_of(_UNITS)})(?:s?\s+ago\b|前)"
)
