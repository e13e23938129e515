"""Shows the page of notes: the hits of a search, or all notes, the newest text first.

A hit shows its passage with the words of the query marked, and why it was found: the shares of its
score, which `memory search --explain` names, in plain words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import chain, islice
from math import floor
from typing import Any

from starlette.responses import Response

from memoranda import documents
from memoranda.documents.listed import Document, Listed
from memoranda.engine import MemorySession
from memoranda.engine.completion import offers
from memoranda.engine.history.newest_texts import newest_texts
from memoranda.engine.telling.contested import Statement, newer_contradictions
from memoranda.errors import InvalidInput
from memoranda.index.rows import Hit, Hits, NoteInfo
from memoranda.jobs.lifecycle import FACE, ends_in_inbox
from memoranda.note.model import CATEGORIES, INBOX, MEMORY_PROJECTS
from memoranda.query import Query, day, parse
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.note.contradicted import (
    Contradicted,
    contradicted_in,
    statements_naming,
    struck_out,
)
from memoranda.serve.page.note.facts import contradicting, names_in, statements_of
from memoranda.serve.page.package_files import TEXTS, text_in
from memoranda.serve.page.people.offered_names import is_meant_alone, names_for
from memoranda.serve.page.visit import Visit
from memoranda.serve.page.words.plain_markdown import plain_words, with_relations_as_words
from memoranda.serve.page.words.text_origin import text_origin
from memoranda.serve.page.words.writers import AUTHORS, BY_HAND
from memoranda.text.folding import fold
from memoranda.text.han import other_forms
from memoranda.text.tokens import stop_words
from memoranda.transcripts.search import TraceHit
from memoranda.transcripts.tier import find_traces

HITS = 20
"""Hits on one page."""
MOST_HITS = 200
"""Hits that `/api` gives out at most."""
FILTERS = ("project", "category", "tag", "agent", "from", "until", "archive")
# The marks before a heading, or before an item of a list with the category of a fact.
_ITEM = re.compile(r"\n\s*(?:[-*+]|#{1,6})\s+(?:\[[^\[\]\n]{2,60}\]\s+)?")
# The blank line behind a paragraph, or a list, that does not end as a sentence does.
_PARAGRAPH = re.compile(r"(?<=[^\s.!?:;。！？：；])[ \t]*\n[ \t]*\n\s*(?=\S)")
# A heading right above its text, without a sign at its end.
_HEADING = re.compile(r"(?m)^(#{1,6}[ \t][^\n]*[^\s.!?:;。！？：；])[ \t]*\n(?=[ \t]*\S)")
# Tags at the end of a line, which are shown beside the text.
_TAGS = re.compile(r"(?:[ \t]+#[\w/-]+)+[ \t]*(?=\n|\Z)")
_DOT = " · "
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
_WEEK = timedelta(days=7)
# The remark of a hit without all words, which the line above the hits says of all.
_RELAXED = "relaxed"
_WORD = re.compile(r"\w+")
# The ending of a word in another form, which is marked with it: `fail` in "failed".
_ENDING = r"(?:(?<=[a-z])[a-z]{1,3}(?![a-z]))?"
# The field with the number of the hit that is explained.
_WHY = "why"
# Notes that the palette suggests, and hits among which they are chosen.
_MAX_SUGGESTIONS = 8
_SUGGESTIONS_FROM = 24
_MAX_TITLE_CHARACTERS = 160
# Characters of a passage in the palette, and of them before the first word that was found.
_MAX_TELLING = 220
_CHARACTERS_BEFORE = 60
# Names in the hits of a page about which it is looked up what is said since. With 10,000 memories, each
# takes a third of the time that a search may take.
_MAX_NAMES = 1
# Hits in transcripts that are shown.
_MAX_PASSAGES = 10


@dataclass
class Reason:
    """One reason why a hit is where it is, which is one share of its score.

    name: the name of the share, as `memory search --explain` and docs/ranking.md call it.
    sentence: the reason in plain words, in English. `{words}` in it are the words that were found.
    words: words of the query that the note has.
    value: the share itself.
    percent: the share in percent of the whole score.
    start, width: where its part of the bar begins and how wide it is, in percent of the bar.
    """

    name: str
    sentence: str
    words: str
    value: float
    percent: int
    start: float
    width: float


def query_of(memory: MemorySession, fields: Mapping[str, str]) -> Query:
    """Return the query of a search form. Raises InvalidInput.

    fields: the fields of the form. `q` is the text, which may contain filters (`tag:work`). The
        other fields are filters, too.
    """
    zone = memory.settings.zone
    now = memory.clock()
    query = parse(fields.get("q", ""), now=now, zone=zone)
    # For each field of the form: the key of the query, and the function that makes its value.
    readers: dict[str, tuple[str, Callable[[str], Any]]] = {
        "project": ("projects", lambda text: (text,)),
        "category": ("any_category", lambda text: (text,)),
        "tag": ("tags", lambda text: (*query.tags, text.removeprefix("#"))),
        "agent": ("by", str),
        "from": ("created_from", lambda text: day(text, "from", zone, now=now)),
        # `created_until` is the first moment that no longer counts, the beginning of the day after.
        "until": ("created_until", lambda text: day(text, "until", zone, after=1, now=now)),
    }
    filters = {
        query_key: read(fields[field_name])
        for field_name, (query_key, read) in readers.items()
        if fields.get(field_name)
    }
    # None: archived notes and others.
    archived = None if fields.get("archive") else False
    return query.replace(**filters, archived=archived)


def show(visit: Visit) -> Response:
    """Show the page with the hits of a search, or only the hits while somebody types.

    The field `why` is the number of a hit on this page: it says why it was found. A script asks for
    that part alone, since the reasons of all hits would double the page.
    """
    memory = visit.memory
    fields = {name: text for name, text in visit.fields.items() if name != _WHY}
    offset = visit.number("offset", 0)
    why = visit.number(_WHY, 0)
    query = query_of(memory, fields)
    visit.begin_page()
    # Without words to search for, the newest notes are shown.
    is_plain = not fields.get("q", "").strip()
    if is_plain:
        hits = _newest(memory, query, offset)
    else:
        hits = memory.search(query, limit=HITS, offset=offset, explain=bool(why))
    listed = documents.hits(hits, offset)
    _complete_rows(memory, listed, hits, query.text or "")
    _add_ends_in_inbox(memory, listed, hits)
    if why and visit.is_part:
        return visit.html("why.html", row=_explained_row(listed, why))
    # Without the script, the whole page is shown with the reasons of this hit. The address may be
    # older than the hits, so there may be no such hit any more.
    if 0 < why <= len(listed.rows):
        _explained_row(listed, why)
    values: dict[str, Any] = {
        "hits": hits,
        "fields": fields,
        "offset": offset,
        "listed": listed,
        "why": why,
        "passages": _in_transcripts(visit),
        "offered_names": names_for(visit, query.text or "") if offset == 0 else [],
        "is_plain": is_plain,
        "is_filtered": any(fields.get(name) for name in FILTERS),
        "categories": CATEGORIES,
        "inbox": INBOX,
    }
    if visit.is_part:
        return visit.html("hits.html", **values)
    return visit.html(
        "search.html",
        projects=[project.name for project in memory.projects],
        agents=writers(memory),
        author_words=AUTHORS,
        week_ago=f"{visit.now.astimezone(memory.settings.reading_zone) - _WEEK:%Y-%m-%d}",
        **values,
    )


def _add_ends_in_inbox(memory: MemorySession, listed: Listed, hits: Iterable[Hit]) -> None:
    """Add to the rows of hits when the daemon will archive them (`archived_at`), or None."""
    notes = [hit.note for hit in hits]
    ends = ends_in_inbox(memory, notes)
    for row, note in zip(listed, notes, strict=True):
        row["archived_at"] = ends.get(note.row)


def _newest(memory: MemorySession, query: Query, offset: int) -> Hits:
    """Return a page of all notes that pass the filters of a query, the newest text first."""
    infos, total = newest_texts(memory, query, offset + HITS, FACE)
    infos_of_page = infos[offset:]
    ids = tuple(info.id for info in infos_of_page)
    if not ids:
        return Hits([], total)
    # The page shows hits. Copies of one note have one id, so there may be more hits than ids.
    hit_by_row = {
        hit.note.row: hit for hit in memory.search(query.replace(ids=ids), limit=2 * HITS)
    }
    hits = [hit_by_row[info.row] for info in infos_of_page if info.row in hit_by_row]
    return Hits(hits, total)


def _complete_rows(memory: MemorySession, listed: Listed, hits: Hits, text: str) -> None:
    """Add to the row of each hit what the page shows beside it.

    The result of `shown_values` is added, and these keys:

    number: the place of the hit on the page, from 1.
    contradicted: what newer statements contradict in the hit. For the note of `_note_of_name`, all
        its facts are compared. That takes long, so it is not done for other notes.
    parts: the pieces of the passage, with what is contradicted struck out.

    text: the text of the query.
    """
    named_note = _note_of_name(hits, text)
    names_looked_up = [] if named_note is None else [named_note.title]
    statements = statements_naming(memory, names_looked_up)
    most_names = _MAX_NAMES - len(names_looked_up)
    contradicted = _contradicted_by_row(memory, hits, statements, most_names=most_names)
    for number, (row, hit) in enumerate(zip(listed, hits, strict=True), 1):
        row |= shown_values(memory, hit, text) | {"number": number}
        row["contradicted"] = contradicted.get(hit.note.row, [])
        if hit.note is named_note:
            outgoing = memory.outgoing(named_note)
            row["contradicted"] = contradicted_in(memory, named_note, outgoing, statements)
    for row in listed.rows:
        row["parts"] = struck_out(row["pieces"], row["contradicted"])


def _note_of_name(hits: Iterable[Hit], query_text: str) -> NoteInfo | None:
    """Return the first or second hit if the query has its title: `Anna` for "where does Anna live".

    None for any other hit. The facts of the note are compared with what is said since. Looking that
    up takes so long that it is done for one name of a page.
    """
    # What something newer contradicts comes behind that.
    for hit in islice(hits, 2):
        note = hit.note
        # The title of a memory is its first line, which is not the name of anything.
        if note.project in MEMORY_PROJECTS or not note.title:
            continue
        if fold(note.title) in fold(query_text):
            return note
    return None


def _newer_by_row(
    memory: MemorySession, hits: Iterable[Hit], statements: Sequence[Statement], *, most_names: int
) -> dict[int, Statement]:
    """Return the newest statement that contradicts each hit, by row.

    The engine marks contradictions of one verb (`lives in`). Here, somebody who moved lives there.

    statements: what is known to be said. The hits state things, too.
    most_names: of how many further names in the hits it is looked up what is said.
    """
    infos = [hit.note for hit in hits if hit.note.project in MEMORY_PROJECTS]
    names = dict.fromkeys(chain.from_iterable(names_in(info.title) for info in infos))
    all_statements = [*statements, *statements_naming(memory, islice(names, most_names))]
    all_statements += statements_of(info for info in infos if not memory.is_held_back(info))
    against = {info.row: contradicting(info.title, info.created, all_statements) for info in infos}
    return {row: statement for row, statement in against.items() if statement is not None}


def _contradicted_by_row(
    memory: MemorySession, hits: Hits, statements: Sequence[Statement], *, most_names: int
) -> dict[int, list[Contradicted]]:
    """Return what a newer statement contradicts in each hit, by row.

    statements: statements that were looked up already. `_newer_by_row` compares them with the hits.
    most_names: how many names `_newer_by_row` may look up, in addition.
    """
    by_row: dict[int, list[Contradicted]] = {}
    # The index knows which notes have a claim that a newer note contradicts.
    contradicted_rows = newer_contradictions(memory, [hit.note for hit in hits]).keys()
    for hit in hits:
        if hit.note.row in contradicted_rows:
            outgoing = memory.outgoing(hit.note)
            by_row[hit.note.row] = contradicted_in(memory, hit.note, outgoing)
    # A newer statement may also contradict the title of a hit.
    statements_by_row = _newer_by_row(memory, hits, statements, most_names=most_names)
    for hit in hits:
        row = hit.note.row
        if row in statements_by_row and row not in by_row:
            title = memory.rules_for_reading().redacted(hit.note.title)
            by_row[row] = [Contradicted(title, statements_by_row[row])]
    return by_row


def _explained_row(listed: Listed, number: int) -> Document:
    """Return the row of a hit, by its number on the page, with why it is before the next one.

    beats: the reason by which it is furthest ahead of the next hit. None without such a reason.
    is_level: whether no reason puts it ahead of the next hit.

    Raises InvalidInput.
    """
    if number > len(listed.rows):
        raise InvalidInput("There is no such hit any more. Search again.")
    row: Document = listed.rows[number - 1]
    row["remarks"] = [remark for remark in row["remarks"] if remark != _RELAXED]
    row |= {"beats": None, "is_level": False}
    if number < len(listed.rows):
        following: Document = listed.rows[number]
        row["beats"] = _main_difference(row["reasons"], following["reasons"])
        row["is_level"] = row["beats"] is None
    return row


def _main_difference(reasons: Sequence[Reason], next_reasons: Sequence[Reason]) -> Reason | None:
    """Return the main reason why a hit is ranked before the next one, or None.

    reasons: the reasons of the hit, which are the shares of its score.
    next_reasons: the reasons of the next hit.
    """
    next_values = {reason.name: reason.value for reason in next_reasons}
    leads = [(reason.value - next_values.get(reason.name, 0), reason) for reason in reasons]
    lead, main_reason = max(leads, key=lambda pair: pair[0], default=(0, None))
    return main_reason if lead > 0 else None


def tags(visit: Visit) -> Response:
    """Show the tags in use, to choose from.

    Counting them takes longer than a search, so a script asks for them after the page is shown.
    """
    tag_offers = offers(visit.memory.settings, "tag")
    # An offer is a tag, a tab and a description.
    return visit.html("tags.html", tags=[offer.partition("\t")[0] for offer in tag_offers])


def _in_transcripts(visit: Visit) -> list[TraceHit]:
    """Return the hits in agents' transcripts. Empty unless the form asks for them."""
    if not visit.text("traces") or not visit.text("q"):
        return []
    return find_traces(visit.memory, visit.text("q"), limit=_MAX_PASSAGES)


