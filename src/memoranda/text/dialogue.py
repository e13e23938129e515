"""A conversation as a query: its turns, and how much the words of each turn weigh.

A conversation comes as text in which most lines begin with who speaks, or as a list of messages in
JSON, as models and programs pass them on: `[{"role": "user", "content": "..."}]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import words

MOST_TURNS = 12
"""Of a longer conversation only the last turns are asked for."""

# The beginning of a turn: a name and a colon.
_TURN = lazy_pattern(r"\W{0,3}[^\W\d_][\w .'’-]{0,40}\W{0,3}[:：]", re.M)
# Fewer turns are no dialogue.
_MIN_TURNS = 2
# A turn with fewer informative words is read together with the turn before it.
_LEAST_WORDS_OF_TURN = 3
# Roles whose messages a person never reads.
_SILENT_ROLES = frozenset(("system", "developer", "tool", "function"))
_SPEAKERS = {"user": "User", "human": "User", "assistant": "Assistant", "model": "Assistant"}


class Turn(NamedTuple):
    """One turn of a talk."""

    speaker: str
    text: str


def as_dialogue(turns: Iterable[Turn]) -> str:
    """The turns as text, a line each.

    >>> as_dialogue([Turn("User", "Which tea\\nshall I buy?"), Turn("Assistant", "For whom?")])
    'User: Which tea shall I buy?\\nAssistant: For whom?'
    """
    return "\n".join(f"{turn.speaker}: {' '.join(turn.text.split())}" for turn in turns)


def spoken(text: str) -> str:
    """The words said in a list of messages in JSON. Any other text is returned unchanged."""
    start = text.lstrip()[:1]
    if start not in ("[", "{") or '"content"' not in text:
        return text
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(messages, dict):
        messages = messages.get("messages", [messages])
    if isinstance(messages, list):
        turns = list(_turns_of(messages))
    else:
        turns = []
    if turns:
        return as_dialogue(turns[-MOST_TURNS:])
    return text


def _turns_of(messages: Sequence[object]) -> Iterator[Turn]:
    """The turns of people and models in `messages`, without prompts of the system and tools."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role = str(message.get("role", "user"))
        text = _content_of(message.get("content")).strip()
        if text and role not in _SILENT_ROLES:
            yield Turn(_SPEAKERS.get(role, role.title()), text)


def _content_of(content: Any) -> str:
    """Return the text of a message: a string, or the texts in a list of parts. "" for others."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def turns_of(text: str) -> list[str]:
    """The turns of a dialogue, the newest last; [] where `text` is not one: fewer than half of its
    lines begin with who speaks.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    starts = [line_index for line_index, line in enumerate(lines) if _TURN.match(line)]
    if len(starts) < _MIN_TURNS or len(starts) * 2 < len(lines):
        return []
    starts[0] = 0
    ends = [*starts[1:], len(lines)]
    turns = ["\n".join(lines[line_index:end]) for line_index, end in zip(starts, ends, strict=True)]
    # A turn that says little is read with the one before it
    first = len(turns) - 1
    word_total = _words_said(turns[first])
    while first and word_total < _LEAST_WORDS_OF_TURN:
        first -= 1
        word_total += _words_said(turns[first])
    return [*turns[:first], "\n".join(turns[first:])]


def _words_said(turn: str) -> int:
    """How many words a turn has in addition to who speaks."""
    return len(words(_TURN.sub("", turn)))
