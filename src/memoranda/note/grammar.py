"""Reading a note's lines: observations, relations, headings (contract 000b, 3.1 to 3.3).

One pass over the lines keeps what CommonMark's block structure asks for: the open list items,
whether a paragraph is open, and the fence, comment or blockquote a line is in. In project
`graph` items are read by their sections, and coded texts everywhere (contract 002, 5).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from memoranda.note.links import (
    WrittenLink,
    coded_text,
    holds_link,
    is_escaped,
    observation,
    read_relation,
    tagged,
    written_links,
)
from memoranda.note.model import Heading, Note, Observation, Relation
from memoranda.text.pattern import lazy_pattern

LINKS_TO = "links_to"
EMBEDS = "embeds"

# Signs with which a line of structure may begin; all other lines are text.
_SPECIAL = frozenset(["", *" \t\r-*+#>`~<%0123456789_="])
_SIMPLE_SIGNS = frozenset("-#")
# Signs after which a list item may hold structure of its own.
_NO_TEXT = frozenset(["", *" \t\r-*+#>`~_0123456789"])
_ONE_ITEM = (2,)
# A list sign; the group is the number of an ordered one.
_MARKER = lazy_pattern(r"(?:[-*+]|([0-9]{1,9})[.)])(?:[ \t]+|$)")
# A rule: three dashes, stars or underscores and more.
_RULE = lazy_pattern(r"(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)$")
# The underline of a heading written on two lines.
_SETEXT = lazy_pattern(r"(?:=++|-++)[ \t]*+$")
# The opening of fenced code; one of backticks has none after it in its line.
_FENCE = lazy_pattern(r"(`{3,}+)[^`]*$|(~{3,}+)")
# A heading: its signs, then its text.
_HEADING = lazy_pattern(r"(#{1,6})(?:[ \t]+|$)(.*)")
# The patterns of blocks that end a text, by the sign they begin with.
_BLOCK_STARTS = {
    "#": (_HEADING,),
    "`": (_FENCE,),
    "~": (_FENCE,),
    "-": (_RULE, _SETEXT),
    "*": (_RULE,),
    "_": (_RULE,),
    "=": (_SETEXT,),
}
# The signs that may close a heading.
_CLOSING_SIGNS = lazy_pattern(r"(?:^|[ \t])#+$")
# The signs of a quoted line.
_QUOTED = lazy_pattern(r"([ \t]*)>(?: ?>)*+ ?")
# Where code, a comment or an escape may begin.
_SIGNS = lazy_pattern(r"`+|<!--|%%|\\[!-/:-@\[-`{-~]")
_BLANK = frozenset(" \t")
# `key:: value` of Logseq and Dataview on a separate line
_PROPERTY = lazy_pattern(r"[\w-]+::(?:\s|$)")
# Between these signs of Chinese and Japanese a line break is no blank
_UNSPACED = r"[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]"
# The end of each kind of comment.
_CLOSERS = {"<!--": "-->", "%%": "%%"}
# Characters of a note in which observations, links and headings are read.
STRUCTURED = 4_000_000
MOST = 10_000
"""How many characters of a note are read for observations, relations and headings, and about how
many of each kind.
"""
# The depth of a paragraph that ends in a blockquote: open, but of no list item
_ELSEWHERE = 1 << 30

LinkPlace = tuple[int, WrittenLink]
"""The line of a link, from 1 in the whole file, and the link as that line has it."""
RelationKey = tuple[str, str, str | None, str]
Found = tuple[list[Observation], list[Relation], list[Heading]]
_GRAPH_SECTIONS = ("observations", "relations")
ListItem = tuple[str, int, str]
"""(section in lower case or "", line from 1 in the whole file, text) of one list item of a graph
note.
"""


def scan(
    text: str, start: int = 0, *, graph: bool = False, items: list[ListItem] | None = None
) -> Found:
    """The observations, relations and headings of `text[start:]`; lines count from 1 in all of
    `text`.

    Relations are one per (type, target, project), in order of their lines; a relation item is kept
    rather than a link of type `links_to` in running text. `graph` reads the note as one of project
    `graph`; then every list item with text goes to `items`, in order. Of another note's lines those
    in STRUCTURED characters are read, until there are MOST of a kind.
    """
    body = text[start:]
    if len(body) > STRUCTURED and not graph:
        body = body[: body.rfind("\n", 0, STRUCTURED) + 1 or STRUCTURED]
    if "[" not in body and "#" not in body and '`"' not in body:
        return [], [], []
    if "\r" in body:
        body = body.replace("\r\n", "\n")
    lines = _Lines(body, graph=graph)
    lines.items = items
    lines.read(body.split("\n"), text.count("\n", 0, start))
    return lines.observations, list(lines.relations.values()), lines.headings


def link_places(text: str, start: int = 0) -> list[LinkPlace]:
    """Every link to a note in `text[start:]` that `scan` reads, with its line."""
    body = text[start:].replace("\r\n", "\n")
    lines = _Lines(body)
    lines.places = []
    lines.is_bounded = False
    lines.read(body.split("\n"), text.count("\n", 0, start))
    return lines.places


def relation_key(kind: str, target: str, project: str | None, part_after_name: str) -> RelationKey:
    """A key that is equal for links that are one relation. `[[C# tips]]` and `[[C# jobs]]` may be
    names of two notes, `[[C#Tips]]` and `[[C#Jobs]]` are headings of one."""
    is_name = part_after_name[1:2].isspace() or part_after_name[:1].isspace()
    return kind, target, project, part_after_name if is_name else ""


def is_cut(note: Note) -> bool:
    """Whether `scan` read only a part of this note, which is not of project `graph`."""
    highest_count = max(len(note.observations), len(note.relations), len(note.headings))
    return highest_count >= MOST or len(note.text) - note.body_at > STRUCTURED


class _Lines:
    """The lines of a body read so far, and the state of the blocks that are open."""

    # How many list items the open paragraph is in; -1: none is open
    para = -1
    # The last item has no text yet
    bare = False
    # Reads the lines of a fence, comment or quote
    hold: Callable[[str], bool] | None = None
    # Where the gathered paragraph begins, whether it is an item's
    block_at = 0
    block_item = False
    # Sections of a graph note not met yet
    wanted = frozenset(("observations", "relations"))
    # (name, level) of those the line is in
    sections: tuple[tuple[str, int], ...] = ()
    items: list[ListItem] | None = None

    def __init__(self, body: str, *, graph: bool = False, quoted: _Lines | None = None):
        self.graph = graph
        self.quoted = quoted is not None
        self.is_bounded: bool = quoted.is_bounded if quoted else not graph
        has_destination = "](" in body and ".m" in body.lower()
        self.has_links = "[[" in body or has_destination or "notion." in body
        # A single character is found much faster than two.
        self.has_ticks = "`" in body
        self.has_comments = ("<" in body and "<!--" in body) or ("%" in body and "%%" in body)
        self.observations: list[Observation] = []
        self.places: list[LinkPlace] | None = quoted.places if quoted else None
        self.relations: dict[RelationKey, Relation] = quoted.relations if quoted else {}
        self.headings: list[Heading] = []
        self.last_closers: dict[str, int] = {}
        # Columns at which the open list items' contents begin
        self.offsets: list[int] = []
        # The open paragraph's lines, gathered when code may span them
        self.block: list[str] = []

    def read(self, lines: list[str], number: int) -> None:
        """Read all lines; `number` is how many are before them in the file."""
        self.lines = lines
        self.offset = number
        # Comments, and quotes, make any line special.
        is_simple = not (self.has_comments or self.quoted)
        for line in lines:
            self.number = number = number + 1
            # Counting at each line what was read would cost more than reading it.
            if not number & 1023 and self._is_full():
                break
            if self.hold is not None and self.hold(line):
                continue
            sign = line[:1]
            if is_simple and sign in _SIMPLE_SIGNS and self._reads_simple_block(sign, line):
                continue
            if not line:
                self._blank()
            elif sign in _SPECIAL:
                self._special(line)
            else:
                self._paragraph_line(line)
        self._flush()

    def _is_full(self) -> bool:
        """Whether as many things of a kind were read as are read of one note."""
        if not self.is_bounded:
            return False
        return max(len(self.observations), len(self.relations), len(self.headings)) >= MOST

    def _reads_simple_block(self, sign: str, line: str) -> bool:
        """Read a heading, or an item that holds nothing but text without code. Most blocks are
        one of these; False for others."""
        if sign == "#":
            heading = _HEADING.match(line)
            if heading is None:
                return False
            self._heading(heading, 0)
            return True
        if line[1:2] != " " or line[2:3] in _NO_TEXT or (self.has_ticks and "`" in line):
            return False
        self._simple_item(line)
        return True

    def _simple_item(self, line: str) -> None:
        """Read an item that holds nothing but text."""
        if self.block:
            self._flush()
        self.para = 1
        self.bare = False
        self.offsets[:] = _ONE_ITEM
        text = line[2:].rstrip(" \t\r")
        item = None
        if text[0] == "[" and not self.graph and not self._goes_on():
            item = observation(text, text, self.number)
        if item is not None:
            self.observations.append(item)
        elif self._reads_item(text, text, self.number):
            return
        if self.has_links and holds_link(text):
            self._links(text, text, self.number)

    def _paragraph_line(self, line: str) -> None:
        """Read a line that is nothing but a paragraph's text, unless a comment is in it."""
        if self.has_comments and _has_comment_sign(line):
            self._special(line)
            return
        if self.para < 0:
            self.para = 0
            self.bare = False
            self.offsets.clear()
        if self.has_ticks:
            self._gather(line)
        elif self.has_links and holds_link(line):
            self._links(line, line, self.number)

    def _goes_on(self) -> bool:
        """Whether the line after this one is indented."""
        line_index = self.number - self.offset
        return line_index < len(self.lines) and self.lines[line_index][:1] in _BLANK

    def _special(self, line: str) -> None:
        """Read a line that may be more than the text of a paragraph."""
        text = line.lstrip(" \t\r")
        if not text:
            self._blank()
            return
        indent = _column(line[: len(line) - len(text)], 0)
        self.bare = False
        depth = bisect_right(self.offsets, indent)
        relative = indent - self._margin(depth)
        if relative > 3 and not self.offsets:
            # Outside a paragraph, a line indented so far is code.
            if self.para >= 0:
                self._text(line, depth)
            return
        if self._opens_fence(text, indent, relative, depth):
            return
        if self.has_comments and _has_comment_sign(text):
            text, begins_with_comment = self._without_comments(text)
            # The rest of the line is text, not the start of a block.
            if begins_with_comment:
                self._close(depth)
                self._inline(text, mask_code(text), self.number)
                return
        self._block_start(text, indent, relative, depth)

    def _margin(self, depth: int) -> int:
        """The column at which what is inside `depth` list items begins."""
        if depth:
            return self.offsets[depth - 1]
        return 0

    def _block_start(self, text: str, indent: int, relative: int, depth: int) -> None:
        """Read a line that may be a rule, an item, a heading or its underline, a quote, or text."""
        sign = text[0]
        if sign in "-*+_0123456789" and self._reads_rule_or_item(text, indent, relative, depth):
            return
        heading = _HEADING.match(text) if sign == "#" and relative < 4 else None
        if heading:
            self._heading(heading, depth)
        elif sign == ">":
            self._quote(depth)
        elif self._is_underline(text, "=", depth):
            self._close(depth)
        elif relative > 3 and self.para < 0 and not depth:
            # Indented code.
            self._close(0)
        else:
            self._text(text, depth)

    def _is_underline(self, text: str, sign: str, depth: int) -> bool:
        """Whether a line of `sign` makes a heading of the paragraph above it."""
        return text[0] == sign and self.para == depth and _SETEXT.match(text) is not None

    def _is_rule(self, text: str, relative: int) -> bool:
        """Whether a line is a thematic break, and no code."""
        may_be_rule = text[0] in "-*_" and (relative < 4 or bool(self.offsets))
        return may_be_rule and _RULE.match(text) is not None

    def _blank(self) -> None:
        if self.block:
            self._flush()
        self.para = -1
        if self.bare:
            self.bare = False
            self.offsets.pop()

    def _close(self, depth: int) -> None:
        self._flush()
        del self.offsets[depth:]
        self.para = -1
        self.bare = False

    def _text(self, text: str, depth: int) -> None:
        """Read a line of a paragraph, which may continue a deeper list item lazily."""
        if self.para < 0:
            self._close(depth)
            self.para = depth
            self.block_item = False
        if self.has_ticks:
            self._gather(text)
        elif self.has_links and holds_link(text):
            self._links(text, text, self.number)

    def _reads_rule_or_item(self, text: str, indent: int, relative: int, depth: int) -> bool:
        """Read a rule, the underline of a heading, or an item with those that begin on its line
        inside it; False when the line is not one of these.
        """
        if self._is_rule(text, relative) or self._is_underline(text, "-", depth):
            self._close(depth)
            return True
        marker = _MARKER.match(text)
        if marker is None or (relative > 3 and not self.offsets):
            return False
        if self.para == depth and not _interrupts_paragraph(text, marker):
            return False
        self._close(depth)
        self._read_items(text, marker, indent)
        return True

    def _read_items(self, text: str, marker: re.Match[str], indent: int) -> None:
        """Open the items that begin on a line, the first with `marker`, and read the last one's
        text.
        """
        text_start, column, is_bare = self._open_items(text, marker, indent)
        text = text[text_start:]
        depth = len(self.offsets)
        self.bare = is_bare
        if is_bare or self._opens_fence(text, column, 0, depth):
            return
        if text[0] in "-*_" and _RULE.match(text):
            return
        if text[0] == ">":
            self._quote(depth, text)
            return
        self._close(depth)
        self.para = depth
        self.block_item = True
        if self.has_ticks:
            self._gather(text)
        else:
            self._inline(text, text, self.number, is_item=True)
        if text[0] == "#" and _HEADING.match(text):
            self._close(depth)

    def _open_items(self, text: str, marker: re.Match[str], column: int) -> tuple[int, int, bool]:
        """Open the items whose markers follow one another on a line, the first of them at `column`.

        Returns where the last one's text begins, at which column, and whether it has none.
        """
        position = 0
        while True:
            width = len(marker[0].rstrip(" \t"))
            after_marker = column + width
            start = _column(text[position + width : marker.end()], after_marker)
            is_bare = marker.end() == len(text)
            # After a marker and five blanks, code begins one blank behind the marker.
            is_code = start - after_marker > 4
            if is_bare or is_code:
                column = after_marker + 1
            else:
                column = start
            self.offsets.append(column)
            position = marker.end()
            if is_code:
                inner = None
            else:
                inner = _MARKER.match(text, position)
            if inner is None or _is_rule_at(text, position):
                return position, column, is_bare
            marker = inner

    def _heading(self, match: re.Match[str], depth: int) -> None:
        self._close(depth)
        level = len(match[1])
        text = match[2].rstrip(" \t\r")
        if text[-1:] == "#":
            text = _CLOSING_SIGNS.sub("", text).rstrip(" \t")
        if not depth and not self.quoted:
            self.headings.append(Heading(level, text, self.number))
            if self.graph:
                # The first section of each name counts, down to a heading of its level or a higher
                # one.
                self.sections = tuple(section for section in self.sections if section[1] < level)
                name = text.casefold()
                if name in self.wanted:
                    self.wanted -= {name}
                    self.sections += ((name, level),)
        if self.has_links and holds_link(text):
            self._links(text, mask_code(text), self.number)

    def _opens_fence(self, text: str, indent: int, relative: int, depth: int) -> bool:
        if text[0] not in "`~":
            return False
        fence = _FENCE.match(text)
        if fence is None or (relative > 3 and not depth):
            return False
        self._close(depth)
        mark = fence[1] or fence[2]
        if relative < 4:
            base = indent - relative
        else:
            base = indent
        least = self._margin(depth)

        def inside(line: str) -> bool:
            if not least and mark not in line:
                return True
            quoted_text = line.lstrip(" \t")
            if not quoted_text.strip():
                return True
            column = _column(line[: len(line) - len(quoted_text)], 0)
            if column < least:
                # The list item that holds the fence ends here.
                self.hold = None
                return False
            quoted_text = quoted_text.rstrip(" \t\r")
            if (
                column - base < 4
                and quoted_text.startswith(mark)
                and not quoted_text.strip(mark[0])
            ):
                self.hold = None
            return True

        self.hold = inside
        return True

    def _quote(self, depth: int, first: str | None = None) -> None:
        """Read the lines of a blockquote as a separate text, only for its links."""
        if self.quoted:
            self._text(first or self.lines[self.number - self.offset - 1], depth)
            return
        self._close(depth)
        line_index = self.number - self.offset - 1
        end = line_index + 1
        margin = self._margin(len(self.offsets))
        while end < len(self.lines) and (mark := _QUOTED.match(self.lines[end])):
            if _column(mark[1], 0) < margin:
                # The list item ends, and with it the quote in it
                break
            end += 1
        quoted = [
            _QUOTED.sub("", line, count=1)
            for line in [first or self.lines[line_index], *self.lines[line_index + 1 : end]]
        ]
        quoted_reader = _Lines("\n".join(quoted), quoted=self)
        quoted_reader.read(quoted, self.number - 1)
        if quoted_reader.para >= 0:
            self.para = _ELSEWHERE
        else:
            self.para = -1
        resume = self.number + end - line_index

        def inside_quote(line: str) -> bool:
            if self.number >= resume:
                self.hold = None
            return self.number < resume

        self.hold = inside_quote

    def _without_comments(self, text: str) -> tuple[str, bool]:
        """The line's text outside comments, and whether it begins with one. May begin to hold
        lines.
        """
        parts = []
        line_position = 0
        begins_with_comment = False
        spans = _code_spans(text)
        position = 0
        while sign := _SIGNS.search(text, position):
            position = sign.end()
            if sign[0][0] == "`":
                position = spans.get(sign.start(), position)
                continue
            if sign[0] not in _CLOSERS:
                continue
            closer = _CLOSERS[sign[0]]
            end = text.find(closer, position)
            # An HTML comment at the start of a line is open until the end of the note.
            is_html_block = sign.start() == 0 and sign[0] == "<!--"
            if end < 0 and not is_html_block and not self._is_closed_later(closer):
                continue
            begins_with_comment = begins_with_comment or sign.start() == 0
            parts.append(text[line_position : sign.start()])
            if end < 0:
                self.hold = partial(self._in_comment, closer)
                return "".join(parts), begins_with_comment
            line_position = position = end + len(closer)
        return "".join(parts) + text[line_position:], begins_with_comment

    def _is_closed_later(self, closer: str) -> bool:
        """Whether a line after this one holds the end of a comment."""
        if closer not in self.last_closers:
            lines = (line_index for line_index, line in enumerate(self.lines) if closer in line)
            self.last_closers[closer] = max(lines, default=-1)
        return self.last_closers[closer] > self.number - self.offset - 1

    def _in_comment(self, closer: str, line: str) -> bool:
        self._flush()
        end = line.find(closer)
        if end >= 0:
            self.hold = None
            text_after, _ = self._without_comments(line[end + len(closer) :])
            self._inline(text_after, mask_code(text_after), self.number)
        return True

    def _gather(self, text: str) -> None:
        if not self.block:
            self.block_at = self.number
        self.block.append(text)

    def _flush(self) -> None:
        if not self.block:
            return
        raw = self.block
        self.block = []
        number = self.block_at
        is_item = self.block_item
        self.block_item = False
        text = "\n".join(raw)
        if not is_item and not holds_link(text):
            return
        masked = mask_code(text).split("\n")
        for offset, (raw_line, line) in enumerate(zip(raw, masked, strict=True)):
            self._inline(raw_line, line, number + offset, is_item=is_item and not offset)

    def _inline(self, text: str, masked: str, number: int, *, is_item: bool = False) -> None:
        """Read a line of text. `masked` is the line with its code spans replaced by NUL."""
        if (
            is_item
            and not self.quoted
            and self._reads_item(text.rstrip(" \t\r"), masked.rstrip(" \t\r"), number)
        ):
            return
        if self.has_links and holds_link(masked):
            self._links(text, masked, number)

    def _reads_item(self, text: str, masked: str, number: int) -> bool:
        """Read an item's first line; True when its links are read too."""
        if not text:
            return True
        if self.graph and self.sections:
            section = self.sections[-1][0]
        else:
            section = ""
        # A text in backticks is exact, and is on one line.
        if section in _GRAPH_SECTIONS and text[0] != "`":
            text, masked = self._with_further_lines(text, masked, number)
        if self.items is not None:
            self.items.append((section, number, text))
        may_be_relation = not self.graph or section == "relations"
        if may_be_relation and self._reads_relation_item(text, masked, number):
            return True
        if not self.graph or section == "observations":
            self._read_observation_item(text, masked, number)
        return False

    def _reads_relation_item(self, text: str, masked: str, number: int) -> bool:
        """Keep the relation that an item says; False when it says none."""
        # An item that begins with a bracket begins with a category or a link.
        if text[0] == "[" or not ("[[" in text or '`"' in text):
            return False
        relation = read_relation(text, number)
        if relation is None:
            return False
        self._add_relation_item(relation, text, masked)
        return True

    def _read_observation_item(self, text: str, masked: str, number: int) -> None:
        """Keep the observation that an item says, if it says one."""
        if text[0] == "`":
            decoded = coded_text(text)
            if decoded is not None:
                text = decoded
                masked = decoded
        if not self.graph:
            text, masked = self._with_further_lines(text, masked, number)
        item = observation(text, masked, number) or tagged(text, masked, number, is_any=self.graph)
        if item is not None:
            self.observations.append(item)

    def _add_relation_item(self, relation: Relation, text: str, masked: str) -> None:
        """Keep the relation of an item, rather than one that a link in running text made."""
        if self.places is not None:
            self.places += [(relation.line, link) for link in written_links(text, masked)]
        key = relation_key(relation.type, relation.target, relation.project, relation.rest)
        before = self.relations.get(key)
        is_new = before is None or not before.is_item
        if is_new and (relation.target or "`" in text):
            self.relations.pop(key, None)
            self.relations[key] = relation
        if relation.context and holds_link(relation.context):
            # The places of the whole item's links were added above.
            places = self.places
            self.places = None
            self._links(relation.context, relation.context, relation.line)
            self.places = places

    def _with_further_lines(self, text: str, masked: str, number: int) -> tuple[str, str]:
        """An item's text and its masked form, with the indented lines on which the item goes on."""
        line_index = number - self.offset
        further_lines: list[str] = []
        while (
            line_index < len(self.lines)
            and self.lines[line_index][:1] in _BLANK
            and self.lines[line_index].strip()
        ):
            line = self.lines[line_index].strip(" \t\r")
            if _ends_text(line):
                break
            if not _PROPERTY.match(line):
                further_lines.append(line)
            line_index += 1
        if not further_lines:
            return text, masked
        for line in further_lines:
            is_spaced = not (_is_unspaced(text[-1]) and _is_unspaced(line[0]))
            text += f" {line}" if is_spaced else line
        return text, mask_code(text)

    def _links(self, text: str, masked: str, number: int) -> None:
        """Add each link of a line to a note as a relation of type `embeds` or `links_to`."""
        for link in written_links(text, masked):
            if self.places is not None:
                self.places.append((number, link))
            if link.is_embed:
                kind = EMBEDS
            else:
                kind = LINKS_TO
            key = relation_key(kind, link.target, link.project, link.rest)
            if key not in self.relations:
                if len(self.relations) >= MOST and self.is_bounded:
                    return
                self.relations[key] = Relation(
                    kind, link.target, None, link.project, number, rest=link.rest
                )


