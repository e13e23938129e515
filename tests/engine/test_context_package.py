"""One call of `context` gives all that belongs to a hit: who said it, its day, the turns beside it,
and what holds in its place."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from memoranda import Draft, Memory, open_memory

TALK = (
    "Ada: The carburettor of the outboard floods",
    "Mel: Is the float stuck?",
    "Ada: It was; I filed the needle down",
    "Mel: Lovely, and the dinghy?",
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with open_memory(tmp_path_factory.mktemp("package") / "home") as opened:
        for number, turn in enumerate(TALK, 1):
            speaker = turn.partition(":")[0]
            opened.write(
                Draft(
                    turn,
                    project="notes",
                    folder="talk",
                    title=f"Turn {number}",
                    source=speaker,
                    date="2026-03-02",
                )
            )
        for number in range(12):
            opened.write(Draft(f"Weather and tea, day {number}", project="notes"))
        for instrument, place in (("harpsichord", "church"), ("accordion", "school")):
            text = f"The {instrument} is tuned at the {place}"
            opened.write(Draft(text, project="notes", title=instrument.title()))
        opened.write(Draft("The spark plug is a B7HS", project="notes", title="Old plug"))
        opened.write(
            Draft(
                "The spark plug is a BR7HS",
                project="notes",
                title="New plug",
                supersedes=("Old plug",),
            )
        )
        yield opened


def test_a_hit_comes_with_its_speaker_its_day_and_the_turns_that_hold_no_word(memory):
    context = memory.context("Why did the carburettor flood?", max_tokens=150)
    assert "2026-03-02" in context
    positions = [context.index(turn) for turn in TALK[:3]]
    assert positions == sorted(positions)
    assert len(context) <= 150 * 4


def test_what_was_superseded_gives_way_to_what_holds(memory):
    context = memory.context("Which spark plug is it?", max_tokens=150)
    assert "BR7HS" in context
    assert " B7HS" not in context


def test_the_newest_turn_of_a_talk_counts_most_in_context_and_search(memory):
    turns = (
        ("user", "When is the harpsichord tuned, at the church?"),
        ("assistant", "Soon."),
        ("user", "When is the accordion tuned, at the school?"),
    )
    talk = "\n".join(f"{role.title()}: {text}" for role, text in turns)
    messages = json.dumps([{"role": role, "content": text} for role, text in turns])
    for query in (talk, messages):
        title = memory.search(query)[0].note.title
        assert title == "Accordion"
        assert "accordion" in memory.context(query, max_tokens=30)
    other_way = "\n".join(reversed(talk.split("\n")))

    title = memory.search(other_way)[0].note.title
    assert title == "Harpsichord"


def test_a_hit_that_was_superseded_comes_with_what_holds_though_that_shares_no_word(memory):
    context = memory.context("Who bought the B7HS?", max_tokens=150)
    assert "[superseded by notes/new-plug] The spark plug is a B7HS" in context
    assert "The spark plug is a BR7HS" in context
    assert len(context) <= 150 * 4
    tight = memory.context("Who bought the B7HS?", max_tokens=30)
    assert " B7HS" in tight
    assert "BR7HS" not in tight


def test_a_newer_note_that_is_private_to_another_agent_is_not_shown_with_a_hit(tmp_path):
    home = tmp_path / "home"
    question = "Who painted berth 12?"
    with open_memory(home) as owner:
        owner.write(Draft("The berth is number 12", project="notes", title="Old berth"))
        header = "scope: agent:ada\nsupersedes: Old berth"
        newer = f"---\n{header}\n---\nMoored at the quay since May"
        (home / "notes" / "New berth.md").write_text(newer, encoding="utf-8")
        assert "quay" in owner.context(question)
    with open_memory(home, agent="mel") as mel:
        context = mel.context(question)
        assert "berth is number 12" in context
        assert "quay" not in context
