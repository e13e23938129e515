"""Edits as values: each turns a file's text into another and leaves every byte it is not about.

Source: contract 000a, 6 (StrReplace, InsertLine); contract 000b, 7, edit_note (the others).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from memoranda.errors import CountMismatch, InvalidInput, LineOutOfRange, SectionError
from memoranda.note.frontmatter import is_crlf, parse, set_keys, split
from memoranda.note.grammar import scan
from memoranda.note.model import Heading

# How alike two headings are when one is taken for a misspelling of the other
_NEAR = 0.75
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)+")
_SEARCH_EFFORT = 50_000_000


@dataclass(frozen=True, slots=True)
class Edited:
    """The whole new text, its first changed line (from 1), how often the edit applied, and whether
    a section was added because it was missing."""

    text: str
    line: int = 1
    count: int = 1
    section_added: bool = False


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
    """Replace the one occurrence of `old`, literally and over the whole file (contract 000a, 6)."""

    old: str
    new: str = ""

    def apply(self, text: str) -> Edited:
        """Raises InvalidInput for an empty `old`; CountMismatch unless it occurs once, `lines` then
        holds the first line of every occurrence, overlapping ones too."""
        if not self.old:
            raise InvalidInput(
                "No replacement was performed, old_str is empty. Give the exact text to replace."
            )
        found = text.count(self.old)
        if found != 1:
            raise CountMismatch(found, 1, _lines_of(text, self.old, overlapping=True))
        at = text.find(self.old)
        return Edited(
            text[:at] + self.new + text[at + len(self.old) :], text.count("\n", 0, at) + 1
        )


@dataclass(frozen=True, slots=True)
class InsertLine:
    """Put `text` after line `line`; 0 is before the first (contract 000a, 6). Line breaks are LF."""

    line: int
    text: str

    def apply(self, text: str) -> Edited:
        """The file ends in a newline afterwards. Raises LineOutOfRange."""
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if not 0 <= self.line <= len(lines):
            raise LineOutOfRange(self.line, len(lines))
        lines.insert(self.line, self.text.rstrip("\n"))
        return Edited("\n".join(lines) + "\n", self.line + 1)


class Append(_TextEdit):
    """Put `text` at the end, on a new line; a file without a final newline stays without."""

    def apply(self, text: str) -> Edited:
        return _inserted(text, len(text), self.text)


class Prepend(_TextEdit):
    """Put `text` directly after the frontmatter, on lines of its own."""

    def apply(self, text: str) -> Edited:
        return _inserted(text, split(text).body_at, self.text, ends=True)


@dataclass(frozen=True, slots=True)
class FindReplace:
    """Replace every occurrence of `find`, literally; there must be exactly `expected`. In a file of
    CRLF lines LF in `find` matches CRLF and `replace` gets CRLF."""

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
        find = breaks(text, self.find)[1]
        replace = breaks(text, self.replace)[1]
        found = text.count(find)
        if found != self.expected or not found:
            raise CountMismatch(found, self.expected, _lines_of(text, find))
        changed = text.replace(find, replace)
        if _has_header(text) and not _has_header(changed):
            raise InvalidInput(
                "This replacement would make the note's frontmatter unreadable, so nothing was changed. "
                "Leave the lines between the two --- valid YAML."
            )
        return Edited(changed, text.count("\n", 0, text.find(find)) + 1, found)


class ReplaceSection(_SectionEdit):
    """Replace the text under the heading, subsections included but for blank lines at its edges; a
    missing section is added, unless a heading is nearly it (SectionError)."""

    def apply(self, text: str) -> Edited:
        newline, fresh = breaks(text, self.text)
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            # 3 ms, for missing headings only
            from difflib import get_close_matches

            known = [each.text for each in sections.headings]
            name = _named(self.section)[1].casefold()
            if get_close_matches(name, [each.casefold() for each in known], 1, _NEAR):
                raise SectionError(self.section, headings=known)
            return _section_at_end(text, self.section, fresh, newline)
        start, end = sections.inside(heading)
        body = _without_heading(fresh, heading.level, heading.text)
        blank = _BLANK_LINES.match(text, start, end)
        if blank:
            start = blank.end()
            body = body.lstrip("\r\n")
        if text[start - 1] == "\n":
            before = text[:start]
        else:
            before = text[:start] + newline
        if body and (end < len(text) or text[end - 1] == "\n"):
            body += newline
        return Edited(before + body + text[end:], before.count("\n") + 1)


class AppendToSection(_SectionEdit):
    """Put `text` at the end of what stands under the heading, subsections included; without it
    SectionError.
    """

    def apply(self, text: str) -> Edited:
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            raise SectionError(self.section, headings=[each.text for each in sections.headings])
        return _inserted(text, sections.inside(heading)[1], self.text)


class InsertBeforeSection(_SectionEdit):
    """Put `text` directly before the line of the heading; without it SectionError."""

    _lines: ClassVar = 0

    def apply(self, text: str) -> Edited:
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            raise SectionError(
                self.section, [f"{'#' * each.level} {each.text}" for each in sections.headings]
            )
        return _inserted(text, sections.offset(heading.line + self._lines), self.text)


class InsertAfterSection(InsertBeforeSection):
    """Put `text` directly after the line of the heading `section`."""

    _lines = 1


class AddItem(_SectionEdit):
    """Put the list item `text` (one line) after the last item of the section, which is added if
    missing.
    """

    def apply(self, text: str) -> Edited:
        newline, fresh = breaks(text, self.text)
        sections = _Sections(text)
        heading = sections.find(self.section)
        if heading is None:
            return _section_at_end(text, self.section, fresh, newline)
        start, end = sections.inside(heading)
        if text[start:end].strip():
            return _inserted(text, end, fresh)
        return _inserted(text, start, newline + fresh)


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
    def __init__(self, text: str):
        self.text = text
        self.headings = scan(text, split(text).body_at)[2]
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def offset(self, line: int) -> int:
        """Where line `line` begins; the end of the text for a line after the last."""
        if line <= len(self._starts):
            return self._starts[line - 1]
        return len(self.text)

    def find(self, section: str) -> Heading | None:
        """The one heading that `section`, with or without `#`, names. Raises SectionError for
        several.
        """
        level, name = _named(section)
        found = [each for each in self.headings if each.text == name and level in (0, each.level)]
        if len(found) > 1:
            raise SectionError(section, lines=[each.line for each in found])
        if found:
            return found[0]
        return None

    def inside(self, heading: Heading) -> tuple[int, int]:
        """Start and end of the text under a heading, blank lines at its end left out."""
        below = (
            each.line
            for each in self.headings
            if each.line > heading.line and each.level <= heading.level
        )
        start = self.offset(heading.line + 1)
        end = self.offset(next(below, len(self._starts) + 1))
        kept = self.text[start:end].rstrip(" \t\r\n")
        line_end = self.text.find("\n", start + len(kept), end)
        return start, start if not kept else end if line_end < 0 else line_end + 1


def _named(section: str) -> tuple[int, str]:
    match = _HEADING.fullmatch(section.strip())
    if match:
        return (len(match[1]), match[2])
    return (0, section.strip())


def _without_heading(fresh: str, level: int, name: str) -> str:
    """`fresh` without a first line that repeats the heading, and without line breaks at its end."""
    first, _, rest = fresh.partition("\n")
    return (rest if _named(first) == (level, name) else fresh).rstrip("\r\n")


def _section_at_end(text: str, section: str, fresh: str, newline: str) -> Edited:
    level, name = _named(section)
    body = _without_heading(fresh, level or 2, name)
    before = text
    if len(text) > split(text).body_at or (text and not text.endswith("\n")):
        before += ("" if text.endswith("\n") else newline) + newline
    added = (f"{'#' * (level or 2)} {name}{newline}" + (newline + body if body else "")).rstrip(
        "\r\n"
    )
    ends = newline if not text or text.endswith("\n") else ""
    return Edited(before + added + ends, before.count("\n") + 1, section_added=True)


def _inserted(text: str, at: int, fresh: str, ends: bool = False) -> Edited:
    """Whole lines put in before offset `at`, the start of a line or the end of the text. With
    `ends` they end in a line break, though the line before them has none."""
    newline, fresh = breaks(text, fresh)
    is_line = text[:at] in ("", "\ufeff") or text[at - 1] == "\n"
    before = text[:at] if is_line else text[:at] + newline
    if (is_line or ends) and not fresh.endswith("\n"):
        tail = newline
    else:
        tail = ""
    return Edited(before + fresh + tail + text[at:], before.count("\n") + 1)


def breaks(text: str, fresh: str) -> tuple[str, str]:
    """The line break to insert into `text`, and `fresh` with its own line breaks made alike."""
    if not is_crlf(text):
        return "\n", fresh
    return "\r\n", fresh.replace("\r\n", "\n").replace("\n", "\r\n")


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
    at = text.find(part)
    # Text that repeats itself for megabytes would take hours to list: then the first hits must do.
    most = max(1000, _SEARCH_EFFORT // len(part))
    while at >= 0 and len(lines) < most:
        line += text.count("\n", last, at)
        lines.append(line)
        last = at
        at = text.find(part, at + (1 if overlapping else len(part)))
    return lines


def _first_difference(before: str, after: str) -> int:
    if before == after:
        return 1
    old = before.split("\n")
    new = after.split("\n")
    differing = (number for number, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b)
    return next(differing, min(len(old), len(new)) + 1)
