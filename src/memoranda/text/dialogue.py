"""Read a conversation that is given as a query, and split it into turns.

A conversation has one of two forms. In a text, most lines begin with the name of who speaks. In
JSON, it is a list of messages as models take them: `[{"role": "user", "content": "..."}]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import words

MOST_TURNS = 12
"""From a longer conversation, only this many turns at its end are used as a query."""

# The beginning of a turn: a name and a colon.
_TURN = lazy_pattern(r"\W{0,3}[^\W\d_][\w .'’-]{0,40}\W{0,3}[:：]", re.M)
# The beginning of a turn that names a role, not a person. No word of it is about anything.
_ROLE = lazy_pattern(r"\W{0,3}(?:user|human|assistant|model|ai)\W{0,3}[:：][ \t]*", re.M | re.I)
# A text with fewer turns is not a dialogue.
_MIN_TURNS = 2
# A turn with fewer informative words is read together with the turn before it.
_LEAST_WORDS_OF_TURN = 3
# The earlier turn of the same speaker is looked for among this many turns.
_MAX_TURNS_BETWEEN = 3
# Roles whose messages a person never reads.
_SILENT_ROLES = frozenset(("system", "developer", "tool", "function"))
_SPEAKERS = {"user": "User", "human": "User", "assistant": "Assistant", "model": "Assistant"}


class Turn(NamedTuple):
    """One turn of a talk."""

    speaker: str
    text: str


def as_dialogue(turns: Iterable[Turn]) -> str:
    """Return the turns as text, one turn on a line.

    >>> as_dialogue([Turn("User", "Which tea\\nshall I buy?"), Turn("Assistant", "For whom?")])
    'User: Which tea shall I buy?\\nAssistant: For whom?'
    """
    return "\n".join(f"{turn.speaker}: {' '.join(turn.text.split())}" for turn in turns)


def spoken(text: str) -> str:
    """Turn messages in JSON into text: `[{"role": "user", "content": "Hi"}]` → `User: Hi`.

    Only the last MOST_TURNS turns are kept. Any other text is returned unchanged.
    """
    start = text.lstrip()[:1]
    if start not in ("[", "{") or '"content"' not in text:
        return text
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # An object is a request to a model, or a single message
    if isinstance(messages, dict):
        messages = messages.get("messages", [messages])
    if not isinstance(messages, list):
        return text
    turns = list(_turns_of(messages))
    if not turns:
        return text
    return as_dialogue(turns[-MOST_TURNS:])


def _turns_of(messages: Sequence[object]) -> Iterator[Turn]:
    """Yield the turns of people and models. Messages of the system and of tools are left out."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role = str(message.get("role", "user"))
        text = _content_of(message.get("content")).strip()
        if text and role not in _SILENT_ROLES:
            yield Turn(_SPEAKERS.get(role, role.title()), text)


def _content_of(content: Any) -> str:
    """Return the text of a message: its string, or the texts of its parts on lines. "" for others.

    `[{"text": "Hi"}, {"image": "..."}]` → `Hi`.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def turns_of(text: str) -> list[str]:
    """Split a dialogue into its turns, the newest last.

    The lines `Ada: Which tea?` and `Bo: The green tea from Uji.` are two turns. Return [] if the
    text is not a dialogue: fewer than half of its lines begin with a name and a colon. If the
    newest turn says little, it is joined with the turns before it, back to what the same speaker
    said last.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    starts = [index for index, line in enumerate(lines) if _TURN.match(line)]
    if len(starts) < _MIN_TURNS or len(starts) * 2 < len(lines):
        return []
    # Lines before the first name belong to the first turn
    starts[0] = 0
    ends = [*starts[1:], len(lines)]
    turns = ["\n".join(lines[start:end]) for start, end in zip(starts, ends, strict=True)]
    # If the newest turn has few informative words, the turn before it says what it is about.
    first = len(turns) - 1
    word_total = _words_said(turns[first])
    while first and word_total < _LEAST_WORDS_OF_TURN:
        first -= 1
        word_total += _words_said(turns[first])
    if first < len(turns) - 1:
        first = _last_turn_of_same_speaker(turns, first)
    return [*turns[:first], "\n".join(turns[first:])]


def newest_turn(turns: str) -> str:
    """Return the last of the turns that `turns_of` joined, with the name of its speaker.

    >>> newest_turn("Ada: Which bolt failed?\\nBo: The long one.")
    'Bo: The long one.'
    """
    lines = turns.split("\n")
    starts = [index for index, line in enumerate(lines) if _TURN.match(line)]
    return "\n".join(lines[starts[-1] :]) if starts else turns


def without_roles(turns: str) -> str:
    """Take the roles of a talk with an assistant off the beginnings of turns. Names of people stay.

    >>> without_roles("User: Which tea?")
    'Which tea?'
    """
    return _ROLE.sub("", turns)


def _last_turn_of_same_speaker(turns: Sequence[str], first: int) -> int:
    """Return the index of the turn before the newest one that has the same speaker.

    "And what did we decide about that?" refers to what the person asked before, not to the "Let me
    look" of the assistant in between. Returns `first` if the speaker spoke in a turn from `first`
    on, or in none of a few turns before `first`.

    first: the index of the first turn that is joined with the newest turn so far.
    """
    speaker = _speaker_of(turns[-1])
    if speaker in map(_speaker_of, turns[first:-1]):
        return first
    earliest = max(0, first - _MAX_TURNS_BETWEEN)
    for index in range(first - 1, earliest - 1, -1):
        if _speaker_of(turns[index]) == speaker:
            return index
    return first


def _speaker_of(turn: str) -> str:
    """Return the beginning of a turn that names the speaker. "" if it names none."""
    match = _TURN.match(turn)
    return match[0] if match else ""


def _words_said(turn: str) -> int:
    """Return how many informative words a turn has after the name of its speaker."""
    return len(words(_TURN.sub("", turn)))
