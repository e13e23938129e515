"""What a change did to texts: before and after, from the history and the disk."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from commonplace.engine import locations
from commonplace.engine.history import HistoryVerbs
from commonplace.errors import CommonplaceError, NotFound
from commonplace.store.journal import FOLD, Change, Touched


@dataclass(frozen=True, slots=True)
class Revision:
    """One file a change touched: its texts `before` and `after`, None where there was none or it is no longer kept."""

    change: Change
    touched: Touched
    before: str | None
    after: str | None


def revisions_of(memory: HistoryVerbs, number: int, limit: int = 0) -> list[Revision]:
    """The first `limit` [all] revisions of change `number`, as far as the caller sees them. Raises NotFound."""
    with memory.engine.guard:
        near = next(iter(memory.log_by_run(limit=1, before=number + 1)), [])
        change = next((each for each in near if each.number == number), None)
        if change is None:
            raise NotFound(f"#{number}", "the history")
        folds: dict[str, str] = {}  # what texts became by counts of reads written into them since: that has no history
        for each in memory.engine.home.history.changes():
            if each.number <= number:
                break
            if each.verb == FOLD:
                folds |= {file.old: file.new for file in each.files if file.old and file.new}
        return [
            Revision(change, each, _text(memory, each, each.old, folds),
                     None if each.do == "remove" else _text(memory, each, each.new or each.old, folds))
            for each in islice(change.texts(), limit or None)
        ]  # fmt: skip


def _text(memory: HistoryVerbs, each: Touched, digest: str | None, folds: dict[str, str]) -> str | None:
    """The text with this SHA-256: kept, or still the file's."""
    name = f"{each.project}/{each.path}"
    for _ in range(len(folds) + 1):
        if digest is None:
            return None
        with suppress(CommonplaceError):
            return memory.engine.home.history.text(digest, name).decode("utf-8", "replace")
        for path in (each.to, each.path):
            with suppress(CommonplaceError):
                store = locations.store_at(memory.engine, each.project, each.root)
                if path and (file := store.read(path)).etag == digest:
                    return file.data.decode("utf-8", "replace")
        digest = folds.get(digest)
    return None
