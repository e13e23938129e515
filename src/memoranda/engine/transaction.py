"""Writing: every change of files goes through a transaction, which belongs to one caller of the
home.

A change may be in a project that only its process has, and that the configuration does not name.
Examples are the vault of a preset, and the root of memory banks in the environment. Such a folder
is registered when it is opened (`Engine.register`), and the ledger names the folder in each step of
the change. A step without a folder is in the folder that this home has for the project.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memoranda.engine.engine import Engine, is_repeated
from memoranda.engine.guard import RepeatAlone
from memoranda.engine.pausing import check_not_paused
from memoranda.engine.session import HomeSession
from memoranda.engine.showing import PreparedNotes, Shown, file_of, writes_note
from memoranda.engine.write_gate import check_limits, sign
from memoranda.errors import (
    Conflict,
    Exists,
    MemorandaError,
    NotWritable,
    ProjectNotFound,
    StorageError,
)
from memoranda.index.writer import foresee_removal
from memoranda.ledger.change import Change
from memoranda.ledger.planned_change import PlannedChange
from memoranda.ledger.reads import ReadRow
from memoranda.note.model import GLOBAL, KV_PROJECT, Note, Provenance
from memoranda.sources.base import File
from memoranda.sources.files import make_private, storing
from memoranda.sources.folder import FolderSource
from memoranda.sources.layout import PRIVATE
from memoranda.sources.source import FileEdit, Source
from memoranda.sources.step import Step, StepKind
from memoranda.text.remembered import remembering
from memoranda.text.unicode import sqlite_text

# Digits of an id that people type.
_ID_DIGITS = 8

if TYPE_CHECKING:
    from memoranda.index.writer import Indexed
    from memoranda.ledger.execution import Execution


def check_access(
    session: HomeSession, project: str, paths: Iterable[str] = (), undoes: int | None = None
) -> None:
    """Raise an error if the owner does not allow the caller to change these paths.

    paths: the paths that the change touches.
    undoes: the number of the change to undo; None if the change is not an undo. The owner may undo
        a change even in a read-only project.

    Raises NotWritable, and ProjectNotFound for a project that the caller may not know about.
    """
    access = session.engine.access_to(project)
    # What was written before the project became read-only must stay undoable.
    is_undo_by_owner = session.is_owner and undoes is not None
    if access.is_read_only and not is_undo_by_owner:
        raise NotWritable(project, "its owner made it read-only")
    if session.is_owner:
        return
    # The agent must not learn from the error that the project exists.
    if not access.admits(session.agent):
        raise ProjectNotFound(project, names=[])

    folder = access.write_folder
    # Without such a folder, agents may write anywhere in the project.
    if not folder:
        return
    for path in paths:
        if path != folder and not path.startswith(f"{folder}/"):
            raise NotWritable(project, f"agents write in {folder}/ alone, and {path} is not there")


class WritingSession(HomeSession):
    """An open home for a caller who may change it, with the identity of the caller."""

    def check_not_paused(self) -> None:
        """Raise AgentPaused if this caller is an agent that the owner has paused."""
        check_not_paused(self)

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a context that only one writer of all threads and processes can be in."""
        self.engine.catch_up()
        return self.engine.writing()

    @contextmanager
    def change(
        self, verb: str, about: tuple[str, str] | None = None, *, fresh: bool = True
    ) -> Iterator[Transaction]:
        """Open a change of files. At the end of the block, either all its steps are carried out, or
        none.

        verb: the verb in the ledger, such as `write`.
        about: the (project, path) under which the ledger lists the change. None means the place of
            the first step.
        fresh: whether to bring the index up to date with the disk first.

        Raises Conflict, Exists or StorageError. Then nothing was changed.
        """
        self.check_not_paused()
        is_outermost = not self.engine.is_writing
        with self._critical(fresh=fresh):
            transaction = Transaction(self, verb, about)
            yield transaction
            # The texts of a large change are checked without the lock, so that other threads can
            # work meanwhile. A repeated change keeps the lock, so that it does not fail again.
            is_checked_unlocked = is_outermost and transaction.takes_long and not is_repeated.get()
            if is_checked_unlocked:
                transaction.look_up()
            else:
                transaction.commit(may_wait=is_outermost)
        if is_checked_unlocked:
            self._commit_large(transaction, fresh=fresh)
        else:
            transaction.finish()
            self.engine.long_notes.place_passages()

    @contextmanager
    def _critical(self, *, fresh: bool) -> Iterator[None]:
        """Enter the section for planning and making a change. Other writers wait.

        fresh: whether to bring the index up to date with the disk first.
        """
        # `exclusive` also waits until this process knows the changes of other machines.
        section = self.exclusive() if fresh else self.engine.writing()
        with section:
            if fresh:
                self.engine.fresh()
            yield

    def _commit_large(self, transaction: Transaction, *, fresh: bool) -> None:
        """Commit a large change. While its texts are checked, other threads may use the home.

        transaction: the change.
        fresh: whether to bring the index up to date with the disk first.

        Raises Conflict if a file that the change was made from changed meanwhile, or the folder or
        the rights of its project. Raises AgentPaused, and the errors of `Transaction.commit`.
        """
        # Closed when the change is made: until then, computed words are remembered.
        with ExitStack() as contexts:
            self._compute_words(transaction, contexts)
            long_notes = self.engine.long_notes
            contexts.enter_context(long_notes.replacing(transaction.replaced_notes))

            files_ahead = self._files_ahead(transaction, fresh=fresh)
            with files_ahead as execution, self._critical(fresh=fresh):
                self.check_not_paused()
                transaction.check_projects()
                if execution is not None:
                    self.engine.ledger.renew_ahead(execution, transaction.steps)
                try:
                    transaction.commit(may_wait=True)
                except Exists as error:
                    # The place was free when the change was planned. A Conflict makes the verb plan
                    # the change again.
                    raise Conflict(error.path, "of another note", "none") from error
            transaction.finish()

    def _compute_words(self, transaction: Transaction, contexts: ExitStack) -> None:
        """Check the texts of a large change and compute their words, while others use the home.

        The words of the texts that the change removes are computed, too.

        contexts: the words are remembered until this is closed.
        """
        with self.engine.home_released():
            # Many small notes have few words in common, so remembering all of them would only take
            # memory.
            if not transaction.has_many_files:
                contexts.enter_context(remembering())
            transaction.foresee()
            contexts.enter_context(remembering())
            transaction.foresee_removals()

    @contextmanager
    def _files_ahead(self, transaction: Transaction, *, fresh: bool) -> Iterator[Execution | None]:
        """Write the new files of a change beside their places, and keep them for the block.

        The block commits the change, which moves the files to their places. Yields the execution
        that wrote them, for `Ledger.renew_ahead`. Few files are left to the commit, and None is
        yielded.

        Writing many files takes long, and two kinds of callers are treated differently meanwhile:

        - Other threads of this process may use the home (`Engine.home_released`).
        - Other processes may not write. The home's lock is kept from before the first file is
          written until the end of the block. If this process dies, the next process that gets the
          lock sees that its holder died, and removes the files.

        transaction: the change.
        fresh: whether to bring the index up to date with the disk first.
        """
        if not transaction.has_many_files:
            yield None
            return
        ledger = self.engine.ledger
        with self._critical(fresh=fresh):
            transaction.make_roots()
            execution = ledger.place_ahead(transaction.steps)
            # Without this, the end of the `with` block would free the lock.
            ledger.lock.keep()
        try:
            with self.engine.home_released():
                ledger.write_ahead(execution, transaction.steps)
            yield execution
        finally:
            # The lock is entered, so that it becomes free at the end of this `with` block.
            with ledger.lock:
                # If the commit got to the ledger, the ledger has moved or removed the files.
                if not transaction.is_planned:
                    ledger.remove_ahead(execution, transaction.steps)
                ledger.lock.let_go()
            execution.close()


