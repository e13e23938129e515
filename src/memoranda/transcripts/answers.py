"""How well a text answers a question: by the one sentence that has most of what is asked for, and by
whether it has the kind of thing that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from memoranda.text.folding import fold
from memoranda.text.tokens import is_cjk
from memoranda.transcripts.blocks import words_of

# Sentences of a text that are looked at.
_MOST_SENTENCES = 60
# A sentence that is asked says little about what it asks.
_OF_A_QUESTION = 0.5
# A sentence that asks an agent for work tells little about what it names.
_OF_A_REQUEST = 0.6
# What the kind of thing that is asked for adds.
_OF_THE_KIND = 0.25
_SENTENCE = re.compile(r"[^\n.!?。！？]+(?:\.(?=\S)[^\n.!?。！？]*)*[.!?。！？]*")
_SHORTEST_PREFIX = 4
# Letters at the end of a word that its forms may differ in.
_ENDING = 3

# Characters of what a person said that are looked at for something told, and words of a sentence
# that tells something; a sign of a script without blanks counts as half a word.
_MOST_TOLD = 2_000
_LEAST_WORDS = 4
# Words that may come before a request.
_POLITE = frozenset(("please", "pls", "now", "then", "so", "and", "ok", "okay", "also", "just"))

# Ways to ask, and what an answer has.
_KINDS = (
    (
        re.compile(r"\b(?:who|whose|whom)\b", re.I),
        re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]{2,}|@\w"),
    ),
    (
        re.compile(
            r"\b(?:how (?:many|much|long|often|big|large|fast|old|far|high)|when|what time"
            r"|(?:which|what) (?:day|date|month|year|version|port|number|size|limit)"
            r"|(?:limit|maximum|minimum|timeout|threshold|size|port|price|target) of)\b",
            re.I,
        ),
        re.compile(
            r"\d|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june"
            r"|july|august|september|october|november|december|spring|summer|autumn|winter|noon"
            r"|midnight|daily|weekly|monthly|yearly|nightly|today|tomorrow|yesterday|tonight"
            r"|never|always|every|once|twice|(?:last|next) (?:week|month|year|night)"
            r"|one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)\b",
            re.I,
        ),
    ),
    (
        re.compile(r"\b(?:why|how come|reason|cause|caused)\b", re.I),
        re.compile(
            r"\b(?:because|since|due to|so that|as (?:it|the|we|they|our|he|she|I)|otherwise|reason"
            r"|came from|comes from|thanks to|to avoid|in order to|was a|or (?:it|the|we)|needs?)\b"
            r"|[:,] (?:the|it|no|we)\b",
            re.I,
        ),
    ),
    (
        re.compile(r"\bwhere\b", re.I),
        re.compile(r"[\w.-]+/[\w./-]+|\b(?:in|at|on|to|under|from|into|behind) \S+"),
    ),
)


def states_something(text: str) -> bool:
    """Whether a person's words tell something, and do not only ask or give work."""
    return any(_tells(match[0].strip()) for match in _SENTENCE.finditer(text[:_MOST_TOLD]))


def _tells(sentence: str) -> bool:
    """Whether a sentence is neither a question nor a request nor a few words."""
    if sentence.endswith(("?", "？")) or _size(sentence) < _LEAST_WORDS:
        return False
    words = fold(sentence).replace(",", " ").split()
    first = next((word for word in words if word not in _POLITE), "")
    return first not in words_of("work_verbs") and first not in words_of("asking_words")


def _size(sentence: str) -> float:
    """The number of words of a sentence."""
    size = len(sentence.split())
    if sentence.isascii():
        return size
    return size + sum(map(is_cjk, sentence)) / 2


class Wanted(NamedTuple):
    """A word that is asked for: what its forms begin with, the same for other words that people use
    for it, and how much it says.
    """

    exact: re.Pattern[str]
    related: re.Pattern[str] | None
    weight: float


def wanted(word: str, synonyms: Sequence[str], weight: float) -> Wanted:
    """A folded word to look for in sentences, and folded words that mean the same."""
    related = None
    if synonyms:
        related = _beginning(synonyms)
    return Wanted(_beginning([word]), related, weight)


def _beginning(words: Sequence[str]) -> re.Pattern[str]:
    """Matches the beginning of any form of these words."""
    prefixes = [re.escape(_prefix(word)) for word in words]
    joined = "|".join(prefixes)
    if not joined.isascii():
        # Scripts without blanks have no borders between words.
        return re.compile(joined)
    return re.compile(rf"(?<![a-z0-9])(?:{joined})")


def _prefix(word: str) -> str:
    return word[: max(_SHORTEST_PREFIX, len(word) - _ENDING)]


class Question:
    """A question, and the words it asks for."""

    def __init__(self, text: str, words: Sequence[Wanted], related: float):
        """related: what another word for the same counts, against the word itself, up to 1."""
        self._words = words
        self._related = related
        self._whole = sum(word.weight for word in words) or 1.0
        self._answers = [answer for asks, answer in _KINDS if asks.search(text)]

    def fit(self, text: str) -> float:
        """How well the best sentence of `text` answers, from 0 to 1 + what its kind adds."""
        best = 0.0
        for number, match in enumerate(_SENTENCE.finditer(text)):
            if number == _MOST_SENTENCES:
                break
            best = max(best, self._fit_of(match[0]))
        return best

    def _fit_of(self, sentence: str) -> float:
        folded = fold(sentence)
        share = 0.0
        for word in self._words:
            if word.exact.search(folded):
                share += word.weight
            elif word.related is not None and word.related.search(folded):
                share += word.weight * self._related
        if not share:
            return 0.0
        share /= self._whole
        if sentence.rstrip().endswith(("?", "？")):
            return share * _OF_A_QUESTION
        first, *_ = folded.split()
        if first in words_of("work_verbs"):
            share *= _OF_A_REQUEST
        # Where several kinds are asked for, one is enough.
        if any(answer.search(sentence) for answer in self._answers):
            share *= 1 + _OF_THE_KIND
        return share
