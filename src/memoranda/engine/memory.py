"""The session: all verbs of the engine for one caller. Each takes and returns values and prints
nothing. Faces, jobs and commands use it; programs use `memoranda.Memory`, which wraps it.
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
    from memoranda.engine.erase import Erased
    from memoranda.ledger.sessions import SessionRows


class MemorySession(ReviewVerbs, ProjectVerbs, ReadSession):
    """An open memory, bound to one caller. Thread-safe; close it, or use it as a context manager. A
    `ref` is an id, a unique beginning of one, a permalink, a title, a path or a `memory://`
    address; a (project, path) pair; or a note already read. The verbs are in reading.py,
    notes.py, history.py, review.py and projects.py."""

    def erase(
        self,
        *refs: Ref,
        agent: str | None = None,
        project: str | None = None,
        source: str | None = None,
        observation: str | None = None,
        dry_run: bool = False,
    ) -> Erased:
        """Remove notes for good (see `Memory.erase`), also from the ledger, the index, lists and
        vectors.

        After a StorageError, the next open or `memory doctor --fix` completes it.
        """
        from memoranda.engine.erase import Erasure

        return Erasure(self).erase(
            refs,
            agent=agent,
            project=project,
            source=source,
            observation=observation,
            dry_run=dry_run,
        )

    def finish_left_work(self) -> None:
        """Finish an erasure that was interrupted, and store what hooks could not."""
        if self.engine.ledger.erasing() is not None:
            from memoranda.engine.erase import finish

            # A disk that refuses hinders nobody to read; doctor names it
            with suppress(MemorandaError):
                finish(self)
        if self.engine.layout.asked.exists():
            from memoranda.engine.asked import store_waiting

            store_waiting(self.as_caller(None))

    def session_rows(self, client: str, name: str) -> SessionRows:
        """The rows about what a session of a client with hooks was given."""
        return self.engine.ledger.session(client, name)

    def journal_stamp(self) -> str:
        """A value that changes as soon as any process changes something through memoranda.

        Cheap.
        """
        if self.engine.settings.url is not None:
            # The ledger here is a copy: bring it up to date
            with (
                suppress(StorageError),
                self.engine.reading(),
            ):
                pass
        history = self.engine.ledger.history
        latest = next(history.changes(), None)
        return f"{history.last}-{latest.time if latest else ''}"

    @verb
    def lag(self) -> int | None:
        """How many acknowledged changes are not shown here yet. None if that is unknown.

        It is 1 while the index could not follow or is still compared with the files. With notes in
        a database, it is the number of changes that this copy lacks.
        """
        self.engine.fresh()
        is_behind = self.engine.freshness.behind or self.engine.freshness.late
        if is_behind:
            return 1
        return self.engine.ledger.lag()


open_session = MemorySession.open


def as_writer(memory: ReadSession) -> MemorySession:
    """This open memory, for the same caller, with the verbs that change it."""
    return MemorySession(memory.engine, memory.agent, memory.face, memory.by)


class HasSession(Protocol):
    """An open memory with a session inside, such as `memoranda.Memory`."""

    @property
    def session(self) -> MemorySession: ...


def session_of(memory: MemorySession | HasSession) -> MemorySession:
    """The session itself, whichever of the two a program hands over."""
    if isinstance(memory, MemorySession):
        return memory
    return memory.session
