"""The runner: plan first, apply one by one, each as long as its memories are as planned (contract
001, 3 and 5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from editing import replace_in
from jobs.homes import Home
from memoranda.jobs import job, lifecycle
from memoranda.jobs.job import Action, Round


def lock(home: Home, identity: str) -> None:
    path = home.file(identity)
    replace_in(path, "version: 1", "version: 1\nlocked: true")


@pytest.mark.parametrize(
    ("name", "category", "meddle"),
    [
        ("expire", None, lambda home, memory_id: home.memory.tag(memory_id, add=["keep"])),
        ("expire", None, lambda home, memory_id: home.memory.delete(memory_id)),
        ("decay", "people", lock),
        ("decay", "people", lambda home, memory_id: home.memory.read(memory_id)),
    ],
    ids=["tagged", "deleted", "locked", "read"],
)
def test_an_action_on_a_memory_that_changed_after_the_plan_is_skipped_and_the_others_are_applied(
    home: Home, name: str, category: str | None, meddle: Callable[[Home, str], object]
) -> None:
    memory_id = home.write("one", category)
    two = home.write("two", category)
    home.later(days=31)

    def plan(*arguments: Any) -> Sequence[Action]:
        actions = lifecycle.JOBS[name](*arguments)
        meddle(home, memory_id)
        return actions

    outcome = home.job(name, plan)
    (action,) = outcome.actions
    assert action.id == two
    assert outcome.skipped == 1
    assert outcome.error is None
    assert home.ids() <= {memory_id}


def test_locked_memories_and_files_that_share_an_id_are_left_alone(home: Home) -> None:
    locked = home.write("same text", metadata={"locked": True})
    twice = home.write("same text")
    copy = home.file(twice).with_name("copy.md")
    copy.write_bytes(home.file(twice).read_bytes())
    before = home.tree()
    home.later(days=8)
    for outcome in lifecycle.consolidate(home.memory):
        assert not outcome.actions
    assert home.tree() == before
    copy.unlink()
    ids = [action.id for action in lifecycle.consolidate(home.memory)[0].actions]
    assert ids == [twice]
    assert home.ids() == {locked}


def test_a_job_that_fails_is_reported_and_the_next_one_runs(home: Home) -> None:
    home.write("one")
    home.later(days=8)

    def fails(*_: object) -> list[Action]:
        raise RuntimeError("out of order")

    turn = Round(home.memory)
    first = turn.run("first", fails)
    second = turn.run("expire", lifecycle.JOBS["expire"])
    assert first.failure is not None
    assert "RuntimeError: out of order" in first.failure
    assert len(second.actions) == 1


def test_what_was_applied_before_a_failure_counts(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = home.write("one")
    home.later(seconds=1)
    two = home.write("two")
    home.later(days=8)
    apply = job.apply

    def fails_on_the_second(upkeep, action, info, target):
        if action.id == two:
            raise OSError(5, "out of order")
        return apply(upkeep, action, info, target)

    monkeypatch.setattr(job, "apply", fails_on_the_second)
    outcome = home.job("expire")
    assert [action.id for action in outcome.actions] == [memory_id]
    assert isinstance(outcome.error, OSError)


def test_a_round_that_is_to_stop_ends_between_two_actions(home: Home) -> None:
    for text in ("one", "two", "three"):
        home.write(text)
    home.later(days=8)
    stop_answers = iter([False, True])
    outcome = Round(home.memory, stop=lambda: next(stop_answers)).run(
        "expire", lifecycle.JOBS["expire"]
    )
    assert len(outcome.actions) == 1
    assert len(home.ids()) == 2


def test_as_an_agent_a_job_touches_only_what_that_agent_sees(home: Home) -> None:
    foreign = home.write("of y", scope="agent:y")
    home.write("of x", scope="agent:x")
    home.write("of all")
    home.later(days=8)
    outcome = Round(home.memory.as_caller("x")).run("expire", lifecycle.JOBS["expire"])

    assert len(outcome.actions) == 2
    assert home.ids() == {foreign}


def test_an_action_says_in_json_what_its_verb_needs(home: Home) -> None:
    memory_id = home.write("lesson learned: never again")
    for _ in range(3):
        home.memory.read(memory_id)
    (action,) = home.job("upgrade", dry_run=True).actions
    assert list(action.document()) == ["job", "verb", "id", "reason", "path", "category", "words"]
    assert action.document() == {
        "job": "upgrade",
        "verb": "upgrade",
        "id": memory_id,
        "reason": "read 3 times: lessons (lesson learned, never again)",
        "path": f"categories/inbox/lesson-learned-never-again-{memory_id[:8]}.md",
        "category": "lessons",
        "words": ["lesson learned", "never again"],
    }
    assert (
        action.line()
        == f"would upgrade {memory_id[:8]} read 3 times: lessons (lesson learned, never again)"
    )
