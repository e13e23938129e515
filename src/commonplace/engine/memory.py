"""The open memory: all verbs of the engine for one caller. Each takes and returns values and prints nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Self

from commonplace import clock as clocks
from commonplace.clock import Clock
from commonplace.config import Settings, load
from commonplace.engine.engine import Engine
from commonplace.engine.projects import ProjectVerbs
from commonplace.engine.review import ReviewVerbs


class Memory(ReviewVerbs, ProjectVerbs):
    """An open memory, bound to one caller. Thread-safe; close it, or use it as a context manager.

    A `ref` is an id, a unique beginning of one, a permalink, a title, a path or a `memory://` address; a
    (project, path) pair; or a note already read. The verbs stand in reading.py, notes.py, history.py, review.py
    and projects.py.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release everything; notes are on disk already."""
        self.engine.close()

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
    ) -> Self:
        """Open the memory at `home` (else MEMORY_HOME, the configuration's storage.root, ~/.memory).

        `agent` is the caller's identity: it sees notes of scope `global` and its own; None is the owner and sees all.
        `projects` (name -> folder or graph file) are added for this process only; one named like a built-in project
        puts that one elsewhere. `config` is a configuration file or `Settings` already loaded. With `watch` a
        long-lived process learns of changes on disk from the system instead of looking at every file on each call.
        Raises ConfigError, StorageError.
        """
        settings = config if isinstance(config, Settings) else load(home, config)
        return cls(Engine(settings, projects or {}, clock, watch), agent, face)


open_memory = Memory.open
