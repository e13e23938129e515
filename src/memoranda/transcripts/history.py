"""Aider's `.aider.chat.history.md`: Markdown that only grows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.transcripts.blocks import speaker, spoken
from memoranda.transcripts.turn import (
    NotUnderstood,
    Session,
    SessionTurns,
    Turn,
)

# The line with which Aider begins a session.
_START = re.compile(rb"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*\Z")
# The line that opens or closes fenced code.
_FENCE = re.compile(rb"(`{3,}|~{3,})")
_PROMPT = b"#### "
# The line Aider writes for an empty one.
_ONLY_BLANK = re.compile(r"\A<blank>\Z")
_SPEAKERS = ("prompt", "answer")


class Aider:
    """Reads the history that Aider writes in a folder: one file with all sessions, one after the
    other.

    The position of a turn is `OFFSET+LENGTH` in bytes. If an answer grows after it was read, the
    new text becomes a separate turn.
    """

    grows = True

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        """Yield the turns that were added to a history since the last call, one at a time.

        state: how far the history was read. It is updated.
        """
        data = path.read_bytes()
        # A last line without an end is still being written.
        data = data[: data.rfind(b"\n") + 1]
        offset = state.get("offset", 0)
        session: Session | None = None
        if "session" in state:
            session = Session(**state["session"])
        if session is None and data.strip() and b"# aider chat started at " not in data:
            raise NotUnderstood("no history of Aider")
        folder = str(path.parent)
        for span in _messages(data, offset):
            if span.began is not None:
                # This line begins a session.
                name = f"{folder}@{span.began.isoformat()}"
                session = Session(name, folder, span.began.timestamp())
                continue
            # Text before the first session belongs to none.
            if session is None:
                continue
            turn = _turn(data, span, session)
            if turn is not None:
                yield SessionTurns(session, [turn])
            state["session"] = {
                "name": session.name,
                "folder": session.folder,
                "time": session.time,
            }
        state["offset"] = len(data)

    def passage(self, path: Path, session: str, position: str) -> str | None:
        """Return the text of the turn at a position, without the signs that Aider puts in lines.

        None if no turn can be read at the position.
        """
        start, _, length = position.partition("+")
        with path.open("rb") as file:
            file.seek(int(start))
            data = file.read(int(length))
        is_prompt = data.startswith(_PROMPT)
        turn = _turn(data, Span(start=0, end=len(data), is_prompt=is_prompt), Session())
        if turn is None:
            return None
        return turn.text


def _turn(data: bytes, span: Span, session: Session) -> Turn | None:
    """Return the message in a span, or None if it has no words."""
    lines = data[span.start : span.end].decode("utf-8", "replace").splitlines()
    if span.is_prompt:
        lines = [line.removeprefix("####").strip() for line in lines]
        # Aider marks an empty line of a prompt.
        lines = [_ONLY_BLANK.sub("", line) for line in lines]
    kind = speaker(span.is_prompt)
    position = f"{span.start}+{span.end - span.start}"
    # There is one part at most.
    for part in spoken(kind, "\n".join(lines)):
        return Turn(kind, part.text, position, session.time)
    return None


class Span(NamedTuple):
    """A message in a history, or the line that begins a session.

    start, end: where it begins and ends, in bytes.
    is_prompt: whether the person wrote it.
    began: the time in the line that begins a session. None for a message.
    """

    start: int
    end: int
    is_prompt: bool
    began: datetime | None = None


def _messages(data: bytes, offset: int) -> Iterator[Span]:
    """Yield the messages, and the beginnings of sessions, from `offset` on.

    A message is a block: all consecutive lines of one shape, `prompt` or `answer`. Blank lines and
    fenced code belong to the block around them. Lines of tools are left out.
    """
    # Where the present line begins, and where the present block began.
    line_start = offset
    block_start = offset
    # The shape of the present block, and the code fence that is open in it.
    block_shape = ""
    fence = b""
    for line in data[offset:].splitlines(keepends=True):
        # Inside a fence, a line belongs to the answer, whatever it looks like.
        line_shape = "" if fence else _shape(line)
        begins_block = line_shape not in ("", block_shape)
        if begins_block:
            if block_shape in _SPEAKERS:
                yield Span(block_start, line_start, block_shape == "prompt")
            block_start = line_start
            block_shape = line_shape
        session_start = _START.match(line) if line_shape == "start" else None
        if session_start:
            time = datetime.fromisoformat(session_start[1].decode())
            yield Span(line_start, line_start, is_prompt=False, began=time)
        if block_shape == "answer":
            fence = _fence_after(line, fence)
        line_start += len(line)
    # The last block ends with the text.
    if block_shape in _SPEAKERS:
        yield Span(block_start, line_start, block_shape == "prompt")


def _fence_after(line: bytes, fence: bytes) -> bytes:
    """Return the code fence that is open after a line, or b"".

    fence: the fence that was open before the line, or b"".
    """
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if not fence:
        return mark[1]
    if mark[1].startswith(fence):
        return b""
    return fence


def _shape(line: bytes) -> str:
    """Return the kind of a line outside of code: `start` (of a session), `prompt`, `answer` or `tool`.

    "" for a blank line, which may belong to any of them.
    """
    if not line.strip():
        return ""
    if _START.match(line):
        return "start"
    if line.startswith(_PROMPT):
        return "prompt"
    if line.startswith(b"> ") or line.rstrip() == b">":
        return "tool"
    return "answer"