def writers(memory: MemorySession) -> list[str]:
    """Return the values that the filter `by:` may have: the writers of notes."""
    lately = {change.agent for change in memory.log(limit=500) if change.agent}
    return ["owner", *sorted(lately), "import", "web", "file"]


def suggest(visit: Visit) -> Response:
    """Show the notes and names that the words typed into the palette may mean."""
    text = visit.text("q")
    found = visit.memory.search(query_of(visit.memory, {"q": text}), limit=_SUGGESTIONS_FROM)
    contradicted = _contradicted_memories(visit.memory, found)
    hits = _wanted_first(visit.memory, found, contradicted)[:_MAX_SUGGESTIONS]
    offered_names = names_for(visit, text)
    # The words of a note may have a name in them. Then the note is meant, so it comes first.
    first_names = [offered for offered in offered_names if is_meant_alone(text, offered.name)]
    last_names = [offered for offered in offered_names if offered not in first_names]
    return visit.html(
        "suggestions.html",
        hits=hits,
        text=text,
        telling=[_words_around(visit.memory, hit) for hit in hits],
        contradicted=contradicted,
        first_names=first_names,
        last_names=last_names,
        is_note_first=any(_is_named(hit.note, text) for hit in hits[:1]),
    )


def _contradicted_memories(memory: MemorySession, hits: Hits) -> set[int]:
    """Return the rows of those memories among the hits that a newer memory contradicts.

    A note of its own stays out: of its facts, others may hold.
    """
    infos = [hit.note for hit in hits if hit.note.project in MEMORY_PROJECTS]
    return {*newer_contradictions(memory, infos), *_newer_by_row(memory, hits, (), most_names=0)}


