"""The best evidence for a question: passages, not whole notes, until the space is used up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import date

from commonplace.index.asking import Nearness, answers
from commonplace.index.database import snapshot
from commonplace.index.passages import Reading, chosen
from commonplace.index.ranking import Asked
from commonplace.index.rows import Hit, NoteInfo, infos
from commonplace.index.text import flatten, sound, stop_words, tokens
from commonplace.note.links import slug
from commonplace.query import Query

_MOST_NOTES = 60
_TITLE, _ID = 60, 8


def evidence(
    db: sqlite3.Connection, question: str, *, viewer: str | None, max_chars: int = 8_000,
    projects: Sequence[str] | None = None, today: date | None = None, near: Nearness | None = None,
) -> list[Hit]:  # fmt: skip
    """The passages that best answer `question`, best first, at most `max_chars` characters as `told` writes them.

    A hit is one turn, one list item or one passage of about 200 words, cut from the note's text; a note may give
    several, and what says the same as one before stays out. `today` is what "last week" in the question counts from;
    `near` as for `answers`.
    """
    settled = not db.in_transaction
    with snapshot(db):
        query = Query(sound(question), projects=None if projects is None else tuple(projects))
        return list(_filled(Asked(db, query, viewer, settled=settled), max_chars, today, near))


def told(hits: Sequence[Hit]) -> str:
    """Evidence as text: under one line with title, day and address the passages of a note, in its order. Notes of one
    folder and day whose address says their title share the line, and each begins with its own name; a memory begins
    with the first 8 characters of its id."""
    groups: dict[tuple[bool, str], list[Hit]] = {}
    for hit in hits:
        groups.setdefault(_group(hit.note), []).append(hit)
    return "\n\n".join(map(_together, groups.values()))


def _together(hits: list[Hit]) -> str:
    hits = sorted(hits, key=lambda hit: (hit.note.created, hit.note.permalink, hit.line))
    notes = {hit.note.row: hit.note for hit in hits}
    if len(notes) == 1 and not _is_memory(hits[0].note):
        return "\n".join([_headed(hits[0].note), *(hit.passage for hit in hits)])
    lines = [f"({_place(hits[0].note)})"]
    for row, note in notes.items():
        lines.append(f"{_name(note)}: " + "\n".join(hit.passage for hit in hits if hit.note.row == row))
    return "\n".join(lines)


def _headed(note: NoteInfo) -> str:
    """The line about a note: title, day and address; a title the address says is not said twice."""
    title = "" if _is_said(note) else f"{note.title[:_TITLE]} "
    return f"{title}({_day(note)}, {_address(note)})"


def _group(note: NoteInfo) -> tuple[bool, str]:
    """Notes for which this is equal share a line."""
    return _is_said(note), _place(note)


def _place(note: NoteInfo) -> str:
    """Day and folder of a note whose name says its title, else day and address."""
    address = _address(note)
    return f"{_day(note)}, {address.rpartition('/')[0] if _is_said(note) and '/' in address else address}"


def _name(note: NoteInfo) -> str:
    return note.id[:_ID] if _is_memory(note) else note.permalink.rpartition("/")[2]


def _day(note: NoteInfo) -> str:
    return (note.date or note.created)[:10]


def _is_said(note: NoteInfo) -> bool:
    """Whether a note's address says its title."""
    return _is_memory(note) or slug(note.title) == note.permalink.rpartition("/")[2]


def _is_memory(note: NoteInfo) -> bool:
    """Whether a note is named by its text and its id, as memories are (contract 001, 2)."""
    return bool(note.id) and note.permalink.endswith(f"-{note.id[:_ID]}")


def _address(note: NoteInfo) -> str:
    within = note.permalink.startswith(f"{note.project}/")
    return note.permalink if within else f"{note.project}: {note.permalink}"


def _filled(asked: Asked, space: int, today: date | None, near: Nearness | None) -> Iterator[Hit]:
    found = answers(asked, asked.query.text, today, near)
    rows = chosen(found, found.page(asked.db, 0, _MOST_NOTES))
    reading = Reading(asked, found, rows, every=True)
    notes = infos(asked.db, rows)
    given: set[int] = set()
    groups: set[tuple[bool, str]] = set()
    seen: list[frozenset[str]] = []
    for row, start, stop, score in reading.ranked(rows):
        text = reading.texts[row]
        passage = text.text[start:stop].strip()
        head, group = 1, _group(notes[row])
        if row not in given:
            name = len(_name(notes[row])) + 3
            whole = len(group[1]) + 4 + name if _is_memory(notes[row]) else len(_headed(notes[row])) + 3
            head = name if group in groups else whole
        if len(passage) + head > space:
            if given or head >= space:
                continue
            passage = passage[: space - head].rstrip()
        said = frozenset(tokens(flatten(passage)))
        if not passage or any(_is_repeated(said, other) for other in seen):
            continue
        space -= len(passage) + head
        given.add(row)
        groups.add(group)
        seen.append(said)
        line = text.front.count("\n") + text.text.count("\n", 0, start) + 1
        yield Hit(notes[row], passage, round(score, 6), reading.why(row), line)


def _is_repeated(new: frozenset[str], before: frozenset[str]) -> bool:
    """Whether a passage has no word that tells which another one has not."""
    return not new - before - stop_words()
