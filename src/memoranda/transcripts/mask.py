"""The words of a turn as the index and the reader get them: without secrets, not too many."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memoranda.text.gate import SECRET, Rules
from memoranda.text.tokens import fts_text
from memoranda.transcripts.turn import Kind, Turn

MOST_CHARACTERS = 40_000
"""Characters of what was said that are indexed; of a longer text its beginning and its end."""
# Characters indexed of an output, and of one that failed.
_MOST_OF_RESULT = 600
_MOST_OF_FAILURE = 4_000
# A change of case inside a word, as random secrets have.
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_DIGITS = "0123456789"
# The shortest number of a card.
_CARD_DIGITS = 13
# A word too long to be one: data, which nobody looks for.
_LONG_WORD = re.compile(r"\S{200,}")


class Mask:
    """Takes secrets out by the rules of the gate."""

    def __init__(self, rules: Rules):
        self._rules = rules
        # A rule is only tried on a text with one of its words.
        near = {word for rule in rules if rule.kind == SECRET for word in rule.near}
        self._asks_digits = "digits" in near
        self._near = tuple(near - {"digits", "unseen"})

    def clean(self, text: str) -> str:
        """`text` with `[redacted: id]` for every secret."""
        # Most texts have no word that any rule needs: asked once, not rule by rule.
        if not self._may_hold_secret(text):
            return text
        return self._rules.redacted(text)

    def _may_hold_secret(self, text: str) -> bool:
        if not text.isascii():
            return True
        lower = text.lower()
        for word in self._near:
            if word in lower:
                return True
        return self._asks_digits and sum(map(text.count, _DIGITS)) >= _CARD_DIGITS

    def is_suspicious(self, text: str) -> bool:
        """Whether `text` tries to instruct who reads it."""
        return bool(self._rules.suspicions(text))

    def words(self, turns: Sequence[Turn]) -> list[str]:
        """What is indexed of each of these turns."""
        return [indexed_words(self.clean(shortened(turn))) for turn in turns]


def shortened(turn: Turn) -> str:
    """The part of a turn that is worth finding: of what tools gave back little, unless it failed."""
    most = MOST_CHARACTERS
    if turn.kind is Kind.RESULT:
        most = _MOST_OF_RESULT
        if turn.has_failed:
            most = _MOST_OF_FAILURE
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
