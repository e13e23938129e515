"""The ledger of a home whose notes are in a space of a database, with a replica as its folder.

A change, or all staged changes together, is one transaction in the database, under the lock of the
space's writers. The change is acknowledged once COMMIT has succeeded. Only then the files of the
replica are replaced, and its journal gets the change.

Each process compares the last number of the journal with the database, and fetches the missing
changes. So if a process is killed after COMMIT and before it replaces the files, nothing has to be
repaired.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any

from memoranda.clock import Clock, wait_for, waits_at_most
from memoranda.errors import (
    Busy,
    Conflict,
    DatabaseAway,
    DatabaseRefused,
    Exists,
    MemorandaError,
    NotPutBack,
    StorageError,
)
from memoranda.ledger.boot import boot_id
from memoranda.ledger.change import ERASE, FOLD, Change, touched_by
from memoranda.ledger.execution import Execution
from memoranda.ledger.history import History
from memoranda.ledger.ledger import Ledger, missing_folders
from memoranda.ledger.planned_change import PlannedChange, accepted
from memoranda.ledger.postgres.replica import (
    ColdStart,
    Key,
    ReplicaFolder,
    ReplicaHistory,
    ReplicaReads,
    ReplicaState,
    attach,
)
from memoranda.ledger.postgres.space_database import SpaceDatabase
from memoranda.ledger.postgres.space_rows import FileRow, Snapshot, SpaceState
from memoranda.ledger.reads import ReadRow, Reads
from memoranda.ledger.review_rows import ReviewRows
from memoranda.ledger.takeover import Damaged, review_files, review_values, take_over
from memoranda.sources.files import (
    closed_on_error,
    put_derived,
    read_file,
    reason,
    storing,
    sync_folder,
    write_file,
)
from memoranda.sources.layout import PRIVATE, Layout, changing_shared
from memoranda.sources.path_guard import open_folder
from memoranda.sources.step import Step, StepKind

# After this many notes of a large space, other processes get the folder's lock for a moment.
_BATCH = 200
# How many notes a new replica fetches immediately. If the process goes on, a thread fetches more.
_LARGE = 2000
# Up to this many different files are fetched one by one.
_FEW = 500
# A call waits this many seconds for the folder's lock, to fetch the changes of other replicas.
_FOLLOWS = 1.0


class ReplicaLedger(Ledger):
    """The ledger of a home that is a replica: a copy of a space of a PostgreSQL database.

    Changes are committed in the database, and then shown in the folder.

    url, space: the address of the database, and the name of the space in it.
    serves: whether the process runs for long, so that a thread may fill a large replica.
    history, reads: the history and the read counts, which are exchanged with the database.

    Raises DatabaseAway if the server cannot be reached and the copy is not complete. Also raises
    DatabaseRefused and StorageError.
    """

    holds_truth = False
    history: ReplicaHistory
    reads: ReplicaReads

    def __init__(self, layout: Layout, clock: Clock, url: str, space: str, *, serves: bool):
        self._url = url
        self._space = space
        self._serves = serves
        self._shared = attach(layout.root, url, space)
        self._database = self._shared.hand_over()
        self._cold_start = ColdStart(layout.cold_start, self._bring_slowly)
        self._depth, self._boot = 0, boot_id()
        with closed_on_error(self._database):
            self._folder = ReplicaFolder(layout)
            super().__init__(layout, clock)
            try:
                self._catch_up()
            except BaseException:
                super().close()
                raise

    def _catch_up(self) -> None:
        """Bring the copy up to date. Raises DatabaseAway if this machine has no copy yet."""
        state = self._folder.state()
        try:
            newest = self._database.prepare()
        except DatabaseAway:
            if state is None:
                raise
            # The server cannot be reached. Every call then says that it answers from the copy.
            return
        if self._serves and state is None and self._database.has_more_than(_LARGE):
            self._cold_start.start()
        elif state is None or state.boot != self._boot or self._lacks(newest):
            with self.lock:
                self._bring()

    def _open_parts(self) -> None:
        self._folder.review_rows = ReviewRows(self.database, str(self.layout.private))
        super()._open_parts()

    def _open_history(self) -> History:
        # When this process revises changes, the space begins a new epoch. The copy here has it, too.
        return ReplicaHistory(
            self.layout,
            self.database,
            self._database,
            lambda: self._note_whole(self._database.newest()),
        )

    def _open_reads(self) -> Reads:
        return ReplicaReads(self.database, self._clock, self._database, lambda: self.lock)

    def close(self) -> None:
        self._cold_start.close()
        super().close()
        self._database.close()
        self._shared.close()

    def _recover(self) -> None:
        # The database has every committed change, so only temporary files are left to remove.
        self._remove_temps()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Take the lock of the space's writers on all machines, then the folder's lock.

        Then fetch the changes of other replicas. Raises Busy, DatabaseAway, DatabaseRefused,
        OSError.
        """
        if self._depth:
            yield
            return
        # While changes are queued, the lock that was taken for them is still held.
        if not self.queue.changes:
            if not wait_for(lambda: not self._filling()):
                raise StorageError("the notes", self._filling())
            state = self._database.take_lock()
        try:
            with self.lock:
                if not self.queue.changes and self._lacks(state):
                    self._bring()
                self._depth = 1
                try:
                    self._convert_review()
                    yield
                finally:
                    self._depth = 0
        finally:
            if not self.queue.changes:
                self._database.release_lock()

    def _take_over(self) -> None:
        # The files of answers are not taken over here: they belong to all machines
        # (`_convert_review`).
        take_over(self.layout, self.database)

    def review_values(self, kind: str) -> dict[str, dict[str, Any]]:
        if self._is_in_file(kind):
            with self.writing():
                pass
        return self.review_rows.all(kind)

    def _convert_review(self) -> None:
        """Turn the files of answers and requests of an earlier version into rows, as one change."""
        steps = list[Step]()
        for kind, (path, what) in review_files(self.layout).items():
            if not path.exists():
                continue
            file = read_file(str(path))
            try:
                values = review_values(file.data)
            except ValueError:
                raise Damaged(path.name, what) from None
            folder = str(self.layout.private)
            steps.append(Step(StepKind.REMOVE, PRIVATE, folder, path.name, old=file, kept=False))
            steps += [
                self.review_rows.step(kind, key, value)
                for key, value in values.items()
                if self.review_rows.value(kind, key) is None
            ]
        if steps:
            self.write(FOLD, lambda: steps, ("", ""))

    def follow(self) -> str:
        """Fetch the changes that other replicas committed (see `Ledger.follow`).

        This takes one round trip. The folder's lock is taken only if there are such changes.
        """
        if self._depth or self.queue.changes:
            return ""
        try:
            words = self._filling()
            if words:
                return words
            if self._lacks(newest := self._database.newest()):
                with waits_at_most(_FOLLOWS), self.lock:
                    # Another process of this machine may have fetched the changes in between.
                    if self._lacks(newest):
                        self._bring()
            self.reads.exchange()
        except DatabaseAway as error:
            return f"What others changed lately may be missing here: {error.reason} ({error.path})."
        except Busy as error:
            return f"What others changed lately may be missing here: {error.reason}"
        except OSError as error:
            return f"What others changed lately may be missing here: {reason(error)}."
        return ""

    def _filling(self) -> str:
        """Return a sentence about how far the first copy of a large space is, "" if it is complete."""
        if self._folder.state() is not None:
            return ""
        words = self._cold_start.words()
        if not words and self._serves:
            # The process that filled the folder has ended, or the server could not be reached.
            self._cold_start.start()
            words = self._cold_start.words()
        return words

    def erased(self) -> bool:
        return self.layout.erased.exists()

    def erasing(self) -> str | None:
        """Return the plan of an unfinished erasure. None if no erasure is unfinished.

        The plan is a shared file, so that every replica sees it.
        """
        with suppress(FileNotFoundError):
            return self.layout.erasing.read_text("utf-8")
        return None

    def set_erasing(self, plan: str | None) -> None:
        """Record the plan of an erasure in a file that all replicas share. None removes the file."""
        record = self.layout.erasing
        # If this process is killed, the next start removes this temporary file.
        fresh = record.with_name(f".{record.name}-{os.getpid()}")
        with (
            storing("the record of what is to be erased"),
            changing_shared(self.layout.root, record),
        ):
            if plan is None:
                record.unlink(missing_ok=True)
            else:
                fresh.unlink(missing_ok=True)
                write_file(str(fresh), plan.encode())
                os.replace(fresh, record)
            sync_folder(record.parent)

    def purge_deleted(self) -> tuple[str, ...]:
        left_places = self._database.rewrite_tables()
        return (*left_places, *self._database.keeps_elsewhere())

    def lag(self) -> int | None:
        try:
            newest = self._database.newest().last
        except DatabaseAway:
            return None
        if self.history.last < newest:
            self.follow()
        return max(0, newest - self.history.last)

    def runs_jobs(self) -> bool:
        try:
            return self._database.runs_jobs()
        except DatabaseRefused:
            return False

    def trouble(self) -> str:
        """Describe a fault in the set-up of the server, "" if there is none (`Ledger.trouble`).

        Row-level security of PostgreSQL keeps the spaces of a database apart. It does not apply to
        superusers and similar roles.
        """
        role = ""
        with suppress(DatabaseAway):
            role = self._database.passes_by_policies()
        if not role:
            return ""
        return (
            f"the role {role} is not held by row-level security, the second belt between spaces: CREATE ROLE memory "
            "LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD '...', make it the owner of the schema memoranda and its tables, "
            "and name it in the address (docs/teams.md)"
        )

    def _lacks(self, state: SpaceState) -> bool:
        """Whether the numbers that the folder has recorded differ from this state of the space."""
        mine = self._folder.state()
        if mine is None or not _is_same_state(mine, state):
            return True
        return self.history.last != state.last

    # --- bringing what the database has

    def _take_news(self, mine: ReplicaState, last: int) -> bool:
        """Fetch and apply the changes after the number `last`, if they are few.

        mine: the state of the space that the folder is a copy of.

        Returns whether the folder is now up to date.
        """
        news = self._database.news(last, _FEW)
        if not news:
            return False
        state, changes, rows = news
        # More than new changes has happened: the space is another one, or was revised.
        if not _is_same_state(mine, state) or last > state.last:
            return False
        return self._take(changes, {(row.project, row.path) for row in rows}, rows)

    def _bring(self) -> None:
        """Bring the folder up to date with the database. The folder's lock must be held.

        A few new changes are applied one by one. If there are many, or if the histories differ, all
        files are compared. Raises StorageError, OSError.
        """
        recorded = self._folder.state()
        last = self.history.last
        # After a restart of the machine, files may lack bytes that had not reached the disk. So the
        # copy counts as incomplete, and every file is read.
        mine = recorded
        if recorded is not None and recorded.boot != self._boot:
            mine = None
        if last and mine is not None and self._take_news(mine, last):
            return

        with self._database.snapshot() as snapshot:
            state = snapshot.state()
            # The copy may be of an earlier space of this name.
            if mine is not None and (mine.id != state.id or last > state.last):
                mine = None
            if mine is None or mine.epoch != state.epoch:
                # The copy is incomplete, or earlier changes were revised, which began an epoch.
                self._bring_all(snapshot, state, mine)
            else:
                changes = list(snapshot.changes(last or 1))
                has_taken = self._take(changes, snapshot.places(last), snapshot.rows(last))
                if not has_taken:
                    # The histories differ.
                    self._bring_all(snapshot, state, mine=None)

        if recorded is None or recorded.files != state.files:
            self._shared.show(self._database.shared_files())
        self._note_whole(state)

    def _take(
        self,
        changes: Sequence[Change],
        places_there: Collection[Key],
        rows: Iterable[FileRow],
    ) -> bool:
        """Apply the changes after the last one here. Returns False if the histories do not match.

        changes: the changes of the space, from the last one here on.
        places_there: the places that exist in the space now.
        rows: the files at those places.
        """
        if self.history.last:
            last_change = self.history.change(self.history.last)
            if not changes or changes[0] != last_change:
                return False
            changes = changes[1:]
        if not changes:
            return True
        self._folder.begin()
        for touched in chain.from_iterable(change.files for change in changes):
            for key in self._folder.gone(touched, places_there):
                self._folder.remove(*key)
        for row in rows:
            self._folder.put(row)
        self.history.append_all(changes)
        self._note_erased(changes)
        return True

    def _bring_all(self, snapshot: Snapshot, state: SpaceState, mine: ReplicaState | None) -> None:
        """Compare the whole folder with the space, and fetch the differences.

        snapshot: the space at one moment.
        state: its state at this moment.
        mine: the state of the space of which the folder is a copy, up to the last change here. None
            if the folder is not a complete copy: then every file is read.
        """
        last = self.history.last if mine is not None else None
        self._folder.set_state(None)
        self._folder.begin()
        wanted_places = snapshot.places(-1)
        self._remove_others(wanted_places)
        if last is not None:
            differing = list(snapshot.places(last))
        else:
            differing = [
                key for key, digest in wanted_places.items() if not self._folder.holds(key, digest)
            ]
        self._put_places(snapshot, differing, last)

        # If only some changes were revised, it is enough to fetch these.
        if mine is not None and mine.epoch < state.epoch:
            is_followed = self._follow_revised(snapshot, mine.epoch)
            if is_followed:
                return
        self._bring_history(snapshot)

    def _put_places(self, snapshot: Snapshot, keys: Sequence[Key], last: int | None) -> None:
        """Fetch the files at these places, and write them into the folder.

        last: the number of the last change that the folder has. None if it is not complete.
        """
        if len(keys) <= _FEW:
            for key in keys:
                row = snapshot.row(*key)
                if row is not None:
                    self._folder.put(row)
            return
        # Many files are read faster together than one by one.
        missing = set(keys)
        for row in snapshot.rows(-1 if last is None else last):
            if (row.project, row.path) in missing:
                self._folder.put(row)

    def _remove_others(self, wanted_places: Collection[Key]) -> None:
        """Remove everything from the folder that is not at one of these places."""
        for key in reversed(self._folder.listed()):
            if key not in wanted_places:
                self._folder.remove(*key)

    def _bring_history(self, snapshot: Snapshot) -> None:
        """Fetch the whole history."""
        before = self.history.last
        changes = list(snapshot.changes(since=0))
        self.history.replace_all(changes)
        self._note_erased(changes, before)

    def _follow_revised(self, snapshot: Snapshot, epoch: int) -> bool:
        """Fetch the changes that were revised after an epoch of the space, and new changes.

        A space begins a new epoch whenever earlier changes are revised or purged.

        snapshot: the space at one moment.

        Return False if the history here still differs from the history of the space.
        """
        before = self.history.last
        oldest, count = snapshot.extent()
        revised = [change for change in snapshot.revised(epoch) if change.number <= before]
        self.history.follow_revised(revised, oldest)
        changes = list(snapshot.changes(before))
        last_change = self.history.change(self.history.last)
        if not changes or changes[0] != last_change:
            return False
        self.history.append_all(changes[1:])
        if self.history.count() != count:
            return False
        self.history.drop_texts()
        self._note_erased(changes[1:])
        return True

    def _bring_slowly(self, tell: Callable[[int, int], bool]) -> None:
        """Fetch all notes for the first time. Between two batches, others may take the folder's lock.

        tell: called with (notes so far, all notes). Returns whether to go on.
        """
        database = SpaceDatabase(self._url, self._space)
        try:
            with database.snapshot() as snapshot:
                state = snapshot.state()
                wanted_places = snapshot.places(-1)
                files_done = 0
                rows = snapshot.rows(-1)
                while batch := list(islice(rows, _BATCH)):
                    if not tell(files_done, len(wanted_places)):
                        return
                    with self.lock:
                        if self._is_whole():
                            # Another process has fetched all notes in between.
                            return
                        if files_done == 0:
                            self._folder.begin()
                        self._put_missing(batch)
                    files_done += len(batch)

                with self.lock:
                    if self._is_whole():
                        return
                    self._remove_others(wanted_places)
                    self._bring_history(snapshot)
                    self._shared.show(database.shared_files())
                    self._note_whole(state)
        finally:
            database.close()

    def _is_whole(self) -> bool:
        """Whether the folder is a complete copy of some state of the space."""
        return self._folder.state() is not None

    def _put_missing(self, rows: Iterable[FileRow]) -> None:
        """Write rows of the space into the folder, except files that it has already."""
        for row in rows:
            is_there = row.kind == "file" and self._folder.holds(
                (row.project, row.path), row.sha256
            )
            if not is_there:
                self._folder.put(row)

    def _note_erased(self, changes: Sequence[Change], before: int = 0) -> None:
        """If notes were erased, record that everything derived from notes must be removed here.

        changes: changes that were fetched.
        before: changes up to this number were here already, and do not count.
        """
        new_changes = [change for change in changes if change.number > before]
        if any(change.verb == ERASE and change.details for change in new_changes):
            put_derived(self.layout.erased, b"")

    def _note_whole(self, state: SpaceState) -> None:
        """Record that the folder is a complete copy of this state."""
        self._folder.set_state(ReplicaState(state.id, state.epoch, state.files, self._boot))

    # --- changing

    def make(self, changes: Sequence[PlannedChange]) -> None:
        """Commit changes in the database, all or none, then show them in the folder.

        In addition to the errors of `Ledger.make`, this raises DatabaseAway. It raises
        OutcomeUnknown if the connection was lost during the commit and the server cannot be asked.
        Then the next call sees whether the changes were committed.
        """
        if _are_of_machine(changes):
            super().make(changes)
            return
        execution = Execution(holds_truth=self.holds_truth)
        try:
            self._promise(execution, changes)
            made = accepted(changes)
            if made:
                for planned in made:
                    self.reads.fold(planned.folded)
                self._show(execution, made)
        except KeyboardInterrupt:
            self.lock.leave_torn()
            raise
        finally:
            execution.close()

    def _number_before(self, changes: Sequence[PlannedChange]) -> int:
        if _are_of_machine(changes):
            return self.history.last_of_machine
        return self.history.last

    def _prepare(
        self, execution: Execution, planned: PlannedChange, folders: set[tuple[str, str]]
    ) -> None:
        """Write the new bytes to temporary files beside the files.

        The files are not compared with the texts that were read. The database does this.

        execution: writes the files.
        planned: the change.
        folders: (root, path) of the folders that earlier changes will make. Those of this change
            are added.
        """
        if planned.lines is not None:
            super()._prepare(execution, planned, folders)
            return
        planned.check()
        steps = [*missing_folders(planned.steps, folders), *planned.steps]
        planned.steps = steps
        _check_folders(steps, folders)
        unwritten_steps = [step for step in steps if step.stamp is None]
        self._place_temps(unwritten_steps)
        execution.write_temps([step for step in unwritten_steps if step.do == StepKind.PUT])
        folders |= {(step.root, step.path) for step in steps if step.do == StepKind.MKDIR}

    def _record(self, changes: Sequence[PlannedChange]) -> None:
        """Commit changes in the database. Changes of files of this machine stay in its ledger."""
        if _are_of_machine(changes):
            super()._record(changes)
            return
        number = self.history.last
        folded = dict[str, ReadRow]()
        for planned in changes:
            number += 1
            change = planned.change
            change.number = number
            if change.run == 0:
                change.run = number
            change.files = [touched_by(step) for step in planned.steps]
            folded |= planned.folded
        try:
            rows = [(planned.change, planned.steps) for planned in changes]
            self._database.commit(rows, folded)
        except (Conflict, Exists):
            self._mend(list(chain.from_iterable(planned.steps for planned in changes)))
            raise

    def _show(self, execution: Execution, changes: Sequence[PlannedChange]) -> None:
        steps = list(chain.from_iterable(planned.steps for planned in changes))
        try:
            self._exchange(execution, steps, [planned.change for planned in changes])
        except NotPutBack as error:
            for planned in changes:
                planned.error = error

    def _exchange(
        self, execution: Execution, steps: Sequence[Step], changes: Sequence[Change]
    ) -> None:
        """Write committed changes to the files of the folder.

        If a file cannot be written, the folder is brought up to date from the database instead.

        execution: carries out the steps.
        steps: the steps of all these changes.

        Raises NotPutBack if this fails, too.
        """
        last = changes[-1].number
        try:
            for step in steps:
                execution.run(step)
            self.history.append_all(changes)
            for step in steps:
                if step.do == StepKind.SET:
                    self.review_rows.store(step.path, step.data)
        except (OSError, MemorandaError):
            # A file that has no row in the database was in the way.
            try:
                self._bring()
            except (OSError, MemorandaError) as error:
                why = reason(error) if isinstance(error, OSError) else str(error)
                raise NotPutBack(
                    "the copy on this machine", f"{why}; in the database change {last} is made"
                ) from None

    def _mend(self, steps: Sequence[Step]) -> None:
        """Reset the places of a refused change to the state of the database.

        The change was refused because somebody has edited these files by hand.
        """
        places: set[Key] = set()
        for step in steps:
            places.add((step.project, step.path))
            if step.to:
                places.add((step.project, step.to))
        # Without the server, the next call resets them.
        with suppress(DatabaseAway, OSError), self._database.snapshot() as snapshot:
            self._folder.begin()
            for place in places:
                row = snapshot.row(*place)
                if row is None:
                    self._folder.remove(*place)
                elif not self._folder.holds(place, row.sha256):
                    self._folder.put(row)


