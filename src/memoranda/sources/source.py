"""The contract of every kind of source: how notes on disk are read and changed.

A source holds the notes of one project. It is one of these:

- a folder, in which each Markdown file is a note (`FolderSource` in `folder.py`);
- a graph file, in which each entity is a note (`GraphFileSource` in `graph_file.py`).

A file of key-value entries (`JsonFile` in `json_files.py`) has no notes, and the index does not
read it. But it is changed in the same way.

A source does not write to the disk. It turns an edit, which says what must become different, into
steps, each of which is one action on one file. `Ledger.write` (`ledger/ledger.py`) carries the
steps out as one change. So all kinds of sources share one lock and one history.

| source | its edits | the steps of an edit |
|---|---|---|
| folder | `FileEdit`: one file or folder | `put`, `remove`, `move` and others |
| graph file | `LineEdit`: some lines of the file | one step `lines` |
| file of entries | `RowEdit`: some rows of the file | one step `lines` |

A change is made under the home's lock:

    with source.changing():
        steps = source.steps(edit)
        ledger.write(verb, lambda: steps, about)

A preset or an option can make a folder a project for one process only. That process registers the
source when it opens the folder (`Engine.register`). The steps of such a source name its folder, so
that other processes, which do not know the project, can still take the steps back.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from memoranda.errors import MemorandaError
from memoranda.sources.base import File, Listing, PathInfo, Stamp
from memoranda.sources.line_change import KeptLines
from memoranda.sources.step import Step, StepKind

EditT = TypeVar("EditT", contravariant=True)


class EditableSource(Protocol[EditT]):
    """A source whose edits become steps of the ledger."""

    name: str
    """The project."""

    def changing(self) -> AbstractContextManager[None]:
        """Return a context manager. Inside its block, an edit is planned and its steps are made.

        A file used in place is read again, and locked until the end of the block. The files of a
        folder are not locked: the ledger compares each of them with the text that was read. Raises
        StorageError.
        """
        ...

    def steps(self, edit: EditT) -> Sequence[Step]:
        """Return the steps that make an edit, for the ledger. Empty if it changes nothing.

        Called inside `changing`. Raises Conflict if the notes are no longer as the edit expects.
        """
        ...


@runtime_checkable
class Source(EditableSource[Any], Protocol):
    """The notes of one project: a folder, or a file that holds many notes.

    Paths are project-relative with `/`; errors come from errors.py.
    """

    root: str
    """The folder, or the file, as an absolute path."""
    away: bool
    """Whether other processes of the home do not know this folder, so that steps must name it."""
    holds_entities: bool
    """Whether the notes are entities of a graph file. Then only edits of the graph change them."""

    optional: bool
    """Whether the folder or file may be missing."""

    def trouble(self) -> str:
        """Return a sentence that says why the notes cannot be listed now, "" if they can.

        Meanwhile, the index keeps the notes that it saw last.
        """

    def version(self) -> Stamp | None:
        """Return the stamp of a source that is one file.

        None if the file is missing, or if the source is a folder, whose state only `list` knows.
        """

    def list(self, below: str = "") -> Listing:
        """Return the notes below a folder with their stamps.

        The listing also names the folders that cannot be read, so that the notes in them are not
        taken for deleted.

        below: the path of the folder. "" lists all notes.
        """

    def parts(self, below: str, listing: Listing) -> Iterator[None]:
        """Add the notes that `list` returns to `listing`, some before each `yield`.

        The caller may empty `listing` in between.

        below: the path of the folder. "" for all notes.
        listing: takes the notes, and the folders that cannot be read.
        """
        ...

    def changed_since(self, version: Stamp | None) -> builtins.list[str] | None:
        """Return the paths of notes that may have changed since `version`.

        None if only a comparison by `list` can tell.
        """

    def folders(self) -> Iterator[str]:
        """Yield the absolute paths of all folders that may have notes, for watching.

        A source that is one file yields nothing.
        """

    def is_note(self, path: str) -> bool:
        """Whether a file at this path would be a note, by its path alone."""

    def stamp(self, path: str) -> Stamp | None:
        """Return the present stamp of a note, None if it does not exist."""

    def read(self, path: str) -> File:
        """Read a note. Raises NotFound, OutsideError, StorageError."""

    def place(self, path: str) -> PathInfo:
        """Return the kind of thing at `path`. "" is the project. A symlink itself is not followed.

        Raises OutsideError, StorageError.
        """

    def check_writable(self) -> None:
        """Raise ReadOnlyProject if notes cannot be written file by file."""


class InPlaceEdit(Protocol):
    """An edit of a file used in place. `verb` is the name of the change in the history."""

    verb: str


InPlaceEditT = TypeVar("InPlaceEditT", bound=InPlaceEdit)


class InPlaceSource(EditableSource[InPlaceEditT], Protocol[InPlaceEditT]):
    """A file of another program, used in place: its edits are changes of lines."""

    def inverse(self, kept_lines: KeptLines) -> InPlaceEditT | None:
        """Return the edit that takes a change of these lines back. Called inside `changing`.

        None if one of its lines has changed since, or if a removed line exists again. Raises
        NotKept.
        """
        ...

    def counted(self, edit: InPlaceEditT) -> Sequence[str]:
        """Return the keys of the read counts that an edit sets back to zero."""
        ...


class NotKept(MemorandaError):
    """The history has no text of a replaced entry, since the entry had a time to live."""

    code = "cannot_undo"


@dataclass(slots=True)
class FileEdit:
    """An edit of one file or folder. It becomes a `Step`, which explains the fields."""

    do: StepKind
    path: str
    to: str = ""
    data: bytes | None = None
    old: File | None = None
    mode: int | None = None
    scope: str = "global"
    link: str = ""
    kept: bool = True
    is_passing: bool = False
    by: dict[str, str] | None = None
