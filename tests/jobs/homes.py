"""A home for tests of jobs: memories written at chosen times, and what is on disk."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from commonplace.engine import Memory, open_memory
from commonplace.engine.upkeep import Upkeep
from commonplace.index.rows import NoteInfo
from commonplace.jobs import lifecycle
from commonplace.jobs.job import Outcome, Plan, Round
from commonplace.note.compose import Record
from commonplace.note.model import Draft

MOMENT = datetime(2026, 5, 6, 10, 0, tzinfo=UTC)


class Home:
    """An open memory whose clock stands still at `now` until a test moves it."""

    def __init__(self, folder: Path, config: str = ""):
        self.now = MOMENT
        folder.mkdir(parents=True, exist_ok=True)
        if config:
            (folder / "config.yaml").write_text(config, encoding="utf-8")
        self.memory: Memory = open_memory(folder, clock=lambda: self.now, watch=False)
        self.upkeep = Upkeep(self.memory)

    def job(self, name: str, plan: Plan | None = None, *, dry_run: bool = False) -> Outcome:
        """The outcome of one of the four jobs, or of another plan under its name."""
        return Round(self.memory, dry_run=dry_run).run(name, plan or lifecycle.JOBS[name])

    def later(self, **span: float) -> None:
        """Move the clock on."""
        self.now += timedelta(**span)

    def write(self, text: str, category: str | None = None, **more: Any) -> str:
        """The id of a memory just written."""
        return self.memory.write(Draft(text, project="categories", category=category, **more)).id

    def put(self, identity: str, text: str, category: str = "knowledge", **more: Any) -> str:
        """A memory with all its keys; returns its id."""
        fields: dict[str, Any] = {"created": self.now, "updated": self.now} | more
        self.upkeep.put([Record(identity, text, category, **fields)], "import")
        return identity

    def info(self, identity: str) -> NoteInfo:
        return self.memory.memory_id(identity)

    def category(self, identity: str) -> str | None:
        return self.info(identity).category

    def ids(self) -> set[str]:
        return {each.id for each in self.upkeep.every()}

    def file(self, identity: str) -> Path:
        return self.memory.home / "categories" / self.info(identity).path

    def tree(self) -> dict[str, bytes]:
        """Every file outside `.commonplace`, with its bytes."""
        home = self.memory.home
        return {
            str(path.relative_to(home)): path.read_bytes()
            for path in sorted(home.rglob("*"))
            if path.is_file() and ".commonplace" not in path.parts
        }

    def forgotten_undos(self) -> dict[str, bytes]:
        """As `tree`, without what memories remember of actions that were taken back."""
        return {path: re.sub(rb"kept_from:\n(?:  - .*\n)+", b"", data) for path, data in self.tree().items()}

    def everything(self) -> dict[str, bytes]:
        """As `tree`, with what the program keeps for itself, but for the index."""
        home = self.memory.home
        return self.tree() | {
            str(path.relative_to(home)): path.read_bytes()
            for path in sorted((home / ".commonplace").rglob("*"))
            if path.is_file() and not path.name.startswith(("index", "redo", "lock", "lines"))
        }
