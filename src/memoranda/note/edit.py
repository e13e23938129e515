"""Edits as values: each turns a file's text into another and leaves every byte it is not about.

Source: contract 000a, 6 (StrReplace, InsertLine); contract 000b, 7, edit_note (the others).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from memoranda.errors import CountMismatch, InvalidInput, LineOutOfRange, SectionError
from memoranda.note.frontmatter import is_crlf, parse, set_keys, split
from memoranda.note.headings import (
    ShownHeading,
    headings_named,
    level_and_title,
    shown_headings,
    shown_title,
)

# Blank lines between two blocks.
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)+")
# Characters compared in one search and replace, before it is refused.
_MOST_COMPARED_CHARACTERS = 50_000_000


@dataclass(frozen=True, slots=True)
class Edited:
    """The whole new text, its first changed line (from 1), and how often the edit applied."""

    text: str
    line: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True)
class _TextEdit:
    text: str


@dataclass(frozen=True, slots=True)
class _SectionEdit:
    """About the text under the heading `section`, with or without `#`. `apply` raises SectionError
    when several headings match."""

    section: str
    text: str


@dataclass(frozen=True, slots=True)
class StrReplace:
    """Replace the one occurrence of `old` in the whole file (contract 000a, 6).

    The text is literal, but its line breaks match any line breaks of the file (amendment 4.4).
    """

    old: str
    new: str = ""

    def apply(self, text: str) -> Edited:
        """Raises InvalidInput for an empty `old`; CountMismatch unless it occurs once, `lines` then
        holds the first line of every occurrence, overlapping ones too."""
        if not self.old:
            raise InvalidInput(
                "No replacement was performed, old_str is empty. Give the exact text to replace."
            )
        places = occurrences(text, self.old)
        if len(places) != 1:
            lines = _lines_of(text, self.old, overlapping=True) or _lines_at(text, places)
            raise CountMismatch(len(places), 1, lines)
        start, end = places[0]
        new = with_breaks_of(text, start, self.new)
        return Edited(text[:start] + new + text[end:], text.count("\n", 0, start) + 1)


@dataclass(frozen=True, slots=True)
class InsertLine:
    """Put `text` after line `line`; 0 is before the first (contract 000a, 6).

    The text gets the line breaks of the file.
    """

    line: int
    text: str

    def apply(self, text: str) -> Edited:
        """The file ends in a newline afterwards. Raises LineOutOfRange."""
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if not 0 <= self.line <= len(lines):
            raise LineOutOfRange(self.line, len(lines))
        newline = line_break_at(text, sum(len(line) + 1 for line in lines[: self.line]))
        # `split` left the carriage return of each CRLF at the end of its line
        if lines and not text.endswith("\n"):
            lines[-1] += newline[:-1]
        new_text = _with_breaks(self.text.rstrip("\r\n"), newline)
        lines.insert(self.line, new_text + newline[:-1])
        return Edited("\n".join(lines) + "\n", self.line + 1)


class Append(_TextEdit):
    """Put `text` at the end, on a new line; a file without a final newline stays without."""

    def apply(self, text: str) -> Edited:
        return _inserted(text, len(text), self.text)


class Prepend(_TextEdit):
    """Put `text` directly after the frontmatter, on separate lines."""

    def apply(self, text: str) -> Edited:
        return _inserted(text, split(text).body_at, self.text, ends=True)


@dataclass(frozen=True, slots=True)
class FindReplace:
    """Replace every occurrence of `find`; there must be exactly `expected`.

    The text is literal, but its line breaks match any line breaks of the file, and `replace` gets
    the file's.
    """

    find: str
    replace: str
    expected: int = 1

    def apply(self, text: str) -> Edited:
        """Raises InvalidInput for an empty `find`, or when a header that could be read no longer
        could; CountMismatch."""
        if not self.find:
            raise InvalidInput(
                "Parameter `find_text` must not be empty. Give the exact text to replace."
            )
        places = occurrences(text, self.find)
        if len(places) != self.expected or not places:
            raise CountMismatch(len(places), self.expected, _lines_at(text, places))
        changed = _replaced(text, places, self.replace)
        if _has_header(text) and not _has_header(changed):
            raise InvalidInput(
                "This replacement would make the note's frontmatter unreadable, so nothing was changed. "
                "Leave the lines between the two --- valid YAML."
            )
        return Edited(changed, text.count("\n", 0, places[0][0]) + 1, len(places))


@dataclass(frozen=True, slots=True)
class ReplaceSection(_SectionEdit):
    """Replace the text under the heading, with its subsections except blank lines at its edges.

    The heading is named as written or as it is shown (amendment 4.5).

    keeps_subsections: leave the text from the first heading below on.
    """

    keeps_subsections: bool = False

    def apply(self, text: str) -> Edited:
        """Raises SectionError when no heading or several match."""
        newline, new_text = breaks(text, self.text)
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            raise SectionError(self.section, headings=sections.titles)
        start, end = sections.inside(heading, is_deep=not self.keeps_subsections)
        body = _without_heading(new_text, heading)
        blank = _BLANK_LINES.match(text, start, end)
        if blank:
            start = blank.end()
            body = body.lstrip("\r\n")
        before = text[:start]
        if text[start - 1] != "\n":
            before += newline
        if body and (end < len(text) or text[end - 1] == "\n"):
            body += newline
        return Edited(before + body + text[end:], before.count("\n") + 1)


class AppendToSection(_SectionEdit):
    """Put `text` at the end of the section under the heading, subsections included.

    Raises SectionError if the heading does not exist.
    """

    def apply(self, text: str) -> Edited:
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            raise SectionError(self.section, headings=sections.titles)
        return _inserted(text, sections.inside(heading)[1], self.text)


class InsertBeforeSection(_SectionEdit):
    """Put `text` directly before the line of the heading.

    Raises SectionError if it does not exist.
    """

    _is_after: ClassVar = False

    def apply(self, text: str) -> Edited:
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            raise SectionError(self.section, headings=sections.marked_titles)
        line = heading.line
        if self._is_after:
            line = heading.last_line + 1
        return _inserted(text, sections.offset(line), self.text)


class InsertAfterSection(InsertBeforeSection):
    """Put `text` directly after the last line of the heading `section`."""

    _is_after = True


class AddItem(_SectionEdit):
    """Put the list item `text` (one line) after the last item of the section, which is added if
    missing.
    """

    def apply(self, text: str) -> Edited:
        newline, new_text = breaks(text, self.text)
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            return _section_at_end(text, self.section, new_text, newline)
        start, end = sections.inside(heading)
        if text[start:end].strip():
            return _inserted(text, end, new_text)
        return _inserted(text, start, newline + new_text)


@dataclass(frozen=True, slots=True)
class SetKeys:
    """Set frontmatter keys, or take them out with REMOVE; every other byte stays. `order` says
    behind which keys a new one goes."""

    changes: Mapping[str, Any]
    order: Sequence[str] = ()

    def apply(self, text: str) -> Edited:
        """Raises ValueError when the header there is not valid YAML."""
        changed = set_keys(text, self.changes, self.order)
        return Edited(changed, _first_difference(text, changed), len(self.changes))


class Rewrite(_TextEdit):
    """Replace the whole text."""

    def apply(self, text: str) -> Edited:
        return Edited(self.text, _first_difference(text, self.text))


Edit = (
    StrReplace
    | InsertLine
    | Append
    | Prepend
    | FindReplace
    | ReplaceSection
    | AppendToSection
    | InsertBeforeSection
    | InsertAfterSection
    | AddItem
    | SetKeys
    | Rewrite
)


class _Sections:
    """The headings of a text, and where the text under each begins and ends."""

    def __init__(self, text: str):
        self.text = text
        self.headings = shown_headings(text)
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    @property
    def titles(self) -> list[str]:
        """The headings as a caller can name them."""
        return [heading.title for heading in self.headings]

    @property
    def marked_titles(self) -> list[str]:
        """The headings with the signs of their level."""
        return [f"{'#' * heading.level} {heading.title}" for heading in self.headings]

    def offset(self, line: int) -> int:
        """Where line `line` begins; the end of the text for a line after the last."""
        if line <= len(self._starts):
            return self._starts[line - 1]
        return len(self.text)

    def find(self, section: str) -> ShownHeading | None:
        """The one heading that `section` names, or None.

        Raises SectionError if there are several.
        """
        headings = headings_named(self.headings, section)
        if len(headings) > 1:
            raise SectionError(section, lines=[heading.line for heading in headings])
        if headings:
            return headings[0]
        return None

    def inside(self, heading: ShownHeading, *, is_deep: bool = True) -> tuple[int, int]:
        """Start and end of the text under a heading, blank lines at its end left out.

        is_deep: whether its subsections belong to it.
        """
        start = self.offset(heading.last_line + 1)
        next_line = len(self._starts) + 1
        for heading_below in self.headings:
            is_outside = not is_deep or heading_below.level <= heading.level
            if heading_below.line > heading.line and is_outside:
                next_line = heading_below.line
                break
        end = self.offset(next_line)
        text = self.text[start:end].rstrip(" \t\r\n")
        if not text:
            return start, start
        line_end = self.text.find("\n", start + len(text), end)
        if line_end < 0:
            return start, end
        return start, line_end + 1


def _without_heading(new_text: str, heading: ShownHeading) -> str:
    """Remove the heading at the start of `new_text` if it repeats `heading`, and breaks at its end."""
    first = next(iter(shown_headings(new_text)), None)
    if first is None or first.level != heading.level or first.title != heading.title:
        return new_text.rstrip("\r\n")
    lines = new_text.split("\n")
    if any(line.strip() for line in lines[: first.line - 1]):
        return new_text.rstrip("\r\n")
    return "\n".join(lines[first.last_line :]).rstrip("\r\n")


def _section_at_end(text: str, section: str, new_text: str, newline: str) -> Edited:
    level, name = level_and_title(section)
    body = _without_heading(new_text, ShownHeading(level or 2, name, shown_title(name), 1, 1))
    before = text
    if len(text) > split(text).body_at or (text and not text.endswith("\n")):
        before += ("" if text.endswith("\n") else newline) + newline
    added = (f"{'#' * (level or 2)} {name}{newline}" + (newline + body if body else "")).rstrip(
        "\r\n"
    )
    if not text or text.endswith("\n"):
        ends = newline
    else:
        ends = ""
    return Edited(before + added + ends, before.count("\n") + 1)


def _inserted(text: str, offset: int, new_text: str, ends: bool = False) -> Edited:
    """Whole lines put in before `offset`, the start of a line or the end of the text. With
    `ends` they end in a line break, though the line before them has none."""
    newline, new_text = breaks(text, new_text)
    is_line = text[:offset] in ("", "\ufeff") or text[offset - 1] == "\n"
    if is_line:
        before = text[:offset]
    else:
        before = text[:offset] + newline
    if (is_line or ends) and not new_text.endswith("\n"):
        tail = newline
    else:
        tail = ""
    return Edited(before + new_text + tail + text[offset:], before.count("\n") + 1)


def occurrences(text: str, part: str) -> list[tuple[int, int]]:
    """Start and end of each occurrence of `part`. If `part` does not occur, line breaks may differ.

    Occurrences do not overlap.
    """
    if part in text or "\n" not in part:
        return _places(text, part)
    # Search with all line breaks alike, then map the places back to this text.
    at_breaks = [offset - number for number, offset in enumerate(_offsets(text, "\r\n"))]
    unix_text = text.replace("\r\n", "\n")
    places = _places(unix_text, part.replace("\r\n", "\n"))
    return [
        (begin + bisect_left(at_breaks, begin), end + bisect_left(at_breaks, end))
        for begin, end in places
    ]


def _places(text: str, part: str) -> list[tuple[int, int]]:
    return [(offset, offset + len(part)) for offset in _offsets(text, part)]


def _offsets(text: str, part: str) -> Iterator[int]:
    """Where `part` begins in `text`; occurrences do not overlap."""
    offset = text.find(part)
    while offset >= 0:
        yield offset
        offset = text.find(part, offset + len(part))


def line_break_at(text: str, offset: int) -> str:
    """The break of the line at `offset`, or of the line before it: LF or CRLF."""
    line_end = text.find("\n", offset)
    if line_end < 0:
        line_end = text.rfind("\n", 0, offset)
    if line_end > 0 and text[line_end - 1] == "\r":
        return "\r\n"
    return "\n"


def with_breaks_of(text: str, offset: int, new_text: str) -> str:
    """Give `new_text` the line breaks that `text` has at `offset`.

    It stays unchanged if `text` has one line only.
    """
    if "\n" not in text:
        return new_text
    return _with_breaks(new_text, line_break_at(text, offset))


def breaks(text: str, new_text: str) -> tuple[str, str]:
    """The line break to insert into `text`, and `new_text` with its line breaks made alike."""
    if not is_crlf(text):
        return "\n", new_text
    return "\r\n", _with_breaks(new_text, "\r\n")


def _with_breaks(new_text: str, newline: str) -> str:
    return new_text.replace("\r\n", "\n").replace("\n", newline)


def _replaced(text: str, places: Sequence[tuple[int, int]], replacement: str) -> str:
    parts = []
    last = 0
    for start, end in places:
        parts += [text[last:start], with_breaks_of(text, start, replacement)]
        last = end
    return "".join([*parts, text[last:]])


def _lines_at(text: str, places: Sequence[tuple[int, int]]) -> list[int]:
    """The line of each place, from 1."""
    lines = []
    line = 1
    last = 0
    for start, _ in places:
        line += text.count("\n", last, start)
        last = start
        lines.append(line)
    return lines


def _has_header(text: str) -> bool:
    yaml_text = split(text).yaml
    try:
        return yaml_text is not None and parse(yaml_text) is not None
    except ValueError:
        return False


def _lines_of(text: str, part: str, *, overlapping: bool = False) -> list[int]:
    """The line of each occurrence, from 1, several times if several begin on it."""
    lines: list[int] = []
    line = 1
    last = 0
    offset = text.find(part)
    # Text that repeats itself for megabytes would take hours to list: then the first hits must do.
    most_lines = max(1000, _MOST_COMPARED_CHARACTERS // len(part))
    while offset >= 0 and len(lines) < most_lines:
        line += text.count("\n", last, offset)
        lines.append(line)
        last = offset
        offset = text.find(part, offset + (1 if overlapping else len(part)))
    return lines


def _first_difference(before: str, after: str) -> int:
    if before == after:
        return 1
    old = before.split("\n")
    new = after.split("\n")
    differing = (number for number, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b)
    return next(differing, min(len(old), len(new)) + 1)
