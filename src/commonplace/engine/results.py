"""What the engine's verbs answer, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.index.rows import Edge, NoteInfo, Reached
    from commonplace.note.edit import Edited
    from commonplace.note.model import Note, Observation


@dataclass(frozen=True, slots=True)
class Project:
    """A named collection of notes in the folder `root`."""

    name: str
    root: Path
    built_in: bool
    default: bool = False


@dataclass(slots=True)
class Stored:
    """A note just written; `created` is False when it replaced one."""

    note: Note
    created: bool


@dataclass(slots=True)
class Changed:
    """A note after an edit; `created` when the edit made it."""

    note: Note
    edited: Edited
    created: bool = False


@dataclass(slots=True)
class Moved:
    """`notes` is how many moved; `broken` names the notes whose links by path no longer lead anywhere."""

    project: str
    old_path: str
    new_path: str
    notes: int = 1
    broken: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Deleted:
    """`paths` are project-relative; `change` is the number `memory undo` takes."""

    project: str
    paths: list[str]
    notes: int
    change: int


@dataclass(slots=True)
class Context:
    """A note with what it says and what it is linked to, nearest first."""

    note: NoteInfo
    observations: list[Observation]
    edges: list[Edge]
    reached: list[Reached]


@dataclass(slots=True)
class LinkAction:
    """One planned link of `resolve_links`: `source` gains `target` (both directions are written)."""

    source: str
    target: str
    reason: str
    path: str


@dataclass(slots=True)
class ResolvedLinks:
    """What `resolve_links` did or would do: sources that gained a link, links added, targets nobody has."""

    actions: list[LinkAction]
    resolved: int
    added: int
    unresolved: list[tuple[str, str]]


@dataclass(slots=True)
class DirectoryEntry:
    """A folder (`notes` = how many it holds, subfolders included) or a note of a listing; `path` project-relative."""

    kind: str
    path: str
    title: str | None = None
    permalink: str | None = None
    changed: str | None = None
    notes: int | None = None


@dataclass(slots=True)
class Directory:
    """One page of a folder's entries, `total` in all."""

    entries: list[DirectoryEntry]
    total: int
