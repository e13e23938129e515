"""People and projects by name, everything about one of them, and what is known about the owner."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.listed import Listed
from memoranda.engine import MemorySession
from memoranda.engine.contents import folders_named, places_passing
from memoranda.engine.link_walk import count_incoming
from memoranda.engine.profile import ProfileEntry, profile
from memoranda.engine.telling import Telling
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.index.rows import Edge, Hit, NoteInfo, NotePlace
from memoranda.note.model import REMINDERS
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.serve.page.visit import HOME, Visit
from memoranda.text.folding import fold

# The types and the folders of notes that are people, and of those that are projects.
_KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "people": (
        ("person", "human", "user", "contact"),
        ("people", "People", "persons", "contacts", "Contacts", "人物", "联系人"),
    ),
    "projects": (("project",), ("projects", "Projects", "项目")),
}
# Names of one kind on a page with both kinds, and on a page of their own.
_FIRST = 48
_OF_ONE_KIND = 120
# Remembered sentences about people.
_SAID = 20
_HITS = 60
# Links of a name that are counted, and that its page lists.
_EDGES = 100
# Facts asked of the profile.
_PROFILE = 200
WHOLE_LINES = "preference lines"
"""Why a note is in the profile of which only some lines are about the owner."""


@dataclass
class About:
    """Everything about one name.

    info: the note of that name, if it exists.
    facts: the facts about it.
    incoming, outgoing: its links.
    telling: the passages with the name, by kind: `memories`, `notes`, `reminders`.
    total: the number of these passages.
    """

    name: str
    info: NoteInfo | None = None
    facts: list[str] = field(default_factory=list)
    incoming: list[Edge] = field(default_factory=list)
    outgoing: list[Edge] = field(default_factory=list)
    telling: dict[str, list[Hit]] = field(default_factory=dict)
    total: int = 0


def count_people(memory: MemorySession) -> int:
    """How many notes are people: by their type, or in a folder of people."""
    return len(_named(memory, "people"))


def _named(memory: MemorySession, kind: str) -> list[NotePlace]:
    """Where the notes of one kind are: by their type, or in a folder of that kind; by title."""
    types, folders = _KINDS[kind]
    places = places_passing(memory, Query(types=types, archived=False))
    for project, folder in folders_named(memory, folders):
        places += places_passing(memory, Query(projects=(project,), folder=folder))
    # A memory of such a category is a sentence, not a name
    by_row = {place.row: place for place in places if place.phase is None}
    return sorted(by_row.values(), key=lambda place: (place.title.casefold(), place.row))


def show(visit: Visit) -> Response:
    """People and projects, or entities of one `kind`, whose names have the words typed, each with
    the number of notes that link to it.
    """
    kind = visit.text("kind")
    if kind and kind not in _KINDS:
        raise InvalidInput(f"`kind` must be one of {', '.join(_KINDS)}")
    words = visit.text("name")
    offset = visit.number("offset", 0)
    most = _OF_ONE_KIND if kind else _FIRST
    memory = visit.memory
    lists = {
        shown_kind: _names(memory, shown_kind, words, offset, most)
        for shown_kind in ([kind] if kind else _KINDS)
    }
    memories, total = memory.list(Query(category="people", archived=False), limit=_SAID)
    return visit.part_or_page(
        "names.html",
        "people.html",
        lists=lists,
        kind=kind,
        words=words,
        most_links=_EDGES,
        said=documents.references(memory, memories, total, 0),
    )


def _names(memory: MemorySession, kind: str, words: str, offset: int, most: int) -> Listed:
    """A part of the names of one kind that have the words, each with its links."""
    places = _named(memory, kind)
    if words:
        folded_words = fold(words)
        places = [place for place in places if folded_words in fold(place.title)]
    ids = tuple(place.id for place in places[offset : offset + most])
    listed, _ = memory.list(Query(ids=ids), limit=0)
    by_id = {info.id: info for info in listed}
    infos = [by_id[identity] for identity in ids if identity in by_id]
    links = count_incoming(memory, infos, _EDGES)
    rows = [documents.reference(info) | {"links": links[info.row]} for info in infos]
    return Listed.part(rows, len(places), offset)


def about(visit: Visit) -> Response:
    """Everything about the name `name`."""
    name = visit.text("name")
    if not name:
        raise InvalidInput("Say a name.")
    return visit.html("about.html", about=_about(visit.memory, name))


def _about(memory: MemorySession, name: str) -> About:
    page = About(name)
    with suppress(MemorandaError):
        page.info = memory.find(name, looseness=Looseness.CASE)
    if page.info is not None:
        observations = memory.observations(page.info)
        page.facts = [observation.content for observation in observations]
        page.incoming = memory.incoming(page.info, _EDGES)
        page.outgoing = [edge for edge in memory.outgoing(page.info) if edge.note][:_EDGES]
    # A name is searched as a phrase, so that its words must be together.
    phrase = name.replace('"', " ")
    hits = memory.search(Query(text=f'"{phrase}"', archived=False), limit=_HITS)
    page.total = hits.total
    for hit in hits:
        if page.info is not None and hit.note.row == page.info.row:
            continue
        page.telling.setdefault(_kind(hit.note), []).append(hit)
    return page


def _kind(info: NoteInfo) -> str:
    if info.category == REMINDERS:
        return "reminders"
    if info.category:
        return "memories"
    return "notes"


def me(visit: Visit) -> Response:
    """Return the facts agents know about the owner, each with a tick and a cross; after a POST of `ref` and
    `do`, with that one confirmed or forgotten.
    """
    memory = visit.memory
    if visit.is_post:
        _judge(memory, visit.text("ref"), visit.text("do"))
        return visit.back(f"{HOME}/me")
    entries = [entry for entry in profile(memory, _PROFILE) if not _is_silent(memory, entry)]
    return visit.html(
        "me.html",
        confirmed=[entry for entry in entries if entry.is_confirmed],
        unconfirmed=[entry for entry in entries if not entry.is_confirmed],
        whole_lines=WHOLE_LINES,
    )


def _is_silent(memory: MemorySession, entry: ProfileEntry) -> bool:
    return memory.telling(entry.info) is Telling.SILENT


def _judge(memory: MemorySession, ref: str, choice: str) -> None:
    info = memory.find(ref, looseness=Looseness.EXACT)
    if choice == "confirm":
        memory.confirm_notes([info])
    elif choice == "forget":
        memory.delete(info)
    else:
        raise InvalidInput('`do` must be one of "confirm", "forget"')
