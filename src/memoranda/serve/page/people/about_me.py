"""Shows what agents know about the owner: what they are told, as what, and what they are not told."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.telling.contested import newer_contradictions
from memoranda.engine.telling.manner import Telling
from memoranda.engine.telling.profile import ProfileEntry, profile
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import InvalidInput
from memoranda.index.rows import NoteInfo
from memoranda.note.model import CATEGORY_PROJECT
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.serve.page.note.contradicted import Contradicted, contradicted_in, struck_out
from memoranda.serve.page.people.like_facts import alike
from memoranda.serve.page.shell import presence
from memoranda.serve.page.visit import HOME, Visit
from memoranda.serve.page.words.plain_markdown import plain_text
from memoranda.serve.page.words.text_origin import TextOrigin, text_origin

# Facts of the owner's profile.
_MAX_FACTS = 200
# Groups of facts that are shown above "more".
_GROUPS_SHOWN = 12
# The category before the words of a fact.
_CATEGORY = re.compile(r"^\[([^\[\]]{2,60})\] ")
# The reason why a note is in the profile if only some of its lines are about the owner.
_SOME_LINES = "preference lines"
# The agent whose telling is looked at if none was here lately.
_DEFAULT_AGENT = "claude"


class _KnownFact(NamedTuple):
    """A fact about the owner that agents know from one note.

    title: the title of the note. "" if the text begins with it.
    text: the part of the note that is about the owner, without the marks of Markdown.
    why: the reason why it is about the owner.
    is_whole: whether the whole note is about the owner.
    is_only_pinned: whether it is told because it is pinned, whatever it is about.
    origin: who wrote its text, and when.
    contradicted: what something newer contradicts in it.
    """

    info: NoteInfo
    title: str
    text: str
    why: str
    is_confirmed: bool
    is_whole: bool
    is_only_pinned: bool
    origin: TextOrigin
    contradicted: Sequence[Contradicted]


class _Group(NamedTuple):
    """Facts that say nearly the same.

    fact: the one that is shown.
    others: those in other words.
    writers: who wrote them, each once.
    """

    fact: _KnownFact
    others: list[_KnownFact]
    writers: list[str]


@dataclass
class _KnownFacts:
    """The facts that agents know about the owner, in groups.

    confirmed: what they are told as facts.
    pinned: what they are told as facts only because it is pinned. It may be about anybody.
    noted: what they are told with the name of who noted it. What is like it may be untold.
    untold: what they are not told at the start of a session, but find.
    """

    confirmed: list[_Group]
    pinned: list[_Group]
    noted: list[_Group]
    untold: list[_Group]


def show(visit: Visit) -> Response:
    """Show the facts that agents know about the owner, each with buttons to confirm or forget it.

    A POST confirms or forgets the fact `ref`, as the field `do` says.
    """
    memory = visit.memory
    if visit.is_post:
        _judge(memory, visit.text("ref"), visit.text("do"))
        return visit.back(f"{HOME}/me")
    facts = _facts(memory)
    told_ids = _ids_told(visit, facts)
    known = _known_facts(facts, told_ids)
    claims = [fact for fact in facts if not fact.is_confirmed]
    noted_count = sum(fact.info.id in told_ids for fact in claims)
    return visit.html(
        "me.html",
        known=known,
        confirmed_count=_count(known.confirmed),
        pinned_count=_count(known.pinned),
        noted_count=noted_count,
        untold_count=len(claims) - noted_count,
        planted_count=_planted_preferences(memory),
        most_shown=_GROUPS_SHOWN,
        struck_out=struck_out,
    )


def _facts(memory: MemorySession) -> list[_KnownFact]:
    """Return the facts about the owner that agents are shown."""
    entries = profile(memory, _MAX_FACTS)
    shown_entries = [entry for entry in entries if not _is_silent(memory, entry)]
    # Looking for what is contradicted in a note takes long, so most notes are left out.
    contradicted_rows = newer_contradictions(memory, [entry.info for entry in shown_entries]).keys()
    return [_known_fact(memory, entry, contradicted_rows) for entry in shown_entries]


def _known_facts(facts: Iterable[_KnownFact], told_ids: Container[str]) -> _KnownFacts:
    """Return facts about the owner in groups, by how agents know them.

    told_ids: the ids of the notes that an agent is told at the start of a session.
    """
    confirmed: list[_KnownFact] = []
    pinned: list[_KnownFact] = []
    told_claims: list[_KnownFact] = []
    untold_claims: list[_KnownFact] = []
    for fact in facts:
        if fact.is_confirmed and fact.is_only_pinned:
            pinned.append(fact)
        elif fact.is_confirmed:
            confirmed.append(fact)
        elif fact.info.id in told_ids:
            told_claims.append(fact)
        else:
            untold_claims.append(fact)
    # What is told comes first, and names its group.
    groups_of_claims = _groups([*told_claims, *untold_claims])
    return _KnownFacts(
        confirmed=_groups(confirmed),
        pinned=_groups(pinned),
        noted=[group for group in groups_of_claims if group.fact.info.id in told_ids],
        untold=[group for group in groups_of_claims if group.fact.info.id not in told_ids],
    )


def _count(groups: Iterable[_Group]) -> int:
    """Return the number of facts in groups."""
    return sum(1 + len(group.others) for group in groups)


def _known_fact(
    memory: MemorySession, entry: ProfileEntry, contradicted_rows: Container[int]
) -> _KnownFact:
    """Return an entry of the profile as the page shows it.

    contradicted_rows: the rows of the notes that a newer note contradicts.
    """
    title = entry.info.title
    text = plain_text(entry.text).strip()
    items = [_CATEGORY.sub(r"\1: ", line.strip().removeprefix("• ")) for line in text.splitlines()]
    words = " · ".join(item for item in items if item)
    contradicted: Sequence[Contradicted] = ()
    if entry.info.row in contradicted_rows:
        contradicted = contradicted_in(memory, entry.info, memory.outgoing(entry.info))
    return _KnownFact(
        info=entry.info,
        title="" if words.startswith(title) else title,
        text=words,
        why=entry.why,
        is_confirmed=entry.is_confirmed,
        is_whole=entry.why != _SOME_LINES,
        is_only_pinned=entry.is_only_pinned,
        origin=text_origin(memory, entry.info),
        contradicted=contradicted,
    )


def _is_silent(memory: MemorySession, entry: ProfileEntry) -> bool:
    """Whether agents are not shown a fact of the profile."""
    return memory.telling(entry.info) is Telling.SILENT


def _ids_told(visit: Visit, facts: Collection[_KnownFact]) -> set[str]:
    """Return the ids of the notes that an agent is told at the start of a session.

    It is the agent that was here last.
    """
    # The function is missing if the page is served without our clients, as by tests.
    preview = getattr(visit.request.app.state, "preview", None)
    if preview is None:
        return {fact.info.id for fact in facts}
    present = presence(visit)
    agent = present[0].agent if present else _DEFAULT_AGENT
    return set(preview(visit.memory, agent, "").at_start.notes)


def _groups(facts: Iterable[_KnownFact]) -> list[_Group]:
    """Group facts that say nearly the same."""
    texts = [(fact.text, fact) for fact in facts]
    groups = []
    for fact, *others in alike(texts):
        writers = [like_fact.origin.writer for like_fact in (fact, *others)]
        groups.append(_Group(fact, others, list(dict.fromkeys(writers))))
    return groups


def _planted_preferences(memory: MemorySession) -> int:
    """Return how many preferences no agent is told, since they seem to hold instructions."""
    preferences, _ = memory.list(
        Query(projects=(CATEGORY_PROJECT,), category="preferences", archived=False), limit=0
    )
    return sum(memory.is_held_back(info) for info in preferences)


def _judge(memory: MemorySession, ref: str, choice: str) -> None:
    """Confirm a fact about the owner, delete it, or unpin its note. Raises InvalidInput."""
    info = memory.find(ref, looseness=Looseness.EXACT)
    if choice == "confirm":
        memory.confirm_notes([info])
    elif choice == "forget":
        memory.delete(info)
    elif choice == "unpin":
        Upkeep(memory).pin([info], pinned=False)
    else:
        raise InvalidInput('`do` must be one of "confirm", "forget", "unpin"')
