"""Find out where a note of an older change is now.

In between, the note may have been moved, sorted into a category, archived, or merged, and another
program may have renamed its file.
"""

from __future__ import annotations

from contextlib import suppress

from memoranda.engine.engine import verb
from memoranda.engine.history.former_places import (
    MOST_MOVES,
    MOST_STEPS_OF_TEXT,
    Place,
    digest_after,
    end_before_rename,
    is_same_text,
    moved_by,
    texts_of,
)
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.transaction import root_of
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Location
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.note.names import id_in_file_name
from memoranda.sources.step import StepKind

# The verb of a change that makes one note of two.
_MERGE = "merge"


@verb
def where_now(
    memory: HistoryVerbs, project: str, path: str, *, only_same: bool = False
) -> NoteInfo | None:
    """Return the note that is at a place now. If no note is there, return the note that was there.

    If the note was merged into another one, the other note is returned. None if nothing of the note
    is left.

    project, path: the place.
    only_same: whether to return only the note itself, and not a note into which it was merged.
    """
    place = (project, path)
    visited: set[Place] = set()
    # Follow the moves of the note. If a place comes again, they go round in a circle.
    for _ in range(MOST_MOVES):
        info = _note_at(memory, place) or _by_id_in_name(memory, place, only_same)
        if info is not None:
            return info
        visited.add(place)
        next_place = _left_for(memory, place, only_same)
        if next_place is None or next_place in visited:
            return None
        place = next_place
    return None


@verb
def last_place_of_memory(memory: HistoryVerbs, id_start: str) -> Place | None:
    """Return where a memory is, or where it was last. None if it is unknown.

    If the memory was merged into another one, this is where it was before.

    id_start: the first digits of the id of the memory.
    """
    location = memory.place_by_id(id_start)
    if location is None:
        return None
    return location.project, location.path


@verb
def note_of_text(memory: HistoryVerbs, digest_start: str) -> NoteInfo | None:
    """Return the note that has an older text, at its present place. None if it is gone or unknown.

    digest_start: the first digits of the SHA-256 of the text.
    """
    place = memory.engine.ledger.history.place_of_text(digest_start)
    if place is None:
        return None
    return where_now(memory, *place)


def _note_at(memory: HistoryVerbs, place: Place) -> NoteInfo | None:
    """Return the note that is at a place now. None if no note is there."""
    with suppress(MemorandaError):
        return memory.find(place)
    return None


def _by_id_in_name(memory: HistoryVerbs, place: Place, only_same: bool) -> NoteInfo | None:
    """Return the memory whose id is in the file name of `place`, wherever the memory is now.

    The file `tea-1a2b3c4d.md` names the memory whose id begins with `1a2b3c4d`. None if no memory
    has that id now.

    only_same: whether to return None if that memory was merged into another. Otherwise the merged
        memory is returned.
    """
    project, path = place
    id_start = id_in_file_name(path)
    if id_start is None or project not in MEMORY_PROJECTS:
        return None
    with suppress(MemorandaError):
        info = memory.memory_id(id_start)
        # An id of a memory that was merged leads to the memory that it is in now.
        is_same = info.id.startswith(id_start)
        if is_same or not only_same:
            return info
    return None


def _left_for(memory: HistoryVerbs, place: Place, only_same: bool) -> Place | None:
    """Return where the last change of a place, or another program, took the note that was there.

    None if nothing took the note away, or if it is not known where.

    only_same: whether to leave out merges, which make the note a part of another note.
    """
    with suppress(MemorandaError):
        location = memory.locate("/".join(place))
        for change in memory.changes_at(location):
            next_place = moved_by(change, place)
            if next_place is not None:
                return next_place

            # The change may have removed the note and written its text elsewhere, or only taken the
            # link to it out of another note.
            next_place = _left_by(change, place)
            if next_place is None:
                continue
            may_be_merge = not only_same and change.verb == _MERGE
            if may_be_merge or _is_one_note(memory, change, place, next_place):
                return next_place
            return None
        return _renamed_to(memory, location)
    return None


def _renamed_to(memory: HistoryVerbs, location: Location) -> Place | None:
    """Return where another program took the note that a place had. None if it is not known."""
    change = next(memory.changes_at(location), None)
    digest = None if change is None else digest_after(change, location)
    if digest is None:
        return None
    notes_with_text = memory.index.notes.with_text(digest, memory.agent)
    if len(notes_with_text) > MOST_STEPS_OF_TEXT:
        return None
    for info in notes_with_text:
        new_location = Location(info.project, info.path, root_of(memory.engine, info.project))
        end = end_before_rename(memory, new_location, digest)
        if end is not None and end.place == location:
            return info.project, info.path
    return None


def _left_by(change: Change, place: Place) -> Place | None:
    """Return where a change wrote a note while it removed the note of `place`.

    The written note may be the same note, a note into which it was merged, or a note that lost its
    link to it. None if the change did not remove the note of `place`, or if it did not write exactly
    one note.
    """
    written_places: list[Place] = []
    is_removed = False
    for touched in change.files:
        if touched.do == StepKind.PUT:
            written_places.append((touched.project, touched.path))
        elif touched.do == StepKind.REMOVE:
            is_removed |= (touched.project, touched.path) == place
    if not is_removed or len(written_places) != 1:
        return None
    return written_places[0]


def _is_one_note(memory: HistoryVerbs, change: Change, removed: Place, written: Place) -> bool:
    """Whether a change moved a note: the note that it removed is the note that it wrote.

    They are one note if their texts are equal or have the same id.

    removed, written: the place of the removed note, and the place of the written note.
    """
    before, after = texts_of(memory, change, removed, written)
    if before is None or after is None:
        return False
    return is_same_text(before, after)
