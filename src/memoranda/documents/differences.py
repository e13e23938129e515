"""The effect of a change on a note, for people: properties by name, the text word by word."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from memoranda.engine.history import Revision
from memoranda.note import frontmatter
from memoranda.text.compare import grouped_changes
from memoranda.text.word_diff import NEW, OLD, SAME, Part, changed_words

# Lines shown around a change.
_CONTEXT = 1
# Lines of one difference, and the characters of a value.
_LINES = 200
_WIDTH = 2000
# Lines less alike are shown as an old and a new one.
_ALIKE = 0.3
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
# Header keys that memoranda keeps for itself: nobody reads a change of theirs.
_MACHINERY = frozenset((*_TIMES, *_BOOKKEEPING))
# A key with this value says no more than a missing one.
_DEFAULTS = {"scope": "global", "source": "manual"}
GAP = "…"

Line = list[Part]


@dataclass
class PropertyChange:
    """A changed key of the header. A value is None if the key did not exist."""

    name: str
    before: str | None
    after: str | None


@dataclass
class Difference:
    """The differences between two texts of a note.

    properties: the keys that changed.
    lines: lines of the text, each as its parts. GAP marks lines that are left out.
    has_more: whether there are more lines.
    """

    properties: list[PropertyChange] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    has_more: bool = False

    def __bool__(self) -> bool:
        return bool(self.properties or self.lines)


def of_revision(revision: Revision, most: int = _LINES) -> Difference:
    """The difference one revision of a note made, in at most `most` lines."""
    return between(revision.before or "", revision.after or "", most)


def joined_moves(revisions: Iterable[Revision]) -> list[Revision]:
    """The revisions of one change, where a note that only went elsewhere is one of them.

    Such a note was removed at one path and written at another. Both texts have the same id.
    """
    kept = []
    removed: dict[str, Revision] = {}
    for revision in revisions:
        identifier = _id_in(revision.before)
        if revision.after is None and identifier is not None:
            removed[identifier] = revision
        else:
            kept.append(revision)
    joined = []
    for revision in kept:
        source = None
        if revision.before is None:
            source = removed.pop(_id_in(revision.after) or "", None)
        joined.append(revision if source is None else replace(revision, before=source.before))
    return [*joined, *removed.values()]


def _id_in(text: str | None) -> str | None:
    """The id in the header of a note. None if there is none."""
    identifier = split(text or "")[0].get("id")
    return identifier if isinstance(identifier, str) else None


def between(before: str, after: str, most: int = _LINES) -> Difference:
    """The differences from `before` to `after`, in at most `most` lines."""
    old_header, old_body = split(before)
    new_header, new_body = split(after)
    lines = _lines(old_body, new_body)
    properties = _properties(old_header, new_header)
    return Difference(properties, lines[:most], len(lines) > most)


def split(text: str) -> tuple[Mapping[str, Any], str]:
    """The header of a note's text and what follows it."""
    parts = frontmatter.split(text)
    header: Mapping[str, Any] = {}
    if parts.yaml is not None:
        # A header that cannot be read counts as none
        with suppress(ValueError):
            header = frontmatter.parse(parts.yaml)
    return header, text[parts.body_at :].strip("\r\n")


def _properties(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[PropertyChange]:
    changes = []
    for name in dict.fromkeys([*before, *after]):
        if name in _MACHINERY or _effective(before, name) == _effective(after, name):
            continue
        changes.append(PropertyChange(name, _value(before.get(name)), _value(after.get(name))))
    return changes


def _effective(header: Mapping[str, Any], name: str) -> Any:
    """The value of a key, or its default if the key is missing."""
    value = header.get(name)
    return _DEFAULTS.get(name) if value is None else value


def _value(value: Any) -> str | None:
    """A value of the header as text. None stays None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)[:_WIDTH]
    return str(value)[:_WIDTH]


def _lines(before: str, after: str) -> list[Line]:
    old = [line[:_WIDTH] for line in before.splitlines()]
    new = [line[:_WIDTH] for line in after.splitlines()]
    if old == new:
        return []
    if not any(old):
        return [[Part(NEW, line)] for line in new]
    rows: list[Line] = []
    for number, group in enumerate(grouped_changes(old, new, _CONTEXT)):
        if number:
            rows.append([Part(GAP, GAP)])
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                rows += [[Part(SAME, line)] for line in old[old_start:old_end]]
            else:
                rows += _replaced(old[old_start:old_end], new[new_start:new_end])
    return rows


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    """Lines that replaced others. They are compared word by word if they have much in common."""
    if len(old) != len(new):
        return [*([Part(OLD, line)] for line in old), *([Part(NEW, line)] for line in new)]
    rows: list[Line] = []
    for before, after in zip(old, new, strict=True):
        parts = changed_words(before, after)
        same = sum(len(part.text) for part in parts if part.kind == SAME)
        if 2 * same < _ALIKE * (len(before) + len(after)):
            rows += [[Part(OLD, before)], [Part(NEW, after)]]
        else:
            rows.append(parts)
    return rows


def sides(before: str, after: str) -> tuple[Line, Line]:
    """Two texts beside each other: each with what only it has marked."""
    parts = changed_words(before, after)
    return (
        [part for part in parts if part.kind != NEW],
        [part for part in parts if part.kind != OLD],
    )
