"""The daemon's round: its order, a step that fails, and dreams when nothing happens (contract 001,
13).
"""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.homes import Home
from memoranda.jobs.job import Outcome, Round
from memoranda.jobs.lifecycle import JOBS
from memoranda.serve.daemon import Daemon


@pytest.fixture
def dreamless(tmp_path: Path) -> Any:
    home = Home(tmp_path / "quiet", "daemon:\n  dream: false\n")
    with home.memory:
        yield home


@pytest.mark.promise("001-17.10")
def test_the_steps_come_in_the_order_of_the_contract(home: Home) -> None:
    assert [name for name, _ in home.daemon.steps()] == [
        "sync",
        "fold",
        "expire",
        "decay",
        "upgrade",
        "consolidate",
        "notify",
        "purge",
        "history",
        "dream",
        "embed",
        "memory.md",
    ]


@pytest.mark.promise("001-17.10")
def test_a_dream_of_each_level_comes_once_in_an_idle_period(home: Home) -> None:
    home.write("a text")
    levels = []
    for minutes in (0, 4, 2, 10, 20, 30, 60, 60, 500):
        home.later(minutes=minutes)
        levels.append(home.daemon.level())
        home.round()
    assert levels == [0, 0, 1, 0, 2, 0, 3, 0, 0]
    home.write("another")
    assert home.daemon.level() == 0
    home.later(minutes=5)
    assert home.daemon.level() == 1


def test_after_a_long_absence_the_deepest_due_dream_comes_alone_and_a_change_by_hand_ends_it(
    home: Home,
) -> None:
    home.write("a text")
    home.later(hours=3)
    assert home.daemon.level() == 3
    home.round()
    assert home.daemon.level() == 0
    folder = home.memory.home / "categories" / "people"
    folder.mkdir(parents=True)
    file = home.memory.home / "categories" / "people" / "by-hand.md"
    file.write_text("Bob likes tea\n")
    home.round()
    home.later(minutes=6)
    assert home.daemon.level() == 1


def test_where_nothing_ever_changed_one_light_dream_comes(home: Home) -> None:
    assert home.daemon.level() == 1
    home.round()
    home.later(hours=5)
    assert home.daemon.level() == 0


def test_dreams_can_be_switched_off(dreamless: Home) -> None:
    assert dreamless.daemon.level() == 0


def test_a_step_that_fails_is_logged_and_does_not_stop_the_others(
    home: Home, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise RuntimeError("the disk is on fire")

    steps = [("sync", fail), *home.daemon.steps()[1:]]
    monkeypatch.setattr(home.daemon, "steps", lambda: steps)
    monkeypatch.setattr(Daemon, "_read_transcripts", lambda _: 3)
    with caplog.at_level(logging.INFO):
        assert not Daemon(home.daemon, timedelta(minutes=1)).round()
    assert "[sync] the disk is on fire" in caplog.text
    assert "[transcripts] processed 3 items" in caplog.text
    assert (home.memory.home / "memory.md").exists()


def test_while_nothing_changes_and_no_time_is_over_the_jobs_look_at_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = home.write("a text")
    home.round()
    looked: list[str] = []
    monkeypatch.setattr(Round, "run", lambda turn, name, plan: looked.append(name) or Outcome(name))
    home.later(minutes=1)
    home.round()
    assert looked == []
    home.memory.read(memory_id)
    home.later(minutes=1)
    home.round()
    assert looked == ["expire", "decay", "upgrade", "consolidate"]


def test_what_is_written_while_the_jobs_plan_is_looked_at_in_the_next_round(
    dreamless: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = dreamless.write("a text")
    dreamless.round()
    dreamless.later(minutes=1)
    dreamless.memory.read(memory_id)
    planned = list[str]()
    real = Round.run

    def run(turn: Round, name: str, plan: Any) -> Outcome:
        outcome = real(turn, name, plan)
        planned.append(name)
        if planned == ["expire"]:
            dreamless.write("a text")
        return outcome

    monkeypatch.setattr(Round, "run", run)
    dreamless.round()
    dreamless.later(minutes=1)
    dreamless.round()
    assert planned == list(JOBS) * 2


def test_what_is_over_in_a_quiet_week_is_expired_all_the_same(dreamless: Home) -> None:
    dreamless.write("a text", source="claude")
    dreamless.round()
    dreamless.later(days=7)
    dreamless.round()
    dreamless.later(seconds=1)
    assert dreamless.memory.log()[0].verb == "write"
    dreamless.round()
    assert dreamless.memory.log()[0].verb == "expire"
