"""A memory with all its keys as a value: what jobs, ingestion, export and import plan with (contract 001, 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from commonplace.note.compose import compose_memory
from commonplace.note.model import GLOBAL, INBOX, MEMORY_KEYS, ORGANIZED, Note

_OLD_PHASES = ("short", "long")


@dataclass(frozen=True, slots=True)
class Record:
    """One memory. Times are aware UTC; `further` holds the keys after `version`, unknown ones too, in their order.

    `phase` None means what the category says: inbox in category `inbox`, else organized.
    """

    id: str
    content: str
    category: str
    created: datetime
    updated: datetime
    scope: str = GLOBAL
    phase: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    expires: datetime | None = None
    access_count: int = 0
    links: tuple[str, ...] = ()
    version: int = 1
    further: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, note: Note) -> Record:
        """The record of a memory's note."""
        further = {key: value for key, value in note.header.items() if key not in MEMORY_KEYS}
        if further.get("type") in _OLD_PHASES:
            del further["type"]  # what older programs called the phase
        return cls(
            note.id, note.content, note.category or INBOX, note.created, note.updated or note.changed, note.scope,
            note.phase, note.tags, note.source, note.expires, note.access_count, note.links, note.version, further,
        )  # fmt: skip

    @property
    def is_inbox(self) -> bool:
        """Whether its phase is `inbox`."""
        return (self.phase or (INBOX if self.category == INBOX else ORGANIZED)) == INBOX

    def text(self) -> str:
        """The whole file."""
        return compose_memory(
            self.content, id=self.id, category=self.category, scope=self.scope, tags=self.tags, source=self.source,
            created=self.created, updated=self.updated, expires=self.expires, phase=self.phase,
            access_count=self.access_count, links=self.links, version=self.version, extra=self.further,
        )  # fmt: skip
