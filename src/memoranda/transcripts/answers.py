"""Estimates how well a text answers a question.

The best sentence counts: the one with the most words of the question. It counts more if it has the
kind of thing that is asked for, such as a number for "how many" or a name for "who".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from memoranda.text.folding import fold
from memoranda.text.standing import SENTENCE
from memoranda.text.tokens import is_cjk
from memoranda.transcripts.blocks import words_of

# Sentences of a text that are compared with the question.
_MAX_SENTENCES = 60
# Factor for a sentence that is a question itself, which says little.
_QUESTION_FACTOR = 0.5
# Factor for a sentence that gives an agent work.
_REQUEST_FACTOR = 0.6
# A sentence with the kind of thing that is asked for counts more by this part.
_KIND_BONUS = 0.25
# Letters that the beginning of a word has at least, by which its forms are known.
_MIN_PREFIX_LETTERS = 4
# Letters at the end of a word in which its forms may differ.
_ENDING_LETTERS = 3

# Characters of a person's text that are searched for a statement, and words that a statement has at
# least. A character of a script without blanks counts as half a word.
_MAX_STATEMENT_CHARACTERS = 2_000
_MIN_STATEMENT_WORDS = 4
# Words that may come before a request.
_OPENING_WORDS = frozenset(
    ("please", "pls", "now", "then", "so", "and", "ok", "okay", "also", "just")
)

# Pairs of patterns: words of a question, and words or signs that an answer to it has.
_QUESTION_KINDS = (
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
    """Whether a person's text has a statement, and not only questions and work to do.

    "We moved to Hetzner last week." is a statement, "Fix the tests" is not.
    """
    return any(
        _is_statement(match[0].strip())
        for match in SENTENCE.finditer(text[:_MAX_STATEMENT_CHARACTERS])
    )


def _is_statement(sentence: str) -> bool:
    """Whether a sentence is a statement: not a question, not a request, and not only a few words."""
    if sentence.endswith(("?", "？")) or _word_count(sentence) < _MIN_STATEMENT_WORDS:
        return False
    words = fold(sentence).replace(",", " ").split()
    # In "ok, now fix the tests", the first word that counts is `fix`.
    words = [word for word in words if word not in _OPENING_WORDS]
    if not words:
        return True
    is_request = words[0] in words_of("work_verbs")
    is_question = words[0] in words_of("asking_words")
    return not is_request and not is_question


def _word_count(sentence: str) -> float:
    """Return the number of words in a sentence."""
    size = len(sentence.split())
    if sentence.isascii():
        return size
    return size + sum(map(is_cjk, sentence)) / 2


class Wanted(NamedTuple):
    """A word of a question.

    exact: matches any form of the word.
    related: matches any form of its synonyms and related words. None if it has none.
    weight: how much the word says; a rare word says more.
    """

    exact: WordForms
    related: WordForms | None
    weight: float


def wanted(word: str, synonyms: Sequence[str], weight: float) -> Wanted:
    """Return a word of a question, and other words that an answer may have in its place.

    word, synonyms: the word and its synonyms, folded (in small letters, without accents).
    weight: how much the word says; a rare word says more.
    """
    related = None
    if synonyms:
        related = WordForms(synonyms)
    return Wanted(WordForms([word]), related, weight)


class WordForms:
    """The forms of words. They are recognized by the beginning that most forms share.

    For `migration` this is `migrat`.
    """

    def __init__(self, words: Sequence[str]):
        self._prefixes = tuple(dict.fromkeys(map(_prefix, words)))
        # Scripts without blanks have no borders between words.
        self._pattern: re.Pattern[str] | None = None
        if "".join(self._prefixes).isascii():
            joined = "|".join(map(re.escape, self._prefixes))
            self._pattern = re.compile(rf"(?<![a-z0-9])(?:{joined})")

    def are_in(self, folded: str) -> bool:
        """Whether a folded text has one of the words in any form. Longer words count, too."""
        # Most sentences have none, and the pattern is tried at each of their characters.
        if not any(prefix in folded for prefix in self._prefixes):
            return False
        return self._pattern is None or self._pattern.search(folded) is not None


def _prefix(word: str) -> str:
    """Return the beginning that most forms of a word share."""
    return word[: max(_MIN_PREFIX_LETTERS, len(word) - _ENDING_LETTERS)]


class Question:
    """A question to compare texts with, in order to find the sentence that answers it."""

    def __init__(self, text: str, words: Sequence[Wanted], related: float):
        """Take the text of a question and its words.

        related: how much a synonym or related word counts, if the word itself counts 1.
        """
        self._words = words
        self._related_factor = related
        self._total_weight = sum(word.weight for word in words) or 1.0
        self._answers = [answer for asks, answer in _QUESTION_KINDS if asks.search(text)]

    def fit(self, text: str) -> float:
        """Return how well the best sentence of `text` answers, from 0 to 1 + _KIND_BONUS."""
        best = 0.0
        for number, match in enumerate(SENTENCE.finditer(text)):
            if number == _MAX_SENTENCES:
                break
            best = max(best, self._fit_of(match[0]))
        return best

    def _fit_of(self, sentence: str) -> float:
        """Return how well one sentence answers: the share of the words that it has, weighted."""
        folded = fold(sentence)
        share = 0.0
        for word in self._words:
            if word.exact.are_in(folded):
                share += word.weight
            elif word.related is not None and word.related.are_in(folded):
                share += word.weight * self._related_factor
        if not share:
            return 0.0
        share /= self._total_weight
        if sentence.rstrip().endswith(("?", "？")):
            return share * _QUESTION_FACTOR
        first_word = folded.split()[0]
        if first_word in words_of("work_verbs"):
            share *= _REQUEST_FACTOR
        # If the question asks for several kinds of things, one of them is enough.
        if any(answer.search(sentence) for answer in self._answers):
            share *= 1 + _KIND_BONUS
        return share
