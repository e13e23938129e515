"""Reading queries: words, phrases and operators as terms (contract 000b, 6); questions as words and
dates.

All text of a user ends up inside quoted FTS5 strings, so no input can act as syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

from memoranda.index.filters import quoted
from memoranda.index.search import weights
from memoranda.text.dialogue import turns_of
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk, pairs, query_text, stop_words, tokens, words
from memoranda.text.unicode import sqlite_text
from memoranda.text.words import compounds, units

MAX_TERMS = 32
"""More terms, or words of a question, are reduced to the informative ones."""

# A phrase in quotes, or a word.
_PIECE = lazy_pattern(r'"([^"]*)"|([^\s"]+)')
# A quote inside a Hebrew abbreviation, as keyboards have it.
_GERSHAYIM = lazy_pattern('(?<=[א-ת])"(?=[א-ת])')
# Operators of FTS5, which count in capitals only.
_OPERATORS = frozenset(("AND", "OR", "NOT"))
# Words of a phrase; a longer quote is pasted text.
_PHRASE_TOKENS = 64
# Characters at the end of a text that show whether it asks.
_PLAIN_TAIL = 400
_PAIR = 2
# How much a run of a script without blanks counts, in words.
_LONG_RUN = 7
# From this many characters on, a run counts for several words, and for two words.
_PAIR_RUN = 4
# Characters of a word; longer ones are data.
_LONGEST_TERM = 400
# Characters of a run without blanks that are looked for as they follow each other: a phrase costs
# time by its length and by how often each of its pairs occurs.
_LONGEST_RUN = 64
# Of up to this many words neighbors are also looked for as one: `time zone` as `timezone`.
_MOST_JOINED = 6
# Characters of a name that is also looked for by its parts.
_LONGEST_COMPOUND = 60


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase to look for.

    phrase: its text for FTS5.
    words: its folded words.
    open: it may match as a prefix.
    single: it is one character of a run, and always a prefix.
    others: phrases that mean the same in another spelling.
    is_bare: it was not in quotes, so its word may be in another form.
    """

    text: str
    phrase: str
    words: tuple[str, ...]
    open: bool
    single: bool = False
    others: tuple[str, ...] = ()
    is_bare: bool = False

    @property
    def whole(self) -> str:
        """The FTS5 string that matches whole words."""
        return quoted(self.phrase) + ("*" if self.single else "")

    @property
    def prefix(self) -> str:
        """The FTS5 string that matches the words and what the last one begins."""
        return quoted(self.phrase) + "*"


@dataclass(frozen=True, slots=True)
class Clause:
    """Terms that must all match, and terms that must not."""

    terms: tuple[Term, ...]
    without: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """Any of the clauses must match. `bare`: words only, no phrase and no operator."""

    clauses: tuple[Clause, ...]
    bare: bool

    @property
    def terms(self) -> list[Term]:
        """The terms of all clauses, each once."""
        all_terms = chain.from_iterable(clause.terms for clause in self.clauses)
        return list(dict.fromkeys(all_terms))


def term(text: str, *, phrase: bool = False) -> Term | None:
    """A piece of query text as a term, None when it contains no word."""
    # Most terms, which need no further look
    if text.isascii() and text.isalpha() and text.islower():
        return Term(text, text, (text,), open=not phrase, is_bare=not phrase)
    phrase_tokens = tokens(text)[:_PHRASE_TOKENS]
    if not phrase_tokens:
        return None
    if len(text) > _LONGEST_RUN and not text.isascii():
        phrase_tokens = [
            token[:_LONGEST_RUN] if is_cjk(token) else token for token in phrase_tokens
        ]
        written = " ".join(phrase_tokens)
    elif len(text) > _LONGEST_TERM:
        written = " ".join(phrase_tokens)
    else:
        written = text
    query_texts, single = query_text(written)
    return Term(
        text.strip(),
        query_texts,
        tuple(phrase_tokens),
        open=not phrase and _may_go_on(phrase_tokens),
        single=single,
        others=() if phrase else _other_spellings(text),
        is_bare=not phrase,
    )


