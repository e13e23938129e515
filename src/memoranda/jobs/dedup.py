"""Which memories say the same, and which say nearly the same. Pure: plans over `MemoryState`
values.

A memory is the *same* as another when its text is, blanks apart, or all its lines are lines of the
other in order. That goes along chains: what is in a text that is in C is in C, so all of a chain is
merged into its end at once, and a second run finds nothing. Source: contract 001, 5 (dream level 2)
and 18.6.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
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
    words_found = _WORD.findall(low)
    if "'s" in low:
        return [intern(word.removesuffix("'s")) for word in words_found]
    return list(map(intern, words_found))


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


# One English sentence, whose capital says nothing: three words or more, without what keys and
# commands have.
_SENTENCE = re.compile(r"[A-Z][a-z]+(?: [\w'’,;:()-]+){2,}[.!?]?", re.A)
_CODE = re.compile(r"[_\d]|(?:^| )-|[a-z][A-Z]")


class _Text:
    """A memory with its text in comparable form: its lines as they are, without a full stop or
    exclamation mark at their very end, and as `same` texts have them. What survives has the
    smallest `rank`: more lines, longer, pinned, more often read, older, the smaller id."""

    def __init__(self, memory: MemoryState):
        self.memory = memory
        self.lines = self.unended = lines = compared_lines(memory.content)
        if lines and lines[-1][-1] in _FINAL and len(lines[-1]) > 1:
            self.unended = (*lines[:-1], lines[-1][:-1].rstrip(" \t") or lines[-1])
        self.same = self.unended
        if len(lines) == 1 and _SENTENCE.fullmatch(self.same[0]) and not _CODE.search(self.same[0]):
            self.same = (self.same[0][0].lower() + self.same[0][1:],)
        size = sum(map(len, self.unended))
        self.rank = (
            -len(lines),
            -size,
            not memory.is_pinned,
            -memory.access_count,
            memory.created,
            memory.id,
        )

    def is_in(self, other_text: _Text) -> bool:
        """Whether all its lines are lines of `other_text` in the same order."""
        pairs = (self.lines, iter(other_text.lines)), (self.unended, iter(other_text.unended))
        return any(
            all(line in other_lines for line in own_lines) for own_lines, other_lines in pairs
        )


def _grouped(memories: Iterable[MemoryState]) -> Iterable[list[MemoryState]]:
    groups = defaultdict[Hashable, list[MemoryState]](list)
    for memory in memories:
        groups[memory.block].append(memory)
    return groups.values()


def plan_duplicates(memories: Sequence[MemoryState], job: str = "consolidate") -> list[Action]:
    """The merges: memories of one block of which one says the same as the other, or holds all its
    lines in order.

    The one with more lines stays, then the longer, then the pinned, the one with the higher
    `access_count`, the older, the smaller id. Memories without text and pinned ones are not merged
    away. The plan does not depend on the order of `memories`. Source: contract 001, 18.6.
    """
    merges: list[tuple[_Text, _Text]] = []
    for group in _grouped(memories):
        # What holds a text holds its rarest line, so only the texts with that line are looked at.
        survivors = dict[str, _Text]()
        same = dict[tuple[str, ...], _Text]()
        with_line = defaultdict[str, list[_Text]](list)
        texts = map(_Text, group) if len(group) > 1 else ()
        for text in sorted(
            (candidate for candidate in texts if candidate.lines),
            key=lambda candidate: candidate.rank,
        ):
            holder = same.get(text.same)
            if holder is None:
                same[text.same] = text
                rarest = [
                    min((with_line[line] for line in lines), key=len)
                    for lines in (text.lines, text.unended)
                ]
                holder = next(
                    (candidate for candidate in chain(*rarest) if text.is_in(candidate)), None
                )
                for line in {*text.lines, *text.unended}:
                    with_line[line].append(text)
            is_kept = holder is None or text.memory.is_pinned
            survivors[text.memory.id] = survivor = (
                text if is_kept or holder is None else survivors[holder.memory.id]
            )
            if survivor is not text:
                merges.append((text, survivor))
    merges.sort(key=lambda merge: (merge[1].memory.id, merge[0].memory.created, merge[0].memory.id))
    actions = []
    for text, survivor in merges:
        duplicate = text.memory
        survivor_memory = survivor.memory
        if survivor.same == text.same:
            how = "same text as"
        else:
            how = "all its lines are in"
        actions.append(
            Action(
                job,
                MERGE,
                duplicate.id,
                f"{how} {survivor_memory.id[:8]}",
                duplicate.path,
                target=survivor_memory.id,
            )
        )
    return actions


def plan_similar(memories: Sequence[MemoryState]) -> list[Action]:
    """The merges of `plan_duplicates`, then the links of dream level 2.

    Linked are memories of one block that are *similar* (reason `similar 0.86`): at least 5 terms
    each, which overlap by
    0.8 or more; and *near* ones (`near 0.67`), which say the same in other words (`near_pairs`).
    Not those linked or
    unlinked before. No memory gets more than MOST_LINKS links to similar ones in all. Links are
    those to make after
    the merges, best first; the plan does not depend on the order of `memories`.
    """
    merges = plan_duplicates(memories, DREAM)
    remaining = after_actions(memories, merges)
    terms_by_id = {memory.id: terms(plain(memory.content)) for memory in remaining}
    groups = _grouped(memory for memory in remaining if len(terms_by_id[memory.id]) >= FEWEST_TERMS)
    links = sorted(
        link
        for group in groups
        for link in _links([(memory, terms_by_id[memory.id]) for memory in group])
    )
    made_linked_pairs = {(a, b) for _, a, b in links}
    pairs = [("similar", -score, a, b) for score, a, b in links]
    pairs += [
        ("near", score, a, b)
        for score, a, b in near_pairs(remaining)
        if (a, b) not in made_linked_pairs
    ]
    paths = {memory.id: memory.path for memory in remaining}
    return merges + [
        Action(DREAM, LINK, a, f"{how} {score:.2f}", paths[a], target=b)
        for how, score, a, b in pairs
    ]


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """The Jaccard index of two sets, neither empty; 0.0 for one below 0.8, told in whole numbers."""
    both = len(a) + len(b)
    if 9 * min(len(a), len(b)) < 4 * both or 9 * (shared := len(a & b)) < 4 * both:
        return 0.0
    return shared / (both - shared)


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
_FEW = 3
# How much of the content words of two near texts is shared (Dice)
_NEAR = 0.5
# How much of the content words two texts share (Dice) that the owner is asked to merge, and how many
# of these words must be rare: in no more memories than the larger of these (docs/lab/categories-2026-11-28.md)
_ALIKE = 0.75
_FEWEST_RARE = 2
_MOST_OF_RARE = 4
_SHARE_OF_RARE = 50
# So many memories may have a word by which near ones are found
_MOST_WITH_WORD = 40
# Words of the longest text that is compared word by word
_LONGEST_SAID = 80
# Letters by which two words count as one: allergic, allergy
_STEM = 5
# Words of the shorter part of a text that says its parts in the other order
_CLAUSE = 3


_Said = tuple[tuple[str, ...], frozenset[str]]


def spoken(text: str) -> _Said:
    """The words of a text in order (a Han character is one), and those that carry its content, cut
    short.
    """
    all_words = list[str]()
    for word in tokens(plain(text)):
        all_words += word if is_cjk(word) else (word,)
    return tuple(all_words), frozenset(map(_content, all_words)) - {""}


def _content(word: str) -> str:
    if word in stop_words() or word in _STOP_CHARACTERS or word in _NEGATIONS or word.isdecimal():
        return ""
    return ENDING.sub("", word)[:_STEM]


def _nearness(a: _Said, b: _Said) -> float:
    """How much of their content two texts share that say the same in other words; 0.0 for texts
    that do not. Texts that differ in a number or a negation, have a word in place of another one,
    or swap two, do not; but one may have the second part of the other first, where nothing is
    compared."""
    (words_a, content), (words_b, content_b) = a, b
    shared = content & content_b
    if shared:
        score = 2 * len(shared) / (len(content) + len(content_b))
    else:
        score = 0.0
    if score < _NEAR or len(shared) < _FEW or max(len(words_a), len(words_b)) > _LONGEST_SAID:
        return 0.0
    if _signs(words_a) != _signs(words_b) or words_a == words_b:
        return 0.0
    if not _COMPARES.isdisjoint({*words_a} & {*words_b}):
        order, other_order = (
            [content_word for content_word in map(_content, spoken_words) if content_word in shared]
            for spoken_words in (words_a, words_b)
        )
        if order != other_order:
            return 0.0
    if sorted(words_a) == sorted(words_b):
        if _is_turned(words_a, words_b):
            return score
        return 0.0
    for kind, start, end, from_, to in changes(words_a, words_b):
        if kind == "replace" and end - start == to - from_:
            pairs = zip(
                map(_content, words_a[start:end]), map(_content, words_b[from_:to]), strict=True
            )
            if any(
                first_word and two and first_word not in content_b and two not in content
                for first_word, two in pairs
            ):
                return 0.0
    return score


def _is_turned(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether `others` are these words with the last clause put first."""
    twice = _joined([*words, *words])
    wanted = _joined(others)
    at = twice.find(wanted)
    while at >= 0:
        number = twice.count(_APART, 0, at)
        if _CLAUSE <= number <= len(words) - _CLAUSE:
            return True
        at = twice.find(wanted, at + 1)
    return False


