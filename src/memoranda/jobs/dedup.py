"""Which memories say the same, and which say nearly the same. Pure: plans over `MemoryState`
values.

A memory is the *same* as another when its text is, blanks apart, or all its lines are lines of the
other in order. That goes along chains: what lies in what lies in C lies in C, so all of a chain is
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
_APART = "\0"
"""Between words of one text: no word holds it."""
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
    found = _WORD.findall(low)
    if "'s" in low:
        return [intern(word.removesuffix("'s")) for word in found]
    return list(map(intern, found))


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


_SENTENCE = re.compile(r"[A-Z][a-z]+(?: [\w'’,;:()-]+){2,}[.!?]?", re.A)
"""One English sentence, whose capital says nothing: three words or more, without what keys and
commands have.
"""
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

    def is_in(self, other: _Text) -> bool:
        """Whether all its lines are lines of `other` in the same order."""
        pairs = (self.lines, iter(other.lines)), (self.unended, iter(other.unended))
        return any(all(line in others for line in own) for own, others in pairs)


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
        for text in sorted((each for each in texts if each.lines), key=lambda each: each.rank):
            holder = same.get(text.same)
            if holder is None:
                same[text.same] = text
                rarest = [
                    min((with_line[line] for line in lines), key=len)
                    for lines in (text.lines, text.unended)
                ]
                holder = next((each for each in chain(*rarest) if text.is_in(each)), None)
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
        gone = text.memory
        kept = survivor.memory
        if survivor.same == text.same:
            how = "same text as"
        else:
            how = "all its lines are in"
        actions.append(
            Action(job, MERGE, gone.id, f"{how} {kept.id[:8]}", gone.path, target=kept.id)
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
    left = after_actions(memories, merges)
    found = {each.id: terms(plain(each.content)) for each in left}
    groups = _grouped(each for each in left if len(found[each.id]) >= FEWEST_TERMS)
    links = sorted(
        link for group in groups for link in _links([(each, found[each.id]) for each in group])
    )
    made = {(a, b) for _, a, b in links}
    pairs = [("similar", -score, a, b) for score, a, b in links]
    pairs += [("near", score, a, b) for score, a, b in near_pairs(left) if (a, b) not in made]
    paths = {each.id: each.path for each in left}
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
"""`t` is what is left of don't."""
_COMPARES = frozenset(["over", "than", "before", "after", "from", "比"])
"""Words between two things of which it matters which comes first."""
# Content words two texts must share to be near
_FEW = 3
# How much of the content words of two near texts is shared (Dice)
_NEAR = 0.5
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
    every = list[str]()
    for word in tokens(plain(text)):
        every += word if is_cjk(word) else (word,)
    return tuple(every), frozenset(map(_content, every)) - {""}


def _content(word: str) -> str:
    if word in stop_words() or word in _STOP_CHARACTERS or word in _NEGATIONS or word.isdecimal():
        return ""
    return ENDING.sub("", word)[:_STEM]


def _nearness(a: _Said, b: _Said) -> float:
    """How much of their content two texts share that say the same in other words; 0.0 for texts
    that do not. Texts that differ in a number or a negation, have a word in place of another one,
    or swap two, do not; but one may have the second part of the other first, where nothing is
    compared."""
    (every, content), (others, other) = a, b
    shared = content & other
    if shared:
        score = 2 * len(shared) / (len(content) + len(other))
    else:
        score = 0.0
    if score < _NEAR or len(shared) < _FEW or max(len(every), len(others)) > _LONGEST_SAID:
        return 0.0
    if _signs(every) != _signs(others) or every == others:
        return 0.0
    if not _COMPARES.isdisjoint({*every} & {*others}):
        order, other_order = (
            [each for each in map(_content, said) if each in shared] for said in (every, others)
        )
        if order != other_order:
            return 0.0
    if sorted(every) == sorted(others):
        return score if _is_turned(every, others) else 0.0
    for kind, start, end, from_, to in changes(every, others):
        if kind == "replace" and end - start == to - from_:
            pairs = zip(
                map(_content, every[start:end]), map(_content, others[from_:to]), strict=True
            )
            if any(one and two and one not in other and two not in content for one, two in pairs):
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
    found: list[tuple[float, str, str]] = []
    for group in _grouped(memory for memory in memories if memory.category != REMINDERS):
        closed = linked_pairs(group, "unlinked") | (set() if linked else linked_pairs(group))
        said = [spoken(each.content) for each in group]
        with_word = defaultdict[str, list[int]](list)
        for at, (every, content) in enumerate(said):
            keys = content | {
                f"{one}{two}" for one, two in pairwise(every) if is_cjk(one) and is_cjk(two)
            }
            for word in keys if len(every) <= _LONGEST_SAID else ():
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
                and (score := _nearness(said[pair[0]], said[pair[1]]))
            ):
                ids = group[pair[0]].id, group[pair[1]].id
                found.append((score, min(ids), max(ids)))
    counts = Counter[str]()
    kept = []
    for score, a, b in sorted(found, key=lambda each: (-each[0], each[1:])):
        if max(counts[a], counts[b]) < MOST_LINKS:
            counts.update((a, b))
            kept.append((score, a, b))
    return kept


def _links(block: list[tuple[MemoryState, frozenset[str]]]) -> list[tuple[float, str, str]]:
    """(overlap, negative; the smaller id, the other) of the links to make between similar memories
    of a block. Found by a prefix filter over terms in order of rarity, smaller sets first: two sets
    that overlap by 0.8 or more share two of the rarest terms, of the smaller one a ninth and two,
    of the larger one a fifth and two."""
    block.sort(key=lambda each: (len(each[1]), each[0].id))
    memories = [each for each, _ in block]
    every = [found for _, found in block]
    linked = linked_pairs(memories)
    closed = linked | linked_pairs(memories, "unlinked")
    made = Counter(end for a, b in linked if overlap(every[a], every[b]) for end in (a, b))
    counts = Counter(chain.from_iterable(every))
    ranks = {
        term: rank
        for rank, term in enumerate(sorted(counts, key=lambda term: (counts[term], term)))
    }
    with_term: dict[int, set[int]] = {}
    indexed: dict[int, list[int]] = {}
    found = []
    for at, own in enumerate(every):
        if made[at] >= MOST_LINKS:
            continue
        order = sorted(map(ranks.__getitem__, own))
        size = len(own)
        shared = Counter(
            chain.from_iterable(with_term.get(rank, ()) for rank in order[: size // 5 + 2])
        )
        others = [other for other, count in shared.items() if count > 1]
        scores = [
            (-overlap(own, every[other]), other) for other in others if (other, at) not in closed
        ]
        for score, other in sorted(each for each in scores if each[0])[: MOST_LINKS - made[at]]:
            a, b = sorted((memories[at].id, memories[other].id))
            found.append((score, a, b))
            made.update((at, other))
            if made[other] == MOST_LINKS:
                for rank in indexed[other]:
                    with_term[rank].discard(other)
        if made[at] < MOST_LINKS:
            indexed[at] = order[: size // 9 + 2]
            for rank in indexed[at]:
                with_term.setdefault(rank, set()).add(at)
    return found
