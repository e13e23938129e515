"""How well a note answers, and where in it: the last, exact step of ranking.

bm25 inside SQLite chooses the candidates; here each candidate's own text is read. A note is worth
what its fields say together and what its best passage says, and that passage speaks for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import log
from typing import NamedTuple

from commonplace.index import weights
from commonplace.index.expression import Term
from commonplace.text.tokens import IN_WORD, flatten, is_cjk, passages, tokens

_ONE_PASSAGE = 2_400
_MOST_PLACES = 32
SNIPPET = 200
"""The most characters a snippet has."""


@dataclass(slots=True)
class Text:
    """What is read of a candidate. `spans` are the passages that matched, for long texts only."""

    row: int
    project: str
    names: list[str]
    headings: str
    tags: list[str]
    source: str | None
    address: str
    front: str
    text: str
    spans: list[tuple[int, int]] | None = None


class Place(NamedTuple):
    """Where a term stands in the text, and whether as a whole word."""

    at: int
    term: int
    whole: bool


@dataclass(slots=True)
class Verdict:
    """The score of a note (higher = better), its best passage, and what matched."""

    score: float
    passage: tuple[int, int]
    places: list[Place]
    why: list[str] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)


class _Sought:
    """A term as it is looked for in a flat text."""

    __slots__ = ("_begins_word", "_ends_word", "_open", "_pattern", "_word", "text")

    def __init__(self, term: Term, prefixes: bool):
        self.text = term.text
        self._word = term.words[0]
        self._pattern = _pattern(term) if len(term.words) > 1 else None
        self._begins_word = not is_cjk(term.words[0])
        self._ends_word = not is_cjk(term.words[-1])
        self._open = prefixes and term.open

    def places(self, flat: str, start: int, stop: int) -> list[tuple[int, bool]]:
        """Where the term stands between two places, and whether as whole words; the first ones only."""
        found = []
        for at, end in islice(self._spans(flat, start, stop), _MOST_PLACES):
            if self._begins_word and at and IN_WORD[flat[at - 1]]:
                continue
            whole = not (self._ends_word and end < len(flat) and IN_WORD[flat[end]])
            if whole or self._open:
                found.append((at, whole))
        return found

    def held(self, flat: str) -> float:
        """1 when the term stands in `flat` as whole words, less for a beginning, 0 when not at all."""
        if self._word not in flat:
            return 0.0
        places = self.places(flat, 0, len(flat))
        return max((1.0 if whole else weights.EXACT.beginning for _, whole in places), default=0.0)

    def _spans(self, flat: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
        if self._pattern is not None:
            for match in self._pattern.finditer(flat, start, stop):
                yield match.span()
            return
        size = len(self._word)
        at = flat.find(self._word, start, stop)
        while at >= 0:
            yield at, at + size
            at = flat.find(self._word, at + size, stop)


class Judge:
    """Scores texts for a list of terms; `weight` is how much one tells, and is asked when that matters."""

    def __init__(
        self, terms: Sequence[Term], weight: Callable[[Term], float], asked: str = "", *, prefixes: bool = True
    ):
        self._table = weights.EXACT
        self._weight, self._terms, self._text = weight, terms, asked
        self._sought = [_Sought(term, prefixes) for term in terms]

    @cached_property
    def weights(self) -> list[float]:
        """How much each term tells."""
        return list(map(self._weight, self._terms))

    @cached_property
    def _total(self) -> float:
        return sum(self.weights) or 1.0

    @cached_property
    def _said(self) -> set[str]:
        return {" ".join(term.words) for term in self._terms}

    @cached_property
    def _asked(self) -> str:
        return " ".join(flatten(self._text).split())

    def judge(self, text: Text) -> Verdict:
        """The verdict on one candidate."""
        places = self.places(text)
        titles = flatten("\n".join(text.names))
        titled = [sought.held(titles) for sought in self._sought]
        best, worth, near = self._best_passage(places, _pieces(text), titled)
        fields, why = self._fields(text, places, titled)
        table = self._table
        score = table.fields * fields + table.passage * worth + table.near * near
        parts = {"fields": fields, "passage": worth, "near": near}
        if self._asked and self._asked in titles and self._asked in titles.split("\n"):
            score += table.same_title
            parts["same title"] = table.same_title
        score += self._metadata(text, why)
        return Verdict(round(score, 6), best, places, why, parts)

    def best(self, text: Text) -> tuple[tuple[int, int], list[Place]]:
        """The best passage of a candidate, as its verdict names it, and where the terms stand in the text."""
        places, pieces = self.places(text), _pieces(text)
        if len(pieces) == 1:
            return pieces[0], places
        titles = flatten("\n".join(text.names))
        return self._best_passage(places, pieces, [sought.held(titles) for sought in self._sought])[0], places

    def snippet(self, text: str, passage: tuple[int, int], places: Sequence[Place]) -> tuple[str, int]:
        """At most 200 characters of `text`, cut where the terms stand closest; and their line, from 1 in `text`."""
        start, stop = passage
        inside = [place for place in places if start <= place.at < stop]
        begin = start
        if inside and stop - start > SNIPPET:
            begin = _snippet_start(text, start, self._closest(inside))
        return shortened(text, begin, stop)

    def _closest(self, inside: Sequence[Place]) -> int:
        """The first place behind which the terms that tell most stand within a snippet."""
        if len(self._sought) < 2:
            return inside[0].at
        seen = [{one.term for one in inside[number:] if one.at < place.at + SNIPPET - 40}
                for number, place in enumerate(inside)]  # fmt: skip
        most = max(seen, key=len)
        if not all(map(most.issuperset, seen)):
            always = most.intersection(*seen)
            told = {term: self._weight(self._terms[term]) for term in set().union(*seen) - always}
            most = max(seen, key=lambda some: sum(told[term] for term in some - always))
        return inside[seen.index(most)].at

    def places(self, text: Text) -> list[Place]:
        """Where the terms stand in a candidate's text, in order."""
        flat = flatten(text.text)
        spans = text.spans if text.spans is not None else [(0, len(flat))]
        return sorted(
            Place(at, number, whole)
            for number, sought in enumerate(self._sought)
            for start, stop in spans
            for at, whole in sought.places(flat, start, stop)
        )

    def _fields(self, text: Text, places: list[Place], titled: list[float]) -> tuple[float, list[str]]:
        """The worth of all fields together, from 0 to 1, as in BM25F; and reasons."""
        table = self._table
        length = max(0.3, min(4.0, len(text.text) / table.usual))
        body = [0.0] * len(self._sought)
        best = [0.0] * len(self._sought)
        for place in places:
            worth = table.body if place.whole else table.beginning
            body[place.term] += worth
            best[place.term] = max(best[place.term], worth)
        headings, tags, address = flatten(text.headings), flatten("\n".join(text.tags)), flatten(text.address)
        total = 0.0
        for number, sought in enumerate(self._sought):
            often = body[number] + table.title * titled[number] + table.heading * sought.held(headings)
            often += table.tag * sought.held(tags) + table.address * sought.held(address)
            slow = table.saturation * (1 - table.brevity + table.brevity * length)
            total += self.weights[number] * often / (often + slow)
        why = []
        if any(titled):
            why.append("title: " + ", ".join(self._sought[n].text for n, held in enumerate(titled) if held))
        if places:
            why.append("words: " + ", ".join(self._sought[n].text for n, held in enumerate(body) if held))
        if any(0 < held < table.body for held in best):
            why.append("prefix")
        return total / self._total, why

    def _best_passage(
        self, places: list[Place], pieces: Sequence[tuple[int, int]], titled: list[float]
    ) -> tuple[tuple[int, int], float, float]:
        """The passage that holds most of what is looked for, the title taken along: (span, worth
        from 0 to 1, nearness from 0 to 1)."""
        if len(pieces) == 1:
            near = _nearness(places, len(self._sought), self._table.apart) if places else 0.0
            return pieces[0], self.worth(places, titled), near
        best, most, nearest = pieces[0], self.worth((), titled), 0.0
        positions = [place.at for place in places]
        for start, stop in pieces:
            inside = places[bisect_left(positions, start) : bisect_left(positions, stop)]
            if not inside:
                continue
            worth = self.worth(inside, titled)
            near = _nearness(inside, len(self._sought), self._table.apart)
            if worth + near * self._table.close > most + nearest * self._table.close:
                best, most, nearest = (start, stop), worth, near
        return best, most, nearest

    def worth(self, inside: Sequence[Place], titled: Sequence[float] = ()) -> float:
        """How much of what is looked for these places hold, from 0 to 1; `titled`: the title's share."""
        table = self._table
        often = [table.titled * held for held in titled] or [0.0] * len(self._sought)
        for place in inside:
            often[place.term] += 1.0 if place.whole else table.beginning
        full, first = zip(self.weights, often, strict=True), table.once - table.again
        return sum([weight * min(1.0, n * table.again + first * min(n, 1)) for weight, n in full]) / self._total

    def _metadata(self, text: Text, why: list[str]) -> float:
        """A modest boost for terms that equal a tag, the project or the source."""
        boost = 0.0
        for name, values in (("tag", text.tags), ("project", [text.project]), ("source", [text.source or ""])):
            for value in values:
                low = value.lower()
                if low in self._said or (not low.isalnum() and " ".join(tokens(flatten(low))) in self._said):
                    boost += self._table.metadata
                    why.append(f"{name}: {value}")
        return min(boost, 3 * self._table.metadata)


