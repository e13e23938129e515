"""The session: all verbs of the engine for one caller. Each takes and returns values and prints
nothing. Faces, jobs and commands use it; programs use `memoranda.Memory`, which wraps it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, Self

from memoranda import clock as clocks
from memoranda.clock import COMMAND_WAITS, Clock
from memoranda.config import Settings, load
from memoranda.engine.engine import Engine, verb
from memoranda.engine.projects import ProjectVerbs
from memoranda.engine.reading import Ref
from memoranda.engine.review import ReviewVerbs
from memoranda.errors import MemorandaError, StorageError
from memoranda.sources.files import closed_on_error

if TYPE_CHECKING:
    from memoranda.engine.erase import Erased
    from memoranda.ledger.sessions import SessionRows


class MemorySession(ReviewVerbs, ProjectVerbs):
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
        """Remove notes for good (see `Memory.erase`), also from the journal, the index, lists and
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

    def session_rows(self, client: str, name: str) -> SessionRows:
        """The rows about what a session of a client with hooks was given."""
        return self.engine.ledger.session(client, name)

    def notes_given(self) -> tuple[int, set[str]]:
        """How many sessions of clients with hooks were told something, and the ids of the notes."""
        from memoranda.ledger.sessions import given_notes

        return given_notes(self.engine.ledger.database)

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

    def _finish_what_is_left(self) -> None:
        """Finish an erasure that was interrupted, and store what hooks could not."""
        if self.engine.ledger.erasing() is not None:
            from memoranda.engine.erase import finish

            # A disk that refuses hinders nobody to read; doctor names it
            with suppress(MemorandaError):
                finish(self)
        if self.engine.layout.asked.exists():
            from memoranda.engine.asked import store_waiting

            store_waiting(self.as_caller(None))

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

    def __enter__(self) -> Self:
        return self

    def close(self, *_: object) -> None:
        """Close the memory (see `Memory.close`)."""
        self.engine.close()

    __exit__ = close

    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        projects: Mapping[str, str | os.PathLike[str]] | None = None,
        *,
        face: str = "python",
        config: Settings | str | os.PathLike[str] | None = None,
        clock: Clock = clocks.now,
        watch: bool = True,
        only: Collection[str] = (),
        serving: bool = False,
    ) -> Self:
        """Open the memory of a person.

        home: its folder, or the address of a space of a database,
            `postgresql://HOST/DATABASE?space=NAME` (docs/teams.md). By default MEMORY_HOME, then
            the configuration's storage.url or storage.root, then ~/.memory.
        agent: the caller's name; it sees notes of scope `global` and its own. None means the owner,
            who sees all.
        projects: names to folders or graph files, for this process only. A name of a built-in
            project gives that project another place.
        face: what the history calls the program that writes.
        config: a configuration file, or settings already loaded.
        clock: tells the time; for tests.
        watch: learn about changes on disk from the system instead of looking at every file on each
            call; for long-lived processes.
        only: names of projects. Others do not exist then: nothing of them is read, found, linked or
            written.
        serving: compare a project whose first look takes long with the disk in the background.
            Until then calls are answered from the index, with a warning. For servers.

        Raises ConfigError, StorageError.
        """
        if isinstance(config, Settings):
            settings = config
        else:
            settings = load_settings(home, config)
        few = frozenset(project_name.lower() for project_name in only)
        memory = cls(Engine(settings, projects or {}, clock, watch, few, serving), agent, face)
        if face == "cli":
            memory.engine.call_waits = COMMAND_WAITS
        with closed_on_error(memory):
            memory._finish_what_is_left()
        return memory


def load_settings(
    home: str | os.PathLike[str] | None = None, config: str | os.PathLike[str] | None = None
) -> Settings:
    """The settings for `home`. If the notes are in a database, the configuration of their space
    counts.

    Raises ConfigError, DatabaseAway, DatabaseRefused.
    """
    settings = load(home, config)
    if settings.url is None:
        return settings
    from memoranda.ledger.postgres.replica import attach

    attach(settings.home, settings.url, settings.space).follow()
    return load(home, config)


open_session = MemorySession.open


class HasSession(Protocol):
    """An open memory with a session inside, such as `memoranda.Memory`."""

    @property
    def session(self) -> MemorySession: ...


def session_of(memory: MemorySession | HasSession) -> MemorySession:
    """The session itself, whichever of the two a program hands over."""
    if isinstance(memory, MemorySession):
        return memory
    return memory.session
