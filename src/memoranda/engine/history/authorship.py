"""Finding the files that an agent made, wherever they are now."""

from __future__ import annotations

from bisect import bisect_right

from memoranda.engine.engine import Engine
from memoranda.ledger.change import Change, Location, Touched
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
        for removed_position, written_position in change.moves_by_rewriting().items():
            removed = change.files[removed_position]
            is_partner = change.files[written_position].place == step.place
            if is_partner and self._history.was_made(removed.project, removed.path, number):
                return True
        return False

    def last_place(self, number: int, step: Touched) -> Location | None:
        """Return the place where a file is now, or where it was last.

        number: the number of the change that made the file.
        step: the step of this change that made the file.

        None means that another file was made at the place of the file since.
        """
        place = step.place
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
        candidates: list[int] = []
        move_numbers = self._numbers_of_folder_moves(place.project)
        next_move = bisect_right(move_numbers, number)
        if next_move < len(move_numbers):
            candidates.append(move_numbers[next_move])
        departure = self._history.next_departure(place.project, place.path, number)
        if departure is not None:
            candidates.append(departure)
        if not candidates:
            return None
        return self._history.change(min(candidates))

    def _numbers_of_folder_moves(self, project: str) -> list[int]:
        """Return the sorted numbers of the changes that moved a folder of a project.

        They are looked up once, because many files of a project are followed.
        """
        if project not in self._folder_moves:
            numbers = self._history.numbers_of_folder_moves(project, ABOVE_ALL_NUMBERS)
            self._folder_moves[project] = sorted(numbers)
        return self._folder_moves[project]

    def _place_after(self, change: Change, place: Location) -> Location | None:
        """Return the place of a file after a change.

        None means that the change made another file at its place.
        """
        # The step that wrote the file elsewhere. The change may record it before the removal.
        arrival: Touched | None = None
        for step in change.files:
            # A step in another project cannot affect the file.
            if (step.project, step.root) != (place.project, place.root):
                continue
            if step.do == StepKind.MOVE:
                path_after_move = step.path_after_move(place.path)
                if path_after_move is not None:
                    place = place._replace(path=path_after_move)
            elif step.path != place.path:
                # The step is about another file.
                continue
            elif step.do == StepKind.REMOVE:
                # A memory whose category changes is removed and made again.
                arrival = self._made_again(change, step)
                if arrival is not None:
                    place = arrival.place
            elif step.makes_file and step is not arrival:
                return None
        return place

    def _made_again(self, change: Change, removed: Touched) -> Touched | None:
        """Return the step that wrote a removed file at another place.

        change: the change that removed the file.
        removed: its step that removed the file.

        None means that the change has no such step.
        """
        for removed_position, written_position in change.moves_by_rewriting().items():
            written = change.files[written_position]
            is_partner = change.files[removed_position] is removed
            if is_partner and written.project in self._sources:
                return written
        return None
