"""Read the observations, relations and headings in a note's lines (contract 000b, 3.1 to 3.3).

`scan` reads a text in one pass. A line means something only in its place, as in CommonMark: in a
list item, a paragraph, fenced code, a comment or a blockquote. `_Lines` keeps track of these. An
item is a list item. In project `graph` the heading above an item says how to read it (contract 002,
5).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from memoranda.note.links import (
    WrittenLink,
    coded_text,
    each_written_link,
    holds_link,
    is_escaped,
    observation,
    read_relation,
    tagged,
)
from memoranda.note.model import Heading, Note, Observation, Relation
from memoranda.text.pattern import lazy_pattern

LINKS_TO = "links_to"
EMBEDS = "embeds"

# Signs with which a line of structure may begin; all other lines are text.
_SPECIAL = frozenset(["", *" \t\r-*+#>`~<%0123456789_="])
_SIMPLE_SIGNS = frozenset("-#")
# Signs with which the text of a list item may begin more than text.
_NO_TEXT = frozenset(["", *" \t\r-*+#>`~_0123456789"])
# The columns at which the texts of the open items begin, if only `- text` is open.
_ONE_ITEM = (2,)
# A list sign; the group is the number of an ordered one.
_MARKER = lazy_pattern(r"(?:[-*+]|([0-9]{1,9})[.)])(?:[ \t]+|$)")
# A rule: three dashes, stars or underscores and more.
_RULE = lazy_pattern(r"(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)$")
# The underline of a heading written on two lines.
_SETEXT = lazy_pattern(r"(?:=++|-++)[ \t]*+$")
# The opening of fenced code. After backticks, no further backtick may follow in the line.
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
# A line `key:: value` of Logseq and Dataview.
_PROPERTY = lazy_pattern(r"[\w-]+::(?:\s|$)")
# Signs of Chinese and Japanese. A line break between two of them does not mean a blank.
_UNSPACED = r"[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]"
# The sign that opens a comment → the sign that closes it.
_CLOSERS = {"<!--": "-->", "%%": "%%"}
STRUCTURED = 4_000_000
"""How many characters of a note are read for observations, relations and headings."""
MOST = 10_000
"""About how many observations, how many relations and how many headings of a note are read."""
# The depth of a paragraph that ends in a blockquote. It is open, but equals the depth of no item.
_IN_QUOTE = 1 << 30
# The depth of the open paragraph if none is open.
_NO_PARAGRAPH = -1

RelationKey = tuple[str, str, str | None, str]
"""A key that is equal for all links that make the same relation, as `relation_key` returns it."""
_GRAPH_SECTIONS = ("observations", "relations")


class LinkPlace(NamedTuple):
    """A link as it is written in a line, and the line's number in the file, from 1."""

    line: int
    link: WrittenLink


class ListItem(NamedTuple):
    """A list item of a graph note.

    section: the heading it is under, `observations` or `relations`, or "".
    line: the number of its line, from 1 in the whole file.
    text: the item without its marker `- `.
    """

    section: str
    line: int
    text: str


class Structure(NamedTuple):
    """The observations, relations and headings of a text."""

    observations: list[Observation]
    relations: list[Relation]
    headings: list[Heading]


class _Section(NamedTuple):
    """A section of a graph note.

    name: its heading in lower case.
    level: the level of the heading, 1 to 6.
    """

    name: str
    level: int


class _GraphSections:
    """Keeps track of the section of a graph note that is being read.

    Only `Observations` and `Relations` are sections here, and only the first of each name.
    """

    def __init__(self) -> None:
        # The sections that are open, the innermost last.
        self._open: list[_Section] = []
        self._unmet = set(_GRAPH_SECTIONS)

    @property
    def current(self) -> str:
        """The name of the innermost open section, or ""."""
        return self._open[-1].name if self._open else ""

    def enter(self, heading: str, level: int) -> None:
        """Follow a heading: it ends the sections of its level and deeper, and may begin one."""
        while self._open and self._open[-1].level >= level:
            self._open.pop()
        name = heading.casefold()
        if name in self._unmet:
            self._unmet.remove(name)
            self._open.append(_Section(name, level))


