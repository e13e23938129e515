"""The parts of a message, in the forms that programs share: text, calls of tools, their results."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.transcripts.turn import Kind, as_list

_READS = frozenset(("view", "read"))
_PATHS = (
    "file_path",
    "path",
    "filePath",
    "notebook_path",
    "absolute_path",
    "target_file",
    "filepath",
)
# The lines of Codex's patch format that name a file.
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.M)
# The exit status in the output of a command.
_EXIT = re.compile(
    r"(?:exit(?:ed with)?(?: code| status)?|exit_code\"?|exitCode\"?)[:=\s]+(-?\d{1,3})\b", re.I
)
# What this memory told the agent in front of an output, or in its place.
_MEMORY_BLOCK = re.compile(r"<memoranda-memory\b.*?</memoranda-memory>", re.S)
# Characters at both ends of an output where the exit status is looked for.
_EXIT_SPAN = 300


class Part(NamedTuple):
    """A part of a message: as a turn, without its place and time."""

    kind: Kind
    text: str
    call: str = ""
    has_failed: bool | None = None


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


@cache
def words_of(name: str) -> frozenset[str]:
    """A list of words.toml."""
    return frozenset(_table()[name].split())


@cache
def list_of(name: str) -> tuple[str, ...]:
    """A list of words.toml whose entries are texts of several words."""
    return tuple(_table()[name])


def text_of(value: Any) -> str:
    """The text in a value: a string, or the `text` and `content` of the parts in a list."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        for key in ("text", "content", "output", "error", "message"):
            if value.get(key):
                return text_of(value[key])
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    return ""


def speaker(is_person: bool) -> Kind:
    """The kind of a turn in which a person or the agent talks."""
    if is_person:
        return Kind.SAID
    return Kind.ANSWERED


def failure(is_error: bool) -> bool | None:
    """True for a result marked as an error. Otherwise None, since a missing mark proves nothing."""
    if is_error:
        return True
    # Many programs mark errors only, so a missing mark does not mean success.
    return None


def failed_by_code(code: Any) -> bool | None:
    """Whether an exit code means failure. None without a code."""
    if code is None:
        return None
    return bool(code)


def spoken(kind: Kind, text: str) -> Iterator[Part]:
    """The words that somebody said, unless a program put it there."""
    stripped = text.strip()
    if stripped and not (kind is Kind.SAID and stripped.startswith(list_of("not_said"))):
        yield Part(kind, stripped)


def tool_call(name: str, arguments: Any, call: str = "") -> Iterator[Part]:
    """The command that a call of a tool runs, or the files it changes; nothing of other calls."""
    arguments = _arguments(arguments)
    # Programs spell the names of their tools in many ways.
    lower = name.lower()
    if lower in words_of("command_tools"):
        command = _command(arguments)
        if command:
            yield Part(Kind.RAN, command, call)
    elif lower in words_of("edit_tools") and arguments.get("command") not in _READS:
        for path in _edited(arguments):
            yield Part(Kind.EDITED, path, call)


def tool_result(value: Any, call: str = "", has_failed: bool | None = None) -> Iterator[Part]:
    """The result of a tool; whether it failed is read from its exit code where nobody says so."""
    text = text_of(value).strip()
    # Notes are found as notes. In a transcript they would be echoes that outlive them.
    if "<memoranda-memory" in text:
        text = _MEMORY_BLOCK.sub("", text).strip()
    if has_failed is None:
        has_failed = failed_by_text(text)
    if text or has_failed:
        yield Part(Kind.RESULT, text, call, has_failed)


def failed_by_text(text: str) -> bool | None:
    """Whether an exit code in the first or last line means failure. None without an exit code."""
    for span in (text[:_EXIT_SPAN], text[-_EXIT_SPAN:]):
        # Most outputs say nothing of it, and this is quicker than an expression.
        if "exit" not in span.lower():
            continue
        result = _EXIT.search(span)
        if result:
            return result[1] != "0"
    return None


def anthropic_parts(role: str, content: Any) -> Iterator[Part]:
    """The parts of a message as Anthropic's API has them; other programs write the same."""
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
    shape = block.get("type")
    if shape in ("text", "input_text", "output_text"):
        yield from spoken(kind, str(block.get("text") or ""))
    elif shape == "tool_use":
        yield from tool_call(str(block.get("name")), block.get("input"), str(block.get("id") or ""))
    elif shape == "tool_result":
        call = str(block.get("tool_use_id") or block.get("toolUseID") or "")
        failed = failure(bool(block.get("is_error")))
        yield from tool_result(block.get("content"), call, failed)


def _arguments(arguments: Any) -> dict[str, Any]:
    """The arguments of a call, which some programs write as JSON in a text."""
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
    command = arguments.get("command") or arguments.get("cmd") or ""
    if isinstance(command, list):
        words = [str(word) for word in command]
        # A shell that is given its command line as one word
        if len(words) == 3 and words[1] in ("-c", "-lc"):
            return words[2].strip()
        return " ".join(words).strip()
    return str(command).strip()


def _edited(arguments: dict[str, Any]) -> list[str]:
    for key in _PATHS:
        path = arguments.get(key)
        if isinstance(path, str) and path:
            return [path]
    # A patch names its files itself.
    patch = arguments.get("input") or arguments.get("patch")
    if isinstance(patch, str):
        return [path.strip() for path in _PATCHED.findall(patch)]
    return []
