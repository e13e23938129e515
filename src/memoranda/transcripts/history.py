"""Aider's `.aider.chat.history.md`: Markdown that only grows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from memoranda.transcripts.blocks import spoken
from memoranda.transcripts.turn import (
    Kind,
    NotUnderstood,
    Session,
    SessionTurns,
    Turn,
)

_START = re.compile(rb"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*\Z")
_FENCE = re.compile(rb"(`{3,}|~{3,})")
_PROMPT = b"#### "
_BLANK = "<blank>"


class Aider:
    """A file holds the sessions of one folder, one after the other. A position is `OFFSET+LENGTH`
    in bytes. What is appended to an answer later is an answer of its own.
    """

    grows = True

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        data = path.read_bytes()
        # A last line without an end is still being written
        data = data[: data.rfind(b"\n") + 1]
        offset = state.get("offset", 0)
        session = Session(**state["session"]) if "session" in state else None
        if session is None and data.strip() and b"# aider chat started at " not in data:
            raise NotUnderstood("no history of Aider")
        folder = str(path.parent)
        for start, end, is_prompt, moment in _messages(data, offset):
            if moment is not None:
                name = f"{folder}@{moment.isoformat()}"
                session = Session(name, folder, moment.timestamp())
                continue
            if session is None:
                continue
            turn = _turn(data, start, end, is_prompt, session)
            if turn is not None:
                yield SessionTurns(session, [turn])
            state["session"] = {
                "name": session.name,
                "folder": session.folder,
                "time": session.time,
            }
        state["offset"] = len(data)

    def passage(self, path: Path, session: str, position: str) -> str | None:
        start, _, length = position.partition("+")
        with path.open("rb") as file:
            file.seek(int(start))
            data = file.read(int(length))
        is_prompt = data.startswith(_PROMPT)
        turn = _turn(data, 0, len(data), is_prompt, Session())
        return turn.text if turn is not None else None


def _turn(data: bytes, start: int, end: int, is_prompt: bool, session: Session) -> Turn | None:
    """The message in these bytes; None where it has no words."""
    lines = data[start:end].decode("utf-8", "replace").splitlines()
    if is_prompt:
        lines = [line.removeprefix("####").strip() for line in lines]
        lines = ["" if line == _BLANK else line for line in lines]
    kind = Kind.SAID if is_prompt else Kind.ANSWERED
    for part in spoken(kind, "\n".join(lines)):
        return Turn(kind, part.text, f"{start}+{end - start}", session.time)
    return None


def _messages(data: bytes, offset: int) -> Iterator[tuple[int, int, bool, datetime | None]]:
    """The messages from `offset` on: start, end, whether a person said it, and of the line that
    begins a session its time.
    """
    position = offset
    start = offset
    state = ""
    fence = b""
    for line in data[offset:].splitlines(keepends=True):
        begins = "" if fence else _shape(line)
        if not fence and begins and begins != state:
            if state in ("prompt", "answer"):
                yield start, position, state == "prompt", None
            start = position
            state = begins
        result = _START.match(line) if begins == "start" else None
        if result:
            yield position, position, False, datetime.fromisoformat(result[1].decode())
        mark = _FENCE.match(line)
        if mark and state == "answer" and (not fence or mark[1].startswith(fence)):
            fence = b"" if fence else mark[1]
        position += len(line)
    if state in ("prompt", "answer"):
        yield start, position, state == "prompt", None


def _shape(line: bytes) -> str:
    """What a line outside of code is: the start of a session, a prompt, an answer, what a tool
    said; "" for a blank one.
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
