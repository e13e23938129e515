"""What a change did to a note, for people: no change goes unsaid."""

from __future__ import annotations

from typing import Any

from memoranda.documents import differences
from memoranda.documents.differences import between, joined_moves
from memoranda.engine.history.verbs import Revision
from memoranda.text.word_diff import NEW, OLD, SAME


def test_a_word_changed_late_in_a_very_long_line_is_shown() -> None:
    before = "many words " * 500 + "and tea"
    after = "many words " * 500 + "and coffee"
    (line,) = between(before, after).lines

    assert [(part.kind, part.text) for part in line if part.kind in (OLD, NEW)] == [
        (OLD, "tea"),
        (NEW, "coffee"),
    ]
    assert sum(len(part.text) for part in line) < 2200
    lines = between(before, f"{before} and more").lines
    assert lines


def test_two_removed_notes_with_one_id_are_two_removals() -> None:
    nothing: Any = None
    text = "---\nid: 5a1f\n---\none\n"
    removed = [Revision(nothing, nothing, text, None) for _ in range(2)]
    assert joined_moves(removed) == removed
    (moved, remaining) = joined_moves([*removed, Revision(nothing, nothing, None, text)])
    assert {(revision.before, revision.after) for revision in (moved, remaining)} == {
        (text, None),
        (text, text),
    }


def test_change_far_into_a_long_line_is_shown() -> None:
    begun = "word " * 1000
    (line,) = differences.between(f"{begun}old end", f"{begun}new end").lines

    assert [(part.kind, part.text) for part in line[1:]] == [
        (OLD, "old"),
        (NEW, "new"),
        (SAME, " end"),
    ]
    assert differences.GAP in line[0].text
    assert len(line[0].text) < 2100


def test_header_that_cannot_be_read_is_compared_as_text() -> None:
    difference = differences.between("---\nplan: [a\n---\nText\n", "---\nplan: [b\n---\nText\n")
    texts = []
    for line in difference.lines:
        texts += [part.text for part in line if part.kind == NEW]
    assert texts == ["b"]
    assert not difference.properties


def test_header_of_comments_alone_counts_as_empty() -> None:
    assert not differences.between("---\n# a\n---\nText\n", "---\n# b\n---\nText\n")


def test_change_beyond_the_compared_characters_is_shown() -> None:
    begun = "word " * 10_000
    (line,) = between(f"{begun}old end", f"{begun}new end").lines

    gap, *parts = line
    assert gap.text.startswith(differences.GAP)
    kinds_and_texts = [(part.kind, part.text) for part in parts]
    assert kinds_and_texts == [(OLD, "old"), (NEW, "new"), (SAME, " end")]
