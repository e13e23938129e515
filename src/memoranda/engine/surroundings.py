"""Adds to the hits of a context what an agent would have to look up with further calls.

For a note that is no longer valid this is the note that supersedes it. For a memory made from a
session it is the turn of the transcript it comes from.
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
# The source of memories made from transcripts begins so (transcripts/proposals.py).
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
    """Return hits, and after them what an agent would look up about the best of them.

    For each of the best hits, these are the note that supersedes it, and the turn of the transcript
    that it comes from. If there is not enough room, the worst of the other hits are left out first.

    hits: the hits of a context, the best first.
    room: the most characters that all hits take as `evidence_text` words them.
    projects: the projects that were searched. Nothing of others is added. None means all.
    """
    best = hits[:_BEST_HITS]
    further = [*_newer_notes(memory, hits, best, projects), *_source_turns(memory, best)]
    if not further:
        return list(hits)
    others = list(hits[_BEST_HITS:])
    while True:
        all_hits = [*best, *others, *further]
        if len(evidence_text(told_notes(all_hits, memory.settings.zone))) <= room:
            return all_hits
        # First the worst hits go, then what was to be added.
        shortened = others or further
        if not shortened:
            return list(hits)
        shortened.pop()


def _newer_notes(
    memory: Reader, hits: Sequence[Hit], best: Sequence[Hit], projects: Sequence[str] | None
) -> Iterator[Hit]:
    """Yield a hit for each note that supersedes a note of `best` and is not among `hits`.

    projects: the projects that were searched. None means all.
    """
    known_rows = {hit.note.row for hit in hits}
    searched = None if projects is None else {name.casefold() for name in projects}
    for hit in best:
        newest = _newest_version(memory, hit.note)
        if newest is None or newest.row in known_rows:
            continue
        if searched is not None and newest.project.casefold() not in searched:
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
        first_line = header.count("\n") + 1
        yield Hit(newest, passage, hit.score, ["supersedes a hit"], first_line)


def _newest_version(memory: Reader, note: NoteInfo) -> NoteInfo | None:
    """Return the last of the notes that supersede each other, beginning with `note`.

    If several notes supersede one, the last of them counts that is not in the archive. None if
    nothing that the caller may be shown supersedes `note`.
    """
    passed_rows = {note.row}
    newest: NoteInfo | None = None
    current = note
    while True:
        following = [
            successor
            for successor in memory.index.notes.successors(current)
            if successor.row not in passed_rows
            and memory.sees(successor.scope)
            and not memory.is_held_back(successor)
        ]
        if not following:
            return newest
        in_use = [successor for successor in following if successor.project != ARCHIVE_PROJECT]
        current = (in_use or following)[-1]
        newest = current
        passed_rows.add(current.row)


def _source_turns(memory: Reader, hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield a passage for each memory of `hits` that was made from a turn of a transcript."""
    last_lines: dict[int, int] = {}
    notes: dict[int, NoteInfo] = {}
    for hit in hits:
        row = hit.note.row
        last_lines[row] = max(hit.line, last_lines.get(row, 0))
        if (hit.note.source or "").startswith(_FROM_TRANSCRIPT):
            notes[row] = hit.note
    for row, note in notes.items():
        reference = str(note.header.get(_SOURCE_REF) or "").partition(":")[2]
        turn = _source_turn()(memory, reference) if reference else ""
        if turn:
            # Passages of a note are shown in the order of their lines.
            yield Hit(
                note,
                f"[source turn] {turn}",
                score=0.0,
                why=["source turn"],
                line=last_lines[row] + 1,
            )


def _source_turn() -> Callable[[Reader, str], str]:
    module, name = _SOURCE_TURN
    function: Callable[[Reader, str], str] = getattr(import_module(module), name)
    return function


def _passage(text: str, most: int) -> str:
    """Return the beginning of a text as evidence shows it."""
    return visible(text.strip()[:most].rstrip()).replace("\n", BELOW)
