"""Taking back a change of lines in a file used in place, by the source of the file."""

from __future__ import annotations

from memoranda.engine.graph import graph_of
from memoranda.engine.in_place import Blocked
from memoranda.engine.json_rows import take_back_rows
from memoranda.engine.places import PlaceVerbs
from memoranda.errors import CannotUndo, NotFound, StorageError
from memoranda.ledger.change import Change, Touched
from memoranda.ledger.lines import KeptLines
from memoranda.sources.step import LINES


def undo_lines(session: PlaceVerbs, change: Change, blocked: Blocked) -> Change:
    """Take back a change of lines; the home's lock is held. Raises CannotUndo, NotAGraphFile,
    StorageError.
    """
    touched = next(file for file in change.files if file.do == LINES and file.new is not None)
    try:
        kept_lines = session.engine.ledger.lines.kept(touched)
    except (NotFound, StorageError):
        raise CannotUndo("its lines are no longer kept", f"#{change.number}") from None
    undone = _take_back(session, change, touched, kept_lines, blocked)
    if undone is None:
        raise CannotUndo("nothing of it is left", f"#{change.number}")
    return undone


def _take_back(
    session: PlaceVerbs, change: Change, touched: Touched, kept_lines: KeptLines, blocked: Blocked
) -> Change | None:
    """Have the source of the file take the change back. Returns the undo, None for nothing to do."""
    # Only rows of JSON files are recorded with the folder they are in.
    if touched.root and touched.file.endswith(".json"):
        return take_back_rows(session, change, touched, kept_lines, blocked)
    return graph_of(session, touched).take_back(change, kept_lines, blocked)
