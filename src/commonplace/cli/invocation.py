"""One run of the command: its global options, the memory it opens, and how it answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from commonplace.cli import output

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory

REPORTS_UNREADABLE = ("status", "doctor")


@dataclass
class Invocation:
    """Filled by the global options while the command line is read; `command` is the name of the command."""

    command: str = "memory"
    home: str | None = None
    config: str | None = None
    agent: str | None = None
    json: bool = False
    now: datetime | None = None
    offset: tzinfo | None = None
    """That of `--now`, if it was given with one: times are then read and shown in it (contract 001, 8)."""
    tidies: bool = False
    """Whether `memory.md` is looked at in any case: a program that was killed may have left an old one behind."""

    @property
    def caller(self) -> str | None:
        """The agent acting: `--agent`, else MEMORY_AGENT, else None, the owner. Raises InvalidInput."""
        name = self.agent or os.environ.get("MEMORY_AGENT") or None
        if name is not None:
            from commonplace.engine.writing import is_agent
            from commonplace.errors import InvalidInput

            if not is_agent(name):
                raise InvalidInput(f'invalid agent "{name}"')
        return name

    def settings(self) -> Settings:
        """The settings of the home. Raises ConfigError."""
        from commonplace import config

        return replace(config.load(self.home, self.config), offset=self.offset)

    @contextmanager
    def memory(
        self, projects: Mapping[str, os.PathLike[str]] | None = None, *, watch: bool = False
    ) -> Iterator[Memory]:
        """The memory of the home, open for this command; unreadable files are mentioned once at its end.

        `projects`: more of them, for this command alone. `watch`: for commands of many calls, which need not look
        at every file on each.
        """
        from commonplace import clock
        from commonplace.engine import open_memory

        now = self.now
        ticking = clock.now if now is None else lambda: now
        with open_memory(
            agent=self.caller, projects=projects, config=self.settings(), face="cli", clock=ticking, watch=watch
        ) as memory:
            yield memory
            if memory.has_changed_memories or self.tidies:
                self._refresh_overview(memory)
            if self.command not in REPORTS_UNREADABLE and (count := len(memory.unreadable)):
                files = "file" if count == 1 else "files"
                output.notice(f"warning: {count} unreadable {files}, run memory doctor")

    def _refresh_overview(self, memory: Memory) -> None:
        from commonplace.engine.overview import Overview
        from commonplace.errors import StorageError

        try:
            if not Overview(memory).keep_up() and self.tidies:
                Overview(memory).refresh(create=False)
        except StorageError as error:
            output.notice(f"warning: {error}")  # what was asked for is done

    def answer(self, said: str, /, **data: Any) -> None:
        """Print the result: what is `said`, or with `--json` the document of these keys."""
        if self.json:
            self.document(**data)
        else:
            output.text(said)

    def document(self, **data: Any) -> None:
        """Print the JSON document of this command."""
        output.document({"schema": f"{self.command}/1"} | data)
