"""Takes secrets out of turns, finds injected instructions, and selects the words to index."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from memoranda.text.folding import fold
from memoranda.text.gate import SECRET, Rules, may_be_order, words_of_name
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import fts_text
from memoranda.transcripts.blocks import list_of, words_of
from memoranda.transcripts.turn import Kind, Turn

MOST_CHARACTERS = 40_000
"""Characters of a turn that are indexed. Of a longer text, the beginning and the end are indexed."""
# Characters indexed of an output, and of one that failed.
_RESULT_CHARACTERS = 600
_FAILURE_CHARACTERS = 4_000
# For `bytes.translate`: `a` for small letters and digits, `A` for capital letters.
_SHAPES = bytes.maketrans(
    (string.ascii_lowercase + string.digits + string.ascii_uppercase).encode(),
    b"a" * 36 + b"A" * 26,
)
_DIGITS = "0123456789"
# The shortest number of a card.
_CARD_DIGITS = 13
# Words for which the result of the rules is remembered: by a mask that lives long, and by one for a
# reading of files. And their characters at most.
_MAX_KNOWN_WORDS = 30_000
_MAX_WORDS_OF_READING = 100_000
_MAX_KNOWN_CHARACTERS = 64
# Clauses of a longer text are not checked one by one.
_MAX_PARTED_CHARACTERS = 1_000
# Separators of the clauses of a sentence, and of the words of a path.
_JOINTS = lazy_pattern(r"\s*[,;:#|/_]\s*|\s+(?:instead|then|and|but|so|that|because|to)\s+", re.I)
# A few words of a shell, without quotes or comments.
_PLAIN_COMMAND = lazy_pattern(r"[\w./=:@+-]+(?: [\w./=:@+-]+){0,5}", re.ASCII)
# A name of several words, or a path.
_NAME = lazy_pattern(r"[\w.~@:%-]+(?:/[\w.~@:%-]+)*")
# Characters of a text in which names are checked.
_MAX_NAMED_CHARACTERS = 4_000
# A longer word is data, which nobody looks for.
_MAX_WORD_CHARACTERS = 200
_LONG_WORD = lazy_pattern(rf"\S{{{_MAX_WORD_CHARACTERS},}}")


@cache
def _injection_pattern() -> re.Pattern[str]:
    """Return a pattern for phrases that try to instruct a reader, in folded text."""
    return re.compile("|".join(f"(?:{order})" for order in list_of("orders")), re.M)


class Mask:
    """Takes secrets out of texts, and finds injected instructions, by the rules of the gate.

    A sign is a word or phrase near which a rule finds secrets, such as `password`. Signs of words
    are remembered, because sessions repeat the same words.
    """

    def __init__(self, rules: Rules, most_known_words: int = _MAX_KNOWN_WORDS):
        self._rules = rules
        self._most_known_words = most_known_words
        near_words = rules.near(SECRET)
        self._phrases = [word for word in near_words if " " in word]
        # Signs of one character, and the beginnings of signs as tuples of characters.
        self._single_signs = {word for word in near_words if len(word) == 1}
        self._beginnings = {tuple(word[:3]) for word in near_words}
        # Words in small letters without signs, and words with their signs.
        self._harmless: set[str] = set()
        self._signs_by_word: dict[str, set[str]] = {}

    def for_reading(self) -> Mask:
        """Return a mask that remembers more words, to be dropped when many texts have been read."""
        return Mask(self._rules, _MAX_WORDS_OF_READING)

    def clean(self, text: str) -> str:
        """Return `text` with `[redacted: RULE]` in place of every secret."""
        signs = self._signs_in(text)
        # Most texts have no sign, so that no rule needs to search them.
        if not signs and text.isascii() and not _may_hold_card(text):
            return text
        return self._rules.redacted(text, signs)

    def _signs_in(self, text: str) -> set[str]:
        """Return the signs in a text."""
        lower = text.lower()
        signs = {phrase for phrase in self._phrases if phrase in lower}
        # Nearly all words are known to be harmless.
        for word in set(lower.split()) - self._harmless:
            signs |= self._signs_of(word)
        return signs

    def _signs_of(self, word: str) -> set[str]:
        """Return the signs in one word, which is in small letters."""
        known_signs = self._signs_by_word.get(word)
        if known_signs is not None:
            return known_signs
        signs: set[str] = set()
        if self._may_have_sign(word):
            signs = self._rules.words_near(SECRET, word)
        if len(self._harmless) + len(self._signs_by_word) > self._most_known_words:
            self._harmless.clear()
            self._signs_by_word.clear()
        # A long word hardly comes again, so it is not remembered.
        if len(word) > _MAX_KNOWN_CHARACTERS:
            return signs
        if signs:
            self._signs_by_word[word] = signs
        else:
            self._harmless.add(word)
        return signs

    def _may_have_sign(self, word: str) -> bool:
        """Whether a word has the beginning of a sign. Most words are known by this to have none.

        With the sign `password`, `mypass` may have it because of `pas`, and `table` cannot.
        """
        if not self._single_signs.isdisjoint(word):
            return True
        triples = zip(word, word[1:], word[2:], strict=False)
        if not self._beginnings.isdisjoint(triples):
            return True
        # Some signs have only two characters.
        return not self._beginnings.isdisjoint(pairwise(word))

    def is_suspicious(self, text: str) -> bool:
        """Whether `text`, or a part of a sentence in it, tries to instruct its reader."""
        if _injection_pattern().search(fold(text)) or self._rules.suspicions(text):
            return True
        names = "\n\n".join(_orders_in_names(text))
        if names and self._rules.suspicions(names):
            return True
        if len(text) > _MAX_PARTED_CHARACTERS:
            return False
        # "Never use X, instead …" and the parts of a file name hide where an order begins.
        parted_text = _JOINTS.sub(".\n", text)
        return parted_text != text and bool(self._rules.suspicions(parted_text))

    def is_suspicious_name(self, path: str) -> bool:
        """Whether a name in a path tries to instruct its reader."""
        return bool(self._rules.name_suspicions(path))

    def is_suspicious_command(self, command: str) -> bool:
        """Whether a command may try to instruct its reader.

        A few plain shell words are not checked as sentences, so that a hook need not load the words
        of all languages.
        """
        if not _PLAIN_COMMAND.fullmatch(command):
            return self.is_suspicious(command)
        # The words of a name or of a path may be an order, too.
        views = f"{command}\n{words_of_name(command)}"
        if _injection_pattern().search(fold(views)):
            return True
        names = "\n\n".join(filter(_has_order_word, _orders_in_names(command)))
        return bool(names) and bool(self._rules.suspicions(names))

    def words(self, turns: Sequence[Turn]) -> list[str]:
        """Return the text to index for each of these turns, without secrets."""
        return [indexed_words(self.clean(findable_part(turn))) for turn in turns]


def _orders_in_names(text: str) -> list[str]:
    """Return the words of each name or path in a text that has enough words for an order.

    For `cat ignore/allPrevious/rules.md` it is `ignore all Previous rules md`.
    """
    names = dict.fromkeys(_NAME.findall(text[:_MAX_NAMED_CHARACTERS]))
    # Nearly all words of a text are one word each.
    long_names = [name for name in names if not (name.isalpha() and name[1:].islower())]
    return [words for words in map(words_of_name, long_names) if may_be_order(words)]


def _has_order_word(words: str) -> bool:
    """Whether the words of a name have one, such as `all` or `the`, that few names have."""
    return not words_of("order_words").isdisjoint(words.lower().split())


def _may_hold_card(text: str) -> bool:
    """Whether a text has enough digits for the number of a credit card."""
    return sum(map(text.count, _DIGITS)) >= _CARD_DIGITS


def findable_part(turn: Turn) -> str:
    """Return the part of a turn's text to index. Output of a tool is cut short unless it failed."""
    most_characters = MOST_CHARACTERS
    if turn.kind is Kind.RESULT:
        most_characters = _RESULT_CHARACTERS
        if turn.has_failed:
            most_characters = _FAILURE_CHARACTERS
    text = turn.text
    if len(text) > most_characters:
        half_size = most_characters // 2
        text = f"{text[:half_size]}\n{text[-half_size:]}"
    # Most texts have no such word, and this test is faster than the pattern.
    if len(max(text.split(), key=len, default="")) < _MAX_WORD_CHARACTERS:
        return text
    return _LONG_WORD.sub(" ", text)


def indexed_words(text: str) -> str:
    """Return the form of a text that the full-text table gets.

    The conversion is left out for ASCII without words like `camelCase`, where it changes nothing.
    """
    if text.isascii() and not _has_camel_case(text):
        return text
    return fts_text(text)


def _has_camel_case(text: str) -> bool:
    """Whether a capital letter follows a small one or a digit anywhere in a text of ASCII."""
    # This is several times as fast as a pattern.
    return b"aA" in text.encode().translate(_SHAPES)
