"""What a change did to a note, for people: no change goes unsaid."""

from __future__ import annotations

from memoranda.documents.differences import between
from memoranda.text.word_diff import NEW, OLD


def test_a_word_changed_late_in_a_very_long_line_is_shown() -> None:
    before = "many words " * 500 + "and tea"
    after = "many words " * 500 + "and coffee"
    (line,) = between(before, after).lines
    assert [(part.kind, part.text) for part in line if part.kind in (OLD, NEW)] == [
        (OLD, "tea"),
        (NEW, "coffee"),
    ]
    assert sum(len(part.text) for part in line) < 200
    assert between(before, f"{before} and more").lines
