"""Edits of a file's text as values, such as `Append("tea")` or `StrReplace("tea", "milk")`.

The method `apply` of an edit takes the text of a file and returns the new text. All characters that
the edit does not concern stay as they are. A section is a heading and the text under it.

Source: contract 000a, 6 (StrReplace, InsertLine); contract 000b, 7, edit_note (the others).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
# A line without words.
_BLANK_LINE = re.compile(r"^[ \t]*\r?$", re.MULTILINE)
# A line that makes the lines above it a heading.
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*\r?$", re.MULTILINE)
# How many characters a search for overlapping occurrences may compare.
_MOST_COMPARED_CHARACTERS = 50_000_000
# In how many characters of a section's new text a repeated heading is looked for.
_BEGINNING = 10_000


@dataclass(frozen=True, slots=True)
class Edited:
    """The result of an edit.

    text: the whole new text.
    line: the first line that changed, from 1.
    count: how many places the edit changed.
    """

    text: str
    line: int = 1
    count: int = 1


class Place(NamedTuple):
    """The start and the end of a part of a text, as offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _TextEdit:
    """An edit that puts a text somewhere."""

    text: str


@dataclass(frozen=True, slots=True)
class _SectionEdit:
    """An edit of the section under a heading. `apply` raises SectionError if several match.

    section: the heading, with or without its `#`.
    text: the text to put there.
    """

    section: str
    text: str


@dataclass(frozen=True, slots=True)
class StrReplace:
    """Replace the one occurrence of `old` in the whole file (contract 000a, 6).

    `old` is not a pattern. Its line breaks match any line breaks of the file (amendment 4.4).

    new: the text to put in its place. Empty to remove `old`.
    """

    old: str
    new: str = ""

    def apply(self, text: str) -> Edited:
        """Replace `old` by `new`. Returns the text and the line where `new` begins.

        Raises InvalidInput for an empty `old`, and CountMismatch if it does not occur exactly once.
        The `lines` of CountMismatch are the first lines of all occurrences, overlapping ones too.
        """
        if not self.old:
            raise InvalidInput(
                "No replacement was performed, old_str is empty. Give the exact text to replace."
            )
        places = occurrences(text, self.old)
        if len(places) != 1:
            # `_lines_of` knows overlapping ones, too, but finds none with other line breaks.
            lines = _lines_of(text, self.old, overlapping=True) or _lines_at(text, places)
            raise CountMismatch(len(places), 1, lines)
        start, end = places[0]
        new = with_breaks_of(text, start, self.new)
        return Edited(text[:start] + new + text[end:], text.count("\n", 0, start) + 1)


@dataclass(frozen=True, slots=True)
class InsertLine:
    """Put `text` after line `line`, or at the beginning if `line` is 0 (contract 000a, 6).

    The text gets the line breaks of the file.
    """

    line: int
    text: str

    def apply(self, text: str) -> Edited:
        """Return the text with the lines inserted. It ends in a line break.

        Raises LineOutOfRange if the file has fewer lines than `line`.
        """
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if not 0 <= self.line <= len(lines):
            raise LineOutOfRange(self.line, len(lines))
        offset = sum(len(line) + 1 for line in lines[: self.line])
        newline = line_break_at(text, offset)
        # `split` left the CR of each CRLF at the end of its line, so new lines need it too.
        carriage_return = newline[:-1]
        if lines and not text.endswith("\n"):
            lines[-1] += carriage_return
        new_text = _with_breaks(self.text.rstrip("\r\n"), newline)
        lines.insert(self.line, new_text + carriage_return)
        return Edited("\n".join(lines) + "\n", self.line + 1)


class Append(_TextEdit):
    """Put `text` at the end, on a new line. A file without a final line break gets none."""

    def apply(self, text: str) -> Edited:
        return _inserted(text, len(text), self.text)


class Prepend(_TextEdit):
    """Put `text` directly after the frontmatter, on separate lines."""

    def apply(self, text: str) -> Edited:
        return _inserted(text, split(text).body_at, self.text, needs_break=True)


@dataclass(frozen=True, slots=True)
class FindReplace:
    """Replace every occurrence of `find` by `replace`.

    `find` is not a pattern. Its line breaks match any line breaks of the file, and `replace` gets
    the line breaks of the file.

    expected: the number of occurrences there must be.
    """

    find: str
    replace: str
    expected: int = 1

    def apply(self, text: str) -> Edited:
        """Return the text with each `find` replaced, and the first line that changed.

        Raises CountMismatch if there are not exactly `expected` occurrences, or none. Raises
        InvalidInput for an empty `find`, and for an edit that would break the header.
        """
        if not self.find:
            raise InvalidInput(
                "Parameter `find_text` must not be empty. Give the exact text to replace."
            )
        places = occurrences(text, self.find)
        # To replace nothing is a mistake even if the caller expects it.
        if len(places) != self.expected or not places:
            raise CountMismatch(len(places), self.expected, _lines_at(text, places))
        changed = _with_replacements(text, places, self.replace)
        if _has_header(text) and not _has_header(changed):
            raise InvalidInput(
                "This replacement would make the note's frontmatter unreadable, so nothing was changed. "
                "Leave the lines between the two --- valid YAML."
            )
        first_line = text.count("\n", 0, places[0].start) + 1
        return Edited(changed, first_line, count=len(places))


