"""Cross-category analysis: links between memories of different categories that have rare things in common.

Pure: plans over `Digest` values. Source: contract 001, 6.

The caps and a second run. A pair is *akin* when the evidence would link it. A memory's links to akin memories count
towards its 3 whoever made them and whenever: so a second run gives it no more, and no night adds 3 further ones to a
group of forty. Of the 50 of a run, akin pairs both `updated` at `now` are taken as made by this very run: with the
same clock nothing is left to do, with a later one the next 50 are. Both counts only grow when a plan is carried out,
therefore what was refused once is refused again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush, nsmallest
from itertools import chain, pairwise

from commonplace.jobs.digest import REMINDERS, Digest, Link, linked, parted
from commonplace.jobs.terms import han_runs, plain, telling_pairs, telling_words
from commonplace.note.model import ORGANIZED

LEAST_SCORE = 2.0
MOST_LINKS = 3
"""Links to akin memories a memory has when it gets no more."""
MOST_LINKS_PER_RUN = 50
MOST_TERMS = 3
"""Shared terms of a pair that count."""
MOST_WITH_TAG = 10
TAG, TARGET, TERM = 1.0, 1.5, 1.0
_TARGET_LENGTH = 100
_NO_PARTNER = -1


@dataclass(frozen=True, slots=True)
class _Marks:
    """What can tie a memory to others, rare ones only: tags and wikilink targets (folded, to how they are
    written), words, and pairs of Han characters."""

    tags: dict[str, str]
    targets: dict[str, str]
    words: tuple[str, ...]
    pairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why two memories belong together, each reason in words: `tag "x"`, `link "y"`, `term "z"`."""

    score: float
    words: tuple[str, ...]


def plan_links(digests: Sequence[Digest], now: datetime | None = None) -> tuple[Link, ...]:
    """The links dream level 3 makes, best score first, ties by ids; each `reason` is the evidence in words.

    Give all memories, those in the inbox and reminders included: reminders take no part, nor do they count when it
    is asked how many memories have a tag or a term (the engine makes them out of other memories' text). Linked are
    organized memories of one scope and different categories that share evidence of LEAST_SCORE or more and are
    neither linked nor were unlinked. `now` is the time such links are stamped with as `updated`.
    """
    return _Ground(digests).plan(now)


