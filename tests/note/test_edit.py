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
    AppendToSection,
    Edited,
    FindReplace,
    InsertAfterSection,
    InsertBeforeSection,
    InsertLine,
    Prepend,
    ReplaceSection,
    Rewrite,
    SetKeys,
    StrReplace,
    occurrences,
)
from memoranda.note.frontmatter import REMOVE
from memoranda.note.headings import shown_headings

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
    applied = edit.apply(NOTE.replace("\n", newline))
    assert applied.text == NOTE.replace(old, new, 1).replace("\n", newline)
    assert applied.line == line


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


SHOWN_HEADINGS = [
    # (the heading's lines as written, the section as asked for)
    ("Plans\n=====", "Plans"),
    ("Plans\n-----", "## Plans"),
    ("Plans of\nthis year\n---", "Plans of this year"),
    ("## **Plans**", "Plans"),
    ("## __Plans__ and *more*", "Plans and more"),
    ("## [Plans](https://example.org/a_b)", "Plans"),
    ("## [Plans][ref]\n\n[ref]: https://example.org", None),
    ("## [[Plans]]", "Plans"),
    ("## [[2026/Plans|Plans]] of May", "Plans of May"),
    ("## Plans ^plan-1", "Plans"),
    ("## Plans {#plans .wide}", "Plans"),
    ("## Plans {#plans} ##", "Plans"),
    ("## <b>Plans</b>", "Plans"),
    ("<h2>Plans</h2>", "Plans"),
    ('<h2 id="plans">Pl<i>an</i>s</h2>', "Plans"),
    ("## `make` and ~~old~~ ==Plans==", "make and old Plans"),
    ("## Plans \\#1 &amp; more", "Plans #1 & more"),
    ("##   Plans    of   May   ##", "Plans of May"),
    ("## ![a plan](plan.png) Plans", "a plan Plans"),
    ("## 计划 **A**", "计划 A"),
    ("### Plans", "Work > Plans"),
    ("### **Plans**", "Doc > Work > Plans"),
    ("## A > B", "A > B"),
    ("## Plans", "## **Plans**"),
    ("## Re: Plans", "Re: Plans"),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("heading", "section"), SHOWN_HEADINGS)
def test_a_section_is_found_as_its_heading_is_shown(
    heading: str, section: str | None, newline: str
) -> None:
    before = f"---\ntitle: t\n---\n# Doc\n\n## Work\n\ntext\n\n{heading}\n\n"
    text = (before + "old\n").replace("\n", newline)
    if section is None:
        with pytest.raises(SectionError):
            ReplaceSection("no such heading", "new\n").apply(text)
        return
    expected = (before + "new\n").replace("\n", newline)
    edited = ReplaceSection(section, "new\n").apply(text)
    assert edited.text == expected


@pytest.mark.parametrize(
    "text",
    [
        "```\n## Plans\n```\n",
        "    ## Plans\n",
        "> ## Plans\n",
        "<!--\n## Plans\n-->\n",
        "%%\n## Plans\n%%\n",
        "text **Plans**\n",
        "## Plans of May\n",
        "#Plans\n",
        "",
    ],
)
def test_a_text_that_is_no_heading_is_not_taken_for_one(text: str) -> None:
    with pytest.raises(SectionError):
        ReplaceSection("Plans", "new").apply(text)


def test_the_heading_as_written_wins_over_the_heading_as_shown() -> None:
    text = "## **A**\n\nbold\n\n## A\n\nplain\n"
    assert ReplaceSection("A", "new").apply(text).text == text.replace("plain", "new")
    assert ReplaceSection("**A**", "new").apply(text).text == text.replace("bold", "new")


@pytest.mark.parametrize("section", ["## Caf\u00e9", "Cafe\u0301", "Plans > Caf\u00e9"])
def test_a_section_is_found_whether_its_letters_are_composed_or_not(section: str) -> None:
    for heading in ("Caf\u00e9", "Cafe\u0301"):
        text = f"# Plans\n\n## {heading}\nb\n"
        after = f"# Plans\n\n## {heading}\nnew\nb\n"
        assert InsertAfterSection(section, "new").apply(text).text == after


