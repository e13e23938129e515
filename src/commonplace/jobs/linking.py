"""Cross-category analysis: links between memories of different categories that have rare things in common.

Pure: plans over `MemoryState` values. Source: contract 001, 6.

A pair is *related* when the evidence would link it. A memory's links to related memories count towards its 3 whoever
made them: so a second run gives it no more. Of the 50 of a run, related pairs both `updated` at `now` are taken as made
by this very run: with the same clock nothing is left to do, with a later one the next 50 are. Both counts only grow
when a plan is carried out, therefore what was refused once is refused again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush, nsmallest
from itertools import chain
from operator import add
from pathlib import Path

from commonplace.jobs.dedup import han_runs, plain, words
from commonplace.jobs.job import LINK, Action, MemoryState, linked_pairs
from commonplace.note.model import ORGANIZED
from commonplace.note.reminder import CATEGORY as REMINDERS

LEAST_SCORE = 2.0
MOST_LINKS = 3
"""Links to related memories a memory has when it gets no more."""
MOST_LINKS_PER_RUN = 50
MOST_TERMS = 3
"""Shared terms of a pair that count."""
MOST_WITH_TAG = 10
MOST_WITH_NAME = 5
TAG, TARGET, NAME, TERM = 1.0, 1.5, 2.0, 1.0
_STRONG = {"tags": (TAG, "tag"), "targets": (TARGET, "link"), "names": (NAME, "name")}
"""Kinds of marks but for terms: what one counts, and what a reason calls it."""
_Marks = Mapping[str, Mapping[str, str]]
"""What ties a memory to others: `tags`, wikilink `targets`, `names`, `words`, and `pairs` of Han characters; each mark
folded, to how it is written."""
_LONGEST = 100  # characters of a target that are compared
_MARKED = re.compile(r"[\d_.-]")
_SIGNS = re.compile("[_.-]")
_WIKILINK = re.compile(r"!?\[\[[^\[\]\n]{1,400}\]\]")
_SHORTEST = 4  # letters of the shortest plain word that is evidence
_NAME = re.compile(r"(?<![^\s(\"'“‘/])[A-ZÀ-ÖØ-Þ][^\W\d_]+(?:-[A-ZÀ-ÖØ-Þ][^\W\d_]+)*")
_BEGINNING = re.compile(r"(?:\A|[.!?:;\n]|^[-*#>]+)\s*[\"'“‘(]?\Z", re.M)


def without_wikilinks(text: str) -> str:
    """`text` with a blank for every `[[wikilink]]`: their targets are evidence of their own."""
    return _WIKILINK.sub(" ", text) if "[[" in text else text


def evidence_words(low: str) -> set[str]:
    """The words of a plain text that can be evidence: of four letters or more and no stop words, or marked by a digit,
    `_`, `-` or `.` within. Numbers are none, but versions, dates and addresses are (`3.11.2`). Without wikilinks."""
    found = set(words(without_wikilinks(low))) - _stop_words()
    letters = {word: sum(map(str.isalpha, word)) for word in found}
    return {
        word for word in found
        if letters[word] >= (1 if _MARKED.search(word) else _SHORTEST) or len(_SIGNS.findall(word)) > 1
    }  # fmt: skip


def evidence_pairs(low: str) -> set[str]:
    """The pairs of neighbouring Han characters of a plain text that can be evidence. Without wikilinks."""
    runs = han_runs(without_wikilinks(low))
    return {pair for run in runs for pair in map(add, run, run[1:])} - _stop_words()


def name_words(text: str) -> tuple[dict[str, str], set[str]]:
    """The words of a text written with a capital: in lower case to how they are written, and those of them that stand
    within a sentence, where only names do. Without wikilinks, weekdays and months."""
    found: dict[str, str] = {}
    within: set[str] = set()
    text = without_wikilinks(text)
    for match in _NAME.finditer(text):
        low = match[0].lower()
        if len(low) > 2 and low not in _stop_words() and low.removesuffix("s") not in _calendar():
            found.setdefault(low, match[0])
            if not _BEGINNING.search(text[max(0, match.start() - 4) : match.start()]):
                within.add(low)
    return found, within


@cache
def _calendar() -> frozenset[str]:
    from commonplace.note.timephrase.vocabulary import table

    return frozenset([*table("english.weekdays"), *table("english.months")])


@cache
def _stop_words() -> frozenset[str]:
    lines = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def plan_links(memories: Sequence[MemoryState], now: datetime | None = None, job: str = "dream") -> list[Action]:
    """The links dream level 3 makes, best score first, ties by ids; each `reason` is the evidence in words.

    Give all memories, those in the inbox and reminders included: reminders take no part, nor do they count when it
    is asked how many memories have a tag or a term (the engine makes them out of other memories' text). Linked are
    organized memories of one scope and different categories that share evidence of LEAST_SCORE or more and are
    neither linked nor were unlinked. `now` is the time such links are stamped with as `updated`.
    """
    pairs = _Pairs(sorted((each for each in memories if each.category != REMINDERS), key=lambda each: each.id))
    known, left = pairs.memories, MOST_LINKS_PER_RUN
    if now is not None:
        left -= sum(known[a].updated == now == known[b].updated for a, b in pairs.related)
    found: list[Action] = []
    for a, b, reasons in pairs.best() if left > 0 else ():
        found.append(Action(job, LINK, known[a].id, ", ".join(reasons), known[a].path, target=known[b].id))
        pairs.links.update((a, b))
        if len(found) == left:
            break
    return found


class _Pairs:
    """The memories that take part, in the order of their ids, and what each shares with which others. A pair is two
    positions in `memories`, the smaller first. `related` are the linked pairs the evidence would link, `links` counts
    them by position."""

    def __init__(self, memories: Sequence[MemoryState]):
        marked, self._counts = _rare_marks(memories)
        self.memories = [memory for memory, _ in marked if memory.phase == ORGANIZED]
        self._marks = [marks for memory, marks in marked if memory.phase == ORGANIZED]
        self._with = defaultdict[tuple[str, str, str], list[int]](list)
        for at, marks in enumerate(self._marks):
            for kind, each in marks.items():
                for mark in each:
                    self._with[self.memories[at].scope, kind, mark].append(at)
        linked = linked_pairs(self.memories)
        self._closed = linked | linked_pairs(self.memories, "unlinked")
        self.related = [(a, b) for a, b in linked if self._may_link(a, b) and self._evidence(a, b)[0] >= LEAST_SCORE]
        self.links = Counter(chain.from_iterable(self.related))

    def _may_link(self, a: int, b: int) -> bool:
        one, other = self.memories[a], self.memories[b]
        return one.scope == other.scope and one.category != other.category

    def best(self) -> Iterator[tuple[int, int, list[str]]]:
        """The pairs to link with the evidence, best first, none with a memory that has all the links it gets. What a
        pair shares is looked at when its upper bound is the highest that is left."""
        queue: list[tuple[float, int, int, list[str] | None]] = [
            (-most, at, other, None) for at in range(len(self.memories)) for most, other in self._candidates(at)
        ]
        heapify(queue)
        while queue:
            _, a, b, reasons = heappop(queue)
            if max(self.links[a], self.links[b]) >= MOST_LINKS:
                continue
            if reasons is not None:
                yield a, b, reasons
                continue
            score, reasons = self._evidence(a, b)
            if score >= LEAST_SCORE:
                heappush(queue, (-score, a, b, reasons))

    def _candidates(self, at: int) -> Iterator[tuple[float, int]]:
        """(the score at most, position) of the later memories that this one may be linked to."""
        if self.links[at] >= MOST_LINKS:
            return
        marks = [(weight, self._shared(at, kind)) for kind, (weight, _) in _STRONG.items()]
        terms = self._shared(at, "words", "pairs")
        others = {other for other, count in terms.items() if TERM * count >= LEAST_SCORE}
        for other in others.union(*(each for _, each in marks)):
            most = sum(weight * each[other] for weight, each in marks) + TERM * min(MOST_TERMS, terms[other])
            if most >= LEAST_SCORE and (at, other) not in self._closed and self._may_link(at, other):
                yield most, other

    def _shared(self, at: int, *kinds: str) -> Counter[int]:
        scope = self.memories[at].scope
        lists = (self._with[scope, kind, mark] for kind in kinds for mark in self._marks[at][kind])
        return Counter(chain.from_iterable([positions[bisect_right(positions, at) :] for positions in lists]))

    def _evidence(self, a: int, b: int) -> tuple[float, list[str]]:
        """The score of what two memories share, and each reason in words: `tag "x"`, `link "y"`, `name "N"`,
        `term "z"`; of the terms the rarest. Four Han characters or more count like two terms."""
        mine, other = self._marks[a], self._marks[b]
        score, reasons = 0.0, list[str]()
        for kind, (weight, name) in _STRONG.items():
            if shared := sorted(mine[kind].keys() & other[kind].keys()):
                score += weight * len(shared)
                reasons += [f'{name} "{mine[kind][each]}"' for each in shared]
        terms = [(self._counts["words"][word], word) for word in mine["words"].keys() & other["words"].keys()]
        long, counts = 0, self._counts["pairs"]
        if pairs := mine["pairs"].keys() & other["pairs"].keys():
            for phrase in phrases(self.memories[a].content, pairs):
                terms.append((min(counts[pair] for pair in map(add, phrase, phrase[1:])), phrase))
                long += len(phrase) > 3
        best = [f'term "{term}"' for _, term in nsmallest(MOST_TERMS, terms)]
        return score + TERM * min(MOST_TERMS, len(best) + long), reasons + best


@lru_cache(maxsize=1)
def _han_positions(content: str) -> tuple[str, dict[str, list[int]]]:
    """The runs of Han characters of a text, one a line, and where each pair of characters stands in them."""
    text = "\n".join(han_runs(without_wikilinks(plain(content))))
    positions = defaultdict[str, list[int]](list)
    for at in range(len(text) - 1):
        positions[text[at : at + 2]].append(at)
    return text, positions


def phrases(content: str, pairs: Iterable[str]) -> list[str]:
    """The longest pieces of a text made of these pairs of Han characters, no pair used twice."""
    text, positions = _han_positions(content)
    pieces: list[tuple[int, int]] = []
    for at in sorted(at for pair in pairs for at in positions.get(pair, ())):
        start = pieces.pop()[0] if pieces and pieces[-1][1] == at + 1 else at
        pieces.append((start, at + 2))
    found, used = [], set[str]()
    for start, end in sorted(pieces, key=lambda piece: (piece[0] - piece[1], piece[0])):
        here = {text[at : at + 2] for at in range(start, end - 1)}
        if used.isdisjoint(here):
            found.append(text[start:end])
        used |= here
    return found


def _rare_marks(memories: Sequence[MemoryState]) -> tuple[list[tuple[MemoryState, _Marks]], Mapping[str, Counter[str]]]:
    """The marks of each memory that more than one and not too many have, and how many have each, by kind."""
    counts, sure, every = defaultdict[str, Counter[str]](Counter), set[str](), []
    for memory in memories:
        low = plain(memory.content)
        names, within = name_words(memory.content)
        sure |= within
        marks: dict[str, dict[str, str]] = {
            "tags": {plain(tag).strip(): tag for tag in reversed(memory.tags)},
            "targets": {plain(each).strip()[:_LONGEST]: each for each in reversed(memory.targets) if each.strip()},
            "names": names,
            "words": dict.fromkeys(evidence_words(low), ""),
            "pairs": dict.fromkeys(evidence_pairs(low), ""),
        }
        for kind, each in marks.items():
            counts[kind].update(each.keys())
        every.append((memory, marks))
    terms = max(5, len(memories) // 100)
    most = {"tags": MOST_WITH_TAG, "targets": len(memories), "names": MOST_WITH_NAME, "words": terms, "pairs": terms}
    rare = {kind: {mark for mark, count in each.items() if 2 <= count <= most[kind]} for kind, each in counts.items()}
    rare["names"] = rare.get("names", set()) & sure
    return [
        (memory, {kind: {mark: each[mark] for mark in each if mark in rare[kind]} for kind, each in marks.items()})
        for memory, marks in every
    ], counts