class _Ground:
    """The memories that take part, in the order of their ids, and what each shares with whom."""

    def __init__(self, digests: Sequence[Digest]):
        counted = sorted((each for each in digests if each.category != REMINDERS), key=lambda each: each.id)
        marks, self._counts = _rare_marks(counted)
        taking_part = [place for place, each in enumerate(counted) if each.phase == ORGANIZED]
        self._digests = [counted[place] for place in taking_part]
        self._marks = [marks[place] for place in taking_part]
        self._by_tag = self._postings(lambda marks: marks.tags)
        self._by_target = self._postings(lambda marks: marks.targets)
        self._by_word = self._postings(lambda marks: marks.words)
        self._by_pair = self._postings(lambda marks: marks.pairs)
        ties = linked(self._digests)
        self._closed = ties | parted(self._digests)
        self._akin = [pair for pair in ties if self._comparable(*pair) and self._score(*pair) >= LEAST_SCORE]
        self._links = Counter(chain.from_iterable(self._akin))

    def plan(self, now: datetime | None) -> tuple[Link, ...]:
        """The best pairs, as many as the caps leave; counts the links it gives."""
        left = MOST_LINKS_PER_RUN - (sum(self._made_at(now, *pair) for pair in self._akin) if now else 0)
        found: list[Link] = []
        for a, b in self._best_first(_Floor(left)) if left > 0 else ():
            if self._links[a] < MOST_LINKS and self._links[b] < MOST_LINKS:
                evidence = self._evidence(a, b)
                own, other = self._digests[a].id, self._digests[b].id
                found.append(Link(own, other, evidence.score, ", ".join(evidence.words)))
                self._links.update((a, b))
            if len(found) == left:
                break
        return tuple(found)

    def _postings(self, of: Callable[[_Marks], Iterable[str]]) -> dict[tuple[str, str], list[int]]:
        """(scope, mark) to the places that have it, rising."""
        found: dict[tuple[str, str], list[int]] = {}
        for place, (digest, marks) in enumerate(zip(self._digests, self._marks, strict=True)):
            for mark in of(marks):
                found.setdefault((digest.scope, mark), []).append(place)
        return {key: places for key, places in found.items() if len(places) > 1}

    def _comparable(self, a: int, b: int) -> bool:
        own, other = self._digests[a], self._digests[b]
        return own.scope == other.scope and own.category != other.category

    def _made_at(self, now: datetime, a: int, b: int) -> bool:
        return self._digests[a].updated == now == self._digests[b].updated

    def _best_first(self, floor: _Floor) -> Iterator[tuple[int, int]]:
        """Pairs of places with enough evidence, best score first, ties by place; not all of those that come too
        late to be of use.

        A memory waits in the queue with the most it could reach, and only at its turn is compared with those after
        it. Not all of its pairs are kept: to refuse one takes a partner filled up in this run, of which a link makes
        two at most.
        """
        queue = [
            (-most, place, _NO_PARTNER)
            for place in range(len(self._digests))
            if self._links[place] < MOST_LINKS and (most := self._reach(place)) >= LEAST_SCORE
        ]
        heapify(queue)
        most_pairs = 2 * MOST_LINKS_PER_RUN + MOST_LINKS
        while queue:
            most, place, partner = heappop(queue)
            if partner != _NO_PARTNER:
                yield place, partner
            elif self._links[place] < MOST_LINKS and -most >= floor.score:
                best = nsmallest(most_pairs, self._partners(place, floor.score))
                for score, other in best:
                    heappush(queue, (score, place, other))
                if best:
                    floor.raise_by(-best[0][0], place, best[0][1])

    def _reach(self, place: int) -> float:
        """No score of this memory is higher."""
        scope, marks = self._digests[place].scope, self._marks[place]
        tags = sum((scope, tag) in self._by_tag for tag in marks.tags)
        targets = sum((scope, target) in self._by_target for target in marks.targets)
        terms = sum((scope, word) in self._by_word for word in marks.words)
        terms += sum((scope, pair) in self._by_pair for pair in marks.pairs) if terms < MOST_TERMS else 0
        return TAG * tags + TARGET * targets + TERM * min(MOST_TERMS, terms)

    def _partners(self, place: int, least: float) -> Iterator[tuple[float, int]]:
        """(score, negative; place) of the later memories that this one may be linked to with `least` or more."""
        marks = self._marks[place]
        words = self._shared(place, self._by_word, marks.words)
        pairs = self._shared(place, self._by_pair, marks.pairs)
        tags = self._shared(place, self._by_tag, marks.tags)
        targets = self._shared(place, self._by_target, marks.targets)
        needed = (least - TAG * max(tags.values(), default=0) - TARGET * max(targets.values(), default=0)) / TERM
        if needed > min(MOST_TERMS, max(words.values(), default=0) + max(pairs.values(), default=0)):
            return
        others = {other for count in (words, pairs) for other, n in count.items() if n >= needed}
        others |= words.keys() & pairs.keys()
        if needed <= 0:
            others |= tags.keys() | targets.keys()
        places = _Places(self._digests[place].content) if pairs else None
        for other in others:
            sure, more = TAG * tags[other] + TARGET * targets[other], pairs[other]
            terms = min(MOST_TERMS, words[other] + more)
            if sure + TERM * terms < least or not self._open(place, other):
                continue
            if places and more > 1 and words[other] < MOST_TERMS:
                phrases = places.phrases(set(marks.pairs).intersection(self._marks[other].pairs))
                terms = min(MOST_TERMS, words[other] + len(phrases))
            score = sure + TERM * terms
            if score >= least:
                yield -score, other

    def _shared(self, place: int, postings: dict[tuple[str, str], list[int]], marks: Iterable[str]) -> Counter[int]:
        """How many of these marks each memory after `place` has."""
        scope = self._digests[place].scope
        lists = (postings[scope, mark] for mark in marks if (scope, mark) in postings)
        return Counter(chain.from_iterable([places[bisect_right(places, place) :] for places in lists]))

    def _open(self, place: int, other: int) -> bool:
        return (
            self._digests[place].category != self._digests[other].category
            and self._links[other] < MOST_LINKS
            and (place, other) not in self._closed
        )

    def _score(self, a: int, b: int) -> float:
        return self._evidence(a, b).score

    def _evidence(self, a: int, b: int) -> Evidence:
        """What two memories share; of the terms the rarest."""
        own, other = self._marks[a], self._marks[b]
        tags = sorted(own.tags.keys() & other.tags.keys())
        targets = sorted(own.targets.keys() & other.targets.keys())
        terms = [(self._counts[word], word) for word in set(own.words).intersection(other.words)]
        pairs = set(own.pairs).intersection(other.pairs)
        if pairs:
            for phrase in _Places(self._digests[a].content).phrases(pairs):
                rarest = min(self._counts[pair] for pair in map("".join, pairwise(phrase)))
                terms.append((rarest, phrase))
        best = [term for _, term in sorted(terms)[:MOST_TERMS]]
        words = [f'tag "{own.tags[tag]}"' for tag in tags]
        words += [f'link "{own.targets[target]}"' for target in targets]
        words += [f'term "{term}"' for term in best]
        return Evidence(TAG * len(tags) + TARGET * len(targets) + TERM * len(best), tuple(words))


