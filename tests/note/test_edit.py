"""Edits on LF, CRLF, BOM and files without a final newline (contract 000a, 6; contract 000b, 7
edit_note).
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.errors import CountMismatch, InvalidInput, SectionError
from memoranda.note.edit import (
    AddItem,
    Append,
    Edited,
    FindReplace,
    InsertAfterSection,
    InsertBeforeSection,
    Prepend,
    ReplaceSection,
    Rewrite,
    SetKeys,
    StrReplace,
)
from memoranda.note.frontmatter import REMOVE

NOTE = """---
title: x # own
---
# Doc

intro

## One

old text

### Sub

sub text

```
## One
```

## Two
last"""


@pytest.mark.promise("000b-12.9")
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("edit", "old", "new", "line"),
    [
        (Append("more\nlines\n"), "last", "last\nmore\nlines\n", 22),
        (Prepend("first"), "# Doc", "first\n# Doc", 4),
        (FindReplace("text\n\n###", "t\n###"), "text\n\n###", "t\n###", 10),
        (
            ReplaceSection("## Two", "## Two\nnew\nlines\n"),
            "## Two\nlast",
            "## Two\nnew\nlines",
            21,
        ),
        (ReplaceSection("Two", ""), "## Two\nlast", "## Two\n", 21),
        (InsertBeforeSection("Two", "before"), "## Two", "before\n## Two", 20),
        (InsertAfterSection("One", "after\n"), "## One\n\nold", "## One\nafter\n\nold", 9),
        (AddItem("Two", "- item"), "last", "last\n- item", 22),
        (SetKeys({"title": "z"}), "title: x", "title: z", 2),
    ],
)
def test_an_edit_changes_nothing_but_what_it_is_about_and_tells_where(
    edit: Any, old: str, new: str, line: int, newline: str
) -> None:
    found = edit.apply(NOTE.replace("\n", newline))
    assert found.text == NOTE.replace(old, new, 1).replace("\n", newline)
    assert found.line == line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## A\n## B\n", "## A\nnew\n## B\n"),
        ("## A\n\n## B\n", "## A\nnew\n\n## B\n"),
        ("## A\nx\n## B", "## A\nnew\n## B"),
        ("## A", "## A\nnew"),
        ("## A\n", "## A\nnew\n"),
        ("## A\nx\n\n\n", "## A\nnew\n\n\n"),
        ("## A\nx\n# B\n", "## A\nnew\n# B\n"),
        ("## A ##\n\nx\n### C\ny\n", "## A ##\n\nnew\n"),
        ("## A\n\n\nx\n", "## A\n\n\nnew\n"),
    ],
)
def test_a_section_is_replaced_where_it_stands(before: str, after: str) -> None:
    assert ReplaceSection("A", "new\n").apply(before).text == after
    assert ReplaceSection("## A", "## A\nnew").apply(before).text == after


def test_a_repeated_heading_of_a_missing_section_is_written_once() -> None:
    assert ReplaceSection("New", "## New\ntext").apply("x\n").text == "x\n\n## New\n\ntext\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "x\n"),
        ("a", "x\na"),
        ("\ufeffa", "\ufeffx\na"),
        ("---\na: b\n---\nc", "---\na: b\n---\nx\nc"),
        ("---\na: b\n---", "---\na: b\n---\nx\n"),
        ("---\nbad: [\n---\nc", "---\nbad: [\n---\nx\nc"),
    ],
)
def test_text_is_prepended_after_the_frontmatter(before: str, after: str) -> None:
    assert Prepend("x").apply(before).text == after


def test_an_item_goes_after_the_last_one_of_its_section() -> None:
    assert (
        AddItem("Relations", "- a [[B]]").apply("# T\n").text
        == "# T\n\n## Relations\n\n- a [[B]]\n"
    )
    text = "## Relations\n\n- x [[Y]]\n\n## More\n"
    assert (
        AddItem("Relations", "- a [[B]]").apply(text).text
        == "## Relations\n\n- x [[Y]]\n- a [[B]]\n\n## More\n"
    )
    assert (
        AddItem("Relations", "- a [[B]]").apply("## Relations\n").text
        == "## Relations\n\n- a [[B]]\n"
    )


COUNTED = "one two\none one\n"


@pytest.mark.promise("000b-12.9")
@pytest.mark.parametrize(("expected", "found"), [(1, 3), (2, 3), (4, 3), (0, 3)])
def test_the_number_of_occurrences_must_be_the_expected_one(expected: int, found: int) -> None:
    with pytest.raises(CountMismatch) as caught:
        FindReplace("one", "1", expected).apply(COUNTED)
    assert (caught.value.found, caught.value.expected, caught.value.lines) == (
        found,
        expected,
        [1, 2, 2],
    )
    assert FindReplace("one", "1", 3).apply(COUNTED) == Edited("1 two\n1 1\n", 1, 3)


def test_nothing_found_is_never_a_change() -> None:
    with pytest.raises(CountMismatch) as caught:
        FindReplace("zzz", "1", 0).apply(COUNTED)
    assert caught.value.found == 0


def test_overlapping_occurrences_count_once_for_find_replace() -> None:
    assert FindReplace("aa", "b", 1).apply("aaa").text == "ba"


def test_empty_text_to_find_is_refused() -> None:
    with pytest.raises(InvalidInput, match="find_text"):
        FindReplace("", "x").apply("abc")
    with pytest.raises(InvalidInput, match=r"^No replacement was performed"):
        StrReplace("", "x").apply("abc")


def test_line_breaks_are_literal_in_a_file_of_both_kinds() -> None:
    with pytest.raises(CountMismatch):
        FindReplace("a\nb", "x").apply("a\r\nb\n")
    assert FindReplace("a\r\nb", "x\ny").apply("a\r\nb\n").text == "x\ny\n"


@pytest.mark.parametrize(
    ("find", "replace"),
    [
        ("x # own", "a: b"),
        ("---\n# Doc", "# Doc"),
        ("---\ntitle", "title"),
        ("title: x # own", "["),
    ],
)
def test_a_replacement_that_breaks_the_frontmatter_is_refused(find: str, replace: str) -> None:
    with pytest.raises(InvalidInput, match="frontmatter"):
        FindReplace(find, replace).apply(NOTE)


def test_a_header_that_was_broken_before_may_be_mended() -> None:
    assert FindReplace("a: b: c", "a: b").apply("---\na: b: c\n---\n").text == "---\na: b\n---\n"
    assert FindReplace("x", "y").apply("---\na: b: c\n---\nx").text == "---\na: b: c\n---\ny"


@pytest.mark.parametrize(
    ("text", "old"),
    [("a" * 500_000, "a" * 200_000), ("a" * 500_000, "a"), ("ab" * 250_000, "ab" * 9)],
)
def test_many_occurrences_are_listed_in_bounded_time(text: str, old: str) -> None:
    started = time.process_time()
    with pytest.raises(CountMismatch):
        StrReplace(old, "").apply(text)
    assert time.process_time() - started < 5


def test_a_rewrite_tells_the_first_line_that_differs() -> None:
    assert Rewrite("a\nc\n").apply("a\nb\n") == Edited("a\nc\n", 2)
    assert Rewrite("a\n").apply("a\n").line == 1
    assert Rewrite("a\nb\nc").apply("a\nb").line == 3


def test_keys_are_removed_and_a_broken_header_is_left_alone() -> None:
    assert SetKeys({"title": REMOVE, "x": 1}).apply(NOTE).text == NOTE.replace(
        "title: x # own", "x: 1"
    )
    with pytest.raises(ValueError, match=r".+"):
        SetKeys({"x": 1}).apply("---\na: b: c\n---\n")


PARTS = st.lists(
    st.sampled_from(
        ["# A", "## B", "### C", "text", "", "- item", "```", "~~~", "> # A", "    # A"]
    ),
    max_size=12,
)


@given(PARTS, st.sampled_from(["A", "## B", "C"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_bytes_outside_the_section_stay(
    parts: list[str], section: str, newline: str, ends: bool
) -> None:
    text = newline.join(parts) + (newline if ends and parts else "")
    newline = newline if newline in text else "\n"
    for edit in (
        ReplaceSection(section, "NEW"),
        InsertBeforeSection(section, "NEW"),
        InsertAfterSection(section, "NEW"),
        AddItem(section, "NEW"),
    ):
        try:
            found = edit.apply(text)
        except SectionError:
            continue
        before, _, after = found.text.partition("NEW")
        if found.section_added:
            assert found.text.startswith(text)
        else:
            assert text.startswith(before.rstrip("\r\n"))
            assert text.endswith(after.removeprefix(newline))
        if not found.section_added and not isinstance(edit, ReplaceSection):
            assert len(text) + 3 <= len(found.text) <= len(text) + 3 + 2 * len(newline)
        assert found.text.split("\n")[found.line - 1].rstrip("\r") in (
            "NEW",
            "",
            section,
            f"## {section}",
        )
