"""A conversation as a query."""

from __future__ import annotations

import json

import pytest

from memoranda.index.search.question import read_question
from memoranda.text.dialogue import MOST_TURNS, spoken, turns_of


def test_messages_in_json_are_read_as_a_dialogue_without_tools_and_system_prompts() -> None:
    messages = [
        {"role": "system", "content": "You are a gardener."},
        {"role": "user", "content": "My roses\nhave black spots."},
        {"role": "assistant", "content": [{"type": "text", "text": "Since when?"}]},
        {"role": "tool", "content": "{}"},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Since May."}]},
    ]
    dialogue = "User: My roses have black spots.\nAssistant: Since when?\nUser: Since May."
    assert spoken(json.dumps(messages)) == dialogue
    assert spoken(json.dumps({"messages": messages})) == dialogue


@pytest.mark.parametrize(
    "text",
    [
        "[broken",
        '[{"content": ',
        "[]",
        '["content"]',
        '[{"role": "system", "content": "only this"}]',
        'the key "content" in a sentence',
        "[" * 100_000 + '"content"',
        '[{"role": "user", "content": 5}]',
    ],
)
def test_text_that_is_no_list_of_messages_stays_as_it_is(text: str) -> None:
    assert spoken(text) == text


def test_a_long_conversation_is_cut_to_its_last_turns() -> None:
    messages = [{"role": "user", "content": f"turn number {at}"} for at in range(40)]
    turns = spoken(json.dumps(messages)).split("\n")
    assert len(turns) == MOST_TURNS
    assert turns[-1] == "User: turn number 39"


def test_the_words_of_an_earlier_turn_never_weigh_more_than_those_of_a_later_one() -> None:
    talk = "Ada: The harbour crane broke.\nMel: Which bolt failed?\nAda: Order two gaskets today."
    beside = read_question(talk).beside
    assert beside["crane"] <= beside["bolt"] < 1
    assert "gaskets" not in beside


def test_a_newest_turn_that_says_little_is_read_with_the_one_before() -> None:
    turns = turns_of(
        "Ada: The harbour crane broke.\nMel: Which bolt failed, the long one?\nAda: Yes."
    )
    assert turns[-1].endswith("Ada: Yes.")
    assert "bolt" in turns[-1]


def test_prose_with_a_colon_is_no_dialogue() -> None:
    assert turns_of("Shopping: eggs\nand milk\nand a rope for the boat\nand tea") == []


def test_a_newest_turn_that_says_little_goes_back_to_what_the_same_speaker_said_last() -> None:
    talk = (
        "User: My boat leaks at the stern.\n"
        "User: Which epoxy do we need for the hull?\n"
        "Assistant: Let me look at the shipyard files.\n"
        "User: And what did we decide about that?"
    )
    earlier, newest = turns_of(talk)
    assert earlier == "User: My boat leaks at the stern."
    assert newest.startswith("User: Which epoxy do we need for the hull?\nAssistant: Let me look")


def test_a_newest_turn_that_says_enough_is_read_alone() -> None:
    talk = (
        "User: Which epoxy do we need for the hull?\n"
        "Assistant: Let me look at the shipyard files.\n"
        "User: Then where is the spare anchor of the dinghy?"
    )
    assert turns_of(talk)[-1] == "User: Then where is the spare anchor of the dinghy?"


def test_the_newest_turn_of_a_dialogue_is_known_where_it_is_read_with_others() -> None:
    talk = "User: My boat leaks.\nAssistant: Where?\nUser: At the stern."
    question = read_question(talk)
    assert question.newest == {"stern"}
    assert {"boat", "stern"} <= set(question.words)


def test_a_newest_turn_that_is_read_alone_is_not_named_again() -> None:
    talk = "User: My boat leaks.\nUser: Where is the spare anchor of the dinghy?"
    assert read_question(talk).newest == frozenset()


@pytest.mark.parametrize("role", ["User", "Human", "Assistant", "Model", "AI", "**User**"])
def test_roles_are_no_words_of_a_dialogue(role: str) -> None:
    question = read_question(f"{role}: My boat leaks.\n{role}: Where is the spare anchor, then?")
    assert not {"user", "human", "assistant", "model", "ai"} & set(question.words)


def test_names_of_people_are_words_of_a_dialogue() -> None:
    question = read_question("Ada: My boat leaks.\nAda: Where is the spare anchor, then?")
    assert "ada" in question.words
