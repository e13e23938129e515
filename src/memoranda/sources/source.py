"""The contract that every kind of source keeps, and how notes change, whatever keeps them.

A source is one project's notes on disk: a folder of Markdown files (`folder.py`) or a graph file
whose entities are its notes (`graph_file.py`). Key-value entries in JSON files, which the index
does not have, change in the same way. Sources write nothing: they turn an edit into steps, and
`Ledger.write` (`ledger/ledger.py`) makes the steps one change, with one lock and one history.

| source | edit | steps |
|---|---|---|
| a folder, `FolderSource` in `folder.py` | `FileEdit`: one file or folder | `put`, `remove`, `move` … |
| a graph file, `GraphFileSource` in `graph_file.py` | `LineEdit`: lines of it | one step `lines` |
| a file of entries, `JsonFile` in `json_files.py` | `RowEdit`: rows of it | one step `lines` |

A change is made under the home's lock:

    with source.changing():
        steps = source.steps(edit)
        ledger.write(verb, lambda: steps, about)

A folder that is a project of one process only (of a preset, of an option) is registered where it
is opened (`Engine.register`). Its steps name the folder, so every process can take them back.
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
from memoranda.sources.step import Step

EditT = TypeVar("EditT", contravariant=True)


class EditableSource(Protocol[EditT]):
    """A source whose edits become steps of the ledger."""

    name: str
    """The project."""

    def changing(self) -> AbstractContextManager[None]:
        """Inside, an edit is planned, and its steps are made.

        A file used in place is read anew and locked until then. The files of a folder are locked by
        nobody: the ledger compares each of them with what was read. Raises StorageError.
        """
        ...

    def steps(self, edit: EditT) -> Sequence[Step]:
        """The steps that make an edit, for the ledger; none for an edit that changes nothing.

        To be called inside `changing`. Raises Conflict if the edit was planned from something else.
        """
        ...


@runtime_checkable
class Source(EditableSource[Any], Protocol):
    """One project's notes. Paths are project-relative with `/`; errors come from errors.py."""

    root: str
    """The folder, or the file, as an absolute path."""
    away: bool
    """Whether other processes of the home do not know the project there, so that steps name it."""
    holds_entities: bool
    """Whether the notes are the entities of a graph file, which are changed through the graph
    alone.
    """

    optional: bool
    """Whether the folder or file need not be there yet."""

    def trouble(self) -> str:
        """Why the notes cannot be listed now, "" when they can; the index then keeps what was last
        seen.
        """

    def version(self) -> Stamp | None:
        """The state of a store that is one file.

        None if only `list` can tell, or if the file is missing.
        """

    def list(self, below: str = "") -> Listing:
        """Every note file (of one folder) with its stamp; folders that cannot be read are named,
        never guessed.
        """

    def parts(self, below: str, listing: Listing) -> Iterator[None]:
        """The same, some at a time: each step adds files to `listing`, which the caller may empty."""
        ...

    def changed_since(self, version: Stamp | None) -> builtins.list[str] | None:
        """The paths of notes that may have changed since `version`.

        None if only `list` can tell.
        """

    def folders(self) -> Iterator[str]:
        """Absolute paths of all folders that may hold notes, for watching.

        None if the store is one file.
        """

    def is_note(self, path: str) -> bool:
        """Whether a file of this name would be a note (by name alone)."""

    def stamp(self, path: str) -> Stamp | None:
        """The note's present stamp. None if there is no such note file."""

    def read(self, path: str) -> File:
        """The note's bytes. Raises NotFound, OutsideError, StorageError."""

    def place(self, path: str) -> PathInfo:
        """The thing at `path` ("" = the project), a final symlink not followed. Raises
        OutsideError, StorageError.
        """

    def check_writable(self) -> None:
        """Raises ReadOnlyProject when notes cannot be written file by file."""


class InPlaceEdit(Protocol):
    """An edit of a file used in place. `verb` is the name of the change in the history."""

    verb: str


InPlaceEditT = TypeVar("InPlaceEditT", bound=InPlaceEdit)


class InPlaceSource(EditableSource[InPlaceEditT], Protocol[InPlaceEditT]):
    """A file of another program, used in place: its edits are changes of lines."""

    def inverse(self, kept_lines: KeptLines) -> InPlaceEditT | None:
        """The edit that takes a change of these lines back. To be called inside `changing`.

        None if one of its lines has changed since, or if its place is taken. Raises NotKept.
        """
        ...

    def counted(self, edit: InPlaceEditT) -> Sequence[str]:
        """The names under which reads are counted of what an edit changes: they begin at zero."""
        ...


class NotKept(MemorandaError):
    """The history has no text of what a change replaced, as it was of an entry with a time to live."""

    code = "cannot_undo"


@dataclass(slots=True)
class FileEdit:
    """An edit of one file or folder. The `Step` it becomes has the same fields."""

    do: str
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
