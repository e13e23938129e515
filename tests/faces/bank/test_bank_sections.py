"""How an update changes a text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.memory_bank import Banks
from contract.tables import tables
from memoranda.engine import open_session

TABLES = tables("bank_sections")

LINES = st.lists(
    st.sampled_from(
        ["", "# A", "## B ##", "### c", "text", "- item  ", "```", "~~~", "<!--", "-->", "  "]
    ),
    max_size=12,
)
TEXTS = st.builds(
    lambda lines, newline, ends: newline.join(lines) + newline * ends,
    LINES,
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 3),
)


@pytest.fixture(scope="module")
def banks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Banks]:
    """The banks whose file each test writes again."""
    with open_session(tmp_path_factory.mktemp("sections") / "home", watch=False) as memory:
        yield Banks(memory)


def said(text: str) -> list[str]:
    """The lines that say something."""
    return [line for line in text.splitlines() if line.strip()]


def changed(banks: Banks, old: str, text: str, **more: str) -> str:
    """What a file that held `old` holds after an update with `text`."""
    file = banks.file("projects/p/doc/x.md")
    if not file.exists():
        banks.write("first", "doc/x.md")
    file.write_bytes(old.encode())
    banks.write(text, "doc/x.md", **more)
    return file.read_bytes().decode()


@pytest.mark.parametrize(("old", "block", "new"), TABLES["appended"])
def test_a_block_is_appended_after_one_empty_line(
    banks: Banks, old: str, block: str, new: str
) -> None:
    assert changed(banks, old, block) == new


@pytest.mark.parametrize(("old", "position", "new"), TABLES["inserted"])
def test_a_text_is_put_at_the_end_of_its_section(
    banks: Banks, old: str, position: str, new: str
) -> None:
    assert changed(banks, old, "x", operation="insert", position=position) == new


def test_blank_lines_around_an_inserted_text_are_left_out_and_its_indent_stays(
    banks: Banks,
) -> None:
    new = changed(banks, "# A\n\n# B\n", " \n\n    code  \n\n \n", operation="insert", position="A")
    assert new == "# A\n\n    code  \n\n# B\n"


@pytest.mark.slow
@given(old=TEXTS, position=st.sampled_from(["A", "B", "## b", "c", "D"]), fresh=TEXTS)
def test_updates_keep_every_line_and_their_order(
    banks: Banks, old: str, position: str, fresh: str
) -> None:
    new = changed(banks, old, f"new\n{fresh}")
    assert said(new) == [*said(old), "new", *said(fresh)]
    assert new.endswith("\n")
    new = changed(banks, old, "first", operation="insert", position=position)
    lines = said(changed(banks, new, "second", operation="insert", position=position))
    at = lines.index("first")
    rest = [line for line in lines if line not in ("first", "second")]
    added = [line for line in rest if line not in said(old)]
    # An open fence swallows a heading added after it
    assert len(set(added)) <= 1
    assert [line for line in rest if line not in added] == said(old)
    if "```" not in old and "~~~" not in old and "<!--" not in old:
        assert lines[at + 1] == "second"
