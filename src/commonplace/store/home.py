"""The home on disk: one lock, one way to change files, all or nothing (docs/format.md).

A change is a list of `Step`s. `Home.commit` writes and syncs all new bytes as temp files, notes the steps in the redo
record, carries them out (each replaced file first linked into the history), syncs the folders, and appends the change
to the journal: that line is the commit mark. A record found when the lock is taken belongs to a writer that died; its
steps are carried out again, or, if it had not come that far, its temp files are removed. So every change is there as
a whole or not at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from commonplace.clock import Clock, stamp, waits_at_most
from commonplace.errors import Busy, CommonplaceError, NotFound, StorageError
from commonplace.store.access import AccessLog
from commonplace.store.change import KINDS, Execution, Step
from commonplace.store.files import UNWRITABLE, Lock, make_private, reason, refusal, remove_left
from commonplace.store.inplace import LineChanges
from commonplace.store.journal import Change, History, RedoRecord, redo_lines
from commonplace.store.layout import TEMP_PREFIX, Layout
from commonplace.store.path_guard import open_folder

HOME_TEMP = re.compile(
    r"\.(?:(?:memory|pending(?:\.[a-z0-9._-]+)?)\.md-(?=\d+-[0-9a-f]{8})|dream-report\.json-(?=\d+-[0-9a-f]{8})"
    r"|config\.yaml-|erasing-|[^/]+\.vectors-)(\d+)(?:-[0-9a-f]{8})?"
)
"""What is written beside a list, the configuration, a report or vectors before it takes the place of the file it is
named after; the number is that of the process."""


@dataclass(slots=True)
class _Record:
    """A redo record: temp files beginning with `mark` lie in `places`; `change` is None when it was cut off."""

    mark: str
    places: list[tuple[str, str, str]]
    change: Change | None
    steps: list[Step]


class Home:
    """Lock, redo record and history of the home folder. Thread-safe through its lock."""

    def __init__(self, layout: Layout, clock: Clock):
        self.layout = layout
        self._clock = clock
        try:
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
        except OSError as error:
            raise StorageError("the memory home", reason(error)) from None

    def _open_history(self) -> History:
        return History(self.layout)

    def open_access(self) -> AccessLog:
        """The reads counted here."""
        return AccessLog(self.layout.access_log)

    def writing(self) -> AbstractContextManager[object]:
        """Held by whoever changes notes: the lock. Raises as it."""
        return self.lock

    def follow(self) -> str:
        """See what other machines changed, at the begin of every call. Returns why that may be missing here, "" for
        nothing. In a folder there is nothing to do."""
        return ""

    def erased(self) -> bool:
        """Whether something was erased on another machine and may be in what is derived here (`Layout.erased`)."""
        return False

    def lag(self) -> int | None:
        """How many changes others committed are missing here; None: nobody can be asked. Raises DatabaseRefused."""
        return 0

    def runs_jobs(self) -> bool:
        """Whether the upkeep is done here, and not on another machine."""
        return True

    def try_to_recover(self) -> None:
        """Complete what a crashed writer left, if the lock is free: a writer that is alive needs no help, and in a
        read-only home nothing can be done."""
        with suppress(Busy, OSError), waits_at_most(0.5), self.lock:
            pass

    def close(self) -> None:
        """Release the files; the home stays as it is."""
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
    ) -> Change:
        """Carry out `steps` as one change: all or nothing, durable on return. The lock must be held.

        `about` is (project, path) the change is listed under, `run` that of Change (0 begins one). Raises Conflict when
        a file is not as read, Exists when a destination is taken, StorageError when the disk refuses; then nothing
        changed.
        """
        steps = [*_missing_folders(steps), *steps]
        number = self.history.last + 1
        files = [each.touched() for each in steps]
        change = Change(
            number, stamp(self._clock()), verb, *about, agent, face, files, undoes, details,
            number if run == 0 else run, by,
        )  # fmt: skip
        execution = Execution(self.history, strict=True)
        try:
            self._prepare(execution, steps, number)
            self._redo.add({"change": change.dump().decode(), "steps": [step.record() for step in steps]})
            if len(steps) > 1:
                self._redo.sync()  # it must be durable before the first of several steps
            for step in steps:
                execution.run(step)
            execution.sync()
            self.history.append(change)
        except Exception as error:  # not KeyboardInterrupt: the next holder of the lock recovers, as after a crash
            self._roll_back(execution, steps, about[1] or about[0], error)
            raise
        finally:
            execution.close()
        with suppress(OSError):  # the journal has the change, so whoever takes the lock next drops the record
            self._redo.drop()
        return change

    def _roll_back(self, execution: Execution, steps: Sequence[Step], about: str, error: Exception) -> None:
        """Undo what was carried out. Raises StorageError for what cannot be undone, and for an OSError."""
        lost = execution.rollback()
        execution.remove_temps(steps)
        self._redo.drop()
        if len(steps) > 1:
            self._redo.sync()  # the record was: it must not come back after a power failure
        if lost:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise StorageError(about, f"{why}; not put back: {', '.join(lost)}") from None
        if isinstance(error, OSError):
            raise refusal(about, error) from None

    def unfinished(self) -> bool:
        """Whether a record waits (only a writer at work, or one that died, leaves one)."""
        return self._redo.waits() or self.lines.waits()

    def _prepare(self, execution: Execution, steps: Sequence[Step], number: int) -> None:
        """Write and sync the new bytes as temp files, named in the record before they exist."""
        mark = f"{TEMP_PREFIX}{os.getpid()}-{number}-{os.urandom(4).hex()}"
        puts = [step for step in steps if step.do == "put"]
        for index, step in enumerate(puts):
            step.temp_folder = _existing_folder(step.root, step.path)
            step.temp = f"{mark}-{index}"
        places = sorted({(step.project, step.root, step.temp_folder) for step in puts})
        self._redo.begin({"mark": mark, "places": places})
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
                self._finish(record, record.change is not None and record.change.number > self.history.last)
        except (OSError, CommonplaceError, ValueError):
            # It cannot be finished now (an unmounted project, a read-only disk): set aside for doctor.
            number = self.history.last + 1
            while os.path.exists(aside := f"{self.layout.redo}-{number}"):
                number += 1
            self._redo.set_aside(aside)
            return
        self._redo.drop()
        self._redo.sync()  # its temp files are gone: found again, it would look as if it had been carried out

    def _finish(self, record: _Record, begun: bool) -> None:
        """Finish the change of a record if it is `begun` and not in the journal; remove its temp files."""
        change, steps = record.change, record.steps if begun else []
        for step in steps:
            if not os.path.isdir(step.root):
                raise NotFound(step.path, step.project)
        execution = Execution(self.history, strict=False)
        try:
            if begun and change is not None and not execution.is_overtaken(steps, change.files):
                for step, touched in zip(steps, change.files, strict=True):
                    execution.resume(step, touched)
                execution.sync()
                change.number = self.history.last + 1
                self.history.append(change)
        finally:
            execution.close()
        for project, root, path in record.places:  # where temp files of the dead writer may be
            with suppress(NotFound), open_folder(root, path, project) as folder:
                for name in os.listdir(folder.fd):
                    if name.startswith(record.mark):
                        os.unlink(name, dir_fd=folder.fd)

    def set_aside(self) -> list[str]:
        """Redo records that could not be finished when they were found (for doctor), the oldest first."""
        names = [name for name in os.listdir(self.layout.private) if name.startswith("redo-")]
        return [os.path.join(self.layout.private, name) for name in sorted(names, key=lambda each: (len(each), each))]

    def retry(self, record: str) -> None:
        """Finish a record that was set aside. The lock must be held. Raises CommonplaceError; then it stays."""
        name = os.path.basename(record)
        try:
            with open(record, "rb") as file:
                parsed = _parsed(file.read())
            if parsed is not None:
                wanted = parsed.change and parsed.change.essence()
                is_in_journal = any(each.essence() == wanted for each in self.history.changes())
                self._finish(parsed, parsed.change is not None and not is_in_journal)
            os.unlink(record)
        except OSError as error:
            raise refusal(name, error) from None
        except ValueError:
            raise StorageError(name, "the record is damaged") from None

    def purge(self, before: datetime, living: Callable[[], Collection[str]] = frozenset) -> int:
        """As `History.purge`; the texts a record set aside would replace stay. The lock must be held."""
        return self.history.purge(before, self.spared(), living)

    def wipe_records(self) -> None:
        """Leave nothing of finished changes in the redo records. The lock must be held. Raises OSError."""
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
            if parsed is not None and parsed.change is not None:
                spared |= {each.old for each in parsed.change.files}
        return spared


def _parsed(data: bytes) -> _Record | None:
    """The redo record these bytes are; None when nothing is to be done. Raises ValueError for a damaged one."""
    lines = redo_lines(data)
    if not lines:
        return None  # cut off while the first line was written, or dropped
    try:
        begun = lines[0]
        mark = begun["mark"]
        if not mark.startswith(TEMP_PREFIX) or len(mark) <= len(TEMP_PREFIX):
            raise ValueError("no mark")
        record = _Record(mark, [(str(a), str(b), str(c)) for a, b, c in begun["places"]], None, [])
        if len(lines) > 1:
            rest = lines[1]
            record.change = Change.load(rest["change"].encode())
            record.steps = [Step(**each) for each in rest["steps"]]
            if len(record.steps) != len(record.change.files) or any(step.do not in KINDS for step in record.steps):
                raise ValueError("not these steps")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record: {error}") from None
    return record


def _existing_folder(root: str, path: str) -> str:
    """The nearest folder above `path` that exists already."""
    parent = path.rpartition("/")[0]
    while parent and not os.path.isdir(os.path.join(root, parent)):
        parent = parent.rpartition("/")[0]
    return parent


def _missing_folders(steps: Sequence[Step]) -> list[Step]:
    """A `mkdir` step for each folder the steps need and the disk lacks, parents first."""
    found: dict[tuple[str, str], Step] = {}
    made = {(step.root, step.path) for step in steps if step.do == "mkdir"}
    for step in steps:
        if step.do not in ("put", "move", "symlink"):
            continue
        parent = (step.to or step.path).rpartition("/")[0]
        while parent and (step.root, parent) not in made and not os.path.lexists(os.path.join(step.root, parent)):
            found[step.root, parent] = Step("mkdir", step.project, step.root, parent, away=step.away)
            made.add((step.root, parent))
            parent = parent.rpartition("/")[0]
    return [found[key] for key in sorted(found)]
