"""A month in the life of a memory, under a clock that is moved: everything comes as the contract
says, and twice the same (contract 001, 5 to 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.homes import same_ids, tree
from memoranda.engine import open_session
from memoranda.errors import NotFound
from memoranda.jobs import dream, lifecycle
from memoranda.jobs.lifecycle import FACE, Scheduler
from memoranda.note.model import Draft
from memoranda.serve.daemon import Daemon

# A Friday
START = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)
CONFIG = "timezone: UTC\ndaemon:\n  dream: false\n  keep: []\nnotification:\n  method: file\n"


@dataclass
class Month:
    """One home, its clock, and what happened on which day."""

    home: Path
    now: datetime = START
    events: list[tuple[int, str, str]] = field(default_factory=list)

    def __enter__(self):
        self.home.mkdir()
        (self.home / "config.yaml").write_text(CONFIG)
        self.memory = open_session(self.home, face="cli", clock=lambda: self.now)
        self.daemon = Daemon(Scheduler(self.memory.as_caller(None, FACE)), timedelta(hours=1))
        return self

    def __exit__(self, *_):
        self.memory.close()

    @property
    def day(self):
        return (self.now - START).days

    def write(self, text, category=None, **more):
        return self.memory.write(
            Draft(text, project="categories", category=category, source="claude", **more)
        ).id

    def until(self, day):
        """Let the daemon work each day at nine, up to this one."""
        while self.day < day:
            self.now += timedelta(days=1)
            before = self.memory.log(limit=1)[0].number
            assert self.daemon.round()
            news = [
                candidate for candidate in self.memory.log(limit=0) if candidate.number > before
            ]
            for change in reversed(news):
                name = change.path.rpartition("/")[2].rpartition("-")[0]
                self.events.append((self.day, change.verb, name))
            again = lifecycle.consolidate(self.memory)
            for outcome in again:
                assert not outcome.actions, "a second run has nothing to do"


def live(home):
    """The month. Returns what happened, and what the home holds at its end."""
    with Month(home) as month:
        tea = month.write("Bob prefers tea")
        month.write("look at the lamp")
        month.write("my mission is kindness", "soul")
        month.write("learned: sync before the rename", "lessons")
        alice = month.write("Alice is my colleague", "people", tags=["work"])
        month.write("call Bob tomorrow at 3pm", "reminders")
        month.write("water the plants every Monday at 8am", "reminders")
        month.memory.read(alice)

        month.until(1)
        for _ in range(3):
            month.memory.read(tea)
        month.until(5)
        copy = month.write("Alice is my  colleague", "people", tags=["office"])
        month.until(20)
        with pytest.raises(NotFound):
            month.memory.memory_id("ffffffff")
        assert month.memory.memory_id(copy).id == alice
        assert month.memory.memory_id(alice).access_count == 1
        assert month.memory.memory_id(alice).tags == ("work", "office")
        assert month.memory.memory_id(tea).category == "preferences"

        month.write(
            "The zebra-index broke ADR-042, Carol knows why; the meeting is in 2 days at 10:00",
            "project",
        )
        month.write("ADR-042 says: never rebuild the zebra-index by hand", "decisions")
        month.write("we decided to use SQLite")
        for level in (1, 2, 3):
            dreamt = dream.run(month.memory, level)
            month.events += [
                (month.day, action.verb, action.category or "") for action in dreamt.actions
            ]
            assert dream.run(month.memory, level).actions == []
        month.until(31)
        return month.events, tree(month.home)


@pytest.mark.slow
def test_a_month_goes_by_as_the_contract_says_and_twice_the_same(tmp_path, monkeypatch):
    lives = []
    for name in ("one", "other"):
        same_ids(monkeypatch)
        lives.append(live(tmp_path / name))
    assert lives[0] == lives[1]
    events, files = lives[0]
    assert events == [
        (2, "upgrade", "bob-prefers-tea"),
        (2, "fire", "call-bob-tomorrow-at-3pm"),
        (3, "fire", "water-the-plants-every-monday-at-8am"),
        (6, "merge", "alice-is-my-colleague"),
        (8, "expire", "look-at-the-lamp"),
        (10, "fire", "water-the-plants-every-monday-at-8am"),
        (17, "fire", "water-the-plants-every-monday-at-8am"),
        (20, "classify", "decisions"),
        (20, "link", ""),
        (20, "remind", ""),
        (22, "fire", "the-zebra-index-broke-adr-042-carol-knows-why"),
        (24, "fire", "water-the-plants-every-monday-at-8am"),
        (31, "decay", "learned-sync-before-the-rename"),
        (31, "decay", "call-bob-tomorrow-at-3pm"),
        (31, "fire", "water-the-plants-every-monday-at-8am"),
    ]
    memories_kept = {
        path.rpartition("/")[2].rpartition("-")[0]
        for path in files
        if path.startswith("categories/")
    }
    assert memories_kept == {
        "bob-prefers-tea",
        "my-mission-is-kindness",
        "alice-is-my-colleague",
        "water-the-plants-every-monday-at-8am",
        "the-zebra-index-broke-adr-042-carol-knows-why",
        "adr-042-says-never-rebuild-the-zebra-index-by",
        "we-decided-to-use-sqlite",
    }
    pending = files["pending.md"].decode()
    assert "water the plants" in pending
    # Seven days old by then
    assert "call Bob" not in pending
    assert "## decisions (2)" in files["memory.md"].decode()
