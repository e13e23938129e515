"""The knowledge graph as values, and an entity of it as a note: exact text in one line, file names,
changes by lines.

Source: contract 002, 5. Reading items is note/grammar.py's and note/links.py's; this is the
writing.
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
# Signs at the beginning of a line that Markdown would read.
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
# Bytes of a name that is a file's name as it is; a longer one is cut and numbered.
_FILE_BYTES = 120
_CUT_BYTES = 80
# A list sign with the blanks around it.
_MARKER = lazy_pattern(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]*")
# The line that opens or closes fenced code.
_FENCE = lazy_pattern(r"[ \t]*(`{3,}|~{3,})")
# A lone CR ends none
_LINES = lazy_pattern(r"[^\n]*\n|[^\n]+")
# A line that ends a paragraph: heading, quote or fence.
_BLOCK_START = lazy_pattern(r"[ ]{0,3}(?:#{1,6}(?:[ \t]|$)|>|`{3}|~{3})")


class Entity(NamedTuple):
    """An entity with its observations."""

    name: str
    type: str
    observations: tuple[str, ...] = ()


class EntityKey(NamedTuple):
    """One entity without its observations. `order` tells its place in the graph and outlives other
    entities; `handle` is the graph's own; `project` is set when several are looked at together."""

    order: tuple[Any, ...]
    name: str
    type: str
    handle: Any
    project: str | None = None


class GraphRelation(NamedTuple):
    """A directed relation between two names.

    order: its place in the graph, which is not part of its identity. The first value is the place
        of its source, the last its place there.
    """

    source: str
    target: str
    type: str
    order: tuple[Any, ...] = ()

    @property
    def triple(self) -> tuple[str, str, str]:
        """The key that two equal relations share."""
        return self.source, self.target, self.type


def observation_item(text: str) -> str:
    """`text` as the text of a list item: plain if it reads back unchanged, otherwise coded (5.2)."""
    is_plain = _is_tidy(text) and text[0] not in _NO_START and not _NUMBERED.match(text)
    if is_plain and (text[0] != "[" or _CATEGORY.match(text)):
        return text
    return code_span_of(text)


def relation_item(type: str, target: str) -> str:
    """A relation as the text of a list item, `TYPE TARGET` (5.2)."""
    is_quotable = _is_tidy(type) and _NO_QUOTED_TYPE.isdisjoint(type)
    if _BARE_TYPE.fullmatch(type):
        kind = type
    elif is_quotable:
        kind = f'"{type}"'
    else:
        kind = code_span_of(type)
    if _is_tidy(target) and _NO_TARGET.isdisjoint(target) and "::" not in target:
        item = f"{kind} [[{target}]]"
        relation = read_relation(item, 0)
        if relation is not None and (relation.type, relation.target, relation.project) == (
            type,
            target,
            None,
        ):
            return item
    return f"{kind} {code_span_of(target)}"


def code_span_of(text: str) -> str:
    """One code span that holds `text` as a JSON string of one line."""
    inner = _ESCAPED.sub(
        lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(text, ensure_ascii=False)
    )
    return f"`{inner}`"


def _is_tidy(text: str) -> bool:
    """Whether a text has no blanks at its edges, no control characters and no comment marks.

    False for an empty text.
    """
    is_trimmed = bool(text) and text == text.strip()
    return (
        is_trimmed and not _CONTROL_OR_BOM.search(text) and "<!--" not in text and "%%" not in text
    )


def file_stem(name: str, is_taken: Callable[[str], bool]) -> str:
    """The file's name without `.md` (5.3): the entity's own where every system takes it and
    `is_taken` says no.
    """
    is_file_name = (
        0 < len(name.encode()) <= _FILE_BYTES
        and not _NO_FILE_SIGN.search(name)
        and name == name.strip()
        and "." not in (name[0], name[-1])
        and name.partition(".")[0].rstrip().lower() not in _DEVICES
        and unicodedata.is_normalized("NFC", name)
    )
    if is_file_name and not is_taken(name):
        return name
    digest = sha256(name.encode())[:8]
    clean_name = cut_bytes(_NO_FILE_SIGN.sub("-", unicodedata.normalize("NFC", name)), _CUT_BYTES)
    stem = f"{clean_name.strip().strip('.').strip() or 'entity'}-{digest}"
    free = stem
    for number in count(2):
        if not is_taken(free):
            break
        free = f"{stem}-{number}"
    return free


