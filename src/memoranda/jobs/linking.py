"""Cross-category analysis: links between memories of different categories that share rare features.

Pure: plans over `MemoryState` values. Source: contract 001, 6.

A pair is *related* if the evidence would link it. All links of a memory to related memories count
towards its limit of 3, even those made by hand, so a second run adds none. Related pairs that were
both `updated` at `now` count towards the limit of 50 per run: with the same clock nothing is left
to do, and a later run makes the next 50. Both counts only grow when a plan is carried out, so a
refused pair is refused again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from heapq import heapify, heappop, heappush, nsmallest
from itertools import chain
from operator import add
from pathlib import Path

from memoranda.jobs.dedup import han_runs, lower_form, words
from memoranda.jobs.job import DREAM, LINK, Action, MemoryState, linked_pairs
from memoranda.note.model import ORGANIZED, REMINDERS

# Two memories are linked from this score on.
LEAST_SCORE = 2.0
MOST_LINKS = 3
"""Links to related memories a memory has when it gets no further ones."""
# Few enough links for a person to look through.
MOST_LINKS_PER_RUN = 50
MOST_TERMS = 3
"""Shared terms of a pair that count."""
# A tag that more memories have says too little.
MOST_WITH_TAG = 10
# A name that more memories have says too little.
MOST_WITH_NAME = 5
# How much a shared tag, link, name and word add to the score.
TAG = 1.0
TARGET = 1.5
NAME = 2.0
TERM = 1.0
_TARGET_LENGTH = 100
# A word with a digit or a sign is a name more often than a plain one.
_MARKED = re.compile(r"[\d_.-]")
# Signs that join the parts of a name.
_SIGNS = re.compile("[_.-]")
# A link, which says by itself what it is about.
_WIKILINK = re.compile(r"!?\[\[[^\[\]\n]{1,400}\]\]")
# Letters of the shortest plain word that is evidence.
_LEAST_LETTERS = 4
# A word with a capital at the beginning of a word, or several joined by hyphens.
_NAME = re.compile(r"(?<![^\s(\"'“‘/])[A-ZÀ-ÖØ-Þ][^\W\d_]+(?:-[A-ZÀ-ÖØ-Þ][^\W\d_]+)*")
# The beginning of a sentence, where a capital does not mean a name.
_BEGINNING = re.compile(
    r"(?:\A|(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bProf)\.|[!?:;\n]|^[-*#>]+)\s*[\"'“‘(]?\Z",
    re.M,
)


def without_wikilinks(text: str) -> str:
    """`text` with a blank for every `[[wikilink]]`: their targets are evidence of their own."""
    if "[[" in text:
        return _WIKILINK.sub(" ", text)
    return text


def evidence_words(low: str) -> set[str]:
    """The words of a plain text that can be evidence: of four letters or more and no stop words, or
    marked by a digit, `_`, `-` or `.` within. Numbers are not marks, but versions, dates and addresses
    are (`3.11.2`). Without wikilinks.
    """
    evidence = set(words(without_wikilinks(low))) - _stop_words()
    letters = {word: sum(map(str.isalpha, word)) for word in evidence}
    return {
        word
        for word in evidence
        if letters[word] >= (1 if _MARKED.search(word) else _LEAST_LETTERS)
        or len(_SIGNS.findall(word)) > 1
    }


def evidence_pairs(low: str) -> set[str]:
    """The pairs of neighbouring Han characters of a plain text that can be evidence. Without
    wikilinks.
    """
    pairs: set[str] = set()
    for run in han_runs(without_wikilinks(low)):
        pairs.update(map(add, run, run[1:]))
    return pairs - _stop_words()


def name_words(text: str) -> tuple[dict[str, str], set[str]]:
    """The capitalized words of a text: lower case to spelling, and those that occur inside a
    sentence.

    Inside a sentence only names have capitals. Wikilinks, weekdays and months are left out.
    """
    words_by_name: dict[str, str] = {}
    within: set[str] = set()
    text = without_wikilinks(text)
    for match in _NAME.finditer(text):
        low = match[0].lower()
        if len(low) > 2 and low not in _stop_words() and low.removesuffix("s") not in _calendar():
            words_by_name.setdefault(low, match[0])
            if not _BEGINNING.search(text[max(0, match.start() - 6) : match.start()]):
                within.add(low)
    return words_by_name, within


@cache
def _calendar() -> frozenset[str]:
    from memoranda.note.timephrase.lexer import table

    return frozenset([*table("english.weekdays"), *table("english.months")])


@cache
def _stop_words() -> frozenset[str]:
    lines = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").splitlines()
    words = " ".join(line for line in lines if not line.startswith("#"))
    return frozenset(words.split())


@dataclass(frozen=True, slots=True)
class _Marked:
    """A memory with the rare marks that can link it to others.

    They are tags, targets of wikilinks and names (folded -> as written), words, and pairs of
    Chinese characters.
    """

    memory: MemoryState
    tags: dict[str, str]
    targets: dict[str, str]
    names: dict[str, str]
    words: set[str]
    pairs: set[str]


def plan_links(memories: Sequence[MemoryState], now: datetime | None = None) -> list[Action]:
    """The links dream level 3 makes, best score first, ties by ids; each `reason` is the evidence
    in words.

    Give all memories, those in the inbox and reminders included: reminders take no part, nor do
    they count when it is asked how many memories have a tag or a term (the engine makes them out of
    other memories' text). Linked are organized memories of one scope and different categories that
    share evidence of LEAST_SCORE or more and are neither linked nor were unlinked. `now` is the
    time such links are stamped with as `updated`.
    """
    pairs = _Pairs(
        sorted(
            (memory for memory in memories if memory.category != REMINDERS),
            key=lambda state: state.id,
        )
    )
    memories_by_id = pairs.memories
    remaining_links = MOST_LINKS_PER_RUN
    if now is not None:
        remaining_links -= sum(
            memories_by_id[a].updated == now == memories_by_id[b].updated for a, b in pairs.related
        )
    actions: list[Action] = []
    if remaining_links > 0:
        heap = pairs.likely()
    else:
        heap = []
    heapify(heap)
    while heap and len(actions) < remaining_links:
        negative_score, a, b = heappop(heap)
        if max(pairs.links[a], pairs.links[b]) < MOST_LINKS:
            score, reasons = pairs.evidence(a, b)
            if -score == negative_score:
                actions.append(
                    Action(
                        DREAM,
                        LINK,
                        memories_by_id[a].id,
                        ", ".join(reasons),
                        memories_by_id[a].path,
                        target=memories_by_id[b].id,
                    )
                )
                pairs.links.update((a, b))
            elif score >= LEAST_SCORE:
                heappush(heap, (-score, a, b))
    return actions


class _Pairs:
    """The memories to link, in the order of their ids, and the marks that each shares with others.

    A pair is two positions in `memories`, the smaller first. `related` are the linked pairs the
    evidence would link, `links` counts them by position.
    """

    def __init__(self, memories: Sequence[MemoryState]):
        marked, self._counts = _rare_marks(memories)
        self._marked = [
            marked_memory for marked_memory in marked if marked_memory.memory.phase == ORGANIZED
        ]
        self.memories = [marked_memory.memory for marked_memory in self._marked]
        self._with = defaultdict[tuple[str, str, str], list[int]](list)
        for position, marked_memory in enumerate(self._marked):
            for kind in ("tags", "targets", "names", "words", "pairs"):
                for mark in getattr(marked_memory, kind):
                    self._with[marked_memory.memory.scope, kind, mark].append(position)
        linked = linked_pairs(self.memories)
        self._closed = linked | linked_pairs(self.memories, "unlinked")
        self.related = [
            (a, b)
            for a, b in linked
            if self.memories[a].scope == self.memories[b].scope
            and self.memories[a].category != self.memories[b].category
            and self.evidence(a, b)[0] >= LEAST_SCORE
        ]
        self.links = Counter(chain.from_iterable(self.related))

    def likely(self) -> list[tuple[float, int, int]]:
        """All pairs the evidence may link that are neither linked nor were unlinked, each with the
        score it has at most, negative: less where neighbouring pairs of characters count once."""
        pairs = []
        for position, mine in enumerate(self._marked):
            marks = defaultdict[int, float](float)
            terms = Counter(self._later(position, words=mine.words, pairs=mine.pairs))
            for weight, kind in ((TAG, "tags"), (TARGET, "targets"), (NAME, "names")):
                for later_position in self._later(position, **{kind: getattr(mine, kind)}):
                    marks[later_position] += weight
            for later_position in marks.keys() | {
                term for term, count in terms.items() if TERM * count >= LEAST_SCORE
            }:
                best_score = marks[later_position] + TERM * min(MOST_TERMS, terms[later_position])
                is_open = (
                    mine.memory.category != self.memories[later_position].category
                    and (position, later_position) not in self._closed
                )
                if best_score >= LEAST_SCORE and is_open:
                    pairs.append((-best_score, position, later_position))
        return pairs

    def _later(self, position: int, **marks: Iterable[str]) -> Iterator[int]:
        """The positions of later memories that have these marks, once for each mark."""
        scope = self.memories[position].scope
        for kind, marks_of_kind in marks.items():
            for mark in marks_of_kind:
                positions = self._with[scope, kind, mark]
                yield from positions[bisect_right(positions, position) :]

    def evidence(self, a: int, b: int) -> tuple[float, list[str]]:
        """The score of the features that two memories share, and each reason in words.

        Reasons are `tag "x"`, `link "y"`, `name "N"`, `term "z"`; only the rarest terms are listed.
        Four Han characters or more count like two terms.
        """
        mine = self._marked[a]
        marked_b = self._marked[b]
        tags = sorted(mine.tags.keys() & marked_b.tags.keys())
        targets = sorted(mine.targets.keys() & marked_b.targets.keys())
        names = sorted(mine.names.keys() & marked_b.names.keys())
        terms = [(self._counts[word], word) for word in mine.words & marked_b.words]
        long = 0
        pairs = mine.pairs & marked_b.pairs
        if pairs:
            for phrase in phrases(mine.memory.content, pairs):
                terms.append(
                    (min(self._counts[pair] for pair in map(add, phrase, phrase[1:])), phrase)
                )
                long += len(phrase) > 3
        best = [f'term "{term}"' for _, term in nsmallest(MOST_TERMS, terms)]
        reasons = [f'tag "{mine.tags[tag]}"' for tag in tags] + [
            f'link "{mine.targets[target]}"' for target in targets
        ]
        reasons += [f'name "{mine.names[name]}"' for name in names]
        score = (
            TAG * len(tags)
            + TARGET * len(targets)
            + NAME * len(names)
            + TERM * min(MOST_TERMS, len(best) + long)
        )
        return score, reasons + best


def phrases(content: str, pairs: Iterable[str]) -> list[str]:
    """The longest pieces of a text made of these pairs of Han characters, no pair used twice."""
    wanted_pairs = set(pairs)
    pieces = [""]
    for run in han_runs(without_wikilinks(lower_form(content))):
        for pair in map(add, run, run[1:]):
            if pair not in wanted_pairs:
                pieces.append("")
            else:
                pieces[-1] += pair[1] if pieces[-1] else pair
        pieces.append("")
    phrase_list = []
    used = set[str]()
    for piece in sorted(filter(None, pieces), key=len, reverse=True):
        piece_pairs = set(map(add, piece, piece[1:]))
        if used.isdisjoint(piece_pairs):
            phrase_list.append(piece)
        used |= piece_pairs
    return phrase_list


def _rare_marks(memories: Sequence[MemoryState]) -> tuple[list[_Marked], Counter[str]]:
    """The marks of each memory that more than one and not too many have, and how many have each
    term.
    """
    tags = Counter[str]()
    targets = Counter[str]()
    terms = Counter[str]()
    names = Counter[str]()
    sure_names: set[str] = set()
    all_marks = []
    for memory in memories:
        marks, names_within = _marks_of(memory)
        all_marks.append(marks)
        sure_names |= names_within
        names.update(marks.names.keys())
        tags.update(marks.tags.keys())
        targets.update(marks.targets.keys())
        terms.update(marks.words | marks.pairs)
    most_memories = max(5, len(memories) // 100)
    rare_terms = {term for term, count in terms.items() if 2 <= count <= most_memories}
    shared_tags = {tag for tag, count in tags.items() if 2 <= count <= MOST_WITH_TAG}
    shared_targets = {target for target, count in targets.items() if count > 1}
    shared_names = {name for name, count in names.items() if 2 <= count <= MOST_WITH_NAME}
    shared_names &= sure_names
    rare_marks = [
        _Marked(
            marks.memory,
            _only(marks.tags, shared_tags),
            _only(marks.targets, shared_targets),
            _only(marks.names, shared_names),
            marks.words & rare_terms,
            marks.pairs & rare_terms,
        )
        for marks in all_marks
    ]
    return rare_marks, terms


def _marks_of(memory: MemoryState) -> tuple[_Marked, set[str]]:
    """All marks of a memory, and the names in it that stand inside a sentence."""
    text = lower_form(memory.content)
    tags = {lower_form(tag).strip(): tag for tag in reversed(memory.tags)}
    targets = {}
    for target in reversed(memory.targets):
        key = lower_form(target).strip()[:_TARGET_LENGTH]
        if key:
            targets[key] = target
    names, names_within = name_words(memory.content)
    marks = _Marked(memory, tags, targets, names, evidence_words(text), evidence_pairs(text))
    return marks, names_within


def _only(marks: Mapping[str, str], kept_keys: Container[str]) -> dict[str, str]:
    """The marks with these keys."""
    return {key: mark for key, mark in marks.items() if key in kept_keys}
