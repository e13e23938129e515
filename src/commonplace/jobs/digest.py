"""What the pure rules of the jobs know of a memory, and what a planned merge or link makes of it.

Nothing here reads or writes: a job makes digests of the memories it may touch, asks `similar` and `cross` for a
plan, and carries it out; later steps of a plan go on with what `after_merges` and `after_links` return.
Source: contract 001, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from commonplace.note.model import INBOX, ORGANIZED

REMINDERS = "reminders"


@dataclass(frozen=True, slots=True)
class Digest:
    """One memory. Times are aware UTC; `due_at` and `repeat` are compared for equality only.

    `content` is the text without the header. `targets` are the targets of its wikilinks as written, those in
    code left out. `links`, `unlinked` and `merged` are whole ids (contract 001, 2).
    """

    id: str
    scope: str
    content: str
    category: str
    created: datetime
    phase: str = ORGANIZED
    access_count: int = 0
    updated: datetime | None = None
    expires: datetime | None = None
    due_at: datetime | str | None = None
    repeat: str | None = None
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    @property
    def block(self) -> tuple[object, ...]:
        """Only memories of one block are merged or linked as similar: one scope, and reminders only with
        reminders of equal `due_at` and `repeat`."""
        if self.category != REMINDERS:
            return (self.scope, False)
        return (self.scope, True, self.due_at, self.repeat)


@dataclass(frozen=True, slots=True)
class Merge:
    """The memory `id` goes into `survivor`, whose text holds all of its lines. No survivor is merged away by
    the same plan, so the merges of a plan may be carried out in any order."""

    id: str
    survivor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link both ways between two memories; `a` is the smaller id. `reason` says why in words."""

    a: str
    b: str
    score: float
    reason: str


def united(survivor: Digest, others: Iterable[Digest]) -> Digest:
    """The survivor after the others were merged into it, in this order (contract 001, 5, "Merging").

    It keeps id, content and category, but one in the inbox takes category and phase of the first organized
    other. Tags and links are united, its own first; access counts are summed; `created` is the earliest;
    `expires` is None if any is organized, else the latest; `merged` gains the others' ids and those in them.
    """
    all_of = (survivor, *others)
    home = next((each for each in all_of if each.phase == ORGANIZED), survivor)
    merged = tuple(dict.fromkeys([*survivor.merged, *(id for o in all_of[1:] for id in (o.id, *o.merged))]))
    gone = {survivor.id, *merged}
    ends = [each.expires for each in all_of if each.expires is not None]
    return replace(
        survivor,
        category=home.category,
        phase=home.phase,
        tags=tuple(dict.fromkeys(tag for each in all_of for tag in each.tags)),
        links=tuple(dict.fromkeys(id for each in all_of for id in each.links if id not in gone)),
        merged=merged,
        access_count=sum(each.access_count for each in all_of),
        created=min(each.created for each in all_of),
        expires=max(ends) if ends and home.phase == INBOX else None,
    )


def after_merges(digests: Sequence[Digest], merges: Iterable[Merge], now: datetime | None = None) -> list[Digest]:
    """The digests as they are once the merges are done: links to what was merged lead to the survivor.

    `updated` of what changed becomes `now`, when given.
    """
    into = {merge.id: merge.survivor for merge in merges}
    by_id = {digest.id: digest for digest in digests}
    others: dict[str, list[Digest]] = {}
    for id, survivor in into.items():
        others.setdefault(survivor, []).append(by_id[id])
    left = []
    for digest in digests:
        if digest.id in into:
            continue
        after = united(digest, others[digest.id]) if digest.id in others else digest
        if any(id in into for id in after.links):
            led = dict.fromkeys(into.get(id, id) for id in after.links)
            after = replace(after, links=tuple(id for id in led if id != after.id))
        left.append(after if after is digest or now is None else replace(after, updated=now))
    return left


def after_links(digests: Sequence[Digest], links: Iterable[Link], now: datetime | None = None) -> list[Digest]:
    """The digests as they are once the links are made; `updated` of what was linked becomes `now`, when given."""
    more: dict[str, list[str]] = {}
    for link in links:
        more.setdefault(link.a, []).append(link.b)
        more.setdefault(link.b, []).append(link.a)
    return [
        replace(each, links=tuple(dict.fromkeys((*each.links, *more[each.id]))), updated=now or each.updated)
        if each.id in more
        else each
        for each in digests
    ]


def linked(digests: Sequence[Digest]) -> set[tuple[int, int]]:
    """The pairs of places (smaller first) in `digests` that are linked by either side.

    An id merged into one of them counts as that one.
    """
    return _pairs(digests, lambda digest: digest.links)


def parted(digests: Sequence[Digest]) -> set[tuple[int, int]]:
    """The pairs of places (smaller first) of which either side remembers an `unlink` (contract 001, 4)."""
    return _pairs(digests, lambda digest: digest.unlinked)


def _pairs(digests: Sequence[Digest], ids: Callable[[Digest], Iterable[str]]) -> set[tuple[int, int]]:
    places = {id: place for place, digest in enumerate(digests) for id in digest.merged}
    places |= {digest.id: place for place, digest in enumerate(digests)}
    met = ((place, places[id]) for place, digest in enumerate(digests) for id in ids(digest) if id in places)
    return {(min(pair), max(pair)) for pair in met if pair[0] != pair[1]}
