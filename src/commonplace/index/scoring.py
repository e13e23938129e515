"""How well a note answers, and where in it: the last, exact step of ranking.

bm25 inside SQLite chooses the candidates; here each candidate's own text is read. A note is worth
what its fields say together and what its best passage says, and that passage speaks for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log
from typing import NamedTuple

from commonplace.index.expression import Term
from commonplace.index.text import flatten, is_cjk, passages, tokens

TITLE, HEADING, TAG, BODY, ADDRESS = 6.0, 3.0, 3.0, 1.0, 0.5
BEGINNING = 0.7
"""What the beginning of a word counts, against the whole word."""

_USUAL_LENGTH = 1_200
_ONE_PASSAGE = 1_500
_MOST_PLACES = 64
_NOTE_SHARE, _PASSAGE_SHARE, _NEAR_SHARE = 0.55, 0.35, 0.1
_METADATA, _SAME_TITLE = 0.06, 0.3
_NEAR = 60
_SNIPPET = 200


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


class Judge:
    """Scores texts for a list of terms, each with the number of notes that hold it."""

    def __init__(self, terms: Sequence[tuple[Term, int]], asked: str = "", *, prefixes: bool = True):
        self.terms = [term for term, _ in terms]
        self.weights = [log(1 + 10_000 / (1 + held)) + 0.1 for _, held in terms]
        self.total = sum(self.weights) or 1.0
        self.patterns = [_pattern(term) for term in self.terms]
        self.prefixes = prefixes
        self.asked = " ".join(flatten(asked).split())

    def judge(self, text: Text) -> Verdict:
        """The verdict on one candidate."""
        flat = flatten(text.text)
        places = self._places(flat, text)
        pieces = pieces_of(text)
        titles = flatten("\n".join(text.names))
        titled = [self._held(pattern, term, titles) for term, pattern in zip(self.terms, self.patterns, strict=True)]
        best, worth, near = self._best_passage(places, pieces, titled)
        fields, why = self._fields(text, places, titled)
        score = _NOTE_SHARE * fields + _PASSAGE_SHARE * worth + _NEAR_SHARE * near
        parts = {"fields": fields, "passage": worth, "near": near}
        if self.asked and self.asked in (flatten(name) for name in text.names):
            score += _SAME_TITLE
            parts["same title"] = _SAME_TITLE
        score += self._metadata(text, why)
        return Verdict(round(score, 6), best, places, why, parts)

    def _places(self, flat: str, text: Text) -> list[Place]:
        spans = text.spans if text.spans is not None else [(0, len(flat))]
        found = []
        for number, (term, pattern) in enumerate(zip(self.terms, self.patterns, strict=True)):
            open_end = self.prefixes and term.open
            for start, stop in spans:
                for match in islice(pattern.finditer(flat, start, stop), _MOST_PLACES):
                    whole = _stands_alone(flat, match, term)
                    if whole is not None and (whole or open_end):
                        found.append(Place(match.start(), number, whole))
        found.sort()
        return found

    def _fields(self, text: Text, places: list[Place], titled: list[float]) -> tuple[float, list[str]]:
        """The worth of all fields together, from 0 to 1, as in BM25F; and reasons."""
        length = max(0.3, min(4.0, len(text.text) / _USUAL_LENGTH))
        body = [0.0] * len(self.terms)
        for place in places:
            body[place.term] += BODY if place.whole else BEGINNING
        headings, tags, address = flatten(text.headings), flatten("\n".join(text.tags)), flatten(text.address)
        in_title, in_words, begun = [], [], False
        worth = 0.0
        for number, (term, pattern) in enumerate(zip(self.terms, self.patterns, strict=True)):
            often = body[number] + TITLE * titled[number]
            often += HEADING * self._held(pattern, term, headings) + TAG * self._held(pattern, term, tags)
            often += ADDRESS * self._held(pattern, term, address)
            if titled[number]:
                in_title.append(term.text)
            if body[number]:
                in_words.append(term.text)
                begun = begun or not any(place.whole for place in places if place.term == number)
            if often:
                worth += self.weights[number] * often / (often + 1.2 * (0.25 + 0.75 * length))
        why = [f"title: {', '.join(in_title)}"] if in_title else []
        if in_words:
            why.append(f"words: {', '.join(in_words)}")
        if begun:
            why.append("prefix")
        return worth / self.total, why

    def _held(self, pattern: re.Pattern[str], term: Term, flat: str) -> float:
        """1 when the term stands in `flat` as a whole, less for a beginning, 0 when not at all."""
        best = 0.0
        if term.words[0] not in flat:
            return best
        for match in islice(pattern.finditer(flat), 8):
            whole = _stands_alone(flat, match, term)
            if whole:
                return 1.0
            if whole is not None and self.prefixes and term.open:
                best = BEGINNING
        return best

    def _best_passage(
        self, places: list[Place], pieces: Sequence[tuple[int, int]], titled: list[float]
    ) -> tuple[tuple[int, int], float, float]:
        """The passage that holds most of what is looked for, the title taken along: (span, worth
        from 0 to 1, nearness from 0 to 1)."""
        best, most, nearest = pieces[0], self.worth((), titled), 0.0
        positions = [place.at for place in places]
        for start, stop in pieces:
            inside = places[bisect_left(positions, start) : bisect_left(positions, stop)]
            if not inside:
                continue
            worth = self.worth(inside, titled)
            near = _nearness(inside, len(self.terms))
            if worth + near * 0.3 > most + nearest * 0.3:
                best, most, nearest = (start, stop), worth, near
        return best, most, nearest

    def worth(self, inside: Sequence[Place], titled: Sequence[float] = ()) -> float:
        """How much of what is looked for these places hold, from 0 to 1; `titled`: the title's share."""
        often = [2 * held for held in titled] or [0.0] * len(self.terms)
        for place in inside:
            often[place.term] += 1.0 if place.whole else BEGINNING
        return sum(w * min(1.0, n * 0.15 + 0.7 * min(n, 1)) for w, n in zip(self.weights, often, strict=True)) / self.total

    def _metadata(self, text: Text, why: list[str]) -> float:
        """A modest boost for terms that equal a tag, the project or the source."""
        said = {" ".join(term.words) for term in self.terms}
        boost = 0.0
        for name, values in (("tag", text.tags), ("project", [text.project]), ("source", [text.source or ""])):
            for value in values:
                if value and (value.lower() in said or " ".join(tokens(flatten(value))) in said):
                    boost += _METADATA
                    why.append(f"{name}: {value}")
        return min(boost, 3 * _METADATA)


