"""Finding the files that an agent made, wherever they are now."""

from __future__ import annotations

import posixpath
from bisect import bisect_right

from memoranda.engine.engine import Engine
from memoranda.engine.transaction import Location
from memoranda.ledger.change import Change, Touched
from memoranda.ledger.history import ABOVE_ALL_NUMBERS, History
from memoranda.sources.step import StepKind


def made_by(engine: Engine, agent: str) -> list[Location]:
    """Return where the files that an agent made are now, or were last if they are gone.

    If a file was removed and another file was made at its place, the other file does not count.
    When a memory changes its category, it is removed and made again under the same name. Such a
    memory still counts as made by the agent that made it first.
    """
    following = _Following(engine)
    places: dict[Location, None] = {}
    for step in engine.ledger.history.files_made_by(agent):
        if step.touched.project not in engine.sources:
            continue
        if following.came_from_elsewhere(step.number, step.touched):
            continue
        place = following.last_place(step.number, step.touched)
        if place is not None:
            places[place] = None
    return list(places)


class _Following:
    """Follows files through the changes that came after the change that made them."""

    def __init__(self, engine: Engine):
        self._sources = engine.sources
        self._history: History = engine.ledger.history
        # By project, the sorted numbers of the changes that moved a folder.
        self._folder_moves: dict[str, list[int]] = {}

    def came_from_elsewhere(self, number: int, step: Touched) -> bool:
        """Whether a change only moved a file from another place, where an earlier change made it.

        number: the number of the change.
        step: the step of the change that made the file.
        """
        change = self._history.change(number)
        if change is None:
            return False
        name = posixpath.basename(step.path)
        for file in change.files:
            is_partner = file.do == StepKind.REMOVE and posixpath.basename(file.path) == name
            if is_partner and self._history.was_made(file.project, file.path, number):
                return True
        return False

    def last_place(self, number: int, step: Touched) -> Location | None:
        """Return the place where a file is now, or where it was last.

        number: the number of the change that made the file.
        step: the step of this change that made the file.

        None means that another file was made at the place of the file since.
        """
        place = (step.project, step.path, step.root)
        while True:
            change = self._next_change(number, place)
            if change is None:
                return place
            next_place = self._place_after(change, place)
            if next_place is None:
                return None
            place = next_place
            number = change.number

    def _next_change(self, number: int, place: Location) -> Change | None:
        """Return the next change after `number` that may affect the file at a place.

        Such a change moved, removed or created the file, or moved a folder above it. None if the
        history has no such change.
        """
        project, path, _ = place
        if project not in self._folder_moves:
            folder_moves = self._history.numbers_of_folder_moves(project, ABOVE_ALL_NUMBERS)
            self._folder_moves[project] = sorted(folder_moves)
        move_numbers = self._folder_moves[project]
        candidates: list[int] = []
        position = bisect_right(move_numbers, number)
        if position < len(move_numbers):
            candidates.append(move_numbers[position])
        departure = self._history.next_departure(project, path, number)
        if departure is not None:
            candidates.append(departure)
        if not candidates:
            return None
        return self._history.change(min(candidates))

    def _place_after(self, change: Change, place: Location) -> Location | None:
        """Return the place of a file after a change.

        None means that the change made another file at its place.
        """
        # The step that made the file again, after a step of the same change had removed it.
        arrival: Touched | None = None
        for step in change.files:
            project, path, root = place
            # A step in another project cannot affect the file.
            if (step.project, step.root) != (project, root):
                continue
            if step.do == StepKind.MOVE:
                place = _place_after_move(step, place)
                continue
            is_at_place = step.path == path
            if not is_at_place:
                continue
            if step.do == StepKind.REMOVE:
                # A memory whose category changes is removed and made again.
                arrival = self._made_again(change, step)
                if arrival is not None:
                    place = (arrival.project, arrival.path, arrival.root)
                continue
            makes_another_file = _makes_file(step) and step is not arrival
            if makes_another_file:
                return None
        return place

    def _made_again(self, change: Change, removed: Touched) -> Touched | None:
        """Return the step that made a removed file again, elsewhere and under the same name.

        change: the change that removed the file.
        removed: its step that removed the file.

        None means that the change has no such step.
        """
        name = posixpath.basename(removed.path)
        for file in change.files:
            has_same_name = posixpath.basename(file.path) == name
            if has_same_name and file.project in self._sources and _makes_file(file):
                return file
        return None


def _makes_file(touched: Touched) -> bool:
    """Whether a step made a file where there was none before."""
    return touched.do == StepKind.PUT and touched.old is None


def _place_after_move(moved: Touched, place: Location) -> Location:
    """Return the place of a file after a step that moved a file or a folder."""
    project, path, root = place
    is_folder = moved.old is None
    is_in_folder = is_folder and path.startswith(f"{moved.path}/")
    if path == moved.path or is_in_folder:
        return (project, moved.to + path[len(moved.path) :], root)
    return place
