"""Add further texts to the hits of a context, so that an agent need not look them up.

For a note that is no longer valid, it is the note that supersedes it. For a memory that was made
from a session, it is the turn of the transcript from which the memory comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from memoranda.index.rows import Hit, NoteInfo
from memoranda.index.told_notes import BELOW, evidence_text, told_notes
from memoranda.note.model import ARCHIVE_PROJECT
from memoranda.text.unicode import visible

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.index.index import Index

# A note that supersedes a hit is shown with this many characters of its text.
_NEWER_CHARACTERS = 400
# Only the best hits are worth the room that their surroundings take.
_BEST_HITS = 4
# The header key that names the turn, as `AGENT:SESSION@POSITION`.
_SOURCE_REF = "source_ref"
# The beginning of the source of a memory that was made from a transcript
# (transcripts/proposals.py).
_FROM_TRANSCRIPT = "transcript-"
# The module is only named here, because the engine may not import the transcripts.
_SOURCE_TURN = ("memoranda.transcripts.tier", "source_turn")


class Reader(Protocol):
    """The parts of an open memory that this module needs."""

    index: Index
    agent: str | None

    @property
    def settings(self) -> Settings:
        """The settings of the home."""

    def sees(self, scope: str) -> bool:
        """Whether the caller may see notes of `scope`."""

    def is_held_back(self, info: NoteInfo) -> bool:
        """Whether a note may hold instructions that somebody planted."""


def with_surroundings(
    memory: Reader, hits: Sequence[Hit], room: int, projects: Sequence[str] | None = None
) -> list[Hit]:
    """Return hits, followed by others that an agent would look up about the best of them.

    For each of the best hits, these are the note that supersedes it, and the turn of the transcript
    that it comes from. If there is not enough room, the worst of the other hits are left out first.

    hits: the hits of a context, the best first.
    room: how many characters the text of all hits may have (`evidence_text`).
    projects: the projects that were searched. Notes of others are not added. None means all.
    """
    best = hits[:_BEST_HITS]
    further = [*_newer_notes(memory, hits, best, projects), *_source_turns(memory, best)]
    if not further:
        return list(hits)
    others = list(hits[_BEST_HITS:])
    while True:
        all_hits = [*best, *others, *further]
        text = evidence_text(told_notes(all_hits, memory.settings.zone))
        if len(text) <= room:
            return all_hits
        # There is not enough room. The worst of the other hits are left out first, then the hits
        # that were to be added.
        if others:
            others.pop()
        elif further:
            further.pop()
        else:
            return list(hits)


def _newer_notes(
    memory: Reader, hits: Sequence[Hit], best: Sequence[Hit], projects: Sequence[str] | None
) -> Iterator[Hit]:
    """Yield a hit for each note that supersedes a note of `best` and is not among `hits`.

    hits: all hits of the context.
    best: the first of them.
    projects: the projects that were searched. None means all.
    """
    known_rows = {hit.note.row for hit in hits}
    searched_projects = None if projects is None else {name.casefold() for name in projects}
    for hit in best:
        newest = _newest_version(memory, hit.note)
        if newest is None or newest.row in known_rows:
            continue
        if searched_projects is not None and newest.project.casefold() not in searched_projects:
            continue
        known_rows.add(newest.row)
        header, text = memory.index.notes.text_of(newest.row)
        passage = _passage(text, _NEWER_CHARACTERS)
        if not passage:
            continue
        marks = memory.index.notes.validity_marks([newest], memory.agent, memory.settings.zone)
        mark = marks.get(newest.row)
        if mark:
            passage = f"[{mark}] {passage}"
        # The passage is the beginning of the text, which is below the header.
        first_line = header.count("\n") + 1
        yield Hit(
            note=newest, passage=passage, score=hit.score, why=["supersedes a hit"], line=first_line
        )


def _newest_version(memory: Reader, note: NoteInfo) -> NoteInfo | None:
    """Return the newest version of a note: the last note that supersedes it, in several steps.

    If several notes supersede one, the latest of those outside the archive counts. None if no note
    that the caller may be shown supersedes the note.
    """
    passed_rows = {note.row}
    newest: NoteInfo | None = None
    current = note
    while True:
        successors = [
            successor
            for successor in memory.index.notes.successors(current)
            if successor.row not in passed_rows
            and memory.sees(successor.scope)
            and not memory.is_held_back(successor)
        ]
        if not successors:
            return newest
        in_use = [successor for successor in successors if successor.project != ARCHIVE_PROJECT]
        # If all of them are in the archive, the latest of these counts.
        current = (in_use or successors)[-1]
        newest = current
        passed_rows.add(current.row)


def _source_turns(memory: Reader, hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield the turns of transcripts that memories among `hits` were made from, as passages."""
    # By the row of a note, the last line with a passage.
    last_lines: dict[int, int] = {}
    notes_from_transcripts: dict[int, NoteInfo] = {}
    for hit in hits:
        row = hit.note.row
        last_lines[row] = max(hit.line, last_lines.get(row, 0))
        if (hit.note.source or "").startswith(_FROM_TRANSCRIPT):
            notes_from_transcripts[row] = hit.note
    for row, note in notes_from_transcripts.items():
        source_ref = str(note.header.get(_SOURCE_REF) or "")
        _, _, session_and_position = source_ref.partition(":")
        if not session_and_position:
            continue
        text_of_turn = _reader_of_turns()
        turn = text_of_turn(memory, session_and_position)
        if turn:
            # Passages of a note are shown in the order of their lines, so the turn comes last.
            yield Hit(
                note,
                f"[source turn] {turn}",
                score=0.0,
                why=["source turn"],
                line=last_lines[row] + 1,
            )


def _reader_of_turns() -> Callable[[Reader, str], str]:
    """Return the function that reads a turn of a transcript, given `SESSION@POSITION`."""
    module, name = _SOURCE_TURN
    text_of_turn: Callable[[Reader, str], str] = getattr(import_module(module), name)
    return text_of_turn


def _passage(text: str, most: int) -> str:
    """Return the beginning of a text as evidence shows it."""
    return visible(text.strip()[:most].rstrip()).replace("\n", BELOW)
