"""Finding memories that say the same, or nearly the same. Pure: plans over `MemoryState` values.

A memory is the *same* as another when its text is, blanks apart, or all its lines are lines of the
other in order. This works along chains: a text contained in B, which is contained in C, is
contained in C. So all of a chain is merged into its end together, and a second run finds nothing.
Source: contract 001, 5 (dream level 2) and 18.6.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise
from operator import add
from sys import intern

from memoranda.jobs.job import DREAM, LINK, MERGE, Action, MemoryState, after_actions, linked_pairs
from memoranda.note.model import REMINDERS
from memoranda.text.compare import changes
from memoranda.text.tokens import is_cjk, stop_words, tokens
from memoranda.text.unicode import compared_lines

FEWEST_TERMS = 5
"""Terms a memory needs to be compared by them."""
MOST_LINKS = 10
"""Links to similar memories a memory is given in all, those it has already included."""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
# Two Chinese characters or more in a row.
_HAN_RUN = re.compile(f"[{_HAN}]{{2,}}")
# Between words of one text: no word holds it.
_APART = "\0"
_LETTER = f"[^\\W_{_HAN}]"
# `don't`, `kube-proxy`, `config.yaml`, `max_retries` are one word each.
_WORD = re.compile(f"{_LETTER}+(?:(?:[.'-]|_+){_LETTER}+)*")


def plain(text: str) -> str:
    """`text` in compatibility form (NFKC) and lower case."""
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()


def words(low: str) -> list[str]:
    """The words of a plain text, in order, without a final `'s`; each word is one object in all
    texts.
    """
    low = low.replace("’", "'")
    word_list = _WORD.findall(low)
    if "'s" in low:
        return [intern(word.removesuffix("'s")) for word in word_list]
    return list(map(intern, word_list))


def han_runs(low: str) -> list[str]:
    """The runs of two or more Han characters in a plain text, in order."""
    if low.isascii():
        return []
    return _HAN_RUN.findall(low)


def terms(low: str) -> frozenset[str]:
    """All words of a plain text and all its pairs of neighbouring Han characters."""
    return frozenset(words(low)).union(*(map(add, run, run[1:]) for run in han_runs(low)))


ENDING = re.compile(r"(?<=[^\W_]{3})(?:ing|ed|es|s|ly)(?![^\W_])")
"""The ending of an English word, roughly; three letters stay."""
_FINAL = ".。!！"


# An English sentence, whose capital means nothing: three words or more, without signs of keys and
# commands.
_SENTENCE = re.compile(r"[A-Z][a-z]+(?: [\w'’,;:()-]+){2,}[.!?]?", re.A)
# Signs of keys, flags and commands: in such lines a capital counts.
_CODE = re.compile(r"[_\d]|(?:^| )-|[a-z][A-Z]")


class _Text:
    """A memory with its text in comparable form.

    lines: its lines as they are.
    unended: the same without a full stop or exclamation mark at their very end.
    same: equal for texts that are the same.
    rank: what survives has the smallest: more lines, longer, pinned, more often read, older, the
        smaller id.
    """

    def __init__(self, memory: MemoryState):
        self.memory = memory
        self.lines = compared_lines(memory.content)
        self.unended = _without_final_sign(self.lines)
        self.same = _with_small_beginning(self.unended)
        size = sum(map(len, self.unended))
        self.rank = (
            -len(self.lines),
            -size,
            not memory.is_pinned,
            -memory.access_count,
            memory.created,
            memory.id,
        )

    def is_in(self, other_text: _Text) -> bool:
        """Whether all its lines are lines of `other_text` in the same order."""
        return _are_in_order(self.lines, other_text.lines) or _are_in_order(
            self.unended, other_text.unended
        )


def _without_final_sign(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of a text without a full stop or exclamation mark at its end."""
    if not lines or lines[-1][-1] not in _FINAL or len(lines[-1]) == 1:
        return lines
    last = lines[-1][:-1].rstrip(" \t")
    return (*lines[:-1], last or lines[-1])


