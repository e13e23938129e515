"""Shows people and projects by name, everything about one name, and the facts about the owner.

A note is a person or a project by its type, or because it is in a folder such as `people`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.listed import Listed
from memoranda.engine import MemorySession
from memoranda.engine.contents import folders_named, places_passing
from memoranda.engine.link_walk import count_incoming
from memoranda.engine.profile import ProfileEntry, profile
from memoranda.engine.telling import Telling
from memoranda.errors import Ambiguous, InvalidInput, MemorandaError
from memoranda.index.rows import Edge, Hit, NoteInfo, NotePlace
from memoranda.note.model import REMINDERS
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.serve.page.visit import HOME, Visit
from memoranda.text.folding import fold


class _Kind(NamedTuple):
    """The types of the notes of one kind, and the names of the folders they may be in."""

    types: tuple[str, ...]
    folders: tuple[str, ...]


_KINDS: Mapping[str, _Kind] = {
    "people": _Kind(
        ("person", "human", "user", "contact"),
        ("people", "People", "persons", "contacts", "Contacts", "人物", "联系人"),
    ),
    "projects": _Kind(("project",), ("projects", "Projects", "项目")),
}
# Names of one kind on the page of both kinds.
_FIRST = 24
# Names on the page of one kind.
_OF_ONE_KIND = 120
# Memories about people that are listed.
_MAX_MEMORIES = 20
_MAX_HITS = 60
# Links of a name that are counted, and that its page lists.
_MAX_LINKS = 100
# Facts of the owner's profile.
_MAX_FACTS = 200
WHOLE_LINES = "preference lines"
"""The reason why a note is in the profile if only some of its lines are about the owner."""


@dataclass
class About:
    """Everything about one name.

    info: the note of that name. None unless exactly one exists.
    namesakes: the projects and paths of the notes of that name, if there are several.
    facts: the facts in the note.
    incoming, outgoing: the links of the note.
    telling: the passages of other notes with the name, by kind: `memories`, `notes`, `reminders`.
    total: how many passages have the name.
    """

    name: str
    info: NoteInfo | None = None
    namesakes: Sequence[str] = ()
    facts: list[str] = field(default_factory=list)
    incoming: list[Edge] = field(default_factory=list)
    outgoing: list[Edge] = field(default_factory=list)
    telling: dict[str, list[Hit]] = field(default_factory=dict)
    total: int = 0


def count_people(memory: MemorySession) -> int:
    """Return how many notes are about a person: by their type, or by their folder."""
    return len(_named(memory, "people"))


def _named(memory: MemorySession, kind: str) -> list[NotePlace]:
    """Return the places of all notes of a kind, in the order of their titles."""
    types, folders = _KINDS[kind]
    queries = [Query(types=types, archived=False)]
    for project, folder in folders_named(memory, folders):
        queries.append(Query(projects=(project,), folder=folder))
    # Only memories have a phase. A memory is a sentence about a person, so its title is not a name.
    places = [place for place in places_passing(memory, *queries) if place.phase is None]
    return sorted(places, key=lambda place: (place.title.casefold(), place.row))


def show(visit: Visit) -> Response:
    """Show the names of people and projects, each with the number of notes that link to it.

    The field `kind` asks for one kind, and `name` for names that contain its text.
    """
    kind = visit.text("kind")
    if kind and kind not in _KINDS:
        raise InvalidInput(f"`kind` must be one of {', '.join(_KINDS)}")
    words = visit.text("name")
    offset = visit.number("offset", 0)
    max_names = _OF_ONE_KIND if kind else _FIRST
    memory = visit.memory
    lists = {
        shown_kind: _names(memory, shown_kind, words, offset, max_names)
        for shown_kind in ([kind] if kind else _KINDS)
    }
    memories, total = memory.list(Query(category="people", archived=False), limit=_MAX_MEMORIES)
    return visit.part_or_page(
        "names.html",
        "people.html",
        lists=lists,
        kind=kind,
        words=words,
        most_links=_MAX_LINKS,
        said=documents.references(memory, memories, total, 0),
    )


def _names(memory: MemorySession, kind: str, words: str, offset: int, max_names: int) -> Listed:
    """Return a part of the names of one kind, each with the number of its links.

    words: a text that the names contain. "": all names.
    offset: how many names are before this part.
    """
    places = _named(memory, kind)
    if words:
        folded_words = fold(words)
        places = [place for place in places if folded_words in fold(place.title)]
    ids = tuple(place.id for place in places[offset : offset + max_names])
    listed, _ = memory.list(Query(ids=ids), limit=0)
    by_id = {info.id: info for info in listed}
    infos = [by_id[identity] for identity in ids if identity in by_id]
    links = count_incoming(memory, infos, _MAX_LINKS)
    titles = Counter(place.title for place in places)
    rows = [
        documents.reference(info)
        | {"links": links[info.row], "is_namesake": titles[info.title] > 1}
        for info in infos
    ]
    return Listed.part(rows, len(places), offset)


def about(visit: Visit) -> Response:
    """Show everything about the name in the field `name`.

    The field `ref` names one of several notes of that name.
    """
    name = visit.text("name")
    if not name:
        raise InvalidInput("Say a name.")
    return visit.html("about.html", about=_about(visit.memory, name, visit.text("ref") or name))


def _about(memory: MemorySession, name: str, ref: str) -> About:
    """Collect everything about a name."""
    page = About(name)
    try:
        page.info = memory.find(ref, looseness=Looseness.CASE)
    except Ambiguous as error:
        page.namesakes = error.candidates[:_MAX_HITS]
    except MemorandaError:
        # Passages may have a name that no note has.
        pass
    if page.info is not None:
        observations = memory.observations(page.info)
        page.facts = [observation.content for observation in observations]
        page.incoming = memory.incoming(page.info, _MAX_LINKS)
        page.outgoing = [edge for edge in memory.outgoing(page.info) if edge.note][:_MAX_LINKS]
    # A name is searched as a phrase, so that its words must be together.
    phrase = name.replace('"', " ")
    hits = memory.search(Query(text=f'"{phrase}"', archived=False), limit=_MAX_HITS)
    page.total = hits.total
    for hit in hits:
        if page.info is not None and hit.note.row == page.info.row:
            continue
        page.telling.setdefault(_kind(hit.note), []).append(hit)
    return page


def _kind(info: NoteInfo) -> str:
    """Return the heading for a note among the passages."""
    if info.category == REMINDERS:
        return "reminders"
    if info.category:
        return "memories"
    return "notes"


def me(visit: Visit) -> Response:
    """Show the facts that agents know about the owner, each with buttons to confirm or forget it.

    A POST confirms or forgets the fact `ref`, as the field `do` says.
    """
    memory = visit.memory
    if visit.is_post:
        _judge(memory, visit.text("ref"), visit.text("do"))
        return visit.back(f"{HOME}/me")
    entries = [entry for entry in profile(memory, _MAX_FACTS) if not _is_silent(memory, entry)]
    return visit.html(
        "me.html",
        confirmed=[entry for entry in entries if entry.is_confirmed],
        unconfirmed=[entry for entry in entries if not entry.is_confirmed],
        whole_lines=WHOLE_LINES,
    )


def _is_silent(memory: MemorySession, entry: ProfileEntry) -> bool:
    """Whether agents are not shown a fact of the profile."""
    return memory.telling(entry.info) is Telling.SILENT


def _judge(memory: MemorySession, ref: str, choice: str) -> None:
    """Confirm a fact about the owner, or delete it. Raises InvalidInput."""
    info = memory.find(ref, looseness=Looseness.EXACT)
    if choice == "confirm":
        memory.confirm_notes([info])
    elif choice == "forget":
        memory.delete(info)
    else:
        raise InvalidInput('`do` must be one of "confirm", "forget"')
