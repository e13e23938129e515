"""180 days in the life of a memory with the daemon's defaults (contract 001, 18): what a person
wrote is there, what is archived comes back by one command, and two lives give the same bytes."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.homes import same_ids, tree
from memoranda import ingest
from memoranda.engine import MemorySession, open_session
from memoranda.engine.upkeep import Ingested, Upkeep
from memoranda.ingest.sources import SOURCES, Tree
from memoranda.jobs.lifecycle import FACE, Scheduler
from memoranda.note.model import Draft
from memoranda.query import memory_query
from memoranda.serve.daemon import Daemon

START = datetime(2026, 5, 1, 8, 0, tzinfo=UTC)
SET = tomllib.loads((Path(__file__).parent / "data" / "half_year.toml").read_text("utf-8"))
BY_HAND = {row["text"] for row in SET["memory"] if "by" not in row}
PINNED = {row["text"] for row in SET["memory"] if row.get("pin")}
ASKED = {row["text"] for row in SET["memory"] if row.get("asks")}
KEPT_CATEGORIES = {"soul", "preferences", "people", "skills", "lessons", "decisions"}
ARCHIVED = memory_query(archived=True)
EARLY = 20
"""The days that are lived twice."""


@dataclass
class Life:
    """One home, its clock, and what was archived on which day: (day, how, text)."""

    memory: MemorySession
    vault: Path
    now: datetime = START
    archived: list[tuple[int, str, str]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def live(self, days: range) -> None:
        """Each day at nine people and agents write, delete and ask, the daemon works at noon, at
        first at ten too.
        """
        daemon = Daemon(Scheduler(self.memory.as_caller(None, FACE)), timedelta(hours=1))
        for day in days:
            self.now = START + timedelta(days=day, hours=1)
            self.morning(day)
            for hours in (1, 2) if day < EARLY else (3,):
                self.now += timedelta(hours=hours)
                assert daemon.round()
            for info in self.memory.list(ARCHIVED.replace(order="path"), limit=0)[0]:
                if info.id not in self.known:
                    self.known.add(info.id)
                    self.archived.append((day, info.header["archived_by"], self.text(info.id)))

    def morning(self, day: int) -> None:
        for row in SET["memory"]:
            agent = row.get("by")
            if row.get("day", 0) == day:
                caller = self.memory.as_caller(agent, "mcp" if agent else "cli")
                draft = Draft(row["text"], project="categories", category=row.get("in"))
                note = caller.write(draft)
                if row.get("pin"):
                    Upkeep(self.memory).pin([self.memory.memory_id(note.id)])
            if day in row.get("asks", ()):
                assert row["text"] in self.memory.as_caller(agent, "mcp").context_for(
                    row["question"]
                )
        if day == 0:
            for row in SET["file"]:
                (self.vault / row["path"]).parent.mkdir(parents=True, exist_ok=True)
                (self.vault / row["path"]).write_text(row["text"] + "\n", "utf-8")
            assert self.ingest() == len(SET["file"])
        for row in SET["file"]:
            if row.get("gone") == day:
                (self.vault / row["path"]).unlink()

    def ingest(self) -> int:
        """How many memories the vault gives that are new."""
        ingested = Ingested(self.memory).known()
        plans = ingest.plan([(SOURCES["obsidian"], Tree(self.vault, ()))], ingested)
        return sum(outcome.ingested for outcome in ingest.apply(self.memory, plans, ingested))

    def text(self, ref: str) -> str:
        return self.memory.read(ref, count=False).content


@contextmanager
def a_life(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """A life to be lived in `folder`, whose ids are the same each time."""
    same_ids(monkeypatch)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "home").mkdir(parents=True)
    (folder / "home" / "config.yaml").write_text("timezone: UTC\nnotification:\n  method: file\n")
    life: Any = None
    with open_session(
        folder / "home", face="cli", clock=lambda: life.now if life else START
    ) as memory:
        life = Life(memory, folder / "vault")
        yield life


@pytest.mark.slow
@pytest.mark.promise("001-18.1")
@pytest.mark.promise("001-18.3")
@pytest.mark.promise("001-18.4")
def test_half_a_year_with_the_daemon_forgets_nothing_a_person_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_life(tmp_path / "life", monkeypatch) as life:
        life.live(range(EARLY))
        early = tree(life.memory.home)
        life.live(range(EARLY, 181))
        archived = {text for _, _, text in life.archived}
        infos, _ = life.memory.list(memory_query(), limit=0)
        texts_there = {life.text(info.id) for info in infos}
        assert texts_there >= BY_HAND, "by hand"
        assert texts_there >= ASKED, "looked for again and again"
        assert {
            life.text(info.id) for info in infos if info.category in KEPT_CATEGORIES
        }.isdisjoint(archived)
        from_files = {row["text"] for row in SET["file"]}
        texts = {row["text"] for row in SET["file"] if row.get("gone")}
        assert from_files - texts_there == texts
        all_texts = {row["text"] for row in [*SET["memory"], *SET["file"]]}
        assert all_texts <= texts_there | archived, "nothing is lost"
        assert {by for _, by, _ in life.archived} == {"decay", "expire"}
        assert life.ingest() == 0
        questions = life.memory.review(limit=0)
        assert len(questions) < 10, "nobody answers many questions"
        for info in life.memory.list(ARCHIVED, limit=0)[0]:
            path, _ = life.memory.restore(info.id)
            assert (life.memory.home / path).is_file()
        _, total = life.memory.list(ARCHIVED, limit=0)
        assert total == 0
    with a_life(tmp_path / "life", monkeypatch) as again:
        again.live(range(EARLY))
        assert tree(again.memory.home) == early
