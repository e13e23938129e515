"""The daemon's round: its order, a step that fails, and dreams when nothing happens (contract 001, 13)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.engine import open_memory
from commonplace.jobs.job import Outcome, Round
from commonplace.jobs.lifecycle import FACE, Scheduler
from commonplace.note.model import Draft
from commonplace.serve.daemon import Daemon
from movable_clock import Clock


@pytest.fixture
def clock():
    return Clock(datetime(2026, 5, 7, 10, 0, tzinfo=UTC))


@pytest.fixture
def memory(tmp_path, clock):
    with open_memory(tmp_path / "home", face=FACE, clock=clock) as opened:
        yield opened


def somebody_writes(memory, text="a text"):
    memory.as_caller("claude", "mcp").write(Draft(text, project="categories"))


@pytest.mark.promise("001-17.10")
def test_the_steps_come_in_the_order_of_the_contract(memory):
    assert [name for name, _ in Scheduler(memory).steps()] == [
        "sync", "fold", "expire", "decay", "upgrade", "consolidate", "notify", "purge", "history", "dream", "embed",
        "memory.md",
    ]  # fmt: skip


@pytest.mark.promise("001-17.10")
def test_a_dream_of_each_level_comes_once_in_an_idle_period(memory, clock):
    somebody_writes(memory)
    scheduler = Scheduler(memory)
    daemon = Daemon(scheduler, timedelta(minutes=1))
    levels = []
    for minutes in (0, 4, 2, 10, 20, 30, 60, 60, 500):
        clock.later(minutes=minutes)
        levels.append(scheduler.level())
        assert daemon.round()
    assert levels == [0, 0, 1, 0, 2, 0, 3, 0, 0]
    somebody_writes(memory, "another")
    assert scheduler.level() == 0
    clock.later(minutes=5)
    assert scheduler.level() == 1


def test_after_a_long_absence_the_deepest_due_dream_comes_alone(memory, clock):
    somebody_writes(memory)
    clock.later(hours=3)
    scheduler = Scheduler(memory)
    assert scheduler.level() == 3
    assert Daemon(scheduler, timedelta(minutes=1)).round()
    assert scheduler.level() == 0


def test_where_nothing_ever_changed_one_light_dream_comes(memory, clock):
    scheduler = Scheduler(memory)
    assert scheduler.level() == 1
    assert Daemon(scheduler, timedelta(minutes=1)).round()
    clock.later(hours=5)
    assert scheduler.level() == 0


def test_a_change_by_hand_starts_a_new_idle_period(memory, clock):
    somebody_writes(memory)
    scheduler = Scheduler(memory)
    daemon = Daemon(scheduler, timedelta(minutes=1))
    clock.later(hours=3)
    daemon.round()
    (memory.home / "categories" / "people").mkdir(parents=True)
    (memory.home / "categories" / "people" / "by-hand.md").write_text("Bob likes tea\n")
    daemon.round()
    clock.later(minutes=6)
    assert scheduler.level() == 1


@pytest.fixture
def dreamless(tmp_path, clock):
    home = tmp_path / "quiet"
    home.mkdir()
    (home / "config.yaml").write_text("daemon:\n  dream: false\n")
    with open_memory(home, face=FACE, clock=clock) as opened:
        yield opened


def test_dreams_can_be_switched_off(dreamless):
    assert Scheduler(dreamless).level() == 0


def test_a_step_that_fails_is_logged_and_does_not_stop_the_others(memory, caplog):
    def fail():
        raise RuntimeError("the disk is on fire")

    class Burning(Scheduler):
        def steps(self):
            return [("sync", fail), *super().steps()[1:]]

    with caplog.at_level(logging.INFO):
        assert not Daemon(Burning(memory), timedelta(minutes=1)).round()
    assert "[sync] the disk is on fire" in caplog.text
    assert (memory.home / "memory.md").exists()


def test_while_nothing_changes_and_no_time_is_over_the_jobs_look_at_nothing(memory, clock, monkeypatch):
    somebody_writes(memory)
    daemon = Daemon(Scheduler(memory), timedelta(minutes=1))
    daemon.round()
    looked = []
    monkeypatch.setattr(Round, "run", lambda turn, name, plan: looked.append(name) or Outcome(name))
    clock.later(minutes=1)
    daemon.round()
    assert looked == []
    memory.read(memory.log()[0].path.rpartition("-")[2].removesuffix(".md"))
    clock.later(minutes=1)
    daemon.round()
    assert looked == ["expire", "decay", "upgrade", "consolidate"]


def test_what_is_written_while_the_jobs_plan_is_looked_at_in_the_next_round(dreamless, clock, monkeypatch):
    somebody_writes(dreamless)
    daemon = Daemon(Scheduler(dreamless), timedelta(minutes=1))
    daemon.round()
    clock.later(minutes=1)
    dreamless.read(dreamless.log()[0].path.rpartition("-")[2].removesuffix(".md"))
    planned, real = [], Round.run

    def run(turn, name, plan):
        outcome = real(turn, name, plan)
        planned.append(name)
        if planned == ["expire"]:
            somebody_writes(dreamless)
        return outcome

    monkeypatch.setattr(Round, "run", run)
    daemon.round()
    clock.later(minutes=1)
    daemon.round()
    assert planned == ["expire", "decay", "upgrade", "consolidate"] * 2


def test_what_is_over_in_a_quiet_week_is_expired_all_the_same(dreamless, clock):
    somebody_writes(dreamless)
    daemon = Daemon(Scheduler(dreamless), timedelta(minutes=1))
    daemon.round()
    clock.later(days=7)
    daemon.round()
    clock.later(seconds=1)
    daemon.round()
    assert dreamless.log()[0].verb == "expire"
