"""Which changes could be taken back now: undo is tried without being carried out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from memoranda.engine.engine import verb
from memoranda.engine.history import HistoryVerbs
from memoranda.engine.transaction import Transaction
from memoranda.engine.undo import PASSING
from memoranda.errors import CannotUndo, MemorandaError
from memoranda.ledger.change import ERASE, LINES, Change

_UNDONE = "it was undone already"
_ERASED = "what was erased is gone for good"

Later = Sequence[Change]


@verb
def refused_undos(memory: HistoryVerbs, numbers: Collection[int]) -> dict[int, str]:
    """Why each of these changes cannot be taken back now, by number.

    Changes that can be taken back are not in the result. The answer is that of this moment: a later
    edit may still get in the way.
    """
    refusals: dict[int, str] = {}
    for change, later, undone_by in _down_to(memory, numbers):
        if change.number not in numbers:
            continue
        reason = _reason(memory, change, later, undone_by)
        if reason:
            refusals[change.number] = reason
    return refusals


@verb
def can_undo_run(memory: HistoryVerbs, run: Sequence[Change]) -> bool:
    """Whether all changes of a run of a job could be taken back now, as one."""
    numbers = {change.number for change in run}
    transaction = Transaction(memory, "undo")
    undo = memory.undo_in(transaction)
    run_numbers: set[int] = set()
    try:
        for change, later, undone_by in _down_to(memory, numbers):
            if change.number not in numbers or undone_by is not None:
                continue
            undo.take_back(
                change,
                [later_change for later_change in later if later_change.number not in run_numbers],
            )
            run_numbers.add(change.number)
    except MemorandaError:
        return False
    return bool(transaction.steps)


def _down_to(
    memory: HistoryVerbs, numbers: Collection[int]
) -> Iterator[tuple[Change, list[Change], int | None]]:
    """The changes from the latest to the first of these."""
    first = min(numbers, default=0)
    for change, later, undone_by in memory.changes_to_undo():
        if not numbers or change.number < first:
            return
        yield change, later, undone_by


def _reason(memory: HistoryVerbs, change: Change, later: Later, undone_by: int | None) -> str:
    """Why a change cannot be taken back; empty when it can."""
    if change.verb == ERASE:
        return _ERASED
    if undone_by is not None and change.undoes is None:
        return _UNDONE
    texts = list(change.texts())
    if texts and not any(text.kept for text in texts):
        return PASSING
    # Lines of a graph file are compared with the whole file, which takes long: undo says it then
    if any(touched.do == LINES for touched in change.files):
        return ""
    transaction = Transaction(memory, "undo")
    try:
        memory.undo_in(transaction).take_back(change, list(later))
    except CannotUndo as error:
        return str(error).partition(": ")[2] or str(error)
    except MemorandaError as error:
        return str(error)
    if not transaction.steps:
        return "nothing of it is left"
    return ""
