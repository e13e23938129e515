"""What `explain` says each feature added makes up the score of a hit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda import Draft, open_memory
from memoranda.index.search import adding_up

QUERIES = (
    "tea",
    "harbour tea",
    '"green tea"',
    "what does Anna drink?",
    "when does the harbour open in May?",
    "who drinks tea at the harbour",
    "harb",
    "tea AND harbour",
    "tag:drink tea",
    "harbur",
)


def test_shares_of_every_hit_add_up_to_its_score(tmp_path: Path) -> None:
    paragraphs = "\n\n".join(f"Day {day}: the ship came late, Anna waited." for day in range(60))
    with open_memory(tmp_path / "home") as memory:
        for number in range(12):
            memory.write(Draft(f"Anna drinks green tea, cup {number}", tags=("drink",)))
        memory.write(Draft("The harbour opens in May", project="notes", title="Harbour"))
        memory.write(
            Draft(f"{paragraphs}\n\nTea at the harbour.", project="notes", title="Log of May")
        )
        for query in QUERIES:
            for limit, offset in ((10, 0), (2, 0), (3, 5)):
                for hit in memory.search(query, limit=limit, offset=offset, explain=True):
                    total = sum(hit.shares.values())
                    assert total == pytest.approx(hit.score, abs=0.0006), (query, hit.shares)


@given(
    st.dictionaries(
        st.sampled_from(["words", "meaning", "date", "asks", "passage"]), st.floats(-2, 2)
    ),
    st.floats(0, 4),
)
def test_shares_rounded_add_up_to_any_score(shares: dict[str, float], score: float) -> None:
    rounded = adding_up(shares, score)
    if shares:
        assert sum(rounded.values()) == pytest.approx(score, abs=0.0006)


def test_share_that_rounding_leaves_goes_to_the_largest() -> None:
    shares = {"words": 0.871, "near": 0.667, "conversation": 0.429}
    assert adding_up(shares, 1.966) == {"words": 0.87, "near": 0.667, "conversation": 0.429}


def test_score_lowered_to_that_of_the_hit_before_says_so() -> None:
    assert adding_up({"words": 1.2}, 0.9) == {"words": 1.2, "cap": -0.3}
