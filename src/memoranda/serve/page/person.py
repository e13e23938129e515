"""Shows everything about one name: a person, a project, or anything that notes mention.

The notes of the name come with their facts and links. Memories and passages of other notes that
mention the name follow, the newest first. A memory that was replaced is below its successor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.contested import holding_now
from memoranda.errors import Ambiguous, InvalidInput, MemorandaError
from memoranda.index.rows import Edge, Hit, NoteInfo
from memoranda.note.model import CATEGORY_PROJECT, REMINDERS, Observation
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.serve.page.graph_names import shown_title
from memoranda.serve.page.graph_panel import RelatedNotes, related_notes
from memoranda.serve.page.search import passage_of
from memoranda.serve.page.visit import Visit

_MAX_HITS = 60
# Links of each note of the name that are read in each direction.
_MAX_LINKS = 100
# Notes of one name that its page tells, and facts of each that it shows.
_MAX_NAMESAKES = 20
_MAX_FACTS = 60
# Rows of a list that are shown above "more".
_SHOWN = 12


@dataclass
class Part:
    """Everything that one of the notes of a name says.

    place: the project and folder of the note, such as `notes/people`.
    facts: the facts in the note.
    edges: the links of the note in both directions.
    """

    info: NoteInfo
    place: str
    facts: list[Observation]
    edges: list[Edge]


@dataclass
class Learned:
    """A note that has the name, and the notes that it replaced, the last one first.

    passage: the words of the note with the name.
    """

    info: NoteInfo
    passage: str
    before: list[NoteInfo] = field(default_factory=list)


@dataclass
class About:
    """Everything about one name.

    parts: the notes of that name, in all projects.
    relations: the links of these notes, by relation, each with its notes, the newest first.
    mentions: the other notes that mention the name, by kind: `memories`, `notes` and `reminders`
        for notes that are valid now, `later` for memories that are valid only from a later time,
        and `over` for memories that are no longer valid and that no other memory replaced. The
        newest comes first in each kind.
    has_more: whether more notes have the name than were looked at.
    """

    name: str
    parts: list[Part] = field(default_factory=list)
    relations: list[RelatedNotes] = field(default_factory=list)
    mentions: dict[str, list[Learned]] = field(default_factory=dict)
    has_more: bool = False

    @property
    def last(self) -> NoteInfo | None:
        """The newest note that mentions the name and is not over. None without one."""
        newest = [notes[0].info for kind, notes in self.mentions.items() if kind != "over"]
        return max(newest, key=lambda info: info.created, default=None)


def show(visit: Visit) -> Response:
    """Show everything about the name in the field `name`."""
    name = visit.text("name")
    if not name:
        raise InvalidInput("Say a name.")
    about = _about(visit.memory, name)
    linked_notes = chain.from_iterable(related.notes for related in about.relations)
    return visit.html(
        "about.html",
        about=about,
        titles={info.row: shown_title(visit, info) for info in linked_notes},
        most_facts=_MAX_FACTS,
        most_shown=_SHOWN,
    )


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
    outgoing = [edge for edge in memory.outgoing(info) if edge.note]
    return Part(
        info,
        f"{info.project.lstrip('.')}/{info.path}".rpartition("/")[0],
        list(memory.observations(info)),
        [*outgoing[:_MAX_LINKS], *memory.incoming(info, _MAX_LINKS)],
    )


def _about(memory: MemorySession, name: str) -> About:
    """Collect everything about a name."""
    page = About(name)
    page.parts = [_part(memory, info) for info in notes_called(memory, name)]
    edges = [edge for part in page.parts for edge in part.edges]
    page.relations = related_notes(edges, most_named=len(edges))
    for related in page.relations:
        related.notes.sort(key=lambda info: info.created, reverse=True)
    own_rows = {part.info.row for part in page.parts}
    # A name is searched as a phrase, so that its words must be together.
    phrase = '"{}"'.format(name.replace('"', " "))
    hits = memory.search(Query(text=phrase, archived=False), limit=_MAX_HITS)
    page.mentions = _mentions(memory, [hit for hit in hits if hit.note.row not in own_rows])
    # A search leaves out what does not hold any more, a list does not.
    of_memories = Query(text=phrase, projects=(CATEGORY_PROJECT,), archived=False, order="created")
    infos, total = memory.list(of_memories, limit=_MAX_HITS)
    page.has_more = max(hits.total, total) > _MAX_HITS
    # A search finds the nearest memories, of which the newest may be none.
    _add_newest(memory, infos, page.mentions)
    for learned in _not_holding(memory, infos, page.mentions):
        kind = "later" if _is_later(memory, learned.info) else "over"
        page.mentions.setdefault(kind, []).append(learned)
    return page


def _mentions(memory: MemorySession, hits: Iterable[Hit]) -> dict[str, list[Learned]]:
    """Return the notes of some hits that are valid now, by kind, the newest first.

    Notes that may hold instructions that somebody planted are left out.
    """
    shown = [hit for hit in hits if not memory.is_held_back(hit.note)]
    shown.sort(key=lambda hit: hit.note.created, reverse=True)
    holding = holding_now(memory, [hit.note.row for hit in shown])
    mentions: dict[str, list[Learned]] = {}
    for hit in shown:
        if hit.note.row in holding:
            _, passage = passage_of(hit)
            learned = Learned(hit.note, passage, _before(memory, hit.note))
            mentions.setdefault(_kind(hit.note), []).append(learned)
    return mentions


def _add_newest(
    memory: MemorySession, infos: Sequence[NoteInfo], mentions: dict[str, list[Learned]]
) -> None:
    """Add the notes among `infos` that hold now, do not look planted and are missing in `mentions`."""
    holding = holding_now(memory, [info.row for info in infos])
    told = {learned.info.row for learned in chain.from_iterable(mentions.values())}
    for info in infos:
        if info.row in holding and info.row not in told and not memory.is_held_back(info):
            learned = Learned(info, info.title, _before(memory, info))
            mentions.setdefault(_kind(info), []).append(learned)
    for items in mentions.values():
        items.sort(key=lambda learned: learned.info.created, reverse=True)


def _is_later(memory: MemorySession, info: NoteInfo) -> bool:
    """Whether a note holds only from a later time."""
    if not info.may_say(("valid_from",)):
        return False
    begin = memory.read(info, count=False).valid_from
    return begin is not None and begin > memory.clock()


def _not_holding(
    memory: MemorySession, infos: Sequence[NoteInfo], mentions: Mapping[str, Sequence[Learned]]
) -> list[Learned]:
    """Return the notes among `infos` that do not hold now and do not look planted.

    mentions: the notes that are valid. The notes that they replaced are left out, because the page
        shows each of them below its successor.
    """
    holding = holding_now(memory, [info.row for info in infos])
    replaced = {
        info.row for learned in chain.from_iterable(mentions.values()) for info in learned.before
    }
    return [
        Learned(info, info.title)
        for info in infos
        if info.row not in holding and info.row not in replaced and not memory.is_held_back(info)
    ]


def _before(memory: MemorySession, info: NoteInfo) -> list[NoteInfo]:
    """Return the earlier versions of a note, which it or one of them replaced, the newest first."""
    if not info.may_say(("supersedes",)):
        return []
    others = [other for row, other in memory.versions(info).items() if row != info.row]
    return sorted(others, key=lambda other: other.created, reverse=True)


def _kind(info: NoteInfo) -> str:
    """Return the heading for a note among the passages."""
    if info.category == REMINDERS:
        return "reminders"
    if info.category:
        return "memories"
    return "notes"