# A change with more bytes or files is large: checking it takes some hundredths of a second, during
# which other threads may use the home.
_LARGE_BYTES = 100_000
_MANY_FILES = 100
# The kinds of steps that take something away from a path, and that bring something to a path.
_TAKING = (StepKind.REMOVE, StepKind.MOVE, StepKind.RMDIR, StepKind.UNLINK)
_BRINGING = (StepKind.PUT, StepKind.MOVE, StepKind.MKDIR, StepKind.SYMLINK)


def _names_in(root: str, folder: str) -> list[str]:
    """Return the names in a folder, or an empty list if the folder cannot be read."""
    try:
        return os.listdir(os.path.join(root, folder))
    except OSError:
        return []


def _takes_note(step: Step, source: Source) -> bool:
    """Whether a step replaces, removes or moves the file of a note.

    source: the source of the step's project.
    """
    is_removed = step.do in (StepKind.REMOVE, StepKind.MOVE) and step.project != PRIVATE
    return writes_note(step, source) or (is_removed and source.is_note(step.path))


def _leaves_privately(step: Step) -> bool:
    """Whether a step takes a note out of its folder that other agents may not see."""
    return (
        step.do in (StepKind.REMOVE, StepKind.MOVE)
        and step.old is not None
        and step.scope != GLOBAL
    )


