"""Groups facts that say nearly the same, so that a person reads them once.

Two facts are alike if they share most of their words, counted for the shorter one, and if neither
denies what the other one says: "use tabs, not spaces" is unlike "use spaces, not tabs".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from memoranda.jobs.linking import evidence_pairs, evidence_words

T = TypeVar("T")

# What denies the words behind it, as far as the next sign.
_DENIED = re.compile(
    r"(?:\b(?:not|never|no|without|instead of|rather than|over|avoid|avoids)\b|n[\u2019']t\b|[不别勿])"
    r"([^,.;:!?，。；：！？]*)",
    re.IGNORECASE,
)
# Letters of a word that count, so that its forms are one word: `answer`, `answers`.
_STEM = 5
# How many words two facts share at least, unless one has only one word, and which part of the words
# of the shorter fact.
_LEAST_SHARED = 2
_LEAST_SHARE = 0.6


class _Words(NamedTuple):
    """The words of a fact that say something.

    said: those that it says.
    denied: those that it denies.
    """

    said: frozenset[str]
    denied: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """All words of the fact."""
        return self.said | self.denied


def alike(facts: Sequence[tuple[str, T]]) -> list[list[T]]:
    """Group facts that say nearly the same. The order of `facts` stays.

    facts: (text, value to return) of each fact.
    """
    groups: list[tuple[_Words, list[T]]] = []
    for text, fact in facts:
        words = _words_in(text)
        group = next((group for first, group in groups if _say_the_same(first, words)), None)
        if group is None:
            groups.append((words, [fact]))
        else:
            group.append(fact)
    return [group for _, group in groups]


def _words_in(text: str) -> _Words:
    """Return the words of a fact."""
    lower_text = text.lower()
    denied = _stems(" ".join(_DENIED.findall(lower_text)))
    return _Words(_stems(_DENIED.sub(" ", lower_text)), denied)


def _stems(lower_text: str) -> frozenset[str]:
    """Return the beginnings of words and the pairs of Han characters in a text.

    Texts are compared by them.
    """
    words = {word[:_STEM] for word in evidence_words(lower_text)}
    return frozenset(words | evidence_pairs(lower_text))


def _say_the_same(first: _Words, second: _Words) -> bool:
    """Whether two facts share most words, and neither denies the other."""
    if first.said & second.denied or first.denied & second.said:
        return False
    smallest = min(len(first.all), len(second.all))
    shared = len(first.all & second.all)
    least_shared = max(min(_LEAST_SHARED, smallest), _LEAST_SHARE * smallest)
    return smallest > 0 and shared >= least_shared
