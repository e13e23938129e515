"""A home for tests of jobs: memories written at chosen times, and what is on disk."""

from __future__ import annotations

import itertools
import re
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from memoranda.engine import MemorySession, open_session
from memoranda.engine.upkeep import Upkeep
from memoranda.index.rows import NoteInfo
from memoranda.jobs import lifecycle
from memoranda.jobs.job import Outcome, Plan, Round
from memoranda.jobs.lifecycle import FACE, Scheduler
from memoranda.note.markdown import Record
from memoranda.note.model import MEMORY_KEYS, Draft, Note

MOMENT = datetime(2026, 5, 6, 10, 0, tzinfo=UTC)
ONE, TWO, THREE, FOUR = (str(UUID(f"{n * 8}-{n * 4}-4{n * 3}-8{n * 3}-{n * 12}")) for n in "1234")


def tree(home: Path) -> dict[str, bytes]:
    """Every file outside `.memoranda`, with its bytes."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and ".memoranda" not in path.parts
    }


def further(note: Note) -> dict[str, Any]:
    """The header keys of a memory's note that not every memory has."""
    return {key: value for key, value in note.header.items() if key not in MEMORY_KEYS}


def same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the ids of new notes be the same each time, from the first one on."""
    numbers = itertools.count(1)
    version = 4 << 76 | 8 << 60
    monkeypatch.setattr(uuid, "uuid4", lambda: UUID(int=next(numbers) << 96 | version))
    monkeypatch.setattr("memoranda.ingest.uuid4", uuid.uuid4)


class Home:
    """An open memory whose clock stands still at `now` until a test moves it."""

    def __init__(self, folder: Path, config: str = ""):
        self.now = MOMENT
        folder.mkdir(parents=True, exist_ok=True)
        if config:
            (folder / "config.yaml").write_text(config, encoding="utf-8")
        self.memory: MemorySession = open_session(folder, clock=lambda: self.now, watch=False)
        self.upkeep = Upkeep(self.memory)
        self.daemon = Scheduler(self.memory.as_caller(None, FACE))

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
        return {memory.id for memory in self.upkeep.every()}

    def file(self, identity: str) -> Path:
        return self.memory.home / "categories" / self.info(identity).path

    def round(self, *without: str) -> None:
        """A round of the daemon, without these steps."""
        for name, step in self.daemon.steps():
            if name not in without:
                step()

    def tree(self) -> dict[str, bytes]:
        """See `tree`."""
        return tree(self.memory.home)

    def forgotten_undos(self) -> dict[str, bytes]:
        """As `tree`, without what memories remember of actions that were taken back."""
        return {
            path: re.sub(rb"kept_from:\n(?:  - .*\n)+", b"", data)
            for path, data in self.tree().items()
        }

    def everything(self) -> dict[str, bytes]:
        """As `tree`, with the files of the program itself, except the index."""
        home = self.memory.home
        return self.tree() | {
            str(path.relative_to(home)): path.read_bytes()
            for path in sorted((home / ".memoranda").rglob("*"))
            if path.is_file() and not path.name.startswith(("index", "ledger", "lock"))
        }