def _is_emptied(
    root: str,
    folder: str,
    removed: Collection[tuple[str, str]],
    coming: Collection[tuple[str, str]],
) -> bool:
    """Whether a change takes everything out of a folder and puts nothing into the folder.

    root: the folder of the project.
    folder: a folder below `root`.
    removed, coming: the places (root, path) that the change empties and fills.
    """
    if (root, folder) in removed:
        return False
    names = _names_in(root, folder)
    # A folder that was empty before the change, or cannot be read, is left alone.
    if not names:
        return False
    for name in names:
        if (root, f"{folder}/{name}") not in removed:
            return False
    return not any(
        coming_root == root and path.startswith(f"{folder}/") for coming_root, path in coming
    )


def _fields_of_entry_step(step_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields `kept` and `is_passing` of a step on the file of a key-value entry.

    An entry with a time to live is passing: no trace of its text may outlive it (contract 004, 4).

    step_fields: the other fields of the `Step`.
    """
    from memoranda.note.entry import is_passing

    old_file = step_fields.get("old")
    was_passing = old_file is not None and is_passing(old_file.data)
    may_keep_text = step_fields.get("kept", True)
    return {
        "kept": may_keep_text and not was_passing,
        "is_passing": is_passing(step_fields.get("data") or b""),
    }


class Transaction:
    """Collects the steps of a change, and carries them out together (`WritingSession.change`).

    verb: the verb in the ledger, such as `write`.
    about: the (project, path) under which the ledger lists the change. None means the place of the
        first step.
    steps: the steps in order.
    made_from: the origins of the notes from which the new notes were made. A new note is trusted as
        little as the least trusted of these.
    folded: the counted reads that the change writes into headers of notes.
    undoes: the number of the change that this change takes back. None if it is not an undo.
    details: further data about the change, which the ledger stores as JSON. None if there are none.
    run: the number of the first change of the run to which this change belongs. None means the run
        of the session.
    done: the ledger's entry of the change after the commit. None if there were no steps.
    """

    def __init__(self, session: WritingSession, verb: str, about: tuple[str, str] | None = None):
        self.verb = verb
        self.about = about
        self.steps: list[Step] = []
        self.made_from: list[Provenance] = []
        self.folded: dict[str, ReadRow] = {}
        self.undoes: int | None = None
        self.details: dict[str, Any] | None = None
        self.run: int | None = None
        self.done: Change | None = None
        self._session = session
        self._engine = session.engine
        # What `foresee` does without a lock, ahead of `commit`: whether the write gate has checked
        # the texts, and the notes as the index will get them.
        self._is_admitted = False
        self._prepared_notes: PreparedNotes | None = None
        # After `commit`: the change as the ledger carries it out.
        self._planned: PlannedChange | None = None
        # Once the index shows the change: the written notes by (project, path), and the notices
        # about those that look like instructions.
        self._notes: dict[tuple[str, str], Note] = {}
        self._suspicion_notices: list[str] = []
        # The ids of the projects in the index, by the name in lower case.
        self._project_ids: dict[str, int] = {}
        self.replaced_notes: list[tuple[str, Indexed]] = []
        """The notes that a large change replaces or removes, as the index has them, with their
        projects.
        """
        # The settings by which the change is planned.
        self._settings = session.engine.settings

    def put(
        self, project: str, path: str, data: bytes, *, old: File | None = None, **step_fields: Any
    ) -> Step:
        """Add the step that writes `data` to a file, and return the step.

        old: the file that was read there; None for a new file.
        step_fields: further fields of the `Step`, such as `mode` or `scope`.
        """
        return self.add(StepKind.PUT, project, path, data=data, old=old, **step_fields)

    def remove(self, project: str, path: str, old: File, **step_fields: Any) -> Step:
        """Add the step that removes a file, and return the step.

        old: the file as it was read.
        step_fields: further fields of the `Step`, such as `scope` or `kept`.
        """
        return self.add(StepKind.REMOVE, project, path, old=old, **step_fields)

    def move(
        self, project: str, path: str, to: str, *, old: File | None = None, **step_fields: Any
    ) -> Step:
        """Add the step that moves a file or a folder to `to`, a free path of the project.

        old: the file as it was read; None for a folder.
        step_fields: further fields of the `Step`, such as `scope`.
        """
        return self.add(StepKind.MOVE, project, path, to=to, old=old, **step_fields)

    def add(
        self,
        do: StepKind,
        project: str,
        path: str,
        *,
        source: FolderSource | None = None,
        **step_fields: Any,
    ) -> Step:
        """Add a step on a file of `project`, and return the step.

        source: the folder that has the file, if it is not the folder of the project. None means the
            folder of the project.
        do: the kind of step.
        step_fields: further fields of the `Step`, such as `data` and `old`.

        Raises ReadOnlyProject, ProjectNotFound, NotWritable.
        """
        if source is None:
            source = self._engine.folder(project)
        check_access(self._session, source.name, [path, step_fields.get("to") or path], self.undoes)
        access = self._engine.access_to(source.name)
        # If only some agents may use the project, the step is private to them in the history.
        if access.agents:
            step_fields["scope"] = access.scope_of(step_fields.get("scope") or GLOBAL)
        if project == KV_PROJECT:
            step_fields |= _fields_of_entry_step(step_fields)
        (step,) = source.steps(FileEdit(do, path, **step_fields))
        self.steps.append(step)
        return step

    def drop(self, step: Step) -> None:
        """Take a step out that was added before.

        It is looked for by its identity: comparing the texts of a thousand steps takes long.
        """
        for position, added_step in enumerate(self.steps):
            if added_step is step:
                del self.steps[position]
                return

    @property
    def takes_long(self) -> bool:
        """Whether checking the texts of the change takes long, so that others should not wait.

        The words of texts that are removed, or read at a new place, have to be computed, too, which
        also takes long.
        """
        # An undo and the changes of a job keep the lock while they are checked.
        if self.undoes is not None or self._session.run is not None:
            return False
        written_files = 0
        total_bytes = 0
        for step in self.steps:
            if step.do == StepKind.PUT and step.data:
                written_files += 1
                total_bytes += len(step.data)
            elif step.do in (StepKind.REMOVE, StepKind.MOVE) and step.old:
                total_bytes += len(step.old.data)
        return written_files > _MANY_FILES or total_bytes > _LARGE_BYTES

    @property
    def has_many_files(self) -> bool:
        """Whether the change writes so many files that writing them takes long."""
        return sum(step.do == StepKind.PUT for step in self.steps) > _MANY_FILES

    @property
    def is_planned(self) -> bool:
        """Whether the ledger got the change, to make it or to refuse it."""
        return self._planned is not None

    def check_projects(self) -> None:
        """Raise Conflict if a project of the change was removed, or got another folder or other
        rights, since the change was planned. The Conflict makes the verb plan the change again.
        """
        before = self._settings
        now = self._engine.settings
        # One step of each project, for the error.
        steps_by_project = {step.project: step for step in self.steps}
        for project, step in steps_by_project.items():
            has_same_folder = before.projects.get(project) == now.projects.get(project)
            has_same_rights = before.access.get(project) == now.access.get(project)
            if not (has_same_folder and has_same_rights):
                raise Conflict(step.path, "of a project with new settings", "none")

    def foresee(self) -> None:
        """Check the texts that the change writes, and prepare the notes for the index.

        This uses nothing of the home that changes, so no lock is needed. Raises SecretRefused.
        """
        self._admit()
        self._prepared_notes = PreparedNotes(self._engine, self._project_ids)
        self._prepared_notes.prepare(self.steps)

    def look_up(self) -> None:
        """Look up in the index what `foresee` and `foresee_removals` need."""
        index = self._engine.index
        self._project_ids = index.project_ids()
        self.replaced_notes = []
        for step in self.steps:
            source = self._engine.sources.get(step.project)
            if source is None or step.old is None or not _takes_note(step, source):
                continue
            replaced = index.indexed(step.project, sqlite_text(step.path))
            if replaced is not None:
                self.replaced_notes.append((step.project, replaced))

    def foresee_removals(self) -> None:
        """Compute the words of the notes that the change replaces, before the lock is taken.

        Nothing is returned: functions decorated with `remembered` keep the results for the commit.
        """
        for project, replaced in self.replaced_notes:
            foresee_removal(project, replaced)

    def _admit(self) -> None:
        """Have the write gate check the texts of the change, unless this was done. Raises
        SecretRefused.
        """
        if self._is_admitted:
            return
        session = self._session
        # A command shows the notices of all its changes together at its end.
        if session.face != "cli":
            session.notices.clear()
        gate = self._engine.gate
        session.notices += gate.admit(self.steps, self.verb, session.secret_mode)
        self._is_admitted = True

    def commit(self, *, may_wait: bool = False) -> None:
        """Carry out the steps and show them in the index. Raises Conflict, Exists, StorageError.

        may_wait: whether the change may instead be put into the queue, where it waits to be made
            together with changes of other threads. Then `finish` waits for it and raises its
            errors.
        """
        if not self.steps:
            return
        engine = self._engine
        session = self._session
        self._remove_emptied()
        self.make_roots()
        self._admit()
        sign(
            self.steps,
            verb=self.verb,
            agent=session.agent,
            made_from=self.made_from,
            index=session.index,
            history=engine.ledger.history,
        )
        planned = self._plan()
        is_waiting = may_wait and self._may_wait(planned)
        self._planned = planned
        if is_waiting:
            engine.ledger.put_in_queue(planned)
            return
        engine.guard.keep()
        engine.make(planned)
        planned.is_over.set()

    def make_roots(self) -> None:
        """Create the missing folders of projects that are kept in the home, at their first use.

        Raises StorageError if the folder of another project is missing.
        """
        engine = self._engine
        # With notes in a database, all projects are folders of this machine's copy of the home.
        has_database = engine.settings.url is not None
        first_steps: dict[str, Step] = {}
        for step in self.steps:
            first_steps.setdefault(step.root, step)
        for root, step in first_steps.items():
            if os.path.isdir(root):
                continue
            is_of_home = has_database or step.project in engine.layout.built_in
            # The user chose this folder. It may be on a disk that is not connected now, so it must
            # not be created.
            if not is_of_home:
                raise StorageError(step.path, f"the folder of project {step.project} is missing")
            with storing(step.path):
                make_private(engine.layout.root / root)

    def _plan(self) -> PlannedChange:
        """Return the change as the ledger plans it: with its steps, its writer, and how to check
        and show it.
        """
        session = self._session
        first_step = self.steps[0]
        # What was moved is listed at its new place.
        place_of_first_step = (first_step.project, first_step.to or first_step.path)
        planned = self._engine.ledger.plan(
            self.verb,
            self.steps,
            about=self.about or place_of_first_step,
            agent=session.agent,
            face=session.face,
            undoes=self.undoes,
            details=self.details,
            run=session.run if self.run is None else self.run,
            by=session.by or None,
            folded=self.folded,
        )
        planned.check = self._check_limits
        planned.show = self._take_up
        return planned

    def _may_wait(self, planned: PlannedChange) -> bool:
        """Whether the planned change can be put into the queue, to be made with the changes in it.

        Raises RepeatAlone if a change in the queue is at the same place. This call was planned
        without knowing about that change, so it must be planned again.
        """
        guard = self._engine.guard
        queue = self._engine.ledger.queue
        if not guard.may_share:
            return False
        if queue.takes(planned):
            return True
        if queue.changes and guard.may_repeat:
            raise RepeatAlone
        return False

    def _check_limits(self) -> None:
        """Raise an error if the change exceeds a limit of the settings, or what its agent may write
        in a day.
        """
        engine = self._engine
        check_limits(
            self.steps, engine.settings, self._session.agent, engine.day_use, engine.clock()
        )

    def _take_up(self, change: Change) -> None:
        """Count a change on disk for its agent's daily limit, and show the change in the index."""
        engine = self._engine
        engine.day_use.count(change)
        engine.commits += 1
        engine.changed_projects |= {step.project for step in self.steps}
        self._show(change)

    def finish(self) -> None:
        """Wait until the change is made, if it is in the queue.

        Raises RepeatAlone, and the errors of `commit`.
        """
        planned = self._planned
        if planned is None:
            return
        if not planned.is_over.is_set():
            self._engine.wait_for(planned)
        elif planned.error is not None:
            raise planned.error
        # The change is made. If the call were repeated, it would make the change twice.
        self._engine.guard.may_repeat = False
        self.done = planned.change
        session = self._session
        session.changed = self.done.number
        # The change began a run. The next changes of the session belong to this run, too.
        if session.run == 0:
            session.run = self.done.run
        session.notices += self._suspicion_notices

    def _remove_emptied(self) -> None:
        """Add steps that remove the folders that a private note leaves empty.

        Otherwise other agents would see the names of these folders.
        """
        leaving = [step for step in self.steps if _leaves_privately(step)]
        if not leaving:
            return
        removed = {(step.root, step.path) for step in self.steps if step.do in _TAKING}
        coming = {(step.root, step.to or step.path) for step in self.steps if step.do in _BRINGING}
        for step in leaving:
            folder = os.path.dirname(step.path)
            # A folder that is removed may leave the one above it empty.
            while folder and _is_emptied(step.root, folder, removed, coming):
                self.steps.append(
                    Step(StepKind.RMDIR, step.project, step.root, folder, away=step.away)
                )
                removed.add((step.root, folder))
                folder = os.path.dirname(folder)

    def _show(self, change: Change) -> None:
        """Show the files in the index that the change wrote, removed or moved.

        change: the change as the ledger made it. Its `files` have an item for each step.
        """
        shown = Shown(self._engine, self._prepared_notes)
        # The ledger may first make missing folders. So the files of the steps are the last ones.
        files_of_steps = change.files[-len(self.steps) :]
        for step, touched in zip(self.steps, files_of_steps, strict=True):
            # The index has no files of the home itself, and none of a project that has another
            # folder now.
            is_private = touched.project == PRIVATE
            if is_private or not is_here(self._engine, touched.project, touched.root):
                continue
            if touched.do == StepKind.REMOVE:
                shown.removed.append((touched.project, touched.path))
            elif touched.do == StepKind.PUT:
                shown.put(step, change.provenance(touched))
            elif touched.do == StepKind.MOVE:
                shown.move(step, touched)
        self._notes = shown.notes

        # Notes that look like instructions to their reader are marked, and the caller is told.
        self._suspicion_notices = [
            f"{_harmless_name(note)}: marked suspicious ({', '.join(note.suspicious)}); "
            "see memory review"
            for note in self._notes.values()
            if note.suspicious
        ]
        shown.bring_into_index()

    def written(self, step: Step) -> Note:
        """Return the note that a `put` or `move` step wrote. This may only be called after the
        commit.
        """
        session = self._session
        path = step.to or step.path
        note = self._notes.get((step.project, path))
        # The index did not take up the note. This process may not have the folder as a project.
        if note is None:
            if step.do == StepKind.PUT:
                file = file_of(step)
            else:
                file = self._engine.source(step.project).read(path)
            note = session.parse(step.project, path, file)
        elif len(self._notes) == 1:
            # The change has no other note that could have given it another permalink.
            note.access_count += self._engine.reads.counts([note.id])[note.id]
            return note
        try:
            return session.as_indexed(note)
        except sqlite3.Error:
            # The note is written. Only the index is damaged, so it is rebuilt.
            self._engine.rebuild_index()
            return session.as_indexed(note)


class LocationGone(MemorandaError):
    """Raised when the folder that a change was made in is unknown or no longer usable."""

    code = "storage"


def root_of(engine: Engine, project: str) -> str:
    """Return the folder that tells a project from others with its name in the ledger.

    "" means the folder that is set for the project in this home.
    """
    source = engine.source(project)
    if source.away:
        return os.path.realpath(source.root)
    return ""


def is_here(engine: Engine, project: str, root: str) -> bool:
    """Whether this process has the project in a certain folder.

    root: the folder; "" means the folder that the home has for the project.
    """
    # Without projects of its own, this process has all projects where the home has them.
    if not root and not engine.extra and not engine.only:
        return True
    source = engine.sources.get(project)
    if source is None:
        return False
    if root:
        return os.path.realpath(source.root) == root
    return not source.away


def source_at(engine: Engine, project: str, root: str) -> FolderSource:
    """Return the source of a project in a certain folder. Raises LocationGone.

    root: the folder as the ledger names it; "" means the folder that the home has for the project.

    A folder that the ledger names must still be the same folder. If it is now reached through a
    symlink, it may be any folder, so it is refused.
    """
    if project in engine.sources and is_here(engine, project, root):
        # This may be a graph file. An attempt to write to it raises an error later.
        return cast(FolderSource, engine.sources[project])
    folder = root or engine.own_root(project)
    if folder is None:
        raise LocationGone(f"there is no project {project} here")
    if root and not os.path.isdir(root):
        raise LocationGone(f"{root}, the folder of project {project}, is gone")
    if root and os.path.realpath(root) != root:
        raise LocationGone(
            f"{root}, the folder of project {project}, is reached through a symlink now"
        )
    # The `memory` tool keeps files of any name there, and follows symlinks.
    is_memory_tool = project == "memories"
    source = FolderSource(project, Path(folder), every_text=is_memory_tool, links=is_memory_tool)
    engine.register(project, source)
    return source


def read_or_none(source: FolderSource, path: str) -> File | None:
    """Return the file at `path`, or None if it cannot be read."""
    try:
        return source.read(path)
    except MemorandaError:
        return None


def _harmless_name(note: Note) -> str:
    """Return a name of a suspicious note for a message, without its suspicious words.

    The reader of the message may not have written the note: a dream moves notes of anybody. The
    file of a memory has the first words of its text as its name, so its id is returned.
    """
    from memoranda.text.gate import default_rules

    is_memory = note.phase is not None
    if is_memory or default_rules().name_suspicions(note.path):
        return f"{note.project}: {note.id[:_ID_DIGITS]}"
    return f"{note.project}/{note.path}"