def _ends_text(line: str) -> bool:
    """Whether a line, without its indentation, begins something else than more of a text."""
    if line[0] == ">" or _has_comment_sign(line):
        return True
    for pattern in _BLOCK_STARTS.get(line[0], ()):
        if pattern.match(line):
            return True
    marker = _MARKER.match(line)
    return marker is not None and _interrupts_paragraph(line, marker)


def _interrupts_paragraph(text: str, marker: re.Match[str]) -> bool:
    """Whether an item at `marker` begins a list even right below a line of text.

    It must have text, and its number must be 1.
    """
    return marker.end() < len(text) and int(marker[1] or 1) == 1


def _has_comment_sign(line: str) -> bool:
    return "<!--" in line or "%%" in line


def _is_rule_at(text: str, column: int) -> bool:
    """Whether the rest of a line is a rule: the same sign and blanks to the end."""
    is_one_sign = column >= len(text.rstrip(f"{text[column]} \t"))
    return is_one_sign and _RULE.match(text, column) is not None


def _column(blanks: str, column: int) -> int:
    """The column after `blanks`, a run of blanks and tabs (stops every 4) that begins at `column`."""
    if "\t" not in blanks:
        return column + len(blanks)
    for sign in blanks:
        column += 4 - column % 4 if sign == "\t" else 1
    return column


