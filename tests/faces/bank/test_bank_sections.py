"""How an update changes a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.faces.bank.placement import append_block, insert_in_section

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
    [
        ("", "a", "a\n"),
        ("", "a\r\nb\r\n\r\n", "a\r\nb\r\n"),
        ("\n\n", "a", "a\n"),
        ("x", "a", "x\n\na\n"),
        ("x\n\n\n", "\na\n", "x\n\n\na\n"),
        ("x  \n", "a", "x  \n\na\n"),
        ("x\r\ny\r\n", "a\nb", "x\r\ny\r\n\r\na\r\nb\r\n"),
        ("x\r\ny\n", "a", "x\r\ny\n\na\n"),
        ("\ufeffx\n", "a", "\ufeffx\n\na\n"),
    ],
)
def test_a_block_is_appended_after_one_empty_line(old: str, block: str, new: str) -> None:
    assert append_block(old, block) == new


@pytest.mark.parametrize(
    ("old", "position", "new"),
    [
        ("# A", "A", "# A\n\nx\n"),
        ("# A\n", "A", "# A\n\nx\n"),
        ("# A\n\n\n\n# B\n", "A", "# A\n\nx\n\n# B\n"),
        ("# A\ntext  \n \n\t\n# B\n", "A", "# A\ntext  \n\nx\n\n# B\n"),
        ("# B\n# A\nt", "a", "# B\n# A\nt\n\nx\n"),
        ("# a\n\n# A\n", "A", "# a\n\n# A\n\nx\n"),
        ("# A b\n\n# A\n", "A", "# A b\n\n# A\n\nx\n"),
        ("    # A\n\n# A ###\n", "A", "    # A\n\n# A ###\n\nx\n"),
        ("#A\n", "A", "#A\n\n## A\n\nx\n"),
        ("a\n<!-- # A\n# A -->\n", "A", "a\n<!-- # A\n# A -->\n\n## A\n\nx\n"),
        ("---\ntitle: A\n---\n# A\n", "A", "---\ntitle: A\n---\n# A\n\nx\n"),
        ("", "A", "## A\n\nx\n"),
        ("t\r\nu\r\n", " New\n one ", "t\r\nu\r\n\r\n## New one\r\n\r\nx\r\n"),
        ("t\n", "### New ###", "t\n\n### New\n\nx\n"),
        ("t\n", "####### A", "t\n\n## ####### A\n\nx\n"),
        ("t\n", "#A", "t\n\n## #A\n\nx\n"),
        ("t\n", "A #", "t\n\n## A #\n\nx\n"),
        ("# 词汇\n甲\n\n# 乙\n", "词汇", "# 词汇\n甲\n\nx\n\n# 乙\n"),
    ],
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