class _Relations:
    """Collects the relations of a text, of equal ones one.

    is_bounded: whether links in running text add no more relations once there are MOST.
    places: gets the place of every link. None if nobody asks for them.
    """

    def __init__(self, *, is_bounded: bool, places: list[LinkPlace] | None = None):
        self.by_key: dict[RelationKey, Relation] = {}
        self.is_bounded = is_bounded
        self._places = places

    def add_links(self, text: str, masked: str, number: int) -> None:
        """Keep each link of a line as a relation of type `embeds` or `links_to`.

        text: the line.
        masked: the line with its code spans replaced by NUL. A line without code is its own mask.
        number: the number of the line in the file.
        """
        self._add_places(text, masked, number)
        for link in each_written_link(text, masked):
            self._add_link(link, number)

    def add_item(self, relation: Relation, text: str, masked: str) -> None:
        """Keep the relation of an item, and the links in its context.

        It replaces an equal relation that a link in running text made, but not one of an item.

        relation: the relation that the item makes.
        text: the text of the item.
        masked: the text with its code spans replaced by NUL.
        """
        self._add_places(text, masked, relation.line)
        key = relation_key(relation.type, relation.target, relation.project, relation.rest)
        equal_relation = self.by_key.get(key)
        is_new = equal_relation is None or not equal_relation.is_item
        # Only a name in backticks may be empty.
        has_target = relation.target or "`" in text
        if is_new and has_target:
            # Taken out first, so that the relation comes at the place of this line.
            self.by_key.pop(key, None)
            self.by_key[key] = relation
        if relation.context and holds_link(relation.context):
            # Their places are among those of the whole item, which were added above.
            for link in each_written_link(relation.context, relation.context):
                self._add_link(link, relation.line)

    def _add_places(self, text: str, masked: str, number: int) -> None:
        """Keep where the links of a line are, if somebody asks for the places."""
        if self._places is not None:
            for link in each_written_link(text, masked):
                self._places.append(LinkPlace(number, link))

    def _add_link(self, link: WrittenLink, number: int) -> None:
        """Keep the relation that a link in running text makes, unless there is an equal one."""
        kind = EMBEDS if link.is_embed else LINKS_TO
        key = relation_key(kind, link.target, link.project, link.rest)
        if key in self.by_key:
            return
        is_full = self.is_bounded and len(self.by_key) >= MOST
        if not is_full:
            self.by_key[key] = Relation(
                kind, link.target, project=link.project, line=number, rest=link.rest
            )


def scan(
    text: str, start: int = 0, *, graph: bool = False, items: list[ListItem] | None = None
) -> Structure:
    """Read the observations, relations and headings of `text[start:]`.

    The item `- [idea] Sell tea #shop` is an observation, and `- part_of [[Shop]]` a relation. A link
    in running text is a relation of type `links_to`. Of equal relations, the one of an item is
    returned, or else the first one.

    At most STRUCTURED characters are read, and no more after about MOST of a kind.

    start: where the body begins. Lines count from 1 in all of `text`.
    graph: whether to read all of the text, as a note of project `graph`.
    items: gets every list item of a graph note that has a text, in order. None if the caller does
        not need them.
    """
    body = text[start:]
    if len(body) > STRUCTURED and not graph:
        # Cut at the end of a line, unless one line is as long as all that is read.
        end_of_line = body.rfind("\n", 0, STRUCTURED) + 1
        body = body[: end_of_line or STRUCTURED]
    may_have_structure = "[" in body or "#" in body or '`"' in body
    if not may_have_structure:
        return Structure(observations=[], relations=[], headings=[])
    if "\r" in body:
        body = body.replace("\r\n", "\n")
    relations = _Relations(is_bounded=not graph)
    lines = _Lines(body, relations, graph=graph, items=items)
    lines.read(body.split("\n"), text.count("\n", 0, start))
    return Structure(lines.observations, list(relations.by_key.values()), lines.headings)


def link_places(text: str, start: int = 0) -> list[LinkPlace]:
    """Return every link to a note in `text[start:]` that `scan` would read, equal ones too."""
    body = text[start:].replace("\r\n", "\n")
    places: list[LinkPlace] = []
    lines = _Lines(body, _Relations(is_bounded=False, places=places))
    lines.read(body.split("\n"), text.count("\n", 0, start))
    return places


def relation_key(kind: str, target: str, project: str | None, part_after_name: str) -> RelationKey:
    """Return a key that is equal for all links that make the same relation.

    `[[C#Tips]]` and `[[C#Jobs]]` have the same key, as they lead to headings of one note.
    `[[C# tips]]` and `[[C# jobs]]` have different keys, as they may be the names of two notes.

    kind: the type of the relation.
    target: the name of the note that the link leads to.
    project: the project that the link names, or None.
    part_after_name: the part of the link from its `#` on, with the blanks before it: `#Tips`,
        `# tips`, ` #3`. "" if the link has no `#`.
    """
    # The `#` of a heading has no blank on either side. With a blank, the `#` may belong to the name
    # of the note, as in `Volume #3`.
    begins_with_blank = part_after_name[:1].isspace()
    has_blank_after_sign = part_after_name[1:2].isspace()
    if begins_with_blank or has_blank_after_sign:
        return kind, target, project, part_after_name
    return kind, target, project, ""


def is_cut(note: Note) -> bool:
    """Whether `scan` stopped before the end of a note that is too long or has too many items.

    The note must not be of project `graph`.
    """
    highest_count = max(len(note.observations), len(note.relations), len(note.headings))
    return highest_count >= MOST or len(note.text) - note.body_at > STRUCTURED


