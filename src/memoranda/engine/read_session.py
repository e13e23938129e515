"""Opening a memory, to begin with for reading: the session of a command that changes no note
loads nothing of what writes, which takes most of its time otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Self

from memoranda import clock as clocks
from memoranda.clock import COMMAND_WAITS, Clock
from memoranda.config import Settings, load
from memoranda.engine.engine import Engine
from memoranda.engine.reading import ReadVerbs
from memoranda.sources.files import closed_on_error


class ReadSession(ReadVerbs):
    """An open memory with the verbs that read, bound to one caller. Thread-safe; close it, or use
    it as a context manager.
    """

    def __enter__(self) -> Self:
        return self

    def close(self, *_: object) -> None:
        """See `Memory.close`."""
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
        """Open a memory, as `open_memory` does.

        projects: a name of a built-in project gives that project another place.
        serving: for servers. A project so large that the first look at its files takes long is
            compared with the disk behind the calls. These are answered from the index and warn of
            it.

        Raises ConfigError, StorageError.
        """
        if isinstance(config, Settings):
            settings = config
        else:
            settings = load_settings(home, config)
        project_names = frozenset(project_name.lower() for project_name in only)
        memory = cls(
            Engine(settings, projects or {}, clock, watch, project_names, serving), agent, face
        )
        if face == "cli":
            memory.engine.call_waits = COMMAND_WAITS
        with closed_on_error(memory):
            memory.finish_left_work()
        return memory

    def has_left_work(self) -> bool:
        """Whether an erasure was interrupted, or hooks could not store what they were asked to."""
        return self.engine.ledger.erasing() is not None or self.engine.layout.asked.exists()

    def finish_left_work(self) -> None:
        """Finish what `has_left_work` names; here it is left to a session that may write."""


def load_settings(
    home: str | os.PathLike[str] | None = None, config: str | os.PathLike[str] | None = None
) -> Settings:
    """The settings for `home`; where the notes are in a database, with the configuration of their
    space. Raises ConfigError, DatabaseAway, DatabaseRefused."""
    settings = load(home, config)
    if settings.url is None:
        return settings
    from memoranda.ledger.postgres.replica import attach

    attach(settings.home, settings.url, settings.space).follow()
    return load(home, config)
