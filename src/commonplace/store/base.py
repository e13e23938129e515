"""The contract every store keeps, and the values that pass through it.

A store is one project's notes on disk: a folder of Markdown files (`folder.py`) or a graph file whose entities
are its notes (`engine/graph_store.py`, over `records.py`). Stores read by themselves; a folder changes only
through `Home.commit` (`home.py`), which holds the lock and keeps the history, and a graph file only by its lines
(`line_changes.py`, which does the same).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Stamp(NamedTuple):
    """What tells one state of a file from another without reading it; of an entity in a graph file the `inode` is a
    digest of its lines."""

    size: int
    mtime_ns: int
    inode: int


Values = tuple[int, int, int]
"""A stamp's values as the system tells them, for thousands of files much faster made than stamps."""

_LARGEST = (1 << 63) - 1


def sha256(data: bytes) -> str:
    """The SHA-256 of a file's bytes, 64 hex digits."""
    from hashlib import sha256  # 3 ms; most searches need none

    return sha256(data).hexdigest()


def bounded(values: Values) -> Stamp:
    """The stamp, in numbers the index can hold: a date or an inode may be any 64 bits."""
    size, when, inode = values
    return Stamp(size, max(-_LARGEST, min(when, _LARGEST)), inode & _LARGEST)


@dataclass(slots=True)
class Listing:
    """All notes of a project as the disk shows them: project-relative path, with `/`, → stamp.

    `unreadable` names folders (project-relative, "" = the project itself) that could not be
    listed: nothing below them may be taken for deleted.
    """

    stamps: dict[str, Values] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


@dataclass(slots=True)
class File:
    """A file's bytes as read; `etag` is their SHA-256 (64 hex), `born` the birth time if known (s).

    Of an entity in a graph file the stamp tells no time: `changed_ns` is when the whole file last changed, which is
    the entity's own time if the index does not know an earlier one for the same stamp. None for any other note.
    """

    data: bytes
    stamp: Stamp
    etag: str
    mode: int = 0o600
    born: float | None = None
    changed_ns: int | None = None


class Store(Protocol):
    """One project's notes. Paths are project-relative with `/`; errors come from errors.py."""

    name: str
    kind: str
    """`folder` or `graph-jsonl`."""
    root: str
    """The folder, or the file, as an absolute path."""

    def list(self, below: str = "") -> Listing:
        """Every note file (of one folder) with its stamp; folders that cannot be read are named, never guessed."""
        ...

    def folders(self) -> Iterator[str]:
        """Absolute paths of all folders that may hold notes, for watching."""
        ...

    def is_note(self, path: str) -> bool:
        """Whether a file of this name would be a note (by name alone)."""
        ...

    def stamp(self, path: str) -> Stamp | None:
        """The note's stamp now, None when there is no such note file."""
        ...

    def read(self, path: str) -> File:
        """The note's bytes. Raises NotFound, OutsideError, StorageError."""
        ...