@dataclass(frozen=True, slots=True)
class ReplaceSection(_SectionEdit):
    """Replace the text under the heading, with its subsections. Blank lines at its edges stay.

    `section` is the heading as it is written, or as it is shown without Markdown (amendment 4.5).

    keeps_subsections: whether to replace only the text before the next heading of any level.
    """

    keeps_subsections: bool = False

    def apply(self, text: str) -> Edited:
        """Replace a section. Returns the text and the line where the section's text begins.

        Raises SectionError if no heading matches, or several.
        """
        newline, new_text = line_break_and_adapted(text, self.text)
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            raise SectionError(self.section, headings=sections.titles)
        start, end = sections.inside(heading, is_deep=not self.keeps_subsections)
        body = _without_heading(new_text, heading)

        # Blank lines below the heading stay, so the new text needs none at its beginning.
        blank_lines = _BLANK_LINES.match(text, start, end)
        if blank_lines:
            start = blank_lines.end()
            body = body.lstrip("\r\n")
        before = text[:start]
        # The heading may be the last line of the file, and have no line break.
        if not before.endswith("\n"):
            before += newline
        # At the end of the file, the new text ends as the old one did.
        ends_with_break = end < len(text) or text[end - 1] == "\n"
        if body and ends_with_break:
            body += newline
            body += _gap(before + body, text[end:], newline)
        return Edited(before + body + text[end:], before.count("\n") + 1)


class AppendToSection(_SectionEdit):
    """Put `text` at the end of the section under the heading, after its subsections.

    `apply` raises SectionError if the heading does not exist.
    """

    def apply(self, text: str) -> Edited:
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            raise SectionError(self.section, headings=sections.titles)
        return _inserted(text, sections.inside(heading)[1], self.text)


class InsertBeforeSection(_SectionEdit):
    """Put `text` directly before the line of the heading.

    `apply` raises SectionError if the heading does not exist.
    """

    # Whether a subclass puts the text after the heading instead.
    _is_after: ClassVar = False

    def apply(self, text: str) -> Edited:
        """Insert the text above the heading, or below it in the subclass that sets `_is_after`.

        Raises SectionError if the file does not have the section.
        """
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
    """Put the list item `text`, one line such as `- tea`, at the end of a section.

    A section that does not exist is added at the end of the file.
    """

    def apply(self, text: str) -> Edited:
        """Add the item. A section that the file lacks is added with it at the end."""
        newline, new_text = line_break_and_adapted(text, self.text)
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            return _section_at_end(text, self.section, new_text, newline)
        start, end = sections.inside(heading)

        # An empty section gets a blank line between its heading and the item.
        if text[start:end].strip():
            return _inserted(text, end, new_text)
        return _inserted(text, start, newline + new_text)


@dataclass(frozen=True, slots=True)
class SetKeys:
    """Set keys of the header, or remove them with `frontmatter.REMOVE`.

    changes: the new value of each key. `frontmatter.REMOVE` removes it.
    order: the keys in the order in which the header has them. A new key is put after those that are
        before it in `order`.
    """

    changes: Mapping[str, Any]
    order: Sequence[str] = ()

    def apply(self, text: str) -> Edited:
        """Return the text with the changed header. Raises ValueError if the present one is no YAML."""
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
        # The offset at which each line begins.
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    @property
    def titles(self) -> list[str]:
        """The headings without their `#`, as a caller can name them."""
        return [heading.title for heading in self.headings]

    @property
    def marked_titles(self) -> list[str]:
        """The headings with the `#` of their level."""
        return [f"{'#' * heading.level} {heading.title}" for heading in self.headings]

    def offset(self, line: int) -> int:
        """Return where a line, counted from 1, begins; the end of the text after the last line."""
        if line <= len(self._starts):
            return self._starts[line - 1]
        return len(self.text)

    def find(self, section: str) -> ShownHeading | None:
        """Return the heading that `section` names, None if no heading has this name.

        Raises SectionError if several headings have it.
        """
        headings = headings_named(self.headings, section)
        if len(headings) > 1:
            raise SectionError(section, lines=[heading.line for heading in headings])
        if headings:
            return headings[0]
        return None

    def inside(self, heading: ShownHeading, *, is_deep: bool = True) -> Place:
        """Return the place of the text under a heading, without blank lines at its end.

        is_deep: whether the subsections belong to the text.
        """
        start = self.offset(heading.last_line + 1)
        end = self.offset(self._line_after(heading, is_deep))
        text = self.text[start:end].rstrip(" \t\r\n")
        if not text:
            return Place(start, start)
        # The line break of its last line belongs to the text.
        line_end = self.text.find("\n", start + len(text), end)
        if line_end < 0:
            return Place(start, end)
        return Place(start, line_end + 1)

    def _line_after(self, heading: ShownHeading, is_deep: bool) -> int:
        """Return the line of the heading that ends a section, or the line after the last.

        is_deep: whether the subsections belong to the section.
        """
        for heading_below in self.headings:
            is_outside = not is_deep or heading_below.level <= heading.level
            if heading_below.line > heading.line and is_outside:
                return heading_below.line
        return len(self._starts) + 1