def _joined(words: Sequence[str]) -> str:
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
    for group in _grouped(memory for memory in memories if memory.category != REMINDERS):
        closed = linked_pairs(group, "unlinked") | (set() if linked else linked_pairs(group))
        spoken_texts = [spoken(item.content) for item in group]
        with_word = defaultdict[str, list[int]](list)
        for at, (all_words, content) in enumerate(spoken_texts):
            keys = content | {
                f"{first_character}{two}"
                for first_character, two in pairwise(all_words)
                if is_cjk(first_character) and is_cjk(two)
            }
            for word in keys if len(all_words) <= _LONGEST_SAID else ():
                with_word[word].append(at)
        shared = Counter(
            pair
            for word, holders in with_word.items()
            if len(holders) <= _MOST_WITH_WORD
            if not (is_cjk(word) and len(word) == 1)
            for pair in combinations(holders, 2)
        )
        for pair, count in shared.items():
            if (
                count > 1
                and pair not in closed
                and (score := _nearness(spoken_texts[pair[0]], spoken_texts[pair[1]]))
            ):
                ids = group[pair[0]].id, group[pair[1]].id
                scored_pairs.append((score, min(ids), max(ids)))
    counts = Counter[str]()
    kept_pairs = []
    for score, a, b in sorted(scored_pairs, key=lambda item: (-item[0], item[1:])):
        if max(counts[a], counts[b]) < MOST_LINKS:
            counts.update((a, b))
            kept_pairs.append((score, a, b))
    return kept_pairs


