"""The question of `review` about notes that seem to hold injected instructions (docs/gate.md)."""

from __future__ import annotations

from collections.abc import Iterator

from commonplace.engine.engine import verb
from commonplace.engine.review import KEEP, ReviewItem, ReviewSource, ReviewVerbs
from commonplace.index.rows import NoteInfo
from commonplace.text.neutral import flat

DELETE = "d"
_TITLE = 60


@verb
def _marked(memory: ReviewVerbs) -> list[NoteInfo]:
    memory.engine.fresh()
    return memory.index.notes.suspicious()


def _find(memory: ReviewVerbs) -> Iterator[ReviewItem]:
    for info in _marked(memory):
        title = " ".join(info.title.split())
        title = flat(title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…")
        text = f'"{title}" ({flat(f"{info.project}/{info.path}")}) may hold instructions: {", ".join(info.suspicious)}'
        choices = (KEEP, "it is fine, show it everywhere"), (DELETE, "delete the note")
        yield ReviewItem(memory.suspicion(info), "suspicious", text, (info.id,), choices)


def _apply(memory: ReviewVerbs, item: ReviewItem, choice: str) -> bool:
    if choice == KEEP:
        return False
    memory.delete(next(info for info in _marked(memory) if memory.suspicion(info) == item.key))
    return True


SOURCE = ReviewSource(_find, _apply)