def _is_same_state(mine: ReplicaState, state: SpaceState) -> bool:
    """Whether a folder is a copy of the same space, at the same count of revisions and shared files.

    The copy may still lack the latest changes.
    """
    return (mine.id, mine.epoch, mine.files) == (state.id, state.epoch, state.files)


def _are_of_machine(changes: Sequence[PlannedChange]) -> bool:
    """Whether these changes are of files used in place, which only this machine has.

    Such a change is never made together with changes of notes.
    """
    return any(planned.lines is not None for planned in changes)


def _check_folders(steps: Sequence[Step], folders: Collection[tuple[str, str]]) -> None:
    """Raise OutsideError or NotFound for a path that leads through a link or a file.

    The database would accept it, since its rows do not know what is on this disk.

    folders: (root, path) of folders that earlier changes make.
    """
    made_folders = {
        *folders,
        *((step.root, step.path) for step in steps if step.do == StepKind.MKDIR),
    }
    for step in steps:
        # Only a move has `to`. Then the file comes into the folder of `to`, else into that of `path`.
        target_path = step.to or step.path
        parent = target_path.rpartition("/")[0]
        is_there = os.path.lexists(os.path.join(step.root, parent))
        if is_there and (step.root, parent) not in made_folders:
            _check_folder(step, parent)


def _check_folder(step: Step, folder: str) -> None:
    """Raise OutsideError or NotFound if a folder is not a real folder inside the step's project.

    Opening it makes this check, so it is opened and closed again.
    """
    with open_folder(step.root, folder, step.project):
        pass
