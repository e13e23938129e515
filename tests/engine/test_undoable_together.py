"""Which changes of an agent can be undone together, and how much planning that takes."""

from __future__ import annotations

from random import Random

import pytest

from memoranda import Draft
from memoranda.engine import MemorySession, open_session
from memoranda.engine.history.refusals import undoable_together
from memoranda.engine.history.undo import Undo
from memoranda.note.edit import Append


@pytest.fixture
def owner(tmp_path):
    with open_session(tmp_path / "home") as session:
        yield session


def agent_of(owner: MemorySession) -> MemorySession:
    return owner.as_caller("codex", "mcp", client="codex")


def last_number(owner: MemorySession) -> int:
    return owner.log(limit=1)[0].number


def note(title: str) -> Draft:
    return Draft(f"{title} is a note.", title=title, project="notes")


def numbers_of_agent(owner: MemorySession) -> list[int]:
    changes = owner.log(limit=0, agent="codex")
    return [change.number for change in changes]


def append(session: MemorySession, title: str, line: str) -> int:
    """Append a line to a note, and return the number of the change."""
    session.edit(title, Append(line), project="notes")
    return last_number(session)


def test_a_change_below_an_edit_of_the_owner_is_refused_and_the_one_above_it_is_not(owner):
    agent = agent_of(owner)
    agent.write(note("Plan"))
    written = last_number(owner)
    by_owner = append(owner, "Plan", "by the owner")
    by_agent = append(agent, "Plan", "by the agent")
    possible, refusals = undoable_together(owner, [written, by_agent])
    assert possible == [by_agent]
    assert refusals[written].later == by_owner


def test_a_refused_change_of_two_notes_leaves_no_part_in_the_plan(owner):
    agent = agent_of(owner)
    agent.write_many([note("Plan"), note("Trip")])
    written = last_number(owner)
    append(owner, "Plan", "by the owner")
    on_plan = append(agent, "Plan", "by the agent")
    on_trip = append(agent, "Trip", "by the agent")
    possible, refusals = undoable_together(owner, [written, on_plan, on_trip])
    owner.undo_together(possible)
    assert possible == [on_trip, on_plan]
    assert [*refusals] == [written]
    assert "Trip is a note." in owner.read("Trip", project="notes").text


@pytest.mark.parametrize("seed", range(4))
def test_what_can_be_undone_together_is_undone_by_one_change(owner, seed):
    make_history(owner, Random(seed))
    possible, _ = undoable_together(owner, numbers_of_agent(owner))
    undo = owner.undo_together(possible)
    assert undo.number == last_number(owner)


@pytest.mark.parametrize("seed", range(4))
def test_none_of_the_refused_changes_can_be_undone_with_the_others(owner, seed):
    make_history(owner, Random(seed))
    possible, refusals = undoable_together(owner, numbers_of_agent(owner))
    wrongly_refused = []
    for number in refusals:
        with_it, _ = undoable_together(owner, [*possible, number])
        if number in with_it:
            wrongly_refused.append(number)
    assert not wrongly_refused


def make_history(owner: MemorySession, random: Random) -> None:
    """Write, edit and delete a few notes, as an agent and as the owner in turn."""
    agent = agent_of(owner)
    titles: list[str] = []
    for number in range(40):
        chance = random.random()
        if len(titles) < 3 or chance < 0.2:
            titles.append(f"Note {number}")
            agent.write(note(titles[-1]))
        elif chance < 0.6:
            append(agent, random.choice(titles), f"by the agent {number}")
        elif chance < 0.9:
            append(owner, random.choice(titles), f"by the owner {number}")
        else:
            title = titles.pop(random.randrange(len(titles)))
            agent.delete(title, project="notes")


def test_many_refused_changes_are_found_in_one_plan(owner, monkeypatch):
    agent = agent_of(owner)
    for number in range(30):
        title = f"Note {number}"
        agent.write(note(title))
        append(owner, title, "by the owner")
        append(agent, title, "by the agent")
    planned_numbers = []
    take_back = Undo.take_back

    def counted_take_back(undo, change, together=()):
        planned_numbers.append(change.number)
        take_back(undo, change, together)

    monkeypatch.setattr(Undo, "take_back", counted_take_back)
    numbers = numbers_of_agent(owner)
    _, refusals = undoable_together(owner, numbers)
    assert len(refusals) == 30
    # Each change is planned alone, and then together with the others.
    assert len(planned_numbers) == 2 * len(numbers)
