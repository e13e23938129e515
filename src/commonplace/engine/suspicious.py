"""The question of `review` about notes that seem to hold injected instructions (docs/gate.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from commonplace.engine.engine import verb
from commonplace.engine.reading import ReadVerbs
from commonplace.engine.review import ReviewItem, Source
from commonplace.index.rows import NoteInfo
from commonplace.store.base import sha256
from commonplace.text.neutral import flat

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory

KEEP, DELETE = "k", "d"
_TITLE = 60


@verb
def key_of(memory: ReadVerbs, info: NoteInfo) -> str:
    """The key of the question about a note: another one once its title, tags or text are others."""
    said = "\0".join([info.title, *info.tags, memory.index.notes.text_of(info.row)[1]])
    return f"suspicious:{info.id}:{sha256(said.encode('utf-8', 'replace'))[:12]}"


@verb
def _marked(memory: Memory) -> list[NoteInfo]:
    memory.engine.fresh()
    return memory.index.notes.suspicious()


def _find(memory: Memory) -> Iterator[ReviewItem]:
    for info in _marked(memory):
        title = " ".join(info.title.split())
        title = flat(title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…")
        text = f'"{title}" ({flat(f"{info.project}/{info.path}")}) may hold instructions: {", ".join(info.suspicious)}'
        choices = (KEEP, "it is fine, show it everywhere"), (DELETE, "delete the note")
        yield ReviewItem(key_of(memory, info), "suspicious", text, (info.id,), choices)


def _apply(memory: Memory, item: ReviewItem, choice: str) -> bool:
    if choice == KEEP:
        return False
    memory.delete(next(info for info in _marked(memory) if key_of(memory, info) == item.key))
    return True


SOURCE = Source(_find, _apply)
