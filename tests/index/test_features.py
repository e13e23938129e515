"""Features computed when a note is indexed: its speaker, its style and its conversation."""

from __future__ import annotations

import pytest

from commonplace.index.features import conversation_id, style_of, turns_or_passages
from index.conftest import Desk


@pytest.mark.parametrize(
    ("text", "speaker"),
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
def test_who_says_a_text_stands_in_front_of_it(text: str, speaker: str | None) -> None:
    assert style_of(text).speaker == speaker


def test_the_source_says_what_names_nobody() -> None:
    assert style_of("I went out.", "Caroline Ames").speaker == "caroline"
    assert style_of("Mel: I went out.", "Caroline").speaker == "mel"
    assert style_of("I went out.", "manual").speaker is None


def test_questions_and_the_speaker_are_counted() -> None:
    assert style_of("Did you go? Where?").question > 80
    assert style_of("Did you go? I went to the sea with my dog and we swam for an hour.").question < 25
    assert style_of("I took my dog and we swam.").first_person == 3
    assert style_of("我去了海边").first_person == 1
    assert style_of("It was yesterday.").has_time
    assert not style_of("It was red.").has_time


def test_a_conversation_is_cut_at_its_turns_and_another_text_at_passages() -> None:
    talk = "Mel: hello\nAda: hi there\nMel: what now?\nAda: nothing\nmuch today\n"
    assert [talk[a:b] for a, b in turns_or_passages(talk)] == [
        "Mel: hello\n",
        "Ada: hi there\n",
        "Mel: what now?\n",
        "Ada: nothing\nmuch today\n",
    ]
    card = "Name: Ada\nPhone: 1\nStreet: x\nTown: y\n"
    assert [card[a:b] for a, b in turns_or_passages(card)] == [card]
    assert turns_or_passages("") == []


def test_a_conversation_is_a_folder_on_a_day() -> None:
    first = conversation_id(1, "talk/a.md", "2023-05-08")
    assert first == conversation_id(1, "talk/b.md", "2023-05-08")
    assert first != conversation_id(1, "talk/a.md", "2023-05-09")
    assert first != conversation_id(1, "other/a.md", "2023-05-08")
    assert first != conversation_id(2, "talk/a.md", "2023-05-08")


def test_a_removed_note_leaves_no_features(desk: Desk) -> None:
    desk.put("talk/a.md", "Mel: the harbour in Leiden, 深色模式")
    desk.put("talk/a.md", "Ada: now other words")
    assert desk.db.execute("select speaker from feature").fetchall() == [("ada",)]
    desk.remove("talk/a.md")
    assert desk.db.execute("select count(*) from feature").fetchone() == (0,)
    desk.holds_nothing()
