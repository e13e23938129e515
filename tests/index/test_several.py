"""Questions that ask for several things."""

from __future__ import annotations

import pytest

from commonplace.index import search
from commonplace.index.several import asks_several
from commonplace.query import Query
from index.conftest import Desk


@pytest.mark.parametrize(
    "text",
    ["What books has Ada read?", "Where has Mel worked?", "Which of her friends have moved?",
     "How many dogs are there?", "What are the names of the cats?", "What kinds of tea does she drink?",
     "What have both of them painted?",
     "Ada 读过哪些书？", "她都去过哪里？"],
)  # fmt: skip
def test_a_plural_the_perfect_tense_or_a_number_asks_for_several_things(text: str) -> None:
    assert asks_several(text)


@pytest.mark.parametrize(
    "text",
    ["What did Ada bring to the lake?", "When was the roof mended?", "Where is this?", "Which bus goes there?",
     "What is Ada's dog called?", "Who bought a kettle?", "Ada 什么时候搬家？"],
)  # fmt: skip
def test_other_questions_ask_for_one(text: str) -> None:
    assert not asks_several(text)


def test_several_things_are_looked_for_in_several_sittings(desk: Desk) -> None:
    said = {"08/0": "the canoe is a fine boat", "08/1": "the ferry is a fine boat, too", "09/0": "a raft, no boat"}
    desk.put_all({
        f"{place}.md": f"---\ndate: 2023-05-{place[:2]}\n---\nAda: {text}\n" for place, text in said.items()
    })  # fmt: skip
    one = desk.search("What fine boat is there?", explain=True)
    many = desk.search("What fine boats are there?", explain=True)
    assert not any(why.startswith("several") for hit in one for why in hit.why)
    told = {hit.note.path: why for hit in many for why in hit.why if why.startswith("several")}
    assert list(told.values()) == ["several -0.100"]
    assert many[0].note.path not in told
    assert set(told) < {"08/0.md", "08/1.md"}


def test_what_a_note_loses_to_better_ones_of_its_sitting_has_an_end(desk: Desk) -> None:
    desk.put_all({f"a/{at}.md": f"---\ndate: 2023-05-08\n---\nAda: boat number {at}" for at in range(12)})
    found = search.search(desk.db, Query("What boats are there?"), viewer=None, limit=20, explain=True)
    lost = [float(why.split(" ")[1]) for hit in found for why in hit.why if why.startswith("several ")]
    assert sorted(lost) == sorted([-0.1, -0.2, -0.3, -0.4] + [-0.5] * 7)
