"""Shows people and projects by name.

A note is a person or a project by its type, or because it is in a folder such as `people`. Notes of
one name in several projects are one name here. person.py shows everything about one of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from starlette.responses import Response

from memoranda.documents.listed import Listed
from memoranda.engine import MemorySession
from memoranda.engine.contents import contents, folders_named, places_passing
from memoranda.engine.links.link_walk import count_incoming
from memoranda.errors import InvalidInput
from memoranda.index.rows import NoteInfo, NotePlace
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.query import Query
from memoranda.serve.page.addresses import about_url
from memoranda.serve.page.note.facts import words_of_fact
from memoranda.serve.page.people.sentence_facts import SentenceFact, facts_in_sentence, is_about
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.plain_markdown import plain_text
from memoranda.serve.page.words.text_origin import text_origin
from memoranda.text.folding import fold


class _Kind(NamedTuple):
    """How notes about people, or about projects, are recognized.

    types: the types that such notes have.
    folders: the names of folders that they may be in.
    category: the category of memories about them.
    """

    types: tuple[str, ...]
    folders: tuple[str, ...]
    category: str


KINDS: Mapping[str, _Kind] = {
    "people": _Kind(
        ("person", "human", "user", "contact"),
        ("people", "People", "persons", "contacts", "Contacts", "人物", "联系人"),
        "people",
    ),
    "projects": _Kind(("project",), ("projects", "Projects", "项目"), "project"),
}
# Names of one kind on the page of both kinds.
_FIRST = 24
# Names on the page of one kind.
_OF_ONE_KIND = 120
# Memories about people that are listed.
_MAX_MEMORIES = 8
# Links of a name that are counted.
_MAX_LINKS = 100
# The newest notes that are searched for what was learned last about the names: of the category of
# their kind, and of all.
_MAX_NEWEST_OF_CATEGORY = 200
_MAX_NEWEST = 100
# The categories of facts that say who somebody is, or what a project is.
_ROLES = ("role", "job", "position", "title", "what", "goal", "purpose", "角色", "职位")
# What sentences say of the same (texts/sentence_facts.toml).
_ROLES_SAID = ("role", "leads", "works on", "works at")
# The category before the words of a fact.
_CATEGORY = re.compile(r"^\[([^\[\]]{2,60})\] ")


def count_people(memory: MemorySession) -> int:
    """Return the number of people about whom there are notes.

    A note is about a person if its type or its folder says so. Names that differ only in case count
    as one person.
    """
    return len(_named(memory, "people"))


def titles_of(memory: MemorySession, kind: str) -> list[str]:
    """Return the names of people (`people`) or projects (`projects`) that notes are about."""
    return [places[0].title for places in _named(memory, kind)]


def is_name(info: NoteInfo) -> bool:
    """Whether a note is about a person or a project, by its type or its folder."""
    if info.project in MEMORY_PROJECTS:
        return False
    first_folder = info.path.partition("/")[0]
    return any(
        info.type.casefold() in kind.types or first_folder in kind.folders
        for kind in KINDS.values()
    )


def _named(memory: MemorySession, kind: str) -> list[list[NotePlace]]:
    """Return the notes of a kind, grouped by name and sorted by title.

    Names that differ only in case are one name.

    kind: a key of KINDS.
    """
    chosen = KINDS[kind]
    queries = [Query(types=chosen.types, archived=False)]
    for project, folder in folders_named(memory, chosen.folders):
        queries.append(Query(projects=(project,), folder=folder))
    # Only memories have a phase. A memory is a sentence about a person, so its title is not a name.
    places = [place for place in places_passing(memory, *queries) if place.phase is None]
    in_order = sorted(places, key=lambda place: (place.title.casefold(), place.row))
    by_name: dict[str, list[NotePlace]] = {}
    for place in in_order:
        by_name.setdefault(place.title.casefold(), []).append(place)
    return list(by_name.values())


def show(visit: Visit) -> Response:
    """Show a list of people and projects, each with the latest thing that was learned about it.

    The field `kind` chooses one kind, and `name` keeps only names that contain its text.
    """
    kind = visit.text("kind")
    if kind and kind not in KINDS:
        raise InvalidInput(f"`kind` must be one of {', '.join(KINDS)}")
    words = visit.text("name")
    offset = visit.number("offset", 0)
    max_names = _OF_ONE_KIND if kind else _FIRST
    visit.begin_page()
    memory = visit.memory
    places_by_kind = {any_kind: _named(memory, any_kind) for any_kind in KINDS}
    shown_kinds = [kind] if kind else list(KINDS)
    lists = {
        shown_kind: _names(
            memory, shown_kind, places_by_kind, words=words, offset=offset, max_names=max_names
        )
        for shown_kind in shown_kinds
    }
    of_people = Query(category="people", archived=False, order="created")
    memories, total = memory.list(of_people, limit=_MAX_MEMORIES)
    return visit.part_or_page(
        "names.html",
        "people.html",
        lists=lists,
        kind=kind,
        words=words,
        most_links=_MAX_LINKS,
        said=Listed.part(memories, total, 0),
    )


def _names(
    memory: MemorySession,
    kind: str,
    places_by_kind: Mapping[str, Sequence[list[NotePlace]]],
    *,
    words: str,
    offset: int,
    max_names: int,
) -> Listed:
    """Return one part of the list of names.

    Each row has: the address of the name's page (`url`), what the name is (`role`), the newest note
        that names it (`learned`, or None), its first words if nothing else is known (`beginning`),
        and how often it is linked (`links`).

    kind: the kind of names, such as people.
    places_by_kind: the notes of each name, by kind.
    words: keep only names that contain this text. "" means all names.
    offset: how many names are before this part.
    max_names: the most names in this part.
    """
    names = places_by_kind[kind]
    if words:
        folded_words = fold(words)
        names = [places for places in names if folded_words in fold(places[0].title)]
    names_shown = names[offset : offset + max_names]
    ids = tuple(place.id for place in chain.from_iterable(names_shown))
    infos, _ = memory.list(Query(ids=ids), limit=0)
    links = count_incoming(memory, infos, _MAX_LINKS)
    info_by_id = {info.id: info for info in infos}
    # A sentence with several names is only about some of them, so all names must be known.
    newest = _newest(memory, KINDS[kind].category)
    # The places of a name differ in case only, so the first tells the name.
    all_names = chain.from_iterable(places_by_kind.values())
    folded_names = [fold(places[0].title) for places in all_names]
    rows = []
    for places in names_shown:
        own_infos = [info_by_id[place.id] for place in places if place.id in info_by_id]
        role = _role_words(memory, places[0].title, own_infos, newest)
        learned = _learned_last(places[0].title, newest, folded_names)
        rows.append(
            {
                "title": places[0].title,
                "url": about_url(places[0].title, places[0].id),
                "projects": list(dict.fromkeys(place.project for place in places)),
                "role": role,
                "learned": learned,
                "beginning": "" if learned or any(role) else _beginning(memory, own_infos),
                "links": min(_MAX_LINKS, sum(links[info.row] for info in own_infos)),
            }
        )
    return Listed.part(rows, len(names), offset)


def _newest(memory: MemorySession, category: str) -> list[tuple[str, NoteInfo]]:
    """Return the newest notes, the newest first, each with its folded title.

    Notes that seem to hold instructions are left out. A memory's title is its first sentence, so
    titles say enough, and no text must be read.
    """
    holding = Query(archived=False, valid_at=memory.clock(), order="created")
    of_category, _ = memory.list(holding.replace(category=category), limit=_MAX_NEWEST_OF_CATEGORY)
    of_all, _ = memory.list(holding, limit=_MAX_NEWEST)
    infos = {info.row: info for info in (*of_category, *of_all)}
    in_order = sorted(infos.values(), key=lambda info: info.created, reverse=True)
    return [(fold(info.title), info) for info in in_order if not memory.is_held_back(info)]


def _learned_last(
    name: str, newest: Sequence[tuple[str, NoteInfo]], folded_names: Sequence[str]
) -> NoteInfo | None:
    """Return the first of the newest notes whose title is about a name, and says more than that.

    Without one, return the first whose title mentions the name.
    """
    folded_name = fold(name)
    naming = [info for title, info in newest if folded_name in title and title != folded_name]
    about = (info for info in naming if is_about(info.title, name, folded_names))
    return next(about, naming[0] if naming else None)


def _role_words(
    memory: MemorySession,
    name: str,
    infos: Sequence[NoteInfo],
    newest: Sequence[tuple[str, NoteInfo]],
) -> tuple[str, str]:
    """Return what a person or project is, as (label, words): ("works on", "Heron").

    It comes from a fact in the notes of the name, which has the label "", or from a newer memory.
    Both texts are "" if neither says it. Notes that may give orders to agents are not used.

    infos: the notes of the name.
    newest: (folded title, note) of the newest memories.
    """
    # What the newest memory says, and when it was written. "" if no memory says it.
    role_in_memory = ("", "")
    memory_time = ""
    memory_and_fact = _role_said(name, newest)
    if memory_and_fact is not None:
        memory_info, sentence_fact = memory_and_fact
        role_in_memory = (sentence_fact.label, sentence_fact.value)
        memory_time = memory_info.created

    for info in infos:
        if memory.is_held_back(info):
            continue
        for fact in memory.observations(info):
            is_role = (fact.category or "").casefold() in _ROLES
            if not is_role:
                continue
            # The first fact of this kind decides. Its time is only looked up if a memory has another
            # role, since that takes long.
            if memory_time and memory_time > text_origin(memory, info).time:
                return role_in_memory
            return "", words_of_fact(fact)
    return role_in_memory


def _role_said(
    name: str, newest: Sequence[tuple[str, NoteInfo]]
) -> tuple[NoteInfo, SentenceFact] | None:
    """Return the newest memory that says what somebody does, with the fact, or None."""
    folded_name = fold(name)
    for title, info in newest:
        if title.startswith(folded_name):
            for said in facts_in_sentence(info.title, name):
                if said.label in _ROLES_SAID:
                    return info, said
    return None


def _beginning(memory: MemorySession, infos: Sequence[NoteInfo]) -> str:
    """Return the first line in the notes of a name that says more than the name, or ""."""
    shown_infos = [info for info in infos if not memory.is_held_back(info)]
    for info, text in zip(shown_infos, contents(memory, shown_infos), strict=True):
        for line in plain_text(text).splitlines():
            words = _CATEGORY.sub(r"\1: ", line.strip().removeprefix("• "))
            # A line with the title and one sign, such as `Ann.`, says no more than the name.
            if len(words) > len(info.title) + 1:
                return words
    return ""
