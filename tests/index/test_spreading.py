"""What is told is answered with notes of different talks; a question with the best notes there are."""

from __future__ import annotations

import pytest

from index.conftest import Desk
from memoranda.index import search
from memoranda.index.rows import Hit
from memoranda.query import Query

TOLD = "The kiln broke during the glaze firing again today. I shall talk to the pottery teacher."
ASKED = "What did the kiln and the glaze firing cost?"


@pytest.fixture
def talks(desk: Desk) -> Desk:
    """One talk with three turns about the matter, and one with a single, shorter one."""
    turns = {
        "may/1.md": "Anna: The kiln broke during the glaze firing, says the pottery teacher.",
        "may/2.md": "Ben: The glaze firing at the kiln broke two pots of the pottery teacher.",
        "may/3.md": "Anna: The kiln broke the pots, and the glaze firing cost us a week.",
        "june/1.md": "Anna: The kiln of the pottery teacher broke again, without glaze firing.",
    }
    desk.put_all(turns)
    return desk


def hits_of(desk: Desk, text: str) -> list[Hit]:
    found = search.search(desk.db, Query(text), viewer=None, explain=True)
    return list(found)


def folders_of(hits: list[Hit]) -> list[str]:
    return [hit.note.path.partition("/")[0] for hit in hits]


def test_told_text_shows_another_talk_before_the_third_turn_of_one(talks: Desk) -> None:
    folders = folders_of(hits_of(talks, TOLD))
    assert folders.index("june") < 3


def test_question_takes_nothing_from_the_turns_of_one_talk(talks: Desk) -> None:
    hits = hits_of(talks, ASKED)
    assert len(hits) == 4
    assert not any("several" in hit.shares for hit in hits)


def loss_of(hit: Hit) -> float:
    return hit.shares.get("several", 0.0)


def test_loss_of_a_turn_is_shown_as_several(talks: Desk) -> None:
    losses_in_may = []
    for hit in hits_of(talks, TOLD):
        loss = loss_of(hit)
        if hit.note.path == "june/1.md":
            assert loss == 0.0
        else:
            losses_in_may.append(loss)
    losses_in_may.sort()
    assert losses_in_may == [-1.0, -0.5, 0.0]


def test_notes_that_stand_alone_lose_nothing(desk: Desk) -> None:
    desk.put_all(
        {
            "pots/kiln.md": "The kiln broke during the glaze firing.",
            "pots/glaze.md": "The glaze firing broke the pots of the pottery teacher.",
        }
    )
    assert not any("several" in hit.shares for hit in hits_of(desk, TOLD))
