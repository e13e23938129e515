"""A memory of `categories` as the command and the agent tools show it in JSON (contract 001, 3 and 14)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.clock import parse_stamp, stamp
from commonplace.engine.engine import verb
from commonplace.engine.reading import ReadVerbs
from commonplace.errors import Ambiguous, NotFound
from commonplace.index.rows import NoteInfo
from commonplace.note.model import FURTHER
from commonplace.store.base import sha256

if TYPE_CHECKING:
    from commonplace.note.model import Note

KEYS = (
    "id", "content", "content_hash", "phase", "category", "scope", "tags", "source",
    "created_at", "updated_at", "expires_at", "access_count", "links", "version", "path",
)  # fmt: skip
"""The keys of the `memory` object, in order; those of FURTHER that are set follow."""

_LISTS = ("aliases", "merged", "unlinked", "kept_from", "supersedes")
_TIMES = ("due_at", "fired_at", "acked_at", "last_used_at", "archived_at")


def content_of(memory: ReadVerbs, info: NoteInfo) -> str:
    """The content of a memory the index knows: its text without frontmatter and final newline."""
    return contents(memory, [info])[0]


@verb
def contents(memory: ReadVerbs, infos: Sequence[NoteInfo]) -> list[str]:
    """The contents of several memories, in their order."""
    bodies = memory.index.notes.bodies([info.row for info in infos])
    return [bodies.get(info.row, "").removesuffix("\n") for info in infos]


def record(memory: ReadVerbs, each: Note | NoteInfo, content: str) -> dict[str, Any]:
    """The `memory` object of JSON answers: fixed keys in their order, then the further ones that are set."""
    row = {
        "id": each.id,
        "content": content,
        "content_hash": sha256(content.encode("utf-8", "surrogatepass")),
        "phase": each.phase,
        "category": each.category,
        "scope": each.scope,
        "tags": list(each.tags),
        "source": each.source,
        "created_at": _time(each.created),
        "updated_at": _time(each.updated or each.changed),
        "expires_at": _time(each.expires) if each.expires else None,
        "access_count": each.access_count,
        "links": visible_links(memory, each.links),
        "version": each.version,
        "path": home_path(each),
    }
    for key in FURTHER if not isinstance(each, NoteInfo) or each.may_say(FURTHER) else ():
        value = _further(key, each.header.get(key))
        if key == "unlinked" and value:
            value = visible_links(memory, value)
        if value not in (None, "", []):
            row[key] = value
    if each.suspicious:
        row["suspicious"] = list(each.suspicious)
    return row


def home_path(each: Note | NoteInfo) -> str:
    """Where a memory lies, relative to the home."""
    return f"{each.project.removeprefix('.')}/{each.path}"


def records(memory: ReadVerbs, infos: Iterable[NoteInfo]) -> list[dict[str, Any]]:
    """The objects of several memories."""
    every = list(infos)
    marks = memory.validity_marks(every)
    return [
        record(memory, info, content) | ({"validity": marks[info.row]} if info.row in marks else {})
        for info, content in zip(every, contents(memory, every), strict=True)
    ]


def read_record(memory: ReadVerbs, info: NoteInfo) -> dict[str, Any]:
    """The object of one memory as it is on disk now, counted as read, and what is to be said of its validity."""
    note, marks = memory.read(info), memory.validity_marks([info])
    return record(memory, note, note.content) | ({"validity": marks[info.row]} if marks else {})


def visible_links(memory: ReadVerbs, links: Iterable[str]) -> list[str]:
    """The ids of `links` without those of memories the caller may not see."""
    shown = []
    for each in links:
        with suppress(NotFound):
            if memory.agent is not None:
                memory.memory_id(each)
            shown.append(each)
    return shown


def complaint(error: NotFound | Ambiguous) -> str:
    """What is said when no memory, or none alone, has the id asked for (contract 001, 1)."""
    if isinstance(error, Ambiguous):
        return f'ambiguous id "{error.identifier}": {error.total} memories match'
    return f"memory not found: {error.identifier}"


def _further(key: str, value: Any) -> Any:
    if key in _LISTS and value not in (None, "", []):
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]
    if key in _TIMES and value not in (None, "", []):
        with suppress(ValueError, OverflowError):
            return stamp(parse_stamp(str(value)))
        return str(value)
    return value


def _time(value: datetime | str) -> str:
    return value if isinstance(value, str) else stamp(value)
