"""One run of the command: its global options, the memory it opens, and how it answers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.cli import output

if TYPE_CHECKING:
    from commonplace.config import Settings
    from commonplace.engine import Memory

AGENT = re.compile(r"[a-z0-9][a-z0-9._-]*")
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

    @property
    def caller(self) -> str | None:
        """The agent acting: `--agent`, else MEMORY_AGENT, else None, the owner. Raises InvalidInput."""
        name = self.agent or os.environ.get("MEMORY_AGENT") or None
        if name is not None and not AGENT.fullmatch(name):
            from commonplace.errors import InvalidInput

            raise InvalidInput(f'invalid agent "{name}"')
        return name

    def settings(self) -> Settings:
        """The settings of the home. Raises ConfigError."""
        from commonplace import config

        return config.load(self.home, self.config)

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """The memory of the home, open for this command; unreadable files are mentioned once at its end."""
        from commonplace import clock
        from commonplace.engine import open_memory

        now = self.now
        ticking = clock.now if now is None else lambda: now
        with open_memory(agent=self.caller, config=self.settings(), face="cli", clock=ticking, watch=False) as memory:
            yield memory
            if self.command not in REPORTS_UNREADABLE and (count := len(memory.unreadable)):
                files = "file" if count == 1 else "files"
                output.notice(f"warning: {count} unreadable {files}, run memory doctor")

    def answer(self, said: str, /, **data: Any) -> None:
        """Print the result: what is `said`, or with `--json` the document of these keys."""
        if self.json:
            self.document(**data)
        else:
            output.text(said)

    def document(self, **data: Any) -> None:
        """Print the JSON document of this command."""
        output.document({"schema": f"{self.command}/1"} | data)
