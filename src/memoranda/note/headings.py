"""Find the headings of a note by their words, for edits that name a section (amendment 4.5).

`note/grammar.py` reads the headings `## Text` that the index needs, fast and for every note. An
edit names a heading in the words that a reader sees. So this module also reads headings underlined
with `===` or `---` (Setext) and headings in HTML, and removes markup from their text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
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
# A line break, as CommonMark knows them.
_LINE_BREAK = re.compile(r"\r\n?")
# A line that is a heading unless it is in a fence or in HTML.
_SECTION = re.compile(r"^#{1,6}(?=[ \t\n]|\Z)", re.MULTILINE)
# A heading without `#` behind it.
_PLAIN_HEADING = re.compile(r"(#{1,6})(?:[ \t]+([^#\0]*))?")
# A title without a sign of markup.
_PLAIN_TITLE = re.compile(r"[^\0\\`*_\[\]<>&!~=^{}]*")
# A line that may be a heading, make one of the line before, or begin a fence or a block of HTML.
_NO_PLAIN_LINE = re.compile(r"^ {0,3}(?:(?:=+|-+)[ \t]*$|<|```|~~~|#)", re.MULTILINE)
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
    if _PLAIN_TITLE.fullmatch(raw):
        return " ".join(raw.split())
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

    Letters with marks may be composed or not: `é` may be one character or two. Three ways to read
    the name are tried in this order. The first that finds a heading counts:

    1. The heading is written in these words, with its markup: `**Costs**`.
    2. The heading is shown in these words, without markup: `Costs` for `**Costs**`.
    3. The name is a path: `Plan > Costs` is the heading Costs in the section of a heading Plan.
    """
    level, name = level_and_title(section)
    candidates = [heading for heading in headings if level in (0, heading.level)]
    as_written = [heading for heading in candidates if heading.raw == name]
    if as_written:
        return as_written
    title = _composed(shown_title(name))
    as_shown = [heading for heading in candidates if _composed(heading.title) == title]
    if as_shown:
        return as_shown
    return _at_path(headings, candidates, name)


def _composed(title: str) -> str:
    """Return a title in the Unicode form NFC, in which `é` is one character."""
    return unicodedata.normalize("NFC", title)


def _at_path(
    headings: Sequence[ShownHeading], candidates: Sequence[ShownHeading], path: str
) -> list[ShownHeading]:
    """Return the candidates at a path such as `Plans > Kitchen`.

    Only a heading Kitchen in the section of a heading Plans is at this path.

    headings: all headings of the note.
    """
    steps = [_composed(shown_title(level_and_title(step)[1])) for step in _STEP.split(path)]
    if len(steps) == 1:
        return []
    candidate_lines = {heading.line for heading in candidates}
    at_path: list[ShownHeading] = []
    # The headings in whose sections the present one is, the outermost first. They are 6 at most
    upper_headings: list[ShownHeading] = []
    for heading in headings:
        # The heading is not in the section of one of its level or a lower one.
        while upper_headings and upper_headings[-1].level >= heading.level:
            upper_headings.pop()
        is_candidate = heading.line in candidate_lines and _composed(heading.title) == steps[-1]
        if is_candidate and _is_inside(upper_headings, steps[:-1]):
            at_path.append(heading)
        upper_headings.append(heading)
    return at_path


def _is_inside(upper_headings: Sequence[ShownHeading], steps: list[str]) -> bool:
    """Whether the titles `steps` are among these headings, in this order.

    Other sections may be between two steps.

    upper_headings: the headings, the outermost first.
    """
    remaining_steps = list(steps)
    for heading in reversed(upper_headings):
        if remaining_steps and _composed(heading.title) == remaining_steps[-1]:
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
    """Yield the headings of a body, in Markdown and in HTML.

    A line that begins with `#` ends whatever is open before it, except a fence and a block of HTML.
    So the body is read section by section, and most sections are a heading and nothing else that
    could be one. Only the others are parsed.
    """
    text = _LINE_BREAK.sub("\n", body)
    sections = _sections_of(text)
    line = 0
    position = 0
    while position < len(sections):
        first_section = sections[position]
        if not _may_hold_more(first_section):
            yield from _heading_of_line(first_section.partition("\n")[0], line)
            number = 1
            part = first_section
        else:
            number, part, tokens = _parsed(sections, position)
            yield from _parsed_headings(tokens, line)
        position += number
        line += part.count("\n")


def _heading_of_line(text: str, line: int) -> Iterator[_BodyHeading]:
    """Yield the heading in a line, if it is one.

    line: the index of the line.
    """
    plain_heading = _PLAIN_HEADING.fullmatch(text)
    if plain_heading is None:
        yield from _parsed_headings(_block_parser().parse(text), line)
        return
    signs, raw = plain_heading.groups(default="")
    yield _BodyHeading(len(signs), raw.strip(), line, line + 1)


def _sections_of(text: str) -> list[str]:
    """Cut a text before each line that begins with `#`."""
    starts = [match.start() for match in _SECTION.finditer(text)]
    bounds = [0, *starts, len(text)]
    return [text[start:end] for start, end in pairwise(bounds) if start < end]


def _may_hold_more(section: str) -> bool:
    """Whether a section has more headings than its first line, or something that may go on."""
    first_line = _SECTION.match(section)
    after_first_line = section.find("\n") + 1 if first_line else 0
    if first_line and not after_first_line:
        return False
    return _NO_PLAIN_LINE.search(section, after_first_line) is not None


def _parsed(sections: Sequence[str], position: int) -> tuple[int, str, Sequence[Token]]:
    """Parse a section, with the sections into which its last block goes on.

    Returns the number of the sections, their text and the tokens.

    position: the index of the first section.
    """
    number = 1
    while True:
        part = "".join(sections[position : position + number])
        tokens = _block_parser().parse(part)
        is_at_end = position + number >= len(sections)
        if is_at_end or not _may_go_on(tokens, part.count("\n")):
            return number, part, tokens
        # Twice as many each time, so that the time is in proportion to the text
        number *= 2


def _may_go_on(tokens: Sequence[Token], lines: int) -> bool:
    """Whether the last block of a text is a fence or HTML that reaches its end.

    tokens: the tokens of the text.
    lines: how many lines the text has.
    """
    last = tokens[-1] if tokens else None
    if last is None or last.level or last.map is None:
        return False
    return last.type in ("fence", "html_block") and last.map[1] >= lines


def _parsed_headings(tokens: Sequence[Token], first_line: int) -> Iterator[_BodyHeading]:
    """Yield the headings among the tokens of a part of a body.

    first_line: the index of the first line of the part.
    """
    for index, token in enumerate(tokens):
        # A token with a level is inside a list or a quote.
        if token.level or not token.map:
            continue
        start = first_line + token.map[0]
        end = first_line + token.map[1]
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
