"""How a change appears in the index once its files are on disk.

The notes of a large change are read, marked and made into rows of the index once, before others
have to wait for the change (`PreparedNotes`). Under the home's lock, `PreparedNotes.still_right` only
checks that nothing changed on which this work relied, and `Shown` writes the rows.

The rows of a change are one transaction of the index. So readers see all of a change, or nothing of
it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memoranda.engine.engine import Engine
from memoranda.index.rows import NotIndexable, at_note
from memoranda.index.writer import Prepared, prepare
from memoranda.ledger.change import Touched
from memoranda.note.model import Note, Provenance
from memoranda.sources.base import File, Stamp, sha256
from memoranda.sources.layout import PRIVATE
from memoranda.sources.source import Source
from memoranda.sources.step import Step, StepKind
from memoranda.text.unicode import sqlite_text

# The nanoseconds between the times of two files of one change. The index has times in microseconds.
_BETWEEN_FILES = 1_000


@dataclass(slots=True)
class PreparedNote:
    """The note that a step will write or move.

    step: the step of a change.
    path: the path that the note will have.
    data: the bytes of the note.
    stamp: the stamp that its file will have. The inode of a new file is not known yet.
    source: the source of its project.
    note: the note as parsed from `data`. None until then.
    rows: its rows of the index. None until they are computed.
    """

    step: Step
    path: str
    data: bytes
    stamp: Stamp
    source: Source
    note: Note | None = None
    rows: Prepared | None = None


class PreparedNotes:
    """The notes that the steps of a change will write or move.

    Preparing them uses nothing of the home that another change may alter, so no lock is needed.

    project_ids: the ids of the projects in the index, by the name in lower case.
    """

    def __init__(self, engine: Engine, project_ids: Mapping[str, int]):
        self._engine = engine
        self._gate = engine.gate
        self._settings = engine.settings
        self._project_ids = project_ids
        # The id that the index probably gives to a new project. If this guess is wrong, the rows
        # are computed again, which only costs time.
        self._next_id = 1 + max(project_ids.values(), default=0)
        # By (project, path).
        self._prepared: dict[tuple[str, str], PreparedNote] = {}

    def prepare(self, steps: Sequence[Step]) -> None:
        """Read the notes that these steps write or move, mark them, and compute their rows.

        A note has the time when its file was written. So this sets `Step.written_ns` of the steps
        that write.

        A note that cannot be read is left out. It is read again after the change, where the error
        is reported.
        """
        written_ns = time.time_ns() - len(steps) * _BETWEEN_FILES
        for step in steps:
            source = self._engine.sources.get(step.project)
            if source is None:
                continue
            if step.old is not None and moves_note(step, source):
                moved = PreparedNote(
                    step=step, path=step.to, data=step.old.data, stamp=step.old.stamp, source=source
                )
                self._prepared[step.project, step.to] = moved
                continue
            if step.data is None or not writes_note(step, source):
                continue
            step.written_ns = written_ns
            written_ns += _BETWEEN_FILES
            stamp = Stamp(len(step.data), step.written_ns, inode=0)
            prepared = PreparedNote(
                step=step, path=step.path, data=step.data, stamp=stamp, source=source
            )
            self._prepared[step.project, step.path] = prepared
        # Each kind of work is done for all notes before the next kind, which takes less time: the
        # caches of the processor serve the next note.
        for work in (self._read, self._mark, self._make_rows):
            self._do_for_all(work)

    def _do_for_all(self, work: Callable[[PreparedNote], None]) -> None:
        """Do a part of the work for all notes. Notes that cause an error are dropped."""
        for key, prepared in list(self._prepared.items()):
            try:
                with at_note(prepared.path, prepared.stamp):
                    work(prepared)
            except NotIndexable:
                del self._prepared[key]

    def _read(self, prepared: PreparedNote) -> None:
        """Read the note from its bytes. A file that is not a note is dropped."""
        project = prepared.step.project
        file = File(prepared.data, prepared.stamp, sha256(prepared.data))
        prepared.note = self._engine.parse(project, prepared.path, file)
        if prepared.note is None:
            del self._prepared[project, prepared.path]

    def _mark(self, prepared: PreparedNote) -> None:
        """Mark the note if it seems to hold injected instructions."""
        assert prepared.note is not None
        prepared.note.suspicious = self._gate.suspicious(prepared.note)

    def _make_rows(self, prepared: PreparedNote) -> None:
        """Compute the rows of the note, as if its permalink was free and needed no number."""
        note = prepared.note
        assert note is not None
        project = self._project_ids.get(note.project.casefold(), self._next_id)
        prepared.rows = prepare(note, prepared.stamp, project, sqlite_text(note.permalink))

    def still_right(self, step: Step, stamp: Stamp | None) -> PreparedNote | None:
        """Return the prepared note that a step has written or moved, if it is still right.

        None if it was not prepared, or if something has changed since that it depends on: the
        settings, the gate's rules, the folder of the project, the bytes or the time of the file.

        stamp: the stamp of the file at its place. None if there is none.
        """
        path = step.to if step.do == StepKind.MOVE else step.path
        prepared = self._prepared.get((step.project, path))
        if prepared is None or prepared.step is not step or stamp is None:
            return None
        engine = self._engine
        has_same_rules = engine.settings is self._settings and engine.gate is self._gate
        has_same_source = engine.sources.get(step.project) is prepared.source
        if step.do == StepKind.MOVE:
            # The ledger has compared the text with `step.old`
            has_same_file = stamp.is_same_file(prepared.stamp)
        else:
            has_same_file = step.data is prepared.data and stamp.mtime_ns == prepared.stamp.mtime_ns
        if has_same_rules and has_same_source and has_same_file:
            return prepared
        return None


class Shown:
    """The effect of a change on the index.

    removed: the places (project, path) from which the change took the note away.
    """

    def __init__(self, engine: Engine, prepared_notes: PreparedNotes | None = None):
        self._engine = engine
        self._prepared_notes = prepared_notes
        # By (project, path) of each written file: the note with the stamp of its file. None for a
        # file that is not a note.
        self._written: dict[tuple[str, str], tuple[Note, Stamp] | None] = {}
        # By the same key, where the text comes from, and the rows computed before the change.
        self._provenance: dict[tuple[str, str], Provenance] = {}
        self._rows: dict[tuple[str, str], Prepared] = {}
        self.removed: list[tuple[str, str]] = []

    def put(self, step: Step, provenance: Provenance) -> None:
        """Record that a step wrote a file.

        provenance: where the text of the file comes from.
        """
        key = (step.project, step.path)
        file = file_of(step)
        note = self._prepared_note(step, step.path, step.stamp)
        if note is None and self._engine.source(step.project).is_note(step.path):
            note = self._engine.indexable(step.project, step.path, file)
        self._written[key] = (note, file.stamp) if note is not None else None
        self._provenance[key] = provenance

    def _prepared_note(self, step: Step, path: str, stamp: Stamp | None) -> Note | None:
        """Return the note that a step wrote or moved. None if it has to be read from its file.

        It need not be read if it was prepared before the change, and if nothing has changed since
        that it depends on. Then its rows need not be computed either.

        path, stamp: where it is now, and the stamp of its file. None if there is no file.
        """
        # An earlier step of the change may have brought another text to the place.
        self._rows.pop((step.project, path), None)
        if self._prepared_notes is None:
            return None
        prepared = self._prepared_notes.still_right(step, stamp)
        if prepared is None:
            return None
        if prepared.rows is not None:
            self._rows[step.project, path] = prepared.rows
        # Another file at this place may have been left out of the index.
        self._engine.freshness.left_out.forget((step.project, path))
        return prepared.note

    def _moved(self, step: Step, source: Source, to: str) -> tuple[Note, Stamp] | None:
        """Return the note that was moved to `to`, and the stamp of its file.

        None if what is there is not in the index: a link, a folder, or a file that is not a note.
        """
        stamp = source.stamp(to) if source.is_note(to) else None
        if stamp is None:
            return None
        note = self._prepared_note(step, to, stamp) if to == step.to else None
        if note is None:
            return self._engine.load(source, to)
        note.provenance = self._engine.written_by(step.project, to, note.etag)
        return note, stamp

    def move(self, step: Step, touched: Touched) -> None:
        """Record that a file or a folder was moved. Notes in it keep their provenance.

        step: the step that did it.
        touched: what the step did.
        """
        project = touched.project
        source = self._engine.source(project)
        # The index still has the notes at their old places.
        moved_notes = self._engine.index.notes.below(project, touched.path)
        provenance_by_path = {info.path: info.provenance for info in moved_notes}
        # A file that was not in the index may be a note under its new name.
        old_paths = dict.fromkeys([*provenance_by_path, touched.path])
        for old_path in old_paths:
            new_path = touched.to + old_path[len(touched.path) :]
            self.removed.append((project, old_path))
            self._written[project, new_path] = self._moved(step, source, new_path)
            if old_path in provenance_by_path:
                self._provenance[project, new_path] = provenance_by_path[old_path]

    @property
    def notes(self) -> dict[tuple[str, str], Note]:
        """The notes that were written, by place (project, path)."""
        notes: dict[tuple[str, str], Note] = {}
        for place, loaded in self._written.items():
            if loaded is not None:
                note, _ = loaded
                notes[place] = note
        return notes

    def bring_into_index(self) -> None:
        """Put the written notes into the index, and take the removed ones out.

        The index gives each written note its permalink.
        """
        index = self._engine.index
        written_notes: list[tuple[Note, Stamp]] = []
        for place in self.removed:
            index.remove(*place)
        for place, loaded in self._written.items():
            # The file is not a note, or not any more.
            if loaded is None:
                index.remove(*place)
                continue
            note, stamp = loaded
            note.provenance = self._provenance.get(place, note.provenance)
            written_notes.append((note, stamp))
        index.put_all(written_notes, self._rows)


def writes_note(step: Step, source: Source) -> bool:
    """Whether a step writes the file of a note.

    source: the source of the step's project.
    """
    return step.do == StepKind.PUT and step.project != PRIVATE and source.is_note(step.path)


def moves_note(step: Step, source: Source) -> bool:
    """Whether a step moves a file to the place of a note.

    source: the source of the step's project.
    """
    return step.do == StepKind.MOVE and step.project != PRIVATE and source.is_note(step.to)


def file_of(step: Step) -> File:
    """Return the file that a step wrote, as if it had been read from the disk.

    step: a step of kind PUT, after it was carried out.
    """
    assert step.data is not None
    assert step.stamp is not None
    assert step.etag is not None
    return File(step.data, step.stamp, step.etag)