def _without_heading(new_text: str, heading: ShownHeading) -> str:
    """Remove a first line that repeats the heading, and line breaks at the end.

    Callers often put the heading into the text that they give for its section.

    heading: the heading of the section that gets the text.
    """
    new_text = new_text.rstrip("\r\n")
    # Such a line is the first of the text, and reading the headings of a long text takes long.
    end = new_text.find("\n", _BEGINNING)
    beginning = new_text if end < 0 else new_text[:end]
    headings = shown_headings(beginning)
    if not headings:
        return new_text
    first = headings[0]
    if first.level != heading.level or first.title != heading.title:
        return new_text

    # A heading below other text is a part of the text, not a repetition.
    lines = new_text.split("\n")
    has_text_above = any(line.strip() for line in lines[: first.line - 1])
    if has_text_above:
        return new_text
    return "\n".join(lines[first.last_line :])


def _section_at_end(text: str, section: str, new_text: str, newline: str) -> Edited:
    """Add a section at the end of a text.

    section: its heading. Without `#`, it gets the level 2.
    new_text: the text below the new heading.
    newline: the line break of the text.
    """
    level, name = level_and_title(section)
    level = level or 2
    heading = ShownHeading(level, name, shown_title(name), line=1, last_line=1)
    body = _without_heading(new_text, heading)

    # Above the heading, a line break if the last line has none, and a blank line.
    before = text
    lacks_final_break = text != "" and not text.endswith("\n")
    if lacks_final_break:
        before += newline
    has_body = len(text) > split(text).body_at
    if has_body or lacks_final_break:
        before += newline

    lines = f"{'#' * level} {name}{newline}"
    if body:
        lines += newline + body
    lines = lines.rstrip("\r\n")
    # The new text ends as the old one did.
    if not lacks_final_break:
        lines += newline
    return Edited(before + lines, before.count("\n") + 1)


def _inserted(text: str, offset: int, new_text: str, needs_break: bool = False) -> Edited:
    """Put `new_text` as whole lines into `text`.

    A heading underlined with `===` or `---` would take in the words directly above it, so a blank
    line keeps them apart.

    offset: where to put it: the start of a line, or the end of the text.
    needs_break: whether to end it with a line break even if `text` ends without one.
    """
    newline, new_text = line_break_and_adapted(text, new_text)
    before = text[:offset]
    # Nothing, or only a BOM, is before the first line.
    is_line_start = before in ("", "\ufeff") or before.endswith("\n")
    if not is_line_start:
        # The last line of the file has no line break. If the new text is put behind it, the file
        # ends without one as before.
        before += newline
    ends_with_break = is_line_start or needs_break
    if ends_with_break and not new_text.endswith("\n"):
        new_text += newline

    after = text[offset:]
    # A gap below the new text may make one above it unnecessary, so it comes first.
    new_text += _gap(before + new_text, after, newline)
    before += _gap(before, new_text + after, newline)
    return Edited(before + new_text + after, before.count("\n") + 1)


def _gap(before: str, after: str, newline: str) -> str:
    """Return the blank line that two texts need between them, "" if they need none.

    They need a blank line if an underline would make another heading of their lines otherwise.

    before: the text above. It ends with a line break, or is empty.
    after: the text below.
    newline: the line break of both.
    """
    last_line = before.removesuffix("\n").rpartition("\n")[2]
    if not last_line.strip("\ufeff \t\r"):
        return ""
    # Parsing takes long, and an underline only concerns the lines directly above it.
    blank_line = _BLANK_LINE.search(after)
    end_of_lines = blank_line.start() if blank_line else len(after)
    if not _UNDERLINE.search(after, 0, end_of_lines):
        return ""
    if _heading_texts(before + after) == _heading_texts(before + newline + after):
        return ""
    return newline


