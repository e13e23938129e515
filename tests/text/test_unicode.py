"""Texts that UTF-8 cannot hold, and what is made of them; text made harmless to show
(text/unicode.py).
"""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.unicode import (
    cut_bytes,
    flat,
    is_valid_unicode,
    json_escape,
    one_line,
    repair_surrogates,
    sqlite_text,
    visible,
)

HIDDEN = "\x00\x07\x1b\x7f\x85\x9b\xad\u061c\u200b\u200e\u200f\u2028\u202a\u202e\u2060\u2066\u2069\ufeff\U000e0041"


@pytest.mark.promise("issue-terminal")
@pytest.mark.parametrize("character", HIDDEN)
def test_what_acts_or_hides_becomes_an_escape(character: str) -> None:
    visible_text = visible(f"a{character}b")
    assert visible_text.isprintable()
    assert visible_text == f"a{character.encode('unicode_escape').decode()}b"


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "é 你好 مرحبا",
        "خانه\u200cها",
        "👩\u200d💻 👨\u200d👩\u200d👧",
        "❤️\u200d🔥",
        "葛\U000e0100城",
        "क\u094d\u200dष",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "a\tb\nc",
    ],
)
def test_what_languages_and_emoji_need_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("text", ["a\u200db", "pay\u200cpal", "你\u200c\u200d\u200c好", "\u200d"])
def test_joiners_elsewhere_are_shown(text: str) -> None:
    assert "\\u200" in visible(text)


def test_a_line_stays_a_line() -> None:
    assert flat("a\nb\r\nc\rd\x0be\x0cf\x85g\u2028h\u2029i\tj") == (
        r"a\nb\r\nc\rd\x0be\x0cf\x85g\u2028h\u2029i j"
    )
    assert visible("a\r\nb\rc") == "a\nb\\rc"


def test_json_is_escaped_as_json() -> None:
    text = json.dumps("\x9b2J\u202e\U000e0041", ensure_ascii=False)
    visible_text = visible(text, json_escape)
    assert visible_text.isascii()
    assert json.loads(visible_text) == "\x9b2J\u202e\U000e0041"


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    kinds = {
        unicodedata.category(character) for character in visible(text) if character not in "\n\t"
    }
    assert not kinds & {"Cc", "Zl", "Zp"}
    assert len(flat(text).splitlines()) <= 1


@given(st.text(st.characters(codec=None)))
def test_what_is_repaired_can_be_encoded_and_valid_text_stays(text: str) -> None:
    for repaired in (repair_surrogates(text), sqlite_text(text)):
        assert is_valid_unicode(repaired)
        assert repaired == text or not is_valid_unicode(text)
    assert len(cut_bytes(repair_surrogates(text), 7).encode()) <= 7


def test_pairs_of_surrogates_are_joined_and_breaks_are_blanks() -> None:
    assert repair_surrogates("a\ud83d\ude00 \ud800") == "a\U0001f600 \ufffd"
    assert sqlite_text("a\ud800") == "a?"
    assert one_line("a\r\nb\u2028c\td") == "a b c d"
