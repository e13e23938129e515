"""Which changes of the past a caller may see: a note that became private is private in its past.

A change names the scope a file had then. The same note may have become another agent's since, by a
later change, a move, an undo, or by hand. So the note is followed forward, from the change to now.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoranda.engine.engine import Engine
from memoranda.engine.session import HomeSession
from memoranda.engine.transaction import Location, is_here, read_or_none, source_at
from memoranda.engine.writing import scope_of
from memoranda.errors import MemorandaError
from memoranda.ledger.change import Change, Touched
from memoranda.ledger.history import PlacedStep
from memoranda.sources.step import StepKind

# The verb of changes whose removed notes live on in the note they write.
_MERGE = "merge"
# Verbs of changes that bring a removed note back to its place.
_RETURNING = ("undo", "restore")
_OF_NOTES = (StepKind.PUT, StepKind.REMOVE, StepKind.MOVE)


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The place of a note after the step at `position` of change `number`.

    is_gone: whether that step removed the note. Then only an undo or a restore brings it back.
    """

    place: Location
    number: int
    position: int
    is_gone: bool = False


class PastPrivacy:
    """Follows notes from old changes to now, for one caller who is not the owner.

    What it finds out is kept, so it is good for one call of a verb only: the notes change.
    """

    def __init__(self, session: HomeSession):
        self._session = session
        self._engine = session.engine
        self._history = session.engine.ledger.history
        self._steps: dict[tuple[str, str], Sequence[PlacedStep]] = {}
        self._known: dict[_Cursor, bool] = {}
        is_any_now = self._engine.index.notes.has_hidden(session.agent)
        self._is_any = is_any_now or self._history.has_private_steps()

    def hides(self, change: Change | PlacedStep, touched: Touched) -> bool:
        """Whether the note that `change` touched is, or was since, another agent's."""
        if not self._session.sees(touched.scope):
            return True
        if not self._is_any or touched.do not in _OF_NOTES:
            return False
        if touched.do == StepKind.MOVE and touched.old is None:
            return self._holds_only_hidden(touched)
        place = (touched.project, touched.path, touched.root)
        for step in self._at(place):
            if step.number == change.number and step.touched == touched:
                return any(self._is_private_after(cursor) for cursor in self._after(step, place))
        # The change is not recorded under this place: only what is there now is known
        return self._is_private_now(place)

    def _holds_only_hidden(self, moved: Touched) -> bool:
        """Whether a moved folder holds only notes that the caller may not see.

        Such a folder does not exist for the caller.
        """
        try:
            scopes = scopes_below(self._engine, moved).values()
        except MemorandaError:
            return False
        return bool(scopes) and not any(map(self._session.sees, scopes))

    def _is_private_after(self, start: _Cursor) -> bool:
        """Whether the note was hidden from the caller at any time since."""
        visited: set[_Cursor] = set()
        waiting = [start]
        while waiting:
            cursor = waiting.pop()
            if cursor in visited or self._known.get(cursor) is False:
                continue
            visited.add(cursor)
            if self._known.get(cursor) or self._is_hidden_next(cursor, waiting):
                self._known[start] = True
                return True
        self._known.update(dict.fromkeys(visited, False))
        return False

    def _is_hidden_next(self, cursor: _Cursor, waiting: list[_Cursor]) -> bool:
        """Whether the next step on the note hides it. After its last step, whether its present
        place does.

        The steps that follow are added to `waiting`.
        """
        step = self._step_after(cursor)
        if step is None:
            return not cursor.is_gone and self._is_private_now(cursor.place)
        if _begins_another(step, cursor.place):
            return False
        if not self._session.sees(step.touched.scope):
            return True
        waiting += self._after(step, cursor.place)
        return False

    def _step_after(self, cursor: _Cursor) -> PlacedStep | None:
        """The first step after the cursor on the file at its place, or on a folder above it.

        None if none follows.
        """
        steps = self._at(cursor.place)
        next_index = bisect_right(
            steps, (cursor.number, cursor.position), key=lambda step: (step.number, step.position)
        )
        root = cursor.place[2]
        return next((step for step in steps[next_index:] if step.touched.root == root), None)

    def _at(self, place: Location) -> Sequence[PlacedStep]:
        key = place[:2]
        steps = self._steps.get(key)
        if steps is None:
            steps = self._history.placed_steps(*key)
            self._steps[key] = steps
        return steps

    def _after(self, step: PlacedStep, place: Location) -> Iterator[_Cursor]:
        """Where the note at `place` is after a step on it."""
        touched = step.touched
        if touched.do == StepKind.MOVE:
            path = touched.to + place[1][len(touched.path) :]
            yield _Cursor((touched.project, path, touched.root), step.number, step.position)
            return
        is_gone = touched.do == StepKind.REMOVE
        yield _Cursor(place, step.number, step.position, is_gone)
        if is_gone:
            yield from self._elsewhere(step)

    def _elsewhere(self, removal: PlacedStep) -> Iterator[_Cursor]:
        """Where the change that removed a note wrote it: under another path, or into another note."""
        name = os.path.basename(removal.touched.path)
        for step in self._history.steps_of(removal.number):
            touched = step.touched
            if touched.do != StepKind.PUT:
                continue
            is_new = touched.old is None
            is_next_to_it = step.position == removal.position - 1
            is_it = is_new and (is_next_to_it or os.path.basename(touched.path) == name)
            if is_it or removal.verb == _MERGE:
                place = (touched.project, touched.path, touched.root)
                yield _Cursor(place, step.number, step.position)

    def _is_private_now(self, place: Location) -> bool:
        """Whether a note the caller does not see is at `place` now."""
        project, path, root = place
        if is_here(self._engine, project, root):
            info = self._engine.index.notes.get(project, path)
            if info is not None:
                return not self._session.sees(info.scope)
        try:
            file = read_or_none(source_at(self._engine, project, root), path)
        except MemorandaError:
            return False
        return file is not None and not self._session.sees(scope_of(file.data))


def _begins_another(step: PlacedStep, place: Location) -> bool:
    """Whether this step brings another note to `place`, so that the earlier note ended there."""
    touched = step.touched
    if touched.do == StepKind.MOVE:
        return f"{place[1]}/".startswith(f"{touched.to}/")
    return touched.do == StepKind.PUT and touched.old is None and step.verb not in _RETURNING


def scopes_below(engine: Engine, moved: Touched) -> dict[str, str]:
    """The present scopes of the notes in a folder that moved, by path.

    Raises StorageError if the folder is out of reach.
    """
    if is_here(engine, moved.project, moved.root):
        infos = engine.index.notes.below(moved.project, moved.to)
        return {info.path: info.scope for info in infos}
    source = source_at(engine, moved.project, moved.root)
    paths = source.list(moved.to).stamps
    return {path: scope_of(source.read(path).data) for path in paths}