def _wanted_first(memory: MemorySession, hits: Hits, contradicted: Container[int]) -> list[Hit]:
    """Return hits in their order, but last those that nobody wants to open.

    These are memories that a newer one contradicts, and notes that look planted.

    contradicted: the rows of the contradicted memories.
    """

    def is_unwanted(hit: Hit) -> bool:
        return hit.note.row in contradicted or memory.is_held_back(hit.note)

    # False sorts before True.
    return sorted(hits, key=is_unwanted)


def _words_around(memory: MemorySession, hit: Hit) -> str:
    """Return the part of a passage that says why a note is meant: from just before the words found.

    Its secrets are masked. "" if it says nothing but the title.
    """
    _, passage = passage_of(hit)
    line = memory.rules_for_reading().redacted(_passage_shown(hit, passage))
    folded_line = line.casefold()
    # -1 for a word that the passage does not have in this spelling.
    positions = [folded_line.find(word.casefold()) for word in hit.words if word]
    first_position = min((position for position in positions if position >= 0), default=0)
    if first_position > _CHARACTERS_BEFORE:
        # The line is cut at a blank, so that it begins with a whole word.
        blank = line.find(" ", first_position - _CHARACTERS_BEFORE)
        line = f"…{line[blank + 1 :].removeprefix(_DOT.lstrip())}"
    return line[:_MAX_TELLING]


