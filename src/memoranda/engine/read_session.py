"""Open a memory for reading.

Commands that change no note use this session. It does not import the modules that write, because
importing them would take most of the command's time.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Self

from memoranda import clock as clocks
from memoranda.clock import COMMAND_WAITS, Clock
from memoranda.config import Settings, load
from memoranda.engine.engine import Engine
from memoranda.engine.reading import ReadVerbs
from memoranda.sources.files import closed_on_error

if TYPE_CHECKING:
    from memoranda.ledger.sessions import SessionRows


class ReadSession(ReadVerbs):
    """An open memory with the verbs that read, for one caller.

    It is thread-safe. Close it, or use it as a context manager.
    """

    def __enter__(self) -> Self:
        return self

    def close(self, *_: object) -> None:
        """Close the home, as `Memory.close` does.

        A `with` block calls this with the error that ended it, if any. The error does not matter.
        """
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
        follows: bool = True,
    ) -> Self:
        """Open a memory for one caller.

        home: the folder of the home, or the address of a space in a database. None means the usual
            home.
        agent: the name of the caller. None means the owner.
        projects: folders of further projects for this process, by name. The name of a built-in
            project gives that project another folder. None adds no projects.
        face: the interface that the history records.
        config: the settings, or the path of the configuration file. None means `config.yaml` in the
            home.
        clock: a function that returns the present time.
        watch: whether to watch the folders for changes, instead of listing them at each call.
        only: the names of the projects to open; empty for all.
        serving: whether this is a server. A server compares a large project with the disk in the
            background. Until it has, calls are answered from the index, with a warning.
        follows: whether the index is brought up to date with the disk before each call. Otherwise
            the index is used as it is. This is for callers that check what they use (see
            `is_as_indexed` of engine/contents.py).

        Raises ConfigError, StorageError.
        """
        if isinstance(config, Settings):
            settings = config
        else:
            settings = load_settings(home, config)
        project_names = frozenset(name.lower() for name in only)
        engine = Engine(
            settings=settings,
            extra=projects or {},
            clock=clock,
            watch=watch,
            only=project_names,
            serving=serving,
        )
        memory = cls(engine, agent, face)
        if face == "cli":
            engine.call_waits = COMMAND_WAITS
        # Without following, the index would lack the changes of other machines in the database.
        engine.follows_disk = follows or settings.url is not None
        with closed_on_error(memory):
            memory.finish_left_work()
        return memory

    def session_rows(self, client: str, name: str) -> SessionRows:
        """Return the record of the notes that a session was told. It prevents telling one twice.

        client: the name of the client, such as `claude-code`.
        name: the id that the client gives the session.
        """
        return self.engine.ledger.session(client, name)

    def has_left_work(self) -> bool:
        """Whether an erasure was interrupted, or hooks left sentences that are not stored yet."""
        return self.engine.ledger.erasing() is not None or self.engine.layout.asked.exists()

    def finish_left_work(self) -> None:
        """Do nothing. Only a session that may write can finish the work of `has_left_work`."""


def load_settings(
    home: str | os.PathLike[str] | None = None, config: str | os.PathLike[str] | None = None
) -> Settings:
    """Return the settings of a home.

    If the notes are in a database, its shared configuration is fetched first.

    home: the folder of the home; None for the usual one.
    config: the path of the configuration file; None for the file in the home.

    Raises ConfigError, DatabaseAway, DatabaseRefused.
    """
    settings = load(home, config)
    if settings.url is None:
        return settings
    from memoranda.ledger.postgres.replica import attach

    attach(settings.home, settings.url, settings.space).follow()
    return load(home, config)
