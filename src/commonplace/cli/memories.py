"""A memory as the command shows it: JSON object, block, row, preview (contract 001, 3)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from commonplace.clock import parse_stamp, stamp
from commonplace.errors import NotFound

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.index.rows import NoteInfo
    from commonplace.note.model import Note

PROJECT = "categories"
KEYS = (
    "id", "content", "content_hash", "phase", "category", "scope", "tags", "source",
    "created_at", "updated_at", "expires_at", "access_count", "links", "version", "path",
)  # fmt: skip
"""The keys of the `memory` object, in order."""

FURTHER = (
    "title", "aliases", "source_ref", "due_at", "due_text", "all_day", "repeat", "fired_at", "acked_at",
    "reminder_of", "merged", "unlinked",
)  # fmt: skip
"""Further keys of section 2, shown after the fixed ones when they are set."""

_LISTS = ("aliases", "merged", "unlinked")
_TIMES = ("due_at", "fired_at", "acked_at")
_BREAKS = re.compile("\r\n|[\x00-\x1f\x7f-\x9f\u2028\u2029]")

LIST_ROW = "{:<8} {:<10} {:<10} {:<10} {:<20} {}"
SEARCH_ROW = "{:<8} {:<10} {:<10} {}"


def content_of(memory: Memory, info: NoteInfo) -> str:
    """The content of a memory the index knows: its text without frontmatter and final newline."""
    from commonplace.note.frontmatter import split

    text = memory.text_of(info)
    body = text[split(text)[1] :]
    return body[:-1] if body.endswith("\n") else body


def record(memory: Memory, each: Note | NoteInfo, content: str) -> dict[str, Any]:
    """The `memory` object of JSON answers: fixed keys in their order, then the further ones that are set."""
    created, changed = _time(each.created), _time(each.changed)
    row = {
        "id": each.id,
        "content": content,
        "content_hash": hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
        "phase": each.phase,
        "category": each.category,
        "scope": each.scope,
        "tags": list(each.tags),
        "source": each.source,
        "created_at": created,
        "updated_at": _time(each.updated) if each.updated else changed,
        "expires_at": _time(each.expires) if each.expires else None,
        "access_count": each.access_count,
        "links": visible_links(memory, each.links),
        "version": each.version,
        "path": f"{PROJECT}/{each.path}",
    }
    for key in FURTHER:
        if (value := each.header.get(key)) not in (None, "", []):
            row[key] = _further(key, value)
    return row


def _further(key: str, value: Any) -> Any:
    if key in _LISTS:
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]
    if key in _TIMES:
        try:
            return stamp(parse_stamp(str(value)))
        except ValueError:
            return str(value)
    return value


def records(memory: Memory, infos: Iterable[NoteInfo]) -> list[dict[str, Any]]:
    """The objects of several memories."""
    return [record(memory, info, content_of(memory, info)) for info in infos]


def visible_links(memory: Memory, links: Iterable[str]) -> list[str]:
    """The ids of `links` without those of memories the caller may not see."""
    if memory.agent is None:
        return list(links)
    shown = []
    for each in links:
        try:
            memory.memory_id(each)
        except NotFound:
            continue
        shown.append(each)
    return shown


def _time(value: datetime | str) -> str:
    return value if isinstance(value, str) else stamp(value)


def local(value: datetime | str, zone: tzinfo | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in local clock time; `zone` None = the system's."""
    moment = parse_stamp(value) if isinstance(value, str) else value
    return moment.astimezone(zone).strftime(form)


def minute(value: datetime | str, zone: tzinfo | None) -> str:
    """`YYYY-MM-DD HH:MM`, local."""
    return local(value, zone, "%Y-%m-%d %H:%M")


def preview(content: str, length: int) -> str:
    """The first `length` characters on one line, `...` appended when cut."""
    flat = _BREAKS.sub(" ", content)
    return flat if len(flat) <= length else flat[:length] + "..."


def block(row: dict[str, Any], zone: tzinfo | None) -> str:
    """What `read` prints."""
    lines = [
        f"ID:     {row['id']}",
        f"Phase:   {row['phase']}",
        f"Category: {row['category']}",
        f"Scope:  {row['scope']}",
        f"Source: {row['source'] or ''}",
        f"Tags:   [{' '.join(row['tags'])}]",
        f"Links:  [{' '.join(row['links'])}]",
        f"Access: {row['access_count']}",
        f"Created: {local(row['created_at'], zone)}",
        f"Updated: {local(row['updated_at'], zone)}",
    ]
    if row["expires_at"]:
        lines.append(f"Expires: {local(row['expires_at'], zone)}")
    if row.get("due_at"):
        rule = f" repeat {row['repeat']}" if row.get("repeat") else ""
        lines.append(f"Due:     {_due(row['due_at'], zone)}{rule}")
    return "\n".join([*lines, "", row["content"]])


def _due(value: str, zone: tzinfo | None) -> str:
    try:
        return minute(value, zone)
    except ValueError:
        return value
