"""The passages of the best notes: turns, list items, paragraphs of about 200 words, weighed as notes are.

A long note holds many words of a question and says little about most of them. The notes that answer best are
therefore read, and each passage is weighed by the features of `weights`, as if it were a note in a sitting of its own:
its neighbours lend it their words, its note is the sitting, title and headings are known of it, and its speaker and
the note's date count. The best passage speaks for its note.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from heapq import nlargest
from operator import or_

from commonplace.index import expression as ex
from commonplace.index import kin, weights
from commonplace.index.asking import Answers, Telling
from commonplace.index.cutting import Piece, pieces
from commonplace.index.ranking import Asked, best_first, texts
from commonplace.index.scoring import Text
from commonplace.index.standing import SHORT, manner
from commonplace.index.wording import Word
from commonplace.text.tokens import IN_WORD, flatten, is_cjk, word_at

MOST, MORE = 40, 20
"""So many of the best notes are read, and so many long ones that come behind them."""

_ROOM, _NOTE_ROOM = 250_000, 40_000
_PREFIX_FROM, _LEAST_ROOT = 4, 4
"""Letters from which on a word stands for what it begins, and a word without its ending for the word."""
_CLOSER = 60
_DOUBLED = re.compile(r"([bdfgmnprt])\1$")


@dataclass(slots=True)
class Passage:
    """A piece `text[start:stop]` of the note in `row`, with so many `words`, `said` by somebody or not: what it holds
    of the question's words (three bits each, as in `asking`), and its score (higher = better)."""

    row: int
    start: int
    stop: int
    words: int
    said: str | None
    bits: int = 0
    score: float = 0.0
    worth: float = 0.0
    told: bool = False


def chosen(found: Answers, first: Sequence[int]) -> list[int]:
    """The notes to read: `first`, the best ones, and the long ones behind them: whole, they are worth little."""
    known = found.weighing.known if found.weighing else {}
    inside = set(first)
    rest = [row for row, note in known.items() if note.long and row not in inside]
    return [*first, *nlargest(MORE, rest, key=lambda row: (found.scores.get(row, 0.0), row))]


def sought(found: Answers) -> dict[ex.Term, float]:
    """What to look for in a text, and how much it tells: words without their endings, mistyped ones as they are spelled
    (what two words come to has the weight of the later one)."""
    weight: dict[str, float] = {}
    for word in words_of(found):
        root = kin.root(word.text)
        for text in (root if len(root) >= _LEAST_ROOT else word.text, *word.spelled):
            weight[text] = word.weight
    return {one: weight[text] for text in weight if (one := ex.term(text))}


def words_of(found: Answers) -> Sequence[Word]:
    """The words of the question that some note holds."""
    return found.weighing.words if found.weighing else ()


