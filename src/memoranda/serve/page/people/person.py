"""Shows everything about one name: a person, a project, or anything that notes mention.

A card at the top has the facts that hold: those in the notes of the name, and those in sentences of
memories. Memories and notes about the name follow, the newest first, apart from those that only
mention it. A memory that was replaced is below its successor. What a newer note contradicts is told
last, with that note, or on the card below the fact that holds now.

The owner confirms here what agents noted, and takes out what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from starlette.responses import Response

from memoranda.engine import MemorySession
from memoranda.engine.contents import contents
from memoranda.engine.links.link_walk import count_incoming
from memoranda.engine.telling.contested import Contradiction, Statement, valid_notes
from memoranda.engine.telling.manner import Telling
from memoranda.errors import Ambiguous, InvalidInput, MemorandaError
from memoranda.index.rows import Edge, Hit, NoteInfo
from memoranda.note.grammar import LINKS_TO
from memoranda.note.model import CATEGORY_PROJECT, REMINDERS
from memoranda.note.names import Looseness
from memoranda.query import Query
from memoranda.serve.page.addresses import place_of_id
from memoranda.serve.page.graph.names import shown_title
from memoranda.serve.page.graph.panel import RelatedNotes, related_notes
from memoranda.serve.page.note.facts import (
    Fact,
    can_take_out,
    contradicting,
    fact_of_relation,
    facts_of,
    newer_statements,
    statements_of,
    take_fact_out,
)
from memoranda.serve.page.people.card import compare_with_said, nest_contradicted, said_facts
from memoranda.serve.page.people.people_page import KINDS, titles_of
from memoranda.serve.page.people.sentence_facts import is_about, rank_of_label
from memoranda.serve.page.search import passage_of, readable_passage
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.text_origin import TextOrigin, text_origin
from memoranda.text.folding import fold

_MAX_HITS = 60
# Links of each note of the name that are read in each direction.
_MAX_LINKS = 100
# Notes of one name that its page tells, and facts of each that it shows.
_MAX_NAMESAKES = 20
_MAX_FACTS = 60
# Rows of a list that are shown above "more": of what is about the name, and of what mentions it.
_SHOWN = 8
_MENTIONS_SHOWN = 6


@dataclass
class Part:
    """One of the notes about a name, and all that it says.

    info: the note.
    place: its project and folder, such as `notes/people`.
    is_held_back: whether the note may give orders to agents. Its facts and links are then left out.
    is_claim: whether an agent wrote it and the owner has not confirmed it.
    may_take_out: whether single facts can be taken out of it.
    facts: its facts that nothing contradicts.
    contradicted: its facts that a newer note contradicts.
    edges: the links of the note in both directions.
    """

    info: NoteInfo
    place: str
    is_held_back: bool
    is_claim: bool = False
    may_take_out: bool = False
    facts: list[Fact] = field(default_factory=list)
    contradicted: list[Fact] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


@dataclass
class Learned:
    """A note that has the name, and the notes that it replaced, the last one first.

    passage: the words of the note with the name. "" if they only repeat its title.
    is_claim: whether it is only the claim of an agent, which the owner has not confirmed.
    newer: the newest statement that contradicts it. None if it is not contradicted.
    is_asked: whether Review asks which of the two holds.
    """

    info: NoteInfo
    passage: str
    before: list[NoteInfo] = field(default_factory=list)
    is_claim: bool = False
    newer: Statement | None = None
    is_asked: bool = False


@dataclass
class About:
    """Everything about one name. Each note and each fact is there once.

    parts: the notes of that name, in all projects.
    said: the facts about the name in sentences of memories, which no note of the name has.
    relations: the links of these notes, by relation, each with its notes, the newest first.
    also: the second and further relations of a note that have names, by its row. A note with
        several relations is listed in `relations` only under the first of them.
    mentions: the other notes that mention the name, by kind. In each kind the newest comes first.
        `about`: memories and notes about the name that are valid now.
        `naming`: memories and notes that only mention it, and are valid now.
        `reminders`: they are valid now.
        `contradicted`: memories that a newer note contradicts.
        `later`: memories that are not valid yet.
        `over`: memories that are no longer valid, and that no other memory replaced.
    has_more: whether more notes have the name than were looked at.
    links: how many links lead to the notes of the name, at most _MAX_LINKS for each.
    last: the newest fact or note about the name that is not over. None without one.
    """

    name: str
    parts: list[Part] = field(default_factory=list)
    said: list[Fact] = field(default_factory=list)
    relations: list[RelatedNotes] = field(default_factory=list)
    also: dict[int, list[RelatedNotes]] = field(default_factory=dict)
    mentions: dict[str, list[Learned]] = field(default_factory=dict)
    has_more: bool = False
    links: int = 0
    last: TextOrigin | None = None


def show(visit: Visit) -> Response:
    """Show everything about the name in the field `name`, or about the title of the note `note`.

    A POST confirms the note `ref`, forgets it, or takes out its fact in a line, as the field `do` says.
    """
    if visit.is_post:
        _judge(visit)
        return visit.back()
    name = visit.text("name")
    if visit.text("note"):
        # A name with a secret has no place in an address.
        name = visit.memory.find(place_of_id(visit.memory, visit.text("note"))).title
    if not name:
        raise InvalidInput("Say a name.")
    about = _about(visit.memory, name)
    linked_notes = chain.from_iterable(related.notes for related in about.relations)
    # Links from other notes that have no name say little, so they are not among the connections.
    connections = []
    for related in about.relations:
        if related.name or not related.is_incoming:
            connections += [(related, info) for info in related.notes]
    return visit.html(
        "about.html",
        about=about,
        titles={info.row: shown_title(visit, info) for info in linked_notes},
        connections=connections,
        cards=_cards(about),
        most_facts=_MAX_FACTS,
        most_shown=_SHOWN,
        most_mentions=_MENTIONS_SHOWN,
    )


def _judge(visit: Visit) -> None:
    """Confirm a note of an agent, forget it, or take a single fact out of it."""
    memory = visit.memory
    info = memory.find(visit.text("ref"), looseness=Looseness.EXACT)
    choice = visit.text("do")
    if choice == "confirm":
        memory.confirm_notes([info])
    elif choice == "forget":
        memory.delete(info)
    elif choice == "take_out":
        line = visit.number("line", 0)
        take_fact_out(memory, info, line, visit.text("checksum"))
    else:
        raise InvalidInput('`do` must be one of "confirm", "forget", "take_out"')


def notes_called(memory: MemorySession, name: str) -> list[NoteInfo]:
    """Return the notes that are called `name`, in all projects, at most _MAX_NAMESAKES."""
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
    """Return the notes that these references name. Notes that are gone are left out."""
    infos = []
    for ref in refs:
        with suppress(MemorandaError):
            infos.append(memory.find(ref))
    return infos


def _parts(memory: MemorySession, infos: Sequence[NoteInfo]) -> list[Part]:
    """Collect everything that the notes of a name say: first those that the owner has confirmed, and
    the newest of them first.
    """
    newer = newer_statements(memory, infos)
    parts = [_part(memory, info, newer.get(info.row, {})) for info in infos]
    # The second sort keeps the order of the first among parts that are equal in it. False sorts
    # before True.
    parts.sort(key=lambda part: part.info.changed, reverse=True)
    return sorted(parts, key=lambda part: part.is_claim)


def _part(memory: MemorySession, info: NoteInfo, newer: Mapping[int, Contradiction]) -> Part:
    """Collect everything that one note of a name says."""
    place = f"{info.project.lstrip('.')}/{info.path}".rpartition("/")[0]
    if memory.is_held_back(info):
        return Part(info, place, is_held_back=True)
    outgoing = [edge for edge in memory.outgoing(info) if edge.note]
    facts = facts_of(memory, info, outgoing)
    for fact in facts:
        # `newer` compares the ages of notes. A fact may have been added to an old note after the
        # statement that contradicts it was made. Then the fact holds.
        pair = newer.get(fact.line)
        if pair is not None and pair.new.info.created > fact.time:
            fact.newer = pair.new
            fact.is_asked = pair.is_asked
    standing_edges = [edge for edge in outgoing if not _is_contradicted(edge, newer)]
    contradicted = [
        fact_of_relation(memory, info, edge, newer[edge.line])
        for edge in outgoing
        if _is_contradicted(edge, newer)
    ]
    return Part(
        info,
        place,
        is_held_back=False,
        is_claim=_is_claim(memory, info),
        may_take_out=can_take_out(memory, info),
        facts=facts,
        contradicted=contradicted,
        edges=[*standing_edges[:_MAX_LINKS], *memory.incoming(info, _MAX_LINKS)],
    )


def _is_contradicted(edge: Edge, newer: Mapping[int, Contradiction]) -> bool:
    """Whether a relation of a note, in a line of its own, is contradicted."""
    return edge.type != LINKS_TO and edge.line in newer


def _is_claim(memory: MemorySession, info: NoteInfo) -> bool:
    """Whether an agent wrote a note, and the owner has not confirmed it."""
    return info.provenance.agent is not None and memory.telling(info) is not Telling.FACT


def _about(memory: MemorySession, name: str) -> About:
    """Collect everything about a name. Nothing is said twice."""
    # What the notes of the name say, and their links.
    page = About(name)
    page.parts = _parts(memory, notes_called(memory, name))
    edges = [edge for part in page.parts for edge in part.edges]
    page.relations = related_notes(edges, most_named=len(edges))
    for related in page.relations:
        related.notes.sort(key=lambda info: info.created, reverse=True)

    # The other notes that mention the name. It is searched as a phrase, so that its words must be
    # together.
    own_rows = {part.info.row for part in page.parts}
    phrase = '"{}"'.format(name.replace('"', " "))
    hits = memory.search(Query(text=phrase, archived=False), limit=_MAX_HITS)
    page.mentions = _mentions(memory, [hit for hit in hits if hit.note.row not in own_rows])
    # Memories with the name are listed, too. Unlike a search, a list has those that do not hold any
    # more. Besides, a search finds the best hits, and the newest memories may not be among them.
    of_memories = Query(
        contains=name, projects=(CATEGORY_PROJECT,), archived=False, order="created"
    )
    listed, total = memory.list(of_memories, limit=_MAX_HITS)
    infos = _naming(memory, listed, name)
    page.has_more = max(hits.total, total) > _MAX_HITS
    _add_newest(memory, infos, page.mentions)
    for learned in _not_holding(memory, infos, page.mentions):
        kind = "later" if _is_later(memory, learned.info) else "over"
        page.mentions.setdefault(kind, []).append(learned)

    # Each note and each fact is told at one place only.
    _set_contradicted_memories_apart(memory, page.mentions)
    page.said = said_facts(memory, name, page.mentions["memories"])
    _set_contradicted_facts_apart(page)
    _tell_facts_once(page)
    page.last = _learned_last(memory, page)
    _tell_notes_once(page, own_rows)
    _set_mentions_apart(memory, page)
    own_infos = [part.info for part in page.parts]
    page.links = sum(count_incoming(memory, own_infos, _MAX_LINKS).values())
    return page


def _learned_last(memory: MemorySession, page: About) -> TextOrigin | None:
    """Return who wrote the newest fact or note about a name, and when. Nothing that is over counts."""
    newest = [
        text_origin(memory, mentions[0].info)
        for kind, mentions in page.mentions.items()
        if mentions and kind not in ("over", "contradicted")
    ]
    for fact in chain.from_iterable(part.facts for part in page.parts):
        newest.append(TextOrigin(fact.writer, None, fact.time))
    return max(newest, key=lambda origin: origin.time, default=None)


def _set_contradicted_memories_apart(
    memory: MemorySession, mentions: dict[str, list[Learned]]
) -> None:
    """Say of memories whether they are claims, and move those that a newer note contradicts.

    A contradiction that agents are told of counts first. Other memories are compared by their titles.

    mentions: the notes by kind. `memories` keeps those that hold, and `contradicted` gets the others.
    """
    infos = [learned.info for learned in mentions.get("memories", [])]
    newer_by_row = newer_statements(memory, infos)
    all_statements = statements_of(infos)
    standing: list[Learned] = []
    contradicted: list[Learned] = []
    for learned in mentions.get("memories", []):
        learned.is_claim = _is_claim(memory, learned.info)
        pairs = newer_by_row.get(learned.info.row, {}).values()
        learned.is_asked = any(pair.is_asked for pair in pairs)
        if pairs:
            learned.newer = max((pair.new for pair in pairs), key=lambda new: new.moment)
        else:
            learned.newer = contradicting(learned.info.title, learned.info.created, all_statements)
        if learned.newer is None:
            standing.append(learned)
        else:
            contradicted.append(learned)
    mentions["memories"] = standing
    mentions["contradicted"] = contradicted


def _set_contradicted_facts_apart(page: About) -> None:
    """Move the facts that a memory or another note contradicts behind those that stand."""
    memories = [learned.info for learned in page.mentions.get("memories", [])]
    statements = statements_of(memories)
    for part in page.parts:
        for fact in part.facts:
            fact.newer = fact.newer or contradicting(fact.words, fact.time, statements, page.name)
    compare_with_said(page.name, [part.facts for part in page.parts], page.said)
    for part in page.parts:
        part.contradicted += [fact for fact in part.facts if fact.newer is not None]
        part.facts = [fact for fact in part.facts if fact.newer is None]


def _cards(page: About) -> list[tuple[Part | None, list[Fact]]]:
    """Return the cards at the top of the page: (note of the name, facts in the order of the card).

    There is one card for each note of the name, because the notes may be about different people.
    Facts from memories are on the same card if there is only one. Otherwise they have a first card,
    with None as its note.
    """
    with_facts = [part for part in page.parts if part.facts or part.contradicted]
    cards: list[tuple[Part | None, list[Fact]]] = [(part, list(part.facts)) for part in with_facts]
    if page.said:
        if len(cards) == 1:
            cards[0][1].extend(page.said)
        else:
            cards.insert(0, (None, list(page.said)))
    for part, facts in cards:
        if part is not None:
            nest_contradicted(page.name, facts, part.contradicted)
        facts.sort(key=lambda fact: rank_of_label(fact.category.casefold()))
    return cards


def _set_mentions_apart(memory: MemorySession, page: About) -> None:
    """Separate the texts about the name from texts that only mention it, each newest first.

    The kinds `memories` and `notes` of the mentions become the kinds `about` and `naming`.
    """
    titles = chain.from_iterable(titles_of(memory, kind) for kind in KINDS)
    names = [fold(title) for title in titles]
    about: list[Learned] = []
    naming: list[Learned] = []
    for kind in ("memories", "notes"):
        for learned in page.mentions.pop(kind, []):
            if is_about(learned.info.title, page.name, names):
                about.append(learned)
            else:
                naming.append(learned)
    for kind, mentions in (("about", about), ("naming", naming)):
        if mentions:
            page.mentions[kind] = mentions
            mentions.sort(key=lambda item: text_origin(memory, item.info).time, reverse=True)


def _tell_facts_once(page: About) -> None:
    """Leave each fact in the first of the notes that have it."""
    keys_told: set[tuple[str, str]] = set()
    for part in page.parts:
        new_facts = []
        for fact in part.facts:
            if fact.key not in keys_told:
                new_facts.append(fact)
            keys_told.add(fact.key)
        part.facts = new_facts


def _tell_notes_once(page: About, own_rows: Collection[int]) -> None:
    """Leave each note at its most telling place.

    A memory or a reminder says itself what it is about. For another note, a relation with a name says
    more than its passage, and that says more than a link.

    own_rows: the rows of the notes of the name, which are told by their facts.
    """
    # The rows of the notes that have their place already.
    rows_told = set(own_rows)
    # Memories and reminders
    for kind, mentions in page.mentions.items():
        if kind != "notes":
            rows_told.update(chain.from_iterable(_rows(learned) for learned in mentions))
    # Relations with a name
    relations = [related for related in page.relations if related.name]
    rows_told |= _tell_relations_once(page, relations, rows_told)
    # Passages
    notes = [
        learned for learned in page.mentions.get("notes", []) if learned.info.row not in rows_told
    ]
    rows_told.update(chain.from_iterable(_rows(learned) for learned in notes))
    # Links
    links = [related for related in page.relations if not related.name]
    _tell_relations_once(page, links, rows_told)
    page.mentions["notes"] = notes
    page.mentions = {kind: mentions for kind, mentions in page.mentions.items() if mentions}
    page.relations = [related for related in page.relations if related.notes]


def _rows(learned: Learned) -> list[int]:
    """Return the rows of a note that has the name, and of the notes that it replaced."""
    return [learned.info.row, *(old.row for old in learned.before)]


def _tell_relations_once(
    page: About, relations: Sequence[RelatedNotes], rows_elsewhere: Collection[int]
) -> set[int]:
    """Keep each note in its first relation only. Its other relations go to `page.also`.

    rows_elsewhere: the rows of notes that are told elsewhere. No relation keeps them.

    Returns the rows of the notes that the relations keep.
    """
    kept_rows: set[int] = set()
    for related in relations:
        kept_notes = []
        for info in related.notes:
            if info.row in kept_rows:
                # An earlier relation has this note. A relation without a name adds nothing to it.
                if related.name:
                    page.also.setdefault(info.row, []).append(related)
            elif info.row not in rows_elsewhere:
                kept_notes.append(info)
        related.notes = kept_notes
        kept_rows.update(info.row for info in kept_notes)
    return kept_rows


def _naming(memory: MemorySession, infos: Sequence[NoteInfo], name: str) -> list[NoteInfo]:
    """Return the notes whose text has a name as whole words: `Ann`, but not `Anna`."""
    folded_name = fold(name)
    # Scripts without spaces have no whole words.
    word_edge = r"\b" if folded_name.isascii() else ""
    pattern = re.compile(f"{word_edge}{re.escape(folded_name)}{word_edge}")
    texts = contents(memory, infos)
    return [info for info, text in zip(infos, texts, strict=True) if pattern.search(fold(text))]


def _mentions(memory: MemorySession, hits: Iterable[Hit]) -> dict[str, list[Learned]]:
    """Return the hits that are valid now, by kind, the newest first.

    Notes that may hold instructions that somebody planted are left out.
    """
    shown = [hit for hit in hits if not memory.is_held_back(hit.note)]
    shown.sort(key=lambda hit: hit.note.created, reverse=True)
    holding = valid_notes(memory, [hit.note.row for hit in shown])
    mentions: dict[str, list[Learned]] = {}
    for hit in shown:
        if hit.note.row in holding:
            _, passage = passage_of(hit)
            passage = readable_passage(passage, hit.note.title)
            learned = Learned(hit.note, passage, _earlier_versions(memory, hit.note))
            mentions.setdefault(_heading_of(hit.note), []).append(learned)
    return mentions


def _add_newest(
    memory: MemorySession, infos: Sequence[NoteInfo], mentions: dict[str, list[Learned]]
) -> None:
    """Add the notes among `infos` that hold now, do not look planted and are missing in `mentions`."""
    holding = valid_notes(memory, [info.row for info in infos])
    present_rows = {learned.info.row for learned in chain.from_iterable(mentions.values())}
    for info in infos:
        is_new = info.row in holding and info.row not in present_rows
        if is_new and not memory.is_held_back(info):
            learned = Learned(info, info.title, _earlier_versions(memory, info))
            mentions.setdefault(_heading_of(info), []).append(learned)
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
    holding = valid_notes(memory, [info.row for info in infos])
    replaced = {
        info.row for learned in chain.from_iterable(mentions.values()) for info in learned.before
    }
    return [
        Learned(info, info.title)
        for info in infos
        if info.row not in holding and info.row not in replaced and not memory.is_held_back(info)
    ]


def _earlier_versions(memory: MemorySession, info: NoteInfo) -> list[NoteInfo]:
    """Return the earlier versions of a note, which it or one of them replaced, the newest first."""
    if not info.may_say(("supersedes",)):
        return []
    others = [other for row, other in memory.versions(info).items() if row != info.row]
    return sorted(others, key=lambda other: other.created, reverse=True)


def _heading_of(info: NoteInfo) -> str:
    """Return the heading for a note among the passages."""
    if info.category == REMINDERS:
        return "reminders"
    if info.category:
        return "memories"
    return "notes"
