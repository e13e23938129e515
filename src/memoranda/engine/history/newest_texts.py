"""Lists notes by when their text was written, the newest first.

The index has the time of the last change of each file, which upkeep also makes: it links notes, and
folds counts into headers. The history knows which changes wrote text. An undo writes none: the note
goes back to the place that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from memoranda.engine.contents import rows_passing
from memoranda.engine.engine import verb
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.history.whereabouts import where_now
from memoranda.errors import MemorandaError
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Standing
from memoranda.query import Query
from memoranda.sources.step import StepKind

# Changes of the history that are looked at. Notes whose text is older are listed by their creation.
_MAX_CHANGES = 20_000
# Verbs of changes that write the text of a note. Others move it, change its header, or remove it.
_WRITING = (
    *("write", "create", "edit", "overwrite", "merge", "supersede", "restore"),
    *("import", "ingest", "remind", "consolidate"),
)


class _WrittenNote(NamedTuple):
    """A note, and the time when its text was written, in ISO 8601."""

    time: str
    info: NoteInfo


@verb
def newest_texts(
    memory: HistoryVerbs, query: Query, limit: int, upkeep_face: str
) -> tuple[list[NoteInfo], int]:
    """Return the notes that pass a query. Notes whose text was written last come first.

    The history says when the text of a note was written. For a note that no change wrote, its
    creation counts, or the change of its file if another program wrote it.

    limit: how many notes are returned at most.
    upkeep_face: the interface of the jobs of upkeep, which write no text.

    Returns the notes, and how many notes pass in all.
    """
    passing_rows = set(rows_passing(memory, query))
    # By row, each note with the time of its latest text. The changes come newest first.
    notes: dict[int, _WrittenNote] = {}
    for note in _notes_written_by_changes(memory, upkeep_face):
        if note.info.row in passing_rows:
            notes.setdefault(note.info.row, note)
        if len(notes) >= limit:
            break

    # Add notes without a history. To a full list, only those newer than its oldest note are added.
    is_full = len(notes) >= limit
    oldest_time = min((note.time for note in notes.values()), default="")
    for note in _newest_by_files(memory, query, limit):
        if not is_full or note.time > oldest_time:
            notes.setdefault(note.info.row, note)
    newest_first = sorted(notes.values(), key=lambda note: note.time, reverse=True)
    return [note.info for note in newest_first[:limit]], len(passing_rows)


def _newest_by_files(memory: HistoryVerbs, query: Query, limit: int) -> Iterator[_WrittenNote]:
    """Yield the newest notes that pass a query, by the times that their files have.

    Some of them are also in the history. Notes that another program wrote come first.
    """
    notes_by_programs, _ = memory.list(query.replace(by="file"), limit=limit)
    for info in notes_by_programs:
        yield _WrittenNote(info.updated or info.changed, info)
    newest_notes, _ = memory.list(query.replace(order="created"), limit=limit)
    for info in newest_notes:
        yield _WrittenNote(info.created, info)


def _notes_written_by_changes(memory: HistoryVerbs, upkeep_face: str) -> Iterator[_WrittenNote]:
    """Yield the notes whose text a change wrote, with its time, the newest change first.

    Changes that were undone do not count.
    """
    changes = memory.engine.ledger.history.changes_besides(upkeep_face)
    standing = Standing()
    for change in islice(changes, _MAX_CHANGES):
        if not standing.counts(change):
            continue
        info = _note_written(memory, change)
        if info is not None:
            yield _WrittenNote(change.time, info)


def _note_written(memory: HistoryVerbs, change: Change) -> NoteInfo | None:
    """Return the note whose text a change wrote, where it is now. None if it wrote none."""
    place = (change.project, change.path)
    wrote_text = change.verb in _WRITING and any(
        touched.do == StepKind.PUT and (touched.project, touched.path) == place
        for touched in change.files
    )
    if not wrote_text:
        return None
    try:
        return memory.find(place)
    except MemorandaError:
        return where_now(memory, *place, only_same=True)
