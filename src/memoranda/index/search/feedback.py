"""Relevance feedback: raise notes about the topic of the notes that were found first.

A text that tells a story seldom uses the same words as the notes that matter. The notes that are
found first usually have such words, so more words to search for are taken from them. These notes'
*topic* is the words that they share and that few other notes contain. Every note with words of the
topic gains, including the notes found first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from memoranda.index.search.words import MAX_HELD, stem
from memoranda.text.tokens import fts_text, is_cjk, stop_words

SOURCES = 5
"""The words of this many of the best notes are looked at."""

# This many characters of each of these notes are read.
_MAX_CHARACTERS = 8_000
# This many of the most frequent words of these notes are looked up in the index.
_MAX_LOOKED_UP = 30
# The topic has at most this many of the words that were looked up: words that are frequent in the
# best notes and rare in the others.
_MAX_TOPIC_WORDS = 20

WordRows = Callable[[str], Sequence[int]]
"""Returns the rows of the notes that contain a form of a word."""


class _TopicWord(NamedTuple):
    """A word of the topic.

    weight: its frequency in the best notes, times its rarity.
    rows: the rows of the notes with the word.
    rarity: a higher number for a word in fewer notes.
    """

    weight: float
    rows: Sequence[int]
    rarity: float


def topic_shares(
    sources: Sequence[tuple[str, float]],
    rows_of: WordRows,
    rarity: Callable[[float], float],
    candidates: Collection[int],
) -> dict[int, float]:
    """Return how much each candidate is about the topic of the best notes: row -> 0 to 1.

    The topic is made of the frequent words of the best notes. The candidate with most of it gets 1.
    Candidates without any word of the topic are left out.

    sources: (text, score) of each of the best notes.
    rows_of: returns the rows of the notes that contain a word.
    rarity: returns the weight of a word from the number of notes that contain it.
    candidates: the rows of the notes that may gain.
    """
    # Find the topic: words that are frequent in the best notes and rare in others.
    topic: list[_TopicWord] = []
    for word, frequency in _frequent_words(sources):
        rows = rows_of(word)
        # A word in very many notes is not a topic.
        if 0 < len(rows) < MAX_HELD:
            word_rarity = rarity(len(rows))
            topic.append(_TopicWord(frequency * word_rarity, rows, word_rarity))
    topic.sort(key=lambda word: word.weight, reverse=True)

    # Add up what each candidate has of it.
    amounts: dict[int, float] = {}
    candidate_rows = set(candidates)
    for topic_word in topic[:_MAX_TOPIC_WORDS]:
        for row in candidate_rows.intersection(topic_word.rows):
            amounts[row] = amounts.get(row, 0.0) + topic_word.weight * topic_word.rarity
    highest = max(amounts.values(), default=0.0) or 1.0
    return {row: amount / highest for row, amount in amounts.items()}


def _frequent_words(sources: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return (word, frequency) of the most frequent words of the sources, the most frequent first.

    Forms of one word count together and are returned as the form that comes first. The words of all
    sources have a frequency of 1 together. A source counts by its score, not by its length.
    """
    # All scores may be 0.
    total_score = sum(score for _, score in sources) or 1.0
    frequencies_by_stem: defaultdict[str, float] = defaultdict(float)
    first_form_by_stem: dict[str, str] = {}
    # A cache: word -> stem. The best notes share many words, and finding a stem takes long.
    stems: dict[str, str] = {}
    for text, score in sources:
        counts = _counts(text[:_MAX_CHARACTERS])
        if not counts:
            continue
        # The frequency of one occurrence of a word in this source.
        share_of_source = score / total_score
        share_of_occurrence = share_of_source / counts.total()
        for word, count in counts.items():
            word_stem = stems.get(word)
            if word_stem is None:
                word_stem = word if is_cjk(word) else stem(word)
                stems[word] = word_stem
            first_form_by_stem.setdefault(word_stem, word)
            frequencies_by_stem[word_stem] += share_of_occurrence * count
    most_frequent = nlargest(_MAX_LOOKED_UP, frequencies_by_stem.items(), key=itemgetter(1))
    return [(first_form_by_stem[word_stem], frequency) for word_stem, frequency in most_frequent]


def _counts(text: str) -> Counter[str]:
    """Count how often each informative word occurs. Stop words and single letters are left out."""
    counts = Counter(fts_text(text).split())
    single_letters = [word for word in counts if len(word) == 1]
    for word in (stop_words() & counts.keys()).union(single_letters):
        del counts[word]
    return counts