class _PlacedLine(NamedTuple):
    """A line and its place among the open list items.

    text: the line without its indentation.
    column: the column at which `text` begins.
    depth: how many items the line is in.
    indent: how many columns `text` begins behind the margin of the innermost of these items.
    """

    text: str
    column: int
    depth: int
    indent: int

    @property
    def is_indented_as_code(self) -> bool:
        """Whether the line is indented so far that it is code where code may be."""
        return self.indent > 3


class _OpenedItem(NamedTuple):
    """A list item that a line opened.

    start: the position in the line at which the item's text begins.
    column: the column at which the text begins, where tabs count as several blanks.
    is_empty: whether the line has no text behind the item's sign.
    """

    start: int
    column: int
    is_empty: bool


class _Fence(NamedTuple):
    """The opening line of fenced code.

    mark: its signs, such as three backticks. A line of at least as many closes the code.
    column: the column at which the code begins. The closing line is indented at most three more.
    margin: the column at which the text of the list item around the code begins; 0 without one.
    """

    mark: str
    column: int
    margin: int


class _Lines:
    """Reads the lines of a body, and keeps track of the blocks that are open.

    A depth is a number of list items, and the margin of an item is the column at which its text
    begins. In these lines, `tea` is at depth 1, whose margin is 2, and `green` at depth 2, whose
    margin is 4:

        - tea
          - green

    A line that is indented four columns or more behind its margin is code, unless it is in an item
    or continues a paragraph.

    The results are in `observations`, `headings` and the `relations` of the caller. All line numbers
    count from 1 in the whole file.
    """

    def __init__(
        self,
        body: str,
        relations: _Relations,
        *,
        graph: bool = False,
        items: list[ListItem] | None = None,
        is_quoted: bool = False,
    ):
        """Prepare to read the lines of a body.

        body: the text whose lines are read.
        relations: gets the relations.
        graph: whether the text is a note of the graph. Then items count only below `Observations`
            and `Relations`.
        items: gets every list item of a graph note. None if nobody asks for them.
        is_quoted: whether the body is a blockquote of a note, which is read only for its links.
        """
        self.graph = graph
        self.items = items
        self.is_quoted = is_quoted
        # Whether the body has links, code spans and comments at all, so that most bodies need
        # no search for them line by line. Python finds a single character much faster than two.
        has_destination = "](" in body and ".m" in body.lower()
        self.has_links = "[[" in body or has_destination or "notion." in body
        self.has_ticks = "`" in body
        self.has_comments = ("<" in body and "<!--" in body) or ("%" in body and "%%" in body)

        # Results.
        self.observations: list[Observation] = []
        self.headings: list[Heading] = []
        self.relations = relations

        # The open blocks.
        # The columns at which the texts of the open list items begin.
        self.item_columns: list[int] = []
        # Whether the last list item has no text yet.
        self.is_item_empty = False
        # The depth of the open paragraph, _IN_QUOTE, or _NO_PARAGRAPH if none is open.
        self.paragraph_depth = _NO_PARAGRAPH
        # Gets each line while a fence, comment or quote is open. Returns whether the line belongs
        # to it.
        self.take_line: Callable[[str], bool] | None = None
        # The section that the line is in, if the text is a note of the graph.
        self.sections = _GraphSections()

        # The lines of the open paragraph, the number of the first, and whether it begins an item.
        # They are gathered because a code span may cover several lines.
        self.gathered_lines: list[str] = []
        self.gathered_number = 0
        self.is_item_gathered = False
        # The end of a comment, such as `-->` → the index of the last line that holds it, or -1.
        self.last_lines_with_closer: dict[str, int] = {}

    def read(self, lines: list[str], lines_before: int) -> None:
        """Read all lines of the body, which follow `lines_before` lines of the file."""
        self.lines = lines
        self.lines_before = lines_before
        number = lines_before
        # In a note with comments, and in a quote, every line needs a closer look.
        may_skip_checks = not (self.has_comments or self.is_quoted)
        for line in lines:
            number += 1
            self.line_number = number
            # Counting at each line would cost more than reading it, so count at every 1,024th.
            if not number & 1023 and self._is_full():
                break
            if self.take_line is not None and self.take_line(line):
                continue
            sign = line[:1]
            may_be_simple = may_skip_checks and sign in _SIMPLE_SIGNS
            if may_be_simple and self._reads_simple_block(sign, line):
                continue
            if not line:
                self._blank()
            elif sign in _SPECIAL:
                self._special(line)
            else:
                self._paragraph_line(line)
        self._flush()

    def _is_full(self) -> bool:
        """Whether enough observations, relations or headings were read."""
        if not self.relations.is_bounded:
            return False
        relation_count = len(self.relations.by_key)
        return max(len(self.observations), relation_count, len(self.headings)) >= MOST

    def _reads_simple_block(self, sign: str, line: str) -> bool:
        """Read a heading, or an item of text without code. Return False for any other block.

        Most blocks are one of these two, which need fewer checks.

        sign: the first character of the line.
        """
        if sign == "#":
            heading = _HEADING.match(line)
            if heading is None:
                return False
            self._heading(heading, depth=0)
            return True
        if line[1:2] != " " or line[2:3] in _NO_TEXT or (self.has_ticks and "`" in line):
            return False
        self._simple_item(line)
        return True

    def _simple_item(self, line: str) -> None:
        """Read an item `- text` that holds nothing but text."""
        if self.gathered_lines:
            self._flush()
        self.paragraph_depth = 1
        self.is_item_empty = False
        self.item_columns[:] = _ONE_ITEM
        text = line[2:].rstrip(" \t\r")
        # A shortcut for `- [idea] Sell tea` on one line.
        simple_observation = None
        if text[0] == "[" and not self.graph and not self._is_next_line_indented():
            simple_observation = observation(text, masked=text, number=self.line_number)
        if simple_observation is not None:
            self.observations.append(simple_observation)
        elif self._reads_item(text, masked=text, number=self.line_number):
            return
        self._links(text, masked=text, number=self.line_number)

    def _paragraph_line(self, line: str) -> None:
        """Read a line of a paragraph, which may hold a comment but begins no other block."""
        if self.has_comments and _has_comment_sign(line):
            self._special(line)
            return
        if self.paragraph_depth == _NO_PARAGRAPH:
            self.paragraph_depth = 0
            self.is_item_empty = False
            self.item_columns.clear()
        if self.has_ticks:
            self._gather(line)
        else:
            self._links(line, masked=line, number=self.line_number)

    def _is_next_line_indented(self) -> bool:
        """Whether the next line is indented, so that it may belong to this line's item."""
        line_index = self.line_number - self.lines_before
        return line_index < len(self.lines) and self.lines[line_index][:1] in _BLANK

    def _special(self, line: str) -> None:
        """Read a line that may begin a block, such as an item or a quote, or hold a comment."""
        text = line.lstrip(" \t\r")
        if not text:
            self._blank()
            return
        self.is_item_empty = False
        placed = self._placed(line, text)
        if placed.is_indented_as_code and not self.item_columns:
            # It continues a paragraph. Outside one it is code, which is not read.
            if self.paragraph_depth != _NO_PARAGRAPH:
                self._text(line, placed.depth)
            return
        if self._opens_fence(placed):
            return
        if self.has_comments and _has_comment_sign(text):
            text, begins_with_comment = self._without_comments(text)
            # The rest of the line is text, not the start of a block.
            if begins_with_comment:
                self._close(placed.depth)
                self._inline(text, masked=mask_code(text), number=self.line_number)
                return
            placed = placed._replace(text=text)
        self._block_start(placed)

    def _placed(self, line: str, text: str) -> _PlacedLine:
        """Find the place of a line among the open items.

        text: the line without its indentation.
        """
        column = _column(line[: len(line) - len(text)], column=0)
        # A line is in all items whose text begins at its column or before.
        depth = bisect_right(self.item_columns, column)
        return _PlacedLine(text, column, depth, indent=column - self._margin(depth))

    def _margin(self, depth: int) -> int:
        """Return the column where the content of `depth` nested list items begins."""
        if depth:
            return self.item_columns[depth - 1]
        return 0

    def _block_start(self, line: _PlacedLine) -> None:
        """Read a line that may be a rule, an item, a heading or its underline, a quote, or text."""
        sign = line.text[0]
        if sign in "-*+_0123456789" and self._reads_rule_or_item(line):
            return
        heading = None
        if sign == "#" and not line.is_indented_as_code:
            heading = _HEADING.match(line.text)
        is_outside_blocks = self.paragraph_depth == _NO_PARAGRAPH and not line.depth
        if heading:
            self._heading(heading, line.depth)
        elif sign == ">":
            self._quote(line.depth)
        elif self._is_underline(line, "="):
            self._close(line.depth)
        elif line.is_indented_as_code and is_outside_blocks:
            # Code ends the open items, and is not read.
            self._close(depth=0)
        else:
            self._text(line.text, line.depth)

    def _is_underline(self, line: _PlacedLine, sign: str) -> bool:
        """Whether a line consists of `sign`, `=` or `-`, and makes the text above it a heading."""
        is_below_text = self.paragraph_depth == line.depth
        return line.text[0] == sign and is_below_text and _SETEXT.match(line.text) is not None

    def _is_rule(self, line: _PlacedLine) -> bool:
        """Whether a line is a rule such as `---`, and not indented so far that it is code."""
        is_code = line.is_indented_as_code and not self.item_columns
        return line.text[0] in "-*_" and not is_code and _RULE.match(line.text) is not None

    def _blank(self) -> None:
        """Read a blank line: it ends the paragraph, and an item that has no text yet."""
        if self.gathered_lines:
            self._flush()
        self.paragraph_depth = _NO_PARAGRAPH
        if self.is_item_empty:
            self.is_item_empty = False
            self.item_columns.pop()

    def _close(self, depth: int) -> None:
        """End the paragraph, and all list items deeper than `depth`."""
        self._flush()
        del self.item_columns[depth:]
        self.paragraph_depth = _NO_PARAGRAPH
        self.is_item_empty = False

    def _text(self, text: str, depth: int) -> None:
        """Read a line of a paragraph: its first one, or a further one.

        text: the line from its first character that is not blank.
        depth: the depth of the line.
        """
        # An open paragraph goes on even if this line is indented less than the paragraph's list item
        # (a lazy continuation line of CommonMark).
        if self.paragraph_depth == _NO_PARAGRAPH:
            self._close(depth)
            self.paragraph_depth = depth
        # A code span may go on in the next line, so links are only read when the paragraph ends.
        if self.has_ticks:
            self._gather(text)
        else:
            self._links(text, masked=text, number=self.line_number)

    def _reads_rule_or_item(self, line: _PlacedLine) -> bool:
        """Read a rule, the underline of a heading, or an item. Return False for any other line."""
        # `- - -` would also be read as an item, so a rule is looked for first.
        if self._is_rule(line) or self._is_underline(line, "-"):
            self._close(line.depth)
            return True
        marker = _MARKER.match(line.text)
        # Four columns make code only outside of all items: in one, they make a deeper item.
        is_code = line.is_indented_as_code and not self.item_columns
        if marker is None or is_code:
            return False
        # "The year was" and below it "1990. It rained" is a paragraph of two lines.
        is_below_text = self.paragraph_depth == line.depth
        if is_below_text and not _interrupts_paragraph(line.text, marker):
            return False
        self._close(line.depth)
        self._read_items(line.text, marker, line.column)
        return True

    def _read_items(self, text: str, marker: re.Match[str], column: int) -> None:
        """Open the items that begin on a line, and read the text of the last one.

        `- - tea` opens two items.

        text: the line from its first marker.
        marker: the match of this marker.
        column: the column at which it begins.
        """
        item = self._open_items(text, marker, column)
        self.is_item_empty = item.is_empty
        if item.is_empty:
            return
        text = text[item.start :]
        depth = len(self.item_columns)

        # The item may begin with another block: fenced code, a rule or a quote.
        if self._opens_fence(_PlacedLine(text, item.column, depth, indent=0)):
            return
        if text[0] in "-*_" and _RULE.match(text):
            return
        if text[0] == ">":
            self._quote(depth, text)
            return

        # Else it begins with a paragraph.
        self._close(depth)
        self.paragraph_depth = depth
        if self.has_ticks:
            self._gather(text, is_item=True)
        else:
            self._inline(text, masked=text, number=self.line_number, is_item=True)
        # A heading in an item is read as its text, and no line below continues it.
        if text[0] == "#" and _HEADING.match(text):
            self._close(depth)

    def _open_items(self, text: str, marker: re.Match[str], column: int) -> _OpenedItem:
        """Open the items whose signs follow one another on a line. Return the last of them.

        marker: the match of the first sign.
        column: the column of the first sign.
        """
        position = 0
        while True:
            width = len(marker[0].rstrip(" \t"))
            after_marker = column + width
            text_column = _column(text[position + width : marker.end()], after_marker)
            is_empty = marker.end() == len(text)
            # After a sign and five blanks, code begins one blank behind the sign.
            is_code = text_column - after_marker > 4
            if is_empty or is_code:
                column = after_marker + 1
            else:
                column = text_column
            self.item_columns.append(column)
            position = marker.end()

            next_marker = None if is_code else _MARKER.match(text, position)
            # The text of an item may be a rule, which also begins with the sign of an item.
            if next_marker is None or _is_rule_at(text, position):
                return _OpenedItem(position, column, is_empty)
            marker = next_marker

    def _heading(self, match: re.Match[str], depth: int) -> None:
        """Read a heading `## Text`, a match of _HEADING. Only those outside items are results.

        depth: the depth of the line. 0 is outside all items.
        """
        self._close(depth)
        level = len(match[1])
        text = match[2].rstrip(" \t\r")
        if text[-1:] == "#":
            text = _CLOSING_SIGNS.sub("", text).rstrip(" \t")
        if not depth and not self.is_quoted:
            self.headings.append(Heading(level, text, self.line_number))
            if self.graph:
                self.sections.enter(text, level)
        self._links(text, masked=mask_code(text), number=self.line_number)

    def _opens_fence(self, line: _PlacedLine) -> bool:
        """Begin to skip fenced code if a line opens it. Returns whether it does."""
        if line.text[0] not in "`~":
            return False
        match = _FENCE.match(line.text)
        is_indented_code = line.is_indented_as_code and not line.depth
        if match is None or is_indented_code:
            return False
        self._close(line.depth)
        margin = self._margin(line.depth)
        # The code begins at the item's margin, unless its fence is indented far behind that.
        column = line.column if line.is_indented_as_code else margin
        fence = _Fence(match[1] or match[2], column, margin)
        self.take_line = partial(self._in_code, fence)
        return True

    def _in_code(self, fence: _Fence, line: str) -> bool:
        """Skip a line of fenced code. Return False if the code has ended before this line."""
        # A quick answer for most lines: outside of a list item, only a closing line ends the code.
        if not fence.margin and fence.mark not in line:
            return True
        code = line.lstrip(" \t")
        # A blank line belongs to the code, however little it is indented.
        if not code.strip():
            return True
        indent = _column(line[: len(line) - len(code)], column=0)
        if indent < fence.margin:
            # The list item that holds the code ends here.
            self.take_line = None
            return False
        code = code.rstrip(" \t\r")
        # At least as many signs as opened the code, and nothing else.
        is_closing = code.startswith(fence.mark) and not code.strip(fence.mark[0])
        # A line of such signs that is indented further is code itself.
        if is_closing and indent - fence.column < 4:
            self.take_line = None
        return True

    def _quote(self, depth: int, first_line: str | None = None) -> None:
        """Read a blockquote as a separate text, only for its links. The quote begins on this line.

        depth: the depth of the line.
        first_line: the part of the line that is in the quote; None for all of it.
        """
        line_index = self.line_number - self.lines_before - 1
        if first_line is None:
            first_line = self.lines[line_index]
        # A quote in a quote is read as text.
        if self.is_quoted:
            self._text(first_line, depth)
            return
        self._close(depth)

        # All lines of the quote are read at once, without the signs `>`.
        end = self._end_of_quote(line_index)
        lines = [first_line, *self.lines[line_index + 1 : end]]
        quoted_lines = [_QUOTED.sub("", line, count=1) for line in lines]
        quoted_reader = _Lines("\n".join(quoted_lines), self.relations, is_quoted=True)
        quoted_reader.read(quoted_lines, self.line_number - 1)
        # A paragraph at the end of the quote goes on in the lines below it.
        ends_in_paragraph = quoted_reader.paragraph_depth != _NO_PARAGRAPH
        self.paragraph_depth = _IN_QUOTE if ends_in_paragraph else _NO_PARAGRAPH

        # The main loop must skip the lines that were read here.
        next_line_number = self.line_number + end - line_index
        self.take_line = partial(self._was_quoted, next_line_number)

    def _end_of_quote(self, first_index: int) -> int:
        """Return the index of the first line behind a quote.

        first_index: the index of the line at which the quote begins.
        """
        margin = self._margin(len(self.item_columns))
        index = first_index + 1
        while index < len(self.lines):
            mark = _QUOTED.match(self.lines[index])
            # A line that is indented less ends the list item, and with it the quote in it.
            if mark is None or _column(mark[1], column=0) < margin:
                break
            index += 1
        return index

    def _was_quoted(self, next_line_number: int, line: str) -> bool:
        """Whether a line was read as part of the quote. Behind the quote, normal reading begins
        again.

        next_line_number: the number of the first line behind the quote.
        """
        if self.line_number < next_line_number:
            return True
        self.take_line = None
        return False

    def _without_comments(self, text: str) -> tuple[str, bool]:
        """Return a line without its comments, and whether it begins with a comment.

        `a <!-- b --> c` becomes `a  c`. A comment that is still open at the end of the line takes
        the next lines too.
        """
        parts: list[str] = []
        begins_with_comment = False
        code_spans = _code_spans(text)
        # The text before this position is in `parts`, or in a comment.
        taken_until = 0
        position = 0
        while opener := _SIGNS.search(text, position):
            position = opener.end()
            # A comment does not begin in code, nor by a sign that a backslash escapes.
            if opener[0][0] == "`":
                position = code_spans.get(opener.start(), position)
                continue
            if opener[0] not in _CLOSERS:
                continue
            closer = _CLOSERS[opener[0]]
            end = text.find(closer, position)
            # An HTML comment at the start of a line, if nothing closes it, takes all of the note.
            is_html_block = opener.start() == 0 and opener[0] == "<!--"
            if end < 0 and not is_html_block and not self._is_closed_later(closer):
                continue

            # The text before the comment counts, the comment does not.
            begins_with_comment = begins_with_comment or opener.start() == 0
            parts.append(text[taken_until : opener.start()])
            if end < 0:
                self.take_line = partial(self._in_comment, closer)
                return "".join(parts), begins_with_comment
            position = end + len(closer)
            taken_until = position
        parts.append(text[taken_until:])
        return "".join(parts), begins_with_comment

    def _is_closed_later(self, closer: str) -> bool:
        """Whether a line after this one holds the end of a comment."""
        if closer not in self.last_lines_with_closer:
            indexes = (index for index, line in enumerate(self.lines) if closer in line)
            self.last_lines_with_closer[closer] = max(indexes, default=-1)
        return self.last_lines_with_closer[closer] > self.line_number - self.lines_before - 1

    def _in_comment(self, closer: str, line: str) -> bool:
        """Read a line of an open comment, up to the comment's end and the text after it.

        closer: the end of the comment, such as `-->`.
        """
        self._flush()
        end = line.find(closer)
        if end >= 0:
            self.take_line = None
            text_after, _ = self._without_comments(line[end + len(closer) :])
            self._inline(text_after, masked=mask_code(text_after), number=self.line_number)
        return True

    def _gather(self, text: str, *, is_item: bool = False) -> None:
        """Keep a line of a paragraph until its last line is known. `_flush` reads them all.

        is_item: whether the line is the first one of a list item.
        """
        if not self.gathered_lines:
            self.gathered_number = self.line_number
            self.is_item_gathered = is_item
        self.gathered_lines.append(text)

    def _flush(self) -> None:
        """Read the gathered lines of a paragraph, which ends here."""
        if not self.gathered_lines:
            return
        raw_lines = self.gathered_lines
        self.gathered_lines = []
        text = "\n".join(raw_lines)
        if not self.is_item_gathered and not holds_link(text):
            return
        # Only the first line can be that of an item.
        is_item = self.is_item_gathered
        number = self.gathered_number
        for raw_line, masked in zip(raw_lines, mask_code(text).split("\n"), strict=True):
            self._inline(raw_line, masked, number, is_item=is_item)
            is_item = False
            number += 1

    def _inline(self, text: str, masked: str, number: int, *, is_item: bool = False) -> None:
        """Read a line of text.

        masked: the line with its code spans replaced by NUL.
        number: its number in the file.
        is_item: whether the line is the first one of a list item.
        """
        if is_item and not self.is_quoted:
            item_text = text.rstrip(" \t\r")
            if self._reads_item(item_text, masked.rstrip(" \t\r"), number):
                return
        self._links(text, masked, number)

    def _reads_item(self, text: str, masked: str, number: int) -> bool:
        """Read an item's first line. Return True if its links need no reading any more.

        A relation is kept with all links of its item, and an empty item has none.

        text: the line without the item's marker.
        masked: the same with its code spans replaced by NUL.
        number: the number of the line in the file.
        """
        if not text:
            return True
        section = self.sections.current
        # A text in backticks is exact, and is on one line.
        if section in _GRAPH_SECTIONS and text[0] != "`":
            text, masked = self._with_further_lines(text, masked, number)

        # An item may be kept as a list item, and also as a relation or an observation.
        if self.items is not None:
            self.items.append(ListItem(section, number, text))
        may_be_relation = not self.graph or section == "relations"
        if may_be_relation and self._reads_relation_item(text, masked, number):
            return True
        if not self.graph or section == "observations":
            self._read_observation_item(text, masked, number)
        return False

    def _reads_relation_item(self, text: str, masked: str, number: int) -> bool:
        """Keep the relation of an item such as `part_of [[Shop]]`. Return False for other items.

        text: the text of the item.
        masked: the text with its code spans replaced by NUL.
        number: the number of its line in the file.
        """
        # An item that begins with a bracket begins with a category or a link.
        if text[0] == "[" or not ("[[" in text or '`"' in text):
            return False
        relation = read_relation(text, number)
        if relation is None:
            return False
        self.relations.add_item(relation, text, masked)
        return True

    def _read_observation_item(self, text: str, masked: str, number: int) -> None:
        """Keep the observation of a list item, if the item is an observation.

        Items with a category or a tag are observations: `[idea] Sell tea`, `Sell tea #shop`. In
        project `graph`, every item of the section `Observations` is an observation.

        text: the first line of the item.
        masked: the line with its code spans replaced by NUL, so that a `#` in code is not a tag.
        number: the number of the line in the file.
        """
        if text[0] == "`":
            # A text that Markdown would change is coded as JSON in backticks: `` `"# tea"` ``.
            decoded = coded_text(text)
            if decoded is not None:
                # Everything in the decoded text counts, also a tag.
                text = decoded
                masked = decoded
        # In project `graph`, `_reads_item` has added the further lines before.
        if not self.graph:
            text, masked = self._with_further_lines(text, masked, number)
        item = observation(text, masked, number)
        if item is None:
            item = tagged(text, masked, number, is_any=self.graph)
        if item is not None:
            self.observations.append(item)

    def _with_further_lines(self, text: str, masked: str, number: int) -> tuple[str, str]:
        """Return an item's text and its masked form with the further lines of the item.

        `- [idea] Sell` and the indented line `  tea` below it become `[idea] Sell tea`.
        """
        further_lines: list[str] = []
        for line_index in range(number - self.lines_before, len(self.lines)):
            indented_line = self.lines[line_index]
            if indented_line[:1] not in _BLANK or not indented_line.strip():
                break
            line = indented_line.strip(" \t\r")
            if _ends_text(line):
                break
            # A line `key:: value` is about the item. It is not a part of its text.
            if not _PROPERTY.match(line):
                further_lines.append(line)
        if not further_lines:
            return text, masked
        for line in further_lines:
            # Chinese and Japanese have no blanks between words, and get none at a line break.
            is_spaced = not (_is_unspaced(text[-1]) and _is_unspaced(line[0]))
            text += f" {line}" if is_spaced else line
        return text, mask_code(text)

    def _links(self, text: str, masked: str, number: int) -> None:
        """Keep the links of a line as relations.

        masked: the line with its code spans replaced by NUL.
        number: the number of the line in the file.
        """
        if self.has_links and holds_link(masked):
            self.relations.add_links(text, masked, number)


