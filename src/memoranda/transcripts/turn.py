"""One thing said or done in a session, as every format yields it, and what a format must offer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Kind(IntEnum):
    """The kinds of turns: words of the person, words of the agent, commands, edits, outputs."""

    SAID = 1
    ANSWERED = 2
    RAN = 3
    EDITED = 4
    RESULT = 5


class Turn(NamedTuple):
    """One thing said or done.

    kind: who speaks, or what a tool did.
    text: the words of the person or the agent, the command it ran, the path of the file it changed,
        or the output of a tool.
    position: its place in the file, as its format writes and reads it. Unique in its session.
    time: seconds since 1970, 0 if unknown.
    call: the id that a result and its call share.
    has_failed: whether a result is a failure. None if the transcript does not say.
    """

    kind: Kind
    text: str
    position: str
    time: float = 0.0
    call: str = ""
    has_failed: bool | None = None


@dataclass(slots=True)
class Session:
    """A session while it is read.

    name: its name, which is unique for its agent.
    folder: the folder it works in. "" if unknown.
    time: when the last entry was written, in seconds since 1970. 0.0 if unknown.
    """

    name: str = ""
    folder: str = ""
    time: float = 0.0


@dataclass(slots=True)
class SessionTurns:
    """A session with the turns that were read: all turns, or the new ones of a file that grows."""

    session: Session
    turns: list[Turn] = field(default_factory=list)


class SourceFile(NamedTuple):
    """A file with transcripts.

    agent: the name of the agent, as in places.toml.
    format: the name of the format, a key of FORMATS.
    path: the path of the file.
    """

    agent: str
    format: str
    path: Path


class NotUnderstood(Exception):
    """A file does not have its format. The message gives the reason for people."""


class Format(Protocol):
    """Reads the transcripts of one program.

    grows: whether files are only appended to. `read` then goes on where it ended the last time,
        and yields the new turns. A format that does not grow yields whole sessions, and leaves
        out sessions that have not changed.

    `read` gets the `state` that it left behind after the last reading, {} the first time. It
    changes the state in place, and the caller stores it.
    """

    grows: bool

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        """Yield the sessions with new turns. Raises OSError, NotUnderstood."""

    def passage(self, path: Path, session: str, position: str) -> str | None:
        """Return the text of one turn, or None if it is gone.

        path: the file of the transcript.
        session: the name of the session.
        position: the position of the turn, as `read` gave it.

        Raises OSError, NotUnderstood.
        """


def shorten(text: str, most_characters: int) -> str:
    """Cut a text to `most_characters` characters. A cut text ends in an ellipsis, which counts."""
    if len(text) <= most_characters:
        return text
    return f"{text[: most_characters - 1]}…"


def as_object(value: Any) -> dict[str, Any]:
    """Return `value` if it is a JSON object, otherwise {}."""
    if isinstance(value, dict):
        return value
    return {}


def as_list(value: Any) -> list[Any]:
    """Return `value` if it is a JSON list, otherwise []."""
    if isinstance(value, list):
        return value
    return []


def seconds(value: Any) -> float:
    """Convert a time as programs write it to seconds since 1970.

    It may be ISO 8601, seconds, milliseconds or finer, e.g. `"2026-01-02T10:00:00Z"` or
    `1767348000000`. Returns 0.0 for any other value.
    """
    if isinstance(value, str) and not value.isdigit():
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return 0.0
    if isinstance(value, str):
        value = int(value)
    # For Python, true and false are numbers.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1e17:
        return 0.0
    # In seconds, this number is the year 5138: it must be milliseconds, or a smaller unit.
    while value > 1e11:
        value /= 1000
    return float(value)
