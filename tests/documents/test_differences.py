"""What a change did to a note, for people: no change goes unsaid."""

from __future__ import annotations

from typing import Any

from memoranda.documents.differences import between, joined_moves
from memoranda.engine.history import Revision
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


def test_two_removed_notes_with_one_id_are_two_removals() -> None:
    nothing: Any = None
    text = "---\nid: 5a1f\n---\none\n"
    removed = [Revision(nothing, nothing, text, None) for _ in range(2)]
    assert joined_moves(removed) == removed
    (moved, left) = joined_moves([*removed, Revision(nothing, nothing, None, text)])
    assert {(each.before, each.after) for each in (moved, left)} == {(text, None), (text, text)}