def _is_named(note: NoteInfo, text: str) -> bool:
    """Whether a note has a title that begins as typed. A memory has no title of its own."""
    if note.project in MEMORY_PROJECTS:
        return False
    beginnings = [fold(form) for form in (text, *other_forms(text))]
    return fold(note.title).startswith(tuple(beginnings))


def as_json(visit: Visit) -> dict[str, Any]:
    """Return the hits of a search as JSON."""
    memory = visit.memory
    limit = min(visit.number("limit", HITS), MOST_HITS)
    offset = visit.number("offset", 0)
    query = query_of(memory, visit.fields)
    hits = memory.search(query, limit=limit, offset=offset, explain=True)
    notes = [hit.note for hit in hits]
    listed = documents.found_notes(memory, notes, hits, offset, is_named=True)
    return {
        "total": listed.total,
        **hits.bound,
        "relaxed": hits.relaxed,
        "hits": listed.rows,
        "next": listed.next,
    }


def shown_values(memory: MemorySession, hit: Hit, asked: str = "") -> dict[str, Any]:
    """Return what the page shows of a hit in addition to its document. Secrets in its title are masked.

    asked: the text of the query.

    writer, agent, written: who wrote its text, and when (see `TextOrigin`).
    title_pieces, pieces: the title and the passage in pieces: (whether the piece is a word of the
        query, its text). `pieces` is empty if the passage only repeats the title.
    is_planted: whether it seems to hold instructions for agents.
    marks: remarks about its validity, in the words of the engine.
    reasons: the shares of its score in plain words.
    remarks: further remarks about the hit.
    """
    info = hit.note
    origin = text_origin(memory, info)
    words = _words_to_mark(hit)
    whole_words = telling_words(asked)
    title = memory.rules_for_reading().redacted(info.title)
    marks, passage = passage_of(hit)
    is_by_hand = info.source is None or info.source == BY_HAND
    # What is said of the hit elsewhere: by a coloured word, in the reasons, or as a mark.
    said_elsewhere = {*hit.word_reasons, *hit.share_reasons(), *marks}
    return {
        "url": note_url(info.project, info.path),
        "writer": origin.writer,
        "agent": origin.agent,
        "category": info.category,
        "written": origin.time,
        "about": info.date,
        "is_planted": memory.is_held_back(info),
        "is_archived": info.project.startswith("."),
        "is_from_elsewhere": not is_by_hand and info.source != info.provenance.who,
        "title_pieces": _pieces(words, title[:_MAX_TITLE_CHARACTERS], whole_words),
        # What contradicts the hit is told below its passage.
        "marks": [mark for mark in marks if not mark.startswith("newer: ")],
        "pieces": _pieces(words, _passage_shown(hit, passage), whole_words),
        "reasons": _reasons(hit.shares, ", ".join(dict.fromkeys(hit.words))),
        "remarks": [remark for remark in hit.why if remark not in said_elsewhere],
    }