class Reading:
    """The notes `rows`, the best ones for a question, read passage by passage."""

    def __init__(self, asked: Asked, found: Answers, rows: Sequence[int], *, every: bool = False):
        self.found, self.table, self._kept = found, weights.WEIGHTS, asked.kept
        self.words = words_of(found)
        if found.weighing is not None:
            self._weighing = found.weighing
        known = found.weighing.known if found.weighing else {}
        self.known = {row: known[row] for row in rows if row in known}
        self.weights = sought(found)
        self.terms = list(self.weights)
        long = [row for row, note in self.known.items() if note.long]
        self.texts = {one.row: one for one in texts(asked.db, rows if every else long, self.terms)}
        self.passages: dict[int, list[Passage]] = {}
        room = _ROOM
        for row in long:
            if room > 0:
                cuts = self._cut(self.texts[row])
                room -= sum([one.stop - one.start for one in cuts])
                if len(cuts) > 1:
                    self.passages[row] = [Passage(row, *one) for one in cuts]
        self.scores = {row: found.scores[row] for row in rows if row in found.scores}
        if self.passages:
            self._weigh()
        self.read = frozenset(rows)
        again = best_first(asked.db, self.scores) if self.passages else []
        self.order = list(dict.fromkeys([*again, *rows]))
        """The notes best first."""
        self._least = min(self.scores.values(), default=0.0)

    @cached_property
    def _wanted(self) -> _Wanted:
        return _Wanted(self.words)

    def best(self, row: int) -> Passage | None:
        """The passage that speaks for a note; None for a note that is one passage."""
        some = self.passages.get(row)
        return max(some, key=lambda one: one.score) if some else None

    def ranked(self, rows: Sequence[int]) -> list[tuple[int, int, int, float]]:
        """All passages of the notes `rows` that say something of the question, best first: note, start, stop, score.
        A note that was not cut is one passage."""
        found = []
        for row in rows:
            if row in self.passages:
                found += [(row, one.start, one.stop, one.score) for one in self.passages[row] if one.told]
            elif row in self.texts:
                found.append((row, *self._whole(self.texts[row]), self.score(row)))
        return sorted(found, key=lambda one: -one[3])

    def score(self, row: int) -> float:
        """The score of a note; one that was not read is worth no more than the last that was."""
        return self.scores.get(row, min(self.found.scores.get(row, 0.0), self._least))

    def shares(self, row: int) -> dict[str, float]:
        """What each feature adds to the score of a note; `passage` is what its best passage adds or takes."""
        change = round(self.score(row) - self.found.scores.get(row, 0.0), 3)
        return self.found.shares(row) | ({"passage": change} if change and row in self.scores else {})

    def why(self, row: int) -> list[str]:
        """In words, why a note was found."""
        held = self.found.held(row)
        if not held:
            return ["meaning"] if self.found.is_meant(row) else []
        spelled = [one for word in self.words if word.text in held for one in word.spelled]
        return [f"words: {', '.join(held)}", *([f"spelled: {', '.join(spelled)}"] if spelled else [])]

    def _whole(self, text: Text) -> tuple[int, int]:
        """All of a short text; of a long one there was no room to weigh, the first passage with most of the words."""
        if len(text.text) <= SHORT:
            return 0, len(text.text)

        def held(piece: Piece) -> int:
            places = self._wanted.places(flatten(text.text[piece.start : piece.stop]))
            return reduce(or_, (bits for _, bits in places), 0).bit_count()

        return max(self._cut(text), key=held)[:2]

    def _cut(self, text: Text) -> list[Piece]:
        """The pieces of a note, of a very long one those that hold a word, as far as there is room."""
        held, found, size = self._kept.pieces, [], 0
        for start, stop in text.spans or [(0, len(text.text))]:
            if size > _NOTE_ROOM:
                break
            key = (text.row, start, stop)
            cuts = held.get(key)
            if cuts is None:
                cuts = pieces(text.text, start, stop)
                held.keep(key, cuts, 160 * len(cuts))
            found += cuts
            size += stop - start
        return found

    def _weigh(self) -> None:
        """The scores of all passages, and of the notes: that of the best passage, on the same scale as short notes."""
        self._find_words()
        voices = self._all_voices()
        tell = Telling(self.words, voices - self._weighing.voices)
        shorts = [row for row in self.known if row not in self.passages]
        held = {row: self._weighing.bits.get(row, 0) for row in shorts}
        every = [one for some in self.passages.values() for one in some]
        telling = [one for one in every if one.bits]
        sizes = [one.words for one in telling] + [self.known[row].words for row in shorts]
        usual = sum(sizes) / (len(sizes) or 1) or 1
        for one in telling:
            one.worth = tell[one.bits] / self._length(one.words, usual)
        worth = {row: tell[bits] / self._length(self.known[row].words, usual) for row, bits in held.items()}
        most = max([one.worth for one in telling] + list(worth.values()), default=0.0) or 1.0
        for one in telling:
            one.worth /= most
        together = {row: tell[reduce(or_, (one.bits for one in some))] for row, some in self.passages.items()}
        full = max([*together.values(), *map(tell.__getitem__, held.values())], default=0.0) or 1.0
        lent = self._lend(telling)
        for row, some in self.passages.items():
            self._score(row, some, lent, voices, together[row] / full)
        self._look_closer(every)
        for row, some in self.passages.items():
            self.scores[row] = self._blended(row, max(one.score for one in some))
        self._rescale({row: value / most for row, value in worth.items()})

    def _find_words(self) -> None:
        """Which words of the question stand in which passage."""
        for row, some in self.passages.items():
            text, named = self.texts[row], self._named(row)
            starts = [one.start for one in some]
            for start, stop in text.spans or [(0, len(text.text))]:
                if start >= some[-1].stop:
                    break  # of so long a text no more is read
                for at, bits in self._wanted.places(flatten(text.text[start:stop])):
                    some[bisect_right(starts, start + at) - 1].bits |= bits | named

    def _all_voices(self) -> set[str]:
        """Those whom the question names and who say a note or a passage."""
        self._speakers = {row: {one.said for one in some} for row, some in self.passages.items()}
        there = set().union(*self._speakers.values())
        return self._weighing.voices | {word.text for word in self.words if word.text in there}

    def _rescale(self, worth: dict[int, float]) -> None:
        """The scores of the notes of one passage, their words being worth so much against those of all passages: what
        stands beside them is worth more by as much."""
        table, every = self.table, {row: self.found.shares(row) for row in worth}
        shares = {row: self._by_words(row) * table.words or 1 for row in worth}
        before = {row: one.get("words", 0.0) / shares[row] for row, one in every.items()}
        more = max(worth.values(), default=0.0) / (max(before.values(), default=0.0) or 1.0)
        for row, one in every.items():
            others = one.get("beside", 0.0) + one.get("sitting", 0.0)
            change = shares[row] * (worth[row] - before[row]) + (more - 1) * others
            self.scores[row] = self._blended(row, self.found.scores[row] + change)

    def _blended(self, row: int, score: float) -> float:
        """The score of a note whose best passage has this score."""
        before = self.found.scores[row]
        return round(before + self.table.passage * (score - before), 6)

    def _by_words(self, row: int) -> float:
        """The share of a note's worth that its words make up: where its meaning is known, that makes up the rest."""
        return 1.0 - self.table.meaning if row in self._weighing.meant else 1.0

    def _named(self, row: int) -> int:
        """The bits of the words that title, headings or tags of the note hold."""
        bits, found = self._weighing.bits.get(row, 0), 0
        for at in range(len(self.words)):
            found |= bits & (4 << 3 * at)
        return found

    def _length(self, words: int, usual: float) -> float:
        share = self.table.brevity
        return 1 + 1.2 * (1 - share + share * words / usual)

    def _lend(self, every: Sequence[Passage]) -> dict[int, float]:
        """What the best passages lend to those beside them, by the passage's identity."""
        table, found = self.table, {}
        places = {id(one): (some, at) for some in self.passages.values() for at, one in enumerate(some)}
        shares = ((1, table.before), (2, table.around), (3, table.around),
                  (-1, table.after), (-2, table.around), (-3, table.around))  # fmt: skip
        for one in nlargest(table.sources, every, key=lambda one: one.worth):
            some, at = places[id(one)]
            for step, share in shares:
                if 0 <= at + step < len(some):
                    other = id(some[at + step])
                    found[other] = found.get(other, 0.0) + share * one.worth
        return found

    def _score(self, row: int, some: list[Passage], lent: dict[int, float], voices: set[str], told: float) -> None:
        """All features of the passages of a note but those that need its very words."""
        table, asks, note = self.table, self._weighing.asks, self.known[row]
        best = max(one.worth for one in some)
        day = sum(period.share(note.day) for period in asks.periods)
        usual = table.sitting * best + table.session * told + table.date * day
        share, usual = self._by_words(row), usual + self.found.shares(row).get("meaning", 0.0)
        usual += table.present if voices & self._speakers[row] else 0.0
        for one in some:
            beside = lent.get(id(one), 0.0)
            one.score = table.words * share * one.worth + beside + usual
            one.told = bool(one.bits or beside)
            if one.told and one.said in voices:
                one.score += table.said

    def _look_closer(self, every: Sequence[Passage]) -> None:
        """The features that need the words of a passage, for the best ones."""
        table, asks = self.table, self._weighing.asks
        for one in nlargest(_CLOSER, every, key=lambda one: one.score):
            key, held = (one.row, one.start, one.stop), self._kept.manners
            how = held.get(key) or held.keep(key, manner(self.texts[one.row].text[one.start : one.stop]))
            one.score += table.asks * how.asks / 100 + table.own * how.own / 4
            if asks.when and how.timed:
                one.score += table.timed


