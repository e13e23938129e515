"""The contract every source keeps, and the values that pass through it.

A source is one project's notes on disk: a folder of Markdown files (`folder.py`) or a graph file
whose entities are its notes (`graph_file.py`). Sources only read. A folder changes through `Ledger.commit`
(`ledger/ledger.py`), which holds the lock and keeps the history; a graph file by its lines, with the same
lock and history.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from memoranda.clock import EPOCH

if TYPE_CHECKING:
    from memoranda.note.model import Note


class Stamp(NamedTuple):
    """A key that tells one state of a file from another without reading it; of an entity in a graph
    file the `inode` is a digest of its lines.

    The system sets `ctime_ns` on each change, and no program can set it back: it tells of a text
    that was changed in place under its old time. A rename and new rights set it too, so a file with
    another one may have the same text.
    """

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int = 0

    def is_same_file(self, other: Stamp) -> bool:
        """Whether the two differ at most by what a rename changes."""
        return self[:3] == other[:3]


NO_STAMP = Stamp(0, 0, 0)
"""The stamp of a file that is not there yet."""


Values = tuple[int, int, int, int]
"""A stamp's values as the system tells them, for thousands of files much faster made than stamps.
"""

# The largest integer of SQLite; some file systems report larger ones.
_LARGEST = (1 << 63) - 1


def sha256(data: bytes) -> str:
    """The SHA-256 of a file's bytes, 64 hex digits."""
    # 3 ms; most searches need none
    from hashlib import sha256

    return sha256(data).hexdigest()


def bounded(values: Values) -> Stamp:
    """The stamp, in numbers the index can hold: a date or an inode may be any 64 bits."""
    size, changed, inode, status_changed = values
    return Stamp(size, _bounded_time(changed), inode & _LARGEST, _bounded_time(status_changed))


def _bounded_time(nanoseconds: int) -> int:
    return max(-_LARGEST, min(nanoseconds, _LARGEST))


@dataclass(slots=True)
class Listing:
    """All notes of a project as the disk shows them: project-relative path, with `/`, → stamp.

    `unreadable` names folders (project-relative, "" = the project itself) that could not be
    listed: nothing below them may be taken for deleted. `shared` are the notes whose file has
    another name, a hard link: the system does not tell of what is written under that.
    """

    stamps: dict[str, Values] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)


@dataclass(slots=True)
class File:
    """A file's bytes as read; `etag` is their SHA-256 (64 hex), `born` the birth time if known (s).

    `changed_ns` is the time of the last change of an entity of a graph file, whose stamp has no
    time; None for files.
    """

    data: bytes
    stamp: Stamp
    etag: str
    mode: int = 0o600
    born: float | None = None
    changed_ns: int | None = None

    def note(self, project: str, path: str, text: str, changed: datetime | None = None) -> Note:
        """The note at `path` that these bytes are, whose text this is; it may have `changed` at
        another time.
        """
        # 8 ms; a search that finds nothing new reads no file
        from memoranda.note.markdown import (
            parse_note,
        )

        if self.changed_ns is None:
            when = self.stamp.mtime_ns
        else:
            when = self.changed_ns
        # exact, where a float rounds
        changed = changed or EPOCH + timedelta(microseconds=when // 1000)
        if self.born:
            born = datetime.fromtimestamp(self.born, UTC)
        else:
            born = None
        is_entity = self.changed_ns is not None
        note = parse_note(
            text, project=project, path=path, changed=changed, born=born, entity=is_entity
        )
        note.etag = self.etag
        return note


@dataclass(slots=True)
class PathInfo:
    """The kind of thing at a path: `kind` is `file`, `folder`, `link` (a symlink), `other` or
    `missing`.

    `path` is where it really is, project-relative, folder links resolved; `size` in bytes.
    """

    kind: str
    path: str
    size: int = 0
    link: str = ""


@runtime_checkable
class Source(Protocol):
    """One project's notes. Paths are project-relative with `/`; errors come from errors.py."""

    name: str
    root: str
    """The folder, or the file, as an absolute path."""
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
        """The state of a source that is one file; None when only `list` tells, or nothing is there."""

    def list(self, below: str = "") -> Listing:
        """Every note file (of one folder) with its stamp; folders that cannot be read are named,
        never guessed.
        """

    def parts(self, below: str, listing: Listing) -> Iterator[None]:
        """The same, some at a time: each step adds files to `listing`, which the caller may empty."""
        ...

    def changed_since(self, version: Stamp | None) -> builtins.list[str] | None:
        """The paths of notes that may differ from those at `version`; None when only `list` tells."""

    def folders(self) -> Iterator[str]:
        """Absolute paths of all folders that may hold notes, for watching; none for a source that is
        one file.
        """

    def is_note(self, path: str) -> bool:
        """Whether a file of this name would be a note (by name alone)."""

    def stamp(self, path: str) -> Stamp | None:
        """The note's stamp now, None when there is no such note file."""

    def read(self, path: str) -> File:
        """The note's bytes. Raises NotFound, OutsideError, StorageError."""

    def place(self, path: str) -> PathInfo:
        """The thing at `path` ("" = the project), a final symlink not followed. Raises
        OutsideError, StorageError.
        """

    def check_writable(self) -> None:
        """Raises ReadOnlyProject when notes cannot be written file by file."""
