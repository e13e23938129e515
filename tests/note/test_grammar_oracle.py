"""The scanner against markdown-it-py: the same items, the same code, the same links (contract 000b,
12.3).

Exceptions the contract names are left out of what is generated: inside an open list any indentation
may hold an item, a fence or text, where CommonMark sees code; HTML and `%%` comments have their own
tests. A code span is not followed from a blockquote into the lines that lazily continue it.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memoranda.note.grammar import scan

ORACLE = MarkdownIt("commonmark", {"html": False}).disable("text_join")
LINK = re.compile(r"\[\[([a-z]+)\]\]")


def expected(text: str) -> tuple[set[int], list[str], set[int]]:
    """Lines of items that begin with a category, targets of links outside code, lines of headings."""
    observations = set()
    links = []
    headings = set()
    quotes = lists = 0
    tokens = ORACLE.parse(text)
    for at, token in enumerate(tokens):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        lists += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.type == "list_item_open":
            first = tokens[at + 1]
            if first.type == "paragraph_open" and not quotes and first.map[0] == token.map[0]:
                line = tokens[at + 2].content.split("\n")[0]
                if re.match(r"\[cat\]\s+\S", line):
                    observations.add(first.map[0] + 1)
        if token.type == "heading_open" and token.markup[0] == "#" and not quotes and not lists:
            headings.add(token.map[0] + 1)
        for child in token.children or ():
            if child.type == "text":
                links += LINK.findall(child.content)
    return observations, links, headings


def found(text: str) -> tuple[set[int], list[str], set[int]]:
    observations, relations, headings = scan(text)
    return (
        {observation.line for observation in observations if observation.category == "cat"},
        sorted({relation.target for relation in relations}),
        {heading.line for heading in headings},
    )


def compare(text: str) -> None:
    observations, links, headings = expected(text)
    assert found(text) == (observations, sorted(set(links)), headings)


NAMES = ["a", "b", "c", "d", "e", "f", "g", "h"]
PIECES = st.sampled_from(
    [
        "word",
        "`",
        "``",
        "\\`",
        "`[[x]]`",
        "``[[y]] ` ``",
        "\\[[z]]",
        "\\\\",
        "[[w]]",
        "![[v]]",
        "(u)",
        "#tag",
        "1.",
        "-",
    ]
)


@st.composite
def lines_of_text(draw: st.DrawFn) -> str:
    start = draw(
        st.sampled_from(
            ["", "[cat] ", "[cat] x ", "word ", "[[k]] ", "[ ] ", "# ", "``` ", "- ", "2. "]
        )
    )
    rest = " ".join(draw(st.lists(PIECES, max_size=4)))
    return f"{start}{rest} [[{draw(st.sampled_from(NAMES))}]]".lstrip()


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """Lines of a few blocks; the content of a list is indented as CommonMark has it."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(
            st.sampled_from(
                [
                    "text",
                    "list",
                    "fence",
                    "blank",
                    "rule",
                    "quote",
                    "heading",
                    "under",
                    "code",
                    "open",
                ]
            )
        )
        if kind == "text":
            lines += draw(st.lists(lines_of_text(), min_size=1, max_size=3))
        elif kind == "list" and depth < 3:
            marker = draw(
                st.sampled_from(["-", "*", "+", "1.", "1)", *([] if depth else ["2.", "10."])])
            )
            gap = draw(st.integers(1, 3))
            inner = draw(blocks(depth + 1)) or ["word"]
            inner[0] = inner[0] or "word"
            margin = draw(st.integers(0, 2)) if not depth else 0
            width = " " * (len(marker) + gap)
            first = f"{marker}{' ' * gap}{inner[0]}".rstrip()
            lines += [
                " " * margin + line
                for line in [first, *(width + line if line else "" for line in inner[1:])]
            ]
        elif kind == "fence":
            mark = draw(st.sampled_from(["```", "~~~", "````"]))
            inside = draw(st.lists(lines_of_text() | st.just("") | st.just("~~~ x"), max_size=3))
            lines += [mark + draw(st.sampled_from(["", "py"])), *inside, mark]
        elif kind == "blank":
            lines += [""]
        elif kind == "rule":
            lines += [
                draw(
                    st.sampled_from(["---", "* * *", "___", "- - -"])
                    if not depth
                    else st.just("___")
                )
            ]
        elif kind == "quote":
            lines += [
                f"> {line}" for line in draw(st.lists(lines_of_text(), min_size=1, max_size=2))
            ]
            # Code that a quote leaves open ends with it
            lines += [draw(st.sampled_from(["", "> "]))]
        elif kind == "heading":
            lines += ["#" * draw(st.integers(1, 7)) + f" {draw(lines_of_text())}"]
        elif kind == "under" and not depth:
            lines += [draw(st.sampled_from(["===", "--", "-"]))]
        elif kind == "code" and not depth:
            lines += ["    " + "[cat] [[n]]"]
        elif kind == "open" and not depth:
            lines += [draw(st.sampled_from(["```", "~~~~"]))]
    return lines


@pytest.mark.slow
@pytest.mark.promise("000b-12.3")
@given(st.lists(blocks(), min_size=1, max_size=3))
@example([["- a", "2. [cat] [[a]]"]])
@example([["> word", "    [[a]]"]])
def test_items_code_and_links_are_those_of_markdown_it(parts: list[list[str]]) -> None:
    text = "\n".join(line for part in parts for line in part)
    # After a paragraph `2.` begins no item, and what stood in it is a fence here at any
    # indentation.
    assume(not re.search(r"^ *(?:2|10)\. +(?:```|~~~)", text, re.MULTILINE))
    compare(text)
