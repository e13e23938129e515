"""Searches where all words must match: the order of notes, and the best passage and snippet of each.

BM25 inside SQLite chooses the candidates; then the text of each candidate is read. A note is worth what its fields say
together and what its best passage says, and that passage is shown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import log
from operator import mul
from typing import NamedTuple

from commonplace.index.search import weights
from commonplace.index.search.parse import ParsedQuery, Term
from commonplace.index.search.queries import NoteText, SearchContext
from commonplace.note.model import ARCHIVE_PROJECT, ARCHIVED
from commonplace.text.tokens import IN_WORD, flatten, is_cjk, passages, tokens

SNIPPET = 200
"""The most characters of a snippet."""

_READ, _NAMED_READ = 20, 10
"""This many of the best candidates by BM25 are read and scored exactly, and this many that match by name."""
_MAX_SORTED = 300
"""One term's more matches stay newest first."""
_ONE_PASSAGE = 2_400
_MAX_PLACES = 32


class TermPosition(NamedTuple):
    """Where a term stands in a text, and whether as a whole word."""

    at: int
    term: int
    whole: bool


@dataclass(slots=True)
class Score:
    """The score of a note (higher = better), its best passage, where the terms stand, and what matched."""

    score: float
    passage: tuple[int, int]
    places: list[TermPosition]
    why: list[str] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Ranked:
    """Matches in order, best first, and the scores of those that were read."""

    rows: list[int] = field(default_factory=list)
    scores: dict[int, tuple[Score, NoteText]] = field(default_factory=dict)


def rank(
    context: SearchContext, query: ParsedQuery, match: str, rows: list[int], total: int, most: int, whole: bool = False
) -> Ranked:
    """`rows`, the newest of `total` matches of `match`, the FTS5 expression of a query, best first.

    Of very many, those with the terms in title, headings or tags take part whatever their age. At least the first
    `most` are in order.
    """
    ranked, terms = rows, query.terms
    if _READ < len(rows) <= _MAX_SORTED or (len(rows) > _MAX_SORTED and len(terms) > 1):
        ranked = context.by_bm25(query, match, rows, max(most, _READ), whole)
    best = ranked[:_READ]
    named = context.named(match)[:_NAMED_READ] if total > min(len(rows), _MAX_SORTED) else []
    same = context.same_title(match) if total > _READ else []
    extra = [row for row in dict.fromkeys([*same, *named]) if row not in best]
    if extra and context.is_filtered:
        extra = context.passing(extra)
    scorer = all_words_scorer(context, terms, prefixes=not whole)
    scores = {text.row: (scorer.score(text), text) for text in context.texts(best + extra, terms)}
    order = context.best_first({row: score.score for row, (score, _) in scores.items()})
    return Ranked(order + [row for row in ranked if row not in scores], scores)


def all_words_scorer(context: SearchContext, terms: Sequence[Term], *, prefixes: bool = True) -> AllWordsScorer:
    """A scorer for these terms; rare ones weigh more."""

    def weight(one: Term) -> float:  # a single one needs no counting
        return 1.0 if len(terms) == 1 else log(1 + 10_000 / (1 + context.frequency(one))) + 0.1

    return AllWordsScorer(terms, weight, context.query.text, prefixes=prefixes)