def pairs_to_ask(memories: Sequence[MemoryState]) -> list[tuple[float, str, str]]:
    """Those of `near_pairs`, linked ones too, that are likely enough one statement to ask about.

    In many memories the same turn of phrase comes again (`and felt very happy`), so two texts must
    also share words that few have, and one must hold nearly all of the other.
    """
    content_by_id = {memory.id: spoken(memory.content)[1] for memory in memories}
    holders = Counter(word for content in content_by_id.values() for word in content)
    most_holders = max(_MOST_OF_RARE, len(memories) // _SHARE_OF_RARE)
    pairs = []
    for score, a, b in near_pairs(memories, linked=True):
        first = content_by_id[a]
        second = content_by_id[b]
        rare = [word for word in first & second if holders[word] <= most_holders]
        fewest_extra = min(len(first - second), len(second - first))
        if score >= _ALIKE and len(rare) >= _FEWEST_RARE and fewest_extra <= 1:
            pairs.append((score, a, b))
    return pairs


def _links(block: list[tuple[MemoryState, frozenset[str]]]) -> list[tuple[float, str, str]]:
    """(overlap, negative; the smaller id, the other) of the links to make between similar memories
    of a block. Found by a prefix filter over terms in order of rarity, smaller sets first: two sets
    that overlap by 0.8 or more share two of the rarest terms, of the smaller one a ninth and two,
    of the larger one a fifth and two."""
    block.sort(key=lambda item: (len(item[1]), item[0].id))
    memories = [item for item, _ in block]
    term_sets = [links for _, links in block]
    linked = linked_pairs(memories)
    closed = linked | linked_pairs(memories, "unlinked")
    link_counts = Counter(
        end for a, b in linked if overlap(term_sets[a], term_sets[b]) for end in (a, b)
    )
    counts = Counter(chain.from_iterable(term_sets))
    ranks = {
        term: rank
        for rank, term in enumerate(sorted(counts, key=lambda term: (counts[term], term)))
    }
    with_term: dict[int, set[int]] = {}
    indexed: dict[int, list[int]] = {}
    links = []
    for at, own_terms in enumerate(term_sets):
        if link_counts[at] >= MOST_LINKS:
            continue
        order = sorted(map(ranks.__getitem__, own_terms))
        size = len(own_terms)
        shared = Counter(
            chain.from_iterable(with_term.get(rank, ()) for rank in order[: size // 5 + 2])
        )
        other_positions = [position for position, count in shared.items() if count > 1]
        scores = [
            (-overlap(own_terms, term_sets[position]), position)
            for position in other_positions
            if (position, at) not in closed
        ]
        for score, position in sorted(item for item in scores if item[0])[
            : MOST_LINKS - link_counts[at]
        ]:
            a, b = sorted((memories[at].id, memories[position].id))
            links.append((score, a, b))
            link_counts.update((at, position))
            if link_counts[position] == MOST_LINKS:
                for rank in indexed[position]:
                    with_term[rank].discard(position)
        if link_counts[at] < MOST_LINKS:
            indexed[at] = order[: size // 9 + 2]
            for rank in indexed[at]:
                with_term.setdefault(rank, set()).add(at)
    return links
