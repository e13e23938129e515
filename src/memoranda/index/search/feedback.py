"""Relevance feedback: the best notes of a told text say what it is about.

Somebody who tells something seldom uses the words of the notes that matter. The notes found first
do: what they have in common, and few other notes hold, is the topic. Notes that share these words
gain, those found first included.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import islice

from memoranda.index.search.words import MAX_HELD, stem
from memoranda.text.tokens import fts_text, is_cjk, stop_words

SOURCES = 5
"""The words of this many of the best notes are looked at."""

# Characters read of each of them.
_MAX_CHARACTERS = 8_000
# Their most frequent words that are looked up in the index.
_LOOKED_UP = 30
# The most telling of these words, by how often and how rarely they occur, are the topic.
_TOPIC = 20

WordRows = Callable[[str], Sequence[int]]
"""The notes that hold a form of a word."""


def topic_shares(
    sources: Sequence[tuple[str, float]],
    rows_of: WordRows,
    rarity: Callable[[float], float],
    candidates: Collection[int],
) -> dict[int, float]:
    """How much of the topic of the `sources` each candidate holds, 1 for the one that holds most.

    A source is the text of a note and its score. `rarity` tells how much a word counts that this
    many notes hold. Candidates without a word of the topic are left out.
    """
    topic: list[tuple[float, Sequence[int], float]] = []
    for word, frequency in islice(_frequent_words(sources), _LOOKED_UP):
        rows = rows_of(word)
        # A word of so many notes names no topic
        if 0 < len(rows) < MAX_HELD:
            rare = rarity(len(rows))
            topic.append((frequency * rare, rows, rare))
    topic.sort(key=lambda entry: -entry[0])

    shares: dict[int, float] = {}
    inside = set(candidates)
    for weight, rows_of_topic, rare in topic[:_TOPIC]:
        for row in inside.intersection(rows_of_topic):
            shares[row] = shares.get(row, 0.0) + weight * rare
    most = max(shares.values(), default=0.0) or 1.0
    return {row: share / most for row, share in shares.items()}


def _frequent_words(sources: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The frequent words of the sources, each in a form that occurs, with its frequency.

    A source counts as much as its score, and a long one no more than a short one.
    """
    total = sum(score for _, score in sources) or 1.0
    frequencies: defaultdict[str, float] = defaultdict(float)
    forms: dict[str, str] = {}
    for text, score in sources:
        counts = _counts(fts_text(text[:_MAX_CHARACTERS]).split())
        if not counts:
            continue
        share = score / total / counts.total()
        for word, count in counts.items():
            stemmed = word if is_cjk(word) else stem(word)
            forms.setdefault(stemmed, word)
            frequencies[stemmed] += share * count
    by_frequency = sorted(frequencies.items(), key=lambda entry: -entry[1])
    return [(forms[stemmed], frequency) for stemmed, frequency in by_frequency]


def _counts(words: Sequence[str]) -> Counter[str]:
    """How often each informative word occurs."""
    counts = Counter(words)
    for word in stop_words() & counts.keys():
        del counts[word]
    for word in [word for word in counts if len(word) == 1]:
        del counts[word]
    return counts
