"""Finding the edits of a note that were made outside of memoranda, by an editor or a sync program.

The ledger has no change of them. But a change that found another text than the change before it left
there shows that somebody edited the note between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from memoranda.clock import stamp
from memoranda.engine.engine import verb
from memoranda.engine.history import HistoryVerbs, Revision
from memoranda.engine.whereabouts import Place, PlacedChange
from memoranda.errors import MemorandaError
from memoranda.ledger.change import Change, Touched
from memoranda.sources.step import StepKind


@dataclass(frozen=True, slots=True)
class OutsideEdit:
    """An edit of a note outside of memoranda, or several that followed each other.

    after: the number of the last change before it.
    since: when that change was made (ISO 8601, UTC).
    time: when the edit was there at the latest: the time of the file, or of the change that found it.
    is_latest: whether the note still has the text of the edit.
    text_before, text_after: the texts of the note. None if the history does not keep it.
    """

    after: int
    since: str
    time: str
    is_latest: bool
    text_before: str | None
    text_after: str | None


@dataclass(frozen=True, slots=True)
class _Seen:
    """The text that a note had at some time: its SHA-256, the text if it is known, and the time."""

    digest: str
    text: str | None
    time: str


@verb
def outside_edits(
    memory: HistoryVerbs,
    steps: Sequence[PlacedChange],
    revisions: Mapping[int, Sequence[Revision]],
    *,
    newer: PlacedChange | None,
) -> dict[int, OutsideEdit]:
    """Return the edits outside of memoranda, by the number of the change before each.

    steps: changes of one note that follow each other, the newest first.
    revisions: the revisions of these changes and of `newer`, by number.
    newer: the change of the note after these. None if there is none. Then the present text of the
        note counts.
    """
    if not steps:
        return {}
    if newer is None:
        following = _present(memory, steps[0].place)
    else:
        following = _found_by(newer, revisions[newer.change.number])
    edits = {}
    is_latest = newer is None
    for step in steps:
        left = _left_by(step, revisions[step.change.number])
        if left and following and not _is_folded(memory, left.digest, following, step.change):
            edits[step.change.number] = OutsideEdit(
                step.change.number, left.time, following.time, is_latest, left.text, following.text
            )
        following = _found_by(step, revisions[step.change.number])
        is_latest = False
    return edits


def _present(memory: HistoryVerbs, place: Place) -> _Seen | None:
    """Return the text that the note at a place has now. None if no note is there."""
    with suppress(MemorandaError):
        info = memory.find(place)
        file = memory.file(info)
        changed = datetime.fromtimestamp(file.stamp.mtime_ns / 1e9, UTC)
        return _Seen(file.etag, file.data.decode("utf-8", "replace"), stamp(changed))
    return None


def _left_by(step: PlacedChange, revisions: Sequence[Revision]) -> _Seen | None:
    """Return the text that a change left at the place of a note. None if that is not known."""
    for revision in revisions:
        touched = revision.touched
        if touched.do not in (StepKind.PUT, StepKind.MOVE):
            continue
        if (touched.project, touched.to or touched.path) == step.place:
            return _seen(touched.new or touched.old, revision.after, step.change)
    return None


def _found_by(step: PlacedChange, revisions: Sequence[Revision]) -> _Seen | None:
    """Return the text that a change found at the place of a note. None if that is not known."""
    place = step.place_before or step.place
    for revision in revisions:
        touched: Touched = revision.touched
        if (touched.project, touched.path) == place:
            return _seen(touched.old, revision.before, step.change)
    return None


def _seen(digest: str | None, text: str | None, change: Change) -> _Seen | None:
    """Return a text at the time of a change. None without a digest."""
    return _Seen(digest, text, change.time) if digest else None


def _is_folded(memory: HistoryVerbs, digest: str, following: _Seen, change: Change) -> bool:
    """Whether a text is the following one, but for read counts that were written into its header."""
    history = memory.engine.ledger.history
    current: str | None = digest
    visited: set[str] = set()
    while current is not None and current not in visited:
        if current == following.digest:
            return True
        visited.add(current)
        current = history.folded_into(current, change.number)
    return False