def _heading_texts(text: str) -> list[tuple[int, str]]:
    """Return (level, text as written) of each heading."""
    return [(heading.level, heading.raw) for heading in shown_headings(text)]


def occurrences(text: str, part: str) -> list[Place]:
    """Return the places where `part` occurs in `text`. Places do not overlap.

    If `part` does not occur as it is, LF and CRLF count as equal. An empty `part` occurs nowhere.
    """
    if not part:
        return []
    if part in text or "\n" not in part:
        return _places(text, part)
    # Search in the text with LF only, then add to each offset the number of CRs before it.
    unix_text = text.replace("\r\n", "\n")
    # The offset in `unix_text` of each line break that was CRLF. Every CR before it is missing there.
    breaks_in_unix_text: list[int] = []
    for crs_before, offset in enumerate(_offsets(text, "\r\n")):
        breaks_in_unix_text.append(offset - crs_before)
    places: list[Place] = []
    for start, end in _places(unix_text, part.replace("\r\n", "\n")):
        crs_before_start = bisect_left(breaks_in_unix_text, start)
        crs_before_end = bisect_left(breaks_in_unix_text, end)
        places.append(Place(start + crs_before_start, end + crs_before_end))
    return places


def _places(text: str, part: str) -> list[Place]:
    """Return the places where `part` occurs in `text` exactly. Places do not overlap."""
    return [Place(offset, offset + len(part)) for offset in _offsets(text, part)]


def _offsets(text: str, part: str) -> Iterator[int]:
    """Yield each offset where `part` begins in `text`. Occurrences do not overlap."""
    offset = text.find(part)
    while offset >= 0:
        yield offset
        offset = text.find(part, offset + len(part))


def line_break_at(text: str, offset: int) -> str:
    """Return the line break, LF or CRLF, after the line at `offset`, or else the one before it."""
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


def line_break_and_adapted(text: str, new_text: str) -> tuple[str, str]:
    """Return (line break of `text`, `new_text` with such line breaks).

    The line break is CRLF if all line breaks of `text` are. Otherwise it is LF, and `new_text`
    stays as it is.
    """
    if not is_crlf(text):
        return "\n", new_text
    return "\r\n", _with_breaks(new_text, "\r\n")


def _with_breaks(new_text: str, newline: str) -> str:
    """Give a text the line breaks `newline`, LF or CRLF."""
    return new_text.replace("\r\n", "\n").replace("\n", newline)


def _with_replacements(text: str, places: Sequence[Place], replacement: str) -> str:
    """Replace the parts of `text` at these places.

    places: (start, end) of each part, in order.
    replacement: the text that each part becomes. Its line breaks are adapted to the text.
    """
    parts = []
    last_end = 0
    for start, end in places:
        parts += [text[last_end:start], with_breaks_of(text, start, replacement)]
        last_end = end
    return "".join([*parts, text[last_end:]])


def _lines_at(text: str, places: Sequence[Place]) -> list[int]:
    """Return the line of each place, from 1."""
    lines = []
    line = 1
    counted_to = 0
    for place in places:
        line += text.count("\n", counted_to, place.start)
        counted_to = place.start
        lines.append(line)
    return lines


def _has_header(text: str) -> bool:
    """Whether a text has a header that can be read."""
    yaml_text = split(text).yaml
    try:
        return yaml_text is not None and parse(yaml_text) is not None
    except ValueError:
        return False


def _lines_of(text: str, part: str, *, overlapping: bool = False) -> list[int]:
    """Return the line of each occurrence, from 1. A line is repeated if several begin on it.

    overlapping: whether an occurrence may begin inside the one before: `aa` is in `aaa` twice.
    """
    lines: list[int] = []
    line = 1
    counted_to = 0
    offset = text.find(part)
    # A text that repeats itself for megabytes would take hours to list, so list only the first.
    most_lines = max(1000, _MOST_COMPARED_CHARACTERS // len(part))
    step = 1 if overlapping else len(part)
    while offset >= 0 and len(lines) < most_lines:
        line += text.count("\n", counted_to, offset)
        lines.append(line)
        counted_to = offset
        offset = text.find(part, offset + step)
    return lines


def _first_difference(before: str, after: str) -> int:
    """Return the number of the first line that differs in two texts, from 1. 1 for equal texts."""
    if before == after:
        return 1
    old_lines = before.split("\n")
    new_lines = after.split("\n")
    for number, (old_line, new_line) in enumerate(zip(old_lines, new_lines, strict=False), 1):
        if old_line != new_line:
            return number
    # One text goes on where the other ends.
    return min(len(old_lines), len(new_lines)) + 1
