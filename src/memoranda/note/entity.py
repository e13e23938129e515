"""Write the entities of the knowledge graph as notes, and change such notes line by line.

An entity has a name, a type, observations (texts) and relations to other names. Its note has a list
of observations under `## Observations`, and of relations under `## Relations`. A text that a list
item cannot hold is coded: written as a JSON string in a code span. A placeholder is the note of a
name that has relations but is not an entity yet. grammar.py and links.py read such notes.

Source: contract 002, 5, whose sections are in parentheses below.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from memoranda.note import frontmatter
from memoranda.note.grammar import ListItem, scan
from memoranda.note.links import coded_text, read_relation
from memoranda.note.model import Heading, Relation
from memoranda.text.checksum import sha256
from memoranda.text.pattern import lazy_pattern
from memoranda.text.unicode import CONTROL, cut_bytes

OBSERVATIONS = "observations"
RELATIONS = "relations"
_TITLES = {OBSERVATIONS: "Observations", RELATIONS: "Relations"}

# Signs that a line of Markdown would not keep.
_CONTROL_OR_BOM = lazy_pattern(f"[{CONTROL}\\ufeff]")
# Signs that are written as escapes inside a code span.
_ESCAPED = lazy_pattern("[`\x7f-\x9f\u2028\u2029\ufeff]")
# Signs that mean something in Markdown at the beginning of a text.
_NO_START = frozenset("-*+#>|<`~=_:%!\\^")
_CATEGORY = lazy_pattern(r"\[[^\[\]()]{2,}\] \S")
_NUMBERED = lazy_pattern(r"[0-9]+[.)](?:\s|$)")
_BARE_TYPE = lazy_pattern(r"[^\W\d][\w\-./:+]*")
# Signs that a quoted type cannot have.
_NO_QUOTED_TYPE = frozenset('"\\`[]')
# Signs that a link's target cannot have.
_NO_TARGET = frozenset("[]|#^`")

# Signs that some file system or link refuses in a name.
_NO_FILE_SIGN = lazy_pattern(rf'[/\\:*?"<>|#^\[\]`{CONTROL}]')
# Names that Windows keeps for devices.
_DEVICES = {"con", "prn", "aux", "nul"}
_DEVICES |= {f"com{digit}" for digit in range(1, 10)}
_DEVICES |= {f"lpt{digit}" for digit in range(1, 10)}
# How many bytes a name may have to be a file's name as it is. A longer name is cut to the second
# number, so that a digest fits behind it.
_FILE_BYTES = 120
_CUT_BYTES = 80
# A list sign with the blanks around it.
_MARKER = lazy_pattern(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]*")
# The line that opens or closes fenced code.
_FENCE = lazy_pattern(r"[ \t]*(`{3,}|~{3,})")
# The lines of a text. A CR without LF does not end a line.
_LINES = lazy_pattern(r"[^\n]*\n|[^\n]+")
# A line that ends a paragraph: heading, quote or fence.
_BLOCK_START = lazy_pattern(r"[ ]{0,3}(?:#{1,6}(?:[ \t]|$)|>|`{3}|~{3})")


class Entity(NamedTuple):
    """An entity with the texts of its observations.

    name: the title of its note.
    type: the type as written; it may be empty.
    observations: the texts of its observations, in order.
    """

    name: str
    type: str
    observations: tuple[str, ...] = ()


class EntityKey(NamedTuple):
    """An entity without its observations.

    order: a key by which the entities of a graph are sorted. It does not change when other entities
        are deleted.
    name: the name of the entity.
    type: its type as written; it may be empty.
    handle: the value by which the graph finds the entity.
    project: the project of the graph, None if there is only one graph.
    """

    order: tuple[Any, ...]
    name: str
    type: str
    handle: Any
    project: str | None = None


class GraphRelation(NamedTuple):
    """A relation from the name `source` to the name `target`.

    type: the kind of the relation, such as `part_of`.
    order: a key by which the relations of a graph are sorted. Its first value is the place of the
        source in the graph, its last value the place of the relation in the source's note.
    """

    source: str
    target: str
    type: str
    order: tuple[Any, ...] = ()

    @property
    def triple(self) -> tuple[str, str, str]:
        """The fields that make two relations equal."""
        return self.source, self.target, self.type


def observation_item(text: str) -> str:
    """Write an observation as the text of a list item (5.2).

    `likes tea` stays as it is. A text that would not read back unchanged, such as `# tea`, is coded:
    `` `"# tea"` ``.
    """
    if not _is_tidy(text):
        return code_span_of(text)
    begins_block = text[0] in _NO_START or _NUMBERED.match(text) is not None
    # `[idea] Sell` reads back as it is, category and all. `[x] Sell` would be a task.
    begins_with_brackets = text[0] == "[" and not _CATEGORY.match(text)
    if begins_block or begins_with_brackets:
        return code_span_of(text)
    return text


def relation_item(type: str, target: str) -> str:
    """Write a relation as the text of a list item, such as `likes [[Tea]]` (5.2).

    A type that is not one word is quoted: `"is fond of" [[Tea]]`. A type or target that would not
    read back unchanged is coded.
    """
    is_quotable = _is_tidy(type) and _NO_QUOTED_TYPE.isdisjoint(type)
    if _BARE_TYPE.fullmatch(type):
        kind = type
    elif is_quotable:
        kind = f'"{type}"'
    else:
        kind = code_span_of(type)
    is_linkable = _is_tidy(target) and _NO_TARGET.isdisjoint(target) and "::" not in target
    if is_linkable:
        item = f"{kind} [[{target}]]"
        # Read back, since a target may still mean something else in brackets.
        relation = read_relation(item, number=0)
        if relation is not None:
            read_back = (relation.type, relation.target, relation.project)
            if read_back == (type, target, None):
                return item
    return f"{kind} {code_span_of(target)}"


def code_span_of(text: str) -> str:
    """Write `text` as a JSON string in a code span, on one line."""
    json_text = json.dumps(text, ensure_ascii=False)
    escaped_text = _ESCAPED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json_text)
    return f"`{escaped_text}`"


def _is_tidy(text: str) -> bool:
    """Whether a text has no blanks at its edges, no control characters and no comment marks.

    False for an empty text.
    """
    if not text or text != text.strip():
        return False
    has_comment_mark = "<!--" in text or "%%" in text
    return not has_comment_mark and not _CONTROL_OR_BOM.search(text)


def file_stem(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return the name, without `.md`, for the file of a new entity (5.3).

    The entity's name is used if every system allows it as a file's name. If it does not, or the name
    is taken, the result is a cleaned and cut form with a digest: `a/b` becomes `a-b-c14cddc0`.

    is_taken: whether a file of this name exists.
    """
    if _is_file_name(name) and not is_taken(name):
        return name

    # The digest of the whole name keeps two names apart that look alike once they are cleaned.
    digest = sha256(name.encode())[:8]
    clean_name = _NO_FILE_SIGN.sub("-", unicodedata.normalize("NFC", name))
    short_name = cut_bytes(clean_name, _CUT_BYTES).strip().strip(".").strip()
    stem = f"{short_name or 'entity'}-{digest}"
    numbered_stem = stem
    for number in count(2):
        if not is_taken(numbered_stem):
            break
        numbered_stem = f"{stem}-{number}"
    return numbered_stem


