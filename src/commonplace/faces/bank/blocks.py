"""How an update changes a file's text (contract 003, 6): edits in the style of note/edit.py."""

from __future__ import annotations

import re
from dataclasses import dataclass

from commonplace.note.edit import Edited
from commonplace.note.frontmatter import is_crlf, split
from commonplace.note.grammar import scan

_NAMED = re.compile(r"(#{1,6})(?:[ \t]+(.*?)(?:[ \t]+#+)?)?[ \t]*")
_BLANK_START = re.compile(r"(?:[ \t]*\r?\n)+")


@dataclass(frozen=True, slots=True)
class AppendBlock:
    """Put `text` at the end after one empty line; the file ends with exactly one line break."""

    text: str

    def apply(self, text: str) -> Edited:
        newline, fresh = _breaks(text, self.text)
        kept = text.rstrip("\r\n")
        before = kept + 2 * newline if kept else ""
        return Edited(before + fresh.rstrip("\r\n") + newline, _line_after(before))


@dataclass(frozen=True, slots=True)
class InsertInSection:
    """Put `text` at the end of the own text of the section `position` (a heading, with or without its `#`s).

    Its own text ends before the next heading of any level. A missing section is added at the end.
    """

    position: str
    text: str

    def apply(self, text: str) -> Edited:
        """The first heading of exactly this text counts, else the first that differs only in case."""
        newline, fresh = _breaks(text, self.text)
        if blank := _BLANK_START.match(fresh):
            fresh = fresh[blank.end() :]
        fresh = _without_blank_end(fresh)
        level, name = named(self.position)
        headings = scan(text, split(text).body_at)[2]
        fitting = [each for each in headings if level in (0, each.level)]
        found = [each for each in fitting if each.text.strip() == name]
        found = found or [each for each in fitting if each.text.strip().casefold() == name.casefold()]
        if not found:
            added = AppendBlock(f"{'#' * (level or 2)} {name}{2 * newline}{fresh}").apply(text)
            return Edited(added.text, added.line, section_added=True)
        end = next((each.line for each in headings if each.line > found[0].line), None)
        rest = "" if end is None else text[_start_of(text, end) :]
        before = _without_blank_end(text[: len(text) - len(rest)]) + 2 * newline
        return Edited(before + fresh + newline + (newline + rest if rest else ""), _line_after(before))


def named(position: str) -> tuple[int, str]:
    """(level or 0, text on one line) of the heading a position names; the text may be empty."""
    line = " ".join(position.split())
    match = _NAMED.fullmatch(line)
    return (len(match[1]), (match[2] or "").strip()) if match else (0, line)


def _breaks(text: str, fresh: str) -> tuple[str, str]:
    """The line break of `text` (of `fresh` where there is no text yet), and `fresh` with its own made alike."""
    if not is_crlf(text) and (text or not is_crlf(fresh)):
        return "\n", fresh
    return "\r\n", fresh.replace("\r\n", "\n").replace("\n", "\r\n")


def _start_of(text: str, line: int) -> int:
    """Where line `line` (from 2) begins."""
    at = -1
    for _ in range(line - 1):
        at = text.index("\n", at + 1)
    return at + 1


def _without_blank_end(text: str) -> str:
    """`text` without the line break and the blank lines at its end."""
    end = text.find("\n", len(text.rstrip(" \t\r\n")))
    return text if end < 0 else text[:end].removesuffix("\r")


def _line_after(before: str) -> int:
    return before.count("\n") + 1
