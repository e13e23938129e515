"""The verb `restore`: write an older text of a note to its place, or to another path."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from memoranda.clock import parse_stamp
from memoranda.engine.engine import verb
from memoranda.engine.history.former_places import (
    PlacedChange,
    changes_of_note,
    departures,
    moved_by,
    place_of,
)
from memoranda.engine.history.log import LogVerbs
from memoranda.engine.history.past_privacy import PastPrivacy
from memoranda.engine.history.undo import concerns, is_upkeep
from memoranda.engine.history.verbs import HistoryVerbs
from memoranda.engine.transaction import read_or_none, root_of, source_at
from memoranda.engine.writing import as_file, scope_of
from memoranda.errors import (
    Ambiguous,
    CannotUndo,
    Exists,
    InvalidInput,
    NotFound,
    NotInHistory,
    Unusable,
)
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import Change, Location, Touched
from memoranda.note.model import ARCHIVE_PROJECT, GLOBAL, MEMORY_KEYS, MEMORY_PROJECTS
from memoranda.note.names import UUID, Looseness
from memoranda.sources import path_guard
from memoranda.sources.base import File
from memoranda.sources.folder import FolderSource
from memoranda.sources.step import StepKind


class _Replacement(NamedTuple):
    """A change that replaced or removed a text of the note, which may be the text to restore.

    step: the step of the change on the note. Its `old` is the SHA-256 of the replaced text.
    """

    change: Change
    step: Touched


@dataclass(frozen=True, slots=True)
class _Target:
    """Where the restored text is written.

    place: the project, the path, and the folder of the project.
    source: the folder that has the file.
    current: the file that is at the place now. None if no file is there.
    """

    place: Location
    source: FolderSource
    current: File | None

    @property
    def scope(self) -> str:
        """The scope of the note that is at the place now, or `global` if the place is empty."""
        if self.current is None:
            return GLOBAL
        return scope_of(self.current.data)


class Restoring:
    """One call of `Memory.restore`.

    session: the session of the caller.
    ref: the note.
    moment: restore the text that the note had at this time. None if no time was named.
    change: restore the text that the change with this number replaced. None if no change was named.
    to: the path to which the text is written. None means the note's own place.

    Without `moment` and `change`, the latest text is restored that differs from the present one.
    """

    def __init__(
        self,
        session: HistoryVerbs,
        ref: str,
        moment: datetime | None,
        change: int | None,
        to: str | None,
    ):
        self._session = session
        self._engine = session.engine
        self._history = session.engine.ledger.history
        self._ref = ref
        self._moment = moment
        self._change_number = change
        self._to = to
        # Whether the caller wants only the last change of the note to be taken back.
        self._names_no_text = moment is None and change is None and to is None

    def restore(self) -> tuple[str, int]:
        """Restore the text. Returns its place, and the number of the change that had replaced the
        text.

        Raises NotInHistory, CannotUndo, Exists, Unusable, InvalidInput, and the errors of `locate`.
        """
        # An archived memory is restored by taking it out of the archive, with its present text.
        if self._names_no_text:
            archived = self._archived_memory()
            if archived is not None:
                return self._bring_back(archived)
        session = self._session
        with session.change("restore", fresh=False) as transaction:
            # The text, and the place to which it is written.
            origin = session.locate(self._ref, looseness=Looseness.CASE)
            replacement = self._wanted_replacement(origin)
            data = self._replaced_text(replacement.step)
            target = self._target(origin)
            self._check_target(target)

            place = target.place
            # The note may have been private when it had this text.
            if not session.sees(scope_of(data)):
                raise NotInHistory(f"{place.project}/{place.path}")
            is_in_home = place.root == ""
            if is_in_home:
                # A graph file has no files to write.
                self._engine.source(place.project).check_writable()
                data = self._with_own_id(place, data)
            transaction.put(
                place.project,
                place.path,
                data,
                source=target.source,
                old=target.current,
                mode=replacement.step.mode,
                # A note that is private now stays so in the history.
                scope=replacement.step.scope if target.scope == GLOBAL else target.scope,
            )
        session.keep_reads(transaction.steps)
        return target.place.name, replacement.change.number

    def _replaced_text(self, step: Touched) -> bytes:
        """Return the text that a step replaced, from the history."""
        assert step.old is not None
        return self._history.text(step.old, f"{step.project}/{step.path}")

    def _archived_memory(self) -> NoteInfo | None:
        """Return the memory that the caller names, if it is archived. None if it is not."""
        info: NoteInfo | None = None
        with suppress(NotFound, Ambiguous):
            info = self._session.find_any(self._ref, looseness=Looseness.EXACT)
        if info is None or info.project != ARCHIVE_PROJECT:
            return None
        # Only its id asks for the memory itself. Its path or title asks for an older text of it.
        is_named_by_id = info.id.startswith(self._ref.strip().lower())
        return info if is_named_by_id else None

    def _bring_back(self, archived: NoteInfo) -> tuple[str, int]:
        """Take a memory out of the archive.

        Returns its place, and the number of the change that archived it. If the history no longer
        has this change, the number of the latest change is returned.
        """
        restored_note = self._session.bring_back(archived)
        last = self._history.last
        place = Location(archived.project, archived.path)
        # `last` is the change that just brought the memory back. The latest change before it
        # archived the memory.
        changes = self._history.changes_at(archived.project, archived.path, before=last)
        archiving_numbers = (
            change.number for change in changes if change.undoes is None and concerns(change, place)
        )
        name = f"{restored_note.project}/{restored_note.path}"
        return name, next(archiving_numbers, last)

    def _wanted_replacement(self, place: Location) -> _Replacement:
        """Return the change that replaced the text to restore. Raises NotInHistory."""
        past_privacy = self._session.past()
        replacements = self._replacements(place, past_privacy)
        if self._moment is not None:
            wanted = _first_after(self._moment, replacements)
        elif self._change_number is not None:
            # Only the texts of the named change are yielded.
            wanted = next(replacements, None)
        else:
            source = source_at(self._engine, place.project, place.root)
            present_file = read_or_none(source, place.path)
            wanted = _first_of_other_text(replacements, present_file)
        if wanted is None:
            raise NotInHistory(place.name)
        return wanted

    def _replacements(
        self, place: Location, past_privacy: PastPrivacy | None
    ) -> Iterator[_Replacement]:
        """Yield each change that replaced a text of the note at `place`, the newest first.

        Changes from before the note came to this place are included, and changes of other notes
        that were at the place. If the caller named a change, only this change is yielded.

        past_privacy: hides steps from the caller, which are left out. None for the owner.
        """
        of_note = self._steps_on_note(place)
        of_place = self._steps_at(place)
        last_yielded: tuple[int, Touched] | None = None
        for change, step in heapq.merge(of_note, of_place, key=lambda item: -item.change.number):
            if self._change_number is not None and change.number != self._change_number:
                continue
            # Most steps are in both.
            if (change.number, step) == last_yielded:
                continue
            last_yielded = (change.number, step)
            if _has_replaced_text(step) and self._session.may_see(change, step, past_privacy):
                yield _Replacement(change, step)

    def _steps_on_note(self, place: Location) -> Iterator[_Replacement]:
        """Yield the steps on the note at `place`, wherever it was, with their changes."""
        for placed in changes_of_note(self._session, place):
            for step in placed.change.texts():
                is_here = place_of(step) == placed.place
                # A step at the former place moved the note. It counts for a caller who names a change,
                # a time or a path. Otherwise the text before the last edit is meant, not the one
                # before a move.
                is_at_former_place = place_of(step) == placed.place_before
                if is_here or (is_at_former_place and not self._names_no_text):
                    yield _Replacement(placed.change, step)
            if _makes_note(placed):
                # Older changes at this place are about other notes.
                return

    def _steps_at(self, place: Location) -> Iterator[_Replacement]:
        """Yield the steps at `place`, with their changes.

        If a note is there now, steps on a note that went to another place are left out, unless the
        caller named a change. The note that is there must not get the text of another living note.
        """
        # The first change about the note that is there now; 0 for changes of all notes.
        first_number = 0
        has_living_note = self._is_file(place)
        leaves_out_other_notes = has_living_note and self._change_number is None
        if leaves_out_other_notes:
            departures_here = departures(self._session, place)
            first_number = max((departure.before for departure in departures_here), default=0)
        for change in self._history.changes_at(place.project, place.path):
            if change.number < first_number:
                return
            for step in change.texts():
                if step.place == place:
                    yield _Replacement(change, step)
            # A change that moved the note away moved another note, if one is there now.
            if leaves_out_other_notes and moved_by(change, place_of(place)) is not None:
                return

    def _is_file(self, place: Location) -> bool:
        """Whether a file is at a place."""
        source = source_at(self._engine, place.project, place.root)
        return read_or_none(source, place.path) is not None

    def _target(self, origin: Location) -> _Target:
        """Return where to write the restored text.

        origin: the note's own place.

        Raises InvalidInput if a file with the new name would not be a note.
        """
        project, path, root = origin
        source = source_at(self._engine, project, root)
        if self._to is None:
            return _Target(origin, source, read_or_none(source, path))

        # A text that was a note must be a note at its new place, too.
        was_note = source.is_note(path)
        named_project, to = self._named_project(self._to)
        if named_project is not None:
            project = named_project
            root = root_of(self._engine, project)
        path = path_guard.clean(to, project, hidden=True)
        source = source_at(self._engine, project, root)
        if was_note and not source.is_note(path):
            path = self._path_of_note(source, to, path)
        return _Target(Location(project, path, root), source, read_or_none(source, path))

    def _named_project(self, to: str) -> tuple[str | None, str]:
        """Split a destination that begins with a project: return the project, and the path in it.

        For example, `notes/ideas/a.md` gives `("notes", "ideas/a.md")`. If the destination does not
        begin with a project, the result is `(None, to)`.
        """
        name, _, path_in_project = to.partition("/")
        if path_in_project:
            for project in self._engine.sources:
                if project.lower() == name.lower():
                    return project, path_in_project
        return None, to

    def _path_of_note(self, source: FolderSource, to: str, path: str) -> str:
        """Return a path with `.md` added. Without it, the file would not be a note.

        source: the folder that would have the file.
        to: the path in it, as the caller wrote it.
        path: the same path, cleaned.

        Raises InvalidInput if `to` names a folder, or if the file would not be a note even with
        `.md`.
        """
        path_with_ending = f"{path}.md"
        names_folder = to.endswith("/")
        if names_folder or not source.is_note(path_with_ending):
            raise InvalidInput(
                f'"{source.name}/{to}" could not hold the note. Name it with .md at its end.'
            )
        return path_with_ending

    def _check_target(self, target: _Target) -> None:
        """Raise an error if the text may not be written to the target.

        Raises Unusable for a note that the caller may not see. Raises Exists if the new name is
        taken, and CannotUndo if the note was restored already.
        """
        name = f"{target.place.project}/{target.place.path}"
        if not self._session.sees(target.scope):
            raise Unusable(name)
        if self._to is not None:
            self._check_is_free(target)
        # A call without a change or a time restores the text before the last change. If that change
        # was such a call, the text would be the one that the call has just replaced.
        if target.current is None or not self._names_no_text:
            return
        last = self._last_change(target.place)
        if last is None or last.verb != "restore":
            return
        # If the present text is not from that change, somebody has edited it by hand.
        written_digests = {text.new for text in last.texts()}
        if target.current.etag in written_digests:
            remedy = (
                f"--change N or --at TIME names an older text (memory log {self._ref}), "
                "memory undo takes it back"
            )
            raise CannotUndo(f"{target.place.name} was restored already (#{last.number}); {remedy}")

    def _check_is_free(self, target: _Target) -> None:
        """Raise Exists or Unusable if the name that the caller gave is taken."""
        project, path, root = target.place
        if target.current is not None:
            raise Exists(f"{project}/{path}")
        if root:
            return
        # On a disk that ignores case, `plan.md` is the file of the note `Plan.md`.
        other = self._session.index.notes.in_other_case(project, path)
        if other is None:
            return
        if self._session.sees(other.scope):
            raise Exists(f"{project}/{other.path}")
        raise Unusable(f"{project}/{path}")

    def _last_change(self, place: Location) -> Change | None:
        """Return the latest change at a place. None if there is no such change.

        Changes of upkeep, which the program makes without being asked, do not count.
        """
        for change in self._history.changes_at(place.project, place.path):
            if concerns(change, place) and not is_upkeep(change):
                return change
        return None

    def _with_own_id(self, place: Location, data: bytes) -> bytes:
        """Return the bytes of a note, with a new id if another note has the same id by now.

        Two notes with the same id could not be told apart. Outside of memories, an id that is no
        UUID is a person's, and stays.
        """
        note = self._engine.parse(place.project, place.path, as_file(data))
        self._engine.fresh()
        if note is None or not note.own_id:
            return data
        may_change_id = place.project in MEMORY_PROJECTS or UUID.fullmatch(note.id) is not None
        if not may_change_id:
            return data
        twins = self._session.index.notes.with_ids([note.id], list(self._engine.sources))
        twin_places = {(info.project, info.path) for info in twins}
        # The only note with this id may be the one whose text is replaced.
        is_only_here = twin_places <= {(place.project, place.path)}
        if is_only_here:
            return data
        from uuid import uuid4

        from memoranda.note.edit import SetKeys

        try:
            return SetKeys({"id": str(uuid4())}, MEMORY_KEYS).apply(data.decode()).text.encode()
        except ValueError:
            # The header cannot be edited, so the note keeps its id.
            return data


def _first_after(moment: datetime, replacements: Iterator[_Replacement]) -> _Replacement | None:
    """Return the change that replaced the text that a note had at a moment.

    It is the first change after the moment. None if no change came after it.

    replacements: the newest comes first.
    """
    first_after: _Replacement | None = None
    for replacement in replacements:
        # Older changes follow, so the last change in this order is the first after the moment.
        if parse_stamp(replacement.change.time) > moment:
            first_after = replacement
    return first_after


def _first_of_other_text(
    replacements: Iterator[_Replacement], present_file: File | None
) -> _Replacement | None:
    """Return the first change whose replaced text is not the present text. None if there is none.

    replacements: the newest comes first.
    present_file: the file with the present text. None if there is no file.
    """
    for replacement in replacements:
        if present_file is None or replacement.step.old != present_file.etag:
            return replacement
    return None


def _has_replaced_text(step: Touched) -> bool:
    """Whether a step replaced or removed a text that the history still has."""
    return step.do != StepKind.MOVE and step.old is not None and step.kept


def _makes_note(placed: PlacedChange) -> bool:
    """Whether a change made the note that it is about, and did not bring it back."""
    change = placed.change
    if change.undoes is not None or change.verb == "restore" or placed.place_before is not None:
        return False
    return any(step.makes_file and place_of(step) == placed.place for step in change.files)


class RestoreVerbs(LogVerbs):
    """The verb `restore`."""

    @verb
    def restore(
        self,
        ref: str,
        *,
        at: datetime | None = None,
        change: int | None = None,
        to: str | None = None,
    ) -> tuple[str, int]:
        """Bring an older text of a note back (see `Memory.restore`).

        ref: the note.
        at: the time at which the note had the text. None if no time is named.
        change: the number of the change that replaced the text. None if no change is named.
        to: the place to which the text is written, as `project/path`. None means the note's own.

        Returns the place of the note, and the number of the change that had replaced the text.
        """
        return Restoring(session=self, ref=ref, moment=at, change=change, to=to).restore()
