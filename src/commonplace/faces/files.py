"""The `memory` tool: Anthropic's six commands over the project `memories` (contract 000a).

One implementation serves MCP, socket, command line and the SDK adapters: (arguments, caller) -> reply.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commonplace.errors import (
    CommonplaceError,
    Conflict,
    CountMismatch,
    Exists,
    InvalidInput,
    NotFound,
    NotText,
    OutsideError,
    StorageError,
)
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Prompt, Reply, Tool, Toolset
from commonplace.note.edit import InsertLine, LineOutOfRange, StrReplace
from commonplace.store.files import NAME_REASONS
from commonplace.store.path_guard import NAME_BYTES, climbs

if TYPE_CHECKING:
    from commonplace.engine import Memory
    from commonplace.engine.files import Files
    from commonplace.store.folder import Place

PROJECT = "memories"
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
MAX_LINES = 999_999
SNIPPET = 2
_ROOT = "/memories"
_FOLDER_SIZE = "4K"
_NEEDS = {
    "view": ("path",), "create": ("path", "file_text"), "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"), "delete": ("path",), "rename": ("old_path", "new_path"),
}  # fmt: skip


class Refused(CommonplaceError):
    """The tool's answer to bad input, in the words clients know."""

    code = "invalid"


def toolset(
    *,
    create_existing: str = "overwrite",
    instructions: Sequence[str] = (),
    view_max_characters: int = 0,
    with_notes: bool = True,
) -> Toolset:
    """The toolset `memory`: one tool, one prompt, and what the model is told (contract 000a, 2, 8, 11)."""
    definition = json.loads(text_file("memory-tool.json"))
    overwrites = create_existing == "overwrite"
    phrase = "an existing file is overwritten" if overwrites else "an existing file is refused"
    commands = MemoryCommands(create_existing=create_existing, view_max_characters=view_max_characters)
    tool = Tool(
        name="memory",
        description=definition["description"].replace("{create}", phrase),
        schema=definition["inputSchema"],
        annotations=definition["annotations"],
        run=commands.run,
        unknown="own",
    )
    owner = _owner(instructions)
    told = [text_file("memory-protocol.md"), text_file("memory-instructions.md")]
    if with_notes:
        told.append(text_file("memory-finding.md"))
    guide = text_file("memory-guide.md") + (f"\n{owner}\n" if owner else "")
    prompt = Prompt("memory_guide", "How to use the memory directory well, with examples.", lambda memory, given: guide)
    return Toolset("memory", (tool,), "\n".join(told), closing=owner, prompts=(prompt,))


def _owner(sentences: Sequence[str]) -> str:
    return "## From the owner\n" + "\n".join(sentences) if sentences else ""


