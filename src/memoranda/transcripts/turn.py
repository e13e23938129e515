"""One thing said or done in a session, as every format yields it, and what a format must offer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Kind(IntEnum):
    """The kinds of turns."""

    SAID = 1
    ANSWERED = 2
    RAN = 3
    EDITED = 4
    RESULT = 5


class Turn(NamedTuple):
    """One thing said or done.

    text: the words of the person or the agent, the command it ran, the path of the file it changed,
        or the output of a tool.
    position: where its format finds it again, unique in its session.
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
    """A session while it is read: its name, the folder it works in, the latest time."""

    name: str = ""
    folder: str = ""
    time: float = 0.0


@dataclass(slots=True)
class SessionTurns:
    """A session with its turns. For a file that only grows, only the new turns."""

    session: Session
    turns: list[Turn] = field(default_factory=list)


class SourceFile(NamedTuple):
    """A file with transcripts: its agent, its format and its path."""

    agent: str
    format: str
    path: Path


class NotUnderstood(Exception):
    """A file does not have its format. The message gives the reason for people."""


class Format(Protocol):
    """Reads transcripts of one form.

    grows: whether files are only appended to, so that `read` can begin where it ended.

    A method gets the `state` that the format recorded the last time, {} at first. It is changed in
    place and kept. A format that does not grow yields whole sessions, without those that are
    unchanged by `state`.
    """

    grows: bool

    def read(self, path: Path, state: dict[str, Any]) -> Iterator[SessionTurns]:
        """Read what is new. Raises OSError, NotUnderstood."""

    def passage(self, path: Path, session: str, position: str) -> str | None:
        """The text of one turn. None if it is gone. Raises OSError, NotUnderstood."""


def shorten(text: str, most_characters: int) -> str:
    """`text` with at most `most_characters` characters. If it was cut, the last one is an ellipsis."""
    if len(text) <= most_characters:
        return text
    return f"{text[: most_characters - 1]}…"


def as_object(value: Any) -> dict[str, Any]:
    """`value` if it is a JSON object, otherwise {}."""
    if isinstance(value, dict):
        return value
    return {}


def as_list(value: Any) -> list[Any]:
    """`value` if it is a JSON list, otherwise []."""
    if isinstance(value, list):
        return value
    return []


def seconds(value: Any) -> float:
    """A time as programs write it, in seconds since 1970: ISO 8601, seconds, milliseconds; 0.0 for
    anything else.
    """
    if isinstance(value, str):
        if value.isdigit():
            value = int(value)
        else:
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return 0.0
            return moment.timestamp()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e17:
        return 0.0
    while value > 1e11:
        value /= 1000
    return float(value)
