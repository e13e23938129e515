"""Stores sentences that a person asks to remember, and an extract of the session.

The extract is a note called a trace. Traces are not memories: they are in a separate project, which
is searched only if a search names the project. Texts are stored without interpreting them. A text
that came from the memory is not stored again.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from memoranda.clients.hook_context import project_names
from memoranda.clients.hook_conversation import (
    TEXT_TYPES,
    UNSAID_BEGINNINGS,
    transcript_entries,
)
from memoranda.clients.hook_events import HookEvent, storable
from memoranda.clients.hook_waiting import asked_in
from memoranda.clients.hook_words import FENCED, own_words
from memoranda.engine import MemorySession
from memoranda.engine.telling.asked import is_put_aside
from memoranda.engine.telling.asked import store as store_asked
from memoranda.errors import StorageError
from memoranda.ledger.sessions import SessionRows
from memoranda.note.links import slug
from memoranda.note.model import TRACE_PROJECT, Draft
from memoranda.sources.base import sha256
from memoranda.text.fence import cut
from memoranda.text.gate import redact
from memoranda.text.unicode import visible

# This many bytes are read from the beginning of a transcript, and from its end.
_HEAD_BYTES = 64_000
_TAIL_BYTES = 256_000
# The most characters of a prompt, of an answer and of a command in an extract.
_PROMPT_CHARACTERS = 300
_ANSWER_CHARACTERS = 1_000
_COMMAND_CHARACTERS = 120
# The most lines in one part of an extract.
_MOST_LINES_OF_PART = 12
# The first prompt and this many of the last ones are shown.
_LAST_PROMPTS = 5
# The names of tools that change files, and of tools that run commands, in all clients.
_EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit", "edit", "write", "replace", "write_file")
_COMMANDS = ("Bash", "shell", "exec_command", "run_shell_command", "bash", "local_shell")
# The lines of Codex's patch format that name a file.
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.M)


def remember(memory: MemorySession, event: HookEvent, session: SessionRows) -> str:
    """Store sentences that the person asked to remember, as notes of the owner.

    event: the prompt.
    session: the record of this session. The stored notes are added to it.

    Returns lines that tell the agent which sentences were stored or refused; "" without a request.
    """
    lines = []
    for request in asked_in(event, session.texts, memory.clock()):
        secrets = memory.gate_rules().find(request.text, "secret")
        if secrets:
            lines.append(f"Not stored in memory: it looks like a secret ({secrets[0].rule.id}).")
            continue
        sentence = _line(request.text, 200)
        try:
            note = store_asked(memory, request)
        except StorageError as error:
            # A sentence in a file is stored by the next process, so it is not lost.
            if is_put_aside(memory.home, request):
                raise
            lines.append(f"NOT stored in memory ({error.reason}). Tell the user so: {sentence}")
            continue
        session.add(memory.clock(), notes=[note], text=request.text)
        lines.append(f"Stored in memory as the user said it, no need to store it again: {sentence}")
    return "\n".join(lines)


def checkpoint(memory: MemorySession, event: HookEvent, session: SessionRows) -> None:
    """Write an extract of the session so far, which replaces the earlier extract of the session.

    The extract has the requests, files, commands and the last answer. Nothing is written if the
    setting `traces` is off.

    event: the event at which the client wants the session kept, such as its end.
    """
    if not memory.settings.traces:
        return
    extract = _extract(event, session)
    if not extract:
        return
    # Secrets are always removed: nobody asked to keep this text.
    text = redact(extract, memory.gate_rules().find(extract, "secret"))
    names = project_names(event.cwd)
    place = f" in {names[0]}" if names else ""
    digest = sha256(event.session.encode("utf-8", "replace"))[:8]
    draft = Draft(
        text,
        TRACE_PROJECT,
        folder=event.client,
        title=f"Session {digest} of {event.client}{place}",
        type="trace",
        tags=tuple(name for name in names if slug(name)),
    )
    memory.store(draft, overwrite=True)


def _extract(event: HookEvent, session: SessionRows) -> str:
    """Return an extract of the session, such as `Asked:` and the prompts; "" if nothing was said.

    event: the event, with the path of the transcript.
    session: the record of the lines that the session got from the memory, which are left out.
    """
    transcript = _read_ends(event.transcript)
    prompts = transcript.prompts or [event.prompt]
    own_prompts = [session.without_given(own_words(prompt)) for prompt in prompts]
    last_answer = event.answer
    if not last_answer and transcript.answers:
        last_answer = transcript.answers[-1]
    last_answer = session.without_given(FENCED.sub("", last_answer))
    if not "".join([*own_prompts, last_answer]).strip():
        return ""
    prompt_lines = _lines(own_prompts, _PROMPT_CHARACTERS)
    # The first prompt says what the session is about.
    first_prompt = prompt_lines[:1]
    other_prompts = prompt_lines[1:]
    parts = {
        "Asked": first_prompt + other_prompts[-_LAST_PROMPTS:],
        "Files edited": _lines(transcript.files, _COMMAND_CHARACTERS),
        "Commands": _lines(transcript.commands, _COMMAND_CHARACTERS),
        "Last answer": _lines([last_answer], _ANSWER_CHARACTERS),
    }
    texts = [_part(title, lines) for title, lines in parts.items() if lines]
    return storable("\n\n".join(texts))


def _lines(texts: list[str], most_characters: int) -> list[str]:
    """Return each different text in one line of at most `most_characters` characters."""
    return [_line(text, most_characters) for text in dict.fromkeys(texts) if text.strip()]


def _part(title: str, lines: list[str]) -> str:
    """Return one part of an extract: its title, and its last lines as a block of code."""
    excerpt = "\n".join(f"    {line}" for line in lines[-_MOST_LINES_OF_PART:])
    # In a block of code, a link or a tag in the lines has no effect.
    return f"{title}:\n\n```text\n{excerpt}\n```"


def _line(text: str, most_characters: int) -> str:
    """Return the text in one line, cut to `most_characters` characters."""
    return cut(" ".join(visible(text).split()), most_characters)


class _Ends(NamedTuple):
    """The texts in the first and last lines of a transcript, in the order of the transcript.

    prompts: the prompts of the person.
    answers: the texts of the model.
    files: the paths of the files that tools changed.
    commands: the command lines that tools ran.
    """

    prompts: list[str]
    answers: list[str]
    files: list[str]
    commands: list[str]


def _read_ends(transcript: str) -> _Ends:
    """Return the prompts, answers, changed files and commands at both ends of a transcript.

    transcript: the path of the file.
    """
    ends = _Ends([], [], [], [])
    for entry in transcript_entries(transcript, first_bytes=_HEAD_BYTES, last_bytes=_TAIL_BYTES):
        # Claude Code calls it message, Codex payload.
        message = entry.get("message", entry.get("payload"))
        if not isinstance(message, dict):
            continue
        parts = _parts_of(message)
        for part in parts:
            if part.get("type") in TEXT_TYPES:
                _add_text(ends, message.get("role"), str(part.get("text", "")))
        # In Codex, the message itself may be the call of a tool.
        for part in (message, *parts):
            _add_call(ends, part)
    return ends


def _parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message, such as `[{"type": "text", "text": "Done"}]`."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [part for part in content if isinstance(part, dict)]


def _add_text(ends: _Ends, role: Any, text: str) -> None:
    """Add a text of the person or the agent to `ends`. Other texts are ignored.

    role: "user" or "assistant"; other values mean neither.
    """
    if not text.strip():
        return
    # Clients also record texts in the person's name that nobody wrote.
    if role == "user" and not text.lstrip().startswith(UNSAID_BEGINNINGS):
        ends.prompts.append(text)
    elif role == "assistant":
        ends.answers.append(text)


def _add_call(ends: _Ends, part: dict[str, Any]) -> None:
    """Add the changed files or the command to `ends`, if this part of a message is a call of a tool.

    For example, `{"name": "Bash", "input": {"command": "ls"}}` adds the command `ls`.
    """
    name = part.get("name")
    arguments = _arguments_of(part)
    if not isinstance(name, str) or arguments is None:
        return
    path = arguments.get("file_path") or arguments.get("path") or arguments.get("notebook_path")
    command = arguments.get("command") or arguments.get("cmd")
    if name in _EDITS and isinstance(path, str):
        ends.files.append(path)
    elif name in _COMMANDS and command:
        words = command if isinstance(command, list) else [command]
        ends.commands.append(" ".join(map(str, words)))
    # A patch names the files that it changes.
    patch = arguments.get("input")
    if isinstance(patch, str):
        ends.files.extend(_PATCHED.findall(patch))


def _arguments_of(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a tool call as a dict. None if they are in JSON that was cut off.

    Arguments that are a single value become `{"input": value}`.
    """
    arguments = part.get("input", part.get("arguments"))
    if isinstance(arguments, str) and part.get("type") == "function_call":
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    if isinstance(arguments, dict):
        return arguments
    return {"input": arguments}
