"""Headings are found section by section, and are those that a parse of the whole text finds."""

from __future__ import annotations

import random

from memoranda.note.headings import (
    _block_parser,
    _parsed_headings,
    headings_named,
    shown_headings,
    shown_title,
)

LINES = [
    *("# a", "## b c #", "#", "#x", "  # in", "    # code", "####### seven", "#\ta", "\f# x"),
    *(
        "text",
        "",
        "",
        "- item",
        "  - sub",
        "  # in list",
        "- # in item",
        "> quote",
        "> # q",
        "1. one",
    ),
    *("===", "---", "--", "- ", "***", "   # h", "\t# tab", "# x\\", "a\x00b", "# \x00"),
    *("```", "~~~", "```py", "  ```", "- ```", "<div>", "</div>", "<h2>T</h2>", " <p>", "- <div>"),
    *("<!--", "-->", "<script>", "</script>", "<?php", "?>", '[a]: /u "t', "| a |"),
]
BREAKS = ["\n", "\n", "\r\n", "\r"]


def bodies(number: int) -> list[str]:
    """Texts of lines that are headings, or keep others from being headings."""
    chance = random.Random(7)
    texts = []
    for _ in range(number):
        lines = chance.choices(LINES, k=chance.randint(1, 30))
        line_break = chance.choice(BREAKS)
        texts.append(line_break.join(lines) + chance.choice(["", line_break]))
    return texts


def test_headings_are_those_of_the_whole_text() -> None:
    wrong = []
    number_of_headings = 0
    for body in bodies(1500):
        text = f"\n{body}"
        whole = _parsed_headings(_block_parser().parse(text), 0)
        right = [(heading.level, heading.raw, heading.start + 1, heading.end) for heading in whole]
        headings = [
            (heading.level, heading.raw, heading.line, heading.last_line)
            for heading in shown_headings(text)
        ]
        number_of_headings += len(headings)
        if headings != right:
            wrong.append((body, headings, right))
    assert wrong == []
    assert number_of_headings > 1500


def test_a_fence_hides_the_headings_up_to_its_end() -> None:
    text = "# a\n```\n# b\n# c\n\n# d\n```\n# e\n"
    titles = [heading.title for heading in shown_headings(text)]
    assert titles == ["a", "e"]


def test_a_fence_without_an_end_hides_all_headings_behind_it() -> None:
    text = "# a\n~~~\n" + "# b\n- c\n" * 100
    titles = [heading.title for heading in shown_headings(text)]
    assert titles == ["a"]


def test_a_fence_in_a_list_ends_with_the_list() -> None:
    text = "- ```\n  code\n# a\ntext\n"
    titles = [heading.title for heading in shown_headings(text)]
    assert titles == ["a"]


def test_html_goes_on_to_a_blank_line() -> None:
    text = "<div>\n# a\n\n# b\n"
    titles = [heading.title for heading in shown_headings(text)]
    assert titles == ["b"]


def test_a_title_without_markup_is_shown_as_it_is_written() -> None:
    titles = [shown_title(raw) for raw in ("a  b. c", "1) x - y", "记忆 #2", "a\u00a0b", "")]
    assert titles == ["a b. c", "1) x - y", "记忆 #2", "a b", ""]


def lines_named(text: str, section: str) -> list[int]:
    return [heading.line for heading in headings_named(shown_headings(text), section)]


def test_a_path_leads_to_the_headings_in_the_sections_of_its_steps() -> None:
    text = "# a\n## b\n### c\n# b\n### c\n## c\n# a\n#### c\n"
    assert lines_named(text, "a > c") == [3, 8]
    assert lines_named(text, "b > c") == [3, 5, 6]
    assert lines_named(text, "a > b > c") == [3]
    assert lines_named(text, "## b > c") == [6]
    assert lines_named(text, "c > a") == []


def test_a_path_among_very_many_like_headings_is_looked_for_in_one_pass() -> None:
    # With a look at all headings above for each of them, this would take minutes
    text = "# a\n" * 60_000
    assert lines_named(text, "b > a") == []
    assert len(lines_named("# b\n" + "## a\n" * 60_000, "b > a")) == 60_000
