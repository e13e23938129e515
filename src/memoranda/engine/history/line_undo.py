"""Undo a change of lines in a file used in place: a graph file, or a JSON file of entries."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memoranda.engine.graph import graph_file_of
from memoranda.engine.in_place import InPlaceChange
from memoranda.engine.places import PlaceVerbs
from memoranda.errors import CannotUndo, NotFound, StorageError, UndoObstacle
from memoranda.ledger.change import Change, Touched
from memoranda.sources.json_files import JsonFile, JsonFiles
from memoranda.sources.line_change import KeptLines
from memoranda.sources.source import InPlaceEdit, InPlaceSource, NotKept
from memoranda.sources.step import StepKind

RefusalOf = Callable[[str, str], CannotUndo]
"""Returns the error for a file that was changed again later. Its arguments are project and path."""


def undo_lines(session: PlaceVerbs, change: Change, refusal_of: RefusalOf) -> Change:
    """Undo a change of lines, and return the change that undid it.

    The caller must hold the lock of the home.

    change: the change to undo. One of its steps changed lines.
    refusal_of: returns the error to raise if the lines were changed again later.

    Raises CannotUndo, NotAGraphFile, StorageError.
    """
    # A step without a new text removed the whole file.
    line_steps = [
        file for file in change.files if file.do == StepKind.LINES and file.new is not None
    ]
    touched = line_steps[0]
    try:
        kept_lines = session.engine.ledger.lines.lines_of(touched)
    except (NotFound, StorageError):
        raise CannotUndo(
            "its lines are no longer kept", number=change.number, obstacle=UndoObstacle.NOT_KEPT
        ) from None
    source = _source_of(session, change, touched)

    def plan() -> InPlaceEdit:
        """Return the edit that undoes the change. Raises CannotUndo."""
        edit = _inverse(source, change, kept_lines)
        if edit is None:
            raise refusal_of(change.project, change.path)
        return edit

    undo = InPlaceChange(session, change.path, undoes=change.number)
    try:
        undoing_change = undo.carry_out(source, plan)
    except ValueError:
        raise CannotUndo(
            f"{touched.file} holds no entries any more",
            number=change.number,
            obstacle=UndoObstacle.OUTSIDE,
        ) from None
    if undoing_change is None:
        raise CannotUndo(
            "nothing of it is left", number=change.number, obstacle=UndoObstacle.NOTHING_LEFT
        )
    return undoing_change


def _source_of(session: PlaceVerbs, change: Change, touched: Touched) -> InPlaceSource[Any]:
    """Return the source of the file whose lines a change edited.

    touched: the step that edited them.
    """
    # Only rows of JSON files are recorded with the folder they are in.
    if touched.root and touched.file.endswith(".json"):
        stem = os.path.basename(touched.file).removesuffix(".json")
        return JsonFile(JsonFiles(Path(touched.root)), stem, change.path, make=True)
    return graph_file_of(session, touched)


def _inverse(
    source: InPlaceSource[Any], change: Change, kept_lines: KeptLines
) -> InPlaceEdit | None:
    """Return the edit that undoes a change of lines. None if the lines were changed again later.

    source: the file.
    kept_lines: the removed lines, from the history.

    Raises CannotUndo if the history no longer has the old lines.
    """
    try:
        edit: InPlaceEdit | None = source.inverse(kept_lines)
    except NotKept as error:
        raise CannotUndo(str(error), number=change.number, obstacle=UndoObstacle.NOT_KEPT) from None
    return edit
