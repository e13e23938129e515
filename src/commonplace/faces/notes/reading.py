"""The tools that show notes as they lie: read_note, list_directory, recent_activity (contract 000b, 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.errors import InvalidInput
from commonplace.faces.notes.folders import folder_named
from commonplace.faces.notes.page import TEXT_LIMIT, Page, compact, lengths, whole
from commonplace.faces.notes.words import DATA_TITLE, address, lines, local, note_data, plural, short, tail, told
from commonplace.faces.tool import Arguments, Reply
from commonplace.note.model import Note

if TYPE_CHECKING:
    from commonplace.engine import Memory

NOT_UTF8 = "not_utf8"
_HEADER_ROOM = 6000
_REST, _WARNING, _LEAST = 160, 400, 1000


def read_note(memory: Memory, args: Arguments) -> Reply:
    """The file's text, or some of its lines, cut at a line end when it is too long."""
    first, last = _range(args)
    note = memory.read(args["identifier"], project=args.get("project"))
    data = note_data(note) | {"checksum": note.checksum, "frontmatter": _frontmatter(note)}
    room = TEXT_LIMIT - len(tail(told(memory.warnings))) - (_WARNING if _is_mended(note) else 0)
    if args["as_json"]:
        room = max(room - len(compact(data)) - _REST, _LEAST)
    part = excerpt(note.text, first, last, room, args["as_json"])
    data |= {
        "content": part.content, "start_line": part.first, "end_line": part.last, "total_lines": part.total,
        "truncated": part.last < part.asked or part.length > 0,
    }  # fmt: skip
    if _is_mended(note):
        data["warnings"] = [f"{note.path} holds bytes that are not UTF-8; they are shown as U+FFFD."]
    return Reply(part.content + part.rest(), data)


def _is_mended(note: Note) -> bool:
    """Whether bytes that are not UTF-8 were replaced."""
    return any(each.startswith(NOT_UTF8) for each in note.warnings)


def _range(args: Arguments) -> tuple[int, int]:
    first, last = args.get("start_line", 1), args.get("end_line", -1)
    if first < 1:
        raise InvalidInput(f"Parameter `start_line` must be 1 or more; got {first}.")
    if last != -1 and last < first:
        raise InvalidInput(f"Parameter `end_line` must be -1 (the last line) or at least {first}; got {last}.")
    return first, last


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `first` to `last` of a text of `total` lines, of which those up to `asked` were asked for.

    `length` is set when the text is one line cut short: how long that line is in all.
    """

    content: str
    first: int
    last: int
    total: int
    asked: int
    length: int = 0

    def rest(self) -> str:
        """The line of ours that follows when not all is shown that was asked for; else ""."""
        if self.first > max(self.total, 1):
            return f"[no line {self.first}: the note has {plural(self.total, 'line')}]"
        more = f"; continue with start_line={self.last + 1}" if self.last < self.asked else ""
        if self.length:
            return f"\n[line {self.first} of {self.total}: {len(self.content)} of its {self.length} characters{more}]"
        gap = "" if self.content.endswith("\n") else "\n"
        return f"{gap}[lines {self.first}-{self.last} of {self.total}{more}]" if more else ""


def excerpt(text: str, first: int, last: int, room: int, as_json: bool) -> Excerpt:
    """As many of the lines `first` to `last` (-1 = the last) as fit into `room` characters, at least one."""
    rows = text.split("\n")
    closed = rows[-1] == ""
    if closed:
        rows.pop()
    total = len(rows)
    asked = total if last == -1 else min(last, total)
    used, shown, safe = 0, first - 1, first - 1
    for row in rows[first - 1 : asked]:
        used += len(compact(row)) if as_json else len(row) + 1
        if used - (shown + 1 == total and not closed) > room:
            shown = safe
            break
        shown += 1
        if used <= room - _REST:
            safe = shown
    if shown < first <= asked:
        room -= _REST
        part = rows[first - 1][: room // 6 if as_json else room]  # one character takes up to six in JSON
        return Excerpt(part, first, first, total, asked, len(rows[first - 1]))
    if first == 1 and shown == total:
        return Excerpt(text, 1, total, total, asked)
    content = "".join(row + "\n" for row in rows[first - 1 : shown])
    if shown == total and not closed:
        content = content[:-1]
    return Excerpt(content, first, shown, total, asked)


def _frontmatter(note: Note) -> dict[str, Any]:
    """The frontmatter as written; one of unusual size with its long values cut."""
    if len(compact(note.header)) <= _HEADER_ROOM:
        return note.header
    kept: dict[str, Any] = {}
    for key, value in note.header.items():
        value = value if len(compact(value)) <= 200 else short(value if isinstance(value, str) else compact(value), 200)
        if len(compact(kept)) + len(key) + 200 > _HEADER_ROOM:
            break
        kept[key] = value
    return kept


def list_directory(memory: Memory, args: Arguments) -> Reply:
    """Folders and notes of a folder, one line each."""
    page = Page.of(args, 200)
    depth = whole(args, "depth", 1, 10)
    project, folder = folder_named(memory, args["dir_name"], args.get("project"))
    glob = args.get("file_name_glob")
    found = memory.directory(project, folder, depth=depth, glob=glob, limit=page.size, offset=page.offset)
    entries = [_entry(each) for each in found.entries]
    rows = [_entry_line(memory, each) for each in entries]
    page = page.fitting(lengths(entries, rows, args["as_json"]))
    entries, rows = entries[: page.size], rows[: page.size]
    name = f"{project}: /{folder}" + (f" ({glob})" if glob else "")
    head = f"# {short(name)}, {found.total:,} {'entry' if found.total == 1 else 'entries'}"
    data = {"project": project, "directory": folder, "entries": entries, **page.data(found.total, len(entries))}
    return Reply(lines(head, *rows, page.foot(found.total, len(entries))), data)


def _entry(each: Any) -> dict[str, Any]:
    if each.kind == "folder":
        return {"kind": "folder", "path": each.path, "notes": each.notes}
    return {
        "kind": "note", "path": each.path, "title": each.title[:DATA_TITLE], "permalink": each.permalink,
        "changed": each.changed,
    }  # fmt: skip


def _entry_line(memory: Memory, entry: dict[str, Any]) -> str:
    if entry["kind"] == "folder":
        return f"{entry['path']}/  ({plural(entry['notes'], 'note')})"
    return f"{entry['path']}  {short(entry['title'])}  {local(memory, entry['changed']):%Y-%m-%d}"


def recent_activity(memory: Memory, args: Arguments) -> Reply:
    """Notes by changed time, newest first."""
    page = Page.of(args, 100)
    named = args.get("project")
    projects = (memory.project(named).name,) if named is not None else None
    infos, total, since = memory.recent(args["timeframe"], projects=projects, limit=page.size, offset=page.offset)
    entries = [note_data(each) for each in infos]
    rows = [f"{local(memory, each.changed):%Y-%m-%d %H:%M}  {short(each.title)}  ({address(each)})" for each in infos]
    page = page.fitting(lengths(entries, rows, args["as_json"]))
    entries, rows = entries[: page.size], rows[: page.size]
    where = f" in {projects[0]}" if projects else ""
    head = f"# Changed since {local(memory, since):%Y-%m-%d %H:%M}{where}: {plural(total, 'note')}"
    hint = "" if total else "Try a longer timeframe, e.g. 30d, or search_notes."
    data = {
        "results": entries, "timeframe": args["timeframe"], "since": stamp(since), **page.data(total, len(entries)),
    }  # fmt: skip
    return Reply(lines(head, *rows, page.foot(total, len(entries)), hint), data)
