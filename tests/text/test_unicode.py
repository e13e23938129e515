"""Texts that UTF-8 cannot hold, and what is made of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.unicode import cut_bytes, is_valid_unicode, one_line, repair_surrogates, sqlite_text


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
