"""Whether an edit changed what links may lead to, looked at where the texts differ only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoranda.note.anchors import changed_anchors

LINES = st.lists(st.sampled_from(["", "a", "# a", "  # b", "a ^id", "^", "long line"]), max_size=6)


def marks(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.lstrip().startswith("#") or "^" in line]


@given(LINES, LINES, LINES, LINES)
def test_the_answer_is_that_of_all_lines(
    begin: list[str], old: list[str], new: list[str], end: list[str]
) -> None:
    before = "\n".join([*begin, *old, *end])
    after = "\n".join([*begin, *new, *end])
    assert changed_anchors(before, after) == (marks(before) != marks(after))


@given(st.text("a# ^\n", max_size=12), st.text("a# ^\n", max_size=12))
def test_texts_that_share_little_are_compared_as_well(before: str, after: str) -> None:
    assert changed_anchors(before, after) == (marks(before) != marks(after))
