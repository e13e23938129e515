"""People and projects by name, everything about one of them, and what is known about the owner."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.profile import ProfileEntry, profile
from memoranda.engine.telling import Telling
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.index.rows import Edge, Hit, NoteInfo
from memoranda.note.model import REMINDERS
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.serve.page.visit import HOME, Visit

_PERSON_TYPES = ("person", "human", "user", "contact")
_PROJECT_TYPES = ("project",)
_PEOPLE_FOLDERS = ("people", "People", "persons", "contacts", "Contacts", "人物", "联系人")
_PROJECT_FOLDERS = ("projects", "Projects", "项目")
# People listed.
_MOST = 500
_HITS = 60
# People whose incoming links are counted, and the links counted of each.
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


def people(memory: MemorySession) -> list[NoteInfo]:
    """The notes that are people: by their type, or in a folder of people."""
    return _named(memory, _PERSON_TYPES, _PEOPLE_FOLDERS)


def projects(memory: MemorySession) -> list[NoteInfo]:
    """The notes that are projects of the owner: by their type, or in a folder of projects."""
    return _named(memory, _PROJECT_TYPES, _PROJECT_FOLDERS)


def _named(memory: MemorySession, types: tuple[str, ...], folders: Iterable[str]) -> list[NoteInfo]:
    infos, _ = memory.list(Query(types=types, archived=False), limit=_MOST)
    for project in memory.projects:
        for folder in folders:
            in_folder = Query(projects=(project.name,), folder=folder)
            infos += memory.list(in_folder, limit=0)[0]
    # A memory of such a category is a sentence, not a name
    by_row = {info.row: info for info in infos if info.phase is None}
    return sorted(by_row.values(), key=lambda info: info.title.casefold())[:_MOST]


def show(visit: Visit) -> Response:
    """People and projects, each with how many notes link to it."""
    memory = visit.memory
    notes_by_kind = {"people": people(memory), "projects": projects(memory)}
    memories, total = memory.list(Query(category="people", archived=False), limit=20)
    # To count the links of thousands of names takes longer than to show a page
    counted = chain.from_iterable(infos[:_EDGES] for infos in notes_by_kind.values())
    links = {info.row: len(memory.incoming(info, _EDGES)) for info in counted}
    return visit.html(
        "people.html", named=notes_by_kind, links=links, said=memories, said_total=total
    )


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
    """Show what agents know about the owner.

    A POST of `ref` and `do` confirms or forgets an entry.
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
