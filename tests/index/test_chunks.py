"""Long notes, ranked and shown by their best chunk."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.conftest import Desk
from memoranda.index import features, search
from memoranda.index.features import SHORT, chunk, chunk_spans, first_person, spans_from_index
from memoranda.query import Query
from memoranda.text.standing import MAX_CHARACTERS

SMALL_TALK = [
    "the weather was mild again and the bus was late",
    "we cooked soup and watched the rain for a while",
    "somebody parked in front of our gate once more",
    "that reminds me to call the dentist on Friday",
    "the neighbours have painted their fence a dull green",
    "our tram line is closed until the end of the month",
]


def session(*turns: str) -> str:
    """A long conversation of Ada and Mel; `turns` are in the middle of it."""
    lines = []
    for text in SMALL_TALK:
        lines += [f"{who}: Well, {text}." for who in ("Ada", "Mel")]
    return "\n\n".join([*lines[:6], *turns, *lines[6:]]) + "\n"


def asked(desk: Desk, text: str, **more: Any) -> list[Any]:
    return list(search.search(desk.db, Query(text), viewer=None, limit=20, **more))


@pytest.fixture
def shelf(desk: Desk) -> Desk:
    desk.put(
        "one.md",
        "---\ndate: 2023-05-08\n---\n"
        + session("Mel: I bought a red canoe at the harbour market!"),
    )
    desk.put(
        "two.md",
        "---\ndate: 2023-06-11\n---\n"
        + session(
            "Ada: The canoe club meets on Mondays.",
            "Mel: A market is held here.",
            "Ada: Red is not my colour.",
        ),
    )
    desk.put("three.md", "---\ndate: 2023-07-01\n---\n" + session("Ada: My sister plays the oboe."))
    desk.put("short.md", "The harbour market opens at six, and a canoe lies on the quay.")
    return desk


def test_a_long_note_with_one_perfect_passage_comes_before_one_with_scattered_words(
    shelf: Desk,
) -> None:
    paths = [hit.note.path for hit in asked(shelf, "Which red canoe did Mel buy at the market?")]
    assert paths[0] == "one.md"
    assert paths.index("one.md") < paths.index("two.md")


def test_the_hit_shows_the_passage_with_its_speaker_and_its_line(shelf: Desk) -> None:
    hit = asked(shelf, "Which red canoe did Mel buy at the market?")[0]
    assert hit.passage == "Mel: I bought a red canoe at the harbour market!"
    lines = ("---\ndate: 2023-05-08\n---\n" + session(hit.passage)).split("\n")
    assert lines[hit.line - 1] == hit.passage


def test_a_passage_knows_what_its_neighbour_says(desk: Desk) -> None:
    desk.put(
        "a.md",
        session("Ada: What did the painter from Leiden give you?", "Mel: An old oboe, I love it."),
    )
    desk.put("b.md", session("Ada: Is there any news?"))
    hit = asked(desk, "What was given to Mel by the painter from Leiden?")[0]
    assert hit.note.path == "a.md"
    assert hit.passage.startswith("Mel: An old oboe")


def test_the_speaker_a_question_names_is_looked_for_within_a_note(desk: Desk) -> None:
    desk.put(
        "a.md",
        session("Ada: I keep a parrot in the kitchen.", "Mel: I keep a tortoise in the kitchen."),
    )
    assert asked(desk, "What does Mel keep in the kitchen?")[0].passage.startswith(
        "Mel: I keep a tortoise"
    )
    assert asked(desk, "What does Ada keep in the kitchen?")[0].passage.startswith(
        "Ada: I keep a parrot"
    )


def test_where_all_notes_are_short_no_passage_is_listed(desk: Desk) -> None:
    desk.put_all({"a.md": "The oboe is old.", "b.md": "Mel plays the oboe."})
    hits = asked(desk, "Who plays the oboe?", explain=True)
    assert len(hits) == 2
    for hit in hits:
        for reason in hit.why:
            assert not reason.startswith("passage")


def test_a_wordy_turn_that_is_no_long_note_waits_for_its_place(desk: Desk) -> None:
    turns = {
        f"n{number:02}.md": f"Ada: the market has a canoe, number {number}" for number in range(60)
    }
    desk.put_all({"wordy.md": "Mel: a canoe " + "is so so so so " * 14, **turns})
    hits = search.search(
        desk.db, Query("Which canoe does the market have?"), viewer=None, limit=61, explain=True
    )
    shares = []
    for hit in hits:
        shares.append(sum(float(why.rsplit(" ", 1)[1]) for why in hit.why if why[-1].isdigit()))

    assert hits[60].note.path == "wordy.md"
    assert shares == sorted(shares, reverse=True)


def test_the_best_passage_of_a_very_long_note_is_found(desk: Desk) -> None:
    desk.put(
        "long.md",
        session() * 60 + "Mel: The spare key hangs behind the barometer.\n\n" + session() * 60,
    )
    desk.put("short.md", "A key is a thing. The spare wheel is behind the house.")
    hit = asked(desk, "Where does the spare key hang?")[0]
    assert (hit.note.path, hit.passage) == (
        "long.md",
        "Mel: The spare key hangs behind the barometer.",
    )


def test_a_chinese_session_is_shown_by_the_turn_that_answers(desk: Desk) -> None:
    filler_turn = "今天天气不错，我们去公园走了走，顺便买了一些水果回来，晚上一起做饭。"
    chat = [f"{who}：{filler_turn}" for who in ("小李", "小王") * 6]
    desk.put(
        "a.md",
        "\n\n".join([*chat[:5], "小王：我把备用钥匙放在鞋柜最下面的抽屉里。", *chat[5:]] * 2),
    )
    assert (
        asked(desk, "备用钥匙放在哪里？")[0].passage == "小王：我把备用钥匙放在鞋柜最下面的抽屉里。"
    )


def test_dates_and_filters_count_for_long_notes_too(shelf: Desk) -> None:
    def best(text: str, **more: Any) -> str:
        return asked(shelf, text, **more)[0].note.path

    assert best("What was said about the canoe in June 2023?") == "two.md"
    assert best("What was said about the canoe in May 2023?") == "one.md"
    assert best("What was said about the canoe last month?", today=date(2023, 6, 20)) == "one.md"


def test_a_short_text_is_one_passage_and_a_conversation_is_cut_at_its_turns() -> None:
    assert chunk("- [fact] one\n- [fact] two\n- three\n- four") == [(0, 40)]
    text = session("Mel: Hm.")
    assert [text[a:b].strip() for a, b in chunk(text)] == text.strip().split("\n\n")
    assert chunk("") == [(0, 0)]


def test_list_items_are_passages_and_the_heading_stays_with_the_first() -> None:
    items = [
        f"- [fact] item number {number} says something of its own #tag" for number in range(14)
    ]
    text = "## Facts\n" + "\n".join(items) + "\n"
    assert len(text) > SHORT
    pieces = [text[a:b] for a, b in chunk(text)]
    assert "".join(pieces) == text
    assert [piece.strip() for piece in pieces] == [f"## Facts\n{items[0]}", *items[1:]]


def test_chunks_read_from_the_index_are_those_the_text_is_cut_into(shelf: Desk) -> None:
    shelf.put("list.md", "## Facts\n" + "- an item of the list, one of many\n" * 40)
    shelf.put("中文.md", "记忆是笔记。" * 200)
    rows = shelf.db.execute("select text, chunks, speakers from text").fetchall()
    assert sum(cuts is not None for _, cuts, _ in rows) == 5
    for text, cuts, speakers in rows:
        if cuts is not None:
            assert spans_from_index(cuts, speakers) == chunk_spans(text)
        else:
            assert len(text) <= SHORT


def test_a_search_finds_the_same_without_the_chunks_of_the_index(shelf: Desk) -> None:
    question = "Which red canoe did Mel buy at the market?"
    with_chunks = asked(shelf, question, explain=True)
    shelf.db.execute("update text set chunks = null, speakers = null")
    assert asked(shelf, question, explain=True) == with_chunks


def test_notes_that_score_alike_have_one_order_on_all_pages(desk: Desk) -> None:
    desk.put_all({f"{number:02}.md": "The canoe is red and new." for number in range(60)})
    whole = search.search(desk.db, Query("Is the canoe red and new?"), viewer=None, limit=60)
    paths = [hit.note.path for hit in whole]
    assert paths == sorted(paths, reverse=True)
    for offset in (0, 10, 20, 50):
        page = search.search(
            desk.db, Query("Is the canoe red and new?"), viewer=None, limit=10, offset=offset
        )
        hit_paths = [hit.note.path for hit in page]
        assert hit_paths == paths[offset : offset + 10]


def test_whether_a_long_turn_says_what_holds_is_read_of_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []

    def reads_length(text: str) -> bool:
        lengths.append(len(text))
        return False

    monkeypatch.setattr(features, "says_what_holds", reads_length)

    features._is_standing("Ada: " + "so" * 500_000)

    assert lengths == [2 * MAX_CHARACTERS - len("Ada: ") + 1]


@given(st.lists(st.sampled_from(["I", "me", "Mine", "ours", "us", "user", "_me", "2me", "x"])))
def test_first_person_in_ascii_is_counted_as_in_other_text(words: list[str]) -> None:
    text = " ".join(words)
    # A letter that is no pronoun, and makes the text one beyond ASCII.
    assert first_person(text) == first_person(f"{text} é")
