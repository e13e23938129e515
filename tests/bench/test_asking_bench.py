"""The bench of asking at scale: what it loads, what it asks, what it prints. No test looks at a
time.
"""

from __future__ import annotations

import json

import haystacks
from bench import conversation_sets as sets
from crowd import NAMES, crowd


def test_turns_told_again_differ_and_are_the_same_every_time(tmp_path):
    conversations = haystacks.read([sets.locomo(tmp_path)])
    talk = crowd(conversations, 30, 8)

    assert len(talk.turns) == 30
    assert len({turn.key for turn in talk.turns}) == 30
    assert [turn.spoken for turn in talk.turns[:7]] == [
        turn.spoken for turn in conversations[0].turns
    ]
    speakers = {turn.speaker for turn in talk.turns[8:]}
    assert speakers <= set(NAMES)
    assert talk.turns[8].moment != talk.turns[0].moment
    assert talk == crowd(conversations, 30, 8)
    assert len(talk.questions) == 8
    assert len(set(talk.questions)) == 8


def test_every_kind_of_query_has_a_row_beside_plain_full_text(tmp_path):
    printed, _ = sets.run("asking.py", "--memories", "120", "--each", "4")
    assert "120 memories, made up" in printed
    assert "Loaded " in printed
    assert "By words alone: " in printed
    for kind in (
        "questions",
        "a word of 1 or 2 turns",
        "the 20 commonest",
        "two words of one turn",
        "a phrase of three words",
        "2,000 characters, a question",
    ):
        rows = [line for line in printed.splitlines() if line.startswith(kind)]
        assert ["memoranda" in rows[0], "fts5" in rows[1], len(rows)] == [True, True, 2]
        assert rows[0].endswith((" ok", " over"))


def test_vectors_that_are_no_model_s_are_called_a_stand_in(tmp_path, small_models):
    name = "universal-sentence-encoder-multilingual"
    arguments = (
        "asking.py",
        sets.locomo(tmp_path),
        "--memories",
        "60",
        "--each",
        "3",
        "--json",
        "--vectors",
    )
    printed, remarks = sets.run(*arguments, "near", model=small_models)
    figures = [json.loads(line) for line in printed.splitlines()]
    assert {figure["pipeline"] for figure in figures} == {
        "memoranda",
        f"memoranda + {name}",
        "fts5 porter, OR",
    }
    assert {(figure["pipeline"], figure["budget_ms"]) for figure in figures} == {
        ("memoranda", 3),
        ("memoranda", 12),
        (f"memoranda + {name}", 15),
        (f"memoranda + {name}", 40),
        ("fts5 porter, OR", None),
    }
    assert "Vectors are a stand-in" in remarks
    _, remarks = sets.run(*arguments, "model", model=small_models)
    assert "stand-in" not in remarks
    assert "passages a second" in remarks