def test_two_headings_shown_alike_are_refused_with_their_lines() -> None:
    with pytest.raises(SectionError) as caught:
        ReplaceSection("A", "new").apply("## **A**\n\nx\n\n## [[A]]\n")
    assert caught.value.lines == [1, 5]


def test_a_path_of_headings_tells_two_of_one_name_apart() -> None:
    text = "# One\n## Plan\nx\n# Two\n## Plan\ny\n"
    assert ReplaceSection("Two > Plan", "new").apply(text).text == text.replace("y", "new")
    with pytest.raises(SectionError):
        ReplaceSection("Three > Plan", "new").apply(text)


def test_a_repeated_setext_heading_of_the_content_is_dropped() -> None:
    text = "Plans\n---\nold\n"
    assert ReplaceSection("Plans", "Plans\n---\nnew\n").apply(text).text == "Plans\n---\nnew\n"


def test_a_repeated_heading_of_a_long_content_is_dropped() -> None:
    lines = "- [fact] amber\n" * 1_000
    text = ReplaceSection("Work", f"## Work\n\n{lines}").apply("## Work\n\nold\n").text
    assert text == f"## Work\n\n{lines}"


def test_lines_go_before_and_after_both_lines_of_a_setext_heading() -> None:
    text = "a\n\nPlans\n---\nb\n"
    assert InsertAfterSection("Plans", "new").apply(text).text == "a\n\nPlans\n---\nnew\nb\n"
    assert InsertBeforeSection("Plans", "new").apply(text).text == "a\n\nnew\n\nPlans\n---\nb\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        # The new text is directly above an underlined heading.
        (InsertBeforeSection("Plans", "new"), "Plans\n---\n", "new\n\nPlans\n---\n"),
        (InsertBeforeSection("Plans", "new\n"), "Plans\n===\n", "new\n\nPlans\n===\n"),
        (InsertBeforeSection("Plans", "- tea"), "Plans\n---\n", "- tea\n\nPlans\n---\n"),
        (InsertBeforeSection("Plans", "new\n\n"), "Plans\n---\n", "new\n\nPlans\n---\n"),
        (InsertBeforeSection("Plans", "## B"), "Plans\n---\n", "## B\nPlans\n---\n"),
        (InsertBeforeSection("Plans", "new"), "## Plans\n---\n", "new\n## Plans\n---\n"),
        (InsertAfterSection("A", "new"), "# A\nPlans\n---\n", "# A\nnew\n\nPlans\n---\n"),
        (AppendToSection("A", "new"), "## A\nPlans\n---\n", "## A\nnew\n\nPlans\n---\n"),
        (ReplaceSection("A", "new"), "## A\nPlans\n---\n", "## A\nnew\n\nPlans\n---\n"),
        (ReplaceSection("A", "new"), "## A\n\nx\n\nB\n--\n", "## A\n\nnew\n\nB\n--\n"),
        (AddItem("A", "- tea"), "## A\nPlans\n---\n", "## A\n\n- tea\n\nPlans\n---\n"),
        (Prepend("new"), "Plans\n---\n", "new\n\nPlans\n---\n"),
        (Prepend("new"), "---\na: b\n---\nPlans\n=\n", "---\na: b\n---\nnew\n\nPlans\n=\n"),
        # The line below it is a rule.
        (InsertAfterSection("A", "new"), "## A\n---\nx\n", "## A\nnew\n\n---\nx\n"),
        (InsertAfterSection("A", "new"), "## A\n***\nx\n", "## A\nnew\n***\nx\n"),
        (Prepend("new"), "---\na: b\n---\n---\nx\n", "---\na: b\n---\nnew\n\n---\nx\n"),
        # The new text begins with a rule or with an underlined heading.
        (Append("---\nnew"), "# A\nlast", "# A\nlast\n\n---\nnew"),
        (Append("---\nnew"), "# A\nlast\n", "# A\nlast\n\n---\nnew\n"),
        (Append("==="), "last\n", "last\n\n===\n"),
        (Append("Plans\n---"), "last\n", "last\n\nPlans\n---\n"),
        (Append("---\nnew"), "- item\n", "- item\n---\nnew\n"),
        (Append("---\nnew"), "```\ncode\n", "```\ncode\n---\nnew\n"),
        (AppendToSection("A", "---"), "# A\nx\n\n# B\n", "# A\nx\n\n---\n\n# B\n"),
    ],
)
def test_a_text_put_beside_an_underline_stays_a_paragraph_of_its_own(
    edit: Any, before: str, after: str, newline: str
) -> None:
    edited = edit.apply(before.replace("\n", newline))
    assert edited.text == after.replace("\n", newline)