class _Wanted:
    """Tells which words of the question a text holds, as the stemmed full-text table would."""

    def __init__(self, words: Sequence[Word]):
        self._runs: list[tuple[str, int]] = []
        self._own: list[tuple[set[str], int]] = []
        self._akin: list[tuple[set[str], str, int]] = []
        for at, word in enumerate(words):
            bit = 1 << 3 * at
            if is_cjk(word.text):
                self._runs.append((flatten(word.text), bit))
                continue
            self._own.append(({stem(one) for one in (word.spelled or kin.forms(word.text))}, bit))
            if word.akin:
                begins = word.text if len(word.text) >= _PREFIX_FROM else ""
                self._akin.append(({stem(one) for one in kin.akin(word.text)}, begins, bit << 1))
        roots = [root for some in (*self._own, *self._akin) for root in some[0]]
        roots += [begins for _, begins, _ in self._akin if begins]
        heads = sorted({root.removesuffix("y") or root for root in roots})
        # Whatever ending a word has, it begins with its stem, and so with the shortest that another begins with.
        self._heads = [head for at, head in enumerate(heads) if not any(map(head.startswith, heads[:at]))]
        self._known: dict[str, int] = {}

    def places(self, flat: str) -> Iterator[tuple[int, int]]:
        """Where in `flat`, a text as `flatten` gives it, words of the question stand, and their bits."""
        known = self._known
        for head in self._heads:
            at = flat.find(head)
            while at >= 0:
                if not at or not IN_WORD[flat[at - 1]]:
                    token = word_at(flat, at)
                    bits = known.get(token)
                    if bits is None:
                        bits = known[token] = self._of(token)
                    if bits:
                        yield at, bits
                at = flat.find(head, at + 1)
        for run, bit in self._runs:
            at = flat.find(run)
            while at >= 0:
                yield at, bit
                at = flat.find(run, at + 1)

    def _of(self, token: str) -> int:
        root, found = stem(token), 0
        for roots, bit in self._own:
            if root in roots:
                found |= bit
        for roots, begins, bit in self._akin:
            if root in roots or (begins and token.startswith(begins)):
                found |= bit
        return found


def stem(word: str) -> str:
    """An English word without its ending: `planned`, `planning` and `plan` are one."""
    root = kin.root(word)
    if root != word:
        root = _DOUBLED.sub(r"\1", root)
    return root[:-1] if root.endswith("y") and len(root) > 3 else root
