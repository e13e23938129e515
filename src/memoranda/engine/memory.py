"""The session with all verbs of the engine, for one caller.

A verb takes and returns values, and prints nothing. Interfaces, jobs and commands use the session.
Programs use `memoranda.Memory`, which wraps it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from memoranda.engine.engine import verb
from memoranda.engine.projects import ProjectVerbs
from memoranda.engine.read_session import ReadSession
from memoranda.engine.reading import Ref
from memoranda.engine.review import ReviewVerbs
from memoranda.errors import MemorandaError, StorageError

if TYPE_CHECKING:
    from memoranda.engine.history.erase import Erased


class MemorySession(ReviewVerbs, ProjectVerbs, ReadSession):
    """An open memory with all verbs, for one caller.

    It is thread-safe. Close it, or use it as a context manager. The verbs are in reading.py,
    notes.py, history/verbs.py, review.py and projects.py.

    A `ref` names a note. It is an id, a unique beginning of an id, a permalink, a title, a path or
    a `memory://` address. It may also be a pair (project, path), or a note that was read before.
    """

    def erase(
        self,
        *refs: Ref,
        agent: str | None = None,
        project: str | None = None,
        source: str | None = None,
        observation: str | None = None,
        dry_run: bool = False,
    ) -> Erased:
        """Remove notes and every trace of them for good (see `Memory.erase`).

        Their words are removed from the ledger, the index, the lists and the vectors, too. After a
        StorageError, the erasure is not complete. It is completed when the memory is next opened,
        or by `memory doctor --fix`.

        refs: the notes to erase.
        agent, project, source: erase all notes of this agent, of this project, or from this source;
            None selects no notes.
        observation: erase only this observation, from the one note of `refs`. None erases whole
            notes.
        dry_run: whether only to return what the erasure would do.
        """
        from memoranda.engine.history.erase import Erasure

        return Erasure(self).erase(
            refs,
            agent=agent,
            project=project,
            source=source,
            observation=observation,
            dry_run=dry_run,
        )

    def finish_left_work(self) -> None:
        """Finish an interrupted erasure, and store the sentences that hooks put aside."""
        if self.engine.ledger.erasing() is not None:
            from memoranda.engine.history.erase import finish

            # The memory can be read even if the disk refuses. `memory doctor` reports the erasure.
            with suppress(MemorandaError):
                finish(self)
        if self.engine.layout.asked.exists():
            from memoranda.engine.telling.asked import store_waiting

            store_waiting(self.as_caller(agent=None))

    def journal_stamp(self) -> str:
        """Return a value that changes as soon as any process changes a note through memoranda.

        Edits by other programs do not change it. It is cheap to read.
        """
        if self.engine.settings.url is not None:
            # The ledger on this machine is a copy. Entering the section brings it up to date.
            with suppress(StorageError), self.engine.reading():
                pass
        history = self.engine.ledger.history
        latest_change = next(history.changes(), None)
        latest_time = latest_change.time if latest_change is not None else ""
        numbers = "-".join(str(number) for number in history.latest_numbers)
        return f"{numbers}-{latest_time}"

    @verb
    def lag(self) -> int | None:
        """Return how many changes this process does not show yet. None if that is unknown.

        If the notes are in a database, it is the number of changes that the copy on this machine
        lacks. It is 1 if the index could not be brought up to date, or is still being compared with
        the files.
        """
        self.engine.fresh()
        is_behind = self.engine.freshness.why_behind or self.engine.freshness.late_sweeps
        if is_behind:
            return 1
        return self.engine.ledger.lag()


open_session = MemorySession.open


def as_writer(memory: ReadSession) -> MemorySession:
    """Return a session of the same open memory and caller that also has the verbs that write."""
    return MemorySession(memory.engine, memory.agent, memory.face, memory.by)


class HasSession(Protocol):
    """An object that wraps a session, such as `memoranda.Memory`."""

    @property
    def session(self) -> MemorySession: ...


def session_of(memory: MemorySession | HasSession) -> MemorySession:
    """Return the session of an open memory. `memory` may be the session itself."""
    if isinstance(memory, MemorySession):
        return memory
    return memory.session
