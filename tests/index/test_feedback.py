"""Relevance feedback: a told text is answered with notes about what its best notes are about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from index.conftest import Desk
from memoranda.index import search
from memoranda.index.search.feedback import topic_shares
from memoranda.query import Query


def _rows_of(rows_by_word: dict[str, list[int]]) -> Callable[[str], Sequence[int]]:
    return lambda word: rows_by_word.get(word, [])


def test_candidate_with_the_topic_of_the_source_holds_most_of_it() -> None:
    rows_by_word = {"kiln": [1, 2], "glaze": [1, 2], "tuesday": [1, 3]}
    sources = [("kiln kiln glaze glaze tuesday", 1.0)]

    shares = topic_shares(sources, _rows_of(rows_by_word), lambda count: 1.0, [1, 2, 3, 4])

    assert shares[1] == 1.0
    assert shares[2] > shares[3] > 0
    assert 4 not in shares


def test_long_source_counts_no_more_than_a_short_one() -> None:
    rows_by_word = {"kiln": [1], "boat": [2]}
    sources = [("kiln " * 50, 1.0), ("boat", 1.0)]

    shares = topic_shares(sources, _rows_of(rows_by_word), lambda count: 1.0, [1, 2])

    assert shares[1] == shares[2]


def test_source_of_stop_words_gives_no_topic() -> None:
    assert topic_shares([("the and of", 1.0)], _rows_of({}), lambda count: 1.0, [1]) == {}


def test_word_of_very_many_notes_is_no_topic() -> None:
    rows_by_word = {"kiln": list(range(1_500)), "glaze": [7]}

    shares = topic_shares(
        [("kiln kiln glaze", 1.0)], _rows_of(rows_by_word), lambda count: 1.0, [7, 8]
    )

    assert shares == {7: 1.0}


def test_told_text_ranks_notes_of_its_topic_higher(desk: Desk) -> None:
    desk.put_all(
        {
            "kiln.md": "The kiln broke again during the glaze firing, says the pottery teacher.",
            "glaze.md": "Glaze firing at the pottery: the kiln cools for two days. Talk to nobody.",
            "weekend.md": "We went out at the weekend and had a talk with the neighbors of mine.",
        }
    )
    story = "Something broke again today at the kiln. I shall talk about what the teacher says."

    hits = search.search(desk.db, Query(story), viewer=None, explain=True)

    gains = {hit.note.path: hit.shares.get("feedback", 0.0) for hit in hits}
    assert gains["glaze.md"] > gains["weekend.md"]


def test_question_gets_no_feedback(desk: Desk) -> None:
    desk.put("kiln.md", "The kiln broke again during the glaze firing.")

    hits = search.search(desk.db, Query("What broke at the kiln?"), viewer=None, explain=True)

    assert "feedback" not in hits[0].shares


def _meant_by(desk: Desk, text: str) -> str:
    """Return the text of which the meaning is compared in a search for `text`."""
    compared: list[str] = []

    def near(question: str, rows: Collection[int]) -> dict[int, float]:
        compared.append(question)
        return dict.fromkeys(rows, 0.5)

    search.search(desk.db, Query(text), viewer=None, near=near)
    return compared[0]


def test_meaning_of_a_long_talk_is_compared_by_its_newest_turns(desk: Desk) -> None:
    desk.put("kiln.md", "The kiln broke again during the glaze firing.")
    turn = "Ada: The kiln is warm and the pottery is open.\nBen: So we fire the glaze today.\n"
    talk = turn * 30
    meant = _meant_by(desk, talk)
    assert len(meant) == 1_000
    assert talk.endswith(meant)


def test_meaning_of_a_long_text_that_is_no_talk_is_compared_further_back(desk: Desk) -> None:
    desk.put("kiln.md", "The kiln broke again during the glaze firing.")
    text = "The kiln is warm and the pottery is open. So we fire the glaze today. " * 40
    meant = _meant_by(desk, text)
    assert len(meant) == 2_000
