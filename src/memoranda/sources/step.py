"""The steps of a change. A source turns an edit of notes into steps, and the ledger does them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from memoranda.sources.base import File, Stamp
from memoranda.value_object import ValueObject

if TYPE_CHECKING:
    from memoranda.sources.line_change import LineChange


class StepKind(StrEnum):
    """The operations that the ledger carries out. Its tables contain these words."""

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

    do: the kind of operation. PUT writes `data`; if `old` is None, the place must be free. REMOVE
        needs `old`. MOVE goes to `to`, which must be free.
    project, path: the file or folder.
    root: the folder of the project.
    to: the new path for MOVE.
    data: the new content for PUT.
    old: the file as the caller read it. If it has changed since, that is a Conflict.
    mode: the mode of the new file. None keeps the mode of the old one.
    scope: the scope of the note.
    link: the target of a new symlink.
    kept: whether the history keeps the old text.
    is_passing: whether the new text must leave no trace in the ledger.
    away: whether other processes do not know the project at `root`. The ledger must then name this
        folder.
    temp, temp_folder: name and folder of the temporary file of a PUT or REMOVE.
    etag, stamp: the SHA-256 and the stamp of the new file, set when a PUT is prepared.
    written_ns: the time of change that the new file gets, in nanoseconds since 1970. None means the
        time at which it is written.
    by: who wrote the text, in addition to what the change says about its origin.
    lines: for LINES, the change.
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
    written_ns: int | None = None
    by: dict[str, str] | None = None
    lines: LineChange | None = None
