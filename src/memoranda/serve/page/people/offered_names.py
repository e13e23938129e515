"""Offers names beside the hits of a search: people, projects, agents, and collections of notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from threading import Lock
from urllib.parse import urlencode

from memoranda.serve.page.people.people_page import titles_of
from memoranda.serve.page.shell import known_counts
from memoranda.serve.page.visit import HOME, Visit
from memoranda.text.folding import fold
from memoranda.text.han import other_forms

# Names that are offered at once.
_MAX_NAMES = 4
# How long the names of notes are used after they were read, unless the ledger changed.
_NAMES_LAST = timedelta(minutes=1)
# Held while the names of notes are read, so that several requests share them.
_READING = Lock()
# Characters that a name must have at least to be found inside of a longer query.
_MIN_CHARACTERS_INSIDE = 2
# The rank of a name inside of a longer query.
_RANK_INSIDE = 3


@dataclass(frozen=True)
class OfferedName:
    """A name with a page of its own.

    kind: what has the name, in words to translate.
    url: the address of its page.
    folded: the name as it is compared.
    """

    kind: str
    name: str
    url: str
    folded: str


@dataclass(frozen=True)
class _NamesOfNotes:
    """The names of people and projects, and when they were read."""

    names: Sequence[OfferedName]
    stamp: str
    moment: datetime


def names_for(visit: Visit, text: str) -> list[OfferedName]:
    """Return the names that a query may mean, the likeliest first, at most _MAX_NAMES."""
    typed = " ".join(fold(text).split())
    if not typed:
        return []
    typed_forms = [typed, *other_forms(typed)]
    by_rank: dict[int, list[OfferedName]] = {}
    for offered in _all_names(visit):
        ranks = [_rank(form, offered.folded) for form in typed_forms]
        rank = min((rank for rank in ranks if rank is not None), default=None)
        if rank is not None:
            by_rank.setdefault(rank, []).append(offered)
    in_order = chain.from_iterable(by_rank[rank] for rank in sorted(by_rank))
    # The address of a name has it in clear, so a name with a secret is not offered.
    redacted = visit.memory.rules_for_reading().redacted
    may_be_offered = (offered for offered in in_order if redacted(offered.name) == offered.name)
    return list(islice(may_be_offered, _MAX_NAMES))


def is_meant_alone(text: str, name: str) -> bool:
    """Whether a query is a name or the beginning of its words, and not a text with the name in it.

    text, name: as they are written.
    """
    typed = " ".join(fold(text).split())
    ranks = [_rank(form, fold(name)) for form in (typed, *other_forms(typed))]
    return any(rank is not None and rank < _RANK_INSIDE for rank in ranks)


def _rank(typed: str, name: str) -> int | None:
    """Return how likely a query means a name: the lower, the likelier. None if it does not mean it.

    For the name "ann lee": "ann lee" has 0, "an" has 1, "lee" has 2, and "when did ann lee call"
    has _RANK_INSIDE.

    typed, name: both folded.
    """
    if name == typed:
        return 0
    if name.startswith(typed):
        return 1
    # Some scripts write words without blanks between them, so a word may begin anywhere.
    begins_word = f" {typed}" in name or (not typed.isascii() and typed in name)
    if begins_word:
        return 2
    is_inside = f" {name} " in f" {typed} " or (not name.isascii() and name in typed)
    if is_inside and len(name) >= _MIN_CHARACTERS_INSIDE:
        return _RANK_INSIDE
    return None


def _all_names(visit: Visit) -> Iterator[OfferedName]:
    """Yield all names that can be offered."""
    yield from names_of_notes(visit)
    counts = known_counts(visit.request)
    for presence in counts.agents if counts else ():
        address = f"{HOME}?{urlencode({'agent': presence.agent})}"
        yield _offered("Agent", presence.agent, address)
    for project in visit.memory.projects:
        if project.name.startswith("."):
            continue
        address = f"{HOME}/search?{urlencode({'project': project.name})}"
        yield _offered("All notes of the project", project.name, address)


def names_of_notes(visit: Visit) -> Sequence[OfferedName]:
    """Return the names of people and projects that notes are about."""
    state = visit.request.app.state
    with _READING:
        stamp = visit.memory.journal_stamp()
        cached: _NamesOfNotes | None = getattr(state, "names_of_notes", None)
        if cached and cached.stamp == stamp and visit.now - cached.moment < _NAMES_LAST:
            return cached.names
        names = _with_pages("Person", titles_of(visit.memory, "people"))
        names += _with_pages("Project", titles_of(visit.memory, "projects"))
        state.names_of_notes = _NamesOfNotes(names, stamp, visit.now)
        return names


def _with_pages(kind: str, names: Sequence[str]) -> list[OfferedName]:
    """Return names whose pages tell everything about them."""
    return [_offered(kind, name, f"{HOME}/about?{urlencode({'name': name})}") for name in names]


def _offered(kind: str, name: str, url: str) -> OfferedName:
    return OfferedName(kind, name, url, fold(name))
