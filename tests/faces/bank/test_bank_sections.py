"""How an update changes a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.faces.bank.placement import append_block, insert_in_section
from contract.tables import tables

TABLES = tables("bank_sections")

LINES = st.lists(
    st.sampled_from(["", "# A", "## B ##", "### c", "text", "- item  ", "```", "~~~", "<!--", "-->", "  "]), max_size=12
)
TEXTS = st.builds(
    lambda lines, newline, ends: newline.join(lines) + newline * ends,
    LINES,
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 3),
)


def said(text: str) -> list[str]:
    """The lines that say something."""
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("old", "block", "new"),
    TABLES["appended"],
)
def test_a_block_is_appended_after_one_empty_line(old: str, block: str, new: str) -> None:
    assert append_block(old, block) == new


@pytest.mark.parametrize(
    ("old", "position", "new"),
    TABLES["inserted"],
)
def test_a_text_is_put_at_the_end_of_its_section(old: str, position: str, new: str) -> None:
    assert insert_in_section(old, position, "x") == new


def test_blank_lines_around_an_inserted_text_are_left_out_and_its_indent_stays() -> None:
    assert insert_in_section("# A\n\n# B\n", "A", " \n\n    code  \n\n \n") == "# A\n\n    code  \n\n# B\n"


@given(TEXTS, TEXTS)
def test_an_append_keeps_every_line_and_ends_in_one_line_break(old: str, fresh: str) -> None:
    new = append_block(old, f"new\n{fresh}")
    assert said(new) == [*said(old), "new", *said(fresh)]
    assert new.endswith("\n")
    assert append_block(new, "end").startswith(new)


@given(TEXTS, st.sampled_from(["A", "B", "## b", "c", "D"]))
def test_inserts_keep_every_line_and_their_order(old: str, position: str) -> None:
    new = insert_in_section(old, position, "first")
    new = insert_in_section(new, position, "second")
    lines = said(new)
    at = lines.index("first")
    rest = [line for line in lines if line not in ("first", "second")]
    added = [line for line in rest if line not in said(old)]
    assert len(set(added)) <= 1  # an open fence swallows a heading added after it
    assert [line for line in rest if line not in added] == said(old)
    if "```" not in old and "~~~" not in old and "<!--" not in old:
        assert lines[at + 1] == "second"