def _with_small_beginning(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of a text; if it is one sentence, with a small first letter."""
    if len(lines) != 1 or not _SENTENCE.fullmatch(lines[0]) or _CODE.search(lines[0]):
        return lines
    return (lines[0][0].lower() + lines[0][1:],)


def _are_in_order(lines: Iterable[str], other_lines: Iterable[str]) -> bool:
    """Whether all `lines` are among `other_lines` in the same order."""
    # Each `in` takes from the iterator up to the line it finds.
    remaining = iter(other_lines)
    return all(line in remaining for line in lines)


def _groups_of(memories: Iterable[MemoryState]) -> Iterable[list[MemoryState]]:
    groups = defaultdict[Hashable, list[MemoryState]](list)
    for memory in memories:
        groups[memory.block].append(memory)
    return groups.values()


def plan_duplicates(memories: Sequence[MemoryState], job: str = "consolidate") -> list[Action]:
    """Plan to merge each memory whose text another memory of its block also has, whole or with
    further lines between its lines.

    The one with more lines stays, then the longer, then the pinned, the one with the higher
    `access_count`, the older, the smaller id. Memories without text and pinned ones are not merged
    away. The plan does not depend on the order of `memories`. Source: contract 001, 18.6.
    """
    merges: list[tuple[_Text, _Text]] = []
    for group in _groups_of(memories):
        if len(group) > 1:
            merges += _merges_in(group)
    merges.sort(key=lambda merge: (merge[1].memory.id, merge[0].memory.created, merge[0].memory.id))
    actions: list[Action] = []
    for text, survivor in merges:
        how = "same text as" if survivor.same == text.same else "all its lines are in"
        reason = f"{how} {survivor.memory.id[:8]}"
        duplicate = text.memory
        actions.append(
            Action(job, MERGE, duplicate.id, reason, duplicate.path, target=survivor.memory.id)
        )
    return actions


def _merges_in(group: Iterable[MemoryState]) -> list[tuple[_Text, _Text]]:
    """(text, survivor) of each memory of a block that is merged away."""
    merges: list[tuple[_Text, _Text]] = []
    survivors: dict[str, _Text] = {}
    holders: dict[tuple[str, ...], _Text] = {}
    with_line = defaultdict[str, list[_Text]](list)
    texts = [text for text in map(_Text, group) if text.lines]
    for text in sorted(texts, key=lambda candidate: candidate.rank):
        holder = holders.get(text.same)
        if holder is None:
            holders[text.same] = text
            holder = _holder_of(text, with_line)
            for line in {*text.lines, *text.unended}:
                with_line[line].append(text)
        if holder is None or text.memory.is_pinned:
            survivors[text.memory.id] = text
        else:
            # At the end of the chain, as the holder may be merged away itself.
            survivor = survivors[holder.memory.id]
            survivors[text.memory.id] = survivor
            merges.append((text, survivor))
    return merges


def _holder_of(text: _Text, with_line: Mapping[str, Sequence[_Text]]) -> _Text | None:
    """The first text that contains all lines of `text`. None if none exists.

    It must contain the rarest of them, so only the texts with that line are looked at.
    """
    for lines in (text.lines, text.unended):
        rarest = min((with_line[line] for line in lines), key=len)
        for candidate in rarest:
            if text.is_in(candidate):
                return candidate
    return None


def plan_similar(memories: Sequence[MemoryState]) -> list[Action]:
    """The merges of `plan_duplicates`, then the links of dream level 2.

    Linked are memories of one block that are *similar* (reason `similar 0.86`): at least 5 terms
    each, which overlap by 0.8 or more; and *near* ones (`near 0.67`), which say the same in other
    words (`near_pairs`). Not those linked or unlinked before. No memory gets more than MOST_LINKS
    links to similar ones in all. Links are those to make after the merges, best first; the plan
    does not depend on the order of `memories`.
    """
    merges = plan_duplicates(memories, DREAM)
    remaining = after_actions(memories, merges)
    terms_by_id = {memory.id: terms(plain(memory.content)) for memory in remaining}
    comparable = [memory for memory in remaining if len(terms_by_id[memory.id]) >= FEWEST_TERMS]
    pairs: list[tuple[float, str, str]] = []
    for group in _groups_of(comparable):
        pairs += _links([(memory, terms_by_id[memory.id]) for memory in group])
    pairs.sort()
    similar_pairs = {(a, b) for _, a, b in pairs}

    links = [("similar", -score, a, b) for score, a, b in pairs]
    for score, a, b in near_pairs(remaining):
        if (a, b) not in similar_pairs:
            links.append(("near", score, a, b))
    paths = {memory.id: memory.path for memory in remaining}
    return merges + [
        Action(DREAM, LINK, a, f"{how} {score:.2f}", paths[a], target=b)
        for how, score, a, b in links
    ]


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """The Jaccard index of two sets, neither empty; 0.0 for one below 0.8."""
    # 4/9 of both sizes are shared at 0.8; whole numbers have no rounding.
    least = 4 * (len(a) + len(b))
    if 9 * min(len(a), len(b)) < least:
        return 0.0
    shared = len(a & b)
    if 9 * shared < least:
        return 0.0
    return shared / (len(a) + len(b) - shared)


_STOP_CHARACTERS = frozenset("的了是在我你他她它们都也就和与而且然后会要用把给，。")
# `t` is what is left of don't.
_NEGATIONS = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "without",
        "nor",
        "cannot",
        "t",
        "不",
        "没",
        "别",
        "无",
        "未",
        "非",
        "勿",
    ]
)
# Words between two things of which it matters which comes first.
_COMPARES = frozenset(["over", "than", "before", "after", "from", "比"])
# Content words two texts must share to be near
_LEAST_SHARED_WORDS = 3
# How much of the content words of two near texts is shared (Dice)
_LEAST_SHARE_OF_NEAR = 0.5
# How much of the content words two texts share (Dice) that the owner is asked to merge, and how many
# of these words must be rare: in no more memories than the larger of these (docs/lab/categories-2026-11-28.md)
_LEAST_SHARE_OF_ALIKE = 0.75
# Rare words that two texts have to share to be compared.
_LEAST_RARE_WORDS = 2
_MOST_OF_RARE = 4
_SHARE_OF_RARE = 50
# How many memories may share a word by which near ones are found.
_MOST_WITH_WORD = 40
# Words of the longest text that is compared word by word
_MOST_COMPARED_WORDS = 80
# Letters by which two words count as one: allergic, allergy
_STEM_LETTERS = 5
# Words of the shorter part of a text that says its parts in the other order
_LEAST_CLAUSE_WORDS = 3


_Said = tuple[tuple[str, ...], frozenset[str]]


def spoken(text: str) -> _Said:
    """The words of a text in order, and the stems of its words with a meaning.

    A Chinese character is a word.
    """
    all_words = list[str]()
    for word in tokens(plain(text)):
        all_words += word if is_cjk(word) else (word,)
    return tuple(all_words), frozenset(map(_content, all_words)) - {""}


def _content(word: str) -> str:
    if word in stop_words() or word in _STOP_CHARACTERS or word in _NEGATIONS or word.isdecimal():
        return ""
    return ENDING.sub("", word)[:_STEM_LETTERS]


def _nearness(a: _Said, b: _Said) -> float:
    """How much of their content two texts share, if they say the same in other words. Otherwise
    0.0.

    Texts do not say the same if they differ in a number or a negation, if one has a different word
    at a place, or if two words are swapped. The two halves may be swapped, unless something is
    compared.
    """
    words_a, content_a = a
    words_b, content_b = b
    shared = content_a & content_b
    if len(shared) < _LEAST_SHARED_WORDS or max(len(words_a), len(words_b)) > _MOST_COMPARED_WORDS:
        return 0.0
    score = 2 * len(shared) / (len(content_a) + len(content_b))
    if score < _LEAST_SHARE_OF_NEAR:
        return 0.0
    if _signs(words_a) != _signs(words_b) or words_a == words_b:
        return 0.0
    if _swaps_compared(words_a, words_b, shared) or _replaces_word(a, b):
        return 0.0
    has_same_words = sorted(words_a) == sorted(words_b)
    if has_same_words and not _is_turned(words_a, words_b):
        return 0.0
    return score


def _swaps_compared(words_a: Sequence[str], words_b: Sequence[str], shared: frozenset[str]) -> bool:
    """Whether two texts that compare things name them in another order: `tea over coffee`."""
    if _COMPARES.isdisjoint({*words_a} & {*words_b}):
        return False
    order_a = [word for word in map(_content, words_a) if word in shared]
    order_b = [word for word in map(_content, words_b) if word in shared]
    return order_a != order_b


def _replaces_word(a: _Said, b: _Said) -> bool:
    """Whether one text has a word of content in the place of one that the other text has."""
    words_a, content_a = a
    words_b, content_b = b
    for kind, start_a, end_a, start_b, end_b in changes(words_a, words_b):
        if kind != "replace" or end_a - start_a != end_b - start_b:
            continue
        pairs = zip(words_a[start_a:end_a], words_b[start_b:end_b], strict=True)
        for word_a, word_b in pairs:
            content_word_a = _content(word_a)
            content_word_b = _content(word_b)
            is_new_in_both = content_word_a not in content_b and content_word_b not in content_a
            if content_word_a and content_word_b and is_new_in_both:
                return True
    return False


def _is_turned(words: Sequence[str], other_words: Sequence[str]) -> bool:
    """Whether `other_words` are these words with the last clause put first."""
    doubled_words = _join_words([*words, *words])
    joined_words = _join_words(other_words)
    position = doubled_words.find(joined_words)
    while position >= 0:
        number = doubled_words.count(_APART, 0, position)
        if _LEAST_CLAUSE_WORDS <= number <= len(words) - _LEAST_CLAUSE_WORDS:
            return True
        position = doubled_words.find(joined_words, position + 1)
    return False


def _join_words(words: Sequence[str]) -> str:
    return f"{_APART}{_APART.join(words)}{_APART}"


def _signs(words: Sequence[str]) -> Counter[str]:
    """The numbers among the words, and how many negations."""
    return Counter(
        "not" if word in _NEGATIONS else word
        for word in words
        if word in _NEGATIONS or any(map(str.isnumeric, word))
    )


def near_pairs(
    memories: Sequence[MemoryState], *, linked: bool = False
) -> list[tuple[float, str, str]]:
    """(score; the smaller id, the other) of memories of one block that say the same in other words,
    best first. Not those that were unlinked nor, unless `linked`, those linked already; reminders
    take no part. No memory is in more than MOST_LINKS of them."""
    scored_pairs: list[tuple[float, str, str]] = []
    for group in _groups_of(memory for memory in memories if memory.category != REMINDERS):
        closed = linked_pairs(group, "unlinked")
        if not linked:
            closed = closed | linked_pairs(group)
        scored_pairs += _near_in(group, closed)
    counts = Counter[str]()
    best_pairs = []
    for score, a, b in sorted(scored_pairs, key=lambda item: (-item[0], item[1:])):
        if max(counts[a], counts[b]) < MOST_LINKS:
            counts.update((a, b))
            best_pairs.append((score, a, b))
    return best_pairs


def _near_in(
    group: Sequence[MemoryState], closed: Collection[tuple[int, int]]
) -> list[tuple[float, str, str]]:
    """(score; the smaller id, the other) of near memories of a block, pairs of `closed` excepted."""
    scored_pairs: list[tuple[float, str, str]] = []
    spoken_texts = [spoken(memory.content) for memory in group]
    for pair, count in _words_in_common(spoken_texts).items():
        # A single common word is chance.
        if count < 2 or pair in closed:
            continue
        first, second = pair
        score = _nearness(spoken_texts[first], spoken_texts[second])
        if score:
            ids = sorted((group[first].id, group[second].id))
            scored_pairs.append((score, ids[0], ids[1]))
    return scored_pairs


def _words_in_common(spoken_texts: Sequence[_Said]) -> Counter[tuple[int, int]]:
    """Count the rarer words that two texts share, by the positions of the texts.

    Frequent words are left out, since they would pair every text with every other.
    """
    with_word = defaultdict[str, list[int]](list)
    for text_index, (all_words, content) in enumerate(spoken_texts):
        if len(all_words) > _MOST_COMPARED_WORDS:
            continue
        for word in content.union(_han_pairs(all_words)):
            with_word[word].append(text_index)
    shared = Counter[tuple[int, int]]()
    for word, holders in with_word.items():
        is_single_character = is_cjk(word) and len(word) == 1
        if len(holders) <= _MOST_WITH_WORD and not is_single_character:
            shared.update(combinations(holders, 2))
    return shared


def _han_pairs(all_words: Sequence[str]) -> Iterator[str]:
    """The pairs of neighbouring characters of Chinese and Japanese, each of which is a word."""
    for first, second in pairwise(all_words):
        if is_cjk(first) and is_cjk(second):
            yield f"{first}{second}"


class _RareTerms:
    """Which sets have which of their rarest terms: a prefix filter.

    Sets are added from the smaller to the larger. Two that overlap by 0.8 or more share two of the
    rarest terms, of the smaller one a ninth and two, of the larger one a fifth and two. A term is
    its rank by rarity here, and ranks are in order.
    """

    def __init__(self) -> None:
        self._with_term: dict[int, set[int]] = {}
        self._terms: dict[int, list[int]] = {}

    def add(self, position: int, ranks: list[int]) -> None:
        """Add the set of the text at `position`."""
        self._terms[position] = ranks[: len(ranks) // 9 + 2]
        for rank in self._terms[position]:
            self._with_term.setdefault(rank, set()).add(position)

    def remove(self, position: int) -> None:
        """Remove a set that was added."""
        for rank in self._terms[position]:
            self._with_term[rank].discard(position)

    def candidates(self, ranks: list[int]) -> list[int]:
        """The positions of sets that may overlap with one at least as large as they are."""
        shared = Counter[int]()
        for rank in ranks[: len(ranks) // 5 + 2]:
            shared.update(self._with_term.get(rank, ()))
        return [position for position, count in shared.items() if count > 1]


def pairs_to_ask(memories: Sequence[MemoryState]) -> list[tuple[float, str, str]]:
    """Those of `near_pairs`, linked ones too, that are likely enough one statement to ask about.

    In many memories the same turn of phrase comes again (`and felt very happy`), so two texts must
    also share words that few have, and one must hold nearly all of the other.
    """
    content_by_id = {memory.id: spoken(memory.content)[1] for memory in memories}
    holders = Counter(chain.from_iterable(content_by_id.values()))
    most_holders = max(_MOST_OF_RARE, len(memories) // _SHARE_OF_RARE)
    pairs = []
    for score, a, b in near_pairs(memories, linked=True):
        first = content_by_id[a]
        second = content_by_id[b]
        rare = [word for word in first & second if holders[word] <= most_holders]
        fewest_extra = min(len(first - second), len(second - first))
        if score >= _LEAST_SHARE_OF_ALIKE and len(rare) >= _LEAST_RARE_WORDS and fewest_extra <= 1:
            pairs.append((score, a, b))
    return pairs


def _counts_of_links(
    linked: Iterable[tuple[int, int]], term_sets: Sequence[frozenset[str]]
) -> Counter[int]:
    """The number of links that each memory of a block has to memories with common terms.

    linked: the positions of two memories in the block, for each link.
    term_sets: the terms of each memory of the block.
    """
    link_counts = Counter[int]()
    for position, other_position in linked:
        if overlap(term_sets[position], term_sets[other_position]):
            link_counts.update((position, other_position))
    return link_counts


def _links(block: list[tuple[MemoryState, frozenset[str]]]) -> list[tuple[float, str, str]]:
    """(overlap, negative; the smaller id, the other) of the links to make between similar memories
    of a block. Sorts `block`, which has the terms of each memory."""
    block.sort(key=lambda item: (len(item[1]), item[0].id))
    memories = [memory for memory, _ in block]
    term_sets = [own_terms for _, own_terms in block]
    linked = linked_pairs(memories)
    closed = linked | linked_pairs(memories, "unlinked")
    link_counts = _counts_of_links(linked, term_sets)
    ranks_by_term = _ranks_by_rarity(term_sets)
    rare_terms = _RareTerms()
    links: list[tuple[float, str, str]] = []
    for row_number, own_terms in enumerate(term_sets):
        if link_counts[row_number] >= MOST_LINKS:
            continue
        ranks = sorted(map(ranks_by_term.__getitem__, own_terms))
        scores: list[tuple[float, int]] = []
        for other_position in rare_terms.candidates(ranks):
            if (other_position, row_number) not in closed:
                scores.append((-overlap(own_terms, term_sets[other_position]), other_position))
        best_scores = sorted(item for item in scores if item[0])
        for score, other_position in best_scores[: MOST_LINKS - link_counts[row_number]]:
            ids = sorted((memories[row_number].id, memories[other_position].id))
            links.append((score, ids[0], ids[1]))
            link_counts.update((row_number, other_position))
            if link_counts[other_position] == MOST_LINKS:
                rare_terms.remove(other_position)
        if link_counts[row_number] < MOST_LINKS:
            rare_terms.add(row_number, ranks)
    return links


def _ranks_by_rarity(term_sets: Iterable[frozenset[str]]) -> dict[str, int]:
    """A number for each term: the rarer, the smaller."""
    counts = Counter(chain.from_iterable(term_sets))
    in_order = sorted(counts, key=lambda term: (counts[term], term))
    return {term: rank for rank, term in enumerate(in_order)}
