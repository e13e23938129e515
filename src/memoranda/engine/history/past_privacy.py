"""Decide which old changes a caller may see. If a note is private now, its past is private, too.

The ledger records the scope of a file with each step. But the note may have become another agent's
since then: by a later change, a move, an undo, or an edit by hand. So `PastPrivacy` follows the
note from the old change forward, step by step, to the present. The ledger does not have what other
programs did: if a file is no longer where the ledger left it, the note is looked for by its text,
its id and its permalink.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from memoranda.engine.engine import Engine
from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import is_here, read_or_none, source_at
from memoranda.engine.writing import scope_of
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Location, Touched
from memoranda.ledger.history import PlacedStep
from memoranda.note.links import permalink_for
from memoranda.note.names import id_in_file_name
from memoranda.sources.step import StepKind

# The verb of changes in which a removed note becomes a part of another note.
_MERGE = "merge"
# Verbs of changes that bring a removed note back to its place.
_RETURNING = ("undo", "restore")
_STEPS_ON_NOTES = (StepKind.PUT, StepKind.REMOVE, StepKind.MOVE)


@dataclass(frozen=True, slots=True)
class _Cursor:
    """A note at a certain time: after the step at `position` of the change `number`.

    place: where the note was then.
    digest: the SHA-256 of its text then. None if it is not known.
    is_gone: whether this step removed the note. Then only an undo or a restore brings it back.
    former_place: where it was before a folder above it was moved. None if the folder was not moved.
    """

    place: Location
    number: int
    position: int
    digest: str | None
    is_gone: bool = False
    former_place: Location | None = None


class _PresentNote(NamedTuple):
    """A note as it is now.

    scope: which agents may see it.
    digest: the SHA-256 of its text.
    """

    scope: str
    digest: str


class PastPrivacy:
    """Decides which old changes an agent may see, by following each note to the present.

    An agent may not see a change of a note that became another agent's later. The answers are
    remembered, and get wrong when notes change. So each call of a verb makes a new PastPrivacy.
    """

    def __init__(self, session: HomeSession):
        self._session = session
        self._engine = session.engine
        self._history = session.engine.ledger.history
        # The steps in the ledger on a path or a folder above it, by (project, path).
        self._steps: dict[tuple[str, str], Sequence[PlacedStep]] = {}
        # Whether the note is hidden at some time after the cursor.
        self._is_private_by_cursor: dict[_Cursor, bool] = {}
        # In most homes nothing is private, and no note has to be followed.
        has_private_notes = self._engine.index.notes.has_hidden(session.agent)
        self._may_hide = has_private_notes or self._history.has_private_steps()

    def hides(self, change: Change | PlacedStep, touched: Touched) -> bool:
        """Whether the note that a change touched was private to another agent at any time since.

        change: the change, or a step of one.
        touched: the step of the change on this note.
        """
        if not self._session.sees(touched.scope):
            return True
        if not self._may_hide or touched.do not in _STEPS_ON_NOTES:
            return False
        if touched.moves_folder:
            return self._holds_only_hidden(touched)

        # Find the step in the history of its path, and follow the note from there to the present.
        for step in self._steps_at(touched.place):
            if step.number == change.number and step.touched == touched:
                cursors = self._cursors_after(step, touched.place, touched.old)
                return any(self._is_private_after(cursor) for cursor in cursors)
        # The ledger has no such step on this path, so only the present note can tell.
        return self._is_private_now(touched.place)

    def _holds_only_hidden(self, moved: Touched) -> bool:
        """Whether a moved folder has notes, and the caller may see none of them.

        Such a folder does not exist for the caller.
        """
        try:
            scopes = scopes_below(self._engine, moved).values()
        except MemorandaError:
            return False
        return bool(scopes) and not any(self._session.sees(scope) for scope in scopes)

    def _is_private_after(self, start: _Cursor) -> bool:
        """Whether the note at a cursor was hidden from the caller at any time after the cursor.

        A cursor is a note at a certain time. The steps after it are followed to the present, and
        each answer is remembered.
        """
        known_answers = self._is_private_by_cursor
        visited: set[_Cursor] = set()
        waiting = [start]
        while waiting:
            cursor = waiting.pop()
            known_answer = known_answers.get(cursor)
            if cursor in visited or known_answer is False:
                continue
            visited.add(cursor)
            if known_answer or self._is_hidden_next(cursor, waiting):
                known_answers[start] = True
                return True
        # Nothing that follows is hidden, whichever of the visited cursors it is asked for.
        known_answers.update(dict.fromkeys(visited, False))
        return False

    def _is_hidden_next(self, cursor: _Cursor, waiting: list[_Cursor]) -> bool:
        """Whether the next step on the note hides the note from the caller.

        If no step follows, the present note decides.

        cursor: the note at a certain time.
        waiting: the cursors still to look at. If the next step does not hide the note, the cursors
            after this step are added.
        """
        step = self._step_after(cursor)
        if step is None or _brings_another_note(step, cursor.place):
            # A note that a change removed is in the history only.
            if cursor.is_gone:
                return False
            if step is None:
                present = self._present_note(cursor.place)
                if present is not None and not self._session.sees(present.scope):
                    return True
                if present is not None and self._is_at(present, cursor):
                    return False
            # Another program removed or renamed the file, and may have put another one there.
            return self._is_hidden_elsewhere(cursor, waiting)
        if not self._session.sees(step.touched.scope):
            return True
        waiting += self._cursors_after(step, cursor.place, cursor.digest, cursor.former_place)
        return False

    def _is_hidden_elsewhere(self, cursor: _Cursor, waiting: list[_Cursor]) -> bool:
        """Whether a note is hidden from the caller at the place to which another program renamed it.

        cursor: the note at its last known place.
        waiting: the cursors still to look at. If changes found the note at another place, the
            cursors after these changes are added.
        """
        id_start = id_in_file_name(cursor.place.path)
        if any(_is_note(info, cursor, id_start) for info in self._hidden_notes):
            return True
        for step in self._steps_elsewhere(cursor, id_start):
            if not self._session.sees(step.touched.scope):
                return True
            waiting += self._cursors_after(step, step.touched.place, cursor.digest)
        return False

    def _steps_elsewhere(self, cursor: _Cursor, id_start: str | None) -> list[PlacedStep]:
        """Return the later steps that found a note at another place, with its last known text or id.

        cursor: the note at its last known place.
        id_start: the first digits of its id; None if they are not known.
        """
        steps: list[PlacedStep] = []
        if cursor.digest is not None:
            steps += self._history.steps_that_replaced(cursor.digest)
        if id_start is not None:
            steps += self._history.steps_with_id(id_start)
        return [
            step
            for step in steps
            if step.number > cursor.number and step.touched.place != cursor.place
        ]

    @cached_property
    def _hidden_notes(self) -> list[NoteInfo]:
        """The present notes that the caller may not see."""
        return self._engine.index.notes.hidden(self._session.agent)

    def _step_after(self, cursor: _Cursor) -> PlacedStep | None:
        """Return the next step on the file at the cursor's place, or on a folder above the file.

        None means that no step follows.
        """
        steps = self._steps_at(cursor.place)
        cursor_position = (cursor.number, cursor.position)
        next_index = bisect_right(
            steps, cursor_position, key=lambda step: (step.number, step.position)
        )
        for step in steps[next_index:]:
            if step.touched.root == cursor.place.root:
                return step
        return None

    def _steps_at(self, place: Location) -> Sequence[PlacedStep]:
        """Return all steps in the ledger on a path or on a folder above it, the oldest first."""
        key = (place.project, place.path)
        steps = self._steps.get(key)
        if steps is None:
            steps = self._history.placed_steps(place.project, place.path)
            self._steps[key] = steps
        return steps

    def _cursors_after(
        self,
        step: PlacedStep,
        place: Location,
        digest: str | None,
        former_place: Location | None = None,
    ) -> Iterator[_Cursor]:
        """Yield the places where the note at `place` may be after a step.

        After a removal, there may be several: the note may be brought back to its place later, and
        the same change may have written the text to another place.

        digest: the SHA-256 of the note's text before the step; None if it is not known.
        former_place: where the note was before a folder above it was moved to `place`. None if the
            folder was not moved.
        """
        touched = step.touched
        if touched.do == StepKind.MOVE:
            # The step may move a folder above the note.
            path_in_folder = place.path[len(touched.path) :]
            cursor = _Cursor(
                touched.place._replace(path=touched.to + path_in_folder),
                step.number,
                step.position,
                # The move of a folder does not have the texts of its notes.
                digest=touched.new or touched.old or digest,
            )
            # The note may have left the folder before, so its former place counts, too.
            if touched.moves_folder:
                cursor = replace(cursor, former_place=former_place or place)
            yield cursor
            return
        is_gone = touched.do == StepKind.REMOVE
        yield _Cursor(place, step.number, step.position, digest=touched.new, is_gone=is_gone)
        if is_gone:
            yield from self._cursors_elsewhere(step)

    def _cursors_elsewhere(self, removal: PlacedStep) -> Iterator[_Cursor]:
        """Yield the places where the text of a removed note may have gone, in the same change.

        The note may have moved to another path, or may have been merged into another note. The
        history does not say into which one. So after a merge, every note that the change wrote is
        yielded.

        removal: the step that removed the note.
        """
        name = os.path.basename(removal.touched.path)
        for step in self._history.steps_of(removal.number):
            touched = step.touched
            if touched.do != StepKind.PUT:
                continue
            # A rewritten note that moves is put at its new path just before it is removed.
            is_just_before = step.position == removal.position - 1
            has_same_name = os.path.basename(touched.path) == name
            is_same_note = touched.old is None and (is_just_before or has_same_name)
            if is_same_note or removal.verb == _MERGE:
                yield _Cursor(touched.place, step.number, step.position, touched.new)

    def _is_private_now(self, place: Location) -> bool:
        """Whether there is a note at `place` now that the caller may not see."""
        present = self._present_note(place)
        return present is not None and not self._session.sees(present.scope)

    def _present_note(self, place: Location) -> _PresentNote | None:
        """Return what is known of the note that is at `place` now. None if no note is there."""
        if is_here(self._engine, place.project, place.root):
            info = self._engine.index.notes.get(place.project, place.path)
            if info is not None:
                return _PresentNote(info.scope, info.etag)
        try:
            source = source_at(self._engine, place.project, place.root)
            file = read_or_none(source, place.path)
        except MemorandaError:
            return None
        return None if file is None else _PresentNote(scope_of(file.data), file.etag)

    def _is_at(self, present: _PresentNote, cursor: _Cursor) -> bool:
        """Whether the note that is at a cursor's place now is the one at the cursor.

        It may have been edited by hand. It is another note if another program put it there, with a
        text that a change left at another place.
        """
        if present.digest == cursor.digest:
            return True
        return not self._history.was_left_elsewhere(present.digest, cursor.place)


def _is_note(info: NoteInfo, cursor: _Cursor, id_start: str | None) -> bool:
    """Whether a present note is the one at a cursor.

    It has the same text, an id that begins so, or the permalink of the cursor's place in its header.

    id_start: the first digits of the id; None if the note has none.
    """
    if info.etag == cursor.digest:
        return True
    if id_start is not None and info.id.startswith(id_start):
        return True
    # A permalink that was made from the path stays in the header when the file is renamed.
    places = [cursor.place]
    if cursor.former_place is not None:
        places.append(cursor.former_place)
    permalinks = [permalink_for(place.project, place.path) for place in places]
    return info.header.get("permalink") in permalinks


def _brings_another_note(step: PlacedStep, place: Location) -> bool:
    """Whether a step puts another note at `place`, so that the earlier note is not there any more."""
    touched = step.touched
    if touched.do == StepKind.MOVE:
        # A file moved to this path, or a folder moved to a folder above it.
        return f"{place.path}/".startswith(f"{touched.to}/")
    # An undo or a restore creates the file, too, but brings back the earlier note.
    return touched.makes_file and step.verb not in _RETURNING


def scopes_below(engine: Engine, moved: Touched) -> dict[str, str]:
    """Return the present scope of each note in a moved folder, by the note's path.

    moved: the step that moved the folder.

    Raises StorageError if the folder is out of reach.
    """
    if is_here(engine, moved.project, moved.root):
        infos = engine.index.notes.below(moved.project, moved.to)
        return {info.path: info.scope for info in infos}
    source = source_at(engine, moved.project, moved.root)
    paths = source.list(moved.to).stamps
    return {path: scope_of(source.read(path).data) for path in paths}