def snippet(
    text: str, passage: tuple[int, int], places: Sequence[Place], weights: Sequence[float]
) -> tuple[str, int]:
    """At most 200 characters of `text`, cut where the terms stand closest; and their line, from 1
    in `text`."""
    start, stop = passage
    inside = [place for place in places if start <= place.at < stop]
    begin = start
    if inside and stop - start > _SNIPPET:
        most = -1.0
        for number, place in enumerate(inside):
            seen = {one.term for one in inside[number:] if one.at < place.at + _SNIPPET - 40}
            worth = sum(weights[term] for term in seen)
            if worth > most:
                most, begin = worth, place.at
        begin = _snippet_start(text, start, begin)
    end = min(stop, begin + _SNIPPET)
    if end < stop and not text[end].isspace():
        blank = max(text.rfind(" ", begin, end), text.rfind("\n", begin, end))
        if blank > begin + _SNIPPET * 2 // 3:
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


def _nearness(inside: Sequence[Place], terms: int) -> float:
    """1 when neighbouring terms of the query stand side by side, 0 when they stand apart."""
    if terms < 2:
        return 0.0
    last = [-1] * terms
    closest = [_NEAR * 4] * terms
    for place in inside:
        last[place.term] = place.at
        for other in (place.term - 1, place.term + 1):
            if 0 <= other < terms and last[other] >= 0:
                pair = min(place.term, other)
                closest[pair] = min(closest[pair], place.at - last[other])
    return sum(_NEAR / (_NEAR + gap) for gap in closest[: terms - 1] if gap < _NEAR * 4) / (terms - 1)


def pieces_of(text: Text) -> list[tuple[int, int]]:
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


def _stands_alone(flat: str, match: re.Match[str], term: Term) -> bool | None:
    """True for a whole word, False for a beginning, None for something inside a word."""
    start, stop = match.span()
    if start and not is_cjk(term.words[0]) and _in_word(flat[start - 1]):
        return None
    return stop == len(flat) or is_cjk(term.words[-1]) or not _in_word(flat[stop])


def _in_word(char: str) -> bool:
    return char.isalnum() and not is_cjk(char)
