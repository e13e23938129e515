"""Follow a note back through the places where it was before.

Moves, new categories and the archive are changes in the ledger. A rename by another program is not. It
is recognized where a file has the last text that the ledger knows of another place, or its id, and
that place lost its file without a change.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import NamedTuple

from memoranda.engine.engine import verb
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.transaction import read_or_none, root_of, source_at
from memoranda.errors import MemorandaError
from memoranda.ledger.change import Change, Location, Touched
from memoranda.ledger.history import PlacedStep
from memoranda.note import frontmatter
from memoranda.note.names import ID_DIGITS, id_in_file_name
from memoranda.sources.step import StepKind

# A note is followed through this many places at most, because moves may go round in a circle.
MOST_MOVES = 20
# A text that was left more often is not followed. A thousand notes may have had it.
MOST_STEPS_OF_TEXT = 50

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


class _End(NamedTuple):
    """The end of a note's time at a former place.

    place: the former place.
    before: all changes of the note at this place have lower numbers.
    """

    place: Location
    before: int


class _Text(NamedTuple):
    """The text that a note had before some changes.

    digest: the SHA-256 of the text.
    before: the number of the first of these changes. For the present text, it is above all numbers.
    step: the first step of these changes on the note. None for the present text.
    note_id: the id in the present text. None if it has none, and for an older text, whose id is
        read from the history when it is needed.
    """

    digest: str
    before: int
    step: Touched | None
    note_id: str | None = None


@verb
def history_through_moves(
    memory: HistoryVerbs, project: str, path: str, *, limit: int = 0
) -> list[PlacedChange]:
    """Return the changes of the note at a place, also those from before it came to this place.

    The newest comes first. A note comes to a place by a move, a new category, or the archive, or
    because another program renamed its file.

    project, path: the place.
    limit: the number of changes; 0 means all.
    """
    return history_of_note(memory, f"{project}/{path}", limit=limit)


@verb
def history_of_note(memory: HistoryVerbs, ref: str, *, limit: int = 0) -> list[PlacedChange]:
    """Return the changes of a note, also those from before it came to its present place.

    The newest comes first.

    ref: the note, as `HistoryVerbs.locate` reads it. It may be gone.
    limit: the number of changes; 0 means all.

    Raises the errors of `locate`.
    """
    changes = changes_of_note(memory, memory.locate(ref))
    return list(islice(changes, limit or None))


def changes_of_note(memory: HistoryVerbs, location: Location) -> Iterator[PlacedChange]:
    """Yield the changes of the note at a place that the caller may see, the newest first.

    The changes from before the note came to this place are included.
    """
    # Only changes with lower numbers are still to come. None for all.
    before: int | None = None
    # The text that the note had before the changes that were yielded. None if it is not known.
    text: _Text | None = _present_text(memory, location)
    for _ in range(MOST_MOVES):
        place = place_of(location)
        # Where the note was before it came to this place. None if it was nowhere else.
        end: _End | None = None
        for change in memory.changes_at(location, before=before):
            # After this change, another program edited the note, or brought it to this place.
            if text is not None and text.digest != digest_after(change, location):
                end = _before_rename(memory, location, text, earlier_stay_before=change.number)
                if end is not None:
                    # It was brought here, so this change is about the note that was here before.
                    break
            former_place = _came_from(memory, change, place)
            yield PlacedChange(change, place, former_place)
            text = _text_before(change, location, former_place, text)
            if former_place is not None:
                end = _before_move_of(memory, former_place, change)
                break
        else:
            # No change at this place says where the note came from. Another program may have
            # brought it before the first of them.
            end = _before_rename(memory, location, text)
        if end is None:
            return
        # Go on with the older changes of the former place.
        location, before = end


def changes_about(
    memory: HistoryVerbs, location: Location, *, before: int | None = None
) -> Iterator[Change]:
    """Yield the changes of the note at a place, and of other notes that were at the place.

    The newest comes first.

    before: only changes with lower numbers; None for all.
    """
    changes_of_present_note = (
        placed.change
        for placed in changes_of_note(memory, location)
        if before is None or placed.change.number < before
    )
    changes_here = memory.changes_at(location, before=before)
    last_number: int | None = None
    for change in heapq.merge(
        changes_of_present_note, changes_here, key=lambda change: -change.number
    ):
        # Most changes are in both.
        if change.number != last_number:
            yield change
        last_number = change.number


class Rename(NamedTuple):
    """A rename of a note by another program.

    new, old: the place of the note after the rename, and before it.
    since: the first change of the note at the new place. None if it was not changed there.
    before: all changes of the note at the old place have lower numbers.
    """

    new: Location
    old: Location
    since: int | None
    before: int


def places_to_follow(memory: HistoryVerbs, locations: Iterable[Location]) -> list[Location]:
    """Return the places to which, or from which, another program may have taken a note.

    All others have an unbroken chain of changes from a new file to the present text. To find them
    reads only the steps on each place. To follow a note reads whole changes, and one change may have
    made thousands of notes.
    """
    history = memory.engine.ledger.history
    # One change may have made thousands of notes, so its answer is kept.
    has_removal = cache(history.has_removal)

    def has_unbroken_chain(location: Location) -> bool:
        """Whether each change at a place found the text that the one before it left."""
        digest_left: str | None = None
        for step in history.placed_steps(location.project, location.path):
            touched = step.touched
            if touched.do != StepKind.PUT or touched.old != digest_left:
                return False
            # A change that also removed a file may have brought its note here.
            if touched.makes_file and has_removal(step.number):
                return False
            digest_left = touched.new
        present_text = _present_text(memory, location)
        return present_text is not None and present_text.digest == digest_left

    return [location for location in locations if not has_unbroken_chain(location)]


def renames_by_others(memory: HistoryVerbs, location: Location) -> list[Rename]:
    """Return how other programs renamed the note that is at a place, the latest rename first."""
    renames: list[Rename] = []
    # Where the next newer change found the note, and the number of that change.
    place_before_newer = place_of(location)
    newer_number: int | None = None
    for placed in changes_of_note(memory, location):
        number = placed.change.number
        # This change left the note at another place. So another program renamed it in between.
        if placed.place != place_before_newer:
            new = _location_of(memory, place_before_newer)
            old = _location_of(memory, placed.place)
            if new is not None and old is not None:
                renames.append(Rename(new, old, since=newer_number, before=number + 1))
        place_before_newer = placed.place_before or placed.place
        newer_number = number
    return renames


class Departure(NamedTuple):
    """The time at which another program took a note away from a place.

    place: the place.
    before: all changes of this note at the place have lower numbers. It is the number of the change
        that wrote the next note there.
    """

    place: Location
    before: int


def departures(memory: HistoryVerbs, location: Location) -> list[Departure]:
    """Return when other programs took notes away from a place that are elsewhere now.

    The latest departure comes first.
    """
    departures_here: list[Departure] = []
    newer_change: Change | None = None
    for change in memory.changes_at(location):
        if newer_change is not None:
            writes_next_note = any(
                step.makes_file and step.place == location for step in newer_change.files
            )
            departure = Departure(location, newer_change.number)
            if writes_next_note and _is_known_elsewhere(memory, departure, last_change=change):
                departures_here.append(departure)
        newer_change = change
    return departures_here


def _is_known_elsewhere(memory: HistoryVerbs, departure: Departure, last_change: Change) -> bool:
    """Whether the note that left a place is known at the place to which another program took it.

    departure: the place, and when the note left it, if it did.
    last_change: the last change of the note at this place.
    """
    digest = digest_after(last_change, departure.place)
    if digest is None:
        return False
    # The note is or was where its last text from here is, or where a change replaced this text.
    steps = islice(memory.engine.ledger.history.steps_that_replaced(digest), MOST_STEPS_OF_TEXT)
    new_locations = {step.touched.place for step in steps}
    notes_with_text = memory.index.notes.with_text(digest, memory.agent)
    for info in notes_with_text[:MOST_STEPS_OF_TEXT]:
        new_location = _location_of(memory, (info.project, info.path))
        if new_location is not None:
            new_locations.add(new_location)
    # It came from here if its former place is this one, which it left at this time. It may also be
    # back at the same place.
    ends_before_rename = [
        end_before_rename(memory, new_location, digest, earlier_stay_before=departure.before)
        for new_location in new_locations
    ]
    return _End(departure.place, departure.before) in ends_before_rename


def digest_after(change: Change, location: Location) -> str | None:
    """Return the SHA-256 of the text that a change left at a place. None if it left none there."""
    for touched in change.files:
        if touched.place_after != location:
            continue
        if touched.do == StepKind.PUT:
            return touched.new
        if touched.do == StepKind.MOVE:
            # Without a new text, the file was moved as it was.
            return touched.new or touched.old
    return None


def _location_of(memory: HistoryVerbs, place: Place) -> Location | None:
    """Return a place with the folder of its project. None if the project is not open."""
    project, path = place
    with suppress(MemorandaError):
        return Location(project, path, root_of(memory.engine, project))
    return None


def _before_move_of(memory: HistoryVerbs, former_place: Place, change: Change) -> _End | None:
    """Return where a note was before a change moved it. None if that project is not open.

    former_place: the place before the change.
    """
    location = _location_of(memory, former_place)
    return None if location is None else _End(location, change.number)


def _present_text(memory: HistoryVerbs, location: Location) -> _Text | None:
    """Return the text of the file at a place. None if no file is there."""
    with suppress(MemorandaError):
        source = source_at(memory.engine, location.project, location.root)
        file = source.read(location.path)
        note = memory.engine.parse(location.project, location.path, file)
        note_id = note.id if note is not None and note.own_id else None
        above_all_changes = memory.engine.ledger.history.last + 1
        return _Text(file.etag, before=above_all_changes, step=None, note_id=note_id)
    return None


def _text_before(
    change: Change, location: Location, former_place: Place | None, text: _Text | None
) -> _Text | None:
    """Return the text of a note before a change. None if the change wrote a new file.

    location: where the note was after the change.
    former_place: where it was before, if the change moved it.
    text: its text after the change; None if that is not known.
    """
    places = {place_of(location), former_place}
    for step in change.files:
        if place_of(step) in places and step.old is not None:
            return _Text(step.old, before=change.number, step=step)
    # The move of a folder does not have the texts of its notes, which stay the same.
    if former_place is None or text is None:
        return None
    return text._replace(before=change.number)


def _before_rename(
    memory: HistoryVerbs, location: Location, text: _Text | None, earlier_stay_before: int = 0
) -> _End | None:
    """Return where a note was before another program renamed its file.

    location: where the note was after the rename.
    text: its text then; None if it is not known.
    earlier_stay_before: see `end_before_rename`.

    None if no other program renamed the file, or if it is not certain.
    """
    if text is None:
        return None
    end = end_before_rename(
        memory,
        location,
        text.digest,
        before=text.before,
        earlier_stay_before=earlier_stay_before,
    )
    if end is not None:
        return end
    # Another program may have edited the text as well. Then only the id tells which note it is.
    note_id = text.note_id
    if text.step is not None:
        note_id = memory.id_in_text(text.step)
    return _by_id(memory, location, note_id, text.before)


def end_before_rename(
    memory: HistoryVerbs,
    location: Location,
    digest: str,
    before: int | None = None,
    earlier_stay_before: int = 0,
) -> _End | None:
    """Return where a text was before another program took its file to `location`.

    digest: the SHA-256 of the text.
    before: only changes below this number are looked at; None for all.
    earlier_stay_before: a note may leave `location` and come back. So an earlier stay at this place
        counts as well, if it ended before the change with this number. 0 if no stay counts.

    None if the text was at no other place, or at several.
    """
    steps = [
        step
        for step in memory.engine.ledger.history.steps_that_left(digest)
        if before is None or step.number < before
    ]
    if len(steps) > MOST_STEPS_OF_TEXT:
        return None
    ends = [
        end
        for end in _ends(memory, steps, before)
        if end.place != location or end.before <= earlier_stay_before
    ]
    if len(ends) > 1:
        left_places = _places_left_again(memory, steps)
        ends = [end for end in ends if end.place not in left_places]
    # Several places may have lost this text, and nothing says which of them this one is.
    return ends[0] if len(ends) == 1 else None


def _places_left_again(memory: HistoryVerbs, steps: Sequence[PlacedStep]) -> set[Location]:
    """Return the places from which another program took a note to a place where we moved it on.

    After a rename by another program, a move of ours may have taken the same text further, and
    another program may have renamed it again. Only its last place counts then.

    steps: the steps that left the text somewhere, the newest first.
    """
    left_places: set[Location] = set()
    moves = [step for step in reversed(steps) if step.touched.do == StepKind.MOVE]
    for move in moves[:MOST_MOVES]:
        earlier_steps = [step for step in steps if step.number < move.number]
        ends = _ends(memory, earlier_steps, before=move.number)
        # The places that had lost the text when this change moved it. If it is only one, the moved
        # text came from there.
        lost_places = {end.place for end in ends} - left_places - {move.touched.place}
        if len(lost_places) == 1:
            left_places |= lost_places
    return left_places


def _by_id(
    memory: HistoryVerbs, location: Location, note_id: str | None, before: int
) -> _End | None:
    """Return where a memory was before another program took its file to `location`.

    note_id: the id in the header of the note. None if it has none.
    before: only changes below this number are looked at.

    None if the memory was at no other place, or at several.
    """
    if note_id is None:
        return None
    steps: list[PlacedStep] = []
    for step in memory.engine.ledger.history.steps_with_id(note_id[:ID_DIGITS]):
        if step.number >= before or step.touched.do != StepKind.PUT:
            continue
        # Two ids may begin alike. A text that is not kept cannot tell, so the beginning counts.
        id_in_text = memory.id_in_text(step.touched)
        if id_in_text is None or id_in_text == note_id:
            steps.append(step)
    ends = [end for end in _ends(memory, steps, before) if end.place != location]
    return ends[0] if len(ends) == 1 else None


def _ends(memory: HistoryVerbs, steps: Iterable[PlacedStep], before: int | None) -> list[_End]:
    """Return where the notes that some steps left at a place disappeared. Each place comes once.

    before: they disappeared before the change with this number. None if that may be just now.
    """
    ends: dict[Location, _End] = {}
    for step in steps:
        touched = step.touched
        digest_left = touched.new or touched.old
        end = _end_of(memory, touched.place_after, step.number, digest_left, before)
        if end is not None:
            ends.setdefault(end.place, end)
    return list(ends.values())


def _end_of(
    memory: HistoryVerbs, place: Location, number: int, digest: str | None, before: int | None
) -> _End | None:
    """Return where a note disappeared without a change. None if it did not, or if it is not known.

    The note is followed from a change to later ones, until a step shows whether it is still there.

    place: where the note was after the change `number`.
    digest: the SHA-256 of its text then.
    before: the note disappeared before the change with this number. None if that may be just now.
    """
    history = memory.engine.ledger.history
    # Where the note was before that change, and the number that its changes there are below.
    end = _End(place, number + 1)
    for _ in range(MOST_MOVES):
        steps = history.placed_steps(place.project, place.path)
        next_step = next((step for step in steps if step.number > number), None)
        if next_step is None:
            return None if _is_still_at(memory, place, number, digest) else end
        touched = next_step.touched
        number = next_step.number
        is_late = before is not None and number >= before
        if _brings_other_note(touched, place):
            # The file of this note was gone by then.
            return end if is_late else end._replace(before=number)
        if touched.old is not None and touched.old != digest:
            is_of_other_note = history.was_left_elsewhere(touched.old, place)
            if is_of_other_note:
                # Another program had put another note there.
                return end

        # A step that rewrites or removes the file found the note there, and so did a late move of
        # the file: no other program had taken it away. An earlier move takes the note along. The
        # move of a folder does not show whether the note was still in it, so it is followed always.
        new_path = touched.path_after_move(place.path)
        is_followed = touched.do == StepKind.MOVE and (touched.moves_folder or not is_late)
        if new_path is None or not is_followed:
            return None
        place = place._replace(path=new_path)
        if not is_late:
            end = _End(place, number + 1)
    # The moves may go round in a circle.
    return None


def _brings_other_note(touched: Touched, place: Location) -> bool:
    """Whether a step wrote a new file at a place, or moved a file or a folder with it there."""
    is_move = touched.do == StepKind.MOVE
    return touched.makes_file or (is_move and touched.path_before_move(place.path) is not None)


def _is_still_at(memory: HistoryVerbs, place: Location, number: int, digest: str | None) -> bool:
    """Whether a note is still at its place. True also if the folder of its project is out of reach.

    It is not if another program put there the text that a change left at another place, or that was
    at this place before another note came.

    number: the last change at the place.
    digest: the SHA-256 of the text that the change left.
    """
    try:
        source = source_at(memory.engine, place.project, place.root)
    except MemorandaError:
        return True
    if not os.path.isdir(source.root):
        return True
    file = read_or_none(source, place.path)
    if file is None:
        # Something that cannot be read as a file may be the note.
        return os.path.lexists(os.path.join(source.root, place.path))
    if file.etag == digest:
        return True
    history = memory.engine.ledger.history
    if history.was_left_elsewhere(file.etag, place):
        return False
    # The file has another text. If an earlier note with this text disappeared from the place, it is
    # back. Otherwise somebody has edited this note.
    has_earlier_note_returned = any(
        _end_of(memory, place, step.number, file.etag, before=None) is not None
        for step in history.steps_that_left(file.etag)
        if step.touched.place == place and step.number < number
    )
    return not has_earlier_note_returned


def place_of(item: Touched | Location) -> Place:
    """Return the project and path of a step or location, without the folder of the project."""
    return item.project, item.path


def moved_by(change: Change, place: Place) -> Place | None:
    """Return where a change moved the file of `place`. None if it did not move it."""
    for removed, written in change.pairs_moved_by_rewriting():
        if place_of(removed) == place:
            return place_of(written)
    project, path = place
    for touched in change.files:
        if touched.do != StepKind.MOVE or touched.project != project:
            continue
        new_path = touched.path_after_move(path)
        if new_path is not None:
            return project, new_path
    return None


def _came_from(memory: HistoryVerbs, change: Change, place: Place) -> Place | None:
    """Return where a note was before a change brought it to `place`.

    None if the note was at `place` before, too.
    """
    for removed, written in change.pairs_moved_by_rewriting():
        if place_of(written) == place:
            return place_of(removed)

    removed_places: list[Place] = []
    has_made_file = False
    for touched in change.files:
        if touched.do == StepKind.MOVE:
            old_place = _before_move(touched, place)
            if old_place is not None:
                return old_place
        elif touched.do == StepKind.REMOVE:
            removed_places.append(place_of(touched))
        elif touched.makes_file and place_of(touched) == place:
            has_made_file = True

    # A note whose file was there before the change did not come from elsewhere.
    if not has_made_file:
        return None
    # A move may be recorded in yet another way, if the file got another name. The texts tell.
    for old_place in removed_places:
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
    before, after = texts_of(memory, change, old, new)
    if before is None or after is None:
        return False
    # In the archive, the header of a note gets further keys. So it is enough if the bodies are equal.
    return is_same_text(before, after) or _body_of(before) == _body_of(after)


def _body_of(text: str) -> str:
    """Return the text of a note below its header, without blanks around it."""
    return text[frontmatter.split(text).body_at :].strip()


def texts_of(
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
        place = place_of(revision.touched)
        if place == removed:
            before = revision.before
        elif place == written:
            after = revision.after
    return before, after


def is_same_text(before: str, after: str) -> bool:
    """Whether two texts belong to the same note, because they are equal or have the same id."""
    if before == after:
        return True
    id_before = _id_in(before)
    return id_before is not None and id_before == _id_in(after)


def _id_in(text: str) -> str | None:
    """Return the id in the header of a note. None if the header has no id."""
    with suppress(ValueError):
        identifier = frontmatter.header_of(text).get("id")
        return identifier if isinstance(identifier, str) else None
    return None
