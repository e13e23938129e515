"""Find out which changes could be undone now, by planning the undo without carrying it out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from memoranda.engine.engine import verb
from memoranda.engine.history import HistoryVerbs
from memoranda.engine.transaction import Transaction
from memoranda.errors import CannotUndo, MemorandaError
from memoranda.ledger.change import ERASE, Change
from memoranda.sources.json_rows import PASSING
from memoranda.sources.step import StepKind

_UNDONE = "it was undone already"
_ERASED = "what was erased is gone for good"


@verb
def refused_undos(memory: HistoryVerbs, numbers: Collection[int]) -> dict[int, str]:
    """Return why changes cannot be undone now, by number. Changes that can be undone are left out.

    A later edit may still prevent the undo of a change that is left out here.

    numbers: the numbers of the changes to look at.
    """
    refusals: dict[int, str] = {}
    for change in _changes(memory, numbers):
        reason = _reason(memory, change)
        if reason:
            refusals[change.number] = reason
    return refusals


@verb
def can_undo_run(memory: HistoryVerbs, run: Sequence[Change]) -> bool:
    """Whether all changes of one run of a job could be undone now, as one change.

    Changes of the run that are undone already do not matter.

    run: the changes.
    """
    history = memory.engine.ledger.history
    numbers = {change.number for change in run}
    to_undo = [change for change in _changes(memory, numbers) if history.undone_by(change) is None]
    transaction = Transaction(memory, "undo")
    undo = memory.undo_in(transaction)
    try:
        for change in to_undo:
            undo.take_back(change, together=[change.number for change in to_undo])
    except MemorandaError:
        return False
    return bool(transaction.steps)


def _changes(memory: HistoryVerbs, numbers: Collection[int]) -> Iterator[Change]:
    """Yield the changes with these numbers, the newest first. Unknown numbers are left out."""
    for number in sorted(numbers, reverse=True):
        change = memory.engine.ledger.history.change(number)
        if change is not None:
            yield change


def _reason(memory: HistoryVerbs, change: Change) -> str:
    """Return the reason why a change cannot be undone. "" if it can be, or if only the undo itself
    can tell.
    """
    if change.verb == ERASE:
        return _ERASED
    if change.undoes is None and memory.engine.ledger.history.undone_by(change) is not None:
        return _UNDONE
    texts = list(change.texts())
    if texts and not any(text.kept for text in texts):
        return PASSING
    # Comparing lines with a whole graph file takes long. Only the undo itself does that.
    if any(touched.do == StepKind.LINES for touched in change.files):
        return ""
    return _tried(memory, change)


def _tried(memory: HistoryVerbs, change: Change) -> str:
    """Plan the undo of a change. Return the reason why it fails, or "" if it does not."""
    transaction = Transaction(memory, "undo")
    try:
        memory.undo_in(transaction).take_back(change)
    except CannotUndo as error:
        return error.reason
    except MemorandaError as error:
        return str(error)
    if not transaction.steps:
        return "nothing of it is left"
    return ""
