"""Chunks of notes: turns of a conversation, list items, passages of about 200 words; scored like notes for a question.

A long note contains many words of a question and says little about most of them. The best notes are therefore read,
and each chunk is scored by the features of `weights`, as if it were a note in a conversation of its own: its
neighbors, its note (the conversation), its title and headings, its speaker and the note's date count. The best chunk's
score is the note's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from heapq import nlargest
from operator import or_

from commonplace.index.features import SHORT, style_of, turns_or_passages
from commonplace.index.search import parse
from commonplace.index.search.queries import NoteText
from commonplace.index.search.question import QuestionRanking, TermScorer, Word
from commonplace.index.search.word_forms import forms, root, stem
from commonplace.note.model import ARCHIVED
from commonplace.text.tokens import IN_WORD, flatten, is_cjk, word_at, word_count

READ, READ_LONG = 40, 20
"""This many of the best notes are read, and this many long ones that come after them."""

_MAX_CHARACTERS, _MAX_PER_NOTE = 250_000, 40_000
_MIN_ROOT = 4
_READ_CLOSELY = 60
_MIN_LIST, _MIN_ITEMS = 200, 3
_CACHED_TEXTS = 500
"""The chunks of so many long texts are cached, and the styles of some chunks: `bench/recall.py --notes session` takes
half as long again without."""
_style_of = lru_cache(4 * _CACHED_TEXTS)(style_of)
_ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.M)
_SPEAKER = re.compile(r"[^\n:：]{1,80}[:：]")


@dataclass(slots=True)
class Chunk:
    """`text[start:stop]` of the note in `row`, with about so many `words`, and its speaker.

    `bits`: which words of the question it contains, as in `QuestionRanking`; `often`: how often, by the number
    of the word; `own`: their score, 1 for the best chunk; `is_relevant`: it or a neighbor contains a word.
    """

    row: int
    start: int
    stop: int
    words: int
    speaker: str | None
    bits: int = 0
    often: dict[int, int] = field(default_factory=dict)
    score: float = 0.0
    own: float = 0.0
    is_relevant: bool = False


def chunk(text: str) -> list[tuple[int, int]]:
    """The turns of a conversation, else list items and passages of about 200 words, as (start, stop)."""
    if len(text) <= SHORT:
        return [(0, len(text))]
    parts = turns_or_passages(text)
    return [part for start, stop in parts for part in _list_items(text, start, stop)] or [(0, len(text))]


class ChunkRanking:
    """The best notes for a question, read chunk by chunk.

    `rows`: the notes read, the `first` best ones and the best long ones after those, which score low as whole notes;
    `order`: the same, best first; `chunks`: of the notes that have several; `texts`: of long notes, with
    `every` of all.
    """

    def __init__(self, ranking: QuestionRanking, first: int, *, every: bool = False):
        self._ranking, self._table, self._question = ranking, ranking._table, ranking.question
        rows = ranking.page(0, first)
        inside, scores = set(rows), ranking.scores
        rest = [row for row, note in ranking.features.items() if note.is_long and row not in inside]
        rows += nlargest(READ_LONG, rest, key=lambda row: (scores.get(row, 0.0), row))
        self.rows = rows
        self._features = {row: ranking.features[row] for row in rows if row in ranking.features}
        self._finder = _WordFinder(ranking.words)
        self.weights = _term_weights(ranking.words)
        self.terms = list(self.weights)
        long = [row for row, note in self._features.items() if note.is_long or note.conversation is None]
        self.texts = {one.row: one for one in ranking.context.texts(rows if every else long, self.terms)}
        self.chunks: dict[int, list[Chunk]] = {}
        room = _MAX_CHARACTERS
        for row in long:
            if room > 0:
                some = self._chunks_of(self.texts[row])
                room -= sum([one.stop - one.start for one in some])
                if len(some) > 1 or self._features[row].conversation is None:
                    self.chunks[row] = some
        self.scores = {row: scores[row] for row in rows if row in scores}
        if self.chunks:
            self._score_chunks()
        self._archived = ranking.context.archived(rows)
        for row in self._archived:
            self.scores[row] = min(self.scores.get(row, 0.0), self.scores.get(row, 0.0) * self._table.archived)
            for one in self.chunks.get(row, ()):
                one.score = min(one.score, one.score * self._table.archived)
        is_rescored = self.chunks or self._archived
        self.order = list(dict.fromkeys([*(ranking.context.best_first(self.scores) if is_rescored else ()), *rows]))
        self._least = min(self.scores.values(), default=0.0)

    def best(self, row: int) -> Chunk | None:
        """The best chunk of a note; None for a note that is one chunk."""
        some = self.chunks.get(row, ())
        return max(some, key=lambda one: one.score) if len(some) > 1 else None

    def relevant(self) -> list[tuple[int, int, int, float, int]]:
        """All relevant chunks of the notes read, best first: note, start, stop, score, words as `QuestionRanking.bits`.
        Needs `every`."""
        found = []
        for row in self.rows:
            if row in self.chunks:
                found += [
                    (row, one.start, one.stop, one.score, one.bits) for one in self.chunks[row] if one.is_relevant
                ]
            elif row in self.texts:
                found.append((row, *self._whole(self.texts[row]), self.score(row), self._ranking.bits.get(row, 0)))
        return sorted(found, key=lambda one: -one[3])

    def score(self, row: int) -> float:
        """The score of a note; one that was not read scores no more than the last that was."""
        return self.scores.get(row, min(self._ranking.scores.get(row, 0.0), self._least))

    def relevance(self, bits: int, characters: int) -> float:
        """As `QuestionRanking.relevance`."""
        return self._ranking.relevance(bits, characters)

    def shares(self, row: int) -> dict[str, float]:
        """What each feature adds to the score of a note; `passage` is what its best chunk adds or takes."""
        change = round(self.score(row) - self._ranking.scores.get(row, 0.0), 3)
        return self._ranking.shares(row) | ({"passage": change} if change and row in self.scores else {})

    def why(self, row: int) -> list[str]:
        """Why a note was found."""
        held, marks = self._ranking.held(row), [ARCHIVED] if row in self._archived else []
        if not held:
            return ["meaning", *marks] if self._ranking.cosines.get(row, 0.0) > 0 else marks
        spelled = [one for word in self._ranking.words if word.text in held for one in word.spelled]
        return [f"words: {', '.join(held)}", *([f"spelled: {', '.join(spelled)}"] if spelled else []), *marks]

    def _whole(self, text: NoteText) -> tuple[int, int]:
        """All of a short text; of a long one there was no room to score, the first chunk with most of the words."""
        if len(text.text) <= SHORT:
            return 0, len(text.text)

        def count(one: Chunk) -> int:
            places = self._finder.places(flatten(text.text[one.start : one.stop]))
            return reduce(or_, (bits for _, bits in places), 0).bit_count()

        best = max(self._chunks_of(text), key=count)
        return best.start, best.stop

    def _chunks_of(self, text: NoteText) -> list[Chunk]:
        """The chunks of a note; of a very long one those in passages that contain a word, as far as there is room."""
        found: list[Chunk] = []
        size = 0
        for first, last in text.spans or [(0, len(text.text))]:
            if size <= _MAX_PER_NOTE:
                parts = _sized_chunks(text.text[first:last])
                found += [Chunk(text.row, first + start, first + stop, words, who) for start, stop, words, who in parts]
                size += last - first
        return found

    def _score_chunks(self) -> None:
        """The scores of all chunks, and of the notes, on the same scale as short notes."""
        ranking, table = self._ranking, self._table
        self._find_words()
        every = [one for some in self.chunks.values() for one in some]
        there = {one.speaker for one in every}
        speakers = ranking.speakers | {word.text for word in ranking.words if word.text in there}
        scorer = TermScorer(ranking.words, speakers - ranking.speakers)
        single = {
            row: Chunk(row, 0, 0, note.words, None, ranking.bits.get(row, 0))
            for row, note in self._features.items()
            if row not in self.chunks
        }
        matching = [one for one in every if one.bits]
        _score_words([*matching, *single.values()], scorer, table.brevity)
        whole = {row: _together(some, ranking.bits.get(row, 0)) for row, some in self.chunks.items()}
        _score_words(whole.values(), scorer, table.brevity)
        full = max([scorer[one.bits] for one in (*whole.values(), *single.values())]) or 1.0
        neighbors = self._neighbor_scores(matching)
        for row, some in self.chunks.items():
            coverage = scorer[whole[row].bits] / full
            self._score_note(row, some, neighbors, speakers, whole[row].own, coverage)
        self._read_closely(every)
        for row, some in self.chunks.items():
            self.scores[row] = round(max(one.score for one in some), 6)
        self._rescale({row: one.own for row, one in single.items()})

    def _find_words(self) -> None:
        in_titles = sum(4 << 3 * at for at in range(len(self._ranking.words)))
        for row, some in self.chunks.items():
            text, bits = self.texts[row], self._ranking.bits.get(row, 0)
            titles = bits & in_titles
            starts = [one.start for one in some]
            if len(some) == 1:
                some[0].bits = bits
            for start, stop in text.spans or [(0, len(text.text))]:
                if start >= some[-1].stop:
                    break  # of so long a text no more is read
                for at, found in self._finder.places(flatten(text.text[start:stop])):
                    one = some[bisect_right(starts, start + at) - 1]
                    word = (found.bit_length() - 1) // 3
                    one.often[word] = one.often.get(word, 0) + 1
                    one.bits |= found | titles

    def _neighbor_scores(self, every: Sequence[Chunk]) -> dict[int, float]:
        """What the best chunks add to their neighbors, by the chunk's identity."""
        table, found = self._table, dict[int, float]()
        places = {id(one): (some, at) for some in self.chunks.values() for at, one in enumerate(some)}
        around = table.around
        shares = ((1, table.before), (2, around), (3, around), (-1, table.after), (-2, around), (-3, around))
        for one in nlargest(table.sources, every, key=lambda one: one.own):
            some, at = places[id(one)]
            for step, share in shares:
                if 0 <= at + step < len(some):
                    other = id(some[at + step])
                    found[other] = found.get(other, 0.0) + share * one.own
        return found

    def _score_note(
        self,
        row: int,
        some: list[Chunk],
        neighbors: dict[int, float],
        speakers: set[str],
        whole: float,
        coverage: float,
    ) -> None:
        """All features of the chunks of a note but those that need their text."""
        table, note = self._table, self._features[row]
        day = sum(period.share(note.day) for period in self._question.periods)
        own = table.words * self._word_share(row) + table.conversation
        usual = own * (1 - table.passage) * whole + table.conversation_words * coverage
        usual += table.date * day + self._ranking.shares(row).get("meaning", 0.0)
        for one in some:
            beside = neighbors.get(id(one), 0.0)
            one.is_relevant = bool(one.bits or beside)
            one.score = own * table.passage * one.own + beside + usual
            one.score += table.speaker if one.is_relevant and one.speaker in speakers else 0.0

    def _read_closely(self, every: Sequence[Chunk]) -> None:
        """The features that need the text of a chunk, for the best ones."""
        table = self._table
        for one in nlargest(_READ_CLOSELY, every, key=lambda one: one.score):
            style = _style_of(self.texts[one.row].text[one.start : one.stop])
            one.score += table.own * style.first_person / 4
            if one.speaker is not None:
                one.score += table.asks * style.question / 100
                one.score += table.timed if self._question.when and style.has_time else 0.0

    def _rescale(self, own: dict[int, float]) -> None:
        """The scores of the notes of one chunk, whose words have these scores among all chunks: what their neighbors
        and conversations add changes by the same factor."""
        every = {row: self._ranking.shares(row) for row in own}
        shares = {row: self._word_share(row) * self._table.words or 1 for row in own}
        before = {row: one.get("words", 0.0) / shares[row] for row, one in every.items()}
        factor = max(own.values(), default=0.0) / (max(before.values(), default=0.0) or 1.0)
        for row, one in every.items():
            others = one.get("neighbors", 0.0) + one.get("conversation", 0.0)
            change = shares[row] * (own[row] - before[row]) + (factor - 1) * others
            self.scores[row] = round(self._ranking.scores[row] + change, 6)

    def _word_share(self, row: int) -> float:
        """The share of a note's own score that its words make up; meaning, where it is known, makes up the rest."""
        return 1.0 - self._table.meaning if row in self._ranking.cosines else 1.0


