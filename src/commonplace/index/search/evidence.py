"""The best evidence for a question: chunks, not whole notes, until the space is used up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date

from commonplace.index import validity
from commonplace.index.rows import Hit, NoteInfo, infos
from commonplace.index.search.chunks import ChunkReading
from commonplace.index.search.queries import search_context
from commonplace.index.search.ranking import Nearness, Ranking
from commonplace.note.links import slug
from commonplace.note.model import ARCHIVED
from commonplace.query import Query
from commonplace.text.neutral import flat, visible
from commonplace.text.tokens import flatten, stop_words, tokens
from commonplace.text.unicode import sqlite_text

_MAX_NOTES = 60
_TITLE, _ID = 60, 8
_BELOW = "\n  "


def find_evidence(
    db: sqlite3.Connection, question: str, *, viewer: str | None, max_chars: int = 8_000,
    projects: Sequence[str] | None = None, today: date | None = None, near: Nearness | None = None,
    filters: Query = Query(), skip: Callable[[NoteInfo], bool] | None = None, least: float = 0.0,
) -> list[Hit]:  # fmt: skip
    """The chunks that best answer `question`, best first, at most `max_chars` characters as `format_evidence` writes
    them.

    A hit is one turn, one list item or one passage of about 200 words, cut from the note's text; a note may give
    several, and what repeats an earlier one is left out. `today` is what "last week" in the question counts from;
    `near` as for `Ranking`; notes for which `skip` is true are left out, and chunks less relevant
    than `least` (`Ranking.relevance`). What is not valid at `filters.valid_at` is left
    out unless nothing else answers; it is marked.
    """
    query = filters.replace(text=sqlite_text(question), projects=None if projects is None else tuple(projects))
    with search_context(db, query, viewer) as context:
        ranking = Ranking(context, query.text, today, near)
        marks = validity.marks(db, ranking.features, viewer) if context.spans and query.as_of is None else {}
        found = list(_fitting(db, ChunkReading(ranking, _MAX_NOTES, every=True), max_chars, marks, skip, least))
        if found or not context.invalid or query.as_of is not None:
            return found
    return find_evidence(db, question, viewer=viewer, max_chars=max_chars, projects=projects, today=today, near=near,
                         filters=filters.replace(valid_at=None), skip=skip, least=least)  # fmt: skip


def format_evidence(hits: Sequence[Hit]) -> str:
    """Evidence as text: under one line with title, day and address the passages of a note, in its order.

    The lines of passages are indented by two blanks, so that none can pass for a line about a note.

    Notes of one folder and day whose address says their title share the line, and each begins with its own name; a
    memory begins with the first 8 characters of its id.
    """
    groups: dict[tuple[bool, str], list[Hit]] = {}
    for hit in hits:
        groups.setdefault(_group(hit.note), []).append(hit)
    found = []
    for (_, place), some in groups.items():
        some.sort(key=lambda hit: (hit.note.created, hit.note.permalink, hit.line))
        notes = {hit.note.row: hit.note for hit in some}
        if len(notes) == 1 and not _is_memory(some[0].note):
            found.append(_BELOW.join([_heading(some[0].note), *(hit.passage for hit in some)]))
            continue
        lines = [flat(f"({place})")]
        for row, note in notes.items():
            lines.append(f"{_name(note)}: " + _BELOW.join(hit.passage for hit in some if hit.note.row == row))
        found.append("\n".join(lines))
    return "\n\n".join(found)


def _heading(note: NoteInfo) -> str:
    """The line about a note: title, day and address; a title the address says is not repeated."""
    title = "" if _is_title_in_address(note) else f"{' '.join(note.title[:_TITLE].split())} "
    return flat(f"{title}({_dated(note, _address(note))})")


def _group(note: NoteInfo) -> tuple[bool, str]:
    """Notes for which this is equal share a line: day and folder of a note whose name says its title, else day and
    address."""
    address, is_said = _address(note), _is_title_in_address(note)
    return is_said, _dated(note, address.rpartition("/")[0] if is_said and "/" in address else address)


def _name(note: NoteInfo) -> str:
    return note.id[:_ID] if _is_memory(note) else flat(note.permalink.rpartition("/")[2])


def _dated(note: NoteInfo, place: str) -> str:
    mark = f"{ARCHIVED}, " if note.phase == ARCHIVED else ""
    return f"{(note.date or note.created)[:10]}, {mark}{place}"


def _is_title_in_address(note: NoteInfo) -> bool:
    return _is_memory(note) or slug(note.title) == note.permalink.rpartition("/")[2]


def _is_memory(note: NoteInfo) -> bool:
    """Whether a note is named by its text and its id, as memories are (contract 001, 2)."""
    return bool(note.id) and note.permalink.endswith(f"-{note.id[:_ID]}")


def _address(note: NoteInfo) -> str:
    within = note.permalink.startswith(f"{note.project.removeprefix('.')}/")
    return note.permalink if within else f"{note.project}: {note.permalink}"


def _fitting(
    db: sqlite3.Connection, ranking: ChunkReading, space: int, marks: Mapping[int, str],
    skip: Callable[[NoteInfo], bool] | None, least: float,
) -> Iterator[Hit]:  # fmt: skip
    """The best chunks that fit into `space` characters together with the lines about their notes."""
    notes = infos(db, ranking.rows)
    given: set[int] = set()
    groups: set[tuple[bool, str]] = set()
    seen: list[frozenset[str]] = []
    for row, start, stop, score in ranking.relevant(least):
        text, note = ranking.texts[row], notes[row]
        if skip is not None and skip(note):
            continue
        passage = (f"[{marks[row]}] " if row in marks else "") + text.text[start:stop].strip()
        head, group = 1, _group(note)
        if row not in given:
            name = len(_name(note)) + 3
            whole = len(group[1]) + 4 + name if _is_memory(note) else len(_heading(note)) + 3
            head = name if group in groups else whole
        passage = visible(passage).replace("\n", _BELOW)
        head += len(_BELOW) - 1
        if len(passage) + head > space:
            if given or head >= space:
                continue
            passage = passage[: space - head].rstrip()
        words = frozenset(tokens(flatten(passage)))
        if not passage or any(not words - other - stop_words() for other in seen):
            continue
        space -= len(passage) + head
        given.add(row)
        groups.add(group)
        seen.append(words)
        line = text.front.count("\n") + text.text.count("\n", 0, start) + 1
        yield Hit(note, passage, round(score, 6), ranking.why(text), line)
