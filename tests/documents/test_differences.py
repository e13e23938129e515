"""Differences of two texts of a note: nothing that a person changed is left out."""

from __future__ import annotations

from memoranda.documents import differences
from memoranda.text.word_diff import NEW, OLD, SAME


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
    found = differences.between("---\nplan: [a\n---\nText\n", "---\nplan: [b\n---\nText\n")
    assert [part.text for line in found.lines for part in line if part.kind == NEW] == ["b"]
    assert not found.properties


def test_header_of_comments_alone_counts_as_empty() -> None:
    assert not differences.between("---\n# a\n---\nText\n", "---\n# b\n---\nText\n")
