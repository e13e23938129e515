"""Shows people and projects by name, everything about one name, and the facts about the owner.

A note is a person or a project by its type, or because it is in a folder such as `people`. Notes of
one name in several projects are one name here, and one page tells all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from memoranda.note.model import REMINDERS, Observation
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
# Notes of one name that its page tells, and facts of each that it shows.
_MAX_NAMESAKES = 20
_MAX_FACTS_OF_NAME = 60
# Facts of the owner's profile.
_MAX_FACTS = 200
WHOLE_LINES = "preference lines"
"""The reason why a note is in the profile if only some of its lines are about the owner."""


@dataclass
class Part:
    """Everything that one of the notes of a name says.

    place: the project and folder of the note, such as `notes/people`.
    facts: the facts in the note.
    incoming, outgoing: the links of the note.
    """

    info: NoteInfo
    place: str
    facts: list[Observation]
    incoming: list[Edge]
    outgoing: list[Edge]


@dataclass
class About:
    """Everything about one name.

    parts: the notes of that name, in all projects.
    incoming, outgoing: the links of these notes.
    telling: the passages of other notes with the name, by kind: `memories`, `notes`, `reminders`.
    total: how many passages have the name.
    """

    name: str
    parts: list[Part] = field(default_factory=list)
    telling: dict[str, list[Hit]] = field(default_factory=dict)
    total: int = 0

    @property
    def incoming(self) -> list[Edge]:
        """The links to the notes of the name."""
        return [edge for part in self.parts for edge in part.incoming]

    @property
    def outgoing(self) -> list[Edge]:
        """The links of the notes of the name to others."""
        return [edge for part in self.parts for edge in part.outgoing]


def count_people(memory: MemorySession) -> int:
    """Return how many people notes are about: by their type, or by their folder."""
    return len(_named(memory, "people"))


def _named(memory: MemorySession, kind: str) -> list[list[NotePlace]]:
    """Return the places of all notes of a kind by their name, in the order of their titles.

    Names that differ only in case are one name.
    """
    types, folders = _KINDS[kind]
    queries = [Query(types=types, archived=False)]
    for project, folder in folders_named(memory, folders):
        queries.append(Query(projects=(project,), folder=folder))
    # Only memories have a phase. A memory is a sentence about a person, so its title is not a name.
    places = [place for place in places_passing(memory, *queries) if place.phase is None]
    in_order = sorted(places, key=lambda place: (place.title.casefold(), place.row))
    by_name: dict[str, list[NotePlace]] = {}
    for place in in_order:
        by_name.setdefault(place.title.casefold(), []).append(place)
    return list(by_name.values())


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
    visit.begin_page()
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
    names = _named(memory, kind)
    if words:
        folded_words = fold(words)
        names = [places for places in names if folded_words in fold(places[0].title)]
    names_shown = names[offset : offset + max_names]
    ids = tuple(place.id for places in names_shown for place in places)
    infos, _ = memory.list(Query(ids=ids), limit=0)
    links = count_incoming(memory, infos, _MAX_LINKS)
    row_by_id = {info.id: info.row for info in infos}
    rows = []
    for places in names_shown:
        note_rows = [row_by_id[place.id] for place in places if place.id in row_by_id]
        rows.append(
            {
                "title": places[0].title,
                "projects": list(dict.fromkeys(place.project for place in places)),
                "links": min(_MAX_LINKS, sum(links[row] for row in note_rows)),
            }
        )
    return Listed.part(rows, len(names), offset)


def about(visit: Visit) -> Response:
    """Show everything about the name in the field `name`."""
    name = visit.text("name")
    if not name:
        raise InvalidInput("Say a name.")
    return visit.html("about.html", about=_about(visit.memory, name), most_facts=_MAX_FACTS_OF_NAME)


def notes_called(memory: MemorySession, name: str) -> list[NoteInfo]:
    """Return the notes of a name in all projects, at most _MAX_NAMESAKES."""
    infos: dict[int, NoteInfo] = {}
    for project in memory.projects:
        for info in _called_in(memory, name, project.name):
            infos.setdefault(info.row, info)
    return list(infos.values())[:_MAX_NAMESAKES]


def _called_in(memory: MemorySession, name: str, project: str) -> list[NoteInfo]:
    """Return the notes of a name in one project."""
    try:
        return [memory.find(name, project, looseness=Looseness.CASE)]
    except Ambiguous as error:
        return found_of(memory, error.candidates[:_MAX_NAMESAKES])
    except MemorandaError:
        # Passages may have a name that no note has.
        return []


def found_of(memory: MemorySession, refs: Sequence[str]) -> list[NoteInfo]:
    """Return the notes that some references name, without those that are gone."""
    infos = []
    for ref in refs:
        with suppress(MemorandaError):
            infos.append(memory.find(ref))
    return infos


def _part(memory: MemorySession, info: NoteInfo) -> Part:
    """Collect everything that one note of a name says."""
    return Part(
        info,
        f"{info.project.lstrip('.')}/{info.path}".rpartition("/")[0],
        list(memory.observations(info)),
        memory.incoming(info, _MAX_LINKS),
        [edge for edge in memory.outgoing(info) if edge.note][:_MAX_LINKS],
    )


def _about(memory: MemorySession, name: str) -> About:
    """Collect everything about a name."""
    page = About(name)
    page.parts = [_part(memory, info) for info in notes_called(memory, name)]
    own_rows = {part.info.row for part in page.parts}
    # A name is searched as a phrase, so that its words must be together.
    phrase = name.replace('"', " ")
    hits = memory.search(Query(text=f'"{phrase}"', archived=False), limit=_MAX_HITS)
    page.total = hits.total
    for hit in hits:
        if hit.note.row in own_rows:
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
