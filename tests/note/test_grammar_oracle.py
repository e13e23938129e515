"""The scanner against markdown-it-py: the same items, the same code, the same links (contract 000b,
12.3).

Exceptions the contract names are left out of what is generated: inside an open list any indentation
may hold an item, a fence or text, where CommonMark sees code; HTML and `%%` comments have their own
tests. A code span is not followed from a blockquote into the lines that lazily continue it.
"""

from __future__ import annotations

import re
from itertools import chain

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from memoranda.note.grammar import scan

ORACLE = MarkdownIt("commonmark", {"html": False}).disable("text_join")
LINK = re.compile(r"\[\[([a-z]+)\]\]")


def is_observation(item: Token, first: Token, content: Token) -> bool:
    """Whether a list item, followed by these two tokens, begins with a category on its first line."""
    if first.type != "paragraph_open" or first.map[0] != item.map[0]:
        return False
    line = content.content.split("\n")[0]
    return re.match(r"\[cat\]\s+\S", line) is not None


def targets_outside_code(token: Token) -> list[str]:
    targets = []
    for child in token.children or ():
        if child.type == "text":
            targets += LINK.findall(child.content)
    return targets


def expected(text: str) -> tuple[set[int], list[str], set[int]]:
    """Lines of items that begin with a category, targets of links outside code, lines of headings."""
    observations = set()
    links = []
    headings = set()
    open_quotes = 0
    open_items = 0
    tokens = ORACLE.parse(text)
    for at, token in enumerate(tokens):
        open_quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        open_items += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        links += targets_outside_code(token)
        if open_quotes:
            continue
        if token.type == "list_item_open" and is_observation(*tokens[at : at + 3]):
            observations.add(token.map[0] + 1)
        if token.type == "heading_open" and token.markup[0] == "#" and not open_items:
            headings.add(token.map[0] + 1)
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


KINDS = ["text", "list", "fence", "blank", "rule", "quote", "heading", "under", "code", "open"]
ONLY_OUTSIDE_LISTS = ("under", "code", "open")
DEEPEST = 3
"""How many lists may be inside each other."""


@st.composite
def list_items(draw: st.DrawFn, depth: int) -> list[str]:
    """The lines of a list of one item, with its content indented."""
    further_markers = [] if depth else ["2.", "10."]
    marker = draw(st.sampled_from(["-", "*", "+", "1.", "1)", *further_markers]))
    gap = draw(st.integers(1, 3))
    inner = draw(blocks(depth + 1)) or ["word"]
    inner[0] = inner[0] or "word"
    margin = " " * (draw(st.integers(0, 2)) if not depth else 0)
    width = " " * (len(marker) + gap)
    first = f"{marker}{' ' * gap}{inner[0]}".rstrip()
    lines = [margin + first]
    for line in inner[1:]:
        lines.append(margin + (width + line if line else ""))
    return lines


@st.composite
def fences(draw: st.DrawFn) -> list[str]:
    mark = draw(st.sampled_from(["```", "~~~", "````"]))
    lines = lines_of_text() | st.just("") | st.just("~~~ x")
    inside = draw(st.lists(lines, max_size=3))
    language = draw(st.sampled_from(["", "py"]))
    return [mark + language, *inside, mark]


@st.composite
def quotes(draw: st.DrawFn) -> list[str]:
    lines = draw(st.lists(lines_of_text(), min_size=1, max_size=2))
    # Code that a quote leaves open ends with it
    end = draw(st.sampled_from(["", "> "]))
    return [*(f"> {line}" for line in lines), end]


@st.composite
def headings(draw: st.DrawFn) -> list[str]:
    marks = "#" * draw(st.integers(1, 7))
    return [f"{marks} {draw(lines_of_text())}"]


def lines_of(*texts: str) -> st.SearchStrategy[list[str]]:
    """One line, any of these."""
    return st.sampled_from(texts).map(lambda line: [line])


def block(kind: str, depth: int) -> st.SearchStrategy[list[str]]:
    """The lines of a block of this kind at this depth of lists."""
    if kind == "list":
        return list_items(depth)
    rules = ("___",) if depth else ("---", "* * *", "___", "- - -")
    simple = {
        "text": st.lists(lines_of_text(), min_size=1, max_size=3),
        "fence": fences(),
        "blank": lines_of(""),
        "rule": lines_of(*rules),
        "quote": quotes(),
        "heading": headings(),
        "under": lines_of("===", "--", "-"),
        "code": lines_of("    [cat] [[n]]"),
        "open": lines_of("```", "~~~~"),
    }
    return simple[kind]


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """Lines of a few blocks; the content of a list is indented as CommonMark has it."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(KINDS))
        if kind == "list" and depth >= DEEPEST:
            continue
        if kind in ONLY_OUTSIDE_LISTS and depth:
            continue
        lines += draw(block(kind, depth))
    return lines


@pytest.mark.slow
@pytest.mark.promise("000b-12.3")
@given(st.lists(blocks(), min_size=1, max_size=3))
@example([["- a", "2. [cat] [[a]]"]])
@example([["> word", "    [[a]]"]])
def test_items_code_and_links_are_those_of_markdown_it(parts: list[list[str]]) -> None:
    text = "\n".join(chain.from_iterable(parts))
    # After a paragraph `2.` begins no item, and what stood in it is a fence here at any
    # indentation.
    assume(not re.search(r"^ *(?:2|10)\. +(?:```|~~~)", text, re.MULTILINE))
    compare(text)
