"""How notes stand among others: who said them and in what manner, and their sittings."""

from __future__ import annotations

import pytest

from commonplace.index.standing import manner, parts, sitting
from index.conftest import Desk


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Caroline: I went out.", "caroline"),
        ("**Dr. Mara Weiß**: no", "mara"),
        ("- Ana María: si", "ana"),
        ("[10:30] Björn: ja", "bjorn"),
        ("小明：你好", "小明"),
        ("http://example.org", None),
        ("It is late: go home, all of you, before the rain", None),
        ("no name here", None),
        ("", None),
    ],
)
def test_who_says_a_text_stands_in_front_of_it(text: str, said: str | None) -> None:
    assert manner(text).said == said


def test_the_source_says_what_names_nobody() -> None:
    assert manner("I went out.", "Caroline Ames").said == "caroline"
    assert manner("Mel: I went out.", "Caroline").said == "mel"
    assert manner("I went out.", "manual").said is None


def test_questions_and_the_speaker_are_counted() -> None:
    assert manner("Did you go? Where?").asks > 80
    assert manner("Did you go? I went to the sea with my dog and we swam for an hour.").asks < 25
    assert manner("I took my dog and we swam.").own == 3
    assert manner("我去了海边").own == 1
    assert manner("It was yesterday.").timed
    assert not manner("It was red.").timed


def test_a_conversation_is_cut_at_its_turns_and_another_text_at_passages() -> None:
    talk = "Mel: hello\nAda: hi there\nMel: what now?\nAda: nothing\nmuch today\n"
    assert [talk[a:b] for a, b in parts(talk)] == [
        "Mel: hello\n",
        "Ada: hi there\n",
        "Mel: what now?\n",
        "Ada: nothing\nmuch today\n",
    ]
    card = "Name: Ada\nPhone: 1\nStreet: x\nTown: y\n"
    assert [card[a:b] for a, b in parts(card)] == [card]
    assert parts("") == []


def test_a_sitting_is_a_folder_on_a_day() -> None:
    first = sitting(1, "talk/a.md", "2023-05-08")
    assert first == sitting(1, "talk/b.md", "2023-05-08")
    assert first != sitting(1, "talk/a.md", "2023-05-09")
    assert first != sitting(1, "other/a.md", "2023-05-08")
    assert first != sitting(2, "talk/a.md", "2023-05-08")


def test_a_removed_note_leaves_no_standing(desk: Desk) -> None:
    desk.put("talk/a.md", "Mel: the harbour in Leiden, 深色模式")
    desk.put("talk/a.md", "Ada: now other words")
    assert desk.db.execute("select said from standing").fetchall() == [("ada",)]
    desk.remove("talk/a.md")
    assert desk.db.execute("select count(*) from standing").fetchone() == (0,)
    desk.holds_nothing()
