"""The words of a turn as the index and the reader get them: without secrets, not too many."""

from __future__ import annotations

import re

from memoranda.text.gate import Rules
from memoranda.text.tokens import fts_text
from memoranda.transcripts.turn import Kind, Turn

MOST_CHARACTERS = 40_000
"""Characters of what was said that are indexed; of a longer text its beginning and its end."""
_MOST_OF_RESULT = 600
_MOST_OF_FAILURE = 4_000
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_LONG_WORD = re.compile(r"\S{200,}")


class Mask:
    """Takes secrets out by the rules of the gate."""

    def __init__(self, rules: Rules):
        self._rules = rules

    def clean(self, text: str) -> str:
        """`text` with `[redacted: id]` for every secret."""
        return self._rules.redacted(text)

    def is_suspicious(self, text: str) -> bool:
        """Whether `text` tries to instruct who reads it."""
        return bool(self._rules.suspicions(text))

    def words(self, turn: Turn) -> str:
        """What is indexed of a turn."""
        text = shortened(turn)
        if not text:
            return ""
        return indexed_words(self.clean(text))


def shortened(turn: Turn) -> str:
    """The part of a turn that is worth finding: of what tools gave back little, unless it failed."""
    most = MOST_CHARACTERS
    if turn.kind is Kind.RESULT:
        most = _MOST_OF_FAILURE if turn.has_failed else _MOST_OF_RESULT
    text = turn.text
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]}\n{text[-half:]}"
    # Data in letters, as of pictures
    return _LONG_WORD.sub(" ", text)


def indexed_words(text: str) -> str:
    """`text` as the full-text table gets it: as it is where that finds the same words."""
    if text.isascii() and not _CAMEL.search(text):
        return text
    return fts_text(text)
