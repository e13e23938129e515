"""`agent`: tool calls from stdin (contract 001, 14)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli import output
from commonplace.cli.failures import Failure
from commonplace.cli.invocation import Invocation
from commonplace.cli.syntax import Names, Usage, command
from commonplace.query import split_list

if TYPE_CHECKING:
    from commonplace.faces.agent.session import Batch

NOTHING = "No input. Use --input, stdin, or --list-tools."
STDIN = "-"


def _toolsets() -> tuple[str, ...]:
    from commonplace.faces import TOOLSETS

    return TOOLSETS


@command("agent")
@click.option("--prompt", metavar="QUERY", help="What the context is about; - reads it from stdin.")
@click.option("--input", "file", metavar="FILE", help="Read the calls from FILE [stdin].")
@click.option("--format", "form", type=Names("json", lambda: ("json",)), default="json", help="The form of input and "
              "output; there is one.")  # fmt: skip
@click.option("--list-tools", is_flag=True, help="Print the tools with their schemas.")
@click.option("--tools", type=Names("list", _toolsets), default="agent", show_default=True,
              help="Toolsets to offer, separated by commas.")  # fmt: skip
def agent(call: Invocation, *, prompt: str | None, file: str | None, form: str, list_tools: bool, tools: str) -> int:
    """Run tool calls given as JSON and print their results as JSON.

    Reads an array of {"name", "params"}, or an object with "tool_calls" and "prompt". With a prompt the answer
    has a context: the memories that hold its words, best first.
    """
    if form != "json":
        raise Usage(f'invalid value "{form}" for --format: not json', click.get_current_context())
    toolsets = split_list(tools)
    if list_tools:
        return _list_tools(call, toolsets)
    batch = _batch(prompt, file)
    if batch.prompt is None and batch.calls is None:
        output.text(NOTHING)
        return 0
    from commonplace.faces.agent.session import Session

    with call.memory() as memory:
        session = Session(memory, tools=toolsets)
        if not batch.calls and batch.prompt is not None:
            output.text(f"Context: {session.inject_context(batch.prompt)}")
            return 0
        answered = session.run_batch(batch)
    _print(answered)
    last = answered["tool_calls"][-1] if isinstance(answered, dict) else {}
    if "error" not in last:
        return 0
    output.failure(f"tool {last['name']} failed: {last['error']}")
    return 1


def _list_tools(call: Invocation, toolsets: list[str]) -> int:
    from commonplace.faces import registry
    from commonplace.faces.agent.session import tool_list

    _print(tool_list(registry(toolsets, call.settings())))
    return 0


def _batch(prompt: str | None, file: str | None) -> Batch:
    """What is to be done. Raises Failure and InvalidInput for input that cannot be read."""
    from commonplace.faces.agent.session import read_batch

    if prompt == STDIN:
        asked = _asked(_stdin())
        if file is None or file == STDIN:
            return asked
        given = read_batch(_file(file))
        given.prompt = asked.prompt or given.prompt
        return given
    given = read_batch(_stdin() if file is None or file == STDIN else _file(file))
    given.prompt = prompt or given.prompt
    return given


def _asked(data: bytes) -> Batch:
    """The prompt on stdin: an object that has one, else the text itself."""
    from commonplace.faces.agent.session import Batch, read_batch

    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise Failure("the text on stdin is not valid UTF-8", "not_text") from None
    if _is_object(text):
        return read_batch(text)
    return Batch(prompt=text or None)


def _is_object(text: str) -> bool:
    try:
        return text.startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _stdin() -> bytes:
    """All of stdin; nothing when it is a terminal, where nobody knows that we wait."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read()


def _file(name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise Failure(f"open input file: {name}: {reason}", "not_found") from None


def _print(value: Any) -> None:
    output.text(json.dumps(value, ensure_ascii=False, indent=2))
