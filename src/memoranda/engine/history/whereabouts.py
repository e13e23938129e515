"""Find out where a note of an older change is now, and where a present note was before.

In between, the note may have been moved, sorted into a category, archived, or merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from memoranda.engine.engine import verb
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Touched
from memoranda.note import frontmatter
from memoranda.note.model import MEMORY_PROJECTS
from memoranda.note.names import id_in_file_name
from memoranda.sources.step import StepKind

# A note is followed through this many places at most, because moves may go round in a circle.
_MOST_MOVES = 20

Place = tuple[str, str]
"""A project, and a path in it."""


class PlacedChange(NamedTuple):
    """A change of a note.

    place: where the note was after the change.
    place_before: where the note was before, if the change took it to `place`. Otherwise None.
    """

    change: Change
    place: Place
    place_before: Place | None


@verb
def history_through_moves(
    memory: HistoryVerbs, project: str, path: str, *, limit: int = 0
) -> list[PlacedChange]:
    """Return the changes of the note at a place, also those from before it came to this place.

    The newest comes first. A note comes to a place by a move, a new category, or the archive.

    project, path: the place.
    limit: the number of changes; 0 means all.
    """
    return list(islice(_changes_back(memory, (project, path), limit), limit or None))


def _changes_back(memory: HistoryVerbs, place: Place, limit: int) -> Iterator[PlacedChange]:
    """Yield the changes of the note at a place, the newest first, back through its moves.

    limit: how many changes are needed at most; 0 means all.
    """
    before: int | None = None
    for _ in range(_MOST_MOVES):
        former_place: Place | None = None
        for change in memory.log("/".join(place), limit=limit, before=before):
            former_place = _came_from(memory, change, place)
            yield PlacedChange(change, place, former_place)
            if former_place is not None:
                # Go on with the older changes of the former place.
                before = change.number
                break
        if former_place is None:
            return
        place = former_place


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
    for _ in range(_MOST_MOVES):
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
    """Return where the last change of a place took the note that was there.

    None if no change took the note away.

    only_same: whether to leave out merges, which make the note a part of another note.
    """
    with suppress(MemorandaError):
        for change in memory.log("/".join(place), limit=0):
            next_place = _moved_by(change, place)
            if next_place is not None:
                return next_place

            # The change may have removed the note and written its text elsewhere.
            next_place = _left_by(change, place)
            if next_place is None:
                continue
            if only_same and not _is_one_note(memory, change, place, next_place):
                return None
            return next_place
    return None


def _moved_by(change: Change, place: Place) -> Place | None:
    """Return where a change moved the file of `place`. None if it did not move it."""
    for removed_position, written_position in change.moves_by_rewriting().items():
        if _place_of(change.files[removed_position]) == place:
            return _place_of(change.files[written_position])
    project, path = place
    for touched in change.files:
        if touched.do != StepKind.MOVE or touched.project != project:
            continue
        new_path = touched.path_after_move(path)
        if new_path is not None:
            return project, new_path
    return None


def _place_of(touched: Touched) -> Place:
    """Return the project and path of a step."""
    return touched.project, touched.path


def _came_from(memory: HistoryVerbs, change: Change, place: Place) -> Place | None:
    """Return where a note was before a change brought it to `place`.

    None if the note was at `place` before, too.
    """
    for removed_position, written_position in change.moves_by_rewriting().items():
        if _place_of(change.files[written_position]) == place:
            return _place_of(change.files[removed_position])

    removed: list[Place] = []
    # Whether the change wrote a file at `place` where no file was.
    is_new = False
    for touched in change.files:
        if touched.do == StepKind.MOVE:
            old_place = _before_move(touched, place)
            if old_place is not None:
                return old_place
        elif touched.do == StepKind.REMOVE:
            removed.append((touched.project, touched.path))
        elif touched.do == StepKind.PUT and (touched.project, touched.path) == place:
            is_new = is_new or touched.old is None

    if not is_new:
        return None
    # A change may move a note without a step MOVE: it removes the note at its old place, and writes
    # it at `place`.
    for old_place in removed:
        if _is_same_note(memory, change, old_place, place):
            return old_place
    return None


def _before_move(touched: Touched, place: Place) -> Place | None:
    """Return where a note was before a step moved it to `place`, alone or with its folder.

    touched: the step.
    place: the project and path of the note after the step.

    None if the step did not move a note there.
    """
    project, path = place
    if touched.project != project:
        return None
    old_path = touched.path_before_move(path)
    return None if old_path is None else (project, old_path)


def _is_same_note(memory: HistoryVerbs, change: Change, old: Place, new: Place) -> bool:
    """Whether a change moved a note from `old` to `new`, also into the archive or out of it.

    The change removed a note at `old` and wrote a note at `new`. They are one note if they have the
    same id, or texts that are equal below the header.
    """
    old_id = id_in_file_name(old[1])
    new_id = id_in_file_name(new[1])
    if old_id and new_id:
        return old_id == new_id
    before, after = _texts_of(memory, change, old, new)
    if before is None or after is None:
        return False
    # In the archive, the header of a note gets further keys. So it is enough if the bodies are equal.
    return _is_same_text(before, after) or _body_of(before) == _body_of(after)


def _body_of(text: str) -> str:
    """Return the text of a note below its header, without blanks around it."""
    return text[frontmatter.split(text).body_at :].strip()


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
    before, after = _texts_of(memory, change, removed, written)
    if before is None or after is None:
        return False
    return _is_same_text(before, after)


def _texts_of(
    memory: HistoryVerbs, change: Change, removed: Place, written: Place
) -> tuple[str | None, str | None]:
    """Return the text that a change removed at one place, and the text that it wrote at another.

    A text is None if the history does not have it.

    removed: the place of the removed text.
    written: the place of the written text.
    """
    before: str | None = None
    after: str | None = None
    for revision in memory.revisions_of([change])[change.number]:
        place = (revision.touched.project, revision.touched.path)
        if place == removed:
            before = revision.before
        elif place == written:
            after = revision.after
    return before, after


def _is_same_text(before: str, after: str) -> bool:
    """Whether two texts belong to the same note, because they are equal or have the same id."""
    identifier = _id_in(before)
    return before == after or (identifier is not None and identifier == _id_in(after))


def _id_in(text: str) -> str | None:
    """Return the id in the header of a note. None if the header has no id."""
    with suppress(ValueError):
        identifier = frontmatter.header_of(text).get("id")
        return identifier if isinstance(identifier, str) else None
    return None