def _score_words(some: Collection[Chunk], scorer: TermScorer, brevity: float) -> None:
    """The scores of these by their words, as in BM25, 1 for the best."""
    usual = sum(one.words for one in some) / (len(some) or 1) or 1
    for one in some:
        slow = 1.2 * (1 - brevity + brevity * one.words / usual)
        one.own = scorer[one.bits] / (1 + slow)
        for at, often in one.often.items():
            if often > 1:
                one.own += scorer[one.bits & 3 << 3 * at] * (often / (often + slow) - 1 / (1 + slow))
    most = max((one.own for one in some), default=0.0) or 1.0
    for one in some:
        one.own /= most


def _together(some: Sequence[Chunk], bits: int) -> Chunk:
    """The chunks of a note as one, with what else its name says."""
    often = Counter(some[0].often)
    for one in some[1:]:
        often.update(one.often)
    for one in some:
        bits |= one.bits
    return Chunk(some[0].row, some[0].start, some[-1].stop, sum(one.words for one in some), None, bits, often)


class _WordFinder:
    """Finds the words of a question in a text, as the stemmed full-text table would."""

    def __init__(self, words: Sequence[Word]):
        self._runs = [(flatten(word.text), 1 << 3 * at) for at, word in enumerate(words) if is_cjk(word.text)]
        self._stems: list[tuple[set[str], str, int]] = []
        for at, word in enumerate(words):
            if not is_cjk(word.text):
                own = word.spelled or forms(word.text)
                self._stems.append(({stem(one) for one in own}, "", 1 << 3 * at))
                if word.longer_rows:
                    self._stems.append((set(), word.text, 2 << 3 * at))
        every = {one for stems, prefix, _ in self._stems for one in (*stems, prefix) if one}
        heads = sorted({one.removesuffix("y") or one for one in every})
        # Whatever ending a word has, it begins with its stem, and so with the shortest that another begins with.
        self._heads = [head for at, head in enumerate(heads) if not any(map(head.startswith, heads[:at]))]
        self._known: dict[str, int] = {}

    def places(self, flat: str) -> Iterator[tuple[int, int]]:
        """Where in a folded text words of the question stand, and their bits."""
        known = self._known
        for head in self._heads:
            at = flat.find(head)
            while at >= 0:
                if not at or not IN_WORD[flat[at - 1]]:
                    token = word_at(flat, at)
                    bits = known.get(token)
                    if bits is None:
                        bits = known[token] = self._bits(token)
                    if bits:
                        yield at, bits
                at = flat.find(head, at + 1)
        for run, bit in self._runs:
            at = flat.find(run)
            while at >= 0:
                yield at, bit
                at = flat.find(run, at + 1)

    def _bits(self, token: str) -> int:
        found = stem(token)
        each = [bit for stems, prefix, bit in self._stems if found in stems or (prefix and token.startswith(prefix))]
        return reduce(or_, each, 0)


