"""The steps an edit of notes is turned into by their source, and that the ledger carries out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from memoranda.sources.base import File, Stamp
from memoranda.value_object import ValueObject

if TYPE_CHECKING:
    from memoranda.sources.line_change import LineChange


class StepKind(StrEnum):
    """The operations that the ledger carries out. Its tables hold the words."""

    PUT = "put"
    """Write the bytes of a file."""
    REMOVE = "remove"
    MOVE = "move"
    """Move a file or a folder with all in it."""
    MKDIR = "mkdir"
    RMDIR = "rmdir"
    """Remove a folder, which must be empty by then."""
    UNLINK = "unlink"
    """Remove a symlink."""
    SYMLINK = "symlink"
    SET = "set"
    """Set a row of the ledger: an answer of the owner, a request of an agent."""
    LINES = "lines"
    """Change the lines of a file that is used in place."""


# Only the owner reads a new note.
NEW_MODE = 0o600


@dataclass(slots=True, eq=False, repr=False)
class Step(ValueObject):
    """One planned operation on a file or folder of a project. Paths are relative to the project.

    do: what to do. PUT writes `data`; if `old` is None, the place must be free. REMOVE needs `old`.
        MOVE goes to `to`, which must be free.
    root: the folder of the project.
    old: the file as the caller read it. If it has changed since, that is a Conflict.
    kept: whether the old text stays in the ledger.
    is_passing: whether the new text stays out of the ledger.
    away: whether other processes do not know the project at `root`, so that the ledger has to name
        it.
    etag, stamp: set for the new file, as soon as a `put` is prepared.
    by: as in `Touched`.
    """

    do: StepKind
    project: str
    root: str
    path: str
    to: str = ""
    data: bytes | None = None
    old: File | None = None
    mode: int | None = None
    scope: str = "global"
    link: str = ""
    kept: bool = True
    is_passing: bool = False
    away: bool = False
    temp: str = ""
    temp_folder: str = ""
    etag: str | None = None
    stamp: Stamp | None = None
    by: dict[str, str] | None = None
    lines: LineChange | None = None
