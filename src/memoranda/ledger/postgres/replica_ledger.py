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
from memoranda.ledger.postgres.space_rows import ALL_FILES, FileRow, Snapshot, SpaceState
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
# Before a call fetches the changes of other replicas, it waits this long for the folder's lock.
_FOLLOW_SECONDS = 1.0


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
        """Open the connection to the space, then the ledger, and bring the copy up to date.

        If a step fails, whatever the steps before it opened is closed again.
        """
        self._url = url
        self._space = space
        self._serves = serves
        self._shared = attach(layout.root, url, space)
        # The connection that was opened to read the shared files. From now on this ledger owns it.
        self._database = self._shared.hand_over()
        self._cold_start = ColdStart(layout.cold_start, self._fill_folder)
        # Whether a block of `writing` runs.
        self._is_writing = False
        self._boot = boot_id()
        with closed_on_error(self._database):
            self._folder = ReplicaFolder(layout)
            super().__init__(layout, clock)
            try:
                self._catch_up()
            except BaseException:
                # This closes the ledger only: `closed_on_error` closes the database.
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
        # A process that ends soon, such as a command, fills the copy itself.
        may_fill_in_thread = state is None and self._serves
        if may_fill_in_thread and self._database.has_more_than(_LARGE):
            self._cold_start.start()
            return
        was_restarted = state is not None and state.boot != self._boot
        if was_restarted or self._is_behind(newest):
            with self.lock:
                self._update_folder()

    def _open_parts(self) -> None:
        self._folder.review_rows = ReviewRows(self.database, str(self.layout.private))
        super()._open_parts()

    def _open_history(self) -> History:
        return ReplicaHistory(self.layout, self.database, self._database, self._record_new_epoch)

    def _record_new_epoch(self) -> None:
        """Record the epoch that began when this process revised changes: the copy has it, too."""
        self._record_complete_copy(self._database.newest())

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

        Then the changes of other replicas are fetched. Raises Busy, DatabaseAway, DatabaseRefused,
        OSError.
        """
        if self._is_writing:
            # A nested call: the locks are held already.
            yield
            return
        # While changes are queued, the lock that was taken for them is still held. Then nobody else
        # can have written, and no state is needed below.
        if not self.queue.changes:
            state = self._take_space_lock()
        try:
            with self.lock:
                if not self.queue.changes and self._is_behind(state):
                    self._update_folder()
                self._is_writing = True
                try:
                    self._convert_review()
                    yield
                finally:
                    self._is_writing = False
        finally:
            if not self.queue.changes:
                self._database.release_lock()

    def _take_space_lock(self) -> SpaceState:
        """Wait until the first copy is complete, and take the lock of the space's writers."""
        is_filled = wait_for(lambda: not self._filling_progress())
        if not is_filled:
            raise StorageError("the notes", self._filling_progress())
        return self._database.take_lock()

    def _take_over(self) -> None:
        # The files of answers are not taken over here: they belong to all machines
        # (`_convert_review`).
        take_over(self.layout, self.database)

    def review_values(self, kind: str) -> dict[str, dict[str, Any]]:
        if self._is_in_file(kind):
            # Entering `writing` converts the file
            with self.writing():
                pass
        return self.review_rows.all(kind)

    def _convert_review(self) -> None:
        """Turn the files of answers and requests of an earlier version into rows, as one change."""
        steps = list[Step]()
        for kind, (path, contents) in review_files(self.layout).items():
            if not path.exists():
                continue
            file = read_file(str(path))
            try:
                values = review_values(file.data)
            except ValueError:
                raise Damaged(path.name, contents) from None
            folder = str(self.layout.private)
            steps.append(Step(StepKind.REMOVE, PRIVATE, folder, path.name, old=file, kept=False))
            steps += [
                self.review_rows.step(kind, key, value)
                for key, value in values.items()
                if self.review_rows.value(kind, key) is None
            ]
        if steps:
            self.write(FOLD, lambda: steps, about=("", ""))

    def follow(self) -> str:
        """Fetch the changes that other replicas committed.

        This takes one round trip. The folder's lock is taken only if there are such changes.

        Returns the reason why some changes may be missing here, "" if all are here.
        """
        # The changes were fetched when `writing` took the lock, and nobody else can write now
        if self._is_writing or self.queue.changes:
            return ""
        try:
            progress = self._filling_progress()
            if progress:
                return progress
            newest = self._database.newest()
            if self._is_behind(newest):
                with waits_at_most(_FOLLOW_SECONDS), self.lock:
                    # Another process of this machine may have fetched the changes in between.
                    if self._is_behind(newest):
                        self._update_folder()
            self.reads.exchange()
        except DatabaseAway as error:
            return f"What others changed lately may be missing here: {error.reason} ({error.path})."
        except Busy as error:
            return f"What others changed lately may be missing here: {error.reason}"
        except OSError as error:
            return f"What others changed lately may be missing here: {reason(error)}."
        return ""

    def _filling_progress(self) -> str:
        """Return a sentence about how far the first copy of a large space is, "" if it is complete."""
        if self._has_complete_copy():
            return ""
        progress = self._cold_start.progress()
        if not progress and self._serves:
            # The process that filled the folder has ended, or the server could not be reached.
            self._cold_start.start()
            progress = self._cold_start.progress()
        return progress

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
        temporary_file = record.with_name(f".{record.name}-{os.getpid()}")
        with (
            storing("the record of what is to be erased"),
            changing_shared(self.layout.root, record),
        ):
            if plan is None:
                record.unlink(missing_ok=True)
            else:
                temporary_file.unlink(missing_ok=True)
                write_file(str(temporary_file), plan.encode())
                os.replace(temporary_file, record)
            sync_folder(record.parent)

    def purge_deleted(self) -> tuple[str, ...]:
        remaining_copies = self._database.rewrite_tables()
        return (*remaining_copies, *self._database.keeps_elsewhere())

    def lag(self) -> int | None:
        """Return how many changes of other machines are still missing after a try to fetch them.

        None if the server cannot be asked. Raises DatabaseRefused.
        """
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
        """Describe a fault in the set-up of the server, "" if there is none.

        Row-level security of PostgreSQL keeps the spaces of a database apart. The fault is a role
        that it does not apply to, such as a superuser.
        """
        role = ""
        with suppress(DatabaseAway):
            role = self._database.role_without_policies()
        if not role:
            return ""
        return (
            f"the role {role} is not held by row-level security, the second belt between spaces: CREATE ROLE memory "
            "LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD '...', make it the owner of the schema memoranda and its tables, "
            "and name it in the address (docs/teams.md)"
        )

    def _is_behind(self, state: SpaceState) -> bool:
        """Whether the folder has another state than this one, which the space has now."""
        own_state = self._folder.state()
        if own_state is None or not _is_same_state(own_state, state):
            return True
        return self.history.last != state.last

    # --- bringing what the database has

    def _apply_news(self, own_state: ReplicaState, last: int) -> bool:
        """Fetch and apply the changes after the number `last`, if they are few.

        own_state: the state of the space that the folder is a copy of.
        last: the number of the last change in the history here.

        Returns whether the folder is now up to date.
        """
        news = self._database.news(last, _FEW)
        if news is None:
            return False
        # If the space is another one or was revised, new changes are not enough
        if not _is_same_state(own_state, news.state) or last > news.state.last:
            return False
        places = {(row.project, row.path) for row in news.files}
        return self._apply(news.changes, places, news.files)

    def _update_folder(self) -> None:
        """Bring the folder up to date with the database. The folder's lock must be held.

        A few new changes are applied one by one. If there are many, or if the histories differ, all
        files are compared. Raises StorageError, OSError.
        """
        recorded_state = self._folder.state()
        last = self.history.last
        # The state of the space that the folder is a complete copy of. None for an incomplete copy.
        own_state = recorded_state
        if recorded_state is not None and recorded_state.boot != self._boot:
            # After a restart of the machine, files may lack bytes that had not reached the disk.
            own_state = None
        has_history = last > 0
        if has_history and own_state is not None and self._apply_news(own_state, last):
            return

        with self._database.snapshot() as snapshot:
            state = snapshot.state()
            if own_state is not None and (own_state.id != state.id or last > state.last):
                # The folder is a copy of an earlier space of this name.
                own_state = None
            is_revised = own_state is not None and own_state.epoch != state.epoch
            if own_state is None or is_revised:
                self._update_whole_folder(snapshot, state, own_state)
            else:
                # From the last change here on, by which `_apply` compares the histories
                changes = list(snapshot.changes(last or 1))
                is_same_history = self._apply(changes, snapshot.places(last), snapshot.rows(last))
                if not is_same_history:
                    self._update_whole_folder(snapshot, state, own_state=None)

        if recorded_state is None or recorded_state.files != state.files:
            self._shared.show(self._database.shared_files())
        self._record_complete_copy(state)

    def _apply(
        self,
        changes: Sequence[Change],
        places_there: Collection[Key],
        rows: Iterable[FileRow],
    ) -> bool:
        """Apply the changes after the last one here.

        changes: the changes of the space, beginning with the last one here if there is one.
        places_there: the places that these changes wrote, and that exist in the space now.
        rows: the files, folders and links at those places.

        Returns False, and does nothing, if the first change is not the last one here: the histories
        differ.
        """
        if self.history.last:
            last_change = self.history.change(self.history.last)
            if not changes or changes[0] != last_change:
                return False
            changes = changes[1:]
        if not changes:
            return True
        self._folder.begin()
        # Places are emptied first, since a new file may need the place of a folder.
        for touched in chain.from_iterable(change.files for change in changes):
            for key in self._folder.emptied_by(touched, places_there):
                self._folder.remove(*key)
        for row in rows:
            self._folder.put(row)
        self.history.append_all(changes)
        self._record_erasure(changes)
        return True

    def _update_whole_folder(
        self, snapshot: Snapshot, state: SpaceState, own_state: ReplicaState | None
    ) -> None:
        """Compare the whole folder with the space, and fetch the differences.

        snapshot: the space at one moment.
        state: its state at this moment.
        own_state: the state of the space of which the folder is a copy, up to the last change here.
            None if the folder is not a complete copy: then every file is read.
        """
        # Until the end, the folder is an incomplete copy.
        self._folder.set_state(None)
        self._folder.begin()
        digests = snapshot.places(ALL_FILES)
        self._remove_others(digests)
        if own_state is not None:
            # Only files that were changed after the last change here can differ.
            last = self.history.last
            differing_places = list(snapshot.places(last))
        else:
            last = ALL_FILES
            differing_places = [
                key for key, digest in digests.items() if not self._folder.holds(key, digest)
            ]
        self._fetch_places(snapshot, differing_places, last)

        # If only some changes were revised, it is enough to fetch these.
        if own_state is not None and own_state.epoch < state.epoch:
            is_followed = self._follow_revised(snapshot, own_state.epoch)
            if is_followed:
                return
        self._fetch_history(snapshot)

    def _fetch_places(self, snapshot: Snapshot, keys: Sequence[Key], last: int) -> None:
        """Fetch the files at these places, and write them into the folder.

        snapshot: the space at one moment.
        keys: the places.
        last: all these files changed after the change with this number. ALL_FILES if that is
            unknown.
        """
        if len(keys) <= _FEW:
            for key in keys:
                row = snapshot.row(*key)
                if row is not None:
                    self._folder.put(row)
            return
        # Many files are read faster together than one by one.
        missing_places = set(keys)
        for row in snapshot.rows(last):
            if (row.project, row.path) in missing_places:
                self._folder.put(row)

    def _remove_others(self, places_there: Collection[Key]) -> None:
        """Remove everything from the folder that is not at one of these places.

        places_there: the places that exist in the space now.
        """
        # The contents of a folder come before the folder
        for key in reversed(self._folder.all_places()):
            if key not in places_there:
                self._folder.remove(*key)

    def _fetch_history(self, snapshot: Snapshot) -> None:
        """Replace the history here by the history of the space."""
        before = self.history.last
        changes = list(snapshot.changes(since=0))
        self.history.replace_all(changes)
        self._record_erasure(changes, before)

    def _follow_revised(self, snapshot: Snapshot, epoch: int) -> bool:
        """Fetch the changes that were revised after an epoch of the space, and new changes.

        A space begins a new epoch whenever earlier changes are revised or purged.

        snapshot: the space at one moment.
        epoch: the epoch of the space that the history here is of.

        Returns False if the history here still differs from the history of the space.
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
        self._record_erasure(changes[1:])
        return True

    def _fill_folder(self, tell: Callable[[int, int], bool]) -> None:
        """Fetch all notes for the first time. Between two batches, others may take the folder's lock.

        tell: called with (notes so far, all notes). Returns whether to go on.
        """
        database = SpaceDatabase(self._url, self._space)
        try:
            with database.snapshot() as snapshot:
                state = snapshot.state()
                places_there = snapshot.places(ALL_FILES)
                is_filled = self._fill_in_batches(snapshot, len(places_there), tell)
                if not is_filled:
                    return
                with self.lock:
                    if self._has_complete_copy():
                        # Another process has completed the copy in between.
                        return
                    self._remove_others(places_there)
                    self._fetch_history(snapshot)
                    self._shared.show(database.shared_files())
                    self._record_complete_copy(state)
        finally:
            database.close()

    def _fill_in_batches(
        self, snapshot: Snapshot, total: int, tell: Callable[[int, int], bool]
    ) -> bool:
        """Write the files of the space into the folder, and release its lock after each batch.

        total: how many files the space has.
        tell: called with (notes so far, all notes). Returns whether to go on.

        Returns False if `tell` ended the work, or if another process has completed the copy.
        """
        files_done = 0
        rows = snapshot.rows(ALL_FILES)
        while batch := list(islice(rows, _BATCH)):
            is_to_go_on = tell(files_done, total)
            if not is_to_go_on:
                return False
            with self.lock:
                if self._has_complete_copy():
                    return False
                if files_done == 0:
                    self._folder.begin()
                self._put_missing_files(batch)
            files_done += len(batch)
        return True

    def _has_complete_copy(self) -> bool:
        """Whether the folder has a complete copy of the space, which need not be the latest."""
        return self._folder.state() is not None

    def _put_missing_files(self, rows: Iterable[FileRow]) -> None:
        """Write rows of the space into the folder, except files that it has already."""
        for row in rows:
            place = (row.project, row.path)
            is_there = row.kind == "file" and self._folder.holds(place, row.sha256)
            if not is_there:
                self._folder.put(row)

    def _record_erasure(self, changes: Sequence[Change], before: int = 0) -> None:
        """If another machine erased notes, record that derived data must be removed here.

        changes: changes that were fetched.
        before: changes up to this number were here already, and do not count.
        """
        new_changes = [change for change in changes if change.number > before]
        if any(change.verb == ERASE and change.details for change in new_changes):
            put_derived(self.layout.erased, b"")

    def _record_complete_copy(self, state: SpaceState) -> None:
        """Record that the folder is a complete copy of this state."""
        self._folder.set_state(ReplicaState(state.id, state.epoch, state.files, self._boot))

    # --- changing

    def make(self, changes: Sequence[PlannedChange]) -> None:
        """Commit changes in the database, all or none, then show them in the folder.

        For a change that is not made, `error` is set, as in `Ledger.make`. It is OutcomeUnknown if
        the connection was lost during the commit and the server cannot be asked. Then the next call
        sees whether the changes were committed.
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
                self._show_in_folder(execution, made)
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
        folders: the (root, path) of the folders that earlier changes of this batch will make. The
            folders of this change are added.
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
            is_first_of_run = change.run == 0
            if is_first_of_run:
                change.run = number
            change.files = [touched_by(step) for step in planned.steps]
            folded |= planned.folded
        try:
            changes_with_steps = [(planned.change, planned.steps) for planned in changes]
            self._database.commit(changes_with_steps, folded)
        except (Conflict, Exists):
            self._reset_places(list(chain.from_iterable(planned.steps for planned in changes)))
            raise

    def _show_in_folder(self, execution: Execution, changes: Sequence[PlannedChange]) -> None:
        """Write committed changes to the files of the folder.

        If a file cannot be written, the folder is brought up to date from the database instead. If
        this fails, too, the `error` of each change is set to NotPutBack.

        execution: carries out the steps.
        """
        steps = list(chain.from_iterable(planned.steps for planned in changes))
        try:
            for step in steps:
                execution.run(step)
            self.history.append_all([planned.change for planned in changes])
            for step in steps:
                if step.do == StepKind.SET:
                    self.review_rows.store(step.path, step.data)
            return
        except (OSError, MemorandaError):
            # A file that has no row in the database was in the way
            pass

        try:
            self._update_folder()
        except (OSError, MemorandaError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            last = changes[-1].change.number
            not_put_back = NotPutBack(
                "the copy on this machine", f"{why}; in the database change {last} is made"
            )
            for planned in changes:
                planned.error = not_put_back

    def _reset_places(self, steps: Sequence[Step]) -> None:
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


def _is_same_state(own_state: ReplicaState, state: SpaceState) -> bool:
    """Whether a folder is a copy of the same space, although it may lack the latest changes.

    Besides the id of the space, two counters must be equal: `epoch` counts when older changes were
    revised, such as by an erasure, and `files` counts when shared files changed.

    own_state: the state that the folder is a copy of.
    state: the state of the space now.
    """
    return (own_state.id, own_state.epoch, own_state.files) == (state.id, state.epoch, state.files)


def _are_of_machine(changes: Sequence[PlannedChange]) -> bool:
    """Whether these changes are of files used in place, which only this machine has.

    Such a change is never made together with changes of notes.
    """
    return any(planned.lines is not None for planned in changes)


def _check_folders(steps: Sequence[Step], folders: Collection[tuple[str, str]]) -> None:
    """Raise OutsideError or NotFound for a path that leads through a link or a file.

    The database would accept it, since its rows do not know what is on this disk.

    folders: the (root, path) of folders that earlier changes make.
    """
    made_by_steps = {(step.root, step.path) for step in steps if step.do == StepKind.MKDIR}
    made_folders = {*folders, *made_by_steps}
    for step in steps:
        # Only a move has `to`
        new_path = step.to or step.path
        parent = new_path.rpartition("/")[0]
        is_there = os.path.lexists(os.path.join(step.root, parent))
        if is_there and (step.root, parent) not in made_folders:
            # Opening a folder checks that it is a real folder inside the step's project
            with open_folder(step.root, parent, step.project):
                pass
