"""Read and undo changes.

`HistoryVerbs` says which changes the caller may see, and returns the texts before and after a change
(`Revision`). It chooses the changes to undo; undo.py undoes them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from memoranda.clock import parse_stamp, stamp
from memoranda.engine.engine import verb
from memoranda.engine.history.past_privacy import PastPrivacy
from memoranda.engine.history.undo import (
    ENTRIES,
    EXPIRE,
    Later,
    Undo,
    concerns,
    is_blank,
    is_upkeep,
)
from memoranda.engine.notes import NoteVerbs
from memoranda.engine.transaction import Transaction, root_of, source_at
from memoranda.engine.writing import as_file, id_list
from memoranda.errors import (
    Ambiguous,
    CannotUndo,
    InvalidInput,
    MemorandaError,
    NoSuchChange,
    NotFound,
    OutsideError,
    UndoObstacle,
)
from memoranda.index.rows import NoteInfo
from memoranda.ledger.change import (
    ERASE,
    FOLD,
    TAKEN_BACK,
    Change,
    Location,
    Touched,
    undone_numbers,
)
from memoranda.ledger.history import PlacedStep
from memoranda.note.model import (
    MEMORY_PROJECTS,
)
from memoranda.note.names import ID_DIGITS, Looseness
from memoranda.sources import path_guard
from memoranda.sources.base import File
from memoranda.sources.json_rows import PASSING
from memoranda.sources.step import Step, StepKind
from memoranda.text.pattern import lazy_pattern

_ANOTHER = "; memory undo N takes back another change"
# The verbs of changes that delete notes.
_DELETING = ("delete", EXPIRE, "decay")
# The projects whose notes have a count of reads in their headers.
_PROJECTS_WITH_COUNTS = frozenset((*MEMORY_PROJECTS, ENTRIES))
# The id of a memory, or at least the first eight digits of an id.
_ID_BEGIN = lazy_pattern(r"[0-9a-f]{8}[0-9a-f-]*")


def undone_by_change(change: Change) -> list[int]:
    """Return the numbers of the changes that an undo undid.

    If the undo undid a run of a job, only the number of the first change is returned.
    """
    return undone_numbers(change.undoes, change.details)


@dataclass(frozen=True, slots=True)
class Revision:
    """One file that a change touched, with its texts before and after the change.

    A text is None if the file did not exist then, or if the history does not keep the text.
    """

    change: Change
    touched: Touched
    before: str | None
    after: str | None

    @property
    def is_text_lost(self) -> bool:
        """Whether the text before or after the change is missing in the history.

        The text after a change is lost if an editor saved the file before our next change, and the
        index no longer had the text. The texts of entries with a time to live are never kept.
        """
        if self.touched.do == StepKind.MOVE and self.touched.new is None:
            return False
        is_old_text_lost = self.before is None and self.touched.old is not None
        is_new_text_lost = self.after is None and self.touched.new is not None
        return is_old_text_lost or is_new_text_lost


class HistoryVerbs(NoteVerbs):
    """The verb `undo`, and what the other verbs need to read the history."""

    def changes_at(self, place: Location, *, before: int | None = None) -> Iterator[Change]:
        """Yield the changes at a place that `log` lists for the caller, the newest first.

        before: yield only changes with lower numbers; None for all.
        """
        past_privacy = self.past()
        for change in self.engine.ledger.history.changes_at(
            place.project, place.path, before=before
        ):
            visible_change = self.listed_part(change, past_privacy)
            if visible_change is not None and concerns(visible_change, place):
                yield visible_change

    def listed_part(self, change: Change, past_privacy: PastPrivacy | None) -> Change | None:
        """Return the part of a change that `log` lists for the caller. None if it lists nothing.

        past_privacy: says which steps are hidden from the caller. None for the owner, who sees all.
        """
        # Counted reads written into headers are nobody's change. A blank change was erased.
        if change.verb == FOLD or is_blank(change):
            return None
        if not self._is_visible(change, past_privacy):
            return None
        return self._seen_part(change, past_privacy)

    def past(self) -> PastPrivacy | None:
        """Return which parts of the history are hidden from the caller.

        None means that the caller is the owner, who sees everything.
        """
        if self.agent is None:
            return None
        self.engine.fresh()
        return PastPrivacy(self)

    def undo_in(self, transaction: Transaction) -> Undo:
        """Return an `Undo` for a transaction.

        Its errors name only changes that the caller may see.
        """
        is_visible = partial(self._is_visible, past_privacy=self.past())
        return Undo(self, transaction, is_visible)

    def _is_visible(self, change: Change, past_privacy: PastPrivacy | None) -> bool:
        """Whether the caller may see a change: all its files that count (`_files_that_count`).

        Only the owner sees erasures.

        past_privacy: says which steps are hidden from the caller. None for the owner, who sees all.
        """
        if change.verb == ERASE:
            # It names notes of any project, also of those that are not open in a process that is
            # limited to some projects.
            return self.agent is None and not self.engine.only
        return all(
            self.may_see(change, file, past_privacy) for file in self._files_that_count(change)
        )

    def _files_that_count(self, change: Change) -> Sequence[Touched]:
        """Return the files of a change that decide whether the caller may see the change.

        If a note was deleted, links to it were removed from other memories. These memories do not
        count.
        """
        place = (change.project, change.path)
        own_files = [file for file in change.files if (file.project, file.path) == place]
        # All files count if none of them is the one that the change is listed under, and in a
        # process that is limited to some projects.
        is_limited = bool(self.engine.only)
        if not own_files or is_limited:
            return change.files
        if change.verb in _DELETING:
            return own_files
        is_undo = change.undoes is not None
        if is_undo:
            # An undo of a deletion puts links back into other memories, which do not count either.
            # A file without an old text is one that the undo brought back.
            return [file for file in change.files if file in own_files or file.old is None]
        return change.files

    def may_see(
        self, change: Change | PlacedStep, touched: Touched, past_privacy: PastPrivacy | None
    ) -> bool:
        """Whether the caller may see the effect of a change on a file.

        The project of the file must be open in this process. And the note must not have been
        private to another agent at any time since the change.

        touched: the step on the file.
        past_privacy: the result of `past`. None for the owner.
        """
        if self.engine.only and touched.project not in self.engine.sources:
            return False
        return past_privacy is None or not past_privacy.hides(change, touched)

    def locate(self, ref: str, *, looseness: Looseness = Looseness.SIGNS) -> Location:
        """Return the place of a note or file. The file may be gone, if the history knows it.

        ref: `project/path`, the absolute path of a file, the beginning of an id, or a name that
            `find` understands. If both this home and a folder elsewhere have the file, the file of
            this home is meant.
        looseness: how much a name may differ from the note's own: in nothing (EXACT), in case
            (CASE), or also in signs and blanks (SIGNS).

        Raises NotFound, OutsideError, and Ambiguous if the history knows several such files.
        """
        # A path.
        own_location = self._own_location(ref, looseness)
        # A log of either note does no harm, so only changes are refused.
        if own_location is not None and looseness is not Looseness.SIGNS:
            self.check_not_in_archive(ref, own_location.project, own_location.path)
        place = self._place_by_path(ref, own_location)
        if place is not None:
            return place

        # Where nothing is changed, eight digits of an id mean the memory, whatever copies have it.
        if looseness is Looseness.SIGNS and _ID_BEGIN.fullmatch(ref):
            with suppress(NotFound, Ambiguous):
                memory = self.memory_id(ref)
                if memory.id.startswith(ref):
                    return self._location_of(memory)

        # A note that is there, by its own id or name.
        with suppress(NotFound, InvalidInput, OutsideError):
            return self._location_named(ref, Looseness.EXACT, own_location)

        # The id of a memory that is gone or merged, or the beginning of one.
        place = self.place_by_id(ref)
        if place is not None:
            return place

        try:
            return self._location_named(ref, looseness, own_location)
        except NotFound:
            if own_location is None:
                raise
            return own_location

    def _location_named(
        self, ref: str, looseness: Looseness, own_location: Location | None
    ) -> Location:
        """Return the place of the note that a reference names. Raises the errors of `find`.

        looseness: how much the name may differ from the note's own: EXACT, CASE or SIGNS.
        own_location: the place in this home that `ref` means as a path. A permalink may look like
            such a path. If it is the permalink of several notes, the path is meant.
        """
        try:
            info = self._memory_or_note(ref, looseness)
        except Ambiguous:
            if own_location is None:
                raise
            return own_location
        # What is restored by the id of a merged memory is not the one that it was merged into.
        merged_ids = id_list(info.header.get("merged"))
        is_of_merged = any(merged_id.startswith(ref) for merged_id in merged_ids)
        if looseness is Looseness.CASE and is_of_merged:
            raise NotFound(ref, suggestions=[info.permalink])
        return self._location_of(info)

    def _location_of(self, info: NoteInfo) -> Location:
        """Return the place of a note, as the ledger names it."""
        return Location(info.project, info.path, root_of(self.engine, info.project))

    def _own_location(self, ref: str, looseness: Looseness) -> Location | None:
        """Return the place in this home that `project/path` means, whether or not a file is there.

        looseness: how much the name of the project may differ, as `project_name` reads it.

        None means that this home has no such project. Raises OutsideError.
        """
        project, _, path = ref.partition("/")
        if not path or ref.startswith("memory://"):
            return None
        name = self.project_called(project, looseness=looseness)
        if name is None:
            return None
        clean_path = path_guard.clean(path, name, hidden=True)
        return Location(name, clean_path, root_of(self.engine, name))

    def _place_by_path(self, ref: str, own_location: Location | None) -> Location | None:
        """Return the place that `project/path` or an absolute path means. None if no such place is
        known.

        own_location: the result of `_own_location` for `ref`.

        Raises Ambiguous, OutsideError.
        """
        project, _, path = ref.partition("/")
        if not path or ref.startswith("memory://"):
            return None
        if own_location is not None:
            name, clean_path, _ = own_location
            if os.path.lexists(os.path.join(self.engine.source(name).root, clean_path)):
                return own_location
        elif ref.startswith("/"):
            clean_path = ref
        elif project in (".", ".."):
            return None
        else:
            clean_path = path_guard.clean(path, project, hidden=True)
        return self._place_in_history(ref, project, clean_path, own_location)

    def _place_in_history(
        self, ref: str, project: str, path: str, own_location: Location | None
    ) -> Location | None:
        """Return the place of a file that the history knows. None if it knows no such place.

        ref: the whole reference, as the caller wrote it.
        project: its part before the first `/`.
        path: its part after the first `/`.
        own_location: the place in this home that `ref` means; None if this home has no such
            project. If the history knows this place, it is returned even if it knows others.

        Raises Ambiguous if the history knows several such places in folders elsewhere.
        """
        # The places are the keys. A dict keeps their order, unlike a set.
        places_elsewhere: dict[Location, None] = {}
        for touched in self._seen_steps(self.engine.ledger.history.steps_at(path, ref)):
            # A move has two paths. Other steps have an empty `to`.
            for touched_path in filter(None, (touched.path, touched.to)):
                place = touched.place._replace(path=touched_path)
                if place == own_location:
                    return own_location
                is_elsewhere = place.root != ""
                is_named = (place.project.lower(), place.path) == (project.lower(), path)
                if is_elsewhere and (is_named or place.name == ref):
                    places_elsewhere[place] = None
        places = list(places_elsewhere)
        if len(places) > 1:
            raise Ambiguous(ref, [place.name for place in places])
        return places[0] if places else None

    def place_by_id(self, ref: str) -> Location | None:
        """Return the last place of the memory whose id begins with `ref`. None if it is unknown.

        The name of a memory's file has the first digits of the id. So the history can find the
        file, and the text that it had says whether the rest of the id fits, too. Raises Ambiguous
        if the ids of several memories fit.
        """
        if not _ID_BEGIN.fullmatch(ref):
            return None
        # Where each memory was last, by its id. The id is `ref` if no text is kept.
        places: dict[str, Location] = {}
        seen_places: set[Location] = set()
        steps = self.engine.ledger.history.steps_with_id(ref[:ID_DIGITS])
        for touched in self._seen_steps(steps):
            if touched.place in seen_places:
                continue
            seen_places.add(touched.place)
            note_id = self.id_in_text(touched) or ref
            if note_id.startswith(ref):
                places.setdefault(note_id, touched.place)
        if len(places) > 1:
            raise Ambiguous(ref, sorted(places), is_id=True)
        return next(iter(places.values()), None)

    def id_in_text(self, touched: Touched) -> str | None:
        """Return the id in the text that a step replaced or wrote. None if no such text is kept."""
        history = self.engine.ledger.history
        for digest in filter(None, (touched.old, touched.new)):
            # `has_text` asks only this machine. With notes in PostgreSQL, most texts are elsewhere.
            try:
                data = history.text(digest, touched.path)
            except NotFound:
                continue
            note = self.engine.parse(touched.project, touched.path, as_file(data))
            if note is not None and note.own_id:
                return note.id
        return None

    def _seen_steps(self, steps: Iterable[PlacedStep]) -> Iterator[Touched]:
        """Yield the steps that the caller may see."""
        past_privacy = self.past()
        for step in steps:
            if self.may_see(step, step.touched, past_privacy):
                yield step.touched

    def last_change(self, ignored_face: str) -> datetime | None:
        """Return when a person or an agent last changed something. None if the history has no such
        change.

        Changes of upkeep and changes that the caller may not see do not count. Edits by hand are
        not in the history.

        ignored_face: an interface whose changes do not count either, such as `cli`.
        """
        past_privacy = self.past()
        for change in self.engine.ledger.history.changes_besides(ignored_face):
            if is_upkeep(change):
                continue
            if past_privacy is None or self._is_visible(change, past_privacy):
                return parse_stamp(change.time)
        return None

    def purge_history(self) -> int:
        """Forget changes older than the setting `history.days`, and return how many were forgotten."""
        return self.engine.purge_history()

    @verb
    def undo_run(self, run: int) -> tuple[Change, list[Change]]:
        """Undo all changes of a run of a job, except those undone already, as one change.

        run: the number of the run.

        Returns the new change, and the changes that it undid. Raises CannotUndo.
        """
        with self.engine.writing():
            past_privacy = self.past()
            history = self.engine.ledger.history
            run_changes = [
                change for change in history.changes_of_run(run) if change.undoes is None
            ]
            # A run that the caller may not see does not exist for the caller.
            is_visible = all(self._is_visible(change, past_privacy) for change in run_changes)
            if not run_changes or not is_visible:
                raise CannotUndo(f"There is no run #{run}.")
            not_undone = [change for change in run_changes if history.undone_by(change) is None]
            if not not_undone:
                raise CannotUndo("it was undone", f"run #{run}")
            return self._undo_as_one(not_undone, f"run #{run}", run), not_undone

    @verb
    def count_left_of_run(self, run: int) -> int:
        """Return how many changes of a run of a job are not undone. 0 if the caller may not see it.

        run: the number of the run.
        """
        past_privacy = self.past()
        history = self.engine.ledger.history
        left = [
            change
            for change in history.changes_of_run(run)
            if change.undoes is None and history.undone_by(change) is None
        ]
        is_visible = all(self._is_visible(change, past_privacy) for change in left)
        return len(left) if is_visible else 0

    @verb
    def undo_together(self, numbers: Collection[int]) -> Change:
        """Undo several changes as one new change, and return the new change.

        numbers: the numbers of the changes. None of them may be undone already.

        Raises CannotUndo, also if a change that is not among them has touched the same notes later.
        """
        with self.engine.writing():
            past_privacy = self.past()
            # The latest change is undone first.
            changes = [
                self._numbered_change(number, past_privacy)
                for number in sorted(set(numbers), reverse=True)
            ]
            if not changes:
                raise CannotUndo("There is nothing to undo.")
            if any(file.do == StepKind.LINES for change in changes for file in change.files):
                raise CannotUndo("changes of lines are undone one by one")
            refusal = self.refusal_of_undos(changes)
            if refusal is not None:
                raise refusal
            return self._undo_as_one(changes, f"#{changes[-1].number}")

    @verb
    def undo_changes_of(
        self,
        agent: str,
        since: datetime | None = None,
        project: str | None = None,
        *,
        session: str | None = None,
    ) -> tuple[Change, list[Change]]:
        """Undo all changes of an agent, except those undone already, as one change.

        since: undo only changes made after this time; None for all.
        project: undo only changes in this project; None for all.
        session: undo only changes of this session of the agent's client; None for all.

        Returns the new change, and the changes that it undid, the latest first. Raises CannotUndo
        if no change can be undone, or if somebody else has changed the same notes later.
        """
        with self.engine.writing():
            if project is not None:
                project = self.source_named(project).name
            changes = [*self._standing_changes_of(agent.lower(), since, project, session)]
            if not changes:
                raise CannotUndo(f"There is no change of {agent} to undo.")
            return self._undo_as_one(changes, f"the changes of {agent}"), changes

    def _standing_changes_of(
        self, agent: str, since: datetime | None, project: str | None, session: str | None
    ) -> Iterator[Change]:
        """Yield the changes of an agent that can be undone, the newest first.

        since: only changes made since this time; None for all.
        project: only changes in this project; None for all.
        session: only changes of this session of the agent's client; None for all.
        """
        past_privacy = self.past()
        history = self.engine.ledger.history
        for change in history.changes_by(agent):
            # The changes come newest first, so all others are older still.
            if since is not None and parse_stamp(change.time) < since:
                return
            session_of_change = (change.by or {}).get("session")
            is_of_project = project is None or project == change.project
            is_of_session = session is None or session == session_of_change
            is_work = change.undoes is None and not is_upkeep(change) and not is_blank(change)
            if not (is_of_project and is_of_session and is_work):
                continue
            if self._is_visible(change, past_privacy) and history.undone_by(change) is None:
                yield change

    def _undo_as_one(self, changes: Sequence[Change], name: str, run: int | None = None) -> Change:
        """Undo changes as one new change, and return the new change. Raises CannotUndo.

        changes: the changes to undo, the latest first.
        name: the name of these changes in errors, such as `run #3`.
        run: the number of the run that these changes belong to; None if they are not a run.
        """
        first = changes[-1]
        numbers = [change.number for change in changes]
        with self.change("undo", (first.project, first.path), fresh=False) as transaction:
            # The undo is listed under the place of the first change, and has its number.
            transaction.undoes = first.number
            transaction.run = run
            # The number of a run tells its changes. Without one, all of them are recorded.
            if run is None and len(changes) > 1:
                transaction.details = {TAKEN_BACK: numbers}
            undo = self.undo_in(transaction)
            for change in changes:
                undo.take_back(change, together=numbers)
            undo.finish()
            if not transaction.steps:
                raise CannotUndo(
                    "nothing of it is left",
                    name,
                    number=first.number if len(changes) == 1 else None,
                    obstacle=UndoObstacle.NOTHING_LEFT,
                )
        self.keep_reads(transaction.steps)
        assert transaction.done is not None
        return self._seen_part(transaction.done, self.past())

    def _seen_part(self, change: Change, past_privacy: PastPrivacy | None) -> Change:
        """Return a copy of a change with only the files that the caller may see.

        past_privacy: says which steps are hidden from the caller. None for the owner, who sees all.
        """
        files = [file for file in change.files if self.may_see(change, file, past_privacy)]
        return replace(change, files=files)

    def keep_reads(self, steps: Sequence[Step]) -> None:
        """Keep the read counts of notes whose texts were replaced by older texts.

        The read count is in the header of a note, so an older text has a lower count. The
        difference is added to the log of reads that are not yet in the header. So no read is lost.

        steps: the steps that replaced the texts.
        """
        counts_before = self._read_counts(
            (step, step.old) for step in steps if step.do in (StepKind.PUT, StepKind.REMOVE)
        )
        counts_now = self._read_counts(
            (step, as_file(step.data)) for step in steps if step.data is not None
        )
        # If the ids differ, memories were merged or separated. Then the counts before and after
        # cannot be compared.
        if counts_before.keys() != counts_now.keys():
            return
        for note_id, count in counts_now.items():
            lost_count = counts_before[note_id] - count
            if lost_count > 0:
                self.engine.reads.count_read(note_id, lost_count)
            elif lost_count < 0:
                # An undo of an undo brings a higher count back, whose reads are in the log by now.
                self._take_off_pending_reads(note_id, -lost_count)

    def _take_off_pending_reads(self, note_id: str, number: int) -> None:
        """Take reads off the log, because the header of the note counts them again.

        note_id: the id of the note.
        number: how many reads to take off. If the log has fewer, it has none afterwards.
        """
        reads = self.engine.reads
        pending_count = reads.counts([note_id])[note_id]
        last_use = reads.used([note_id]).get(note_id)
        # The log can only be added to. So the note begins again, with its last use.
        reads.restart(note_id)
        if last_use is not None:
            reads.record_use([note_id], datetime.fromtimestamp(last_use, UTC))
        reads.count_read(note_id, max(0, pending_count - number))

    def _read_counts(self, files: Iterable[tuple[Step, File | None]]) -> dict[str, int]:
        """Return the read counts in the headers of memories and entries, by id.

        files: pairs of a step and a file: the file that the step replaced, or the file that it
            wrote.
        """
        counts: dict[str, int] = {}
        for step, file in files:
            if file is not None and step.project in _PROJECTS_WITH_COUNTS:
                note = self.engine.parse(step.project, step.path, file)
                if note is not None:
                    counts[note.id] = note.access_count
        return counts

    @verb
    def undo(self, change: int | None = None) -> Change:
        """Undo a change (see `Memory.undo` and contract 001, 18.5).

        change: the number of the change. None means the latest change that can be undone.
        """
        with self.engine.writing():
            past_privacy = self.past()
            if change is None:
                change_to_undo = self._latest_to_undo(past_privacy)
            else:
                change_to_undo = self._numbered_change(change, past_privacy)
            refusal = self.refusal_of_undo(change_to_undo)
            if refusal is not None:
                raise refusal

            # Lines of a file used in place are exchanged in the file. Anything else is undone file
            # by file.
            if any(file.do == StepKind.LINES for file in change_to_undo.files):
                return self._undo_lines(change_to_undo, past_privacy)
            return self._undo_as_one([change_to_undo], f"#{change_to_undo.number}")

    def _numbered_change(self, number: int, past_privacy: PastPrivacy | None) -> Change:
        """Return the change with a number. Raises CannotUndo if the caller sees no such change.

        past_privacy: says which steps are hidden from the caller. None for the owner, who sees all.
        """
        change = self.engine.ledger.history.change(number)
        # A change that the caller may not see does not exist for the caller.
        if change is None or not self._is_visible(change, past_privacy):
            raise CannotUndo(f"There is no change #{number}.")
        return change

    def _latest_to_undo(self, past_privacy: PastPrivacy | None) -> Change:
        """Return the latest change that can be undone. Raises CannotUndo if there is no such change.

        Undos, changes that are undone, and changes of upkeep are skipped.

        past_privacy: says which steps are hidden from the caller. None for the owner, who sees all.
        """
        history = self.engine.ledger.history
        for change in history.changes():
            # The expiry of an entry is upkeep. It is only undone by its number.
            if change.undoes is not None or is_upkeep(change) or is_blank(change):
                continue
            if self._is_visible(change, past_privacy) and history.undone_by(change) is None:
                return change
        raise CannotUndo("There is nothing to undo.")

    def refusal_of_undo(self, change: Change) -> CannotUndo | None:
        """Return the error with which the history refuses an undo of a change.

        None if the history does not refuse it. Other errors are only found during the undo.
        """
        number = change.number
        if is_blank(change):
            reason = f"what it changed was erased{_ANOTHER}"
            return CannotUndo(reason, number=number, obstacle=UndoObstacle.ERASED)
        if change.verb == ERASE:
            reason = f"what was erased is gone for good{_ANOTHER}"
            return CannotUndo(reason, number=number, obstacle=UndoObstacle.ERASED)
        if change.undoes is None:
            undone_by = self.engine.ledger.history.undone_by(change)
            if undone_by is not None:
                return self._undone_already(number, undone_by)
        texts = list(change.texts())
        if texts and not any(text.kept for text in texts):
            return CannotUndo(PASSING, number=number, obstacle=UndoObstacle.PASSING)
        return None

    def _undone_already(self, number: int, undone_by: int) -> CannotUndo:
        """Return the error that a change was undone already. It names the undo only to those who
        may see the undo.

        number: the number of the change.
        undone_by: the number of the undo.
        """
        may_see_undo = self.change_numbered(undone_by) is not None
        reason = "it was undone already"
        if may_see_undo:
            reason += f" (#{undone_by})"
        return CannotUndo(
            reason,
            number=number,
            obstacle=UndoObstacle.UNDONE,
            later=undone_by if may_see_undo else None,
        )

    def refusal_of_undos(self, changes: Sequence[Change]) -> CannotUndo | None:
        """Return the first error of `refusal_of_undo` for changes that are undone together.

        None if the history refuses none of them.

        If one of the changes is an undo, the change that it took back may be among them, too. It
        counts again as soon as the undo is undone.
        """
        numbers = {change.number for change in changes}
        for change in changes:
            refusal = self.refusal_of_undo(change)
            if refusal is None:
                continue
            is_undone_here = refusal.obstacle == UndoObstacle.UNDONE and refusal.later in numbers
            if not is_undone_here:
                return refusal
        return None

    def _undo_lines(self, change: Change, past_privacy: PastPrivacy | None) -> Change:
        """Undo a change of lines in a graph file or JSON file. Raises CannotUndo.

        past_privacy: says which steps are hidden from the caller. None for the owner, who sees all.
        """
        from memoranda.engine.history.line_undo import undo_lines

        later_changes = Later(self.engine.ledger.history, change.number)
        is_visible = partial(self._is_visible, past_privacy=past_privacy)

        def refusal_of(project: str, path: str) -> CannotUndo:
            """Return the error for a file that a later change has touched, too."""
            return later_changes.refusal_at(Location(project, path, change.root), is_visible)

        return undo_lines(self, change, refusal_of)

    def revisions(self, change: int, *, limit: int = 0) -> list[Revision]:
        """Return the texts before and after a change (see `Memory.revisions`).

        limit: the number of files; 0 means all.
        """
        with self.engine.guard:
            recorded_change = self.engine.ledger.history.change(change)
            visible_change = None
            if recorded_change is not None:
                visible_change = self.listed_part(recorded_change, self.past())
            if visible_change is None:
                raise NoSuchChange(change)
            texts = islice(visible_change.texts(), limit or None)
            return [self._revision(visible_change, text) for text in texts]

    def revisions_of(
        self, changes: Sequence[Change], *, limit: int = 0
    ) -> dict[int, list[Revision]]:
        """Return the text before and after each of these changes: change number -> its revisions.

        changes: changes as `log` returns them.
        limit: the most files of each change; 0 means all.
        """
        with self.engine.guard:
            revisions: dict[int, list[Revision]] = {}
            for change in changes:
                texts = islice(change.texts(), limit or None)
                revisions[change.number] = [self._revision(change, text) for text in texts]
            return revisions

    def change_numbered(self, number: int) -> Change | None:
        """Return the change with a number. None if the caller may not see it."""
        change = self.engine.ledger.history.change(number)
        if change is None or not self._is_visible(change, self.past()):
            return None
        return change

    def _revision(self, change: Change, text: Touched) -> Revision:
        """Return the texts of one file before and after a change.

        text: the step of the change on this file.
        """
        before = self._text_of(change, text, text.old)
        after = None
        if text.do != StepKind.REMOVE:
            # A file that was only moved has its old text afterwards.
            after = self._text_of(change, text, text.new or text.old)
        return Revision(change, text, before, after)

    def _text_of(self, change: Change, touched: Touched, digest: str | None) -> str | None:
        """Return the text with a SHA-256. None if it is not found.

        The text is in the history or still in the file. There is one exception: when only the read
        counts of a note were updated, the history did not keep the former version. Then the text of
        the updated version is returned.

        change: the change that read or wrote the text.
        touched: its step on the file.
        digest: the SHA-256; None for no text.
        """
        if digest is None:
            return None
        for version in self.engine.ledger.history.counted_versions(digest, change.number):
            data = self._kept_or_present(touched, version)
            if data is not None:
                return data.decode("utf-8", "replace")
        return None

    def _kept_or_present(self, touched: Touched, digest: str) -> bytes | None:
        """Return the text with a SHA-256 from the history or, if it is still there, from the file.

        touched: the step that read or wrote the text.
        """
        with suppress(MemorandaError):
            return self.engine.ledger.history.text(digest, f"{touched.project}/{touched.path}")
        for path in filter(None, (touched.to, touched.path)):
            with suppress(MemorandaError):
                file = source_at(self.engine, touched.project, touched.root).read(path)
                if file.etag == digest:
                    return file.data
        return None


def first_number_since(memory: HistoryVerbs, moment: datetime) -> int | None:
    """Return the number of the first change at a moment or later. None if there is no such change."""
    return memory.engine.ledger.history.first_since(stamp(moment))
