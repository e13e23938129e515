"""Find out which changes could be undone now, by planning the undo without carrying it out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from memoranda.engine.engine import verb
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.transaction import Transaction
from memoranda.errors import CannotUndo, MemorandaError, UndoObstacle
from memoranda.ledger.change import Change
from memoranda.sources.step import StepKind

# How many later changes may have to be undone together with a change.
_MAX_LATER = 20
# Changes that are looked at together, while other callers wait.
_CHANGES_AT_A_TIME = 50


@verb
def refused_undos(memory: HistoryVerbs, numbers: Collection[int]) -> dict[int, CannotUndo]:
    """Return why changes cannot be undone now, by number. Changes that can be undone are left out.

    A later edit may still prevent the undo of a change that is left out here.

    numbers: the numbers of the changes to look at.
    """
    refusals: dict[int, CannotUndo] = {}
    for change in _changes_numbered(memory, numbers):
        refusal = _refusal_alone(memory, change)
        if refusal is not None:
            refusals[change.number] = refusal
    return refusals


@verb
def later_changes_in_the_way(memory: HistoryVerbs, number: int) -> list[Change]:
    """Return the later changes that must be undone together with a change, the latest first.

    [] if the change can be undone alone, if more than _MAX_LATER later changes prevent the undo, or
    if something else prevents it.

    number: the number of the change.
    """
    numbers = {number}
    while len(numbers) <= _MAX_LATER:
        changes = list(_changes_numbered(memory, numbers))
        refusal = _refusal_of_all(memory, changes)
        if refusal is None:
            return [change for change in changes if change.number != number]
        later = refusal.later
        if refusal.obstacle != UndoObstacle.LATER or later is None or later in numbers:
            return []
        # Try again with the later change that the error names.
        numbers.add(later)
    return []


def undoable_together(
    memory: HistoryVerbs, numbers: Collection[int]
) -> tuple[list[int], dict[int, CannotUndo]]:
    """Return which of these changes can be undone now as one change, and why the others cannot.

    Many changes take seconds, so other callers are let pass in between. A change that they make
    meanwhile may not be considered; the undo itself refuses then.

    numbers: the numbers of the changes. Changes that are undone already are left out.

    Returns the numbers of those that can be undone, the newest first, and the refusals of the
    others by number.
    """
    newest_first = sorted(numbers, reverse=True)
    changes: list[Change] = []
    # Why each change cannot be undone alone. None for one that can.
    own_refusals: dict[int, CannotUndo | None] = {}
    for start in range(0, len(newest_first), _CHANGES_AT_A_TIME):
        next_numbers = newest_first[start : start + _CHANGES_AT_A_TIME]
        next_changes = _standing_changes(memory, next_numbers)
        changes += next_changes
        own_refusals |= _own_refusals(memory, next_changes)

    refusals: dict[int, CannotUndo] = {}
    _add_barred(refusals, own_refusals)
    while True:
        # `_add_refused` adds the changes to `refusals` that it refuses.
        possible = [change for change in changes if change.number not in refusals]
        refusal = _add_refused(memory, possible, refusals, own_refusals) if possible else None
        numbers_left = [change.number for change in possible if change.number not in refusals]
        if refusal is None:
            return numbers_left, refusals
        # If no other change is to blame, none can be undone.
        if refusal.number not in numbers_left:
            return [], refusals | dict.fromkeys(numbers_left, refusal)
        # Without the change that is to blame, the others are tried again.
        refusals[refusal.number] = refusal
        _add_barred(refusals, own_refusals)


@verb
def _standing_changes(memory: HistoryVerbs, numbers: Collection[int]) -> list[Change]:
    """Return the changes with these numbers that are not undone, the newest first."""
    history = memory.engine.ledger.history
    return [
        change for change in _changes_numbered(memory, numbers) if history.undone_by(change) is None
    ]


@verb
def _own_refusals(memory: HistoryVerbs, changes: Sequence[Change]) -> dict[int, CannotUndo | None]:
    """Return the refusal that each change meets by itself, by number. None for one that can be undone."""
    return {change.number: _own_refusal(memory, change) for change in changes}


@verb
def _add_refused(
    memory: HistoryVerbs,
    changes: Sequence[Change],
    refusals: dict[int, CannotUndo],
    own_refusals: Mapping[int, CannotUndo | None],
) -> CannotUndo | None:
    """Plan the undo of changes together, and go on without each change that is refused.

    changes: the changes, the latest first.
    refusals: the changes that cannot be undone. Those that are refused are added to it, and those
        that they bar.
    own_refusals: see `_add_barred`.

    Returns the error at which the plan ends, because it contains a part of the refused change, or
    because all of it is refused. None if the changes that are left can be undone together.
    """
    transaction = Transaction(memory, "undo")
    undo = memory.undo_in(transaction)
    numbers = frozenset(change.number for change in changes)
    # If this call is repeated, it may have added some already.
    together = numbers.difference(refusals)
    for change in changes:
        if change.number in refusals:
            continue
        refusal = _error_of(partial(undo.take_back, change, together))
        if refusal is None:
            continue
        if undo.has_begun or refusal.number != change.number:
            return refusal
        # Nothing of it is in the plan, so the plan is the same as without this change.
        refusals[change.number] = refusal
        _add_barred(refusals, own_refusals)
        together = numbers.difference(refusals)
    if not together:
        return None
    return _error_of(undo.finish) or _refusal_of_nothing(transaction)


def _add_barred(
    refusals: dict[int, CannotUndo], own_refusals: Mapping[int, CannotUndo | None]
) -> None:
    """Add the changes that a later change bars which is not undone with them.

    refusals: the changes that cannot be undone. Changes are added to it.
    own_refusals: all changes with the refusal of each alone, the newest first. None for a change
        that can be undone.
    """
    for number, refusal in own_refusals.items():
        if refusal is None:
            continue
        # A later change that is undone, too, is not in the way.
        is_undone_too = refusal.later in own_refusals and refusal.later not in refusals
        if not is_undone_too:
            refusals.setdefault(number, refusal)


def _own_refusal(memory: HistoryVerbs, change: Change) -> CannotUndo | None:
    """Return the error that a change cannot be undone together with others. None if it may be."""
    if _changed_lines(change):
        return CannotUndo("changes of lines are undone one by one", number=change.number)
    return _refusal_alone(memory, change)


def _refusal_of_all(memory: HistoryVerbs, changes: Sequence[Change]) -> CannotUndo | None:
    """Return the error that changes cannot be undone together. None if they can.

    changes: the changes, the latest first.
    """
    if any(_changed_lines(change) for change in changes):
        return CannotUndo("changes of lines are undone one by one")
    refusal = memory.refusal_of_undos(changes)
    return refusal or _refusal_together(memory, changes)


@verb
def refused_undo_of_run(memory: HistoryVerbs, run: Sequence[Change]) -> CannotUndo | None:
    """Return the error that a run of a job cannot be undone now as one change. None if it can.

    Changes of the run that are undone already do not matter. The error has the number of the change
    that cannot be undone.

    run: the changes of the run.
    """
    numbers = {change.number for change in run}
    return _refusal_together(memory, _standing_changes(memory, numbers))


def _changes_numbered(memory: HistoryVerbs, numbers: Collection[int]) -> Iterator[Change]:
    """Yield the changes with these numbers, the newest first.

    Unknown numbers are left out, and changes that the caller may not see.
    """
    for number in sorted(numbers, reverse=True):
        change = memory.change_numbered(number)
        if change is not None:
            yield change


def _refusal_alone(memory: HistoryVerbs, change: Change) -> CannotUndo | None:
    """Return the error that a change cannot be undone. None if the history knows no reason."""
    refusal = memory.refusal_of_undo(change)
    if refusal is not None:
        return refusal
    # Comparing lines with a whole graph file takes long. Only the undo itself does that.
    if _changed_lines(change):
        return None
    return _refusal_together(memory, [change])


def _changed_lines(change: Change) -> bool:
    """Whether a change edited lines of a file used in place."""
    return any(touched.do == StepKind.LINES for touched in change.files)


def _refusal_together(memory: HistoryVerbs, changes: Sequence[Change]) -> CannotUndo | None:
    """Plan the undo of changes together. Return the error that it fails with, or None.

    changes: the changes, the latest first.
    """
    transaction = Transaction(memory, "undo")
    undo = memory.undo_in(transaction)
    together = frozenset(change.number for change in changes)
    for change in changes:
        refusal = _error_of(partial(undo.take_back, change, together))
        if refusal is not None:
            return refusal
    return _error_of(undo.finish) or _refusal_of_nothing(transaction)


def _error_of(act: Callable[[], None]) -> CannotUndo | None:
    """Return the error with which a part of an undo fails. None if it does not fail."""
    try:
        act()
    except CannotUndo as error:
        return error
    except MemorandaError as error:
        return CannotUndo(str(error))
    return None


def _refusal_of_nothing(transaction: Transaction) -> CannotUndo | None:
    """Return the error that an undo has nothing to do. None if it has steps."""
    if transaction.steps:
        return None
    return CannotUndo("nothing of it is left", obstacle=UndoObstacle.NOTHING_LEFT)
