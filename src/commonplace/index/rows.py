"""What the index knows of a note, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class NoteInfo:
    """A note as the index holds it, without its text. Times are ISO 8601 UTC with `Z`."""

    row: int
    project: str
    path: str
    id: str
    title: str
    type: str
    permalink: str
    etag: str
    size: int
    mtime_ns: int
    inode: int
    created: str
    changed: str
    updated: str | None = None
    date: str | None = None
    phase: str | None = None
    category: str | None = None
    scope: str = "global"
    source: str | None = None
    expires: str | None = None
    access_count: int = 0
    version: int = 1
    locked: bool = False
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    header: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def checksum(self) -> str:
        """First 8 hex digits of SHA-256 over the file's bytes."""
        return self.etag[:8]


@dataclass(slots=True)
class Hit:
    """One note found: `passage` is the snippet (at most 200 characters cut from the file's text),
    `line` where it starts (from 1), `score` higher = better, `why` short reasons."""

    note: NoteInfo
    passage: str
    score: float
    why: list[str] = field(default_factory=list)
    line: int = 0


@dataclass(slots=True)
class Hits:
    """One page of a search: `total` notes match in all; `relaxed` when AND found nothing."""

    hits: list[Hit]
    total: int
    relaxed: bool = False

    def __iter__(self):
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index):
        return self.hits[index]


@dataclass(slots=True)
class Resolution:
    """Where a link leads: `state` is `resolved`, `unwritten` or `ambiguous`."""

    state: str
    note: NoteInfo | None = None
    candidates: list[NoteInfo] = field(default_factory=list)


@dataclass(slots=True)
class Edge:
    """A relation seen from one note. `direction` is `out` or `in`; `target` is the text in the
    source for `out`, the other note's title for `in`; `note` the other end when it exists."""

    type: str
    direction: str
    target: str
    state: str
    note: NoteInfo | None = None
    context: str | None = None
    line: int = 0


@dataclass(slots=True)
class Reached:
    """A note found on a walk: `depth` steps away, through the relation type `via`."""

    note: NoteInfo
    depth: int
    via: str