class MemoryCommands:
    """The six commands. `folder` makes `/memories` a folder of the project, e.g. one per end user."""

    def __init__(self, *, create_existing: str = "overwrite", view_max_characters: int = 0, folder: str = ""):
        self._overwrite = create_existing == "overwrite"
        self._view_max = view_max_characters
        self._folder = folder

    def run(self, memory: Memory, arguments: Any) -> Reply:
        """Carry out one command. Bad input is answered, never raised."""
        try:
            return Reply(self._run(memory, arguments))
        except CommonplaceError as error:
            return _refusal(error)

    def clear(self, memory: Memory) -> Reply:
        """Move everything to the history, as one change."""
        try:
            self._files(memory).clear()
            return Reply("All memory cleared")
        except CommonplaceError as error:
            return _refusal(_unwritable(error, _ROOT))

    def _files(self, memory: Memory) -> Files:
        from commonplace.engine.files import Files  # the engine is needed by the first call, not by the handshake

        return Files(memory, PROJECT, self._folder)

    def _run(self, memory: Memory, arguments: Any) -> str:
        command = arguments.get("command") if isinstance(arguments, dict) else None
        if not isinstance(command, str) or command not in COMMANDS:
            raise Refused(f"Parameter `command` must be one of {', '.join(COMMANDS)}.")
        given = {key: value for key, value in arguments.items() if value is not None}
        if command == "rename":
            given.setdefault("old_path", given.get("path"))
        for name in _NEEDS[command]:
            if given.get(name) is None:
                raise Refused(f"Parameter `{name}` is required for command: {command}")
        files = self._files(memory)
        with files.alone():
            return getattr(self, f"_{command}")(files, given)

    # --- commands -------------------------------------------------------------------------------

    def _view(self, files: Files, given: dict[str, Any]) -> str:
        path = _text(given, "path", "view")
        inside = _inside(path)
        place = _at(files, inside, path)
        if place.kind == "folder":
            return _listing(files, inside, path)
        if place.kind != "file":
            raise Refused(f"The path {path} does not exist. Please provide a valid path.")
        try:
            data = files.read(inside).data
        except NotFound:
            raise Refused(f"The path {path} does not exist. Please provide a valid path.") from None
        except CommonplaceError as error:
            raise _unwritable(error, path, "read") from None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise Refused(f"{path} is not UTF-8 text, so it cannot be shown. It stays as it is.") from None
        files.count_access(place)
        return self._numbered(path, text, _range(given.get("view_range")))

    def _numbered(self, path: str, text: str, span: tuple[int, int] | None) -> str:
        total = text.count("\n") + 1
        if total > MAX_LINES:
            raise Refused(f"File {path} exceeds maximum line limit of 999,999 lines.")
        lines = text.split("\n")
        header = f"Here's the content of {path} with line numbers:\n"
        if span is not None:
            first, last = max(span[0], 1), total if span[1] == -1 else min(span[1], total)
            return header + _lines(lines[first - 1 : max(last, 0)], first)
        if self._view_max and len(text) > self._view_max:
            return header + self._cut(lines, total)
        return header + _lines(lines, 1)

    def _cut(self, lines: list[str], total: int) -> str:
        """As many whole lines as the configured length allows, at least one, and how to see the rest."""
        room, shown = self._view_max, 0
        while shown < total and (shown == 0 or len(lines[shown]) + 1 <= room):
            room -= len(lines[shown]) + 1
            shown += 1
        if shown == total:
            return _lines(lines, 1)
        more = f"[lines 1-{shown} of {total}; see more with view_range [{shown + 1}, {total}]]"
        return f"{_lines(lines[:shown], 1)}\n{more}"

    def _create(self, files: Files, given: dict[str, Any]) -> str:
        text = _text(given, "file_text", "create")
        path = _text(given, "path", "create")
        inside = _inside(path)
        if path.endswith("/") and inside and _at(files, inside, path).kind == "missing":
            raise Refused(f"The path {path} is not a file.")
        try:
            files.write(inside, text, overwrite=self._overwrite)
        except Exists:
            raise Refused(f"File {path} already exists") from None
        except NotFound:
            raise Refused(f"Invalid path: a part of {path} does not exist or is not a directory.") from None
        except CommonplaceError as error:
            raise _unwritable(error, path) from None
        return f"File created successfully at: {path}"

    def _str_replace(self, files: Files, given: dict[str, Any]) -> str:
        old = _text(given, "old_str", "str_replace")
        new = _text(given, "new_str", "str_replace") if "new_str" in given else ""
        path = _text(given, "path", "str_replace")
        inside = _editable(files, path)
        if not old:
            raise Refused("No replacement was performed: `old_str` is empty. Give the exact text to replace.")
        try:
            edited = files.edit(inside, StrReplace(old, new))
        except CountMismatch as error:
            if not error.found:
                raise Refused(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
                ) from None
            where = ", ".join(map(str, error.lines))
            raise Refused(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {where}. "
                "Please ensure it is unique"
            ) from None
        except CommonplaceError as error:
            raise _unwritable(error, path) from None
        lines = edited.text.split("\n")
        first = max(edited.line - SNIPPET, 1)
        header = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        return header + _lines(lines[first - 1 : edited.line + SNIPPET], first)

    def _insert(self, files: Files, given: dict[str, Any]) -> str:
        line = _integer(given["insert_line"])
        if line is None:
            raise Refused("Parameter `insert_line` must be a whole number for command: insert")
        text = _text(given, "insert_text", "insert")
        path = _text(given, "path", "insert")
        inside = _editable(files, path)
        try:
            files.edit(inside, InsertLine(line, text))
        except LineOutOfRange as error:
            raise Refused(
                f"Invalid `insert_line` parameter: {line}. "
                f"It should be within the range of lines of the file: [0, {error.total}]"
            ) from None
        except CommonplaceError as error:
            raise _unwritable(error, path) from None
        return f"The file {path} has been edited."

    def _delete(self, files: Files, given: dict[str, Any]) -> str:
        path = _text(given, "path", "delete")
        inside = _inside(path)
        if not inside:
            raise Refused("Cannot delete the /memories directory itself")
        try:
            files.delete(inside)
        except NotFound:
            raise Refused(f"The path {path} does not exist") from None
        except CommonplaceError as error:
            raise _unwritable(error, path) from None
        return f"Successfully deleted {path}"

    def _rename(self, files: Files, given: dict[str, Any]) -> str:
        old = _text(given, "old_path", "rename")
        new = _text(given, "new_path", "rename")
        source = _inside(old)
        if not source:
            raise Refused("Cannot rename the /memories directory itself")
        target = _inside(new)
        for inside, path in ((source, old), (target, new)):
            try:
                files.itself(inside)
            except CommonplaceError as error:
                raise _unwritable(error, path) from None
        try:
            files.rename(source, target)
        except Exists:
            raise Refused(f"The destination {new} already exists") from None
        except NotFound:
            raise Refused(f"The path {old} does not exist") from None
        except CommonplaceError as error:
            raise _unwritable(error, new) from None
        return f"Successfully renamed {old} to {new}"


