"""Which changes could be undone now: undoing is planned without being carried out."""

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
    """The reason why each of these changes cannot be undone now, by the change's number.

    Changes that can be undone are not in the result. A later edit may still get in their way.
    """
    refusals: dict[int, str] = {}
    for change in _changes(memory, numbers):
        reason = _reason(memory, change)
        if reason:
            refusals[change.number] = reason
    return refusals


@verb
def can_undo_run(memory: HistoryVerbs, run: Sequence[Change]) -> bool:
    """Whether all changes of a job's run could be undone now, together."""
    history = memory.engine.ledger.history
    numbers = {change.number for change in run}
    standing = [change for change in _changes(memory, numbers) if history.undone_by(change) is None]
    transaction = Transaction(memory, "undo")
    undo = memory.undo_in(transaction)
    try:
        for change in standing:
            undo.take_back(change, together=[change.number for change in standing])
    except MemorandaError:
        return False
    return bool(transaction.steps)


def _changes(memory: HistoryVerbs, numbers: Collection[int]) -> Iterator[Change]:
    """Return the changes with these numbers, the newest first."""
    for number in sorted(numbers, reverse=True):
        change = memory.engine.ledger.history.change(number)
        if change is not None:
            yield change


def _reason(memory: HistoryVerbs, change: Change) -> str:
    """The reason why a change cannot be undone. Empty if it can."""
    if change.verb == ERASE:
        return _ERASED
    if change.undoes is None and memory.engine.ledger.history.undone_by(change) is not None:
        return _UNDONE
    texts = list(change.texts())
    if texts and not any(text.kept for text in texts):
        return PASSING
    # Comparing lines with a whole graph file takes long, so undo itself finds the reason later
    if any(touched.do == StepKind.LINES for touched in change.files):
        return ""
    return _tried(memory, change)


def _tried(memory: HistoryVerbs, change: Change) -> str:
    """The reason why a change cannot be undone, found by planning the undo. Empty if it can."""
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
