"""Which memories say the same, and which say nearly the same. Pure: plans over `Digest` values.

A memory is *same* as another when each of its lines is a line of the other. That goes along chains: what lies in
what lies in C lies in C, so all of a chain is merged into its end at once, and a second run finds nothing.
Source: contract 001, 5 (Duplicates; dream level 2).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from commonplace.jobs.digest import Digest, Link, Merge, after_merges, linked, parted
from commonplace.jobs.terms import plain, terms

PREFIX = 100
"""Characters of the normalised content that duplicates have in common."""
FEWEST_TERMS = 5
"""Terms a memory needs to be compared by them."""
MOST_LINKS = 10
"""Links to similar memories a memory is given in all, so that a hundred notes of one form do not become five
thousand links. Links to similar memories that it has already count."""


@dataclass(frozen=True, slots=True)
class Similar:
    """What dream level 2 does about similar memories: `merges` first, then `links` among what is left."""

    merges: tuple[Merge, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class _Text:
    """A memory with its text in comparable form. The order of `rank` puts what survives first."""

    digest: Digest
    text: str
    lines: frozenset[str]
    terms: frozenset[str] = frozenset()

    @classmethod
    def of(cls, digest: Digest, terms: frozenset[str] = frozenset()) -> _Text:
        low = plain(digest.content)
        return cls(digest, " ".join(low.split()), _lines(low), terms)

    @property
    def rank(self) -> tuple[int, int, int, object, str]:
        own = self.digest
        return -len(self.lines), -len(self.text), -own.access_count, own.created, own.id


def normalised(text: str) -> str:
    """`text` in compatibility form (NFKC) and lower case, runs of blanks as one, trimmed."""
    return " ".join(plain(text).split())


def lines(text: str) -> frozenset[str]:
    """The lines of `text` that are not blank, each normalised."""
    return _lines(plain(text))


def _lines(low: str) -> frozenset[str]:
    return frozenset([" ".join(words) for words in map(str.split, low.split("\n")) if words])


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """The Jaccard index of two sets, neither empty: what they share by what either has."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def plan_duplicates(digests: Sequence[Digest]) -> tuple[Merge, ...]:
    """The merges of `consolidate`: memories of one block whose texts begin alike, one holding the other's lines.

    The one with more lines stays, then the longer, then the one with the higher `access_count`, the older, the
    smaller id. Memories without text stay as they are. The plan does not depend on the order of `digests`.
    """
    groups: dict[object, list[Digest]] = {}
    for digest in digests:
        text = normalised(digest.content)
        if text:
            groups.setdefault((digest.block, text[:PREFIX]), []).append(digest)
    merges: list[Merge] = []
    for group in groups.values():
        if len(group) > 1:
            merges += _merges(map(_Text.of, group))
    return _in_order(merges, digests)


def plan_similar(digests: Sequence[Digest]) -> Similar:
    """The merges and links (reason `similar 0.86`) of dream level 2.

    Compared are memories of one block with at least 5 terms each whose terms overlap by 0.8 or more: *same* ones
    are merged, different ones linked, unless they are linked or were unlinked. No memory gets more than MOST_LINKS
    such links in all. Links are those to make after the merges, best first; the plan does not depend on the order
    of `digests`.
    """
    own: dict[str, str] = {}
    known = {
        digest.id: frozenset([own.setdefault(term, term) for term in terms(plain(digest.content))])
        for digest in digests
    }
    merges: list[Merge] = []
    for block in _blocks(digests, known):
        merges += _merges([_Text.of(digest, known[digest.id]) for digest in block], _near)
    done = _in_order(merges, digests)
    links: list[Link] = []
    for block in _blocks(after_merges(digests, done), known):
        block.sort(key=lambda digest: (len(known[digest.id]), digest.id))
        links += _links(block, [known[digest.id] for digest in block])
    return Similar(done, tuple(sorted(links, key=lambda link: (-link.score, link.a, link.b))))


def _blocks(digests: Iterable[Digest], known: dict[str, frozenset[str]]) -> list[list[Digest]]:
    """Memories with enough terms, by block, where there are two or more."""
    blocks: dict[object, list[Digest]] = {}
    for digest in digests:
        if len(known[digest.id]) >= FEWEST_TERMS:
            blocks.setdefault(digest.block, []).append(digest)
    return [block for block in blocks.values() if len(block) > 1]


def _in_order(merges: Iterable[Merge], digests: Sequence[Digest]) -> tuple[Merge, ...]:
    """By survivor, then the older first: the order in which tags and links are united."""
    created = {digest.id: digest.created for digest in digests}
    return tuple(sorted(merges, key=lambda merge: (merge.survivor, created[merge.id], merge.id)))


def _near(a: _Text, b: _Text) -> bool:
    """Whether the terms overlap by 0.8 or more; `9 * shared >= 4 * both` is that in whole numbers."""
    both = len(a.terms) + len(b.terms)
    return 9 * min(len(a.terms), len(b.terms)) >= 4 * both and 9 * len(a.terms & b.terms) >= 4 * both


