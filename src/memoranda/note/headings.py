"""Headings as a reader sees them, for edits that name a section (amendment 4.5).

`note/grammar.py` reads the ATX headings that the index needs, fast and for every note. An edit
names a heading in the words that are shown, so this module also reads Setext and HTML headings and
takes markup out of their text. CommonMark's block structure comes from markdown-it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from memoranda.note.frontmatter import split

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# A heading as an argument writes it, with its signs.
_MARKED = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
# A heading written in HTML.
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1\s*>", re.IGNORECASE | re.DOTALL)
# A link; shown is its alias, else its target.
_WIKILINK = re.compile(r"!?\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]+))?\]\]")
# A block id or an attribute list after a heading.
_ANCHOR = re.compile(r"[ \t]+(?:\^[A-Za-z0-9-]+|\{[#:.][^{}\n]*\})[ \t]*$")
# Highlighted or struck text, shown without its signs.
_HIGHLIGHT = re.compile(r"==(?=\S)(.+?)(?<=\S)==|~~(?=\S)(.+?)(?<=\S)~~")
# A comment of Obsidian.
_COMMENT = re.compile(r"%%.*?%%", re.DOTALL)
# Between the headings of a path: `Plan > Costs`.
_STEP = re.compile(r"\s+>\s+")
_TEXT_TOKENS = ("text", "code_inline", "text_special")


@dataclass(frozen=True, slots=True)
class ShownHeading:
    """A heading outside code and quotes.

    `raw` is its text as written, `title` as it is shown, `line` and `last_line` are its lines in
    the whole file, from 1. A Setext heading has several lines.
    """

    level: int
    raw: str
    title: str
    line: int
    last_line: int


def shown_headings(text: str) -> list[ShownHeading]:
    """The headings of a note in order, also those in Setext and HTML form."""
    header = split(text)
    first_line = text.count("\n", 0, header.body_at) + 1
    body = text[header.body_at :].removeprefix("\ufeff")
    return [
        ShownHeading(level, raw, shown_title(raw), first_line + start, first_line + end - 1)
        for level, raw, start, end in _found_in(_without_comments(body))
    ]


def shown_title(raw: str) -> str:
    """The text of a heading without markup, anchors (`^id`, `{#id}`) and runs of blanks."""
    text = _ANCHOR.sub("", raw)
    text = _WIKILINK.sub(lambda match: match[2] or match[1], text)
    text = _HIGHLIGHT.sub(lambda match: match[1] or match[2], text)
    tokens = _parser().parseInline(text)
    words = "".join(_words(tokens[0].children or ()))
    return " ".join(words.split())


def level_and_title(section: str) -> tuple[int, str]:
    """The level (0: any) and the words of a heading as a caller names it, `## Two` or `Two`."""
    match = _MARKED.fullmatch(section.strip())
    if match:
        return len(match[1]), match[2]
    return 0, section.strip()


def headings_named(headings: Sequence[ShownHeading], section: str) -> list[ShownHeading]:
    """The headings that `section` names.

    The text as written wins over the text as shown; only where neither matches is `A > B` a path:
    the heading B below the heading A.
    """
    level, name = level_and_title(section)
    candidates = [heading for heading in headings if level in (0, heading.level)]
    as_written = [heading for heading in candidates if heading.raw == name]
    if as_written:
        return as_written
    title = shown_title(name)
    as_shown = [heading for heading in candidates if heading.title == title]
    if as_shown:
        return as_shown
    return _at_path(headings, candidates, name)


def _at_path(
    headings: Sequence[ShownHeading], candidates: Sequence[ShownHeading], path: str
) -> list[ShownHeading]:
    """The candidates at a path such as `Plans > Kitchen`: a heading Kitchen below a heading Plans.

    headings: all headings of the note.
    """
    steps = [shown_title(level_and_title(step)[1]) for step in _STEP.split(path)]
    if len(steps) == 1:
        return []
    return [heading for heading in candidates if _is_at(headings, heading, steps)]


def _is_at(headings: Sequence[ShownHeading], heading: ShownHeading, steps: list[str]) -> bool:
    """Whether the titles above `heading`, and its own, contain `steps` in their order."""
    if heading.title != steps[-1]:
        return False
    remaining = steps[:-1]
    level = heading.level
    for upper_heading in reversed(headings[: headings.index(heading)]):
        if upper_heading.level >= level:
            continue
        level = upper_heading.level
        if remaining and upper_heading.title == remaining[-1]:
            remaining.pop()
    return not remaining


def _found_in(body: str) -> Iterator[tuple[int, str, int, int]]:
    """Level, raw text, first line and line after the last, from 0, of each heading of a body."""
    tokens = _block_parser().parse(body)
    for number, token in enumerate(tokens):
        if token.level or not token.map:
            continue
        start, end = token.map
        if token.type == "heading_open":
            raw = " ".join(tokens[number + 1].content.split("\n"))
            yield int(token.tag[1:]), raw.strip(), start, end
        elif token.type == "html_block":
            for match in _HTML_HEADING.finditer(token.content):
                line = start + token.content.count("\n", 0, match.start())
                last_line = start + token.content.count("\n", 0, match.end())
                yield int(match[1]), match[2].strip(), line, last_line + 1


def _without_comments(body: str) -> str:
    """The body with Obsidian's `%% comments %%` emptied; its lines keep their numbers."""
    if "%%" not in body:
        return body
    return _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), body)


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in _TEXT_TOKENS or token.type == "image":
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "


@cache
def _parser() -> MarkdownIt:
    # Only edits of sections need it: 20 ms that no other command should wait for
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


@cache
def _block_parser() -> MarkdownIt:
    """A parser that stops at blocks; the text inside them stays as written."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