def _may_go_on(words: list[str]) -> bool:
    """Whether the last of these words may be the beginning of a longer one: `1.1` is not `1.10`."""
    last = words[-1]
    if is_cjk(last) or not last[-1].isalnum():
        return False
    return len(words) == 1 or not last.isdigit()


def _other_spellings(text: str) -> tuple[str, ...]:
    """The phrases by which a compound such as `Wi-Fi` or `getUser` is found as well."""
    if len(text) <= _LONGEST_COMPOUND:
        spellings = compounds(text)
    else:
        spellings = []
    if len(spellings) != 1:
        return ()
    return tuple(query_text(form)[0] for form in spellings[0] if form)


def parse(text: str) -> ParsedQuery:
    """The words, phrases and operators of `text`; a lone operator and an odd quote are text."""
    pieces: list[Term | str] = []
    bare = True
    plain = _GERSHAYIM.sub("״", sqlite_text(text).replace("\0", " "))
    for match in _PIECE.finditer(plain):
        if match[2] in _OPERATORS:
            pieces.append(match[2])
            continue
        is_phrase = match[1] is not None
        bare = bare and not is_phrase
        parsed_term = term(match[1] if is_phrase else match[2], phrase=is_phrase)
        if parsed_term:
            pieces.append(parsed_term)
    clauses, has_operators = _clauses(pieces)
    # Without repeated terms, and of a long one the informative terms
    for at, clause in enumerate(clauses):
        terms = list(
            {
                clause_term.phrase.casefold(): clause_term for clause_term in reversed(clause.terms)
            }.values()
        )[::-1]
        if len(terms) > MAX_TERMS:
            informative = set(words(" ".join(clause_term.text for clause_term in terms)))
            rare = [
                clause_term
                for clause_term in terms
                if not clause_term.open or any(word in informative for word in clause_term.words)
            ]
            terms = (rare or terms)[:MAX_TERMS]
        if len(terms) <= _MOST_JOINED:
            terms = _with_neighbors(terms)
        clauses[at] = Clause(tuple(terms), clause.without[:MAX_TERMS])
    return ParsedQuery(tuple(clauses), bare and not has_operators)


def _with_neighbors(terms: list[Term]) -> list[Term]:
    """The terms, each of two words in a row that may be one also found by that."""
    terms_with_neighbors = list(terms)
    for at, (first, second) in enumerate(pairwise(terms)):
        if not (_is_one_word(first) and _is_one_word(second)):
            continue
        joined = first.words[0] + second.words[0]
        for place in (at, at + 1):
            terms_with_neighbors[place] = replace(
                terms_with_neighbors[place], others=(*terms_with_neighbors[place].others, joined)
            )
    return terms_with_neighbors


def _is_one_word(query_term: Term) -> bool:
    return (
        query_term.is_bare
        and len(query_term.words) == 1
        and query_term.words[0].isascii()
        and query_term.text.isalpha()
    )


def is_plain(text: str) -> bool:
    """Whether `text` is bare words with three informative ones near its end: told without parsing a
    long text.
    """
    if '"' in text or "\0" in text or not _OPERATORS.isdisjoint(text.split()):
        return False
    end = words(text[-_PLAIN_TAIL:].partition(" ")[2] if len(text) > _PLAIN_TAIL else text)
    return sum(not is_cjk(word) for word in end if word not in stop_words()) > 2


def _clauses(pieces: list[Term | str]) -> tuple[list[Clause], bool]:
    """Terms grouped by OR, and whether there is an operator. NOT excludes the next term, AND
    changes nothing.
    """
    clauses: list[Clause] = []
    terms: list[Term] = []
    without: list[Term] = []
    operators = False
    position = 0
    while position < len(pieces):
        piece = pieces[position]
        after, later = (*pieces[position + 1 : position + 3], None, None)[:2]
        joins = bool(terms or without) and (
            isinstance(after, Term) or (after == "NOT" and isinstance(later, Term))
        )
        position += 1
        if isinstance(piece, Term):
            terms.append(piece)
        elif piece == "NOT" and isinstance(after, Term):
            without.append(after)
            operators = True
            position = position + 1
        elif piece == "OR" and joins:
            clauses.append(Clause(tuple(terms), tuple(without)))
            terms = []
            without = []
            operators = True
        elif piece == "AND" and joins:
            operators = True
        else:
            lone = term(piece.lower())
            assert lone is not None
            terms.append(lone)
    if terms or without:
        clauses.append(Clause(tuple(terms), tuple(without)))
    return clauses[:MAX_TERMS], operators


