"""Reads the parts of a message that programs write in the same way.

A part is text, a command, an edited file, or the result of a tool. The names of tools and other
words that programs use are in words.toml.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.text.pattern import lazy_pattern
from memoranda.transcripts.turn import Kind, as_list

_READING_COMMANDS = ("view", "read")
_PATH_KEYS = (
    "file_path",
    "path",
    "filePath",
    "notebook_path",
    "absolute_path",
    "target_file",
    "filepath",
    "relativeWorkspacePath",
)
# The lines of Codex's patch format that name a file.
_PATCHED = lazy_pattern(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.M)
# The exit status in the output of a command.
_EXIT = lazy_pattern(
    r"(?:exit(?:ed with)?(?: code| status)?|exit_code\"?|exitCode\"?)[:=\s]+(-?\d{1,3})\b", re.I
)
# Text that this memory has put in front of an output, or in its place.
_MEMORY_BLOCK = lazy_pattern(r"<memoranda-memory\b.*?</memoranda-memory>", re.S)
_MEMORY_BLOCK_END = "</memoranda-memory>"
# Characters at both ends of an output that are searched for the exit code.
_EXIT_CODE_CHARACTERS = 300


class Part(NamedTuple):
    """A part of a message: the fields of Turn that do not depend on its place and time.

    kind: who speaks, or what a tool did.
    text: the words, the command, the path of the changed file, or the output.
    call: the id that a result and its call share. "" without one.
    has_failed: whether a result is a failure. None if the transcript does not say.
    """

    kind: Kind
    text: str
    call: str = ""
    has_failed: bool | None = None


@cache
def _table() -> dict[str, Any]:
    """Return words.toml."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


@cache
def words_of(name: str) -> frozenset[str]:
    """Return the words in a list of words.toml, e.g. `command_tools`."""
    return frozenset(_table()[name].split())


@cache
def list_of(name: str) -> tuple[str, ...]:
    """Return the phrases in a list of words.toml, e.g. `not_run`."""
    return tuple(_table()[name])


def text_of(value: Any) -> str:
    """Return the text in a value, "" if it has none.

    `[{"type": "text", "text": "a"}, {"content": "b"}]` has the two lines `a` and `b`.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        for key in ("text", "content", "output", "result", "error", "message"):
            if value.get(key):
                return text_of(value[key])
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    return ""


def speaker(is_person: bool) -> Kind:
    """Return the kind of a spoken turn: SAID for a person, else ANSWERED.

    is_person: whether a person speaks, and not the agent.
    """
    if is_person:
        return Kind.SAID
    return Kind.ANSWERED


def failure(is_error: bool) -> bool | None:
    """Return True if a result is marked as an error. Otherwise None, which means unknown.

    A missing mark proves nothing: many programs mark only some of the errors.

    is_error: whether the transcript marks the result as an error.
    """
    if is_error:
        return True
    return None


def failed_by_code(code: Any) -> bool | None:
    """Whether an exit code means failure. None if there is no code."""
    if code is None:
        return None
    return bool(code)


def spoken(kind: Kind, text: str) -> Iterator[Part]:
    """Yield a text as a part, unless it is empty or a program wrote it in the person's name."""
    stripped = text.strip()
    is_of_program = kind is Kind.SAID and stripped.startswith(list_of("not_said"))
    if stripped and not is_of_program:
        yield Part(kind, stripped)


def tool_call(name: str, arguments: Any, call: str = "") -> Iterator[Part]:
    """Yield the command that a tool call runs, or the files that it changes.

    Calls of other tools, such as reading a file, have no parts.

    call: the id of the call, which its result has, too.
    """
    arguments = _as_arguments(arguments)
    # Programs spell the names of their tools in many ways.
    lower = name.lower()
    if lower in words_of("command_tools"):
        command = _command(arguments)
        if command:
            yield Part(Kind.RAN, command, call)
    elif lower in words_of("edit_tools") and arguments.get("command") not in _READING_COMMANDS:
        for path in _edited_paths(arguments):
            yield Part(Kind.EDITED, path, call)


