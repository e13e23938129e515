"""Which memories say the same, and which say nearly the same. Pure: plans over `MemoryState` values.

A memory is the *same* as another when each of its lines is a line of the other. That goes along chains: what lies in
what lies in C lies in C, so all of a chain is merged into its end at once, and a second run finds nothing.
Source: contract 001, 5 (Duplicates; dream level 2).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import add
from sys import intern

from commonplace.jobs.job import LINK, MERGE, Action, MemoryState, after_actions, linked_pairs

PREFIX = 100
"""Characters of the normalised content that duplicates have in common."""
FEWEST_TERMS = 5
"""Terms a memory needs to be compared by them."""
MOST_LINKS = 10
"""Links to similar memories a memory is given in all, those it has already included."""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_HAN_RUN = re.compile(f"[{_HAN}]{{2,}}")
_LETTER = f"[^\\W_{_HAN}]"
# `don't`, `kube-proxy`, `config.yaml`, `max_retries` are one word each.
_WORD = re.compile(f"{_LETTER}+(?:(?:[.'-]|_+){_LETTER}+)*")


def plain(text: str) -> str:
    """`text` in compatibility form (NFKC) and lower case."""
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()


def words(low: str) -> list[str]:
    """The words of a plain text, in order, without a final `'s`; each word is one object in all texts."""
    low = low.replace("’", "'")
    found = _WORD.findall(low)
    return [intern(word.removesuffix("'s")) for word in found] if "'s" in low else list(map(intern, found))


def han_runs(low: str) -> list[str]:
    """The runs of two or more Han characters in a plain text, in order."""
    return [] if low.isascii() else _HAN_RUN.findall(low)


def terms(low: str) -> frozenset[str]:
    """All words of a plain text and all its pairs of neighbouring Han characters."""
    return frozenset(words(low)).union(*(map(add, run, run[1:]) for run in han_runs(low)))


def lines(low: str) -> frozenset[str]:
    """The lines of a plain text that are not blank, runs of blanks as one."""
    return frozenset([" ".join(parts) for parts in map(str.split, low.split("\n")) if parts])


@dataclass(frozen=True, slots=True)
class _Text:
    """A memory with its text in comparable form."""

    memory: MemoryState
    text: str
    lines: frozenset[str]
    terms: frozenset[str]

    @property
    def rank(self) -> tuple[int, int, bool, int, object, str]:
        """What survives comes first: more lines, longer, pinned, more often read, older, the smaller id."""
        own = self.memory
        return -len(self.lines), -len(self.text), not own.is_pinned, -own.access_count, own.created, own.id


def _text(memory: MemoryState, *, with_terms: bool) -> _Text:
    low = plain(memory.content)
    return _Text(memory, " ".join(low.split()), lines(low), terms(low) if with_terms else frozenset())


def _grouped(texts: Iterable[_Text], key: Callable[[_Text], Hashable]) -> Iterable[list[_Text]]:
    groups: dict[Hashable, list[_Text]] = {}
    for text in texts:
        groups.setdefault(key(text), []).append(text)
    return groups.values()


def plan_duplicates(memories: Sequence[MemoryState], job: str = "consolidate") -> list[Action]:
    """The merges of `consolidate`: memories of one block whose texts begin alike, one holding the other's lines.

    The one with more lines stays, then the longer, then the one with the higher `access_count`, the older, the
    smaller id. Memories without text stay as they are. The plan does not depend on the order of `memories`.
    """
    texts = (text for each in memories if (text := _text(each, with_terms=False)).text)
    return _merge_actions(job, _grouped(texts, lambda each: (each.memory.block, each.text[:PREFIX])))


def plan_similar(memories: Sequence[MemoryState], job: str = "dream") -> list[Action]:
    """The merges, then the links (reason `similar 0.86`) of dream level 2.

    Compared are memories of one block with at least 5 terms each whose terms overlap by 0.8 or more: *same* ones
    are merged, different ones linked, unless they are linked or were unlinked. No memory gets more than MOST_LINKS
    such links in all. Links are those to make after the merges, best first; the plan does not depend on the order
    of `memories`.
    """
    texts = (_text(each, with_terms=True) for each in memories)
    compared = {each.memory.id: each for each in texts if len(each.terms) >= FEWEST_TERMS}
    merges = _merge_actions(job, _grouped(compared.values(), lambda each: each.memory.block), by_terms=True)
    left = [replace(compared[each.id], memory=each) for each in after_actions(memories, merges) if each.id in compared]
    links = sorted(link for block in _grouped(left, lambda each: each.memory.block) for link in _links(block))
    paths = {each.memory.id: each.memory.path for each in left}
    return merges + [Action(job, LINK, a, f"similar {-score:.2f}", paths[a], target=b) for score, a, b in links]


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """The Jaccard index of two sets, neither empty; 0.0 for one below 0.8, told in whole numbers."""
    both = len(a) + len(b)
    if 9 * min(len(a), len(b)) < 4 * both or 9 * (shared := len(a & b)) < 4 * both:
        return 0.0
    return shared / (both - shared)


def _merge_actions(job: str, groups: Iterable[list[_Text]], *, by_terms: bool = False) -> list[Action]:
    """The merges within each group, by survivor, then the older first: the order in which tags and links are united."""
    merges = [merge for group in groups if len(group) > 1 for merge in _merges(group, by_terms)]
    merges.sort(key=lambda merge: (merge[1].memory.id, merge[0].memory.created, merge[0].memory.id))
    actions = []
    for gone, survivor in merges:
        how = "same text as" if survivor.text == gone.text else "all its lines are in"
        reason = f"{how} {survivor.memory.id[:8]}"
        actions.append(Action(job, MERGE, gone.memory.id, reason, gone.memory.path, target=survivor.memory.id))
    return actions


def _merges(texts: Iterable[_Text], by_terms: bool) -> Iterator[tuple[_Text, _Text]]:
    """Each text that lies in another one (and overlaps it, if `by_terms`), with the text that lies in none it goes to.

    What holds a text holds its rarest line, so only the texts with that line are looked at.
    """
    survivors: dict[str, _Text] = {}
    by_lines: dict[frozenset[str], _Text] = {}
    with_line: dict[str, list[_Text]] = {}
    for text in sorted(texts, key=lambda each: each.rank):
        holder = by_lines.get(text.lines)
        if holder is None:
            by_lines[text.lines] = text
            rarest = min((with_line.get(line, []) for line in text.lines), key=len)
            holders = (each for each in rarest if text.lines < each.lines)
            holder = next((each for each in holders if not by_terms or overlap(text.terms, each.terms)), None)
            for line in text.lines:
                with_line.setdefault(line, []).append(text)
        survivors[text.memory.id] = survivor = text if holder is None else survivors[holder.memory.id]
        if survivor is not text:
            yield text, survivor


def _links(block: list[_Text]) -> list[tuple[float, str, str]]:
    """(overlap, negative; the smaller id, the other) of the links to make between similar memories of a block.

    Found by a prefix filter over terms in order of rarity, smaller sets first: two sets that overlap by 0.8 or more
    share two of the rarest terms, of the smaller one a ninth and two, of the larger one a fifth and two.
    """
    block.sort(key=lambda each: (len(each.terms), each.memory.id))
    memories = [each.memory for each in block]
    linked = linked_pairs(memories)
    closed = linked | linked_pairs(memories, "unlinked")
    made = Counter(end for a, b in linked if overlap(block[a].terms, block[b].terms) for end in (a, b))
    counts = Counter(chain.from_iterable(each.terms for each in block))
    ranks = {term: rank for rank, term in enumerate(sorted(counts, key=lambda term: (counts[term], term)))}
    with_term: dict[int, set[int]] = {}
    indexed: dict[int, list[int]] = {}
    found = []
    for at, text in enumerate(block):
        if made[at] >= MOST_LINKS:
            continue
        order, size = sorted(map(ranks.__getitem__, text.terms)), len(text.terms)
        shared = Counter(chain.from_iterable(with_term.get(rank, ()) for rank in order[: size // 5 + 2]))
        others = [other for other, count in shared.items() if count > 1]
        scores = [(-overlap(text.terms, block[other].terms), other) for other in others if (other, at) not in closed]
        for score, other in sorted(each for each in scores if each[0])[: MOST_LINKS - made[at]]:
            a, b = sorted((text.memory.id, block[other].memory.id))
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
