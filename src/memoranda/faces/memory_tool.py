"""The `memory` tool: Anthropic's six commands over the project `memories` (contract 000a).

One implementation serves MCP, socket, command line and the SDK adapters: (arguments, caller) ->
reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from memoranda import errors
from memoranda.documents.cutting import rows_that_fit
from memoranda.errors import (
    CountMismatch,
    Exists,
    InvalidInput,
    LineOutOfRange,
    MemorandaError,
    NotFound,
)
from memoranda.faces.arguments import Arguments, check
from memoranda.faces.other_notes import count_sentence, newest_notes
from memoranda.faces.reply import Reply, plain_error_reply
from memoranda.faces.texts import text_file
from memoranda.faces.tool import Prompt, Tool, Toolset
from memoranda.note.edit import InsertLine, StrReplace
from memoranda.sources.files import NAME_REASONS
from memoranda.sources.path_guard import NAME_BYTES, check_size, climbs
from memoranda.text.unicode import flat, is_valid_unicode, unescaped
from memoranda.text.utf16 import utf16_coding

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.engine.plain_files import Files

PROJECT = "memories"
# The `memory` tool's documentation has this limit: numbers of lines have six digits.
MAX_LINES = 999_999
# This many lines are shown before and after an edit.
SNIPPET = 2
# An error repeats at most this many characters of a caller's text.
_MAX_TEXT_CHARACTERS = 2_000
# An error about a text that occurs several times names at most this many line numbers.
_MAX_LINE_NUMBERS = 100
# An error about a path or a name that is too long repeats at most this many characters of it.
_MAX_PATH_CHARACTERS = 60
_ROOT = "/memories"
# A listing shows this size for every folder.
_FOLDER_SIZE = "4K"
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
_WRITING_COMMANDS = ("create", "str_replace", "insert")
# The words for each kind of error. The first kind that fits counts.
_ERRORS: dict[type[MemorandaError], str] = {
    errors.OutsideError: "Path {path} would escape /memories directory",
    errors.NotText: "{path} is not UTF-8 text and was not changed. Convert it to UTF-8 first.",
    NotFound: "The path {path} does not exist. Please provide a valid path.",
    errors.StorageError: "{path} could not be {what}: {error.reason}. Nothing was changed.",
    InvalidInput: "{path} was not changed: {message}",
    errors.Unusable: "The path {path} cannot be used. Choose another one.",
    errors.Conflict: "{path} was not changed: another program keeps writing it. Try again.",
    MemorandaError: "{message}",
}
# The schema of the argument `view_range`.
_RANGE_SCHEMA = {
    "required": ("range",),
    "properties": {"range": {"type": "array", "items": {"type": "integer"}}},
}


def toolset(
    *,
    create_existing: str = "overwrite",
    instructions: Sequence[str] = (),
    view_max_characters: int = 0,
    with_notes: bool = True,
) -> Toolset:
    """Make the toolset `memory`: one tool, one prompt and instructions (contract 000a, 2, 8, 11).

    create_existing: `overwrite`, or else the command `create` refuses an existing file.
    instructions: sentences of the owner for the model.
    view_max_characters: the characters of a file that `view` shows. 0 means all.
    with_notes: whether the server has the tools for notes, too.
    """
    commands = MemoryCommands(
        create_existing=create_existing,
        view_max_characters=view_max_characters,
        with_notes=with_notes,
    )
    definition = _definition()
    create_effect = "overwritten" if create_existing == "overwrite" else "refused"
    description = definition["description"].replace(
        "{create}", f"an existing file is {create_effect}"
    )
    tool = Tool(
        name="memory",
        description=description,
        schema=definition["inputSchema"],
        run=commands.run,
        annotations=definition["annotations"],
        # The schema of each command is checked when the command is known.
        contract=None,
    )

    # The owner's sentences close both the prompt and the instructions.
    guide = text_file("memory-guide.md")
    owner_text = ""
    if instructions:
        owner_text = "## From the owner\n" + "\n".join(instructions)
        guide += f"\n{owner_text}\n"
    prompt = Prompt(
        "memory_guide",
        "How to use the memory directory well, with examples.",
        lambda memory, arguments: guide,
    )

    instruction_names = ["protocol", "instructions"]
    if with_notes:
        instruction_names.append("finding")
    instruction_text = "\n".join(text_file(f"memory-{name}.md") for name in instruction_names)
    return Toolset("memory", (tool,), instruction_text, closing=owner_text, prompts=(prompt,))


@cache
def _definition() -> dict[str, Any]:
    """Return the declaration of the tool.

    Its `commands` has a schema for each command, which lists the parameters in the order in which
    they are checked.
    """
    return dict(json.loads(text_file("memory-tool.json")))


@dataclass(slots=True, eq=False, kw_only=True)
class MemoryCommands:
    """Carries out the six commands.

    create_existing: what `create` does with an existing file: `overwrite`, or else refuse it.
    view_max_characters: the characters of a file that `view` shows. 0 means all.
    folder: the folder of the project that is `/memories`, e.g. one for each end user. "" is the
        project itself.
    with_notes: whether the caller has the tools for notes, too.
    """

    create_existing: str = "overwrite"
    view_max_characters: int = 0
    folder: str = ""
    with_notes: bool = True

    def run(self, memory: MemorySession, arguments: Any) -> Reply:
        """Carry out one command. Every MemorandaError becomes an error reply."""
        try:
            reply = Reply(self._answer(memory, arguments))
            if _shows_root(arguments):
                reply.hint = self._other_notes_hint(memory)
            elif arguments["command"] in _WRITING_COMMANDS:
                reply.hint = self._contradiction_hint(memory, arguments["path"])
        except MemorandaError as error:
            return plain_error_reply(error)
        return reply

    def _other_notes_hint(self, memory: MemorySession) -> str:
        """Return how many notes are not below /memories, and how to see them. "" if there are none.

        A caller who has no tool to read them is told the newest ones. A caller with one folder, such
        as an end user's, is told nothing.
        """
        if self.folder:
            return ""
        sentence = count_sentence(memory, PROJECT, _ROOT)
        if not sentence:
            return ""
        if self.with_notes:
            return f"{sentence} search_notes finds them, and read_note shows one."
        lines = [note.line for note in newest_notes(memory, PROJECT)]
        return "\n".join([f"{sentence} The newest:", *lines])

    def _contradiction_hint(self, memory: MemorySession, path: str) -> str:
        """Return what the caller is told of an older note that a written file contradicts.

        "" if there is none. A caller with one folder is told nothing of notes elsewhere.
        """
        # A path with a backslash is the escaped name of a file.
        if self.folder or "\\" in path:
            return ""
        # The engine is imported by now, see `_answer`.
        from memoranda.engine.telling.contested import remark_for_agent

        return remark_for_agent(memory, PROJECT, _path_below_root(path))

    def _answer(self, memory: MemorySession, arguments: Any) -> str:
        """Carry out one command, and return the text of the reply. Raises MemorandaError."""
        # The first call imports the engine: a server must answer the handshake quickly.
        from memoranda.engine.plain_files import Files

        command = arguments.get("command") if isinstance(arguments, dict) else None
        if not isinstance(command, str) or command not in COMMANDS:
            raise InvalidInput(f"Parameter `command` must be one of {', '.join(COMMANDS)}.")
        # As in all other commands, the file may also be named by `path`. An empty `old_path` beside
        # it is one that a model filled in.
        if command == "rename" and arguments.get("old_path") in (None, ""):
            named_path = arguments.get("path") or arguments.get("old_path")
            arguments = arguments | {"old_path": named_path}
        files = Files(memory, PROJECT, self.folder)
        arguments = _with_names_on_disk(files, arguments)
        if command == "create" and arguments.get("file_text") is None:
            arguments = _as_empty_file(files, arguments)
        checked = check(arguments, _definition()["commands"][command], "memory", command)
        if command == "view":
            with files.reading():
                # Not checked: a range that cannot be used counts as none (`_line_range`).
                view_range = arguments.get("view_range")
                return self._view(files, checked["path"], view_range)
        if command == "create":
            return self._create(files, checked)
        # What is changed is compared with what was read, so others may come in between.
        return _COMMANDS[command](files, checked)

    def clear(self, memory: MemorySession) -> Reply:
        """Delete all files as one change, which the owner can undo."""
        from memoranda.engine.plain_files import Files

        try:
            with _errors_in_our_words(_ROOT):
                Files(memory, PROJECT, self.folder).clear()
        except MemorandaError as error:
            return plain_error_reply(error)
        return Reply("All memory cleared")

    def _view(self, files: Files, path: str, span: Any) -> str:
        """Show a file with line numbers, or list a folder.

        span: the argument `view_range`. None if the call has none.
        """
        inner_path = _path_below_root(path)
        with _errors_in_our_words(path, "read"):
            place = files.at(inner_path)
            if place.kind == "folder":
                return _listing(files, inner_path, path)
            if place.kind != "file":
                raise NotFound(path)
            data = files.read(inner_path).data
        text = _text_of(path, data)
        files.count_access(place)
        lines = text.split("\n")
        if len(lines) > MAX_LINES:
            raise InvalidInput(f"File {path} exceeds maximum line limit of 999,999 lines.")
        header = f"Here's the content of {path} with line numbers:\n"
        line_range = _line_range(span, len(lines))
        if line_range is None:
            return header + self._first_lines(lines)
        first, last = line_range
        # In a slice, a negative end would count from the end of the file.
        return header + _numbered(lines[first - 1 : max(last, 0)], first)

    def _first_lines(self, lines: Sequence[str]) -> str:
        """Return the first lines of a file with their numbers, as many as may be shown.

        At least one line is returned.

        If lines are left out, a last line says how to see them.
        """
        total = len(lines)
        shown_count = total
        if self.view_max_characters:
            # Each line has a line break, which counts as a character.
            lengths = [len(line) + 1 for line in lines]
            # The last line of a file has no line break.
            if sum(lengths) - 1 > self.view_max_characters:
                shown_count = max(rows_that_fit(lengths, self.view_max_characters), 1)
        shown_lines = _numbered(lines[:shown_count], first=1)
        if shown_count == total:
            return shown_lines
        further_range = f"[{shown_count + 1}, {total}]"
        notice = f"[lines 1-{shown_count} of {total}; see more with view_range {further_range}]"
        return f"{shown_lines}\n{notice}"

    def _create(self, files: Files, args: Arguments) -> str:
        """Write a file with the text of the call."""
        path = args["path"]
        inner_path = _path_below_root(path)
        # A path with a slash at its end names a folder. If the folder exists, writing the file
        # fails below with a better error.
        if path.endswith("/") and inner_path:
            with _errors_in_our_words(path, "read"), files.reading():
                is_missing = files.at(inner_path).kind == "missing"
            if is_missing:
                raise InvalidInput(f"The path {path} is not a file.")
        own_errors = {
            Exists: f"File {path} already exists",
            NotFound: f"Invalid path: a part of {path} does not exist or is not a directory.",
        }
        may_overwrite = self.create_existing == "overwrite"
        with _errors_in_our_words(path, texts_by_error=own_errors):
            files.write(inner_path, args["file_text"], overwrite=may_overwrite)
        return f"File created successfully at: {path}"


def _listing(files: Files, inner_path: str, path: str) -> str:
    """List a folder and the folders in it.

    inner_path: the path below /memories.
    path: the path as the caller wrote it.
    """
    head = f"Here're the files and directories up to 2 levels deep in {path}"
    rows = [f"{head}, excluding hidden items and node_modules:", f"{_FOLDER_SIZE}\t{path}"]
    # A folder may be deleted while it is listed.
    with suppress(NotFound):
        _list_level(files, inner_path, path.rstrip("/"), levels=2, rows=rows)
    return "\n".join(rows)


def _text_of(path: str, data: bytes) -> str:
    """Decode a file. Raises InvalidInput if it is not UTF-8."""
    if utf16_coding(data):
        raise InvalidInput(
            f"{path} is UTF-16 text, so it cannot be shown. Convert it to UTF-8 first."
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{path} is not UTF-8 text, so it cannot be shown. It stays as it is."
        ) from None


def _line_range(span: Any, total: int) -> tuple[int, int] | None:
    """Return the first and the last line of a `view_range`, e.g. (3, 20) for `[3, -1]`.

    None if it is not two integers.

    span: the argument, as the caller sent it.
    total: the number of lines of the file.
    """
    try:
        if isinstance(span, str):
            span = json.loads(span)
        first, last = check({"range": span}, _RANGE_SCHEMA, "memory")["range"]
    except (InvalidInput, ValueError, RecursionError):
        return None
    if last == -1:
        last = total
    return max(first, 1), min(last, total)


def _as_empty_file(files: Files, arguments: Arguments) -> Arguments:
    """Add an empty text to the arguments of `create` if its file does not exist yet.

    Clients leave out empty texts (amendment 5), but a forgotten text must not empty a file.
    """
    path = arguments.get("path")
    if not isinstance(path, str) or not is_valid_unicode(path):
        return arguments
    with suppress(MemorandaError), files.reading():
        if files.at(_path_below_root(path)).kind == "missing":
            return arguments | {"file_text": ""}
    return arguments


def _str_replace(files: Files, args: Arguments) -> str:
    """Replace a text that occurs exactly once in a file, and show the lines around it."""
    path = args["path"]
    old = args["old_str"]
    inner_path = _existing_file(files, path)
    if not old:
        raise InvalidInput(
            "No replacement was performed: `old_str` is empty. Give the exact text to replace."
        )
    try:
        with _errors_in_our_words(path):
            edited = files.edit(inner_path, StrReplace(old, args.get("new_str", "")))
    except CountMismatch as error:
        raise InvalidInput(_count_error_text(old, path, error)) from None
    lines = edited.text.split("\n")
    first = max(edited.line - SNIPPET, 1)
    header = (
        "The memory file has been edited. "
        "Here is the snippet showing the change (with line numbers):\n"
    )
    return header + _numbered(lines[first - 1 : edited.line + SNIPPET], first)


def _count_error_text(old: str, path: str, error: CountMismatch) -> str:
    """Return the error for a text that does not occur exactly once in a file."""
    short_old = _cut_text(old)
    if not error.found:
        return (
            f"No replacement was performed, old_str `{short_old}` "
            f"did not appear verbatim in {path}."
        )
    line_numbers = _line_number_list(error.lines)
    return (
        "No replacement was performed. "
        f"Multiple occurrences of old_str `{short_old}` in lines: {line_numbers}. "
        "Please ensure it is unique"
    )


def _cut_text(text: str) -> str:
    """Cut a text of a caller to the length that an error repeats."""
    if len(text) <= _MAX_TEXT_CHARACTERS:
        return text
    return f"{text[:_MAX_TEXT_CHARACTERS]}… ({len(text):,} characters)"


def _line_number_list(lines: Sequence[int]) -> str:
    """Return line numbers for a sentence: `1, 5, 9`, or the first ones `and 20 more`."""
    line_numbers = ", ".join(map(str, lines[:_MAX_LINE_NUMBERS]))
    if len(lines) <= _MAX_LINE_NUMBERS:
        return line_numbers
    return f"{line_numbers}, and {len(lines) - _MAX_LINE_NUMBERS:,} more"


def _insert(files: Files, args: Arguments) -> str:
    """Insert a text after a line of a file."""
    path = args["path"]
    line = args["insert_line"]
    inner_path = _existing_file(files, path)
    try:
        with _errors_in_our_words(path):
            files.edit(inner_path, InsertLine(line, args["insert_text"]))
    except LineOutOfRange as error:
        should = f"It should be within the range of lines of the file: [0, {error.total}]"
        raise InvalidInput(f"Invalid `insert_line` parameter: {line}. {should}") from None
    return f"The file {path} has been edited."


def _delete(files: Files, args: Arguments) -> str:
    """Delete a file or folder, and say so. Raises InvalidInput for /memories itself."""
    path = args["path"]
    inner_path = _path_below_root(args["path"])
    if not inner_path:
        raise InvalidInput("Cannot delete the /memories directory itself")
    with _errors_in_our_words(path, texts_by_error={NotFound: f"The path {path} does not exist"}):
        files.delete(inner_path)
    return f"Successfully deleted {path}"


def _rename(files: Files, args: Arguments) -> str:
    """Rename a file or folder."""
    old = args["old_path"]
    new = args["new_path"]
    source = _path_below_root(old)
    if not source:
        raise InvalidInput("Cannot rename the /memories directory itself")
    target = _path_below_root(new)
    # Looking at a path raises if it leads out of /memories. The error must name that path, and
    # `files.rename` below would not tell which of the two it was.
    for inner_path, path in ((source, old), (target, new)):
        with _errors_in_our_words(path):
            files.itself(inner_path)
    own_errors = {
        Exists: f"The destination {new} already exists",
        NotFound: f"The path {old} does not exist",
    }
    with _errors_in_our_words(new, texts_by_error=own_errors):
        files.rename(source, target)
    return f"Successfully renamed {old} to {new}"


# The commands that change files, except `create`.
_COMMANDS = {"str_replace": _str_replace, "insert": _insert, "delete": _delete, "rename": _rename}


def _with_names_on_disk(files: Files, arguments: Arguments) -> Arguments:
    r"""Replace escaped paths in the arguments by the paths on disk.

    A listing shows a file whose name has a control character as `/memories/a\x07b.md`. If no such
    file exists, the path stays, and its backslash is refused later.
    """
    paths: Arguments = {}
    for key in ("path", "old_path"):
        path = arguments.get(key)
        if not isinstance(path, str) or "\\" not in path:
            continue
        unescaped_path = unescaped(path)
        with suppress(MemorandaError):
            if files.at(_path_below_root(unescaped_path)).kind != "missing":
                paths[key] = unescaped_path
    return {**arguments, **paths}


def _shows_root(arguments: Arguments) -> bool:
    """Whether a call that was answered without an error listed /memories itself."""
    if arguments["command"] != "view":
        return False
    path = arguments["path"]
    # A path with a backslash is the escaped name of a file.
    return "\\" not in path and not _path_below_root(path)


def _path_below_root(path: str) -> str:
    """Check a path and return the part below /memories: `a/b.md` for `/memories/a//b.md`.

    Raises InvalidInput for a path that is not allowed (contract 000a, 3).
    """
    path_below = _without_root(path)
    if climbs(path_below):
        raise InvalidInput(f"Path {path} would escape /memories directory")
    if path_below.startswith("\\"):
        raise InvalidInput(f"Path must start with /memories, got: {path}")
    if "\\" in path_below:
        raise InvalidInput(f"Invalid path: {path} contains a backslash. Use / between folders.")
    parts = [part for part in path_below.split("/") if part not in ("", ".")]
    for part in parts:
        if len(part.encode()) > NAME_BYTES:
            raise InvalidInput(
                f"Invalid path: the name {_cut_path(part)} has more than {NAME_BYTES} bytes."
            )
    inner_path = "/".join(parts)
    check_size(inner_path)
    return inner_path


def _cut_path(path: str) -> str:
    """Cut a path or a name to the length that an error repeats."""
    if len(path) <= _MAX_PATH_CHARACTERS:
        return path
    return f"{path[:_MAX_PATH_CHARACTERS]}…"


def _without_root(path: str) -> str:
    """Return the rest of a path after /memories. Raises InvalidInput for a path elsewhere."""
    if any(character in path for character in "\0\n\r"):
        raise InvalidInput("Invalid path: line breaks and NUL are not allowed in a path")
    rooted = path if path.startswith("/") else f"/{path}"
    # A backslash after the root passes here. `_path_below_root` refuses it with a better sentence.
    if rooted != _ROOT and not rooted.startswith((f"{_ROOT}/", f"{_ROOT}\\")):
        raise InvalidInput(f"Path must start with /memories, got: {path}")
    return rooted[len(_ROOT) :]


def _existing_file(files: Files, path: str) -> str:
    """Return the path below /memories of an existing file. Raises InvalidInput for other paths."""
    inner_path = _path_below_root(path)
    with _errors_in_our_words(path, "read"):
        kind = files.at(inner_path).kind
        if kind not in ("file", "folder"):
            raise NotFound(path)
    if kind == "folder":
        raise InvalidInput(f"The path {path} is not a file.")
    return inner_path


@contextmanager
def _errors_in_our_words(
    path: str, event: str = "changed", texts_by_error: dict[type[MemorandaError], str] | None = None
) -> Iterator[None]:
    """Turn errors of the engine inside the block into InvalidInput with the words of this tool.

    CountMismatch and LineOutOfRange pass: the callers have words for them.

    path: the path that the words name.
    event: the change that failed, as a participle, e.g. `changed` or `read`.
    texts_by_error: words for some kinds of errors, instead of the ones in _ERRORS.
    """
    try:
        yield
    except (CountMismatch, LineOutOfRange):
        raise
    except MemorandaError as error:
        # The engine is imported by now, see `_answer`.
        from memoranda.engine.plain_files import NotADirectory

        if isinstance(error, NotADirectory):
            raise InvalidInput(f"Invalid path: a part of {path} is not a directory.") from None
        if isinstance(error, errors.StorageError) and error.reason in NAME_REASONS:
            raise InvalidInput(f"Invalid path: {error.reason}: {_cut_path(path)}") from None
        for kind, text in (texts_by_error or {}).items():
            if isinstance(error, kind):
                raise InvalidInput(text) from None
        template = _error_template(error)
        message = error.message_with_hint()
        words = template.format(path=path, what=event, error=error, message=message)
        raise InvalidInput(words) from None


def _error_template(error: MemorandaError) -> str:
    """Return the words for a kind of error, from _ERRORS."""
    for kind, template in _ERRORS.items():
        if isinstance(error, kind):
            return template
    raise AssertionError("every MemorandaError has words")


def _numbered(lines: Sequence[str], first: int) -> str:
    """Return lines with their numbers in front, as `view` shows them.

    first: the number of the first of these lines.
    """
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, first))


def _list_level(
    files: Files, inner_path: str, shown_path: str, levels: int, rows: list[str]
) -> None:
    """Add the lines of a folder's entries to `rows`.

    inner_path: the folder below /memories.
    shown_path: the folder as the lines name it.
    levels: how many levels to list: 1 is only the entries themselves.
    """
    for name, place in files.entries(inner_path):
        shown_name = f"{shown_path}/{flat(name)}"
        if place.kind != "folder":
            rows.append(f"{size(place.size)}\t{shown_name}")
            continue
        rows.append(f"{_FOLDER_SIZE}\t{shown_name}/")
        if levels > 1 and not place.link:
            folder_path = f"{inner_path}/{name}" if inner_path else name
            _list_level(files, folder_path, shown_name, levels=levels - 1, rows=rows)


def size(count: int) -> str:
    """Return a number of bytes as both SDKs show it: `0B`, `1K`, `1.5K`, `1M`.

    The largest unit is `G`. A number just below 1 MB is `1024.0K`, because the unit is chosen
    before the number is rounded.
    """
    units = "BKMG"
    # Each unit is 2 to the power of 10 times the one before.
    power = 0
    if count:
        power = min((count.bit_length() - 1) // 10, len(units) - 1)
    value = count / 1024**power
    text = str(int(value)) if value.is_integer() else f"{value:.1f}"
    return f"{text}{units[power]}"