def _term_weights(words: Sequence[Word]) -> dict[parse.Term, float]:
    """What to show in a text, and its weight: words without their endings, mistyped ones as they are spelled (two words
    with one root have the weight of the later one)."""
    weight: dict[str, float] = {}
    for word in (one for one in words if not one.is_weak):
        base = root(word.text)
        for text in (base if len(base) >= _MIN_ROOT else word.text, *word.spelled):
            weight[text] = word.weight
    return {one: weight[text] for text in weight if (one := parse.term(text))}


def _list_items(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """A passage of several list items in parts; each includes what follows it, the first one the heading before."""
    starts = [match.start() for match in _ITEM.finditer(text, start, stop)] if stop - start >= _MIN_LIST else []
    if len(starts) < _MIN_ITEMS:
        return [(start, stop)]
    before = text[start : starts[0]].strip()
    is_heading = before.startswith("#") and "\n" not in before
    starts = [start, *starts[0 if before and not is_heading else 1 :]]
    return list(zip(starts, [*starts[1:], stop], strict=True))


@lru_cache(_CACHED_TEXTS)
def _sized_chunks(text: str) -> list[tuple[int, int, int, str | None]]:
    found = []
    for start, stop in chunk(text):
        match = _SPEAKER.match(text, start)
        speaker = style_of(f"{match.group()} x").speaker if match else None
        found.append((start, stop, round(word_count(text[start:stop])) or 1, speaker))
    return found