def relaxable(query: ParsedQuery, *, quotes: bool = False, least: int = 3) -> bool:
    """Whether a query without hits may be repeated with OR: it has `least` or more bare words, a
    long run counting for several. With `quotes` a phrase may be among them."""
    if len(query.clauses) != 1 or query.clauses[0].without or not (query.bare or quotes):
        return False
    terms = [bare_term for bare_term in query.clauses[0].terms if bare_term.is_bare]
    if least <= _PAIR:
        return sum(_weight(bare_term.words[-1], _PAIR_RUN) for bare_term in terms) >= least
    all_words = chain.from_iterable(term.words for term in terms)
    return sum(_weight(word, _LONG_RUN) for word in all_words) >= least


def _weight(word: str, shortest: int) -> int:
    """How many words a word counts for: one, or half its characters for a Chinese or Japanese run
    that is not shorter than `shortest`.
    """
    if not is_cjk(word):
        return 1
    length = len(units(word))
    if length >= shortest:
        return length // 2
    return 1


def says_much(query: ParsedQuery) -> bool:
    """Whether notes that hold some of the words are worth showing beside those that hold all: a
    long CJK run, or three informative words. An address (`city/tram`) is one piece and names one
    thing."""
    if any(is_cjk(query_term.words[-1]) for query_term in query.terms):
        return True
    if len(query.terms) < 2:
        return False
    all_words = chain.from_iterable(term.words for term in query.terms)
    return sum(word not in stop_words() for word in all_words) > 2


# In a text with so many times the words of its questions, these count more than the rest.
_OUTWEIGHED = 5
# In a text so many times as long as its last question, the rest is pasted.
_BURIED = 30
# Words of a question from which its telling part is looked for.
_LONG_QUESTION = 30
# Words of a sentence that tells something.
_TOLD_WORDS = 12
# Words besides a pasted text that ask something of it.
_MIN_SAID = 3
# A question mark at the end.
_MARK = lazy_pattern(r"[?？]\W*$")
# A particle that makes a sentence of Chinese or Japanese a question.
_PARTICLE = lazy_pattern(r"(?:[吗呢嗎]|(?:です|ます|した|せん|だろう|でしょう)か)\W*$")
# A sentence with its closing signs.
_SENTENCE = lazy_pattern(r"[^.!?。！？\n]+[.!?。！？]*")
_ASKING = (
    "what",
    "when",
    "where",
    "who",
    "whom",
    "whose",
    "which",
    "why",
    "how",
    "did",
    "does",
    "do",
    "is",
    "are",
    "was",
    "were",
    "has",
    "have",
    "had",
    "can",
    "could",
    "will",
    "would",
    "should",
)
# An asking word with a capital: a question begins there even without a sign before it.
_START = lazy_pattern(rf"\b(?:{'|'.join(word.title() for word in _ASKING)})\b")
# Asking words of Chinese, Japanese and Korean. They may be anywhere in a sentence.
_ASIAN = lazy_pattern(
    "什么|怎么|怎样|如何|为什么|哪|多少|几[个点号月岁次时位]|多[大久长远]|谁|啥|咋|何时|何处|是否|有没有"
    "|什麼|怎麼|為什麼|誰|なに|何|いつ|どこ|だれ|なぜ|どう|どの|どれ|どちら|いくつ|いくら|누구|언제|어디|무엇|어떻게"
)
# A question for a time.
_WHEN = lazy_pattern(
    r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow long\b"
    "|什么时候|何时|哪天|哪年|哪一|几[点号月]|多久|いつ|何時|언제",
    re.I,
)
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAME = "|".join([*_MONTHS, *(name[:3] for name in _MONTHS if name != "may"), "sept"])
# A year that is no part of a longer number or name.
_YEAR = lazy_pattern(r"(?<![\da-z-])((?:19|20)\d\d)(?![\da-z])")
# Words before "may" that make it the month.
_BEFORE_MAY = lazy_pattern(r"\b(?:in|of|since|during|until|last|this)\s+$")


