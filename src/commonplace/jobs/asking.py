"""What a language model may propose in a deep dream; every answer is checked, and none is needed (contract 001, 6)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from commonplace.jobs.digest import REMINDERS, Digest, Link, linked, parted
from commonplace.jobs.job import Action, Known
from commonplace.jobs.terms import plain, terms
from commonplace.llm import Endpoint, NoAnswer
from commonplace.note.model import CATEGORIES, INBOX, ORGANIZED

if TYPE_CHECKING:
    from commonplace.config import Settings

CHOICES = tuple(name for name in CATEGORIES if name not in (INBOX, REMINDERS))
AT_ONCE, MOST = 20, 200
"""Memories a request holds, and how many are asked about in a dream; the table decides on the rest."""
MOST_SHOWN = 60
"""Older memories a request for links holds: those that share most words with the fresh ones."""
MOST_LINKS, MOST_LINKS_PER_MEMORY = 50, 3
_TEXT, _REASON = 600, 120
"""Characters shown of a memory, and of a reason kept."""


def endpoint(settings: Settings) -> Endpoint | None:
    """The language model of the configuration (`llm.*`), if there is one."""
    if not (settings.llm_base_url and settings.llm_model):
        return None
    return Endpoint(settings.llm_base_url, settings.llm_model, settings.llm_key)


def categories(endpoint: Endpoint | None, job: str, unsure: Sequence[Known]) -> dict[str, Action]:
    """Actions, by id, that put memories the table says nothing of into a category the model chose."""
    found: dict[str, Action] = {}
    asked = unsure[:MOST] if endpoint is not None else ()
    for at in range(0, len(asked), AT_ONCE):
        part = {each.id: each for each in asked[at : at + AT_ONCE]}
        try:
            chosen = _ask(endpoint, "dream-categories.md", [each.digest for each in part.values()],
                          lambda answer, part=part: _checked_categories(answer, part))  # fmt: skip
        except NoAnswer:
            continue
        for identity, category in chosen.items():
            reason = f"{category} (the language model's choice)"
            found[identity] = Action(job, "classify", identity, reason, part[identity].path, category)
    return found


def links(endpoint: Endpoint | None, digests: Sequence[Digest], fresh: set[str], made: Sequence[Link]) -> list[Link]:
    """Links the model sees between memories of one scope, one of them `fresh`, besides those `made` already.

    The limits of a run hold for both together.
    """
    may = [each for each in digests if each.phase == ORGANIZED and each.category != REMINDERS]
    proposed: list[Link] = []
    for scope in sorted({each.scope for each in may if each.id in fresh}) if endpoint is not None else ():
        shown = _shown([each for each in may if each.scope == scope], fresh)
        try:
            proposed += _ask(endpoint, "dream-links.md", shown, lambda answer, shown=shown: _checked_links(
                answer, {each.id for each in shown}, fresh))  # fmt: skip
        except NoAnswer:
            continue
    return _within_limits(proposed, digests, made)


def _ask(endpoint: Endpoint | None, prompt: str, digests: Iterable[Digest], read: Any) -> Any:
    """What `read` makes of the answer. Raises NoAnswer."""
    if endpoint is None:
        raise NoAnswer("There is no language model to ask.")
    text = files("commonplace.jobs").joinpath(prompt).read_text("utf-8")
    rows = [{"id": each.id, "category": each.category, "text": each.content[:_TEXT]} for each in digests]
    return endpoint.ask(
        Template(text).substitute(categories=", ".join(CHOICES)), json.dumps(rows, ensure_ascii=False), read
    )


def _checked_categories(answer: Any, asked: Iterable[str]) -> dict[str, str]:
    """The categories by id. Raises ValueError for an answer that must not be followed."""
    rows = answer.get("categories") if isinstance(answer, dict) else None
    if not isinstance(rows, dict):
        raise ValueError("it has no categories")
    known = set(asked)
    for identity, category in rows.items():
        if identity not in known:
            raise ValueError("it names a memory that was not asked about")
        if category not in CHOICES:
            raise ValueError("it names a category there is not")
    return rows


def _checked_links(answer: Any, shown: set[str], fresh: set[str]) -> list[Link]:
    """The links. Raises ValueError for an answer that must not be followed."""
    rows = answer.get("links") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise ValueError("it has no links")
    found = []
    for row in rows:
        ends = [row.get("a"), row.get("b")] if isinstance(row, dict) else []
        if len(ends) != 2 or not all(isinstance(end, str) and end in shown for end in ends) or ends[0] == ends[1]:
            raise ValueError("it links a memory that was not shown")
        if not fresh.intersection(ends):
            raise ValueError("it links two memories that are not new")
        reason = " ".join(str(row.get("reason") or "").split())[:_REASON]
        if not reason or not reason.isprintable():
            raise ValueError("it gives no reason")
        a, b = sorted(ends)
        found.append(Link(a, b, 0.0, f"{reason} (the language model's)"))
    return found


def _shown(digests: Sequence[Digest], fresh: set[str]) -> list[Digest]:
    """The fresh memories of a scope, and the older ones that share most words with them."""
    new = [each for each in digests if each.id in fresh][:AT_ONCE]
    words = set().union(*(terms(plain(each.content)) for each in new))
    shared = {each.id: len(words & terms(plain(each.content))) for each in digests if each.id not in fresh}
    old = [each for each in digests if shared.get(each.id)]
    return [*new, *sorted(old, key=lambda each: (-shared[each.id], each.id))[:MOST_SHOWN]]


def _within_limits(proposed: Iterable[Link], digests: Sequence[Digest], made: Sequence[Link]) -> list[Link]:
    """The proposed links that are new, were never unlinked, and leave each memory and the run within its limit."""
    places = {each.id: place for place, each in enumerate(digests)}
    closed = linked(digests) | parted(digests)
    closed |= {_pair(places[each.a], places[each.b]) for each in made}
    counts = Counter(end for each in made for end in (each.a, each.b))
    found: list[Link] = []
    for link in proposed:
        pair = _pair(places[link.a], places[link.b])
        is_full = max(counts[link.a], counts[link.b]) >= MOST_LINKS_PER_MEMORY or len(made) + len(found) >= MOST_LINKS
        if pair not in closed and not is_full:
            closed.add(pair)
            counts.update((link.a, link.b))
            found.append(link)
    return found


def _pair(a: int, b: int) -> tuple[int, int]:
    return min(a, b), max(a, b)