def _merges(texts: Iterable[_Text], near: Callable[[_Text, _Text], bool] | None = None) -> list[Merge]:
    """Each text that lies in another one (and is `near` it) goes to where that one goes, at last to a text that
    lies in none. What holds a text holds its rarest line, so only the texts with that line are looked at.
    """
    found: list[Merge] = []
    end: dict[str, _Text] = {}
    by_lines: dict[frozenset[str], _Text] = {}
    with_line: dict[str, list[_Text]] = {}
    for text in sorted(texts, key=lambda each: each.rank):
        holder = by_lines.get(text.lines)
        if holder is None:
            by_lines[text.lines] = text
            rarest = min((with_line.get(line, []) for line in text.lines), key=len)
            holder = next((t for t in rarest if (near is None or near(text, t)) and text.lines < t.lines), None)
            if holder is None or near is not None:  # being near does not go along chains: keep the links of it
                for line in text.lines:
                    with_line.setdefault(line, []).append(text)
        survivor = text if holder is None else end[holder.digest.id]
        end[text.digest.id] = survivor
        if survivor is not text:
            how = "same text as" if survivor.text == text.text else "all its lines are in"
            found.append(Merge(text.digest.id, survivor.digest.id, f"{how} {survivor.digest.id[:8]}"))
    return found


def _links(block: Sequence[Digest], sets: Sequence[frozenset[str]]) -> list[Link]:
    """The links between similar memories of a block, which is ordered by number of terms."""
    ties = linked(block)
    closed = ties | parted(block)
    made: Counter[int] = Counter()
    for a, b in ties:
        if 9 * len(sets[a] & sets[b]) >= 4 * (len(sets[a]) + len(sets[b])):
            made.update((a, b))
    found = []
    join = _Join(sets)
    for place in range(len(block)):
        if made[place] >= MOST_LINKS:
            continue
        near = [(-score, other) for other, score in join.near(place) if (other, place) not in closed]
        for score, other in sorted(near)[: MOST_LINKS - made[place]]:
            a, b = sorted((block[place].id, block[other].id))
            found.append(Link(a, b, -score, f"similar {-score:.2f}"))
            made.update((place, other))
            if made[other] >= MOST_LINKS:
                join.drop(other)
        if made[place] < MOST_LINKS:
            join.add(place)
    return found


class _Join:
    """Finds, among the sets added so far, those that overlap with another set by 0.8 or more.

    Sets are added in the order of their size. Two such sets share a term among the rarest fifth of each, so only
    sets found by those are compared (prefix filter). Where the rare terms are so common that they would find
    nearly everything, all sets are looked at, but by one number each, which holds for each bit whether the set's
    terms of that bit are odd in number: too many bits that differ prove too many terms that do.
    """

    def __init__(self, sets: Sequence[frozenset[str]]):
        self._sets = sets
        counts = Counter(chain.from_iterable(sets))
        common = sorted((term for term, n in counts.items() if n > 1), key=lambda term: (counts[term], term))
        ranks = {term: rank for rank, term in enumerate(common)}
        self._ranks = [sorted([ranks[term] for term in each if term in ranks]) for each in sets]
        bits = 1 << max(6, (sum(map(len, sets)) // len(sets)).bit_length())
        self._parities = [_parity(each, bits) for each in self._ranks]
        self._sizes = [len(each) for each in sets]
        self._with: dict[int, list[int]] = {}
        self._added: list[int] = []

    def near(self, place: int) -> list[tuple[int, float]]:
        """(place, overlap) of the added sets that overlap with the one at `place`."""
        size = self._sizes[place]
        sought = [self._with[rank] for rank in self._prefix(place, -(-4 * size // 5)) if rank in self._with]
        if not sought:
            return []
        start = bisect_left(self._added, -(-4 * size // 5), key=self._sizes.__getitem__)
        others: Iterable[int]
        if sum(map(len, sought)) > len(self._added) - start:
            others = self._added[start:]
        else:
            others = set(chain.from_iterable(sought))
        mine, parity, parities = self._sets[place], self._parities[place], self._parities
        differ = 2 * size // 9
        found = []
        for other in [o for o in others if (parity ^ parities[o]).bit_count() <= differ]:
            shared, both = len(mine & self._sets[other]), size + self._sizes[other]
            if 9 * shared >= 4 * both:
                found.append((other, shared / (both - shared)))
        return found

    def add(self, place: int) -> None:
        """The set at `place` can be found from now on."""
        insort(self._added, place)
        for rank in self._prefix(place, -(-8 * self._sizes[place] // 9)):
            self._with.setdefault(rank, []).append(place)

    def drop(self, place: int) -> None:
        """The set at `place` shall be found no more."""
        at = bisect_left(self._added, place)
        if self._added[at : at + 1] == [place]:
            del self._added[at]
            for rank in self._prefix(place, -(-8 * self._sizes[place] // 9)):
                self._with[rank].remove(place)

    def _prefix(self, place: int, needed: int) -> list[int]:
        """The rarest terms of which another set must have one to share `needed`. Terms no other set has are the
        rarest, and left out."""
        alone = self._sizes[place] - len(self._ranks[place])
        return self._ranks[place][: max(0, self._sizes[place] - needed + 1 - alone)]


def _parity(ranks: Iterable[int], bits: int) -> int:
    found = 0
    for rank in ranks:
        found ^= 1 << (rank % bits)
    return found
