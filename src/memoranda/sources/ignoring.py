"""Leaves files of a project's folder out, by lists in the format of .gitignore and by Obsidian's.

A path that is left out is neither indexed nor shown, and no note can be written there. As in git, a
later pattern overrides an earlier one. But below a folder that is left out, no pattern brings a file
back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from memoranda.text.pattern import lazy_pattern
from memoranda.value_object import ValueObject

# Further patterns of one file are ignored.
_MAX_PATTERNS = 1_000
# The cache of folders is cleared when it has this number.
_MAX_CACHED_FOLDERS = 10_000
# The beginning of a named group in JavaScript, `(?<name>`, which Python writes `(?P<name>`.
_NAMED_GROUP = lazy_pattern(r"\(\?<(?![=!])")
# A class of characters in a pattern of .gitignore, such as `[!a-z]`.
_CHARACTER_CLASS = lazy_pattern(r"\[(?:[!^])?\]?[^\]\n]*\]")


class Pattern(NamedTuple):
    """One line of a list of files to leave out.

    regex: searched in the project-relative path; a folder's path ends in `/`.
    reason: the list and the line, for people: `.memoryignore, line 3`.
    is_negated: whether the files that match are not left out after all.
    only_folders: whether only folders match.
    """

    regex: re.Pattern[str]
    reason: str
    is_negated: bool = False
    only_folders: bool = False


@dataclass(slots=True, eq=False, repr=False)
class IgnoreRules(ValueObject):
    """The patterns that leave files out of a project, as in `.memoryignore`.

    patterns: the patterns in their order. If several match a path, the last one decides.
    """

    patterns: tuple[Pattern, ...] = ()
    # A cache: folder -> the result of `reason` for it
    _folders: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def reason(self, path: str, *, is_folder: bool = False) -> str:
        """Return why a path is left out, such as `.memoryignore, line 3`. "" if it is not.

        If a folder is left out, so is everything below it.

        is_folder: whether the path is a folder.
        """
        if not self.patterns:
            return ""
        folder, _, _ = path.rpartition("/")
        return self._folder_reason(folder) or self._own_reason(path, is_folder)

    def _folder_reason(self, folder: str) -> str:
        """Return `reason` for a folder, which is cached. "" for the project's own folder."""
        if not folder:
            return ""
        reason = self._folders.get(folder)
        if reason is None:
            reason = self.reason(folder, is_folder=True)
            if len(self._folders) >= _MAX_CACHED_FOLDERS:
                self._folders.clear()
            self._folders[folder] = reason
        return reason

    def _own_reason(self, path: str, is_folder: bool) -> str:
        """Return `reason` for a path, without regard to the folders above it.

        is_folder: whether the path is a folder.
        """
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
    """Parse the lines of a list in the format of .gitignore.

    source: the name of the list, for people.
    """
    patterns: list[Pattern] = []
    for number, line in enumerate(lines, 1):
        pattern = _gitignore_pattern(line.rstrip("\r\n"), f"{source}, line {number}")
        if pattern is not None and len(patterns) < _MAX_PATTERNS:
            patterns.append(pattern)
    return patterns


def _gitignore_pattern(line: str, reason: str) -> Pattern | None:
    """Parse one line of .gitignore. None for a blank line, a comment, and an invalid pattern.

    `!drafts/` has the regular expression `(?:^|/)drafts(?<!/)/?$`, is negated, and is only for
    folders.

    reason: the list and the line, for people.
    """
    text = _without_trailing_blanks(line)
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    if is_negated:
        text = text[1:]
    only_folders = text.endswith("/")
    if only_folders:
        text = text.rstrip("/")
    # A pattern with a slash at the beginning or inside is relative to the folder of the list.
    # Without one, it matches in every folder.
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
    """Return the line without blanks at its end. After a backslash, one blank stays."""
    text = line.rstrip(" \t")
    has_escaped_blank = text.endswith("\\") and len(text) < len(line)
    if has_escaped_blank:
        return f"{text} "
    return text


def _translated(glob: str) -> str:
    """Translate a glob of .gitignore into a regular expression: `*.tmp` into `[^/]*\\.tmp`."""
    parts: list[str] = []
    position = 0
    while position < len(glob):
        piece, length = _translated_piece(glob, position)
        parts.append(piece)
        position += length
    return "".join(parts)


def _translated_piece(glob: str, position: int) -> tuple[str, int]:
    """Translate the piece of a glob that begins at `position`.

    Returns the regular expression, and the number of characters of the piece. For `**/a` at 0:
    `("(?:[^/]+/)*", 3)`.
    """
    glob_from_here = glob[position:]
    is_at_beginning = position == 0 or glob[position - 1] == "/"
    # Any number of folders.
    if glob_from_here.startswith("**/") and is_at_beginning:
        return "(?:[^/]+/)*", 3
    # Everything in a folder, however deep.
    if glob_from_here == "**" and is_at_beginning:
        return ".+", 2
    sign = glob_from_here[0]
    # Within a name, several stars mean no more than one.
    if sign == "*":
        length = len(glob_from_here) - len(glob_from_here.lstrip("*"))
        return "[^/]*", length
    if sign == "?":
        return "[^/]", 1
    if sign == "\\" and len(glob_from_here) > 1:
        return re.escape(glob_from_here[1]), 2
    if sign == "[":
        match = _CHARACTER_CLASS.match(glob_from_here)
        if match:
            return _translated_class(match[0]), len(match[0])
    # Any other sign, or a bracket or backslash that opens nothing, means itself.
    return re.escape(sign), 1


def _translated_class(text: str) -> str:
    """Translate a class of characters: `[!a-z]` into `(?!/)[^/a-z]`."""
    inner = text[1:-1]
    is_negated = inner.startswith(("!", "^"))
    if is_negated:
        inner = inner[1:]
    escaped = inner.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    sign = ""
    if is_negated:
        # A class never matches the slash between folders
        sign = "^/"
    return f"(?!/)[{sign}{escaped}]"


def folder_pattern(folder: str, reason: str) -> Pattern | None:
    """Return a pattern that leaves out one folder of the project, whatever its upper and lower case.

    None for the project's own folder.

    reason: why the folder is left out, for people.
    """
    path = folder.strip("/")
    if not path or path == ".":
        return None
    return Pattern(re.compile(f"^{re.escape(path)}/", re.IGNORECASE), reason, only_folders=True)


def obsidian_patterns(filters: Iterable[object], source: str) -> tuple[list[Pattern], list[str]]:
    """Parse Obsidian's setting "Excluded files". Upper and lower case do not matter.

    filters: beginnings of paths such as `drafts/`, or regular expressions such as `/\\.tmp$/`.
    source: the name of the setting, for people.

    Returns the patterns, and the filters that are invalid.
    """
    patterns: list[Pattern] = []
    unreadable: list[str] = []
    for text in filters:
        if not isinstance(text, str) or not text.strip("/ "):
            continue
        is_regex = len(text) > 2 and text.startswith("/") and text.endswith("/")
        # Obsidian's expressions are JavaScript's, which writes a named group `(?<name>…)`.
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
