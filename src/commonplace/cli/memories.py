"""A memory as the command shows it: JSON object, block, row, preview (contract 001, 3)."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any

from commonplace.clock import parse_stamp
from commonplace.engine.memories import (
    FURTHER,
    KEYS,
    PROJECT,
    content_of,
    contents,
    on_one_line,
    record,
    records,
    visible_links,
)

__all__ = [
    "FURTHER", "KEYS", "LIST_ROW", "PROJECT", "SEARCH_ROW", "block", "content_of", "contents", "local", "minute",
    "preview", "record", "records", "visible_links",
]  # fmt: skip

LIST_ROW = "{:<8} {:<10} {:<10} {:<10} {:<20} {}"
SEARCH_ROW = "{:<8} {:<10} {:<10} {}"


def local(value: datetime | str, zone: tzinfo | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in local clock time; `zone` None = the system's."""
    moment = parse_stamp(value) if isinstance(value, str) else value
    return moment.astimezone(zone).strftime(form)


def minute(value: datetime | str, zone: tzinfo | None) -> str:
    """`YYYY-MM-DD HH:MM`, local."""
    return local(value, zone, "%Y-%m-%d %H:%M")


def preview(content: str, length: int) -> str:
    """The first `length` characters on one line, `...` appended when cut."""
    flat = on_one_line(content)
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
    except (ValueError, OverflowError):
        return value
