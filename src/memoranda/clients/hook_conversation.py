"""Reads the last turns of a session, so that the memory is searched for a prompt in its context.

A turn is a text that the person or the model said. The transcript is a file in which the client
records the session.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from memoranda.clients.hook_words import FENCED, own_words
from memoranda.text.dialogue import Turn, as_dialogue

# Only this many bytes at the end of a transcript are read, because a hook has little time.
_TAIL_BYTES = 64_000
# The query has at most this many turns before the prompt.
_TURNS = 4
# The query has at most this many characters of the prompt, and of each turn.
_CHARACTERS = 400
TEXT_TYPES = ("text", "input_text", "output_text")
"""The types of the parts of a message that are text."""
_SPEAKERS = {"user": "User", "assistant": "Assistant"}
UNSAID_BEGINNINGS = ("<", "Caveat:", "# AGENTS.md")
"""Clients also record texts in the person's name that nobody wrote. They begin with these strings."""


def conversation(prompt: str, transcript: str) -> str:
    """Return the prompt preceded by the last turns of its session, as the text of a query.

    If the transcript has no earlier turns, only the prompt is returned.

    transcript: the path of the session's transcript; "" without a transcript.
    """
    prompt_text = prompt[:_CHARACTERS]
    earlier_turns = _last_turns(transcript, prompt)
    if not earlier_turns:
        return prompt_text
    return as_dialogue([*earlier_turns, Turn("User", prompt_text)])


def _last_turns(transcript: str, prompt: str) -> list[Turn]:
    """Return the last turns of a session before its prompt, each shortened to _CHARACTERS.

    Some clients write the prompt into the transcript before they call the hook. So turns at the end
    of the transcript that repeat the prompt are left out.
    """
    turns: list[Turn] = []
    for entry in transcript_entries(transcript, last_bytes=_TAIL_BYTES):
        turns += _turns_of(entry)
    while turns and _repeats(turns[-1], prompt):
        turns.pop()
    return [turn._replace(text=turn.text[:_CHARACTERS]) for turn in turns[-_TURNS:]]


def _repeats(turn: Turn, prompt: str) -> bool:
    """Whether a turn has the text of the prompt. Blanks and line breaks may differ."""
    return turn.speaker == "User" and turn.text.split() == prompt.split()


def _turns_of(entry: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield the turns in one entry of a transcript.

    For example, `{"message": {"role": "user", "content": "Hello"}}` gives `Turn("User", "Hello")`.
    Entries of Claude Code have the key `message`, and entries of Codex have `payload`. Results of
    tools and pasted text are left out.
    """
    message = entry.get("message", entry.get("payload"))
    if not isinstance(message, dict) or message.get("role") not in _SPEAKERS:
        return
    role = message["role"]
    for part in _texts_of(message.get("content")):
        text = part.strip()
        if text.startswith(UNSAID_BEGINNINGS):
            continue
        text = own_words(text) if role == "user" else FENCED.sub("", text).strip()
        if text:
            yield Turn(_SPEAKERS[role], text)


def _texts_of(content: Any) -> list[str]:
    """Return the texts in the content of a message: a text, or a list of parts with types."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [
        str(part.get("text", ""))
        for part in content
        if isinstance(part, dict) and part.get("type") in TEXT_TYPES
    ]


def transcript_entries(
    path: str, *, last_bytes: int, first_bytes: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield the entries at the beginning and at the end of a transcript.

    Each line of the file is an entry in JSON. Other lines are skipped. A file that cannot be read
    gives no entries.

    last_bytes: how many bytes at the end are read.
    first_bytes: how many bytes at the beginning are read.
    """
    try:
        data = _both_ends(path, first_bytes, last_bytes)
    except (OSError, ValueError):
        return
    for line in data.split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            # The line is not JSON, or a part of it was not read.
            continue
        if isinstance(entry, dict) and not entry.get("isMeta") and not entry.get("isSidechain"):
            yield entry


def _both_ends(path: str, first_bytes: int, last_bytes: int) -> bytes:
    """Return the first and the last bytes of a file, with a line break between them.

    No byte is returned twice: a short file is returned whole. Returns b"" for anything other than a
    regular file. Raises OSError, and ValueError for a path with a null character.
    """
    # The path may lead to a pipe. Without O_NONBLOCK, opening a pipe could wait for ever.
    opener = lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
    with open(path, "rb", 0, opener=opener) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return b""
        data = os.pread(file.fileno(), first_bytes, 0)
        if status.st_size > first_bytes:
            start_of_last = max(first_bytes, status.st_size - last_bytes)
            data += b"\n" + os.pread(file.fileno(), last_bytes, start_of_last)
        return data