def telling_words(asked: str) -> list[str]:
    """Return the words of a query, folded, without such as `the`. All, if it has no other words."""
    words = _WORD.findall(fold(asked))
    return [word for word in words if word not in stop_words()] or words


def _words_to_mark(hit: Hit) -> list[str]:
    """Return the words that made a note a hit, in every spelling that its text may use."""
    words = {*hit.words, *hit.spelled} - {""}
    words = {word for word in words if word not in stop_words()} or words
    for word in tuple(words):
        words.update(other_forms(word))
    return sorted(words)


def passage_of(hit: Hit) -> tuple[list[str], str]:
    """Return the remarks about validity before the passage of a hit, and the passage without them."""
    marks = []
    passage = hit.passage
    # The remarks were put before the passage in the order of `why`, so the last one is the first.
    for remark in reversed(hit.why):
        beginning = f"[{remark}] "
        if passage.startswith(beginning):
            marks.append(remark)
            passage = passage.removeprefix(beginning)
    return marks, passage


def _passage_shown(hit: Hit, passage: str) -> str:
    """Return the passage of a hit as one line, with a sign where it is cut within a sentence.

    passage: the passage without remarks (`passage_of`).
    """
    line = readable_passage(passage, hit.note.title)
    ends_within_sentence = hit.is_cut and not line.endswith((*_SENTENCE_ENDS, "…"))
    return f"{line} …" if line and ends_within_sentence else line


