"""Find the headings of a note by their words, for edits that name a section (amendment 4.5).

`note/grammar.py` reads the headings `## Text` that the index needs, fast and for every note. An
edit names a heading in the words that a reader sees. So this module also reads headings underlined
with `===` or `---` (Setext) and headings in HTML, and removes markup from their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from memoranda.note.frontmatter import split

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# A heading as an argument writes it, with its signs.
_MARKED = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
# A heading written in HTML.
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1\s*>", re.IGNORECASE | re.DOTALL)
# A link. Its groups are its target and its alias, which is shown instead.
_WIKILINK = re.compile(r"!?\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]+))?\]\]")
# A block id or an attribute list after a heading.
_ANCHOR = re.compile(r"[ \t]+(?:\^[A-Za-z0-9-]+|\{[#:.][^{}\n]*\})[ \t]*$")
# Highlighted or struck text, shown without its signs.
_HIGHLIGHT = re.compile(r"==(?=\S)(.+?)(?<=\S)==|~~(?=\S)(.+?)(?<=\S)~~")
# A comment of Obsidian.
_COMMENT = re.compile(r"%%.*?%%", re.DOTALL)
# Between the headings of a path: `Plan > Costs`.
_STEP = re.compile(r"\s+>\s+")
# The types of markdown-it's tokens that are text.
_TEXT_TOKENS = ("text", "code_inline", "text_special")


@dataclass(frozen=True, slots=True)
class ShownHeading:
    """A heading outside code and quotes.

    level: 1 to 6.
    raw: its text as written, without `#`.
    title: its text as it is shown, without markup.
    line, last_line: its first and its last line in the whole file, from 1. A heading with a line of
        `===` below it has several lines.
    """

    level: int
    raw: str
    title: str
    line: int
    last_line: int


def shown_headings(text: str) -> list[ShownHeading]:
    """Return the headings of a note in order, in Markdown and in HTML."""
    header = split(text)
    first_line = text.count("\n", 0, header.body_at) + 1
    body = text[header.body_at :].removeprefix("\ufeff")
    return [
        ShownHeading(
            heading.level,
            heading.raw,
            shown_title(heading.raw),
            first_line + heading.start,
            first_line + heading.end - 1,
        )
        for heading in _headings_in(_without_comments(body))
    ]


def shown_title(raw: str) -> str:
    """Return the text of a heading as it is shown: `Green tea` for `**Green**  [[tea]] ^id`.

    Markup and anchors (`^id`, `{#id}`) are removed, and a run of blanks becomes one.
    """
    text = _ANCHOR.sub("", raw)
    text = _WIKILINK.sub(lambda match: match[2] or match[1], text)
    text = _HIGHLIGHT.sub(lambda match: match[1] or match[2], text)
    tokens = _parser().parseInline(text)
    words = "".join(_words(tokens[0].children or ()))
    return " ".join(words.split())


def level_and_title(section: str) -> tuple[int, str]:
    """Split a heading as a caller names it into its level and its words.

    `## Two` becomes `(2, "Two")`. `Two` becomes `(0, "Two")`, where 0 means any level.
    """
    match = _MARKED.fullmatch(section.strip())
    if match:
        return len(match[1]), match[2]
    return 0, section.strip()


def headings_named(headings: Sequence[ShownHeading], section: str) -> list[ShownHeading]:
    """Return the headings that `section` names, such as `## Costs`, `Costs` or `Plan > Costs`.

    Three ways to read the name are tried in this order. The first that finds a heading counts:

    1. The heading is written in these words, with its markup: `**Costs**`.
    2. The heading is shown in these words, without markup: `Costs` for `**Costs**`.
    3. The name is a path: `Plan > Costs` is the heading Costs in the section of a heading Plan.
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
    """Return the candidates at a path such as `Plans > Kitchen`.

    Only a heading Kitchen in the section of a heading Plans is at this path.

    headings: all headings of the note.
    """
    steps = [shown_title(level_and_title(step)[1]) for step in _STEP.split(path)]
    if len(steps) == 1:
        return []
    return [heading for heading in candidates if _is_at(headings, heading, steps)]


def _is_at(headings: Sequence[ShownHeading], heading: ShownHeading, steps: list[str]) -> bool:
    """Whether `heading` is the last step of a path, and in the sections of the steps before.

    Other sections may be between two steps.

    headings: all headings of the file, in order.
    steps: the titles of the path, the outermost first.
    """
    if heading.title != steps[-1]:
        return False
    remaining_steps = steps[:-1]
    level = heading.level
    for upper_heading in reversed(headings[: headings.index(heading)]):
        # The heading is not in the section of one of its level or a lower one.
        if upper_heading.level >= level:
            continue
        level = upper_heading.level
        if remaining_steps and upper_heading.title == remaining_steps[-1]:
            remaining_steps.pop()
    return not remaining_steps


class _BodyHeading(NamedTuple):
    """A heading of a body. Lines count from 0.

    level: 1 to 6.
    raw: its text as written.
    start, end: the index of its first line, and the index after its last.
    """

    level: int
    raw: str
    start: int
    end: int


def _headings_in(body: str) -> Iterator[_BodyHeading]:
    """Yield the headings of a body, in Markdown and in HTML."""
    tokens = _block_parser().parse(body)
    for index, token in enumerate(tokens):
        # A token with a level is inside a list or a quote.
        if token.level or not token.map:
            continue
        start, end = token.map
        if token.type == "heading_open":
            raw = " ".join(tokens[index + 1].content.split("\n"))
            # The tag is `h1` to `h6`.
            yield _BodyHeading(int(token.tag[1:]), raw.strip(), start, end)
        elif token.type == "html_block":
            for match in _HTML_HEADING.finditer(token.content):
                line = start + token.content.count("\n", 0, match.start())
                last_line = start + token.content.count("\n", 0, match.end())
                yield _BodyHeading(int(match[1]), match[2].strip(), line, last_line + 1)


def _without_comments(body: str) -> str:
    """Remove Obsidian's `%% comments %%`, but not their line breaks: lines keep their numbers."""
    if "%%" not in body:
        return body
    return _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), body)


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the texts that a reader sees, and a blank for each line break."""
    for token in tokens:
        if token.type in _TEXT_TOKENS or token.type == "image":
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "


@cache
def _parser() -> MarkdownIt:
    """Return a parser of CommonMark."""
    # Imported late, as it takes 20 ms and only edits of sections need it.
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


@cache
def _block_parser() -> MarkdownIt:
    """Return a parser of headings, lists and other blocks, which leaves the text in them alone."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