def _refusal(error: CommonplaceError) -> Reply:
    return Reply(str(error), {"error": str(error), "is_error": True}, is_error=True)


# --- arguments ------------------------------------------------------------------------------------


def _text(given: dict[str, Any], name: str, command: str) -> str:
    value = given[name]
    if not isinstance(value, str):
        raise Refused(f"Parameter `{name}` must be a string for command: {command}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(f"Parameter `{name}` must be valid Unicode text; it holds a lone surrogate.") from None
    return value


def _integer(value: Any) -> int | None:
    """An integer, also as text or as a whole float; None for anything else, booleans included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        digits = text[1:] if text[:1] in "+-" else text
        return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _range(value: Any) -> tuple[int, int] | None:
    """A line range of exactly two integers; anything else is ignored."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, list) or len(value) != 2:
        return None
    first, last = map(_integer, value)
    return None if first is None or last is None else (first, last)


def _inside(path: str) -> str:
    """The path below /memories, checked on the text as given (contract 000a, 3)."""
    if any(bad in path for bad in "\0\n\r"):
        raise Refused("Invalid path: line breaks and NUL are not allowed in a path")
    rooted = path if path.startswith("/") else f"/{path}"
    # A backslash after the root is read as `/` only to refuse what it would climb to.
    if rooted != _ROOT and not rooted.startswith((f"{_ROOT}/", f"{_ROOT}\\")):
        raise Refused(f"Path must start with /memories, got: {path}")
    rest = rooted[len(_ROOT) :]
    if climbs(rest):
        raise Refused(f"Path {path} would escape /memories directory")
    if rest.startswith("\\"):
        raise Refused(f"Path must start with /memories, got: {path}")
    if "\\" in rest:
        raise Refused(f"Invalid path: {path} contains a backslash. Use / between folders.")
    parts = [part for part in rest.split("/") if part not in ("", ".")]
    for part in parts:
        if len(part.encode()) > NAME_BYTES:
            raise Refused(f"Invalid path: the name {_short(part)} has more than {NAME_BYTES} bytes.")
    return "/".join(parts)


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:60]}…"


def _at(files: Files, inside: str, path: str) -> Place:
    try:
        return files.at(inside)
    except CommonplaceError as error:
        raise _unwritable(error, path, "read") from None


def _editable(files: Files, path: str) -> str:
    """The inside path of an existing file."""
    inside = _inside(path)
    kind = _at(files, inside, path).kind
    if kind == "folder":
        raise Refused(f"The path {path} is not a file.")
    if kind != "file":
        raise Refused(f"The path {path} does not exist. Please provide a valid path.")
    return inside


def _unwritable(error: CommonplaceError, path: str, what: str = "changed") -> CommonplaceError:
    """An engine error in this tool's words; what has its own words already stays."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, OutsideError):
        return Refused(f"Path {path} would escape /memories directory")
    if isinstance(error, NotText):
        return Refused(f"{path} is not UTF-8 text and was not changed. Convert it to UTF-8 first.")
    if isinstance(error, NotFound):
        return Refused(f"The path {path} does not exist. Please provide a valid path.")
    if isinstance(error, StorageError):
        if error.reason in NAME_REASONS:
            return Refused(f"Invalid path: {error.reason}: {_short(path)}")
        return Refused(f"{path} could not be {what}: {error.reason}. Nothing was changed.")
    if isinstance(error, InvalidInput):
        return Refused(f"{path} was not changed: {error}")
    if isinstance(error, Conflict):
        return Refused(f"{path} was not changed: another program keeps writing it. Try again.")
    return Refused(str(error))


# --- texts ----------------------------------------------------------------------------------------


def _lines(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, first))


def _listing(files: Files, inside: str, path: str) -> str:
    base = path.rstrip("/")
    rows = [
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:",
        f"{_FOLDER_SIZE}\t{path}",
    ]
    try:
        _list_level(files, inside, base, 2, rows)
    except NotFound:
        return "\n".join(rows)
    except CommonplaceError as error:
        raise _unwritable(error, path, "read") from None
    return "\n".join(rows)


def _list_level(files: Files, inside: str, shown: str, levels: int, rows: list[str]) -> None:
    for name, place in files.entries(inside):
        if place.kind == "folder":
            rows.append(f"{_FOLDER_SIZE}\t{shown}/{name}/")
            if levels > 1 and not place.link:
                _list_level(files, f"{inside}/{name}" if inside else name, f"{shown}/{name}", levels - 1, rows)
        else:
            rows.append(f"{size(place.size)}\t{shown}/{name}")


def size(count: int) -> str:
    """Bytes in base 1024 as both SDKs show them: `0B`, `1K`, `1.5K`, `1024.0K`, `1M`; at most `G`."""
    unit = min((count.bit_length() - 1) // 10, 3) if count else 0
    value = count / 1024**unit
    text = str(int(value)) if value.is_integer() else f"{value:.1f}"
    return f"{text}{'BKMG'[unit]}"
