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
    # The places are the keys. A dict keeps their order, unlike a set.
    places: dict[Location, None] = {}
    for step in engine.ledger.history.files_made_by(agent):
        number = step.number
        made_file = step.touched
        if made_file.project not in engine.sources:
            continue
        # Whoever moves a file by rewriting it has not made it.
        if following.came_from_elsewhere(number, made_file):
            continue
        place = following.last_place(number, made_file)
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

    def came_from_elsewhere(self, number: int, made_file: Touched) -> bool:
        """Whether a change only moved a file from another place, where an earlier change made it.

        number: the number of the change.
        made_file: the step of the change that wrote the file at a place that had none.
        """
        change = self._history.change(number)
        if change is None:
            return False
        for removed, written in change.pairs_moved_by_rewriting():
            is_this_file = written.place == made_file.place
            if is_this_file and self._history.was_made(removed.project, removed.path, number):
                return True
        return False

    def last_place(self, number: int, made_file: Touched) -> Location | None:
        """Return the place where a file is now, or where it was last.

        number: the number of the change that made the file.
        made_file: the step of this change that made the file.

        None means that another file was made at the place of the file since.
        """
        place = made_file.place
        last_number = number
        while True:
            change = self._next_change(last_number, place)
            if change is None:
                return place
            place_after_change = self._place_after(change, place)
            if place_after_change is None:
                return None
            place = place_after_change
            last_number = change.number

    def _next_change(self, number: int, place: Location) -> Change | None:
        """Return the next change after `number` that may affect the file at a place.

        Such a change moved, removed or created the file, or moved a folder above it. None if the
        history has no such change.
        """
        later_numbers: list[int] = []
        # The next move of any folder of the project. It may be another folder than one above.
        move_numbers = self._numbers_of_folder_moves(place.project)
        index_of_next_move = bisect_right(move_numbers, number)
        if index_of_next_move < len(move_numbers):
            later_numbers.append(move_numbers[index_of_next_move])
        # The next change of the file itself.
        departure_number = self._history.next_departure(place.project, place.path, number)
        if departure_number is not None:
            later_numbers.append(departure_number)
        if not later_numbers:
            return None
        return self._history.change(min(later_numbers))

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
        # The step that wrote the file elsewhere, known from the step that removed the file here.
        arrival: Touched | None = None
        # `place` is where the file is before each step.
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
                # The file was gone without a change, and this is another file at its place.
                return None
        return place

    def _made_again(self, change: Change, removed: Touched) -> Touched | None:
        """Return the step that wrote a removed file at another place.

        change: the change that removed the file.
        removed: its step that removed the file.

        None means that the change has no such step.
        """
        for removed_step, written_step in change.pairs_moved_by_rewriting():
            if removed_step is removed and written_step.project in self._sources:
                return written_step
        return None
