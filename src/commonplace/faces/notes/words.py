"""Wording shared by the note tools: notes as data and as lines, warnings, the last bound of a reply."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.clock import parse_stamp, stamp
from commonplace.errors import CommonplaceError, OutsideError
from commonplace.faces.notes.page import TEXT_LIMIT, compact
from commonplace.faces.tool import Arguments, Reply, error_reply
from commonplace.index.rows import NoteInfo
from commonplace.note.model import Note

if TYPE_CHECKING:
    from commonplace.engine import Memory

TITLE = 120
DATA_TITLE = 1000
"""Characters of a title in a line, and in data."""
_WARNINGS, _WARNING = 5, 300
_ERROR = 2500
_SHORTER, _KEYS = (2000, 500, 200, 80), 50


def note_data(note: Note | NoteInfo) -> dict[str, Any]:
    """A note as every reply's data holds it."""
    changed = note.changed if isinstance(note.changed, str) else stamp(note.changed)
    return {
        "title": note.title[:DATA_TITLE], "permalink": note.permalink, "file_path": note.path, "project": note.project,
        "type": note.type, "changed": changed,
    }  # fmt: skip


def short(text: str, most: int = TITLE) -> str:
    """`text` on one line, at most `most` characters."""
    head = text[: 4 * most]
    line = " ".join(head.split())
    return line if len(line) <= most and len(head) == len(text) else line[: most - 1].rstrip() + "…"


def address(note: Note | NoteInfo) -> str:
    """`project: permalink`, by which any tool finds the note again."""
    return f"{note.project}: {note.permalink}"


def where(note: Note) -> list[str]:
    """The lines that say where a note lies after a change."""
    return [
        f"project: {note.project}", f"file_path: {note.path}", f"permalink: {note.permalink}",
        f"checksum: {note.checksum}",
    ]  # fmt: skip


def local(memory: Memory, moment: str | datetime) -> datetime:
    """A stored time in the memory's time zone."""
    return (parse_stamp(moment) if isinstance(moment, str) else moment).astimezone(memory.settings.zone)


def plural(count: int, word: str) -> str:
    """`1 note`, `1,204 notes`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def lines(*parts: str) -> str:
    """The parts that are not empty, one below the other."""
    return "\n".join(part for part in parts if part)


def answering(run: Callable[[Memory, Arguments], Reply]) -> Callable[[Memory, Arguments], Reply]:
    """`run` with what all note tools share: warnings, `output_format: "json"`, bounded text.

    `run` sees `as_json` in its arguments.
    """

    def answer(memory: Memory, args: Arguments) -> Reply:
        args["as_json"] = args.pop("output_format", "text") == "json"
        try:
            reply = run(memory, args)
        except OutsideError as error:  # an address alone does not know whose it is
            project = error.project or short(args.get("project") or memory.default_project)
            reply = error_reply(OutsideError(error.path, project))
        except CommonplaceError as error:
            reply = error_reply(error)
        return finished(reply, memory.warnings, args["as_json"])

    return answer


def finished(reply: Reply, warnings: list[str], as_json: bool = False) -> Reply:
    """`reply` with the warnings of the last look at the disk, its text within the limit."""
    data = dict(reply.data or {})
    said = [*data.get("warnings", ()), *told(warnings)]
    if said:
        data["warnings"] = said
    if as_json and not reply.is_error:
        return Reply(_json(data), data)
    end = tail(said)
    text = reply.text
    if len(text) + len(end) > TEXT_LIMIT:
        text = text[: TEXT_LIMIT - len(end) - 2].rstrip() + " …"
    if reply.is_error:
        if len(text) > _ERROR:  # the remedy stands at its end
            text = f"{text[: _ERROR - 500]} … {text[-500:]}"
        data["error"] = text + end
    return Reply(text + end, data, reply.is_error)


def told(warnings: list[str]) -> list[str]:
    """The warnings a reply carries: the first few, each on one line."""
    more = len(warnings) - _WARNINGS
    rest = [f"{more} more warnings; `memory doctor` lists them."] if more > 0 else []
    return [short(each, _WARNING) for each in warnings[:_WARNINGS]] + rest


def tail(said: list[str]) -> str:
    """The lines below a reply's text that carry what `told` gave; "" for none."""
    return "\n" + "".join(f"\nWarning: {each}" for each in said) if said else ""


def _json(data: dict[str, Any]) -> str:
    """`data` as JSON within the limit: long texts are cut first, then long lists."""
    text = compact(data)
    for most in _SHORTER:
        if len(text) <= TEXT_LIMIT:
            return text
        text = compact(_cut(data, most))
    entries = 256
    while len(text) > TEXT_LIMIT and entries:
        text = compact({**_cut(data, _SHORTER[-1], entries), "truncated": True})
        entries //= 2
    return text


def _cut(value: Any, most: int, entries: int | None = None) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else value[: most - 1] + "…"
    if isinstance(value, list):
        return [_cut(each, most, entries) for each in value[:entries]]
    if isinstance(value, dict):
        return {key: _cut(each, most, entries) for key, each in [*value.items()][:_KEYS]}
    return value