@pytest.mark.parametrize(
    ("text", "line", "fresh", "after"),
    [
        ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"),
        ("a\r\nb\r\n", 0, "x", "x\r\na\r\nb\r\n"),
        ("a\r\nb\r\n", 2, "x\r\n", "a\r\nb\r\nx\r\n"),
        ("a\r\nb", 2, "x", "a\r\nb\r\nx\r\n"),
        ("a\nb\n", 1, "x\r\ny", "a\nx\ny\nb\n"),
        ("", 0, "x\ny", "x\ny\n"),
        ("a", 1, "x", "a\nx\n"),
        ("a\r\nb\nc\n", 1, "x", "a\r\nx\nb\nc\n"),
    ],
)
def test_an_inserted_line_gets_the_breaks_of_the_file(
    text: str, line: int, fresh: str, after: str
) -> None:
    assert InsertLine(line, fresh).apply(text).text == after


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("a\r\nb\r\n", "a\nb", "x\ny", "x\r\ny\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\ny", "x\r\ny\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "x\ny", "x\r\ny\r\n"),
        ("one line", "one", "1\n2", "1\n2 line"),
    ],
)
def test_a_replaced_text_matches_any_breaks_and_keeps_those_of_the_file(
    text: str, old: str, new: str, after: str
) -> None:
    assert StrReplace(old, new).apply(text).text == after
    assert FindReplace(old, new).apply(text).text == after


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
@pytest.mark.parametrize(("expected", "actual"), [(1, 3), (2, 3), (4, 3), (0, 3)])
def test_the_number_of_occurrences_must_be_the_expected_one(expected: int, actual: int) -> None:
    with pytest.raises(CountMismatch) as caught:
        FindReplace("one", "1", expected).apply(COUNTED)
    assert (caught.value.found, caught.value.expected, caught.value.lines) == (
        actual,
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


def test_an_empty_text_occurs_nowhere() -> None:
    assert occurrences("abc", "") == []
    assert occurrences("", "") == []


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
            applied = edit.apply(text)
        except SectionError:
            continue
        before, _, after = applied.text.partition("NEW")
        if isinstance(edit, AddItem) and applied.text.startswith(text):
            continue
        assert text.startswith(before.rstrip("\r\n"))
        assert text.endswith(after.removeprefix(newline))
        if not isinstance(edit, ReplaceSection):
            assert len(text) + 3 <= len(applied.text) <= len(text) + 3 + 2 * len(newline)
        assert applied.text.split("\n")[applied.line - 1].rstrip("\r") in (
            "NEW",
            "",
            section,
            f"## {section}",
        )


# Each part ends what is open before it, so that the headings of a text are those of its parts.
UNDERLINED_PARTS = (
    "Plans\n---",
    "Costs of\nMay\n===",
    "# A",
    "## B ##",
    "text\n",
    "```\ncode\n```",
)


@given(
    st.lists(st.sampled_from(UNDERLINED_PARTS), min_size=1, max_size=6),
    st.lists(st.sampled_from([*UNDERLINED_PARTS, "---\nnew", "===", "new", "- new"]), min_size=1),
    st.integers(0, 5),
    st.sampled_from(["\n", "\r\n"]),
)
def test_inserted_text_takes_no_heading_from_a_note(
    parts: list[str], new_parts: list[str], number: int, newline: str
) -> None:
    text = "\n".join(parts).replace("\n", newline) + newline
    headings = shown_headings(text)
    titles = [heading.title for heading in headings]
    new_text = "\n".join(new_parts)
    edits: list[Any] = [Append(new_text), Prepend(new_text)]
    if headings:
        title = titles[number % len(titles)]
        edits += [
            edit(title, new_text)
            for edit in (InsertBeforeSection, InsertAfterSection, AppendToSection)
        ]
    for edit in edits:
        try:
            edited_text = edit.apply(text).text
        except SectionError:
            # Two headings have this name.
            continue
        titles_after = iter([heading.title for heading in shown_headings(edited_text)])
        assert all(title in titles_after for title in titles)