class AllWordsScorer:
    """Scores texts for a list of terms; `weight` says how rare one is, and is only asked when that matters."""

    def __init__(self, terms: Sequence[Term], weight: Callable[[Term], float], query: str, *, prefixes: bool = True):
        self._table = weights.EXACT
        self._weight, self._terms, self._text = weight, terms, query
        self._finders = [_TermFinder(term, prefixes) for term in terms]
        self._flat_terms = {" ".join(term.words) for term in terms}

    @cached_property
    def _weights(self) -> list[float]:
        return list(map(self._weight, self._terms))

    @cached_property
    def _flat_query(self) -> str:
        return " ".join(flatten(self._text).split())

    def score(self, text: NoteText) -> Score:
        """The score of one candidate."""
        table, places = self._table, self.places(text)
        titles = flatten("\n".join(text.names))
        titled = [finder.held(titles) for finder in self._finders]
        best, covered, near = self._best_passage(places, _passages(text), titled)
        fields, why = self._fields(text, places, titled)
        parts = {"fields": table.fields * fields, "passage": table.passage * covered, "near": table.near * near}
        if self._flat_query and self._flat_query in titles and self._flat_query in titles.split("\n"):
            parts["same title"] = table.same_title
        if boost := self._metadata(text, why):
            parts["metadata"] = boost
        if text.project == ARCHIVE_PROJECT:
            parts = {name: value * table.archived for name, value in parts.items()}
            why.append(ARCHIVED)
        return Score(round(sum(parts.values()), 6), best, places, why, parts)

    def best(self, text: NoteText) -> tuple[tuple[int, int], list[TermPosition]]:
        """The best passage of a candidate, as in its score, and where the terms stand in the text."""
        places, parts = self.places(text), _passages(text)
        if len(parts) == 1:
            return parts[0], places
        titles = flatten("\n".join(text.names))
        return self._best_passage(places, parts, [finder.held(titles) for finder in self._finders])[0], places

    def snippet(self, text: str, passage: tuple[int, int], places: Sequence[TermPosition]) -> tuple[str, int]:
        """At most 200 characters of `text`, cut where the terms stand closest; and their line, from 1 in `text`."""
        start, stop = passage
        inside = [place for place in places if start <= place.at < stop] if stop - start > SNIPPET else []
        return shortened(text, _snippet_start(text, start, self._closest(inside)) if inside else start, stop)

    def places(self, text: NoteText) -> list[TermPosition]:
        """Where the terms stand in a candidate's text, in order."""
        flat = flatten(text.text)
        spans = text.spans if text.spans is not None else [(0, len(flat))]
        return sorted(
            TermPosition(at, number, whole)
            for number, finder in enumerate(self._finders)
            for start, stop in spans
            for at, whole in finder.places(flat, start, stop)
        )

    def _closest(self, inside: Sequence[TermPosition]) -> int:
        """The first place after which the terms of most weight stand within a snippet."""
        if len(self._finders) < 2:
            return inside[0].at
        seen = [
            {one.term for one in inside[number:] if one.at < place.at + SNIPPET - 40}
            for number, place in enumerate(inside)
        ]
        most = max(seen, key=len)
        if not all(map(most.issuperset, seen)):
            always = most.intersection(*seen)
            weight = {term: self._weight(self._terms[term]) for term in set().union(*seen) - always}
            most = max(seen, key=lambda some: sum(weight[term] for term in some - always))
        return inside[seen.index(most)].at

    def _fields(self, text: NoteText, places: list[TermPosition], titled: list[float]) -> tuple[float, list[str]]:
        """The score of all fields together, from 0 to 1, as in BM25F; and reasons."""
        table = self._table
        length = max(0.3, min(4.0, len(text.text) / table.usual))
        slow = table.saturation * (1 - table.brevity + table.brevity * length)
        body, best = [0.0] * len(self._finders), [0.0] * len(self._finders)
        for place in places:
            count = table.body if place.whole else table.prefix
            body[place.term] += count
            best[place.term] = max(best[place.term], count)
        headings, tags, address = flatten(text.headings), flatten("\n".join(text.tags)), flatten(text.address)
        total = 0.0
        for number, finder in enumerate(self._finders):
            often = body[number] + table.title * titled[number] + table.heading * finder.held(headings)
            often += table.tag * finder.held(tags) + table.address * finder.held(address)
            total += self._weights[number] * often / (often + slow)
        why = []
        if any(titled):
            why.append("title: " + ", ".join(self._terms[n].text for n, held in enumerate(titled) if held))
        if places:
            why.append("words: " + ", ".join(self._terms[n].text for n, held in enumerate(body) if held))
        if any(0 < held < table.body for held in best):
            why.append("prefix")
        return total / (sum(self._weights) or 1.0), why

    def _best_passage(
        self, places: list[TermPosition], parts: Sequence[tuple[int, int]], titled: list[float]
    ) -> tuple[tuple[int, int], float, float]:
        """The passage that covers most of the terms together with the title: (span, coverage, nearness), the last two
        from 0 to 1."""
        close, apart, count = self._table.close, self._table.apart, len(self._finders)
        if len(parts) == 1:
            return parts[0], self._coverage(places, titled), _nearness(places, count, apart) if places else 0.0
        best, most, nearest = parts[0], self._coverage((), titled), 0.0
        positions = [place.at for place in places]
        for start, stop in parts:
            inside = places[bisect_left(positions, start) : bisect_left(positions, stop)]
            if not inside:
                continue
            covered, near = self._coverage(inside, titled), _nearness(inside, count, apart)
            if covered + near * close > most + nearest * close:
                best, most, nearest = (start, stop), covered, near
        return best, most, nearest

    def _coverage(self, inside: Sequence[TermPosition], titled: Sequence[float]) -> float:
        """How much of the terms these places and the title hold, from 0 to 1."""
        table = self._table
        often = [table.titled * held for held in titled]
        for place in inside:
            often[place.term] += 1.0 if place.whole else table.prefix
        first = table.once - table.again
        shares = [min(1.0, count * table.again + first * min(count, 1)) for count in often]
        return sum(map(mul, self._weights, shares)) / (sum(self._weights) or 1.0)

    def _metadata(self, text: NoteText, why: list[str]) -> float:
        """A modest boost for terms that equal a tag, the project or the source."""
        boost = 0.0
        for name, values in (("tag", text.tags), ("project", [text.project]), ("source", [text.source or ""])):
            for value in values:
                low = value.lower()
                if not self._flat_terms.isdisjoint((low, " ".join(tokens(flatten(low))))):
                    boost += self._table.metadata
                    why.append(f"{name}: {value}")
        return min(boost, 3 * self._table.metadata)


