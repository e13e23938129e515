"""The home on disk: one lock, one way to change files, all or nothing (docs/format.md).

A change is a list of `Step`s. `Home.commit` looks whether the files are as they were read, writes
the new bytes as temporary files, records the change with its steps, the replaced texts and the new
ones in the ledger, and commits: that is the promise. Then the files are exchanged. Whoever takes
the lock after a writer that died carries out what the ledger has and the disk has not. The files
are synced within a second.

Where several writers wait, their changes may be *staged*: the temporary files are written, and
`flush` records all of them in one transaction, with one wait for the disk. The lock is held from
the first until then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from memoranda import former_name
from memoranda.clock import Clock, stamp, waits_at_most
from memoranda.errors import Busy, MemorandaError, NotFound, NotPutBack, StorageError
from memoranda.ledger.boot import boot_id
from memoranda.ledger.change import Change, Step
from memoranda.ledger.database import LedgerDatabase, LedgerRefused
from memoranda.ledger.execution import PARALLEL_WRITES, Execution
from memoranda.ledger.file_sync import FileSync, places_of, sync_places
from memoranda.ledger.history import LARGE, History
from memoranda.ledger.lines import LineChanges
from memoranda.ledger.lock import HomeLock
from memoranda.store.access import AccessLog
from memoranda.store.base import Stamp
from memoranda.store.files import (
    UNWRITABLE,
    is_alive,
    make_private,
    reason,
    refusal,
    remove_left,
    storing,
)
from memoranda.store.layout import TEMP_PREFIX, Layout

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

HOME_TEMP = re.compile(
    r"\.(?:(?:memory|pending(?:\.[a-z0-9._-]+)?)\.md-(?=\d+-[0-9a-f]{8})"
    r"|dream-report\.json-(?=\d+-[0-9a-f]{8})"
    r"|config\.yaml-|erasing-|[^/]+\.vectors-)(\d+)(?:-[0-9a-f]{8})?"
)
"""What is written beside a list, the configuration, a report or vectors before it takes the place
of the file it is named after; the number is that of the process."""
_TEMP = re.compile(rf"{re.escape(TEMP_PREFIX)}(\d+)-\d+-[0-9a-f]{{8}}-\d+(?:-out)?")
"""The temporary file of a step; the first number is that of the process."""
_WAITING = "change-"


@dataclass(slots=True)
class _Staged:
    """Changes whose temporary files are written; `paths` are those they touch."""

    execution: Execution
    mark: str
    changes: list[tuple[Change, list[Step]]] = field(default_factory=list)
    paths: set[tuple[str, str]] = field(default_factory=set)
    steps: int = 0
    bytes: int = 0

    def touches(self, root: str, path: str | None) -> bool:
        """Whether a change is of the file at `path` of the project at `root`, None: of any of it."""
        if path is None:
            return any(touched_root == root for touched_root, _ in self.paths)
        return (root, path.casefold()) in self.paths


class Home:
    """Lock, ledger and files of the home folder. Thread-safe through its lock."""

    holds_truth = True
    """Whether the notes on disk are the memory: what is not as it was read is a Conflict, what is
    written is synced.
    """

    def __init__(self, layout: Layout, clock: Clock):
        self.layout = layout
        self._clock = clock
        self._staged: _Staged | None = None
        self._boot = boot_id()
        self._is_looked_through = False
        self._temp_folders: set[tuple[str, str]] = set()
        self.access = AccessLog(layout.access_log)
        """The reads counted here."""
        self.settle: Callable[[], None] = self.flush
        """What is called before anything that what is staged would be in the way of."""
        former_name.adopt(layout.root, layout.private)
        with storing("the memory home"):
            try:
                make_private(layout.private)
            except OSError as error:
                if error.errno not in UNWRITABLE or not layout.root.is_dir():
                    raise
            self.database = LedgerDatabase(layout.ledger)
            self.history = self._open_history()
            self.lines = LineChanges(self.history)
            self.file_sync = FileSync(self._note_synced)
            self.lock = HomeLock(layout.private, self._entered)
            if self.unfinished():
                self.try_to_recover()
            for folder in (layout.root, layout.private, layout.vectors):
                remove_left(folder, HOME_TEMP)

    def _open_history(self) -> History:
        return History(self.layout, self.database)

    def writing(self) -> AbstractContextManager[object]:
        """Held by whoever changes notes: the lock. Raises as it."""
        return self.lock

    def follow(self) -> str:
        """See what other machines changed, at the begin of every call. Returns why that may be
        missing here, "" for nothing. In a folder there is nothing to do."""
        return ""

    def erased(self) -> bool:
        """Whether something was erased on another machine and may be in what is derived here
        (`Layout.erased`).
        """
        return False

    def lag(self) -> int | None:
        """How many changes others committed are missing here; None: nobody can be asked. Raises
        DatabaseRefused.
        """
        return 0

    def trouble(self) -> str:
        """What is wrong with how the notes are kept, "" for nothing. Raises DatabaseRefused."""
        return self.database.trouble or self.file_sync.trouble

    def runs_jobs(self) -> bool:
        """Whether the upkeep is done here, and not on another machine."""
        return True

    def try_to_recover(self) -> None:
        """Complete what a crashed writer left, if the lock is free: a writer that is alive needs no
        help, and in a read-only home nothing can be done."""
        with suppress(Busy, OSError, StorageError), waits_at_most(0.5), self.lock:
            pass

    def close(self) -> None:
        """Sync what is left and release the files; the home stays as it is."""
        self.file_sync.close()
        if "_threads" in vars(self):
            self._threads.shutdown()
        self.database.close()
        self.lock.close()

    # --- changing

    def commit(
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
        may_stage: bool = False,
    ) -> Change:
        """Carry out `steps` as one change: all or nothing, durable on return. The lock must be
        held.

        `about` is (project, path) the change is listed under, `run` that of Change (0 begins one).
        Raises Conflict when a file is not as read, Exists when a destination is taken, StorageError
        when the disk refuses; then nothing changed. With `may_stage` it may be left staged (see
        `staged`), and is durable once `flush` returns: nobody is told of it before.
        """
        steps = [*_missing_folders(steps), *steps]
        is_staged = may_stage and self._fits(steps)
        if not is_staged:
            self.settle()
        number = self.history.last + 1
        change = Change(
            number,
            stamp(self._clock()),
            verb,
            *about,
            agent,
            face,
            [step.touched() for step in steps],
            undoes,
            details,
            number if run == 0 else run,
            by,
        )
        if is_staged:
            self._stage(change, steps)
        else:
            self._carry_out([(change, steps)])
        return change

    def _carry_out(
        self, changes: Sequence[tuple[Change, list[Step]]], staged: Execution | None = None
    ) -> None:
        """Make changes durable: all of them, or none; `staged` has written their temporary files.
        Raises as `commit` of the one change, as `flush` of those that are staged."""
        execution = staged or Execution()
        first = changes[0][0]
        about = "the memory" if staged else first.path or first.project
        steps = [step for _, part in changes for step in part]
        try:
            self._promise(execution, changes, steps, about, is_staged=staged is not None)
            self._apply(execution, changes, steps, about)
        # Whoever takes the lock next looks at it, as after a crash
        except KeyboardInterrupt:
            self.lock.leave_torn()
            raise
        finally:
            if not execution.remove_refused():
                self.lock.leave_torn()
            execution.close()
        self.file_sync.add([change.number for change, _ in changes], places_of(steps))

    def _promise(
        self,
        execution: Execution,
        changes: Sequence[tuple[Change, list[Step]]],
        steps: Sequence[Step],
        about: str,
        *,
        is_staged: bool,
    ) -> None:
        """Have the changes in the ledger; nothing changed when that fails."""
        try:
            if is_staged:
                execution.check(steps)
            else:
                self._prepare(execution, steps, changes[0][0].number)
            self._keep_large_texts(execution, steps)
            self._record(changes)
        except OSError as error:
            execution.remove_temps(steps)
            raise refusal(about, error) from None
        except LedgerRefused as error:
            execution.remove_temps(steps)
            raise StorageError(about, error.reason) from None
        except MemorandaError:
            execution.remove_temps(steps)
            raise

    def _apply(
        self,
        execution: Execution,
        changes: Sequence[tuple[Change, list[Step]]],
        steps: Sequence[Step],
        about: str,
    ) -> None:
        """Carry out recorded steps on disk; when one cannot be, all are taken back."""
        try:
            for step in steps:
                execution.run(step)
        except (OSError, MemorandaError) as error:
            self._roll_back(execution, changes, steps, about, error)
            raise
        execution.finish()

    def _prepare(self, execution: Execution, steps: Sequence[Step], number: int) -> None:
        """Look whether the files are as they were read, and write the new bytes beside them."""
        place_temps(steps, temp_mark(number))
        self._note_temp_folders(steps)
        execution.check(steps)
        execution.write_temps([step for step in steps if step.do == "put"])

    def _keep_large_texts(self, execution: Execution, steps: Sequence[Step]) -> None:
        """Have what is too large for the ledger, or may not be in it, safe beside it."""
        beside = [step for step in steps if step.do == "put" and not _is_in_ledger(step)]
        if beside:
            threads = self._threads if len(beside) >= PARALLEL_WRITES else None
            execution.sync_temps(beside, threads)
            sync_places({os.path.join(step.root, step.temp_folder) for step in beside})
        for step in steps:
            if _keeps_old(step) and step.old is not None and len(step.old.data) >= LARGE:
                with execution.opened(step) as (folder, name):
                    self.history.keep_large(step.old, name, folder)

    def _record(self, changes: Sequence[tuple[Change, list[Step]]]) -> None:
        """Commit changes in the ledger: that is the promise."""
        batch = changes[0][0].number
        with self.database.transaction() as connection:
            self.history.record(connection, [change for change, _ in changes])
            for change, steps in changes:
                values = (change.number, batch, self._boot)
                connection.execute("insert into unsynced values (?, ?, ?)", values)
                for position, step in enumerate(steps):
                    self._record_step(connection, change.number, position, step)

    def _record_step(self, connection: Connection, number: int, position: int, step: Step) -> None:
        if _keeps_old(step) and step.old is not None and len(step.old.data) < LARGE:
            row = (step.old.etag, step.old.data)
            connection.execute("insert or ignore into text values (?, ?)", row)
        values = (
            number,
            position,
            step.root,
            step.temp,
            step.temp_folder,
            step.mode if step.mode is not None or step.old is None else step.old.mode,
            step.data if _is_in_ledger(step) else None,
        )
        connection.execute("insert into pending_step values (?, ?, ?, ?, ?, ?, ?)", values)

    def _roll_back(
        self,
        execution: Execution,
        changes: Sequence[tuple[Change, list[Step]]],
        steps: Sequence[Step],
        about: str,
        error: OSError | MemorandaError,
    ) -> None:
        """Undo what was carried out. Raises NotPutBack for what cannot be undone, the refusal of an
        OSError.
        """
        lost = execution.rollback()
        execution.remove_temps(steps)
        try:
            self.history.retract(change.number for change, _ in changes)
        except LedgerRefused:
            lost.append("the ledger, by which the change may still be made")
        if lost:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise NotPutBack(about, f"{why}; not put back: {', '.join(lost)}") from None
        if isinstance(error, OSError):
            raise refusal(about, error) from None

    def _note_temp_folders(self, steps: Sequence[Step]) -> None:
        """Note where temporary files will be before they exist."""
        rows = {(step.root, step.temp_folder): step.project for step in steps if step.temp}
        new = {key: project for key, project in rows.items() if key not in self._temp_folders}
        if not new:
            return
        with self.database.transaction(durable=False) as connection:
            connection.executemany(
                "insert or ignore into temp_folder values (?, ?, ?)",
                [(project, *key) for key, project in new.items()],
            )
        self._temp_folders |= new.keys()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Those that wait for the disk while it syncs many files at once."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(PARALLEL_WRITES, thread_name_prefix="sync")

    def _note_synced(self, numbers: Sequence[int]) -> None:
        """The files of these changes are safe: forget what would write them again."""
        rows = [(number,) for number in numbers]
        with self.database.transaction(durable=False) as connection:
            for table in ("pending_step", "unsynced"):
                sql = (
                    f"delete from {table} where change = ? "
                    "and change not in (select change from waiting)"
                )
                connection.executemany(sql, rows)

    # --- several changes together

    @property
    def staged(self) -> tuple[int, int] | None:
        """How many changes are staged, and the bytes of their files."""
        if self._staged:
            return (len(self._staged.changes), self._staged.bytes)
        return None

    def show(self, root: str, path: str | None = None) -> None:
        """Before the disk is looked at: `settle` if a staged change touches the file at `path` of
        the project at `root`, by default any of it."""
        if self._staged is not None and self._staged.touches(root, path):
            self.settle()

    def staged_files(self, root: str) -> Iterator[tuple[str, Stamp | None]]:
        """The files of the project at `root` that staged changes write, or remove (None)."""
        for _, steps in self._staged.changes if self._staged else ():
            yield from ((step.path, step.stamp) for step in steps if step.root == root)

    def staged_steps(self) -> list[Step]:
        """The steps of all staged changes."""
        changes = self._staged.changes if self._staged else []
        return [step for _, steps in changes for step in steps]

    def _fits(self, steps: Sequence[Step]) -> bool:
        """Whether these can be staged: files written or removed in folders there are, none of them
        staged already.
        """
        staged = self._staged
        return all(
            step.do in ("put", "remove") and not (staged and staged.touches(step.root, step.path))
            for step in steps
        )

    def _stage(self, change: Change, steps: list[Step]) -> None:
        """Write the temporary files. Raises Conflict, Exists, StorageError; then nothing changed."""
        puts = [step for step in steps if step.do == "put"]
        execution = Execution(holds_truth=self.holds_truth)
        staged = self._staged or _Staged(execution, temp_mark(change.number))
        try:
            place_temps(steps, staged.mark, staged.steps)
            staged.steps += len(steps)
            self._note_temp_folders(steps)
            if self.holds_truth:
                staged.execution.check(steps)
            staged.execution.write_temps(puts)
        except BaseException as error:
            staged.execution.remove_temps(puts)
            if self._staged is None:
                staged.execution.close()
            if isinstance(error, OSError):
                raise refusal(change.path or change.project, error) from None
            raise
        if self._staged is None:
            self._staged = staged
            self.lock.keep()
        staged.changes.append((change, steps))
        staged.bytes += sum(len(step.data or b"") for step in puts)
        staged.paths |= {(step.root, step.path.casefold()) for step in steps}
        self.history.staged.append(change)

    def flush(self) -> None:
        """Carry out what is staged and make it durable: all changes, or none. The lock must be
        held.

        Raises Conflict, Exists when a file is not as read, StorageError when the disk refuses; then
        nothing changed, unless it is a StorageError that says what could not be put back:
        `NotPutBack`.
        """
        staged = self._staged
        self._staged = None
        if staged is None:
            return
        self.lock.let_go()
        self.history.staged.clear()
        self._carry_out(staged.changes, staged.execution)

    # --- after a death

    def unfinished(self) -> bool:
        """Whether a writer died at work, or a change of a file used in place is under way."""
        return self.lock.died() or self.lines.waits()

    def _entered(self, has_died: bool) -> None:
        """The lock was just taken: complete what a writer left that died, or a power failure."""
        is_same_file = self.database.is_here()
        self.database.refresh()
        if not is_same_file:
            self._temp_folders.clear()
        if not self.database.is_writable:
            return
        if self.lines.waits():
            self.lines.recover()
        if has_died:
            self._recover()
        elif not self._is_looked_through:
            self._look_through()
        self._is_looked_through = True

    def _look_through(self) -> None:
        """Once in a process: what another boot left is carried out, what this one left is synced."""
        rows = self.database.rows("select change, boot from unsynced order by change")
        if any(row["boot"] != self._boot for row in rows):
            self._recover()
        elif rows:
            numbers = [row["change"] for row in rows]
            self.file_sync.add(numbers, places_of(self._pending(numbers)))

    def _recover(self) -> None:
        """Carry out what the ledger has and the disk may not have, and remove temporary files."""
        rows = self.database.rows(
            "select change, batch, boot from unsynced "
            "where change not in (select change from waiting) order by change"
        )
        latest = max((row["batch"] for row in rows), default=0)
        numbers = list[int]()
        for row in rows:
            has_lost_power = row["boot"] != self._boot
            # Changes of earlier batches were carried out before the lock was free
            if has_lost_power or row["batch"] == latest:
                try:
                    self._finish(row["change"], lost_power=has_lost_power)
                except (OSError, MemorandaError):
                    self._set_aside(row["change"])
                    continue
            numbers.append(row["change"])
        with suppress(OSError, StorageError):
            sync_places(places_of(self._pending(numbers)))
            self._note_synced(numbers)
        self._remove_temps()

    def _finish(self, number: int, *, lost_power: bool) -> None:
        """Carry out one change. Raises MemorandaError, OSError when a file is out of reach."""
        change = self.history.change(number)
        steps = self._pending([number])
        if change is None or len(steps) != len(change.files):
            return
        for step in steps:
            if not os.path.isdir(step.root):
                raise NotFound(step.path, step.project)
        execution = Execution()
        try:
            if not lost_power and execution.is_overtaken(steps, change.files):
                self.history.retract([number])
                return
            for step, touched in zip(steps, change.files, strict=True):
                execution.resume(step, touched, lost_power=lost_power)
            execution.finish()
            execution.remove_temps(steps)
        finally:
            execution.close()

    def _pending(self, numbers: Iterable[int]) -> list[Step]:
        """The steps of changes as they were planned."""
        steps = list[Step]()
        sql = (
            "select s.do, s.project, s.path, s.dest, s.scope, s.link, s.kept, p.root, p.temp, "
            "p.temp_folder, p.mode, p.data from step s join pending_step p "
            "on p.change = s.change and p.position = s.position where s.change = ? "
            "order by s.position"
        )
        for number in numbers:
            for row in self.database.rows(sql, (number,)):
                step = Step(row["do"], row["project"], row["root"], row["path"], row["dest"])
                step.mode = row["mode"]
                step.scope = row["scope"]
                step.link = os.fsdecode(row["link"])
                step.kept = bool(row["kept"])
                step.temp = row["temp"]
                step.temp_folder = row["temp_folder"]
                step.data = None if row["data"] is None else bytes(row["data"])
                steps.append(step)
        return steps

    def _remove_temps(self) -> None:
        """Remove what writers that died wrote beside files."""
        for row in self.database.rows("select root, path from temp_folder"):
            folder = os.path.join(row["root"], row["path"])
            with suppress(OSError):
                for name in os.listdir(folder):
                    match = _TEMP.fullmatch(name)
                    if match and (int(match[1]) == os.getpid() or not is_alive(int(match[1]))):
                        os.unlink(os.path.join(folder, name))

    def _set_aside(self, number: int) -> None:
        """A change cannot be carried out now (an unmounted project): it waits for doctor."""
        with self.database.transaction() as connection:
            connection.execute("insert or ignore into waiting values (?)", (number,))

    def set_aside(self) -> list[str]:
        """The changes that could not be carried out when they were found, the oldest first."""
        rows = self.database.rows("select change from waiting order by change")
        return [f"{_WAITING}{row['change']}" for row in rows]

    def retry(self, name: str) -> None:
        """Carry out a change that was set aside. The lock must be held. Raises MemorandaError; then
        it still waits.
        """
        number = int(name.removeprefix(_WAITING))
        try:
            self._finish(number, lost_power=False)
        except OSError as error:
            raise refusal(name, error) from None
        with self.database.transaction() as connection:
            connection.execute("delete from waiting where change = ?", (number,))
        sync_places(places_of(self._pending([number])))
        self._note_synced([number])

    # --- forgetting

    def erasing(self) -> str | None:
        """The plan of an erasure that is under way, or whose process died; None for none."""
        row = self.database.row("select plan from erasing")
        return None if row is None else row["plan"]

    def set_erasing(self, plan: str | None) -> None:
        """Note what is being erased before the first byte goes; None: it is done. Raises
        StorageError.
        """
        with self.database.transaction() as connection:
            connection.execute("delete from erasing")
            if plan is not None:
                connection.execute("insert into erasing values (1, ?)", (plan,))

    def purge(self, before: datetime, living: Callable[[], Collection[str]] = frozenset) -> int:
        """As `History.purge`. The lock must be held."""
        self.file_sync.sync()
        return self.history.purge(before, living)

    def purge_deleted(self) -> tuple[str, ...]:
        """Have nothing of what was deleted where the notes are kept, after `wipe`. Returns where it
        is out of reach, in words. The lock must be held. Raises StorageError.
        """
        return ()

    def wipe(self) -> None:
        """Leave nothing of what was deleted in the ledger's files. The lock must be held. Raises
        StorageError.
        """
        self.file_sync.sync()
        rows = self.database.rows("select root, path from temp_folder")
        gone = [
            (row["root"], row["path"])
            for row in rows
            if not os.path.isdir(os.path.join(row["root"], row["path"]))
        ]
        if gone:
            with self.database.transaction() as connection:
                sql = "delete from temp_folder where root = ? and path = ?"
                connection.executemany(sql, gone)
            self._temp_folders.difference_update(gone)
        self.database.scrub()


def _missing_folders(steps: Sequence[Step]) -> list[Step]:
    """Steps that make the folders these steps need and that are not there."""
    missing: dict[tuple[str, str], Step] = {}
    made = {(step.root, step.path) for step in steps if step.do == "mkdir"}
    for step in steps:
        if step.do not in ("put", "move", "symlink"):
            continue
        parent = (step.to or step.path).rpartition("/")[0]
        while parent and (step.root, parent) not in made:
            if os.path.lexists(os.path.join(step.root, parent)):
                break
            missing[step.root, parent] = Step(
                "mkdir", step.project, step.root, parent, away=step.away
            )
            made.add((step.root, parent))
            parent = parent.rpartition("/")[0]
    return [missing[key] for key in sorted(missing)]


def _keeps_old(step: Step) -> bool:
    """Whether the text the step replaces is kept."""
    return step.old is not None and step.kept and step.do in ("put", "remove")


def _is_in_ledger(step: Step) -> bool:
    """Whether the ledger has the new text until the file is synced: not of what leaves no text."""
    return not step.is_passing and step.data is not None and len(step.data) < LARGE


def temp_mark(number: int) -> str:
    """What the names of the temporary files begin with of which the first belongs to the change of
    this number.
    """
    return f"{TEMP_PREFIX}{os.getpid()}-{number}-{os.urandom(4).hex()}"


def place_temps(steps: Sequence[Step], mark: str, first: int = 0) -> None:
    """Give each step that replaces or removes a file its temporary file, numbered from `first`."""
    is_rearranged = any(step.do in ("move", "rmdir") for step in steps)
    for number, step in enumerate(steps, first):
        if step.do not in ("put", "remove"):
            continue
        folder = step.path.rpartition("/")[0]
        # A folder that is moved or removed may not hold what comes out
        while folder and (is_rearranged or not os.path.isdir(os.path.join(step.root, folder))):
            folder = folder.rpartition("/")[0]
        step.temp_folder = folder
        step.temp = f"{mark}-{number}"