def mask_code(text: str) -> str:
    """`text` with NUL for each character of a code span; line breaks stay."""
    if "`" not in text:
        return text
    parts = []
    position = 0
    for start, end in sorted(_code_spans(text).items()):
        if start >= position:
            parts.append(text[position:start])
            parts.append("\n".join("\0" * len(line) for line in text[start:end].split("\n")))
            position = end
    return "".join(parts) + text[position:]


def _code_spans(text: str) -> dict[int, int]:
    """Start and end of each code span: from a run of backticks to the next run of the same length."""
    if "`" not in text:
        return {}
    runs = [match.span() for match in re.finditer(r"`+", text)]
    # The last start first, so that those behind are popped as the reading goes on.
    starts_by_length = defaultdict[int, list[int]](list)
    for start, end in reversed(runs):
        starts_by_length[end - start].append(start)
    spans: dict[int, int] = {}
    last_end = 0
    for start, end in runs:
        if start < last_end:
            continue
        if is_escaped(text, start):
            # The first backtick is a sign of text, the others may open a span.
            start += 1
        length = end - start
        candidates = starts_by_length[length]
        while candidates and candidates[-1] < end:
            candidates.pop()
        if length and candidates:
            last_end = candidates[-1] + length
            spans[start] = last_end
    return spans


def _is_unspaced(char: str) -> bool:
    """Whether a character is Chinese or Japanese, so that a line break does not mean a blank."""
    return not char.isascii() and re.match(_UNSPACED, char) is not None
