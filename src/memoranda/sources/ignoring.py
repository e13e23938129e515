"""Leaving out files of a project's folder, by lists in gitignore's form and by Obsidian's lists.

A path that is left out is neither indexed nor shown, and no note can be written there. As in git, a
later pattern wins over an earlier one, and nothing below a folder that is left out comes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import ValueObject

# Patterns of one file.
_MOST_PATTERNS = 1_000
# Folders remembered before they are all forgotten.
_MOST_KNOWN = 10_000
# What begins a named group in JavaScript, as Obsidian reads it.
_NAMED_GROUP = lazy_pattern(r"\(\?<(?![=!])")
# A class of signs in a pattern of .gitignore.
_CLASS_END = lazy_pattern(r"\[(?:[!^])?\]?[^\]\n]*\]")


class Pattern(NamedTuple):
    """One line of a list. `reason` names the list and the line, for people."""

    regex: re.Pattern[str]
    reason: str
    is_negated: bool = False
    only_folders: bool = False


@dataclass(slots=True, eq=False, repr=False)
class IgnoreRules(ValueObject):
    """The patterns of one project, in their order."""

    patterns: tuple[Pattern, ...] = ()
    _folders: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def reason(self, path: str, *, is_folder: bool = False) -> str:
        """The reason why a path is left out, with the list that says so. Empty if it is not left
        out.

        If a folder is left out, so is everything below it.
        """
        if not self.patterns:
            return ""
        folder, _, _ = path.rpartition("/")
        return self._folder_reason(folder) or self._own_reason(path, is_folder)

    def _folder_reason(self, folder: str) -> str:
        if not folder:
            return ""
        reason = self._folders.get(folder)
        if reason is None:
            reason = self.reason(folder, is_folder=True)
            if len(self._folders) >= _MOST_KNOWN:
                self._folders.clear()
            self._folders[folder] = reason
        return reason

    def _own_reason(self, path: str, is_folder: bool) -> str:
        subject = path
        if is_folder:
            subject = f"{path}/"
        # The last pattern that matches decides
        for pattern in reversed(self.patterns):
            if pattern.only_folders and not is_folder:
                continue
            if not pattern.regex.search(subject):
                continue
            if pattern.is_negated:
                return ""
            return pattern.reason
        return ""


def gitignore_patterns(lines: Iterable[str], source: str) -> list[Pattern]:
    """The patterns of a list in gitignore's form; `source` is how the list is called."""
    patterns: list[Pattern] = []
    for number, line in enumerate(lines, 1):
        pattern = _gitignore_pattern(line.rstrip("\r\n"), f"{source}, line {number}")
        if pattern is not None and len(patterns) < _MOST_PATTERNS:
            patterns.append(pattern)
    return patterns


def _gitignore_pattern(line: str, reason: str) -> Pattern | None:
    text = _without_trailing_blanks(line)
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    if is_negated:
        text = text[1:]
    only_folders = text.endswith("/")
    if only_folders:
        text = text.rstrip("/")
    # A slash at the beginning or inside ties the pattern to the folder of the list
    is_anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    front = "(?:^|/)"
    if is_anchored:
        front = "^"
    try:
        regex = re.compile(f"{front}{_translated(text)}(?<!/)/?$")
    except re.error:
        return None
    return Pattern(regex, reason, is_negated, only_folders)


def _without_trailing_blanks(line: str) -> str:
    """The line without blanks at its end, those after a backslash excepted."""
    text = line.rstrip(" \t")
    has_escaped_blank = text.endswith("\\") and len(text) < len(line)
    if has_escaped_blank:
        return f"{text} "
    return text


def _translated(glob: str) -> str:
    """A glob of gitignore as a regular expression."""
    parts: list[str] = []
    position = 0
    while position < len(glob):
        piece, length = _translated_piece(glob, position)
        parts.append(piece)
        position += length
    return "".join(parts)


def _translated_piece(glob: str, position: int) -> tuple[str, int]:
    """The regular expression of what stands at `position`, and how many characters that is."""
    glob_from_here = glob[position:]
    is_at_beginning = position == 0 or glob[position - 1] == "/"
    if glob_from_here.startswith("**/") and is_at_beginning:
        return "(?:[^/]+/)*", 3
    if glob_from_here == "**" and is_at_beginning:
        return ".+", 2
    sign = glob_from_here[0]
    if sign == "*":
        length = len(glob_from_here) - len(glob_from_here.lstrip("*"))
        return "[^/]*", length
    if sign == "?":
        return "[^/]", 1
    if sign == "\\" and len(glob_from_here) > 1:
        return re.escape(glob_from_here[1]), 2
    if sign == "[":
        match = _CLASS_END.match(glob_from_here)
        if match:
            return _translated_class(match[0]), len(match[0])
    return re.escape(sign), 1


def _translated_class(text: str) -> str:
    inner = text[1:-1]
    is_negated = inner.startswith(("!", "^"))
    if is_negated:
        inner = inner[1:]
    escaped = inner.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    sign = ""
    if is_negated:
        # A class never matches what parts folders
        sign = "^/"
    return f"(?!/)[{sign}{escaped}]"


def folder_pattern(folder: str, reason: str) -> Pattern | None:
    """A pattern that leaves out one folder of the project, in any case.

    None for the project itself.
    """
    plain_folder = folder.strip("/")
    if not plain_folder or plain_folder == ".":
        return None
    return Pattern(
        re.compile(f"^{re.escape(plain_folder)}/", re.IGNORECASE), reason, only_folders=True
    )


def obsidian_patterns(filters: Iterable[object], source: str) -> tuple[list[Pattern], list[str]]:
    """The patterns of Obsidian's "Excluded files": beginnings of paths, or `/regular expressions/`.

    Neither regards case. Returned with them are the texts that cannot be read as one.
    """
    patterns: list[Pattern] = []
    unreadable: list[str] = []
    for text in filters:
        if not isinstance(text, str) or not text.strip("/ "):
            continue
        is_regex = len(text) > 2 and text.startswith("/") and text.endswith("/")
        if is_regex:
            source_text = _NAMED_GROUP.sub("(?P<", text[1:-1])
        else:
            source_text = f"^{re.escape(text)}"
        try:
            regex = re.compile(source_text, re.IGNORECASE)
        except re.error:
            unreadable.append(text)
            continue
        patterns.append(Pattern(regex, f"{source}: {text}"))
    return patterns, unreadable
