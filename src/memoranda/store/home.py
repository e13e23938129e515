"""The home on disk: one lock, one way to change files, all or nothing (docs/format.md).

A change is a list of `Step`s. `Home.commit` writes and syncs all new bytes as temp files, notes the
steps in the redo record, carries them out (each replaced file first linked into the history), syncs
the folders, and appends the change to the journal: that line is the commit mark. A record found
when the lock is taken belongs to a writer that died; its steps are carried out again, or, if it had
not come that far, its temp files are removed. So every change is there as a whole or not at all.

Where several writers wait, their changes may be *staged*: the temp files are written, and `flush`
does the rest for all of them, with one wait for the disk where each would have had its own. The
lock is held from the first until then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memoranda import former_name
from memoranda.clock import Clock, stamp, waits_at_most
from memoranda.errors import Busy, MemorandaError, NotFound, NotPutBack, StorageError
from memoranda.store.access import AccessLog
from memoranda.store.base import Stamp
from memoranda.store.change import KINDS, PARALLEL_WRITES, Execution, Step
from memoranda.store.files import (
    UNWRITABLE,
    Lock,
    make_private,
    reason,
    refusal,
    remove_left,
    storing,
)
from memoranda.store.inplace import LineChanges
from memoranda.store.journal import Change, History, RedoRecord, redo_lines
from memoranda.store.layout import TEMP_PREFIX, Layout
from memoranda.store.path_guard import open_folder

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

HOME_TEMP = re.compile(
    r"\.(?:(?:memory|pending(?:\.[a-z0-9._-]+)?)\.md-(?=\d+-[0-9a-f]{8})|dream-report\.json-(?=\d+-[0-9a-f]{8})"
    r"|config\.yaml-|erasing-|[^/]+\.vectors-)(\d+)(?:-[0-9a-f]{8})?"
)
"""What is written beside a list, the configuration, a report or vectors before it takes the place
of the file it is named after; the number is that of the process."""


@dataclass(slots=True)
class _Record:
    """A redo record: temp files beginning with `mark` lie in `places`; no `changes` when it was cut
    off.
    """

    mark: str
    places: list[tuple[str, str, str]]
    changes: list[tuple[Change, list[Step]]]


@dataclass(slots=True)
class _Staged:
    """Changes whose temp files are written and not yet synced; `paths` are those they touch."""

    execution: Execution
    mark: str
    changes: list[tuple[Change, list[Step]]] = field(default_factory=list)
    places: set[tuple[str, str, str]] = field(default_factory=set)
    paths: set[tuple[str, str]] = field(default_factory=set)
    puts: int = 0
    bytes: int = 0

    def touches(self, root: str, path: str | None) -> bool:
        """Whether a change is of the file at `path` of the project at `root`, None: of any of it."""
        if path is None:
            return any(each == root for each, _ in self.paths)
        return (root, path.casefold()) in self.paths


class Home:
    """Lock, redo record and history of the home folder. Thread-safe through its lock."""

    holds_truth = True
    """Whether the notes on disk are the memory: what is not as it was read is a Conflict, what is
    written is synced.
    """

    def __init__(self, layout: Layout, clock: Clock):
        self.layout = layout
        self._clock = clock
        self._staged: _Staged | None = None
        self.access = AccessLog(layout.access_log)
        """The reads counted here."""
        self.settle: Callable[[], None] = self.flush
        """What is called before anything that what is staged would be in the way of."""
        former_name.adopt(layout.root, layout.private)
        with storing("the memory home"):
            try:
                make_private(layout.objects)
            except OSError as error:
                if error.errno not in UNWRITABLE or not layout.root.is_dir():
                    raise
            self.history = self._open_history()
            self.lines = LineChanges(layout, self.history)
            self._redo = RedoRecord(layout.redo)
            self.lock = Lock(layout.lock, self._entered)
            if self.unfinished():
                self.try_to_recover()
            for folder in (layout.root, layout.private, layout.vectors):
                remove_left(folder, HOME_TEMP)

    def _open_history(self) -> History:
        return History(self.layout)

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
        return ""

    def runs_jobs(self) -> bool:
        """Whether the upkeep is done here, and not on another machine."""
        return True

    def try_to_recover(self) -> None:
        """Complete what a crashed writer left, if the lock is free: a writer that is alive needs no
        help, and in a read-only home nothing can be done."""
        with suppress(Busy, OSError), waits_at_most(0.5), self.lock:
            pass

    def close(self) -> None:
        """Release the files; the home stays as it is."""
        if "_threads" in vars(self):
            self._threads.shutdown()
        self.history.close()
        self._redo.close()
        self.lines.close()
        self.lock.close()

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
        missing: dict[tuple[str, str], Step] = {}
        made = {(step.root, step.path) for step in steps if step.do == "mkdir"}
        for step in steps:
            if step.do in ("put", "move", "symlink"):
                parent = (step.to or step.path).rpartition("/")[0]
            else:
                parent = ""
            while (
                parent
                and (step.root, parent) not in made
                and not os.path.lexists(os.path.join(step.root, parent))
            ):
                missing[step.root, parent] = Step(
                    "mkdir", step.project, step.root, parent, away=step.away
                )
                made.add((step.root, parent))
                parent = parent.rpartition("/")[0]
        steps = [*(missing[key] for key in sorted(missing)), *steps]
        is_staged = may_stage and self._fits(steps)
        if not is_staged:
            self.settle()
        number = self.history.last + 1
        files = [each.touched() for each in steps]
        change = Change(
            number,
            stamp(self._clock()),
            verb,
            *about,
            agent,
            face,
            files,
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
        """Make changes durable: all of them, or none; `staged` has written their temp files. Raises
        as `commit` of the one change, as `flush` of those that are staged."""
        execution = staged or Execution(self.history, strict=True)
        first = changes[0][0]
        if staged:
            about = "the memory"
        else:
            about = first.path or first.project
        steps = [step for _, each in changes for step in each]
        is_synced = any(len(each) > 1 for _, each in changes)
        try:
            if staged is None:
                self._prepare(execution, steps, first.number)
            else:
                staged.sync_temps([step for step in steps if step.do == "put"], self._threads)
            lines = [change.dump() for change, _ in changes]
            self._redo.add(
                *(
                    {"change": line.decode(), "steps": [step.record() for step in each]}
                    for line, (_, each) in zip(lines, changes, strict=True)
                )
            )
            if is_synced:
                # It must be durable before the first of several steps
                self._redo.sync()
            for step in steps:
                execution.run(step)
            execution.sync()
            self.history.append_lines(b"".join(lines), changes[-1][0].number)
        # Not KeyboardInterrupt: the next holder of the lock recovers, as after a crash
        except Exception as error:
            self._roll_back(execution, steps, about, error, is_synced)
            raise
        finally:
            execution.close()
        # The journal has the changes, so whoever takes the lock next drops the record
        with suppress(OSError):
            self._redo.drop()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Those that wait for the disk while it syncs many files at once."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(PARALLEL_WRITES, thread_name_prefix="sync")

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
        """Write the temp files, named in the record before they exist. Raises StorageError; then
        nothing changed.
        """
        puts = [step for step in steps if step.do == "put"]
        execution = Execution(self.history, strict=self.holds_truth, durable=self.holds_truth)
        staged = self._staged or _Staged(execution, _mark(change.number))
        try:
            places = _place_temps(puts, staged.mark, staged.puts)
            staged.puts += len(puts)
            if self._staged is None:
                self._redo.add({"mark": staged.mark, "places": places}, is_new=True)
            elif new := [each for each in places if each not in staged.places]:
                self._redo.add({"places": new})
            staged.places |= {*places}
            staged.execution.write_temps(puts, durable=False)
        except BaseException as error:
            staged.execution.remove_temps(puts)
            if self._staged is None:
                self._redo.drop()
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

    def _roll_back(
        self,
        execution: Execution,
        steps: Sequence[Step],
        about: str,
        error: Exception,
        is_synced: bool,
    ) -> None:
        """Undo what was carried out. Raises NotPutBack for what cannot be undone, StorageError for
        an OSError.
        """
        lost = execution.rollback()
        execution.remove_temps(steps)
        try:
            self._redo.drop()
            if is_synced:
                # The record was: it must not come back after a power failure
                self._redo.sync()
        except OSError:
            lost.append("the redo record, by which the change may still be made")
        if lost:
            if isinstance(error, OSError):
                why = reason(error)
            else:
                why = str(error)
            raise NotPutBack(about, f"{why}; not put back: {', '.join(lost)}") from None
        if isinstance(error, OSError):
            raise refusal(about, error) from None

    def unfinished(self) -> bool:
        """Whether a record waits (only a writer at work, or one that died, leaves one)."""
        return self._redo.waits() or self.lines.waits()

    def _prepare(self, execution: Execution, steps: Sequence[Step], number: int) -> None:
        """Write and sync the new bytes as temp files, named in the record before they exist."""
        mark = _mark(number)
        puts = [step for step in steps if step.do == "put"]
        self._redo.add({"mark": mark, "places": _place_temps(puts, mark)}, is_new=True)
        execution.write_temps(puts)

    def _entered(self) -> None:
        """The lock was just taken: read the journal again, complete a change whose process died."""
        self.history.refresh()
        self._redo.refresh()
        self.lines.recover()
        if not self._redo.waits():
            return
        try:
            record = _parsed(self._redo.read())
            if record is not None:
                last = self.history.last
                self._finish(record, [each for each in record.changes if each[0].number > last])
        except (OSError, MemorandaError, ValueError):
            # It cannot be finished now (an unmounted project, a read-only disk): set aside for
            # doctor.
            number = self.history.last + 1
            while os.path.exists(aside := f"{self.layout.redo}-{number}"):
                number += 1
            self._redo.set_aside(aside)
            return
        self._redo.drop()
        # Its temp files are gone: found again, it would look as if it had been carried out
        self._redo.sync()

    def _finish(self, record: _Record, begun: Sequence[tuple[Change, list[Step]]]) -> None:
        """Finish the changes of a record that are `begun` and not in the journal; remove its temp
        files.
        """
        for step in (step for _, steps in begun for step in steps):
            if not os.path.isdir(step.root):
                raise NotFound(step.path, step.project)
        for change, steps in begun:
            execution = Execution(self.history, strict=False)
            try:
                if not execution.is_overtaken(steps, change.files):
                    for step, touched in zip(steps, change.files, strict=True):
                        execution.resume(step, touched)
                    execution.sync()
                    change.number = self.history.last + 1
                    self.history.append(change)
            finally:
                execution.close()
        # Where temp files of the dead writer may be
        for project, root, path in record.places:
            with suppress(NotFound), open_folder(root, path, project) as folder:
                for name in os.listdir(folder.fd):
                    if name.startswith(record.mark):
                        os.unlink(name, dir_fd=folder.fd)

    def set_aside(self) -> list[str]:
        """Redo records that could not be finished when they were found (for doctor), the oldest
        first.
        """
        names = [name for name in os.listdir(self.layout.private) if name.startswith("redo-")]
        return [
            os.path.join(self.layout.private, name)
            for name in sorted(names, key=lambda each: (len(each), each))
        ]

    def retry(self, record: str) -> None:
        """Finish a record that was set aside. The lock must be held. Raises MemorandaError; then it
        stays.
        """
        name = os.path.basename(record)
        try:
            with open(record, "rb") as file:
                parsed = _parsed(file.read())
            if parsed is not None:
                if parsed.changes:
                    known = [each.essence() for each in self.history.changes()]
                else:
                    known = []
                self._finish(
                    parsed, [each for each in parsed.changes if each[0].essence() not in known]
                )
            os.unlink(record)
        except OSError as error:
            raise refusal(name, error) from None
        except ValueError:
            raise StorageError(name, "the record is damaged") from None

    def purge(self, before: datetime, living: Callable[[], Collection[str]] = frozenset) -> int:
        """As `History.purge`; the texts a record set aside would replace stay. The lock must be
        held.
        """
        return self.history.purge(before, self.spared(), living)

    def wipe_records(self) -> None:
        """Leave nothing of finished changes in the redo records. The lock must be held. Raises
        OSError.
        """
        self._redo.wipe()
        self.lines.wipe()

    def spared(self) -> set[str | None]:
        """The texts that records set aside would replace."""
        spared: set[str | None] = set()
        for name in self.set_aside():
            try:
                with open(name, "rb") as file:
                    parsed = _parsed(file.read())
            except ValueError:
                continue
            for change, _ in parsed.changes if parsed is not None else ():
                spared |= {each.old for each in change.files}
        return spared


def _parsed(data: bytes) -> _Record | None:
    """The redo record these bytes are; None when nothing is to be done. Raises ValueError for a
    damaged one.
    """
    lines = redo_lines(data)
    if not lines:
        # Cut off while the first line was written, or dropped
        return None
    try:
        mark = lines[0]["mark"]
        if not mark.startswith(TEMP_PREFIX) or len(mark) <= len(TEMP_PREFIX):
            raise ValueError("no mark")
        record = _Record(mark, [], [])
        for line in lines:
            record.places += [(str(a), str(b), str(c)) for a, b, c in line.get("places", ())]
            if "change" not in line:
                continue
            change = Change.load(line["change"].encode())
            steps = [Step(**each) for each in line["steps"]]
            if len(steps) != len(change.files) or any(step.do not in KINDS for step in steps):
                raise ValueError("not these steps")
            record.changes.append((change, steps))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record: {error}") from None
    return record


def _mark(number: int) -> str:
    """What the names of the temp files begin with of which the first belongs to the change of this
    number.
    """
    return f"{TEMP_PREFIX}{os.getpid()}-{number}-{os.urandom(4).hex()}"


def _place_temps(puts: Sequence[Step], mark: str, first: int = 0) -> list[tuple[str, str, str]]:
    """Give each `put` its temp file, numbered from `first`. Returns (project, root, folder) of
    where they will be.
    """
    for index, step in enumerate(puts, first):
        folder = step.path.rpartition("/")[0]
        while folder and not os.path.isdir(os.path.join(step.root, folder)):
            folder = folder.rpartition("/")[0]
        step.temp_folder = folder
        step.temp = f"{mark}-{index}"
    return sorted({(step.project, step.root, step.temp_folder) for step in puts})