class _TermFinder:
    """Finds a term in folded texts."""

    def __init__(self, term: Term, prefixes: bool):
        self._word = term.words[0]
        self._pattern = _pattern(term) if len(term.words) > 1 else None
        self._begins_word = not is_cjk(term.words[0])
        self._ends_word = not is_cjk(term.words[-1])
        self._open = prefixes and term.open

    def places(self, flat: str, start: int, stop: int) -> list[tuple[int, bool]]:
        """Where the term stands between two places, and whether as whole words; the first ones only."""
        found = []
        for at, end in islice(self._spans(flat, start, stop), _MAX_PLACES):
            if self._begins_word and at and IN_WORD[flat[at - 1]]:
                continue
            whole = not (self._ends_word and end < len(flat) and IN_WORD[flat[end]])
            if whole or self._open:
                found.append((at, whole))
        return found

    def held(self, flat: str) -> float:
        """1 when `flat` contains the term as whole words, less for a prefix, 0 when not at all."""
        if self._word not in flat:
            return 0.0
        places = self.places(flat, 0, len(flat))
        return max((1.0 if whole else weights.EXACT.prefix for _, whole in places), default=0.0)

    def _spans(self, flat: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
        if self._pattern is not None:
            yield from (match.span() for match in self._pattern.finditer(flat, start, stop))
            return
        size = len(self._word)
        at = flat.find(self._word, start, stop)
        while at >= 0:
            yield at, at + size
            at = flat.find(self._word, at + size, stop)


def shortened(text: str, begin: int, stop: int) -> tuple[str, int]:
    """At most 200 characters of `text` from `begin` on, up to `stop`; and their line, from 1 in `text`."""
    end = min(stop, begin + SNIPPET)
    if end < stop and not text[end].isspace():
        blank = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
        if blank > begin + SNIPPET * 2 // 3:
            end = blank
    piece = text[begin:end]
    begin += len(piece) - len(piece.lstrip())
    return piece.strip(), text.count("\n", 0, begin) + 1


def _snippet_start(text: str, start: int, at: int) -> int:
    """A little before `at`: the start of its line when that is near, else of a word."""
    line = text.rfind("\n", start, at) + 1
    if at - (line or start) <= 60:
        return line or start
    back = max(start, at - 40)
    blank = text.find(" ", back, at)
    return blank + 1 if blank >= 0 else back


def _nearness(inside: Sequence[TermPosition], terms: int, apart: int) -> float:
    """1 when neighboring terms of the query stand side by side, 0 when far apart."""
    if terms < 2:
        return 0.0
    last, closest = [-1] * terms, [apart * 4] * terms
    for place in inside:
        last[place.term] = place.at
        for other in (place.term - 1, place.term + 1):
            if 0 <= other < terms and last[other] >= 0:
                pair = min(place.term, other)
                closest[pair] = min(closest[pair], place.at - last[other])
    return sum(apart / (apart + gap) for gap in closest[: terms - 1] if gap < apart * 4) / (terms - 1)


def _passages(text: NoteText) -> list[tuple[int, int]]:
    if text.spans is not None:
        return text.spans
    parts = passages(text.text) if len(text.text) > _ONE_PASSAGE else ()
    return [(one.start, one.end) for one in parts] or [(0, len(text.text))]


def _pattern(term: Term) -> re.Pattern[str]:
    parts = [re.escape(term.words[0])]
    for before, word in zip(term.words, term.words[1:], strict=False):
        parts.append(r"[\W_]*" if is_cjk(before) or is_cjk(word) else r"[\W_]+")
        parts.append(re.escape(word))
    return re.compile("".join(parts))