def _ends_text(line: str) -> bool:
    """Whether a line cannot continue the text above it: it begins a heading, a list, code and so on.

    line: the line without its indentation.
    """
    if line[0] == ">" or _has_comment_sign(line):
        return True
    for pattern in _BLOCK_STARTS.get(line[0], ()):
        if pattern.match(line):
            return True
    marker = _MARKER.match(line)
    return marker is not None and _interrupts_paragraph(line, marker)


def _interrupts_paragraph(text: str, marker: re.Match[str]) -> bool:
    """Whether an item begins a list even directly below a line of text.

    It does if it has text, and its number, if any, is 1.

    text: the line, which begins with the item's sign.
    marker: the match of _MARKER, the item's sign.
    """
    has_text = marker.end() < len(text)
    # A sign such as `-` counts as the number 1.
    number = int(marker[1] or 1)
    return has_text and number == 1


def _has_comment_sign(line: str) -> bool:
    """Whether a line has a sign that may open a comment."""
    return "<!--" in line or "%%" in line


def _is_rule_at(text: str, column: int) -> bool:
    """Whether a line is a rule from `column` on: one sign, such as `-`, and blanks to the end."""
    # Cheaper than the pattern, and false for nearly all lines.
    is_one_sign = column >= len(text.rstrip(f"{text[column]} \t"))
    return is_one_sign and _RULE.match(text, column) is not None