def folded_name(stem: str) -> str:
    """Two file names with equal forms are one on some system."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", stem).casefold())


def moment(microseconds: int) -> str:
    """A time since 1970 as `created_at` has it: always six digits of fraction."""
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
    """The file of a new entity (5.1), of a placeholder when `type` is None (5.4). `created` in
    microseconds since 1970; relations are (type, target); `other_keys` are further keys."""
    kind: dict[str, Any] = {"placeholder": True} if type is None else {"type": type}
    header = {"id": id, "title": name, **kind, "created_at": moment(created), **(other_keys or {})}
    return f"---\n{frontmatter.dump(header)}---\n{sections(None if type is None else observations, relations)}"


def sections(observations: Iterable[str] | None, relations: Iterable[tuple[str, str]]) -> str:
    """The body of an entity's file; no section of observations for None. Relations are (type,
    target).
    """
    observed = "".join(f"- {observation_item(observation)}\n" for observation in observations or ())
    related = "".join(f"- {relation_item(*relation)}\n" for relation in relations)
    if observations is None:
        text = ""
    else:
        text = "\n## Observations\n" + (observed and f"\n{observed}")
    return text + (related and f"\n## Relations\n\n{related}")


class EntityText:
    """The text of a note, and the items of its two sections; changes leave every other line as it
    is.
    """

    def __init__(self, text: str):
        self.text = text
        self._read_structure()

    def _read_structure(self) -> None:
        self.body_at = frontmatter.split(self.text).body_at
        self._items: list[ListItem] = []
        self._headings: list[Heading] = scan(
            self.text, self.body_at, graph=True, items=self._items
        )[2]
        self._starts = {line - 1 for _, line, _ in self._items} | {
            heading.line - 1 for heading in self._headings
        }

    @property
    def observations(self) -> list[str]:
        """The texts of the items of `Observations`, in order."""
        return list(self.observed_lines().values())

    def observed_lines(self) -> dict[int, str]:
        """The texts of observations by the line they are in, counted from 1."""
        observed = {line: text for section, line, text in self._items if section == OBSERVATIONS}
        coded_texts = {line: coded_text(text) for line, text in observed.items() if text[0] == "`"}
        return observed | {line: text for line, text in coded_texts.items() if text is not None}

    @property
    def relations(self) -> list[Relation]:
        """The relations among the items of `Relations`, in order."""
        items = [(line, text) for section, line, text in self._items if section == RELATIONS]
        relations = [
            (text, read_relation(text, line))
            for line, text in items
            if text[0] != "[" and ("[[" in text or '`"' in text)
        ]
        return [
            relation
            for text, relation in relations
            if relation is not None and (relation.target or "`" in text)
        ]

    def add_observations(self, texts: Sequence[str]) -> None:
        """Put items after the last one of `Observations`. Raises ValueError when they would not
        read back.
        """
        all_observations = [*self.observations, *texts]
        self._add(OBSERVATIONS, [observation_item(text) for text in texts])
        _agree(self.observations, all_observations)

    def add_relations(self, relations: Iterable[tuple[str, str]]) -> None:
        """Put items after the last one of `Relations`; they are (type, target). Raises ValueError
        as above.
        """
        pairs = list(relations)
        all_pairs = [*self._pairs(), *pairs]
        self._add(RELATIONS, [relation_item(*pair) for pair in pairs])
        _agree(self._pairs(), all_pairs)

    def drop_observations(self, texts: set[str]) -> None:
        """Take out every item of `Observations` that says one of `texts`. Raises ValueError as
        above.
        """
        before = self.observed_lines()
        self._drop({line for line, text in before.items() if text in texts})
        _agree(self.observations, [text for text in before.values() if text not in texts])

    def drop_relations(self, is_dropped: Callable[[Relation], bool]) -> None:
        """Take out the items of `Relations` for which `is_dropped`. Raises ValueError when others
        would change.
        """
        before = self.relations
        dropped_lines = {relation.line for relation in before if is_dropped(relation)}
        self._drop(dropped_lines)
        _agree(
            self._pairs(),
            [
                (relation.type, relation.target)
                for relation in before
                if relation.line not in dropped_lines
            ],
        )

    def _pairs(self) -> list[tuple[str, str]]:
        return [(relation.type, relation.target) for relation in self.relations]

    @property
    def keys(self) -> set[str]:
        """The keys of the header; none for one that cannot be read."""
        try:
            return {*frontmatter.parse(frontmatter.split(self.text).yaml or "")}
        except ValueError:
            return set()

    def set_keys(self, changes: dict[str, Any], order: Sequence[str] = ()) -> None:
        """Set keys of the header, as `frontmatter.set_keys`. Raises ValueError when it cannot be
        read.
        """
        self.text = frontmatter.set_keys(self.text, changes, order)
        self._read_structure()

    def make_entity(self, type: str, created: int) -> None:
        """Turn a placeholder into an entity (5.4), with the heading `Observations`. Raises
        ValueError when its header cannot be read."""
        entity_keys = {
            "placeholder": frontmatter.REMOVE,
            "type": type,
            "created_at": moment(created),
        }
        self.set_keys(entity_keys, ("id", "title", "type"))
        if self._heading(OBSERVATIONS) is None:
            self._add(OBSERVATIONS, [])

    def _heading(self, section: str) -> Heading | None:
        return next(
            (heading for heading in self._headings if heading.text.casefold() == section), None
        )

    def _add(self, section: str, items: Sequence[str]) -> None:
        """Put items at the end of a section, which is made if the note has none of its name."""
        lines = _LINES.findall(self.text)
        if frontmatter.is_crlf(self.text):
            newline = "\r\n"
        else:
            newline = "\n"
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += newline
        new_lines = [f"- {item}" for item in items]
        item_lines = [line for name, line, _ in self._items if name == section]
        heading = self._heading(section)
        if item_lines:
            line_index = _end(max(item_lines) - 1, lines, self._starts)
        elif heading:
            line_index, new_lines = self._below_text(heading, lines, new_lines)
        else:
            line_index, new_lines = self._as_new_section(section, lines, new_lines)
        lines[line_index:line_index] = [line + newline for line in new_lines]
        self.text = "".join(lines)
        self._read_structure()

    def _below_text(
        self, heading: Heading, lines: Sequence[str], new_lines: Sequence[str]
    ) -> tuple[int, list[str]]:
        """Where the first items of a section go, and their lines: below its text, between blank
        lines.
        """
        first = heading.line - 1
        later_headings = [
            later_heading.line - 1
            for later_heading in self._headings
            if later_heading.line - 1 > first
        ]
        end = min(later_headings, default=len(lines))
        last = end - 1
        while last > first and not lines[last].strip():
            last -= 1
        blank_lines = end - last - 1
        if blank_lines:
            line_index = last + 2
            with_blanks = [*new_lines]
        else:
            line_index = last + 1
            with_blanks = ["", *new_lines]
        # One of the blank lines is used above the items: the next heading needs another.
        if end < len(lines) and blank_lines < 2:
            with_blanks.append("")
        return line_index, with_blanks

    def _as_new_section(
        self, section: str, lines: Sequence[str], new_lines: Sequence[str]
    ) -> tuple[int, list[str]]:
        """The index at which a new section goes, and its lines.

        Observations go above Relations, any other section to the end.
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
        return line_index, section_lines

    def _drop(self, numbers: set[int]) -> None:
        if not numbers:
            return
        lines = _LINES.findall(self.text)
        dropped_lines: set[int] = set()
        for number in numbers:
            start = number - 1
            dropped_lines.update(range(start, _end(start, lines, self._starts)))
        self.text = "".join(
            line for line_index, line in enumerate(lines) if line_index not in dropped_lines
        )
        self._read_structure()