def rarity(held: int) -> float:
    """How much a term tells that so many notes hold."""
    return log(1 + 10_000 / (1 + held)) + 0.1


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
    """A little before `at`: its line's beginning when that is near, else a word's."""
    line = text.rfind("\n", start, at) + 1
    if line and at - line <= 60:
        return line
    if not line and at - start <= 60:
        return start
    back = max(start, at - 40)
    blank = text.find(" ", back, at)
    return blank + 1 if blank >= 0 else back


def _nearness(inside: Sequence[Place], terms: int, apart: int) -> float:
    """1 when neighbouring terms of the query stand side by side, 0 when they stand apart."""
    if terms < 2:
        return 0.0
    last = [-1] * terms
    closest = [apart * 4] * terms
    for place in inside:
        last[place.term] = place.at
        for other in (place.term - 1, place.term + 1):
            if 0 <= other < terms and last[other] >= 0:
                pair = min(place.term, other)
                closest[pair] = min(closest[pair], place.at - last[other])
    return sum(apart / (apart + gap) for gap in closest[: terms - 1] if gap < apart * 4) / (terms - 1)


def _pieces(text: Text) -> list[tuple[int, int]]:
    """The passages of a candidate that are looked at."""
    if text.spans is not None:
        return text.spans
    if len(text.text) <= _ONE_PASSAGE:
        return [(0, len(text.text))]
    return [(one.start, one.end) for one in passages(text.text)] or [(0, len(text.text))]


def _pattern(term: Term) -> re.Pattern[str]:
    parts = [re.escape(term.words[0])]
    for before, word in zip(term.words, term.words[1:], strict=False):
        parts.append(r"[\W_]*" if is_cjk(before) or is_cjk(word) else r"[\W_]+")
        parts.append(re.escape(word))
    return re.compile("".join(parts))