def tool_result(value: Any, call: str = "", has_failed: bool | None = None) -> Iterator[Part]:
    """Yield the result of a tool as a part. An empty result has no part, unless the tool failed.

    call: the id of the call that the tool answers. "" if unknown.
    has_failed: whether the transcript says that the tool failed. None means that the exit code in
        the text decides.
    """
    text = _without_memory_blocks(text_of(value)).strip()
    if has_failed is None:
        has_failed = failed_by_text(text)
    if text or has_failed:
        yield Part(Kind.RESULT, text, call, has_failed)


def _without_memory_blocks(text: str) -> str:
    """Return a text without the copies of notes that this memory put into it.

    The notes are found themselves, and a copy in a transcript would outlive a deleted note.
    """
    if _MEMORY_BLOCK_END not in text:
        return text
    # The pattern searches the rest of the text for the end of each block. Without this cut, that
    # would be slow for a text with thousands of blocks that never end.
    head, last_end, tail = text.rpartition(_MEMORY_BLOCK_END)
    return _MEMORY_BLOCK.sub("", head + last_end) + tail


def failed_by_text(text: str) -> bool | None:
    """Whether an exit code near the beginning or the end means failure. None if there is no code."""
    for span in (text[:_EXIT_CODE_CHARACTERS], text[-_EXIT_CODE_CHARACTERS:]):
        # Most outputs have no exit code, and this test is faster than the pattern.
        if "exit" not in span.lower():
            continue
        result = _EXIT.search(span)
        if result:
            return result[1] != "0"
    return None


def anthropic_parts(role: str, content: Any) -> Iterator[Part]:
    """Yield the parts of a message in the form of Anthropic's API, which many programs use.

    role: `user` for the person; anything else is the agent.
    """
    kind = speaker(role == "user")
    if isinstance(content, str):
        yield from spoken(kind, content)
        return
    for block in as_list(content):
        if isinstance(block, str):
            yield from spoken(kind, block)
        elif isinstance(block, dict):
            yield from _anthropic_block(kind, block)


def _anthropic_block(kind: Kind, block: dict[str, Any]) -> Iterator[Part]:
    """Yield the part of one block of a message: text, a tool call or its result."""
    shape = block.get("type")
    if shape in ("text", "input_text", "output_text"):
        yield from spoken(kind, str(block.get("text") or ""))
    elif shape == "tool_use":
        yield from tool_call(str(block.get("name")), block.get("input"), str(block.get("id") or ""))
    elif shape == "tool_result":
        call = str(block.get("tool_use_id") or block.get("toolUseID") or "")
        failed = failure(bool(block.get("is_error")))
        yield from tool_result(block.get("content"), call, failed)


def _as_arguments(arguments: Any) -> dict[str, Any]:
    """Return the arguments of a call as an object. Some programs write them as JSON in a text.

    Any other text becomes the argument `input`.
    """
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            return {"input": arguments}
        if not isinstance(parsed, dict):
            return {"input": arguments}
        arguments = parsed
    if isinstance(arguments, dict):
        return arguments
    return {}


def _command(arguments: dict[str, Any]) -> str:
    """Return the command line in the arguments of a tool: `ls -l` for `["bash", "-c", "ls -l"]`.

    Several commands become lines.
    """
    commands = as_list(arguments.get("commands"))
    if commands:
        return "\n".join(map(str, commands)).strip()
    command = arguments.get("command") or arguments.get("cmd") or ""
    if isinstance(command, list):
        words = [str(word) for word in command]
        # A shell gets its command line as one word.
        if len(words) == 3 and words[1] in ("-c", "-lc"):
            return words[2].strip()
        return " ".join(words).strip()
    return str(command).strip()


def _edited_paths(arguments: dict[str, Any]) -> list[str]:
    """Return the paths of the files that a tool changes."""
    for key in _PATH_KEYS:
        path = arguments.get(key)
        if isinstance(path, str) and path:
            return [path]
    # A patch names its files itself.
    patch = arguments.get("input") or arguments.get("patch")
    if isinstance(patch, str):
        return [path.strip() for path in _PATCHED.findall(patch)]
    return []