def _end(line_index: int, lines: list[str], starts: set[int]) -> int:
    """The line after the last one of the item that begins in line `line_index` (both from 0)."""
    marker = _MARKER.match(lines[line_index])
    item = _ItemEnd(len(marker[0]) if marker else 0)
    end = line_index + 1
    for number in range(line_index + 1, len(lines)):
        line = lines[number]
        if number in starts or item.ends_before(line):
            break
        if line.strip():
            end = number + 1
    return end


class _ItemEnd:
    """Finds the end of a list's item whose text has the indentation `content`."""

    def __init__(self, content: int) -> None:
        self._content = content
        # The mark that opened a code block inside the item.
        self._fence = ""
        self._is_after_code = False
        self._is_after_blank = False

    def ends_before(self, line: str) -> bool:
        """Whether the next line of the note is not part of the item."""
        if not line.strip():
            self._is_after_blank = True
            return False
        indent = len(line) - len(line.lstrip(" \t"))
        is_inside = indent >= self._content or (line.startswith("\t") and self._content <= 4)
        if not is_inside:
            # A paragraph goes on without indentation, unless something ended it.
            is_ended = self._is_after_blank or self._is_after_code
            if is_ended or _BLOCK_START.match(line):
                return True
        self._note_fence(line, is_inside)
        self._is_after_blank = False
        return False

    def _note_fence(self, line: str, is_inside: bool) -> None:
        """Note where a code block begins and ends."""
        if is_inside:
            mark = _FENCE.match(line)
        else:
            mark = None
        if not mark:
            self._is_after_code = False
        elif self._fence == mark[1][:3]:
            self._fence = ""
            self._is_after_code = True
        elif not self._fence:
            self._fence = mark[1][:3]
            self._is_after_code = False


def _agree(actual: Sequence[object], expected: Sequence[object]) -> None:
    """Raise ValueError if a change does not read back as meant.

    An open comment or code block in the note could swallow it.
    """
    if list(actual) != list(expected):
        raise ValueError("an open comment, code block or nested list is in the way")