def _is_file_name(name: str) -> bool:
    """Whether every system allows a name, with `.md` behind it, as the name of a file."""
    is_short_enough = 0 < len(name.encode()) <= _FILE_BYTES
    if not is_short_enough or _NO_FILE_SIGN.search(name) or name != name.strip():
        return False
    # A dot in front hides a file, and Windows removes one at the end.
    if name.startswith(".") or name.endswith("."):
        return False
    # Windows opens a device for `con` and for `con.txt`.
    if name.partition(".")[0].rstrip().lower() in _DEVICES:
        return False
    # macOS writes names in another Unicode form.
    return unicodedata.is_normalized("NFC", name)


def folded_name(stem: str) -> str:
    """Return a form that is equal for two names which some file system takes for the same file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", stem).casefold())


def moment(microseconds: int) -> str:
    """Write a number of microseconds since 1970 as `created_at` has it.

    The fraction always has six digits: `2026-01-31T12:00:00.000000Z`.
    """
    seconds, remaining_microseconds = divmod(microseconds, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{remaining_microseconds:06}Z"


def compose(
    id: str,
    name: str,
    type: str | None,
    created: int,
    observations: Iterable[str] = (),
    relations: Iterable[tuple[str, str]] = (),
    other_keys: dict[str, Any] | None = None,
) -> str:
    """Write the file of a new entity (5.1), or of a placeholder (5.4), and return its text.

    id: the id of the note.
    name: the name of the entity, which becomes the title.
    type: the type of the entity. None makes a placeholder.
    created: microseconds since 1970.
    observations: the texts of its observations.
    relations: (type, target) of each relation.
    other_keys: further keys of the header, or None.
    """
    header: dict[str, Any] = {"id": id, "title": name}
    if type is None:
        header["placeholder"] = True
        body = sections(observations=None, relations=relations)
    else:
        header["type"] = type
        body = sections(observations, relations)
    header["created_at"] = moment(created)
    header |= other_keys or {}
    return f"---\n{frontmatter.dump(header)}---\n{body}"


def sections(observations: Iterable[str] | None, relations: Iterable[tuple[str, str]]) -> str:
    """Return the body of an entity's file: a section of observations, and one of relations.

    observations: None for a body without the section; if empty, the section has no items.
    relations: (type, target) of each. If empty, the body has no section of them.
    """
    text = ""
    if observations is not None:
        text = "\n## Observations\n"
        items = "".join(f"- {observation_item(observation)}\n" for observation in observations)
        if items:
            text += f"\n{items}"
    items = "".join(f"- {relation_item(type, target)}\n" for type, target in relations)
    if items:
        text += f"\n## Relations\n\n{items}"
    return text


class EntityText:
    """The text of an entity's note. Its methods add and remove items of the two sections.

    All lines that a change does not concern stay as they are. The result is in `text`.

    body_at: where the body begins in `text`.
    """

    def __init__(self, text: str):
        self.text = text
        self._read_structure()

    def _read_structure(self) -> None:
        """Find the items and headings of the text, which has just changed."""
        self.body_at = frontmatter.split(self.text).body_at
        self._items: list[ListItem] = []
        structure = scan(self.text, self.body_at, graph=True, items=self._items)
        self._headings: list[Heading] = structure.headings
        # The indexes, from 0, of the lines that begin an item or a heading.
        self._starts = {item.line - 1 for item in self._items}
        self._starts |= {heading.line - 1 for heading in self._headings}

    @property
    def observations(self) -> list[str]:
        """The text of each item in the section `Observations`, in order."""
        return list(self.observed_lines().values())

    def observed_lines(self) -> dict[int, str]:
        """Return the text of each observation by its line, counted from 1."""
        text_by_line: dict[int, str] = {}
        for item in self._items:
            if item.section != OBSERVATIONS:
                continue
            text = item.text
            if text[0] == "`":
                decoded = coded_text(text)
                if decoded is not None:
                    text = decoded
            text_by_line[item.line] = text
        return text_by_line

    @property
    def relations(self) -> list[Relation]:
        """The relations among the items of `Relations`, in order."""
        relations: list[Relation] = []
        for item in self._items:
            may_be_relation = item.text[0] != "[" and ("[[" in item.text or '`"' in item.text)
            if item.section != RELATIONS or not may_be_relation:
                continue
            relation = read_relation(item.text, item.line)
            # Only a coded target may be empty.
            if relation is not None and (relation.target or "`" in item.text):
                relations.append(relation)
        return relations

    def add_observations(self, texts: Sequence[str]) -> None:
        """Put observations after the last one of `Observations`.

        Raises ValueError if they would not read back, for example because of an open comment.
        """
        all_observations = [*self.observations, *texts]
        self._add(OBSERVATIONS, [observation_item(text) for text in texts])
        _check_read_back(self.observations, all_observations)

    def add_relations(self, relations: Iterable[tuple[str, str]]) -> None:
        """Put relations, each (type, target), after the last one of `Relations`.

        Raises ValueError if they would not read back, for example because of an open comment.
        """
        pairs = list(relations)
        all_pairs = [*self._pairs(), *pairs]
        self._add(RELATIONS, [relation_item(*pair) for pair in pairs])
        _check_read_back(self._pairs(), all_pairs)

    def drop_observations(self, texts: set[str]) -> None:
        """Remove every item of `Observations` whose text is in `texts`.

        Raises ValueError if other observations would change.
        """
        before = self.observed_lines()
        self._drop({line for line, text in before.items() if text in texts})
        _check_read_back(self.observations, [text for text in before.values() if text not in texts])

    def drop_relations(self, is_dropped: Callable[[Relation], bool]) -> None:
        """Remove items from the section `Relations`.

        is_dropped: returns True for a relation to remove.

        Raises ValueError if other relations would change.
        """
        before = self.relations
        dropped_lines = {relation.line for relation in before if is_dropped(relation)}
        self._drop(dropped_lines)
        remaining_pairs = [
            (relation.type, relation.target)
            for relation in before
            if relation.line not in dropped_lines
        ]
        _check_read_back(self._pairs(), remaining_pairs)

    def _pairs(self) -> list[tuple[str, str]]:
        """Return the (type, target) of each relation, in order."""
        return [(relation.type, relation.target) for relation in self.relations]

    @property
    def keys(self) -> set[str]:
        """The keys of the header; empty if the header cannot be read."""
        try:
            return {*frontmatter.parse(frontmatter.split(self.text).yaml or "")}
        except ValueError:
            return set()

    def set_keys(self, changes: dict[str, Any], order: Sequence[str] = ()) -> None:
        """Set keys of the header as `frontmatter.set_keys` does.

        changes: the new value of each key; REMOVE takes the key out.
        order: the keys in the order in which the header has them, for the places of new keys.

        Raises ValueError if the header cannot be read.
        """
        self.text = frontmatter.set_keys(self.text, changes, order)
        self._read_structure()

    def make_entity(self, type: str, created: int) -> None:
        """Turn a placeholder into an entity (5.4), and add the heading `Observations`.

        type: the type of the entity, as it is written.
        created: microseconds since 1970.

        Raises ValueError if the header cannot be read.
        """
        entity_keys = {
            "placeholder": frontmatter.REMOVE,
            "type": type,
            "created_at": moment(created),
        }
        self.set_keys(entity_keys, order=("id", "title", "type"))
        if self._heading(OBSERVATIONS) is None:
            self._add(OBSERVATIONS, [])

    def _heading(self, section: str) -> Heading | None:
        """Return the first heading of a section, `observations` or `relations`, None without one."""
        for heading in self._headings:
            if heading.text.casefold() == section:
                return heading
        return None

    def _add(self, section: str, items: Sequence[str]) -> None:
        """Put items at the end of a section. A section that does not exist is added.

        items: the texts of the items.
        """
        lines = _LINES.findall(self.text)
        newline = "\r\n" if frontmatter.is_crlf(self.text) else "\n"
        # The new lines are put behind the last one, which may have no line break.
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += newline

        # Find the place: below the last item, else below the heading, else in a new section.
        new_lines = [f"- {item}" for item in items]
        item_lines = [item.line for item in self._items if item.section == section]
        heading = self._heading(section)
        if item_lines:
            # Lines of items count from 1, indexes from 0.
            last_item = max(item_lines) - 1
            insertion = _Insertion(_end(last_item, lines, self._starts), new_lines)
        elif heading:
            insertion = self._below_text(heading, lines, new_lines)
        else:
            insertion = self._as_new_section(section, lines, new_lines)
        index = insertion.line_index
        lines[index:index] = [line + newline for line in insertion.lines]
        self.text = "".join(lines)
        self._read_structure()

    def _below_text(
        self, heading: Heading, lines: Sequence[str], new_lines: Sequence[str]
    ) -> _Insertion:
        """Return how to insert the first items of a section: below its text, between blank lines.

        heading: the heading of the section.
        lines: the lines of the whole text.
        new_lines: the lines of the items.
        """
        # The section reaches from the line below its heading to the next heading. Lines of headings
        # count from 1, so `heading.line` is also the index of the line below.
        section_begin = heading.line
        headings_below = [other.line for other in self._headings if other.line > heading.line]
        section_end = min(headings_below) - 1 if headings_below else len(lines)

        # Its text ends before the blank lines at its end.
        text_end = section_end
        while text_end > section_begin and not lines[text_end - 1].strip():
            text_end -= 1
        blank_lines = section_end - text_end

        # A blank line is above the items: the first one that is there, or a new one.
        if blank_lines:
            line_index = text_end + 1
            inserted_lines = [*new_lines]
        else:
            line_index = text_end
            inserted_lines = ["", *new_lines]
        # Another one is below them, if a heading follows.
        if headings_below and blank_lines < 2:
            inserted_lines.append("")
        return _Insertion(line_index, inserted_lines)

    def _as_new_section(
        self, section: str, lines: Sequence[str], new_lines: Sequence[str]
    ) -> _Insertion:
        """Return how to insert a section with its items.

        Observations are inserted above Relations, and Relations at the end.

        lines: the lines of the whole text.
        new_lines: the lines of the items.
        """
        if section == OBSERVATIONS:
            relations_heading = self._heading(RELATIONS)
        else:
            relations_heading = None
        if relations_heading:
            line_index = relations_heading.line - 1
        else:
            line_index = len(lines)
        section_lines = ["## " + _TITLES[section]]
        if line_index > 0 and lines[line_index - 1].strip():
            section_lines.insert(0, "")
        if new_lines:
            section_lines += ["", *new_lines]
        if relations_heading:
            section_lines.append("")
        return _Insertion(line_index, section_lines)

    def _drop(self, first_lines: set[int]) -> None:
        """Remove the items that begin on these lines, counted from 1."""
        if not first_lines:
            return
        lines = _LINES.findall(self.text)
        dropped_indexes: set[int] = set()
        for first_line in first_lines:
            start = first_line - 1
            dropped_indexes.update(range(start, _end(start, lines, self._starts)))
        self.text = "".join(
            line for index, line in enumerate(lines) if index not in dropped_indexes
        )
        self._read_structure()


class _Insertion(NamedTuple):
    """Where to insert lines, and which.

    line_index: the index of the line before which they are inserted, from 0.
    lines: the lines, without line breaks.
    """

    line_index: int
    lines: list[str]


def _end(start: int, lines: list[str], starts: set[int]) -> int:
    """Return the index after the last line of the item that begins in line `start`.

    starts: the indexes of all lines that begin an item or a heading. All indexes count from 0.
    """
    marker = _MARKER.match(lines[start])
    item = _ItemEnd(len(marker[0]) if marker else 0)
    end = start + 1
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if index in starts or item.ends_before(line):
            break
        # Blank lines at its end are not part of the item.
        if line.strip():
            end = index + 1
    return end


class _ItemEnd:
    """Finds the end of a list item. `ends_before` gets each line after the first, in order."""

    def __init__(self, text_indent: int) -> None:
        """text_indent: the number of characters before the item's text, in its first line."""
        self._text_indent = text_indent
        # The first three signs of the line that opened the code block we are in, or "".
        self._fence = ""
        # Whether the last line closed a code block, or was blank.
        self._is_after_code = False
        self._is_after_blank = False

    def ends_before(self, line: str) -> bool:
        """Take the next line, and tell whether the item has ended before it.

        After `- Sell tea`, the line `  and coffee` is part of the item, and so is `and coffee`
        directly below it. A blank line before it, or another item, ends the item.
        """
        # The line after it decides whether a blank line is inside the item.
        if not line.strip():
            self._is_after_blank = True
            return False
        indent = len(line) - len(line.lstrip(" \t"))
        # `indent` counts a tab as one character, but it is as wide as four blanks.
        is_indented_by_tab = line.startswith("\t") and self._text_indent <= 4
        is_inside = indent >= self._text_indent or is_indented_by_tab
        if not is_inside:
            # A paragraph goes on without indentation, unless a blank line or code ended it.
            is_ended = self._is_after_blank or self._is_after_code
            if is_ended or _BLOCK_START.match(line):
                return True
        self._follow_code(line, is_inside)
        self._is_after_blank = False
        return False

    def _follow_code(self, line: str, is_inside: bool) -> None:
        """Keep track of whether a code block of the item is open.

        is_inside: whether the line is indented as the item's text is.
        """
        if is_inside:
            fence = _FENCE.match(line)
        else:
            fence = None
        if not fence:
            self._is_after_code = False
        # The same signs close the block. Between them, other signs are code.
        elif self._fence == fence[1][:3]:
            self._fence = ""
            self._is_after_code = True
        elif not self._fence:
            self._fence = fence[1][:3]
            self._is_after_code = False


def _check_read_back(actual: Sequence[object], expected: Sequence[object]) -> None:
    """Raise ValueError if the items read after a change differ from the expected ones.

    They differ if the change is inside an open comment or code block of the note.

    actual: the items that the changed text has.
    expected: the items that it should have.
    """
    if list(actual) != list(expected):
        raise ValueError("an open comment, code block or nested list is in the way")
