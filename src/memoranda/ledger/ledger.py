"""The writer: the only way the bytes of notes change, all or nothing (docs/format.md).

A source turns an edit into steps, and a change is a list of steps. `Ledger.write` checks that the
files are as they were read and writes the new bytes as temporary files. It records the change with
its steps, the replaced texts and the new texts in the ledger, and commits: that is the promise. Then
the files are exchanged. The next process that takes the lock after a writer died completes the
changes that are in the ledger but not on disk. The files are synced within a second.

Changes of several callers may be made together (docs/concurrency.md).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import datetime
from functools import cached_property
from itertools import chain
from sqlite3 import Connection, Row
from typing import TYPE_CHECKING, Any

from memoranda import former_name
from memoranda.clock import Clock, stamp, waits_at_most
from memoranda.errors import (
    Busy,
    Conflict,
    MemorandaError,
    NotFound,
    NotPutBack,
    OutcomeUnknown,
    StorageError,
)
from memoranda.ledger.boot import boot_id
from memoranda.ledger.database import LedgerDatabase, LedgerRefused
from memoranda.ledger.lock import HomeLock
from memoranda.ledger.paused_rows import PausedRows
from memoranda.ledger.planned_change import ChangeQueue, PlannedChange, accepted
from memoranda.ledger.reads import ReadRow, Reads
from memoranda.ledger.refused_files import RefusedFiles
from memoranda.ledger.review_rows import ANSWER, REQUEST, ReviewRows
from memoranda.sources.base import Unconfirmed
from memoranda.sources.files import (
    UNWRITABLE,
    closed_on_error,
    is_alive,
    make_private,
    reason,
    refusal,
    remove_left,
    storing,
)
from memoranda.sources.layout import TEMP_PREFIX, Layout
from memoranda.sources.step import StepKind
from memoranda.text.pattern import lazy_pattern

# Commands that only read do not load what writes.
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from memoranda.ledger.change import Change
    from memoranda.ledger.execution import Execution
    from memoranda.ledger.file_sync import FileSync
    from memoranda.ledger.history import History
    from memoranda.ledger.lines import LineChanges
    from memoranda.ledger.served_rows import ServedRows
    from memoranda.ledger.sessions import SessionRows
    from memoranda.sources.line_change import LineChange
    from memoranda.sources.step import Step

HOME_TEMP = lazy_pattern(
    r"\.(?:(?:memory|pending(?:\.[a-z0-9._-]+)?)\.md-(?=\d+-[0-9a-f]{8})"
    r"|dream-report\.json-(?=\d+-[0-9a-f]{8})"
    r"|config\.yaml-|erasing-|index[^/]*\.db-|[^/]+\.vectors-)(\d+)(?:-[0-9a-f]{8})?"
)
"""The name of a temporary file beside a list, the configuration, a report, the index or vectors, as
`.config.yaml-4711`. Its group is the number of the process that wrote it. It is written whole, then
takes the place of the file it is named after."""
# The temporary file of a step, as `temp_mark` and `place_temps` name it. An earlier version named
# the change, too: `.tmp-4711-17-9f86d081-0`. The group is the number of the process.
_TEMP = lazy_pattern(
    rf"{re.escape(TEMP_PREFIX)}(\d+)-(?:\d+-[0-9a-f]{{8}}|[0-9a-f]{{12}})-\d+(?:-out)?"
)
_PENDING_STEP = (
    "insert into pending_step (change, position, root, temp, temp_folder, mode, data) "
    "values (?, ?, ?, ?, ?, ?, ?)"
)
# Seconds to wait for a lock whose holder may have died.
_RECOVERY_WAITS = 0.5
# A change that was set aside is named by its number: `change-17`.
_WAITING_PREFIX = "change-"


class Ledger:
    """Writes the notes of one home: takes its lock, records each change, exchanges the files.

    Thread-safe through its lock.
    """

    holds_truth = True
    """Whether the notes on disk are the only truth. Then a file that differs from the text that was
    read is a Conflict, and written files are synced. False where they are copies of a server's.
    """

    def __init__(self, layout: Layout, clock: Clock):
        self.layout = layout
        self._clock = clock
        self._boot = boot_id()
        # Whether this process has looked for changes that an earlier boot left unfinished
        self._has_looked_through = False
        # Whether an earlier version of memoranda kept its records in files here
        self._has_former_files = False
        # (root, path) of the folders that the table `temp_folder` has already
        self._temp_folders: set[tuple[str, str]] = set()
        self.queue = ChangeQueue()
        """The changes that wait to be made together."""
        # First, because nothing is adopted once the private folder exists
        former_name.adopt(layout.root, layout.private)
        hint = f"It is {layout.root}. Choose another one with --home or MEMORY_HOME."
        with storing("the memory home", hint):
            # Most homes have their private folder inside, and need no further module
            if layout.is_apart:
                from memoranda.ledger.state_folder import open_state

                open_state(layout)
            try:
                make_private(layout.private)
            except OSError as error:
                # A home on a disk that may not be written can still be read
                is_readable_home = error.errno in UNWRITABLE and layout.root.is_dir()
                if not is_readable_home:
                    raise
            self.database = LedgerDatabase(layout.ledger)
            with closed_on_error(self.database):
                self._open_parts()

    def _open_parts(self) -> None:
        """Open the parts that use the database, and complete the work of a writer that died."""
        self.reads = self._open_reads()
        self.review_rows = ReviewRows(self.database, str(self.layout.private))
        self.paused_rows = PausedRows(self.database)
        self.refused_files = RefusedFiles(self.database, self._boot)
        self.lock = HomeLock(self.layout.private, self._complete_interrupted)
        self._has_former_files = self.layout.has_former_files()
        if self.unfinished() or self._has_former_files:
            self.try_to_recover()
        for folder in (self.layout.root, self.layout.private, self.layout.vectors):
            remove_left(folder, HOME_TEMP)

    @cached_property
    def history(self) -> History:
        """The changes and the texts they replaced."""
        return self._open_history()

    def _open_history(self) -> History:
        """Return the history of this home."""
        from memoranda.ledger.history import History

        return History(self.layout, self.database)

    def _open_reads(self) -> Reads:
        return Reads(self.database, self._clock)

    @cached_property
    def served_rows(self) -> ServedRows:
        """The notes that agents were given."""
        from memoranda.ledger.served_rows import ServedRows

        return ServedRows(self.database)

    @cached_property
    def lines(self) -> LineChanges:
        """The history of single lines, in files of other programs that are edited in place."""
        from memoranda.ledger.lines import LineChanges

        return LineChanges(self.history)

    @cached_property
    def file_sync(self) -> FileSync:
        """The files that were written and are not synced yet."""
        from memoranda.ledger.file_sync import FileSync

        return FileSync(self._forget_synced, self.refused_files.record)

    def trouble(self) -> str:
        """Describe the trouble with the storage of the notes, "" if all is well.

        Raises DatabaseRefused.
        """
        return self.database.trouble

    def close(self) -> None:
        """Sync the remaining files and release all files. The home stays as it is."""
        with ExitStack() as closing:
            # The callback that is pushed last runs first. If one raises, the others run, too.
            closing.callback(self.lock.close)
            closing.callback(self.database.close)
            # These two are made when they are first needed (`cached_property`)
            if "_threads" in vars(self):
                closing.callback(self._threads.shutdown)
            if "file_sync" in vars(self):
                closing.callback(self.file_sync.close)
            closing.callback(self.reads.close)

    # --- several machines (`ReplicaLedger`)

    def follow(self) -> str:
        """Fetch the changes of other machines. Called at the beginning of every call.

        Returns the reason why some changes may be missing here, "" if all are here. A home that is
        only a folder has no other machines, and fetches nothing.
        """
        return ""

    def lag(self) -> int | None:
        """Return how many changes of other machines are missing here.

        None if the server cannot be asked. Raises DatabaseRefused.
        """
        return 0

    def erased(self) -> bool:
        """Whether another machine erased something that the index of this machine may still hold.

        False in a home that is only a folder, because it has no other machines.
        """
        return False

    def runs_jobs(self) -> bool:
        """Whether this process does the upkeep of the home, and not another machine."""
        return True

    # --- changing

    def writing(self) -> AbstractContextManager[object]:
        """Return the lock that a process must hold to change notes.

        Entering it raises the errors of `HomeLock`.
        """
        return self.lock

    def write(
        self,
        verb: str,
        plan: Callable[[], Sequence[Step]],
        about: tuple[str, str],
        **more: Any,
    ) -> Change:
        """Carry out the steps that `plan` returns as one change: all or nothing, durable on return.

        verb: the verb under which the history lists the change, such as `edit`.
        plan: returns the steps. It is called with the lock held, so that nobody else writes.
        about: the (project, path) that the history lists the change under.
        more: further arguments of the method `plan`.

        Raises Conflict when a file is not as it was read, Exists when a destination is taken,
        StorageError when the disk refuses, and the errors of the function `plan`. Then nothing
        changed.

        Several callers can share one wait for the disk. Instead of `write`, each calls the methods
        `plan` and `put_in_queue`, and then one of them calls `make_waiting` for all. Bytes of a note
        change in no other way.
        """
        with self.writing():
            planned = self.plan(verb, plan(), about=about, **more)
            self.make([planned])
        if planned.error is not None:
            raise planned.error
        return planned.change

    def plan(
        self,
        verb: str,
        steps: Sequence[Step],
        *,
        about: tuple[str, str],
        agent: str | None = None,
        face: str | None = None,
        undoes: int | None = None,
        details: dict[str, Any] | None = None,
        run: int | None = None,
        by: dict[str, str] | None = None,
        folded: Mapping[str, ReadRow] | None = None,
    ) -> PlannedChange:
        """Make a change of these steps, without writing it. It gets its number when it is made.

        verb: the verb under which the history lists the change, such as `edit`.
        about: the (project, path) that the history lists the change under.
        agent: the agent that makes the change; None for the owner.
        face: the interface by which the change was asked for, such as `mcp`. None if no interface is
            to be named.
        undoes: the number of the change to undo, or of the first one of several; None if the change
            is not an undo.
        details: further facts about the change, which depend on the verb. None for no facts.
        run: the number of the run that the change belongs to, which is the number of its first
            change. A run is a series of changes that a job makes and that are undone together.
            0 makes this change the first of a new run. None means no run.
        by: further facts about the caller, such as its client. None for no facts.
        folded: the read counts that this change writes into headers of notes, by path of the note.
            They are subtracted from the counts in the ledger. None for no counts.
        """
        from memoranda.ledger.change import Change

        project, path = about
        change = Change(
            # The number and the files are set when the change is made
            number=0,
            files=[],
            time=stamp(self._clock()),
            verb=verb,
            project=project,
            path=path,
            agent=agent,
            face=face,
            undoes=undoes,
            details=details,
            run=run,
            by=by,
        )
        return PlannedChange(change, [*steps], folded or {})

    def put_in_queue(self, planned: PlannedChange) -> None:
        """Put a change into the queue, to be made together with other changes. Does not wait.

        The lock must be held by the caller. It is not freed before `make_waiting`.
        """
        # The first change keeps the lock for all of them. `make_waiting` lets it go once.
        if not self.queue.changes:
            self.lock.keep()
        self.queue.add(planned)

    def make_waiting(self) -> None:
        """Make the changes that `put_in_queue` collected, as `make` does. The lock must be held.

        The first call of `put_in_queue` kept the lock from being freed. This ends that, so that the
        lock is free as soon as the caller leaves it.
        """
        changes = self.queue.take_all()
        self.lock.let_go()
        self.make(changes)

    def make(self, changes: Sequence[PlannedChange]) -> None:
        """Make several changes durable with one wait for the disk. The lock must be held.

        First all changes are recorded in the ledger (`_promise`), then the files are exchanged
        (`_apply_all`). Each change is made as a whole or not at all. For a change that is not made,
        `error` is set to the exception that `write` would raise.
        """
        from memoranda.ledger.execution import Execution
        from memoranda.ledger.file_sync import places_of

        execution = Execution(holds_truth=self.holds_truth)
        try:
            self._promise(execution, changes)
            # The changes are in the ledger now. After a crash, the next process carries them out.
            self._apply_all(execution, accepted(changes))
        except KeyboardInterrupt:
            # It also does so after this interruption, because the lock is left torn.
            self.lock.leave_torn()
            raise
        finally:
            has_removed_temps = execution.remove_stuck_temps()
            if not has_removed_temps:
                # The next process that takes a torn lock removes the temporary files.
                self.lock.leave_torn()
            execution.close()
        made = accepted(changes)
        if not made:
            return
        # The ledger is on the disk already, the files follow within a second
        steps = list(chain.from_iterable(planned.steps for planned in made))
        self.file_sync.add([planned.change.number for planned in made], places_of(steps))

    def _promise(self, execution: Execution, changes: Sequence[PlannedChange]) -> None:
        """Record the changes in the ledger. From then on they will be made, even after a crash.

        A change that is refused leaves nothing behind.

        execution: writes the temporary files.
        """
        planned_folders = set[tuple[str, str]]()
        for planned in changes:
            try:
                self._prepare(execution, planned, planned_folders)
            except (OSError, MemorandaError) as error:
                self._refuse(execution, planned, error)
        prepared = accepted(changes)
        if not prepared:
            return
        try:
            self._record(prepared)
        except (OSError, MemorandaError) as error:
            for planned in prepared:
                self._refuse(execution, planned, error)
                # One change of several may be the only one to fail, so each is tried alone. But a
                # change that may have been made after all must not be made twice.
                is_unknown = isinstance(error, (OutcomeUnknown, NotPutBack))
                planned.may_go_alone = len(changes) > 1 and not is_unknown

    def _prepare(
        self, execution: Execution, planned: PlannedChange, planned_folders: set[tuple[str, str]]
    ) -> None:
        """Check that the files are as they were read, and write the new bytes beside them.

        execution: checks and writes the files.
        planned: the change.
        planned_folders: the (root, path) of the folders that earlier changes of this batch will
            make. The folders of this change are added.
        """
        planned.check()
        steps = [*missing_folders(planned.steps, planned_folders), *planned.steps]
        planned.steps = steps
        # Files of a large change were written before (`write_ahead`)
        unwritten_steps = [step for step in steps if step.stamp is None]
        self._place_temps(unwritten_steps)
        execution.check(steps)
        execution.write_temps([step for step in unwritten_steps if step.do == StepKind.PUT])
        if planned.lines is not None:
            planned.lines.write.prepare()
        self._keep_large_texts(execution, steps)
        planned_folders |= {(step.root, step.path) for step in steps if step.do == StepKind.MKDIR}

    def _place_temps(self, steps: Sequence[Step]) -> None:
        """Set where the temporary files of steps will be, and record their folders."""
        place_temps(steps, temp_mark())
        self._record_temp_folders(steps)

    def _record_temp_folders(self, steps: Sequence[Step]) -> None:
        """Record where temporary files will be, before they exist.

        After a crash, leftover files are looked for there (`_remove_temps`).
        """
        projects = {(step.root, step.temp_folder): step.project for step in steps if step.temp}
        new_folders = projects.keys() - self._temp_folders
        if not new_folders:
            return
        with self.database.transaction(durable=False) as connection:
            connection.executemany(
                "insert or ignore into temp_folder (project, root, path) values (?, ?, ?)",
                [(projects[folder], *folder) for folder in new_folders],
            )
        self._temp_folders |= new_folders

    def _keep_large_texts(self, execution: Execution, steps: Sequence[Step]) -> None:
        """Make the texts durable that are not stored as rows of the ledger.

        They are too large, or may leave no trace in the ledger. For a new text, its temporary file
        is synced. A replaced text gets a second name (a hard link) beside the ledger.

        execution: opens the folders of the files.
        """
        from memoranda.ledger.file_sync import PARALLEL_SYNCS, sync_places
        from memoranda.ledger.history import LARGE

        puts = [step for step in steps if step.do == StepKind.PUT and not _is_in_ledger(step)]
        if puts:
            # Threads are only started for several files.
            threads = self._threads if len(puts) >= PARALLEL_SYNCS else None
            execution.sync_temps(puts, threads)
            sync_places({os.path.join(step.root, step.temp_folder) for step in puts})
        for step in steps:
            if step.old is None or not _keeps_old(step):
                continue
            is_large = len(step.old.data) >= LARGE
            if is_large:
                entry = execution.entry_of(step)
                self.history.keep_large(step.old, entry.name, entry.folder)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Threads that wait for the disk while it syncs many files at once."""
        from concurrent.futures import ThreadPoolExecutor

        from memoranda.ledger.file_sync import PARALLEL_SYNCS

        return ThreadPoolExecutor(PARALLEL_SYNCS, thread_name_prefix="sync")

    def _record(self, changes: Sequence[PlannedChange]) -> None:
        """Commit changes in the ledger. From then on they survive a crash.

        A change may set rows of the ledger. If others changed these rows since they were read, the
        change is not recorded, and its `error` becomes a Conflict.
        """
        number = self._number_before(changes)
        batch = number + 1
        # The commit at the end of the `with` block is the promise. It waits for the disk, unless each
        # change is durable in its own file.
        is_durable = not all(self._is_safe_in_file(planned) for planned in changes)
        with self.database.transaction(durable=is_durable) as connection:
            for planned in changes:
                connection.execute("savepoint one_change")
                try:
                    self._record_change(connection, planned, number + 1, batch)
                    number += 1
                except Conflict as error:
                    connection.execute("rollback to one_change")
                    planned.error = error
                connection.execute("release one_change")

    @staticmethod
    def _is_safe_in_file(planned: PlannedChange) -> bool:
        """Whether the change is durable without a sync of the ledger.

        Only a change that adds a single line to a file used in place is: the file itself is synced, and
        the line is there or not. If several lines were added, a crash could leave some of them.
        """
        lines = planned.lines
        return lines is not None and not lines.old and len(lines.added) == 1

    def _number_before(self, changes: Sequence[PlannedChange]) -> int:
        """Return the number of the latest change in the ledger: these changes get the next ones."""
        return self.history.last

    def _record_change(
        self, connection: Connection, planned: PlannedChange, number: int, batch: int
    ) -> None:
        """Insert the rows of one change.

        planned: the change.
        batch: the number of the first change that is committed together with this one.
        """
        from memoranda.ledger.change import touched_by

        change = planned.change
        change.number = number
        is_first_of_run = change.run == 0
        if is_first_of_run:
            change.run = number
        if planned.lines is not None:
            self._record_lines(connection, planned, planned.lines)
            return
        change.files = [touched_by(step) for step in planned.steps]
        self.reads.subtract(connection, planned.folded)
        self.history.record(connection, [change])
        values = (number, batch, self._boot)
        connection.execute("insert into unsynced (change, batch, boot) values (?, ?, ?)", values)
        self._keep_replaced(connection, planned.steps)
        connection.executemany(
            _PENDING_STEP,
            [
                (number, position, *self._pending_columns(step))
                for position, step in enumerate(planned.steps)
            ],
        )
        self.review_rows.apply(connection, planned.steps)

    @staticmethod
    def _pending_columns(step: Step) -> tuple[object, ...]:
        """Return the values of `pending_step` that are needed to carry out a step again.

        They are root, temp, temp_folder, mode and data, as in `_PENDING_STEP`.
        """
        # Without a mode of its own, a step gives the new file the mode of the replaced one
        mode = step.mode
        if mode is None and step.old is not None:
            mode = step.old.mode
        new_text = None
        if _is_in_ledger(step):
            new_text = step.data
        return (step.root, step.temp, step.temp_folder, mode, new_text)

    def _record_lines(
        self, connection: Connection, planned: PlannedChange, lines: LineChange
    ) -> None:
        """Record a change of a file used in place.

        planned: the change.
        lines: how the lines get into the file.
        """
        # A change of lines has exactly one step
        (step,) = planned.steps
        change = planned.change
        change.files = self.lines.touched_by(connection, step)
        self.history.record(connection, [change])
        self.lines.begin(connection, change.number, lines)

    def _keep_replaced(self, connection: Connection, steps: Sequence[Step]) -> None:
        """Insert the texts that steps replace. Large ones are in files of their own."""
        from memoranda.ledger.history import LARGE

        replaced = [
            (step.old.etag, step.old.data)
            for step in steps
            if step.old is not None and _keeps_old(step) and len(step.old.data) < LARGE
        ]
        connection.executemany("insert or ignore into text (sha256, data) values (?, ?)", replaced)

    def _refuse(
        self, execution: Execution, planned: PlannedChange, error: OSError | MemorandaError
    ) -> None:
        """Set the error of a change that is not made, and remove its temporary files.

        execution: reaches the temporary files.
        planned: the change.
        """
        execution.remove_temps(planned.steps)
        if isinstance(error, OSError):
            planned.error = refusal(planned.about, error)
        elif isinstance(error, LedgerRefused):
            planned.error = StorageError(planned.about, error.reason)
        else:
            planned.error = error

    def _apply_all(self, execution: Execution, changes: Sequence[PlannedChange]) -> None:
        """Carry out recorded changes on disk.

        If one fails, that change and all after it are removed from the ledger again. So the numbers
        of changes have no gaps.

        execution: carries out the steps.
        """
        for position, planned in enumerate(changes):
            try:
                for step in planned.steps:
                    execution.run(step)
                execution.confirm()
            except Unconfirmed as error:
                # The line is in the file and only its sync failed: the change counts as made
                planned.error = error
            except (OSError, MemorandaError) as error:
                self._take_back(execution, changes[position:], error)
                return
            execution.finish()
            if planned.lines is not None:
                self.lines.end(planned.change.number)

    def _take_back(
        self,
        execution: Execution,
        changes: Sequence[PlannedChange],
        error: OSError | MemorandaError,
    ) -> None:
        """Undo a change that could not be carried out, and remove it from the ledger.

        The changes after it were not begun. They are removed, too, and may be tried again one by
        one. Each change gets the error: `error`, or NotPutBack if some files could not be put back.

        execution: has carried out the first steps of the first change.
        changes: the change that failed, and those after it, which were not begun.
        error: the error of the step that failed.
        """
        # On disk: only the first change was begun, but all of them have temporary files
        failed = changes[0]
        lost_steps = execution.rollback()
        steps = chain.from_iterable(planned.steps for planned in changes)
        execution.remove_temps(list(steps))

        # In the ledger. If steps are lost, the failed change stays there, with the texts that these
        # steps replaced. If the ledger refuses, the changes are made when it is next opened.
        not_put_back = [step.path for step in lost_steps]
        try:
            removed_changes = changes[1:] if lost_steps else changes
            self.history.retract([planned.change.number for planned in reversed(removed_changes)])
            if lost_steps:
                self._keep_lost_steps(failed, lost_steps)
            for planned in changes:
                self.reads.add_back(planned.folded)
        except LedgerRefused:
            not_put_back.append("the ledger, by which the change may still be made")

        if not_put_back:
            why = reason(error) if isinstance(error, OSError) else str(error)
            places = ", ".join(not_put_back)
            failed.error = NotPutBack(failed.about, f"{why}; not put back: {places}")
        elif isinstance(error, OSError):
            failed.error = refusal(failed.about, error)
        else:
            failed.error = error
        for planned in changes[1:]:
            planned.error = failed.error
            planned.may_go_alone = True

    def _keep_lost_steps(self, planned: PlannedChange, lost_steps: Sequence[Step]) -> None:
        """Leave only the lost steps of a change in the ledger.

        planned: the change, which could not be carried out.
        lost_steps: its steps that could not be taken back.
        """
        from memoranda.ledger.file_sync import places_of

        number = planned.change.number
        positions = [
            position
            for position, step in enumerate(planned.steps)
            if any(step is lost_step for lost_step in lost_steps)
        ]
        self.history.retract_steps_except(number, positions)
        self.file_sync.add([number], places_of(lost_steps))

    def _forget_synced(self, numbers: Sequence[int]) -> None:
        """Delete the rows by which changes are carried out again after a crash.

        The files of the changes are safe on disk now. Changes that were set aside keep their rows.

        The rows also have the texts that the changes wrote. If an editor has saved over such a text
        before anybody read it, no other place has it. Then the history keeps it.

        numbers: the numbers of the changes.
        """
        rows = [(number,) for number in numbers]
        overwritten_texts = [
            step.data
            for step in self._pending_steps(numbers)
            if step.data is not None
            and self._has_other_text(os.path.join(step.root, step.path), step.data)
        ]
        with self.database.transaction(durable=False) as connection:
            for data in overwritten_texts:
                self.history.keep_overwritten_text(connection, data)
            for table in ("pending_step", "unsynced"):
                sql = (
                    f"delete from {table} where change = ? "
                    "and change not in (select change from waiting)"
                )
                connection.executemany(sql, rows)

    @staticmethod
    def _has_other_text(path: str, data: bytes) -> bool:
        """Whether there is a file at a path that has other bytes. A file that cannot be read has not."""
        with suppress(OSError):
            status = os.stat(path, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                return False
            if status.st_size != len(data):
                return True
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                return file.read() != data
        return False

    # --- temporary files of a large change, which are written before `make`

    def place_ahead(self, steps: Sequence[Step]) -> Execution:
        """Choose the places of the temporary files of a large change. The lock must be held.

        From here until `make` or `remove_ahead`, the lock must be kept (`HomeLock.keep`). If this
        process dies meanwhile, the next holder of the lock removes the files.

        Returns an execution, which is passed to `write_ahead`, `renew_ahead` and `remove_ahead`. It
        keeps the folders of the files open, so it finds them even if somebody moves such a folder.
        The caller closes it.
        """
        from memoranda.ledger.execution import Execution

        # A folder that the change moves must not have the files, so all steps are looked at.
        self._place_temps(steps)
        return Execution(holds_truth=self.holds_truth)

    def write_ahead(self, execution: Execution, steps: Sequence[Step]) -> None:
        """Write the temporary files of a large change, before `make` carries out its steps.

        Other threads of this process may use the home while the files are written: each has its
        own, at the place that `place_ahead` chose.

        If the disk refuses to write a file, all are removed. `make` then tries to write them again,
        and raises the error if it cannot.

        execution: what `place_ahead` returned.
        steps: the steps of the change.
        """
        puts = [step for step in steps if step.do == StepKind.PUT]
        try:
            execution.write_temps(puts)
        except (OSError, MemorandaError):
            self.remove_ahead(execution, puts)

    def renew_ahead(self, execution: Execution, steps: Sequence[Step]) -> None:
        """Find the temporary files that are no longer where `write_ahead` put them.

        Somebody may have deleted such a file, or moved the folder that contains it. The file is
        given up, and `make` writes it again.

        execution: what `place_ahead` returned.
        steps: the steps of the change.
        """
        from memoranda.ledger.execution import Execution

        present = Execution(holds_truth=self.holds_truth)
        try:
            lost = [step for step in steps if step.stamp is not None and not present.has_temp(step)]
        finally:
            present.close()
        self.remove_ahead(execution, lost)

    def remove_ahead(self, execution: Execution, steps: Sequence[Step]) -> None:
        """Remove the files of `write_ahead`, because the change is not made or is planned again.

        execution: what `place_ahead` returned.
        steps: the steps of the change.
        """
        puts = [step for step in steps if step.do == StepKind.PUT]
        execution.remove_temps(puts)
        has_removed_all = execution.remove_stuck_temps()
        if not has_removed_all:
            # The next process that takes the lock removes the other files
            self.lock.leave_torn()
        for step in puts:
            step.temp = ""
            step.stamp = None

    # --- after a death

    def unfinished(self) -> bool:
        """Whether a writer died at work, or a change of a file used in place is under way."""
        return self.lock.died() or self.has_line_change()

    def has_line_change(self) -> bool:
        """Whether a change of a file used in place is under way, or its writer died."""
        return self.database.row("select 1 from line_change limit 1") is not None

    def try_to_recover(self) -> None:
        """Complete the changes that a crashed writer left, if the lock is free.

        If a writer holds the lock, it is alive and completes its own changes. In a read-only home
        nothing can be completed.
        """
        # Whenever the lock is taken, `_complete_interrupted` is called
        with suppress(Busy, OSError, StorageError), waits_at_most(_RECOVERY_WAITS), self.lock:
            pass

    def _complete_interrupted(self, has_died: bool) -> None:
        """Complete the changes that a crash or a power failure interrupted.

        `HomeLock` calls this whenever it was taken.

        has_died: whether the process that held the lock last died with it.
        """
        is_other_file = self.database.refresh()
        if is_other_file:
            # The new file does not have the folders that were recorded in the old one
            self._temp_folders.clear()
        if not self.database.is_writable:
            return
        if self.has_line_change():
            self.lines.recover()
        if has_died:
            self._recover()
        elif not self._has_looked_through or self.refused_files.is_due:
            self._look_through()
        if self._has_former_files:
            self._take_over()
            self._has_former_files = False
        self._has_looked_through = True

    def _take_over(self) -> None:
        """Move the records that an earlier version of memoranda kept in files into the ledger."""
        from memoranda.ledger.takeover import Damaged, take_over, take_over_review

        take_over(self.layout, self.database)
        for kind in (ANSWER, REQUEST):
            with suppress(Damaged):
                take_over_review(self.layout, self.database, kind)

    def _look_through(self) -> None:
        """Find changes that are recorded but not synced to the disk yet.

        This is done once in each process, and again after the disk refused files. If the machine
        was restarted since then, the changes are carried out again. If the disk refused their
        files, these are written again. Else they are only synced.
        """
        rows = self.database.rows("select change, boot from unsynced order by change")
        if any(self._has_lost_power(row) for row in rows):
            self._recover()
            return
        numbers = [row["change"] for row in rows if row["boot"] == self._boot]
        if numbers:
            from memoranda.ledger.file_sync import places_of

            self.file_sync.add(numbers, places_of(self._pending_steps(numbers)))
        # All rows without lost power are of this boot, or have the mark of refused files
        has_refused_files = len(numbers) < len(rows)
        if has_refused_files:
            written_again = self._write_refused_again()
            self._sync_again(written_again)

    def _recover(self) -> None:
        """Carry out the recorded changes that the disk may lack, and remove temporary files.

        A change that cannot be carried out now is set aside.
        """
        rows = self.database.rows(
            "select change, batch, boot from unsynced "
            "where change not in (select change from waiting) order by change"
        )
        latest_batch = max((row["batch"] for row in rows), default=0)
        carried_out: list[int] = []
        for row in rows:
            number = row["change"]
            has_lost_power = self._has_lost_power(row)
            # Changes of earlier batches were carried out before the lock was free. Only a power
            # loss can have undone them.
            may_be_unfinished = has_lost_power or row["batch"] == latest_batch
            if may_be_unfinished:
                try:
                    self._complete(number, lost_power=has_lost_power)
                except (OSError, MemorandaError):
                    # The disk of the project may not be mounted. `memory doctor` tries again.
                    sql = "insert or ignore into waiting (change) values (?)"
                    with self.database.transaction() as connection:
                        connection.execute(sql, (number,))
                    continue
            carried_out.append(number)
        self._write_refused_again()
        self._sync_again(carried_out)
        self._remove_temps()

    def _has_lost_power(self, row: Row) -> bool:
        """Whether the machine was restarted since a change of the table `unsynced` was made."""
        return row["boot"] not in (self._boot, self.refused_files.mark)

    def _complete(self, number: int, *, lost_power: bool) -> None:
        """Carry out those steps of one recorded change that are not done yet.

        number: the number of the change.
        lost_power: whether the machine stopped since it was recorded. Then written files may be
            empty.

        Raises MemorandaError, OSError when a file is out of reach.
        """
        from memoranda.ledger.execution import Execution

        change = self.history.change(number)
        steps = self._pending_steps([number])
        # Without all of its rows the change cannot be carried out as a whole
        if change is None or len(steps) != len(change.files):
            return
        for step in steps:
            # The folder of the project may be on a disk that is not mounted now
            if not os.path.isdir(step.root):
                raise NotFound(step.path, step.project)
        execution = Execution()
        try:
            # Somebody edited a file before the first step: the edit wins, as in a Conflict
            if not lost_power and execution.is_overtaken(steps, change.files):
                self.history.retract([number])
                return
            for step, touched in zip(steps, change.files, strict=True):
                # If a later change is on the disk already, its file must not become an earlier one
                if lost_power and self.refused_files.is_replaced(number, step):
                    continue
                execution.resume(step, touched, lost_power=lost_power)
            execution.finish()
            execution.remove_temps(steps)
        finally:
            execution.close()

    def _pending_steps(self, numbers: Iterable[int]) -> list[Step]:
        """Return the steps of unsynced changes as they were planned, from the rows of the ledger.

        numbers: the numbers of the changes.
        """
        sql = (
            "select s.do, s.project, s.path, s.dest, s.scope, s.link, s.kept, p.root, p.temp, "
            "p.temp_folder, p.mode, p.data from step s join pending_step p "
            "on p.change = s.change and p.position = s.position where s.change = ? "
            "order by s.position"
        )
        steps: list[Step] = []
        for number in numbers:
            steps += [self._planned_step(row) for row in self.database.rows(sql, (number,))]
        return steps

    @staticmethod
    def _planned_step(row: Row) -> Step:
        """Return a step as it was planned, from its rows in the tables `step` and `pending_step`."""
        from memoranda.sources.step import Step

        step = Step(row["do"], row["project"], row["root"], row["path"], row["dest"])
        step.mode = row["mode"]
        step.scope = row["scope"]
        step.link = os.fsdecode(row["link"])
        step.kept = bool(row["kept"])
        step.temp = row["temp"]
        step.temp_folder = row["temp_folder"]
        # Large texts are only in the temporary file.
        if row["data"] is not None:
            step.data = bytes(row["data"])
        return step

    def _write_refused_again(self) -> list[int]:
        """Write the files of refused changes once more, and return the numbers of these changes.

        A file stays if it has another text by now, or if the disk still refuses. The latest change
        comes first, so that its text counts where several wrote a file of which zeros are left.
        """
        rows = self.database.rows(
            "select change from unsynced where boot = ? "
            "and change not in (select change from waiting) order by change desc",
            (self.refused_files.mark,),
        )
        if not rows:
            return []

        from memoranda.ledger.execution import Execution

        numbers = [row["change"] for row in rows]
        execution = Execution()
        try:
            for number in numbers:
                for step in self._steps_to_repeat(number):
                    # If this fails, so does the sync behind it or another one later
                    with suppress(OSError, MemorandaError):
                        execution.replace_by_new_file(step)
            execution.finish()
        finally:
            execution.close()
        return numbers

    def _steps_to_repeat(self, number: int) -> list[Step]:
        """Return those steps of a change that wrote a file which no later change touched.

        Files that are too large for the ledger were synced before the change. They are left out.
        """
        return [
            step
            for step in self._pending_steps([number])
            if step.do == StepKind.PUT
            and step.data is not None
            and not self.refused_files.is_replaced(number, step)
        ]

    def _sync_again(self, numbers: Sequence[int]) -> None:
        """Sync the files of changes that were carried out or written again.

        If the disk refuses, they are tried again later, or by the next process.
        """
        from memoranda.ledger.file_sync import places_of, sync_places

        try:
            sync_places(places_of(self._pending_steps(numbers)))
            self._forget_synced(numbers)
        except (OSError, StorageError) as error:
            self.refused_files.record(numbers, str(error))
            return
        self.refused_files.record_written()

    def _remove_temps(self) -> None:
        """Remove the temporary files of this process and of processes that died."""
        for row in self.database.rows("select root, path from temp_folder"):
            folder = os.path.join(row["root"], row["path"])
            # Files that the disk does not remove now are removed another time.
            with suppress(OSError):
                for name in os.listdir(folder):
                    if self._is_ended_temp(name):
                        os.unlink(os.path.join(folder, name))

    @staticmethod
    def _is_ended_temp(name: str) -> bool:
        """Whether a file is a temporary file of this process, or of a process that has ended."""
        match = _TEMP.fullmatch(name)
        if match is None:
            return False
        process = int(match[1])
        return process == os.getpid() or not is_alive(process)

    def set_aside(self) -> list[str]:
        """Return the names of the changes that were set aside, oldest first: `["change-17"]`."""
        rows = self.database.rows("select change from waiting order by change")
        return [f"{_WAITING_PREFIX}{row['change']}" for row in rows]

    def retry(self, name: str) -> None:
        """Carry out the change with this name from `set_aside`. The lock must be held.

        Raises MemorandaError; then the change is still set aside.
        """
        from memoranda.ledger.file_sync import places_of, sync_places

        number = int(name.removeprefix(_WAITING_PREFIX))
        try:
            self._complete(number, lost_power=False)
        except OSError as error:
            raise refusal(name, error) from None
        with self.database.transaction() as connection:
            connection.execute("delete from waiting where change = ?", (number,))
        sync_places(places_of(self._pending_steps([number])))
        self._forget_synced([number])

    # --- answers of the owner, requests of agents, sessions

    def review_values(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the owner's answers (kind ANSWER) or the agents' requests (REQUEST), by key.

        Raises StorageError.
        """
        if self._is_in_file(kind):
            from memoranda.ledger.takeover import take_over_review

            with self.lock:
                take_over_review(self.layout, self.database, kind)
        return self.review_rows.all(kind)

    def review_value(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the answer or request with this key, None if none exists. Raises StorageError."""
        if self._is_in_file(kind):
            return self.review_values(kind).get(key)
        return self.review_rows.value(kind, key)

    def _is_in_file(self, kind: str) -> bool:
        """Whether an earlier version left a file with the rows of this kind."""
        from memoranda.ledger.takeover import review_files

        path, _ = review_files(self.layout)[kind]
        return path.exists()

    def session(self, client: str, name: str) -> SessionRows:
        """Return the record of the notes that a session of a client was given.

        client: the agent program, such as `claude-code`.
        name: the id of one conversation in it.
        """
        from memoranda.ledger.sessions import SessionRows

        return SessionRows(self.database, client, name)

    def forget_sessions(self) -> None:
        """Delete the records of the notes that all sessions were given. Raises StorageError."""
        from memoranda.ledger.sessions import forget_sessions

        forget_sessions(self.database)

    # --- forgetting

    def erasing(self) -> str | None:
        """Return the text that `set_erasing` recorded: an erasure is running, or its process died.

        None if there is no such erasure.
        """
        row = self.database.row("select plan from erasing")
        if row is None:
            return None
        return row["plan"]

    def set_erasing(self, plan: str | None) -> None:
        """Record an erasure that is about to begin, or that it is done.

        plan: what is being erased, recorded before the first byte is removed. None means that it is
            done.

        Raises StorageError.
        """
        with self.database.transaction() as connection:
            connection.execute("delete from erasing")
            if plan is not None:
                connection.execute("insert into erasing (id, plan) values (1, ?)", (plan,))

    def purge(
        self,
        before: datetime,
        living: Callable[[], Collection[str]] = frozenset,
        now: datetime | None = None,
    ) -> int:
        """Forget changes older than `before`, and the texts that only they kept.

        The lock must be held. The latest change always stays, and so does one that follows a change
        that is not old: a clock that was behind made it.

        living: returns the SHA-256 of the texts that notes have now. Their origins are kept.
        now: the present time. Changes of later times are not believed. None believes all times.

        Returns how many changes were forgotten.
        """
        # A change whose files are not safe on the disk yet must not be forgotten.
        self.file_sync.sync()
        return self.history.purge(before, living, now)

    def purge_deleted(self) -> tuple[str, ...]:
        """Remove deleted data from a server that stores the notes, after `wipe`.

        The lock must be held. Returns sentences about copies that are out of reach; a home that is
        only a folder has none. Raises StorageError.
        """
        return ()

    def wipe(self) -> None:
        """Remove every trace of deleted data from the ledger's files.

        The names of folders that no longer exist are such a trace: `temp_folder` has them.

        The lock must be held. Raises StorageError.
        """
        self.file_sync.sync()
        rows = self.database.rows("select root, path from temp_folder")
        gone_folders = [
            (row["root"], row["path"])
            for row in rows
            if not os.path.isdir(os.path.join(row["root"], row["path"]))
        ]
        if gone_folders:
            with self.database.transaction() as connection:
                sql = "delete from temp_folder where root = ? and path = ?"
                connection.executemany(sql, gone_folders)
            self._temp_folders.difference_update(gone_folders)
        self.database.scrub()


def missing_folders(
    steps: Sequence[Step], planned_folders: Collection[tuple[str, str]]
) -> list[Step]:
    """Return MKDIR steps for the missing folders that these steps need, parents first.

    A step that puts `a/b/note.md` needs the folders `a` and `a/b`.

    planned_folders: the (root, path) of folders that earlier changes make; they get no step.
    """
    from memoranda.sources.step import Step

    missing: dict[tuple[str, str], Step] = {}
    made_by_steps = {(step.root, step.path) for step in steps if step.do == StepKind.MKDIR}
    folders_to_be = {*planned_folders, *made_by_steps}
    for step in steps:
        # Only these put something into a folder
        if step.do not in (StepKind.PUT, StepKind.MOVE, StepKind.SYMLINK):
            continue
        new_path = step.to or step.path
        folder = new_path.rpartition("/")[0]
        # Go up until a folder exists, or will exist
        while folder and (step.root, folder) not in folders_to_be:
            if os.path.lexists(os.path.join(step.root, folder)):
                break
            missing[step.root, folder] = Step(
                StepKind.MKDIR, step.project, step.root, folder, away=step.away
            )
            folders_to_be.add((step.root, folder))
            folder = folder.rpartition("/")[0]
    # A parent sorts before the folders in it
    return [missing[place] for place in sorted(missing)]


def temp_mark() -> str:
    """Return the text that the names of a change's temporary files begin with.

    It has the prefix, the process and a random mark, as in `.tmp-4711-9f86d0817c2b`.
    """
    return f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(6).hex()}"


def place_temps(steps: Sequence[Step], mark: str, first: int = 0) -> None:
    """Choose the temporary file of each step that replaces or removes a file.

    The name is `mark` and the position of the step, counted from `first`: `MARK-0`, `MARK-1`. The
    folder is the file's own, or the next existing one above it. If the steps move or remove
    folders, it is the root of the project.
    """
    # A folder that is moved or removed must not contain a temporary file
    is_rearranged = any(step.do in (StepKind.MOVE, StepKind.RMDIR) for step in steps)
    for number, step in enumerate(steps, first):
        if step.do not in (StepKind.PUT, StepKind.REMOVE):
            continue
        step.temp = f"{mark}-{number}"
        step.temp_folder = ""
        if not is_rearranged:
            step.temp_folder = _existing_folder(step.root, step.path.rpartition("/")[0])


def _existing_folder(root: str, folder: str) -> str:
    """Return the folder, or the next folder above it that exists, below `root`. "" is the root."""
    while folder and not os.path.isdir(os.path.join(root, folder)):
        folder = folder.rpartition("/")[0]
    return folder


def _is_in_ledger(step: Step) -> bool:
    """Whether the ledger holds the step's new text until the file is synced.

    It does not hold large texts, and texts that must leave no trace (`Step.is_passing`).
    """
    from memoranda.ledger.history import LARGE

    return not step.is_passing and step.data is not None and len(step.data) < LARGE


def _keeps_old(step: Step) -> bool:
    """Whether the history keeps the text that the step replaces."""
    return (
        step.old is not None
        and step.kept
        and step.do in (StepKind.PUT, StepKind.REMOVE, StepKind.SET)
    )