def _column(blanks: str, column: int) -> int:
    """Return the column after a run of blanks and tabs that begins at `column`.

    A tab reaches to the next column that is a multiple of 4.
    """
    if "\t" not in blanks:
        return column + len(blanks)
    for sign in blanks:
        if sign == "\t":
            column += 4 - column % 4
        else:
            column += 1
    return column


def mask_code(text: str) -> str:
    """Replace each character of the code spans in `text` by NUL, except line breaks.

    So patterns find nothing in code, and what they find has the same place in `text`.

    `` a `b` c `` becomes `a \\0\\0\\0 c`.
    """
    if "`" not in text:
        return text
    parts = []
    position = 0
    # The spans come in the order of the text, and do not overlap.
    for start, end in _code_spans(text).items():
        parts.append(text[position:start])
        # A span may reach over a line break. It stays, so that the lines can be told apart.
        code_lines = text[start:end].split("\n")
        parts.append("\n".join("\0" * len(line) for line in code_lines))
        position = end
    return "".join(parts) + text[position:]


def _code_spans(text: str) -> dict[int, int]:
    """Return the end of each code span by its start, in the order of the text.

    A span reaches from a run of backticks to the next run of the same length, which it includes.
    """
    if "`" not in text:
        return {}
    runs = [match.span() for match in re.finditer(r"`+", text)]
    # Length of a run → the starts of such runs from here on, the next one last. So `pop` takes off
    # those that are behind us, and no run is looked at twice.
    starts_ahead = defaultdict[int, list[int]](list)
    for start, end in reversed(runs):
        starts_ahead[end - start].append(start)

    spans: dict[int, int] = {}
    span_end = 0
    for start, end in runs:
        # Backticks of another number in a span are code.
        if start < span_end:
            continue
        if is_escaped(text, start):
            # The first backtick is text, because of the backslash. The others may open a span.
            start += 1
        length = end - start
        closing_starts = starts_ahead[length]
        while closing_starts and closing_starts[-1] < end:
            closing_starts.pop()
        if length and closing_starts:
            span_end = closing_starts[-1] + length
            spans[start] = span_end
    return spans


def _is_unspaced(char: str) -> bool:
    """Whether a character is Chinese or Japanese, so that a line break does not mean a blank."""
    return not char.isascii() and re.match(_UNSPACED, char) is not None
