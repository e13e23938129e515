"""Find edits of a note that were made outside of memoranda, by an editor or a sync program.

The ledger has no change for such an edit. But each change records the text that it replaced. If that
is not the text that the change before it wrote, somebody edited the note between the two changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from memoranda.clock import stamp
from memoranda.engine.engine import verb
from memoranda.engine.history.former_places import Place, PlacedChange, place_of
from memoranda.engine.history.verbs import HistoryVerbs, Revision
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Touched
from memoranda.ledger.history import History
from memoranda.query import Query
from memoranda.sources.step import StepKind


@dataclass(frozen=True, slots=True)
class OutsideEdit:
    """One or more edits of a note that were made outside of memoranda, such as in an editor.

    Several edits count as one if memoranda did not change the note between them. The times are
    texts in ISO 8601, in UTC.

    after: the number of the last change before the edit.
    since: when that change was made.
    time: a time by which the edit was certainly made: the time of the file or, if a change
        followed, the time of that change.
    is_latest: whether the note still has the text of the edit.
    text_before: the text before the edit. None if the history does not have it.
    text_after: the text after the edit. None if the history does not have it.
    """

    after: int
    since: str
    time: str
    is_latest: bool
    text_before: str | None
    text_after: str | None


@dataclass(frozen=True, slots=True)
class _TextAtTime:
    """The text that a note had at a time.

    digest: the SHA-256 of the text.
    text: the text itself. None if it is not known.
    time: the time, as a text in ISO 8601.
    """

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
    """Return the edits of a note outside of memoranda, each by the number of the change before it.

    steps: changes of the note that follow each other, the newest first.
    revisions: number of a change -> the texts before and after it. It has all changes of `steps`,
        and `newer`.
    newer: the change of the note that follows `steps`. None if `steps` are the latest changes; then
        the present text of the note shows an edit after them.
    """
    if not steps:
        return {}
    if newer is None:
        later_text = _present_text(memory, steps[0].place)
    else:
        later_text = _text_before(newer, revisions[newer.change.number])
    edits: dict[int, OutsideEdit] = {}
    # From the newest change to the oldest. If the text that a change left is not the text that the
    # next change found (`later_text`, at first the present text), somebody edited it in between.
    for step in steps:
        number = step.change.number
        text_left = _text_after(step, revisions[number])
        if text_left is not None and later_text is not None:
            is_edited = not _differ_only_in_reads(memory, text_left, later_text, number)
            if is_edited:
                edits[number] = OutsideEdit(
                    after=number,
                    since=text_left.time,
                    time=later_text.time,
                    is_latest=newer is None and step is steps[0],
                    text_before=text_left.text,
                    text_after=later_text.text,
                )
        later_text = _text_before(step, revisions[number])
    return edits


@verb
def notes_edited_outside(
    memory: HistoryVerbs, changes: Iterable[Change], *, limit: int
) -> list[NoteInfo]:
    """Return the notes that were edited outside of memoranda.

    They have a text that no change wrote. They have it now, or had it when a change replaced it.

    changes: the changes whose replaced texts are looked at.
    limit: how many of the notes whose files changed last are looked at.
    """
    history = memory.engine.ledger.history
    infos: dict[Place, NoteInfo] = {}
    # Notes whose present text no change wrote.
    latest_notes, _ = memory.list(Query(order="changed"), limit=limit)
    for info in latest_notes:
        if history.writer_of(info.etag) is None:
            infos[info.project, info.path] = info

    # Notes of which a change replaced a text that no change wrote. Only the first file of each
    # change is looked at.
    for change in changes:
        if not change.files:
            continue
        touched = change.files[0]
        if not _replaced_outside_text(history, touched):
            continue
        info_now = memory.index.notes.get(touched.project, touched.path_after)
        if info_now is not None and memory.sees(info_now.scope):
            infos[info_now.project, info_now.path] = info_now
    return list(infos.values())


def _replaced_outside_text(history: History, touched: Touched) -> bool:
    """Whether a step replaced a text that no change wrote by another text.

    False for a step that made or removed a file.
    """
    if touched.old is None or touched.new is None:
        return False
    return history.writer_of(touched.old) is None


def _present_text(memory: HistoryVerbs, place: Place) -> _TextAtTime | None:
    """Return the text that the note at a place has now. None if no note is there."""
    with suppress(MemorandaError):
        info = memory.find(place)
        file = memory.file(info)
        changed = datetime.fromtimestamp(file.stamp.mtime_ns / 1e9, UTC)
        return _TextAtTime(file.etag, file.data.decode("utf-8", "replace"), stamp(changed))
    return None


def _text_after(step: PlacedChange, revisions: Sequence[Revision]) -> _TextAtTime | None:
    """Return the text that a note had after a change. None if it is not known.

    step: the change, and the place of the note after it.
    revisions: the texts of the files that the change touched, before and after it.
    """
    for revision in revisions:
        touched = revision.touched
        # Only these steps leave a note at the place.
        if touched.do not in (StepKind.PUT, StepKind.MOVE):
            continue
        if place_of(touched.place_after) == step.place:
            # Without a new text, the file was moved as it was.
            return _at_time(touched.new or touched.old, revision.after, step.change)
    return None


def _text_before(step: PlacedChange, revisions: Sequence[Revision]) -> _TextAtTime | None:
    """Return the text that a note had before a change. None if it is not known.

    step: the change, and the place of the note before it.
    revisions: the texts of the files that the change touched, before and after it.
    """
    place = step.place_before or step.place
    for revision in revisions:
        touched: Touched = revision.touched
        if place_of(touched) == place:
            return _at_time(touched.old, revision.before, step.change)
    return None


def _at_time(digest: str | None, text: str | None, change: Change) -> _TextAtTime | None:
    """Return a text with the time of a change. None if the change has no digest of it."""
    if not digest:
        return None
    return _TextAtTime(digest, text, change.time)


def _differ_only_in_reads(
    memory: HistoryVerbs, before: _TextAtTime, after: _TextAtTime, number: int
) -> bool:
    """Whether two texts of a note differ at most in the read counts in their headers.

    Such counts are written by memoranda, so they are not an edit outside of it.

    before: the earlier text.
    after: the later text.
    number: the number of the change that wrote the earlier text.
    """
    history = memory.engine.ledger.history
    return after.digest in history.counted_versions(before.digest, number)
