"""Compares two texts of a note for people: the keys of its header by name, the text word by word."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memoranda.engine.history.verbs import Revision
from memoranda.note import frontmatter
from memoranda.text.compare import count_of_equal, grouped_changes
from memoranda.text.word_diff import NEW, OLD, SAME, Part, changed_words

# Lines shown around a change.
_CONTEXT_LINES = 1
# Lines of one difference.
_MAX_LINES = 200
# Characters shown of a value, and of a line that stays, goes or comes, or such a part of a line.
_MAX_CHARACTERS = 2000
# Characters of a line that are compared. Comparing more takes long.
_MAX_COMPARED_CHARACTERS = 20_000
# Characters shown before the first change in a line of which only a part is compared.
_CHARACTERS_BEFORE = 100
# Lines that share a smaller part of their characters are shown as an old and a new line.
_MIN_LIKENESS = 0.3
_TIMES = (
    "created",
    "created_at",
    "updated",
    "updated_at",
    "modified",
    "last_used_at",
    "fired_at",
    "acked_at",
    "archived_at",
)
_BOOKKEEPING = (
    "id",
    "content_hash",
    "permalink",
    "phase",
    "version",
    "access_count",
    "links",
    "source_ref",
    "merged",
    "unlinked",
    "archived_by",
    "archived_from",
    "kept_from",
    "set_by",
    "category_by",
    "due_text",
    "all_day",
)
# Header keys that memoranda sets for itself. Their changes are not shown.
_HIDDEN_KEYS = frozenset((*_TIMES, *_BOOKKEEPING))
# A header without one of these keys means the same as a header with this value.
_DEFAULTS = {"scope": "global", "source": "manual"}
GAP = "…"

Line = list[Part]


@dataclass
class PropertyChange:
    """A changed key of the header.

    name: the key.
    before, after: its value before and after the change. None if the key did not exist.
    """

    name: str
    before: str | None
    after: str | None


@dataclass
class Difference:
    """The differences between two texts of a note.

    properties: the keys that changed.
    lines: lines of the text, each as its parts. GAP marks lines that are left out.
    has_more: whether there are more lines.
    is_new: whether there was no text before.
    is_text_lost: whether the difference is unknown, because the history lacks one of the texts.
    """

    properties: list[PropertyChange] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    has_more: bool = False
    is_new: bool = False
    is_text_lost: bool = False

    def __bool__(self) -> bool:
        return bool(self.properties or self.lines)


def of_revision(revision: Revision, most: int = _MAX_LINES) -> Difference:
    """Return the difference that one revision of a note made, in at most `most` lines."""
    if revision.is_text_lost:
        return Difference(is_new=revision.touched.old is None, is_text_lost=True)
    return between(revision.before or "", revision.after or "", most)


def joined_moves(revisions: Iterable[Revision]) -> list[Revision]:
    """Return the revisions of one change, with the two revisions of a moved note joined.

    A move removes a note at one path and writes it at another, with the same id. The joined
    revision has the old text as `before` and the new one as `after`.
    """
    # Take out the removed notes, which may have been moved.
    other_revisions = []
    removed_by_id: dict[str, Revision] = {}
    for revision in revisions:
        identifier = _id_in(revision.before)
        # A copy has the same id as its original. If both were removed, only the first of them can
        # be the beginning of the move.
        is_move_possible = revision.after is None and identifier not in removed_by_id
        if identifier is not None and is_move_possible:
            removed_by_id[identifier] = revision
        else:
            other_revisions.append(revision)

    # Join each of them with the new note that has its id.
    joined = []
    for revision in other_revisions:
        removed = None
        if revision.before is None:
            removed = removed_by_id.pop(_id_in(revision.after) or "", None)
        if removed is not None:
            revision = replace(revision, before=removed.before)
        joined.append(revision)
    return [*joined, *removed_by_id.values()]


def _id_in(text: str | None) -> str | None:
    """Return the id in the header of a note's text, or None."""
    identifier = split(text or "")[0].get("id")
    return identifier if isinstance(identifier, str) else None


def between(before: str, after: str, most: int = _MAX_LINES) -> Difference:
    """Return the difference from `before` to `after`, in at most `most` lines.

    A header that cannot be read is compared as text.
    """
    old_header, old_body = _compared_parts(before)
    new_header, new_body = _compared_parts(after)
    lines = _changed_lines(old_body, new_body)
    properties = _changed_properties(old_header, new_header)
    return Difference(properties, lines[:most], has_more=len(lines) > most, is_new=not before)


def split(text: str) -> tuple[Mapping[str, Any], str]:
    """Split the text of a note into its header and the text below it.

    A header that cannot be read counts as {}.
    """
    body = text[frontmatter.split(text).body_at :].strip("\r\n")
    return _header_of(text) or {}, body