_HELPS = "is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|may|must"
_ASKS = r"\b(?:what|which|who|whom|where)\b"
_WORD = r"[\w+'’/-]+"
SEVERAL = lazy_pattern(
    # What are, where has
    rf"{_ASKS}\s+(?:are|were|have|has)\b"
    # Which of her friends have
    rf"|{_ASKS}(?:\s+(?!(?:{_HELPS})\b){_WORD}){{1,4}}\s+(?:are|were|have|has)\b"
    rf"|\b(?:what|which)\s+(?:(?!(?:{_HELPS})\b){_WORD}\s+){{0,4}}?(?!(?:{_HELPS}|this|always)\b)[\w+/-]{{2,}}(?<![sui])s"
    # What kinds of, which books did
    rf"(?=\s+(?:{_HELPS}|in|of|to|for|from|on|with|at|that|and|or)\b|\s*[,?])"
    r"|\bhow many\b|\bboth\b"
    r"|哪些|哪几|几[个种次本位家]|都有|都.{0,8}过",
    re.I,
)
"""What tells that a question asks for several things: a plural, the perfect tense ("where has she
worked"), or how many they are."""


@dataclass(frozen=True, slots=True)
class Period:
    """Days that a question names.

    first, last: YYYY-MM-DD, both inclusive; MM-DD if no year is named.
    weight: the narrower the period, the higher.
    """

    first: str
    last: str
    weight: float

    def share(self, day: str) -> float:
        """The weight if `day` is in the period, otherwise 0."""
        if self.first <= day[-len(self.first) :] <= self.last:
            return self.weight
        return 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A question as words and dates.

    words: in lower case, each once, CJK runs as pairs.
    weak: pairs that span a stop word.
    periods: the days it names.
    when: whether it asks for a time.
    only_days: whether it names nothing but days.
    beside: words of a long text or a dialogue outside its question, with their weight relative to
        another word.
    """

    words: tuple[str, ...]
    weak: frozenset[str]
    periods: tuple[Period, ...]
    when: bool
    only_days: bool = False
    beside: Mapping[str, float] = field(default_factory=dict)


def read_question(text: str, today: date | None = None) -> Question:
    """Read the question in a text: the newest turn of a dialogue, or the questions of a long text.

    All other words count beside it. They are left out only for a text pasted before a question that
    says enough alone.

    today: the day that "last week" counts from. Without it, only written dates are understood.
    """
    *earlier, newest = turns_of(text) or [""]
    focus = Focus(newest) if newest else focus_of(text)
    question_text = focus.text
    named_periods = periods(question_text, today)
    pairs_found, weak = _pairs_of(question_text)
    is_pasted = focus.is_buried and len(words(question_text)) >= _MIN_SAID
    if newest:
        other_pairs = earlier
    elif len(question_text) < len(text) and not is_pasted:
        other_pairs = [text]
    else:
        other_pairs = []
    beside: dict[str, float] = {}
    share = weights.WEIGHTS.beside
    for other in reversed(other_pairs):
        more, more_weak = _pairs_of(other)
        for word in more.keys() - pairs_found.keys() - beside.keys():
            beside[word] = share
        weak |= more_weak & beside.keys()
        share *= weights.WEIGHTS.earlier
    ordered = (
        (*pairs_found, *(word for word in _pairs_of(text)[0] if word in beside))
        if beside
        else pairs_found
    )
    only = bool(named_periods) and stop_words().issuperset(
        words(_RELATIVE.sub(" ", question_text.lower()))
    )
    return Question(
        tuple(ordered),
        weak,
        tuple(named_periods),
        _WHEN.search(question_text) is not None,
        only,
        beside,
    )


def _pairs_of(text: str) -> tuple[dict[str, None], frozenset[str]]:
    """The informative words of `text`, CJK runs as pairs, and those pairs that cross a stop word."""
    word_pairs = dict.fromkeys(chain.from_iterable(map(pairs, words(text))))
    pairs_of_runs = chain.from_iterable(map(pairs, filter(is_cjk, tokens(text))))
    across = dict.fromkeys(pair for pair in pairs_of_runs if len(pair) > 1)
    weak = frozenset(across.keys() - word_pairs.keys())
    return word_pairs | across, weak


def is_told(text: str) -> bool:
    """Whether `text` is something said or written, rather than a list of terms that must all match.

    It has two sentences or lines and several words, whatever is in quotes.
    """
    sentences = 0
    for match in _SENTENCE.finditer(text):
        sentences += len(tokens(match.group())) > 1
        if sentences > 1:
            return len(tokens(text)) >= _TOLD_WORDS
    return False


def is_question(text: str) -> bool:
    """Whether `text` is a question in plain language, by its end or its first word."""
    return is_short_question(text) or any(
        token.lower() in _ASKING for token in tokens(text.strip()[:40])[:1]
    )


def is_short_question(text: str) -> bool:
    """Whether `text` is a question however few words it has: by a question mark, or a question word
    in Chinese, Japanese or Korean. An English one in front proves nothing: `will smith` are two
    words."""
    end = text.strip()[-40:]
    return bool(_MARK.search(end[-8:]) or _PARTICLE.search(end[-8:]) or _ASIAN.search(end))


def is_certain_question(text: str) -> bool:
    """Whether `text` is certainly a question in Chinese, Japanese or Korean.

    It has a question word and ends as a question. Without that end, it may be part of a sentence
    that somebody looks for.
    """
    end = text.strip()
    return _PARTICLE.search(end[-8:]) is not None or bool(
        _MARK.search(end[-8:]) and _ASIAN.search(end[-40:])
    )


class Focus(NamedTuple):
    """The part of a text that asks. `is_buried`: the rest is a text pasted before it."""

    text: str
    is_buried: bool = False


def focus_of(text: str) -> Focus:
    """The part of a text that asks: its questions, where the rest has several times their words.

    Where the text is very much longer than its last question, only that one. Otherwise the whole
    text, since what is told beside a question may be what is asked about.
    """
    if "?" not in text and "？" not in text:
        return Focus(text)
    sentences = [match.group() for match in _SENTENCE.finditer(text) if match.group().strip()]
    asking = [
        at for at, sentence in enumerate(sentences) if sentence.rstrip().endswith(("?", "？"))
    ]
    if not asking:
        return Focus(text)
    last = _last_question(sentences, asking[-1])
    if len(text) > _BURIED * len(last):
        return Focus(last, is_buried=True)
    asked_words = set(words("".join(sentences[at] for at in asking)))
    if len(set(words(text))) < _OUTWEIGHED * len(asked_words):
        return Focus(text)
    # A question of one word says what it asks in the sentence before it
    if len(asking) == 1:
        return Focus(last)
    return Focus("".join(sentences[at] for at in asking))


def _last_question(sentences: Sequence[str], at: int) -> str:
    """The question at this place, the telling part of a long one, with the sentence before it if it
    says little."""
    focus = sentences[at]
    if len(tokens(focus)) > _LONG_QUESTION:
        starts = [match.start() for match in _START.finditer(focus)]
        if starts and len(words(focus[starts[-1] :])) > 1:
            focus = focus[starts[-1] :]
    while at and len(words(focus)) < 2:
        at -= 1
        focus = sentences[at] + focus
    return focus


def periods(text: str, today: date | None = None) -> list[Period]:
    """The days `text` names: dates, months, years, and days relative to `today`."""
    low = text.lower()
    periods_found = list(chain.from_iterable(map(_written, _dates().finditer(low))))
    periods_found += [Period(f"{year}-01-01", f"{year}-12-31", 0.3) for year in _YEAR.findall(low)]
    if today is not None:
        periods_found += [
            Period(first.isoformat(), last.isoformat(), 1.3)
            for first, last in _relative(low, today)
        ]
    return periods_found


@cache
def _dates() -> re.Pattern[str]:
    return re.compile(
        r"(?<!\d)(?P<y1>(?:19|20)\d\d)\s*[-/年]\s*(?P<m1>\d{1,2})(?:\s*[-/月]\s*(?P<d1>\d{1,2}))?(?!\d)"
        r"|(?<!\d)(?P<m2>\d{1,2})月(?:(?P<d2>\d{1,2})[日号])?"
        rf"|(?:\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<name>{_NAME})\b\.?"
        r"(?:\s+(?P<d4>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<y3>(?:19|20)\d\d))?"
    )


def _written(match: re.Match[str]) -> list[Period]:
    """A month, and the day in it. "may" counts as a month only with a day, a year or a preceding
    word that says so.
    """
    name = match["name"]
    year = match["y1"] or match["y3"]
    day = match["d1"] or match["d2"] or match["d3"] or match["d4"]
    if name == "may" and not (day or year or _BEFORE_MAY.search(match.string, 0, match.start())):
        return []
    starts = [this_month[:3] for this_month in _MONTHS]
    if name:
        month = starts.index(name[:3]) + 1
    else:
        month = int(match["m1"] or match["m2"])
    if not 1 <= month <= 12:
        return []
    if year:
        lead = f"{year}-{month:02}"
    else:
        lead = f"{month:02}"
    month_period = [Period(f"{lead}-01", f"{lead}-31", 1.0)]
    if day and 1 <= int(day) <= 31:
        month_period.append(Period(f"{lead}-{int(day):02}", f"{lead}-{int(day):02}", 1.0))
    return month_period


def _relative(low: str, today: date) -> list[tuple[date, date]]:
    """The first and last days of what `low` names relative to `today`."""
    spans: list[tuple[date, date]] = []
    for match in _RELATIVE.finditer(low):
        if match["count"]:
            if match["count"].isdecimal():
                count = int(match["count"])
            else:
                count = _NUMBERS[match["count"]]
            days = count * _UNITS[match["unit"]]
            if days <= 40_000:
                slack = timedelta(days=_UNITS[match["unit"]] // 2)
                middle = today - timedelta(days=days)
                spans.append((middle - slack, middle + slack))
            continue
        # Named periods: `back` units before today's.
        unit, back = _NAMED[next(names for names in _NAMED if match["named"] in names)]
        if unit == "day":
            spans.append((today - timedelta(days=back),) * 2)
        elif unit == "week":
            first = today - timedelta(days=today.weekday() + 7 * back)
            spans.append((first, first + timedelta(days=6)))
        elif unit == "month":
            years, month = divmod(today.year * 12 + today.month - 1 - back, 12)
            first = date(years, month + 1, 1)
            spans.append((first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)))
        else:
            spans.append((date(today.year - back, 1, 1), date(today.year - back, 12, 31)))
    return spans


# Named times: a unit, and how many of it ago.
_NAMED = {
    ("today", "tonight", "this morning", "今天", "今日"): ("day", 0),
    ("yesterday", "last night", "昨天", "昨晚", "昨日"): ("day", 1),
    ("the day before yesterday", "前天"): ("day", 2),
    ("this week", "本周", "这周", "这个星期", "今週"): ("week", 0),
    ("last week", "上周", "上个星期", "上星期", "先週"): ("week", 1),
    ("this month", "本月", "这个月", "今月"): ("month", 0),
    ("last month", "上个月", "上月", "先月"): ("month", 1),
    ("this year", "今年"): ("year", 0),
    ("last year", "去年", "昨年"): ("year", 1),
    ("前年",): ("year", 2),
}
# Days of a unit. Rough is enough: the period gets a margin of half a unit.
_UNITS = {
    "day": 1,
    "week": 7,
    "month": 30,
    "year": 365,
    "天": 1,
    "日": 1,
    "周": 7,
    "个星期": 7,
    "个月": 30,
    "年": 365,
}
# Counts as people write them.
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_NUMBERS |= {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6}


def _one_of(some: Iterable[str]) -> str:
    return "|".join(sorted(some, key=len, reverse=True))


# A time told from today: a name, a count of units, or a day of the week.
_RELATIVE = lazy_pattern(
    rf"(?P<named>{_one_of(name for key in _NAMED for name in key)})"
    rf"|(?:\b|(?<![\d一两二三四五六]))(?P<count>\d{{1,4}}|{_one_of(_NUMBERS)})\s*"
    rf"(?P<unit>{_one_of(_UNITS)})(?:s?\s+ago\b|前)"
)