def readable_passage(passage: str, title: str) -> str:
    """Return a passage of Markdown as one line, without the title at its beginning.

    Headings, items of lists and paragraphs without a full stop are separated by dots, and links
    become their words: `- [[Bo]]` and `- tea` give `Bo · tea`. "" if the passage says nothing but
    the title.
    """
    words = with_relations_as_words(passage.strip())
    without_tags = _HEADING.sub(r"\1\n\n", _TAGS.sub("", words))
    separated = _PARAGRAPH.sub(_DOT, _ITEM.sub(_DOT, f"\n{without_tags}"))
    line = " ".join(plain_words(separated).split()).removeprefix(_DOT.lstrip())
    after_title = line.removeprefix(title.strip())
    if after_title.strip(" .…") == "":
        return ""
    if after_title.startswith(_DOT):
        return after_title.removeprefix(_DOT)
    is_after_sentence = after_title != line and title.strip().endswith(_SENTENCE_ENDS)
    return after_title.strip() if is_after_sentence else line


def _pieces(
    words: Iterable[str], text: str, whole_words: Iterable[str] = ()
) -> list[tuple[bool, str]]:
    """Split a text at words: (whether a piece is such a word, the piece).

    For the word "plan", `The plan holds` gives `The `, `plan` (True) and ` holds`. As in a search,
    neither case nor accents count: "gdansk" is `Gdańsk`.

    words: words that are also marked within longer words.
    whole_words: further words, folded, that are only marked as they are.
    """
    folded_words = {fold(word) for word in words} - {""}
    longest_first = sorted(folded_words, key=len, reverse=True)
    patterns = [re.escape(word) + _ENDING for word in longest_first]
    patterns += [rf"(?<!\w){re.escape(word)}(?!\w)" for word in whole_words]
    if not patterns:
        return [(False, text)] if text else []
    folded_text, places = _folded_with_places(text)
    pieces = []
    # The end of the last piece, in the text as it is written.
    end = 0
    for match in re.finditer("|".join(patterns), folded_text):
        start = places[match.start()]
        stop = places[match.end()]
        # One character may fold into several, as "ß" into "ss". A match of only one of these has no
        # character of the written text for itself.
        if stop <= max(start, end):
            continue
        pieces.append((False, text[end:start]))
        pieces.append((True, text[start:stop]))
        end = stop
    pieces.append((False, text[end:]))
    return [(is_word, piece) for is_word, piece in pieces if piece]


def _folded_with_places(text: str) -> tuple[str, list[int]]:
    """Return a text folded, and the place in the text of each folded character and of the end."""
    folded_characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        folded = character.lower() if character.isascii() else fold(character)
        folded_characters.append(folded)
        places += [place] * len(folded)
    return "".join(folded_characters), [*places, len(text)]


def _reasons(shares: Mapping[str, float], words: str) -> list[Reason]:
    """Return the shares of a score as reasons, the largest first. They are the parts of one bar.

    The positive shares fill the bar. A negative one has no width.

    words: the words of the query that the note has.
    """
    positive_sum = sum(value for value in shares.values() if value > 0) or 1.0
    score = sum(shares.values()) or 1.0
    reasons = []
    # Where the part of a reason begins in the bar, in percent of the bar.
    start = 0.0
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    percents = _whole_percents([100 * value / score for _, value in ordered])
    for (name, value), percent in zip(ordered, percents, strict=True):
        width = 100 * max(0.0, value) / positive_sum
        # A share below half a percent is no reason that a person wants to read.
        if percent:
            reasons.append(
                Reason(
                    name=name,
                    sentence=_sentence(name, value),
                    words=words,
                    value=value,
                    percent=percent,
                    start=round(start, 1),
                    width=round(width, 1),
                )
            )
        start += width
    return reasons


def _whole_percents(values: Sequence[float]) -> list[int]:
    """Round percents so that they add up to 100. The largest fractions are rounded up first.

    values: percents that add up to 100, the largest first.
    """
    percents = [floor(value) for value in values]
    missing = round(sum(values)) - sum(percents)
    # The largest fraction gives the smallest difference, since that is its negative.
    positions = sorted(
        range(len(values)), key=lambda position: percents[position] - values[position]
    )
    for position in positions[:missing]:
        percents[position] += 1
    return percents


def _sentence(name: str, value: float) -> str:
    """Return the sentence for a share of a score: for `same_title`, that the words are the title."""
    sentences = _sentences().get(name, {})
    lowering = sentences.get("lowers")
    if value < 0 and lowering:
        return lowering
    return sentences.get("raises") or name.replace("_", " ")


@cache
def _sentences() -> Mapping[str, Mapping[str, str]]:
    """Return the sentences that explain a score, by the name of the share.

    A share is the part of a hit's score that one feature adds. It has a sentence `raises`. If it
    can also lower the score, it has a sentence `lowers`.
    """
    return json.loads(text_in(TEXTS, "reasons.json"))