class _Floor:
    """The score no accepted pair will be below, as it rises while pairs are found.

    Pairs that have no memory in common are counted. Accepting best pairs first under the caps gives at least half
    as many as any other way to choose, so twice the wanted number of such pairs is enough.
    """

    def __init__(self, wanted: int):
        self.score = LEAST_SCORE
        self._enough = 2 * wanted
        self._best: list[float] = []
        self._taken: set[int] = set()

    def raise_by(self, score: float, a: int, b: int) -> None:
        """A pair was found."""
        if a in self._taken or b in self._taken:
            return
        self._taken.update((a, b))
        heappush(self._best, score)
        if len(self._best) > self._enough:
            heappop(self._best)
        if len(self._best) == self._enough:
            self.score = self._best[0]


class _Places:
    """Where each pair of Han characters stands in a text, so that shared ones that overlap can be taken as one."""

    def __init__(self, content: str):
        self._text = "\n".join(han_runs(plain(content)))
        self._at: dict[str, list[int]] = {}
        for place in range(len(self._text) - 1):
            self._at.setdefault(self._text[place : place + 2], []).append(place)

    def phrases(self, pairs: Iterable[str]) -> list[str]:
        """The longest pieces of the text made of these pairs, no pair used twice."""
        places = sorted(place for pair in pairs for place in self._at.get(pair, ()))
        pieces: list[list[int]] = []
        for place in places:
            if pieces and pieces[-1][-1] == place - 1:
                pieces[-1].append(place)
            else:
                pieces.append([place])
        found, used = [], set[str]()
        for piece in sorted(pieces, key=lambda piece: (-len(piece), piece[0])):
            here = {self._text[place : place + 2] for place in piece}
            if used.isdisjoint(here):
                found.append(self._text[piece[0] : piece[-1] + 2])
            used |= here
        return found


def _rare_marks(digests: Sequence[Digest]) -> tuple[list[_Marks], Counter[str]]:
    """The marks of each memory that more than one and not too many have, and how many have each term."""
    own: dict[str, str] = {}
    found = []
    tags, targets, terms = Counter[str](), Counter[str](), Counter[str]()
    for digest in digests:
        low = plain(digest.content)
        marks = _Marks(
            {plain(tag).strip(): tag for tag in reversed(digest.tags)},
            {key: target for target in reversed(digest.targets) if (key := plain(target).strip()[:_TARGET_LENGTH])},
            tuple([own.setdefault(word, word) for word in telling_words(low)]),
            tuple([own.setdefault(pair, pair) for pair in telling_pairs(han_runs(low))]),
        )
        tags.update(marks.tags.keys())
        targets.update(marks.targets.keys())
        terms.update(marks.words)
        terms.update(marks.pairs)
        found.append(marks)
    rare = {term for term, n in terms.items() if 2 <= n <= max(5, len(digests) // 100)}
    return [
        _Marks(
            {key: tag for key, tag in marks.tags.items() if 2 <= tags[key] <= MOST_WITH_TAG},
            {key: target for key, target in marks.targets.items() if targets[key] > 1},
            tuple([word for word in marks.words if word in rare]),
            tuple([pair for pair in marks.pairs if pair in rare]),
        )
        for marks in found
    ], terms