def _compared_parts(text: str) -> tuple[Mapping[str, Any], str]:
    """Split a text as `split` does, but leave a header that cannot be read in the text."""
    if _header_of(text) is None:
        return {}, text.strip("\r\n")
    return split(text)


def _header_of(text: str) -> Mapping[str, Any] | None:
    """Return the header of a note, which may be {}, or None if it cannot be read."""
    try:
        return frontmatter.header_of(text)
    except ValueError:
        return None


def _changed_properties(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[PropertyChange]:
    """Return the changed keys of two headers, without keys that nobody reads."""
    changes = []
    for name in dict.fromkeys([*before, *after]):
        is_changed = _value_or_default(before, name) != _value_or_default(after, name)
        if is_changed and name not in _HIDDEN_KEYS:
            old_text = _value_text(before.get(name))
            new_text = _value_text(after.get(name))
            changes.append(PropertyChange(name, old_text, new_text))
    return changes


def _value_or_default(header: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key, or its default if the key is missing."""
    value = header.get(name)
    return _DEFAULTS.get(name) if value is None else value


def _value_text(value: Any) -> str | None:
    """Return a value of the header as text: `a, b` for `["a", "b"]`. None stays None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)[:_MAX_CHARACTERS]
    return str(value)[:_MAX_CHARACTERS]


def _changed_lines(before: str, after: str) -> list[Line]:
    """Return the lines that differ, with the line before and after, and GAP where lines are left out.

    All lines are new if `before` has only empty lines.
    """
    old = before.splitlines()
    new = after.splitlines()
    if old == new:
        return []
    if not any(old):
        return [[_shortened(Part(NEW, line))] for line in new]
    rows: list[Line] = []
    for number, group in enumerate(grouped_changes(old, new, _CONTEXT_LINES)):
        if number:
            rows.append([Part(GAP, GAP)])
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                rows += [[Part(SAME, line)] for line in old[old_start:old_end]]
            else:
                rows += _replaced(old[old_start:old_end], new[new_start:new_end])
    return [[_shortened(part) for part in row] for row in rows]


def _shortened(part: Part) -> Part:
    """Return a part of a line, with GAP in its middle if it is longer than can be shown."""
    if len(part.text) <= _MAX_CHARACTERS:
        return part
    half = _MAX_CHARACTERS // 2
    return Part(part.kind, f"{part.text[:half]}{GAP}{part.text[-half:]}")


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    """Return old lines and the new lines that replaced them.

    If a line is like the one that replaced it, both are one line whose changed words are marked.
    """
    if len(old) != len(new):
        # Nothing tells which line replaced which.
        return [
            *([Part(OLD, line)] for line in old),
            *([Part(NEW, line)] for line in new),
        ]
    rows: list[Line] = []
    for old_line, new_line in zip(old, new, strict=True):
        before, after = _cut_around_change(old_line, new_line)
        parts = changed_words(before, after)
        if _are_alike(before, after, parts):
            rows.append(parts)
        else:
            rows += [[Part(OLD, before)], [Part(NEW, after)]]
    return rows


def _are_alike(before: str, after: str, parts: Line) -> bool:
    """Whether two lines share enough characters to be shown as one line.

    parts: the words of both lines: old, new and unchanged.
    """
    shared_characters = sum(len(part.text) for part in parts if part.kind == SAME)
    # The shared characters are in both lines, so they count twice.
    return 2 * shared_characters >= _MIN_LIKENESS * (len(before) + len(after))


def _cut_around_change(before: str, after: str) -> tuple[str, str]:
    """Cut two different lines to the characters that are compared.

    Comparing begins shortly before the first difference. GAP replaces the characters left out.
    """
    if max(len(before), len(after)) <= _MAX_COMPARED_CHARACTERS:
        return before, after
    same_characters = count_of_equal(before, after)
    start = max(same_characters - _CHARACTERS_BEFORE, 0)
    return _window(before, start), _window(after, start)


def _window(line: str, start: int) -> str:
    """Return the characters of a line that are compared if comparing begins at `start`."""
    end = start + _MAX_COMPARED_CHARACTERS
    gap_before = GAP if start else ""
    gap_after = GAP if end < len(line) else ""
    return f"{gap_before}{line[start:end]}{gap_after}"


def sides(before: str, after: str) -> tuple[Line, Line]:
    """Compare two texts for showing them side by side. Words that only one text has are marked."""
    parts = changed_words(before, after)
    return (
        [part for part in parts if part.kind != NEW],
        [part for part in parts if part.kind != OLD],
    )
