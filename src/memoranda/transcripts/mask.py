"""The words of a turn as the index and the reader get them: without secrets, not too many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from memoranda.text.folding import fold
from memoranda.text.gate import SECRET, Rules
from memoranda.text.tokens import fts_text
from memoranda.transcripts.blocks import list_of
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
# Words whose signs are remembered.
_MOST_KNOWN = 100_000
# Characters of a text whose clauses are looked at one by one; of a longer one what is shown is.
_LONGEST_APART = 1_000
# Separators of the clauses of a sentence, and of the words of a path.
_JOINTS = re.compile(r"\s*[,;:#|/_]\s*|\s+(?:instead|then|and|but|so|that|because|to)\s+", re.I)
# A few words of a shell, without quotes or comments.
_PLAIN_COMMAND = re.compile(r"[\w./=:@+-]+(?: [\w./=:@+-]+){0,5}", re.ASCII)
# A longer word is data, which nobody looks for.
_LONGEST_WORD = 200
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD},}}")


@cache
def _orders() -> re.Pattern[str]:
    """Matches what tries to instruct a reader, in folded text."""
    return re.compile("|".join(f"(?:{order})" for order in list_of("orders")), re.M)


class Mask:
    """Takes secrets out by the rules of the gate."""

    def __init__(self, rules: Rules):
        self._rules = rules
        self._phrases = rules.phrases_near(SECRET)
        # Sessions say the same words over and over.
        self._harmless: set[str] = set()
        self._signs_by_word: dict[str, set[str]] = {}

    def clean(self, text: str) -> str:
        """`text` with `[redacted: id]` for every secret."""
        signs = self._signs_in(text)
        # Most texts have nothing that any rule needs.
        if not signs and text.isascii() and not _may_hold_card(text):
            return text
        return self._rules.redacted(text, signs)

    def _signs_in(self, text: str) -> set[str]:
        """The words that rules look for and that a text has."""
        lower = text.lower()
        signs = {phrase for phrase in self._phrases if phrase in lower}
        # Nearly all words are known, and known to be harmless.
        for word in set(lower.split()) - self._harmless:
            signs |= self._signs_of(word)
        return signs

    def _signs_of(self, word: str) -> set[str]:
        """The words that rules need, and that one word in small letters holds."""
        known = self._signs_by_word.get(word)
        if known is not None:
            return known
        signs = self._rules.words_near(SECRET, word)
        if len(self._harmless) + len(self._signs_by_word) > _MOST_KNOWN:
            self._harmless.clear()
            self._signs_by_word.clear()
        if signs:
            self._signs_by_word[word] = signs
        else:
            self._harmless.add(word)
        return signs

    def is_suspicious(self, text: str) -> bool:
        """Whether `text`, or a part of a sentence in it, tries to instruct its reader."""
        if _orders().search(fold(text)) or self._rules.suspicions(text):
            return True
        if len(text) > _LONGEST_APART:
            return False
        # "Never use X, instead …" and the parts of a file name hide where an order begins.
        parted_text = _JOINTS.sub(".\n", text)
        return parted_text != text and bool(self._rules.suspicions(parted_text))

    def is_suspicious_command(self, command: str) -> bool:
        """Whether a command may hold planted instructions (see `is_suspicious`).

        A few plain shell words are not checked as sentences, so that a hook need not load the words
        of all languages.
        """
        if _PLAIN_COMMAND.fullmatch(command):
            return bool(_orders().search(fold(command)))
        return self.is_suspicious(command)

    def words(self, turns: Sequence[Turn]) -> list[str]:
        """The words by which each of these turns is found."""
        return [indexed_words(self.clean(findable_part(turn))) for turn in turns]


def _may_hold_card(text: str) -> bool:
    """Whether a text has digits enough for the number of a card."""
    return sum(map(text.count, _DIGITS)) >= _CARD_DIGITS


def findable_part(turn: Turn) -> str:
    """The part of a turn that is worth finding. Output of tools is cut short unless it failed."""
    most_characters = MOST_CHARACTERS
    if turn.kind is Kind.RESULT:
        most_characters = _MOST_OF_RESULT
        if turn.has_failed:
            most_characters = _MOST_OF_FAILURE
    text = turn.text
    if len(text) > most_characters:
        half_size = most_characters // 2
        text = f"{text[:half_size]}\n{text[-half_size:]}"
    # Most texts have no such word, and looking for one is slower than counting.
    if len(max(text.split(), key=len, default="")) < _LONGEST_WORD:
        return text
    return _LONG_WORD.sub(" ", text)


def indexed_words(text: str) -> str:
    """`text` as the full-text table gets it. It is unchanged if the same words are found in it that
    way.
    """
    if text.isascii() and not _CAMEL.search(text):
        return text
    return fts_text(text)
