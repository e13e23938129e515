"""Link memories of different categories that share rare marks: tags, wikilinks, names, words.

All functions are pure: they plan over `MemoryState` values. Source: contract 001, 6.

Each shared mark adds to the score of a pair of memories. A pair with a high score is *related*.
There are two limits:
- A memory gets no further link once it has 3 links to related memories. Links made by hand count,
  too. So a second run adds none.
- A run makes 50 links. Links whose two memories were both `updated` at `now` count as made by this
  run. So a second run with the same clock adds none, and a later run makes the next 50.
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
from pathlib import Path
from typing import NamedTuple

from memoranda.jobs.dedup import han_runs, lower_form, neighbouring_pairs, words
from memoranda.jobs.job import DREAM, LINK, Action, MemoryState, linked_pairs
from memoranda.note.model import ORGANIZED, REMINDERS

# Two memories are linked from this score on.
LEAST_SCORE = 2.0
MOST_LINKS = 3
"""Number of links to related memories with which a memory gets no further ones."""
# Few enough links for a person to look through.
MOST_LINKS_PER_RUN = 50
MOST_TERMS = 3
"""Number of shared terms (words and pairs of Han characters) that count for the score."""
# A tag that more memories have says too little.
MOST_WITH_TAG = 10
# A name that more memories have says too little.
MOST_WITH_NAME = 5
# A term is rare in up to 5 memories, or in one of 100 memories if these are more.
_MOST_WITH_TERM = 5
_MEMORIES_PER_TERM = 100
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
# A link to another note: `[[Anna]]`, `![[plan.png]]`.
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
    """Replace every `[[wikilink]]` of a text by a blank. Their targets are a mark of another kind."""
    if "[[" in text:
        return _WIKILINK.sub(" ", text)
    return text


def evidence_words(lower_text: str) -> set[str]:
    """Return the words of a text in lower form that can be evidence, outside of wikilinks.

    These are words of four letters or more (`kubernetes`), shorter ones with a digit or a sign
    (`py3`, `a-b`), and versions, dates and addresses (`3.11.2`). Stop words and numbers are not.
    """
    candidates = set(words(without_wikilinks(lower_text))) - _stop_words()
    evidence = set[str]()
    for word in candidates:
        letter_count = sum(map(str.isalpha, word))
        least_letters = 1 if _MARKED.search(word) else _LEAST_LETTERS
        has_several_signs = len(_SIGNS.findall(word)) > 1
        if letter_count >= least_letters or has_several_signs:
            evidence.add(word)
    return evidence


def evidence_pairs(lower_text: str) -> set[str]:
    """Return the pairs of neighbouring Han characters that can be evidence, outside of wikilinks.

    `喝绿茶` has the pairs `喝绿` and `绿茶`.
    """
    pairs: set[str] = set()
    for run in han_runs(without_wikilinks(lower_text)):
        pairs.update(neighbouring_pairs(run))
    return pairs - _stop_words()


def name_words(text: str) -> tuple[dict[str, str], set[str]]:
    """Find the words of a text with a capital, and which of them are surely names.

    `Tea for Anna Berg` has `{"tea": "Tea", "anna": "Anna", "berg": "Berg"}`. Sure names are `anna`
    and `berg`, since inside a sentence only names have a capital. Wikilinks, weekdays and months
    are left out.
    """
    spelling_by_name: dict[str, str] = {}
    sure_names: set[str] = set()
    text = without_wikilinks(text)
    for match in _NAME.finditer(text):
        lower_name = match[0].lower()
        is_stop_word = lower_name in _stop_words()
        is_of_calendar = lower_name.removesuffix("s") in _calendar()
        is_too_short = len(lower_name) <= 2
        if is_too_short or is_stop_word or is_of_calendar:
            continue
        spelling_by_name.setdefault(lower_name, match[0])
        # `_BEGINNING` needs only a few characters before the word.
        text_before = text[max(0, match.start() - 6) : match.start()]
        if not _BEGINNING.search(text_before):
            sure_names.add(lower_name)
    return spelling_by_name, sure_names


@cache
def _calendar() -> frozenset[str]:
    """Return the English names of weekdays and months in lower case."""
    from memoranda.note.timephrase.lexer import table

    return frozenset([*table("english.weekdays"), *table("english.months")])


@cache
def _stop_words() -> frozenset[str]:
    """Read stopwords.txt: words that are too frequent to be evidence."""
    lines = Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").splitlines()
    words = " ".join(line for line in lines if not line.startswith("#"))
    return frozenset(words.split())


@dataclass(frozen=True, slots=True)
class _Marked:
    """A memory with the rare marks that can link it to others.

    tags, targets, names: the spelling of each tag, target of a wikilink and name, by its lower form.
    words: words in lower form.
    pairs: pairs of Han characters.
    """

    memory: MemoryState
    tags: dict[str, str]
    targets: dict[str, str]
    names: dict[str, str]
    words: set[str]
    pairs: set[str]


def plan_links(memories: Sequence[MemoryState], now: datetime | None = None) -> list[Action]:
    """Plan the links of dream level 3, the best score first, equal scores by ids.

    Two memories are linked if they are organized, have one scope and different categories, and
    their score is LEAST_SCORE or more. Pairs that are linked already, or whose link somebody
    removed, are left out. The `reason` of an action is the evidence in words:
    `tag "tea", name "Anna"`.

    memories: all memories. Those in the inbox only count for how rare a mark is. Reminders are
        ignored, as they repeat the text of other memories.
    now: the `updated` that this run gives to linked memories. Links that already have it count for
        the limit of the run. With None, no earlier link counts.
    """
    compared = [memory for memory in memories if memory.category != REMINDERS]
    pairs = _Pairs(sorted(compared, key=lambda state: state.id))
    states = pairs.memories
    remaining_links = MOST_LINKS_PER_RUN
    if now is not None:
        remaining_links -= pairs.count_linked_at(now)

    actions: list[Action] = []
    heap = pairs.likely() if remaining_links > 0 else []
    heapify(heap)
    while heap and len(actions) < remaining_links:
        likely = heappop(heap)
        a = likely.a
        b = likely.b
        # A link of this run may have been the last one that the memory gets.
        if max(pairs.links[a], pairs.links[b]) >= MOST_LINKS:
            continue
        # The score in the heap is an upper limit, as the exact score takes longer to compute. If it
        # was too high, the pair goes back into the heap with its exact score.
        evidence = pairs.evidence(a, b)
        if evidence.score == -likely.negative_score:
            reason = ", ".join(evidence.reasons)
            actions.append(
                Action(
                    job=DREAM,
                    verb=LINK,
                    id=states[a].id,
                    reason=reason,
                    path=states[a].path,
                    target=states[b].id,
                )
            )
            pairs.links.update((a, b))
        elif evidence.score >= LEAST_SCORE:
            heappush(heap, _LikelyPair(-evidence.score, a, b))
    return actions


class _LikelyPair(NamedTuple):
    """Two memories that may be linked. In a heap, the pair with the highest score comes first.

    negative_score: minus the score.
    a, b: the positions of the memories, the smaller first.
    """

    negative_score: float
    a: int
    b: int


class _Evidence(NamedTuple):
    """The reasons to link two memories.

    score: the score of the marks that they share.
    reasons: the marks in words: `tag "tea"`.
    """

    score: float
    reasons: list[str]


class _Pairs:
    """Find pairs of memories that share rare marks. A pair is two positions, the smaller first.

    memories: the organized memories, in the order of their ids.
    related: the linked pairs that the evidence would link as well.
    links: how many related pairs each memory is in, by position.
    """

    def __init__(self, memories: Sequence[MemoryState]):
        marked_memories, self._term_counts = _rare_marks(memories)
        self._marked = [marked for marked in marked_memories if marked.memory.phase == ORGANIZED]
        self.memories = [marked.memory for marked in self._marked]
        # The positions of the memories with a mark, by scope, kind of mark and mark.
        self._positions = defaultdict[tuple[str, str, str], list[int]](list)
        for position, marked_memory in enumerate(self._marked):
            for kind in ("tags", "targets", "names", "words", "pairs"):
                for mark in getattr(marked_memory, kind):
                    self._positions[marked_memory.memory.scope, kind, mark].append(position)
        linked = linked_pairs(self.memories)
        self._excluded_pairs = linked | linked_pairs(self.memories, "unlinked")
        self.related = [(a, b) for a, b in linked if self._are_related(a, b)]
        self.links = Counter(chain.from_iterable(self.related))

    def _are_related(self, a: int, b: int) -> bool:
        """Whether two memories would be linked if they were not linked yet.

        a, b: the positions of the memories.
        """
        memory_a = self.memories[a]
        memory_b = self.memories[b]
        if memory_a.scope != memory_b.scope or memory_a.category == memory_b.category:
            return False
        return self.evidence(a, b).score >= LEAST_SCORE

    def count_linked_at(self, time: datetime) -> int:
        """Return how many related pairs were linked at `time`: both memories were updated then."""
        count = 0
        for a, b in self.related:
            is_a_updated_then = self.memories[a].updated == time
            is_b_updated_then = self.memories[b].updated == time
            if is_a_updated_then and is_b_updated_then:
                count += 1
        return count

    def likely(self) -> list[_LikelyPair]:
        """Return the pairs that may be linked.

        The score is an upper limit. The exact one is lower where neighbouring pairs of Han
        characters are one term. Pairs that are linked or whose link was removed are left out.
        """
        pairs = []
        for position, marked_memory in enumerate(self._marked):
            mark_scores = self._scores_without_terms(position)
            term_counts = Counter(
                self._later(position, words=marked_memory.words, pairs=marked_memory.pairs)
            )
            # The terms alone may be enough for a link. Fewer terms need a tag, target or name, too.
            with_enough_terms = {
                later_position
                for later_position, count in term_counts.items()
                if TERM * count >= LEAST_SCORE
            }
            for later_position in mark_scores.keys() | with_enough_terms:
                counted_terms = min(MOST_TERMS, term_counts[later_position])
                best_score = mark_scores[later_position] + TERM * counted_terms
                if best_score < LEAST_SCORE:
                    continue
                if (position, later_position) in self._excluded_pairs:
                    continue
                other_category = self.memories[later_position].category
                if marked_memory.memory.category != other_category:
                    pairs.append(_LikelyPair(-best_score, position, later_position))
        return pairs

    def _scores_without_terms(self, position: int) -> dict[int, float]:
        """Return the scores of the tags, targets and names that a memory shares with later ones.

        The keys are the positions of the later memories. A missing one has the score 0.
        """
        marked_memory = self._marked[position]
        scores = defaultdict[int, float](float)
        for later_position in self._later(position, tags=marked_memory.tags):
            scores[later_position] += TAG
        for later_position in self._later(position, targets=marked_memory.targets):
            scores[later_position] += TARGET
        for later_position in self._later(position, names=marked_memory.names):
            scores[later_position] += NAME
        return scores

    def _later(self, position: int, **marks: Iterable[str]) -> Iterator[int]:
        """Yield the positions of later memories in the same scope that have one of these marks.

        A position is yielded once for each of its marks.

        position: the position of this memory.
        marks: the marks to look for, by their kind: `tags`, `targets` and so on.
        """
        scope = self.memories[position].scope
        for kind, marks_of_kind in marks.items():
            for mark in marks_of_kind:
                positions = self._positions[scope, kind, mark]
                yield from positions[bisect_right(positions, position) :]

    def evidence(self, a: int, b: int) -> _Evidence:
        """Return the score of the marks that two memories share, and each mark in words.

        These are `tag "x"`, `link "y"`, `name "N"`, `term "z"`; only the rarest terms are listed. A
        term of four Han characters or more counts like two terms.

        a, b: the positions of the memories.
        """
        marked_a = self._marked[a]
        marked_b = self._marked[b]
        tags = sorted(marked_a.tags.keys() & marked_b.tags.keys())
        targets = sorted(marked_a.targets.keys() & marked_b.targets.keys())
        names = sorted(marked_a.names.keys() & marked_b.names.keys())
        # (number of memories with the term, term)
        terms = [(self._term_counts[word], word) for word in marked_a.words & marked_b.words]
        long_phrase_count = 0
        # Neighbouring pairs of Han characters that both texts have are one term, a phrase.
        pairs = marked_a.pairs & marked_b.pairs
        if pairs:
            for phrase in phrases(marked_a.memory.content, pairs):
                # A phrase is as rare as its rarest pair.
                pairs_of_phrase = neighbouring_pairs(phrase)
                count = min(self._term_counts[pair] for pair in pairs_of_phrase)
                terms.append((count, phrase))
                is_long = len(phrase) >= 4
                if is_long:
                    long_phrase_count += 1

        rarest_terms = [f'term "{term}"' for _, term in nsmallest(MOST_TERMS, terms)]
        reasons = [f'tag "{marked_a.tags[tag]}"' for tag in tags]
        reasons += [f'link "{marked_a.targets[target]}"' for target in targets]
        reasons += [f'name "{marked_a.names[name]}"' for name in names]
        score = (
            TAG * len(tags)
            + TARGET * len(targets)
            + NAME * len(names)
            + TERM * min(MOST_TERMS, len(rarest_terms) + long_phrase_count)
        )
        return _Evidence(score, reasons + rarest_terms)


def phrases(content: str, pairs: Iterable[str]) -> list[str]:
    """Join pairs of Han characters into the longest pieces that a text has of them.

    With the pairs `喝绿` and `绿茶`, the text `他喝绿茶` has the phrase `喝绿茶`. No pair is used twice.
    """
    phrase_list = []
    used_pairs = set[str]()
    pieces = _pieces_of(content, set(pairs))
    for piece in sorted(pieces, key=len, reverse=True):
        piece_pairs = set(neighbouring_pairs(piece))
        if used_pairs.isdisjoint(piece_pairs):
            phrase_list.append(piece)
        used_pairs |= piece_pairs
    return phrase_list


def _pieces_of(content: str, pairs: Container[str]) -> list[str]:
    """Return the longest pieces of a text whose neighbouring Han characters all form `pairs`.

    With the pairs `喝绿` and `绿茶`, the text `他喝绿茶` has the piece `喝绿茶`.
    """
    pieces: list[str] = []
    for run in han_runs(without_wikilinks(lower_form(content))):
        piece = ""
        for pair in neighbouring_pairs(run):
            if pair not in pairs:
                pieces.append(piece)
                piece = ""
            elif piece:
                # A pair begins with the last character of the piece so far.
                piece += pair[1]
            else:
                piece = pair
        pieces.append(piece)
    return [piece for piece in pieces if piece]


class _MarkCounts:
    """Counts how many memories have each mark, apart for each kind of mark.

    terms: words, and pairs of Han characters.
    """

    def __init__(self) -> None:
        self.tags = Counter[str]()
        self.targets = Counter[str]()
        self.names = Counter[str]()
        self.terms = Counter[str]()

    def add(self, marks: _Marked) -> None:
        """Count the marks of one memory, each once."""
        self.tags.update(marks.tags.keys())
        self.targets.update(marks.targets.keys())
        self.names.update(marks.names.keys())
        self.terms.update(marks.words | marks.pairs)


def _rare_marks(memories: Sequence[MemoryState]) -> tuple[list[_Marked], Counter[str]]:
    """Return the rare marks of each memory, and the number of memories with each term.

    A mark is rare if at least two memories have it, but not too many. A name must also be surely a
    name: it must be within a sentence of one memory at least.
    """
    counts = _MarkCounts()
    # A name at the beginning of a sentence may be any word. Within a sentence it is sure.
    sure_names: set[str] = set()
    all_marks = []
    for memory in memories:
        marks, names_within = _marks_of(memory)
        all_marks.append(marks)
        sure_names |= names_within
        counts.add(marks)

    most_memories = max(_MOST_WITH_TERM, len(memories) // _MEMORIES_PER_TERM)
    rare_terms = _shared(counts.terms, most_memories)
    rare_tags = _shared(counts.tags, MOST_WITH_TAG)
    # The target of a wikilink says the same, however many memories have it.
    shared_targets = _shared(counts.targets, len(memories))
    rare_names = _shared(counts.names, MOST_WITH_NAME) & sure_names

    # Keep only these marks of each memory.
    rare_marks = [
        _Marked(
            memory=marks.memory,
            tags=_only(marks.tags, rare_tags),
            targets=_only(marks.targets, shared_targets),
            names=_only(marks.names, rare_names),
            words=marks.words & rare_terms,
            pairs=marks.pairs & rare_terms,
        )
        for marks in all_marks
    ]
    return rare_marks, counts.terms


def _shared(counts: Mapping[str, int], most: int) -> set[str]:
    """Return the marks that at least two memories have, but at most `most`.

    counts: how many memories have each mark.
    """
    return {mark for mark, count in counts.items() if 2 <= count <= most}


def _marks_of(memory: MemoryState) -> tuple[_Marked, set[str]]:
    """Return all marks of a memory, and the names in it that are surely names (`name_words`)."""
    text = lower_form(memory.content)
    # Of several spellings of a tag or target, the first one is shown. Here it comes last, and
    # replaces the others.
    tags = {lower_form(tag).strip(): tag for tag in reversed(memory.tags)}
    targets = {}
    for target in reversed(memory.targets):
        key = lower_form(target).strip()[:_TARGET_LENGTH]
        if key:
            targets[key] = target
    names, names_within = name_words(memory.content)
    marks = _Marked(
        memory=memory,
        tags=tags,
        targets=targets,
        names=names,
        words=evidence_words(text),
        pairs=evidence_pairs(text),
    )
    return marks, names_within


def _only(marks: Mapping[str, str], keys: Container[str]) -> dict[str, str]:
    """Return the marks with these keys."""
    return {key: mark for key, mark in marks.items() if key in keys}
