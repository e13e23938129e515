"""The verbs `log`, `undo` and `restore`.

They list changes, choose which of them to take back (undo.py does it), and show a note as it was
and the texts that a change replaced and made, for diffs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from memoranda.clock import parse_stamp, stamp
from memoranda.engine.engine import verb
from memoranda.engine.notes import NoteVerbs
from memoranda.engine.past_privacy import PastPrivacy
from memoranda.engine.transaction import Location, Transaction, root_of, source_at
from memoranda.engine.undo import (
    ENTRIES,
    EXPIRE,
    Later,
    Undo,
    concerns,
    is_blank,
    is_upkeep,
)
from memoranda.engine.writing import as_file
from memoranda.errors import (
    Ambiguous,
    CannotUndo,
    MemorandaError,
    NotFound,
    NotInHistory,
)
from memoranda.ledger.change import (
    ERASE,
    FOLD,
    TAKEN_BACK,
    Change,
    Touched,
    undone_numbers,
)
from memoranda.ledger.history import PlacedStep
from memoranda.note.model import (
    MEMORY_PROJECTS,
)
from memoranda.note.names import Looseness
from memoranda.sources import path_guard
from memoranda.sources.base import File
from memoranda.sources.json_rows import PASSING
from memoranda.sources.step import Step, StepKind
from memoranda.text.pattern import lazy_pattern

_ANOTHER = "; memory undo N takes back another change"
_DELETING = ("delete", EXPIRE, "decay")
# An id of a memory, or its first eight digits and more.
_ID_BEGIN = lazy_pattern(r"[0-9a-f]{8}[0-9a-f-]*")


def undone_by_change(change: Change) -> list[int]:
    """The numbers of the changes that an undo took back; for a run, its first number."""
    return undone_numbers(change.undoes, change.details)


@dataclass(frozen=True, slots=True)
class Revision:
    """One file that a change touched, with its texts before and after.

    Either text is None if the file did not exist, or if the text is no longer kept.
    """

    change: Change
    touched: Touched
    before: str | None
    after: str | None


class HistoryVerbs(NoteVerbs):
    """`log`, `undo` and `restore`."""

    @verb
    def log(
        self,
        ref: str | None = None,
        *,
        limit: int = 20,
        agent: str | None = None,
        since: datetime | None = None,
    ) -> list[Change]:
        """List the changes that the caller may see (see `Memory.log`)."""
        return list(islice(self._seen_changes(ref, agent, since), limit if limit > 0 else None))

    @verb
    def log_by_run(
        self,
        ref: str | None = None,
        *,
        limit: int = 20,
        agent: str | None = None,
        since: datetime | None = None,
        before: int = 0,
    ) -> list[list[Change]]:
        """List changes as `log` does, but group the changes of one run of a job.

        A group stands at the place of its latest change, and `limit` counts groups. With `before`,
        only changes with lower numbers are listed.
        """
        groups: dict[int, list[Change]] = {}
        runs: list[int] = []
        for change in self._seen_changes(ref, agent, since, before or None):
            if change.undoes is None:
                run = change.run
            else:
                run = None
            is_full = limit > 0 and len(groups) >= limit
            # The rest of a run has at least the number of its first change.
            if is_full and change.number < min(runs, default=change.number + 1):
                break
            group = run or change.number
            if group in groups or not is_full:
                groups.setdefault(group, []).append(change)
                if run:
                    runs.append(run)
        return list(groups.values())

    def _seen_changes(
        self,
        ref: str | None,
        agent: str | None,
        since: datetime | None,
        before: int | None = None,
    ) -> Iterator[Change]:
        """The changes of `log`, newest first; with `before` those with a lower number."""
        place = None if ref is None else self.locate(ref)
        agent = agent and agent.lower()
        past_privacy = self.past()
        for change in self._changes_about(place, agent, before):
            if since is not None and parse_stamp(change.time) < since:
                break
            if agent is not None and change.agent != agent:
                continue
            if change.verb == FOLD or is_blank(change):
                continue
            visible_change = self._seen_part(change, past_privacy)
            if place is not None and not concerns(visible_change, place):
                continue
            if self._is_visible(change, past_privacy):
                yield visible_change

    def _changes_about(
        self, place: Location | None, agent: str | None, before: int | None
    ) -> Iterator[Change]:
        """The changes that may be about a place, or that an agent made, newest first."""
        history = self.engine.ledger.history
        if place is not None:
            return history.changes_at(place[0], place[1], before=before)
        if agent is not None:
            return history.changes_by(agent, before=before)
        return history.changes(before=before)

    def past(self) -> PastPrivacy | None:
        """The part of the past that this caller may see.

        None for the owner, who sees everything.
        """
        if self.agent is None:
            return None
        self.engine.fresh()
        return PastPrivacy(self)

    def undo_in(self, transaction: Transaction) -> Undo:
        """An Undo for a transaction. It names only changes that the caller may see."""
        past_privacy = self.past()
        return Undo(
            self, transaction, lambda later_change: self._is_visible(later_change, past_privacy)
        )

    def _is_visible(self, change: Change, past_privacy: PastPrivacy | None) -> bool:
        """Whether the caller may see all files of a change.

        For a deletion, other memories that only lost a link do not count. Only the owner sees
        erasures.
        """
        if change.verb == ERASE:
            return self.agent is None and not self.engine.only
        return all(
            self.may_see(change, file, past_privacy) for file in self._files_that_count(change)
        )

    def _files_that_count(self, change: Change) -> Sequence[Touched]:
        """The files of a change that the caller must be allowed to see, to see the change."""
        place = (change.project, change.path)
        own_files = [file for file in change.files if (file.project, file.path) == place]
        if not own_files or self.engine.only:
            return change.files
        if change.verb in _DELETING:
            return own_files
        if change.undoes is not None:
            # Links may have come back into texts that the caller does not see.
            return [file for file in change.files if file in own_files or file.old is None]
        return change.files

    def may_see(
        self, change: Change | PlacedStep, touched: Touched, past_privacy: PastPrivacy | None
    ) -> bool:
        """Whether the caller may see what a change did to this file: its project is there, and the
        note was never another agent's since. `past_privacy` is None for the owner.
        """
        if self.engine.only and touched.project not in self.engine.sources:
            return False
        return past_privacy is None or not past_privacy.hides(change, touched)

    def locate(self, ref: str, *, looseness: Looseness = Looseness.SIGNS) -> Location:
        """The place of `project/path` or the absolute path of a file, also of one that is gone, or
        of an id the index or the history knows. One this home has is taken first, then the one the
        history has in a folder elsewhere. Raises Ambiguous when it has several, NotFound,
        OutsideError."""
        place = self._place_by_path(ref)
        if place is not None:
            return place
        try:
            info = self.memory_id(ref)
        except (NotFound, Ambiguous):
            place = self._place_by_id(ref)
            if place is not None:
                return place
            info = self._at_path_or_named(ref, looseness)
        return info.project, info.path, root_of(self.engine, info.project)

    def _place_by_path(self, ref: str) -> Location | None:
        """The place `project/path` or an absolute path names; None where nothing is known of it.
        Raises Ambiguous, OutsideError.
        """
        project, _, path = ref.partition("/")
        if not path or ref.startswith("memory://"):
            return None
        name = self.engine.project_name(project)
        if name is None and project in (".", ".."):
            return None
        is_absolute = ref.startswith("/")
        wanted_path = ref if is_absolute else path_guard.clean(path, name or project, hidden=True)
        own_location: Location | None = None
        if name is not None:
            own_location = (name, wanted_path, root_of(self.engine, name))
            if os.path.lexists(os.path.join(self.engine.source(name).root, wanted_path)):
                return own_location
        return self._place_in_history(ref, project, wanted_path, own_location)

    def _place_in_history(
        self, ref: str, project: str, path: str, own_location: Location | None
    ) -> Location | None:
        """The place the history has a step at: `own_location`, else the one in a folder elsewhere.
        Raises Ambiguous for several of these.
        """
        elsewhere: dict[Location, None] = {}
        for touched in self._seen_steps(self.engine.ledger.history.steps_at(path, ref)):
            for touched_path in filter(None, (touched.path, touched.to)):
                if own_location == (touched.project, touched_path, touched.root):
                    return own_location
                is_it = (touched.project.lower(), touched_path) == (project.lower(), path)
                if touched.root and (is_it or os.path.join(touched.root, touched_path) == ref):
                    elsewhere[touched.project, touched_path, touched.root] = None
        if len(elsewhere) > 1:
            raise Ambiguous(
                ref, [os.path.join(root, touched_path) for _, touched_path, root in elsewhere]
            )
        return next(iter(elsewhere), own_location)

    def _place_by_id(self, ref: str) -> Location | None:
        """Where the memory was last whose id begins so, by the names of files in the history."""
        if not _ID_BEGIN.fullmatch(ref):
            return None
        for name in MEMORY_PROJECTS:
            steps = self.engine.ledger.history.steps_with_id(name, ref[:8])
            for touched in self._seen_steps(steps):
                return touched.project, touched.path, touched.root
        return None

    def _seen_steps(self, steps: Iterable[PlacedStep]) -> Iterator[Touched]:
        """The effects of those steps that the caller may see."""
        past_privacy = self.past()
        for step in steps:
            if self.may_see(step, step.touched, past_privacy):
                yield step.touched

    def last_change(self, besides: str) -> datetime | None:
        """When another face than `besides` last changed something the caller may see.

        None if the history has no such change. Edits by hand are not in the history.
        """
        past_privacy = self.past()
        for change in self.engine.ledger.history.changes_besides(besides):
            if is_upkeep(change):
                continue
            if past_privacy is None or self._is_visible(change, past_privacy):
                return parse_stamp(change.time)
        return None

    def purge_history(self) -> int:
        """Forget changes older than `history.days`. Returns how many."""
        return self.engine.purge_history()

    @verb
    def undo_run(self, run: int) -> tuple[Change, list[Change]]:
        """Take all changes of a run of a job back that still stand, as one change or none. Returns
        it, and those. Raises CannotUndo."""
        with self.engine.writing():
            past_privacy = self.past()
            history = self.engine.ledger.history
            of_run = [change for change in history.changes_of_run(run) if change.undoes is None]
            if not of_run or not all(self._is_visible(change, past_privacy) for change in of_run):
                raise CannotUndo(f"There is no run #{run}.")
            standing = [change for change in of_run if history.undone_by(change) is None]
            if not standing:
                raise CannotUndo("it was undone", f"run #{run}")
            return self._take_back(standing, f"run #{run}", run), standing

    @verb
    def undo_changes_of(
        self,
        agent: str,
        since: datetime | None = None,
        project: str | None = None,
        *,
        session: str | None = None,
    ) -> tuple[Change, list[Change]]:
        """Take back all changes of an agent that still stand, all in one change or none.

        since: only changes made since then.
        project: only changes of this project.
        session: only changes of this session of its client.
        Returns the new change, and those it took back, the latest first. Raises CannotUndo if
        nothing can be taken back, or if somebody else changed the same notes later.
        """
        with self.engine.writing():
            if project is not None:
                project = self.engine.source(project).name
            changes = [*self._standing_changes_of(agent.lower(), since, project, session)]
            if not changes:
                raise CannotUndo(f"There is no change of {agent} to undo.")
            return self._take_back(changes, f"the changes of {agent}"), changes

    def _standing_changes_of(
        self, agent: str, since: datetime | None, project: str | None, session: str | None
    ) -> Iterator[Change]:
        """The changes of an agent that an undo would take back, newest first."""
        past_privacy = self.past()
        history = self.engine.ledger.history
        for change in history.changes_by(agent):
            if since is not None and parse_stamp(change.time) < since:
                return
            is_there = project in (None, change.project)
            is_of_session = session in (None, (change.by or {}).get("session"))
            is_work = change.undoes is None and not is_upkeep(change) and not is_blank(change)
            if not (
                is_there and is_of_session and is_work and self._is_visible(change, past_privacy)
            ):
                continue
            if history.undone_by(change) is None:
                yield change

    def _take_back(self, changes: Sequence[Change], name: str, run: int | None = None) -> Change:
        """Take changes back, given the latest first, as one change. Raises CannotUndo."""
        first = changes[-1]
        numbers = [change.number for change in changes]
        with self.change("undo", (first.project, first.path), fresh=False) as transaction:
            transaction.undoes = first.number
            transaction.run = run
            if run is None and len(changes) > 1:
                transaction.details = {TAKEN_BACK: numbers}
            undo = self.undo_in(transaction)
            for change in changes:
                undo.take_back(change, together=numbers)
            undo.finish()
            if not transaction.steps:
                raise CannotUndo("nothing of it is left", name)
        self.keep_reads(transaction.steps)
        assert transaction.done is not None
        return self._seen_part(transaction.done, self.past())

    def _seen_part(self, change: Change, past_privacy: PastPrivacy | None) -> Change:
        """A copy of the change with only the files that the caller may see."""
        files = [file for file in change.files if self.may_see(change, file, past_privacy)]
        return replace(change, files=files)

    def keep_reads(self, steps: Sequence[Step]) -> None:
        """Keep the read counts of notes whose text is replaced.

        Reads belong to a note, not to its text: counts that were folded into a replaced text are
        carried on.
        """
        before = self._reads(
            (step, step.old) for step in steps if step.do in (StepKind.PUT, StepKind.REMOVE)
        )
        now = self._reads((step, as_file(step.data)) for step in steps if step.data is not None)
        reads = self.engine.reads
        # Different ids mean that memories were merged or separated.
        for id, count in now.items() if before.keys() == now.keys() else ():
            if before[id] < count:
                pending = reads.counts([id])[id]
                used = reads.used([id]).get(id)
                reads.restart(id)
                if used is not None:
                    reads.note_use([id], datetime.fromtimestamp(used, UTC))
                reads.count_read(id, max(0, pending + before[id] - count))
            elif before[id] > count:
                reads.count_read(id, before[id] - count)

    def _reads(self, files: Iterable[tuple[Step, File | None]]) -> dict[str, int]:
        """The counts in the headers of memories and entries, by id."""
        counted = [
            (step, file)
            for step, file in files
            if file and step.project in (*MEMORY_PROJECTS, ENTRIES)
        ]
        notes = [self.engine.parse(step.project, step.path, file) for step, file in counted]
        return {note.id: note.access_count for note in notes if note is not None}

    @verb
    def undo(self, change: int | None = None) -> Change:
        """Take back a change (see `Memory.undo` and contract 001, 18.5)."""
        with self.engine.writing():
            past_privacy = self.past()
            if change is None:
                meant = self._latest_standing(past_privacy)
            else:
                meant = self.engine.ledger.history.change(change)
            if meant is None or not self._is_visible(meant, past_privacy):
                raise CannotUndo(
                    "There is nothing to undo."
                    if change is None
                    else f"There is no change #{change}."
                )
            refusal = self.refusal_of_undo(meant)
            if refusal:
                raise CannotUndo(refusal, f"#{meant.number}")
            if any(file.do == StepKind.LINES for file in meant.files):
                return self._undo_lines(meant, past_privacy)
            return self._take_back([meant], f"#{meant.number}")

    def _latest_standing(self, past_privacy: PastPrivacy | None) -> Change | None:
        """The latest change that an undo without a number takes back, None for none."""
        history = self.engine.ledger.history
        for change in history.changes():
            # The expiry of an entry is upkeep. It is only undone by its number.
            if change.undoes is not None or is_upkeep(change) or is_blank(change):
                continue
            if self._is_visible(change, past_privacy) and history.undone_by(change) is None:
                return change
        return None

    def refusal_of_undo(self, change: Change) -> str:
        """Why a change cannot be taken back, from the history. Empty if it can."""
        if is_blank(change):
            return f"what it changed was erased{_ANOTHER}"
        if change.verb == ERASE:
            return f"what was erased is gone for good{_ANOTHER}"
        if change.undoes is None:
            undone_by = self.engine.ledger.history.undone_by(change)
            if undone_by is not None:
                return f"it was undone already (#{undone_by})"
        texts = list(change.texts())
        if texts and not any(text.kept for text in texts):
            return PASSING
        return ""

    def _undo_lines(self, change: Change, past_privacy: PastPrivacy | None) -> Change:
        """Take back a change of lines in a file used in place. Raises CannotUndo."""
        from memoranda.engine.line_undo import undo_lines

        later_changes = Later(self.engine.ledger.history, change.number)

        def blocked(project: str, path: str) -> CannotUndo:
            return later_changes.blocked(
                (project, path, change.root), lambda other: self._is_visible(other, past_privacy)
            )

        return undo_lines(self, change, blocked)

    def revisions(self, change: int, *, limit: int = 0) -> list[Revision]:
        """The texts before and after a change, of notes that the caller may see.

        See `Memory.revisions`.
        """
        with self.engine.guard:
            nearest_run = next(iter(self.log_by_run(limit=1, before=change + 1)), [])
            change_meant = next(
                (
                    earlier_change
                    for earlier_change in nearest_run
                    if earlier_change.number == change
                ),
                None,
            )
            if change_meant is None:
                raise NotInHistory(f"#{change}")
            return [
                self._revision(change_meant, text)
                for text in islice(change_meant.texts(), limit or None)
            ]

    def revisions_of(
        self, changes: Sequence[Change], *, limit: int = 0
    ) -> dict[int, list[Revision]]:
        """The revisions of several changes of `log`, by change number, at most `limit` of each."""
        with self.engine.guard:
            revisions: dict[int, list[Revision]] = {}
            for change in changes:
                texts = islice(change.texts(), limit or None)
                revisions[change.number] = [self._revision(change, text) for text in texts]
            return revisions

    def change_numbered(self, number: int) -> Change | None:
        """The change of this number, if the caller may see it."""
        change = self.engine.ledger.history.change(number)
        if change is None or not self._is_visible(change, self.past()):
            return None
        return change

    def _revision(self, change: Change, text: Touched) -> Revision:
        """The texts of one file before and after a change."""
        after = None
        if text.do != StepKind.REMOVE:
            after = self._text_of(change, text, text.new or text.old)
        return Revision(change, text, self._text_of(change, text, text.old), after)

    def _text_of(self, change: Change, touched: Touched, digest: str | None) -> str | None:
        """The text with this SHA-256. None if it is not found.

        It is kept in the history, or is still in the file, or became a text that only counts more
        reads. Such texts have no history of their own.
        """
        met: set[str] = set()
        while digest is not None and digest not in met:
            met.add(digest)
            data = self._kept_or_there(touched, digest)
            if data is not None:
                return data.decode("utf-8", "replace")
            digest = self.engine.ledger.history.folded_into(digest, change.number)
        return None

    def _kept_or_there(self, touched: Touched, digest: str) -> bytes | None:
        """The text with this SHA-256 from the history, or from where the step left it."""
        with suppress(MemorandaError):
            return self.engine.ledger.history.text(digest, f"{touched.project}/{touched.path}")
        for path in filter(None, (touched.to, touched.path)):
            with suppress(MemorandaError):
                file = source_at(self.engine, touched.project, touched.root).read(path)
                if file.etag == digest:
                    return file.data
        return None


def last_number_before(memory: HistoryVerbs, moment: datetime) -> int:
    """The number of the last change before a moment; 0 for none."""
    return memory.engine.ledger.history.last_before(stamp(moment))
