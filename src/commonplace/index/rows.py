"""What the index knows of a note, as values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_TITLE = 80
"""Characters of a title that count: the title of a memory may be its whole text."""


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
    warnings: tuple[str, ...] = ()
    written: tuple[str, str | None] = ("", None)
    """The frontmatter as text; and as JSON, where the header does not stand in the text."""
    _header: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def may_say(self, keys: Iterable[str]) -> bool:
        """False when no such key can stand in the header: told without reading it."""
        text = self.written[1] or self.written[0]
        for key in keys:  # a list is asked for each of its notes, so no generator
            if key in text:
                return True
        return "\\" in text

    @property
    def header(self) -> dict[str, Any]:
        """The header as written. It is read when it is first asked for: of most notes in a list nobody asks."""
        if self._header is None:
            self._header = header_of(*self.written)
        return self._header

    @property
    def checksum(self) -> str:
        """First 8 hex digits of SHA-256 over the file's bytes."""
        return self.etag[:8]


def header_of(front: str, header: str | None) -> dict[str, Any]:
    """A header, read again from the frontmatter, or from the JSON of it; {} when it is no YAML."""
    if header:
        return json.loads(header)
    if len(front) < 4:
        return {}
    from commonplace.note import frontmatter  # 4 ms, and most commands look at no header

    try:
        return frontmatter.parse(frontmatter.split(front)[0] or "")
    except ValueError:
        return {}


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

    def cut(self, characters: int) -> None:
        """Leave the first hits whose titles and passages fit, at least one, the last one shortened if need be.

        What an earlier passage said is not said twice: such a hit keeps its place without it.
        """
        kept: list[Hit] = []
        said, room = "", characters
        for hit in self.hits:
            flat = f" {' '.join(hit.passage.split()).casefold()} "
            if flat in said and hit.passage:
                hit.passage = ""
                hit.why.append("says the same as one above")
            said += f"{flat}\0"
            room -= min(len(hit.note.title), _TITLE)
            if kept and room < len(hit.passage):
                break
            hit.passage = hit.passage[: max(room, 20)]
            room -= len(hit.passage)
            kept.append(hit)
        self.hits = kept


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
